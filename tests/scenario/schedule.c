/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define WALL_START_US INT64_C(1700000000000000)
#define ROW_ID 0x1000u
#define NODE_ID 0x2000u
#define JOB_ID 0x3000u

static double between(struct schedule *s, double lo, double hi)
{
	return lo + (hi - lo) * ww_rng_uniform(&s->rng);
}

static bool chance(struct schedule *s, double share)
{
	return ww_rng_uniform(&s->rng) < share;
}

/* Whole milliseconds. */
static int64_t seconds(struct schedule *s, double lo, double hi)
{
	return (int64_t)(between(s, lo, hi) * 1000) * 1000;
}

static uint32_t below(struct schedule *s, uint32_t bound)
{
	return ww_rng_below(&s->rng, bound);
}

/* ---- Nodes and rows ------------------------------------------------------------------------------------------------- */

static void draw_node(struct schedule *s, uint32_t i)
{
	const struct ww_sim_board *board = &s->plant.board;
	bool has_unit = chance(s, 0.4);
	s->nodes[i] = (struct ww_sim_node){.n_gpus = 1 + below(s, SCHEDULE_NODE_GPUS),
	                                   .host_w = between(s, 50, 400),
	                                   .follow = between(s, 0, 0.1),
	                                   .lag_s = between(s, 1, 10),
	                                   .boot_cap_w = has_unit ? between(s, board->min_w, board->max_w) : NAN};
	struct ww_node_config *c = &s->node_configs[i];
	*c = (struct ww_node_config){.id = NODE_ID + i,
	                             .n_gpus = s->nodes[i].n_gpus,
	                             .min_w = (float)board->min_w,
	                             .max_w = (float)board->max_w,
	                             .default_w = (float)board->default_w,
	                             .boot_cap_w = (float)s->nodes[i].boot_cap_w,
	                             .shortest_boot_us = seconds(s, 40, 90)};
	s->nodes[i].boot_cap_w = (double)c->boot_cap_w;
	snprintf(c->name, sizeof c->name, "node-%u", i);
}

static uint32_t add_row(struct schedule *s, const char *name)
{
	uint32_t r = s->plant.n_rows++;
	s->rows[r] = (struct ww_sim_row){.loads = s->loads[r]};
	s->row_configs[r] = (struct ww_row){.id = ROW_ID + r, .limit_w = INFINITY};
	snprintf(s->row_configs[r].name, sizeof s->row_configs[r].name, "%s", name);
	return r;
}

static void load(struct schedule *s, uint32_t node, uint32_t row, float frac)
{
	struct ww_node_config *c = &s->node_configs[node];
	c->loads[c->n_loads++] = (struct ww_row_load){row, frac};
	s->loads[row][s->rows[row].n_loads++] = (struct ww_sim_load){node, (double)frac};
}

static void draw_racks(struct schedule *s)
{
	static const char *const names[] = {"rack-0", "rack-1", "rack-2"};
	uint32_t n = chance(s, 0.5) ? 2 : 3, first = s->plant.n_rows;
	for (uint32_t k = 0; k < n; k++)
		add_row(s, names[k]);
	for (uint32_t i = 0; i < s->plant.n_nodes; i++)
		load(s, i, first + (i < n ? i : below(s, n)), 1);
}

static void draw_feeds(struct schedule *s)
{
	static const float shares[] = {0.5f, 0.5f, 0.3f, 0.9f, 1};
	uint32_t a = add_row(s, "feed-a"), b = add_row(s, "feed-b");
	for (uint32_t i = 0; i < s->plant.n_nodes; i++) {
		float share = shares[below(s, 5)];
		load(s, i, a, share);
		if (share < 1)
			load(s, i, b, 1 - share);
	}
}

/* Most power that the row's GPUs can be allowed, without the rest. */
static double most_w(const struct schedule *s, uint32_t r)
{
	double sum = 0;
	for (size_t k = 0; k < s->rows[r].n_loads; k++)
		sum += s->rows[r].loads[k].frac * s->nodes[s->rows[r].loads[k].node].n_gpus;
	return sum * s->plant.board.max_w;
}

/* What is at a boundary when the row's GPUs draw a part of that. */
static double power_at(const struct schedule *s, uint32_t r, int boundary, double part)
{
	const struct ww_row *c = &s->row_configs[r];
	return c->fixed_w[boundary] + (1 + c->follow[boundary]) * part * most_w(s, r);
}

static void draw_row(struct schedule *s, uint32_t r)
{
	struct ww_sim_row *row = &s->rows[r];
	struct ww_row *c = &s->row_configs[r];
	double hosts_w = 0, follow = 0;
	for (size_t k = 0; k < row->n_loads; k++) {
		const struct ww_sim_node *node = &s->nodes[row->loads[k].node];
		hosts_w += row->loads[k].frac * node->host_w;
		follow = fmax(follow, node->follow);
	}
	row->other_w = between(s, 0, 300);
	row->cooling = between(s, 0, 0.3);
	row->cooling_lag_s = between(s, 5, 60);
	row->meter_noise_frac = between(s, 0, 0.01);
	c->fixed_w[WW_BOUNDARY_IT] = 1.02 * hosts_w;
	c->follow[WW_BOUNDARY_IT] = 1.02 * follow;
	c->fixed_w[WW_BOUNDARY_METER] = 1.02 * (hosts_w * (1 + row->cooling) + row->other_w);
	c->follow[WW_BOUNDARY_METER] = (1 + 1.02 * follow) * (1 + 1.02 * row->cooling) - 1;
	c->has_meter = chance(s, 0.5);
	/* Sensors that show too little are for the guard: they err by three of their gain's deviations at most. */
	c->guard_frac = between(s, 0, 0.04) + 3 * s->plant.board.gain_sd + (c->has_meter ? row->meter_noise_frac : 0);
	c->meter_boundary = chance(s, 0.7) ? WW_BOUNDARY_METER : WW_BOUNDARY_IT;
	c->boundary = (uint8_t)below(s, WW_N_BOUNDARIES);
	if (row->n_loads > 0 && chance(s, 0.5))
		c->limit_w = power_at(s, r, c->boundary, between(s, 0.4, 1.1));
}

static void draw_cluster(struct schedule *s)
{
	s->plant.board = ww_sim_h200;
	s->plant.board.gain_sd = chance(s, 0.5) ? 0 : 0.01;
	s->plant.n_nodes = 2 + below(s, SCHEDULE_NODES - 1);
	for (uint32_t i = 0; i < s->plant.n_nodes; i++)
		draw_node(s, i);
	uint32_t kind = below(s, 4), site = add_row(s, "site");
	for (uint32_t i = 0; i < s->plant.n_nodes; i++)
		load(s, i, site, 1);
	if (kind & 1)
		draw_racks(s);
	if (kind & 2)
		draw_feeds(s);
	for (uint32_t r = 0; r < s->plant.n_rows; r++)
		draw_row(s, r);
	enum ww_trim trim = chance(s, 0.85) ? WW_TRIM_ON : WW_TRIM_OFF;
	enum ww_after after = chance(s, 0.5) ? WW_AFTER_HOLD : chance(s, 0.6) ? WW_AFTER_FAILCAP : WW_AFTER_RESTORE;
	s->config = (struct ww_config){.cluster = 77,
	                               .objective = below(s, 4),
	                               .valid_for_us = seconds(s, 10, 60),
	                               .settle_us = seconds(s, 1, 5),
	                               .after = (uint8_t)after,
	                               .trim = (uint8_t)trim,
	                               .n_rows = s->plant.n_rows,
	                               .n_nodes = s->plant.n_nodes,
	                               .rows = s->row_configs,
	                               .nodes = s->node_configs};
	s->plant.nodes = s->nodes;
	s->plant.rows = s->rows;
	/* Restoring alone is allowed only where every row can carry it. */
	for (uint32_t r = 0; after == WW_AFTER_RESTORE && r < s->plant.n_rows; r++)
		s->row_configs[r].limit_w = INFINITY;
}

/* ---- Jobs ------------------------------------------------------------------------------------------------------------- */

static void draw_curve(struct schedule *s, struct ww_curve *c)
{
	double slope = between(s, 0.05, 1), rise = between(s, 0.1, 3), cut = between(s, 0.2, 0.7);
	*c = (struct ww_curve){.p0_w = between(s, 300, 700),
	                       .t0_tps = between(s, 1000, 20000),
	                       .max_cut_frac = cut,
	                       .var_a = 1e-4,
	                       .var_b = 1e-4,
	                       .n = 2,
	                       .status = WW_PFI_OK};
	c->k[0] = (struct ww_knot){0, 0, slope};
	c->k[1] = (struct ww_knot){cut, cut * (slope + rise / 2), slope + rise};
}

static void tell_places(struct schedule *s, uint32_t j)
{
	struct ww_job *told = &s->told[j];
	told->n_places = 0;
	for (uint32_t i = 0, first = 0; i < s->plant.n_nodes; first += s->nodes[i++].n_gpus) {
		uint32_t bits = 0;
		for (uint32_t k = 0; k < s->jobs[j].n_gpus; k++)
			if (s->gpus[j][k] >= first && s->gpus[j][k] < first + s->nodes[i].n_gpus)
				bits |= 1u << (s->gpus[j][k] - first);
		if (bits)
			told->places[told->n_places++] = (struct ww_place){NODE_ID + i, bits};
	}
}

static void draw_job(struct schedule *s, const uint32_t *gpus, uint32_t n, int64_t earliest_us)
{
	static const double floors[] = {1, 0.9, 0.75, 0.5};
	uint32_t j = s->plant.n_jobs++;
	struct ww_sim_job *job = &s->jobs[j];
	memcpy(s->gpus[j], gpus, n * sizeof *gpus);
	*job = (struct ww_sim_job){.id = JOB_ID + j,
	                           .physics =
	                                   ww_sim_draw_family((enum ww_sim_family)below(s, WW_N_SIM_FAMILIES), &s->rng),
	                           .n_gpus = n,
	                           .gpus = s->gpus[j],
	                           .jitter_frac = between(s, 0, 0.02)};
	job->start_us = earliest_us + (earliest_us || chance(s, 0.4) ? seconds(s, 1, 200) : 0);
	job->end_us = chance(s, 0.5) ? WW_NEVER_US : job->start_us + seconds(s, 20, 300);
	if (chance(s, 0.3))
		job->checkpoint =
			(struct ww_sim_pause){seconds(s, 60, 120), seconds(s, 5, 20), seconds(s, 10, 100), 120};
	struct ww_job *told = &s->told[j];
	told->id = job->id;
	snprintf(told->name, sizeof told->name, "job-%u", j);
	told->tier = (int32_t)below(s, 4);
	told->floor_frac = floors[told->tier];
	told->weight = between(s, 0.5, 2);
	told->has_curve = chance(s, 0.5);
	if (told->has_curve)
		draw_curve(s, &told->curve);
	tell_places(s, j);
}

static void draw_jobs(struct schedule *s)
{
	uint32_t gpus[SCHEDULE_GPUS], n = 0, next = 0;
	for (uint32_t i = 0; i < s->plant.n_nodes; i++)
		n += s->nodes[i].n_gpus;
	for (uint32_t g = 0; g < n; g++)
		gpus[g] = g;
	for (uint32_t g = n; g > 1 && n % 2; g--) {
		uint32_t other = below(s, g), last = gpus[g - 1];
		gpus[g - 1] = gpus[other];
		gpus[other] = last;
	}
	uint32_t jobs = 1 + below(s, SCHEDULE_JOBS - 1);
	for (uint32_t j = 0; j < jobs && next < n; j++) {
		uint32_t size = j + 1 == jobs && chance(s, 0.5) ? n - next : 1 + below(s, n - next);
		draw_job(s, gpus + next, size, 0);
		next += size;
	}
	/* The GPUs of a job that ended get another one. */
	const struct ww_sim_job *first = &s->jobs[0];
	if (first->end_us != WW_NEVER_US && s->plant.n_jobs < SCHEDULE_JOBS)
		draw_job(s, first->gpus, first->n_gpus, first->end_us);
	s->plant.jobs = s->jobs;
}

/* ---- Budgets ---------------------------------------------------------------------------------------------------------- */

static void draw_limit(struct schedule *s, struct ww_event *e)
{
	e->limit_w = power_at(s, (uint32_t)(e->row - ROW_ID), e->boundary, between(s, 0.25, 1));
	e->cut_frac = NAN;
	if (chance(s, 0.2)) {
		e->limit_w = NAN;
		e->cut_frac = between(s, 0, 0.5);
	}
}

static void draw_times(struct schedule *s, struct ww_event *e, int64_t from_us)
{
	int64_t ahead_us = chance(s, 0.3) ? 0 : chance(s, 0.1) ? -seconds(s, 0, 30) : seconds(s, 1, 120);
	e->start_us = WALL_START_US + from_us + ahead_us;
	e->end_us = chance(s, 0.1) ? WW_NEVER_US : e->start_us + seconds(s, 20, 200);
	e->ramp_down_us = chance(s, 0.5) ? 0 : seconds(s, 1, 60);
	e->ramp_up_us = chance(s, 0.5) ? 0 : seconds(s, 1, 60);
}

/* An event and what becomes of it. */
static void draw_event(struct schedule *s, uint64_t id)
{
	int64_t at_us = seconds(s, 2, 300);
	struct ww_event e = {.id = id,
	                     .version = 1,
	                     .row = ROW_ID + below(s, s->plant.n_rows),
	                     .boundary = (uint8_t)below(s, WW_N_BOUNDARIES),
	                     .cls = chance(s, 0.4) ? WW_CLASS_PROTECTION : WW_CLASS_CONTRACT};
	draw_limit(s, &e);
	draw_times(s, &e, at_us);
	for (;;) {
		if (s->world.n_announcements == SCHEDULE_ANNOUNCEMENTS)
			return;
		s->announcements[s->world.n_announcements++] = (struct ww_announcement){at_us, e};
		if (e.cancelled || chance(s, 0.6))
			return;
		at_us += seconds(s, 1, 120);
		e.version++;
		e.cancelled = chance(s, 0.4);
		if (chance(s, 0.7))
			draw_limit(s, &e);
		if (chance(s, 0.4))
			draw_times(s, &e, at_us);
	}
}

/* ---- Faults ----------------------------------------------------------------------------------------------------------- */

/* Half of them come soon after the one before, often where that was: what goes wrong together finds more. */
static void draw_fault(struct schedule *s, struct ww_fault *f, const struct ww_fault *before)
{
	int64_t latest_us = s->length_us - 20 * WW_SECOND_US;
	f->kind = (enum ww_fault_kind)below(s, WW_N_FAULT_KINDS);
	f->at_us = seconds(s, 3, (double)latest_us / 1e6);
	if (before && chance(s, 0.5))
		f->at_us = before->at_us + seconds(s, 0, 15);
	f->at_us = f->at_us < latest_us ? f->at_us : latest_us;
	f->node = below(s, ww_fault_is_of_row(f->kind) ? s->plant.n_rows : s->plant.n_nodes);
	if (before && !ww_fault_is_of_row(before->kind) && !ww_fault_is_of_row(f->kind) && chance(s, 0.4))
		f->node = before->node;
	f->until_us = f->at_us + (chance(s, 0.3) ? seconds(s, 0.5, 3) : seconds(s, 1, 70));
	if (f->kind == WW_FAULT_REBOOT)
		f->until_us =
			f->at_us + s->node_configs[f->node].shortest_boot_us + seconds(s, 0, chance(s, 0.5) ? 2 : 60);
	f->late_s = f->kind == WW_FAULT_METER_LATE ? 1 + below(s, chance(s, 0.5) ? 3 : WW_METER_LATE_S) : 0;
	if (f->kind == WW_FAULT_FOREIGN || f->kind == WW_FAULT_HUNG_GPU) {
		f->gpu = below(s, s->nodes[f->node].n_gpus);
		f->value_w = between(s, s->plant.board.min_w, s->plant.board.max_w);
	}
}

/* Somebody who does not give in: until the agent lets go of the GPU. */
static void draw_fight(struct schedule *s)
{
	struct ww_fault f = {.kind = WW_FAULT_FOREIGN, .at_us = seconds(s, 3, 150), .node = below(s, s->plant.n_nodes)};
	f.gpu = below(s, s->nodes[f.node].n_gpus);
	for (int i = 0; i < 5 && s->world.n_faults < SCHEDULE_FAULTS; i++) {
		f.value_w = between(s, 500, s->plant.board.max_w);
		s->faults[s->world.n_faults++] = f;
		f.at_us += seconds(s, 2, 30);
	}
}

/* The node of the last fault is cut off for long, and another controller takes over. */
static void draw_loss(struct schedule *s)
{
	struct ww_fault cut = s->faults[s->world.n_faults - 1], lead = {.kind = WW_FAULT_CONTROLLER_CRASH};
	if (s->world.n_faults + 2 > SCHEDULE_FAULTS)
		return;
	cut.kind = WW_FAULT_CUT;
	cut.at_us += seconds(s, 0, 20);
	cut.until_us = cut.at_us + seconds(s, 20, 200);
	lead.kind = chance(s, 0.5) ? WW_FAULT_CONTROLLER_CRASH : WW_FAULT_CONTROLLER_ZOMBIE;
	lead.at_us = cut.at_us + seconds(s, 0, 20);
	lead.until_us = lead.at_us + seconds(s, 0, 20);
	s->faults[s->world.n_faults++] = cut;
	s->faults[s->world.n_faults++] = lead;
}

static void draw_faults(struct schedule *s)
{
	uint32_t n = below(s, SCHEDULE_FAULTS + 1);
	if (chance(s, 0.15))
		draw_fight(s);
	if (s->world.n_faults > 0 && chance(s, 0.5))
		draw_loss(s);
	for (uint32_t i = (uint32_t)s->world.n_faults; i < n; i++) {
		draw_fault(s, &s->faults[i], i ? &s->faults[i - 1] : NULL);
		s->world.n_faults++;
	}
}

static void draw_wire(struct schedule *s)
{
	struct ww_wire_faults *f = &s->world.wire;
	bool bad = chance(s, 0.6);
	f->loss_frac = bad ? between(s, 0, 0.2) : 0;
	f->double_frac = bad ? between(s, 0, 0.1) : 0;
	f->delay_least_us = seconds(s, 0.001, 0.02);
	f->delay_most_us = f->delay_least_us + (chance(s, 0.5) ? seconds(s, 0, 2) : seconds(s, 0, 0.05));
	f->late_frac = chance(s, 0.5) ? between(s, 0, 0.02) : 0;
	f->late_most_us = seconds(s, 1, 30);
}

/* People freeze, disengage, and enforce again. */
static void draw_modes(struct schedule *s)
{
	if (!chance(s, 0.25))
		return;
	s->world.n_modes = 1 + below(s, SCHEDULE_MODES);
	int64_t at_us = seconds(s, 10, 200);
	for (size_t i = 0; i < s->world.n_modes; i++) {
		s->modes[i] = (struct ww_mode_change){at_us, (enum ww_mode)below(s, WW_N_MODES)};
		at_us += seconds(s, 5, 120);
	}
}

void schedule_draw(struct schedule *s, uint64_t seed)
{
	memset(s, 0, sizeof *s);
	ww_rng_seed(&s->rng, seed);
	s->length_us = (int64_t)(300 + below(s, 301)) * WW_SECOND_US;
	draw_cluster(s);
	draw_jobs(s);
	uint32_t events = below(s, 5);
	for (uint32_t e = 0; e < events; e++)
		draw_event(s, 1 + e);
	draw_faults(s);
	draw_wire(s);
	s->plant.seed = seed;
	s->world.seed = seed;
	s->world.wall_start_us = WALL_START_US;
	s->world.period_us = (chance(s, 0.8) ? 1 : 2) * WW_SECOND_US;
	s->world.wall_off_us = chance(s, 0.7) ? 0 : seconds(s, 1, 1000);
	s->world.division = chance(s, 0.8) ? WW_DIVISION_AUTO : WW_DIVISION_EQUAL;
	draw_modes(s);
	s->world.plant = &s->plant;
	s->world.config = &s->config;
	s->world.jobs = s->told;
	s->world.announcements = s->announcements;
	s->world.faults = s->faults;
	s->world.modes = s->modes;
}
