/* SPDX-License-Identifier: Apache-2.0 */
/* One step: charges, rows, budgets, division, orders; and the decision that tells of it. */
#include "control/control_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TICK_US WW_SECOND_US
#define STORE_AGAIN_US (10 * WW_SECOND_US)
#define STORE_ABOVE 1.02
#define STORE_LEAST_US (60 * WW_SECOND_US) /* a successor knows what was drawn before, but for the last minute */
#define CLOCK_STEP_US WW_SECOND_US         /* of the wall clock against the monotonic one, between two decisions */
#define ROUNDING 1e-7                      /* of a row's budget */

const char *ww_why_text(enum ww_why why)
{
	static const char *const texts[] = {
		"no budget binds: back at its recorded limit",
		"the equal cut",
		"a watt is worth as much here as elsewhere",
		"at its job's floor",
		"below its job's floor: a row cannot be kept otherwise",
		"as deep as was measured for its job",
		"at its lowest settable limit",
		"no job on it: at its lowest limit",
		"waits for free watts",
		"raised in steps",
		"would be raised, but raises are frozen",
		"its node does not answer",
		"its node has not answered this controller yet",
		"its node does not write it",
		"does not come down to its cap",
	};
	return why < WW_N_WHYS ? texts[why] : "?";
}

ww_status ww_control_create(ww_control **out, struct ww_error *err)
{
	ww_control *c = calloc(1, sizeof *c);
	if (!c)
		return ww_fail(err, WW_ERR_NOMEM, "out of memory");
	c->ahead_us = c->draws_us = c->known_until_us = WW_NEVER_US;
	ww_status status = ww_alloc_create(&c->alloc, err);
	if (!status)
		status = ww_alloc_create(&c->alloc_ahead, err);
	if (status) {
		ww_control_destroy(c);
		return status;
	}
	*out = c;
	return WW_OK;
}

void ww_control_destroy(ww_control *c)
{
	if (!c)
		return;
	forget_all(c);
	free(c);
}

/* ---- Inputs -------------------------------------------------------------------------------------------------------------- */

/* The state of this decision is stored: what it charges is what a successor will charge. */
static void take_saved(ww_control *c, uint64_t seq)
{
	if (seq != c->decision.seq)
		return;
	for (uint32_t g = 0; g < c->n_gpus; g++)
		c->gpus[g].stored_w = c->gpus[g].decided_w;
	c->restore_stored = c->restore_decided;
	c->stored_us = c->now.mono_us;
	if (seq > c->must_store_after)
		c->must_store = false;
}

static ww_status take_division(ww_control *c, enum ww_division division, struct ww_error *err)
{
	if (division >= WW_N_DIVISIONS)
		return ww_fail(err, WW_ERR_RANGE, "division %d does not exist", (int)division);
	c->division = division;
	c->news = true;
	return WW_OK;
}

static ww_status take_mode(ww_control *c, enum ww_mode mode, struct ww_error *err)
{
	if (mode >= WW_N_MODES)
		return ww_fail(err, WW_ERR_RANGE, "mode %d does not exist", (int)mode);
	if (mode == c->mode)
		return WW_OK;
	c->mode = mode;
	c->mode_wall_us = c->now.wall_us;
	c->news = true;
	ask_to_store(c);
	return WW_OK;
}

static ww_status take(ww_control *c, const struct ww_input *input, struct ww_error *err)
{
	switch (input->kind) {
	case WW_INPUT_CONFIG:
		return take_config(c, input->u.config, err);
	case WW_INPUT_LEADER:
		take_leader(c, input->u.leader, input->at);
		return WW_OK;
	case WW_INPUT_SAMPLE:
		return take_sample(c, input->u.sample, err);
	case WW_INPUT_ACK:
		return take_ack(c, input->u.ack, err);
	case WW_INPUT_HELLO:
		return take_hello(c, input->u.hello, err);
	case WW_INPUT_JOB:
		return take_job(c, input->u.job, err);
	case WW_INPUT_EVENT:
		return take_event(c, input->u.event, input->at, err);
	case WW_INPUT_METER:
		return take_meter(c, input->u.meter, input->at, err);
	case WW_INPUT_SAVED:
		take_saved(c, input->u.saved);
		return WW_OK;
	case WW_INPUT_DIVISION:
		return take_division(c, input->u.division, err);
	case WW_INPUT_MODE:
		return take_mode(c, input->u.mode, err);
	case WW_N_INPUT_KINDS:
		break;
	}
	return ww_fail(err, WW_ERR_INVALID, "input of an unknown kind %d", (int)input->kind);
}

/* A state that was stored before does not know of it. */
void ask_to_store(ww_control *c)
{
	c->must_store = true;
	c->must_store_after = c->decision.seq;
}

ww_status ww_control_put(ww_control *c, const struct ww_input *input, struct ww_error *err)
{
	struct ww_now before = c->now;
	if (input->kind != WW_INPUT_CONFIG && !c->configured)
		return ww_fail(err, WW_ERR_INVALID, "the inventory must come first");
	if (!ww_time_is_sound(input->at))
		return ww_fail(err, WW_ERR_RANGE, "an input came at a time that no clock shows");
	c->now = input->at;
	ww_status status = take(c, input, err);
	if (status)
		c->now = before;
	return status;
}

/* ---- The decision -------------------------------------------------------------------------------------------------------- */

static void tell_row(const struct row *row, int64_t now_us, struct ww_row_decision *out)
{
	double non_gpu_w = non_gpu_at(row, row->boundary, row->charge_w);
	double free_w = row->budget_w - row->charge_w - non_gpu_w - row->guard_w;
	bool heard = ww_reading_known(&row->meter) && now_us - row->meter_us < 5 * WW_SECOND_US;
	*out = (struct ww_row_decision){.budget_w = row->budget_w,
	                                .boundary = row->boundary,
	                                .charge_w = row->charge_w,
	                                .non_gpu_w = non_gpu_w,
	                                .guard_w = row->guard_w,
	                                .free_w = free_w,
	                                .missing_w = free_w < -ROUNDING * row->budget_w ? -free_w : 0,
	                                .power_w = heard ? row->meter.value : (double)NAN};
}

static void tell_jobs(ww_control *c)
{
	for (uint32_t j = 0; j < c->n_jobs; j++) {
		const struct job *job = c->jobs[j];
		bool cut = job->divided;
		c->job_decisions[j] =
			(struct ww_job_decision){.id = job->told.id,
		                                 .cut_frac = cut ? job->cut_frac : 0,
		                                 .equal_cut_frac = cut ? job->equal_cut_frac : 0,
		                                 .throughput_frac = cut ? job->throughput_frac : 1,
		                                 .floor_frac = job->told.floor_frac,
		                                 .kept_floor_frac = cut ? job->kept_floor_frac : job->told.floor_frac,
		                                 .trust = cut ? job->trust : 0,
		                                 .tps = job->tps};
	}
}

/* A successor would count less than may be in force, also by what nobody ordered: somebody's limit, a GPU that is not
 * managed. Or it would count far more, or not know what was drawn lately. Raises within what is stored need not wait for it: of what came without an order a
 * successor knows as little whether they are sent or not. */
static bool is_worth_storing(const ww_control *c)
{
	double stored_w = 0, decided_w = 0;
	if (c->now.mono_us - c->stored_us >= STORE_LEAST_US)
		return true;
	for (uint32_t g = 0; g < c->n_gpus; g++) {
		if (c->gpus[g].decided_w > c->gpus[g].stored_w)
			return true;
		stored_w += c->gpus[g].stored_w;
		decided_w += c->gpus[g].decided_w;
	}
	return c->now.mono_us - c->stored_us >= STORE_AGAIN_US && stored_w > STORE_ABOVE * decided_w;
}

static bool asks_to_store(const ww_control *c)
{
	bool asks = c->must_store;
	for (uint32_t i = 0; i < c->decision.n_commands; i++)
		asks = asks || c->needs_save[i];
	return c->leader.leads && (asks || is_worth_storing(c));
}

/* From now on the state of this decision may be the one that a successor loads, whether it is told here or not. */
static void expect_stored(ww_control *c)
{
	for (uint32_t g = 0; g < c->n_gpus; g++)
		c->gpus[g].stored_w = least_known(c->gpus[g].stored_w, c->gpus[g].decided_w);
	c->restore_stored = c->restore_stored && c->restore_decided;
}

/* And the charges of rows, as they are with what was sent. */
static void tell_gpus(ww_control *c)
{
	for (uint32_t r = 0; r < c->n_rows; r++)
		c->rows[r].charge_w = 0;
	for (uint32_t n = 0; n < c->n_nodes; n++) {
		const struct node *node = &c->nodes[n];
		double charge_w = 0;
		for (uint32_t g = node->first_gpu; g < node->first_gpu + node->config.n_gpus; g++) {
			struct gpu *gpu = &c->gpus[g];
			charge_w += gpu->charge_w;
			gpu->decided_w = gpu->charge_w;
			c->gpu_decisions[g] = (struct ww_gpu_decision){gpu->charge_w, gpu->cap_w, gpu->target_w,
			                                               gpu->moved_w, gpu->why};
		}
		add_charge(c, node, charge_w);
	}
}

static void tell(ww_control *c)
{
	struct ww_decision *d = &c->decision;
	tell_gpus(c);
	for (uint32_t r = 0; r < c->n_rows; r++)
		tell_row(&c->rows[r], c->now.mono_us, &c->row_decisions[r]);
	tell_jobs(c);
	for (uint32_t i = 0; i < c->n_events; i++) {
		const struct event *e = &c->events[i];
		c->event_decisions[i] = (struct ww_event_decision){.id = e->told.id,
		                                                   .state = (uint8_t)event_state(e, c->now.wall_us),
		                                                   .let_go = is_let_go(c, e),
		                                                   .baseline_w = e->baseline_w,
		                                                   .measured_frac = e->measured_frac,
		                                                   .limit_w = e->limit_w,
		                                                   .missing_w = e->missing_w};
	}
	c->restore_decided = c->config.after == WW_AFTER_RESTORE;
	c->lease_decided_us = c->config.valid_for_us;
	d->save = asks_to_store(c);
	if (d->save)
		expect_stored(c);
	d->leads = c->leader.leads;
	d->mode = (uint8_t)c->mode;
	d->commands = c->commands;
	d->needs_save = c->needs_save;
	d->n_rows = c->n_rows;
	d->rows = c->row_decisions;
	d->n_nodes = c->n_nodes;
	d->first_gpu = c->first_gpu;
	d->gpus = c->gpu_decisions;
	d->n_jobs = c->n_jobs;
	d->jobs = c->job_decisions;
	d->n_events = c->n_events;
	d->events = c->event_decisions;
}

const struct ww_decision *ww_control_step(ww_control *c, struct ww_now now)
{
	if (!ww_time_is_sound(now)) {
		c->decision.n_commands = 0;
		c->decision.save = false;
		return &c->decision;
	}
	int64_t since_us = c->decision.seq ? now.mono_us - c->decision.at.mono_us : 0;
	since_us = since_us > 0 ? since_us : 0;
	c->now = now;
	c->decision.seq++;
	c->decision.at = now;
	c->steps++;
	if (c->steps > 1 && llabs(now.mono_us - now.wall_us - c->offset_us) > CLOCK_STEP_US)
		c->adopt_until_us =
			now.mono_us + c->config.valid_for_us; /* the clock was set: raise nothing for a lease */
	c->offset_us = now.mono_us - now.wall_us;
	if (!c->configured)
		return &c->decision;
	update_charges(c);
	update_draws(c);
	remember_draws(c);
	c->since_us = since_us;
	update_lags(c);
	update_budgets(c);
	divide(c);
	give_orders(c);
	tell(c);
	return &c->decision;
}

int64_t ww_control_due_us(const ww_control *c)
{
	return c->decision.seq == 0 ? c->now.mono_us : c->decision.at.mono_us + TICK_US;
}
