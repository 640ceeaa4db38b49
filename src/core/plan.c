/* SPDX-License-Identifier: Apache-2.0 */
/* Caps for measured jobs: from sweeps to curves, through the allocator, and back to watts with what limits each job. */
#include "core/core_internal.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_SWEEPS 100
#define PRICED_ROWS 32   /* rows whose worth of a watt is worked out; the highest prices first */
#define PROBE_SHARE 1e-3 /* of a row's power, for the worth of a watt */
#define NEAR 1e-7        /* two cuts are the same */
#define FULL_SHARE 1e-9  /* of a row's budget, what a full row may leave */

struct job {
	const struct ww_plan_job *in;
	double p0_w, t0;
	double floor_frac; /* the promise as the curve sees it: the curve may run above the points it is drawn through */
	double least_w, least_charge_w,
		most_charge_w; /* lowest cap, its charge, the charge of the highest cap allowed */
	int fixed;             /* not cut: WW_PLAN_NOT_LIMITED, _NOT_MEASURED or _LOWEST; else WW_PLAN_PRICE */
	double fixed_cap_w;    /* its cap then */
	size_t n_caps;
	double *cap_w, *draw_w,
		*charge_w; /* ascending caps, running maxima of the draw and of what the account counts */
	struct ww_curve curve;
	struct loss_hull measured; /* monotone losses at the measured cuts; n = 0 for jobs that are not cut */
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

static void fill_caps(struct job *j, const struct pooled_sweep *sweep, enum ww_account account)
{
	j->n_caps = sweep->n;
	for (size_t i = 0; i < sweep->n; i++) {
		const struct pooled *p = &sweep->p[sweep->n - 1 - i];
		double charge_w = account == WW_ACCOUNT_CAP ? cap_charge(p) : p->power_w;
		j->cap_w[i] = p->cap_w;
		j->draw_w[i] = i ? fmax(p->power_w, j->draw_w[i - 1]) : p->power_w;
		j->charge_w[i] = i ? fmax(charge_w, j->charge_w[i - 1]) : charge_w;
	}
}

/* A curve for a job that is not cut: charged in full whatever the price. */
static void make_fixed(struct job *j, int why, double cap_w, enum ww_account account)
{
	double charge_w = account == WW_ACCOUNT_CAP ? cap_w : fmin(cap_w, j->p0_w);
	j->fixed = why;
	j->fixed_cap_w = cap_w;
	j->least_charge_w = j->most_charge_w = charge_w;
	j->curve = (struct ww_curve){.p0_w = charge_w, .t0_tps = j->t0, .status = WW_PFI_TOO_FEW_POINTS};
	curve_add_knot(&j->curve, 0, 1);
	curve_add_knot(&j->curve, 1, 2);
}

static double allowed_cap(const struct ww_plan_job *in, double cap_w)
{
	return fmax(fmin(cap_w, in->max_w), in->min_w); /* NAN limits nothing */
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
	if (pfi->status == WW_PFI_NOT_POWER_LIMITED)
		make_fixed(j, WW_PLAN_NOT_LIMITED, allowed_cap(j->in, free_cap(j)), account);
	else
		make_fixed(j, WW_PLAN_NOT_MEASURED, allowed_cap(j->in, j->cap_w[j->n_caps - 1]), account);
}

/* Of two arrays over the caps, y where x is `at`; in proportion below the lowest. */
static double look_up(const struct job *j, const double *x, const double *y, double at)
{
	assert(x && y); /* every job has its caps once the plan is built */
	return at < x[0] ? y[0] * at / x[0] : interpolate(x, y, j->n_caps, at);
}

/* What a cap is charged: at least itself where caps are counted, else the draw measured under it. */
static double charge_at(const struct job *j, enum ww_account account, double cap_w)
{
	double charge_w = look_up(j, j->cap_w, j->charge_w, cap_w);
	return account == WW_ACCOUNT_CAP ? fmax(cap_w, charge_w) : charge_w;
}

/* Throughput kept at a cut, as measured; as the curve says below what was measured. */
static double kept_at(const struct job *j, double cut)
{
	const struct loss_hull *m = &j->measured;
	double loss = m->n && cut <= m->cut[m->n - 1] ? interpolate(m->cut, m->loss, m->n, cut)
	                                              : ww_curve_loss(&j->curve, cut);
	return cut <= 0 ? 1 : fmax(0, 1 - loss);
}

/* The loss on the curve at the deepest measured cut that keeps the floor. */
static double floor_on_curve(const struct job *j)
{
	const struct loss_hull *m = &j->measured;
	double loss = 1 - j->in->floor_frac;
	size_t i = 0;
	if (m->n == 0 || j->in->floor_frac <= 0)
		return j->in->floor_frac;
	while (i + 1 < m->n && m->loss[i + 1] <= loss)
		i++;
	if (i + 1 == m->n)
		return j->in->floor_frac; /* all that was measured keeps it */
	double share = (loss - m->loss[i]) / (m->loss[i + 1] - m->loss[i]);
	double cut = m->cut[i] + share * (m->cut[i + 1] - m->cut[i]);
	return fmin(1, 1 - ww_curve_loss(&j->curve, cut));
}

/* The lowest cap is a measured one, unless exploring below it was asked for, or no higher one is allowed. */
static void set_limits(struct job *j, const struct ww_plan_problem *p)
{
	double min_w = j->in->min_w, max_w = j->in->max_w;
	j->least_w = j->cap_w[0];
	if (min_w > j->least_w || (p->explore && min_w < j->least_w))
		j->least_w = min_w;
	j->least_w = fmin(j->least_w, max_w);
	j->least_charge_w = charge_at(j, p->account, j->least_w);
	j->most_charge_w = isnan(max_w) ? INFINITY : charge_at(j, p->account, max_w);
}

static ww_status curve_of_job(struct job *j, const struct pooled_sweep *sweep, const struct ww_plan_problem *p,
                              struct ww_error *err)
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
	set_limits(j, p);
	double noise = cautious_noise(j->in->points, j->in->n, &pfi, p->noise_frac);
	status = curve_of_sweep(sweep, p->account, noise, &j->curve, &j->measured, err);
	if (status)
		return status;
	j->floor_frac = floor_on_curve(j);
	if (j->least_charge_w >= j->curve.p0_w)
		make_fixed(j, WW_PLAN_LOWEST, j->least_w, p->account);
	j->curve.t0_tps = j->t0;
	return WW_OK;
}

static ww_status take_job(struct job *j, const struct ww_plan_job *in, const struct ww_plan_problem *p,
                          struct ww_error *err)
{
	struct pooled_sweep sweep = {0};
	j->in = in;
	j->floor_frac = in->floor_frac;
	j->cap_w = malloc(3 * (in->n + 1) * sizeof *j->cap_w);
	ww_status status = j->cap_w ? WW_OK : ww_fail(err, WW_ERR_NOMEM, "out of memory");
	if (!status)
		status = pool_create(in->points, in->n, ALL_CAPS, &sweep, err);
	if (!status && sweep.n == 0)
		status = ww_fail(err, WW_ERR_NO_DATA, "job %s: none of its measurements is left; widen the caps",
		                 in->name);
	if (!status && in->min_w > sweep.p[0].cap_w)
		status = ww_fail(err, WW_ERR_RANGE, "job %s: min %g W is above the highest cap measured, %g W",
		                 in->name, in->min_w, sweep.p[0].cap_w);
	if (!status) {
		j->draw_w = j->cap_w + in->n + 1;
		j->charge_w = j->draw_w + in->n + 1;
		fill_caps(j, &sweep, p->account);
		status = curve_of_job(j, &sweep, p, err);
	}
	pool_finish(&sweep);
	return status;
}

/* ---- The allocator's problem -------------------------------------------------------------------------------------------- */

static struct ww_alloc_job ask_for(const struct job *j)
{
	const struct ww_plan_job *in = j->in;
	struct ww_alloc_job ask = {.gpus = in->gpus,
	                           .n_rows = in->n_rows,
	                           .tier = in->tier,
	                           .weight = in->weight,
	                           .floor_frac = j->floor_frac,
	                           .min_w = j->least_charge_w,
	                           .curve = &j->curve,
	                           .rows = in->rows};
	if (j->most_charge_w < j->curve.p0_w)
		ask.max_w = fmax(j->most_charge_w, ask.min_w);
	return ask;
}

struct named {
	const char *name;
	size_t at;
};

static int by_name(const void *a, const void *b)
{
	const struct named *p = a, *q = b;
	int order = strcmp(p->name, q->name);
	return order ? order : (p->at > q->at) - (p->at < q->at);
}

/* Ties are broken by name, not by the order of the jobs. */
static ww_status number_jobs(ww_plan *plan, struct ww_error *err)
{
	size_t n = plan->problem.n_jobs;
	struct named *names = malloc((n + 1) * sizeof *names);
	if (!names)
		return ww_fail(err, WW_ERR_NOMEM, "out of memory for %zu jobs", n);
	for (size_t i = 0; i < n; i++)
		names[i] = (struct named){plan->problem.jobs[i].name, i};
	qsort(names, n, sizeof *names, by_name);
	for (size_t i = 0; i < n; i++)
		plan->asks[names[i].at].id = i;
	free(names);
	return WW_OK;
}

static ww_status build(ww_plan *plan, struct ww_error *err)
{
	const struct ww_plan_problem *p = &plan->problem;
	for (size_t i = 0; i < p->n_jobs; i++) {
		ww_status status = take_job(&plan->jobs[i], &p->jobs[i], p, err);
		if (status)
			return status;
		plan->asks[i] = ask_for(&plan->jobs[i]);
		plan->total.baseline_w += p->jobs[i].gpus * plan->jobs[i].p0_w;
	}
	for (size_t r = 0; r < p->n_rows; r++)
		plan->rows[r] = p->rows[r];
	plan->total.budget_w = isnan(p->budget_w) ? (1 - p->cut_frac) * plan->total.baseline_w : p->budget_w;
	return number_jobs(plan, err);
}

static ww_status solve(ww_plan *plan, ww_alloc *alloc, double budget_w, struct ww_error *err)
{
	struct ww_alloc_problem problem = {.jobs = plan->asks,
	                                   .n_jobs = plan->problem.n_jobs,
	                                   .rows = plan->rows,
	                                   .n_rows = plan->problem.n_rows,
	                                   .budget_w = budget_w,
	                                   .objective = plan->problem.objective,
	                                   .explore = plan->problem.explore};
	ww_status status = ww_alloc_set(alloc, &problem, err);
	if (!status && !plan->problem.equal)
		ww_alloc_run(alloc, MOST_SWEEPS);
	return status;
}

/* ---- Back to watts and words ---------------------------------------------------------------------------------------------- */

static double cap_of(const struct job *j, enum ww_account account, double charge_w)
{
	if (j->fixed != WW_PLAN_PRICE)
		return j->fixed_cap_w;
	double cap_w = look_up(j, j->charge_w, j->cap_w, charge_w);
	return account == WW_ACCOUNT_CAP ? fmin(cap_w, charge_w) : allowed_cap(j->in, cap_w);
}

static int limit_of(const struct job *j, const struct ww_alloc_share *s, bool unchanged)
{
	double p0_w = j->curve.p0_w, lowest = 1 - j->least_charge_w / p0_w, highest = 1 - j->most_charge_w / p0_w;
	bool at_floor = j->floor_frac > 0 && s->throughput_frac <= j->floor_frac + NEAR;
	if (j->fixed != WW_PLAN_PRICE)
		return j->fixed;
	if (highest > 0 && s->cut_frac <= highest + NEAR)
		return WW_PLAN_HIGHEST;
	if (s->throughput_frac < j->floor_frac - NEAR)
		return WW_PLAN_RELAXED;
	if (s->cut_frac <= NEAR)
		return at_floor && !unchanged ? WW_PLAN_FLOOR : WW_PLAN_UNCUT;
	if (at_floor)
		return WW_PLAN_FLOOR;
	if (s->cut_frac >= lowest - NEAR && (j->in->min_w >= j->cap_w[0] || j->least_w < j->cap_w[0]))
		return WW_PLAN_LOWEST;
	return s->cut_frac >= fmin(lowest, s->box_cut_frac) - NEAR ? WW_PLAN_DEEPEST : WW_PLAN_PRICE;
}

static bool is_full(const ww_plan *plan, const struct ww_alloc_row_result *rows, size_t r)
{
	double budget_w = r < plan->problem.n_rows ? plan->rows[r].budget_w : plan->total.budget_w;
	return rows[r].price > 0 || (rows[r].power_w > 0 && rows[r].power_w >= (1 - FULL_SHARE) * budget_w);
}

/* The row with the highest price for the job, before the budget; a full row that needs no price holds this job alone. */
static size_t pressing_row(const ww_plan *plan, const struct ww_plan_job *in, const struct ww_alloc_row_result *rows)
{
	size_t n_rows = plan->problem.n_rows, most = is_full(plan, rows, n_rows) ? n_rows : SIZE_MAX;
	double press = 0;
	for (uint32_t i = 0; i < in->n_rows; i++) {
		size_t r = in->rows[i].row;
		double here = rows[r].price * in->rows[i].gpus;
		if (here == 0 && is_full(plan, rows, r))
			return r;
		if (here > press) {
			press = here;
			most = r;
		}
	}
	return most;
}

static double cut_in_draw(const struct job *j, double cut)
{
	return fmax(0, 1 - j->curve.p0_w * (1 - cut) / j->p0_w);
}

/* A draw a little above a cap that the board holds is noise. */
static double expected_draw(const ww_plan *plan, const struct job *j, double cap_w, double charge_w)
{
	double draw_w = fmin(j->p0_w, look_up(j, j->cap_w, j->draw_w, cap_w));
	return plan->problem.account == WW_ACCOUNT_CAP ? fmin(draw_w, charge_w) : draw_w;
}

/* Throughput kept, a loss counted by the job's weight. */
static double by_weight(const struct ww_plan_job *in, double kept)
{
	return 1 - in->weight * (1 - kept);
}

static void fill_share(ww_plan *plan, size_t i, const struct ww_alloc_share *s, const struct ww_alloc_row_result *rows)
{
	const struct job *j = &plan->jobs[i];
	double charge_w = j->curve.p0_w * (1 - s->cut_frac), cap_w = cap_of(j, plan->problem.account, charge_w);
	plan->shares[i] = (struct ww_plan_share){.cap_w = cap_w,
	                                         .charge_w = charge_w,
	                                         .draw_w = expected_draw(plan, j, cap_w, charge_w),
	                                         .p0_w = j->p0_w,
	                                         .t0 = j->t0,
	                                         .cut_frac = cut_in_draw(j, s->cut_frac),
	                                         .equal_cut_frac = cut_in_draw(j, s->equal_cut_frac),
	                                         .throughput_frac = kept_at(j, s->cut_frac),
	                                         .floor_frac = j->in->floor_frac,
	                                         .trust = s->trust,
	                                         .limit = limit_of(j, s, plan->total.outcome == WW_OUTCOME_UNCHANGED),
	                                         .row = pressing_row(plan, j->in, rows)};
}

static double total_throughput(const ww_plan *plan, const struct ww_alloc_share *s)
{
	double sum = 0;
	for (size_t i = 0; i < plan->problem.n_jobs; i++)
		sum += plan->jobs[i].t0 * kept_at(&plan->jobs[i], s[i].cut_frac);
	return sum;
}

static void fill_results(ww_plan *plan, const ww_alloc *alloc)
{
	const struct ww_alloc_share *s = ww_alloc_shares(alloc);
	const struct ww_alloc_row_result *rows = ww_alloc_rows(alloc);
	struct ww_alloc_summary summary = ww_alloc_result(alloc);
	double weight = 0;
	plan->total.outcome = summary.outcome;
	plan->total.least = plan->total.equal_least = 1;
	for (size_t i = 0; i < plan->problem.n_jobs; i++) {
		double share = plan->problem.jobs[i].weight, equal = kept_at(&plan->jobs[i], s[i].equal_cut_frac);
		fill_share(plan, i, &s[i], rows);
		plan->total.draw_w += plan->problem.jobs[i].gpus * plan->shares[i].draw_w;
		plan->total.relative += share * plan->shares[i].throughput_frac;
		plan->total.equal_relative += share * equal;
		plan->total.equal_throughput += plan->jobs[i].t0 * equal;
		plan->total.least =
			fmin(plan->total.least, by_weight(&plan->problem.jobs[i], plan->shares[i].throughput_frac));
		plan->total.equal_least = fmin(plan->total.equal_least, by_weight(&plan->problem.jobs[i], equal));
		weight += share;
	}
	for (size_t i = 0; i < plan->problem.n_jobs; i++)
		if (plan->shares[i].limit == WW_PLAN_HIGHEST &&
		    plan->shares[i].throughput_frac < plan->shares[i].floor_frac - NEAR)
			plan->total.outcome = WW_OUTCOME_INFEASIBLE;
	for (size_t r = 0; r <= plan->problem.n_rows; r++)
		plan->results[r] = (struct ww_plan_row){rows[r], is_full(plan, rows, r), NAN};
	plan->total.power_w = rows[plan->problem.n_rows].power_w;
	plan->total.throughput = total_throughput(plan, s);
	plan->total.relative /= weight;
	plan->total.equal_relative /= weight;
	plan->total.bound_gap_frac = summary.bound_gap_frac;
	plan->total.shrink = summary.shrink;
}

/* ---- What a watt is worth ------------------------------------------------------------------------------------------------- */

/* Throughput gained per watt when the row has a little more. */
static ww_status probe_row(ww_plan *plan, ww_alloc *alloc, size_t r, struct ww_error *err)
{
	double more_w = PROBE_SHARE * fmax(plan->results[r].result.power_w, 1), budget_w = plan->total.budget_w;
	struct ww_alloc_row before = plan->rows[r];
	bool is_budget = r == plan->problem.n_rows;
	plan->rows[r].budget_w += more_w;
	ww_status status = solve(plan, alloc, is_budget ? budget_w + more_w : budget_w, err);
	plan->rows[r] = before;
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
			if (plan->results[r].full && plan->results[r].result.over_w == 0 &&
			    isnan(plan->results[r].tokens_per_w) &&
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
			return ww_fail(err, WW_ERR_RANGE, "job %s: min %g W is above max %g W", j->name, j->min_w,
			               j->max_w);
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
	for (size_t i = 0; plan->jobs && i < plan->problem.n_jobs; i++) {
		free(plan->jobs[i].cap_w);
		hull_finish(&plan->jobs[i].measured);
	}
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
