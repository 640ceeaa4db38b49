/* SPDX-License-Identifier: Apache-2.0 */
/* A small plant for tests: equal nodes of 8 GPUs, one row over them. Included by one file of a program. */
#ifndef WW_TESTS_PLANT_SET_UP_H
#define WW_TESTS_PLANT_SET_UP_H

#include "assert_near.h"
#include "sim/sim.h"

#include <string.h>

struct set_up {
	struct ww_plant_spec spec;
	struct ww_sim_node nodes[8];
	struct ww_sim_load loads[8];
	struct ww_sim_row row;
	struct ww_sim_job jobs[8];
	uint32_t gpus[64];
	struct ww_plant *plant;
};

/* `n_nodes` nodes of 8 equal GPUs without spread or noise; one job of a family's middle on all GPUs of the first node. */
TEST_UNUSED static void set_up(struct set_up *s, uint32_t n_nodes)
{
	memset(s, 0, sizeof *s);
	for (uint32_t g = 0; g < 64; g++)
		s->gpus[g] = g;
	for (uint32_t n = 0; n < n_nodes; n++) {
		s->nodes[n] = (struct ww_sim_node){.n_gpus = 8, .boot_cap_w = NAN};
		s->loads[n] = (struct ww_sim_load){n, 1};
	}
	s->row = (struct ww_sim_row){.loads = s->loads, .n_loads = n_nodes};
	s->jobs[0] = (struct ww_sim_job){.id = 7,
	                                 .physics = ww_sim_middle_of(WW_SIM_DENSE_PRETRAIN),
	                                 .n_gpus = 8,
	                                 .gpus = s->gpus,
	                                 .end_us = WW_NEVER_US};
	s->spec = (struct ww_plant_spec){.seed = 1,
	                                 .board = ww_sim_h200,
	                                 .n_nodes = n_nodes,
	                                 .n_rows = 1,
	                                 .n_jobs = 1,
	                                 .nodes = s->nodes,
	                                 .rows = &s->row,
	                                 .jobs = s->jobs};
	s->spec.board.chip_sd = s->spec.board.gain_sd = s->spec.board.sensor_noise_frac = 0;
}

TEST_UNUSED static void build(struct set_up *s)
{
	struct ww_error err = {0};
	if (ww_plant_create(&s->spec, &s->plant, &err))
		fail_msg("%s", err.text);
}

TEST_UNUSED static void finish(struct set_up *s)
{
	ww_plant_destroy(s->plant);
	s->plant = NULL;
}

TEST_UNUSED static void live(struct set_up *s, int seconds)
{
	for (int i = 0; i < seconds; i++)
		ww_plant_second(s->plant);
}

TEST_UNUSED static void write_all(struct set_up *s, uint32_t n, double cap_w, int64_t at_us)
{
	for (uint32_t g = 0; g < n; g++)
		assert_true(ww_plant_write(s->plant, g, cap_w, at_us));
}

TEST_UNUSED static double tps_at(struct set_up *s, double cap_w)
{
	double w, tps;
	ww_plant_try(s->plant, 0, cap_w, &w, &tps);
	return tps;
}

#endif
