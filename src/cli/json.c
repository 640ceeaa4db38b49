/* SPDX-License-Identifier: Apache-2.0 */
/* The builder behind --json; the only file of the room that knows jansson. */
#include "cli/cli_internal.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#define MAX_DEPTH 16
#define PRECISION 12

struct ww_json {
	json_t *open[MAX_DEPTH]; /* open[0] owns all others */
	size_t depth;
};

static void no_memory(void)
{
	fputs("wattweir: out of memory\n", stderr);
	exit(WW_EXIT_FAILED);
}

ww_json *ww_json_create(void)
{
	ww_json *json = ww_cli_alloc(1, sizeof(*json));
	json->open[0] = json_object();
	if (!json->open[0])
		no_memory();
	return json;
}

void ww_json_destroy(ww_json *json)
{
	if (!json)
		return;
	json_decref(json->open[0]);
	free(json);
}

static void add(ww_json *json, const char *key, json_t *value)
{
	json_t *parent = json->open[json->depth];
	int failed = key ? json_object_set_new(parent, key, value) : json_array_append_new(parent, value);
	if (failed)
		no_memory();
}

static void begin(ww_json *json, const char *key, json_t *value)
{
	add(json, key, value);
	if (json->depth + 1 == MAX_DEPTH)
		abort();
	json->open[++json->depth] = value;
}

void ww_json_begin_object(ww_json *json, const char *key)
{
	begin(json, key, json_object());
}

void ww_json_begin_array(ww_json *json, const char *key)
{
	begin(json, key, json_array());
}

void ww_json_end(ww_json *json)
{
	json->depth--;
}

void ww_json_text(ww_json *json, const char *key, const char *text)
{
	char *valid = text ? ww_text_utf8(text) : NULL;
	add(json, key, valid ? json_string(valid) : json_null());
	free(valid);
}

void ww_json_number(ww_json *json, const char *key, double value)
{
	add(json, key, isfinite(value) ? json_real(value) : json_null());
}

void ww_json_count(ww_json *json, const char *key, size_t value)
{
	add(json, key, json_integer((json_int_t)value));
}

void ww_json_null(ww_json *json, const char *key)
{
	add(json, key, json_null());
}

void ww_json_print(const ww_json *json, FILE *out)
{
	if (json_dumpf(json->open[0], out, JSON_INDENT(2) | JSON_REAL_PRECISION(PRECISION)) == 0)
		fputc('\n', out);
	else if (!ferror(out))
		no_memory();
}
