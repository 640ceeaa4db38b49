/* SPDX-License-Identifier: Apache-2.0 */
/* The controllers of a world: one in charge, zombies beside it, and the store that refuses a lower epoch. */
#include "cli/world_parts_internal.h"
#include "files/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TICK_AFTER_US 200000
#define GATHER_US 20000 /* nodes that start together are answered together */

static struct ww_now time_of(const ww_world *w, const struct world_control *c)
{
	return (struct ww_now){.mono_us = ww_world_now(w) + c->offset_us,
	                       .wall_us = w->clock.now.wall_us + c->wall_off_us};
}

static bool in_charge(const ww_world *w, const struct world_control *c)
{
	return w->charge >= 0 && c == &w->controls[w->charge];
}

/* ---- Journal ---------------------------------------------------------------------------------------------------------- */

static void end_frame(ww_world *w, size_t begin)
{
	ww_frame_end(w->spec.journal, begin);
	if (w->spec.journal->failed)
		ww_world_fail(w, WW_ERR_NOMEM, NULL);
}

static void record_state(ww_world *w, const struct world_control *c)
{
	if (!w->spec.journal)
		return;
	size_t begin = ww_frame_begin(w->spec.journal, WW_FRAME_STATE);
	if (ww_control_save(c->brain, w->spec.journal))
		ww_world_fail(w, WW_ERR_NOMEM, NULL);
	end_frame(w, begin);
}

static void record_input(ww_world *w, const struct ww_input *input)
{
	if (!w->spec.journal)
		return;
	size_t begin = ww_frame_begin(w->spec.journal, WW_FRAME_INPUT);
	if (ww_input_encode(input, w->spec.journal))
		ww_world_fail(w, WW_ERR_NOMEM, NULL);
	end_frame(w, begin);
}

static void record_step(ww_world *w, const struct ww_decision *decision, struct ww_now now)
{
	if (!w->spec.journal)
		return;
	ww_frame_step(w->spec.journal, now);
	size_t begin = ww_frame_begin(w->spec.journal, WW_FRAME_DECISION);
	ww_decision_encode(decision, w->spec.journal);
	end_frame(w, begin);
}

void ww_world_begin_journal(ww_world *w, struct ww_buf *journal)
{
	w->spec.journal = journal;
	if (w->charge >= 0)
		record_state(w, &w->controls[w->charge]);
}

/* ---- Inputs ----------------------------------------------------------------------------------------------------------- */

static ww_status put(ww_world *w, struct world_control *c, struct ww_input *input)
{
	struct ww_error err;
	input->at = time_of(w, c);
	input->seq = ++w->input_seq;
	ww_status status = ww_control_put(c->brain, input, &err);
	if (status && w->spec.trace)
		ww_world_trace(w, "controller %llu refuses: %s", (unsigned long long)c->epoch, err.text);
	if (!status && in_charge(w, c))
		record_input(w, input);
	bool may_refuse = input->kind == WW_INPUT_EVENT && status == WW_ERR_NO_DATA;
	if (status && !may_refuse)
		ww_world_fail(w, status, &err);
	return status;
}

bool ww_world_tell(ww_world *w, struct ww_input *input)
{
	struct world_control *c = &w->controls[w->charge];
	if (put(w, c, input))
		return false;
	c->step_us = ww_world_now(w);
	return true;
}

void ww_world_hear(ww_world *w, struct ww_input *input)
{
	for (int i = 0; i < WORLD_CONTROLLERS; i++) {
		if (!w->controls[i].brain)
			continue;
		struct world_control *c = &w->controls[i];
		put(w, c, input);
		if (input->kind == WW_INPUT_HELLO && c->step_us == WW_NEVER_US)
			c->step_us = ww_world_now(w) + GATHER_US;
	}
}

/* ---- Steps ------------------------------------------------------------------------------------------------------------ */

/* Stores the state of the decision just made; only the one in charge can, while the store takes it. */
static bool store(ww_world *w, struct world_control *c, uint64_t seq)
{
	if (!in_charge(w, c) || ww_world_now(w) < w->store_bad_until_us) {
		w->account.lost_saves++;
		return false;
	}
	ww_buf_clear(&w->scratch);
	if (ww_control_save(c->brain, &w->scratch)) {
		ww_world_fail(w, WW_ERR_NOMEM, NULL);
		return false;
	}
	struct ww_buf old = w->store;
	w->store = w->scratch;
	w->scratch = old;
	w->account.saves++;
	put(w, c, &(struct ww_input){.kind = WW_INPUT_SAVED, .u.saved = seq});
	return true;
}

static void append(char text[static 200], const char *what, double value)
{
	size_t n = strlen(text);
	snprintf(text + n, 200 - n, "%s%.1f", what, value);
}

static void trace_command(const ww_world *w, const struct ww_command *command, uint32_t node, bool needs_save)
{
	char text[200] = "";
	for (uint32_t s = 0; s < command->n_steps; s++) {
		append(text, s ? " | in " : "in ", (double)command->step[s].in_us / 1e6);
		for (uint32_t g = 0; g < command->n_gpus; g++)
			append(text, g ? " " : " s: ", (double)command->step[s].cap_w[g]);
	}
	ww_world_trace(w, "controller %llu: command %llu to node %u%s, answers %llu, valid %.1f s: %s",
	               (unsigned long long)command->fence.epoch, (unsigned long long)command->fence.seq, node,
	               needs_save ? " (saved)" : "", (unsigned long long)command->answers_seq,
	               (double)command->valid_for_us / 1e6, text);
}

static void send_command(ww_world *w, const struct ww_command *command, bool needs_save)
{
	struct ww_error err;
	uint32_t node = ww_world_find_node(w, command->node);
	if (node == w->n_nodes) {
		ww_fail(&err, WW_ERR_NOT_FOUND, "a command to a node that there is not");
		ww_world_fail(w, WW_ERR_NOT_FOUND, &err);
		return;
	}
	struct world_agent *a = &w->agents[node];
	if (ww_fence_order(command->fence, a->sent) > 0) {
		a->sent = command->fence;
		a->behind_us = a->behind_us == WW_NEVER_US ? ww_world_now(w) : a->behind_us;
	}
	if (w->spec.trace)
		trace_command(w, command, node, needs_save);
	w->account.commands++;
	struct ww_wire_message message = {WW_WIRE_COMMAND, node, {.command = command}};
	ww_status status = ww_wire_send(w->wire, &message, ww_world_now(w), &err);
	if (status)
		ww_world_fail(w, status, &err);
}

static int64_t cpu_ns(void)
{
	struct timespec t = {0};
	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static const struct ww_decision *timed_step(const ww_world *w, struct world_control *c, struct ww_now now)
{
	int64_t began_ns = w->spec.stepped ? cpu_ns() : 0;
	const struct ww_decision *d = ww_control_step(c->brain, now);
	if (w->spec.stepped)
		w->spec.stepped(w->spec.stepped_ctx, d, cpu_ns() - began_ns);
	return d;
}

static void step(ww_world *w, struct world_control *c)
{
	struct ww_now now = time_of(w, c);
	c->step_us = WW_NEVER_US;
	if (in_charge(w, c) && w->decided)
		ww_world_check_limits(w);
	const struct ww_decision *d = timed_step(w, c, now);
	w->account.steps++;
	if (in_charge(w, c)) {
		record_step(w, d, now);
		w->decision = d;
		ww_world_check_decision(w, d);
		ww_world_check_limits(w);
	}
	bool saved = d->save && store(w, c, d->seq);
	for (uint32_t i = 0; i < d->n_commands && !w->status; i++)
		if (saved || !d->needs_save[i])
			send_command(w, &d->commands[i], d->needs_save[i]);
}

int64_t ww_world_controls_due(void *world)
{
	const ww_world *w = world;
	int64_t due_us = WW_NEVER_US;
	for (int i = 0; i < WORLD_CONTROLLERS; i++) {
		const struct world_control *c = &w->controls[i];
		if (!c->brain)
			continue;
		due_us = c->step_us < due_us ? c->step_us : due_us;
		due_us = c->tick_us < due_us ? c->tick_us : due_us;
	}
	return due_us;
}

void ww_world_controls_run(void *world, struct ww_now now)
{
	ww_world *w = world;
	for (int i = 0; i < WORLD_CONTROLLERS && !w->status; i++) {
		struct world_control *c = &w->controls[i];
		if (!c->brain || (c->step_us > now.mono_us && c->tick_us > now.mono_us))
			continue;
		if (c->tick_us <= now.mono_us)
			c->tick_us += WW_SECOND_US;
		step(w, c);
	}
}

/* ---- Leadership --------------------------------------------------------------------------------------------------------- */

static void drop(ww_world *w, int i)
{
	if (w->charge == i) {
		w->charge = -1;
		w->left_us = ww_world_now(w);
		w->decision = NULL;
		w->decided = false;
	}
	ww_control_destroy(w->controls[i].brain);
	w->controls[i].brain = NULL;
}

/* A free place; the zombie that would end first makes room. */
static int free_place(ww_world *w)
{
	int first = -1;
	for (int i = 0; i < WORLD_CONTROLLERS; i++) {
		if (!w->controls[i].brain)
			return i;
		if (i != w->charge && (first < 0 || w->controls[i].ends_us < w->controls[first].ends_us))
			first = i;
	}
	drop(w, first);
	return first;
}

static void load(ww_world *w, struct world_control *c)
{
	struct ww_error err;
	ww_status status = ww_control_load(c->brain, &w->store, &err);
	if (status)
		ww_world_fail(w, status, &err);
}

static void first_inputs(ww_world *w, struct world_control *c)
{
	put(w, c, &(struct ww_input){.kind = WW_INPUT_CONFIG, .u.config = w->spec.config});
	if (!w->status)
		put(w, c, &(struct ww_input){.kind = WW_INPUT_DIVISION, .u.division = w->spec.division});
}

void ww_world_take_over(ww_world *w)
{
	struct ww_error err;
	w->take_over_waits = ww_world_now(w) < w->store_bad_until_us;
	if (w->take_over_waits)
		return;
	int place = free_place(w);
	struct world_control *c = &w->controls[place];
	*c = (struct world_control){.epoch = ++w->epoch, .step_us = ww_world_now(w), .ends_us = WW_NEVER_US};
	ww_status status = ww_control_create(&c->brain, &err);
	if (status) {
		ww_world_fail(w, status, &err);
		return;
	}
	/* Another machine: its monotonic clock has nothing to do with the last one's. */
	c->offset_us = (int64_t)(1 + w->epoch * 7919 % 1000) * 1000 * WW_SECOND_US;
	c->wall_off_us = w->spec.wall_off_us / 2 * ((int64_t)(w->epoch * 3 % 5) - 2);
	int64_t after_us = ww_world_now(w) - TICK_AFTER_US;
	c->tick_us = (after_us < 0 ? 0 : after_us / WW_SECOND_US + 1) * WW_SECOND_US + TICK_AFTER_US;
	w->charge = place;
	w->decided = false;
	ww_world_note_take_over(w);
	if (w->spec.trace)
		ww_world_trace(w, "controller %llu takes charge", (unsigned long long)c->epoch);
	if (w->store.n > 0)
		load(w, c);
	record_state(w, c);
	if (w->store.n == 0)
		first_inputs(w, c);
	struct ww_leader leader = {.epoch = c->epoch, .leads = true};
	if (!w->status)
		put(w, c, &(struct ww_input){.kind = WW_INPUT_LEADER, .u.leader = &leader});
}

void ww_world_put_back(ww_world *w, uint32_t node)
{
	struct ww_config without = *w->spec.config;
	struct ww_node_config *nodes = calloc(without.n_nodes, sizeof *nodes);
	if (!nodes)
		ww_world_fail(w, WW_ERR_NOMEM, NULL);
	if (nodes && w->charge >= 0 && without.n_nodes > 1) {
		memcpy(nodes, without.nodes, node * sizeof *nodes);
		without.n_nodes--;
		memcpy(nodes + node, w->spec.config->nodes + node + 1, (without.n_nodes - node) * sizeof *nodes);
		without.nodes = nodes;
		ww_world_note_unsteady(w);
		w->decided = false; /* its charges are others now */
		if (ww_world_tell(w, &(struct ww_input){.kind = WW_INPUT_CONFIG, .u.config = &without}))
			ww_world_tell(w, &(struct ww_input){.kind = WW_INPUT_CONFIG, .u.config = w->spec.config});
	}
	free(nodes);
}

void ww_world_control_crash(ww_world *w)
{
	if (w->charge >= 0)
		drop(w, w->charge);
}

void ww_world_zombie(ww_world *w, int64_t until_us)
{
	if (w->charge < 0 || ww_world_now(w) < w->store_bad_until_us)
		return;
	w->controls[w->charge].ends_us = until_us;
	w->left_us = ww_world_now(w);
	ww_world_take_over(w);
}

void ww_world_zombies_end(ww_world *w)
{
	for (int i = 0; i < WORLD_CONTROLLERS; i++)
		if (w->controls[i].brain && i != w->charge && w->controls[i].ends_us <= ww_world_now(w))
			drop(w, i);
}

void ww_world_controls_finish(ww_world *w)
{
	for (int i = 0; i < WORLD_CONTROLLERS; i++)
		ww_control_destroy(w->controls[i].brain);
	ww_buf_finish(&w->store);
	ww_buf_finish(&w->scratch);
}
