/* SPDX-License-Identifier: Apache-2.0 */
#include "files/files_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define NAME_MAX_BYTES 512 /* of a group or GPU model */
/* Bounds of proportion at the highest cap. Deep caps may be exceeded: boards were seen to draw 1.21 of theirs. */
#define MOST_OF_CAP 1.5
#define LEAST_OF_CAP 0.01
/* Neighbouring caps whose throughput differs more while the draw does not are no measurement. */
#define MOST_JUMP 100
#define LEAST_FALL 5

/* What is remembered of a group beside its data: where a value was said first, and how the name was put together. */
struct note {
	uint64_t parts;
	size_t line, gpus_line, model_line;
};

/* One row as a (group, cap, repetition), to find it again; `point` is its place in the group. */
struct seen {
	size_t group, point, line;
	double cap_w, rep;
};

struct reader {
	struct ww_csv csv;
	struct ww_layout layout;
	struct ww_sweep sweep;
	struct note *notes;
	struct seen *seen;
	size_t n_seen;
	struct ww_index by_name, by_cap;
	struct ww_error *err;
};

struct row {
	struct ww_point point;
	double rep;
	unsigned gpus;
	const char *gpu_model;
	uint64_t parts;
	char name[NAME_MAX_BYTES + 1];
};

static ww_status no_memory(const struct reader *r)
{
	return ww_csv_fail(&r->csv, r->err, WW_ERR_NOMEM, "out of memory");
}

/* ---- One cell ---------------------------------------------------------------------------------------------------- */

/* The cell's text for messages, and its column's name. */
struct shown {
	char column[64], cell[48];
};

static struct shown show(const struct reader *r, size_t column)
{
	struct shown s;
	ww_shorten(s.column, sizeof s.column, r->layout.names[column]);
	ww_shorten(s.cell, sizeof s.cell, r->csv.cells[column]);
	return s;
}

static ww_status read_number(const struct reader *r, size_t column, double *out)
{
	const char *cell = r->csv.cells[column];
	enum ww_number_fault fault = ww_number_read(cell, strlen(cell), out);
	if (fault == WW_NUMBER_OK)
		return WW_OK;
	struct shown s = show(r, column);
	if (fault == WW_NUMBER_EMPTY)
		return ww_csv_fail(&r->csv, r->err, WW_ERR_INVALID, "column '%s' %s", s.column,
		                   ww_number_fault_text(fault));
	return ww_csv_fail(&r->csv, r->err, WW_ERR_INVALID, "column '%s': '%s' %s", s.column, s.cell,
	                   ww_number_fault_text(fault));
}

static ww_status out_of_range(const struct reader *r, size_t column, const char *rule, const char *remedy)
{
	struct shown s = show(r, column);
	return ww_csv_fail(&r->csv, r->err, WW_ERR_RANGE, "column '%s': '%s' must be %s; %s", s.column, s.cell, rule,
	                   remedy);
}

/* Bounds that no real measurement reaches; they catch milliwatts, and keep ratios finite. */
static ww_status read_watts(const struct reader *r, enum ww_role role, const char *remedy, double *out)
{
	size_t column = r->layout.column[role];
	ww_status status = read_number(r, column, out);
	if (!status && !(*out >= 0.001 && *out <= 100000))
		return out_of_range(r, column, "above 0 and at most 100000 watts per GPU", remedy);
	return status;
}

static ww_status read_throughput(const struct reader *r, double *out)
{
	size_t column = r->layout.column[WW_ROLE_THROUGHPUT];
	double value;
	ww_status status = read_number(r, column, &value);
	if (status)
		return status;
	if (!(value >= 1e-30 && value <= 1e30))
		return out_of_range(r, column,
		                    r->layout.inverse ? "a time above 0 (1e-30 to 1e30)" : "above 0 (1e-30 to 1e30)",
		                    "remove the row if the job did not run");
	*out = r->layout.inverse ? 1 / value : value;
	return WW_OK;
}

static bool has_cell(const struct reader *r, enum ww_role role)
{
	size_t column = r->layout.column[role];
	return column != WW_COLUMN_NONE && *r->csv.cells[column] != '\0';
}

static ww_status read_error_of(const struct reader *r, enum ww_role role, double *out)
{
	*out = NAN;
	if (!has_cell(r, role))
		return WW_OK;
	double value;
	ww_status status = read_number(r, r->layout.column[role], &value);
	if (status)
		return status;
	if (!(value >= 0 && value <= 1e30))
		return out_of_range(r, r->layout.column[role], "0 or more",
		                    "leave the cell empty when the error is not known");
	*out = value;
	return WW_OK;
}

static ww_status read_whole(const struct reader *r, enum ww_role role, double least, double most, double *out)
{
	ww_status status = read_number(r, r->layout.column[role], out);
	*out += 0.0; /* -0 becomes 0 */
	if (!status && !(*out >= least && *out <= most && *out == floor(*out)))
		return out_of_range(r, r->layout.column[role],
		                    least > 0 ? "a whole number from 1" : "a whole number from 0",
		                    role == WW_ROLE_REP ? "number the repetitions of a cap 1, 2, 3"
		                                        : "write the number of GPUs of the job");
	return status;
}

/* Decimal or 0x hexadecimal bit mask: the only number that ww_number_read is not for. */
static ww_status read_mask(const struct reader *r, int64_t *out)
{
	*out = -1;
	if (!has_cell(r, WW_ROLE_THROTTLE))
		return WW_OK;
	const char *text = r->csv.cells[r->layout.column[WW_ROLE_THROTTLE]];
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	const char *figures = text + (hex ? 2 : 0);
	size_t n = strspn(figures, hex ? "0123456789abcdefABCDEF" : "0123456789");
	if (n > 0 && figures[n] == '\0') {
		errno = 0;
		long long value = strtoll(figures, NULL, hex ? 16 : 10);
		if (errno == 0) {
			*out = value;
			return WW_OK;
		}
	}
	return out_of_range(r, r->layout.column[WW_ROLE_THROTTLE], "a bit mask like 4 or 0x4, below 2^63",
	                    "leave the cell empty when it was not recorded");
}

static ww_status read_telemetry(const struct reader *r, double *out)
{
	for (size_t i = 0; i < r->layout.n_telemetry; i++) {
		size_t column = r->layout.telemetry[i];
		out[i] = NAN;
		if (*r->csv.cells[column] == '\0')
			continue;
		ww_status status = read_number(r, column, &out[i]);
		if (status)
			return status;
	}
	return WW_OK;
}

/* ---- One row ----------------------------------------------------------------------------------------------------- */

static ww_status check_name(const struct reader *r, size_t column, size_t length)
{
	struct shown s = show(r, column);
	if (length == 0)
		return ww_csv_fail(&r->csv, r->err, WW_ERR_INVALID, "column '%s' is empty; name the job of this row",
		                   s.column);
	return ww_csv_fail(&r->csv, r->err, WW_ERR_INVALID,
	                   "column '%s': '%s' makes a name longer than %d bytes; shorten it", s.column, s.cell,
	                   NAME_MAX_BYTES);
}

/* Joins the group's columns with '/'. `parts` tells "a/b" + "c" from "a" + "b/c". */
static ww_status read_name(const struct reader *r, struct row *row)
{
	size_t used = 0;
	row->parts = 0;
	for (size_t i = 0; i < r->layout.n_group; i++) {
		size_t column = r->layout.group[i], n = strlen(r->csv.cells[column]);
		if (n == 0 || n + (i > 0) > NAME_MAX_BYTES - used)
			return check_name(r, column, n);
		if (i > 0)
			row->name[used++] = '/';
		memcpy(row->name + used, r->csv.cells[column], n);
		used += n;
		row->parts = row->parts * 0x9E3779B97F4A7C15u + used;
	}
	row->name[used] = '\0';
	return WW_OK;
}

static ww_status read_job(const struct reader *r, struct row *row)
{
	double gpus = 0;
	ww_status status = WW_OK;
	row->rep = 0;
	row->gpu_model = "";
	if (r->layout.column[WW_ROLE_REP] != WW_COLUMN_NONE)
		status = read_whole(r, WW_ROLE_REP, 0, 0x1p53, &row->rep);
	if (!status && has_cell(r, WW_ROLE_GPUS))
		status = read_whole(r, WW_ROLE_GPUS, 1, 1e9, &gpus);
	row->gpus = status ? 0 : (unsigned)gpus;
	if (!status && has_cell(r, WW_ROLE_GPU_MODEL)) {
		size_t column = r->layout.column[WW_ROLE_GPU_MODEL];
		row->gpu_model = r->csv.cells[column];
		if (strlen(row->gpu_model) > NAME_MAX_BYTES)
			status = check_name(r, column, strlen(row->gpu_model));
	}
	return status;
}

/* True for a row of commas, as spreadsheets write them. */
static bool is_empty(const struct reader *r)
{
	for (size_t i = 0; i < r->csv.n_cells; i++)
		if (*r->csv.cells[i] != '\0')
			return false;
	return true;
}

static ww_status read_row(const struct reader *r, struct row *row)
{
	struct ww_point *p = &row->point;
	ww_status status;
	if (is_empty(r))
		return ww_csv_fail(&r->csv, r->err, WW_ERR_INVALID, "nothing but commas; remove the line");
	if (r->csv.n_cells != r->layout.n_columns)
		return ww_csv_fail(&r->csv, r->err, WW_ERR_INVALID,
		                   "%zu cells, but the header names %zu columns; quote cells that hold "
		                   "a comma, write decimal points, and keep the commas of empty cells",
		                   r->csv.n_cells, r->layout.n_columns);
	if ((status = read_name(r, row)) ||
	    (status = read_watts(r, WW_ROLE_CAP, "write the power cap per GPU in watts", &p->cap_w)) ||
	    (status = read_watts(r, WW_ROLE_POWER, "write the mean draw per GPU in watts", &p->power_w)) ||
	    (status = read_throughput(r, &p->throughput)) ||
	    (status = read_error_of(r, WW_ROLE_POWER_SE, &p->power_se_w)) ||
	    (status = read_error_of(r, WW_ROLE_THROUGHPUT_SE, &p->throughput_se)) ||
	    (status = read_mask(r, &p->throttle)) || (status = read_job(r, row)))
		return status;
	return WW_OK;
}

/* ---- Groups ------------------------------------------------------------------------------------------------------ */

struct name_key {
	const struct ww_sweep *sweep;
	const char *name;
};

static bool same_name(const void *ctx, size_t item)
{
	const struct name_key *key = ctx;
	return strcmp(key->sweep->groups[item].name, key->name) == 0;
}

static ww_status add_group(struct reader *r, const struct row *row, uint64_t hash, size_t *item)
{
	struct ww_sweep *sweep = &r->sweep;
	struct ww_sweep_group group = {0};

	*item = sweep->n_groups;
	if (!ww_grow(sweep->groups, *item, 1) || !ww_grow(r->notes, *item, 1))
		return no_memory(r);
	group.name = ww_copy_text(row->name);
	group.gpu_model = ww_copy_text("");
	if (!group.name || !group.gpu_model || !ww_index_add(&r->by_name, hash, *item)) {
		free(group.name);
		free(group.gpu_model);
		return no_memory(r);
	}
	sweep->groups[*item] = group;
	r->notes[*item] = (struct note){.parts = row->parts, .line = r->csv.line};
	sweep->n_groups++;
	return WW_OK;
}

static ww_status find_group(struct reader *r, const struct row *row, size_t *item)
{
	struct name_key key = {&r->sweep, row->name};
	uint64_t hash = ww_hash_text(row->name);
	*item = ww_index_find(&r->by_name, hash, same_name, &key);
	if (*item == WW_INDEX_NONE)
		return add_group(r, row, hash, item);
	if (r->notes[*item].parts == row->parts)
		return WW_OK;
	struct shown s = show(r, r->layout.group[0]);
	return ww_csv_fail(&r->csv, r->err, WW_ERR_INVALID,
	                   "column '%s': the group's name joins to the same text as another one "
	                   "on line %zu; rename it without '/'",
	                   s.column, r->notes[*item].line);
}

static ww_status contradiction(const struct reader *r, enum ww_role role, const char *before, size_t line)
{
	struct shown s = show(r, r->layout.column[role]);
	char first[48];
	ww_shorten(first, sizeof first, before);
	return ww_csv_fail(&r->csv, r->err, WW_ERR_INVALID,
	                   "column '%s': '%s', but '%s' for the same group on line %zu; a group is "
	                   "one job on one kind of GPU: correct it or name another group",
	                   s.column, s.cell, first, line);
}

/* GPU count and model: said once or always the same. */
static ww_status merge_job(struct reader *r, const struct row *row, size_t item)
{
	struct ww_sweep_group *group = &r->sweep.groups[item];
	struct note *note = &r->notes[item];
	if (row->gpus && group->gpus && row->gpus != group->gpus) {
		char before[24];
		snprintf(before, sizeof before, "%u", group->gpus);
		return contradiction(r, WW_ROLE_GPUS, before, note->gpus_line);
	}
	if (*row->gpu_model && *group->gpu_model && strcmp(row->gpu_model, group->gpu_model) != 0)
		return contradiction(r, WW_ROLE_GPU_MODEL, group->gpu_model, note->model_line);
	if (row->gpus && !group->gpus) {
		group->gpus = row->gpus;
		note->gpus_line = r->csv.line;
	}
	if (*row->gpu_model && !*group->gpu_model) {
		char *copy = ww_copy_text(row->gpu_model);
		if (!copy)
			return no_memory(r);
		free(group->gpu_model);
		group->gpu_model = copy;
		note->model_line = r->csv.line;
	}
	return WW_OK;
}

/* ---- Repetitions ------------------------------------------------------------------------------------------------- */

struct cap_key {
	const struct reader *reader;
	struct seen row;
};

static bool same_cap(const void *ctx, size_t item)
{
	const struct cap_key *key = ctx;
	const struct seen *old = &key->reader->seen[item];
	return old->group == key->row.group && old->cap_w == key->row.cap_w && old->rep == key->row.rep;
}

static uint64_t mix(uint64_t hash, double value)
{
	uint64_t bits;
	memcpy(&bits, &value, sizeof bits);
	hash = (hash ^ bits) * 0xBF58476D1CE4E5B9u;
	hash = (hash ^ (hash >> 29)) * 0x94D049BB133111EBu;
	return hash ^ (hash >> 32);
}

static ww_status duplicate(const struct reader *r, const struct row *row, size_t line)
{
	char name[64];
	struct shown s = show(r, r->layout.column[WW_ROLE_CAP]);
	ww_shorten(name, sizeof name, row->name);
	if (r->layout.column[WW_ROLE_REP] != WW_COLUMN_NONE)
		return ww_csv_fail(&r->csv, r->err, WW_ERR_INVALID,
		                   "column '%s': cap %s W, repetition %.0f of group '%s' is already on "
		                   "line %zu; number the repetitions 1, 2, 3 or remove one row",
		                   s.column, s.cell, row->rep, name, line);
	return ww_csv_fail(&r->csv, r->err, WW_ERR_INVALID,
	                   "column '%s': cap %s W of group '%s' is already on line %zu; %s, or "
	                   "remove one row",
	                   s.column, s.cell, name, line,
	                   strcmp(r->layout.format, "wattweir") == 0
	                           ? "number repetitions in a column 'rep'"
	                           : "name a column that numbers repetitions with --map ...,rep=COLUMN");
}

static ww_status note_cap(struct reader *r, const struct row *row, size_t group)
{
	struct cap_key key = {r,
	                      {.group = group,
	                       .point = r->sweep.groups[group].n_points,
	                       .line = r->csv.line,
	                       .cap_w = row->point.cap_w,
	                       .rep = row->rep}};
	uint64_t hash = mix(mix(mix(0, (double)group), row->point.cap_w), row->rep);
	size_t old = ww_index_find(&r->by_cap, hash, same_cap, &key);
	if (old != WW_INDEX_NONE)
		return duplicate(r, row, r->seen[old].line);
	if (!ww_grow(r->seen, r->n_seen, 1) || !ww_index_add(&r->by_cap, hash, r->n_seen))
		return no_memory(r);
	r->seen[r->n_seen++] = key.row;
	return WW_OK;
}

/* ---- Proportion ---------------------------------------------------------------------------------------------------- */

static const struct ww_point *point_of(const struct reader *r, const struct seen *row)
{
	return &r->sweep.groups[row->group].points[row->point];
}

/* Groups in their order, caps falling, lines rising. */
static int by_cap(const void *a, const void *b)
{
	const struct seen *p = a, *q = b;
	if (p->group != q->group)
		return p->group > q->group ? 1 : -1;
	if (p->cap_w != q->cap_w)
		return p->cap_w < q->cap_w ? 1 : -1;
	return (p->line > q->line) - (p->line < q->line);
}

/* The draw at the highest cap of a group: the unit is wrong, or it is that of all GPUs together. */
static ww_status check_draw(struct reader *r, const struct seen *row)
{
	const struct ww_point *p = point_of(r, row);
	double part = p->power_w / p->cap_w;
	if (part >= LEAST_OF_CAP && part <= MOST_OF_CAP)
		return WW_OK;
	r->csv.line = row->line;
	char column[64];
	ww_shorten(column, sizeof column, r->layout.names[r->layout.column[WW_ROLE_POWER]]);
	if (part > MOST_OF_CAP)
		return ww_csv_fail(&r->csv, r->err, WW_ERR_RANGE,
		                   "column '%s': %.6g W under a cap of %.6g W; is %s the job's total? it is per GPU: "
		                   "divide by gpus",
		                   column, p->power_w, p->cap_w, column);
	return ww_csv_fail(&r->csv, r->err, WW_ERR_RANGE,
	                   "column '%s': %.6g W under a cap of %.6g W; kilowatts? write the mean draw per GPU in watts",
	                   column, p->power_w, p->cap_w);
}

static double ratio(double a, double b)
{
	return a > b ? a / b : b / a;
}

/* Two rows next to each other in the order of caps. */
static ww_status check_jump(struct reader *r, const struct seen *a, const struct seen *b)
{
	const struct ww_point *p = point_of(r, a), *q = point_of(r, b);
	char column[64];
	bool inverse = r->layout.inverse;
	if (ratio(p->throughput, q->throughput) <= MOST_JUMP || ratio(p->power_w, q->power_w) >= LEAST_FALL)
		return WW_OK;
	/* The smaller number as it stands in the file has lost its digits. */
	bool first = (p->throughput < q->throughput) != inverse;
	const struct seen *low = first ? a : b, *high = first ? b : a;
	double less = point_of(r, low)->throughput, more = point_of(r, high)->throughput;
	r->csv.line = low->line;
	ww_shorten(column, sizeof column, r->layout.names[r->layout.column[WW_ROLE_THROUGHPUT]]);
	return ww_csv_fail(&r->csv, r->err, WW_ERR_RANGE,
	                   "column '%s': %.6g, but %.6g at almost the same power on line %zu; thousands separator "
	                   "lost? write all digits, with one decimal point at most",
	                   column, inverse ? 1 / less : less, inverse ? 1 / more : more, high->line);
}

/* What no single row can tell. Ends the use of by_cap, for `seen` is sorted. */
static ww_status check_proportion(struct reader *r)
{
	double top_w = 0;
	qsort(r->seen, r->n_seen, sizeof *r->seen, by_cap);
	for (size_t i = 0; i < r->n_seen; i++) {
		const struct seen *row = &r->seen[i];
		bool first = i == 0 || row->group != r->seen[i - 1].group;
		if (first)
			top_w = row->cap_w;
		ww_status status = row->cap_w == top_w ? check_draw(r, row) : WW_OK;
		if (!status && !first)
			status = check_jump(r, row - 1, row);
		if (status)
			return status;
	}
	return WW_OK;
}

/* ---- The whole --------------------------------------------------------------------------------------------------- */

static ww_status add_row(struct reader *r)
{
	struct row row;
	size_t item, n_telemetry = r->layout.n_telemetry;
	ww_status status = read_row(r, &row);
	if (status || (status = find_group(r, &row, &item)) || (status = merge_job(r, &row, item)) ||
	    (status = note_cap(r, &row, item)))
		return status;

	struct ww_sweep_group *group = &r->sweep.groups[item];
	if (!ww_grow(group->points, group->n_points, 1))
		return no_memory(r);
	if (n_telemetry > 0) {
		if (!ww_grow(group->telemetry, group->n_points, n_telemetry))
			return no_memory(r);
		status = read_telemetry(r, group->telemetry + group->n_points * n_telemetry);
		if (status)
			return status;
	}
	group->points[group->n_points++] = row.point;
	return WW_OK;
}

/* "# wattweir sweep 1" declares the format; another number is a file from the future. */
static ww_status read_mark(const struct reader *r, const char *comment, bool *declared)
{
	struct ww_mark mark;
	if (!ww_mark_read(comment, &mark))
		return WW_OK;
	if (strcmp(mark.kind, "cluster") == 0)
		return ww_csv_fail(&r->csv, r->err, WW_ERR_INVALID, "looks like a cluster file; " WW_SWAP);
	if (strcmp(mark.kind, "sweep") != 0)
		return ww_csv_fail(&r->csv, r->err, WW_ERR_INVALID,
		                   "the file calls itself a wattweir %s, not a sweep; name another file", mark.kind);
	if (strcmp(mark.version, "1") != 0)
		return ww_csv_fail(&r->csv, r->err, WW_ERR_UNSUPPORTED,
		                   "sweep format '%s' is unknown; this program reads format 1: "
		                   "use a newer one",
		                   mark.version);
	*declared = true;
	return WW_OK;
}

static ww_status read_header(struct reader *r, const char *map)
{
	enum ww_csv_kind kind;
	bool declared = false;
	ww_status status = ww_csv_next(&r->csv, &kind, r->err);
	while (!status && kind == WW_CSV_COMMENT) {
		status = read_mark(r, r->csv.comment, &declared);
		if (!status)
			status = ww_csv_next(&r->csv, &kind, r->err);
	}
	if (status)
		return status;
	if (kind == WW_CSV_END)
		return ww_fail(r->err, WW_ERR_NO_DATA,
		               "%s: line %zu: the file is empty; it needs a line of column names and a row per "
		               "cap",
		               r->csv.shown, r->csv.line + 1);
	return ww_layout_read(&r->layout, &r->csv, map, declared, r->err);
}

static ww_status read_rows(struct reader *r)
{
	for (;;) {
		enum ww_csv_kind kind;
		ww_status status = ww_csv_next(&r->csv, &kind, r->err);
		if (!status && kind == WW_CSV_ROW)
			status = add_row(r);
		if (status)
			return status;
		if (kind != WW_CSV_END)
			continue;
		if (r->n_seen == 0)
			return ww_csv_fail(&r->csv, r->err, WW_ERR_NO_DATA,
			                   "no rows follow the column names; add one row per cap");
		return WW_OK;
	}
}

static ww_status complete(struct reader *r, const char *name)
{
	struct ww_sweep *sweep = &r->sweep;
	size_t n = r->layout.n_telemetry;
	sweep->format = r->layout.format;
	sweep->file = ww_copy_text(name);
	if (!sweep->file)
		return no_memory(r);
	if (n == 0)
		return WW_OK;
	sweep->telemetry = calloc(n, sizeof *sweep->telemetry);
	if (!sweep->telemetry)
		return no_memory(r);
	sweep->n_telemetry = n;
	for (size_t i = 0; i < n; i++) {
		sweep->telemetry[i] = ww_copy_text(r->layout.names[r->layout.telemetry[i]]);
		if (!sweep->telemetry[i])
			return no_memory(r);
	}
	return WW_OK;
}

ww_status ww_sweep_parse(FILE *in, const char *name, const char *map, struct ww_sweep *out, struct ww_error *err)
{
	struct reader r = {.err = err};
	ww_status status = ww_csv_init(&r.csv, in, name, err);
	if (!status)
		status = read_header(&r, map);
	if (!status)
		status = read_rows(&r);
	if (!status)
		status = check_proportion(&r);
	if (!status)
		status = complete(&r, name);
	if (status)
		ww_sweep_finish(&r.sweep);
	else
		*out = r.sweep;
	ww_index_finish(&r.by_name);
	ww_index_finish(&r.by_cap);
	free(r.notes);
	free(r.seen);
	ww_layout_finish(&r.layout);
	ww_csv_finish(&r.csv);
	return status;
}

ww_status ww_sweep_read(const char *path, const char *map, struct ww_sweep *out, struct ww_error *err)
{
	struct stat info;
	char shown[128];
	if (strcmp(path, "-") == 0)
		return ww_sweep_parse(stdin, "<stdin>", map, out, err);
	ww_shorten_path(shown, sizeof shown, path);
	FILE *in = fopen(path, "rbe");
	if (!in && errno == ENOENT)
		return ww_fail(err, WW_ERR_NOT_FOUND, "%s: there is no such file; check the name", shown);
	if (!in)
		return ww_fail(err, WW_ERR_IO, "%s: cannot be opened: %m; check its permissions", shown);
	ww_status status;
	if (fstat(fileno(in), &info) == 0 && S_ISDIR(info.st_mode))
		status = ww_fail(err, WW_ERR_IO, "%s: is a directory, not a file; name a CSV file in it", shown);
	else
		status = ww_sweep_parse(in, path, map, out, err);
	(void)fclose(in);
	return status;
}

void ww_sweep_finish(struct ww_sweep *sweep)
{
	if (!sweep)
		return;
	for (size_t i = 0; i < sweep->n_groups; i++) {
		free(sweep->groups[i].name);
		free(sweep->groups[i].gpu_model);
		free(sweep->groups[i].points);
		free(sweep->groups[i].telemetry);
	}
	for (size_t i = 0; sweep->telemetry && i < sweep->n_telemetry; i++)
		free(sweep->telemetry[i]);
	free(sweep->groups);
	free(sweep->telemetry);
	free(sweep->file);
	*sweep = (struct ww_sweep){0};
}
