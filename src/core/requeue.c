/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The problem: read, checked, and split into groups of jobs and rows that have nothing to do with each other. A group is
 * solved tier by tier from the highest promise, with all of the lower tiers taken: what these do not free, and only that, the
 * tier must. A small group is then searched as a whole.
 */
#include "core/requeue_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_W 1e9       /* of a row: with MOST_JOBS the sums stay within 63 bits */
#define MOST_GPUS 1e9    /* on a row, of a job */
#define MOST_LOSS 1e30   /* of a job */
#define MOST_JOBS 100000 /* of a problem */
#define NO_SLOT UINT32_MAX

/* ---- Memory ------------------------------------------------------------------------------------------------------------ */

ww_status ww_requeue_create(size_t max_jobs, size_t max_rows, size_t max_shares, ww_requeue **out, struct ww_error *err)
{
	if (max_jobs > MOST_JOBS || max_rows >= NO_SLOT || max_shares >= NO_SLOT)
		return ww_fail(err, WW_ERR_RANGE, "more than %d jobs, or 4 billion rows or shares of jobs on rows",
		               MOST_JOBS);
	ww_requeue *q = calloc(1, sizeof *q);
	if (!q)
		return ww_fail(err, WW_ERR_NOMEM, "out of memory");
	*q = (ww_requeue){
		.max_jobs = max_jobs,
		.max_rows = max_rows,
		.max_shares = max_shares,
		.jobs = calloc(max_jobs + 1, sizeof *q->jobs),
		.unsorted = calloc(max_jobs + 1, sizeof *q->unsorted),
		.freed = calloc(max_shares + 1, sizeof *q->freed),
		.rows = calloc(max_rows + 1, sizeof *q->rows),
		.unsorted_rows = calloc(max_rows + 1, sizeof *q->unsorted_rows),
		.slot = calloc(max_rows + 1, sizeof *q->slot),
		.parent = calloc(max_rows + 1, sizeof *q->parent),
		.order = calloc(max_jobs + 1, sizeof *q->order),
		.list = calloc(max_jobs + 1, sizeof *q->list),
		.ratio = calloc(max_jobs + 1, sizeof *q->ratio),
		.by_row = calloc(max_shares + 1, sizeof *q->by_row),
		.row_first = calloc(max_rows + 2, sizeof *q->row_first),
		.row_list = calloc(max_rows + 1, sizeof *q->row_list),
		.taken = calloc(max_jobs + 1, sizeof *q->taken),
		.left_w = calloc(max_rows + 1, sizeof *q->left_w),
	};
	if (!q->jobs || !q->unsorted || !q->freed || !q->rows || !q->unsorted_rows || !q->slot || !q->parent ||
	    !q->order || !q->list || !q->ratio || !q->by_row || !q->row_first || !q->row_list || !q->taken ||
	    !q->left_w) {
		ww_requeue_destroy(q);
		return ww_fail(err, WW_ERR_NOMEM, "out of memory for %zu jobs to requeue", max_jobs);
	}
	*out = q;
	return WW_OK;
}

void ww_requeue_destroy(ww_requeue *q)
{
	if (!q)
		return;
	free(q->jobs);
	free(q->unsorted);
	free(q->freed);
	free(q->rows);
	free(q->unsorted_rows);
	free(q->slot);
	free(q->parent);
	free(q->order);
	free(q->list);
	free(q->ratio);
	free(q->by_row);
	free(q->row_first);
	free(q->row_list);
	free(q->taken);
	free(q->left_w);
	free(q);
}

/* ---- Order ------------------------------------------------------------------------------------------------------------- */

static void sift(const ww_requeue *q, uint32_t *list, size_t range[2], requeue_before *before)
{
	uint32_t item = list[range[0]];
	size_t at = range[0];
	for (size_t child = 2 * at + 1; child < range[1]; child = 2 * at + 1) {
		if (child + 1 < range[1] && before(q, list[child], list[child + 1]))
			child++;
		if (!before(q, item, list[child]))
			break;
		list[at] = list[child];
		at = child;
	}
	list[at] = item;
}

void requeue_sort(const ww_requeue *q, uint32_t *list, size_t n, requeue_before *before)
{
	for (size_t i = n / 2; i-- > 0;)
		sift(q, list, (size_t[]){i, n}, before);
	for (size_t i = n; i-- > 1;) {
		uint32_t last = list[i];
		list[i] = list[0];
		list[0] = last;
		sift(q, list, (size_t[]){0, i}, before);
	}
}

static bool candidate_before(const ww_requeue *q, uint32_t a, uint32_t b)
{
	const struct candidate *p = &q->unsorted[a], *r = &q->unsorted[b];
	if (p->group != r->group)
		return p->group < r->group;
	return p->tier != r->tier ? p->tier < r->tier : p->id < r->id;
}

static bool row_before(const ww_requeue *q, uint32_t a, uint32_t b)
{
	const struct short_row *p = &q->unsorted_rows[a], *r = &q->unsorted_rows[b];
	return p->group != r->group ? p->group < r->group : p->row < r->row;
}

/* ---- Checks ------------------------------------------------------------------------------------------------------------ */

/* Not of a NAN. */
static bool is_in(double v, double lo, double hi)
{
	return v >= lo && v <= hi;
}

static ww_status check_shares(ww_requeue *q, const struct ww_requeue_problem *p, uint32_t index, struct ww_error *err)
{
	const struct ww_requeue_job *j = &p->jobs[index];
	const unsigned long long id = j->id;
	if (j->n_rows > 0 && !j->rows)
		return ww_fail(err, WW_ERR_INVALID, "job %llu: has %u rows but none is given", id, j->n_rows);
	for (uint32_t k = 0; k < j->n_rows; k++) {
		const struct ww_row_share *share = &j->rows[k];
		if (share->row >= p->n_rows)
			return ww_fail(err, WW_ERR_RANGE, "job %llu: is placed on a row that does not exist", id);
		if (!is_in(share->gpus, 1e-30, MOST_GPUS))
			return ww_fail(err, WW_ERR_RANGE, "job %llu: its gpus on a row are %g, must be above 0", id,
			               share->gpus);
		if (q->slot[share->row] == index)
			return ww_fail(err, WW_ERR_INVALID, "job %llu: names row %u twice; add its gpus up", id,
			               share->row);
		q->slot[share->row] = index;
	}
	return WW_OK;
}

static ww_status check_job(const struct ww_requeue_job *j, struct ww_error *err)
{
	const unsigned long long id = j->id;
	if (j->tier < 0 || j->tier >= N_TIERS)
		return ww_fail(err, WW_ERR_RANGE, "job %llu: tier is %d, must be 0..3", id, j->tier);
	if (!is_in(j->freed_w, 0, MOST_W))
		return ww_fail(err, WW_ERR_RANGE, "job %llu: freed_w is %g, must be 0 or more watts", id, j->freed_w);
	if (!is_in(j->loss, 0, MOST_LOSS))
		return ww_fail(err, WW_ERR_RANGE, "job %llu: loss is %g, must be 0 or more", id, j->loss);
	return WW_OK;
}

static ww_status check_room(const ww_requeue *q, const struct ww_requeue_problem *p, struct ww_error *err)
{
	size_t n_shares = 0;
	for (size_t i = 0; i < p->n_jobs && i < q->max_jobs; i++)
		n_shares += p->jobs[i].n_rows;
	if (p->n_jobs > q->max_jobs || p->n_rows > q->max_rows || n_shares > q->max_shares)
		return ww_fail(err, WW_ERR_INVALID, "%zu jobs on %zu rows are more than there was room made for",
		               p->n_jobs, p->n_rows);
	for (size_t r = 0; r < p->n_rows; r++)
		if (!is_in(p->missing_w[r], -INFINITY, MOST_W) || isinf(p->missing_w[r]))
			return ww_fail(err, WW_ERR_RANGE, "row %zu: missing_w is %g, must be a number of watts", r,
			               p->missing_w[r]);
	return WW_OK;
}

static ww_status check(ww_requeue *q, const struct ww_requeue_problem *p, struct ww_error *err)
{
	ww_status status = check_room(q, p, err);
	for (size_t r = 0; r < p->n_rows && !status; r++)
		q->slot[r] = NO_SLOT;
	for (uint32_t i = 0; i < p->n_jobs && !status; i++) {
		status = check_job(&p->jobs[i], err);
		if (!status)
			status = check_shares(q, p, i, err);
		q->unsorted[i] = (struct candidate){.id = p->jobs[i].id, .index = i};
		q->order[i] = i;
	}
	if (status)
		return status;
	requeue_sort(q, q->order, p->n_jobs, candidate_before);
	for (size_t i = 1; i < p->n_jobs; i++)
		if (q->unsorted[q->order[i - 1]].id == q->unsorted[q->order[i]].id)
			return ww_fail(err, WW_ERR_INVALID, "job %llu is there twice",
			               (unsigned long long)q->unsorted[q->order[i]].id);
	return WW_OK;
}

/* ---- Reading ------------------------------------------------------------------------------------------------------------ */

static void read_rows(ww_requeue *q, const struct ww_requeue_problem *p)
{
	q->n_rows = 0;
	for (uint32_t r = 0; r < p->n_rows; r++) {
		int64_t missing = p->missing_w[r] > 0 ? (int64_t)llrint(p->missing_w[r] * WATT) : 0;
		q->left_w[r] = 0;
		q->slot[r] = missing > 0 ? (uint32_t)q->n_rows : NO_SLOT;
		if (missing == 0)
			continue;
		q->parent[q->n_rows] = (uint32_t)q->n_rows;
		q->unsorted_rows[q->n_rows++] = (struct short_row){.missing = missing, .row = r};
	}
}

static uint32_t root_of(ww_requeue *q, uint32_t row)
{
	while (q->parent[row] != row) {
		q->parent[row] = q->parent[q->parent[row]];
		row = q->parent[row];
	}
	return row;
}

static void join(ww_requeue *q, uint32_t a, uint32_t b)
{
	a = root_of(q, a);
	b = root_of(q, b);
	q->parent[a > b ? a : b] = a > b ? b : a;
}

/* What the job frees of short rows; need is what all of them free together, until all are read. */
static void read_freed(ww_requeue *q, const struct ww_requeue_job *j, struct candidate *out)
{
	for (uint32_t k = 0; k < j->n_rows; k++) {
		uint32_t slot = q->slot[j->rows[k].row];
		double watts = j->freed_w * j->rows[k].gpus;
		if (slot == NO_SLOT)
			continue;
		struct short_row *row = &q->unsorted_rows[slot];
		int64_t whole = watts < MOST_W ? (int64_t)llrint(watts * WATT) : row->missing;
		if (whole == 0)
			continue;
		struct freed *f = &q->freed[q->n_freed++];
		*f = (struct freed){slot, whole < row->missing ? whole : row->missing};
		row->need += f->watts;
		out->n_freed++;
		join(q, slot, q->freed[out->first].row);
	}
}

static void read_candidates(ww_requeue *q, const struct ww_requeue_problem *p)
{
	double largest = 0;
	q->n = q->n_freed = 0;
	for (uint32_t i = 0; i < p->n_jobs; i++) {
		const struct ww_requeue_job *j = &p->jobs[i];
		struct candidate job = {.id = j->id, .first = q->n_freed, .index = i, .tier = j->tier};
		q->taken[i] = false;
		if (j->allowed)
			read_freed(q, j, &job);
		if (job.n_freed == 0)
			continue;
		largest = fmax(largest, j->loss);
		q->unsorted[q->n++] = job;
	}
	/* by a power of two, so that losses that are multiples of something stay so */
	int exponent = 0;
	(void)frexp(largest, &exponent);
	for (size_t i = 0; i < q->n; i++)
		q->unsorted[i].loss = llrint(ldexp(p->jobs[q->unsorted[i].index].loss, LOSS_BITS - exponent));
}

/* Rows and candidates in the order of groups. */
static void sort_groups(ww_requeue *q)
{
	for (uint32_t r = 0; r < q->n_rows; r++) {
		q->unsorted_rows[r].group = root_of(q, r);
		q->row_list[r] = r;
	}
	requeue_sort(q, q->row_list, q->n_rows, row_before);
	for (uint32_t r = 0; r < q->n_rows; r++) {
		struct short_row *row = &q->rows[r];
		*row = q->unsorted_rows[q->row_list[r]];
		row->lack = row->need = row->need < row->missing ? row->need : row->missing;
		q->slot[row->row] = r;
	}
	for (uint32_t i = 0; i < q->n; i++) {
		q->unsorted[i].group = root_of(q, q->freed[q->unsorted[i].first].row);
		q->order[i] = i;
	}
	for (size_t i = 0; i < q->n_freed; i++)
		q->freed[i].row = q->slot[q->unsorted_rows[q->freed[i].row].row];
	requeue_sort(q, q->order, q->n, candidate_before);
	for (size_t i = 0; i < q->n; i++)
		q->jobs[i] = q->unsorted[q->order[i]];
}

/* ---- Choice ------------------------------------------------------------------------------------------------------------- */

void requeue_put(ww_requeue *q, uint32_t job, bool taken)
{
	struct candidate *j = &q->jobs[job];
	for (size_t k = j->first; j->taken != taken && k < j->first + j->n_freed; k++)
		q->rows[q->freed[k].row].lack -= taken ? q->freed[k].watts : -q->freed[k].watts;
	j->taken = taken;
}

static void put_all(ww_requeue *q, const struct range *range, bool taken)
{
	for (uint32_t i = range->first; i < range->first + range->n; i++)
		requeue_put(q, i, taken);
}

static bool lacks(const ww_requeue *q, const struct range *range)
{
	bool yes = false;
	for (uint32_t r = range->first_row; r < range->first_row + range->n_rows && !yes; r++)
		yes = q->rows[r].lack > 0;
	return yes;
}

static void choose_in_group(ww_requeue *q, const struct range *group)
{
	const bool small = group->n <= EXACT_JOBS;
	unsigned n_tiers = 0;
	bool exact = true;
	put_all(q, group, true);
	for (struct range tier = *group; tier.first < group->first + group->n; tier.first += tier.n) {
		const int of = q->jobs[tier.first].tier;
		for (tier.n = 0; tier.first + tier.n < group->first + group->n; tier.n++)
			if (q->jobs[tier.first + tier.n].tier != of)
				break;
		put_all(q, &tier, false);
		if (!lacks(q, &tier))
			continue;
		n_tiers++;
		requeue_by_ratio(q, &tier);
		/* of equal choices in one tier another one may spare the next */
		if (!small && (!requeue_exactly(q, &tier) || n_tiers > 1))
			exact = false;
	}
	if (small)
		exact = requeue_exactly(q, group);
	q->total.exact = q->total.exact && exact;
}

static void choose(ww_requeue *q)
{
	struct range group = {0};
	while (group.first < q->n) {
		const uint32_t of = q->jobs[group.first].group;
		for (group.n = 0; group.first + group.n < q->n && q->jobs[group.first + group.n].group == of;)
			group.n++;
		while (q->rows[group.first_row].group != of)
			group.first_row++;
		for (group.n_rows = 0; group.first_row + group.n_rows < q->n_rows; group.n_rows++)
			if (q->rows[group.first_row + group.n_rows].group != of)
				break;
		choose_in_group(q, &group);
		group.first += group.n;
		group.first_row += group.n_rows;
	}
}

static bool by_id(const ww_requeue *q, uint32_t a, uint32_t b)
{
	return q->jobs[a].id < q->jobs[b].id;
}

static void tell(ww_requeue *q, const struct ww_requeue_problem *p)
{
	for (uint32_t i = 0; i < q->n; i++)
		q->list[i] = i;
	requeue_sort(q, q->list, q->n, by_id);
	for (size_t i = 0; i < q->n; i++) {
		const struct candidate *job = &q->jobs[q->list[i]];
		q->taken[job->index] = job->taken;
		q->total.n_taken += job->taken;
		q->total.loss += job->taken ? p->jobs[job->index].loss : 0;
	}
	for (size_t r = 0; r < q->n_rows; r++) {
		int64_t left = q->rows[r].missing - q->rows[r].need;
		q->left_w[q->rows[r].row] = (double)left / WATT;
		q->total.n_left += left > 0;
	}
}

ww_status ww_requeue_choose(ww_requeue *q, const struct ww_requeue_problem *problem, struct ww_error *err)
{
	ww_status status = check(q, problem, err);
	if (status)
		return status;
	q->total = (struct ww_requeue_total){.exact = true};
	q->visits = WW_REQUEUE_VISITS;
	read_rows(q, problem);
	read_candidates(q, problem);
	sort_groups(q);
	choose(q);
	tell(q, problem);
	return WW_OK;
}

const bool *ww_requeue_taken(const ww_requeue *q)
{
	return q->taken;
}

const double *ww_requeue_left_w(const ww_requeue *q)
{
	return q->left_w;
}

struct ww_requeue_total ww_requeue_result(const ww_requeue *q)
{
	return q->total;
}
