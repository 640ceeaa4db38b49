/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static size_t digits(const char *text, size_t length)
{
	size_t n = 0;
	while (n < length && is_digit(text[n]))
		n++;
	return n;
}

static size_t sign(const char *text, size_t length)
{
	return length > 0 && (text[0] == '+' || text[0] == '-');
}

/* True when the whole text is [sign] digits [. digits] [e [sign] digits], with a digit before the exponent. */
static bool is_decimal(const char *text, size_t length)
{
	size_t i = sign(text, length);
	size_t whole = digits(text + i, length - i), part = 0;

	i += whole;
	if (i < length && text[i] == '.') {
		part = digits(text + i + 1, length - i - 1);
		i += 1 + part;
	}
	if (whole + part == 0)
		return false;
	if (i < length && (text[i] == 'e' || text[i] == 'E')) {
		i++;
		i += sign(text + i, length - i);
		size_t power = digits(text + i, length - i);
		if (power == 0)
			return false;
		i += power;
	}
	return i == length;
}

static bool is_word(const char *text, size_t length, const char *word)
{
	return length == strlen(word) && strncasecmp(text, word, length) == 0;
}

static enum ww_number_fault name_fault(const char *text, size_t length)
{
	size_t s = sign(text, length), commas = 0, others = 0, figures = 0;
	if (is_word(text + s, length - s, "nan") || is_word(text + s, length - s, "inf") ||
	    is_word(text + s, length - s, "infinity"))
		return WW_NUMBER_NOT_FINITE;
	for (size_t i = s; i < length; i++) {
		commas += text[i] == ',';
		figures += is_digit(text[i]) != 0;
		others += !is_digit(text[i]) && text[i] != ',' && text[i] != '.';
	}
	return commas > 0 && figures > 0 && others == 0 ? WW_NUMBER_DECIMAL_COMMA : WW_NUMBER_NOT_A_NUMBER;
}

enum ww_number_fault ww_number_read(const char *text, size_t length, double *out)
{
	char copy[1024]; /* strtod needs an end; printf("%f") of the largest double is 317 long */

	while (length > 0 && (text[0] == ' ' || text[0] == '\t'))
		text++, length--;
	while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\t'))
		length--;
	if (length == 0)
		return WW_NUMBER_EMPTY;
	if (length >= sizeof copy || !is_decimal(text, length))
		return name_fault(text, length);
	memcpy(copy, text, length);
	copy[length] = '\0';

	locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* static in the C library: no allocation */
	if (!c)
		return WW_NUMBER_NOT_A_NUMBER;
	double value = strtod_l(copy, NULL, c);
	freelocale(c);
	if (!isfinite(value))
		return WW_NUMBER_NOT_FINITE;
	*out = value;
	return WW_NUMBER_OK;
}

const char *ww_number_fault_text(enum ww_number_fault fault)
{
	switch (fault) {
	case WW_NUMBER_OK:
		return "is a number";
	case WW_NUMBER_EMPTY:
		return "is empty; write a number";
	case WW_NUMBER_NOT_A_NUMBER:
		return "is not a number; write digits only, without a unit, like 300 or 1.5e3";
	case WW_NUMBER_DECIMAL_COMMA:
		return "has a comma; write a decimal point and no thousands separator, like 1234.5";
	case WW_NUMBER_NOT_FINITE:
		return "is not a finite number; write the measured value or remove the row";
	}
	return "is not a number";
}
