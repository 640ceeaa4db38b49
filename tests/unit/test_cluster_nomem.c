/* SPDX-License-Identifier: Apache-2.0 */
/* The N-th allocation of the cluster reader fails, for every N, also inside libyaml where it is linked statically: a clean
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
		struct ww_cluster cluster, untouched;
		struct ww_error err = {WW_OK, ""};
		FILE *in = fmemopen((void *)text, strlen(text), "r");
		assert_non_null(in);
		memset(&cluster, 0xA5, sizeof cluster);
		memset(&untouched, 0xA5, sizeof untouched);
		until_failure = n;
		armed = true;
		ww_status status = ww_cluster_parse(in, "t.yaml", &cluster, &err);
		armed = false;
		assert_int_equal(fclose(in), 0);
		if (status == expected) {
			assert_true(until_failure > 0);
			if (status == WW_OK)
				ww_cluster_finish(&cluster);
			return n - 1;
		}
		if (status != WW_ERR_NOMEM)
			fail_msg("allocation %lu: %s", n, err.text);
		assert_string_equal(err.text, "t.yaml: out of memory");
		assert_memory_equal(&cluster, &untouched, sizeof cluster);
		assert_true(n < 100000);
	}
}

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
	assert_true(fail_each(text, WW_OK) > 200);
}

static void mistakes_survive(void **state)
{
	(void)state;
	assert_true(fail_each("rows:\n  - {name: r, limit: 9 kW, on: r}\njobs: [{job: a, gpus: 8, on: r}]\n",
	                      WW_ERR_INVALID) > 5);
	assert_true(fail_each("jobs: [{job: a, gpus: 8, on: [r}]\n", WW_ERR_INVALID) > 1);
	assert_true(fail_each("jobs: &x [*x, !y z]\n", WW_ERR_INVALID) > 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_file_survives),
		cmocka_unit_test(mistakes_survive),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
