/* SPDX-License-Identifier: Apache-2.0 */
/* The N-th allocation of each call of core fails, for every N: a clean WW_ERR_NOMEM, nothing lost, nothing changed. */
#include "assert_near.h"
#include "core/core.h"
#include "wrapped_memory.h"

#include <string.h>

/* A call under test; `context` is its own. Whatever it makes on success it also frees. */
typedef ww_status call(void *context, struct ww_error *err);

/* Returns the number of allocations of a call that succeeds. */
static unsigned long fail_each(call *under_test, void *context)
{
	for (unsigned long n = 1;; n++) {
		struct ww_error err = {WW_OK, ""};
		assert_true(n < 10000);
		until_failure = n;
		armed = true;
		ww_status status = under_test(context, &err);
		armed = false;
		if (status == WW_OK) {
			assert_true(until_failure > 0);
			return n - 1;
		}
		assert_int_equal(status, WW_ERR_NOMEM);
		assert_int_equal(err.code, WW_ERR_NOMEM);
		assert_non_null(strstr(err.text, "out of memory"));
	}
}

#define SE 0.5

static const struct ww_point sweep_a[] = {
	{400, 300, 100, 1, SE, -1}, {300, 240, 96, 1, SE, -1}, {250, 200, 90, 1, SE, -1}, {200, 180, 83, 1, SE, -1}};
static const struct ww_point sweep_b[] = {
	{400, 350, 50, 1, SE, -1}, {300, 290, 41, 1, SE, -1}, {200, 195, 22, 1, SE, -1}};
static const struct ww_compare_job jobs[] = {{"a", sweep_a, 4}, {"b", sweep_b, 3}, {"c", sweep_a, 4}};

static ww_status estimate(void *context, struct ww_error *err)
{
	const struct ww_pfi_options options = WW_PFI_OPTIONS_INIT;
	struct ww_pfi out, untouched;
	(void)context;
	memset(&out, 0xA5, sizeof out);
	memset(&untouched, 0xA5, sizeof untouched);
	ww_status status = ww_pfi_estimate(sweep_a, 4, &options, &out, err);
	armed = false;
	if (status)
		assert_memory_equal(&out, &untouched, sizeof out);
	return status;
}

static ww_status measure(void *context, struct ww_error *err)
{
	const struct ww_pfi_options options = WW_PFI_OPTIONS_INIT;
	struct ww_curve out, untouched;
	(void)context;
	memset(&out, 0xA5, sizeof out);
	memset(&untouched, 0xA5, sizeof untouched);
	ww_status status = ww_curve_measure(sweep_a, 4, &options, WW_ACCOUNT_DRAW, &out, err);
	armed = false;
	if (status)
		assert_memory_equal(&out, &untouched, sizeof out);
	return status;
}

static ww_status find_duplicates(void *context, struct ww_error *err)
{
	size_t found[3];
	(void)context;
	return ww_find_duplicates(jobs, 3, found, err);
}

static ww_status compare_create(void *context, struct ww_error *err)
{
	const struct ww_compare_options options = WW_COMPARE_OPTIONS_INIT;
	ww_compare *out = NULL;
	(void)context;
	ww_status status = ww_compare_create(jobs, 3, &options, &out, err);
	armed = false;
	assert_int_equal(out != NULL, status == WW_OK);
	ww_compare_destroy(out);
	return status;
}

static ww_status compare_run(void *context, struct ww_error *err)
{
	struct ww_compare_row row, untouched;
	memset(&row, 0xA5, sizeof row);
	memset(&untouched, 0xA5, sizeof untouched);
	ww_status status = ww_compare_run(context, 0.2, &row, err);
	armed = false;
	if (status)
		assert_memory_equal(&row, &untouched, sizeof row);
	return status;
}

static ww_status alloc_create(void *context, struct ww_error *err)
{
	ww_alloc *out = NULL;
	(void)context;
	ww_status status = ww_alloc_create(&out, err);
	armed = false;
	assert_int_equal(out != NULL, status == WW_OK);
	ww_alloc_destroy(out);
	return status;
}

static void every_call_survives(void **state)
{
	(void)state;
	assert_true(fail_each(estimate, NULL) >= 5);
	assert_true(fail_each(measure, NULL) >= 5);
	assert_true(fail_each(find_duplicates, NULL) >= 4);
	assert_true(fail_each(compare_create, NULL) >= 10);
	assert_true(fail_each(alloc_create, NULL) >= 1);
}

static void a_comparison_survives_and_goes_on(void **state)
{
	const struct ww_compare_options options = WW_COMPARE_OPTIONS_INIT;
	ww_compare *c = NULL;
	struct ww_compare_row before, after;
	struct ww_error err;
	(void)state;
	assert_int_equal(ww_compare_create(jobs, 3, &options, &c, &err), WW_OK);
	assert_int_equal(ww_compare_run(c, 0.2, &before, &err), WW_OK);
	assert_true(fail_each(compare_run, c) >= 1);
	assert_int_equal(ww_compare_run(c, 0.2, &after, &err), WW_OK);
	assert_memory_equal(before.value, after.value, sizeof before.value);
	ww_compare_destroy(c);
}

/* ---- A problem that does not fit in memory leaves the last one ------------------------------------------------------- */

enum { MANY = 64 };

struct setting {
	ww_alloc *alloc;
	struct ww_curve curve;
	struct ww_alloc_job job[MANY];
};

static ww_status set(struct setting *s, size_t n, struct ww_error *err)
{
	struct ww_alloc_problem problem = {.jobs = s->job, .n_jobs = n, .budget_w = 80 * (double)n};
	return ww_alloc_set(s->alloc, &problem, err);
}

static ww_status set_many(void *context, struct ww_error *err)
{
	struct setting *s = context;
	ww_status status = set(s, MANY, err);
	armed = false;
	if (status) { /* the two jobs are still there, and can be divided */
		(void)ww_alloc_run(s->alloc, 100);
		assert_near(ww_alloc_shares(s->alloc)[0].cut_frac, 0.2, 1e-9);
		assert_near(ww_alloc_shares(s->alloc)[1].cut_frac, 0.2, 1e-9);
		assert_near(ww_alloc_rows(s->alloc)[0].power_w, 160, 1e-6);
	}
	return status;
}

static void the_last_problem_is_kept(void **state)
{
	static struct setting s;
	struct ww_error err;
	(void)state;
	s.curve = (struct ww_curve){.p0_w = 100, .t0_tps = 1, .max_cut_frac = 0.5, .n = 2, .k = {{0, 0, 0}, {1, 1, 2}}};
	for (size_t i = 0; i < MANY; i++)
		s.job[i] = (struct ww_alloc_job){.id = i, .gpus = 1, .weight = 1, .curve = &s.curve};
	assert_int_equal(ww_alloc_create(&s.alloc, &err), WW_OK);
	assert_int_equal(set(&s, 2, &err), WW_OK);
	assert_true(fail_each(set_many, &s) >= 9);
	for (size_t i = 0; i < MANY; i++)
		assert_near(ww_alloc_shares(s.alloc)[i].cut_frac, 0.2, 1e-9);
	ww_alloc_destroy(s.alloc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_call_survives),
		cmocka_unit_test(a_comparison_survives_and_goes_on),
		cmocka_unit_test(the_last_problem_is_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
