/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What survives a crash and a boot, as bytes. The fence and start_id count for ever; limits and schedule, whose times are
 * of this boot's clock, until the next boot. A sum at the end tells a torn file.
 */
#include "node/node_internal.h"

#define MAGIC 0x4A4E5757u /* "WWNJ" */
#define VERSION 1
#define GPU_BYTES 34 /* at least */

static void encode_lease(const struct lease *lease, struct ww_buf *buf)
{
	ww_buf_u8(buf, lease->given);
	ww_buf_u8(buf, lease->lapsed);
	ww_buf_u8(buf, lease->release_ok);
	ww_buf_u8(buf, lease->after);
	ww_buf_i64(buf, lease->end_us);
	ww_buf_u32(buf, lease->n_steps);
	for (uint32_t k = 0; k < lease->n_steps; k++) {
		ww_buf_i64(buf, lease->due_us[k]);
		ww_buf_i64(buf, lease->up_us[k]);
	}
}

static void encode_gpu(const ww_node *node, uint32_t i, struct ww_buf *buf)
{
	const struct gpu *gpu = &node->gpus[i];
	ww_buf_u64(buf, node->options.gpus[i].uuid);
	ww_buf_f32(buf, gpu->recorded_w);
	ww_buf_f32(buf, gpu->target_w);
	ww_buf_f32(buf, gpu->due_w);
	ww_buf_u8(buf, gpu->unbound);
	ww_buf_f32(buf, gpu->requested_w);
	ww_buf_f32(buf, gpu->settled_w);
	ww_buf_u8(buf, (uint8_t)(gpu->step + 1));
	ww_buf_f32(buf, gpu->failcap_w);
	for (uint32_t k = 0; k < node->lease.n_steps; k++)
		ww_buf_f32(buf, gpu->cap_w[k]);
}

void node_encode(const ww_node *node, struct ww_buf *buf)
{
	ww_buf_u32(buf, MAGIC);
	ww_buf_u32(buf, VERSION);
	ww_buf_u64(buf, node->options.cluster);
	ww_buf_u64(buf, node->options.node);
	ww_buf_u64(buf, node->options.boot_id);
	ww_buf_u64(buf, node->options.start_id);
	ww_buf_u64(buf, node->seen.epoch);
	ww_buf_u64(buf, node->seen.seq);
	encode_lease(&node->lease, buf);
	ww_buf_u32(buf, node->options.n_gpus);
	for (uint32_t i = 0; i < node->options.n_gpus; i++)
		encode_gpu(node, i, buf);
	ww_buf_u64(buf, ww_sum_bytes(buf->bytes, buf->n));
}

static bool decode_flag(struct ww_read *read)
{
	uint8_t v = ww_read_u8(read);
	if (v > 1)
		ww_read_bad(read);
	return v == 1;
}

static float decode_watts(struct ww_read *read)
{
	float w = ww_read_f32(read);
	if (!isnan(w) && !(w >= 0 && w <= PLAUSIBLE_MOST_W))
		ww_read_bad(read);
	return w;
}

static void decode_lease(struct ww_read *read, struct lease *lease)
{
	lease->given = decode_flag(read);
	lease->lapsed = decode_flag(read);
	lease->release_ok = decode_flag(read);
	lease->after = ww_read_u8(read);
	lease->end_us = ww_read_i64(read);
	lease->n_steps = ww_read_count(read, WW_STEPS_MAX, 2 * sizeof(int64_t));
	if (lease->after >= WW_N_AFTERS || lease->given != (lease->n_steps > 0))
		ww_read_bad(read);
	for (uint32_t k = 0; k < lease->n_steps; k++) {
		lease->due_us[k] = ww_read_i64(read);
		lease->up_us[k] = ww_read_i64(read);
		if (lease->up_us[k] < lease->due_us[k] || (k > 0 && lease->due_us[k] < lease->due_us[k - 1]))
			ww_read_bad(read);
	}
}

static void decode_gpu(struct ww_read *read, uint32_t n_steps, struct gpu *gpu)
{
	gpu->recorded_w = decode_watts(read);
	gpu->recorded = !isnan(gpu->recorded_w);
	gpu->target_w = decode_watts(read);
	gpu->due_w = decode_watts(read);
	gpu->unbound = decode_flag(read);
	gpu->requested_w = decode_watts(read);
	gpu->settled_w = decode_watts(read);
	uint8_t step = ww_read_u8(read);
	if (step > n_steps)
		ww_read_bad(read);
	gpu->step = (int8_t)(step - 1);
	gpu->failcap_w = decode_watts(read);
	for (uint32_t k = 0; k < n_steps; k++)
		gpu->cap_w[k] = decode_watts(read);
}

/* The boards of a node may have changed, and their order, and what they allow. */
static void adopt_gpu(ww_node *node, uint64_t uuid, const struct gpu *from)
{
	for (uint32_t i = 0; i < node->options.n_gpus; i++) {
		struct gpu *gpu = &node->gpus[i];
		if (node->options.gpus[i].uuid != uuid)
			continue;
		*gpu = *from;
		gpu->target_w = settable_w(node, i, gpu->target_w);
		gpu->due_w = settable_w(node, i, gpu->due_w);
		gpu->failcap_w = settable_w(node, i, gpu->failcap_w);
		for (uint32_t k = 0; k < WW_STEPS_MAX; k++)
			gpu->cap_w[k] = settable_w(node, i, gpu->cap_w[k]);
	}
}

/* Limits and schedule; forgotten after a boot. */
static void decode_boot(ww_node *node, struct ww_read *read, bool same_boot)
{
	struct lease lease = {0};
	decode_lease(read, &lease);
	uint32_t n = ww_read_count(read, WW_NODE_GPUS_MAX, GPU_BYTES);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t uuid = ww_read_u64(read);
		struct gpu gpu = node->gpus[0];
		decode_gpu(read, lease.n_steps, &gpu);
		if (same_boot && !read->bad)
			adopt_gpu(node, uuid, &gpu);
	}
	if (same_boot)
		node->lease = lease;
}

static ww_status decode_whole(ww_node *node, struct ww_read *read, struct ww_error *err)
{
	uint64_t cluster = ww_read_u64(read), name = ww_read_u64(read);
	if (!read->bad && (cluster != node->options.cluster || name != node->options.node))
		return ww_fail(
			err, WW_ERR_INVALID,
			"node journal: it belongs to another node or cluster; give each node a journal of its own");
	bool same_boot = ww_read_u64(read) == node->options.boot_id;
	uint64_t start_id = ww_read_u64(read);
	if (start_id == UINT64_MAX)
		ww_read_bad(read);
	if (node->options.start_id <= start_id)
		node->options.start_id = start_id + 1;
	node->seen.epoch = ww_read_u64(read);
	node->seen.seq = ww_read_u64(read);
	node->saved_seen = node->seen;
	decode_boot(node, read, same_boot);
	if (read->bad || read->at != read->n)
		return ww_fail(err, WW_ERR_INVALID,
		               "node journal: its contents make no sense; remove it while no cap is in force");
	return WW_OK;
}

ww_status node_decode(ww_node *node, const void *bytes, size_t n, struct ww_error *err)
{
	struct ww_read read = {.bytes = bytes, .n = n}, sum = {.bytes = bytes, .n = n};
	uint32_t magic = ww_read_u32(&read), version = ww_read_u32(&read);
	if (read.bad || magic != MAGIC)
		return ww_fail(err, WW_ERR_INVALID, "node journal: this is none; check the path");
	if (version != VERSION)
		return ww_fail(err, WW_ERR_INVALID,
		               "node journal: version %u, known here is %d; run the wattweir that wrote it",
		               (unsigned)version, VERSION);
	if (n < sizeof(uint64_t) + read.at)
		return ww_fail(err, WW_ERR_INVALID, "node journal: cut short; remove it while no cap is in force");
	sum.at = read.n = n - sizeof(uint64_t);
	if (ww_read_u64(&sum) != ww_sum_bytes(bytes, read.n))
		return ww_fail(err, WW_ERR_INVALID, "node journal: damaged; remove it while no cap is in force");
	return decode_whole(node, &read, err);
}

bool node_is_saved(const ww_node *node)
{
	return !node->dirty && !node->storing;
}

/* Also a disk that does not answer for a period: what is safe without it must not wait for it. */
static void fail_store(ww_node *node)
{
	if (!node->store_failed)
		node_alarm(node, NODE, WW_ALARM_JOURNAL);
	node->store_failed = node->stored_once = true;
}

void node_store(ww_node *node, struct acts *acts)
{
	if (node->storing && node->now_us >= node->store_us)
		fail_store(node);
	if (!node->dirty || node->storing || node->now_us < node->store_us || acts->n == acts->room)
		return;
	ww_buf_clear(&node->journal);
	node_encode(node, &node->journal);
	(void)put_act(acts, (struct ww_node_act){.kind = WW_ACT_JOURNAL,
	                                         .u.journal = {node->journal.bytes, node->journal.n}});
	node->dirty = false;
	node->storing = true;
	node->store_us = later(node->now_us, node->options.period_us);
	node->stored_seen = node->seen;
	for (uint32_t i = 0; i < node->options.n_gpus; i++)
		if (!isnan(node->gpus[i].recorded_w))
			node->stored_records |= 1u << i;
}

void node_take_saved(ww_node *node, bool saved)
{
	if (!node->storing)
		return;
	node->storing = false;
	node->stored_once = true;
	if (!saved) {
		fail_store(node);
		node->dirty = true;
		node->store_us = later(node->now_us, node->options.period_us);
		return;
	}
	node->store_failed = false;
	node->store_us = node->now_us;
	node->saved_seen = node->stored_seen;
	for (uint32_t i = 0; i < node->options.n_gpus; i++) {
		bool recorded = node->stored_records >> i & 1;
		node->hello_due |= recorded && !node->gpus[i].recorded;
		node->gpus[i].recorded |= recorded;
	}
	if (node->answer_due)
		node_answer(node);
}
