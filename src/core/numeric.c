/* SPDX-License-Identifier: Apache-2.0 */
#include "core/core_internal.h"

#include <math.h>

/* The first `blocks` entries of y and count are block means and lengths; they are spread out at the end. */
void pav_rising(double *y, size_t *count, size_t n)
{
	size_t blocks = 0;
	for (size_t i = 0; i < n; i++) {
		double mean = y[i];
		size_t length = 1;
		for (; blocks > 0 && y[blocks - 1] > mean; blocks--) {
			size_t joined = length + count[blocks - 1];
			mean += (y[blocks - 1] - mean) * (double)count[blocks - 1] / (double)joined;
			length = joined;
		}
		y[blocks] = mean;
		count[blocks++] = length;
	}
	for (size_t i = n; blocks > 0; blocks--)
		for (size_t k = count[blocks - 1]; k > 0; k--)
			y[--i] = y[blocks - 1];
}

size_t lower_hull(double *x, double *y, size_t n)
{
	size_t m = 0;
	for (size_t i = 0; i < n; i++) {
		while (m > 1 && (y[m - 1] - y[m - 2]) * (x[i] - x[m - 2]) >= (y[i] - y[m - 2]) * (x[m - 1] - x[m - 2]))
			m--;
		x[m] = x[i];
		y[m++] = y[i];
	}
	return m;
}

double interpolate(const double *x, const double *y, size_t n, double at)
{
	if (at <= x[0])
		return y[0];
	for (size_t i = 1; i < n; i++) {
		if (at < x[i])
			return y[i - 1] + (y[i] - y[i - 1]) * (at - x[i - 1]) / (x[i] - x[i - 1]);
	}
	return y[n - 1];
}

double solve_rising(double (*f)(const void *, double), const void *context, double lo, double hi, double target)
{
	if (f(context, lo) >= target)
		return lo;
	for (double mid = lo + (hi - lo) / 2; mid > lo && mid < hi; mid = lo + (hi - lo) / 2) {
		if (f(context, mid) >= target)
			hi = mid;
		else
			lo = mid;
	}
	return hi;
}

struct line fit_line(const double *cut, const double *loss, size_t n, double noise_frac)
{
	double dd = 0, dl = 0, d1 = 0;
	for (size_t i = 0; i < n; i++) {
		dd += cut[i] * cut[i];
		dl += cut[i] * loss[i];
		d1 += cut[i];
	}
	return (struct line){.slope = dl / dd, .se = noise_frac * sqrt(dd + d1 * d1) / dd};
}
