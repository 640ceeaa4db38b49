/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schedule, carried out alone. A step down always happens, a step up only while the lease is valid and after its
 * delay; where that is no longer possible the GPU stays where it is and the step counts as passed.
 */
#include "node/node_internal.h"

void node_aim(ww_node *node, struct gpu *gpu, float w, bool unbound)
{
	if (w == gpu->target_w)
		return;
	gpu->target_w = gpu->due_w = w;
	gpu->unbound = unbound;
	gpu->retry_us = node->now_us;
	node->dirty = true;
}

bool node_lease_is_valid(const ww_node *node)
{
	return node->lease.given && node->now_us < node->lease.end_us;
}

/* What a new limit is held against: NAN = not known yet. */
static float in_force_w(const struct gpu *gpu)
{
	if (!isnan(gpu->target_w))
		return gpu->target_w;
	return ww_reading_known(&gpu->enforced) ? gpu->enforced.value : NAN;
}

static bool may_step_up(const ww_node *node, int step)
{
	return node->now_us >= node->lease.up_us[step] && node->veto != WW_VETO_FREEZE;
}

/* The index rises only once no earlier step can be written any more. */
static void reach_step(ww_node *node, struct gpu *gpu, int step)
{
	float cap_w = gpu->cap_w[step], from_w = in_force_w(gpu);
	if (isnan(cap_w)) {
		gpu->step = (int8_t)step;
		return;
	}
	if (isnan(from_w))
		return;
	bool is_up = cap_w > from_w;
	if (is_up && node_lease_is_valid(node) && !may_step_up(node, step))
		return;
	if (!is_up || node_lease_is_valid(node))
		node_aim(node, gpu, cap_w, false);
	gpu->step = (int8_t)step;
}

/* The last step that is due by `at_us`; those before it are left out. */
static void follow_steps(ww_node *node, int64_t at_us)
{
	int last = -1;
	while (last + 1 < (int)node->lease.n_steps && node->lease.due_us[last + 1] <= at_us)
		last++;
	for (uint32_t i = 0; i < node->options.n_gpus; i++)
		if (node->gpus[i].step < last)
			reach_step(node, &node->gpus[i], last);
}

static void lapse(ww_node *node)
{
	node->lease.lapsed = true;
	node->dirty = true;
	for (uint32_t i = 0; i < node->options.n_gpus; i++) {
		struct gpu *gpu = &node->gpus[i];
		if (node->lease.after == WW_AFTER_FAILCAP && !isnan(gpu->failcap_w))
			node_aim(node, gpu, gpu->failcap_w, true);
		if (node->lease.after == WW_AFTER_RESTORE && !isnan(gpu->recorded_w))
			node_aim(node, gpu, settable_w(node, i, gpu->recorded_w), true);
	}
	node_alarm(node, NODE, WW_ALARM_LAPSED);
	node_have_news(node);
}

/* In the order of their times: what follows the lease may be above a step down that is due after its end. */
void node_follow(ww_node *node)
{
	struct lease *lease = &node->lease;
	if (!lease->given)
		return;
	if (!lease->lapsed && node->now_us >= lease->end_us) {
		follow_steps(node, lease->end_us);
		lapse(node);
	}
	follow_steps(node, node->now_us);
}

/* Restoring is an increase like any other: not while a budget binds or somebody here forbids it. */
void node_release(ww_node *node, bool force)
{
	bool binds = node->lease.given && !node->lease.release_ok;
	if (node->veto != WW_VETO_NONE || (binds && !force)) {
		node_alarm(node, NODE, WW_ALARM_NOT_RELEASED);
		return;
	}
	node->lease = (struct lease){0};
	node->dirty = true;
	for (uint32_t i = 0; i < node->options.n_gpus; i++) {
		struct gpu *gpu = &node->gpus[i];
		gpu->target_w = NAN;
		gpu->due_w = settable_w(node, i, gpu->recorded_w);
		gpu->unbound = true;
		gpu->step = -1;
	}
}

static int64_t sooner(int64_t us, int64_t candidate_us, int64_t now_us)
{
	return candidate_us > now_us && candidate_us < us ? candidate_us : us;
}

int64_t node_follow_due_us(const ww_node *node)
{
	const struct lease *lease = &node->lease;
	int64_t due_us = WW_NEVER_US;
	if (!lease->given)
		return due_us;
	if (!lease->lapsed)
		due_us = lease->end_us;
	for (uint32_t k = 0; k < lease->n_steps; k++) {
		due_us = sooner(due_us, lease->due_us[k], node->now_us);
		due_us = sooner(due_us, lease->up_us[k], node->now_us);
	}
	return due_us;
}
