/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator's own data, shared by allocate.c (problem and promises) and price.c (division). */
#ifndef WW_ALLOCATE_INTERNAL_H
#define WW_ALLOCATE_INTERNAL_H

#include "core/core_internal.h"

/* One share of a job's power on a row: watts of the row freed by a full cut of the job. */
struct load {
	uint32_t row, job;
	double watts;
};

/* The curve a job is divided by: knots of the blended loss. */
struct pieces {
	uint32_t n, hint; /* hint: the piece of the last answer */
	double cut[WW_MAX_KNOTS], loss[WW_MAX_KNOTS], slope[WW_MAX_KNOTS];
};

struct alloc_job {
	uint64_t id;
	size_t index; /* in the caller's array */
	int tier;
	double baseline_w;   /* charged without a cut, all its GPUs */
	double weight, gain; /* gain: objective per unit of loss, w or w T0, relative to the largest of all jobs */
	double floor_frac;   /* promised */
	double lowest;       /* cut at the lowest power */
	double reach;        /* deepest cut with the floor that can be kept */
	double lo, hi;       /* bounds of the division */
	double equal, box, trust;
	double cut;            /* best division so far */
	size_t first, n_loads; /* its loads */
	struct ww_curve curve;
	struct pieces pieces;
};

struct alloc_row {
	double need_w;         /* cut that the row needs from its jobs; what cannot be had is taken off */
	double size_w;         /* baseline of its jobs */
	size_t first, n_loads; /* in by_row */
	bool priced;           /* has a price: not met by the bounds alone */
	struct ww_alloc_row_result result;
};

/* What the header calls ww_alloc. */
struct ww_alloc {
	size_t n, n_rows; /* jobs, rows including the budget as the last */
	size_t room_jobs, room_rows, room_loads, n_loads;
	enum ww_objective objective;
	double unit;            /* the largest gain: what the objective is counted in */
	struct alloc_job *jobs; /* ascending id */
	struct alloc_row *rows;
	struct load *loads; /* by job */
	struct load *by_row;
	uint32_t *small_first; /* rows in ascending size: a row comes after all rows inside it */
	double *price;         /* per row: objective per watt */
	double *gradient;      /* per row: watts of cut missing at the response to the prices */
	double *work[6];       /* per row */
	double *cut, *bend;    /* per job: response to the prices and its derivative */
	double *pull, *plan;   /* per job: price of a unit of cut; a division that keeps every row */
	double dual, lower;    /* at the prices; best so far: no division loses less than `lower` */
	double loss;           /* of the best division so far, as the objective counts it */
	double damping;        /* of Newton's step, relative to the curvature of each row alone */
	unsigned stalled;      /* sweeps without progress */
	bool started;          /* the prices belong to this problem */
	size_t last_rows;      /* rows for which `price` was computed, 0 = none */
	double level_bound;    /* maxmin: proved, the least 1 - w (1 - T/T0) is not above this */
	struct ww_alloc_summary summary;
	struct ww_alloc_share *shares; /* in the caller's order */
	struct ww_alloc_row_result *results;
};

/* Before the first sweep of a problem: which rows need prices, and where they start. */
void price_start(ww_alloc *a);

/* One sweep of the division: better prices, a division that keeps every row, a bound. False when there was nothing left
 * to gain; then nothing was done. */
bool price_sweep(ww_alloc *a);

/* Objective per watt that a row of one job would gain, when it is what holds the job; else 0. */
double single_row_price(const ww_alloc *a, const struct alloc_row *row);

/* Value, bound and gap of the best division so far. */
void price_summary(ww_alloc *a);

#endif
