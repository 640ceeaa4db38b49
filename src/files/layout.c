/* SPDX-License-Identifier: Apache-2.0 */
#include "files/files_internal.h"

#include <stdlib.h>
#include <string.h>

#define MAP_MAX 4096
#define MAP_USAGE "--map throughput=COLUMN,power=COLUMN,cap=COLUMN,group=COLUMN+COLUMN"
#define MAP_KEYS "throughput, power, cap, group, rep, gpus, gpu_model, power_se, throughput_se, throttle_reasons"
#define UNITS "_w _j _tps _us _ms _s _frac _mhz _c _mb _gb _bps _flops _count"

static const struct {
	const char *key; /* in --map */
	const char *own; /* column of the own format */
	bool required;
} roles[WW_ROLES] = {
	[WW_ROLE_GROUP] = {"group", "group", true},
	[WW_ROLE_CAP] = {"cap", "cap_w", true},
	[WW_ROLE_POWER] = {"power", "power_w", true},
	[WW_ROLE_THROUGHPUT] = {"throughput", "throughput_tps", true},
	[WW_ROLE_REP] = {"rep", "rep", false},
	[WW_ROLE_GPUS] = {"gpus", "gpus", false},
	[WW_ROLE_GPU_MODEL] = {"gpu_model", "gpu_model", false},
	[WW_ROLE_POWER_SE] = {"power_se", "power_se_w", false},
	[WW_ROLE_THROUGHPUT_SE] = {"throughput_se", "throughput_se_tps", false},
	[WW_ROLE_THROTTLE] = {"throttle_reasons", "throttle_reasons", false},
};

/* Tables of others that are known by having all these columns. A new one is one line here. */
static const struct {
	const char *format, *map;
} foreign[] = {
	{"zeus",
         "throughput=1/time_per_epoch,power=average_power,cap=power_limit,group=dataset+network+batch_size+optimizer"},
	{"emerald", "throughput=throughput,power=power per GPU,cap=GPU power cap,group=Workload"},
};

/* A map taken apart. The names lie in `text`. */
struct spec {
	bool inverse;
	const char *name[WW_ROLES]; /* NULL = not given; unused for the group */
	size_t n_group;
	const char *group[WW_GROUP_COLUMNS_MAX];
	char text[MAP_MAX];
};

/* ---- The map ----------------------------------------------------------------------------------------------------- */

/* Takes a column name up to one of `ends`, or a quoted one. Leaves *at at the end character, which *end keeps. */
static char *take_name(char **at, const char *ends, char *end, struct ww_error *err)
{
	char *name, *to, *from = *at + strspn(*at, " \t");
	if (*from != '"') {
		name = from;
		from += strcspn(from, ends);
		to = from;
	} else {
		name = to = from++;
		for (;; from++) {
			if (*from == '\0') {
				ww_fail(err, WW_ERR_INVALID,
				        "--map: a quote is not closed; close it behind the column name");
				return NULL;
			}
			if (*from == '"' && *++from != '"')
				break;
			*to++ = *from;
		}
		from += strspn(from, " \t");
	}
	*end = *from;
	*at = from;
	if (*end != '\0' && !strchr(ends, *end)) {
		ww_fail(err, WW_ERR_INVALID, "--map: text behind a quoted column name; separate the parts with ','");
		return NULL;
	}
	*to = '\0';
	return ww_trim(name);
}

static ww_status find_key(const char *key, const struct spec *spec, enum ww_role *role, struct ww_error *err)
{
	char shown[64];
	ww_shorten(shown, sizeof shown, key);
	for (unsigned r = 0; r < WW_ROLES; r++) {
		if (strcmp(key, roles[r].key) != 0)
			continue;
		*role = (enum ww_role)r;
		if (r == WW_ROLE_GROUP ? spec->n_group > 0 : spec->name[r] != NULL)
			return ww_fail(err, WW_ERR_INVALID,
			               "--map: key '%s' is given twice; give each key once, and join the columns "
			               "of a group with '+'",
			               shown);
		return WW_OK;
	}
	return ww_fail(err, WW_ERR_INVALID, "--map: unknown key '%s'; the keys are " MAP_KEYS, shown);
}

static ww_status take_value(struct spec *spec, enum ww_role role, char **at, char *end, struct ww_error *err)
{
	*at += strspn(*at, " \t");
	if (role == WW_ROLE_THROUGHPUT && strncmp(*at, "1/", 2) == 0) {
		spec->inverse = true;
		*at += 2;
	}
	do {
		char *name = take_name(at, role == WW_ROLE_GROUP ? "+," : ",", end, err);
		if (!name)
			return WW_ERR_INVALID;
		if (*name == '\0')
			return ww_fail(err, WW_ERR_INVALID, "--map: no column behind '%s='; use " MAP_USAGE,
			               roles[role].key);
		if (role != WW_ROLE_GROUP)
			spec->name[role] = name;
		else if (spec->n_group == WW_GROUP_COLUMNS_MAX)
			return ww_fail(err, WW_ERR_INVALID, "--map: more than %d columns for 'group'; name fewer",
			               WW_GROUP_COLUMNS_MAX);
		else
			spec->group[spec->n_group++] = name;
		*at += *end != '\0';
	} while (*end == '+');
	return WW_OK;
}

static ww_status check_spec(const struct spec *spec, struct ww_error *err)
{
	for (unsigned r = 0; r < WW_ROLES; r++)
		if (roles[r].required && (r == WW_ROLE_GROUP ? spec->n_group == 0 : !spec->name[r]))
			return ww_fail(err, WW_ERR_INVALID, "--map: key '%s' is missing; use " MAP_USAGE, roles[r].key);
	if (spec->inverse && spec->name[WW_ROLE_THROUGHPUT_SE])
		return ww_fail(err, WW_ERR_INVALID,
		               "--map: throughput_se cannot stand beside throughput=1/COLUMN, where it would be "
		               "the error of a time; leave it out or add a throughput column");
	for (unsigned r = WW_ROLE_CAP; r < WW_ROLES; r++)
		for (unsigned q = WW_ROLE_CAP; spec->name[r] && q < r; q++) {
			char shown[64];
			if (!spec->name[q] || strcmp(spec->name[q], spec->name[r]) != 0)
				continue;
			ww_shorten(shown, sizeof shown, spec->name[r]);
			return ww_fail(err, WW_ERR_INVALID,
			               "--map: column '%s' is given for both '%s' and '%s'; name one column for "
			               "each",
			               shown, roles[q].key, roles[r].key);
		}
	return WW_OK;
}

static ww_status read_map(struct spec *spec, const char *map, struct ww_error *err)
{
	size_t length = strlen(map);
	char *at = spec->text, end = ',';

	*spec = (struct spec){0};
	if (length >= sizeof spec->text)
		return ww_fail(err, WW_ERR_INVALID, "--map: longer than %d bytes; use " MAP_USAGE, MAP_MAX - 1);
	memcpy(spec->text, map, length + 1);
	while (end == ',') {
		enum ww_role role = WW_ROLE_GROUP;
		char *key = at, *equals = strchr(at, '=');
		if (!equals)
			return ww_fail(err, WW_ERR_INVALID, "--map: a part has no '='; use " MAP_USAGE);
		*equals = '\0';
		at = equals + 1;
		ww_status status = find_key(ww_trim(key), spec, &role, err);
		if (!status)
			status = take_value(spec, role, &at, &end, err);
		if (status)
			return status;
	}
	return check_spec(spec, err);
}

/* ---- Columns ----------------------------------------------------------------------------------------------------- */

/* Keeps the names: the row's cells live only until the next row. */
static bool keep_names(struct ww_layout *layout, const struct ww_csv *csv)
{
	size_t bytes = 1;
	for (size_t i = 0; i < csv->n_cells; i++)
		bytes += strlen(csv->cells[i]) + 1;
	layout->text = malloc(bytes);
	if (!layout->text)
		return false;
	char *at = layout->text;
	layout->n_columns = csv->n_cells;
	for (size_t i = 0; i < csv->n_cells; i++) {
		size_t size = strlen(csv->cells[i]) + 1;
		layout->names[i] = memcpy(at, csv->cells[i], size);
		at += size;
	}
	return true;
}

static size_t find(const struct ww_layout *layout, const char *name)
{
	for (size_t i = 0; i < layout->n_columns; i++)
		if (strcmp(layout->names[i], name) == 0)
			return i;
	return WW_COLUMN_NONE;
}

/* "a, b, c" for messages, shortened. */
static void list_columns(const struct ww_layout *layout, char *to, size_t size)
{
	char all[1024];
	size_t used = 0;
	for (size_t i = 0; i < layout->n_columns && used < sizeof all; i++) {
		char name[40];
		ww_shorten(name, sizeof name, layout->names[i]);
		used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", name);
	}
	ww_shorten(to, size, all);
}

/* A name that stands twice is refused where it has a meaning. */
static ww_status check_single(const struct ww_layout *layout, const struct ww_csv *csv, size_t column,
                              struct ww_error *err)
{
	char shown[64];
	for (size_t i = 0; i < layout->n_columns; i++) {
		if (i == column || strcmp(layout->names[i], layout->names[column]) != 0)
			continue;
		ww_shorten(shown, sizeof shown, layout->names[column]);
		return ww_csv_fail(csv, err, WW_ERR_INVALID,
		                   "column '%s' stands twice (columns %zu and %zu); rename or remove one", shown,
		                   i < column ? i + 1 : column + 1, i < column ? column + 1 : i + 1);
	}
	return WW_OK;
}

static ww_status bind_column(const struct ww_layout *layout, const struct ww_csv *csv, const char *name, size_t *column,
                             struct ww_error *err)
{
	char shown[64], found[200];
	*column = find(layout, name);
	if (*column != WW_COLUMN_NONE)
		return check_single(layout, csv, *column, err);
	ww_shorten(shown, sizeof shown, name);
	list_columns(layout, found, sizeof found);
	return ww_csv_fail(csv, err, WW_ERR_INVALID, "there is no column '%s' for --map; the columns are: %s", shown,
	                   found);
}

static ww_status bind_spec(struct ww_layout *layout, const struct ww_csv *csv, const struct spec *spec,
                           const char *format, struct ww_error *err)
{
	ww_status status = WW_OK;
	layout->format = format;
	layout->inverse = spec->inverse;
	layout->n_group = spec->n_group;
	for (size_t i = 0; i < spec->n_group && !status; i++)
		status = bind_column(layout, csv, spec->group[i], &layout->group[i], err);
	for (unsigned r = WW_ROLE_CAP; r < WW_ROLES && !status; r++)
		if (spec->name[r])
			status = bind_column(layout, csv, spec->name[r], &layout->column[r], err);
	return status;
}

static bool has_unit(const char *name)
{
	const char *units = UNITS, *tail = strrchr(name, '_');
	size_t length = tail ? strlen(tail) : 0;
	if (length < 2 || tail == name)
		return false;
	for (const char *at = units; *at; at += strspn(at, " ")) {
		size_t n = strcspn(at, " ");
		if (n == length && memcmp(at, tail, n) == 0)
			return true;
		at += n;
	}
	return false;
}

/* "throughput=throughput_tps,..." for the columns of the own format that are there. */
static void write_own_map(const struct ww_layout *layout, char *to, size_t size)
{
	size_t used = 0;
	*to = '\0';
	for (unsigned r = 0; r < WW_ROLES && used < size; r++)
		if (find(layout, roles[r].own) != WW_COLUMN_NONE)
			used += (size_t)snprintf(to + used, size - used, "%s%s=%s", used ? "," : "", roles[r].key,
			                         roles[r].own);
}

/* The rest of the own format's columns is telemetry. */
static ww_status bind_telemetry(struct ww_layout *layout, const struct ww_csv *csv, size_t i, struct ww_error *err)
{
	char shown[48], map[240];
	ww_shorten(shown, sizeof shown, layout->names[i]);
	write_own_map(layout, map, sizeof map);
	if (*shown == '\0')
		return ww_csv_fail(csv, err, WW_ERR_INVALID,
		                   "column %zu has no name; name it, remove it, or have it ignored: --map %s", i + 1,
		                   map);
	if (!has_unit(layout->names[i]))
		return ww_csv_fail(csv, err, WW_ERR_INVALID,
		                   "column '%s' is unknown; rename it to end in the unit of its numbers (" UNITS
		                   "), remove it, or have it ignored: --map %s",
		                   shown, map);
	layout->telemetry[layout->n_telemetry++] = i;
	return WW_OK;
}

static ww_status bind_own(struct ww_layout *layout, const struct ww_csv *csv, struct ww_error *err)
{
	ww_status status = WW_OK;
	layout->format = "wattweir";
	for (size_t i = 0; i < layout->n_columns && !status; i++) {
		unsigned r = 0;
		while (r < WW_ROLES && strcmp(layout->names[i], roles[r].own) != 0)
			r++;
		if (r == WW_ROLES)
			status = bind_telemetry(layout, csv, i, err);
		else if (r == WW_ROLE_GROUP)
			layout->group[layout->n_group++] = i;
		else
			layout->column[r] = i;
		if (!status)
			status = check_single(layout, csv, i, err);
	}
	return status;
}

/* ---- Which format? ----------------------------------------------------------------------------------------------- */

static ww_status check_separator(const struct ww_layout *layout, const struct ww_csv *csv, struct ww_error *err)
{
	if (layout->n_columns == 1 &&
	    (strcmp(layout->names[0], "rows:") == 0 || strcmp(layout->names[0], "jobs:") == 0))
		return ww_csv_fail(csv, err, WW_ERR_INVALID, "looks like a cluster file; " WW_SWAP);
	if (layout->n_columns == 1 && strchr(layout->names[0], ';'))
		return ww_csv_fail(csv, err, WW_ERR_INVALID,
		                   "the columns are separated by ';', not ','; export with commas and decimal "
		                   "points, or run tr ',;' '.,'");
	if (layout->n_columns == 1 && strchr(layout->names[0], '\t'))
		return ww_csv_fail(csv, err, WW_ERR_INVALID,
		                   "the columns are separated by tabs, not ','; export with commas, or run "
		                   "tr '\\t' ','");
	return WW_OK;
}

/* How many of the columns are there; the first missing one is left in *missing (NULL when all are there). */
static size_t count_spec(const struct ww_layout *layout, const struct spec *spec, const char **missing, size_t *wanted)
{
	size_t there = 0;
	*missing = NULL;
	*wanted = 0;
	for (size_t i = 0; i < spec->n_group + WW_ROLES; i++) {
		const char *name = i < spec->n_group ? spec->group[i] : spec->name[i - spec->n_group];
		if (!name)
			continue;
		bool found = find(layout, name) != WW_COLUMN_NONE;
		++*wanted;
		there += found;
		if (!found && !*missing)
			*missing = name;
	}
	return there;
}

/* Own format when the file says so, when all required columns are there, or a name that only this format has. */
static bool is_own(const struct ww_layout *layout, bool declared, const char **missing)
{
	bool named = false;
	*missing = NULL;
	for (unsigned r = WW_ROLES; r-- > 0;) {
		if (!roles[r].required)
			continue;
		if (find(layout, roles[r].own) == WW_COLUMN_NONE)
			*missing = roles[r].own;
		else
			named = named || r != WW_ROLE_GROUP;
	}
	return declared || named;
}

/* The format that a header comes close to, and its first missing column. */
struct likeness {
	const char *format;
	char missing[64];
};

static ww_status not_recognised(const struct ww_layout *layout, const struct ww_csv *csv, const struct likeness *like,
                                struct ww_error *err)
{
	char found[140];
	list_columns(layout, found, sizeof found);
	if (like->format)
		return ww_csv_fail(csv, err, WW_ERR_INVALID,
		                   "column '%s' of the %s format is missing; add it, or use " MAP_USAGE "; found: %s",
		                   like->missing, like->format, found);
	return ww_csv_fail(csv, err, WW_ERR_INVALID,
	                   "the columns are of no known format: %s; name them with " MAP_USAGE, found);
}

static ww_status recognise(struct ww_layout *layout, const struct ww_csv *csv, bool declared, struct ww_error *err)
{
	struct spec spec;
	struct likeness like = {NULL, ""};
	const char *missing;

	if (is_own(layout, declared, &missing)) {
		if (!missing)
			return bind_own(layout, csv, err);
		like.format = "wattweir";
		ww_shorten(like.missing, sizeof like.missing, missing);
		if (declared)
			return not_recognised(layout, csv, &like, err);
	}
	for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
		ww_status status = read_map(&spec, foreign[i].map, err);
		if (status)
			return status;
		size_t wanted, there = count_spec(layout, &spec, &missing, &wanted);
		if (!missing)
			return bind_spec(layout, csv, &spec, foreign[i].format, err);
		if (!like.format && 2 * there > wanted) {
			like.format = foreign[i].format;
			ww_shorten(like.missing, sizeof like.missing, missing);
		}
	}
	return not_recognised(layout, csv, &like, err);
}

ww_status ww_sweep_check_map(const char *map, struct ww_error *err)
{
	struct spec spec;
	return read_map(&spec, map, err);
}

ww_status ww_layout_read(struct ww_layout *layout, const struct ww_csv *csv, const char *map, bool declared,
                         struct ww_error *err)
{
	struct spec spec;
	*layout = (struct ww_layout){0};
	for (unsigned r = 0; r < WW_ROLES; r++)
		layout->column[r] = WW_COLUMN_NONE;
	if (!keep_names(layout, csv))
		return ww_csv_fail(csv, err, WW_ERR_NOMEM, "out of memory");

	ww_status status = check_separator(layout, csv, err);
	if (!status && !map)
		status = recognise(layout, csv, declared, err);
	if (!status && map)
		status = read_map(&spec, map, err);
	if (!status && map)
		status = bind_spec(layout, csv, &spec, "map", err);
	if (status)
		ww_layout_finish(layout);
	return status;
}

void ww_layout_finish(struct ww_layout *layout)
{
	free(layout->text);
	layout->text = NULL;
}
