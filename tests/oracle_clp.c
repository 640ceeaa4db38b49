/* SPDX-License-Identifier: Apache-2.0 */
/*
 * min sum_j gain_j sum_s slope_js x_js, rows: sum_j W_rj (lo_j + sum_s x_js) >= need_r, 0 <= x_js <= width_js.
 * Slopes rise with s, so that the pieces of a job fill in order.
 */
#include "oracle_clp.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <coin/Clp_C_Interface.h>

#define LEAST_KEPT 1e-3 /* below, log goes on as a straight line */

struct columns {
	size_t n, filled;
	double *lower, *upper, *cost, *element;
	int *index;
	CoinBigIndex *start, n_elements;
};

static double loss_at(const struct oracle_task *t, const struct ww_alloc_job *job, double cut)
{
	double loss = ww_curve_loss(job->curve, cut), kept = fmax(1 - loss, LEAST_KEPT);
	return t->objective == WW_OBJECTIVE_LOG ? (kept + loss - 1) / LEAST_KEPT - log(kept) : loss;
}

static double gain_of(const struct oracle_task *t, const struct ww_alloc_job *job)
{
	return t->objective == WW_OBJECTIVE_TOKENS ? job->weight * job->curve->t0_tps : job->weight;
}

static void add_job(const struct oracle_task *t, size_t i, double scale, struct columns *c)
{
	const struct instance *in = t->instance;
	const struct ww_alloc_job *job = &in->problem.jobs[i];
	double before = t->lo[i], span = fmax(0, t->hi[i] - t->lo[i]);
	for (unsigned s = 1; s <= t->chords; s++) {
		double u = (double)s / t->chords, at = t->lo[i] + span * u * (0.5 + 0.5 * u), width = at - before;
		c->lower[c->filled] = 0;
		c->upper[c->filled] = width;
		c->cost[c->filled] =
			width > 0 ? gain_of(t, job) / scale * (loss_at(t, job, at) - loss_at(t, job, before)) / width
				  : 0;
		c->start[c->filled++] = c->n_elements;
		for (uint32_t k = 0; k < job->n_rows; k++) {
			c->index[c->n_elements] = (int)job->rows[k].row;
			c->element[c->n_elements++] =
				job->rows[k].gpus * job->curve->p0_w / in->size_w[job->rows[k].row];
		}
		c->index[c->n_elements] = (int)in->problem.n_rows;
		c->element[c->n_elements++] = job->gpus * job->curve->p0_w / in->size_w[in->problem.n_rows];
		before = at;
	}
	c->start[c->filled] = c->n_elements;
}

static struct columns make_columns(const struct oracle_task *t, double scale)
{
	const struct ww_alloc_problem *p = &t->instance->problem;
	size_t n_elements = 0;
	for (size_t i = 0; i < p->n_jobs; i++)
		n_elements += t->chords * (p->jobs[i].n_rows + 1);
	struct columns c = {.n = p->n_jobs * t->chords};
	c.lower = calloc(c.n + 1, sizeof *c.lower);
	c.upper = calloc(c.n + 1, sizeof *c.upper);
	c.cost = calloc(c.n + 1, sizeof *c.cost);
	c.start = calloc(c.n + 1, sizeof *c.start);
	c.element = calloc(n_elements + 1, sizeof *c.element);
	c.index = calloc(n_elements + 1, sizeof *c.index);
	if (!c.lower || !c.upper || !c.cost || !c.start || !c.element || !c.index)
		abort();
	for (size_t i = 0; i < p->n_jobs; i++)
		add_job(t, i, scale, &c);
	return c;
}

static void free_columns(struct columns *c)
{
	free(c->lower);
	free(c->upper);
	free(c->cost);
	free(c->start);
	free(c->element);
	free(c->index);
}

static double seconds_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void solve(Clp_Simplex *model, enum oracle_method method, struct oracle_answer *out)
{
	Clp_setLogLevel(model, 0);
	double start = seconds_now();
	if (method == ORACLE_DUAL)
		Clp_initialDualSolve(model);
	else
		Clp_initialSolve(model);
	out->seconds = seconds_now() - start;
	out->iterations = Clp_numberIterations(model);
	out->solved = Clp_status(model) == 0;
}

struct oracle_answer oracle_solve(const struct oracle_task *t, double *cut)
{
	const struct instance *in = t->instance;
	size_t n_rows = in->problem.n_rows + 1;
	struct oracle_answer out = {0};
	double scale = 0, full = 0, lost = 0;
	for (size_t i = 0; i < in->problem.n_jobs; i++)
		scale += gain_of(t, &in->problem.jobs[i]) / (double)in->problem.n_jobs;
	struct columns c = make_columns(t, scale);
	double *lower = calloc(2 * n_rows, sizeof *lower), *upper = lower + n_rows;
	if (!lower)
		abort();
	instance_cut_w(in, t->lo, lower);
	for (size_t r = 0; r < n_rows; r++) {
		lower[r] = in->size_w[r] > 0 ? fmax(0, (t->need_w[r] - lower[r]) / in->size_w[r]) : 0;
		upper[r] = DBL_MAX;
	}
	Clp_Simplex *model = Clp_newModel();
	Clp_setPrimalTolerance(model, 1e-9);
	Clp_loadProblem(model, (int)c.n, (int)n_rows, c.start, c.index, c.element, c.lower, c.upper, c.cost, lower,
	                upper);
	solve(model, t->method, &out);
	const double *x = Clp_primalColumnSolution(model);
	for (size_t i = 0, at = 0; i < in->problem.n_jobs; i++) {
		const struct ww_alloc_job *job = &in->problem.jobs[i];
		cut[i] = t->lo[i];
		lost += gain_of(t, job) / scale * loss_at(t, job, t->lo[i]);
		if (t->objective != WW_OBJECTIVE_LOG)
			full += gain_of(t, job) / scale;
		for (unsigned s = 0; s < t->chords; s++, at++) {
			cut[i] += x[at];
			lost += c.cost[at] * x[at];
		}
	}
	out.value = scale * (full - lost);
	Clp_deleteModel(model);
	free_columns(&c);
	free(lower);
	return out;
}
