/* SPDX-License-Identifier: Apache-2.0 */
/* Plants that cannot be: each is refused by one line that names the thing and its field. And the N-th allocation fails. */
#include "plant_set_up.h"
#include "wrapped_memory.h"

static struct set_up s;

static const struct ww_point good_points[] = {{250, 228, 100, NAN, NAN, -1}, {100, 99, 50, NAN, NAN, -1}};
static struct ww_point points[2];

/* Two nodes, two jobs: one by physics on the first node, one by points on the second. */
static void good(void)
{
	set_up(&s, 2);
	memcpy(points, good_points, sizeof points);
	s.jobs[1] = s.jobs[0];
	s.jobs[1].gpus = s.gpus + 8;
	s.jobs[1].points = points;
	s.jobs[1].n_points = 2;
	s.jobs[0].checkpoint = (struct ww_sim_pause){1000000, 100000, 0, 300};
	s.spec.n_jobs = 2;
}

static void refused(int line, const char *what, const char *field)
{
	struct ww_error err = {WW_OK, ""};
	ww_plant *plant = (ww_plant *)&s;
	ww_status status = ww_plant_create(&s.spec, &plant, &err);
	if (status == WW_OK || !strstr(err.text, what) || !strstr(err.text, field) || strchr(err.text, '\n') || plant)
		fail_msg("line %d: status %d, \"%s\", expected %s and %s", line, status, err.text, what, field);
	assert_int_equal(err.code, status);
}

/* With `field` set to `value`, or the statement done, the plant is refused; without, it is good. */
#define REFUSE(statement, what, field)                                                                                 \
	do {                                                                                                           \
		good();                                                                                                \
		build(&s);                                                                                             \
		finish(&s);                                                                                            \
		statement;                                                                                             \
		refused(__LINE__, what, field);                                                                        \
	} while (0)

static void test_board(void **state)
{
	(void)state;
	REFUSE(s.spec.board.min_w = 0, "board", "min_w");
	REFUSE(s.spec.board.max_w = 100, "board", "max_w");
	REFUSE(s.spec.board.max_w = INFINITY, "board", "max_w");
	REFUSE(s.spec.board.default_w = NAN, "board", "default_w");
	REFUSE(s.spec.board.default_w = 701, "board", "default_w");
	REFUSE(s.spec.board.idle_w = -1, "board", "idle_w");
	REFUSE(s.spec.board.static_w = 1e9, "board", "static_w");
	REFUSE(s.spec.board.tensor_w = -1, "board", "tensor_w");
	REFUSE(s.spec.board.sag = 1.5, "board", "sag");
	REFUSE(s.spec.board.v_least = 0, "board", "v_least");
	REFUSE(s.spec.board.x_least = 0, "board", "x_least");
	REFUSE(s.spec.board.x_least = 1, "board", "x_least");
	REFUSE(s.spec.board.dead_us = -1, "board", "dead_us");
	REFUSE(s.spec.board.settle_us = NAN, "board", "settle_us");
	REFUSE(s.spec.board.sensor_noise_frac = 3, "board", "sensor_noise_frac");
	REFUSE(s.spec.board.chip_sd = NAN, "board", "chip_sd");
	REFUSE(s.spec.board.gain_sd = 0.5, "board", "gain_sd");
	REFUSE(s.spec.board.model_gain_frac = -0.5, "board", "model_gain_frac");
}

static void test_nodes(void **state)
{
	(void)state;
	REFUSE(s.spec.n_nodes = 0, "no node", "at least one");
	REFUSE(s.nodes[1].n_gpus = 2000, "node 1", "n_gpus");
	REFUSE(s.nodes[1].host_w = -5, "node 1", "host_w");
	REFUSE(s.nodes[1].host_w = NAN, "node 1", "host_w");
	REFUSE(s.nodes[0].follow = -0.1, "node 0", "follow");
	REFUSE(s.nodes[0].lag_s = INFINITY, "node 0", "lag_s");
	REFUSE(s.nodes[1].boot_cap_w = 50, "node 1", "boot_cap_w");
}

static void test_rows(void **state)
{
	(void)state;
	REFUSE(s.row.other_w = NAN, "row 0", "other_w");
	REFUSE(s.row.cooling = -1, "row 0", "cooling");
	REFUSE(s.row.cooling_lag_s = -1, "row 0", "cooling_lag_s");
	REFUSE(s.row.meter_noise_frac = 1, "row 0", "meter_noise_frac");
	REFUSE(s.row.n_loads = SIZE_MAX, "row 0", "loads");
	REFUSE(s.loads[1].node = 2, "row 0", "node 2");
	REFUSE(s.loads[1].node = 0, "row 0", "node 0 twice");
	REFUSE(s.loads[1].frac = 1.5, "row 0", "frac");
	REFUSE(s.loads[1].frac = NAN, "row 0", "frac");
}

static void test_jobs(void **state)
{
	(void)state;
	REFUSE(s.jobs[1].n_gpus = 0, "job 1", "0 GPUs");
	REFUSE(s.jobs[1].n_gpus = 17, "job 1", "17 GPUs");
	REFUSE(s.gpus[9] = 16, "job 1", "GPU 16");
	REFUSE(s.gpus[9] = 8, "job 1", "GPU 8 twice");
	REFUSE(s.gpus[9] = 3, "jobs 0 and 1", "GPU 3 at the same time");
	REFUSE(s.jobs[0].end_us = 0, "job 0", "ends at");
	REFUSE(s.jobs[0].start_us = INT64_MIN, "job 0", "start_us");
	REFUSE(s.jobs[0].jitter_frac = -0.1, "job 0", "jitter_frac");
	REFUSE(s.jobs[0].physics.phi = NAN, "job 0", "phi");
	REFUSE(s.jobs[0].physics.phi = 1.01, "job 0", "phi");
	REFUSE(s.jobs[0].physics.h = 0.5, "job 0", "h is");
	REFUSE(s.jobs[0].physics.tensor = 40, "job 0", "tensor");
	REFUSE(s.jobs[0].physics.x1_tps = 0, "job 0", "x1_tps");
	REFUSE(s.jobs[0].physics.x1_tps = INFINITY, "job 0", "x1_tps");
}

static void test_pauses_and_points(void **state)
{
	(void)state;
	REFUSE(s.jobs[0].checkpoint.every_us = -1, "checkpoint of job 0", "every_us");
	REFUSE(s.jobs[0].checkpoint.for_us = 0, "checkpoint of job 0", "for_us");
	REFUSE(s.jobs[0].checkpoint.for_us = 1000001, "checkpoint of job 0", "for_us");
	REFUSE(s.jobs[0].checkpoint.power_w = NAN, "checkpoint of job 0", "power_w");
	REFUSE(s.jobs[0].checkpoint.first_us = INT64_MAX, "checkpoint of job 0", "first_us");
	REFUSE(s.jobs[1].n_points = 0, "job 1", "0 measured points");
	REFUSE(points[1].cap_w = 0, "job 1", "cap_w");
	REFUSE(points[1].power_w = NAN, "job 1", "power_w");
	REFUSE(points[1].throughput = -3, "job 1", "throughput");
	REFUSE(points[0].throughput = INFINITY, "job 1", "throughput");
}

/* ---- Memory ----------------------------------------------------------------------------------------------------------- */

static void test_out_of_memory(void **state)
{
	(void)state;
	for (unsigned long n = 1;; n++) {
		struct ww_error err = {WW_OK, ""};
		ww_plant *plant = (ww_plant *)&s;
		assert_true(n < 100);
		good();
		until_failure = n;
		armed = true;
		ww_status status = ww_plant_create(&s.spec, &plant, &err);
		armed = false;
		if (status == WW_OK) {
			assert_true(n > 20);
			ww_plant_destroy(plant);
			return;
		}
		assert_int_equal(status, WW_ERR_NOMEM);
		assert_non_null(strstr(err.text, "out of memory"));
		assert_null(plant);
	}
}

/* Seconds, writes, reads and power losses allocate nothing. */
static void test_no_allocation_later(void **state)
{
	double w, tps;
	(void)state;
	good();
	build(&s);
	unsigned long before = n_allocations;
	for (int64_t t = 0; t < 50; t++) {
		write_all(&s, 8, 300 + (double)t, t * WW_SECOND_US + 5000);
		if (t == 20)
			ww_plant_power_off(s.plant, 1);
		if (t == 30)
			ww_plant_power_on(s.plant, 1, t * WW_SECOND_US);
		live(&s, 1);
		w = ww_plant_sensor_w(s.plant, 1) + ww_plant_meter_w(s.plant, 0);
		assert_true(w > 0);
		ww_plant_try(s.plant, 1, 200, &w, &tps);
	}
	assert_int_equal(n_allocations, before);
	finish(&s);
}

/* The smallest of plants, and one without jobs and rows. */
static void test_small(void **state)
{
	(void)state;
	good();
	s.spec.n_jobs = s.spec.n_rows = 0;
	s.nodes[1].n_gpus = 0;
	build(&s);
	live(&s, 3);
	assert_int_equal(ww_plant_gpus(s.plant), 8);
	assert_near(ww_plant_gpu_w(s.plant, 7), s.spec.board.idle_w, 0);
	finish(&s);
	ww_plant_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_board),
		cmocka_unit_test(test_nodes),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_jobs),
		cmocka_unit_test(test_pauses_and_points),
		cmocka_unit_test(test_out_of_memory),
		cmocka_unit_test(test_no_allocation_later),
		cmocka_unit_test(test_small),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
