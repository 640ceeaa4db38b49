/* SPDX-License-Identifier: Apache-2.0 */
/* Watts that are held for nodes that do not answer: a machine that is dead may come back, and boots with them. */
#include "cli/simulate_internal.h"

#include <math.h>
#include <stdlib.h>

#define NEAR_W 1.0
#define LINES_MOST 40 /* of a list for people */

void ww_held_begin(const struct ww_scene *scene, struct ww_run *run)
{
	if (scene->scenario->n_faults > 0)
		run->held = ww_cli_alloc(scene->scenario->n_nodes, sizeof *run->held);
}

static double charge_of(const struct ww_scenario_node *node, const struct ww_decision *d)
{
	double w = 0;
	for (uint32_t g = node->first_gpu; g < node->first_gpu + node->gpus; g++)
		w += (double)d->gpus[g].charge_w;
	return w;
}

void ww_held_measure(const struct ww_scene *scene, struct ww_run *run, const ww_world *world,
                     const struct ww_world_second *s)
{
	const struct ww_scenario *scenario = scene->scenario;
	size_t event = ww_scene_main_event(scene);
	uint32_t second = ww_second_of(s);
	const struct ww_event_run *e = event < run->n_events ? &run->events[event] : NULL;
	bool during = e && second >= e->from && second < e->end, last = second + 1 == run->seconds;
	for (uint32_t n = 0; run->held && s->decision && n < scenario->n_nodes; n++) {
		struct ww_held *held = &run->held[n];
		held->out_s = ww_world_in_reach(world, n) ? 0 : held->out_s + 1;
		if (held->out_s <= ww_settled_s(scene) || !(during || last))
			continue;
		double w = charge_of(&scenario->nodes[n], s->decision);
		held->end_w = last ? w : 0;
		held->seconds += during;
		held->event_w = during ? fmax(held->event_w, w) : held->event_w;
	}
}

/* Of the main event's budget; NAN = the node is not on its row, or there is none. */
static double part_of_budget(const struct ww_scene *scene, const struct ww_run *run, uint32_t node)
{
	size_t event = ww_scene_main_event(scene);
	if (event >= run->n_events || run->held[node].seconds == 0)
		return NAN;
	const struct ww_event_run *e = &run->events[event];
	const struct ww_sim_row *row = &scene->rows[e->told->row];
	for (size_t k = 0; k < row->n_loads; k++)
		if (row->loads[k].node == node)
			return run->held[node].event_w * row->loads[k].frac * ww_at_boundary(scene, e->told, node) /
			       e->limit_w;
	return NAN;
}

/* What it may do with so much, and what helps. */
static void print_why(const struct ww_scene *scene, const struct ww_run *run, uint32_t node, double w, FILE *out)
{
	const struct ww_scenario_node *n = &scene->scenario->nodes[node];
	bool has_unit = !isnan(n->boot_cap_w), is_back = run->held[node].end_w == 0;
	double boot_w = has_unit ? n->boot_cap_w : scene->scenario->gpu.default_w;
	bool boots = fabs(w - n->gpus * boot_w) <= NEAR_W * n->gpus;
	if (is_back)
		fprintf(out, "it might %s with that much", boots ? "have booted" : "still have run");
	else
		fprintf(out, "it may %s with that much", boots ? "boot" : "still run");
	if (boots && has_unit)
		fputs(", its boot_cap", out);
	if (is_back)
		fputs(has_unit ? "\n" : "; declare boot_cap to have fewer held\n", out);
	else
		fprintf(out, "; take it out of the inventory%s\n",
		        has_unit ? " if it does not come back" : ", or declare boot_cap");
}

static void print_node(const struct ww_scene *scene, const struct ww_run *run, uint32_t node, FILE *out)
{
	const struct ww_held *held = &run->held[node];
	double part = part_of_budget(scene, run, node), w = fmax(held->event_w, held->end_w);
	char watts[WW_TEXT_NUMBER], seconds[WW_TEXT_NUMBER];
	char *name = ww_text_clean(scene->scenario->nodes[node].name, 60);
	fprintf(out, "%s W %s held for %s", ww_text_thousands(w, watts), held->end_w > 0 ? "are" : "were", name);
	if (held->seconds > 0)
		fprintf(out, ", in %s s of the event", ww_text_thousands(held->seconds, seconds));
	if (!isnan(part))
		fprintf(out, " %.1f %% of its budget", 100 * part);
	fputs(": ", out);
	print_why(scene, run, node, w, out);
	free(name);
}

static bool is_held(const struct ww_run *run, uint32_t node)
{
	return run->held && (run->held[node].seconds > 0 || run->held[node].end_w > 0);
}

void ww_held_print(const struct ww_scene *scene, const struct ww_run *run, FILE *out)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < scene->scenario->n_nodes; i++) {
		if (!is_held(run, i))
			continue;
		if (n == 0)
			fputc('\n', out);
		if (n++ < LINES_MOST)
			print_node(scene, run, i, out);
	}
	if (n > LINES_MOST)
		fprintf(out, "and %u more, see --json\n", n - LINES_MOST);
}

void ww_held_json(const struct ww_scene *scene, const struct ww_run *run, ww_json *json)
{
	ww_json_begin_array(json, "held");
	for (uint32_t i = 0; i < scene->scenario->n_nodes; i++) {
		if (!is_held(run, i))
			continue;
		ww_json_begin_object(json, NULL);
		ww_json_text(json, "node", scene->scenario->nodes[i].name);
		ww_json_number(json, "event_w", run->held[i].event_w);
		ww_json_count(json, "event_seconds", run->held[i].seconds);
		ww_json_number(json, "event_budget_frac", part_of_budget(scene, run, i));
		ww_json_number(json, "end_w", run->held[i].end_w);
		ww_json_end(json);
	}
	ww_json_end(json);
}
