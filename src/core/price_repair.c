/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A division that keeps every row from one that breaks some. Deeper cuts never break a row, so that rows are met one after
 * another by deepening; what is then cut too much is given back.
 */
#include "core/allocate_internal.h"

#include <math.h>
#include <string.h>

#define WORTH 0.05    /* of the gap */
#define LAST_GAP 1e-5 /* of the loss */
#define MARGIN 1e-13  /* of a row's size */

/* a->work[0]: watts that each row lacks. */
static void find_deficits(ww_alloc *a)
{
	double *deficit = a->work[0];
	for (size_t r = 0; r < a->n_rows; r++)
		deficit[r] = a->rows[r].need_w + MARGIN * a->rows[r].size_w;
	for (size_t i = 0; i < a->n_loads; i++)
		deficit[a->loads[i].row] -= a->loads[i].watts * a->plan[a->loads[i].job];
}

static void set_cut(ww_alloc *a, uint32_t job, double cut)
{
	const struct answer *q = &a->answers[job];
	double more = cut - a->plan[job];
	a->plan[job] = cut;
	for (const struct load *l = &a->loads[q->first], *end = l + q->n_loads; l < end; l++)
		a->work[0][l->row] -= l->watts * more;
}

/* Deepens the row's jobs where it costs least: those that answer to prices, in proportion to their answer. */
static void deepen_answering(ww_alloc *a, const struct alloc_row *row, double deficit)
{
	double answer_w = 0;
	for (size_t i = row->first; i < row->first + row->n_loads; i++)
		if (a->plan[a->by_row[i].job] < a->answers[a->by_row[i].job].hi)
			answer_w += a->by_row[i].watts * a->by_row[i].watts * a->bend[a->by_row[i].job];
	for (size_t i = row->first; answer_w > 0 && i < row->first + row->n_loads; i++) {
		const struct load *load = &a->by_row[i];
		double more = deficit / answer_w * load->watts * a->bend[load->job];
		if (more > 0 && a->plan[load->job] < a->answers[load->job].hi)
			set_cut(a, load->job, min_of(a->answers[load->job].hi, a->plan[load->job] + more));
	}
}

/* Deepens all the row's jobs by the same share of what they have left: always enough. */
static void deepen_all(ww_alloc *a, const struct alloc_row *row, double deficit)
{
	double left = 0;
	for (size_t i = row->first; i < row->first + row->n_loads; i++)
		left += a->by_row[i].watts * (a->answers[a->by_row[i].job].hi - a->plan[a->by_row[i].job]);
	double share = left > 0 ? min_of(1, deficit / left) : 0;
	for (size_t i = row->first; share > 0 && i < row->first + row->n_loads; i++) {
		uint32_t job = a->by_row[i].job;
		double hi = a->answers[job].hi, cut = a->plan[job];
		set_cut(a, job, share < 1 ? cut + share * (hi - cut) : hi);
	}
}

static bool has_spare(const ww_alloc *a, const struct answer *q)
{
	bool has = true;
	for (const struct load *l = &a->loads[q->first], *end = l + q->n_loads; has && l < end; l++)
		has = a->work[0][l->row] < -MARGIN * a->rows[l->row].size_w;
	return has;
}

/*
 * Gives cuts back that no row of the job needs, to all such jobs at once: in proportion to their answers, or to what they
 * have. a->work[1]: watts that a row's jobs would take at most; [2]: watts that it lacks, of before.
 */
static void give_back(ww_alloc *a, bool answering)
{
	double *want = a->work[1], *deficit = a->work[2];
	memset(want, 0, a->n_rows * sizeof *want);
	memcpy(deficit, a->work[0], a->n_rows * sizeof *deficit);
	for (uint32_t i = 0; i < a->n; i++) {
		const struct answer *q = &a->answers[i];
		double most = a->plan[i] - q->lo, wish = answering ? a->bend[i] * q->baseline_w : most;
		a->wish[i] = most > 0 && wish > 0 && has_spare(a, q) ? wish : 0;
		for (const struct load *l = &a->loads[q->first], *end = l + q->n_loads; a->wish[i] > 0 && l < end; l++)
			want[l->row] += l->watts * wish;
	}
	for (uint32_t i = 0; i < a->n; i++) {
		const struct answer *q = &a->answers[i];
		double share = INFINITY;
		if (a->wish[i] <= 0)
			continue;
		for (const struct load *l = &a->loads[q->first], *end = l + q->n_loads; l < end; l++)
			share = min_of(share, -deficit[l->row] / want[l->row]);
		set_cut(a, i, max_of(q->lo, a->plan[i] - share * a->wish[i]));
	}
}

/* What is cut too much costs about its price; a little of it is left alone until the gap is small. */
static bool is_worth_it(const ww_alloc *a)
{
	double worth = 0;
	for (size_t r = 0; r < a->n_rows; r++)
		worth -= a->price[r] * min_of(0, a->work[0][r]);
	double gap = a->loss - a->lower;
	return worth > (a->tidy ? 0 : WORTH * gap);
}

void repair(ww_alloc *a, const double *start)
{
	if (start != a->plan)
		memcpy(a->plan, start, a->n * sizeof *a->plan);
	a->tidy = a->loss - a->lower <= LAST_GAP * fabs(a->loss) || a->stalled > 0;
	find_deficits(a);
	for (size_t i = 0; i < a->n_rows; i++) {
		size_t r = a->small_first[i];
		for (int turn = 0; turn < 3 && a->work[0][r] > 0; turn++)
			deepen_answering(a, &a->rows[r], a->work[0][r]);
		if (a->work[0][r] > 0)
			deepen_all(a, &a->rows[r], a->work[0][r]);
	}
	for (int turn = 0; turn < 3 && is_worth_it(a); turn++)
		give_back(a, turn < 1);
}
