/* SPDX-License-Identifier: Apache-2.0 */
/* One budget divided among jobs: two jobs by hand, then what must hold for any seeded random fleet. */
#include "fleet.h"

static double reach_of(const struct ww_alloc_job *j)
{
	double lo = 0, hi = fmax(0, 1 - j->min_w / j->curve->p0_w);
	if (j->floor_frac == 0 || ww_curve_loss(j->curve, hi) <= 1 - j->floor_frac)
		return hi;
	for (int i = 0; i < 200; i++) {
		double mid = (lo + hi) / 2;
		if (ww_curve_loss(j->curve, mid) <= 1 - j->floor_frac)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

/* Random jobs with power laws of known or unknown exponent, GPU counts, weights, floors and lowest draws; cut is of the
 * sum of what they draw. `exact` curves have no uncertainty. */
static void random_fleet(struct ww_rng *rng, struct fleet *f, double cut, bool exact)
{
	*f = (struct fleet){0};
	size_t n = 1 + ww_rng_below(rng, MOST);
	for (size_t i = 0; i < n; i++) {
		double l30 = 0.3 * ww_rng_uniform(rng), k = 1.2 + 2 * ww_rng_uniform(rng);
		struct ww_fit_point p[2] = {{0.15, l30 * pow(0.5, k)}, {0.35, l30 * pow(0.35 / 0.3, k)}};
		struct ww_curve c;
		struct ww_error err;
		assert_int_equal(
			ww_curve_fit(&(struct ww_fit){p, 2, 0.01, 200 + 500 * ww_rng_uniform(rng), 1000}, &c, &err),
			WW_OK);
		if (exact)
			c.var_a = c.var_b = c.cov_ab = 0;
		add(f, c);
		f->job[i].gpus = 1 + ww_rng_below(rng, 64);
		f->job[i].weight = 0.5 + 2 * ww_rng_uniform(rng);
		f->job[i].min_w = ww_rng_below(rng, 2) ? c.p0_w * 0.4 * ww_rng_uniform(rng) : 0;
		f->job[i].floor_frac = (const double[]){0, 0, 0.5, 0.75, 0.9}[ww_rng_below(rng, 5)];
	}
	f->budget_w = (1 - cut) * baseline_w(f);
}

/* ---- By hand --------------------------------------------------------------------------------------------------------- */

/* d^2 and 3 d^2 on 100 W each, 40 W to take: 2 d1 = 6 d2 and d1 + d2 = 0.4. */
static void two_jobs_share_by_their_marginals(void **state)
{
	struct fleet f = {0};
	(void)state;
	add(&f, quadratic(100, 0, 1, 0.9));
	add(&f, quadratic(100, 0, 3, 0.9));
	f.budget_w = 160;
	struct answer a = solve(&f);
	assert_int_equal(a.summary.outcome, WW_OUTCOME_OPTIMAL);
	assert_near(a.share[0].cut_frac, 0.3, 1e-9);
	assert_near(a.share[1].cut_frac, 0.1, 1e-9);
	assert_near(a.share[0].equal_cut_frac, 0.2, 1e-9);
	assert_near(a.share[0].trust, 1, 0);
	assert_near(a.summary.shrink, 1, 0);
	f.job[1].weight = 1.0 / 3; /* now both are the same per watt */
	a = solve(&f);
	assert_near(a.share[0].cut_frac, 0.2, 1e-9);
	assert_near(a.share[1].cut_frac, 0.2, 1e-9);
}

/* 2 d1/100 = 2 d2/300 and 100 d1 + 300 d2 = 100: the dear watts of the small job are spared. */
static void watts_of_large_jobs_are_cheaper(void **state)
{
	struct fleet f = {0};
	(void)state;
	add(&f, quadratic(100, 0, 1, 0.9));
	add(&f, quadratic(100, 0, 1, 0.9));
	f.job[1].gpus = 3;
	f.budget_w = 300;
	struct answer a = solve(&f);
	assert_near(a.share[0].cut_frac, 0.1, 1e-9);
	assert_near(a.share[1].cut_frac, 0.3, 1e-9);
	assert_near(a.share[0].equal_cut_frac, 0.25, 1e-9);
	assert_near(a.share[1].equal_cut_frac, 0.25, 1e-9);
}

/* d1 = 0.3 would be best, but only 0.25 was ever measured; the rest falls on the other. */
static void no_job_leaves_its_box(void **state)
{
	struct fleet f = {0};
	(void)state;
	add(&f, quadratic(100, 0, 1, 0.25));
	add(&f, quadratic(100, 0, 3, 0.25));
	f.budget_w = 160;
	struct answer a = solve(&f);
	assert_near(a.share[0].box_cut_frac, 0.25, 0);
	assert_near(a.share[0].cut_frac, 0.25, 1e-9);
	assert_near(a.share[1].cut_frac, 0.15, 1e-9);
	f.budget_w = 120; /* the equal cut of 0.4 is deeper than anything measured: that is the box */
	a = solve(&f);
	assert_near(a.share[0].box_cut_frac, 0.4, 1e-9);
	assert_near(a.share[0].cut_frac, 0.4, 1e-9);
}

/* A floor of 0.96 on d^2 ends at d = 0.2, a lowest draw of 90 W at 0.1. */
static void floors_and_lowest_draws_end_a_cut(void **state)
{
	struct fleet f = {0};
	(void)state;
	add(&f, quadratic(100, 0, 1, 0.9));
	add(&f, quadratic(100, 0, 1, 0.9));
	add(&f, quadratic(100, 0, 1, 0.9));
	f.job[0].floor_frac = 0.96;
	f.job[1].min_w = 90;
	f.budget_w = 300 - 75;
	struct answer a = solve(&f);
	assert_near(a.share[0].cut_frac, 0.2, 1e-9);
	assert_near(a.share[1].cut_frac, 0.1, 1e-9);
	assert_near(a.share[2].cut_frac, 0.45, 1e-9);
	assert_near(a.share[0].equal_cut_frac, 0.2, 1e-9);
	assert_near(a.share[1].equal_cut_frac, 0.1, 1e-9);
	assert_near(a.share[2].equal_cut_frac, 0.45, 1e-9);
	f.job[0].floor_frac = 1;
	f.budget_w = 300 - 50;
	a = solve(&f);
	assert_near(a.share[0].cut_frac, 0, 0);
	assert_near(a.share[2].cut_frac, 0.4, 1e-9);
}

/* Floor 0.96 on d^2 leaves 20 W, lowest draws leave 120 W: 10 W of 150 W are missing, and the floor gives way for them. */
static void an_unreachable_budget_tells_the_watts(void **state)
{
	struct fleet f = {0};
	(void)state;
	add(&f, quadratic(100, 0, 1, 0.9));
	add(&f, quadratic(200, 0, 1, 0.3));
	f.job[0].floor_frac = 0.96;
	f.job[1].min_w = 80;
	f.budget_w = 150;
	struct answer a = solve(&f);
	assert_int_equal(a.summary.outcome, WW_OUTCOME_INFEASIBLE);
	assert_near(a.budget.missing_w, 10, 1e-9);
	assert_near(a.budget.over_w, 0, 0);
	assert_near(a.share[0].cut_frac, 0.3, 1e-9);
	assert_near(a.share[1].cut_frac, 0.6, 1e-9);
	assert_near(a.share[0].floor_frac, 1 - 0.09, 1e-9);
	f.budget_w = 160; /* just reached */
	a = solve(&f);
	assert_int_equal(a.summary.outcome, WW_OUTCOME_OPTIMAL);
	assert_near(a.budget.missing_w, 0, 0);
	assert_near(drawn_w(&f, &a), 160, 1e-7);
	f.job[0].min_w = 70; /* 30 W and 120 W: 60 W are missing, 50 W whatever gives way */
	f.budget_w = 100;
	a = solve(&f);
	assert_near(a.budget.missing_w, 60, 1e-9);
	assert_near(a.budget.over_w, 50, 1e-9);
	assert_near(a.share[0].cut_frac, 0.3, 1e-9);
	assert_near(a.share[1].cut_frac, 0.6, 1e-9);
}

static void a_slack_budget_changes_nothing(void **state)
{
	struct fleet f = {0};
	(void)state;
	add(&f, quadratic(100, 0, 1, 0.9));
	for (int i = 0; i < 2; i++) {
		f.budget_w = 100 + 50 * i;
		struct answer a = solve(&f);
		assert_int_equal(a.summary.outcome, WW_OUTCOME_UNCHANGED);
		assert_near(a.share[0].cut_frac, 0, 0);
		assert_near(a.budget.missing_w, 0, 0);
	}
	assert_string_equal(ww_outcome_name(WW_OUTCOME_OPTIMAL), "optimal");
	assert_string_equal(ww_outcome_name(WW_OUTCOME_INFEASIBLE), "infeasible");
	assert_string_equal(ww_outcome_name(WW_OUTCOME_UNCHANGED), "unchanged");
}

static void no_jobs_need_no_watts(void **state)
{
	struct fleet f = {.budget_w = 10};
	(void)state;
	struct answer a = solve(&f);
	assert_int_equal(a.summary.outcome, WW_OUTCOME_UNCHANGED);
}

/* After set and before run the shares are the equal cut. */
static void set_alone_is_the_equal_cut(void **state)
{
	struct fleet f = {0};
	struct ww_error err;
	(void)state;
	add(&f, quadratic(100, 0, 1, 0.9));
	add(&f, quadratic(100, 0, 3, 0.9));
	f.budget_w = 160;
	ww_alloc *alloc = create();
	assert_int_equal(set(alloc, &f, &err), WW_OK);
	struct answer a = answer_of(alloc, 2);
	assert_near(a.share[0].cut_frac, 0.2, 1e-9);
	assert_near(a.share[1].cut_frac, 0.2, 1e-9);
	ww_alloc_destroy(alloc);
	ww_alloc_destroy(NULL);
}

/* ---- Any fleet ------------------------------------------------------------------------------------------------------- */

static const double cuts[] = {0.02, 0.1, 0.2, 0.3, 0.45, 0.7};

static void check_shares(const struct fleet *f, const struct answer *a)
{
	bool kept = a->summary.outcome != WW_OUTCOME_INFEASIBLE;
	for (size_t i = 0; i < f->n; i++) {
		const struct ww_alloc_share *s = &a->share[i];
		const struct ww_alloc_job *j = &f->job[i];
		double reach = reach_of(j), loss = ww_curve_loss(j->curve, s->cut_frac);
		assert_true(isfinite(s->cut_frac) && s->cut_frac >= 0);
		assert_true(s->cut_frac <= s->box_cut_frac * (1 + 1e-12));
		assert_true(s->trust >= 0 && s->trust <= 1);
		assert_near(s->throughput_frac, fmax(0, 1 - loss), 1e-12 * (1 + loss));
		assert_true(j->curve->p0_w * (1 - s->cut_frac) >= fmin(j->min_w, j->curve->p0_w) - 1e-9);
		assert_true(fmax(0, 1 - loss) >= s->floor_frac - 1e-9 * (1 + loss));
		assert_true(s->floor_frac <= j->floor_frac);
		if (!kept)
			continue;
		assert_true(s->floor_frac >= j->floor_frac - 1e-9 * (1 + ww_curve_slope(j->curve, reach)));
		assert_true(s->cut_frac <= reach + 1e-9);
		double box = fmin(reach, fmax(f->curve[i].max_cut_frac, s->equal_cut_frac));
		assert_true(s->box_cut_frac <= box + 1e-9);
		if (ww_curve_loss(j->curve, box) <= 1)
			assert_near(s->box_cut_frac, box, 1e-9);
		else
			assert_true(s->box_cut_frac <= s->equal_cut_frac ||
			            ww_curve_loss(j->curve, s->box_cut_frac) <= 1 + 1e-9);
	}
}

/* The equal cut solved by sorting the reaches: below the k-th, k jobs are at their end and the others at x. */
static double equal_cut(const struct fleet *f, double need_w)
{
	double done = 0, x = 0;
	for (;;) {
		double watts = 0, next = INFINITY;
		for (size_t i = 0; i < f->n; i++)
			if (reach_of(&f->job[i]) > x) {
				watts += job_watts(&f->job[i]);
				next = fmin(next, reach_of(&f->job[i]));
			}
		if (watts <= 0)
			return x;
		if (done + watts * (next - x) >= need_w)
			return x + (need_w - done) / watts;
		done += watts * (next - x);
		x = next;
	}
}

static void check_equal(const struct fleet *f, const struct answer *a)
{
	double x = equal_cut(f, baseline_w(f) - f->budget_w);
	for (size_t i = 0; i < f->n; i++)
		assert_near(a->share[i].equal_cut_frac, fmin(x, reach_of(&f->job[i])), 1e-8);
}

/* Watts that cannot be cut: with all floors kept, or with every job at its lowest draw. */
static double out_of_reach(const struct fleet *f, bool floors)
{
	double w = baseline_w(f) - f->budget_w;
	for (size_t i = 0; i < f->n; i++) {
		struct ww_alloc_job j = f->job[i];
		j.floor_frac = floors ? j.floor_frac : -INFINITY;
		w -= job_watts(&j) * reach_of(&j);
	}
	return fmax(0, w);
}

static void the_budget_is_kept_to_the_watt(void **state)
{
	struct ww_rng rng;
	int seen[3] = {0};
	(void)state;
	ww_rng_seed(&rng, 1);
	for (int i = 0; i < 600; i++) {
		struct fleet f;
		random_fleet(&rng, &f, cuts[i % 6], i & 1);
		struct answer a = solve(&f);
		seen[a.summary.outcome]++;
		check_shares(&f, &a);
		assert_near(a.budget.missing_w, out_of_reach(&f, true), 1e-6);
		assert_near(a.budget.over_w, out_of_reach(&f, false), 1e-6);
		assert_near_rel(drawn_w(&f, &a), f.budget_w + a.budget.over_w, 1e-9);
		assert_true(drawn_w(&f, &a) <= (f.budget_w + a.budget.over_w) * (1 + 1e-12));
		assert_near_rel(a.budget.power_w, drawn_w(&f, &a), 1e-12);
		if (a.summary.outcome == WW_OUTCOME_OPTIMAL)
			check_equal(&f, &a);
		assert_int_equal(a.summary.outcome == WW_OUTCOME_INFEASIBLE, out_of_reach(&f, true) > 1e-6);
	}
	assert_true(seen[WW_OUTCOME_OPTIMAL] > 300 && seen[WW_OUTCOME_INFEASIBLE] > 30);
}

/* With trust 1: the same marginal loss per watt for all inside their box, a lower one at the box, a higher one uncut. */
static void exact_curves_share_one_price(void **state)
{
	struct ww_rng rng;
	int inside = 0, at_box = 0;
	(void)state;
	ww_rng_seed(&rng, 2);
	for (int i = 0; i < 300; i++) {
		struct fleet f;
		random_fleet(&rng, &f, cuts[i % 5], true);
		struct answer a = solve(&f);
		if (a.summary.outcome != WW_OUTCOME_OPTIMAL || f.n < 2)
			continue;
		assert_near(a.summary.shrink, 1, 1e-12);
		for (size_t k = 0; k < f.n; k++) {
			double d = a.share[k].cut_frac;
			double rate = f.job[k].weight * ww_curve_slope(f.job[k].curve, d) / job_watts(&f.job[k]);
			assert_near(a.share[k].trust, 1, 0);
			if (d >= a.share[k].box_cut_frac - 1e-9) {
				at_box++;
				assert_true(rate <= a.budget.price * (1 + 1e-6));
			} else {
				inside += d > 0;
				assert_true(rate >= a.budget.price * (1 - 1e-6));
				assert_true(d == 0 || rate <= a.budget.price * (1 + 1e-6));
			}
		}
	}
	assert_true(inside > 1000 && at_box > 200);
}

/* No exchange of watts between two jobs gains anything: the same as one price, but without trusting the price. */
static void no_exchange_of_watts_gains(void **state)
{
	struct ww_rng rng;
	(void)state;
	ww_rng_seed(&rng, 3);
	for (int i = 0; i < 200; i++) {
		struct fleet f;
		random_fleet(&rng, &f, cuts[1 + i % 4], true);
		struct answer best = solve(&f);
		if (best.summary.outcome != WW_OUTCOME_OPTIMAL)
			continue;
		for (int k = 0; k < 50; k++) {
			size_t from = ww_rng_below(&rng, (uint32_t)f.n), to = ww_rng_below(&rng, (uint32_t)f.n);
			double watts = baseline_w(&f) * 0.01 * ww_rng_uniform(&rng);
			struct answer other = best;
			other.share[from].cut_frac -= watts / job_watts(&f.job[from]);
			other.share[to].cut_frac += watts / job_watts(&f.job[to]);
			if (from == to || other.share[from].cut_frac < 0 ||
			    other.share[to].cut_frac > other.share[to].box_cut_frac)
				continue;
			assert_true(value(&f, &other) <= value(&f, &best) + 1e-9);
		}
	}
}

/* With exact curves the division is never worse than the equal cut, with uncertain ones not on the curves' own word. */
static void never_worse_than_equal(void **state)
{
	struct ww_rng rng;
	(void)state;
	ww_rng_seed(&rng, 4);
	for (int i = 0; i < 400; i++) {
		struct fleet f;
		random_fleet(&rng, &f, cuts[i % 6], i & 1);
		struct answer a = solve(&f), equal = a;
		for (size_t k = 0; k < f.n; k++)
			equal.share[k].cut_frac = a.share[k].equal_cut_frac;
		assert_true(value(&f, &a) >= value(&f, &equal) - 1e-9);
	}
}

static void more_budget_never_costs(void **state)
{
	struct ww_rng rng;
	(void)state;
	ww_rng_seed(&rng, 5);
	for (int i = 0; i < 100; i++) {
		struct fleet f;
		random_fleet(&rng, &f, 0.6, i & 1);
		double last = -INFINITY, whole = baseline_w(&f);
		for (int step = 0; step <= 30; step++) {
			f.budget_w = whole * (0.4 + 0.02 * step);
			struct answer a = solve(&f);
			assert_true(value(&f, &a) >= last - 1e-9);
			last = value(&f, &a);
		}
	}
}

/* ---- What may not matter --------------------------------------------------------------------------------------------- */

static void the_order_of_jobs_is_irrelevant(void **state)
{
	struct ww_rng rng;
	(void)state;
	ww_rng_seed(&rng, 6);
	for (int i = 0; i < 200; i++) {
		struct fleet f, g;
		size_t order[MOST] = {0};
		random_fleet(&rng, &f, cuts[i % 6], i & 1);
		for (size_t k = 0; k < f.n; k++)
			order[k] = k;
		for (size_t k = f.n; k > 1; k--) {
			size_t other = ww_rng_below(&rng, (uint32_t)k), swap = order[k - 1];
			order[k - 1] = order[other];
			order[other] = swap;
		}
		g = f;
		for (size_t k = 0; k < f.n; k++)
			g.job[k] = f.job[order[k]];
		struct answer a = solve(&f), b = solve(&g);
		for (size_t k = 0; k < f.n; k++)
			assert_memory_equal(&b.share[k], &a.share[order[k]], sizeof a.share[0]);
		assert_int_equal(a.summary.outcome, b.summary.outcome);
		assert_near(a.budget.price, b.budget.price, 0);
		assert_near(a.budget.missing_w, b.budget.missing_w, 0);
	}
}

static void scaling_watts_weights_or_tokens_leaves_the_cuts(void **state)
{
	struct ww_rng rng;
	(void)state;
	ww_rng_seed(&rng, 7);
	for (int i = 0; i < 200; i++) {
		struct fleet f, g;
		random_fleet(&rng, &f, cuts[i % 5], i & 1);
		struct answer a = solve(&f);
		for (int what = 0; what < 3; what++) {
			g = f;
			for (size_t k = 0; k < f.n; k++) {
				g.job[k].curve = &g.curve[k];
				g.curve[k].p0_w *= what == 0 ? 1000 : 1;
				g.job[k].min_w *= what == 0 ? 1000 : 1;
				g.job[k].weight *= what == 1 ? 1e-3 : 1;
				g.curve[k].t0_tps *= what == 2 ? 1e6 : 1;
			}
			g.budget_w *= what == 0 ? 1000 : 1;
			struct answer b = solve(&g);
			for (size_t k = 0; k < f.n; k++)
				assert_near(b.share[k].cut_frac, a.share[k].cut_frac, 1e-7);
		}
	}
}

static void equal_jobs_get_equal_cuts(void **state)
{
	struct ww_rng rng;
	(void)state;
	ww_rng_seed(&rng, 8);
	for (int i = 0; i < 200; i++) {
		struct fleet f;
		random_fleet(&rng, &f, cuts[i % 5], i & 1);
		for (size_t k = 1; k < f.n; k += 2) {
			f.curve[k] = f.curve[k - 1];
			f.job[k] = f.job[k - 1];
			f.job[k].id = 1000 + k;
			f.job[k].curve = &f.curve[k];
		}
		f.budget_w = (1 - cuts[i % 5]) * baseline_w(&f);
		struct answer a = solve(&f);
		for (size_t k = 1; k < f.n; k += 2)
			assert_memory_equal(&a.share[k], &a.share[k - 1], sizeof a.share[0]);
	}
}

static void an_allocator_can_be_used_again(void **state)
{
	struct ww_rng rng;
	struct ww_error err;
	ww_alloc *alloc = create();
	(void)state;
	ww_rng_seed(&rng, 9);
	for (int i = 0; i < 100; i++) {
		struct fleet f;
		random_fleet(&rng, &f, cuts[i % 6], i & 1);
		struct answer fresh = solve(&f);
		assert_int_equal(set(alloc, &f, &err), WW_OK);
		run(alloc);
		struct answer used = answer_of(alloc, f.n);
		for (size_t k = 0; k < f.n;
		     k++) /* its prices start from the last problem's: the same to the gap, not the bit */
			assert_near(used.share[k].cut_frac, fresh.share[k].cut_frac, 1e-4);
		assert_near_rel(value(&f, &used), value(&f, &fresh), 1e-8);
	}
	ww_alloc_destroy(alloc);
}

/* All jobs on the first row, every other on one of two more. */
static void set_fresh(ww_alloc *alloc, struct fleet *f, double part)
{
	struct ww_row_share shares[MOST][2];
	double whole_w = baseline_w(f);
	struct ww_alloc_row rows[3] = {{part * whole_w}, {0.49 * part * whole_w}, {0.5 * whole_w}};
	struct ww_alloc_problem problem = {
		.jobs = f->job, .n_jobs = f->n, .rows = rows, .n_rows = 3, .budget_w = (double)INFINITY, .fresh = 1};
	for (uint32_t k = 0; k < f->n; k++) {
		shares[k][0] = (struct ww_row_share){0, f->job[k].gpus};
		shares[k][1] = (struct ww_row_share){1 + k % 2, f->job[k].gpus};
		f->job[k].rows = shares[k];
		f->job[k].n_rows = 2;
	}
	assert_int_equal(ww_alloc_set(alloc, &problem, NULL), WW_OK);
}

static void assert_same_bits(const ww_alloc *a, const ww_alloc *b, size_t n)
{
	assert_memory_equal(ww_alloc_shares(a), ww_alloc_shares(b), n * sizeof(struct ww_alloc_share));
}

/* Whatever was solved before, and however far: the equal cut and each refinement are the same to the bit. */
static void a_fresh_problem_forgets_the_last_one(void **state)
{
	struct ww_rng rng;
	ww_alloc *used = create();
	(void)state;
	ww_rng_seed(&rng, 10);
	for (int i = 0; i < 60; i++) {
		struct fleet f;
		ww_alloc *fresh = create();
		random_fleet(&rng, &f, cuts[i % 6], i & 1);
		if (i % 3 == 0) { /* the same jobs under another budget before */
			set_fresh(used, &f, 0.9);
			(void)ww_alloc_run(used, (unsigned)i);
		}
		set_fresh(used, &f, 0.8);
		set_fresh(fresh, &f, 0.8);
		assert_same_bits(used, fresh, f.n);
		for (int k = 0; k < 6; k++) {
			assert_int_equal(ww_alloc_run(used, 8), ww_alloc_run(fresh, 8));
			assert_same_bits(used, fresh, f.n);
		}
		ww_alloc_destroy(fresh);
	}
	ww_alloc_destroy(used);
}

/* ---- Trust ----------------------------------------------------------------------------------------------------------- */

static void trust_falls_with_variance(void **state)
{
	double last = 2;
	(void)state;
	for (double var = 0; var < 1e6; var = var * 10 + 1e-6) {
		struct fleet f = {0};
		add(&f, quadratic(100, 0, 1, 0.9));
		add(&f, quadratic(100, 0, 3, 0.9));
		add(&f, quadratic(100, 0, 2, 0.9));
		f.curve[0].var_a = f.curve[1].var_a = f.curve[2].var_a = var;
		f.budget_w = 240;
		struct answer a = solve(&f);
		if (var == 0)
			assert_near(a.share[0].trust, 1, 0);
		assert_true(a.share[0].trust < last);
		assert_near(a.summary.shrink, (a.share[0].trust + a.share[1].trust + a.share[2].trust) / 3, 1e-12);
		assert_near(drawn_w(&f, &a), 240, 1e-7);
		assert_true(a.share[0].cut_frac >= a.share[2].cut_frac && a.share[2].cut_frac >= a.share[1].cut_frac);
		last = a.share[0].trust;
		if (var > 1e5) /* nothing is known: the equal cut */
			for (int k = 0; k < 3; k++)
				assert_near(a.share[k].cut_frac, 0.2, 1e-4);
	}
}

/* The uncertain one of two opposite jobs moves less than the same job known exactly. */
static void only_the_uncertain_job_is_held_back(void **state)
{
	struct fleet f = {0};
	(void)state;
	add(&f, quadratic(100, 0, 1, 0.9));
	add(&f, quadratic(100, 0, 3, 0.9));
	f.curve[1].var_a = 0.5;
	f.budget_w = 160;
	struct answer a = solve(&f);
	assert_near(a.share[0].trust, 1, 0);
	assert_true(a.share[1].trust < 0.9);
	assert_true(a.share[0].cut_frac < 0.3 - 1e-4 && a.share[0].cut_frac > 0.2);
}

/* ---- Degenerate curves ----------------------------------------------------------------------------------------------- */

static struct ww_curve odd_curve(struct ww_rng *rng)
{
	static const double firsts[] = {0, 0, 1e-9, 0.5, 100}, bends[] = {1e-6, 1e-3, 1, 1e6};
	static const double vars[] = {0, 1e-30, 1e-6, 1, 1e12}, depths[] = {0.001, 0.2, 0.5, 1};
	struct ww_curve c = quadratic(1 + 1000 * ww_rng_uniform(rng), firsts[ww_rng_below(rng, 5)],
	                              bends[ww_rng_below(rng, 4)], depths[ww_rng_below(rng, 4)]);
	if (ww_rng_below(rng, 2)) { /* flat, then a wall */
		double wall = 0.05 + 0.5 * ww_rng_uniform(rng), slope = c.k[0].slope;
		c.n = 3;
		c.k[1] = (struct ww_knot){wall, wall * (slope + 5e-7), slope + 1e-6};
		c.k[2] = (struct ww_knot){1, 0, slope + 1000};
		c.k[2].loss_frac = c.k[1].loss_frac + (1 - wall) * (c.k[1].slope + c.k[2].slope) / 2;
	}
	c.var_a = vars[ww_rng_below(rng, 5)];
	c.var_b = vars[ww_rng_below(rng, 5)];
	return c;
}

static void odd_curves_are_divided_too(void **state)
{
	struct ww_rng rng;
	(void)state;
	ww_rng_seed(&rng, 10);
	for (int i = 0; i < 1000; i++) {
		struct fleet f = {0};
		size_t n = 1 + ww_rng_below(&rng, 12);
		for (size_t k = 0; k < n; k++) {
			add(&f, odd_curve(&rng));
			f.job[k].weight = (const double[]){1e-6, 1, 1e6}[ww_rng_below(&rng, 3)];
			f.job[k].min_w = ww_rng_below(&rng, 3) ? 0 : 2000 * ww_rng_uniform(&rng);
			f.job[k].floor_frac = ww_rng_below(&rng, 3) ? 0 : ww_rng_uniform(&rng);
		}
		f.budget_w = baseline_w(&f) * (1 - cuts[i % 6]);
		struct answer a = solve(&f);
		check_shares(&f, &a);
		assert_true(isfinite(a.summary.shrink) && isfinite(a.budget.price) && isfinite(a.budget.missing_w));
		/* on flat curves the last microwatts are worth nothing, and may be left */
		assert_near_rel(drawn_w(&f, &a), f.budget_w + a.budget.over_w, 1e-8);
		assert_true(drawn_w(&f, &a) <= (f.budget_w + a.budget.over_w) * (1 + 1e-12));
	}
}

/* With no trust in any curve every objective that can stays at the equal cut, also with jobs of very different size. */
static void without_trust_all_stay_at_the_equal_cut(void **state)
{
	static const uint32_t gpus[] = {64, 1, 8};
	(void)state;
	for (int objective = WW_OBJECTIVE_RELATIVE; objective <= WW_OBJECTIVE_LOG; objective++) {
		struct fleet f = {0};
		for (size_t i = 0; i < 3; i++) {
			struct ww_curve c = quadratic(100, 0.1, 1 + (double)i, 0.9);
			c.var_a = 1e9;
			add(&f, c);
			f.job[i].gpus = gpus[i];
		}
		f.budget_w = 0.7 * baseline_w(&f);
		struct ww_alloc_problem p = {.jobs = f.job,
		                             .n_jobs = f.n,
		                             .budget_w = f.budget_w,
		                             .objective = (enum ww_objective)objective};
		ww_alloc *alloc = create();
		assert_int_equal(ww_alloc_set(alloc, &p, NULL), WW_OK);
		ww_alloc_run(alloc, 200);
		for (size_t i = 0; i < 3; i++)
			assert_near(ww_alloc_shares(alloc)[i].cut_frac, 0.3, 1e-4);
		ww_alloc_destroy(alloc);
	}
}

/* However deep in the red a budget is, every job goes to its lowest power. */
static void an_absurd_budget_cuts_all(void **state)
{
	(void)state;
	for (double budget_w = -1; budget_w > -1e25; budget_w *= 1e3) {
		struct fleet f = {0};
		add(&f, quadratic(100, 0, 1, 0.9));
		add(&f, quadratic(100, 0, 3, 0.9));
		f.job[0].min_w = f.job[1].min_w = 20;
		f.budget_w = budget_w;
		struct answer a = solve(&f);
		assert_int_equal(a.summary.outcome, WW_OUTCOME_INFEASIBLE);
		assert_near(a.share[0].cut_frac, 0.8, 1e-12);
		assert_near(a.share[1].cut_frac, 0.8, 1e-12);
	}
}

/* A division never drives a job to a loss of more than all, where an equal cut would not. */
static void no_job_is_driven_beyond_standstill(void **state)
{
	struct fleet f = {0};
	(void)state;
	add(&f, quadratic(100, 0.5, 8, 0.9));
	add(&f, quadratic(100, 0, 0.5, 0.9));
	f.job[0].weight = 1e-3;
	f.budget_w = 160;
	struct answer a = solve(&f);
	assert_true(ww_curve_loss(&f.curve[0], a.share[0].cut_frac) <= 1 + 1e-9);
	assert_true(a.share[0].cut_frac > a.share[0].equal_cut_frac);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_jobs_share_by_their_marginals),
		cmocka_unit_test(watts_of_large_jobs_are_cheaper),
		cmocka_unit_test(no_job_leaves_its_box),
		cmocka_unit_test(floors_and_lowest_draws_end_a_cut),
		cmocka_unit_test(an_unreachable_budget_tells_the_watts),
		cmocka_unit_test(a_slack_budget_changes_nothing),
		cmocka_unit_test(no_jobs_need_no_watts),
		cmocka_unit_test(set_alone_is_the_equal_cut),
		cmocka_unit_test(the_budget_is_kept_to_the_watt),
		cmocka_unit_test(exact_curves_share_one_price),
		cmocka_unit_test(no_exchange_of_watts_gains),
		cmocka_unit_test(never_worse_than_equal),
		cmocka_unit_test(more_budget_never_costs),
		cmocka_unit_test(the_order_of_jobs_is_irrelevant),
		cmocka_unit_test(scaling_watts_weights_or_tokens_leaves_the_cuts),
		cmocka_unit_test(equal_jobs_get_equal_cuts),
		cmocka_unit_test(an_allocator_can_be_used_again),
		cmocka_unit_test(a_fresh_problem_forgets_the_last_one),
		cmocka_unit_test(trust_falls_with_variance),
		cmocka_unit_test(only_the_uncertain_job_is_held_back),
		cmocka_unit_test(odd_curves_are_divided_too),
		cmocka_unit_test(without_trust_all_stay_at_the_equal_cut),
		cmocka_unit_test(an_absurd_budget_cuts_all),
		cmocka_unit_test(no_job_is_driven_beyond_standstill),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
