/* SPDX-License-Identifier: Apache-2.0 */
/* wattweir simulate: a whole cluster in virtual time, under the equal cut, wattweir and an oracle. */
#include "cli/simulate_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SEEDS 100000

enum { OPT_JSON = 0x400, OPT_SEED, OPT_SEEDS, OPT_TRACE, OPT_PLOT, OPT_JOURNAL, OPT_JOURNAL_FROM, OPT_LIVE };

struct simulate_args {
	struct ww_watch_args watch;
	const char *path;
	bool json, has_seed;
	uint64_t seed;
	uint32_t n_seeds; /* 0 = one run, told in full */
};

/* ---- The command line ------------------------------------------------------------------------------------------------- */

static bool read_count(const struct simulate_args *args, const char *option, const char *text, uint32_t *out)
{
	double value = 0;
	enum ww_number_fault fault = ww_number_read_unit(text, strlen(text), WW_UNIT_WHOLE, &value);
	if (fault != WW_NUMBER_OK)
		ww_complain(args->watch.who, "%s: '%s' %s; write a whole number, like 20", option, text,
		            ww_unit_fault_text(fault));
	else
		*out = (uint32_t)value;
	return fault == WW_NUMBER_OK;
}

static bool read_seed(struct simulate_args *args, const char *text)
{
	uint32_t seed = 0;
	args->has_seed = read_count(args, "--seed", text, &seed);
	args->seed = seed;
	return args->has_seed;
}

static bool read_seeds(struct simulate_args *args, const char *text)
{
	if (!read_count(args, "--seeds", text, &args->n_seeds))
		return false;
	if (args->n_seeds >= 1 && args->n_seeds <= MAX_SEEDS)
		return true;
	ww_complain(args->watch.who, "--seeds: '%s' is outside 1 to %d; write for example 20", text, MAX_SEEDS);
	return false;
}

static bool read_path(struct simulate_args *args, const char *arg)
{
	if (args->path)
		ww_complain(args->watch.who, "one scenario at a time; '%s' is a second one", arg);
	bool first = !args->path;
	args->path = arg;
	return first;
}

/* A file to write may be anything but the scenario that is read; a picture has a name of its own. */
static bool check_output(const struct simulate_args *args, const char *option, const char *path)
{
	bool picture = path && path == args->watch.plot;
	if (path && ww_output_is_input(path, args->path))
		ww_complain(args->watch.who, "%s: '%s' is the scenario and would be overwritten; name another file",
		            option, path);
	else if (picture && ww_output_is_stdout(path))
		ww_complain(args->watch.who, "%s: '%s' is standard output, where the report goes; name another file",
		            option, path);
	else
		return true;
	return false;
}

/* Files to write are different ones. */
static bool check_outputs(const struct simulate_args *args)
{
	static const char *const options[] = {"--trace", "--journal", "--plot"};
	const char *paths[] = {args->watch.trace, args->watch.journal, args->watch.plot};
	for (size_t i = 0; i < 3; i++) {
		if (!check_output(args, options[i], paths[i]))
			return false;
		for (size_t k = 0; k < i; k++) {
			if (!paths[i] || !paths[k] || !ww_output_same(paths[i], paths[k]))
				continue;
			ww_complain(args->watch.who, "%s and %s: '%s' and '%s' are one file; name another one",
			            options[k], options[i], paths[k], paths[i]);
			return false;
		}
	}
	return true;
}

static bool is_dash(const char *path)
{
	return path && strcmp(path, "-") == 0;
}

/* The file in place of the report, which gets standard output else; NULL = none. */
static const char *in_place_of_report(const struct ww_watch_args *watch)
{
	if (watch->trace && ww_output_is_stdout(watch->trace))
		return watch->trace;
	return watch->journal && ww_output_is_stdout(watch->journal) ? watch->journal : NULL;
}

/* What only the scenario can say of the options. */
static bool check_scenario(const struct simulate_args *args, const struct ww_scenario *scenario)
{
	int64_t seconds = scenario->duration_us / WW_SECOND_US;
	if (args->watch.plot && scenario->n_events == 0)
		ww_complain(args->watch.who, "--plot: the scenario has no event to draw; add one to its events");
	else if (args->watch.journal_from >= seconds)
		ww_complain(args->watch.who,
		            "--journal-from: %u is not before the end of the scenario, %lld s; write an earlier second",
		            args->watch.journal_from, (long long)seconds);
	else
		return true;
	return false;
}

static bool check(const struct simulate_args *args)
{
	const struct ww_watch_args *watch = &args->watch;
	bool to_one = watch->trace || watch->journal || args->watch.plot;
	if (!args->path)
		ww_complain(watch->who, "no SCENARIO given; see '%s --help'", watch->who);
	else if (args->n_seeds > 0 && to_one)
		ww_complain(watch->who, "--seeds: --trace, --plot and --journal tell of one seed; use --seed");
	else if (watch->journal_from > 0 && !watch->journal)
		ww_complain(watch->who, "--journal-from: there is no journal; add --journal FILE");
	else if (is_dash(watch->trace) && is_dash(watch->journal))
		ww_complain(watch->who, "--trace and --journal: both are '-', standard output; name a file for one");
	else if (args->json && in_place_of_report(watch))
		ww_complain(watch->who, "--json: '%s' is standard output too; name a file for the %s",
		            in_place_of_report(watch), in_place_of_report(watch) == watch->trace ? "trace" : "journal");
	else
		return check_outputs(args);
	return false;
}

static bool parse_value(struct simulate_args *args, int key, char *arg)
{
	switch (key) {
	case OPT_SEED:
		return read_seed(args, arg);
	case OPT_SEEDS:
		return read_seeds(args, arg);
	case OPT_JOURNAL_FROM:
		return read_count(args, "--journal-from", arg, &args->watch.journal_from);
	case OPT_PLOT:
		args->watch.plot = arg;
		return ww_args_svg(args->watch.who, arg);
	case OPT_TRACE:
		args->watch.trace = arg;
		return true;
	case OPT_JOURNAL:
		args->watch.journal = arg;
		return true;
	default:
		return read_path(args, arg);
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct simulate_args *args = state->input;
	switch (key) {
	case ARGP_KEY_INIT:
		ww_args_quiet(state);
		return 0;
	case OPT_JSON:
		args->json = true;
		return 0;
	case OPT_LIVE:
		args->watch.live = true;
		return 0;
	case ARGP_KEY_END:
		return check(args) ? 0 : EINVAL;
	case OPT_SEED:
	case OPT_SEEDS:
	case OPT_JOURNAL_FROM:
	case OPT_PLOT:
	case OPT_TRACE:
	case OPT_JOURNAL:
	case ARGP_KEY_ARG:
		return parse_value(args, key, arg) ? 0 : EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option options[] = {
	{"seed", OPT_SEED, "N", 0, "Where all random numbers begin, instead of the scenario's", 1},
	{"seeds", OPT_SEEDS, "N", 0, "Do it for N seeds from there on, one line for each, and sum up", 1},
	{"json", OPT_JSON, NULL, 0, "Print JSON for machines instead of a report", 2},
	{"plot", OPT_PLOT, "OUT.svg", 0, "Draw power and tokens/s as SVG (needs gnuplot)", 2},
	{"trace", OPT_TRACE, "OUT.csv", 0, "Write every second of wattweir's run as CSV", 2},
	{"journal", OPT_JOURNAL, "FILE", 0, "Write what wattweir was told and decided, for 'wattweir replay'", 2},
	{"journal-from", OPT_JOURNAL_FROM, "SECOND", 0, "Begin the journal there, with the state of then", 2},
	{"live", OPT_LIVE, NULL, 0, "Slow wattweir's run down so that it can be watched", 2},
	{0},
};
static const struct argp command = {
	.options = options,
	.parser = parse,
	.args_doc = "SCENARIO",
	.doc = "Lives a scenario three times on the same plant: under the equal cut, under wattweir, and under an "
	       "oracle that knows all true curves. Tells whether the budget was kept and what was kept of the tokens. "
	       "How to write a scenario: wattweir-scenario(5).\v"
	       "A trace or journal named '-' goes to standard output, in place of the report.\n"
	       "Exit status: 0 done, 1 failed, 2 wrong usage, 3 a budget, a floor or an invariant was not kept, a row "
	       "was "
	       "short of watts, an event could not be kept or was never taken, or a GPU has not its limit of before "
	       "back.\n\n"
	       "Example:\n"
	       "  wattweir simulate scenarios/demo.yaml\n",
};

/* ---- Running ------------------------------------------------------------------------------------------------------------- */

static void finish(struct ww_simulated *s)
{
	for (int i = 0; i < WW_N_RUNS; i++)
		ww_run_destroy(s->runs[i]);
	ww_scene_destroy(s->scene);
	*s = (struct ww_simulated){0};
}

/* The product's run is the last one, so that what is told of it stands above its report. */
static bool simulate(const struct ww_scenario *scenario, uint64_t seed, ww_watch *watch, const char *who,
                     struct ww_simulated *out)
{
	static const enum ww_division order[WW_N_RUNS] = {WW_DIVISION_EQUAL, WW_DIVISION_EXACT, WW_DIVISION_AUTO};
	struct ww_error err = {0};
	ww_status status = ww_scene_create(scenario, seed, &out->scene, &err);
	for (int i = 0; i < WW_N_RUNS && !status; i++) {
		struct ww_run_watch how = ww_watch_run(watch, order[i]);
		status = ww_run_create(out->scene, order[i], &how, &out->runs[order[i]], &err);
	}
	if (status)
		ww_complain(who, "%s", err.text);
	else
		out->main_event = ww_scene_main_event(out->scene);
	return !status;
}

/* ---- Reports ------------------------------------------------------------------------------------------------------------- */

static void report(const struct simulate_args *args, const struct ww_simulated *s)
{
	if (in_place_of_report(&args->watch))
		return;
	if (!args->json) {
		ww_simulated_print(s, stdout);
		return;
	}
	ww_json *json = ww_json_create();
	ww_simulated_json(s, json);
	ww_json_print(json, stdout);
	ww_json_destroy(json);
}

static int report_one(const struct simulate_args *args, const struct ww_scenario *scenario, ww_watch *watch)
{
	struct ww_simulated s = {0};
	uint64_t seed = args->has_seed ? args->seed : scenario->seed;
	bool fine = simulate(scenario, seed, watch, args->watch.who, &s) && ww_watch_close(watch);
	if (fine)
		report(args, &s);
	fine = fine && ww_output_flush(args->watch.who) && ww_watch_draw(watch, &s) && ww_watch_finish(watch);
	int exit_code = !fine ? WW_EXIT_FAILED : ww_needs_attention(&s) ? WW_EXIT_ATTENTION : WW_EXIT_OK;
	finish(&s);
	return exit_code;
}

static int report_seeds(const struct simulate_args *args, const struct ww_scenario *scenario, ww_watch *watch)
{
	ww_seeds *seeds = ww_seeds_create(args->json);
	uint64_t first = args->has_seed ? args->seed : scenario->seed;
	int exit_code = WW_EXIT_OK;
	for (uint32_t i = 0; i < args->n_seeds && exit_code != WW_EXIT_FAILED; i++) {
		struct ww_simulated s = {0};
		if (!simulate(scenario, first + i, watch, args->watch.who, &s)) {
			exit_code = WW_EXIT_FAILED;
		} else {
			exit_code = ww_needs_attention(&s) ? WW_EXIT_ATTENTION : exit_code;
			ww_seeds_add(seeds, &s);
		}
		finish(&s);
	}
	if (exit_code != WW_EXIT_FAILED)
		ww_seeds_print(seeds, stdout);
	ww_seeds_destroy(seeds);
	return exit_code;
}

int ww_cmd_simulate(int argc, char **argv)
{
	struct simulate_args args = {.watch = {.who = argv[0]}};
	struct ww_scenario scenario = {0};
	struct ww_error err = {0};
	int exit_code = WW_EXIT_FAILED;
	if (!ww_args_parse(&command, 0, argc, argv, &args))
		return WW_EXIT_USAGE;
	if (ww_scenario_read(args.path, &scenario, &err)) {
		ww_complain(args.watch.who, "%s", err.text);
		return WW_EXIT_FAILED;
	}
	bool fits = check_scenario(&args, &scenario), can = fits && (!args.watch.plot || ww_plot_can(args.watch.who));
	ww_watch *watch = can ? ww_watch_create(&args.watch) : NULL;
	if (!fits)
		exit_code = WW_EXIT_USAGE;
	else if (watch)
		exit_code =
			args.n_seeds > 0 ? report_seeds(&args, &scenario, watch) : report_one(&args, &scenario, watch);
	ww_watch_destroy(watch);
	ww_scenario_finish(&scenario);
	return exit_code;
}
