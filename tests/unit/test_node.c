/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's brain: which commands it obeys, and what it writes before what. */
#include "node_rig.h"

static void test_start(void **state)
{
	struct rig *rig = rig_create(2);
	(void)state;
	assert_int_equal(rig->journals, 1);
	assert_int_equal(rig->hellos, 1);
	assert_int_equal(rig->samples, 1);
	assert_int_equal(rig->writes, 0);
	assert_int_equal(rig->sample.n_gpus, 2);
	assert_near(rig->sample.gpus[1].enforced_w.value, 650, 0);
	assert_near(rig->sample.gpus[1].draw_w.value, 600, 0);
	assert_nan(rig->sample.gpus[1].target_w);
	assert_nan(rig->sample.gpus[1].requested_w);
	assert_int_equal(rig->sample.gpus[1].managed, 1);
	assert_int_equal(rig->hello.limits[1].uuid, 501);
	assert_nan(rig->hello.limits[1].recorded_w);
	rig_run(rig, 103 * SECOND);
	assert_int_equal(rig->samples, 4);
	assert_int_equal(rig->hellos, 4);
	rig_cap(rig, 1, 1, 400);
	rig_run(rig, 105 * SECOND);
	assert_int_equal(rig->samples, 6);
	assert_int_equal(rig->hellos, 4);
	rig_destroy(rig);
}

static void test_obeys(void **state)
{
	struct rig *rig = rig_create(2);
	(void)state;
	rig_cap(rig, 1, 1, 400);
	assert_int_equal(rig->acks, 1);
	assert_int_equal(rig->journals, 2);
	assert_int_equal(rig->writes, 2);
	assert_near(rig->limit_w[0], 400, 0);
	assert_near(rig->done.gpus[1].enforced_w.value, 400, 0);
	assert_near(rig->done.gpus[1].requested_w, 400, 0);
	assert_near(rig->done.gpus[1].target_w, 400, 0);
	assert_int_equal(rig->done.from.seen.epoch, 1);
	assert_int_equal(rig->done.from.seen.seq, 1);
	rig_destroy(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_start),
		cmocka_unit_test(test_obeys),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
