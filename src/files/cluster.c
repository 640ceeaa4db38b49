/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows feed each other from the top down; loads go upwards. What a row reaches is kept as (row above, part of its load
 * that arrives there), the sum over all paths, but at most the whole: a rack that may draw all of its power from either
 * of two feeds still loads the site once.
 */
#include "files/yaml_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MAX 65536
#define FEEDS_MAX 16 /* rows that feed one row directly */
#define REACH_MAX 64 /* rows above one row, itself counted */
#define ROUNDING 1e-9
#define NOT_GIVEN UINT32_MAX

/* A row above another one: the part of the lower row's load that it carries, and where the file says so. */
struct feed {
	uint32_t row;
	double part_frac;
	size_t line;
};

struct span {
	size_t first, n;
};

enum visit { NEW, OPEN, DONE };

/* What is known of a row beside its result. */
struct place {
	const struct ww_yaml_node *node, *on;
	double fixed_w, below_w; /* as given or NAN; what lower rows carry */
	struct span feeds, reach;
	enum visit visit;
};

struct reader {
	struct ww_yaml yaml;
	struct ww_cluster cluster;
	struct place *places; /* one per row */
	struct feed *feeds;
	struct ww_row_share *reach; /* gpus is the part that arrives */
	uint32_t *order;            /* rows, each behind all rows above it */
	uint32_t *touched;          /* rows whose sum is not 0 */
	double *sum;                /* per row, 0 between uses */
	size_t n_feeds, n_reach, n_order, n_touched;
	struct ww_index by_row, by_job;
};

/* ---- What the file may hold -------------------------------------------------------------------------------------- */

struct raw_file {
	const struct ww_yaml_node *rows, *jobs;
};

struct raw_row {
	const char *name;
	double limit_w, fixed_w;
	const struct ww_yaml_node *on;
};

struct raw_job {
	const char *name, *sweep;
	uint32_t gpus, tier;
	double floor_frac, weight, min_w, max_w;
	const struct ww_yaml_node *on;
};

struct raw_on {
	const char *row;
	double part_frac;
	uint32_t gpus;
};

#define FIELD(type, member) offsetof(struct type, member)
#define N_FIELDS(fields) (sizeof(fields) / sizeof(fields)[0])

#define LIMIT_RULE "must be above 0 and at most 10 GW"
#define FIXED_RULE "must be 0 W to 10 GW"
#define GPUS_RULE "must be 1 or more"
#define TIER_RULE "must be 0, 1, 2 or 3"
#define CAP_RULE "must be above 0 and at most 100 kW for one GPU"

static const struct ww_yaml_field file_fields[] = {
	{"rows", WW_YAML_ITEMS, false, FIELD(raw_file, rows), 0, 0, NULL},
	{"jobs", WW_YAML_ITEMS, true, FIELD(raw_file, jobs), 0, 0, NULL},
};
static const struct ww_yaml_table file_table = {"file", NULL, file_fields, N_FIELDS(file_fields)};

static const struct ww_yaml_field row_fields[] = {
	{"name", WW_YAML_NAME, true, FIELD(raw_row, name), 0, 0, NULL},
	{"limit", WW_YAML_POWER, true, FIELD(raw_row, limit_w), 0.001, 1e10, LIMIT_RULE},
	{"fixed", WW_YAML_POWER, false, FIELD(raw_row, fixed_w), 0, 1e10, FIXED_RULE},
	{"on", WW_YAML_NODE, false, FIELD(raw_row, on), 0, 0, NULL},
};
static const struct ww_yaml_table row_table = {"row", "name", row_fields, N_FIELDS(row_fields)};

static const struct ww_yaml_field feed_fields[] = {
	{"row", WW_YAML_NAME, true, FIELD(raw_on, row), 0, 0, NULL},
	{"part", WW_YAML_PERCENT, false, FIELD(raw_on, part_frac), 0.001, 1, "must be 0.1% to 100%"},
};
static const struct ww_yaml_table feed_table = {"on", "row", feed_fields, N_FIELDS(feed_fields)};

static const struct ww_yaml_field job_fields[] = {
	{"job", WW_YAML_NAME, true, FIELD(raw_job, name), 0, 0, NULL},
	{"sweep", WW_YAML_NAME, false, FIELD(raw_job, sweep), 0, 0, NULL},
	{"gpus", WW_YAML_COUNT, true, FIELD(raw_job, gpus), 1, 0x1p31, GPUS_RULE},
	{"tier", WW_YAML_COUNT, false, FIELD(raw_job, tier), 0, 3, TIER_RULE},
	{"floor", WW_YAML_PERCENT, false, FIELD(raw_job, floor_frac), 0, 1, "must be 0% to 100%"},
	{"weight", WW_YAML_NUMBER, false, FIELD(raw_job, weight), 1e-6, 1e6, "must be 0.000001 to 1000000"},
	{"min", WW_YAML_POWER, false, FIELD(raw_job, min_w), 0.001, 1e5, CAP_RULE},
	{"max", WW_YAML_POWER, false, FIELD(raw_job, max_w), 0.001, 1e5, CAP_RULE},
	{"on", WW_YAML_NODE, false, FIELD(raw_job, on), 0, 0, NULL}, /* the last; required where there are rows */
};
static const struct ww_yaml_table job_table = {"job", "job", job_fields, N_FIELDS(job_fields)};

static const struct ww_yaml_field share_fields[] = {
	{"row", WW_YAML_NAME, true, FIELD(raw_on, row), 0, 0, NULL},
	{"gpus", WW_YAML_COUNT, false, FIELD(raw_on, gpus), 1, 0x1p31, GPUS_RULE},
};
static const struct ww_yaml_table share_table = {"on", "row", share_fields, N_FIELDS(share_fields)};

/* ---- Names ------------------------------------------------------------------------------------------------------- */

struct name_key {
	const struct ww_cluster *cluster;
	const char *name;
};

static bool same_row(const void *ctx, size_t item)
{
	const struct name_key *key = ctx;
	return strcmp(key->cluster->rows[item].name, key->name) == 0;
}

static bool same_job(const void *ctx, size_t item)
{
	const struct name_key *key = ctx;
	return strcmp(key->cluster->jobs[item].name, key->name) == 0;
}

static ww_status find_row(const struct reader *r, const char *name, size_t line, const char *label, uint32_t *row)
{
	struct name_key key = {&r->cluster, name};
	char shown[48], hint[200];
	size_t item = ww_index_find(&r->by_row, ww_hash_text(name), same_row, &key);
	if (item != WW_INDEX_NONE) {
		*row = (uint32_t)item;
		return WW_OK;
	}
	struct ww_near near = {.wanted = name};
	for (size_t i = 0; i < r->cluster.n_rows; i++)
		ww_near_add(&near, r->cluster.rows[i].name);
	ww_near_text(&near, "rows", hint, sizeof hint);
	ww_shorten(shown, sizeof shown, name);
	return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, line, "%son: there is no row '%s'; %s", label, shown, hint);
}

/* ---- Rows one by one --------------------------------------------------------------------------------------------- */

static ww_status add_row(struct reader *r, const struct ww_yaml_node *node, const char *label)
{
	struct raw_row raw = {.fixed_w = NAN};
	struct ww_cluster *c = &r->cluster;
	ww_status status = ww_yaml_read_map(&r->yaml, node, &row_table, label, &raw);
	if (status)
		return status;
	struct name_key key = {c, raw.name};
	uint64_t hash = ww_hash_text(raw.name);
	size_t old = ww_index_find(&r->by_row, hash, same_row, &key);
	if (old != WW_INDEX_NONE)
		return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, ww_yaml_line(node, "name"),
		                    "%sname: is also the name of the row on line %zu; rename one of them", label,
		                    c->rows[old].line);
	struct ww_cluster_row row = {ww_copy_text(raw.name), raw.limit_w, NAN, node->line};
	if (!row.name)
		return ww_yaml_no_memory(&r->yaml);
	c->rows[c->n_rows] = row;
	r->places[c->n_rows] = (struct place){.node = node, .on = raw.on, .fixed_w = raw.fixed_w};
	c->n_rows++;
	return ww_index_add(&r->by_row, hash, c->n_rows - 1) ? WW_OK : ww_yaml_no_memory(&r->yaml);
}

static ww_status read_rows(struct reader *r, const struct ww_yaml_node *list)
{
	char label[WW_YAML_LABEL_MAX];
	size_t n = list->n, number = 0;
	if (n > ROWS_MAX)
		return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, list->line,
		                    "rows: more than %d rows; leave out the lowest", ROWS_MAX);
	r->cluster.rows = calloc(n, sizeof *r->cluster.rows);
	r->places = calloc(n, sizeof *r->places);
	r->order = calloc(n, sizeof *r->order);
	r->touched = calloc(n, sizeof *r->touched);
	r->sum = calloc(n, sizeof *r->sum);
	if (!r->cluster.rows || !r->places || !r->order || !r->touched || !r->sum)
		return ww_yaml_no_memory(&r->yaml);
	for (const struct ww_yaml_node *node = list->first; node; node = node->next) {
		ww_yaml_label(label, "", &row_table, node, ++number);
		ww_status status = add_row(r, node, label);
		if (status)
			return status;
	}
	return WW_OK;
}

/* One entry of a list: a name alone, or keys. */
static ww_status read_entry(const struct reader *r, const struct ww_yaml_node *node, const struct ww_yaml_table *table,
                            const char *label, struct raw_on *raw)
{
	if (node->form == WW_YAML_TEXT)
		return ww_yaml_read_name(&r->yaml, node, label, &raw->row);
	return ww_yaml_read_map(&r->yaml, node, table, label, raw);
}

static ww_status stands_twice(const struct reader *r, size_t line, const char *label, const char *name,
                              const char *what)
{
	char shown[48];
	ww_shorten(shown, sizeof shown, name);
	return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, line, "%son: '%s' stands here twice; add up its %s in one entry",
	                    label, shown, what);
}

/* ---- What feeds a row -------------------------------------------------------------------------------------------- */

static ww_status add_feed(struct reader *r, size_t row, const struct ww_yaml_node *node, const char *label,
                          struct raw_on *raw)
{
	struct place *place = &r->places[row];
	struct feed feed = {.part_frac = raw->part_frac, .line = node->line};
	ww_status status = find_row(r, raw->row, node->line, label, &feed.row);
	if (status)
		return status;
	for (size_t i = 0; i < place->feeds.n; i++)
		if (r->feeds[place->feeds.first + i].row == feed.row)
			return stands_twice(r, node->line, label, raw->row, "parts");
	if (!ww_grow(r->feeds, r->n_feeds, 1))
		return ww_yaml_no_memory(&r->yaml);
	r->feeds[r->n_feeds++] = feed;
	place->feeds.n++;
	return WW_OK;
}

static ww_status read_feed(struct reader *r, size_t row, const struct ww_yaml_node *node, const char *label,
                           size_t number)
{
	struct raw_on raw = {.part_frac = NAN};
	char entry[WW_YAML_LABEL_MAX];
	bool is_only = r->places[row].on->n == 1;
	ww_yaml_label(entry, label, &feed_table, node, number);
	ww_status status = read_entry(r, node, &feed_table, entry, &raw);
	if (status)
		return status;
	if (isnan(raw.part_frac) && !is_only)
		return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, node->line,
		                    "%spart: is missing; where several rows feed one, each needs its part, like "
		                    "{row: feed-a, part: 50%%}",
		                    entry);
	if (isnan(raw.part_frac))
		raw.part_frac = 1;
	return add_feed(r, row, node, label, &raw);
}

static ww_status check_parts(const struct reader *r, size_t row, const char *label)
{
	const struct place *place = &r->places[row];
	double sum = 0;
	for (size_t i = 0; i < place->feeds.n; i++)
		sum += r->feeds[place->feeds.first + i].part_frac;
	if (sum >= 1 - ROUNDING)
		return WW_OK;
	return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, place->on->line,
	                    "%son: the parts add up to %.10g%%, so that some power would be counted nowhere; make them "
	                    "100%% or more",
	                    label, 100 * sum);
}

static ww_status read_feeds(struct reader *r, size_t row)
{
	struct place *place = &r->places[row];
	struct raw_on raw = {.part_frac = 1};
	char label[WW_YAML_LABEL_MAX], field[WW_YAML_LABEL_MAX + 8];
	size_t number = 0;
	place->feeds.first = r->n_feeds;
	if (!place->on)
		return WW_OK;
	ww_yaml_label(label, "", &row_table, place->node, row + 1);
	if (place->on->form != WW_YAML_LIST) {
		snprintf(field, sizeof field, "%son: ", label);
		ww_status status = ww_yaml_read_name(&r->yaml, place->on, field, &raw.row);
		return status ? status : add_feed(r, row, place->on, label, &raw);
	}
	if (place->on->n > FEEDS_MAX)
		return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, place->on->line,
		                    "%son: more than %d rows feed this one; put a row between them", label, FEEDS_MAX);
	for (const struct ww_yaml_node *node = place->on->first; node; node = node->next) {
		ww_status status = read_feed(r, row, node, label, ++number);
		if (status)
			return status;
	}
	return check_parts(r, row, label);
}

/* ---- What a row reaches ------------------------------------------------------------------------------------------ */

static void add_sum(struct reader *r, uint32_t row, double value)
{
	if (r->sum[row] == 0)
		r->touched[r->n_touched++] = row;
	r->sum[row] += value;
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

/* Moves the sums into `out`, rows rising, each at most `most`. */
static void take_sums(struct reader *r, double most, struct ww_row_share *out)
{
	qsort(r->touched, r->n_touched, sizeof *r->touched, by_number);
	for (size_t i = 0; i < r->n_touched; i++) {
		uint32_t row = r->touched[i];
		out[i] = (struct ww_row_share){row, fmin(r->sum[row], most)};
		r->sum[row] = 0;
	}
	r->n_touched = 0;
}

static ww_status close_row(struct reader *r, uint32_t row)
{
	struct place *place = &r->places[row];
	char label[WW_YAML_LABEL_MAX];
	add_sum(r, row, 1);
	for (size_t i = 0; i < place->feeds.n; i++) {
		const struct feed *feed = &r->feeds[place->feeds.first + i];
		const struct span *above = &r->places[feed->row].reach;
		for (size_t k = above->first; k < above->first + above->n; k++)
			add_sum(r, r->reach[k].row, feed->part_frac * r->reach[k].gpus);
	}
	if (r->n_touched > REACH_MAX) {
		ww_yaml_label(label, "", &row_table, place->node, row + 1);
		return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, place->on->line,
		                    "%son: more than %d rows are above this one; leave out those that never bind",
		                    label, REACH_MAX - 1);
	}
	place->reach = (struct span){r->n_reach, r->n_touched};
	for (size_t i = 0; i < place->reach.n; i++) {
		if (!ww_grow(r->reach, r->n_reach, 1))
			return ww_yaml_no_memory(&r->yaml);
		r->n_reach++;
	}
	take_sums(r, 1, r->reach + place->reach.first);
	place->visit = DONE;
	r->order[r->n_order++] = row;
	return WW_OK;
}

/* One row on the way up, and which of its feeds comes next. */
struct step {
	uint32_t row;
	size_t next;
};

static ww_status circle(const struct reader *r, const struct step *path, size_t n, const struct feed *feed)
{
	char label[WW_YAML_LABEL_MAX], shown[32], text[160] = "";
	size_t from = 0, used = 0, row = path[n - 1].row;
	while (path[from].row != feed->row)
		from++;
	for (size_t i = from; i < n && used < sizeof text - 48; i++) {
		ww_shorten(shown, sizeof shown, r->cluster.rows[path[i].row].name);
		used += (size_t)snprintf(text + used, sizeof text - used, "%s on ", shown);
	}
	ww_shorten(shown, sizeof shown, r->cluster.rows[feed->row].name);
	ww_yaml_label(label, "", &row_table, r->places[row].node, row + 1);
	return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, feed->line,
	                    "%son: '%s' closes a circle (%s%s%s); power comes from above: remove one of these", label,
	                    shown, text, used < sizeof text - 48 ? "" : "... on ", shown);
}

/* Up from one row, rows above first; no recursion, for a file may chain all its rows. */
static ww_status climb(struct reader *r, struct step *path, uint32_t start)
{
	size_t n = 0;
	if (r->places[start].visit == NEW) {
		path[n++] = (struct step){start, 0};
		r->places[start].visit = OPEN;
	}
	while (n > 0) {
		struct step *top = &path[n - 1];
		struct place *place = &r->places[top->row];
		if (top->next == place->feeds.n) {
			ww_status status = close_row(r, top->row);
			if (status)
				return status;
			n--;
			continue;
		}
		const struct feed *feed = &r->feeds[place->feeds.first + top->next++];
		if (r->places[feed->row].visit == OPEN)
			return circle(r, path, n, feed);
		if (r->places[feed->row].visit == NEW) {
			r->places[feed->row].visit = OPEN;
			path[n++] = (struct step){feed->row, 0};
		}
	}
	return WW_OK;
}

static ww_status join_rows(struct reader *r)
{
	ww_status status = WW_OK;
	size_t n = r->cluster.n_rows;
	for (size_t i = 0; !status && i < n; i++)
		status = read_feeds(r, i);
	if (status || n == 0)
		return status;
	struct step *path = calloc(n, sizeof *path);
	if (!path)
		return ww_yaml_no_memory(&r->yaml);
	for (size_t i = 0; !status && i < n; i++)
		status = climb(r, path, (uint32_t)i);
	free(path);
	return status;
}

/* ---- Fixed power ------------------------------------------------------------------------------------------------- */

static ww_status check_fixed(const struct reader *r, size_t row)
{
	const struct place *place = &r->places[row];
	const struct ww_cluster_row *out = &r->cluster.rows[row];
	char label[WW_YAML_LABEL_MAX];
	ww_yaml_label(label, "", &row_table, place->node, row + 1);
	if (place->fixed_w < place->below_w * (1 - ROUNDING))
		return ww_yaml_fail(
			&r->yaml, WW_ERR_RANGE, ww_yaml_line(place->node, "fixed"),
			"%sfixed: %.10g W is less than the %.10g W fixed on the rows it feeds; write all of "
			"it, or remove the key to have those added up",
			label, place->fixed_w, place->below_w);
	if (out->fixed_w <= out->limit_w)
		return WW_OK;
	if (isnan(place->fixed_w))
		return ww_yaml_fail(&r->yaml, WW_ERR_RANGE, ww_yaml_line(place->node, "limit"),
		                    "%slimit: %.10g W is less than the %.10g W fixed on the rows it feeds; correct one "
		                    "of them",
		                    label, out->limit_w, out->fixed_w);
	return ww_yaml_fail(&r->yaml, WW_ERR_RANGE, ww_yaml_line(place->node, "fixed"),
	                    "%sfixed: %.10g W is more than the row's limit of %.10g W; correct one of them", label,
	                    place->fixed_w, out->limit_w);
}

/* From the lowest rows up: what a row carries itself goes to every row above it. */
static ww_status sum_fixed(struct reader *r)
{
	for (size_t i = r->n_order; i-- > 0;) {
		uint32_t row = r->order[i];
		struct place *place = &r->places[row];
		r->cluster.rows[row].fixed_w = isnan(place->fixed_w) ? place->below_w : place->fixed_w;
		double own_w = r->cluster.rows[row].fixed_w - place->below_w;
		for (size_t k = 0; k < place->reach.n; k++) {
			const struct ww_row_share *above = &r->reach[place->reach.first + k];
			if (above->row != row && own_w > 0)
				r->places[above->row].below_w += own_w * above->gpus;
		}
	}
	for (size_t row = 0; row < r->cluster.n_rows; row++) {
		ww_status status = check_fixed(r, row);
		if (status)
			return status;
	}
	return WW_OK;
}

/* ---- Jobs -------------------------------------------------------------------------------------------------------- */

/* A job being placed: where, and how many of its GPUs are there so far. */
struct placing {
	const struct raw_job *raw;
	const char *label;
	struct ww_index seen; /* rows of this job */
	uint64_t placed;
};

static bool always(const void *ctx, size_t item)
{
	return *(const size_t *)ctx == item;
}

static ww_status place_gpus(struct reader *r, struct placing *p, const struct raw_on *raw, size_t line)
{
	uint32_t row = 0;
	ww_status status = find_row(r, raw->row, line, p->label, &row);
	if (status)
		return status;
	size_t item = row;
	if (ww_index_find(&p->seen, row, always, &item) != WW_INDEX_NONE)
		return stands_twice(r, line, p->label, raw->row, "GPUs");
	if (!ww_index_add(&p->seen, row, item))
		return ww_yaml_no_memory(&r->yaml);
	p->placed += raw->gpus;
	const struct span *reach = &r->places[row].reach;
	for (size_t k = reach->first; k < reach->first + reach->n; k++)
		add_sum(r, r->reach[k].row, raw->gpus * r->reach[k].gpus);
	return WW_OK;
}

static ww_status read_share(struct reader *r, struct placing *p, const struct ww_yaml_node *node, size_t number)
{
	struct raw_on raw = {.gpus = 0};
	char entry[WW_YAML_LABEL_MAX];
	ww_yaml_label(entry, p->label, &share_table, node, number);
	ww_status status = read_entry(r, node, &share_table, entry, &raw);
	if (status)
		return status;
	if (raw.gpus == 0 && p->raw->on->n > 1)
		return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, node->line,
		                    "%sgpus: is missing; where a job is on several rows, each needs its number, like "
		                    "{row: rack-1, gpus: 8}",
		                    entry);
	if (raw.gpus == 0)
		raw.gpus = p->raw->gpus;
	return place_gpus(r, p, &raw, node->line);
}

static ww_status check_placed(const struct reader *r, const struct placing *p)
{
	uint64_t gpus = p->raw->gpus;
	if (p->placed == gpus)
		return WW_OK;
	return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, p->raw->on->line,
	                    "%son: the rows have %llu GPUs, but the job has gpus: %llu; %s", p->label,
	                    (unsigned long long)p->placed, (unsigned long long)gpus,
	                    p->placed < gpus ? "place the missing ones, or correct gpus"
	                                     : "correct gpus, or place fewer");
}

static ww_status read_shares(struct reader *r, struct placing *p)
{
	const struct ww_yaml_node *on = p->raw->on;
	struct raw_on raw = {.gpus = p->raw->gpus};
	char field[WW_YAML_LABEL_MAX + 8];
	size_t number = 0;
	if (on->form != WW_YAML_LIST) {
		snprintf(field, sizeof field, "%son: ", p->label);
		ww_status status = ww_yaml_read_name(&r->yaml, on, field, &raw.row);
		return status ? status : place_gpus(r, p, &raw, on->line);
	}
	for (const struct ww_yaml_node *node = on->first; node; node = node->next) {
		ww_status status = read_share(r, p, node, ++number);
		if (status)
			return status;
	}
	return check_placed(r, p);
}

static ww_status place_job(struct reader *r, const struct raw_job *raw, const char *label, struct ww_cluster_job *job)
{
	struct placing p = {.raw = raw, .label = label};
	if (!raw->on)
		return WW_OK;
	ww_status status = read_shares(r, &p);
	ww_index_finish(&p.seen);
	if (status)
		return status;
	job->loads = calloc(r->n_touched, sizeof *job->loads);
	if (!job->loads)
		return ww_yaml_no_memory(&r->yaml);
	job->n_loads = r->n_touched;
	take_sums(r, raw->gpus, job->loads);
	return WW_OK;
}

static ww_status check_job(const struct reader *r, const struct raw_job *raw, const struct ww_yaml_node *node,
                           const char *label)
{
	struct name_key key = {&r->cluster, raw->name};
	size_t old = ww_index_find(&r->by_job, ww_hash_text(raw->name), same_job, &key);
	if (old != WW_INDEX_NONE)
		return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, ww_yaml_line(node, "job"),
		                    "%sjob: is also the name of the job on line %zu; rename one of them, and name the "
		                    "group in 'sweep'",
		                    label, r->cluster.jobs[old].line);
	if (raw->min_w > raw->max_w)
		return ww_yaml_fail(&r->yaml, WW_ERR_RANGE, ww_yaml_line(node, "min"),
		                    "%smin: %.10g W is more than max, %.10g W; correct one of them", label, raw->min_w,
		                    raw->max_w);
	return WW_OK;
}

static ww_status add_job(struct reader *r, const struct ww_yaml_node *node, const char *label)
{
	static const double floors[] = {1.00, 0.90, 0.75, 0.50};
	struct ww_cluster *c = &r->cluster;
	struct raw_job raw = {.tier = NOT_GIVEN, .floor_frac = NAN, .weight = 1, .min_w = NAN, .max_w = NAN};
	struct ww_yaml_field fields[N_FIELDS(job_fields)];
	struct ww_yaml_table table = job_table;
	memcpy(fields, job_fields, sizeof fields);
	fields[N_FIELDS(fields) - 1].required = c->n_rows > 0;
	table.fields = fields;
	ww_status status = ww_yaml_read_map(&r->yaml, node, &table, label, &raw);
	if (status || (status = check_job(r, &raw, node, label)))
		return status;

	/* Counted at once, so that what it holds is freed after any failure. */
	struct ww_cluster_job *job = &c->jobs[c->n_jobs++];
	*job = (struct ww_cluster_job){.name = ww_copy_text(raw.name),
	                               .sweep = ww_copy_text(raw.sweep ? raw.sweep : raw.name),
	                               .gpus = raw.gpus,
	                               .tier = raw.tier == NOT_GIVEN ? 3 : (int)raw.tier,
	                               .floor_frac = raw.floor_frac,
	                               .weight = raw.weight,
	                               .min_w = raw.min_w,
	                               .max_w = raw.max_w,
	                               .line = node->line};
	if (isnan(job->floor_frac))
		job->floor_frac = raw.tier == NOT_GIVEN ? 0 : floors[raw.tier];
	if (!job->name || !job->sweep || !ww_index_add(&r->by_job, ww_hash_text(raw.name), c->n_jobs - 1))
		return ww_yaml_no_memory(&r->yaml);
	return place_job(r, &raw, label, job);
}

static ww_status read_jobs(struct reader *r, const struct ww_yaml_node *list)
{
	char label[WW_YAML_LABEL_MAX];
	size_t number = 0;
	r->cluster.jobs = calloc(list->n, sizeof *r->cluster.jobs);
	if (!r->cluster.jobs)
		return ww_yaml_no_memory(&r->yaml);
	for (const struct ww_yaml_node *node = list->first; node; node = node->next) {
		ww_yaml_label(label, "", &job_table, node, ++number);
		ww_status status = add_job(r, node, label);
		if (status)
			return status;
	}
	return WW_OK;
}

/* ---- The whole --------------------------------------------------------------------------------------------------- */

static ww_status read_file(struct reader *r, const char *name)
{
	struct raw_file raw = {0};
	ww_status status = ww_yaml_read_map(&r->yaml, r->yaml.root, &file_table, "", &raw);
	if (!status && raw.rows)
		status = read_rows(r, raw.rows);
	if (status || (status = join_rows(r)) || (status = sum_fixed(r)) || (status = read_jobs(r, raw.jobs)))
		return status;
	r->cluster.file = ww_copy_text(name);
	return r->cluster.file ? WW_OK : ww_yaml_no_memory(&r->yaml);
}

ww_status ww_cluster_parse(FILE *in, const char *name, struct ww_cluster *out, struct ww_error *err)
{
	struct reader r = {0};
	ww_status status = ww_yaml_load(&r.yaml, in, name, "cluster", err);
	if (!status)
		status = read_file(&r, name);
	if (status)
		ww_cluster_finish(&r.cluster);
	else
		*out = r.cluster;
	ww_yaml_finish(&r.yaml);
	ww_index_finish(&r.by_row);
	ww_index_finish(&r.by_job);
	free(r.places);
	free(r.feeds);
	free(r.reach);
	free(r.order);
	free(r.touched);
	free(r.sum);
	return status;
}

ww_status ww_cluster_read(const char *path, struct ww_cluster *out, struct ww_error *err)
{
	ww_status status;
	FILE *in = ww_yaml_open(path, &status, err);
	if (!in)
		return status;
	status = ww_cluster_parse(in, in == stdin ? "<stdin>" : path, out, err);
	if (in != stdin)
		(void)fclose(in);
	return status;
}

void ww_cluster_finish(struct ww_cluster *cluster)
{
	if (!cluster)
		return;
	for (size_t i = 0; i < cluster->n_rows; i++)
		free(cluster->rows[i].name);
	for (size_t i = 0; i < cluster->n_jobs; i++) {
		free(cluster->jobs[i].name);
		free(cluster->jobs[i].sweep);
		free(cluster->jobs[i].loads);
	}
	free(cluster->rows);
	free(cluster->jobs);
	free(cluster->file);
	*cluster = (struct ww_cluster){0};
}
