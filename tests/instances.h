/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random allocation problems, for tests and benchmarks: the same seed gives the same problem on every machine.
 *
 * GPUs stand in racks, racks in rows, rows on feeds; jobs take GPUs one after another, so that large ones span racks,
 * and a share of them is moved to a rack elsewhere. Rows of a problem: the feeds, then the rows, then the racks, then
 * the nodes where asked for. The site is the problem's budget_w.
 */
#ifndef WW_TESTS_INSTANCES_H
#define WW_TESTS_INSTANCES_H

#include "base/base.h"

enum shape {
	SHAPE_POWER,       /* l30 (d/0.3)^k */
	SHAPE_RANDOM,      /* slopes rise by random amounts */
	SHAPE_FLAT,        /* free at first: slopes rise by 1e-6 */
	SHAPE_NEAR_LINEAR, /* slopes rise by 1e-6 from a large one */
	SHAPE_STEEP        /* nearly a wall */
};

struct instance_spec {
	uint64_t seed;
	size_t n_jobs, n_gpus;               /* n_gpus 0: as drawn */
	uint32_t rack_gpus;                  /* GPUs of a rack; rows are 10 racks, feeds 10 rows (fewer when small) */
	bool small;                          /* rows of 4 racks, feeds of 3 rows */
	uint32_t node_gpus;                  /* 0: no row per node */
	double cut_frac;                     /* of the site */
	double slack_lo, slack_hi;           /* budget of a row: slack x its share of the site's budget */
	double feed_slack_lo, feed_slack_hi; /* of the feeds; 0 as the other rows */
	double tight_share;                  /* this share of the rows gets a slack of 0.95 instead */
	double misplaced_frac;               /* of the GPUs */
	bool two_feeds;                      /* racks load two feeds by half */
	bool floors, weights, ties, odd_curves, single_gpu;
	bool feasible; /* budgets are raised until all floors can be kept */
	bool in_order; /* ids ascend with the array, as in a registry; else they are in no order */
	enum ww_objective objective;
	bool explore;
};

struct instance {
	struct ww_alloc_problem problem; /* points to the arrays below */
	struct ww_alloc_job *jobs;
	struct ww_curve *curves;
	struct ww_alloc_row *rows;
	struct ww_row_share *shares;
	double *size_w; /* per row, last the site: baseline of its jobs */
};

/* The problems of the tests: 2 to 500 jobs, cuts 5 to 60 %, everything else drawn too. */
struct instance_spec instance_spec_random(uint64_t seed);

/* The benchmark's cluster: racks of 125 GPUs, 8 GPUs per job on average, a cut of 30 %. Slack: the site and every
 * twentieth row bind; tight: about half of the feeds and racks bind. */
struct instance_spec instance_spec_cluster(size_t n_jobs, bool tight, bool nodes);

/* Ends the program when memory runs out. */
void instance_init(struct instance *out, const struct instance_spec *spec);
void instance_finish(struct instance *instance);

/* One curve of a shape, with 2 to WW_MAX_KNOTS knots. */
struct ww_curve instance_curve(struct ww_rng *rng, enum shape shape, uint32_t n);

/* Per job, in the problem's order and computed by bisection on the curve alone: least cut (highest power), cut at the
 * lowest power, deepest cut that keeps the promised floor and the lowest power. */
double instance_least_cut(const struct ww_alloc_job *job);
double instance_lowest_cut(const struct ww_alloc_job *job);
double instance_floor_cut(const struct ww_alloc_job *job);
double instance_cut_at_loss(const struct ww_curve *curve, double loss, double most);

/* Watts of cut that row r needs (r = n_rows: the site), and those that cuts of the jobs give it. */
double instance_need_w(const struct instance *instance, size_t r);
void instance_cut_w(const struct instance *instance, const double *cut, double *out_w);

/* The objective at these cuts on the jobs' own curves. */
double instance_value(const struct instance *instance, const double *cut);

#endif
