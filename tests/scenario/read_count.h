/* SPDX-License-Identifier: Apache-2.0 */
/* A whole number of 0 or more from a command line, with nothing before or behind it. */
#ifndef WW_TESTS_READ_COUNT_H
#define WW_TESTS_READ_COUNT_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

static inline bool read_count(const char *text, uint64_t *out)
{
	char *end;
	errno = 0;
	*out = strtoull(text, &end, 10);
	return !errno && *text >= '0' && *text <= '9' && !*end;
}

#endif
