/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The jobs that go, on random problems. Up to 12 jobs, at times 15, on up to 4 rows: the same set as the best of all sets, tried one by
 * one. Larger ones: all covered that can be, nobody goes in vain, no tier before the lower ones, no memory taken.
 * WATTWEIR_INSTANCES: how many of the small problems.
 */
#include "assert_near.h"
#include "core/core.h"
#include "wrapped_memory.h"

#include <string.h>

#define INSTANCES 1500
#define SMALL_JOBS 12
#define MORE_JOBS 15 /* of every hundredth problem */
#define SMALL_ROWS 4
#define N_TIERS 4

struct problem {
	struct ww_requeue_problem p;
	struct ww_requeue_job *jobs;
	struct ww_row_share *shares;
	double *missing_w;
	size_t room_rows; /* shares per job */
	bool *taken;      /* the answer, per job */
	struct ww_requeue_total total;
};

static void *numbers(size_t n, size_t size)
{
	void *out = calloc(n + 1, size);
	assert_non_null(out);
	return out;
}

static void make_room(struct problem *x, size_t n, size_t n_rows, size_t room_rows)
{
	x->jobs = numbers(n, sizeof *x->jobs);
	x->shares = numbers(n * room_rows, sizeof *x->shares);
	x->missing_w = numbers(n_rows, sizeof *x->missing_w);
	x->taken = numbers(n, sizeof *x->taken);
	x->room_rows = room_rows;
	x->p = (struct ww_requeue_problem){x->jobs, n, x->missing_w, n_rows};
}

static void finish(struct problem *x)
{
	free(x->jobs);
	free(x->shares);
	free(x->missing_w);
	free(x->taken);
}

static double freed_w(const struct ww_requeue_job *job, size_t row)
{
	double watts = 0;
	for (uint32_t k = 0; k < job->n_rows && job->allowed; k++)
		watts += job->rows[k].row == row ? job->freed_w * job->rows[k].gpus : 0;
	return watts;
}

/* All numbers are multiples of 1/4, so that sums are exact in any order; every third problem has few different losses, every
 * fourth has 1 tier, every fifth rows that cannot be covered. */
static void make_small(struct problem *x, uint64_t seed)
{
	struct ww_rng rng;
	ww_rng_seed(&rng, seed);
	size_t n = seed % 100 ? 1 + ww_rng_below(&rng, SMALL_JOBS) : MORE_JOBS,
	       n_rows = 1 + ww_rng_below(&rng, SMALL_ROWS);
	make_room(x, n, n_rows, SMALL_ROWS);
	for (size_t i = 0; i < n; i++) {
		struct ww_requeue_job *job = &x->jobs[i];
		*job = (struct ww_requeue_job){.id = (i * 7 + seed) % 17,
		                               .tier = seed % 4 ? (int)ww_rng_below(&rng, N_TIERS) : 3,
		                               .allowed = ww_rng_below(&rng, 8) > 0,
		                               .freed_w = seed % 3 ? 50 + 0.25 * ww_rng_below(&rng, 400) : 100,
		                               .loss = ww_rng_below(&rng, seed % 3 ? 4000 : 3) / 4.0,
		                               .rows = &x->shares[i * SMALL_ROWS]};
		for (uint32_t r = 0; r < n_rows; r++)
			if (ww_rng_below(&rng, n_rows) < 2)
				x->shares[i * SMALL_ROWS + job->n_rows++] =
					(struct ww_row_share){r, 1 + ww_rng_below(&rng, 16)};
	}
	for (size_t r = 0; r < n_rows; r++) {
		double all = 0;
		for (size_t i = 0; i < n; i++)
			all += freed_w(&x->jobs[i], r);
		double share = ww_rng_below(&rng, 5) ? ww_rng_uniform(&rng) : seed % 5 ? 0 : 1.2;
		x->missing_w[r] = ww_rng_below(&rng, 9) ? floor(all * share * 4) / 4 : -10;
	}
}

/* Sites of feeds and racks; jobs on one to three racks. Every rack and feed misses a tenth of the site's share or nothing. */
static void make_large(struct problem *x, size_t n, uint64_t seed)
{
	struct ww_rng rng;
	ww_rng_seed(&rng, seed);
	const uint32_t n_racks = (uint32_t)n / 15 + 1, n_feeds = 2;
	make_room(x, n, 1 + n_feeds + n_racks, 6);
	for (size_t i = 0; i < n; i++) {
		struct ww_row_share *share = &x->shares[i * 6];
		uint32_t k = 0, n_on = 1 + ww_rng_below(&rng, 3), rack = ww_rng_below(&rng, n_racks);
		double gpus = 4 * (1 + ww_rng_below(&rng, 8));
		share[k++] = (struct ww_row_share){0, gpus * n_on};
		share[k++] = (struct ww_row_share){1, gpus * n_on * 0.5};
		share[k++] = (struct ww_row_share){2, gpus * n_on * 0.5};
		for (uint32_t r = 0; r < n_on && r < n_racks; r++)
			share[k++] = (struct ww_row_share){1 + n_feeds + (rack + r) % n_racks, gpus};
		x->jobs[i] = (struct ww_requeue_job){.id = i * 7919 % 1000003,
		                                     .tier = 3 - (int)ww_rng_below(&rng, N_TIERS),
		                                     .allowed = ww_rng_below(&rng, 10) > 0,
		                                     .freed_w = 100 + ww_rng_below(&rng, 50),
		                                     .loss = gpus * n_on * (0.5 + ww_rng_uniform(&rng)) + 4,
		                                     .n_rows = k,
		                                     .rows = share};
		for (uint32_t r = 0; r < k; r++)
			x->missing_w[share[r].row] += freed_w(&x->jobs[i], share[r].row);
	}
	for (size_t r = 0; r < x->p.n_rows; r++)
		x->missing_w[r] *= r < 3 ? 0.3 : ww_rng_below(&rng, 3) ? 0 : 0.4 + 0.7 * ww_rng_uniform(&rng);
}

/* Counts allocations of the call: there are none. */
static void solve(struct problem *x)
{
	struct ww_error err;
	ww_requeue *q;
	assert_int_equal(ww_requeue_create(x->p.n_jobs, x->p.n_rows, x->p.n_jobs * x->room_rows, &q, &err), WW_OK);
	unsigned long before = n_allocations;
	ww_status status = ww_requeue_choose(q, &x->p, &err);
	assert_int_equal(n_allocations, before);
	if (status)
		fail_msg("%s", err.text);
	memcpy(x->taken, ww_requeue_taken(q), x->p.n_jobs * sizeof *x->taken);
	x->total = ww_requeue_result(q);
	for (size_t r = 0; r < x->p.n_rows; r++) {
		double left = fmax(0, x->missing_w[r]);
		for (size_t i = 0; i < x->p.n_jobs; i++)
			left -= x->taken[i] ? freed_w(&x->jobs[i], r) : 0;
		assert_near(ww_requeue_left_w(q)[r], fmax(0, left), 1e-3);
	}
	ww_requeue_destroy(q);
}

/* ---- All sets ------------------------------------------------------------------------------------------------------------- */

static bool is_in(unsigned set, size_t i)
{
	return set >> i & 1;
}

/* Frees what is missing, or all that can be had of it, and holds only jobs that may go and are of use. */
static bool is_allowed(const struct problem *x, unsigned set)
{
	bool yes = true;
	for (size_t i = 0; i < x->p.n_jobs; i++)
		yes = yes && (!is_in(set, i) || x->jobs[i].allowed);
	for (size_t r = 0; r < x->p.n_rows && yes; r++) {
		double given = 0, all = 0;
		for (size_t i = 0; i < x->p.n_jobs; i++) {
			given += is_in(set, i) ? freed_w(&x->jobs[i], r) : 0;
			all += freed_w(&x->jobs[i], r);
		}
		yes = given >= fmin(all, x->missing_w[r]);
	}
	return yes;
}

/* Losses and counts per tier; then by tier and id the first job that only one of them holds. */
static bool is_better(const struct problem *x, unsigned a, unsigned b)
{
	for (int t = 0; t < N_TIERS; t++) {
		double loss = 0;
		int n = 0;
		for (size_t i = 0; i < x->p.n_jobs; i++) {
			if (x->jobs[i].tier != t)
				continue;
			loss += (is_in(a, i) - is_in(b, i)) * x->jobs[i].loss;
			n += is_in(a, i) - is_in(b, i);
		}
		if (loss != 0 || n != 0)
			return loss != 0 ? loss < 0 : n < 0;
	}
	size_t first = SIZE_MAX;
	for (size_t i = 0; i < x->p.n_jobs; i++) {
		const struct ww_requeue_job *job = &x->jobs[i];
		if (is_in(a ^ b, i) && (first == SIZE_MAX || job->tier < x->jobs[first].tier ||
		                        (job->tier == x->jobs[first].tier && job->id < x->jobs[first].id)))
			first = i;
	}
	return first != SIZE_MAX && is_in(a, first);
}

static unsigned best_of_all(const struct problem *x)
{
	unsigned best = UINT32_MAX;
	for (unsigned set = 0; set < 1U << x->p.n_jobs; set++)
		if (is_allowed(x, set) && (best == UINT32_MAX || is_better(x, set, best)))
			best = set;
	return best;
}

static size_t n_instances(void)
{
	const char *text = getenv("WATTWEIR_INSTANCES");
	unsigned long n = text ? strtoul(text, NULL, 10) : 0;
	return n > 0 ? n : INSTANCES;
}

static void small_ones_are_the_best_of_all_sets(void **state)
{
	(void)state;
	size_t n_wrong = 0, n_empty = 0;
	for (uint64_t seed = 1; seed <= n_instances(); seed++) {
		struct problem x;
		unsigned set = 0;
		double loss = 0;
		make_small(&x, seed);
		solve(&x);
		unsigned best = best_of_all(&x);
		for (size_t i = 0; i < x.p.n_jobs; i++) {
			set |= (unsigned)x.taken[i] << i;
			loss += is_in(best, i) ? x.jobs[i].loss : 0;
		}
		if (set != best && n_wrong++ < 5)
			print_error("seed %llu: %#x, best %#x\n", (unsigned long long)seed, set, best);
		assert_near(x.total.loss, loss, set == best ? 0 : INFINITY);
		assert_true(x.total.exact);
		n_empty += best == 0;
		finish(&x);
	}
	assert_int_equal(n_wrong, 0);
	assert_true(n_empty < n_instances() / 2);
}

/* ---- Order ------------------------------------------------------------------------------------------------------------------ */

/* Jobs and the rows of each in another order. */
static void shuffle(struct problem *to, const struct problem *from, uint64_t seed)
{
	struct ww_rng rng;
	ww_rng_seed(&rng, seed);
	size_t n = from->p.n_jobs;
	make_room(to, n, from->p.n_rows, from->room_rows);
	memcpy(to->missing_w, from->missing_w, from->p.n_rows * sizeof *to->missing_w);
	memcpy(to->jobs, from->jobs, n * sizeof *to->jobs);
	for (size_t i = n; i-- > 1;) {
		size_t k = ww_rng_below(&rng, (uint32_t)i + 1);
		struct ww_requeue_job job = to->jobs[i];
		to->jobs[i] = to->jobs[k];
		to->jobs[k] = job;
	}
	for (size_t i = 0; i < n; i++) {
		struct ww_row_share *share = &to->shares[i * to->room_rows];
		for (uint32_t k = 0; k < to->jobs[i].n_rows; k++)
			share[k] = to->jobs[i].rows[to->jobs[i].n_rows - 1 - k];
		to->jobs[i].rows = share;
	}
}

static bool goes(const struct problem *x, uint64_t id)
{
	bool yes = false;
	for (size_t i = 0; i < x->p.n_jobs; i++)
		yes = yes || (x->jobs[i].id == id && x->taken[i]);
	return yes;
}

static void assert_order_does_not_matter(struct problem *x, uint64_t seed)
{
	struct problem y;
	shuffle(&y, x, seed);
	solve(&y);
	for (size_t i = 0; i < x->p.n_jobs; i++)
		assert_int_equal(x->taken[i], goes(&y, x->jobs[i].id));
	assert_near(x->total.loss, y.total.loss, 0);
	finish(&y);
}

static void order_does_not_matter(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= n_instances() / 5 + 1; seed++) {
		struct problem x;
		if (seed % 20)
			make_small(&x, seed);
		else
			make_large(&x, 10 + seed, seed);
		solve(&x);
		assert_order_does_not_matter(&x, seed);
		finish(&x);
	}
}

/* ---- Large ones ------------------------------------------------------------------------------------------------------------- */

/* Per row, what goes of the jobs in tiers `from`.. and, of those of higher ones, what was chosen, beyond what is needed. */
static double *spare_w(const struct problem *x, int all_from)
{
	double *spare = numbers(x->p.n_rows, sizeof *spare), *all = numbers(x->p.n_rows, sizeof *all);
	for (size_t i = 0; i < x->p.n_jobs; i++)
		for (uint32_t k = 0; k < x->jobs[i].n_rows && x->jobs[i].allowed; k++) {
			double watts = x->jobs[i].freed_w * x->jobs[i].rows[k].gpus;
			all[x->jobs[i].rows[k].row] += watts;
			if (x->taken[i] || x->jobs[i].tier >= all_from)
				spare[x->jobs[i].rows[k].row] += watts;
		}
	for (size_t r = 0; r < x->p.n_rows; r++)
		spare[r] -= fmin(all[r], x->missing_w[r]);
	free(all);
	return spare;
}

static bool could_stay(const struct problem *x, size_t i, const double *spare)
{
	bool could = true;
	for (uint32_t k = 0; k < x->jobs[i].n_rows; k++) {
		const struct ww_row_share *share = &x->jobs[i].rows[k];
		could = could &&
		        (x->missing_w[share->row] <= 0 || spare[share->row] >= x->jobs[i].freed_w * share->gpus + 0.1);
	}
	return could;
}

static void assert_sound(const struct problem *x)
{
	double *spare = spare_w(x, N_TIERS);
	for (size_t r = 0; r < x->p.n_rows; r++)
		assert_true(spare[r] > -0.1);
	for (size_t i = 0; i < x->p.n_jobs; i++) {
		assert_false(x->taken[i] && !x->jobs[i].allowed);
		assert_false(x->taken[i] && could_stay(x, i, spare));
	}
	free(spare);
	/* nor could one of a higher tier stay if all of the lower ones went */
	for (int t = 0; t < N_TIERS - 1; t++) {
		spare = spare_w(x, t + 1);
		for (size_t i = 0; i < x->p.n_jobs; i++)
			assert_false(x->taken[i] && x->jobs[i].tier == t && could_stay(x, i, spare));
		free(spare);
	}
}

static void large_ones_cover_and_nobody_goes_in_vain(void **state)
{
	static const size_t sizes[] = {13, 20, 30, 31, 45, 60, 100, 300, 2000};
	(void)state;
	for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
		for (uint64_t seed = 1; seed <= 10; seed++) {
			struct problem x;
			make_large(&x, sizes[k], seed);
			solve(&x);
			assert_sound(&x);
			finish(&x);
		}
}

/* ---- One row and one tier, by dynamic programming ---------------------------------------------------------------------------- */

#define DP_JOBS 30
#define DP_ROWS 20
#define DP_W 2000

/* DP_JOBS jobs on each row, whole watts, losses nearly in proportion to them. */
static void make_rows(struct problem *x, size_t n_rows, uint64_t seed)
{
	struct ww_rng rng;
	ww_rng_seed(&rng, seed);
	make_room(x, n_rows * DP_JOBS, n_rows, 1);
	for (size_t i = 0; i < x->p.n_jobs; i++) {
		uint32_t row = (uint32_t)(i % n_rows), watts = 20 + ww_rng_below(&rng, 100);
		x->shares[i] = (struct ww_row_share){row, watts};
		x->jobs[i] = (struct ww_requeue_job){.id = i * 7919 % 10007,
		                                     .tier = row % 2 ? 3 : 1,
		                                     .allowed = true,
		                                     .freed_w = 1,
		                                     .loss = watts + ww_rng_below(&rng, 20),
		                                     .n_rows = 1,
		                                     .rows = &x->shares[i]};
	}
	for (size_t r = 0; r < n_rows; r++)
		x->missing_w[r] = 400 + ww_rng_below(&rng, 800);
}

/* Least loss of every n_rows-th job from the first one on that frees so much. */
static double least_loss(const struct problem *x, size_t first, double missing_w)
{
	static double least[DP_W];
	size_t missing = (size_t)missing_w;
	for (size_t w = 1; w <= missing; w++)
		least[w] = INFINITY;
	least[0] = 0;
	for (size_t i = first; i < x->p.n_jobs; i += x->p.n_rows) {
		size_t watts = (size_t)x->jobs[i].rows[0].gpus;
		for (size_t w = missing; w > 0; w--)
			least[w] = fmin(least[w], x->jobs[i].loss + least[w > watts ? w - watts : 0]);
	}
	return least[missing];
}

static void thirty_on_a_row_are_the_best(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct problem x;
		double loss = 0;
		make_rows(&x, seed % 4 ? 1 : DP_ROWS, seed);
		solve(&x);
		for (size_t r = 0; r < x.p.n_rows; r++)
			loss += least_loss(&x, r, x.missing_w[r]);
		assert_near(x.total.loss, loss, 0);
		assert_true(x.total.exact);
		assert_sound(&x);
		finish(&x);
	}
}

/* Of one tier of 30 among many others the best is taken; of two tiers that need not be the best of both. */
static void one_tier_of_many_is_exact(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct problem x;
		make_rows(&x, 2, seed);
		for (size_t i = 0; i < x.p.n_jobs; i++) {
			x.shares[i].row = 0;
			x.jobs[i].tier = i % 2 ? 3 : 2;
		}
		x.missing_w[0] = 1000;
		x.missing_w[1] = 0;
		solve(&x);
		assert_true(x.total.exact);
		assert_sound(&x);
		assert_near(x.total.loss, least_loss(&x, 1, 1000), 0);
		for (size_t i = 0; i < x.p.n_jobs; i += 2)
			assert_false(x.taken[i]);
		x.missing_w[0] = 30.0 * 120 + 200;
		solve(&x);
		assert_false(x.total.exact);
		assert_sound(&x);
		finish(&x);
	}
}

/* By ratio, and with the swaps, close to the best: 150 jobs on one row. */
static void many_on_a_row_are_nearly_the_best(void **state)
{
	double worst = 0, sum = 0;
	(void)state;
	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct problem x;
		make_rows(&x, 5, seed);
		for (size_t i = 0; i < x.p.n_jobs; i++) {
			x.shares[i].row = 0;
			x.jobs[i].tier = 3;
		}
		memset(x.missing_w + 1, 0, 4 * sizeof *x.missing_w);
		solve(&x);
		x.p.n_rows = 1;
		double best = least_loss(&x, 0, x.missing_w[0]), over = x.total.loss / best - 1;
		assert_true(over >= 0);
		worst = fmax(worst, over);
		sum += over / 100;
		finish(&x);
	}
	assert_true(sum < 0.005);
	assert_true(worst < 0.03);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_ones_are_the_best_of_all_sets),
		cmocka_unit_test(order_does_not_matter),
		cmocka_unit_test(thirty_on_a_row_are_the_best),
		cmocka_unit_test(one_tier_of_many_is_exact),
		cmocka_unit_test(many_on_a_row_are_nearly_the_best),
		cmocka_unit_test(large_ones_cover_and_nobody_goes_in_vain),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
