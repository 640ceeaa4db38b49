/* SPDX-License-Identifier: Apache-2.0 */
/* Lives an event day and writes down what is true of it in every second. */
#include "day.h"

#include <math.h>
#include <string.h>

#define GRACE_S 8 /* settle + 5 s: so long a fall of the budget that comes without warning may take */
#define BASELINE_S 600
#define SPAN_S 20
#define NOWHERE UINT32_MAX

/* What has to be remembered from second to second. */
struct walk {
	struct day *day;
	struct day_log *log;
	uint32_t job_of[DAY_GPUS];
	double ran_w[DAY_GPUS];        /* when the job ran last */
	double host_w, cool_w;         /* pauses as host and cooling follow them */
	double host_keeps, cool_keeps; /* of a second */
};

/* ---- Budgets ---------------------------------------------------------------------------------------------------------- */

static const struct ww_announcement *version_at(const struct day *day, uint64_t id, uint32_t s)
{
	const struct ww_announcement *found = NULL;
	for (size_t i = 0; i < day->world.n_announcements; i++)
		if (day->announcements[i].event.id == id && day->announcements[i].at_us <= s * WW_SECOND_US)
			found = &day->announcements[i];
	return found;
}

static uint32_t seconds(int64_t us)
{
	return (uint32_t)(us / WW_SECOND_US);
}

/* One event in one second. */
struct hold {
	double budget_w; /* INFINITY: none */
	bool falls, holds;
};

static struct hold hold_at(const struct ww_event *e, double baseline_w, uint32_t s)
{
	uint32_t start = day_second(e->start_us), end = day_second(e->end_us);
	uint32_t down = seconds(e->ramp_down_us), up = seconds(e->ramp_up_us);
	double limit_w = (1 - e->cut_frac) * baseline_w;
	if (s < start || s >= end + up)
		return (struct hold){.budget_w = (double)INFINITY};
	if (s >= end)
		return (struct hold){.budget_w = limit_w + (baseline_w - limit_w) * (s - end) / up};
	return (struct hold){.budget_w = limit_w, .falls = s < start + down, .holds = s >= start + down};
}

/* An announcement that lowers the budget with less warning than it takes. */
static bool comes_late(const struct day *day, size_t i, uint32_t s)
{
	const struct ww_announcement *a = &day->announcements[i], *before = i ? a - 1 : a;
	uint32_t at = seconds(a->at_us), from = day_second(a->event.start_us) + seconds(a->event.ramp_down_us);
	bool lowers = a->event.version == 1 || a->event.cut_frac > before->event.cut_frac;
	return lowers && s >= at && s < at + GRACE_S && from < at + GRACE_S;
}

static void find_budget(const struct day *day, struct day_log *log, uint32_t s)
{
	bool falls = false, holds = false;
	log->budget_w[s] = log->level_w[s] = (double)INFINITY;
	for (uint32_t i = 0; i < day->n_events; i++) {
		const struct ww_announcement *a = version_at(day, i + 1, s);
		if (!a)
			continue;
		struct hold hold = hold_at(&a->event, log->baseline_w[i], s);
		falls = falls || hold.falls;
		holds = holds || hold.holds;
		log->budget_w[s] = fmin(log->budget_w[s], hold.budget_w);
		if (hold.holds)
			log->level_w[s] = fmin(log->level_w[s], hold.budget_w);
	}
	log->measured[s] = holds && !falls;
	for (size_t i = 0; i < day->world.n_announcements; i++)
		if (comes_late(day, i, s))
			log->measured[s] = false;
}

/* Control keeps power in spans of 20 s: its ten minutes may be that much longer. */
static double baseline_off(const struct day_log *log, double baseline_w, uint32_t at)
{
	double sum = 0, off = (double)INFINITY;
	for (uint32_t n = 1; n <= BASELINE_S + SPAN_S; n++) {
		sum += log->power_w[at - n];
		if (n >= BASELINE_S)
			off = fmin(off, fabs(baseline_w / (sum / n) - 1));
	}
	return off;
}

static void find_baselines(const struct day *day, struct day_log *log)
{
	for (size_t i = 0; i < day->world.n_announcements; i++) {
		const struct ww_announcement *a = &day->announcements[i];
		uint64_t e = a->event.id - 1;
		if (a->event.version == 1)
			log->baseline_off_frac[e] = baseline_off(log, log->baseline_w[e], seconds(a->at_us));
	}
}

/* ---- Power ------------------------------------------------------------------------------------------------------------ */

static bool runs(const struct day_log *log, uint32_t j, uint32_t s)
{
	return j != NOWHERE && (log->runs[s] >> j & 1);
}

/* At the meter, as what follows the GPUs lags behind them. */
static double at_meter(struct walk *walk, double gpus_w, double hosts_w)
{
	const struct day *day = walk->day;
	walk->host_w += (1 - walk->host_keeps) * (day->nodes[0].follow * gpus_w - walk->host_w);
	double it_w = gpus_w + hosts_w + walk->host_w;
	walk->cool_w += (1 - walk->cool_keeps) * (day->rows[0].cooling * it_w - walk->cool_w);
	return it_w + walk->cool_w;
}

/* Watts that GPUs would draw but for a pause of their job, and hosts without power. */
static double pauses_at(struct walk *walk, const struct ww_world_second *now, uint32_t s)
{
	double gpus_w = 0, hosts_w = 0;
	for (uint32_t g = 0; g < DAY_GPUS; g++) {
		double w = ww_plant_gpu_w(now->plant, g), limit_w = ww_plant_enforced_w(now->plant, g);
		if (g % DAY_NODE_GPUS == 0 && limit_w == 0)
			hosts_w += walk->day->nodes[g / DAY_NODE_GPUS].host_w;
		if (runs(walk->log, walk->job_of[g], s))
			walk->ran_w[g] = w;
		else if (walk->job_of[g] != NOWHERE)
			gpus_w += fmax(0, fmin(walk->ran_w[g], limit_w > 0 ? limit_w : walk->ran_w[g]) - w);
	}
	return at_meter(walk, gpus_w, hosts_w);
}

static void find_gap(const struct walk *walk, const struct ww_world_second *now, uint32_t s)
{
	const struct ww_row_decision *row = &now->decision->rows[0];
	struct day_gap *gap = &walk->log->gap[s];
	double shown_w = 0;
	*gap = (struct day_gap){.guard_w = row->guard_w, .free_w = row->free_w};
	for (uint32_t g = 0; g < DAY_GPUS; g++) {
		double charge_w = (double)now->decision->gpus[g].charge_w;
		double limit_w = ww_plant_enforced_w(now->plant, g), sensor_w = ww_plant_sensor_w(now->plant, g);
		shown_w += limit_w > 0 && !isnan(sensor_w) ? sensor_w : 0;
		if (limit_w == 0 || isnan(sensor_w)) {
			gap->pauses_w += charge_w;
			continue;
		}
		gap->charge_w += charge_w - limit_w;
		*(runs(walk->log, walk->job_of[g], s) ? &gap->slack_w : &gap->pauses_w) += limit_w - sensor_w;
	}
	gap->rest_w = row->non_gpu_w - walk->log->power_w[s] + shown_w;
}

/* ---- Jobs ------------------------------------------------------------------------------------------------------------- */

/* What runs in the second after `now`. */
static uint64_t running(const struct day *day, const struct ww_world_second *now)
{
	uint64_t bits = 0;
	for (uint32_t j = 0; j < day->plant.n_jobs; j++)
		if (ww_plant_job_state(now->plant, j) == WW_SIM_RUNNING)
			bits |= UINT64_C(1) << j;
	return bits;
}

static void measure_jobs(const struct walk *walk, const struct ww_world_second *now, uint32_t s)
{
	const struct day *day = walk->day;
	struct day_log *log = walk->log;
	for (uint32_t j = 0; j < day->plant.n_jobs; j++) {
		double w = 0;
		for (uint32_t k = 0; k < day->jobs[j].n_gpus; k++)
			w += ww_plant_gpu_w(now->plant, day->jobs[j].gpus[k]);
		log->tps[j][s] = (float)ww_plant_job_tps(now->plant, j);
		log->job_w[j][s] = (float)w;
		log->floor_frac[j][s] = (float)day->told[j].floor_frac;
	}
	for (uint32_t i = 0; i < now->decision->n_jobs; i++) { /* ids are in the order of the jobs */
		const struct ww_job_decision *d = &now->decision->jobs[i];
		uint64_t j = d->id - day->told[0].id;
		if (!isnan(d->kept_floor_frac))
			log->floor_frac[j][s] = (float)fmin(d->kept_floor_frac, day->told[j].floor_frac);
	}
}

static void measure(struct walk *walk, const struct ww_world_second *now, uint32_t s)
{
	struct day_log *log = walk->log;
	const struct ww_decision *d = now->decision;
	log->power_w[s] = ww_plant_row_w(now->plant, 0, WW_BOUNDARY_METER);
	log->pauses_w[s] = pauses_at(walk, now, s);
	measure_jobs(walk, now, s);
	find_gap(walk, now, s);
	for (uint32_t i = 0; i < d->n_events; i++)
		log->baseline_w[d->events[i].id - 1] = d->events[i].baseline_w;
	if (s + 1 < DAY_S)
		log->runs[s + 1] = running(walk->day, now);
}

/* ---- The day ---------------------------------------------------------------------------------------------------------- */

static void begin(struct walk *walk, struct day *day, struct day_log *log)
{
	*walk = (struct walk){.day = day, .log = log};
	memset(log, 0, sizeof *log);
	for (uint32_t g = 0; g < DAY_GPUS; g++)
		walk->job_of[g] = NOWHERE;
	for (uint32_t j = 0; j < day->plant.n_jobs; j++)
		for (uint32_t k = 0; k < day->jobs[j].n_gpus; k++)
			walk->job_of[day->jobs[j].gpus[k]] = j;
	walk->host_keeps = exp(-1 / day->nodes[0].lag_s);
	walk->cool_keeps = exp(-1 / day->rows[0].cooling_lag_s);
	log->runs[0] = ~UINT64_C(0); /* the first pause comes later */
}

ww_status day_live(struct day *day, struct day_log *log, struct ww_error *err)
{
	struct walk walk;
	ww_world *world = NULL;
	begin(&walk, day, log);
	ww_status status = ww_world_create(&day->world, &world, err);
	for (uint32_t s = 0; s < DAY_S && !status; s++) {
		struct ww_world_second now;
		status = ww_world_second(world, &now, err);
		if (!status && !now.decision)
			status = ww_fail(err, WW_ERR_NO_DATA, "nobody was in charge in second %u", s);
		if (!status)
			measure(&walk, &now, s);
	}
	if (world)
		log->account = ww_world_account(world);
	ww_world_destroy(world);
	if (status)
		return status;
	find_baselines(day, log);
	for (uint32_t s = 0; s < DAY_S; s++)
		find_budget(day, log, s);
	return WW_OK;
}
