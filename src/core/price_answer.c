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

static double knot_marginal(const struct pieces *p, uint32_t i, bool log)
{
	return log ? p->slope[i] / fmax(1 - p->loss[i], LOG_KEPT_LEAST) : p->slope[i];
}

static double bend_of(const struct pieces *p, uint32_t i)
{
	return (p->slope[i + 1] - p->slope[i]) / (p->cut[i + 1] - p->cut[i]);
}

static void take_piece(ww_alloc *a, size_t i, uint32_t piece)
{
	const struct pieces *p = a->jobs[i].pieces;
	struct answer *q = &a->answers[i];
	q->piece = piece;
	q->cut = p->cut[piece];
	q->end = p->cut[piece + 1];
	q->loss = p->loss[piece];
	q->slope = p->slope[piece];
	q->bend = bend_of(p, piece);
	q->from = piece > 0 ? knot_marginal(p, piece, is_log(a)) : -INFINITY;
	q->to = piece + 2 < p->n ? knot_marginal(p, piece + 1, is_log(a)) : INFINITY;
}

/* hold: change of the marginal per unit of cut by what holds the job to its anchor. */
static void find_piece(ww_alloc *a, size_t i, double slope, double hold)
{
	const struct pieces *p = a->jobs[i].pieces;
	uint32_t piece = a->answers[i].piece;
	while (piece > 0 && slope < knot_marginal(p, piece, is_log(a)) + hold * (p->cut[piece] - a->anchor[i]))
		piece--;
	while (piece + 2 < p->n &&
	       slope >= knot_marginal(p, piece + 1, is_log(a)) + hold * (p->cut[piece + 1] - a->anchor[i]))
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

static uint32_t piece_of(const struct pieces *p, uint32_t piece, double cut)
{
	while (piece > 0 && cut < p->cut[piece])
		piece--;
	while (piece + 2 < p->n && cut >= p->cut[piece + 1])
		piece++;
	return piece;
}

double answer_loss(const ww_alloc *a, size_t i, double cut)
{
	const struct answer *q = &a->answers[i];
	const struct pieces *p = a->jobs[i].pieces;
	uint32_t piece = piece_of(p, q->piece, cut);
	double x = cut - p->cut[piece];
	return q->gain * counted(is_log(a), p->loss[piece] + x * (p->slope[piece] + bend_of(p, piece) * x / 2));
}

double answer_marginal(const ww_alloc *a, size_t i, double cut)
{
	const struct pieces *p = a->jobs[i].pieces;
	uint32_t piece = piece_of(p, a->answers[i].piece, cut);
	double x = cut - p->cut[piece], b = bend_of(p, piece), slope = p->slope[piece] + b * x;
	if (is_log(a))
		slope /= fmax(1 - (p->loss[piece] + x * (p->slope[piece] + b * x / 2)), LOG_KEPT_LEAST);
	return a->answers[i].gain * slope;
}

void answers_start(ww_alloc *a)
{
	for (size_t i = 0; i < a->n; i++) {
		const struct alloc_job *j = &a->jobs[i];
		struct answer *q = &a->answers[i];
		*q = (struct answer){.gain = j->gain,
		                     .baseline_w = j->baseline_w,
		                     .lo = j->lo,
		                     .hi = j->hi,
		                     .first = (uint32_t)j->first,
		                     .n_loads = (uint32_t)j->n_loads};
		take_piece(a, i, piece_of(j->pieces, 0, j->equal));
		q->loss_lo = answer_loss(a, i, j->lo);
		q->loss_hi = answer_loss(a, i, j->hi);
	}
}

void answers_rebound(ww_alloc *a)
{
	for (size_t i = 0; i < a->n; i++) {
		const struct alloc_job *j = &a->jobs[i];
		struct answer *q = &a->answers[i];
		if (q->lo != j->lo)
			q->loss_lo = answer_loss(a, i, j->lo);
		if (q->hi != j->hi)
			q->loss_hi = answer_loss(a, i, j->hi);
		q->lo = j->lo;
		q->hi = j->hi;
	}
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
