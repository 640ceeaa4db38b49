/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of a world: machines that lose power and boot, agents that crash and start, and what an agent's brain asks for. */
#include "cli/world_parts_internal.h"

#include <math.h>
#include <stdlib.h>

#define PHASE_MOST_US 50000
#define TURNS_MOST 64
#define HANG_US (3 * WW_SECOND_US) /* until a write that hangs has failed */

/* ---- Turns ---------------------------------------------------------------------------------------------------------- */

static bool is_before(const struct world_turn *p, const struct world_turn *q)
{
	return p->due_us < q->due_us || (p->due_us == q->due_us && p->node < q->node);
}

static void take_turn(ww_world *w, uint32_t turn, struct world_turn what)
{
	w->turns[turn] = what;
	w->turn_of[what.node] = turn;
}

static void set_due(ww_world *w, uint32_t node, int64_t due_us)
{
	struct world_turn turn = {due_us, node};
	uint32_t at = w->turn_of[node];
	for (; at > 0 && is_before(&turn, &w->turns[(at - 1) / 2]); at = (at - 1) / 2)
		take_turn(w, at, w->turns[(at - 1) / 2]);
	for (uint32_t next = 2 * at + 1; next < w->n_nodes; next = 2 * at + 1) {
		if (next + 1 < w->n_nodes && is_before(&w->turns[next + 1], &w->turns[next]))
			next++;
		if (!is_before(&w->turns[next], &turn))
			break;
		take_turn(w, at, w->turns[next]);
		at = next;
	}
	take_turn(w, at, turn);
}

/* ---- Readings ------------------------------------------------------------------------------------------------------- */

static struct ww_reading known(double value, int64_t age_us)
{
	int64_t age_ms = age_us / 1000;
	return (struct ww_reading){
		.value = (float)value, .age_ms = age_ms < 65535 ? (uint16_t)age_ms : 65535, .status = WW_READING_OK};
}

static struct ww_reading unknown(enum ww_reading_status status)
{
	return (struct ww_reading){.value = NAN, .age_ms = 65535, .status = (uint8_t)status};
}

static struct ww_node_in *new_input(ww_world *w, enum ww_node_in_kind kind)
{
	struct ww_node_in *in = &w->inputs[w->n_inputs < WORLD_INPUTS - 1 ? w->n_inputs++ : WORLD_INPUTS - 1];
	in->kind = kind;
	return in;
}

static void read_gpu(ww_world *w, uint32_t node, uint32_t gpu)
{
	uint32_t all = w->agents[node].first_gpu + gpu;
	int64_t lived_us = ww_plant_time_us(w->plant);
	double draw_w = lived_us > 0 ? ww_plant_sensor_w(w->plant, all) : NAN;
	struct ww_node_in *in = new_input(w, WW_NODE_IN_READING);
	in->u.reading.gpu = gpu;
	in->u.reading.enforced_w = known(ww_plant_enforced_w(w->plant, all), 0);
	in->u.reading.draw_w = isnan(draw_w) ? unknown(WW_READING_STALE) : known(draw_w, ww_world_now(w) - lived_us);
	ww_world_note_read(w, node, all);
}

static void read_jobs(ww_world *w, uint32_t node)
{
	struct world_agent *a = &w->agents[node];
	for (uint32_t i = 0; i < a->n_shares; i++) {
		struct world_share *share = &a->shares[i];
		enum ww_sim_state state = ww_plant_job_state(w->plant, share->job);
		if (state == WW_SIM_WAITING || (state == WW_SIM_ENDED && share->left))
			continue;
		struct ww_node_in *in = new_input(w, WW_NODE_IN_TPS);
		in->u.tps.job = w->spec.jobs[share->job].id;
		share->left = state == WW_SIM_ENDED;
		in->u.tps.tps = share->left ? unknown(WW_READING_LOST)
		                            : known(share->frac * ww_plant_job_tps(w->plant, share->job),
		                                    ww_world_now(w) - ww_plant_time_us(w->plant));
	}
}

/* ---- Acts ----------------------------------------------------------------------------------------------------------- */

static void send(ww_world *w, const struct ww_wire_message *message, const struct ww_envelope *from)
{
	struct ww_error err;
	ww_world_note_sent(w, message->node, from);
	ww_status status = ww_wire_send(w->wire, message, ww_world_now(w), &err);
	if (status)
		ww_world_fail(w, status, &err);
}

static void store_journal(ww_world *w, struct world_agent *a, const struct ww_node_act *act)
{
	bool saved = ww_world_now(w) >= a->journal_bad_until_us;
	if (saved) {
		ww_buf_clear(&a->journal);
		ww_buf_bytes(&a->journal, act->u.journal.bytes, act->u.journal.n);
		if (a->journal.failed)
			ww_world_fail(w, WW_ERR_NOMEM, NULL);
	}
	new_input(w, WW_NODE_IN_SAVED)->u.saved = saved;
}

/* Who writes waits apart from the others and gives up in the end. */
static void hang(ww_world *w, uint32_t node, uint32_t all)
{
	w->agents[node].hangs = true;
	w->gpus[all].fails_us = ww_world_now(w) + HANG_US;
}

static void end_hangs(ww_world *w, uint32_t node)
{
	struct world_agent *a = &w->agents[node];
	a->hangs = false;
	for (uint32_t g = 0; g < a->n_gpus; g++) {
		struct world_gpu *gpu = &w->gpus[a->first_gpu + g];
		if (gpu->fails_us > ww_world_now(w)) {
			a->hangs = true;
		} else if (gpu->fails_us > 0) {
			gpu->fails_us = 0;
			struct ww_node_in *in = new_input(w, WW_NODE_IN_WRITTEN);
			in->u.written.gpu = g;
			in->u.written.ok = false;
			in->u.written.enforced_w = known(ww_plant_enforced_w(w->plant, a->first_gpu + g), 0);
		}
	}
}

static void write_cap(ww_world *w, uint32_t node, const struct ww_node_act *act)
{
	uint32_t gpu = act->u.write.gpu, all = w->agents[node].first_gpu + gpu;
	double before_w = ww_plant_enforced_w(w->plant, all);
	w->account.writes++;
	if (ww_world_now(w) < w->gpus[all].hung_until_us) {
		hang(w, node, all);
		return;
	}
	bool ok = ww_plant_write(w->plant, all, (double)act->u.write.cap_w, ww_world_now(w));
	double after_w = ww_plant_enforced_w(w->plant, all);
	struct ww_node_in *in = new_input(w, WW_NODE_IN_WRITTEN);
	in->u.written.gpu = gpu;
	in->u.written.ok = ok;
	in->u.written.enforced_w = known(after_w, 0);
	if (ok)
		ww_world_note_limit_gone(w, all);
	if (w->spec.trace)
		ww_world_trace(w, "node %u gpu %u: writes %.1f W over %.1f W%s", node, gpu, (double)act->u.write.cap_w,
		               before_w, ok ? "" : ", fails");
	if (after_w != before_w)
		ww_world_check_node(w, node);
}

static void note_alarm(ww_world *w, uint32_t node, const struct ww_node_act *act)
{
	struct ww_world_alarm *alarm = NULL;
	w->account.alarms++;
	for (size_t i = 0; i < w->n_alarms && !alarm; i++)
		if (w->alarms[i].node == node && w->alarms[i].gpu == act->u.alarm.gpu &&
		    w->alarms[i].what == act->u.alarm.what)
			alarm = &w->alarms[i];
	if (!alarm) {
		struct ww_world_alarm *more = realloc(w->alarms, (w->n_alarms + 1) * sizeof *more);
		if (!more) {
			ww_world_fail(w, WW_ERR_NOMEM, NULL);
			return;
		}
		w->alarms = more;
		alarm = &w->alarms[w->n_alarms++];
		*alarm = (struct ww_world_alarm){node, act->u.alarm.gpu, act->u.alarm.what, 0, ww_world_now(w), 0};
	}
	alarm->times++;
	alarm->last_us = ww_world_now(w);
}

static void carry_out(ww_world *w, uint32_t node, const struct ww_node_act *act)
{
	switch (act->kind) {
	case WW_ACT_JOURNAL:
		store_journal(w, &w->agents[node], act);
		break;
	case WW_ACT_WRITE_CAP:
		write_cap(w, node, act);
		break;
	case WW_ACT_READ_BACK:
		read_gpu(w, node, act->u.read_back);
		break;
	case WW_ACT_SAMPLE:
		send(w, &(struct ww_wire_message){WW_WIRE_SAMPLE, node, {.sample = act->u.sample}},
		     &act->u.sample->from);
		break;
	case WW_ACT_ACK:
		send(w, &(struct ww_wire_message){WW_WIRE_ACK, node, {.ack = act->u.ack}}, &act->u.ack->from);
		break;
	case WW_ACT_HELLO:
		send(w, &(struct ww_wire_message){WW_WIRE_HELLO, node, {.hello = act->u.hello}}, &act->u.hello->from);
		break;
	case WW_ACT_ALARM:
		note_alarm(w, node, act);
		if (w->spec.trace)
			ww_world_trace(w, "node %u gpu %d: alarm: %s (%.1f)", node, (int)act->u.alarm.gpu,
			               ww_alarm_text(act->u.alarm.what), (double)act->u.alarm.value_w);
		break;
	}
}

/* Steps the brain with the inputs gathered until it rests. */
static void run_brain(ww_world *w, uint32_t node)
{
	struct world_agent *a = &w->agents[node];
	int64_t now_us = ww_world_now(w);
	struct ww_now now = {.mono_us = now_us - a->boot_us, .wall_us = w->clock.now.wall_us};
	for (int turn = 0; turn < TURNS_MOST; turn++) {
		size_t n = ww_node_step(a->brain, now, w->inputs, w->n_inputs, w->acts, WORLD_ACTS);
		w->n_inputs = 0;
		for (size_t i = 0; i < n; i++)
			carry_out(w, node, &w->acts[i]);
		if (n == 0)
			break;
	}
	w->n_inputs = 0;
	int64_t due_us = ww_node_due_us(a->brain);
	due_us = due_us == WW_NEVER_US ? due_us : due_us + a->boot_us;
	/* A brain that wants to go on at once has had its turns. */
	due_us = due_us > now_us ? due_us : now_us + 1000;
	set_due(w, node, due_us < a->period_us ? due_us : a->period_us);
}

/* ---- Agents ----------------------------------------------------------------------------------------------------------- */

/* The first moment of the node's periods that is not before `at_us`. */
static int64_t on_beat(const struct world_agent *a, int64_t at_us)
{
	int64_t beats = (at_us - a->phase_us + WW_SECOND_US - 1) / WW_SECOND_US;
	return beats * WW_SECOND_US + a->phase_us;
}

static void start_agent(ww_world *w, uint32_t node)
{
	struct world_agent *a = &w->agents[node];
	const struct ww_node_config *config = &w->spec.config->nodes[node];
	struct ww_node_options options = {.cluster = w->spec.config->cluster,
	                                  .node = config->id,
	                                  .boot_id = a->boot_id,
	                                  .start_id = (uint64_t)w->clock.now.wall_us,
	                                  .seed = w->spec.seed * 1000003 + node,
	                                  .period_us = w->spec.period_us,
	                                  .reassert_lower = w->spec.reassert_lower,
	                                  .n_gpus = config->n_gpus,
	                                  .fight_limit = 3,
	                                  .fight_window_us = 600 * WW_SECOND_US};
	for (uint32_t g = 0; g < config->n_gpus; g++) {
		options.gpus[g].uuid = config->id + g;
		options.gpus[g].min_w = config->min_w;
		options.gpus[g].max_w = config->max_w;
		options.gpus[g].default_w = config->default_w;
		options.gpus[g].boot_cap_w = config->boot_cap_w;
	}
	struct ww_error err;
	ww_status status = ww_node_create(&options, a->journal.bytes, a->journal.n, &a->brain, &err);
	if (status)
		ww_world_fail(w, status, &err);
	for (uint32_t i = 0; i < a->n_shares; i++)
		a->shares[i].left = false;
	a->start_us = WW_NEVER_US;
	a->period_us = ww_world_now(w);
	set_due(w, node, a->period_us);
	if (w->spec.trace)
		ww_world_trace(w, "node %u: agent starts", node);
}

void ww_world_agent_stop(ww_world *w, uint32_t node, int64_t start_us)
{
	struct world_agent *a = &w->agents[node];
	ww_node_destroy(a->brain);
	a->brain = NULL;
	start_us = on_beat(a, start_us);
	if (a->start_us == WW_NEVER_US || start_us > a->start_us)
		a->start_us = start_us;
	set_due(w, node, a->start_us);
}

void ww_world_agent_take(ww_world *w, uint32_t node, const struct ww_command *command)
{
	struct world_agent *a = &w->agents[node];
	if (!a->brain)
		return;
	if (ww_fence_order(command->fence, a->took) > 0)
		a->took = command->fence;
	if (ww_fence_order(a->took, a->sent) == 0)
		a->behind_us = WW_NEVER_US;
	new_input(w, WW_NODE_IN_COMMAND)->u.command = command;
	run_brain(w, node);
}

void ww_world_machine_off(ww_world *w, uint32_t node, int64_t until_us)
{
	struct world_agent *a = &w->agents[node];
	ww_plant_power_off(w->plant, node);
	a->off = true;
	a->off_until_us = until_us > a->off_until_us ? until_us : a->off_until_us;
	ww_world_agent_stop(w, node, a->off_until_us + WW_SECOND_US);
	for (uint32_t g = 0; g < a->n_gpus; g++)
		ww_world_note_limit_gone(w, a->first_gpu + g);
}

void ww_world_machine_on(ww_world *w, uint32_t node)
{
	struct world_agent *a = &w->agents[node];
	int64_t now_us = ww_world_now(w);
	if (!a->off || now_us < a->off_until_us)
		return;
	ww_plant_power_on(w->plant, node, now_us);
	a->off = false;
	a->boot_us = now_us;
	a->boot_id++;
	ww_world_check_limits(w);
}

int64_t ww_world_agents_due(void *world)
{
	const ww_world *w = world;
	return w->n_nodes ? w->turns[0].due_us : WW_NEVER_US;
}

void ww_world_agents_run(void *world, struct ww_now now)
{
	ww_world *w = world;
	while (!w->status && ww_world_agents_due(w) <= now.mono_us) {
		uint32_t node = w->turns[0].node;
		struct world_agent *a = &w->agents[node];
		if (!a->brain)
			start_agent(w, node);
		if (w->status)
			return;
		if (now.mono_us >= a->period_us) {
			read_jobs(w, node);
			if (a->hangs)
				end_hangs(w, node);
			a->period_us = now.mono_us + w->spec.period_us;
		}
		run_brain(w, node);
	}
}

/* ---- Set-up ------------------------------------------------------------------------------------------------------------ */

/* Counts or notes the shares of a job; its GPUs may be in any order. */
static void place_job(ww_world *w, uint32_t job, bool note)
{
	const struct ww_sim_job *spec = &w->spec.plant->jobs[job];
	for (uint32_t g = 0; g < spec->n_gpus; g++) {
		struct world_agent *a = &w->agents[w->gpus[spec->gpus[g]].node];
		if (a->last_job != job + 1) {
			if (note)
				a->shares[a->n_shares] = (struct world_share){.job = job};
			a->n_shares++;
			a->last_job = job + 1;
		}
		if (note)
			a->shares[a->n_shares - 1].frac += 1.0 / spec->n_gpus;
	}
}

static ww_status place_jobs(ww_world *w, struct ww_error *err)
{
	size_t n = 0;
	for (uint32_t j = 0; j < w->spec.plant->n_jobs; j++)
		place_job(w, j, false);
	for (uint32_t i = 0; i < w->n_nodes; i++)
		n += w->agents[i].n_shares;
	w->shares = calloc(n + 1, sizeof *w->shares);
	if (!w->shares)
		return ww_fail(err, WW_ERR_NOMEM, "out of memory");
	struct world_share *next = w->shares;
	for (uint32_t i = 0; i < w->n_nodes; i++) {
		w->agents[i].shares = next;
		next += w->agents[i].n_shares;
		w->agents[i].n_shares = w->agents[i].last_job = 0;
	}
	for (uint32_t j = 0; j < w->spec.plant->n_jobs; j++)
		place_job(w, j, true);
	return WW_OK;
}

static void init_agent(ww_world *w, uint32_t node, struct ww_rng *rng)
{
	struct world_agent *a = &w->agents[node];
	for (uint32_t g = 0; g < a->n_gpus; g++)
		w->gpus[a->first_gpu + g] = (struct world_gpu){.node = node, .charge_w = INFINITY, .cap_w = NAN};
	/* One after the other as they lie in memory, which is what a large world spends its time on. */
	a->phase_us = ((int64_t)node * PHASE_MOST_US + (int64_t)ww_rng_below(rng, PHASE_MOST_US)) / w->n_nodes;
	a->start_us = a->phase_us;
	a->boot_us = -(int64_t)(1 + ww_rng_below(rng, 1000000)) * WW_SECOND_US;
	a->boot_id = ww_rng_u64(rng) | 1;
	a->heard_us = -WW_NEVER_US;
	a->behind_us = WW_NEVER_US;
}

ww_status ww_world_agents_init(ww_world *w, struct ww_error *err)
{
	struct ww_rng rng;
	w->agents = calloc(w->n_nodes + 1, sizeof *w->agents);
	w->turns = calloc(w->n_nodes + 1, sizeof *w->turns);
	w->turn_of = calloc(w->n_nodes + 1, sizeof *w->turn_of);
	if (!w->agents || !w->turns || !w->turn_of)
		return ww_fail(err, WW_ERR_NOMEM, "out of memory");
	for (uint32_t i = 0; i < w->n_nodes; i++) {
		w->agents[i].first_gpu = w->n_gpus;
		w->agents[i].n_gpus = w->spec.plant->nodes[i].n_gpus;
		w->n_gpus += w->agents[i].n_gpus;
	}
	w->gpus = calloc(w->n_gpus + 1, sizeof *w->gpus);
	if (!w->gpus)
		return ww_fail(err, WW_ERR_NOMEM, "out of memory");
	ww_rng_seed(&rng, w->spec.seed + 1);
	for (uint32_t i = 0; i < w->n_nodes; i++)
		take_turn(w, i, (struct world_turn){WW_NEVER_US, i});
	for (uint32_t i = 0; i < w->n_nodes; i++) {
		init_agent(w, i, &rng);
		set_due(w, i, w->agents[i].start_us);
	}
	return place_jobs(w, err);
}

void ww_world_agents_finish(ww_world *w)
{
	for (uint32_t i = 0; w->agents && i < w->n_nodes; i++) {
		ww_node_destroy(w->agents[i].brain);
		ww_buf_finish(&w->agents[i].journal);
	}
	free(w->agents);
	free(w->turns);
	free(w->turn_of);
	free(w->alarms);
	free(w->shares);
}
