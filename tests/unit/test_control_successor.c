/* SPDX-License-Identifier: Apache-2.0 */
/* What a successor finds stored, what it tells the nodes first, and what it counts of those that do not answer. */
#include "control_rig.h"

struct cluster {
	struct rig rig;
	struct ww_buf disk; /* the state that was stored last */
	uint64_t epoch;
};

/* One second; what a decision asks to store is what a successor finds. */
static void second(struct cluster *c)
{
	struct rig *r = &c->rig;
	pass(r, SECOND);
	listen(r);
	step(r);
	if (r->d.save && !r->disk_fails)
		save(r, &c->disk);
	deliver(r);
	hold_truth(r);
}

static void seconds(struct cluster *c, int n)
{
	for (int i = 0; i < n; i++)
		second(c);
}

static void quiet(struct rig *r, int n, bool is)
{
	r->peer[n].deaf = r->peer[n].mute = is;
}

/* 3000 W for 12 GPUs; boots take long and bring 200 W. */
static void set_up_cluster(struct cluster *c, enum ww_after after)
{
	*c = (struct cluster){.epoch = EPOCH};
	plan(&c->rig);
	c->rig.config.after = after;
	for (int n = 0; n < NODES; n++) {
		c->rig.nodes[n].boot_cap_w = 200;
		c->rig.nodes[n].shortest_boot_us = 1000 * SECOND;
	}
	begin(&c->rig);
	for (int n = 0; n < NODES; n++)
		put_job(&c->rig, (uint64_t)n + 1, n, 0.1, 0.5);
	seconds(c, (int)(LEASE / SECOND) + 2);
	put_division(&c->rig, WW_DIVISION_EQUAL);
}

static void set_up_capped(struct cluster *c, enum ww_after after)
{
	set_up_cluster(c, after);
	put_limit(&c->rig, 1, SITE, 3000);
	seconds(c, 30);
	assert_near(charge_of(&c->rig, 0), 1000, 0.01);
}

static void tear_down_cluster(struct cluster *c)
{
	tear_down(&c->rig);
	ww_buf_finish(&c->disk);
}

/* `later_us` after the controller died another machine takes over, whose wall clock is another one by `wall_us`. */
static void take_over(struct cluster *c, int64_t later_us, int64_t wall_us)
{
	struct rig *r = &c->rig;
	ww_control_destroy(r->control);
	pass(r, later_us);
	r->now.mono_us = 17 * SECOND;
	r->now.wall_us += wall_us;
	for (int n = 0; n < NODES; n++) {
		r->peer[n].leased_us += wall_us;
		for (int g = 0; g < GPUS; g++)
			r->peer[n].changed_us[g] += wall_us;
	}
	assert_int_equal(ww_control_create(&r->control, NULL), WW_OK);
	assert_int_equal(ww_control_load(r->control, &c->disk, NULL), WW_OK);
	lead(r, ++c->epoch);
	r->d.seq = 0;
	memset(r->gpu, 0, sizeof r->gpu);
	copy_decision(r, ww_control_step(r->control, r->now));
	if (r->d.save)
		save(r, &c->disk);
	deliver(r);
}

/* ---- What is stored ------------------------------------------------------------------------------------------------------- */

static void raise_by_hand(struct rig *r, float w)
{
	for (int g = 0; g < GPUS; g++)
		r->peer[0].limit_w[g] = w;
}

static void a_limit_that_nobody_ordered_is_stored_at_once(void **state)
{
	struct cluster c;
	(void)state;
	set_up_capped(&c, WW_AFTER_HOLD);
	second(&c);
	assert_false(c.rig.d.save);
	raise_by_hand(&c.rig, 470);
	say_sample(&c.rig, 0);
	for (int i = 0; i < 2; i++) { /* until it is stored */
		pass(&c.rig, 1000);
		raise_by_hand(&c.rig, 470);
		step(&c.rig);
		assert_true(c.rig.d.save);
	}
	put_saved(&c.rig, c.rig.d.seq);
	pass(&c.rig, 1000);
	raise_by_hand(&c.rig, 470);
	step(&c.rig);
	assert_false(c.rig.d.save);
	tear_down_cluster(&c);
}

/* Nobody hears of the node again, whose GPUs somebody else sets. */
static void a_successor_counts_what_is_not_managed(void **state)
{
	struct cluster c;
	(void)state;
	set_up_capped(&c, WW_AFTER_HOLD);
	for (int g = 0; g < GPUS; g++)
		c.rig.peer[0].unmanaged[g] = true;
	raise_by_hand(&c.rig, MAX_W);
	seconds(&c, 5);
	quiet(&c.rig, 0, true);
	take_over(&c, 5 * SECOND, 0);
	seconds(&c, 2 * (int)(LEASE / SECOND));
	assert_near(charge_of(&c.rig, 0), 2000, 0.01);
	assert_true(c.rig.row[0].charge_w <= 3000.01);
	tear_down_cluster(&c);
}

static void a_successor_counts_a_draw_above_the_limit(void **state)
{
	struct cluster c;
	(void)state;
	set_up_capped(&c, WW_AFTER_HOLD);
	for (int g = 0; g < GPUS; g++)
		c.rig.peer[0].defiant[g] = true;
	seconds(&c, 5);
	assert_near(charge_of(&c.rig, 0), 4 * DEMAND_W, 0.01);
	quiet(&c.rig, 0, true);
	take_over(&c, 5 * SECOND, 0);
	seconds(&c, 10);
	assert_near(charge_of(&c.rig, 0), 4 * DEMAND_W, 0.01);
	tear_down_cluster(&c);
}

/* An agent that starts again says that boots bring 500 W now. */
static void a_successor_counts_the_limit_after_a_boot_that_was_told(void **state)
{
	struct cluster c;
	(void)state;
	set_up_capped(&c, WW_AFTER_HOLD);
	c.rig.nodes[0].boot_cap_w = NAN;
	c.rig.peer[0].start_id++;
	c.rig.peer[0].seq = 0;
	say_hello(&c.rig, 0);
	second(&c);
	assert_true(c.rig.d.save);
	seconds(&c, 5);
	quiet(&c.rig, 0, true);
	take_over(&c, 5 * SECOND, 0);
	seconds(&c, 5);
	reboot(&c.rig, 0, MAX_W);
	seconds(&c, 5);
	assert_near(charge_of(&c.rig, 0), 2000, 0.01);
	tear_down_cluster(&c);
}

static void after_a_boot_the_recorded_limit_is_not_known(void **state)
{
	struct cluster c;
	(void)state;
	set_up_capped(&c, WW_AFTER_RESTORE);
	c.rig.peer[0].recorded_w = 300;
	say_hello(&c.rig, 0);
	seconds(&c, 5);
	assert_false(c.rig.d.save);
	reboot(&c.rig, 0, 200);
	say_sample(&c.rig, 0); /* its hellos are lost */
	c.rig.peer[0].recorded_w = MAX_W;
	c.rig.peer[0].greeted = true;
	pass(&c.rig, 1000);
	step(&c.rig);
	assert_true(c.rig.d.save);
	deliver(&c.rig);
	seconds(&c, 5);
	quiet(&c.rig, 0, true);
	seconds(&c, (int)(LEASE / SECOND) + 5);
	assert_near(charge_of(&c.rig, 0), 2000, 0.01);
	tear_down_cluster(&c);
}

/* By a hello that came before the node knew of this leader. */
static void a_recorded_limit_is_known_once_it_was_told(void **state)
{
	struct cluster c = {0};
	(void)state;
	plan(&c.rig);
	c.rig.config.after = WW_AFTER_RESTORE;
	c.rig.nodes[0].shortest_boot_us = 1000 * SECOND;
	for (int g = 0; g < GPUS; g++)
		c.rig.peer[0].limit_w[g] = c.rig.peer[0].goal_w[g] = 200;
	c.rig.peer[0].recorded_w = 300;
	begin(&c.rig);
	seconds(&c, 5);
	quiet(&c.rig, 0, true);
	seconds(&c, (int)(LEASE / SECOND) + 5);
	assert_near(charge_of(&c.rig, 0), 1200, 0.01);
	tear_down_cluster(&c);
}

/* What was seen before the first write is no bound of what was found at that write. */
static void a_recorded_limit_that_was_not_told_may_be_the_highest(void **state)
{
	struct cluster c;
	(void)state;
	c = (struct cluster){0};
	plan(&c.rig);
	c.rig.config.after = WW_AFTER_RESTORE;
	c.rig.nodes[0].shortest_boot_us = 1000 * SECOND;
	for (int g = 0; g < GPUS; g++)
		c.rig.peer[0].limit_w[g] = 300;
	begin(&c.rig);
	say_hello(&c.rig, 0);
	say_sample(&c.rig, 0);
	c.rig.surprised = true; /* raised by hand before the first write, and no hello comes through any more */
	raise_by_hand(&c.rig, MAX_W);
	for (int i = 0; i < 10; i++) {
		c.rig.peer[0].greeted = true;
		pass(&c.rig, SECOND);
		say_sample(&c.rig, 0);
		step(&c.rig);
		deliver(&c.rig);
	}
	put_limit(&c.rig, 1, LEFT, 1000);
	for (int i = 0; i < 30; i++) {
		pass(&c.rig, SECOND);
		say_sample(&c.rig, 0);
		step(&c.rig);
		deliver(&c.rig);
	}
	c.rig.surprised = false;
	assert_true(charge_of(&c.rig, 0) < 1000.01);
	quiet(&c.rig, 0, true);
	seconds(&c, (int)(LEASE / SECOND) + 5);
	assert_near(charge_of(&c.rig, 0), 2000, 0.01);
	tear_down_cluster(&c);
}

static void old_news_is_not_stored(void **state)
{
	struct cluster c;
	struct ww_event event;
	(void)state;
	set_up_capped(&c, WW_AFTER_HOLD);
	event = event_of(&c.rig, 1, SITE, 3000);
	put(&c.rig, WW_INPUT_EVENT, &event);
	put_job(&c.rig, 1, 0, 0.1, 0.5);
	lead(&c.rig, EPOCH);
	step(&c.rig);
	assert_false(c.rig.d.save);
	put_job(&c.rig, 1, 0, 0.1, 0.6);
	step(&c.rig);
	assert_true(c.rig.d.save);
	tear_down_cluster(&c);
}

static void who_does_not_lead_asks_for_nothing(void **state)
{
	struct rig r;
	struct ww_leader leader = {EPOCH, false};
	(void)state;
	plan(&r);
	put(&r, WW_INPUT_CONFIG, &r.config);
	put(&r, WW_INPUT_LEADER, &leader);
	put_job(&r, 1, 0, 0.1, 0.5);
	put_limit(&r, 1, SITE, 3000);
	run(&r, 3);
	assert_false(r.d.save);
	leader.leads = true;
	put(&r, WW_INPUT_LEADER, &leader);
	step(&r);
	assert_true(r.d.save);
	tear_down(&r);
}

/* ---- Greetings -------------------------------------------------------------------------------------------------------------- */

static void put_start(struct rig *r, uint64_t id, double limit_w, int64_t start_us)
{
	struct ww_event event = event_of(r, id, SITE, limit_w);
	event.start_us = start_us;
	put(r, WW_INPUT_EVENT, &event);
}

static void check_greetings(struct rig *r, double cap_w)
{
	for (int n = 0; n < NODES; n++) {
		const struct ww_command *command = command_to(r, n);
		assert_non_null(command);
		assert_near(command->step[command->n_steps - 1].cap_w[0], cap_w, 0.01);
		assert_true(command->step[command->n_steps - 1].in_us <= 1);
	}
}

/* The commands with the steps are late, and then nothing reaches the nodes but the greeting. */
static void check_late_steps(int64_t after_start_us, double second_w)
{
	struct cluster c;
	set_up_cluster(&c, WW_AFTER_HOLD);
	int64_t start_us = c.rig.now.wall_us + 100 * SECOND;
	put_start(&c.rig, 1, 3000, start_us);
	if (!isnan(second_w))
		put_start(&c.rig, 2, second_w, start_us + SECOND);
	seconds(&c, 5);
	assert_near(charge_of(&c.rig, 0), 2000, 0.01);
	for (int n = 0; n < NODES; n++)
		c.rig.peer[n].leased_us += 60 * SECOND;
	take_over(&c, start_us + after_start_us - c.rig.now.wall_us, 0);
	check_greetings(&c.rig, (isnan(second_w) ? 3000 : second_w) / 12);
	for (int n = 0; n < NODES; n++)
		quiet(&c.rig, n, true);
	seconds(&c, 70);
	assert_true(power_of(&c.rig) <= (isnan(second_w) ? 3000 : second_w) + 0.01);
	tear_down_cluster(&c);
}

static void a_greeting_carries_steps_that_are_late(void **state)
{
	(void)state;
	check_late_steps(-LEAD + SECOND, (double)NAN);
	check_late_steps(SECOND / 2, (double)NAN);
	check_late_steps(20 * SECOND, (double)NAN);
}

static void of_steps_that_have_come_a_greeting_carries_the_lowest(void **state)
{
	(void)state;
	check_late_steps(-LEAD + 3 * SECOND / 2, 2400);
	check_late_steps(2 * SECOND, 2400);
}

/* One that comes while nodes are still greeted. */
static void a_step_that_comes_after_the_first_greeting_is_carried(void **state)
{
	struct cluster c;
	(void)state;
	set_up_cluster(&c, WW_AFTER_HOLD);
	int64_t start_us = c.rig.now.wall_us + 100 * SECOND;
	put_start(&c.rig, 1, 3000, start_us);
	put_start(&c.rig, 2, 2400, start_us + 2 * SECOND);
	seconds(&c, 5);
	for (int n = 0; n < NODES; n++)
		quiet(&c.rig, n, true);
	take_over(&c, start_us - LEAD + SECOND / 2 - c.rig.now.wall_us, 0);
	pass(&c.rig, 2 * SECOND);
	step(&c.rig);
	check_greetings(&c.rig, 200);
	tear_down_cluster(&c);
}

static void where_a_row_is_kept_greetings_leave_its_nodes_alone(void **state)
{
	struct cluster c;
	(void)state;
	set_up_capped(&c, WW_AFTER_HOLD);
	take_over(&c, SECOND, 0);
	for (int n = 0; n < NODES; n++) {
		const struct ww_command *command = command_to(&c.rig, n);
		assert_non_null(command);
		assert_int_equal(command->n_steps, 1);
		assert_nan((double)command->step[0].cap_w[0]);
	}
	tear_down_cluster(&c);
}

/* What a node says when it is first heard may be older than the greeting that lowered it. */
static void what_a_greeting_lowered_does_not_rise_while_watts_lack(void **state)
{
	struct cluster c;
	struct ww_event event;
	(void)state;
	set_up_cluster(&c, WW_AFTER_HOLD);
	int64_t start_us = c.rig.now.wall_us + 100 * SECOND;
	put_start(&c.rig, 1, 2400, start_us);
	seconds(&c, 5);
	for (int n = 0; n < NODES; n++) {
		quiet(&c.rig, n, true);
		c.rig.peer[n].lease.n_steps = 0;
	}
	take_over(&c, start_us - c.rig.now.wall_us, 0);
	check_greetings(&c.rig, 200);
	event = event_of(&c.rig, 1, SITE, 5000); /* 250 W each beside those that are not heard */
	event.start_us = start_us;
	event.version = 2;
	put(&c.rig, WW_INPUT_EVENT, &event);
	c.rig.peer[0].seen = command_to(&c.rig, 0)->fence;
	for (int g = 0; g < GPUS; g++)
		c.rig.peer[0].goal_w[g] = MAX_W;
	say_sample(&c.rig, 0);
	pass(&c.rig, SECOND);
	step(&c.rig);
	assert_true(c.rig.row[0].missing_w > 0);
	assert_non_null(command_to(&c.rig, 0));
	assert_near((double)command_to(&c.rig, 0)->step[0].cap_w[0], 200, 0.01);
	tear_down_cluster(&c);
}

/* ---- Times and ends of leases ----------------------------------------------------------------------------------------------- */

static void check_restored(int64_t wall_us)
{
	struct cluster c;
	set_up_capped(&c, WW_AFTER_RESTORE);
	assert_int_equal(c.rig.peer[0].lease.after, WW_AFTER_RESTORE);
	quiet(&c.rig, 0, true);
	take_over(&c, 10 * SECOND, wall_us);
	seconds(&c, 4);
	assert_near(charge_of(&c.rig, 0), 2000, 0.01);
	seconds(&c, (int)(LEASE / SECOND) + 10); /* hold_truth watches */
	assert_near((double)c.rig.peer[0].limit_w[0], MAX_W, 0.01);
	tear_down_cluster(&c);
}

static void who_does_not_answer_a_new_leader_may_have_restored(void **state)
{
	(void)state;
	check_restored(0);
	check_restored(-600 * SECOND);
	check_restored(600 * SECOND);
}

/* Of a command that restores and was sent after the state was stored, nothing in it tells. */
static void what_was_ordered_after_the_state_may_have_restored(void **state)
{
	struct cluster c;
	(void)state;
	set_up_capped(&c, WW_AFTER_RESTORE);
	take_over(&c, SECOND, 0);
	save(&c.rig, &c.disk);
	c.rig.disk_fails = true;
	seconds(&c, 3);
	assert_int_equal(c.rig.peer[0].lease.after, WW_AFTER_RESTORE);
	assert_true(c.rig.peer[0].lease.answers_seq > 0);
	c.rig.disk_fails = false;
	quiet(&c.rig, 0, true);
	take_over(&c, LEASE + SECOND, 0);
	hold_truth(&c.rig);
	assert_near((double)c.rig.peer[0].limit_w[0], MAX_W, 0.01);
	tear_down_cluster(&c);
}

/* While the store takes nothing a successor would not count it, and decreases do not wait. */
static void leases_end_in_a_restore_only_once_that_is_stored(void **state)
{
	struct cluster c;
	struct ww_event event;
	(void)state;
	set_up_capped(&c, WW_AFTER_HOLD);
	c.rig.disk_fails = true;
	c.rig.config.after = WW_AFTER_RESTORE;
	put(&c.rig, WW_INPUT_CONFIG, &c.rig.config);
	event = event_of(&c.rig, 1, SITE, 2400);
	event.version = 2;
	put(&c.rig, WW_INPUT_EVENT, &event);
	seconds(&c, 10);
	assert_near((double)c.rig.peer[0].limit_w[0], 200, 0.01);
	assert_int_equal(c.rig.peer[0].lease.after, WW_AFTER_HOLD);
	c.rig.disk_fails = false;
	seconds(&c, 3);
	assert_int_equal(c.rig.peer[0].lease.after, WW_AFTER_RESTORE);
	tear_down_cluster(&c);
}

/* The clock of a machine that is gone says nothing of how long ago a reading was. */
static void a_meter_that_does_not_answer_a_new_leader_is_old(void **state)
{
	static const int64_t off_us[] = {0, -600 * SECOND, 600 * SECOND};
	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct cluster c = {.epoch = EPOCH};
		plan(&c.rig);
		c.rig.rows[0].has_meter = true;
		c.rig.rows[0].meter_boundary = WW_BOUNDARY_METER;
		c.rig.rows[0].limit_w = 9000;
		c.rig.rows[0].boundary = WW_BOUNDARY_METER;
		c.rig.rows[0].fixed_w[WW_BOUNDARY_METER] = 1500;
		c.rig.rest_w = 1000;
		begin(&c.rig);
		seconds(&c, 60);
		assert_true(c.rig.row[0].non_gpu_w < 1200);
		save(&c.rig, &c.disk);
		c.rig.rest_w = (double)NAN;
		take_over(&c, SECOND, off_us[i]);
		seconds(&c, 5);
		assert_near(c.rig.row[0].non_gpu_w, 1500, 0.01);
		tear_down_cluster(&c);
	}
}

/* ---- Nodes that are silent before -------------------------------------------------------------------------------------------- */

/* 2000 W for the row of two nodes, of which one is gone at 2000 / 2 W; the step ahead of the other one. */
static double step_ahead_w(struct cluster *c)
{
	const struct ww_command *lease = &c->rig.peer[0].lease;
	assert_int_equal(lease->n_steps, 2);
	return (double)lease->step[1].cap_w[0];
}

static void set_up_half_dead(struct cluster *c)
{
	struct ww_event event;
	set_up_cluster(c, WW_AFTER_HOLD);
	quiet(&c->rig, 1, true);
	event = event_of(&c->rig, 1, LEFT, 2000);
	event.start_us += 400 * SECOND;
	put(&c->rig, WW_INPUT_EVENT, &event);
	seconds(c, 100);
	assert_near(step_ahead_w(c), 250, 0.01);
}

static void after_its_clock_was_set_nobody_counts_on_silent_nodes(void **state)
{
	(void)state;
	for (int i = -1; i <= 1; i += 2) {
		struct cluster c;
		set_up_half_dead(&c);
		c.rig.now.mono_us += i * 5 * SECOND;
		for (int k = 0; k < 40; k++) {
			second(&c);
			assert_near(step_ahead_w(&c), 250, 0.01);
		}
		tear_down_cluster(&c);
	}
}

static void a_new_leader_does_not_count_on_nodes_that_were_silent(void **state)
{
	struct cluster c;
	(void)state;
	set_up_half_dead(&c);
	save(&c.rig, &c.disk);
	take_over(&c, SECOND, 0);
	for (int k = 0; k < 60; k++) {
		assert_near(step_ahead_w(&c), 250, 0.01);
		second(&c);
	}
	tear_down_cluster(&c);
}

/* It may answer, and is told the step; when it does not, nobody counts on it any more. */
static void nodes_that_were_heard_are_counted_on_while_they_are_greeted(void **state)
{
	struct cluster c;
	struct ww_event event;
	(void)state;
	set_up_cluster(&c, WW_AFTER_HOLD);
	event = event_of(&c.rig, 1, LEFT, 2000);
	event.start_us += 400 * SECOND;
	put(&c.rig, WW_INPUT_EVENT, &event);
	seconds(&c, 5);
	save(&c.rig, &c.disk);
	quiet(&c.rig, 1, true);
	take_over(&c, SECOND, 0);
	assert_near(step_ahead_w(&c), 2000.0 / 6, 0.01);
	seconds(&c, 5);
	assert_near(step_ahead_w(&c), 250, 0.01);
	tear_down_cluster(&c);
}

/* Nothing of its job can be steered, but it may hear. */
static void a_silent_node_is_told_the_steps_ahead(void **state)
{
	struct cluster c;
	(void)state;
	set_up_half_dead(&c);
	for (int i = 0; i < 30 && !command_to(&c.rig, 1); i++)
		second(&c);
	assert_non_null(command_to(&c.rig, 1));
	assert_int_equal(command_to(&c.rig, 1)->n_steps, 2);
	assert_near((double)command_to(&c.rig, 1)->step[1].cap_w[0], MIN_W, 0.01);
	tear_down_cluster(&c);
}

/* ---- Nodes put back ------------------------------------------------------------------------------------------------------------ */

static void put_nodes(struct rig *r, uint32_t n)
{
	r->config.n_nodes = n;
	put(r, WW_INPUT_CONFIG, &r->config);
}

/* Raises are on their way when the node is taken out and put back. */
static void a_node_put_back_obeys_nothing_of_before(void **state)
{
	struct cluster c;
	struct ww_command late;
	struct ww_event event;
	(void)state;
	set_up_capped(&c, WW_AFTER_HOLD);
	event = event_of(&c.rig, 1, SITE, 5000);
	event.version = 2;
	put(&c.rig, WW_INPUT_EVENT, &event);
	c.rig.peer[2].deaf = true;
	seconds(&c, 8);
	for (int i = 0; i < 3 && !command_to(&c.rig, 2); i++)
		second(&c);
	late = *command_to(&c.rig, 2);
	assert_true(late.fence.seq > c.rig.peer[2].seen.seq + 2 && late.step[0].cap_w[0] > 400);
	event.version = 3;
	event.limit_w = 3000;
	put(&c.rig, WW_INPUT_EVENT, &event);
	put_nodes(&c.rig, 2);
	put_nodes(&c.rig, 3);
	say_sample(&c.rig, 2);
	pass(&c.rig, SECOND);
	for (int g = 0; g < GPUS; g++)
		gpu_of(&c.rig, 2, g)->cap_w = NAN; /* there was none to rise from */
	step(&c.rig);
	assert_near(charge_of(&c.rig, 2), 2000, 0.01);
	assert_non_null(command_to(&c.rig, 2));
	assert_true(ww_fence_order(command_to(&c.rig, 2)->fence, late.fence) > 0);
	c.rig.peer[2].deaf = false;
	deliver(&c.rig);
	seconds(&c, 5);
	accept(&c.rig, &c.rig.peer[2], &late);
	hold_truth(&c.rig);
	assert_true(power_of(&c.rig) <= 3000.01);
	tear_down_cluster(&c);
}

/* The state that was stored last may not know of it. */
static void a_node_put_back_counts_as_not_stored(void **state)
{
	struct cluster c;
	struct ww_event event;
	(void)state;
	set_up_capped(&c, WW_AFTER_HOLD);
	c.rig.disk_fails = true;
	put_nodes(&c.rig, 2);
	put_nodes(&c.rig, 3);
	for (int g = 0; g < GPUS; g++)
		gpu_of(&c.rig, 2, g)->cap_w = NAN;
	event = event_of(&c.rig, 1, SITE, 5000);
	event.version = 2;
	put(&c.rig, WW_INPUT_EVENT, &event);
	for (int i = 0; i < 20; i++) {
		second(&c);
		assert_true(c.rig.peer[2].limit_w[0] <= 250.01f);
	}
	c.rig.disk_fails = false;
	seconds(&c, 5);
	assert_near((double)c.rig.peer[2].limit_w[0], 5000.0 / 12, 0.01);
	tear_down_cluster(&c);
}

/* ---- Others --------------------------------------------------------------------------------------------------------------------- */

static void at_a_time_that_no_clock_shows_nothing_is_decided(void **state)
{
	static const struct ww_now bad[] = {
		{INT64_MAX, INT64_MIN}, {INT64_MIN, INT64_MAX}, {0, INT64_MAX}, {INT64_MIN, 0}};
	struct cluster c;
	struct ww_buf before = {0}, after = {0};
	(void)state;
	set_up_capped(&c, WW_AFTER_HOLD);
	put_limit(&c.rig, 2, SITE, 2400);
	save(&c.rig, &before);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		const struct ww_decision *d = ww_control_step(c.rig.control, bad[i]);
		assert_true(d->seq == c.rig.d.seq && d->n_commands == 0 && !d->save);
		save(&c.rig, &after);
		assert_same_bytes(&before, &after);
	}
	ww_buf_finish(&before);
	ww_buf_finish(&after);
	second(&c);
	assert_true(c.rig.d.n_commands > 0);
	tear_down_cluster(&c);
}

/* An open end is no reason to remember it for ever, whether it was known or not. */
static void what_was_cancelled_is_forgotten_some_time(void **state)
{
	struct cluster c;
	struct ww_event event;
	(void)state;
	set_up_cluster(&c, WW_AFTER_HOLD);
	event = event_of(&c.rig, 1, SITE, 3000);
	event.start_us += 100 * SECOND;
	put(&c.rig, WW_INPUT_EVENT, &event);
	event.version = 2;
	event.cancelled = true;
	put(&c.rig, WW_INPUT_EVENT, &event);
	event.id = 2;
	put(&c.rig, WW_INPUT_EVENT, &event);
	event.version = 1; /* what was cancelled before it came */
	event.cancelled = false;
	put(&c.rig, WW_INPUT_EVENT, &event);
	second(&c);
	assert_int_equal(c.rig.d.n_events, 2);
	assert_true(isinf(c.rig.row[0].budget_w));
	pass(&c.rig, 25 * 60 * MINUTE);
	event = event_of(&c.rig, 3, SITE, 3000);
	event.cancelled = true;
	put(&c.rig, WW_INPUT_EVENT, &event);
	c.rig.surprised = true;
	second(&c);
	assert_int_equal(c.rig.d.n_events, 1);
	assert_int_equal(c.rig.event[0].id, 3);
	tear_down_cluster(&c);
}

/* A configuration that was told since says nothing of the commands of the leader before. */
static void leases_of_before_end_as_they_were_told(void **state)
{
	for (int first = 0; first < 2; first++) {
		struct cluster c;
		(void)state;
		set_up_capped(&c, WW_AFTER_RESTORE);
		for (int n = 0; n < NODES; n++)
			quiet(&c.rig, n, true);
		struct ww_config config = c.rig.config;
		config.after = WW_AFTER_HOLD;
		config.valid_for_us = 3600 * SECOND;
		ww_control_destroy(c.rig.control);
		pass(&c.rig, 5 * SECOND);
		assert_int_equal(ww_control_create(&c.rig.control, NULL), WW_OK);
		assert_int_equal(ww_control_load(c.rig.control, &c.disk, NULL), WW_OK);
		if (first)
			put(&c.rig, WW_INPUT_CONFIG, &config);
		lead(&c.rig, ++c.epoch);
		if (!first)
			put(&c.rig, WW_INPUT_CONFIG, &config);
		c.rig.d.seq = 0;
		memset(c.rig.gpu, 0, sizeof c.rig.gpu);
		copy_decision(&c.rig, ww_control_step(c.rig.control, c.rig.now));
		for (int i = 0; i < 100; i++) {
			pass(&c.rig, SECOND);
			step(&c.rig);
			hold_truth(&c.rig);
		}
		assert_near(c.rig.peer[0].limit_w[0], MAX_W, 0);
		tear_down_cluster(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_limit_that_nobody_ordered_is_stored_at_once),
		cmocka_unit_test(a_successor_counts_what_is_not_managed),
		cmocka_unit_test(a_successor_counts_a_draw_above_the_limit),
		cmocka_unit_test(a_successor_counts_the_limit_after_a_boot_that_was_told),
		cmocka_unit_test(after_a_boot_the_recorded_limit_is_not_known),
		cmocka_unit_test(a_recorded_limit_is_known_once_it_was_told),
		cmocka_unit_test(a_recorded_limit_that_was_not_told_may_be_the_highest),
		cmocka_unit_test(old_news_is_not_stored),
		cmocka_unit_test(who_does_not_lead_asks_for_nothing),
		cmocka_unit_test(a_greeting_carries_steps_that_are_late),
		cmocka_unit_test(of_steps_that_have_come_a_greeting_carries_the_lowest),
		cmocka_unit_test(a_step_that_comes_after_the_first_greeting_is_carried),
		cmocka_unit_test(where_a_row_is_kept_greetings_leave_its_nodes_alone),
		cmocka_unit_test(what_a_greeting_lowered_does_not_rise_while_watts_lack),
		cmocka_unit_test(who_does_not_answer_a_new_leader_may_have_restored),
		cmocka_unit_test(what_was_ordered_after_the_state_may_have_restored),
		cmocka_unit_test(a_node_put_back_counts_as_not_stored),
		cmocka_unit_test(leases_end_in_a_restore_only_once_that_is_stored),
		cmocka_unit_test(a_meter_that_does_not_answer_a_new_leader_is_old),
		cmocka_unit_test(after_its_clock_was_set_nobody_counts_on_silent_nodes),
		cmocka_unit_test(a_new_leader_does_not_count_on_nodes_that_were_silent),
		cmocka_unit_test(nodes_that_were_heard_are_counted_on_while_they_are_greeted),
		cmocka_unit_test(a_silent_node_is_told_the_steps_ahead),
		cmocka_unit_test(a_node_put_back_obeys_nothing_of_before),
		cmocka_unit_test(at_a_time_that_no_clock_shows_nothing_is_decided),
		cmocka_unit_test(what_was_cancelled_is_forgotten_some_time),
		cmocka_unit_test(leases_of_before_end_as_they_were_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
