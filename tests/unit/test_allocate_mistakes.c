/* SPDX-License-Identifier: Apache-2.0 */
/* What the allocator refuses: one line that names the job, and the last problem kept. */
#include "fleet.h"

static void assert_refused(const struct fleet *f, ww_status expected, const char *text)
{
	struct fleet good = {0};
	struct ww_error err = {WW_OK, ""};
	ww_alloc *alloc = create();
	add(&good, quadratic(100, 0, 1, 0.9));
	add(&good, quadratic(100, 0, 3, 0.9));
	good.budget_w = 160;
	assert_int_equal(set(alloc, &good, &err), WW_OK);
	run(alloc);
	struct answer before = answer_of(alloc, 2);
	assert_int_equal(set(alloc, f, &err), expected);
	if (!strstr(err.text, text))
		print_error("\"%s\" does not say \"%s\"\n", err.text, text);
	assert_non_null(strstr(err.text, text));
	struct answer after = answer_of(alloc, 2);
	assert_memory_equal(before.share, after.share, 2 * sizeof before.share[0]);
	run(alloc);
	after = answer_of(alloc, 2);
	assert_near(after.share[0].cut_frac, 0.3, 1e-9);
	ww_alloc_destroy(alloc);
}

static void two(struct fleet *f)
{
	*f = (struct fleet){.budget_w = 100};
	add(f, quadratic(100, 0, 1, 0.9));
	add(f, quadratic(100, 0, 2, 0.9));
	f->job[1].id = 77;
}

static void bad_numbers_are_refused(void **state)
{
	static const double bad_weight[] = {0, -1, NAN, INFINITY}, bad_floor[] = {-0.1, 1.1, NAN},
			    bad_min[] = {-1, NAN, INFINITY};
	static const double bad_budget[] = {-INFINITY, NAN};
	struct fleet f;
	(void)state;
	for (int i = 0; i < 4; i++) {
		two(&f);
		f.job[1].weight = bad_weight[i];
		assert_refused(&f, WW_ERR_RANGE, "77");
	}
	for (int i = 0; i < 3; i++) {
		two(&f);
		f.job[1].floor_frac = bad_floor[i];
		assert_refused(&f, WW_ERR_RANGE, "77");
		f.job[1].floor_frac = 0;
		f.job[1].min_w = bad_min[i];
		assert_refused(&f, WW_ERR_RANGE, "77");
	}
	for (int i = 0; i < 2; i++) {
		two(&f);
		f.budget_w = bad_budget[i];
		assert_refused(&f, WW_ERR_RANGE, "budget");
	}
}

static void bad_jobs_are_refused(void **state)
{
	struct fleet f;
	(void)state;
	two(&f);
	f.job[1].curve = NULL;
	assert_refused(&f, WW_ERR_RANGE, "77");
	f.job[1].curve = &f.curve[1];
	f.job[1].gpus = 0;
	assert_refused(&f, WW_ERR_RANGE, "77");
	f.job[1].gpus = 1;
	f.job[0].id = 77;
	assert_refused(&f, WW_ERR_INVALID, "77");
}

/* One number of a sound curve made bad. */
struct spoiled {
	size_t at; /* offset of a double in struct ww_curve */
	double value;
	ww_status expected;
};

#define KNOT(i, field) (offsetof(struct ww_curve, k) + (i) * sizeof(struct ww_knot) + offsetof(struct ww_knot, field))

static void bad_curves_are_refused(void **state)
{
	static const struct spoiled bad[] = {
		{KNOT(0, slope), -0.1, WW_ERR_RANGE},
		{KNOT(0, cut_frac), 0.1, WW_ERR_RANGE},
		{KNOT(0, loss_frac), 0.1, WW_ERR_RANGE},
		{KNOT(1, cut_frac), 0, WW_ERR_RANGE},
		{KNOT(1, cut_frac), INFINITY, WW_ERR_RANGE},
		{KNOT(1, slope), NAN, WW_ERR_RANGE},
		{KNOT(1, slope), 0, WW_ERR_RANGE},
		{KNOT(1, slope), 1e300, WW_ERR_RANGE},
		{KNOT(1, loss_frac), NAN, WW_ERR_INVALID},
		{KNOT(1, loss_frac), -5, WW_ERR_INVALID},
		{offsetof(struct ww_curve, p0_w), 0, WW_ERR_RANGE},
		{offsetof(struct ww_curve, p0_w), 5e-324, WW_ERR_RANGE},
		{offsetof(struct ww_curve, p0_w), 1e300, WW_ERR_RANGE},
		{offsetof(struct ww_curve, t0_tps), INFINITY, WW_ERR_RANGE},
		{offsetof(struct ww_curve, t0_tps), NAN, WW_ERR_RANGE},
		{offsetof(struct ww_curve, max_cut_frac), NAN, WW_ERR_RANGE},
		{offsetof(struct ww_curve, max_cut_frac), -3, WW_ERR_RANGE},
		{offsetof(struct ww_curve, var_a), NAN, WW_ERR_RANGE},
		{offsetof(struct ww_curve, var_a), -1, WW_ERR_RANGE},
		{offsetof(struct ww_curve, var_b), INFINITY, WW_ERR_RANGE},
		{offsetof(struct ww_curve, cov_ab), NAN, WW_ERR_RANGE},
	};
	struct fleet f;
	(void)state;
	two(&f);
	const struct ww_curve good = f.curve[1];
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		f.curve[1] = good;
		memcpy((char *)&f.curve[1] + bad[i].at, &bad[i].value, sizeof(double));
		assert_refused(&f, bad[i].expected, "77");
	}
	for (uint32_t n = 0; n <= WW_MAX_KNOTS + 1; n += n ? WW_MAX_KNOTS : 1) {
		f.curve[1] = good;
		f.curve[1].n = n;
		assert_refused(&f, WW_ERR_RANGE, "77");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_numbers_are_refused),
		cmocka_unit_test(bad_jobs_are_refused),
		cmocka_unit_test(bad_curves_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
