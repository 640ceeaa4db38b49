/* SPDX-License-Identifier: Apache-2.0 */
/* A step allocates nothing; an input for which memory runs out changes nothing and can be put again. */
#include "control_rig.h"

#include "wrapped_memory.h"

const struct ww_decision *__real_ww_control_step(ww_control *control, struct ww_now now);
const struct ww_decision *__wrap_ww_control_step(ww_control *control, struct ww_now now);

/* Every step of this program is watched. */
const struct ww_decision *__wrap_ww_control_step(ww_control *control, struct ww_now now)
{
	unsigned long before = n_allocations;
	const struct ww_decision *decision = __real_ww_control_step(control, now);
	assert_int_equal(n_allocations - before, 0);
	return decision;
}

static void no_step_allocates(void **state)
{
	struct rig r;
	struct ww_event event;
	struct ww_job unknown = {.id = 4, .name = "unknown", .weight = 1};
	struct ww_job gone = {.id = 1};
	(void)state;
	set_up(&r);
	for (uint64_t i = 1; i <= 6; i++) {
		event = event_of(&r, i, i % 2 ? SITE : RIGHT, 3000 - 200 * (double)i);
		event.start_us += (int64_t)i * 10 * SECOND;
		event.end_us = event.start_us + 30 * SECOND;
		event.ramp_down_us = event.ramp_up_us = 5 * SECOND;
		put(&r, WW_INPUT_EVENT, &event);
		run(&r, 3);
	}
	run(&r, 20);
	put(&r, WW_INPUT_JOB, &gone);
	run(&r, 3);
	place(&unknown, 0, 0x3);
	put(&r, WW_INPUT_JOB, &unknown);
	run(&r, 10);
	r.peer[1].mute = r.peer[1].deaf = true;
	run(&r, 100);
	put_division(&r, WW_DIVISION_EXACT);
	put(&r, WW_INPUT_CONFIG, &r.config);
	run(&r, 10);
	split(&r);
	run(&r, 10);
	tear_down(&r);
}

static void a_division_is_refined_without_memory(void **state)
{
	struct rig r;
	(void)state;
	set_up(&r);
	put_limit(&r, 1, SITE, 3600);
	put_limit(&r, 2, LEFT, 1700);
	run(&r, 30);
	assert_true(r.job[2].cut_frac < r.job[2].equal_cut_frac - 0.01); /* it was */
	tear_down(&r);
}

/* ---- Memory that runs out ------------------------------------------------------------------------------------------------ */

/* Puts it with the n-th allocation failing; whether it was refused. */
static bool runs_out(struct rig *r, const struct ww_input *in, unsigned long n)
{
	struct ww_buf before = {0}, after = {0};
	struct ww_error err = {WW_OK, ""};
	save(r, &before);
	until_failure = n;
	armed = true;
	ww_status status = ww_control_put(r->control, in, &err);
	bool failed = until_failure == 0 || until_failure > n;
	armed = false;
	if (status == WW_OK) {
		assert_false(failed);
	} else {
		assert_int_equal(status, WW_ERR_NOMEM);
		assert_non_null(strstr(err.text, "out of memory"));
		save(r, &after);
		assert_same_bytes(&before, &after);
		for (int i = 0; i < 3; i++)
			tick(r);
	}
	ww_buf_finish(&before);
	ww_buf_finish(&after);
	return status != WW_OK;
}

static void check_input(enum ww_input_kind kind, const void *what)
{
	bool refused = true;
	unsigned long n = 0;
	while (refused) {
		struct rig r;
		struct ww_input in;
		set_up(&r);
		put_limit(&r, 1, SITE, 3600);
		run(&r, 5);
		in = input_of(&r, kind, what);
		refused = runs_out(&r, &in, ++n);
		if (refused)
			put(&r, kind, what);
		run(&r, 5);
		tear_down(&r);
		assert_true(n < 200);
	}
	assert_true(n > 1); /* it does allocate */
}

static void for_a_job_that_changes(void **state)
{
	struct ww_job job = job_of(3, 0.2, 0.3); /* on fewer GPUs than before */
	(void)state;
	place(&job, 2, 0x7);
	check_input(WW_INPUT_JOB, &job);
}

static void for_one_more_job(void **state)
{
	bool refused = true;
	(void)state;
	for (unsigned long n = 1; refused; n++) {
		struct rig r;
		struct ww_job job = job_of(9, 0.2, 0.3), other = job_of(10, 0.2, 0.3), gone = {.id = 3};
		struct ww_input in;
		set_up(&r);
		put(&r, WW_INPUT_JOB, &gone);
		place(&other, 2, 0x3);
		put(&r, WW_INPUT_JOB, &other);
		put_limit(&r, 1, SITE, 3600);
		run(&r, 5);
		place(&job, 2, 0xc); /* one more than there ever were */
		in = input_of(&r, WW_INPUT_JOB, &job);
		refused = runs_out(&r, &in, n);
		if (refused)
			put(&r, WW_INPUT_JOB, &job);
		run(&r, 5);
		assert_int_equal(r.d.n_jobs, 4);
		tear_down(&r);
	}
}

static void for_an_event(void **state)
{
	struct rig r;
	struct ww_event event;
	(void)state;
	plan(&r);
	event = event_of(&r, 5, SITE, 3000);
	ww_control_destroy(r.control);
	check_input(WW_INPUT_EVENT, &event);
}

static void for_an_inventory(void **state)
{
	struct rig r;
	(void)state;
	plan(&r);
	r.rows[1].limit_w = 2000;
	check_input(WW_INPUT_CONFIG, &r.config);
	tear_down(&r);
}

static void for_a_state(void **state)
{
	struct rig r;
	struct ww_buf saved = {0}, after = {0};
	struct ww_error err;
	ww_status status = WW_ERR_NOMEM;
	(void)state;
	set_up(&r);
	put_limit(&r, 1, SITE, 3600);
	run(&r, 5);
	save(&r, &saved);
	for (unsigned long n = 1; status != WW_OK; n++) {
		until_failure = n;
		armed = true;
		status = ww_control_load(r.control, &saved, &err);
		armed = false;
		/* A reader without memory for the inventory finds it bad. */
		if (status != WW_OK)
			assert_true(status == WW_ERR_NOMEM || (status == WW_ERR_INVALID && n < 10));
		save(&r, &after);
		assert_same_bytes(&saved, &after);
	}
	run(&r, 3);
	ww_buf_finish(&saved);
	ww_buf_finish(&after);
	tear_down(&r);
}

static void for_saving(void **state)
{
	struct rig r;
	struct ww_buf saved = {0};
	(void)state;
	set_up(&r);
	for (unsigned long n = 1; n < 8; n++) {
		ww_buf_finish(&saved);
		until_failure = n;
		armed = true;
		ww_status status = ww_control_save(r.control, &saved);
		armed = false;
		assert_int_equal(status, saved.failed ? WW_ERR_NOMEM : WW_OK);
		assert_true(n > 1 || saved.failed);
	}
	ww_buf_finish(&saved);
	tear_down(&r);
}

static void for_creating(void **state)
{
	ww_status status = WW_ERR_NOMEM;
	(void)state;
	for (unsigned long n = 1; status != WW_OK; n++) {
		ww_control *control = NULL;
		until_failure = n;
		armed = true;
		status = ww_control_create(&control, NULL);
		armed = false;
		if (status == WW_OK)
			ww_control_destroy(control);
		else
			assert_int_equal(status, WW_ERR_NOMEM);
	}
	ww_control_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_step_allocates),
		cmocka_unit_test(a_division_is_refined_without_memory),
		cmocka_unit_test(for_a_job_that_changes),
		cmocka_unit_test(for_one_more_job),
		cmocka_unit_test(for_an_event),
		cmocka_unit_test(for_an_inventory),
		cmocka_unit_test(for_a_state),
		cmocka_unit_test(for_saving),
		cmocka_unit_test(for_creating),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
