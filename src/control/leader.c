/* SPDX-License-Identifier: Apache-2.0 */
/* A new leader: what the one before knew stays, but for what only its clock and its messages tell. */
#include "control/control_internal.h"

#include <math.h>

/* Whatever the clocks say, it has passed. */
static void move(const ww_control *c, int64_t *time_us, int64_t by_us)
{
	if (*time_us > INT64_MIN / 4 && *time_us < INT64_MAX / 4)
		*time_us += by_us;
	if (*time_us > c->now.mono_us)
		*time_us = c->now.mono_us;
}

static bool believes_all(const ww_control *c)
{
	for (uint32_t n = 0; n < c->n_nodes; n++)
		if (!c->nodes[n].believed)
			return false;
	return true;
}

/* Leases of the leader before: by what it decided last, not by a configuration that was told since. Of a node that it did
 * not hear the leases of those before it may still count. */
static void note_leases(ww_control *c, int64_t by_us)
{
	bool heard = c->known_until_us == WW_NEVER_US || believes_all(c);
	if (!c->decision.seq) {
		c->known_until_us = WW_NEVER_US;
		return;
	}
	if (!heard)
		move(c, &c->known_until_us, by_us);
	if (heard || c->decision.at.mono_us < c->known_until_us)
		c->known_until_us = c->decision.at.mono_us;
	c->lease_before_us =
		heard || c->lease_decided_us < c->lease_before_us ? c->lease_decided_us : c->lease_before_us;
	c->restores_before = c->restore_decided || (!heard && c->restores_before);
}

/* Times of the machine that saved become times of this one, by the wall clocks of both. These may differ: what would be
 * taken for safe after some time waits for it, or for its proof, anew. */
static void move_times(ww_control *c, int64_t by_us)
{
	for (uint32_t n = 0; n < c->n_nodes; n++) {
		struct node *node = &c->nodes[n];
		move(c, &node->heard_us, by_us);
		move(c, &node->alive_us, by_us);
		move(c, &node->sent_us, by_us);
		for (uint32_t i = 0; i < node->n_outstanding; i++)
			move(c, &node->outstanding[i].sent_us, by_us);
	}
	for (uint32_t g = 0; g < c->n_gpus; g++) {
		c->gpus[g].changed_us = c->now.mono_us;
		c->gpus[g].blind_w = NAN;
		c->gpus[g].obeyed_us = c->now.mono_us;
		move(c, &c->gpus[g].raised_us, by_us);
	}
	for (uint32_t r = 0; r < c->n_rows; r++) {
		move(c, &c->rows[r].meter_us, by_us);
		move(c, &c->rows[r].bound_us, by_us);
		c->rows[r].over_us = c->now.mono_us;
	}
	wait_for_meters(c);
	move(c, &c->decision.at.mono_us, by_us);
	move(c, &c->stored_us, by_us);
	note_leases(c, by_us);
}

void take_leader(ww_control *c, const struct ww_leader *leader, struct ww_now at)
{
	bool changed = leader->epoch != c->leader.epoch;
	if (leader->epoch < c->leader.epoch)
		return;
	c->leader = *leader;
	if (!changed)
		return;
	move_times(c, at.mono_us - at.wall_us - c->offset_us);
	c->offset_us = at.mono_us - at.wall_us;
	c->leads_since_us = at.mono_us;
	c->adopt_until_us = at.mono_us + c->config.valid_for_us;
	c->last_seq = 0;
	for (uint32_t n = 0; n < c->n_nodes; n++) {
		struct node *node = &c->nodes[n];
		node->was_silent = node->silent;
		node->believed = false;
		node->has_last = false;
		node->next_seq = node->since_seq = 1;
	}
	ask_to_store(c);
	c->ahead_us = WW_NEVER_US;
	c->news = true;
}
