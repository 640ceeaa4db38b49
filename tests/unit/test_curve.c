/* SPDX-License-Identifier: Apache-2.0 */
/* Loss curves: the measured one against its points, the fitted one against power laws, and what all curves promise. */
#include "assert_near.h"
#include "core/core.h"

#include <string.h>

static struct ww_point at(double cap_w, double power_w, double throughput)
{
	return (struct ww_point){cap_w, power_w, throughput, NAN, NAN, -1};
}

static struct ww_curve measure(const struct ww_point *p, size_t n)
{
	const struct ww_pfi_options options = WW_PFI_OPTIONS_INIT;
	struct ww_curve out;
	struct ww_error err;
	assert_int_equal(ww_curve_measure(p, n, &options, WW_ACCOUNT_DRAW, &out, &err), WW_OK);
	return out;
}

/* ---- What every curve promises --------------------------------------------------------------------------------------- */

static void check_knots(const struct ww_curve *c)
{
	assert_true(c->n >= 2 && c->n <= WW_MAX_KNOTS);
	assert_near(c->k[0].cut_frac, 0, 0);
	assert_near(c->k[0].loss_frac, 0, 0);
	assert_true(c->k[0].slope >= 0);
	for (uint32_t i = 1; i < c->n; i++) {
		const struct ww_knot *a = &c->k[i - 1], *b = &c->k[i];
		assert_true(b->cut_frac > a->cut_frac);
		assert_true(b->slope > a->slope);
		assert_near(b->loss_frac, a->loss_frac + (b->cut_frac - a->cut_frac) * (a->slope + b->slope) / 2,
		            1e-12);
		assert_near(ww_curve_loss(c, b->cut_frac), b->loss_frac, 1e-12);
		assert_near(ww_curve_slope(c, b->cut_frac), b->slope, 1e-9 * (1 + b->slope));
	}
}

static void check_inverses(const struct ww_curve *c, double d)
{
	double slope = ww_curve_slope(c, d), loss = ww_curve_loss(c, d);
	assert_near(ww_curve_cut_at_slope(c, slope), d, 1e-8);
	if (d <= c->max_cut_frac && loss > 1e-12)
		assert_near(ww_curve_cut_at_loss(c, loss), d, 1e-6);
	else if (d > c->max_cut_frac)
		assert_near(ww_curve_cut_at_loss(c, loss), c->max_cut_frac, 1e-12);
}

/* Convex and rising from (0, 0), also beyond the last knot; slope is the derivative of loss, and both have inverses. */
static void check_curve(const struct ww_curve *c)
{
	const double h = 1e-4;
	check_knots(c);
	for (double d = h; d < 1.2; d += 0.0137) {
		double left = ww_curve_loss(c, d - h), here = ww_curve_loss(c, d), right = ww_curve_loss(c, d + h);
		assert_true(isfinite(here) && here >= 0);
		assert_true(right - here >= here - left - 1e-14);
		assert_true(right - left >= h * (ww_curve_slope(c, d - h) + ww_curve_slope(c, d)) - 1e-14);
		assert_true(right - left <= h * (ww_curve_slope(c, d) + ww_curve_slope(c, d + h)) + 1e-14);
		assert_true(ww_curve_slope(c, d + h) > ww_curve_slope(c, d));
		assert_true(ww_curve_slope_var(c, d) >= 0);
		check_inverses(c, d);
	}
	assert_near(ww_curve_loss(c, 0), 0, 0);
	assert_near(ww_curve_cut_at_slope(c, c->k[0].slope - 1), 0, 0);
	assert_near(ww_curve_cut_at_loss(c, 0), 0, 0);
	assert_near(ww_curve_cut_at_loss(c, -1), 0, 0);
}

/* ---- The measured curve ---------------------------------------------------------------------------------------------- */

/* A sweep with P0 = 1000 W, T0 = 1000 from cuts and losses. */
static struct ww_curve measure_losses(const double *cut, const double *loss, size_t n)
{
	struct ww_point p[32] = {at(2000, 1000, 1000)};
	for (size_t i = 0; i < n; i++)
		p[i + 1] = at(1000 - 10 * (double)i, 1000 * (1 - cut[i]), 1000 * (1 - loss[i]));
	return measure(p, n + 1);
}

static void a_parabola_comes_back(void **state)
{
	const double cut[] = {0.1, 0.2, 0.3, 0.4}, loss[] = {0.01, 0.04, 0.09, 0.16};
	(void)state;
	struct ww_curve c = measure_losses(cut, loss, 4);
	check_curve(&c);
	for (int i = 0; i < 4; i++)
		assert_near(ww_curve_loss(&c, cut[i]), loss[i], 1e-5);
	assert_near(ww_curve_loss(&c, 0.25), 0.0625, 2e-3);
	assert_near(c.p0_w, 1000, 1e-9);
	assert_near(c.t0_tps, 1000, 1e-9);
	assert_near(c.max_cut_frac, 0.4, 1e-12);
	assert_int_equal(c.status, WW_PFI_OK);
}

static void one_slope_point_makes_a_parabola(void **state)
{
	const double cut = 0.4, loss = 0.2;
	(void)state;
	struct ww_curve c = measure_losses(&cut, &loss, 1);
	check_curve(&c);
	assert_near(ww_curve_loss(&c, 0.4), 0.2, 1e-9);
	assert_true(ww_curve_loss(&c, 0.2) < 0.1 && ww_curve_loss(&c, 0.2) > 0);
}

static void a_flat_start_stays_flat(void **state)
{
	const double cut[] = {0.1, 0.2, 0.3, 0.4}, loss[] = {-0.001, 0, 0, 0.12};
	(void)state;
	struct ww_curve c = measure_losses(cut, loss, 4);
	check_curve(&c);
	assert_near(ww_curve_loss(&c, 0.3), 0, 1e-5);
	assert_near(ww_curve_slope(&c, 0.15), 0, 1e-5);
	assert_near(ww_curve_loss(&c, 0.4), 0.12, 2e-4);
}

static void without_any_loss_it_is_flat(void **state)
{
	const double cut[] = {0.1, 0.2, 0.3}, loss[] = {0, 0, 0};
	(void)state;
	struct ww_curve c = measure_losses(cut, loss, 3);
	check_curve(&c);
	assert_int_equal(c.status, WW_PFI_BOUND);
	assert_near(ww_curve_loss(&c, 0.3), 0, 1e-5);
}

static void rising_throughput_is_repaired(void **state)
{
	const double cut[] = {0.1, 0.2, 0.3, 0.4}, loss[] = {0.03, 0.05, 0.03, 0.16};
	(void)state; /* monotone: .03 .04 .04 .16; hull: (0,0) (.3,.04) (.4,.16) */
	struct ww_curve c = measure_losses(cut, loss, 4);
	check_curve(&c);
	assert_true(c.flags & WW_FLAG_NOT_MONOTONE);
	assert_near(ww_curve_loss(&c, 0.3), 0.04, 1e-3);
	assert_near(ww_curve_loss(&c, 0.4), 0.16, 1e-3);
}

static void equal_draws_are_one_point(void **state)
{
	const double cut[] = {0.2, 0.2, 0.4}, loss[] = {0.06, 0.02, 0.16};
	(void)state;
	struct ww_curve c = measure_losses(cut, loss, 3);
	check_curve(&c);
	assert_near(ww_curve_loss(&c, 0.2), 0.04, 1e-5);
	assert_near(ww_curve_loss(&c, 0.4), 0.16, 1e-5);
}

/* The highest loss of a convex function through the points: the least of all chords, by brute force. */
static double hull_at(const double *cut, const double *loss, size_t n, double d)
{
	double least = INFINITY;
	for (size_t i = 0; i < n; i++)
		for (size_t k = i; k < n; k++)
			if (cut[i] <= d && d <= cut[k])
				least = fmin(least, cut[k] > cut[i] ? loss[i] + (loss[k] - loss[i]) * (d - cut[i]) /
				                                                        (cut[k] - cut[i])
				                                    : fmin(loss[i], loss[k]));
	return least;
}

/* Random monotone losses with up to n points, (0, 0) first. */
static void random_losses(struct ww_rng *rng, double *cut, double *loss, size_t n)
{
	double power = 1 + 2 * ww_rng_uniform(rng), depth = 0.6 * ww_rng_uniform(rng);
	cut[0] = loss[0] = 0;
	for (size_t i = 1; i <= n; i++) {
		cut[i] = 0.05 + 0.65 * ((double)i - 0.5 * ww_rng_uniform(rng)) / (double)n;
		loss[i] = depth * pow(cut[i] / 0.7, power) + 0.02 * ww_rng_uniform(rng);
		loss[i] = fmax(loss[i], loss[i - 1]);
	}
}

/* At a vertex the curve may miss the hull by a hundredth of what the neighbouring segments bend. */
static void it_passes_through_the_hull(void **state)
{
	struct ww_rng rng;
	double worst = 0;
	(void)state;
	ww_rng_seed(&rng, 11);
	for (int i = 0; i < 2000; i++) {
		double cut[9], loss[9];
		size_t n = 2 + ww_rng_below(&rng, 6); /* at most 7 points and the origin: nothing is thinned */
		random_losses(&rng, cut, loss, n);
		struct ww_curve c = measure_losses(cut + 1, loss + 1, n);
		check_curve(&c);
		for (size_t k = 1; k <= n; k++) {
			double hull = hull_at(cut, loss, n + 1, cut[k]);
			if (fabs(hull - loss[k]) > 1e-12) { /* above the hull: the curve stays below the chord */
				assert_true(ww_curve_loss(&c, cut[k]) <= hull + 3e-3);
				continue;
			}
			worst = fmax(worst, fabs(ww_curve_loss(&c, cut[k]) - hull));
		}
	}
	print_message("# worst miss of a hull vertex: %.2g\n", worst);
	assert_true(worst < 5e-4);
}

static void many_points_are_thinned(void **state)
{
	double cut[24], loss[24];
	(void)state;
	for (int i = 0; i < 24; i++) {
		cut[i] = 0.05 + 0.03 * i;
		loss[i] = 0.3 * cut[i] * cut[i] + 0.4 * pow(cut[i], 4);
	}
	struct ww_curve c = measure_losses(cut, loss, 24);
	check_curve(&c);
	for (int i = 0; i < 24; i++)
		assert_near(ww_curve_loss(&c, cut[i]), loss[i], 1e-3);
	assert_near(c.max_cut_frac, cut[23], 1e-12);
}

/* Charged by caps: 380 W, the lowest that does not bind, is the baseline; the draws at the caps do not matter. */
static void caps_can_be_charged_instead_of_draws(void **state)
{
	const struct ww_point p[] = {at(400, 300, 1000), at(380, 299, 1000), at(304, 240, 960), at(228, 200, 840)};
	const struct ww_pfi_options options = WW_PFI_OPTIONS_INIT;
	struct ww_curve c;
	struct ww_error err;
	(void)state;
	assert_int_equal(ww_curve_measure(p, 4, &options, WW_ACCOUNT_CAP, &c, &err), WW_OK);
	check_curve(&c);
	assert_near(c.p0_w, 380, 1e-9);
	assert_near(c.max_cut_frac, 0.4, 1e-12);
	assert_near(ww_curve_loss(&c, 0.2), 0.04, 1e-5);
	assert_near(ww_curve_loss(&c, 0.4), 0.16, 1e-5);
	c = measure(p, 4);
	assert_near(c.p0_w, 299.5, 1e-9);
	assert_near(ww_curve_loss(&c, 1 - 240 / 299.5), 0.04, 1e-5);
	assert_string_equal(ww_account_name(WW_ACCOUNT_CAP), "cap");
	assert_string_equal(ww_account_name(WW_ACCOUNT_DRAW), "draw");
}

static void a_sweep_without_slope_has_no_curve(void **state)
{
	const struct ww_pfi_options options = WW_PFI_OPTIONS_INIT;
	const struct ww_point p[] = {at(400, 300, 100), at(300, 295, 99)};
	struct ww_curve out, untouched;
	struct ww_error err;
	(void)state;
	memset(&out, 0xA5, sizeof out);
	memset(&untouched, 0xA5, sizeof untouched);
	for (size_t n = 0; n <= 2; n++)
		assert_int_equal(ww_curve_measure(p, n, &options, WW_ACCOUNT_DRAW, &out, &err), WW_ERR_NO_DATA);
	assert_memory_equal(&out, &untouched, sizeof out);
}

/* ---- The fitted curve ------------------------------------------------------------------------------------------------ */

static struct ww_curve fit(const struct ww_fit_point *p, size_t n, double noise)
{
	struct ww_curve out;
	struct ww_error err;
	assert_int_equal(ww_curve_fit(&(struct ww_fit){p, n, noise, 500, 1000}, &out, &err), WW_OK);
	return out;
}

/* Two points of l30 (d/0.3)^k. */
static struct ww_curve fit_law(double l30, double k, double noise)
{
	struct ww_fit_point p[2] = {{0.15, 0}, {0.35, 0}};
	for (int i = 0; i < 2; i++)
		p[i].loss_frac = l30 * pow(p[i].cut_frac / 0.3, k);
	return fit(p, 2, noise);
}

/* Between the knots the marginal is linear: a law with k near 1 starts steeper than that, which costs up to 0.015 l30. */
static void exact_power_laws_come_back(void **state)
{
	(void)state;
	for (double k = 1.3; k < 3.9; k += 0.13) {
		for (double l30 = 0.02; l30 < 0.31; l30 += 0.04) {
			struct ww_curve c = fit_law(l30, k, 1e-5);
			check_curve(&c);
			for (double d = 0.1; d < 0.45; d += 0.05)
				assert_near(ww_curve_loss(&c, d), l30 * pow(d / 0.3, k),
				            0.03 * l30 * pow(d / 0.3, k) + 0.015 * l30);
			assert_near(c.max_cut_frac, 0.35, 0);
			assert_near(c.p0_w, 500, 0);
			assert_near(c.t0_tps, 1000, 0);
		}
	}
}

/* At 1 % noise the prior shows, but less than the noise. */
static void noisy_fits_stay_near_their_points(void **state)
{
	(void)state;
	for (double k = 1.4; k < 3; k += 0.2) {
		for (double l30 = 0.02; l30 < 0.31; l30 += 0.04) {
			struct ww_curve c = fit_law(l30, k, 0.01);
			check_curve(&c);
			assert_near(ww_curve_loss(&c, 0.15), l30 * pow(0.5, k), 0.01);
			assert_near(ww_curve_loss(&c, 0.35), l30 * pow(0.35 / 0.3, k), 0.01);
		}
	}
}

static void one_point_is_enough(void **state)
{
	const struct ww_fit_point p = {0.2, 0.06};
	(void)state;
	struct ww_curve c = fit(&p, 1, 0.001);
	check_curve(&c);
	assert_near(ww_curve_loss(&c, 0.2), 0.06, 0.003);
	assert_near(ww_curve_slope(&c, 0.2), 2 * 0.06 / 0.2, 0.03);
}

/* Losses below zero, above one, contradicting each other, at the same cut. */
static void impossible_losses_make_a_curve_too(void **state)
{
	static const struct ww_fit_point cases[][3] = {
		{{0.15, -0.05}, {0.35, -0.02}, {0.5, -0.3}}, {{0.15, 0.3}, {0.35, 0.01}, {0.5, 0.02}},
		{{0.001, 0.5}, {0.002, 0}, {0.003, 0.9}},    {{0.999, 0.999}, {0.998, 0}, {0.5, 0}},
		{{0.2, 0.1}, {0.2, 0.3}, {0.2, -0.1}},       {{0.15, 1e-9}, {0.35, 1e-9}, {0.5, 1e-9}},
	};
	static const double noises[] = {0, 1e-6, 0.01, 0.5};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		for (size_t n = 1; n <= 3; n++)
			for (int k = 0; k < 4; k++) {
				struct ww_curve c = fit(cases[i], n, noises[k]);
				check_curve(&c);
				assert_true(isfinite(c.var_a) && isfinite(c.var_b) && isfinite(c.cov_ab));
			}
}

static ww_status fit_bad(const struct ww_fit *f, struct ww_curve *out)
{
	struct ww_error err;
	return ww_curve_fit(f, out, &err);
}

static void bad_fits_are_refused(void **state)
{
	static const struct {
		struct ww_fit_point p;
		double noise, p0_w, t0_tps;
	} bad[] = {
		{{0, 0.1}, 0.01, 500, 1000},        {{1, 0.1}, 0.01, 500, 1000},   {{-0.1, 0.1}, 0.01, 500, 1000},
		{{NAN, 0.1}, 0.01, 500, 1000},      {{0.2, NAN}, 0.01, 500, 1000}, {{0.2, INFINITY}, 0.01, 500, 1000},
		{{0.2, 0.1}, -0.01, 500, 1000},     {{0.2, 0.1}, NAN, 500, 1000},  {{0.2, 0.1}, 1, 500, 1000},
		{{0.2, 0.1}, 0.01, 0, 1000},        {{0.2, 0.1}, 0.01, NAN, 1000}, {{0.2, 0.1}, 0.01, 500, 0},
		{{0.2, 0.1}, 0.01, 500, NAN},       {{0.2, 1.5}, 0.01, 500, 1000}, {{0.2, -1e200}, 0.01, 500, 1000},
		{{0.2, 0.1}, 0.01, INFINITY, 1000},
	};
	struct ww_curve out, untouched;
	(void)state;
	memset(&out, 0xA5, sizeof out);
	memset(&untouched, 0xA5, sizeof untouched);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_int_equal(
			fit_bad(&(struct ww_fit){&bad[i].p, 1, bad[i].noise, bad[i].p0_w, bad[i].t0_tps}, &out),
			WW_ERR_RANGE);
	assert_int_equal(fit_bad(&(struct ww_fit){&bad[6].p, 0, 0.01, 500, 1000}, &out), WW_ERR_NO_DATA);
	struct ww_fit_point many[100];
	for (int i = 0; i < 100; i++)
		many[i] = (struct ww_fit_point){0.2, 0.1};
	assert_int_equal(fit_bad(&(struct ww_fit){many, 100, 0.01, 500, 1000}, &out), WW_ERR_RANGE);
	assert_memory_equal(&out, &untouched, sizeof out);
}

/* ---- Uncertainty ----------------------------------------------------------------------------------------------------- */

/* Mean variance of the marginal over the cuts that matter. */
static double mean_variance(const struct ww_curve *c)
{
	double sum = 0;
	for (int i = 2; i <= 8; i++)
		sum += ww_curve_slope_var(c, 0.05 * i) / 7;
	return sum;
}

static void a_fits_uncertainty_grows_with_noise(void **state)
{
	(void)state;
	for (double k = 1.4; k < 3; k += 0.1)
		for (double noise = 1e-5; noise < 0.02; noise *= 2) {
			struct ww_curve a = fit_law(0.12, k, noise), b = fit_law(0.12, k, 2 * noise);
			assert_true(mean_variance(&a) < mean_variance(&b));
		}
}

/* One loss at d = 0.3 has the variance 2 noise^2, its own and the baseline's; l' = 2 l30 d / 0.09 for the exponent 2. */
static void the_baselines_error_counts_too(void **state)
{
	const struct ww_fit_point p = {0.3, 0.1};
	(void)state;
	struct ww_curve c = fit(&p, 1, 0.01);
	double l30 = 1 / (1 / 2e-4 + 1 / (0.15 * 0.15)), unit = 2 * 0.05 / 0.09;
	assert_near_rel(ww_curve_slope_var(&c, 0.05), unit * unit * l30, 0.01);
}

static void a_measured_curves_uncertainty_grows_with_noise(void **state)
{
	const struct ww_point p[] = {at(400, 100, 100), at(300, 85, 97), at(200, 65, 85)};
	struct ww_pfi_options options = WW_PFI_OPTIONS_INIT;
	struct ww_curve low, high;
	struct ww_error err;
	(void)state;
	for (double noise = 0.0025; noise < 0.05; noise *= 2) {
		options.noise_frac = noise;
		assert_int_equal(ww_curve_measure(p, 3, &options, WW_ACCOUNT_DRAW, &low, &err), WW_OK);
		options.noise_frac = 2 * noise;
		assert_int_equal(ww_curve_measure(p, 3, &options, WW_ACCOUNT_DRAW, &high, &err), WW_OK);
		for (double d = 0; d < 0.7; d += 0.05)
			assert_true(ww_curve_slope_var(&low, d) < ww_curve_slope_var(&high, d));
	}
}

/* A job as a fit's prior has it, l = l30 (d/0.3)^k, but for extremes; measured at two cuts, with noise in the baseline too. */
static struct ww_curve random_fit(struct ww_rng *rng, double noise, double *l30, double *k)
{
	struct ww_fit_point p[2] = {{0.15, 0}, {0.35, 0}};
	double t0 = noise * ww_rng_normal(rng);
	do {
		*l30 = 0.10 + 0.15 * ww_rng_normal(rng);
		*k = 1.75 + 0.7 * ww_rng_normal(rng);
	} while (*l30 < 0.02 || *l30 > 0.4 || *k < 1.2 || *k > 4);
	for (int i = 0; i < 2; i++)
		p[i].loss_frac = *l30 * pow(p[i].cut_frac / 0.3, *k) + noise * ww_rng_normal(rng) + t0;
	return fit(p, 2, noise);
}

/*
 * Errors of the marginal, over many jobs and the cuts that matter, are as large as the curves say, at every noise, and cancel
 * in the mean.
 */
static void a_fits_uncertainty_is_of_the_right_size(void **state)
{
	enum { FITS = 4000 };
	struct ww_rng rng;
	(void)state;
	ww_rng_seed(&rng, 5);
	for (double noise = 0.0025; noise < 0.03; noise *= 2) {
		double square = 0, claimed = 0, bias = 0;
		for (int i = 0; i < FITS; i++) {
			double l30, k;
			struct ww_curve c = random_fit(&rng, noise, &l30, &k);
			for (int m = 1; m <= 10; m++) {
				double d = 0.05 * m, off = ww_curve_slope(&c, d) - l30 * k / 0.3 * pow(d / 0.3, k - 1);
				square += off * off;
				bias += off / (10 * FITS);
				claimed += ww_curve_slope_var(&c, d);
			}
		}
		print_message("# noise %.4f: error of the marginal %.3f of what is claimed, mean %.4f\n", noise,
		              sqrt(square / claimed), bias);
		assert_near(sqrt(square / claimed), 1, 0.1);
		assert_near(bias, 0, 0.015);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_parabola_comes_back),
		cmocka_unit_test(one_slope_point_makes_a_parabola),
		cmocka_unit_test(a_flat_start_stays_flat),
		cmocka_unit_test(without_any_loss_it_is_flat),
		cmocka_unit_test(rising_throughput_is_repaired),
		cmocka_unit_test(equal_draws_are_one_point),
		cmocka_unit_test(it_passes_through_the_hull),
		cmocka_unit_test(many_points_are_thinned),
		cmocka_unit_test(caps_can_be_charged_instead_of_draws),
		cmocka_unit_test(a_sweep_without_slope_has_no_curve),
		cmocka_unit_test(exact_power_laws_come_back),
		cmocka_unit_test(noisy_fits_stay_near_their_points),
		cmocka_unit_test(one_point_is_enough),
		cmocka_unit_test(impossible_losses_make_a_curve_too),
		cmocka_unit_test(bad_fits_are_refused),
		cmocka_unit_test(a_fits_uncertainty_grows_with_noise),
		cmocka_unit_test(the_baselines_error_counts_too),
		cmocka_unit_test(a_measured_curves_uncertainty_grows_with_noise),
		cmocka_unit_test(a_fits_uncertainty_is_of_the_right_size),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
