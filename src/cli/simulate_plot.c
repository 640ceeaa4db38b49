/* SPDX-License-Identifier: Apache-2.0 */
/* A simulation as a picture: power against the budget above, tokens/s below. */
#include "cli/simulate_internal.h"

#include <math.h>

#define POINTS 360 /* of a line; each is a mean */

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

/* Only where there is one; its ends are drawn sharp. */
static void draw_budget(ww_plot *plot, const struct ww_event_run *e, uint32_t seconds)
{
	for (uint32_t i = 0; i < seconds; i++)
		if (!isnan(e->budget_w[i]) && (i == e->first || i + 1 == e->end || i % 60 == 0))
			ww_plot_point(plot, i / 60.0, e->budget_w[i] / 1000);
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
	draw_budget(plot, e, run->seconds);
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
