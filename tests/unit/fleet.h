/* SPDX-License-Identifier: Apache-2.0 */
/* A fleet of jobs with one budget, for the tests of the allocator. */
#ifndef WW_TESTS_FLEET_H
#define WW_TESTS_FLEET_H

#include "assert_near.h"
#include "core/core.h"

#include <string.h>

#define MOST 40

/* A fleet, its budget, and what the allocator made of it. */
struct fleet {
	size_t n;
	double budget_w;
	struct ww_alloc_job job[MOST];
	struct ww_curve curve[MOST];
};

struct answer {
	struct ww_alloc_summary summary;
	struct ww_alloc_share share[MOST];
	struct ww_alloc_row_result budget;
};

/* ---- The interface, in one place ------------------------------------------------------------------------------------- */

TEST_UNUSED static ww_alloc *create(void)
{
	ww_alloc *out = NULL;
	struct ww_error err;
	assert_int_equal(ww_alloc_create(&out, &err), WW_OK);
	return out;
}

TEST_UNUSED static ww_status set(ww_alloc *a, const struct fleet *f, struct ww_error *err)
{
	struct ww_alloc_problem problem = {.jobs = f->job, .n_jobs = f->n, .budget_w = f->budget_w};
	return ww_alloc_set(a, &problem, err);
}

TEST_UNUSED static void run(ww_alloc *a)
{
	(void)ww_alloc_run(a, 200);
}

TEST_UNUSED static struct answer answer_of(const ww_alloc *a, size_t n)
{
	struct answer out = {.summary = ww_alloc_result(a), .budget = ww_alloc_rows(a)[0]};
	memcpy(out.share, ww_alloc_shares(a), n * sizeof out.share[0]);
	return out;
}

/* ---- Helpers --------------------------------------------------------------------------------------------------------- */

TEST_UNUSED static struct answer solve(const struct fleet *f)
{
	struct ww_error err = {WW_OK, ""};
	ww_alloc *a = create();
	assert_int_equal(set(a, f, &err), WW_OK);
	run(a);
	struct answer out = answer_of(a, f->n);
	ww_alloc_destroy(a);
	return out;
}

TEST_UNUSED static double job_watts(const struct ww_alloc_job *j)
{
	return j->gpus * j->curve->p0_w;
}

TEST_UNUSED static double baseline_w(const struct fleet *f)
{
	double sum = 0;
	for (size_t i = 0; i < f->n; i++)
		sum += job_watts(&f->job[i]);
	return sum;
}

TEST_UNUSED static double drawn_w(const struct fleet *f, const struct answer *a)
{
	double sum = 0;
	for (size_t i = 0; i < f->n; i++)
		sum += job_watts(&f->job[i]) * (1 - a->share[i].cut_frac);
	return sum;
}

/* Weighted relative throughput that the jobs' own curves predict. */
TEST_UNUSED static double value(const struct fleet *f, const struct answer *a)
{
	double sum = 0;
	for (size_t i = 0; i < f->n; i++)
		sum += f->job[i].weight * (1 - ww_curve_loss(f->job[i].curve, a->share[i].cut_frac));
	return sum;
}

/* loss = a d + b d^2, known exactly. */
TEST_UNUSED static struct ww_curve quadratic(double p0_w, double a, double b, double deepest)
{
	return (struct ww_curve){
		.p0_w = p0_w, .t0_tps = 1000, .max_cut_frac = deepest, .n = 2, .k = {{0, 0, a}, {1, a + b, a + 2 * b}}};
}

TEST_UNUSED static void add(struct fleet *f, struct ww_curve curve)
{
	size_t i = f->n++;
	f->curve[i] = curve;
	f->job[i] = (struct ww_alloc_job){.id = 100 - i, .gpus = 1, .weight = 1};
	for (size_t k = 0; k < f->n; k++)
		f->job[k].curve = &f->curve[k];
}

#endif
