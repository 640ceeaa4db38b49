/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool is_tail(unsigned char byte)
{
	return (byte & 0xC0) == 0x80;
}

size_t ww_utf8_char(const char *text, size_t length)
{
	const unsigned char *b = (const unsigned char *)text;
	if (length == 0)
		return 0;
	if (b[0] < 0x80)
		return 1;
	if (length >= 2 && b[0] >= 0xC2 && b[0] <= 0xDF && is_tail(b[1]))
		return 2;
	if (length >= 3 && (b[0] & 0xF0) == 0xE0 && is_tail(b[1]) && is_tail(b[2])) {
		bool overlong = b[0] == 0xE0 && b[1] < 0xA0;
		bool surrogate = b[0] == 0xED && b[1] > 0x9F;
		return overlong || surrogate ? 0 : 3;
	}
	if (length >= 4 && b[0] >= 0xF0 && b[0] <= 0xF4 && is_tail(b[1]) && is_tail(b[2]) && is_tail(b[3])) {
		bool overlong = b[0] == 0xF0 && b[1] < 0x90;
		bool beyond = b[0] == 0xF4 && b[1] > 0x8F;
		return overlong || beyond ? 0 : 4;
	}
	return 0;
}

/* The code point of one whole character. */
static uint32_t code_point(const unsigned char *b, size_t length)
{
	uint32_t code = length == 1 ? b[0] : b[0] & (0x7Fu >> length);
	for (size_t i = 1; i < length; i++)
		code = code << 6 | (b[i] & 0x3Fu);
	return code;
}

bool ww_utf8_is_control(const char *text, size_t length)
{
	static const uint32_t ranges[][2] = {
		{0x00, 0x1F},     {0x7F, 0x9F},     {0xAD, 0xAD},     {0x61C, 0x61C},
		{0x180E, 0x180E}, {0x200B, 0x200F}, {0x2028, 0x202E}, {0x2060, 0x206F},
		{0xFEFF, 0xFEFF}, {0xFFF0, 0xFFFB}, {0xFFFE, 0xFFFF}, {0xE0000, 0xE0FFF},
	};
	uint32_t code = code_point((const unsigned char *)text, length);
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (code >= ranges[i][0] && code <= ranges[i][1])
			return true;
	return false;
}

/* Copies `from` into `to` of `size` bytes, never more than it had and never a broken character. */
static void copy_line(char *to, size_t size, const char *from)
{
	size_t left = strlen(from), used = 0;
	while (left > 0) {
		size_t n = ww_utf8_char(from, left);
		bool bad = n == 0 || ww_utf8_is_control(from, n);
		size_t put = bad ? 1 : n;
		if (used + put >= size)
			break;
		if (bad)
			to[used] = '?';
		else
			memcpy(to + used, from, n);
		used += put;
		from += n ? n : 1;
		left -= n ? n : 1;
	}
	to[used] = '\0';
}

ww_status ww_fail(struct ww_error *err, ww_status code, const char *format, ...)
{
	/* Longer than the error, so that a character cut by vsnprintf lies behind what is kept. */
	char text[sizeof err->text + 8];
	va_list args;

	if (!err)
		return code;
	va_start(args, format);
	if (vsnprintf(text, sizeof text, format, args) < 0)
		memcpy(text, "error without text", sizeof "error without text");
	va_end(args);
	err->code = code;
	copy_line(err->text, sizeof err->text, text);
	return code;
}
