/* SPDX-License-Identifier: Apache-2.0 */
/* What nodes say. A message is believed only when it shows this leader's epoch as the highest that its node has seen: an
 * older one may have been sent before a command of an earlier leader that nobody here knows of. */
#include "control/control_internal.h"

#include <math.h>

#define LEAST_TPS 1e-6f /* of one node and job, but for 0 */
#define MOST_TPS 1e12f
#define CLOCK_AHEAD_US (24 * 3600 * WW_SECOND_US)
#define WHOLE_SEQ (UINT64_MAX / 2) /* no node was sent so many commands */

static float value_or_nan(const struct ww_reading *reading)
{
	return ww_reading_known(reading) ? reading->value : NAN;
}

static void take_gpu(ww_control *c, struct gpu *gpu, const struct ww_gpu_state *state)
{
	float enforced = value_or_nan(&state->enforced_w);
	if (!(fabsf(enforced - gpu->enforced_w) <= 0.5f))
		gpu->changed_us = c->now.mono_us;
	if (gpu->managed != state->managed)
		c->ready_changed = true;
	gpu->enforced_w = enforced;
	gpu->draw_w = value_or_nan(&state->draw_w);
	gpu->goal_w = state->target_w;
	gpu->step = state->step;
	gpu->held = state->held;
	gpu->managed = state->managed;
	/* The message may be older than what was ordered before it came. */
	if (isnan(gpu->cap_w))
		gpu->cap_w = least_known(isnan(gpu->goal_w) ? enforced : gpu->goal_w, gpu->blind_w);
	gpu->blind_w = NAN;
}

/* Of a limit that nobody tells a successor again. */
static void learn(ww_control *c, float *limit_w, float now_w)
{
	if (!(*limit_w == now_w || (isnan(*limit_w) && isnan(now_w))))
		ask_to_store(c);
	*limit_w = now_w;
}

/* A limit that is higher than thought is believed at once, whoever says so. */
static void rise_to(struct gpu *gpu, const struct ww_gpu_state *state)
{
	float enforced = value_or_nan(&state->enforced_w);
	gpu->charge_w = most_known(gpu->charge_w, enforced);
}

/* It obeys another leader, or has not heard of this one yet. */
static ww_status disbelieve(ww_control *c, struct node *node)
{
	if (node->believed)
		c->ready_changed = true;
	node->believed = false;
	return WW_OK;
}

static bool is_possible(float w)
{
	return isnan(w) || (w >= 0 && w <= MOST_W);
}

/* What no board can have would spoil every sum it gets into. */
static ww_status check_states(const struct ww_gpu_state *states, uint32_t n, struct ww_error *err)
{
	for (uint32_t i = 0; i < n; i++)
		if (!is_possible(states[i].enforced_w.value) || !is_possible(states[i].draw_w.value) ||
		    !is_possible(states[i].target_w) || !is_possible(states[i].requested_w))
			return ww_fail(err, WW_ERR_RANGE,
			               "a node says of its GPU %u what no board can have: above %g W or below 0",
			               (unsigned)i, MOST_W);
	return WW_OK;
}

/* Whether the message is news of a node in the inventory, and if it can be believed, what it shows of commands. */
static ww_status take_envelope(ww_control *c, const struct ww_envelope *from, uint32_t n_gpus, struct node **out,
                               struct ww_error *err)
{
	struct node *node = from->cluster == c->config.cluster ? find_node(c, from->node) : NULL;
	*out = NULL;
	if (!node)
		return ww_fail(err, WW_ERR_NOT_FOUND, "a message came from a node that is not in the inventory");
	if (n_gpus != node->config.n_gpus)
		return ww_fail(err, WW_ERR_INVALID, "node '%s': has %u GPUs, the inventory says %u", node->config.name,
		               (unsigned)n_gpus, (unsigned)node->config.n_gpus);
	if (from->start_id < node->start_id || (from->start_id == node->start_id && from->seq <= node->seq))
		return WW_OK;
	if (from->start_id > INT64_MAX || (int64_t)from->start_id > c->now.wall_us + CLOCK_AHEAD_US)
		return ww_fail(err, WW_ERR_RANGE,
		               "node '%s': started more than a day from now; set its clock and start it again",
		               node->config.name);
	bool unknown = from->seen.epoch == c->leader.epoch && from->seen.seq >= node->next_seq;
	if (unknown && from->seen.seq > WHOLE_SEQ)
		return ww_fail(err, WW_ERR_INVALID, "node '%s' shows command %llu.%llu, which was never sent",
		               node->config.name, (unsigned long long)from->seen.epoch,
		               (unsigned long long)from->seen.seq);
	node->start_id = from->start_id;
	node->seq = from->seq;
	*out = node;
	/* After a boot another limit may be found before the first write. */
	bool booted = node->boot_id != from->boot_id;
	node->boot_id = from->boot_id;
	for (uint32_t i = 0; booted && i < n_gpus; i++)
		learn(c, &c->gpus[node->first_gpu + i].recorded_w, NAN);
	if (unknown) { /* somebody else sends in this epoch */
		c->last_seq = from->seen.seq > c->last_seq ? from->seen.seq : c->last_seq;
		node->next_seq = node->since_seq = c->last_seq + 1;
	}
	if (from->seen.epoch != c->leader.epoch)
		return disbelieve(c, node);
	if (from->seen.seq < node->since_seq)
		return disbelieve(c, node);
	if (!node->believed || booted)
		c->ready_changed = true;
	/* What an earlier leader ordered last is not known: its saved state is older. */
	for (uint32_t i = 0; !node->believed && i < n_gpus; i++)
		c->gpus[node->first_gpu + i].cap_w = NAN;
	node->believed = true;
	supersede(node, from->seen);
	return WW_OK;
}

static void take_states(ww_control *c, struct node *node, const struct ww_gpu_state *states)
{
	c->draws_us = WW_NEVER_US;
	for (uint32_t i = 0; i < node->config.n_gpus; i++) {
		struct gpu *gpu = &c->gpus[node->first_gpu + i];
		rise_to(gpu, &states[i]);
		if (node->believed)
			take_gpu(c, gpu, &states[i]);
	}
}

/* NAN where it is not known, or what no node can do for one job. */
static float believable_rate(const struct ww_reading *reading)
{
	float tps = value_or_nan(reading);
	return tps == 0 || (tps >= LEAST_TPS && tps <= MOST_TPS) ? tps : NAN;
}

/* What all messages of nodes have; how many GPUs there are states of. */
struct said {
	const struct ww_envelope *from;
	const struct ww_gpu_state *gpus;
	uint32_t n_gpus;
};

/* The node, where the message is news of it; NULL else. */
static ww_status hear(ww_control *c, struct said said, struct node **out, struct ww_error *err)
{
	ww_status status = check_states(said.gpus, said.n_gpus, err);
	return status ? status : take_envelope(c, said.from, said.n_gpus, out, err);
}

ww_status take_sample(ww_control *c, const struct ww_sample *sample, struct ww_error *err)
{
	struct node *node = NULL;
	ww_status status = ww_check_sample(sample, err);
	if (!status)
		status = hear(c, (struct said){&sample->from, sample->gpus, sample->n_gpus}, &node, err);
	if (status || !node)
		return status;
	take_states(c, node, sample->gpus);
	if (!node->believed)
		return WW_OK;
	node->heard_us = c->now.mono_us;
	node->n_rates = sample->n_jobs;
	for (uint32_t i = 0; i < sample->n_jobs; i++)
		node->rates[i] = (struct rate){sample->jobs[i].job, believable_rate(&sample->jobs[i].tps)};
	return WW_OK;
}

ww_status take_ack(ww_control *c, const struct ww_ack *ack, struct ww_error *err)
{
	struct node *node = NULL;
	ww_status status = ww_check_ack(ack, err);
	if (!status)
		status = hear(c, (struct said){&ack->from, ack->gpus, ack->n_gpus}, &node, err);
	if (!status && node)
		take_states(c, node, ack->gpus);
	return status;
}

ww_status take_hello(ww_control *c, const struct ww_hello *hello, struct ww_error *err)
{
	struct node *node = NULL;
	ww_status status = ww_check_hello(hello, err);
	if (!status)
		status = hear(c, (struct said){&hello->from, hello->gpus, hello->n_gpus}, &node, err);
	if (status || !node)
		return status;
	for (uint32_t i = 0; i < hello->n_gpus; i++) {
		struct gpu *gpu = &c->gpus[node->first_gpu + i];
		if (!is_possible(hello->limits[i].recorded_w) || !is_possible(hello->limits[i].max_w))
			continue;
		float boot_cap_w = hello->limits[i].boot_cap_w;
		learn(c, &gpu->recorded_w, hello->limits[i].recorded_w);
		learn(c, &gpu->most_w, hello->limits[i].max_w);
		learn(c, &gpu->boot_w, isnan(boot_cap_w) ? hello->limits[i].default_w : boot_cap_w);
		bool untouched = isnan(gpu->recorded_w) && isnan(hello->gpus[i].requested_w);
		take_found(gpu, &node->config, untouched ? value_or_nan(&hello->gpus[i].enforced_w) : gpu->recorded_w);
	}
	take_states(c, node, hello->gpus);
	return WW_OK;
}
