/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Budgets over time. An event's budget falls from its base to its limit over the ramp down, stays, and rises to the base
 * again over the ramp up, in stairs that stay below the straight ramp; before and after there is none. A protection event
 * knows no ramps. On a row the least of all events and of the row's own limit counts, and it counts early enough for the
 * draw to have followed when it starts.
 */
#include "control/control_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RAMP_STEPS 4 /* in which a known ramp down is carried out ahead */
#define STAIR_US                                                                                                       \
	(10 * WW_SECOND_US) /* limits must stand still for a while to be read back: ramps go in stairs below them */

/* ---- One event ---------------------------------------------------------------------------------------------------------- */

static int64_t after(int64_t time_us, int64_t by_us)
{
	return time_us > WW_NEVER_US - by_us ? WW_NEVER_US : time_us + by_us;
}

static int64_t most_us(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t ramp_down_us(const struct event *e)
{
	return e->told.cls == WW_CLASS_PROTECTION ? 0 : e->told.ramp_down_us;
}

static int64_t ramp_up_us(const struct event *e)
{
	return e->told.cls == WW_CLASS_PROTECTION ? 0 : e->told.ramp_up_us;
}

/* The ramp down, which an end may cut short. */
static double falling(const struct event *e, int64_t wall_us)
{
	int64_t fallen_us = ((wall_us - e->told.start_us) / STAIR_US + 1) * STAIR_US, down = ramp_down_us(e);
	double fall = most(0, e->base_w - e->limit_w);
	return fallen_us >= down ? e->limit_w : e->limit_w + fall * (1 - (double)fallen_us / (double)down);
}

static double budget_at(const struct event *e, int64_t wall_us)
{
	int64_t end = e->told.end_us, up = ramp_up_us(e);
	if (e->told.cancelled || wall_us < e->told.start_us || wall_us >= after(end, up))
		return (double)INFINITY;
	if (wall_us < end)
		return falling(e, wall_us);
	double low_w = falling(e, end - 1), rise = most(0, e->base_w - low_w);
	int64_t risen_us = (wall_us - end) / STAIR_US * STAIR_US;
	return low_w + rise * ((double)risen_us / (double)up);
}

/* The least in [from, to]: the budget falls, stays and rises. */
static double least_budget(const struct event *e, int64_t from_us, int64_t to_us)
{
	int64_t low = after(e->told.start_us, most_us(0, ramp_down_us(e) - STAIR_US));
	if (e->told.cancelled)
		return (double)INFINITY;
	if (from_us < e->told.end_us && to_us >= low && low < e->told.end_us)
		return e->limit_w;
	if (from_us < e->told.end_us && to_us >= e->told.end_us)
		return least(budget_at(e, e->told.end_us - 1), budget_at(e, from_us));
	return least(budget_at(e, from_us), budget_at(e, to_us));
}

enum ww_event_state event_state(const struct event *e, int64_t wall_us)
{
	if (e->told.cancelled || wall_us >= after(e->told.end_us, ramp_up_us(e)))
		return WW_EVENT_OVER;
	if (wall_us < e->told.start_us)
		return WW_EVENT_WAITING;
	return wall_us < e->told.end_us ? WW_EVENT_ACTIVE : WW_EVENT_RAMP_UP;
}

bool is_let_go(const ww_control *c, const struct event *e)
{
	return c->mode == WW_MODE_DISENGAGE && e->told.cls == WW_CLASS_CONTRACT;
}

/* ---- Taking events ------------------------------------------------------------------------------------------------------ */

static ww_status add_event(ww_control *c, uint32_t at, struct ww_error *err)
{
	if (c->n_events == EVENTS_MAX)
		return ww_fail(err, WW_ERR_RANGE, "%d events are known already; wait a day after old ones end",
		               EVENTS_MAX);
	if (c->n_events == c->room_events) {
		uint32_t room = c->room_events ? 2 * c->room_events : 8;
		struct event *events = realloc(c->events, room * sizeof *events);
		if (!events)
			return ww_fail(err, WW_ERR_NOMEM, "out of memory for an event");
		c->events = events;
		c->room_events = room;
	}
	struct ww_event_decision *decisions =
		realloc(c->event_decisions, (c->n_events + 2) * sizeof *c->event_decisions);
	if (!decisions)
		return ww_fail(err, WW_ERR_NOMEM, "out of memory for an event");
	c->event_decisions = decisions;
	memmove(&c->events[at + 1], &c->events[at], (c->n_events - at) * sizeof *c->events);
	c->events[at] = (struct event){.baseline_w = (double)NAN, .missing_w = (double)NAN};
	c->n_events++;
	return WW_OK;
}

/* Events that have been over for a day are forgotten. */
static void forget_old(ww_control *c, int64_t wall_us)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < c->n_events; i++)
		if (after(c->events[i].told.end_us, ramp_up_us(&c->events[i])) > wall_us - AHEAD_US)
			c->events[kept++] = c->events[i];
	c->n_events = kept;
}

/* Limit in watts and the power that ramps begin at. */
static ww_status resolve(const struct row *row, const struct ww_event *told, int64_t wall_us, struct event *e,
                         struct ww_error *err)
{
	bool keeps = e->told.id == told->id && e->told.row == told->row && e->told.boundary == told->boundary;
	struct baseline baseline = keeps && !isnan(e->baseline_w) ? (struct baseline){e->baseline_w, e->measured_frac}
	                                                          : baseline_of(row, told->boundary, wall_us);
	double baseline_w = baseline.power_w;
	double limit_w = isnan(told->limit_w) ? (1 - told->cut_frac) * baseline_w : told->limit_w;
	if (isnan(limit_w))
		return ww_fail(err, WW_ERR_NO_DATA,
		               "event %llu: row '%s' has no meter reading to take a cut from; give a limit in watts",
		               (unsigned long long)told->id, row->config.name);
	e->told = *told;
	e->limit_w = limit_w;
	e->baseline_w = baseline_w;
	e->measured_frac = baseline.measured_frac;
	e->base_w = most(limit_w, isnan(baseline_w) ? non_gpu_at(row, told->boundary, row->charge_w) + row->charge_w
	                                            : baseline_w);
	return WW_OK;
}

/* What was cancelled before it began is of the past after its start, so that it is forgotten some time. */
static void end_cancelled(struct event *e, int64_t wall_us)
{
	int64_t end_us = most_us(wall_us, e->told.start_us + 1);
	e->told.end_us = end_us < e->told.end_us ? end_us : e->told.end_us;
}

static void cancel(ww_control *c, struct event *e, uint32_t version, int64_t wall_us)
{
	e->told.version = version;
	e->told.cancelled = e->told.cancelled || event_state(e, wall_us) == WW_EVENT_WAITING;
	end_cancelled(e, wall_us);
	c->news = true;
}

/* Of an event at its place, one that is news. */
static ww_status put_event(ww_control *c, uint32_t i, const struct ww_event *told, struct ww_now at,
                           struct ww_error *err)
{
	ww_status status = WW_OK;
	bool known = i < c->n_events && c->events[i].told.id == told->id;
	if (told->cancelled && known) {
		cancel(c, &c->events[i], told->version, at.wall_us);
		return WW_OK;
	}
	if (told->cancelled) { /* it overtook what it cancels */
		status = add_event(c, i, err);
		if (!status) {
			c->events[i].told = *told;
			end_cancelled(&c->events[i], at.wall_us);
		}
		return status;
	}
	struct event resolved = known ? c->events[i] : (struct event){.baseline_w = (double)NAN};
	sum_charges(c);
	status = resolve(find_row(c, told->row), told, at.wall_us, &resolved, err);
	if (!status && !known)
		status = add_event(c, i, err);
	if (status)
		return status;
	resolved.missing_w = (double)NAN;
	c->events[i] = resolved;
	c->news = true;
	return WW_OK;
}

ww_status take_event(ww_control *c, const struct ww_event *told, struct ww_now at, struct ww_error *err)
{
	ww_status status = ww_check_event(told, err);
	uint32_t i = 0;
	if (status)
		return status;
	if (!find_row(c, told->row))
		return ww_fail(err, WW_ERR_NOT_FOUND, "event %llu is for a row that is not in the power plan",
		               (unsigned long long)told->id);
	while (i < c->n_events && c->events[i].told.id < told->id)
		i++;
	bool known = i < c->n_events && c->events[i].told.id == told->id;
	if (known && told->version <= c->events[i].told.version)
		return WW_OK;
	status = put_event(c, i, told, at, err);
	if (status)
		return status;
	/* Not by a wall clock that was set since the last step: the next one may say otherwise. */
	int64_t by_mono_us = at.mono_us - c->offset_us;
	forget_old(c, at.wall_us < by_mono_us ? at.wall_us : by_mono_us);
	ask_to_store(c);
	return WW_OK;
}

/* ---- Rows ---------------------------------------------------------------------------------------------------------------- */

/* The least offer of a row over its boundaries for the least budgets in [from, to]. */
static double row_offer(const ww_control *c, const struct row *row, int64_t from_us, int64_t to_us, struct row *tell)
{
	double budget_w[WW_N_BOUNDARIES], offer_w = (double)INFINITY;
	for (int b = 0; b < WW_N_BOUNDARIES; b++)
		budget_w[b] = row->config.boundary == b ? row->config.limit_w : (double)INFINITY;
	for (uint32_t i = 0; i < c->n_events; i++) {
		const struct event *e = &c->events[i];
		if (e->told.row == row->config.id && !is_let_go(c, e))
			budget_w[e->told.boundary] = least(budget_w[e->told.boundary], least_budget(e, from_us, to_us));
	}
	for (int b = 0; b < WW_N_BOUNDARIES; b++) {
		double w = isinf(budget_w[b]) ? (double)INFINITY : offer_of(row, b, budget_w[b]);
		if (w < offer_w || (b == 0 && tell)) {
			if (tell) {
				tell->budget_w = budget_w[b];
				tell->boundary = (uint8_t)b;
			}
			offer_w = w;
		}
	}
	return offer_w;
}

int64_t lead_us(const ww_control *c)
{
	return c->config.settle_us + LEAD_EXTRA_US;
}

void update_budgets(ww_control *c)
{
	for (uint32_t r = 0; r < c->n_rows; r++) {
		struct row *row = &c->rows[r];
		row->offer_w = row_offer(c, row, c->now.wall_us, c->now.wall_us + lead_us(c), row);
		row->guard_w = isinf(row->budget_w) ? 0 : row->config.guard_frac * row->budget_w;
	}
}

void offers_between(const ww_control *c, int64_t from_us, int64_t to_us, struct ww_alloc_row *out)
{
	for (uint32_t r = 0; r < c->n_rows; r++)
		out[r].budget_w = row_offer(c, &c->rows[r], from_us, to_us, NULL);
}

/* ---- Steps ahead --------------------------------------------------------------------------------------------------------- */

/* Adds a moment in order; of equal ones one is kept, and of too many the last two become one. */
static uint32_t add_moment(struct ahead *out, uint32_t n, int64_t at_us)
{
	uint32_t i = n;
	while (i > 0 && out[i - 1].at_us > at_us)
		i--;
	if (i > 0 && out[i - 1].at_us == at_us)
		return n;
	if (n == STEPS_AHEAD) {
		if (i == n)
			return n;
		n--;
	}
	memmove(&out[i + 1], &out[i], (n - i) * sizeof *out);
	out[i].at_us = at_us;
	return n + 1;
}

uint32_t steps_ahead(const ww_control *c, struct ahead *out)
{
	int64_t wall_us = c->now.wall_us, horizon_us = wall_us + AHEAD_US;
	uint32_t n = greets(c) ? add_moment(out, 0, wall_us - lead_us(c)) : 0;
	for (uint32_t i = 0; i < c->n_events; i++) {
		const struct event *e = &c->events[i];
		int64_t ramp_us = ramp_down_us(e), steps = ramp_us > 0 ? RAMP_STEPS : 1;
		for (int64_t k = 0; k < steps && !e->told.cancelled && !is_let_go(c, e); k++) {
			int64_t at_us = e->told.start_us + k * ramp_us / steps - lead_us(c);
			if (at_us > wall_us && at_us < horizon_us)
				n = add_moment(out, n, at_us);
		}
	}
	for (uint32_t k = 0; k < n; k++)
		out[k].until_us = (k + 1 < n ? out[k + 1].at_us : horizon_us) + lead_us(c) - 1;
	return n;
}
