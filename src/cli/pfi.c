/* SPDX-License-Identifier: Apache-2.0 */
/* wattweir pfi: the Power Flexibility Index of every job in measured sweeps. */
#include "cli/cli_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DRAWS 2000
#define CURVE_STEPS 40
#define MAX_LEGEND 12

/* One sweep file with its results, one per job. */
struct report {
	const struct ww_sweep_file *file;
	struct ww_pfi *pfi;
	size_t *duplicate_of;
};

static const struct {
	const char *key, *words;
} statuses[] = {
	[WW_PFI_OK] = {"ok", "ok"},
	[WW_PFI_TOO_FEW_POINTS] = {"too_few_points", "too few points"},
	[WW_PFI_NOT_POWER_LIMITED] = {"not_power_limited", "not power-limited"},
	[WW_PFI_BOUND] = {"bound", "lower bound"},
};

static const struct {
	uint32_t flag;
	const char *key, *words, *legend;
} flags[] = {
	{WW_FLAG_SHALLOW_SWEEP, "shallow_sweep", "shallow sweep",
         "the lowest cap only begins to bind: measure lower caps"},
	{WW_FLAG_NOISE_ASSUMED, "noise_assumed", "noise assumed",
         "no repetitions and no errors in the file: no interval; see --sigma"},
	{WW_FLAG_POOR_FIT, "poor_fit", "poor fit",
         "loss is far from a straight line (r2 < 0.9): trust the curve, not PFI_ls"},
	{WW_FLAG_NOT_MONOTONE, "not_monotone", "not monotone",
         "throughput rose somewhere while power fell; the curve is repaired"},
	{WW_FLAG_THERMAL, "thermal", "thermal", "a thermal or hardware slowdown was recorded; measure again, cooler"},
};
#define N_FLAGS (sizeof(flags) / sizeof(flags[0]))

static const struct ww_column columns[] = {
	{"group", "", WW_LEFT},       {"caps", "", WW_RIGHT},   {"fit range", "W", WW_RIGHT},
	{"P0", "W", WW_RIGHT},        {"T0", "1/s", WW_RIGHT},  {"PFI_ls", "", WW_RIGHT},
	{"90 % range", "", WW_RIGHT}, {"PFI_30", "", WW_RIGHT}, {"deepest", "cut %", WW_RIGHT},
	{"r2", "", WW_RIGHT},         {"status", "", WW_LEFT},
};
#define N_COLUMNS (sizeof(columns) / sizeof(columns[0]))

/* ---- estimating -------------------------------------------------------------------------------------------------- */

static struct ww_pfi_options options_for(const struct ww_sweep_args *args, const char *group)
{
	struct ww_pfi_options options = WW_PFI_OPTIONS_INIT;
	options.cap_lo_w = args->cap_lo_w;
	options.cap_hi_w = args->cap_hi_w;
	options.noise_frac = args->noise_frac;
	options.draws = DRAWS;
	options.seed = ww_hash_text(group);
	return options;
}

static bool estimate(const struct ww_sweep_args *args, const struct ww_sweep_file *file, struct report *report)
{
	struct ww_error err = {0};
	*report = (struct report){.file = file,
	                          .pfi = ww_cli_alloc(file->n_jobs, sizeof(*report->pfi)),
	                          .duplicate_of = ww_cli_alloc(file->n_jobs, sizeof(*report->duplicate_of))};
	for (size_t i = 0; i < file->n_jobs; i++) {
		const struct ww_compare_job *job = &file->jobs[i];
		struct ww_pfi_options options = options_for(args, job->name);
		if (ww_pfi_estimate(job->points, job->n, &options, &report->pfi[i], &err) != WW_OK) {
			ww_complain(args->who, "%s: %s: %s", file->name, job->name, err.text);
			return false;
		}
	}
	if (ww_find_duplicates(file->jobs, file->n_jobs, report->duplicate_of, &err) != WW_OK) {
		ww_complain(args->who, "%s: %s", file->name, err.text);
		return false;
	}
	return true;
}

static void finish_reports(struct report *reports, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(reports[i].pfi);
		free(reports[i].duplicate_of);
	}
	free(reports);
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

/* A lower bound is rounded down, so that what is printed stays true. */
static void print_pfi(ww_table *table, const struct ww_pfi *pfi)
{
	if (pfi->status == WW_PFI_BOUND && !isnan(pfi->pfi_ls_lo)) {
		ww_table_text(table, ">= %.1f", floor(pfi->pfi_ls_lo * 10) / 10);
		ww_table_text(table, "-");
		return;
	}
	ww_table_number(table, pfi->pfi_ls, 2);
	if (isnan(pfi->pfi_ls_lo) || isnan(pfi->pfi_ls_hi))
		ww_table_text(table, "-");
	else
		ww_table_text(table, "%.2f..%.2f", pfi->pfi_ls_lo, pfi->pfi_ls_hi);
}

static void print_status(ww_table *table, const struct report *report, size_t i)
{
	const struct ww_pfi *pfi = &report->pfi[i];
	char words[160];
	size_t at = (size_t)snprintf(words, sizeof(words), "%s", statuses[pfi->status].words);
	for (size_t k = 0; k < N_FLAGS; k++)
		if (pfi->flags & flags[k].flag)
			at += (size_t)snprintf(words + at, sizeof(words) - at, ", %s", flags[k].words);
	if (report->duplicate_of[i] == i)
		ww_table_text(table, "%s", words);
	else
		ww_table_text(table, "%s, same curve as %s", words, report->file->jobs[report->duplicate_of[i]].name);
}

static void print_range(ww_table *table, const struct ww_pfi *pfi)
{
	if (isnan(pfi->fit_lo_w) || pfi->n_caps == 0)
		ww_table_text(table, "-");
	else
		ww_table_text(table, "%.10g..%.10g", pfi->fit_lo_w, pfi->fit_hi_w);
}

static void print_row(ww_table *table, const struct report *report, size_t i)
{
	const struct ww_pfi *pfi = &report->pfi[i];
	ww_table_text(table, "%s", report->file->jobs[i].name);
	ww_table_text(table, "%u", pfi->n_caps);
	print_range(table, pfi);
	ww_table_number(table, pfi->p0_w, 1);
	ww_table_significant(table, pfi->t0, 4);
	print_pfi(table, pfi);
	ww_table_number(table, pfi->pfi_30, 2);
	ww_table_number(table, 100 * pfi->max_cut_frac, 1);
	ww_table_number(table, pfi->r2, 2);
	print_status(table, report, i);
}

static bool any_status(const struct report *report, int status)
{
	for (size_t i = 0; i < report->file->n_jobs; i++)
		if (report->pfi[i].status == status)
			return true;
	return false;
}

static int by_cap(const void *a, const void *b)
{
	const struct ww_point *p = a, *q = b;
	if (p->cap_w != q->cap_w)
		return p->cap_w < q->cap_w ? 1 : -1;
	return (p->throughput > q->throughput) - (p->throughput < q->throughput);
}

/* Throughput rises from cap to cap more often than not while the power falls: a time, perhaps. */
static bool looks_like_time(const struct ww_compare_job *job)
{
	size_t rises = 0, steps = 0;
	struct ww_point *p = ww_cli_alloc(job->n, sizeof(*p));
	memcpy(p, job->points, job->n * sizeof(*p));
	qsort(p, job->n, sizeof(*p), by_cap);
	for (size_t i = 1; i < job->n; i++) {
		if (p[i].cap_w == p[i - 1].cap_w || p[i].power_w >= p[i - 1].power_w)
			continue;
		steps++;
		rises += p[i].throughput > p[i - 1].throughput;
	}
	free(p);
	return 2 * rises > steps;
}

static bool any_like_time(const struct report *report)
{
	for (size_t i = 0; i < report->file->n_jobs; i++)
		if ((report->pfi[i].flags & WW_FLAG_NOT_MONOTONE) && looks_like_time(&report->file->jobs[i]))
			return true;
	return false;
}

static void print_legend(const struct report *report)
{
	uint32_t seen = 0;
	for (size_t i = 0; i < report->file->n_jobs; i++)
		seen |= report->pfi[i].flags;
	if (any_status(report, WW_PFI_NOT_POWER_LIMITED))
		puts("not power-limited: no cap cuts this job's power by 10 %, so it has no PFI");
	if (any_status(report, WW_PFI_TOO_FEW_POINTS))
		puts("too few points: a PFI needs the highest cap and at least one that cuts the power by 3 %");
	if (any_status(report, WW_PFI_BOUND))
		puts("lower bound: the loss is within the noise, so only the least possible PFI is known");
	for (size_t k = 0; k < N_FLAGS; k++)
		if (seen & flags[k].flag)
			printf("%s: %s\n", flags[k].words, flags[k].legend);
	if (any_like_time(report))
		puts("Throughput rises at most caps: is this column a time? use throughput=1/COLUMN in --map");
}

static void print_heading(const struct ww_sweep_file *file)
{
	char *name = ww_text_clean(file->name, 200);
	printf("%s: %zu %s\n\n", name, file->n_jobs, file->n_jobs == 1 ? "group" : "groups");
	free(name);
}

static void print_report(const struct report *report)
{
	ww_table *table = ww_table_create(columns, N_COLUMNS);
	print_heading(report->file);
	for (size_t i = 0; i < report->file->n_jobs; i++)
		print_row(table, report, i);
	ww_table_print(table, stdout);
	ww_table_destroy(table);
	puts("\nPFI = relative power cut per relative throughput loss, valid for its fit range only; above 1 = "
	     "flexible.");
	print_legend(report);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static void json_flags(ww_json *json, uint32_t set)
{
	ww_json_begin_array(json, "flags");
	for (size_t k = 0; k < N_FLAGS; k++)
		if (set & flags[k].flag)
			ww_json_text(json, NULL, flags[k].key);
	ww_json_end(json);
}

static void json_group(ww_json *json, const struct report *report, size_t i)
{
	const struct ww_pfi *pfi = &report->pfi[i];
	size_t twin = report->duplicate_of[i];
	ww_json_begin_object(json, NULL);
	ww_json_text(json, "file", report->file->name);
	ww_json_text(json, "group", report->file->jobs[i].name);
	ww_json_count(json, "n_caps", pfi->n_caps);
	ww_json_begin_array(json, "fit_caps_w");
	ww_json_number(json, NULL, pfi->n_caps > 0 ? pfi->fit_lo_w : NAN);
	ww_json_number(json, NULL, pfi->n_caps > 0 ? pfi->fit_hi_w : NAN);
	ww_json_end(json);
	ww_json_number(json, "p0_w", pfi->p0_w);
	ww_json_number(json, "t0", pfi->t0);
	ww_json_number(json, "pfi_ls", pfi->pfi_ls);
	ww_json_number(json, "pfi_ls_lo", pfi->pfi_ls_lo);
	ww_json_number(json, "pfi_ls_hi", pfi->pfi_ls_hi);
	ww_json_number(json, "pfi_30", pfi->pfi_30);
	ww_json_number(json, "max_cut_frac", pfi->max_cut_frac);
	ww_json_number(json, "r2", pfi->r2);
	ww_json_number(json, "noise_frac", pfi->noise_frac);
	ww_json_text(json, "status", statuses[pfi->status].key);
	json_flags(json, pfi->flags);
	ww_json_text(json, "duplicate_of", twin == i ? NULL : report->file->jobs[twin].name);
	ww_json_end(json);
}

static void print_json(const struct report *reports, size_t n)
{
	ww_json *json = ww_json_create();
	ww_json_begin_array(json, "groups");
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < reports[i].file->n_jobs; j++)
			json_group(json, &reports[i], j);
	ww_json_end(json);
	ww_json_print(json, stdout);
	ww_json_destroy(json);
}

/* ---- the plot ---------------------------------------------------------------------------------------------------- */

static void plot_curve(ww_plot *plot, const struct ww_curve *curve, unsigned colour, const char *title)
{
	ww_plot_series(plot, WW_PLOT_LINE, colour, title);
	for (int step = 0; step <= CURVE_STEPS; step++) {
		double cut = curve->max_cut_frac * step / CURVE_STEPS;
		ww_plot_point(plot, 100 * (1 - cut), 100 * (1 - ww_curve_loss(curve, cut)));
	}
}

/* The measured points of job i, and its curve where it has one. */
static void plot_job(ww_plot *plot, const struct ww_sweep_args *args, const struct report *report, size_t i)
{
	const struct ww_compare_job *job = &report->file->jobs[i];
	const struct ww_pfi *pfi = &report->pfi[i];
	const char *title = report->file->n_jobs <= MAX_LEGEND ? job->name : NULL;
	struct ww_pfi_options options = options_for(args, job->name);
	struct ww_curve curve;
	if (isnan(pfi->p0_w) || isnan(pfi->t0))
		return;
	bool has_curve = ww_curve_measure(job->points, job->n, &options, WW_ACCOUNT_DRAW, &curve, NULL) == WW_OK;
	if (has_curve)
		plot_curve(plot, &curve, (unsigned)i, title);
	ww_plot_series(plot, WW_PLOT_POINTS, (unsigned)i, has_curve ? NULL : title);
	for (size_t k = 0; k < job->n; k++)
		ww_plot_point(plot, 100 * job->points[k].power_w / pfi->p0_w,
		              100 * job->points[k].throughput / pfi->t0);
}

static void plot_report(ww_plot *plot, const struct ww_sweep_args *args, const struct report *report)
{
	ww_plot_panel(plot, &(struct ww_plot_frame){report->file->name, "power drawn, % of P0",
	                                            "throughput kept, % of T0", "bottom right"});
	ww_plot_series(plot, WW_PLOT_GUIDE, 0, "in proportion (PFI 1)");
	ww_plot_point(plot, 0, 0);
	ww_plot_point(plot, 100, 100);
	for (size_t i = 0; i < report->file->n_jobs; i++)
		plot_job(plot, args, report, i);
}

static bool write_plot(const struct ww_sweep_args *args, const struct report *reports)
{
	ww_plot *plot = ww_plot_create(args->n_files);
	for (size_t i = 0; i < args->n_files; i++)
		plot_report(plot, args, &reports[i]);
	bool fine = ww_plot_write(plot, args->who, args->plot);
	ww_plot_destroy(plot);
	return fine;
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static error_t parse(int key, char *arg, struct argp_state *state)
{
	(void)arg;
	if (key != ARGP_KEY_INIT)
		return ARGP_ERR_UNKNOWN;
	ww_args_quiet(state);
	state->child_inputs[0] = state->input;
	return 0;
}

static const struct argp_child children[] = {{&ww_sweep_argp, 0, NULL, 0}, {0}};
static const struct argp command = {
	.parser = parse,
	.children = children,
	.args_doc = "FILE...",
	.doc = "Power Flexibility Index of every group in measured cap sweeps, with its fit range, 90 % interval and "
	       "what "
	       "to be careful about. FILE is a CSV, '-' reads standard input.\v"
	       "Exit status: 0 done, 1 failed, 2 wrong usage.\n\n"
	       "Example:\n"
	       "  wattweir pfi examples/sample-sweep.csv --caps 300..700\n",
};

static int report_all(const struct ww_sweep_args *args, const struct ww_sweep_file *files, struct report *reports)
{
	for (size_t i = 0; i < args->n_files; i++)
		if (!estimate(args, &files[i], &reports[i]))
			return WW_EXIT_FAILED;
	if (args->json)
		print_json(reports, args->n_files);
	for (size_t i = 0; i < args->n_files && !args->json; i++) {
		if (i > 0)
			putchar('\n');
		print_report(&reports[i]);
	}
	bool fine = ww_output_flush(args->who) && (!args->plot || write_plot(args, reports));
	return fine ? WW_EXIT_OK : WW_EXIT_FAILED;
}

int ww_cmd_pfi(int argc, char **argv)
{
	struct ww_sweep_args args = {.who = argv[0], .cap_hi_w = INFINITY, .noise_frac = 0.01};
	int exit_code = WW_EXIT_USAGE;
	if (ww_args_parse(&command, 0, argc, argv, &args)) {
		struct ww_sweep_file *files = ww_sweep_files_create(&args);
		struct report *reports = ww_cli_alloc(args.n_files, sizeof(*reports));
		exit_code = files ? report_all(&args, files, reports) : WW_EXIT_FAILED;
		finish_reports(reports, args.n_files);
		ww_sweep_files_destroy(files, args.n_files);
	}
	free(args.files);
	return exit_code;
}
