/* SPDX-License-Identifier: Apache-2.0 */
/* The plant: set-up, what is written to it and what is read from it. */
#include "sim/sim_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Set-up --------------------------------------------------------------------------------------------------------- */

static uint32_t count_gpus(const struct ww_plant_spec *s)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < s->n_nodes; i++)
		n += s->nodes[i].n_gpus;
	return n;
}

static size_t count_loads(const struct ww_plant_spec *s)
{
	size_t n = 0;
	for (uint32_t r = 0; r < s->n_rows; r++)
		n += s->rows[r].n_loads;
	return n;
}

static size_t count_job_gpus(const struct ww_plant_spec *s)
{
	size_t n = 0;
	for (uint32_t j = 0; j < s->n_jobs; j++)
		n += s->jobs[j].n_gpus;
	return n;
}

/* Never nothing, so that NULL means that memory ran out. */
static void *zeroed(size_t n, size_t size)
{
	return calloc(n ? n : 1, size);
}

static bool allocate_gpus(ww_plant *p)
{
	double **arrays[] = {&p->chip, &p->gain, &p->written_w, &p->cap_w, &p->steady_w, &p->lag_w, &p->mean_w};
	bool whole = true;
	for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
		whole = (*arrays[i] = zeroed(p->n_gpus, sizeof(double))) && whole;
	p->node_of = zeroed(p->n_gpus, sizeof *p->node_of);
	p->job_of = zeroed(p->n_gpus, sizeof *p->job_of);
	p->writes = zeroed((size_t)p->n_gpus * SIM_PENDING, sizeof *p->writes);
	p->n_writes = zeroed(p->n_gpus, sizeof *p->n_writes);
	return whole && p->node_of && p->job_of && p->writes && p->n_writes;
}

static bool allocate(ww_plant *p, const struct ww_plant_spec *s)
{
	bool whole = allocate_gpus(p);
	p->nodes = zeroed(s->n_nodes, sizeof *p->nodes);
	p->rows = zeroed(s->n_rows, sizeof *p->rows);
	p->loads = zeroed(count_loads(s), sizeof *p->loads);
	p->jobs = zeroed(s->n_jobs, sizeof *p->jobs);
	p->order = zeroed(s->n_jobs, sizeof *p->order);
	p->job_gpus = zeroed(count_job_gpus(s), sizeof *p->job_gpus);
	return whole && p->nodes && p->rows && p->loads && p->jobs && p->order && p->job_gpus;
}

/* What a second leaves of a lag, and the lag's mean over the second. */
static void set_lag(double lag_s, double *decay, double *mean)
{
	*decay = lag_s > 0 ? sim_decay(1 / lag_s) : 0;
	*mean = lag_s * (1 - *decay);
}

static void fill_nodes(ww_plant *p, const struct ww_plant_spec *s)
{
	uint32_t first = 0;
	for (uint32_t n = 0; n < s->n_nodes; n++) {
		const struct ww_sim_node *from = &s->nodes[n];
		struct sim_node *node = &p->nodes[n];
		*node = (struct sim_node){.first = first,
		                          .n = from->n_gpus,
		                          .on_us = INT64_MIN,
		                          .host_w = from->host_w,
		                          .follow = from->follow,
		                          .boot_cap_w = from->boot_cap_w};
		set_lag(from->lag_s, &node->decay, &node->mean);
		for (uint32_t i = 0; i < node->n; i++)
			p->node_of[first + i] = n;
		first += node->n;
	}
}

static double clipped(double v, double lo, double hi)
{
	return fmin(fmax(v, lo), hi);
}

static void fill_gpus(ww_plant *p)
{
	struct ww_rng rng;
	ww_rng_seed(&rng, p->seed);
	for (uint32_t g = 0; g < p->n_gpus; g++) {
		p->chip[g] = clipped(1 + p->board.chip_sd * ww_rng_normal(&rng), 0.9, 1.12);
		p->gain[g] = p->board.model_gain_frac + p->board.gain_sd * clipped(ww_rng_normal(&rng), -3, 3);
		p->written_w[g] = p->board.default_w;
		p->cap_w[g] = p->board.default_w / (1 + p->gain[g]);
		p->mean_w[g] = p->board.idle_w;
		p->job_of[g] = SIM_NO_JOB;
	}
}

static void fill_rows(ww_plant *p, const struct ww_plant_spec *s)
{
	uint32_t first = 0;
	for (uint32_t r = 0; r < s->n_rows; r++) {
		const struct ww_sim_row *from = &s->rows[r];
		struct sim_row *row = &p->rows[r];
		*row = (struct sim_row){.first = first,
		                        .n = (uint32_t)from->n_loads,
		                        .other_w = from->other_w,
		                        .cooling = from->cooling,
		                        .noise_frac = from->meter_noise_frac};
		set_lag(from->cooling_lag_s, &row->decay, &row->mean);
		for (uint32_t i = 0; i < row->n; i++)
			p->loads[first + i] = from->loads[i];
		first += row->n;
	}
}

static ww_status fill_job(ww_plant *p, uint32_t j, const struct ww_sim_job *from, struct ww_error *err)
{
	struct sim_job *job = &p->jobs[j];
	*job = (struct sim_job){.first = j ? p->jobs[j - 1].first + p->jobs[j - 1].n : 0,
	                        .n = from->n_gpus,
	                        .next_us = INT64_MIN,
	                        .write_us = WW_NEVER_US,
	                        .slowest_cap_w = NAN,
	                        .state = WW_SIM_WAITING,
	                        .jitter_frac = from->jitter_frac,
	                        .jitter = 1,
	                        .start_us = from->start_us,
	                        .end_us = from->end_us,
	                        .checkpoint = from->checkpoint,
	                        .evaluation = from->evaluation};
	memcpy(&p->job_gpus[job->first], from->gpus, from->n_gpus * sizeof *from->gpus);
	p->order[j] = j;
	return sim_table_create(&p->board, from, &job->table, err);
}

/* By start, then by number. In place; a merge sort would need memory, a heap sort only this. */
static bool starts_after(const ww_plant *p, uint32_t a, uint32_t b)
{
	int64_t s = p->jobs[a].start_us, t = p->jobs[b].start_us;
	return s != t ? s > t : a > b;
}

static void sift(ww_plant *p, uint32_t at, uint32_t n)
{
	for (uint32_t child; (child = 2 * at + 1) < n; at = child) {
		if (child + 1 < n && starts_after(p, p->order[child + 1], p->order[child]))
			child++;
		if (!starts_after(p, p->order[child], p->order[at]))
			return;
		uint32_t swap = p->order[at];
		p->order[at] = p->order[child];
		p->order[child] = swap;
	}
}

static void sort_order(ww_plant *p)
{
	for (uint32_t i = p->n_jobs / 2; i-- > 0;)
		sift(p, i, p->n_jobs);
	for (uint32_t n = p->n_jobs; n > 1; n--) {
		uint32_t last = p->order[n - 1];
		p->order[n - 1] = p->order[0];
		p->order[0] = last;
		sift(p, 0, n - 1);
	}
}

static void start(ww_plant *p)
{
	for (uint32_t i = 0; i < p->n_jobs; i++) {
		struct sim_job *job = &p->jobs[p->order[i]];
		sim_job_bring(p, p->order[i], 0);
		if (job->state == WW_SIM_WAITING || job->state == WW_SIM_ENDED)
			continue;
		job->mean_tps = job->state == WW_SIM_RUNNING ? job->tps : 0;
		for (uint32_t k = 0; k < job->n; k++) {
			uint32_t gpu = p->job_gpus[job->first + k];
			p->mean_w[gpu] = sim_job_gpu_w(p, job, gpu);
		}
	}
	sim_sum(p, true);
}

ww_status ww_plant_create(const struct ww_plant_spec *spec, ww_plant **out, struct ww_error *err)
{
	*out = NULL;
	ww_status status = sim_check_spec(spec, err);
	if (status)
		return status;
	ww_plant *p = calloc(1, sizeof *p);
	if (!p)
		return ww_fail(err, WW_ERR_NOMEM, "out of memory");
	p->board = spec->board;
	p->seed = spec->seed;
	p->second_seed = sim_mix(spec->seed);
	p->settle_s = spec->board.settle_us * 1e-6;
	p->n_gpus = count_gpus(spec);
	p->n_nodes = spec->n_nodes;
	p->n_rows = spec->n_rows;
	if (!allocate(p, spec)) {
		ww_plant_destroy(p);
		return ww_fail(err, WW_ERR_NOMEM, "out of memory");
	}
	fill_nodes(p, spec);
	fill_gpus(p);
	fill_rows(p, spec);
	for (; p->n_jobs < spec->n_jobs && !status; p->n_jobs++)
		status = fill_job(p, p->n_jobs, &spec->jobs[p->n_jobs], err);
	if (status) {
		ww_plant_destroy(p);
		return status;
	}
	sort_order(p);
	start(p);
	*out = p;
	return WW_OK;
}

void ww_plant_destroy(ww_plant *p)
{
	if (!p)
		return;
	void *arrays[] = {p->chip,   p->gain,   p->written_w, p->cap_w, p->steady_w, p->lag_w, p->mean_w, p->node_of,
	                  p->job_of, p->writes, p->n_writes,  p->nodes, p->rows,     p->loads, p->order,  p->job_gpus};
	for (uint32_t j = 0; j < p->n_jobs; j++)
		sim_table_finish(&p->jobs[j].table);
	for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
		free(arrays[i]);
	free(p->jobs);
	free(p);
}

/* ---- What is written ------------------------------------------------------------------------------------------------- */

/* Where the queue is full the newest takes the last one's place. One that should count earlier than one before it counts
 * with that one. */
static void enqueue(ww_plant *p, uint32_t gpu, struct sim_write write)
{
	struct sim_write *w = &p->writes[(size_t)gpu * SIM_PENDING];
	uint8_t n = p->n_writes[gpu];
	if (n == SIM_PENDING)
		n--;
	w[n] = write;
	p->n_writes[gpu] = n + 1;
}

bool ww_plant_write(ww_plant *p, uint32_t gpu, double cap_w, int64_t at_us)
{
	int64_t end = p->now_us + WW_SECOND_US, at = at_us < p->now_us ? p->now_us : at_us > end ? end : at_us;
	if (gpu >= p->n_gpus || isnan(cap_w) || p->nodes[p->node_of[gpu]].on_us > at)
		return false;
	double cap = clipped(cap_w, p->board.min_w, p->board.max_w);
	uint32_t job = p->job_of[gpu];
	p->written_w[gpu] = cap;
	enqueue(p, gpu, (struct sim_write){at + (int64_t)p->board.dead_us, cap});
	if (job != SIM_NO_JOB) {
		int64_t counts = p->writes[(size_t)gpu * SIM_PENDING].at_us;
		if (counts < p->jobs[job].write_us)
			p->jobs[job].write_us = counts;
	}
	return true;
}

/* The jobs on a node look at their state again at `at_us`. */
static void wake_jobs(ww_plant *p, const struct sim_node *node, int64_t at_us)
{
	for (uint32_t i = 0; i < node->n; i++) {
		uint32_t job = p->job_of[node->first + i];
		if (job == SIM_NO_JOB)
			continue;
		if (at_us < p->jobs[job].next_us)
			p->jobs[job].next_us = at_us;
		p->jobs[job].changed = true;
	}
}

void ww_plant_power_off(ww_plant *p, uint32_t n)
{
	struct sim_node *node = &p->nodes[n];
	node->on_us = p->all_on_us = WW_NEVER_US;
	node->busy_us = p->now_us + WW_SECOND_US;
	for (uint32_t i = 0; i < node->n; i++)
		p->n_writes[node->first + i] = 0;
	wake_jobs(p, node, p->now_us);
}

void ww_plant_power_on(ww_plant *p, uint32_t n, int64_t at_us)
{
	struct sim_node *node = &p->nodes[n];
	if (node->on_us <= p->now_us)
		return;
	double cap = isnan(node->boot_cap_w) ? p->board.default_w : node->boot_cap_w;
	node->on_us = at_us < p->now_us ? p->now_us : at_us;
	node->busy_us = node->on_us + WW_SECOND_US;
	p->all_on_us = INT64_MIN;
	for (uint32_t i = 0; i < p->n_nodes; i++)
		p->all_on_us = p->nodes[i].on_us > p->all_on_us ? p->nodes[i].on_us : p->all_on_us;
	for (uint32_t i = 0; i < node->n; i++) {
		uint32_t gpu = node->first + i;
		p->written_w[gpu] = cap;
		p->cap_w[gpu] = cap / (1 + p->gain[gpu]);
	}
	wake_jobs(p, node, node->on_us);
}

/* ---- What is read ----------------------------------------------------------------------------------------------------------- */

int64_t ww_plant_time_us(const ww_plant *p)
{
	return p->now_us;
}

uint32_t ww_plant_gpus(const ww_plant *p)
{
	return p->n_gpus;
}

static bool has_power(const ww_plant *p, uint32_t gpu)
{
	return p->nodes[p->node_of[gpu]].on_us <= p->now_us;
}

double ww_plant_enforced_w(const ww_plant *p, uint32_t gpu)
{
	return has_power(p, gpu) ? p->written_w[gpu] : 0;
}

double ww_plant_gpu_w(const ww_plant *p, uint32_t gpu)
{
	return p->mean_w[gpu];
}

/* A sampler that sees a quarter of the time errs by sqrt(1 / 0.25 - 1) of what independent phases leave in the mean. */
#define DUTY_NOISE 1.7320508075688772

double ww_plant_sensor_w(const ww_plant *p, uint32_t gpu)
{
	double noise = p->board.sensor_noise_frac;
	if (!has_power(p, gpu))
		return NAN;
	if (p->board.duty_sampler && p->job_of[gpu] != SIM_NO_JOB)
		noise = hypot(noise, DUTY_NOISE * p->jobs[p->job_of[gpu]].jitter_frac);
	return p->mean_w[gpu] * (1 + p->gain[gpu]) * (1 + noise * sim_noise(p->second_seed, gpu));
}

double ww_plant_row_w(const ww_plant *p, uint32_t row, int boundary)
{
	return p->rows[row].w[boundary];
}

double ww_plant_job_tps(const ww_plant *p, uint32_t job)
{
	return p->jobs[job].mean_tps;
}

enum ww_sim_state ww_plant_job_state(const ww_plant *p, uint32_t job)
{
	return sim_job_state(p, &p->jobs[job], p->now_us);
}
