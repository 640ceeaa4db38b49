/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plots by gnuplot. Numbers travel in data blocks. Names stand in double quotes with every byte but letters, digits and
 * a few harmless marks as an octal escape, so nothing in a name can reach gnuplot's parser. The script, the picture and
 * gnuplot's complaints each pass through a temporary file, so neither side waits for the other, and the wanted file is
 * written only after gnuplot was content.
 */
#include "cli/cli_internal.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WIDTH 760
#define PANEL_HEIGHT 480
#define MAX_TITLE_WIDTH 60
#define BAR_PANEL_WIDTH 400
#define NAMES_WIDTH 310
#define MAX_NAME_WIDTH 36
#define BAR_PITCH 20.0
#define MAX_NAMES 200 /* more bars than this become thinner, and not all are named */
#define PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,_-/()"

/* Okabe and Ito's colours, told apart by most eyes. */
static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"};
#define N_COLOURS (sizeof(colours) / sizeof(colours[0]))

struct text {
	char *text;
	size_t size;
	FILE *out;
};

struct ww_plot {
	struct text data, script; /* data blocks; the commands that draw them */
	unsigned series;          /* so far, in all panels */
	unsigned panel_series;    /* so far, in this panel */
	size_t n_panels, panel;   /* panel: those begun */
	const char *const *names; /* of bars; NULL in a plot of curves */
	size_t n_names;
};

static void open_text(struct text *text)
{
	text->out = open_memstream(&text->text, &text->size);
	if (!text->out) {
		fputs("wattweir: out of memory\n", stderr);
		exit(WW_EXIT_FAILED);
	}
}

static void print_quoted(FILE *out, const char *text, size_t max_width)
{
	char *clean = ww_text_clean(text, max_width);
	fputc('"', out);
	bool escaped = false;
	for (const char *c = clean; *c; c++) {
		/* gnuplot reads digits behind an octal escape as its part, so they are escaped as well */
		escaped = !strchr(PLAIN, *c) || (escaped && isdigit((unsigned char)*c));
		fprintf(out, escaped ? "\\%03o" : "%c", (unsigned char)*c);
		if (c[0] == '&' &&
		    c[1] == '#') /* gnuplot takes this for a character reference and leaves it as it is */
			fputc(' ', out);
	}
	fputc('"', out);
	free(clean);
}

static ww_plot *start_plot(size_t n_panels, size_t width, size_t height)
{
	ww_plot *plot = ww_cli_alloc(1, sizeof(*plot));
	open_text(&plot->data);
	open_text(&plot->script);
	plot->n_panels = n_panels;
	fprintf(plot->script.out,
	        "set encoding utf8\nset term svg noenhanced size %zu,%zu dynamic font 'sans,14' background '#ffffff'\n"
	        "set border lc rgb '#666666'\nset tics textcolor rgb '#222222'\nset autoscale fix\n",
	        width, height);
	return plot;
}

ww_plot *ww_plot_create(size_t n_panels)
{
	ww_plot *plot = start_plot(n_panels, WIDTH, PANEL_HEIGHT * n_panels);
	fprintf(plot->script.out,
	        "set grid lc rgb '#dddddd'\nset key noenhanced samplen 2 spacing 1.1\nset offsets graph 0.02, graph "
	        "0.02, "
	        "graph 0.02, graph 0.02\nset multiplot layout %zu,1\n",
	        n_panels);
	return plot;
}

ww_plot *ww_plot_create_bars(size_t n_panels, const char *const *names, size_t n)
{
	double inside = BAR_PITCH * (double)(n < MAX_NAMES ? n : MAX_NAMES), height = inside + 120;
	ww_plot *plot = start_plot(n_panels, NAMES_WIDTH + BAR_PANEL_WIDTH * n_panels, (size_t)height);
	plot->names = names;
	plot->n_names = n;
	fprintf(plot->script.out,
	        "set grid xtics noytics lc rgb '#dddddd'\nset key outside center top horizontal noenhanced samplen 1\n"
	        "set offsets 0, graph 0.03, 0, 0\nset tmargin at screen %.6f\nset bmargin at screen %.6f\n"
	        "set multiplot\n",
	        1 - 60 / height, 60 / height);
	return plot;
}

void ww_plot_destroy(ww_plot *plot)
{
	if (!plot)
		return;
	(void)fclose(plot->data.out);
	(void)fclose(plot->script.out);
	free(plot->data.text);
	free(plot->script.text);
	free(plot);
}

static void print_setting(FILE *out, const char *what, const char *text)
{
	fprintf(out, "set %s ", what);
	print_quoted(out, text, MAX_TITLE_WIDTH);
	fputs(" noenhanced\n", out);
}

/* Names stand only left of the first panel. As the text of a tic is a format to gnuplot, each is a label. */
static void print_names(const ww_plot *plot)
{
	FILE *out = plot->script.out;
	size_t step = (plot->n_names + MAX_NAMES - 1) / MAX_NAMES;
	fputs("unset label\n", out);
	for (size_t i = 0; plot->panel == 1 && i < plot->n_names; i += step) {
		fputs("set label ", out);
		print_quoted(out, plot->names[i], MAX_NAME_WIDTH);
		fprintf(out, " noenhanced at graph 0, first %zu right offset character -1, 0\n", i);
	}
}

static void begin_bars(const ww_plot *plot)
{
	double width = NAMES_WIDTH + (double)BAR_PANEL_WIDTH * (double)plot->n_panels;
	double left = NAMES_WIDTH + (double)BAR_PANEL_WIDTH * (double)(plot->panel - 1);
	fprintf(plot->script.out,
	        "set lmargin at screen %.6f\nset rmargin at screen %.6f\nset yrange [%g:-0.5]\nset xrange [0:*]\n"
	        "unset ytics\nset xtics autofreq\n",
	        left / width, (left + BAR_PANEL_WIDTH - 30) / width, (double)plot->n_names - 0.5);
	print_names(plot);
}

void ww_plot_panel(ww_plot *plot, const struct ww_plot_frame *frame)
{
	FILE *out = plot->script.out;
	if (plot->series > 0)
		fputc('\n', out);
	plot->panel_series = 0;
	plot->panel++;
	print_setting(out, "title", frame->title);
	print_setting(out, "xlabel", frame->x_label);
	print_setting(out, "ylabel", frame->y_label);
	if (plot->names)
		begin_bars(plot);
	else
		fprintf(out, "set key %s\nset xtics autofreq\nset yrange [*:*]\n", frame->legend);
}

/* When the colours are used up, they come again with dashes. */
static void print_style(FILE *out, enum ww_plot_style style, size_t number)
{
	const char *colour = colours[number % N_COLOURS];
	size_t dashes = 1 + number / N_COLOURS % 4;
	switch (style) {
	case WW_PLOT_POINTS:
		fprintf(out, " with points pt 7 ps 0.5 lc rgb '%s'", colour);
		break;
	case WW_PLOT_LINE:
		fprintf(out, " with lines lw 2 dt %zu lc rgb '%s'", dashes, colour);
		break;
	case WW_PLOT_LINE_POINTS:
		fprintf(out, " with linespoints lw 2 dt %zu pt 7 ps 0.5 lc rgb '%s'", dashes, colour);
		break;
	case WW_PLOT_BARS:
		fprintf(out, " with boxxyerror fill solid 0.6 noborder lc rgb '%s'", colour);
		break;
	case WW_PLOT_GUIDE:
		fputs(" with lines lw 1 dt 3 lc rgb '#999999'", out);
	}
}

void ww_plot_series(ww_plot *plot, enum ww_plot_style style, unsigned colour, const char *title)
{
	FILE *out = plot->script.out;
	if (plot->series > 0)
		fputs("EOD\n", plot->data.out);
	fprintf(plot->data.out, "$d%u << EOD\n", plot->series);
	fprintf(out, "%s $d%u using %s", plot->panel_series == 0 ? "plot" : ",", plot->series,
	        style == WW_PLOT_BARS ? "(0):1:(0):2:($1-0.35):($1+0.35)"
	        : plot->names         ? "2:1"
	                              : "1:2");
	print_style(out, style, colour);
	fputs(title ? " title " : " notitle", out);
	if (title)
		print_quoted(out, title, MAX_TITLE_WIDTH);
	plot->series++;
	plot->panel_series++;
}

void ww_plot_point(ww_plot *plot, double x, double y)
{
	if (isfinite(x) && isfinite(y))
		fprintf(plot->data.out, "%.6g %.6g\n", x, y);
}

/* Three files between us and gnuplot. */
struct exchange {
	FILE *script, *picture, *complaints;
};

static bool open_exchange(struct exchange *files)
{
	*files = (struct exchange){tmpfile(), tmpfile(), tmpfile()};
	return files->script && files->picture && files->complaints;
}

static void close_exchange(struct exchange *files)
{
	FILE *all[] = {files->script, files->picture, files->complaints};
	for (size_t i = 0; i < 3; i++)
		if (all[i])
			(void)fclose(all[i]);
}

static bool write_script(const ww_plot *plot, FILE *out)
{
	return fwrite(plot->data.text, 1, plot->data.size, out) == plot->data.size &&
	       fwrite(plot->script.text, 1, plot->script.size, out) == plot->script.size && fflush(out) == 0 &&
	       fseek(out, 0, SEEK_SET) == 0;
}

/* 0 or what posix_spawnp says; -d keeps the user's own gnuplot settings out. */
static int spawn_gnuplot(const struct exchange *files, pid_t *child)
{
	char *argv[] = {(char *)"gnuplot", (char *)"-d", NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t defaults;
	sigemptyset(&defaults);
	sigaddset(&defaults, SIGPIPE);
	sigaddset(&defaults, SIGXFSZ);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fileno(files->script), STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, fileno(files->picture), STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, fileno(files->complaints), STDERR_FILENO);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigdefault(&attributes, &defaults);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
	int failed = posix_spawnp(child, "gnuplot", &actions, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return failed;
}

static bool run_gnuplot(const struct exchange *files, const char *who)
{
	pid_t child = 0;
	int status = 0, failed = spawn_gnuplot(files, &child);
	if (failed) {
		ww_complain(
			who,
			"--plot needs gnuplot, which cannot be run (%s); install it with: apt-get install gnuplot-nox",
			strerror(failed));
		return false;
	}
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return true;
	char line[300] = "";
	rewind(files->complaints);
	while (fgets(line, sizeof(line), files->complaints) && strspn(line, " \t\r\n^") == strlen(line))
		;
	line[strcspn(line, "\r\n")] = '\0';
	ww_complain(who, "gnuplot could not draw the plot: %s", *line ? line : "it says nothing");
	return false;
}

static bool copy_stream(FILE *in, FILE *out)
{
	char buffer[8192];
	bool fine = fseek(in, 0, SEEK_SET) == 0;
	for (size_t n; fine && (n = fread(buffer, 1, sizeof(buffer), in)) > 0;)
		fine = fwrite(buffer, 1, n, out) == n;
	return fine && !ferror(in);
}

/* Ends the script; nothing may be added afterwards. */
static bool finish_script(ww_plot *plot)
{
	if (plot->series > 0)
		fputs("EOD\n", plot->data.out);
	fputs("\nunset multiplot\n", plot->script.out);
	return fflush(plot->data.out) == 0 && fflush(plot->script.out) == 0;
}

static bool no_exchange(const char *who)
{
	ww_complain(who, "--plot: cannot write a temporary file: %s", strerror(errno));
	return false;
}

bool ww_plot_can(const char *who)
{
	struct exchange files;
	bool fine = open_exchange(&files) && fputs("set term svg\n", files.script) >= 0 && fflush(files.script) == 0 &&
	            fseek(files.script, 0, SEEK_SET) == 0;
	fine = fine ? run_gnuplot(&files, who) : no_exchange(who);
	close_exchange(&files);
	return fine;
}

static bool copy_picture(FILE *picture, struct ww_output *to)
{
	bool fine = copy_stream(picture, to->out);
	if (!fine)
		ww_complain(to->who, "cannot write '%s': %s", to->path, strerror(errno));
	return fine;
}

bool ww_plot_draw(ww_plot *plot, struct ww_output *to)
{
	struct exchange files;
	bool fine = open_exchange(&files) && finish_script(plot) && write_script(plot, files.script);
	fine = fine ? run_gnuplot(&files, to->who) && copy_picture(files.picture, to) : no_exchange(to->who);
	close_exchange(&files);
	return fine;
}

bool ww_plot_write(ww_plot *plot, const char *who, const char *path)
{
	struct ww_output output;
	bool fine = ww_output_open(&output, who, path) && ww_plot_draw(plot, &output) && ww_output_finish(&output);
	ww_output_drop(&output);
	if (fine)
		ww_complain(who, "wrote %s", path);
	return fine;
}
