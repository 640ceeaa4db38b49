/* SPDX-License-Identifier: Apache-2.0 */
/* A world's clock, its scripts of faults and announcements, its wire and meters; and how it begins and ends. */
#include "cli/world_parts_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define METER_AFTER_US 100000
#define DEAD_UNTIL_US (WW_NEVER_US / 2)
#define SECOND_ENDS_US 300000 /* by then every edge has done what follows from it */

enum { ITEM_BEGIN, ITEM_END, ITEM_EVENT, ITEM_MODE, ITEM_JOB, ITEM_JOB_END };

int64_t ww_world_now(const ww_world *w)
{
	return w->clock.now.mono_us;
}

void ww_world_fail(ww_world *w, ww_status status, const struct ww_error *err)
{
	if (w->status)
		return;
	w->status = status;
	w->driver.n = 0; /* nothing more happens */
	if (err)
		w->err = *err;
	else
		ww_fail(&w->err, status, status == WW_ERR_NOMEM ? "out of memory" : "the simulated world broke");
}

void ww_world_trace(const ww_world *w, const char *format, ...)
{
	char line[512];
	int n = snprintf(line, sizeof line, "%10.3f  ", (double)ww_world_now(w) / 1e6);
	va_list args;
	va_start(args, format);
	vsnprintf(line + n, sizeof line - (size_t)n, format, args);
	va_end(args);
	w->spec.trace(w->spec.trace_ctx, line);
}

static int order_ids(const void *a, const void *b)
{
	const struct world_id *x = a, *y = b;
	return (x->id > y->id) - (x->id < y->id);
}

uint32_t ww_world_find_node(const ww_world *w, uint64_t id)
{
	struct world_id key = {.id = id};
	const struct world_id *found = bsearch(&key, w->ids, w->n_nodes, sizeof key, order_ids);
	return found ? found->index : w->n_nodes;
}

/* ---- Plant, wire and meters ------------------------------------------------------------------------------------------- */

static int64_t plant_due(void *world)
{
	return ww_plant_time_us(((ww_world *)world)->plant) + WW_SECOND_US;
}

static void plant_run(void *world, struct ww_now now)
{
	ww_world *w = world;
	(void)now;
	ww_plant_second(w->plant);
	w->account.seconds++;
	ww_world_check_power(w);
}

static int64_t wire_due(void *world)
{
	return ww_wire_due_us(((ww_world *)world)->wire);
}

static void hear(ww_world *w, const struct ww_wire_message *m)
{
	struct ww_input input = {.kind = WW_INPUT_SAMPLE, .u.sample = m->u.sample};
	const struct ww_envelope *from = &m->u.sample->from;
	if (m->kind == WW_WIRE_ACK) {
		input = (struct ww_input){.kind = WW_INPUT_ACK, .u.ack = m->u.ack};
		from = &m->u.ack->from;
	} else if (m->kind == WW_WIRE_HELLO) {
		input = (struct ww_input){.kind = WW_INPUT_HELLO, .u.hello = m->u.hello};
		from = &m->u.hello->from;
	}
	ww_world_note_heard(w, m->node, from);
	ww_world_hear(w, &input);
}

static void wire_run(void *world, struct ww_now now)
{
	ww_world *w = world;
	struct ww_wire_message m;
	while (!w->status && ww_wire_receive(w->wire, now.mono_us, &m)) {
		if (m.kind == WW_WIRE_COMMAND)
			ww_world_agent_take(w, m.node, m.u.command);
		else
			hear(w, &m);
	}
}

static int64_t meters_due(void *world)
{
	return ((ww_world *)world)->meter_us;
}

static void read_meter(ww_world *w, uint32_t r, int64_t now_us)
{
	const struct ww_row *row = &w->spec.config->rows[r];
	struct world_meter *m = &w->meters[r];
	uint32_t late_s = now_us < m->late_until_us ? m->late_s : 0;
	m->power_w[m->n++ % WORLD_METER_KEPT] = row->meter_boundary == WW_BOUNDARY_METER
	                                                ? ww_plant_meter_w(w->plant, r)
	                                                : ww_plant_row_w(w->plant, r, row->meter_boundary);
	if (now_us < m->bad_until_us || late_s >= m->n)
		return;
	struct ww_meter meter = {.row = row->id,
	                         .power_w = {.value = (float)m->power_w[(m->n - 1 - late_s) % WORLD_METER_KEPT],
	                                     .age_ms = (uint16_t)(METER_AFTER_US / 1000 + 1000 * late_s)}};
	ww_world_hear(w, &(struct ww_input){.kind = WW_INPUT_METER, .u.meter = &meter});
}

static void meters_run(void *world, struct ww_now now)
{
	ww_world *w = world;
	w->meter_us += WW_SECOND_US;
	for (uint32_t r = 0; r < w->n_rows && !w->status; r++)
		if (w->spec.config->rows[r].has_meter)
			read_meter(w, r, now.mono_us);
}

/* ---- Scripts ---------------------------------------------------------------------------------------------------------- */

static void later(int64_t *until_us, int64_t us)
{
	*until_us = us > *until_us ? us : *until_us;
}

static void write_foreign(ww_world *w, const struct ww_fault *f)
{
	uint32_t gpu = w->agents[f->node].first_gpu + f->gpu;
	double before_w = ww_plant_enforced_w(w->plant, gpu);
	if (ww_world_now(w) < w->gpus[gpu].hung_until_us || !ww_plant_write(w->plant, gpu, f->value_w, ww_world_now(w)))
		return;
	/* 0: its machine comes up in this second, and the limit with it. */
	double after_w = ww_plant_enforced_w(w->plant, gpu);
	if (after_w > before_w || after_w == 0)
		ww_world_note_foreign(w, gpu);
}

static void begin_fault(ww_world *w, const struct ww_fault *f)
{
	switch (f->kind) {
	case WW_FAULT_AGENT_CRASH:
		ww_world_agent_stop(w, f->node, f->until_us);
		break;
	case WW_FAULT_REBOOT:
		ww_world_machine_off(w, f->node, f->until_us);
		break;
	case WW_FAULT_CONTROLLER_CRASH:
		ww_world_control_crash(w);
		break;
	case WW_FAULT_CONTROLLER_ZOMBIE:
		ww_world_zombie(w, f->until_us);
		break;
	case WW_FAULT_FOREIGN:
		write_foreign(w, f);
		break;
	case WW_FAULT_CUT:
		later(&w->agents[f->node].cut_until_us, f->until_us);
		w->agents[f->node].cut = true;
		ww_wire_cut(w->wire, f->node, true);
		break;
	case WW_FAULT_STORE:
		later(&w->store_bad_until_us, f->until_us);
		break;
	case WW_FAULT_METER:
		later(&w->meters[f->node].bad_until_us, f->until_us);
		break;
	case WW_FAULT_METER_LATE:
		later(&w->meters[f->node].late_until_us, f->until_us);
		w->meters[f->node].late_s = f->late_s;
		break;
	case WW_FAULT_PUT_BACK:
		ww_world_put_back(w, f->node);
		break;
	case WW_FAULT_DEAD:
		ww_world_machine_off(w, f->node, DEAD_UNTIL_US);
		break;
	case WW_FAULT_HUNG_GPU:
		later(&w->gpus[w->agents[f->node].first_gpu + f->gpu].hung_until_us, f->until_us);
		break;
	case WW_FAULT_JOURNAL:
		later(&w->agents[f->node].journal_bad_until_us, f->until_us);
		break;
	case WW_N_FAULT_KINDS:
		break;
	}
}

static void end_fault(ww_world *w, const struct ww_fault *f)
{
	struct world_agent *a = &w->agents[f->node];
	bool crashed = f->kind == WW_FAULT_CONTROLLER_CRASH && w->charge < 0;
	if (crashed || (f->kind == WW_FAULT_STORE && w->take_over_waits)) {
		ww_world_take_over(w);
	} else if (f->kind == WW_FAULT_REBOOT) {
		ww_world_machine_on(w, f->node);
	} else if (f->kind == WW_FAULT_CONTROLLER_ZOMBIE) {
		ww_world_zombies_end(w);
	} else if (f->kind == WW_FAULT_CUT && ww_world_now(w) >= a->cut_until_us) {
		a->cut = false;
		ww_wire_cut(w->wire, f->node, false);
	}
}

bool ww_fault_is_of_row(enum ww_fault_kind kind)
{
	return kind == WW_FAULT_METER || kind == WW_FAULT_METER_LATE;
}

static const char *fault_name(enum ww_fault_kind kind)
{
	static const char *const names[WW_N_FAULT_KINDS] = {
		"agent crash",   "reboot",   "controller crash", "zombie",
		"foreign limit", "cut",      "meter silent",     "journal cannot be stored",
		"dead",          "hung GPU", "meter late",       "store takes nothing",
		"put back",
	};
	return names[kind];
}

static int64_t faults_due(void *world)
{
	const struct world_script *s = &((ww_world *)world)->faults;
	return s->next < s->n ? s->items[s->next].at_us : WW_NEVER_US;
}

static void faults_run(void *world, struct ww_now now)
{
	ww_world *w = world;
	const struct world_item *item = &w->faults.items[w->faults.next++];
	const struct ww_fault *f = &w->spec.faults[item->index];
	(void)now;
	if (w->spec.trace)
		ww_world_trace(w, "%s: %s, node or row %u, gpu %u, %.1f W", item->what == ITEM_END ? "over" : "fault",
		               fault_name(f->kind), f->node, f->gpu, f->value_w);
	if (item->what == ITEM_END)
		end_fault(w, f);
	else
		begin_fault(w, f);
}

/* What people and the scheduler say waits until somebody is in charge who can store it. */
static int64_t tells_due(void *world)
{
	const ww_world *w = world;
	const struct world_script *s = &w->tells;
	bool heard = w->charge >= 0 && ww_world_now(w) >= w->store_bad_until_us;
	return s->next < s->n && heard ? s->items[s->next].at_us : WW_NEVER_US;
}

static void tell_event(ww_world *w, const struct ww_event *event)
{
	if (w->spec.trace)
		ww_world_trace(
			w, "event %llu version %u%s: row %llx, %.1f W or %.2f, %.1f to %.1f s, ramps %.1f %.1f s",
			(unsigned long long)event->id, event->version, event->cancelled ? " cancelled" : "",
			(unsigned long long)event->row, event->limit_w, event->cut_frac,
			(double)(event->start_us - w->spec.wall_start_us) / 1e6,
			event->end_us == WW_NEVER_US ? 0.0 : (double)(event->end_us - w->spec.wall_start_us) / 1e6,
			(double)event->ramp_down_us / 1e6, (double)event->ramp_up_us / 1e6);
	if (ww_world_tell(w, &(struct ww_input){.kind = WW_INPUT_EVENT, .u.event = event}))
		ww_world_note_event(w, event);
}

static void tell_mode(ww_world *w, enum ww_mode mode)
{
	if (w->spec.trace)
		ww_world_trace(w, "mode: %s", ww_mode_name(mode));
	ww_world_note_unsteady(w);
	if (ww_world_tell(w, &(struct ww_input){.kind = WW_INPUT_MODE, .u.mode = mode}))
		w->mode = mode;
}

static void tells_run(void *world, struct ww_now now)
{
	ww_world *w = world;
	const struct world_item *item = &w->tells.items[w->tells.next++];
	(void)now;
	if (item->what == ITEM_EVENT) {
		tell_event(w, &w->spec.announcements[item->index].event);
		return;
	}
	if (item->what == ITEM_MODE) {
		tell_mode(w, w->spec.modes[item->index].mode);
		return;
	}
	const struct ww_job *job = &w->spec.jobs[item->index];
	if (w->spec.trace)
		ww_world_trace(w, "job %llu %s", (unsigned long long)job->id,
		               item->what == ITEM_JOB ? "starts" : "ends");
	ww_world_note_unsteady(w);
	if (item->what == ITEM_JOB_END) {
		w->ended = *job;
		w->ended.n_places = 0;
		job = &w->ended;
	}
	ww_world_tell(w, &(struct ww_input){.kind = WW_INPUT_JOB, .u.job = job});
}

static void add_item(struct world_script *s, int64_t at_us, int what, size_t index)
{
	s->items[s->n] = (struct world_item){
		.at_us = at_us, .order = (uint32_t)s->n, .index = (uint32_t)index, .what = (uint8_t)what};
	s->n++;
}

static int order_items(const void *a, const void *b)
{
	const struct world_item *x = a, *y = b;
	if (x->at_us != y->at_us)
		return x->at_us < y->at_us ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

static ww_status write_scripts(ww_world *w, struct ww_error *err)
{
	const struct ww_plant_spec *plant = w->spec.plant;
	w->faults.items = calloc(2 * w->spec.n_faults + 1, sizeof *w->faults.items);
	size_t n_tells = w->spec.n_announcements + w->spec.n_modes + 2 * (size_t)plant->n_jobs;
	w->tells.items = calloc(n_tells + 1, sizeof *w->tells.items);
	if (!w->faults.items || !w->tells.items)
		return ww_fail(err, WW_ERR_NOMEM, "out of memory");
	for (size_t i = 0; i < w->spec.n_faults; i++) {
		add_item(&w->faults, w->spec.faults[i].at_us, ITEM_BEGIN, i);
		enum ww_fault_kind kind = w->spec.faults[i].kind;
		if (kind != WW_FAULT_FOREIGN && kind != WW_FAULT_DEAD && kind != WW_FAULT_PUT_BACK)
			add_item(&w->faults, w->spec.faults[i].until_us, ITEM_END, i);
	}
	/* At the same time ends come first: a GPU carries one job. */
	for (size_t i = 0; i < plant->n_jobs; i++)
		if (plant->jobs[i].end_us != WW_NEVER_US)
			add_item(&w->tells, plant->jobs[i].end_us, ITEM_JOB_END, i);
	for (size_t i = 0; i < plant->n_jobs; i++)
		add_item(&w->tells, plant->jobs[i].start_us, ITEM_JOB, i);
	for (size_t i = 0; i < w->spec.n_announcements; i++)
		add_item(&w->tells, w->spec.announcements[i].at_us, ITEM_EVENT, i);
	for (size_t i = 0; i < w->spec.n_modes; i++)
		add_item(&w->tells, w->spec.modes[i].at_us, ITEM_MODE, i);
	qsort(w->faults.items, w->faults.n, sizeof *w->faults.items, order_items);
	qsort(w->tells.items, w->tells.n, sizeof *w->tells.items, order_items);
	return WW_OK;
}

/* ---- Beginning and end -------------------------------------------------------------------------------------------------- */

static ww_status check_spec(const struct ww_world_spec *spec, struct ww_error *err)
{
	const struct ww_config *config = spec->config;
	if (config->n_nodes != spec->plant->n_nodes || config->n_rows != spec->plant->n_rows)
		return ww_fail(err, WW_ERR_INVALID,
		               "plant and configuration differ in nodes or rows: give both the same");
	if (spec->period_us <= 0 || spec->period_us % WW_SECOND_US)
		return ww_fail(err, WW_ERR_RANGE, "the period of samples is not whole seconds: give 1 s or more");
	for (uint32_t i = 0; i < config->n_nodes; i++)
		if (config->nodes[i].n_gpus != spec->plant->nodes[i].n_gpus)
			return ww_fail(err, WW_ERR_INVALID,
			               "node %u: plant and configuration differ in GPUs: give both the same", i);
	for (size_t i = 0; i < spec->n_faults; i++) {
		const struct ww_fault *f = &spec->faults[i];
		bool of_gpu = f->kind == WW_FAULT_FOREIGN || f->kind == WW_FAULT_HUNG_GPU;
		uint32_t most = ww_fault_is_of_row(f->kind) ? config->n_rows : config->n_nodes;
		if (f->node >= most || (of_gpu && f->gpu >= config->nodes[f->node].n_gpus))
			return ww_fail(err, WW_ERR_NOT_FOUND, "fault %zu: there is no such node, row or GPU", i);
		if (f->late_s > WW_METER_LATE_S)
			return ww_fail(err, WW_ERR_RANGE, "fault %zu: a meter is at most %d s late", i,
			               WW_METER_LATE_S);
	}
	return WW_OK;
}

static ww_status furnish(ww_world *w, struct ww_error *err)
{
	ww_status status = ww_plant_create(w->spec.plant, &w->plant, err);
	if (!status)
		status = ww_wire_create(w->n_nodes, &w->spec.wire, w->spec.seed + 2, &w->wire, err);
	if (!status)
		status = ww_world_agents_init(w, err);
	if (!status)
		status = write_scripts(w, err);
	if (status)
		return status;
	w->ids = calloc(w->n_nodes + 1, sizeof *w->ids);
	w->rows = calloc(w->n_rows + 1, sizeof *w->rows);
	w->events = calloc(w->spec.n_announcements + 1, sizeof *w->events);
	w->meters = calloc(w->n_rows + 1, sizeof *w->meters);
	if (!w->ids || !w->rows || !w->events || !w->meters)
		return ww_fail(err, WW_ERR_NOMEM, "out of memory");
	for (uint32_t i = 0; i < w->n_nodes; i++)
		w->ids[i] = (struct world_id){w->spec.config->nodes[i].id, i};
	qsort(w->ids, w->n_nodes, sizeof *w->ids, order_ids);
	for (uint32_t r = 0; r < w->n_rows; r++)
		w->rows[r].missing_us = -WW_NEVER_US;
	return WW_OK;
}

static void wind_up(ww_world *w)
{
	const struct ww_source sources[WORLD_SOURCES] = {
		{.due_us = plant_due, .dispatch = plant_run, .ctx = w},
		{.due_us = faults_due, .dispatch = faults_run, .ctx = w},
		{.due_us = tells_due, .dispatch = tells_run, .ctx = w},
		{.due_us = ww_world_agents_due, .dispatch = ww_world_agents_run, .ctx = w},
		{.due_us = wire_due, .dispatch = wire_run, .ctx = w},
		{.due_us = meters_due, .dispatch = meters_run, .ctx = w},
		{.due_us = ww_world_controls_due, .dispatch = ww_world_controls_run, .ctx = w},
	};
	for (int i = 0; i < WORLD_SOURCES; i++)
		w->sources[i] = sources[i];
	w->driver = (struct ww_driver){.clock = &w->clock, .sources = w->sources, .n = WORLD_SOURCES};
	w->meter_us = WW_SECOND_US + METER_AFTER_US;
	w->clock.now = (struct ww_now){.mono_us = 0, .wall_us = w->spec.wall_start_us};
}

ww_status ww_world_create(const struct ww_world_spec *spec, ww_world **out, struct ww_error *err)
{
	ww_status status = check_spec(spec, err);
	if (status)
		return status;
	ww_world *w = calloc(1, sizeof *w);
	if (!w)
		return ww_fail(err, WW_ERR_NOMEM, "out of memory");
	w->spec = *spec;
	w->n_nodes = spec->config->n_nodes;
	w->n_rows = spec->config->n_rows;
	w->charge = -1;
	wind_up(w);
	status = furnish(w, err);
	if (!status) {
		ww_world_take_over(w);
		status = w->status;
		if (status && err)
			*err = w->err;
	}
	if (status) {
		ww_world_destroy(w);
		return status;
	}
	*out = w;
	return WW_OK;
}

void ww_world_destroy(ww_world *w)
{
	if (!w)
		return;
	ww_world_controls_finish(w);
	ww_world_agents_finish(w);
	ww_wire_destroy(w->wire);
	ww_plant_destroy(w->plant);
	free(w->faults.items);
	free(w->tells.items);
	free(w->ids);
	free(w->gpus);
	free(w->rows);
	free(w->events);
	free(w->meters);
	free(w);
}

ww_status ww_world_second(ww_world *w, struct ww_world_second *out, struct ww_error *err)
{
	int64_t end_us = ww_plant_time_us(w->plant) + WW_SECOND_US;
	if (!w->status)
		ww_driver_run(&w->driver, end_us + SECOND_ENDS_US);
	if (w->status) {
		if (err)
			*err = w->err;
		return w->status;
	}
	if (out)
		*out = (struct ww_world_second){.at_us = end_us, .decision = w->decision, .plant = w->plant};
	return WW_OK;
}

const struct ww_world_alarm *ww_world_alarms(const ww_world *w, size_t *n)
{
	*n = w->n_alarms;
	return w->alarms;
}

struct ww_world_account ww_world_account(const ww_world *w)
{
	struct ww_world_account account = w->account;
	account.wire = ww_wire_counts(w->wire);
	return account;
}
