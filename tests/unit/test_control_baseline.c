/* SPDX-License-Identifier: Apache-2.0 */
/* The power before an event, from meters that are late, silent or wrong for a while. */
#include "control_rig.h"

#define REST_W 1000

static void plan_metered(struct rig *r)
{
	plan(r);
	r->rows[0].has_meter = true;
	r->rows[0].meter_boundary = WW_BOUNDARY_METER;
}

static void set_up_metered(struct rig *r)
{
	plan_metered(r);
	r->rest_w = REST_W;
	begin(r);
	for (int n = 0; n < NODES; n++)
		put_job(r, (uint64_t)n + 1, n, 0.1, 0.5);
	adopt(r);
	run(r, 620);
}

static void demand(struct rig *r, float w)
{
	for (int n = 0; n < NODES; n++)
		for (int g = 0; g < GPUS; g++)
			r->peer[n].demand_w[g] = w;
}

/* A reading of so many seconds ago. */
static void put_late(struct rig *r, double power_w, int late_s)
{
	struct ww_meter meter = {SITE, {(float)power_w, (uint16_t)(1000 * late_s), WW_READING_OK}};
	put(r, WW_INPUT_METER, &meter);
}

static const struct ww_event_decision *cut_now(struct rig *r)
{
	struct ww_event event = event_of(r, 1, SITE, (double)NAN);
	event.cut_frac = 0.25;
	event.boundary = WW_BOUNDARY_METER;
	put(r, WW_INPUT_EVENT, &event);
	tick(r);
	assert_int_equal(r->d.n_events, 1);
	return &r->event[0];
}

static void what_the_meter_did_not_say_is_estimated_by_the_draw(void **state)
{
	struct rig r;
	(void)state;
	set_up_metered(&r);
	double high_w = power_of(&r) + REST_W;
	r.rest_w = (double)NAN;
	demand(&r, 240);
	run(&r, 300);
	r.rest_w = REST_W;
	const struct ww_event_decision *event = cut_now(&r);
	assert_near_rel(event->baseline_w, (high_w + NODES * GPUS * 240 + REST_W) / 2, 0.015);
	assert_near(event->measured_frac, 0.5, 0.05);
	assert_near(event->limit_w, 0.75 * event->baseline_w, 1e-6);
	tear_down(&r);
}

static void late_readings_count_when_they_were_taken(void **state)
{
	struct rig r;
	double then_w[11];
	(void)state;
	set_up_metered(&r);
	double high_w = power_of(&r) + REST_W;
	for (int i = 0; i <= 10; i++)
		then_w[i] = high_w;
	r.rest_w = (double)NAN;
	for (int i = 0; i < 600; i++) {
		demand(&r, i < 300 ? 480 : 240);
		tick(&r);
		memmove(then_w + 1, then_w, 10 * sizeof *then_w);
		then_w[0] = power_of(&r) + REST_W;
		put_late(&r, then_w[10], 10);
	}
	const struct ww_event_decision *event = cut_now(&r);
	assert_near_rel(event->baseline_w, (high_w + NODES * GPUS * 240 + REST_W) / 2, 0.02);
	assert_true(event->measured_frac > 0.9);
	tear_down(&r);
}

static void a_meter_that_was_always_late_gives_a_baseline(void **state)
{
	struct rig r;
	(void)state;
	plan_metered(&r);
	begin(&r);
	adopt(&r);
	for (int i = 0; i < 300; i++) {
		tick(&r);
		put_late(&r, 6000, 20);
	}
	assert_near(cut_now(&r)->baseline_w, 6000, 1);
	tear_down(&r);
}

static void a_reading_that_is_far_off_counts_for_nothing(void **state)
{
	struct rig r;
	(void)state;
	set_up_metered(&r);
	double power_w = power_of(&r) + REST_W;
	put_meter(&r, SITE, 6.5e6);
	put_late(&r, 6.5e6, 30);
	run(&r, 60);
	assert_near_rel(cut_now(&r)->baseline_w, power_w, 1e-3);
	tear_down(&r);
}

static void a_reading_that_cannot_be_is_refused(void **state)
{
	struct rig r;
	struct ww_meter meter = {SITE, {1e30f, 0, WW_READING_OK}};
	(void)state;
	set_up_metered(&r);
	refuse(&r, WW_INPUT_METER, &meter, WW_ERR_RANGE, "meter: power_w is 1e+30 W");
	tear_down(&r);
}

static void few_readings_measure_little(void **state)
{
	struct rig r;
	(void)state;
	set_up_metered(&r);
	double power_w = power_of(&r) + REST_W;
	r.rest_w = (double)NAN;
	for (int i = 0; i < 620; i++) {
		tick(&r);
		if (i % 20 == 0)
			put_meter(&r, SITE, power_w);
	}
	put_late(&r, 9999, 60); /* which is not what the row draws now */
	const struct ww_event_decision *event = cut_now(&r);
	assert_near_rel(event->baseline_w, power_w, 0.02);
	assert_true(event->measured_frac < 0.1);
	assert_false(r.row[0].power_w > 9000);
	tear_down(&r);
}

static void a_few_seconds_of_readings_say_so(void **state)
{
	struct rig r;
	(void)state;
	plan_metered(&r);
	begin(&r);
	adopt(&r);
	r.rest_w = REST_W;
	run(&r, 5);
	const struct ww_event_decision *event = cut_now(&r);
	assert_false(isnan(event->baseline_w));
	assert_true(event->measured_frac <= 0.07);
	tear_down(&r);
}

/* Although nothing happened for which the state had to be stored. */
static void a_successor_knows_the_power_of_before(void **state)
{
	struct rig r;
	struct ww_buf disk = {0};
	(void)state;
	set_up_metered(&r);
	double power_w = power_of(&r) + REST_W;
	for (int i = 0; i < 600; i++) {
		tick(&r);
		if (r.d.save)
			save(&r, &disk);
	}
	assert_int_equal(ww_control_load(r.control, &disk, NULL), WW_OK);
	lead(&r, EPOCH + 1);
	r.d.seq = 0;
	memset(r.gpu, 0, sizeof r.gpu);
	copy_decision(&r, ww_control_step(r.control, r.now));
	const struct ww_event_decision *event = cut_now(&r);
	assert_near_rel(event->baseline_w, power_w, 0.01);
	assert_true(event->measured_frac > 0.85);
	ww_buf_finish(&disk);
	tear_down(&r);
}

/* A twin from the state decides the same while the meter has been silent for long. */
static void a_silent_meter_is_old_in_a_saved_state_too(void **state)
{
	struct rig r;
	(void)state;
	set_up_metered(&r);
	r.rest_w = (double)NAN;
	run(&r, 700);
	split(&r);
	struct ww_event event = event_of(&r, 1, SITE, 4000);
	event.boundary = WW_BOUNDARY_METER;
	event.start_us += 2 * SECOND;
	event.ramp_down_us = 600 * SECOND;
	put(&r, WW_INPUT_EVENT, &event);
	run(&r, 60);
	tear_down(&r);
}

/* Readings that come before the first step after a load count as they would have. */
static void readings_count_the_same_after_a_load(void **state)
{
	struct rig r;
	(void)state;
	set_up_metered(&r);
	r.peer[2].mute = r.peer[2].deaf = true; /* the draw of the row is not known */
	run(&r, 120);
	double power_w = 0.8 * (power_of(&r) + REST_W);
	split(&r);
	for (int i = 0; i < 30; i++) {
		pass(&r, SECOND);
		put_meter(&r, SITE, power_w);
	}
	cut_now(&r);
	run(&r, 5);
	tear_down(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_meter_did_not_say_is_estimated_by_the_draw),
		cmocka_unit_test(late_readings_count_when_they_were_taken),
		cmocka_unit_test(a_meter_that_was_always_late_gives_a_baseline),
		cmocka_unit_test(a_reading_that_is_far_off_counts_for_nothing),
		cmocka_unit_test(a_reading_that_cannot_be_is_refused),
		cmocka_unit_test(few_readings_measure_little),
		cmocka_unit_test(a_few_seconds_of_readings_say_so),
		cmocka_unit_test(a_successor_knows_the_power_of_before),
		cmocka_unit_test(a_silent_meter_is_old_in_a_saved_state_too),
		cmocka_unit_test(readings_count_the_same_after_a_load),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
