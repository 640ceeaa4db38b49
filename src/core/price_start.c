/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Before the first sweep: the level of maxmin, which rows need a price, and where prices start.
 *
 * For rows that nest in one another the prices are known: the effective price of a job is the largest of the levels of
 * its rows, and each level is found from the small rows to the large ones.
 */
#include "core/allocate_internal.h"

#include <math.h>
#include <string.h>

#define LEVEL_NEAR 3e-3  /* of a row's size: as near as a level need be met */
#define NEARLY_ALL 1e-12 /* of a row's size: what rounding may hide */

/* ---- One row alone ---------------------------------------------------------------------------------------------------- */

/* Watts of cut of a row's jobs at a level, and their derivative by the level's effect on the jobs' prices. */
static double row_watts(ww_alloc *a, const struct alloc_row *row, pull_at *pull, double level, double *slope)
{
	double watts = 0;
	*slope = 0;
	for (size_t i = row->first; i < row->first + row->n_loads; i++) {
		const struct load *load = &a->by_row[i];
		double k;
		watts += load->watts * answer_at(a, load->job, pull(a, load, level), &k);
		*slope += load->watts * load->watts * k;
	}
	return watts;
}

double meet_row(ww_alloc *a, const struct alloc_row *row, pull_at *pull, double guess, double near)
{
	double slope, watts = 0, lo = 0, hi = INFINITY, at = guess;
	for (int i = 0; i < 100; i++) {
		watts = row_watts(a, row, pull, at, &slope);
		if (fabs(watts - row->need_w) <= near || (at == 0 && watts > row->need_w))
			break;
		if (watts < row->need_w)
			lo = at;
		else
			hi = at;
		if (isfinite(hi) && hi - lo <= 1e-15 * hi)
			break;
		double next = slope > 0 ? at + (row->need_w - watts) / slope : isinf(hi) ? INFINITY : lo - 1;
		if (lo == 0 && next <= 0)
			next = at > 1e-3 * guess ? at / 16 : 0;
		else if (!(next > lo && next < hi))
			next = isinf(hi) ? max_of(16 * lo, 1e-9 / row->size_w) : lo + (hi - lo) / 2;
		at = next;
	}
	return at;
}

/* ---- First prices ------------------------------------------------------------------------------------------------------ */

/* A job's price is the larger of its effective level so far (in a->plan) and the row's level, per watt. */
static double level_pull(const ww_alloc *a, const struct load *load, double level)
{
	return max_of(a->plan[load->job], level) * a->answers[load->job].baseline_w;
}

/* Mean marginal per watt of the row's jobs at the equal cut (in a->pull). */
static double mean_marginal(const ww_alloc *a, const struct alloc_row *row)
{
	double sum = 0;
	for (size_t k = row->first; k < row->first + row->n_loads; k++)
		sum += a->by_row[k].watts * a->pull[a->by_row[k].job];
	return sum / row->size_w;
}

/* Watts that the row lacks at the levels so far. */
static double row_lacks(const ww_alloc *a, const struct alloc_row *row)
{
	double lacks = row->need_w;
	for (size_t k = row->first; k < row->first + row->n_loads; k++)
		lacks -= a->by_row[k].watts * a->cut[a->by_row[k].job];
	return lacks;
}

/* a->cut: answers to the levels so far; a->pull: marginal per watt at the equal cut. */
static void find_levels(ww_alloc *a, double *level)
{
	double k_unused;
	for (size_t i = 0; i < a->n; i++) {
		a->plan[i] = 0;
		a->cut[i] = answer_at(a, i, 0, &k_unused);
		a->pull[i] = answer_marginal(a, i, a->jobs[i].equal) / a->answers[i].baseline_w;
	}
	for (size_t i = 0; i < a->n_rows; i++) {
		size_t r = a->small_first[i];
		const struct alloc_row *row = &a->rows[r];
		level[r] = 0;
		if (!row->priced || row_lacks(a, row) <= LEVEL_NEAR * row->size_w)
			continue;
		level[r] = meet_row(a, row, level_pull, mean_marginal(a, row), LEVEL_NEAR * row->size_w);
		for (size_t k = row->first; level[r] > 0 && k < row->first + row->n_loads; k++) {
			uint32_t job = a->by_row[k].job;
			if (a->plan[job] >= level[r])
				continue;
			a->plan[job] = level[r];
			a->cut[job] = answer_at(a, job, level[r] * a->answers[job].baseline_w, &k_unused);
		}
	}
}

/* A row's own price is what its level has above the rows around it. a->plan: price per watt from rows done so far. */
static void levels_to_prices(ww_alloc *a, const double *level)
{
	memset(a->plan, 0, a->n * sizeof *a->plan);
	for (size_t i = a->n_rows; i-- > 0;) {
		size_t r = a->small_first[i];
		const struct alloc_row *row = &a->rows[r];
		double around = 0, watts = 0;
		a->price[r] = 0;
		if (level[r] == 0)
			continue;
		for (size_t k = row->first; k < row->first + row->n_loads; k++) {
			around += a->by_row[k].watts * a->plan[a->by_row[k].job];
			watts += a->by_row[k].watts;
		}
		a->price[r] = watts > 0 ? max_of(0, level[r] - around / watts) : 0;
		for (size_t k = row->first; a->price[r] > 0 && k < row->first + row->n_loads; k++) {
			const struct answer *q = &a->answers[a->by_row[k].job];
			a->plan[a->by_row[k].job] += a->price[r] * a->by_row[k].watts / q->baseline_w;
		}
	}
}

void start_prices(ww_alloc *a)
{
	find_levels(a, a->work[0]);
	levels_to_prices(a, a->work[0]);
}

/* ---- Maxmin: the level ---------------------------------------------------------------------------------------------- */

double level_at(const struct alloc_job *j, double cut)
{
	return 1 - j->weight * ww_curve_loss(j->curve, cut);
}

/* The deepest cut with which a job's weighted loss keeps to 1 - level. */
static double cut_at_level(const struct alloc_job *j, double level)
{
	return max_of(j->lo, min_of(j->hi, ww_curve_cut_at_loss(j->curve, (1 - level) / j->weight)));
}

static bool row_is_kept(const ww_alloc *a, const struct alloc_row *row, double level)
{
	double watts = 0;
	for (size_t k = row->first; k < row->first + row->n_loads; k++)
		watts += a->by_row[k].watts * cut_at_level(&a->jobs[a->by_row[k].job], level);
	return watts >= row->need_w - NEARLY_ALL * row->size_w;
}

/* Deeper levels keep every row better, so the level is the least of the rows' own. Nobody may go below it afterwards. */
void solve_level(ww_alloc *a)
{
	double least = 1, level = 1;
	for (size_t i = 0; i < a->n; i++) {
		least = min_of(least, level_at(&a->jobs[i], a->jobs[i].hi));
		level = min_of(level, level_at(&a->jobs[i], a->jobs[i].lo));
	}
	a->level_bound = level;
	for (size_t i = a->n_rows; i-- > 0;) {
		const struct alloc_row *row = &a->rows[a->small_first[i]];
		if (row->need_w <= 0 || row_is_kept(a, row, level))
			continue;
		double lo = min_of(least, level), hi = level;
		for (double mid = lo + (hi - lo) / 2; hi - lo > 1e-14 * fabs(hi) && mid > lo && mid < hi;
		     mid = lo + (hi - lo) / 2) {
			if (row_is_kept(a, row, mid))
				lo = mid;
			else
				hi = mid;
		}
		level = lo;
		a->level_bound = hi;
	}
	for (size_t i = 0; i < a->n; i++) {
		struct alloc_job *j = &a->jobs[i];
		j->hi = cut_at_level(j, level);
		j->cut = min_of(j->cut, j->hi);
	}
}

/* ---- Rows ------------------------------------------------------------------------------------------------------------------ */

/* a->work[0], [1]: watts that each row's jobs free at their least and deepest cuts. */
static void row_bounds(ww_alloc *a)
{
	memset(a->work[0], 0, a->n_rows * sizeof(double));
	memset(a->work[1], 0, a->n_rows * sizeof(double));
	for (size_t i = 0; i < a->n_loads; i++) {
		const struct load *load = &a->loads[i];
		a->work[0][load->row] += load->watts * a->jobs[load->job].lo;
		a->work[1][load->row] += load->watts * a->jobs[load->job].hi;
	}
}

/*
 * A row of one job is a bound of that job; a row that has only just enough sets all its jobs to their deepest cuts; a row
 * that the bounds alone meet needs no price.
 */
void choose_rows(ww_alloc *a)
{
	bool changed = false;
	row_bounds(a);
	for (size_t r = 0; r < a->n_rows; r++) {
		struct alloc_row *row = &a->rows[r];
		row->need_w = min_of(row->need_w, a->work[1][r]);
		bool all = row->need_w > 0 && a->work[1][r] - row->need_w <= NEARLY_ALL * row->size_w;
		for (size_t k = row->first; all && k < row->first + row->n_loads; k++)
			a->jobs[a->by_row[k].job].lo = a->jobs[a->by_row[k].job].hi;
		if (row->n_loads == 1 && row->need_w > 0) {
			struct alloc_job *j = &a->jobs[a->by_row[row->first].job];
			j->lo = min_of(j->hi, max_of(j->lo, row->need_w / a->by_row[row->first].watts));
		}
		changed = changed || all || row->n_loads == 1;
	}
	if (changed)
		row_bounds(a);
	for (size_t r = 0; r < a->n_rows; r++) {
		struct alloc_row *row = &a->rows[r];
		row->priced = row->n_loads > 1 && a->work[0][r] < row->need_w - NEARLY_ALL * row->size_w;
		if (!row->priced)
			a->price[r] = 0;
	}
}
