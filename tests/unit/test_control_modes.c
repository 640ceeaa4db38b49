/* SPDX-License-Identifier: Apache-2.0 */
/* What people let control do: freeze, disengage, and enforce again. */
#include "control_rig.h"

/* A budget on the site in watts of its GPUs, from in_s on for for_s. */
static void put_budget(struct rig *r, uint64_t id, enum ww_class cls, double limit_w, int for_s)
{
	struct ww_event event = event_of(r, id, SITE, limit_w);
	event.cls = (uint8_t)cls;
	event.start_us = r->now.wall_us;
	event.end_us = event.start_us + for_s * SECOND;
	put(r, WW_INPUT_EVENT, &event);
}

static double limits_w(const struct rig *r)
{
	double w = 0;
	for (int n = 0; n < NODES; n++)
		for (int g = 0; g < GPUS; g++)
			w += (double)r->peer[n].limit_w[g];
	return w;
}

/* Lives so many seconds in which no limit may rise. */
static void run_without_a_rise(struct rig *r, int seconds)
{
	for (int i = 0; i < seconds; i++) {
		float before_w[NODES][GPUS];
		for (int n = 0; n < NODES; n++)
			memcpy(before_w[n], r->peer[n].limit_w, sizeof before_w[n]);
		tick(r);
		for (int n = 0; n < NODES; n++)
			for (int g = 0; g < GPUS; g++)
				assert_true(r->peer[n].limit_w[g] <= before_w[n][g]);
	}
}

static void frozen_nothing_rises_after_an_event(void **state)
{
	struct rig r;
	(void)state;
	set_up(&r);
	put_budget(&r, 1, WW_CLASS_CONTRACT, 3000, 60);
	run(&r, 40);
	put_mode(&r, WW_MODE_FREEZE);
	run_without_a_rise(&r, 600);
	assert_true(limits_w(&r) <= 3000);
	assert_int_equal(r.d.mode, WW_MODE_FREEZE);
	assert_int_equal(gpu_of(&r, 0, 0)->why, WW_WHY_FROZEN);
	put_mode(&r, WW_MODE_ENFORCE);
	run(&r, 300);
	assert_near(limits_w(&r), NODES * GPUS * MAX_W, 0.01);
	tear_down(&r);
}

static void frozen_a_budget_still_lowers(void **state)
{
	struct rig r;
	(void)state;
	set_up(&r);
	put_mode(&r, WW_MODE_FREEZE);
	run_without_a_rise(&r, 5);
	assert_near(limits_w(&r), NODES * GPUS * MAX_W, 0.01);
	put_budget(&r, 1, WW_CLASS_CONTRACT, 3000, 60);
	run_without_a_rise(&r, 5);
	assert_true(limits_w(&r) <= 3000);
	assert_near(r.row[0].missing_w, 0, 0);
	tear_down(&r);
}

/* Watts that one job gives are of no use while the others may not take them. */
static void frozen_no_job_gives_for_another(void **state)
{
	struct rig r;
	(void)state;
	set_up(&r);
	put_division(&r, WW_DIVISION_EQUAL);
	put_budget(&r, 1, WW_CLASS_CONTRACT, 3000, 3600);
	run(&r, 20);
	put_mode(&r, WW_MODE_FREEZE);
	double before_w = limits_w(&r);
	put_division(&r, WW_DIVISION_AUTO);
	run_without_a_rise(&r, 120);
	assert_near(limits_w(&r), before_w, 0.01);
	tear_down(&r);
}

static void frozen_leases_end_in_hold_and_none_is_released(void **state)
{
	struct rig r;
	(void)state;
	plan(&r);
	r.config.after = WW_AFTER_RESTORE;
	begin(&r);
	put_job(&r, 1, 0, 0.1, 0.5);
	adopt(&r);
	put_mode(&r, WW_MODE_FREEZE);
	run(&r, 5);
	for (int n = 0; n < NODES; n++) {
		assert_int_equal(r.peer[n].lease.after, WW_AFTER_HOLD);
		assert_int_equal(r.peer[n].lease.release_ok, 0);
	}
	put_mode(&r, WW_MODE_ENFORCE);
	run(&r, 5);
	for (int n = 0; n < NODES; n++) {
		assert_int_equal(r.peer[n].lease.after, WW_AFTER_RESTORE);
		assert_int_equal(r.peer[n].lease.release_ok, 1);
	}
	tear_down(&r);
}

static void disengaged_limits_come_back_in_steps(void **state)
{
	struct rig r;
	double before_w;
	(void)state;
	set_up(&r);
	put_budget(&r, 1, WW_CLASS_CONTRACT, 3000, 3600);
	run(&r, 60);
	before_w = limits_w(&r);
	put_mode(&r, WW_MODE_DISENGAGE);
	run(&r, 9);
	assert_true(limits_w(&r) <= before_w + NODES * GPUS * 25);
	assert_int_equal(gpu_of(&r, 0, 0)->why, WW_WHY_STAGGER);
	assert_true(r.event[0].let_go);
	assert_true(isinf(r.row[0].budget_w));
	run(&r, 300);
	assert_near(limits_w(&r), NODES * GPUS * MAX_W, 0.01);
	put_mode(&r, WW_MODE_ENFORCE);
	run(&r, 5);
	assert_false(r.event[0].let_go);
	assert_true(limits_w(&r) <= 3000);
	tear_down(&r);
}

static void with_the_clock_set_back_steps_stay_steps(void **state)
{
	struct rig r;
	(void)state;
	set_up(&r);
	put_budget(&r, 1, WW_CLASS_CONTRACT, 2000, 7200);
	run(&r, 60);
	put_mode(&r, WW_MODE_DISENGAGE);
	run(&r, 2);
	r.now.wall_us -= 1800 * SECOND;
	for (int n = 0; n < NODES; n++)
		r.peer[n].leased_us -= 1800 * SECOND;
	run(&r, (int)(LEASE / SECOND) + 2);
	double before_w = limits_w(&r);
	run(&r, 30);
	assert_true(limits_w(&r) <= before_w + NODES * GPUS * 4 * 25);
	assert_true(limits_w(&r) > before_w);
	tear_down(&r);
}

/* Breakers and rows' own limits do not care what people would like. */
static void disengaged_what_protects_is_kept(void **state)
{
	struct rig r;
	(void)state;
	plan(&r);
	r.rows[1].limit_w = 2400; /* left: node 1 and half of node 2 */
	begin(&r);
	put_job(&r, 1, 0, 0.1, 0.5);
	put_job(&r, 2, 1, 0.1, 1);
	put_job(&r, 3, 2, 0.1, 2);
	adopt(&r);
	put_budget(&r, 1, WW_CLASS_PROTECTION, 4000, 3600);
	put_budget(&r, 2, WW_CLASS_CONTRACT, 3000, 3600);
	run(&r, 30);
	put_mode(&r, WW_MODE_DISENGAGE);
	run(&r, 600);
	double left_w = 0;
	for (int g = 0; g < GPUS; g++)
		left_w += (double)r.peer[0].limit_w[g] + 0.5 * (double)r.peer[1].limit_w[g];
	assert_true(limits_w(&r) > 3500);
	assert_true(limits_w(&r) <= 4000);
	assert_true(left_w <= 2400);
	assert_false(r.event[0].let_go);
	assert_true(r.event[1].let_go);
	assert_near(r.row[0].missing_w, 0, 0);
	tear_down(&r);
}

static void disengaged_nothing_known_ahead_is_ordered(void **state)
{
	struct rig r;
	(void)state;
	set_up(&r);
	put_mode(&r, WW_MODE_DISENGAGE);
	struct ww_event event = event_of(&r, 1, SITE, 3000);
	event.start_us = r.now.wall_us + 60 * SECOND;
	event.end_us = event.start_us + 600 * SECOND;
	put(&r, WW_INPUT_EVENT, &event);
	run(&r, 20);
	for (int n = 0; n < NODES; n++)
		assert_int_equal(r.peer[n].lease.n_steps, 1);
	run(&r, 60);
	assert_near(limits_w(&r), NODES * GPUS * MAX_W, 0.01);
	tear_down(&r);
}

static void a_mode_is_stored_and_taken_over(void **state)
{
	struct rig r;
	struct ww_buf state_bytes = {0};
	(void)state;
	set_up(&r);
	put_budget(&r, 1, WW_CLASS_CONTRACT, 3000, 30);
	run(&r, 20);
	put_mode(&r, WW_MODE_FREEZE);
	step(&r);
	assert_true(r.d.save);
	save(&r, &state_bytes);
	assert_int_equal(ww_control_load(r.control, &state_bytes, NULL), WW_OK);
	lead(&r, EPOCH + 1);
	run_without_a_rise(&r, 300);
	assert_int_equal(r.d.mode, WW_MODE_FREEZE);
	assert_true(limits_w(&r) <= 3000);
	ww_buf_finish(&state_bytes);
	tear_down(&r);
}

/* The controller dies, and another one begins with the state that is on `disk`. */
static void replace(struct rig *r, const struct ww_buf *disk, uint64_t epoch)
{
	assert_int_equal(ww_control_load(r->control, disk, NULL), WW_OK);
	lead(r, epoch);
	r->d.seq = 0;
	memset(r->gpu, 0, sizeof r->gpu);
	copy_decision(r, ww_control_step(r->control, r->now));
}

/* Leases that restore went out and were not stored any more; a node that heard them is not heard since. The next leader is
 * told that leases hold now, and dies as well. */
static void leases_of_two_leaders_before_still_count(void **state)
{
	struct rig r;
	struct ww_buf disk = {0};
	(void)state;
	plan(&r);
	for (int n = 0; n < NODES; n++)
		r.nodes[n].boot_cap_w = 150;
	r.config.after = WW_AFTER_RESTORE;
	begin(&r);
	for (int n = 0; n < NODES; n++)
		put_job(&r, (uint64_t)n + 1, n, 0.1, 0.5);
	adopt(&r);
	put_mode(&r, WW_MODE_FREEZE);
	put_budget(&r, 1, WW_CLASS_CONTRACT, 3000, 7200);
	run(&r, 60);
	save(&r, &disk);
	r.disk_fails = true;
	put_mode(&r, WW_MODE_ENFORCE);
	run(&r, 1);
	assert_int_equal(r.peer[0].lease.after, WW_AFTER_RESTORE);
	r.disk_fails = false;
	r.peer[0].deaf = r.peer[0].mute = true;
	pass(&r, 10 * SECOND);
	replace(&r, &disk, EPOCH + 1);
	r.config.after = WW_AFTER_HOLD;
	put(&r, WW_INPUT_CONFIG, &r.config);
	tick(&r);
	save(&r, &disk);
	pass(&r, SECOND);
	replace(&r, &disk, EPOCH + 2);
	run(&r, 70);
	assert_near(r.peer[0].limit_w[0], MAX_W, 0);
	ww_buf_finish(&disk);
	tear_down(&r);
}

static void a_mode_that_does_not_exist_is_refused(void **state)
{
	struct rig r;
	struct ww_error err = {WW_OK, ""};
	struct ww_input in = {.kind = WW_INPUT_MODE};
	(void)state;
	set_up(&r);
	in.at = r.now;
	in.u.mode = WW_N_MODES;
	assert_int_equal(ww_control_put(r.control, &in, &err), WW_ERR_RANGE);
	assert_string_equal(err.text, "mode 3 does not exist");
	assert_string_equal(ww_mode_name(WW_MODE_FREEZE), "freeze");
	tear_down(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frozen_nothing_rises_after_an_event),
		cmocka_unit_test(frozen_a_budget_still_lowers),
		cmocka_unit_test(frozen_no_job_gives_for_another),
		cmocka_unit_test(frozen_leases_end_in_hold_and_none_is_released),
		cmocka_unit_test(disengaged_limits_come_back_in_steps),
		cmocka_unit_test(with_the_clock_set_back_steps_stay_steps),
		cmocka_unit_test(disengaged_what_protects_is_kept),
		cmocka_unit_test(disengaged_nothing_known_ahead_is_ordered),
		cmocka_unit_test(a_mode_is_stored_and_taken_over),
		cmocka_unit_test(leases_of_two_leaders_before_still_count),
		cmocka_unit_test(a_mode_that_does_not_exist_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
