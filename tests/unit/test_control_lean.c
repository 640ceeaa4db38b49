/* SPDX-License-Identifier: Apache-2.0 */
/* One job, one sum of watts: the GPUs of a job that wait for the slowest give it what they do not draw. */
#include "control_rig.h"

static const float chips[GPUS] = {1.04f, 1.0f, 0.98f, 0.94f}; /* watts for the same pace */

/* The pace that the caps of a node allow: in watts of a GPU with chip 1. */
static float pace_with(const struct peer *p, const float *chip)
{
	float pace = P0_W;
	for (int g = 0; g < GPUS; g++)
		pace = fminf(pace, p->limit_w[g] / chip[g]);
	return pace;
}

static float pace_of(const struct peer *p)
{
	return pace_with(p, chips);
}

static void live_with(struct rig *r, int seconds, const float *chip)
{
	for (int i = 0; i < seconds; i++) {
		for (int g = 0; g < GPUS; g++)
			r->peer[0].demand_w[g] = chip[g] * pace_with(&r->peer[0], chip);
		tick(r);
	}
}

static void live(struct rig *r, int seconds)
{
	live_with(r, seconds, chips);
}

/* A job on the first node, which may draw this much; the other GPUs have none and are at their lowest. */
static void cut_to(struct rig *r, double w)
{
	begin(r);
	put_job(r, 1, 0, 0.1, 0.5);
	adopt(r);
	put_limit(r, 1, SITE, w + 8 * MIN_W);
	live(r, 5);
}

static float sum_of_targets(struct rig *r)
{
	float w = 0;
	for (int g = 0; g < GPUS; g++)
		w += gpu_of(r, 0, g)->target_w;
	return w;
}

/* In each second the targets are the share, in whole watts more or less than an equal cap, and the decision says so. */
static void live_and_hold(struct rig *r, int seconds, float share_w)
{
	for (int i = 0; i < seconds; i++) {
		live(r, 1);
		assert_near(sum_of_targets(r), share_w, 1e-3);
		for (int g = 0; g < GPUS; g++) {
			const struct ww_gpu_decision *gpu = gpu_of(r, 0, g);
			assert_near(gpu->target_w - share_w / GPUS, gpu->trim_w, 1e-3);
			assert_near(gpu->trim_w, roundf(gpu->trim_w), 0);
			assert_true(gpu->target_w >= MIN_W && gpu->target_w <= MAX_W);
		}
	}
}

static void hold_even(const struct rig *r, float w)
{
	for (int g = 0; g < GPUS; g++)
		assert_near(r->peer[0].limit_w[g], w, 0.01);
}

static void all_reach_the_same_pace(void **state)
{
	struct rig r;
	(void)state;
	plan(&r);
	cut_to(&r, 1200);
	hold_even(&r, 300);
	assert_near(pace_of(&r.peer[0]), 300 / 1.04, 0.5);
	live_and_hold(&r, 60, 1200);
	assert_true(pace_of(&r.peer[0]) >= 1200 / (1.04f + 1 + 0.98f + 0.94f) - 1.5f);
	assert_true(gpu_of(&r, 0, 0)->trim_w > 8);
	assert_true(gpu_of(&r, 0, 3)->trim_w < -10);
	tear_down(&r);
}

/* What is left is noise: once even, nothing is written for nothing. */
static void then_they_stay(void **state)
{
	struct rig r;
	float had[GPUS];
	(void)state;
	plan(&r);
	cut_to(&r, 1200);
	live(&r, 120);
	memcpy(had, r.peer[0].limit_w, sizeof had);
	live(&r, 200);
	for (int g = 0; g < GPUS; g++)
		assert_near(r.peer[0].limit_w[g], had[g], 0);
	tear_down(&r);
}

/* Each state that is stored serves all of them. */
static void small_raises_go_together(void **state)
{
	struct rig r;
	float had[GPUS];
	int raises = 0, stored = 0;
	(void)state;
	plan(&r);
	cut_to(&r, 1200);
	live(&r, 2);
	for (int i = 0; i < 60; i++) {
		for (int g = 0; g < GPUS; g++)
			had[g] = gpu_of(&r, 0, g)->cap_w;
		live(&r, 1);
		for (int g = 0; g < GPUS; g++) {
			bool rises = gpu_of(&r, 0, g)->cap_w > had[g];
			raises += rises;
			assert_true(!rises || r.d.seq % 5 == 0);
		}
		stored += r.d.save;
	}
	assert_true(raises >= 2 && stored <= 12);
	tear_down(&r);
}

/* Another share: the same moves in proportion, in the same step. */
static void moves_follow_the_share(void **state)
{
	struct rig r;
	(void)state;
	plan(&r);
	cut_to(&r, 1200);
	live(&r, 60);
	put_limit(&r, 2, SITE, 800 + 8 * MIN_W);
	live_and_hold(&r, 1, 800);
	assert_near(gpu_of(&r, 0, 0)->trim_w, 0.05 * 200, 2);
	assert_near(gpu_of(&r, 0, 3)->trim_w, -0.05 * 200, 2);
	live_and_hold(&r, 30, 800);
	tear_down(&r);
}

static void without_trim_caps_are_equal(void **state)
{
	struct rig r;
	(void)state;
	plan(&r);
	r.config.trim = WW_TRIM_OFF;
	cut_to(&r, 1200);
	live_and_hold(&r, 60, 1200);
	hold_even(&r, 300);
	r.config.trim = WW_TRIM_ON;
	put(&r, WW_INPUT_CONFIG, &r.config);
	live(&r, 60);
	assert_true(r.peer[0].limit_w[0] > 308);
	r.config.trim = WW_TRIM_OFF;
	put(&r, WW_INPUT_CONFIG, &r.config);
	live(&r, 8);
	hold_even(&r, 300);
	tear_down(&r);
}

/* The other node of a job is another one now, and nothing is known of its GPUs: nothing is moved for that. */
static void a_node_put_back_moves_nothing(void **state)
{
	struct rig r;
	struct ww_job job = job_of(1, 0.1, 0.5);
	struct ww_config without;
	(void)state;
	plan(&r);
	begin(&r);
	place(&job, 0, 0xf);
	place(&job, 1, 0xf);
	put(&r, WW_INPUT_JOB, &job);
	adopt(&r);
	put_limit(&r, 1, SITE, 2400 + 4 * MIN_W);
	for (int i = 0; i < 200; i++) {
		for (int g = 0; g < GPUS; g++)
			r.peer[0].demand_w[g] = r.peer[1].demand_w[g] = P0_W;
		if (i == 60) {
			without = r.config;
			without.n_nodes = 1;
			put(&r, WW_INPUT_CONFIG, &without);
			put(&r, WW_INPUT_CONFIG, &r.config);
		}
		tick(&r);
		for (int g = 0; g < GPUS; g++)
			assert_near(gpu_of(&r, 0, g)->trim_w, 0, 1);
	}
	tear_down(&r);
}

/* A job that stands still draws little on all its GPUs, each another part of its cap. */
static void a_pause_moves_nothing(void **state)
{
	struct rig r;
	(void)state;
	plan(&r);
	cut_to(&r, 1200);
	for (int i = 0; i < 60; i++) {
		for (int g = 0; g < GPUS; g++)
			r.peer[0].demand_w[g] = 100 + 10 * (float)g;
		tick(&r);
	}
	hold_even(&r, 300);
	tear_down(&r);
}

/* The slowest is held by something else than its cap: more watts are of no use to it. */
static void heat_moves_nothing(void **state)
{
	struct rig r;
	(void)state;
	plan(&r);
	cut_to(&r, 1200);
	for (int i = 0; i < 60; i++) {
		for (int g = 0; g < GPUS; g++)
			r.peer[0].demand_w[g] = chips[g] * 270;
		tick(&r);
	}
	hold_even(&r, 300);
	tear_down(&r);
}

/* A GPU that does not work neither takes part nor keeps the others from it. */
static void an_idle_gpu_keeps_its_watts(void **state)
{
	struct rig r;
	(void)state;
	plan(&r);
	cut_to(&r, 1200);
	for (int i = 0; i < 60; i++) {
		float pace = fminf(r.peer[0].limit_w[0] / chips[0], r.peer[0].limit_w[2] / chips[2]);
		pace = fminf(pace, r.peer[0].limit_w[3] / chips[3]);
		for (int g = 0; g < GPUS; g++)
			r.peer[0].demand_w[g] = g == 1 ? 70 : chips[g] * pace;
		tick(&r);
	}
	assert_near(r.peer[0].limit_w[1], 300, 1);
	assert_true(r.peer[0].limit_w[0] > 308 && r.peer[0].limit_w[3] < 290);
	assert_near(sum_of_targets(&r), 1200, 1e-3);
	tear_down(&r);
}

/* Boards that are alike, with sensors that are not: what scatters is no difference. */
static void noise_moves_little(void **state)
{
	struct rig r;
	struct ww_rng rng;
	(void)state;
	plan(&r);
	ww_rng_seed(&rng, 1);
	cut_to(&r, 1200);
	put_job(&r, 1, 0, 0.1, 0.5);
	for (int i = 0; i < 300; i++) {
		for (int g = 0; g < GPUS; g++) {
			r.peer[0].defiant[g] = true;
			r.peer[0].demand_w[g] = r.peer[0].limit_w[g] * (float)(0.98 + 0.04 * ww_rng_uniform(&rng));
		}
		tick(&r);
		for (int g = 0; g < GPUS; g++)
			assert_near(gpu_of(&r, 0, g)->trim_w, 0, 3);
	}
	tear_down(&r);
}

/* A GPU that works again needs readings of its own before anything moves by them. */
static void who_works_again_is_measured_first(void **state)
{
	struct rig r;
	(void)state;
	plan(&r);
	cut_to(&r, 1200);
	for (int i = 0; i < 40; i++) {
		for (int g = 0; g < GPUS; g++)
			r.peer[0].demand_w[g] = g == 3 && i < 35 ? 70 : 500;
		if (i >= 35)
			r.peer[0].demand_w[3] = 0.97f * r.peer[0].limit_w[3];
		tick(&r);
		assert_near(gpu_of(&r, 0, 3)->trim_w, 0, 0);
	}
	tear_down(&r);
}

/* What was not read back says nothing. */
static void a_gpu_without_read_back_is_left_out(void **state)
{
	struct rig r;
	(void)state;
	plan(&r);
	r.peer[0].blind[2] = true;
	cut_to(&r, 1200);
	float trim_w = 0;
	for (int i = 0; i < 60; i++) {
		live(&r, 1);
		assert_near(gpu_of(&r, 0, 2)->trim_w, 0, 0);
	}
	for (int g = 0; g < GPUS; g++)
		trim_w += gpu_of(&r, 0, g)->trim_w;
	assert_near(trim_w, 0, 0);
	tear_down(&r);
}

/* What a silent partner had is not given to others: the watts that are left have moves of their own. */
static void beside_an_unmanaged_gpu_the_sum_stays(void **state)
{
	struct rig r;
	(void)state;
	plan(&r);
	cut_to(&r, 1200);
	live(&r, 60);
	r.peer[0].unmanaged[3] = true;
	live(&r, 2);
	float trim_w = 0;
	for (int g = 0; g < 3; g++)
		trim_w += gpu_of(&r, 0, g)->trim_w;
	assert_near(trim_w, 0, 0);
	assert_near(gpu_of(&r, 0, 3)->trim_w, 0, 0);
	tear_down(&r);
}

/* One is no longer steered in the second in which another one begins to be: as many watts for as many GPUs, but other ones. */
static void other_gpus_have_moves_of_their_own(void **state)
{
	struct rig r;
	(void)state;
	plan(&r);
	r.peer[0].unmanaged[3] = true;
	cut_to(&r, 1400);
	live(&r, 100);
	assert_true(gpu_of(&r, 0, 0)->trim_w > 5);
	r.peer[0].unmanaged[3] = false;
	r.peer[0].unmanaged[0] = true;
	for (int i = 0; i < 12; i++) {
		live(&r, 1);
		float trim_w = 0;
		for (int g = 1; g < GPUS; g++)
			trim_w += gpu_of(&r, 0, g)->trim_w;
		assert_near(trim_w, 0, 0);
		assert_near(gpu_of(&r, 0, 0)->trim_w, 0, 0);
	}
	tear_down(&r);
}

/* However unlike the boards are: also those that take what many others give. */
static void no_move_is_above_a_part_of_a_cap(void **state)
{
	static const float one_needs_more[GPUS] = {1, 0.62f, 0.62f, 0.62f};
	static const float one_needs_less[GPUS] = {1, 1, 1, 0.62f};
	static const float *const both[] = {one_needs_more, one_needs_less};
	(void)state;
	for (int k = 0; k < 2; k++) {
		struct rig r;
		float most_w = 0;
		plan(&r);
		cut_to(&r, 1210);
		for (int i = 0; i < 120; i++) {
			live_with(&r, 1, both[k]);
			assert_near(sum_of_targets(&r), 1210, 1e-3);
			for (int g = 0; g < GPUS; g++)
				most_w = fmaxf(most_w, fabsf(gpu_of(&r, 0, g)->trim_w));
		}
		assert_true(most_w > 43 && most_w <= 0.15f * 1210 / GPUS);
		tear_down(&r);
	}
}

static void a_job_told_anew_begins_evenly(void **state)
{
	struct rig r;
	(void)state;
	plan(&r);
	cut_to(&r, 1200);
	live(&r, 120);
	assert_true(r.peer[0].limit_w[0] > 305);
	put_job(&r, 1, 0, 0.2, 0.5);
	live(&r, 4);
	hold_even(&r, 300);
	tear_down(&r);
}

/* From any second on the twin decides the same bytes: in the middle of a mean, and around each move. */
static void a_saved_state_knows_of_it(void **state)
{
	struct rig r;
	(void)state;
	plan(&r);
	cut_to(&r, 1200);
	for (int i = 0; i < 30; i++) {
		split(&r);
		live(&r, 1 + i % 3);
	}
	live(&r, 60);
	tear_down(&r);
}

/* No GPU goes below its lowest limit, however little it draws, and what it cannot give no other one is promised. */
static void lowest_limits_hold(void **state)
{
	struct rig r;
	(void)state;
	plan(&r);
	cut_to(&r, 410);
	live_and_hold(&r, 120, 410);
	assert_near(r.peer[0].limit_w[3], 100.5, 0.01);
	tear_down(&r);
}

/* Nor above the limit that was found on it. */
static void ceilings_hold(void **state)
{
	struct rig r;
	(void)state;
	plan(&r);
	for (int g = 0; g < GPUS; g++)
		r.peer[0].limit_w[g] = 305;
	cut_to(&r, 1200);
	live_and_hold(&r, 120, 1200);
	assert_near(r.peer[0].limit_w[0], 305, 0.01);
	tear_down(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_reach_the_same_pace),
		cmocka_unit_test(then_they_stay),
		cmocka_unit_test(small_raises_go_together),
		cmocka_unit_test(moves_follow_the_share),
		cmocka_unit_test(without_trim_caps_are_equal),
		cmocka_unit_test(a_node_put_back_moves_nothing),
		cmocka_unit_test(a_pause_moves_nothing),
		cmocka_unit_test(heat_moves_nothing),
		cmocka_unit_test(an_idle_gpu_keeps_its_watts),
		cmocka_unit_test(noise_moves_little),
		cmocka_unit_test(who_works_again_is_measured_first),
		cmocka_unit_test(a_gpu_without_read_back_is_left_out),
		cmocka_unit_test(beside_an_unmanaged_gpu_the_sum_stays),
		cmocka_unit_test(other_gpus_have_moves_of_their_own),
		cmocka_unit_test(no_move_is_above_a_part_of_a_cap),
		cmocka_unit_test(lowest_limits_hold),
		cmocka_unit_test(ceilings_hold),
		cmocka_unit_test(a_job_told_anew_begins_evenly),
		cmocka_unit_test(a_saved_state_knows_of_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
