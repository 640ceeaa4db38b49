/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments that commands share. Numbers go through ww_number_read, so a unit or a comma is refused, not guessed. */
#include "cli/cli_internal.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

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

/* ---- Option names ------------------------------------------------------------------------------------------------ */

/* What is found of a name among the options. */
struct lookup {
	const char *name; /* without the dashes */
	size_t length;
	bool known, has_value;
	struct ww_near near;
};

static void look_at(struct lookup *look, const char *name, bool has_value)
{
	ww_near_add(&look->near, name);
	if (strncmp(look->name, name, look->length) == 0) { /* shortened names are fine; argp judges them */
		look->known = true;
		look->has_value = has_value;
	}
}

static void look_in(struct lookup *look, const struct argp *argp)
{
	for (const struct argp_option *o = argp->options; o && (o->name || o->key || o->doc); o++)
		if (o->name)
			look_at(look, o->name, o->arg != NULL);
	for (const struct argp_child *child = argp->children; child && child->argp; child++)
		look_in(look, child->argp);
}

static void unknown_option(const char *who, const struct lookup *look, const char *typed)
{
	if (look->near.n > 0)
		ww_complain(who, "unknown option '%s'; nearest: --%s; see '%s --help'", typed, look->near.names[0],
		            who);
	else
		ww_complain(who, "unknown option '%s'; see '%s --help'", typed, who);
}

/* One word that begins with "--"; *skip says that the next one is its value. */
static bool check_option(const struct argp *argp, const char *who, const char *word, bool *skip)
{
	char name[64];
	const char *equals = strchrnul(word, '=');
	snprintf(name, sizeof name, "%.*s", (int)(equals - word) - 2, word + 2);
	struct lookup look = {.name = name, .length = strlen(name), .near = {.wanted = name}};
	look_in(&look, argp);
	look_at(&look, "help", false);
	look_at(&look, "usage", false);
	look_at(&look, "version", false);
	if (!look.known)
		unknown_option(who, &look, word);
	*skip = look.has_value && *equals == '\0';
	return look.known;
}

/* argp would name a wrong option, but neither its neighbour nor the help. */
static bool check_options(const struct argp *argp, unsigned flags, int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		bool skip = false;
		if (strcmp(argv[i], "--") == 0 || (argv[i][0] != '-' && (flags & ARGP_IN_ORDER)))
			return true;
		if (strcmp(argv[i], "-h") == 0)
			argv[i] = (char *)"--help";
		if (strncmp(argv[i], "--", 2) == 0) {
			if (!check_option(argp, argv[0], argv[i], &skip))
				return false;
		} else if (argv[i][0] == '-' && argv[i][1] != '\0' && !strchr("?V", argv[i][1])) {
			ww_complain(argv[0], "unknown option '%s'; see '%s --help'", argv[i], argv[0]);
			return false;
		}
		i += skip;
	}
	return true;
}

bool ww_args_parse(const struct argp *argp, unsigned flags, int argc, char **argv, void *input)
{
	return check_options(argp, flags, argc, argv) && argp_parse(argp, argc, argv, flags, NULL, input) == 0;
}

/* ---- Numbers ----------------------------------------------------------------------------------------------------- */

static bool read_number(const char *who, const char *option, const char *text, size_t length, double *out)
{
	enum ww_number_fault fault = ww_number_read(text, length, out);
	if (fault != WW_NUMBER_OK)
		ww_complain(who, "%s: '%.*s' %s", option, (int)length, text, ww_number_fault_text(fault));
	return fault == WW_NUMBER_OK;
}

bool ww_args_watts(const char *who, const char *option, const char *text, double *out)
{
	enum ww_number_fault fault = ww_number_read_unit(text, strlen(text), WW_UNIT_POWER, out);
	if (fault == WW_NUMBER_NO_UNIT)
		fault = ww_number_read(text, strlen(text), out);
	if (fault != WW_NUMBER_OK)
		ww_complain(who, "%s: '%s' %s; write watts, like 12000, or a unit: 12 kW, 0.8 MW", option, text,
		            ww_unit_fault_text(fault));
	return fault == WW_NUMBER_OK;
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

bool ww_args_svg(const char *who, const char *path)
{
	size_t length = strlen(path);
	bool fine = length > 4 && strcasecmp(path + length - 4, ".svg") == 0;
	if (!fine)
		ww_complain(who, "--plot: '%s' does not end in .svg; name a picture to write, for example curves.svg",
		            path);
	return fine;
}

static bool read_plot(struct ww_sweep_args *args, const char *text)
{
	args->plot = text;
	return ww_args_svg(args->who, text);
}

static bool read_map(struct ww_sweep_args *args, const char *text)
{
	struct ww_error err = {0};
	args->map = text;
	if (ww_sweep_check_map(text, &err) == WW_OK)
		return true;
	ww_complain(args->who, "%s", err.text);
	return false;
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
		return checked(read_map(args, arg));
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

/* Length of the text without a percent sign and the blanks around it. */
static size_t percent_length(const char *text)
{
	size_t length = strlen(text);
	while (length > 0 && isspace((unsigned char)text[length - 1]))
		length--;
	return length > 0 && text[length - 1] == '%' ? length - 1 : length;
}

bool ww_args_is_percent(const char *word)
{
	double percent;
	return ww_number_read(word, percent_length(word), &percent) == WW_NUMBER_OK;
}

/* One percentage; the sign may be left out where no fraction can be meant. */
static bool read_percent(const char *who, const char *option, const char *text, double *out)
{
	size_t length = percent_length(text);
	double percent = 0;
	enum ww_number_fault fault = ww_number_read(text, length, &percent);
	if (fault != WW_NUMBER_OK)
		ww_complain(who, "%s: '%s' is not a percentage; write for example 30 or 30%%", option, text);
	else if (percent < 0 || percent >= 100)
		ww_complain(who, "%s: '%s' is outside 0 to 100 %%; write percent, for example 30", option, text);
	else if (percent > 0 && percent < 1 && text[length] != '%')
		ww_complain(who, "%s: %s means %.6g %%; write %.6g%% or %.6g%%", option, text + strspn(text, " "),
		            percent, 100 * percent, percent);
	else {
		*out = percent / 100;
		return true;
	}
	return false;
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
