/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that runs out while messages are written, read, sent and kept: it is said, nothing is lost or leaked. */
#include "messages.h"
#include "wrapped_memory.h"

#include "control/control.h"
#include "files/files.h"
#include "wire/wire.h"

#include <string.h>

#define MANY 1000

/* The nth allocation from now on fails. */
static void arm(unsigned long nth)
{
	until_failure = nth;
	armed = true;
}

static bool disarm(void)
{
	bool failed = armed && until_failure == 0;
	armed = false;
	return failed;
}

static void test_buffers(void **state)
{
	struct ww_job job = good_job();
	struct ww_input input = {.kind = WW_INPUT_JOB, .u.job = &job};
	unsigned long nth = 1;
	(void)state;
	for (bool failed = true; failed; nth++) {
		struct ww_buf buf = {0};
		arm(nth);
		ww_status status = ww_input_encode(&input, &buf);
		failed = disarm();
		assert_int_equal(status, failed ? WW_ERR_NOMEM : WW_OK);
		assert_int_equal(buf.failed, failed);
		ww_buf_finish(&buf);
	}
	assert_true(nth > 3 && nth < MANY);
}

static void test_configurations(void **state)
{
	struct ww_row rows[2];
	struct ww_node_config nodes[2];
	struct ww_config config = good_config(rows, nodes), out;
	struct ww_error err;
	struct ww_buf buf = {0};
	(void)state;
	ww_encode_config(&buf, &config);
	for (unsigned long nth = 1; nth <= 3; nth++) {
		struct ww_read read = {buf.bytes, buf.n, 0, false};
		arm(nth);
		ww_decode_config(&read, &out);
		assert_int_equal(disarm(), nth <= 2); /* rows, nodes */
		assert_int_equal(read.bad, nth <= 2);
		assert_int_equal(out.rows == NULL, nth <= 2);
	}
	ww_config_finish(&out);
	arm(1);
	assert_int_equal(ww_check_config(&config, &err), WW_ERR_NOMEM);
	assert_true(disarm());
	assert_string_equal(err.text, "out of memory");
	ww_buf_finish(&buf);
}

static void test_rooms_of_inputs(void **state)
{
	(void)state;
	arm(1);
	assert_null(ww_input_room_create());
	assert_true(disarm());
}

static void test_the_wire(void **state)
{
	static const struct ww_wire_faults doubling = {.double_frac = 1, .delay_most_us = 9};
	struct ww_sample sample = good_sample();
	struct ww_wire_message message = {.kind = WW_WIRE_SAMPLE, .node = 0, .u.sample = &sample};
	ww_wire *wire = NULL;
	struct ww_error err;
	(void)state;
	arm(1);
	assert_int_equal(ww_wire_create(1, &doubling, 1, &wire, &err), WW_ERR_NOMEM);
	assert_true(disarm());
	assert_null(wire);
	assert_int_equal(ww_wire_create(1, &doubling, 1, &wire, &err), WW_OK);
	unsigned refused = 0;
	for (unsigned i = 0; i < 3; i++) { /* the heap, the message, its double */
		arm(i + 1);
		refused += ww_wire_send(wire, &message, 0, &err) == WW_ERR_NOMEM;
		disarm();
	}
	assert_true(refused >= 2);
	assert_int_equal(ww_wire_send(wire, &message, 0, &err), WW_OK);
	struct ww_wire_message out;
	unsigned received = 0;
	for (; ww_wire_receive(wire, 9, &out); received++)
		assert_int_equal(out.u.sample->jobs[1].job, 72);
	assert_true(received >= 2);
	unsigned long before = n_allocations;
	for (unsigned i = 0; i < MANY; i++) { /* what was sent before is room enough */
		assert_int_equal(ww_wire_send(wire, &message, i, &err), WW_OK);
		while (ww_wire_receive(wire, i + 9, &out))
			continue;
	}
	assert_int_equal(n_allocations, before);
	ww_wire_destroy(wire);
}

static void test_journals(void **state)
{
	struct ww_buf buf = {0};
	struct ww_error err;
	struct ww_journal journal;
	struct ww_frame frame;
	(void)state;
	ww_journal_begin(&buf);
	size_t begin = ww_frame_begin(&buf, WW_FRAME_STATE);
	ww_buf_text(&buf, "a state");
	ww_frame_end(&buf, begin);
	FILE *in = fmemopen(buf.bytes, buf.n, "r");
	assert_int_equal(ww_journal_open(in, "j", &journal, &err), WW_OK);
	arm(1);
	ww_status status = ww_journal_next(&journal, &frame, &err);
	assert_true(disarm());
	assert_int_equal(status, WW_ERR_NOMEM);
	assert_string_equal(err.text, "j: out of memory");
	ww_journal_finish(&journal);
	(void)fclose(in);
	ww_buf_finish(&buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_buffers),         cmocka_unit_test(test_configurations),
		cmocka_unit_test(test_rooms_of_inputs), cmocka_unit_test(test_the_wire),
		cmocka_unit_test(test_journals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
