/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's jobs: fetched, sorted, and recognised when they are those of the last problem, as mostly when only a budget
 * changed. Then nothing of them need be checked or taken again. */
#include "core/allocate_internal.h"

#include <stdlib.h>
#include <string.h>

#define FEW_LOADS 16

/* The order of ids is any order in the caller's memory. */
void fetch_ahead(const ww_alloc *a, const struct ww_alloc_problem *p, size_t i)
{
	if (i + 16 < p->n_jobs)
		__builtin_prefetch(&p->jobs[a->places[i + 16].index]);
	for (size_t byte = 0; i + 8 < p->n_jobs && byte < sizeof(struct ww_curve); byte += 64)
		__builtin_prefetch((const char *)p->jobs[a->places[i + 8].index].curve + byte);
}

static int by_row(const void *a, const void *b)
{
	const struct load *p = a, *q = b;
	return (p->row > q->row) - (p->row < q->row);
}

void sort_loads(struct load *loads, size_t n)
{
	bool sorted = true;
	for (size_t k = 1; k < n && sorted; k++)
		sorted = loads[k - 1].row < loads[k].row;
	if (!sorted && n > FEW_LOADS)
		qsort(loads, n, sizeof *loads, by_row);
	for (size_t k = 1; !sorted && n <= FEW_LOADS && k < n; k++) {
		struct load load = loads[k];
		size_t to = k;
		for (; to > 0 && loads[to - 1].row > load.row; to--)
			loads[to] = loads[to - 1];
		loads[to] = load;
	}
}

static bool same_curve(const struct alloc_job *j, const struct ww_curve *c)
{
	const struct ww_curve *own = j->curve;
	return c && c->n == own->n && c->p0_w == own->p0_w && c->t0_tps == own->t0_tps &&
	       c->max_cut_frac == j->measured && c->var_a == own->var_a && c->var_b == own->var_b &&
	       c->cov_ab == own->cov_ab && memcmp(c->k, own->k, c->n * sizeof *c->k) == 0;
}

static bool same_shares(const ww_alloc *a, const struct alloc_job *j, const struct ww_alloc_job *in)
{
	const struct ww_row_share *own = &a->shares_in[j->first];
	bool same = in->n_rows + 1 == j->n_loads && (in->rows || in->n_rows == 0);
	for (uint32_t k = 0; same && k < in->n_rows; k++)
		same = in->rows[k].row == own[k].row && in->rows[k].gpus == own[k].gpus;
	return same;
}

bool same_jobs(const ww_alloc *a, const struct ww_alloc_problem *p)
{
	bool same = a->n > 0 && a->n == p->n_jobs && a->n_rows == p->n_rows + 1 && a->objective == p->objective;
	for (size_t i = 0; i < p->n_jobs && same; i++) {
		const struct alloc_job *j = &a->jobs[i];
		const struct ww_alloc_job *in = &p->jobs[j->index];
		fetch_ahead(a, p, i);
		same = in->id == j->id && in->gpus == j->gpus && in->tier == j->tier && in->weight == j->weight &&
		       in->floor_frac == j->floor_frac && in->min_w == j->min_w && in->max_w == j->max_w &&
		       same_curve(j, in->curve) && same_shares(a, j, in);
	}
	return same;
}

static int by_id(const void *a, const void *b)
{
	const struct place *p = a, *q = b;
	return (p->id > q->id) - (p->id < q->id);
}

static bool order_still_holds(const ww_alloc *a, const struct ww_alloc_problem *p)
{
	bool holds = a->n == p->n_jobs && a->places;
	for (size_t i = 1; i < p->n_jobs && holds; i++)
		holds = p->jobs[a->places[i - 1].index].id < p->jobs[a->places[i].index].id;
	return holds;
}

bool ascending(const struct ww_alloc_problem *p)
{
	for (size_t i = 1; i < p->n_jobs; i++)
		if (p->jobs[i - 1].id >= p->jobs[i].id)
			return false;
	return true;
}

ww_status order_jobs(const ww_alloc *a, const struct ww_alloc_problem *p, struct place **out, struct ww_error *err)
{
	*out = NULL;
	if (ascending(p) || order_still_holds(a, p))
		return WW_OK;
	struct place *places = calloc(p->n_jobs + 1, sizeof *places);
	if (!places)
		return ww_fail(err, WW_ERR_NOMEM, "out of memory for %zu jobs", p->n_jobs);
	for (uint32_t i = 0; i < p->n_jobs; i++)
		places[i] = (struct place){p->jobs[i].id, i};
	qsort(places, p->n_jobs, sizeof *places, by_id);
	*out = places;
	for (size_t i = 1; i < p->n_jobs; i++)
		if (places[i].id == places[i - 1].id)
			return ww_fail(err, WW_ERR_INVALID, "job %llu is there twice",
			               (unsigned long long)places[i].id);
	return WW_OK;
}
