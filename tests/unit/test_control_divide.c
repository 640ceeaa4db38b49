/* SPDX-License-Identifier: Apache-2.0 */
/* Who gets the watts, and why. */
#include "control_rig.h"

#include "control/control_internal.h"

#include <math.h>

static double share_of(const struct rig *r, int n)
{
	return charge_of(r, n) / GPUS;
}

/* The same relative cut for all: the jobs have the same baseline per GPU. */
static void the_equal_cut_is_equal_and_stays(void **state)
{
	struct rig r;
	(void)state;
	set_up(&r);
	put_division(&r, WW_DIVISION_EQUAL);
	put_limit(&r, 1, SITE, 3600);
	run(&r, 40);
	for (int n = 0; n < NODES; n++) {
		assert_near(share_of(&r, n), 300, 0.1);
		assert_near(r.job[n].cut_frac, 1 - 300.0 / P0_W, 1e-6);
		assert_near(r.job[n].equal_cut_frac, r.job[n].cut_frac, 0);
		assert_int_equal(gpu_of(&r, n, 0)->why, WW_WHY_EQUAL);
	}
	tear_down(&r);
}

/* a + 2 b d is the same for all: d = (0.1, 0.1, 0.1) + price / (1, 2, 4), and the cuts sum to 3 x 0.375. */
static void watts_go_where_they_are_worth_most(void **state)
{
	struct rig r;
	double equal = 1 - 300.0 / P0_W, slope;
	(void)state;
	set_up(&r);
	put_limit(&r, 1, SITE, 3600);
	step(&r);
	assert_near(r.job[0].cut_frac, equal, 1e-6); /* at once, */
	deliver(&r);
	run(&r, 60); /* then better */
	slope = 3 * equal / (1 + 1.0 / 2 + 1.0 / 4);
	assert_near(r.job[0].cut_frac, slope, 1e-3);
	assert_near(r.job[1].cut_frac, slope / 2, 1e-3);
	assert_near(r.job[2].cut_frac, slope / 4, 1e-3);
	assert_int_equal(gpu_of(&r, 2, 0)->why, WW_WHY_PRICE);
	for (int n = 0; n < NODES; n++)
		assert_near(share_of(&r, n), P0_W * (1 - r.job[n].cut_frac), 0.5);
	assert_near(r.row[0].charge_w, 3600, 4);
	assert_near(r.job[2].throughput_frac, 1 - 0.1 * r.job[2].cut_frac - 2 * r.job[2].cut_frac * r.job[2].cut_frac,
	            1e-9);
	tear_down(&r);
}

static void put_measured(struct rig *r, uint64_t id, int node, double b, double deepest)
{
	struct ww_job job = job_of(id, 0.1, b);
	job.curve.max_cut_frac = deepest;
	place(&job, node, 0xf);
	put(r, WW_INPUT_JOB, &job);
}

static void below_what_was_measured_only_an_oracle_goes(void **state)
{
	(void)state;
	for (int exact = 0; exact < 2; exact++) {
		struct rig r;
		set_up(&r);
		put_division(&r, exact ? WW_DIVISION_EXACT : WW_DIVISION_AUTO);
		put_measured(&r, 1, 0, 0.2, 0.4);
		put_limit(&r, 1, SITE, 3600);
		run(&r, 60);
		if (exact) {
			assert_true(r.job[0].cut_frac > 0.5);
		} else {
			assert_near(r.job[0].cut_frac, 0.4, 1e-6);
			assert_int_equal(gpu_of(&r, 0, 0)->why, WW_WHY_BOX);
		}
		tear_down(&r);
	}
}

static void gpus_without_a_job_go_lowest_where_a_row_binds(void **state)
{
	struct rig r;
	struct ww_job gone = {.id = 3};
	(void)state;
	set_up(&r);
	put(&r, WW_INPUT_JOB, &gone);
	run(&r, 2);
	assert_near(r.peer[2].limit_w[0], MAX_W, 0);
	put_limit(&r, 1, SITE, 3600);
	run(&r, 10);
	for (int g = 0; g < GPUS; g++) {
		assert_near(r.peer[2].limit_w[g], MIN_W, 0);
		assert_int_equal(gpu_of(&r, 2, g)->why, WW_WHY_IDLE);
	}
	assert_near(r.row[0].charge_w, 3600, 4); /* their watts go to the others */
	put_job(&r, 3, 2, 0.1, 2);
	run(&r, 20);
	assert_true(r.peer[2].limit_w[0] > 250);
	assert_near(r.row[0].missing_w, 0, 0);
	tear_down(&r);
}

static void rows_that_do_not_bind_take_no_part(void **state)
{
	struct rig r;
	(void)state;
	set_up(&r);
	put_limit(&r, 1, LEFT, 2000);
	run(&r, 30);
	assert_near(r.peer[2].limit_w[0], MAX_W, 0);
	assert_near(r.job[2].cut_frac, 0, 0);
	assert_near(r.job[2].throughput_frac, 1, 0);
	assert_int_equal(gpu_of(&r, 2, 0)->why, WW_WHY_NO_BUDGET);
	assert_true(r.peer[0].limit_w[0] < MAX_W - 50);
	tear_down(&r);
}

/* A job on both nodes of a rack is cut where its tightest row needs it. */
static void a_job_over_rows_has_one_cut(void **state)
{
	struct rig r;
	struct ww_job job = job_of(1, 0.1, 0.5), gone = {.id = 2};
	(void)state;
	set_up(&r);
	put(&r, WW_INPUT_JOB, &gone);
	gone.id = 3;
	put(&r, WW_INPUT_JOB, &gone);
	for (int n = 0; n < NODES; n++)
		place(&job, n, 0xf);
	put(&r, WW_INPUT_JOB, &job);
	put_limit(&r, 1, RIGHT, 1500);
	run(&r, 30);
	for (int n = 0; n < NODES; n++)
		assert_near(r.peer[n].limit_w[0], 250, 0.5);
	tear_down(&r);
}

/* A promise is kept 19 of 20 times: by the curve there is as much more as it may be wrong, and the watt by which a GPU may
 * stay below its share. */
static void a_floor_has_room_for_what_the_curve_does_not_know(void **state)
{
	static const double vars[] = {0, 1e-3};
	(void)state;
	for (int k = 0; k < 2; k++) {
		struct rig r;
		struct ww_job job = job_of(1, 0.1, 0.5);
		set_up(&r);
		job.floor_frac = 0.9;
		job.curve.var_a = vars[k];
		place(&job, 0, 0xf);
		put(&r, WW_INPUT_JOB, &job);
		put_limit(&r, 1, SITE, 3000);
		run(&r, 30);
		double cut = ww_curve_cut_at_loss(&job.curve, 0.1);
		double watt = 0.9 * ww_curve_slope(&job.curve, cut) / job.curve.p0_w;
		assert_near(r.job[0].throughput_frac, 0.9 + 1.64 * cut * sqrt(vars[k]) + watt, 1e-5);
		assert_near(r.job[0].kept_floor_frac, 0.9, 0);
		assert_int_equal(gpu_of(&r, 0, 0)->why, WW_WHY_FLOOR);
		tear_down(&r);
	}
}

static void a_job_without_a_curve_is_cut_like_the_rest(void **state)
{
	struct rig r;
	struct ww_job unknown = {.id = 2, .name = "unknown", .weight = 1};
	(void)state;
	set_up(&r);
	put_division(&r, WW_DIVISION_EQUAL);
	place(&unknown, 1, 0xf);
	put(&r, WW_INPUT_JOB, &unknown);
	run(&r, 30);
	put_limit(&r, 1, SITE, 3600);
	run(&r, 20);
	assert_near(share_of(&r, 1), share_of(&r, 0), 8);
	assert_true(r.row[0].charge_w <= 3600.01);
	tear_down(&r);
}

/* ---- Rates that nobody could know ------------------------------------------------------------------------------------- */

/* One job has no curve, and tokens count: what is seen of it decides what its watts are worth. */
static void set_up_unknown(struct rig *r)
{
	plan(r);
	r->config.objective = WW_OBJECTIVE_TOKENS;
	begin(r);
	for (int n = 0; n < NODES; n++) {
		struct ww_job job = job_of((uint64_t)n + 1, 0.1, 0.5);
		job.has_curve = n > 0;
		place(&job, n, 0xf);
		put(r, WW_INPUT_JOB, &job);
	}
}

/* One second in which the first node says another rate of its job. */
static void tick_with(struct rig *r, float tps)
{
	struct ww_sample sample = {.wall_us = r->now.wall_us + SECOND, .n_gpus = GPUS, .n_jobs = 1};
	pass(r, SECOND);
	for (int n = 1; n < NODES; n++)
		say_sample(r, n);
	if (!r->peer[0].greeted)
		say_hello(r, 0);
	sample.from = envelope_of(&r->peer[0]);
	states_of(r, &r->peer[0], sample.gpus);
	sample.jobs[0].job = 1;
	sample.jobs[0].tps.value = tps;
	put(r, WW_INPUT_SAMPLE, &sample);
	step(r);
	deliver(r);
	hold_truth(r);
}

/* Cuts of all jobs once this rate was said: first, once in the middle, or always. */
enum when { NEVER, FIRST, ONCE, ALWAYS };

static void cuts_after(float tps, enum when when, double *cuts)
{
	struct rig r;
	set_up_unknown(&r);
	for (int i = 0; i < 2; i++) /* the node is not believed before its second sample */
		tick_with(&r, when == FIRST || when == ALWAYS ? tps : 1000);
	for (int i = 0; i < (int)(LEASE / SECOND) + 40; i++)
		tick_with(&r, when == ALWAYS || (when == ONCE && i == 50) ? tps : 1000);
	put_limit(&r, 1, SITE, 3600);
	for (int i = 0; i < 100; i++)
		tick_with(&r, when == ALWAYS ? tps : 1000);
	assert_near(r.row[0].charge_w, 3600, 4);
	for (int n = 0; n < NODES; n++)
		cuts[n] = r.job[n].cut_frac;
	tear_down(&r);
}

static void what_no_node_can_do_is_not_known(void **state)
{
	static const float rates[] = {3e38f, 1e36f, 1e13f, 1e-37f};
	double usual[NODES], cuts[NODES];
	(void)state;
	cuts_after(1000, NEVER, usual);
	for (int k = 0; k < 4; k++)
		for (int when = FIRST; when <= ALWAYS; when++) {
			cuts_after(rates[k], (enum when)when, cuts);
			for (int n = 0; n < NODES && when != ALWAYS; n++)
				assert_near(cuts[n], usual[n], 1e-6);
			for (int n = 0; n < NODES; n++)
				assert_true(cuts[n] < 0.9);
		}
}

/* Nor may a rate that could be, and is not, stand for what the job does at best. */
static void one_reading_does_not_dominate(void **state)
{
	double usual[NODES], cuts[NODES];
	(void)state;
	cuts_after(1000, NEVER, usual);
	for (int when = FIRST; when <= ONCE; when++) {
		cuts_after(1e11f, (enum when)when, cuts);
		for (int n = 0; n < NODES; n++)
			assert_near(cuts[n], usual[n], 0.02);
	}
}

static void rates_of_zero_are_rates(void **state)
{
	struct rig r;
	(void)state;
	set_up_unknown(&r);
	for (int i = 0; i < 5; i++)
		tick_with(&r, 0);
	assert_near(r.job[0].tps, 0, 0);
	for (int i = 0; i < 100; i++)
		tick_with(&r, 1000);
	assert_near(r.control->jobs[0]->curve.t0_tps, 1000, 20);
	tear_down(&r);
}

/* Behind what is told and measured nothing is left that the allocator refuses; should there be, the others do not pay. */
static void a_job_that_is_refused_pays_alone(void **state)
{
	(void)state;
	for (int ahead = 0; ahead < 2; ahead++) {
		struct rig r;
		set_up(&r);
		r.control->jobs[1]->curve.t0_tps = (double)NAN;
		struct ww_event event = event_of(&r, 1, SITE, 3600);
		event.start_us += ahead * 60 * SECOND;
		put(&r, WW_INPUT_EVENT, &event);
		step(&r);
		if (ahead) {
			deliver(&r);
			assert_int_equal(command_to(&r, 0)->n_steps, 2);
			for (int n = 0; n < NODES; n++)
				assert_near(command_to(&r, n)->step[1].cap_w[0], 300, 1);
			run(&r, 60);
		}
		for (int n = 0; n < NODES; n++)
			assert_near(r.job[n].equal_cut_frac, 0.375, 0.01);
		deliver(&r);
		run(&r, 60);
		assert_near(r.row[0].charge_w, 3600, 4);
		assert_true(r.job[0].cut_frac > 0.3 && r.job[2].cut_frac > 0.1 && r.job[1].cut_frac < 0.5);
		tear_down(&r);
	}
}

/* ---- Other limits ------------------------------------------------------------------------------------------------------- */

static void put_limits(struct rig *r, float min_w, float max_w)
{
	for (int n = 0; n < NODES; n++) {
		r->nodes[n].min_w = min_w;
		r->nodes[n].max_w = r->nodes[n].default_w = max_w;
	}
	put(r, WW_INPUT_CONFIG, &r->config);
}

static void hold_all_at(struct rig *r, float w)
{
	for (int n = 0; n < NODES; n++)
		for (int g = 0; g < GPUS; g++) {
			assert_near(r->peer[n].limit_w[g], w, 0);
			assert_near(gpu_of(r, n, g)->target_w, w, 0);
		}
}

static void ceilings_follow_the_configuration(void **state)
{
	struct rig r;
	(void)state;
	set_up(&r);
	put_limits(&r, MIN_W, 300);
	step(&r);
	assert_near(gpu_of(&r, 0, 0)->charge_w, MAX_W, 0); /* what its board obeys */
	deliver(&r);
	run(&r, 10);
	hold_all_at(&r, 300);
	put_limits(&r, MIN_W, 450);
	run(&r, 20);
	hold_all_at(&r, 450);
	put_limits(&r, 460, MAX_W);
	run(&r, 20);
	hold_all_at(&r, MAX_W);
	tear_down(&r);
}

/* Where a lower limit was found on the board that is where it goes back to, if the new limits allow it. */
static void what_was_found_stays_the_ceiling(void **state)
{
	static const float most_w[] = {450, 300, MAX_W, MAX_W + 100};
	struct rig r;
	(void)state;
	plan(&r);
	for (int n = 0; n < NODES; n++) {
		r.peer[n].recorded_w = 400;
		for (int g = 0; g < GPUS; g++)
			r.peer[n].limit_w[g] = 400;
	}
	begin(&r);
	adopt(&r);
	for (int n = 0; n < NODES; n++)
		say_hello(&r, n);
	run(&r, 2);
	hold_all_at(&r, 400);
	for (int k = 0; k < 4; k++) {
		put_limits(&r, MIN_W, most_w[k]);
		run(&r, 20);
		hold_all_at(&r, fminf(400, most_w[k]));
	}
	put_limits(&r, 410, MAX_W);
	run(&r, 20);
	hold_all_at(&r, 410);
	tear_down(&r);
}

/* Lowest limits rose above what a budget carries: it is kept by what is in force, and cannot be once that is gone. */
static void an_event_says_what_lowest_limits_lack(void **state)
{
	struct rig r;
	(void)state;
	set_up(&r);
	put_limit(&r, 1, SITE, 3600);
	run(&r, 60);
	assert_near(r.event[0].missing_w, 0, 0);
	put_limits(&r, 450, 460);
	run(&r, 30);
	assert_near(r.event[0].missing_w, NODES * GPUS * 450 - 3600, 1e-3);
	assert_true(r.row[0].charge_w <= 3600.01);
	put_limits(&r, MIN_W, MAX_W);
	run(&r, 30);
	assert_near(r.event[0].missing_w, 0, 0);
	tear_down(&r);
}

static void the_objective_is_the_configurations(void **state)
{
	double kept[2];
	(void)state;
	for (int k = 0; k < 2; k++) {
		struct rig r;
		plan(&r);
		r.config.objective = k ? WW_OBJECTIVE_MAXMIN : WW_OBJECTIVE_RELATIVE;
		begin(&r);
		for (int n = 0; n < NODES; n++)
			put_job(&r, (uint64_t)n + 1, n, 0.1, 0.5 * (1 << n));
		adopt(&r);
		put_limit(&r, 1, SITE, 3600);
		run(&r, 60);
		kept[k] = fmin(fmin(r.job[0].throughput_frac, r.job[1].throughput_frac), r.job[2].throughput_frac);
		tear_down(&r);
	}
	assert_true(kept[1] > kept[0] + 0.01);
}

static void a_heavier_job_is_cut_less(void **state)
{
	struct rig r;
	struct ww_job heavy = job_of(1, 0.1, 0.5);
	double before;
	(void)state;
	set_up(&r);
	put_limit(&r, 1, SITE, 3600);
	run(&r, 60);
	before = r.job[0].cut_frac;
	heavy.weight = 3;
	place(&heavy, 0, 0xf);
	put(&r, WW_INPUT_JOB, &heavy);
	run(&r, 60);
	assert_true(r.job[0].cut_frac < before - 0.1);
	tear_down(&r);
}

/* Nodes that do not answer keep what they are charged; the rest is divided among the others. */
static void silent_nodes_take_no_part(void **state)
{
	struct rig r;
	(void)state;
	set_up(&r);
	put_division(&r, WW_DIVISION_EQUAL);
	put_limit(&r, 1, SITE, 3600);
	run(&r, 20);
	r.peer[2].mute = r.peer[2].deaf = true;
	run(&r, 100); /* it may have booted: 2000 of 3600 W */
	assert_near(charge_of(&r, 2), 2000, 1);
	assert_near(charge_of(&r, 0) + charge_of(&r, 1), 1600, 4);
	assert_int_equal(gpu_of(&r, 2, 0)->why, WW_WHY_SILENT);
	tear_down(&r);
}

static void rates_are_sums_of_what_is_known(void **state)
{
	struct rig r;
	(void)state;
	set_up(&r);
	tick(&r);
	assert_near(r.job[0].tps, 1000, 1e-3);
	r.peer[0].mute = r.peer[0].deaf = true;
	run(&r, 30);
	assert_nan(r.job[0].tps);
	assert_near(r.job[1].tps, 1000, 1e-3);
	tear_down(&r);
}

static void every_reason_has_its_words(void **state)
{
	(void)state;
	for (int a = 0; a < WW_N_WHYS; a++) {
		const char *text = ww_why_text((enum ww_why)a);
		assert_true(strlen(text) > 5 && !strchr(text, '\n'));
		for (int b = 0; b < a; b++)
			assert_string_not_equal(text, ww_why_text((enum ww_why)b));
	}
	assert_string_equal(ww_why_text((enum ww_why)99), "?");
}

/* A draw that no limit holds is made up for by others, until it is held again. */
static void what_does_not_come_down_others_make_up_for(void **state)
{
	struct rig r;
	(void)state;
	set_up(&r);
	put_division(&r, WW_DIVISION_EQUAL);
	r.peer[0].defiant[1] = true;
	put_limit(&r, 1, SITE, 3000);
	run(&r, 10);
	assert_true(r.row[0].missing_w > 100);
	run(&r, 20);
	assert_near(r.row[0].missing_w, 0, 0);
	assert_true(power_of(&r) <= 3000.01);
	assert_int_equal(gpu_of(&r, 0, 1)->why, WW_WHY_STUCK);
	split(&r);
	run(&r, 5);
	r.peer[0].defiant[1] = false;
	run(&r, 60);
	assert_true(gpu_of(&r, 0, 1)->why != WW_WHY_STUCK);
	assert_near(r.row[0].missing_w, 0, 0);
	assert_true(r.row[0].charge_w > 2990);
	tear_down(&r);
}

/* All of a row, and yet a falling budget is followed. */
static void boards_that_draw_more_than_their_limits_go_lower(void **state)
{
	static const double limits_w[] = {4000, 3000, 2000};
	struct rig r;
	(void)state;
	set_up(&r);
	for (int step = 0; step < 3; step++) {
		put_limit(&r, 1 + (uint64_t)step, SITE, limits_w[step]);
		for (int i = 0; i < 60; i++) {
			for (int n = 0; n < NODES; n++)
				for (int g = 0; g < GPUS; g++) {
					r.peer[n].defiant[g] = true;
					r.peer[n].demand_w[g] = 1.03f * r.peer[n].limit_w[g];
				}
			tick(&r);
		}
		assert_true(power_of(&r) <= limits_w[step] + 0.01);
		assert_near(r.row[0].missing_w, 0, 0);
		assert_near(r.event[step].missing_w, 0, 0);
	}
	tear_down(&r);
}

/* What was missing while all were at their lowest limits is not held back once there are watts again. */
static void after_an_event_that_could_not_be_kept_all_rise_at_once(void **state)
{
	struct rig r;
	(void)state;
	set_up(&r);
	struct ww_event event = event_of(&r, 1, SITE, 1000);
	put(&r, WW_INPUT_EVENT, &event);
	run(&r, 600);
	assert_true(r.row[0].missing_w > 199);
	event.version = 2;
	event.limit_w = 4000;
	put(&r, WW_INPUT_EVENT, &event);
	run(&r, 30);
	assert_true(r.row[0].charge_w > 3980);
	tear_down(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_equal_cut_is_equal_and_stays),
		cmocka_unit_test(watts_go_where_they_are_worth_most),
		cmocka_unit_test(below_what_was_measured_only_an_oracle_goes),
		cmocka_unit_test(gpus_without_a_job_go_lowest_where_a_row_binds),
		cmocka_unit_test(rows_that_do_not_bind_take_no_part),
		cmocka_unit_test(a_job_over_rows_has_one_cut),
		cmocka_unit_test(a_floor_has_room_for_what_the_curve_does_not_know),
		cmocka_unit_test(a_job_without_a_curve_is_cut_like_the_rest),
		cmocka_unit_test(what_no_node_can_do_is_not_known),
		cmocka_unit_test(one_reading_does_not_dominate),
		cmocka_unit_test(rates_of_zero_are_rates),
		cmocka_unit_test(a_job_that_is_refused_pays_alone),
		cmocka_unit_test(ceilings_follow_the_configuration),
		cmocka_unit_test(what_was_found_stays_the_ceiling),
		cmocka_unit_test(an_event_says_what_lowest_limits_lack),
		cmocka_unit_test(the_objective_is_the_configurations),
		cmocka_unit_test(a_heavier_job_is_cut_less),
		cmocka_unit_test(silent_nodes_take_no_part),
		cmocka_unit_test(rates_are_sums_of_what_is_known),
		cmocka_unit_test(every_reason_has_its_words),
		cmocka_unit_test(what_does_not_come_down_others_make_up_for),
		cmocka_unit_test(boards_that_draw_more_than_their_limits_go_lower),
		cmocka_unit_test(after_an_event_that_could_not_be_kept_all_rise_at_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
