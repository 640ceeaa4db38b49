/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every cmocka test includes, instead of cmocka.h itself: double-precision comparison and the shared data.
 *
 * cmocka's own assert_float_equal casts to float, for which 200.00001 and 200.00002 are the same; do not use it.
 */
#ifndef WW_TESTS_ASSERT_NEAR_H
#define WW_TESTS_ASSERT_NEAR_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define TEST_UNUSED __attribute__((unused))

/* |a - b| <= tol. Never true for a NAN on either side (use assert_nan); equal infinities are near. */
TEST_UNUSED static bool test_is_near(double a, double b, double tol)
{
	return a == b || fabs(a - b) <= tol;
}

TEST_UNUSED static void test_assert_near(double a, double b, double tol, const char *what_a, const char *what_b,
                                         const char *file, int line)
{
	if (test_is_near(a, b, tol))
		return;
	print_error("%s = %.17g, %s = %.17g, off by %.3g, allowed %.3g\n", what_a, a, what_b, b, fabs(a - b), tol);
	_fail(file, line);
}

TEST_UNUSED static void test_assert_nan(double a, const char *what, const char *file, int line)
{
	if (isnan(a))
		return;
	print_error("%s = %.17g, expected NAN\n", what, a);
	_fail(file, line);
}

/* Two doubles are within an absolute tolerance. */
#define assert_near(a, b, tol) test_assert_near((a), (b), (tol), #a, #b, __FILE__, __LINE__)

/* Two doubles are within a relative tolerance of the second, the expected one. */
#define assert_near_rel(a, b, rel) test_assert_near((a), (b), (rel)*fabs((double)(b)), #a, #b, __FILE__, __LINE__)

#define assert_nan(a) test_assert_nan((a), #a, __FILE__, __LINE__)

/*
 * Path of a file in the tree of measured data, which is not part of the repository: $WATTWEIR_DATA, else ../shared/data
 * beside the source root ($WATTWEIR_SOURCE, else the working directory). NULL when it is not there.
 * Static storage, valid until the next call.
 */
TEST_UNUSED static const char *data_path(const char *relative)
{
	static char path[4096];
	const char *data = getenv("WATTWEIR_DATA");
	const char *source = getenv("WATTWEIR_SOURCE");
	int n;

	if (data && *data)
		n = snprintf(path, sizeof path, "%s/%s", data, relative);
	else
		n = snprintf(path, sizeof path, "%s/../shared/data/%s", source && *source ? source : ".", relative);
	return n > 0 && (size_t)n < sizeof path && access(path, R_OK) == 0 ? path : NULL;
}

/* Path of a file of this repository, relative to the source root. Static storage, valid until the next call. */
TEST_UNUSED static const char *source_path(const char *relative)
{
	static char path[4096];
	const char *source = getenv("WATTWEIR_SOURCE");
	int n = snprintf(path, sizeof path, "%s/%s", source && *source ? source : ".", relative);

	return n > 0 && (size_t)n < sizeof path ? path : relative;
}

/* Skips the running case, with a clear line, when a file of the shared data is absent. */
#define skip_without_data(relative)                                                                                    \
	do {                                                                                                           \
		if (!data_path(relative)) {                                                                            \
			print_message("# skipped: no shared data file %s (set WATTWEIR_DATA)\n", (relative));          \
			skip();                                                                                        \
		}                                                                                                      \
	} while (0)

#endif
