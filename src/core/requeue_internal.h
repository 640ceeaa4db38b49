/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by requeue.c, requeue_ratio.c and requeue_exact.c. */
#ifndef WW_REQUEUE_INTERNAL_H
#define WW_REQUEUE_INTERNAL_H

#include "core/core.h"

#define N_TIERS 4
#define EXACT_JOBS 30 /* candidates that are searched through; at most 32 */
#define EXACT_ROWS 16 /* rows that lack watts in such a search */

/* Sums are of whole numbers, so that they depend on no order: watts in 1/65536 W, losses in 2^-32 of the next power of two
 * above the largest. */
#define WATT 65536.0
#define LOSS_BITS 32

/* What a job frees of a row, at most what the row misses. */
struct freed {
	uint32_t row;
	int64_t watts;
};

/* A job that may be requeued and frees something that is missing. */
struct candidate {
	uint64_t id;
	int64_t loss;
	size_t first; /* in freed, n_freed of them */
	uint32_t n_freed;
	uint32_t index; /* of the caller's job */
	uint32_t group; /* candidates of different groups share no row */
	int tier;
	bool taken;
};

/* A row that misses watts. Those of a group stand together. */
struct short_row {
	int64_t missing, need; /* need: what can be covered of it */
	int64_t lack;          /* need less what the candidates taken free; 0 or less: covered */
	uint32_t row;          /* the caller's */
	uint32_t group;
};

struct ww_requeue {
	size_t max_jobs, max_rows, max_shares;
	size_t n, n_rows, n_freed; /* candidates, short rows */
	struct candidate *jobs;    /* by group, tier and id */
	struct candidate *unsorted;
	struct freed *freed;
	struct short_row *rows, *unsorted_rows;
	uint32_t *slot;     /* per caller's row: the short row, or a mark while checking */
	uint32_t *parent;   /* per short row: of the groups, while they are joined */
	uint32_t *order;    /* per caller's job */
	uint32_t *list;     /* per candidate, scratch */
	double *ratio;      /* per candidate */
	uint32_t *by_row;   /* candidates of a range, row by row */
	size_t *row_first;  /* per short row and one more: in by_row */
	uint32_t *row_list; /* per short row, scratch */
	uint64_t visits;    /* left for the searches of this call */

	bool *taken;    /* per caller's job */
	double *left_w; /* per caller's row */
	struct ww_requeue_total total;
};

/* Candidates of one group, all or one tier of it, and the group's rows. */
struct range {
	uint32_t first, n;
	uint32_t first_row, n_rows;
};

/* True when a comes before b; a total order. */
typedef bool requeue_before(const ww_requeue *q, uint32_t a, uint32_t b);

/* In place and without memory, unlike qsort. */
void requeue_sort(const ww_requeue *q, uint32_t *list, size_t n, requeue_before *before);

/* Takes a candidate or gives it back; counts it on its rows. */
void requeue_put(ww_requeue *q, uint32_t job, bool taken);

/* Chooses among the candidates of a range, none of them taken, so that no row of it lacks watts: cheapest per watt first,
 * less what is not needed, with one pass of swaps. All in the range taken must be enough. */
void requeue_by_ratio(ww_requeue *q, const struct range *range);

/* From any choice that covers to the best one. False when the range is too large or q->visits ran out; then the choice is at
 * least as good as before. */
bool requeue_exactly(ww_requeue *q, const struct range *range);

#endif
