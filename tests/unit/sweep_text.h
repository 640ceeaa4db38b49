/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a sweep from a text in a test. */
#ifndef WW_TESTS_SWEEP_TEXT_H
#define WW_TESTS_SWEEP_TEXT_H

#include "files/files.h"

#include <string.h>

#define OWN "group,cap_w,power_w,throughput_tps\n"
#define ROW "a,300,290,10\n"
#define ZEUS "dataset,network,batch_size,optimizer,power_limit,time_per_epoch,average_power\n"

/* A text with its size, so that NUL bytes can stand in it. */
#define TEXT(t) t, sizeof(t) - 1

TEST_UNUSED static ww_status parse(const char *text, size_t size, const char *map, struct ww_sweep *sweep,
                                   struct ww_error *err)
{
	FILE *in = fmemopen((void *)text, size, "r");
	assert_non_null(in);
	ww_status status = ww_sweep_parse(in, "t.csv", map, sweep, err);
	assert_int_equal(fclose(in), 0);
	return status;
}

TEST_UNUSED static void check_one_line(const char *text)
{
	assert_true(strlen(text) > 10);
	for (; *text; text++)
		assert_false((unsigned char)*text < 0x20 || *text == 0x7F);
}

#endif
