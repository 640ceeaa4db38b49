/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The allocator beside CLP on one cluster: 12,500 jobs on 100,000 GPUs. CLP solves the linear program over 16 chords of
 * the same curves between the same bounds, the faster of its dual and its automatic choice, its solve time alone.
 * Ours is set plus run until the proved gap is 1e-3 at most: cold, and warm after the budget fell by 3 %. Both run in one
 * thread; times are the processor's, so that other work on the machine matters little.
 *
 * bench_allocate [JOBS]; WATTWEIR_BENCH_REPEATS (3).
 */
#include "instances.h"
#ifdef WITH_CLP
#include "oracle_clp.h"
#endif

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ENOUGH_GAP 1e-3
#define MOST_REPEATS 25

static double seconds_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	double p = *(const double *)a, q = *(const double *)b;
	return (p > q) - (p < q);
}

static ww_alloc *new_alloc(void)
{
	ww_alloc *alloc;
	if (ww_alloc_create(&alloc, NULL))
		exit(1);
	return alloc;
}

/* Set and run until the gap is small enough; seconds. */
static double solve(ww_alloc *alloc, const struct ww_alloc_problem *problem)
{
	struct ww_error err;
	double start = seconds_now();
	if (ww_alloc_set(alloc, problem, &err)) {
		fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
	while (ww_alloc_run(alloc, 1) == 1 && ww_alloc_result(alloc).bound_gap_frac > ENOUGH_GAP)
		;
	return seconds_now() - start;
}

struct timing {
	size_t n;
	double cold[MOST_REPEATS], warm[MOST_REPEATS], peer[MOST_REPEATS], peer_warm[MOST_REPEATS];
	struct ww_alloc_summary cold_result, warm_result;
	double tight_share, value_gap;
};

static double share_of_tight_rows(const ww_alloc *alloc, size_t n_rows)
{
	size_t tight = 0;
	for (size_t r = 0; r < n_rows; r++)
		tight += ww_alloc_rows(alloc)[r].price > 0;
	return n_rows ? (double)tight / (double)n_rows : 0;
}

/* Bounds and needs of the problem that was solved last, for the peer. */
struct bounds {
	double *lo, *hi, *cut, *need_w;
};

static struct bounds take_bounds(const struct instance *instance, const ww_alloc *alloc)
{
	size_t n = instance->problem.n_jobs, n_rows = instance->problem.n_rows + 1;
	struct bounds b = {.lo = calloc(3 * n + n_rows, sizeof *b.lo)};
	if (!b.lo)
		exit(1);
	b.hi = b.lo + n;
	b.cut = b.hi + n;
	b.need_w = b.cut + n;
	for (size_t i = 0; i < n; i++) {
		const struct ww_alloc_share *share = &ww_alloc_shares(alloc)[i];
		b.lo[i] = instance_least_cut(&instance->jobs[i]);
		b.hi[i] = fmax(share->box_cut_frac, share->equal_cut_frac);
	}
	for (size_t r = 0; r < n_rows; r++)
		b.need_w[r] = instance_need_w(instance, r) - ww_alloc_rows(alloc)[r].over_w;
	return b;
}

/* Seconds of the faster of CLP's two ways. */
static double peer(const struct instance *instance, struct bounds *b, double *value)
{
	double best = INFINITY;
	*value = NAN;
#ifdef WITH_CLP
	struct oracle_task task = {instance, b->lo, b->hi, b->need_w, instance->problem.objective, 16, ORACLE_DUAL};
	for (; task.method <= ORACLE_AUTOMATIC; task.method++) {
		struct oracle_answer answer = oracle_solve(&task, b->cut);
		if (answer.solved) {
			best = fmin(best, answer.seconds);
			*value = answer.value;
		}
	}
#else
	(void)instance;
#endif
	free(b->lo);
	return best;
}

static void measure(struct instance *instance, struct timing *t, bool with_peer)
{
	double budget = instance->problem.budget_w, value;
	ww_alloc *alloc = new_alloc();
	struct bounds cold = {0}, warm = {0};
	size_t at = t->n++;
	t->cold[at] = solve(alloc, &instance->problem);
	t->cold_result = ww_alloc_result(alloc);
	t->tight_share = share_of_tight_rows(alloc, instance->problem.n_rows);
	if (with_peer)
		cold = take_bounds(instance, alloc);
	instance->problem.budget_w = 0.97 * budget;
	t->warm[at] = solve(alloc, &instance->problem);
	t->warm_result = ww_alloc_result(alloc);
	if (with_peer) {
		warm = take_bounds(instance, alloc);
		t->peer_warm[at] = peer(instance, &warm, &value);
		instance->problem.budget_w = budget;
		t->peer[at] = peer(instance, &cold, &value);
		t->value_gap = (value - t->cold_result.value) / fabs(value);
	}
	instance->problem.budget_w = budget;
	ww_alloc_destroy(alloc);
}

static void print_times(const char *name, double *seconds, size_t n)
{
	qsort(seconds, n, sizeof *seconds, by_value);
	printf("  %-10s %10.2f %10.2f %10.2f ms\n", name, 1e3 * seconds[0], 1e3 * seconds[n / 2], 1e3 * seconds[n - 1]);
}

static void print_ratio(const char *name, const double *peer_s, const double *ours, size_t n)
{
	double ratio[MOST_REPEATS];
	for (size_t i = 0; i < n; i++)
		ratio[i] = peer_s[i] / ours[i];
	qsort(ratio, n, sizeof *ratio, by_value);
	printf("  %-10s %10.1f %10.1f %10.1f x\n", name, ratio[0], ratio[n / 2], ratio[n - 1]);
}

static void report(struct timing *t, bool with_peer)
{
	printf("  %.0f %% of the rows have a price; cold: %u sweeps, gap %.1e; warm: %u sweeps, gap %.1e",
	       100 * t->tight_share, t->cold_result.sweeps, t->cold_result.bound_gap_frac, t->warm_result.sweeps,
	       t->warm_result.bound_gap_frac);
	if (with_peer)
		printf("; CLP's value above ours by %.1e", t->value_gap);
	printf("\n  %-10s %10s %10s %10s\n", "", "min", "median", "max");
	if (with_peer) {
		print_ratio("CLP / cold", t->peer, t->cold, t->n);
		print_ratio("CLP / warm", t->peer_warm, t->warm, t->n);
		print_times("CLP", t->peer, t->n);
	}
	print_times("cold", t->cold, t->n);
	print_times("warm", t->warm, t->n);
}

static void run_case(const char *name, const struct instance_spec *spec, size_t repeats, bool with_peer)
{
	struct timing t = {0};
	struct instance instance;
	instance_init(&instance, spec);
	for (size_t i = 0; i < repeats; i++)
		measure(&instance, &t, with_peer);
	printf("%s: %zu jobs, %zu GPUs, %zu rows\n", name, spec->n_jobs, spec->n_gpus, instance.problem.n_rows + 1);
	report(&t, with_peer);
	fflush(stdout);
	instance_finish(&instance);
}

static void growth(bool tight)
{
	static const size_t sizes[] = {100, 400, 1600, 6250, 12500};
	printf("growth, %s tree, median of 9 cold runs\n", tight ? "tight" : "slack");
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct instance_spec spec = instance_spec_cluster(sizes[i], tight, false);
		struct timing t = {0};
		struct instance instance;
		instance_init(&instance, &spec);
		for (int k = 0; k < 9; k++)
			measure(&instance, &t, false);
		qsort(t.cold, t.n, sizeof *t.cold, by_value);
		printf("  %6zu jobs %10.2f ms %8.2f us per job\n", sizes[i], 1e3 * t.cold[4],
		       1e6 * t.cold[4] / (double)sizes[i]);
		instance_finish(&instance);
	}
}

int main(int argc, char **argv)
{
	const char *text = getenv("WATTWEIR_BENCH_REPEATS");
	size_t jobs = argc > 1 ? (size_t)strtoul(argv[1], NULL, 10) : 12500,
	       repeats = text ? (size_t)strtoul(text, NULL, 10) : 3;
	repeats = repeats < 1 ? 1 : repeats > MOST_REPEATS ? MOST_REPEATS : repeats;
#ifdef WITH_CLP
	bool with_peer = true;
#else
	bool with_peer = false;
	printf("no CLP here: our own times only\n");
#endif
	struct instance_spec slack = instance_spec_cluster(jobs, false, false);
	struct instance_spec tight = instance_spec_cluster(jobs, true, false);
	struct instance_spec slack_nodes = instance_spec_cluster(jobs, false, true);
	struct instance_spec tight_nodes = instance_spec_cluster(jobs, true, true);
	run_case("slack", &slack, repeats, with_peer);
	run_case("tight", &tight, repeats, with_peer);
	run_case("slack, a row per node too", &slack_nodes, 1, with_peer);
	run_case("tight, a row per node too", &tight_nodes, 1, with_peer);
	growth(false);
	growth(true);
	return 0;
}
