/* SPDX-License-Identifier: Apache-2.0 */
/* A small random cluster, its jobs, its budgets and everything that goes wrong in it, all from one seed. */
#ifndef WW_TESTS_SCHEDULE_H
#define WW_TESTS_SCHEDULE_H

#include "cli/world_internal.h"

#define SCHEDULE_NODES 6
#define SCHEDULE_NODE_GPUS 4
#define SCHEDULE_GPUS (SCHEDULE_NODES * SCHEDULE_NODE_GPUS)
#define SCHEDULE_ROWS 6
#define SCHEDULE_JOBS 5
#define SCHEDULE_ANNOUNCEMENTS 12
#define SCHEDULE_FAULTS 16
#define SCHEDULE_MODES 3

struct schedule {
	struct ww_rng rng;
	int64_t length_us;
	struct ww_world_spec world;
	struct ww_plant_spec plant;
	struct ww_sim_node nodes[SCHEDULE_NODES];
	struct ww_sim_row rows[SCHEDULE_ROWS];
	struct ww_sim_load loads[SCHEDULE_ROWS][SCHEDULE_NODES];
	struct ww_sim_job jobs[SCHEDULE_JOBS];
	uint32_t gpus[SCHEDULE_JOBS][SCHEDULE_GPUS];
	struct ww_config config;
	struct ww_node_config node_configs[SCHEDULE_NODES];
	struct ww_row row_configs[SCHEDULE_ROWS];
	struct ww_job told[SCHEDULE_JOBS];
	struct ww_announcement announcements[SCHEDULE_ANNOUNCEMENTS];
	struct ww_fault faults[SCHEDULE_FAULTS];
	struct ww_mode_change modes[SCHEDULE_MODES];
};

/* Fills all of it; `world` points into it. */
void schedule_draw(struct schedule *s, uint64_t seed);

#endif
