/* SPDX-License-Identifier: Apache-2.0 */
/* The comparison the other tests stand on really fails where it should. */
#include "assert_near.h"

#include <string.h>

static void test_tells_close_doubles_apart(void **state)
{
	(void)state;
	assert_false(test_is_near(200.00001, 200.00002, 1e-9));
	assert_false(test_is_near(1500.0001, 1500.0002, 1e-9));
	assert_true(test_is_near(200.00001, 200.00001 + 5e-10, 1e-9));
	assert_true(test_is_near(-1.0, -1.5, 0.5));
	assert_near(200.00001, 200.00001, 0.0);
	assert_near_rel(1e6 + 1.0, 1e6, 1e-5);
}

static void test_nan_is_near_nothing(void **state)
{
	(void)state;
	assert_false(test_is_near(NAN, NAN, INFINITY));
	assert_false(test_is_near(1.0, NAN, 1.0));
	assert_false(test_is_near(NAN, 1.0, 1.0));
	assert_false(test_is_near(1.0, 1.0 + 1e-3, NAN));
	assert_nan(NAN);
}

static void test_infinities(void **state)
{
	(void)state;
	assert_true(test_is_near(INFINITY, INFINITY, 0.0));
	assert_false(test_is_near(INFINITY, -INFINITY, 1e300));
	assert_false(test_is_near(INFINITY, 1e300, 1e300));
}

/* The failing cases, run below as a group of their own: each must fail. */
static void fails_near(void **state)
{
	(void)state;
	assert_near(200.00001, 200.00002, 1e-9);
}

static void fails_near_nan(void **state)
{
	(void)state;
	assert_near(NAN, NAN, 1.0);
}

static void fails_nan(void **state)
{
	(void)state;
	assert_nan(0.0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tells_close_doubles_apart),
		cmocka_unit_test(test_nan_is_near_nothing),
		cmocka_unit_test(test_infinities),
	};
	const struct CMUnitTest failing[] = {
		cmocka_unit_test(fails_near),
		cmocka_unit_test(fails_near_nan),
		cmocka_unit_test(fails_nan),
	};

	if (argc > 1 && strcmp(argv[1], "failing") == 0)
		return cmocka_run_group_tests(failing, NULL, NULL) == 3 ? 0 : 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
