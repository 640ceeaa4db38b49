/* SPDX-License-Identifier: Apache-2.0 */
/* What the reader of scenarios reads, and what it makes of it. */
#include "assert_near.h"
#include "scenario_text.h"

static int64_t s(double seconds)
{
	return llround(seconds * 1e6);
}

/* ---- Every key --------------------------------------------------------------------------------------------------- */

static void own_keys_are_read(void **state)
{
	struct ww_scenario c = read_good("# wattweir scenario 1\n"
	                                 "name: all keys\n"
	                                 "seed: 2147483648\n"
	                                 "duration: 2h\n"
	                                 "period: 2 s\n"
	                                 "objective: maxmin\n"
	                                 "lease: 0.5 min\n"
	                                 "after: restore\n"
	                                 "trim: off\n"
	                                 "lowered: reassert\n"
	                                 "settle: 2500 ms\n"
	                                 "guard: 1%\n"
	                                 "gpu: {min: 100 W, max: 0.4 kW, default: 300 W, idle: 50 W, chip_spread: 5%,\n"
	                                 "  sensor_gain: 1%, sensor_noise: 0.4%, dead: 20000 us, settle_time: 0.2 s,\n"
	                                 "  duty_sampler: yes}\n"
	                                 "curves: {at: [10%, 20%, 60.5%], noise: 2%}\n"
	                                 "wire: {loss: 1%, double: 2%, delay_least: 3 ms, delay_most: 4 ms, late: 5%,\n"
	                                 "  late_most: 6 s}\n" ROWS NODES JOBS);
	(void)state;
	assert_string_equal(c.name, "all keys");
	assert_true(c.seed == 2147483648u);
	assert_int_equal(c.duration_us, s(7200));
	assert_int_equal(c.period_us, s(2));
	assert_int_equal(c.objective, WW_OBJECTIVE_MAXMIN);
	assert_int_equal(c.lease_us, s(30));
	assert_int_equal(c.after, WW_AFTER_RESTORE);
	assert_int_equal(c.trim, WW_TRIM_OFF);
	assert_true(c.reassert_lower);
	assert_int_equal(c.settle_us, s(2.5));
	assert_near(c.rows[0].guard_frac, 0.01, 1e-12);
	assert_near(c.gpu.min_w, 100, 0);
	assert_near(c.gpu.max_w, 400, 0);
	assert_near(c.gpu.default_w, 300, 0);
	assert_near(c.gpu.idle_w, 50, 0);
	assert_near(c.gpu.chip_sd, 0.05, 1e-12);
	assert_near(c.gpu.gain_sd, 0.01, 1e-12);
	assert_near(c.gpu.sensor_noise_frac, 0.004, 1e-12);
	assert_int_equal(c.gpu.dead_us, 20000);
	assert_int_equal(c.gpu.settle_us, 200000);
	assert_true(c.gpu.duty_sampler);
	assert_int_equal(c.curves.kind, WW_CURVES_FITTED);
	assert_int_equal(c.curves.n_cuts, 3);
	assert_near(c.curves.cut_frac[2], 0.605, 1e-12);
	assert_near(c.curves.noise_frac, 0.02, 1e-12);
	assert_near(c.wire.loss_frac, 0.01, 1e-12);
	assert_near(c.wire.double_frac, 0.02, 1e-12);
	assert_int_equal(c.wire.delay_least_us, 3000);
	assert_int_equal(c.wire.delay_most_us, 4000);
	assert_near(c.wire.late_frac, 0.05, 1e-12);
	assert_int_equal(c.wire.late_most_us, s(6));
	ww_scenario_finish(&c);
	ww_scenario_finish(&c);
	ww_scenario_finish(NULL);
}

/* What is not given is what the manual says. */
static void absent_keys_have_their_meaning(void **state)
{
	struct ww_scenario c = read_good(LEAST);
	const struct ww_scenario_job *j = &c.jobs[0];
	(void)state;
	assert_int_equal(c.seed, 1);
	assert_int_equal(c.period_us, s(1));
	assert_int_equal(c.objective, WW_OBJECTIVE_RELATIVE);
	assert_int_equal(c.lease_us, s(15));
	assert_int_equal(c.after, WW_AFTER_HOLD);
	assert_int_equal(c.trim, WW_TRIM_ON);
	assert_false(c.reassert_lower);
	assert_int_equal(c.settle_us, s(3));
	assert_near(c.gpu.min_w, 200, 0);
	assert_near(c.gpu.max_w, 700, 0);
	assert_near(c.gpu.default_w, 700, 0);
	assert_near(c.gpu.idle_w, 75, 0);
	assert_near(c.gpu.chip_sd, 0.04, 0);
	assert_near(c.gpu.gain_sd, 0.02, 0);
	assert_near(c.gpu.sensor_noise_frac, 0.003, 0);
	assert_int_equal(c.gpu.dead_us, 150000);
	assert_int_equal(c.gpu.settle_us, 100000);
	assert_false(c.gpu.duty_sampler);
	assert_int_equal(c.curves.kind, WW_CURVES_NONE);
	assert_near(c.wire.loss_frac + c.wire.double_frac + c.wire.late_frac, 0, 0);
	assert_int_equal(c.wire.delay_least_us, 1000);
	assert_int_equal(c.wire.delay_most_us, 10000);
	assert_true(isinf(c.rows[0].limit_w));
	assert_int_equal(c.rows[0].boundary, WW_BOUNDARY_METER);
	assert_near(c.rows[0].meter_noise_frac, 0.002, 0);
	assert_near(c.rows[0].other_w + c.rows[0].cooling_frac, 0, 0);
	assert_int_equal(c.rows[0].cooling_lag_us, s(300));
	assert_near(c.rows[0].guard_frac, 0.005, 0);
	assert_near(c.nodes[0].follow_frac, 0, 0);
	assert_int_equal(c.nodes[0].lag_us, s(60));
	assert_int_equal(c.nodes[0].boot_us, s(60));
	assert_nan(c.nodes[0].boot_cap_w);
	assert_nan(j->tokens_tps);
	assert_near(j->jitter_frac, 0.01, 0);
	assert_int_equal(j->tier, 3);
	assert_near(j->floor_frac, 0, 0);
	assert_near(j->weight, 1, 0);
	assert_int_equal(j->start_us, 0);
	assert_true(j->end_us == WW_NEVER_US);
	assert_int_equal(j->checkpoint.every_us, 0);
	assert_int_equal(j->evaluation.every_us, 0);
	assert_null(c.events);
	assert_null(c.faults);
	ww_scenario_finish(&c);
}

static void defaults_follow_what_is_given(void **state)
{
	struct ww_scenario c = read_good(LEAST "gpu: {max: 500 W}\nwire: {delay_least: 50 ms}\ncurves: {known: yes}\n");
	(void)state;
	assert_near(c.gpu.default_w, 500, 0);
	assert_int_equal(c.wire.delay_most_us, 50000);
	assert_int_equal(c.curves.kind, WW_CURVES_KNOWN);
	ww_scenario_finish(&c);
	c = read_good(LEAST "curves: {known: no, at: [30%]}\n");
	assert_int_equal(c.curves.kind, WW_CURVES_FITTED);
	assert_near(c.curves.noise_frac, 0.008, 0);
	ww_scenario_finish(&c);
}

/* ---- Rows and nodes ---------------------------------------------------------------------------------------------- */

static void check_load(const struct ww_scenario *c, size_t node, size_t row, double frac)
{
	double of_node = 0, of_row = 0;
	for (uint32_t i = 0; i < c->nodes[node].n_loads; i++)
		of_node += c->nodes[node].loads[i].row == row ? (double)c->nodes[node].loads[i].frac : 0;
	for (size_t i = 0; i < c->rows[row].n_loads; i++)
		of_row += c->rows[row].loads[i].node == node ? c->rows[row].loads[i].frac : 0;
	if (!test_is_near(of_node, frac, 1e-6) || !test_is_near(of_row, frac, 1e-6))
		fail_msg("node %zu on row %zu: %g and %g, not %g", node, row, of_node, of_row, frac);
}

static void rows_and_nodes_are_read(void **state)
{
	struct ww_scenario c = read_good(
		HEAD "rows:\n"
		     "  - {name: rack, on: [{row: b, share: 30%}, {row: a, share: 70%}], other: 100 W}\n"
		     "  - {name: a, on: site, limit: 9 kW, boundary: it, meter: no, other: 10 W}\n"
		     "  - {name: b, on: [site], limit: 8 kW, boundary: gpu, guard: 2%}\n"
		     "  - {name: site, limit: 20 kW, meter: yes, meter_noise: 1%, other: 1 W, cooling: 12%, "
		     "cooling_lag: 2 min}\n"
		     "nodes:\n"
		     "  - {name: n, count: 2, gpus: 8, on: rack, host: 1.5 kW, follow: 5%, lag: 30 s, boot: 90 s, "
		     "boot_cap: 250 "
		     "W}\n"
		     "  - {name: dual, gpus: 4, on: [{row: a, share: 50%}, {row: b, share: 50%}], host: 2 kW}\n"
		     "  - {name: lone, gpus: 16, on: [{row: site}], host: 0 W}\n" JOBS);
	static const double loads[4][4] = {{1, 0.7, 0.3, 1}, {1, 0.7, 0.3, 1}, {0, 0.5, 0.5, 1}, {0, 0, 0, 1}};
	static const char *const names[] = {"n-1", "n-2", "dual", "lone"};
	static const uint32_t first[] = {0, 8, 16, 20};
	(void)state;
	assert_int_equal(c.n_rows, 4);
	assert_int_equal(c.n_nodes, 4);
	assert_int_equal(c.n_gpus, 36);
	for (size_t i = 0; i < 4; i++) {
		assert_string_equal(c.nodes[i].name, names[i]);
		assert_int_equal(c.nodes[i].first_gpu, first[i]);
		for (size_t k = 0; k < 4; k++)
			check_load(&c, i, k, loads[i][k]);
	}
	assert_int_equal(c.rows[1].boundary, WW_BOUNDARY_IT);
	assert_int_equal(c.rows[2].boundary, WW_BOUNDARY_GPU);
	assert_near(c.rows[2].guard_frac, 0.02, 1e-12);
	assert_near(c.rows[2].limit_w, 8000, 0);
	assert_true(c.rows[3].has_meter);
	assert_false(c.rows[1].has_meter);
	assert_near(c.rows[3].meter_noise_frac, 0.01, 1e-12);
	assert_near(c.rows[3].cooling_frac, 0.12, 1e-12);
	assert_int_equal(c.rows[3].cooling_lag_us, s(120));
	assert_near(c.nodes[1].host_w, 1500, 0);
	assert_near(c.nodes[1].follow_frac, 0.05, 1e-12);
	assert_int_equal(c.nodes[1].lag_us, s(30));
	assert_int_equal(c.nodes[1].boot_us, s(90));
	assert_near(c.nodes[1].boot_cap_w, 250, 0);
	assert_near(c.rows[0].other_w, 100, 1e-9);
	assert_near(c.rows[1].other_w, 80, 1e-9);
	assert_near(c.rows[2].other_w, 30, 1e-9);
	assert_near(c.rows[3].other_w, 111, 1e-9);
	ww_scenario_finish(&c);
}

/* ---- Jobs -------------------------------------------------------------------------------------------------------- */

static void jobs_are_read(void **state)
{
	struct ww_scenario c = read_good(
		HEAD ROWS NODES
		"jobs:\n"
		"  - {name: a, count: 2, family: dense-lora, tokens: 4500, gpus: 1, tier: 1, weight: 2.5, jitter: 3%,\n"
		"     start: 1 min, end: 30 min, checkpoint: {every: 10 min, for: 30 s, power: 115 W, first: 2 min},\n"
		"     evaluation: {every: 20 min, for: 1 min, power: 300 W}}\n"
		"  - {name: b, sweep: s.csv, gpus: 1, floor: 60%}\n"
		"  - {name: c, sweep: /s.csv, group: g, gpus: 1, tier: 0, floor: 0%}\n"
		"  - {name: d, physics: {phi: 0.9, h: 0.1, sm: 0.8, tensor: 0.5, dram: 0.3, nvlink: 0.2}, tokens: "
		"1e3,\n"
		"     gpus: 1}\n");
	(void)state;
	assert_int_equal(c.n_jobs, 5);
	assert_string_equal(c.jobs[1].name, "a-2");
	assert_int_equal(c.jobs[1].model, WW_SCENARIO_FAMILY);
	assert_int_equal(c.jobs[1].family, WW_SCENARIO_DENSE_LORA);
	assert_near(c.jobs[1].tokens_tps, 4500, 0);
	assert_near(c.jobs[1].jitter_frac, 0.03, 1e-12);
	assert_int_equal(c.jobs[1].tier, 1);
	assert_near(c.jobs[1].floor_frac, 0.9, 0);
	assert_near(c.jobs[1].weight, 2.5, 0);
	assert_int_equal(c.jobs[1].start_us, s(60));
	assert_int_equal(c.jobs[1].end_us, s(1800));
	assert_int_equal(c.jobs[1].checkpoint.every_us, s(600));
	assert_int_equal(c.jobs[1].checkpoint.for_us, s(30));
	assert_int_equal(c.jobs[1].checkpoint.first_us, s(180));
	assert_near(c.jobs[1].checkpoint.power_w, 115, 0);
	assert_int_equal(c.jobs[1].evaluation.every_us, s(1200));
	assert_near(c.jobs[1].evaluation.power_w, 300, 0);
	assert_int_equal(c.jobs[2].model, WW_SCENARIO_SWEEP);
	assert_string_equal(c.jobs[2].sweep, "s.csv");
	assert_string_equal(c.jobs[2].group, "b");
	assert_int_equal(c.jobs[2].tier, 3);
	assert_near(c.jobs[2].floor_frac, 0.6, 1e-12);
	assert_string_equal(c.jobs[3].sweep, "/s.csv");
	assert_string_equal(c.jobs[3].group, "g");
	assert_near(c.jobs[3].floor_frac, 0, 0);
	assert_int_equal(c.jobs[4].model, WW_SCENARIO_PHYSICS);
	assert_near(c.jobs[4].physics.phi, 0.9, 0);
	assert_near(c.jobs[4].physics.h, 0.1, 0);
	assert_near(c.jobs[4].physics.sm, 0.8, 0);
	assert_near(c.jobs[4].physics.tensor, 0.5, 0);
	assert_near(c.jobs[4].physics.dram, 0.3, 0);
	assert_near(c.jobs[4].physics.nvlink, 0.2, 0);
	assert_near(c.jobs[4].tokens_tps, 1000, 0);
	ww_scenario_finish(&c);
}

/* A sweep lies where the scenario lies. */
static void sweeps_begin_at_the_scenario(void **state)
{
	static const char text[] = HEAD ROWS NODES "jobs: [{name: j, sweep: ../s.csv, gpus: 1}]\n";
	struct ww_scenario c;
	FILE *in = fmemopen((void *)text, strlen(text), "r");
	(void)state;
	assert_int_equal(ww_scenario_parse(in, "a/b/t.yaml", &c, NULL), WW_OK);
	assert_string_equal(c.jobs[0].sweep, "a/b/../s.csv");
	ww_scenario_finish(&c);
	(void)fclose(in);
}

#define CHECK_GPUS(job, ...)                                                                                           \
	do {                                                                                                           \
		const uint32_t gpus_[] = {__VA_ARGS__};                                                                \
		assert_int_equal((job).n_gpus, sizeof gpus_ / sizeof gpus_[0]);                                        \
		assert_memory_equal((job).gpus, gpus_, sizeof gpus_);                                                  \
	} while (0)

/* Jobs with places first; the others fill the gaps in their order, and follow each other on the same GPUs. */
static void gpus_are_given_out(void **state)
{
	struct ww_scenario c = read_good(
		HEAD ROWS
		"nodes: [{name: n, count: 3, gpus: 4, on: site, host: 1 kW}]\n"
		"jobs:\n"
		"  - {name: first, family: moe-lora, gpus: 2, end: 10 min}\n"
		"  - {name: after, family: moe-lora, gpus: 2, start: 10 min}\n"
		"  - {name: any, family: moe-lora, gpus: 3}\n"
		"  - {name: listed, family: moe-lora, gpus: 5, nodes: [n-3, n-1]}\n"
		"  - {name: exact, family: moe-lora, gpus: 2, nodes: [{node: n-2, gpus: 1}, {node: n-1, gpus: 1}]}\n");
	(void)state;
	CHECK_GPUS(c.jobs[3], 0, 8, 9, 10, 11);
	CHECK_GPUS(c.jobs[4], 1, 4);
	CHECK_GPUS(c.jobs[0], 2, 3);
	CHECK_GPUS(c.jobs[1], 2, 3);
	CHECK_GPUS(c.jobs[2], 5, 6, 7);
	ww_scenario_finish(&c);
}

/* No GPU is given twice, whatever the order of lengths. */
static void times_are_kept_apart(void **state)
{
	struct ww_scenario c =
		read_good(HEAD ROWS "nodes: [{name: n, count: 4, gpus: 2, on: site, host: 1 kW}]\n"
	                            "jobs:\n"
	                            "  - {name: a, family: moe-lora, gpus: 3, start: 10 min, end: 20 min}\n"
	                            "  - {name: b, family: moe-lora, gpus: 5}\n"
	                            "  - {name: c, count: 2, family: moe-lora, gpus: 1, end: 10 min}\n"
	                            "  - {name: d, family: moe-lora, gpus: 3, start: 20 min, end: 30 min}\n"
	                            "  - {name: e, family: moe-lora, gpus: 1, start: 5 min, end: 10 min}\n"
	                            "  - {name: f, family: moe-lora, gpus: 3, start: 30 min}\n");
	(void)state;
	for (size_t i = 0; i < c.n_jobs; i++)
		for (size_t k = 0; k < i; k++)
			for (uint32_t g = 0; g < c.jobs[i].n_gpus * c.jobs[k].n_gpus; g++)
				if (c.jobs[i].gpus[g % c.jobs[i].n_gpus] == c.jobs[k].gpus[g / c.jobs[i].n_gpus])
					assert_true(c.jobs[i].start_us >= c.jobs[k].end_us ||
					            c.jobs[k].start_us >= c.jobs[i].end_us);
	CHECK_GPUS(c.jobs[0], 0, 1, 2);
	CHECK_GPUS(c.jobs[1], 3, 4, 5, 6, 7);
	CHECK_GPUS(c.jobs[4], 0, 1, 2);
	ww_scenario_finish(&c);
}

/* Without a first time no two checkpoints of equal jobs fall together. */
static void pauses_are_spread(void **state)
{
	struct ww_scenario c = read_good(HEAD ROWS NODES "jobs: [{name: j, count: 8, family: moe-lora, gpus: 1,\n"
	                                                 "checkpoint: {every: 30 min, for: 30 s, power: 115 W},\n"
	                                                 "evaluation: {every: 30 min, for: 30 s, power: 300 W}}]\n");
	(void)state;
	for (size_t i = 0; i < 8; i++) {
		int64_t least = i == 0 ? 0 : c.jobs[i - 1].checkpoint.first_us + s(30);
		assert_true(c.jobs[i].evaluation.first_us >= least);
		assert_true(c.jobs[i].checkpoint.first_us >= c.jobs[i].evaluation.first_us + s(30));
		assert_true(c.jobs[i].checkpoint.first_us <= s(1770));
		assert_int_equal(c.jobs[i].checkpoint.first_us % WW_SECOND_US, 0);
	}
	ww_scenario_finish(&c);
}

/* ---- Events and faults ------------------------------------------------------------------------------------------- */

static void events_are_read(void **state)
{
	struct ww_scenario c = read_good(
		HEAD
		"rows: [{name: r, on: site}, {name: site, meter: yes}]\n"
		"nodes: [{name: n, gpus: 8, on: r, host: 1 kW}]\n" JOBS "events:\n"
		"  - {name: e, announce: 5 min, start: 10 min, end: 20 min, cut: 25%, ramp_down: 1 min, ramp_up: 2 "
		"min,\n"
		"     changes: [{at: 6 min, start: 11 min, row: r, limit: 5 kW, boundary: gpu, class: protection},\n"
		"               {at: 12 min, for: 20 min, ramp_down: 0 s, ramp_up: 90 s}, {at: 15 min, cancel: yes}]}\n"
		"  - {name: f, start: 30 min, limit: 6 kW, boundary: it, row: r}\n");
	const struct ww_scenario_event *e = c.events;
	(void)state;
	assert_int_equal(c.n_events, 5);
	for (uint32_t i = 0; i < 4; i++) {
		assert_string_equal(e[i].name, "e");
		assert_int_equal(e[i].version, i + 1);
		assert_int_equal(e[i].cancelled, i == 3);
		assert_int_equal(e[i].row, i == 0 ? 1 : 0);
		assert_int_equal(e[i].boundary, i == 0 ? WW_BOUNDARY_METER : WW_BOUNDARY_GPU);
		assert_int_equal(e[i].cls, i == 0 ? WW_CLASS_CONTRACT : WW_CLASS_PROTECTION);
		assert_int_equal(e[i].start_us, i == 0 ? s(600) : s(660));
		assert_int_equal(e[i].end_us, i < 2 ? s(1200) : s(1860));
		assert_int_equal(e[i].ramp_down_us, i < 2 ? s(60) : 0);
		assert_int_equal(e[i].ramp_up_us, i < 2 ? s(120) : s(90));
	}
	assert_int_equal(e[0].at_us, s(300));
	assert_int_equal(e[3].at_us, s(900));
	assert_near(e[0].cut_frac, 0.25, 1e-12);
	assert_nan(e[0].limit_w);
	assert_nan(e[1].cut_frac);
	assert_near(e[3].limit_w, 5000, 0);
	assert_string_equal(e[4].name, "f");
	assert_int_equal(e[4].version, 1);
	assert_int_equal(e[4].at_us, s(1800));
	assert_true(e[4].end_us == WW_NEVER_US);
	assert_int_equal(e[4].boundary, WW_BOUNDARY_IT);
	ww_scenario_finish(&c);
}

static void faults_are_read_in_their_order(void **state)
{
	struct ww_scenario c =
		read_good(LEAST "faults:\n"
	                        "  - {at: 11 min, what: meter-late, row: site, for: 1 min, by: 2500 ms}\n"
	                        "  - {at: 10 min, what: hung-gpu, node: n, gpu: 3, for: 10 h}\n"
	                        "  - {at: 9 min, what: dead, node: n}\n"
	                        "  - {at: 8 min, what: journal, node: n, for: 1 s}\n"
	                        "  - {at: 7 min, what: meter, row: site, until: 8 min}\n"
	                        "  - {at: 6 min, what: cut, node: n, for: 1 s}\n"
	                        "  - {at: 5 min, what: foreign, node: n, gpu: 7, limit: 650 W}\n"
	                        "  - {at: 4 min, what: controller-zombie, for: 60 s}\n"
	                        "  - {at: 3 min, what: controller-crash, for: 60 s}\n"
	                        "  - {at: 2 min, what: reboot, node: n, for: 60 s}\n"
	                        "  - {at: 1 min, what: agent-crash, node: n, for: 60 s}\n");
	(void)state;
	assert_int_equal(c.n_faults, WW_N_SCENARIO_FAULTS);
	for (size_t i = 0; i < c.n_faults; i++) {
		assert_int_equal(c.faults[i].kind, i);
		assert_int_equal(c.faults[i].at_us, s(60) * (int64_t)(i + 1));
		assert_int_equal(c.faults[i].line, 17 - i);
	}
	assert_int_equal(c.faults[WW_SCENARIO_FOREIGN].gpu, 7);
	assert_near(c.faults[WW_SCENARIO_FOREIGN].value_w, 650, 0);
	assert_int_equal(c.faults[WW_SCENARIO_FOREIGN].until_us, s(300));
	assert_nan(c.faults[0].value_w);
	assert_int_equal(c.faults[WW_SCENARIO_METER].until_us, s(480));
	assert_int_equal(c.faults[WW_SCENARIO_DEAD].until_us, WW_NEVER_US);
	assert_int_equal(c.faults[WW_SCENARIO_HUNG_GPU].gpu, 3);
	assert_int_equal(c.faults[WW_SCENARIO_METER_LATE].by_us, 2500000);
	ww_scenario_finish(&c);
}

/* ---- Sizes and files --------------------------------------------------------------------------------------------- */

static void large_clusters_are_read(void **state)
{
	struct ww_scenario c = read_good(HEAD ROWS "nodes: [{name: n, count: 12500, gpus: 8, on: site, host: 1 kW}]\n"
	                                           "jobs: [{name: j, count: 12000, family: moe-lora, gpus: 8},\n"
	                                           "{name: k, family: dense-pretrain, gpus: 4000}]\n");
	(void)state;
	assert_int_equal(c.n_gpus, 100000);
	assert_int_equal(c.n_jobs, 12001);
	for (uint32_t i = 0; i < 12000; i++)
		assert_int_equal(c.jobs[i].gpus[0], 8 * i);
	assert_int_equal(c.jobs[12000].gpus[3999], 99999);
	ww_scenario_finish(&c);
}

/* Five racks on two feeds: three on the first. */
static void counted_rows_are_spread(void **state)
{
	struct ww_scenario c = read_good(
		HEAD
		"rows:\n- {name: rack, count: 5, on: feed, limit: 9 kW}\n- {name: feed, count: 2, on: site}\n"
		"- {name: site}\n- {name: backup}\n"
		"nodes:\n- {name: n, count: 10, gpus: 1, on: rack, host: 1 kW}\n"
		"- {name: m, count: 2, gpus: 1, on: [{row: feed, share: 25%}, {row: backup, share: 75%}], host: 1 kW}\n"
		"- {name: l, gpus: 1, on: rack-5, host: 1 kW}\n" JOBS);
	static const uint32_t feed_of_rack[5] = {0, 0, 0, 1, 1};
	(void)state;
	assert_int_equal(c.n_rows, 9);
	assert_string_equal(c.rows[4].name, "rack-5");
	assert_string_equal(c.rows[6].name, "feed-2");
	assert_near(c.rows[4].limit_w, 9000, 0);
	for (uint32_t i = 0; i < 10; i++) {
		uint32_t rack = i / 2;
		assert_int_equal(c.nodes[i].n_loads, 3);
		assert_int_equal(c.nodes[i].loads[0].row, rack);
		assert_int_equal(c.nodes[i].loads[1].row, 5 + feed_of_rack[rack]);
		assert_int_equal(c.nodes[i].loads[2].row, 7);
	}
	for (uint32_t i = 10; i < 12; i++) {
		assert_int_equal(c.nodes[i].loads[0].row, 5 + (i - 10));
		assert_near(c.nodes[i].loads[0].frac, 0.25, 1e-7);
		assert_int_equal(c.nodes[i].loads[2].row, 8);
		assert_near(c.nodes[i].loads[2].frac, 0.75, 1e-7);
	}
	assert_int_equal(c.nodes[12].loads[0].row, 4);
	assert_int_equal(c.rows[4].n_loads, 3);
	ww_scenario_finish(&c);
}

static void shipped_scenarios_are_read(void **state)
{
	static const char *const files[] = {
		"scenarios/demo.yaml",    "scenarios/two-feeds.yaml", "scenarios/notice.yaml", "scenarios/faults.yaml",
		"scenarios/phoenix.yaml", "scenarios/bad-day.yaml",   "scenarios/site.yaml"};
	(void)state;
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
		struct ww_scenario c;
		struct ww_error err;
		if (ww_scenario_read(source_path(files[i]), &c, &err) != WW_OK)
			fail_msg("%s", err.text);
		assert_true(c.n_events > 0 && c.curves.kind == WW_CURVES_FITTED);
		ww_scenario_finish(&c);
	}
}

/* 64 GPUs all busy, every family, and a limit that alone never binds. */
static void demo_is_what_it_says(void **state)
{
	struct ww_scenario c;
	struct ww_error err;
	uint32_t gpus = 0;
	bool has[WW_N_SCENARIO_FAMILIES] = {false};
	(void)state;
	if (ww_scenario_read(source_path("scenarios/demo.yaml"), &c, &err) != WW_OK)
		fail_msg("%s", err.text);
	for (size_t i = 0; i < c.n_jobs; i++) {
		gpus += c.jobs[i].n_gpus;
		has[c.jobs[i].family] = true;
		assert_in_range(c.jobs[i].n_gpus, 4, 16);
		assert_true(c.jobs[i].checkpoint.every_us == s(1800) && c.jobs[i].checkpoint.for_us == s(30));
	}
	assert_int_equal(c.n_gpus, 64);
	assert_int_equal(gpus, 64);
	for (size_t i = 0; i < WW_N_SCENARIO_FAMILIES; i++)
		assert_true(has[i]);
	double it_w = c.n_gpus * c.gpu.max_w + (double)c.n_nodes * c.nodes[0].host_w;
	assert_true(it_w * (1 + c.rows[0].cooling_frac) < c.rows[0].limit_w);
	assert_int_equal(c.events[0].end_us - c.events[0].start_us, s(3600));
	assert_near(c.events[0].cut_frac, 0.3, 1e-12);
	ww_scenario_finish(&c);
}

/* The example of wattweir-scenario(5) stands there as it is read. */
static void manual_example_is_read(void **state)
{
	static char page[65536];
	FILE *in = fopen(source_path("docs/man/wattweir-scenario.5"), "re");
	(void)state;
	assert_non_null(in);
	page[fread(page, 1, sizeof page - 1, in)] = '\0';
	assert_int_equal(fclose(in), 0);
	char *text = strstr(page, ".Sh EXAMPLES");
	assert_non_null(text);
	text = strstr(text, "# wattweir scenario 1");
	char *end = text ? strstr(text, ".Ed") : NULL;
	assert_non_null(end);
	*end = '\0';
	struct ww_scenario c = read_good(text);
	assert_true(c.n_events > 0 && c.n_faults > 0 && c.n_jobs > 2);
	ww_scenario_finish(&c);
}

static void paths_are_checked(void **state)
{
	struct ww_scenario c;
	struct ww_error err;
	(void)state;
	assert_int_equal(ww_scenario_read("/no/such.yaml", &c, &err), WW_ERR_NOT_FOUND);
	assert_string_equal(err.text, "/no/such.yaml: there is no such file; check the name");
	assert_int_equal(ww_scenario_read("/", &c, &err), WW_ERR_IO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_keys_are_read),
		cmocka_unit_test(absent_keys_have_their_meaning),
		cmocka_unit_test(defaults_follow_what_is_given),
		cmocka_unit_test(rows_and_nodes_are_read),
		cmocka_unit_test(jobs_are_read),
		cmocka_unit_test(sweeps_begin_at_the_scenario),
		cmocka_unit_test(gpus_are_given_out),
		cmocka_unit_test(times_are_kept_apart),
		cmocka_unit_test(pauses_are_spread),
		cmocka_unit_test(events_are_read),
		cmocka_unit_test(faults_are_read_in_their_order),
		cmocka_unit_test(large_clusters_are_read),
		cmocka_unit_test(counted_rows_are_spread),
		cmocka_unit_test(shipped_scenarios_are_read),
		cmocka_unit_test(demo_is_what_it_says),
		cmocka_unit_test(manual_example_is_read),
		cmocka_unit_test(paths_are_checked),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
