/* SPDX-License-Identifier: Apache-2.0 */
/* The whole of a scenario: its own keys, and its parts in an order in which each finds what it names. */
#include "files/scenario_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- What the file may hold -------------------------------------------------------------------------------------- */

struct raw_file {
	const char *name;
	uint32_t seed, objective, after, trim, lowered;
	int64_t duration_us, period_us, lease_us, settle_us;
	double guard_frac;
	const struct ww_yaml_node *gpu, *rows, *nodes, *jobs, *curves, *events, *wire, *faults, *modes;
};

static const struct ww_yaml_field file_fields[] = {
	{"name", WW_YAML_NAME, true, WW_FIELD(raw_file, name), 0, 0, NULL},
	{"seed", WW_YAML_COUNT, false, WW_FIELD(raw_file, seed), 0, 0x1p31, "must be 0 or more"},
	{"duration", WW_YAML_DURATION, true, WW_FIELD(raw_file, duration_us), WW_SOME_TIME},
	{"period", WW_YAML_DURATION, false, WW_FIELD(raw_file, period_us), 1, 60, "must be 1 s to 60 s"},
	{"objective", WW_YAML_WORD, false, WW_FIELD(raw_file, objective), 0, 0,
         "write relative, tokens, log or maxmin"},
	{"lease", WW_YAML_DURATION, false, WW_FIELD(raw_file, lease_us), 3, 86400, "must be 3 s to 24 h"},
	{"after", WW_YAML_WORD, false, WW_FIELD(raw_file, after), 0, 0, "write hold, failcap or restore"},
	{"settle", WW_YAML_DURATION, false, WW_FIELD(raw_file, settle_us), 0, 60, "must be 0 s to 60 s"},
	{"trim", WW_YAML_WORD, false, WW_FIELD(raw_file, trim), 0, 0, "write on or off"},
	{"lowered", WW_YAML_WORD, false, WW_FIELD(raw_file, lowered), 0, 0, "write respect or reassert"},
	{"guard", WW_YAML_PERCENT, false, WW_FIELD(raw_file, guard_frac), 0, 0.5, "must be 0% to 50%"},
	{"gpu", WW_YAML_KEYS, false, WW_FIELD(raw_file, gpu), 0, 0, NULL},
	{"rows", WW_YAML_ITEMS, true, WW_FIELD(raw_file, rows), 0, 0, NULL},
	{"nodes", WW_YAML_ITEMS, true, WW_FIELD(raw_file, nodes), 0, 0, NULL},
	{"jobs", WW_YAML_ITEMS, true, WW_FIELD(raw_file, jobs), 0, 0, NULL},
	{"curves", WW_YAML_KEYS, false, WW_FIELD(raw_file, curves), 0, 0, NULL},
	{"events", WW_YAML_ITEMS, false, WW_FIELD(raw_file, events), 0, 0, NULL},
	{"wire", WW_YAML_KEYS, false, WW_FIELD(raw_file, wire), 0, 0, NULL},
	{"faults", WW_YAML_ITEMS, false, WW_FIELD(raw_file, faults), 0, 0, NULL},
	{"modes", WW_YAML_ITEMS, false, WW_FIELD(raw_file, modes), 0, 0, NULL},
};
static const struct ww_yaml_table file_table = {"file", NULL, file_fields, WW_N_FIELDS(file_fields)};

static const struct ww_yaml_field gpu_fields[] = {
	{"min", WW_YAML_POWER, false, WW_FIELD(ww_scenario_gpu, min_w), WW_GPU_POWER},
	{"max", WW_YAML_POWER, false, WW_FIELD(ww_scenario_gpu, max_w), WW_GPU_POWER},
	{"default", WW_YAML_POWER, false, WW_FIELD(ww_scenario_gpu, default_w), WW_GPU_POWER},
	{"idle", WW_YAML_POWER, false, WW_FIELD(ww_scenario_gpu, idle_w), WW_GPU_POWER},
	{"chip_spread", WW_YAML_PERCENT, false, WW_FIELD(ww_scenario_gpu, chip_sd), 0, 0.2, "must be 0% to 20%"},
	{"sensor_gain", WW_YAML_PERCENT, false, WW_FIELD(ww_scenario_gpu, gain_sd), 0, 0.2, "must be 0% to 20%"},
	{"sensor_noise", WW_YAML_PERCENT, false, WW_FIELD(ww_scenario_gpu, sensor_noise_frac), 0, 0.2,
         "must be 0% to 20%"},
	{"dead", WW_YAML_DURATION, false, WW_FIELD(ww_scenario_gpu, dead_us), 0, 60, "must be 0 s to 60 s"},
	{"settle_time", WW_YAML_DURATION, false, WW_FIELD(ww_scenario_gpu, settle_us), 0, 60, "must be 0 s to 60 s"},
	{"duty_sampler", WW_YAML_YES, false, WW_FIELD(ww_scenario_gpu, duty_sampler), 0, 0, NULL},
};
static const struct ww_yaml_table gpu_table = {"gpu", NULL, gpu_fields, WW_N_FIELDS(gpu_fields)};

static const struct ww_yaml_field wire_fields[] = {
	{"loss", WW_YAML_PERCENT, false, WW_FIELD(ww_scenario_wire, loss_frac), WW_ANY_PART},
	{"double", WW_YAML_PERCENT, false, WW_FIELD(ww_scenario_wire, double_frac), WW_ANY_PART},
	{"delay_least", WW_YAML_DURATION, false, WW_FIELD(ww_scenario_wire, delay_least_us), WW_ANY_TIME},
	{"delay_most", WW_YAML_DURATION, false, WW_FIELD(ww_scenario_wire, delay_most_us), WW_ANY_TIME},
	{"late", WW_YAML_PERCENT, false, WW_FIELD(ww_scenario_wire, late_frac), WW_ANY_PART},
	{"late_most", WW_YAML_DURATION, false, WW_FIELD(ww_scenario_wire, late_most_us), WW_ANY_TIME},
};
static const struct ww_yaml_table wire_table = {"wire", NULL, wire_fields, WW_N_FIELDS(wire_fields)};

struct raw_curves {
	const struct ww_yaml_node *at;
	double noise_frac;
	bool is_known;
};

static const struct ww_yaml_field curves_fields[] = {
	{"at", WW_YAML_ITEMS, false, WW_FIELD(raw_curves, at), 0, 0, NULL},
	{"noise", WW_YAML_PERCENT, false, WW_FIELD(raw_curves, noise_frac), 0, 0.5, "must be 0% to 50%"},
	{"known", WW_YAML_YES, false, WW_FIELD(raw_curves, is_known), 0, 0, NULL},
};
static const struct ww_yaml_table curves_table = {"curves", NULL, curves_fields, WW_N_FIELDS(curves_fields)};
static const struct ww_yaml_field cut_field = {"at", WW_YAML_PERCENT, true, 0, 0.01, 0.95, "must be 1% to 95%"};

/* ---- Names ------------------------------------------------------------------------------------------------------- */

struct book_key {
	const struct ww_book *book;
	const char *name;
};

static bool same_name(const void *ctx, size_t item)
{
	const struct book_key *key = ctx;
	return strcmp(key->book->entries[item].name, key->name) == 0;
}

static size_t find_name(const struct ww_book *book, const char *name)
{
	struct book_key key = {book, name};
	return ww_index_find(&book->index, ww_hash_text(name), same_name, &key);
}

ww_status ww_book_add(struct ww_scenario_reader *r, struct ww_book *book, const char *name, size_t line,
                      const char *label)
{
	char shown[48];
	size_t old = find_name(book, name);
	if (old != WW_INDEX_NONE) {
		ww_shorten(shown, sizeof shown, name);
		return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, line,
		                    "%sname: '%s' is also the name of the %s on line %zu; rename one of them", label,
		                    shown, book->word, book->entries[old].line);
	}
	if (!ww_grow(book->entries, book->n, 1))
		return ww_yaml_no_memory(&r->yaml);
	book->entries[book->n] = (struct ww_book_entry){name, line};
	if (!ww_index_add(&book->index, ww_hash_text(name), book->n))
		return ww_yaml_no_memory(&r->yaml);
	book->n++;
	return WW_OK;
}

bool ww_book_has(const struct ww_book *book, const char *name, uint32_t *item)
{
	size_t found = find_name(book, name);
	if (found != WW_INDEX_NONE)
		*item = (uint32_t)found;
	return found != WW_INDEX_NONE;
}

ww_status ww_book_find(const struct ww_scenario_reader *r, const struct ww_book *book, const struct ww_yaml_node *field,
                       const char *label, uint32_t *item)
{
	char shown[48], words[16], hint[200];
	if (ww_book_has(book, field->text, item))
		return WW_OK;
	struct ww_near near = {.wanted = field->text};
	for (size_t i = 0; i < book->n; i++)
		ww_near_add(&near, book->entries[i].name);
	snprintf(words, sizeof words, "%ss", book->word);
	ww_near_text(&near, words, hint, sizeof hint);
	ww_shorten(shown, sizeof shown, field->text);
	return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, field->line, "%sthere is no %s '%s'; %s", label, book->word,
	                    shown, hint);
}

static void finish_book(struct ww_book *book)
{
	ww_index_finish(&book->index);
	free(book->entries);
}

const struct ww_yaml_node *ww_scenario_value(const struct ww_yaml_node *map, const char *key)
{
	const struct ww_yaml_node *value = map->first;
	while (value && strcmp(value->key, key) != 0)
		value = value->next;
	return value;
}

ww_status ww_scenario_name(const struct ww_scenario_reader *r, const struct ww_yaml_node *map, const char *label,
                           uint32_t number, char **out)
{
	const struct ww_yaml_node *name = ww_scenario_value(map, "name");
	char text[WW_YAML_NAME_MAX + 16];
	int n = number > 0 ? snprintf(text, sizeof text, "%s-%u", name->text, number)
	                   : snprintf(text, sizeof text, "%s", name->text);
	if (n >= WW_NAME_MAX)
		return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, name->line,
		                    "%sname: is longer than %d bytes%s; shorten it", label, WW_NAME_MAX - 1,
		                    number > 0 ? " with its number" : "");
	*out = ww_copy_text(text);
	return *out ? WW_OK : ww_yaml_no_memory(&r->yaml);
}

/* ---- Times ------------------------------------------------------------------------------------------------------- */

ww_status ww_scenario_end(const struct ww_scenario_reader *r, const struct ww_yaml_node *map, const char *label,
                          const struct ww_scenario_span *span, int64_t *end_us)
{
	if (span->end_us >= 0 && span->for_us >= 0)
		return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, ww_yaml_line(map, "for"),
		                    "%sfor: %s is there as well; remove one of them", label, span->end_key);
	*end_us = span->for_us >= 0 ? span->start_us + span->for_us : span->end_us >= 0 ? span->end_us : WW_NEVER_US;
	if (*end_us > span->start_us)
		return WW_OK;
	return ww_yaml_fail(&r->yaml, WW_ERR_RANGE, ww_yaml_line(map, span->for_us >= 0 ? "for" : span->end_key),
	                    "%s%s: the end at %.10g s is not after the start at %.10g s; write a later one", label,
	                    span->for_us >= 0 ? "for" : span->end_key, (double)*end_us / 1e6,
	                    (double)span->start_us / 1e6);
}

ww_status ww_scenario_within(const struct ww_scenario_reader *r, const struct ww_yaml_node *map, const char *label,
                             const char *key, int64_t at_us)
{
	if (at_us < r->s.duration_us)
		return WW_OK;
	return ww_yaml_fail(&r->yaml, WW_ERR_RANGE, ww_yaml_line(map, key),
	                    "%s%s: %.10g s is not before the end of the scenario, %.10g s; correct it or the duration",
	                    label, key, (double)at_us / 1e6, (double)r->s.duration_us / 1e6);
}

static ww_status check_whole_seconds(const struct ww_scenario_reader *r, const char *key, int64_t us)
{
	if (us % WW_SECOND_US == 0)
		return WW_OK;
	return ww_yaml_fail(&r->yaml, WW_ERR_RANGE, ww_yaml_line(r->yaml.root, key),
	                    "%s: %.10g s is not a number of whole seconds; round it", key, (double)us / 1e6);
}

static ww_status take_times(struct ww_scenario_reader *r, const struct raw_file *raw)
{
	ww_status status = check_whole_seconds(r, "duration", raw->duration_us);
	if (status || (status = check_whole_seconds(r, "period", raw->period_us)))
		return status;
	if (raw->lease_us < 2 * raw->period_us)
		return ww_yaml_fail(&r->yaml, WW_ERR_RANGE, ww_yaml_line(r->yaml.root, "lease"),
		                    "lease: %.10g s is shorter than two periods of %.10g s; one lost message would end "
		                    "it: lengthen it",
		                    (double)raw->lease_us / 1e6, (double)raw->period_us / 1e6);
	r->s.duration_us = raw->duration_us;
	r->s.period_us = raw->period_us;
	r->s.lease_us = raw->lease_us;
	r->s.settle_us = raw->settle_us;
	return WW_OK;
}

/* ---- Small parts ------------------------------------------------------------------------------------------------- */

static ww_status read_gpu(struct ww_scenario_reader *r, const struct ww_yaml_node *map)
{
	struct ww_scenario_gpu *g = &r->s.gpu;
	*g = (struct ww_scenario_gpu){.min_w = 200,
	                              .max_w = 700,
	                              .default_w = NAN,
	                              .idle_w = 75,
	                              .chip_sd = 0.04,
	                              .gain_sd = 0.02,
	                              .sensor_noise_frac = 0.003,
	                              .dead_us = 150000,
	                              .settle_us = 100000};
	ww_status status = map ? ww_yaml_read_map(&r->yaml, map, &gpu_table, "gpu: ", g) : WW_OK;
	if (status)
		return status;
	g->default_w = isnan(g->default_w) ? g->max_w : g->default_w;
	if (g->min_w > g->max_w)
		return ww_yaml_fail(&r->yaml, WW_ERR_RANGE, ww_yaml_line(map, "min"),
		                    "gpu: min: %.10g W is more than max, %.10g W; correct one of them", g->min_w,
		                    g->max_w);
	if (g->default_w < g->min_w || g->default_w > g->max_w)
		return ww_yaml_fail(&r->yaml, WW_ERR_RANGE, ww_yaml_line(map, "default"),
		                    "gpu: default: %.10g W is not within min and max, %.10g W to %.10g W; correct one "
		                    "of them",
		                    g->default_w, g->min_w, g->max_w);
	if (g->idle_w > g->min_w)
		return ww_yaml_fail(&r->yaml, WW_ERR_RANGE, ww_yaml_line(map, "idle"),
		                    "gpu: idle: %.10g W is more than min, %.10g W; correct one of them", g->idle_w,
		                    g->min_w);
	return WW_OK;
}

static ww_status read_wire(struct ww_scenario_reader *r, const struct ww_yaml_node *map)
{
	struct ww_scenario_wire *w = &r->s.wire;
	*w = (struct ww_scenario_wire){.delay_least_us = 1000, .delay_most_us = -1};
	ww_status status = map ? ww_yaml_read_map(&r->yaml, map, &wire_table, "wire: ", w) : WW_OK;
	if (status)
		return status;
	if (w->delay_most_us < 0)
		w->delay_most_us = w->delay_least_us > 10000 ? w->delay_least_us : 10000;
	if (w->delay_least_us > w->delay_most_us)
		return ww_yaml_fail(&r->yaml, WW_ERR_RANGE, ww_yaml_line(map, "delay_most"),
		                    "wire: delay_most: is less than delay_least; correct one of them");
	if ((w->late_frac > 0) != (w->late_most_us > 0))
		return ww_yaml_fail(&r->yaml, WW_ERR_INVALID,
		                    ww_yaml_line(map, w->late_frac > 0 ? "late" : "late_most"),
		                    "wire: %s: %s is missing or 0; give both, or none",
		                    w->late_frac > 0 ? "late" : "late_most", w->late_frac > 0 ? "late_most" : "late");
	return WW_OK;
}

static ww_status read_cuts(struct ww_scenario_reader *r, const struct ww_yaml_node *list)
{
	struct ww_scenario_curves *c = &r->s.curves;
	if (list->n > WW_SCENARIO_CUTS_MAX)
		return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, list->line,
		                    "curves: at: has more than %d cuts; leave some out", WW_SCENARIO_CUTS_MAX);
	for (const struct ww_yaml_node *node = list->first; node; node = node->next) {
		double *cut = &c->cut_frac[c->n_cuts];
		ww_status status = ww_yaml_read_value(&r->yaml, node, &cut_field, "curves: ", cut);
		if (status)
			return status;
		if (c->n_cuts > 0 && *cut <= cut[-1])
			return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, node->line,
			                    "curves: at: the cuts do not rise; write the smallest first, each once");
		c->n_cuts++;
	}
	return WW_OK;
}

static ww_status read_curves(struct ww_scenario_reader *r, const struct ww_yaml_node *map)
{
	struct raw_curves raw = {.noise_frac = NAN};
	ww_status status = map ? ww_yaml_read_map(&r->yaml, map, &curves_table, "curves: ", &raw) : WW_OK;
	if (status)
		return status;
	if (raw.is_known && (raw.at || !isnan(raw.noise_frac)))
		return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, ww_yaml_line(map, "known"),
		                    "curves: known: what is known needs no fit; remove it, or at and noise");
	if (!isnan(raw.noise_frac) && !raw.at)
		return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, ww_yaml_line(map, "noise"),
		                    "curves: at: is missing; write the cuts of the fit, like at: [20%%, 55%%]");
	r->s.curves.noise_frac = isnan(raw.noise_frac) ? 0.008 : raw.noise_frac;
	r->s.curves.kind = raw.is_known ? WW_CURVES_KNOWN : raw.at ? WW_CURVES_FITTED : WW_CURVES_NONE;
	return raw.at ? read_cuts(r, raw.at) : WW_OK;
}

/* ---- The whole --------------------------------------------------------------------------------------------------- */

static ww_status read_parts(struct ww_scenario_reader *r, const struct raw_file *raw)
{
	ww_status status = read_gpu(r, raw->gpu);
	if (!status)
		status = ww_scenario_rows(r, raw->rows);
	if (!status)
		status = ww_scenario_nodes(r, raw->nodes);
	if (!status)
		status = ww_scenario_jobs(r, raw->jobs);
	if (!status)
		status = read_curves(r, raw->curves);
	if (!status && raw->events)
		status = ww_scenario_events(r, raw->events);
	if (!status)
		status = read_wire(r, raw->wire);
	if (!status && raw->faults)
		status = ww_scenario_faults(r, raw->faults);
	if (!status && raw->modes)
		status = ww_scenario_modes(r, raw->modes);
	return status;
}

static ww_status read_file(struct ww_scenario_reader *r, const char *file)
{
	struct raw_file raw = {.seed = 1,
	                       .period_us = WW_SECOND_US,
	                       .lease_us = 15 * WW_SECOND_US,
	                       .settle_us = 3 * WW_SECOND_US,
	                       .guard_frac = 0.005};
	ww_status status = ww_yaml_read_map(&r->yaml, r->yaml.root, &file_table, "", &raw);
	if (status || (status = take_times(r, &raw)))
		return status;
	r->s.file = ww_copy_text(file);
	if (!r->s.file)
		return ww_yaml_no_memory(&r->yaml);
	r->s.seed = raw.seed;
	r->s.objective = raw.objective;
	r->s.after = (uint8_t)raw.after;
	r->s.trim = (uint8_t)raw.trim;
	r->s.reassert_lower = raw.lowered == 1;
	r->guard_frac = raw.guard_frac;
	status = ww_scenario_name(r, r->yaml.root, "", 0, &r->s.name);
	return status ? status : read_parts(r, &raw);
}

ww_status ww_scenario_parse(FILE *in, const char *name, struct ww_scenario *out, struct ww_error *err)
{
	struct ww_scenario_reader r = {.rows.word = "row",
	                               .row_entries.word = "row",
	                               .nodes.word = "node",
	                               .jobs.word = "job",
	                               .events.word = "event"};
	ww_status status = ww_yaml_load(&r.yaml, in, name, "scenario", err);
	if (!status)
		status = read_file(&r, name);
	if (status)
		ww_scenario_finish(&r.s);
	else
		*out = r.s;
	ww_yaml_finish(&r.yaml);
	finish_book(&r.rows);
	finish_book(&r.row_entries);
	free(r.entries);
	finish_book(&r.nodes);
	finish_book(&r.jobs);
	finish_book(&r.events);
	free(r.feeds);
	free(r.order);
	free(r.uses);
	free(r.first_use);
	return status;
}

ww_status ww_scenario_read(const char *path, struct ww_scenario *out, struct ww_error *err)
{
	ww_status status;
	FILE *in = ww_yaml_open(path, &status, err);
	if (!in)
		return status;
	status = ww_scenario_parse(in, in == stdin ? "<stdin>" : path, out, err);
	if (in != stdin)
		(void)fclose(in);
	return status;
}

void ww_scenario_finish(struct ww_scenario *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n_rows; i++) {
		free(s->rows[i].name);
		free(s->rows[i].loads);
	}
	for (size_t i = 0; i < s->n_nodes; i++)
		free(s->nodes[i].name);
	for (size_t i = 0; i < s->n_jobs; i++) {
		free(s->jobs[i].name);
		free(s->jobs[i].sweep);
		free(s->jobs[i].group);
		free(s->jobs[i].gpus);
	}
	for (size_t i = 0; i < s->n_events; i++)
		free(s->events[i].name);
	free(s->rows);
	free(s->nodes);
	free(s->jobs);
	free(s->events);
	free(s->faults);
	free(s->modes);
	free(s->name);
	free(s->file);
	*s = (struct ww_scenario){0};
}
