/* SPDX-License-Identifier: Apache-2.0 */
/* What is told while a run goes on: one line on a terminal, a trace as CSV, a journal. */
#include "cli/simulate_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BAR 30
#define PER_LINE_S 60      /* of virtual time between two states of the line */
#define LIVE_LINE_US 40000 /* of real time, where it is to be watched */
#define PER_PLAIN_LINE 10  /* states of the line for one printed without a terminal */

struct ww_watch {
	struct ww_watch_args args;
	struct ww_output trace, journal, picture;
	struct ww_journal_out frames_out;
	struct ww_buf frames;
	bool terminal, colour, shown; /* shown: a line stands on the terminal */
	enum ww_division division;
	uint64_t commands; /* so far */
	double free_tps;   /* of all jobs before the main event */
};

/* ---- Files ---------------------------------------------------------------------------------------------------------------- */

ww_watch *ww_watch_create(const struct ww_watch_args *args)
{
	ww_watch *watch = ww_cli_alloc(1, sizeof *watch);
	watch->args = *args;
	watch->terminal = isatty(STDERR_FILENO);
	watch->colour = watch->terminal && !getenv("NO_COLOR");
	if ((args->trace && !ww_output_open(&watch->trace, args->who, args->trace)) ||
	    (args->journal && !ww_output_open(&watch->journal, args->who, args->journal)) ||
	    (args->plot && !ww_output_open(&watch->picture, args->who, args->plot))) {
		ww_watch_destroy(watch);
		return NULL;
	}
	if (args->journal) {
		watch->frames_out = (struct ww_journal_out){.out = watch->journal.out, .name = args->journal};
		ww_journal_begin(&watch->frames);
	}
	return watch;
}

static bool end_journal(ww_watch *watch)
{
	struct ww_error err = {0};
	if (!watch->journal.out || !ww_journal_write_end(&watch->frames_out, &watch->frames, &err))
		return ww_output_close(&watch->journal);
	ww_complain(watch->args.who, "%s", err.text);
	return false;
}

bool ww_watch_close(ww_watch *watch)
{
	return ww_output_close(&watch->trace) && end_journal(watch);
}

bool ww_watch_draw(ww_watch *watch, const struct ww_simulated *s)
{
	return !watch->picture.out || (ww_simulated_plot(s, &watch->picture) && ww_output_close(&watch->picture));
}

bool ww_watch_finish(ww_watch *watch)
{
	bool fine = ww_output_finish(&watch->trace) && ww_output_finish(&watch->journal) &&
	            ww_output_finish(&watch->picture);
	if (fine && watch->args.plot)
		ww_complain(watch->args.who, "wrote %s", watch->args.plot);
	return fine;
}

void ww_watch_destroy(ww_watch *watch)
{
	if (!watch)
		return;
	ww_output_drop(&watch->trace);
	ww_output_drop(&watch->journal);
	ww_output_drop(&watch->picture);
	ww_buf_finish(&watch->frames);
	free(watch);
}

/* ---- Trace ------------------------------------------------------------------------------------------------------------------ */

static void print_name(FILE *out, const char *name)
{
	fputs(",\"", out);
	for (; *name; name++)
		fprintf(out, *name == '"' ? "\"\"" : "%c", *name);
}

static void print_head(FILE *out, const struct ww_scene *scene)
{
	fputs("time_s,power_w,budget_w,meter_w,gpu_w,non_gpu_w,charge_w,free_w,missing_w,tokens_tps,commands", out);
	for (uint32_t j = 0; j < scene->plant.n_jobs; j++) {
		print_name(out, scene->told[j].name);
		fputs(" tps\"", out);
		print_name(out, scene->told[j].name);
		fputs(" cap_w\"", out);
	}
	fputc('\n', out);
}

/* An unknown value leaves its cell empty. */
static void print_value(FILE *out, double v)
{
	if (isfinite(v))
		fprintf(out, ",%.10g", v);
	else
		fputc(',', out);
}

static uint32_t watched_row(const struct ww_run *run, size_t event)
{
	return event < run->n_events ? run->events[event].told->row : 0;
}

static void print_row(const ww_watch *watch, const struct ww_scene *scene, const struct ww_run *run,
                      const struct ww_world_second *s)
{
	size_t event = ww_scene_main_event(scene);
	uint32_t row = watched_row(run, event), second = ww_second_of(s);
	bool told = event < run->n_events;
	const struct ww_row_decision none = {.non_gpu_w = NAN, .charge_w = NAN, .free_w = NAN, .missing_w = NAN};
	const struct ww_row_decision *d = s->decision && s->decision->n_rows > row ? &s->decision->rows[row] : &none;
	print_value(watch->trace.out,
	            told ? run->events[event].power_w[second] : ww_plant_row_w(s->plant, row, WW_BOUNDARY_METER));
	print_value(watch->trace.out, ww_run_budget_w(scene, run, second));
	print_value(watch->trace.out, scene->row_configs[row].has_meter ? ww_plant_meter_w(s->plant, row) : NAN);
	print_value(watch->trace.out, ww_plant_row_w(s->plant, row, WW_BOUNDARY_GPU));
	print_value(watch->trace.out, d->non_gpu_w);
	print_value(watch->trace.out, d->charge_w);
	print_value(watch->trace.out, d->free_w);
	print_value(watch->trace.out, d->missing_w);
	print_value(watch->trace.out, run->tps[second]);
	print_value(watch->trace.out, (double)(run->account.commands - watch->commands));
}

static void trace(const ww_watch *watch, const struct ww_scene *scene, const struct ww_run *run,
                  const struct ww_world_second *s)
{
	if (s->at_us == WW_SECOND_US)
		print_head(watch->trace.out, scene);
	fprintf(watch->trace.out, "%u", ww_second_of(s));
	print_row(watch, scene, run, s);
	for (uint32_t j = 0; j < scene->plant.n_jobs; j++) {
		const struct ww_sim_job *job = &scene->jobs[j];
		double cap_w = 0;
		for (uint32_t k = 0; k < job->n_gpus; k++)
			cap_w += ww_plant_enforced_w(s->plant, job->gpus[k]) / job->n_gpus;
		print_value(watch->trace.out, ww_plant_job_tps(s->plant, j));
		print_value(watch->trace.out, cap_w);
	}
	fputc('\n', watch->trace.out);
}

/* ---- One line ----------------------------------------------------------------------------------------------------------------- */

static void print_bar(const ww_watch *watch, double power_w, double budget_w, double full_w)
{
	int filled = (int)lround(BAR * fmin(1, power_w / full_w));
	int mark = isnan(budget_w) ? -1 : (int)lround(BAR * fmin(1, budget_w / full_w));
	fputs(watch->colour ? (power_w > budget_w ? "[\033[31m" : "[\033[32m") : "[", stderr);
	for (int i = 0; i <= BAR; i++)
		fputc(i == mark ? '|' : i < filled ? '#' : ' ', stderr);
	fputs(watch->colour ? "\033[0m]" : "]", stderr);
}

static void print_line(ww_watch *watch, const struct ww_scene *scene, const struct ww_run *run, uint32_t second)
{
	static const char *const names[WW_N_RUNS] = {"wattweir", "equal cut", "oracle"};
	size_t event = ww_scene_main_event(scene);
	const struct ww_event_run *e = &run->events[event];
	char time[WW_TEXT_TIME], power[WW_TEXT_NUMBER], budget[WW_TEXT_NUMBER];
	double full_w = 0, budget_w = ww_run_budget_w(scene, run, second);
	for (uint32_t i = 0; i < second && i < e->first + 1; i++)
		full_w = fmax(full_w, e->power_w[i]);
	fprintf(stderr, "%s%-9s %s ", watch->terminal ? "\r\033[K" : "", names[run->division],
	        ww_text_time(second + 1, time));
	print_bar(watch, e->power_w[second], budget_w, full_w > 0 ? full_w : e->power_w[second]);
	fprintf(stderr, " %s W", ww_text_thousands(e->power_w[second], power));
	if (!isnan(budget_w))
		fprintf(stderr, " of %s", ww_text_thousands(budget_w, budget));
	if (watch->free_tps > 0)
		fprintf(stderr, ", tokens/s %.1f %% of before", 100 * run->tps[second] / watch->free_tps);
	if (!watch->terminal)
		fputc('\n', stderr);
	watch->shown = watch->terminal;
}

static void clear_line(ww_watch *watch)
{
	if (watch->shown)
		fputs("\r\033[K", stderr);
	watch->shown = false;
}

static void tell(ww_watch *watch, const struct ww_scene *scene, const struct ww_run *run, uint32_t second)
{
	size_t event = ww_scene_main_event(scene);
	bool live = watch->args.live && run->division == WW_DIVISION_AUTO;
	if (event >= run->n_events || !(watch->terminal || live))
		return;
	if (second < run->events[event].first)
		watch->free_tps += (run->tps[second] - watch->free_tps) / (second + 1);
	if (second + 1 == run->seconds)
		clear_line(watch);
	else if ((second + 1) % (watch->terminal ? PER_LINE_S : PER_LINE_S * PER_PLAIN_LINE) == 0)
		print_line(watch, scene, run, second);
	if (live && (second + 1) % PER_LINE_S == 0)
		usleep(LIVE_LINE_US);
}

/* ---- A second ----------------------------------------------------------------------------------------------------------------- */

static ww_status watch_second(void *ctx, const struct ww_scene *scene, const struct ww_run *run,
                              const struct ww_world_second *s, struct ww_error *err)
{
	ww_watch *watch = ctx;
	tell(watch, scene, run, ww_second_of(s));
	if (watch->division != WW_DIVISION_AUTO)
		return WW_OK;
	if (watch->trace.out)
		trace(watch, scene, run, s);
	watch->commands = run->account.commands;
	if (watch->trace.out && ferror(watch->trace.out))
		return ww_fail(err, WW_ERR_IO, "cannot write '%s': %s", watch->args.trace, strerror(errno));
	return watch->journal.out ? ww_journal_write(&watch->frames_out, &watch->frames, err) : WW_OK;
}

struct ww_run_watch ww_watch_run(ww_watch *watch, enum ww_division division)
{
	bool journal = division == WW_DIVISION_AUTO && watch->journal.out;
	watch->division = division;
	watch->free_tps = 0;
	return (struct ww_run_watch){.second = watch_second,
	                             .ctx = watch,
	                             .journal = journal ? &watch->frames : NULL,
	                             .journal_from = watch->args.journal_from};
}
