/* SPDX-License-Identifier: Apache-2.0 */
/* What went wrong in a run: how long GPUs did not obey, what they were counted with meanwhile, and what is left of it. */
#include "cli/simulate_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LIMITS_MORE_S 900 /* after an event GPUs rise in slots for so long at most */
#define NEAR_W 1.0        /* boards round limits */
#define WHERE 160
#define LINES_MOST 40 /* of a list for people */

/* GPUs of a fault, in the scene; none of a fault of meters and controllers. */
struct gpus {
	uint32_t first, n;
};

static bool is_of_controller(const struct ww_scenario_fault *f)
{
	return f->kind == WW_SCENARIO_CONTROLLER_CRASH || f->kind == WW_SCENARIO_CONTROLLER_ZOMBIE;
}

static bool is_of_gpu(const struct ww_scenario_fault *f)
{
	return f->kind == WW_SCENARIO_FOREIGN || f->kind == WW_SCENARIO_HUNG_GPU;
}

static bool is_of_meter(const struct ww_scenario_fault *f)
{
	return ww_fault_is_of_row((enum ww_fault_kind)f->kind);
}

static struct gpus gpus_of(const struct ww_scene *scene, const struct ww_scenario_fault *f)
{
	const struct ww_scenario_node *node = &scene->scenario->nodes[f->node];
	if (is_of_controller(f) || is_of_meter(f))
		return (struct gpus){0};
	return is_of_gpu(f) ? (struct gpus){node->first_gpu + f->gpu, 1} : (struct gpus){node->first_gpu, node->gpus};
}

/* ---- Measuring ---------------------------------------------------------------------------------------------------------- */

/* Long enough after all events, so that every GPU may have its limit back. */
static bool ends_in_peace(const struct ww_run *run)
{
	for (uint32_t i = 0; i < run->n_events; i++)
		if (run->events[i].over + LIMITS_MORE_S > run->seconds)
			return false;
	return run->n_events > 0;
}

void ww_faults_begin(const struct ww_scene *scene, struct ww_run *run)
{
	const struct ww_scenario *s = scene->scenario;
	run->faults = ww_cli_alloc(s->n_faults, sizeof *run->faults);
	run->after_w = ww_cli_alloc(s->n_gpus, sizeof *run->after_w);
	run->in_reach = ww_cli_alloc(s->n_nodes, sizeof *run->in_reach);
	for (size_t i = 0; i < s->n_faults; i++)
		run->faults[i] = (struct ww_fault_run){NAN, NAN};
	if (ends_in_peace(run) && run->events[ww_scene_main_event(scene)].begins > 1)
		run->before_w = ww_cli_alloc(s->n_gpus, sizeof *run->before_w);
}

void ww_faults_end(struct ww_run *run)
{
	free(run->faults);
	free(run->alarms);
	free(run->before_w);
	free(run->after_w);
	free(run->in_reach);
}

static bool obey(const struct gpus *gpus, const struct ww_world_second *s)
{
	for (uint32_t g = gpus->first; g < gpus->first + gpus->n; g++) {
		double cap_w = (double)s->decision->gpus[g].cap_w;
		if (fabs(ww_plant_enforced_w(s->plant, g) - cap_w) > NEAR_W)
			return false;
	}
	return true;
}

static void count(struct ww_fault_run *to, const struct ww_scenario_fault *f, const struct gpus *gpus,
                  const struct ww_world_second *s)
{
	double w = is_of_meter(f) ? s->decision->rows[f->node].non_gpu_w : 0;
	for (uint32_t g = gpus->first; g < gpus->first + gpus->n; g++)
		w += (double)s->decision->gpus[g].charge_w;
	to->counted_w = fmax(to->counted_w, w);
}

static void measure(const struct ww_scene *scene, size_t i, struct ww_fault_run *to, const ww_world *world,
                    const struct ww_world_second *s)
{
	const struct ww_scenario_fault *f = &scene->scenario->faults[i];
	struct gpus gpus = gpus_of(scene, f);
	bool over = s->at_us > f->until_us;
	if (s->at_us <= f->at_us || !isnan(to->again_s) || !s->decision || (is_of_meter(f) && over))
		return;
	if (!is_of_controller(f))
		count(to, f, &gpus, s);
	if (over && !is_of_meter(f) && (gpus.n == 0 || (ww_world_in_reach(world, f->node) && obey(&gpus, s))))
		to->again_s = (double)(s->at_us - f->at_us) / 1e6;
}

static void keep_alarms(struct ww_run *run, const ww_world *world)
{
	const struct ww_world_alarm *alarms = ww_world_alarms(world, &run->n_alarms);
	run->alarms = ww_cli_alloc(run->n_alarms, sizeof *run->alarms);
	if (run->n_alarms > 0)
		memcpy(run->alarms, alarms, run->n_alarms * sizeof *alarms);
}

void ww_faults_measure(const struct ww_scene *scene, struct ww_run *run, const ww_world *world,
                       const struct ww_world_second *s)
{
	const struct ww_scenario *scenario = scene->scenario;
	uint32_t second = ww_second_of(s);
	for (size_t i = 0; i < scenario->n_faults; i++)
		measure(scene, i, &run->faults[i], world, s);
	/* A second ends with the caps of the next one. */
	bool is_before = run->before_w && second + 2 == run->events[ww_scene_main_event(scene)].begins;
	for (uint32_t g = 0; is_before && g < scenario->n_gpus; g++)
		run->before_w[g] = ww_plant_enforced_w(s->plant, g);
	if (second + 1 < run->seconds)
		return;
	for (uint32_t g = 0; g < scenario->n_gpus; g++)
		run->after_w[g] = ww_plant_enforced_w(s->plant, g);
	for (uint32_t n = 0; n < scenario->n_nodes; n++)
		run->in_reach[n] = ww_world_in_reach(world, n);
	keep_alarms(run, world);
}

static uint32_t node_of(const struct ww_scenario *s, uint32_t gpu)
{
	size_t node = 0, behind = s->n_nodes;
	while (behind - node > 1) {
		size_t middle = node + (behind - node) / 2;
		if (gpu < s->nodes[middle].first_gpu)
			behind = middle;
		else
			node = middle;
	}
	return (uint32_t)node;
}

static bool is_hung(const struct ww_scene *scene, uint32_t gpu)
{
	const struct ww_scenario *s = scene->scenario;
	for (size_t i = 0; i < s->n_faults; i++)
		if (s->faults[i].kind == WW_SCENARIO_HUNG_GPU && s->faults[i].until_us >= s->duration_us &&
		    gpus_of(scene, &s->faults[i]).first == gpu)
			return true;
	return false;
}

const char *ww_left_capped(const struct ww_scene *scene, const struct ww_run *run, uint32_t gpu)
{
	if (!run->before_w || !(run->after_w[gpu] < run->before_w[gpu] - NEAR_W))
		return NULL;
	if (run->after_w[gpu] == 0)
		return "no power";
	if (is_hung(scene, gpu))
		return "its limit cannot be written";
	return run->in_reach[node_of(scene->scenario, gpu)] ? "left behind" : "its node is out of reach";
}

/* ---- Words ------------------------------------------------------------------------------------------------------------------ */

static const char *name_of(const struct ww_scenario_fault *f)
{
	static const char *const names[WW_N_SCENARIO_FAULTS] = {
		"agent-crash", "reboot", "controller-crash", "controller-zombie", "foreign", "cut", "meter",
		"journal",     "dead",   "hung-gpu",         "meter-late"};
	return names[f->kind];
}

static const char *place_of(const struct ww_scene *scene, const struct ww_scenario_fault *f)
{
	if (is_of_controller(f))
		return NULL;
	return is_of_meter(f) ? scene->scenario->rows[f->node].name : scene->scenario->nodes[f->node].name;
}

static const char *where(const struct ww_scene *scene, const struct ww_scenario_fault *f, char text[WHERE])
{
	const char *place = place_of(scene, f);
	if (is_of_gpu(f))
		snprintf(text, WHERE, "%s gpu %u", place, f->gpu);
	else
		snprintf(text, WHERE, "%s", place ? place : "-");
	return text;
}

static void add_whole(ww_table *table, double value, const char *unknown)
{
	char number[WW_TEXT_NUMBER];
	ww_table_text(table, "%s", isnan(value) ? unknown : ww_text_thousands(value, number));
}

static void print_faults(const struct ww_scene *scene, const struct ww_run *run, FILE *out)
{
	static const struct ww_column columns[] = {
		{"at", "", WW_LEFT},    {"what went wrong", "", WW_LEFT}, {"where", "", WW_LEFT},
		{"until", "", WW_LEFT}, {"counted with", "W", WW_RIGHT},  {"obeyed again", "after s", WW_RIGHT}};
	const struct ww_scenario *s = scene->scenario;
	ww_table *table = ww_table_create(columns, sizeof columns / sizeof columns[0]);
	for (size_t i = 0; i < s->n_faults && i < LINES_MOST; i++) {
		const struct ww_scenario_fault *f = &s->faults[i];
		char time[WW_TEXT_TIME], text[WHERE];
		ww_table_text(table, "%s", ww_text_time((double)f->at_us / 1e6, time));
		if (f->kind == WW_SCENARIO_FOREIGN)
			ww_table_text(table, "foreign, %.0f W", f->value_w);
		else if (f->kind == WW_SCENARIO_METER_LATE)
			ww_table_text(table, "meter-late, %u s", scene->faults[i].late_s);
		else
			ww_table_text(table, "%s", name_of(f));
		ww_table_text(table, "%s", where(scene, f, text));
		ww_table_text(table, "%s%s",
		              f->until_us == f->at_us || f->until_us == WW_NEVER_US
		                      ? "-"
		                      : ww_text_time((double)f->until_us / 1e6, time),
		              f->until_us > s->duration_us && f->until_us != WW_NEVER_US ? ", after the end" : "");
		add_whole(table, run->faults[i].counted_w, "-");
		add_whole(table, run->faults[i].again_s, is_of_meter(f) ? "-" : "never");
	}
	ww_table_print(table, out);
	ww_table_destroy(table);
	if (s->n_faults > LINES_MOST)
		fprintf(out, "and %zu more, see --json\n", s->n_faults - LINES_MOST);
}

static void print_alarms(const struct ww_scene *scene, const struct ww_run *run, FILE *out)
{
	if (run->n_alarms > 0)
		fputs("\nWhat nodes told:\n", out);
	for (size_t i = 0; i < run->n_alarms && i < LINES_MOST; i++) {
		const struct ww_world_alarm *a = &run->alarms[i];
		char first[WW_TEXT_TIME], last[WW_TEXT_TIME],
			*name = ww_text_clean(scene->scenario->nodes[a->node].name, 60);
		fprintf(out, "%s  %s", ww_text_time((double)a->first_us / 1e6, first), name);
		if (a->gpu != UINT32_MAX)
			fprintf(out, " gpu %u", a->gpu);
		fprintf(out, ": %s", ww_alarm_text(a->what));
		if (a->times > 1)
			fprintf(out, " (%u times until %s)", a->times, ww_text_time((double)a->last_us / 1e6, last));
		fputc('\n', out);
		free(name);
	}
	if (run->n_alarms > LINES_MOST)
		fprintf(out, "and %zu more, see --json\n", run->n_alarms - LINES_MOST);
}

/* Neighbours on a node that are left for the same reason are one line. */
static void print_left(const struct ww_scene *scene, const struct ww_run *run, FILE *out)
{
	const struct ww_scenario *s = scene->scenario;
	uint32_t n = 0;
	for (uint32_t g = 0; g < s->n_gpus; g++)
		n += ww_left_capped(scene, run, g) != NULL;
	char back[WW_TEXT_NUMBER], all[WW_TEXT_NUMBER];
	fprintf(out, "\nAt the end %s of %s GPUs have their limits of before the event.\n",
	        ww_text_thousands(s->n_gpus - n, back), ww_text_thousands(s->n_gpus, all));
	for (uint32_t g = 0, to = 1; g < s->n_gpus; g = to++) {
		const char *why = ww_left_capped(scene, run, g);
		const struct ww_scenario_node *node = &s->nodes[node_of(s, g)];
		if (!why)
			continue;
		while (to < node->first_gpu + node->gpus && ww_left_capped(scene, run, to) == why)
			to++;
		char *name = ww_text_clean(node->name, 60);
		fprintf(out, "NOT BACK  %s gpu %u", name, g - node->first_gpu);
		if (to > g + 1)
			fprintf(out, " to %u", to - 1 - node->first_gpu);
		fprintf(out, ": %s\n", why);
		free(name);
	}
}

void ww_faults_print(const struct ww_scene *scene, const struct ww_run *run, FILE *out)
{
	const struct ww_wire_counts *wire = &run->account.wire;
	char sent[WW_TEXT_NUMBER], lost[WW_TEXT_NUMBER], twice[WW_TEXT_NUMBER], late[WW_TEXT_NUMBER];
	if (wire->lost + wire->doubled + wire->late > 0)
		fprintf(out, "\nOf %s messages %s were lost, %s came twice and %s late.\n",
		        ww_text_thousands((double)wire->sent, sent), ww_text_thousands((double)wire->lost, lost),
		        ww_text_thousands((double)wire->doubled, twice), ww_text_thousands((double)wire->late, late));
	if (scene->scenario->n_faults == 0)
		return;
	fputc('\n', out);
	print_faults(scene, run, out);
	print_alarms(scene, run, out);
	if (run->before_w)
		print_left(scene, run, out);
}

/* ---- JSON ----------------------------------------------------------------------------------------------------------------- */

/* A whole number, null where there is none. */
static void json_whole(ww_json *json, const char *key, bool is_there, uint32_t value)
{
	if (is_there)
		ww_json_count(json, key, value);
	else
		ww_json_null(json, key);
}

static void json_fault(const struct ww_scene *scene, const struct ww_run *run, size_t i, ww_json *json)
{
	const struct ww_scenario_fault *f = &scene->scenario->faults[i];
	ww_json_begin_object(json, NULL);
	ww_json_text(json, "what", name_of(f));
	ww_json_number(json, "at_s", (double)f->at_us / 1e6);
	ww_json_number(json, "until_s", f->until_us == WW_NEVER_US ? NAN : (double)f->until_us / 1e6);
	ww_json_text(json, "node", is_of_meter(f) ? NULL : place_of(scene, f));
	json_whole(json, "gpu", is_of_gpu(f), f->gpu);
	ww_json_text(json, "row", is_of_meter(f) ? place_of(scene, f) : NULL);
	ww_json_number(json, "limit_w", f->value_w);
	json_whole(json, "late_s", f->kind == WW_SCENARIO_METER_LATE, scene->faults[i].late_s);
	ww_json_number(json, "counted_w", run->faults[i].counted_w);
	ww_json_number(json, "obeyed_again_s", run->faults[i].again_s);
	ww_json_end(json);
}

static void json_alarm(const struct ww_scene *scene, const struct ww_world_alarm *a, ww_json *json)
{
	ww_json_begin_object(json, NULL);
	ww_json_text(json, "node", scene->scenario->nodes[a->node].name);
	json_whole(json, "gpu", a->gpu != UINT32_MAX, a->gpu);
	ww_json_text(json, "told", ww_alarm_text(a->what));
	ww_json_count(json, "times", a->times);
	ww_json_number(json, "first_s", (double)a->first_us / 1e6);
	ww_json_number(json, "last_s", (double)a->last_us / 1e6);
	ww_json_end(json);
}

static void json_left(const struct ww_scene *scene, const struct ww_run *run, ww_json *json)
{
	const struct ww_scenario *s = scene->scenario;
	if (!run->before_w) {
		ww_json_null(json, "not_back");
		return;
	}
	ww_json_begin_array(json, "not_back");
	for (uint32_t g = 0; g < s->n_gpus; g++) {
		const char *why = ww_left_capped(scene, run, g);
		const struct ww_scenario_node *node = &s->nodes[node_of(s, g)];
		if (!why)
			continue;
		ww_json_begin_object(json, NULL);
		ww_json_text(json, "node", node->name);
		ww_json_count(json, "gpu", g - node->first_gpu);
		ww_json_number(json, "before_w", run->before_w[g]);
		ww_json_number(json, "limit_w", run->after_w[g]);
		ww_json_text(json, "why", why);
		ww_json_end(json);
	}
	ww_json_end(json);
}

void ww_faults_json(const struct ww_scene *scene, const struct ww_run *run, ww_json *json)
{
	const struct ww_wire_counts *wire = &run->account.wire;
	ww_json_begin_object(json, "messages");
	ww_json_count(json, "sent", wire->sent);
	ww_json_count(json, "lost", wire->lost);
	ww_json_count(json, "doubled", wire->doubled);
	ww_json_count(json, "late", wire->late);
	ww_json_end(json);
	ww_json_begin_array(json, "faults");
	for (size_t i = 0; i < scene->scenario->n_faults; i++)
		json_fault(scene, run, i, json);
	ww_json_end(json);
	ww_json_begin_array(json, "alarms");
	for (size_t i = 0; i < run->n_alarms; i++)
		json_alarm(scene, &run->alarms[i], json);
	ww_json_end(json);
	json_left(scene, run, json);
}
