/* SPDX-License-Identifier: Apache-2.0 */
/* What is counted for a GPU: whatever its board may come to obey. */
#include "control_rig.h"

#define SILENCE (BOOT - SETTLE - 5 * SECOND) /* without proof for so long, a machine may have booted */

/* Capped: 3000 of 6000 W on the site, all settled. */
static void set_up_capped(struct rig *r)
{
	set_up(r);
	put_division(r, WW_DIVISION_EQUAL);
	put_limit(r, 1, SITE, 3000);
	run(r, 10);
	assert_near(charge_of(r, 0), 1000, 1);
}

/* Another budget for the site from now on. */
static void change_limit(struct rig *r, uint32_t version, double limit_w)
{
	struct ww_event event = event_of(r, 1, SITE, limit_w);
	event.version = version;
	put(r, WW_INPUT_EVENT, &event);
}

static void a_node_never_heard_counts_its_maximum(void **state)
{
	struct rig r;
	(void)state;
	plan(&r);
	begin(&r);
	step(&r);
	assert_near(r.row[0].charge_w, NODES * GPUS * MAX_W, 0);
	assert_near(r.row[1].charge_w, 1.5 * GPUS * MAX_W, 0); /* half of the node on both feeds */
	assert_near(r.row[2].charge_w, 1.5 * GPUS * MAX_W, 0);
	tear_down(&r);
}

static void a_raise_counts_the_moment_it_is_sent(void **state)
{
	struct rig r;
	(void)state;
	set_up_capped(&r);
	r.peer[0].deaf = true;
	change_limit(&r, 2, 5000);
	tick(&r);
	assert_non_null(command_to(&r, 0));
	assert_near(charge_of(&r, 0), 5000.0 / 3, 1);
	assert_near(r.peer[0].limit_w[0], 250, 0.5);
	tear_down(&r);
}

static void watts_are_free_after_read_back_and_hold(void **state)
{
	struct rig r;
	(void)state;
	set_up(&r);
	put_limit(&r, 1, SITE, 3000);
	step(&r);
	deliver(&r); /* acknowledged with the new limit read back, not held yet */
	assert_true(r.peer[0].limit_w[0] < 300);
	step(&r);
	assert_near(gpu_of(&r, 0, 0)->charge_w, MAX_W, 0);
	pass(&r, SECOND / 2);
	listen(&r);
	step(&r);
	assert_near(gpu_of(&r, 0, 0)->charge_w, MAX_W, 0);
	pass(&r, SECOND / 2);
	step(&r); /* held by now, but nobody said so */
	assert_near(gpu_of(&r, 0, 0)->charge_w, MAX_W, 0);
	listen(&r);
	step(&r);
	assert_true(gpu_of(&r, 0, 0)->charge_w < 300);
	tear_down(&r);
}

static void a_limit_not_read_back_frees_nothing(void **state)
{
	struct rig r;
	(void)state;
	set_up(&r);
	r.peer[0].blind[1] = true;
	put_limit(&r, 1, SITE, 3000);
	run(&r, 30);
	assert_near(gpu_of(&r, 0, 1)->charge_w, MAX_W, 0);
	assert_true(gpu_of(&r, 0, 0)->charge_w < 300);
	r.peer[0].blind[1] = false;
	run(&r, 3);
	assert_true(gpu_of(&r, 0, 1)->charge_w < 300);
	tear_down(&r);
}

static void a_draw_above_the_limit_counts(void **state)
{
	struct rig r;
	(void)state;
	set_up(&r);
	r.peer[0].defiant[2] = true;
	put_limit(&r, 1, SITE, 3000);
	run(&r, 30);
	assert_near(gpu_of(&r, 0, 2)->charge_w, DEMAND_W, 1e-3);
	assert_true(gpu_of(&r, 0, 2)->cap_w < 300);
	tear_down(&r);
}

static void an_older_command_counts_until_a_later_one_is_accepted(void **state)
{
	struct rig r;
	struct ww_command high;
	(void)state;
	set_up_capped(&r);
	r.peer[0].deaf = true;
	change_limit(&r, 2, 5000);
	tick(&r);
	high = *command_to(&r, 0);
	change_limit(&r, 3, 3000);
	run(&r, 3);
	assert_near(charge_of(&r, 0), 5000.0 / 3, 1);
	accept(&r, &r.peer[0], &high); /* late, but the highest that came */
	hold_truth(&r);
	run(&r, 3);
	assert_near(charge_of(&r, 0), 5000.0 / 3, 1);
	r.peer[0].deaf = false;
	run(&r, 3);
	assert_near(charge_of(&r, 0), 1000, 1);
	tear_down(&r);
}

static void many_lost_commands_are_merged_not_forgotten(void **state)
{
	struct rig r;
	struct ww_command high;
	(void)state;
	set_up_capped(&r);
	r.peer[0].deaf = true;
	change_limit(&r, 2, 5000);
	tick(&r);
	high = *command_to(&r, 0);
	for (uint32_t i = 0; i < 20; i++) {
		change_limit(&r, 3 + i, i % 2 ? 3000 : 2800);
		tick(&r);
		assert_non_null(command_to(&r, 0));
	}
	assert_near(charge_of(&r, 0), 5000.0 / 3, 1);
	accept(&r, &r.peer[0], &high);
	hold_truth(&r);
	r.peer[0].deaf = false;
	run(&r, 3);
	assert_true(charge_of(&r, 0) <= 1000);
	run(&r, 20); /* others went lower in its place, until it obeyed for a while */
	assert_near(charge_of(&r, 0), 1000, 1);
	tear_down(&r);
}

static void granted_steps_count_until_they_are_shown_passed(void **state)
{
	struct rig r;
	struct ww_event event;
	(void)state;
	set_up(&r);
	event = event_of(&r, 1, SITE, 3000);
	event.start_us += 40 * SECOND;
	put(&r, WW_INPUT_EVENT, &event);
	run(&r, 35);
	assert_near(charge_of(&r, 0), GPUS * MAX_W, 0);
	r.peer[0].mute = true;
	tick(&r);
	assert_null(command_to(&r, 0));
	assert_near(r.peer[0].limit_w[0], 250, 1); /* its node went down alone */
	assert_near(charge_of(&r, 0), GPUS * MAX_W, 0);
	r.peer[0].mute = false;
	tick(&r);
	assert_near(charge_of(&r, 0), 1000, 1);
	tear_down(&r);
}

static void what_a_node_will_write_again_counts(void **state)
{
	struct rig r;
	(void)state;
	set_up_capped(&r);
	r.peer[0].still = true;
	for (int g = 0; g < GPUS; g++)
		r.peer[0].goal_w[g] = 400;
	r.peer[0].lease.n_steps = 0; /* or it would set them right */
	run(&r, 5);
	assert_near(charge_of(&r, 0), GPUS * 400, 1e-3);
	tear_down(&r);
}

/* Accepted, but its journal is not written yet: neither limit nor goal show it. */
static void an_accepted_raise_counts_before_it_is_carried_out(void **state)
{
	struct rig r;
	struct ww_command raise;
	(void)state;
	set_up_capped(&r);
	change_limit(&r, 2, 5000);
	pass(&r, SECOND);
	listen(&r);
	step(&r);
	raise = *command_to(&r, 0);
	r.peer[0].seen = raise.fence;
	r.peer[0].step = 0;
	say_ack(&r, 0, raise.fence);
	change_limit(&r, 3, 3000); /* of which it does not hear in time */
	for (int i = 0; i < 2; i++) {
		step(&r);
		assert_near(charge_of(&r, 0), 5000.0 / 3, 1);
	}
	for (int g = 0; g < GPUS; g++)
		set_limit(&r, &r.peer[0], g, raise.step[0].cap_w[g]);
	hold_truth(&r);
	tear_down(&r);
}

static void a_foreign_raise_counts_at_once(void **state)
{
	struct rig r;
	(void)state;
	set_up_capped(&r);
	r.peer[0].limit_w[3] = 470;
	r.peer[0].changed_us[3] = r.now.wall_us;
	say_ack(&r, 0, (struct ww_fence){0, 0});
	step(&r);
	assert_near(gpu_of(&r, 0, 3)->charge_w, 470, 1e-3);
	assert_true(r.row[0].missing_w > 200);
	tear_down(&r);
}

static void an_unmanaged_gpu_counts_its_maximum(void **state)
{
	struct rig r;
	(void)state;
	set_up_capped(&r);
	r.peer[0].unmanaged[0] = true;
	tick(&r);
	assert_near(gpu_of(&r, 0, 0)->charge_w, MAX_W, 0);
	assert_int_equal(gpu_of(&r, 0, 0)->why, WW_WHY_UNMANAGED);
	r.peer[0].unmanaged[0] = false;
	run(&r, 5);
	assert_near(r.row[0].charge_w, 3000, 1);
	tear_down(&r);
}

/* Runs until the node has accepted a command in this very second; its time is the last proof there will be. */
static int64_t last_proof(struct rig *r, int n)
{
	for (int i = 0; i < 30; i++) {
		tick(r);
		if (command_to(r, n))
			return r->now.mono_us;
	}
	fail_msg("no command in 30 s");
	return 0;
}

static void check_silence(bool deaf, bool mute)
{
	struct rig r;
	int64_t proof_us;
	set_up_capped(&r);
	proof_us = last_proof(&r, 0);
	r.peer[0].deaf = deaf;
	r.peer[0].mute = mute;
	while (r.now.mono_us + SECOND - proof_us < SILENCE) {
		tick(&r);
		assert_near(charge_of(&r, 0), 1000, 1);
	}
	tick(&r);
	assert_near(charge_of(&r, 0), GPUS * MAX_W, 0);
	assert_int_equal(gpu_of(&r, 0, 0)->why, WW_WHY_SILENT);
	assert_near(r.row[0].missing_w, 1000, 1);
	run(&r, 5); /* the others make room */
	assert_near(charge_of(&r, 0), GPUS * MAX_W, 0);
	assert_near(r.row[0].missing_w, 0, 0);
	r.peer[0].deaf = r.peer[0].mute = false;
	run(&r, 10);
	assert_near(charge_of(&r, 0), 1000, 1);
	tear_down(&r);
}

static void silence_counts_a_boot_when_there_was_time_for_one(void **state)
{
	(void)state;
	check_silence(true, true);
}

/* Messages come, but show no command that was sent lately: they may be old. */
static void proof_is_a_command_accepted_not_a_message(void **state)
{
	(void)state;
	check_silence(true, false);
}

static void a_declared_boot_cap_is_what_a_boot_brings(void **state)
{
	struct rig r;
	(void)state;
	plan(&r);
	r.nodes[0].boot_cap_w = 200;
	r.nodes[2].boot_cap_w = 300;
	begin(&r);
	adopt(&r);
	put_limit(&r, 1, SITE, 3000);
	run(&r, 10);
	r.peer[0].mute = r.peer[0].deaf = r.peer[1].mute = r.peer[1].deaf = r.peer[2].mute = r.peer[2].deaf = true;
	run(&r, (int)(BOOT / SECOND));
	assert_near(gpu_of(&r, 0, 0)->charge_w, 200, 0);
	assert_near(gpu_of(&r, 1, 0)->charge_w, MAX_W, 0);
	assert_near(gpu_of(&r, 2, 0)->charge_w, 300, 0);
	tear_down(&r);
}

static void a_boot_never_surprises(void **state)
{
	struct rig r;
	(void)state;
	set_up_capped(&r);
	(void)last_proof(&r, 0);
	r.peer[0].mute = r.peer[0].deaf = true;
	run(&r, (int)(BOOT / SECOND) - 1);
	reboot(&r, 0, MAX_W);
	r.peer[0].mute = r.peer[0].deaf = false;
	hold_truth(&r);
	tick(&r); /* says hello, and is told its caps again */
	run(&r, 5);
	assert_near(charge_of(&r, 0), 1000, 1);
	assert_near(r.row[0].missing_w, 0, 0);
	tear_down(&r);
}

/* Machines go down without a word and come up at their default, losses and budgets at random meanwhile. */
static void boots_at_random_never_surprise(void **state)
{
	int boots = 0;
	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct rig r;
		struct ww_rng rng;
		int64_t up_us[NODES] = {0};
		ww_rng_seed(&rng, seed);
		set_up_capped(&r);
		for (uint32_t i = 0; i < 1500; i++) {
			int n = (int)ww_rng_below(&rng, NODES);
			if (up_us[n] == 0 && ww_rng_below(&rng, 100) == 0) {
				r.peer[n].mute = r.peer[n].deaf = true;
				up_us[n] = r.now.mono_us + BOOT + (int64_t)ww_rng_below(&rng, 60) * SECOND;
			} else if (up_us[n] == 0 && ww_rng_below(&rng, 10) == 0) {
				r.peer[n].mute = ww_rng_below(&rng, 2);
				r.peer[n].deaf = ww_rng_below(&rng, 2);
			}
			for (n = 0; n < NODES; n++)
				if (up_us[n] > 0 && r.now.mono_us >= up_us[n]) {
					reboot(&r, n, MAX_W);
					r.peer[n].mute = r.peer[n].deaf = false;
					up_us[n] = 0;
					boots++;
				}
			if (ww_rng_below(&rng, 20) == 0)
				change_limit(&r, 2 + i, 1500 + 500 * (double)ww_rng_below(&rng, 10));
			tick(&r);
		}
		tear_down(&r);
	}
	assert_true(boots > 50);
}

/* A lease that ends with restoring counts what it restores, though command after command is sent into the void. */
static void a_lease_that_restores_counts_what_it_restores(void **state)
{
	struct rig r;
	(void)state;
	plan(&r);
	r.config.after = WW_AFTER_RESTORE;
	for (int n = 0; n < NODES; n++)
		r.nodes[n].shortest_boot_us = 600 * SECOND;
	begin(&r);
	adopt(&r);
	put_limit(&r, 1, SITE, 3000);
	run(&r, 10);
	assert_true(charge_of(&r, 0) <= 1000.1);
	r.peer[0].deaf = r.peer[0].mute = true;
	run(&r, (int)(LEASE / SECOND) + 5); /* its board restores; hold_truth watches */
	assert_near(charge_of(&r, 0), GPUS * MAX_W, 0);
	tear_down(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_node_never_heard_counts_its_maximum),
		cmocka_unit_test(a_raise_counts_the_moment_it_is_sent),
		cmocka_unit_test(watts_are_free_after_read_back_and_hold),
		cmocka_unit_test(a_limit_not_read_back_frees_nothing),
		cmocka_unit_test(a_draw_above_the_limit_counts),
		cmocka_unit_test(an_older_command_counts_until_a_later_one_is_accepted),
		cmocka_unit_test(many_lost_commands_are_merged_not_forgotten),
		cmocka_unit_test(granted_steps_count_until_they_are_shown_passed),
		cmocka_unit_test(what_a_node_will_write_again_counts),
		cmocka_unit_test(an_accepted_raise_counts_before_it_is_carried_out),
		cmocka_unit_test(a_foreign_raise_counts_at_once),
		cmocka_unit_test(an_unmanaged_gpu_counts_its_maximum),
		cmocka_unit_test(silence_counts_a_boot_when_there_was_time_for_one),
		cmocka_unit_test(proof_is_a_command_accepted_not_a_message),
		cmocka_unit_test(a_declared_boot_cap_is_what_a_boot_brings),
		cmocka_unit_test(a_boot_never_surprises),
		cmocka_unit_test(boots_at_random_never_surprise),
		cmocka_unit_test(a_lease_that_restores_counts_what_it_restores),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
