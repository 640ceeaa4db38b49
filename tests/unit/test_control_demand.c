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
	demand(&r, 0, DEMAND_W);
	run(&r, 60);
	tear_down(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(watts_that_a_job_does_not_draw_go_to_others),
		cmocka_unit_test(a_few_minutes_say_nothing),
		cmocka_unit_test(one_that_wants_more_again_gets_it),
		cmocka_unit_test(a_pause_is_not_what_it_wants),
		cmocka_unit_test(a_saved_state_knows_what_it_draws),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
