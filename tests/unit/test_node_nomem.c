/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's brain asks for memory when it is created and never again. */
#include "node_rig.h"
#include "wrapped_memory.h"

static void test_create_without_memory(void **state)
{
	struct ww_node_options options = rig_options(4);
	unsigned long n = 0;
	ww_status status = WW_ERR_NOMEM;
	(void)state;
	while (status != WW_OK) {
		struct ww_error err = {WW_OK, ""};
		ww_node *node = NULL;
		until_failure = ++n;
		armed = true;
		status = ww_node_create(&options, NULL, 0, &node, &err);
		armed = false;
		assert_true(status == WW_OK || (status == WW_ERR_NOMEM && !node && strstr(err.text, "memory")));
		ww_node_destroy(node);
	}
	assert_true(n > 1);
}

/* Everything that a node of the largest size does, with the longest schedules, in fair weather and foul. */
static void test_steps_allocate_nothing(void **state)
{
	struct rig *rig = rig_create(WW_NODE_GPUS_MAX);
	unsigned long before = n_allocations;
	size_t longest = 0;
	(void)state;
	for (int i = 0; i < 50; i++) {
		struct ww_command c = rig_command(rig, 1, (uint64_t)i + 1, 400 + (float)i);
		for (uint32_t k = 1; k < WW_STEPS_MAX; k++)
			add_step(&c, (int64_t)k * SECOND, 600 - 30 * (float)k);
		c.after = WW_AFTER_FAILCAP;
		rig->disk_fails = i % 7 == 3;
		rig->deaf[0] = i % 5 == 2;
		rig_obey(rig, &c);
		longest = rig->disk_n > longest ? rig->disk_n : longest;
		rig->limit_w[1] = i % 3 == 0 ? 690 : 210;
		rig_run(rig, rig->now_us + (i % 10 == 9 ? 40 : 5) * SECOND);
	}
	rig_release(rig, true);
	assert_int_equal(n_allocations, before);
	assert_true(rig->n_done > 20 && rig->journals > 100);
	assert_true(longest > 1000 && longest <= 4096); /* the room that is kept for it */
	rig_destroy(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_create_without_memory),
		cmocka_unit_test(test_steps_allocate_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
