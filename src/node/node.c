/* SPDX-License-Identifier: Apache-2.0 */
/* Set-up and the step. */
#include "node/node_internal.h"

#include <stdlib.h>

/* ---- Set-up ---------------------------------------------------------------------------------------------------------- */

static ww_status check_gpu(const struct ww_node_options *o, uint32_t i, struct ww_error *err)
{
	float least_w = o->gpus[i].min_w, most_w = o->gpus[i].max_w;
	if (!(least_w > 0 && least_w <= o->gpus[i].default_w && o->gpus[i].default_w <= most_w &&
	      most_w <= PLAUSIBLE_MOST_W))
		return ww_fail(err, WW_ERR_RANGE,
		               "node: GPU %u: limits %g <= %g <= %g W do not hold; give min, default, max", (unsigned)i,
		               (double)least_w, (double)o->gpus[i].default_w, (double)most_w);
	if (!isnan(o->gpus[i].boot_cap_w) && !(o->gpus[i].boot_cap_w >= least_w && o->gpus[i].boot_cap_w <= most_w))
		return ww_fail(err, WW_ERR_RANGE, "node: GPU %u: boot cap %g W is not within %g..%g W", (unsigned)i,
		               (double)o->gpus[i].boot_cap_w, (double)least_w, (double)most_w);
	for (uint32_t k = 0; k < i; k++)
		if (o->gpus[k].uuid == o->gpus[i].uuid)
			return ww_fail(err, WW_ERR_INVALID, "node: GPUs %u and %u have the same UUID; list each once",
			               (unsigned)k, (unsigned)i);
	return WW_OK;
}

static ww_status check_options(const struct ww_node_options *o, struct ww_error *err)
{
	if (o->n_gpus < 1 || o->n_gpus > WW_NODE_GPUS_MAX)
		return ww_fail(err, WW_ERR_RANGE, "node: %u GPUs; a node has 1 to %d", (unsigned)o->n_gpus,
		               WW_NODE_GPUS_MAX);
	if (o->period_us < 1000 || o->period_us > 3600 * WW_SECOND_US)
		return ww_fail(err, WW_ERR_RANGE, "node: a period of %lld us; give 1 ms to 1 h",
		               (long long)o->period_us);
	if (o->fight_limit > FIGHTS_MAX || o->fight_window_us < 0)
		return ww_fail(err, WW_ERR_RANGE, "node: %u fights in %lld us; give at most %d and no negative window",
		               (unsigned)o->fight_limit, (long long)o->fight_window_us, FIGHTS_MAX);
	for (uint32_t i = 0; i < o->n_gpus; i++) {
		ww_status status = check_gpu(o, i, err);
		if (status != WW_OK)
			return status;
	}
	return WW_OK;
}

static void init_gpu(struct gpu *gpu)
{
	*gpu = (struct gpu){.enforced = {.value = NAN, .status = WW_READING_TIMEOUT},
	                    .draw = {.value = NAN, .status = WW_READING_TIMEOUT},
	                    .found_w = NAN,
	                    .recorded_w = NAN,
	                    .target_w = NAN,
	                    .due_w = NAN,
	                    .requested_w = NAN,
	                    .settled_w = NAN,
	                    .asked_w = NAN,
	                    .failcap_w = NAN,
	                    .step = -1};
	for (uint32_t k = 0; k < WW_STEPS_MAX; k++)
		gpu->cap_w[k] = NAN;
}

/* What a step writes fits into the room kept here. */
static bool reserve(struct ww_buf *buf)
{
	static const uint8_t nothing[JOURNAL_ROOM];
	ww_buf_bytes(buf, nothing, sizeof nothing);
	bool ok = !buf->failed;
	ww_buf_clear(buf);
	return ok;
}

ww_status ww_node_create(const struct ww_node_options *options, const void *journal, size_t journal_bytes,
                         ww_node **out, struct ww_error *err)
{
	ww_status status = check_options(options, err);
	if (status != WW_OK)
		return status;
	ww_node *node = calloc(1, sizeof *node);
	if (!node || !reserve(&node->journal)) {
		status = ww_fail(err, WW_ERR_NOMEM, "node: out of memory");
		goto done;
	}
	node->options = *options;
	node->now_us = node->next_us = node->tick_us = INT64_MIN;
	node->store_us = INT64_MIN;
	node->dirty = true; /* the start */
	for (uint32_t i = 0; i < WW_NODE_GPUS_MAX; i++)
		init_gpu(&node->gpus[i]);
	if (journal_bytes > 0)
		status = node_decode(node, journal, journal_bytes, err);
done:
	if (status != WW_OK)
		ww_node_destroy(node);
	else
		*out = node;
	return status;
}

void ww_node_destroy(ww_node *node)
{
	if (!node)
		return;
	ww_buf_finish(&node->journal);
	free(node);
}

/* ---- The step -------------------------------------------------------------------------------------------------------- */

static void take(ww_node *node, const struct ww_node_in *in)
{
	switch (in->kind) {
	case WW_NODE_IN_COMMAND:
		node_take_command(node, in->u.command);
		break;
	case WW_NODE_IN_READING:
		node_take_reading(node, in->u.reading.gpu, in->u.reading.enforced_w, in->u.reading.draw_w);
		break;
	case WW_NODE_IN_WRITTEN:
		node_take_written(node, in->u.written.gpu, in->u.written.ok, in->u.written.enforced_w);
		break;
	case WW_NODE_IN_SAVED:
		node_take_saved(node, in->u.saved);
		break;
	case WW_NODE_IN_TPS:
		node_take_tps(node, in->u.tps.job, in->u.tps.tps);
		break;
	case WW_NODE_IN_VETO:
		if (in->u.veto != node->veto)
			node_have_news(node);
		node->veto = in->u.veto;
		break;
	case WW_NODE_IN_RELEASE:
		node_release(node, in->u.release.force);
		break;
	}
}

/* Keeps its beat; what was slept through is left out. */
static void tick(ww_node *node)
{
	int64_t period_us = node->options.period_us;
	if (node->now_us < node->tick_us)
		return;
	node->tick_us = later(node->tick_us, period_us);
	if (node->tick_us <= node->now_us)
		node->tick_us = later(node->now_us, period_us);
	node->to_read = node->awaited = (1u << node->options.n_gpus) - 1;
	node->sample_due = true;
	node->sample_by_us = later(node->now_us, period_us / 2);
	node->hello_due |= !node->accepted;
}

static void read_back(ww_node *node, struct acts *acts)
{
	for (uint32_t i = 0; node->to_read >> i; i++)
		if ((node->to_read >> i & 1) &&
		    put_act(acts, (struct ww_node_act){.kind = WW_ACT_READ_BACK, .u.read_back = i}))
			node->to_read &= ~(1u << i);
}

static int64_t next_due_us(const ww_node *node)
{
	int64_t due_us = node->tick_us, follow_us = node_follow_due_us(node), tell_us = node_tell_due_us(node);
	due_us = follow_us < due_us ? follow_us : due_us;
	due_us = tell_us < due_us ? tell_us : due_us;
	if ((node->dirty || node->storing) && node->store_us > node->now_us && node->store_us < due_us)
		due_us = node->store_us;
	for (uint32_t i = 0; i < node->options.n_gpus; i++) {
		const struct gpu *gpu = &node->gpus[i];
		if (!isnan(gpu->due_w) && gpu->retry_us > node->now_us && gpu->retry_us < due_us)
			due_us = gpu->retry_us;
	}
	return due_us;
}

size_t ww_node_step(ww_node *node, struct ww_now now, const struct ww_node_in *in, size_t n, struct ww_node_act *out,
                    size_t cap)
{
	struct acts acts = {.act = out, .room = cap};
	if (n == 0 && now.mono_us < node->next_us)
		return 0;
	if (now.mono_us > node->now_us)
		node->now_us = now.mono_us;
	node->wall_us = now.wall_us;
	for (size_t i = 0; i < n; i++)
		take(node, &in[i]);
	node_follow(node);
	tick(node);
	node_record(node);
	node_store(node, &acts);
	node_write(node, &acts);
	read_back(node, &acts);
	node_tell(node, &acts);
	node->next_us = acts.n > 0 ? node->now_us : next_due_us(node);
	return acts.n;
}

int64_t ww_node_due_us(const ww_node *node)
{
	return node->next_us;
}
