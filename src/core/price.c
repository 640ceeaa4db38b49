/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Division by prices. Row r asks for need_r watts of cut, job j gives W_rj d_j of them. With prices p >= 0 the dual
 *
 *     D(p) = sum_r p_r need_r + sum_j min over lo_j <= d <= hi_j of gain_j f_j(d) - (sum_r p_r W_rj) d
 *
 * is never above the loss of any division that keeps all rows (weak duality), so the best D seen proves a bound, for any
 * prices. f is convex and its derivative strictly rises, so each job's best d is a continuous function of its price
 * and D is smooth enough for Newton's method on the rows that have a price or are broken: conjugate gradients on
 * sum_j W_rj k_j W_sj, k_j the derivative of d_j, and a line search on D.
 *
 * The jobs' answers to the prices may break rows a little. Deeper cuts never break a row, so a division that keeps all
 * is reached by deepening along the rows' own directions; what is then cut too much is given back.
 *
 * Start: for rows that nest in one another the prices are known exactly. The effective price of a job is the largest of
 * the levels of its rows, and each level is found from the small rows to the large ones.
 */
#include "core/allocate_internal.h"

#include <math.h>
#include <string.h>

#define GOOD_GAP 1e-12   /* relative gap at which nothing is left to gain */
#define STALLED_SWEEPS 4 /* sweeps without progress after which rounding has won */
#define LINE_STEPS 24
#define LEAST_DAMPING 1e-8
#define CG_STEPS 60
#define LOG_LOSS_MOST 0.999 /* log goes on as a straight line of the loss from here, so that it has no pole */

/* ---- One job's answer to a price ---------------------------------------------------------------------------------- */

static bool is_log(const ww_alloc *a)
{
	return a->objective == WW_OBJECTIVE_LOG;
}

static double knot_slope(const struct pieces *p, uint32_t i, bool log)
{
	return log ? p->slope[i] / fmax(1 - p->loss[i], 1 - LOG_LOSS_MOST) : p->slope[i];
}

static uint32_t find_piece(struct pieces *p, double slope, bool log)
{
	uint32_t i = p->hint;
	while (i > 0 && slope < knot_slope(p, i, log))
		i--;
	while (i + 2 < p->n && slope >= knot_slope(p, i + 1, log))
		i++;
	p->hint = i;
	return i;
}

static double piece_bend(const struct pieces *p, uint32_t i)
{
	return (p->slope[i + 1] - p->slope[i]) / (p->cut[i + 1] - p->cut[i]);
}

/* Cut in piece i at which the marginal loss, scaled, reaches `slope`; `bend` = derivative of the marginal. */
static double cut_at(const struct pieces *p, uint32_t i, double scale, double slope, double *bend)
{
	*bend = scale * piece_bend(p, i);
	return p->cut[i] + (slope / scale - p->slope[i]) / piece_bend(p, i);
}

/* The same for -log(1 - loss): (s + b x) = slope (kept - s x - b x^2 / 2), the root >= 0. */
static double cut_at_log(const struct pieces *p, uint32_t i, double slope, double *bend)
{
	double b = piece_bend(p, i), s = p->slope[i], kept = 1 - p->loss[i];
	double half = b + slope * s, rest = fmax(0, slope * kept - s);
	double x = 2 * rest / (half + sqrt(half * half + 2 * slope * b * rest));
	double left = kept - x * (s + b * x / 2);
	if (!(left > 1 - LOG_LOSS_MOST))
		return cut_at(p, i, 1 / (1 - LOG_LOSS_MOST), slope, bend);
	*bend = b / left + slope * slope;
	return p->cut[i] + x;
}

static double answer(const ww_alloc *a, struct alloc_job *j, double pull, double *k)
{
	double slope = pull / j->gain, bend = 0, cut = 0;
	*k = 0;
	if (slope > j->pieces.slope[0]) {
		uint32_t i = find_piece(&j->pieces, slope, is_log(a));
		cut = is_log(a) ? cut_at_log(&j->pieces, i, slope, &bend) : cut_at(&j->pieces, i, 1, slope, &bend);
	}
	if (cut <= j->lo)
		return j->lo;
	if (cut >= j->hi)
		return j->hi;
	*k = 1 / (j->gain * bend);
	return cut;
}

static double piece_loss(const ww_alloc *a, const struct alloc_job *j, double cut)
{
	const struct pieces *p = &j->pieces;
	uint32_t i = p->hint;
	while (i > 0 && cut < p->cut[i])
		i--;
	while (i + 2 < p->n && cut >= p->cut[i + 1])
		i++;
	double x = cut - p->cut[i], loss = p->loss[i] + x * (p->slope[i] + piece_bend(p, i) * x / 2);
	if (!is_log(a))
		return loss;
	return -log1p(-fmin(loss, LOG_LOSS_MOST)) + fmax(0, loss - LOG_LOSS_MOST) / (1 - LOG_LOSS_MOST);
}

/* ---- All jobs' answers ------------------------------------------------------------------------------------------------ */

/* Fills pull, cut, bend and gradient for these prices; returns the dual. */
static double evaluate(ww_alloc *a, const double *price)
{
	double dual = 0;
	for (size_t r = 0; r < a->n_rows; r++) {
		a->gradient[r] = a->rows[r].need_w;
		if (price[r] > 0)
			dual += price[r] * a->rows[r].need_w;
	}
	for (size_t i = 0; i < a->n; i++) {
		struct alloc_job *j = &a->jobs[i];
		const struct load *load = &a->loads[j->first];
		double pull = 0;
		for (size_t k = 0; k < j->n_loads; k++)
			pull += price[load[k].row] * load[k].watts;
		double cut = answer(a, j, pull, &a->bend[i]);
		dual += j->gain * piece_loss(a, j, cut) - pull * cut;
		a->pull[i] = pull;
		a->cut[i] = cut;
		for (size_t k = 0; k < j->n_loads; k++)
			a->gradient[load[k].row] -= load[k].watts * cut;
	}
	return dual;
}

/* ---- One row alone ---------------------------------------------------------------------------------------------------- */

/* How a job's price follows from a row's level. */
typedef double pull_at(const ww_alloc *a, const struct load *load, double level);

/* Watts of cut of a row's jobs at a level, and their derivative by the level's effect on the jobs' prices. */
static double row_watts(ww_alloc *a, const struct alloc_row *row, pull_at *pull, double level, double *slope)
{
	double watts = 0;
	*slope = 0;
	for (size_t i = row->first; i < row->first + row->n_loads; i++) {
		const struct load *load = &a->by_row[i];
		double bend;
		watts += load->watts * answer(a, &a->jobs[load->job], pull(a, load, level), &bend);
		*slope += load->watts * load->watts * bend;
	}
	return watts;
}

/* The least level >= low at which the row is met: Newton's steps inside a bracket. */
static double meet_row(ww_alloc *a, const struct alloc_row *row, pull_at *pull, double low)
{
	double slope, watts = row_watts(a, row, pull, low, &slope);
	double lo = low, hi = INFINITY, at = low;
	for (int i = 0; i < 100 && fabs(watts - row->need_w) > 1e-10 * row->size_w; i++) {
		if (watts < row->need_w)
			lo = at;
		else
			hi = at;
		if (hi == low || (isfinite(hi) && hi - lo <= 1e-15 * hi))
			break;
		double next = slope > 0 ? at + (row->need_w - watts) / slope : INFINITY;
		if (!(next > lo && next < hi))
			next = isinf(hi) ? fmax(16 * lo, 1e-12) : lo + (hi - lo) / 2;
		at = next;
		watts = row_watts(a, row, pull, at, &slope);
	}
	return at;
}

/* ---- Where prices start ------------------------------------------------------------------------------------------------ */

/* A job's price is the larger of its effective level so far (in a->plan) and the row's level, per watt. */
static double level_pull(const ww_alloc *a, const struct load *load, double level)
{
	return fmax(a->plan[load->job], level) * a->jobs[load->job].baseline_w;
}

static void find_levels(ww_alloc *a, double *level)
{
	memset(a->plan, 0, a->n * sizeof *a->plan);
	for (size_t i = 0; i < a->n_rows; i++) {
		size_t r = a->small_first[i];
		const struct alloc_row *row = &a->rows[r];
		level[r] = 0;
		if (!row->priced)
			continue;
		level[r] = meet_row(a, row, level_pull, 0);
		for (size_t k = row->first; k < row->first + row->n_loads; k++)
			a->plan[a->by_row[k].job] = fmax(a->plan[a->by_row[k].job], level[r]);
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
		for (size_t k = row->first; k < row->first + row->n_loads; k++) {
			around += a->by_row[k].watts * a->plan[a->by_row[k].job];
			watts += a->by_row[k].watts;
		}
		a->price[r] = watts > 0 ? fmax(0, level[r] - around / watts) : 0;
		for (size_t k = row->first; k < row->first + row->n_loads; k++) {
			const struct alloc_job *j = &a->jobs[a->by_row[k].job];
			a->plan[a->by_row[k].job] += a->price[r] * a->by_row[k].watts / j->baseline_w;
		}
	}
}

/* ---- Maxmin: the level ---------------------------------------------------------------------------------------------- */

/* The deepest cut with which a job's weighted loss keeps to 1 - level. */
static double cut_at_level(const struct alloc_job *j, double level)
{
	struct ww_curve whole = j->curve;
	whole.max_cut_frac = 1;
	return fmax(j->lo, fmin(j->hi, ww_curve_cut_at_loss(&whole, (1 - level) / j->weight)));
}

static bool level_is_kept(const ww_alloc *a, double level)
{
	for (size_t r = 0; r < a->n_rows; r++)
		a->gradient[r] = a->rows[r].need_w;
	for (size_t i = 0; i < a->n; i++) {
		double cut = cut_at_level(&a->jobs[i], level);
		const struct load *load = &a->loads[a->jobs[i].first];
		for (size_t k = 0; k < a->jobs[i].n_loads; k++)
			a->gradient[load[k].row] -= load[k].watts * cut;
	}
	for (size_t r = 0; r < a->n_rows; r++)
		if (a->gradient[r] > 1e-12 * a->rows[r].size_w)
			return false;
	return true;
}

static double least_kept(const ww_alloc *a)
{
	double least = 1;
	for (size_t i = 0; i < a->n; i++)
		least = fmin(least, 1 - a->jobs[i].weight * ww_curve_loss(&a->jobs[i].curve, a->jobs[i].cut));
	return least;
}

/* The highest level that all can keep; nobody may go below it afterwards. */
static void solve_level(ww_alloc *a)
{
	double lo = 0, hi = 1, most = 1;
	for (size_t i = 0; i < a->n; i++) {
		most = fmin(most, 1 - a->jobs[i].weight * ww_curve_loss(&a->jobs[i].curve, a->jobs[i].lo));
		lo = fmin(lo, 1 - a->jobs[i].weight * ww_curve_loss(&a->jobs[i].curve, a->jobs[i].hi));
	}
	for (int step = 0; step < 60 && hi - lo > 1e-13 * hi; step++) {
		double mid = lo + (hi - lo) / 2;
		if (level_is_kept(a, mid))
			lo = mid;
		else
			hi = mid;
	}
	a->level_bound = fmin(hi, most);
	for (size_t i = 0; i < a->n; i++) {
		struct alloc_job *j = &a->jobs[i];
		j->hi = cut_at_level(j, lo);
		j->cut = fmin(j->cut, j->hi);
	}
}

/* ---- Start ---------------------------------------------------------------------------------------------------------------- */

/* A row of one job is a bound of that job; a row that the bounds alone meet needs no price. */
static void choose_rows(ww_alloc *a)
{
	for (size_t r = 0; r < a->n_rows; r++) {
		const struct alloc_row *row = &a->rows[r];
		if (row->n_loads == 1 && row->need_w > 0) {
			struct alloc_job *j = &a->jobs[a->by_row[row->first].job];
			j->lo = fmin(j->hi, fmax(j->lo, row->need_w / a->by_row[row->first].watts));
		}
	}
	for (size_t r = 0; r < a->n_rows; r++) {
		struct alloc_row *row = &a->rows[r];
		double watts = 0, most = 0;
		for (size_t i = row->first; i < row->first + row->n_loads; i++) {
			watts += a->by_row[i].watts * a->jobs[a->by_row[i].job].lo;
			most += a->by_row[i].watts * a->jobs[a->by_row[i].job].hi;
		}
		row->need_w = fmin(row->need_w, most); /* what rounding asks for beyond would have no finite price */
		row->priced = row->n_loads > 1 && watts < row->need_w;
		if (!row->priced)
			a->price[r] = 0;
	}
}

static double plan_loss(const ww_alloc *a)
{
	double loss = 0;
	for (size_t i = 0; i < a->n; i++)
		loss += a->jobs[i].gain * piece_loss(a, &a->jobs[i], a->plan[i]);
	return loss;
}

static void repair(ww_alloc *a, const double *start);

void price_start(ww_alloc *a)
{
	if (a->objective == WW_OBJECTIVE_MAXMIN)
		solve_level(a);
	choose_rows(a);
	if (a->last_rows != a->n_rows) {
		find_levels(a, a->work[0]);
		levels_to_prices(a, a->work[0]);
	}
	a->last_rows = a->n_rows;
	a->started = true;
	a->stalled = 0;
	a->damping = LEAST_DAMPING;
	a->dual = a->lower = evaluate(a, a->price);
	for (size_t i = 0; i < a->n; i++)
		a->bend[i] = 0;
	for (size_t i = 0; i < a->n; i++)
		a->plan[i] = a->jobs[i].cut;
	repair(a, a->plan); /* the level of maxmin may have taken cuts back */
	for (size_t i = 0; i < a->n; i++)
		a->jobs[i].cut = a->plan[i];
	a->loss = plan_loss(a);
	a->dual = evaluate(a, a->price);
}

/* ---- Newton's direction -------------------------------------------------------------------------------------------------- */

/* out = (sum_j W_rj k_j W_sj) v over active rows. */
static void curvature_times(const ww_alloc *a, const double *v, double *out)
{
	memset(out, 0, a->n_rows * sizeof *out);
	for (size_t i = 0; i < a->n; i++) {
		if (a->bend[i] == 0)
			continue;
		const struct load *load = &a->loads[a->jobs[i].first];
		double sum = 0;
		for (size_t k = 0; k < a->jobs[i].n_loads; k++)
			sum += load[k].watts * v[load[k].row];
		sum *= a->bend[i];
		for (size_t k = 0; k < a->jobs[i].n_loads; k++)
			out[load[k].row] += load[k].watts * sum;
	}
}

static void curvature_diagonal(const ww_alloc *a, double *out)
{
	memset(out, 0, a->n_rows * sizeof *out);
	for (size_t i = 0; i < a->n; i++) {
		const struct load *load = &a->loads[a->jobs[i].first];
		for (size_t k = 0; k < a->jobs[i].n_loads; k++)
			out[load[k].row] += a->bend[i] * load[k].watts * load[k].watts;
	}
}

static bool is_active(const ww_alloc *a, size_t r)
{
	return a->rows[r].priced && (a->price[r] > 0 || a->gradient[r] > 0);
}

/* Preconditioned conjugate gradients; rows that are not active, or whose jobs do not answer, keep a step of 0. */
static void newton_step(ww_alloc *a, double *step)
{
	double *diagonal = a->work[1], *residual = a->work[2], *direction = a->work[3], *image = a->work[4], rz = 0;
	curvature_diagonal(a, diagonal);
	for (size_t r = 0; r < a->n_rows; r++) {
		bool used = is_active(a, r) && diagonal[r] > 0;
		diagonal[r] = used ? diagonal[r] * (1 + a->damping) : 0;
		residual[r] = used ? a->gradient[r] : 0;
		direction[r] = used ? residual[r] / diagonal[r] : 0;
		step[r] = 0;
		rz += residual[r] * direction[r];
	}
	double enough = 1e-8 * rz;
	for (int n = 0; n < CG_STEPS && rz > enough; n++) {
		double curvature = 0, next = 0;
		curvature_times(a, direction, image);
		for (size_t r = 0; r < a->n_rows; r++)
			curvature += direction[r] * (image[r] += a->damping * diagonal[r] * direction[r]);
		if (!(curvature > 0))
			break;
		for (size_t r = 0; r < a->n_rows; r++) {
			if (diagonal[r] == 0)
				continue;
			step[r] += rz / curvature * direction[r];
			residual[r] -= rz / curvature * image[r];
			next += residual[r] * residual[r] / diagonal[r];
		}
		for (size_t r = 0; r < a->n_rows; r++)
			if (diagonal[r] > 0)
				direction[r] = residual[r] / diagonal[r] + next / rz * direction[r];
		rz = next;
	}
}

/* Takes the longest of the steps 1, 1/2, 1/4 ... that raises the dual, and returns its length; 0 when none does. */
static double line_search(ww_alloc *a, const double *step)
{
	double *trial = a->work[5], before = a->dual, length = 1;
	for (int n = 0; n < LINE_STEPS; n++, length /= 2) {
		for (size_t r = 0; r < a->n_rows; r++)
			trial[r] = fmax(0, a->price[r] + length * step[r]);
		a->dual = evaluate(a, trial);
		if (a->dual > before) {
			memcpy(a->price, trial, a->n_rows * sizeof *trial);
			return length;
		}
	}
	a->dual = evaluate(a, a->price);
	return 0;
}

/* Rows with nearly the same jobs make Newton's system nearly singular; then short steps ask for more damping. */
static void adapt_damping(ww_alloc *a, double length)
{
	if (length < 0.3)
		a->damping = fmin(1, a->damping * 100);
	else if (length == 1)
		a->damping = fmax(LEAST_DAMPING, a->damping / 10);
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

/* Sets the price of each row in turn to the one that just meets it. */
static void row_by_row(ww_alloc *a)
{
	memcpy(a->plan, a->pull, a->n * sizeof *a->plan);
	for (size_t i = 0; i < a->n_rows; i++) {
		size_t r = a->small_first[i];
		if (!a->rows[r].priced)
			continue;
		add_row_price(a, &a->rows[r], -a->price[r]);
		a->price[r] = meet_row(a, &a->rows[r], own_pull, 0);
		add_row_price(a, &a->rows[r], a->price[r]);
	}
	a->dual = evaluate(a, a->price);
}

/* ---- A division that keeps every row ------------------------------------------------------------------------------------- */

static double row_deficit(const ww_alloc *a, const struct alloc_row *row)
{
	double deficit = row->need_w;
	for (size_t i = row->first; i < row->first + row->n_loads; i++)
		deficit -= a->by_row[i].watts * a->plan[a->by_row[i].job];
	return deficit;
}

/* Deepens the row's jobs where it costs least: those that answer to prices, in proportion to their answer. */
static void deepen_answering(ww_alloc *a, const struct alloc_row *row, double deficit)
{
	double answer_w = 0;
	for (size_t i = row->first; i < row->first + row->n_loads; i++)
		answer_w += a->by_row[i].watts * a->by_row[i].watts * a->bend[a->by_row[i].job];
	if (answer_w <= 0)
		return;
	for (size_t i = row->first; i < row->first + row->n_loads; i++) {
		const struct load *load = &a->by_row[i];
		double more = deficit / answer_w * load->watts * a->bend[load->job];
		a->plan[load->job] = fmin(a->jobs[load->job].hi, a->plan[load->job] + more);
	}
}

/* Deepens all the row's jobs by the same share of what they have left: always enough. */
static void deepen_all(ww_alloc *a, const struct alloc_row *row, double deficit)
{
	double left = 0;
	for (size_t i = row->first; i < row->first + row->n_loads; i++)
		left += a->by_row[i].watts * (a->jobs[a->by_row[i].job].hi - a->plan[a->by_row[i].job]);
	double share = left > 0 ? fmin(1, deficit / left) : 0;
	for (size_t i = row->first; i < row->first + row->n_loads; i++) {
		double hi = a->jobs[a->by_row[i].job].hi, *cut = &a->plan[a->by_row[i].job];
		*cut = share < 1 ? *cut + share * (hi - *cut) : hi;
	}
}

/* Gives cuts back that no row of the job needs. a->work[0]: watts that each row has too many. */
static void give_back(ww_alloc *a)
{
	double *spare = a->work[0];
	for (size_t r = 0; r < a->n_rows; r++)
		spare[r] = -row_deficit(a, &a->rows[r]);
	for (size_t i = 0; i < a->n; i++) {
		const struct alloc_job *j = &a->jobs[i];
		const struct load *load = &a->loads[j->first];
		double less = a->plan[i] - j->lo;
		for (size_t k = 0; k < j->n_loads; k++)
			less = fmin(less, (spare[load[k].row] - 1e-13 * a->rows[load[k].row].size_w) / load[k].watts);
		if (less <= 0)
			continue;
		a->plan[i] -= less;
		for (size_t k = 0; k < j->n_loads; k++)
			spare[load[k].row] -= less * load[k].watts;
	}
}

/* Turns `start` into a division in a->plan that keeps every row. */
static void repair(ww_alloc *a, const double *start)
{
	memmove(a->plan, start, a->n * sizeof *a->plan);
	for (size_t i = 0; i < a->n_rows; i++) {
		const struct alloc_row *row = &a->rows[a->small_first[i]];
		for (int turn = 0; turn < 3; turn++) {
			double deficit = row_deficit(a, row);
			if (deficit > 0)
				deepen_answering(a, row, deficit);
		}
		double deficit = row_deficit(a, row);
		if (deficit > 0)
			deepen_all(a, row, deficit);
	}
	give_back(a);
}

/* Keeps the new division when it is better. */
static bool take_plan(ww_alloc *a)
{
	double loss = plan_loss(a);
	if (loss >= a->loss)
		return false;
	for (size_t i = 0; i < a->n; i++)
		a->jobs[i].cut = a->plan[i];
	a->loss = loss;
	return true;
}

/* ---- Sweeps ------------------------------------------------------------------------------------------------------------------ */

/* What the objective is when nothing is lost. */
static double full_value(const ww_alloc *a)
{
	double sum = 0;
	for (size_t i = 0; !is_log(a) && i < a->n; i++)
		sum += a->jobs[i].gain;
	return sum;
}

/* A broken row whose jobs all sit at a bound gives Newton nothing to go by. */
static bool has_silent_row(const ww_alloc *a)
{
	const double *diagonal = a->work[1];
	for (size_t r = 0; r < a->n_rows; r++)
		if (a->rows[r].priced && diagonal[r] == 0 && a->gradient[r] > 1e-9 * a->rows[r].size_w)
			return true;
	return false;
}

bool price_sweep(ww_alloc *a)
{
	double full = full_value(a), scale = fmax(fabs(full - a->loss), 1e-12);
	if (a->stalled >= STALLED_SWEEPS || a->loss - a->lower <= GOOD_GAP * scale)
		return false;
	double lower = a->lower, *step = a->work[0];
	newton_step(a, step);
	double length = line_search(a, step);
	adapt_damping(a, length);
	if (length < 0.1 || a->stalled > 0 || has_silent_row(a))
		row_by_row(a);
	a->lower = fmax(a->lower, a->dual);
	repair(a, a->cut);
	bool better = take_plan(a);
	a->stalled = better || a->lower > lower + 1e-12 * scale ? 0 : a->stalled + 1;
	return true;
}

/* Marginal of the objective per unit of cut. */
static double marginal(const ww_alloc *a, const struct alloc_job *j, double cut)
{
	const struct pieces *p = &j->pieces;
	uint32_t i = 0;
	while (i + 2 < p->n && cut >= p->cut[i + 1])
		i++;
	double slope = p->slope[i] + piece_bend(p, i) * (cut - p->cut[i]);
	double loss = p->loss[i] + (cut - p->cut[i]) * (p->slope[i] + slope) / 2;
	return j->gain * (is_log(a) ? slope / (1 - fmin(loss, LOG_LOSS_MOST)) : slope);
}

double single_row_price(const ww_alloc *a, const struct alloc_row *row)
{
	if (row->n_loads != 1 || row->need_w <= 0)
		return 0;
	const struct load *load = &a->by_row[row->first];
	const struct alloc_job *j = &a->jobs[load->job];
	if (j->cut * load->watts > row->need_w * (1 + 1e-9))
		return 0;
	return fmax(0, (marginal(a, j, j->cut) - a->pull[load->job]) / load->watts);
}

void price_summary(ww_alloc *a)
{
	struct ww_alloc_summary *s = &a->summary;
	double full = full_value(a);
	if (!a->started) {
		a->loss = a->lower = 0;
		for (size_t i = 0; i < a->n; i++) {
			a->loss += a->jobs[i].gain * piece_loss(a, &a->jobs[i], a->jobs[i].cut);
			a->lower += a->jobs[i].gain * piece_loss(a, &a->jobs[i], a->jobs[i].lo);
		}
		a->level_bound = INFINITY;
	}
	s->value = a->unit * (full - a->loss);
	s->bound = a->unit * (full - a->lower);
	if (a->objective == WW_OBJECTIVE_MAXMIN) {
		s->value = a->n ? least_kept(a) : 0;
		s->bound = a->started ? fmax(a->level_bound, s->value) : s->value;
	}
	s->bound = fmax(s->bound, s->value); /* the two may cross by rounding */
	double gap = s->bound - s->value;
	s->bound_gap_frac = s->value != 0 ? gap / fabs(s->value) : 0;
}
