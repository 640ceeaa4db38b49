/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The allocator against CLP on 300 random problems in all four objectives. CLP solves the linear program over 64 chords of
 * the same curves between the same bounds; chords lie above a convex loss, so its value is never above the optimum. The
 * level of maxmin is found by a bisection written here, what it leaves open goes to CLP.
 *
 * WATTWEIR_INSTANCES: how many of the problems.
 */
#include "assert_near.h"
#include "instances.h"
#include "oracle_clp.h"

#include <string.h>

#define INSTANCES 300
#define CHORDS 64
#define MEAN_GAP 2e-4
#define WORST_GAP 1e-3
#define SWEEPS 200

/* ---- One problem ------------------------------------------------------------------------------------------------------ */

struct trial {
	struct instance in;
	ww_alloc *alloc;
	const struct ww_alloc_share *shares;
	const struct ww_alloc_row_result *rows;
	struct ww_alloc_summary summary;
	double *lo, *hi, *cut, *peer; /* per job */
	double *need_w, *cut_w;       /* per row, last the site */
};

static double *numbers(size_t n)
{
	double *out = calloc(n + 1, sizeof *out);
	assert_non_null(out);
	return out;
}

static void trial_init(struct trial *t, const struct instance_spec *spec)
{
	struct ww_error err;
	instance_init(&t->in, spec);
	size_t n = t->in.problem.n_jobs, n_rows = t->in.problem.n_rows + 1;
	assert_int_equal(ww_alloc_create(&t->alloc, &err), WW_OK);
	if (ww_alloc_set(t->alloc, &t->in.problem, &err))
		fail_msg("seed %llu: %s", (unsigned long long)spec->seed, err.text);
	ww_alloc_run(t->alloc, SWEEPS);
	t->shares = ww_alloc_shares(t->alloc);
	t->rows = ww_alloc_rows(t->alloc);
	t->summary = ww_alloc_result(t->alloc);
	t->lo = numbers(n);
	t->hi = numbers(n);
	t->cut = numbers(n);
	t->peer = numbers(n);
	t->need_w = numbers(n_rows);
	t->cut_w = numbers(n_rows);
	for (size_t i = 0; i < n; i++) {
		t->lo[i] = instance_least_cut(&t->in.jobs[i]);
		t->hi[i] = fmax(t->shares[i].box_cut_frac, t->shares[i].equal_cut_frac);
		t->cut[i] = t->shares[i].cut_frac;
	}
	for (size_t r = 0; r < n_rows; r++)
		t->need_w[r] = instance_need_w(&t->in, r) - t->rows[r].over_w;
	instance_cut_w(&t->in, t->cut, t->cut_w);
}

static void trial_finish(struct trial *t)
{
	ww_alloc_destroy(t->alloc);
	instance_finish(&t->in);
	free(t->lo);
	free(t->hi);
	free(t->cut);
	free(t->peer);
	free(t->need_w);
	free(t->cut_w);
}

/* ---- What must hold for any division ------------------------------------------------------------------------------- */

static void check_division(const struct trial *t)
{
	for (size_t r = 0; r <= t->in.problem.n_rows; r++) {
		assert_true(t->cut_w[r] >= t->need_w[r] - 1e-9 * t->in.size_w[r]);
		assert_near(t->rows[r].power_w, t->in.size_w[r] - t->cut_w[r], 1e-9 * t->in.size_w[r]);
		assert_true(t->rows[r].price >= 0);
	}
	for (size_t i = 0; i < t->in.problem.n_jobs; i++) {
		const struct ww_alloc_share *s = &t->shares[i];
		assert_near(s->trust, 1, 0);
		assert_true(s->cut_frac >= t->lo[i] - 1e-12 && s->cut_frac <= t->hi[i] + 1e-12);
		assert_near(s->throughput_frac, fmax(0, 1 - ww_curve_loss(t->in.jobs[i].curve, s->cut_frac)), 1e-12);
		if (t->summary.outcome != WW_OUTCOME_INFEASIBLE && t->lo[i] == 0)
			assert_true(s->throughput_frac >= t->in.jobs[i].floor_frac - 1e-9);
	}
	assert_near(t->summary.value, instance_value(&t->in, t->cut), 1e-9 * (1 + fabs(t->summary.value)));
	assert_true(t->summary.bound >= t->summary.value - 1e-9 * fabs(t->summary.value));
}

/* ---- Floors that a row forces down ------------------------------------------------------------------------------------- */

static double on_row_w(const struct ww_alloc_job *job, size_t r, size_t n_rows)
{
	if (r == n_rows)
		return job->gpus * job->curve->p0_w;
	for (uint32_t k = 0; k < job->n_rows; k++)
		if (job->rows[k].row == r)
			return job->rows[k].gpus * job->curve->p0_w;
	return 0;
}

static double row_sum(const struct trial *t, size_t r, const double *cut, int tier)
{
	double sum = 0;
	for (size_t i = 0; i < t->in.problem.n_jobs; i++)
		if (tier < 0 || t->in.jobs[i].tier == tier)
			sum += on_row_w(&t->in.jobs[i], r, t->in.problem.n_rows) * cut[i];
	return sum;
}

/* Lowers floors on one row as the header says it: tier 3 first, all of a tier by the same share. */
static void relax_row(const struct trial *t, size_t r, double need_w, double *reach, const double *lowest)
{
	for (int tier = 3; tier >= 0; tier--) {
		double missing = need_w - row_sum(t, r, reach, -1);
		if (missing <= 1e-12 * t->in.size_w[r])
			return;
		double room = row_sum(t, r, lowest, tier) - row_sum(t, r, reach, tier);
		double share = room > 0 ? fmin(1, missing / room) : 0;
		for (size_t i = 0; i < t->in.problem.n_jobs; i++)
			if (t->in.jobs[i].tier == tier && on_row_w(&t->in.jobs[i], r, t->in.problem.n_rows) > 0)
				reach[i] += share * (lowest[i] - reach[i]);
	}
}

static size_t next_larger(const struct trial *t, size_t before)
{
	size_t none = t->in.problem.n_rows + 1, best = none;
	for (size_t r = 0; r < none; r++) {
		double size = t->in.size_w[r];
		bool after =
			before == none || size > t->in.size_w[before] || (size == t->in.size_w[before] && r > before);
		if (after && (best == none || size < t->in.size_w[best]))
			best = r;
	}
	return best;
}

/* Every row's missing watts, and the floors that are left, against an own computation. True when nothing is missing. */
static bool check_floors(const struct trial *t)
{
	size_t n = t->in.problem.n_jobs, none = t->in.problem.n_rows + 1;
	double *reach = numbers(n), *lowest = numbers(n);
	bool feasible = true;
	for (size_t i = 0; i < n; i++) {
		reach[i] = instance_floor_cut(&t->in.jobs[i]);
		lowest[i] = instance_lowest_cut(&t->in.jobs[i]);
	}
	for (size_t r = 0; r < none; r++) {
		double need_w = instance_need_w(&t->in, r), size = t->in.size_w[r];
		double missing = fmax(0, need_w - row_sum(t, r, reach, -1)),
		       over = fmax(0, need_w - row_sum(t, r, lowest, -1));
		assert_near(t->rows[r].missing_w, missing, 1e-9 * size);
		assert_near(t->rows[r].over_w, over, 1e-9 * size);
		feasible = feasible && missing <= 1e-9 * size;
	}
	for (size_t r = next_larger(t, none); r < none; r = next_larger(t, r))
		relax_row(t, r, t->need_w[r], reach, lowest);
	for (size_t i = 0; i < n; i++) {
		double kept = fmax(0, 1 - ww_curve_loss(t->in.jobs[i].curve, reach[i]));
		assert_near(t->shares[i].floor_frac, fmin(t->in.jobs[i].floor_frac, kept), 1e-7);
	}
	free(reach);
	free(lowest);
	return feasible;
}

/* ---- The optimum ------------------------------------------------------------------------------------------------------- */

static bool rows_kept(const struct trial *t, const double *cut, double *cut_w)
{
	instance_cut_w(&t->in, cut, cut_w);
	for (size_t r = 0; r <= t->in.problem.n_rows; r++)
		if (cut_w[r] < t->need_w[r] - 1e-12 * t->in.size_w[r])
			return false;
	return true;
}

static void cuts_at_level(const struct trial *t, double level, double *cut)
{
	for (size_t i = 0; i < t->in.problem.n_jobs; i++) {
		const struct ww_alloc_job *job = &t->in.jobs[i];
		cut[i] = fmax(t->lo[i], instance_cut_at_loss(job->curve, (1 - level) / job->weight, t->hi[i]));
	}
}

/* The highest 1 - w loss that all jobs can keep at once. */
static double best_level(const struct trial *t, double *cut, double *cut_w)
{
	double lo = 1, hi = 1;
	for (size_t i = 0; i < t->in.problem.n_jobs; i++) {
		const struct ww_alloc_job *job = &t->in.jobs[i];
		hi = fmin(hi, 1 - job->weight * ww_curve_loss(job->curve, t->lo[i]));
		lo = fmin(lo, 1 - job->weight * ww_curve_loss(job->curve, t->hi[i]));
	}
	for (int step = 0; step < 50; step++) {
		double mid = (lo + hi) / 2;
		cuts_at_level(t, mid, cut);
		if (rows_kept(t, cut, cut_w))
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

struct tally {
	size_t n;
	double gap_sum, gap_worst, peer_sum, peer_worst, sweeps_sum;
	unsigned sweeps_most;
	unsigned long long worst_seed;
};

static void count(struct tally *sum, const struct trial *t, double peer_gap, uint64_t seed)
{
	double gap = t->summary.bound_gap_frac;
	sum->n++;
	sum->gap_sum += gap;
	sum->peer_sum += fmax(0, peer_gap);
	if (fmax(gap, peer_gap) > fmax(sum->gap_worst, sum->peer_worst))
		sum->worst_seed = seed;
	sum->gap_worst = fmax(sum->gap_worst, gap);
	sum->peer_worst = fmax(sum->peer_worst, peer_gap);
	sum->sweeps_sum += t->summary.sweeps;
	if (t->summary.sweeps > sum->sweeps_most)
		sum->sweeps_most = t->summary.sweeps;
}

/* Relative to our value, how much better CLP's division is on the curves. */
static double gap_to_peer(struct trial *t, enum ww_objective objective)
{
	struct oracle_task task = {&t->in, t->lo, t->hi, t->need_w, objective, CHORDS, ORACLE_DUAL};
	struct oracle_answer answer = oracle_solve(&task, t->peer);
	struct instance in = t->in;
	in.problem.objective = objective;
	double ours = instance_value(&in, t->cut), theirs = instance_value(&in, t->peer);
	assert_true(answer.solved);
	if (t->in.problem.objective != WW_OBJECTIVE_MAXMIN)
		assert_true(t->summary.bound >= answer.value - 1e-9 * fabs(answer.value));
	return ours == theirs ? 0 : (theirs - ours) / fabs(ours);
}

static double check_maxmin(struct trial *t)
{
	double level = best_level(t, t->peer, t->cut_w), own = t->summary.value;
	assert_true(t->summary.bound >= level - 1e-9 * (1 + fabs(level)));
	cuts_at_level(t, level - 1e-9 * fabs(level), t->peer);
	memcpy(t->hi, t->peer, t->in.problem.n_jobs * sizeof *t->hi);
	return fmax((level - own) / fmax(fabs(own), 1e-3), gap_to_peer(t, WW_OBJECTIVE_RELATIVE));
}

/* ---- All problems ---------------------------------------------------------------------------------------------------------- */

static void print_tally(const char *name, const struct tally *s)
{
	if (s->n == 0)
		return;
	double n = (double)s->n;
	print_message("# %-8s %3zu problems: own gap mean %.1e worst %.1e; below CLP mean %.1e worst %.1e (seed %llu); "
	              "sweeps mean "
	              "%.1f most %u\n",
	              name, s->n, s->gap_sum / n, s->gap_worst, s->peer_sum / n, s->peer_worst, s->worst_seed,
	              s->sweeps_sum / n, s->sweeps_most);
}

static size_t n_instances(void)
{
	const char *text = getenv("WATTWEIR_INSTANCES");
	long n = text ? strtol(text, NULL, 10) : 0;
	return n > 0 ? (size_t)n : INSTANCES;
}

static void run_objective(enum ww_objective objective)
{
	struct tally all = {0};
	size_t infeasible = 0;
	for (uint64_t seed = 1; seed <= n_instances(); seed++) {
		struct trial t = {0};
		struct instance_spec spec = instance_spec_random(seed);
		spec.objective = objective;
		trial_init(&t, &spec);
		check_division(&t);
		bool feasible = check_floors(&t);
		assert_int_equal(t.summary.outcome == WW_OUTCOME_INFEASIBLE, !feasible);
		infeasible += !feasible;
		double peer_gap = objective == WW_OBJECTIVE_MAXMIN ? check_maxmin(&t) : gap_to_peer(&t, objective);
		count(&all, &t, peer_gap, seed);
		if (getenv("WATTWEIR_EACH"))
			print_message("# seed %llu: %zu jobs, %zu rows, %s, gap %.2e, below CLP %.2e, %u sweeps\n",
			              (unsigned long long)seed, t.in.problem.n_jobs, t.in.problem.n_rows + 1,
			              ww_outcome_name(t.summary.outcome), t.summary.bound_gap_frac, peer_gap,
			              t.summary.sweeps);
		trial_finish(&t);
	}
	print_tally(ww_objective_name(objective), &all);
	print_message("# %zu of them infeasible\n", infeasible);
	assert_true(all.gap_sum <= MEAN_GAP * (double)all.n && all.peer_sum <= MEAN_GAP * (double)all.n);
	assert_true(all.gap_worst <= WORST_GAP && all.peer_worst <= WORST_GAP);
}

static void test_relative(void **state)
{
	(void)state;
	run_objective(WW_OBJECTIVE_RELATIVE);
}

static void test_tokens(void **state)
{
	(void)state;
	run_objective(WW_OBJECTIVE_TOKENS);
}

static void test_log(void **state)
{
	(void)state;
	run_objective(WW_OBJECTIVE_LOG);
}

static void test_maxmin(void **state)
{
	(void)state;
	run_objective(WW_OBJECTIVE_MAXMIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_relative),
		cmocka_unit_test(test_tokens),
		cmocka_unit_test(test_log),
		cmocka_unit_test(test_maxmin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
