/* SPDX-License-Identifier: Apache-2.0 */
/* Commands: leases that carry what is known ahead, in time, decreases before increases, increases after the state is stored. */
#include "control_rig.h"

#define HOUR (3600 * SECOND)

static void change_limit(struct rig *r, uint32_t version, double limit_w)
{
	struct ww_event event = event_of(r, 1, SITE, limit_w);
	event.version = version;
	put(r, WW_INPUT_EVENT, &event);
}

static void set_up_capped(struct rig *r)
{
	set_up(r);
	put_division(r, WW_DIVISION_EQUAL);
	put_limit(r, 1, SITE, 3000);
	run(r, 10);
	put_saved(r, r->d.seq);
}

/* ---- Steps ahead ------------------------------------------------------------------------------------------------------ */

static void a_known_ramp_is_carried_ahead_in_steps(void **state)
{
	struct rig r;
	struct ww_event event;
	const struct ww_command *command;
	(void)state;
	set_up(&r);
	event = event_of(&r, 9, SITE, 3000); /* from 6000 W, that are charged now */
	event.start_us += 100 * SECOND;
	event.ramp_down_us = 40 * SECOND;
	put(&r, WW_INPUT_EVENT, &event);
	tick(&r);
	command = command_to(&r, 0);
	assert_non_null(command);
	assert_int_equal(command->n_steps, 5);
	assert_near(command->step[0].cap_w[0], MAX_W, 0);
	for (uint32_t k = 1; k < 5; k++) {
		int64_t at_us = event.start_us + (k - 1) * 10 * SECOND - LEAD;
		assert_int_equal(command->step[k].in_us, at_us - r.now.wall_us);
		for (int g = 0; g < GPUS; g++)
			assert_near(command->step[k].cap_w[g], (6000 - 750.0 * k) / 12, 0.01);
	}
	assert_int_equal(command->event, 9);
	assert_int_equal(command->release_ok, 0);
	tear_down(&r);
}

static void protection_knows_no_ramp(void **state)
{
	struct rig r;
	struct ww_event event;
	(void)state;
	set_up(&r);
	event = event_of(&r, 9, SITE, 3000);
	event.start_us += 100 * SECOND;
	event.ramp_down_us = 40 * SECOND;
	event.cls = WW_CLASS_PROTECTION;
	put(&r, WW_INPUT_EVENT, &event);
	tick(&r);
	assert_int_equal(command_to(&r, 0)->n_steps, 2);
	assert_int_equal(command_to(&r, 0)->step[1].in_us, 99 * SECOND - LEAD);
	assert_near(command_to(&r, 0)->step[1].cap_w[0], 250, 0.01);
	tear_down(&r);
}

static void nodes_off_the_row_are_left_alone(void **state)
{
	struct rig r;
	struct ww_event event;
	(void)state;
	set_up(&r);
	event = event_of(&r, 9, RIGHT, 2000);
	event.start_us += 100 * SECOND;
	put(&r, WW_INPUT_EVENT, &event);
	run(&r, 5);
	assert_int_equal(r.peer[0].lease.n_steps, 1);
	assert_int_equal(r.peer[0].lease.release_ok, 1);
	assert_int_equal(r.peer[1].lease.n_steps, 2);
	assert_int_equal(r.peer[2].lease.n_steps, 2);
	assert_int_equal(r.peer[2].lease.release_ok, 0);
	tear_down(&r);
}

/* Of more moments than a command can carry the last stand for all that come after. */
static void too_many_steps_end_at_the_lowest(void **state)
{
	struct rig r;
	(void)state;
	set_up(&r);
	for (uint64_t i = 0; i < 15; i++) {
		struct ww_event event = event_of(&r, 20 + i, SITE, 5700 - 200 * (double)i);
		event.start_us += (int64_t)(100 + 100 * i) * SECOND;
		put(&r, WW_INPUT_EVENT, &event);
	}
	tick(&r);
	for (int n = 0; n < NODES; n++) {
		const struct ww_command *command = command_to(&r, n);
		assert_int_equal(command->n_steps, WW_STEPS_MAX);
		assert_near(command->step[WW_STEPS_MAX - 1].cap_w[0], 2900.0 / 12, 0.01);
		for (uint32_t k = 1; k < command->n_steps; k++)
			assert_true(command->step[k].cap_w[0] < command->step[k - 1].cap_w[0]);
	}
	tear_down(&r);
}

static void a_budget_a_day_ahead_is_carried_when_the_day_has_come(void **state)
{
	struct rig r;
	struct ww_event event;
	(void)state;
	set_up(&r);
	event = event_of(&r, 9, SITE, 3000);
	event.start_us += 24 * HOUR + 60 * SECOND;
	put(&r, WW_INPUT_EVENT, &event);
	run(&r, 30);
	assert_int_equal(r.peer[0].lease.n_steps, 1);
	run(&r, 90);
	assert_int_equal(r.peer[0].lease.n_steps, 2);
	tear_down(&r);
}

/* At the moment of a step the node has done it before anybody tells it again. */
static void a_step_is_not_told_twice(void **state)
{
	struct rig r;
	struct ww_event event;
	(void)state;
	set_up(&r);
	put_division(&r, WW_DIVISION_EQUAL);
	event = event_of(&r, 9, SITE, 3000);
	event.start_us += 40 * SECOND;
	put(&r, WW_INPUT_EVENT, &event);
	run(&r, 38);
	assert_near(r.peer[0].limit_w[0], 250, 0.01);
	for (int i = 0; i < 60; i++) {
		tick(&r);
		assert_near(r.peer[0].limit_w[0], 250, 0.01);
		assert_near(r.row[0].missing_w, 0, 0);
	}
	tear_down(&r);
}

static void the_draw_is_down_when_the_budget_starts(void **state)
{
	struct rig r;
	struct ww_event event;
	(void)state;
	set_up(&r);
	event = event_of(&r, 9, SITE, 3000);
	event.start_us += 40 * SECOND;
	put(&r, WW_INPUT_EVENT, &event);
	run(&r, 39);
	assert_true(power_of(&r) <= 3000.01);
	assert_near(r.row[0].missing_w, 0, 0);
	assert_true(r.row[0].charge_w <= 3000.01);
	tear_down(&r);
}

/* ---- Renewal and retry ----------------------------------------------------------------------------------------------- */

/* No node goes longer than `most_us` without a command, and none is sent one sooner than `least_us` after the last. */
static void check_renewal(struct rig *r, int64_t least_us, int64_t most_us)
{
	struct ww_fence last[NODES] = {{0, 0}};
	int64_t sent_us[NODES];
	for (int n = 0; n < NODES; n++)
		sent_us[n] = r->now.mono_us;
	for (int i = 0; i < 100; i++) {
		tick(r);
		for (int n = 0; n < NODES; n++) {
			const struct ww_command *command = command_to(r, n);
			assert_true(r->now.mono_us - sent_us[n] <= most_us);
			if (!command)
				continue;
			assert_true(r->now.mono_us - sent_us[n] >= least_us || last[n].seq == 0);
			assert_int_equal(command->fence.epoch, EPOCH);
			assert_true(ww_fence_order(command->fence, last[n]) > 0);
			assert_int_equal(command->valid_for_us, r->config.valid_for_us);
			last[n] = command->fence;
			sent_us[n] = r->now.mono_us;
		}
	}
}

/* After a fourth of the silence in which it could have booted, but not within 4 s. */
static void a_proof_of_life_is_asked_for_in_time(void **state)
{
	static const int64_t boot_us[] = {15 * SECOND, 47 * SECOND};
	static const int64_t least_us[] = {4 * SECOND, 10 * SECOND}, most_us[] = {5 * SECOND, 11 * SECOND};
	(void)state;
	for (int k = 0; k < 2; k++) {
		struct rig r;
		plan(&r);
		for (int n = 0; n < NODES; n++)
			r.nodes[n].shortest_boot_us = boot_us[k];
		begin(&r);
		put_limit(&r, 1, SITE, 3000);
		run(&r, 20);
		check_renewal(&r, least_us[k], most_us[k]);
		tear_down(&r);
	}
}

static void leases_are_renewed_at_a_third(void **state)
{
	struct rig r;
	(void)state;
	plan(&r);
	r.config.valid_for_us = 9 * SECOND;
	begin(&r);
	put_job(&r, 1, 0, 0.1, 0.5);
	run(&r, 20);
	put_limit(&r, 1, SITE, 3000);
	run(&r, 10);
	check_renewal(&r, 2 * SECOND, 3 * SECOND);
	tear_down(&r);
}

static void a_command_without_an_answer_is_repeated_after_a_second(void **state)
{
	struct rig r;
	uint64_t seq;
	(void)state;
	set_up_capped(&r);
	r.peer[0].deaf = true;
	change_limit(&r, 2, 2000);
	tick(&r);
	seq = command_to(&r, 0)->fence.seq;
	pass(&r, SECOND / 2);
	step(&r);
	assert_null(command_to(&r, 0));
	pass(&r, SECOND / 2);
	step(&r);
	assert_non_null(command_to(&r, 0));
	assert_int_equal(command_to(&r, 0)->fence.seq, seq + 1);
	assert_near(command_to(&r, 0)->step[0].cap_w[0], 2000.0 / 12, 0.01);
	tear_down(&r);
}

static void a_node_that_forgot_is_told_again(void **state)
{
	struct rig r;
	(void)state;
	set_up_capped(&r);
	r.surprised = true;
	reboot(&r, 0, MAX_W);
	run(&r, 3);
	assert_near(r.peer[0].limit_w[0], 250, 0.5);
	tear_down(&r);
}

static void a_command_answers_the_newest_message(void **state)
{
	struct rig r;
	(void)state;
	set_up_capped(&r);
	change_limit(&r, 2, 2000);
	pass(&r, SECOND);
	listen(&r);
	step(&r);
	assert_int_equal(command_to(&r, 0)->answers_start_id, r.peer[0].start_id);
	assert_int_equal(command_to(&r, 0)->answers_seq, r.peer[0].seq);
	tear_down(&r);
}

static void where_leases_end_in_a_cap_it_is_the_one_in_force(void **state)
{
	struct rig r;
	(void)state;
	plan(&r);
	r.config.after = WW_AFTER_FAILCAP;
	begin(&r);
	put_job(&r, 1, 0, 0.1, 0.5);
	adopt(&r);
	put_limit(&r, 1, LEFT, 2000);
	run(&r, 20);
	for (int n = 0; n < NODES; n++) {
		assert_int_equal(r.peer[n].lease.after, WW_AFTER_FAILCAP);
		for (int g = 0; g < GPUS; g++)
			assert_near(r.peer[n].lease.failcap_w[g], gpu_of(&r, n, g)->cap_w, 0.01);
	}
	tear_down(&r);
}

static void only_a_leader_commands(void **state)
{
	struct rig r;
	struct ww_leader follower = {EPOCH, false};
	(void)state;
	set_up_capped(&r);
	put(&r, WW_INPUT_LEADER, &follower);
	change_limit(&r, 2, 2000);
	for (int i = 0; i < 5; i++) {
		tick(&r);
		assert_false(r.d.leads);
		assert_int_equal(r.d.n_commands, 0);
	}
	tear_down(&r);
}

/* ---- Decreases first --------------------------------------------------------------------------------------------------- */

/* Watts for one job come from another: not before they are read back as free. */
static void a_raise_waits_for_the_read_back(void **state)
{
	struct rig r;
	struct ww_job third;
	(void)state;
	set_up(&r);
	put_limit(&r, 1, SITE, 3000);
	run(&r, 60);
	third = job_of(3, 0.1, 2);
	place(&third, 2, 0xf);
	third.weight = 20;
	r.peer[0].mute = r.peer[1].mute = true;
	put(&r, WW_INPUT_JOB, &third);
	double before_w = r.peer[2].limit_w[0];
	run(&r, 8);
	assert_true(gpu_of(&r, 2, 0)->target_w > (float)before_w + 20);
	assert_near(r.peer[2].limit_w[0], before_w, 1); /* the others went down, but nobody knows */
	assert_true(r.row[0].charge_w <= 3000.01);
	r.peer[0].mute = r.peer[1].mute = false;
	run(&r, 30);
	assert_true(r.peer[2].limit_w[0] > (float)before_w + 20);
	assert_true(r.row[0].charge_w <= 3000.01);
	tear_down(&r);
}

/* Budgets, losses and silence at random: the checks of every second are the test. */
static void nothing_ever_rises_beyond_the_offer(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct rig r;
		struct ww_rng rng;
		ww_rng_seed(&rng, seed);
		set_up(&r);
		put_limit(&r, 1, SITE, 4000);
		for (uint32_t i = 0; i < 400; i++) {
			struct peer *p = &r.peer[ww_rng_below(&rng, NODES)];
			if (ww_rng_below(&rng, 8) == 0)
				change_limit(&r, 2 + i, 1500 + 500 * (double)ww_rng_below(&rng, 10));
			if (ww_rng_below(&rng, 6) == 0)
				p->deaf = !p->deaf;
			if (ww_rng_below(&rng, 6) == 0)
				p->mute = !p->mute;
			if (ww_rng_below(&rng, 20) == 0)
				r.disk_fails = !r.disk_fails;
			tick(&r);
			if (r.row[0].missing_w == 0)
				assert_true(r.row[0].charge_w <= r.row[0].budget_w * (1 + 1e-6));
		}
		tear_down(&r);
	}
}

/* ---- Stored first -------------------------------------------------------------------------------------------------------- */

static void a_raise_is_sent_only_after_it_is_stored(void **state)
{
	struct rig r;
	(void)state;
	set_up_capped(&r);
	r.disk_fails = true;
	change_limit(&r, 2, 5000);
	for (int i = 0; i < 10; i++) {
		tick(&r);
		for (uint32_t k = 0; k < r.d.n_commands; k++)
			assert_true(r.needs_save[k] && r.d.save);
	}
	assert_near(r.peer[0].limit_w[0], 250, 0.5);
	r.disk_fails = false;
	run(&r, 3);
	assert_near(r.peer[0].limit_w[0], 5000.0 / 12, 0.5);
	tear_down(&r);
}

static void a_decrease_needs_no_disk(void **state)
{
	struct rig r;
	(void)state;
	set_up_capped(&r);
	r.disk_fails = true;
	change_limit(&r, 2, 2000);
	tick(&r);
	assert_true(r.d.n_commands == NODES && !r.needs_save[0] && !r.needs_save[1] && !r.needs_save[2]);
	assert_near(r.peer[0].limit_w[0], 2000.0 / 12, 0.01);
	tear_down(&r);
}

static void an_old_decision_stored_late_frees_nothing(void **state)
{
	struct rig r;
	(void)state;
	set_up_capped(&r);
	r.disk_fails = true;
	change_limit(&r, 2, 5000);
	run(&r, 3);
	put_saved(&r, r.d.seq - 1);
	run(&r, 2);
	assert_non_null(command_to(&r, 0));
	assert_true(r.needs_save[0] && r.d.save);
	tear_down(&r);
}

/* What became known between a decision and the news that it is stored is not in what was stored. */
static void stored_is_what_the_decision_charged(void **state)
{
	struct rig r;
	uint64_t seq;
	(void)state;
	set_up_capped(&r);
	tick(&r);
	seq = r.d.seq;
	for (int g = 0; g < GPUS; g++)
		r.peer[0].limit_w[g] = 470;
	say_ack(&r, 0, (struct ww_fence){0, 0});
	put_saved(&r, seq);
	r.disk_fails = true;
	run(&r, 5); /* put right again */
	assert_near(gpu_of(&r, 0, 0)->charge_w, 250, 1);
	change_limit(&r, 2, 5000);
	tick(&r);
	for (uint32_t k = 0; k < r.d.n_commands; k++)
		assert_true(r.needs_save[k]);
	tear_down(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_known_ramp_is_carried_ahead_in_steps),
		cmocka_unit_test(protection_knows_no_ramp),
		cmocka_unit_test(nodes_off_the_row_are_left_alone),
		cmocka_unit_test(too_many_steps_end_at_the_lowest),
		cmocka_unit_test(a_budget_a_day_ahead_is_carried_when_the_day_has_come),
		cmocka_unit_test(a_step_is_not_told_twice),
		cmocka_unit_test(the_draw_is_down_when_the_budget_starts),
		cmocka_unit_test(a_proof_of_life_is_asked_for_in_time),
		cmocka_unit_test(leases_are_renewed_at_a_third),
		cmocka_unit_test(a_command_without_an_answer_is_repeated_after_a_second),
		cmocka_unit_test(a_node_that_forgot_is_told_again),
		cmocka_unit_test(a_command_answers_the_newest_message),
		cmocka_unit_test(where_leases_end_in_a_cap_it_is_the_one_in_force),
		cmocka_unit_test(only_a_leader_commands),
		cmocka_unit_test(a_raise_waits_for_the_read_back),
		cmocka_unit_test(nothing_ever_rises_beyond_the_offer),
		cmocka_unit_test(a_raise_is_sent_only_after_it_is_stored),
		cmocka_unit_test(a_decrease_needs_no_disk),
		cmocka_unit_test(an_old_decision_stored_late_frees_nothing),
		cmocka_unit_test(stored_is_what_the_decision_charged),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
