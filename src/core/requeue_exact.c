/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The best choice among few candidates: depth first, tier by tier from the highest promise, within a tier by id, taken before
 * not taken, so that of equal choices the first one found is the one that ties ask for.
 *
 * A branch is left when its jobs cannot cover, when it takes one job and not another that frees no less at a lower loss, or
 * when it cannot become better: its tier's loss is at least that of the decided jobs plus
 *
 *     sum_r u_r (need_r - L_r) + sum_j min(0, loss_j - sum_r u_r freed_jr)
 *
 * for any prices u >= 0, with L_r all that the lower tiers free and j the tier's undecided jobs (Lagrange). Prices are found
 * once per tier, one row after another and then by steps on all rows at once.
 */
#include "core/requeue_internal.h"

#include <math.h>

#define PRICE_TURNS 8
#define CLIMB_TURNS 100
#define CLIMB_PATIENCE 8
#define NO_ROW UINT32_MAX
#define COUNTS 64 /* above EXACT_JOBS: COUNTS x loss + number compares as loss, then number */

struct key {
	int64_t loss[N_TIERS];
	uint32_t n[N_TIERS];
};

struct search {
	ww_requeue *q;
	uint32_t first, n, n_rows;
	int last_tier;
	int64_t freed[EXACT_JOBS][EXACT_ROWS];
	int64_t after[EXACT_JOBS + 1][EXACT_ROWS]; /* what this job and those behind free */
	int64_t rem[EXACT_JOBS + 1][EXACT_ROWS];   /* what is lacking before this job is decided */
	double price[N_TIERS][EXACT_ROWS];
	double slack[N_TIERS];         /* of rounding in bounds */
	int64_t unit[N_TIERS];         /* all losses of the tier are multiples of it */
	double worth[EXACT_JOBS];      /* sum_r u_r freed_r of the job */
	double gain[EXACT_JOBS + 1];   /* sum of min(0, loss - worth) of this job and those behind in its tier */
	double priced[EXACT_JOBS + 1]; /* sum_r u_r (rem_r - L_r) */
	uint32_t end[N_TIERS];         /* first job of a lower tier */
	uint32_t better[EXACT_JOBS];   /* jobs that are taken before this one */
	uint32_t worse[EXACT_JOBS];    /* those that are taken after this one */
	uint32_t taken, skipped;       /* decided so far */
	struct key now, best;
	uint32_t best_taken;
	bool best_is_start; /* an equal choice replaces it */
};

static const struct candidate *job_at(const struct search *s, uint32_t i)
{
	return &s->q->jobs[s->first + i];
}

/* In bounds: loss and number in one. */
static double cost_of(const struct search *s, uint32_t i)
{
	return (double)(COUNTS * job_at(s, i)->loss + 1);
}

static int compare_keys(const struct key *a, const struct key *b, int n_tiers)
{
	int order = 0;
	for (int t = 0; t < n_tiers && order == 0; t++) {
		order = (a->loss[t] > b->loss[t]) - (a->loss[t] < b->loss[t]);
		if (order == 0)
			order = (a->n[t] > b->n[t]) - (a->n[t] < b->n[t]);
	}
	return order;
}

/* ---- Set up ------------------------------------------------------------------------------------------------------------ */

/* Numbers the rows that lack watts. False when they are too many. */
static bool number_rows(struct search *s, const struct range *range)
{
	ww_requeue *q = s->q;
	for (uint32_t r = range->first_row; r < range->first_row + range->n_rows; r++) {
		q->row_list[r] = NO_ROW;
		if (q->rows[r].lack <= 0)
			continue;
		if (s->n_rows == EXACT_ROWS)
			return false;
		s->rem[0][s->n_rows] = q->rows[r].lack;
		q->row_list[r] = s->n_rows++;
	}
	return true;
}

static void read_freed(struct search *s)
{
	for (uint32_t i = 0; i < s->n; i++) {
		const struct candidate *job = job_at(s, i);
		for (uint32_t k = 0; k < job->n_freed; k++) {
			const struct freed *f = &s->q->freed[job->first + k];
			uint32_t r = s->q->row_list[f->row];
			if (r != NO_ROW)
				s->freed[i][r] = f->watts < s->rem[0][r] ? f->watts : s->rem[0][r];
		}
		s->last_tier = job->tier;
		for (int t = 0; t < N_TIERS; t++)
			s->end[t] += job->tier <= t;
	}
	for (uint32_t i = s->n; i-- > 0;)
		for (uint32_t r = 0; r < s->n_rows; r++)
			s->after[i][r] = s->after[i + 1][r] + s->freed[i][r];
}

/* Whoever takes b without a, of the same tier, could take a instead and be better, or equal and first. */
static bool dominates(const struct search *s, uint32_t a, uint32_t b)
{
	const struct candidate *p = job_at(s, a), *q = job_at(s, b);
	bool yes = a != b && p->tier == q->tier && (p->loss < q->loss || (p->loss == q->loss && a < b));
	for (uint32_t r = 0; yes && r < s->n_rows; r++)
		yes = s->freed[a][r] >= s->freed[b][r];
	return yes;
}

static void find_dominated(struct search *s)
{
	for (uint32_t a = 0; a < s->n; a++)
		for (uint32_t b = 0; b < s->n; b++)
			if (dominates(s, a, b)) {
				s->better[b] |= UINT32_C(1) << a;
				s->worse[a] |= UINT32_C(1) << b;
			}
}

/* ---- Prices ------------------------------------------------------------------------------------------------------------- */

struct step {
	double price, watts;
};

static void insert_step(struct step *steps, size_t n, struct step step)
{
	size_t to = n;
	for (; to > 0 && steps[to - 1].price > step.price; to--)
		steps[to] = steps[to - 1];
	steps[to] = step;
}

/* The price of one row that makes the bound highest, the others kept. */
static double best_price(const struct search *s, int tier, uint32_t row, double need)
{
	const double *price = s->price[tier];
	struct step steps[EXACT_JOBS];
	size_t n = 0;
	for (uint32_t i = tier ? s->end[tier - 1] : 0; i < s->end[tier]; i++) {
		double left = cost_of(s, i), watts = (double)s->freed[i][row];
		for (uint32_t r = 0; r < s->n_rows; r++)
			left -= r == row ? 0 : price[r] * (double)s->freed[i][r];
		if (watts > 0 && left <= 0)
			need -= watts;
		else if (watts > 0)
			insert_step(steps, n++, (struct step){left / watts, watts});
	}
	double best = 0;
	for (size_t i = 0; i < n && need > 0; i++) {
		best = steps[i].price;
		need -= steps[i].watts;
	}
	return best;
}

static int64_t common_divisor(int64_t a, int64_t b)
{
	while (b > 0) {
		int64_t rest = a % b;
		a = b;
		b = rest;
	}
	return a;
}

/* The bound at these prices, and how it rises with each. */
static double bound_at(const struct search *s, int tier, const double *need, double *rise)
{
	double bound = 0;
	for (uint32_t r = 0; r < s->n_rows; r++) {
		bound += s->price[tier][r] * need[r];
		rise[r] = need[r];
	}
	for (uint32_t i = tier ? s->end[tier - 1] : 0; i < s->end[tier]; i++) {
		double left = cost_of(s, i);
		for (uint32_t r = 0; r < s->n_rows; r++)
			left -= s->price[tier][r] * (double)s->freed[i][r];
		bound += fmin(0, left);
		for (uint32_t r = 0; r < s->n_rows && left < 0; r++)
			rise[r] -= (double)s->freed[i][r];
	}
	return bound;
}

/* Where no single price is better any more, several together may be: Polyak's steps towards `goal`. */
static void climb(struct search *s, int tier, const double *need, double goal)
{
	double *price = s->price[tier], best[EXACT_ROWS] = {0}, rise[EXACT_ROWS], highest = -INFINITY, pace = 1;
	for (int turn = 0, since = 0; turn < CLIMB_TURNS; turn++) {
		double bound = bound_at(s, tier, need, rise), square = 0;
		since = bound > highest ? 0 : since + 1;
		for (uint32_t r = 0; r < s->n_rows; r++) {
			best[r] = bound > highest ? price[r] : best[r];
			if (need[r] > 0 && (price[r] > 0 || rise[r] > 0))
				square += rise[r] / need[r] * (rise[r] / need[r]);
		}
		highest = fmax(highest, bound);
		if (since == CLIMB_PATIENCE) {
			pace /= 2;
			since = 0;
		}
		for (uint32_t r = 0; r < s->n_rows; r++)
			if (need[r] > 0 && square > 0)
				price[r] = fmax(0, price[r] + pace * fmax(goal - bound, 0) / square * rise[r] /
				                                      need[r] / need[r]);
	}
	for (uint32_t r = 0; r < s->n_rows; r++)
		price[r] = best[r];
}

/* `given`: what the higher tiers free in the choice to start from. */
static void find_prices(struct search *s, int tier, const int64_t *given)
{
	double size = 0, need[EXACT_ROWS];
	const uint32_t end = s->end[tier];
	for (uint32_t r = 0; r < s->n_rows; r++)
		need[r] = (double)(s->rem[0][r] - given[r] - s->after[end][r]);
	for (int turn = 0; turn < PRICE_TURNS; turn++)
		for (uint32_t r = 0; r < s->n_rows; r++)
			s->price[tier][r] = best_price(s, tier, r, need[r]);
	if (s->n_rows > 1)
		climb(s, tier, need, (double)(COUNTS * s->best.loss[tier] + s->best.n[tier]));
	for (uint32_t r = 0; r < s->n_rows; r++)
		size += s->price[tier][r] * (double)(s->rem[0][r] + s->after[0][r]);
	for (uint32_t i = end; i-- > (tier ? s->end[tier - 1] : 0);) {
		for (uint32_t r = 0; r < s->n_rows; r++)
			s->worth[i] += s->price[tier][r] * (double)s->freed[i][r];
		s->gain[i] = fmin(0, cost_of(s, i) - s->worth[i]) + (i + 1 < end ? s->gain[i + 1] : 0);
		s->unit[tier] = common_divisor(s->unit[tier], job_at(s, i)->loss);
	}
	s->slack[tier] = 1e-3 + 1e-14 * size;
}

static void start(struct search *s)
{
	int64_t given[EXACT_ROWS] = {0};
	uint32_t i = 0;
	for (int t = 0; t < N_TIERS; t++) {
		const uint32_t first = i;
		int64_t of_tier[EXACT_ROWS] = {0};
		for (; i < s->end[t]; i++) {
			if (!(s->best_taken >> i & 1))
				continue;
			s->best.loss[t] += job_at(s, i)->loss;
			s->best.n[t]++;
			for (uint32_t r = 0; r < s->n_rows; r++)
				of_tier[r] += s->freed[i][r];
		}
		if (first < i)
			find_prices(s, t, given);
		for (uint32_t r = 0; r < s->n_rows; r++)
			given[r] += of_tier[r];
	}
}

/* ---- Search ------------------------------------------------------------------------------------------------------------- */

static bool is_within(const struct search *s, const int64_t *a, const int64_t *b)
{
	bool within = true;
	for (uint32_t r = 0; r < s->n_rows && within; r++)
		within = a[r] <= b[r];
	return within;
}

static bool is_covered(const struct search *s, uint32_t i)
{
	return is_within(s, s->rem[i], s->after[s->n]);
}

/* What is lacking before job i cannot be covered by anything better than the best. */
static bool is_hopeless(const struct search *s, uint32_t i)
{
	const int t = job_at(s, i)->tier;
	int order = compare_keys(&s->now, &s->best, t);
	if (order != 0)
		return order > 0;
	double bound = s->priced[i] + s->gain[i] - s->slack[t];
	int64_t cost = COUNTS * s->now.loss[t] + s->now.n[t] + (bound > 0 ? (int64_t)ceil(fmin(bound, 1e15)) : 0);
	int64_t unit = s->unit[t] > 0 ? s->unit[t] : INT64_MAX / COUNTS;
	int64_t loss = cost / (COUNTS * unit) * unit, n = cost % (COUNTS * unit);
	if (n > EXACT_JOBS) {
		loss += unit;
		n = 0;
	}
	int64_t least = (int64_t)s->now.n[t] + !is_within(s, s->rem[i], s->after[s->end[t]]);
	n = n > least ? n : least;
	if (loss != s->best.loss[t])
		return loss > s->best.loss[t];
	if (n != (int64_t)s->best.n[t])
		return n > (int64_t)s->best.n[t];
	return t == s->last_tier && !s->best_is_start;
}

static void price_tier(struct search *s, uint32_t i)
{
	const int t = job_at(s, i)->tier;
	s->priced[i] = 0;
	for (uint32_t r = 0; r < s->n_rows; r++)
		s->priced[i] += s->price[t][r] * (double)(s->rem[i][r] - s->after[s->end[t]][r]);
}

static void keep_if_better(struct search *s)
{
	int order = compare_keys(&s->now, &s->best, N_TIERS);
	if (order > 0 || (order == 0 && !s->best_is_start))
		return;
	s->best = s->now;
	s->best_taken = s->taken;
	s->best_is_start = false;
}

static bool helps(const struct search *s, uint32_t i)
{
	bool yes = false;
	for (uint32_t r = 0; r < s->n_rows && !yes; r++)
		yes = s->freed[i][r] > 0 && s->rem[i][r] > 0;
	return yes;
}

/* Decides job i and those behind it. At most EXACT_JOBS deep. */
static void decide(struct search *s, uint32_t i)
{
	if (s->q->visits == 0)
		return;
	s->q->visits--;
	if (is_covered(s, i)) {
		keep_if_better(s);
		return;
	}
	const int t = job_at(s, i)->tier;
	const uint32_t bit = UINT32_C(1) << i;
	if (i == 0 || job_at(s, i - 1)->tier != t)
		price_tier(s, i);
	if (is_hopeless(s, i))
		return;
	if (!(s->skipped & s->better[i]) && helps(s, i)) {
		for (uint32_t r = 0; r < s->n_rows; r++)
			s->rem[i + 1][r] = s->rem[i][r] - s->freed[i][r];
		s->priced[i + 1] = s->priced[i] - s->worth[i];
		s->now.loss[t] += job_at(s, i)->loss;
		s->now.n[t]++;
		s->taken |= bit;
		decide(s, i + 1);
		s->taken &= ~bit;
		s->now.loss[t] -= job_at(s, i)->loss;
		s->now.n[t]--;
	}
	if (!(s->taken & s->worse[i]) && is_within(s, s->rem[i], s->after[i + 1])) {
		for (uint32_t r = 0; r < s->n_rows; r++)
			s->rem[i + 1][r] = s->rem[i][r];
		s->priced[i + 1] = s->priced[i];
		s->skipped |= bit;
		decide(s, i + 1);
		s->skipped &= ~bit;
	}
}

bool requeue_exactly(ww_requeue *q, const struct range *range)
{
	struct search s = {.q = q, .first = range->first, .n = range->n, .best_is_start = true};
	if (range->n > EXACT_JOBS || q->visits == 0)
		return false;
	for (uint32_t i = 0; i < s.n; i++) {
		s.best_taken |= (uint32_t)job_at(&s, i)->taken << i;
		if (job_at(&s, i)->taken)
			requeue_put(q, s.first + i, false);
	}
	bool small = number_rows(&s, range);
	if (small) {
		read_freed(&s);
		find_dominated(&s);
		start(&s);
		decide(&s, 0);
	}
	for (uint32_t i = 0; i < s.n; i++)
		if (s.best_taken >> i & 1)
			requeue_put(q, s.first + i, true);
	return small && q->visits > 0;
}
