/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to a plant: pauses, jobs that come and go, nodes that lose power, and replays of measured sweeps. */
#include "plant_set_up.h"

/* Watts of a GPU over the next second. */
static double next_w(struct set_up *s, uint32_t gpu)
{
	live(s, 1);
	return ww_plant_gpu_w(s->plant, gpu);
}

/* ---- Pauses ------------------------------------------------------------------------------------------------------------- */

/* Checkpoints from 2.25 s on, every 10 s for 3 s: no tokens, another draw, both to the microsecond. */
static void test_checkpoint(void **state)
{
	struct set_up s;
	(void)state;
	set_up(&s, 1);
	s.jobs[0].checkpoint = (struct ww_sim_pause){10000000, 3000000, 2250000, 250};
	build(&s);
	double full = ww_plant_job_tps(s.plant, 0);
	for (int t = 0; t < 40; t++) {
		double begin = fmax(t % 10, 2.25), end = fmin(t % 10 + 1, 5.25), paused = fmax(0, end - begin);
		assert_near(next_w(&s, 5), 700 - 450 * paused, 1e-6);
		assert_near(ww_plant_job_tps(s.plant, 0), full * (1 - paused), 1e-6);
		bool is_paused = (t + 1) % 10 >= 3 && (t + 1) % 10 <= 5;
		assert_int_equal(ww_plant_job_state(s.plant, 0), is_paused ? WW_SIM_CHECKPOINT : WW_SIM_RUNNING);
	}
	finish(&s);
}

/* A pause draws no more than the cap; a cap that comes meanwhile counts afterwards without settling once more. */
static void check_cap_in_a_pause(bool checkpoint)
{
	struct set_up s;
	set_up(&s, 1);
	*(checkpoint ? &s.jobs[0].checkpoint : &s.jobs[0].evaluation) =
		(struct ww_sim_pause){1000000000, 5000000, 2000000, 350};
	build(&s);
	live(&s, 2);
	assert_near(next_w(&s, 0), 350, 1e-9);
	assert_int_equal(ww_plant_job_state(s.plant, 0), checkpoint ? WW_SIM_CHECKPOINT : WW_SIM_EVALUATION);
	write_all(&s, 8, 300, 3000000);
	live(&s, 1);
	assert_near(next_w(&s, 0), 300, 1e-9);
	write_all(&s, 8, 450, 5000000);
	live(&s, 1);
	assert_near(next_w(&s, 0), 350, 1e-9);
	assert_near(next_w(&s, 0), 450, 1e-9);
	finish(&s);
}

static void test_cap_in_a_pause(void **state)
{
	(void)state;
	check_cap_in_a_pause(false);
	check_cap_in_a_pause(true);
}

/* Both at once is a checkpoint; the evaluation goes on behind it. */
static void test_two_pauses(void **state)
{
	struct set_up s;
	(void)state;
	set_up(&s, 1);
	s.jobs[0].checkpoint = (struct ww_sim_pause){1000000000, 2000000, 2000000, 250};
	s.jobs[0].evaluation = (struct ww_sim_pause){1000000000, 4000000, 1000000, 350};
	build(&s);
	live(&s, 1);
	assert_near(next_w(&s, 0), 350, 1e-9);
	assert_near(next_w(&s, 0), 250, 1e-9);
	assert_near(next_w(&s, 0), 250, 1e-9);
	assert_near(next_w(&s, 0), 350, 1e-9);
	assert_near(next_w(&s, 0), 700, 1e-9);
	finish(&s);
}

/* ---- Jobs that come and go ----------------------------------------------------------------------------------------------- */

/* Three jobs one after the other on the same GPUs, listed in another order, two of them within one second. */
static void test_jobs_in_turn(void **state)
{
	struct set_up s;
	const int64_t times[3][2] = {{5600000, 9000000}, {5200000, 5500000}, {1500000, 5200000}};
	double idle = ww_sim_h200.idle_w;
	(void)state;
	set_up(&s, 1);
	for (int j = 0; j < 3; j++) {
		s.jobs[j] = s.jobs[0];
		s.jobs[j].start_us = times[j][0];
		s.jobs[j].end_us = times[j][1];
	}
	s.jobs[1].physics = ww_sim_middle_of(WW_SIM_MOE_LORA);
	s.spec.n_jobs = 3;
	build(&s);
	assert_int_equal(ww_plant_job_state(s.plant, 2), WW_SIM_WAITING);
	assert_near(ww_plant_gpu_w(s.plant, 0), idle, 0);
	assert_near(next_w(&s, 0), idle, 0);
	assert_near(next_w(&s, 0), (idle + 700) / 2, 1e-6);
	live(&s, 2);
	assert_near(next_w(&s, 0), 700, 0);
	assert_near(next_w(&s, 0), 0.2 * 700 + 0.3 * 551.464 + 0.1 * idle + 0.4 * 700, 0.001);
	assert_true(ww_plant_job_tps(s.plant, 0) > 0 && ww_plant_job_tps(s.plant, 1) > 0);
	assert_int_equal(ww_plant_job_state(s.plant, 2), WW_SIM_ENDED);
	live(&s, 2);
	assert_near(ww_plant_job_tps(s.plant, 2), 0, 0);
	assert_near(next_w(&s, 0), 700, 0);
	for (int i = 0; i < 5; i++)
		assert_near(next_w(&s, 0), idle, 0);
	finish(&s);
}

/* A cap written before a job starts holds it from its first moment on. */
static void test_cap_before_start(void **state)
{
	struct set_up s;
	(void)state;
	set_up(&s, 1);
	s.jobs[0].start_us = 3300000;
	build(&s);
	write_all(&s, 8, 250, 100000);
	write_all(&s, 8, 400, 200000);
	live(&s, 3);
	assert_near(next_w(&s, 0), 0.3 * s.spec.board.idle_w + 0.7 * 400, 1e-6);
	assert_near(next_w(&s, 0), 400, 1e-6);
	finish(&s);
}

/* Without settling time nothing is left of a job in the second after its end. */
static void test_sudden_end(void **state)
{
	struct set_up s;
	(void)state;
	set_up(&s, 1);
	s.spec.board.settle_us = 0;
	s.jobs[0].end_us = 2500000;
	build(&s);
	live(&s, 2);
	assert_near(next_w(&s, 0), (700 + s.spec.board.idle_w) / 2, 1e-9);
	assert_near(next_w(&s, 0), s.spec.board.idle_w, 0);
	finish(&s);
}

/* ---- Power loss ------------------------------------------------------------------------------------------------------------ */

/* One node of two goes dark: it draws nothing, its job's other GPUs idle; it comes back with the board's default. */
static void test_power_loss(void **state)
{
	struct set_up s;
	double idle = ww_sim_h200.idle_w;
	(void)state;
	set_up(&s, 2);
	s.nodes[0].host_w = s.nodes[1].host_w = 1000;
	s.jobs[0].n_gpus = 16;
	build(&s);
	write_all(&s, 16, 400, 0);
	live(&s, 5);
	double full = ww_plant_job_tps(s.plant, 0);
	ww_plant_power_off(s.plant, 1);
	assert_near(ww_plant_enforced_w(s.plant, 8), 0, 0);
	assert_false(ww_plant_write(s.plant, 8, 300, 5500000));
	for (int i = 0; i < 4; i++) {
		assert_near(next_w(&s, 8), 0, 0);
		assert_near(ww_plant_gpu_w(s.plant, 0), idle, 0);
		assert_near(ww_plant_row_w(s.plant, 0, 1), 8 * idle + 1000, 1e-9);
		assert_near(ww_plant_job_tps(s.plant, 0), 0, 0);
		assert_int_equal(ww_plant_job_state(s.plant, 0), WW_SIM_DARK);
		assert_nan(ww_plant_sensor_w(s.plant, 8));
		assert_near(ww_plant_sensor_w(s.plant, 0), idle, 1e-9);
	}
	ww_plant_power_on(s.plant, 1, 9250000);
	assert_near(ww_plant_enforced_w(s.plant, 8), 0, 0);
	assert_false(ww_plant_write(s.plant, 8, 300, 9200000));
	assert_near(next_w(&s, 8), 0.75 * 400, 0.3);
	assert_near(ww_plant_gpu_w(s.plant, 0), 0.25 * idle + 0.75 * 400, 0.3);
	assert_near(ww_plant_row_w(s.plant, 0, 1), ww_plant_row_w(s.plant, 0, 0) + 1750, 1e-9);
	assert_near(ww_plant_enforced_w(s.plant, 8), 700, 0);
	live(&s, 3);
	assert_near_rel(ww_plant_job_tps(s.plant, 0), full, 1e-9);
	assert_near(ww_plant_gpu_w(s.plant, 8), 400, 1e-9); /* the others' caps hold the job */
	write_all(&s, 8, 700, 13000000);
	live(&s, 4);
	assert_near(ww_plant_gpu_w(s.plant, 8), 700, 1e-9);
	finish(&s);
}

/* Two nodes come back one after the other: the job waits for the later one. Without power a host does not follow either. */
static void test_power_loss_of_two(void **state)
{
	struct set_up s;
	double idle = ww_sim_h200.idle_w;
	(void)state;
	set_up(&s, 2);
	s.nodes[1].follow = 0.1;
	s.nodes[1].lag_s = 30;
	s.jobs[0].n_gpus = 16;
	build(&s);
	live(&s, 2);
	assert_near(ww_plant_row_w(s.plant, 0, 1), 16 * 700 + 560, 1e-6);
	ww_plant_power_off(s.plant, 0);
	ww_plant_power_off(s.plant, 1);
	live(&s, 2);
	assert_near(ww_plant_row_w(s.plant, 0, 1), 0, 0);
	ww_plant_power_on(s.plant, 0, 6500000);
	ww_plant_power_on(s.plant, 1, 5500000);
	live(&s, 1);
	assert_near(ww_plant_gpu_w(s.plant, 8), 0, 0);
	assert_near(next_w(&s, 8), idle / 2, 1e-9);
	assert_near(next_w(&s, 8), (idle + 700) / 2, 1e-9);
	assert_near(ww_plant_gpu_w(s.plant, 0), 350, 1e-9);
	assert_near(next_w(&s, 0), 700, 1e-9);
	write_all(&s, 16, 300, 8000000);
	live(&s, 4);
	ww_plant_power_on(s.plant, 0, 12000000); /* has power: nothing happens */
	assert_near(ww_plant_enforced_w(s.plant, 0), 300, 0);
	assert_near(next_w(&s, 0), 300, 0);
	finish(&s);
}

/* The boot unit's cap is there from the first moment; without a job a node with power idles. */
static void test_boot_cap(void **state)
{
	struct set_up s;
	(void)state;
	set_up(&s, 2);
	s.nodes[0].boot_cap_w = s.nodes[1].boot_cap_w = 300;
	build(&s);
	for (uint32_t n = 0; n < 2; n++) {
		ww_plant_power_off(s.plant, n);
		live(&s, 2);
		assert_near(ww_plant_gpu_w(s.plant, 8 * n), 0, 0);
		ww_plant_power_on(s.plant, n, ww_plant_time_us(s.plant) + 1500000);
		live(&s, 4);
		assert_near(ww_plant_enforced_w(s.plant, 8 * n), 300, 0);
		assert_near(ww_plant_gpu_w(s.plant, 8 * n), n == 0 ? 300 : s.spec.board.idle_w, 1e-9);
	}
	finish(&s);
}

/* A cap on its way when the power goes is lost. */
static void test_write_lost_with_power(void **state)
{
	struct set_up s;
	(void)state;
	set_up(&s, 1);
	s.spec.board.dead_us = 500000;
	build(&s);
	write_all(&s, 8, 250, 900000);
	live(&s, 1);
	ww_plant_power_off(s.plant, 0);
	ww_plant_power_on(s.plant, 0, 1000000);
	live(&s, 4);
	assert_near(ww_plant_gpu_w(s.plant, 0), 700, 1e-9);
	assert_near(ww_plant_enforced_w(s.plant, 0), 700, 0);
	finish(&s);
}

/* ---- Replays ---------------------------------------------------------------------------------------------------------------- */

/* A sweep like those of boards of 250 W: repetitions, a rise within noise, a draw a little above its cap. */
static const struct ww_point sweep[] = {
	{250, 228, 100, NAN, NAN, -1},    {225, 220, 97.5, NAN, NAN, -1},  {200, 198, 93, NAN, NAN, -1},
	{200, 200, 95, NAN, NAN, -1},     {175, 174, 89.5, NAN, NAN, -1},  {150, 149.5, 78, NAN, NAN, -1},
	{125, 125.4, 63.4, NAN, NAN, -1}, {100, 99.8, 48.4, NAN, NAN, -1},
};

static void set_up_replay(struct set_up *s)
{
	set_up(s, 1);
	s->spec.board.min_w = 100;
	s->spec.board.max_w = s->spec.board.default_w = 250;
	s->jobs[0].points = sweep;
	s->jobs[0].n_points = sizeof sweep / sizeof *sweep;
	s->jobs[0].points_gpus = 4;
}

static void test_replay(void **state)
{
	static const double expected[][3] = {{250, 228, 200},   {225, 220, 195},       {200, 199, 188},
	                                     {175, 174, 179},   {150, 149.5, 156},     {125, 125, 126.8},
	                                     {100, 99.8, 96.8}, {162.5, 161.75, 167.5}};
	struct set_up s;
	(void)state;
	set_up_replay(&s);
	build(&s);
	for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
		write_all(&s, 8, expected[i][0], ww_plant_time_us(s.plant));
		live(&s, 4);
		assert_near(ww_plant_gpu_w(s.plant, 3), expected[i][1], 1e-4);
		assert_near(ww_plant_job_tps(s.plant, 0), expected[i][2], 1e-4);
	}
	finish(&s);
}

/* Below the lowest cap measured: in proportion. */
static void test_replay_below(void **state)
{
	struct set_up s;
	double w, tps;
	(void)state;
	set_up_replay(&s);
	s.spec.board.min_w = 40;
	build(&s);
	ww_plant_try(s.plant, 0, 80, &w, &tps);
	assert_near(w, 0.8 * 99.8, 1e-4);
	assert_near(tps, 0.8 * 96.8, 1e-4);
	ww_plant_try(s.plant, 0, 40, &w, &tps);
	assert_near(w, 49.9, 1e-4); /* not held */
	assert_near(tps, 48.4, 1e-4);
	finish(&s);
}

/* A hungrier chip does at a cap what the measured one did at cap / q; the job waits for it. */
static void test_replay_spread(void **state)
{
	struct set_up s;
	double most = 0, least = 1e9;
	(void)state;
	set_up_replay(&s);
	s.spec.board.chip_sd = 0.04;
	build(&s);
	double plain = 2 * 78, alike;
	write_all(&s, 8, 150, 0);
	live(&s, 4);
	for (uint32_t g = 0; g < 8; g++) {
		most = fmax(most, ww_plant_gpu_w(s.plant, g));
		least = fmin(least, ww_plant_gpu_w(s.plant, g));
	}
	assert_true(most <= 150 && most > 149 && least < 147);
	alike = ww_plant_job_tps(s.plant, 0);
	assert_true(alike < plain && alike > 0.9 * plain);
	finish(&s);
}

/* Throughput that falls while the cap rises is a repetition: it never falls in the plant. */
static void test_replay_not_monotone(void **state)
{
	static const struct ww_point odd[] = {{250, 170, 100, NAN, NAN, -1},
	                                      {225, 171, 101, NAN, NAN, -1},
	                                      {150, 140, 94, NAN, NAN, -1},
	                                      {100, 110, 80, NAN, NAN, -1}};
	struct set_up s;
	double w, before = 0, w_before = 0;
	(void)state;
	set_up_replay(&s);
	s.jobs[0].points = odd;
	s.jobs[0].n_points = 4;
	s.jobs[0].points_gpus = 0;
	build(&s);
	assert_near(tps_at(&s, 250), 100.5, 1e-4);
	for (double cap = 100; cap <= 250; cap += 1) {
		double tps;
		ww_plant_try(s.plant, 0, cap, &w, &tps);
		assert_true(tps >= before && w >= w_before);
		before = tps;
		w_before = w;
	}
	ww_plant_try(s.plant, 0, 100, &w, &before);
	assert_near(w, 110, 1e-4); /* 10 % above the cap: it was not held, and is not here */
	finish(&s);
}

static void test_replay_curve(void **state)
{
	struct set_up s;
	struct ww_curve curve;
	struct ww_error err = {0};
	(void)state;
	set_up_replay(&s);
	build(&s);
	assert_int_equal(ww_plant_curve(s.plant, 0, true, &curve, &err), WW_OK);
	assert_near(curve.p0_w, 250, 1e-3);
	assert_near(curve.t0_tps, 200, 1e-4);
	for (double cap = 100; cap <= 250; cap += 25) {
		double loss = 1 - tps_at(&s, cap) / 200, hull = ww_curve_loss(&curve, 1 - cap / 250);
		assert_true(hull <= loss + 0.002 && hull >= loss - 0.012); /* at 175 and 200 W the hull lies below */
	}
	finish(&s);
}

/* Where a sweep is not convex its curve is the hull: 200 W lies on the way from 250 to 150 W. */
static void test_curve_of_a_dent(void **state)
{
	static const struct ww_point dent[] = {{250, 240, 100, NAN, NAN, -1},
	                                       {200, 198, 80, NAN, NAN, -1},
	                                       {150, 149, 78, NAN, NAN, -1},
	                                       {100, 100, 50, NAN, NAN, -1}};
	struct set_up s;
	struct ww_curve curve;
	struct ww_error err = {0};
	(void)state;
	set_up_replay(&s);
	s.jobs[0].points = dent;
	s.jobs[0].n_points = 4;
	build(&s);
	assert_int_equal(ww_plant_curve(s.plant, 0, true, &curve, &err), WW_OK);
	assert_near(ww_curve_loss(&curve, 0.2), 0.11, 0.003);
	assert_near(ww_curve_loss(&curve, 0.4), 0.22, 0.003);
	assert_near(ww_curve_loss(&curve, 0.6), 0.50, 0.003);
	finish(&s);
}

/* ---- A storm --------------------------------------------------------------------------------------------------------------- */

/* Eight nodes, six jobs of 8 to 16 GPUs that follow one another on shared GPUs. */
static void set_up_storm(struct set_up *s, uint64_t seed)
{
	set_up(s, 8);
	s->spec.seed = seed;
	s->spec.board = ww_sim_h200;
	s->spec.n_jobs = 6;
	for (uint32_t j = 0; j < 6; j++) {
		s->jobs[j] = s->jobs[0];
		s->jobs[j].physics = ww_sim_middle_of((enum ww_sim_family)(j % WW_N_SIM_FAMILIES));
		s->jobs[j].n_gpus = j % 2 ? 16 : 8;
		s->jobs[j].gpus = s->gpus + 16 * (j % 3);
		s->jobs[j].start_us = j < 3 ? (int64_t)(5100000 * j) : 100000000;
		s->jobs[j].end_us = j < 3 ? 100000000 - 7000000 * (int64_t)j : WW_NEVER_US;
		s->jobs[j].checkpoint = (struct ww_sim_pause){31000000, 2700000, 1300000 * (int64_t)j, 320};
		s->jobs[j].jitter_frac = 0.02;
	}
}

static void one_blow(struct set_up *s, struct ww_rng *rng, int64_t t)
{
	uint32_t node = ww_rng_below(rng, 8);
	int64_t at = t * WW_SECOND_US + (int64_t)ww_rng_below(rng, 1000001);
	switch (ww_rng_below(rng, 12)) {
	case 0:
		ww_plant_power_off(s->plant, node);
		break;
	case 1:
		ww_plant_power_on(s->plant, node, at + (int64_t)ww_rng_below(rng, 3000000));
		break;
	default:
		for (uint32_t i = 0; i < 8; i++)
			ww_plant_write(s->plant, 8 * node + i, 150 + 600 * ww_rng_uniform(rng), at);
	}
}

static void check_bounds(struct set_up *s)
{
	double sum = 0, full[6] = {0};
	for (uint32_t g = 0; g < 64; g++) {
		double w = ww_plant_gpu_w(s->plant, g);
		assert_true(w >= 0 && w <= 700 * 1.07);
		sum += w;
	}
	assert_near(ww_plant_row_w(s->plant, 0, 0), sum, 1e-6);
	for (uint32_t j = 0; j < 6; j++) {
		double w;
		ww_plant_try(s->plant, j, 700, &w, &full[j]);
		assert_true(ww_plant_job_tps(s->plant, j) >= 0 && ww_plant_job_tps(s->plant, j) <= full[j] + 1e-6);
	}
}

/* Power losses, caps, jobs and pauses at random; then quiet, in which everything must be where it belongs. */
static void test_storm(void **state)
{
	struct set_up s;
	struct ww_rng rng;
	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		ww_rng_seed(&rng, seed);
		set_up_storm(&s, seed);
		build(&s);
		for (int64_t t = 0; t < 150; t++) {
			for (uint32_t k = ww_rng_below(&rng, 4); k > 0; k--)
				one_blow(&s, &rng, t);
			live(&s, 1);
			check_bounds(&s);
		}
		for (uint32_t n = 0; n < 8; n++)
			ww_plant_power_on(s.plant, n, 150000000);
		live(&s, 5);
		write_all(&s, 64, 430, 155000000);
		live(&s, 4);
		for (uint32_t j = 3; j < 6; j++) {
			double w, tps, sum = 0;
			while (ww_plant_job_state(s.plant, j) != WW_SIM_RUNNING)
				live(&s, 1);
			live(&s, 3);
			ww_plant_try(s.plant, j, 430, &w, &tps);
			for (uint32_t i = 0; i < s.jobs[j].n_gpus; i++)
				sum += ww_plant_sensor_w(s.plant, s.jobs[j].gpus[i]) / s.jobs[j].n_gpus;
			assert_near_rel(ww_plant_job_tps(s.plant, j), tps, 1e-9);
			assert_near_rel(sum, w, 0.01);
		}
		assert_near(ww_plant_gpu_w(s.plant, 63), s.spec.board.idle_w, 0);
		finish(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_checkpoint),
		cmocka_unit_test(test_cap_in_a_pause),
		cmocka_unit_test(test_two_pauses),
		cmocka_unit_test(test_jobs_in_turn),
		cmocka_unit_test(test_cap_before_start),
		cmocka_unit_test(test_sudden_end),
		cmocka_unit_test(test_power_loss),
		cmocka_unit_test(test_power_loss_of_two),
		cmocka_unit_test(test_boot_cap),
		cmocka_unit_test(test_write_lost_with_power),
		cmocka_unit_test(test_replay),
		cmocka_unit_test(test_replay_below),
		cmocka_unit_test(test_replay_spread),
		cmocka_unit_test(test_replay_not_monotone),
		cmocka_unit_test(test_replay_curve),
		cmocka_unit_test(test_curve_of_a_dent),
		cmocka_unit_test(test_storm),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
