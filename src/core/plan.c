/* SPDX-License-Identifier: Apache-2.0 */
/* Caps for measured jobs: from sweeps to curves, through the allocator, and back to watts with what limits each job. */
#include "core/core_internal.h"

#include <math.h>
#include <stdlib.h>

#define MOST_SWEEPS 100
#define PRICED_ROWS 32   /* rows whose worth of a watt is worked out; the highest prices first */
#define PROBE_SHARE 1e-3 /* of a row's power, for the worth of a watt */
#define NEAR 1e-7        /* two cuts are the same */

struct job {
	const struct ww_plan_job *in;
	double p0_w, t0;
	double least_charge_w; /* what the allocator may not go below */
	int fixed;             /* WW_PLAN_NOT_LIMITED or _NOT_MEASURED, else WW_PLAN_PRICE */
	double fixed_cap_w;    /* its cap when it is fixed */
	size_t n_caps;
	double *cap_w, *draw_w; /* ascending caps, running maximum of the draw */
	struct ww_curve curve;
};

struct ww_plan {
	struct ww_plan_problem problem;
	struct job *jobs;
	struct ww_alloc_job *asks;
	struct ww_alloc_row *rows;
	struct ww_plan_share *shares;
	struct ww_plan_row *results;
	struct ww_plan_total total;
};

/* ---- From a sweep to a curve ------------------------------------------------------------------------------------------ */

static void fill_draws(struct job *j, const struct pooled *p, size_t n)
{
	j->n_caps = n;
	for (size_t i = 0; i < n; i++) {
		j->cap_w[i] = p[n - 1 - i].cap_w;
		j->draw_w[i] = i ? fmax(p[n - 1 - i].power_w, j->draw_w[i - 1]) : p[n - 1 - i].power_w;
	}
}

/* A curve for a job that is not cut: charged in full whatever the price. */
static void make_fixed(struct job *j, double charge_w)
{
	j->least_charge_w = charge_w;
	j->curve = (struct ww_curve){.p0_w = charge_w, .t0_tps = j->t0, .status = WW_PFI_TOO_FEW_POINTS};
	curve_add_knot(&j->curve, 0, 1);
	curve_add_knot(&j->curve, 1, 2);
}

/* The lowest cap whose draw is that without a cap. */
static double free_cap(const struct job *j)
{
	size_t i = j->n_caps - 1;
	while (i > 0 && j->draw_w[i - 1] >= (1 - BASELINE_BAND) * j->draw_w[j->n_caps - 1])
		i--;
	return j->cap_w[i];
}

static void curve_of_fixed(struct job *j, const struct ww_pfi *pfi, enum ww_account account)
{
	j->fixed = pfi->status == WW_PFI_NOT_POWER_LIMITED ? WW_PLAN_NOT_LIMITED : WW_PLAN_NOT_MEASURED;
	j->fixed_cap_w = j->fixed == WW_PLAN_NOT_LIMITED ? free_cap(j) : j->cap_w[j->n_caps - 1];
	if (!isnan(j->in->max_w))
		j->fixed_cap_w = fmin(j->fixed_cap_w, j->in->max_w);
	make_fixed(j, account == WW_ACCOUNT_CAP ? j->fixed_cap_w : fmin(j->p0_w, j->fixed_cap_w));
}

/* The lowest charge allowed: measured, unless exploring below it was asked for. */
static double least_charge(const struct job *j, const struct ww_plan_problem *p)
{
	double measured = p->account == WW_ACCOUNT_CAP ? j->cap_w[0] : j->draw_w[0], wanted = j->in->min_w;
	if (isnan(wanted))
		return measured;
	if (wanted < j->cap_w[0])
		return p->explore ? measured * wanted / j->cap_w[0] : measured;
	return p->account == WW_ACCOUNT_CAP ? wanted : interpolate(j->cap_w, j->draw_w, j->n_caps, wanted);
}

static ww_status curve_of_job(struct job *j, const struct ww_plan_problem *p, struct ww_error *err)
{
	struct ww_pfi_options options = WW_PFI_OPTIONS_INIT;
	struct ww_pfi pfi;
	options.noise_frac = p->noise_frac;
	options.draws = 0;
	ww_status status = ww_pfi_estimate(j->in->points, j->in->n, &options, &pfi, err);
	if (status)
		return status;
	double scale = j->in->measured_gpus ? (double)j->in->gpus / j->in->measured_gpus : 1;
	j->p0_w = pfi.p0_w;
	j->t0 = pfi.t0 * scale;
	if (pfi.status != WW_PFI_OK && pfi.status != WW_PFI_BOUND) {
		curve_of_fixed(j, &pfi, p->account);
		return WW_OK;
	}
	j->fixed = WW_PLAN_PRICE;
	j->least_charge_w = least_charge(j, p);
	status = ww_curve_measure(j->in->points, j->in->n, &options, p->account, &j->curve, err);
	j->curve.t0_tps = j->t0;
	return status;
}

static ww_status take_job(struct job *j, const struct ww_plan_job *in, const struct ww_plan_problem *p,
                          struct ww_error *err)
{
	struct pooled *pooled = malloc((in->n + 1) * sizeof *pooled);
	size_t n = 0;
	j->in = in;
	j->cap_w = malloc(2 * (in->n + 1) * sizeof *j->cap_w);
	ww_status status = pooled && j->cap_w ? WW_OK : ww_fail(err, WW_ERR_NOMEM, "out of memory");
	if (!status)
		status = pool_points(in->points, in->n, 0, INFINITY, pooled, &n, err);
	if (!status && n == 0)
		status = ww_fail(err, WW_ERR_NO_DATA, "job %s: its sweep has no points", in->name);
	if (!status) {
		j->draw_w = j->cap_w + in->n + 1;
		fill_draws(j, pooled, n);
		status = curve_of_job(j, p, err);
	}
	free(pooled);
	return status;
}

/* ---- The allocator's problem -------------------------------------------------------------------------------------------- */

static struct ww_alloc_job ask_for(const struct job *j, size_t id)
{
	const struct ww_plan_job *in = j->in;
	struct ww_alloc_job ask = {.id = id, .gpus = in->gpus, .n_rows = in->n_rows, .tier = in->tier,
	                           .weight = in->weight, .floor_frac = in->floor_frac, .min_w = j->least_charge_w,
	                           .curve = &j->curve, .rows = in->rows};
	if (!isnan(in->max_w) && in->max_w < j->curve.p0_w)
		ask.max_w = fmax(in->max_w, ask.min_w);
	return ask;
}

static ww_status build(ww_plan *plan, struct ww_error *err)
{
	const struct ww_plan_problem *p = &plan->problem;
	for (size_t i = 0; i < p->n_jobs; i++) {
		ww_status status = take_job(&plan->jobs[i], &p->jobs[i], p, err);
		if (status)
			return status;
		plan->asks[i] = ask_for(&plan->jobs[i], i);
		plan->total.baseline_w += p->jobs[i].gpus * plan->jobs[i].p0_w;
	}
	for (size_t r = 0; r < p->n_rows; r++)
		plan->rows[r] = p->rows[r];
	plan->total.budget_w = isnan(p->budget_w) ? (1 - p->cut_frac) * plan->total.baseline_w : p->budget_w;
	return WW_OK;
}

static ww_status solve(ww_plan *plan, ww_alloc *alloc, double budget_w, struct ww_error *err)
{
	struct ww_alloc_problem problem = {.jobs = plan->asks, .n_jobs = plan->problem.n_jobs, .rows = plan->rows,
	                                   .n_rows = plan->problem.n_rows, .budget_w = budget_w,
	                                   .objective = plan->problem.objective, .explore = plan->problem.explore};
	ww_status status = ww_alloc_set(alloc, &problem, err);
	if (!status && !plan->problem.equal)
		ww_alloc_run(alloc, MOST_SWEEPS);
	return status;
}

/* ---- Back to watts and words ---------------------------------------------------------------------------------------------- */

static double cap_of(const struct job *j, enum ww_account account, double charge_w)
{
	if (account == WW_ACCOUNT_CAP)
		return charge_w;
	if (j->fixed != WW_PLAN_PRICE)
		return j->fixed_cap_w;
	if (charge_w < j->draw_w[0])
		return j->cap_w[0] * charge_w / j->draw_w[0];
	return interpolate(j->draw_w, j->cap_w, j->n_caps, charge_w);
}

static int limit_of(const struct job *j, const struct ww_alloc_share *s, double lowest)
{
	if (j->fixed != WW_PLAN_PRICE)
		return j->fixed;
	if (s->throughput_frac < j->in->floor_frac - NEAR)
		return WW_PLAN_RELAXED;
	if (s->cut_frac <= NEAR)
		return WW_PLAN_UNCUT;
	if (j->in->floor_frac > 0 && s->throughput_frac <= j->in->floor_frac + NEAR)
		return WW_PLAN_FLOOR;
	if (s->cut_frac >= lowest - NEAR)
		return WW_PLAN_LOWEST;
	return s->cut_frac >= s->box_cut_frac - NEAR ? WW_PLAN_DEEPEST : WW_PLAN_PRICE;
}

static size_t pressing_row(const struct ww_plan_job *in, const struct ww_alloc_row_result *rows, size_t n_rows)
{
	size_t most = rows[n_rows].price > 0 ? n_rows : SIZE_MAX;
	double press = rows[n_rows].price * in->gpus;
	for (uint32_t i = 0; i < in->n_rows; i++) {
		double here = rows[in->rows[i].row].price * in->rows[i].gpus;
		if (here > press) {
			press = here;
			most = in->rows[i].row;
		}
	}
	return most;
}

static double cut_in_draw(const struct job *j, double cut)
{
	return fmax(0, 1 - j->curve.p0_w * (1 - cut) / j->p0_w);
}

static void fill_share(ww_plan *plan, size_t i, const struct ww_alloc_share *s, const struct ww_alloc_row_result *rows)
{
	const struct job *j = &plan->jobs[i];
	double charge_w = j->curve.p0_w * (1 - s->cut_frac), lowest = 1 - j->least_charge_w / j->curve.p0_w;
	plan->shares[i] = (struct ww_plan_share){
		.cap_w = cap_of(j, plan->problem.account, charge_w), .charge_w = charge_w, .p0_w = j->p0_w, .t0 = j->t0,
		.cut_frac = cut_in_draw(j, s->cut_frac), .equal_cut_frac = cut_in_draw(j, s->equal_cut_frac),
		.throughput_frac = s->throughput_frac, .floor_frac = j->in->floor_frac, .trust = s->trust,
		.limit = limit_of(j, s, lowest), .row = pressing_row(j->in, rows, plan->problem.n_rows)};
}

static double total_throughput(const ww_plan *plan, const struct ww_alloc_share *s)
{
	double sum = 0;
	for (size_t i = 0; i < plan->problem.n_jobs; i++)
		sum += plan->jobs[i].t0 * s[i].throughput_frac;
	return sum;
}

static void fill_results(ww_plan *plan, const ww_alloc *alloc)
{
	const struct ww_alloc_share *s = ww_alloc_shares(alloc);
	const struct ww_alloc_row_result *rows = ww_alloc_rows(alloc);
	struct ww_alloc_summary summary = ww_alloc_result(alloc);
	double weight = 0;
	for (size_t i = 0; i < plan->problem.n_jobs; i++) {
		fill_share(plan, i, &s[i], rows);
		plan->total.relative += plan->problem.jobs[i].weight * s[i].throughput_frac;
		weight += plan->problem.jobs[i].weight;
	}
	for (size_t r = 0; r <= plan->problem.n_rows; r++)
		plan->results[r] = (struct ww_plan_row){rows[r], NAN};
	plan->total.outcome = summary.outcome;
	plan->total.power_w = rows[plan->problem.n_rows].power_w;
	plan->total.throughput = total_throughput(plan, s);
	plan->total.relative /= weight;
	plan->total.bound_gap_frac = summary.bound_gap_frac;
	plan->total.shrink = summary.shrink;
}

/* ---- What a watt is worth ------------------------------------------------------------------------------------------------- */

/* Throughput gained per watt when the row has a little more. */
static ww_status probe_row(ww_plan *plan, ww_alloc *alloc, size_t r, struct ww_error *err)
{
	double more_w = PROBE_SHARE * fmax(plan->results[r].result.power_w, 1), budget_w = plan->total.budget_w;
	bool is_budget = r == plan->problem.n_rows;
	if (!is_budget)
		plan->rows[r].budget_w += more_w;
	ww_status status = solve(plan, alloc, is_budget ? budget_w + more_w : budget_w, err);
	if (!is_budget)
		plan->rows[r].budget_w -= more_w;
	if (!status)
		plan->results[r].tokens_per_w =
			(total_throughput(plan, ww_alloc_shares(alloc)) - plan->total.throughput) / more_w;
	return status;
}

static ww_status probe_rows(ww_plan *plan, ww_alloc *alloc, struct ww_error *err)
{
	ww_status status = WW_OK;
	for (int done = 0; !status && done < PRICED_ROWS; done++) {
		size_t best = SIZE_MAX;
		for (size_t r = 0; r <= plan->problem.n_rows; r++)
			if (plan->results[r].result.price > 0 && isnan(plan->results[r].tokens_per_w) &&
			    (best == SIZE_MAX || plan->results[r].result.price > plan->results[best].result.price))
				best = r;
		if (best == SIZE_MAX)
			break;
		status = probe_row(plan, alloc, best, err);
	}
	return status;
}

/* ---- Interface ---------------------------------------------------------------------------------------------------------- */

static ww_status check_problem(const struct ww_plan_problem *p, struct ww_error *err)
{
	if (p->n_jobs == 0)
		return ww_fail(err, WW_ERR_NO_DATA, "there is no job to plan for");
	if (isnan(p->budget_w) && !(p->cut_frac >= 0 && p->cut_frac < 1))
		return ww_fail(err, WW_ERR_RANGE, "cut %g: must be in [0, 1)", p->cut_frac);
	for (size_t i = 0; i < p->n_jobs; i++) {
		const struct ww_plan_job *j = &p->jobs[i];
		if (j->min_w > j->max_w)
			return ww_fail(err, WW_ERR_RANGE, "job %s: min %g W is above max %g W", j->name, j->min_w, j->max_w);
	}
	return WW_OK;
}

static ww_plan *make_plan(const struct ww_plan_problem *problem)
{
	ww_plan *plan = calloc(1, sizeof *plan);
	if (!plan)
		return NULL;
	plan->problem = *problem;
	plan->jobs = calloc(problem->n_jobs, sizeof *plan->jobs);
	plan->asks = calloc(problem->n_jobs, sizeof *plan->asks);
	plan->shares = calloc(problem->n_jobs, sizeof *plan->shares);
	plan->rows = calloc(problem->n_rows + 1, sizeof *plan->rows);
	plan->results = calloc(problem->n_rows + 1, sizeof *plan->results);
	if (plan->jobs && plan->asks && plan->shares && plan->rows && plan->results)
		return plan;
	ww_plan_destroy(plan);
	return NULL;
}

ww_status ww_plan_create(const struct ww_plan_problem *problem, ww_plan **out, struct ww_error *err)
{
	ww_alloc *alloc = NULL;
	ww_status status = check_problem(problem, err);
	if (status)
		return status;
	ww_plan *plan = make_plan(problem);
	if (!plan)
		return ww_fail(err, WW_ERR_NOMEM, "out of memory for %zu jobs", problem->n_jobs);
	status = build(plan, err);
	if (!status)
		status = ww_alloc_create(&alloc, err);
	if (!status)
		status = solve(plan, alloc, plan->total.budget_w, err);
	if (!status) {
		fill_results(plan, alloc);
		status = probe_rows(plan, alloc, err);
	}
	ww_alloc_destroy(alloc);
	if (status)
		ww_plan_destroy(plan);
	else
		*out = plan;
	return status;
}

void ww_plan_destroy(ww_plan *plan)
{
	if (!plan)
		return;
	for (size_t i = 0; plan->jobs && i < plan->problem.n_jobs; i++)
		free(plan->jobs[i].cap_w);
	free(plan->jobs);
	free(plan->asks);
	free(plan->shares);
	free(plan->rows);
	free(plan->results);
	free(plan);
}

const struct ww_plan_share *ww_plan_shares(const ww_plan *plan)
{
	return plan->shares;
}

const struct ww_plan_row *ww_plan_rows(const ww_plan *plan)
{
	return plan->results;
}

struct ww_plan_total ww_plan_total(const ww_plan *plan)
{
	return plan->total;
}
