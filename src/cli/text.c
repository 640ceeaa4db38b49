/* SPDX-License-Identifier: Apache-2.0 */
/* Text for people: the error line, cleaning of names that come from files, widths on a terminal. */
#include "cli/cli_internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct range {
	uint32_t lo, hi;
};

static const struct range no_width[] = {{0x300, 0x36f}, {0x1ab0, 0x1aff}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}};
static const struct range double_width[] = {{0x1100, 0x115f},   {0x2e80, 0xa4cf},  {0xac00, 0xd7a3}, {0xf900, 0xfaff},
                                            {0xfe30, 0xfe6f},   {0xff00, 0xff60},  {0xffe0, 0xffe6}, {0x1f300, 0x1f64f},
                                            {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};

#define IN(code, table) is_in(code, table, sizeof(table) / sizeof((table)[0]))

static bool is_in(uint32_t code, const struct range *ranges, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (code >= ranges[i].lo && code <= ranges[i].hi)
			return true;
	return false;
}

/* The code point in `n` bytes of valid UTF-8. */
static uint32_t decode(const char *text, size_t n)
{
	const unsigned char *s = (const unsigned char *)text;
	uint32_t code = n == 1 ? s[0] : s[0] & (0xffu >> (n + 1));
	for (size_t i = 1; i < n; i++)
		code = code << 6 | (s[i] & 0x3f);
	return code;
}

/* Columns of the character of n bytes; n is 0 where the text is not valid. */
static size_t width_of(const char *text, size_t n)
{
	uint32_t code = n ? decode(text, n) : '?';
	return IN(code, no_width) ? 0 : IN(code, double_width) ? 2 : 1;
}

void *ww_cli_alloc(size_t n, size_t size)
{
	void *memory = calloc(n ? n : 1, size);
	if (!memory) {
		fputs("wattweir: out of memory\n", stderr);
		exit(WW_EXIT_FAILED);
	}
	return memory;
}

size_t ww_text_width(const char *text)
{
	size_t width = 0, left = strlen(text);
	for (size_t n; left > 0 && (n = ww_utf8_char(text, left)) > 0; text += n, left -= n)
		width += width_of(text, n);
	return width;
}

/* One pass over `text`: '?' for what is not valid and, when `printable`, for what a terminal would obey. */
static char *replace(const char *text, bool printable)
{
	size_t left = strlen(text);
	char *out = ww_cli_alloc(left + 1, 1), *end = out;
	while (left > 0) {
		size_t n = ww_utf8_char(text, left);
		bool bad = n == 0 || (printable && ww_utf8_is_control(text, n));
		size_t taken = n ? n : 1;
		memcpy(end, bad ? "?" : text, bad ? 1 : taken);
		end += bad ? 1 : taken;
		text += taken;
		left -= taken;
	}
	*end = '\0';
	return out;
}

char *ww_text_utf8(const char *text)
{
	return replace(text, false);
}

/* What is cut off is at least four columns and so at least four bytes: the dots find room. */
static void shorten(char *text, size_t max_width)
{
	size_t width = 0, keep = 0, length = strlen(text);
	if (ww_text_width(text) <= max_width)
		return;
	for (size_t n; (n = ww_utf8_char(text + keep, length - keep)) > 0; keep += n) {
		width += width_of(text + keep, n);
		if (width + 3 > max_width)
			break;
	}
	memcpy(text + keep, "...", 4);
}

char *ww_text_clean(const char *text, size_t max_width)
{
	char *out = replace(text, true);
	shorten(out, max_width);
	return out;
}

void ww_complain(const char *who, const char *format, ...)
{
	char *text = NULL;
	va_list args;
	va_start(args, format);
	int length = vasprintf(&text, format, args);
	va_end(args);
	if (length < 0)
		text = NULL;
	char *line = ww_text_clean(text ? text : "out of memory", 2000);
	fprintf(stderr, "%s: %s\n", who, line);
	free(line);
	free(text);
}

char *ww_text_thousands(double value, char out[WW_TEXT_NUMBER])
{
	char digits[WW_TEXT_NUMBER];
	int n = snprintf(digits, sizeof(digits), "%.0f", fabs(value) < 1e18 ? fabs(value) : 1e18), at = 0;
	if (value < -0.5)
		out[at++] = '-';
	for (int i = 0; i < n; i++) {
		if (i > 0 && (n - i) % 3 == 0)
			out[at++] = ',';
		out[at++] = digits[i];
	}
	out[at] = '\0';
	return out;
}
