/* SPDX-License-Identifier: Apache-2.0 */
/* What is told again, what is told anew of things that stay, and what is told at a wrong time. */
#include "control_rig.h"

static void set_up_uneven(struct rig *r)
{
	plan(r);
	begin(r);
	put_job(r, 1, 0, 0.02, 0.2);
	put_job(r, 2, 1, 0.3, 2);
	put_job(r, 3, 2, 0.1, 1);
	adopt(r);
	put_limit(r, 1, SITE, 3600);
	run(r, 100);
	assert_true(r->job[0].cut_frac > r->job[0].equal_cut_frac + 0.1);
}

static void a_job_told_again_changes_nothing(void **state)
{
	struct rig r;
	(void)state;
	set_up_uneven(&r);
	double cut_frac = r.job[1].cut_frac;
	int got = r.peer[0].n_got;
	for (int i = 0; i < 10; i++) {
		put_job(&r, 1, 0, 0.02, 0.2);
		tick(&r);
		assert_near(r.job[1].cut_frac, cut_frac, 1e-9);
	}
	assert_true(r.peer[0].n_got <= got + 3);
	tear_down(&r);
}

static void a_configuration_told_again_changes_nothing(void **state)
{
	struct rig r;
	(void)state;
	set_up_uneven(&r);
	double cut_frac = r.job[1].cut_frac;
	for (int i = 0; i < 10; i++) {
		put(&r, WW_INPUT_CONFIG, &r.config);
		tick(&r);
		assert_false(r.d.save);
		assert_near(r.job[1].cut_frac, cut_frac, 1e-9);
	}
	tear_down(&r);
}

/* What it has shown was of something else. */
static void a_meter_that_is_moved_has_shown_nothing(void **state)
{
	struct rig r;
	struct ww_row *site = &r.rows[0];
	(void)state;
	plan(&r);
	site->has_meter = true;
	site->meter_boundary = WW_BOUNDARY_IT;
	site->boundary = WW_BOUNDARY_METER;
	site->limit_w = 5000;
	site->fixed_w[WW_BOUNDARY_METER] = 3000;
	site->fixed_w[WW_BOUNDARY_IT] = 200;
	r.rest_w = 200;
	begin(&r);
	for (int n = 0; n < NODES; n++)
		put_job(&r, (uint64_t)n + 1, n, 0.1, 0.5);
	adopt(&r);
	run(&r, 60);
	site->meter_boundary = WW_BOUNDARY_METER;
	put(&r, WW_INPUT_CONFIG, &r.config);
	r.rest_w = 3000;
	for (int i = 0; i < 60; i++) {
		tick(&r);
		assert_true(power_of(&r) + 3000 <= 5000.01);
	}
	tear_down(&r);
}

static void an_event_whose_row_is_gone_is_not_said_to_be_kept(void **state)
{
	struct rig r;
	(void)state;
	set_up(&r);
	put_limit(&r, 1, LEFT, 1000);
	run(&r, 30);
	assert_near(r.event[0].missing_w, 0, 0);
	r.rows[1].id = 999;
	put(&r, WW_INPUT_CONFIG, &r.config);
	run(&r, 3);
	assert_true(isnan(r.event[0].missing_w));
	tear_down(&r);
}

static void a_clock_far_ahead_ends_no_event(void **state)
{
	struct rig r;
	(void)state;
	set_up(&r);
	struct ww_event event = event_of(&r, 1, SITE, 3000), other = event_of(&r, 2, RIGHT, 2000);
	event.end_us = event.start_us + 7200 * SECOND;
	put(&r, WW_INPUT_EVENT, &event);
	run(&r, 30);
	struct ww_now had = r.now;
	other.start_us += 3600 * SECOND;
	r.now.wall_us += INT64_C(40) * 86400 * SECOND;
	put(&r, WW_INPUT_EVENT, &other);
	r.now = had;
	run(&r, 30);
	assert_int_equal(r.d.n_events, 2);
	assert_near(r.row[0].budget_w, 3000, 0);
	tear_down(&r);
}

/* It may run on where nobody sees it but the meter. */
static void a_node_taken_out_counts_as_the_rest(void **state)
{
	struct rig r;
	(void)state;
	plan(&r);
	r.rows[0].has_meter = true;
	r.rows[0].meter_boundary = r.rows[0].boundary = WW_BOUNDARY_METER;
	r.rows[0].limit_w = 4500;
	r.rest_w = 500;
	begin(&r);
	for (int n = 0; n < NODES; n++)
		put_job(&r, (uint64_t)n + 1, n, 0.1, 0.5);
	adopt(&r);
	run(&r, 120);
	struct ww_job ends = {.id = 3, .name = "job"};
	put(&r, WW_INPUT_JOB, &ends);
	r.config.n_nodes = 2;
	r.peer[2].mute = r.peer[2].deaf = true;
	put(&r, WW_INPUT_CONFIG, &r.config);
	r.surprised = true; /* the rig knows of three nodes */
	for (int i = 0; i < 30; i++) {
		r.peer[2].demand_w[0] = DEMAND_W;
		pass(&r, SECOND);
		listen(&r);
		const struct ww_decision *d = ww_control_step(r.control, r.now);
		for (uint32_t k = 0; k < d->n_commands; k++)
			accept(&r, &r.peer[d->commands[k].node - 1], &d->commands[k]);
		struct ww_input in = input_of(&r, WW_INPUT_SAVED, NULL);
		in.u.saved = d->seq;
		put_input(&r, &in);
		assert_true(power_of(&r) + r.rest_w <= 4500.01);
	}
	tear_down(&r);
}

static void limits_that_no_board_has_are_refused(void **state)
{
	struct rig r;
	struct ww_error err = {WW_OK, ""};
	(void)state;
	plan(&r);
	r.nodes[1].max_w = r.nodes[1].default_w = 1.1e6f;
	struct ww_input in = input_of(&r, WW_INPUT_CONFIG, &r.config);
	assert_int_equal(ww_control_put(r.control, &in, &err), WW_ERR_RANGE);
	assert_string_equal(err.text, "node 'n2': max_w is 1.1e+06 W per GPU; must be at most 100000");
	tear_down(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_told_again_changes_nothing),
		cmocka_unit_test(a_configuration_told_again_changes_nothing),
		cmocka_unit_test(a_meter_that_is_moved_has_shown_nothing),
		cmocka_unit_test(an_event_whose_row_is_gone_is_not_said_to_be_kept),
		cmocka_unit_test(a_clock_far_ahead_ends_no_event),
		cmocka_unit_test(a_node_taken_out_counts_as_the_rest),
		cmocka_unit_test(limits_that_no_board_has_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
