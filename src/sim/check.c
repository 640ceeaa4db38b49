/* SPDX-License-Identifier: Apache-2.0 */
/* What a plant is made from, checked to the last number: the text names the thing and its field. */
#include "sim/sim_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_GPUS (1u << 24)
#define MOST_NODE_GPUS 1024u
#define MOST_W 1e9
#define MOST_S 86400.0
#define MOST_US (INT64_C(1) << 53)

/* The thing that is being checked. */
struct thing {
	const char *what;
	size_t i;
	struct ww_error *err;
};

static ww_status in_range(const struct thing *t, const char *field, double v, double lo, double hi)
{
	if (v >= lo && v <= hi)
		return WW_OK;
	return ww_fail(t->err, WW_ERR_RANGE, "%s %zu: %s is %g; give a number from %g to %g", t->what, t->i, field, v,
	               lo, hi);
}

static ww_status in_time(const struct thing *t, const char *field, int64_t v, int64_t lo, int64_t hi)
{
	if (v >= lo && v <= hi)
		return WW_OK;
	return ww_fail(t->err, WW_ERR_RANGE, "%s %zu: %s is %lld us; give %lld to %lld", t->what, t->i, field,
	               (long long)v, (long long)lo, (long long)hi);
}

struct field {
	const char *name;
	double v, lo, hi;
};

static ww_status all_in_range(const struct thing *t, const struct field *fields, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		ww_status status = in_range(t, fields[i].name, fields[i].v, fields[i].lo, fields[i].hi);
		if (status)
			return status;
	}
	return WW_OK;
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

static ww_status check_board(const struct ww_sim_board *b, struct ww_error *err)
{
	const struct thing t = {"board", 0, err};
	const struct field fields[] = {
		{"min_w", b->min_w, 1, MOST_W},
		{"max_w", b->max_w, b->min_w, MOST_W},
		{"default_w", b->default_w, b->min_w, b->max_w},
		{"idle_w", b->idle_w, 0, b->max_w},
		{"static_w", b->static_w, 0, 2000},
		{"clock_w", b->clock_w, 0, 1e5},
		{"sm_w", b->sm_w, 0, 1e5},
		{"tensor_w", b->tensor_w, 0, 1e5},
		{"dram_w", b->dram_w, 0, 1e5},
		{"nvlink_w", b->nvlink_w, 0, 1e5},
		{"sag", b->sag, 0, 1},
		{"v_least", b->v_least, 0.01, 1},
		{"x_least", b->x_least, 0.01, 0.99},
		{"dead_us", b->dead_us, 0, 1e7},
		{"settle_us", b->settle_us, 0, 1e7},
		{"sensor_noise_frac", b->sensor_noise_frac, 0, 0.25},
		{"chip_sd", b->chip_sd, 0, 0.5},
		{"gain_sd", b->gain_sd, 0, 0.1},
		{"model_gain_frac", b->model_gain_frac, -0.1, 0.1},
	};
	return all_in_range(&t, fields, COUNT(fields));
}

static ww_status check_nodes(const struct ww_plant_spec *s, uint32_t *n_gpus, struct ww_error *err)
{
	*n_gpus = 0;
	if (s->n_nodes == 0)
		return ww_fail(err, WW_ERR_INVALID, "the plant has no node; give at least one");
	for (uint32_t n = 0; n < s->n_nodes; n++) {
		const struct ww_sim_node *node = &s->nodes[n];
		const struct thing t = {"node", n, err};
		double boot = isnan(node->boot_cap_w) ? s->board.min_w : node->boot_cap_w;
		const struct field fields[] = {
			{"n_gpus", node->n_gpus, 0, MOST_NODE_GPUS},
			{"host_w", node->host_w, 0, MOST_W},
			{"follow", node->follow, 0, 10},
			{"lag_s", node->lag_s, 0, MOST_S},
			{"boot_cap_w", boot, s->board.min_w, s->board.max_w},
		};
		ww_status status = all_in_range(&t, fields, COUNT(fields));
		if (status)
			return status;
		*n_gpus += node->n_gpus;
		if (*n_gpus > MOST_GPUS)
			return ww_fail(err, WW_ERR_RANGE, "node %u: the plant has more than %u GPUs; give fewer", n,
			               MOST_GPUS);
	}
	return WW_OK;
}

/* ---- Rows ------------------------------------------------------------------------------------------------------------- */

static ww_status check_loads(const struct ww_plant_spec *s, uint32_t r, uint32_t *seen_on, struct ww_error *err)
{
	const struct ww_sim_row *row = &s->rows[r];
	const struct thing t = {"row", r, err};
	if (row->n_loads > s->n_nodes)
		return ww_fail(err, WW_ERR_INVALID,
		               "row %u: has %zu loads but the plant has %u nodes; give each node once", r, row->n_loads,
		               s->n_nodes);
	for (size_t i = 0; i < row->n_loads; i++) {
		uint32_t node = row->loads[i].node;
		if (node >= s->n_nodes)
			return ww_fail(err, WW_ERR_RANGE, "row %u: load %zu names node %u of %u; nodes count from 0", r,
			               i, node, s->n_nodes);
		if (seen_on[node] == r + 1)
			return ww_fail(err, WW_ERR_INVALID, "row %u: carries node %u twice; give one load with the sum",
			               r, node);
		seen_on[node] = r + 1;
		ww_status status = in_range(&t, "frac of a load", row->loads[i].frac, 0, 1);
		if (status)
			return status;
	}
	return WW_OK;
}

static ww_status check_rows(const struct ww_plant_spec *s, struct ww_error *err)
{
	uint32_t *seen_on = calloc(s->n_nodes, sizeof *seen_on);
	ww_status status = seen_on ? WW_OK : ww_fail(err, WW_ERR_NOMEM, "out of memory");
	for (uint32_t r = 0; r < s->n_rows && !status; r++) {
		const struct ww_sim_row *row = &s->rows[r];
		const struct thing t = {"row", r, err};
		const struct field fields[] = {
			{"other_w", row->other_w, 0, MOST_W},
			{"cooling", row->cooling, 0, 10},
			{"cooling_lag_s", row->cooling_lag_s, 0, MOST_S},
			{"meter_noise_frac", row->meter_noise_frac, 0, 0.25},
		};
		status = all_in_range(&t, fields, COUNT(fields));
		if (!status)
			status = check_loads(s, r, seen_on, err);
	}
	free(seen_on);
	return status;
}

/* ---- Jobs ---------------------------------------------------------------------------------------------------------------- */

static ww_status check_points(const struct ww_sim_job *job, const struct thing *t)
{
	if (job->n_points == 0 || job->n_points > 10000)
		return ww_fail(t->err, WW_ERR_INVALID, "job %zu: has %zu measured points; give 1 to 10000", t->i,
		               job->n_points);
	for (size_t i = 0; i < job->n_points; i++) {
		const struct field fields[] = {
			{"cap_w of a point", job->points[i].cap_w, 1e-3, MOST_W},
			{"power_w of a point", job->points[i].power_w, 1e-3, MOST_W},
			{"throughput of a point", job->points[i].throughput, 1e-9, 1e18},
		};
		ww_status status = all_in_range(t, fields, COUNT(fields));
		if (status)
			return status;
	}
	return WW_OK;
}

static ww_status check_physics(const struct ww_sim_physics *p, const struct thing *t)
{
	const struct field fields[] = {
		{"phi", p->phi, 0, 1},
		{"h", p->h, 0, 1 - p->phi},
		{"sm", p->sm, 0, 1},
		{"tensor", p->tensor, 0, 1},
		{"dram", p->dram, 0, 1},
		{"nvlink", p->nvlink, 0, 1},
		{"x1_tps", p->x1_tps, 1e-9, 1e18},
	};
	return all_in_range(t, fields, COUNT(fields));
}

static ww_status check_pause(const struct ww_sim_pause *pause, const char *name, const struct thing *t)
{
	if (pause->every_us == 0)
		return WW_OK;
	const struct thing in = {name, t->i, t->err};
	ww_status status = in_time(&in, "every_us", pause->every_us, 1, MOST_US);
	if (!status)
		status = in_time(&in, "for_us", pause->for_us, 1, pause->every_us);
	if (!status)
		status = in_time(&in, "first_us", pause->first_us, -MOST_US, MOST_US);
	return status ? status : in_range(&in, "power_w", pause->power_w, 0, MOST_W);
}

static ww_status check_job(const struct ww_sim_job *job, const struct thing *t, uint32_t n_gpus)
{
	if (job->n_gpus == 0 || job->n_gpus > n_gpus)
		return ww_fail(t->err, WW_ERR_RANGE, "job %zu: has %u GPUs; give 1 to %u, as the plant has", t->i,
		               job->n_gpus, n_gpus);
	for (uint32_t i = 0; i < job->n_gpus; i++)
		if (job->gpus[i] >= n_gpus)
			return ww_fail(t->err, WW_ERR_RANGE, "job %zu: names GPU %u of %u; GPUs count from 0", t->i,
			               job->gpus[i], n_gpus);
	ww_status status = in_time(t, "start_us", job->start_us, -MOST_US, MOST_US);
	if (!status && job->end_us <= job->start_us)
		status = ww_fail(t->err, WW_ERR_INVALID, "job %zu: ends at %lld us, not after its start at %lld us",
		                 t->i, (long long)job->end_us, (long long)job->start_us);
	if (!status)
		status = in_range(t, "jitter_frac", job->jitter_frac, 0, 0.25);
	if (!status)
		status = check_pause(&job->checkpoint, "checkpoint of job", t);
	if (!status)
		status = check_pause(&job->evaluation, "evaluation of job", t);
	if (status)
		return status;
	return job->points ? check_points(job, t) : check_physics(&job->physics, t);
}

/* A job's hold on a GPU. */
struct hold {
	uint32_t gpu, job;
	int64_t start_us, end_us;
};

static int by_gpu_and_start(const void *a, const void *b)
{
	const struct hold *p = a, *q = b;
	if (p->gpu != q->gpu)
		return p->gpu > q->gpu ? 1 : -1;
	if (p->start_us != q->start_us)
		return p->start_us > q->start_us ? 1 : -1;
	return (p->job > q->job) - (p->job < q->job);
}

static ww_status find_clash(const struct hold *h, size_t n, struct ww_error *err)
{
	for (size_t i = 1; i < n; i++) {
		if (h[i].gpu != h[i - 1].gpu || h[i].start_us >= h[i - 1].end_us)
			continue;
		if (h[i].job == h[i - 1].job)
			return ww_fail(err, WW_ERR_INVALID, "job %u: names GPU %u twice; give it once", h[i].job,
			               h[i].gpu);
		return ww_fail(err, WW_ERR_INVALID,
		               "jobs %u and %u are on GPU %u at the same time; a GPU carries one job at a time",
		               h[i - 1].job, h[i].job, h[i].gpu);
	}
	return WW_OK;
}

static ww_status check_holds(const struct ww_plant_spec *s, struct ww_error *err)
{
	size_t n = 0, k = 0;
	for (uint32_t j = 0; j < s->n_jobs; j++)
		n += s->jobs[j].n_gpus;
	if (n > UINT32_MAX)
		return ww_fail(err, WW_ERR_RANGE, "the jobs name %zu GPUs together; give at most 2^32 - 1", n);
	struct hold *h = malloc((n + 1) * sizeof *h);
	if (!h)
		return ww_fail(err, WW_ERR_NOMEM, "out of memory");
	for (uint32_t j = 0; j < s->n_jobs; j++)
		for (uint32_t i = 0; i < s->jobs[j].n_gpus; i++)
			h[k++] = (struct hold){s->jobs[j].gpus[i], j, s->jobs[j].start_us, s->jobs[j].end_us};
	qsort(h, n, sizeof *h, by_gpu_and_start);
	ww_status status = find_clash(h, n, err);
	free(h);
	return status;
}

ww_status sim_check_spec(const struct ww_plant_spec *s, struct ww_error *err)
{
	uint32_t n_gpus;
	ww_status status = check_board(&s->board, err);
	if (!status)
		status = check_nodes(s, &n_gpus, err);
	if (!status)
		status = check_rows(s, err);
	for (uint32_t j = 0; j < s->n_jobs && !status; j++) {
		const struct thing t = {"job", j, err};
		status = check_job(&s->jobs[j], &t, n_gpus);
	}
	return status ? status : check_holds(s, err);
}
