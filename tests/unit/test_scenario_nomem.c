/* SPDX-License-Identifier: Apache-2.0 */
/* The N-th allocation of the scenario reader fails, for every N, also inside libyaml where it is linked statically: a clean
 * WW_ERR_NOMEM, nothing lost, nothing broken. */
#include "assert_near.h"
#include "files/files.h"
#include "wrapped_memory.h"

#include <string.h>

char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);

char *__wrap_strdup(const char *text)
{
	return fails_now() ? NULL : __real_strdup(text);
}

/* Returns the number of allocations that a successful read takes. */
static unsigned long fail_each(const char *text, ww_status expected)
{
	for (unsigned long n = 1;; n++) {
		struct ww_scenario scenario, untouched;
		struct ww_error err = {WW_OK, ""};
		FILE *in = fmemopen((void *)text, strlen(text), "r");
		assert_non_null(in);
		memset(&scenario, 0xA5, sizeof scenario);
		memset(&untouched, 0xA5, sizeof untouched);
		until_failure = n;
		armed = true;
		ww_status status = ww_scenario_parse(in, "t.yaml", &scenario, &err);
		armed = false;
		assert_int_equal(fclose(in), 0);
		if (status == expected) {
			assert_true(until_failure > 0);
			if (status == WW_OK)
				ww_scenario_finish(&scenario);
			return n - 1;
		}
		if (status != WW_ERR_NOMEM)
			fail_msg("allocation %lu: %s", n, err.text);
		assert_string_equal(err.text, "t.yaml: out of memory");
		assert_memory_equal(&scenario, &untouched, sizeof scenario);
		assert_true(n < 100000);
	}
}

#define PLANT                                                                                                          \
	"name: t\nduration: 1 h\nrows: [{name: a, meter: yes}, {name: b, on: a}]\n"                                    \
	"nodes: [{name: n, count: 5, gpus: 8, on: b, host: 1 kW}]\n"

static void good_file_survives(void **state)
{
	(void)state;
	assert_true(
		fail_each(PLANT
	                  "jobs: [{name: j, count: 5, family: moe-lora, gpus: 4}, {name: k, sweep: s.csv, gpus: 9}]\n"
	                  "events: [{name: e, start: 1 s, cut: 30%, changes: [{at: 2 s, cancel: yes}]}]\n"
	                  "faults: [{at: 1 s, what: reboot, node: n-1, for: 60 s}]\n",
	                  WW_OK) > 60);
}

static void mistakes_survive(void **state)
{
	(void)state;
	assert_true(fail_each("name: t\nduration: 1 h\nrows: [{name: a, on: a}]\nnodes: [{}]\njobs: [{}]\n",
	                      WW_ERR_INVALID) > 5);
	assert_true(fail_each(PLANT "jobs: [{name: j, family: moe-lora, gpus: 99}]\n", WW_ERR_INVALID) > 30);
	assert_true(fail_each(PLANT "jobs: [{name: j, family: moe-lora, gpus: 9}]\n"
	                            "events: [{name: e, start: 1 s, cut: 30%}, {name: e, start: 1 s, cut: 30%}]\n",
	                      WW_ERR_INVALID) > 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_file_survives),
		cmocka_unit_test(mistakes_survive),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
