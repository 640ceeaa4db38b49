/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The PFI of one job from a cap sweep: split the caps into baseline and slope points, judge whether there is a slope
 * at all, fit it, and give it an interval. Definitions and their reasons: docs/pfi.md.
 */
#include "core/core_internal.h"

#include <math.h>
#include <stdlib.h>

static bool has_bits(const struct pooled *p, int64_t bits)
{
	return p->throttle >= 0 && (p->throttle & bits);
}

/* Does the cap at p leave the job as it is at the top? Recorded throttle reasons overrule the draw. */
static bool is_baseline(const struct pooled *p, double top_w)
{
	if (p->throttle >= 0)
		return !has_bits(p, WW_THROTTLE_POWER_CAP | WW_THROTTLE_THERMAL | WW_THROTTLE_HARDWARE);
	return fabs(1 - p->power_w / top_w) < BASELINE_BAND;
}

static bool is_slope_point(const struct pooled *p, double cut)
{
	if (p->throttle >= 0)
		return has_bits(p, WW_THROTTLE_POWER_CAP) && cut > 0;
	return cut >= BASELINE_BAND;
}

void split_sweep(const struct pooled *p, size_t n, struct split *out)
{
	size_t baseline = 1;
	while (baseline < n && is_baseline(&p[baseline], p[0].power_w))
		baseline++;
	out->n_baseline = baseline;
	out->p0_w = out->t0 = 0;
	for (size_t i = 0; i < baseline; i++) {
		out->p0_w += p[i].power_w / (double)baseline;
		out->t0 += p[i].throughput / (double)baseline;
	}
	out->n_slope = 0;
	for (size_t i = baseline; i < n; i++) {
		double cut = 1 - p[i].power_w / out->p0_w;
		if (!is_slope_point(&p[i], cut))
			continue;
		out->cut[out->n_slope] = cut;
		out->loss[out->n_slope] = 1 - p[i].throughput / out->t0;
		out->at[out->n_slope++] = i;
	}
}

ww_status split_create(size_t n, struct split *out, struct ww_error *err)
{
	out->cut = malloc(2 * (n + 1) * sizeof *out->cut);
	out->at = malloc((n + 1) * sizeof *out->at);
	if (!out->cut || !out->at) {
		split_finish(out);
		return ww_fail(err, WW_ERR_NOMEM, "out of memory");
	}
	out->loss = out->cut + n + 1;
	return WW_OK;
}

void split_finish(struct split *split)
{
	free(split->cut);
	free(split->at);
	*split = (struct split){0};
}

/* Root mean square of the known relative throughput errors over baseline and slope points; NAN when none is known. */
static double known_noise(const struct pooled *p, const struct split *s)
{
	double sum = 0;
	size_t n = 0;
	for (size_t i = 0; i < s->n_baseline + s->n_slope; i++) {
		double e = p[i < s->n_baseline ? i : s->at[i - s->n_baseline]].throughput_err;
		if (!isnan(e)) {
			sum += e * e;
			n++;
		}
	}
	return n ? sqrt(sum / (double)n) : NAN;
}

static int judge(const struct pooled *p, size_t n, const struct split *s, const struct line *line)
{
	if (n < 2)
		return WW_PFI_TOO_FEW_POINTS;
	double whole_cut = 1 - p[n - 1].power_w / p[0].power_w;
	if (s->n_slope == 0 && whole_cut >= LIMITED_CUT)
		return WW_PFI_TOO_FEW_POINTS;
	if (whole_cut < LIMITED_CUT)
		return WW_PFI_NOT_POWER_LIMITED;
	if (line->slope < BOUND_SE * line->se || line->slope <= 0)
		return WW_PFI_BOUND;
	return WW_PFI_OK;
}

static uint32_t sweep_flags(const struct pooled *p, size_t n, const struct split *s, int status)
{
	uint32_t flags = 0;
	if (status == WW_PFI_NOT_POWER_LIMITED && p[n - 1].power_w >= (1 - BASELINE_BAND) * p[n - 1].cap_w)
		flags |= WW_FLAG_SHALLOW_SWEEP;
	for (size_t i = 0; i < n; i++)
		if (has_bits(&p[i], WW_THROTTLE_THERMAL | WW_THROTTLE_HARDWARE))
			flags |= WW_FLAG_THERMAL;
	for (size_t i = 0; i < s->n_slope; i++) /* caps descend: each loss should exceed the one before */
		if (s->loss[i] < (i ? s->loss[i - 1] : 0) && s->cut[i] >= (i ? s->cut[i - 1] : 0))
			flags |= WW_FLAG_NOT_MONOTONE;
	return flags;
}

static double r_squared(const struct split *s, double slope)
{
	double residual = 0, total = 0;
	for (size_t i = 0; i < s->n_slope; i++) {
		double r = s->loss[i] - slope * s->cut[i];
		residual += r * r;
		total += s->loss[i] * s->loss[i];
	}
	return total > 0 ? 1 - residual / total : NAN;
}

/* One draw of a factor around 1; `instead` stands in for an error that is not known. */
static double draw_error(struct ww_rng *rng, double relative, double instead)
{
	return 1 + (isnan(relative) ? instead : relative) * ww_rng_normal(rng);
}

/* One replicate of pfi_ls: every point and the baseline that all share are drawn anew from their errors. */
static double replicate(const struct pooled *p, const struct split *s, double noise, struct ww_rng *rng)
{
	double p0 = 0, t0 = 0, dd = 0, dl = 0;
	for (size_t i = 0; i < s->n_baseline; i++) {
		p0 += p[i].power_w * draw_error(rng, p[i].power_err, 0);
		t0 += p[i].throughput * draw_error(rng, p[i].throughput_err, noise);
	}
	p0 /= (double)s->n_baseline;
	t0 /= (double)s->n_baseline;
	for (size_t i = 0; i < s->n_slope; i++) {
		const struct pooled *q = &p[s->at[i]];
		double d = 1 - q->power_w * draw_error(rng, q->power_err, 0) / p0;
		double l = 1 - q->throughput * draw_error(rng, q->throughput_err, noise) / t0;
		dd += d * d;
		dl += d * l;
	}
	return dl > 0 ? dd / dl : INFINITY;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double finite_or_nan(double v)
{
	return isfinite(v) ? v : NAN;
}

static ww_status bootstrap(const struct pooled *p, const struct split *s, const struct ww_pfi_options *options,
                           struct ww_pfi *out, struct ww_error *err)
{
	size_t n = options->draws;
	if (n == 0)
		return WW_OK;
	double *draws = malloc(n * sizeof *draws);
	if (!draws)
		return ww_fail(err, WW_ERR_NOMEM, "out of memory");
	struct ww_rng rng;
	ww_rng_seed(&rng, options->seed);
	for (size_t i = 0; i < n; i++)
		draws[i] = replicate(p, s, out->noise_frac, &rng);
	qsort(draws, n, sizeof *draws, by_value);
	out->pfi_ls_lo = finite_or_nan(draws[(size_t)(0.05 * (double)(n - 1))]);
	out->pfi_ls_hi = finite_or_nan(draws[n - 1 - (size_t)(0.05 * (double)(n - 1))]);
	free(draws);
	return WW_OK;
}

/* 0.30 / l(0.30) on the convex hull of the repaired losses. */
static ww_status pfi_at_30(const struct split *s, double *out, struct ww_error *err)
{
	struct loss_hull hull;
	ww_status status = hull_create(s, &hull, err);
	if (status)
		return status;
	*out = NAN;
	if (hull.cut[hull.n - 1] >= 0.30) {
		double loss = interpolate(hull.cut, hull.loss, hull.n, 0.30);
		if (loss > 0)
			*out = finite_or_nan(0.30 / loss);
	}
	hull_finish(&hull);
	return WW_OK;
}

static ww_status fit_slope(const struct pooled *p, const struct split *s, const struct ww_pfi_options *options,
                           struct ww_pfi *out, struct ww_error *err)
{
	struct line line = fit_line(s->cut, s->loss, s->n_slope, out->noise_frac);
	out->r2 = r_squared(s, line.slope);
	if (out->r2 < 0.9)
		out->flags |= WW_FLAG_POOR_FIT;
	if (out->status == WW_PFI_BOUND) {
		out->pfi_ls_lo = finite_or_nan(1 / (fmax(line.slope, 0) + NINETY_SE * line.se));
		return WW_OK;
	}
	out->pfi_ls = 1 / line.slope;
	ww_status status = pfi_at_30(s, &out->pfi_30, err);
	if (status || (out->flags & WW_FLAG_NOISE_ASSUMED))
		return status;
	return bootstrap(p, s, options, out, err);
}

static ww_status estimate(const struct pooled *p, size_t n, const struct ww_pfi_options *options, struct split *split,
                          struct ww_pfi *out, struct ww_error *err)
{
	split_sweep(p, n, split);
	out->n_caps = (uint32_t)n;
	out->fit_hi_w = p[0].cap_w;
	out->fit_lo_w = p[n - 1].cap_w;
	out->p0_w = split->p0_w;
	out->t0 = split->t0;
	out->noise_frac = known_noise(p, split);
	bool assumed = isnan(out->noise_frac);
	if (assumed)
		out->noise_frac = options->noise_frac;
	struct line line = {0};
	if (split->n_slope)
		line = fit_line(split->cut, split->loss, split->n_slope, out->noise_frac);
	out->status = judge(p, n, split, &line);
	out->flags = sweep_flags(p, n, split, out->status);
	out->max_cut_frac = n > 1 ? 0 : NAN;
	for (size_t i = 1; i < n; i++)
		out->max_cut_frac = fmax(out->max_cut_frac, 1 - p[i].power_w / split->p0_w);
	if (out->status != WW_PFI_OK && out->status != WW_PFI_BOUND)
		return WW_OK;
	out->flags |= assumed ? WW_FLAG_NOISE_ASSUMED : 0;
	return fit_slope(p, split, options, out, err);
}

static ww_status check_options(const struct ww_pfi_options *o, struct ww_error *err)
{
	if (!(o->noise_frac >= 0 && o->noise_frac < 1))
		return ww_fail(err, WW_ERR_RANGE, "noise_frac is %g: must be in [0, 1)", o->noise_frac);
	if (!(o->cap_lo_w <= o->cap_hi_w))
		return ww_fail(err, WW_ERR_RANGE, "cap range %g..%g W is empty", o->cap_lo_w, o->cap_hi_w);
	return WW_OK;
}

ww_status ww_pfi_estimate(const struct ww_point *points, size_t n, const struct ww_pfi_options *options,
                          struct ww_pfi *out, struct ww_error *err)
{
	struct ww_pfi pfi = {.status = WW_PFI_TOO_FEW_POINTS,
	                     .fit_lo_w = NAN,
	                     .fit_hi_w = NAN,
	                     .p0_w = NAN,
	                     .t0 = NAN,
	                     .pfi_ls = NAN,
	                     .pfi_ls_lo = NAN,
	                     .pfi_ls_hi = NAN,
	                     .pfi_30 = NAN,
	                     .max_cut_frac = NAN,
	                     .r2 = NAN,
	                     .noise_frac = NAN};
	struct pooled_sweep sweep = {0};
	struct split split = {0};
	ww_status status = check_options(options, err);
	if (!status)
		status = pool_create(points, n, (struct cap_range){options->cap_lo_w, options->cap_hi_w}, &sweep, err);
	if (!status)
		status = split_create(sweep.n, &split, err);
	if (!status && sweep.n > 0)
		status = estimate(sweep.p, sweep.n, options, &split, &pfi, err);
	if (!status)
		*out = pfi;
	split_finish(&split);
	pool_finish(&sweep);
	return status;
}
