/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli: the program `wattweir`. What its commands share. Only this room prints, and only here may a lack of memory end
 * the process. Single-threaded.
 *
 * Errors are one line "wattweir COMMAND: text" on stderr. `who` is that "wattweir COMMAND" throughout.
 */
#ifndef WW_CLI_INTERNAL_H
#define WW_CLI_INTERNAL_H

#include "core/core.h"
#include "files/files.h"

#include <argp.h>

/* Exit codes of every command. */
enum ww_exit {
	WW_EXIT_OK = 0,
	WW_EXIT_FAILED = 1,
	WW_EXIT_USAGE = 2,
	WW_EXIT_ATTENTION = 3 /* it ran, and a person should look at the outcome */
};

/* The commands: argv[0] is `who`. Each returns an enum ww_exit. */
int ww_cmd_pfi(int argc, char **argv);
int ww_cmd_compare(int argc, char **argv);
int ww_cmd_plan(int argc, char **argv);
int ww_cmd_simulate(int argc, char **argv);
int ww_cmd_replay(int argc, char **argv);

/* ---- text.c ---------------------------------------------------------------------------------------------------- */

/* Prints the one line on stderr; control characters in it become '?'. */
void ww_complain(const char *who, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Zeroed memory for n items; ends the process with one line when there is none. Freed with free(). */
void *ww_cli_alloc(size_t n, size_t size);

/* A copy fit for a terminal: control characters, direction overrides and invalid UTF-8 become '?'; longer than
 * `max_width` columns is cut and ends in "...". Caller frees. */
char *ww_text_clean(const char *text, size_t max_width);

/* A copy in which only invalid UTF-8 is replaced by '?'. Caller frees. */
char *ww_text_utf8(const char *text);

/* Columns that valid UTF-8 text takes on a terminal. */
size_t ww_text_width(const char *text);

/* A rounded number with a comma between thousands: "12,345". Returns `out`. */
#define WW_TEXT_NUMBER 48
char *ww_text_thousands(double value, char out[WW_TEXT_NUMBER]);

/* ---- args.c: arguments that commands share ------------------------------------------------------------------------- */

/* Arguments of a command that reads measured sweeps. */
struct ww_sweep_args {
	const char *who;
	char **files; /* borrowed from argv */
	size_t n_files;
	const char *map;        /* NULL when not given */
	const char *plot;       /* NULL when not given */
	const char *other_file; /* another file that the command reads, NULL when there is none */
	double cap_lo_w, cap_hi_w;
	double noise_frac;
	bool json;
};

/* An argp child: options --caps, --map, --sigma, --json, --plot and the FILE arguments; its input is a ww_sweep_args. */
extern const struct argp ww_sweep_argp;

/* Parses a command line; true when it may go on. A mistake was reported in one line; the exit code is then 2. `flags` are
 * argp's; -h is understood as --help. */
bool ww_args_parse(const struct argp *argp, unsigned flags, int argc, char **argv, void *input);

/* To be called by the outermost parser on ARGP_KEY_INIT: keeps argp's errors to one line. */
void ww_args_quiet(struct argp_state *state);

/* Reads watts for an option: a plain number, or one with its unit W, kW or MW. One line and false on a mistake. */
bool ww_args_watts(const char *who, const char *option, const char *text, double *out);

/* True for the name of a picture to write, "curves.svg"; else one line. */
bool ww_args_svg(const char *who, const char *path);

/* True for a word like "20" or "20%": perhaps the argument of an option that was left out. */
bool ww_args_is_percent(const char *word);

/* A list of fractions in storage of the caller. */
struct ww_fractions {
	double *v;
	size_t n, room;
};

/* Reads "10,20%,30" as fractions; `text` is taken apart. On a mistake: one line, false. Each must be in [0, 100) percent;
 * a number between 0 and 1 needs its sign, for a fraction may be meant. */
bool ww_args_percents(const char *who, const char *option, char *text, struct ww_fractions *out);

/* ---- plan_args.c: the command line of plan ------------------------------------------------------------------------ */

struct ww_plan_args {
	struct ww_sweep_args sweep;
	const char *cluster_path;  /* NULL = every group of the sweep is one job */
	double cut_frac, budget_w; /* NAN when not given */
	enum ww_objective objective;
	enum ww_account account;
	bool explore, equal;
};

/* As ww_args_parse. args->sweep.files is to be freed in any case. */
bool ww_plan_args_parse(int argc, char **argv, struct ww_plan_args *args);

/* ---- input.c: the measured sweeps of a command ------------------------------------------------------------------- */

/* A sweep file and its jobs, with the points inside the wanted caps. */
struct ww_sweep_file {
	const char *name; /* as the user wrote it, "-" for standard input; borrowed */
	struct ww_sweep sweep;
	size_t n_jobs;               /* = sweep.n_groups, same order */
	struct ww_compare_job *jobs; /* a job may be left with 0 points */
};

/* Reads args->n_files files, all or none. NULL after one error line, also where --plot would overwrite one of the inputs.
 * Ended with ww_sweep_files_destroy. */
struct ww_sweep_file *ww_sweep_files_create(const struct ww_sweep_args *args);
void ww_sweep_files_destroy(struct ww_sweep_file *files, size_t n);

/* ---- story.c: a comparison in words ----------------------------------------------------------------------------- */

/* Prints three sentences on the feasible row nearest a 30 % cut, or on the least cut when no row is feasible; of several
 * rows it says which before them.
 * `n_depths` is how many caps each policy could see beside the baseline. */
void ww_story_print(const struct ww_compare_row *rows, size_t n, size_t n_depths, FILE *out);

/* ---- table.c ---------------------------------------------------------------------------------------------------- */

struct ww_column {
	const char *head, *unit; /* two lines of the header */
	enum { WW_LEFT, WW_RIGHT } align;
};

typedef struct ww_table ww_table;

/* `columns` is borrowed for the life of the table. */
ww_table *ww_table_create(const struct ww_column *columns, size_t n);
void ww_table_destroy(ww_table *table);

/* Fills the next cell, row by row, from left to right. Text is cleaned for a terminal. */
void ww_table_text(ww_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same for a number with this many decimals; "-" for NAN. */
void ww_table_number(ww_table *table, double value, int decimals);

/* The same with about this many significant digits, never in exponent form. */
void ww_table_significant(ww_table *table, double value, int digits);

void ww_table_print(const ww_table *table, FILE *out);

/* ---- json.c: a builder for --json -------------------------------------------------------------------------------- */

typedef struct ww_json ww_json;

/* Starts with an open object. Keys are for objects and NULL inside arrays. Strings are copied. */
ww_json *ww_json_create(void);
void ww_json_destroy(ww_json *json);
void ww_json_begin_object(ww_json *json, const char *key);
void ww_json_begin_array(ww_json *json, const char *key);
void ww_json_end(ww_json *json);
void ww_json_text(ww_json *json, const char *key, const char *text); /* NULL becomes null */
void ww_json_number(ww_json *json, const char *key, double value);   /* NAN and infinite become null */
void ww_json_count(ww_json *json, const char *key, size_t value);
void ww_json_null(ww_json *json, const char *key);

/* Prints the whole. Write errors stay on the stream; memory is never short here (see ww_cli_alloc). */
void ww_json_print(const ww_json *json, FILE *out);

/* ---- output.c: files that commands write ------------------------------------------------------------------------- */

/*
 * A file appears under its name only when it is whole: until then it is NAME.XXXXXX.part beside it, with six letters by
 * chance, so that no two runs write one file. An end by exit() or by a signal that asks for it removes the part. A file
 * that is replaced keeps its rights. Written directly are standard output, which is "-" or any other name of it, what is
 * there and no regular file, and names of open descriptors as /dev/fd/3.
 */
struct ww_output {
	const char *who, *path;
	FILE *out; /* NULL = not open */
	char *place,
		*part; /* where it is to be, all links followed, and where it is now; NULL where it is written directly */
};

/* False after one error line. `path` is borrowed until the end. */
bool ww_output_open(struct ww_output *output, const char *who, const char *path);

/* The file is whole, but not to be under its name yet: ww_output_finish or ww_output_drop is to follow. False after one
 * error line; it is dropped then. Fine if it is not open. */
bool ww_output_close(struct ww_output *output);

/* The file is whole. False after one error line; what was there before is then untouched. Fine if it is not open. */
bool ww_output_finish(struct ww_output *output);

/* It is not going to be whole: nothing is left of it. Fine if it is not open. */
void ww_output_drop(struct ww_output *output);

/* Whether all that was printed on standard output is out; else one error line. To be asked before files are replaced. */
bool ww_output_flush(const char *who);

/* Whether it is "-" or another name of what standard output is; the null device does not count. */
bool ww_output_is_stdout(const char *path);

/* Whether they are the same file by any spelling or link. */
bool ww_output_same(const char *a, const char *b);

/* Whether it is the file that is read, which may be "-" for standard input. */
bool ww_output_is_input(const char *path, const char *input);

/* ---- plot.c: SVG by gnuplot ---------------------------------------------------------------------------------------- */

typedef struct ww_plot ww_plot;

enum ww_plot_style { WW_PLOT_POINTS, WW_PLOT_LINE, WW_PLOT_LINE_POINTS, WW_PLOT_GUIDE, WW_PLOT_BARS };

/* One picture of one or more panels below each other. */
ww_plot *ww_plot_create(size_t n_panels);

/* Panels of horizontal bars beside each other, one line per name, for points x = 0, 1, 2 ... The names are borrowed until
 * the last panel was started. */
ww_plot *ww_plot_create_bars(size_t n_panels, const char *const *names, size_t n);
void ww_plot_destroy(ww_plot *plot);

/* What stands around a panel; `legend` is where it lies: "bottom right" or the like; bars have it on top. Borrowed for the
 * call. */
struct ww_plot_frame {
	const char *title, *x_label, *y_label, *legend;
};

/* Starts the next panel. */
void ww_plot_panel(ww_plot *plot, const struct ww_plot_frame *frame);

/* Starts the next series of the panel; series of one colour number share a colour; NULL title = not in the legend. */
void ww_plot_series(ww_plot *plot, enum ww_plot_style style, unsigned colour, const char *title);
void ww_plot_point(ww_plot *plot, double x, double y);

/* Whether gnuplot is here and can draw; else one error line. */
bool ww_plot_can(const char *who);

/* Runs gnuplot, and puts the picture into an open output, which is not closed. False after one error line. */
bool ww_plot_draw(ww_plot *plot, struct ww_output *to);

/* The same with a file of its own, which it tells of on stderr. On failure an existing file is untouched. */
bool ww_plot_write(ww_plot *plot, const char *who, const char *path);

#endif
