/* SPDX-License-Identifier: Apache-2.0 */
/* Many seeds of a scenario: one line for each, and what they come to together. */
#include "cli/simulate_internal.h"

#include <math.h>
#include <stdlib.h>

static const struct ww_column columns[] = {
	{"seed", "", WW_RIGHT},         {"worst second", "W below", WW_RIGHT}, {"at target", "after s", WW_RIGHT},
	{"unused", "%", WW_RIGHT},      {"equal", "kept %", WW_RIGHT},         {"wattweir", "kept %", WW_RIGHT},
	{"oracle", "kept %", WW_RIGHT}, {"recovered", "%", WW_RIGHT},          {"afterwards", "%", WW_RIGHT},
	{"floors", "broken", WW_RIGHT}, {"safety", "broken", WW_RIGHT},
};

/* Sums and extremes over the seeds: of all events, but what is kept and left unused of the main one. */
struct total {
	size_t n, n_unused, n_gaps, late;
	size_t floors[WW_N_RUNS]; /* broken */
	uint64_t broken;
	double gain, gap, worst_over_w, unused_frac, most_unused_frac, snapback_frac, to_target_s;
};

struct ww_seeds {
	ww_table *table;
	ww_json *json; /* NULL = for people */
	struct total total;
	char first[256]; /* breach of all */
};

ww_seeds *ww_seeds_create(bool json)
{
	ww_seeds *seeds = ww_cli_alloc(1, sizeof *seeds);
	seeds->table = ww_table_create(columns, sizeof columns / sizeof columns[0]);
	seeds->total =
		(struct total){.worst_over_w = NAN, .snapback_frac = NAN, .to_target_s = NAN, .most_unused_frac = NAN};
	if (json) {
		seeds->json = ww_json_create();
		ww_json_begin_array(seeds->json, "seeds");
	}
	return seeds;
}

void ww_seeds_destroy(ww_seeds *seeds)
{
	ww_table_destroy(seeds->table);
	ww_json_destroy(seeds->json);
	free(seeds);
}

static void add_whole(ww_table *table, double value)
{
	char number[WW_TEXT_NUMBER];
	ww_table_text(table, "%s", isfinite(value) ? ww_text_thousands(value, number) : "-");
}

static void add_row(ww_table *table, const struct ww_simulated *s, const struct ww_event_figures *f,
                    const struct ww_worst *worst)
{
	static const enum ww_division order[] = {WW_DIVISION_EQUAL, WW_DIVISION_AUTO, WW_DIVISION_EXACT};
	const struct ww_run *run = s->runs[WW_DIVISION_AUTO];
	ww_table_text(table, "%llu", (unsigned long long)s->scene->seed);
	add_whole(table, -worst->over_w);
	add_whole(table, worst->to_target_s);
	ww_table_number(table, 100 * f->unused_frac, 2);
	for (size_t i = 0; i < 3; i++)
		ww_table_number(table,
		                100 * ww_event_value(s->scene, s->runs[order[i]], s->main_event, false).kept_frac, 1);
	ww_table_number(table, 100 * ww_gains(s).recovered_frac, 0);
	ww_table_number(table, isfinite(f->snapback_frac) ? 100 * f->snapback_frac : NAN, 1);
	ww_table_text(table, "%u", worst->floors_broken);
	ww_table_text(table, "%llu", (unsigned long long)ww_broken(run));
}

static void add_total(struct total *t, const struct ww_event_figures *f, const struct ww_worst *worst,
                      const struct ww_gains *gains)
{
	t->n++;
	t->late += isnan(worst->to_target_s);
	if (!isnan(gains->recovered_frac)) {
		t->n_gaps++;
		t->gain += gains->gain;
		t->gap += gains->gap;
	}
	if (!isnan(f->unused_frac)) {
		t->n_unused++;
		t->unused_frac += f->unused_frac;
	}
	t->worst_over_w = fmax(t->worst_over_w, worst->over_w);
	t->most_unused_frac = fmax(t->most_unused_frac, f->unused_frac);
	t->snapback_frac = fmax(t->snapback_frac, f->snapback_frac);
	t->to_target_s = fmax(t->to_target_s, worst->to_target_s);
}

void ww_seeds_add(ww_seeds *seeds, const struct ww_simulated *s)
{
	const struct ww_run *run = s->runs[WW_DIVISION_AUTO];
	seeds->total.broken += ww_broken(run);
	if (run->account.first[0] && !seeds->first[0])
		snprintf(seeds->first, sizeof seeds->first, "seed %llu: %.200s", (unsigned long long)s->scene->seed,
		         run->account.first);
	if (s->main_event < run->n_events) {
		struct ww_event_figures f = ww_event_figures(run, s->main_event);
		struct ww_gains gains = ww_gains(s);
		struct ww_worst worst = ww_worst(s->scene, run);
		for (int i = 0; i < WW_N_RUNS; i++)
			seeds->total.floors[i] += ww_worst(s->scene, s->runs[i]).floors_broken;
		add_total(&seeds->total, &f, &worst, &gains);
		add_row(seeds->table, s, &f, &worst);
	}
	if (!seeds->json)
		return;
	ww_json_begin_object(seeds->json, NULL);
	ww_simulated_json(s, seeds->json);
	ww_json_end(seeds->json);
}

static double mean_unused(const struct total *t)
{
	return t->n_unused > 0 ? t->unused_frac / (double)t->n_unused : NAN;
}

static void print_json(ww_seeds *seeds, FILE *out)
{
	const struct total *t = &seeds->total;
	ww_json_end(seeds->json);
	ww_json_number(seeds->json, "recovered_frac", t->gain / t->gap);
	ww_json_count(seeds->json, "seeds_without_gap", t->n - t->n_gaps);
	ww_json_number(seeds->json, "worst_over_budget_w", t->worst_over_w);
	ww_json_number(seeds->json, "unused_frac", mean_unused(t));
	ww_json_number(seeds->json, "unused_most_frac", t->most_unused_frac);
	ww_json_number(seeds->json, "time_to_target_s", t->late > 0 ? NAN : t->to_target_s);
	ww_json_number(seeds->json, "snapback_max_frac", t->snapback_frac);
	ww_json_count(seeds->json, "floors_broken", t->floors[WW_DIVISION_AUTO]);
	ww_json_count(seeds->json, "invariant_broken", t->broken);
	ww_json_print(seeds->json, out);
}

static void print_sums(const struct total *t, FILE *out)
{
	char watts[WW_TEXT_NUMBER];
	fputs("\nW below the budget; a negative number is above it. Worst and last of all events count.\n", out);
	if (t->n_gaps > 0)
		fprintf(out, "Over all seeds wattweir keeps %.0f %% of what the oracle keeps beyond the equal cut.\n",
		        100 * t->gain / t->gap);
	if (t->n_gaps > 0 && t->gain > t->gap)
		fprintf(out, "%s\n", WW_ABOVE_ORACLE);
	if (t->n_gaps < t->n)
		fprintf(out,
		        "In %zu of %zu seeds the oracle is less than 0.4 points above the equal cut; they are left out "
		        "of what is recovered.\n",
		        t->n - t->n_gaps, t->n);
	if (!isnan(t->worst_over_w))
		fprintf(out, "The worst second is %s W %s the budget.\n",
		        ww_text_thousands(fabs(t->worst_over_w), watts), t->worst_over_w > 0 ? "ABOVE" : "below");
	if (!isnan(mean_unused(t)))
		fprintf(out, "On average %.1f %% of the baseline is left unused.\n", 100 * mean_unused(t));
	fprintf(out, "Floors broken: %zu, under the equal cut %zu, by the oracle %zu. Safety broken: %llu.\n",
	        t->floors[WW_DIVISION_AUTO], t->floors[WW_DIVISION_EQUAL], t->floors[WW_DIVISION_EXACT],
	        (unsigned long long)t->broken);
}

void ww_seeds_print(ww_seeds *seeds, FILE *out)
{
	if (seeds->json) {
		print_json(seeds, out);
		return;
	}
	ww_table_print(seeds->table, out);
	if (seeds->total.n > 0)
		print_sums(&seeds->total, out);
	if (seeds->first[0])
		fprintf(out, "First breach: %s\n", seeds->first);
}
