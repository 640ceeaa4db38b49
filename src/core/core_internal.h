/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of core. */
#ifndef WW_CORE_INTERNAL_H
#define WW_CORE_INTERNAL_H

#include "core/core.h"

#include <math.h>

#define BASELINE_BAND 0.03 /* a draw this close to the top draw is a repeat of the baseline */
#define LIMITED_CUT 0.10   /* a sweep that cuts the draw by less says that no cap limits the job */

/* ---- pool.c: repetitions of a cap made into one point ---------------------------------------------------------- */

struct pooled {
	double cap_w, power_w, throughput; /* means */
	double power_err, throughput_err;  /* relative standard errors of the means; NAN when not known */
	int64_t throttle;                  /* all bits seen, -1 when not recorded */
};

struct pooled_sweep {
	size_t n;
	struct pooled *p; /* descending caps */
};

struct cap_range {
	double lo_w, hi_w; /* both included */
};

#define ALL_CAPS ((struct cap_range){0, INFINITY})

/*
 * Pools the points whose caps are in range. Errors are the given ones, else the repetitions' scatter pooled over all
 * caps. Independent of the order of points. `out` is ended with pool_finish; zeroed ones may be.
 */
ww_status pool_create(const struct ww_point *points, size_t n, struct cap_range range, struct pooled_sweep *out,
                      struct ww_error *err);
void pool_finish(struct pooled_sweep *sweep);

/* What a budget in caps must count for a cap: the cap, or the draw where the board was seen not to hold the cap. */
double cap_charge(const struct pooled *p);

/*
 * The relative error of throughput that a curve to act on is trusted with: that of its PFI; where this is known from
 * errors or repetitions, with what they do not show (drift between runs, misfit of the curve) added as a share of the
 * assumed noise; never less than what the rounding of the numbers hides. 0 assumed = the numbers are taken as exact.
 */
double cautious_noise(const struct ww_point *p, size_t n, const struct ww_pfi *pfi, double assumed);

/* ---- pfi.c: a sweep split into baseline and slope points --------------------------------------------------------- */

struct split {
	double p0_w, t0; /* means over the first n_baseline caps */
	size_t n_baseline, n_slope;
	double *cut, *loss; /* of the slope points, in descending order of the cap */
	size_t *at;         /* their indices among the pooled caps */
};

ww_status split_create(size_t n, struct split *out, struct ww_error *err);
void split_sweep(const struct pooled *p, size_t n, struct split *out);
void split_finish(struct split *split);

/* ---- curve.c -------------------------------------------------------------------------------------------------------- */

/* Convex hull of the losses after isotonic repair, from (0, 0) on. */
struct loss_hull {
	size_t n; /* >= 2 */
	double *cut, *loss;
};

ww_status hull_create(const struct split *split, struct loss_hull *out, struct ww_error *err);

/* The measured curve; `repaired` gets the losses made monotone but not convex, for what must hold at every measured point,
 * and is ended with hull_finish. May be NULL. */
ww_status curve_of_sweep(const struct pooled_sweep *sweep, enum ww_account account, double noise_frac,
                         struct ww_curve *out, struct loss_hull *repaired, struct ww_error *err);
void hull_finish(struct loss_hull *hull);

/* Appends a knot; its loss follows from the slopes. The caller keeps cuts and slopes rising. */
void curve_add_knot(struct ww_curve *curve, double cut, double slope);

/* ---- numeric.c ---------------------------------------------------------------------------------------------------- */

/* In place: the nearest non-decreasing sequence in least squares (pool adjacent violators), equal weights. `count` is
 * scratch of n. */
void pav_rising(double *y, size_t *count, size_t n);

/* Keeps the lower convex hull of points with ascending x, in place; returns how many are left. */
size_t lower_hull(double *x, double *y, size_t n);

/* Linear interpolation on ascending x, constant outside. n > 0. */
double interpolate(const double *x, const double *y, size_t n, double at);

/* The smallest x in [lo, hi] (to the last bit) with f(x) >= target, f non-decreasing; hi when there is none. */
double solve_rising(double (*f)(const void *, double), const void *context, double lo, double hi, double target);

/* Slope through the origin of loss on cut, and its standard error with a shared baseline error: docs/pfi.md. */
struct line {
	double slope, se;
};
struct line fit_line(const double *cut, const double *loss, size_t n, double noise_frac);

/* ---- policy.c: dividing a cut among jobs whose whole sweep is known -------------------------------------------- */

struct sweep_job {
	const char *name;
	double p0_w, t0; /* at the highest cap */
	double reach;    /* deepest cut measured */
	size_t n_true, n_hull, n_caps;
	double *true_w, *truth; /* ascending draw up to p0_w; throughput relative to p0_w's, made monotone */
	double *hull_w, *hull;  /* upper concave hull of the truth */
	double *cap_w, *draw_w; /* ascending caps; running maximum of the draw, at most p0_w */
	double loss_per_cut;    /* linear model from the caps a policy may see */
	struct ww_curve curve;  /* fitted from the same caps */
};

/* All divide `need_w` watts of cut, feasible, among n jobs sorted by name. */
void divide_uniform(const struct sweep_job *jobs, size_t n, double need_w, double *cut);
void divide_linear(const struct sweep_job *jobs, size_t n, double need_w, double *cut);
void divide_proportional(const struct sweep_job *jobs, size_t n, double need_w, double *cut);

/* Caps budget_w * u / sum u, u = draw at the highest cap relative to it, clamped to the measured caps (the rule of EAR's
 * GPU plug-in). Returns the watts by which the caps exceed the budget. */
double divide_utilisation(const struct sweep_job *jobs, size_t n, double budget_w, double *cut);

/* Mean relative throughput on the true curves at these cuts. */
double score(const struct sweep_job *jobs, size_t n, const double *cut);

/* Mean relative throughput of the optimum on the hulls with no cut deeper than box (NULL: no box). */
ww_status oracle_value(const struct sweep_job *jobs, size_t n, double need_w, const double *box, double *out,
                       struct ww_error *err);

#define BOUND_SE 2.5    /* a slope under this many standard errors is only a bound */
#define NINETY_SE 1.645 /* one-sided 95 % of a normal: the ends of a 90 % interval */

#endif
