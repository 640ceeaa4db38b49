/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator's own data, shared by allocate.c (problem and promises) and the price_*.c (division). */
#ifndef WW_ALLOCATE_INTERNAL_H
#define WW_ALLOCATE_INTERNAL_H

#include "core/core_internal.h"

static inline double min_of(double a, double b)
{
	return a < b ? a : b;
}

static inline double max_of(double a, double b)
{
	return a > b ? a : b;
}

/* One share of a job's power on a row: watts of the row freed by a full cut of the job. */
struct load {
	uint32_t row, job;
	double watts;
};

struct alloc_job {
	uint64_t id;
	size_t index; /* in the caller's array */
	int tier;
	uint32_t gpus;
	double min_w, max_w;
	double baseline_w;        /* charged without a cut, all its GPUs */
	double weight, gain;      /* gain: objective per unit of loss, w or w T0, relative to the largest of all jobs */
	double floor_frac;        /* promised */
	double lowest;            /* cut at the lowest power */
	double reach, reach_kept; /* deepest cut with the floor that can be kept; T/T0 there */
	double floor_cut;         /* deepest cut with the promised floor */
	double least;             /* cut at the highest power */
	double measured;          /* deepest cut measured */
	double lo, hi;            /* bounds of the division */
	double equal, box, trust;
	double cut;            /* best division so far */
	size_t first, n_loads; /* its loads */
	double tilt;           /* the curve it is divided by: trust x its loss + tilt x cut^2 / 2 */
	uint32_t piece;        /* of the curve, at the equal cut */
	struct ww_curve *curve;
};

/* What a sweep reads of a job: its bounds and the piece of its curve that answered last. */
struct answer {
	double gain, baseline_w;
	double lo, hi, loss_lo, loss_hi; /* losses as the objective counts them */
	double cut, end;                 /* of the piece */
	double loss, slope, bend;        /* at its start */
	double from, to;                 /* marginals of the objective per gain between which the piece answers */
	uint32_t piece, first, n_loads;
};

struct alloc_row {
	double need_w;         /* cut that the row needs from its jobs; what cannot be had is taken off */
	double size_w;         /* baseline of its jobs */
	size_t first, n_loads; /* in by_row */
	bool priced;           /* has a price: not met by the bounds alone */
	struct ww_alloc_row_result result;
};

/* Sum over jobs of k w w' over the rows in use, k the job's answer to its price: the upper half by rows, in the order of
 * small_first, and its incomplete factor. */
struct curvature {
	uint32_t *rank, *stamp, *slot; /* per row: place in small_first; scratch */
	uint32_t *first;               /* per place: its pairs */
	uint32_t *column;              /* per pair */
	double *value, *factor;
	double *diagonal, *extra, *pivot; /* per row; extra: from jobs of too many loads for pairs */
	bool *used, *fixed;
	uint32_t *long_jobs, n_long;
	uint32_t n_pairs;
};

/* Room for a problem. */
struct alloc_room {
	size_t jobs, rows, loads, pairs;
};

#define MOST_PAIRED_LOADS 24 /* a job of more loads takes part in the curvature without pairs */

struct place {
	uint64_t id;
	uint32_t index; /* in the caller's array */
};

/* What the header calls ww_alloc. */
struct ww_alloc {
	size_t n, n_rows; /* jobs, rows including the budget as the last */
	struct alloc_room room;
	size_t n_loads;
	enum ww_objective objective;
	double unit;             /* the largest gain: what the objective is counted in */
	struct place *places;    /* ascending id */
	struct alloc_job *jobs;  /* in that order */
	struct ww_curve *curves; /* of the jobs */
	struct answer *answers;
	struct alloc_row *rows;
	struct load *loads;             /* by job */
	struct ww_row_share *shares_in; /* by job, in the caller's order */
	struct load *by_row;
	uint32_t *small_first;   /* rows in ascending size: a row comes after all rows inside it */
	double *price;           /* per row: objective per watt */
	double *gradient;        /* per row: watts of cut missing at the response to the prices */
	double *work[6];         /* per row */
	double *cut, *bend;      /* per job: response to the prices and its derivative */
	double *pull, *plan;     /* per job: price of a unit of cut; a division that keeps every row */
	double *anchor;          /* per job: the cut that a pull of `hold` per watt and cut holds it to */
	double hold, hold_share; /* hold_share: of the mean price per watt */
	bool at_anchor;          /* the answers are the anchors */
	bool tidy;               /* the last repair left nothing that could be given back */
	bool can_let_go;         /* without it the steps have not become short yet */
	double *wish;            /* per job: scratch of repair */
	double damping;          /* of Newton's step, relative to the curvature of each row alone */
	struct curvature curvature;
	double dual, lower; /* at the prices; best so far: no division loses less than `lower` */
	double loss;        /* of the best division so far, as the objective counts it */
	unsigned stalled;   /* sweeps without progress */
	bool started;       /* the prices belong to this problem */
	size_t last_rows;   /* rows for which `price` was computed, 0 = none */
	double level_bound; /* maxmin: proved, the least 1 - w (1 - T/T0) is not above this */
	struct ww_alloc_summary summary;
	struct ww_alloc_share *shares; /* in the caller's order */
	struct ww_alloc_row_result *results;
};

/* ---- allocate_input.c ------------------------------------------------------------------------------------------------ */

void fetch_ahead(const ww_alloc *a, const struct ww_alloc_problem *p, size_t i);

/* The caller's order of shares must not matter to the last bit. */
void sort_loads(struct load *loads, size_t n);

/* The caller's jobs stand in ascending order of their ids. */
bool ascending(const struct ww_alloc_problem *p);

/* The jobs in ascending order of their ids; NULL where the order of the last problem still holds, or the caller's is. */
ww_status order_jobs(const ww_alloc *a, const struct ww_alloc_problem *p, struct place **out, struct ww_error *err);

/* The jobs, their rows and the objective are those of the last problem. */
bool same_jobs(const ww_alloc *a, const struct ww_alloc_problem *p);

/* ---- price.c -------------------------------------------------------------------------------------------------------- */

/* Before the first sweep of a problem: which rows need prices, and where they start. */
void price_start(ww_alloc *a);

/* One sweep of the division: better prices, a division that keeps every row, a bound. False when there was nothing left
 * to gain; then nothing was done. */
bool price_sweep(ww_alloc *a);

/* Value, bound and gap of the best division so far, which is published already. */
void price_summary(ww_alloc *a);

/* The curve's piece that holds the cut, looked for from `piece` on; its loss there. */
static inline uint32_t piece_near(const struct ww_curve *c, uint32_t piece, double cut)
{
	while (piece > 0 && cut < c->k[piece].cut_frac)
		piece--;
	while (piece + 2 < c->n && cut >= c->k[piece + 1].cut_frac)
		piece++;
	return piece;
}

static inline double piece_bend(const struct ww_curve *c, uint32_t piece)
{
	const struct ww_knot *k = &c->k[piece];
	return (k[1].slope - k[0].slope) / (k[1].cut_frac - k[0].cut_frac);
}

static inline double piece_loss(const struct ww_curve *c, uint32_t piece, double cut)
{
	const struct ww_knot *k = &c->k[piece];
	double x = cut - k->cut_frac;
	return k->loss_frac + x * (k->slope + 0.5 * piece_bend(c, piece) * x);
}

/* ---- price_answer.c: the jobs' answers to prices ------------------------------------------------------------------- */

/* Makes the answers of all jobs ready: for their curves and bounds, for changed bounds. */
void answers_start(ww_alloc *a);
void answers_rebound(ww_alloc *a);

/* Held to anchors that are the answers themselves, the answers stay and only their derivatives change. */
void answers_hold(ww_alloc *a);

/* Cut of job i at the price `pull` of a unit of cut, and its derivative by the price (0 at a bound). */
double answer_at(ww_alloc *a, size_t i, double pull, double *k);

/* What job i loses at a cut, as the objective counts it; its derivative. */
double answer_loss(const ww_alloc *a, size_t i, double cut);
double answer_marginal(const ww_alloc *a, size_t i, double cut);

/* Fills pull, cut, bend and gradient for these prices; returns the dual. */
double evaluate(ww_alloc *a, const double *price);

/* ---- price_start.c: rows that need prices, first prices ------------------------------------------------------------ */

/* How a job's price follows from a row's level. */
typedef double pull_at(const ww_alloc *a, const struct load *load, double level);

/* The least level >= 0 at which the row is met, near enough: Newton's steps inside a bracket, from `guess` on. */
double meet_row(ww_alloc *a, const struct alloc_row *row, pull_at *pull, double guess, double near);

/* maxmin: 1 - w loss of a job at a cut. */
double level_at(const struct alloc_job *j, double cut);

/* maxmin: the highest level that all can keep becomes the bound of every job. */
void solve_level(ww_alloc *a);
void choose_rows(ww_alloc *a);
void start_prices(ww_alloc *a);

/* ---- price_newton.c -------------------------------------------------------------------------------------------------- */

/* The step from the prices to the best ones of the dual's quadratic model that are not negative, near enough: its
 * residual is at most `share` of the first. */
void newton_step(ww_alloc *a, double *step, double share);

/* ---- price_repair.c -------------------------------------------------------------------------------------------------- */

/* Turns `start` into a division in a->plan that keeps every row. */
void repair(ww_alloc *a, const double *start);

#endif
