/* SPDX-License-Identifier: Apache-2.0 */
/* The plant against its equations: published mid-points, lock-step, settling, lags, pauses, power loss, replays. */
#include "assert_near.h"
#include "sim/sim.h"

#include <string.h>

#define SECOND WW_SECOND_US

/* ---- A plant of equal nodes, one row ---------------------------------------------------------------------------------- */

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
static void set_up(struct set_up *s, uint32_t n_nodes)
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

static void build(struct set_up *s)
{
	struct ww_error err = {0};
	if (ww_plant_create(&s->spec, &s->plant, &err))
		fail_msg("%s", err.text);
}

static void finish(struct set_up *s)
{
	ww_plant_destroy(s->plant);
	s->plant = NULL;
}

static void live(struct set_up *s, int seconds)
{
	for (int i = 0; i < seconds; i++)
		ww_plant_second(s->plant);
}

static void write_all(struct set_up *s, uint32_t n, double cap_w, int64_t at_us)
{
	for (uint32_t g = 0; g < n; g++)
		assert_true(ww_plant_write(s->plant, g, cap_w, at_us));
}

static double tps_at(struct set_up *s, double cap_w)
{
	double w, tps;
	ww_plant_try(s->plant, 0, cap_w, &w, &tps);
	return tps;
}

/* ---- Steady state ------------------------------------------------------------------------------------------------------ */

/* Draw and throughput against the cap at the middle of each family's ranges: caps 700 to 200 W, from the same equations
 * solved elsewhere. */
static void test_middles(void **state)
{
	static const double caps[] = {700, 600, 500, 400, 300, 200};
	static const struct {
		double w[6], kept[6];
	} expected[WW_N_SIM_FAMILIES] = {
		{{700, 600, 500, 400, 300, 200}, {1, .926, .841, .742, .574, .318}},
		{{700, 600, 500, 400, 300, 200}, {1, .930, .849, .752, .622, .345}},
		{{700, 600, 500, 400, 300, 200}, {1, .937, .863, .772, .655, .385}},
		{{551.46, 551.46, 500, 400, 300, 200}, {1, 1, .972, .902, .801, .528}},
	};
	struct set_up s;
	(void)state;
	for (int f = 0; f < WW_N_SIM_FAMILIES; f++) {
		set_up(&s, 1);
		s.jobs[0].physics = ww_sim_middle_of((enum ww_sim_family)f);
		build(&s);
		double full = tps_at(&s, 700);
		for (int i = 0; i < 6; i++) {
			write_all(&s, 8, caps[i], ww_plant_time_us(s.plant));
			live(&s, 4);
			assert_near(ww_plant_job_tps(s.plant, 0) / full, expected[f].kept[i], 0.0011);
			for (uint32_t g = 0; g < 8; g++)
				assert_near(ww_plant_gpu_w(s.plant, g), expected[f].w[i], 0.05);
		}
		finish(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_middles),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
