/* SPDX-License-Identifier: Apache-2.0 */
/* One run of a scene, and what is measured in it: on the plant, second by second. */
#include "cli/simulate_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BEFORE_S 3600
#define SETTLE_MORE_US (5 * WW_SECOND_US)
#define LEAD_MORE_US (2 * WW_SECOND_US) /* control begins a cut so long before settle */
#define NO_JOB UINT32_MAX

/* What the run has to remember from second to second. */
struct walk {
	struct ww_scene *scene;
	struct ww_run *run;
	size_t main_event;
	enum ww_sim_state *states;        /* of each job at the end of the last second */
	double *rate_tps;                 /* of each job when it ran last */
	uint32_t *owner;                  /* per GPU: the job that holds it or held it last */
	uint32_t *node_of;                /* per GPU */
	double *ran_w;                    /* per GPU: its draw when its job ran last */
	double (*node_dips_w)[WW_N_DIPS]; /* of the GPUs of each node */
	struct missing {
		uint32_t seconds; /* without a break until now */
		double over_w;    /* in them */
	} * missing;              /* per row */
};

/* ---- Events ------------------------------------------------------------------------------------------------------------ */

static uint32_t seconds_up(int64_t us)
{
	return (uint32_t)((us + WW_SECOND_US - 1) / WW_SECOND_US);
}

int64_t ww_ramp_down_us(const struct ww_scenario_event *e)
{
	return e->cls == WW_CLASS_PROTECTION ? 0 : e->ramp_down_us;
}

static int64_t ramp_up_of(const struct ww_scenario_event *e)
{
	return e->cls == WW_CLASS_PROTECTION ? 0 : e->ramp_up_us;
}

static uint32_t within(uint32_t v, uint32_t lo, uint32_t hi)
{
	return v < lo ? lo : v > hi ? hi : v;
}

static int64_t grace_us(const struct ww_scene *scene)
{
	return scene->config.settle_us + SETTLE_MORE_US;
}

/* When it was told that it begins: by its first version, or by one that came after its own start. */
static int64_t announced_us(const struct ww_scenario_event *told)
{
	const struct ww_scenario_event *first = told - (told->version - 1);
	int64_t at_us = first->at_us;
	for (const struct ww_scenario_event *v = first + 1; v <= told; v++)
		if (v->at_us > v->start_us && v[-1].start_us > v->at_us)
			at_us = v->at_us;
	return at_us;
}

static void time_event(const struct ww_scene *scene, uint32_t seconds, struct ww_event_run *e)
{
	const struct ww_scenario_event *told = e->told;
	int64_t end_us = told->cancelled && told->at_us < told->end_us ? told->at_us : told->end_us;
	int64_t ramp_us = ww_ramp_down_us(told), told_us = announced_us(told);
	int64_t from_us = told->start_us + (ramp_us > 0 ? ramp_us : grace_us(scene));
	int64_t begins_us = told->start_us - scene->config.settle_us - LEAD_MORE_US;
	if (told_us > told->start_us && told_us + grace_us(scene) > from_us)
		from_us = told_us + grace_us(scene);
	begins_us = begins_us > told_us ? begins_us : told_us;
	e->announced = within(seconds_up(told_us), 0, seconds);
	e->begins = within(seconds_up(begins_us), 0, seconds);
	e->first = within(seconds_up(told->start_us), 0, seconds);
	e->end = end_us == WW_NEVER_US ? seconds : within((uint32_t)(end_us / WW_SECOND_US), e->first, seconds);
	e->from = within(seconds_up(from_us), e->first, e->end);
	e->over = e->end + seconds_up(ramp_up_of(told));
}

static void start_events(const struct ww_scene *scene, struct ww_run *run)
{
	const struct ww_scenario *s = scene->scenario;
	run->events = ww_cli_alloc(s->n_events, sizeof *run->events);
	for (size_t i = 0; i < s->n_events; i++) {
		run->n_events += s->events[i].version == 1;
		run->events[run->n_events - 1].told = &s->events[i];
	}
	for (uint32_t i = 0; i < run->n_events; i++) {
		struct ww_event_run *e = &run->events[i];
		time_event(scene, run->seconds, e);
		e->baseline_w = e->measured_frac = e->limit_w = e->missing_w = NAN;
		e->power_w = ww_cli_alloc(run->seconds, sizeof *e->power_w);
		e->budget_w = ww_cli_alloc(run->seconds, sizeof *e->budget_w);
		e->dips_w = ww_cli_alloc(run->seconds, sizeof *e->dips_w);
		e->before = ww_cli_alloc(run->n_jobs, sizeof *e->before);
		e->during = ww_cli_alloc(run->n_jobs, sizeof *e->during);
	}
}

/* The newest version told; NULL before the first announcement. */
static const struct ww_announcement *version_at(const struct ww_scene *scene, uint64_t id, int64_t at_us)
{
	const struct ww_announcement *found = NULL;
	for (size_t i = 0; i < scene->spec.n_announcements; i++)
		if (scene->announcements[i].event.id == id && scene->announcements[i].at_us <= at_us)
			found = &scene->announcements[i];
	return found;
}

static double limit_of(const struct ww_event_run *e, double limit_w, double cut_frac)
{
	return isnan(limit_w) ? (1 - cut_frac) * e->baseline_w : limit_w;
}

/* By one version, with the ramps; NAN where there is none. */
static double budget_by(const struct ww_scene *scene, const struct ww_event_run *e, const struct ww_announcement *told,
                        int64_t wall_us)
{
	const struct ww_event *v = told ? &told->event : NULL;
	int64_t told_us = told ? scene->spec.wall_start_us + told->at_us : 0;
	if (!v || wall_us < v->start_us || (v->cancelled && told_us < v->start_us))
		return NAN;
	bool ramps = v->cls != WW_CLASS_PROTECTION;
	int64_t down_us = ramps ? v->ramp_down_us : 0, up_us = ramps ? v->ramp_up_us : 0;
	int64_t end_us = v->cancelled && told_us < v->end_us ? told_us : v->end_us;
	double limit_w = limit_of(e, v->limit_w, v->cut_frac), left = 0;
	if (wall_us >= end_us) {
		if (wall_us - end_us >= up_us)
			return NAN;
		left = (double)(wall_us - end_us) / (double)up_us;
	} else if (wall_us - v->start_us < down_us) {
		left = 1 - (double)(wall_us - v->start_us) / (double)down_us;
	}
	return limit_w + left * fmax(0, (isnan(e->baseline_w) ? limit_w : e->baseline_w) - limit_w);
}

/* A change may be followed for as long as an event that is announced late. */
static double budget_at(const struct ww_scene *scene, const struct ww_event_run *e, uint64_t id, uint32_t second)
{
	int64_t at_us = second * WW_SECOND_US, wall_us = scene->spec.wall_start_us + at_us + WW_SECOND_US / 2;
	double now_w = budget_by(scene, e, version_at(scene, id, at_us), wall_us);
	double old_w = budget_by(scene, e, version_at(scene, id, at_us - grace_us(scene)), wall_us);
	return isnan(now_w) ? now_w : fmax(now_w, old_w);
}

/* What is missing counts as it was said last while it was in force, or before. */
static void hear_of_event(struct ww_event_run *e, uint64_t id, const struct ww_decision *d)
{
	for (uint32_t i = 0; d && i < d->n_events; i++) {
		const struct ww_event_decision *event = &d->events[i];
		if (event->id != id)
			continue;
		if (!isnan(event->baseline_w))
			e->baseline_w = event->baseline_w;
		e->measured_frac = event->measured_frac;
		if (!isnan(event->missing_w) && event->state <= WW_EVENT_ACTIVE)
			e->missing_w = event->missing_w;
	}
	e->limit_w = limit_of(e, e->told->limit_w, e->told->cut_frac);
}

double ww_at_boundary(const struct ww_scene *scene, const struct ww_scenario_event *told, uint32_t node)
{
	double w = 1;
	if (told->boundary >= WW_BOUNDARY_IT)
		w *= 1 + scene->nodes[node].follow;
	if (told->boundary >= WW_BOUNDARY_METER)
		w *= 1 + scene->rows[told->row].cooling;
	return w;
}

static void measure_event(const struct walk *walk, uint32_t i, const struct ww_world_second *s)
{
	struct ww_event_run *e = &walk->run->events[i];
	const struct ww_sim_row *row = &walk->scene->rows[e->told->row];
	uint32_t second = ww_second_of(s);
	hear_of_event(e, i + 1, s->decision);
	e->led += s->decision && second >= e->announced && second < e->end;
	e->power_w[second] = ww_plant_row_w(s->plant, e->told->row, e->told->boundary);
	e->budget_w[second] = budget_at(walk->scene, e, i + 1, second);
	for (size_t k = 0; k < row->n_loads; k++) {
		uint32_t node = row->loads[k].node;
		double of_node = row->loads[k].frac * ww_at_boundary(walk->scene, e->told, node);
		for (int dip = 0; dip < WW_N_DIPS; dip++) {
			double w = of_node * walk->node_dips_w[node][dip];
			e->dips_w[second] += w;
			if (second >= e->from && second < e->end)
				e->dips_ws[dip] += w;
		}
	}
}

/* A baseline that became known late counts for all of the event. */
static void complete_budgets(const struct ww_scene *scene, struct ww_run *run)
{
	for (uint32_t i = 0; i < run->n_events; i++)
		for (uint32_t second = 0; second < run->seconds; second++)
			run->events[i].budget_w[second] = budget_at(scene, &run->events[i], i + 1, second);
}

double ww_run_budget_w(const struct ww_scene *scene, const struct ww_run *run, uint32_t second)
{
	size_t event = ww_scene_main_event(scene);
	double least_w = NAN;
	if (event >= run->n_events)
		return NAN;
	const struct ww_scenario_event *told = run->events[event].told;
	const struct ww_scenario_row *row = &scene->scenario->rows[told->row];
	for (uint32_t i = 0; i < run->n_events; i++) {
		const struct ww_event_run *e = &run->events[i];
		if (e->told->row == told->row && e->told->boundary == told->boundary)
			least_w = fmin(least_w, e->budget_w[second]);
	}
	return row->boundary == told->boundary && row->limit_w < least_w ? row->limit_w : least_w;
}

/* ---- Rows ------------------------------------------------------------------------------------------------------------------ */

uint32_t ww_settled_s(const struct ww_scene *scene)
{
	return seconds_up(grace_us(scene));
}

/* The most by which the true power of a row is above its own limit or what an event asks for. */
static double over_of(const struct walk *walk, uint32_t r, const struct ww_world_second *s)
{
	const struct ww_scenario_row *row = &walk->scene->scenario->rows[r];
	uint32_t second = ww_second_of(s);
	double over_w = ww_plant_row_w(s->plant, r, row->boundary) - row->limit_w;
	for (uint32_t i = 0; i < walk->run->n_events; i++) {
		const struct ww_event_run *e = &walk->run->events[i];
		if (e->told->row == r && second >= e->from && second < e->end)
			over_w = fmax(over_w, e->power_w[second] - e->budget_w[second]);
	}
	return over_w;
}

static void add_missing(struct ww_row_missing *row, const struct missing *now, uint32_t second, bool begins)
{
	if (row->seconds == 0)
		*row = (struct ww_row_missing){.first = second + 1 - now->seconds, .over_w = NAN};
	row->seconds += begins ? now->seconds : 1;
	row->last = second;
	row->over_w = fmax(row->over_w, now->over_w);
}

/* Watts count where even the guard is spent. While nobody is in charge nothing is known of the charges: what was missing
 * before still is, but is not counted. */
static void measure_rows(const struct walk *walk, const struct ww_world_second *s)
{
	uint32_t settled_s = ww_settled_s(walk->scene);
	for (uint32_t r = 0; s->decision && r < walk->run->n_rows; r++) {
		struct ww_row_missing *row = &walk->run->rows[r];
		struct missing *now = &walk->missing[r];
		double missing_w = s->decision->rows[r].missing_w;
		if (!(missing_w > s->decision->rows[r].guard_w)) {
			now->seconds = 0;
			continue;
		}
		now->over_w = now->seconds > 0 ? fmax(now->over_w, over_of(walk, r, s)) : over_of(walk, r, s);
		now->seconds++;
		if (now->seconds <= settled_s)
			continue;
		add_missing(row, now, ww_second_of(s), now->seconds == settled_s + 1);
		row->most_w = fmax(row->most_w, missing_w);
	}
}

/* ---- Jobs ------------------------------------------------------------------------------------------------------------------ */

static bool holds(enum ww_sim_state state)
{
	return state != WW_SIM_WAITING && state != WW_SIM_ENDED;
}

static bool is_there(enum ww_sim_state state)
{
	return holds(state) && state != WW_SIM_DARK;
}

static double cap_of(const struct ww_world_second *s, uint32_t gpu)
{
	double cap_w = ww_plant_enforced_w(s->plant, gpu);
	return cap_w > 0 || !s->decision ? cap_w : (double)s->decision->gpus[gpu].charge_w;
}

static enum ww_dip dip_of(const struct ww_world_second *s, uint32_t j, uint32_t gpu)
{
	enum ww_sim_state state = ww_plant_job_state(s->plant, j);
	if (state == WW_SIM_DARK || ww_plant_enforced_w(s->plant, gpu) == 0)
		return WW_DIP_DARK;
	return holds(state) ? WW_DIP_PAUSE : WW_DIP_ENDED;
}

/* Watts that a GPU would draw under its cap if its job ran. */
static void add_dip(const struct walk *walk, const struct ww_world_second *s, uint32_t j, uint32_t gpu)
{
	double would_w = fmin(walk->ran_w[gpu], cap_of(s, gpu));
	walk->node_dips_w[walk->node_of[gpu]][dip_of(s, j, gpu)] += fmax(0, would_w - ww_plant_gpu_w(s->plant, gpu));
}

static void measure_gpus(const struct walk *walk, const struct ww_world_second *s, uint32_t j, bool ran)
{
	const struct ww_sim_job *job = &walk->scene->jobs[j];
	for (uint32_t k = 0; k < job->n_gpus; k++) {
		uint32_t gpu = job->gpus[k];
		if (ran)
			walk->ran_w[gpu] = ww_plant_gpu_w(s->plant, gpu);
		else if (walk->owner[gpu] == j)
			add_dip(walk, s, j, gpu);
	}
}

static void add_means(const struct ww_run *run, uint32_t second, uint32_t j, const struct ww_job_mean *now)
{
	for (uint32_t i = 0; i < run->n_events; i++) {
		const struct ww_event_run *e = &run->events[i];
		struct ww_job_mean *to = NULL;
		if (second >= e->from && second < e->end)
			to = &e->during[j];
		else if (second < e->first && second + BEFORE_S >= e->first)
			to = &e->before[j];
		if (!to)
			continue;
		to->tps += now->tps;
		to->ran += now->ran;
		to->held += now->held;
		to->to = now->to > 0 ? now->to : to->to;
	}
}

static void measure_jobs(const struct walk *walk, const struct ww_world_second *s)
{
	struct ww_run *run = walk->run;
	uint32_t second = ww_second_of(s);
	memset(walk->node_dips_w, 0, walk->scene->plant.n_nodes * sizeof *walk->node_dips_w);
	for (uint32_t j = 0; j < run->n_jobs; j++)
		for (uint32_t k = 0; holds(ww_plant_job_state(s->plant, j)) && k < walk->scene->jobs[j].n_gpus; k++)
			walk->owner[walk->scene->jobs[j].gpus[k]] = j;
	for (uint32_t j = 0; j < run->n_jobs; j++) {
		enum ww_sim_state state = ww_plant_job_state(s->plant, j);
		bool ran = state == WW_SIM_RUNNING && walk->states[j] == WW_SIM_RUNNING;
		double tps = ww_plant_job_tps(s->plant, j);
		if (ran || !holds(state))
			walk->rate_tps[j] = tps;
		run->tps[second] += tps;
		run->rate_tps[second] += walk->rate_tps[j];
		measure_gpus(walk, s, j, ran);
		add_means(run, second, j,
		          &(struct ww_job_mean){ran ? tps : 0, ran, holds(state), is_there(state) ? second + 1 : 0});
		walk->states[j] = state;
	}
}

static uint8_t why_of_most(const struct walk *walk, const struct ww_decision *d, uint32_t j)
{
	const struct ww_sim_job *job = &walk->scene->jobs[j];
	uint32_t count[WW_N_WHYS] = {0};
	int best = 0;
	for (uint32_t k = 0; k < job->n_gpus; k++)
		count[d->gpus[job->gpus[k]].why]++;
	for (int why = 1; why < WW_N_WHYS; why++)
		best = count[why] > count[best] ? why : best;
	return (uint8_t)best;
}

/* Jobs of a decision are in ascending id, and those of a scene too; some may not have begun. */
static void measure_ends(const struct walk *walk, const struct ww_world_second *s)
{
	for (uint32_t i = 0; s->decision && i < s->decision->n_jobs; i++) {
		const struct ww_job_decision *d = &s->decision->jobs[i];
		uint32_t j = (uint32_t)d->id - 1;
		const struct ww_sim_job *job = &walk->scene->jobs[j];
		struct ww_job_end *end = &walk->run->ends[j];
		*end = (struct ww_job_end){.cut_frac = d->cut_frac,
		                           .equal_cut_frac = d->equal_cut_frac,
		                           .promised_frac = d->throughput_frac,
		                           .kept_floor_frac = d->kept_floor_frac,
		                           .why = why_of_most(walk, s->decision, j)};
		for (uint32_t k = 0; k < job->n_gpus; k++) {
			uint32_t gpu = job->gpus[k];
			const struct ww_gpu_decision *told = &s->decision->gpus[gpu];
			walk->run->caps[gpu] = (struct ww_cap_end){ww_plant_enforced_w(s->plant, gpu),
			                                           (double)told->trim_w, told->why};
			end->cap_w += walk->run->caps[gpu].cap_w / job->n_gpus;
		}
	}
}

/* ---- The run ------------------------------------------------------------------------------------------------------------- */

static ww_status live(struct walk *walk, ww_world *world, const struct ww_run_watch *watch, struct ww_error *err)
{
	struct ww_run *run = walk->run;
	/* The decision of its very last second may already be one for what follows. */
	uint32_t last = walk->main_event < run->n_events ? run->events[walk->main_event].end : run->seconds;
	last = last > 1 ? last - 2 : 0;
	for (uint32_t second = 0; second < run->seconds; second++) {
		struct ww_world_second s;
		if (watch && watch->journal && second == watch->journal_from && second > 0)
			ww_world_begin_journal(world, watch->journal);
		ww_status status = ww_world_second(world, &s, err);
		if (status)
			return status;
		run->account = ww_world_account(world);
		run->led += s.decision != NULL;
		ww_faults_measure(walk->scene, run, world, &s);
		ww_held_measure(walk->scene, run, world, &s);
		measure_jobs(walk, &s);
		for (uint32_t i = 0; i < run->n_events; i++)
			measure_event(walk, i, &s);
		measure_rows(walk, &s);
		if (second == last)
			measure_ends(walk, &s);
		if (watch && watch->second && (status = watch->second(watch->ctx, walk->scene, run, &s, err)))
			return status;
	}
	return WW_OK;
}

static ww_status walk_through(struct walk *walk, const struct ww_run_watch *watch, struct ww_error *err)
{
	struct ww_run *run = walk->run;
	uint32_t n_gpus = walk->scene->scenario->n_gpus;
	walk->states = ww_cli_alloc(run->n_jobs, sizeof *walk->states);
	walk->rate_tps = ww_cli_alloc(run->n_jobs, sizeof *walk->rate_tps);
	walk->owner = ww_cli_alloc(n_gpus, sizeof *walk->owner);
	walk->node_of = ww_cli_alloc(n_gpus, sizeof *walk->node_of);
	walk->ran_w = ww_cli_alloc(n_gpus, sizeof *walk->ran_w);
	walk->node_dips_w = ww_cli_alloc(walk->scene->plant.n_nodes, sizeof *walk->node_dips_w);
	walk->missing = ww_cli_alloc(run->n_rows, sizeof *walk->missing);
	for (uint32_t node = 0, g = 0; node < walk->scene->plant.n_nodes; node++)
		for (uint32_t i = 0; i < walk->scene->nodes[node].n_gpus; i++)
			walk->node_of[g++] = node;
	for (uint32_t g = 0; g < n_gpus; g++)
		walk->owner[g] = NO_JOB;
	for (uint32_t j = 0; j < run->n_jobs; j++)
		walk->states[j] = WW_SIM_RUNNING; /* of one that begins at 0 the first second counts */
	ww_world *world = NULL;
	ww_status status = ww_world_create(&walk->scene->spec, &world, err);
	if (!status)
		status = live(walk, world, watch, err);
	ww_world_destroy(world);
	memcpy(run->states, walk->states, run->n_jobs * sizeof *run->states);
	complete_budgets(walk->scene, run);
	free(walk->states);
	free(walk->rate_tps);
	free(walk->owner);
	free(walk->node_of);
	free(walk->ran_w);
	free(walk->node_dips_w);
	free(walk->missing);
	return status;
}

ww_status ww_run_create(struct ww_scene *scene, enum ww_division division, const struct ww_run_watch *watch,
                        struct ww_run **out, struct ww_error *err)
{
	struct ww_run *run = ww_cli_alloc(1, sizeof *run);
	struct walk walk = {.scene = scene, .run = run, .main_event = ww_scene_main_event(scene)};
	run->division = division;
	run->seconds = (uint32_t)(scene->scenario->duration_us / WW_SECOND_US);
	run->n_jobs = scene->plant.n_jobs;
	run->n_rows = scene->plant.n_rows;
	run->rows = ww_cli_alloc(run->n_rows, sizeof *run->rows);
	run->tps = ww_cli_alloc(run->seconds, sizeof *run->tps);
	run->rate_tps = ww_cli_alloc(run->seconds, sizeof *run->rate_tps);
	run->ends = ww_cli_alloc(run->n_jobs, sizeof *run->ends);
	run->states = ww_cli_alloc(run->n_jobs, sizeof *run->states);
	run->caps = ww_cli_alloc(scene->scenario->n_gpus, sizeof *run->caps);
	start_events(scene, run);
	ww_faults_begin(scene, run);
	ww_held_begin(scene, run);
	scene->spec.division = division;
	scene->spec.journal = watch && watch->journal_from == 0 ? watch->journal : NULL;
	ww_scene_tell_truth(scene, division == WW_DIVISION_EXACT);
	ww_status status = walk_through(&walk, watch, err);
	if (status) {
		ww_run_destroy(run);
		return status;
	}
	*out = run;
	return WW_OK;
}

void ww_run_destroy(struct ww_run *run)
{
	if (!run)
		return;
	for (uint32_t i = 0; i < run->n_events; i++) {
		const struct ww_event_run *e = &run->events[i];
		free(e->power_w);
		free(e->budget_w);
		free(e->dips_w);
		free(e->before);
		free(e->during);
	}
	ww_faults_end(run);
	free(run->events);
	free(run->held);
	free(run->rows);
	free(run->tps);
	free(run->rate_tps);
	free(run->ends);
	free(run->states);
	free(run->caps);
	free(run);
}
