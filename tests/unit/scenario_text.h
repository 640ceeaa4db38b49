/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a scenario from a text in a test. */
#ifndef WW_TESTS_SCENARIO_TEXT_H
#define WW_TESTS_SCENARIO_TEXT_H

#include "files/files.h"

#include <string.h>

/* The least that a scenario says: lines 1 and 2, then a line each. */
#define HEAD "name: t\nduration: 1 h\n"
#define ROWS "rows: [{name: site, meter: yes}]\n"
#define NODES "nodes: [{name: n, gpus: 8, on: site, host: 1 kW}]\n"
#define JOBS "jobs: [{name: j, family: moe-lora, gpus: 4}]\n"
#define LEAST HEAD ROWS NODES JOBS

TEST_UNUSED static ww_status parse(const char *text, size_t size, struct ww_scenario *scenario, struct ww_error *err)
{
	FILE *in = fmemopen((void *)text, size, "r");
	assert_non_null(in);
	ww_status status = ww_scenario_parse(in, "t.yaml", scenario, err);
	assert_int_equal(fclose(in), 0);
	return status;
}

TEST_UNUSED static struct ww_scenario read_good(const char *text)
{
	struct ww_scenario scenario;
	struct ww_error err;
	if (parse(text, strlen(text), &scenario, &err) != WW_OK)
		fail_msg("%s", err.text);
	assert_string_equal(scenario.file, "t.yaml");
	return scenario;
}

#endif
