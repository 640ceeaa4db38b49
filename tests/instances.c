/* SPDX-License-Identifier: Apache-2.0 */
#include "instances.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_KEPT 1e-3 /* below, log goes on as a straight line */

/* ---- Small helpers -------------------------------------------------------------------------------------------------- */

static double between(struct ww_rng *rng, double lo, double hi)
{
	return lo + (hi - lo) * ww_rng_uniform(rng);
}

static bool chance(struct ww_rng *rng, double share)
{
	return ww_rng_uniform(rng) < share;
}

static void *room(size_t n, size_t size)
{
	void *memory = calloc(n + 1, size);
	if (!memory) {
		fprintf(stderr, "out of memory\n");
		exit(1);
	}
	return memory;
}

/* ---- Curves ----------------------------------------------------------------------------------------------------------- */

/* x^k by repeated halving of k, only with + - * / sqrt: the same bits on every machine. 0 <= x, 1 <= k < 4. */
static double power(double x, double k)
{
	double result = 1, root = x;
	int whole = (int)k;
	for (int i = 0; i < whole; i++)
		result *= x;
	k -= whole;
	for (int i = 0; i < 20 && k > 0; i++) {
		root = sqrt(root);
		k *= 2;
		if (k >= 1) {
			result *= root;
			k -= 1;
		}
	}
	return result;
}

static double shape_step(struct ww_rng *rng, enum shape shape, uint32_t i, uint32_t n)
{
	if (shape == SHAPE_FLAT)
		return 2 * i < n ? 1e-6 : between(rng, 0.05, 1);
	if (shape == SHAPE_NEAR_LINEAR)
		return 1e-6;
	if (shape == SHAPE_STEEP)
		return i + 2 < n ? between(rng, 0.001, 0.01) : between(rng, 100, 10000);
	return chance(rng, 0.2) ? between(rng, 0.5, 2) : between(rng, 1e-4, 0.2);
}

struct ww_curve instance_curve(struct ww_rng *rng, enum shape shape, uint32_t n)
{
	struct ww_curve c = {.p0_w = between(rng, 300, 700),
	                     .t0_tps = power(10, between(rng, 3, 3.99)),
	                     .max_cut_frac = between(rng, 0.3, 0.7),
	                     .n = n};
	double l30 = between(rng, 0.02, 0.25), k = between(rng, 1.2, 3), slope = 0, deepest = between(rng, 0.5, 0.85);
	if (shape == SHAPE_NEAR_LINEAR)
		slope = between(rng, 0.05, 1);
	for (uint32_t i = 0; i < n; i++) {
		double cut = deepest * i / (n - 1), width = deepest / (n - 1);
		if (shape == SHAPE_POWER)
			slope = l30 * k / 0.3 * power(cut / 0.3, k) / (i ? cut / 0.3 : 1) + 1e-6 * i;
		else if (i)
			slope += shape_step(rng, shape, i, n);
		double loss = i ? c.k[i - 1].loss_frac + width * (c.k[i - 1].slope + slope) / 2 : 0;
		c.k[i] = (struct ww_knot){cut, loss, slope};
	}
	return c;
}

static struct ww_curve any_curve(struct ww_rng *rng, bool odd)
{
	enum shape shape = chance(rng, 0.6) ? SHAPE_POWER : SHAPE_RANDOM;
	if (odd && chance(rng, 0.3))
		shape = SHAPE_FLAT + ww_rng_below(rng, 3);
	uint32_t knots = chance(rng, 0.1) ? 3 : 5 + ww_rng_below(rng, WW_MAX_KNOTS - 4);
	return instance_curve(rng, shape, knots);
}

/* ---- Jobs -------------------------------------------------------------------------------------------------------------- */

static uint32_t any_gpus(struct ww_rng *rng, const struct instance_spec *spec)
{
	static const uint32_t usual[] = {1, 1, 2, 4, 4, 8, 8, 8, 16, 16, 32, 64};
	if (spec->single_gpu)
		return 1;
	if (spec->n_gpus)
		return usual[ww_rng_below(rng, 10)];
	return chance(rng, 0.2) ? 1 + ww_rng_below(rng, 256) : usual[ww_rng_below(rng, 12)];
}

static void set_floor(struct ww_rng *rng, struct ww_alloc_job *job)
{
	static const double floors[] = {1, 0.9, 0.75, 0.5}; /* most jobs: the last */
	static const int tiers[] = {0, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3,
	                            3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3};
	job->tier = tiers[ww_rng_below(rng, sizeof tiers / sizeof *tiers)];
	job->floor_frac = floors[job->tier];
}

static void any_job(struct ww_rng *rng, const struct instance_spec *spec, size_t i, struct instance *out)
{
	struct ww_alloc_job *job = &out->jobs[i];
	*job = (struct ww_alloc_job){.tier = 3, .weight = 1, .curve = &out->curves[i]};
	out->curves[i] = any_curve(rng, spec->odd_curves);
	job->gpus = any_gpus(rng, spec);
	if (spec->weights)
		job->weight = between(rng, 0.2, 5);
	if (spec->floors)
		set_floor(rng, job);
	if (chance(rng, 0.7))
		job->min_w = out->curves[i].p0_w * between(rng, 0.1, 0.3);
	if (spec->odd_curves && chance(rng, 0.05))
		job->max_w = out->curves[i].p0_w * between(rng, 0.8, 1.1);
	if (spec->ties && i > 0 && chance(rng, 0.3)) {
		*job = out->jobs[i - 1];
		out->curves[i] = out->curves[i - 1];
		job->curve = &out->curves[i];
	}
	job->id = spec->in_order ? i + 1 : (i + 1) * 0x9E3779B97F4A7C15u; /* odd: unique */
}

/* Brings the GPUs of all jobs to the number asked for. */
static void fit_gpus(struct instance *out, const struct instance_spec *spec)
{
	size_t sum = 0;
	for (size_t i = 0; i < spec->n_jobs; i++)
		sum += out->jobs[i].gpus;
	for (size_t i = 0; spec->n_jobs && spec->n_gpus && sum != spec->n_gpus; i = (i + 1) % spec->n_jobs) {
		if (sum < spec->n_gpus) {
			out->jobs[i].gpus++;
			sum++;
		} else if (out->jobs[i].gpus > 1) {
			out->jobs[i].gpus--;
			sum--;
		}
	}
}

/* ---- Placement --------------------------------------------------------------------------------------------------------- */

struct tree {
	size_t feeds, rows, racks, nodes;
	uint32_t rack_gpus, node_gpus, racks_per_row, rows_per_feed;
	bool two_feeds;
	double *gpus; /* per row of the problem: of the job at hand */
	size_t *used, n_used;
};

static struct tree grow_tree(const struct instance_spec *spec, size_t n_gpus)
{
	struct tree t = {.rack_gpus = spec->rack_gpus,
	                 .node_gpus = spec->node_gpus,
	                 .racks_per_row = spec->small ? 4 : 10,
	                 .rows_per_feed = spec->small ? 3 : 10,
	                 .two_feeds = spec->two_feeds};
	t.racks = (n_gpus + t.rack_gpus - 1) / t.rack_gpus;
	t.rows = (t.racks + t.racks_per_row - 1) / t.racks_per_row;
	t.feeds = (t.rows + t.rows_per_feed - 1) / t.rows_per_feed;
	t.nodes = spec->node_gpus ? t.racks * ((t.rack_gpus + t.node_gpus - 1) / t.node_gpus) : 0;
	t.gpus = room(t.feeds + t.rows + t.racks + t.nodes, sizeof *t.gpus);
	t.used = room(t.feeds + t.rows + t.racks + t.nodes, sizeof *t.used);
	return t;
}

static void load_row(struct tree *t, size_t row, double gpus)
{
	if (t->gpus[row] == 0)
		t->used[t->n_used++] = row;
	t->gpus[row] += gpus;
}

static void place_gpu(struct tree *t, size_t slot)
{
	size_t rack = slot / t->rack_gpus, row = rack / t->racks_per_row, feed = row / t->rows_per_feed;
	if (t->two_feeds && t->feeds > 1) {
		load_row(t, feed, 0.5);
		load_row(t, (feed + 1) % t->feeds, 0.5);
	} else {
		load_row(t, feed, 1);
	}
	load_row(t, t->feeds + row, 1);
	load_row(t, t->feeds + t->rows + rack, 1);
	if (t->node_gpus) {
		size_t per_rack = t->nodes / t->racks;
		load_row(t, t->feeds + t->rows + t->racks + rack * per_rack + slot % t->rack_gpus / t->node_gpus, 1);
	}
}

/* Places a job's GPUs from `slot` on, 8 at a time. */
static void place_job(struct ww_rng *rng, const struct instance_spec *spec, struct tree *t, size_t slot, uint32_t gpus)
{
	size_t all = t->racks * t->rack_gpus;
	for (uint32_t g = 0; g < gpus; g += 8) {
		size_t at = chance(rng, spec->misplaced_frac) ? ww_rng_below(rng, (uint32_t)all) : slot + g;
		for (uint32_t k = 0; k < 8 && g + k < gpus; k++)
			place_gpu(t, (at + k) % all);
	}
}

static size_t take_shares(struct tree *t, struct ww_row_share *out)
{
	size_t n = t->n_used;
	for (size_t i = 0; i < n; i++) {
		out[i] = (struct ww_row_share){(uint32_t)t->used[i], t->gpus[t->used[i]]};
		t->gpus[t->used[i]] = 0;
	}
	t->n_used = 0;
	return n;
}

static void place_all(struct ww_rng *rng, const struct instance_spec *spec, struct tree *t, struct instance *out)
{
	size_t slot = 0, n_shares = 0, most = 0;
	for (size_t i = 0; i < spec->n_jobs; i++)
		most += 5 * (size_t)out->jobs[i].gpus;
	out->shares = room(most, sizeof *out->shares);
	for (size_t i = 0; i < spec->n_jobs; i++) {
		struct ww_alloc_job *job = &out->jobs[i];
		place_job(rng, spec, t, slot, job->gpus);
		slot += job->gpus;
		job->rows = &out->shares[n_shares];
		job->n_rows = (uint32_t)take_shares(t, &out->shares[n_shares]);
		n_shares += job->n_rows;
	}
}

/* ---- Budgets ------------------------------------------------------------------------------------------------------------ */

static void set_budgets(struct ww_rng *rng, const struct instance_spec *spec, size_t n_feeds, struct instance *out)
{
	size_t n = out->problem.n_rows;
	out->size_w = room(n + 1, sizeof *out->size_w);
	for (size_t i = 0; i < spec->n_jobs; i++) {
		const struct ww_alloc_job *job = &out->jobs[i];
		out->size_w[n] += job->gpus * job->curve->p0_w;
		for (uint32_t k = 0; k < job->n_rows; k++)
			out->size_w[job->rows[k].row] += job->rows[k].gpus * job->curve->p0_w;
	}
	for (size_t r = 0; r < n; r++) {
		bool own = r < n_feeds && spec->feed_slack_hi > 0;
		double slack = own ? between(rng, spec->feed_slack_lo, spec->feed_slack_hi)
		                   : between(rng, spec->slack_lo, spec->slack_hi);
		if (chance(rng, spec->tight_share))
			slack = 0.95;
		out->rows[r].budget_w = (1 - spec->cut_frac) * slack * out->size_w[r];
	}
	out->problem.budget_w = (1 - spec->cut_frac) * out->size_w[n];
}

/* Raises budgets until all floors can be kept, with a little to spare. */
static void make_feasible(struct instance *out)
{
	const struct ww_alloc_problem *p = &out->problem;
	double *cut = room(p->n_jobs, sizeof *cut), *most_w = room(p->n_rows + 1, sizeof *most_w);
	for (size_t i = 0; i < p->n_jobs; i++)
		cut[i] = instance_floor_cut(&p->jobs[i]);
	instance_cut_w(out, cut, most_w);
	for (size_t r = 0; r < p->n_rows; r++)
		out->rows[r].budget_w = fmax(out->rows[r].budget_w, out->size_w[r] - 0.97 * most_w[r]);
	out->problem.budget_w = fmax(out->problem.budget_w, out->size_w[p->n_rows] - 0.97 * most_w[p->n_rows]);
	free(cut);
	free(most_w);
}

/* ---- Interface ------------------------------------------------------------------------------------------------------- */

struct instance_spec instance_spec_random(uint64_t seed)
{
	struct ww_rng rng;
	ww_rng_seed(&rng, seed ^ 0x5EEDu);
	struct instance_spec s = {
		.seed = seed, .small = true, .slack_lo = 0.85, .slack_hi = 1.35, .misplaced_frac = 0.1};
	double size = between(&rng, 0, 1);
	s.n_jobs = 2 + (size_t)(498 * size * size * size);
	s.rack_gpus = 16u << ww_rng_below(&rng, 3);
	s.cut_frac = between(&rng, 0.05, 0.6);
	s.two_feeds = chance(&rng, 0.3);
	s.floors = chance(&rng, 0.5);
	s.weights = chance(&rng, 0.5);
	s.ties = chance(&rng, 0.3);
	s.odd_curves = chance(&rng, 0.5);
	s.single_gpu = chance(&rng, 0.05);
	s.explore = chance(&rng, 0.5);
	s.feasible = chance(&rng, 0.75);
	s.objective = (enum ww_objective)ww_rng_below(&rng, 4);
	return s;
}

struct instance_spec instance_spec_cluster(size_t n_jobs, bool tight, bool nodes)
{
	struct instance_spec s = {.seed = 20,
	                          .n_jobs = n_jobs,
	                          .n_gpus = 8 * n_jobs,
	                          .rack_gpus = 125,
	                          .cut_frac = 0.3,
	                          .slack_lo = 1.15,
	                          .slack_hi = 1.35,
	                          .tight_share = 0.05,
	                          .misplaced_frac = 0.1,
	                          .floors = true,
	                          .weights = true,
	                          .feasible = true,
	                          .in_order = true,
	                          .node_gpus = nodes ? 8 : 0};
	if (tight) {
		s.slack_lo = 0.95;
		s.slack_hi = 1.12;
		s.feed_slack_lo = 0.96;
		s.feed_slack_hi = 1.04;
		s.tight_share = 0;
	}
	return s;
}

void instance_init(struct instance *out, const struct instance_spec *spec)
{
	struct ww_rng rng;
	size_t n = spec->n_jobs, n_gpus = 0;
	ww_rng_seed(&rng, spec->seed);
	*out = (struct instance){.jobs = room(n, sizeof *out->jobs), .curves = room(n, sizeof *out->curves)};
	for (size_t i = 0; i < n; i++)
		any_job(&rng, spec, i, out);
	fit_gpus(out, spec);
	for (size_t i = 0; i < n; i++)
		n_gpus += out->jobs[i].gpus;
	struct tree t = grow_tree(spec, n_gpus);
	out->problem = (struct ww_alloc_problem){.jobs = out->jobs,
	                                         .n_jobs = n,
	                                         .objective = spec->objective,
	                                         .n_rows = t.feeds + t.rows + t.racks + t.nodes,
	                                         .explore = spec->explore};
	place_all(&rng, spec, &t, out);
	out->problem.rows = out->rows = room(out->problem.n_rows, sizeof *out->rows);
	set_budgets(&rng, spec, t.feeds, out);
	if (spec->feasible)
		make_feasible(out);
	free(t.gpus);
	free(t.used);
}

void instance_finish(struct instance *instance)
{
	free(instance->jobs);
	free(instance->curves);
	free(instance->rows);
	free(instance->shares);
	free(instance->size_w);
	*instance = (struct instance){0};
}

double instance_lowest_cut(const struct ww_alloc_job *job)
{
	return fmin(fmax(0, 1 - job->min_w / job->curve->p0_w), 1);
}

double instance_least_cut(const struct ww_alloc_job *job)
{
	return job->max_w > 0 ? fmin(fmax(0, 1 - job->max_w / job->curve->p0_w), instance_lowest_cut(job)) : 0;
}

double instance_cut_at_loss(const struct ww_curve *curve, double loss, double most)
{
	double lo = 0, hi = most;
	if (ww_curve_loss(curve, most) <= loss)
		return most;
	for (int i = 0; i < 100; i++) {
		double mid = (lo + hi) / 2;
		if (ww_curve_loss(curve, mid) <= loss)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

double instance_floor_cut(const struct ww_alloc_job *job)
{
	double lowest = instance_lowest_cut(job);
	if (job->floor_frac == 0)
		return lowest;
	return fmax(instance_least_cut(job), instance_cut_at_loss(job->curve, 1 - job->floor_frac, lowest));
}

double instance_need_w(const struct instance *instance, size_t r)
{
	const struct ww_alloc_problem *p = &instance->problem;
	return instance->size_w[r] - (r < p->n_rows ? p->rows[r].budget_w : p->budget_w);
}

void instance_cut_w(const struct instance *instance, const double *cut, double *out_w)
{
	const struct ww_alloc_problem *p = &instance->problem;
	memset(out_w, 0, (p->n_rows + 1) * sizeof *out_w);
	for (size_t i = 0; i < p->n_jobs; i++) {
		const struct ww_alloc_job *job = &p->jobs[i];
		out_w[p->n_rows] += job->gpus * job->curve->p0_w * cut[i];
		for (uint32_t k = 0; k < job->n_rows; k++)
			out_w[job->rows[k].row] += job->rows[k].gpus * job->curve->p0_w * cut[i];
	}
}

double instance_value(const struct instance *instance, const double *cut)
{
	const struct ww_alloc_problem *p = &instance->problem;
	double sum = 0, least = 1;
	for (size_t i = 0; i < p->n_jobs; i++) {
		const struct ww_alloc_job *job = &p->jobs[i];
		double kept = 1 - ww_curve_loss(job->curve, cut[i]);
		least = fmin(least, 1 - job->weight * (1 - kept));
		if (p->objective == WW_OBJECTIVE_LOG)
			kept = kept > LEAST_KEPT ? log(kept) : log(LEAST_KEPT) + kept / LEAST_KEPT - 1;
		sum += job->weight * (p->objective == WW_OBJECTIVE_TOKENS ? job->curve->t0_tps : 1) * kept;
	}
	return p->objective == WW_OBJECTIVE_MAXMIN ? least : sum;
}
