/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An event day: six hours of a site of 64 GPUs around one event, all from one seed; what is measured of it, and the most
 * that could have been made of it. Times are whole seconds of virtual time unless they end in _us.
 */
#ifndef WW_TESTS_DAY_H
#define WW_TESTS_DAY_H

#include "cli/world_internal.h"

#define DAY_S 21600
#define DAY_NODES 8
#define DAY_NODE_GPUS 8
#define DAY_GPUS (DAY_NODES * DAY_NODE_GPUS)
#define DAY_ROWS 3 /* the site first, then two feeds that are never short */
#define DAY_JOBS DAY_GPUS
#define DAY_EVENTS 2
#define DAY_VERSIONS 3 /* of all events together */
#define DAY_FAULTS (DAY_EVENTS * 15)

struct day_options {
	double not_binding; /* share of the jobs that draw far less than when their curves were taken: no cap of theirs binds */
	bool calm;          /* nothing is lost and nothing goes wrong */
};

/* ---- day.c: what happens ------------------------------------------------------------------------------------------------ */

struct day {
	struct ww_rng rng;
	uint64_t seed;
	struct day_options options;
	bool scattered; /* some jobs have GPUs here and there */
	struct ww_world_spec world;
	struct ww_plant_spec plant;
	struct ww_sim_node nodes[DAY_NODES]; /* all follow alike */
	struct ww_sim_row rows[DAY_ROWS];
	struct ww_sim_load loads[DAY_ROWS][DAY_NODES];
	uint32_t n_idle, gpus[DAY_GPUS]; /* by job; those without one come last */
	struct ww_sim_job jobs[DAY_JOBS];
	struct ww_config config;
	struct ww_node_config node_configs[DAY_NODES];
	struct ww_row row_configs[DAY_ROWS];
	struct ww_job told[DAY_JOBS];                       /* curves fitted at two cuts */
	double free_tps[DAY_JOBS];                          /* where no cap binds */
	uint32_t n_events;                                  /* ids 1 .. */
	struct ww_announcement announcements[DAY_VERSIONS]; /* versions of an event follow each other */
	struct ww_fault faults[DAY_FAULTS];
};

/* Fills all of it; `world` points into it. Checkpoints, reboots and events begin and end at whole seconds. WW_ERR_*. */
ww_status day_draw(struct day *day, uint64_t seed, const struct day_options *options, struct ww_error *err)
	WW_MUST_CHECK;

/* Virtual seconds of a wall time; DAY_S at most. */
uint32_t day_second(int64_t wall_us);

/* ---- day_live.c: what came of it ---------------------------------------------------------------------------------------- */

/* Why the budget was not used up: means over the measured seconds, in watts at the meter. They add up to budget - power. */
struct day_gap {
	double guard_w;  /* kept free */
	double free_w;   /* not given to anyone; below 0: watts are missing */
	double rest_w;   /* bound of what no GPU draws, above the truth; what sensors show too much is taken off */
	double charge_w; /* charges above the limits in force: what may still come */
	double slack_w;  /* limits above the draw of GPUs whose job runs */
	double pauses_w; /* the same of those whose job does not, or that have none */
};

/* Everything of one day, second by second: on the true plant. `measured`: from the end of a ramp down to the end of its
 * event; where the budget falls without a warning of settle + 5 s, from so long after the warning. */
struct day_log {
	double power_w[DAY_S], budget_w[DAY_S], pauses_w[DAY_S]; /* of the site, at its meter */
	double level_w[DAY_S]; /* budget by the deepest event in force, without ramps up */
	bool measured[DAY_S];
	uint64_t runs[DAY_S]; /* jobs that run, as bits */
	float tps[DAY_JOBS][DAY_S], job_w[DAY_JOBS][DAY_S];
	float floor_frac[DAY_JOBS][DAY_S]; /* that control said it keeps; at most what was promised */
	struct day_gap gap[DAY_S];
	double baseline_w[DAY_EVENTS];        /* by control */
	double baseline_off_frac[DAY_EVENTS]; /* from the mean power before, of ten minutes or up to 20 s more */
	struct ww_world_account account;
};

/* Lives it. WW_ERR_*. */
ww_status day_live(struct day *day, struct day_log *log, struct ww_error *err) WW_MUST_CHECK;

/* ---- day_best.c: what could have come of it ------------------------------------------------------------------------------ */

/*
 * The offline optimum of the measured seconds, in tokens. For each budget that was in force ("phase") the caps are constant
 * and the truth is known: the chips' factors, the tables of the jobs, what no GPU draws. No guard; every GPU of a job draws
 * just what the job's common pace takes (ideal trim). The sum of u T over jobs is made as large as possible, where u is the
 * share of the phase's seconds in which the job ran in the lived day: dark nodes and checkpoints cost the optimum what
 * they cost the product. The power with all jobs running is at most the budget. Floors are kept as far as they
 * can be: where not all can, those of the lowest tier fall, and so on.
 *
 * It is the least over prices p >= 0 of p B + sum over jobs of max over paces of (u T - p W). By weak duality no division
 * that keeps floors and budget has more, also not one whose caps change within the phase as long as their mean power
 * keeps the budget: at any price it earns at most p x (budget - its power) >= 0 less. What only a division could exceed it
 * by that gives the watts of GPUs in a pause to others for that while.
 */
struct day_best {
	double tokens;         /* of the optimum in the measured seconds */
	double at_power;       /* of the same where the budget is what was used, pauses made up for */
	double at_division;    /* of the watts that each job used while it ran, ideally trimmed */
	double lived;          /* tokens in truth */
	double day, day_lived; /* of all day; without an event every job runs freely, also during ramps */
	bool floors_kept;      /* in all phases */
	/* Of each job in the phase of the deepest budget: its mean watts while it ran, those that its tokens/s take at least,
	 * and what the optimum gives it. */
	struct day_job_best {
		double w, ideal_w, best_w;
		double tps, best_tps;
	} jobs[DAY_JOBS];
};
ww_status day_find_best(const struct day *day, const struct day_log *log, struct day_best *best, struct ww_error *err)
	WW_MUST_CHECK;

#endif
