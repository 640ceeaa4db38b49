/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's brain alone with its schedule: steps down and up, the end of the lease, and what is claimed of them. */
#include "node_rig.h"

static int step_of(struct rig *rig)
{
	rig_run(rig, (rig->now_us / SECOND + 1) * SECOND); /* the next sample */
	return rig->sample.gpus[0].step;
}

static void test_steps_down_on_time(void **state)
{
	struct rig *rig = rig_create(2);
	struct ww_command c = rig_command(rig, 1, 1, 600);
	(void)state;
	c.spread_us = 9 * SECOND; /* for steps up */
	add_step(&c, 5 * SECOND + 300, 500);
	add_step(&c, 60 * SECOND, 300);
	assert_int_equal(rig_judge(rig, &c), WW_ACK_DONE);
	rig_run(rig, 105 * SECOND + 299);
	assert_near(rig->limit_w[1], 600, 0);
	assert_int_equal(rig->n_news, 0);
	assert_int_equal(ww_node_due_us(rig->node), 105 * SECOND + 300);
	rig_run(rig, 105 * SECOND + 300);
	assert_near(rig->limit_w[1], 500, 0);
	assert_int_equal(rig->n_news, 1);
	assert_near(rig->news.gpus[1].enforced_w.value, 500, 0);
	assert_int_equal(rig->news.gpus[1].step, 1);
	/* The controller is silent, the lease over since 115 s. */
	rig_run(rig, 160 * SECOND - 1);
	assert_near(rig->limit_w[1], 500, 0);
	assert_int_equal(rig->alarms[WW_ALARM_LAPSED], 1);
	rig_run(rig, 160 * SECOND);
	assert_near(rig->limit_w[1], 300, 0);
	assert_int_equal(rig->news.gpus[1].step, 2);
	rig_destroy(rig);
}

/* Each GPU goes its own way down and up. */
static void test_step_up_late_within_the_spread(void **state)
{
	struct rig *rig = rig_create(2);
	(void)state;
	rig_cap(rig, 1, 1, 400);
	struct ww_command c = rig_command(rig, 1, 2, 400);
	c.spread_us = 4 * SECOND;
	add_step(&c, 2 * SECOND, 500);
	c.step[1].cap_w[1] = 300;
	assert_int_equal(rig_judge(rig, &c), WW_ACK_DONE);
	rig_run(rig, 102 * SECOND);
	assert_near(rig->limit_w[0], 400, 0);
	assert_near(rig->limit_w[1], 300, 0);
	assert_int_equal(rig->news.gpus[0].step, 0);
	assert_int_equal(rig->news.gpus[1].step, 1);
	assert_near(rig->news.gpus[0].target_w, 400, 0);
	while (rig->limit_w[0] < 450 && rig->now_us < 110 * SECOND)
		rig_run(rig, rig->now_us + 1000);
	assert_true(rig->now_us > 102 * SECOND + 1000 && rig->now_us <= 106 * SECOND);
	assert_true(rig->now_us % SECOND > 1000); /* not at the next beat */
	assert_near(rig->limit_w[0], 500, 0);
	assert_int_equal(rig->news.gpus[0].step, 1);
	rig_destroy(rig);
}

/* The delay is spread over the nodes, seeded, and the same after a crash. */
static int64_t delay_of(uint64_t seed, bool crash)
{
	struct rig *rig = rig_new(1);
	rig->options.seed = seed;
	rig_start(rig);
	rig_cap(rig, 1, 1, 300);
	struct ww_command c = rig_command(rig, 1, 2, 400);
	c.spread_us = 10 * SECOND;
	assert_int_equal(rig_judge(rig, &c), WW_ACK_DONE);
	assert_near(rig->limit_w[0], 300, 0);
	if (crash)
		rig_start(rig);
	while (rig->limit_w[0] < 400 && rig->now_us < 120 * SECOND)
		rig_run(rig, rig->now_us + 10000);
	int64_t at_us = rig->now_us;
	rig_destroy(rig);
	return at_us - 100 * SECOND;
}

static void test_delays_are_spread(void **state)
{
	int64_t sum_us = 0;
	int early = 0;
	(void)state;
	for (uint64_t seed = 0; seed < 40; seed++) {
		int64_t delay_us = delay_of(seed, false);
		assert_true(delay_us > 0 && delay_us <= 10 * SECOND);
		assert_int_equal(delay_us, delay_of(seed, true));
		sum_us += delay_us;
		early += delay_us < 5 * SECOND;
	}
	assert_near((double)sum_us / 40, 5e6, 1.5e6);
	assert_true(early > 8 && early < 32);
}

static void test_no_step_up_after_the_lease(void **state)
{
	struct rig *rig = rig_create(1);
	(void)state;
	struct ww_command c = rig_command(rig, 1, 1, 400);
	add_step(&c, 20 * SECOND, 500);
	add_step(&c, 30 * SECOND, 450);
	add_step(&c, 40 * SECOND, 300);
	assert_int_equal(rig_judge(rig, &c), WW_ACK_DONE);
	rig_run(rig, 125 * SECOND);
	assert_near(rig->limit_w[0], 400, 0);
	assert_int_equal(step_of(rig), 1); /* passed */
	rig_run(rig, 135 * SECOND);
	assert_near(rig->limit_w[0], 400, 0); /* below this step already */
	assert_int_equal(step_of(rig), 2);
	rig_run(rig, 140 * SECOND);
	assert_near(rig->limit_w[0], 300, 0);
	assert_int_equal(step_of(rig), 3);
	rig_destroy(rig);
}

static void test_no_step_up_at_the_end_of_the_lease(void **state)
{
	(void)state;
	for (int late = 0; late < 2; late++) {
		struct rig *rig = rig_create(1);
		struct ww_command c = rig_command(rig, 1, 1, 400);
		add_step(&c, 15 * SECOND - 1 + late, 500);
		assert_int_equal(rig_judge(rig, &c), WW_ACK_DONE);
		rig_run(rig, 120 * SECOND);
		assert_near(rig->limit_w[0], late ? 400 : 500, 0);
		rig_destroy(rig);
	}
}

/* A delay that ends after the lease does. */
static void test_delayed_beyond_the_lease(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct rig *rig = rig_new(1);
		rig->options.seed = seed;
		rig_start(rig);
		rig_cap(rig, 1, 1, 300);
		struct ww_command c = rig_command(rig, 1, 2, 300);
		c.spread_us = 100 * SECOND;
		add_step(&c, SECOND, 400);
		assert_int_equal(rig_judge(rig, &c), WW_ACK_DONE);
		int writes = rig->writes;
		rig_run(rig, 115 * SECOND);
		bool raised = rig->writes > writes;
		assert_near(rig->limit_w[0], raised ? 400 : 300, 0);
		rig_run(rig, 250 * SECOND);
		assert_int_equal(rig->writes > writes, raised);
		rig_destroy(rig);
	}
}

/* A later command cancels the delayed step of the one before. */
static void test_replaced_while_delayed(void **state)
{
	struct rig *rig = rig_create(1);
	(void)state;
	rig_cap(rig, 1, 1, 300);
	struct ww_command c = rig_command(rig, 1, 2, 700);
	c.spread_us = 10 * SECOND;
	assert_int_equal(rig_judge(rig, &c), WW_ACK_DONE);
	assert_near(rig->done.gpus[0].target_w, 300, 0);
	rig_cap(rig, 1, 3, 300);
	rig_run(rig, 112 * SECOND);
	assert_near(rig->limit_w[0], 300, 0);
	rig_destroy(rig);
}

/* A machine that slept: the last due step counts, those before it are left out. */
static void test_last_due_step_counts(void **state)
{
	struct rig *rig = rig_create(1);
	(void)state;
	struct ww_command c = rig_command(rig, 1, 1, 600);
	add_step(&c, 2 * SECOND, 300);
	add_step(&c, 4 * SECOND, 500);
	assert_int_equal(rig_judge(rig, &c), WW_ACK_DONE);
	rig->now_us = 110 * SECOND;
	rig_put(rig, NULL, 0);
	assert_near(rig->limit_w[0], 500, 0);
	assert_int_equal(rig->sample.gpus[0].step, 2);
	assert_int_equal(rig->writes, 2);
	rig_destroy(rig);
}

/* NAN in a step leaves a GPU alone. */
static void test_gpus_left_alone(void **state)
{
	struct rig *rig = rig_create(2);
	(void)state;
	struct ww_command c = rig_command(rig, 1, 1, 600);
	add_step(&c, 2 * SECOND, 300);
	c.step[1].cap_w[1] = NAN;
	assert_int_equal(rig_judge(rig, &c), WW_ACK_DONE);
	rig_run(rig, 103 * SECOND);
	assert_near(rig->limit_w[0], 300, 0);
	assert_near(rig->limit_w[1], 600, 0);
	assert_int_equal(rig->sample.gpus[1].step, 1);
	assert_near(rig->sample.gpus[1].target_w, 600, 0);
	rig_destroy(rig);
}

/* While a new schedule is not stored its index is not told: a reader would take it for one of the schedule before. */
static void test_step_of_the_schedule_that_is_stored(void **state)
{
	struct rig *rig = rig_create(1);
	(void)state;
	struct ww_command c = rig_command(rig, 1, 1, 600);
	add_step(&c, 2 * SECOND, 500);
	assert_int_equal(rig_judge(rig, &c), WW_ACK_DONE);
	assert_int_equal((rig_run(rig, 103 * SECOND), rig->sample.gpus[0].step), 1);
	rig->disk_fails = true;
	c = rig_command(rig, 1, 2, 450);
	add_step(&c, SECOND, 400);
	rig_obey(rig, &c);
	rig_run(rig, 105 * SECOND);
	assert_near(rig->limit_w[0], 400, 0);
	assert_int_equal(rig->sample.from.seen.seq, 1);
	assert_int_equal(rig->sample.gpus[0].step, 0);
	rig->disk_fails = false;
	rig_run(rig, 107 * SECOND);
	assert_int_equal(rig->sample.from.seen.seq, 2);
	assert_int_equal(rig->sample.gpus[0].step, 1);
	rig_destroy(rig);
}

/* ---- The end of the lease ------------------------------------------------------------------------------------------ */

static struct rig *lapsing(enum ww_after after, float cap_w, float failcap_w)
{
	struct rig *rig = rig_create(2);
	struct ww_command c = rig_command(rig, 1, 1, cap_w);
	c.after = (uint8_t)after;
	c.failcap_w[0] = failcap_w;
	assert_int_equal(rig_judge(rig, &c), WW_ACK_DONE);
	assert_int_equal(rig->done.lapsed, 0);
	rig_run(rig, 115 * SECOND - 1);
	assert_near(rig->limit_w[0], cap_w, 0);
	assert_int_equal(rig->n_news, 0);
	assert_int_equal(rig->alarms[WW_ALARM_LAPSED], 0);
	rig_run(rig, 115 * SECOND);
	assert_int_equal(rig->n_news, 1);
	assert_int_equal(rig->news.lapsed, 1);
	assert_int_equal(rig->alarms[WW_ALARM_LAPSED], 1);
	rig_run(rig, 200 * SECOND);
	assert_int_equal(rig->alarms[WW_ALARM_LAPSED], 1);
	return rig;
}

static void test_lapse_hold(void **state)
{
	struct rig *rig = lapsing(WW_AFTER_HOLD, 400, 300);
	(void)state;
	assert_near(rig->limit_w[0], 400, 0);
	assert_near(rig->limit_w[1], 400, 0);
	/* Held also against foreign hands, as far as they go up. */
	rig->limit_w[0] = 500;
	rig_run(rig, 201 * SECOND);
	assert_near(rig->limit_w[0], 400, 0);
	rig_destroy(rig);
}

static void test_lapse_failcap(void **state)
{
	struct rig *rig = lapsing(WW_AFTER_FAILCAP, 400, 300);
	(void)state;
	assert_near(rig->limit_w[0], 300, 0);
	assert_near(rig->limit_w[1], 400, 0); /* none given */
	rig_destroy(rig);
	rig = lapsing(WW_AFTER_FAILCAP, 400, 500);
	assert_near(rig->limit_w[0], 500, 0);
	assert_near(rig->news.gpus[0].enforced_w.value, 500, 0);
	rig_destroy(rig);
}

static void test_lapse_restore(void **state)
{
	struct rig *rig = lapsing(WW_AFTER_RESTORE, 400, 300);
	(void)state;
	assert_near(rig->limit_w[0], 650, 0);
	assert_near(rig->limit_w[1], 650, 0);
	rig_cap(rig, 1, 2, 500);
	assert_near(rig->limit_w[0], 500, 0);
	assert_int_equal(rig->done.lapsed, 0);
	rig_destroy(rig);
}

/* The end is an end of its own, not the next beat. */
static void test_lapse_on_time(void **state)
{
	struct rig *rig = rig_create(1);
	(void)state;
	rig->now_us += 300000;
	rig_cap(rig, 1, 1, 400);
	rig_run(rig, 115 * SECOND + 299999);
	assert_int_equal(rig->alarms[WW_ALARM_LAPSED], 0);
	rig_run(rig, 115 * SECOND + 300000);
	assert_int_equal(rig->alarms[WW_ALARM_LAPSED], 1);
	rig_destroy(rig);
}

/* The agent wakes after a step and the end that came after it: in their order. */
static void test_step_before_the_lapse(void **state)
{
	struct rig *rig = rig_create(1);
	struct ww_command c = rig_command(rig, 1, 1, 450);
	(void)state;
	c.after = WW_AFTER_FAILCAP;
	c.failcap_w[0] = 500;
	add_step(&c, 5 * SECOND, 400);
	assert_int_equal(rig_judge(rig, &c), WW_ACK_DONE);
	rig->now_us = 130 * SECOND;
	rig_put(rig, NULL, 0);
	assert_near(rig->limit_w[0], 500, 0);
	rig_start(rig); /* and the step is not carried out again */
	assert_near(rig->limit_w[0], 500, 0);
	rig_destroy(rig);
}

/* A step below our limit is a step down whatever a foreign hand did. */
static void test_step_below_a_foreign_limit(void **state)
{
	struct rig *rig = rig_create(1);
	struct ww_command c = rig_command(rig, 1, 1, 400);
	(void)state;
	add_step(&c, 20 * SECOND, 350);
	assert_int_equal(rig_judge(rig, &c), WW_ACK_DONE);
	rig->limit_w[0] = 300;
	rig_run(rig, 125 * SECOND);
	assert_near(rig->sample.gpus[0].target_w, 350, 0);
	assert_near(rig->limit_w[0], 300, 0); /* the lease is over: no raise */
	rig_destroy(rig);
}

/* A step after the end is below what the end wrote, also when the agent wakes after both. */
static void test_step_after_the_lapse(void **state)
{
	(void)state;
	for (int asleep = 0; asleep < 2; asleep++) {
		struct rig *rig = rig_create(1);
		struct ww_command c = rig_command(rig, 1, 1, 450);
		c.after = WW_AFTER_FAILCAP;
		c.failcap_w[0] = 500;
		add_step(&c, 20 * SECOND, 400);
		assert_int_equal(rig_judge(rig, &c), WW_ACK_DONE);
		if (asleep) {
			rig->now_us = 130 * SECOND;
			rig_put(rig, NULL, 0);
		} else {
			rig_run(rig, 119 * SECOND);
			assert_near(rig->limit_w[0], 500, 0);
			rig_run(rig, 130 * SECOND);
		}
		assert_near(rig->limit_w[0], 400, 0);
		assert_int_equal(rig->sample.gpus[0].step, 1);
		rig_destroy(rig);
	}
}

/* A raise that could not be written while the lease was valid is not written after it. */
static void test_raise_kept_from_writing(void **state)
{
	struct rig *rig = rig_create(1);
	(void)state;
	rig_cap(rig, 1, 1, 400);
	rig->disk_fails = true;
	struct ww_command c = rig_command(rig, 1, 2, 500);
	rig_obey(rig, &c);
	rig_run(rig, 116 * SECOND);
	rig->disk_fails = false;
	rig_run(rig, 125 * SECOND);
	assert_near(rig->limit_w[0], 400, 0);
	assert_int_equal(rig->n_done, 2);
	/* Nor is what somebody else did meanwhile hidden by it. */
	rig->limit_w[0] = 600;
	rig_run(rig, 126 * SECOND);
	assert_int_equal(rig->alarms[WW_ALARM_FOREIGN_RAISE], 1);
	assert_true(rig->limit_w[0] <= 500);
	c = rig_command(rig, 1, 3, 500);
	assert_int_equal(rig_judge(rig, &c), WW_ACK_DONE);
	assert_near(rig->limit_w[0], 500, 0);
	rig_destroy(rig);
}

/* The same after a crash: the journal grants the raise, the clock no longer does. */
static void test_raise_of_an_earlier_start(void **state)
{
	struct rig *rig = rig_create(1);
	(void)state;
	rig_cap(rig, 1, 1, 400);
	struct ww_command c = rig_command(rig, 1, 2, 500);
	struct ww_node_in in = {.kind = WW_NODE_IN_COMMAND, .u.command = &c};
	struct ww_node_act acts[RIG_ACTS];
	assert_int_equal(ww_node_step(rig->node, (struct ww_now){rig->now_us, 0}, &in, 1, acts, rig->room), 1);
	store(rig, acts[0].u.journal.bytes, acts[0].u.journal.n);
	rig->now_us += 16 * SECOND;
	rig_start(rig);
	rig_run(rig, rig->now_us + 3 * SECOND);
	assert_near(rig->limit_w[0], 400, 0);
	rig_destroy(rig);
}

/* ---- Local veto and release ---------------------------------------------------------------------------------------- */

static void test_freeze(void **state)
{
	struct rig *rig = rig_create(1);
	(void)state;
	rig_cap(rig, 1, 1, 400);
	rig_veto(rig, WW_VETO_FREEZE);
	struct ww_command c = rig_command(rig, 1, 2, 500);
	add_step(&c, 5 * SECOND, 300);
	add_step(&c, 8 * SECOND, 350);
	assert_int_equal(rig_judge(rig, &c), WW_ACK_DONE);
	assert_near(rig->limit_w[0], 400, 0);
	rig_run(rig, 106 * SECOND);
	assert_near(rig->limit_w[0], 300, 0);
	rig_run(rig, 109 * SECOND);
	assert_near(rig->limit_w[0], 300, 0);
	rig_veto(rig, WW_VETO_NONE);
	assert_near(rig->limit_w[0], 350, 0);
	rig_veto(rig, WW_VETO_FREEZE);
	c = rig_command(rig, 1, 3, 350);
	c.after = WW_AFTER_RESTORE;
	assert_int_equal(rig_judge(rig, &c), WW_ACK_DONE);
	rig_run(rig, 140 * SECOND);
	assert_near(rig->limit_w[0], 350, 0);
	rig_destroy(rig);
}

static void test_hands_off(void **state)
{
	struct rig *rig = rig_create(1);
	(void)state;
	rig_cap(rig, 1, 1, 400);
	int writes = rig->writes, news = rig->n_news;
	rig_veto(rig, WW_VETO_HANDS_OFF);
	assert_int_equal(rig->n_news, news + 1);
	assert_int_equal(rig->news.gpus[0].managed, 0);
	assert_nan(rig->news.gpus[0].target_w);
	rig->limit_w[0] = 700;
	rig_cap(rig, 1, 2, 300);
	rig_run(rig, 130 * SECOND);
	assert_int_equal(rig->writes, writes);
	rig_veto(rig, WW_VETO_NONE);
	assert_near(rig->limit_w[0], 300, 0);
	assert_int_equal(rig->news.gpus[0].managed, 1);
	rig_destroy(rig);
}

static void test_release(void **state)
{
	struct rig *rig = rig_create(1);
	(void)state;
	rig_cap(rig, 1, 1, 400);
	rig_release(rig, false);
	assert_near(rig->limit_w[0], 400, 0);
	assert_int_equal(rig->alarms[WW_ALARM_NOT_RELEASED], 1);
	rig_run(rig, 130 * SECOND); /* the end of the lease does not change that */
	rig_release(rig, false);
	assert_near(rig->limit_w[0], 400, 0);
	assert_int_equal(rig->alarms[WW_ALARM_NOT_RELEASED], 2);
	struct ww_command c = rig_command(rig, 1, 2, 400);
	c.release_ok = 1;
	add_step(&c, 5 * SECOND, 300);
	assert_int_equal(rig_judge(rig, &c), WW_ACK_DONE);
	rig_release(rig, false);
	assert_near(rig->limit_w[0], 650, 0);
	assert_int_equal(rig->alarms[WW_ALARM_NOT_RELEASED], 2);
	rig_run(rig, 140 * SECOND);
	assert_near(rig->limit_w[0], 650, 0);
	assert_nan(rig->sample.gpus[0].target_w);
	/* Left to others, also by the next start. */
	rig->limit_w[0] = 680;
	rig_start(rig);
	rig_run(rig, 145 * SECOND);
	assert_near(rig->limit_w[0], 680, 0);
	rig_destroy(rig);
}

static void test_release_by_force(void **state)
{
	struct rig *rig = rig_create(2);
	(void)state;
	struct ww_command c = rig_command(rig, 1, 1, 400);
	c.step[0].cap_w[1] = NAN;
	assert_int_equal(rig_judge(rig, &c), WW_ACK_DONE);
	rig_veto(rig, WW_VETO_FREEZE);
	rig_release(rig, true);
	assert_near(rig->limit_w[0], 400, 0);
	assert_int_equal(rig->alarms[WW_ALARM_NOT_RELEASED], 1);
	rig_veto(rig, WW_VETO_NONE);
	rig_release(rig, true);
	assert_near(rig->limit_w[0], 650, 0);
	assert_int_equal(rig->writes_of[1], 0);
	rig_cap(rig, 1, 2, 300);
	assert_near(rig->limit_w[1], 300, 0);
	rig_destroy(rig);
}

/* Restoring is a raise: not before the journal holds it. A later command takes its place. */
static void test_release_without_a_journal(void **state)
{
	struct rig *rig = rig_create(2);
	(void)state;
	rig_cap(rig, 1, 1, 400);
	rig->disk_fails = true;
	rig_release(rig, true);
	rig_run(rig, 103 * SECOND);
	assert_near(rig->limit_w[0], 400, 0);
	struct ww_command c = rig_command(rig, 1, 2, 500);
	c.step[0].cap_w[1] = NAN;
	rig_obey(rig, &c);
	rig->disk_fails = false;
	rig_run(rig, 105 * SECOND);
	assert_near(rig->limit_w[0], 500, 0);
	assert_near(rig->limit_w[1], 400, 0);
	rig_destroy(rig);
}

/* A restart does not make a release of the caps: nothing is known of the budget any more than before. */
static void test_release_after_a_restart(void **state)
{
	struct rig *rig = rig_create(1);
	(void)state;
	rig_cap(rig, 1, 1, 400);
	rig_start(rig);
	rig_release(rig, false);
	assert_near(rig->limit_w[0], 400, 0);
	assert_int_equal(rig->alarms[WW_ALARM_NOT_RELEASED], 1);
	rig_destroy(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steps_down_on_time),
		cmocka_unit_test(test_step_up_late_within_the_spread),
		cmocka_unit_test(test_delays_are_spread),
		cmocka_unit_test(test_no_step_up_after_the_lease),
		cmocka_unit_test(test_no_step_up_at_the_end_of_the_lease),
		cmocka_unit_test(test_delayed_beyond_the_lease),
		cmocka_unit_test(test_replaced_while_delayed),
		cmocka_unit_test(test_last_due_step_counts),
		cmocka_unit_test(test_gpus_left_alone),
		cmocka_unit_test(test_step_of_the_schedule_that_is_stored),
		cmocka_unit_test(test_lapse_hold),
		cmocka_unit_test(test_lapse_failcap),
		cmocka_unit_test(test_lapse_restore),
		cmocka_unit_test(test_lapse_on_time),
		cmocka_unit_test(test_step_before_the_lapse),
		cmocka_unit_test(test_step_below_a_foreign_limit),
		cmocka_unit_test(test_step_after_the_lapse),
		cmocka_unit_test(test_raise_kept_from_writing),
		cmocka_unit_test(test_raise_of_an_earlier_start),
		cmocka_unit_test(test_freeze),
		cmocka_unit_test(test_hands_off),
		cmocka_unit_test(test_release),
		cmocka_unit_test(test_release_by_force),
		cmocka_unit_test(test_release_without_a_journal),
		cmocka_unit_test(test_release_after_a_restart),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
