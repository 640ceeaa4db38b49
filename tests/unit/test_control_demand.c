/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that draw less than their curves say: what caps they get, and how they get more again. */
#include "control_rig.h"

#define CALM_W 240.0f
#define ENOUGH_W 4900 /* for the others, if the calm one leaves what it does not draw */

static void demand(struct rig *r, int node, float w)
{
	for (int g = 0; g < GPUS; g++)
		r->peer[node].demand_w[g] = w;
}

/* The first job has been calm for so long. */
static void set_up_calm(struct rig *r, int seconds)
{
	set_up(r);
	demand(r, 0, CALM_W);
	run(r, seconds);
}

static void watts_that_a_job_does_not_draw_go_to_others(void **state)
{
	struct rig r;
	(void)state;
	set_up_calm(&r, 3700);
	put_limit(&r, 1, SITE, ENOUGH_W);
	run(&r, 120);
	assert_near(gpu_of(&r, 0, 0)->cap_w, CALM_W + 10, 1);
	assert_near(gpu_of(&r, 1, 0)->cap_w, P0_W, 1);
	assert_near(r.row[0].missing_w, 0, 0);
	tear_down(&r);
}

static void a_few_minutes_say_nothing(void **state)
{
	struct rig r;
	(void)state;
	set_up(&r);
	run(&r, 3600);
	demand(&r, 0, CALM_W);
	run(&r, 300);
	put_limit(&r, 1, SITE, ENOUGH_W);
	run(&r, 60);
	assert_true(gpu_of(&r, 0, 0)->cap_w > 350);
	tear_down(&r);
}

static void one_that_wants_more_again_gets_it(void **state)
{
	struct rig r;
	(void)state;
	set_up_calm(&r, 3700);
	put_limit(&r, 1, SITE, ENOUGH_W);
	run(&r, 60);
	demand(&r, 0, DEMAND_W);
	for (int i = 0; i < 90; i++) {
		tick(&r);
		assert_near(r.row[0].missing_w, 0, 0);
	}
	assert_true(gpu_of(&r, 0, 0)->cap_w > 350);
	assert_true(r.row[0].charge_w > ENOUGH_W - 12);
	tear_down(&r);
}

/* While a job is cut, one that draws little and makes no tokens pauses. */
static void a_pause_is_not_what_it_wants(void **state)
{
	struct rig r;
	(void)state;
	set_up(&r);
	put_limit(&r, 1, SITE, 3000);
	run(&r, 60);
	float cap_w = gpu_of(&r, 0, 0)->cap_w;
	demand(&r, 0, 110);
	r.peer[0].tps = 0;
	run(&r, 1800);
	assert_near(gpu_of(&r, 0, 0)->cap_w, cap_w, 1);
	tear_down(&r);
}

/* While a job draws little its cap is low; it wakes to find what it was promised. */
static void a_promise_is_in_the_watts_of_its_curve(void **state)
{
	struct rig r;
	struct ww_job job = job_of(1, 0.1, 0.5);
	(void)state;
	set_up(&r);
	job.floor_frac = 0.9; /* at a cut of 0.358, 308 W */
	place(&job, 0, 0xf);
	put(&r, WW_INPUT_JOB, &job);
	demand(&r, 0, 200);
	run(&r, 3700);
	put_limit(&r, 1, SITE, 3600);
	run(&r, 60);
	assert_true(gpu_of(&r, 0, 0)->cap_w < 215);
	demand(&r, 0, DEMAND_W);
	run(&r, 60);
	assert_true(gpu_of(&r, 0, 0)->cap_w > 305);
	assert_near(r.job[0].kept_floor_frac, 0.9, 1e-6);
	tear_down(&r);
}

static void none_counts_with_less_than_its_lowest_limit(void **state)
{
	struct rig r;
	(void)state;
	set_up(&r);
	demand(&r, 0, 30);
	demand(&r, 1, 30);
	run(&r, 3700);
	put_limit(&r, 1, SITE, 1700);
	run(&r, 60);
	assert_near(r.row[0].missing_w, 0, 0);
	for (int i = 0; i < 120; i++) {
		demand(&r, 0, i % 8 < 4 ? MIN_W : 30);
		demand(&r, 1, i % 8 < 4 ? MIN_W : 30);
		tick(&r);
		assert_true(power_of(&r) <= 1700.01);
	}
	tear_down(&r);
}

static void one_without_a_curve_that_begins_low_counts_as_it_grows(void **state)
{
	struct rig r;
	(void)state;
	plan(&r);
	begin(&r);
	for (int n = 0; n < NODES; n++) {
		struct ww_job job = job_of((uint64_t)n + 1, 0.1, 0.5);
		job.has_curve = n == 2;
		place(&job, n, 0xf);
		put(&r, WW_INPUT_JOB, &job);
		demand(&r, n, n == 2 ? DEMAND_W : 30);
	}
	adopt(&r);
	put_limit(&r, 1, SITE, 1700);
	run(&r, 60);
	demand(&r, 0, MIN_W);
	demand(&r, 1, MIN_W);
	run(&r, 60);
	for (int i = 0; i < 60; i++) {
		tick(&r);
		assert_true(power_of(&r) <= 1700.01);
		assert_near(r.row[0].missing_w, 0, 0);
	}
	tear_down(&r);
}

static void a_pause_before_an_event_says_nothing(void **state)
{
	struct rig r;
	(void)state;
	set_up(&r);
	run(&r, 3600);
	demand(&r, 0, 150);
	r.peer[0].tps = 0;
	run(&r, 3700);
	put_limit(&r, 1, SITE, ENOUGH_W);
	run(&r, 60);
	assert_true(gpu_of(&r, 0, 0)->cap_w > 350);
	tear_down(&r);
}

static void told_with_another_curve_it_is_measured_anew(void **state)
{
	struct rig r;
	(void)state;
	set_up_calm(&r, 3700);
	put_job(&r, 1, 0, 0.2, 0.5);
	put_limit(&r, 1, SITE, ENOUGH_W);
	run(&r, 60);
	assert_true(gpu_of(&r, 0, 0)->cap_w > 350);
	tear_down(&r);
}

static void what_bursts_is_not_lowered(void **state)
{
	struct rig r;
	(void)state;
	set_up(&r);
	for (int i = 0; i < 7300; i++) {
		if (i == 3700)
			put_limit(&r, 1, SITE, 5900);
		demand(&r, 0, i % 6 < 3 ? DEMAND_W : 200);
		tick(&r);
	}
	assert_near(gpu_of(&r, 0, 0)->cap_w, P0_W, 1);
	tear_down(&r);
}

/* Under a cut nobody can see whether it wants more: after ten minutes it gets its share to show it. */
static void under_a_cut_it_gets_more_now_and_then(void **state)
{
	struct rig r;
	(void)state;
	set_up_calm(&r, 3700);
	put_limit(&r, 1, SITE, 3000);
	run(&r, 60);
	float low_w = gpu_of(&r, 0, 0)->cap_w;
	demand(&r, 0, DEMAND_W);
	run(&r, 500);
	assert_near(gpu_of(&r, 0, 0)->cap_w, low_w, 2);
	run(&r, 200);
	assert_true(gpu_of(&r, 0, 0)->cap_w > low_w + 5);
	tear_down(&r);
}

static void a_saved_state_knows_what_it_draws(void **state)
{
	struct rig r;
	(void)state;
	set_up_calm(&r, 700);
	split(&r);
	run(&r, 130);
	put_limit(&r, 1, SITE, 4200);
	run(&r, 30);
	split(&r);
	put_limit(&r, 2, SITE, 3000);
	run(&r, 30);
	demand(&r, 0, DEMAND_W);
	for (int i = 0; i < 20; i++) {
		split(&r);
		run(&r, 3);
	}
	tear_down(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(watts_that_a_job_does_not_draw_go_to_others),
		cmocka_unit_test(a_few_minutes_say_nothing),
		cmocka_unit_test(one_that_wants_more_again_gets_it),
		cmocka_unit_test(a_pause_is_not_what_it_wants),
		cmocka_unit_test(a_promise_is_in_the_watts_of_its_curve),
		cmocka_unit_test(none_counts_with_less_than_its_lowest_limit),
		cmocka_unit_test(one_without_a_curve_that_begins_low_counts_as_it_grows),
		cmocka_unit_test(a_pause_before_an_event_says_nothing),
		cmocka_unit_test(told_with_another_curve_it_is_measured_anew),
		cmocka_unit_test(what_bursts_is_not_lowered),
		cmocka_unit_test(under_a_cut_it_gets_more_now_and_then),
		cmocka_unit_test(a_saved_state_knows_what_it_draws),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
