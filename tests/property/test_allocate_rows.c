/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must hold for any division of power on rows, on 150 random problems in all four objectives: rows and floors are
 * kept after every sweep, more watts never cost, neither order nor units matter, equal jobs are cut alike, a used
 * allocator is as good as a fresh one, a run takes no memory and one broken row harms nobody outside it.
 *
 * A property that does not hold is told with its seed (the first few), and the test goes on to count the others.
 * WATTWEIR_INSTANCES: how many of the problems.
 */
#include "assert_near.h"
#include "instances.h"
#include "wrapped_memory.h"

#include <string.h>

#define INSTANCES 150
#define CONVERGED 200 /* sweeps after which nothing more is expected */
#define TOLD 5        /* failures of one test that are printed */

/* ---- All problems ------------------------------------------------------------------------------------------------------ */

static struct instance_spec now; /* the problem at hand */
static size_t n_failures, n_seen;

/* value <= limit; never true for a NAN. */
static bool not_above(double value, double limit, const char *what)
{
	if (value <= limit)
		return true;
	if (n_failures++ < TOLD)
		print_error("seed %llu, %s: %s: %.17g is above %.17g by %.3g\n", (unsigned long long)now.seed,
		            ww_objective_name(now.objective), what, value, limit, value - limit);
	return false;
}

static bool near(double a, double b, double tol, const char *what)
{
	return not_above(fabs(a - b), tol, what);
}

static size_t n_instances(void)
{
	const char *text = getenv("WATTWEIR_INSTANCES");
	unsigned long n = text ? strtoul(text, NULL, 10) : 0;
	return n > 0 ? n : INSTANCES;
}

/* Every problem has racks, rows and feeds, jobs that span them and misplaced GPUs; every third has jobs that tie. */
static struct instance_spec spec_of(uint64_t seed, int objective)
{
	struct instance_spec spec = instance_spec_random(seed);
	spec.objective = (enum ww_objective)objective;
	spec.misplaced_frac = 0.2;
	spec.ties = spec.ties || seed % 3 == 0;
	return spec;
}

static void for_all(void (*check)(void), int n_objectives, void (*change)(struct instance_spec *spec))
{
	n_failures = n_seen = 0;
	for (uint64_t seed = 1; seed <= n_instances(); seed++)
		for (int objective = 0; objective < n_objectives; objective++) {
			now = spec_of(seed, objective);
			if (change)
				change(&now);
			check();
		}
	if (n_failures)
		fail_msg("%zu comparisons failed", n_failures);
	assert_true(n_seen > 0);
}

/* ---- Small helpers ------------------------------------------------------------------------------------------------------ */

static double *numbers(size_t n)
{
	double *out = calloc(n + 1, sizeof *out);
	assert_non_null(out);
	return out;
}

static ww_alloc *create(void)
{
	struct ww_error err;
	ww_alloc *alloc;
	assert_int_equal(ww_alloc_create(&alloc, &err), WW_OK);
	return alloc;
}

static void set(ww_alloc *alloc, const struct ww_alloc_problem *problem)
{
	struct ww_error err;
	if (ww_alloc_set(alloc, problem, &err))
		fail_msg("seed %llu: %s", (unsigned long long)now.seed, err.text);
}

static struct ww_alloc_summary solve(const struct ww_alloc_problem *problem, unsigned sweeps, double *cut)
{
	ww_alloc *alloc = create();
	set(alloc, problem);
	ww_alloc_run(alloc, sweeps);
	for (size_t i = 0; i < problem->n_jobs; i++)
		cut[i] = ww_alloc_shares(alloc)[i].cut_frac;
	struct ww_alloc_summary summary = ww_alloc_result(alloc);
	ww_alloc_destroy(alloc);
	return summary;
}

static double *budget_of(struct instance *in, size_t r)
{
	return r < in->problem.n_rows ? &in->rows[r].budget_w : &in->problem.budget_w;
}

static void scale_budgets(struct instance *in, double factor)
{
	for (size_t r = 0; r <= in->problem.n_rows; r++)
		*budget_of(in, r) *= factor;
}

/* Per row, the watts of cut that jobs give at what `cut_of` says. The caller frees. */
static double *watts_at(const struct instance *in, double (*cut_of)(const struct ww_alloc_job *))
{
	double *cut = numbers(in->problem.n_jobs), *out = numbers(in->problem.n_rows + 1);
	for (size_t i = 0; i < in->problem.n_jobs; i++)
		cut[i] = cut_of(&in->jobs[i]);
	instance_cut_w(in, cut, out);
	free(cut);
	return out;
}

/* ---- After every sweep ----------------------------------------------------------------------------------------------- */

struct limits {
	double *floor_w, *lowest_w; /* per row: watts of cut with all floors kept, and at the lowest powers */
	bool feasible;
};

static struct limits limits_of(const struct instance *in)
{
	struct limits out = {watts_at(in, instance_floor_cut), watts_at(in, instance_lowest_cut), true};
	for (size_t r = 0; r <= in->problem.n_rows; r++)
		out.feasible = out.feasible && instance_need_w(in, r) <= out.floor_w[r];
	return out;
}

static void limits_finish(struct limits *limits)
{
	free(limits->floor_w);
	free(limits->lowest_w);
}

static void check_rows(const struct instance *in, const struct limits *limits, const double *cut, double *cut_w)
{
	instance_cut_w(in, cut, cut_w);
	for (size_t r = 0; r <= in->problem.n_rows; r++) {
		double need_w = fmin(instance_need_w(in, r), limits->lowest_w[r]);
		not_above(need_w - cut_w[r], 1e-9 * in->size_w[r], "watts over a row's budget");
	}
}

static void check_jobs(const struct instance *in, const struct ww_alloc_share *shares, bool feasible)
{
	for (size_t i = 0; i < in->problem.n_jobs; i++) {
		const struct ww_alloc_job *job = &in->jobs[i];
		double kept = 1 - ww_curve_loss(job->curve, shares[i].cut_frac);
		double most = 1 - ww_curve_loss(job->curve, instance_least_cut(job)); /* at max_w */
		not_above(0, shares[i].cut_frac, "a cut below 0");
		not_above(shares[i].cut_frac, shares[i].box_cut_frac, "a cut outside its box");
		near(shares[i].throughput_frac, fmax(0, kept), 1e-12, "throughput_frac");
		if (feasible && job->floor_frac > 0)
			not_above(fmin(job->floor_frac, most) - kept, 1e-9, "short of a promised floor");
	}
}

/* On half of the problems curves are uncertain. */
static void add_doubt(struct instance *in)
{
	for (size_t i = 0; now.seed % 2 && i < in->problem.n_jobs; i++) {
		in->curves[i].var_a = 1e-4 * (double)(1 + i % 7);
		in->curves[i].var_b = 1e-3 * (double)(1 + i % 5);
	}
}

static void check_anytime(void)
{
	struct instance in;
	instance_init(&in, &now);
	add_doubt(&in);
	struct limits limits = limits_of(&in);
	double *cut = numbers(in.problem.n_jobs), *cut_w = numbers(in.problem.n_rows + 1), last = -INFINITY;
	ww_alloc *alloc = create();
	set(alloc, &in.problem);
	for (int sweep = 0; sweep <= 12; sweep++) {
		if (sweep > 0 && ww_alloc_run(alloc, 1) == 0)
			break;
		const struct ww_alloc_share *shares = ww_alloc_shares(alloc);
		for (size_t i = 0; i < in.problem.n_jobs; i++)
			cut[i] = shares[i].cut_frac;
		check_rows(&in, &limits, cut, cut_w);
		check_jobs(&in, shares, limits.feasible);
		struct ww_alloc_summary s = ww_alloc_result(alloc);
		if (now.seed % 2 == 0)
			near(s.value, instance_value(&in, cut), 1e-9 * (1 + fabs(s.value)), "value");
		not_above(last - s.value, 1e-12 * fabs(s.value), "a sweep cost");
		not_above(s.value - s.bound, 1e-9 * fabs(s.value), "value above its bound");
		last = s.value;
		n_seen++;
	}
	ww_alloc_destroy(alloc);
	limits_finish(&limits);
	instance_finish(&in);
	free(cut);
	free(cut_w);
}

static void rows_and_floors_are_kept_after_every_sweep(void **state)
{
	(void)state;
	for_all(check_anytime, 4, NULL);
}

/* Problems that are solved to the end are a quarter as large. */
static void smaller(struct instance_spec *spec)
{
	spec->n_jobs = 2 + spec->n_jobs / 4;
}

/* ---- More watts -------------------------------------------------------------------------------------------------------- */

static void no_box_moves(struct instance_spec *spec)
{
	smaller(spec);
	spec->explore = true;
	spec->feasible = true;
}

/* Beyond standstill a box ends at the equal cut, which moves: such steps are left out. Remembers the boxes in `box`. */
static bool box_shrank(const ww_alloc *alloc, size_t n, double *box)
{
	bool shrank = false;
	for (size_t i = 0; i < n; i++) {
		double b = ww_alloc_shares(alloc)[i].box_cut_frac;
		shrank = shrank || b < box[i] - 1e-12;
		box[i] = b;
	}
	return shrank;
}

static void check_more_budget(void)
{
	struct instance in;
	instance_init(&in, &now);
	double *box = numbers(in.problem.n_jobs), last = -INFINITY;
	for (int step = 0; step < 6; step++) {
		ww_alloc *alloc = create();
		set(alloc, &in.problem);
		ww_alloc_run(alloc, CONVERGED);
		struct ww_alloc_summary s = ww_alloc_result(alloc);
		bool moved = box_shrank(alloc, in.problem.n_jobs, box);
		if (!moved && step > 0) {
			not_above(last - s.value, 1e-6 * fabs(s.value) + fmax(0, s.bound - s.value), "more watts cost");
			n_seen++;
		}
		last = s.value;
		ww_alloc_destroy(alloc);
		scale_budgets(&in, 1.02);
	}
	instance_finish(&in);
	free(box);
}

static void more_budget_never_costs(void **state)
{
	(void)state;
	for_all(check_more_budget, 3, no_box_moves);
	print_message("# %zu of %zu steps compared\n", n_seen, 15 * n_instances());
	assert_true(n_seen > 10 * n_instances());
}

/* ---- Order -------------------------------------------------------------------------------------------------------------- */

static void shuffle(size_t *order, size_t n, struct ww_rng *rng)
{
	for (size_t i = 0; i < n; i++)
		order[i] = i;
	for (size_t i = n; i > 1; i--) {
		size_t k = ww_rng_below(rng, (uint32_t)i), kept = order[i - 1];
		order[i - 1] = order[k];
		order[k] = kept;
	}
}

static void check_job_order(void)
{
	struct instance in;
	struct ww_rng rng;
	instance_init(&in, &now);
	add_doubt(&in);
	size_t n = in.problem.n_jobs, *order = calloc(n, sizeof *order);
	struct ww_alloc_job *jobs = calloc(n, sizeof *jobs);
	double *cut = numbers(n), *other = numbers(n);
	assert_true(order && jobs);
	ww_rng_seed(&rng, now.seed);
	shuffle(order, n, &rng);
	for (size_t i = 0; i < n; i++)
		jobs[i] = in.jobs[order[i]];
	solve(&in.problem, 30, cut);
	in.problem.jobs = jobs;
	solve(&in.problem, 30, other);
	for (size_t i = 0; i < n; i++)
		near(other[i], cut[order[i]], 0, "cuts of shuffled jobs");
	n_seen++;
	instance_finish(&in);
	free(order);
	free(jobs);
	free(cut);
	free(other);
}

static void the_order_of_jobs_is_irrelevant(void **state)
{
	(void)state;
	for_all(check_job_order, 4, smaller);
}

static void shuffle_shares(struct instance *in, struct ww_rng *rng)
{
	struct ww_row_share *share = in->shares;
	for (size_t i = 0; i < in->problem.n_jobs; share += in->jobs[i++].n_rows)
		for (uint32_t k = in->jobs[i].n_rows; k > 1; k--) {
			uint32_t other = ww_rng_below(rng, k);
			struct ww_row_share kept = share[k - 1];
			share[k - 1] = share[other];
			share[other] = kept;
		}
}

static void check_share_order(void)
{
	struct instance in;
	struct ww_rng rng;
	instance_init(&in, &now);
	double *cut = numbers(in.problem.n_jobs), *other = numbers(in.problem.n_jobs);
	solve(&in.problem, 30, cut);
	ww_rng_seed(&rng, now.seed);
	shuffle_shares(&in, &rng);
	solve(&in.problem, 30, other);
	for (size_t i = 0; i < in.problem.n_jobs; i++)
		near(other[i], cut[i], 1e-9, "cuts with shuffled shares");
	n_seen++;
	instance_finish(&in);
	free(cut);
	free(other);
}

static void the_order_of_row_shares_is_irrelevant(void **state)
{
	(void)state;
	for_all(check_share_order, 4, smaller);
}

/* ---- Units -------------------------------------------------------------------------------------------------------------- */

static void scale_watts(struct instance *in)
{
	scale_budgets(in, 8);
	for (size_t i = 0; i < in->problem.n_jobs; i++) {
		in->curves[i].p0_w *= 8;
		in->jobs[i].min_w *= 8;
		in->jobs[i].max_w *= 8;
	}
}

static void scale_tokens(struct instance *in)
{
	for (size_t i = 0; i < in->problem.n_jobs; i++)
		in->curves[i].t0_tps *= 1024;
}

static void scale_weights(struct instance *in)
{
	for (size_t i = 0; i < in->problem.n_jobs; i++)
		in->jobs[i].weight *= 0.25;
}

/* Odd curves are flat in places, where many divisions are equally good: `values` alone is compared there. */
static void check_scale(void (*scale)(struct instance *), bool values, const char *what)
{
	struct instance in;
	instance_init(&in, &now);
	add_doubt(&in);
	double *cut = numbers(in.problem.n_jobs), *other = numbers(in.problem.n_jobs);
	struct ww_alloc_summary s = solve(&in.problem, 30, cut);
	scale(&in);
	struct ww_alloc_summary t = solve(&in.problem, 30, other);
	for (size_t i = 0; !values && i < in.problem.n_jobs; i++)
		near(other[i], cut[i], 1e-6, what);
	if (values)
		near(t.value, s.value, 1e-9 * fabs(s.value) + fmax(s.bound - s.value, t.bound - t.value), what);
	n_seen++;
	instance_finish(&in);
	free(cut);
	free(other);
}

static void check_units(void)
{
	check_scale(scale_watts, now.odd_curves, "cuts with all watts x 8");
	check_scale(scale_tokens, false, "cuts with all T0 x 1024");
	if (now.objective != WW_OBJECTIVE_MAXMIN)
		check_scale(scale_weights, false, "cuts with all weights x 0.25");
}

static void units_are_irrelevant(void **state)
{
	(void)state;
	for_all(check_units, 4, smaller);
}

/* ---- Equal jobs -------------------------------------------------------------------------------------------------------- */

#define ALIKE 1e-6
#define SMALL_GAP 1e-9

static size_t n_unlike, n_open;
static double worst_unlike;

/* Every job twice, on budgets twice as large. */
static void check_twins(void)
{
	struct instance in;
	instance_init(&in, &now);
	size_t n = in.problem.n_jobs;
	struct ww_alloc_job *jobs = calloc(2 * n, sizeof *jobs);
	double *cut = numbers(2 * n), most = 0;
	assert_non_null(jobs);
	for (size_t i = 0; i < n; i++) {
		jobs[i] = jobs[n + i] = in.jobs[i];
		jobs[n + i].id++; /* ids of instances are odd multiples: free */
	}
	scale_budgets(&in, 2);
	in.problem.jobs = jobs;
	in.problem.n_jobs = 2 * n;
	struct ww_alloc_summary s = solve(&in.problem, CONVERGED, cut);
	for (size_t i = 0; i < n; i++)
		most = fmax(most, fabs(cut[i] - cut[n + i]));
	n_unlike += most > ALIKE;
	n_open += s.bound_gap_frac > SMALL_GAP;
	worst_unlike = fmax(worst_unlike, most);
	if (s.bound_gap_frac <= SMALL_GAP)
		not_above(most, ALIKE, "cuts of equal jobs apart");
	n_seen++;
	instance_finish(&in);
	free(jobs);
	free(cut);
}

static void equal_jobs_are_cut_alike(void **state)
{
	(void)state;
	n_unlike = n_open = 0;
	worst_unlike = 0;
	for_all(check_twins, 4, smaller);
	print_message("# %zu problems, %zu with a gap above %g; twins differ by more than %g in %zu, at most %.2g\n",
	              n_seen, n_open, SMALL_GAP, ALIKE, n_unlike, worst_unlike);
}

/* ---- A used allocator -------------------------------------------------------------------------------------------------- */

static double warm_sweeps, fresh_sweeps;

/* Sweeps to a gap of 1e-6; then on to where nothing more is gained. */
static unsigned sweeps_to_gap(ww_alloc *alloc)
{
	unsigned sweeps = 0, done = 0;
	while (done < CONVERGED && ww_alloc_result(alloc).bound_gap_frac > 1e-6 && ww_alloc_run(alloc, 1) > 0)
		done++;
	sweeps = ww_alloc_result(alloc).bound_gap_frac > 1e-6 ? CONVERGED : done;
	ww_alloc_run(alloc, CONVERGED - done);
	return sweeps;
}

static void check_warm(void)
{
	struct instance in;
	instance_init(&in, &now);
	ww_alloc *used = create(), *fresh = create();
	set(used, &in.problem);
	ww_alloc_run(used, CONVERGED);
	in.problem.budget_w *= now.seed % 4 < 2 ? 0.97 : 1.03;
	set(used, &in.problem);
	set(fresh, &in.problem);
	warm_sweeps += sweeps_to_gap(used);
	fresh_sweeps += sweeps_to_gap(fresh);
	double value = ww_alloc_result(used).value, other = ww_alloc_result(fresh).value;
	not_above(other - value, 1e-6 * fabs(other), "a used allocator is worse than a fresh one");
	n_seen++;
	ww_alloc_destroy(used);
	ww_alloc_destroy(fresh);
	instance_finish(&in);
}

static void a_used_allocator_is_as_good_as_a_fresh_one(void **state)
{
	(void)state;
	warm_sweeps = fresh_sweeps = 0;
	for_all(check_warm, 4, smaller);
	print_message("# sweeps to a gap of 1e-6: used %.2f, fresh %.2f\n", warm_sweeps / (double)n_seen,
	              fresh_sweeps / (double)n_seen);
	assert_true(warm_sweeps <= fresh_sweeps);
}

/* ---- Memory ------------------------------------------------------------------------------------------------------------- */

static void check_memory(void)
{
	struct instance in;
	instance_init(&in, &now);
	unsigned long before = n_allocations;
	ww_alloc *alloc = create();
	set(alloc, &in.problem);
	assert_true(n_allocations > before); /* the counter counts */
	before = n_allocations;
	for (int sweep = 0; sweep < 20; sweep++)
		n_seen += ww_alloc_run(alloc, 1) > 0;
	not_above((double)(n_allocations - before), 0, "allocations of 20 runs");
	before = n_allocations;
	set(alloc, &in.problem);
	not_above((double)(n_allocations - before), 0, "allocations of a second set of the same size");
	ww_alloc_destroy(alloc);
	instance_finish(&in);
}

static void a_run_takes_no_memory(void **state)
{
	(void)state;
	for_all(check_memory, 4, NULL);
}

/* ---- One broken row ---------------------------------------------------------------------------------------------------- */

static double watts_on(const struct ww_alloc_job *job, size_t r)
{
	for (uint32_t k = 0; k < job->n_rows; k++)
		if (job->rows[k].row == r)
			return job->rows[k].gpus * job->curve->p0_w;
	return 0;
}

/* The smallest row where floors leave something to give; n_rows when there is none. */
static size_t small_row(const struct instance *in, const struct limits *limits)
{
	size_t best = in->problem.n_rows;
	for (size_t r = 0; r < in->problem.n_rows; r++)
		if (limits->lowest_w[r] - limits->floor_w[r] > 1e-3 * in->size_w[r] &&
		    (best == in->problem.n_rows || in->size_w[r] < in->size_w[best]))
			best = r;
	return best;
}

/* Deepest cuts once the row has taken what it needs: tier 3 first, all of the last tier by the same share. */
static void relax(const struct instance *in, size_t r, double need_w, double *reach)
{
	for (size_t i = 0; i < in->problem.n_jobs; i++) {
		reach[i] = instance_floor_cut(&in->jobs[i]);
		need_w -= watts_on(&in->jobs[i], r) * reach[i];
	}
	for (int tier = 3; tier >= 0 && need_w > 1e-12 * in->size_w[r]; tier--) {
		double room = 0;
		for (size_t i = 0; i < in->problem.n_jobs; i++)
			if (in->jobs[i].tier == tier)
				room += watts_on(&in->jobs[i], r) * (instance_lowest_cut(&in->jobs[i]) - reach[i]);
		double share = room > need_w ? need_w / room : 1;
		for (size_t i = 0; i < in->problem.n_jobs; i++)
			if (in->jobs[i].tier == tier && watts_on(&in->jobs[i], r) > 0)
				reach[i] += share * (instance_lowest_cut(&in->jobs[i]) - reach[i]);
		need_w -= share * room;
	}
}

/* Every other row is untouched, jobs elsewhere keep their floors, jobs here give what their tier has to. */
static void check_broken(const struct instance *in, const struct limits *limits, size_t broken, ww_alloc *alloc)
{
	const struct ww_alloc_row_result *rows = ww_alloc_rows(alloc);
	const struct ww_alloc_share *shares = ww_alloc_shares(alloc);
	size_t n = in->problem.n_jobs;
	double *reach = numbers(n), need_w = instance_need_w(in, broken), size = in->size_w[broken];
	for (size_t r = 0; r <= in->problem.n_rows; r++) {
		double missing = r == broken ? fmax(0, need_w - limits->floor_w[r]) : 0;
		double over = r == broken ? fmax(0, need_w - limits->lowest_w[r]) : 0;
		near(rows[r].missing_w, missing, r == broken ? 1e-9 * size : 0, "missing_w");
		near(rows[r].over_w, over, r == broken ? 1e-9 * size : 0, "over_w");
	}
	relax(in, broken, fmin(need_w, limits->lowest_w[broken]), reach);
	for (size_t i = 0; i < n; i++) {
		const struct ww_alloc_job *job = &in->jobs[i];
		double loss = ww_curve_loss(job->curve, reach[i]), kept = fmin(job->floor_frac, fmax(0, 1 - loss));
		double steep = ww_curve_slope(job->curve, reach[i]);
		near(shares[i].floor_frac, kept, 1e-9 * (1 + steep), "floor_frac");
		not_above(shares[i].cut_frac - reach[i], 1e-9, "a cut below its floor");
		if (watts_on(job, broken) > 0)
			near(watts_on(job, broken) * (shares[i].cut_frac - reach[i]), 0, 2e-9 * size, "a broken row");
		else if (instance_least_cut(job) == 0)
			not_above(job->floor_frac - shares[i].throughput_frac, 1e-9, "a floor away from the row");
	}
	free(reach);
}

static void break_row(struct instance *in, const struct limits *limits, size_t r, double depth)
{
	double room = limits->lowest_w[r] - limits->floor_w[r];
	in->rows[r].budget_w = in->size_w[r] - limits->floor_w[r] - depth * room;
	ww_alloc *alloc = create();
	double *cut = numbers(in->problem.n_jobs), *cut_w = numbers(in->problem.n_rows + 1);
	set(alloc, &in->problem);
	for (int sweep = 0; sweep < 4; sweep++) {
		check_broken(in, limits, r, alloc);
		for (size_t i = 0; i < in->problem.n_jobs; i++)
			cut[i] = ww_alloc_shares(alloc)[i].cut_frac;
		check_rows(in, limits, cut, cut_w);
		if (ww_alloc_result(alloc).outcome != WW_OUTCOME_INFEASIBLE)
			not_above(1, 0, "outcome is not infeasible");
		ww_alloc_run(alloc, 1);
	}
	ww_alloc_destroy(alloc);
	free(cut);
	free(cut_w);
	n_seen++;
}

static void check_one_broken_row(void)
{
	static const double depth[] = {0.1, 0.5, 0.9, 1.2};
	struct instance in;
	instance_init(&in, &now);
	struct limits limits = limits_of(&in);
	size_t r = small_row(&in, &limits);
	for (size_t i = 0; i < sizeof depth / sizeof *depth && r < in.problem.n_rows; i++)
		break_row(&in, &limits, r, depth[i]);
	limits_finish(&limits);
	instance_finish(&in);
}

static void with_floors(struct instance_spec *spec)
{
	smaller(spec);
	spec->floors = true;
	spec->feasible = true;
}

static void a_broken_row_harms_nobody_outside_it(void **state)
{
	(void)state;
	for_all(check_one_broken_row, 4, with_floors);
	print_message("# %zu broken rows\n", n_seen);
	assert_true(n_seen > 12 * n_instances());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_and_floors_are_kept_after_every_sweep),
		cmocka_unit_test(more_budget_never_costs),
		cmocka_unit_test(the_order_of_jobs_is_irrelevant),
		cmocka_unit_test(the_order_of_row_shares_is_irrelevant),
		cmocka_unit_test(units_are_irrelevant),
		cmocka_unit_test(equal_jobs_are_cut_alike),
		cmocka_unit_test(a_used_allocator_is_as_good_as_a_fresh_one),
		cmocka_unit_test(a_run_takes_no_memory),
		cmocka_unit_test(a_broken_row_harms_nobody_outside_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
