/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a simulation, from what its runs measured. */
#include "cli/simulate_internal.h"

#include <math.h>

#define HOUR_S 3600
#define MINUTE_S 60
#define MOST_OF_CUT 0.95
#define BACK 0.99         /* of the tokens/s before */
#define LEAST_TOLD 0.0005 /* of a value that is above or below another one */
#define SAME_CUT 0.001
#define LEAST_GAP 0.004 /* of the objective, between equal cut and oracle; as in wattweir compare */
/* Of throughput: rounding of caps, and what power that jitters loses at the highest cap. */
#define FLOOR_TOLERANCE 0.002
#define FLOOR_TOLERANCE_PER_JITTER 0.4

/* ---- Power --------------------------------------------------------------------------------------------------------------- */

static double mean_of(const double *v, uint32_t from, uint32_t to)
{
	double sum = 0;
	for (uint32_t i = from; i < to; i++)
		sum += v[i];
	return to > from ? sum / (to - from) : NAN;
}

/* The highest mean of a whole minute. */
static double highest_minute(const double *v, uint32_t from, uint32_t to)
{
	double most = NAN;
	for (uint32_t i = from; i + MINUTE_S <= to; i += MINUTE_S)
		most = fmax(most, mean_of(v, i, i + MINUTE_S));
	return most;
}

static uint32_t hour_before(uint32_t second)
{
	return second > HOUR_S ? second - HOUR_S : 0;
}

static uint32_t hour_after(const struct ww_run *run, uint32_t second)
{
	return run->seconds - second > HOUR_S ? second + HOUR_S : run->seconds;
}

/* Seconds from the start until power stays within `share` of the cut to the end; NAN = never. */
static double time_to(const struct ww_event_run *e, double share)
{
	uint32_t since = e->end;
	while (since > e->first) {
		uint32_t at = since - 1;
		double top_w = e->budget_w[at] + (1 - share) * fmax(0, e->baseline_w - e->budget_w[at]);
		if (!(e->power_w[at] <= (share < 1 ? top_w : e->budget_w[at])))
			break;
		since--;
	}
	return since < e->end ? since - e->first : NAN;
}

/* The seconds before the start that hold the limit without a break, but not from before the cut begins; without such the
 * first one that holds it. NAN = none does. */
static double first_below(const struct ww_event_run *e)
{
	uint32_t at = e->first;
	while (at < e->end && !(e->power_w[at] <= e->limit_w))
		at++;
	while (at <= e->first && at > e->begins && e->power_w[at - 1] <= e->limit_w)
		at--;
	return at < e->end ? (double)at - e->first : NAN;
}

/* Pauses count before and after. */
static double back_after(const struct ww_run *run, const struct ww_event_run *e)
{
	double wanted_tps = BACK * mean_of(run->tps, hour_before(e->first), e->first);
	for (uint32_t at = e->over; at >= MINUTE_S && at <= run->seconds; at++)
		if (mean_of(run->tps, at - MINUTE_S, at) >= wanted_tps)
			return at - e->over;
	return NAN;
}

static void find_unused(const struct ww_event_run *e, struct ww_event_figures *f)
{
	double unused_w = 0, dips_w = 0;
	for (uint32_t i = e->from; i < e->end; i++) {
		unused_w += fmax(0, e->budget_w[i] - e->power_w[i] - e->dips_w[i]);
		dips_w += e->dips_w[i];
	}
	double n = e->end > e->from && !isnan(e->limit_w) ? e->end - e->from : NAN;
	f->unused_frac = unused_w / n / f->baseline_w;
	f->dips_frac = dips_w / n / f->baseline_w;
	for (int dip = 0; dip < WW_N_DIPS; dip++)
		f->dip_frac[dip] = e->dips_ws[dip] / n / f->baseline_w;
}

struct ww_event_figures ww_event_figures(const struct ww_run *run, size_t event)
{
	const struct ww_event_run *e = &run->events[event];
	uint32_t before = hour_before(e->first);
	struct ww_event_figures f = {.baseline_w = e->baseline_w,
	                             .measured_frac = e->measured_frac,
	                             .budget_w = e->limit_w,
	                             .before_w = mean_of(e->power_w, before, e->first),
	                             .mean_w = mean_of(e->power_w, e->from, e->end),
	                             .worst_over_w = NAN,
	                             .to_target_s = time_to(e, 1),
	                             .to_most_s = time_to(e, MOST_OF_CUT),
	                             .begins_s = (double)e->begins - e->first,
	                             .first_below_s = first_below(e),
	                             .back_s = back_after(run, e),
	                             .missing_w = e->missing_w};
	for (uint32_t i = e->from; i < e->end; i++)
		f.worst_over_w = fmax(f.worst_over_w, e->power_w[i] - e->budget_w[i]);
	if (isnan(f.baseline_w))
		f.baseline_w = f.before_w;
	find_unused(e, &f);
	f.snapback_frac = highest_minute(e->power_w, e->end, hour_after(run, e->end)) /
	                  highest_minute(e->power_w, before, e->first);
	return f;
}

const char *ww_event_unmeasured(const struct ww_run *run, size_t event)
{
	const struct ww_event_run *e = &run->events[event];
	if (isnan(e->limit_w) && e->led == 0)
		return "no controller was in charge to take it";
	if (isnan(e->limit_w))
		return "no baseline was known when it was announced: give a limit in watts or announce it later";
	return e->end <= e->from ? "never in force long enough to be measured" : NULL;
}

/* ---- Tokens ---------------------------------------------------------------------------------------------------------------- */

static double mean_tps(const struct ww_job_mean *mean)
{
	return mean->ran > 0 ? mean->tps / mean->ran : NAN;
}

static double before_tps(const struct ww_scene *scene, const struct ww_event_run *e, uint32_t j)
{
	double tps = mean_tps(&e->before[j]);
	return isnan(tps) ? scene->free_tps[j] : tps;
}

double ww_event_tps(const struct ww_scene *scene, const struct ww_run *run, size_t event, bool before)
{
	double sum = 0;
	if (event >= run->n_events || run->events[event].end <= run->events[event].from)
		return NAN;
	const struct ww_event_run *e = &run->events[event];
	for (uint32_t j = 0; j < run->n_jobs; j++) {
		if (e->during[j].ran == 0)
			continue;
		double share = (double)e->during[j].held / (e->end - e->from);
		sum += share * (before ? before_tps(scene, e, j) : mean_tps(&e->during[j]));
	}
	return sum;
}

double ww_job_kept(const struct ww_scene *scene, const struct ww_run *run, size_t event, uint32_t job)
{
	const struct ww_event_run *e = &run->events[event];
	return mean_tps(&e->during[job]) / scene->free_tps[job];
}

bool ww_job_broke(const struct ww_scene *scene, const struct ww_run *run, size_t event, uint32_t job)
{
	double tolerance = FLOOR_TOLERANCE + FLOOR_TOLERANCE_PER_JITTER * scene->jobs[job].jitter_frac;
	return ww_job_kept(scene, run, event, job) < scene->told[job].floor_frac - tolerance;
}

uint32_t ww_floors_broken(const struct ww_scene *scene, const struct ww_run *run, size_t event)
{
	uint32_t n = 0;
	for (uint32_t j = 0; j < run->n_jobs; j++)
		n += ww_job_broke(scene, run, event, j);
	return n;
}

uint32_t ww_jobs_gone(const struct ww_run *run, size_t event)
{
	const struct ww_event_run *e = &run->events[event];
	uint32_t n = 0;
	for (uint32_t j = 0; j < run->n_jobs; j++)
		n += e->during[j].held > 0 && e->during[j].to < e->end;
	return n;
}

uint32_t ww_jobs_lost(const struct ww_run *run, size_t event, enum ww_sim_state state)
{
	uint32_t n = 0;
	for (uint32_t j = 0; j < run->n_jobs; j++)
		n += run->events[event].before[j].ran > 0 && run->states[j] == state;
	return n;
}

struct ww_worst ww_worst(const struct ww_scene *scene, const struct ww_run *run)
{
	struct ww_worst worst = {.over_w = NAN, .to_target_s = NAN};
	bool never = false;
	for (uint32_t i = 0; i < run->n_events; i++) {
		struct ww_event_figures f = ww_event_figures(run, i);
		if (ww_event_unmeasured(run, i))
			continue;
		worst.over_w = fmax(worst.over_w, f.worst_over_w);
		worst.to_target_s = fmax(worst.to_target_s, f.to_target_s);
		never = never || isnan(f.to_target_s);
	}
	for (uint32_t j = 0; j < run->n_jobs; j++) {
		bool broke = false;
		for (uint32_t i = 0; i < run->n_events && !broke; i++)
			broke = ww_job_broke(scene, run, i, j);
		worst.floors_broken += broke;
	}
	worst.to_target_s = never ? NAN : worst.to_target_s;
	return worst;
}

struct ww_value ww_event_value(const struct ww_scene *scene, const struct ww_run *run, size_t event, bool before)
{
	const struct ww_event_run *e = &run->events[event];
	uint32_t objective = scene->scenario->objective;
	double sum = 0, full = 0, least = NAN;
	for (uint32_t j = 0; j < run->n_jobs; j++) {
		double weight = scene->told[j].weight * e->during[j].held / (e->end - e->from);
		double kept = ww_job_kept(scene, run, event, j);
		if (isnan(kept))
			continue;
		kept = before ? before_tps(scene, e, j) / scene->free_tps[j] : kept;
		weight *= objective == WW_OBJECTIVE_TOKENS ? scene->free_tps[j] : 1;
		least = fmin(least, 1 - scene->told[j].weight * (1 - kept));
		sum += weight * (objective == WW_OBJECTIVE_LOG ? log(kept) : kept);
		full += weight;
	}
	if (objective == WW_OBJECTIVE_MAXMIN)
		return (struct ww_value){least, least};
	return (struct ww_value){sum, objective == WW_OBJECTIVE_LOG ? exp(sum / full) : sum / full};
}

const char *ww_end_why_text(const struct ww_scene *scene, const struct ww_run *run, uint32_t job, uint8_t why)
{
	const struct ww_job_end *end = &run->ends[job];
	const struct ww_curve *known = &scene->known_curves[job];
	double measured_frac = known->status >= 0 ? known->max_cut_frac : 0;
	bool at_equal = end->cut_frac >= end->equal_cut_frac - SAME_CUT && end->cut_frac > measured_frac + SAME_CUT;
	if (why == WW_WHY_BOX && at_equal)
		return "at the equal cut, which is deeper than was measured for its job";
	return ww_why_text((enum ww_why)why);
}

struct ww_gains ww_gains(const struct ww_simulated *s)
{
	struct ww_value value[WW_N_RUNS];
	for (int i = 0; i < WW_N_RUNS; i++)
		value[i] = ww_event_value(s->scene, s->runs[i], s->main_event, false);
	const struct ww_value *equal = &value[WW_DIVISION_EQUAL], *oracle = &value[WW_DIVISION_EXACT];
	struct ww_gains gains = {value[WW_DIVISION_AUTO].sum - equal->sum, oracle->sum - equal->sum, NAN};
	if (oracle->kept_frac - equal->kept_frac >= LEAST_GAP)
		gains.recovered_frac = gains.gain / gains.gap;
	return gains;
}

const char *ww_above_oracle(const struct ww_simulated *s)
{
	double kept[WW_N_RUNS];
	for (int i = 0; i < WW_N_RUNS; i++)
		kept[i] = ww_event_value(s->scene, s->runs[i], s->main_event, false).kept_frac;
	return kept[WW_DIVISION_AUTO] > kept[WW_DIVISION_EXACT] + LEAST_TOLD ? WW_ABOVE_ORACLE : NULL;
}

const char *ww_fewer_tokens(const struct ww_simulated *s)
{
	double made = ww_event_tps(s->scene, s->runs[WW_DIVISION_AUTO], s->main_event, false);
	double equal = ww_event_tps(s->scene, s->runs[WW_DIVISION_EQUAL], s->main_event, false);
	if (s->scene->scenario->objective == WW_OBJECTIVE_TOKENS || !(made < equal * (1 - LEAST_TOLD)))
		return NULL;
	return "The equal cut makes more tokens/s, which are not the objective: 'objective: tokens' makes that sum the "
	       "goal.";
}

/* ---- The outcome ------------------------------------------------------------------------------------------------------------ */

uint64_t ww_broken(const struct ww_run *run)
{
	return run->account.broken_a + run->account.broken_b + run->account.broken_c;
}

static bool event_needs_attention(const struct ww_simulated *s, uint32_t i)
{
	const struct ww_run *run = s->runs[WW_DIVISION_AUTO];
	struct ww_event_figures f = ww_event_figures(run, i);
	if (ww_event_unmeasured(run, i))
		return isnan(run->events[i].limit_w);
	return f.worst_over_w > 0 || f.missing_w > 0 || isnan(f.to_target_s) || ww_floors_broken(s->scene, run, i) > 0;
}

bool ww_needs_attention(const struct ww_simulated *s)
{
	const struct ww_run *run = s->runs[WW_DIVISION_AUTO];
	bool bad = ww_broken(run) > 0;
	for (uint32_t r = 0; r < run->n_rows; r++)
		bad = bad || run->rows[r].seconds > 0;
	for (uint32_t i = 0; i < run->n_events; i++)
		bad = bad || event_needs_attention(s, i);
	for (uint32_t g = 0; g < s->scene->scenario->n_gpus; g++)
		bad = bad || ww_left_capped(s->scene, run, g);
	return bad;
}
