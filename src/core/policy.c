/* SPDX-License-Identifier: Apache-2.0 */
/* The rules that wattweir is held against, and the optimum. Definitions: docs/compare.md. */
#include "core/core_internal.h"

#include <math.h>
#include <stdlib.h>

struct fleet {
	const struct sweep_job *jobs;
	size_t n;
};

double score(const struct sweep_job *jobs, size_t n, const double *cut)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++) {
		const struct sweep_job *j = &jobs[i];
		sum += interpolate(j->true_w, j->truth, j->n_true, j->p0_w * (1 - cut[i]));
	}
	return sum / (double)n;
}

/* ---- One cap in watts for every GPU ------------------------------------------------------------------------------- */

static double draw_at_cap(const void *context, double cap_w)
{
	const struct fleet *f = context;
	double sum = 0;
	for (size_t i = 0; i < f->n; i++)
		sum += interpolate(f->jobs[i].cap_w, f->jobs[i].draw_w, f->jobs[i].n_caps, cap_w);
	return sum;
}

void divide_uniform(const struct sweep_job *jobs, size_t n, double need_w, double *cut)
{
	struct fleet fleet = {jobs, n};
	double highest = 0, budget_w = -need_w;
	for (size_t i = 0; i < n; i++) {
		highest = fmax(highest, jobs[i].cap_w[jobs[i].n_caps - 1]);
		budget_w += jobs[i].p0_w;
	}
	double cap_w = solve_rising(draw_at_cap, &fleet, 0, highest, budget_w);
	for (size_t i = 0; i < n; i++)
		cut[i] = 1 - interpolate(jobs[i].cap_w, jobs[i].draw_w, jobs[i].n_caps, cap_w) / jobs[i].p0_w;
}

/* ---- Caps in proportion to utilisation ------------------------------------------------------------------------------ */

static double utilisation(const struct sweep_job *j)
{
	return j->p0_w / j->cap_w[j->n_caps - 1];
}

double divide_utilisation(const struct sweep_job *jobs, size_t n, double budget_w, double *cut)
{
	double total = 0, caps_w = 0;
	for (size_t i = 0; i < n; i++)
		total += utilisation(&jobs[i]);
	for (size_t i = 0; i < n; i++) {
		const struct sweep_job *j = &jobs[i];
		double share_w = budget_w * utilisation(j) / total;
		double cap_w = fmin(fmax(share_w, j->cap_w[0]), j->cap_w[j->n_caps - 1]);
		cut[i] = 1 - interpolate(j->cap_w, j->draw_w, j->n_caps, cap_w) / j->p0_w;
		caps_w += cap_w;
	}
	return caps_w > budget_w * (1 + 1e-9) ? caps_w - budget_w : 0;
}

/* ---- Highest PFI first ---------------------------------------------------------------------------------------------- */

void divide_linear(const struct sweep_job *jobs, size_t n, double need_w, double *cut)
{
	for (size_t i = 0; i < n; i++)
		cut[i] = -1;
	for (size_t done = 0; done < n; done++) {
		size_t best = n;
		for (size_t i = 0; i < n; i++)
			if (cut[i] < 0 && (best == n || jobs[i].loss_per_cut < jobs[best].loss_per_cut))
				best = i;
		cut[best] = fmin(jobs[best].reach, need_w / jobs[best].p0_w);
		need_w = fmax(0, need_w - cut[best] * jobs[best].p0_w);
	}
}

/* ---- Cut in proportion to PFI ----------------------------------------------------------------------------------------- */

static double proportional_cut(const struct sweep_job *j, double scale)
{
	return fmin(scale / j->loss_per_cut, j->reach);
}

static double proportional_watts(const void *context, double scale)
{
	const struct fleet *f = context;
	double sum = 0;
	for (size_t i = 0; i < f->n; i++)
		sum += f->jobs[i].p0_w * proportional_cut(&f->jobs[i], scale);
	return sum;
}

void divide_proportional(const struct sweep_job *jobs, size_t n, double need_w, double *cut)
{
	struct fleet fleet = {jobs, n};
	double most = 0;
	for (size_t i = 0; i < n; i++)
		most = fmax(most, jobs[i].loss_per_cut);
	double scale = solve_rising(proportional_watts, &fleet, 0, most, need_w);
	for (size_t i = 0; i < n; i++)
		cut[i] = proportional_cut(&jobs[i], scale);
}

/* ---- The optimum ------------------------------------------------------------------------------------------------------- */

/* Watts that can be taken at one rate of loss. */
struct segment {
	double loss_per_watt, watts;
};

static int by_rate(const void *a, const void *b)
{
	const struct segment *p = a, *q = b;
	return (p->loss_per_watt > q->loss_per_watt) - (p->loss_per_watt < q->loss_per_watt);
}

static size_t add_segments(const struct sweep_job *j, double lowest_w, struct segment *out)
{
	size_t m = 0;
	for (size_t i = j->n_hull - 1; i > 0 && j->hull_w[i] > lowest_w; i--) {
		double rate = (j->hull[i] - j->hull[i - 1]) / (j->hull_w[i] - j->hull_w[i - 1]);
		out[m++] = (struct segment){rate, j->hull_w[i] - fmax(j->hull_w[i - 1], lowest_w)};
	}
	return m;
}

ww_status oracle_value(const struct sweep_job *jobs, size_t n, double need_w, const double *box, double *out,
                       struct ww_error *err)
{
	size_t m = 0, room = 0;
	double value = 0;
	for (size_t i = 0; i < n; i++)
		room += jobs[i].n_hull;
	struct segment *segments = malloc((room + 1) * sizeof *segments);
	if (!segments)
		return ww_fail(err, WW_ERR_NOMEM, "out of memory");
	for (size_t i = 0; i < n; i++) {
		value += jobs[i].hull[jobs[i].n_hull - 1];
		m += add_segments(&jobs[i], box ? jobs[i].p0_w * (1 - box[i]) : 0, &segments[m]);
	}
	qsort(segments, m, sizeof *segments, by_rate);
	for (size_t i = 0; i < m && need_w > 0; i++) {
		double watts = fmin(segments[i].watts, need_w);
		value -= watts * segments[i].loss_per_watt;
		need_w -= watts;
	}
	free(segments);
	*out = value / (double)n;
	return WW_OK;
}
