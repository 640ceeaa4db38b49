/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core: the pure mathematics of elasticity and allocation. No clock, file, thread or log.
 * What other programs may use is declared in wattweir.h; here is what only wattweir's own rooms use.
 */
#ifndef WW_CORE_H
#define WW_CORE_H

#include "base/base.h"

/* ---- compare.c: the policies side by side on measured sweeps -------------------------------------------------------
 *
 * One GPU and weight 1 per job; the currency is draw per GPU. The baseline of a job is its highest cap. Jobs whose
 * sweep is not power limited, too short, or a duplicate of one with an earlier name are left out.
 * Every policy but `oracle` sees only the baseline and the caps nearest to the fit depths; every policy is scored on
 * the whole measured curve. Definitions: docs/compare.md.
 */

#define WW_COMPARE_MAX_DEPTHS 8

struct ww_compare_job {
	const char *name; /* unique; ties are broken by it. Borrowed for the life of the comparison */
	const struct ww_point *points;
	size_t n;
};

struct ww_compare_options {
	double noise_frac;                        /* assumed relative error of throughput, 0.01 */
	double fit_depths[WW_COMPARE_MAX_DEPTHS]; /* cuts near which a policy may see a cap, 0.15 and 0.35 */
	size_t n_depths;
};

/* clang-format off */
#define WW_COMPARE_OPTIONS_INIT {0.01, {0.15, 0.35}, 2}
/* clang-format on */

enum ww_policy {
	WW_POLICY_EQUAL,            /* the same relative cut for every job */
	WW_POLICY_UNIFORM,          /* the same cap in watts for every GPU */
	WW_POLICY_LINEAR_PFI,       /* highest PFI first, as far down as measured */
	WW_POLICY_PFI_PROPORTIONAL, /* cut in proportion to PFI */
	WW_POLICY_UTILISATION, /* EAR's rule: caps in proportion to utilisation, clamped, the rest not dealt again */
	WW_POLICY_CURVE,       /* wattweir: one price on shrunk convex curves inside a box */
	WW_POLICY_ORACLE,      /* the optimum when all true curves are known */
	WW_POLICY_ORACLE_BOX,  /* the same inside wattweir's box */
	WW_N_POLICIES
};

/* "equal", "uniform", "linear_pfi", "pfi_proportional", "utilisation", "curve", "oracle", "oracle_box". Static. */
const char *ww_policy_name(enum ww_policy policy);

struct ww_compare_row {
	double cut_frac;
	size_t n_jobs;
	int outcome;                 /* enum ww_outcome */
	double baseline_w, budget_w; /* sum of P0, and (1 - cut) of it */
	double missing_w;            /* watts that the deepest measured cuts do not reach; 0 when feasible */
	double value[WW_N_POLICIES]; /* mean relative throughput kept, 0..1 */
	double utilisation_over_w;   /* caps of EAR's rule above the budget: it may not keep it */
	double recovered_frac;       /* (curve - equal) / (oracle - equal); NAN where that gap is < 0.004 */
	double recovered_box_frac;   /* the same against oracle_box */
	double shrink;               /* P0-weighted mean trust in the curves: 0 = stay at equal, 1 = full move */
};

typedef struct ww_compare ww_compare;

/* Copies what it needs but the names. Left-out jobs are counted by ww_compare_jobs. */
ww_status ww_compare_create(const struct ww_compare_job *jobs, size_t n, const struct ww_compare_options *options,
                            ww_compare **out, struct ww_error *err) WW_MUST_CHECK;
void ww_compare_destroy(ww_compare *compare);

/* How many jobs take part. */
size_t ww_compare_jobs(const ww_compare *compare);

/* Why a job takes no part: the first reason that holds. */
enum ww_left_out {
	WW_LEFT_NOT, /* it takes part */
	WW_LEFT_NOT_POWER_LIMITED,
	WW_LEFT_TOO_FEW_POINTS,
	WW_LEFT_DUPLICATE, /* same curve as a job whose name comes earlier */
	WW_N_LEFT_OUT
};

/* `job` is an index into the jobs given to ww_compare_create. */
enum ww_left_out ww_compare_left_out(const ww_compare *compare, size_t job);

/* One cut, 0 <= cut_frac < 1. Deterministic and independent of the order of jobs. */
ww_status ww_compare_run(ww_compare *compare, double cut_frac, struct ww_compare_row *out, struct ww_error *err)
	WW_MUST_CHECK;

/* duplicate_of[i] = index of the first job with the same curve (same caps, |T/T0| within 1e-4, |P/P0| within 1e-3), or i
 * itself when there is none. */
ww_status ww_find_duplicates(const struct ww_compare_job *jobs, size_t n, size_t *duplicate_of, struct ww_error *err)
	WW_MUST_CHECK;

/* ---- plan.c: caps for measured jobs on a real cluster ----------------------------------------------------------------
 *
 * Turns measured sweeps into curves, divides a budget among the jobs and names what limits each. With WW_ACCOUNT_CAP
 * the caps of all GPUs add up to the budget at most, so it holds whatever the jobs do (a cap that the board was seen not
 * to hold counts as the draw); with WW_ACCOUNT_DRAW the predicted draws do. Floors and what is kept are read from the
 * measured points, which a curve may run a little above. A job that no cap limits is capped at the lowest cap that costs it nothing; a job measured at too
 * few caps is left at its highest.
 */

struct ww_plan_job {
	const char *name;              /* borrowed */
	const struct ww_point *points; /* its sweep; power per GPU, throughput of the job that was measured */
	size_t n;
	unsigned measured_gpus; /* GPUs of the measured job, 0 = as many as `gpus` */
	uint32_t gpus;          /* GPUs of the job now; its throughput is scaled in proportion */
	int tier;
	double floor_frac, weight;
	double min_w, max_w; /* lowest and highest cap per GPU; NAN = as measured. No cap breaks them */
	const struct ww_row_share *rows;
	uint32_t n_rows;
};

struct ww_plan_problem {
	const struct ww_plan_job *jobs;
	size_t n_jobs;
	const struct ww_alloc_row *rows;
	size_t n_rows;
	double budget_w; /* for all GPUs; NAN: (1 - cut_frac) of what the jobs draw without caps */
	double cut_frac;
	enum ww_objective objective;
	enum ww_account account;
	bool explore;      /* also below the lowest cap measured, down to min_w */
	bool equal;        /* stop at the equal cut */
	double noise_frac; /* where the sweep does not know its own noise */
};

/* What keeps a job from giving more or less. */
enum ww_plan_limit {
	WW_PLAN_PRICE,       /* nothing but the common price of a watt */
	WW_PLAN_UNCUT,       /* not cut */
	WW_PLAN_FLOOR,       /* at its floor */
	WW_PLAN_RELAXED,     /* below its floor: a row forced it */
	WW_PLAN_DEEPEST,     /* at the deepest cut measured for it */
	WW_PLAN_LOWEST,      /* at the lowest cap allowed for it, its min_w */
	WW_PLAN_HIGHEST,     /* at the highest cap allowed for it, its max_w; that may even be below its floor */
	WW_PLAN_NOT_LIMITED, /* no cap limits it */
	WW_PLAN_NOT_MEASURED /* too few caps measured */
};

struct ww_plan_share {
	double cap_w;    /* per GPU */
	double charge_w; /* per GPU, what the budget counts: the cap (the draw where the board does not hold it), or
	                           the expected draw */
	double draw_w;   /* per GPU, expected under the cap */
	double p0_w, t0; /* draw per GPU and throughput of the job without a cap */
	double cut_frac; /* 1 - charge/P0, never below 0 */
	double equal_cut_frac;  /* what an equal cut would be, in the same terms */
	double throughput_frac; /* T/T0 expected */
	double floor_frac;      /* promised */
	double trust;
	int limit;  /* enum ww_plan_limit */
	size_t row; /* the full row that presses hardest; n_rows = only the budget, SIZE_MAX = none */
};

struct ww_plan_row {
	struct ww_alloc_row_result result;
	bool full;
	double tokens_per_w; /* throughput that one watt more on this row would bring; NAN where it is not full */
};

struct ww_plan_total {
	int outcome; /* enum ww_outcome; infeasible also where a job's max_w keeps it below its floor */
	double baseline_w, budget_w, power_w; /* power_w in the account's terms */
	double draw_w;                        /* expected under these caps */
	double throughput, equal_throughput;  /* sum of T; what the equal cut would give */
	double relative, equal_relative;      /* weighted mean of T/T0; the same */
	double least, equal_least;            /* least 1 - w (1 - T/T0), for w = 1 the least T/T0; the same */
	double bound_gap_frac, shrink;
};

typedef struct ww_plan ww_plan;

ww_status ww_plan_create(const struct ww_plan_problem *problem, ww_plan **out, struct ww_error *err) WW_MUST_CHECK;
void ww_plan_destroy(ww_plan *plan);
const struct ww_plan_share *ww_plan_shares(const ww_plan *plan); /* one per job */
const struct ww_plan_row *ww_plan_rows(const ww_plan *plan);     /* n_rows + 1; the last is the budget */
struct ww_plan_total ww_plan_total(const ww_plan *plan);

/* ---- allocate.c ------------------------------------------------------------------------------------------------------ */

/* Room for every problem of so many jobs, rows and shares of jobs on rows, whichever they are: ww_alloc_set then allocates
 * nothing if its jobs come in ascending id. May forget the problem that was set. */
ww_status ww_alloc_reserve(ww_alloc *alloc, size_t n_jobs, size_t n_rows, size_t n_shares, struct ww_error *err)
	WW_MUST_CHECK;

/* ---- requeue.c: which jobs to checkpoint and requeue when even the lowest caps do not fit the rows ------------------
 *
 * Rows miss watts; a job that is requeued frees some on each row that it is on. Among the sets of jobs that cover what is
 * missing, the one is chosen with, in this order: the least loss in tier 0 (of equal ones the fewest jobs of tier 0), then
 * the same in tier 1, tier 2 and tier 3; of sets equal in all that, the one that holds the job of the highest tier (0
 * first) and lowest id in which they differ. So a job goes only where all that may go of lower tiers do not suffice, and
 * no job goes whose return still leaves all covered. Where a row cannot be covered at all, everything that may go of it
 * goes, and what stays missing is told. Independent of the order of jobs.
 *
 * Exact where up to 30 candidates, together or of the one tier that is needed, hang together by up to 16 rows that miss
 * watts, as long as the searches of a call take at most WW_REQUEUE_VISITS steps (about 0.1 s). Else candidates in order of
 * loss per watt, less those not needed, and one pass of swaps: O(n log n) times rows per job. Watts are counted in whole
 * 1/65536 W, losses to a part in 2^31 of the largest. docs/allocate.md.
 */

#define WW_REQUEUE_VISITS 2000000

struct ww_requeue_job {
	uint64_t id;    /* unique */
	int tier;       /* 0..3; those of tier 3 are requeued first, those of tier 0 last */
	bool allowed;   /* may be requeued at all */
	double freed_w; /* per GPU, 0 or more: its lowest cap less its power when dark */
	double loss; /* 0 or more: weight x T/T0 at its lowest cap plus the cost of a restart, in one unit for all jobs */
	uint32_t n_rows;
	const struct ww_row_share *rows; /* may be NULL when n_rows is 0; no row twice */
};

/* All borrowed for the call. */
struct ww_requeue_problem {
	const struct ww_requeue_job *jobs;
	size_t n_jobs;
	const double *missing_w; /* per row; 0 or less: nothing is missing */
	size_t n_rows;
};

struct ww_requeue_total {
	size_t n_taken;
	size_t n_left; /* rows of which watts stay missing */
	double loss;   /* of the jobs taken */
	bool exact;    /* no better set exists; false: a good one that covers as much */
};

typedef struct ww_requeue ww_requeue;

/* Room for problems of at most so many jobs, rows and shares of jobs on rows: ww_requeue_choose takes no memory. */
ww_status ww_requeue_create(size_t max_jobs, size_t max_rows, size_t max_shares, ww_requeue **out, struct ww_error *err)
	WW_MUST_CHECK;
void ww_requeue_destroy(ww_requeue *q);

/* WW_ERR_RANGE for a number outside its range (a NAN always is), WW_ERR_INVALID for an id or row that is there twice or a
 * problem larger than the room; the last answer is then kept. */
ww_status ww_requeue_choose(ww_requeue *q, const struct ww_requeue_problem *problem, struct ww_error *err)
	WW_MUST_CHECK;

/* The last answer; borrowed until the next call. */
const bool *ww_requeue_taken(const ww_requeue *q);    /* one per job, in the caller's order */
const double *ww_requeue_left_w(const ww_requeue *q); /* one per row: watts that stay missing, 0 = covered */
struct ww_requeue_total ww_requeue_result(const ww_requeue *q);

#endif
