/* SPDX-License-Identifier: Apache-2.0 */
/* A simulation as a picture: power against the budget above, tokens/s below. */
#include "cli/simulate_internal.h"

#include <math.h>

#define POINTS 360       /* of a line; each is a mean */
#define LEAST_JUMP 0.002 /* of a budget from second to second; a ramp is slower */

static const struct {
	enum ww_division division;
	unsigned colour;
	const char *name;
} lines[] = {{WW_DIVISION_EXACT, 2, "oracle"}, {WW_DIVISION_EQUAL, 1, "equal cut"}, {WW_DIVISION_AUTO, 0, "wattweir"}};
#define N_LINES (sizeof lines / sizeof lines[0])

static void draw(ww_plot *plot, const double *v, uint32_t seconds, double scale)
{
	uint32_t step = seconds / POINTS > 0 ? seconds / POINTS : 1;
	for (uint32_t i = 0; i + step <= seconds; i += step) {
		double sum = 0;
		for (uint32_t k = i; k < i + step; k++)
			sum += v[k];
		ww_plot_point(plot, (i + step / 2.0) / 60, sum / step * scale);
	}
}

/* Whether a budget begins, ends or jumps between two seconds. */
static bool is_edge(double a_w, double b_w)
{
	return isnan(a_w) || isnan(b_w) || fabs(a_w - b_w) > LEAST_JUMP * fmin(a_w, b_w);
}

/* Only where there is one, with gaps between; its edges are drawn sharp. */
static void draw_budget(ww_plot *plot, const struct ww_simulated *s, const struct ww_run *run)
{
	double last_w = NAN;
	bool drawn = false;
	for (uint32_t i = 0; i < run->seconds; i++) {
		double before_w = last_w, now_w = last_w = ww_run_budget_w(s->scene, run, i);
		double next_w = i + 1 < run->seconds ? ww_run_budget_w(s->scene, run, i + 1) : NAN;
		if (isnan(now_w))
			continue;
		if (drawn && isnan(before_w))
			ww_plot_series(plot, WW_PLOT_LINE, 3, NULL);
		drawn = true;
		if (is_edge(before_w, now_w) || is_edge(now_w, next_w) || i % 60 == 0)
			ww_plot_point(plot, i / 60.0, now_w / 1000);
	}
}

bool ww_simulated_plot(const struct ww_simulated *s, struct ww_output *to)
{
	const struct ww_run *run = s->runs[WW_DIVISION_AUTO];
	const struct ww_event_run *e = &run->events[s->main_event];
	char title[200];
	snprintf(title, sizeof title, "%s: power of %s, %s", e->told->name, s->scene->scenario->rows[e->told->row].name,
	         ww_boundary_words(e->told->boundary));
	ww_plot *plot = ww_plot_create(2);
	ww_plot_panel(plot, &(struct ww_plot_frame){title, "minutes", "kW", "bottom left"});
	ww_plot_series(plot, WW_PLOT_LINE, 3, "budget");
	draw_budget(plot, s, run);
	ww_plot_series(plot, WW_PLOT_LINE, 0, "power");
	draw(plot, e->power_w, run->seconds, 1e-3);
	ww_plot_panel(plot, &(struct ww_plot_frame){"tokens per second of all jobs, pauses left out", "minutes",
	                                            "thousand tokens/s", "bottom left"});
	for (size_t i = 0; i < N_LINES; i++) {
		ww_plot_series(plot, WW_PLOT_LINE, lines[i].colour, lines[i].name);
		draw(plot, s->runs[lines[i].division]->rate_tps, run->seconds, 1e-3);
	}
	bool fine = ww_plot_draw(plot, to);
	ww_plot_destroy(plot);
	return fine;
}
