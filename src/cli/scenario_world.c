/* SPDX-License-Identifier: Apache-2.0 */
/* A scenario as plant, power plan, jobs, events and faults of a world. */
#include "cli/simulate_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WALL_START_US (INT64_C(1767225600) * WW_SECOND_US) /* 2026-01-01 00:00 UTC */
#define LEAST_NOISE 0.001                                  /* a fit takes no measurement as exact */

/* Jobs keep what is drawn for them when others come or go. */
static void seed_for(struct ww_rng *rng, uint64_t seed, const char *name, uint64_t purpose)
{
	ww_rng_seed(rng, ww_hash_text(name) + seed * UINT64_C(0x9E3779B97F4A7C15) + purpose);
}

/* Limits cross the wire as floats. */
static double as_told(double w)
{
	return (double)(float)w;
}

/* ---- Nodes and rows -------------------------------------------------------------------------------------------------- */

static void fill_board(const struct ww_scenario_gpu *gpu, struct ww_sim_board *board)
{
	*board = ww_sim_h200;
	board->min_w = as_told(gpu->min_w);
	board->max_w = as_told(gpu->max_w);
	board->default_w = as_told(gpu->default_w);
	board->idle_w = gpu->idle_w;
	board->chip_sd = gpu->chip_sd;
	board->gain_sd = gpu->gain_sd;
	board->sensor_noise_frac = gpu->sensor_noise_frac;
	board->dead_us = (double)gpu->dead_us;
	board->settle_us = (double)gpu->settle_us;
	board->duty_sampler = gpu->duty_sampler;
}

static void fill_node(struct ww_scene *scene, size_t i)
{
	const struct ww_scenario *s = scene->scenario;
	const struct ww_scenario_node *from = &s->nodes[i];
	struct ww_node_config *config = &scene->node_configs[i];
	scene->nodes[i] = (struct ww_sim_node){.n_gpus = from->gpus,
	                                       .host_w = from->host_w,
	                                       .follow = from->follow_frac,
	                                       .lag_s = (double)from->lag_us / 1e6,
	                                       .boot_cap_w = as_told(from->boot_cap_w)};
	*config = (struct ww_node_config){.id = ww_hash_text(from->name),
	                                  .n_gpus = from->gpus,
	                                  .min_w = (float)s->gpu.min_w,
	                                  .max_w = (float)s->gpu.max_w,
	                                  .default_w = (float)s->gpu.default_w,
	                                  .boot_cap_w = (float)from->boot_cap_w,
	                                  .shortest_boot_us = from->boot_us,
	                                  .n_loads = from->n_loads};
	memcpy(config->loads, from->loads, sizeof config->loads);
	snprintf(config->name, sizeof config->name, "%s", from->name);
}

/* The power plan says of a row what is true of it: bounds of what no GPU draws. */
static void fill_row(struct ww_scene *scene, size_t i, struct ww_sim_load *loads)
{
	const struct ww_scenario *s = scene->scenario;
	const struct ww_scenario_row *from = &s->rows[i];
	struct ww_row *config = &scene->row_configs[i];
	double hosts_w = 0, follow = 0;
	for (size_t k = 0; k < from->n_loads; k++) {
		const struct ww_scenario_node *node = &s->nodes[from->loads[k].node];
		loads[k] = (struct ww_sim_load){from->loads[k].node, from->loads[k].frac};
		hosts_w += from->loads[k].frac * node->host_w;
		follow = fmax(follow, node->follow_frac);
	}
	scene->rows[i] = (struct ww_sim_row){.loads = loads,
	                                     .n_loads = from->n_loads,
	                                     .other_w = from->other_w,
	                                     .cooling = from->cooling_frac,
	                                     .cooling_lag_s = (double)from->cooling_lag_us / 1e6,
	                                     .meter_noise_frac = from->meter_noise_frac};
	*config = (struct ww_row){.id = ww_hash_text(from->name),
	                          .limit_w = from->limit_w,
	                          .boundary = from->boundary,
	                          .has_meter = from->has_meter,
	                          .meter_boundary = WW_BOUNDARY_METER,
	                          .guard_frac = from->guard_frac};
	config->fixed_w[WW_BOUNDARY_IT] = hosts_w;
	config->follow[WW_BOUNDARY_IT] = follow;
	config->fixed_w[WW_BOUNDARY_METER] = hosts_w * (1 + from->cooling_frac) + from->other_w;
	config->follow[WW_BOUNDARY_METER] = (1 + follow) * (1 + from->cooling_frac) - 1;
	snprintf(config->name, sizeof config->name, "%s", from->name);
}

static void fill_site(struct ww_scene *scene)
{
	const struct ww_scenario *s = scene->scenario;
	size_t n_loads = 0;
	for (size_t i = 0; i < s->n_rows; i++)
		n_loads += s->rows[i].n_loads;
	scene->nodes = ww_cli_alloc(s->n_nodes, sizeof *scene->nodes);
	scene->node_configs = ww_cli_alloc(s->n_nodes, sizeof *scene->node_configs);
	scene->rows = ww_cli_alloc(s->n_rows, sizeof *scene->rows);
	scene->row_configs = ww_cli_alloc(s->n_rows, sizeof *scene->row_configs);
	scene->loads = ww_cli_alloc(n_loads, sizeof *scene->loads);
	for (size_t i = 0; i < s->n_nodes; i++)
		fill_node(scene, i);
	n_loads = 0;
	for (size_t i = 0; i < s->n_rows; i++) {
		fill_row(scene, i, scene->loads + n_loads);
		n_loads += s->rows[i].n_loads;
	}
	scene->config = (struct ww_config){.cluster = ww_hash_text(s->name),
	                                   .objective = s->objective,
	                                   .valid_for_us = s->lease_us,
	                                   .settle_us = s->settle_us,
	                                   .after = s->after,
	                                   .trim = s->trim,
	                                   .n_rows = (uint32_t)s->n_rows,
	                                   .n_nodes = (uint32_t)s->n_nodes,
	                                   .rows = scene->row_configs,
	                                   .nodes = scene->node_configs};
}

/* ---- Jobs -------------------------------------------------------------------------------------------------------------- */

static struct ww_sim_pause pause_of(const struct ww_scenario_pause *from)
{
	return (struct ww_sim_pause){from->every_us, from->for_us, from->first_us, from->power_w};
}

static ww_status fill_points(struct ww_scene *scene, size_t i, struct ww_error *err)
{
	const struct ww_scenario_job *from = &scene->scenario->jobs[i];
	struct ww_sweep *sweep = &scene->sweeps[i];
	struct ww_sim_job *job = &scene->jobs[i];
	ww_status status = ww_sweep_read(from->sweep, NULL, sweep, err);
	if (status)
		return status;
	const struct ww_sweep_group *group = NULL;
	for (size_t g = 0; g < sweep->n_groups && !group; g++)
		if (strcmp(sweep->groups[g].name, from->group) == 0)
			group = &sweep->groups[g];
	if (!group)
		return ww_fail(err, WW_ERR_NOT_FOUND,
		               "%s:%zu: job '%s': '%s' has no group '%s'; write group: and one of its %zu groups",
		               scene->scenario->file, from->line, from->name, from->sweep, from->group,
		               sweep->n_groups);
	job->points = group->points;
	job->n_points = group->n_points;
	job->points_gpus = group->gpus;
	return WW_OK;
}

static void fill_physics(const struct ww_scene *scene, const struct ww_scenario_job *from, struct ww_sim_job *job)
{
	struct ww_rng rng;
	if (from->model == WW_SCENARIO_FAMILY) {
		seed_for(&rng, scene->seed, from->name, 0);
		job->physics = ww_sim_draw_family((enum ww_sim_family)from->family, &rng);
	} else {
		job->physics = (struct ww_sim_physics){.phi = from->physics.phi,
		                                       .h = from->physics.h,
		                                       .sm = from->physics.sm,
		                                       .tensor = from->physics.tensor,
		                                       .dram = from->physics.dram,
		                                       .nvlink = from->physics.nvlink};
	}
	if (!isnan(from->tokens_tps))
		job->physics.x1_tps = from->tokens_tps;
}

static void fill_places(const struct ww_scene *scene, const struct ww_scenario_job *from, struct ww_job *told)
{
	const struct ww_scenario *s = scene->scenario;
	size_t node = 0;
	for (uint32_t k = 0; k < from->n_gpus; k++) {
		while (from->gpus[k] >= s->nodes[node].first_gpu + s->nodes[node].gpus)
			node++;
		uint64_t id = scene->node_configs[node].id;
		if (told->n_places == 0 || told->places[told->n_places - 1].node != id)
			told->places[told->n_places++] = (struct ww_place){.node = id};
		told->places[told->n_places - 1].gpus |= 1u << (from->gpus[k] - s->nodes[node].first_gpu);
	}
}

static ww_status fill_job(struct ww_scene *scene, size_t i, struct ww_error *err)
{
	const struct ww_scenario_job *from = &scene->scenario->jobs[i];
	struct ww_job *told = &scene->told[i];
	scene->jobs[i] = (struct ww_sim_job){.id = i + 1,
	                                     .n_gpus = from->n_gpus,
	                                     .gpus = from->gpus,
	                                     .start_us = from->start_us,
	                                     .end_us = from->end_us,
	                                     .checkpoint = pause_of(&from->checkpoint),
	                                     .evaluation = pause_of(&from->evaluation),
	                                     .jitter_frac = from->jitter_frac};
	*told = (struct ww_job){
		.id = i + 1, .tier = (int32_t)from->tier, .floor_frac = from->floor_frac, .weight = from->weight};
	snprintf(told->name, sizeof told->name, "%s", from->name);
	fill_places(scene, from, told);
	if (from->model == WW_SCENARIO_SWEEP)
		return fill_points(scene, i, err);
	fill_physics(scene, from, &scene->jobs[i]);
	return WW_OK;
}

static ww_status fill_jobs(struct ww_scene *scene, struct ww_error *err)
{
	size_t n = scene->scenario->n_jobs;
	ww_status status = WW_OK;
	scene->jobs = ww_cli_alloc(n, sizeof *scene->jobs);
	scene->sweeps = ww_cli_alloc(n, sizeof *scene->sweeps);
	scene->told = ww_cli_alloc(n, sizeof *scene->told);
	scene->known_curves = ww_cli_alloc(n, sizeof *scene->known_curves);
	scene->true_curves = ww_cli_alloc(n, sizeof *scene->true_curves);
	scene->free_tps = ww_cli_alloc(n, sizeof *scene->free_tps);
	for (size_t i = 0; i < n && !status; i++)
		status = fill_job(scene, i, err);
	return status;
}

/* ---- What is known of the jobs ------------------------------------------------------------------------------------------- */

/* A rehearsal: what it takes and throughput under caps near each cut, with noise, also in the baseline. */
static void fit(const struct ww_scene *scene, const ww_plant *plant, uint32_t j, struct ww_curve *out)
{
	const struct ww_scenario_curves *curves = &scene->scenario->curves;
	const struct ww_curve *truth = &scene->true_curves[j];
	struct ww_fit_point points[WW_SCENARIO_CUTS_MAX];
	struct ww_rng rng;
	size_t n = 0;
	seed_for(&rng, scene->seed, scene->told[j].name, 1);
	double t0_tps = truth->t0_tps * (1 + curves->noise_frac * ww_rng_normal(&rng));
	double free_w = ww_plant_free_cap_w(plant, j), last_w = free_w;
	for (size_t i = 0; i < curves->n_cuts; i++) {
		double cap_w = fmax(free_w * (1 - curves->cut_frac[i]), scene->scenario->gpu.min_w);
		double noise = curves->noise_frac * ww_rng_normal(&rng), power_w, tps;
		if (cap_w >= last_w)
			break;
		ww_plant_try(plant, j, cap_w, &power_w, &tps);
		double needs_w = scene->scenario->trim == WW_TRIM_ON ? power_w : cap_w;
		points[n++] = (struct ww_fit_point){1 - needs_w / truth->p0_w, 1 - tps * (1 + noise) / t0_tps};
		last_w = cap_w;
	}
	const struct ww_fit what = {points, n, fmax(curves->noise_frac, LEAST_NOISE), .p0_w = truth->p0_w,
	                            .t0_tps = t0_tps};
	if (n == 0 || ww_curve_fit(&what, out, NULL))
		out->status = -1;
}

/* Under equal caps the GPUs of a job wait for the slowest and draw less than their caps. Where control moves watts between
 * them until none does, what counts is what each needs; where it does not, their caps. */
static void learn_job(struct ww_scene *scene, const ww_plant *plant, uint32_t j)
{
	struct ww_curve *truth = &scene->true_curves[j], *known = &scene->known_curves[j];
	double power_w;
	ww_plant_try(plant, j, scene->scenario->gpu.max_w, &power_w, &scene->free_tps[j]);
	if (ww_plant_curve(plant, j, scene->scenario->trim == WW_TRIM_ON, truth, NULL)) {
		truth->status = known->status = -1;
		return;
	}
	*known = *truth;
	if (scene->scenario->curves.kind == WW_CURVES_NONE)
		known->status = -1;
	else if (scene->scenario->curves.kind == WW_CURVES_FITTED)
		fit(scene, plant, j, known);
}

static ww_status learn(struct ww_scene *scene, struct ww_error *err)
{
	ww_plant *plant;
	ww_status status = ww_plant_create(&scene->plant, &plant, err);
	if (status)
		return status;
	for (uint32_t j = 0; j < scene->plant.n_jobs; j++)
		learn_job(scene, plant, j);
	ww_plant_destroy(plant);
	return WW_OK;
}

void ww_scene_tell_truth(struct ww_scene *scene, bool truth)
{
	for (uint32_t j = 0; j < scene->plant.n_jobs; j++) {
		const struct ww_curve *curve = truth ? &scene->true_curves[j] : &scene->known_curves[j];
		scene->told[j].has_curve = curve->status >= 0;
		scene->told[j].curve = *curve;
	}
}

/* ---- Events and faults --------------------------------------------------------------------------------------------------- */

static int64_t wall(int64_t us)
{
	return us == WW_NEVER_US ? WW_NEVER_US : WALL_START_US + us;
}

static uint32_t late_s(const struct ww_scenario_fault *fault)
{
	int64_t up_us = fault->by_us + WW_SECOND_US - 1;
	return fault->kind == WW_SCENARIO_METER_LATE ? (uint32_t)(up_us / WW_SECOND_US) : 0;
}

static void fill_scripts(struct ww_scene *scene)
{
	const struct ww_scenario *s = scene->scenario;
	uint64_t id = 0;
	scene->announcements = ww_cli_alloc(s->n_events, sizeof *scene->announcements);
	scene->faults = ww_cli_alloc(s->n_faults, sizeof *scene->faults);
	for (size_t i = 0; i < s->n_events; i++) {
		const struct ww_scenario_event *from = &s->events[i];
		id += from->version == 1;
		scene->announcements[i] = (struct ww_announcement){.at_us = from->at_us,
		                                                   .event = {.id = id,
		                                                             .version = from->version,
		                                                             .cancelled = from->cancelled,
		                                                             .row = scene->row_configs[from->row].id,
		                                                             .boundary = from->boundary,
		                                                             .cls = from->cls,
		                                                             .start_us = wall(from->start_us),
		                                                             .end_us = wall(from->end_us),
		                                                             .limit_w = from->limit_w,
		                                                             .cut_frac = from->cut_frac,
		                                                             .ramp_down_us = from->ramp_down_us,
		                                                             .ramp_up_us = from->ramp_up_us}};
	}
	scene->modes = ww_cli_alloc(s->n_modes, sizeof *scene->modes);
	for (size_t i = 0; i < s->n_modes; i++)
		scene->modes[i] = (struct ww_mode_change){s->modes[i].at_us, (enum ww_mode)s->modes[i].mode};
	for (size_t i = 0; i < s->n_faults; i++)
		scene->faults[i] = (struct ww_fault){.kind = (enum ww_fault_kind)s->faults[i].kind,
		                                     .at_us = s->faults[i].at_us,
		                                     .until_us = s->faults[i].until_us,
		                                     .node = s->faults[i].node,
		                                     .gpu = s->faults[i].gpu,
		                                     .value_w = s->faults[i].value_w,
		                                     .late_s = late_s(&s->faults[i])};
}

/* ---- The scene ----------------------------------------------------------------------------------------------------------- */

static void fill_specs(struct ww_scene *scene)
{
	const struct ww_scenario *s = scene->scenario;
	const struct ww_scenario_wire *wire = &s->wire;
	scene->plant = (struct ww_plant_spec){.seed = scene->seed,
	                                      .n_nodes = (uint32_t)s->n_nodes,
	                                      .n_rows = (uint32_t)s->n_rows,
	                                      .n_jobs = (uint32_t)s->n_jobs,
	                                      .nodes = scene->nodes,
	                                      .rows = scene->rows,
	                                      .jobs = scene->jobs};
	fill_board(&s->gpu, &scene->plant.board);
	scene->spec = (struct ww_world_spec){.seed = scene->seed,
	                                     .wall_start_us = WALL_START_US,
	                                     .period_us = s->period_us,
	                                     .reassert_lower = s->reassert_lower,
	                                     .plant = &scene->plant,
	                                     .config = &scene->config,
	                                     .jobs = scene->told,
	                                     .announcements = scene->announcements,
	                                     .n_announcements = s->n_events,
	                                     .faults = scene->faults,
	                                     .n_faults = s->n_faults,
	                                     .modes = scene->modes,
	                                     .n_modes = s->n_modes,
	                                     .wire = {.loss_frac = wire->loss_frac,
	                                              .double_frac = wire->double_frac,
	                                              .delay_least_us = wire->delay_least_us,
	                                              .delay_most_us = wire->delay_most_us,
	                                              .late_frac = wire->late_frac,
	                                              .late_most_us = wire->late_most_us}};
}

ww_status ww_scene_create(const struct ww_scenario *scenario, uint64_t seed, struct ww_scene **out,
                          struct ww_error *err)
{
	struct ww_scene *scene = ww_cli_alloc(1, sizeof *scene);
	scene->scenario = scenario;
	scene->seed = seed;
	fill_site(scene);
	fill_scripts(scene);
	ww_status status = fill_jobs(scene, err);
	fill_specs(scene);
	if (!status)
		status = learn(scene, err);
	if (status) {
		ww_scene_destroy(scene);
		return status;
	}
	ww_scene_tell_truth(scene, false);
	*out = scene;
	return WW_OK;
}

void ww_scene_destroy(struct ww_scene *scene)
{
	if (!scene)
		return;
	for (size_t i = 0; scene->sweeps && i < scene->scenario->n_jobs; i++)
		ww_sweep_finish(&scene->sweeps[i]);
	void *all[] = {
		scene->nodes,       scene->rows,          scene->loads,        scene->jobs,        scene->sweeps,
		scene->row_configs, scene->told,          scene->node_configs, scene->true_curves, scene->known_curves,
		scene->free_tps,    scene->announcements, scene->faults,       scene->modes,       scene};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		free(all[i]);
}

size_t ww_scene_main_event(const struct ww_scene *scene)
{
	const struct ww_scenario *s = scene->scenario;
	size_t number = 0;
	for (size_t i = 0; i < s->n_events; i++) {
		number += s->events[i].version == 1;
		if (s->rows[s->events[i].row].n_loads == s->n_nodes)
			return number - 1;
	}
	return s->n_events > 0 ? 0 : SIZE_MAX;
}
