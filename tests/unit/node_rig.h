/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An agent's brain on a rig: boards that take limits, a disk for its journal, and a note of all it says. Each act is held
 * against the contract as it comes. Included by one file of a program.
 */
#ifndef WW_TESTS_NODE_RIG_H
#define WW_TESTS_NODE_RIG_H

#include "assert_near.h"

#include "node/node.h"

#include <string.h>

#define SECOND WW_SECOND_US
#define RIG_CLUSTER 77
#define RIG_NODE 5
#define RIG_ACTS (4 + 3 * WW_NODE_GPUS_MAX)
#define RIG_ALARMS (WW_ALARM_NOT_RELEASED + 1)

struct rig {
	struct ww_node_options options;
	ww_node *node;
	int64_t now_us;
	size_t room; /* for acts */
	/* Boards. */
	float limit_w[WW_NODE_GPUS_MAX], draw_w[WW_NODE_GPUS_MAX];
	float floor_w[WW_NODE_GPUS_MAX], ceiling_w[WW_NODE_GPUS_MAX]; /* of what the board makes of a limit */
	bool deaf[WW_NODE_GPUS_MAX];                                  /* writes fail */
	bool blind[WW_NODE_GPUS_MAX];                                 /* reads fail */
	bool mute, hang;                                              /* READ_BACK is not answered; nor is WRITE_CAP */
	/* Disk. */
	bool disk_fails, disk_hangs;
	uint8_t disk[8192];
	size_t disk_n;
	bool stored; /* the last journal asked for was stored */
	/* What was done and said. */
	int writes, writes_of[WW_NODE_GPUS_MAX], journals, samples, acks, hellos, alarms[RIG_ALARMS];
	float alarm_w;
	struct ww_sample sample;
	struct ww_ack ack, done, news; /* last; last DONE and NEWS */
	int n_done, n_news;
	struct ww_hello hello;
	struct ww_envelope last;
	/* Outcomes for the next step. */
	struct ww_node_in in[RIG_ACTS];
	size_t n_in;
};

static struct ww_reading reading_of(float value)
{
	return (struct ww_reading){.value = value, .status = isnan(value) ? WW_READING_TIMEOUT : WW_READING_OK};
}

TEST_UNUSED static struct ww_node_options rig_options(uint32_t n_gpus)
{
	struct ww_node_options options = {.cluster = RIG_CLUSTER,
	                                  .node = RIG_NODE,
	                                  .boot_id = 1,
	                                  .start_id = 1000,
	                                  .seed = 1,
	                                  .period_us = SECOND,
	                                  .n_gpus = n_gpus,
	                                  .fight_limit = 3,
	                                  .fight_window_us = 600 * SECOND};
	for (uint32_t i = 0; i < n_gpus; i++) {
		options.gpus[i].uuid = 500 + i;
		options.gpus[i].min_w = 200;
		options.gpus[i].max_w = 700;
		options.gpus[i].default_w = 700;
		options.gpus[i].boot_cap_w = NAN;
	}
	return options;
}

static void put_reading(struct rig *rig, uint32_t gpu)
{
	if (rig->mute)
		return;
	float draw_w = rig->draw_w[gpu] > rig->limit_w[gpu] ? rig->limit_w[gpu] : rig->draw_w[gpu];
	rig->in[rig->n_in++] = (struct ww_node_in){
		.kind = WW_NODE_IN_READING,
		.u.reading = {gpu, reading_of(rig->blind[gpu] ? NAN : rig->limit_w[gpu]), reading_of(draw_w)}};
}

static void write_cap(struct rig *rig, uint32_t gpu, float cap_w)
{
	const struct ww_node_options *o = &rig->options;
	assert_true(gpu < o->n_gpus && cap_w >= o->gpus[gpu].min_w && cap_w <= o->gpus[gpu].max_w);
	assert_true(rig->stored || cap_w <= rig->limit_w[gpu]);
	rig->writes++;
	rig->writes_of[gpu]++;
	if (!rig->deaf[gpu])
		rig->limit_w[gpu] = fmaxf(rig->floor_w[gpu], fminf(cap_w, rig->ceiling_w[gpu]));
	if (rig->hang)
		return;
	rig->in[rig->n_in++] = (struct ww_node_in){
		.kind = WW_NODE_IN_WRITTEN,
		.u.written = {gpu, !rig->deaf[gpu], reading_of(rig->blind[gpu] ? NAN : rig->limit_w[gpu])}};
}

static void store(struct rig *rig, const void *bytes, size_t n)
{
	assert_true(n <= sizeof rig->disk);
	rig->journals++;
	rig->stored = !rig->disk_fails && !rig->disk_hangs;
	if (rig->stored) {
		memcpy(rig->disk, bytes, n);
		rig->disk_n = n;
	}
	if (rig->disk_hangs)
		return;
	rig->in[rig->n_in++] = (struct ww_node_in){.kind = WW_NODE_IN_SAVED, .u.saved = rig->stored};
}

static void check_from(struct rig *rig, const struct ww_envelope *from)
{
	assert_int_equal(from->cluster, RIG_CLUSTER);
	assert_int_equal(from->node, RIG_NODE);
	assert_int_equal(from->boot_id, rig->options.boot_id);
	assert_true(from->start_id > rig->last.start_id ||
	            (from->start_id == rig->last.start_id && from->seq > rig->last.seq));
	rig->last = *from;
}

static void note_ack(struct rig *rig, const struct ww_ack *ack)
{
	check_from(rig, &ack->from);
	assert_int_equal(ww_check_ack(ack, NULL), WW_OK);
	rig->acks++;
	rig->ack = *ack;
	assert_int_equal(ack->n_gpus, rig->options.n_gpus);
	if (ack->verdict == WW_ACK_DONE) {
		rig->done = *ack;
		rig->n_done++;
	}
	if (ack->verdict == WW_ACK_NEWS) {
		rig->news = *ack;
		rig->n_news++;
	}
}

static void carry_out(struct rig *rig, const struct ww_node_act *act)
{
	switch (act->kind) {
	case WW_ACT_JOURNAL:
		store(rig, act->u.journal.bytes, act->u.journal.n);
		break;
	case WW_ACT_WRITE_CAP:
		write_cap(rig, act->u.write.gpu, act->u.write.cap_w);
		break;
	case WW_ACT_READ_BACK:
		put_reading(rig, act->u.read_back);
		break;
	case WW_ACT_SAMPLE:
		check_from(rig, &act->u.sample->from);
		assert_int_equal(ww_check_sample(act->u.sample, NULL), WW_OK);
		rig->samples++;
		rig->sample = *act->u.sample;
		break;
	case WW_ACT_ACK:
		note_ack(rig, act->u.ack);
		break;
	case WW_ACT_HELLO:
		check_from(rig, &act->u.hello->from);
		assert_int_equal(ww_check_hello(act->u.hello, NULL), WW_OK);
		assert_int_equal(act->u.hello->n_gpus, rig->options.n_gpus);
		rig->hellos++;
		rig->hello = *act->u.hello;
		break;
	case WW_ACT_ALARM:
		rig->alarms[act->u.alarm.what]++;
		rig->alarm_w = act->u.alarm.value_w;
		break;
	}
}

/* Steps until the brain rests. */
static void rig_put(struct rig *rig, const struct ww_node_in *in, size_t n_in)
{
	struct ww_node_act acts[RIG_ACTS];
	struct ww_node_in ins[RIG_ACTS + 8];
	if (n_in > 0)
		memcpy(ins, in, n_in * sizeof *in);
	memcpy(ins + n_in, rig->in, rig->n_in * sizeof *in);
	n_in += rig->n_in;
	for (int turn = 0;; turn++) {
		assert_true(turn < 100);
		size_t n = ww_node_step(rig->node, (struct ww_now){rig->now_us, 0}, ins, n_in, acts, rig->room);
		assert_true(n <= rig->room);
		rig->n_in = 0;
		for (size_t i = 0; i < n; i++)
			carry_out(rig, &acts[i]);
		if (n == 0)
			break;
		n_in = rig->n_in;
		memcpy(ins, rig->in, n_in * sizeof *ins);
	}
	rig->n_in = 0;
	assert_true(ww_node_due_us(rig->node) > rig->now_us);
}

/* Lives up to and including `at_us`. */
TEST_UNUSED static void rig_run(struct rig *rig, int64_t at_us)
{
	while (ww_node_due_us(rig->node) <= at_us) {
		if (ww_node_due_us(rig->node) > rig->now_us)
			rig->now_us = ww_node_due_us(rig->node);
		rig_put(rig, NULL, 0);
	}
	rig->now_us = at_us;
}

/* The agent starts, or crashes and starts again, with what is on the disk. */
TEST_UNUSED static void rig_start(struct rig *rig)
{
	struct ww_error err;
	ww_node_destroy(rig->node);
	rig->node = NULL;
	rig->n_in = 0;
	rig->stored = false;
	assert_int_equal(ww_node_create(&rig->options, rig->disk, rig->disk_n, &rig->node, &err), WW_OK);
	rig_put(rig, NULL, 0);
}

/* The machine boots: limits are lost, its clock begins anew. */
TEST_UNUSED static void rig_boot(struct rig *rig, float limit_w)
{
	rig->options.boot_id++;
	rig->now_us = 10 * SECOND;
	for (uint32_t i = 0; i < rig->options.n_gpus; i++)
		rig->limit_w[i] = limit_w;
	rig_start(rig);
}

static struct rig *rig_new(uint32_t n_gpus)
{
	struct rig *rig = calloc(1, sizeof *rig);
	assert_non_null(rig);
	rig->options = rig_options(n_gpus);
	rig->now_us = 100 * SECOND;
	rig->room = 4 + 3 * n_gpus;
	for (uint32_t i = 0; i < n_gpus; i++) {
		rig->limit_w[i] = 650;
		rig->draw_w[i] = 600;
		rig->ceiling_w[i] = 1000;
	}
	return rig;
}

TEST_UNUSED static struct rig *rig_create(uint32_t n_gpus)
{
	struct rig *rig = rig_new(n_gpus);
	rig_start(rig);
	return rig;
}

TEST_UNUSED static void rig_destroy(struct rig *rig)
{
	ww_node_destroy(rig->node);
	free(rig);
}

/* One step now, the same cap everywhere; lease of 15 s that holds; answers the newest message. */
TEST_UNUSED static struct ww_command rig_command(const struct rig *rig, uint64_t epoch, uint64_t seq, float cap_w)
{
	struct ww_command c = {.cluster = RIG_CLUSTER,
	                       .node = RIG_NODE,
	                       .fence = {epoch, seq},
	                       .answers_start_id = rig->last.start_id,
	                       .answers_seq = rig->last.seq,
	                       .valid_for_us = 15 * SECOND,
	                       .n_gpus = rig->options.n_gpus,
	                       .n_steps = 1};
	for (uint32_t i = 0; i < WW_NODE_GPUS_MAX; i++) {
		c.failcap_w[i] = NAN;
		for (uint32_t k = 0; k < WW_STEPS_MAX; k++)
			c.step[k].cap_w[i] = k == 0 ? cap_w : NAN;
	}
	return c;
}

TEST_UNUSED static void add_step(struct ww_command *c, int64_t in_us, float cap_w)
{
	c->step[c->n_steps].in_us = in_us;
	for (uint32_t i = 0; i < c->n_gpus; i++)
		c->step[c->n_steps].cap_w[i] = cap_w;
	c->n_steps++;
}

TEST_UNUSED static void rig_obey(struct rig *rig, const struct ww_command *command)
{
	struct ww_node_in in = {.kind = WW_NODE_IN_COMMAND, .u.command = command};
	rig_put(rig, &in, 1);
}

/* The verdict on a command. */
TEST_UNUSED static int rig_judge(struct rig *rig, const struct ww_command *command)
{
	int acks = rig->acks;
	rig_obey(rig, command);
	assert_int_equal(rig->acks, acks + 1);
	assert_int_equal(rig->ack.answers.epoch, command->fence.epoch);
	assert_int_equal(rig->ack.answers.seq, command->fence.seq);
	return rig->ack.verdict;
}

TEST_UNUSED static void rig_cap(struct rig *rig, uint64_t epoch, uint64_t seq, float cap_w)
{
	struct ww_command c = rig_command(rig, epoch, seq, cap_w);
	assert_int_equal(rig_judge(rig, &c), WW_ACK_DONE);
}

TEST_UNUSED static void rig_veto(struct rig *rig, enum ww_veto veto)
{
	rig_put(rig, &(struct ww_node_in){.kind = WW_NODE_IN_VETO, .u.veto = veto}, 1);
}

TEST_UNUSED static void rig_release(struct rig *rig, bool force)
{
	rig_put(rig, &(struct ww_node_in){.kind = WW_NODE_IN_RELEASE, .u.release.force = force}, 1);
}

#endif
