/* SPDX-License-Identifier: Apache-2.0 */
#include "assert_near.h"

#include "wire/wire.h"

#include <string.h>

#define N_NODES 8

static ww_wire *wire_with(const struct ww_wire_faults *faults, uint64_t seed)
{
	ww_wire *wire = NULL;
	assert_int_equal(ww_wire_create(N_NODES, faults, seed, &wire, NULL), WW_OK);
	return wire;
}

static void send_sample(ww_wire *wire, uint32_t node, uint64_t seq, int64_t now_us)
{
	struct ww_sample sample = {.from = {.version = WW_MSG_VERSION, .seq = seq}, .n_gpus = 1};
	struct ww_wire_message message = {.kind = WW_WIRE_SAMPLE, .node = node, .u.sample = &sample};
	assert_int_equal(ww_wire_send(wire, &message, now_us, NULL), WW_OK);
	memset(&sample, 0xFF, sizeof sample); /* the wire has its own copy */
}

/* The seq of the next sample, 0 when there is none. */
static uint64_t receive_seq(ww_wire *wire, int64_t now_us)
{
	struct ww_wire_message message;
	if (!ww_wire_receive(wire, now_us, &message))
		return 0;
	assert_int_equal(message.kind, WW_WIRE_SAMPLE);
	return message.u.sample->from.seq;
}

static void test_every_kind_comes_through_whole(void **state)
{
	static const struct ww_wire_faults none = {.delay_least_us = 5, .delay_most_us = 5};
	ww_wire *wire = wire_with(&none, 1);
	struct ww_sample sample;
	struct ww_ack ack;
	struct ww_hello hello;
	struct ww_command command;
	struct ww_wire_message in[4] = {
		{.kind = WW_WIRE_SAMPLE, .node = 0, .u.sample = &sample},
		{.kind = WW_WIRE_ACK, .node = 1, .u.ack = &ack},
		{.kind = WW_WIRE_HELLO, .node = 2, .u.hello = &hello},
		{.kind = WW_WIRE_COMMAND, .node = 3, .u.command = &command},
	};
	static const size_t sizes[] = {sizeof sample, sizeof ack, sizeof hello, sizeof command};
	(void)state;
	memset(&sample, 1, sizeof sample);
	memset(&ack, 2, sizeof ack);
	memset(&hello, 3, sizeof hello);
	memset(&command, 4, sizeof command);
	assert_true(ww_wire_due_us(wire) == WW_NEVER_US);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(ww_wire_send(wire, &in[i], 100, NULL), WW_OK);
	assert_int_equal(ww_wire_due_us(wire), 105);
	struct ww_wire_message out;
	assert_false(ww_wire_receive(wire, 104, &out));
	for (size_t i = 0; i < 4; i++) {
		assert_true(ww_wire_receive(wire, 105, &out));
		assert_int_equal(out.kind, in[i].kind);
		assert_int_equal(out.node, in[i].node);
		assert_memory_equal(out.u.sample, in[i].u.sample, sizes[i]);
	}
	assert_false(ww_wire_receive(wire, 1000, &out));
	ww_wire_destroy(wire);
}

static void test_messages_of_one_delay_keep_their_order(void **state)
{
	static const struct ww_wire_faults none = {.delay_least_us = 7, .delay_most_us = 7};
	ww_wire *wire = wire_with(&none, 1);
	(void)state;
	for (uint64_t i = 1; i <= 1000; i++)
		send_sample(wire, (uint32_t)(i % N_NODES), i, 0);
	for (uint64_t i = 1; i <= 1000; i++)
		assert_int_equal(receive_seq(wire, 7), i);
	assert_int_equal(receive_seq(wire, 7), 0);
	ww_wire_destroy(wire);
}

static void test_arrivals_come_in_time_and_overtake(void **state)
{
	static const struct ww_wire_faults slow = {.delay_least_us = 10, .delay_most_us = 1000};
	ww_wire *wire = wire_with(&slow, 3);
	int64_t last_us = 0, earliest_us = INT64_MAX, latest_us = 0;
	unsigned overtaken = 0;
	uint64_t last = 0;
	(void)state;
	for (uint64_t i = 1; i <= 5000; i++)
		send_sample(wire, 0, i, 0);
	for (unsigned i = 0; i < 5000; i++) {
		int64_t due_us = ww_wire_due_us(wire);
		assert_true(due_us >= last_us);
		assert_int_equal(receive_seq(wire, due_us - 1), 0);
		uint64_t seq = receive_seq(wire, due_us);
		assert_true(seq > 0);
		overtaken += seq < last;
		last = seq;
		last_us = due_us;
		earliest_us = due_us < earliest_us ? due_us : earliest_us;
		latest_us = due_us > latest_us ? due_us : latest_us;
	}
	assert_true(overtaken > 500);
	assert_in_range(earliest_us, 10, 15);
	assert_in_range(latest_us, 995, 1000);
	ww_wire_destroy(wire);
}

static const struct ww_wire_faults bad_wire = {.loss_frac = 0.1,
                                               .double_frac = 0.2,
                                               .delay_least_us = 10,
                                               .delay_most_us = 100,
                                               .late_frac = 0.3,
                                               .late_most_us = 5000};

/* Sends 20000 messages, 10 us apart, and receives each when it is due: a hash of what came and when. */
static uint64_t run_bad_wire(uint64_t seed, struct ww_wire_counts *counts, unsigned *late)
{
	ww_wire *wire = wire_with(&bad_wire, seed);
	uint64_t hash = 0;
	*late = 0;
	for (uint64_t i = 1; i <= 20000; i++) {
		int64_t now_us = (int64_t)i * 10;
		send_sample(wire, 0, i, now_us);
		for (uint64_t seq; (seq = receive_seq(wire, now_us)) != 0;) {
			hash = (hash ^ seq ^ (uint64_t)now_us << 32) * 0x100000001B3u;
			*late += now_us - (int64_t)seq * 10 > 110;
		}
	}
	while (receive_seq(wire, 1000000) != 0)
		continue;
	*counts = ww_wire_counts(wire);
	ww_wire_destroy(wire);
	return hash;
}

static void test_faults_are_as_frequent_as_they_should_be(void **state)
{
	struct ww_wire_counts counts;
	unsigned late;
	(void)state;
	run_bad_wire(5, &counts, &late);
	assert_int_equal(counts.sent, 20000);
	assert_near((double)counts.lost / 20000, 0.1, 0.01);
	assert_near((double)counts.doubled / 18000, 0.2, 0.01);
	assert_int_equal(counts.sent + counts.doubled, counts.lost + counts.delivered);
	assert_near((double)counts.late / (double)counts.delivered, 0.3, 0.01);
	assert_near((double)late / (double)counts.late, 1, 0.05);
}

static void test_a_seed_gives_the_same_faults(void **state)
{
	struct ww_wire_counts counts;
	unsigned late;
	(void)state;
	uint64_t first = run_bad_wire(5, &counts, &late);
	assert_true(run_bad_wire(5, &counts, &late) == first);
	assert_true(run_bad_wire(6, &counts, &late) != first);
}

static void test_doubles_have_their_own_delay(void **state)
{
	static const struct ww_wire_faults doubling = {.double_frac = 1, .delay_most_us = 1000000};
	ww_wire *wire = wire_with(&doubling, 2);
	(void)state;
	send_sample(wire, 0, 1, 0);
	int64_t first_us = ww_wire_due_us(wire);
	assert_int_equal(receive_seq(wire, first_us), 1);
	assert_true(ww_wire_due_us(wire) > first_us && ww_wire_due_us(wire) <= 1000000);
	assert_int_equal(receive_seq(wire, 1000000), 1);
	assert_int_equal(receive_seq(wire, 1000000), 0);
	ww_wire_destroy(wire);
}

static void test_nothing_passes_while_cut(void **state)
{
	static const struct ww_wire_faults none = {.delay_least_us = 100, .delay_most_us = 100};
	ww_wire *wire = wire_with(&none, 1);
	(void)state;
	send_sample(wire, 1, 1, 0); /* arrives while cut */
	send_sample(wire, 2, 2, 0); /* of another node */
	ww_wire_cut(wire, 1, true);
	assert_int_equal(receive_seq(wire, 100), 2);
	assert_int_equal(receive_seq(wire, 100), 0);
	send_sample(wire, 1, 3, 150); /* sent while cut, would arrive when joined */
	ww_wire_cut(wire, 1, false);
	send_sample(wire, 1, 4, 200);
	assert_int_equal(receive_seq(wire, 1000), 4);
	assert_int_equal(receive_seq(wire, 1000), 0);
	assert_int_equal(ww_wire_counts(wire).lost, 2);
	ww_wire_destroy(wire);
}

static void test_faults_that_change_hold_from_then_on(void **state)
{
	static const struct ww_wire_faults none = {0}, all_lost = {.loss_frac = 1};
	ww_wire *wire = wire_with(&none, 1);
	(void)state;
	send_sample(wire, 0, 1, 0);
	ww_wire_set_faults(wire, &all_lost);
	send_sample(wire, 0, 2, 0);
	ww_wire_set_faults(wire, &none);
	send_sample(wire, 0, 3, 0);
	assert_int_equal(receive_seq(wire, 0), 1);
	assert_int_equal(receive_seq(wire, 0), 3);
	assert_int_equal(receive_seq(wire, 0), 0);
	ww_wire_destroy(wire);
}

static void test_faults_that_cannot_be_are_refused(void **state)
{
	static const struct ww_wire_faults wrong[] = {
		{.loss_frac = 1.1},
		{.double_frac = -0.1},
		{.late_frac = NAN},
		{.delay_least_us = -1},
		{.delay_least_us = 2, .delay_most_us = 1},
		{.late_most_us = -1},
		{.delay_most_us = INT64_MAX},
	};
	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		ww_wire *wire = NULL;
		struct ww_error err;
		assert_int_equal(ww_wire_create(1, &wrong[i], 1, &wire, &err), WW_ERR_RANGE);
		assert_null(wire);
		assert_int_equal(strncmp(err.text, "wire: ", 6), 0);
	}
	ww_wire_destroy(NULL);
}

static void test_what_is_on_its_way_is_freed(void **state)
{
	static const struct ww_wire_faults none = {0};
	ww_wire *wire = wire_with(&none, 1);
	(void)state;
	for (uint64_t i = 1; i <= 10; i++)
		send_sample(wire, 0, i, 0);
	assert_int_equal(receive_seq(wire, 0), 1);
	ww_wire_destroy(wire);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_kind_comes_through_whole),
		cmocka_unit_test(test_messages_of_one_delay_keep_their_order),
		cmocka_unit_test(test_arrivals_come_in_time_and_overtake),
		cmocka_unit_test(test_faults_are_as_frequent_as_they_should_be),
		cmocka_unit_test(test_a_seed_gives_the_same_faults),
		cmocka_unit_test(test_doubles_have_their_own_delay),
		cmocka_unit_test(test_nothing_passes_while_cut),
		cmocka_unit_test(test_faults_that_change_hold_from_then_on),
		cmocka_unit_test(test_faults_that_cannot_be_are_refused),
		cmocka_unit_test(test_what_is_on_its_way_is_freed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
