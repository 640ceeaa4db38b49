/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated plant alone, at steps of 1 s: every GPU's cap is changed every 10 s and every sensor is read every second.
 * Beside it the floor: one multiply-add and one random number, from the generator of the plant's sensors, over an array of
 * the same size. Processor time; ratios are of neighbouring runs.
 */
#include "sim/sim_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NODE_GPUS 8
#define PERIOD 10
#define MOST_REPEATS 99

static double cpu_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- The plant: nodes of 8 GPUs with a job each, racks of 4 nodes, pods of 64, one site ------------------------------- */

struct cluster {
	uint32_t n_nodes, n_rows;
	struct ww_sim_node *nodes;
	struct ww_sim_row *rows;
	struct ww_sim_load *loads;
	struct ww_sim_job *jobs;
	uint32_t *gpus;
	ww_plant *plant;
};

static void *array(size_t n, size_t size)
{
	void *p = calloc(n, size);
	if (!p)
		exit(1);
	return p;
}

static void add_rows(struct cluster *c, uint32_t nodes_each)
{
	for (uint32_t first = 0; first < c->n_nodes; first += nodes_each) {
		uint32_t n = c->n_nodes - first < nodes_each ? c->n_nodes - first : nodes_each;
		c->rows[c->n_rows++] = (struct ww_sim_row){.loads = c->loads + first,
		                                           .n_loads = n,
		                                           .other_w = 100.0 * n,
		                                           .cooling = 0.2,
		                                           .cooling_lag_s = 60,
		                                           .meter_noise_frac = 0.001};
	}
}

static void fill_nodes(struct cluster *c, struct ww_rng *rng)
{
	for (uint32_t n = 0; n < c->n_nodes; n++) {
		c->nodes[n] = (struct ww_sim_node){NODE_GPUS, 1500, 0.1, 10, NAN};
		c->loads[n] = (struct ww_sim_load){n, 1};
		for (uint32_t i = 0; i < NODE_GPUS; i++)
			c->gpus[NODE_GPUS * n + i] = NODE_GPUS * n + i;
		c->jobs[n] = (struct ww_sim_job){
			.id = n + 1,
			.physics = ww_sim_draw_family((enum ww_sim_family)(n % WW_N_SIM_FAMILIES), rng),
			.n_gpus = NODE_GPUS,
			.gpus = c->gpus + NODE_GPUS * n,
			.end_us = WW_NEVER_US,
			.checkpoint = {900 * WW_SECOND_US, 20 * WW_SECOND_US, (int64_t)n * 100000, 300},
			.jitter_frac = 0.01};
	}
}

static void cluster_init(struct cluster *c, uint32_t n_gpus)
{
	struct ww_rng rng;
	struct ww_error err = {0};
	ww_rng_seed(&rng, 11);
	*c = (struct cluster){.n_nodes = (n_gpus + NODE_GPUS - 1) / NODE_GPUS};
	c->nodes = array(c->n_nodes, sizeof *c->nodes);
	c->loads = array(c->n_nodes, sizeof *c->loads);
	c->jobs = array(c->n_nodes, sizeof *c->jobs);
	c->rows = array(c->n_nodes + 3, sizeof *c->rows);
	c->gpus = array((size_t)c->n_nodes * NODE_GPUS, sizeof *c->gpus);
	fill_nodes(c, &rng);
	add_rows(c, 4);
	add_rows(c, 64);
	add_rows(c, c->n_nodes);
	struct ww_plant_spec spec = {5, ww_sim_h200, c->n_nodes, c->n_rows, c->n_nodes, c->nodes, c->rows, c->jobs};
	if (ww_plant_create(&spec, &c->plant, &err)) {
		fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
}

static void cluster_finish(struct cluster *c)
{
	ww_plant_destroy(c->plant);
	free(c->nodes);
	free(c->loads);
	free(c->jobs);
	free(c->rows);
	free(c->gpus);
}

/* ---- Runs --------------------------------------------------------------------------------------------------------------- */

enum order { TOGETHER, SCATTERED }; /* caps of a job change at one time, or each GPU's in another second */

static void write_caps(struct cluster *c, enum order order, int64_t second, uint32_t at)
{
	uint64_t turn = (uint64_t)second % PERIOD;
	int64_t now = second * WW_SECOND_US;
	for (uint32_t g = 0; g < c->n_nodes * NODE_GPUS; g++) {
		uint32_t key = order == TOGETHER ? g / NODE_GPUS : g;
		if (key % PERIOD != turn)
			continue;
		uint64_t z = sim_mix((uint64_t)second << 32 | (order == TOGETHER ? key : g));
		if (!ww_plant_write(c->plant, g, 250 + (double)(z % 450), now + (int64_t)(z >> 32) % at))
			exit(1);
	}
}

static volatile double sink;

/* Nanoseconds of processor time per GPU and second. */
static double time_plant(struct cluster *c, enum order order, int seconds)
{
	uint32_t n = c->n_nodes * NODE_GPUS;
	double sum = 0, start = cpu_s();
	for (int s = 0; s < seconds; s++) {
		write_caps(c, order, ww_plant_time_us(c->plant) / WW_SECOND_US, 900000);
		ww_plant_second(c->plant);
		for (uint32_t g = 0; g < n; g++)
			sum += ww_plant_sensor_w(c->plant, g);
	}
	sink = sum;
	return 1e9 * (cpu_s() - start) / n / seconds;
}

static double time_floor(double *y, uint32_t n, int seconds)
{
	double start = cpu_s();
	for (int s = 0; s < seconds; s++)
		for (uint32_t i = 0; i < n; i++)
			y[i] = y[i] * 0.999 + sim_noise((uint64_t)s, i);
	sink = y[n / 2];
	return 1e9 * (cpu_s() - start) / n / seconds;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void print_spread(const char *name, const char *unit, double *v, int n)
{
	qsort(v, (size_t)n, sizeof *v, by_value);
	printf("  %-28s min %8.2f  median %8.2f  max %8.2f %s\n", name, v[0], v[n / 2], v[n - 1], unit);
}

static void run_case(uint32_t n_gpus, enum order order, int repeats)
{
	double rate[MOST_REPEATS], floor_ns[MOST_REPEATS], ratio[MOST_REPEATS];
	int seconds = (int)(8000000 / n_gpus / PERIOD + 1) * PERIOD;
	struct cluster c;
	cluster_init(&c, n_gpus);
	uint32_t n = c.n_nodes * NODE_GPUS;
	double *y = array(n, sizeof *y);
	time_plant(&c, order, PERIOD);
	time_floor(y, n, PERIOD);
	for (int i = 0; i < repeats; i++) {
		double ns = time_plant(&c, order, seconds);
		floor_ns[i] = time_floor(y, n, seconds);
		rate[i] = 1e3 / ns;
		ratio[i] = ns / floor_ns[i];
	}
	printf("plant of %u GPUs, %d s, caps of a job %s, %d repeats\n", n, seconds,
	       order == TOGETHER ? "together" : "scattered", repeats);
	print_spread("million GPU-s per core-s", "", rate, repeats);
	print_spread("floor", "ns", floor_ns, repeats);
	print_spread("plant over floor", "x", ratio, repeats);
	fflush(stdout);
	free(y);
	cluster_finish(&c);
}

int main(void)
{
	const char *text = getenv("WATTWEIR_BENCH_REPEATS");
	int repeats = text ? (int)strtol(text, NULL, 10) : 5;
	repeats = repeats < 1 ? 1 : repeats > MOST_REPEATS ? MOST_REPEATS : repeats;
	run_case(1000, TOGETHER, repeats);
	run_case(10000, TOGETHER, repeats);
	run_case(100000, TOGETHER, repeats);
	run_case(10000, SCATTERED, repeats);
	run_case(100000, SCATTERED, repeats);
	return 0;
}
