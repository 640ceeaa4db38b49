/* SPDX-License-Identifier: Apache-2.0 */
/* One sound message of each kind, in which no two values are alike. */
#ifndef WW_TESTS_MESSAGES_H
#define WW_TESTS_MESSAGES_H

#include "assert_near.h"

#include "msg/msg.h"

#define DAY_US (24 * 3600 * WW_SECOND_US)

static const struct ww_envelope good_envelope = {
	.version = WW_MSG_VERSION,
	.cluster = 0x1122334455667788,
	.node = 12,
	.boot_id = 13,
	.start_id = 14,
	.seq = 15,
	.seen = {16, 17},
};

static const struct ww_gpu_state good_gpus[2] = {
	{{300.5F, 20, WW_READING_OK}, {250.25F, 21, WW_READING_STALE}, 301, 302, 1, 0, 1, 3},
	{{NAN, 65535, WW_READING_TIMEOUT}, {NAN, 23, WW_READING_LOST}, NAN, NAN, WW_STEPS_MAX, 1, 0, 255},
};

TEST_UNUSED static struct ww_sample good_sample(void)
{
	return (struct ww_sample){
		.from = good_envelope,
		.wall_us = 1700000000123456,
		.n_gpus = 2,
		.gpus = {good_gpus[0], good_gpus[1]},
		.n_jobs = 2,
		.jobs = {{71, {1000.5F, 31, WW_READING_OK}}, {72, {NAN, 32, WW_READING_UNSUPPORTED}}},
	};
}

TEST_UNUSED static struct ww_ack good_ack(void)
{
	return (struct ww_ack){
		.from = good_envelope,
		.answers = {18, 19},
		.verdict = WW_ACK_LATE,
		.lapsed = 1,
		.n_gpus = 2,
		.gpus = {good_gpus[0], good_gpus[1]},
	};
}

TEST_UNUSED static struct ww_hello good_hello(void)
{
	return (struct ww_hello){
		.from = good_envelope,
		.n_gpus = 2,
		.limits = {{41, 200, 700, 650, 690, 400}, {42, 201, 701, 651, NAN, NAN}},
		.gpus = {good_gpus[0], good_gpus[1]},
	};
}

TEST_UNUSED static struct ww_command good_command(void)
{
	return (struct ww_command){
		.cluster = 51,
		.node = 52,
		.fence = {53, 54},
		.answers_start_id = 55,
		.answers_seq = 56,
		.valid_for_us = 57,
		.spread_us = 58,
		.event = 59,
		.after = WW_AFTER_FAILCAP,
		.release_ok = 1,
		.n_gpus = 2,
		.n_steps = 3,
		.step = {{0, {500, NAN}}, {600, {501, 502}}, {DAY_US, {503, 504}}},
		.failcap_w = {NAN, 205},
	};
}

/* Losses follow from slopes: 0.2 x 1 / 2 = 0.1, 0.1 + 0.2 x (1 + 3) / 2 = 0.5. */
TEST_UNUSED static struct ww_job good_job(void)
{
	return (struct ww_job){
		.id = 61,
		.name = "llama-\xC3\xA9",
		.tier = 2,
		.floor_frac = 0.75,
		.weight = 1.5,
		.has_curve = true,
		.curve = {.p0_w = 640,
	                  .t0_tps = 12000,
	                  .max_cut_frac = 0.45,
	                  .var_a = 1e-4,
	                  .var_b = 2e-4,
	                  .cov_ab = -3e-4,
	                  .n = 3,
	                  .flags = 5,
	                  .status = WW_PFI_BOUND,
	                  .k = {{0, 0, 0}, {0.2, 0.1, 1}, {0.4, 0.5, 3}}},
		.n_places = 2,
		.places = {{62, 0xFF}, {63, 0x8000}},
	};
}

TEST_UNUSED static struct ww_event good_event(void)
{
	return (struct ww_event){
		.id = 81,
		.version = 82,
		.cancelled = true,
		.row = 83,
		.boundary = WW_BOUNDARY_METER,
		.cls = WW_CLASS_PROTECTION,
		.start_us = -84,
		.end_us = 85,
		.limit_w = NAN,
		.cut_frac = 0.3,
		.ramp_down_us = 86,
		.ramp_up_us = 87,
	};
}

TEST_UNUSED static struct ww_meter good_meter(void)
{
	return (struct ww_meter){.row = 91, .power_w = {-5.5F, 92, WW_READING_OK}};
}

TEST_UNUSED static struct ww_leader good_leader(void)
{
	return (struct ww_leader){.epoch = 95, .leads = true};
}

/* `rows` and `nodes` have room for two each and are filled. */
TEST_UNUSED static struct ww_config good_config(struct ww_row *rows, struct ww_node_config *nodes)
{
	rows[0] = (struct ww_row){.id = 101,
	                          .name = "site",
	                          .limit_w = 1e6,
	                          .boundary = WW_BOUNDARY_METER,
	                          .has_meter = true,
	                          .meter_boundary = WW_BOUNDARY_IT,
	                          .fixed_w = {0, 1000, 2000},
	                          .follow = {0, 0.1, 0.4},
	                          .guard_frac = 0.02};
	rows[1] = (struct ww_row){.id = 102, .name = "rack 1", .limit_w = INFINITY};
	nodes[0] = (struct ww_node_config){.id = 111,
	                                   .name = "node-1",
	                                   .n_gpus = 8,
	                                   .min_w = 200,
	                                   .max_w = 700,
	                                   .default_w = 650,
	                                   .boot_cap_w = 400,
	                                   .shortest_boot_us = 60 * WW_SECOND_US,
	                                   .n_loads = 2,
	                                   .loads = {{0, 1}, {1, 0.5F}}};
	nodes[1] = (struct ww_node_config){
		.id = 112, .name = "", .n_gpus = 1, .min_w = 201, .max_w = 701, .default_w = 701, .boot_cap_w = NAN};
	return (struct ww_config){.cluster = 121,
	                          .objective = WW_OBJECTIVE_MAXMIN,
	                          .valid_for_us = 122,
	                          .settle_us = 123,
	                          .after = WW_AFTER_RESTORE,
	                          .trim = WW_TRIM_OFF,
	                          .n_rows = 2,
	                          .n_nodes = 2,
	                          .rows = rows,
	                          .nodes = nodes};
}

#endif
