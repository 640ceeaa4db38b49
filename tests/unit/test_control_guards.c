/* SPDX-License-Identifier: Apache-2.0 */
/* Safeguards that only rare circumstances need: each case brings one of them about. */
#include "control_rig.h"

#define SHORTEST_SILENCE (BOOT - SETTLE - 5 * SECOND) /* without proof for so long a node may have booted */
#define TOO_MUCH_W 100001.0f                          /* for one board */

static void change_limit(struct rig *r, uint32_t version, double limit_w)
{
	struct ww_event event = event_of(r, 1, SITE, limit_w);
	event.version = version;
	put(r, WW_INPUT_EVENT, &event);
}

/* 250 W for each GPU, and that is stored. */
static void set_up_capped(struct rig *r)
{
	set_up(r);
	put_division(r, WW_DIVISION_EQUAL);
	put_limit(r, 1, SITE, 3000);
	run(r, 10);
	put_saved(r, r->d.seq);
}

static void quiet(struct rig *r, int n, bool is)
{
	r->peer[n].deaf = r->peer[n].mute = is;
}

static struct ww_sample sample_of(struct rig *r, int n)
{
	struct ww_sample sample = {.from = envelope_of(&r->peer[n]), .wall_us = r->now.wall_us, .n_gpus = GPUS};
	states_of(r, &r->peer[n], sample.gpus);
	return sample;
}

static struct ww_ack ack_of(struct rig *r, int n)
{
	struct ww_ack ack = {.from = envelope_of(&r->peer[n]), .verdict = WW_ACK_NEWS, .n_gpus = GPUS};
	states_of(r, &r->peer[n], ack.gpus);
	return ack;
}

static struct ww_hello hello_of(struct rig *r, int n, float max_w, float default_w, float boot_cap_w)
{
	struct ww_hello hello = {.from = envelope_of(&r->peer[n]), .n_gpus = GPUS};
	states_of(r, &r->peer[n], hello.gpus);
	for (int g = 0; g < GPUS; g++) {
		hello.limits[g].uuid = (uint64_t)g + 1;
		hello.limits[g].min_w = MIN_W;
		hello.limits[g].max_w = max_w;
		hello.limits[g].default_w = default_w;
		hello.limits[g].recorded_w = r->peer[n].recorded_w;
		hello.limits[g].boot_cap_w = boot_cap_w;
	}
	return hello;
}

/* ---- What a node says of its boards --------------------------------------------------------------------------------- */

/* After a silence in which the first node may have booted. */
static void check_boot_charge(float default_w, float boot_cap_w, double expected_w)
{
	struct rig r;
	struct ww_hello hello;
	set_up_capped(&r);
	hello = hello_of(&r, 0, 650, default_w, boot_cap_w);
	put(&r, WW_INPUT_HELLO, &hello);
	run(&r, 2);
	assert_near(gpu_of(&r, 0, 0)->charge_w, 250, 0.01);
	quiet(&r, 0, true);
	run(&r, (int)(SHORTEST_SILENCE / SECOND) + 5);
	for (int g = 0; g < GPUS; g++)
		assert_near(gpu_of(&r, 0, g)->charge_w, expected_w, 0.01);
	tear_down(&r);
}

static void a_boot_limit_above_the_inventory_counts(void **state)
{
	(void)state;
	check_boot_charge(600, NAN, 600);
	check_boot_charge(500, 550, 550);
	check_boot_charge(400, NAN, MAX_W); /* the worse of both */
}

static void a_highest_limit_above_the_inventory_counts(void **state)
{
	struct rig r;
	struct ww_hello hello;
	(void)state;
	set_up_capped(&r);
	hello = hello_of(&r, 0, 650, 500, NAN);
	put(&r, WW_INPUT_HELLO, &hello);
	r.peer[0].unmanaged[2] = true;
	run(&r, 2);
	assert_near(gpu_of(&r, 0, 2)->charge_w, 650, 0.01);
	assert_true(gpu_of(&r, 0, 1)->charge_w <= 250.01f);
	tear_down(&r);
}

/* ---- Releases ---------------------------------------------------------------------------------------------------------- */

/* While watts are given back in steps no row binds, but the recorded limits are not charged yet. */
static void a_release_waits_until_its_watts_are_charged(void **state)
{
	struct rig r;
	struct ww_event event;
	int n_held = 0, n_allowed = 0;
	(void)state;
	set_up(&r);
	event = event_of(&r, 1, SITE, 3000);
	event.end_us = r.now.wall_us + 20 * SECOND;
	put(&r, WW_INPUT_EVENT, &event);
	run(&r, 20);
	for (int i = 0; i < 300; i++) {
		tick(&r);
		for (int n = 0; n < NODES; n++) {
			const struct ww_command *command = command_to(&r, n);
			bool charged = charge_of(&r, n) >= GPUS * MAX_W - 0.01;
			if (!command)
				continue;
			assert_int_equal(command->release_ok, charged);
			n_held += !charged;
			n_allowed += charged;
		}
	}
	assert_true(n_held > 10 && n_allowed > 10);
	tear_down(&r);
}

/* A node comes back that may have booted: it is charged with its recorded limit, and so it may be released although its
 * cap is low. From then on it may restore that limit. */
static void a_command_that_allows_a_release_counts_with_it(void **state)
{
	struct rig r;
	struct ww_event event;
	int n_allowed = 0;
	(void)state;
	set_up(&r);
	event = event_of(&r, 1, SITE, 3000);
	event.end_us = r.now.wall_us + 60 * SECOND;
	put(&r, WW_INPUT_EVENT, &event);
	run(&r, 20);
	quiet(&r, 0, true);
	run(&r, 100);
	quiet(&r, 0, false);
	for (int i = 0; i < 30; i++) {
		tick(&r);
		if (!r.peer[0].lease.release_ok)
			continue;
		n_allowed += r.peer[0].limit_w[0] < MAX_W - 50;
		assert_near(charge_of(&r, 0), GPUS * MAX_W, 0.01);
	}
	assert_true(n_allowed > 10);
	tear_down(&r);
}

/* A budget ahead that lowers no cap: all that changes is that a release would break it. */
static void a_release_is_taken_back_at_once(void **state)
{
	struct rig r;
	struct ww_event event;
	(void)state;
	plan(&r);
	begin(&r);
	for (int n = 0; n < NODES; n++) {
		struct ww_job job = job_of((uint64_t)n + 1, 0.1, 0.5);
		job.curve.p0_w = MAX_W;
		place(&job, n, 0xf);
		put(&r, WW_INPUT_JOB, &job);
	}
	adopt(&r);
	for (int i = 0; i < 10 && !command_to(&r, 0); i++)
		tick(&r);
	assert_non_null(command_to(&r, 0));
	assert_int_equal(command_to(&r, 0)->release_ok, 1);
	event = event_of(&r, 1, SITE, 5999);
	event.start_us += 100 * SECOND;
	put(&r, WW_INPUT_EVENT, &event);
	tick(&r);
	assert_non_null(command_to(&r, 0));
	assert_int_equal(command_to(&r, 0)->release_ok, 0);
	assert_int_equal(command_to(&r, 0)->n_steps, 1);
	tear_down(&r);
}

/* ---- Storing ----------------------------------------------------------------------------------------------------------- */

/* Asked for in every decision until one of them is stored. */
static void check_asks_until_stored(struct rig *r)
{
	step(r);
	assert_true(r->d.save);
	pass(r, 1000);
	step(r);
	assert_true(r->d.save);
	put_saved(r, r->d.seq);
	pass(r, 1000);
	step(r);
	assert_false(r->d.save);
}

static void what_was_accepted_is_stored(void **state)
{
	struct rig r;
	struct ww_event event;
	(void)state;
	set_up(&r);
	assert_false(r.d.save);
	r.config.objective = WW_OBJECTIVE_LOG;
	put(&r, WW_INPUT_CONFIG, &r.config);
	check_asks_until_stored(&r);
	put_job(&r, 1, 0, 0.2, 0.5);
	check_asks_until_stored(&r);
	event = event_of(&r, 9, SITE, 9000); /* which nothing binds */
	put(&r, WW_INPUT_EVENT, &event);
	check_asks_until_stored(&r);
	/* What came while a state was being stored is not in it. */
	event.version++;
	put(&r, WW_INPUT_EVENT, &event);
	put_saved(&r, r.d.seq);
	check_asks_until_stored(&r);
	/* Nodes and meters tell again. */
	listen(&r);
	put_meter(&r, SITE, 7000);
	step(&r);
	assert_false(r.d.save);
	tear_down(&r);
}

/* Stored at 500 W each in the first second; half of that is in force a few seconds later. */
static void what_a_successor_would_count_is_stored_again(void **state)
{
	struct rig r;
	(void)state;
	set_up(&r);
	put_division(&r, WW_DIVISION_EQUAL);
	put_limit(&r, 1, SITE, 3000);
	tick(&r);
	assert_true(r.d.save);
	for (int i = 1; i < 10; i++) {
		tick(&r);
		assert_false(r.d.save);
	}
	assert_near(r.row[0].charge_w, 3000, 0.01);
	tick(&r);
	assert_true(r.d.save);
	for (int i = 0; i < 20; i++) {
		tick(&r);
		assert_false(r.d.save);
	}
	/* One in a hundred less is not worth it. */
	change_limit(&r, 2, 2970);
	tick(&r);
	for (int i = 0; i < 20; i++) {
		tick(&r);
		assert_false(r.d.save);
	}
	tear_down(&r);
}

/* A state of which nobody heard whether it was stored may be the one that a successor finds. */
static void a_state_that_may_be_stored_bounds_raises(void **state)
{
	struct rig r;
	(void)state;
	set_up(&r);
	put_division(&r, WW_DIVISION_EQUAL);
	put_limit(&r, 1, SITE, 3000);
	tick(&r);
	r.disk_fails = true;
	for (int i = 0; i < 15 && (i == 0 || !r.d.save); i++)
		tick(&r);
	assert_true(r.d.save);
	assert_near(r.row[0].charge_w, 3000, 0.01);
	change_limit(&r, 2, 4000);
	tick(&r);
	for (int n = 0; n < NODES; n++) {
		assert_non_null(command_to(&r, n));
		assert_near(command_to(&r, n)->step[0].cap_w[0], 4000.0 / 12, 1);
		assert_true(r.needs_save[command_to(&r, n) - r.commands]);
		assert_near(r.peer[n].limit_w[0], 250, 0.01);
	}
	tear_down(&r);
}

/* Each byte flipped leaves a charge that could be. */
static void a_charge_that_could_be_is_refused_by_the_sum(void **state)
{
	struct rig r;
	struct ww_buf saved = {0}, charge = {0};
	int n_found = 0;
	(void)state;
	set_up_capped(&r);
	save(&r, &saved);
	ww_buf_f32(&charge, gpu_of(&r, 0, 0)->charge_w);
	for (size_t at = 0; at + charge.n <= saved.n; at++) {
		if (memcmp(saved.bytes + at, charge.bytes, charge.n) != 0)
			continue;
		n_found++;
		saved.bytes[at] ^= 0x01;
		assert_int_equal(ww_control_load(r.control, &saved, NULL), WW_ERR_INVALID);
		saved.bytes[at] ^= 0x01;
	}
	assert_true(n_found >= NODES * GPUS);
	assert_int_equal(ww_control_load(r.control, &saved, NULL), WW_OK);
	ww_buf_finish(&saved);
	ww_buf_finish(&charge);
	tear_down(&r);
}

/* ---- Clocks ------------------------------------------------------------------------------------------------------------- */

/* Seconds until anything rises after more watts are granted and the wall clock was set by so much. */
static int seconds_to_rise(int64_t set_us)
{
	struct rig r;
	int seconds = 0;
	set_up_capped(&r);
	r.now.wall_us += set_us;
	change_limit(&r, 2, 5000);
	while (r.peer[0].limit_w[0] < 251 && seconds < 100) {
		tick(&r);
		seconds++;
	}
	tear_down(&r);
	return seconds;
}

static void after_its_clock_was_set_nothing_rises_for_a_lease(void **state)
{
	(void)state;
	assert_int_equal(seconds_to_rise(0), 1);
	assert_int_equal(seconds_to_rise(SECOND), 1);
	assert_int_equal(seconds_to_rise(SECOND + 1), 1 + LEASE / SECOND);
	assert_int_equal(seconds_to_rise(-SECOND - 1), 1 + LEASE / SECOND);
}

/* ---- Refused ------------------------------------------------------------------------------------------------------------ */

static void times_that_cannot_work_are_refused(void **state)
{
	struct rig r;
	(void)state;
	set_up_capped(&r);
	r.config.valid_for_us = 3 * SECOND - 1000;
	refuse(&r, WW_INPUT_CONFIG, &r.config, WW_ERR_RANGE, "a lease of 2.999 s; give at least 3 s");
	r.config.valid_for_us = 3 * SECOND;
	r.nodes[1].shortest_boot_us = SETTLE + 10 * SECOND - 1000;
	refuse(&r, WW_INPUT_CONFIG, &r.config, WW_ERR_RANGE,
	       "'n2': boots in 11.999 s; give at least 10 s more than settle, 12 s");
	r.nodes[1].shortest_boot_us = SETTLE + 10 * SECOND;
	put(&r, WW_INPUT_CONFIG, &r.config);
	tear_down(&r);
}

static void check_states_refused(struct rig *r, struct ww_gpu_state bad)
{
	struct ww_sample sample = sample_of(r, 0);
	struct ww_ack ack = ack_of(r, 0);
	struct ww_hello hello = hello_of(r, 0, MAX_W, MAX_W, NAN);
	sample.gpus[1] = ack.gpus[1] = hello.gpus[1] = bad;
	refuse(r, WW_INPUT_SAMPLE, &sample, WW_ERR_RANGE, "GPU 1 what no board can have");
	refuse(r, WW_INPUT_ACK, &ack, WW_ERR_RANGE, "GPU 1 what no board can have");
	refuse(r, WW_INPUT_HELLO, &hello, WW_ERR_RANGE, "GPU 1 what no board can have");
}

static void what_no_board_can_have_is_refused(void **state)
{
	struct rig r;
	(void)state;
	set_up_capped(&r);
	for (int k = 0; k < 4; k++) {
		struct ww_gpu_state bad = sample_of(&r, 0).gpus[1];
		float *const values[] = {&bad.enforced_w.value, &bad.draw_w.value, &bad.target_w, &bad.requested_w};
		*values[k] = TOO_MUCH_W;
		check_states_refused(&r, bad);
	}
	tear_down(&r);
}

/* Limits are passed over: what the same hello shows is news. */
static void limits_that_no_board_can_have_are_passed_over(void **state)
{
	struct rig r;
	struct ww_hello hello;
	(void)state;
	set_up_capped(&r);
	r.peer[0].unmanaged[1] = true;
	r.peer[0].recorded_w = TOO_MUCH_W;
	hello = hello_of(&r, 0, 2 * TOO_MUCH_W, 2 * TOO_MUCH_W, NAN);
	put(&r, WW_INPUT_HELLO, &hello);
	run(&r, 2);
	assert_near(gpu_of(&r, 0, 1)->charge_w, MAX_W, 0);
	assert_int_equal(gpu_of(&r, 0, 1)->why, WW_WHY_UNMANAGED);
	tear_down(&r);
}

static void a_start_far_ahead_is_refused(void **state)
{
	static const int64_t day_us = 24 * 3600 * SECOND;
	struct rig r;
	struct ww_sample sample;
	(void)state;
	set_up_capped(&r);
	sample = sample_of(&r, 0);
	sample.from.start_id = (uint64_t)(r.now.wall_us + day_us + 1);
	refuse(&r, WW_INPUT_SAMPLE, &sample, WW_ERR_RANGE, "'n1': started more than a day from now");
	sample.from.start_id = UINT64_MAX;
	refuse(&r, WW_INPUT_SAMPLE, &sample, WW_ERR_RANGE, "'n1': started more than a day from now");
	sample.from.start_id = (uint64_t)(r.now.wall_us + day_us);
	put(&r, WW_INPUT_SAMPLE, &sample);
	tear_down(&r);
}

static void a_job_that_no_board_can_run_is_refused(void **state)
{
	struct rig r;
	struct ww_job job;
	(void)state;
	set_up_capped(&r);
	job = job_of(1, 0.1, 0.5);
	place(&job, 0, 0xf);
	job.curve.p0_w = (double)TOO_MUCH_W;
	refuse(&r, WW_INPUT_JOB, &job, WW_ERR_RANGE, "'job': p0_w of its curve is 100001 W");
	tear_down(&r);
}

static void a_time_that_no_clock_shows_is_refused(void **state)
{
	static const int64_t times_us[] = {INT64_MAX, INT64_MAX / 16, INT64_MIN, -INT64_MAX / 16};
	struct rig r;
	struct ww_now now;
	struct ww_job job;
	(void)state;
	set_up_capped(&r);
	now = r.now;
	job = job_of(1, 0.1, 0.5);
	place(&job, 0, 0xf);
	for (size_t i = 0; i < sizeof times_us / sizeof *times_us; i++) {
		r.now = (struct ww_now){times_us[i], now.wall_us};
		refuse(&r, WW_INPUT_JOB, &job, WW_ERR_RANGE, "a time that no clock shows");
		r.now = (struct ww_now){now.mono_us, times_us[i]};
		refuse(&r, WW_INPUT_JOB, &job, WW_ERR_RANGE, "a time that no clock shows");
	}
	r.now = now;
	put(&r, WW_INPUT_JOB, &job);
	tear_down(&r);
}

/* ---- Ramps --------------------------------------------------------------------------------------------------------------- */

/* From 6000 W down to 3000 in 100 s, and up again in as long. */
static struct ww_event ramp_of(const struct rig *r)
{
	struct ww_event event = event_of(r, 1, SITE, 3000);
	event.ramp_down_us = event.ramp_up_us = 100 * SECOND;
	return event;
}

static void a_cancelled_ramp_rises_from_where_it_was(void **state)
{
	struct rig r;
	struct ww_event event;
	double before_w;
	(void)state;
	set_up(&r);
	event = ramp_of(&r);
	put(&r, WW_INPUT_EVENT, &event);
	run(&r, 50);
	before_w = r.row[0].budget_w;
	assert_near(before_w, 4200, 1e-3); /* of the stair that comes within settle + 2 s */
	event.version = 2;
	event.cancelled = true;
	put(&r, WW_INPUT_EVENT, &event);
	for (int i = 1; i < 100; i++) {
		tick(&r);
		assert_near(r.row[0].budget_w, 4500 + 150 * floor(i / 10.0), 1e-3);
	}
	run(&r, 2);
	assert_true(isinf(r.row[0].budget_w));
	tear_down(&r);
}

static void check_early_end(int seconds, double expected_w)
{
	struct rig r;
	struct ww_event event;
	double lowest_w = 6000, last_w = 0;
	set_up(&r);
	event = ramp_of(&r);
	event.end_us = event.start_us + seconds * SECOND;
	put(&r, WW_INPUT_EVENT, &event);
	for (int i = 1; i < seconds + 100; i++) {
		tick(&r);
		lowest_w = fmin(lowest_w, r.row[0].budget_w);
		if (i > seconds)
			assert_true(r.row[0].budget_w >= last_w);
		last_w = r.row[0].budget_w;
	}
	assert_near(lowest_w, expected_w, 1e-3);
	tear_down(&r);
}

static void a_ramp_that_ends_early_rises_from_where_it_was(void **state)
{
	(void)state;
	check_early_end(50, 4500);
	check_early_end(88, 3300); /* shortly before its last stair */
}

/* ---- Schedules ------------------------------------------------------------------------------------------------------------ */

static void the_cap_at_the_end_of_a_lease_is_the_lowest_ahead(void **state)
{
	struct rig r;
	struct ww_event event;
	const struct ww_command *command;
	(void)state;
	plan(&r);
	r.config.after = WW_AFTER_FAILCAP;
	begin(&r);
	adopt(&r);
	event = event_of(&r, 1, SITE, 3600);
	event.start_us += 600 * SECOND;
	put(&r, WW_INPUT_EVENT, &event);
	event.id = 2;
	event.start_us += 600 * SECOND;
	event.limit_w = 2400;
	put(&r, WW_INPUT_EVENT, &event);
	tick(&r);
	command = command_to(&r, 0);
	assert_non_null(command);
	assert_true(command->n_steps >= 2);
	for (int g = 0; g < GPUS; g++) {
		float lowest_w = command->step[command->n_steps - 1].cap_w[g];
		assert_true(lowest_w < command->step[0].cap_w[g] - 50);
		assert_near(command->failcap_w[g], lowest_w, 0);
	}
	tear_down(&r);
}

/* The step was due while no controller was there; nodes that are only greeted get it at once. */
static void a_greeting_carries_a_step_that_has_just_come(void **state)
{
	struct rig r;
	struct ww_event event;
	struct ww_buf saved = {0};
	(void)state;
	set_up(&r);
	event = event_of(&r, 1, SITE, 3000);
	event.start_us += 100 * SECOND;
	put(&r, WW_INPUT_EVENT, &event);
	run(&r, 5);
	save(&r, &saved);
	ww_control_destroy(r.control);
	pass(&r, event.start_us - LEAD + SECOND - r.now.wall_us);
	r.now.mono_us = 17 * SECOND;
	assert_int_equal(ww_control_create(&r.control, NULL), WW_OK);
	assert_int_equal(ww_control_load(r.control, &saved, NULL), WW_OK);
	lead(&r, EPOCH + 1);
	step(&r);
	for (int n = 0; n < NODES; n++) {
		const struct ww_command *command = command_to(&r, n);
		assert_non_null(command);
		assert_int_equal(command->n_steps, 1);
		assert_near(command->step[0].cap_w[0], 250, 0.01);
	}
	ww_buf_finish(&saved);
	tear_down(&r);
}

/* ---- Inventories ---------------------------------------------------------------------------------------------------------- */

static void a_node_put_back_is_disbelieved_and_then_commanded(void **state)
{
	struct rig r;
	struct ww_fence seen;
	(void)state;
	set_up_capped(&r);
	seen = r.peer[2].seen;
	assert_true(seen.seq > 2);
	quiet(&r, 2, true);
	r.surprised = true;
	r.config.n_nodes = 2;
	put(&r, WW_INPUT_CONFIG, &r.config);
	run(&r, 3);
	r.config.n_nodes = 3;
	put(&r, WW_INPUT_CONFIG, &r.config);
	r.surprised = false;
	quiet(&r, 2, false);
	for (int g = 0; g < GPUS; g++)
		gpu_of(&r, 2, g)->cap_w = NAN; /* there was none to rise from */
	tick(&r);
	assert_int_equal(gpu_of(&r, 2, 0)->why, WW_WHY_ADOPTING);
	assert_near(gpu_of(&r, 2, 0)->charge_w, MAX_W, 0);
	run(&r, 5);
	assert_true(ww_fence_order(r.peer[2].seen, seen) > 0);
	assert_int_equal(gpu_of(&r, 2, 0)->why, WW_WHY_EQUAL);
	assert_true(gpu_of(&r, 2, 0)->charge_w <= 250.01f);
	tear_down(&r);
}

/* What a node had that was never heard of, only the inventory tells. */
static void an_unheard_node_counts_what_the_new_inventory_says(void **state)
{
	struct rig r;
	(void)state;
	plan(&r);
	begin(&r);
	for (int n = 0; n < NODES; n++)
		quiet(&r, n, true);
	run(&r, 5);
	assert_near(gpu_of(&r, 1, 0)->charge_w, MAX_W, 0);
	r.nodes[1].max_w = 600;
	put(&r, WW_INPUT_CONFIG, &r.config);
	tick(&r);
	assert_near(gpu_of(&r, 0, 0)->charge_w, MAX_W, 0);
	assert_near(gpu_of(&r, 1, 0)->charge_w, 600, 0);
	tear_down(&r);
}

/* ---- Meters --------------------------------------------------------------------------------------------------------------- */

/* A tenth of what the GPUs' charges are above their draw may follow it. */
static void set_up_metered(struct rig *r)
{
	struct ww_event event;
	plan(r);
	r->rows[0].has_meter = true;
	r->rows[0].meter_boundary = WW_BOUNDARY_METER;
	r->rows[0].follow[WW_BOUNDARY_METER] = 0.1;
	r->rest_w = 900;
	begin(r);
	adopt(r);
	event = event_of(r, 1, SITE, 9000); /* binds nothing */
	event.boundary = WW_BOUNDARY_METER;
	put(r, WW_INPUT_EVENT, &event);
	run(r, 60);
}

/* Most of a minute with another meter. */
static void read_meter(struct rig *r, double rest_w, uint16_t age_ms)
{
	r->rest_w = (double)NAN;
	for (int i = 0; i < 40; i++) {
		struct ww_meter meter = {SITE, {(float)(power_of(r) + rest_w), age_ms, WW_READING_OK}};
		put(r, WW_INPUT_METER, &meter);
		tick(r);
	}
}

static void an_old_reading_moves_no_bound(void **state)
{
	struct rig r;
	double before_w;
	(void)state;
	set_up_metered(&r);
	before_w = r.row[0].non_gpu_w;
	read_meter(&r, 1500, 2501);
	assert_near(r.row[0].non_gpu_w, before_w, 5);
	read_meter(&r, 1500, 2500);
	assert_true(r.row[0].non_gpu_w >= before_w + 550);
	tear_down(&r);
}

static void demand(struct rig *r, float w)
{
	for (int n = 0; n < NODES; n++)
		for (int g = 0; g < GPUS; g++)
			r->peer[n].demand_w[g] = w;
}

/* Fans follow within minutes: not before a long time at full draw does a reading hold what they take there. */
static void the_draw_behind_a_bound_rises_slowly_and_falls_fast(void **state)
{
	struct rig r;
	(void)state;
	set_up_metered(&r);
	assert_near(r.row[0].non_gpu_w, 900 + 0.1 * (6000 - 5760), 20);
	demand(&r, 200);
	run(&r, 60);
	assert_near(r.row[0].non_gpu_w, 900 + 0.1 * (6000 - 2400), 30);
	demand(&r, DEMAND_W);
	run(&r, 60);
	assert_true(r.row[0].non_gpu_w >= 900 + 0.1 * (6000 - 3600));
	run(&r, 900);
	assert_near(r.row[0].non_gpu_w, 900 + 0.1 * (6000 - 5760), 20);
	tear_down(&r);
}

/* ---- One job, one sum of watts --------------------------------------------------------------------------------------------- */

/* A job over the first and the last node, of which the first needs more watts for the same pace; the second is idle. */
static void live(struct rig *r, int seconds)
{
	static const float chips[NODES] = {1.06f, 1, 0.94f};
	for (int i = 0; i < seconds; i++) {
		float pace = P0_W;
		for (int n = 0; n < NODES; n += 2)
			for (int g = 0; g < GPUS; g++)
				pace = fminf(pace, r->peer[n].limit_w[g] / chips[n]);
		for (int n = 0; n < NODES; n += 2)
			for (int g = 0; g < GPUS; g++)
				r->peer[n].demand_w[g] = chips[n] * pace;
		tick(r);
	}
}

static void set_up_leaning(struct rig *r)
{
	struct ww_job job = job_of(1, 0.1, 0.5);
	plan(r);
	begin(r);
	place(&job, 0, 0xf);
	place(&job, 2, 0xf);
	put(r, WW_INPUT_JOB, &job);
	adopt(r);
	put_division(r, WW_DIVISION_EQUAL);
	put_limit(r, 1, SITE, 8 * 300 + 4 * MIN_W);
	live(r, 120);
	assert_near(gpu_of(r, 0, 0)->target_w, 318, 2);
	assert_near(gpu_of(r, 2, 0)->target_w, 282, 2);
}

static double targets_of(struct rig *r, int n)
{
	double w = 0;
	for (int g = 0; g < GPUS; g++)
		w += (double)gpu_of(r, n, g)->target_w;
	return w;
}

/* The even shares fit the rack, what the job has leant towards it does not. */
static void what_leans_stays_within_a_rack(void **state)
{
	struct rig r;
	(void)state;
	set_up_leaning(&r);
	put_limit(&r, 2, LEFT, 4 * 302 + 2 * MIN_W);
	for (int i = 0; i < 30; i++) {
		live(&r, 1);
		assert_true(targets_of(&r, 0) + 0.5 * targets_of(&r, 1) <= 4 * 302 + 2 * MIN_W + 0.01);
		assert_true(targets_of(&r, 0) >= 4 * 301 - 0.01); /* but what it can carry of that is given */
		assert_true(targets_of(&r, 0) + targets_of(&r, 1) + targets_of(&r, 2) <= 8 * 300 + 4 * MIN_W + 0.01);
	}
	tear_down(&r);
}

/* What those that lean less leave is theirs alone as long as they do not answer. */
static void beside_a_silent_partner_none_leans(void **state)
{
	struct rig r;
	(void)state;
	set_up_leaning(&r);
	quiet(&r, 2, true);
	for (int i = 0; i < 60; i++) {
		live(&r, 1);
		assert_true(targets_of(&r, 0) + targets_of(&r, 1) + charge_of(&r, 2) <= 8 * 300 + 4 * MIN_W + 0.01);
	}
	assert_int_equal(gpu_of(&r, 2, 0)->why, WW_WHY_SILENT);
	tear_down(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_boot_limit_above_the_inventory_counts),
		cmocka_unit_test(a_highest_limit_above_the_inventory_counts),
		cmocka_unit_test(a_release_waits_until_its_watts_are_charged),
		cmocka_unit_test(a_command_that_allows_a_release_counts_with_it),
		cmocka_unit_test(a_release_is_taken_back_at_once),
		cmocka_unit_test(what_was_accepted_is_stored),
		cmocka_unit_test(what_a_successor_would_count_is_stored_again),
		cmocka_unit_test(a_state_that_may_be_stored_bounds_raises),
		cmocka_unit_test(a_charge_that_could_be_is_refused_by_the_sum),
		cmocka_unit_test(after_its_clock_was_set_nothing_rises_for_a_lease),
		cmocka_unit_test(times_that_cannot_work_are_refused),
		cmocka_unit_test(what_no_board_can_have_is_refused),
		cmocka_unit_test(limits_that_no_board_can_have_are_passed_over),
		cmocka_unit_test(a_start_far_ahead_is_refused),
		cmocka_unit_test(a_job_that_no_board_can_run_is_refused),
		cmocka_unit_test(a_time_that_no_clock_shows_is_refused),
		cmocka_unit_test(a_cancelled_ramp_rises_from_where_it_was),
		cmocka_unit_test(a_ramp_that_ends_early_rises_from_where_it_was),
		cmocka_unit_test(the_cap_at_the_end_of_a_lease_is_the_lowest_ahead),
		cmocka_unit_test(a_greeting_carries_a_step_that_has_just_come),
		cmocka_unit_test(a_node_put_back_is_disbelieved_and_then_commanded),
		cmocka_unit_test(an_unheard_node_counts_what_the_new_inventory_says),
		cmocka_unit_test(an_old_reading_moves_no_bound),
		cmocka_unit_test(the_draw_behind_a_bound_rises_slowly_and_falls_fast),
		cmocka_unit_test(what_leans_stays_within_a_rack),
		cmocka_unit_test(beside_a_silent_partner_none_leans),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
