/* SPDX-License-Identifier: Apache-2.0 */
/* One job, one sum of watts: the GPUs of a job that wait for the slowest give it what they do not draw. */
#include "control_rig.h"

static const float chips[GPUS] = {1.04f, 1.0f, 0.98f, 0.94f}; /* watts for the same pace */

/* The pace that the caps of the first node allow: in watts of a GPU with chip 1. */
static float pace_of(const struct peer *p)
{
	float pace = P0_W;
	for (int g = 0; g < GPUS; g++)
		pace = fminf(pace, p->limit_w[g] / chips[g]);
	return pace;
}

static void live(struct rig *r, int seconds)
{
	for (int i = 0; i < seconds; i++) {
		for (int g = 0; g < GPUS; g++)
			r->peer[0].demand_w[g] = chips[g] * pace_of(&r->peer[0]);
		tick(r);
	}
}

/* A job on the first node, which may draw this much; the other GPUs have none and are at their lowest. */
static void cut_to(struct rig *r, double w)
{
	plan(r);
	begin(r);
	put_job(r, 1, 0, 0.1, 0.5);
	adopt(r);
	put_limit(r, 1, SITE, w + 8 * MIN_W);
	live(r, 8);
}

static float sum_of(const struct peer *p)
{
	return p->limit_w[0] + p->limit_w[1] + p->limit_w[2] + p->limit_w[3];
}

static void all_reach_the_same_pace(void **state)
{
	struct rig r;
	(void)state;
	cut_to(&r, 1200);
	for (int g = 0; g < GPUS; g++)
		assert_near(r.peer[0].limit_w[g], 300, 0.5);
	assert_near(pace_of(&r.peer[0]), 300 / 1.04, 0.5);
	live(&r, 120);
	assert_near(pace_of(&r.peer[0]), 1200 / (1.04 + 1 + 0.98 + 0.94), 3);
	assert_true(sum_of(&r.peer[0]) <= 1200.1f);
	assert_true(sum_of(&r.peer[0]) >= 1195);
	tear_down(&r);
}

/* What is left is noise: once even, nothing is written for nothing. */
static void then_they_stay(void **state)
{
	struct rig r;
	float had[GPUS];
	(void)state;
	cut_to(&r, 1200);
	live(&r, 120);
	memcpy(had, r.peer[0].limit_w, sizeof had);
	live(&r, 60);
	for (int g = 0; g < GPUS; g++)
		assert_near(r.peer[0].limit_w[g], had[g], 0);
	tear_down(&r);
}

/* A job that stands still draws little on all its GPUs, each another part of its cap. */
static void a_pause_moves_nothing(void **state)
{
	struct rig r;
	(void)state;
	cut_to(&r, 1200);
	for (int i = 0; i < 60; i++) {
		for (int g = 0; g < GPUS; g++)
			r.peer[0].demand_w[g] = 100 + 10 * (float)g;
		tick(&r);
	}
	for (int g = 0; g < GPUS; g++)
		assert_near(r.peer[0].limit_w[g], 300, 0.5);
	tear_down(&r);
}

static void a_job_told_again_begins_evenly(void **state)
{
	struct rig r;
	(void)state;
	cut_to(&r, 1200);
	live(&r, 120);
	assert_true(r.peer[0].limit_w[0] > 305);
	put_job(&r, 1, 0, 0.1, 0.5);
	live(&r, 4);
	for (int g = 0; g < GPUS; g++)
		assert_near(r.peer[0].limit_w[g], 300, 1);
	tear_down(&r);
}

static void a_saved_state_knows_of_it(void **state)
{
	struct rig r;
	(void)state;
	cut_to(&r, 1200);
	live(&r, 17);
	split(&r);
	live(&r, 60);
	tear_down(&r);
}

/* No GPU goes below its lowest limit, however little it draws, and what it cannot give no other one is promised. */
static void lowest_limits_hold(void **state)
{
	struct rig r;
	float targets_w = 0;
	(void)state;
	cut_to(&r, 410);
	live(&r, 120);
	for (int g = 0; g < GPUS; g++) {
		assert_true(r.peer[0].limit_w[g] >= MIN_W);
		targets_w += gpu_of(&r, 0, g)->target_w;
	}
	assert_near(targets_w, 410, 0.1);
	assert_near(r.peer[0].limit_w[3], MIN_W, 0.1);
	tear_down(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_reach_the_same_pace),        cmocka_unit_test(then_they_stay),
		cmocka_unit_test(a_pause_moves_nothing),          cmocka_unit_test(lowest_limits_hold),
		cmocka_unit_test(a_job_told_again_begins_evenly), cmocka_unit_test(a_saved_state_knows_of_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
