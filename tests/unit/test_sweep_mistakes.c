/* SPDX-License-Identifier: Apache-2.0 */
/* Every mistake in a sweep or a map is one line with file, line, column and remedy, and leaves nothing read. */
#include "assert_near.h"
#include "sweep_text.h"

#include <string.h>

#define REP "group,cap_w,rep,power_w,throughput_tps\n"
#define FOREIGN "model,gpu,limit,draw,secs\n"
#define MAP "throughput=1/secs,power=draw,cap=limit,group=model"

struct mistake {
	const char *name, *text;
	size_t size;
	const char *map;
	ww_status code;
	const char *parts[4]; /* each stands in the line */
};

static void check_mistake(const struct mistake *m)
{
	struct ww_sweep sweep, untouched;
	struct ww_error err = {WW_OK, ""};
	memset(&sweep, 0xA5, sizeof sweep);
	memset(&untouched, 0xA5, sizeof untouched);
	ww_status status = parse(m->text, m->size, m->map, &sweep, &err);
	if (status == WW_OK)
		fail_msg("%s: was read", m->name);
	if (status != m->code || err.code != m->code)
		fail_msg("%s: status %d (%d): %s", m->name, (int)status, (int)err.code, err.text);
	assert_memory_equal(&sweep, &untouched, sizeof sweep);
	check_one_line(err.text);
	for (size_t i = 0; i < 4 && m->parts[i]; i++)
		if (!strstr(err.text, m->parts[i]))
			fail_msg("%s: no '%s' in: %s", m->name, m->parts[i], err.text);
	assert_int_equal(parse(m->text, m->size, m->map, &sweep, NULL), m->code);
}

static const struct mistake file_mistakes[] = {
	{"empty", TEXT(""), NULL, WW_ERR_NO_DATA, {"t.csv: line 1:", "the file is empty", "column names"}},
	{"only blank lines", TEXT("\n  \n\n"), NULL, WW_ERR_NO_DATA, {"t.csv: line 4:", "the file is empty"}},
	{"only comments", TEXT("# a\n# b\n"), NULL, WW_ERR_NO_DATA, {"t.csv: line 3:", "empty"}},
	{"only a mark", TEXT("\xEF\xBB\xBF"), NULL, WW_ERR_NO_DATA, {"t.csv: line 1:", "empty"}},
	{"only a header", TEXT(OWN), NULL, WW_ERR_NO_DATA, {"t.csv: line 1:", "no rows", "one row per cap"}},
	{"UTF-16 LE with mark", TEXT("\xFF\xFEg\0r\0"), NULL, WW_ERR_INVALID, {"line 1:", "UTF-16", "iconv"}},
	{"UTF-16 BE with mark", TEXT("\xFE\xFF\0g\0r"), NULL, WW_ERR_INVALID, {"line 1:", "UTF-16", "iconv"}},
	{"UTF-16 LE", TEXT("g\0r\0o\0"), NULL, WW_ERR_INVALID, {"line 1:", "UTF-16", "iconv"}},
	{"UTF-16 BE", TEXT("\0g\0r\0o"), NULL, WW_ERR_INVALID, {"line 1:", "UTF-16", "iconv"}},
	{"gzip", TEXT("\x1F\x8B\x08\0\0"), NULL, WW_ERR_INVALID, {"line 1:", "compressed", "gunzip"}},
	{"spreadsheet", TEXT("PK\3\4rest"), NULL, WW_ERR_INVALID, {"line 1:", "spreadsheet", "export it as CSV"}},
	{"NUL", TEXT(OWN "a,3\00000,290,10\n"), NULL, WW_ERR_INVALID, {"line 2:", "NUL byte at byte 4", "UTF-8"}},
	{"Latin-1",
         TEXT(OWN ROW "gr\xF6\xDF"
                      "e,300,290,10\n"),
         NULL,
         WW_ERR_INVALID,
         {"line 3:", "byte 3 (0xF6)", "not UTF-8", "iconv"}},
	{"Latin-1 in a comment", TEXT("# \xE9\n" OWN ROW), NULL, WW_ERR_INVALID, {"line 1:", "byte 3 (0xE9)", "iconv"}},
	{"cut character", TEXT(OWN "a\xE2\x82"), NULL, WW_ERR_INVALID, {"line 2:", "byte 2 (0xE2)", "UTF-8"}},
	{"escape",
         TEXT(OWN "a\x1B[31m,300,290,10\n"),
         NULL,
         WW_ERR_INVALID,
         {"line 2:", "0x1B at byte 2", "remove it"}},
	{"C1 control", TEXT(OWN "a\xC2\x9B,300,290,10\n"), NULL, WW_ERR_INVALID, {"line 2:", "byte 2", "remove it"}},
	{"old Macintosh",
         TEXT("group,cap_w\ra,300\r"),
         NULL,
         WW_ERR_INVALID,
         {"line 1:", "lone carriage return at byte 12", "tr '\\r' '\\n'"}},
	{"semicolons",
         TEXT("group;cap_w;power_w;throughput_tps\na;300;290,5;10\n"),
         NULL,
         WW_ERR_INVALID,
         {"line 1:", "separated by ';'", "tr ',;' '.,'"}},
	{"tabs",
         TEXT("group\tcap_w\tpower_w\tthroughput_tps\na\t300\t290\t10\n"),
         NULL,
         WW_ERR_INVALID,
         {"line 1:", "separated by tabs", "tr '\\t' ','"}},
	{"tab in a cell",
         TEXT(OWN "a\tb,300,290,10\n"),
         NULL,
         WW_ERR_INVALID,
         {"line 2:", "column 1: a tab inside the cell", "commas only"}},
	{"tabs beside a comma", TEXT("group\tcap_w\tx, y\n"), NULL, WW_ERR_INVALID, {"line 1:", "column 1: a tab"}},
	{"open quote",
         TEXT(OWN "\"a,300,290,10\n" ROW),
         NULL,
         WW_ERR_INVALID,
         {"line 2:", "column 1", "quote is not closed"}},
	{"open quote at the end",
         TEXT(OWN "a,300,290,\"10"),
         NULL,
         WW_ERR_INVALID,
         {"line 2:", "column 4", "close it"}},
	{"text behind a quote",
         TEXT(OWN "\"a\"b,300,290,10\n"),
         NULL,
         WW_ERR_INVALID,
         {"line 2:", "column 1", "behind the closing quote", "quote the whole cell"}},
	{"quote inside",
         TEXT(OWN "5\" disk,300,290,10\n"),
         NULL,
         WW_ERR_INVALID,
         {"line 2:", "column 1", "quote inside", "quote the whole cell"}},
	{"too few cells",
         TEXT(OWN ROW "a,200,190\n"),
         NULL,
         WW_ERR_INVALID,
         {"line 3:", "3 cells", "4 columns", "empty cells"}},
	{"decimal comma as a cell",
         TEXT(OWN "a,300,290,5,10\n"),
         NULL,
         WW_ERR_INVALID,
         {"line 2:", "5 cells", "4 columns", "decimal points"}},
	{"future version",
         TEXT("# wattweir sweep 2\n" OWN ROW),
         NULL,
         WW_ERR_UNSUPPORTED,
         {"line 1:", "'2'", "format 1"}},
	{"future version behind a tab",
         TEXT("#wattweir\tsweep\t2\n" OWN ROW),
         NULL,
         WW_ERR_UNSUPPORTED,
         {"line 1:", "'2'", "format 1"}},
	{"version that is no number",
         TEXT("# wattweir sweep v1\n" OWN ROW),
         NULL,
         WW_ERR_UNSUPPORTED,
         {"line 1:", "'v1'", "format 1"}},
	{"another kind",
         TEXT("# wattweir scenario 1\n" OWN ROW),
         NULL,
         WW_ERR_INVALID,
         {"line 1:", "a wattweir scenario"}},
};

static const struct mistake column_mistakes[] = {
	{"no cap",
         TEXT("group,power_w,throughput_tps\na,1,2\n"),
         NULL,
         WW_ERR_INVALID,
         {"line 1:", "column 'cap_w' of the wattweir format is missing", "--map",
          "found: group, power_w, throughput_tps"}},
	{"no group", TEXT("cap_w,power_w,throughput_tps\n"), NULL, WW_ERR_INVALID, {"line 1:", "'group'", "missing"}},
	{"no power", TEXT("group,cap_w,throughput_tps\n"), NULL, WW_ERR_INVALID, {"line 1:", "'power_w'", "missing"}},
	{"no throughput",
         TEXT("# wattweir sweep 1\na,b\n"),
         NULL,
         WW_ERR_INVALID,
         {"line 2:", "'group'", "found: a, b"}},
	{"no Zeus limit",
         TEXT("dataset,network,batch_size,optimizer,time_per_epoch,average_power\n"),
         NULL,
         WW_ERR_INVALID,
         {"line 1:", "column 'power_limit' of the zeus format is missing"}},
	{"no Emerald cap",
         TEXT("Workload,throughput,power per GPU\n"),
         NULL,
         WW_ERR_INVALID,
         {"line 1:", "column 'GPU power cap' of the emerald format is missing"}},
	{"unknown table",
         TEXT("model,limit\nx,1\n"),
         NULL,
         WW_ERR_INVALID,
         {"line 1:", "no known format: model, limit;", "--map throughput=COLUMN,power=COLUMN,cap=COLUMN,group=COLUMN"}},
	{"twice",
         TEXT("group,cap_w,power_w,throughput_tps,cap_w\n"),
         NULL,
         WW_ERR_INVALID,
         {"line 1:", "'cap_w' stands twice (columns 2 and 5)", "rename or remove"}},
	{"telemetry twice",
         TEXT("group,cap_w,power_w,throughput_tps,x_w,x_w\n"),
         NULL,
         WW_ERR_INVALID,
         {"line 1:", "'x_w' stands twice (columns 5 and 6)"}},
	{"Zeus column twice",
         TEXT("power_limit," ZEUS),
         NULL,
         WW_ERR_INVALID,
         {"line 1:", "'power_limit' stands twice (columns 1 and 6)"}},
	{"no unit",
         TEXT("group,cap_w,power_w,throughput_tps,clock\n"),
         NULL,
         WW_ERR_INVALID,
         {"line 1:", "column 'clock' is unknown; rename it to end in the unit", "_mhz",
          "ignored: --map group=group,cap=cap_w,power=power_w,throughput=throughput_tps"}},
	{"only a unit",
         TEXT("group,cap_w,power_w,throughput_tps,_w\n"),
         NULL,
         WW_ERR_INVALID,
         {"line 1:", "'_w' is unknown"}},
	{"no name",
         TEXT("group,cap_w,power_w,throughput_tps,\n"),
         NULL,
         WW_ERR_INVALID,
         {"line 1:", "column 5 has no name", "remove it", "ignored: --map group=group,cap=cap_w,power"}},
	{"no name beside repetitions",
         TEXT("," REP),
         NULL,
         WW_ERR_INVALID,
         {"line 1:", "column 1 has no name", "throughput=throughput_tps,rep=rep"}},
	{"a cluster file",
         TEXT("rows:\n  - name: room\n"),
         NULL,
         WW_ERR_INVALID,
         {"line 1:", "looks like a cluster file", "swap the arguments", "--cluster"}},
	{"a cluster file's mark",
         TEXT("# wattweir cluster 1\njobs: [{job: a, gpus: 1}]\n"),
         NULL,
         WW_ERR_INVALID,
         {"line 1:", "looks like a cluster file", "swap the arguments"}},
};

static const struct mistake cell_mistakes[] = {
	{"text",
         TEXT(OWN ROW "a,200,abc,10\n"),
         NULL,
         WW_ERR_INVALID,
         {"line 3:", "'power_w'", "'abc' is not a number", "write"}},
	{"unit",
         TEXT(OWN "a,300 W,290,10\n"),
         NULL,
         WW_ERR_INVALID,
         {"line 2:", "'cap_w'", "'300 W'", "without a unit"}},
	{"hexadecimal", TEXT(OWN "a,0x12C,290,10\n"), NULL, WW_ERR_INVALID, {"line 2:", "'cap_w'", "not a number"}},
	{"decimal comma",
         TEXT(OWN "a,300,\"290,5\",10\n"),
         NULL,
         WW_ERR_INVALID,
         {"line 2:", "'power_w'", "'290,5' has a comma", "decimal point"}},
	{"empty power",
         TEXT(OWN "a,300,,10\n"),
         NULL,
         WW_ERR_INVALID,
         {"line 2:", "'power_w' is empty", "write a number"}},
	{"blank cap", TEXT(OWN "a,  ,290,10\n"), NULL, WW_ERR_INVALID, {"line 2:", "'cap_w' is empty"}},
	{"empty group",
         TEXT(OWN ",300,290,10\n"),
         NULL,
         WW_ERR_INVALID,
         {"line 2:", "'group' is empty", "name the job"}},
	{"row of commas",
         TEXT(OWN ROW ",,,\n"),
         NULL,
         WW_ERR_INVALID,
         {"line 3:", "nothing but commas", "remove the line"}},
	{"negative power",
         TEXT(OWN "a,300,-290,10\n"),
         NULL,
         WW_ERR_RANGE,
         {"line 2:", "'power_w'", "'-290' must be above 0"}},
	{"zero power", TEXT(OWN "a,300,0,10\n"), NULL, WW_ERR_RANGE, {"line 2:", "'power_w'", "'0'", "mean draw"}},
	{"NaN power",
         TEXT(OWN "a,300,nan,10\n"),
         NULL,
         WW_ERR_INVALID,
         {"line 2:", "'power_w'", "not a finite", "remove the row"}},
	{"endless power", TEXT(OWN "a,300,inf,10\n"), NULL, WW_ERR_INVALID, {"line 2:", "'power_w'", "not a finite"}},
	{"overflow", TEXT(OWN "a,300,1e999,10\n"), NULL, WW_ERR_INVALID, {"line 2:", "'power_w'", "not a finite"}},
	{"milliwatts",
         TEXT(OWN "a,300000,290,10\n"),
         NULL,
         WW_ERR_RANGE,
         {"line 2:", "'cap_w'", "100000 watts", "in watts"}},
	{"negative cap",
         TEXT(OWN "a,-300,290,10\n"),
         NULL,
         WW_ERR_RANGE,
         {"line 2:", "'cap_w'", "'-300' must be above 0"}},
	{"zero cap", TEXT(OWN "a,0,290,10\n"), NULL, WW_ERR_RANGE, {"line 2:", "'cap_w'", "'0' must be above 0"}},
	{"zero throughput",
         TEXT(OWN "a,300,290,0\n"),
         NULL,
         WW_ERR_RANGE,
         {"line 2:", "'throughput_tps'", "'0' must be above 0", "remove the row if the job did not run"}},
	{"negative throughput",
         TEXT(OWN "a,300,290,-1\n"),
         NULL,
         WW_ERR_RANGE,
         {"line 2:", "'throughput_tps'", "above 0"}},
	{"zero time",
         TEXT(ZEUS "d,n,8,adam,100,0,90\n"),
         NULL,
         WW_ERR_RANGE,
         {"line 2:", "'time_per_epoch'", "time above 0"}},
	{"time without end",
         TEXT(ZEUS "d,n,8,adam,100,1e-320,90\n"),
         NULL,
         WW_ERR_RANGE,
         {"line 2:", "'time_per_epoch'"}},
	{"no optimizer", TEXT(ZEUS "d,n,8,,100,1,90\n"), NULL, WW_ERR_INVALID, {"line 2:", "'optimizer' is empty"}},
	{"same cap",
         TEXT(OWN ROW "b,300,290,10\na,300.0,280,9\n"),
         NULL,
         WW_ERR_INVALID,
         {"line 4:", "'cap_w': cap 300.0 W of group 'a' is already on line 2", "in a column 'rep'", "remove one row"}},
	{"same cap in Zeus",
         TEXT(ZEUS "d,n,8,adam,100,1,90\nd,n,8,adam,100,1,91\n"),
         NULL,
         WW_ERR_INVALID,
         {"line 3:", "'power_limit'", "'d/n/8/adam' is already on line 2", "--map ...,rep=COLUMN"}},
	{"same repetition",
         TEXT(REP "a,300,1,290,10\na,300,2,290,10\n\na,300,1,291,10\n"),
         NULL,
         WW_ERR_INVALID,
         {"line 5:", "cap 300 W, repetition 1 of group 'a' is already on line 2", "number the repetitions 1, 2, 3"}},
	{"minus zero",
         TEXT(REP "a,300,0,290,10\na,300,-0,290,10\n"),
         NULL,
         WW_ERR_INVALID,
         {"line 3:", "already on line 2"}},
	{"half a repetition",
         TEXT(REP "a,300,1.5,290,10\n"),
         NULL,
         WW_ERR_RANGE,
         {"line 2:", "'rep'", "whole number", "1, 2, 3"}},
	{"two points",
         TEXT(OWN "a,300,290,1.210.5\n"),
         NULL,
         WW_ERR_INVALID,
         {"line 2:", "'throughput_tps'", "'1.210.5' has separators between its digits", "one decimal point"}},
	{"thousands apart", TEXT(OWN "a,300,290,1 210\n"), NULL, WW_ERR_INVALID, {"line 2:", "'1 210' has separators"}},
	{"no repetition", TEXT(REP "a,300,,290,10\n"), NULL, WW_ERR_INVALID, {"line 2:", "'rep' is empty"}},
};

static const struct mistake proportion_mistakes[] = {
	{"power of eight GPUs",
         TEXT(OWN "b,300,290,10\na,100,121,5\na,300,2320,10\n"),
         NULL,
         WW_ERR_RANGE,
         {"line 4:", "column 'power_w': 2320 W under a cap of 300 W", "the job's total? it is per GPU",
          "divide by gpus"}},
	{"power of two GPUs", TEXT(OWN "a,300,450.1,10\n"), NULL, WW_ERR_RANGE, {"line 2:", "divide by gpus"}},
	{"second repetition", TEXT(REP "a,300,1,290,9\na,300,2,580,9\n"), NULL, WW_ERR_RANGE, {"line 3:", "gpus"}},
	{"kilowatts",
         TEXT(FOREIGN "m,x,300,0.29,5\n"),
         MAP,
         WW_ERR_RANGE,
         {"line 2:", "column 'draw': 0.29 W under a cap of 300 W", "kilowatts? write", "in watts"}},
	{"thousands separator lost",
         TEXT(OWN "a,300,290,1.210\na,100,99,600\na,200,199,998\n"),
         NULL,
         WW_ERR_RANGE,
         {"line 2:", "'throughput_tps': 1.21, but 998", "on line 4", "thousands separator lost?"}},
	{"separator lost in a time",
         TEXT(FOREIGN "m,x,300,290,998\nm,x,200,199,1.210\n"),
         MAP,
         WW_ERR_RANGE,
         {"line 3:", "'secs': 1.21, but 998", "on line 2", "thousands separator lost?"}},
};

/* Deep caps that the board exceeds, an idle draw at the highest cap, and jumps that the power explains. */
static void odd_but_possible_rows_are_read(void **state)
{
	static const char *const texts[] = {
		OWN "a,300,450,10\na,100,240,9\n",    OWN "a,300,3,10\n",
		OWN "a,300,290,1000\na,200,199,10\n", OWN "a,300,290,1000\na,200,58,9\n",
		OWN "b,300,290,1000\na,300,290,1\n",
	};
	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		struct ww_sweep sweep;
		struct ww_error err = {WW_OK, ""};
		if (parse(texts[i], strlen(texts[i]), NULL, &sweep, &err) != WW_OK)
			fail_msg("text %zu: %s", i, err.text);
		ww_sweep_finish(&sweep);
	}
}

static void a_map_is_checked_alone(void **state)
{
	struct ww_error err = {WW_OK, ""};
	(void)state;
	assert_int_equal(ww_sweep_check_map(MAP, &err), WW_OK);
	assert_int_equal(ww_sweep_check_map("cap=limit", &err), WW_ERR_INVALID);
	assert_non_null(strstr(err.text, "--map: key 'group' is missing"));
}

static const struct mistake optional_mistakes[] = {
	{"negative power error",
         TEXT("power_se_w," OWN "-1," ROW),
         NULL,
         WW_ERR_RANGE,
         {"line 2:", "'power_se_w'", "0 or more", "leave the cell empty"}},
	{"negative throughput error",
         TEXT("throughput_se_tps," OWN "-1e-9," ROW),
         NULL,
         WW_ERR_RANGE,
         {"line 2:", "'throughput_se_tps'", "0 or more"}},
	{"text as error",
         TEXT("power_se_w," OWN "N/A," ROW),
         NULL,
         WW_ERR_INVALID,
         {"line 2:", "'power_se_w'", "'N/A'"}},
	{"no GPUs", TEXT("gpus," OWN "0," ROW), NULL, WW_ERR_RANGE, {"line 2:", "'gpus'", "whole number from 1"}},
	{"part of a GPU", TEXT("gpus," OWN "0.5," ROW), NULL, WW_ERR_RANGE, {"line 2:", "'gpus'", "number of GPUs"}},
	{"too many GPUs", TEXT("gpus," OWN "1e10," ROW), NULL, WW_ERR_RANGE, {"line 2:", "'gpus'"}},
	{"GPU counts",
         TEXT("gpus," OWN "," ROW "8,a,200,190,8\n4,a,100,90,6\n"),
         NULL,
         WW_ERR_INVALID,
         {"line 4:", "'gpus': '4', but '8'", "on line 3", "another group"}},
	{"GPU models",
         TEXT("gpu_model," OWN "A100," ROW "H100,a,200,190,8\n"),
         NULL,
         WW_ERR_INVALID,
         {"line 3:", "'gpu_model': 'H100', but 'A100'", "on line 2", "another group"}},
	{"mask of text",
         TEXT("throttle_reasons," OWN "SwPowerCap," ROW),
         NULL,
         WW_ERR_RANGE,
         {"line 2:", "'throttle_reasons'", "bit mask like 4 or 0x4", "leave the cell empty"}},
	{"mask without figures", TEXT("throttle_reasons," OWN "0x," ROW), NULL, WW_ERR_RANGE, {"'throttle_reasons'"}},
	{"negative mask", TEXT("throttle_reasons," OWN "-4," ROW), NULL, WW_ERR_RANGE, {"'throttle_reasons'"}},
	{"mask with a fraction", TEXT("throttle_reasons," OWN "4.0," ROW), NULL, WW_ERR_RANGE, {"'throttle_reasons'"}},
	{"wide mask", TEXT("throttle_reasons," OWN "0x8000000000000000," ROW), NULL, WW_ERR_RANGE, {"below 2^63"}},
	{"signed hexadecimal", TEXT("throttle_reasons," OWN "0x-4," ROW), NULL, WW_ERR_RANGE, {"'throttle_reasons'"}},
	{"text as telemetry",
         TEXT("sm_clock_mhz," OWN "1410," ROW "fast,a,200,190,8\n"),
         NULL,
         WW_ERR_INVALID,
         {"line 3:", "'sm_clock_mhz'", "'fast' is not a number"}},
	{"endless telemetry", TEXT("x_j," OWN "inf," ROW), NULL, WW_ERR_INVALID, {"line 2:", "'x_j'", "not a finite"}},
};

static const struct mistake map_mistakes[] = {
	{"no map key",
         TEXT(FOREIGN),
         "power=draw,cap=limit,group=model",
         WW_ERR_INVALID,
         {"--map: key 'throughput' is missing", "use --map throughput=COLUMN"}},
	{"no group",
         TEXT(FOREIGN),
         "throughput=secs,power=draw,cap=limit",
         WW_ERR_INVALID,
         {"--map: key 'group' is missing"}},
	{"empty map", TEXT(FOREIGN), "", WW_ERR_INVALID, {"--map: a part has no '='", "use --map"}},
	{"repeated key", TEXT(FOREIGN), MAP ",cap=draw", WW_ERR_INVALID, {"--map: key 'cap' is given twice", "once"}},
	{"repeated group",
         TEXT(FOREIGN),
         MAP ",group=gpu",
         WW_ERR_INVALID,
         {"--map: key 'group' is given twice", "'+'"}},
	{"unknown key",
         TEXT(FOREIGN),
         MAP ",watts=draw",
         WW_ERR_INVALID,
         {"--map: unknown key 'watts'", "throughput, power, cap"}},
	{"no value",
         TEXT(FOREIGN),
         "throughput=,power=draw,cap=limit,group=model",
         WW_ERR_INVALID,
         {"--map: no column behind 'throughput='"}},
	{"no time",
         TEXT(FOREIGN),
         "throughput=1/,power=draw,cap=limit,group=model",
         WW_ERR_INVALID,
         {"no column behind"}},
	{"hanging plus", TEXT(FOREIGN), MAP "+", WW_ERR_INVALID, {"--map: no column behind 'group='"}},
	{"17 columns of a group",
         TEXT(FOREIGN),
         MAP "+b+c+d+e+f+g+h+i+j+k+l+m+n+o+p+q",
         WW_ERR_INVALID,
         {"--map: more than 16 columns for 'group'", "name fewer"}},
	{"hanging comma", TEXT(FOREIGN), MAP ",", WW_ERR_INVALID, {"--map: a part has no '='"}},
	{"open quote", TEXT(FOREIGN), "throughput=\"secs", WW_ERR_INVALID, {"--map: a quote is not closed"}},
	{"text behind a quote",
         TEXT(FOREIGN),
         "throughput=\"secs\"x,power=draw",
         WW_ERR_INVALID,
         {"text behind a quoted"}},
	{"error of a time",
         TEXT(FOREIGN),
         MAP ",throughput_se=gpu",
         WW_ERR_INVALID,
         {"throughput_se", "1/COLUMN", "leave it out"}},
	{"one column for two",
         TEXT(FOREIGN),
         "throughput=1/secs,power=limit,cap=limit,group=model",
         WW_ERR_INVALID,
         {"--map: column 'limit' is given for both 'cap' and 'power'", "one column for each"}},
	{"unknown column",
         TEXT(FOREIGN),
         "throughput=1/secs,power=watts,cap=limit,group=model",
         WW_ERR_INVALID,
         {"t.csv: line 1:", "no column 'watts' for --map", "the columns are: model, gpu, limit, draw, secs"}},
	{"unknown group column", TEXT(FOREIGN), MAP "+size", WW_ERR_INVALID, {"no column 'size' for --map"}},
	{"ambiguous column",
         TEXT("draw," FOREIGN),
         MAP,
         WW_ERR_INVALID,
         {"line 1:", "'draw' stands twice (columns 1 and 5)"}},
	{"other separator", TEXT("model;gpu;limit;draw;secs\n"), MAP, WW_ERR_INVALID, {"line 1:", "separated by ';'"}},
	{"same cap",
         TEXT(FOREIGN "a,x,100,90,2\na,x,100,90,2\n"),
         MAP,
         WW_ERR_INVALID,
         {"line 3:", "'limit'", "line 2", "rep=COLUMN"}},
	{"names that join alike",
         TEXT(FOREIGN "a/b,c,100,90,2\na,b/c,200,90,2\n"),
         MAP "+gpu",
         WW_ERR_INVALID,
         {"line 3:", "'model'", "line 2", "rename"}},
};

#define CHECK_ALL(table)                                                                                               \
	(void)state;                                                                                                   \
	for (size_t i = 0; i < sizeof(table) / sizeof(table)[0]; i++)                                                  \
	check_mistake(&(table)[i])

static void file_mistakes_are_named(void **state)
{
	CHECK_ALL(file_mistakes);
}

static void column_mistakes_are_named(void **state)
{
	CHECK_ALL(column_mistakes);
}

static void cell_mistakes_are_named(void **state)
{
	CHECK_ALL(cell_mistakes);
}

static void optional_mistakes_are_named(void **state)
{
	CHECK_ALL(optional_mistakes);
}

static void proportion_mistakes_are_named(void **state)
{
	CHECK_ALL(proportion_mistakes);
}

static void map_mistakes_are_named(void **state)
{
	CHECK_ALL(map_mistakes);
}

/* 50 kB of a character of three bytes in one cell. */
static void long_cells_are_shortened(void **state)
{
	static char cell[50001], text[60000];
	struct ww_sweep sweep;
	struct ww_error err;
	(void)state;
	for (size_t i = 0; i + 3 < sizeof cell; i++)
		cell[i] = "\xE2\x82\xAC"[i % 3];
	size_t size = (size_t)snprintf(text, sizeof text, OWN "a,300,%.49998s,10\n", cell);
	assert_int_equal(parse(text, size, NULL, &sweep, &err), WW_ERR_INVALID);
	assert_non_null(strstr(err.text, "\xE2\x82\xAC...' is not a number; write digits only"));
	check_one_line(err.text);
	assert_true(strlen(err.text) < 200);
}

static void long_names_are_refused(void **state)
{
	char text[1024];
	struct ww_sweep sweep;
	struct ww_error err;
	(void)state;
	for (int length = 512; length <= 513; length++) {
		size_t size = (size_t)snprintf(text, sizeof text, OWN "%0*d,300,290,10\n", length, 1);
		ww_status status = parse(text, size, NULL, &sweep, &err);
		assert_int_equal(status, length == 512 ? WW_OK : WW_ERR_INVALID);
		if (status == WW_OK)
			ww_sweep_finish(&sweep);
	}
	assert_non_null(strstr(err.text, "longer than 512 bytes; shorten it"));
}

static void long_models_are_refused(void **state)
{
	char text[1024];
	struct ww_sweep sweep;
	struct ww_error err;
	(void)state;
	size_t size = (size_t)snprintf(text, sizeof text, "gpu_model," OWN "%0513d," ROW, 1);
	assert_int_equal(parse(text, size, NULL, &sweep, &err), WW_ERR_INVALID);
	assert_non_null(strstr(err.text, "t.csv: line 2: column 'gpu_model'"));
	assert_non_null(strstr(err.text, "shorten it"));
}

/* What makes a line long is named, where it can be seen. */
static void long_lines_are_explained(void **state)
{
	static char text[70000];
	struct ww_sweep sweep;
	struct ww_error err;
	(void)state;
	memset(text, 'x', sizeof text);
	text[sizeof OWN - 2] = '\r';
	assert_int_equal(parse(text, sizeof text, NULL, &sweep, &err), WW_ERR_INVALID);
	assert_non_null(strstr(err.text, "line 1: lone carriage return; convert"));
	text[sizeof OWN - 2] = '\0';
	assert_int_equal(parse(text, sizeof text, NULL, &sweep, &err), WW_ERR_INVALID);
	assert_non_null(strstr(err.text, "line 1: NUL bytes"));
}

static void hostile_maps_stay_one_line(void **state)
{
	char map[5000];
	struct ww_sweep sweep;
	struct ww_error err;
	(void)state;
	snprintf(map, sizeof map, "%4999d", 1);
	assert_int_equal(parse(TEXT(FOREIGN), map, &sweep, &err), WW_ERR_INVALID);
	assert_non_null(strstr(err.text, "longer than 4095"));
	snprintf(map, sizeof map, "a\x1B\xFF=%4000d", 1);
	assert_int_equal(parse(TEXT(FOREIGN), map, &sweep, &err), WW_ERR_INVALID);
	assert_non_null(strstr(err.text, "unknown key 'a\?\?'"));
	check_one_line(err.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(file_mistakes_are_named),       cmocka_unit_test(column_mistakes_are_named),
		cmocka_unit_test(cell_mistakes_are_named),       cmocka_unit_test(optional_mistakes_are_named),
		cmocka_unit_test(map_mistakes_are_named),        cmocka_unit_test(long_cells_are_shortened),
		cmocka_unit_test(long_names_are_refused),        cmocka_unit_test(long_models_are_refused),
		cmocka_unit_test(proportion_mistakes_are_named), cmocka_unit_test(odd_but_possible_rows_are_read),
		cmocka_unit_test(a_map_is_checked_alone),        cmocka_unit_test(long_lines_are_explained),
		cmocka_unit_test(hostile_maps_stay_one_line),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
