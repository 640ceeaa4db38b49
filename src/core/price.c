/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Division by prices. Row r asks for need_r watts of cut, job j gives W_rj d_j of them. With prices p >= 0 the dual
 *
 *     D(p) = sum_r p_r need_r + sum_j min over lo_j <= d <= hi_j of gain_j f_j(d) - (sum_r p_r W_rj) d
 *
 * is never above the loss of any division that keeps all rows (weak duality), so the best D seen proves a bound, for any
 * prices. f is convex and its derivative strictly rises, so each job's best d is a continuous function of its price
 * and D is smooth enough for Newton's method (price_newton.c) with a line search on D. The jobs' answers to the prices may
 * break rows a little; price_repair.c makes a division of them that keeps all.
 */
#include "core/allocate_internal.h"

#include <math.h>
#include <string.h>

#define GOOD_GAP 1e-12   /* relative gap at which nothing is left to gain */
#define NEARLY_GOOD 1e-5 /* from here on nothing holds a job to its anchor, where that works */
#define STALLED_SWEEPS 4 /* sweeps without progress after which rounding has won */
#define SETTLED 1e-10    /* of a row's size */
#define ROUNDING 1e-14
#define STEPS 3       /* of Newton in a sweep, while far */
#define FAR 0.3       /* of the gap */
#define FAR_LOSS 0.03 /* of the loss, which is as good as any gap needs at first */
#define LINE_STEPS 12
/* Pull that holds a job to its anchor, per unit of cut and watt, as a share of the mean price per watt. */
#define HOLD_FIRST 0.1
#define HOLD_LEAST 0.01
#define HOLD_MOST 0.3

/* ---- Start ---------------------------------------------------------------------------------------------------------------- */

static double plan_loss(const ww_alloc *a)
{
	double loss = 0;
	for (size_t i = 0; i < a->n; i++)
		loss += answer_loss(a, i, a->plan[i]);
	return loss;
}

/* Keeps the new division when it is better; as good, it fits the newest prices better. */
static bool take_plan(ww_alloc *a)
{
	double loss = plan_loss(a);
	bool better = loss < a->loss;
	if (!(better || loss <= a->loss + ROUNDING * fabs(a->loss)))
		return false;
	for (size_t i = 0; i < a->n; i++)
		a->jobs[i].cut = a->plan[i];
	a->loss = loss;
	return better;
}

static void long_jobs(ww_alloc *a)
{
	a->curvature.n_long = 0;
	for (uint32_t i = 0; i < a->n; i++)
		if (a->answers[i].n_loads > MOST_PAIRED_LOADS)
			a->curvature.long_jobs[a->curvature.n_long++] = i;
	for (uint32_t i = 0; i < a->n_rows; i++)
		a->curvature.rank[a->small_first[i]] = i;
}

/* The equal cut, made good where maxmin's level took cuts back; the answers to the first prices are the anchors. */
static void first_plans(ww_alloc *a)
{
	if (a->objective == WW_OBJECTIVE_MAXMIN) {
		a->loss = INFINITY;
		for (size_t i = 0; i < a->n; i++)
			a->plan[i] = max_of(a->jobs[i].lo, a->jobs[i].cut);
		repair(a, a->plan);
		take_plan(a);
	}
	memcpy(a->anchor, a->cut, a->n * sizeof *a->anchor);
	a->at_anchor = true;
}

void price_start(ww_alloc *a)
{
	if (a->objective == WW_OBJECTIVE_MAXMIN)
		solve_level(a);
	choose_rows(a);
	answers_rebound(a);
	long_jobs(a);
	a->hold = 0;
	a->hold_share = HOLD_FIRST;
	a->damping = 0;
	a->can_let_go = true;
	a->dual = -INFINITY;
	if (a->last_rows == a->n_rows)
		a->dual = evaluate(a, a->price);
	double none = 0;
	for (size_t i = 0; i < a->n; i++)
		none += a->answers[i].loss_lo;
	if (!(a->dual > none)) {
		start_prices(a);
		a->dual = evaluate(a, a->price);
	}
	a->lower = max_of(none, a->dual);
	a->tidy = a->dual <= none; /* where no row has a price */
	first_plans(a);
	a->last_rows = a->n_rows;
	a->started = true;
	a->stalled = 0;
}

/* ---- Line search ------------------------------------------------------------------------------------------------------------ */

static double slope_along(const ww_alloc *a, const double *step)
{
	double slope = 0;
	for (size_t r = 0; r < a->n_rows; r++)
		slope += a->gradient[r] * step[r];
	return slope;
}

/* Short steps say that the quadratic model reaches too far. */
static void adapt(ww_alloc *a, double length)
{
	if (length > 0.5) {
		a->damping = a->damping > 1e-3 ? a->damping * 0.1 : 0;
		a->hold_share = max_of(HOLD_LEAST, a->hold_share / 2);
	} else if (length < 0.1) {
		a->damping = min_of(10, max_of(0.01, 10 * a->damping));
		a->hold_share = min_of(HOLD_MOST, 4 * a->hold_share);
		a->can_let_go = a->can_let_go && a->hold > 0;
	}
}

/*
 * Moves along the step to where the dual is nearly highest; false when it rises nowhere. The dual is concave along it.
 * a->work[2]: the best prices met.
 */
static bool line_search(ww_alloc *a, const double *step)
{
	double *trial = a->work[5], *best = a->work[2], most = a->dual, at = 1, length = 0;
	double lo = 0, hi = INFINITY, slope_lo = slope_along(a, step), slope_hi = 0, first = slope_lo;
	for (int n = 0; n < LINE_STEPS && first > 0; n++) {
		for (size_t r = 0; r < a->n_rows; r++)
			trial[r] = max_of(0, a->price[r] + at * step[r]);
		double dual = evaluate(a, trial), slope = slope_along(a, step);
		if (dual > most) {
			memcpy(best, trial, a->n_rows * sizeof *best);
			most = dual;
			length = at;
		}
		if (length == at && (fabs(slope) <= 0.3 * first || (slope > 0 && isinf(hi))))
			break;
		if (slope > 0) {
			lo = at;
			slope_lo = slope;
		} else {
			hi = at;
			slope_hi = slope;
		}
		at = lo + (hi - lo) * min_of(max_of(slope_lo / (slope_lo - slope_hi), 0.1), 0.9);
	}
	adapt(a, length);
	if (length > 0)
		memcpy(a->price, best, a->n_rows * sizeof *best);
	a->dual = length > 0 && length == at ? most : evaluate(a, a->price);
	return length > 0;
}

/* ---- Row by row: slower, but sure ------------------------------------------------------------------------------------------ */

/* a->plan holds each job's price without the row at hand. */
static double own_pull(const ww_alloc *a, const struct load *load, double level)
{
	return a->plan[load->job] + level * load->watts;
}

static void add_row_price(ww_alloc *a, const struct alloc_row *row, double price)
{
	for (size_t k = row->first; k < row->first + row->n_loads; k++)
		a->plan[a->by_row[k].job] += price * a->by_row[k].watts;
}

/* Sets the price of each row in turn to the one that just meets it; `dull`: only of those whose jobs do not answer. */
static void row_by_row(ww_alloc *a, const double *answers)
{
	memcpy(a->plan, a->pull, a->n * sizeof *a->plan);
	for (size_t i = 0; i < a->n_rows; i++) {
		size_t r = a->small_first[i];
		if (!a->rows[r].priced || (answers && (answers[r] > 0 || (a->price[r] == 0 && a->gradient[r] <= 0))))
			continue;
		add_row_price(a, &a->rows[r], -a->price[r]);
		a->price[r] = meet_row(a, &a->rows[r], own_pull, a->price[r], 1e-10 * a->rows[r].size_w);
		add_row_price(a, &a->rows[r], a->price[r]);
	}
	a->dual = evaluate(a, a->price);
}

/* Newton's method does not see rows whose jobs all are at a bound: moves their prices to where a job answers. */
static void wake_rows(ww_alloc *a)
{
	double *answers = a->work[1];
	bool dull = false;
	memset(answers, 0, a->n_rows * sizeof *answers);
	for (size_t i = 0; i < a->n_loads; i++)
		answers[a->loads[i].row] += a->loads[i].watts * a->bend[a->loads[i].job];
	for (size_t r = 0; r < a->n_rows && !dull; r++)
		dull = a->rows[r].priced && answers[r] <= 0 && (a->price[r] > 0 || a->gradient[r] > 0);
	if (dull)
		row_by_row(a, answers);
}

/* ---- Sweeps ------------------------------------------------------------------------------------------------------------------ */

/* What the objective is when nothing is lost. */
static double full_value(const ww_alloc *a)
{
	double sum = 0;
	for (size_t i = 0; a->objective != WW_OBJECTIVE_LOG && i < a->n; i++)
		sum += a->jobs[i].gain;
	return sum;
}

static void set_hold(ww_alloc *a, bool near)
{
	double pull = 0;
	for (size_t r = 0; r < a->n_rows; r++)
		pull += a->price[r] * a->rows[r].size_w;
	bool free = a->objective == WW_OBJECTIVE_LOG || (near && a->can_let_go);
	a->hold = free ? 0 : a->hold_share * pull / a->rows[a->n_rows - 1].size_w;
}

/* The answers to the prices meet the rows that have one, and keep the others. */
static bool is_settled(const ww_alloc *a)
{
	bool settled = true;
	for (size_t r = 0; r < a->n_rows && settled; r++) {
		double missing = a->price[r] > 0 ? fabs(a->gradient[r]) : a->gradient[r];
		settled = !a->rows[r].priced || missing <= SETTLED * a->rows[r].size_w;
	}
	return settled;
}

/* What the answers still miss or give too much, at the prices, against the loss. */
static bool is_far(const ww_alloc *a)
{
	double off = 0;
	for (size_t r = 0; r < a->n_rows; r++)
		off += a->price[r] * fabs(a->gradient[r]);
	return off > FAR * min_of(a->loss - a->lower, FAR_LOSS * fabs(a->loss));
}

bool price_sweep(ww_alloc *a)
{
	double full = full_value(a), scale = max_of(fabs(full - a->loss), 1e-12), lower = a->lower, *step = a->work[0];
	double gap = (a->loss - lower) / scale;
	if (a->stalled >= STALLED_SWEEPS || (gap <= GOOD_GAP && a->tidy && (!a->can_let_go || is_settled(a))))
		return false;
	set_hold(a, gap < NEARLY_GOOD);
	if (a->at_anchor)
		answers_hold(a);
	else if (a->hold > 0)
		a->dual = evaluate(a, a->price);
	a->at_anchor = false;
	for (int n = 0; n < STEPS && (n == 0 || is_far(a)); n++) {
		wake_rows(a);
		newton_step(a, step, min_of(max_of(gap, 1e-6), 0.03));
		if (!line_search(a, step))
			row_by_row(a, NULL);
	}
	repair(a, a->cut);
	memcpy(a->anchor, a->plan, a->n * sizeof *a->anchor);
	bool better = take_plan(a);
	if (a->hold > 0) {
		a->hold = 0;
		a->dual = evaluate(a, a->price);
	}
	a->lower = max_of(a->lower, a->dual);
	a->stalled = better || a->lower > lower + 1e-12 * scale ? 0 : a->stalled + 1;
	return true;
}

/* The objective of the published division on the curves themselves, without the pull to the equal cut. */
static double real_value(const ww_alloc *a)
{
	double sum = 0;
	for (size_t i = 0; i < a->n; i++) {
		const struct alloc_job *j = &a->jobs[i];
		double kept = a->shares[j->index].throughput_frac;
		sum += j->gain * (a->objective == WW_OBJECTIVE_LOG ? log(max_of(kept, 1e-3)) : kept);
	}
	return sum;
}

void price_summary(ww_alloc *a)
{
	struct ww_alloc_summary *s = &a->summary;
	double full = full_value(a);
	if (!a->started) {
		a->loss = a->lower = 0;
		for (size_t i = 0; i < a->n; i++) {
			a->loss += answer_loss(a, i, a->jobs[i].cut);
			a->lower += a->answers[i].loss_lo;
		}
	}
	s->value = a->unit * (full - a->loss);
	s->bound = a->unit * (full - a->lower);
	if (a->objective == WW_OBJECTIVE_MAXMIN) {
		double least = 1, most = a->started ? a->level_bound : 1;
		for (size_t i = 0; i < a->n; i++) {
			least = min_of(least, level_at(&a->jobs[i], a->jobs[i].cut));
			if (!a->started)
				most = min_of(most, level_at(&a->jobs[i], a->jobs[i].lo));
		}
		s->value = a->n ? least : 0;
		s->bound = a->n ? max_of(least, most) : 0;
	}
	s->bound = max_of(s->bound, s->value); /* the two may cross by rounding */
	double gap = s->bound - s->value;
	double real = a->objective == WW_OBJECTIVE_MAXMIN ? s->value : a->unit * real_value(a);
	if (real == 0) /* every job stands still: in terms of what they would do */
		real = a->unit * full;
	s->bound_gap_frac = gap == 0 ? 0 : real != 0 ? gap / fabs(real) : NAN;
}
