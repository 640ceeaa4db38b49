/* SPDX-License-Identifier: Apache-2.0 */
/* What the brain is told from its own side must be sound: what passes here is never refused by the allocator. */
#include "msg/msg.h"
#include "msg/msg_internal.h"

#include <math.h>
#include <stdlib.h>

#define MOST_SLOPE 1e12           /* of a curve that makes sense */
#define MOST_CUT 1e3              /* of its last knot */
#define LATEST_US (INT64_MAX / 4) /* of a wall time, before and after 1970 */
#define LEAST_LOAD 1e-6           /* of a node on a row */
#define MOST_W 1e12               /* of a row: more than there is */

/* Sums and products of a few such numbers stay far from the ends of a double. */
static bool is_sound(double v)
{
	return v >= 1e-30 && v <= 1e30;
}

/* ---- Jobs ---------------------------------------------------------------------------------------------------------- */

static ww_status check_knots(const struct ww_job *v, struct ww_error *err)
{
	const struct ww_knot *k = v->curve.k;
	if (!(k[0].cut_frac == 0 && k[0].loss_frac == 0 && k[0].slope >= 0))
		return ww_fail(err, WW_ERR_RANGE, "job '%s': its curve must start at cut 0, loss 0, slope 0 or more",
		               v->name);
	for (uint32_t i = 1; i < v->curve.n; i++) {
		const struct ww_knot *p = &k[i - 1], *q = &k[i];
		double loss = p->loss_frac + (q->cut_frac - p->cut_frac) * (p->slope + q->slope) / 2;
		if (!(q->cut_frac > p->cut_frac && q->slope > p->slope && q->slope <= MOST_SLOPE &&
		      q->cut_frac <= MOST_CUT))
			return ww_fail(err, WW_ERR_RANGE,
			               "job '%s': cut and slope of its curve must rise from knot to knot", v->name);
		if (!(fabs(q->loss_frac - loss) <= 1e-6 * (1 + loss)))
			return ww_fail(err, WW_ERR_INVALID,
			               "job '%s': losses of its curve do not follow from its slopes", v->name);
	}
	return WW_OK;
}

static ww_status check_curve(const struct ww_job *v, struct ww_error *err)
{
	const struct ww_curve *c = &v->curve;
	if (c->n < 2 || c->n > WW_MAX_KNOTS)
		return ww_fail(err, WW_ERR_RANGE, "job '%s': its curve has %u knots; must be 2..%d", v->name,
		               (unsigned)c->n, WW_MAX_KNOTS);
	if (!is_sound(c->p0_w) || !is_sound(c->t0_tps))
		return ww_fail(err, WW_ERR_RANGE,
		               "job '%s': baseline of its curve is %g W, %g tokens/s; must be above 0", v->name,
		               c->p0_w, c->t0_tps);
	if (!(c->max_cut_frac >= 0 && c->max_cut_frac <= 1))
		return ww_fail(err, WW_ERR_RANGE, "job '%s': max_cut_frac of its curve is %g; must be in 0..1", v->name,
		               c->max_cut_frac);
	if (!(c->var_a >= 0 && c->var_b >= 0 && isfinite(c->var_a) && isfinite(c->var_b) && isfinite(c->cov_ab)))
		return ww_fail(err, WW_ERR_RANGE, "job '%s': variances of its curve must be known, 0 or more", v->name);
	if (c->status < WW_PFI_OK || c->status > WW_PFI_BOUND)
		return ww_fail(err, WW_ERR_RANGE, "job '%s': status of its curve is %d; there are 0 to %d", v->name,
		               c->status, WW_PFI_BOUND);
	return check_knots(v, err);
}

static ww_status check_places(const struct ww_job *v, struct ww_error *err)
{
	if (v->n_places > WW_JOB_PLACES_MAX)
		return ww_fail(err, WW_ERR_RANGE, "job '%s': n_places is %u; must be at most %d", v->name,
		               (unsigned)v->n_places, WW_JOB_PLACES_MAX);
	for (uint32_t i = 0; i < v->n_places; i++) {
		unsigned long long node = v->places[i].node;
		if (v->places[i].gpus == 0 || v->places[i].gpus >> WW_NODE_GPUS_MAX != 0)
			return ww_fail(err, WW_ERR_RANGE,
			               "job '%s': node %llx: its GPUs are bits 0x%x; give some of %d", v->name, node,
			               (unsigned)v->places[i].gpus, WW_NODE_GPUS_MAX);
		for (uint32_t k = 0; k < i; k++)
			if (v->places[k].node == node)
				return ww_fail(err, WW_ERR_INVALID,
				               "job '%s': node %llx stands twice; give all its GPUs at once", v->name,
				               node);
	}
	return WW_OK;
}

/* Of a job that ends only its name is looked at. */
ww_status ww_check_job(const struct ww_job *v, struct ww_error *err)
{
	ww_status status = msg_check_name(v->name, "name of a job", err);
	if (status != WW_OK || v->n_places == 0)
		return status;
	if (v->tier < 0 || v->tier > 3)
		return ww_fail(err, WW_ERR_RANGE, "job '%s': tier is %d; must be 0..3", v->name, (int)v->tier);
	if (!(v->floor_frac >= 0 && v->floor_frac <= 1))
		return ww_fail(err, WW_ERR_RANGE, "job '%s': floor_frac is %g; must be in 0..1", v->name,
		               v->floor_frac);
	if (!is_sound(v->weight))
		return ww_fail(err, WW_ERR_RANGE, "job '%s': weight is %g; must be above 0", v->name, v->weight);
	if (v->has_curve)
		status = check_curve(v, err);
	return status == WW_OK ? check_places(v, err) : status;
}

/* ---- Events and meters ----------------------------------------------------------------------------------------------- */

static bool is_wall_time(int64_t us)
{
	return us >= -LATEST_US && us <= LATEST_US;
}

static ww_status check_times(const struct ww_event *v, struct ww_error *err)
{
	unsigned long long id = v->id;
	ww_status status = msg_check_duration(v->ramp_down_us, "event: ramp_down_us", err);
	if (status == WW_OK)
		status = msg_check_duration(v->ramp_up_us, "event: ramp_up_us", err);
	if (status != WW_OK)
		return status;
	if (!is_wall_time(v->start_us) || (v->end_us != WW_NEVER_US && !is_wall_time(v->end_us)))
		return ww_fail(err, WW_ERR_RANGE,
		               "event %llu: starts at %lld us and ends at %lld us; give times in UTC", id,
		               (long long)v->start_us, (long long)v->end_us);
	if (v->start_us >= v->end_us)
		return ww_fail(err, WW_ERR_RANGE, "event %llu: ends before it starts; give an end after the start", id);
	return WW_OK;
}

ww_status ww_check_event(const struct ww_event *v, struct ww_error *err)
{
	unsigned long long id = v->id;
	ww_status status = check_times(v, err);
	if (status != WW_OK)
		return status;
	if (v->boundary >= WW_N_BOUNDARIES || v->cls >= WW_N_CLASSES)
		return ww_fail(err, WW_ERR_RANGE, "event %llu: boundary is %u and class is %u; must be 0..%d and 0..%d",
		               id, v->boundary, v->cls, WW_N_BOUNDARIES - 1, WW_N_CLASSES - 1);
	if (!isnan(v->limit_w) && !(v->limit_w >= 0 && v->limit_w <= MOST_W))
		return ww_fail(err, WW_ERR_RANGE, "event %llu: limit_w is %g; give 0 or more watts, or NAN and a cut",
		               id, v->limit_w);
	if (!(v->cut_frac >= 0 && v->cut_frac <= 1) && !(isnan(v->cut_frac) && !isnan(v->limit_w)))
		return ww_fail(err, WW_ERR_RANGE, "event %llu: cut_frac is %g; must be in 0..1", id, v->cut_frac);
	return WW_OK;
}

ww_status ww_check_meter(const struct ww_meter *v, struct ww_error *err)
{
	ww_status status = msg_check_reading(&v->power_w, "meter: power_w", err);
	if (!status && (double)v->power_w.value > MOST_W)
		return ww_fail(err, WW_ERR_RANGE, "meter: power_w is %g W; must be at most %g",
		               (double)v->power_w.value, MOST_W);
	return status;
}

/* ---- Inventory and power plan ---------------------------------------------------------------------------------------- */

static ww_status check_row_power(const struct ww_row *v, struct ww_error *err)
{
	for (int b = 0; b < WW_N_BOUNDARIES; b++) {
		const char *at = ww_boundary_name((enum ww_boundary)b);
		if (!(v->fixed_w[b] >= 0 && v->fixed_w[b] <= MOST_W && v->follow[b] >= 0 && v->follow[b] <= 100))
			return ww_fail(err, WW_ERR_RANGE,
			               "row '%s': fixed_w %g and follow %g at '%s'; give 0 or more watts and 0..100",
			               v->name, v->fixed_w[b], v->follow[b], at);
	}
	if (v->fixed_w[WW_BOUNDARY_GPU] > 0 || v->follow[WW_BOUNDARY_GPU] > 0)
		return ww_fail(err, WW_ERR_RANGE, "row '%s': fixed_w and follow at 'gpu' must be 0", v->name);
	return WW_OK;
}

static ww_status check_row(const struct ww_row *v, struct ww_error *err)
{
	ww_status status = msg_check_name(v->name, "name of a row", err);
	if (status != WW_OK)
		return status;
	if (v->boundary >= WW_N_BOUNDARIES || v->meter_boundary >= WW_N_BOUNDARIES)
		return ww_fail(err, WW_ERR_RANGE, "row '%s': boundary is %u and meter_boundary is %u; must be 0..%d",
		               v->name, v->boundary, v->meter_boundary, WW_N_BOUNDARIES - 1);
	if (!(v->limit_w > 0 && (v->limit_w <= MOST_W || v->limit_w == INFINITY)))
		return ww_fail(err, WW_ERR_RANGE, "row '%s': limit_w is %g; must be above 0, or INFINITY for none",
		               v->name, v->limit_w);
	if (!(v->guard_frac >= 0 && v->guard_frac < 1))
		return ww_fail(err, WW_ERR_RANGE, "row '%s': guard_frac is %g; must be in 0..1 and below 1", v->name,
		               v->guard_frac);
	return check_row_power(v, err);
}

static ww_status check_loads(const struct ww_node_config *v, uint32_t n_rows, struct ww_error *err)
{
	if (v->n_loads > WW_ROW_LOADS_MAX)
		return ww_fail(err, WW_ERR_RANGE, "node '%s': n_loads is %u; must be at most %d", v->name,
		               (unsigned)v->n_loads, WW_ROW_LOADS_MAX);
	for (uint32_t i = 0; i < v->n_loads; i++) {
		unsigned row = v->loads[i].row;
		if (row >= n_rows)
			return ww_fail(err, WW_ERR_RANGE, "node '%s': loads row %u; there are %u, counted from 0",
			               v->name, row, (unsigned)n_rows);
		if (!(v->loads[i].frac >= LEAST_LOAD && v->loads[i].frac <= 1))
			return ww_fail(err, WW_ERR_RANGE, "node '%s': loads row %u by %g; must be above 0, at most 1",
			               v->name, row, (double)v->loads[i].frac);
		for (uint32_t k = 0; k < i; k++)
			if (v->loads[k].row == row)
				return ww_fail(err, WW_ERR_INVALID, "node '%s': loads row %u twice; give one sum",
				               v->name, row);
	}
	return WW_OK;
}

static ww_status check_node(const struct ww_node_config *v, uint32_t n_rows, struct ww_error *err)
{
	ww_status status = msg_check_name(v->name, "name of a node", err);
	if (status == WW_OK)
		status = msg_check_duration(v->shortest_boot_us, "shortest_boot_us of a node", err);
	if (status != WW_OK)
		return status;
	if (v->n_gpus < 1 || v->n_gpus > WW_NODE_GPUS_MAX)
		return ww_fail(err, WW_ERR_RANGE, "node '%s': n_gpus is %u; must be 1..%d", v->name,
		               (unsigned)v->n_gpus, WW_NODE_GPUS_MAX);
	if (!(v->min_w > 0 && v->min_w <= v->default_w && v->default_w <= v->max_w && isfinite(v->max_w)))
		return ww_fail(err, WW_ERR_RANGE,
		               "node '%s': limits %g <= %g <= %g W do not hold; give min_w, default_w, max_w above 0",
		               v->name, (double)v->min_w, (double)v->default_w, (double)v->max_w);
	if (!isnan(v->boot_cap_w) && !(v->boot_cap_w >= v->min_w && v->boot_cap_w <= v->max_w))
		return ww_fail(err, WW_ERR_RANGE, "node '%s': boot_cap_w %g is not within %g..%g W", v->name,
		               (double)v->boot_cap_w, (double)v->min_w, (double)v->max_w);
	return check_loads(v, n_rows, err);
}

static int by_id(const void *a, const void *b)
{
	uint64_t p = *(const uint64_t *)a, q = *(const uint64_t *)b;
	return (p > q) - (p < q);
}

/* Sorts them. */
static ww_status check_ids(uint64_t *ids, uint32_t n, const char *what, struct ww_error *err)
{
	if (n > 1)
		qsort(ids, n, sizeof *ids, by_id);
	for (uint32_t i = 1; i < n; i++)
		if (ids[i] == ids[i - 1])
			return ww_fail(err, WW_ERR_INVALID, "configuration: two %s have the id %llx; ids must differ",
			               what, (unsigned long long)ids[i]);
	return WW_OK;
}

static ww_status check_all_ids(const struct ww_config *v, struct ww_error *err)
{
	uint32_t most = v->n_rows > v->n_nodes ? v->n_rows : v->n_nodes;
	uint64_t *ids = malloc(((size_t)most + 1) * sizeof *ids);
	if (!ids)
		return ww_fail(err, WW_ERR_NOMEM, "out of memory");
	for (uint32_t i = 0; i < v->n_rows; i++)
		ids[i] = v->rows[i].id;
	ww_status status = check_ids(ids, v->n_rows, "rows", err);
	if (status == WW_OK) {
		for (uint32_t i = 0; i < v->n_nodes; i++)
			ids[i] = v->nodes[i].id;
		status = check_ids(ids, v->n_nodes, "nodes", err);
	}
	free(ids);
	return status;
}

static ww_status check_whole(const struct ww_config *v, struct ww_error *err)
{
	ww_status status = msg_check_duration(v->valid_for_us, "configuration: valid_for_us", err);
	if (status == WW_OK)
		status = msg_check_duration(v->settle_us, "configuration: settle_us", err);
	if (status != WW_OK)
		return status;
	if (v->valid_for_us == 0)
		return ww_fail(err, WW_ERR_RANGE, "configuration: valid_for_us is 0; must be above 0");
	if (v->objective > WW_OBJECTIVE_MAXMIN || v->after >= WW_N_AFTERS)
		return ww_fail(err, WW_ERR_RANGE,
		               "configuration: objective is %u and after is %u; must be 0..%d and 0..%d",
		               (unsigned)v->objective, v->after, WW_OBJECTIVE_MAXMIN, WW_N_AFTERS - 1);
	if (v->trim >= WW_N_TRIMS)
		return ww_fail(err, WW_ERR_RANGE, "configuration: trim is %u; must be 0..%d", v->trim, WW_N_TRIMS - 1);
	if (v->n_rows > WW_CONFIG_ROWS_MAX || v->n_nodes > WW_CONFIG_NODES_MAX)
		return ww_fail(err, WW_ERR_RANGE, "configuration: has %u rows and %u nodes; must be at most %d and %d",
		               (unsigned)v->n_rows, (unsigned)v->n_nodes, WW_CONFIG_ROWS_MAX, WW_CONFIG_NODES_MAX);
	return WW_OK;
}

ww_status ww_check_config(const struct ww_config *v, struct ww_error *err)
{
	ww_status status = check_whole(v, err);
	for (uint32_t i = 0; status == WW_OK && i < v->n_rows; i++)
		status = check_row(&v->rows[i], err);
	for (uint32_t i = 0; status == WW_OK && i < v->n_nodes; i++)
		status = check_node(&v->nodes[i], v->n_rows, err);
	return status == WW_OK ? check_all_ids(v, err) : status;
}
