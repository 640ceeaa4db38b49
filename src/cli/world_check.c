/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must hold in a world, checked on the plant and on the decisions, which are trusted in nothing that can be counted
 * again here: (a) limits in force within charges, (b) charges within budgets, (c) power within budgets.
 */
#include "cli/world_parts_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define TOLERANCE 1e-6
#define REACH_PERIODS 3
#define SETTLE_MORE_US (5 * WW_SECOND_US)
#define GREETED_US (4 * WW_SECOND_US) /* so long a new controller goes by its clock, which may be off */

static void breach(ww_world *w, uint64_t *counter, uint32_t row, const char *what, const double *values)
{
	char text[sizeof w->account.first];
	(*counter)++;
	if (w->account.first[0] && !w->spec.trace)
		return;
	snprintf(text, sizeof text, "%.3f s, row %u (%s): %s: %.3f W against %.3f W", (double)ww_world_now(w) / 1e6,
	         row, w->spec.config->rows[row].name, what, values[0], values[1]);
	if (!w->account.first[0])
		memcpy(w->account.first, text, sizeof text);
	if (w->spec.trace)
		ww_world_trace(w, "BREACH %s", text);
}

static bool above(double value, double limit)
{
	return value > limit + TOLERANCE * fabs(limit) + 1e-6;
}

/* ---- (a) limits in force <= charges ------------------------------------------------------------------------------------ */

static bool excused(const ww_world *w, const struct world_gpu *gpu)
{
	return gpu->foreign && (gpu->foreign != FOREIGN_TOLD || ww_world_now(w) < gpu->until_us);
}

static struct world_watts watts_of(const ww_world *w, const struct world_agent *a)
{
	struct world_watts sum = {0};
	for (uint32_t g = a->first_gpu; g < a->first_gpu + a->n_gpus; g++) {
		const struct world_gpu *gpu = &w->gpus[g];
		double enforced_w = ww_plant_enforced_w(w->plant, g), charge_w = (double)gpu->charge_w;
		/* One GPU above its charge does not hide behind another that is below. */
		sum.limits_w += enforced_w > charge_w && !excused(w, gpu) ? enforced_w : charge_w;
		sum.charges_w += charge_w;
	}
	return sum;
}

/* Adds what the node has to its rows, or by how much it has changed since. */
static void add_node(ww_world *w, uint32_t node, struct world_watts since)
{
	struct world_agent *a = &w->agents[node];
	const struct ww_node_config *config = &w->spec.config->nodes[node];
	a->watts = watts_of(w, a);
	for (uint32_t l = 0; l < config->n_loads; l++) {
		struct world_row *row = &w->rows[config->loads[l].row];
		row->watts.limits_w += (double)config->loads[l].frac * (a->watts.limits_w - since.limits_w);
		row->watts.charges_w += (double)config->loads[l].frac * (a->watts.charges_w - since.charges_w);
	}
}

static void trace_node(const ww_world *w, uint32_t node)
{
	const struct world_agent *a = &w->agents[node];
	for (uint32_t g = a->first_gpu; g < a->first_gpu + a->n_gpus; g++)
		if (ww_plant_enforced_w(w->plant, g) > (double)w->gpus[g].charge_w && !excused(w, &w->gpus[g]))
			ww_world_trace(w, "  node %u gpu %u: limit %.1f W, charge %.1f W, commanded %.1f W", node,
			               g - a->first_gpu, ww_plant_enforced_w(w->plant, g), (double)w->gpus[g].charge_w,
			               (double)w->gpus[g].cap_w);
}

void ww_world_check_limits(ww_world *w)
{
	if (!w->decided || (w->spec.wall_off_us > 0 && ww_world_now(w) < w->took_over_us + GREETED_US))
		return;
	uint64_t broken = w->account.broken_a;
	for (uint32_t r = 0; r < w->n_rows; r++)
		w->rows[r].watts = (struct world_watts){0};
	for (uint32_t i = 0; i < w->n_nodes; i++)
		add_node(w, i, (struct world_watts){0});
	for (uint32_t r = 0; r < w->n_rows; r++)
		if (above(w->rows[r].watts.limits_w, w->rows[r].watts.charges_w))
			breach(w, &w->account.broken_a, r, "(a) limits in force above charges",
			       (double[]){w->rows[r].watts.limits_w, w->rows[r].watts.charges_w});
	for (uint32_t i = 0; w->spec.trace && broken < w->account.broken_a && i < w->n_nodes; i++)
		trace_node(w, i);
}

/* Sums that were changed here and there are as good as new ones but for rounding: what looks broken is summed again. */
void ww_world_check_node(ww_world *w, uint32_t node)
{
	const struct ww_node_config *config = &w->spec.config->nodes[node];
	bool broken = false;
	if (!w->decided)
		return;
	add_node(w, node, w->agents[node].watts);
	for (uint32_t l = 0; l < config->n_loads; l++) {
		const struct world_watts *watts = &w->rows[config->loads[l].row].watts;
		broken = broken || above(watts->limits_w, watts->charges_w);
	}
	if (broken)
		ww_world_check_limits(w);
}

/* ---- (b) charges <= budgets -------------------------------------------------------------------------------------------- */

/* A command may not raise a GPU on a row that misses watts, nor any while raises are frozen. One that answers nothing raises nothing: its node sees to it. */
static void check_raises(ww_world *w, const struct ww_decision *d, const struct ww_command *command)
{
	uint32_t node = ww_world_find_node(w, command->node);
	if (node == w->n_nodes || command->answers_seq == 0)
		return;
	const struct ww_node_config *config = &w->spec.config->nodes[node];
	for (uint32_t g = 0; g < command->n_gpus && g < config->n_gpus; g++) {
		uint32_t all = w->agents[node].first_gpu + g;
		const struct world_gpu *gpu = &w->gpus[all];
		double cap_w = (double)command->step[0].cap_w[g];
		double had_w =
			fmax(fmax((double)gpu->charge_w, (double)gpu->cap_w), ww_plant_enforced_w(w->plant, all));
		if (isnan(cap_w) || !above(cap_w, had_w))
			continue;
		if (w->mode == WW_MODE_FREEZE)
			breach(w, &w->account.broken_b, config->loads[0].row, "(b) a raise while raises are frozen",
			       (double[]){cap_w, had_w});
		for (uint32_t l = 0; l < config->n_loads; l++)
			if (config->loads[l].frac > 0 && d->rows[config->loads[l].row].missing_w > 0)
				breach(w, &w->account.broken_b, config->loads[l].row,
				       "(b) a raise while watts are missing", (double[]){cap_w, had_w});
	}
}

static void take_charges(ww_world *w, const struct ww_decision *d)
{
	for (uint32_t g = 0; g < w->n_gpus; g++) {
		w->gpus[g].charge_w = d->gpus[g].charge_w;
		w->gpus[g].cap_w = d->gpus[g].cap_w;
	}
	for (uint32_t r = 0; r < w->n_rows; r++)
		w->rows[r].watts.charges_w = 0;
	for (uint32_t i = 0; i < w->n_nodes; i++) {
		const struct ww_node_config *config = &w->spec.config->nodes[i];
		double charges_w = 0;
		for (uint32_t g = 0; g < config->n_gpus; g++)
			charges_w += (double)w->gpus[w->agents[i].first_gpu + g].charge_w;
		for (uint32_t l = 0; l < config->n_loads; l++)
			w->rows[config->loads[l].row].watts.charges_w += (double)config->loads[l].frac * charges_w;
	}
}

static void check_row(ww_world *w, uint32_t r)
{
	const struct ww_row_decision *d = &w->rows[r].last;
	const struct ww_row *config = &w->spec.config->rows[r];
	double need_w = w->rows[r].watts.charges_w + d->non_gpu_w + d->guard_w;
	double excess_w = need_w > d->budget_w ? need_w - d->budget_w : 0;
	double slack_w = TOLERANCE * need_w + 1e-3;
	if (isnan(need_w) || isnan(d->budget_w) || fabs(d->missing_w - excess_w) > slack_w || isnan(d->missing_w))
		breach(w, &w->account.broken_b, r, "(b) missing watts are not the excess",
		       (double[]){d->missing_w, excess_w});
	if (d->boundary == config->boundary && above(d->budget_w, config->limit_w))
		breach(w, &w->account.broken_b, r, "(b) budget above the row's limit",
		       (double[]){d->budget_w, config->limit_w});
	if (isfinite(d->budget_w) && above(config->guard_frac * d->budget_w, d->guard_w))
		breach(w, &w->account.broken_b, r, "(b) guard below what is configured",
		       (double[]){d->guard_w, config->guard_frac * d->budget_w});
}

/* The part of an event that needs no baseline and no ramp. */
static void check_event(ww_world *w, const struct world_event *e)
{
	const struct ww_event *v = e->event;
	const struct ww_row_decision *d = &w->rows[e->row].last;
	int64_t wall_us = w->clock.now.wall_us + w->controls[w->charge].wall_off_us;
	bool let_go = w->mode == WW_MODE_DISENGAGE && v->cls == WW_CLASS_CONTRACT;
	bool binds = !v->cancelled && !let_go && isfinite(v->limit_w) && wall_us >= v->start_us + v->ramp_down_us &&
	             wall_us < v->end_us;
	if (binds && d->boundary == v->boundary && above(d->budget_w, v->limit_w))
		breach(w, &w->account.broken_b, e->row, "(b) budget above an event's limit",
		       (double[]){d->budget_w, v->limit_w});
}

void ww_world_check_decision(ww_world *w, const struct ww_decision *d)
{
	for (uint32_t i = 0; i < d->n_commands; i++)
		check_raises(w, d, &d->commands[i]);
	take_charges(w, d);
	for (uint32_t r = 0; r < w->n_rows; r++) {
		w->rows[r].budget_before_w = w->rows[r].last.budget_w;
		w->rows[r].last = d->rows[r];
		if (d->rows[r].missing_w > 0)
			w->rows[r].missing_us = ww_world_now(w);
		check_row(w, r);
	}
	for (size_t i = 0; i < w->n_events; i++)
		check_event(w, &w->events[i]);
	w->decided = true;
}

void ww_world_note_event(ww_world *w, const struct ww_event *event)
{
	ww_world_note_unsteady(w);
	for (size_t i = 0; i < w->n_events; i++)
		if (w->events[i].event->id == event->id) {
			if (event->version > w->events[i].event->version)
				w->events[i].event = event;
			return;
		}
	for (uint32_t r = 0; r < w->n_rows; r++)
		if (w->spec.config->rows[r].id == event->row)
			w->events[w->n_events++] = (struct world_event){.event = event, .row = r};
}

/* ---- (c) power <= budgets ---------------------------------------------------------------------------------------------- */

void ww_world_note_unsteady(ww_world *w)
{
	w->steady_us = ww_world_now(w);
}

bool ww_world_in_reach(const ww_world *w, uint32_t node)
{
	const struct world_agent *a = &w->agents[node];
	int64_t now_us = ww_world_now(w), most_us = REACH_PERIODS * w->spec.period_us;
	return a->brain && !a->cut && !a->off && a->heard_us >= now_us - most_us &&
	       (a->behind_us == WW_NEVER_US || a->behind_us >= now_us - most_us);
}

void ww_world_check_power(ww_world *w)
{
	int64_t now_us = ww_world_now(w), settle_us = w->spec.config->settle_us + SETTLE_MORE_US;
	bool reach = w->decided;
	for (uint32_t i = 0; reach && i < w->n_nodes; i++)
		reach = ww_world_in_reach(w, i);
	if (!reach)
		ww_world_note_unsteady(w);
	if (now_us - w->steady_us < settle_us)
		return;
	for (uint32_t r = 0; r < w->n_rows; r++) {
		const struct world_row *row = &w->rows[r];
		double power_w = ww_plant_row_w(w->plant, r, row->last.boundary);
		double budget_w = fmax(row->last.budget_w, row->budget_before_w);
		if (!above(power_w, budget_w) || now_us - settle_us <= row->missing_us)
			continue;
		w->account.worst_c_frac = fmax(w->account.worst_c_frac, power_w / budget_w - 1);
		breach(w, &w->account.broken_c, r, "(c) power above budget", (double[]){power_w, budget_w});
	}
}

/* ---- Foreign raises ---------------------------------------------------------------------------------------------------- */

void ww_world_note_foreign(ww_world *w, uint32_t gpu)
{
	struct world_gpu *g = &w->gpus[gpu];
	ww_world_note_unsteady(w);
	w->agents[g->node].n_foreign += g->foreign == FOREIGN_NONE;
	g->foreign = FOREIGN_WRITTEN;
}

void ww_world_note_limit_gone(ww_world *w, uint32_t gpu)
{
	struct world_gpu *g = &w->gpus[gpu];
	w->agents[g->node].n_foreign -= g->foreign != FOREIGN_NONE;
	g->foreign = FOREIGN_NONE;
}

void ww_world_note_read(ww_world *w, uint32_t node, uint32_t gpu)
{
	if (w->agents[node].n_foreign > 0 && w->gpus[gpu].foreign == FOREIGN_WRITTEN)
		w->gpus[gpu].foreign = FOREIGN_READ;
}

void ww_world_note_sent(ww_world *w, uint32_t node, const struct ww_envelope *from)
{
	const struct world_agent *a = &w->agents[node];
	for (uint32_t g = a->first_gpu; a->n_foreign && g < a->first_gpu + a->n_gpus; g++) {
		struct world_gpu *gpu = &w->gpus[g];
		if (gpu->foreign != FOREIGN_READ)
			continue;
		gpu->foreign = FOREIGN_SENT;
		gpu->start_id = from->start_id;
		gpu->seq = from->seq;
	}
}

void ww_world_note_heard(ww_world *w, uint32_t node, const struct ww_envelope *from)
{
	struct world_agent *a = &w->agents[node];
	if (w->charge < 0)
		return;
	a->heard_us = ww_world_now(w);
	for (uint32_t g = a->first_gpu; a->n_foreign && g < a->first_gpu + a->n_gpus; g++) {
		struct world_gpu *gpu = &w->gpus[g];
		if (gpu->foreign != FOREIGN_SENT || from->start_id < gpu->start_id ||
		    (from->start_id == gpu->start_id && from->seq < gpu->seq))
			continue;
		gpu->foreign = FOREIGN_TOLD;
		gpu->until_us = ww_world_now(w) + w->spec.period_us + WW_SECOND_US;
	}
}

/* The one before had time to store what it was told, and a store. */
static bool was_stored(const ww_world *w, const struct world_gpu *gpu)
{
	return gpu->foreign == FOREIGN_TOLD && w->left_us >= gpu->until_us &&
	       w->store_bad_until_us <= gpu->until_us - WW_SECOND_US;
}

/* A new one in charge has to be told again of what was not stored. */
void ww_world_note_take_over(ww_world *w)
{
	ww_world_note_unsteady(w);
	w->took_over_us = ww_world_now(w);
	for (uint32_t g = 0; g < w->n_gpus; g++)
		if (w->gpus[g].foreign && !was_stored(w, &w->gpus[g]))
			w->gpus[g].foreign = FOREIGN_WRITTEN;
}
