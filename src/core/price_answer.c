/* SPDX-License-Identifier: Apache-2.0 */
/* The jobs' answers to prices: for a price of a unit of its cut, a job takes the cut whose marginal loss equals it. The
 * piece of the curve that answered last is kept at hand, for it mostly answers again. */
#include "core/allocate_internal.h"

#include <math.h>

#define LOG_KEPT_LEAST 1e-3 /* log goes on as a straight line of the loss below this, so that it has no pole */

static bool is_log(const ww_alloc *a)
{
	return a->objective == WW_OBJECTIVE_LOG;
}

static double counted(bool log, double loss)
{
	if (!log)
		return loss;
	double most = 1 - LOG_KEPT_LEAST;
	return loss <= most ? -log1p(-loss) : (loss - most) / LOG_KEPT_LEAST - log1p(-most);
}

/* A knot of the curve that the job is divided by. */
static struct ww_knot blended(const struct alloc_job *j, uint32_t i)
{
	const struct ww_knot *k = &j->curve->k[i];
	double cut = k->cut_frac;
	return (struct ww_knot){cut, j->trust * k->loss_frac + j->tilt * cut * cut / 2,
	                        j->trust * k->slope + j->tilt * cut};
}

static double knot_marginal(const struct ww_knot *k, bool log)
{
	return log ? k->slope / max_of(1 - k->loss_frac, LOG_KEPT_LEAST) : k->slope;
}

static void take_piece(ww_alloc *a, size_t i, uint32_t piece)
{
	const struct alloc_job *j = &a->jobs[i];
	struct answer *q = &a->answers[i];
	struct ww_knot k = blended(j, piece), next = blended(j, piece + 1);
	q->piece = piece;
	q->cut = k.cut_frac;
	q->end = next.cut_frac;
	q->loss = k.loss_frac;
	q->slope = k.slope;
	q->bend = (next.slope - k.slope) / (next.cut_frac - k.cut_frac);
	q->from = piece > 0 ? knot_marginal(&k, is_log(a)) : -INFINITY;
	q->to = piece + 2 < j->curve->n ? knot_marginal(&next, is_log(a)) : INFINITY;
}

/* hold: change of the marginal per unit of cut by what holds the job to its anchor. */
static double held_marginal(const ww_alloc *a, size_t i, uint32_t knot, double hold)
{
	struct ww_knot k = blended(&a->jobs[i], knot);
	return knot_marginal(&k, is_log(a)) + hold * (k.cut_frac - a->anchor[i]);
}

static void find_piece(ww_alloc *a, size_t i, double slope, double hold)
{
	uint32_t n = a->jobs[i].curve->n, piece = a->answers[i].piece;
	while (piece > 0 && slope < held_marginal(a, i, piece, hold))
		piece--;
	while (piece + 2 < n && slope >= held_marginal(a, i, piece + 1, hold))
		piece++;
	take_piece(a, i, piece);
}

/* Cut behind the start of the piece at which (s + b x) / kept reaches `slope`; `bend` = derivative of the marginal. */
static double log_cut(const struct answer *q, double slope, double *bend)
{
	double s = q->slope, b = q->bend, kept = 1 - q->loss, half = b + slope * s, rest = slope * kept - s;
	/* (s + b x) = slope (kept - s x - b x^2 / 2), the root >= 0 */
	double x = rest > 0 ? 2 * rest / (half + sqrt(half * half + 2 * slope * b * rest)) : 0;
	double left = kept - x * (s + b * x / 2);
	if (left < LOG_KEPT_LEAST) {
		*bend = b / LOG_KEPT_LEAST;
		return (slope * LOG_KEPT_LEAST - s) / b;
	}
	*bend = b / left + slope * slope;
	return x;
}

double answer_at(ww_alloc *a, size_t i, double pull, double *k)
{
	struct answer *q = &a->answers[i];
	double slope = pull / q->gain, hold = a->hold * q->baseline_w / q->gain, anchor = a->anchor[i];
	if (slope < q->from + hold * (q->cut - anchor) || slope >= q->to + hold * (q->end - anchor))
		find_piece(a, i, slope, hold);
	double bend = q->bend + hold, cut = q->cut;
	cut += is_log(a) ? log_cut(q, slope, &bend) : (slope - q->slope - hold * (cut - anchor)) / bend;
	*k = 0;
	if (!(cut > q->lo))
		return q->lo;
	if (cut >= q->hi)
		return q->hi;
	*k = 1 / (q->gain * bend);
	return cut;
}

/* Loss and slope at a cut of the curve that the job is divided by, not yet as the objective counts them. */
static double plain_loss(const ww_alloc *a, size_t i, double cut, double *slope)
{
	const struct alloc_job *j = &a->jobs[i];
	const struct answer *q = &a->answers[i];
	if (cut >= q->cut && cut <= q->end) {
		double x = cut - q->cut;
		*slope = q->slope + q->bend * x;
		return q->loss + x * (q->slope + q->bend * x / 2);
	}
	uint32_t piece = piece_near(j->curve, q->piece, cut);
	struct ww_knot k = blended(j, piece), next = blended(j, piece + 1);
	double x = cut - k.cut_frac, bend = (next.slope - k.slope) / (next.cut_frac - k.cut_frac);
	*slope = k.slope + bend * x;
	return k.loss_frac + x * (k.slope + bend * x / 2);
}

double answer_loss(const ww_alloc *a, size_t i, double cut)
{
	const struct answer *q = &a->answers[i];
	if (cut == q->lo || cut == q->hi)
		return cut == q->lo ? q->loss_lo : q->loss_hi;
	double slope, loss = plain_loss(a, i, cut, &slope);
	return q->gain * counted(is_log(a), loss);
}

static double loss_anew(const ww_alloc *a, size_t i, double cut)
{
	double slope, loss = cut > 0 ? plain_loss(a, i, cut, &slope) : 0;
	return a->answers[i].gain * counted(is_log(a), loss);
}

double answer_marginal(const ww_alloc *a, size_t i, double cut)
{
	double slope, loss = plain_loss(a, i, cut, &slope);
	return a->answers[i].gain * (is_log(a) ? slope / max_of(1 - loss, LOG_KEPT_LEAST) : slope);
}

void answers_start(ww_alloc *a)
{
	for (size_t i = 0; i < a->n; i++) {
		const struct alloc_job *j = &a->jobs[i];
		struct answer *q = &a->answers[i];
		q->gain = j->gain;
		q->baseline_w = j->baseline_w;
		q->lo = j->lo;
		q->hi = j->hi;
		q->first = (uint32_t)j->first;
		q->n_loads = (uint32_t)j->n_loads;
		take_piece(a, i, j->piece);
		q->loss_lo = loss_anew(a, i, j->lo);
		q->loss_hi = loss_anew(a, i, j->hi);
	}
}

void answers_rebound(ww_alloc *a)
{
	for (size_t i = 0; i < a->n; i++) {
		const struct alloc_job *j = &a->jobs[i];
		struct answer *q = &a->answers[i];
		if (q->lo != j->lo)
			q->loss_lo = loss_anew(a, i, j->lo);
		if (q->hi != j->hi)
			q->loss_hi = loss_anew(a, i, j->hi);
		q->lo = j->lo;
		q->hi = j->hi;
	}
}

/* The same answers, but held. */
void answers_hold(ww_alloc *a)
{
	for (size_t i = 0; i < a->n; i++)
		a->bend[i] /= 1 + a->hold * a->answers[i].baseline_w * a->bend[i];
}

double evaluate(ww_alloc *a, const double *price)
{
	double dual = 0;
	for (size_t r = 0; r < a->n_rows; r++) {
		a->gradient[r] = a->rows[r].need_w;
		if (price[r] > 0)
			dual += price[r] * a->rows[r].need_w;
	}
	for (size_t i = 0; i < a->n; i++) {
		const struct answer *q = &a->answers[i];
		const struct load *load = &a->loads[q->first], *end = load + q->n_loads;
		double pull = 0;
		for (const struct load *l = load; l < end; l++)
			pull += price[l->row] * l->watts;
		double cut = answer_at(a, i, pull, &a->bend[i]), x = cut - q->cut, loss = q->loss_lo;
		if (a->bend[i] > 0)
			loss = q->gain * counted(is_log(a), q->loss + x * (q->slope + q->bend * x / 2));
		else if (cut > q->lo)
			loss = q->loss_hi;
		double moved = cut - a->anchor[i];
		dual += loss + a->hold / 2 * q->baseline_w * moved * moved - pull * cut;
		a->pull[i] = pull;
		a->cut[i] = cut;
		for (const struct load *l = load; l < end; l++)
			a->gradient[l->row] -= l->watts * cut;
	}
	return dual;
}
