/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The true curve of a job: its marginal loss on a fine grid of caps, made rising (which makes the loss its convex hull),
 * then thinned to the knots of a curve where that moves the loss least.
 */
#include "sim/sim_internal.h"

#include <math.h>
#include <string.h>

#define GRID 256
#define LIMITED_CUT 0.10 /* a job whose caps take less is not limited by them */
#define SLOPE_STEP 1e-6  /* least rise from knot to knot */
#define HALVINGS 50

void ww_plant_try(const ww_plant *p, uint32_t j, double cap_w, double *power_w, double *tps)
{
	const struct sim_job *job = &p->jobs[j];
	const uint32_t *gpus = &p->job_gpus[job->first];
	double cap = fmin(fmax(cap_w, p->board.min_w), p->board.max_w), place = job->table.n - 1, sum = 0;
	for (uint32_t i = 0; i < job->n; i++)
		place = sim_table_place(&job->table, p->chip[gpus[i]], cap / (1 + p->gain[gpus[i]]), place);
	struct sim_pace pace = sim_table_at(&job->table, place);
	for (uint32_t i = 0; i < job->n; i++) {
		double gain = 1 + p->gain[gpus[i]];
		sum += gain * sim_power(&pace, p->chip[gpus[i]], cap / gain);
	}
	*power_w = sum / job->n;
	*tps = pace.tps;
}

static double tps_at(const ww_plant *p, uint32_t j, double cap_w)
{
	double w, tps;
	ww_plant_try(p, j, cap_w, &w, &tps);
	return tps;
}

/* Where throughput reaches `tps` (or, `beyond`, first exceeds it) between the board's limits. */
static double cap_where(const ww_plant *p, uint32_t j, double tps, bool beyond)
{
	double lo = p->board.min_w, hi = p->board.max_w;
	for (int i = 0; i < HALVINGS; i++) {
		double middle = (lo + hi) / 2, here = tps_at(p, j, middle);
		if (beyond ? here > tps : here >= tps)
			hi = middle;
		else
			lo = middle;
	}
	return beyond ? lo : hi;
}

struct marginal {
	double cut, slope;
};

static double area(const struct marginal *m)
{
	return fabs((m[1].cut - m[0].cut) * (m[2].slope - m[0].slope) -
	            (m[2].cut - m[0].cut) * (m[1].slope - m[0].slope));
}

/* Leaves out the point whose neighbours' line misses it by the least loss, until the knots suffice. */
static void thin(struct marginal *m, uint32_t *n)
{
	while (*n > WW_MAX_KNOTS) {
		uint32_t least = 1;
		for (uint32_t i = 2; i + 1 < *n; i++)
			if (area(&m[i - 1]) < area(&m[least - 1]))
				least = i;
		memmove(&m[least], &m[least + 1], (*n - least - 1) * sizeof *m);
		--*n;
	}
}

/* Slopes of the grid's segments at their middles, continued to both ends. */
static void fill_marginals(const ww_plant *p, uint32_t j, const struct ww_curve *c, struct marginal *m)
{
	double slope[GRID], loss = 0, step = c->max_cut_frac / GRID;
	for (int k = 0; k < GRID; k++) {
		double next = 1 - tps_at(p, j, c->p0_w * (1 - step * (k + 1))) / c->t0_tps;
		slope[k] = (next - loss) / step;
		loss = next;
	}
	sim_make_rising(slope, 1, GRID);
	for (int k = 0; k < GRID; k++)
		m[k + 1] = (struct marginal){step * (k + 0.5), slope[k]};
	m[0] = (struct marginal){0, fmax(0, slope[0] - (slope[1] - slope[0]) / 2)};
	m[GRID + 1] = (struct marginal){c->max_cut_frac, slope[GRID - 1] + (slope[GRID - 1] - slope[GRID - 2]) / 2};
}

static void add_knot(struct ww_curve *c, struct marginal m)
{
	struct ww_knot knot = {m.cut, 0, m.slope};
	if (c->n > 0) {
		const struct ww_knot *last = &c->k[c->n - 1];
		knot.slope = fmax(m.slope, last->slope + SLOPE_STEP);
		knot.loss_frac = last->loss_frac + (m.cut - last->cut_frac) * (last->slope + knot.slope) / 2;
	}
	c->k[c->n++] = knot;
}

ww_status ww_plant_curve(const ww_plant *p, uint32_t j, struct ww_curve *out, struct ww_error *err)
{
	struct marginal m[GRID + 2];
	uint32_t n = GRID + 2;
	double full = tps_at(p, j, p->board.max_w), least = tps_at(p, j, p->board.min_w);
	struct ww_curve c = {.p0_w = cap_where(p, j, full, false), .t0_tps = full, .status = WW_PFI_OK};
	c.max_cut_frac = 1 - cap_where(p, j, least, true) / c.p0_w;
	if (!(c.max_cut_frac >= LIMITED_CUT))
		return ww_fail(err, WW_ERR_NO_DATA,
		               "job %u: no curve: the board's caps take less than a tenth of its draw", j);
	fill_marginals(p, j, &c, m);
	thin(m, &n);
	for (uint32_t i = 0; i < n; i++)
		add_knot(&c, m[i]);
	*out = c;
	return WW_OK;
}
