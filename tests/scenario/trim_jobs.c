/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trim_jobs [--gpus 8|64] [--count N] [--seed FIRST]: what moving watts within a job brings. N dense jobs, each with chips
 * and sensors of its own, live ten minutes at 500 W per GPU through control, nodes and plant, with trim and without.
 * Beside it the best trim of the same chips, exactly. Exit 1 when the gains are not what is promised.
 */
#include "cli/world_internal.h"
#include "read_count.h"
#include "sim/sim_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODE_GPUS 8
#define NODES_MOST 8
#define GPUS_MOST (NODES_MOST * NODE_GPUS)
#define CAP_W 500.0
#define FROM_S 60 /* boards begin at 700 W, and nothing rises for the first lease */
#define TO_S 660
#define BISECTIONS 60
#define MODEL 0.001      /* of tokens/s: without trim, equal caps have all of the budget */
#define LEAST_SHARE 0.85 /* of the gain of the best trim */
#define LEAST_GAIN_8 0.018
#define LEAST_GAIN_64 0.03
#define WHOLE 200 /* jobs for which the gains are promised: of fewer the mean may be lower by chance */

struct set_up {
	struct ww_plant_spec plant;
	struct ww_config config;
	struct ww_world_spec world;
	struct ww_sim_node nodes[NODES_MOST];
	struct ww_node_config node_configs[NODES_MOST];
	struct ww_sim_row row;
	struct ww_sim_load loads[NODES_MOST];
	struct ww_row row_config;
	struct ww_sim_job job;
	struct ww_job told;
	uint32_t gpus[GPUS_MOST];
};

/* Of one job: tokens/s and the GPUs' draw, measured; tokens/s by the plant's equations. */
struct result {
	double tps[2], draw_w[2]; /* by enum ww_trim */
	double equal_tps, best_tps;
	double equal_draw_tps; /* of equal caps with the draw of the trimmed job */
};

struct sums {
	uint32_t n, worse;
	double gain, gain2, least, best, equal_draw, model;
};

/* ---- One job ---------------------------------------------------------------------------------------------------------- */

static void set_up_nodes(struct set_up *s, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		s->nodes[i] = (struct ww_sim_node){.n_gpus = NODE_GPUS, .boot_cap_w = (double)NAN};
		s->loads[i] = (struct ww_sim_load){i, 1};
		s->node_configs[i] = (struct ww_node_config){.id = 100 + i,
		                                             .n_gpus = NODE_GPUS,
		                                             .min_w = (float)ww_sim_h200.min_w,
		                                             .max_w = (float)ww_sim_h200.max_w,
		                                             .default_w = (float)ww_sim_h200.default_w,
		                                             .boot_cap_w = NAN,
		                                             .shortest_boot_us = 60 * WW_SECOND_US,
		                                             .n_loads = 1,
		                                             .loads = {{0, 1}}};
		snprintf(s->node_configs[i].name, WW_NAME_MAX, "node-%u", i + 1);
		s->told.places[s->told.n_places++] = (struct ww_place){100 + i, (1u << NODE_GPUS) - 1};
	}
	s->row = (struct ww_sim_row){.loads = s->loads, .n_loads = n};
	s->row_config = (struct ww_row){.id = 1, .name = "site", .limit_w = n * NODE_GPUS * CAP_W};
}

static void set_up_job(struct set_up *s, uint32_t n_gpus, uint64_t seed)
{
	struct ww_rng rng;
	ww_rng_seed(&rng, seed);
	for (uint32_t g = 0; g < n_gpus; g++)
		s->gpus[g] = g;
	s->job = (struct ww_sim_job){.id = 1,
	                             .physics = ww_sim_draw_family(WW_SIM_DENSE_PRETRAIN, &rng),
	                             .n_gpus = n_gpus,
	                             .gpus = s->gpus,
	                             .end_us = WW_NEVER_US};
	s->told.id = 1;
	s->told.weight = 1;
	s->told.has_curve = true; /* any one that reaches as far as the boards do: the job has the budget for itself */
	s->told.curve = (struct ww_curve){
		.p0_w = ww_sim_h200.max_w, .t0_tps = s->job.physics.x1_tps * n_gpus, .max_cut_frac = 0.6, .n = 2};
	s->told.curve.k[0] = (struct ww_knot){0, 0, 0.5};
	s->told.curve.k[1] = (struct ww_knot){0.6, 0.6, 1.5};
	snprintf(s->told.name, sizeof s->told.name, "dense");
}

static void set_up(struct set_up *s, uint32_t n_gpus, uint64_t seed, double gain_sd)
{
	*s = (struct set_up){0};
	set_up_nodes(s, n_gpus / NODE_GPUS);
	set_up_job(s, n_gpus, seed);
	s->plant = (struct ww_plant_spec){.seed = seed,
	                                  .board = ww_sim_h200,
	                                  .n_nodes = n_gpus / NODE_GPUS,
	                                  .n_rows = 1,
	                                  .n_jobs = 1,
	                                  .nodes = s->nodes,
	                                  .rows = &s->row,
	                                  .jobs = &s->job};
	s->plant.board.chip_sd = 0.04;
	s->plant.board.gain_sd = gain_sd;
	s->config = (struct ww_config){.cluster = 1,
	                               .valid_for_us = 15 * WW_SECOND_US,
	                               .settle_us = 3 * WW_SECOND_US,
	                               .n_rows = 1,
	                               .n_nodes = s->plant.n_nodes,
	                               .rows = &s->row_config,
	                               .nodes = s->node_configs};
	s->world = (struct ww_world_spec){.seed = seed,
	                                  .wall_start_us = INT64_C(1700000000) * WW_SECOND_US,
	                                  .period_us = WW_SECOND_US,
	                                  .plant = &s->plant,
	                                  .config = &s->config,
	                                  .jobs = &s->told,
	                                  .wire = {.delay_least_us = 1000, .delay_most_us = 10000}};
}

/* ---- By the equations --------------------------------------------------------------------------------------------------- */

/* Watts of all GPUs at a place of the job's table, by the boards' sensors or in truth; none below the lowest cap. */
static double caps_at(const ww_plant *p, double place)
{
	struct sim_pace pace = sim_table_at(&p->jobs[0].table, place);
	double w = 0;
	for (uint32_t g = 0; g < p->n_gpus; g++) {
		double cap_w = (1 + p->gain[g]) * (pace.base_w + p->chip[g] * pace.chip_w);
		w += cap_w > p->board.max_w ? (double)INFINITY : fmax(cap_w, p->board.min_w);
	}
	return w;
}

static double draw_at(const ww_plant *p, double place)
{
	struct sim_pace pace = sim_table_at(&p->jobs[0].table, place);
	double w = 0;
	for (uint32_t g = 0; g < p->n_gpus; g++)
		w += pace.base_w + p->chip[g] * pace.chip_w;
	return w;
}

/* The place that equal caps allow. */
static double equal_place(const ww_plant *p, double cap_w)
{
	double place = p->jobs[0].table.n - 1;
	for (uint32_t g = 0; g < p->n_gpus; g++)
		place = sim_table_place(&p->jobs[0].table, p->chip[g], cap_w / (1 + p->gain[g]), place);
	return place;
}

static void reckon(const ww_plant *p, struct result *r)
{
	const struct sim_table *table = &p->jobs[0].table;
	double low = 0, high = table->n - 1, low_w = p->board.min_w, high_w = p->board.max_w;
	for (int i = 0; i < BISECTIONS; i++) {
		double mid = (low + high) / 2, mid_w = (low_w + high_w) / 2;
		*(caps_at(p, mid) <= p->n_gpus * CAP_W ? &low : &high) = mid;
		*(draw_at(p, equal_place(p, mid_w)) <= r->draw_w[WW_TRIM_ON] ? &low_w : &high_w) = mid_w;
	}
	r->best_tps = sim_table_at(table, low).tps;
	r->equal_tps = sim_table_at(table, equal_place(p, CAP_W)).tps;
	r->equal_draw_tps = sim_table_at(table, equal_place(p, low_w)).tps;
}

/* ---- Living it ------------------------------------------------------------------------------------------------------------ */

static bool live(struct set_up *s, enum ww_trim trim, struct result *r)
{
	struct ww_world_second second;
	struct ww_error err;
	ww_world *world = NULL;
	s->config.trim = (uint8_t)trim;
	ww_status status = ww_world_create(&s->world, &world, &err);
	for (int t = 0; !status && t < TO_S; t++) {
		status = ww_world_second(world, &second, &err);
		if (status || t < FROM_S)
			continue;
		r->tps[trim] += ww_plant_job_tps(second.plant, 0) / (TO_S - FROM_S);
		r->draw_w[trim] += ww_plant_row_w(second.plant, 0, WW_BOUNDARY_GPU) / (TO_S - FROM_S);
	}
	if (!status && trim == WW_TRIM_ON)
		reckon(second.plant, r);
	if (status)
		fprintf(stderr, "%s\n", err.text);
	struct ww_world_account account = {0};
	if (world)
		account = ww_world_account(world);
	ww_world_destroy(world);
	return !status && account.broken_a + account.broken_b == 0;
}

static void add(struct sums *sums, const struct result *r)
{
	double gain = r->tps[WW_TRIM_ON] / r->tps[WW_TRIM_OFF] - 1;
	sums->n++;
	sums->worse += gain < 0;
	sums->gain += gain;
	sums->gain2 += gain * gain;
	sums->least = fmin(sums->least, gain);
	sums->best += r->best_tps / r->equal_tps - 1;
	sums->equal_draw += r->tps[WW_TRIM_ON] / r->equal_draw_tps - 1;
	sums->model = fmax(sums->model, fabs(r->tps[WW_TRIM_OFF] / r->equal_tps - 1));
}

/* ---- Many ------------------------------------------------------------------------------------------------------------------ */

struct options {
	uint64_t first, count, gpus;
};

static bool judge(const struct sums *s, uint32_t n_gpus, double gain_sd)
{
	double gain = s->gain / s->n, best = s->best / s->n, promised = n_gpus == 8 ? LEAST_GAIN_8 : LEAST_GAIN_64;
	double sd = sqrt(fmax(0, s->gain2 / s->n - gain * gain));
	bool fine =
		s->worse == 0 && s->model <= MODEL && gain >= LEAST_SHARE * best && (s->n < WHOLE || gain >= promised);
	printf("%2u GPUs, %3u jobs, sensor gain %.0f %%: gain %.2f %% (sd %.2f, least %.2f), best %.2f %%, that is "
	       "%.1f %% of it;\n"
	       "   worse than without: %u; at equal draw %+.2f %%; without trim off the equations by %.2f %% at "
	       "most%s\n",
	       n_gpus, s->n, 100 * gain_sd, 100 * gain, 100 * sd, 100 * s->least, 100 * best, 100 * gain / best,
	       s->worse, 100 * s->equal_draw / s->n, 100 * s->model, fine ? "" : "  NOT KEPT");
	fflush(stdout);
	return fine;
}

static bool try_all(const struct options *o, uint32_t n_gpus, double gain_sd)
{
	static struct set_up s;
	struct sums sums = {.least = (double)INFINITY};
	for (uint64_t seed = o->first; seed < o->first + o->count; seed++) {
		struct result r = {0};
		set_up(&s, n_gpus, seed, gain_sd);
		if (!live(&s, WW_TRIM_OFF, &r) || !live(&s, WW_TRIM_ON, &r)) {
			fprintf(stderr, "seed %llu: it could not be lived, or safety was broken\n",
			        (unsigned long long)seed);
			return false;
		}
		add(&sums, &r);
	}
	return judge(&sums, n_gpus, gain_sd);
}

static bool read_options(int argc, char **argv, struct options *o)
{
	for (int i = 1; i < argc; i += 2) {
		uint64_t *to = !strcmp(argv[i], "--seed")    ? &o->first
		               : !strcmp(argv[i], "--count") ? &o->count
		               : !strcmp(argv[i], "--gpus")  ? &o->gpus
		                                             : NULL;
		if (!to || i + 1 == argc || !read_count(argv[i + 1], to))
			return false;
	}
	return o->count > 0 && (o->gpus == 8 || o->gpus == 64);
}

int main(int argc, char **argv)
{
	struct options o = {.first = 1, .count = 12, .gpus = 8};
	if (!read_options(argc, argv, &o)) {
		fprintf(stderr, "usage: trim_jobs [--gpus 8|64] [--count 1..] [--seed FIRST]\n");
		return 2;
	}
	bool fine = try_all(&o, (uint32_t)o.gpus, 0);
	return try_all(&o, (uint32_t)o.gpus, 0.02) && fine ? 0 : 1;
}
