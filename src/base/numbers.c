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

/* nan, inf and infinity, as C writes them, and with the dot of YAML. */
static bool is_not_finite(const char *text, size_t length)
{
	size_t s = sign(text, length);
	s += s < length && text[s] == '.';
	return is_word(text + s, length - s, "nan") || is_word(text + s, length - s, "inf") ||
	       is_word(text + s, length - s, "infinity");
}

static enum ww_number_fault name_fault(const char *text, size_t length)
{
	size_t s = sign(text, length), commas = 0, points = 0, gaps = 0, figures = 0;
	if (is_not_finite(text, length))
		return WW_NUMBER_NOT_FINITE;
	for (size_t i = s; i < length; i++) {
		commas += text[i] == ',';
		points += text[i] == '.';
		gaps += text[i] == ' ' || text[i] == '\'';
		figures += is_digit(text[i]) != 0;
	}
	if (figures == 0 || commas + points + gaps + figures != length - s)
		return WW_NUMBER_NOT_A_NUMBER;
	if (commas > 0)
		return WW_NUMBER_DECIMAL_COMMA;
	return gaps > 0 || points > 1 ? WW_NUMBER_SEPARATORS : WW_NUMBER_NOT_A_NUMBER;
}

/* Cuts the blanks at both ends. */
static void trim(const char **text, size_t *length)
{
	while (*length > 0 && ((*text)[0] == ' ' || (*text)[0] == '\t'))
		(*text)++, (*length)--;
	while (*length > 0 && ((*text)[*length - 1] == ' ' || (*text)[*length - 1] == '\t'))
		(*length)--;
}

enum ww_number_fault ww_number_read(const char *text, size_t length, double *out)
{
	char copy[1024]; /* strtod needs an end; printf("%f") of the largest double is 317 long */

	trim(&text, &length);
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
	case WW_NUMBER_SEPARATORS:
		return "has separators between its digits; write them together, with one decimal point at most, like "
		       "1234.5";
	case WW_NUMBER_NO_UNIT:
	case WW_NUMBER_OTHER_UNIT:
	case WW_NUMBER_LEADING_ZERO:
	case WW_NUMBER_NOT_WHOLE:
	case WW_NUMBER_TOO_LARGE:
		break;
	}
	return ww_unit_fault_text(fault);
}

/* ---- Numbers with units ------------------------------------------------------------------------------------------- */

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '%';
}

/* Length of the number before the letters of a unit. */
static size_t number_length(const char *text, size_t length)
{
	if (is_not_finite(text, length))
		return length;
	while (length > 0 && is_letter(text[length - 1]))
		length--;
	return length;
}

/* What the number is multiplied with and then divided by, so that each unit's value is rounded once. */
struct scale {
	double times, per;
};

static enum ww_number_fault read_scale(const char *unit_text, size_t length, enum ww_unit unit, struct scale *scale)
{
	static const struct {
		const char *text;
		enum ww_unit unit;
		struct scale scale;
	} units[] = {
		{"W", WW_UNIT_POWER, {1, 1}},       {"kW", WW_UNIT_POWER, {1e3, 1}},
		{"MW", WW_UNIT_POWER, {1e6, 1}},    {"%", WW_UNIT_PERCENT, {1, 100}},
		{"us", WW_UNIT_DURATION, {1, 1e6}}, {"ms", WW_UNIT_DURATION, {1, 1e3}},
		{"s", WW_UNIT_DURATION, {1, 1}},    {"min", WW_UNIT_DURATION, {60, 1}},
		{"h", WW_UNIT_DURATION, {3600, 1}},
	};
	*scale = (struct scale){1, 1};
	if (length == 0)
		return unit == WW_UNIT_NONE || unit == WW_UNIT_WHOLE ? WW_NUMBER_OK : WW_NUMBER_NO_UNIT;
	for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
		*scale = units[i].scale;
		if (units[i].unit == unit && length == strlen(units[i].text) &&
		    memcmp(unit_text, units[i].text, length) == 0)
			return WW_NUMBER_OK;
	}
	return WW_NUMBER_OTHER_UNIT;
}

static bool has_leading_zero(const char *text, size_t length)
{
	size_t s = sign(text, length);
	return length > s + 1 && text[s] == '0' && is_digit(text[s + 1]);
}

static enum ww_number_fault check_whole(const char *text, size_t length, double value)
{
	if (digits(text, length) != length)
		return WW_NUMBER_NOT_WHOLE;
	return value > 0x1p31 ? WW_NUMBER_TOO_LARGE : WW_NUMBER_OK;
}

enum ww_number_fault ww_number_read_unit(const char *text, size_t length, enum ww_unit unit, double *out)
{
	double value = 0;
	struct scale scale;
	enum ww_number_fault fault;

	trim(&text, &length);
	size_t n = number_length(text, length), unit_length = length - n;
	const char *unit_text = text + n;
	if ((fault = ww_number_read(text, n, &value)))
		return fault == WW_NUMBER_EMPTY && length > 0 ? WW_NUMBER_NOT_A_NUMBER : fault;
	if ((fault = read_scale(unit_text, unit_length, unit, &scale)))
		return fault;
	trim(&text, &n);
	if (has_leading_zero(text, n))
		return WW_NUMBER_LEADING_ZERO;
	if (unit == WW_UNIT_WHOLE && (fault = check_whole(text, n, value)))
		return fault;
	value = value * scale.times / scale.per;
	if (!isfinite(value))
		return WW_NUMBER_NOT_FINITE;
	*out = value;
	return WW_NUMBER_OK;
}

const char *ww_unit_fault_text(enum ww_number_fault fault)
{
	switch (fault) {
	case WW_NUMBER_OK:
		return "is a number";
	case WW_NUMBER_EMPTY:
		return "is empty";
	case WW_NUMBER_NOT_A_NUMBER:
		return "is not a number";
	case WW_NUMBER_DECIMAL_COMMA:
		return "has a comma where a decimal point belongs";
	case WW_NUMBER_NOT_FINITE:
		return "is not a finite number";
	case WW_NUMBER_SEPARATORS:
		return "has separators between its digits";
	case WW_NUMBER_NO_UNIT:
		return "has no unit";
	case WW_NUMBER_OTHER_UNIT:
		return "has a unit that does not belong here";
	case WW_NUMBER_LEADING_ZERO:
		return "begins with a 0 too many, which others read as octal";
	case WW_NUMBER_NOT_WHOLE:
		return "is not a whole number";
	case WW_NUMBER_TOO_LARGE:
		return "is above 2147483648";
	}
	return "is not a number";
}

const char *ww_unit_remedy(enum ww_unit unit)
{
	switch (unit) {
	case WW_UNIT_NONE:
		return "write a number without a unit, like 1.5";
	case WW_UNIT_WHOLE:
		return "write a whole number without a unit, like 2";
	case WW_UNIT_PERCENT:
		return "write a percentage, like 30%";
	case WW_UNIT_POWER:
		return "write a number with its unit W, kW or MW, like 12.5 kW";
	case WW_UNIT_DURATION:
		return "write a number with its unit us, ms, s, min or h, like 30 s";
	}
	return "write a number";
}
