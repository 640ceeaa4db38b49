/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The allocator's problem and its promises: what each job may be asked for (floors, lowest powers, relaxed only where a
 * row forces it), the equal cut that every division is held against, and how far each curve is trusted. The division
 * itself is price.c.
 *
 * Every row asks for a least sum of cuts, so deeper cuts never break a row: a row is feasible if all its jobs at their
 * deepest meet it, and all repairs go downwards in power only.
 *
 * What a curve does not know for sure is replaced by a curve whose optimum is the equal cut: job j uses
 *
 *     s_j l'_j(d) + (1 - s_j) ybar (b_j / gain_j) d / e_j
 *
 * with e_j its equal cut, b_j its baseline power, y_j = gain_j l'_j(e_j) / b_j its marginal per watt there, v_j the
 * variance of y_j, ybar the mean of y and the trust s_j = var y / (var y + v_j). Blending curves, not cuts, keeps every
 * row and one price per row.
 */
#include "core/allocate_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define N_TIERS 4
#define ROUNDING 1e-12 /* of a row's size */

const char *ww_outcome_name(enum ww_outcome outcome)
{
	static const char *const names[] = {"optimal", "infeasible", "unchanged"};
	return names[outcome];
}

const char *ww_objective_name(enum ww_objective objective)
{
	static const char *const names[] = {"relative", "tokens", "log", "maxmin"};
	return names[objective];
}

ww_status ww_alloc_create(ww_alloc **out, struct ww_error *err)
{
	ww_alloc *a = calloc(1, sizeof *a);
	if (!a)
		return ww_fail(err, WW_ERR_NOMEM, "out of memory");
	*out = a;
	return WW_OK;
}

static void release(ww_alloc *a)
{
	free(a->jobs);
	free(a->rows);
	free(a->loads);
	free(a->by_row);
	free(a->small_first);
	free(a->price);
	free(a->cut);
	free(a->shares);
	free(a->results);
}

void ww_alloc_destroy(ww_alloc *a)
{
	if (!a)
		return;
	release(a);
	free(a);
}

/* ---- Checking a problem ------------------------------------------------------------------------------------------- */

static ww_status check_curve(const struct ww_alloc_job *j, struct ww_error *err)
{
	unsigned long long id = j->id;
	const struct ww_curve *c = j->curve;
	if (!c || c->n < 2 || c->n > WW_MAX_KNOTS || !(c->p0_w > 0) || !isfinite(c->p0_w) || !(c->t0_tps > 0))
		return ww_fail(err, WW_ERR_RANGE, "job %llu: has no curve", id);
	if (!(c->k[0].cut_frac == 0 && c->k[0].loss_frac == 0 && c->k[0].slope >= 0))
		return ww_fail(err, WW_ERR_RANGE, "job %llu: its curve must start at cut 0, loss 0, slope 0 or more",
		               id);
	for (uint32_t i = 1; i < c->n; i++) {
		const struct ww_knot *p = &c->k[i - 1], *q = &c->k[i];
		if (!(q->cut_frac > p->cut_frac && q->slope > p->slope && isfinite(q->slope)))
			return ww_fail(err, WW_ERR_RANGE,
			               "job %llu: cut and slope of its curve must rise from knot to knot", id);
	}
	return WW_OK;
}

static ww_status check_job(const struct ww_alloc_job *j, size_t n_rows, struct ww_error *err)
{
	unsigned long long id = j->id;
	if (j->gpus == 0)
		return ww_fail(err, WW_ERR_RANGE, "job %llu: gpus is 0, must be at least 1", id);
	if (j->tier < 0 || j->tier >= N_TIERS)
		return ww_fail(err, WW_ERR_RANGE, "job %llu: tier is %d, must be 0..3", id, j->tier);
	if (!(isfinite(j->weight) && j->weight > 0))
		return ww_fail(err, WW_ERR_RANGE, "job %llu: weight is %g, must be above 0", id, j->weight);
	if (!(j->floor_frac >= 0 && j->floor_frac <= 1))
		return ww_fail(err, WW_ERR_RANGE, "job %llu: floor_frac is %g, must be in 0..1", id, j->floor_frac);
	if (!(isfinite(j->min_w) && j->min_w >= 0))
		return ww_fail(err, WW_ERR_RANGE, "job %llu: min_w is %g, must be 0 or more", id, j->min_w);
	if (!(j->max_w >= 0) || (j->max_w > 0 && j->max_w < j->min_w))
		return ww_fail(err, WW_ERR_RANGE, "job %llu: max_w is %g, must be 0 or at least min_w", id, j->max_w);
	for (uint32_t i = 0; i < j->n_rows; i++) {
		if (!j->rows || j->rows[i].row >= n_rows)
			return ww_fail(err, WW_ERR_RANGE, "job %llu: is placed on a row that does not exist", id);
		if (!(isfinite(j->rows[i].gpus) && j->rows[i].gpus > 0))
			return ww_fail(err, WW_ERR_RANGE, "job %llu: its gpus on a row must be above 0", id);
		for (uint32_t k = 0; k < i; k++)
			if (j->rows[k].row == j->rows[i].row)
				return ww_fail(err, WW_ERR_INVALID, "job %llu: names row %u twice; add its gpus up", id,
				               (unsigned)j->rows[i].row);
	}
	return check_curve(j, err);
}

static ww_status check_problem(const struct ww_alloc_problem *p, struct ww_error *err)
{
	if (isnan(p->budget_w) || p->budget_w == -INFINITY)
		return ww_fail(err, WW_ERR_RANGE, "budget_w is %g: must be a number of watts, or INFINITY",
		               p->budget_w);
	if (p->objective < WW_OBJECTIVE_RELATIVE || p->objective > WW_OBJECTIVE_MAXMIN)
		return ww_fail(err, WW_ERR_RANGE, "objective %d does not exist", (int)p->objective);
	if (p->n_jobs >= UINT32_MAX || p->n_rows >= UINT32_MAX)
		return ww_fail(err, WW_ERR_RANGE, "more than 4 billion jobs or rows");
	for (size_t r = 0; r < p->n_rows; r++)
		if (isnan(p->rows[r].budget_w) || p->rows[r].budget_w == -INFINITY)
			return ww_fail(err, WW_ERR_RANGE, "row %zu: budget_w is %g", r, p->rows[r].budget_w);
	for (size_t i = 0; i < p->n_jobs; i++) {
		ww_status status = check_job(&p->jobs[i], p->n_rows, err);
		if (status)
			return status;
	}
	return WW_OK;
}

/* ---- Room ----------------------------------------------------------------------------------------------------------- */

#define ROW_ARRAYS 8 /* price, gradient, work */
#define JOB_ARRAYS 4

static void name_arrays(ww_alloc *a)
{
	size_t rows = a->room_rows, jobs = a->room_jobs;
	a->gradient = a->price + rows;
	for (size_t i = 0; i < 6; i++)
		a->work[i] = a->price + (2 + i) * rows;
	a->bend = a->cut + jobs;
	a->pull = a->cut + 2 * jobs;
	a->plan = a->cut + 3 * jobs;
}

/* Room for a larger problem; the allocator is unchanged when memory runs out. Old prices are forgotten. */
static ww_status grow(ww_alloc *a, size_t jobs, size_t rows, size_t loads, struct ww_error *err)
{
	if (jobs <= a->room_jobs && rows <= a->room_rows && loads <= a->room_loads)
		return WW_OK;
	ww_alloc b = {.room_jobs = jobs > a->room_jobs ? jobs : a->room_jobs,
	              .room_rows = rows > a->room_rows ? rows : a->room_rows,
	              .room_loads = loads > a->room_loads ? loads : a->room_loads};
	b.jobs = calloc(b.room_jobs + 1, sizeof *b.jobs);
	b.rows = calloc(b.room_rows + 1, sizeof *b.rows);
	b.loads = calloc(b.room_loads + 1, sizeof *b.loads);
	b.by_row = calloc(b.room_loads + 1, sizeof *b.by_row);
	b.small_first = calloc(b.room_rows + 1, sizeof *b.small_first);
	b.price = calloc(ROW_ARRAYS * b.room_rows + 1, sizeof *b.price);
	b.cut = calloc(JOB_ARRAYS * b.room_jobs + 1, sizeof *b.cut);
	b.shares = calloc(b.room_jobs + 1, sizeof *b.shares);
	b.results = calloc(b.room_rows + 1, sizeof *b.results);
	if (!b.jobs || !b.rows || !b.loads || !b.by_row || !b.small_first || !b.price || !b.cut || !b.shares ||
	    !b.results) {
		release(&b);
		return ww_fail(err, WW_ERR_NOMEM, "out of memory for %zu jobs", jobs);
	}
	name_arrays(&b);
	release(a);
	*a = b;
	return WW_OK;
}

/* ---- Taking a problem in ------------------------------------------------------------------------------------------ */

static struct alloc_job take_job(const struct ww_alloc_job *in, size_t index, enum ww_objective objective)
{
	struct alloc_job j = {.id = in->id,
	                      .index = index,
	                      .tier = in->tier,
	                      .weight = in->weight,
	                      .floor_frac = in->floor_frac,
	                      .curve = *in->curve};
	double p0_w = in->curve->p0_w;
	j.baseline_w = in->gpus * p0_w;
	j.gain = objective == WW_OBJECTIVE_TOKENS ? in->weight * in->curve->t0_tps : in->weight;
	j.lowest = fmin(fmax(0, 1 - in->min_w / p0_w), 1);
	if (in->max_w > 0)
		j.lo = fmin(fmax(0, 1 - in->max_w / p0_w), j.lowest);
	struct ww_curve whole = *in->curve;
	whole.max_cut_frac = 1;
	j.reach = in->floor_frac > 0 ? fmin(j.lowest, ww_curve_cut_at_loss(&whole, 1 - in->floor_frac)) : j.lowest;
	j.reach = fmax(j.lo, j.reach);
	return j;
}

static int by_id(const void *a, const void *b)
{
	const struct alloc_job *p = a, *q = b;
	return (p->id > q->id) - (p->id < q->id);
}

static void take_jobs(ww_alloc *a, const struct ww_alloc_problem *p)
{
	a->n = p->n_jobs;
	a->n_loads = 0;
	for (size_t i = 0; i < a->n; i++)
		a->jobs[i] = take_job(&p->jobs[i], i, p->objective);
	qsort(a->jobs, a->n, sizeof *a->jobs, by_id);
	for (size_t i = 0; i < a->n; i++) {
		struct alloc_job *j = &a->jobs[i];
		const struct ww_alloc_job *in = &p->jobs[j->index];
		j->first = a->n_loads;
		for (uint32_t k = 0; k < in->n_rows; k++)
			a->loads[a->n_loads++] =
				(struct load){in->rows[k].row, (uint32_t)i, in->rows[k].gpus * in->curve->p0_w};
		a->loads[a->n_loads++] = (struct load){(uint32_t)p->n_rows, (uint32_t)i, j->baseline_w};
		j->n_loads = a->n_loads - j->first;
	}
}

static int by_size(const void *a, const void *b, void *context)
{
	const struct alloc_row *rows = context;
	uint32_t p = *(const uint32_t *)a, q = *(const uint32_t *)b;
	if (rows[p].size_w != rows[q].size_w)
		return rows[p].size_w > rows[q].size_w ? 1 : -1;
	return (p > q) - (p < q);
}

/* Counts the objective in its largest gain, so that neither weights nor units of tokens matter to the arithmetic. */
static void scale_gains(ww_alloc *a)
{
	a->unit = 0;
	for (size_t i = 0; i < a->n; i++)
		a->unit = fmax(a->unit, a->jobs[i].gain);
	for (size_t i = 0; i < a->n; i++)
		a->jobs[i].gain /= a->unit;
}

static void take_rows(ww_alloc *a, const struct ww_alloc_problem *p)
{
	a->n_rows = p->n_rows + 1;
	memset(a->rows, 0, a->n_rows * sizeof *a->rows);
	for (size_t i = 0; i < a->n_loads; i++) {
		a->rows[a->loads[i].row].n_loads++;
		a->rows[a->loads[i].row].size_w += a->loads[i].watts;
	}
	for (size_t r = 0, first = 0; r < a->n_rows; first += a->rows[r++].n_loads) {
		double budget = r < p->n_rows ? p->rows[r].budget_w : p->budget_w;
		a->rows[r].first = first;
		a->rows[r].need_w = a->rows[r].size_w - budget;
	}
	for (size_t i = 0; i < a->n_loads; i++)
		a->by_row[a->rows[a->loads[i].row].first++] = a->loads[i];
	for (size_t r = 0; r < a->n_rows; r++) {
		a->rows[r].first -= a->rows[r].n_loads;
		a->small_first[r] = (uint32_t)r;
	}
	qsort_r(a->small_first, a->n_rows, sizeof *a->small_first, by_size, a->rows);
}

/* ---- Promises: floors are relaxed only where a row forces it --------------------------------------------------------- */

static double watts_at(const ww_alloc *a, const struct alloc_row *row, bool at_lowest)
{
	double sum = 0;
	for (size_t i = row->first; i < row->first + row->n_loads; i++) {
		const struct alloc_job *j = &a->jobs[a->by_row[i].job];
		sum += a->by_row[i].watts * (at_lowest ? j->lowest : j->reach);
	}
	return sum;
}

static double clear_rounding(double watts, const struct alloc_row *row)
{
	return watts > ROUNDING * row->size_w ? watts : 0;
}

/* Moves the floors of one tier's jobs on the row towards their lowest power by the share that the row still needs. */
static double relax_tier(ww_alloc *a, const struct alloc_row *row, int tier, double short_w)
{
	double room = 0;
	for (size_t i = row->first; i < row->first + row->n_loads; i++) {
		const struct alloc_job *j = &a->jobs[a->by_row[i].job];
		if (j->tier == tier)
			room += a->by_row[i].watts * (j->lowest - j->reach);
	}
	double share = room > 0 ? fmin(1, short_w / room) : 0;
	for (size_t i = row->first; share > 0 && i < row->first + row->n_loads; i++) {
		struct alloc_job *j = &a->jobs[a->by_row[i].job];
		if (j->tier == tier)
			j->reach = share < 1 ? j->reach + share * (j->lowest - j->reach) : j->lowest;
	}
	return fmax(0, short_w - room);
}

static void relax_floors(ww_alloc *a)
{
	for (size_t r = 0; r < a->n_rows; r++) {
		struct alloc_row *row = &a->rows[r];
		row->result = (struct ww_alloc_row_result){0};
		row->result.missing_w = clear_rounding(row->need_w - watts_at(a, row, false), row);
		row->result.over_w = clear_rounding(row->need_w - watts_at(a, row, true), row);
		row->need_w -= row->result.over_w;
		if (row->result.missing_w > 0)
			a->summary.outcome = WW_OUTCOME_INFEASIBLE;
	}
	for (size_t i = 0; i < a->n_rows; i++) {
		struct alloc_row *row = &a->rows[a->small_first[i]];
		double short_w = clear_rounding(row->need_w - watts_at(a, row, false), row);
		for (int tier = N_TIERS - 1; tier >= 0 && short_w > 0; tier--)
			short_w = relax_tier(a, row, tier, short_w);
	}
}

/* ---- The equal cut -------------------------------------------------------------------------------------------------- */

struct row_view {
	const ww_alloc *a;
	const struct alloc_row *row;
};

static double equal_cut_at(const struct alloc_job *j, double x)
{
	return fmax(j->equal, fmin(x, j->reach));
}

static double equal_watts(const void *context, double x)
{
	const struct row_view *v = context;
	double sum = 0;
	for (size_t i = v->row->first; i < v->row->first + v->row->n_loads; i++)
		sum += v->a->by_row[i].watts * equal_cut_at(&v->a->jobs[v->a->by_row[i].job], x);
	return sum;
}

/* Rows from small to large: each raises its jobs to the one cut that meets it, so a row inside is met before the row
 * around it asks for the rest. */
static void solve_equal(ww_alloc *a)
{
	for (size_t i = 0; i < a->n; i++)
		a->jobs[i].equal = a->jobs[i].lo;
	for (size_t i = 0; i < a->n_rows; i++) {
		struct row_view view = {a, &a->rows[a->small_first[i]]};
		if (view.row->need_w <= 0 || equal_watts(&view, 0) >= view.row->need_w)
			continue;
		double x = solve_rising(equal_watts, &view, 0, 1, view.row->need_w);
		for (size_t k = view.row->first; k < view.row->first + view.row->n_loads; k++) {
			struct alloc_job *j = &a->jobs[a->by_row[k].job];
			j->equal = equal_cut_at(j, x);
		}
	}
}

static void set_bounds(ww_alloc *a, bool explore)
{
	double deepest = 0;
	for (size_t i = 0; i < a->n; i++) {
		struct alloc_job *j = &a->jobs[i];
		j->box = explore ? j->reach : fmin(j->reach, fmax(j->curve.max_cut_frac, j->equal));
		j->hi = fmax(j->box, j->equal);
		j->cut = j->equal;
		deepest = fmax(deepest, j->equal);
	}
	if (deepest == 0 && a->summary.outcome == WW_OUTCOME_OPTIMAL)
		a->summary.outcome = WW_OUTCOME_UNCHANGED;
}

/* ---- Trust in the curves ---------------------------------------------------------------------------------------------- */

static double per_watt(const struct alloc_job *j)
{
	return j->gain / j->baseline_w;
}

/* Mean and variance over jobs of the marginal at the equal cut; jobs that no cut touches take no part. */
static void marginal_spread(const ww_alloc *a, double *mean, double *variance)
{
	double n = 0, square = 0;
	*mean = 0;
	for (size_t i = 0; i < a->n; i++) {
		const struct alloc_job *j = &a->jobs[i];
		if (j->equal <= 0)
			continue;
		double y = per_watt(j) * ww_curve_slope(&j->curve, j->equal), off = y - *mean;
		*mean += off / ++n;
		square += off * (y - *mean);
	}
	*variance = n > 0 ? square / n : 0;
}

static void blend(struct alloc_job *j, double mean)
{
	struct pieces *p = &j->pieces;
	double s = j->trust, pull = j->equal > 0 ? (1 - s) * mean / per_watt(j) / j->equal : 0;
	p->n = j->curve.n;
	p->hint = 0;
	for (uint32_t i = 0; i < p->n; i++) {
		double cut = j->curve.k[i].cut_frac;
		p->cut[i] = cut;
		p->slope[i] = s * j->curve.k[i].slope + pull * cut;
		p->loss[i] = i ? p->loss[i - 1] + (cut - p->cut[i - 1]) * (p->slope[i] + p->slope[i - 1]) / 2 : 0;
	}
}

static void set_trust(ww_alloc *a)
{
	double mean, variance, trusted = 0, watts = 0;
	marginal_spread(a, &mean, &variance);
	for (size_t i = 0; i < a->n; i++) {
		struct alloc_job *j = &a->jobs[i];
		double unit = per_watt(j), error = unit * unit * ww_curve_slope_var(&j->curve, j->equal);
		j->trust = variance + error > 0 ? variance / (variance + error) : 1;
		if (j->equal <= 0 || mean <= 0)
			j->trust = 1;
		blend(j, mean);
		trusted += j->trust * j->baseline_w;
		watts += j->baseline_w;
	}
	a->summary.shrink = watts > 0 ? trusted / watts : 1;
}

/* ---- Results ------------------------------------------------------------------------------------------------------------ */

static void publish_row(const ww_alloc *a, size_t r)
{
	struct alloc_row *row = &a->rows[r];
	double cut_w = 0;
	for (size_t i = row->first; i < row->first + row->n_loads; i++)
		cut_w += a->by_row[i].watts * a->jobs[a->by_row[i].job].cut;
	row->result.power_w = row->size_w - cut_w;
	row->result.price = 0;
	if (a->started)
		row->result.price = a->unit * (row->priced ? a->price[r] : single_row_price(a, row));
	a->results[r] = row->result;
}

static double kept_at(const struct alloc_job *j, double cut)
{
	return fmax(0, 1 - ww_curve_loss(&j->curve, cut));
}

static void publish(ww_alloc *a)
{
	for (size_t i = 0; i < a->n; i++) {
		const struct alloc_job *j = &a->jobs[i];
		a->shares[j->index] = (struct ww_alloc_share){.cut_frac = j->cut,
		                                              .throughput_frac = kept_at(j, j->cut),
		                                              .equal_cut_frac = j->equal,
		                                              .box_cut_frac = j->box,
		                                              .floor_frac = fmin(j->floor_frac, kept_at(j, j->reach)),
		                                              .trust = j->trust};
	}
	for (size_t r = 0; r < a->n_rows; r++)
		publish_row(a, r);
}

/* ---- Interface ------------------------------------------------------------------------------------------------------ */

static int by_number(const void *a, const void *b)
{
	uint64_t p = *(const uint64_t *)a, q = *(const uint64_t *)b;
	return (p > q) - (p < q);
}

static ww_status check_ids(const struct ww_alloc_problem *p, struct ww_error *err)
{
	ww_status status = WW_OK;
	uint64_t *ids = malloc((p->n_jobs + 1) * sizeof *ids);
	if (!ids)
		return ww_fail(err, WW_ERR_NOMEM, "out of memory for %zu jobs", p->n_jobs);
	for (size_t i = 0; i < p->n_jobs; i++)
		ids[i] = p->jobs[i].id;
	qsort(ids, p->n_jobs, sizeof *ids, by_number);
	for (size_t i = 1; i < p->n_jobs && !status; i++)
		if (ids[i] == ids[i - 1])
			status = ww_fail(err, WW_ERR_INVALID, "job %llu is there twice", (unsigned long long)ids[i]);
	free(ids);
	return status;
}

ww_status ww_alloc_set(ww_alloc *a, const struct ww_alloc_problem *p, struct ww_error *err)
{
	size_t n_loads = p->n_jobs;
	ww_status status = check_problem(p, err);
	for (size_t i = 0; !status && i < p->n_jobs; i++)
		n_loads += p->jobs[i].n_rows;
	if (!status)
		status = check_ids(p, err);
	if (!status)
		status = grow(a, p->n_jobs, p->n_rows + 1, n_loads, err);
	if (status)
		return status;
	if (a->objective != p->objective)
		a->last_rows = 0;
	a->objective = p->objective;
	a->summary = (struct ww_alloc_summary){.outcome = WW_OUTCOME_OPTIMAL};
	a->started = false;
	take_jobs(a, p);
	scale_gains(a);
	take_rows(a, p);
	relax_floors(a);
	solve_equal(a);
	set_bounds(a, p->explore);
	set_trust(a);
	price_summary(a);
	publish(a);
	return WW_OK;
}

int ww_alloc_run(ww_alloc *a, unsigned max_sweeps)
{
	unsigned done = 0;
	if (a->n_rows == 0) /* nothing was set yet */
		return 0;
	if (max_sweeps > 0 && !a->started)
		price_start(a);
	while (done < max_sweeps && price_sweep(a))
		done++;
	a->summary.sweeps += done;
	price_summary(a);
	publish(a);
	return (int)done;
}

const struct ww_alloc_share *ww_alloc_shares(const ww_alloc *a)
{
	return a->shares;
}

const struct ww_alloc_row_result *ww_alloc_rows(const ww_alloc *a)
{
	return a->results;
}

struct ww_alloc_summary ww_alloc_result(const ww_alloc *a)
{
	return a->summary;
}
