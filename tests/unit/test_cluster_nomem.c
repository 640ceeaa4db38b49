/* SPDX-License-Identifier: Apache-2.0 */
/* Memory runs out in the cluster reader. */
#include "fail_each.h"

static ww_status parse(FILE *in, void *out, struct ww_error *err)
{
	return ww_cluster_parse(in, "t.yaml", out, err);
}

static void finish(void *out)
{
	ww_cluster_finish(out);
}

static const struct reader reader = {parse, finish, sizeof(struct ww_cluster)};

static void good_file_survives(void **state)
{
	static char text[16384];
	size_t used = (size_t)snprintf(text, sizeof text, "rows:\n  - {name: site, limit: 9 MW}\n");
	(void)state;
	for (int i = 0; i < 40; i++)
		used += (size_t)snprintf(text + used, sizeof text - used,
		                         "  - {name: r%d, limit: 90 kW, fixed: %d kW%s}\n", i, i ? 1 : 30,
		                         i ? ", on: [{row: r0, part: 50%}, {row: site, part: 50%}]" : ", on: site");
	used += (size_t)snprintf(text + used, sizeof text - used, "jobs:\n");
	for (int i = 0; i < 40; i++)
		used += (size_t)snprintf(text + used, sizeof text - used,
		                         "  - {job: j%d, gpus: 8, on: [{row: r%d, gpus: 4}, {row: r0, gpus: 4}]}\n", i,
		                         1 + i % 39);
	assert_true(used < sizeof text - 1);
	assert_true(fail_each(&reader, text, WW_OK) > 200);
}

static void mistakes_survive(void **state)
{
	(void)state;
	assert_true(fail_each(&reader, "rows:\n  - {name: r, limit: 9 kW, on: r}\njobs: [{job: a, gpus: 8, on: r}]\n",
	                      WW_ERR_INVALID) > 5);
	assert_true(fail_each(&reader, "jobs: [{job: a, gpus: 8, on: [r}]\n", WW_ERR_INVALID) > 1);
	assert_true(fail_each(&reader, "jobs: &x [*x, !y z]\n", WW_ERR_INVALID) > 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_file_survives),
		cmocka_unit_test(mistakes_survive),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
