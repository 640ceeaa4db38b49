/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's brain and its journal: crashes, boots, and files that are none. */
#include "node_rig.h"

/* ---- Restart and boot ---------------------------------------------------------------------------------------------- */

static void test_restart_adopts(void **state)
{
	struct rig *rig = rig_create(2);
	(void)state;
	struct ww_command c = rig_command(rig, 1, 1, 400);
	add_step(&c, 5 * SECOND, 300);
	assert_int_equal(rig_judge(rig, &c), WW_ACK_DONE);
	int writes = rig->writes;
	rig->now_us += 2 * SECOND;
	rig_start(rig);
	assert_int_equal(rig->writes, writes);
	assert_near(rig->sample.gpus[0].target_w, 400, 0);
	assert_near(rig->hello.limits[0].recorded_w, 650, 0);
	assert_int_equal(rig->alarms[WW_ALARM_FOREIGN_RAISE], 0);
	rig_run(rig, 104 * SECOND);
	assert_near(rig->limit_w[1], 400, 0);
	rig_run(rig, 105 * SECOND);
	assert_near(rig->limit_w[1], 300, 0); /* on time, by the clock of this boot */
	rig_start(rig);
	assert_near(rig->hello.limits[0].recorded_w, 650, 0);
	assert_int_equal(rig->sample.gpus[0].step, 1);
	rig_run(rig, 114 * SECOND);
	assert_int_equal(rig->alarms[WW_ALARM_LAPSED], 0);
	rig_run(rig, 115 * SECOND);
	assert_int_equal(rig->alarms[WW_ALARM_LAPSED], 1);
	rig_start(rig);
	assert_int_equal(rig->alarms[WW_ALARM_LAPSED], 1);
	rig_destroy(rig);
}

static void test_steps_due_while_the_agent_was_down(void **state)
{
	struct rig *rig = rig_create(1);
	(void)state;
	struct ww_command c = rig_command(rig, 1, 1, 500);
	add_step(&c, 5 * SECOND, 300);
	assert_int_equal(rig_judge(rig, &c), WW_ACK_DONE);
	rig->now_us += 60 * SECOND;
	rig_start(rig);
	assert_near(rig->limit_w[0], 300, 0);
	assert_int_equal(rig->alarms[WW_ALARM_LAPSED], 1);
	rig_destroy(rig);
}

/* Dies after the journal was stored and before the write, or after it and before it knows. */
static void test_dies_around_a_write(void **state)
{
	(void)state;
	for (int written = 0; written < 2; written++)
		for (int up = 0; up < 2; up++) {
			struct rig *rig = rig_create(1);
			rig_cap(rig, 1, 1, 400);
			float cap_w = up ? 500 : 300;
			struct ww_command c = rig_command(rig, 1, 2, cap_w);
			struct ww_node_in in = {.kind = WW_NODE_IN_COMMAND, .u.command = &c};
			struct ww_node_act acts[RIG_ACTS];
			assert_int_equal(
				ww_node_step(rig->node, (struct ww_now){rig->now_us, 0}, &in, 1, acts, rig->room), 1);
			store(rig, acts[0].u.journal.bytes, acts[0].u.journal.n);
			if (written)
				rig->limit_w[0] = cap_w;
			int writes = rig->writes;
			rig_start(rig);
			assert_near(rig->limit_w[0], cap_w, 0);
			assert_int_equal(rig->writes, writes + !written);
			assert_near(rig->last.seen.seq, 2, 0);
			for (int i = 0; i < RIG_ALARMS; i++)
				assert_int_equal(rig->alarms[i], 0);
			rig_run(rig, rig->now_us + SECOND);
			assert_near(rig->sample.gpus[0].requested_w, cap_w, 0);
			rig_destroy(rig);
		}
}

/* Dies before the journal was stored: as if the command had never come. */
static void test_dies_before_the_journal(void **state)
{
	struct rig *rig = rig_create(1);
	(void)state;
	rig_cap(rig, 1, 1, 400);
	struct ww_command c = rig_command(rig, 1, 2, 500);
	struct ww_node_in in = {.kind = WW_NODE_IN_COMMAND, .u.command = &c};
	struct ww_node_act acts[RIG_ACTS];
	assert_int_equal(ww_node_step(rig->node, (struct ww_now){rig->now_us, 0}, &in, 1, acts, rig->room), 1);
	rig_start(rig);
	rig_run(rig, rig->now_us + 3 * SECOND);
	assert_near(rig->limit_w[0], 400, 0);
	assert_int_equal(rig->last.seen.seq, 1);
	rig_cap(rig, 1, 2, 500);
	rig_destroy(rig);
}

static void test_boot_forgets_limits(void **state)
{
	struct rig *rig = rig_create(2);
	(void)state;
	struct ww_command c = rig_command(rig, 1, 1, 400);
	add_step(&c, 20 * SECOND, 300);
	assert_int_equal(rig_judge(rig, &c), WW_ACK_DONE);
	int writes = rig->writes;
	rig_boot(rig, 550);
	assert_nan(rig->sample.gpus[0].target_w);
	assert_nan(rig->sample.gpus[0].requested_w);
	assert_nan(rig->hello.limits[0].recorded_w);
	rig_run(rig, 300 * SECOND);
	assert_int_equal(rig->writes, writes);
	assert_near(rig->sample.gpus[0].enforced_w.value, 550, 0);
	assert_int_equal(rig->sample.gpus[0].step, 0);
	assert_int_equal(rig->alarms[WW_ALARM_LAPSED], 0);
	rig_cap(rig, 1, 2, 300);
	rig_start(rig);
	assert_near(rig->hello.limits[1].recorded_w, 550, 0); /* anew, and not the cap */
	rig_destroy(rig);
}

/* The start_id rises although the wall clock was set back. */
static void test_start_id_rises(void **state)
{
	struct rig *rig = rig_create(1);
	(void)state;
	uint64_t first = rig->last.start_id;
	rig->options.start_id = 10;
	rig_start(rig);
	assert_true(rig->last.start_id > first);
	rig_start(rig);
	assert_true(rig->last.start_id > first + 1);
	rig_boot(rig, 700);
	assert_true(rig->last.start_id > first + 2);
	rig_destroy(rig);
}

/* The boards may have been swapped: each is known by its UUID. */
static void test_boards_in_another_order(void **state)
{
	struct rig *rig = rig_create(2);
	(void)state;
	struct ww_command c = rig_command(rig, 1, 1, 400);
	c.step[0].cap_w[1] = 500;
	add_step(&c, 5 * SECOND, 300);
	c.step[1].cap_w[1] = 450;
	assert_int_equal(rig_judge(rig, &c), WW_ACK_DONE);
	rig->options.gpus[0].uuid = 501;
	rig->options.gpus[1].uuid = 999;
	rig->limit_w[0] = 500;
	rig->limit_w[1] = 700;
	rig_start(rig);
	assert_near(rig->sample.gpus[0].target_w, 500, 0);
	assert_nan(rig->sample.gpus[1].target_w);
	rig_run(rig, 106 * SECOND);
	assert_near(rig->limit_w[0], 450, 0);
	assert_near(rig->limit_w[1], 700, 0);
	rig_destroy(rig);
}

/* ---- Journals that are none ---------------------------------------------------------------------------------------- */

static ww_status create_from(const struct rig *rig, const uint8_t *bytes, size_t n)
{
	struct ww_error err = {WW_OK, ""};
	ww_node *node = NULL;
	ww_status status = ww_node_create(&rig->options, bytes, n, &node, &err);
	ww_node_destroy(node);
	assert_int_equal(err.code, status);
	return status;
}

static void test_damaged_journals(void **state)
{
	struct rig *rig = rig_create(2);
	uint8_t bytes[sizeof rig->disk];
	(void)state;
	struct ww_command c = rig_command(rig, 1, 1, 400);
	add_step(&c, 5 * SECOND, 300);
	assert_int_equal(rig_judge(rig, &c), WW_ACK_DONE);
	size_t n = rig->disk_n;
	assert_int_equal(create_from(rig, rig->disk, n), WW_OK);
	for (size_t i = 1; i < n; i++)
		assert_int_equal(create_from(rig, rig->disk, i), WW_ERR_INVALID);
	for (size_t i = 0; i < n; i++) {
		memcpy(bytes, rig->disk, n);
		bytes[i] ^= 0x10;
		assert_int_equal(create_from(rig, bytes, n), WW_ERR_INVALID);
	}
	memcpy(bytes, rig->disk, n);
	bytes[n] = 0;
	assert_int_equal(create_from(rig, bytes, n + 1), WW_ERR_INVALID);
	rig->options.node++;
	assert_int_equal(create_from(rig, rig->disk, n), WW_ERR_INVALID);
	rig_destroy(rig);
}

/* The whole is right, one value in it is not: bytes at an offset, and what is to be said. */
struct wrong {
	size_t at;
	const char *bytes;
	size_t n;
	const char *said;
};

static void put_right(uint8_t *bytes, size_t n)
{
	uint64_t sum = ww_sum_bytes(bytes, n < 8 ? 0 : n - 8);
	for (size_t i = 0; i < 8; i++)
		bytes[n - 8 + i] = (uint8_t)(sum >> 8 * i);
}

#define LEASE 56
#define STEPS (LEASE + 12)
#define GPU (STEPS + 4 + 2 * 16 + 4)

static void test_wrong_values(void **state)
{
	static const struct wrong wrongs[] = {
		{0, "X", 1, "none"},
		{4, "\2", 1, "version"},
		{8, "X", 1, "another node or cluster"},
		{16, "X", 1, "another node or cluster"},
		{32, "\xff\xff\xff\xff\xff\xff\xff\xff", 8, "no sense"}, /* start_id */
		{LEASE, "\2", 1, "no sense"},                            /* given */
		{LEASE, "\0", 1, "no sense"},                            /* and yet steps */
		{LEASE + 1, "\2", 1, "no sense"},                        /* lapsed */
		{LEASE + 2, "\2", 1, "no sense"},                        /* release_ok */
		{LEASE + 3, "\3", 1, "no sense"},                        /* after */
		{STEPS, "\xd", 1, "no sense"},                           /* 13 steps */
		{STEPS, "\1", 1, "no sense"},                            /* one fewer than there are */
		{STEPS + 4 + 7, "\x7f", 1, "no sense"},                  /* due after the next, and after its up */
		{STEPS + 4 + 15, "\x80", 1, "no sense"},                 /* up before due */
		{STEPS + 4 + 16, "\0\0\0\0\0\0\0\0", 8, "no sense"},     /* due before the step before */
		{STEPS + 4 + 32, "\x11", 1, "no sense"},                 /* 17 GPUs */
		{STEPS + 4 + 32, "\1", 1, "no sense"},                   /* fewer than there are */
		{GPU + 8, "\0\0\x80\x7f", 4, "no sense"},                /* recorded_w: infinite */
		{GPU + 8, "\0\0\x80\xbf", 4, "no sense"},                /* -1 */
		{GPU + 12, "\0\0\x80\x7f", 4, "no sense"},               /* target_w */
		{GPU + 20, "\2", 1, "no sense"},                         /* unbound */
		{GPU + 29, "\3", 1, "no sense"},                         /* step */
	};
	struct rig *rig = rig_create(2);
	uint8_t bytes[sizeof rig->disk];
	(void)state;
	struct ww_command c = rig_command(rig, 1, 1, 400);
	add_step(&c, 5 * SECOND, 300);
	assert_int_equal(rig_judge(rig, &c), WW_ACK_DONE);
	for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) {
		struct ww_error err = {WW_OK, ""};
		ww_node *node = NULL;
		memcpy(bytes, rig->disk, rig->disk_n);
		memcpy(bytes + wrongs[i].at, wrongs[i].bytes, wrongs[i].n);
		put_right(bytes, rig->disk_n);
		ww_status status = ww_node_create(&rig->options, bytes, rig->disk_n, &node, &err);
		if (status != WW_ERR_INVALID || !strstr(err.text, wrongs[i].said))
			fail_msg("wrong value %zu: %d, '%s'", i, status, err.text);
	}
	/* One byte more than there should be. */
	memcpy(bytes, rig->disk, rig->disk_n);
	put_right(bytes, rig->disk_n + 1);
	assert_int_equal(create_from(rig, bytes, rig->disk_n + 1), WW_ERR_INVALID);
	rig_destroy(rig);
}

/* ---- What a later start goes on with ------------------------------------------------------------------------------- */

/* A raise that was carried out under a lease that has ended since. */
static void test_raised_limit_stays(void **state)
{
	struct rig *rig = rig_create(1);
	(void)state;
	struct ww_command c = rig_command(rig, 1, 1, 400);
	add_step(&c, 5 * SECOND, 500);
	assert_int_equal(rig_judge(rig, &c), WW_ACK_DONE);
	rig_run(rig, 106 * SECOND);
	rig->now_us = 130 * SECOND;
	rig_start(rig);
	rig_run(rig, 135 * SECOND);
	assert_near(rig->limit_w[0], 500, 0);
	assert_near(rig->sample.gpus[0].target_w, 500, 0);
	assert_int_equal(rig->alarms[WW_ALARM_FOREIGN_RAISE], 0);
	rig_destroy(rig);
}

static void test_failcap_stays(void **state)
{
	struct rig *rig = rig_create(1);
	(void)state;
	struct ww_command c = rig_command(rig, 1, 1, 400);
	c.after = WW_AFTER_FAILCAP;
	c.failcap_w[0] = 500;
	assert_int_equal(rig_judge(rig, &c), WW_ACK_DONE);
	rig_run(rig, 120 * SECOND);
	rig_start(rig);
	rig_run(rig, 125 * SECOND);
	assert_near(rig->limit_w[0], 500, 0);
	rig_destroy(rig);
}

/* What was recorded and seen is known at once, although the disk fails from then on. */
static void test_disk_fails_after_a_restart(void **state)
{
	struct rig *rig = rig_create(1);
	(void)state;
	rig_cap(rig, 3, 4, 400);
	rig->disk_fails = true;
	rig->options.start_id = 5000;
	rig_start(rig);
	assert_int_equal(rig->hello.from.seen.epoch, 3);
	assert_int_equal(rig->hello.from.seen.seq, 4);
	assert_near(rig->hello.limits[0].recorded_w, 650, 0);
	struct ww_command c = rig_command(rig, 3, 5, 300);
	rig_obey(rig, &c);
	assert_near(rig->limit_w[0], 300, 0);
	rig_destroy(rig);
}

/* A board that takes less than the one before. */
static void test_board_with_other_limits(void **state)
{
	struct rig *rig = rig_create(1);
	(void)state;
	struct ww_command c = rig_command(rig, 1, 1, 600);
	c.after = WW_AFTER_FAILCAP;
	c.failcap_w[0] = 650;
	add_step(&c, 5 * SECOND, 550);
	assert_int_equal(rig_judge(rig, &c), WW_ACK_DONE);
	rig->options.gpus[0].max_w = rig->options.gpus[0].default_w = 500;
	rig_start(rig);
	assert_near(rig->sample.gpus[0].target_w, 500, 0);
	assert_near(rig->limit_w[0], 500, 0);
	rig_run(rig, 120 * SECOND);
	assert_near(rig->limit_w[0], 500, 0);
	rig_release(rig, true);
	assert_near(rig->limit_w[0], 500, 0);
	rig_destroy(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_restart_adopts),
		cmocka_unit_test(test_steps_due_while_the_agent_was_down),
		cmocka_unit_test(test_dies_around_a_write),
		cmocka_unit_test(test_dies_before_the_journal),
		cmocka_unit_test(test_boot_forgets_limits),
		cmocka_unit_test(test_start_id_rises),
		cmocka_unit_test(test_boards_in_another_order),
		cmocka_unit_test(test_damaged_journals),
		cmocka_unit_test(test_wrong_values),
		cmocka_unit_test(test_raised_limit_stays),
		cmocka_unit_test(test_failcap_stays),
		cmocka_unit_test(test_disk_fails_after_a_restart),
		cmocka_unit_test(test_board_with_other_limits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
