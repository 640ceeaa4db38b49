/* SPDX-License-Identifier: Apache-2.0 */
/* base: the one line of an error, the strict reader of numbers, and the seeded random numbers. */
#include "assert_near.h"
#include "base/base.h"

#include <float.h>
#include <locale.h>
#include <string.h>

/* ---- ww_fail ----------------------------------------------------------------------------------------------------- */

static void fail_fills_and_returns(void **state)
{
	struct ww_error err;
	(void)state;
	assert_int_equal(ww_fail(&err, WW_ERR_RANGE, "%s: line %d", "a.csv", 7), WW_ERR_RANGE);
	assert_int_equal(err.code, WW_ERR_RANGE);
	assert_string_equal(err.text, "a.csv: line 7");
	assert_int_equal(ww_fail(NULL, WW_ERR_IO, "nobody listens"), WW_ERR_IO);
	assert_int_equal(ww_fail(&err, WW_ERR_IO, "again: %s", err.text), WW_ERR_IO);
	assert_string_equal(err.text, "again: a.csv: line 7");
}

static void fail_keeps_one_clean_line(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{"a\nb\r\tc\x1b[2J\x7f", "a?b??c?[2J?"},
		{"gr\xC3\xB6\xC3\x9F\x65 \xE2\x82\xAC \xF0\x9F\x98\x80",
	         "gr\xC3\xB6\xC3\x9F\x65 \xE2\x82\xAC \xF0\x9F\x98\x80"},
		{"lone \x80 \xFF cut \xE2\x82", "lone ? ? cut ??"},
		{"overlong \xC0\xAF \xE0\x80\xAF \xF0\x80\x80\xAF", "overlong ?? ??? ????"},
		{"surrogate \xED\xA0\x80 beyond \xF4\x90\x80\x80", "surrogate ??? beyond ????"},
		{"C1 \xC2\x85 \xC2\x9B"
	         "31m nbsp \xC2\xA0",
	         "C1 ? ?31m nbsp \xC2\xA0"},
		/* NOLINTNEXTLINE(misc-misleading-bidirectional): just these are tested */
		{"separator \xE2\x80\xA8 override \xE2\x80\xAE isolate \xE2\x81\xA6",
	         "separator ? override ? isolate ?"},
		{"", ""},
	};
	struct ww_error err;
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		assert_int_equal(ww_fail(&err, WW_ERR_INVALID, "%s", cases[i].in), WW_ERR_INVALID);
		assert_string_equal(err.text, cases[i].out);
	}
}

static void fail_cuts_between_characters(void **state)
{
	char text[2 * sizeof((struct ww_error *)0)->text];
	struct ww_error err;
	(void)state;
	for (size_t start = 505; start <= 512; start++) {
		memset(text, 'x', start);
		memcpy(text + start, "\xF0\x9F\x98\x80\xF0\x9F\x98\x80", sizeof "\xF0\x9F\x98\x80\xF0\x9F\x98\x80");
		assert_int_equal(ww_fail(&err, WW_ERR_INVALID, "%s", text), WW_ERR_INVALID);
		size_t length = strlen(err.text);
		assert_true(length < sizeof err.text);
		assert_true(length + 4 >= sizeof err.text || length == start + 8);
		assert_memory_equal(err.text, text, length);
		assert_true(length <= start || (length - start) % 4 == 0);
	}
}

/* ---- ww_number_read ---------------------------------------------------------------------------------------------- */

static const struct {
	const char *text;
	double value;
} good_numbers[] = {
	{"0", 0},
	{"12", 12},
	{"-0.5", -0.5},
	{"1.5e3", 1500},
	{"1E-3", 0.001},
	{"+7", 7},
	{".5", 0.5},
	{"5.", 5},
	{"010", 10},
	{"  42\t", 42},
	{"1e-999", 0},
	{"4.9e-324", 4.9e-324},
	{"1.7976931348623157e308", DBL_MAX},
	{"27.130000000000003", 27.130000000000003},
	{"9007199254740993", 9007199254740992.0},
	{"0e999999999", 0},
	{"0.1", 0.1},
	{"00000000000000000000000000000000000000000000000000000000000000000001", 1},
};

static const struct {
	const char *text;
	enum ww_unit unit;
	double value;
} good_units[] = {
	{"12 kW", WW_UNIT_POWER, 12000},
	{"12kW", WW_UNIT_POWER, 12000},
	{" 12\t kW ", WW_UNIT_POWER, 12000},
	{"12.5 kW", WW_UNIT_POWER, 12500},
	{"300 W", WW_UNIT_POWER, 300},
	{"2 MW", WW_UNIT_POWER, 2e6},
	{"1.5e3 W", WW_UNIT_POWER, 1500},
	{"1e-3kW", WW_UNIT_POWER, 1},
	{"0 W", WW_UNIT_POWER, 0},
	{"-1 W", WW_UNIT_POWER, -1},
	{"30%", WW_UNIT_PERCENT, 0.3},
	{"30 %", WW_UNIT_PERCENT, 0.3},
	{"0.5%", WW_UNIT_PERCENT, 0.005},
	{"100%", WW_UNIT_PERCENT, 1},
	{"20 us", WW_UNIT_DURATION, 20e-6},
	{"500ms", WW_UNIT_DURATION, 0.5},
	{"30 s", WW_UNIT_DURATION, 30},
	{"1.5 min", WW_UNIT_DURATION, 90},
	{"2h", WW_UNIT_DURATION, 7200},
	{"0 s", WW_UNIT_DURATION, 0},
	{"64", WW_UNIT_WHOLE, 64},
	{"0", WW_UNIT_WHOLE, 0},
	{"2147483648", WW_UNIT_WHOLE, 2147483648.0},
	{"1.5", WW_UNIT_NONE, 1.5},
	{"0.25", WW_UNIT_NONE, 0.25},
	{".25", WW_UNIT_NONE, 0.25},
	{"0", WW_UNIT_NONE, 0},
	{"0e5", WW_UNIT_NONE, 0},
	{"-0", WW_UNIT_NONE, 0},
};

static const struct {
	const char *text;
	enum ww_unit unit;
	enum ww_number_fault fault;
} bad_units[] = {
	{"", WW_UNIT_POWER, WW_NUMBER_EMPTY},
	{" \t", WW_UNIT_WHOLE, WW_NUMBER_EMPTY},
	{"12", WW_UNIT_POWER, WW_NUMBER_NO_UNIT},
	{"1e3", WW_UNIT_POWER, WW_NUMBER_NO_UNIT},
	{"30", WW_UNIT_PERCENT, WW_NUMBER_NO_UNIT},
	{"0.3", WW_UNIT_PERCENT, WW_NUMBER_NO_UNIT},
	{"12 kw", WW_UNIT_POWER, WW_NUMBER_OTHER_UNIT},
	{"12 KW", WW_UNIT_POWER, WW_NUMBER_OTHER_UNIT},
	{"12 mW", WW_UNIT_POWER, WW_NUMBER_OTHER_UNIT},
	{"12 kWh", WW_UNIT_POWER, WW_NUMBER_OTHER_UNIT},
	{"12 GW", WW_UNIT_POWER, WW_NUMBER_OTHER_UNIT},
	{"12 %", WW_UNIT_POWER, WW_NUMBER_OTHER_UNIT},
	{"12 kVA", WW_UNIT_POWER, WW_NUMBER_OTHER_UNIT},
	{"12W%", WW_UNIT_POWER, WW_NUMBER_OTHER_UNIT},
	{"30", WW_UNIT_DURATION, WW_NUMBER_NO_UNIT},
	{"30 sec", WW_UNIT_DURATION, WW_NUMBER_OTHER_UNIT},
	{"30 S", WW_UNIT_DURATION, WW_NUMBER_OTHER_UNIT},
	{"5 m", WW_UNIT_DURATION, WW_NUMBER_OTHER_UNIT},
	{"5 W", WW_UNIT_DURATION, WW_NUMBER_OTHER_UNIT},
	{"5 s", WW_UNIT_POWER, WW_NUMBER_OTHER_UNIT},
	{"1h 30min", WW_UNIT_DURATION, WW_NUMBER_NOT_A_NUMBER},
	{"1:30", WW_UNIT_DURATION, WW_NUMBER_NOT_A_NUMBER},
	{"01 s", WW_UNIT_DURATION, WW_NUMBER_LEADING_ZERO},
	{"30 W", WW_UNIT_PERCENT, WW_NUMBER_OTHER_UNIT},
	{"30%%", WW_UNIT_PERCENT, WW_NUMBER_OTHER_UNIT},
	{"30 percent", WW_UNIT_PERCENT, WW_NUMBER_OTHER_UNIT},
	{"64 GPUs", WW_UNIT_WHOLE, WW_NUMBER_OTHER_UNIT},
	{"1.5 W", WW_UNIT_NONE, WW_NUMBER_OTHER_UNIT},
	{"50%", WW_UNIT_NONE, WW_NUMBER_OTHER_UNIT},
	{"kW", WW_UNIT_POWER, WW_NUMBER_NOT_A_NUMBER},
	{"%", WW_UNIT_PERCENT, WW_NUMBER_NOT_A_NUMBER},
	{"k W", WW_UNIT_POWER, WW_NUMBER_NOT_A_NUMBER},
	{"12 k W", WW_UNIT_POWER, WW_NUMBER_NOT_A_NUMBER},
	{"12 W 3", WW_UNIT_POWER, WW_NUMBER_NOT_A_NUMBER},
	{"1 000 W", WW_UNIT_POWER, WW_NUMBER_SEPARATORS},
	{"1_000 W", WW_UNIT_POWER, WW_NUMBER_NOT_A_NUMBER},
	{"0x10", WW_UNIT_WHOLE, WW_NUMBER_NOT_A_NUMBER},
	{"0o7", WW_UNIT_WHOLE, WW_NUMBER_NOT_A_NUMBER},
	{"0b11", WW_UNIT_WHOLE, WW_NUMBER_NOT_A_NUMBER},
	{"1:30", WW_UNIT_NONE, WW_NUMBER_NOT_A_NUMBER},
	{"12\xC2\xA0kW", WW_UNIT_POWER, WW_NUMBER_NOT_A_NUMBER},
	{"~", WW_UNIT_NONE, WW_NUMBER_NOT_A_NUMBER},
	{"yes", WW_UNIT_NONE, WW_NUMBER_NOT_A_NUMBER},
	{"1,5", WW_UNIT_NONE, WW_NUMBER_DECIMAL_COMMA},
	{"1,5 kW", WW_UNIT_POWER, WW_NUMBER_DECIMAL_COMMA},
	{"12,000", WW_UNIT_WHOLE, WW_NUMBER_DECIMAL_COMMA},
	{"99,9%", WW_UNIT_PERCENT, WW_NUMBER_DECIMAL_COMMA},
	{"nan", WW_UNIT_NONE, WW_NUMBER_NOT_FINITE},
	{"nan", WW_UNIT_POWER, WW_NUMBER_NOT_FINITE},
	{".nan", WW_UNIT_PERCENT, WW_NUMBER_NOT_FINITE},
	{"inf W", WW_UNIT_POWER, WW_NUMBER_NOT_FINITE},
	{".inf", WW_UNIT_POWER, WW_NUMBER_NOT_FINITE},
	{"-.Inf", WW_UNIT_WHOLE, WW_NUMBER_NOT_FINITE},
	{".inf kW", WW_UNIT_POWER, WW_NUMBER_NOT_FINITE},
	{"1e999", WW_UNIT_NONE, WW_NUMBER_NOT_FINITE},
	{"1e999 W", WW_UNIT_POWER, WW_NUMBER_NOT_FINITE},
	{"1e307 MW", WW_UNIT_POWER, WW_NUMBER_NOT_FINITE},
	{"010", WW_UNIT_WHOLE, WW_NUMBER_LEADING_ZERO},
	{"010 kW", WW_UNIT_POWER, WW_NUMBER_LEADING_ZERO},
	{"05%", WW_UNIT_PERCENT, WW_NUMBER_LEADING_ZERO},
	{"-01.5", WW_UNIT_NONE, WW_NUMBER_LEADING_ZERO},
	{"00", WW_UNIT_NONE, WW_NUMBER_LEADING_ZERO},
	{"64.0", WW_UNIT_WHOLE, WW_NUMBER_NOT_WHOLE},
	{"6.4e1", WW_UNIT_WHOLE, WW_NUMBER_NOT_WHOLE},
	{"-1", WW_UNIT_WHOLE, WW_NUMBER_NOT_WHOLE},
	{"+1", WW_UNIT_WHOLE, WW_NUMBER_NOT_WHOLE},
	{"2147483649", WW_UNIT_WHOLE, WW_NUMBER_TOO_LARGE},
	{"99999999999999999999", WW_UNIT_WHOLE, WW_NUMBER_TOO_LARGE},
};

static void check_units(void)
{
	for (size_t i = 0; i < sizeof good_units / sizeof good_units[0]; i++) {
		double value = NAN;
		const char *text = good_units[i].text;
		enum ww_number_fault fault = ww_number_read_unit(text, strlen(text), good_units[i].unit, &value);
		if (fault != WW_NUMBER_OK || value != good_units[i].value)
			fail_msg("'%s' gave fault %d and value %.17g", text, (int)fault, value);
	}
	for (size_t i = 0; i < sizeof bad_units / sizeof bad_units[0]; i++) {
		double value = 77;
		const char *text = bad_units[i].text;
		enum ww_number_fault fault = ww_number_read_unit(text, strlen(text), bad_units[i].unit, &value);
		if (fault != bad_units[i].fault || value != 77)
			fail_msg("'%s' gave fault %d and value %g", text, (int)fault, value);
	}
}

static void units_are_strict(void **state)
{
	(void)state;
	check_units();
}

static const struct {
	const char *text;
	enum ww_number_fault fault;
} bad_numbers[] = {
	{"", WW_NUMBER_EMPTY},
	{" \t ", WW_NUMBER_EMPTY},
	{"abc", WW_NUMBER_NOT_A_NUMBER},
	{"0x10", WW_NUMBER_NOT_A_NUMBER},
	{"12 kW", WW_NUMBER_NOT_A_NUMBER},
	{"30%", WW_NUMBER_NOT_A_NUMBER},
	{"1 2", WW_NUMBER_SEPARATORS},
	{"1.2.3", WW_NUMBER_SEPARATORS},
	{"1.210.5", WW_NUMBER_SEPARATORS},
	{"-1'210", WW_NUMBER_SEPARATORS},
	{"1.2.3e4", WW_NUMBER_NOT_A_NUMBER},
	{"..", WW_NUMBER_NOT_A_NUMBER},
	{"1 234,5", WW_NUMBER_DECIMAL_COMMA},
	{"--1", WW_NUMBER_NOT_A_NUMBER},
	{"+-1", WW_NUMBER_NOT_A_NUMBER},
	{".", WW_NUMBER_NOT_A_NUMBER},
	{"-", WW_NUMBER_NOT_A_NUMBER},
	{"e5", WW_NUMBER_NOT_A_NUMBER},
	{"1e", WW_NUMBER_NOT_A_NUMBER},
	{"1e+", WW_NUMBER_NOT_A_NUMBER},
	{"1e5.0", WW_NUMBER_NOT_A_NUMBER},
	{"1_000", WW_NUMBER_NOT_A_NUMBER},
	{"1'000", WW_NUMBER_SEPARATORS},
	{"350 W", WW_NUMBER_NOT_A_NUMBER},
	{"1d3", WW_NUMBER_NOT_A_NUMBER},
	{"\xE2\x88\x92"
         "5",
         WW_NUMBER_NOT_A_NUMBER},
	{"1\n", WW_NUMBER_NOT_A_NUMBER},
	{",", WW_NUMBER_NOT_A_NUMBER},
	{"N/A", WW_NUMBER_NOT_A_NUMBER},
	{"0x1p3", WW_NUMBER_NOT_A_NUMBER},
	{"nanx", WW_NUMBER_NOT_A_NUMBER},
	{"a,b", WW_NUMBER_NOT_A_NUMBER},
	{"1,5", WW_NUMBER_DECIMAL_COMMA},
	{"-0,25", WW_NUMBER_DECIMAL_COMMA},
	{"1.234,5", WW_NUMBER_DECIMAL_COMMA},
	{"1,234.5", WW_NUMBER_DECIMAL_COMMA},
	{"nan", WW_NUMBER_NOT_FINITE},
	{"NaN", WW_NUMBER_NOT_FINITE},
	{"-nan", WW_NUMBER_NOT_FINITE},
	{"inf", WW_NUMBER_NOT_FINITE},
	{"-Inf", WW_NUMBER_NOT_FINITE},
	{"Infinity", WW_NUMBER_NOT_FINITE},
	{"1e999", WW_NUMBER_NOT_FINITE},
	{"-1e309", WW_NUMBER_NOT_FINITE},
	{"-.inf", WW_NUMBER_NOT_FINITE},
};

static void check_numbers(void)
{
	for (size_t i = 0; i < sizeof good_numbers / sizeof good_numbers[0]; i++) {
		double value = NAN;
		const char *text = good_numbers[i].text;
		if (ww_number_read(text, strlen(text), &value) != WW_NUMBER_OK || value != good_numbers[i].value)
			fail_msg("'%s' gave %.17g", text, value);
	}
	for (size_t i = 0; i < sizeof bad_numbers / sizeof bad_numbers[0]; i++) {
		double value = 77;
		const char *text = bad_numbers[i].text;
		enum ww_number_fault fault = ww_number_read(text, strlen(text), &value);
		if (fault != bad_numbers[i].fault || value != 77)
			fail_msg("'%s' gave fault %d and value %g", text, (int)fault, value);
	}
}

static void numbers_are_strict(void **state)
{
	(void)state;
	check_numbers();
}

static char locale_folder[] = "/tmp/wattweir-locale-XXXXXX";

/* A locale with a decimal comma: an installed one, or one that localedef makes for this test. */
static bool set_comma_locale(void)
{
	static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "nl_NL.UTF-8", "de_DE"};
	char command[256];
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (setlocale(LC_ALL, names[i]))
			return true;
	if (!mkdtemp(locale_folder))
		return false;
	snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1", locale_folder);
	bool made = system(command) == 0 && setenv("LOCPATH", locale_folder, 1) == 0 && setlocale(LC_ALL, names[0]);
	unsetenv("LOCPATH");
	snprintf(command, sizeof command, "rm -r %s", locale_folder);
	if (system(command) != 0)
		print_message("# left behind: %s\n", locale_folder);
	return made;
}

static void numbers_ignore_the_locale(void **state)
{
	(void)state;
	if (!set_comma_locale()) {
		print_message("# skipped: no locale with a decimal comma here, and localedef cannot make one\n");
		skip();
	}
	assert_string_equal(localeconv()->decimal_point, ",");
	assert_near(strtod("1,5", NULL), 1.5, 0);
	check_numbers();
	check_units();
	setlocale(LC_ALL, "C");
}

static void numbers_stop_at_their_length(void **state)
{
	char text[2048];
	double value = 0;
	(void)state;
	assert_int_equal(ww_number_read("12345", 3, &value), WW_NUMBER_OK);
	assert_near(value, 123, 0);
	assert_int_equal(ww_number_read("1\0"
	                                "2",
	                                3, &value),
	                 WW_NUMBER_NOT_A_NUMBER);
	memset(text, '0', sizeof text);
	text[0] = '3';
	text[1] = '.';
	assert_int_equal(ww_number_read(text, 1023, &value), WW_NUMBER_OK);
	assert_near(value, 3, 0);
	assert_int_equal(ww_number_read(text, 1024, &value), WW_NUMBER_NOT_A_NUMBER);
}

static void every_double_comes_back(void **state)
{
	struct ww_rng rng;
	(void)state;
	ww_rng_seed(&rng, 4);
	for (int i = 0; i < 20000; i++) {
		uint64_t bits = ww_rng_u64(&rng);
		double value, read = 0;
		char text[64];
		memcpy(&value, &bits, sizeof value);
		if (!isfinite(value))
			continue;
		snprintf(text, sizeof text, "%.17g", value);
		assert_int_equal(ww_number_read(text, strlen(text), &read), WW_NUMBER_OK);
		assert_memory_equal(&read, &value, sizeof value);
	}
}

static void near_names_are_found(void **state)
{
	(void)state;
	struct ww_near near = {.wanted = "gptj"};
	const char *names[] = {"llama", "gpt-j2", "gpt-j", "GPTJ2"};
	for (size_t i = 0; i < 4; i++)
		ww_near_add(&near, names[i]);
	assert_int_equal(near.n_all, 4);
	assert_int_equal(near.n, 3);
	assert_string_equal(near.names[0], "gpt-j");
	assert_string_equal(near.names[1], "GPTJ2");
	assert_string_equal(near.names[2], "gpt-j2");
	assert_string_equal(near.first[0], "llama");
	near = (struct ww_near){.wanted = "pif"}; /* neighbours exchanged are one change */
	ww_near_add(&near, "plan");
	ww_near_add(&near, "pfi");
	assert_int_equal(near.n, 1);
	assert_string_equal(near.names[0], "pfi");
}

static void every_fault_has_a_text(void **state)
{
	(void)state;
	for (int fault = WW_NUMBER_OK; fault <= WW_NUMBER_TOO_LARGE; fault++) {
		assert_true(strlen(ww_number_fault_text((enum ww_number_fault)fault)) > 5);
		assert_true(strlen(ww_unit_fault_text((enum ww_number_fault)fault)) > 5);
	}
	for (int unit = WW_UNIT_NONE; unit <= WW_UNIT_POWER; unit++)
		assert_non_null(strstr(ww_unit_remedy((enum ww_unit)unit), "like"));
	assert_non_null(strstr(ww_number_fault_text(WW_NUMBER_DECIMAL_COMMA), "decimal point"));
}

/* ---- Random numbers ---------------------------------------------------------------------------------------------- */

static void rng_matches_published_values(void **state)
{
	struct ww_rng rng = {{1, 2, 3, 4}, NAN};
	(void)state;
	assert_true(ww_rng_u64(&rng) == 11520u);
	assert_true(ww_rng_u64(&rng) == 0u);
	assert_true(ww_rng_u64(&rng) == 1509978240u);
	assert_true(ww_rng_u64(&rng) == 1215971899390074240u);

	ww_rng_seed(&rng, 1234567); /* splitmix64 */
	assert_true(rng.s[0] == 6457827717110365317u);
	assert_true(rng.s[1] == 3203168211198807973u);
	assert_true(rng.s[2] == 9817491932198370423u);
	assert_true(rng.s[3] == 4593380528125082431u);
	assert_nan(rng.spare);

	assert_true(ww_hash_text("") == 0xCBF29CE484222325u);
	assert_true(ww_hash_text("a") == 0xAF63DC4C8601EC8Cu);
	assert_true(ww_hash_text("foobar") == 0x85944171F73967E8u);
}

static void rng_repeats_with_its_seed(void **state)
{
	struct ww_rng a, b, c;
	int same = 0;
	(void)state;
	ww_rng_seed(&a, 9);
	ww_rng_seed(&b, 9);
	ww_rng_seed(&c, 10);
	for (int i = 0; i < 100; i++) {
		double x = ww_rng_normal(&a);
		assert_near(x, ww_rng_normal(&b), 0);
		same += x == ww_rng_normal(&c);
	}
	assert_int_equal(same, 0);
}

/* Bits, not only digits: these are the same on every machine. */
static void normal_has_fixed_bits(void **state)
{
	struct ww_rng rng;
	uint64_t hash = 0;
	(void)state;
	ww_rng_seed(&rng, 1);
	for (int i = 0; i < 10000; i++) {
		double x = ww_rng_normal(&rng);
		uint64_t bits;
		memcpy(&bits, &x, sizeof bits);
		hash = hash * 31 + bits;
	}
	if (hash != 0x05C1AF5C9BB03CF9u)
		fail_msg("the normals changed: 0x%016llX", (unsigned long long)hash);
}

static void normal_has_its_moments(void **state)
{
	struct ww_rng rng;
	const int n = 200000;
	double sum = 0, squares = 0, cubes = 0, fourths = 0;
	int inside = 0;
	(void)state;
	ww_rng_seed(&rng, 2);
	for (int i = 0; i < n; i++) {
		double x = ww_rng_normal(&rng);
		sum += x;
		squares += x * x;
		cubes += x * x * x;
		fourths += x * x * x * x;
		inside += fabs(x) < 1;
	}
	assert_near(sum / n, 0, 0.01);
	assert_near(squares / n, 1, 0.015);
	assert_near(cubes / n, 0, 0.05);
	assert_near(fourths / n, 3, 0.1);
	assert_near((double)inside / n, 0.682689, 0.005);
}

static void uniform_and_below_are_fair(void **state)
{
	struct ww_rng rng;
	int seen[6] = {0}, high = 0;
	double sum = 0;
	(void)state;
	ww_rng_seed(&rng, 3);
	for (int i = 0; i < 60000; i++) {
		double x = ww_rng_uniform(&rng);
		assert_true(x >= 0 && x < 1);
		sum += x;
		seen[ww_rng_below(&rng, 6)]++;
		assert_int_equal(ww_rng_below(&rng, 1), 0);
		/* With a plain remainder of 32 bits the lower third would come twice as often. */
		high += ww_rng_below(&rng, 0xC0000000u) >= 0x60000000u;
	}
	assert_near(sum / 60000, 0.5, 0.005);
	for (int i = 0; i < 6; i++)
		assert_near(seen[i], 10000, 400);
	assert_near(high, 30000, 600);
}

/* What nobody sees or what turns a line around, beside the control characters proper; letters of any script are none. */
static void invisible_characters_are_control(void **state)
{
	static const char *const bad[] = {"\x1b",         "\x7f",         "\xc2\x85",        "\xc2\xad",
	                                  "\xd8\x9c",     "\xe2\x80\x8b", "\xe2\x80\xae",    "\xe2\x81\xa6",
	                                  "\xef\xbb\xbf", "\xef\xbf\xbe", "\xf3\xa0\x81\x81"};
	static const char *const good[] = {
		"a", " ", "\xc2\xa0", "\xc3\xa9", "\xd8\xa8", "\xe7\xb5\x84", "\xf0\x9f\x99\x82"};
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_true(ww_utf8_is_control(bad[i], strlen(bad[i])));
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_false(ww_utf8_is_control(good[i], strlen(good[i])));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fail_fills_and_returns),       cmocka_unit_test(fail_keeps_one_clean_line),
		cmocka_unit_test(fail_cuts_between_characters), cmocka_unit_test(invisible_characters_are_control),
		cmocka_unit_test(numbers_are_strict),           cmocka_unit_test(numbers_ignore_the_locale),
		cmocka_unit_test(numbers_stop_at_their_length), cmocka_unit_test(units_are_strict),
		cmocka_unit_test(every_double_comes_back),      cmocka_unit_test(every_fault_has_a_text),
		cmocka_unit_test(near_names_are_found),         cmocka_unit_test(rng_matches_published_values),
		cmocka_unit_test(rng_repeats_with_its_seed),    cmocka_unit_test(normal_has_fixed_bits),
		cmocka_unit_test(normal_has_its_moments),       cmocka_unit_test(uniform_and_below_are_fair),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
