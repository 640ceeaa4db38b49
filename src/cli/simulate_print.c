/* SPDX-License-Identifier: Apache-2.0 */
/* What a simulation says to people. */
#include "cli/simulate_internal.h"

#include <math.h>
#include <stdlib.h>

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

static void print_cut(const struct ww_event_figures *f, FILE *out)
{
	char baseline[WW_TEXT_NUMBER], budget[WW_TEXT_NUMBER], over[WW_TEXT_NUMBER];
	fprintf(out, "  cut             %.1f %% asked of %s W, a budget of %s W; %.1f %% given\n",
	        100 * (1 - f->budget_w / f->baseline_w), ww_text_thousands(f->baseline_w, baseline),
	        ww_text_thousands(f->budget_w, budget), 100 * (1 - f->mean_w / f->baseline_w));
	fprintf(out, "  worst second    %s W (%.1f %%) %s the budget\n", ww_text_thousands(fabs(f->worst_over_w), over),
	        100 * fabs(f->worst_over_w) / f->budget_w, f->worst_over_w > 0 ? "ABOVE" : "below");
	if (f->missing_w > 0)
		fprintf(out, "  INFEASIBLE      %s W are missing with every GPU at its lowest cap\n",
		        ww_text_thousands(ceil(f->missing_w), over));
}

static void print_time(const struct ww_event_figures *f, FILE *out)
{
	if (isnan(f->to_target_s))
		fputs("  at the target   NEVER for good\n", out);
	else if (f->to_target_s > 0)
		fprintf(out, "  at the target   %.0f s after its start; 95 %% of the cut after %.0f s\n",
		        f->to_target_s, f->to_most_s);
	else
		fputs("  at the target   from its first second on\n", out);
}

static void print_event(const struct ww_simulated *s, size_t i, FILE *out)
{
	const struct ww_run *run = s->runs[WW_DIVISION_AUTO];
	const struct ww_event_run *e = &run->events[i];
	struct ww_event_figures f = ww_event_figures(run, i);
	print_heading(s, e, out);
	if (e->end <= e->from || isnan(f.budget_w)) {
		fputs("  never in force long enough to be measured\n", out);
		return;
	}
	print_cut(&f, out);
	print_time(&f, out);
	fprintf(out, "  left unused     %.1f %% of the baseline, and %.1f %% in pauses of jobs\n", 100 * f.unused_frac,
	        100 * f.dips_frac);
	if (isfinite(f.snapback_frac))
		fprintf(out, "  afterwards      highest minute %.1f %% of the highest before\n", 100 * f.snapback_frac);
}

static void print_floors(const struct ww_simulated *s, FILE *out)
{
	const struct ww_run *run = s->runs[WW_DIVISION_AUTO];
	const char *lead = "BROKEN: ";
	fputs("  floors          ", out);
	for (uint32_t j = 0; j < run->n_jobs; j++) {
		if (!ww_job_broke(s->scene, run, s->main_event, j))
			continue;
		char *name = ww_text_clean(s->scene->told[j].name, 40);
		fprintf(out, "%s%s keeps %.1f %% of %.0f %%", lead, name,
		        100 * ww_job_kept(s->scene, run, s->main_event, j), 100 * s->scene->told[j].floor_frac);
		free(name);
		lead = ", ";
	}
	fputs(*lead == 'B' ? "all kept\n" : "\n", out);
}

static void print_invariants(const struct ww_run *run, FILE *out)
{
	char seconds[WW_TEXT_NUMBER];
	if (ww_broken(run) == 0)
		fprintf(out, "  safety          kept in all %s s: limits within charges, charges within budgets\n",
		        ww_text_thousands(run->seconds, seconds));
	else
		fprintf(out, "  safety          BROKEN %llu times, first: %s\n", (unsigned long long)ww_broken(run),
		        run->account.first);
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
	double least = 0.001 * fabs(ww_event_value(s->scene, s->runs[WW_DIVISION_EQUAL], s->main_event).sum);
	if (gains.gap > least)
		fprintf(out,
		        "Of what the oracle keeps beyond the equal cut, by the objective %s, wattweir keeps %.0f %%.\n",
		        ww_objective_name((enum ww_objective)s->scene->scenario->objective),
		        100 * gains.gain / gains.gap);
	else
		fputs("The equal cut is as good as the oracle here.\n", out);
}

static void print_tokens(const struct ww_simulated *s, FILE *out)
{
	const struct ww_column columns[] = {{"", "", WW_LEFT},
	                                    {"tokens/s", "", WW_RIGHT},
	                                    {"kept", "%", WW_RIGHT},
	                                    {"objective", objective_words(s), WW_RIGHT}};
	double before = ww_event_tps(s->scene, s->runs[WW_DIVISION_AUTO], s->main_event, true);
	char number[WW_TEXT_NUMBER];
	ww_table *table = ww_table_create(columns, 4);
	ww_table_text(table, "before");
	ww_table_text(table, "%s", ww_text_thousands(before, number));
	ww_table_number(table, 100, 1);
	ww_table_number(table, 100, 1);
	for (size_t i = 0; i < N_ROWS; i++) {
		const struct ww_run *run = s->runs[rows[i].division];
		double tps = ww_event_tps(s->scene, run, s->main_event, false);
		ww_table_text(table, "%s", rows[i].name);
		ww_table_text(table, "%s", ww_text_thousands(tps, number));
		ww_table_number(table, 100 * tps / before, 1);
		ww_table_number(table, 100 * ww_event_value(s->scene, run, s->main_event).kept_frac, 1);
	}
	fputc('\n', out);
	ww_table_print(table, out);
	ww_table_destroy(table);
	print_gains(s, out);
}

static void print_jobs(const struct ww_simulated *s, FILE *out)
{
	static const struct ww_column columns[] = {
		{"job", "", WW_LEFT},      {"GPUs", "", WW_RIGHT},   {"cut", "%", WW_RIGHT},   {"cap", "W", WW_RIGHT},
		{"tokens", "%", WW_RIGHT}, {"equal", "%", WW_RIGHT}, {"floor", "%", WW_RIGHT}, {"why", "", WW_LEFT}};
	const struct ww_run *run = s->runs[WW_DIVISION_AUTO], *equal = s->runs[WW_DIVISION_EQUAL];
	ww_table *table = ww_table_create(columns, sizeof columns / sizeof columns[0]);
	for (uint32_t j = 0; j < run->n_jobs; j++) {
		const struct ww_job_end *end = &run->ends[j];
		double kept = ww_job_kept(s->scene, run, s->main_event, j);
		ww_table_text(table, "%s", s->scene->told[j].name);
		ww_table_text(table, "%u", s->scene->jobs[j].n_gpus);
		ww_table_number(table, end->cap_w > 0 ? 100 * end->cut_frac : NAN, 1);
		ww_table_number(table, end->cap_w > 0 ? end->cap_w : NAN, 0);
		ww_table_number(table, 100 * kept, 1);
		ww_table_number(table, 100 * ww_job_kept(s->scene, equal, s->main_event, j), 1);
		ww_table_number(table, 100 * s->scene->told[j].floor_frac, 0);
		ww_table_text(table, "%s", end->cap_w > 0 ? ww_why_text((enum ww_why)end->why) : "not there");
	}
	fputc('\n', out);
	ww_table_print(table, out);
	ww_table_destroy(table);
}

/* ---- The whole ------------------------------------------------------------------------------------------------------------- */

void ww_simulated_print(const struct ww_simulated *s, FILE *out)
{
	const struct ww_scenario *scenario = s->scene->scenario;
	const struct ww_run *run = s->runs[WW_DIVISION_AUTO];
	char *name = ww_text_clean(scenario->name, 60), length[WW_TEXT_TIME];
	fprintf(out, "%s: %u GPUs on %zu nodes, %zu jobs, %s; seed %llu\n\n", name, scenario->n_gpus, scenario->n_nodes,
	        scenario->n_jobs, ww_text_time(run->seconds, length), (unsigned long long)s->scene->seed);
	free(name);
	if (s->main_event >= run->n_events) {
		print_invariants(run, out);
		fputs("There is no event in this scenario, so there is nothing to compare.\n", out);
		return;
	}
	print_event(s, s->main_event, out);
	print_floors(s, out);
	print_invariants(run, out);
	for (uint32_t i = 0; i < run->n_events; i++) {
		if (i == s->main_event)
			continue;
		fputc('\n', out);
		print_event(s, i, out);
	}
	print_tokens(s, out);
	print_jobs(s, out);
}
