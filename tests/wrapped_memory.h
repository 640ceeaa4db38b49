/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's own allocations, counted and made to fail: for programs linked with
 * -Wl,--wrap=malloc, --wrap=calloc and --wrap=realloc. Included by one file of a program.
 */
#ifndef WW_TESTS_WRAPPED_MEMORY_H
#define WW_TESTS_WRAPPED_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);

static unsigned long n_allocations; /* so far, also those that failed */
static bool armed;                  /* while set, the allocation that counts until_failure down to 0 fails */
static unsigned long until_failure;

static bool fails_now(void)
{
	n_allocations++;
	return armed && --until_failure == 0;
}

void *__wrap_malloc(size_t size)
{
	return fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails_now() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return fails_now() ? NULL : __real_realloc(old, size);
}

#endif
