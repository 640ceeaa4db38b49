/* SPDX-License-Identifier: Apache-2.0 */
/* What fuzz targets share: the entry point and promises that hold for every input. */
#ifndef WW_TESTS_FUZZ_H
#define WW_TESTS_FUZZ_H

#include "base/base.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void require(bool holds)
{
	if (!holds)
		abort();
}

/* Whole UTF-8 without anything invisible. */
static inline void check_text(const char *text)
{
	size_t left = strlen(text);
	while (left > 0) {
		size_t n = ww_utf8_char(text, left);
		require(n > 0 && !ww_utf8_is_control(text, n));
		text += n;
		left -= n;
	}
}

#endif
