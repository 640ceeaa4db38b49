/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold for any problem of the allocator: 200 random ones per property, all four objectives. */
#include "assert_near.h"
#include "instances.h"
#include "wrapped_memory.h"

#include <string.h>

#define INSTANCES 200
#define SWEEPS 200

/* ---- Solving -------------------------------------------------------------------------------------------------------------- */

static void *room(size_t n, size_t size)
{
	void *out = calloc(n + 1, size);
	assert_non_null(out);
	return out;
}

static ww_alloc *new_alloc(void)
{
	ww_alloc *alloc;
	assert_int_equal(ww_alloc_create(&alloc, NULL), WW_OK);
	return alloc;
}

static void set(ww_alloc *alloc, const struct instance *in)
{
	struct ww_error err;
	if (ww_alloc_set(alloc, &in->problem, &err))
		fail_msg("%s", err.text);
}

static ww_alloc *solve(const struct instance *in)
{
	ww_alloc *alloc = new_alloc();
	set(alloc, in);
	ww_alloc_run(alloc, SWEEPS);
	return alloc;
}

/* WATTWEIR_INSTANCES: how many of the problems. */
static uint64_t n_instances(void)
{
	const char *text = getenv("WATTWEIR_INSTANCES");
	long n = text ? strtol(text, NULL, 10) : 0;
	return n > 0 ? (uint64_t)n : INSTANCES;
}

static struct instance_spec spec_of(uint64_t seed)
{
	struct instance_spec spec = instance_spec_random(1000 + seed);
	spec.objective = (enum ww_objective)(seed % 4);
	return spec;
}

static double *cuts_of(const ww_alloc *alloc, size_t n)
{
	double *cut = room(n, sizeof *cut);
	for (size_t i = 0; i < n; i++)
		cut[i] = ww_alloc_shares(alloc)[i].cut_frac;
	return cut;
}

static double worst_difference(const ww_alloc *a, const ww_alloc *b, size_t n)
{
	double worst = 0;
	for (size_t i = 0; i < n; i++)
		worst = fmax(worst, fabs(ww_alloc_shares(a)[i].cut_frac - ww_alloc_shares(b)[i].cut_frac));
	return worst;
}

/* ---- Every sweep ---------------------------------------------------------------------------------------------------------- */

static void check_rows(const struct instance *in, const ww_alloc *alloc, double *cut_w)
{
	double *cut = cuts_of(alloc, in->problem.n_jobs);
	instance_cut_w(in, cut, cut_w);
	for (size_t r = 0; r <= in->problem.n_rows; r++) {
		double need_w = instance_need_w(in, r) - ww_alloc_rows(alloc)[r].over_w;
		assert_true(cut_w[r] >= need_w - 1e-9 * in->size_w[r]);
	}
	free(cut);
}

static void every_sweep_keeps_all_rows_and_gets_no_worse(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < n_instances(); seed++) {
		struct instance in;
		struct instance_spec spec = spec_of(seed);
		instance_init(&in, &spec);
		ww_alloc *alloc = new_alloc();
		double *cut_w = room(in.problem.n_rows + 1, sizeof *cut_w);
		set(alloc, &in);
		struct ww_alloc_summary before = ww_alloc_result(alloc);
		check_rows(&in, alloc, cut_w);
		for (int sweep = 0; sweep < 20 && ww_alloc_run(alloc, 1) == 1; sweep++) {
			struct ww_alloc_summary now = ww_alloc_result(alloc);
			double rounding = 1e-12 * (1 + fabs(before.value) + fabs(before.bound));
			check_rows(&in, alloc, cut_w);
			assert_true(now.value >= before.value - rounding && now.bound <= before.bound + rounding);
			assert_true(now.bound >= now.value);
			before = now;
		}
		free(cut_w);
		ww_alloc_destroy(alloc);
		instance_finish(&in);
	}
}

static void running_allocates_nothing(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 40; seed++) {
		struct instance in;
		struct instance_spec spec = spec_of(seed);
		instance_init(&in, &spec);
		ww_alloc *alloc = new_alloc();
		set(alloc, &in);
		size_t before = n_allocations;
		ww_alloc_run(alloc, SWEEPS);
		assert_int_equal(n_allocations, before);
		ww_alloc_destroy(alloc);
		instance_finish(&in);
	}
}

/* ---- Budgets ---------------------------------------------------------------------------------------------------------------- */

/* With the box out of the way: it follows the equal cut, and so the budget. */
static void more_budget_never_lowers_the_value(void **state)
{
	size_t compared = 0;
	(void)state;
	for (uint64_t seed = 0; seed < n_instances(); seed++) {
		struct instance in;
		struct instance_spec spec = spec_of(seed);
		spec.explore = true;
		instance_init(&in, &spec);
		ww_alloc *alloc = solve(&in);
		struct ww_alloc_summary before = ww_alloc_result(alloc);
		for (int step = 0; step < 3; step++) {
			in.problem.budget_w *= step == 0 ? 1.001 : 1.05;
			if (step == 2 && in.problem.n_rows > 0)
				in.rows[seed % in.problem.n_rows].budget_w *= 1.1;
			set(alloc, &in);
			ww_alloc_run(alloc, SWEEPS);
			struct ww_alloc_summary now = ww_alloc_result(alloc);
			if (before.outcome != WW_OUTCOME_INFEASIBLE) {
				double slack = before.bound_gap_frac * fabs(before.value) + now.bound - now.value;
				assert_true(now.value >= before.value - slack - 1e-9 * fabs(before.value));
				compared++;
			}
			before = now;
		}
		ww_alloc_destroy(alloc);
		instance_finish(&in);
	}
	assert_true(compared > n_instances());
}

static void warm_is_as_good_as_cold(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < n_instances(); seed++) {
		static const double factors[] = {0.97, 1.03, 0.8, 1.2, 0.97};
		struct instance in;
		struct instance_spec spec = spec_of(seed);
		instance_init(&in, &spec);
		ww_alloc *warm = solve(&in);
		for (size_t step = 0; step < sizeof factors / sizeof *factors; step++) {
			in.problem.budget_w *= factors[step];
			set(warm, &in);
			ww_alloc_run(warm, SWEEPS);
			ww_alloc *cold = solve(&in);
			double a = ww_alloc_result(warm).value, b = ww_alloc_result(cold).value;
			assert_near(a, b, 1e-6 * (spec.objective == WW_OBJECTIVE_MAXMIN ? 1 : fabs(b)));
			assert_near(ww_alloc_result(warm).shrink, ww_alloc_result(cold).shrink, 0);
			ww_alloc_destroy(cold);
		}
		ww_alloc_destroy(warm);
		instance_finish(&in);
	}
}

/* Prices of a problem of another scale are of no use, and do no harm. */
static void prices_of_another_world_do_no_harm(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 60; seed++) {
		struct instance in;
		struct instance_spec spec = spec_of(seed);
		instance_init(&in, &spec);
		double scale = seed % 2 ? 1e6 : 1e-6;
		ww_alloc *cold = solve(&in), *warm = new_alloc();
		for (size_t i = 0; i < in.problem.n_jobs; i++)
			in.jobs[i].weight *= i % 3 ? scale : 1;
		set(warm, &in);
		ww_alloc_run(warm, SWEEPS);
		for (size_t i = 0; i < in.problem.n_jobs; i++)
			in.jobs[i].weight /= i % 3 ? scale : 1;
		set(warm, &in);
		ww_alloc_run(warm, SWEEPS);
		double a = ww_alloc_result(warm).value, b = ww_alloc_result(cold).value;
		assert_near(a, b, 1e-6 * (spec.objective == WW_OBJECTIVE_MAXMIN ? 1 : fabs(b)));
		ww_alloc_destroy(cold);
		ww_alloc_destroy(warm);
		instance_finish(&in);
	}
}

/* ---- Order ------------------------------------------------------------------------------------------------------------------ */

static void shuffle_jobs(struct instance *in, struct ww_rng *rng, size_t *came_from)
{
	for (size_t i = 0; i < in->problem.n_jobs; i++)
		came_from[i] = i;
	for (size_t i = in->problem.n_jobs - 1; i > 0; i--) {
		size_t k = ww_rng_below(rng, (uint32_t)i + 1), place = came_from[i];
		struct ww_alloc_job job = in->jobs[i];
		in->jobs[i] = in->jobs[k];
		in->jobs[k] = job;
		came_from[i] = came_from[k];
		came_from[k] = place;
	}
}

static void shuffle_shares(struct instance *in, struct ww_rng *rng)
{
	struct ww_row_share *shares = in->shares;
	for (size_t i = 0; i < in->problem.n_jobs; i++) {
		struct ww_row_share *own = shares + (in->jobs[i].rows - shares);
		for (uint32_t m = in->jobs[i].n_rows; m > 1; m--) {
			uint32_t k = ww_rng_below(rng, m);
			struct ww_row_share share = own[m - 1];
			own[m - 1] = own[k];
			own[k] = share;
		}
	}
}

static void the_order_of_jobs_and_shares_is_irrelevant(void **state)
{
	struct ww_rng rng;
	(void)state;
	ww_rng_seed(&rng, 3);
	for (uint64_t seed = 0; seed < n_instances(); seed++) {
		struct instance in;
		struct instance_spec spec = spec_of(seed);
		instance_init(&in, &spec);
		size_t n = in.problem.n_jobs, n_rows = in.problem.n_rows + 1, *came_from = room(n, sizeof *came_from);
		ww_alloc *a = solve(&in);
		shuffle_jobs(&in, &rng, came_from);
		shuffle_shares(&in, &rng);
		ww_alloc *b = solve(&in);
		for (size_t i = 0; i < n; i++)
			assert_memory_equal(&ww_alloc_shares(b)[i], &ww_alloc_shares(a)[came_from[i]],
			                    sizeof(struct ww_alloc_share));
		assert_memory_equal(ww_alloc_rows(a), ww_alloc_rows(b), n_rows * sizeof(struct ww_alloc_row_result));
		assert_near(ww_alloc_result(a).value, ww_alloc_result(b).value, 0);
		assert_near(ww_alloc_result(a).bound, ww_alloc_result(b).bound, 0);
		ww_alloc_destroy(a);
		ww_alloc_destroy(b);
		free(came_from);
		instance_finish(&in);
	}
}

/* ---- Scale and symmetry --------------------------------------------------------------------------------------------------- */

static void scale_instance(struct instance *in, double watts, double tokens, double weight)
{
	for (size_t i = 0; i < in->problem.n_jobs; i++) {
		in->curves[i].p0_w *= watts;
		in->jobs[i].min_w *= watts;
		in->jobs[i].max_w *= watts;
		in->curves[i].t0_tps *= tokens;
		in->jobs[i].weight *= weight;
	}
	for (size_t r = 0; r < in->problem.n_rows; r++)
		in->rows[r].budget_w *= watts;
	for (size_t r = 0; r <= in->problem.n_rows; r++)
		in->size_w[r] *= watts;
	in->problem.budget_w *= watts;
}

/* Curves with a bend everywhere, so that the best division is well defined to the sixth digit. */
static void smooth_curves(struct instance *in, uint64_t seed)
{
	struct ww_rng rng;
	ww_rng_seed(&rng, seed);
	for (size_t i = 0; i < in->problem.n_jobs; i++) {
		struct ww_curve c = instance_curve(&rng, SHAPE_POWER, 8);
		c.p0_w = in->curves[i].p0_w;
		c.t0_tps = in->curves[i].t0_tps;
		for (uint32_t k = 0; k < c.n; k++) {
			c.k[k].slope += c.k[k].cut_frac;
			c.k[k].loss_frac += c.k[k].cut_frac * c.k[k].cut_frac / 2;
		}
		in->curves[i] = c;
	}
}

static void scaling_leaves_the_cuts(void **state)
{
	static const double scales[][3] = {{1000, 1, 1}, {1, 1e-3, 1}, {1, 1, 37}, {1e-3, 1e6, 1e-3}};
	(void)state;
	for (uint64_t seed = 0; seed < n_instances(); seed++) {
		struct instance in;
		struct instance_spec spec = spec_of(seed);
		const double *scale = scales[seed / 4 % 4];
		instance_init(&in, &spec);
		smooth_curves(&in, seed);
		ww_alloc *a = solve(&in);
		scale_instance(&in, scale[0], scale[1], scale[2]);
		ww_alloc *b = solve(&in);
		/* Below its level, maxmin is only as sharp as the relative objective. */
		double allowed = spec.objective == WW_OBJECTIVE_MAXMIN ? 1e-5 : 1e-6;
		assert_true(worst_difference(a, b, in.problem.n_jobs) <= allowed);
		ww_alloc_destroy(a);
		ww_alloc_destroy(b);
		instance_finish(&in);
	}
}

/* Each job twice, in the same places, with twice the budgets. */
static void equal_jobs_get_equal_cuts(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < n_instances(); seed++) {
		struct instance in;
		struct instance_spec spec = spec_of(seed);
		instance_init(&in, &spec);
		size_t n = in.problem.n_jobs;
		struct ww_alloc_job *jobs = room(2 * n, sizeof *jobs);
		for (size_t i = 0; i < n; i++) {
			jobs[2 * i] = jobs[2 * i + 1] = in.jobs[i];
			jobs[2 * i + 1].id ^= 0x5555; /* somewhere else in the order */
		}
		free(in.jobs);
		in.problem.jobs = in.jobs = jobs;
		in.problem.n_jobs = 2 * n;
		in.problem.budget_w *= 2;
		for (size_t r = 0; r < in.problem.n_rows; r++)
			in.rows[r].budget_w *= 2;
		ww_alloc *alloc = new_alloc();
		struct ww_error err;
		if (!ww_alloc_set(alloc, &in.problem, &err)) { /* two ids may have met */
			ww_alloc_run(alloc, SWEEPS);
			for (size_t i = 0; i < n; i++)
				assert_memory_equal(&ww_alloc_shares(alloc)[2 * i], &ww_alloc_shares(alloc)[2 * i + 1],
				                    sizeof(struct ww_alloc_share));
		}
		ww_alloc_destroy(alloc);
		instance_finish(&in);
	}
}

/* ---- Changes ------------------------------------------------------------------------------------------------------------- */

#define CHANGES 17

static void change_curve(struct ww_curve *c, uint32_t what)
{
	struct ww_knot *last = &c->k[c->n - 1];
	if (what == 0) {
		last->slope += 0.1;
		last->loss_frac += 0.05 * (last->cut_frac - last[-1].cut_frac);
	}
	c->max_cut_frac *= what == 1 ? 0.9 : 1;
	c->var_a += what == 2 ? 0.01 : 0;
	c->p0_w *= what == 3 ? 1.1 : 1;
	c->t0_tps *= what == 4 ? 2 : 1;
}

static void change_job(struct ww_alloc_job *j, uint32_t what)
{
	j->gpus += what == 5;
	j->tier = what == 6 ? (j->tier + 1) % 4 : j->tier;
	j->weight *= what == 7 ? 1.5 : 1;
	j->floor_frac = what == 8 ? 0.6 : j->floor_frac;
	j->min_w = what == 9 ? 0.7 * j->curve->p0_w : j->min_w;
	j->max_w = what == 10 ? 0.9 * j->curve->p0_w : what == 9 ? 0 : j->max_w;
	j->id ^= what == 11;
}

/* One thing, mostly of one job. */
static void change_something(struct instance *in, uint32_t what, size_t job)
{
	struct ww_row_share *share = in->shares + (in->jobs[job].rows - in->shares);
	change_curve(&in->curves[job], what);
	change_job(&in->jobs[job], what);
	share[0].gpus *= what == 12 ? 0.5 : 1;
	in->rows[share[0].row].budget_w *= what == 13 ? 0.9 : 1;
	in->problem.explore ^= what == 14;
	if (what == 15)
		in->problem.objective = (enum ww_objective)((in->problem.objective + 1) % 4);
	in->problem.n_jobs -= what == 16 && in->problem.n_jobs > 2;
}

/* The equal cut and all that is promised depend on the problem alone, whatever was solved before. */
static void every_change_is_noticed(void **state)
{
	struct ww_rng rng;
	(void)state;
	ww_rng_seed(&rng, 4);
	for (uint64_t seed = 0; seed < n_instances(); seed++) {
		struct instance in;
		struct instance_spec spec = spec_of(seed);
		instance_init(&in, &spec);
		ww_alloc *used = solve(&in);
		for (uint32_t what = 0; what < CHANGES; what++) {
			change_something(&in, what, ww_rng_below(&rng, (uint32_t)in.problem.n_jobs));
			ww_alloc *fresh = new_alloc();
			set(used, &in);
			set(fresh, &in);
			assert_memory_equal(ww_alloc_shares(used), ww_alloc_shares(fresh),
			                    in.problem.n_jobs * sizeof(struct ww_alloc_share));
			assert_memory_equal(ww_alloc_rows(used), ww_alloc_rows(fresh),
			                    (in.problem.n_rows + 1) * sizeof(struct ww_alloc_row_result));
			if (what % 4 == 0)
				ww_alloc_run(used, 3);
			ww_alloc_destroy(fresh);
		}
		ww_alloc_destroy(used);
		instance_finish(&in);
	}
}

/* ---- Odd problems ---------------------------------------------------------------------------------------------------------- */

static void check_finite(const struct instance *in, const ww_alloc *alloc)
{
	struct ww_alloc_summary s = ww_alloc_result(alloc);
	assert_true(isfinite(s.value) && isfinite(s.bound) && isfinite(s.bound_gap_frac) && isfinite(s.shrink));
	for (size_t i = 0; i < in->problem.n_jobs; i++) {
		const struct ww_alloc_share *x = &ww_alloc_shares(alloc)[i];
		assert_true(x->cut_frac >= 0 && x->cut_frac <= 1 && isfinite(x->throughput_frac) && x->trust >= 0 &&
		            x->trust <= 1);
		assert_true(isfinite(x->equal_cut_frac) && isfinite(x->box_cut_frac) && isfinite(x->floor_frac));
	}
	for (size_t r = 0; r <= in->problem.n_rows; r++) {
		const struct ww_alloc_row_result *x = &ww_alloc_rows(alloc)[r];
		assert_true(isfinite(x->power_w) && isfinite(x->price) && isfinite(x->missing_w) &&
		            isfinite(x->over_w));
	}
}

static struct ww_curve odd_curve(struct ww_rng *rng)
{
	static const uint32_t knots[] = {2, 2, 3, 16, 9};
	struct ww_curve c = instance_curve(rng, (enum shape)ww_rng_below(rng, 5), knots[ww_rng_below(rng, 5)]);
	uint32_t kind = ww_rng_below(rng, 8);
	c.p0_w = kind == 0 ? 1e-6 : kind == 1 ? 1e9 : c.p0_w;
	c.t0_tps = kind == 2 ? 1e-9 : kind == 3 ? 1e12 : c.t0_tps;
	c.max_cut_frac = kind == 4 ? 0 : kind == 5 ? 1 : c.max_cut_frac;
	if (ww_rng_below(rng, 2)) {
		c.var_a = ww_rng_below(rng, 2) ? 1e6 : 1e-6;
		c.var_b = ww_rng_below(rng, 2) ? 1e12 : 1e-4;
	}
	return c;
}

static void odd_problems_give_numbers(void **state)
{
	struct ww_rng rng;
	(void)state;
	ww_rng_seed(&rng, 5);
	for (uint64_t seed = 0; seed < 2 * n_instances(); seed++) {
		static const double budgets[] = {1, 0, -1, 1e-9, 1e9, 0.999999, INFINITY};
		struct instance in;
		struct instance_spec spec = spec_of(seed);
		spec.n_jobs = seed % 5 == 0 ? 1 : spec.n_jobs % 40 + 1;
		spec.node_gpus = seed % 3 ? 8 : 0;
		instance_init(&in, &spec);
		for (size_t i = 0; i < in.problem.n_jobs; i++) {
			in.curves[i] = odd_curve(&rng);
			in.jobs[i].min_w = fmin(in.jobs[i].min_w, in.curves[i].p0_w);
			in.jobs[i].max_w = 0;
		}
		double factor = budgets[seed % 7];
		in.problem.budget_w = isinf(factor) ? factor : in.problem.budget_w * factor;
		ww_alloc *alloc = solve(&in);
		check_finite(&in, alloc);
		ww_alloc_destroy(alloc);
		instance_finish(&in);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_sweep_keeps_all_rows_and_gets_no_worse),
		cmocka_unit_test(running_allocates_nothing),
		cmocka_unit_test(more_budget_never_lowers_the_value),
		cmocka_unit_test(warm_is_as_good_as_cold),
		cmocka_unit_test(prices_of_another_world_do_no_harm),
		cmocka_unit_test(the_order_of_jobs_and_shares_is_irrelevant),
		cmocka_unit_test(scaling_leaves_the_cuts),
		cmocka_unit_test(equal_jobs_get_equal_cuts),
		cmocka_unit_test(every_change_is_noticed),
		cmocka_unit_test(odd_problems_give_numbers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
