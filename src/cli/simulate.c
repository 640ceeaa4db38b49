/* SPDX-License-Identifier: Apache-2.0 */
/* wattweir simulate: a whole cluster in virtual time, under the equal cut, wattweir and an oracle. */
#include "cli/simulate_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { OPT_JSON = 0x400, OPT_SEED, OPT_SEEDS };

struct simulate_args {
	const char *who, *path;
	bool json, has_seed;
	uint64_t seed;
	uint32_t n_seeds; /* 0 = one run, told in full */
};

/* ---- The command line ------------------------------------------------------------------------------------------------- */

static bool read_count(const struct simulate_args *args, const char *option, const char *text, double least,
                       double *out)
{
	enum ww_number_fault fault = ww_number_read_unit(text, strlen(text), WW_UNIT_WHOLE, out);
	if (fault != WW_NUMBER_OK)
		ww_complain(args->who, "%s: '%s' %s; write a whole number, like 20", option, text,
		            ww_unit_fault_text(fault));
	else if (*out < least)
		ww_complain(args->who, "%s: '%s' is less than %.0f; write a larger number", option, text, least);
	return fault == WW_NUMBER_OK && *out >= least;
}

static error_t parse_value(struct simulate_args *args, int key, const char *arg)
{
	double value = 0;
	if (!read_count(args, key == OPT_SEED ? "--seed" : "--seeds", arg, key == OPT_SEED ? 0 : 1, &value))
		return EINVAL;
	if (key == OPT_SEED) {
		args->seed = (uint64_t)value;
		args->has_seed = true;
	} else {
		args->n_seeds = (uint32_t)value;
	}
	return 0;
}

static error_t parse_path(struct simulate_args *args, const char *arg)
{
	if (args->path)
		ww_complain(args->who, "one scenario at a time; '%s' is a second one", arg);
	bool fine = !args->path;
	args->path = arg;
	return fine ? 0 : EINVAL;
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
	case OPT_SEED:
	case OPT_SEEDS:
		return parse_value(args, key, arg);
	case ARGP_KEY_ARG:
		return parse_path(args, arg);
	case ARGP_KEY_NO_ARGS:
		ww_complain(args->who, "no SCENARIO given; see '%s --help'", args->who);
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option options[] = {
	{"json", OPT_JSON, NULL, 0, "Print JSON for machines instead of a report", 1},
	{"seed", OPT_SEED, "N", 0, "Seed of everything drawn at random, instead of the scenario's", 1},
	{"seeds", OPT_SEEDS, "N", 0, "Do it for N seeds from there on, and sum up", 1},
	{0},
};
static const struct argp command = {
	.options = options,
	.parser = parse,
	.args_doc = "SCENARIO",
	.doc = "Lives a scenario three times on the same plant: with the equal cut, with wattweir, and with an oracle "
               "that "
	       "knows all true curves. Tells what was kept of the budget and of the tokens.\v"
	       "Exit status: 0 done, 1 failed, 2 wrong usage, 3 a budget, a floor or an invariant was not kept.\n\n"
	       "Example:\n"
	       "  wattweir simulate scenarios/demo.yaml\n",
};

/* ---- Running ------------------------------------------------------------------------------------------------------------- */

static void finish(struct ww_simulated *s)
{
	for (int i = 0; i < WW_N_RUNS; i++)
		ww_run_destroy(s->runs[i]);
	ww_scene_destroy(s->scene);
}

/* What is told of the product's run as it goes on; it comes last. */
static bool simulate(const struct simulate_args *args, const struct ww_scenario *scenario, uint64_t seed,
                     struct ww_simulated *out)
{
	static const enum ww_division order[WW_N_RUNS] = {WW_DIVISION_EQUAL, WW_DIVISION_EXACT, WW_DIVISION_AUTO};
	struct ww_error err = {0};
	ww_status status = ww_scene_create(scenario, seed, &out->scene, &err);
	for (int i = 0; i < WW_N_RUNS && !status; i++)
		status = ww_run_create(out->scene, order[i], NULL, &out->runs[order[i]], &err);
	if (status)
		ww_complain(args->who, "%s", err.text);
	else
		out->main_event = ww_scene_main_event(out->scene);
	return !status;
}

static int report_one(const struct simulate_args *args, const struct ww_scenario *scenario)
{
	struct ww_simulated s = {0};
	int exit_code = WW_EXIT_FAILED;
	if (simulate(args, scenario, args->has_seed ? args->seed : scenario->seed, &s)) {
		ww_json *json = ww_json_create();
		ww_simulated_json(&s, json);
		ww_json_print(json, stdout);
		ww_json_destroy(json);
		exit_code = ww_needs_attention(&s) ? WW_EXIT_ATTENTION : WW_EXIT_OK;
	}
	finish(&s);
	return exit_code;
}

int ww_cmd_simulate(int argc, char **argv)
{
	struct simulate_args args = {.who = argv[0]};
	struct ww_scenario scenario = {0};
	struct ww_error err = {0};
	if (!ww_args_parse(&command, 0, argc, argv, &args))
		return WW_EXIT_USAGE;
	if (ww_scenario_read(args.path, &scenario, &err)) {
		ww_complain(args.who, "%s", err.text);
		return WW_EXIT_FAILED;
	}
	int exit_code = report_one(&args, &scenario);
	ww_scenario_finish(&scenario);
	return exit_code;
}
