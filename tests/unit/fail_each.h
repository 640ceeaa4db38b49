/* SPDX-License-Identifier: Apache-2.0 */
/* For each reader of YAML: its N-th allocation fails, for every N, also inside libyaml where it is linked statically: a
 * clean WW_ERR_NOMEM, nothing lost, nothing broken. */
#ifndef FAIL_EACH_H
#define FAIL_EACH_H

#include "assert_near.h"
#include "files/files.h"
#include "wrapped_memory.h"

#include <string.h>

#define READ_BYTES_MAX 4096

struct reader {
	ww_status (*parse)(FILE *in, void *out, struct ww_error *err); /* of "t.yaml" */
	void (*finish)(void *out);
	size_t size; /* of what it reads into */
};

char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);

char *__wrap_strdup(const char *text)
{
	return fails_now() ? NULL : __real_strdup(text);
}

/* Returns the number of allocations that a successful read takes. */
static unsigned long fail_each(const struct reader *reader, const char *text, ww_status expected)
{
	for (unsigned long n = 1;; n++) {
		_Alignas(max_align_t) char out[READ_BYTES_MAX], untouched[READ_BYTES_MAX];
		struct ww_error err = {WW_OK, ""};
		FILE *in = fmemopen((void *)text, strlen(text), "r");
		assert_non_null(in);
		assert_true(reader->size <= sizeof out);
		memset(out, 0xA5, sizeof out);
		memset(untouched, 0xA5, sizeof untouched);
		until_failure = n;
		armed = true;
		ww_status status = reader->parse(in, out, &err);
		armed = false;
		assert_int_equal(fclose(in), 0);
		if (status == expected) {
			assert_true(until_failure > 0);
			if (status == WW_OK)
				reader->finish(out);
			return n - 1;
		}
		if (status != WW_ERR_NOMEM)
			fail_msg("allocation %lu: %s", n, err.text);
		assert_string_equal(err.text, "t.yaml: out of memory");
		assert_memory_equal(out, untouched, sizeof out);
		assert_true(n < 100000);
	}
}

#endif
