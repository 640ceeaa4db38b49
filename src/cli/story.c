/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison in three sentences. Each must stay true for every input: see tests/integration. */
#include "cli/cli_internal.h"

#include <math.h>
#include <string.h>

/* Below this gap between equal cut and optimum, a recovered share would be noise divided by noise. */
#define LEAST_DIFFERENCE 0.0005

static double distance_from_30(const struct ww_compare_row *row)
{
	return fabs(row->cut_frac - 0.30);
}

/* Of two as near to 30 %, the deeper one. */
static bool is_nearer(const struct ww_compare_row *a, const struct ww_compare_row *b)
{
	double lead = distance_from_30(b) - distance_from_30(a);
	return lead > 1e-9 || (lead > -1e-9 && a->cut_frac > b->cut_frac);
}

/* Feasible and nearest to 30 %; NULL when nothing is feasible. */
static const struct ww_compare_row *nearest_feasible(const struct ww_compare_row *rows, size_t n)
{
	const struct ww_compare_row *best = NULL;
	for (size_t i = 0; i < n; i++) {
		const struct ww_compare_row *row = &rows[i];
		if (row->outcome == WW_OUTCOME_INFEASIBLE)
			continue;
		if (!best || is_nearer(row, best))
			best = row;
	}
	return best;
}

static const struct ww_compare_row *least_cut(const struct ww_compare_row *rows, size_t n)
{
	const struct ww_compare_row *best = rows;
	for (size_t i = 1; i < n; i++)
		if (rows[i].cut_frac < best->cut_frac)
			best = &rows[i];
	return best;
}

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

static void tell_infeasible(const struct ww_compare_row *row, FILE *out)
{
	char asked[WW_TEXT_NUMBER], drew[WW_TEXT_NUMBER], missing[WW_TEXT_NUMBER];
	fprintf(out,
	        "A %.4g %% cut asks for %s W from %zu job%s that drew %s W (one GPU each), and %s W of it cannot be "
	        "found.\n",
	        100 * row->cut_frac, ww_text_thousands(row->baseline_w - row->budget_w, asked), row->n_jobs,
	        plural(row->n_jobs), ww_text_thousands(row->baseline_w, drew),
	        ww_text_thousands(row->missing_w, missing));
	fprintf(out, "With every job at its deepest measured cut, %.1f %% of the throughput is kept.\n",
	        100 * row->value[WW_POLICY_EQUAL]);
	fputs("To keep this budget, measure the jobs at lower caps or stop some of them.\n", out);
}

static void tell_cut(const struct ww_compare_row *row, FILE *out)
{
	char taken[WW_TEXT_NUMBER], drew[WW_TEXT_NUMBER];
	fprintf(out, "A %.4g %% cut takes %s W from %zu job%s that drew %s W (one GPU each).\n", 100 * row->cut_frac,
	        ww_text_thousands(row->baseline_w - row->budget_w, taken), row->n_jobs, plural(row->n_jobs),
	        ww_text_thousands(row->baseline_w, drew));
}

static void tell_policies(const struct ww_compare_row *row, size_t n_depths, FILE *out)
{
	static const char *const counts[] = {"none", "one", "two", "three", "four", "five", "six", "seven", "eight"};
	double equal = row->value[WW_POLICY_EQUAL], curve = row->value[WW_POLICY_CURVE];
	const char *others = n_depths <= WW_COMPARE_MAX_DEPTHS ? counts[n_depths] : "a few";
	fprintf(out,
	        "Cutting every job alike keeps %.1f %% of the throughput (mean over the jobs); wattweir, which saw "
	        "each job "
	        "at its highest cap and at most %s other%s, keeps %.1f %%",
	        100 * equal, others, n_depths == 1 ? "" : "s", 100 * curve);
	if (fabs(curve - equal) < LEAST_DIFFERENCE)
		fputs(", practically the same.\n", out);
	else if (curve < equal)
		fputs(", which is less: so few caps misled it here.\n", out);
	else
		fputs(".\n", out);
}

static void tell_oracle(const struct ww_compare_row *row, FILE *out)
{
	double gap = row->value[WW_POLICY_ORACLE] - row->value[WW_POLICY_EQUAL], share = row->recovered_frac;
	if (row->n_jobs == 1) {
		fputs("With one job there is nothing to divide: every way of cutting comes to the same.\n", out);
		return;
	}
	fprintf(out, "The best possible division, with every curve known, keeps %.1f %%",
	        100 * row->value[WW_POLICY_ORACLE]);
	if (isnan(share))
		fprintf(out, ": %.1f points above the equal cut, too little to speak of a share recovered.\n",
		        fmax(0, 100 * gap));
	else if (share < 0.005)
		fputs(": wattweir recovered none of that gap.\n", out);
	else if (share >= 0.995)
		fputs(": wattweir recovered all of that gap.\n", out);
	else
		fprintf(out, ": wattweir recovered %.0f %% of that gap.\n", 100 * share);
}

void ww_story_print(const struct ww_compare_row *rows, size_t n, size_t n_depths, FILE *out)
{
	const struct ww_compare_row *row = nearest_feasible(rows, n);
	if (n > 1)
		fprintf(out, "In words, %s:\n", row ? "the cut nearest to 30 % that is feasible" : "the least cut");
	if (!row) {
		tell_infeasible(least_cut(rows, n), out);
	} else if (row->cut_frac <= 0) {
		fprintf(out,
		        "A 0 %% cut takes nothing from %zu job%s.\nNo job slows down.\nAsk for a deeper cut, for "
		        "example "
		        "--cut 30, to see a difference.\n",
		        row->n_jobs, plural(row->n_jobs));
	} else {
		tell_cut(row, out);
		tell_policies(row, n_depths, out);
		tell_oracle(row, out);
	}
}
