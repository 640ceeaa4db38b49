/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A curve from very few points: l = l30 (d/0.3)^k. A quadratic through two points may start downhill and is wild
 * beyond them; the power law is flat at the start, convex, and its exponent is bounded. l30 has a normal prior, so
 * for each exponent its posterior is known in closed form; the exponent is summed over a grid, weighted by prior and
 * evidence. The errors of two losses of one job are correlated by the baseline that they share: covariance
 * noise^2 (I + 11').
 */
#include "core/core_internal.h"

#include <math.h>

#define K_LOW 1.2 /* range, prior mean and deviation of the exponent, and its value where one point cannot tell it */
#define K_HIGH 4.0
#define K_STEP 0.05
#define K_MEAN 1.75
#define K_SD 0.7
#define K_ALONE 2.0
#define L30_MEAN 0.10
#define L30_SD 0.15
#define L30_LEAST 1e-4 /* a curve never runs uphill */
#define N_K 57

#define VAR_STEP 0.05 /* cuts at which the uncertainty is taken: 0.05 to 0.50 */
#define VAR_STEPS 10

/* For one exponent: its weight, and mean and variance of l30. */
struct exponent {
	double k, weight, mean, var;
};

static double dot(const double *a, const double *b, size_t n, double noise)
{
	double ab = 0, sum_a = 0, sum_b = 0;
	for (size_t i = 0; i < n; i++) {
		ab += a[i] * b[i];
		sum_a += a[i];
		sum_b += b[i];
	}
	return (ab - sum_a * sum_b / (double)(n + 1)) / (noise * noise);
}

#define MAX_POINTS 32

static struct exponent posterior_at(double k, const struct ww_fit_point *p, size_t n, double noise)
{
	double shape[MAX_POINTS], loss[MAX_POINTS];
	for (size_t i = 0; i < n; i++) {
		shape[i] = pow(p[i].cut_frac / 0.3, k);
		loss[i] = p[i].loss_frac;
	}
	double prior = 1 / (L30_SD * L30_SD);
	double precision = dot(shape, shape, n, noise) + prior;
	double mean = (dot(shape, loss, n, noise) + L30_MEAN * prior) / precision;
	double misfit = dot(loss, loss, n, noise) + L30_MEAN * L30_MEAN * prior - precision * mean * mean;
	double off = (k - K_MEAN) / K_SD;
	return (struct exponent){k, -0.5 * (misfit + log(precision) + off * off), mean, 1 / precision};
}

static void normalise(struct exponent *e, size_t n)
{
	double most = -INFINITY, sum = 0;
	for (size_t i = 0; i < n; i++)
		most = fmax(most, e[i].weight);
	for (size_t i = 0; i < n; i++)
		sum += e[i].weight = exp(e[i].weight - most);
	for (size_t i = 0; i < n; i++)
		e[i].weight /= sum;
}

static size_t posterior(const struct ww_fit_point *p, size_t n, double noise, struct exponent *out)
{
	if (n == 1) {
		out[0] = posterior_at(K_ALONE, p, n, noise);
		out[0].weight = 1;
		return 1;
	}
	for (size_t i = 0; i < N_K; i++)
		out[i] = posterior_at(K_LOW + K_STEP * (double)i, p, n, noise);
	normalise(out, N_K);
	return N_K;
}

struct moments {
	double mean, var;
};

/* Mean and variance of the marginal loss at a cut. */
static struct moments slope_at(const struct exponent *e, size_t n, double cut)
{
	double mean = 0, square = 0;
	for (size_t i = 0; i < n; i++) {
		double unit = e[i].k / 0.3 * pow(cut / 0.3, e[i].k - 1), l30 = fmax(e[i].mean, L30_LEAST);
		mean += e[i].weight * unit * l30;
		square += e[i].weight * unit * unit * (l30 * l30 + e[i].var);
	}
	return (struct moments){mean, fmax(square - mean * mean, 0)};
}

/*
 * The variance of the marginal a + 2 b d is a parabola in d. Take the one with the posterior's least variance at the
 * posterior's best known cut, and its mean curvature around it: never negative.
 */
static void set_uncertainty(const struct exponent *e, size_t n, struct ww_curve *out)
{
	double var[VAR_STEPS], bend = 0;
	size_t best = 0;
	for (size_t i = 0; i < VAR_STEPS; i++) {
		var[i] = slope_at(e, n, VAR_STEP * (double)(i + 1)).var;
		if (var[i] < var[best])
			best = i;
	}
	for (size_t i = 0; i < VAR_STEPS; i++) {
		double off = VAR_STEP * ((double)i - (double)best);
		if (i != best)
			bend += (var[i] - var[best]) / (off * off) / (VAR_STEPS - 1);
	}
	double centre = VAR_STEP * (double)(best + 1);
	out->var_a = var[best] + bend * centre * centre;
	out->cov_ab = -bend * centre / 2;
	out->var_b = bend / 4;
}

static const double knot_cuts[WW_MAX_KNOTS] = {0.00, 0.025, 0.05, 0.08, 0.11, 0.14, 0.18, 0.22,
                                               0.27, 0.32, 0.38, 0.45, 0.55, 0.67, 0.80, 1.00};

ww_status ww_curve_fit(const struct ww_fit_point *points, size_t n, double noise_frac, double p0_w, double t0_tps,
                       struct ww_curve *out, struct ww_error *err)
{
	struct exponent e[N_K];
	if (n == 0)
		return ww_fail(err, WW_ERR_NO_DATA, "no curve: a fit needs at least one measured cut");
	if (n > MAX_POINTS)
		return ww_fail(err, WW_ERR_RANGE, "%zu points: a fit takes at most %d", n, MAX_POINTS);
	if (!(noise_frac >= 0 && noise_frac < 1) || !(p0_w > 0) || !(t0_tps > 0))
		return ww_fail(err, WW_ERR_RANGE, "noise_frac must be in [0, 1), p0_w and t0_tps above 0");
	struct ww_curve curve = {.p0_w = p0_w, .t0_tps = t0_tps, .status = WW_PFI_OK};
	for (size_t i = 0; i < n; i++) {
		if (!(points[i].cut_frac > 0 && points[i].cut_frac < 1) || !isfinite(points[i].loss_frac))
			return ww_fail(err, WW_ERR_RANGE, "point %zu: the cut must be in (0, 1), the loss finite", i);
		curve.max_cut_frac = fmax(curve.max_cut_frac, points[i].cut_frac);
	}
	size_t n_e = posterior(points, n, fmax(noise_frac, 1e-6), e);
	curve_add_knot(&curve, 0, 0);
	for (size_t i = 1; i < WW_MAX_KNOTS; i++)
		curve_add_knot(&curve, knot_cuts[i], slope_at(e, n_e, knot_cuts[i]).mean);
	set_uncertainty(e, n_e, &curve);
	*out = curve;
	return WW_OK;
}
