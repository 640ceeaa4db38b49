/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The true curve of a job: its marginal loss on a fine grid of cuts, made rising (which makes the loss its convex hull),
 * then thinned to the knots of a curve where that moves the loss least.
 */
#include "sim/sim_internal.h"

#include <math.h>
#include <string.h>

#define GRID 256
#define LIMITED_CUT 0.10 /* a job whose caps take less is not limited by them */
#define SLOPE_STEP 1e-6  /* least rise from knot to knot */
#define HALVINGS 50

/* Where a job runs with all its GPUs at one cap. */
static double place_at(const ww_plant *p, const struct sim_job *job, double cap_w)
{
	const uint32_t *gpus = &p->job_gpus[job->first];
	double place = job->table.n - 1;
	for (uint32_t i = 0; i < job->n; i++)
		place = sim_table_place(&job->table, p->chip[gpus[i]], cap_w / (1 + p->gain[gpus[i]]), place);
	return place;
}

void ww_plant_try(const ww_plant *p, uint32_t j, double cap_w, double *power_w, double *tps)
{
	const struct sim_job *job = &p->jobs[j];
	const uint32_t *gpus = &p->job_gpus[job->first];
	double cap = fmin(fmax(cap_w, p->board.min_w), p->board.max_w), sum = 0;
	struct sim_pace pace = sim_table_at(&job->table, place_at(p, job, cap));
	for (uint32_t i = 0; i < job->n; i++) {
		double gain = 1 + p->gain[gpus[i]];
		sum += gain * sim_power(&pace, p->chip[gpus[i]], cap / gain);
	}
	*power_w = sum / job->n;
	*tps = pace.tps;
}

/* The mean of the caps that the GPUs of a job need for the pace that it has with all at one cap. */
static double need_at(const ww_plant *p, uint32_t j, double cap_w)
{
	const struct sim_job *job = &p->jobs[j];
	const uint32_t *gpus = &p->job_gpus[job->first];
	struct sim_pace pace = sim_table_at(&job->table, place_at(p, job, cap_w));
	double sum = 0;
	for (uint32_t i = 0; i < job->n; i++)
		sum += fmax(p->board.min_w,
		            (1 + p->gain[gpus[i]]) * (pace.key_base + p->chip[gpus[i]] * pace.key_chip));
	return sum / job->n;
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

double ww_plant_free_cap_w(const ww_plant *p, uint32_t j)
{
	return cap_where(p, j, tps_at(p, j, p->board.max_w), false);
}

struct marginal {
	double cut, slope;
};

static double area(const struct marginal *a, const struct marginal *b)
{
	return (b->cut - a->cut) * (a->slope + b->slope) / 2;
}

/* The two points after `m` as one, so that the loss up to the next point stays; returns how far it moves on the way. */
static double merge(const struct marginal *m, struct marginal *one)
{
	struct marginal half = {(m[1].cut + m[2].cut) / 2, (m[1].slope + m[2].slope) / 2};
	double to_half = area(&m[0], &m[1]) + area(&m[1], &half),
	       whole = to_half + area(&half, &m[2]) + area(&m[2], &m[3]);
	double slope = 2 * whole - m[0].slope * (half.cut - m[0].cut) - m[3].slope * (m[3].cut - half.cut);
	*one = (struct marginal){half.cut, fmin(fmax(slope / (m[3].cut - m[0].cut), m[0].slope), m[3].slope)};
	return fmax(fabs(area(&m[0], one) - to_half), fabs(area(&m[0], one) + area(one, &m[3]) - whole));
}

/* Merges the points that move the loss least, until the knots suffice. `moves`: of a merge after each point. */
static void thin(struct marginal *m, uint32_t *n)
{
	struct marginal one;
	double moves[GRID + 2] = {0};
	for (uint32_t i = 0; i + 3 < *n; i++)
		moves[i] = merge(&m[i], &one);
	while (*n > WW_MAX_KNOTS) {
		uint32_t least = 0;
		for (uint32_t i = 1; i + 3 < *n; i++)
			if (moves[i] < moves[least])
				least = i;
		merge(&m[least], &one);
		m[least + 1] = one;
		memmove(&m[least + 2], &m[least + 3], (*n - least - 3) * sizeof *m);
		memmove(&moves[least + 1], &moves[least + 2], (*n - least - 3) * sizeof *moves);
		--*n;
		for (uint32_t i = least < 2 ? 0 : least - 2; i <= least + 1 && i + 3 < *n; i++)
			moves[i] = merge(&m[i], &one);
	}
}

struct need {
	double mean_w, tps;
};

/* For caps in even steps from the lowest that costs nothing to the least. */
static void fill_needs(const ww_plant *p, uint32_t j, bool trimmed, struct need *needs)
{
	double top_w = ww_plant_free_cap_w(p, j), least_w = cap_where(p, j, tps_at(p, j, p->board.min_w), true);
	for (int k = 0; k <= GRID; k++) {
		double cap_w = top_w + (least_w - top_w) * k / GRID;
		needs[k] = (struct need){trimmed ? need_at(p, j, cap_w) : cap_w, tps_at(p, j, cap_w)};
	}
}

/* Slopes of segments of even cuts at their middles, continued to both ends. */
static void fill_marginals(const struct need *needs, struct marginal *m)
{
	double slope[GRID], loss = 0, p0_w = needs[0].mean_w, step = (1 - needs[GRID].mean_w / p0_w) / GRID;
	for (int k = 0, i = 0; k < GRID; k++) {
		double mean_w = p0_w * (1 - step * (k + 1));
		while (i < GRID - 1 && needs[i + 1].mean_w > mean_w)
			i++;
		const struct need *a = &needs[i], *b = a + 1;
		double part = (a->mean_w - mean_w) / (a->mean_w - b->mean_w);
		double next = 1 - (a->tps + part * (b->tps - a->tps)) / needs[0].tps;
		slope[k] = (next - loss) / step;
		loss = next;
	}
	sim_make_rising(slope, 1, GRID);
	for (int k = 0; k < GRID; k++)
		m[k + 1] = (struct marginal){step * (k + 0.5), slope[k]};
	m[0] = (struct marginal){0, fmax(0, slope[0] - (slope[1] - slope[0]) / 2)};
	m[GRID + 1] = (struct marginal){step * GRID, slope[GRID - 1]};
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

ww_status ww_plant_curve(const ww_plant *p, uint32_t j, bool trimmed, struct ww_curve *out, struct ww_error *err)
{
	struct need needs[GRID + 1];
	struct marginal m[GRID + 2];
	uint32_t n = GRID + 2;
	fill_needs(p, j, trimmed, needs);
	struct ww_curve c = {.p0_w = needs[0].mean_w, .t0_tps = needs[0].tps, .status = WW_PFI_OK};
	c.max_cut_frac = 1 - needs[GRID].mean_w / c.p0_w;
	if (!(c.max_cut_frac >= LIMITED_CUT))
		return ww_fail(err, WW_ERR_NO_DATA,
		               "job %u: no curve: the board's caps take less than a tenth of its draw", j);
	fill_marginals(needs, m);
	thin(m, &n);
	for (uint32_t i = 0; i < n; i++)
		add_knot(&c, m[i]);
	*out = c;
	return WW_OK;
}
