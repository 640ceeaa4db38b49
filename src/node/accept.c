/* SPDX-License-Identifier: Apache-2.0 */
/* Which commands are obeyed: ours, sound, newer than all before, and an answer to something recent. */
#include "node/node_internal.h"

/* Answers are timed by our own clock: what another machine's shows means nothing here. */
static enum ww_ack_verdict judge_answer(const ww_node *node, const struct ww_command *c)
{
	if (c->answers_start_id == 0 && c->answers_seq == 0)
		return WW_ACK_DONE;
	if (c->answers_start_id != node->options.start_id)
		return WW_ACK_LATE;
	if (c->answers_seq == 0 || c->answers_seq > node->sent_seq)
		return WW_ACK_MALFORMED;
	if (node->sent_seq - c->answers_seq >= MAIL_KEPT)
		return WW_ACK_LATE;
	if (later(node->sent_us[c->answers_seq % MAIL_KEPT], c->valid_for_us) < node->now_us)
		return WW_ACK_LATE;
	return WW_ACK_DONE;
}

static enum ww_ack_verdict judge(const ww_node *node, const struct ww_command *c)
{
	if (c->cluster != node->options.cluster || c->node != node->options.node)
		return WW_ACK_MALFORMED;
	if (ww_check_command(c, NULL) != WW_OK || c->n_gpus != node->options.n_gpus)
		return WW_ACK_MALFORMED;
	if (c->fence.epoch < node->seen.epoch)
		return WW_ACK_OLD;
	if (c->fence.epoch == node->seen.epoch && c->fence.seq <= node->seen.seq)
		return WW_ACK_OLD;
	return judge_answer(node, c);
}

/* Above what no cap of the command may go. A controller that has never heard of us does not know what it would raise. */
static float ceiling_w(const ww_node *node, const struct ww_command *c, uint32_t i)
{
	const struct gpu *gpu = &node->gpus[i];
	float enforced_w = ww_reading_known(&gpu->enforced) ? gpu->enforced.value : NAN;
	return c->answers_seq == 0 ? fminf(enforced_w, gpu->target_w) : node->options.gpus[i].max_w;
}

/* NAN where nothing is to be written. */
static float clip_w(const ww_node *node, uint32_t i, float cap_w, float most_w)
{
	if (isnan(cap_w) || isnan(most_w) || most_w < node->options.gpus[i].min_w)
		return NAN;
	return settable_w(node, i, fminf(cap_w, most_w));
}

static void take_schedule(ww_node *node, const struct ww_command *c)
{
	struct ww_rng rng;
	struct lease *lease = &node->lease;
	ww_rng_seed(&rng, node->options.seed ^ c->fence.epoch * 0x9E3779B97F4A7C15u ^ c->fence.seq);
	lease->n_steps = c->n_steps;
	for (uint32_t k = 0; k < c->n_steps; k++) {
		lease->due_us[k] = later(node->now_us, c->step[k].in_us);
		lease->up_us[k] = later(lease->due_us[k], (int64_t)(ww_rng_uniform(&rng) * (double)c->spread_us));
	}
	for (uint32_t i = 0; i < c->n_gpus; i++) {
		struct gpu *gpu = &node->gpus[i];
		float most_w = ceiling_w(node, c, i);
		gpu->step = -1;
		if (isnan(gpu->target_w))
			gpu->due_w = NAN; /* of a release */
		gpu->failcap_w = clip_w(node, i, c->failcap_w[i], most_w);
		for (uint32_t k = 0; k < c->n_steps; k++)
			gpu->cap_w[k] = clip_w(node, i, c->step[k].cap_w[i], most_w);
	}
}

/* A fight that was lost is over when its window is. */
static void manage_again(ww_node *node)
{
	for (uint32_t i = 0; i < node->options.n_gpus; i++) {
		struct gpu *gpu = &node->gpus[i];
		int64_t last_us = gpu->fights_us[(gpu->n_fights + FIGHTS_MAX - 1) % FIGHTS_MAX];
		if (gpu->lost && later(last_us, node->options.fight_window_us) < node->now_us)
			gpu->lost = false;
	}
}

static void accept(ww_node *node, const struct ww_command *c)
{
	bool blind = c->answers_seq == 0;
	node->seen = c->fence;
	node->accepted = true;
	node->lease = (struct lease){.given = true,
	                             .release_ok = c->release_ok,
	                             .after = blind && c->after == WW_AFTER_RESTORE ? WW_AFTER_HOLD : c->after,
	                             .end_us = later(node->now_us, c->valid_for_us)};
	take_schedule(node, c);
	manage_again(node);
	node->dirty = true;
	node_answer(node);
}

void node_take_command(ww_node *node, const struct ww_command *command)
{
	enum ww_ack_verdict verdict = judge(node, command);
	if (verdict == WW_ACK_DONE)
		accept(node, command);
	else
		node_refuse(node, command->fence, verdict);
}
