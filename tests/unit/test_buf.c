/* SPDX-License-Identifier: Apache-2.0 */
#include "assert_near.h"

#include "base/base.h"

#include <string.h>

static void test_the_bytes_are_little_endian(void **state)
{
	static const uint8_t expected[] = {7,    0x78, 0x56, 0x34, 0x12, 0xEF, 0xCD, 0xAB, 0x89, 0x67, 0x45,
	                                   0x23, 0x01, 0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0,
	                                   0,    0x80, 0x3F, 0,    0,    0,    0,    0,    0,    0xF0, 0xBF,
	                                   2,    0,    0,    0,    'h',  'i',  1,    2,    3};
	struct ww_buf buf = {0};
	(void)state;
	ww_buf_u8(&buf, 7);
	ww_buf_u32(&buf, 0x12345678);
	ww_buf_u64(&buf, 0x0123456789ABCDEF);
	ww_buf_i64(&buf, -2);
	ww_buf_f32(&buf, 1.0F);
	ww_buf_f64(&buf, -1.0);
	ww_buf_text(&buf, "hi");
	ww_buf_bytes(&buf, "\1\2\3", 3);
	ww_buf_bytes(&buf, NULL, 0);
	assert_false(buf.failed);
	assert_int_equal(buf.n, sizeof expected);
	assert_memory_equal(buf.bytes, expected, sizeof expected);
	ww_buf_finish(&buf);
	assert_null(buf.bytes);
}

static void test_what_was_written_is_read(void **state)
{
	struct ww_buf buf = {0};
	char text[6], three[3];
	(void)state;
	ww_buf_u8(&buf, 255);
	ww_buf_u32(&buf, UINT32_MAX);
	ww_buf_u64(&buf, UINT64_MAX - 1);
	ww_buf_i64(&buf, INT64_MIN);
	ww_buf_f32(&buf, -0.0F);
	ww_buf_f64(&buf, INFINITY);
	ww_buf_text(&buf, "fives");
	ww_buf_text(&buf, "");
	ww_buf_bytes(&buf, "abc", 3);
	struct ww_read read = {buf.bytes, buf.n, 0, false};
	assert_int_equal(ww_read_u8(&read), 255);
	assert_true(ww_read_u32(&read) == UINT32_MAX);
	assert_true(ww_read_u64(&read) == UINT64_MAX - 1);
	assert_true(ww_read_i64(&read) == INT64_MIN);
	assert_true(signbit(ww_read_f32(&read)));
	assert_true(ww_read_f64(&read) == INFINITY);
	ww_read_text(&read, text, sizeof text);
	assert_string_equal(text, "fives");
	ww_read_text(&read, text, sizeof text);
	assert_string_equal(text, "");
	ww_read_bytes(&read, three, 3);
	assert_memory_equal(three, "abc", 3);
	assert_false(read.bad);
	assert_int_equal(read.at, read.n);
	ww_buf_finish(&buf);
}

static void test_a_nan_keeps_its_bits(void **state)
{
	static const uint8_t bits[] = {0x34, 0x12, 0xC0, 0xFF, 0x67, 0x45, 0x23, 0x01, 0, 0, 0xF8, 0x7F};
	struct ww_read read = {bits, sizeof bits, 0, false};
	struct ww_buf buf = {0};
	(void)state;
	float f = ww_read_f32(&read);
	double d = ww_read_f64(&read);
	assert_nan(f);
	assert_nan(d);
	ww_buf_f32(&buf, f);
	ww_buf_f64(&buf, d);
	assert_int_equal(buf.n, sizeof bits);
	assert_memory_equal(buf.bytes, bits, sizeof bits);
	ww_buf_finish(&buf);
}

static void test_after_the_end_everything_is_zero(void **state)
{
	static const uint8_t bytes[] = {1, 2, 3, 4, 5};
	struct ww_read read = {bytes, sizeof bytes, 0, false};
	char text[4] = "???", one[1] = {9};
	(void)state;
	assert_true(ww_read_u64(&read) == 0);
	assert_true(read.bad);
	assert_int_equal(ww_read_u8(&read), 0);
	assert_near(ww_read_f32(&read), 0, 0);
	ww_read_text(&read, text, sizeof text);
	assert_string_equal(text, "");
	ww_read_bytes(&read, one, 1);
	assert_int_equal(one[0], 0);
	assert_int_equal(ww_read_count(&read, 9, 0), 0);
}

static bool text_is_bad(const char *bytes, size_t n, size_t size)
{
	char to[8];
	struct ww_buf buf = {0};
	ww_buf_u32(&buf, (uint32_t)n);
	ww_buf_bytes(&buf, bytes, n);
	struct ww_read read = {buf.bytes, buf.n, 0, false};
	memset(to, '#', sizeof to);
	ww_read_text(&read, to, size);
	assert_non_null(memchr(to, '\0', size));
	assert_true(read.bad || strlen(to) == n);
	ww_buf_finish(&buf);
	return read.bad;
}

static void test_texts_that_do_not_fit_or_hold_a_nul_are_bad(void **state)
{
	(void)state;
	assert_false(text_is_bad("abcdefg", 7, 8));
	assert_true(text_is_bad("abcdefgh", 8, 8));
	assert_true(text_is_bad("ab\0d", 4, 8));
	assert_true(text_is_bad("a", 1, 1));
	assert_false(text_is_bad("", 0, 1));
}

static uint32_t count(uint32_t n, size_t bytes_behind, uint32_t most, size_t least, bool *bad)
{
	struct ww_buf buf = {0};
	ww_buf_u32(&buf, n);
	for (size_t i = 0; i < bytes_behind; i++)
		ww_buf_u8(&buf, 0);
	struct ww_read read = {buf.bytes, buf.n, 0, false};
	uint32_t got = ww_read_count(&read, most, least);
	*bad = read.bad;
	ww_buf_finish(&buf);
	return got;
}

static void test_a_count_that_cannot_be_is_bad(void **state)
{
	bool bad;
	(void)state;
	assert_int_equal(count(3, 12, 3, 4, &bad), 3);
	assert_false(bad);
	assert_int_equal(count(0, 0, 3, 4, &bad), 0);
	assert_false(bad);
	assert_int_equal(count(4, 16, 3, 4, &bad), 0);
	assert_true(bad);
	assert_int_equal(count(3, 11, 3, 4, &bad), 0);
	assert_true(bad);
	assert_int_equal(count(UINT32_MAX, 8, UINT32_MAX, SIZE_MAX, &bad), 0);
	assert_true(bad);
}

static void test_it_grows_and_is_used_again(void **state)
{
	struct ww_buf buf = {0};
	(void)state;
	for (uint32_t i = 0; i < 100000; i++)
		ww_buf_u32(&buf, i);
	assert_int_equal(buf.n, 400000);
	struct ww_read read = {buf.bytes, buf.n, 0, false};
	for (uint32_t i = 0; i < 100000; i++)
		assert_int_equal(ww_read_u32(&read), i);
	size_t room = buf.room;
	ww_buf_clear(&buf);
	ww_buf_u8(&buf, 1);
	assert_int_equal(buf.n, 1);
	assert_int_equal(buf.room, room);
	ww_buf_finish(&buf);
}

static void test_nothing_written_to_and_read_from_nothing(void **state)
{
	struct ww_buf buf = {0};
	struct ww_read read = {NULL, 0, 0, false};
	char none[1] = {7};
	(void)state;
	ww_buf_bytes(&buf, none, 0);
	assert_int_equal(buf.n, 0);
	assert_false(buf.failed);
	ww_read_bytes(&read, none, 0);
	assert_false(read.bad);
	assert_int_equal(none[0], 7);
	assert_int_equal(ww_read_u8(&read), 0);
	assert_true(read.bad);
}

static void test_a_lack_of_memory_is_kept_in_mind(void **state)
{
	struct ww_buf buf = {0};
	(void)state;
	ww_buf_bytes(&buf, "", SIZE_MAX / 2 + 1);
	assert_true(buf.failed);
	ww_buf_u8(&buf, 1);
	assert_true(buf.failed);
	assert_int_equal(buf.n, 0);
	ww_buf_clear(&buf);
	assert_false(buf.failed);
	ww_buf_finish(&buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_bytes_are_little_endian),
		cmocka_unit_test(test_what_was_written_is_read),
		cmocka_unit_test(test_a_nan_keeps_its_bits),
		cmocka_unit_test(test_after_the_end_everything_is_zero),
		cmocka_unit_test(test_texts_that_do_not_fit_or_hold_a_nul_are_bad),
		cmocka_unit_test(test_a_count_that_cannot_be_is_bad),
		cmocka_unit_test(test_it_grows_and_is_used_again),
		cmocka_unit_test(test_nothing_written_to_and_read_from_nothing),
		cmocka_unit_test(test_a_lack_of_memory_is_kept_in_mind),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
