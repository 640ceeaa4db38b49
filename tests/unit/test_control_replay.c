/* SPDX-License-Identifier: Apache-2.0 */
/* A saved state goes on as if nothing had happened: the same inputs give the same decisions, byte for byte. */
#include "control_rig.h"

static void change_limit(struct rig *r, uint32_t version, double limit_w)
{
	struct ww_event event = event_of(r, 1, SITE, limit_w);
	event.version = version;
	put(r, WW_INPUT_EVENT, &event);
}

static void a_state_before_the_first_step(void **state)
{
	struct rig r;
	(void)state;
	plan(&r);
	split(&r); /* before the inventory */
	begin(&r);
	split(&r);
	put_job(&r, 1, 0, 0.1, 0.5);
	split(&r);
	run(&r, 20);
	tear_down(&r);
}

static void while_leases_are_adopted_and_without_a_budget(void **state)
{
	struct rig r;
	(void)state;
	plan(&r);
	begin(&r);
	put_job(&r, 1, 0, 0.1, 0.5);
	run(&r, 5);
	split(&r);
	run(&r, 80);
	split(&r);
	run(&r, 20);
	tear_down(&r);
}

static void while_a_division_is_refined(void **state)
{
	(void)state;
	for (int after = 0; after < 8; after++) {
		struct rig r;
		set_up(&r);
		put_limit(&r, 1, SITE, 3500);
		put_limit(&r, 2, RIGHT, 1200);
		run(&r, after);
		split(&r);
		run(&r, 30);
		tear_down(&r);
	}
}

static void in_ramps(void **state)
{
	struct rig r;
	struct ww_event event;
	(void)state;
	set_up(&r);
	event = event_of(&r, 1, SITE, 3000);
	event.start_us += 30 * SECOND;
	event.ramp_down_us = event.ramp_up_us = 60 * SECOND;
	event.end_us = event.start_us + 120 * SECOND;
	put(&r, WW_INPUT_EVENT, &event);
	for (int i = 0; i < 30; i++) {
		run(&r, 9);
		split(&r);
	}
	tear_down(&r);
}

static void with_commands_on_their_way(void **state)
{
	struct rig r;
	(void)state;
	set_up(&r);
	put_limit(&r, 1, SITE, 3000);
	r.peer[0].deaf = true;
	for (uint32_t i = 0; i < 12; i++) {
		change_limit(&r, 2 + i, i % 2 ? 3000 : 4000);
		tick(&r);
		split(&r);
	}
	r.peer[0].deaf = false;
	run(&r, 10);
	tear_down(&r);
}

/* Its ramp begins at what is charged now, whether or not a step came between. */
static void with_an_event_right_after(void **state)
{
	struct rig r;
	struct ww_event event;
	(void)state;
	set_up(&r);
	split(&r);
	event = event_of(&r, 1, SITE, 3000);
	event.ramp_down_us = 60 * SECOND;
	put(&r, WW_INPUT_EVENT, &event);
	run(&r, 20);
	tear_down(&r);
}

static void with_a_raise_that_is_being_stored(void **state)
{
	struct rig r;
	(void)state;
	set_up(&r);
	put_limit(&r, 1, SITE, 3000);
	run(&r, 10);
	put_saved(&r, r.d.seq);
	r.disk_fails = true;
	change_limit(&r, 2, 4000);
	tick(&r);
	assert_true(r.d.save);
	split(&r);
	r.disk_fails = false;
	put_saved(&r, r.d.seq);
	run(&r, 10);
	tear_down(&r);
}

/* Boards of 1000 W that draw 900 W, and nobody knows the curve of the job on them. */
static void with_a_job_that_has_no_curve(void **state)
{
	struct rig r;
	struct ww_job job = {.id = 2, .name = "unknown", .weight = 1};
	(void)state;
	plan(&r);
	for (int n = 0; n < NODES; n++) {
		r.nodes[n].max_w = r.nodes[n].default_w = 1000;
		r.peer[n].recorded_w = 1000;
		for (int g = 0; g < GPUS; g++) {
			r.peer[n].limit_w[g] = 1000;
			r.peer[n].demand_w[g] = 900;
		}
	}
	begin(&r);
	place(&job, 1, 0xf);
	put(&r, WW_INPUT_JOB, &job);
	for (int i = 0; i < 20; i++) {
		for (int g = 0; g < GPUS; g++)
			r.peer[1].demand_w[g] = 900 + (float)i;
		run(&r, 4);
		split(&r);
	}
	put_limit(&r, 1, SITE, 8000);
	for (int i = 0; i < 20; i++) {
		run(&r, 3);
		split(&r);
	}
	tear_down(&r);
}

static void with_meters(void **state)
{
	struct rig r;
	struct ww_event event;
	(void)state;
	plan(&r);
	r.rows[0].has_meter = true;
	r.rows[0].meter_boundary = WW_BOUNDARY_METER;
	r.rest_w = 900;
	begin(&r);
	put_job(&r, 1, 0, 0.1, 0.5);
	put_job(&r, 3, 2, 0.1, 2);
	adopt(&r);
	event = event_of(&r, 1, SITE, (double)NAN);
	event.cut_frac = 0.3;
	event.boundary = WW_BOUNDARY_METER;
	put(&r, WW_INPUT_EVENT, &event);
	for (int i = 0; i < 40; i++) {
		r.rest_w = 900 + 20 * (i % 3);
		run(&r, 2);
		split(&r);
	}
	tear_down(&r);
}

static void disturb(struct rig *r, struct ww_rng *rng, uint32_t i)
{
	struct peer *p = &r->peer[ww_rng_below(rng, NODES)];
	if (ww_rng_below(rng, 12) == 0)
		change_limit(r, 2 + i, 1500 + 500 * (double)ww_rng_below(rng, 10));
	if (ww_rng_below(rng, 8) == 0)
		p->deaf = !p->deaf;
	if (ww_rng_below(rng, 8) == 0)
		p->mute = !p->mute;
	if (ww_rng_below(rng, 20) == 0)
		r->disk_fails = !r->disk_fails;
	if (ww_rng_below(rng, 20) == 0)
		p->unmanaged[ww_rng_below(rng, GPUS)] ^= true;
	if (ww_rng_below(rng, 30) == 0)
		put_job(r, 3, 2, 0.1, 0.5 + i % 3);
	if (ww_rng_below(rng, 25) == 0)
		split(r);
}

static void at_any_moment(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct rig r;
		struct ww_rng rng;
		struct ww_job gone = {.id = 2};
		ww_rng_seed(&rng, seed);
		set_up(&r);
		put(&r, WW_INPUT_JOB, &gone);
		put_limit(&r, 1, SITE, 4000);
		split(&r);
		r.surprised = true;
		for (uint32_t i = 0; i < 300; i++) {
			if (i % 97 == 0) {
				gone.id = 1 + i % 3;
				put(&r, WW_INPUT_JOB, &gone);
			}
			if (i % 97 == 50)
				put_job(&r, 1, 0, 0.1, 0.5);
			if (ww_rng_below(&rng, 2) == 0)
				disturb(&r, &rng, i);
			tick(&r);
		}
		tear_down(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_state_before_the_first_step),
		cmocka_unit_test(while_leases_are_adopted_and_without_a_budget),
		cmocka_unit_test(while_a_division_is_refined),
		cmocka_unit_test(in_ramps),
		cmocka_unit_test(with_commands_on_their_way),
		cmocka_unit_test(with_an_event_right_after),
		cmocka_unit_test(with_a_raise_that_is_being_stored),
		cmocka_unit_test(with_a_job_that_has_no_curve),
		cmocka_unit_test(with_meters),
		cmocka_unit_test(at_any_moment),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
