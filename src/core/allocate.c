/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Division of one power budget. Losses are convex, so the best division has one price: every job is cut until its
 * marginal loss per watt reaches it, or its box ends. What a curve does not know for sure is replaced by a curve whose
 * optimum is the equal cut: job j uses
 *
 *     s_j l'_j(d) w_j / (g_j P0_j) + (1 - s_j) ybar d / e_j
 *
 * with e_j its equal cut, y_j its marginal per watt there, v_j the variance of y_j, ybar the mean of y and the trust
 * s_j = var y / (var y + v_j). Blending curves, not cuts, keeps the budget exactly and the price common.
 */
#include "core/core_internal.h"

#include <math.h>
#include <stdlib.h>

struct job {
	uint64_t id;
	size_t index;      /* in the caller's array */
	double baseline_w; /* of all its GPUs */
	double weight;
	double reach;      /* deepest cut allowed by the lowest draw and the floor */
	double per_watt;   /* marginal relative loss -> weighted loss per watt */
	struct ww_curve curve;
	struct ww_curve blended; /* slopes per watt */
	struct ww_alloc_share share;
};

struct ww_alloc {
	size_t max_jobs, n;
	struct job *jobs; /* ascending id */
	struct job *spare;
	double budget_w, baseline_w;
	struct ww_alloc_summary summary;
	struct ww_alloc_share *shares; /* in the caller's order */
};

const char *ww_outcome_name(enum ww_outcome outcome)
{
	static const char *const names[] = {"optimal", "infeasible", "unchanged"};
	return names[outcome];
}

ww_status ww_alloc_create(size_t max_jobs, ww_alloc **out, struct ww_error *err)
{
	ww_alloc *a = calloc(1, sizeof *a);
	if (a) {
		a->max_jobs = max_jobs;
		a->jobs = calloc(max_jobs + 1, sizeof *a->jobs);
		a->spare = calloc(max_jobs + 1, sizeof *a->spare);
		a->shares = calloc(max_jobs + 1, sizeof *a->shares);
	}
	if (!a || !a->jobs || !a->spare || !a->shares) {
		ww_alloc_destroy(a);
		return ww_fail(err, WW_ERR_NOMEM, "out of memory for %zu jobs", max_jobs);
	}
	*out = a;
	return WW_OK;
}

void ww_alloc_destroy(ww_alloc *a)
{
	if (!a)
		return;
	free(a->jobs);
	free(a->spare);
	free(a->shares);
	free(a);
}

/* ---- Taking a problem in ------------------------------------------------------------------------------------------ */

static ww_status check_job(const struct ww_alloc_job *j, struct ww_error *err)
{
	unsigned long long id = j->id;
	if (j->gpus == 0)
		return ww_fail(err, WW_ERR_RANGE, "job %llu: gpus is 0, must be at least 1", id);
	if (!(isfinite(j->weight) && j->weight > 0))
		return ww_fail(err, WW_ERR_RANGE, "job %llu: weight is %g, must be above 0", id, j->weight);
	if (!(j->floor_frac >= 0 && j->floor_frac <= 1))
		return ww_fail(err, WW_ERR_RANGE, "job %llu: floor_frac is %g, must be in 0..1", id, j->floor_frac);
	if (!j->curve || j->curve->n < 2 || j->curve->n > WW_MAX_KNOTS || !(j->curve->p0_w > 0) || !(j->curve->k[0].slope >= 0))
		return ww_fail(err, WW_ERR_RANGE, "job %llu: has no curve", id);
	if (!(j->min_w >= 0 && isfinite(j->min_w)))
		return ww_fail(err, WW_ERR_RANGE, "job %llu: min_w is %g, must be 0 or more", id, j->min_w);
	for (uint32_t i = 1; i < j->curve->n; i++) {
		const struct ww_knot *a = &j->curve->k[i - 1], *b = &j->curve->k[i];
		if (!(b->cut_frac > a->cut_frac && b->slope > a->slope))
			return ww_fail(err, WW_ERR_RANGE, "job %llu: cut and slope of its curve must rise from knot to knot", id);
	}
	return WW_OK;
}

static struct job take_job(const struct ww_alloc_job *in, size_t index)
{
	struct job j = {.id = in->id, .index = index, .weight = in->weight, .curve = *in->curve};
	j.baseline_w = in->gpus * in->curve->p0_w;
	j.per_watt = j.weight / j.baseline_w;
	double lowest = fmax(0, 1 - in->min_w / in->curve->p0_w);
	struct ww_curve unbounded = *in->curve;
	unbounded.max_cut_frac = 1;
	j.reach = fmin(lowest, ww_curve_cut_at_loss(&unbounded, 1 - in->floor_frac));
	return j;
}

static int by_id(const void *a, const void *b)
{
	const struct job *p = a, *q = b;
	return (p->id > q->id) - (p->id < q->id);
}

/* ---- The equal cut ---------------------------------------------------------------------------------------------- */

static double equal_watts(const void *context, double x)
{
	const ww_alloc *a = context;
	double sum = 0;
	for (size_t i = 0; i < a->n; i++)
		sum += a->jobs[i].baseline_w * fmin(x, a->jobs[i].reach);
	return sum;
}

static void solve_equal(ww_alloc *a)
{
	double need = a->baseline_w - a->budget_w, most = equal_watts(a, 1);
	a->summary = (struct ww_alloc_summary){.outcome = WW_OUTCOME_OPTIMAL};
	if (need <= 0)
		a->summary.outcome = WW_OUTCOME_UNCHANGED;
	if (need > most * (1 + 1e-12)) {
		a->summary.outcome = WW_OUTCOME_INFEASIBLE;
		a->summary.missing_w = need - most;
	}
	double x = need <= 0 ? 0 : solve_rising(equal_watts, a, 0, 1, need);
	for (size_t i = 0; i < a->n; i++) {
		struct job *j = &a->jobs[i];
		double equal = fmin(x, j->reach), box = fmax(j->curve.max_cut_frac, equal);
		j->share = (struct ww_alloc_share){equal, equal, fmin(box, j->reach), 0};
	}
}

static void publish(ww_alloc *a)
{
	for (size_t i = 0; i < a->n; i++)
		a->shares[a->jobs[i].index] = a->jobs[i].share;
}

ww_status ww_alloc_set(ww_alloc *a, const struct ww_alloc_problem *p, struct ww_error *err)
{
	if (p->n_jobs > a->max_jobs)
		return ww_fail(err, WW_ERR_RANGE, "%zu jobs: this allocator was made for %zu", p->n_jobs, a->max_jobs);
	if (!(p->budget_w >= 0 && isfinite(p->budget_w)))
		return ww_fail(err, WW_ERR_RANGE, "budget_w is %g: must be 0 or more", p->budget_w);
	for (size_t i = 0; i < p->n_jobs; i++) {
		ww_status status = check_job(&p->jobs[i], err);
		if (status)
			return status;
		a->spare[i] = take_job(&p->jobs[i], i);
	}
	qsort(a->spare, p->n_jobs, sizeof *a->spare, by_id);
	for (size_t i = 1; i < p->n_jobs; i++)
		if (a->spare[i].id == a->spare[i - 1].id)
			return ww_fail(err, WW_ERR_INVALID, "job %llu is there twice", (unsigned long long)a->spare[i].id);
	struct job *old = a->jobs;
	a->jobs = a->spare;
	a->spare = old;
	a->n = p->n_jobs;
	a->budget_w = p->budget_w;
	a->baseline_w = 0;
	for (size_t i = 0; i < a->n; i++)
		a->baseline_w += a->jobs[i].baseline_w;
	solve_equal(a);
	publish(a);
	return WW_OK;
}

/* ---- Trust in the curves ---------------------------------------------------------------------------------------- */

/* Marginal weighted loss per watt at the equal cut. */
static double marginal(const struct job *j)
{
	return j->per_watt * ww_curve_slope(&j->curve, j->share.equal_cut_frac);
}

/* Only jobs that an equal cut touches and that may move take part. */
static bool can_move(const struct job *j)
{
	return j->share.equal_cut_frac > 0 && j->share.box_cut_frac > 0;
}

static double set_trust(ww_alloc *a)
{
	double n = 0, mean = 0, square = 0;
	for (size_t i = 0; i < a->n; i++) {
		if (!can_move(&a->jobs[i]))
			continue;
		double y = marginal(&a->jobs[i]), step = y - mean;
		mean += step / ++n;
		square += step * (y - mean);
	}
	double spread = n > 0 ? square / n : 0, trusted = 0, watts = 0;
	for (size_t i = 0; i < a->n; i++) {
		struct job *j = &a->jobs[i];
		double error = j->per_watt * j->per_watt * ww_curve_slope_var(&j->curve, j->share.equal_cut_frac);
		j->share.trust = spread + error > 0 ? spread / (spread + error) : 1;
		trusted += j->share.trust * j->baseline_w;
		watts += j->baseline_w;
	}
	a->summary.shrink = watts > 0 ? trusted / watts : 1;
	return mean;
}

/* ---- One price ---------------------------------------------------------------------------------------------------- */

static void blend(struct job *j, double mean)
{
	double s = j->share.trust, equal = j->share.equal_cut_frac;
	j->blended = (struct ww_curve){0};
	for (uint32_t i = 0; i < j->curve.n; i++) {
		const struct ww_knot *k = &j->curve.k[i];
		double pull = equal > 0 ? mean * k->cut_frac / equal : 0;
		j->blended.k[i] = (struct ww_knot){k->cut_frac, 0, s * j->per_watt * k->slope + (1 - s) * pull};
	}
	j->blended.n = j->curve.n;
}

static double cut_at_price(const struct job *j, double price)
{
	if (!can_move(j))
		return j->share.equal_cut_frac;
	return fmin(ww_curve_cut_at_slope(&j->blended, price), j->share.box_cut_frac);
}

static double watts_at_price(const void *context, double price)
{
	const ww_alloc *a = context;
	double sum = 0;
	for (size_t i = 0; i < a->n; i++)
		sum += a->jobs[i].baseline_w * cut_at_price(&a->jobs[i], price);
	return sum;
}

static double highest_price(const ww_alloc *a)
{
	double most = 0;
	for (size_t i = 0; i < a->n; i++)
		most = fmax(most, ww_curve_slope(&a->jobs[i].blended, a->jobs[i].share.box_cut_frac));
	return most * (1 + 1e-9) + 1e-300;
}

void ww_alloc_run(ww_alloc *a)
{
	double need = a->baseline_w - a->budget_w;
	double mean = set_trust(a);
	for (size_t i = 0; i < a->n; i++)
		blend(&a->jobs[i], mean);
	if (a->summary.outcome == WW_OUTCOME_OPTIMAL) {
		a->summary.price = solve_rising(watts_at_price, a, 0, highest_price(a), need);
		for (size_t i = 0; i < a->n; i++)
			a->jobs[i].share.cut_frac = cut_at_price(&a->jobs[i], a->summary.price);
	}
	publish(a);
}

const struct ww_alloc_share *ww_alloc_shares(const ww_alloc *a)
{
	return a->shares;
}

struct ww_alloc_summary ww_alloc_result(const ww_alloc *a)
{
	return a->summary;
}
