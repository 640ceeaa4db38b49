/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where every GPU should go. Rows that could not carry all their GPUs at the limits they have without a budget bind; the
 * jobs on them share what is left by the allocator: the equal cut at once after news, better divisions over the next steps.
 * A GPU without a job on a binding row goes to its lowest limit. Nodes that cannot be steered keep their charge, and the
 * rest is divided among the others.
 *
 * Each division starts from its problem alone, not from earlier prices, so that a saved problem gives the same division.
 */
#include "control/control_internal.h"

#include <math.h>
#include <string.h>

#define SWEEPS 8       /* of a refinement in one step */
#define RUNS_AT_ONCE 4 /* refinements at once where little changed */
#define LITTLE 0.02    /* of a row: a fall of its offer that is no news */
#define RISE 0.001     /* of a row: a rise of its offer that is not worth a new division */
#define LET_GO 0.99    /* of its offer: a row that binds stops binding when its GPUs need less than that */
#define AHEAD_AGE_US (30 * WW_SECOND_US)
#define OVER_US (10 * WW_SECOND_US) /* beyond settle: charges that are still above the offer stay there */
#define AGAIN_US (3 * WW_SECOND_US)
#define OVER_MORE 1.1      /* of what is missing: a GPU that does not come down is divided for as well */
#define GIVES 0.005        /* of its offer: free watts that are no longer held back */
#define UNKNOWN_LOSS 0.10  /* at a cut of 0.3, of a job without a curve; */
#define FLOOR_SD 1.64      /* standard errors by which a floor is kept: 19 of 20 times */
#define UNKNOWN_NOISE 0.05 /* hardly trusted */
#define USUAL_W 700.0      /* before anything is known */
#define SMOOTH 0.05
#define LEAST_P0_W 1.0 /* of a guess, */
#define MOST_P0_W 1e5
#define LEAST_T0_TPS 1e-6
#define MOST_T0_TPS 1e20
#define GLITCH 2.0 /* times the highest rate so far: one reading counts no more */

/* ---- Caps ------------------------------------------------------------------------------------------------------------- */

float lowest_of(const ww_control *c, const struct gpu *gpu)
{
	return c->nodes[gpu->node].config.min_w;
}

float cap_at(const ww_control *c, const struct gpu *gpu, const struct job *job, double cut_frac)
{
	float cap_w = (float)(job->curve.p0_w * (1 - cut_frac));
	return least_known(most_known(cap_w, lowest_of(c, gpu)), gpu->ceiling_w);
}

/* ---- Jobs that come without a curve ------------------------------------------------------------------------------------- */

static double within(double v, double low, double high)
{
	return least(most(v, low), high);
}

/* The highest draw and rate seen stand for the baseline. */
static void guess_curve(struct job *job, double ceiling_w)
{
	double p0_w = within(job->seen_w > 0 ? least(job->seen_w, ceiling_w) : ceiling_w, LEAST_P0_W, MOST_P0_W);
	double t0_tps = job->seen_tps > 0 ? within(job->seen_tps, LEAST_T0_TPS, MOST_T0_TPS) : 1;
	if (fabs(job->curve.p0_w - p0_w) <= 0.02 * p0_w && fabs(job->curve.t0_tps - t0_tps) <= 0.02 * t0_tps)
		return;
	struct ww_fit_point point = {0.3, UNKNOWN_LOSS};
	struct ww_fit fit = {.points = &point, .n = 1, .noise_frac = UNKNOWN_NOISE, .p0_w = p0_w, .t0_tps = t0_tps};
	if (ww_curve_fit(&fit, &job->curve, NULL) == WW_OK)
		job->curve.max_cut_frac = 0;
}

void begin_curve(struct job *job)
{
	if (!job->told.has_curve && job->curve.n == 0)
		guess_curve(job, USUAL_W);
}

static void smooth(double *slow, double v)
{
	if (isnan(*slow))
		*slow = v;
	else if (!isnan(v))
		*slow += SMOOTH * (v - *slow);
}

/* What a reading counts as, so that one which is far off does not stand for the highest rate. The first above 0 only tells how
 * high the next may be; NAN = it does not count. */
static double counted(double tps, double before_tps, double seen_tps)
{
	double counted_tps = least(tps, seen_tps > 0 ? GLITCH * seen_tps : before_tps);
	return isnan(tps) || (seen_tps <= 0 && counted_tps <= 0) ? (double)NAN : counted_tps;
}

/* ---- What can be steered, and what cannot ------------------------------------------------------------------------------- */

static bool node_binds(const ww_control *c, const struct node *node)
{
	for (uint32_t l = 0; l < node->config.n_loads; l++)
		if (c->rows[node->config.loads[l].row].binds)
			return true;
	return false;
}

/* Rows bind that could not carry their GPUs at their ceilings. */
static void find_binding(ww_control *c)
{
	for (uint32_t r = 0; r < c->n_rows; r++) {
		bool binds = c->rows[r].full_w > c->rows[r].offer_w * (c->rows[r].binds ? LET_GO : 1 + 1e-9);
		if (binds != c->rows[r].binds)
			c->news = true;
		c->rows[r].binds = binds;
	}
}

/* Nodes that have not answered a new leader yet will soon, but for those that did not answer the one before either. */
static bool is_ready_soon(const ww_control *c, const struct gpu *gpu)
{
	const struct node *node = &c->nodes[gpu->node];
	return gpu->managed && (!node->silent || (greets(c) && !node->was_silent));
}

/* Where charges stay above the offer although all was ordered that the division asks for, others must go lower: limits hang,
 * boards draw more than their limits. Looked at only when limits have had the time to come down. */
static void watch_rows(ww_control *c)
{
	for (uint32_t r = 0; r < c->n_rows; r++) {
		struct row *row = &c->rows[r];
		double free_w = row->offer_w - row->charge_w, most_w = row->offer_w - row->fixed_w - row->steered_w;
		bool lacks = is_lack(row, free_w);
		bool gives = row->over_w > 0 && free_w >= least(GIVES * row->offer_w, 0.9 * row->over_w);
		bool counts = row->binds && (lacks || gives) && row->offer_w >= (1 - LITTLE) * row->over_offer_w;
		int64_t wait_us = c->config.settle_us + (lacks && row->over_w > 0 ? AGAIN_US : OVER_US);
		bool waits = counts && c->now.mono_us - row->over_us < wait_us;
		if (counts && !waits)
			row->over_w -= lacks ? OVER_MORE * free_w : free_w;
		if (!waits) {
			row->over_us = c->now.mono_us;
			row->over_offer_w = row->offer_w;
		}
		/* Where all are at their lowest limits nothing is left to hold back. */
		row->over_w = row->binds ? most(0, least(row->over_w, most_w)) : 0;
	}
}

/* Which jobs are divided, and the watts per row of the GPUs that are not; and of all GPUs once they are as low as can be. */
static void take_stock(ww_control *c)
{
	for (uint32_t j = 0; j < c->n_jobs; j++)
		c->jobs[j]->divided = false;
	for (uint32_t r = 0; r < c->n_rows; r++)
		c->rows[r].fixed_w = c->rows[r].low_w = c->rows[r].steered_w = 0;
	for (uint32_t n = 0; n < c->n_nodes; n++) {
		const struct node *node = &c->nodes[n];
		bool binds = node_binds(c, node);
		double w = 0, low_w = 0, steered_w = 0;
		for (uint32_t i = 0; i < node->config.n_gpus; i++) {
			const struct gpu *gpu = &c->gpus[node->first_gpu + i];
			bool ready = is_ready(c, gpu);
			low_w += is_ready_soon(c, gpu) && !gpu->stuck ? node->config.min_w : gpu->charge_w;
			if (ready && gpu->job) {
				gpu->job->divided |= binds;
				steered_w += node->config.min_w;
			} else {
				w += ready ? node->config.min_w : gpu->charge_w;
			}
		}
		for (uint32_t l = 0; l < node->config.n_loads; l++) {
			c->rows[node->config.loads[l].row].fixed_w += node->config.loads[l].frac * w;
			c->rows[node->config.loads[l].row].steered_w += node->config.loads[l].frac * steered_w;
			c->rows[node->config.loads[l].row].low_w += node->config.loads[l].frac * low_w;
		}
	}
}

static double rate_of(const struct node *node, const struct job *job)
{
	double rate = (double)NAN;
	for (uint32_t i = 0; i < node->n_rates; i++)
		if (node->rates[i].job == job->told.id && !node->silent)
			rate = node->rates[i].tps;
	return rate;
}

static void add_use(const ww_control *c, const struct gpu *gpu, struct use *use)
{
	if (!is_ready(c, gpu) || isnan(gpu->draw_w) || isnan(gpu->enforced_w))
		return;
	use->draw_w = most_known(use->draw_w, gpu->draw_w);
	use->frac = most_known(use->frac, gpu->draw_w / gpu->enforced_w);
}

/* Draw and rate of each job as measured, and its curve where none was told. */
static void watch_jobs(ww_control *c)
{
	for (uint32_t j = 0; j < c->n_jobs; j++) {
		struct job *job = c->jobs[j];
		double draw_w = 0, ceiling_w = 0, tps = job->n_gpus == job->n_told ? 0 : (double)NAN;
		struct use use = {NAN, NAN};
		const struct gpu *last = NULL;
		for (uint32_t k = 0; k < job->n_gpus; k++) {
			const struct gpu *gpu = &c->gpus[job->gpus[k]];
			add_use(c, gpu, &use);
			draw_w += gpu->draw_w > gpu->ceiling_w ? gpu->ceiling_w : gpu->draw_w;
			ceiling_w = most(ceiling_w, gpu->ceiling_w);
			if (!last || last->node != gpu->node)
				tps += rate_of(&c->nodes[gpu->node], job);
			last = gpu;
		}
		watch_demand(c, job, use);
		smooth(&job->draw_w, job->n_gpus ? draw_w / job->n_gpus : (double)NAN);
		smooth(&job->rate_tps, counted(tps, job->tps, job->seen_tps));
		job->tps = tps;
		job->seen_w = job->draw_w > job->seen_w ? job->draw_w : job->seen_w;
		job->seen_tps = job->rate_tps > job->seen_tps ? job->rate_tps : job->seen_tps;
		double before_w = job->curve.p0_w;
		if (!job->told.has_curve)
			guess_curve(job, ceiling_w);
		c->ready_changed = c->ready_changed || job->curve.p0_w != before_w;
	}
}

/* ---- Problems ---------------------------------------------------------------------------------------------------------- */

/* Adds frac x gpus of the job to a row's share. */
static void add_share(struct problem *p, struct ww_alloc_job *job, struct ww_row_share *shares, uint32_t row,
                      double gpus)
{
	for (uint32_t s = 0; s < job->n_rows; s++)
		if (shares[s].row == row) {
			shares[s].gpus += gpus;
			return;
		}
	shares[job->n_rows++] = (struct ww_row_share){row, gpus};
	p->n_shares++;
}

/* Jobs that are divided, by what can be steered of them; all jobs, by what can be steered soon. */
enum who { DIVIDED, SOON };

static bool counts(const ww_control *c, const struct gpu *gpu, enum who who)
{
	return who == SOON ? is_ready_soon(c, gpu) : is_ready(c, gpu);
}

/* GPUs of a place. Bounds of their caps. */
static uint32_t count_place(const ww_control *c, const struct node *node, uint32_t bits, enum who who, double *bounds_w)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < node->config.n_gpus; i++) {
		const struct gpu *gpu = &c->gpus[node->first_gpu + i];
		if (!(bits >> i & 1) || !counts(c, gpu, who))
			continue;
		n++;
		bounds_w[0] = most(bounds_w[0], node->config.min_w);
		bounds_w[1] = least(bounds_w[1], gpu->ceiling_w);
	}
	return n;
}

/* A promise is of what its curve says: where a job draws less for now, in watts it is the same. */
static double promised(const struct job *job)
{
	const struct ww_curve *k = &job->curve, *told = &job->told.curve;
	double promise = job->told.floor_frac;
	if (!is_clamped(job) || promise <= 0)
		return promise;
	double least_w = told->p0_w * (1 - ww_curve_cut_at_loss(told, 1 - promise));
	return 1 - ww_curve_loss(k, most(0, 1 - least_w / k->p0_w));
}

/* What must be asked for so that the promise is kept: the loss at the floor may be larger by the curve's uncertainty,
 * var(a d + b d^2), and a GPU may be left as much below its share as is not worth a raise. */
static double floor_of(const struct job *job)
{
	const struct ww_curve *k = &job->curve;
	double promise = promised(job), d = ww_curve_cut_at_loss(k, 1 - promise);
	double var = d * d * (k->var_a + 2 * d * k->cov_ab + d * d * k->var_b);
	double left_frac = ww_curve_slope(k, d) * DEAD_BAND_W / k->p0_w;
	return promise > 0 ? least(1, promise + FLOOR_SD * sqrt(most(0, var)) + left_frac) : 0;
}

static void pose_job(const ww_control *c, struct problem *p, uint32_t j, enum who who)
{
	const struct job *job = c->jobs[j];
	struct ww_alloc_job *to = &p->jobs[p->n_jobs];
	struct ww_row_share *shares = &p->shares[p->n_shares];
	double bounds_w[2] = {0, (double)INFINITY};
	p->job_of[p->n_jobs] = j;
	p->curves[p->n_jobs] = job->curve;
	*to = (struct ww_alloc_job){.id = job->told.id,
	                            .tier = job->told.tier,
	                            .weight = job->told.weight,
	                            .floor_frac = floor_of(job),
	                            .curve = &p->curves[p->n_jobs],
	                            .rows = shares};
	for (uint32_t k = 0; k < job->told.n_places; k++) {
		const struct node *node = find_node(c, job->told.places[k].node);
		uint32_t n = node ? count_place(c, node, job->told.places[k].gpus, who, bounds_w) : 0;
		to->gpus += n;
		for (uint32_t l = 0; n && l < node->config.n_loads; l++)
			if (node->config.loads[l].frac > 0)
				add_share(p, to, shares, node->config.loads[l].row,
				          (double)node->config.loads[l].frac * n);
	}
	/* No board goes below its lowest limit, however little it draws. */
	p->curves[p->n_jobs].p0_w = most(job->curve.p0_w, bounds_w[0]);
	to->min_w = bounds_w[0];
	to->max_w = most(bounds_w[0], bounds_w[1]);
	p->n_jobs += to->gpus > 0;
}

static void pose(const ww_control *c, struct problem *p, enum who who)
{
	p->n_jobs = p->n_shares = 0;
	for (uint32_t j = 0; j < c->n_jobs; j++)
		if (who != DIVIDED || c->jobs[j]->divided)
			pose_job(c, p, j, who);
}

static ww_status set_problem(const ww_control *c, ww_alloc *alloc, const struct problem *p, struct ww_error *err)
{
	const struct ww_alloc_problem problem = {.jobs = p->jobs,
	                                         .n_jobs = p->n_jobs,
	                                         .rows = p->rows,
	                                         .n_rows = c->n_rows,
	                                         .budget_w = (double)INFINITY,
	                                         .objective = (enum ww_objective)c->config.objective,
	                                         .explore = c->division == WW_DIVISION_EXACT,
	                                         .fresh = 1};
	return ww_alloc_set(alloc, &problem, err);
}

/* What the allocator refuses of one job no other one pays for: that job is divided like one of which nothing is known. */
static void make_unknown(struct job *job, struct ww_alloc_job *asked, struct ww_curve *curve)
{
	job->curve = (struct ww_curve){0};
	guess_curve(job, USUAL_W);
	*curve = job->curve;
	asked->weight = 1;
	asked->floor_frac = 0;
}

static bool set_sound(ww_control *c, ww_alloc *alloc, struct problem *p)
{
	struct problem one = *p;
	one.n_jobs = 0;
	if (set_problem(c, alloc, p, NULL) == WW_OK)
		return true;
	if (set_problem(c, alloc, &one, NULL) != WW_OK) /* it is not the jobs */
		return false;
	one.n_jobs = 1;
	for (uint32_t i = 0; i < p->n_jobs; i++) {
		one.jobs = &p->jobs[i];
		if (set_problem(c, alloc, &one, NULL) != WW_OK)
			make_unknown(c->jobs[p->job_of[i]], &p->jobs[i], &p->curves[i]);
	}
	return set_problem(c, alloc, p, NULL) == WW_OK;
}

ww_status grow_divisions(ww_control *c, const struct room *room, struct ww_error *err)
{
	for (size_t r = c->room.rows; r < room->rows; r++) /* what is in force stays, should memory run out */
		c->problem.rows[r].budget_w = (double)INFINITY;
	ww_status status = ww_alloc_reserve(c->alloc, room->jobs, room->rows, room->shares, err);
	return status ? status : ww_alloc_reserve(c->alloc_ahead, room->jobs, room->rows, room->shares, err);
}

void forget_division(ww_control *c)
{
	c->problem.set = false;
	c->problem.n_jobs = 0;
}

/* ---- Dividing ---------------------------------------------------------------------------------------------------------- */

/* Whether the problem in force still serves; `little`: and if not, a small step from its division does. */
static bool still_serves(const ww_control *c, bool *little)
{
	*little = c->problem.set && !c->news;
	bool serves = *little && !c->ready_changed;
	for (uint32_t r = 0; r < c->n_rows; r++) {
		double had = c->problem.rows[r].budget_w, wants = c->wanted_rows[r].budget_w;
		if (isinf(had) && isinf(wants))
			continue;
		if (wants < had || wants > had + RISE * fabs(had))
			serves = false;
		if (!(wants >= had - LITTLE * fabs(had)))
			*little = false;
	}
	return serves;
}

static enum ww_why why_of(const ww_control *c, const struct ww_alloc_job *asked, const struct ww_alloc_share *share,
                          double promise)
{
	double cap_w = asked->curve->p0_w * (1 - share->cut_frac);
	if (cap_w <= asked->min_w + 0.5)
		return WW_WHY_LOWEST;
	if (share->floor_frac < promise - 1e-9)
		return WW_WHY_RELAXED;
	if (asked->floor_frac > 0 && share->throughput_frac <= share->floor_frac + 1e-6)
		return WW_WHY_FLOOR;
	if (share->cut_frac >= share->box_cut_frac - 1e-9 && share->cut_frac > 0)
		return WW_WHY_BOX;
	return c->problem.runs == 0 ? WW_WHY_EQUAL : WW_WHY_PRICE;
}

static void publish(ww_control *c)
{
	const struct ww_alloc_share *shares = ww_alloc_shares(c->alloc);
	double cut = 0, baseline_w = 0;
	for (uint32_t i = 0; i < c->problem.n_jobs; i++) {
		struct job *job = c->jobs[c->problem.job_of[i]];
		const struct ww_alloc_job *asked = &c->problem.jobs[i];
		job->cut_frac = shares[i].cut_frac;
		job->equal_cut_frac = shares[i].equal_cut_frac;
		job->throughput_frac = shares[i].throughput_frac;
		job->kept_floor_frac = least(shares[i].floor_frac, job->told.floor_frac);
		job->trust = shares[i].trust;
		job->why = (uint8_t)why_of(c, asked, &shares[i], job->told.floor_frac);
		cut += asked->gpus * asked->curve->p0_w * shares[i].equal_cut_frac;
		baseline_w += asked->gpus * asked->curve->p0_w;
	}
	c->usual_cut = baseline_w > 0 ? cut / baseline_w : c->usual_cut;
}

static void refine(ww_control *c, uint32_t runs)
{
	for (uint32_t i = 0; i < runs && !c->problem.done && c->problem.runs < RUNS_MAX; i++) {
		c->problem.done = ww_alloc_run(c->alloc, SWEEPS) < SWEEPS;
		c->problem.runs++;
	}
}

static void divide_jobs(ww_control *c)
{
	bool little;
	for (uint32_t r = 0; r < c->n_rows; r++)
		c->wanted_rows[r].budget_w = c->rows[r].binds
		                                     ? c->rows[r].offer_w - c->rows[r].fixed_w - c->rows[r].over_w
		                                     : (double)INFINITY;
	if (still_serves(c, &little)) {
		if (c->division != WW_DIVISION_EQUAL && !c->problem.done) {
			refine(c, 1);
			publish(c);
		}
		return;
	}
	pose(c, &c->problem, DIVIDED);
	memcpy(c->problem.rows, c->wanted_rows, c->n_rows * sizeof *c->wanted_rows);
	c->problem.set = set_sound(c, c->alloc, &c->problem);
	for (uint32_t i = 0; i < c->problem.n_jobs && !c->problem.set; i++) {
		c->jobs[c->problem.job_of[i]]->cut_frac = 1; /* to the lowest limit, until it can be divided */
		c->jobs[c->problem.job_of[i]]->why = WW_WHY_LOWEST;
	}
	c->problem.runs = 0;
	c->problem.done = !c->problem.set;
	if (c->division != WW_DIVISION_EQUAL && little)
		refine(c, RUNS_AT_ONCE);
	if (c->problem.set)
		publish(c);
	c->ahead_us = c->news || c->ready_changed ? WW_NEVER_US : c->ahead_us;
	c->news = c->ready_changed = false;
}

ww_status divide_again(ww_control *c, struct ww_error *err)
{
	if (!c->problem.set)
		return WW_OK;
	for (uint32_t i = 0, s = 0; i < c->problem.n_jobs; i++) {
		c->problem.jobs[i].curve = &c->problem.curves[i];
		c->problem.jobs[i].rows = &c->problem.shares[s];
		s += c->problem.jobs[i].n_rows;
	}
	ww_status status = set_problem(c, c->alloc, &c->problem, err);
	for (uint32_t i = 0; i < c->problem.runs && !status; i++)
		ww_alloc_run(c->alloc, SWEEPS);
	return status;
}

/* ---- Ahead -------------------------------------------------------------------------------------------------------------- */

/* Watts per row of GPUs that will not be divided for. */
static void sum_soon(const ww_control *c, double *row_w)
{
	memset(row_w, 0, c->n_rows * sizeof *row_w);
	for (uint32_t n = 0; n < c->n_nodes; n++) {
		const struct node *node = &c->nodes[n];
		double w = 0;
		for (uint32_t i = 0; i < node->config.n_gpus; i++) {
			const struct gpu *gpu = &c->gpus[node->first_gpu + i];
			if (!is_ready_soon(c, gpu))
				w += gpu->charge_w;
			else if (!gpu->job)
				w += node->config.min_w;
		}
		add_load(node, w, row_w);
	}
}

/* The equal cut at one coming moment, beside what is fixed on the rows. */
static void divide_at(ww_control *c, uint32_t k, const double *fixed_w)
{
	struct problem *p = &c->ahead_problem;
	bool holds = c->ahead[k].at_us <= c->now.wall_us;
	offers_between(c, c->ahead[k].at_us + lead_us(c), c->ahead[k].until_us, p->rows);
	for (uint32_t r = 0; r < c->n_rows; r++) {
		/* What holds already binds where a step may not have been done yet. */
		bool binds = p->rows[r].budget_w < (holds ? c->rows[r].charge_w : c->rows[r].full_w);
		c->rows[r].binds_ahead = (uint16_t)(c->rows[r].binds_ahead | (binds ? 1u << k : 0));
		p->rows[r].budget_w = binds ? p->rows[r].budget_w - fixed_w[r] : (double)INFINITY;
	}
	bool set = set_sound(c, c->alloc_ahead, p);
	for (uint32_t i = 0; i < p->n_jobs; i++) {
		bool binds = false;
		for (uint32_t s = 0; s < p->jobs[i].n_rows; s++)
			binds = binds || (c->rows[p->jobs[i].rows[s].row].binds_ahead >> k & 1);
		c->jobs[p->job_of[i]]->ahead_cut[k] = !binds ? (double)NAN
		                                      : set  ? ww_alloc_shares(c->alloc_ahead)[i].equal_cut_frac
		                                             : 1;
	}
}

static void look_ahead(ww_control *c)
{
	bool never = c->ahead_us == WW_NEVER_US, greeted = !never && c->ahead_us - c->leads_since_us < GREETING_US;
	if (!never && c->now.mono_us - c->ahead_us < AHEAD_AGE_US && greeted == greets(c))
		return;
	c->ahead_us = c->now.mono_us;
	c->n_ahead = steps_ahead(c, c->ahead);
	for (uint32_t r = 0; r < c->n_rows; r++)
		c->rows[r].binds_ahead = 0;
	for (uint32_t j = 0; j < c->n_jobs; j++)
		for (uint32_t k = 0; k < STEPS_AHEAD; k++)
			c->jobs[j]->ahead_cut[k] = (double)NAN;
	if (c->n_ahead == 0)
		return;
	pose(c, &c->ahead_problem, SOON);
	sum_soon(c, c->row_free_w);
	for (uint32_t k = 0; k < c->n_ahead; k++)
		divide_at(c, k, c->row_free_w);
}

/* The watts that an event lacks even with all that can be steered at its lowest. */
static void judge_events(ww_control *c)
{
	for (uint32_t i = 0; i < c->n_events; i++) {
		const struct row *row = find_row(c, c->events[i].told.row);
		c->events[i].missing_w =
			row ? most(0, row->low_w - offer_of(row, c->events[i].told.boundary, c->events[i].limit_w))
			    : (double)NAN; /* the row is not in the power plan any more */
	}
}

/* ---- Targets ------------------------------------------------------------------------------------------------------------ */

/* The watts that a GPU has more than its share: as much of them as all its rows can carry of what all there have more. */
static float leaning(const ww_control *c, const struct gpu *gpu)
{
	const struct ww_node_config *config = &c->nodes[gpu->node].config;
	double part = 1;
	if (c->config.trim == WW_TRIM_OFF || !gpu->job->divided)
		return 0;
	for (uint32_t l = 0; gpu->lean_w > 0 && l < config->n_loads; l++)
		part = least(part, c->rows[config->loads[l].row].lean_part);
	return part < 1 ? floorf((float)part * gpu->lean_w) : gpu->lean_w;
}

static void aim(ww_control *c, struct gpu *gpu, bool binds)
{
	const struct node *node = &c->nodes[gpu->node];
	const struct job *job = gpu->job;
	gpu->moved_w = 0;
	if (!binds && !(job && job->divided)) {
		gpu->target_w = gpu->ceiling_w;
		gpu->why = WW_WHY_NO_BUDGET;
	} else if (!job) {
		gpu->target_w = lowest_of(c, gpu);
		gpu->why = WW_WHY_IDLE;
	} else {
		float plain_w = cap_at(c, gpu, job, job->divided ? job->cut_frac : c->usual_cut);
		gpu->moved_w = leaning(c, gpu);
		gpu->target_w = least_known(most_known(plain_w + gpu->moved_w, lowest_of(c, gpu)), gpu->ceiling_w);
		gpu->why = job->why;
	}
	if (!gpu->managed)
		gpu->why = WW_WHY_UNMANAGED;
	else if (!node->believed)
		gpu->why = WW_WHY_ADOPTING;
	else if (node->silent)
		gpu->why = WW_WHY_SILENT;
	else if (gpu->stuck)
		gpu->why = WW_WHY_STUCK;
}

static void aim_all(ww_control *c)
{
	double *row_w = c->row_need_w;
	memset(row_w, 0, c->n_rows * sizeof *row_w);
	for (uint32_t n = 0; n < c->n_nodes; n++) {
		const struct node *node = &c->nodes[n];
		bool binds = node_binds(c, node);
		double w = 0;
		for (uint32_t i = 0; i < node->config.n_gpus; i++) {
			struct gpu *gpu = &c->gpus[node->first_gpu + i];
			aim(c, gpu, binds);
			w += is_ready(c, gpu) ? gpu->target_w : gpu->charge_w;
		}
		add_load(node, w, row_w);
	}
}

/* Shares keep every row; with what GPUs have more, a row that carries part of a job may not be kept. It then carries the
 * part of it that its free watts allow. */
static void aim_within_rows(ww_control *c)
{
	bool over = false;
	for (uint32_t r = 0; r < c->n_rows; r++)
		c->rows[r].lean_part = 1;
	aim_all(c);
	for (uint32_t r = 0; r < c->n_rows; r++) {
		struct row *row = &c->rows[r];
		c->row_free_w[r] = c->row_need_w[r];
		row->lean_part = row->binds && c->row_need_w[r] > row->offer_w * (1 + MARGIN) ? 0 : 1;
		over = over || row->lean_part < 1;
	}
	if (!over)
		return;
	aim_all(c);
	for (uint32_t r = 0; r < c->n_rows; r++) {
		struct row *row = &c->rows[r];
		if (row->lean_part < 1 && c->row_free_w[r] > c->row_need_w[r])
			row->lean_part =
				most(0, row->offer_w - c->row_need_w[r]) / (c->row_free_w[r] - c->row_need_w[r]);
	}
	aim_all(c);
}

void divide(ww_control *c)
{
	watch_jobs(c);
	find_binding(c);
	take_stock(c);
	watch_rows(c);
	divide_jobs(c);
	lean_jobs(c);
	look_ahead(c);
	judge_events(c);
	aim_within_rows(c);
}
