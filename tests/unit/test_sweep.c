/* SPDX-License-Identifier: Apache-2.0 */
/* What the sweep reader reads, within which bounds, and the measured sweeps of others. */
#include "assert_near.h"
#include "sweep_text.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* ---- Sizes ------------------------------------------------------------------------------------------------------- */

/* A stream that never ends and counts what is taken from it. */
struct endless {
	const char *head;
	size_t given;
	bool breaks;
};

static ssize_t endless_read(void *cookie, char *to, size_t size)
{
	struct endless *e = cookie;
	size_t n = strlen(e->head);
	if (n > 0) {
		n = n < size ? n : size;
		memcpy(to, e->head, n);
		e->head += n;
	} else if (e->breaks) {
		errno = EIO;
		return -1;
	} else {
		n = size;
		memset(to, 'x', n);
	}
	e->given += n;
	return (ssize_t)n;
}

static ww_status parse_endless(struct endless *e, struct ww_error *err)
{
	struct ww_sweep sweep;
	FILE *in = fopencookie(e, "r", (cookie_io_functions_t){.read = endless_read});
	assert_non_null(in);
	ww_status status = ww_sweep_parse(in, "t.csv", NULL, &sweep, err);
	assert_int_equal(fclose(in), 0);
	return status;
}

static void endless_line_is_left_unread(void **state)
{
	struct endless e = {OWN ROW, 0, false};
	struct ww_error err;
	(void)state;
	assert_int_equal(parse_endless(&e, &err), WW_ERR_INVALID);
	assert_string_equal(err.text,
	                    "t.csv: line 3: the line is longer than 65536 bytes; check that the file is a CSV "
	                    "table with one row per line");
	assert_true(e.given < 300000);
}

static void read_error_is_told(void **state)
{
	struct endless e = {OWN ROW "a,200,", 0, true};
	struct ww_error err;
	(void)state;
	assert_int_equal(parse_endless(&e, &err), WW_ERR_IO);
	assert_non_null(strstr(err.text, "t.csv: cannot be read"));
	assert_non_null(strstr(err.text, "Input/output error"));
}

static void longest_line_is_read(void **state)
{
	static char text[70000];
	struct ww_sweep sweep;
	struct ww_error err;
	(void)state;
	for (size_t length = 65535; length <= 65537; length++) {
		size_t used = (size_t)snprintf(text, sizeof text, OWN "%*s" ROW, (int)(length - strlen(ROW) + 1), "");
		ww_status status = parse(text, used, NULL, &sweep, &err);
		assert_int_equal(status, length <= 65536 ? WW_OK : WW_ERR_INVALID);
		if (status == WW_OK)
			ww_sweep_finish(&sweep);
	}
}

static void columns_are_bounded(void **state)
{
	static char text[8192];
	struct ww_sweep sweep;
	struct ww_error err;
	(void)state;
	for (int n = 256; n <= 257; n++) {
		size_t used = (size_t)snprintf(text, sizeof text, "group,cap_w,power_w,throughput_tps");
		for (int i = 4; i < n; i++)
			used += (size_t)snprintf(text + used, sizeof text - used, ",t%d_w", i);
		used += (size_t)snprintf(text + used, sizeof text - used, "\na,300,290,10");
		for (int i = 4; i < n; i++)
			used += (size_t)snprintf(text + used, sizeof text - used, ",");
		ww_status status = parse(text, used, NULL, &sweep, &err);
		assert_int_equal(status, n == 256 ? WW_OK : WW_ERR_INVALID);
		if (status == WW_OK) {
			assert_int_equal(sweep.n_telemetry, 252);
			assert_nan(sweep.groups[0].telemetry[251]);
			ww_sweep_finish(&sweep);
		}
	}
	assert_non_null(strstr(err.text, "line 1: more than 256 columns; remove"));
}

static void many_rows_and_groups_keep_their_order(void **state)
{
	enum { GROUPS = 3000, CAPS = 5 };
	struct ww_sweep sweep;
	struct ww_error err;
	char *text = NULL, name[16];
	size_t size = 0;
	(void)state;
	FILE *make = open_memstream(&text, &size);
	assert_non_null(make);
	fputs("group,cap_w,power_w,throughput_tps,t_c\n", make);
	for (int c = 0; c < CAPS; c++)
		for (int g = 0; g < GROUPS; g++)
			fprintf(make, "job%d,%d,%d,%d,%d\n", g, 100 + c, 90 + c, g + 1, g * CAPS + c);
	assert_int_equal(fclose(make), 0);
	assert_int_equal(parse(text, size, NULL, &sweep, &err), WW_OK);
	assert_int_equal(sweep.n_groups, GROUPS);
	for (int g = 0; g < GROUPS; g++) {
		snprintf(name, sizeof name, "job%d", g);
		assert_string_equal(sweep.groups[g].name, name);
		assert_int_equal(sweep.groups[g].n_points, CAPS);
		for (int c = 0; c < CAPS; c++) {
			assert_near(sweep.groups[g].points[c].cap_w, 100 + c, 0);
			assert_near(sweep.groups[g].telemetry[c], g * CAPS + c, 0);
		}
	}
	ww_sweep_finish(&sweep);
	free(text);
}

/* ---- Good files -------------------------------------------------------------------------------------------------- */

static void own_format_is_read(void **state)
{
	static const char text[] = "# wattweir sweep 1\n# site: lab 3\n"
				   "sm_clock_mhz,gpu_model,group,throughput_tps,rep,cap_w,power_w,gpus,power_se_w,"
				   "throughput_se_tps,throttle_reasons,note_j\n"
				   "1410,,b,10,1,400,350.5,,,,,\n"
				   "\n# a remark in the middle\n  \t \n"
				   ",A100,b,9.5,2,400,351,8,0.5,0.1,0x4,-1e3\n"
				   "900,A100,a,1e3,1,4e2,350,8,0,0,96,0\n";
	struct ww_sweep s;
	struct ww_error err;
	(void)state;
	assert_int_equal(parse(TEXT(text), NULL, &s, &err), WW_OK);
	assert_string_equal(s.file, "t.csv");
	assert_string_equal(s.format, "wattweir");
	assert_int_equal(s.n_groups, 2);
	assert_int_equal(s.n_telemetry, 2);
	assert_string_equal(s.telemetry[0], "sm_clock_mhz");
	assert_string_equal(s.telemetry[1], "note_j");

	const struct ww_sweep_group *b = &s.groups[0], *a = &s.groups[1];
	assert_string_equal(b->name, "b");
	assert_string_equal(b->gpu_model, "A100");
	assert_int_equal(b->gpus, 8);
	assert_int_equal(b->n_points, 2);
	assert_near(b->points[0].cap_w, 400, 0);
	assert_near(b->points[0].power_w, 350.5, 0);
	assert_near(b->points[0].throughput, 10, 0);
	assert_nan(b->points[0].power_se_w);
	assert_nan(b->points[0].throughput_se);
	assert_true(b->points[0].throttle == -1);
	assert_near(b->points[1].power_se_w, 0.5, 0);
	assert_near(b->points[1].throughput_se, 0.1, 0);
	assert_true(b->points[1].throttle == 4);
	assert_near(b->telemetry[0], 1410, 0);
	assert_nan(b->telemetry[1]);
	assert_nan(b->telemetry[2]);
	assert_near(b->telemetry[3], -1000, 0);
	assert_string_equal(a->name, "a");
	assert_near(a->points[0].throughput, 1000, 0);
	assert_near(a->points[0].throughput_se, 0, 0);
	assert_true(a->points[0].throttle == 96);
	ww_sweep_finish(&s);
	assert_null(s.groups);
	ww_sweep_finish(&s);
	ww_sweep_finish(NULL);
}

static void harmless_differences_are_read(void **state)
{
	static const struct {
		const char *name, *text, *group;
	} cases[] = {
		{"plain", OWN ROW, "a"},
		{"no last line end", OWN "a,300,290,10", "a"},
		{"CRLF", "group,cap_w,power_w,throughput_tps\r\n\r\na,300,290,10\r\n", "a"},
		{"CRLF without the last LF", "group,cap_w,power_w,throughput_tps\r\na,300,290,10\r", "a"},
		{"byte order mark", "\xEF\xBB\xBF" OWN ROW, "a"},
		{"mark and comment", "\xEF\xBB\xBF# wattweir sweep 1\n" OWN ROW, "a"},
		{"hard blanks",
	         " group\xC2\xA0,cap_w,power_w,\xC2\xA0throughput_tps\xC2\xA0 \n\xC2\xA0\"a\"\xC2\xA0,300,\xC2\xA0 "
	         "290,10\xC2\xA0\n"
	         "\xC2\xA0\n",
	         "a"},
		{"blanks", " group ,cap_w\t,  power_w,throughput_tps  \n\ta  , 300,290 ,\t10\n", "a"},
		{"quotes", "\"group\",\"cap_w\", \"power_w\" ,throughput_tps\n \"a\" ,\"300\",290,\"10\"\n", "a"},
		{"comma in quotes", OWN "\"a,b\",300,290,10\n", "a,b"},
		{"doubled quotes", OWN "\"5\"\" disk\",300,290,10\n", "5\" disk"},
		{"number sign", OWN "\"#1\",300,290,10\n", "#1"},
		{"UTF-8",
	         OWN "gr\xC3\xB6\xC3\x9F"
	             "e \xE2\x82\xAC,300,290,10\n",
	         "gr\xC3\xB6\xC3\x9F"
	         "e \xE2\x82\xAC"},
		{"comment behind the header", OWN "# x,y,z\n" ROW "#\n", "a"},
		{"unknown comment mark", "# wattweir sweeps\n" OWN ROW, "a"},
	};
	struct ww_sweep s;
	struct ww_error err = {WW_OK, ""};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		if (parse(cases[i].text, strlen(cases[i].text), NULL, &s, &err) != WW_OK)
			fail_msg("%s: %s", cases[i].name, err.text);
		assert_int_equal(s.n_groups, 1);
		assert_string_equal(s.groups[0].name, cases[i].group);
		assert_near(s.groups[0].points[0].cap_w, 300, 0);
		assert_near(s.groups[0].points[0].throughput, 10, 0);
		assert_null(s.groups[0].telemetry);
		assert_string_equal(s.groups[0].gpu_model, "");
		ww_sweep_finish(&s);
	}
}

static void foreign_tables_are_known(void **state)
{
	struct ww_sweep s;
	struct ww_error err;
	(void)state;
	assert_int_equal(parse(TEXT("extra," ZEUS "x,d,n,8,adam,100,4,90\ny,d,n,16,adam,100,8,91\n"), NULL, &s, &err),
	                 WW_OK);
	assert_string_equal(s.format, "zeus");
	assert_int_equal(s.n_groups, 2);
	assert_string_equal(s.groups[1].name, "d/n/16/adam");
	assert_near(s.groups[1].points[0].throughput, 0.125, 0);
	assert_near(s.groups[1].points[0].power_w, 91, 0);
	ww_sweep_finish(&s);

	static const char emerald[] =
		"power per GPU ,Workload,GPU power cap,throughput,note,note\n95,job ,100,0.5,,text\n";
	assert_int_equal(parse(TEXT(emerald), NULL, &s, &err), WW_OK);
	assert_string_equal(s.format, "emerald");
	assert_string_equal(s.groups[0].name, "job");
	assert_near(s.groups[0].points[0].power_w, 95, 0);
	assert_int_equal(s.n_telemetry, 0);
	ww_sweep_finish(&s);
}

static void map_reads_any_table(void **state)
{
	static const char text[] = "model,\"a+b,c=d\",limit,draw,secs,run,n,kind,\"1/"
				   "x\"\nm,q,100,90,4,1,8,H100,7\nm,q,100,91,5,2,8,H100,7\n";
	struct ww_sweep s;
	struct ww_error err = {WW_OK, ""};
	(void)state;
	assert_int_equal(
		parse(TEXT(text),
	              " throughput = 1/secs , power=draw, cap=limit,group= model + \"a+b,c=d\" ,rep=run,gpus=n,"
	              "gpu_model=kind,power_se=n",
	              &s, &err),
		WW_ERR_INVALID);
	assert_non_null(strstr(err.text, "'n' is given for both"));
	assert_int_equal(
		parse(TEXT(text),
	              " throughput = 1/secs , power=draw, cap=limit,group= model + \"a+b,c=d\" ,rep=run,gpus=n,"
	              "gpu_model=kind",
	              &s, &err),
		WW_OK);
	assert_string_equal(s.format, "map");
	assert_string_equal(s.groups[0].name, "m/q");
	assert_string_equal(s.groups[0].gpu_model, "H100");
	assert_int_equal(s.groups[0].gpus, 8);
	assert_int_equal(s.groups[0].n_points, 2);
	assert_near(s.groups[0].points[1].throughput, 0.2, 0);
	ww_sweep_finish(&s);

	assert_int_equal(parse(TEXT(text), "throughput=\"1/x\",power=draw,cap=limit,group=model+run", &s, &err), WW_OK);
	assert_near(s.groups[0].points[0].throughput, 7, 0);
	assert_int_equal(s.n_groups, 2);
	ww_sweep_finish(&s);
}

/* ---- Files ------------------------------------------------------------------------------------------------------- */

static void paths_are_checked(void **state)
{
	char folder[] = "/tmp/wattweir-sweep-XXXXXX", path[64], deep[400];
	struct ww_sweep s;
	struct ww_error err;
	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(ww_sweep_read(folder, NULL, &s, &err), WW_ERR_IO);
	assert_non_null(strstr(err.text, "is a directory"));
	snprintf(path, sizeof path, "%s/x.csv", folder);
	assert_int_equal(ww_sweep_read(path, NULL, &s, &err), WW_ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, path));
	assert_non_null(strstr(err.text, "no such file"));

	memset(deep, 'd', sizeof deep - 1);
	memcpy(deep + sizeof deep - 7, "/x.csv", sizeof "/x.csv");
	assert_int_not_equal(ww_sweep_read(deep, NULL, &s, &err), WW_OK);
	assert_true(strncmp(err.text, "...ddd", 6) == 0);
	assert_non_null(strstr(err.text, "/x.csv: "));

	/* "..." never begins inside a character. */
	for (size_t i = 0; i < sizeof deep - 7; i++)
		deep[i] = "\xE2\x82\xAC"[i % 3];
	assert_int_not_equal(ww_sweep_read(deep, NULL, &s, &err), WW_OK);
	assert_true(strncmp(err.text, "...\xE2\x82\xAC", 6) == 0);

	FILE *out = fopen(path, "w");
	assert_non_null(out);
	fputs(OWN ROW, out);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(ww_sweep_read(path, NULL, &s, &err), WW_OK);
	assert_string_equal(s.file, path);
	ww_sweep_finish(&s);
	if (geteuid() != 0) {
		assert_int_equal(chmod(path, 0), 0);
		assert_int_equal(ww_sweep_read(path, NULL, &s, &err), WW_ERR_IO);
		assert_non_null(strstr(err.text, "cannot be opened: Permission denied"));
	}
	assert_int_equal(remove(path), 0);
	assert_int_equal(remove(folder), 0);
}

static void check_real(const char *relative, const char *format, size_t rows, size_t groups)
{
	struct ww_sweep s;
	struct ww_error err = {WW_OK, ""};
	size_t n = 0;
	if (ww_sweep_read(data_path(relative), NULL, &s, &err) != WW_OK)
		fail_msg("%s", err.text);
	assert_string_equal(s.format, format);
	assert_int_equal(s.n_groups, groups);
	for (size_t g = 0; g < s.n_groups; g++)
		n += s.groups[g].n_points;
	assert_int_equal(n, rows);
	ww_sweep_finish(&s);
}

static void real_a40_is_read(void **state)
{
	(void)state;
	skip_without_data("zeus-nsdi23-trace/summary_power_a40.csv");
	check_real("zeus-nsdi23-trace/summary_power_a40.csv", "zeus", 453, 53);
}

static void real_v100_is_read(void **state)
{
	(void)state;
	skip_without_data("zeus-nsdi23-trace/summary_power_v100.csv");
	check_real("zeus-nsdi23-trace/summary_power_v100.csv", "zeus", 476, 68);
}

static void real_emerald_is_read(void **state)
{
	(void)state;
	skip_without_data("emerald-ai-demo-may-2025/dvfs_sweep.csv");
	check_real("emerald-ai-demo-may-2025/dvfs_sweep.csv", "emerald", 48, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(endless_line_is_left_unread),
		cmocka_unit_test(read_error_is_told),
		cmocka_unit_test(longest_line_is_read),
		cmocka_unit_test(columns_are_bounded),
		cmocka_unit_test(many_rows_and_groups_keep_their_order),
		cmocka_unit_test(own_format_is_read),
		cmocka_unit_test(harmless_differences_are_read),
		cmocka_unit_test(foreign_tables_are_known),
		cmocka_unit_test(map_reads_any_table),
		cmocka_unit_test(paths_are_checked),
		cmocka_unit_test(real_a40_is_read),
		cmocka_unit_test(real_v100_is_read),
		cmocka_unit_test(real_emerald_is_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
