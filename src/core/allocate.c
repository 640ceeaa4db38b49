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
 * variance of y_j, ybar the mean of y and the trust s_j = t / (t + v_j), t the spread of y that is no error. Blending
 * curves, not cuts, keeps every row and one price per row.
 */
#include "core/allocate_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define N_TIERS 4
#define MOST_SLOPE 1e12 /* of a curve that makes sense */
#define MOST_CUT 1e3    /* of its last knot */
#define ROUNDING 1e-12  /* of a row's size */

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
	free(a->places);
	free(a->jobs);
	free(a->curves);
	free(a->answers);
	free(a->rows);
	free(a->loads);
	free(a->shares_in);
	free(a->by_row);
	free(a->small_first);
	free(a->price);
	free(a->cut);
	free(a->curvature.column);
	free(a->curvature.value);
	free(a->curvature.used);
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

/* So far from the ends of a double that no product or ratio of a few such numbers leaves it. */
static bool is_sound(double v)
{
	return v >= 1e-30 && v <= 1e30;
}

static ww_status check_curve(const struct ww_alloc_job *j, struct ww_error *err)
{
	unsigned long long id = j->id;
	const struct ww_curve *c = j->curve;
	if (!c || c->n < 2 || c->n > WW_MAX_KNOTS || !is_sound(c->p0_w) || !is_sound(c->t0_tps))
		return ww_fail(err, WW_ERR_RANGE, "job %llu: has no curve", id);
	if (!(c->max_cut_frac >= 0 && c->max_cut_frac <= 1))
		return ww_fail(err, WW_ERR_RANGE, "job %llu: max_cut_frac of its curve is %g, must be in 0..1", id,
		               c->max_cut_frac);
	if (!(c->var_a >= 0 && c->var_b >= 0 && isfinite(c->var_a) && isfinite(c->var_b) && isfinite(c->cov_ab)))
		return ww_fail(err, WW_ERR_RANGE, "job %llu: variances of its curve must be known, 0 or more", id);
	if (!(c->k[0].cut_frac == 0 && c->k[0].loss_frac == 0 && c->k[0].slope >= 0))
		return ww_fail(err, WW_ERR_RANGE, "job %llu: its curve must start at cut 0, loss 0, slope 0 or more",
		               id);
	for (uint32_t i = 1; i < c->n; i++) {
		const struct ww_knot *p = &c->k[i - 1], *q = &c->k[i];
		double loss = p->loss_frac + (q->cut_frac - p->cut_frac) * (p->slope + q->slope) / 2;
		if (!(q->cut_frac > p->cut_frac && q->slope > p->slope && q->slope <= MOST_SLOPE &&
		      q->cut_frac <= MOST_CUT))
			return ww_fail(err, WW_ERR_RANGE,
			               "job %llu: cut and slope of its curve must rise from knot to knot", id);
		if (!(fabs(q->loss_frac - loss) <= 1e-6 * (1 + loss)))
			return ww_fail(err, WW_ERR_INVALID,
			               "job %llu: losses of its curve do not follow from its slopes", id);
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
	if (!is_sound(j->weight))
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
		if (!is_sound(j->rows[i].gpus))
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
	return WW_OK;
}

static ww_status check_jobs(const struct ww_alloc_problem *p, struct ww_error *err)
{
	ww_status status = WW_OK;
	for (size_t i = 0; i < p->n_jobs && !status; i++)
		status = check_job(&p->jobs[i], p->n_rows, err);
	return status;
}

/* ---- Room ----------------------------------------------------------------------------------------------------------- */

#define ROW_ARRAYS 11 /* price, gradient, work, three of the curvature */
#define ROW_INDICES 5 /* small_first and four of the curvature */
#define JOB_ARRAYS 6

static void name_arrays(ww_alloc *a)
{
	size_t rows = a->room.rows + 1, jobs = a->room.jobs + 1;
	struct curvature *c = &a->curvature;
	a->gradient = a->price + rows;
	for (size_t i = 0; i < 6; i++)
		a->work[i] = a->price + (2 + i) * rows;
	c->diagonal = a->price + 8 * rows;
	c->extra = a->price + 9 * rows;
	c->pivot = a->price + 10 * rows;
	c->rank = a->small_first + rows;
	c->stamp = a->small_first + 2 * rows;
	c->slot = a->small_first + 3 * rows;
	c->first = a->small_first + 4 * rows;
	c->long_jobs = c->column + a->room.pairs + 1;
	c->factor = c->value + a->room.pairs + 1;
	c->fixed = c->used + rows;
	a->bend = a->cut + jobs;
	a->pull = a->cut + 2 * jobs;
	a->plan = a->cut + 3 * jobs;
	a->anchor = a->cut + 4 * jobs;
	a->wish = a->cut + 5 * jobs;
}

static bool get_room(ww_alloc *a)
{
	size_t jobs = a->room.jobs + 1, rows = a->room.rows + 1, loads = a->room.loads + 1, pairs = a->room.pairs + 1;
	a->places = calloc(jobs, sizeof *a->places);
	a->jobs = calloc(jobs, sizeof *a->jobs);
	a->curves = calloc(jobs, sizeof *a->curves);
	a->answers = calloc(jobs, sizeof *a->answers);
	a->rows = calloc(rows, sizeof *a->rows);
	a->loads = calloc(loads, sizeof *a->loads);
	a->shares_in = calloc(loads, sizeof *a->shares_in);
	a->by_row = calloc(loads, sizeof *a->by_row);
	a->small_first = calloc(ROW_INDICES * rows, sizeof *a->small_first);
	a->price = calloc(ROW_ARRAYS * rows, sizeof *a->price);
	a->cut = calloc(JOB_ARRAYS * jobs, sizeof *a->cut);
	a->curvature.column = calloc(pairs + jobs, sizeof *a->curvature.column);
	a->curvature.value = calloc(2 * pairs, sizeof *a->curvature.value);
	a->curvature.used = calloc(2 * rows, sizeof *a->curvature.used);
	a->shares = calloc(jobs, sizeof *a->shares);
	a->results = calloc(rows, sizeof *a->results);
	return a->places && a->jobs && a->curves && a->answers && a->rows && a->loads && a->shares_in && a->by_row &&
	       a->small_first && a->price && a->cut && a->curvature.column && a->curvature.value && a->curvature.used &&
	       a->shares && a->results;
}

static size_t larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

/* Room for a larger problem; the allocator is unchanged when memory runs out. */
static ww_status grow(ww_alloc *a, const struct alloc_room *need, struct ww_error *err)
{
	struct alloc_room had = a->room;
	if (need->jobs <= had.jobs && need->rows <= had.rows && need->loads <= had.loads && need->pairs <= had.pairs)
		return WW_OK;
	ww_alloc b = {.room = {larger(need->jobs, had.jobs), larger(need->rows, had.rows),
	                       larger(need->loads, had.loads), larger(need->pairs, had.pairs)}};
	if (!get_room(&b)) {
		release(&b);
		return ww_fail(err, WW_ERR_NOMEM, "out of memory for %zu jobs", need->jobs);
	}
	name_arrays(&b);
	if (a->n)
		memcpy(b.places, a->places, a->n * sizeof *b.places);
	if (a->last_rows)
		memcpy(b.price, a->price, a->last_rows * sizeof *b.price);
	b.last_rows = a->last_rows;
	b.unit = a->unit;
	b.objective = a->objective;
	ww_alloc old = *a;
	*a = b;
	release(&old);
	return WW_OK;
}

/* Rows that two loads of a job share are gathered in pairs: an upper limit of their number. */
static ww_status measure_room(const struct ww_alloc_problem *p, struct alloc_room *out, struct ww_error *err)
{
	*out = (struct alloc_room){.jobs = p->n_jobs, .rows = p->n_rows + 1};
	for (size_t i = 0; i < p->n_jobs; i++) {
		size_t n = (size_t)p->jobs[i].n_rows + 1;
		out->loads += n;
		if (n <= MOST_PAIRED_LOADS)
			out->pairs += n * (n - 1) / 2;
	}
	double most = 0.5 * (double)out->rows * (double)out->rows;
	if ((double)out->pairs > most)
		out->pairs = (size_t)most;
	if (out->loads >= UINT32_MAX || out->pairs >= UINT32_MAX)
		return ww_fail(err, WW_ERR_RANGE, "more than 4 billion shares of jobs on rows");
	return WW_OK;
}

ww_status ww_alloc_reserve(ww_alloc *a, size_t n_jobs, size_t n_rows, size_t n_shares, struct ww_error *err)
{
	struct alloc_room room = {.jobs = n_jobs, .rows = n_rows + 1, .loads = n_shares + n_jobs};
	double most = 0.5 * (double)room.rows * (double)room.rows;
	room.pairs = (size_t)min_of(most, 0.5 * (MOST_PAIRED_LOADS - 1) * (double)room.loads);
	return grow(a, &room, err);
}

/* ---- Taking a problem in ------------------------------------------------------------------------------------------ */

static void take_curve(struct ww_curve *out, const struct ww_curve *in)
{
	memcpy(out, in, offsetof(struct ww_curve, k) + in->n * sizeof *in->k);
}

static void take_job(struct alloc_job *j, const struct ww_alloc_job *in, enum ww_objective objective)
{
	double p0_w = in->curve->p0_w;
	j->id = in->id;
	j->gpus = in->gpus;
	j->tier = in->tier;
	j->weight = in->weight;
	j->floor_frac = in->floor_frac;
	take_curve(j->curve, in->curve);
	j->measured = in->curve->max_cut_frac;
	j->curve->max_cut_frac = 1;
	j->baseline_w = in->gpus * p0_w;
	j->gain = objective == WW_OBJECTIVE_TOKENS ? in->weight * in->curve->t0_tps : in->weight;
	j->min_w = in->min_w;
	j->max_w = in->max_w;
	j->lowest = min_of(max_of(0, 1 - in->min_w / p0_w), 1);
	j->least = in->max_w > 0 ? min_of(max_of(0, 1 - in->max_w / p0_w), j->lowest) : 0;
	j->floor_cut =
		in->floor_frac > 0 ? min_of(j->lowest, ww_curve_cut_at_loss(j->curve, 1 - in->floor_frac)) : j->lowest;
	j->floor_cut = max_of(j->least, j->floor_cut);
}

static void take_jobs(ww_alloc *a, const struct ww_alloc_problem *p)
{
	a->n = p->n_jobs;
	a->n_loads = 0;
	for (size_t i = 0; i < a->n; i++) {
		struct alloc_job *j = &a->jobs[i];
		const struct ww_alloc_job *in = &p->jobs[a->places[i].index];
		fetch_ahead(a, p, i);
		j->curve = &a->curves[i];
		take_job(j, in, p->objective);
		j->index = a->places[i].index;
		j->first = a->n_loads;
		for (uint32_t k = 0; k < in->n_rows; k++) {
			a->shares_in[a->n_loads] = in->rows[k];
			a->loads[a->n_loads++] =
				(struct load){in->rows[k].row, (uint32_t)i, in->rows[k].gpus * in->curve->p0_w};
		}
		a->loads[a->n_loads++] = (struct load){(uint32_t)p->n_rows, (uint32_t)i, j->baseline_w};
		j->n_loads = a->n_loads - j->first;
		sort_loads(&a->loads[j->first], j->n_loads);
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
	double old = a->unit;
	a->unit = 0;
	for (size_t i = 0; i < a->n; i++)
		a->unit = max_of(a->unit, a->jobs[i].gain);
	for (size_t r = 0; r < a->last_rows && a->unit > 0; r++)
		a->price[r] *= old / a->unit;
	for (size_t i = 0; i < a->n; i++)
		a->jobs[i].gain /= a->unit;
}

/* The order of the last problem serves again where it still holds. */
static void sort_rows(ww_alloc *a, bool same_rows)
{
	for (size_t r = 0; !same_rows && r < a->n_rows; r++)
		a->small_first[r] = (uint32_t)r;
	bool sorted = true;
	for (size_t i = 1; i < a->n_rows && sorted; i++)
		sorted = by_size(&a->small_first[i - 1], &a->small_first[i], a->rows) < 0;
	if (!sorted)
		qsort_r(a->small_first, a->n_rows, sizeof *a->small_first, by_size, a->rows);
}

static void take_budgets(ww_alloc *a, const struct ww_alloc_problem *p)
{
	for (size_t r = 0; r < a->n_rows; r++) {
		double budget = r < p->n_rows ? p->rows[r].budget_w : p->budget_w;
		a->rows[r].need_w = max_of(0, a->rows[r].size_w - budget);
	}
	for (size_t i = 0; i < a->n; i++) {
		a->jobs[i].lo = a->jobs[i].least;
		a->jobs[i].reach = a->jobs[i].floor_cut;
	}
}

static void take_rows(ww_alloc *a, const struct ww_alloc_problem *p)
{
	bool same_rows = a->n_rows == p->n_rows + 1;
	a->n_rows = p->n_rows + 1;
	memset(a->rows, 0, a->n_rows * sizeof *a->rows);
	for (size_t i = 0; i < a->n_loads; i++) {
		a->rows[a->loads[i].row].n_loads++;
		a->rows[a->loads[i].row].size_w += a->loads[i].watts;
	}
	for (size_t r = 0, first = 0; r < a->n_rows; first += a->rows[r++].n_loads)
		a->rows[r].first = first;
	for (size_t i = 0; i < a->n_loads; i++)
		a->by_row[a->rows[a->loads[i].row].first++] = a->loads[i];
	for (size_t r = 0; r < a->n_rows; r++)
		a->rows[r].first -= a->rows[r].n_loads;
	sort_rows(a, same_rows);
}

/* ---- Promises: floors are relaxed only where a row forces it --------------------------------------------------------- */

/* Per row: watts freed at the floors and at the lowest powers. */
static void floor_watts(const ww_alloc *a, double *at_floor, double *at_lowest)
{
	memset(at_floor, 0, a->n_rows * sizeof *at_floor);
	memset(at_lowest, 0, a->n_rows * sizeof *at_lowest);
	for (size_t i = 0; i < a->n_loads; i++) {
		const struct load *load = &a->loads[i];
		at_floor[load->row] += load->watts * a->jobs[load->job].reach;
		at_lowest[load->row] += load->watts * a->jobs[load->job].lowest;
	}
}

static double watts_at_floor(const ww_alloc *a, const struct alloc_row *row)
{
	double sum = 0;
	for (size_t i = row->first; i < row->first + row->n_loads; i++)
		sum += a->by_row[i].watts * a->jobs[a->by_row[i].job].reach;
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
	double share = room > 0 ? min_of(1, short_w / room) : 0;
	for (size_t i = row->first; share > 0 && i < row->first + row->n_loads; i++) {
		struct alloc_job *j = &a->jobs[a->by_row[i].job];
		if (j->tier == tier)
			j->reach = share < 1 ? j->reach + share * (j->lowest - j->reach) : j->lowest;
	}
	return max_of(0, short_w - room);
}

static void relax_floors(ww_alloc *a)
{
	double *at_floor = a->work[0], *at_lowest = a->work[1];
	floor_watts(a, at_floor, at_lowest);
	for (size_t r = 0; r < a->n_rows; r++) {
		struct alloc_row *row = &a->rows[r];
		row->result = (struct ww_alloc_row_result){0};
		row->result.missing_w = clear_rounding(row->need_w - at_floor[r], row);
		row->result.over_w = clear_rounding(row->need_w - at_lowest[r], row);
		if (row->result.over_w > 0)
			row->need_w = at_lowest[r];
		if (row->result.missing_w > 0)
			a->summary.outcome = WW_OUTCOME_INFEASIBLE;
	}
	for (size_t i = 0; i < a->n_rows; i++) {
		struct alloc_row *row = &a->rows[a->small_first[i]];
		if (row->result.missing_w == 0)
			continue;
		double short_w = clear_rounding(row->need_w - watts_at_floor(a, row), row);
		for (int tier = N_TIERS - 1; tier >= 0 && short_w > 0; tier--)
			short_w = relax_tier(a, row, tier, short_w);
	}
}

/* ---- The equal cut -------------------------------------------------------------------------------------------------- */

/* The reach is in a->plan, the equal cut in a->cut. */
static double equal_watts(const ww_alloc *a, const struct alloc_row *row, double x, double *slope)
{
	double sum = 0;
	*slope = 0;
	for (size_t i = row->first; i < row->first + row->n_loads; i++) {
		const struct load *load = &a->by_row[i];
		double least = a->cut[load->job], most = a->plan[load->job];
		bool moves = x > least && x < most;
		sum += load->watts * (moves ? x : x < most ? least : max_of(least, most));
		*slope += moves ? load->watts : 0;
	}
	return sum;
}

static double watts_so_far(const ww_alloc *a, const struct alloc_row *row)
{
	double sum = 0;
	for (size_t i = row->first; i < row->first + row->n_loads; i++)
		sum += a->by_row[i].watts * a->cut[a->by_row[i].job];
	return sum;
}

/* The least cut that meets the row, given to all its jobs: Newton's steps on a rising broken line, inside a bracket. */
static double equal_for_row(const ww_alloc *a, const struct alloc_row *row)
{
	double slope, lo = 0, hi = 1, x = min_of(1, row->need_w / row->size_w), watts = equal_watts(a, row, x, &slope);
	for (int i = 0; i < 200 && fabs(watts - row->need_w) > 1e-15 * row->size_w; i++) {
		if (watts < row->need_w)
			lo = x;
		else
			hi = x;
		double next = slope > 0 ? x + (row->need_w - watts) / slope : -1;
		if (!(next > lo && next < hi))
			next = lo + (hi - lo) / 2;
		if (next <= lo || next >= hi)
			break;
		x = next;
		watts = equal_watts(a, row, x, &slope);
	}
	return watts < row->need_w ? min_of(hi, x + 4e-15) : x;
}

/* Rows from small to large: each raises its jobs to the one cut that meets it, so a row inside is met before the row
 * around it asks for the rest. */
static void solve_equal(ww_alloc *a)
{
	for (size_t i = 0; i < a->n; i++) {
		a->cut[i] = a->jobs[i].lo;
		a->plan[i] = a->jobs[i].reach;
	}
	for (size_t i = 0; i < a->n_rows; i++) {
		const struct alloc_row *row = &a->rows[a->small_first[i]];
		if (row->need_w <= 0 || watts_so_far(a, row) >= row->need_w)
			continue;
		double x = equal_for_row(a, row);
		for (size_t k = row->first; k < row->first + row->n_loads; k++) {
			uint32_t job = a->by_row[k].job;
			a->cut[job] = max_of(a->cut[job], min_of(x, a->plan[job]));
		}
	}
	for (size_t i = 0; i < a->n; i++)
		a->jobs[i].equal = a->cut[i];
}

static void set_bounds(ww_alloc *a, bool explore)
{
	double deepest = 0;
	for (size_t i = 0; i < a->n; i++) {
		struct alloc_job *j = &a->jobs[i];
		j->piece = j->piece + 2 < j->curve->n ? j->piece : j->curve->n - 2; /* of the last problem, or 0 */
		j->piece = piece_near(j->curve, j->piece, j->equal);
		double kept = 1 - piece_loss(j->curve, piece_near(j->curve, j->piece, j->reach), j->reach);
		double useful =
			kept >= 0 ? j->reach : ww_curve_cut_at_loss(j->curve, 1); /* no loss beyond all there is */
		j->box = max_of(j->equal, explore ? useful : min_of(useful, j->measured));
		j->hi = j->box;
		j->cut = j->equal;
		j->reach_kept = max_of(0, kept);
		deepest = max_of(deepest, j->equal);
	}
	if (deepest == 0 && a->summary.outcome == WW_OUTCOME_OPTIMAL)
		a->summary.outcome = WW_OUTCOME_UNCHANGED;
}

/* ---- Trust in the curves ---------------------------------------------------------------------------------------------- */

static double per_watt(const struct alloc_job *j)
{
	return j->gain / j->baseline_w;
}

static double slope_at_equal(const struct alloc_job *j)
{
	const struct ww_knot *k = &j->curve->k[j->piece];
	return k->slope + piece_bend(j->curve, j->piece) * (j->equal - k->cut_frac);
}

/* Objective per unit of loss and watt at the equal cut. */
static double unit_at_equal(const ww_alloc *a, const struct alloc_job *j)
{
	double kept = a->objective == WW_OBJECTIVE_LOG ? max_of(1e-3, 1 - piece_loss(j->curve, j->piece, j->equal)) : 1;
	return per_watt(j) / kept;
}

/* Over the jobs that a cut touches, of the marginal per watt at the equal cut. */
struct spread {
	double n, mean, variance, error; /* error: mean variance of one marginal by the curves' own uncertainty */
};

static double marginal_error(const ww_alloc *a, const struct alloc_job *j)
{
	double unit = unit_at_equal(a, j);
	return unit * unit * ww_curve_slope_var(j->curve, j->equal);
}

static struct spread marginal_spread(const ww_alloc *a)
{
	struct spread s = {0};
	for (size_t i = 0; i < a->n; i++) {
		const struct alloc_job *j = &a->jobs[i];
		if (j->equal <= 0)
			continue;
		double y = unit_at_equal(a, j) * slope_at_equal(j), off = y - s.mean;
		s.mean += off / ++s.n;
		s.variance += off * (y - s.mean);
		s.error += marginal_error(a, j);
	}
	if (s.n > 0) {
		s.variance /= s.n;
		s.error /= s.n;
	}
	return s;
}

/* The slope per cut of the curve whose optimum is the equal cut: its marginal per watt there is the mean of all. */
static double pull_to_equal(const ww_alloc *a, const struct alloc_job *j, double mean)
{
	double slope = mean / per_watt(j);
	if (a->objective == WW_OBJECTIVE_LOG)
		slope /=
			1 + slope * j->equal / 2; /* the marginal of -log(1 - loss), with the loss of the pull itself */
	return slope / j->equal;
}

/*
 * Trust = signal / (signal + error). The spread of the marginals holds their errors too; over many jobs errors even out,
 * so the more jobs, the more of the spread is taken for signal.
 */
static void set_trust(ww_alloc *a)
{
	struct spread s = marginal_spread(a);
	double share = max_of(0.05, (s.n - 2) / (s.n + 2)), trusted = 0, watts = 0;
	double signal = max_of(s.variance - s.error, share * s.variance);
	for (size_t i = 0; i < a->n; i++) {
		struct alloc_job *j = &a->jobs[i];
		bool touched = j->equal > 0 && s.mean > 0;
		double error = touched ? marginal_error(a, j) : 0;
		j->trust = signal + error > 0 ? signal / (signal + error) : 1;
		if (!touched)
			j->trust = 1;
		j->tilt = j->trust < 1 ? (1 - j->trust) * pull_to_equal(a, j, s.mean) : 0;
		trusted += touched ? j->trust * j->baseline_w : 0;
		watts += touched ? j->baseline_w : 0;
	}
	a->summary.shrink = watts > 0 ? trusted / watts : 1;
}

/* ---- Results ------------------------------------------------------------------------------------------------------------ */

/* Gain per watt for a row that has no price because it is a bound of its jobs: what the job that gains most would. */
static double price_of_bound(const ww_alloc *a, const struct alloc_row *row)
{
	double price = 0;
	for (size_t i = row->first; i < row->first + row->n_loads; i++) {
		const struct load *load = &a->by_row[i];
		const struct alloc_job *j = &a->jobs[load->job];
		if (j->cut > j->least)
			price = max_of(price,
			               (answer_marginal(a, load->job, j->cut) - a->pull[load->job]) / load->watts);
	}
	return price;
}

static void publish_rows(ww_alloc *a)
{
	double *cut_w = a->work[0];
	memset(cut_w, 0, a->n_rows * sizeof *cut_w);
	for (size_t i = 0; i < a->n; i++) {
		const struct alloc_job *j = &a->jobs[i];
		for (const struct load *l = &a->loads[j->first], *end = l + j->n_loads; l < end; l++)
			cut_w[l->row] += l->watts * j->cut;
	}
	for (size_t r = 0; r < a->n_rows; r++) {
		struct alloc_row *row = &a->rows[r];
		row->result.power_w = row->size_w - cut_w[r];
		row->result.price = a->started && row->priced ? a->unit * a->price[r] : 0;
		if (a->started && !row->priced && row->need_w > 0 && cut_w[r] <= row->need_w + 1e-9 * row->size_w)
			row->result.price = a->unit * price_of_bound(a, row);
		a->results[r] = row->result;
	}
}

static void publish(ww_alloc *a)
{
	for (size_t i = 0; i < a->n; i++) {
		const struct alloc_job *j = &a->jobs[i];
		uint32_t piece = piece_near(j->curve, a->answers[i].piece, j->cut);
		a->shares[j->index] =
			(struct ww_alloc_share){.cut_frac = j->cut,
		                                .throughput_frac = max_of(0, 1 - piece_loss(j->curve, piece, j->cut)),
		                                .equal_cut_frac = j->equal,
		                                .box_cut_frac = j->box,
		                                .floor_frac = min_of(j->floor_frac, j->reach_kept),
		                                .trust = j->trust};
	}
	publish_rows(a);
}

/* ---- Interface ------------------------------------------------------------------------------------------------------ */

static void take(ww_alloc *a, const struct ww_alloc_problem *p)
{
	if (a->objective != p->objective)
		a->last_rows = 0;
	a->objective = p->objective;
	take_jobs(a, p);
	scale_gains(a);
	take_rows(a, p);
}

static void solve_first(ww_alloc *a, const struct ww_alloc_problem *p)
{
	a->summary = (struct ww_alloc_summary){.outcome = WW_OUTCOME_OPTIMAL};
	a->started = false;
	take_budgets(a, p);
	relax_floors(a);
	solve_equal(a);
	set_bounds(a, p->explore);
	set_trust(a);
	answers_start(a);
	publish(a);
	price_summary(a);
}

ww_status ww_alloc_set(ww_alloc *a, const struct ww_alloc_problem *p, struct ww_error *err)
{
	struct alloc_room room;
	struct place *places = NULL;
	ww_status status = check_problem(p, err);
	if (!status && same_jobs(a, p))
		goto solve;
	if (!status)
		status = check_jobs(p, err);
	if (!status)
		status = measure_room(p, &room, err);
	if (!status)
		status = order_jobs(a, p, &places, err);
	if (!status)
		status = grow(a, &room, err);
	if (!status && places)
		memcpy(a->places, places, p->n_jobs * sizeof *places);
	if (!status && !places && ascending(p))
		for (uint32_t i = 0; i < p->n_jobs; i++)
			a->places[i] = (struct place){p->jobs[i].id, i};
	free(places);
	if (!status)
		take(a, p);
solve:
	if (!status && p->fresh)
		a->last_rows = 0;
	if (!status)
		solve_first(a, p);
	return status;
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
	publish(a);
	price_summary(a);
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
