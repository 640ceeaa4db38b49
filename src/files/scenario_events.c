/* SPDX-License-Identifier: Apache-2.0 */
/* What happens: budgets that are announced, changed and cancelled, faults, and what people let control do. */
#include "files/scenario_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Events ------------------------------------------------------------------------------------------------------ */

/* Fields of an event; in a change those that are not given stay as they were. Times not given are -1. */
struct raw_event {
	const char *name;
	const char *row;
	int64_t at_us, start_us, end_us, for_us, ramp_down_us, ramp_up_us;
	double cut_frac, limit_w;
	uint32_t boundary, cls;
	bool cancel;
	const struct ww_yaml_node *changes;
};

#define EVENT_FIELDS                                                                                                   \
	{"row", WW_YAML_NAME, false, WW_FIELD(raw_event, row), 0, 0, NULL},                                            \
		{"end", WW_YAML_DURATION, false, WW_FIELD(raw_event, end_us), WW_ANY_TIME},                            \
		{"for", WW_YAML_DURATION, false, WW_FIELD(raw_event, for_us), WW_SOME_TIME},                           \
		{"cut", WW_YAML_PERCENT, false, WW_FIELD(raw_event, cut_frac), 0.001, 1, "must be 0.1% to 100%"},      \
		{"limit", WW_YAML_POWER, false, WW_FIELD(raw_event, limit_w), WW_SOME_POWER},                          \
		{"boundary", WW_YAML_WORD, false, WW_FIELD(raw_event, boundary), 0, 0, "write gpu, it or meter"},      \
		{"class", WW_YAML_WORD, false, WW_FIELD(raw_event, cls), 0, 0, "write contract or protection"},        \
		{"ramp_down", WW_YAML_DURATION, false, WW_FIELD(raw_event, ramp_down_us), WW_ANY_TIME},                \
	{                                                                                                              \
		"ramp_up", WW_YAML_DURATION, false, WW_FIELD(raw_event, ramp_up_us), WW_ANY_TIME                       \
	}

static const struct ww_yaml_field event_fields[] = {
	{"name", WW_YAML_NAME, true, WW_FIELD(raw_event, name), 0, 0, NULL},
	{"announce", WW_YAML_DURATION, false, WW_FIELD(raw_event, at_us), WW_ANY_TIME},
	{"start", WW_YAML_DURATION, true, WW_FIELD(raw_event, start_us), WW_ANY_TIME},
	EVENT_FIELDS,
	{"changes", WW_YAML_ITEMS, false, WW_FIELD(raw_event, changes), 0, 0, NULL},
};
static const struct ww_yaml_table event_table = {"event", "name", event_fields, WW_N_FIELDS(event_fields)};

static const struct ww_yaml_field change_fields[] = {
	{"at", WW_YAML_DURATION, true, WW_FIELD(raw_event, at_us), WW_ANY_TIME},
	{"start", WW_YAML_DURATION, false, WW_FIELD(raw_event, start_us), WW_ANY_TIME},
	EVENT_FIELDS,
	{"cancel", WW_YAML_YES, false, WW_FIELD(raw_event, cancel), 0, 0, NULL},
};
static const struct ww_yaml_table change_table = {"change", NULL, change_fields, WW_N_FIELDS(change_fields)};

static const struct raw_event nothing = {.at_us = -1,
                                         .start_us = -1,
                                         .end_us = -1,
                                         .for_us = -1,
                                         .ramp_down_us = -1,
                                         .ramp_up_us = -1,
                                         .cut_frac = NAN,
                                         .limit_w = NAN,
                                         .boundary = WW_NOT_GIVEN,
                                         .cls = WW_NOT_GIVEN};

static ww_status take_row(const struct ww_scenario_reader *r, const struct ww_yaml_node *map, const char *parent,
                          struct ww_scenario_event *event)
{
	char label[WW_YAML_LABEL_MAX + 16];
	snprintf(label, sizeof label, "%srow: ", parent);
	return ww_book_find(r, &r->rows, ww_scenario_value(map, "row"), label, &event->row);
}

/* The limit: one of watts and cut, and a cut needs a meter to cut from, at every boundary. */
static ww_status take_limit(const struct ww_scenario_reader *r, const struct ww_yaml_node *map, const char *label,
                            const struct raw_event *raw, struct ww_scenario_event *event)
{
	if (!isnan(raw->cut_frac) && !isnan(raw->limit_w))
		return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, ww_yaml_line(map, "limit"),
		                    "%slimit: cut is there as well; remove one of them", label);
	if (!isnan(raw->cut_frac) || !isnan(raw->limit_w)) {
		event->cut_frac = raw->cut_frac;
		event->limit_w = raw->limit_w;
	}
	if (isnan(event->cut_frac) && isnan(event->limit_w))
		return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, map->line,
		                    "%scut: is missing; write cut, like 30%%, or limit, like 50 kW", label);
	const struct ww_scenario_row *row = &r->s.rows[event->row];
	if (!isnan(event->cut_frac) && !row->has_meter)
		return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, ww_yaml_line(map, "cut"),
		                    "%scut: is one of what was measured, but row '%s' has no meter; write meter: yes "
		                    "there, or limit here",
		                    label, row->name);
	return WW_OK;
}

/* An event that begins after the scenario, or never reaches its limit, was not meant. */
static ww_status check_times(const struct ww_scenario_reader *r, const struct ww_yaml_node *map, const char *label,
                             const struct ww_scenario_event *event)
{
	if (event->end_us != WW_NEVER_US && event->ramp_down_us > event->end_us - event->start_us)
		return ww_yaml_fail(
			&r->yaml, WW_ERR_RANGE, ww_yaml_line(map, "ramp_down"),
			"%sramp_down: %.10g s is longer than the event, %.10g s; shorten it, or lengthen the event",
			label, (double)event->ramp_down_us / 1e6, (double)(event->end_us - event->start_us) / 1e6);
	return ww_scenario_within(r, map, label, "start", event->start_us);
}

static ww_status take_times(const struct ww_scenario_reader *r, const struct ww_yaml_node *map, const char *label,
                            const struct raw_event *raw, struct ww_scenario_event *event)
{
	ww_status status;
	if (raw->start_us >= 0)
		event->start_us = raw->start_us;
	struct ww_scenario_span span = {event->start_us, raw->end_us, raw->for_us, "end"};
	if (raw->end_us < 0 && raw->for_us < 0 && event->end_us != WW_NEVER_US)
		span.end_us = event->end_us;
	if ((status = ww_scenario_end(r, map, label, &span, &event->end_us)))
		return status;
	if (raw->ramp_down_us >= 0)
		event->ramp_down_us = raw->ramp_down_us;
	if (raw->ramp_up_us >= 0)
		event->ramp_up_us = raw->ramp_up_us;
	return check_times(r, map, label, event);
}

static ww_status take_fields(const struct ww_scenario_reader *r, const struct ww_yaml_node *map, const char *label,
                             const struct raw_event *raw, struct ww_scenario_event *event)
{
	ww_status status = raw->row ? take_row(r, map, label, event) : WW_OK;
	event->boundary = raw->boundary == WW_NOT_GIVEN ? event->boundary : (uint8_t)raw->boundary;
	event->cls = raw->cls == WW_NOT_GIVEN ? event->cls : (uint8_t)raw->cls;
	if (!status)
		status = take_limit(r, map, label, raw, event);
	return status ? status : take_times(r, map, label, raw, event);
}

static ww_status check_told(const struct ww_scenario_reader *r, const struct ww_yaml_node *map, const char *label,
                            const char *key, const struct ww_scenario_event *event)
{
	if (event->at_us < event->end_us)
		return ww_scenario_within(r, map, label, key, event->at_us);
	return ww_yaml_fail(&r->yaml, WW_ERR_RANGE, ww_yaml_line(map, key),
	                    "%s%s: %.10g s is not before the end of the event, %.10g s; correct one of them", label,
	                    key, (double)event->at_us / 1e6, (double)event->end_us / 1e6);
}

static ww_status add_event(struct ww_scenario_reader *r, const struct ww_scenario_event *event, const char *name)
{
	if (!ww_grow(r->s.events, r->s.n_events, 1))
		return ww_yaml_no_memory(&r->yaml);
	struct ww_scenario_event *out = &r->s.events[r->s.n_events++];
	*out = *event;
	out->name = ww_copy_text(name);
	return out->name ? WW_OK : ww_yaml_no_memory(&r->yaml);
}

static ww_status check_cancel(const struct ww_scenario_reader *r, const struct ww_yaml_node *map, const char *label,
                              const struct raw_event *raw)
{
	if (!raw->cancel || map->n == 2)
		return WW_OK;
	return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, ww_yaml_line(map, "cancel"),
	                    "%scancel: nothing else changes then; leave only at and cancel", label);
}

static ww_status add_change(struct ww_scenario_reader *r, const struct ww_yaml_node *map, const char *label)
{
	struct raw_event raw = nothing;
	struct ww_scenario_event event = r->s.events[r->s.n_events - 1];
	ww_status status = ww_yaml_read_map(&r->yaml, map, &change_table, label, &raw);
	if (status || (status = check_cancel(r, map, label, &raw)))
		return status;
	if (event.cancelled)
		return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, map->line,
		                    "%sthe event is cancelled already; remove one of the changes", label);
	if (raw.at_us <= event.at_us)
		return ww_yaml_fail(&r->yaml, WW_ERR_RANGE, ww_yaml_line(map, "at"),
		                    "%sat: is not after what was told before, at %.10g s; write the changes in their "
		                    "order",
		                    label, (double)event.at_us / 1e6);
	if (map->n == 1)
		return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, map->line,
		                    "%snothing changes; write what does, or cancel: yes", label);
	event.at_us = raw.at_us;
	event.line = map->line;
	event.version++;
	event.cancelled = raw.cancel;
	if ((status = take_fields(r, map, label, &raw, &event)) || (status = check_told(r, map, label, "at", &event)))
		return status;
	return add_event(r, &event, event.name);
}

static ww_status add_changes(struct ww_scenario_reader *r, const struct ww_yaml_node *list, const char *parent)
{
	char label[WW_YAML_LABEL_MAX];
	size_t number = 0;
	for (const struct ww_yaml_node *map = list->first; map; map = map->next) {
		ww_yaml_label(label, parent, &change_table, map, ++number);
		ww_status status = add_change(r, map, label);
		if (status)
			return status;
	}
	return WW_OK;
}

static uint32_t first_root(const struct ww_scenario_reader *r)
{
	uint32_t row = 0;
	while (r->feeds[row].n > 0)
		row++;
	return row;
}

static ww_status read_event(struct ww_scenario_reader *r, const struct ww_yaml_node *map, const char *label)
{
	struct raw_event raw = nothing;
	struct ww_scenario_event event = {.version = 1,
	                                  .row = first_root(r),
	                                  .boundary = WW_BOUNDARY_METER,
	                                  .cls = WW_CLASS_CONTRACT,
	                                  .end_us = WW_NEVER_US,
	                                  .limit_w = NAN,
	                                  .cut_frac = NAN,
	                                  .line = map->line};
	ww_status status = ww_yaml_read_map(&r->yaml, map, &event_table, label, &raw);
	if (status || (status = take_fields(r, map, label, &raw, &event)))
		return status;
	event.at_us = raw.at_us >= 0 ? raw.at_us : event.start_us;
	if (event.at_us == 0 && !isnan(event.cut_frac))
		return ww_yaml_fail(
			&r->yaml, WW_ERR_RANGE, ww_yaml_line(map, "cut"),
			"%scut: is told at 0 s, when nothing is measured yet; announce it later, or write limit",
			label);
	if ((status = check_told(r, map, label, raw.at_us >= 0 ? "announce" : "start", &event)))
		return status;
	char *name = NULL;
	status = ww_scenario_name(r, map, label, 0, &name);
	if (!status)
		status = ww_book_add(r, &r->events, raw.name, ww_yaml_line(map, "name"), label);
	if (!status)
		status = add_event(r, &event, name);
	free(name);
	if (status || !raw.changes)
		return status;
	return add_changes(r, raw.changes, label);
}

ww_status ww_scenario_events(struct ww_scenario_reader *r, const struct ww_yaml_node *list)
{
	char label[WW_YAML_LABEL_MAX];
	size_t number = 0;
	for (const struct ww_yaml_node *map = list->first; map; map = map->next) {
		ww_yaml_label(label, "", &event_table, map, ++number);
		ww_status status = read_event(r, map, label);
		if (status)
			return status;
	}
	return WW_OK;
}

/* ---- Faults ------------------------------------------------------------------------------------------------------ */

struct raw_fault {
	int64_t at_us, until_us, for_us, by_us;
	uint32_t what, gpu;
	const char *node, *row;
	double limit_w;
};

static const struct ww_yaml_field fault_fields[] = {
	{"at", WW_YAML_DURATION, true, WW_FIELD(raw_fault, at_us), WW_ANY_TIME},
	{"what", WW_YAML_WORD, true, WW_FIELD(raw_fault, what), 0, 0,
         "write agent-crash, reboot, controller-crash, controller-zombie, foreign, cut, meter, journal, dead, hung-gpu "
         "or meter-late"},
	{"until", WW_YAML_DURATION, false, WW_FIELD(raw_fault, until_us), WW_ANY_TIME},
	{"for", WW_YAML_DURATION, false, WW_FIELD(raw_fault, for_us), WW_SOME_TIME},
	{"node", WW_YAML_NAME, false, WW_FIELD(raw_fault, node), 0, 0, NULL},
	{"gpu", WW_YAML_COUNT, false, WW_FIELD(raw_fault, gpu), 0, WW_NODE_GPUS_MAX - 1, "must be 0 to 15"},
	{"row", WW_YAML_NAME, false, WW_FIELD(raw_fault, row), 0, 0, NULL},
	{"limit", WW_YAML_POWER, false, WW_FIELD(raw_fault, limit_w), WW_GPU_POWER},
	{"by", WW_YAML_DURATION, false, WW_FIELD(raw_fault, by_us), 1, WW_SCENARIO_LATE_MAX_S, "must be 1 s to 60 s"},
};
static const struct ww_yaml_table fault_table = {"fault", NULL, fault_fields, WW_N_FIELDS(fault_fields)};

/* Keys that a fault must have; the others of these six it may not have. */
enum { HAS_END = 1, HAS_NODE = 2, HAS_GPU = 4, HAS_ROW = 8, HAS_LIMIT = 16, HAS_BY = 32 };
static const unsigned keys_of[WW_N_SCENARIO_FAULTS] = {
	[WW_SCENARIO_AGENT_CRASH] = HAS_END | HAS_NODE,
	[WW_SCENARIO_REBOOT] = HAS_END | HAS_NODE,
	[WW_SCENARIO_CONTROLLER_CRASH] = HAS_END,
	[WW_SCENARIO_CONTROLLER_ZOMBIE] = HAS_END,
	[WW_SCENARIO_FOREIGN] = HAS_NODE | HAS_GPU | HAS_LIMIT,
	[WW_SCENARIO_CUT] = HAS_END | HAS_NODE,
	[WW_SCENARIO_METER] = HAS_END | HAS_ROW,
	[WW_SCENARIO_JOURNAL] = HAS_END | HAS_NODE,
	[WW_SCENARIO_DEAD] = HAS_NODE,
	[WW_SCENARIO_HUNG_GPU] = HAS_END | HAS_NODE | HAS_GPU,
	[WW_SCENARIO_METER_LATE] = HAS_END | HAS_ROW | HAS_BY,
};

static ww_status check_keys(const struct ww_scenario_reader *r, const struct ww_yaml_node *map, const char *label,
                            const struct raw_fault *raw)
{
	static const char *const names[] = {"for", "node", "gpu", "row", "limit", "by"};
	const char *what = ww_scenario_value(map, "what")->text;
	bool has_end = raw->until_us >= 0 || raw->for_us >= 0;
	unsigned given = (has_end ? HAS_END : 0) | (raw->node ? HAS_NODE : 0) |
	                 (raw->gpu != WW_NOT_GIVEN ? HAS_GPU : 0) | (raw->row ? HAS_ROW : 0) |
	                 (isnan(raw->limit_w) ? 0 : HAS_LIMIT) | (raw->by_us < 0 ? 0 : HAS_BY);
	for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
		bool wanted = (keys_of[raw->what] & (1u << i)) != 0, is_there = (given & (1u << i)) != 0;
		const char *name = i == 0 && is_there && raw->for_us < 0 ? "until" : names[i];
		if (wanted && !is_there)
			return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, map->line, "%s%s: is missing; %s needs it%s",
			                    label, name, what, i == 0 ? ", or until" : "");
		if (!wanted && is_there)
			return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, ww_yaml_line(map, name),
			                    "%s%s: does not belong to %s; remove it", label, name, what);
	}
	return WW_OK;
}

static ww_status take_target(const struct ww_scenario_reader *r, const struct ww_yaml_node *map, const char *parent,
                             const struct raw_fault *raw, struct ww_scenario_fault *fault)
{
	char label[WW_YAML_LABEL_MAX + 16];
	const struct ww_yaml_node *name = ww_scenario_value(map, raw->row ? "row" : "node");
	if (!name)
		return WW_OK;
	snprintf(label, sizeof label, "%s%s: ", parent, name->key);
	ww_status status = ww_book_find(r, raw->row ? &r->rows : &r->nodes, name, label, &fault->node);
	if (status)
		return status;
	if (raw->row && !r->s.rows[fault->node].has_meter)
		return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, name->line,
		                    "%s'%s' has no meter; write meter: yes there, or name another row", label,
		                    raw->row);
	if (raw->gpu != WW_NOT_GIVEN && raw->gpu >= r->s.nodes[fault->node].gpus)
		return ww_yaml_fail(&r->yaml, WW_ERR_RANGE, ww_yaml_line(map, "gpu"),
		                    "%sgpu: '%s' has %u GPUs, numbered from 0; write a lower one", parent, raw->node,
		                    r->s.nodes[fault->node].gpus);
	return WW_OK;
}

static ww_status check_sizes(const struct ww_scenario_reader *r, const struct ww_yaml_node *map, const char *label,
                             const struct ww_scenario_fault *fault)
{
	const struct ww_scenario_gpu *g = &r->s.gpu;
	if (fault->value_w < g->min_w || fault->value_w > g->max_w)
		return ww_yaml_fail(&r->yaml, WW_ERR_RANGE, ww_yaml_line(map, "limit"),
		                    "%slimit: %.10g W is not within min and max of gpu, %.10g W to %.10g W; correct it",
		                    label, fault->value_w, g->min_w, g->max_w);
	if (fault->kind != WW_SCENARIO_REBOOT || fault->until_us - fault->at_us >= r->s.nodes[fault->node].boot_us)
		return WW_OK;
	const char *key = ww_scenario_value(map, "for") ? "for" : "until";
	return ww_yaml_fail(&r->yaml, WW_ERR_RANGE, ww_yaml_line(map, key),
	                    "%s%s: the node is back before its shortest boot, %.10g s; lengthen it, or shorten boot of "
	                    "the node",
	                    label, key, (double)r->s.nodes[fault->node].boot_us / 1e6);
}

static ww_status read_fault(struct ww_scenario_reader *r, const struct ww_yaml_node *map, const char *label,
                            struct ww_scenario_fault *fault)
{
	struct raw_fault raw = {.until_us = -1, .for_us = -1, .by_us = -1, .gpu = WW_NOT_GIVEN, .limit_w = NAN};
	ww_status status = ww_yaml_read_map(&r->yaml, map, &fault_table, label, &raw);
	if (status || (status = check_keys(r, map, label, &raw)))
		return status;
	struct ww_scenario_span span = {raw.at_us, raw.until_us, raw.for_us, "until"};
	*fault = (struct ww_scenario_fault){.kind = raw.what,
	                                    .at_us = raw.at_us,
	                                    .until_us = raw.what == WW_SCENARIO_DEAD ? WW_NEVER_US : raw.at_us,
	                                    .by_us = raw.by_us,
	                                    .gpu = raw.gpu == WW_NOT_GIVEN ? 0 : raw.gpu,
	                                    .value_w = raw.limit_w,
	                                    .line = map->line};
	if ((status = ww_scenario_within(r, map, label, "at", raw.at_us)))
		return status;
	if ((keys_of[raw.what] & HAS_END) && (status = ww_scenario_end(r, map, label, &span, &fault->until_us)))
		return status;
	if ((status = take_target(r, map, label, &raw, fault)))
		return status;
	return check_sizes(r, map, label, fault);
}

/* Faults of one group on one target may not overlap: what stands still cannot stop. */
static int group_of(enum ww_scenario_fault_kind kind)
{
	if (kind == WW_SCENARIO_REBOOT || kind == WW_SCENARIO_DEAD)
		return WW_SCENARIO_AGENT_CRASH;
	return kind == WW_SCENARIO_CONTROLLER_ZOMBIE ? WW_SCENARIO_CONTROLLER_CRASH : (int)kind;
}

static ww_status check_overlap(const struct ww_scenario_reader *r, const struct ww_scenario_fault *fault,
                               const char *label)
{
	for (size_t i = 0; i < r->s.n_faults; i++) {
		const struct ww_scenario_fault *other = &r->s.faults[i];
		if (group_of(other->kind) == group_of(fault->kind) && other->node == fault->node &&
		    other->gpu == fault->gpu && other->at_us < fault->until_us && fault->at_us < other->until_us)
			return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, fault->line,
			                    "%soverlaps the fault on line %zu; let one end before the other begins",
			                    label, other->line);
	}
	return WW_OK;
}

static int by_time(const void *a, const void *b)
{
	const struct ww_scenario_fault *x = a, *y = b;
	return x->at_us != y->at_us ? (x->at_us > y->at_us ? 1 : -1) : (x->line > y->line) - (x->line < y->line);
}

ww_status ww_scenario_faults(struct ww_scenario_reader *r, const struct ww_yaml_node *list)
{
	char label[WW_YAML_LABEL_MAX];
	size_t number = 0;
	if (list->n > WW_SCENARIO_FAULTS_MAX)
		return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, list->line, "faults: more than %d faults; leave some out",
		                    WW_SCENARIO_FAULTS_MAX);
	r->s.faults = calloc(list->n, sizeof *r->s.faults);
	if (!r->s.faults)
		return ww_yaml_no_memory(&r->yaml);
	for (const struct ww_yaml_node *map = list->first; map; map = map->next) {
		struct ww_scenario_fault *fault = &r->s.faults[r->s.n_faults];
		ww_yaml_label(label, "", &fault_table, map, ++number);
		ww_status status = read_fault(r, map, label, fault);
		if (status || (status = check_overlap(r, fault, label)))
			return status;
		r->s.n_faults++;
	}
	qsort(r->s.faults, r->s.n_faults, sizeof *r->s.faults, by_time);
	return WW_OK;
}

/* ---- Modes ------------------------------------------------------------------------------------------------------- */

struct raw_mode {
	int64_t at_us;
	uint32_t mode;
};

static const struct ww_yaml_field mode_fields[] = {
	{"at", WW_YAML_DURATION, true, WW_FIELD(raw_mode, at_us), WW_ANY_TIME},
	{"mode", WW_YAML_WORD, true, WW_FIELD(raw_mode, mode), 0, 0, "write enforce, freeze or disengage"},
};
static const struct ww_yaml_table mode_table = {"mode", NULL, mode_fields, WW_N_FIELDS(mode_fields)};

ww_status ww_scenario_modes(struct ww_scenario_reader *r, const struct ww_yaml_node *list)
{
	char label[WW_YAML_LABEL_MAX];
	size_t number = 0;
	for (const struct ww_yaml_node *map = list->first; map; map = map->next) {
		struct raw_mode raw = {0};
		ww_yaml_label(label, "", &mode_table, map, ++number);
		ww_status status = ww_yaml_read_map(&r->yaml, map, &mode_table, label, &raw);
		if (status || (status = ww_scenario_within(r, map, label, "at", raw.at_us)))
			return status;
		if (r->s.n_modes > 0 && raw.at_us <= r->s.modes[r->s.n_modes - 1].at_us)
			return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, ww_yaml_line(map, "at"),
			                    "%sat: is not after the mode before it; write modes in the order of time",
			                    label);
		if (!ww_grow(r->s.modes, r->s.n_modes, 1))
			return ww_yaml_no_memory(&r->yaml);
		r->s.modes[r->s.n_modes++] = (struct ww_scenario_mode){raw.at_us, (uint8_t)raw.mode};
	}
	return WW_OK;
}
