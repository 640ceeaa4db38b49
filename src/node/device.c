/* SPDX-License-Identifier: Apache-2.0 */
/* What is read from the GPUs and written to them. The truth is the limit that a board obeys, not the one asked for. */
#include "node/node_internal.h"

#define HELD_FRAC 1.02f

/* ---- Readings ------------------------------------------------------------------------------------------------------ */

static struct ww_reading plausible(struct ww_reading r)
{
	bool has_value = r.status == WW_READING_OK || r.status == WW_READING_STALE;
	if (r.status >= WW_N_READING_STATUS || (has_value && !(r.value >= 0 && r.value <= PLAUSIBLE_MOST_W)))
		r.status = WW_READING_IMPLAUSIBLE;
	if (r.status != WW_READING_OK && r.status != WW_READING_STALE)
		r.value = NAN;
	return r;
}

static void note_enforced(ww_node *node, struct gpu *gpu, struct ww_reading enforced)
{
	bool known = ww_reading_known(&enforced);
	if (known && !(ww_reading_known(&gpu->enforced) && gpu->enforced.value == enforced.value)) {
		gpu->changed_us = node->now_us;
		gpu->held = false;
	}
	if (known)
		gpu->found_w = enforced.value;
	gpu->enforced = enforced;
	gpu->enforced_us = node->now_us;
}

/* The draw is the mean of a second: one taken a second after the change tells of the new limit alone. */
static void note_draw(ww_node *node, struct gpu *gpu, struct ww_reading draw)
{
	int64_t taken_us = node->now_us - (int64_t)draw.age_ms * 1000;
	gpu->draw = draw;
	gpu->draw_us = node->now_us;
	if (ww_reading_known(&draw) && ww_reading_known(&gpu->enforced) &&
	    taken_us >= later(gpu->changed_us, WW_SECOND_US))
		gpu->held = draw.value <= HELD_FRAC * gpu->enforced.value;
}

/* ---- Foreign hands -------------------------------------------------------------------------------------------------- */

static void count_foreign(ww_node *node, uint32_t i, enum ww_alarm what)
{
	struct gpu *gpu = &node->gpus[i];
	gpu->foreign += gpu->foreign < UINT8_MAX;
	node_alarm(node, i, what);
	node_have_news(node);
}

static void write_over(struct gpu *gpu)
{
	gpu->due_w = gpu->target_w;
	gpu->unbound = false;
}

/* False when this is once more than allowed within the window. */
static bool may_fight(ww_node *node, struct gpu *gpu)
{
	uint32_t recent = 0;
	for (uint32_t k = 0; k < FIGHTS_MAX && k < gpu->n_fights; k++)
		recent += later(gpu->fights_us[k], node->options.fight_window_us) >= node->now_us;
	if (recent >= node->options.fight_limit)
		return false;
	gpu->fights_us[gpu->n_fights++ % FIGHTS_MAX] = node->now_us;
	return true;
}

static void find_foreign(ww_node *node, uint32_t i)
{
	struct gpu *gpu = &node->gpus[i];
	float enforced_w = gpu->enforced.value, most_w = gpu->target_w, least_w = fminf(gpu->target_w, gpu->settled_w);
	if (!node_manages(node, gpu) || isnan(gpu->target_w))
		return;
	/* A limit that still has to be written is no reason for another one than that before. */
	if (!isnan(gpu->due_w))
		most_w = isnan(gpu->settled_w) ? INFINITY : fmaxf(gpu->target_w, gpu->settled_w);
	if (enforced_w > most_w + TOLERANCE_W) {
		count_foreign(node, i, WW_ALARM_FOREIGN_RAISE);
		gpu->lost = !may_fight(node, gpu);
		if (gpu->lost)
			node_alarm(node, i, WW_ALARM_FIGHT_LOST);
		else
			write_over(gpu);
	} else if (enforced_w < least_w - TOLERANCE_W) {
		count_foreign(node, i, WW_ALARM_FOREIGN_LOWER);
		gpu->settled_w = enforced_w;
		if (node->options.reassert_lower && may_fight(node, gpu))
			write_over(gpu);
	} else if (enforced_w > gpu->settled_w) {
		gpu->settled_w = enforced_w;
	}
}

/* A write of an earlier start whose outcome that start did not live to see. */
static void find_written(struct gpu *gpu)
{
	if (gpu->was_read || isnan(gpu->due_w) || fabsf(gpu->enforced.value - gpu->due_w) > TOLERANCE_W)
		return;
	gpu->requested_w = gpu->due_w;
	gpu->settled_w = gpu->enforced.value;
	gpu->due_w = NAN;
}

void node_take_reading(ww_node *node, uint32_t i, struct ww_reading enforced, struct ww_reading draw)
{
	if (i >= node->options.n_gpus)
		return;
	struct gpu *gpu = &node->gpus[i];
	node->awaited &= ~(1u << i);
	note_enforced(node, gpu, plausible(enforced));
	note_draw(node, gpu, plausible(draw));
	if (ww_reading_known(&gpu->enforced)) {
		find_written(gpu);
		find_foreign(node, i);
	}
	gpu->was_read = true;
}

/* ---- Writes --------------------------------------------------------------------------------------------------------- */

void node_take_written(ww_node *node, uint32_t i, bool ok, struct ww_reading enforced)
{
	if (i >= node->options.n_gpus || !node->gpus[i].writing)
		return;
	struct gpu *gpu = &node->gpus[i];
	gpu->writing = false;
	note_enforced(node, gpu, plausible(enforced));
	bool known = ww_reading_known(&gpu->enforced);
	bool bad = !ok || !known || gpu->enforced.value > gpu->asked_w + TOLERANCE_W;
	if (ok) {
		gpu->requested_w = gpu->asked_w;
		gpu->settled_w = known ? gpu->enforced.value : NAN;
	}
	if (bad && !gpu->bad)
		node_alarm(node, i, WW_ALARM_WRITE_FAILED);
	if (!bad || !gpu->bad)
		node_have_news(node);
	gpu->bad = bad;
	if (bad) {
		gpu->retry_us = later(node->now_us, node->options.period_us);
	} else if (gpu->due_w == gpu->asked_w) {
		gpu->due_w = NAN;
		/* Released: a later start has no business with it either. */
		node->dirty |= isnan(gpu->target_w);
	}
}

void node_record(ww_node *node)
{
	for (uint32_t i = 0; i < node->options.n_gpus; i++) {
		struct gpu *gpu = &node->gpus[i];
		if (isnan(gpu->due_w) || !isnan(gpu->recorded_w) || !ww_reading_known(&gpu->enforced))
			continue;
		gpu->recorded_w = gpu->enforced.value;
		node->dirty = true;
	}
}

bool node_manages(const ww_node *node, const struct gpu *gpu)
{
	return node->veto != WW_VETO_HANDS_OFF && !gpu->lost;
}

/* Where the limit is not known now, by the lower of what was found last and what was written since. */
static bool is_raise(const struct gpu *gpu)
{
	float from_w = isnan(gpu->found_w) ? NAN : fminf(gpu->found_w, gpu->requested_w);
	if (ww_reading_known(&gpu->enforced)) /* a stale one has a value too */
		from_w = gpu->enforced.value;
	return !(gpu->due_w <= from_w);
}

bool node_may_write(const ww_node *node, const struct gpu *gpu)
{
	if (isnan(gpu->due_w) || gpu->writing || node->now_us < gpu->retry_us)
		return false;
	if (!gpu->recorded || !gpu->was_read || !node_manages(node, gpu))
		return false;
	/* What was found was stored: without a journal lower is safe, higher is not. */
	if (!node_is_saved(node) && !(node->store_failed && !is_raise(gpu)))
		return false;
	if (!is_raise(gpu))
		return true;
	return node->veto != WW_VETO_FREEZE && (gpu->unbound || node_lease_is_valid(node));
}

void node_write(ww_node *node, struct acts *acts)
{
	for (uint32_t i = 0; i < node->options.n_gpus; i++) {
		struct gpu *gpu = &node->gpus[i];
		if (!node_may_write(node, gpu) ||
		    !put_act(acts, (struct ww_node_act){.kind = WW_ACT_WRITE_CAP, .u.write = {i, gpu->due_w}}))
			continue;
		gpu->asked_w = gpu->due_w;
		gpu->writing = true;
	}
}
