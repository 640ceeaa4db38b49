/* SPDX-License-Identifier: Apache-2.0 */
/* Budgets over time: versions, changes, ramps, boundaries, what cannot be kept, and the way back. */
#include "control_rig.h"

static struct ww_event later(const struct rig *r, uint64_t id, double limit_w, int start_s, int length_s)
{
	struct ww_event event = event_of(r, id, SITE, limit_w);
	event.start_us += start_s * SECOND;
	event.end_us = event.start_us + length_s * SECOND;
	return event;
}

/* ---- Versions --------------------------------------------------------------------------------------------------------- */

static void only_a_higher_version_changes_an_event(void **state)
{
	struct rig r;
	struct ww_event event;
	(void)state;
	set_up(&r);
	event = event_of(&r, 1, SITE, 3000);
	event.version = 5;
	put(&r, WW_INPUT_EVENT, &event);
	event.limit_w = 2000;
	put(&r, WW_INPUT_EVENT, &event);
	event.version = 4;
	put(&r, WW_INPUT_EVENT, &event);
	tick(&r);
	assert_near(r.row[0].budget_w, 3000, 0);
	event.version = 6;
	put(&r, WW_INPUT_EVENT, &event);
	tick(&r);
	assert_near(r.row[0].budget_w, 2000, 0);
	assert_int_equal(r.d.n_events, 1);
	tear_down(&r);
}

static void cancelled_before_it_starts_it_never_was(void **state)
{
	struct rig r;
	struct ww_event event;
	(void)state;
	set_up(&r);
	event = later(&r, 1, 3000, 30, 60);
	put(&r, WW_INPUT_EVENT, &event);
	run(&r, 5);
	assert_int_equal(r.event[0].state, WW_EVENT_WAITING);
	assert_int_equal(r.peer[0].lease.n_steps, 2);
	event.version = 2;
	event.cancelled = true;
	put(&r, WW_INPUT_EVENT, &event);
	run(&r, 2);
	assert_int_equal(r.event[0].state, WW_EVENT_OVER);
	assert_int_equal(r.peer[0].lease.n_steps, 1);
	run(&r, 60);
	assert_near(r.peer[0].limit_w[0], MAX_W, 0);
	tear_down(&r);
}

/* It ends at once; what follows an end follows. */
static void cancelled_while_it_lasts_it_ends(void **state)
{
	struct rig r;
	struct ww_event event;
	(void)state;
	set_up(&r);
	event = event_of(&r, 1, SITE, 3000);
	event.ramp_up_us = 100 * SECOND;
	put(&r, WW_INPUT_EVENT, &event);
	run(&r, 20);
	event.version = 2;
	event.cancelled = true;
	put(&r, WW_INPUT_EVENT, &event);
	run(&r, 50);
	assert_int_equal(r.event[0].state, WW_EVENT_RAMP_UP);
	assert_near(r.row[0].budget_w, 4500, 1);
	run(&r, 51);
	assert_int_equal(r.event[0].state, WW_EVENT_OVER);
	assert_true(isinf(r.row[0].budget_w));
	tear_down(&r);
}

static void a_cancellation_may_overtake_its_event(void **state)
{
	struct rig r;
	struct ww_event event;
	(void)state;
	set_up(&r);
	event = event_of(&r, 1, SITE, 3000);
	event.version = 2;
	event.cancelled = true;
	put(&r, WW_INPUT_EVENT, &event);
	event.version = 1;
	event.cancelled = false;
	put(&r, WW_INPUT_EVENT, &event);
	tick(&r);
	assert_int_equal(r.event[0].state, WW_EVENT_OVER);
	assert_true(isinf(r.row[0].budget_w));
	tear_down(&r);
}

static void an_event_can_be_made_harder_and_shorter_while_it_lasts(void **state)
{
	struct rig r;
	struct ww_event event;
	(void)state;
	set_up(&r);
	event = later(&r, 1, 4000, 0, 600);
	put(&r, WW_INPUT_EVENT, &event);
	run(&r, 20);
	event.version = 2;
	event.limit_w = 2400;
	event.end_us = r.now.wall_us + 30 * SECOND;
	put(&r, WW_INPUT_EVENT, &event);
	run(&r, 5);
	assert_true(r.row[0].charge_w <= 2400.01);
	run(&r, 26);
	assert_int_equal(r.event[0].state, WW_EVENT_OVER);
	assert_true(isinf(r.row[0].budget_w));
	tear_down(&r);
}

static void events_of_yesterday_are_forgotten(void **state)
{
	struct rig r;
	struct ww_event event;
	(void)state;
	set_up(&r);
	event = later(&r, 1, 4000, 0, 10);
	put(&r, WW_INPUT_EVENT, &event);
	run(&r, 20);
	pass(&r, 25 * 3600 * SECOND);
	put_limit(&r, 2, SITE, 3000);
	step(&r);
	assert_int_equal(r.d.n_events, 1);
	assert_int_equal(r.event[0].id, 2);
	tear_down(&r);
}

/* ---- Budgets ------------------------------------------------------------------------------------------------------------ */

static void a_budget_falls_and_rises_in_ramps(void **state)
{
	struct rig r;
	struct ww_event event;
	(void)state;
	set_up(&r);
	event = later(&r, 1, 3000, 10, 150);
	event.ramp_down_us = 100 * SECOND;
	event.ramp_up_us = 60 * SECOND;
	put(&r, WW_INPUT_EVENT, &event);
	for (int i = 1; i <= 230; i++) {
		double ahead = i + (double)LEAD / (double)SECOND;
		double in = ahead < 110 ? 10 * floor((ahead - 10) / 10) + 10 : 100; /* in stairs below the ramp */
		tick(&r);
		if (ahead < 10 || i >= 220)
			assert_true(isinf(r.row[0].budget_w));
		else if (i < 160)
			assert_near(r.row[0].budget_w, 6000 - 30 * in, 1e-3);
		else
			assert_near(r.row[0].budget_w, 3000 + 500 * floor((i - 160) / 10.0), 1e-3);
		/* Until a stair was read back, LEAD ahead of it. */
		assert_near(r.row[0].missing_w, 0, ahead < 112 && fmod(ahead, 10) < 3 ? 300 : 0);
		if (isfinite(r.row[0].budget_w) && i > 10)
			assert_true(power_of(&r) <= 6000 -
			                                    30 * (i < 10    ? 0
			                                          : i < 110 ? i - 10
			                                          : i < 160 ? 100
			                                                    : 0) +
			                                    0.01);
	}
	tear_down(&r);
}

static void protection_comes_at_once_and_goes_at_once(void **state)
{
	struct rig r;
	struct ww_event event;
	(void)state;
	set_up(&r);
	event = later(&r, 1, 3000, 0, 30);
	event.cls = WW_CLASS_PROTECTION;
	event.ramp_down_us = event.ramp_up_us = 600 * SECOND;
	put(&r, WW_INPUT_EVENT, &event);
	step(&r);
	assert_near(r.row[0].budget_w, 3000, 0);
	deliver(&r);
	for (int n = 0; n < NODES; n++)
		assert_true(r.peer[n].limit_w[0] <= 250.01f);
	run(&r, 31);
	assert_true(isinf(r.row[0].budget_w));
	assert_int_equal(r.event[0].state, WW_EVENT_OVER);
	tear_down(&r);
}

static void of_two_events_on_a_row_the_lower_counts(void **state)
{
	struct rig r;
	struct ww_event event;
	(void)state;
	set_up(&r);
	event = later(&r, 7, 4000, 0, 200);
	put(&r, WW_INPUT_EVENT, &event);
	event = later(&r, 3, 2600, 20, 50);
	put(&r, WW_INPUT_EVENT, &event);
	run(&r, 10);
	assert_near(r.row[0].budget_w, 4000, 0);
	assert_int_equal(r.event[0].id, 3); /* told in ascending id */
	run(&r, 20);
	assert_near(r.row[0].budget_w, 2600, 0);
	assert_true(r.row[0].charge_w <= 2600.01);
	run(&r, 45);
	assert_near(r.row[0].budget_w, 4000, 0);
	tear_down(&r);
}

static void a_rows_own_limit_is_always_in_force(void **state)
{
	struct rig r;
	(void)state;
	plan(&r);
	r.rows[1].limit_w = 2400;
	r.rows[1].guard_frac = 0.05;
	begin(&r);
	adopt(&r);
	assert_near(r.row[1].budget_w, 2400, 0);
	assert_near(r.row[1].guard_w, 120, 1e-9);
	assert_true(r.row[1].charge_w <= 2280.01);
	tear_down(&r);
}

/* A node on two feeds loads each with half. */
static void rows_are_kept_together(void **state)
{
	struct rig r;
	(void)state;
	set_up(&r);
	put_limit(&r, 1, LEFT, 2000);
	put_limit(&r, 2, RIGHT, 1500);
	put_limit(&r, 3, SITE, 3200);
	run(&r, 60);
	for (int i = 0; i < ROWS; i++) {
		assert_near(r.row[i].missing_w, 0, 0);
		assert_true(r.row[i].charge_w <= r.row[i].budget_w * (1 + 1e-6));
	}
	assert_near(r.row[1].charge_w, charge_of(&r, 0) + charge_of(&r, 1) / 2, 0.01);
	assert_near(r.row[0].charge_w, 3200, 30); /* and no watts are left lying */
	tear_down(&r);
}

static void a_budget_names_its_boundary(void **state)
{
	struct rig r;
	struct ww_event event;
	(void)state;
	plan(&r);
	r.rows[0].fixed_w[WW_BOUNDARY_IT] = 500;
	r.rows[0].fixed_w[WW_BOUNDARY_METER] = 800;
	begin(&r);
	adopt(&r);
	event = event_of(&r, 1, SITE, 3000);
	event.boundary = WW_BOUNDARY_GPU;
	put(&r, WW_INPUT_EVENT, &event);
	run(&r, 5);
	assert_int_equal(r.row[0].boundary, WW_BOUNDARY_GPU);
	assert_near(r.row[0].non_gpu_w, 0, 0);
	event.id = 2;
	event.boundary = WW_BOUNDARY_IT;
	put(&r, WW_INPUT_EVENT, &event);
	run(&r, 5);
	assert_int_equal(r.row[0].boundary, WW_BOUNDARY_IT);
	assert_near(r.row[0].non_gpu_w, 500, 1e-9);
	assert_true(r.row[0].charge_w <= 2500.01);
	event.id = 3;
	event.boundary = WW_BOUNDARY_METER;
	put(&r, WW_INPUT_EVENT, &event);
	run(&r, 5);
	assert_int_equal(r.row[0].boundary, WW_BOUNDARY_METER);
	assert_true(r.row[0].charge_w <= 2200.01);
	assert_near(r.row[0].missing_w, 0, 0);
	tear_down(&r);
}

/* ---- What cannot be kept ------------------------------------------------------------------------------------------------ */

static void an_event_that_cannot_be_kept_says_so_before_it_starts(void **state)
{
	struct rig r;
	struct ww_event event;
	(void)state;
	set_up(&r);
	event = later(&r, 1, 1000, 600, 600); /* 12 GPUs of at least 100 W */
	put(&r, WW_INPUT_EVENT, &event);
	step(&r);
	assert_int_equal(r.event[0].state, WW_EVENT_WAITING);
	assert_near(r.event[0].missing_w, 200, 1e-6);
	tick(&r);
	for (int n = 0; n < NODES; n++)
		assert_near(r.peer[n].limit_w[0], MAX_W, 0); /* not yet */
	r.peer[0].unmanaged[0] = true;                       /* 500 W instead of 100 */
	tick(&r);
	assert_near(r.event[0].missing_w, 600, 1e-6);
	r.peer[0].unmanaged[0] = false;
	tick(&r);
	assert_near(r.event[0].missing_w, 200, 1e-6);
	tear_down(&r);
}

static void a_feasible_event_lacks_nothing(void **state)
{
	struct rig r;
	struct ww_event event;
	(void)state;
	set_up(&r);
	event = later(&r, 1, 1200, 600, 600);
	put(&r, WW_INPUT_EVENT, &event);
	step(&r);
	assert_near(r.event[0].missing_w, 0, 0);
	tear_down(&r);
}

static void what_cannot_be_kept_is_approached_and_nothing_rises(void **state)
{
	struct rig r;
	(void)state;
	set_up(&r);
	put_limit(&r, 1, SITE, 1000);
	run(&r, 20);
	assert_near(r.row[0].missing_w, 200, 1e-3);
	for (int n = 0; n < NODES; n++)
		for (int g = 0; g < GPUS; g++)
			assert_near(r.peer[n].limit_w[g], MIN_W, 0);
	assert_int_equal(gpu_of(&r, 0, 0)->why, WW_WHY_LOWEST);
	tear_down(&r);
}

static void floors_are_kept_while_they_can_be(void **state)
{
	struct rig r;
	(void)state;
	set_up(&r);
	for (int n = 0; n < NODES; n++) {
		struct ww_job job = job_of((uint64_t)n + 1, 0.5, 0.5);
		job.floor_frac = n == 0 ? 0.9 : 0.2;
		job.tier = n == 0 ? 1 : 3;
		place(&job, n, 0xf);
		put(&r, WW_INPUT_JOB, &job);
	}
	put_limit(&r, 1, SITE, 3600);
	run(&r, 40);
	assert_near(r.job[0].kept_floor_frac, 0.9, 1e-9);
	assert_true(r.job[0].throughput_frac >= 0.9 - 1e-6);
	assert_true(r.job[1].throughput_frac < 0.9);
	assert_int_equal(gpu_of(&r, 0, 0)->why, WW_WHY_FLOOR);
	put_limit(&r, 2, LEFT, 1400);
	run(&r, 40);
	assert_true(r.job[0].kept_floor_frac < 0.9);
	assert_int_equal(gpu_of(&r, 0, 0)->why, WW_WHY_RELAXED);
	assert_near(r.row[1].missing_w, 0, 0);
	tear_down(&r);
}

/* ---- Meters ------------------------------------------------------------------------------------------------------------- */

static void set_up_metered(struct rig *r)
{
	plan(r);
	r->rows[0].has_meter = true;
	r->rows[0].meter_boundary = WW_BOUNDARY_METER;
	r->rows[0].fixed_w[WW_BOUNDARY_METER] = 3000;
	r->rows[0].follow[WW_BOUNDARY_METER] = 0.1;
	r->rest_w = 900;
	begin(r);
	for (int n = 0; n < NODES; n++)
		put_job(r, (uint64_t)n + 1, n, 0.1, 0.5);
	adopt(r);
}

static struct ww_event cut_of(const struct rig *r, double cut_frac)
{
	struct ww_event event = event_of(r, 1, SITE, (double)NAN);
	event.cut_frac = cut_frac;
	event.boundary = WW_BOUNDARY_METER;
	return event;
}

static void a_cut_is_of_the_ten_minutes_before(void **state)
{
	struct rig r;
	struct ww_event event;
	double sum_w = 0;
	(void)state;
	set_up_metered(&r);
	r.rest_w = 4000;
	run(&r, 60); /* forgotten in ten minutes */
	for (int i = 0; i < 600; i++) {
		r.rest_w = 900 + i;
		tick(&r);
		sum_w += power_of(&r) + r.rest_w;
	}
	event = cut_of(&r, 0.25);
	put(&r, WW_INPUT_EVENT, &event);
	tick(&r);
	assert_near_rel(r.event[0].baseline_w, sum_w / 600, 0.01); /* to a minute that has begun */
	assert_near(r.event[0].limit_w, 0.75 * r.event[0].baseline_w, 1e-6);
	double baseline_w = r.event[0].baseline_w;
	run(&r, 60);
	event.version = 2;
	event.cut_frac = 0.3; /* of the same power, which the event itself does not change */
	put(&r, WW_INPUT_EVENT, &event);
	tick(&r);
	assert_near(r.event[0].baseline_w, baseline_w, 0);
	assert_near(r.event[0].limit_w, 0.7 * baseline_w, 1e-6);
	tear_down(&r);
}

static void a_cut_on_another_row_is_of_that_row(void **state)
{
	struct rig r;
	struct ww_event event;
	(void)state;
	set_up_metered(&r);
	event = cut_of(&r, 0.25);
	put(&r, WW_INPUT_EVENT, &event);
	event.version = 2;
	event.row = LEFT;
	refuse(&r, WW_INPUT_EVENT, &event, WW_ERR_NO_DATA, "'left' has no meter");
	tear_down(&r);
}

static void non_gpu_power_is_learned_and_follows(void **state)
{
	struct rig r;
	struct ww_event event;
	(void)state;
	set_up_metered(&r);
	event = event_of(&r, 1, SITE, 9000);
	event.boundary = WW_BOUNDARY_METER;
	put(&r, WW_INPUT_EVENT, &event);
	tick(&r);
	/* 900 by the meter instead of 3000 by the plan; a tenth of what charges are above the draw may follow. */
	assert_near(r.row[0].non_gpu_w, 900 + 0.1 * (6000 - power_of(&r)), 50);
	r.rest_w = 1400;
	run(&r, 40);
	assert_true(r.row[0].non_gpu_w >= 1400);
	r.rest_w = 700;
	run(&r, 60);
	assert_true(r.row[0].non_gpu_w >= 700 && r.row[0].non_gpu_w < 1100);
	tear_down(&r);
}

/* Readings that scatter leave a bound above their middle. */
static void a_bound_is_above_scattered_readings(void **state)
{
	struct rig r;
	struct ww_rng rng;
	struct ww_event event;
	(void)state;
	ww_rng_seed(&rng, 1);
	set_up_metered(&r);
	event = event_of(&r, 1, SITE, 20000);
	event.boundary = WW_BOUNDARY_METER;
	put(&r, WW_INPUT_EVENT, &event);
	for (int i = 0; i < 200; i++) {
		r.rest_w = 900 + 400 * (ww_rng_uniform(&rng) - 0.5);
		tick(&r);
		if (i > 40)
			assert_true(r.row[0].non_gpu_w - 0.1 * (r.row[0].charge_w - power_of(&r)) >= 930);
	}
	tear_down(&r);
}

static void a_silent_meter_leaves_its_last_bound(void **state)
{
	struct rig r;
	struct ww_event event;
	double non_gpu_w, declared_w;
	(void)state;
	set_up_metered(&r);
	event = event_of(&r, 1, SITE, 4900);
	event.boundary = WW_BOUNDARY_METER;
	put(&r, WW_INPUT_EVENT, &event);
	run(&r, 60);
	non_gpu_w = r.row[0].non_gpu_w;
	assert_near(r.row[0].power_w, power_of(&r) + 900, 0.01);
	r.rest_w = (double)NAN;
	run(&r, 58);
	assert_near(r.row[0].non_gpu_w, non_gpu_w, 60);
	assert_nan(r.row[0].power_w);
	assert_near(r.row[0].missing_w, 0, 0);
	put_meter(&r, SITE, (double)NAN);
	run(&r, 5);
	/* After a minute it bounds nothing alone: what the plan declares counts where that is more. */
	declared_w = 3000 + 0.1 * power_of(&r);
	assert_true(declared_w > non_gpu_w + 60);
	assert_true(r.row[0].non_gpu_w >= declared_w - 1); /* and what follows still lags */
	tear_down(&r);
}

/* A meter that is dead or turned round shows less than the GPUs behind it draw. */
static void a_meter_below_its_gpus_is_not_believed(void **state)
{
	(void)state;
	for (int k = 0; k < 2; k++) {
		struct rig r;
		struct ww_event event;
		double non_gpu_w;
		set_up_metered(&r);
		event = event_of(&r, 1, SITE, 4900);
		event.boundary = WW_BOUNDARY_METER;
		put(&r, WW_INPUT_EVENT, &event);
		run(&r, 60);
		non_gpu_w = r.row[0].non_gpu_w;
		r.rest_w = (double)NAN;
		for (int i = 0; i < 60; i++) {
			tick(&r);
			put_meter(&r, SITE, k ? -power_of(&r) - 900 : 0);
		}
		tick(&r);
		assert_true(r.row[0].non_gpu_w >= non_gpu_w - 60);
		assert_nan(r.row[0].power_w);
		tear_down(&r);
	}
}

static void without_a_meter_the_plan_counts(void **state)
{
	struct rig r;
	struct ww_event event;
	(void)state;
	plan(&r);
	r.rows[0].fixed_w[WW_BOUNDARY_IT] = 600;
	r.rows[0].follow[WW_BOUNDARY_IT] = 0.2;
	begin(&r);
	adopt(&r);
	event = event_of(&r, 1, SITE, 3600);
	event.boundary = WW_BOUNDARY_IT;
	put(&r, WW_INPUT_EVENT, &event);
	tick(&r);
	assert_near(r.row[0].non_gpu_w, 600 + 0.2 * 6000, 0.01); /* all that is charged */
	run(&r, 1500); /* what follows late has followed: charge + 600 + 0.2 charge <= 3600 */
	assert_true(r.row[0].charge_w * 1.2 + 600 <= 3600.5);
	assert_near(r.row[0].missing_w, 0, 0);
	tear_down(&r);
}

static void a_new_job_does_not_still_the_fans(void **state)
{
	struct rig r;
	struct ww_event event;
	double non_gpu_w;
	(void)state;
	plan(&r);
	r.rows[0].follow[WW_BOUNDARY_IT] = 0.2;
	begin(&r);
	adopt(&r);
	event = event_of(&r, 1, SITE, 3600);
	event.boundary = WW_BOUNDARY_IT;
	put(&r, WW_INPUT_EVENT, &event);
	run(&r, 20);
	non_gpu_w = r.row[0].non_gpu_w;
	assert_true(non_gpu_w > 0.2 * r.row[0].charge_w + 300); /* they follow within minutes */
	put_job(&r, 1, 0, 0.1, 0.5);
	put(&r, WW_INPUT_CONFIG, &r.config);
	tick(&r);
	assert_near(r.row[0].non_gpu_w, non_gpu_w, 20);
	tear_down(&r);
}

/* ---- The way back ------------------------------------------------------------------------------------------------------- */

static void budgets_are_given_back_in_staggered_steps(void **state)
{
	struct rig r;
	struct ww_event event;
	float before_w[NODES];
	int rises[NODES] = {0}, together = 0;
	(void)state;
	set_up(&r);
	event = later(&r, 1, 3000, 0, 60);
	put(&r, WW_INPUT_EVENT, &event);
	run(&r, 59);
	for (int n = 0; n < NODES; n++)
		before_w[n] = r.peer[n].limit_w[0];
	for (int i = 0; i < 300; i++) {
		int rose = 0;
		tick(&r);
		for (int n = 0; n < NODES; n++) {
			float up_w = r.peer[n].limit_w[0] - before_w[n];
			assert_true(up_w >= -0.01f && up_w <= 25.01f);
			rose += up_w > 0.01f;
			rises[n] += up_w > 0.01f;
			before_w[n] = r.peer[n].limit_w[0];
		}
		together += rose == NODES;
	}
	for (int n = 0; n < NODES; n++) {
		assert_near(before_w[n], MAX_W, 0.01); /* the recorded limit */
		assert_true(rises[n] >= 6);
	}
	assert_int_equal(together, 0);
	assert_int_equal(gpu_of(&r, 0, 0)->why, WW_WHY_NO_BUDGET);
	tear_down(&r);
}

static void the_way_back_ends_at_the_limit_that_was_found(void **state)
{
	struct rig r;
	struct ww_event event;
	(void)state;
	plan(&r);
	for (int n = 0; n < NODES; n++) {
		r.peer[n].recorded_w = 420;
		for (int g = 0; g < GPUS; g++)
			r.peer[n].limit_w[g] = 420;
	}
	begin(&r);
	put_job(&r, 1, 0, 0.1, 0.5);
	adopt(&r);
	event = later(&r, 1, 2400, 0, 30);
	put(&r, WW_INPUT_EVENT, &event);
	run(&r, 300);
	for (int n = 0; n < NODES; n++)
		assert_near(r.peer[n].limit_w[0], 420, 0.01);
	tear_down(&r);
}

static void a_staggered_gpu_says_so(void **state)
{
	struct rig r;
	struct ww_event event;
	(void)state;
	set_up(&r);
	event = later(&r, 1, 3000, 0, 30);
	put(&r, WW_INPUT_EVENT, &event);
	run(&r, 50);
	assert_int_equal(gpu_of(&r, 0, 0)->why, WW_WHY_STAGGER);
	assert_near(gpu_of(&r, 0, 0)->target_w, MAX_W, 0);
	tear_down(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_a_higher_version_changes_an_event),
		cmocka_unit_test(cancelled_before_it_starts_it_never_was),
		cmocka_unit_test(cancelled_while_it_lasts_it_ends),
		cmocka_unit_test(a_cancellation_may_overtake_its_event),
		cmocka_unit_test(an_event_can_be_made_harder_and_shorter_while_it_lasts),
		cmocka_unit_test(events_of_yesterday_are_forgotten),
		cmocka_unit_test(a_budget_falls_and_rises_in_ramps),
		cmocka_unit_test(protection_comes_at_once_and_goes_at_once),
		cmocka_unit_test(of_two_events_on_a_row_the_lower_counts),
		cmocka_unit_test(a_rows_own_limit_is_always_in_force),
		cmocka_unit_test(rows_are_kept_together),
		cmocka_unit_test(a_budget_names_its_boundary),
		cmocka_unit_test(an_event_that_cannot_be_kept_says_so_before_it_starts),
		cmocka_unit_test(a_feasible_event_lacks_nothing),
		cmocka_unit_test(what_cannot_be_kept_is_approached_and_nothing_rises),
		cmocka_unit_test(floors_are_kept_while_they_can_be),
		cmocka_unit_test(a_cut_is_of_the_ten_minutes_before),
		cmocka_unit_test(a_cut_on_another_row_is_of_that_row),
		cmocka_unit_test(non_gpu_power_is_learned_and_follows),
		cmocka_unit_test(a_bound_is_above_scattered_readings),
		cmocka_unit_test(a_silent_meter_leaves_its_last_bound),
		cmocka_unit_test(a_meter_below_its_gpus_is_not_believed),
		cmocka_unit_test(without_a_meter_the_plan_counts),
		cmocka_unit_test(a_new_job_does_not_still_the_fans),
		cmocka_unit_test(budgets_are_given_back_in_staggered_steps),
		cmocka_unit_test(the_way_back_ends_at_the_limit_that_was_found),
		cmocka_unit_test(a_staggered_gpu_says_so),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
