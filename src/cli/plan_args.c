/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of wattweir plan. */
#include "cli/cli_internal.h"

#include <math.h>
#include <string.h>

enum { OPT_CUT = 0x200, OPT_BUDGET, OPT_CLUSTER, OPT_OBJECTIVE, OPT_ACCOUNT, OPT_POLICY, OPT_EXPLORE };

static bool read_cut(struct ww_plan_args *args, char *text)
{
	struct ww_fractions cut = {&args->cut_frac, 0, 1};
	if (!strchr(text, ','))
		return ww_args_percents(args->sweep.who, "--cut", text, &cut);
	ww_complain(args->sweep.who, "--cut: '%s': plan takes one cut; write 20.5 with a point, not a comma", text);
	return false;
}

static bool read_budget(struct ww_plan_args *args, const char *text)
{
	if (!ww_args_watts(args->sweep.who, "--budget-w", text, &args->budget_w))
		return false;
	if (args->budget_w >= 1)
		return true;
	ww_complain(
		args->sweep.who,
		"--budget-w: '%s' is below 1 W; write the watts for all GPUs together, for example 12000 or '12 kW'",
		text);
	return false;
}

static const char *objective_word(int i)
{
	return ww_objective_name((enum ww_objective)i);
}

static const char *account_word(int i)
{
	return ww_account_name((enum ww_account)i);
}

static const char *policy_word(int i)
{
	return i ? "equal" : "curve";
}

/* An option whose argument is one of n words. */
struct choice {
	const char *option;
	const char *(*name)(int);
	int n;
};

/* Finds the word; a mistake lists them all. */
static bool read_word(const struct ww_plan_args *args, const struct choice *choice, const char *text, int *out)
{
	char listed[120] = "";
	for (int i = 0, at = 0; i < choice->n; i++) {
		if (strcmp(text, choice->name(i)) == 0) {
			*out = i;
			return true;
		}
		at += snprintf(listed + at, sizeof(listed) - (size_t)at, "%s%s", i ? ", " : "", choice->name(i));
	}
	ww_complain(args->sweep.who, "%s: '%s' is not one of %s", choice->option, text, listed);
	return false;
}

static bool read_words(struct ww_plan_args *args, int key, const char *text)
{
	int word = 0;
	bool fine = false;
	if (key == OPT_OBJECTIVE) {
		fine = read_word(args, &(struct choice){"--objective", objective_word, 4}, text, &word);
		args->objective = (enum ww_objective)word;
	} else if (key == OPT_ACCOUNT) {
		fine = read_word(args, &(struct choice){"--account", account_word, 2}, text, &word);
		args->account = (enum ww_account)word;
	} else {
		fine = read_word(args, &(struct choice){"--policy", policy_word, 2}, text, &word);
		args->equal = word == 1;
	}
	return fine;
}

static bool is_yaml(const char *name)
{
	const char *dot = strrchr(name, '.');
	return dot && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0);
}

static bool check_args(const struct ww_plan_args *args)
{
	const char *surplus = args->sweep.n_files > 1 ? args->sweep.files[1] : NULL;
	if (surplus && ww_args_is_percent(surplus) && isnan(args->cut_frac) && isnan(args->budget_w))
		ww_complain(args->sweep.who, "surplus word '%s'; did you mean --cut %s?", surplus, surplus);
	else if (surplus && !args->cluster_path && is_yaml(surplus))
		ww_complain(args->sweep.who, "surplus word '%s'; did you mean --cluster %s?", surplus, surplus);
	else if (surplus)
		ww_complain(args->sweep.who, "surplus word '%s': one FILE at a time; a plan divides one budget",
		            surplus);
	else if (isnan(args->cut_frac) == isnan(args->budget_w))
		ww_complain(args->sweep.who, "give either --cut PERCENT or --budget-w WATTS, for example --cut 30%%");
	else if (args->explore && !args->cluster_path)
		ww_complain(args->sweep.who,
		            "--explore goes down to the 'min' of the jobs in a --cluster FILE, and there is none");
	else if (args->cluster_path && strcmp(args->cluster_path, "-") == 0 && strcmp(args->sweep.files[0], "-") == 0)
		ww_complain(args->sweep.who, "standard input '-' can be read only once");
	else
		return true;
	return false;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct ww_plan_args *args = state->input;
	switch (key) {
	case ARGP_KEY_INIT:
		ww_args_quiet(state);
		state->child_inputs[0] = &args->sweep;
		return 0;
	case OPT_CUT:
		return read_cut(args, arg) ? 0 : EINVAL;
	case OPT_BUDGET:
		return read_budget(args, arg) ? 0 : EINVAL;
	case OPT_CLUSTER:
		args->cluster_path = args->sweep.other_file = arg;
		return 0;
	case OPT_OBJECTIVE:
	case OPT_ACCOUNT:
	case OPT_POLICY:
		return read_words(args, key, arg) ? 0 : EINVAL;
	case OPT_EXPLORE:
		args->explore = true;
		return 0;
	case ARGP_KEY_SUCCESS:
		return check_args(args) ? 0 : EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option options[] = {
	{"cut", OPT_CUT, "PERCENT", 0, "How much of what the jobs draw must go, for example 30%", 0},
	{"budget-w", OPT_BUDGET, "WATTS", 0, "Instead of --cut: watts for all GPUs together, like 12000 or '12 kW'", 0},
	{"cluster", OPT_CLUSTER, "FILE", 0, "Jobs with GPUs, floors and places, and rows with limits (YAML)", 0},
	{"objective", OPT_OBJECTIVE, "WORD", 0, "relative (default), tokens, log or maxmin", 1},
	{"account", OPT_ACCOUNT, "WORD", 0,
         "What the budget counts: cap (default; kept whatever the jobs do) or draw (as measured)", 1},
	{"policy", OPT_POLICY, "WORD", 0, "curve (default) or equal", 1},
	{"explore", OPT_EXPLORE, NULL, 0,
         "Let jobs go below the caps measured for them, down to their 'min' in the cluster file", 1},
	{0},
};
static const struct argp_child children[] = {{&ww_sweep_argp, 0, NULL, 0}, {0}};
static const struct argp command = {
	.options = options,
	.parser = parse,
	.children = children,
	.args_doc = "FILE --cut PERCENT\nFILE --budget-w WATTS",
	.doc = "Caps per job for one power budget, with the reason for each: the budget and every row of the cluster "
	       "are "
	       "kept, every job keeps its floor, and as much throughput as possible survives. Caps are printed, not "
	       "set. FILE "
	       "is a measured sweep; without --cluster each of its groups is one job.\v"
	       "Exit status: 0 done, 1 failed, 2 wrong usage, 3 the budget, a row or a floor cannot be kept.\n\n"
	       "Example:\n"
	       "  wattweir plan examples/sample-sweep.csv --cut 30%\n",
};

bool ww_plan_args_parse(int argc, char **argv, struct ww_plan_args *args)
{
	*args = (struct ww_plan_args){
		.sweep = {.who = argv[0], .cap_hi_w = INFINITY, .noise_frac = 0.01}, .cut_frac = NAN, .budget_w = NAN};
	return ww_args_parse(&command, 0, argc, argv, args);
}
