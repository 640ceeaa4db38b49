/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loss curves: evaluation of the piecewise quadratic, and the measured curve of a sweep. The measured curve passes
 * through the vertices of the losses' convex hull; between two vertices one knot is added where a single parabola
 * could not meet both slopes (L. Schumaker, On shape preserving quadratic spline interpolation, 1983).
 */
#include "core/core_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SLOPE_STEP 1e-6 /* least rise of the marginal loss from knot to knot */

/* ---- Evaluation ----------------------------------------------------------------------------------------------- */

/* The piece that holds the cut: knots i and i + 1; the last piece also serves all deeper cuts. */
static uint32_t piece_at(const struct ww_curve *c, double cut)
{
	uint32_t i = 0;
	while (i + 2 < c->n && cut >= c->k[i + 1].cut_frac)
		i++;
	return i;
}

static double bend(const struct ww_knot *a)
{
	return (a[1].slope - a[0].slope) / (a[1].cut_frac - a[0].cut_frac);
}

double ww_curve_loss(const struct ww_curve *c, double cut)
{
	const struct ww_knot *a = &c->k[piece_at(c, cut)];
	double x = cut - a->cut_frac;
	return a->loss_frac + x * (a->slope + 0.5 * bend(a) * x);
}

double ww_curve_slope(const struct ww_curve *c, double cut)
{
	const struct ww_knot *a = &c->k[piece_at(c, cut)];
	return a->slope + bend(a) * (cut - a->cut_frac);
}

double ww_curve_slope_var(const struct ww_curve *c, double cut)
{
	return fmax(0, c->var_a + 4 * cut * (c->cov_ab + cut * c->var_b));
}

double ww_curve_cut_at_slope(const struct ww_curve *c, double slope)
{
	if (slope <= c->k[0].slope)
		return 0;
	uint32_t i = 0;
	while (i + 2 < c->n && slope >= c->k[i + 1].slope)
		i++;
	return c->k[i].cut_frac + (slope - c->k[i].slope) / bend(&c->k[i]);
}

double ww_curve_cut_at_loss(const struct ww_curve *c, double loss)
{
	if (loss <= 0)
		return 0;
	uint32_t i = 0;
	while (i + 2 < c->n && loss >= c->k[i + 1].loss_frac)
		i++;
	const struct ww_knot *a = &c->k[i];
	double more = loss - a->loss_frac, root = sqrt(a->slope * a->slope + 2 * bend(a) * more);
	return fmin(c->max_cut_frac, a->cut_frac + 2 * more / (a->slope + root));
}

void curve_add_knot(struct ww_curve *c, double cut, double slope)
{
	struct ww_knot knot = {cut, 0, slope};
	if (c->n) {
		const struct ww_knot *last = &c->k[c->n - 1];
		knot.slope = fmax(slope, last->slope + SLOPE_STEP);
		knot.loss_frac = last->loss_frac + (cut - last->cut_frac) * (last->slope + knot.slope) / 2;
	}
	c->k[c->n++] = knot;
}

/* ---- The hull of a sweep ------------------------------------------------------------------------------------------ */

struct loss_point {
	double cut, loss;
};

static int by_cut(const void *a, const void *b)
{
	const struct loss_point *p = a, *q = b;
	if (p->cut != q->cut)
		return p->cut > q->cut ? 1 : -1;
	return (p->loss > q->loss) - (p->loss < q->loss);
}

/* Sorted by cut; points with the same cut become one, at their mean loss. Returns how many are left. */
static size_t sort_points(struct loss_point *points, size_t n)
{
	size_t m = 0;
	qsort(points, n, sizeof *points, by_cut);
	for (size_t i = 0, same; i < n; i += same) {
		double sum = 0;
		for (same = 0; i + same < n && points[i + same].cut == points[i].cut; same++)
			sum += points[i + same].loss;
		points[m++] = (struct loss_point){points[i].cut, sum / (double)same};
	}
	return m;
}

static void fill_repaired(struct loss_point *points, size_t n, size_t *count, struct loss_hull *out)
{
	size_t m = sort_points(points, n);
	out->cut[0] = out->loss[0] = 0;
	for (size_t i = 0; i < m; i++) {
		out->cut[i + 1] = points[i].cut;
		out->loss[i + 1] = points[i].loss;
	}
	pav_rising(out->loss + 1, count, m);
	for (size_t i = 1; i <= m; i++)
		out->loss[i] = fmax(out->loss[i], 0);
	out->n = m + 1;
}

/* The losses from (0, 0) on, made monotone. */
static ww_status repaired_create(const struct split *split, struct loss_hull *out, struct ww_error *err)
{
	size_t n = split->n_slope;
	struct loss_point *points = malloc((n + 1) * sizeof *points);
	size_t *count = malloc((n + 1) * sizeof *count);
	out->cut = malloc(2 * (n + 1) * sizeof *out->cut);
	ww_status status = WW_OK;
	if (!points || !count || !out->cut) {
		hull_finish(out);
		status = ww_fail(err, WW_ERR_NOMEM, "out of memory");
		goto done;
	}
	out->loss = out->cut + n + 1;
	for (size_t i = 0; i < n; i++)
		points[i] = (struct loss_point){split->cut[i], split->loss[i]};
	fill_repaired(points, n, count, out);
done:
	free(points);
	free(count);
	return status;
}

ww_status hull_create(const struct split *split, struct loss_hull *out, struct ww_error *err)
{
	ww_status status = repaired_create(split, out, err);
	if (!status)
		out->n = lower_hull(out->cut, out->loss, out->n);
	return status;
}

void hull_finish(struct loss_hull *hull)
{
	free(hull->cut);
	*hull = (struct loss_hull){0};
}

/* ---- The measured curve ------------------------------------------------------------------------------------------ */

#define MAX_VERTICES (WW_MAX_KNOTS / 2)

static double segment_slope(const struct loss_hull *h, size_t i)
{
	return (h->loss[i + 1] - h->loss[i]) / (h->cut[i + 1] - h->cut[i]);
}

/* Drops the inner vertices that matter least (smallest triangle with both neighbours) until the knots suffice. */
static void thin_hull(struct loss_hull *h)
{
	while (h->n > MAX_VERTICES) {
		size_t least = 1;
		double smallest = INFINITY;
		for (size_t i = 1; i + 1 < h->n; i++) {
			double area = (segment_slope(h, i) - segment_slope(h, i - 1)) * (h->cut[i + 1] - h->cut[i]) *
			              (h->cut[i] - h->cut[i - 1]);
			if (area < smallest) {
				smallest = area;
				least = i;
			}
		}
		memmove(&h->cut[least], &h->cut[least + 1], (h->n - least - 1) * sizeof *h->cut);
		memmove(&h->loss[least], &h->loss[least + 1], (h->n - least - 1) * sizeof *h->loss);
		h->n--;
	}
}

/* Slopes at the vertices: harmonic mean of the neighbouring segments' slopes inside (0 beside a flat segment), reflected
 * at the ends. */
static void vertex_slopes(const struct loss_hull *h, double *slope)
{
	size_t last = h->n - 1;
	if (last <= 1) { /* a hull has two vertices at least */
		slope[0] = 0.5 * segment_slope(h, 0);
		slope[1] = 1.5 * segment_slope(h, 0);
		return;
	}
	for (size_t i = 1; i < last; i++) {
		double left = h->cut[i] - h->cut[i - 1], right = h->cut[i + 1] - h->cut[i];
		slope[i] = (left + right) / (right / segment_slope(h, i - 1) + left / segment_slope(h, i));
	}
	slope[0] = fmax(0, 2 * segment_slope(h, 0) - slope[1]);
	slope[last] = 2 * segment_slope(h, last - 1) - slope[last - 1];
}

/* One knot between two vertices, at the segment's own slope and placed so that the loss is met; kept a little away from
 * the vertices, which costs at most a hundredth of the segment's bend in loss. */
static void add_inner_knot(struct ww_curve *c, const struct loss_hull *h, size_t i, const double *slope)
{
	double mean = segment_slope(h, i), left = mean - slope[i], right = slope[i + 1] - mean;
	if (fabs(left - right) <= 1e-9 * (1 + mean))
		return;
	double share = fmin(fmax(right / (left + right), 0.01), 0.99);
	curve_add_knot(c, h->cut[i] + share * (h->cut[i + 1] - h->cut[i]), mean);
}

static void measured_knots(struct loss_hull *h, struct ww_curve *out)
{
	double slope[MAX_VERTICES];
	thin_hull(h);
	vertex_slopes(h, slope);
	for (size_t i = 0; i < h->n; i++) {
		curve_add_knot(out, h->cut[i], slope[i]);
		if (i + 1 < h->n)
			add_inner_knot(out, h, i, slope);
	}
}

/* Posterior covariance of (a, b) in loss = a d + b d^2 from points with independent errors and a shared baseline error,
 * under a broad prior that matters only where points are few. */
static void quadratic_uncertainty(const struct split *s, double noise, struct ww_curve *out)
{
	double w = 1 / fmax(noise * noise, 1e-12), share = 1 / (double)(s->n_slope + 1);
	double aa = 1, ab = 0, bb = 0.25, sum_d = 0, sum_q = 0;
	for (size_t i = 0; i < s->n_slope; i++) {
		double d = s->cut[i], q = d * d;
		aa += w * d * d;
		ab += w * d * q;
		bb += w * q * q;
		sum_d += d;
		sum_q += q;
	}
	aa -= w * share * sum_d * sum_d;
	ab -= w * share * sum_d * sum_q;
	bb -= w * share * sum_q * sum_q;
	double determinant = aa * bb - ab * ab;
	out->var_a = bb / determinant;
	out->var_b = aa / determinant;
	out->cov_ab = -ab / determinant;
}

/* From draws to what caps are charged: cuts below the lowest cap that does not bind. */
static void count_in_caps(const struct pooled *p, struct split *s)
{
	size_t kept = 0;
	s->p0_w = cap_charge(&p[s->n_baseline - 1]);
	for (size_t i = 0; i < s->n_slope; i++) {
		double cut = 1 - cap_charge(&p[s->at[i]]) / s->p0_w;
		if (cut <= 0)
			continue;
		s->cut[kept] = cut;
		s->loss[kept] = s->loss[i];
		s->at[kept++] = s->at[i];
	}
	s->n_slope = kept;
}

static double deepest_cut(const struct split *s)
{
	double deepest = 0;
	for (size_t i = 0; i < s->n_slope; i++)
		deepest = fmax(deepest, s->cut[i]);
	return deepest;
}

static ww_status curve_of_split(struct split *split, double noise, struct ww_curve *out, struct ww_error *err)
{
	struct loss_hull hull = {0};
	if (split->n_slope == 0)
		return ww_fail(err, WW_ERR_NO_DATA, "no curve: no cap takes anything from what is counted");
	ww_status status = hull_create(split, &hull, err);
	if (status)
		return status;
	*out = (struct ww_curve){.p0_w = split->p0_w, .t0_tps = split->t0, .max_cut_frac = deepest_cut(split)};
	measured_knots(&hull, out);
	quadratic_uncertainty(split, noise, out);
	hull_finish(&hull);
	return WW_OK;
}

ww_status curve_of_sweep(const struct pooled_sweep *sweep, enum ww_account account, double noise_frac,
                         struct ww_curve *out, struct loss_hull *repaired, struct ww_error *err)
{
	struct split split = {0};
	ww_status status = split_create(sweep->n, &split, err);
	if (status)
		return status;
	split_sweep(sweep->p, sweep->n, &split);
	if (account == WW_ACCOUNT_CAP)
		count_in_caps(sweep->p, &split);
	status = curve_of_split(&split, noise_frac, out, err);
	if (!status && repaired)
		status = repaired_create(&split, repaired, err);
	split_finish(&split);
	return status;
}

const char *ww_account_name(enum ww_account account)
{
	return account == WW_ACCOUNT_CAP ? "cap" : "draw";
}

ww_status ww_curve_measure(const struct ww_point *points, size_t n, const struct ww_pfi_options *options,
                           enum ww_account account, struct ww_curve *out, struct ww_error *err)
{
	struct ww_pfi_options no_interval = *options;
	struct ww_pfi pfi;
	struct pooled_sweep sweep = {0};
	no_interval.draws = 0;
	ww_status status = ww_pfi_estimate(points, n, &no_interval, &pfi, err);
	if (status)
		return status;
	if (pfi.status != WW_PFI_OK && pfi.status != WW_PFI_BOUND)
		return ww_fail(err, WW_ERR_NO_DATA, "no curve: the sweep has no cap that cuts the draw enough");
	status = pool_create(points, n, (struct cap_range){options->cap_lo_w, options->cap_hi_w}, &sweep, err);
	if (!status)
		status = curve_of_sweep(&sweep, account, cautious_noise(points, n, &pfi, options->noise_frac), out,
		                        NULL, err);
	if (!status) {
		out->flags = pfi.flags;
		out->status = pfi.status;
	}
	pool_finish(&sweep);
	return status;
}
