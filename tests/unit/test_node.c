/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's brain: which commands it obeys, what it writes before what, and what it says. */
#include "node_rig.h"

static void test_start(void **state)
{
	struct rig *rig = rig_new(2);
	(void)state;
	rig->options.gpus[1].default_w = 690;
	rig->options.gpus[1].boot_cap_w = 350;
	rig_start(rig);
	assert_int_equal(rig->journals, 1);
	assert_int_equal(rig->hellos, 1);
	assert_int_equal(rig->samples, 1);
	assert_int_equal(rig->writes, 0);
	assert_int_equal(rig->sample.n_gpus, 2);
	assert_int_equal(rig->sample.gpus[1].enforced_w.status, WW_READING_OK);
	assert_near(rig->sample.gpus[1].enforced_w.value, 650, 0);
	assert_near(rig->sample.gpus[1].draw_w.value, 600, 0);
	assert_nan(rig->sample.gpus[1].target_w);
	assert_nan(rig->sample.gpus[1].requested_w);
	assert_int_equal(rig->sample.gpus[1].managed, 1);
	assert_int_equal(rig->hello.limits[1].uuid, 501);
	assert_near(rig->hello.limits[1].min_w, 200, 0);
	assert_near(rig->hello.limits[1].max_w, 700, 0);
	assert_near(rig->hello.limits[1].default_w, 690, 0);
	assert_near(rig->hello.limits[1].boot_cap_w, 350, 0);
	assert_nan(rig->hello.limits[0].boot_cap_w);
	assert_near(rig->hello.gpus[1].enforced_w.value, 650, 0);
	assert_nan(rig->hello.limits[1].recorded_w);
	rig_run(rig, 103 * SECOND);
	assert_int_equal(rig->samples, 4);
	assert_int_equal(rig->hellos, 4);
	rig_cap(rig, 1, 1, 400);
	rig_run(rig, 105 * SECOND);
	assert_int_equal(rig->samples, 6);
	assert_int_equal(rig->hellos, 5); /* once more: now a limit is recorded */
	assert_near(rig->hello.limits[1].recorded_w, 650, 0);
	rig_cap(rig, 1, 2, 300);
	rig_run(rig, 108 * SECOND);
	assert_int_equal(rig->hellos, 5);
	rig_destroy(rig);
}

static void test_obeys(void **state)
{
	struct rig *rig = rig_create(2);
	(void)state;
	rig_cap(rig, 1, 1, 400);
	assert_int_equal(rig->acks, 1);
	assert_int_equal(rig->journals, 2);
	assert_int_equal(rig->writes, 2);
	assert_near(rig->limit_w[0], 400, 0);
	assert_near(rig->done.gpus[1].enforced_w.value, 400, 0);
	assert_near(rig->done.gpus[1].requested_w, 400, 0);
	assert_near(rig->done.gpus[1].target_w, 400, 0);
	assert_int_equal(rig->done.from.seen.epoch, 1);
	assert_int_equal(rig->done.from.seen.seq, 1);
	/* The same caps again are a longer lease and no write. */
	rig_cap(rig, 1, 2, 400);
	assert_int_equal(rig->writes, 2);
	assert_int_equal(rig->done.from.seen.seq, 2);
	rig_destroy(rig);
}

static void test_clips(void **state)
{
	struct rig *rig = rig_create(3);
	struct ww_command c = rig_command(rig, 1, 1, 100);
	(void)state;
	c.step[0].cap_w[1] = 9000;
	c.step[0].cap_w[2] = NAN;
	assert_int_equal(rig_judge(rig, &c), WW_ACK_DONE);
	assert_near(rig->limit_w[0], 200, 0);
	assert_near(rig->limit_w[1], 700, 0);
	assert_int_equal(rig->writes_of[2], 0);
	assert_nan(rig->done.gpus[2].target_w);
	assert_near(rig->done.gpus[1].target_w, 700, 0);
	rig_destroy(rig);
}

/* ---- Which commands ------------------------------------------------------------------------------------------------ */

static void assert_refused(struct rig *rig, const struct ww_command *c, int verdict)
{
	int writes = rig->writes, journals = rig->journals;
	struct ww_fence seen = rig->last.seen;
	assert_int_equal(rig_judge(rig, c), verdict);
	assert_int_equal(rig->writes, writes);
	assert_int_equal(rig->journals, journals);
	assert_int_equal(ww_fence_order(rig->ack.from.seen, seen), 0);
}

static void test_refuses_others_and_malformed(void **state)
{
	struct rig *rig = rig_create(2);
	struct ww_command good = rig_command(rig, 1, 1, 400), c;
	(void)state;
	c = good, c.cluster++;
	assert_refused(rig, &c, WW_ACK_MALFORMED);
	c = good, c.node++;
	assert_refused(rig, &c, WW_ACK_MALFORMED);
	c = good, c.n_gpus = 1;
	assert_refused(rig, &c, WW_ACK_MALFORMED);
	c = good, c.n_gpus = WW_NODE_GPUS_MAX + 1;
	assert_refused(rig, &c, WW_ACK_MALFORMED);
	c = good, c.n_steps = 0;
	assert_refused(rig, &c, WW_ACK_MALFORMED);
	c = good, c.step[0].cap_w[1] = INFINITY;
	assert_refused(rig, &c, WW_ACK_MALFORMED);
	c = good, c.step[0].cap_w[1] = -1;
	assert_refused(rig, &c, WW_ACK_MALFORMED);
	c = good, c.after = WW_N_AFTERS;
	assert_refused(rig, &c, WW_ACK_MALFORMED);
	c = good, c.fence = (struct ww_fence){0, 0};
	assert_refused(rig, &c, WW_ACK_OLD);
	assert_int_equal(rig_judge(rig, &good), WW_ACK_DONE);
	rig_destroy(rig);
}

static void test_refuses_old_fences(void **state)
{
	struct rig *rig = rig_create(1);
	struct ww_command c;
	(void)state;
	rig_cap(rig, 5, 3, 400);
	c = rig_command(rig, 5, 3, 300); /* twice */
	assert_refused(rig, &c, WW_ACK_OLD);
	c = rig_command(rig, 5, 2, 300); /* overtaken */
	assert_refused(rig, &c, WW_ACK_OLD);
	c = rig_command(rig, 4, 3, 300); /* of an earlier leader */
	assert_refused(rig, &c, WW_ACK_OLD);
	c = rig_command(rig, 4, 900, 300);
	assert_refused(rig, &c, WW_ACK_OLD);
	rig_cap(rig, 5, 4, 350);
	rig_cap(rig, 6, 1, 300);
	c = rig_command(rig, 5, 5, 250);
	assert_refused(rig, &c, WW_ACK_OLD);
	assert_near(rig->limit_w[0], 300, 0);
	rig_destroy(rig);
}

static void test_reordered_in_one_step(void **state)
{
	struct rig *rig = rig_create(1);
	struct ww_command c[3] = {rig_command(rig, 1, 2, 500), rig_command(rig, 1, 1, 300),
	                          rig_command(rig, 1, 2, 250)};
	struct ww_node_in in[3];
	(void)state;
	for (int i = 0; i < 3; i++)
		in[i] = (struct ww_node_in){.kind = WW_NODE_IN_COMMAND, .u.command = &c[i]};
	rig_put(rig, in, 3);
	assert_int_equal(rig->acks, 3);
	assert_int_equal(rig->n_done, 1);
	assert_int_equal(rig->writes, 1);
	assert_near(rig->limit_w[0], 500, 0);
	rig_destroy(rig);
}

static void test_refuses_late(void **state)
{
	struct rig *rig = rig_create(1);
	struct ww_command c = rig_command(rig, 1, 1, 400);
	(void)state;
	c.valid_for_us = 3 * SECOND;
	rig_run(rig, 103 * SECOND + 1);
	assert_refused(rig, &c, WW_ACK_LATE);
	c.answers_seq = rig->last.seq;
	assert_int_equal(rig_judge(rig, &c), WW_ACK_DONE);
	/* What was never sent cannot be answered. */
	c = rig_command(rig, 1, 2, 400);
	c.answers_seq += 5;
	assert_refused(rig, &c, WW_ACK_MALFORMED);
	c = rig_command(rig, 1, 2, 400);
	c.answers_seq = 0;
	assert_refused(rig, &c, WW_ACK_MALFORMED);
	c = rig_command(rig, 1, 2, 400);
	c.answers_start_id = 0;
	assert_refused(rig, &c, WW_ACK_LATE);
	/* Only so many messages are remembered. */
	c = rig_command(rig, 1, 3, 400);
	c.valid_for_us = 1000 * SECOND;
	rig_run(rig, 135 * SECOND);
	c.answers_seq = rig->last.seq - 32;
	assert_refused(rig, &c, WW_ACK_LATE);
	c.answers_seq = rig->last.seq - 31;
	assert_int_equal(rig_judge(rig, &c), WW_ACK_DONE);
	rig_destroy(rig);
}

static void test_just_in_time(void **state)
{
	struct rig *rig = rig_create(1);
	struct ww_command c = rig_command(rig, 1, 1, 400);
	(void)state;
	c.valid_for_us = 3 * SECOND;
	rig_run(rig, 103 * SECOND);
	assert_int_equal(rig_judge(rig, &c), WW_ACK_DONE);
	rig_destroy(rig);
}

static void test_refuses_answers_to_an_earlier_start(void **state)
{
	struct rig *rig = rig_create(1);
	struct ww_command c = rig_command(rig, 1, 1, 400);
	(void)state;
	rig_start(rig);
	assert_refused(rig, &c, WW_ACK_LATE);
	rig_cap(rig, 1, 1, 400);
	rig_destroy(rig);
}

/* A controller that has never heard of this node may lower its limits, not raise them. */
static void test_blind_command(void **state)
{
	struct rig *rig = rig_create(2);
	struct ww_command c = rig_command(rig, 1, 1, 400);
	(void)state;
	c.answers_start_id = c.answers_seq = 0;
	c.step[0].cap_w[1] = 700;
	c.after = WW_AFTER_FAILCAP;
	c.failcap_w[0] = c.failcap_w[1] = 690;
	add_step(&c, SECOND, 680);
	assert_int_equal(rig_judge(rig, &c), WW_ACK_DONE);
	assert_near(rig->limit_w[0], 400, 0);
	assert_near(rig->limit_w[1], 650, 0);
	rig_run(rig, 130 * SECOND);
	assert_near(rig->limit_w[0], 650, 0); /* its failcap, as far as it is no raise */
	assert_near(rig->limit_w[1], 650, 0);
	c = rig_command(rig, 1, 2, 600);
	c.answers_start_id = c.answers_seq = 0;
	c.after = WW_AFTER_RESTORE;
	assert_int_equal(rig_judge(rig, &c), WW_ACK_DONE);
	rig_run(rig, 160 * SECOND);
	assert_near(rig->limit_w[0], 600, 0);
	/* A limit that is not known has no ceiling to keep. */
	rig_destroy(rig);
	rig = rig_new(1);
	rig->blind[0] = true;
	rig_start(rig);
	c = rig_command(rig, 1, 1, 600);
	c.answers_start_id = c.answers_seq = 0;
	assert_int_equal(rig_judge(rig, &c), WW_ACK_DONE);
	rig->blind[0] = false;
	rig->limit_w[0] = 650;
	rig_run(rig, 103 * SECOND);
	assert_int_equal(rig->writes, 0);
	rig_destroy(rig);
}

static void test_fence_outlives_restart_and_boot(void **state)
{
	struct rig *rig = rig_create(1);
	struct ww_command c;
	(void)state;
	rig_cap(rig, 2, 7, 400);
	rig_start(rig);
	assert_int_equal(rig->last.seen.epoch, 2);
	assert_int_equal(rig->last.seen.seq, 7);
	c = rig_command(rig, 2, 7, 300);
	assert_refused(rig, &c, WW_ACK_OLD);
	rig_boot(rig, 700);
	assert_int_equal(rig->last.seen.seq, 7);
	c = rig_command(rig, 2, 7, 300);
	assert_refused(rig, &c, WW_ACK_OLD);
	c = rig_command(rig, 1, 8, 300);
	assert_refused(rig, &c, WW_ACK_OLD);
	rig_cap(rig, 2, 8, 300);
	rig_destroy(rig);
}

/* ---- What before what ---------------------------------------------------------------------------------------------- */

/* Step by step: the journal alone, then the write alone, then the answer. */
static void test_journal_before_write(void **state)
{
	struct rig *rig = rig_create(1);
	struct ww_command c = rig_command(rig, 1, 1, 400);
	struct ww_node_in in = {.kind = WW_NODE_IN_COMMAND, .u.command = &c};
	struct ww_node_act acts[RIG_ACTS];
	struct ww_now now = {rig->now_us, 0};
	(void)state;
	assert_int_equal(ww_node_step(rig->node, now, &in, 1, acts, rig->room), 1);
	assert_int_equal(acts[0].kind, WW_ACT_JOURNAL);
	assert_int_equal(ww_node_step(rig->node, now, NULL, 0, acts, rig->room), 0);
	in = (struct ww_node_in){.kind = WW_NODE_IN_SAVED, .u.saved = true};
	assert_int_equal(ww_node_step(rig->node, now, &in, 1, acts, rig->room), 1);
	assert_int_equal(acts[0].kind, WW_ACT_WRITE_CAP);
	assert_near(acts[0].u.write.cap_w, 400, 0);
	assert_int_equal(ww_node_step(rig->node, now, NULL, 0, acts, rig->room), 0);
	in = (struct ww_node_in){.kind = WW_NODE_IN_WRITTEN, .u.written = {0, true, reading_of(400)}};
	assert_int_equal(ww_node_step(rig->node, now, &in, 1, acts, rig->room), 1);
	assert_int_equal(acts[0].kind, WW_ACT_ACK);
	rig_destroy(rig);
}

/* A message sent before the command is stored does not claim it. */
static void test_seen_is_what_is_stored(void **state)
{
	struct rig *rig = rig_create(1);
	(void)state;
	rig_cap(rig, 1, 1, 400);
	rig->disk_fails = true;
	struct ww_command c = rig_command(rig, 1, 2, 300);
	rig_obey(rig, &c);
	assert_int_equal(rig->n_done, 1);
	rig_run(rig, rig->now_us + 3 * SECOND);
	assert_int_equal(rig->sample.from.seen.seq, 1);
	c = rig_command(rig, 1, 2, 300);
	assert_refused(rig, &c, WW_ACK_OLD);
	rig->disk_fails = false;
	rig_run(rig, rig->now_us + 2 * SECOND);
	assert_int_equal(rig->sample.from.seen.seq, 2);
	assert_int_equal(rig->n_done, 2);
	rig_destroy(rig);
}

/* Without a journal a limit goes down where what was found is stored, and never up. */
static void test_without_a_journal(void **state)
{
	struct rig *rig = rig_create(1);
	(void)state;
	rig->disk_fails = true;
	struct ww_command c = rig_command(rig, 1, 1, 400);
	rig_obey(rig, &c);
	rig_run(rig, 103 * SECOND);
	assert_int_equal(rig->writes, 0);
	assert_int_equal(rig->alarms[WW_ALARM_JOURNAL], 1);
	rig->disk_fails = false;
	rig_run(rig, 105 * SECOND);
	assert_near(rig->limit_w[0], 400, 0);
	assert_int_equal(rig->n_done, 1);
	assert_near(rig->hello.limits[0].recorded_w, 650, 0);
	rig->disk_fails = true;
	c = rig_command(rig, 1, 2, 300);
	rig_obey(rig, &c);
	assert_near(rig->limit_w[0], 300, 0);
	assert_int_equal(rig->alarms[WW_ALARM_JOURNAL], 2);
	c = rig_command(rig, 1, 3, 500);
	rig_obey(rig, &c);
	rig_run(rig, 110 * SECOND);
	assert_near(rig->limit_w[0], 300, 0);
	assert_int_equal(rig->n_done, 1);
	rig->disk_fails = false;
	rig_run(rig, 112 * SECOND);
	assert_near(rig->limit_w[0], 500, 0);
	assert_int_equal(rig->done.answers.seq, 3);
	assert_near(rig->done.gpus[0].enforced_w.value, 500, 0);
	rig_destroy(rig);
}

/* ---- Options and edges --------------------------------------------------------------------------------------------- */

static void assert_mistake(struct ww_node_options o, ww_status expected, const char *names)
{
	struct ww_error err;
	ww_node *node = NULL;
	assert_int_equal(ww_node_create(&o, NULL, 0, &node, &err), expected);
	assert_null(node);
	assert_non_null(strstr(err.text, names));
}

static void test_mistakes(void **state)
{
	struct ww_node_options good = rig_options(2), o;
	(void)state;
	o = good, o.n_gpus = 0;
	assert_mistake(o, WW_ERR_RANGE, "GPUs");
	o = good, o.n_gpus = WW_NODE_GPUS_MAX + 1;
	assert_mistake(o, WW_ERR_RANGE, "GPUs");
	o = good, o.period_us = 0;
	assert_mistake(o, WW_ERR_RANGE, "period");
	o = good, o.gpus[1].min_w = 800;
	assert_mistake(o, WW_ERR_RANGE, "GPU 1");
	o = good, o.gpus[1].max_w = NAN;
	assert_mistake(o, WW_ERR_RANGE, "GPU 1");
	o = good, o.gpus[1].boot_cap_w = 100;
	assert_mistake(o, WW_ERR_RANGE, "boot cap");
	o = good, o.gpus[1].uuid = o.gpus[0].uuid;
	assert_mistake(o, WW_ERR_INVALID, "UUID");
	o = good, o.fight_limit = 1000;
	assert_mistake(o, WW_ERR_RANGE, "fights");
}

/* Acts that find no room come in the next step. */
static void test_little_room(void **state)
{
	struct rig *rig = rig_new(4);
	(void)state;
	rig->room = 1;
	rig_start(rig);
	assert_int_equal(rig->samples, 1);
	assert_int_equal(rig->hellos, 1);
	rig_cap(rig, 1, 1, 400);
	assert_int_equal(rig->writes, 4);
	for (int i = 0; i < 4; i++)
		rig->limit_w[i] = 600;
	rig_run(rig, 103 * SECOND);
	assert_int_equal(rig->alarms[WW_ALARM_FOREIGN_RAISE], 4);
	assert_int_equal(rig->writes, 8);
	rig_destroy(rig);
}

/* Inputs that make no sense change nothing. */
static void test_senseless_inputs(void **state)
{
	struct rig *rig = rig_create(1);
	(void)state;
	rig_cap(rig, 1, 1, 400);
	struct ww_node_in in[] = {
		{.kind = WW_NODE_IN_READING, .u.reading = {1, reading_of(700), reading_of(1)}},
		{.kind = WW_NODE_IN_READING, .u.reading = {UINT32_MAX, reading_of(700), reading_of(1)}},
		{.kind = WW_NODE_IN_WRITTEN, .u.written = {7, true, reading_of(700)}},
		{.kind = WW_NODE_IN_WRITTEN, .u.written = {0, false, reading_of(700)}},
		{.kind = WW_NODE_IN_SAVED, .u.saved = false},
		{.kind = WW_NODE_IN_READING, .u.reading = {0, {.value = 1e9f}, {.value = INFINITY}}},
		{.kind = WW_NODE_IN_READING, .u.reading = {0, {.value = 3, .status = 99}, {.value = -1}}},
	};
	int acks = rig->acks;
	rig_put(rig, in, sizeof in / sizeof in[0]);
	assert_int_equal(rig->acks, acks);
	assert_int_equal(rig->writes, 1);
	for (int i = 0; i < RIG_ALARMS; i++)
		assert_int_equal(rig->alarms[i], 0);
	rig->mute = true;
	rig_run(rig, 102 * SECOND);
	assert_int_equal(rig->sample.gpus[0].enforced_w.status, WW_READING_IMPLAUSIBLE);
	assert_nan(rig->sample.gpus[0].enforced_w.value);
	rig_destroy(rig);
}

static void put_tps(struct rig *rig, uint64_t job, float tps, uint8_t status)
{
	struct ww_node_in in = {.kind = WW_NODE_IN_TPS, .u.tps = {job, {.value = tps, .status = status}}};
	rig_put(rig, &in, 1);
}

static void test_rates_of_jobs(void **state)
{
	struct rig *rig = rig_create(1);
	(void)state;
	put_tps(rig, 8, 100, WW_READING_OK);
	put_tps(rig, 9, 200, WW_READING_OK);
	put_tps(rig, 8, 150, WW_READING_OK);
	put_tps(rig, 10, NAN, WW_READING_OK);
	put_tps(rig, 12, -1, WW_READING_OK);
	put_tps(rig, 13, INFINITY, WW_READING_OK);
	put_tps(rig, 11, NAN, WW_READING_LOST);
	rig_run(rig, 101 * SECOND);
	assert_int_equal(rig->sample.n_jobs, 2);
	assert_int_equal(rig->sample.jobs[0].job, 8);
	assert_near(rig->sample.jobs[0].tps.value, 150, 0);
	assert_int_equal(rig->sample.jobs[0].tps.age_ms, 1000);
	put_tps(rig, 8, NAN, WW_READING_LOST);
	rig_run(rig, 103 * SECOND);
	assert_int_equal(rig->sample.n_jobs, 1);
	assert_int_equal(rig->sample.jobs[0].job, 9);
	assert_int_equal(rig->sample.jobs[0].tps.status, WW_READING_STALE);
	for (uint64_t job = 20; job < 60; job++)
		put_tps(rig, job, 1, WW_READING_OK);
	rig_run(rig, 104 * SECOND);
	assert_int_equal(rig->sample.n_jobs, WW_NODE_JOBS_MAX);
	rig_destroy(rig);
}

/* A hung reader delays the sample by half a period; what it tells is as old as it is. */
static void test_reader_hangs(void **state)
{
	struct rig *rig = rig_create(1);
	(void)state;
	rig->mute = true;
	rig_run(rig, 101 * SECOND);
	assert_int_equal(rig->samples, 1);
	rig_run(rig, 101 * SECOND + SECOND / 2);
	assert_int_equal(rig->samples, 2);
	assert_int_equal(rig->sample.gpus[0].enforced_w.age_ms, 1500);
	assert_int_equal(rig->sample.gpus[0].draw_w.age_ms, 1500);
	rig_run(rig, 104 * SECOND);
	assert_int_equal(rig->sample.gpus[0].enforced_w.status, WW_READING_STALE);
	rig_destroy(rig);
}

/* A hung write is not waited for, and another GPU's is told at once. */
static void test_write_hangs(void **state)
{
	struct rig *rig = rig_create(1);
	(void)state;
	rig->now_us += 300000;
	rig->hang = true;
	struct ww_command c = rig_command(rig, 1, 1, 400);
	rig_obey(rig, &c);
	assert_int_equal(rig->acks, 0);
	rig_run(rig, 100 * SECOND + 799999);
	assert_int_equal(rig->acks, 0);
	rig_run(rig, 100 * SECOND + 800000);
	assert_int_equal(rig->n_done, 1);
	rig_destroy(rig);
}

/* Refusals that come together are answered one by one. */
static void test_refusals_in_one_step(void **state)
{
	struct rig *rig = rig_create(1);
	struct ww_command c[3];
	struct ww_node_in in[3];
	struct ww_node_act acts[RIG_ACTS];
	(void)state;
	rig_cap(rig, 5, 5, 400);
	for (uint64_t i = 0; i < 3; i++) {
		c[i] = rig_command(rig, 5, i + 1, 300);
		in[i] = (struct ww_node_in){.kind = WW_NODE_IN_COMMAND, .u.command = &c[i]};
	}
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(
			ww_node_step(rig->node, (struct ww_now){rig->now_us, 0}, in, i == 0 ? 3 : 0, acts, rig->room),
			1);
		assert_int_equal(acts[0].kind, WW_ACT_ACK);
		assert_int_equal(acts[0].u.ack->answers.seq, i + 1);
		assert_int_equal(acts[0].u.ack->verdict, WW_ACK_OLD);
	}
	rig_destroy(rig);
}

/* The beat of samples is kept by a step that comes late. */
static void test_beat(void **state)
{
	struct rig *rig = rig_create(1);
	(void)state;
	rig->now_us = 101 * SECOND + 400000;
	rig_put(rig, NULL, 0);
	assert_int_equal(rig->samples, 2);
	assert_int_equal(ww_node_due_us(rig->node), 102 * SECOND);
	rig->now_us = 150 * SECOND + 100;
	rig_put(rig, NULL, 0);
	assert_int_equal(rig->samples, 3);
	rig_destroy(rig);
}

static void test_alarms_have_words(void **state)
{
	(void)state;
	for (int i = 0; i < RIG_ALARMS; i++)
		assert_true(strlen(ww_alarm_text((enum ww_alarm)i)) > 10);
	assert_string_equal(ww_alarm_text((enum ww_alarm)RIG_ALARMS), "?");
}

/* It is tried again a period later, not at the beat of the samples. */
static void test_disk_is_tried_again(void **state)
{
	struct rig *rig = rig_create(1);
	(void)state;
	rig->now_us += 300000;
	rig->disk_fails = true;
	struct ww_command c = rig_command(rig, 1, 1, 400);
	rig_obey(rig, &c);
	rig_run(rig, 101 * SECOND + 100000);
	rig->disk_fails = false;
	rig_run(rig, 101 * SECOND + 299999);
	assert_near(rig->limit_w[0], 650, 0);
	rig_run(rig, 101 * SECOND + 300000);
	assert_near(rig->limit_w[0], 400, 0);
	rig_destroy(rig);
}

/* A disk that does not answer is as one that fails, after a period. */
static void test_disk_hangs(void **state)
{
	struct rig *rig = rig_create(1);
	(void)state;
	rig_cap(rig, 1, 1, 400);
	rig->now_us += 300000;
	rig->disk_hangs = true;
	struct ww_command c = rig_command(rig, 1, 2, 300);
	rig_obey(rig, &c);
	rig_run(rig, 101 * SECOND + 299999);
	assert_near(rig->limit_w[0], 400, 0);
	rig_run(rig, 101 * SECOND + 300000);
	assert_near(rig->limit_w[0], 300, 0);
	assert_int_equal(rig->alarms[WW_ALARM_JOURNAL], 1);
	rig_run(rig, 105 * SECOND);
	assert_int_equal(rig->alarms[WW_ALARM_JOURNAL], 1);
	assert_int_equal(rig->sample.from.seen.seq, 1);
	/* It answers at last. */
	rig_put(rig, &(struct ww_node_in){.kind = WW_NODE_IN_SAVED, .u.saved = true}, 1);
	assert_int_equal(rig->n_done, 2);
	assert_int_equal(rig->done.from.seen.seq, 2);
	rig_destroy(rig);
	/* From the start on: nothing is said for a period, then it is. */
	rig = rig_new(1);
	rig->disk_hangs = true;
	rig_start(rig);
	assert_int_equal(rig->samples, 0);
	rig_run(rig, 102 * SECOND);
	assert_true(rig->samples > 0);
	rig_destroy(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_start),
		cmocka_unit_test(test_obeys),
		cmocka_unit_test(test_clips),
		cmocka_unit_test(test_refuses_others_and_malformed),
		cmocka_unit_test(test_refuses_old_fences),
		cmocka_unit_test(test_reordered_in_one_step),
		cmocka_unit_test(test_refuses_late),
		cmocka_unit_test(test_just_in_time),
		cmocka_unit_test(test_refuses_answers_to_an_earlier_start),
		cmocka_unit_test(test_blind_command),
		cmocka_unit_test(test_fence_outlives_restart_and_boot),
		cmocka_unit_test(test_journal_before_write),
		cmocka_unit_test(test_seen_is_what_is_stored),
		cmocka_unit_test(test_without_a_journal),
		cmocka_unit_test(test_mistakes),
		cmocka_unit_test(test_little_room),
		cmocka_unit_test(test_senseless_inputs),
		cmocka_unit_test(test_rates_of_jobs),
		cmocka_unit_test(test_reader_hangs),
		cmocka_unit_test(test_write_hangs),
		cmocka_unit_test(test_refusals_in_one_step),
		cmocka_unit_test(test_beat),
		cmocka_unit_test(test_disk_is_tried_again),
		cmocka_unit_test(test_disk_hangs),
		cmocka_unit_test(test_alarms_have_words),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
