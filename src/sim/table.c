/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a job's GPUs draw and do at each clock, as a table. From physics (docs/simulation.md, section 2) or from a measured
 * sweep. Power is linear in the chip's factor, so that one table serves all GPUs of a job.
 */
#include "sim/sim_internal.h"

#include <math.h>
#include <stdlib.h>

#define INTERVALS 128

#define MEMORY_KNEE 0.42  /* xb: below this clock memory slows down too */
#define LEAKAGE 0.010     /* k: of static power, per kelvin */
#define LEAKAGE_AT_C 45.0 /* where static_w holds */
#define COOL_C 35.0       /* Tcool */
#define C_PER_W 0.055     /* Rth */

double sim_decay(double x)
{
	double y = -x / 64, sum = 1;
	if (x > 700)
		return 0;
	for (int k = 12; k > 0; k--)
		sum = 1 + y / k * sum;
	for (int k = 0; k < 6; k++)
		sum *= sum;
	return sum;
}

/* ---- Physics ---------------------------------------------------------------------------------------------------------- */

/* Temperature follows power: T = Tcool + Rth P, and leakage follows T; both are linear, so P has a closed form. */
static struct sim_knot physics_knot(const struct ww_sim_board *b, const struct ww_sim_physics *p, double x)
{
	double v = fmax(b->v_least, 1 - b->sag * (1 - x)), v2 = v * v;
	double tau = p->phi / x + (1 - p->phi - p->h) * fmax(1, MEMORY_KNEE / x) + p->h;
	double leak = 0.5 * b->static_w * LEAKAGE, scale = 1 / (1 - leak * C_PER_W);
	double fixed = b->static_w + leak * (COOL_C - LEAKAGE_AT_C);
	double moved = b->dram_w * p->dram + b->nvlink_w * p->nvlink;
	double work = b->sm_w * p->sm + b->tensor_w * p->tensor;
	return (struct sim_knot){
		.base_w = (float)((fixed + moved / tau) * scale),
		.chip_w = (float)((b->clock_w * x * v2 + work * v2 / tau) * scale),
		.tps = (float)(p->x1_tps / tau),
	};
}

/* The grid point nearest to the kink of V moves there, so that nothing is interpolated across it. Across that of memory
 * power and throughput bend alike. */
static void snap(double *x, double kink)
{
	double at = (kink - x[0]) / (x[INTERVALS] - x[0]) * INTERVALS;
	if (at > 0.5 && at < INTERVALS - 0.5)
		x[(int)(at + 0.5)] = kink;
}

static void physics_table(const struct ww_sim_board *board, const struct ww_sim_job *job, struct sim_table *out)
{
	double x[INTERVALS + 1];
	for (int k = 0; k <= INTERVALS; k++)
		x[k] = board->x_least + (1 - board->x_least) * k / INTERVALS;
	if (board->sag > 0)
		snap(x, 1 - (1 - board->v_least) / board->sag);
	for (int k = 0; k <= INTERVALS; k++) {
		out->at[k] = physics_knot(board, &job->physics, x[k]);
		out->at[k].tps *= (float)job->n_gpus;
	}
	out->n = INTERVALS + 1;
}

/* ---- Measured sweeps ---------------------------------------------------------------------------------------------------- */

static int by_cap(const void *a, const void *b)
{
	const struct ww_point *p = a, *q = b;
	return (p->cap_w > q->cap_w) - (p->cap_w < q->cap_w);
}

/* Repetitions of a cap become one point at their means; returns how many are left. */
static uint32_t pool_points(struct ww_point *p, size_t n)
{
	uint32_t m = 0;
	qsort(p, n, sizeof *p, by_cap);
	for (size_t i = 0, same; i < n; i += same) {
		double power = 0, throughput = 0;
		for (same = 0; i + same < n && p[i + same].cap_w == p[i].cap_w; same++) {
			power += p[i + same].power_w;
			throughput += p[i + same].throughput;
		}
		p[m++] = (struct ww_point){
			.cap_w = p[i].cap_w, .power_w = power / (double)same, .throughput = throughput / (double)same};
	}
	return m;
}

/* Pools adjacent violators. */
void sim_make_rising(double *v, size_t stride, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		size_t from = i;
		double sum = v[i * stride], mean = sum;
		while (from > 0 && v[(from - 1) * stride] > mean) {
			sum += v[--from * stride];
			mean = sum / (double)(i - from + 1);
		}
		for (size_t k = from; k <= i; k++)
			v[k * stride] = mean;
	}
}

#define HELD 1.03 /* a draw up to this times the cap is the cap, seen with noise; above it the cap was not held */

/* Below the lowest cap measured, power and throughput fall in proportion to the cap, down to half of it. */
static void replay_table(struct ww_point *p, uint32_t n, double scale, struct sim_table *out)
{
	const size_t stride = sizeof *p / sizeof(double);
	for (uint32_t i = 0; i < n; i++)
		if (p[i].power_w > p[i].cap_w && p[i].power_w <= HELD * p[i].cap_w)
			p[i].power_w = p[i].cap_w;
	sim_make_rising(&p->power_w, stride, n);
	sim_make_rising(&p->throughput, stride, n);
	for (uint32_t i = 0; i <= n; i++) {
		const struct ww_point *from = &p[i ? i - 1 : 0];
		double part = i ? 1 : 0.5;
		out->caps_w[i] = (float)(part * from->cap_w);
		out->at[i] = (struct sim_knot){.chip_w = (float)(part * from->power_w),
		                               .tps = (float)(part * scale * from->throughput)};
	}
	out->n = n + 1;
}

/* ---- Both ------------------------------------------------------------------------------------------------------------------ */

ww_status sim_table_create(const struct ww_sim_board *board, const struct ww_sim_job *job, struct sim_table *out,
                           struct ww_error *err)
{
	size_t n = job->points ? job->n_points + 1 : INTERVALS + 1;
	struct ww_point *points = NULL;
	*out = (struct sim_table){.at = malloc(n * sizeof *out->at)};
	if (job->points) {
		out->caps_w = malloc(n * sizeof *out->caps_w);
		points = malloc(job->n_points * sizeof *points);
	}
	if (!out->at || (job->points && (!out->caps_w || !points))) {
		free(points);
		sim_table_finish(out);
		return ww_fail(err, WW_ERR_NOMEM, "out of memory");
	}
	if (!job->points) {
		physics_table(board, job, out);
		return WW_OK;
	}
	for (size_t i = 0; i < job->n_points; i++)
		points[i] = job->points[i];
	double gpus = job->points_gpus ? job->points_gpus : job->n_gpus;
	replay_table(points, pool_points(points, job->n_points), job->n_gpus / gpus, out);
	free(points);
	return WW_OK;
}

void sim_table_finish(struct sim_table *table)
{
	free(table->at);
	free(table->caps_w);
	*table = (struct sim_table){0};
}

/* What must not exceed the cap at a knot. A measured sweep is asked by its caps: at chip 1 it answers as measured. */
static inline double key(const struct sim_table *t, uint32_t k, double chip)
{
	return t->caps_w ? chip * t->caps_w[k] : (double)t->at[k].base_w + chip * t->at[k].chip_w;
}

double sim_table_place(const struct sim_table *t, double chip, double cap, double most)
{
	uint32_t lo = 0, hi = (uint32_t)most;
	if (hi < most)
		hi++;
	if (key(t, hi, chip) <= cap)
		return sim_lesser(hi, most);
	if (key(t, 0, chip) >= cap)
		return 0;
	for (uint32_t n = hi; n > 1;) { /* lo is allowed, lo + n is not */
		uint32_t half = n / 2;
		lo += key(t, lo + half, chip) <= cap ? half : 0;
		n -= half;
	}
	double a = key(t, lo, chip), b = key(t, lo + 1, chip);
	return sim_lesser(lo + (cap - a) / (b - a), most);
}

static double between(double a, double b, double f)
{
	return a + f * (b - a);
}

struct sim_pace sim_table_at(const struct sim_table *t, double place)
{
	uint32_t k = (uint32_t)place;
	if (k + 1 >= t->n)
		k = t->n - 2;
	double f = place - k;
	const struct sim_knot *a = &t->at[k], *b = a + 1;
	struct sim_pace pace = {.base_w = between(a->base_w, b->base_w, f),
	                        .chip_w = between(a->chip_w, b->chip_w, f),
	                        .tps = between(a->tps, b->tps, f)};
	pace.key_base = t->caps_w ? 0 : pace.base_w;
	pace.key_chip = t->caps_w ? between(t->caps_w[k], t->caps_w[k + 1], f) : pace.chip_w;
	return pace;
}
