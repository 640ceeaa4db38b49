/* SPDX-License-Identifier: Apache-2.0 */
/* PFI of one sweep: every definition on numbers worked out by hand, then promises on thousands of random sweeps. */
#include "assert_near.h"
#include "core/core.h"

#include <string.h>

static struct ww_point at(double cap_w, double power_w, double throughput)
{
	return (struct ww_point){cap_w, power_w, throughput, NAN, NAN, -1};
}

static struct ww_point bits(double cap_w, double power_w, double throughput, int64_t throttle)
{
	return (struct ww_point){cap_w, power_w, throughput, NAN, NAN, throttle};
}

static struct ww_point with_se(double cap_w, double power_w, double throughput, double throughput_se)
{
	return (struct ww_point){cap_w, power_w, throughput, NAN, throughput_se, -1};
}

static struct ww_pfi estimate_with(const struct ww_point *p, size_t n, const struct ww_pfi_options *options)
{
	struct ww_pfi out;
	struct ww_error err = {WW_OK, ""};
	assert_int_equal(ww_pfi_estimate(p, n, options, &out, &err), WW_OK);
	return out;
}

static struct ww_pfi estimate(const struct ww_point *p, size_t n)
{
	static const struct ww_pfi_options options = WW_PFI_OPTIONS_INIT;
	return estimate_with(p, n, &options);
}

#define ESTIMATE(points) estimate((points), sizeof(points) / sizeof(points)[0])

/* ---- Baseline and slope points -------------------------------------------------------------------------------------- */

/* 350 W is within 3 % of the top and pooled, 300 W is the first that fails; 250 W, again near the top, comes too late for
 * the baseline; neither it nor 300 W is cut by 3 % of the pooled 297.5 W, so 200 W alone is the slope. */
static void baseline_stops_at_the_first_that_fails(void **state)
{
	const struct ww_point p[] = {at(400, 300, 100), at(350, 295, 102), at(300, 290, 99), at(250, 296, 90),
	                             at(200, 200, 80)};
	(void)state;
	struct ww_pfi pfi = ESTIMATE(p);
	assert_int_equal(pfi.status, WW_PFI_OK);
	assert_int_equal(pfi.n_caps, 5);
	assert_near(pfi.p0_w, 297.5, 1e-9);
	assert_near(pfi.t0, 101, 1e-9);
	assert_near(pfi.pfi_ls, (1 - 200 / 297.5) / (1 - 80 / 101.0), 1e-12);
	assert_near(pfi.max_cut_frac, 1 - 200 / 297.5, 1e-12);
	assert_near(pfi.fit_lo_w, 200, 0);
	assert_near(pfi.fit_hi_w, 400, 0);
}

static void baseline_takes_draws_above_the_top_too(void **state)
{
	struct ww_point p[] = {at(400, 300, 100), at(300, 308.9, 100), at(200, 200, 80)};
	(void)state;
	assert_near(ESTIMATE(p).p0_w, 304.45, 1e-9);
	p[1].power_w = 309.1; /* 3.03 % above */
	assert_near(ESTIMATE(p).p0_w, 300, 1e-9);
	assert_near(ESTIMATE(p).pfi_ls, (1.0 / 3) / 0.2, 1e-12);
}

/* A single cap just outside 3 % is a slope point although its draw equals its cap to a watt. */
static void draw_over_cap_is_never_the_test(void **state)
{
	const struct ww_point p[] = {at(400, 399, 100), at(350, 250, 90), at(300, 249, 90), at(200, 120, 50)};
	(void)state;
	struct ww_pfi pfi = ESTIMATE(p);
	double d[] = {1 - 250 / 399.0, 1 - 249 / 399.0, 1 - 120 / 399.0}, l[] = {0.1, 0.1, 0.5}, dd = 0, dl = 0;
	for (int i = 0; i < 3; i++) {
		dd += d[i] * d[i];
		dl += d[i] * l[i];
	}
	assert_near(pfi.p0_w, 399, 1e-9);
	assert_near(pfi.pfi_ls, dd / dl, 1e-12);
}

/* d = .1 .2 .4, l = .04 .1 .3: sum d^2 = .21, sum dl = .144, s = .144/.21, sum l^2 = .1016. */
static void least_squares_by_hand(void **state)
{
	const struct ww_point p[] = {at(400, 100, 100), at(300, 90, 96), at(200, 80, 90), at(100, 60, 70)};
	(void)state;
	struct ww_pfi pfi = ESTIMATE(p);
	assert_int_equal(pfi.status, WW_PFI_OK);
	assert_near(pfi.pfi_ls, 1.4583333333333333, 1e-12);
	assert_near(pfi.r2, 1 - 0.002857142857142857 / 0.1016, 1e-12);
	assert_int_equal(pfi.flags, WW_FLAG_NOISE_ASSUMED);
	assert_near(pfi.pfi_30, 0.30 / 0.2, 1e-12); /* the losses are convex: half way from .1 to .3 */
	assert_nan(pfi.pfi_ls_lo);
	assert_nan(pfi.pfi_ls_hi);
	assert_near(pfi.noise_frac, 0.01, 0);
}

/* A point without loss stays in: d = .1 .4, l = 0 .2. */
static void small_losses_are_not_dropped(void **state)
{
	const struct ww_point p[] = {at(400, 100, 100), at(300, 90, 100), at(200, 60, 80)};
	(void)state;
	assert_near(ESTIMATE(p).pfi_ls, 0.17 / 0.08, 1e-12);
}

static void poor_fit_is_flagged(void **state)
{
	struct ww_point p[] = {at(400, 100, 100), at(300, 80, 99), at(200, 60, 60)};
	(void)state; /* s = (.2*.01 + .4*.4)/.2 = .81; r2 = 1 - (.152^2 + .076^2)/.1601 = .8196 */
	struct ww_pfi pfi = ESTIMATE(p);
	assert_near(pfi.r2, 1 - 0.02888 / 0.1601, 1e-12);
	assert_true(pfi.flags & WW_FLAG_POOR_FIT);
	p[1].throughput = 90;
	assert_false(ESTIMATE(p).flags & WW_FLAG_POOR_FIT);
}

static void rising_throughput_is_flagged(void **state)
{
	struct ww_point p[] = {at(400, 100, 100), at(300, 80, 90), at(200, 60, 91)};
	(void)state;
	assert_true(ESTIMATE(p).flags & WW_FLAG_NOT_MONOTONE);
	p[2].throughput = 89;
	assert_false(ESTIMATE(p).flags & WW_FLAG_NOT_MONOTONE);
	p[1].throughput = 101;
	assert_true(ESTIMATE(p).flags & WW_FLAG_NOT_MONOTONE);
}

static void cap_range_limits_the_fit(void **state)
{
	const struct ww_point p[] = {at(400, 390, 110), at(300, 300, 100), at(200, 200, 90), at(150, 150, 75),
	                             at(100, 100, 20)};
	struct ww_pfi_options options = WW_PFI_OPTIONS_INIT;
	(void)state;
	options.cap_lo_w = 150;
	options.cap_hi_w = 300;
	struct ww_pfi pfi = estimate_with(p, 5, &options);
	assert_int_equal(pfi.n_caps, 3);
	assert_near(pfi.fit_lo_w, 150, 0);
	assert_near(pfi.fit_hi_w, 300, 0);
	assert_near(pfi.pfi_ls, (1 / 9.0 + 0.25) / (0.1 / 3 + 0.125), 1e-12);
	options.cap_hi_w = 199;
	assert_int_equal(estimate_with(p, 5, &options).status, WW_PFI_TOO_FEW_POINTS);
}

/* ---- Throttle reasons ------------------------------------------------------------------------------------------------ */

static void throttle_reasons_overrule_the_draw(void **state)
{
	/* 5 % less draw but no cap at work: baseline. 1 % less with the cap at work: a slope point. */
	const struct ww_point p[] = {bits(400, 300, 100, 0), bits(350, 285, 98, 0),
	                             bits(300, 289.575, 97, WW_THROTTLE_POWER_CAP),
	                             bits(200, 200, 80, WW_THROTTLE_POWER_CAP)};
	double d1 = 1 - 289.575 / 292.5, d2 = 1 - 200 / 292.5, l1 = 1 - 97 / 99.0, l2 = 1 - 80 / 99.0;
	(void)state;
	struct ww_pfi pfi = ESTIMATE(p);
	assert_int_equal(pfi.status, WW_PFI_OK);
	assert_near(pfi.p0_w, 292.5, 1e-9);
	assert_near(pfi.t0, 99, 1e-9);
	assert_near(pfi.pfi_ls, (d1 * d1 + d2 * d2) / (d1 * l1 + d2 * l2), 1e-12);
}

static void throttle_reasons_of_one_repetition_count(void **state)
{
	const struct ww_point p[] = {bits(400, 300, 100, 0), bits(300, 295, 98, 0),
	                             bits(300, 295, 98, WW_THROTTLE_POWER_CAP), bits(200, 200, 80, -1)};
	(void)state;
	assert_near(ESTIMATE(p).p0_w, 300, 1e-9);
}

static void unrecorded_reasons_leave_the_draw(void **state)
{
	const struct ww_point p[] = {bits(400, 300, 100, 0), bits(300, 295, 98, 0), bits(300, 295, 98, -1),
	                             bits(200, 200, 80, -1)};
	(void)state;
	assert_near(ESTIMATE(p).p0_w, 297.5, 1e-9);
}

static void thermal_slowdown_is_flagged(void **state)
{
	struct ww_point p[] = {bits(400, 300, 100, 0), bits(200, 200, 80, WW_THROTTLE_POWER_CAP)};
	(void)state;
	assert_false(ESTIMATE(p).flags & WW_FLAG_THERMAL);
	for (int64_t bit = 1; bit <= 0x100; bit <<= 1) {
		p[1].throttle = WW_THROTTLE_POWER_CAP | bit;
		assert_int_equal((ESTIMATE(p).flags & WW_FLAG_THERMAL) != 0, (bit & 0xE8) != 0);
	}
}

/* ---- Status, in order ---------------------------------------------------------------------------------------------- */

static void fewer_than_two_caps_are_too_few(void **state)
{
	const struct ww_point p[] = {at(400, 300, 100), at(400, 100, 50), at(400, 301, 101)};
	(void)state;
	for (size_t n = 0; n <= 3; n++) {
		struct ww_pfi pfi = estimate(p, n);
		assert_int_equal(pfi.status, WW_PFI_TOO_FEW_POINTS);
		assert_int_equal(pfi.n_caps, n > 0);
		assert_nan(pfi.pfi_ls);
		assert_nan(pfi.pfi_30);
		assert_nan(pfi.pfi_ls_lo);
	}
}

/* The whole cut is 20 %, but the reasons say that no cap was at work. */
static void no_slope_point_under_a_whole_cut_is_too_few(void **state)
{
	struct ww_point p[] = {bits(400, 300, 100, 0), bits(200, 240, 90, 0)};
	(void)state;
	assert_int_equal(ESTIMATE(p).status, WW_PFI_TOO_FEW_POINTS);
	p[1].power_w = 271; /* 9.7 %: then it is not limited, whatever the reasons */
	assert_int_equal(ESTIMATE(p).status, WW_PFI_NOT_POWER_LIMITED);
	p[1].throttle = WW_THROTTLE_POWER_CAP;
	assert_int_equal(ESTIMATE(p).status, WW_PFI_NOT_POWER_LIMITED);
	p[1].power_w = 269;
	assert_int_equal(ESTIMATE(p).status, WW_PFI_OK);
}

static void a_tenth_of_the_top_draw_decides(void **state)
{
	/* 9.93 % below the pooled 149.9 W, 10.01 % below the top 150 W: the top decides, before pooling. */
	struct ww_point p[] = {at(400, 150, 100), at(300, 149.8, 100), at(200, 134.985, 50)};
	(void)state;
	assert_int_equal(ESTIMATE(p).status, WW_PFI_OK);
	p[2].power_w = 135.015;
	assert_int_equal(ESTIMATE(p).status, WW_PFI_NOT_POWER_LIMITED);
	p[1].power_w = 100; /* a deep cut in between does not count: the lowest cap decides */
	assert_int_equal(ESTIMATE(p).status, WW_PFI_NOT_POWER_LIMITED);
	assert_nan(ESTIMATE(p).pfi_ls);
	assert_nan(ESTIMATE(p).pfi_30);
}

static void shallow_sweeps_are_told_from_idle_ones(void **state)
{
	struct ww_point p[] = {at(300, 295, 100), at(280, 271.7, 95)}; /* 0.9704 of the cap */
	(void)state;
	assert_int_equal(ESTIMATE(p).status, WW_PFI_NOT_POWER_LIMITED);
	assert_true(ESTIMATE(p).flags & WW_FLAG_SHALLOW_SWEEP);
	p[1].power_w = 271.5; /* 0.9696 */
	assert_int_equal(ESTIMATE(p).status, WW_PFI_NOT_POWER_LIMITED);
	assert_false(ESTIMATE(p).flags & WW_FLAG_SHALLOW_SWEEP);
	p[1] = at(250, 249, 90); /* limited, so it is deep enough */
	assert_int_equal(ESTIMATE(p).status, WW_PFI_OK);
	assert_false(ESTIMATE(p).flags & WW_FLAG_SHALLOW_SWEEP);
}

/* One slope point at d = .2: se = .01 sqrt(.08)/.04 = .0707107, so the edge is at l = .2 * 2.5 * se = .0353553. */
static void losses_within_noise_are_only_a_bound(void **state)
{
	struct ww_point p[] = {at(400, 100, 1000), at(300, 80, 964.7)};
	double se = 0.01 * sqrt(0.08) / 0.04;
	(void)state;
	struct ww_pfi pfi = ESTIMATE(p);
	assert_int_equal(pfi.status, WW_PFI_BOUND);
	assert_nan(pfi.pfi_ls);
	assert_nan(pfi.pfi_ls_hi);
	assert_near(pfi.pfi_ls_lo, 1 / (0.0353 / 0.2 + 1.645 * se), 1e-9);
	assert_true(pfi.flags & WW_FLAG_NOISE_ASSUMED);
	p[1].throughput = 964.6;
	assert_int_equal(ESTIMATE(p).status, WW_PFI_OK);
	assert_near(ESTIMATE(p).pfi_ls, 0.2 / 0.0354, 1e-9);
	p[1].throughput = 1050; /* faster: the slope counts as 0 */
	pfi = ESTIMATE(p);
	assert_int_equal(pfi.status, WW_PFI_BOUND);
	assert_near(pfi.pfi_ls_lo, 1 / (1.645 * se), 1e-9);
	p[1].throughput = 1000;
	assert_near(ESTIMATE(p).pfi_ls_lo, 1 / (1.645 * se), 1e-9);
}

/* Two slope points: the shared baseline makes the errors of the losses correlated. d = .1 .3, sum d = .4, sum d^2 = .1:
 * se = .01 sqrt(.1 + .16)/.1 = .0509902; the edge for l = s d is s = .1274755. */
static void the_bound_counts_the_shared_baseline(void **state)
{
	struct ww_point p[] = {at(400, 100, 1000), at(300, 90, 1000 - 12.74), at(200, 70, 1000 - 38.22)};
	(void)state;
	assert_int_equal(ESTIMATE(p).status, WW_PFI_BOUND);
	assert_near(ESTIMATE(p).pfi_ls_lo, 1 / (0.1274 + 1.645 * 0.01 * sqrt(0.26) / 0.1), 1e-9);
	p[1].throughput = 1000 - 12.76;
	p[2].throughput = 1000 - 38.28;
	assert_int_equal(ESTIMATE(p).status, WW_PFI_OK);
}

static void without_noise_any_loss_is_a_slope(void **state)
{
	struct ww_point p[] = {at(400, 100, 1000), at(300, 80, 999)};
	struct ww_pfi_options options = WW_PFI_OPTIONS_INIT;
	(void)state;
	options.noise_frac = 0;
	assert_near(estimate_with(p, 2, &options).pfi_ls, 200, 1e-9);
	p[1].throughput = 1001;
	struct ww_pfi pfi = estimate_with(p, 2, &options);
	assert_int_equal(pfi.status, WW_PFI_BOUND);
	assert_false(isinf(pfi.pfi_ls_lo));
}

/* ---- Noise ----------------------------------------------------------------------------------------------------------- */

static void given_errors_are_the_noise(void **state)
{
	/* Relative errors .005 and .02; the cap between, neither baseline nor slope, does not count. */
	struct ww_point p[] = {with_se(400, 300, 100, 0.5), with_se(300, 309.5, 99, 30), with_se(200, 200, 80, 1.6)};
	(void)state;
	struct ww_pfi pfi = ESTIMATE(p);
	assert_near(pfi.noise_frac, sqrt((0.005 * 0.005 + 0.02 * 0.02) / 2), 1e-12);
	assert_false(pfi.flags & WW_FLAG_NOISE_ASSUMED);
	assert_true(pfi.pfi_ls_lo < pfi.pfi_ls && pfi.pfi_ls < pfi.pfi_ls_hi);
	p[1].power_w = 305; /* now of the baseline: it counts, and turns the losses into noise */
	assert_near(ESTIMATE(p).noise_frac, sqrt((0.005 * 0.005 + 900.0 / 99 / 99 + 0.02 * 0.02) / 3), 1e-12);
	assert_int_equal(ESTIMATE(p).status, WW_PFI_BOUND);
}

/* 100 and 102 around 101, 80 twice: pooled scatter per measurement 1/101 with two degrees of freedom; each mean of two
 * has that over sqrt 2. */
static void repetitions_are_the_noise(void **state)
{
	const struct ww_point p[] = {at(400, 300, 100), at(200, 200, 80), at(400, 300, 102), at(200, 200, 80)};
	(void)state;
	struct ww_pfi pfi = ESTIMATE(p);
	assert_int_equal(pfi.n_caps, 2);
	assert_near(pfi.noise_frac, 1 / 101.0 / sqrt(2), 1e-12);
	assert_false(pfi.flags & WW_FLAG_NOISE_ASSUMED);
	assert_near(pfi.pfi_ls, (1.0 / 3) / (1 - 80 / 101.0), 1e-12);
	assert_true(pfi.pfi_ls_lo < pfi.pfi_ls && pfi.pfi_ls < pfi.pfi_ls_hi);
}

/* Repetitions at one cap tell the noise of the other, measured once: sigma and sigma/sqrt 2. */
static void repetitions_of_one_cap_serve_all(void **state)
{
	const struct ww_point p[] = {at(400, 300, 100), at(400, 300, 102), at(200, 200, 80)};
	(void)state;
	double sigma = sqrt(2) / 101;
	assert_near(ESTIMATE(p).noise_frac, sqrt((sigma * sigma / 2 + sigma * sigma) / 2), 1e-12);
}

static void given_errors_beat_repetitions(void **state)
{
	const struct ww_point p[] = {with_se(400, 300, 100, 1), with_se(400, 300, 140, 1), with_se(200, 200, 80, 0.8)};
	(void)state;
	double top = sqrt(2) / 240, low = 0.01;
	assert_near(ESTIMATE(p).noise_frac, sqrt((top * top + low * low) / 2), 1e-12);
}

static void assumed_noise_is_told(void **state)
{
	const struct ww_point p[] = {at(400, 300, 100), at(200, 200, 80)};
	struct ww_pfi_options options = WW_PFI_OPTIONS_INIT;
	(void)state;
	options.noise_frac = 0.03;
	struct ww_pfi pfi = estimate_with(p, 2, &options);
	assert_true(pfi.flags & WW_FLAG_NOISE_ASSUMED);
	assert_near(pfi.noise_frac, 0.03, 0);
	assert_nan(pfi.pfi_ls_lo);
	assert_nan(pfi.pfi_ls_hi);
}

/* ---- pfi_30 ---------------------------------------------------------------------------------------------------------- */

static void pfi_30_repairs_and_convexifies(void **state)
{
	/* d = .1 .2 .4, l = .06 .04 .3: made monotone .05 .05 .3; the hull from (0, 0) drops d = .1; l(.3) = .175. */
	const struct ww_point repaired[] = {at(400, 100, 100), at(300, 90, 94), at(200, 80, 96), at(100, 60, 70)};
	/* d = .2 .4, l = .2 .3 is concave: the hull is the straight line, l(.3) = .225. */
	const struct ww_point concave[] = {at(400, 100, 100), at(300, 80, 80), at(200, 60, 70)};
	(void)state;
	assert_near(ESTIMATE(repaired).pfi_30, 0.3 / 0.175, 1e-12);
	assert_near(ESTIMATE(concave).pfi_30, 0.3 / 0.225, 1e-12);
}

static void pfi_30_is_null_when_not_reached(void **state)
{
	struct ww_point p[] = {at(400, 100, 100), at(300, 70.1, 80)};
	(void)state;
	assert_nan(ESTIMATE(p).pfi_30);
	p[1].power_w = 69.9;
	assert_near(ESTIMATE(p).pfi_30, 0.3 / (0.2 * 0.3 / 0.301), 1e-12);
}

/* d = .4 without loss, then d = .6: l(.3) = 0 on the hull, and a PFI is never infinite. */
static void pfi_30_without_loss_is_null(void **state)
{
	const struct ww_point p[] = {at(400, 100, 100), at(300, 60, 101), at(200, 40, 70)};
	(void)state;
	assert_int_equal(ESTIMATE(p).status, WW_PFI_OK);
	assert_nan(ESTIMATE(p).pfi_30);
}

/* ---- Promises on random sweeps --------------------------------------------------------------------------------------- */

#define MOST 24

static double pick(struct ww_rng *rng, const double *of, uint32_t n)
{
	return of[ww_rng_below(rng, n)];
}

/* Anything that the documented range allows: few caps or many, repeated, equal draws, draws that rise as the cap falls,
 * losses of any sign, throughput over many magnitudes, errors known, zero, huge or unknown. */
static size_t nasty_sweep(struct ww_rng *rng, struct ww_point *p)
{
	static const double scales[] = {1, 1, 1e-9, 1e12},
			    cuts[] = {0, 0, 0.02999, 0.03, 0.0301, 0.1, 0.3, 0.9, 0.99999};
	static const double losses[] = {0, 0, 1e-15, 1e-6, 0.01, 0.3, 0.999999, -0.01, -3},
			    errors[] = {0, 1e-9, 0.01, 2};
	static const int64_t throttles[] = {-1, 0, WW_THROTTLE_POWER_CAP, 0x60, 0x8C};
	size_t n = ww_rng_below(rng, MOST + 1);
	double power = 300 * pick(rng, scales, 4), throughput = 10 * pick(rng, scales, 4);
	bool erred = ww_rng_below(rng, 2), throttled = ww_rng_below(rng, 3) == 0, picked = ww_rng_below(rng, 2);
	for (size_t i = 0; i < n; i++) {
		double cut = picked ? pick(rng, cuts, 9) : ww_rng_uniform(rng);
		double loss = picked ? pick(rng, losses, 9) : 0.5 * cut + 0.02 * ww_rng_normal(rng);
		p[i] = at(100 + 25 * ww_rng_below(rng, 1 + ww_rng_below(rng, 12)), power * (1 - cut),
		          throughput * fmax(1 - loss, 1e-6));
		if (erred && ww_rng_below(rng, 4))
			p[i].throughput_se = p[i].throughput * pick(rng, errors, 4);
		if (erred && ww_rng_below(rng, 4))
			p[i].power_se_w = p[i].power_w * pick(rng, errors, 4);
		if (throttled)
			p[i].throttle = throttles[ww_rng_below(rng, 5)];
	}
	return n;
}

static void check_number(double v)
{
	assert_false(isinf(v));
	assert_true(isnan(v) || v > 0);
}

static void check_promises(const struct ww_pfi *pfi)
{
	check_number(pfi->pfi_ls);
	check_number(pfi->pfi_ls_lo);
	check_number(pfi->pfi_ls_hi);
	check_number(pfi->pfi_30);
	assert_true(pfi->status >= WW_PFI_OK && pfi->status <= WW_PFI_BOUND);
	if (pfi->status == WW_PFI_OK) {
		assert_true(isfinite(pfi->pfi_ls) && isfinite(pfi->r2) && pfi->r2 <= 1 + 1e-12);
		assert_true(isnan(pfi->pfi_ls_lo) || isnan(pfi->pfi_ls_hi) || pfi->pfi_ls_lo <= pfi->pfi_ls_hi);
	} else {
		assert_nan(pfi->pfi_ls);
		assert_nan(pfi->pfi_ls_hi);
	}
	if (pfi->status == WW_PFI_BOUND && pfi->noise_frac > 0)
		assert_true(isfinite(pfi->pfi_ls_lo));
	if (pfi->status != WW_PFI_BOUND && pfi->status != WW_PFI_OK)
		assert_nan(pfi->pfi_ls_lo);
	if (pfi->n_caps > 0)
		assert_true(isfinite(pfi->p0_w) && isfinite(pfi->t0) && pfi->p0_w > 0 && pfi->t0 > 0);
}

static void random_sweeps_never_break_a_promise(void **state)
{
	struct ww_pfi_options options = WW_PFI_OPTIONS_INIT;
	struct ww_point p[MOST];
	struct ww_rng rng;
	int seen[4] = {0};
	(void)state;
	options.draws = 40;
	ww_rng_seed(&rng, 20250101);
	for (int i = 0; i < 10000; i++) {
		options.noise_frac = i % 7 ? 0.01 : 0;
		struct ww_pfi pfi = estimate_with(p, nasty_sweep(&rng, p), &options);
		check_promises(&pfi);
		seen[pfi.status]++;
	}
	for (int i = 0; i < 4; i++)
		assert_true(seen[i] > 100);
}

static void shuffle(struct ww_rng *rng, struct ww_point *p, size_t n)
{
	for (size_t i = n; i > 1; i--) {
		size_t k = ww_rng_below(rng, (uint32_t)i);
		struct ww_point swap = p[i - 1];
		p[i - 1] = p[k];
		p[k] = swap;
	}
}

/* Padding aside, the same bytes. */
static void assert_same_pfi(const struct ww_pfi *a, const struct ww_pfi *b)
{
	assert_int_equal(a->status, b->status);
	assert_int_equal(a->flags, b->flags);
	assert_int_equal(a->n_caps, b->n_caps);
	assert_memory_equal(&a->fit_lo_w, &b->fit_lo_w, sizeof *a - offsetof(struct ww_pfi, fit_lo_w));
}

static void the_order_of_points_is_irrelevant(void **state)
{
	struct ww_pfi_options options = WW_PFI_OPTIONS_INIT;
	struct ww_point p[MOST];
	struct ww_rng rng;
	(void)state;
	options.draws = 40;
	ww_rng_seed(&rng, 7);
	for (int i = 0; i < 2000; i++) {
		size_t n = nasty_sweep(&rng, p);
		struct ww_pfi first = estimate_with(p, n, &options);
		shuffle(&rng, p, n);
		struct ww_pfi second = estimate_with(p, n, &options);
		assert_same_pfi(&first, &second);
	}
}

/* Repetitions that differ only in their errors: the sum of the squares of 1.5, 0.1 and 0.9 depends on its order. */
static void the_order_of_equal_repetitions_is_irrelevant(void **state)
{
	struct ww_point p[] = {with_se(400, 300, 100, 1.5), with_se(400, 300, 100, 0.1), with_se(400, 300, 100, 0.9),
	                       with_se(200, 200, 80, 0)};
	struct ww_rng rng;
	(void)state;
	ww_rng_seed(&rng, 3);
	struct ww_pfi first = ESTIMATE(p);
	for (int i = 0; i < 20; i++) {
		shuffle(&rng, p, 4);
		struct ww_pfi second = ESTIMATE(p);
		assert_same_pfi(&first, &second);
	}
}

/* ---- The interval ---------------------------------------------------------------------------------------------------- */

/* 3 to 8 caps that all bind, a convex loss; noisy copies with relative errors of 0.8 % and 0.4 %. */
static size_t known_sweep(struct ww_rng *rng, struct ww_point *exact, struct ww_point *noisy)
{
	size_t n = 3 + ww_rng_below(rng, 6);
	double a = 0.1 + 0.4 * ww_rng_uniform(rng), b = 0.3 + 0.7 * ww_rng_uniform(rng);
	for (size_t i = 0; i < n; i++) {
		double cut = i ? 0.08 + 0.45 * (double)i / (double)(n - 1) : 0;
		exact[i] = at(700 - 50 * (double)i, 650 * (1 - cut), 2000 * (1 - a * cut - b * cut * cut));
		noisy[i] = exact[i];
		noisy[i].power_w *= 1 + 0.004 * ww_rng_normal(rng);
		noisy[i].throughput *= 1 + 0.008 * ww_rng_normal(rng);
		noisy[i].power_se_w = 0.004 * noisy[i].power_w;
		noisy[i].throughput_se = 0.008 * noisy[i].throughput;
	}
	return n;
}

static void the_interval_covers_nine_of_ten(void **state)
{
	enum { SWEEPS = 1000 };
	struct ww_pfi_options options = WW_PFI_OPTIONS_INIT;
	struct ww_point exact[MOST], noisy[MOST];
	struct ww_rng rng;
	int covered = 0, ok = 0, below = 0;
	(void)state;
	options.draws = 500;
	ww_rng_seed(&rng, 90);
	for (int i = 0; i < SWEEPS; i++) {
		options.seed = (uint64_t)i;
		size_t n = known_sweep(&rng, exact, noisy);
		double truth = estimate(exact, n).pfi_ls;
		struct ww_pfi pfi = estimate_with(noisy, n, &options);
		ok += pfi.status == WW_PFI_OK;
		covered += pfi.pfi_ls_lo <= truth && truth <= pfi.pfi_ls_hi;
		below += truth < pfi.pfi_ls_lo;
	}
	print_message("# 90 %% interval: %.1f %% of %d sweeps covered, %.1f %% below\n", 100.0 * covered / ok, ok,
	              100.0 * below / ok);
	assert_true(ok >= 400);
	assert_true(covered >= 0.86 * ok && covered <= 0.94 * ok);
	assert_true(below >= 0.02 * ok && below <= 0.08 * ok);
}

/* The baseline is drawn once per replicate: with an error only there, all losses move together. At d = .2 and .4 with
 * l = d/2 and T0 = 100 (1 + e), pfi = .2 / (.1 + .6 e - ...): the 5 % and 95 % points are known. */
static void the_baseline_is_drawn_once_per_replicate(void **state)
{
	const struct ww_point p[] = {with_se(400, 100, 100, 1), with_se(300, 80, 90, 0), with_se(200, 60, 80, 0)};
	struct ww_pfi_options options = WW_PFI_OPTIONS_INIT;
	(void)state;
	options.draws = 20000;
	struct ww_pfi pfi = estimate_with(p, 3, &options);
	for (int side = -1; side <= 1; side += 2) {
		double t0 = 1 + side * 0.01 * 1.6448536;
		double end = 0.2 / (0.2 * (1 - 0.9 / t0) + 0.4 * (1 - 0.8 / t0));
		assert_near_rel(side < 0 ? pfi.pfi_ls_hi : pfi.pfi_ls_lo, end, 0.003);
	}
}

/* An error of the draw alone makes an interval too. */
static void errors_of_the_draw_count(void **state)
{
	struct ww_point p[] = {with_se(400, 100, 100, 0.01), with_se(200, 60, 80, 0.01)};
	(void)state;
	double narrow = ESTIMATE(p).pfi_ls_hi - ESTIMATE(p).pfi_ls_lo;
	p[1].power_se_w = 2;
	assert_true(ESTIMATE(p).pfi_ls_hi - ESTIMATE(p).pfi_ls_lo > 10 * narrow);
}

/* Draws of 99 and 101 W make a standard error of 1 W of their mean: the interval is that of one point with 1 W given. */
static void repetitions_tell_the_error_of_the_draw(void **state)
{
	const struct ww_point twice[] = {with_se(400, 99, 100, 0.01), with_se(400, 101, 100, 0.01),
	                                 with_se(200, 60, 80, 0.01)};
	struct ww_point once[] = {with_se(400, 100, 100, 0.01), with_se(200, 60, 80, 0.01)};
	(void)state;
	once[0].power_se_w = 1;
	once[1].power_se_w = 0.6 * sqrt(2);
	struct ww_pfi a = ESTIMATE(twice), b = ESTIMATE(once);
	assert_near_rel(a.pfi_ls_hi - a.pfi_ls_lo, b.pfi_ls_hi - b.pfi_ls_lo, 0.02);
}

static void the_seed_makes_the_interval(void **state)
{
	const struct ww_point p[] = {with_se(400, 300, 100, 0.5), with_se(300, 250, 92, 0.5),
	                             with_se(200, 200, 80, 0.5)};
	struct ww_pfi_options options = WW_PFI_OPTIONS_INIT;
	(void)state;
	struct ww_pfi a = estimate_with(p, 3, &options), b = estimate_with(p, 3, &options);
	assert_same_pfi(&a, &b);
	options.seed = 2;
	b = estimate_with(p, 3, &options);
	assert_true(a.pfi_ls_lo != b.pfi_ls_lo && a.pfi_ls_hi != b.pfi_ls_hi);
	assert_near_rel(a.pfi_ls_lo, b.pfi_ls_lo, 0.01);
	options.draws = 0;
	b = estimate_with(p, 3, &options);
	assert_nan(b.pfi_ls_lo);
	assert_near(a.pfi_ls, b.pfi_ls, 0);
}

/* ---- Duplicates ------------------------------------------------------------------------------------------------------ */

static void duplicates_are_found(void **state)
{
	const struct ww_point first[] = {at(400, 300, 100), at(300, 250, 92), at(200, 200, 80)};
	const struct ww_point scaled[] = {at(200, 200 * 4, 640), at(400, 300 * 4, 800), at(300, 250 * 4, 736)};
	const struct ww_point close[] = {at(400, 300, 100), at(300, 250.27, 92.009), at(200, 200, 80)};
	const struct ww_point more_loss[] = {at(400, 300, 100), at(300, 250, 92.011), at(200, 200, 80)};
	const struct ww_point more_draw[] = {at(400, 300, 100), at(300, 250.33, 92), at(200, 200, 80)};
	const struct ww_point other_cap[] = {at(400, 300, 100), at(301, 250, 92), at(200, 200, 80)};
	const struct ww_compare_job jobs[] = {{"a", other_cap, 3}, {"b", first, 3}, {"c", scaled, 3},
	                                      {"d", more_loss, 3}, {"e", close, 3}, {"f", more_draw, 3},
	                                      {"g", first, 2},     {"h", scaled, 3}};
	const size_t expected[] = {0, 1, 1, 3, 1, 5, 6, 1};
	size_t found[8];
	struct ww_error err;
	(void)state;
	assert_int_equal(ww_find_duplicates(jobs, 8, found, &err), WW_OK);
	for (int i = 0; i < 8; i++)
		assert_int_equal(found[i], expected[i]);
	assert_int_equal(ww_find_duplicates(jobs, 0, found, &err), WW_OK);
}

static void sweeps_without_points_are_no_duplicates(void **state)
{
	const struct ww_compare_job jobs[] = {{"a", NULL, 0}, {"b", NULL, 0}};
	size_t found[2];
	struct ww_error err;
	(void)state;
	assert_int_equal(ww_find_duplicates(jobs, 2, found, &err), WW_OK);
	assert_int_equal(found[1], 1);
}

/* ---- Mistakes -------------------------------------------------------------------------------------------------------- */

static void assert_refused(const struct ww_point *p, size_t n, const struct ww_pfi_options *options)
{
	struct ww_pfi out, untouched;
	struct ww_error err = {WW_OK, ""};
	memset(&out, 0xA5, sizeof out);
	memset(&untouched, 0xA5, sizeof untouched);
	assert_int_equal(ww_pfi_estimate(p, n, options, &out, &err), WW_ERR_RANGE);
	assert_int_equal(err.code, WW_ERR_RANGE);
	assert_true(strlen(err.text) > 10);
	assert_memory_equal(&out, &untouched, sizeof out);
}

static void bad_points_are_refused(void **state)
{
	static const double bad[] = {0, -1, NAN, INFINITY, -INFINITY};
	const struct ww_pfi_options options = WW_PFI_OPTIONS_INIT;
	(void)state;
	for (int i = 0; i < 5; i++) {
		for (int field = 0; field < 5; field++) {
			struct ww_point p[] = {at(400, 300, 100), at(200, 200, 80)};
			double *fields[] = {&p[1].cap_w, &p[1].power_w, &p[1].throughput, &p[1].power_se_w,
			                    &p[1].throughput_se};
			*fields[field] = bad[i];
			if (field < 3 || (bad[i] != 0 && !isnan(bad[i])))
				assert_refused(p, 2, &options);
			else
				(void)estimate_with(p, 2, &options);
		}
	}
}

static void bad_options_are_refused(void **state)
{
	const struct ww_point p[] = {at(400, 300, 100), at(200, 200, 80)};
	static const struct ww_pfi_options bad[] = {
		{0, 1e300, -0.01, 100, 1}, {0, 1e300, NAN, 100, 1},  {0, 1e300, 1, 100, 1},
		{300, 200, 0.01, 100, 1},  {NAN, 200, 0.01, 100, 1}, {0, NAN, 0.01, 100, 1},
	};
	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_refused(p, 2, &bad[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(baseline_stops_at_the_first_that_fails),
		cmocka_unit_test(baseline_takes_draws_above_the_top_too),
		cmocka_unit_test(draw_over_cap_is_never_the_test),
		cmocka_unit_test(least_squares_by_hand),
		cmocka_unit_test(small_losses_are_not_dropped),
		cmocka_unit_test(poor_fit_is_flagged),
		cmocka_unit_test(rising_throughput_is_flagged),
		cmocka_unit_test(cap_range_limits_the_fit),
		cmocka_unit_test(throttle_reasons_overrule_the_draw),
		cmocka_unit_test(throttle_reasons_of_one_repetition_count),
		cmocka_unit_test(unrecorded_reasons_leave_the_draw),
		cmocka_unit_test(thermal_slowdown_is_flagged),
		cmocka_unit_test(fewer_than_two_caps_are_too_few),
		cmocka_unit_test(no_slope_point_under_a_whole_cut_is_too_few),
		cmocka_unit_test(a_tenth_of_the_top_draw_decides),
		cmocka_unit_test(shallow_sweeps_are_told_from_idle_ones),
		cmocka_unit_test(losses_within_noise_are_only_a_bound),
		cmocka_unit_test(the_bound_counts_the_shared_baseline),
		cmocka_unit_test(without_noise_any_loss_is_a_slope),
		cmocka_unit_test(given_errors_are_the_noise),
		cmocka_unit_test(repetitions_are_the_noise),
		cmocka_unit_test(repetitions_of_one_cap_serve_all),
		cmocka_unit_test(given_errors_beat_repetitions),
		cmocka_unit_test(assumed_noise_is_told),
		cmocka_unit_test(pfi_30_repairs_and_convexifies),
		cmocka_unit_test(pfi_30_is_null_when_not_reached),
		cmocka_unit_test(pfi_30_without_loss_is_null),
		cmocka_unit_test(random_sweeps_never_break_a_promise),
		cmocka_unit_test(the_order_of_points_is_irrelevant),
		cmocka_unit_test(the_order_of_equal_repetitions_is_irrelevant),
		cmocka_unit_test(the_interval_covers_nine_of_ten),
		cmocka_unit_test(the_baseline_is_drawn_once_per_replicate),
		cmocka_unit_test(errors_of_the_draw_count),
		cmocka_unit_test(repetitions_tell_the_error_of_the_draw),
		cmocka_unit_test(the_seed_makes_the_interval),
		cmocka_unit_test(duplicates_are_found),
		cmocka_unit_test(sweeps_without_points_are_no_duplicates),
		cmocka_unit_test(bad_points_are_refused),
		cmocka_unit_test(bad_options_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
