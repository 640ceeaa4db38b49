/* SPDX-License-Identifier: Apache-2.0 */
/* What a simulation says to people. */
#include "cli/simulate_internal.h"

#include <math.h>
#include <stdlib.h>

#define LEAST_SHOWN 0.0005 /* of the baseline, of watts that are left unused for one more reason */
#define MOSTLY 0.95        /* of the minutes behind a baseline: where less was measured, people are told */

static const struct {
	enum ww_division division;
	const char *name;
} rows[] = {{WW_DIVISION_EQUAL, "equal cut"}, {WW_DIVISION_AUTO, "wattweir"}, {WW_DIVISION_EXACT, "oracle"}};
#define N_ROWS (sizeof rows / sizeof rows[0])

char *ww_text_time(double seconds, char out[WW_TEXT_TIME])
{
	long s = lround(seconds);
	snprintf(out, WW_TEXT_TIME, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
	return out;
}

const char *ww_boundary_words(uint8_t boundary)
{
	static const char *const words[WW_N_BOUNDARIES] = {"at the GPUs", "at the IT equipment", "at the meter"};
	return words[boundary];
}

/* ---- Power --------------------------------------------------------------------------------------------------------------- */

static void print_heading(const struct ww_simulated *s, const struct ww_event_run *e, FILE *out)
{
	char start[WW_TEXT_TIME], end[WW_TEXT_TIME], *name = ww_text_clean(e->told->name, 60);
	char *row = ww_text_clean(s->scene->scenario->rows[e->told->row].name, 60);
	fprintf(out, "%s: %s, %s, %s to %s\n", name, row, ww_boundary_words(e->told->boundary),
	        ww_text_time(e->first, start), e->told->end_us == WW_NEVER_US ? "open end" : ww_text_time(e->end, end));
	free(name);
	free(row);
}

static const char *watts(double w, char out[WW_TEXT_NUMBER])
{
	return isfinite(w) ? ww_text_thousands(w, out) : "-";
}

static const char *percent(double frac, char out[WW_TEXT_NUMBER])
{
	if (!isfinite(frac))
		return "-";
	snprintf(out, WW_TEXT_NUMBER, "%.1f %%", 100 * frac);
	return out;
}

static void print_cut(const struct ww_simulated *s, const struct ww_event_run *e, const struct ww_event_figures *f,
                      FILE *out)
{
	char baseline[WW_TEXT_NUMBER], budget[WW_TEXT_NUMBER], over[WW_TEXT_NUMBER], asked[WW_TEXT_NUMBER],
		given[WW_TEXT_NUMBER];
	if (isnan(f->baseline_w))
		fprintf(out, "  cut             a budget of %s W; nothing is known of the time before\n",
		        watts(f->budget_w, budget));
	else if (f->budget_w >= f->baseline_w)
		fprintf(out, "  cut             none asked: a budget of %s W is not below the %s W before it\n",
		        watts(f->budget_w, budget), watts(f->baseline_w, baseline));
	else
		fprintf(out, "  cut             %s asked of %s W, a budget of %s W; %s given\n",
		        percent(1 - f->budget_w / f->baseline_w, asked), watts(f->baseline_w, baseline),
		        watts(f->budget_w, budget), percent(1 - f->mean_w / f->baseline_w, given));
	if (!isnan(e->told->cut_frac) && e->measured_frac < MOSTLY)
		fprintf(out, "  baseline        the meter told of %.0f of the 600 s behind it\n",
		        600 * e->measured_frac);
	fprintf(out, "  worst second    %s W (%s) %s the budget\n", watts(fabs(f->worst_over_w), over),
	        percent(fabs(f->worst_over_w) / f->budget_w, asked), f->worst_over_w > 0 ? "ABOVE" : "below");
	if (f->missing_w > 0) {
		char *row = ww_text_clean(s->scene->scenario->rows[e->told->row].name, 60);
		fprintf(out, "  INFEASIBLE      %s W are missing on %s with every GPU at its lowest cap\n",
		        watts(ceil(f->missing_w), over), row);
		free(row);
	}
}

static const char *when(double from_start_s, char out[WW_TEXT_TIME])
{
	if (from_start_s == 0)
		return "at";
	char seconds[WW_TEXT_NUMBER];
	snprintf(out, WW_TEXT_TIME, "%.15s s %s", ww_text_thousands(fabs(from_start_s), seconds),
	         from_start_s < 0 ? "before" : "after");
	return out;
}

/* "5 min"; nothing without a ramp. */
static const char *ramp(const struct ww_event_run *e, double until_s, char out[WW_TEXT_TIME + 32])
{
	int64_t ramp_s = ww_ramp_down_us(e->told) / WW_SECOND_US;
	out[0] = '\0';
	if (ramp_s > 0)
		snprintf(out, WW_TEXT_TIME + 32, ", %s a ramp of %lld %s", until_s < (double)ramp_s ? "in" : "after",
		         (long long)(ramp_s % 60 ? ramp_s : ramp_s / 60), ramp_s % 60 ? "s" : "min");
	return out;
}

static void print_time(const struct ww_event_run *e, const struct ww_event_figures *f, FILE *out)
{
	char begins[WW_TEXT_TIME], below[WW_TEXT_TIME], how[WW_TEXT_TIME + 32];
	char target[WW_TEXT_NUMBER], most[WW_TEXT_NUMBER];
	fprintf(out, "  cut begins      due %s the event's start; ", when(f->begins_s, begins));
	if (isnan(f->first_below_s))
		fputs("power was NEVER under the limit\n", out);
	else
		fprintf(out, "power was first under the limit %s the start%s\n", when(f->first_below_s, below),
		        ramp(e, f->first_below_s, how));
	if (isnan(f->to_target_s))
		fputs("  at the target   NEVER for good\n", out);
	else if (f->to_target_s > 0)
		fprintf(out, "  at the target   %s s after the start; 95 %% of the cut after %s s\n",
		        watts(f->to_target_s, target), watts(f->to_most_s, most));
	else
		fputs("  at the target   from the first second of the event on\n", out);
}

/* Why the tokens/s of before may never come again. */
static void print_lost(const struct ww_run *run, size_t event, FILE *out)
{
	uint32_t ended = ww_jobs_lost(run, event, WW_SIM_ENDED), dark = ww_jobs_lost(run, event, WW_SIM_DARK);
	fputs("NOT back at 99 %", out);
	if (ended + dark > 0)
		fputs(": of the jobs of before ", out);
	if (ended > 0)
		fprintf(out, "%u %s ended", ended, ended == 1 ? "has" : "have");
	if (dark > 0)
		fprintf(out, "%s%u %s a machine without power", ended > 0 ? ", " : "", dark,
		        dark == 1 ? "has" : "have");
	fputc('\n', out);
}

static void print_after(const struct ww_run *run, size_t event, const struct ww_event_figures *f, FILE *out)
{
	char back[WW_TEXT_NUMBER];
	if (!isfinite(f->snapback_frac))
		return;
	fprintf(out, "  afterwards      highest minute %.1f %% of the highest before; tokens/s ",
	        100 * f->snapback_frac);
	if (isnan(f->back_s))
		print_lost(run, event, out);
	else
		fprintf(out, "back at 99 %% after %s s\n", ww_text_thousands(f->back_s, back));
}

static void print_broken(const struct ww_simulated *s, const struct ww_run *run, size_t event, FILE *out)
{
	const char *lead = "BROKEN: ";
	for (uint32_t j = 0; j < run->n_jobs; j++) {
		if (!ww_job_broke(s->scene, run, event, j))
			continue;
		char *name = ww_text_clean(s->scene->told[j].name, 40);
		fprintf(out, "%s%s keeps %.1f %% of %.0f %%", lead, name, 100 * ww_job_kept(s->scene, run, event, j),
		        100 * s->scene->told[j].floor_frac);
		free(name);
		lead = ", ";
	}
	fputc('\n', out);
}

static void print_kept(const struct ww_simulated *s, size_t event, bool all, FILE *out)
{
	const struct ww_run *run = s->runs[WW_DIVISION_AUTO];
	uint32_t gone = ww_jobs_gone(run, event);
	fputs(all ? "all kept, under the equal cut and by the oracle as well" : "all kept", out);
	if (gone > 0)
		fprintf(out, "; %u of %u jobs %s not there to the end", gone, run->n_jobs, gone == 1 ? "was" : "were");
	fputc('\n', out);
}

/* Those of wattweir's run, and of the others where they are broken. */
static void print_floors(const struct ww_simulated *s, size_t event, FILE *out)
{
	bool kept[WW_N_RUNS], all = true;
	for (int i = 0; i < WW_N_RUNS; i++) {
		kept[i] = ww_floors_broken(s->scene, s->runs[i], event) == 0;
		all = all && kept[i];
	}
	fputs("  floors          ", out);
	if (kept[WW_DIVISION_AUTO])
		print_kept(s, event, all, out);
	else
		print_broken(s, s->runs[WW_DIVISION_AUTO], event, out);
	for (size_t i = 0; i < N_ROWS; i++) {
		if (rows[i].division == WW_DIVISION_AUTO || kept[rows[i].division])
			continue;
		fprintf(out, "  %-14s  floors ", rows[i].name);
		print_broken(s, s->runs[rows[i].division], event, out);
	}
}

/* Always that of pauses, and of the others what there is. */
static void print_unused(const struct ww_event_figures *f, FILE *out)
{
	static const char *const words[WW_N_DIPS] = {"in pauses of jobs", "where jobs have ended",
	                                             "by machines without power"};
	char unused[WW_TEXT_NUMBER], dips[WW_TEXT_NUMBER];
	fprintf(out, "  left unused     %s of the baseline; beside that %s %s", percent(f->unused_frac, unused),
	        percent(f->dip_frac[WW_DIP_PAUSE], dips), words[WW_DIP_PAUSE]);
	for (int dip = WW_DIP_PAUSE + 1; dip < WW_N_DIPS; dip++)
		if (f->dip_frac[dip] >= LEAST_SHOWN)
			fprintf(out, ", %s %s", percent(f->dip_frac[dip], dips), words[dip]);
	fputc('\n', out);
}

static void print_event(const struct ww_simulated *s, size_t i, FILE *out)
{
	const struct ww_run *run = s->runs[WW_DIVISION_AUTO];
	const struct ww_event_run *e = &run->events[i];
	struct ww_event_figures f = ww_event_figures(run, i);
	const char *unmeasured = ww_event_unmeasured(run, i);
	char late[WW_TEXT_NUMBER];
	print_heading(s, e, out);
	if (e->announced > e->first)
		fprintf(out, "  announced       %s s after its start: it can be kept only from then on\n",
		        watts(e->announced - e->first, late));
	if (unmeasured) {
		fprintf(out, "  not measured    %s\n", unmeasured);
		return;
	}
	print_cut(s, e, &f, out);
	print_time(e, &f, out);
	print_unused(&f, out);
	print_after(run, i, &f, out);
	print_floors(s, i, out);
}

static void print_invariants(const struct ww_run *run, FILE *out)
{
	char seconds[WW_TEXT_NUMBER], without[WW_TEXT_NUMBER];
	bool always = run->led == run->seconds;
	if (ww_broken(run) == 0)
		fprintf(out,
		        "  safety          kept in all %s s%s: limits within charges, charges within budgets or "
		        "their excess told\n",
		        ww_text_thousands(run->led, seconds), always ? "" : " with a controller in charge");
	else
		fprintf(out, "  safety          BROKEN %llu times, first: %s\n", (unsigned long long)ww_broken(run),
		        run->account.first);
	if (!always)
		fprintf(out, "  no controller   in charge in %s s\n",
		        ww_text_thousands(run->seconds - run->led, without));
}

static void print_modes(const struct ww_scenario *s, FILE *out)
{
	char at[WW_TEXT_TIME];
	for (size_t i = 0; i < s->n_modes; i++)
		fprintf(out, "  %-14s  told at %s\n", ww_mode_name((enum ww_mode)s->modes[i].mode),
		        ww_text_time((double)s->modes[i].at_us / 1e6, at));
}

static void print_missing(const struct ww_simulated *s, FILE *out)
{
	const struct ww_run *run = s->runs[WW_DIVISION_AUTO];
	for (uint32_t r = 0; r < run->n_rows; r++) {
		const struct ww_row_missing *row = &run->rows[r];
		char most[WW_TEXT_NUMBER], seconds[WW_TEXT_NUMBER], first[WW_TEXT_TIME], last[WW_TEXT_TIME];
		if (row->seconds == 0)
			continue;
		char *name = ww_text_clean(s->scene->scenario->rows[r].name, 60);
		fprintf(out, "  SHORT OF WATTS  %s: up to %s W were missing, in %s s from %s to %s; power was ", name,
		        ww_text_thousands(ceil(row->most_w), most), ww_text_thousands(row->seconds, seconds),
		        ww_text_time(row->first, first), ww_text_time(row->last + 1.0, last));
		if (row->over_w > 0)
			fprintf(out, "up to %s W ABOVE the budget then\n", ww_text_thousands(ceil(row->over_w), most));
		else
			fputs("within the budget all the time\n", out);
		free(name);
	}
}

/* ---- Tokens ---------------------------------------------------------------------------------------------------------------- */

static const char *objective_words(const struct ww_simulated *s)
{
	static const char *const words[] = {[WW_OBJECTIVE_RELATIVE] = "mean",
	                                    [WW_OBJECTIVE_TOKENS] = "tokens",
	                                    [WW_OBJECTIVE_LOG] = "log mean",
	                                    [WW_OBJECTIVE_MAXMIN] = "least"};
	return words[s->scene->scenario->objective];
}

static void print_gains(const struct ww_simulated *s, FILE *out)
{
	struct ww_gains gains = ww_gains(s);
	const char *objective = ww_objective_name((enum ww_objective)s->scene->scenario->objective);
	if (isnan(gains.recovered_frac))
		fprintf(out,
		        "By the objective %s the oracle is less than 0.4 points above the equal cut: there is nothing "
		        "to recover.\n",
		        objective);
	else
		fprintf(out,
		        "Of what the oracle keeps beyond the equal cut, by the objective %s, wattweir keeps %.0f %%.\n",
		        objective, 100 * gains.recovered_frac);
	if (ww_above_oracle(s))
		fprintf(out, "%s\n", ww_above_oracle(s));
	if (ww_fewer_tokens(s))
		fprintf(out, "%s\n", ww_fewer_tokens(s));
}

static void add_tokens(ww_table *table, const struct ww_simulated *s, enum ww_division division, bool before)
{
	const struct ww_run *run = s->runs[division];
	double full = ww_event_tps(s->scene, s->runs[WW_DIVISION_AUTO], s->main_event, true);
	double tps = ww_event_tps(s->scene, run, s->main_event, before);
	char number[WW_TEXT_NUMBER];
	ww_table_text(table, "%s", watts(tps, number));
	ww_table_number(table, 100 * tps / full, 1);
	if (s->scene->scenario->objective != WW_OBJECTIVE_TOKENS)
		ww_table_number(table, 100 * ww_event_value(s->scene, run, s->main_event, before).kept_frac, 1);
}

static void print_tokens(const struct ww_simulated *s, FILE *out)
{
	const struct ww_column columns[] = {{"", "", WW_LEFT},
	                                    {"tokens/s", "", WW_RIGHT},
	                                    {"kept", "%", WW_RIGHT},
	                                    {"objective", objective_words(s), WW_RIGHT}};
	ww_table *table = ww_table_create(columns, s->scene->scenario->objective == WW_OBJECTIVE_TOKENS ? 3 : 4);
	ww_table_text(table, s->runs[WW_DIVISION_AUTO]->events[s->main_event].first > 0 ? "before" : "uncapped");
	add_tokens(table, s, WW_DIVISION_AUTO, true);
	for (size_t i = 0; i < N_ROWS; i++) {
		ww_table_text(table, "%s", rows[i].name);
		add_tokens(table, s, rows[i].division, false);
	}
	ww_table_print(table, out);
	ww_table_destroy(table);
	print_gains(s, out);
}

/* The most that was moved from one GPU of the job, and to one. */
static void add_trim(ww_table *table, const struct ww_simulated *s, uint32_t j)
{
	const struct ww_sim_job *job = &s->scene->jobs[j];
	double least_w = 0, most_w = 0;
	for (uint32_t k = 0; k < job->n_gpus; k++) {
		least_w = fmin(least_w, s->runs[WW_DIVISION_AUTO]->caps[job->gpus[k]].trim_w);
		most_w = fmax(most_w, s->runs[WW_DIVISION_AUTO]->caps[job->gpus[k]].trim_w);
	}
	if (s->runs[WW_DIVISION_AUTO]->ends[j].cap_w > 0 && most_w > 0)
		ww_table_text(table, "%.0f to %+.0f", least_w, most_w);
	else
		ww_table_text(table, "-");
}

static void print_jobs(const struct ww_simulated *s, FILE *out)
{
	static const struct ww_column columns[] = {
		{"job", "", WW_LEFT},     {"GPUs", "", WW_RIGHT},   {"cut", "%", WW_RIGHT},
		{"cap", "W", WW_RIGHT},   {"moved", "W", WW_RIGHT}, {"tokens", "%", WW_RIGHT},
		{"equal", "%", WW_RIGHT}, {"floor", "%", WW_RIGHT}, {"why", "", WW_LEFT}};
	const struct ww_run *run = s->runs[WW_DIVISION_AUTO], *equal = s->runs[WW_DIVISION_EQUAL];
	ww_table *table = ww_table_create(columns, sizeof columns / sizeof columns[0]);
	for (uint32_t j = 0; j < run->n_jobs; j++) {
		const struct ww_job_end *end = &run->ends[j];
		double kept = ww_job_kept(s->scene, run, s->main_event, j);
		char number[WW_TEXT_NUMBER];
		ww_table_text(table, "%s", s->scene->told[j].name);
		ww_table_text(table, "%s", ww_text_thousands(s->scene->jobs[j].n_gpus, number));
		ww_table_number(table, end->cap_w > 0 ? 100 * end->cut_frac : NAN, 1);
		ww_table_number(table, end->cap_w > 0 ? end->cap_w : NAN, 0);
		add_trim(table, s, j);
		ww_table_number(table, 100 * kept, 1);
		ww_table_number(table, 100 * ww_job_kept(s->scene, equal, s->main_event, j), 1);
		ww_table_number(table, 100 * s->scene->told[j].floor_frac, 0);
		ww_table_text(table, "%s", end->cap_w > 0 ? ww_end_why_text(s->scene, run, j, end->why) : "not there");
	}
	fputc('\n', out);
	ww_table_print(table, out);
	ww_table_destroy(table);
}

/* ---- The whole ------------------------------------------------------------------------------------------------------------- */

/* With several events it is to be seen which one is meant. */
static void print_tables(const struct ww_simulated *s, FILE *out)
{
	const struct ww_run *run = s->runs[WW_DIVISION_AUTO];
	char *name = ww_text_clean(run->events[s->main_event].told->name, 60);
	fputc('\n', out);
	if (ww_event_unmeasured(run, s->main_event)) {
		fprintf(out, "Nothing is compared, as %s is not measured.\n", name);
	} else {
		if (run->n_events > 1)
			fprintf(out, "Both tables are about %s:\n\n", name);
		print_tokens(s, out);
		print_jobs(s, out);
	}
	free(name);
}

static void print_head(const struct ww_simulated *s, FILE *out)
{
	const struct ww_scenario *scenario = s->scene->scenario;
	char *name = ww_text_clean(scenario->name, 60), length[WW_TEXT_TIME];
	char gpus[WW_TEXT_NUMBER], nodes[WW_TEXT_NUMBER], jobs[WW_TEXT_NUMBER];
	fprintf(out, "%s: %s GPUs on %s nodes, %s jobs, %s; seed %llu\n\n", name,
	        ww_text_thousands(scenario->n_gpus, gpus), ww_text_thousands((double)scenario->n_nodes, nodes),
	        ww_text_thousands((double)scenario->n_jobs, jobs),
	        ww_text_time(s->runs[WW_DIVISION_AUTO]->seconds, length), (unsigned long long)s->scene->seed);
	free(name);
}

void ww_simulated_print(const struct ww_simulated *s, FILE *out)
{
	const struct ww_run *run = s->runs[WW_DIVISION_AUTO];
	bool has_event = s->main_event < run->n_events;
	print_head(s, out);
	if (has_event) {
		print_event(s, s->main_event, out);
	}
	print_invariants(run, out);
	print_modes(s->scene->scenario, out);
	print_missing(s, out);
	for (uint32_t i = 0; i < run->n_events; i++) {
		if (i == s->main_event)
			continue;
		fputc('\n', out);
		print_event(s, i, out);
	}
	if (has_event)
		print_tables(s, out);
	else
		fputs("There is no event in this scenario, so there is nothing to compare.\n", out);
	ww_faults_print(s->scene, run, out);
	ww_held_print(s->scene, run, out);
}
