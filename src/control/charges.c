/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The charge of a GPU: an upper bound of the limit that its board obeys now or may come to obey before the next decision,
 * whatever is lost, late, restarted or booted meanwhile. Watts are free again only when a lower limit was read back and
 * the draw has followed.
 */
#include "control/control_internal.h"

#include <math.h>
#include <string.h>

#define OBEYED_FRAC 1.05f /* of its cap, as near as a draw comes */
#define STUCK_US (10 * WW_SECOND_US)
#define BOOT_MARGIN_US (5 * WW_SECOND_US)
#define TICKS_US                                                                                                       \
	(2 * WW_SECOND_US) /* a charge must be there before what it charges: the next decision is a second away */

/* ---- Commands on their way ---------------------------------------------------------------------------------------------- */

void supersede(struct node *node, struct ww_fence accepted)
{
	uint32_t kept = 0;
	if (ww_fence_order(accepted, node->accepted) > 0)
		node->accepted = accepted;
	for (uint32_t i = 0; i < node->n_outstanding; i++) {
		int order = ww_fence_order(node->outstanding[i].fence, accepted);
		if (order == 0 && node->outstanding[i].sent_us > node->alive_us)
			node->alive_us = node->outstanding[i].sent_us;
		if (order >= 0)
			node->outstanding[kept++] = node->outstanding[i];
	}
	node->n_outstanding = kept;
}

/* The two oldest as one: as high as either, superseded only with the later. */
static void merge_oldest(struct node *node)
{
	struct outstanding *a = &node->outstanding[0], *b = &node->outstanding[1];
	for (uint32_t i = 0; i < node->config.n_gpus; i++)
		a->top_w[i] = most_known(a->top_w[i], b->top_w[i]);
	a->fence = b->fence;
	if (b->restores_us > 0 && (a->restores_us == 0 || b->restores_us < a->restores_us))
		a->restores_us = b->restores_us;
	node->n_outstanding--;
	memmove(b, b + 1, (node->n_outstanding - 1) * sizeof *b);
}

float boot_limit_w(const ww_control *c, const struct gpu *gpu)
{
	const struct ww_node_config *config = &c->nodes[gpu->node].config;
	return most_known(isnan(config->boot_cap_w) ? config->default_w : config->boot_cap_w, gpu->boot_w);
}

float highest_limit_w(const ww_control *c, const struct gpu *gpu)
{
	return most_known(c->nodes[gpu->node].config.max_w, gpu->most_w);
}

float recorded_limit_w(const ww_control *c, const struct gpu *gpu)
{
	return isnan(gpu->recorded_w) ? highest_limit_w(c, gpu) : gpu->recorded_w;
}

/* A node that is told to without an answer to a message of its own holds instead. */
static bool restores(const struct ww_command *command)
{
	return command->after == WW_AFTER_RESTORE && command->answers_seq > 0;
}

float top_of(const ww_control *c, const struct ww_command *command, const struct gpu *gpu, uint32_t i, uint32_t first)
{
	float top = command->after == WW_AFTER_FAILCAP ? command->failcap_w[i] : NAN;
	for (uint32_t k = first; k < command->n_steps; k++)
		top = most_known(top, command->step[k].cap_w[i]);
	return command->release_ok ? most_known(top, recorded_limit_w(c, gpu)) : top;
}

void add_outstanding(ww_control *c, struct node *node, const struct ww_command *command)
{
	if (node->n_outstanding == OUTSTANDING_MAX)
		merge_oldest(node);
	struct outstanding *o = &node->outstanding[node->n_outstanding++];
	*o = (struct outstanding){.fence = command->fence,
	                          .sent_us = c->now.mono_us,
	                          .restores_us = restores(command) ? command->valid_for_us : 0};
	for (uint32_t i = 0; i < node->config.n_gpus; i++) {
		struct gpu *gpu = &c->gpus[node->first_gpu + i];
		o->top_w[i] = top_of(c, command, gpu, i, 0);
		gpu->charge_w = most_known(gpu->charge_w, o->top_w[i]);
	}
}

/* The largest cap that anything sent to GPU `i` of the node may still bring about. */
static float commanded_w(const ww_control *c, const struct node *node, const struct gpu *gpu, uint32_t i)
{
	float top = NAN;
	for (uint32_t k = 0; k < node->n_outstanding; k++) {
		const struct outstanding *o = &node->outstanding[k];
		bool in_force = ww_fence_order(o->fence, node->accepted) == 0;
		if (in_force && node->has_last && ww_fence_order(node->last->fence, o->fence) == 0)
			top = most_known(top, top_of(c, node->last, gpu, i, gpu->step));
		else
			top = most_known(top, o->top_w[i]);
	}
	return top;
}

/* ---- Charges ---------------------------------------------------------------------------------------------------------- */

/* How long it was silent before this leader began, only clocks of other machines tell. */
static bool has_not_answered(const ww_control *c, const struct node *node)
{
	return !node->believed && !greets(c);
}

int64_t silence_of_boot_us(const ww_control *c, const struct node *node)
{
	return node->config.shortest_boot_us - c->config.settle_us - BOOT_MARGIN_US;
}

/* No proof that the machine did not go down and come up since. */
static bool may_have_booted(const ww_control *c, const struct node *node)
{
	return has_not_answered(c, node) || c->now.mono_us - node->alive_us >= silence_of_boot_us(c, node);
}

/* A lease that ends in a restore may have ended. */
static bool may_have_restored(const ww_control *c, const struct node *node)
{
	bool unheard = has_not_answered(c, node);
	for (uint32_t i = 0; i < node->n_outstanding; i++) {
		const struct outstanding *o = &node->outstanding[i];
		if (o->restores_us > 0 && (unheard || c->now.mono_us - o->sent_us >= o->restores_us - TICKS_US))
			return true;
	}
	if (!c->restores_before || node->believed || c->known_until_us == WW_NEVER_US)
		return false;
	return unheard || c->now.mono_us - c->known_until_us >= c->lease_before_us - TICKS_US;
}

/* The lower limit was read back, and the draw followed it or is known not to. */
static bool has_come_down(const ww_control *c, const struct node *node, const struct gpu *gpu)
{
	bool settled = c->now.mono_us - gpu->changed_us >= c->config.settle_us && !isnan(gpu->draw_w);
	return node->believed && !isnan(gpu->enforced_w) && (gpu->held || settled);
}

static void charge_gpu(const ww_control *c, const struct node *node, struct gpu *gpu, uint32_t i)
{
	float w = most_known(commanded_w(c, node, gpu, i), most_known(gpu->enforced_w, gpu->goal_w));
	if (!gpu->held && gpu->draw_w > 1.02f * gpu->enforced_w)
		w = most_known(w, gpu->draw_w);
	if (!gpu->managed)
		w = most_known(w, highest_limit_w(c, gpu));
	gpu->charge_w = has_come_down(c, node, gpu) ? w : most_known(gpu->charge_w, w);
}

/* A limit whose write hangs, a draw that no limit holds: people are told. */
static void watch_obedience(ww_control *c, const struct node *node, struct gpu *gpu)
{
	if (node->silent || !(gpu->charge_w > gpu->cap_w * OBEYED_FRAC))
		gpu->obeyed_us = c->now.mono_us;
	gpu->stuck = c->now.mono_us - gpu->obeyed_us >= c->config.settle_us + STUCK_US;
}

/* Adds to its rows as well: each walk over all GPUs of a site takes about a millisecond. */
static void charge_node(ww_control *c, struct node *node)
{
	double charge_w = 0, full_w = 0;
	bool booted = may_have_booted(c, node);
	bool restored = may_have_restored(c, node);
	bool silent = !node->believed || booted || c->now.mono_us - node->heard_us > c->config.valid_for_us / 3;
	if (silent != node->silent)
		c->ready_changed = true;
	node->silent = silent;
	for (uint32_t i = 0; i < node->config.n_gpus; i++) {
		struct gpu *gpu = &c->gpus[node->first_gpu + i];
		if (node->believed)
			charge_gpu(c, node, gpu, i);
		if (booted)
			gpu->charge_w = most_known(gpu->charge_w, boot_limit_w(c, gpu));
		if (restored)
			gpu->charge_w = most_known(gpu->charge_w, recorded_limit_w(c, gpu));
		watch_obedience(c, node, gpu);
		/* Where nothing binds, its node may also give its recorded limit back. */
		float free_w = most_known(gpu->ceiling_w, gpu->recorded_w);
		full_w += is_ready(c, gpu) ? free_w : most_known(free_w, gpu->charge_w);
		charge_w += gpu->charge_w;
	}
	add_charge(c, node, charge_w);
	for (uint32_t l = 0; l < node->config.n_loads; l++)
		c->rows[node->config.loads[l].row].full_w += node->config.loads[l].frac * full_w;
}

void update_charges(ww_control *c)
{
	for (uint32_t r = 0; r < c->n_rows; r++)
		c->rows[r].charge_w = c->rows[r].full_w = 0;
	for (uint32_t n = 0; n < c->n_nodes; n++)
		charge_node(c, &c->nodes[n]);
}

void sum_charges(ww_control *c)
{
	for (uint32_t r = 0; r < c->n_rows; r++)
		c->rows[r].charge_w = 0;
	for (uint32_t n = 0; n < c->n_nodes; n++) {
		const struct node *node = &c->nodes[n];
		double charge_w = 0;
		for (uint32_t i = 0; i < node->config.n_gpus; i++)
			charge_w += c->gpus[node->first_gpu + i].charge_w;
		add_charge(c, node, charge_w);
	}
}
