/* SPDX-License-Identifier: Apache-2.0 */
/* Every mistake in a cluster file is one line with file, line, field and remedy, and leaves nothing read. */
#include "assert_near.h"
#include "cluster_text.h"

#include <errno.h>
#include <string.h>

#define SWAP "swap the arguments: the sweep is FILE, the cluster file stands behind --cluster"

struct mistake {
	const char *name, *text;
	size_t size;
	ww_status code;
	const char *line; /* behind "t.yaml: " */
};

static void check_mistake(const struct mistake *m)
{
	struct ww_cluster cluster, untouched;
	struct ww_error err = {WW_OK, ""};
	memset(&cluster, 0xA5, sizeof cluster);
	memset(&untouched, 0xA5, sizeof untouched);
	ww_status status = parse(m->text, m->size, &cluster, &err);
	if (status == WW_OK)
		fail_msg("%s: was read", m->name);
	if (strncmp(err.text, "t.yaml: ", 8) != 0 || strcmp(err.text + 8, m->line) != 0)
		fail_msg("%s: %s", m->name, err.text);
	assert_int_equal(status, m->code);
	assert_int_equal(err.code, m->code);
	assert_memory_equal(&cluster, &untouched, sizeof cluster);
	assert_int_equal(parse(m->text, m->size, &cluster, NULL), m->code);
}

#define CHECK_ALL(mistakes)                                                                                            \
	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes)[0]; i++)                                            \
	check_mistake(&(mistakes)[i])

/* What stands around the keys. */
static const struct mistake file_mistakes[] = {
	{"empty", TEXT(""), WW_ERR_NO_DATA, "line 1: the file is empty; see wattweir-cluster(5) for what it holds"},
	{"only comments", TEXT("# a\n\n# b\n"), WW_ERR_NO_DATA,
         "line 1: the file is empty; see wattweir-cluster(5) for what it holds"},
	{"only a mark", TEXT("\xEF\xBB\xBF"), WW_ERR_NO_DATA,
         "line 1: the file is empty; see wattweir-cluster(5) for what it holds"},
	{"an empty document", TEXT("---\n"), WW_ERR_NO_DATA,
         "line 1: the file is empty; see wattweir-cluster(5) for what it holds"},
	{"null", TEXT("~\n"), WW_ERR_NO_DATA, "line 1: the file is empty; see wattweir-cluster(5) for what it holds"},
	{"a list", TEXT("- a\n"), WW_ERR_INVALID,
         "line 1: the file holds no keys with values; see wattweir-cluster(5) for what it holds"},
	{"a text", TEXT("text\n"), WW_ERR_INVALID,
         "line 1: the file holds no keys with values; see wattweir-cluster(5) for what it holds"},
	{"second document", TEXT(SITE JOB "---\n" JOB), WW_ERR_INVALID,
         "line 8: a second document begins here; keep one document per file"},
	{"second document without a mark", TEXT(SITE JOB "...\nx: 1\n"), WW_ERR_INVALID,
         "line 9: not YAML at column 1: did not find expected <document start>; keep one document per file"},
	{"later YAML", TEXT("%YAML 3.0\n---\n" SITE JOB), WW_ERR_INVALID,
         "line 1: not YAML at column 1: found incompatible YAML document; remove the line that begins with %YAML"},
	{"future version", TEXT("# wattweir cluster 2\n" SITE JOB), WW_ERR_UNSUPPORTED,
         "line 1: cluster format '2' is unknown; this program reads format 1: use a newer one"},
	{"a version that is no number", TEXT("# wattweir cluster v2\n" SITE JOB), WW_ERR_UNSUPPORTED,
         "line 1: cluster format 'v2' is unknown; this program reads format 1: use a newer one"},
	{"a version that begins with 1", TEXT("# wattweir cluster 1x\n" SITE JOB), WW_ERR_UNSUPPORTED,
         "line 1: cluster format '1x' is unknown; this program reads format 1: use a newer one"},
	{"future version below", TEXT("\n# site 3\n# wattweir cluster 1.1\n" SITE JOB), WW_ERR_UNSUPPORTED,
         "line 3: cluster format '1.1' is unknown; this program reads format 1: use a newer one"},
	{"another kind", TEXT("# wattweir sweep 1\na,b\n"), WW_ERR_INVALID,
         "line 1: looks like a sweep, not a cluster file; " SWAP},
	{"yet another kind", TEXT("# wattweir scenario 1\na: b\n"), WW_ERR_INVALID,
         "line 1: the file calls itself a wattweir scenario, not a cluster; name another file"},
	{"a sweep", TEXT("# site: lab\n\ngroup,cap_w,power_w\na: b,300,290\n"), WW_ERR_INVALID,
         "line 3: looks like a sweep, not a cluster file; " SWAP},
	{"a sweep with quotes", TEXT("\"group\",\"cap_w\"\na,300\n"), WW_ERR_INVALID,
         "line 1: looks like a sweep, not a cluster file; " SWAP},
	{"UTF-16 with mark", TEXT("\xFF\xFEr\x00"), WW_ERR_INVALID,
         "line 1: the file is UTF-16, not UTF-8; save it as UTF-8, or run iconv -f UTF-16 -t UTF-8"},
	{"UTF-16 BE", TEXT("\x00r\x00o"), WW_ERR_INVALID,
         "line 1: the file is UTF-16, not UTF-8; save it as UTF-8, or run iconv -f UTF-16 -t UTF-8"},
	{"gzip", TEXT("\x1F\x8B\x08"), WW_ERR_INVALID,
         "line 1: the file is compressed, not YAML text; run gunzip first"},
	{"Latin-1", TEXT("rows: \xE9\n"), WW_ERR_INVALID,
         "line 1: byte 7 (0xE9) is not UTF-8; save the file as UTF-8, or run iconv -f LATIN1 -t UTF-8"},
	{"NUL", TEXT("rows: \x00\n"), WW_ERR_INVALID,
         "line 1: NUL byte at byte 7: the file is not YAML text; save it as UTF-8"},
	{"escape", TEXT("rows: \x1B[2J\n"), WW_ERR_INVALID, "line 1: control character 0x1B at byte 7; remove it"},
	{"C1 control", TEXT("rows: \xC2\x85\n"), WW_ERR_INVALID,
         "line 1: invisible control character at byte 7; remove it"},
	{"old Macintosh", TEXT("rows:\r- a\r"), WW_ERR_INVALID,
         "line 1: lone carriage return at byte 6; convert the line ends with tr '\\r' '\\n'"},
	{"tab as indentation", TEXT("rows:\n\t- name: a\n"), WW_ERR_INVALID,
         "line 2: a tab in the indentation; indent with spaces"},
	{"tab behind blanks", TEXT("rows:\n  \t- name: a\n"), WW_ERR_INVALID,
         "line 2: a tab in the indentation; indent with spaces"},
	{"mark inside a key", TEXT("a\xEF\xBB\xBF: b\n"), WW_ERR_INVALID,
         "line 1: invisible control character at byte 2; remove it"},
	{"anchor", TEXT("a: &x [1]\nb: *x\n"), WW_ERR_INVALID,
         "line 1: a: anchors (&name) are not read; write the value where it is needed"},
	{"anchor of a text", TEXT(SITE "jobs:\n  - job: a\n    gpus: 8\n    on: &x site\n"), WW_ERR_INVALID,
         "line 7: on: anchors (&name) are not read; write the value where it is needed"},
	{"anchor of a mapping", TEXT("rows:\n  - &r {name: a}\n  - *r\n"), WW_ERR_INVALID,
         "line 2: anchors (&name) are not read; write the value where it is needed"},
	{"alias", TEXT(SITE "jobs:\n  - job: a\n    gpus: 8\n    on: *x\n"), WW_ERR_INVALID,
         "line 7: on: aliases (*name) are not read; write the value, or put the text in quotes"},
	{"tag", TEXT(SITE "jobs:\n  - job: a\n    gpus: 8\n    on: !!str site\n"), WW_ERR_INVALID,
         "line 7: on: tags (!name) are not read; remove it, or put a text that begins with ! in quotes"},
	{"tag of a list", TEXT("rows: !x []\n"), WW_ERR_INVALID,
         "line 1: rows: tags (!name) are not read; remove it, or put a text that begins with ! in quotes"},
	{"merge key", TEXT(SITE "    <<: {limit: 1 W}\n" JOB), WW_ERR_INVALID,
         "line 4: row 'site': <<: unknown key; the keys here are name, limit, fixed, on"},
	{"list as key", TEXT("? [a]\n: b\n"), WW_ERR_INVALID,
         "line 1: a key must be one word; put a text that begins with { or [ in quotes"},
	{"mapping as key", TEXT("{a: b}: c\n"), WW_ERR_INVALID,
         "line 1: a key must be one word; put a text that begins with { or [ in quotes"},
	{"empty key", TEXT("'': x\n"), WW_ERR_INVALID, "line 1: a key is empty; write 'key: value'"},
	{"no key", TEXT(": x\n"), WW_ERR_INVALID,
         "line 1: not YAML at column 1: did not find expected key; begin the keys of one entry below each other, and "
         "close brackets and quotes"},
	{"deep", TEXT("a: [[[[[[[[[[[[[[[[["), WW_ERR_INVALID,
         "line 1: nested too deeply; check the brackets and the indentation"},
	{"deep blocks", TEXT("- - - - - - - - - - - - - - - - - - - - "), WW_ERR_INVALID,
         "line 1: nested too deeply; check the brackets and the indentation"},
	{"open quote", TEXT(SITE "  - name: 'open\n" JOB), WW_ERR_INVALID,
         "line 4: what begins here is not YAML up to line 9: found unexpected end of stream; close the quote"},
	{"open bracket", TEXT(SITE "  - {name: a, limit: 5 kW\n" JOB), WW_ERR_INVALID,
         "line 4: what begins here is not YAML up to line 5: did not find expected ',' or '}'; close the bracket, and "
         "separate its items by commas"},
	{"indented too far", TEXT(SITE "   - name: x\n" JOB), WW_ERR_INVALID,
         "line 4: not YAML at column 4: did not find expected '-' indicator; begin the entries of one list below each "
         "other, each with '- '"},
	{"indented too little", TEXT(SITE " - name: x\n" JOB), WW_ERR_INVALID,
         "line 4: not YAML at column 2: did not find expected key; begin the keys of one entry below each other, and "
         "close brackets and quotes"},
	{"colon in a name", TEXT(SITE "  - name: a: b\n" JOB), WW_ERR_INVALID,
         "line 4: not YAML at column 12: mapping values are not allowed in this context; check the indentation, and "
         "put a text that holds ': ' in quotes"},
	{"reserved sign", TEXT(SITE "  - name: @a\n" JOB), WW_ERR_INVALID,
         "line 4: not YAML at column 11: found character that cannot start any token; put a text that begins with % @ "
         "` or a tab in quotes"},
	{"no colon", TEXT(SITE "  limit 5\n" JOB), WW_ERR_INVALID,
         "line 5: not YAML at column 1: could not find expected ':'; write 'key: value', with a space behind the "
         "colon"},
};

static void file_mistakes_are_named(void **state)
{
	(void)state;
	CHECK_ALL(file_mistakes);
}

/* Keys and forms. */
static const struct mistake key_mistakes[] = {
	{"no jobs", TEXT(SITE), WW_ERR_INVALID, "line 1: jobs: is missing; write a list with '- ' before each entry"},
	{"jobs empty", TEXT(SITE "jobs:\n"), WW_ERR_INVALID,
         "line 4: jobs: is empty; write a list with '- ' before each entry"},
	{"jobs without items", TEXT(SITE "jobs: []\n"), WW_ERR_INVALID,
         "line 4: jobs: is empty; write a list with '- ' before each entry"},
	{"jobs a mapping", TEXT(SITE "jobs: {a: b}\n"), WW_ERR_INVALID,
         "line 4: jobs: is keys with values, not a list; write a list with '- ' before each entry"},
	{"rows empty", TEXT("rows:\n" JOB), WW_ERR_INVALID,
         "line 1: rows: is empty; write a list with '- ' before each entry, or remove the key"},
	{"rows a text", TEXT("rows: 5\n" JOB), WW_ERR_INVALID,
         "line 1: rows: is a text, not a list; write a list with '- ' before each entry"},
	{"unknown key", TEXT(SITE "limits: 5\n" JOB), WW_ERR_INVALID,
         "line 4: limits: unknown key; the keys here are rows, jobs"},
	{"capital key", TEXT("Rows:\n  - name: site\n"), WW_ERR_INVALID,
         "line 1: Rows: unknown key; the keys here are rows, jobs"},
	{"double key", TEXT(SITE JOB "jobs: 3\n"), WW_ERR_INVALID,
         "line 8: jobs: is already on line 4; remove one of them"},
	{"unknown key of a row", TEXT(SITE "    color: red\n" JOB), WW_ERR_INVALID,
         "line 4: row 'site': color: unknown key; the keys here are name, limit, fixed, on"},
	{"double key of a row", TEXT(SITE "    limit: 30 kW\n" JOB), WW_ERR_INVALID,
         "line 4: row 'site': limit: is already on line 3; remove one of them"},
	{"unknown key of a job", TEXT(SITE JOB "    nodes: 2\n"), WW_ERR_INVALID,
         "line 8: job 'a': nodes: unknown key; the keys here are job, sweep, gpus, tier, floor, weight, min, max, on"},
	{"unknown key of a place", TEXT(SITE "jobs:\n  - job: a\n    gpus: 8\n    on: [{row: site, GPUs: 4}]\n"),
         WW_ERR_INVALID, "line 7: job 'a': on 'site': GPUs: unknown key; the keys here are row, gpus"},
	{"key of a place in a row", TEXT(SITE "  - {name: r, limit: 1 kW, on: [{row: site, gpus: 4}]}\n" JOB),
         WW_ERR_INVALID, "line 4: row 'r': on 'site': gpus: unknown key; the keys here are row, part"},
	{"row is nothing", TEXT(SITE "  -\n" JOB), WW_ERR_INVALID,
         "line 4: row 2: is empty, not keys with values; the keys are name, limit, fixed, on"},
	{"row is a text", TEXT(SITE "  - r\n" JOB), WW_ERR_INVALID,
         "line 4: row 2: is a text, not keys with values; the keys are name, limit, fixed, on"},
	{"row is a list", TEXT(SITE "  - [r]\n" JOB), WW_ERR_INVALID,
         "line 4: row 2: is a list, not keys with values; the keys are name, limit, fixed, on"},
	{"row is empty", TEXT(SITE "  - {}\n" JOB), WW_ERR_INVALID, "line 4: row 2: name: is missing; write a name"},
	{"no name", TEXT(SITE "  - {limit: 5 kW}\n" JOB), WW_ERR_INVALID,
         "line 4: row 2: name: is missing; write a name"},
	{"no limit", TEXT(SITE "  - {name: r}\n" JOB), WW_ERR_INVALID,
         "line 4: row 'r': limit: is missing; write a number with its unit W, kW or MW, like 12.5 kW"},
	{"no gpus", TEXT(SITE "jobs:\n  - job: a\n    on: site\n"), WW_ERR_INVALID,
         "line 5: job 'a': gpus: is missing; write a whole number without a unit, like 2"},
	{"no job name", TEXT(SITE "jobs:\n  - gpus: 8\n    on: site\n"), WW_ERR_INVALID,
         "line 5: job 1: job: is missing; write a name"},
	{"null as a name", TEXT(SITE "  - {name: null, limit: 5 kW}\n" JOB), WW_ERR_INVALID,
         "line 4: row 2: name: is empty; write a name"},
	{"empty name", TEXT(SITE "  - {name: '', limit: 5 kW}\n" JOB), WW_ERR_INVALID,
         "line 4: row 2: name: is empty; write a name"},
	{"blank before a name", TEXT(SITE "  - {name: ' r', limit: 5 kW}\n" JOB), WW_ERR_INVALID,
         "line 4: row ' r': name: has blanks at its ends; remove them"},
	{"blank name", TEXT(SITE "  - {name: ' ', limit: 5 kW}\n" JOB), WW_ERR_INVALID,
         "line 4: row ' ': name: has blanks at its ends; remove them"},
	{"name is a list", TEXT(SITE "  - {name: [r], limit: 5 kW}\n" JOB), WW_ERR_INVALID,
         "line 4: row 2: name: is a list, not a single value; write a name"},
	{"control in a name", TEXT(SITE "  - {name: \"r\\x1b[31m\", limit: 5 kW}\n" JOB), WW_ERR_INVALID,
         "line 4: name: the text holds a tab, a line break or another control character; write it on one line"},
	{"line break in a name", TEXT(SITE "  - name: |\n      r\n    limit: 5 kW\n" JOB), WW_ERR_INVALID,
         "line 4: name: the text holds a tab, a line break or another control character; write it on one line"},
	{"NUL in a name", TEXT(SITE "  - {name: \"r\\0\", limit: 5 kW}\n" JOB), WW_ERR_INVALID,
         "line 4: name: the text holds a tab, a line break or another control character; write it on one line"},
	{"reorders text", TEXT(SITE "  - {name: \"r\\u202e\", limit: 5 kW}\n" JOB), WW_ERR_INVALID,
         "line 4: name: the text holds a tab, a line break or another control character; write it on one line"},
	{"fixed without value", TEXT(SITE "    fixed:\n" JOB), WW_ERR_INVALID,
         "line 4: row 'site': fixed: is empty; write a number with its unit W, kW or MW, like 12.5 kW, or remove the "
         "key"},
	{"fixed is ~", TEXT(SITE "    fixed: ~\n" JOB), WW_ERR_INVALID,
         "line 4: row 'site': fixed: is empty; write a number with its unit W, kW or MW, like 12.5 kW, or remove the "
         "key"},
	{"fixed is a list", TEXT(SITE "    fixed: [1 kW]\n" JOB), WW_ERR_INVALID,
         "line 4: row 'site': fixed: is a list, not a single value; write a number with its unit W, kW or MW, like "
         "12.5 kW"},
	{"weight without value", TEXT(SITE JOB "    weight:\n"), WW_ERR_INVALID,
         "line 8: job 'a': weight: is empty; write a number without a unit, like 1.5, or remove the key"},
	{"sweep without value", TEXT(SITE JOB "    sweep:\n"), WW_ERR_INVALID,
         "line 8: job 'a': sweep: is empty; write a name, or remove the key"},
	{"floor is null", TEXT(SITE JOB "    floor: null\n"), WW_ERR_INVALID,
         "line 8: job 'a': floor: is empty; write a percentage, like 30%, or remove the key"},
};

static void key_mistakes_are_named(void **state)
{
	(void)state;
	CHECK_ALL(key_mistakes);
}

/* Every number, read as text. */
static const struct mistake number_mistakes[] = {
	{"limit 60", TEXT("rows:\n  - name: site\n    limit: 60\n" JOB), WW_ERR_INVALID,
         "line 3: row 'site': limit: '60' has no unit; write a number with its unit W, kW or MW, like 12.5 kW"},
	{"limit 60 kw", TEXT("rows:\n  - name: site\n    limit: 60 kw\n" JOB), WW_ERR_INVALID,
         "line 3: row 'site': limit: '60 kw' has a unit that does not belong here; write a number with its unit W, kW "
         "or MW, like 12.5 kW"},
	{"limit 60 kVA", TEXT("rows:\n  - name: site\n    limit: 60 kVA\n" JOB), WW_ERR_INVALID,
         "line 3: row 'site': limit: '60 kVA' has a unit that does not belong here; write a number with its unit W, kW "
         "or MW, like 12.5 kW"},
	{"limit 1,5 kW", TEXT("rows:\n  - name: site\n    limit: 1,5 kW\n" JOB), WW_ERR_INVALID,
         "line 3: row 'site': limit: '1,5 kW' has a comma where a decimal point belongs; write a number with its unit "
         "W, kW or MW, like 12.5 kW"},
	{"limit nan", TEXT("rows:\n  - name: site\n    limit: nan\n" JOB), WW_ERR_INVALID,
         "line 3: row 'site': limit: 'nan' is not a finite number; write a number with its unit W, kW or MW, like 12.5 "
         "kW"},
	{"limit .inf", TEXT("rows:\n  - name: site\n    limit: .inf\n" JOB), WW_ERR_INVALID,
         "line 3: row 'site': limit: '.inf' is not a finite number; write a number with its unit W, kW or MW, like "
         "12.5 kW"},
	{"limit 1e999 W", TEXT("rows:\n  - name: site\n    limit: 1e999 W\n" JOB), WW_ERR_INVALID,
         "line 3: row 'site': limit: '1e999 W' is not a finite number; write a number with its unit W, kW or MW, like "
         "12.5 kW"},
	{"limit 010 kW", TEXT("rows:\n  - name: site\n    limit: 010 kW\n" JOB), WW_ERR_INVALID,
         "line 3: row 'site': limit: '010 kW' begins with a 0 too many, which others read as octal; write a number "
         "with its unit W, kW or MW, like 12.5 kW"},
	{"limit 0x10 W", TEXT("rows:\n  - name: site\n    limit: 0x10 W\n" JOB), WW_ERR_INVALID,
         "line 3: row 'site': limit: '0x10 W' is not a number; write a number with its unit W, kW or MW, like 12.5 kW"},
	{"limit 6_0 kW", TEXT("rows:\n  - name: site\n    limit: 6_0 kW\n" JOB), WW_ERR_INVALID,
         "line 3: row 'site': limit: '6_0 kW' is not a number; write a number with its unit W, kW or MW, like 12.5 kW"},
	{"limit 60 k W", TEXT("rows:\n  - name: site\n    limit: 60 k W\n" JOB), WW_ERR_INVALID,
         "line 3: row 'site': limit: '60 k W' is not a number; write a number with its unit W, kW or MW, like 12.5 kW"},
	{"limit sixty", TEXT("rows:\n  - name: site\n    limit: sixty\n" JOB), WW_ERR_INVALID,
         "line 3: row 'site': limit: 'sixty' is not a number; write a number with its unit W, kW or MW, like 12.5 kW"},
	{"limit -5 kW", TEXT("rows:\n  - name: site\n    limit: -5 kW\n" JOB), WW_ERR_RANGE,
         "line 3: row 'site': limit: '-5 kW' must be above 0 and at most 10 GW; write a number with its unit W, kW or "
         "MW, like 12.5 kW"},
	{"limit 0 W", TEXT("rows:\n  - name: site\n    limit: 0 W\n" JOB), WW_ERR_RANGE,
         "line 3: row 'site': limit: '0 W' must be above 0 and at most 10 GW; write a number with its unit W, kW or "
         "MW, like 12.5 kW"},
	{"limit 20000 MW", TEXT("rows:\n  - name: site\n    limit: 20000 MW\n" JOB), WW_ERR_RANGE,
         "line 3: row 'site': limit: '20000 MW' must be above 0 and at most 10 GW; write a number with its unit W, kW "
         "or MW, like 12.5 kW"},
	{"limit ''", TEXT("rows:\n  - name: site\n    limit: ''\n" JOB), WW_ERR_INVALID,
         "line 3: row 'site': limit: is empty; write a number with its unit W, kW or MW, like 12.5 kW"},
	{"limit with a tab", TEXT("rows:\n  - name: site\n    limit: 60\tkW\n" JOB), WW_ERR_INVALID,
         "line 3: limit: the text holds a tab, a line break or another control character; write it on one line"},
	{"fixed negative", TEXT(SITE "    fixed: -1 W\n" JOB), WW_ERR_RANGE,
         "line 4: row 'site': fixed: '-1 W' must be 0 W to 10 GW; write a number with its unit W, kW or MW, like 12.5 "
         "kW"},
	{"gpus 0", TEXT(SITE "jobs:\n  - job: a\n    gpus: 0\n    on: site\n"), WW_ERR_RANGE,
         "line 6: job 'a': gpus: '0' must be 1 or more; write a whole number without a unit, like 2"},
	{"gpus 8.0", TEXT(SITE "jobs:\n  - job: a\n    gpus: 8.0\n    on: site\n"), WW_ERR_INVALID,
         "line 6: job 'a': gpus: '8.0' is not a whole number; write a whole number without a unit, like 2"},
	{"gpus -1", TEXT(SITE "jobs:\n  - job: a\n    gpus: -1\n    on: site\n"), WW_ERR_INVALID,
         "line 6: job 'a': gpus: '-1' is not a whole number; write a whole number without a unit, like 2"},
	{"gpus 1e1", TEXT(SITE "jobs:\n  - job: a\n    gpus: 1e1\n    on: site\n"), WW_ERR_INVALID,
         "line 6: job 'a': gpus: '1e1' is not a whole number; write a whole number without a unit, like 2"},
	{"gpus 1,5", TEXT(SITE "jobs:\n  - job: a\n    gpus: 1,5\n    on: site\n"), WW_ERR_INVALID,
         "line 6: job 'a': gpus: '1,5' has a comma where a decimal point belongs; write a whole number without a unit, "
         "like 2"},
	{"gpus 010", TEXT(SITE "jobs:\n  - job: a\n    gpus: 010\n    on: site\n"), WW_ERR_INVALID,
         "line 6: job 'a': gpus: '010' begins with a 0 too many, which others read as octal; write a whole number "
         "without a unit, like 2"},
	{"gpus 0o7", TEXT(SITE "jobs:\n  - job: a\n    gpus: 0o7\n    on: site\n"), WW_ERR_INVALID,
         "line 6: job 'a': gpus: '0o7' is not a number; write a whole number without a unit, like 2"},
	{"gpus 0x8", TEXT(SITE "jobs:\n  - job: a\n    gpus: 0x8\n    on: site\n"), WW_ERR_INVALID,
         "line 6: job 'a': gpus: '0x8' is not a number; write a whole number without a unit, like 2"},
	{"gpus 1_0", TEXT(SITE "jobs:\n  - job: a\n    gpus: 1_0\n    on: site\n"), WW_ERR_INVALID,
         "line 6: job 'a': gpus: '1_0' is not a number; write a whole number without a unit, like 2"},
	{"gpus 8 GPUs", TEXT(SITE "jobs:\n  - job: a\n    gpus: 8 GPUs\n    on: site\n"), WW_ERR_INVALID,
         "line 6: job 'a': gpus: '8 GPUs' has a unit that does not belong here; write a whole number without a unit, "
         "like 2"},
	{"gpus 2147483649", TEXT(SITE "jobs:\n  - job: a\n    gpus: 2147483649\n    on: site\n"), WW_ERR_INVALID,
         "line 6: job 'a': gpus: '2147483649' is above 2147483648; write a whole number without a unit, like 2"},
	{"gpus 4294967297", TEXT(SITE "jobs:\n  - job: a\n    gpus: 4294967297\n    on: site\n"), WW_ERR_INVALID,
         "line 6: job 'a': gpus: '4294967297' is above 2147483648; write a whole number without a unit, like 2"},
	{"gpus yes", TEXT(SITE "jobs:\n  - job: a\n    gpus: yes\n    on: site\n"), WW_ERR_INVALID,
         "line 6: job 'a': gpus: 'yes' is not a number; write a whole number without a unit, like 2"},
	{"floor 80", TEXT(SITE JOB "    floor: 80\n"), WW_ERR_INVALID,
         "line 8: job 'a': floor: '80' has no unit; write a percentage, like 30%"},
	{"floor 0.8", TEXT(SITE JOB "    floor: 0.8\n"), WW_ERR_INVALID,
         "line 8: job 'a': floor: '0.8' has no unit; write a percentage, like 30%"},
	{"floor 80 kW", TEXT(SITE JOB "    floor: 80 kW\n"), WW_ERR_INVALID,
         "line 8: job 'a': floor: '80 kW' has a unit that does not belong here; write a percentage, like 30%"},
	{"floor 101%", TEXT(SITE JOB "    floor: 101%\n"), WW_ERR_RANGE,
         "line 8: job 'a': floor: '101%' must be 0% to 100%; write a percentage, like 30%"},
	{"floor -1%", TEXT(SITE JOB "    floor: -1%\n"), WW_ERR_RANGE,
         "line 8: job 'a': floor: '-1%' must be 0% to 100%; write a percentage, like 30%"},
	{"floor 1,5%", TEXT(SITE JOB "    floor: 1,5%\n"), WW_ERR_INVALID,
         "line 8: job 'a': floor: '1,5%' has a comma where a decimal point belongs; write a percentage, like 30%"},
	{"floor nan", TEXT(SITE JOB "    floor: nan\n"), WW_ERR_INVALID,
         "line 8: job 'a': floor: 'nan' is not a finite number; write a percentage, like 30%"},
	{"tier 4", TEXT(SITE JOB "    tier: 4\n"), WW_ERR_RANGE,
         "line 8: job 'a': tier: '4' must be 0, 1, 2 or 3; write a whole number without a unit, like 2"},
	{"tier -1", TEXT(SITE JOB "    tier: -1\n"), WW_ERR_INVALID,
         "line 8: job 'a': tier: '-1' is not a whole number; write a whole number without a unit, like 2"},
	{"tier 2.0", TEXT(SITE JOB "    tier: 2.0\n"), WW_ERR_INVALID,
         "line 8: job 'a': tier: '2.0' is not a whole number; write a whole number without a unit, like 2"},
	{"tier two", TEXT(SITE JOB "    tier: two\n"), WW_ERR_INVALID,
         "line 8: job 'a': tier: 'two' is not a number; write a whole number without a unit, like 2"},
	{"weight 0", TEXT(SITE JOB "    weight: 0\n"), WW_ERR_RANGE,
         "line 8: job 'a': weight: '0' must be 0.000001 to 1000000; write a number without a unit, like 1.5"},
	{"weight -1", TEXT(SITE JOB "    weight: -1\n"), WW_ERR_RANGE,
         "line 8: job 'a': weight: '-1' must be 0.000001 to 1000000; write a number without a unit, like 1.5"},
	{"weight 1,5", TEXT(SITE JOB "    weight: 1,5\n"), WW_ERR_INVALID,
         "line 8: job 'a': weight: '1,5' has a comma where a decimal point belongs; write a number without a unit, "
         "like 1.5"},
	{"weight 1e9", TEXT(SITE JOB "    weight: 1e9\n"), WW_ERR_RANGE,
         "line 8: job 'a': weight: '1e9' must be 0.000001 to 1000000; write a number without a unit, like 1.5"},
	{"weight inf", TEXT(SITE JOB "    weight: inf\n"), WW_ERR_INVALID,
         "line 8: job 'a': weight: 'inf' is not a finite number; write a number without a unit, like 1.5"},
	{"weight 2x", TEXT(SITE JOB "    weight: 2x\n"), WW_ERR_INVALID,
         "line 8: job 'a': weight: '2x' has a unit that does not belong here; write a number without a unit, like 1.5"},
	{"weight 01.5", TEXT(SITE JOB "    weight: 01.5\n"), WW_ERR_INVALID,
         "line 8: job 'a': weight: '01.5' begins with a 0 too many, which others read as octal; write a number without "
         "a unit, like 1.5"},
	{"min 200", TEXT(SITE JOB "    min: 200\n"), WW_ERR_INVALID,
         "line 8: job 'a': min: '200' has no unit; write a number with its unit W, kW or MW, like 12.5 kW"},
	{"min 0 W", TEXT(SITE JOB "    min: 0 W\n"), WW_ERR_RANGE,
         "line 8: job 'a': min: '0 W' must be above 0 and at most 100 kW for one GPU; write a number with its unit W, "
         "kW or MW, like 12.5 kW"},
	{"max 1 MW", TEXT(SITE JOB "    max: 1 MW\n"), WW_ERR_RANGE,
         "line 8: job 'a': max: '1 MW' must be above 0 and at most 100 kW for one GPU; write a number with its unit W, "
         "kW or MW, like 12.5 kW"},
	{"part 50", TEXT(SITE "  - {name: r, limit: 1 kW, on: [{row: site, part: 50}]}\n" JOB), WW_ERR_INVALID,
         "line 4: row 'r': on 'site': part: '50' has no unit; write a percentage, like 30%"},
	{"part 0.5", TEXT(SITE "  - {name: r, limit: 1 kW, on: [{row: site, part: 0.5}]}\n" JOB), WW_ERR_INVALID,
         "line 4: row 'r': on 'site': part: '0.5' has no unit; write a percentage, like 30%"},
	{"part 0%", TEXT(SITE "  - {name: r, limit: 1 kW, on: [{row: site, part: 0%}]}\n" JOB), WW_ERR_RANGE,
         "line 4: row 'r': on 'site': part: '0%' must be 0.1% to 100%; write a percentage, like 30%"},
	{"part 100.1%", TEXT(SITE "  - {name: r, limit: 1 kW, on: [{row: site, part: 100.1%}]}\n" JOB), WW_ERR_RANGE,
         "line 4: row 'r': on 'site': part: '100.1%' must be 0.1% to 100%; write a percentage, like 30%"},
	{"part 50 W", TEXT(SITE "  - {name: r, limit: 1 kW, on: [{row: site, part: 50 W}]}\n" JOB), WW_ERR_INVALID,
         "line 4: row 'r': on 'site': part: '50 W' has a unit that does not belong here; write a percentage, like 30%"},
	{"gpus of a place", TEXT(SITE "jobs:\n  - job: a\n    gpus: 8\n    on: [{row: site, gpus: 0}]\n"), WW_ERR_RANGE,
         "line 7: job 'a': on 'site': gpus: '0' must be 1 or more; write a whole number without a unit, like 2"},
};

static void number_mistakes_are_named(void **state)
{
	(void)state;
	CHECK_ALL(number_mistakes);
}

/* What the file says as a whole. */
static const struct mistake sense_mistakes[] = {
	{"two rows of one name", TEXT(SITE "  - {name: site, limit: 1 W}\n" JOB), WW_ERR_INVALID,
         "line 4: row 'site': name: is also the name of the row on line 2; rename one of them"},
	{"two jobs of one name", TEXT(SITE JOB "  - {job: a, gpus: 1, on: site}\n"), WW_ERR_INVALID,
         "line 8: job 'a': job: is also the name of the job on line 5; rename one of them, and name the group in "
         "'sweep'"},
	{"near name", TEXT(SITE "jobs:\n  - job: a\n    gpus: 8\n    on: sit\n"), WW_ERR_INVALID,
         "line 7: job 'a': on: there is no row 'sit'; did you mean 'site'?"},
	{"capital name", TEXT(SITE "jobs:\n  - job: a\n    gpus: 8\n    on: Site\n"), WW_ERR_INVALID,
         "line 7: job 'a': on: there is no row 'Site'; did you mean 'site'?"},
	{"no near name", TEXT(SITE "jobs:\n  - job: a\n    gpus: 8\n    on: elsewhere\n"), WW_ERR_INVALID,
         "line 7: job 'a': on: there is no row 'elsewhere'; the file has 'site'"},
	{"several near names",
         TEXT("rows:\n  - {name: rack-1, limit: 1 kW}\n  - {name: rack-2, limit: 1 kW}\n  - {name: rack-3, limit: 1 "
              "kW}\n  - {name: rack-4, limit: 1 kW}\n  - {name: rack-5, limit: 1 kW}\njobs:\n  - {job: a, gpus: 8, on: "
              "rack1}\n"),
         WW_ERR_INVALID, "line 8: job 'a': on: there is no row 'rack1'; did you mean 'rack-1', 'rack-2' or 'rack-3'?"},
	{"several names",
         TEXT("rows:\n  - {name: row-1, limit: 1 kW}\n  - {name: row-2, limit: 1 kW}\n  - {name: row-3, limit: 1 kW}\n "
              " - {name: row-4, limit: 1 kW}\n  - {name: row-5, limit: 1 kW}\njobs:\n  - {job: a, gpus: 8, on: pdu}\n"),
         WW_ERR_INVALID,
         "line 8: job 'a': on: there is no row 'pdu'; the file has 'row-1', 'row-2', 'row-3' and others"},
	{"no rows", TEXT(JOB), WW_ERR_INVALID, "line 4: job 'a': on: there is no row 'site'; define it under 'rows'"},
	{"unknown row above", TEXT(SITE "  - {name: r, limit: 1 kW, on: sites}\n" JOB), WW_ERR_INVALID,
         "line 4: row 'r': on: there is no row 'sites'; did you mean 'site'?"},
	{"job without a place", TEXT(SITE "jobs:\n  - job: a\n    gpus: 8\n"), WW_ERR_INVALID,
         "line 5: job 'a': on: is missing; write a name, or a list with '- ' before each entry"},
	{"row on itself", TEXT(SITE "  - {name: r, limit: 1 kW, on: r}\n" JOB), WW_ERR_INVALID,
         "line 4: row 'r': on: 'r' closes a circle (r on r); power comes from above: remove one of these"},
	{"circle",
         TEXT(SITE "  - {name: r, limit: 1 W, on: q}\n  - {name: q, limit: 1 W, on: [p]}\n  - {name: p, limit: 1 W, "
                   "on: r}\n" JOB),
         WW_ERR_INVALID,
         "line 6: row 'p': on: 'r' closes a circle (r on q on p on r); power comes from above: remove one of these"},
	{"circle beside a good path",
         TEXT(SITE "  - name: r\n    limit: 1 W\n    on:\n      - {row: site, part: 50%}\n      - {row: q, part: "
                   "50%}\n  - {name: q, limit: 1 W, on: r}\n" JOB),
         WW_ERR_INVALID,
         "line 9: row 'q': on: 'r' closes a circle (r on q on r); power comes from above: remove one of these"},
	{"parts too small", TEXT(SITE "  - {name: r, limit: 1 kW, on: [{row: site, part: 99.9%}]}\n" JOB),
         WW_ERR_INVALID,
         "line 4: row 'r': on: the parts add up to 99.9%, so that some power would be counted nowhere; make them 100% "
         "or more"},
	{"parts missing",
         TEXT(SITE "  - {name: q, limit: 1 W}\n  - name: r\n    limit: 1 W\n    on:\n      - {row: site, part: 50%}\n  "
                   "    - q\n" JOB),
         WW_ERR_INVALID,
         "line 9: row 'r': on 2: part: is missing; where several rows feed one, each needs its part, like {row: "
         "feed-a, part: 50%}"},
	{"row twice above",
         TEXT(SITE "  - {name: r, limit: 1 kW, on: [{row: site, part: 50%}, {row: site, part: 50%}]}\n" JOB),
         WW_ERR_INVALID, "line 4: row 'r': on: 'site' stands here twice; add up its parts in one entry"},
	{"above is a mapping", TEXT(SITE "  - {name: r, limit: 1 kW, on: {row: site}}\n" JOB), WW_ERR_INVALID,
         "line 4: row 'r': on: is keys with values, not a name; write one name"},
	{"above is an empty list", TEXT(SITE "  - {name: r, limit: 1 kW, on: []}\n" JOB), WW_ERR_INVALID,
         "line 4: row 'r': on: is empty; write a name, or a list with '- ' before each entry, or remove the key"},
	{"above is a list in a list", TEXT(SITE "  - {name: r, limit: 1 kW, on: [[site]]}\n" JOB), WW_ERR_INVALID,
         "line 4: row 'r': on 1: is a list, not keys with values; the keys are row, part"},
	{"above without row", TEXT(SITE "  - {name: r, limit: 1 kW, on: [{part: 50%}]}\n" JOB), WW_ERR_INVALID,
         "line 4: row 'r': on 1: row: is missing; write a name"},
	{"above is null", TEXT(SITE "  - {name: r, limit: 1 kW, on: [~]}\n" JOB), WW_ERR_INVALID,
         "line 4: row 'r': on 1: is empty; write a name"},
	{"fixed above the limit", TEXT(SITE "    fixed: 61 kW\n" JOB), WW_ERR_RANGE,
         "line 4: row 'site': fixed: 61000 W is more than the row's limit of 60000 W; correct one of them"},
	{"fixed below its rows", TEXT(SITE "    fixed: 1 kW\n  - {name: r, limit: 5 kW, fixed: 2 kW, on: site}\n" JOB),
         WW_ERR_RANGE,
         "line 4: row 'site': fixed: 1000 W is less than the 2000 W fixed on the rows it feeds; write all of it, or "
         "remove the key to have those added up"},
	{"sum of fixed above the limit",
         TEXT("rows:\n  - name: site\n    limit: 1 kW\n  - {name: r, limit: 5 kW, fixed: 2 kW, on: site}\n" JOB),
         WW_ERR_RANGE,
         "line 3: row 'site': limit: 1000 W is less than the 2000 W fixed on the rows it feeds; correct one of them"},
	{"min above max", TEXT(SITE JOB "    max: 200 W\n    min: 700 W\n"), WW_ERR_RANGE,
         "line 9: job 'a': min: 700 W is more than max, 200 W; correct one of them"},
	{"too few placed", TEXT(SITE "jobs:\n  - job: a\n    gpus: 8\n    on: [{row: site, gpus: 7}]\n"),
         WW_ERR_INVALID,
         "line 7: job 'a': on: the rows have 7 GPUs, but the job has gpus: 8; place the missing ones, or correct gpus"},
	{"too many placed", TEXT(SITE "jobs:\n  - job: a\n    gpus: 8\n    on: [{row: site, gpus: 9}]\n"),
         WW_ERR_INVALID,
         "line 7: job 'a': on: the rows have 9 GPUs, but the job has gpus: 8; correct gpus, or place fewer"},
	{"row twice below",
         TEXT(SITE "jobs:\n  - job: a\n    gpus: 8\n    on: [{row: site, gpus: 4}, {row: site, gpus: 4}]\n"),
         WW_ERR_INVALID, "line 7: job 'a': on: 'site' stands here twice; add up its GPUs in one entry"},
	{"place without gpus",
         TEXT(SITE "  - {name: q, limit: 1 W}\njobs:\n  - job: a\n    gpus: 8\n    on:\n      - {row: site, gpus: 4}\n "
                   "     - q\n"),
         WW_ERR_INVALID,
         "line 10: job 'a': on 2: gpus: is missing; where a job is on several rows, each needs its number, like {row: "
         "rack-1, gpus: 8}"},
	{"place on no row", TEXT(SITE "jobs:\n  - job: a\n    gpus: 8\n    on: []\n"), WW_ERR_INVALID,
         "line 7: job 'a': on: is empty; write a name, or a list with '- ' before each entry"},
	{"place is empty", TEXT(SITE "jobs:\n  - job: a\n    gpus: 8\n    on: \n"), WW_ERR_INVALID,
         "line 7: job 'a': on: is empty; write a name, or a list with '- ' before each entry"},
	{"place is a mapping", TEXT(SITE "jobs:\n  - job: a\n    gpus: 8\n    on: {row: site, gpus: 8}\n"),
         WW_ERR_INVALID, "line 7: job 'a': on: is keys with values, not a name; write one name"},
	{"place without row", TEXT(SITE "jobs:\n  - job: a\n    gpus: 8\n    on: [{gpus: 8}]\n"), WW_ERR_INVALID,
         "line 7: job 'a': on 1: row: is missing; write a name"},
};

static void sense_mistakes_are_named(void **state)
{
	(void)state;
	CHECK_ALL(sense_mistakes);
}

/* ---- Long and large ---------------------------------------------------------------------------------------------- */

static void check_made(const char *text, const char *line)
{
	struct ww_cluster cluster;
	struct ww_error err;
	assert_int_equal(parse(text, strlen(text), &cluster, &err), WW_ERR_INVALID);
	if (strcmp(err.text, line) != 0)
		fail_msg("%s", err.text);
}

static void long_names_are_refused(void **state)
{
	char text[2048];
	struct ww_cluster cluster;
	struct ww_error err;
	(void)state;
	for (int length = 512; length <= 513; length++) {
		snprintf(text, sizeof text, SITE "jobs: [{job: %0*d, gpus: 8, on: site}]\n", length, 7);
		ww_status status = parse(text, strlen(text), &cluster, &err);
		assert_int_equal(status, length == 512 ? WW_OK : WW_ERR_INVALID);
		if (status == WW_OK)
			ww_cluster_finish(&cluster);
	}
	assert_string_equal(err.text, "t.yaml: line 4: job '00000000000000000000000000000000000000000000...': job: is "
	                              "longer than 512 bytes; shorten it");
}

/* Whatever is long in a message is cut between characters. */
static void long_texts_are_shortened(void **state)
{
	char name[512], text[2048];
	(void)state;
	for (size_t i = 0; i < sizeof name - 2; i++)
		name[i] = "\xE2\x82\xAC"[i % 3];
	name[sizeof name - 2] = '\0';
	snprintf(text, sizeof text, SITE "jobs: [{job: a, gpus: 8, on: %s}]\n", name);
	check_made(text, "t.yaml: line 4: job 'a': on: there is no row "
	                 "'\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC"
	                 "\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC...'; "
	                 "the file has 'site'");
	snprintf(text, sizeof text, SITE "    limits%0500d: 8\n" JOB, 1);
	check_made(text,
	           "t.yaml: line 4: row 'site': limits00000000000000000000000000000000000000...: unknown key; the "
	           "keys here are name, limit, fixed, on");
	snprintf(text, sizeof text, SITE "    fixed: %0900d W\n" JOB, 1);
	check_made(text,
	           "t.yaml: line 4: row 'site': fixed: '00000000000000000000000000000000000000000000...' begins "
	           "with a 0 too many, which others read as octal; write a number with its unit W, kW or MW, like "
	           "12.5 kW");
}

static size_t add_chain(char *text, size_t size, int n)
{
	size_t used = (size_t)snprintf(text, size, "rows:\n");
	for (int i = 1; i <= n; i++)
		used += (size_t)snprintf(
			text + used, size - used,
			i < n ? "  - {name: r%d, limit: 1 W, on: r%d}\n" : "  - {name: r%d, limit: 1 W}\n", i, i + 1);
	return used + (size_t)snprintf(text + used, size - used, "jobs:\n  - {job: a, gpus: 8, on: r1}\n");
}

static void chains_are_bounded(void **state)
{
	static char text[8192];
	struct ww_cluster cluster;
	struct ww_error err;
	(void)state;
	assert_int_equal(parse(text, add_chain(text, sizeof text, 64), &cluster, &err), WW_OK);
	assert_int_equal(cluster.jobs[0].n_loads, 64);
	ww_cluster_finish(&cluster);
	add_chain(text, sizeof text, 65);
	check_made(text,
	           "t.yaml: line 2: row 'r1': on: more than 63 rows are above this one; leave out those that never "
	           "bind");
}

static void feeds_are_bounded(void **state)
{
	char text[2048] = "rows:\n", list[512] = "";
	(void)state;
	for (int i = 1; i <= 17; i++) {
		size_t used = strlen(text), shown = strlen(list);
		snprintf(text + used, sizeof text - used, "  - {name: r%d, limit: 1 W}\n", i);
		snprintf(list + shown, sizeof list - shown, "{row: r%d, part: 50%%},", i);
	}
	size_t used = strlen(text);
	snprintf(text + used, sizeof text - used,
	         "  - {name: r, limit: 1 W, on: [%s]}\njobs: [{job: a, gpus: 1, on: r}]\n", list);
	check_made(text, "t.yaml: line 19: row 'r': on: more than 16 rows feed this one; put a row between them");
}

/* Repeats `piece` up to `size` bytes behind `head`. */
static char *repeat(const char *head, const char *piece, size_t size)
{
	size_t used = strlen(head), length = strlen(piece);
	char *text = malloc(size + length + 1);
	assert_non_null(text);
	memcpy(text, head, used);
	for (; used < size; used += length)
		memcpy(text + used, piece, length);
	text[used] = '\0';
	return text;
}

static void large_files_are_refused(void **state)
{
	(void)state;
	char *text = repeat("", "# long\n", (16u << 20) + 1);
	check_made(text, "t.yaml: is longer than 16 MiB; check that it is the right file");
	free(text);
	text = repeat("a: [", "b,", 2100000);
	check_made(text, "t.yaml: line 1: more than 1048576 values; divide the file");
	free(text);
	text = repeat("jobs: [{job: a, gpus: 1, on: r}]\nrows:\n", "- {}\n", 5 * 65537 + 40);
	check_made(text, "t.yaml: line 3: rows: more than 65536 rows; leave out the lowest");
	free(text);
}

/* A stream that breaks. */
static ssize_t broken_read(void *cookie, char *to, size_t size)
{
	(void)cookie;
	(void)to;
	(void)size;
	errno = EIO;
	return -1;
}

static void read_error_is_told(void **state)
{
	struct ww_cluster cluster;
	struct ww_error err;
	FILE *in = fopencookie(NULL, "r", (cookie_io_functions_t){.read = broken_read});
	(void)state;
	assert_non_null(in);
	assert_int_equal(ww_cluster_parse(in, "t.yaml", &cluster, &err), WW_ERR_IO);
	assert_int_equal(fclose(in), 0);
	assert_string_equal(err.text, "t.yaml: cannot be read: Input/output error; check the file and its disk");
}

static void paths_are_checked(void **state)
{
	struct ww_cluster cluster;
	struct ww_error err;
	(void)state;
	assert_int_equal(ww_cluster_read("/nowhere/x.yaml", &cluster, &err), WW_ERR_NOT_FOUND);
	assert_string_equal(err.text, "/nowhere/x.yaml: there is no such file; check the name");
	assert_int_equal(ww_cluster_read("/", &cluster, &err), WW_ERR_IO);
	assert_string_equal(err.text, "/: is a directory, not a file; name a file in it");
	assert_int_equal(ww_cluster_read("/nowhere/x.yaml", &cluster, NULL), WW_ERR_NOT_FOUND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(file_mistakes_are_named),   cmocka_unit_test(key_mistakes_are_named),
		cmocka_unit_test(number_mistakes_are_named), cmocka_unit_test(sense_mistakes_are_named),
		cmocka_unit_test(long_names_are_refused),    cmocka_unit_test(long_texts_are_shortened),
		cmocka_unit_test(chains_are_bounded),        cmocka_unit_test(feeds_are_bounded),
		cmocka_unit_test(large_files_are_refused),   cmocka_unit_test(read_error_is_told),
		cmocka_unit_test(paths_are_checked),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
