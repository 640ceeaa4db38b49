/* SPDX-License-Identifier: Apache-2.0 */
/* Draws an event day. */
#include "day.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define WALL_START_US (INT64_C(1700000000) * WW_SECOND_US)
#define ROW_ID 0x1000u
#define NODE_ID 0x2000u
#define JOB_ID 0x3000u
#define MINUTE 60
#define BOOT_S 60
#define CURVE_NOISE 0.008
#define PLAN_MARGIN 1.02 /* the power plan's bounds above the truth */

static double between(struct day *d, double lo, double hi)
{
	return lo + (hi - lo) * ww_rng_uniform(&d->rng);
}

static bool chance(struct day *d, double share)
{
	return ww_rng_uniform(&d->rng) < share;
}

static uint32_t whole(struct day *d, uint32_t lo, uint32_t hi)
{
	return lo + ww_rng_below(&d->rng, hi - lo + 1);
}

static int64_t us(uint32_t s)
{
	return s * WW_SECOND_US;
}

uint32_t day_second(int64_t wall_us)
{
	int64_t s = (wall_us - WALL_START_US) / WW_SECOND_US;
	return s < 0 ? 0 : s > DAY_S ? DAY_S : (uint32_t)s;
}

/* ---- Site ------------------------------------------------------------------------------------------------------------- */

static void load(struct day *d, uint32_t node, uint32_t row, float frac)
{
	struct ww_node_config *c = &d->node_configs[node];
	c->loads[c->n_loads++] = (struct ww_row_load){row, frac};
	d->loads[row][d->rows[row].n_loads++] = (struct ww_sim_load){node, (double)frac};
}

static void draw_nodes(struct day *d)
{
	static const float shares[] = {0, 0.5f, 0.5f, 1};
	double boot_cap_w = chance(d, 0.5) ? floor(between(d, 300, 450)) : (double)NAN;
	double follow = between(d, 0.02, 0.05), lag_s = between(d, 10, 60);
	for (uint32_t i = 0; i < DAY_NODES; i++) {
		float share = shares[ww_rng_below(&d->rng, 4)];
		d->nodes[i] = (struct ww_sim_node){.n_gpus = DAY_NODE_GPUS,
		                                   .host_w = between(d, 700, 1500),
		                                   .follow = follow,
		                                   .lag_s = lag_s,
		                                   .boot_cap_w = boot_cap_w};
		d->node_configs[i] = (struct ww_node_config){.id = NODE_ID + i,
		                                             .n_gpus = DAY_NODE_GPUS,
		                                             .min_w = (float)ww_sim_h200.min_w,
		                                             .max_w = (float)ww_sim_h200.max_w,
		                                             .default_w = (float)ww_sim_h200.default_w,
		                                             .boot_cap_w = (float)boot_cap_w,
		                                             .shortest_boot_us = us(BOOT_S)};
		snprintf(d->node_configs[i].name, WW_NAME_MAX, "node-%u", i + 1);
		load(d, i, 0, 1);
		if (share > 0)
			load(d, i, 1, share);
		if (share < 1)
			load(d, i, 2, 1 - share);
	}
}

/* The limits carry every GPU at its highest. */
static void draw_row(struct day *d, uint32_t r, const char *name)
{
	struct ww_sim_row *row = &d->rows[r];
	struct ww_row *c = &d->row_configs[r];
	double hosts_w = 0, gpus_w = 0, follow = PLAN_MARGIN * d->nodes[0].follow;
	for (size_t k = 0; k < row->n_loads; k++) {
		hosts_w += d->loads[r][k].frac * d->nodes[d->loads[r][k].node].host_w;
		gpus_w += d->loads[r][k].frac * DAY_NODE_GPUS * ww_sim_h200.max_w;
	}
	*row = (struct ww_sim_row){.loads = d->loads[r], .n_loads = row->n_loads};
	*c = (struct ww_row){.id = ROW_ID + r, .boundary = WW_BOUNDARY_IT, .guard_frac = 0.005};
	c->fixed_w[WW_BOUNDARY_IT] = PLAN_MARGIN * hosts_w;
	c->follow[WW_BOUNDARY_IT] = follow;
	if (r == 0) {
		row->other_w = between(d, 500, 2000);
		row->cooling = between(d, 0.05, 0.15);
		row->cooling_lag_s = between(d, 60, 300);
		row->meter_noise_frac = between(d, 0.001, 0.004);
		c->has_meter = true;
		c->meter_boundary = c->boundary = WW_BOUNDARY_METER;
	}
	c->fixed_w[WW_BOUNDARY_METER] = PLAN_MARGIN * (hosts_w * (1 + row->cooling) + row->other_w);
	c->follow[WW_BOUNDARY_METER] = (1 + follow) * (1 + PLAN_MARGIN * row->cooling) - 1;
	c->limit_w = 1.05 * (c->fixed_w[c->boundary] + (1 + c->follow[c->boundary]) * gpus_w);
	snprintf(c->name, sizeof c->name, "%s", name);
}

static void draw_site(struct day *d)
{
	static const char *const names[DAY_ROWS] = {"site", "feed-a", "feed-b"};
	d->plant.board = ww_sim_h200;
	d->plant.board.dead_us = 150000;
	d->plant.board.chip_sd = 0.04;
	d->plant.board.gain_sd = 0.02;
	d->plant.board.model_gain_frac = between(d, -0.02, 0.02);
	draw_nodes(d);
	for (uint32_t r = 0; r < DAY_ROWS; r++)
		draw_row(d, r, names[r]);
	d->config = (struct ww_config){.cluster = 77,
	                               .objective = WW_OBJECTIVE_TOKENS,
	                               .valid_for_us = us(15),
	                               .settle_us = us(3),
	                               .n_rows = DAY_ROWS,
	                               .n_nodes = DAY_NODES,
	                               .rows = d->row_configs,
	                               .nodes = d->node_configs};
}

/* ---- Jobs ------------------------------------------------------------------------------------------------------------- */

static void tell_places(struct day *d, uint32_t j)
{
	struct ww_job *told = &d->told[j];
	for (uint32_t i = 0; i < DAY_NODES; i++) {
		uint32_t bits = 0;
		for (uint32_t k = 0; k < d->jobs[j].n_gpus; k++)
			if (d->jobs[j].gpus[k] / DAY_NODE_GPUS == i)
				bits |= 1u << d->jobs[j].gpus[k] % DAY_NODE_GPUS;
		if (bits)
			told->places[told->n_places++] = (struct ww_place){NODE_ID + i, bits};
	}
}

static bool is_not_binding(const struct day *d, uint32_t j)
{
	double share = d->options.not_binding;
	return floor((j + 1) * share + 0.5) > floor(j * share + 0.5);
}

/* It does something else now than when it was rehearsed: 180 to 270 W. */
static void calm_down(struct day *d, uint32_t j)
{
	struct ww_sim_physics *p = &d->jobs[j].physics;
	p->sm = between(d, 0.15, 0.28);
	p->tensor = between(d, 0.005, 0.03);
	p->dram = between(d, 0.1, 0.25);
	p->nvlink = between(d, 0, 0.1);
}

static void draw_job(struct day *d, uint32_t first, uint32_t n)
{
	static const double least[] = {0.8, 0.7, 0.5, 0}, most[] = {0.9, 0.8, 0.7, 0.5};
	uint32_t j = d->plant.n_jobs++;
	struct ww_sim_job *job = &d->jobs[j];
	struct ww_job *told = &d->told[j];
	*job = (struct ww_sim_job){
		.id = JOB_ID + j,
		.physics = ww_sim_draw_family((enum ww_sim_family)ww_rng_below(&d->rng, WW_N_SIM_FAMILIES), &d->rng),
		.n_gpus = n,
		.gpus = d->gpus + first,
		.end_us = WW_NEVER_US,
		.jitter_frac = between(d, 0, 0.015)};
	if (chance(d, 0.6)) {
		job->checkpoint.every_us = us(whole(d, 15 * MINUTE, 40 * MINUTE));
		job->checkpoint.for_us = us(whole(d, 20, 60));
		job->checkpoint.first_us = us(whole(d, 60, 15 * MINUTE));
		job->checkpoint.power_w = between(d, 100, 150);
	}
	told->id = job->id;
	snprintf(told->name, sizeof told->name, "job-%u", j + 1);
	told->tier = (int32_t)ww_rng_below(&d->rng, 4);
	told->floor_frac = (1 - 0.8 * d->options.not_binding) * between(d, least[told->tier], most[told->tier]);
	told->weight = 1;
	tell_places(d, j);
}

static uint32_t draw_size(struct day *d)
{
	double kind = ww_rng_uniform(&d->rng);
	return kind < 0.15 ? whole(d, 1, 3) : kind < 0.4 ? 4 : kind < 0.75 ? 8 : whole(d, 9, 16);
}

static void draw_jobs(struct day *d)
{
	uint32_t next = 0, busy = DAY_GPUS - (chance(d, 0.3) ? whole(d, 1, 4) : 0);
	for (uint32_t g = 0; g < DAY_GPUS; g++)
		d->gpus[g] = g;
	d->scattered = chance(d, 0.3);
	for (int i = 0; i < DAY_NODES && d->scattered; i++) {
		uint32_t a = ww_rng_below(&d->rng, DAY_GPUS), b = ww_rng_below(&d->rng, DAY_GPUS), was = d->gpus[a];
		d->gpus[a] = d->gpus[b];
		d->gpus[b] = was;
	}
	while (next < busy) {
		uint32_t n = draw_size(d);
		n = n < busy - next ? n : busy - next;
		draw_job(d, next, n);
		next += n;
	}
	d->n_idle = DAY_GPUS - busy;
}

/* A rehearsal at two cuts: as for a scenario's fitted curves. */
static void learn_job(struct day *d, const ww_plant *plant, uint32_t j)
{
	static const double cuts[] = {0.2, 0.5};
	struct ww_curve truth;
	struct ww_fit_point points[2];
	double power_w, free_w = ww_plant_free_cap_w(plant, j), last_w = free_w;
	size_t n = 0;
	if (ww_plant_curve(plant, j, true, &truth, NULL))
		return;
	double t0_tps = truth.t0_tps * (1 + CURVE_NOISE * ww_rng_normal(&d->rng));
	for (size_t i = 0; i < 2; i++) {
		double cap_w = fmax(free_w * (1 - cuts[i]), d->plant.board.min_w), tps;
		double noise = CURVE_NOISE * ww_rng_normal(&d->rng);
		if (cap_w >= last_w)
			break;
		ww_plant_try(plant, j, cap_w, &power_w, &tps);
		points[n++] = (struct ww_fit_point){1 - power_w / truth.p0_w, 1 - tps * (1 + noise) / t0_tps};
		last_w = cap_w;
	}
	const struct ww_fit what = {points, n, CURVE_NOISE, .p0_w = truth.p0_w, .t0_tps = t0_tps};
	d->told[j].has_curve = n > 0 && ww_curve_fit(&what, &d->told[j].curve, NULL) == WW_OK;
}

static ww_status learn(struct day *d, struct ww_error *err)
{
	ww_plant *plant;
	ww_status status = ww_plant_create(&d->plant, &plant, err);
	if (status)
		return status;
	for (uint32_t j = 0; j < d->plant.n_jobs; j++)
		learn_job(d, plant, j);
	ww_plant_destroy(plant);
	for (uint32_t j = 0; j < d->plant.n_jobs; j++)
		if (is_not_binding(d, j))
			calm_down(d, j);
	status = ww_plant_create(&d->plant, &plant, err);
	if (status)
		return status;
	for (uint32_t j = 0; j < d->plant.n_jobs; j++) {
		double power_w;
		ww_plant_try(plant, j, d->plant.board.max_w, &power_w, &d->free_tps[j]);
	}
	ww_plant_destroy(plant);
	return WW_OK;
}

/* ---- Events ----------------------------------------------------------------------------------------------------------- */

static struct ww_event *announce(struct day *d, uint32_t at_s, const struct ww_event *event)
{
	struct ww_announcement *a = &d->announcements[d->world.n_announcements++];
	*a = (struct ww_announcement){us(at_s), *event};
	d->n_events = (uint32_t)event->id;
	return &a->event;
}

static void draw_ramps(struct day *d, struct ww_event *e)
{
	if (chance(d, 0.5)) {
		e->ramp_down_us = us(whole(d, 2 * MINUTE, 10 * MINUTE));
		e->ramp_up_us = us(whole(d, 5 * MINUTE, 15 * MINUTE));
	}
}

/* Before or during the event its cut, and perhaps its end, becomes another one. */
static void draw_change(struct day *d, struct ww_event e, uint32_t at_s)
{
	uint32_t start = day_second(e.start_us), end = day_second(e.end_us), half = start + (end - start) / 2;
	at_s = whole(d, at_s + MINUTE, half);
	e.version = 2;
	e.cut_frac = fmin(fmax(e.cut_frac + between(d, -0.06, 0.06), 0.12), 0.33);
	if (chance(d, 0.5))
		e.end_us = WALL_START_US + us(whole(d, half + 10 * MINUTE, end + 15 * MINUTE));
	announce(d, at_s, &e);
}

/* A deeper one within the first, or beyond its end. */
static void draw_second(struct day *d, struct ww_event e, uint32_t at_s)
{
	uint32_t start = whole(d, day_second(e.start_us) + 15 * MINUTE, day_second(e.end_us) - 15 * MINUTE);
	e.id = 2;
	e.start_us = WALL_START_US + us(start);
	e.end_us = e.start_us + us(whole(d, 30 * MINUTE, 90 * MINUTE));
	e.cut_frac = fmin(e.cut_frac + between(d, 0.03, 0.08), 0.35);
	e.ramp_down_us = e.ramp_up_us = 0;
	draw_ramps(d, &e);
	announce(d, at_s, &e);
}

static void draw_events(struct day *d)
{
	uint32_t start = whole(d, 75 * MINUTE, 120 * MINUTE);
	uint32_t at_s = start - (chance(d, 0.15) ? 0 : whole(d, 0, 60 * MINUTE));
	struct ww_event e = {.id = 1,
	                     .version = 1,
	                     .row = ROW_ID,
	                     .boundary = WW_BOUNDARY_METER,
	                     .start_us = WALL_START_US + us(start),
	                     .end_us = WALL_START_US + us(start + whole(d, 60 * MINUTE, 180 * MINUTE)),
	                     .limit_w = NAN,
	                     .cut_frac = between(d, 0.15, 0.30)};
	draw_ramps(d, &e);
	announce(d, at_s, &e);
	double more = ww_rng_uniform(&d->rng);
	if (more < 0.2)
		draw_change(d, e, at_s);
	else if (more < 0.4)
		draw_second(d, e, at_s);
}

/* ---- Faults ----------------------------------------------------------------------------------------------------------- */

static void add_fault(struct day *d, struct ww_fault fault)
{
	if (!d->options.calm)
		d->faults[d->world.n_faults++] = fault;
}

static void draw_faults(struct day *d, uint32_t from, uint32_t to)
{
	for (int i = 0; i < 2; i++) {
		int64_t at_us = us(whole(d, from, to));
		add_fault(d, (struct ww_fault){.kind = WW_FAULT_REBOOT,
		                               .at_us = at_us,
		                               .until_us = at_us + us(whole(d, BOOT_S, 4 * MINUTE)),
		                               .node = ww_rng_below(&d->rng, DAY_NODES)});
	}
	for (int i = 0; i < 4; i++) {
		int64_t at_us = (int64_t)between(d, 1e6 * from, 1e6 * to);
		add_fault(d, (struct ww_fault){.kind = WW_FAULT_AGENT_CRASH,
		                               .at_us = at_us,
		                               .until_us = at_us + us(whole(d, 2, 30)),
		                               .node = ww_rng_below(&d->rng, DAY_NODES)});
	}
	for (int i = 0; i < 6; i++)
		add_fault(d, (struct ww_fault){.kind = WW_FAULT_FOREIGN,
		                               .at_us = (int64_t)between(d, 1e6 * from, 1e6 * to),
		                               .node = ww_rng_below(&d->rng, DAY_NODES),
		                               .gpu = ww_rng_below(&d->rng, DAY_NODE_GPUS),
		                               .value_w = i % 2 ? between(d, 600, 700) : between(d, 200, 400)});
	for (int i = 0; i < 3; i++) {
		int64_t at_us = us(whole(d, from, to));
		add_fault(d, (struct ww_fault){
				     .kind = WW_FAULT_METER, .at_us = at_us, .until_us = at_us + us(30), .node = 0});
	}
}

static void draw_all_faults(struct day *d)
{
	for (size_t i = 0; i < d->world.n_announcements; i++) {
		const struct ww_event *e = &d->announcements[i].event;
		bool last = i + 1 == d->world.n_announcements || d->announcements[i + 1].event.id != e->id;
		if (last)
			draw_faults(d, day_second(e->start_us), day_second(e->end_us));
	}
}

ww_status day_draw(struct day *d, uint64_t seed, const struct day_options *options, struct ww_error *err)
{
	memset(d, 0, sizeof *d);
	ww_rng_seed(&d->rng, seed);
	d->seed = seed;
	d->options = *options;
	draw_site(d);
	draw_jobs(d);
	draw_events(d);
	draw_all_faults(d);
	d->plant.seed = seed;
	d->plant.n_nodes = DAY_NODES;
	d->plant.n_rows = DAY_ROWS;
	d->plant.nodes = d->nodes;
	d->plant.rows = d->rows;
	d->plant.jobs = d->jobs;
	d->world.seed = seed;
	d->world.wall_start_us = WALL_START_US;
	d->world.period_us = WW_SECOND_US;
	d->world.reassert_lower = true; /* floors are promised whatever others write */
	d->world.plant = &d->plant;
	d->world.config = &d->config;
	d->world.jobs = d->told;
	d->world.announcements = d->announcements;
	d->world.faults = d->faults;
	d->world.wire = (struct ww_wire_faults){
		.loss_frac = options->calm ? 0 : 0.05, .delay_least_us = 1000, .delay_most_us = 40000};
	return learn(d, err);
}
