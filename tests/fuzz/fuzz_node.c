/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's brain under any journal and any sequence of inputs. The first byte says what follows: bit 0: two bytes of
 * length and a journal, bit 1: whose sum is put right. The rest are events. Whatever comes, it acts within its contract.
 */
#include "fuzz.h"

#include "node/node.h"

#include <math.h>

#define ROOM 40
#define GPUS 3
#define KNOWN_MAX 4096

struct bytes {
	const uint8_t *at;
	size_t n;
};

struct world {
	struct ww_node_options options;
	ww_node *node;
	struct ww_now now;
	float limit_w[GPUS], told_w[GPUS]; /* told: as it was read last */
	bool bound_by_journal;             /* it may hold any caps */
	uint8_t disk[8192];
	size_t disk_n;
	bool disk_fails, deaf, mute;
	bool own;          /* the journal on the disk is one of its own */
	bool asked, saved; /* its last journal was stored; and it has been told so */
	struct ww_envelope last;
	struct ww_fence seen; /* no command up to here may be obeyed */
	uint32_t n_caps;      /* of all commands that may have been */
	float caps_w[KNOWN_MAX];
	struct ww_node_in in[ROOM];
	size_t n_in;
};

static uint8_t next(struct bytes *b)
{
	if (b->n == 0)
		return 0;
	b->n--;
	return *b->at++;
}

static struct ww_reading reading_of(float value)
{
	return (struct ww_reading){.value = value, .status = isnan(value) ? WW_READING_LOST : WW_READING_OK};
}

static void may_write(struct world *w, float cap_w)
{
	if (w->n_caps < KNOWN_MAX)
		w->caps_w[w->n_caps++] = cap_w;
}

static bool is_known(const struct world *w, float cap_w)
{
	for (uint32_t i = 0; i < w->n_caps; i++)
		if (fmaxf(200, fminf(w->caps_w[i], 700)) == cap_w)
			return true;
	return w->bound_by_journal || w->n_caps == KNOWN_MAX;
}

static void check_envelope(struct world *w, const struct ww_envelope *from)
{
	require(from->start_id > w->last.start_id || (from->start_id == w->last.start_id && from->seq > w->last.seq));
	require(ww_fence_order(from->seen, w->last.seen) >= 0);
	w->last = *from;
}

/* ---- Acts ------------------------------------------------------------------------------------------------------------ */

static void put_reading(struct world *w, uint32_t gpu)
{
	struct ww_node_in in = {.kind = WW_NODE_IN_READING,
	                        .u.reading = {gpu, reading_of(w->limit_w[gpu]), reading_of(w->limit_w[gpu] - 10)}};
	if (w->mute)
		return;
	w->told_w[gpu] = w->limit_w[gpu];
	w->in[w->n_in++] = in;
}

static void write_cap(struct world *w, uint32_t gpu, float cap_w)
{
	require(gpu < GPUS && cap_w >= 200 && cap_w <= 700);
	require(w->saved || cap_w <= w->told_w[gpu]);
	require(is_known(w, cap_w));
	if (!w->deaf)
		w->limit_w[gpu] = cap_w;
	w->told_w[gpu] = w->limit_w[gpu];
	w->in[w->n_in++] = (struct ww_node_in){.kind = WW_NODE_IN_WRITTEN,
	                                       .u.written = {gpu, !w->deaf, reading_of(w->limit_w[gpu])}};
}

static void store(struct world *w, const void *bytes, size_t n)
{
	require(n <= sizeof w->disk);
	w->asked = !w->disk_fails;
	w->saved = false;
	if (w->asked) {
		memcpy(w->disk, bytes, n);
		w->disk_n = n;
		w->own = true;
	}
	w->in[w->n_in++] = (struct ww_node_in){.kind = WW_NODE_IN_SAVED, .u.saved = w->asked};
}

static void carry_out(struct world *w, const struct ww_node_act *act)
{
	switch (act->kind) {
	case WW_ACT_JOURNAL:
		store(w, act->u.journal.bytes, act->u.journal.n);
		break;
	case WW_ACT_WRITE_CAP:
		write_cap(w, act->u.write.gpu, act->u.write.cap_w);
		break;
	case WW_ACT_READ_BACK:
		require(act->u.read_back < GPUS);
		put_reading(w, act->u.read_back);
		break;
	case WW_ACT_SAMPLE:
		require(ww_check_sample(act->u.sample, NULL) == WW_OK);
		check_envelope(w, &act->u.sample->from);
		break;
	case WW_ACT_ACK:
		require(ww_check_ack(act->u.ack, NULL) == WW_OK);
		check_envelope(w, &act->u.ack->from);
		break;
	case WW_ACT_HELLO:
		require(act->u.hello->n_gpus == GPUS);
		check_envelope(w, &act->u.hello->from);
		break;
	case WW_ACT_ALARM:
		require(act->u.alarm.what <= WW_ALARM_NOT_RELEASED);
		require(act->u.alarm.gpu < GPUS || act->u.alarm.gpu == UINT32_MAX);
		break;
	}
}

/* Steps until it rests, which it must. */
static void settle(struct world *w)
{
	struct ww_node_act acts[ROOM];
	struct ww_node_in in[ROOM];
	for (int turn = 0;; turn++) {
		size_t n_in = w->n_in;
		require(turn < 200);
		memcpy(in, w->in, sizeof in);
		w->n_in = 0;
		w->saved = w->asked;
		size_t n = ww_node_step(w->node, w->now, in, n_in, acts, 4 + 3 * GPUS);
		require(n <= 4 + 3 * GPUS);
		for (size_t i = 0; i < n; i++)
			carry_out(w, &acts[i]);
		if (n == 0)
			break;
	}
	require(ww_node_due_us(w->node) > w->now.mono_us || w->now.mono_us == WW_NEVER_US);
}

/* ---- Events ---------------------------------------------------------------------------------------------------------- */

static bool start(struct world *w)
{
	struct ww_error err = {WW_OK, ""};
	ww_node_destroy(w->node);
	w->node = NULL;
	w->n_in = 0;
	/* Without a journal only the wall clock makes starts differ; with one it may stand still. */
	if (w->disk_fails || !w->asked)
		w->options.start_id = w->last.start_id + 1;
	w->asked = false;
	ww_status status = ww_node_create(&w->options, w->disk, w->disk_n, &w->node, &err);
	require(status == err.code && (status == WW_OK || (status == WW_ERR_INVALID && strlen(err.text) > 10)));
	require(status == WW_OK || !w->own);
	if (status == WW_OK)
		settle(w);
	return status == WW_OK;
}

static float cap_of(struct world *w, struct bytes *b)
{
	uint8_t byte = next(b);
	static const float odd[] = {NAN, INFINITY, -1, 0, 1e30f};
	if (byte < sizeof odd / sizeof odd[0])
		return odd[byte];
	/* Each cap is another one, so that it is known from which command it came. */
	return 150 + (float)byte * 2.5f + (float)(w->n_caps % 256) / 512;
}

static void command(struct world *w, struct bytes *b)
{
	struct ww_command c = {.cluster = w->options.cluster, .node = w->options.node, .n_gpus = GPUS};
	uint8_t shape = next(b), flags = next(b);
	c.fence = (struct ww_fence){w->seen.epoch + (shape & 3) - 1, w->seen.seq + (shape >> 2 & 7) - 3};
	c.answers_start_id = flags & 1 ? 0 : w->last.start_id;
	c.answers_seq = flags & 1 ? 0 : w->last.seq - (shape >> 5) * 7u;
	c.valid_for_us = (flags & 2 ? 15 : 300) * WW_SECOND_US;
	c.spread_us = flags & 4 ? 5 * WW_SECOND_US : 0;
	c.after = flags >> 3 & 3;
	c.release_ok = flags >> 5 & 1;
	c.node += flags >> 7;
	c.n_steps = 1 + (flags >> 6 & 1) * (next(b) % (WW_STEPS_MAX + 1u));
	for (uint32_t k = 0; k < c.n_steps && k < WW_STEPS_MAX; k++) {
		c.step[k].in_us = k == 0 ? 0 : c.step[k - 1].in_us + next(b) * WW_SECOND_US / 8;
		for (uint32_t i = 0; i < GPUS; i++)
			c.step[k].cap_w[i] = cap_of(w, b);
	}
	for (uint32_t i = 0; i < GPUS; i++)
		c.failcap_w[i] = cap_of(w, b);
	if (ww_check_command(&c, NULL) == WW_OK && c.node == w->options.node && ww_fence_order(c.fence, w->seen) > 0)
		for (uint32_t i = 0; i < GPUS; i++) {
			may_write(w, c.failcap_w[i]);
			for (uint32_t k = 0; k < c.n_steps; k++)
				may_write(w, c.step[k].cap_w[i]);
		}
	w->in[w->n_in++] = (struct ww_node_in){.kind = WW_NODE_IN_COMMAND, .u.command = &c};
	settle(w);
	w->seen = ww_fence_order(w->last.seen, w->seen) > 0 ? w->last.seen : w->seen;
}

static void foreign(struct world *w, uint8_t byte)
{
	float limit_w = 100 + (float)(byte >> 2) * 10;
	w->limit_w[byte % GPUS] = limit_w;
	may_write(w, limit_w); /* as a recorded limit, or as the ceiling of a command to nobody known */
}

static void odd_input(struct world *w, struct bytes *b)
{
	struct ww_node_in in = {.kind = next(b) % (WW_NODE_IN_RELEASE + 1)};
	struct ww_reading odd = {.value = (float)next(b) * 1e3f - 9e3f, .age_ms = 700, .status = next(b)};
	switch (in.kind) {
	case WW_NODE_IN_READING:
		in.u.reading.gpu = next(b) % 5; /* none of what is found here is a limit that was there */
		in.u.reading.enforced_w = odd.status ? odd : reading_of(NAN);
		in.u.reading.draw_w = odd;
		break;
	case WW_NODE_IN_WRITTEN:
		in.u.written.gpu = next(b) % 5;
		in.u.written.ok = odd.status & 1;
		in.u.written.enforced_w = reading_of(NAN);
		break;
	case WW_NODE_IN_SAVED:
		in.u.saved = odd.status & 1;
		break;
	case WW_NODE_IN_TPS:
		in.u.tps.job = next(b) % 20;
		in.u.tps.tps = odd;
		break;
	case WW_NODE_IN_VETO:
		in.u.veto = (enum ww_veto)(odd.status % 3);
		break;
	case WW_NODE_IN_RELEASE:
		in.u.release.force = odd.status & 1;
		break;
	default:
		return;
	}
	w->in[w->n_in++] = in;
}

static bool event(struct world *w, struct bytes *b)
{
	uint8_t byte = next(b), value = next(b);
	switch (byte % 9) {
	case 0:
		w->now.mono_us += (int64_t)value << (byte / 9);
		break;
	case 1:
		w->now.mono_us += value * WW_SECOND_US / 4;
		break;
	case 2:
		if (ww_node_due_us(w->node) < WW_NEVER_US)
			w->now.mono_us = ww_node_due_us(w->node);
		break;
	case 3:
		command(w, b);
		break;
	case 4:
		foreign(w, value);
		break;
	case 5:
		odd_input(w, b);
		break;
	case 6:
		w->disk_fails = value & 1;
		w->deaf = value & 2;
		w->mute = value & 4;
		break;
	case 7:
		return start(w);
	default:
		w->options.boot_id++;
		w->now.mono_us = value;
		return start(w);
	}
	settle(w);
	return true;
}

/* ---- Set-up ---------------------------------------------------------------------------------------------------------- */

static void put_right(uint8_t *bytes, size_t n)
{
	uint64_t sum = ww_sum_bytes(bytes, n < 8 ? 0 : n - 8);
	for (size_t i = 0; n >= 8 && i < 8; i++)
		bytes[n - 8 + i] = (uint8_t)(sum >> 8 * i);
}

static void take_journal(struct world *w, struct bytes *b, bool right)
{
	size_t n = next(b);
	n |= (size_t)next(b) << 8;
	n = n < b->n ? n : b->n;
	n = n < sizeof w->disk ? n : sizeof w->disk;
	memcpy(w->disk, b->at, n);
	w->disk_n = n;
	b->at += n;
	b->n -= n;
	if (right)
		put_right(w->disk, n);
	w->bound_by_journal = true;
}

static void set_up(struct world *w)
{
	w->options = (struct ww_node_options){.cluster = 77,
	                                      .node = 5,
	                                      .boot_id = 1,
	                                      .start_id = 1000,
	                                      .seed = 1,
	                                      .period_us = WW_SECOND_US,
	                                      .n_gpus = GPUS,
	                                      .fight_limit = 3,
	                                      .fight_window_us = 60 * WW_SECOND_US};
	w->now.mono_us = 100 * WW_SECOND_US;
	for (uint32_t i = 0; i < GPUS; i++) {
		w->options.gpus[i].uuid = 500 + i;
		w->options.gpus[i].min_w = 200;
		w->options.gpus[i].max_w = w->options.gpus[i].default_w = 700;
		w->options.gpus[i].boot_cap_w = NAN;
		w->limit_w[i] = 650;
	}
	may_write(w, 650);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes b = {data, size};
	struct world *w = calloc(1, sizeof *w);
	if (!w)
		return 0;
	set_up(w);
	uint8_t what = next(&b);
	if (what & 1)
		take_journal(w, &b, what & 2);
	for (bool alive = start(w); alive && b.n > 0;)
		alive = event(w, &b);
	ww_node_destroy(w->node);
	free(w);
	return 0;
}
