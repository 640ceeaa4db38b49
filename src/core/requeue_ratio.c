/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Choosing among many candidates: row by row, those with the fewest candidates first, cheapest per share of what is lacking
 * first. What turns out not to be needed is given back, then each one taken may be swapped for a cheaper one.
 */
#include "core/requeue_internal.h"

#define SWAP_LOOKS 256 /* candidates looked at for each one taken */

static bool cheaper_per_share(const ww_requeue *q, uint32_t a, uint32_t b)
{
	if (q->ratio[a] != q->ratio[b])
		return q->ratio[a] < q->ratio[b];
	return q->jobs[a].id < q->jobs[b].id;
}

static bool dearer(const ww_requeue *q, uint32_t a, uint32_t b)
{
	const struct candidate *p = &q->jobs[a], *r = &q->jobs[b];
	return p->loss != r->loss ? p->loss > r->loss : p->id > r->id;
}

static bool fewer_candidates(const ww_requeue *q, uint32_t a, uint32_t b)
{
	size_t n_a = q->row_first[a + 1] - q->row_first[a], n_b = q->row_first[b + 1] - q->row_first[b];
	return n_a != n_b ? n_a < n_b : q->rows[a].row < q->rows[b].row;
}

/* row_first and by_row for the candidates of a range. */
static void list_by_row(ww_requeue *q, const struct range *range)
{
	size_t *first = q->row_first + range->first_row;
	for (uint32_t r = 0; r <= range->n_rows; r++)
		first[r] = 0;
	for (uint32_t i = range->first; i < range->first + range->n; i++)
		for (uint32_t k = 0; k < q->jobs[i].n_freed; k++)
			q->row_first[q->freed[q->jobs[i].first + k].row]++;
	for (uint32_t r = 1; r <= range->n_rows; r++)
		first[r] += first[r - 1];
	for (uint32_t i = range->first + range->n; i-- > range->first;)
		for (uint32_t k = 0; k < q->jobs[i].n_freed; k++)
			q->by_row[--q->row_first[q->freed[q->jobs[i].first + k].row]] = i;
}

/* Loss per share of what the candidate's rows lack now. */
static double ratio_now(const ww_requeue *q, const struct candidate *job)
{
	double share = 0;
	for (uint32_t k = 0; k < job->n_freed; k++) {
		const struct freed *f = &q->freed[job->first + k];
		int64_t lack = q->rows[f->row].lack;
		if (lack > 0)
			share += (double)(f->watts < lack ? f->watts : lack) / (double)lack;
	}
	return (double)job->loss / share;
}

static void cover_row(ww_requeue *q, uint32_t row)
{
	size_t n = 0;
	for (size_t i = q->row_first[row]; i < q->row_first[row + 1]; i++) {
		uint32_t job = q->by_row[i];
		if (q->jobs[job].taken)
			continue;
		q->ratio[job] = ratio_now(q, &q->jobs[job]);
		q->list[n++] = job;
	}
	requeue_sort(q, q->list, n, cheaper_per_share);
	for (size_t i = 0; i < n && q->rows[row].lack > 0; i++)
		requeue_put(q, q->list[i], true);
}

static size_t list_taken(ww_requeue *q, const struct range *range, uint32_t *list, bool taken)
{
	size_t n = 0;
	for (uint32_t i = range->first; i < range->first + range->n; i++)
		if (q->jobs[i].taken == taken)
			list[n++] = i;
	return n;
}

/* Could `out` be given back if `in` were taken? */
static bool can_replace(ww_requeue *q, uint32_t out, uint32_t in)
{
	bool can = true;
	requeue_put(q, in, true);
	for (uint32_t k = 0; can && k < q->jobs[out].n_freed; k++) {
		const struct freed *f = &q->freed[q->jobs[out].first + k];
		can = q->rows[f->row].lack + f->watts <= 0;
	}
	requeue_put(q, in, false);
	return can;
}

static bool is_needed(const ww_requeue *q, const struct candidate *job)
{
	bool needed = false;
	for (uint32_t k = 0; !needed && k < job->n_freed; k++)
		needed = q->rows[q->freed[job->first + k].row].lack + q->freed[job->first + k].watts > 0;
	return needed;
}

static void give_back_unneeded(ww_requeue *q, const struct range *range)
{
	size_t n = list_taken(q, range, q->list, true);
	requeue_sort(q, q->list, n, dearer);
	for (size_t i = 0; i < n; i++)
		if (!is_needed(q, &q->jobs[q->list[i]]))
			requeue_put(q, q->list[i], false);
}

/* The cheapest of those a little cheaper than `job`; `job` itself when there is none. `others`: dearest first. */
static size_t find_swap(ww_requeue *q, uint32_t job, const uint32_t *others, size_t n)
{
	size_t lo = 0, best = n;
	for (size_t hi = n; lo < hi;) {
		size_t mid = lo + (hi - lo) / 2;
		if (q->jobs[others[mid]].loss >= q->jobs[job].loss)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (size_t i = lo; i < n && i < lo + SWAP_LOOKS; i++)
		if (!q->jobs[others[i]].taken && can_replace(q, job, others[i]))
			best = i;
	return best;
}

static void swap_once(ww_requeue *q, const struct range *range)
{
	size_t n_taken = list_taken(q, range, q->list, true);
	uint32_t *others = q->list + n_taken;
	size_t n_others = list_taken(q, range, others, false);
	requeue_sort(q, q->list, n_taken, dearer);
	requeue_sort(q, others, n_others, dearer);
	for (size_t i = 0; i < n_taken; i++) {
		size_t at = find_swap(q, q->list[i], others, n_others);
		if (at == n_others)
			continue;
		requeue_put(q, others[at], true);
		requeue_put(q, q->list[i], false);
	}
}

void requeue_by_ratio(ww_requeue *q, const struct range *range)
{
	uint32_t *rows = q->row_list;
	size_t n = 0;
	list_by_row(q, range);
	for (uint32_t r = range->first_row; r < range->first_row + range->n_rows; r++)
		if (q->rows[r].lack > 0)
			rows[n++] = r;
	requeue_sort(q, rows, n, fewer_candidates);
	for (size_t i = 0; i < n; i++)
		cover_row(q, rows[i]);
	give_back_unneeded(q, range);
	swap_once(q, range);
	give_back_unneeded(q, range);
}
