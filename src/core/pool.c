/* SPDX-License-Identifier: Apache-2.0 */
#include "core/core_internal.h"

#include <math.h>
#include <stdlib.h>

/* Larger first, what is not known last. */
static int descending(double p, double q)
{
	if (isnan(p) || isnan(q))
		return isnan(p) - isnan(q);
	return (p < q) - (p > q);
}

/* Caps descending; equal caps by all else, so that sums do not depend on the order of the input. */
static int by_cap(const void *a, const void *b)
{
	const struct ww_point *p = a, *q = b;
	const double of_p[] = {p->cap_w, p->power_w, p->throughput, p->power_se_w, p->throughput_se};
	const double of_q[] = {q->cap_w, q->power_w, q->throughput, q->power_se_w, q->throughput_se};
	int order = 0;
	for (size_t i = 0; i < sizeof of_p / sizeof *of_p && order == 0; i++)
		order = descending(of_p[i], of_q[i]);
	return order ? order : (p->throttle > q->throttle) - (p->throttle < q->throttle);
}

/* Between 1e-30 and 1e30, so that no ratio or square leaves the range of a double. */
static bool is_sound(double v)
{
	return v >= 1e-30 && v <= 1e30;
}

static bool is_error(double v)
{
	return isnan(v) || (isfinite(v) && v >= 0);
}

static ww_status check_points(const struct ww_point *points, size_t n, struct ww_error *err)
{
	for (size_t i = 0; i < n; i++) {
		const struct ww_point *p = &points[i];
		if (!is_sound(p->cap_w) || !is_sound(p->power_w) || !is_sound(p->throughput))
			return ww_fail(err, WW_ERR_RANGE, "point %zu: cap, power and throughput must be above 0", i);
		if (!is_error(p->power_se_w) || !is_error(p->throughput_se))
			return ww_fail(err, WW_ERR_RANGE, "point %zu: a standard error must be 0 or more, or NAN", i);
	}
	return WW_OK;
}

/* Relative error of the mean of the given errors; NAN when one is missing. */
static double given_error(const struct ww_point *p, size_t reps, bool of_power)
{
	double sum = 0, mean = 0;
	for (size_t i = 0; i < reps; i++) {
		double se = of_power ? p[i].power_se_w : p[i].throughput_se;
		sum += se * se;
		mean += of_power ? p[i].power_w : p[i].throughput;
	}
	return sqrt(sum) / mean;
}

static struct pooled pool_cap(const struct ww_point *p, size_t reps)
{
	struct pooled out = {.cap_w = p[0].cap_w};
	bool recorded = true;
	for (size_t i = 0; i < reps; i++) {
		out.power_w += p[i].power_w / (double)reps;
		out.throughput += p[i].throughput / (double)reps;
		recorded = recorded && p[i].throttle >= 0;
		out.throttle |= p[i].throttle;
	}
	if (!recorded)
		out.throttle = -1;
	out.power_err = given_error(p, reps, true);
	out.throughput_err = given_error(p, reps, false);
	return out;
}

/* Sums of squared relative deviations of repetitions from their cap's mean. */
struct scatter {
	double power, throughput, freedom;
};

static void add_scatter(struct scatter *s, const struct ww_point *p, size_t reps, const struct pooled *mean)
{
	for (size_t i = 0; i < reps; i++) {
		double dp = p[i].power_w / mean->power_w - 1, dt = p[i].throughput / mean->throughput - 1;
		s->power += dp * dp;
		s->throughput += dt * dt;
	}
	s->freedom += (double)(reps - 1);
}

/* Where no error was given, the pooled scatter of the repetitions stands in. */
static void fill_errors(struct pooled *out, const size_t *reps, size_t n, const struct scatter *s)
{
	if (s->freedom < 1)
		return;
	for (size_t i = 0; i < n; i++) {
		if (isnan(out[i].power_err))
			out[i].power_err = sqrt(s->power / s->freedom / (double)reps[i]);
		if (isnan(out[i].throughput_err))
			out[i].throughput_err = sqrt(s->throughput / s->freedom / (double)reps[i]);
	}
}

static size_t pool_sorted(const struct ww_point *p, size_t n, struct pooled *out, size_t *reps)
{
	struct scatter scatter = {0};
	size_t m = 0;
	for (size_t i = 0; i < n; i += reps[m++]) {
		reps[m] = 1;
		while (i + reps[m] < n && p[i + reps[m]].cap_w == p[i].cap_w)
			reps[m]++;
		out[m] = pool_cap(&p[i], reps[m]);
		add_scatter(&scatter, &p[i], reps[m], &out[m]);
	}
	fill_errors(out, reps, m, &scatter);
	return m;
}

ww_status pool_create(const struct ww_point *points, size_t n, struct cap_range range, struct pooled_sweep *out,
                      struct ww_error *err)
{
	ww_status status = check_points(points, n, err);
	if (status)
		return status;
	struct ww_point *sorted = malloc((n + 1) * sizeof *sorted);
	size_t *reps = malloc((n + 1) * sizeof *reps), in_range = 0;
	out->p = malloc((n + 1) * sizeof *out->p);
	if (!sorted || !reps || !out->p) {
		pool_finish(out);
		status = ww_fail(err, WW_ERR_NOMEM, "out of memory");
		goto done;
	}
	for (size_t i = 0; i < n; i++)
		if (points[i].cap_w >= range.lo_w && points[i].cap_w <= range.hi_w)
			sorted[in_range++] = points[i];
	qsort(sorted, in_range, sizeof *sorted, by_cap);
	out->n = pool_sorted(sorted, in_range, out->p, reps);
done:
	free(sorted);
	free(reps);
	return status;
}

void pool_finish(struct pooled_sweep *sweep)
{
	free(sweep->p);
	*sweep = (struct pooled_sweep){0};
}

#define HOLDS 1.02 /* a board whose draw is at most this times its cap holds it */

double cap_charge(const struct pooled *p)
{
	return p->power_w > HOLDS * p->cap_w ? p->power_w : p->cap_w;
}

#define HIDDEN_SHARE 0.6 /* of the assumed noise, in what repetitions do not show: docs/pfi.md */
#define LEAST_VALUES 3   /* different values from which rounding may be judged */

static bool is_multiple(double value, double step)
{
	double ratio = value / step;
	return fabs(ratio - nearbyint(ratio)) < 1e-6;
}

static double highest_throughput(const struct ww_point *p, size_t n)
{
	double highest = 0;
	for (size_t i = 0; i < n; i++)
		highest = fmax(highest, p[i].throughput);
	return highest;
}

static bool has_many_values(const struct ww_point *p, size_t n)
{
	double seen[LEAST_VALUES];
	size_t found = 0;
	for (size_t i = 0; i < n && found < LEAST_VALUES; i++) {
		size_t k = 0;
		while (k < found && seen[k] != p[i].throughput)
			k++;
		if (k == found)
			seen[found++] = p[i].throughput;
	}
	return found == LEAST_VALUES;
}

/* The largest power of ten of which all throughputs are multiples; 0 when they are not rounded to six digits or less. */
static double rounding_step(const struct ww_point *p, size_t n)
{
	double step = pow(10, floor(log10(highest_throughput(p, n))));
	for (int digits = 1; digits <= 6; digits++, step /= 10) {
		size_t i = 0;
		while (i < n && is_multiple(p[i].throughput, step))
			i++;
		if (i == n)
			return step;
	}
	return 0;
}

double cautious_noise(const struct ww_point *p, size_t n, const struct ww_pfi *pfi, double assumed)
{
	double noise = pfi->noise_frac;
	if (assumed == 0)
		return noise;
	if (!(pfi->flags & WW_FLAG_NOISE_ASSUMED))
		noise = hypot(noise, HIDDEN_SHARE * assumed);
	/* a rounded value is uniform within its step; its standard deviation is step / sqrt(12) */
	if (has_many_values(p, n))
		noise = fmax(noise, rounding_step(p, n) / sqrt(12) / highest_throughput(p, n));
	return noise;
}
