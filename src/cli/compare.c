/* SPDX-License-Identifier: Apache-2.0 */
/* wattweir compare: ways to divide a power cut among measured jobs, side by side. */
#include "cli/cli_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CUTS 100
#define NAMES_SHOWN 3

enum { OPT_CUT = 0x200, OPT_FIT_DEPTHS };

struct compare_args {
	struct ww_sweep_args sweep;
	double cuts[MAX_CUTS];
	size_t n_cuts;
	struct ww_compare_options options;
};

struct report {
	const struct ww_sweep_file *file;
	struct ww_compare_row rows[MAX_CUTS]; /* one per cut */
	enum ww_left_out *left_out;           /* one per job */
};

static const struct ww_column columns[] = {
	{"cut", "%", WW_RIGHT},      {"jobs", "", WW_RIGHT},
	{"equal", "", WW_RIGHT},     {"uniform", "cap", WW_RIGHT},
	{"linear", "PFI", WW_RIGHT}, {"propor.", "to PFI", WW_RIGHT},
	{"by", "use", WW_RIGHT},     {"curve", "(wattweir)", WW_RIGHT},
	{"oracle", "", WW_RIGHT},    {"recovered", "%", WW_RIGHT},
	{"shrink", "", WW_RIGHT},    {"outcome", "", WW_LEFT},
};
#define N_COLUMNS (sizeof(columns) / sizeof(columns[0]))

/* ---- comparing --------------------------------------------------------------------------------------------------- */

static size_t count_left_out(const struct report *report, enum ww_left_out why)
{
	size_t n = 0;
	for (size_t i = 0; i < report->file->n_jobs; i++)
		n += report->left_out[i] == why;
	return n;
}

static bool run_cuts(const struct compare_args *args, ww_compare *compare, struct report *report)
{
	struct ww_error err = {0};
	for (size_t i = 0; i < report->file->n_jobs; i++)
		report->left_out[i] = ww_compare_left_out(compare, i);
	if (ww_compare_jobs(compare) == 0) {
		ww_complain(args->sweep.who,
		            "%s: nothing to compare: no job here is limited by its caps; see 'wattweir pfi %s'",
		            report->file->name, report->file->name);
		return false;
	}
	for (size_t i = 0; i < args->n_cuts; i++) {
		if (ww_compare_run(compare, args->cuts[i], &report->rows[i], &err) != WW_OK) {
			ww_complain(args->sweep.who, "%s: %s", report->file->name, err.text);
			return false;
		}
	}
	return true;
}

static bool compare_file(const struct compare_args *args, const struct ww_sweep_file *file, struct report *report)
{
	struct ww_error err = {0};
	ww_compare *compare = NULL;
	report->file = file;
	report->left_out = ww_cli_alloc(file->n_jobs, sizeof(*report->left_out));
	if (ww_compare_create(file->jobs, file->n_jobs, &args->options, &compare, &err) != WW_OK) {
		ww_complain(args->sweep.who, "%s: %s", file->name, err.text);
		return false;
	}
	bool fine = run_cuts(args, compare, report);
	ww_compare_destroy(compare);
	return fine;
}

static void finish_reports(struct report *reports, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(reports[i].left_out);
	free(reports);
}

static bool any_infeasible(const struct compare_args *args, const struct report *report)
{
	for (size_t i = 0; i < args->n_cuts; i++)
		if (report->rows[i].outcome == WW_OUTCOME_INFEASIBLE)
			return true;
	return false;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static void print_row(ww_table *table, const struct ww_compare_row *row)
{
	ww_table_text(table, "%.4g", 100 * row->cut_frac);
	ww_table_text(table, "%zu", row->n_jobs);
	for (int policy = WW_POLICY_EQUAL; policy <= WW_POLICY_ORACLE; policy++) {
		bool marked = policy == WW_POLICY_UTILISATION && row->utilisation_over_w > 0;
		if (marked)
			ww_table_text(table, "%.1f*", 100 * row->value[policy]);
		else
			ww_table_number(table, 100 * row->value[policy], 1);
	}
	ww_table_number(table, 100 * row->recovered_frac, 0);
	ww_table_number(table, row->shrink, 2);
	ww_table_text(table, "%s", ww_outcome_name((enum ww_outcome)row->outcome));
}

static void print_left_out(const struct report *report)
{
	static const char *const reasons[] = {[WW_LEFT_NOT_POWER_LIMITED] = "not power-limited",
	                                      [WW_LEFT_TOO_FEW_POINTS] = "too few points",
	                                      [WW_LEFT_DUPLICATE] = "same curve as another"};
	const char *lead = "Left out: ";
	for (int why = WW_LEFT_NOT + 1; why < WW_N_LEFT_OUT; why++) {
		size_t n = count_left_out(report, (enum ww_left_out)why), shown = 0;
		if (n == 0)
			continue;
		printf("%s%zu %s (", lead, n, reasons[why]);
		for (size_t i = 0; i < report->file->n_jobs && shown < NAMES_SHOWN; i++) {
			if (report->left_out[i] != (enum ww_left_out)why)
				continue;
			char *name = ww_text_clean(report->file->jobs[i].name, 60);
			printf("%s%s", shown++ ? ", " : "", name);
			free(name);
		}
		printf(n > shown ? ", ...)" : ")");
		lead = "; ";
	}
	if (*lead == ';')
		puts(".");
}

static void print_missing(const struct compare_args *args, const struct report *report)
{
	char missing[WW_TEXT_NUMBER], budget[WW_TEXT_NUMBER];
	for (size_t i = 0; i < args->n_cuts; i++) {
		const struct ww_compare_row *row = &report->rows[i];
		if (row->outcome == WW_OUTCOME_INFEASIBLE)
			printf("Infeasible: a %.4g %% cut (budget %s W) is missed by %s W with every job at its "
			       "deepest measured cut.\n",
			       100 * row->cut_frac, ww_text_thousands(row->budget_w, budget),
			       ww_text_thousands(row->missing_w, missing));
	}
}

static void print_over(const struct compare_args *args, const struct report *report)
{
	char over[WW_TEXT_NUMBER], cuts[MAX_CUTS * 16] = "";
	double most = 0;
	size_t at = 0;
	for (size_t i = 0; i < args->n_cuts; i++) {
		if (report->rows[i].utilisation_over_w <= 0)
			continue;
		most = fmax(most, report->rows[i].utilisation_over_w);
		at += (size_t)snprintf(cuts + at, sizeof(cuts) - at, "%s%.4g", at ? ", " : "", 100 * args->cuts[i]);
	}
	if (most > 0)
		printf("* By use breaks the budget at %s %%: its caps add up to as much as %s W more.\n", cuts,
		       ww_text_thousands(ceil(most), over));
}

static void print_report(const struct compare_args *args, const struct report *report)
{
	char *name = ww_text_clean(report->file->name, 200);
	ww_table *table = ww_table_create(columns, N_COLUMNS);
	printf("%s: throughput kept, %% of that at the highest cap, mean over the jobs\n\n", name);
	for (size_t i = 0; i < args->n_cuts; i++)
		print_row(table, &report->rows[i]);
	ww_table_print(table, stdout);
	putchar('\n');
	print_left_out(report);
	print_missing(args, report);
	print_over(args, report);
	ww_story_print(report->rows, args->n_cuts, args->options.n_depths, stdout);
	ww_table_destroy(table);
	free(name);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static void json_row(ww_json *json, const char *file, const struct ww_compare_row *row)
{
	ww_json_begin_object(json, NULL);
	ww_json_text(json, "file", file);
	ww_json_number(json, "cut_frac", row->cut_frac);
	ww_json_count(json, "n_jobs", row->n_jobs);
	ww_json_text(json, "outcome", ww_outcome_name((enum ww_outcome)row->outcome));
	for (int policy = 0; policy < WW_N_POLICIES; policy++)
		ww_json_number(json, ww_policy_name((enum ww_policy)policy), row->value[policy]);
	ww_json_number(json, "recovered_frac", row->recovered_frac);
	ww_json_number(json, "recovered_box_frac", row->recovered_box_frac);
	ww_json_number(json, "shrink", row->shrink);
	ww_json_number(json, "baseline_w", row->baseline_w);
	ww_json_number(json, "budget_w", row->budget_w);
	ww_json_number(json, "missing_w", row->missing_w);
	ww_json_number(json, "utilisation_over_w", row->utilisation_over_w);
	ww_json_end(json);
}

static void print_json(const struct compare_args *args, const struct report *reports)
{
	ww_json *json = ww_json_create();
	ww_json_begin_array(json, "rows");
	for (size_t i = 0; i < args->sweep.n_files; i++)
		for (size_t k = 0; k < args->n_cuts; k++)
			json_row(json, reports[i].file->name, &reports[i].rows[k]);
	ww_json_end(json);
	ww_json_print(json, stdout);
	ww_json_destroy(json);
}

/* ---- the plot ---------------------------------------------------------------------------------------------------- */

static const struct {
	enum ww_policy policy;
	unsigned colour;
	const char *title;
} lines[] = {
	{WW_POLICY_ORACLE, 6, "oracle"},
	{WW_POLICY_CURVE, 0, "curve (wattweir)"},
	{WW_POLICY_EQUAL, 1, "equal cut"},
	{WW_POLICY_UNIFORM, 2, "uniform cap"},
	{WW_POLICY_LINEAR_PFI, 3, "linear PFI"},
	{WW_POLICY_PFI_PROPORTIONAL, 4, "PFI-proportional"},
	{WW_POLICY_UTILISATION, 5, "by utilisation"},
};

static bool write_plot(const struct compare_args *args, const struct report *reports)
{
	ww_plot *plot = ww_plot_create(args->sweep.n_files);
	for (size_t i = 0; i < args->sweep.n_files; i++) {
		ww_plot_panel(plot, &(struct ww_plot_frame){reports[i].file->name, "power cut, %", "throughput kept, %",
		                                            "bottom left"});
		for (size_t k = 0; k < sizeof(lines) / sizeof(lines[0]); k++) {
			ww_plot_series(plot, WW_PLOT_LINE_POINTS, lines[k].colour, lines[k].title);
			for (size_t c = 0; c < args->n_cuts; c++)
				ww_plot_point(plot, 100 * args->cuts[c],
				              100 * reports[i].rows[c].value[lines[k].policy]);
		}
	}
	bool fine = ww_plot_write(plot, args->sweep.who, args->sweep.plot);
	ww_plot_destroy(plot);
	return fine;
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static bool read_cuts(struct compare_args *args, char *text)
{
	struct ww_fractions cuts = {args->cuts, 0, MAX_CUTS};
	bool fine = ww_args_percents(args->sweep.who, "--cut", text, &cuts);
	args->n_cuts = cuts.n;
	return fine;
}

static bool read_depths(struct compare_args *args, char *text)
{
	struct ww_fractions depths = {args->options.fit_depths, 0, WW_COMPARE_MAX_DEPTHS};
	if (!ww_args_percents(args->sweep.who, "--fit-depths", text, &depths))
		return false;
	args->options.n_depths = depths.n;
	for (size_t i = 0; i < depths.n; i++) {
		if (depths.v[i] <= 0) {
			ww_complain(args->sweep.who,
			            "--fit-depths: a depth of 0 is the baseline itself; write for example 15,35");
			return false;
		}
	}
	return true;
}

static bool check_cuts(const struct compare_args *args)
{
	const char *last = args->sweep.files[args->sweep.n_files - 1];
	if (args->n_cuts == 0 && ww_args_is_percent(last))
		ww_complain(args->sweep.who, "surplus word '%s'; did you mean --cut %s?", last, last);
	else if (args->n_cuts == 0)
		ww_complain(args->sweep.who, "how deep? add for example --cut 10,20,30,40 (percent)");
	return args->n_cuts > 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct compare_args *args = state->input;
	switch (key) {
	case ARGP_KEY_INIT:
		ww_args_quiet(state);
		state->child_inputs[0] = &args->sweep;
		return 0;
	case OPT_CUT:
		return read_cuts(args, arg) ? 0 : EINVAL;
	case OPT_FIT_DEPTHS:
		return read_depths(args, arg) ? 0 : EINVAL;
	case ARGP_KEY_SUCCESS:
		return check_cuts(args) ? 0 : EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option options[] = {
	{"cut", OPT_CUT, "PERCENT,...", 0, "How much of the jobs' power must go, for example 10,20,30,40", 0},
	{"fit-depths", OPT_FIT_DEPTHS, "PERCENT,...", 0,
         "Depths near which a policy may see one measured cap per job (15,35)", 1},
	{0},
};
static const struct argp_child children[] = {{&ww_sweep_argp, 0, NULL, 0}, {0}};
static const struct argp command = {
	.options = options,
	.parser = parse,
	.children = children,
	.args_doc = "FILE... --cut PERCENT,...",
	.doc = "Compares ways to divide a power cut among the jobs of measured sweeps: the same cut for all, the same "
	       "cap for "
	       "all, by PFI, by wattweir's curves, and the best possible. The ways by PFI and by curves know each job "
	       "at its "
	       "highest cap and at two others only; all ways are scored on everything measured.\v"
	       "Exit status: 0 done, 1 failed, 2 wrong usage, 3 a cut is infeasible.\n\n"
	       "Example:\n"
	       "  wattweir compare examples/sample-sweep.csv --cut 10,20,30,40\n",
};

static int report_all(const struct compare_args *args, const struct ww_sweep_file *files, struct report *reports)
{
	int exit_code = WW_EXIT_OK;
	for (size_t i = 0; i < args->sweep.n_files; i++) {
		if (!compare_file(args, &files[i], &reports[i]))
			return WW_EXIT_FAILED;
		exit_code = any_infeasible(args, &reports[i]) ? WW_EXIT_ATTENTION : exit_code;
	}
	if (args->sweep.json)
		print_json(args, reports);
	for (size_t i = 0; i < args->sweep.n_files && !args->sweep.json; i++) {
		if (i > 0)
			putchar('\n');
		print_report(args, &reports[i]);
	}
	bool fine = ww_output_flush(args->sweep.who) && (!args->sweep.plot || write_plot(args, reports));
	return fine ? exit_code : WW_EXIT_FAILED;
}

int ww_cmd_compare(int argc, char **argv)
{
	struct compare_args args = {.sweep = {.who = argv[0], .cap_hi_w = INFINITY, .noise_frac = 0.01},
	                            .options = WW_COMPARE_OPTIONS_INIT};
	int exit_code = WW_EXIT_USAGE;
	if (ww_args_parse(&command, 0, argc, argv, &args)) {
		struct ww_sweep_file *files = ww_sweep_files_create(&args.sweep);
		struct report *reports = ww_cli_alloc(args.sweep.n_files, sizeof(*reports));
		args.options.noise_frac = args.sweep.noise_frac;
		exit_code = files ? report_all(&args, files, reports) : WW_EXIT_FAILED;
		finish_reports(reports, args.sweep.n_files);
		ww_sweep_files_destroy(files, args.sweep.n_files);
	}
	free(args.sweep.files);
	return exit_code;
}
