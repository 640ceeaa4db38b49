/* SPDX-License-Identifier: Apache-2.0 */
/* The policies side by side, against a second, slow implementation of their definitions, on small random fleets. */
#include "assert_near.h"
#include "core/core.h"

#include <string.h>

#define JOBS 12
#define CAPS 9

struct sweep {
	char name[16];
	size_t n;
	struct ww_point p[CAPS]; /* descending caps */
};

struct fleet {
	size_t n;
	struct sweep job[JOBS];
};

static struct ww_point at(double cap_w, double power_w, double throughput)
{
	return (struct ww_point){cap_w, power_w, throughput, NAN, NAN, -1};
}

/* ---- The interface, in one place ------------------------------------------------------------------------------------- */

static ww_compare *create(const struct fleet *f, const struct ww_compare_options *options)
{
	struct ww_compare_job jobs[JOBS] = {0};
	struct ww_error err = {WW_OK, ""};
	ww_compare *out = NULL;
	for (size_t i = 0; i < f->n; i++)
		jobs[i] = (struct ww_compare_job){f->job[i].name, f->job[i].p, f->job[i].n};
	assert_int_equal(ww_compare_create(jobs, f->n, options, &out, &err), WW_OK);
	return out;
}

static struct ww_compare_row run_with(const struct fleet *f, double cut, const struct ww_compare_options *options)
{
	struct ww_compare_row row;
	struct ww_error err = {WW_OK, ""};
	ww_compare *c = create(f, options);
	assert_int_equal(ww_compare_run(c, cut, &row, &err), WW_OK);
	ww_compare_destroy(c);
	return row;
}

static struct ww_compare_row run(const struct fleet *f, double cut)
{
	static const struct ww_compare_options options = WW_COMPARE_OPTIONS_INIT;
	return run_with(f, cut, &options);
}

/* ---- Fleets ---------------------------------------------------------------------------------------------------------- */

/* Whole watts, so that a search over whole watts finds every corner. Draws fall with the cap, except where noise says
 * otherwise; throughput is a convex loss with noise. */
static void random_job(struct ww_rng *rng, struct sweep *s, double noise)
{
	double p0 = 60 + ww_rng_below(rng, 40), l30 = 0.02 + 0.2 * ww_rng_uniform(rng),
	       k = 1.2 + 2 * ww_rng_uniform(rng);
	s->n = 4 + ww_rng_below(rng, CAPS - 3);
	for (size_t i = 0; i < s->n; i++) {
		double cut = i ? 0.02 + 0.58 * ((double)i - 0.7 * ww_rng_uniform(rng)) / (double)(s->n - 1) : 0;
		if (i + 1 == s->n)
			cut = fmax(cut, 0.3);
		double power = round(p0 * (1 - cut + noise * ww_rng_normal(rng) / 2));
		double throughput = 1000 * (1 - l30 * pow(cut / 0.3, k)) * (1 + noise * ww_rng_normal(rng));
		s->p[i] = at(300 - 25 * (double)i, power, fmax(throughput, 10));
	}
}

static void random_fleet(struct ww_rng *rng, struct fleet *f, size_t n, double noise)
{
	f->n = n;
	for (size_t i = 0; i < n; i++) {
		random_job(rng, &f->job[i], noise);
		snprintf(f->job[i].name, sizeof f->job[i].name, "job%02d", (int)(i * 7 % 31));
	}
}

/* ---- A second implementation of the definitions ---------------------------------------------------------------------- */

/* Truth of a job: rows with P <= P0 by ascending draw; throughput made monotone by the max-min formula. */
struct truth {
	size_t n;
	double w[CAPS], t[CAPS], p0, slope;
};

static double mean_of(const double *y, size_t from, size_t to)
{
	double sum = 0;
	for (size_t i = from; i <= to; i++)
		sum += y[i];
	return sum / (double)(to - from + 1);
}

static double isotonic(const double *y, size_t n, size_t i)
{
	double most = -INFINITY;
	for (size_t j = 0; j <= i; j++) {
		double least = INFINITY;
		for (size_t k = i; k < n; k++)
			least = fmin(least, mean_of(y, j, k));
		most = fmax(most, least);
	}
	return most;
}

static void sort_truth(struct truth *t, double *y)
{
	for (size_t i = 0; i < t->n; i++)
		for (size_t k = i + 1; k < t->n; k++)
			if (t->w[k] < t->w[i] || (t->w[k] == t->w[i] && y[k] < y[i])) {
				double w = t->w[i], v = y[i];
				t->w[i] = t->w[k];
				y[i] = y[k];
				t->w[k] = w;
				y[k] = v;
			}
}

static struct truth truth_of(const struct sweep *s)
{
	struct truth t = {.p0 = s->p[0].power_w};
	double y[CAPS];
	for (size_t i = 0; i < s->n; i++)
		if (s->p[i].power_w <= t.p0) {
			t.w[t.n] = s->p[i].power_w;
			y[t.n++] = s->p[i].throughput;
		}
	sort_truth(&t, y);
	size_t n = t.n;
	t.n = 0;
	for (size_t i = 0; i < n; i++) { /* of equal draws the best counts */
		t.n -= t.n > 0 && t.w[t.n - 1] == t.w[i];
		t.w[t.n] = t.w[i];
		t.t[t.n++] = isotonic(y, n, i) / isotonic(y, n, n - 1);
	}
	return t;
}

/* Linear in the draw. */
static double kept(const struct truth *t, double w)
{
	for (size_t i = t->n; i-- > 0;)
		if (w >= t->w[i])
			return i + 1 == t->n
			               ? t->t[i]
			               : t->t[i] + (t->t[i + 1] - t->t[i]) * (w - t->w[i]) / (t->w[i + 1] - t->w[i]);
	return t->t[0];
}

/* Upper concave hull: the best mixture of two measured draws. */
static double hull(const struct truth *t, double w)
{
	double best = -INFINITY;
	for (size_t i = 0; i < t->n; i++)
		for (size_t k = i; k < t->n; k++) {
			if (t->w[i] == w || t->w[k] == w)
				best = fmax(best, t->w[i] == w ? t->t[i] : t->t[k]);
			if (t->w[i] < w && w < t->w[k])
				best = fmax(best, t->t[i] + (t->t[k] - t->t[i]) * (w - t->w[i]) / (t->w[k] - t->w[i]));
		}
	return best;
}

struct cell {
	size_t n;
	struct truth t[JOBS];
	const struct fleet *f;
	double budget;
};

static double cut_reach(const struct truth *t)
{
	return 1 - t->w[0] / t->p0;
}

/* x by bisection so that rule(job, x) draws the budget in sum; then the mean of what is kept. */
typedef double rule(const struct cell *c, size_t job, double x);

static double drawn_at(const struct cell *c, rule *draw, double x)
{
	double sum = 0;
	for (size_t i = 0; i < c->n; i++)
		sum += draw(c, i, x);
	return sum;
}

/* draw falls as x rises */
static double by_bisection(const struct cell *c, rule *draw, double lo, double hi)
{
	double sum = 0;
	for (int i = 0; i < 200; i++) {
		double mid = (lo + hi) / 2;
		if (drawn_at(c, draw, mid) > c->budget)
			lo = mid;
		else
			hi = mid;
	}
	for (size_t i = 0; i < c->n; i++)
		sum += kept(&c->t[i], draw(c, i, hi));
	return sum / (double)c->n;
}

static double equal_draw(const struct cell *c, size_t i, double x)
{
	return c->t[i].p0 * (1 - fmin(x, cut_reach(&c->t[i])));
}

static double proportional_draw(const struct cell *c, size_t i, double x)
{
	return c->t[i].p0 * (1 - fmin(x / c->t[i].slope, cut_reach(&c->t[i])));
}

/* x = minus the cap; draw(cap) on its running maximum, at most the baseline's. */
static double capped_draw(const struct cell *c, size_t i, double x)
{
	const struct sweep *s = &c->f->job[i];
	double cap = -x, below = 0, below_cap = 0, top = 0;
	for (size_t k = s->n; k-- > 0;) {
		top = fmax(top, fmin(s->p[k].power_w, c->t[i].p0));
		if (cap <= s->p[k].cap_w)
			return k + 1 == s->n ? top
			                     : below + (top - below) * (cap - below_cap) / (s->p[k].cap_w - below_cap);
		below = top;
		below_cap = s->p[k].cap_w;
	}
	return top;
}

/* The slope that the linear policies see: the caps with a cut of 3 % or more nearest to 0.15 and then to 0.35. */
static double seen_slope(const struct sweep *s, double noise)
{
	static const double depths[] = {0.15, 0.35};
	bool taken[CAPS] = {false};
	double dd = 0, dl = 0, d1 = 0;
	for (int k = 0; k < 2; k++) {
		size_t best = CAPS;
		double off = INFINITY, cut = 0;
		for (size_t i = 1; i < s->n; i++) {
			double d = 1 - s->p[i].power_w / s->p[0].power_w;
			bool shallower = fabs(fabs(d - depths[k]) - off) < 1e-9 && d < cut;
			if (!taken[i] && d >= 0.03 && (fabs(d - depths[k]) < off - 1e-9 || shallower)) {
				best = i;
				off = fabs(d - depths[k]);
				cut = d;
			}
		}
		if (best == CAPS)
			break;
		taken[best] = true;
		double loss = 1 - s->p[best].throughput / s->p[0].throughput;
		dd += cut * cut;
		dl += cut * loss;
		d1 += cut;
	}
	double slope = dl / dd, se = noise * sqrt(dd + d1 * d1) / dd;
	return fmax(slope < 2.5 * se ? fmax(slope, 0) + 1.645 * se : slope, 0.02);
}

/* Lowest slope first, by name where equal, each as deep as measured. */
static double linear_value(const struct cell *c)
{
	bool done[JOBS] = {false};
	double need = -c->budget, sum = 0;
	for (size_t i = 0; i < c->n; i++)
		need += c->t[i].p0;
	for (size_t k = 0; k < c->n; k++) {
		size_t best = JOBS;
		for (size_t i = 0; i < c->n; i++)
			if (!done[i] && (best == JOBS || c->t[i].slope < c->t[best].slope ||
			                 (c->t[i].slope == c->t[best].slope &&
			                  strcmp(c->f->job[i].name, c->f->job[best].name) < 0)))
				best = i;
		done[best] = true;
		double watts = fmin(need, c->t[best].p0 - c->t[best].w[0]);
		need -= watts;
		sum += kept(&c->t[best], c->t[best].p0 - watts);
	}
	return sum / (double)c->n;
}

/* Best sum of hulls for each whole watt of the fleet's draw, job by job. */
static double oracle_value(const struct cell *c)
{
	enum { MOST = 1300 };
	double best[MOST], next[MOST];
	for (int w = 0; w < MOST; w++)
		best[w] = w ? -INFINITY : 0;
	for (size_t i = 0; i < c->n; i++) {
		for (int w = 0; w < MOST; w++) {
			next[w] = -INFINITY;
			for (int own = (int)c->t[i].w[0]; own <= (int)c->t[i].p0 && own <= w; own++)
				next[w] = fmax(next[w], best[w - own] + hull(&c->t[i], own));
		}
		memcpy(best, next, sizeof best);
	}
	return best[(int)lround(c->budget)] / (double)c->n;
}

static struct cell make_cell(const struct fleet *f, double cut, double noise)
{
	struct cell c = {.n = f->n, .f = f};
	double sum = 0;
	for (size_t i = 0; i < f->n; i++) {
		c.t[i] = truth_of(&f->job[i]);
		c.t[i].slope = seen_slope(&f->job[i], noise);
		sum += c.t[i].p0;
	}
	c.budget = (1 - cut) * sum;
	return c;
}

/* ---- Against it ------------------------------------------------------------------------------------------------------ */

static void check_rules(const struct fleet *f, double cut, double sigma)
{
	struct ww_compare_options options = WW_COMPARE_OPTIONS_INIT;
	options.noise_frac = sigma;
	struct cell c = make_cell(f, cut, sigma);
	struct ww_compare_row row = run_with(f, cut, &options);
	assert_int_equal(row.n_jobs, f->n);
	if (row.outcome == WW_OUTCOME_INFEASIBLE)
		return;
	assert_near(row.value[WW_POLICY_EQUAL], by_bisection(&c, equal_draw, 0, 1), 1e-7);
	assert_near(row.value[WW_POLICY_UNIFORM], by_bisection(&c, capped_draw, -1000, 0), 1e-7);
	assert_near(row.value[WW_POLICY_LINEAR_PFI], linear_value(&c), 1e-7);
	assert_near(row.value[WW_POLICY_PFI_PROPORTIONAL], by_bisection(&c, proportional_draw, 0, 100), 1e-7);
	assert_true(row.value[WW_POLICY_ORACLE] >= row.value[WW_POLICY_ORACLE_BOX] - 1e-12);
	for (int p = 0; p < WW_N_POLICIES; p++)
		assert_true(row.value[p] >= 0 && row.value[p] <= 1 &&
		            row.value[p] <= row.value[WW_POLICY_ORACLE] + 1e-9);
	assert_true(row.value[WW_POLICY_ORACLE_BOX] >= row.value[WW_POLICY_CURVE] - 1e-9);
	assert_true(row.value[WW_POLICY_ORACLE_BOX] >= row.value[WW_POLICY_EQUAL] - 1e-9);
}

static void rules_match_a_second_implementation(void **state)
{
	static const double cuts[] = {0.002, 0.03, 0.1, 0.2, 0.3};
	struct ww_rng rng;
	(void)state;
	ww_rng_seed(&rng, 1);
	for (int i = 0; i < 400; i++) {
		struct fleet f;
		random_fleet(&rng, &f, 1 + ww_rng_below(&rng, JOBS), i & 1 ? 0.01 : 0.04);
		check_rules(&f, cuts[i % 5], i % 3 ? 0.01 : 0);
	}
}

/* Whole watts everywhere, and a budget of whole watts: the search over them is exact. */
static void the_oracle_matches_a_search_over_watts(void **state)
{
	struct ww_rng rng;
	(void)state;
	ww_rng_seed(&rng, 2);
	for (int i = 0; i < 60; i++) {
		struct fleet f;
		random_fleet(&rng, &f, 1 + ww_rng_below(&rng, 6), i & 1 ? 0.01 : 0.04);
		double sum = 0;
		for (size_t k = 0; k < f.n; k++)
			sum += f.job[k].p[0].power_w;
		double cut = round(sum * 0.25 * ww_rng_uniform(&rng)) / sum;
		struct cell c = make_cell(&f, cut, 0.01);
		struct ww_compare_row row = run(&f, cut);
		if (row.outcome != WW_OUTCOME_INFEASIBLE)
			assert_near(row.value[WW_POLICY_ORACLE], oracle_value(&c), 1e-9);
	}
}

/* ---- By hand --------------------------------------------------------------------------------------------------------- */

/* Two jobs of 100 W: one loses nothing down to 60 W, the other one half of what it is cut. Throughputs are no round
 * numbers, which would count as rounded ones. */
#define T (1000 / 7.0)

static struct fleet two_by_hand(void)
{
	struct fleet f = {.n = 2};
	f.job[0] = (struct sweep){"flat", 3, {at(300, 100, T), at(200, 80, T), at(100, 60, T)}};
	f.job[1] = (struct sweep){"steep", 3, {at(300, 100, T), at(200, 80, 0.9 * T), at(100, 60, 0.8 * T)}};
	return f;
}

static void two_jobs_by_hand(void **state)
{
	struct fleet f = two_by_hand();
	(void)state;
	struct ww_compare_row row = run(&f, 0.2);
	assert_int_equal(row.outcome, WW_OUTCOME_OPTIMAL);
	assert_near(row.baseline_w, 200, 1e-9);
	assert_near(row.budget_w, 160, 1e-9);
	assert_near(row.missing_w, 0, 0);
	assert_near(row.value[WW_POLICY_EQUAL], 0.95, 1e-9);
	assert_near(row.value[WW_POLICY_UNIFORM], 0.95, 1e-9);
	assert_near(row.value[WW_POLICY_LINEAR_PFI], 1, 1e-9); /* all 40 W from the flat one */
	assert_near(row.value[WW_POLICY_ORACLE], 1, 1e-9);
	assert_near(row.recovered_frac, (row.value[WW_POLICY_CURVE] - 0.95) / 0.05, 1e-9);
	assert_near(row.recovered_box_frac, row.recovered_frac, 1e-9);
	assert_true(row.recovered_frac > 0.5);
	row = run(&f, 0);
	assert_int_equal(row.outcome, WW_OUTCOME_UNCHANGED);
	for (int p = 0; p < WW_N_POLICIES; p++)
		if (p != WW_POLICY_UTILISATION)
			assert_near(row.value[p], 1, 1e-12);
	assert_nan(row.recovered_frac);
}

/* Both use a third of their cap, so each is given half of the budget as its cap: 100 W, the lowest cap, with a draw of
 * 60 W; and 80 W, which is under it, so 40 W are given too much. */
static void utilisation_by_hand(void **state)
{
	struct fleet f = two_by_hand();
	(void)state;
	struct ww_compare_row row = run(&f, 0);
	assert_near(row.utilisation_over_w, 0, 1e-9); /* 100 W each: the lowest cap */
	assert_near(row.value[WW_POLICY_UTILISATION], 0.9, 1e-9);
	row = run(&f, 0.2);
	assert_near(row.utilisation_over_w, 40, 1e-9);
	assert_near(row.value[WW_POLICY_UTILISATION], 0.9, 1e-9);
}

/* Both look alike at the caps that may be seen, so the names decide: the first gives all 80 W and keeps a tenth. */
static void equal_slopes_go_by_name(void **state)
{
	struct fleet f = {.n = 2}, g = {.n = 2};
	(void)state;
	f.job[0] = (struct sweep){
		"b", 4, {at(300, 100, T), at(250, 85, 0.9 * T), at(200, 65, 0.7 * T), at(100, 20, 0.5 * T)}};
	f.job[1] = (struct sweep){
		"a", 4, {at(300, 100, T), at(250, 85, 0.9 * T), at(200, 65, 0.7 * T), at(100, 20, 0.1 * T)}};
	g.job[0] = f.job[1];
	g.job[1] = f.job[0];
	assert_near(run(&f, 0.4).value[WW_POLICY_LINEAR_PFI], 0.55, 1e-9);
	assert_near(run(&g, 0.4).value[WW_POLICY_LINEAR_PFI], 0.55, 1e-9);
}

/* 80 W of 200 W can be taken: everyone as deep as measured, 20 W are missing. */
static void an_unreachable_cut_is_infeasible(void **state)
{
	struct fleet f = two_by_hand();
	(void)state;
	struct ww_compare_row row = run(&f, 0.5);
	assert_int_equal(row.outcome, WW_OUTCOME_INFEASIBLE);
	assert_near(row.missing_w, 20, 1e-9);
	for (int p = 0; p < WW_N_POLICIES; p++)
		assert_near(row.value[p], 0.9, 1e-9);
	assert_nan(row.recovered_frac);
	row = run(&f, 0.4);
	assert_int_equal(row.outcome, WW_OUTCOME_OPTIMAL);
	assert_near(row.value[WW_POLICY_ORACLE], 0.9, 1e-9);
}

/* The gap between oracle and equal is .05 x / .2 at a cut of x: .004 at x = .016. */
static void a_small_gap_is_not_shared(void **state)
{
	struct fleet f = two_by_hand();
	(void)state;
	assert_nan(run(&f, 0.0159).recovered_frac);
	assert_nan(run(&f, 0.0159).recovered_box_frac);
	assert_true(isfinite(run(&f, 0.0161).recovered_frac));
	assert_true(isfinite(run(&f, 0.0161).recovered_box_frac));
}

static void the_box_is_what_was_seen(void **state)
{
	struct fleet f = {.n = 2};
	struct ww_compare_options options = WW_COMPARE_OPTIONS_INIT;
	(void)state; /* flat down to 40 W, but only 85 W (and 65 W) may be seen */
	f.job[0] = (struct sweep){"flat", 4, {at(300, 100, T), at(250, 85, T), at(200, 65, T), at(100, 20, T)}};
	f.job[1] = (struct sweep){
		"steep", 4, {at(300, 100, T), at(250, 85, 0.9 * T), at(200, 65, 0.7 * T), at(100, 20, 0.2 * T)}};
	assert_near(run(&f, 0.25).value[WW_POLICY_ORACLE_BOX], (1 + 0.9) / 2, 1e-9);
	options.n_depths = 1; /* box: 0.25, the equal cut: nothing moves deeper */
	struct ww_compare_row row = run_with(&f, 0.25, &options);
	assert_near(row.value[WW_POLICY_ORACLE_BOX], row.value[WW_POLICY_EQUAL], 1e-9);
	assert_near(row.value[WW_POLICY_CURVE], row.value[WW_POLICY_EQUAL], 1e-9);
	options = (struct ww_compare_options){0.01, {0.15, 0.35, 0.8}, 3};
	assert_near(run_with(&f, 0.25, &options).value[WW_POLICY_ORACLE_BOX], 1, 1e-9);
}

/* ---- Who takes part -------------------------------------------------------------------------------------------------- */

static void some_jobs_are_left_out(void **state)
{
	const struct ww_compare_options options = WW_COMPARE_OPTIONS_INIT;
	struct fleet f = two_by_hand(), all = f;
	(void)state;
	all.n = 6;
	all.job[2] = (struct sweep){"idle", 3, {at(300, 100, 100), at(200, 99, 98), at(100, 95, 99)}};
	all.job[3] = (struct sweep){"once", 1, {at(300, 100, 100)}};
	all.job[4] = (struct sweep){"twin", 3, {at(300, 1000, 7), at(200, 800, 6.3), at(100, 600, 5.6)}};
	all.job[5] = (struct sweep){"none", 0, {at(0, 0, 0)}};
	ww_compare *c = create(&all, &options);
	assert_int_equal(ww_compare_jobs(c), 2);
	const enum ww_left_out why[] = {
		WW_LEFT_NOT,       WW_LEFT_NOT,           WW_LEFT_NOT_POWER_LIMITED, WW_LEFT_TOO_FEW_POINTS,
		WW_LEFT_DUPLICATE, WW_LEFT_TOO_FEW_POINTS};
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(ww_compare_left_out(c, i), why[i]);
	ww_compare_destroy(c);
	struct ww_compare_row a = run(&f, 0.2), b = run(&all, 0.2);
	assert_memory_equal(a.value, b.value, sizeof a.value);
	assert_int_equal(b.n_jobs, 2);
}

/* Of two with one curve the later name is left out, whatever their order. */
static void the_later_name_is_the_duplicate(void **state)
{
	const struct ww_compare_options options = WW_COMPARE_OPTIONS_INIT;
	struct fleet f = two_by_hand();
	(void)state;
	f.n = 3;
	f.job[2] = f.job[0];
	snprintf(f.job[0].name, sizeof f.job[0].name, "zebra");
	snprintf(f.job[2].name, sizeof f.job[2].name, "ape");
	ww_compare *c = create(&f, &options);
	assert_int_equal(ww_compare_left_out(c, 0), WW_LEFT_DUPLICATE);
	assert_int_equal(ww_compare_left_out(c, 1), WW_LEFT_NOT);
	assert_int_equal(ww_compare_left_out(c, 2), WW_LEFT_NOT);
	ww_compare_destroy(c);
}

/* The definition as it stands in core.h, pair by pair, on curves whose differences lie around what is allowed. */
static bool is_twin(const struct ww_point *a, const struct ww_point *b)
{
	for (int i = 0; i < 3; i++)
		if (fabs(a[i].throughput / a[0].throughput - b[i].throughput / b[0].throughput) > 1e-4 ||
		    fabs(a[i].power_w / a[0].power_w - b[i].power_w / b[0].power_w) > 1e-3)
			return false;
	return true;
}

static void duplicates_are_those_of_the_definition(void **state)
{
	enum { N = 1500 };
	static struct ww_point points[N][3];
	struct ww_compare_job jobs[N];
	size_t found[N], n_twins = 0;
	struct ww_error err;
	struct ww_rng rng;
	(void)state;
	ww_rng_seed(&rng, 9);
	for (size_t i = 0; i < N; i++) {
		for (int k = 0; k < 3; k++) {
			double loss = 1 - 0.1 * k - (k ? 2e-3 * ww_rng_uniform(&rng) : 0);
			points[i][k] = at(400 - 100 * k, 300 - 50 * k - 0.5 * ww_rng_uniform(&rng), 100 * loss);
		}
		jobs[i] = (struct ww_compare_job){"job", points[i], 3};
	}
	assert_int_equal(ww_find_duplicates(jobs, N, found, &err), WW_OK);
	for (size_t i = 0; i < N; i++) {
		size_t expected = i;
		for (size_t k = 0; k < i && expected == i; k++)
			if (found[k] == k && is_twin(points[i], points[k]))
				expected = k;
		assert_int_equal(found[i], expected);
		n_twins += expected != i;
	}
	assert_true(n_twins > 100 && n_twins < N - 100);
}

static void without_jobs_there_is_no_row(void **state)
{
	const struct ww_compare_options options = WW_COMPARE_OPTIONS_INIT;
	struct fleet f = {.n = 0};
	struct ww_compare_row row;
	struct ww_error err;
	(void)state;
	ww_compare *c = create(&f, &options);
	assert_int_equal(ww_compare_jobs(c), 0);
	assert_int_equal(ww_compare_run(c, 0.2, &row, &err), WW_ERR_NO_DATA);
	ww_compare_destroy(c);
	ww_compare_destroy(NULL);
}

static void the_order_of_jobs_is_irrelevant(void **state)
{
	struct ww_rng rng;
	(void)state;
	ww_rng_seed(&rng, 4);
	for (int i = 0; i < 60; i++) {
		struct fleet f, g;
		random_fleet(&rng, &f, 2 + ww_rng_below(&rng, JOBS - 1), 0.02);
		g.n = f.n;
		size_t turn = ww_rng_below(&rng, (uint32_t)f.n);
		for (size_t k = 0; k < f.n; k++) {
			g.job[k] = f.job[(f.n - 1 - k + turn) % f.n];
			struct ww_point first = g.job[k].p[0];
			g.job[k].p[0] = g.job[k].p[g.job[k].n - 1];
			g.job[k].p[g.job[k].n - 1] = first;
		}
		struct ww_compare_row a = run(&f, 0.05 * (1 + i % 6)), b = run(&g, 0.05 * (1 + i % 6));
		assert_memory_equal(a.value, b.value, sizeof a.value);
		assert_near(a.missing_w, b.missing_w, 0);
		assert_near(a.shrink, b.shrink, 0);
	}
}

/* ---- Shrink ---------------------------------------------------------------------------------------------------------- */

/* In the mean over fleets; in one fleet the prior may spread the marginals a little more than the noise blurs them. */
static void shrink_falls_with_assumed_noise(void **state)
{
	static const double sigmas[] = {0, 0.005, 0.01, 0.02, 0.04, 0.08};
	enum { FLEETS = 60 };
	struct ww_rng rng;
	double mean[6] = {0}, worst = 0;
	(void)state;
	ww_rng_seed(&rng, 5);
	for (int i = 0; i < FLEETS; i++) {
		struct fleet f;
		double last = 1;
		random_fleet(&rng, &f, 6 + ww_rng_below(&rng, JOBS - 5), 0);
		for (int k = 0; k < 6; k++) {
			struct ww_compare_options options = WW_COMPARE_OPTIONS_INIT;
			options.noise_frac = sigmas[k];
			struct ww_compare_row row = run_with(&f, 0.05 * (2 + i % 4), &options);
			assert_true(row.shrink >= (k ? 0 : 0.95) && row.shrink <= 1);
			worst = fmax(worst, row.shrink - last);
			last = row.shrink;
			mean[k] += row.shrink / FLEETS;
		}
	}
	print_message(
		"# mean shrink at sigma 0 .005 .01 .02 .04 .08: %.2f %.2f %.2f %.2f %.2f %.2f, largest rise %.3f\n",
		mean[0], mean[1], mean[2], mean[3], mean[4], mean[5], worst);
	for (int k = 1; k < 6; k++)
		assert_true(mean[k] < mean[k - 1]);
	assert_true(worst < 0.15);
}

/* ---- Mistakes -------------------------------------------------------------------------------------------------------- */

static void bad_options_and_cuts_are_refused(void **state)
{
	static const double bad_cuts[] = {-0.1, 1, 1.5, NAN, INFINITY};
	const struct ww_compare_options good = WW_COMPARE_OPTIONS_INIT,
					bad[] = {
						{-0.01, {0.15, 0.35}, 2}, {NAN, {0.15, 0.35}, 2},  {1, {0.15, 0.35}, 2},
						{0.01, {0.15, 0.35}, 0},  {0.01, {0.15, 0.35}, 9}, {0.01, {0, 0.35}, 2},
						{0.01, {0.15, 1.0}, 2},   {0.01, {0.15, NAN}, 2},
					};
	struct fleet f = two_by_hand();
	struct ww_compare_job jobs[] = {{"a", f.job[0].p, 3}, {"b", f.job[1].p, 3}};
	struct ww_compare_row row;
	struct ww_error err;
	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		ww_compare *out = NULL;
		assert_int_equal(ww_compare_create(jobs, 2, &bad[i], &out, &err), WW_ERR_RANGE);
		assert_null(out);
	}
	ww_compare *c = create(&f, &good);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(ww_compare_run(c, bad_cuts[i], &row, &err), WW_ERR_RANGE);
	ww_compare_destroy(c);
	f.job[1].p[1].power_w = NAN;
	ww_compare *out = NULL;
	assert_int_equal(ww_compare_create(jobs, 2, &good, &out, &err), WW_ERR_RANGE);
	assert_null(out);
}

static void policies_have_their_names(void **state)
{
	static const char *const names[] = {"equal",       "uniform", "linear_pfi", "pfi_proportional",
	                                    "utilisation", "curve",   "oracle",     "oracle_box"};
	(void)state;
	for (int i = 0; i < WW_N_POLICIES; i++)
		assert_string_equal(ww_policy_name((enum ww_policy)i), names[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_match_a_second_implementation),
		cmocka_unit_test(the_oracle_matches_a_search_over_watts),
		cmocka_unit_test(two_jobs_by_hand),
		cmocka_unit_test(utilisation_by_hand),
		cmocka_unit_test(equal_slopes_go_by_name),
		cmocka_unit_test(an_unreachable_cut_is_infeasible),
		cmocka_unit_test(a_small_gap_is_not_shared),
		cmocka_unit_test(the_box_is_what_was_seen),
		cmocka_unit_test(some_jobs_are_left_out),
		cmocka_unit_test(the_later_name_is_the_duplicate),
		cmocka_unit_test(duplicates_are_those_of_the_definition),
		cmocka_unit_test(without_jobs_there_is_no_row),
		cmocka_unit_test(the_order_of_jobs_is_irrelevant),
		cmocka_unit_test(shrink_falls_with_assumed_noise),
		cmocka_unit_test(bad_options_and_cuts_are_refused),
		cmocka_unit_test(policies_have_their_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
