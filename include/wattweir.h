/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wattweir: power elasticity of GPU training jobs, and the best division of a power budget.
 *
 * This is the only installed header. The library is pure: it does no input or output, reads no clock, starts no
 * thread and never prints. It may be called from any number of threads as long as no object is shared between them.
 *
 * Units are in the names, one unit per quantity: _w watts, _tps tokens (or any unit of work) per second, _frac 0..1.
 * A number that is not known is NAN, never 0.
 *
 * Terms. Cut: relative fall of power, d = 1 - P/P0. Loss: relative fall of throughput, l = 1 - T/T0. Baseline: P0 and
 * T0, the draw and throughput of a job when no cap binds. PFI (Power Flexibility Index): relative power cut per
 * relative throughput loss; 1 = proportional, above 1 = flexible.
 */
#ifndef WATTWEIR_H
#define WATTWEIR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WW_VERSION "0.1.0"

#if defined(__GNUC__)
#define WW_MUST_CHECK __attribute__((warn_unused_result))
#else
#define WW_MUST_CHECK
#endif

/* ---- Errors -------------------------------------------------------------------------------------------------- */

/* 0 or negative. An outcome (a budget that cannot be kept) is not an error: see enum ww_outcome. */
typedef enum ww_status {
	WW_OK = 0,
	WW_ERR_INVALID = -1,     /* input that breaks the documented form */
	WW_ERR_RANGE = -2,       /* a value outside its documented range */
	WW_ERR_NOMEM = -3,       /* out of memory; nothing was changed */
	WW_ERR_IO = -4,          /* a file or device could not be read or written */
	WW_ERR_NOT_FOUND = -5,   /* a named thing does not exist */
	WW_ERR_UNSUPPORTED = -6, /* a known thing that cannot be done here */
	WW_ERR_NO_DATA = -7      /* too little data for an answer */
} ww_status;

/* Caller-owned; filled only on failure. `text` is one plain line that names the thing and the remedy. */
struct ww_error {
	ww_status code;
	char text[512];
};

/* ---- Measured points ----------------------------------------------------------------------------------------- */

/* One measurement of one job under one power cap. Several points with the same cap are repetitions. */
struct ww_point {
	double cap_w;         /* power cap per GPU that was in force, > 0 */
	double power_w;       /* mean draw per GPU over the measurement, > 0 */
	double throughput;    /* mean tokens/s (or any unit of work per second), > 0 */
	double power_se_w;    /* standard error of power_w, or NAN when not known */
	double throughput_se; /* standard error of throughput, or NAN when not known */
	int64_t throttle;     /* clock-event reasons seen (bits below, NVML's values), or -1 when not recorded */
};

#define WW_THROTTLE_POWER_CAP 0x04 /* the software power cap held the clock down: the cap binds */
#define WW_THROTTLE_THERMAL 0x60   /* software or hardware thermal slowdown */
#define WW_THROTTLE_HARDWARE 0x88  /* hardware slowdown or power brake */

/* ---- PFI ------------------------------------------------------------------------------------------------------ */

enum ww_pfi_status {
	WW_PFI_OK = 0,
	WW_PFI_TOO_FEW_POINTS,    /* fewer than 2 caps, or no cut >= 0.03 although the whole cut is >= 0.10 */
	WW_PFI_NOT_POWER_LIMITED, /* the lowest cap cuts the draw by less than 10 %: no cap limits this job */
	WW_PFI_BOUND              /* losses within noise: only the lower end `pfi_ls_lo` is known */
};

#define WW_FLAG_SHALLOW_SWEEP 0x01u /* not power limited, but the lowest cap does bind: sweep deeper */
#define WW_FLAG_NOISE_ASSUMED 0x02u /* no errors and no repetitions: noise_frac was assumed */
#define WW_FLAG_POOR_FIT 0x04u      /* r2 < 0.9: one number describes this job badly, use the curve */
#define WW_FLAG_NOT_MONOTONE 0x08u  /* throughput rose somewhere while power fell; repaired in the curve */
#define WW_FLAG_THERMAL 0x10u       /* thermal or hardware slowdown was recorded at a cap in range */

/* What a sweep says about one job. Every double may be NAN: not known, or not defined for this status. */
struct ww_pfi {
	int status;      /* enum ww_pfi_status */
	uint32_t flags;  /* WW_FLAG_* */
	uint32_t n_caps; /* distinct caps in range */
	double fit_lo_w; /* lowest and highest cap in range: a PFI is valid for this range only */
	double fit_hi_w;
	double p0_w, t0;  /* baseline: means over the caps that do not bind */
	double pfi_ls;    /* sum d^2 / sum d*l through the baseline over all binding caps */
	double pfi_ls_lo; /* 90 % interval; for WW_PFI_BOUND only the lower end */
	double pfi_ls_hi;
	double pfi_30;       /* 0.30 / l(0.30) on the convex curve */
	double max_cut_frac; /* deepest cut measured */
	double r2;           /* 1 - sum (l - s d)^2 / sum l^2, s = sum d*l / sum d^2 */
	double noise_frac;   /* relative error of throughput that was used */
};

struct ww_pfi_options {
	double cap_lo_w, cap_hi_w; /* only caps in [lo, hi] are used; 0 and INFINITY use all */
	double noise_frac; /* assumed relative error of throughput where none is known; 0.01 is customary. Where it is
	                              known, curves are trusted with hypot(known, 0.6 noise_frac): docs/pfi.md */
	uint32_t draws;    /* bootstrap replicates for the interval; 2000 is customary, 0 = no interval */
	uint64_t seed;     /* seed of the bootstrap; the same seed gives the same interval */
};

/* clang-format off */
#define WW_PFI_OPTIONS_INIT {0.0, 1e300, 0.01, 2000, 1}
/* clang-format on */

/*
 * Estimates the PFI of one job from `n` measured points, in any order.
 * Definitions: docs/pfi.md. The outcome is in out->status; the return value is an error only for points outside their
 * documented range or lack of memory. `out` is untouched on failure.
 */
ww_status ww_pfi_estimate(const struct ww_point *points, size_t n, const struct ww_pfi_options *options,
                          struct ww_pfi *out, struct ww_error *err) WW_MUST_CHECK;

/* ---- Loss curves ------------------------------------------------------------------------------------------------ */

/* At a knot: the loss and the marginal loss. Between knots the marginal loss is linear in the cut. */
#define WW_MAX_KNOTS 16

struct ww_knot {
	double cut_frac, loss_frac, slope;
};

/*
 * Loss as a convex function of cut. Marginal loss strictly rises from knot to knot (piecewise quadratic loss); beyond
 * the last knot it keeps rising as in the last piece. Plain data: copy freely.
 */
struct ww_curve {
	double p0_w, t0_tps;         /* baseline draw per GPU and throughput of the job */
	double max_cut_frac;         /* deepest cut ever measured or rehearsed */
	double var_a, var_b, cov_ab; /* uncertainty of loss = a d + b d^2: variance of the marginal at d is
	                                var_a + 4 d cov_ab + 4 d^2 var_b */
	uint32_t n, flags;           /* knots in use (>= 2; the first is at cut 0, loss 0), WW_FLAG_* */
	int status;                  /* enum ww_pfi_status of the measurement behind it */
	struct ww_knot k[WW_MAX_KNOTS];
};

/* What a cut is measured in: the power that jobs draw, or the caps that are in force. */
enum ww_account {
	WW_ACCOUNT_CAP = 0, /* p0_w is the lowest cap that does not bind; keeps a budget whatever the jobs do */
	WW_ACCOUNT_DRAW     /* p0_w is the draw where no cap binds, as for the PFI */
};

/* "cap", "draw". Static. */
const char *ww_account_name(enum ww_account account);

/*
 * The measured curve of a sweep: throughput made monotone in the draw, then the convex hull of the loss, joined by
 * quadratic pieces (Schumaker's shape-preserving spline) that pass through the hull's vertices, and near them where there
 * are more than 8.
 * WW_ERR_NO_DATA for a sweep whose status is too_few_points or not_power_limited.
 */
ww_status ww_curve_measure(const struct ww_point *points, size_t n, const struct ww_pfi_options *options,
                           enum ww_account account, struct ww_curve *out, struct ww_error *err) WW_MUST_CHECK;

/* Loss at a cut >= 0. */
double ww_curve_loss(const struct ww_curve *curve, double cut_frac);

/* Marginal loss l'(cut). The local PFI is its inverse. */
double ww_curve_slope(const struct ww_curve *curve, double cut_frac);

/* Variance of the marginal loss at a cut. */
double ww_curve_slope_var(const struct ww_curve *curve, double cut_frac);

/* The cut at which the marginal loss reaches `slope`: 0 below the first knot's; closed form, inverse of ww_curve_slope. */
double ww_curve_cut_at_slope(const struct ww_curve *curve, double slope);

/* The deepest cut with loss <= loss_frac, at most max_cut_frac. */
double ww_curve_cut_at_loss(const struct ww_curve *curve, double loss_frac);

/* One (cut, loss) pair relative to a job's baseline. */
struct ww_fit_point {
	double cut_frac, loss_frac;
};

/* What a curve is fitted from. */
struct ww_fit {
	const struct ww_fit_point *points;
	size_t n;            /* 1 to 32 */
	double noise_frac;   /* relative error of each measured throughput, 0..1 */
	double p0_w, t0_tps; /* the baseline */
};

/*
 * A curve from very few points, as a rehearsal at two depths gives: posterior mean of l = l30 (d/0.3)^k under a broad
 * prior over l30 and k; the error of the baseline is shared by all points. WW_ERR_NO_DATA when there is no point,
 * WW_ERR_RANGE for a cut outside (0, 1), a loss outside -10..1 or a baseline that is not above 0.
 */
ww_status ww_curve_fit(const struct ww_fit *fit, struct ww_curve *out, struct ww_error *err) WW_MUST_CHECK;

/* ---- Allocation ------------------------------------------------------------------------------------------------- */

enum ww_outcome {
	WW_OUTCOME_OPTIMAL = 0,
	WW_OUTCOME_INFEASIBLE, /* some row cannot be kept with all floors kept: see missing_w and over_w of the rows */
	WW_OUTCOME_UNCHANGED   /* nothing binds: no job is cut */
};

/* "optimal", "infeasible", "unchanged". Static. */
const char *ww_outcome_name(enum ww_outcome outcome);

/* What is made as large as possible; w is the job's weight. */
enum ww_objective {
	WW_OBJECTIVE_RELATIVE = 0, /* sum of w T/T0 */
	WW_OBJECTIVE_TOKENS,       /* sum of w T */
	WW_OBJECTIVE_LOG,          /* sum of w log(T/T0): proportional fairness */
	WW_OBJECTIVE_MAXMIN /* the least 1 - w (1 - T/T0), for w = 1 the least T/T0; what that leaves open is decided
	                              as by RELATIVE */
};

/* "relative", "tokens", "log", "maxmin". Static. */
const char *ww_objective_name(enum ww_objective objective);

/* GPUs of a job whose power a row carries; a node fed by two feeds counts half on each. */
struct ww_row_share {
	uint32_t row;
	double gpus; /* > 0 */
};

/* One job to be capped. Borrowed by ww_alloc_set only for the call. */
struct ww_alloc_job {
	uint64_t id;                  /* unique; the order of ids, not of the array, breaks ties */
	uint32_t gpus;                /* > 0; every GPU of the job gets the same cut */
	uint32_t n_rows;              /* entries of rows */
	int tier;                     /* 0..3; floors of tier 3 are relaxed first, those of tier 0 last */
	double weight;                /* > 0 */
	double floor_frac;            /* promised least T/T0, 0..1 */
	double min_w, max_w;          /* lowest and highest power per GPU that may be given; max_w 0 = no limit */
	const struct ww_curve *curve; /* loss of the job; its p0_w is the power per GPU that is charged without a cut */
	const struct ww_row_share *rows; /* may be NULL when n_rows is 0 */
};

/* A breaker, feed, rack, node: the watts that the GPUs of jobs on it may have (its limit less fixed loads). */
struct ww_alloc_row {
	double budget_w;
};

struct ww_alloc_problem {
	const struct ww_alloc_job *jobs;
	size_t n_jobs;
	const struct ww_alloc_row *rows;
	size_t n_rows;
	double budget_w; /* for all GPUs of all jobs together; INFINITY = none */
	enum ww_objective objective;
	int explore; /* not 0: jobs may go deeper than the deepest cut measured for them */
	int fresh;   /* not 0: forget the last problem's prices, so that the same problem gives the same bits */
};

/* What was decided for one job, in the order of the problem's jobs. */
struct ww_alloc_share {
	double cut_frac;        /* the decision */
	double throughput_frac; /* T/T0 that its curve gives there */
	double equal_cut_frac;  /* what an equal cut would take from this job */
	double box_cut_frac;    /* it may not go deeper: max(deepest cut measured, equal cut), floor, lowest power */
	double floor_frac;      /* the floor that can be kept; below the promised one when rows forced it */
	double trust;           /* 0 = stay at the equal cut, 1 = follow the curve fully */
};

/* One row; entry n_rows is the problem's own budget_w. */
struct ww_alloc_row_result {
	double power_w;   /* power given to its jobs */
	double price;     /* gain of the objective per watt more; 0 where the row is not tight */
	double missing_w; /* watts by which it cannot be kept with all floors kept; 0 = feasible */
	double over_w;    /* watts by which it stays broken even with every job at its lowest power */
};

struct ww_alloc_summary {
	int outcome;         /* enum ww_outcome */
	unsigned sweeps;     /* done since the last set */
	double value, bound; /* of the objective on the shrunk curves: reached, and proved not to be exceeded */
	double bound_gap_frac; /* (bound - value) / |objective on the curves themselves|; of the full value when all stand still */
	double shrink; /* mean trust weighted by baseline power */
};

typedef struct ww_alloc ww_alloc;

ww_status ww_alloc_create(ww_alloc **out, struct ww_error *err) WW_MUST_CHECK;
void ww_alloc_destroy(ww_alloc *alloc);

/*
 * Sets a problem and solves its equal cut: the same relative cut for all, less where a floor or the lowest power ends
 * it, more on rows that need it. Where rows cannot be kept, floors are relaxed, tier 3 first, in proportion within the
 * last tier needed. Only this call allocates memory. Prices of the last problem are kept when it had as many rows and
 * the same objective. On failure (WW_ERR_RANGE, WW_ERR_INVALID: the text names the job or row and its field) the last
 * problem is kept.
 */
ww_status ww_alloc_set(ww_alloc *alloc, const struct ww_alloc_problem *problem, struct ww_error *err) WW_MUST_CHECK;

/*
 * Improves the division by at most `max_sweeps` sweeps; every row is kept after every call (but for the watts of
 * over_w). Each curve is shrunk towards the equal cut by its own uncertainty and each job stays inside its box.
 * Returns the sweeps done: fewer than asked when nothing is left to gain.
 */
int ww_alloc_run(ww_alloc *alloc, unsigned max_sweeps);

/* Results of the last set (equal cut) or run; borrowed until the next call on `alloc`. */
const struct ww_alloc_share *ww_alloc_shares(const ww_alloc *alloc);
const struct ww_alloc_row_result *ww_alloc_rows(const ww_alloc *alloc);
struct ww_alloc_summary ww_alloc_result(const ww_alloc *alloc);

#ifdef __cplusplus
}
#endif
#endif
