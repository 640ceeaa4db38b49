/* SPDX-License-Identifier: Apache-2.0 */
/* The whole state as bytes. What a step computes anew is left out; the division is made again from its problem. */
#include "control/control_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STATE_MAGIC UINT64_C(0x3374736572776177) /* "wawrest3" */
#define SUM_BYTES 8
#define JOBS_MAX 1000000
#define SHARES_MAX 100000000

/* ---- Writing ------------------------------------------------------------------------------------------------------------ */

static void put_fence(struct ww_buf *b, struct ww_fence f)
{
	ww_buf_u64(b, f.epoch);
	ww_buf_u64(b, f.seq);
}

static void put_node(struct ww_buf *b, const struct node *n)
{
	ww_buf_u64(b, n->boot_id);
	ww_buf_u64(b, n->start_id);
	ww_buf_u64(b, n->seq);
	ww_buf_i64(b, n->heard_us);
	ww_buf_i64(b, n->alive_us);
	ww_buf_u8(b, n->believed);
	ww_buf_u8(b, n->was_silent);
	put_fence(b, n->accepted);
	ww_buf_u32(b, n->n_rates);
	for (uint32_t i = 0; i < n->n_rates; i++) {
		ww_buf_u64(b, n->rates[i].job);
		ww_buf_f32(b, n->rates[i].tps);
	}
	ww_buf_u64(b, n->next_seq);
	ww_buf_u64(b, n->since_seq);
	ww_buf_i64(b, n->sent_us);
	ww_buf_u32(b, n->n_outstanding);
	for (uint32_t i = 0; i < n->n_outstanding; i++) {
		put_fence(b, n->outstanding[i].fence);
		ww_buf_i64(b, n->outstanding[i].sent_us);
		ww_buf_i64(b, n->outstanding[i].restores_us);
		for (uint32_t g = 0; g < n->config.n_gpus; g++)
			ww_buf_f32(b, n->outstanding[i].top_w[g]);
	}
	ww_buf_u8(b, n->silent);
	ww_buf_u8(b, n->has_last);
	if (n->has_last)
		ww_encode_command(b, n->last);
}

static void put_gpu(struct ww_buf *b, const struct gpu *g)
{
	const float values[] = {g->enforced_w, g->draw_w,    g->goal_w,   g->recorded_w, g->ceiling_w, g->charge_w,
	                        g->cap_w,      g->blind_w,   g->target_w, g->stored_w,   g->decided_w, g->lean_frac,
	                        g->lean_w,     g->need_frac, g->boot_w,   g->most_w};
	for (size_t i = 0; i < sizeof values / sizeof *values; i++)
		ww_buf_f32(b, values[i]);
	ww_buf_i64(b, g->changed_us);
	ww_buf_i64(b, g->raised_us);
	ww_buf_i64(b, g->obeyed_us);
	ww_buf_u8(b, g->step);
	ww_buf_u8(b, g->held);
	ww_buf_u8(b, g->managed);
	ww_buf_u8(b, g->why);
	ww_buf_u8(b, g->stuck);
}

static void put_curve(struct ww_buf *b, const struct ww_curve *c)
{
	const double values[] = {c->p0_w, c->t0_tps, c->max_cut_frac, c->var_a, c->var_b, c->cov_ab};
	for (size_t i = 0; i < sizeof values / sizeof *values; i++)
		ww_buf_f64(b, values[i]);
	ww_buf_u32(b, c->flags);
	ww_buf_u32(b, (uint32_t)c->status);
	ww_buf_u32(b, c->n);
	for (uint32_t i = 0; i < c->n; i++) {
		ww_buf_f64(b, c->k[i].cut_frac);
		ww_buf_f64(b, c->k[i].loss_frac);
		ww_buf_f64(b, c->k[i].slope);
	}
}

static void put_demand(struct ww_buf *b, const struct demand *d)
{
	for (uint32_t i = 0; i < DEMAND_SPANS; i++)
		ww_buf_f32(b, d->top_w[i]);
	ww_buf_u32(b, d->n);
	ww_buf_u32(b, d->next);
	ww_buf_i64(b, d->span_us);
	ww_buf_i64(b, d->held_us);
	ww_buf_f32(b, d->now_w);
	ww_buf_f32(b, d->draw_w);
	ww_buf_f32(b, d->used_frac);
	ww_buf_u8(b, d->probes);
}

static void put_job(struct ww_buf *b, const struct job *j)
{
	const double values[] = {j->tps,      j->seen_w,         j->seen_tps,        j->draw_w,          j->rate_tps,
	                         j->cut_frac, j->equal_cut_frac, j->throughput_frac, j->kept_floor_frac, j->trust};
	ww_encode_job(b, &j->told);
	put_curve(b, &j->curve);
	for (size_t i = 0; i < sizeof values / sizeof *values; i++)
		ww_buf_f64(b, values[i]);
	ww_buf_u8(b, j->why);
	ww_buf_u8(b, j->divided);
	ww_buf_u32(b, j->n_needs);
	ww_buf_f32(b, j->need_var);
	ww_buf_u64(b, j->laid_for);
	for (uint32_t k = 0; k < STEPS_AHEAD; k++)
		ww_buf_f64(b, j->ahead_cut[k]);
	put_demand(b, &j->demand);
}

static void put_row(struct ww_buf *b, const struct row *r)
{
	ww_buf_f32(b, r->meter.value);
	ww_buf_u32(b, r->meter.age_ms);
	ww_buf_u8(b, r->meter.status);
	ww_buf_i64(b, r->meter_us);
	ww_buf_i64(b, r->bound_us);
	ww_buf_u32(b, r->n_residuals);
	ww_buf_u32(b, r->next_residual);
	for (uint32_t i = 0; i < RESIDUALS; i++)
		ww_buf_f32(b, r->residual[i]);
	ww_buf_f64(b, r->non_gpu_w);
	ww_buf_f64(b, r->draw_w);
	ww_buf_f64(b, r->slow_draw_w);
	ww_buf_f64(b, r->from_w);
	ww_buf_f64(b, r->lag_w);
	ww_buf_f64(b, r->over_w);
	ww_buf_i64(b, r->over_us);
	ww_buf_f64(b, r->over_offer_w);
	ww_buf_f64(b, r->charge_w);
	for (uint32_t i = 0; i < SPANS; i++) {
		ww_buf_i64(b, r->spans[i].number);
		ww_buf_f64(b, r->spans[i].power_w);
		ww_buf_f64(b, r->spans[i].beside_w);
		ww_buf_f64(b, r->spans[i].draw_w);
		ww_buf_u32(b, r->spans[i].n);
		ww_buf_u32(b, r->spans[i].n_beside);
		ww_buf_u32(b, r->spans[i].n_draws);
	}
	ww_buf_u8(b, r->bound_is_old);
	ww_buf_u8(b, r->binds);
	ww_buf_u32(b, r->binds_ahead);
}

static void put_event(struct ww_buf *b, const struct event *e)
{
	ww_encode_event(b, &e->told);
	ww_buf_f64(b, e->base_w);
	ww_buf_f64(b, e->limit_w);
	ww_buf_f64(b, e->baseline_w);
	ww_buf_f64(b, e->measured_frac);
	ww_buf_f64(b, e->missing_w);
}

static void put_problem(struct ww_buf *b, const ww_control *c)
{
	const struct problem *p = &c->problem;
	ww_buf_u8(b, p->set);
	if (!p->set)
		return;
	ww_buf_u8(b, p->done);
	ww_buf_u32(b, p->runs);
	ww_buf_u32(b, p->n_jobs);
	ww_buf_u32(b, p->n_shares);
	for (uint32_t i = 0; i < p->n_jobs; i++) {
		const struct ww_alloc_job *j = &p->jobs[i];
		ww_buf_u32(b, p->job_of[i]);
		ww_buf_u64(b, j->id);
		ww_buf_u32(b, j->gpus);
		ww_buf_u32(b, j->n_rows);
		ww_buf_u8(b, (uint8_t)j->tier);
		ww_buf_f64(b, j->weight);
		ww_buf_f64(b, j->floor_frac);
		ww_buf_f64(b, j->min_w);
		ww_buf_f64(b, j->max_w);
		put_curve(b, &p->curves[i]);
	}
	for (uint32_t i = 0; i < p->n_shares; i++) {
		ww_buf_u32(b, p->shares[i].row);
		ww_buf_f64(b, p->shares[i].gpus);
	}
	for (uint32_t r = 0; r < c->n_rows; r++)
		ww_buf_f64(b, p->rows[r].budget_w);
}

void encode_inventory(const ww_control *c, struct ww_buf *b)
{
	struct ww_config config = c->config;
	struct ww_row *rows = calloc(c->n_rows + 1, sizeof *rows);
	struct ww_node_config *nodes = calloc(c->n_nodes + 1, sizeof *nodes);
	b->failed = b->failed || !rows || !nodes;
	for (uint32_t r = 0; rows && r < c->n_rows; r++)
		rows[r] = c->rows[r].config;
	for (uint32_t n = 0; nodes && n < c->n_nodes; n++)
		nodes[n] = c->nodes[n].config;
	config.rows = rows;
	config.nodes = nodes;
	if (rows && nodes)
		ww_encode_config(b, &config);
	free(rows);
	free(nodes);
}

static void put_all(struct ww_buf *b, const ww_control *c)
{
	encode_inventory(c, b);
	ww_buf_u32(b, c->division);
	ww_buf_u8(b, (uint8_t)c->mode);
	ww_buf_i64(b, c->mode_wall_us);
	ww_encode_leader(b, &c->leader);
	ww_buf_i64(b, c->stored_us);
	ww_buf_u64(b, c->must_store_after);
	ww_buf_u64(b, c->last_seq);
	ww_buf_i64(b, c->leads_since_us);
	ww_buf_i64(b, c->adopt_until_us);
	ww_buf_u8(b, c->known_until_us != WW_NEVER_US);
	ww_buf_i64(b, c->known_until_us != WW_NEVER_US ? c->known_until_us : 0);
	ww_buf_i64(b, c->now.mono_us);
	ww_buf_i64(b, c->now.wall_us);
	ww_buf_u64(b, c->steps);
	ww_buf_i64(b, c->offset_us);
	ww_buf_u64(b, c->decision.seq);
	ww_buf_i64(b, c->decision.at.mono_us);
	ww_buf_u8(b, (uint8_t)(c->news | c->ready_changed << 1 | c->must_store << 2 | c->restore_decided << 3 |
	                       c->restore_stored << 4 | c->restores_before << 5));
	ww_buf_i64(b, c->lease_before_us);
	ww_buf_i64(b, c->lease_decided_us);
	ww_buf_f64(b, c->usual_cut);
	ww_buf_u8(b, c->ahead_us != WW_NEVER_US);
	ww_buf_i64(b, c->ahead_us != WW_NEVER_US ? c->ahead_us : 0);
	ww_buf_u32(b, c->n_ahead);
	for (uint32_t k = 0; k < c->n_ahead; k++) {
		ww_buf_i64(b, c->ahead[k].at_us);
		ww_buf_i64(b, c->ahead[k].until_us);
	}
	ww_buf_u32(b, c->n_jobs);
	for (uint32_t j = 0; j < c->n_jobs; j++)
		put_job(b, c->jobs[j]);
	ww_buf_u32(b, c->n_events);
	for (uint32_t e = 0; e < c->n_events; e++)
		put_event(b, &c->events[e]);
	for (uint32_t r = 0; r < c->n_rows; r++)
		put_row(b, &c->rows[r]);
	for (uint32_t n = 0; n < c->n_nodes; n++)
		put_node(b, &c->nodes[n]);
	for (uint32_t g = 0; g < c->n_gpus; g++)
		put_gpu(b, &c->gpus[g]);
	put_problem(b, c);
}

ww_status ww_control_save(const ww_control *c, struct ww_buf *b)
{
	size_t from = b->n;
	ww_buf_u64(b, STATE_MAGIC);
	ww_buf_u8(b, c->configured);
	if (c->configured)
		put_all(b, c);
	if (!b->failed)
		ww_buf_u64(b, ww_sum_bytes(b->bytes + from, b->n - from));
	return b->failed ? WW_ERR_NOMEM : WW_OK;
}

/* ---- Reading ------------------------------------------------------------------------------------------------------------ */

/* A time that others can be added to and taken from, or long ago. */
static int64_t get_time(struct ww_read *r)
{
	int64_t us = ww_read_i64(r);
	if ((us < -INT64_MAX / 8 || us > INT64_MAX / 8) && us != INT64_MIN / 2)
		ww_read_bad(r);
	return us;
}

static struct ww_fence get_fence(struct ww_read *r)
{
	struct ww_fence f = {.epoch = ww_read_u64(r)};
	f.seq = ww_read_u64(r);
	return f;
}

static void get_node(struct ww_read *r, struct node *n)
{
	n->boot_id = ww_read_u64(r);
	n->start_id = ww_read_u64(r);
	n->seq = ww_read_u64(r);
	n->heard_us = get_time(r);
	n->alive_us = get_time(r);
	n->believed = ww_read_u8(r);
	n->was_silent = ww_read_u8(r);
	n->accepted = get_fence(r);
	n->n_rates = ww_read_count(r, WW_NODE_JOBS_MAX, 12);
	for (uint32_t i = 0; i < n->n_rates; i++) {
		n->rates[i].job = ww_read_u64(r);
		n->rates[i].tps = ww_read_f32(r);
	}
	n->next_seq = ww_read_u64(r);
	n->since_seq = ww_read_u64(r);
	n->sent_us = get_time(r);
	n->n_outstanding = ww_read_count(r, OUTSTANDING_MAX, 32);
	for (uint32_t i = 0; i < n->n_outstanding; i++) {
		n->outstanding[i].fence = get_fence(r);
		n->outstanding[i].sent_us = get_time(r);
		n->outstanding[i].restores_us = ww_read_i64(r);
		for (uint32_t g = 0; g < n->config.n_gpus; g++)
			n->outstanding[i].top_w[g] = ww_read_f32(r);
	}
	n->silent = ww_read_u8(r);
	n->has_last = ww_read_u8(r);
	if (n->has_last)
		ww_decode_command(r, n->last);
	if (n->has_last && !r->bad && n->last->n_gpus != n->config.n_gpus)
		ww_read_bad(r);
}

/* Watts that a state may hold: a NAN or what a board can have. */
static float get_watts(struct ww_read *r)
{
	float w = ww_read_f32(r);
	if (!(isnan(w) || (w >= -1e6f && w <= 1e6f)))
		ww_read_bad(r);
	return w;
}

static void get_gpu(struct ww_read *r, struct gpu *g)
{
	float *values[] = {&g->enforced_w, &g->draw_w,    &g->goal_w,   &g->recorded_w, &g->ceiling_w, &g->charge_w,
	                   &g->cap_w,      &g->blind_w,   &g->target_w, &g->stored_w,   &g->decided_w, &g->lean_frac,
	                   &g->lean_w,     &g->need_frac, &g->boot_w,   &g->most_w};
	for (size_t i = 0; i < sizeof values / sizeof *values; i++)
		*values[i] = get_watts(r);
	if (isnan(g->charge_w) || isnan(g->ceiling_w) || isnan(g->target_w) || isnan(g->stored_w) ||
	    isnan(g->decided_w) || !(fabsf(g->lean_frac) <= 1) || isnan(g->lean_w))
		ww_read_bad(r);
	g->changed_us = get_time(r);
	g->raised_us = get_time(r);
	g->obeyed_us = get_time(r);
	g->step = ww_read_u8(r);
	g->held = ww_read_u8(r);
	g->managed = ww_read_u8(r);
	g->why = ww_read_u8(r);
	g->stuck = ww_read_u8(r);
	if (g->why >= WW_N_WHYS)
		ww_read_bad(r);
}

/* A curve that the allocator takes, or none at all yet. */
static void get_curve(struct ww_read *r, struct ww_curve *curve)
{
	double *values[] = {&curve->p0_w,  &curve->t0_tps, &curve->max_cut_frac,
	                    &curve->var_a, &curve->var_b,  &curve->cov_ab};
	*curve = (struct ww_curve){0};
	for (size_t i = 0; i < sizeof values / sizeof *values; i++)
		*values[i] = ww_read_f64(r);
	curve->flags = ww_read_u32(r);
	curve->status = (int)ww_read_u32(r);
	curve->n = ww_read_count(r, WW_MAX_KNOTS, sizeof(struct ww_knot));
	for (uint32_t i = 0; i < curve->n; i++) {
		curve->k[i].cut_frac = ww_read_f64(r);
		curve->k[i].loss_frac = ww_read_f64(r);
		curve->k[i].slope = ww_read_f64(r);
	}
	if (!(curve->p0_w >= 0 && curve->p0_w < 1e6))
		ww_read_bad(r);
}

static void get_demand(struct ww_read *r, struct demand *d)
{
	for (uint32_t i = 0; i < DEMAND_SPANS; i++)
		d->top_w[i] = get_watts(r);
	d->n = ww_read_u32(r);
	d->next = ww_read_u32(r);
	d->span_us = get_time(r);
	d->held_us = get_time(r);
	d->now_w = get_watts(r);
	d->draw_w = get_watts(r);
	d->used_frac = ww_read_f32(r);
	d->probes = ww_read_u8(r);
	if (d->n > DEMAND_SPANS || d->next >= DEMAND_SPANS || d->span_us < 0 || d->held_us < 0)
		ww_read_bad(r);
}

static void get_job(struct ww_read *r, struct job *j)
{
	double *values[] = {&j->tps,      &j->seen_w,         &j->seen_tps,        &j->draw_w,          &j->rate_tps,
	                    &j->cut_frac, &j->equal_cut_frac, &j->throughput_frac, &j->kept_floor_frac, &j->trust};
	ww_decode_job(r, &j->told);
	get_curve(r, &j->curve);
	for (size_t i = 0; i < sizeof values / sizeof *values; i++)
		*values[i] = ww_read_f64(r);
	j->why = ww_read_u8(r);
	j->divided = ww_read_u8(r);
	j->n_needs = ww_read_u32(r);
	j->need_var = ww_read_f32(r);
	j->laid_for = ww_read_u64(r);
	if (j->why >= WW_N_WHYS || !isfinite(j->cut_frac))
		ww_read_bad(r);
	for (uint32_t k = 0; k < STEPS_AHEAD; k++)
		j->ahead_cut[k] = ww_read_f64(r);
	get_demand(r, &j->demand);
}

static void get_row(struct ww_read *r, struct row *row)
{
	row->meter.value = ww_read_f32(r);
	row->meter.age_ms = (uint16_t)ww_read_u32(r);
	row->meter.status = ww_read_u8(r);
	row->meter_us = get_time(r);
	row->bound_us = get_time(r);
	row->n_residuals = ww_read_u32(r);
	row->next_residual = ww_read_u32(r);
	if (row->n_residuals > RESIDUALS || row->next_residual >= RESIDUALS)
		ww_read_bad(r);
	for (uint32_t i = 0; i < RESIDUALS; i++)
		row->residual[i] = ww_read_f32(r);
	row->non_gpu_w = ww_read_f64(r);
	row->draw_w = ww_read_f64(r);
	row->slow_draw_w = ww_read_f64(r);
	row->from_w = ww_read_f64(r);
	row->lag_w = ww_read_f64(r);
	row->over_w = ww_read_f64(r);
	row->over_us = get_time(r);
	row->over_offer_w = ww_read_f64(r);
	row->charge_w = ww_read_f64(r);
	for (uint32_t i = 0; i < SPANS; i++) {
		row->spans[i].number = get_time(r);
		row->spans[i].power_w = ww_read_f64(r);
		row->spans[i].beside_w = ww_read_f64(r);
		row->spans[i].draw_w = ww_read_f64(r);
		row->spans[i].n = ww_read_u32(r);
		row->spans[i].n_beside = ww_read_u32(r);
		row->spans[i].n_draws = ww_read_u32(r);
	}
	row->bound_is_old = ww_read_u8(r);
	row->binds = ww_read_u8(r);
	row->binds_ahead = (uint16_t)ww_read_u32(r);
}

static void get_event(struct ww_read *r, struct event *e)
{
	ww_decode_event(r, &e->told);
	e->base_w = ww_read_f64(r);
	e->limit_w = ww_read_f64(r);
	e->baseline_w = ww_read_f64(r);
	e->measured_frac = ww_read_f64(r);
	e->missing_w = ww_read_f64(r);
	if (!isfinite(e->base_w) || !isfinite(e->limit_w) || (!r->bad && ww_check_event(&e->told, NULL) != WW_OK))
		ww_read_bad(r);
}

static void get_problem_jobs(struct ww_read *r, ww_control *c)
{
	struct problem *p = &c->problem;
	uint64_t shares = 0;
	for (uint32_t i = 0; i < p->n_jobs && !r->bad; i++) {
		struct ww_alloc_job *j = &p->jobs[i];
		p->job_of[i] = ww_read_u32(r);
		j->id = ww_read_u64(r);
		j->gpus = ww_read_u32(r);
		j->n_rows = ww_read_u32(r);
		j->tier = ww_read_u8(r);
		j->weight = ww_read_f64(r);
		j->floor_frac = ww_read_f64(r);
		j->min_w = ww_read_f64(r);
		j->max_w = ww_read_f64(r);
		get_curve(r, &p->curves[i]);
		shares += j->n_rows;
		if (p->job_of[i] >= c->n_jobs || shares > p->n_shares)
			ww_read_bad(r);
	}
	if (shares != p->n_shares)
		ww_read_bad(r);
}

static void get_problem(struct ww_read *r, ww_control *c, size_t room_shares)
{
	struct problem *p = &c->problem;
	bool set = ww_read_u8(r);
	if (!set || r->bad)
		return;
	p->done = ww_read_u8(r);
	p->runs = ww_read_u32(r);
	p->n_jobs = ww_read_count(r, c->n_jobs, 1);
	p->n_shares = ww_read_count(r, (uint32_t)least((double)room_shares, SHARES_MAX), 1);
	get_problem_jobs(r, c);
	for (uint32_t i = 0; i < p->n_shares && !r->bad; i++) {
		p->shares[i].row = ww_read_u32(r);
		p->shares[i].gpus = ww_read_f64(r);
	}
	for (uint32_t i = 0; i < c->n_rows && !r->bad; i++)
		p->rows[i].budget_w = ww_read_f64(r);
	p->set = !r->bad && p->runs <= RUNS_MAX;
}

static void get_times(struct ww_read *r, ww_control *c)
{
	c->stored_us = get_time(r);
	c->must_store_after = ww_read_u64(r);
	c->last_seq = ww_read_u64(r);
	c->leads_since_us = get_time(r);
	c->adopt_until_us = get_time(r);
	bool known = ww_read_u8(r);
	c->known_until_us = get_time(r);
	c->known_until_us = known ? c->known_until_us : WW_NEVER_US;
	c->now.mono_us = get_time(r);
	c->now.wall_us = get_time(r);
	c->steps = ww_read_u64(r);
	c->offset_us = get_time(r);
	c->decision.seq = ww_read_u64(r);
	c->decision.at.mono_us = get_time(r);
	uint8_t flags = ww_read_u8(r);
	c->news = flags & 1;
	c->ready_changed = flags & 2;
	c->must_store = flags & 4;
	c->restore_decided = flags & 8;
	c->restore_stored = flags & 16;
	c->restores_before = flags & 32;
	c->lease_before_us = get_time(r);
	c->lease_decided_us = get_time(r);
	c->usual_cut = ww_read_f64(r);
	bool looked = ww_read_u8(r);
	int64_t ahead_us = get_time(r);
	c->ahead_us = looked ? ahead_us : WW_NEVER_US;
	c->n_ahead = ww_read_count(r, STEPS_AHEAD, 16);
	for (uint32_t k = 0; k < c->n_ahead; k++) {
		c->ahead[k].at_us = get_time(r);
		c->ahead[k].until_us = get_time(r);
	}
}

/* Jobs as they were told, through the front door; what was known of them afterwards. */
static ww_status get_jobs(struct ww_read *r, ww_control *c, struct ww_error *err)
{
	uint32_t n = ww_read_count(r, JOBS_MAX, 64);
	struct job *job = malloc(sizeof *job);
	ww_status status = WW_OK;
	if (!job)
		return ww_fail(err, WW_ERR_NOMEM, "out of memory for a job");
	for (uint32_t j = 0; j < n && !status && !r->bad; j++) {
		*job = (struct job){0};
		get_job(r, job);
		if (r->bad)
			break;
		status = add_told_job(c, job, err);
	}
	free(job);
	return status;
}

static ww_status get_events(struct ww_read *r, ww_control *c, struct ww_error *err)
{
	uint32_t n = ww_read_count(r, EVENTS_MAX, 32);
	c->events = calloc(n + 1, sizeof *c->events);
	c->room_events = n;
	if (!c->events)
		return ww_fail(err, WW_ERR_NOMEM, "out of memory for events");
	for (; c->n_events < n && !r->bad; c->n_events++)
		get_event(r, &c->events[c->n_events]);
	return WW_OK;
}

/* After everything else, which is news to a controller. */
static void set_times(ww_control *c, const ww_control *times)
{
	c->stored_us = times->stored_us;
	c->must_store_after = times->must_store_after;
	c->last_seq = times->last_seq;
	c->leads_since_us = times->leads_since_us;
	c->adopt_until_us = times->adopt_until_us;
	c->known_until_us = times->known_until_us;
	c->now = times->now;
	c->steps = times->steps;
	c->offset_us = times->offset_us;
	c->decision.seq = times->decision.seq;
	c->decision.at = times->decision.at;
	c->news = times->news;
	c->ready_changed = times->ready_changed;
	c->must_store = times->must_store;
	c->restore_decided = times->restore_decided;
	c->restore_stored = times->restore_stored;
	c->restores_before = times->restores_before;
	c->lease_before_us = times->lease_before_us;
	c->lease_decided_us = times->lease_decided_us;
	c->usual_cut = times->usual_cut;
	c->ahead_us = times->ahead_us;
	c->n_ahead = times->n_ahead;
	memcpy(c->ahead, times->ahead, sizeof c->ahead);
}

static ww_status get_all(struct ww_read *r, ww_control *c, struct ww_error *err)
{
	struct ww_config config = {0};
	ww_decode_config(r, &config);
	if (r->bad)
		return WW_OK;
	ww_status status = take_config(c, &config, err);
	ww_config_finish(&config);
	if (status)
		return status;
	uint32_t division = ww_read_u32(r);
	if (division >= WW_N_DIVISIONS)
		ww_read_bad(r);
	c->division = (enum ww_division)division;
	uint8_t mode = ww_read_u8(r);
	if (mode >= WW_N_MODES)
		ww_read_bad(r);
	c->mode = (enum ww_mode)mode;
	c->mode_wall_us = get_time(r);
	ww_decode_leader(r, &c->leader);
	struct ww_control times = {0};
	get_times(r, &times);
	status = get_jobs(r, c, err);
	if (!status)
		status = get_events(r, c, err);
	if (!status)
		status = settle_jobs(c, err);
	if (status)
		return status;
	for (uint32_t i = 0; i < c->n_rows; i++)
		get_row(r, &c->rows[i]);
	for (uint32_t n = 0; n < c->n_nodes; n++)
		get_node(r, &c->nodes[n]);
	for (uint32_t g = 0; g < c->n_gpus; g++)
		get_gpu(r, &c->gpus[g]);
	get_problem(r, c, c->n_shares);
	set_times(c, &times);
	return r->bad || r->at != r->n ? WW_OK : divide_again(c, err);
}

/* Bytes that would not be saved again were not saved: a flag of 2, a count that was cut. */
static ww_status check_same(const ww_control *c, const struct ww_buf *b)
{
	struct ww_buf again = {0};
	ww_status status = ww_control_save(c, &again);
	if (!status && (again.n != b->n || memcmp(again.bytes, b->bytes, b->n) != 0))
		status = WW_ERR_INVALID;
	ww_buf_finish(&again);
	return status;
}

ww_status ww_control_load(ww_control *c, const struct ww_buf *b, struct ww_error *err)
{
	size_t n = b->n < SUM_BYTES ? 0 : b->n - SUM_BYTES;
	struct ww_read r = {.bytes = b->bytes, .n = n}, sum = {.bytes = b->bytes, .n = b->n, .at = n};
	ww_control *fresh;
	ww_status status = ww_control_create(&fresh, err);
	if (status)
		return status;
	bool ours = n > 0 && ww_read_u64(&sum) == ww_sum_bytes(b->bytes, n) && ww_read_u64(&r) == STATE_MAGIC;
	bool configured = ww_read_u8(&r);
	if (ours && configured)
		status = get_all(&r, fresh, NULL);
	if (!status)
		status = !ours || r.bad || r.at != r.n ? WW_ERR_INVALID : check_same(fresh, b);
	if (status == WW_ERR_NOMEM)
		status = ww_fail(err, status, "out of memory for the saved state");
	else if (status)
		status = ww_fail(err, WW_ERR_INVALID, "the saved state is damaged or of another version");
	if (!status) {
		ww_control old = *c;
		*c = *fresh;
		*fresh = old;
	}
	ww_control_destroy(fresh);
	return status;
}
