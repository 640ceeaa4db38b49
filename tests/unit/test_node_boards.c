/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's brain and the boards: foreign hands, boards that do not obey, and when a limit counts as held. */
#include "node_rig.h"

/* ---- Foreign hands ------------------------------------------------------------------------------------------------- */

static void test_foreign_raise(void **state)
{
	struct rig *rig = rig_create(2);
	(void)state;
	rig_cap(rig, 1, 1, 400);
	rig_run(rig, 102 * SECOND + 1);
	rig->limit_w[1] = 401; /* rounding */
	rig_run(rig, 103 * SECOND);
	assert_int_equal(rig->n_news, 0);
	rig->limit_w[1] = 600;
	rig_run(rig, 104 * SECOND);
	assert_near(rig->limit_w[1], 400, 0);
	assert_int_equal(rig->alarms[WW_ALARM_FOREIGN_RAISE], 1);
	assert_int_equal(rig->n_news, 1);
	assert_near(rig->alarm_w, 600, 0);
	assert_int_equal(rig->news.gpus[1].foreign, 1);
	assert_int_equal(rig->news.gpus[0].foreign, 0);
	assert_near(rig->news.gpus[1].enforced_w.value, 400, 0);
	assert_int_equal(rig->news.gpus[1].managed, 1);
	rig_destroy(rig);
}

static void raise_again(struct rig *rig, int times)
{
	for (int i = 0; i < times; i++) {
		rig->limit_w[0] = 600;
		rig_run(rig, rig->now_us + SECOND);
	}
}

static void test_fight(void **state)
{
	struct rig *rig = rig_create(1);
	(void)state;
	rig_cap(rig, 1, 1, 400);
	raise_again(rig, 3);
	assert_near(rig->limit_w[0], 400, 0);
	assert_int_equal(rig->alarms[WW_ALARM_FIGHT_LOST], 0);
	raise_again(rig, 1);
	assert_near(rig->limit_w[0], 600, 0);
	assert_int_equal(rig->alarms[WW_ALARM_FIGHT_LOST], 1);
	assert_int_equal(rig->news.gpus[0].managed, 0);
	assert_int_equal(rig->news.gpus[0].foreign, 4);
	assert_nan(rig->news.gpus[0].target_w);
	/* Not until a command comes after the window. */
	rig_run(rig, 300 * SECOND);
	rig_cap(rig, 1, 2, 300);
	rig_run(rig, 800 * SECOND);
	assert_near(rig->limit_w[0], 600, 0);
	assert_int_equal(rig->sample.gpus[0].managed, 0);
	assert_int_equal(rig->alarms[WW_ALARM_FIGHT_LOST], 1);
	rig_cap(rig, 1, 3, 300);
	assert_near(rig->limit_w[0], 300, 0);
	assert_int_equal(rig->done.gpus[0].managed, 1);
	raise_again(rig, 3);
	assert_near(rig->limit_w[0], 300, 0);
	rig_destroy(rig);
}

/* The window slides: a raise now and then is written over for ever. */
static void test_no_fight(void **state)
{
	struct rig *rig = rig_create(1);
	(void)state;
	rig_cap(rig, 1, 1, 400);
	for (int i = 0; i < 40; i++) {
		raise_again(rig, 1);
		rig_run(rig, rig->now_us + 200 * SECOND);
	}
	assert_near(rig->limit_w[0], 400, 0);
	assert_int_equal(rig->alarms[WW_ALARM_FIGHT_LOST], 0);
	assert_int_equal(rig->sample.gpus[0].foreign, 40);
	rig_destroy(rig);
}

static void test_foreign_lower_is_respected(void **state)
{
	struct rig *rig = rig_create(1);
	(void)state;
	rig_cap(rig, 1, 1, 400);
	int writes = rig->writes;
	rig->limit_w[0] = 300;
	rig_run(rig, 110 * SECOND);
	assert_near(rig->limit_w[0], 300, 0);
	assert_int_equal(rig->alarms[WW_ALARM_FOREIGN_LOWER], 1);
	assert_near(rig->alarm_w, 300, 0);
	assert_int_equal(rig->news.gpus[0].foreign, 1);
	assert_near(rig->news.gpus[0].target_w, 400, 0);
	/* Lowered twice, with a way up between. */
	rig->limit_w[0] = 390;
	rig_run(rig, 111 * SECOND);
	assert_int_equal(rig->alarms[WW_ALARM_FOREIGN_LOWER], 1);
	rig->limit_w[0] = 300;
	rig_run(rig, 112 * SECOND);
	assert_int_equal(rig->alarms[WW_ALARM_FOREIGN_LOWER], 2);
	rig_cap(rig, 1, 2, 400); /* the same again */
	assert_int_equal(rig->writes, writes);
	rig_cap(rig, 1, 3, 450);
	assert_near(rig->limit_w[0], 450, 0);
	rig_destroy(rig);
}

static void test_foreign_lower_is_reasserted(void **state)
{
	struct rig *rig = rig_new(1);
	(void)state;
	rig->options.reassert_lower = true;
	rig_start(rig);
	rig_cap(rig, 1, 1, 400);
	rig->limit_w[0] = 300;
	rig_run(rig, 101 * SECOND);
	assert_near(rig->limit_w[0], 400, 0);
	assert_int_equal(rig->alarms[WW_ALARM_FOREIGN_LOWER], 1);
	/* It is a raise: not after the lease, and not for ever. */
	rig_run(rig, 116 * SECOND);
	rig->limit_w[0] = 300;
	rig_run(rig, 120 * SECOND);
	assert_near(rig->limit_w[0], 300, 0);
	rig_cap(rig, 1, 2, 400);
	assert_near(rig->limit_w[0], 400, 0);
	for (int i = 0; i < 5; i++) {
		rig->limit_w[0] = 300;
		rig_run(rig, rig->now_us + SECOND);
	}
	assert_near(rig->limit_w[0], 300, 0);
	assert_int_equal(rig->sample.gpus[0].managed, 1);
	rig_destroy(rig);
}

/* What followed the lease may have been a raise; that does not make one of what a foreign hand took. */
static void test_lower_after_the_lapse(void **state)
{
	struct rig *rig = rig_new(1);
	(void)state;
	rig->options.reassert_lower = true;
	rig_start(rig);
	struct ww_command c = rig_command(rig, 1, 1, 400);
	c.after = WW_AFTER_RESTORE;
	rig_obey(rig, &c);
	rig_run(rig, 120 * SECOND);
	assert_near(rig->limit_w[0], 650, 0);
	rig->limit_w[0] = 500;
	rig_run(rig, 125 * SECOND);
	assert_near(rig->limit_w[0], 500, 0);
	rig_destroy(rig);
}

static void test_foreign_is_counted_to_255(void **state)
{
	struct rig *rig = rig_new(1);
	(void)state;
	rig->options.fight_window_us = 0;
	rig_start(rig);
	rig_cap(rig, 1, 1, 400);
	raise_again(rig, 300);
	assert_near(rig->limit_w[0], 400, 0);
	assert_int_equal(rig->sample.gpus[0].foreign, 255);
	rig_destroy(rig);
}

/* What was changed while the agent was down. */
static void test_foreign_between_starts(void **state)
{
	struct rig *rig = rig_create(1);
	(void)state;
	rig_cap(rig, 1, 1, 400);
	rig_cap(rig, 1, 2, 400);
	rig->limit_w[0] = 600;
	rig_start(rig);
	assert_near(rig->limit_w[0], 400, 0);
	assert_int_equal(rig->alarms[WW_ALARM_FOREIGN_RAISE], 1);
	rig->limit_w[0] = 250;
	rig_start(rig);
	assert_near(rig->limit_w[0], 250, 0);
	assert_int_equal(rig->alarms[WW_ALARM_FOREIGN_LOWER], 1);
	rig_destroy(rig);
}

/* Before any command limits are nobody's business. */
static void test_not_foreign_without_a_target(void **state)
{
	struct rig *rig = rig_create(1);
	(void)state;
	rig->limit_w[0] = 300;
	rig_run(rig, 103 * SECOND);
	rig->limit_w[0] = 700;
	rig_run(rig, 106 * SECOND);
	assert_int_equal(rig->sample.gpus[0].foreign, 0);
	assert_int_equal(rig->writes, 0);
	rig_destroy(rig);
}

/* The limit found is recorded once, whatever comes after it. */
static void test_recorded_once(void **state)
{
	struct rig *rig = rig_create(1);
	(void)state;
	rig->limit_w[0] = 620;
	rig_run(rig, 101 * SECOND);
	rig_cap(rig, 1, 1, 400);
	rig->limit_w[0] = 680;
	rig_run(rig, 103 * SECOND);
	rig_start(rig);
	rig_cap(rig, 1, 2, 300);
	rig_start(rig);
	rig_run(rig, 105 * SECOND);
	assert_near(rig->hello.limits[0].recorded_w, 620, 0);
	rig_release(rig, true);
	assert_near(rig->limit_w[0], 620, 0);
	rig_destroy(rig);
}

/* ---- Boards that do not obey --------------------------------------------------------------------------------------- */

static void test_write_fails(void **state)
{
	struct rig *rig = rig_create(2);
	(void)state;
	rig->deaf[0] = true;
	rig_cap(rig, 1, 1, 400);
	assert_near(rig->limit_w[1], 400, 0); /* one does not stop the other */
	assert_near(rig->done.gpus[0].enforced_w.value, 650, 0);
	assert_nan(rig->done.gpus[0].requested_w);
	assert_near(rig->done.gpus[0].target_w, 400, 0);
	assert_int_equal(rig->alarms[WW_ALARM_WRITE_FAILED], 1);
	rig_run(rig, 105 * SECOND);
	assert_int_equal(rig->writes_of[0], 6); /* each period */
	assert_int_equal(rig->writes_of[1], 1);
	assert_int_equal(rig->alarms[WW_ALARM_WRITE_FAILED], 1);
	assert_int_equal(rig->alarms[WW_ALARM_FOREIGN_RAISE], 0);
	assert_int_equal(rig->sample.gpus[0].held, 0);
	rig->deaf[0] = false;
	rig_run(rig, 106 * SECOND);
	assert_near(rig->limit_w[0], 400, 0);
	assert_near(rig->news.gpus[0].requested_w, 400, 0);
	rig_run(rig, 110 * SECOND);
	assert_int_equal(rig->writes_of[0], 7);
	rig_destroy(rig);
}

/* A period after the write, not at the beat of the samples. */
static void test_retry_after_a_period(void **state)
{
	struct rig *rig = rig_create(1);
	(void)state;
	rig->deaf[0] = true;
	rig->now_us += 300000;
	rig_cap(rig, 1, 1, 400);
	rig_run(rig, 101 * SECOND + 299999);
	assert_int_equal(rig->writes, 1);
	rig_run(rig, 101 * SECOND + 300000);
	assert_int_equal(rig->writes, 2);
	rig_destroy(rig);
}

/* What a step is up from is our limit, not the one that the board does not leave. */
static void test_step_up_of_a_deaf_board(void **state)
{
	struct rig *rig = rig_create(1);
	(void)state;
	rig->deaf[0] = true;
	struct ww_command c = rig_command(rig, 1, 1, 400);
	add_step(&c, 20 * SECOND, 500);
	assert_int_equal(rig_judge(rig, &c), WW_ACK_DONE);
	rig_run(rig, 125 * SECOND);
	assert_near(rig->sample.gpus[0].target_w, 400, 0);
	rig_destroy(rig);
}

static void test_reads_back_higher(void **state)
{
	struct rig *rig = rig_create(1);
	(void)state;
	rig->floor_w[0] = 350;
	rig_cap(rig, 1, 1, 300);
	assert_int_equal(rig->alarms[WW_ALARM_WRITE_FAILED], 1);
	assert_near(rig->done.gpus[0].enforced_w.value, 350, 0);
	assert_near(rig->done.gpus[0].requested_w, 300, 0);
	rig_run(rig, 103 * SECOND);
	assert_int_equal(rig->writes, 4);
	assert_int_equal(rig->alarms[WW_ALARM_FOREIGN_RAISE], 0);
	assert_int_equal(rig->alarms[WW_ALARM_WRITE_FAILED], 1);
	assert_int_equal(rig->sample.gpus[0].held, 0);
	rig_cap(rig, 1, 2, 400); /* which does not wait for the next try */
	assert_near(rig->limit_w[0], 400, 0);
	rig_run(rig, 106 * SECOND);
	assert_int_equal(rig->writes, 5);
	assert_int_equal(rig->sample.gpus[0].held, 1);
	rig_destroy(rig);
}

/* Lower than asked is fine and told as it is; later it is no foreign hand. */
static void test_reads_back_lower(void **state)
{
	struct rig *rig = rig_create(1);
	(void)state;
	rig->ceiling_w[0] = 500;
	rig_cap(rig, 1, 1, 600);
	assert_near(rig->done.gpus[0].enforced_w.value, 500, 0);
	assert_near(rig->done.gpus[0].target_w, 600, 0);
	rig_run(rig, 105 * SECOND);
	assert_int_equal(rig->writes, 1);
	assert_int_equal(rig->sample.gpus[0].foreign, 0);
	rig->limit_w[0] = 450;
	rig_run(rig, 107 * SECOND);
	assert_int_equal(rig->sample.gpus[0].foreign, 1);
	rig_destroy(rig);
}

/* A board that tells no limit: nothing is recorded, so nothing is written, and it is told as not known. */
static void test_limit_not_known(void **state)
{
	struct rig *rig = rig_new(1);
	(void)state;
	rig->blind[0] = true;
	rig_start(rig);
	struct ww_command c = rig_command(rig, 1, 1, 400);
	rig_obey(rig, &c);
	rig_run(rig, 102 * SECOND);
	assert_int_equal(rig->writes, 0);
	assert_int_equal(rig->sample.gpus[0].enforced_w.status, WW_READING_TIMEOUT);
	assert_nan(rig->sample.gpus[0].target_w);
	assert_nan(rig->sample.gpus[0].enforced_w.value);
	rig->blind[0] = false;
	rig_run(rig, 103 * SECOND);
	assert_near(rig->limit_w[0], 400, 0);
	/* Known once: lower is written blindly, higher than written is not without a lease. */
	rig->blind[0] = true;
	c = rig_command(rig, 1, 2, 300);
	rig_obey(rig, &c);
	assert_near(rig->limit_w[0], 300, 0);
	assert_int_equal(rig->alarms[WW_ALARM_WRITE_FAILED], 1);
	/* Also after the lease. */
	c = rig_command(rig, 1, 3, 300);
	add_step(&c, 20 * SECOND, 250);
	rig_obey(rig, &c);
	rig_run(rig, 130 * SECOND);
	assert_near(rig->limit_w[0], 250, 0);
	rig_destroy(rig);
}

/* A board falls silent after somebody lowered its limit: what was written before it would be a raise. */
static void test_lower_and_then_not_known(void **state)
{
	struct rig *rig = rig_new(1);
	(void)state;
	rig->options.reassert_lower = true;
	rig_start(rig);
	rig_cap(rig, 1, 1, 400);
	rig_run(rig, 116 * SECOND); /* the lease is over */
	rig->limit_w[0] = 300;
	rig_run(rig, 117 * SECOND);
	rig->blind[0] = true;
	rig_run(rig, 119 * SECOND);
	assert_near(rig->limit_w[0], 300, 0);
	rig_destroy(rig);
}

/* What the journal says was written may have been lowered since, where the disk failed: it is no limit to go by. */
static void test_not_known_since_the_start(void **state)
{
	struct rig *rig = rig_create(1);
	(void)state;
	rig_cap(rig, 1, 1, 500);
	struct ww_command c = rig_command(rig, 1, 2, 450);
	assert_int_equal(rig_judge(rig, &c), WW_ACK_DONE);
	rig->limit_w[0] = 300;
	rig->blind[0] = true;
	rig->disk_fails = true;
	rig_start(rig);
	c = rig_command(rig, 1, 3, 400);
	rig_obey(rig, &c);
	rig_run(rig, 103 * SECOND);
	assert_near(rig->limit_w[0], 300, 0);
	rig->blind[0] = false;
	rig_run(rig, 105 * SECOND);
	assert_near(rig->limit_w[0], 300, 0);
	rig->disk_fails = false;
	rig_run(rig, 107 * SECOND);
	assert_near(rig->limit_w[0], 400, 0);
	rig_destroy(rig);
}

/* ---- Held ---------------------------------------------------------------------------------------------------------- */

static void put_draw(struct rig *rig, float draw_w, uint16_t age_ms)
{
	struct ww_node_in in = {.kind = WW_NODE_IN_READING,
	                        .u.reading = {0, reading_of(rig->limit_w[0]), reading_of(draw_w)}};
	in.u.reading.draw_w.age_ms = age_ms;
	rig_put(rig, &in, 1);
}

static bool is_held(struct rig *rig)
{
	rig->mute = true;
	rig_run(rig, (rig->now_us / SECOND + 1) * SECOND + SECOND / 2);
	return rig->sample.gpus[0].held;
}

static void test_held(void **state)
{
	struct rig *rig = rig_create(1);
	(void)state;
	rig_cap(rig, 1, 1, 400);
	assert_int_equal(rig->done.gpus[0].held, 0);
	rig->now_us += SECOND - 1;
	put_draw(rig, 390, 0);
	assert_false(is_held(rig)); /* a second began before the limit did */
	put_draw(rig, 390, 2000);
	assert_false(is_held(rig)); /* read long ago */
	put_draw(rig, 408.1f, 0);
	assert_false(is_held(rig)); /* more than 1.02 of it */
	put_draw(rig, NAN, 0);
	assert_false(is_held(rig));
	put_draw(rig, 407.9f, 0);
	assert_true(is_held(rig));
	put_draw(rig, 420, 0);
	assert_false(is_held(rig)); /* does not hold its cap */
	put_draw(rig, 100, 0);
	assert_true(is_held(rig));
	rig_cap(rig, 1, 2, 350);
	assert_int_equal(rig->done.gpus[0].held, 0); /* changed */
	rig_destroy(rig);
}

static void test_held_a_second_later(void **state)
{
	struct rig *rig = rig_create(1);
	(void)state;
	rig_cap(rig, 1, 1, 400);
	rig_run(rig, 101 * SECOND);
	assert_int_equal(rig->sample.gpus[0].held, 1);
	rig_cap(rig, 1, 2, 400); /* no change */
	assert_int_equal(rig->done.gpus[0].held, 1);
	rig_start(rig);
	assert_int_equal(rig->sample.gpus[0].held, 0); /* who knows since when */
	rig_run(rig, 102 * SECOND);
	assert_int_equal(rig->sample.gpus[0].held, 1);
	rig_destroy(rig);
}

/* ---- Nothing to do ------------------------------------------------------------------------------------------------- */

static void test_due(void **state)
{
	struct rig *rig = rig_create(4);
	struct ww_node_act acts[RIG_ACTS];
	(void)state;
	rig_cap(rig, 1, 1, 400);
	rig->now_us += 300;
	assert_int_equal(ww_node_due_us(rig->node), 101 * SECOND);
	assert_int_equal(ww_node_step(rig->node, (struct ww_now){rig->now_us, 0}, NULL, 0, acts, rig->room), 0);
	/* A clock that goes back does not bring time back. */
	rig_run(rig, 105 * SECOND);
	assert_int_equal(ww_node_step(rig->node, (struct ww_now){0, 0}, NULL, 0, acts, rig->room), 0);
	assert_int_equal(ww_node_due_us(rig->node), 106 * SECOND);
	rig_destroy(rig);
}

/* A raise of which nobody knows whether the board will yet take it, and a lower cap after it. */
static void test_write_on_its_way(void **state)
{
	struct rig *rig = rig_create(1);
	struct ww_command c;
	struct ww_node_in written = {.kind = WW_NODE_IN_WRITTEN, .u.written = {0, true, reading_of(300)}};
	(void)state;
	rig_cap(rig, 1, 1, 300);
	rig_run(rig, 103 * SECOND);
	assert_near(rig->sample.gpus[0].target_w, 300, 0);
	assert_int_equal(rig->sample.gpus[0].held, 1);
	rig->deaf[0] = rig->hang = true;
	c = rig_command(rig, 1, 2, 500);
	rig_obey(rig, &c);
	c = rig_command(rig, 1, 3, 300);
	rig_obey(rig, &c);
	rig_run(rig, 106 * SECOND);
	assert_near(rig->sample.gpus[0].enforced_w.value, 300, 0);
	assert_near(rig->sample.gpus[0].target_w, 500, 0);
	assert_int_equal(rig->sample.gpus[0].held, 0);
	rig->deaf[0] = rig->hang = false;
	rig_put(rig, &written, 1);
	rig_run(rig, 109 * SECOND);
	assert_near(rig->sample.gpus[0].target_w, 300, 0);
	assert_int_equal(rig->sample.gpus[0].held, 1);
	rig_destroy(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_foreign_raise),
		cmocka_unit_test(test_fight),
		cmocka_unit_test(test_no_fight),
		cmocka_unit_test(test_foreign_lower_is_respected),
		cmocka_unit_test(test_foreign_lower_is_reasserted),
		cmocka_unit_test(test_lower_after_the_lapse),
		cmocka_unit_test(test_foreign_is_counted_to_255),
		cmocka_unit_test(test_foreign_between_starts),
		cmocka_unit_test(test_not_foreign_without_a_target),
		cmocka_unit_test(test_recorded_once),
		cmocka_unit_test(test_write_fails),
		cmocka_unit_test(test_retry_after_a_period),
		cmocka_unit_test(test_step_up_of_a_deaf_board),
		cmocka_unit_test(test_reads_back_higher),
		cmocka_unit_test(test_reads_back_lower),
		cmocka_unit_test(test_limit_not_known),
		cmocka_unit_test(test_lower_and_then_not_known),
		cmocka_unit_test(test_not_known_since_the_start),
		cmocka_unit_test(test_held),
		cmocka_unit_test(test_held_a_second_later),
		cmocka_unit_test(test_write_on_its_way),
		cmocka_unit_test(test_due),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
