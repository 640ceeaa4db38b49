/* SPDX-License-Identifier: Apache-2.0 */
/* The most tokens that a day's budget allows, on the true chips and tables. */
#include "day.h"
#include "sim/sim_internal.h"

#include <math.h>
#include <stdlib.h>

#define KNOTS_MOST 256
#define BISECTIONS 60
#define PHASES_MOST 8
#define TIERS 4

/* What a job can do in a steady state, from its deepest cap to no cap: watts of its GPUs and tokens/s. Both rise; between
 * points both are linear. */
struct menu {
	uint32_t n;
	double w[KNOTS_MOST], tps[KNOTS_MOST];
};

struct phase {
	double level_w;
	uint32_t seconds, ran_s[DAY_JOBS];
	double power_w, pauses_w;                  /* sums over its seconds */
	double tokens[DAY_JOBS], watt_s[DAY_JOBS]; /* while it ran */
};

struct finder {
	const struct day *day;
	const ww_plant *plant;
	struct menu menus[DAY_JOBS];
	double best_w[DAY_JOBS]; /* of the last solution */
	struct phase phases[PHASES_MOST];
	uint32_t n_phases;
};

/* ---- Menus ------------------------------------------------------------------------------------------------------------ */

/* Where a job runs with all GPUs at one cap. */
static double place_at(const ww_plant *p, const struct sim_job *job, double cap_w)
{
	double place = job->table.n - 1;
	for (uint32_t i = 0; i < job->n; i++) {
		uint32_t g = p->job_gpus[job->first + i];
		place = sim_table_place(&job->table, p->chip[g], cap_w / (1 + p->gain[g]), place);
	}
	return place;
}

static void add_to_menu(const ww_plant *p, const struct sim_job *job, double place, struct menu *menu)
{
	struct sim_pace pace = sim_table_at(&job->table, place);
	double w = 0;
	for (uint32_t i = 0; i < job->n; i++)
		w += pace.base_w + p->chip[p->job_gpus[job->first + i]] * pace.chip_w;
	menu->w[menu->n] = w;
	menu->tps[menu->n++] = pace.tps;
}

static void fill_menu(const ww_plant *p, const struct sim_job *job, struct menu *menu)
{
	double least = place_at(p, job, p->board.min_w), most = place_at(p, job, p->board.max_w);
	menu->n = 0;
	add_to_menu(p, job, least, menu);
	for (uint32_t k = (uint32_t)least + 1; k < most; k++)
		add_to_menu(p, job, k, menu);
	add_to_menu(p, job, most, menu);
}

static double between(const double *x, const double *y, uint32_t n, double at)
{
	uint32_t i = 1;
	if (at <= x[0])
		return y[0];
	while (i + 1 < n && x[i] < at)
		i++;
	return x[i] > x[i - 1] ? y[i - 1] + (y[i] - y[i - 1]) * fmin(1, (at - x[i - 1]) / (x[i] - x[i - 1])) : y[i];
}

/* ---- One phase -------------------------------------------------------------------------------------------------------- */

/* True watts that all jobs may draw together when the meter is steady at `meter_w`. */
static double gpus_at(const struct finder *f, double meter_w)
{
	const struct day *day = f->day;
	double w = (meter_w - day->rows[0].other_w) / (1 + day->rows[0].cooling);
	for (uint32_t i = 0; i < DAY_NODES; i++)
		w -= day->nodes[i].host_w;
	return w / (1 + day->nodes[0].follow) - day->n_idle * day->plant.board.idle_w;
}

static double floor_of(const struct day *day, uint32_t j, int tiers)
{
	return day->told[j].tier < tiers ? day->told[j].floor_frac * day->free_tps[j] : 0;
}

/* The most of u T - price W, and its W. */
static double answer(const struct menu *menu, double uptime, double price, double floor_tps, double *w)
{
	double best = -(double)INFINITY, floor_w = between(menu->tps, menu->w, menu->n, floor_tps);
	for (uint32_t k = 0; k < menu->n; k++) {
		bool above = menu->tps[k] >= floor_tps;
		double tps = above ? menu->tps[k] : floor_tps, at_w = above ? menu->w[k] : floor_w;
		double value = uptime * tps - price * at_w;
		if (value > best) {
			best = value;
			*w = at_w;
		}
	}
	return best;
}

/* Tokens/s of a phase at its optimum, with the floors of so many tiers. */
static double solve(struct finder *f, const struct phase *phase, double budget_w, int tiers)
{
	double low = 0, high = 1e4, least = (double)INFINITY;
	for (int i = 0; i < BISECTIONS; i++) {
		double price = i ? (low + high) / 2 : 0, used_w = 0, value = price * budget_w;
		for (uint32_t j = 0; j < f->day->plant.n_jobs; j++) {
			double floor_tps = floor_of(f->day, j, tiers);
			double uptime = (double)phase->ran_s[j] / phase->seconds;
			value += answer(&f->menus[j], uptime, price, floor_tps, &f->best_w[j]);
			used_w += f->best_w[j];
		}
		least = fmin(least, value);
		if (i)
			*(used_w > budget_w ? &low : &high) = price;
	}
	return least;
}

static double floors_need_w(const struct finder *f, int tiers)
{
	double w = 0;
	for (uint32_t j = 0; j < f->day->plant.n_jobs; j++) {
		const struct menu *m = &f->menus[j];
		w += between(m->tps, m->w, m->n, floor_of(f->day, j, tiers));
	}
	return w;
}

/* ---- The day ---------------------------------------------------------------------------------------------------------- */

static struct phase *phase_of(struct finder *f, double level_w)
{
	for (uint32_t i = 0; i < f->n_phases; i++)
		if (fabs(f->phases[i].level_w - level_w) < 1e-6 * level_w)
			return &f->phases[i];
	if (f->n_phases == PHASES_MOST)
		return NULL;
	f->phases[f->n_phases] = (struct phase){.level_w = level_w};
	return &f->phases[f->n_phases++];
}

static bool add_second(struct finder *f, const struct day_log *log, uint32_t s, struct day_best *best)
{
	struct phase *phase = log->measured[s] ? phase_of(f, log->level_w[s]) : NULL;
	for (uint32_t j = 0; j < f->day->plant.n_jobs; j++) {
		bool ran = log->runs[s] >> j & 1;
		best->day_lived += (double)log->tps[j][s];
		best->day += !log->measured[s] && ran ? f->day->free_tps[j] : 0;
		if (!phase)
			continue;
		phase->ran_s[j] += ran;
		phase->tokens[j] += (double)log->tps[j][s];
		phase->watt_s[j] += ran ? (double)log->job_w[j][s] : 0;
	}
	if (!phase)
		return !log->measured[s];
	phase->seconds++;
	phase->power_w += log->power_w[s];
	phase->pauses_w += log->pauses_w[s];
	return true;
}

static void tell_job(const struct finder *f, const struct phase *phase, uint32_t j, struct day_job_best *to)
{
	const struct menu *m = &f->menus[j];
	double ran_s = fmax(1, phase->ran_s[j]);
	to->w = phase->watt_s[j] / ran_s;
	to->tps = phase->tokens[j] / ran_s;
	to->ideal_w = between(m->tps, m->w, m->n, to->tps);
	to->best_w = f->best_w[j];
	to->best_tps = between(m->w, m->tps, m->n, to->best_w);
}

static void add_phase(struct finder *f, const struct phase *phase, bool deepest, struct day_best *best)
{
	double budget_w = gpus_at(f, phase->level_w);
	double used_w = gpus_at(f, (phase->power_w + phase->pauses_w) / phase->seconds);
	int tiers = TIERS;
	while (tiers > 0 && floors_need_w(f, tiers) > budget_w)
		tiers--;
	used_w = fmin(budget_w, fmax(used_w, floors_need_w(f, tiers)));
	best->floors_kept = best->floors_kept && tiers == TIERS;
	best->at_power += phase->seconds * solve(f, phase, used_w, tiers);
	best->tokens += phase->seconds * solve(f, phase, budget_w, tiers);
	for (uint32_t j = 0; j < f->day->plant.n_jobs; j++) {
		const struct menu *m = &f->menus[j];
		best->lived += phase->tokens[j];
		if (phase->ran_s[j])
			best->at_division +=
				phase->ran_s[j] * between(m->w, m->tps, m->n, phase->watt_s[j] / phase->ran_s[j]);
		if (deepest)
			tell_job(f, phase, j, &best->jobs[j]);
	}
}

ww_status day_find_best(const struct day *day, const struct day_log *log, struct day_best *best, struct ww_error *err)
{
	static struct finder f;
	ww_plant *plant;
	bool whole = true;
	f.day = day;
	f.n_phases = 0;
	*best = (struct day_best){.floors_kept = true};
	ww_status status = ww_plant_create(&day->plant, &plant, err);
	if (status)
		return status;
	for (uint32_t j = 0; j < day->plant.n_jobs; j++)
		fill_menu(plant, &plant->jobs[j], &f.menus[j]);
	ww_plant_destroy(plant);
	for (uint32_t s = 0; s < DAY_S; s++)
		whole = add_second(&f, log, s, best) && whole;
	if (!whole)
		return ww_fail(err, WW_ERR_RANGE, "the day has more budgets than %d", PHASES_MOST);
	for (uint32_t i = 0; i < f.n_phases; i++) {
		bool deepest = true;
		for (uint32_t k = 0; k < f.n_phases; k++)
			deepest = deepest && f.phases[i].level_w <= f.phases[k].level_w;
		add_phase(&f, &f.phases[i], deepest, best);
	}
	best->day += best->tokens;
	return WW_OK;
}
