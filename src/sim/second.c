/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One second of the plant. A job to which nothing happens keeps its GPUs' power; one to which something happens is lived in
 * pieces between the changes, each piece in closed form.
 */
#include "sim/sim_internal.h"

#include <math.h>

#define SETTLED 12 /* time constants after which a change is over: 6e-6 of it is left */
#define PLACE_JITTER UINT64_C(0x100000000)
#define PLACE_METER UINT64_C(0x200000000)

/* ---- State of a job ------------------------------------------------------------------------------------------------- */

static bool in_pause(const struct ww_sim_pause *pause, int64_t at)
{
	return pause->every_us > 0 && at >= pause->first_us && (at - pause->first_us) % pause->every_us < pause->for_us;
}

/* When the pause begins or ends next. */
static int64_t pause_turns(const struct ww_sim_pause *pause, int64_t at)
{
	if (pause->every_us == 0)
		return WW_NEVER_US;
	if (at < pause->first_us)
		return pause->first_us;
	int64_t into = (at - pause->first_us) % pause->every_us;
	return at - into + (into < pause->for_us ? pause->for_us : pause->every_us);
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static bool is_dark(const ww_plant *p, const struct sim_job *job, int64_t at)
{
	if (p->all_on_us <= at)
		return false;
	for (uint32_t i = 0; i < job->n; i++)
		if (p->nodes[p->node_of[p->job_gpus[job->first + i]]].on_us > at)
			return true;
	return false;
}

enum ww_sim_state sim_job_state(const ww_plant *p, const struct sim_job *job, int64_t at)
{
	if (at < job->start_us)
		return WW_SIM_WAITING;
	if (at >= job->end_us)
		return WW_SIM_ENDED;
	if (is_dark(p, job, at))
		return WW_SIM_DARK;
	if (in_pause(&job->checkpoint, at))
		return WW_SIM_CHECKPOINT;
	return in_pause(&job->evaluation, at) ? WW_SIM_EVALUATION : WW_SIM_RUNNING;
}

static int64_t power_back(const ww_plant *p, const struct sim_job *job, int64_t at)
{
	int64_t next = WW_NEVER_US;
	for (uint32_t i = 0; i < job->n; i++) {
		int64_t on = p->nodes[p->node_of[p->job_gpus[job->first + i]]].on_us;
		if (on > at)
			next = least(next, on);
	}
	return next;
}

static int64_t state_changes(const ww_plant *p, const struct sim_job *job, int64_t at)
{
	if (at < job->start_us)
		return job->start_us;
	if (at >= job->end_us)
		return WW_NEVER_US;
	int64_t next = least(pause_turns(&job->checkpoint, at), pause_turns(&job->evaluation, at));
	return least(least(next, job->end_us), power_back(p, job, at));
}

/* ---- Changes of a job ----------------------------------------------------------------------------------------------------- */

static bool holds_gpus(const struct sim_job *job)
{
	return job->state != WW_SIM_WAITING && job->state != WW_SIM_ENDED;
}

/* Its GPUs do more than idle. */
static bool draws(const struct sim_job *job)
{
	return holds_gpus(job) && job->state != WW_SIM_DARK;
}

/* The caps of one GPU that count by now. */
static bool take_writes(ww_plant *p, uint32_t gpu, int64_t at)
{
	struct sim_write *w = &p->writes[(size_t)gpu * SIM_PENDING];
	uint8_t due = 0, n = p->n_writes[gpu];
	while (due < n && w[due].at_us <= at)
		due++;
	if (due == 0)
		return false;
	p->cap_w[gpu] = w[due - 1].cap_w / (1 + p->gain[gpu]);
	for (uint8_t i = due; i < n; i++)
		w[i - due] = w[i];
	p->n_writes[gpu] = n - due;
	return true;
}

static bool take_caps(ww_plant *p, struct sim_job *job, int64_t at, bool all)
{
	bool changed = all;
	job->write_us = WW_NEVER_US;
	for (uint32_t i = 0; i < job->n; i++) {
		uint32_t gpu = p->job_gpus[job->first + i];
		changed = take_writes(p, gpu, at) || changed;
		if (p->n_writes[gpu])
			job->write_us = least(job->write_us, p->writes[(size_t)gpu * SIM_PENDING].at_us);
	}
	return changed;
}

static void drop_lags(ww_plant *p, struct sim_job *job)
{
	for (uint32_t i = 0; i < job->n; i++)
		p->lag_w[p->job_gpus[job->first + i]] = 0;
	job->lag_tps = 0;
	job->lagging = false;
}

/* The pace that all caps allow. The GPU that held it last is asked first, for few others then hold it back further. */
static struct sim_pace slowest_pace(const ww_plant *p, struct sim_job *job)
{
	const uint32_t *gpus = &p->job_gpus[job->first];
	uint32_t gpu = gpus[job->slowest];
	double place = job->place;
	if (p->cap_w[gpu] != job->slowest_cap_w)
		place = sim_table_place(&job->table, p->chip[gpu], p->cap_w[gpu], job->table.n - 1);
	struct sim_pace pace = sim_table_at(&job->table, place);
	for (uint32_t i = 0; i < job->n; i++) {
		gpu = gpus[i];
		if (sim_allows(&pace, p->chip[gpu], p->cap_w[gpu]))
			continue;
		place = sim_table_place(&job->table, p->chip[gpu], p->cap_w[gpu], place);
		pace = sim_table_at(&job->table, place);
		job->slowest = i;
	}
	job->place = place;
	job->slowest_cap_w = p->cap_w[gpus[job->slowest]];
	job->binds = place < job->table.n - 1;
	return pace;
}

/* The steady state of all its GPUs; what they did before fades. */
static void find_steady(ww_plant *p, struct sim_job *job)
{
	struct sim_pace pace = slowest_pace(p, job);
	for (uint32_t i = 0; i < job->n; i++) {
		uint32_t gpu = p->job_gpus[job->first + i];
		double w = sim_power(&pace, p->chip[gpu], p->cap_w[gpu]);
		p->lag_w[gpu] += p->steady_w[gpu] - w;
		p->steady_w[gpu] = w;
	}
	job->lag_tps += job->tps - pace.tps;
	job->tps = pace.tps;
	job->lagging = true;
}

static void enter_state(ww_plant *p, uint32_t j, enum ww_sim_state state)
{
	struct sim_job *job = &p->jobs[j];
	bool held = holds_gpus(job);
	job->state = state;
	if (held == holds_gpus(job))
		return;
	for (uint32_t i = 0; i < job->n; i++)
		p->job_of[p->job_gpus[job->first + i]] = held ? SIM_NO_JOB : j;
}

void sim_job_bring(ww_plant *p, uint32_t j, int64_t at)
{
	struct sim_job *job = &p->jobs[j];
	enum ww_sim_state before = job->state;
	bool started = false, changed = false;
	if (job->next_us <= at) {
		bool held = holds_gpus(job);
		enter_state(p, j, sim_job_state(p, job, at));
		job->next_us = state_changes(p, job, at);
		started = !held && holds_gpus(job);
	}
	bool look = started || job->changed || job->write_us <= at;
	if (!holds_gpus(job))
		job->write_us = WW_NEVER_US;
	else if (look)
		changed = take_caps(p, job, at, started || job->changed);
	job->changed = false;
	if (changed)
		find_steady(p, job);
	bool over = job->state != WW_SIM_RUNNING || before != WW_SIM_RUNNING || (at >= job->settled_us && !changed);
	if (job->lagging && over)
		drop_lags(p, job);
	if (changed || job->state != before)
		job->settled_us = at + (int64_t)(SETTLED * p->settle_s * 1e6);
}

double sim_job_gpu_w(const ww_plant *p, const struct sim_job *job, uint32_t gpu)
{
	switch (job->state) {
	case WW_SIM_RUNNING:
		return job->binds ? p->steady_w[gpu] : sim_lesser(p->steady_w[gpu] * job->jitter, p->cap_w[gpu]);
	case WW_SIM_CHECKPOINT:
		return sim_lesser(job->checkpoint.power_w, p->cap_w[gpu]);
	case WW_SIM_EVALUATION:
		return sim_lesser(job->evaluation.power_w, p->cap_w[gpu]);
	default:
		return p->board.idle_w;
	}
}

/* ---- A second in pieces ---------------------------------------------------------------------------------------------------- */

/* Every GPU with power begins the second as idle; jobs add what they draw beyond that. */
static void begin_gpu(ww_plant *p, uint32_t gpu, int64_t to)
{
	int64_t on = p->nodes[p->node_of[gpu]].on_us;
	double on_s = on <= p->now_us ? 1 : on >= to ? 0 : (double)(to - on) * 1e-6;
	p->mean_w[gpu] = p->board.idle_w * on_s;
}

static void begin_pieces(ww_plant *p, int64_t to)
{
	for (uint32_t n = 0; n < p->n_nodes; n++)
		if (p->now_us < p->nodes[n].busy_us)
			for (uint32_t i = 0; i < p->nodes[n].n; i++)
				begin_gpu(p, p->nodes[n].first + i, to);
	for (uint32_t j = 0; j < p->n_jobs; j++) {
		struct sim_job *job = &p->jobs[j];
		job->fresh = job->busy || job->fresh;
		job->busy = least(job->next_us, job->write_us) < to || job->changed || p->now_us < job->settled_us;
		if (job->busy || (job->fresh && !draws(job)))
			for (uint32_t i = 0; i < job->n; i++)
				begin_gpu(p, p->job_gpus[job->first + i], to);
	}
}

static void fade(ww_plant *p, struct sim_job *job, double s)
{
	double left = p->settle_s > 0 ? sim_decay(s / p->settle_s) : 0, area = p->settle_s * (1 - left);
	for (uint32_t i = 0; i < job->n; i++) {
		uint32_t gpu = p->job_gpus[job->first + i];
		p->mean_w[gpu] += p->lag_w[gpu] * area;
		p->lag_w[gpu] *= left;
	}
	job->mean_tps += job->lag_tps * area;
	job->lag_tps *= left;
}

static void live_piece(ww_plant *p, struct sim_job *job, double s)
{
	if (!draws(job))
		return;
	for (uint32_t i = 0; i < job->n; i++) {
		uint32_t gpu = p->job_gpus[job->first + i];
		p->mean_w[gpu] += (sim_job_gpu_w(p, job, gpu) - p->board.idle_w) * s;
	}
	if (job->state != WW_SIM_RUNNING)
		return;
	job->mean_tps += job->tps * s;
	if (job->lagging)
		fade(p, job, s);
}

static void live_job(ww_plant *p, uint32_t j, int64_t from, int64_t to)
{
	struct sim_job *job = &p->jobs[j];
	job->mean_tps = 0;
	for (int64_t at = from; at < to;) {
		sim_job_bring(p, j, at);
		int64_t next = least(to, least(job->next_us, job->write_us));
		live_piece(p, job, (double)(next - at) * 1e-6);
		at = next;
	}
}

/* A whole second without a change: only the first one after a change, and jitter, are new. */
static void live_quiet(ww_plant *p, struct sim_job *job, bool jitters)
{
	if (!job->fresh && !jitters)
		return;
	if (job->fresh) {
		job->fresh = false;
		job->mean_tps = job->state == WW_SIM_RUNNING ? job->tps : 0;
		if (job->lagging)
			drop_lags(p, job);
	}
	if (draws(job))
		for (uint32_t i = 0; i < job->n; i++) {
			uint32_t gpu = p->job_gpus[job->first + i];
			p->mean_w[gpu] = sim_job_gpu_w(p, job, gpu);
		}
}

/* ---- All of it ----------------------------------------------------------------------------------------------------------------- */

void ww_plant_second(ww_plant *p)
{
	int64_t to = p->now_us + WW_SECOND_US;
	p->second_seed = sim_mix(p->seed + (uint64_t)(p->now_us / WW_SECOND_US) * 0xD1342543DE82EF95u);
	begin_pieces(p, to);
	for (uint32_t i = 0; i < p->n_jobs; i++) {
		uint32_t j = p->order[i];
		struct sim_job *job = &p->jobs[j];
		bool jitters = job->jitter_frac > 0 && (job->busy || !job->binds);
		if (jitters)
			job->jitter = 1 + job->jitter_frac * sim_noise(p->second_seed, PLACE_JITTER + j);
		if (job->busy)
			live_job(p, j, p->now_us, to);
		else
			live_quiet(p, job, jitters);
	}
	sim_sum(p, false);
	p->now_us = to;
}

/* ---- Sums ----------------------------------------------------------------------------------------------------------------------- */

/* The mean of a lag over a second in which what it follows is constant; moves it to the second's end. */
static double follow(double *lagged, double w, double decay, double mean)
{
	double gap = *lagged - w;
	*lagged = w + gap * decay;
	return w + gap * mean;
}

static void sum_node(ww_plant *p, struct sim_node *node, bool settled)
{
	int64_t to = p->now_us + WW_SECOND_US;
	double on_s = node->on_us <= p->now_us ? 1 : node->on_us >= to ? 0 : (double)(to - node->on_us) * 1e-6, sum = 0;
	for (uint32_t i = 0; i < node->n; i++)
		sum += p->mean_w[node->first + i];
	if (settled || on_s == 0)
		node->lagged_w = sum;
	node->gpu_w = sum;
	node->all_w = sum + node->host_w * on_s + node->follow * follow(&node->lagged_w, sum, node->decay, node->mean);
}

static void sum_row(ww_plant *p, struct sim_row *row, bool settled)
{
	double gpu = 0, it = 0;
	for (uint32_t i = 0; i < row->n; i++) {
		const struct ww_sim_load *load = &p->loads[row->first + i];
		gpu += load->frac * p->nodes[load->node].gpu_w;
		it += load->frac * p->nodes[load->node].all_w;
	}
	if (settled)
		row->lagged_w = it;
	row->w[0] = gpu;
	row->w[1] = it;
	row->w[2] = it + row->other_w + row->cooling * follow(&row->lagged_w, it, row->decay, row->mean);
}

void sim_sum(ww_plant *p, bool settled)
{
	for (uint32_t n = 0; n < p->n_nodes; n++)
		sum_node(p, &p->nodes[n], settled);
	for (uint32_t r = 0; r < p->n_rows; r++)
		sum_row(p, &p->rows[r], settled);
}

double ww_plant_meter_w(const ww_plant *p, uint32_t r)
{
	const struct sim_row *row = &p->rows[r];
	return row->w[2] * (1 + row->noise_frac * sim_noise(p->second_seed, PLACE_METER + r));
}
