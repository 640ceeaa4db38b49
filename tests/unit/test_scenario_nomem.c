/* SPDX-License-Identifier: Apache-2.0 */
/* Memory runs out in the scenario reader. */
#include "fail_each.h"

static ww_status parse(FILE *in, void *out, struct ww_error *err)
{
	return ww_scenario_parse(in, "t.yaml", out, err);
}

static void finish(void *out)
{
	ww_scenario_finish(out);
}

static const struct reader reader = {parse, finish, sizeof(struct ww_scenario)};

#define PLANT                                                                                                          \
	"name: t\nduration: 1 h\nrows: [{name: a, meter: yes}, {name: b, on: a}]\n"                                    \
	"nodes: [{name: n, count: 5, gpus: 8, on: b, host: 1 kW}]\n"

static void good_file_survives(void **state)
{
	(void)state;
	assert_true(
		fail_each(&reader,
	                  PLANT
	                  "jobs: [{name: j, count: 5, family: moe-lora, gpus: 4}, {name: k, sweep: s.csv, gpus: 9}]\n"
	                  "events: [{name: e, start: 1 s, cut: 30%, changes: [{at: 2 s, cancel: yes}]}]\n"
	                  "faults: [{at: 1 s, what: reboot, node: n-1, for: 60 s}]\n",
	                  WW_OK) > 60);
}

static void mistakes_survive(void **state)
{
	(void)state;
	assert_true(fail_each(&reader, "name: t\nduration: 1 h\nrows: [{name: a, on: a}]\nnodes: [{}]\njobs: [{}]\n",
	                      WW_ERR_INVALID) > 5);
	assert_true(fail_each(&reader, PLANT "jobs: [{name: j, family: moe-lora, gpus: 99}]\n", WW_ERR_INVALID) > 30);
	assert_true(fail_each(&reader,
	                      PLANT "jobs: [{name: j, family: moe-lora, gpus: 9}]\n"
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
