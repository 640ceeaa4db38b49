/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments that commands share. Numbers go through ww_number_read, so a unit or a comma is refused, not guessed. */
#include "cli/cli_internal.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

enum { OPT_CAPS = 0x100, OPT_MAP, OPT_SIGMA, OPT_JSON, OPT_PLOT };

static const struct argp_option sweep_options[] = {
	{"caps", OPT_CAPS, "LO..HI", 0, "Use only the caps from LO to HI watts", 1},
	{"map", OPT_MAP, "MAP", 0, "Columns of a foreign CSV: throughput=COL,power=COL,cap=COL,group=COL+COL", 1},
	{"sigma", OPT_SIGMA, "FRACTION", 0, "Relative error of throughput assumed where none is known (0.01)", 1},
	{"json", OPT_JSON, NULL, 0, "Print JSON for machines instead of tables", 2},
	{"plot", OPT_PLOT, "OUT.svg", 0, "Draw the result as SVG (needs gnuplot)", 2},
	{0},
};

void ww_args_quiet(struct argp_state *state)
{
	state->err_stream = NULL;
}

bool ww_args_parse(const struct argp *argp, int argc, char **argv, void *input)
{
	return argp_parse(argp, argc, argv, 0, NULL, input) == 0;
}

static bool read_number(const char *who, const char *option, const char *text, size_t length, double *out)
{
	enum ww_number_fault fault = ww_number_read(text, length, out);
	if (fault != WW_NUMBER_OK)
		ww_complain(who, "%s: '%.*s' %s", option, (int)length, text, ww_number_fault_text(fault));
	return fault == WW_NUMBER_OK;
}

bool ww_args_number(const char *who, const char *option, const char *text, double *out)
{
	return read_number(who, option, text, strlen(text), out);
}

/* "200..400"; either end may be left out. */
static bool read_caps(struct ww_sweep_args *args, const char *text)
{
	const char *dots = strstr(text, "..");
	if (!dots || strlen(text) == 2) {
		ww_complain(args->who, "--caps: '%s' is not a range; write watts as LO..HI, for example 200..400",
		            text);
		return false;
	}
	double lo = 0, hi = INFINITY;
	const char *end = dots + 2;
	if (dots > text && !read_number(args->who, "--caps", text, (size_t)(dots - text), &lo))
		return false;
	if (*end && !read_number(args->who, "--caps", end, strlen(end), &hi))
		return false;
	if (lo < 0 || lo > hi) {
		ww_complain(args->who, "--caps: '%s' holds no cap; write the lower one first, for example 200..400",
		            text);
		return false;
	}
	args->cap_lo_w = lo;
	args->cap_hi_w = hi;
	return true;
}

static bool read_sigma(struct ww_sweep_args *args, const char *text)
{
	double sigma = 0;
	if (!read_number(args->who, "--sigma", text, strlen(text), &sigma))
		return false;
	if (sigma < 0 || sigma >= 1) {
		ww_complain(args->who, "--sigma: '%s' is outside 0 to 1; 0.01 means 1 %% of the throughput", text);
		return false;
	}
	args->noise_frac = sigma;
	return true;
}

static bool read_plot(struct ww_sweep_args *args, const char *text)
{
	if (!*text || strcmp(text, "-") == 0) {
		ww_complain(args->who, "--plot: needs the name of a file to write, for example curves.svg");
		return false;
	}
	args->plot = text;
	return true;
}

static void add_file(struct ww_sweep_args *args, struct argp_state *state, char *name)
{
	if (!args->files)
		args->files = ww_cli_alloc((size_t)state->argc, sizeof(*args->files));
	args->files[args->n_files++] = name;
}

static bool check_files(const struct ww_sweep_args *args)
{
	size_t from_stdin = 0;
	for (size_t i = 0; i < args->n_files; i++)
		from_stdin += strcmp(args->files[i], "-") == 0;
	if (args->n_files == 0)
		ww_complain(args->who, "no FILE given; see '%s --help'", args->who);
	else if (from_stdin > 1)
		ww_complain(args->who, "standard input '-' can be read only once");
	return args->n_files > 0 && from_stdin <= 1;
}

static error_t checked(bool fine)
{
	return fine ? 0 : EINVAL;
}

static error_t parse_sweep(int key, char *arg, struct argp_state *state)
{
	struct ww_sweep_args *args = state->input;
	switch (key) {
	case OPT_CAPS:
		return checked(read_caps(args, arg));
	case OPT_SIGMA:
		return checked(read_sigma(args, arg));
	case OPT_PLOT:
		return checked(read_plot(args, arg));
	case OPT_MAP:
		args->map = arg;
		return 0;
	case OPT_JSON:
		args->json = true;
		return 0;
	case ARGP_KEY_ARG:
		add_file(args, state, arg);
		return 0;
	case ARGP_KEY_END:
		return checked(check_files(args));
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp ww_sweep_argp = {.options = sweep_options, .parser = parse_sweep};

/* One percentage without its sign and the blanks around it. */
static bool read_percent(const char *who, const char *option, const char *text, double *out)
{
	size_t length = strlen(text);
	while (length > 0 && isspace((unsigned char)text[length - 1]))
		length--;
	if (length > 0 && text[length - 1] == '%')
		length--;
	double percent = 0;
	if (!read_number(who, option, text, length, &percent))
		return false;
	if (percent < 0 || percent >= 100) {
		ww_complain(who, "%s: '%s' is outside 0 to 100 %%; write percent, for example 30", option, text);
		return false;
	}
	*out = percent / 100;
	return true;
}

bool ww_args_percents(const char *who, const char *option, char *text, struct ww_fractions *out)
{
	out->n = 0;
	for (char *item = text; item;) {
		char *next = strchr(item, ',');
		if (next)
			*next++ = '\0';
		if (out->n == out->room) {
			ww_complain(who, "%s: more than %zu values", option, out->room);
			return false;
		}
		if (!read_percent(who, option, item, &out->v[out->n]))
			return false;
		out->n++;
		item = next;
	}
	return true;
}
