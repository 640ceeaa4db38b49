/* SPDX-License-Identifier: Apache-2.0 */
/* The N-th allocation of the sweep reader fails, for every N: a clean WW_ERR_NOMEM, nothing lost, nothing broken. */
#include "assert_near.h"
#include "files/files.h"
#include "wrapped_memory.h"

#include <string.h>

/* 40 groups, so that indexes and arrays grow more than once. */
static size_t make_sweep(char *text, size_t size)
{
	size_t used = (size_t)snprintf(text, size,
	                               "# wattweir sweep 1\n"
	                               "group,cap_w,rep,power_w,throughput_tps,gpus,gpu_model,sm_clock_mhz,memory_c\n");
	for (int g = 0; g < 40; g++)
		for (int c = 0; c < 3; c++)
			used += (size_t)snprintf(text + used, size - used, "job%d,%d,1,%d,10,8,A100,%d,\n", g,
			                         200 + 100 * c, 190 + 100 * c, 900 + c);
	return used;
}

/* Returns the number of allocations that a successful read takes. */
static unsigned long fail_each(const char *text, size_t size, const char *map)
{
	for (unsigned long n = 1;; n++) {
		struct ww_sweep sweep, untouched;
		struct ww_error err = {WW_OK, ""};
		FILE *in = fmemopen((void *)text, size, "r");
		assert_non_null(in);
		memset(&sweep, 0xA5, sizeof sweep);
		memset(&untouched, 0xA5, sizeof untouched);
		until_failure = n;
		armed = true;
		ww_status status = ww_sweep_parse(in, "t.csv", map, &sweep, &err);
		armed = false;
		assert_int_equal(fclose(in), 0);
		if (status == WW_OK) {
			assert_true(until_failure > 0);
			ww_sweep_finish(&sweep);
			return n - 1;
		}
		assert_int_equal(status, WW_ERR_NOMEM);
		assert_non_null(strstr(err.text, "out of memory"));
		assert_memory_equal(&sweep, &untouched, sizeof sweep);
		assert_true(n < 100000);
	}
}

static void own_format_survives(void **state)
{
	static char text[16384];
	size_t size = make_sweep(text, sizeof text);
	(void)state;
	assert_true(size < sizeof text - 1);
	assert_true(fail_each(text, size, NULL) > 200);
}

static void mapped_format_survives(void **state)
{
	static const char text[] = "model,gpu,cap,p,t\na,x,100,90,2\na,y,100,90,3\nb,x,100,90,4\n";
	(void)state;
	assert_true(fail_each(text, sizeof text - 1, "throughput=1/t,power=p,cap=cap,group=model+gpu") > 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_format_survives),
		cmocka_unit_test(mapped_format_survives),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
