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

/* The straight marginal a + 2 b d nearest to the power law of l30 = 1 over the cuts at which it is used. */
static void straight_marginal(double k, double *a, double *b)
{
	double n = VAR_STEPS, d1 = 0, d2 = 0, y1 = 0, dy = 0;
	for (int i = 1; i <= VAR_STEPS; i++) {
		double d = VAR_STEP * i, y = k / 0.3 * pow(d / 0.3, k - 1);
		d1 += d;
		d2 += d * d;
		y1 += y;
		dy += d * y;
	}
	double slope = (n * dy - d1 * y1) / (n * d2 - d1 * d1);
	*a = (y1 - slope * d1) / n;
	*b = slope / 2;
}

/* Covariance of (a, b) over the posterior: never negative, and smooth in noise and losses. */
static void set_uncertainty(const struct exponent *e, size_t n, struct ww_curve *out)
{
	double mean_a = 0, mean_b = 0;
	for (size_t i = 0; i < n; i++) {
		double a, b, l30 = fmax(e[i].mean, L30_LEAST), square = e[i].weight * (l30 * l30 + e[i].var);
		straight_marginal(e[i].k, &a, &b);
		mean_a += e[i].weight * l30 * a;
		mean_b += e[i].weight * l30 * b;
		out->var_a += square * a * a;
		out->var_b += square * b * b;
		out->cov_ab += square * a * b;
	}
	out->var_a -= mean_a * mean_a;
	out->var_b -= mean_b * mean_b;
	out->cov_ab -= mean_a * mean_b;
}

static const double knot_cuts[WW_MAX_KNOTS] = {0.00, 0.006, 0.02, 0.045, 0.08, 0.12, 0.16, 0.20,
                                               0.25, 0.30,  0.36, 0.43,  0.52, 0.64, 0.80, 1.00};

static ww_status check_fit(const struct ww_fit *f, struct ww_error *err)
{
	if (f->n == 0)
		return ww_fail(err, WW_ERR_NO_DATA, "no curve: a fit needs at least one measured cut");
	if (f->n > MAX_POINTS)
		return ww_fail(err, WW_ERR_RANGE, "%zu points: a fit takes at most %d", f->n, MAX_POINTS);
	if (!(f->noise_frac >= 0 && f->noise_frac < 1))
		return ww_fail(err, WW_ERR_RANGE, "noise_frac is %g: must be in [0, 1)", f->noise_frac);
	if (!(isfinite(f->p0_w) && f->p0_w > 0 && isfinite(f->t0_tps) && f->t0_tps > 0))
		return ww_fail(err, WW_ERR_RANGE, "p0_w and t0_tps are %g and %g: must be above 0", f->p0_w, f->t0_tps);
	for (size_t i = 0; i < f->n; i++) {
		if (!(f->points[i].cut_frac > 0 && f->points[i].cut_frac < 1))
			return ww_fail(err, WW_ERR_RANGE, "point %zu: its cut must be in (0, 1)", i);
		if (!(f->points[i].loss_frac >= -10 && f->points[i].loss_frac <= 1))
			return ww_fail(err, WW_ERR_RANGE, "point %zu: its loss must be in -10..1", i);
	}
	return WW_OK;
}

ww_status ww_curve_fit(const struct ww_fit *fit, struct ww_curve *out, struct ww_error *err)
{
	struct exponent e[N_K];
	ww_status status = check_fit(fit, err);
	if (status)
		return status;
	struct ww_curve curve = {.p0_w = fit->p0_w, .t0_tps = fit->t0_tps, .status = WW_PFI_OK};
	for (size_t i = 0; i < fit->n; i++)
		curve.max_cut_frac = fmax(curve.max_cut_frac, fit->points[i].cut_frac);
	size_t n_e = posterior(fit->points, fit->n, fmax(fit->noise_frac, 1e-6), e);
	curve_add_knot(&curve, 0, 0);
	for (size_t i = 1; i < WW_MAX_KNOTS; i++)
		curve_add_knot(&curve, knot_cuts[i], slope_at(e, n_e, knot_cuts[i]).mean);
	set_uncertainty(e, n_e, &curve);
	*out = curve;
	return WW_OK;
}
