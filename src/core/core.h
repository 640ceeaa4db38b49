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
 * sweep is not power limited, too short, or a duplicate of an earlier one are left out.
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
	WW_POLICY_CURVE,            /* wattweir: one price on shrunk convex curves inside a box */
	WW_POLICY_ORACLE,           /* the optimum when all true curves are known */
	WW_POLICY_ORACLE_BOX,       /* the same inside wattweir's box */
	WW_N_POLICIES
};

/* "equal", "uniform", "linear_pfi", "pfi_proportional", "curve", "oracle", "oracle_box". Static. */
const char *ww_policy_name(enum ww_policy policy);

struct ww_compare_row {
	double cut_frac;
	size_t n_jobs;
	int outcome;                 /* enum ww_outcome */
	double baseline_w, budget_w; /* sum of P0, and (1 - cut) of it */
	double missing_w;            /* watts that the deepest measured cuts do not reach; 0 when feasible */
	double value[WW_N_POLICIES]; /* mean relative throughput kept, 0..1 */
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

/* One cut, 0 <= cut_frac < 1. Deterministic and independent of the order of jobs. */
ww_status ww_compare_run(ww_compare *compare, double cut_frac, struct ww_compare_row *out, struct ww_error *err)
	WW_MUST_CHECK;

/* duplicate_of[i] = index of the first job with the same curve (same caps, |T/T0| within 1e-4, |P/P0| within 1e-3), or i
 * itself when there is none. */
ww_status ww_find_duplicates(const struct ww_compare_job *jobs, size_t n, size_t *duplicate_of, struct ww_error *err)
	WW_MUST_CHECK;

#endif
