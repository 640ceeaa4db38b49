/* SPDX-License-Identifier: Apache-2.0 */
/* Another controller takes over; bad input and damaged states are refused and change nothing. */
#include "control_rig.h"

/* ---- Taking over ------------------------------------------------------------------------------------------------------ */

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

/* The controller's machine is gone; `later_us` after that another one, whose clock began anew, has the saved state. */
static void lose_controller(struct rig *r, int64_t later_us)
{
	struct ww_buf saved = {0};
	save(r, &saved);
	ww_control_destroy(r->control);
	pass(r, later_us);
	r->now.mono_us = 17 * SECOND;
	assert_int_equal(ww_control_create(&r->control, NULL), WW_OK);
	assert_int_equal(ww_control_load(r->control, &saved, NULL), WW_OK);
	ww_buf_finish(&saved);
}

static void a_new_leader_raises_nothing_for_a_lease(void **state)
{
	struct rig r;
	(void)state;
	set_up_capped(&r);
	lose_controller(&r, 5 * SECOND);
	lead(&r, EPOCH + 1);
	change_limit(&r, 2, 5000);
	for (int i = 0; i < LEASE / SECOND - 1; i++) {
		tick(&r);
		for (int n = 0; n < NODES; n++)
			assert_true(r.peer[n].limit_w[0] <= 250.01f);
	}
	assert_int_equal(r.peer[0].seen.epoch, EPOCH + 1);
	run(&r, 5);
	assert_near(r.peer[0].limit_w[0], 5000.0 / 12, 1);
	tear_down(&r);
}

static void a_new_leader_lowers_at_once(void **state)
{
	struct rig r;
	(void)state;
	set_up_capped(&r);
	lose_controller(&r, 5 * SECOND);
	lead(&r, EPOCH + 1);
	change_limit(&r, 2, 2000);
	run(&r, 6);
	assert_true(r.row[0].charge_w <= 2000.01);
	assert_true(power_of(&r) <= 2000.01);
	tear_down(&r);
}

/* Due at once, not at a time of the machine that is gone. */
static void a_new_leader_is_due_by_its_own_clock(void **state)
{
	struct rig r;
	(void)state;
	set_up_capped(&r);
	lose_controller(&r, 5 * SECOND);
	lead(&r, EPOCH + 1);
	assert_true(ww_control_due_us(r.control) <= r.now.mono_us + SECOND);
	step(&r);
	assert_int_equal(ww_control_due_us(r.control), r.now.mono_us + SECOND);
	tear_down(&r);
}

static void a_message_of_an_older_epoch_frees_nothing(void **state)
{
	struct rig r;
	(void)state;
	set_up_capped(&r);
	lose_controller(&r, 5 * SECOND);
	lead(&r, EPOCH + 1);
	for (int g = 0; g < GPUS; g++) {
		r.peer[0].deaf = true; /* has not heard of the new leader */
		set_limit(&r, &r.peer[0], g, 120);
	}
	r.peer[0].lease.n_steps = 0;
	run(&r, 2);
	assert_near(charge_of(&r, 0), 1000, 1);
	run(&r, 8); /* not greeted back: it may have booted while nobody led */
	assert_near(charge_of(&r, 0), GPUS * MAX_W, 0);
	assert_int_equal(gpu_of(&r, 0, 0)->why, WW_WHY_ADOPTING);
	tear_down(&r);
}

static void a_higher_limit_counts_whoever_says_so(void **state)
{
	struct rig r;
	(void)state;
	set_up_capped(&r);
	lose_controller(&r, 5 * SECOND);
	lead(&r, EPOCH + 1);
	r.peer[0].deaf = true;
	r.peer[0].lease.n_steps = 0;
	r.peer[0].limit_w[2] = 444;
	tick(&r);
	assert_near(gpu_of(&r, 0, 2)->charge_w, 444, 1e-3);
	assert_near(gpu_of(&r, 0, 1)->charge_w, 250, 1);
	tear_down(&r);
}

static void commands_of_the_old_leader_still_count(void **state)
{
	struct rig r;
	struct ww_command high;
	(void)state;
	set_up_capped(&r);
	r.peer[0].deaf = true;
	change_limit(&r, 2, 5000);
	tick(&r);
	high = *command_to(&r, 0);
	lose_controller(&r, 5 * SECOND);
	lead(&r, EPOCH + 1);
	change_limit(&r, 3, 3000);
	run(&r, 3);
	accept(&r, &r.peer[0], &high);
	hold_truth(&r);
	r.peer[0].deaf = false;
	run(&r, 5);
	assert_true(charge_of(&r, 0) <= 1000.01);
	tear_down(&r);
}

/* How long a node was silent before, only the clocks of other machines tell. */
static void who_does_not_greet_a_new_leader_may_have_booted(void **state)
{
	static const int64_t shift[] = {0, -3600 * SECOND, 3600 * SECOND};
	(void)state;
	for (int k = 0; k < 3; k++) {
		struct rig r;
		set_up_capped(&r);
		for (int n = 0; n < NODES; n++)
			r.peer[n].deaf = r.peer[n].mute = true;
		lose_controller(&r, 5 * SECOND);
		r.now.wall_us += shift[k];
		lead(&r, EPOCH + 1);
		tick(&r);
		if (shift[k] <= 0)
			assert_near(charge_of(&r, 0), 1000, 1);
		run(&r, 4);
		assert_near(charge_of(&r, 0), GPUS * MAX_W, 0);
		tear_down(&r);
	}
}

/* Nodes obey another leader by now: what they show says nothing about the commands sent here. */
static void a_leader_that_was_replaced_believes_nobody(void **state)
{
	struct rig r;
	(void)state;
	set_up_capped(&r);
	for (int n = 0; n < NODES; n++) {
		r.peer[n].seen = (struct ww_fence){EPOCH + 1, 1};
		r.peer[n].lease.n_steps = 0;
		for (int g = 0; g < GPUS; g++)
			set_limit(&r, &r.peer[n], g, 120);
	}
	run(&r, 5);
	for (int n = 0; n < NODES; n++)
		assert_near(charge_of(&r, n), GPUS * MAX_W, 0);
	assert_int_equal(gpu_of(&r, 0, 0)->why, WW_WHY_ADOPTING);
	tear_down(&r);
}

static void the_same_leader_again_changes_nothing(void **state)
{
	struct rig r;
	(void)state;
	set_up_capped(&r);
	lead(&r, EPOCH);
	change_limit(&r, 2, 5000);
	run(&r, 5);
	assert_near(r.peer[0].limit_w[0], 5000.0 / 12, 1);
	tear_down(&r);
}

static void an_older_leader_is_old_news(void **state)
{
	struct rig r;
	(void)state;
	set_up_capped(&r);
	lead(&r, EPOCH - 1);
	change_limit(&r, 2, 5000);
	run(&r, 5);
	assert_int_equal(r.peer[0].seen.epoch, EPOCH);
	assert_near(r.peer[0].limit_w[0], 5000.0 / 12, 1);
	tear_down(&r);
}

/* The next one must count what this one found in force. */
static void that_someone_leads_is_stored(void **state)
{
	struct rig r;
	(void)state;
	set_up_capped(&r);
	step(&r);
	put_saved(&r, r.d.seq);
	lead(&r, EPOCH);
	step(&r);
	assert_false(r.d.save);
	lead(&r, EPOCH + 1);
	step(&r);
	assert_true(r.d.save);
	put_saved(&r, r.d.seq);
	step(&r);
	assert_false(r.d.save);
	tear_down(&r);
}

/* A raise on its way would be forgotten if it counted as superseded by a command that was never sent. */
static void what_was_never_sent_supersedes_nothing(void **state)
{
	struct rig r;
	struct ww_sample sample = {.n_gpus = GPUS};
	(void)state;
	set_up_capped(&r);
	r.peer[0].deaf = true;
	change_limit(&r, 2, 5000);
	tick(&r);
	change_limit(&r, 3, 3000);
	tick(&r);
	sample.from = envelope_of(&r.peer[0]);
	states_of(&r, &r.peer[0], sample.gpus);
	sample.from.seen.seq = UINT64_MAX - 1;
	refuse(&r, WW_INPUT_SAMPLE, &sample, WW_ERR_INVALID, "'n1' shows command 5.184");
	tick(&r);
	assert_near(charge_of(&r, 0), 5000.0 / 3, 1);
	r.peer[0].deaf = false;
	run(&r, 3);
	assert_near(charge_of(&r, 0), 1000, 1);
	tear_down(&r);
}

/* ---- Inventory ---------------------------------------------------------------------------------------------------------- */

static void a_new_inventory_keeps_what_is_known(void **state)
{
	struct rig r;
	(void)state;
	set_up_capped(&r);
	r.rows[2].limit_w = 1400;
	put(&r, WW_INPUT_CONFIG, &r.config);
	tick(&r);
	assert_near(charge_of(&r, 0), 1000, 1);
	assert_true(r.row[2].budget_w == 1400);
	run(&r, 10);
	assert_true(r.row[2].charge_w <= 1400.01);
	tear_down(&r);
}

static void a_new_node_counts_its_maximum(void **state)
{
	struct rig r;
	(void)state;
	plan(&r);
	r.config.n_nodes = 2;
	begin(&r);
	r.peer[2].mute = true;
	for (int i = 0; i < 70; i++) {
		pass(&r, SECOND);
		listen(&r);
		copy_decision(&r, ww_control_step(r.control, r.now));
		deliver(&r);
	}
	assert_near(r.row[0].charge_w, 4000, 1);
	r.config.n_nodes = 3;
	put(&r, WW_INPUT_CONFIG, &r.config);
	step(&r);
	assert_near(r.row[0].charge_w, 6000, 1);
	tear_down(&r);
}

/* ---- Bad input ---------------------------------------------------------------------------------------------------------- */

static void the_inventory_comes_first(void **state)
{
	struct rig r;
	struct ww_leader leader = {1, true};
	(void)state;
	plan(&r);
	refuse(&r, WW_INPUT_LEADER, &leader, WW_ERR_INVALID, "inventory");
	assert_int_equal(ww_control_step(r.control, r.now)->n_commands, 0);
	tear_down(&r);
}

static void bad_messages_change_nothing(void **state)
{
	struct rig r;
	struct ww_sample sample = {.n_gpus = GPUS};
	struct ww_ack ack = {.n_gpus = GPUS};
	struct ww_hello hello = {.n_gpus = GPUS};
	(void)state;
	set_up_capped(&r);
	sample.from = envelope_of(&r.peer[0]);
	states_of(&r, &r.peer[0], sample.gpus);
	ack.from = hello.from = sample.from;
	r.now.mono_us += SECOND;
	r.now.wall_us += SECOND;

	sample.from.node = 77;
	refuse(&r, WW_INPUT_SAMPLE, &sample, WW_ERR_NOT_FOUND, "not in the inventory");
	sample.from.node = 1;
	sample.from.cluster++;
	refuse(&r, WW_INPUT_SAMPLE, &sample, WW_ERR_NOT_FOUND, "not in the inventory");
	sample.from.cluster--;
	sample.n_gpus = 3;
	refuse(&r, WW_INPUT_SAMPLE, &sample, WW_ERR_INVALID, "'n1': has 3 GPUs");
	sample.n_gpus = GPUS;
	sample.gpus[1].draw_w.value = -1;
	refuse(&r, WW_INPUT_SAMPLE, &sample, WW_ERR_RANGE, "draw_w");
	ack.from.version = 9;
	refuse(&r, WW_INPUT_ACK, &ack, WW_ERR_UNSUPPORTED, "version");
	ack.from.version = WW_MSG_VERSION;
	ack.verdict = 99;
	refuse(&r, WW_INPUT_ACK, &ack, WW_ERR_RANGE, "verdict");
	states_of(&r, &r.peer[0], hello.gpus);
	hello.limits[0].min_w = -1;
	refuse(&r, WW_INPUT_HELLO, &hello, WW_ERR_RANGE, "limits");
	tear_down(&r);
}

static void old_messages_change_nothing(void **state)
{
	struct rig r;
	struct ww_sample sample = {.n_gpus = GPUS};
	(void)state;
	set_up_capped(&r);
	sample.from = envelope_of(&r.peer[0]);
	sample.from.seq -= 3;
	states_of(&r, &r.peer[0], sample.gpus);
	for (int g = 0; g < GPUS; g++)
		sample.gpus[g].enforced_w.value = 120;
	put(&r, WW_INPUT_SAMPLE, &sample);
	sample.from.start_id--;
	sample.from.seq += 100;
	put(&r, WW_INPUT_SAMPLE, &sample);
	step(&r);
	assert_near(charge_of(&r, 0), 1000, 1);
	tear_down(&r);
}

static void bad_jobs_change_nothing(void **state)
{
	struct rig r;
	struct ww_job job = job_of(9, 0.1, 1);
	(void)state;
	set_up_capped(&r);
	r.now.mono_us += SECOND;
	place(&job, 0, 0x1);
	refuse(&r, WW_INPUT_JOB, &job, WW_ERR_INVALID, "end that one first");
	job.places[0].node = 77;
	refuse(&r, WW_INPUT_JOB, &job, WW_ERR_NOT_FOUND, "not in the inventory");
	job.places[0] = (struct ww_place){1, 0x10};
	refuse(&r, WW_INPUT_JOB, &job, WW_ERR_RANGE, "GPUs 0 to 3");
	job.weight = -1;
	refuse(&r, WW_INPUT_JOB, &job, WW_ERR_RANGE, "weight");
	tear_down(&r);
}

static void bad_events_and_meters_change_nothing(void **state)
{
	struct rig r;
	struct ww_event event;
	struct ww_meter meter = {77, {1, 0, WW_READING_OK}};
	(void)state;
	set_up_capped(&r);
	event = event_of(&r, 1, SITE, 2000);
	event.end_us = event.start_us + SECOND;
	event.version = 2;
	put(&r, WW_INPUT_EVENT, &event);
	r.now.mono_us += 90000 * SECOND; /* events of yesterday would be forgotten */
	r.now.wall_us += 90000 * SECOND;
	event = event_of(&r, 9, 77, 2000);
	refuse(&r, WW_INPUT_EVENT, &event, WW_ERR_NOT_FOUND, "row that is not in the power plan");
	event = event_of(&r, 9, SITE, (double)NAN);
	event.cut_frac = 0.3;
	refuse(&r, WW_INPUT_EVENT, &event, WW_ERR_NO_DATA, "give a limit in watts");
	event.limit_w = -5;
	refuse(&r, WW_INPUT_EVENT, &event, WW_ERR_RANGE, "limit_w");
	refuse(&r, WW_INPUT_METER, &meter, WW_ERR_NOT_FOUND, "power plan");
	meter = (struct ww_meter){SITE, {NAN, 0, WW_READING_OK}};
	refuse(&r, WW_INPUT_METER, &meter, WW_ERR_RANGE, "power_w");
	tear_down(&r);
}

static void bad_inventories_change_nothing(void **state)
{
	struct rig r;
	(void)state;
	set_up_capped(&r);
	r.now.mono_us += SECOND;
	r.nodes[1].loads[0].row = 7;
	refuse(&r, WW_INPUT_CONFIG, &r.config, WW_ERR_RANGE, "'n2': loads row 7");
	r.nodes[1].loads[0].row = 0;
	r.nodes[1].id = 1;
	refuse(&r, WW_INPUT_CONFIG, &r.config, WW_ERR_INVALID, "ids must differ");
	r.nodes[1].id = 2;
	r.config.after = WW_AFTER_RESTORE;
	r.rows[1].limit_w = 2999;
	refuse(&r, WW_INPUT_CONFIG, &r.config, WW_ERR_RANGE, "'left' cannot carry");
	r.rows[1].limit_w = 3000;
	put(&r, WW_INPUT_CONFIG, &r.config);
	tear_down(&r);
}

static void unknown_kinds_and_divisions_change_nothing(void **state)
{
	struct rig r;
	(void)state;
	set_up_capped(&r);
	r.now.mono_us += SECOND;
	refuse(&r, WW_INPUT_DIVISION, (const void *)(uintptr_t)99, WW_ERR_RANGE, "division 99");
	refuse(&r, (enum ww_input_kind)WW_N_INPUT_KINDS, NULL, WW_ERR_INVALID, "kind");
	tear_down(&r);
}

/* ---- Damaged states ---------------------------------------------------------------------------------------------------- */

/* WW_OK: then it saves to the same bytes and goes on. */
static void try_to_load(const struct ww_buf *bytes, struct ww_now now)
{
	ww_control *control;
	struct ww_error err = {WW_OK, ""};
	assert_int_equal(ww_control_create(&control, NULL), WW_OK);
	ww_status status = ww_control_load(control, bytes, &err);
	if (status == WW_OK) {
		struct ww_buf again = {0};
		assert_int_equal(ww_control_save(control, &again), WW_OK);
		assert_same_bytes(bytes, &again);
		for (int i = 0; i < 3; i++, now.mono_us += SECOND, now.wall_us += SECOND)
			(void)ww_control_step(control, now);
		ww_buf_finish(&again);
	} else {
		assert_int_equal(status, WW_ERR_INVALID);
		assert_int_equal(err.code, status);
		assert_true(strlen(err.text) > 10 && !strchr(err.text, '\n'));
	}
	ww_control_destroy(control);
}

static void a_damaged_state_is_refused_or_sound(void **state)
{
	struct rig r;
	struct ww_buf saved = {0};
	(void)state;
	set_up_capped(&r);
	save(&r, &saved);
	for (size_t at = 0; at < saved.n; at++) {
		static const uint8_t flips[] = {0x01, 0x80, 0xff};
		for (size_t k = 0; k < sizeof flips; k++) {
			saved.bytes[at] ^= flips[k];
			try_to_load(&saved, r.now);
			saved.bytes[at] ^= flips[k];
		}
	}
	ww_buf_finish(&saved);
	tear_down(&r);
}

static void half_a_state_is_refused_and_changes_nothing(void **state)
{
	struct rig r;
	struct ww_buf saved = {0}, now = {0};
	struct ww_error err;
	(void)state;
	set_up_capped(&r);
	save(&r, &saved);
	for (size_t n = 0; n < saved.n; n += 7) {
		struct ww_buf part = {saved.bytes, n, 0, false};
		assert_int_equal(ww_control_load(r.control, &part, &err), WW_ERR_INVALID);
		save(&r, &now);
		assert_same_bytes(&saved, &now);
	}
	ww_buf_u8(&saved, 0);
	assert_int_equal(ww_control_load(r.control, &saved, &err), WW_ERR_INVALID);
	assert_non_null(strstr(err.text, "damaged or of another version"));
	ww_buf_finish(&saved);
	ww_buf_finish(&now);
	tear_down(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_leader_raises_nothing_for_a_lease),
		cmocka_unit_test(a_new_leader_lowers_at_once),
		cmocka_unit_test(a_new_leader_is_due_by_its_own_clock),
		cmocka_unit_test(a_message_of_an_older_epoch_frees_nothing),
		cmocka_unit_test(a_higher_limit_counts_whoever_says_so),
		cmocka_unit_test(commands_of_the_old_leader_still_count),
		cmocka_unit_test(who_does_not_greet_a_new_leader_may_have_booted),
		cmocka_unit_test(a_leader_that_was_replaced_believes_nobody),
		cmocka_unit_test(the_same_leader_again_changes_nothing),
		cmocka_unit_test(an_older_leader_is_old_news),
		cmocka_unit_test(that_someone_leads_is_stored),
		cmocka_unit_test(what_was_never_sent_supersedes_nothing),
		cmocka_unit_test(a_new_inventory_keeps_what_is_known),
		cmocka_unit_test(a_new_node_counts_its_maximum),
		cmocka_unit_test(the_inventory_comes_first),
		cmocka_unit_test(bad_messages_change_nothing),
		cmocka_unit_test(old_messages_change_nothing),
		cmocka_unit_test(bad_jobs_change_nothing),
		cmocka_unit_test(bad_events_and_meters_change_nothing),
		cmocka_unit_test(bad_inventories_change_nothing),
		cmocka_unit_test(unknown_kinds_and_divisions_change_nothing),
		cmocka_unit_test(a_damaged_state_is_refused_or_sound),
		cmocka_unit_test(half_a_state_is_refused_and_changes_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
