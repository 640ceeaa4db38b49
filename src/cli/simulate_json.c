/* SPDX-License-Identifier: Apache-2.0 */
/* What a simulation says to machines. */
#include "cli/simulate_internal.h"

#include <math.h>

static const char *const run_names[WW_N_RUNS] = {
	[WW_DIVISION_AUTO] = "wattweir", [WW_DIVISION_EQUAL] = "equal", [WW_DIVISION_EXACT] = "oracle"};

static void json_power(ww_json *json, const struct ww_event_figures *f)
{
	ww_json_number(json, "baseline_power_w", f->baseline_w);
	ww_json_number(json, "baseline_measured_frac", f->measured_frac);
	ww_json_number(json, "budget_w", f->budget_w);
	ww_json_number(json, "before_mean_power_w", f->before_w);
	ww_json_number(json, "event_mean_power_w", f->mean_w);
	ww_json_number(json, "worst_over_budget_w", f->worst_over_w);
	ww_json_number(json, "unused_frac", f->unused_frac);
	ww_json_number(json, "unused_dips_frac", f->dips_frac);
	ww_json_number(json, "unused_pauses_frac", f->dip_frac[WW_DIP_PAUSE]);
	ww_json_number(json, "unused_ended_frac", f->dip_frac[WW_DIP_ENDED]);
	ww_json_number(json, "unused_dark_frac", f->dip_frac[WW_DIP_DARK]);
	ww_json_number(json, "cut_begins_s", f->begins_s);
	ww_json_number(json, "first_below_s", f->first_below_s);
	ww_json_number(json, "time_to_target_s", f->to_target_s);
	ww_json_number(json, "time_to_95_s", f->to_most_s);
	ww_json_number(json, "snapback_max_frac", f->snapback_frac);
	ww_json_number(json, "back_s", f->back_s);
	ww_json_number(json, "missing_w", f->missing_w);
}

static void json_event(const struct ww_simulated *s, size_t i, ww_json *json)
{
	const struct ww_run *run = s->runs[WW_DIVISION_AUTO];
	const struct ww_scenario_event *told = run->events[i].told;
	struct ww_event_figures f = ww_event_figures(run, i);
	ww_json_begin_object(json, NULL);
	ww_json_text(json, "event", told->name);
	ww_json_text(json, "row", s->scene->scenario->rows[told->row].name);
	ww_json_text(json, "boundary", ww_boundary_name((enum ww_boundary)told->boundary));
	ww_json_number(json, "start_s", (double)told->start_us / 1e6);
	ww_json_number(json, "end_s", told->end_us == WW_NEVER_US ? NAN : (double)told->end_us / 1e6);
	ww_json_text(json, "not_measured", ww_event_unmeasured(run, i));
	json_power(json, &f);
	ww_json_count(json, "floors_broken", ww_floors_broken(s->scene, run, i));
	ww_json_end(json);
}

static void json_rows_missing(const struct ww_simulated *s, const struct ww_run *run, ww_json *json)
{
	ww_json_begin_array(json, "rows_missing");
	for (uint32_t r = 0; r < run->n_rows; r++) {
		if (run->rows[r].seconds == 0)
			continue;
		ww_json_begin_object(json, NULL);
		ww_json_text(json, "row", s->scene->scenario->rows[r].name);
		ww_json_number(json, "most_missing_w", run->rows[r].most_w);
		ww_json_count(json, "seconds", run->rows[r].seconds);
		ww_json_count(json, "first_s", run->rows[r].first);
		ww_json_count(json, "last_s", run->rows[r].last);
		ww_json_number(json, "worst_over_budget_w", run->rows[r].over_w);
		ww_json_end(json);
	}
	ww_json_end(json);
}

static void json_run(const struct ww_simulated *s, enum ww_division division, ww_json *json)
{
	const struct ww_run *run = s->runs[division];
	ww_json_begin_object(json, run_names[division]);
	if (s->main_event < run->n_events) {
		struct ww_event_figures f = ww_event_figures(run, s->main_event);
		json_power(json, &f);
		ww_json_count(json, "floors_broken", ww_floors_broken(s->scene, run, s->main_event));
	}
	ww_json_count(json, "invariant_broken", ww_broken(run));
	ww_json_text(json, "first_breach", run->account.first[0] ? run->account.first : NULL);
	json_rows_missing(s, run, json);
	ww_json_count(json, "led_s", run->led);
	ww_json_count(json, "steps", run->account.steps);
	ww_json_count(json, "commands", run->account.commands);
	ww_json_count(json, "writes", run->account.writes);
	ww_json_count(json, "alarms", run->account.alarms);
	ww_json_end(json);
}

/* Why a GPU has its cap, in words: the division, and the watts that were moved within its job. */
static void json_why(const struct ww_simulated *s, uint32_t j, const struct ww_cap_end *cap, ww_json *json)
{
	const char *why = ww_end_why_text(s->scene, s->runs[WW_DIVISION_AUTO], j, cap->why);
	char text[160];
	if (cap->trim_w > 0)
		snprintf(text, sizeof text, "%s; %+.0f W of its job's watts: a chip that needs more", why, cap->trim_w);
	else if (cap->trim_w < 0)
		snprintf(text, sizeof text, "%s; %+.0f W for chips of its job that need more", why, cap->trim_w);
	else
		snprintf(text, sizeof text, "%s", why);
	ww_json_text(json, "why", text);
}

static void json_caps(const struct ww_simulated *s, uint32_t j, ww_json *json)
{
	const struct ww_sim_job *job = &s->scene->jobs[j];
	ww_json_begin_array(json, "caps");
	for (uint32_t k = 0; s->runs[WW_DIVISION_AUTO]->ends[j].cap_w > 0 && k < job->n_gpus; k++) {
		const struct ww_cap_end *cap = &s->runs[WW_DIVISION_AUTO]->caps[job->gpus[k]];
		ww_json_begin_object(json, NULL);
		ww_json_count(json, "gpu", job->gpus[k]);
		ww_json_number(json, "cap_w", cap->cap_w);
		ww_json_number(json, "trim_w", cap->trim_w);
		json_why(s, j, cap, json);
		ww_json_end(json);
	}
	ww_json_end(json);
}

static void json_job(const struct ww_simulated *s, uint32_t j, ww_json *json)
{
	const struct ww_run *run = s->runs[WW_DIVISION_AUTO];
	const struct ww_job_end *end = &run->ends[j];
	ww_json_begin_object(json, NULL);
	ww_json_text(json, "job", s->scene->told[j].name);
	ww_json_count(json, "gpus", s->scene->jobs[j].n_gpus);
	ww_json_number(json, "floor_frac", s->scene->told[j].floor_frac);
	ww_json_number(json, "cut_frac", end->cut_frac);
	ww_json_number(json, "equal_cut_frac", end->equal_cut_frac);
	ww_json_number(json, "cap_w", end->cap_w);
	ww_json_number(json, "promised_frac", end->promised_frac);
	for (int i = 0; i < WW_N_RUNS; i++) {
		char key[32];
		snprintf(key, sizeof key, "kept_%s_frac", run_names[i]);
		ww_json_number(json, key,
		               s->main_event < run->n_events ? ww_job_kept(s->scene, s->runs[i], s->main_event, j)
		                                             : NAN);
	}
	ww_json_text(json, "why", ww_end_why_text(s->scene, run, j, end->why));
	json_caps(s, j, json);
	ww_json_end(json);
}

static void json_main_event(const struct ww_simulated *s, ww_json *json)
{
	const struct ww_run *run = s->runs[WW_DIVISION_AUTO];
	struct ww_event_figures f = ww_event_figures(run, s->main_event);
	struct ww_gains gains = ww_gains(s);
	const struct ww_scenario_event *told = run->events[s->main_event].told;
	ww_json_text(json, "event", told->name);
	ww_json_text(json, "boundary", ww_boundary_name((enum ww_boundary)told->boundary));
	ww_json_text(json, "objective", ww_objective_name((enum ww_objective)s->scene->scenario->objective));
	json_power(json, &f);
	ww_json_count(json, "floors_broken", ww_floors_broken(s->scene, run, s->main_event));
	ww_json_begin_object(json, "tps");
	ww_json_number(json, "baseline", ww_event_tps(s->scene, run, s->main_event, true));
	for (int i = 0; i < WW_N_RUNS; i++)
		ww_json_number(json, run_names[i], ww_event_tps(s->scene, s->runs[i], s->main_event, false));
	ww_json_end(json);
	ww_json_begin_object(json, "objective_kept_frac");
	for (int i = 0; i < WW_N_RUNS; i++)
		ww_json_number(json, run_names[i],
		               ww_event_value(s->scene, s->runs[i], s->main_event, false).kept_frac);
	ww_json_end(json);
	ww_json_number(json, "recovered_frac", gains.recovered_frac);
}

void ww_simulated_json(const struct ww_simulated *s, ww_json *json)
{
	const struct ww_run *run = s->runs[WW_DIVISION_AUTO];
	ww_json_text(json, "scenario", s->scene->scenario->name);
	ww_json_count(json, "seed", s->scene->seed);
	ww_json_count(json, "seconds", run->seconds);
	if (s->main_event < run->n_events)
		json_main_event(s, json);
	ww_json_count(json, "invariant_broken", ww_broken(run));
	ww_json_count(json, "led_s", run->led);
	json_rows_missing(s, run, json);
	ww_json_begin_array(json, "modes");
	for (size_t i = 0; i < s->scene->scenario->n_modes; i++) {
		const struct ww_scenario_mode *mode = &s->scene->scenario->modes[i];
		ww_json_begin_object(json, NULL);
		ww_json_number(json, "at_s", (double)mode->at_us / 1e6);
		ww_json_text(json, "mode", ww_mode_name((enum ww_mode)mode->mode));
		ww_json_end(json);
	}
	ww_json_end(json);
	ww_json_begin_array(json, "events");
	for (size_t i = 0; i < run->n_events; i++)
		json_event(s, i, json);
	ww_json_end(json);
	ww_json_begin_object(json, "runs");
	for (int i = 0; i < WW_N_RUNS; i++)
		json_run(s, (enum ww_division)i, json);
	ww_json_end(json);
	ww_faults_json(s->scene, run, json);
	ww_held_json(s->scene, run, json);
	ww_json_begin_array(json, "jobs");
	for (uint32_t j = 0; j < run->n_jobs; j++)
		json_job(s, j, json);
	ww_json_end(json);
}
