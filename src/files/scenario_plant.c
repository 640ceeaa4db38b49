/* SPDX-License-Identifier: Apache-2.0 */
/* Rows, what feeds them, and the nodes on them. */
#include "files/scenario_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct raw_row {
	const char *name;
	uint32_t count;
	const struct ww_yaml_node *on;
	double limit_w, meter_noise_frac, other_w, cooling_frac, guard_frac;
	uint32_t boundary;
	bool has_meter;
	int64_t cooling_lag_us;
};

static const struct ww_yaml_field row_fields[] = {
	{"name", WW_YAML_NAME, true, WW_FIELD(raw_row, name), 0, 0, NULL},
	{"count", WW_YAML_COUNT, false, WW_FIELD(raw_row, count), 1, WW_SCENARIO_ROWS_MAX, "must be 1 to 4096"},
	{"on", WW_YAML_NODE, false, WW_FIELD(raw_row, on), 0, 0, NULL},
	{"limit", WW_YAML_POWER, false, WW_FIELD(raw_row, limit_w), WW_SOME_POWER},
	{"boundary", WW_YAML_WORD, false, WW_FIELD(raw_row, boundary), 0, 0, "write gpu, it or meter"},
	{"meter", WW_YAML_YES, false, WW_FIELD(raw_row, has_meter), 0, 0, NULL},
	{"meter_noise", WW_YAML_PERCENT, false, WW_FIELD(raw_row, meter_noise_frac), 0, 0.2, "must be 0% to 20%"},
	{"other", WW_YAML_POWER, false, WW_FIELD(raw_row, other_w), WW_ANY_POWER},
	{"cooling", WW_YAML_PERCENT, false, WW_FIELD(raw_row, cooling_frac), 0, 2, "must be 0% to 200%"},
	{"cooling_lag", WW_YAML_DURATION, false, WW_FIELD(raw_row, cooling_lag_us), WW_ANY_TIME},
	{"guard", WW_YAML_PERCENT, false, WW_FIELD(raw_row, guard_frac), 0, 0.5, "must be 0% to 50%"},
};
static const struct ww_yaml_table row_table = {"row", "name", row_fields, WW_N_FIELDS(row_fields)};

struct raw_feed {
	const char *row;
	double share_frac;
};

static const struct ww_yaml_field feed_fields[] = {
	{"row", WW_YAML_NAME, true, WW_FIELD(raw_feed, row), 0, 0, NULL},
	{"share", WW_YAML_PERCENT, false, WW_FIELD(raw_feed, share_frac), 0.001, 1, "must be 0.1% to 100%"},
};
static const struct ww_yaml_table feed_table = {"on", "row", feed_fields, WW_N_FIELDS(feed_fields)};

struct raw_node {
	const char *name;
	uint32_t count, gpus;
	const struct ww_yaml_node *on;
	double host_w, follow_frac, boot_cap_w;
	int64_t lag_us, boot_us;
};

static const struct ww_yaml_field node_fields[] = {
	{"name", WW_YAML_NAME, true, WW_FIELD(raw_node, name), 0, 0, NULL},
	{"count", WW_YAML_COUNT, false, WW_FIELD(raw_node, count), 1, WW_SCENARIO_NODES_MAX, "must be 1 to 16384"},
	{"gpus", WW_YAML_COUNT, true, WW_FIELD(raw_node, gpus), 1, WW_NODE_GPUS_MAX, "must be 1 to 16"},
	{"on", WW_YAML_NODE, true, WW_FIELD(raw_node, on), 0, 0, NULL},
	{"host", WW_YAML_POWER, true, WW_FIELD(raw_node, host_w), 0, 1e6, "must be 0 W to 1 MW"},
	{"follow", WW_YAML_PERCENT, false, WW_FIELD(raw_node, follow_frac), 0, 2, "must be 0% to 200%"},
	{"lag", WW_YAML_DURATION, false, WW_FIELD(raw_node, lag_us), WW_ANY_TIME},
	{"boot", WW_YAML_DURATION, false, WW_FIELD(raw_node, boot_us), WW_ANY_TIME},
	{"boot_cap", WW_YAML_POWER, false, WW_FIELD(raw_node, boot_cap_w), WW_GPU_POWER},
};
static const struct ww_yaml_table node_table = {"node", "name", node_fields, WW_N_FIELDS(node_fields)};

/* ---- What feeds a row or a node ---------------------------------------------------------------------------------- */

/* A name stands for one row, or for all rows of a count. */
static ww_status add_feed(const struct ww_scenario_reader *r, const struct ww_yaml_node *name, const char *label,
                          double share_frac, struct ww_scenario_feeds *feeds)
{
	uint32_t row = 0, count = 1, entry;
	ww_status status = WW_OK;
	if (!ww_book_has(&r->rows, name->text, &row) && ww_book_has(&r->row_entries, name->text, &entry)) {
		row = r->entries[entry].row;
		count = r->entries[entry].count;
	} else {
		status = ww_book_find(r, &r->rows, name, label, &row);
	}
	if (status)
		return status;
	if (count > feeds->users)
		return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, name->line,
		                    "%s'%s' stands for %u rows; name one of them, or write a count of %u or more here",
		                    label, name->text, (unsigned)count, (unsigned)count);
	for (uint32_t i = 0; i < feeds->n; i++)
		if (feeds->feed[i].row < row + count && row < feeds->feed[i].row + feeds->feed[i].count)
			return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, name->line,
			                    "%s'%s' stands here twice; add up its shares in one entry", label,
			                    name->text);
	feeds->feed[feeds->n].row = row;
	feeds->feed[feeds->n].count = count;
	feeds->feed[feeds->n++].frac = share_frac;
	return WW_OK;
}

/* The feeds of the one at `place` among all users: the first ones on the first row of a count. */
static struct ww_scenario_feeds spread(const struct ww_scenario_feeds *all, uint32_t place)
{
	struct ww_scenario_feeds one = *all;
	for (uint32_t i = 0; i < one.n; i++) {
		one.feed[i].row += (uint32_t)((uint64_t)place * one.feed[i].count / all->users);
		one.feed[i].count = 1;
	}
	return one;
}

/* An entry of the list is a name, or {row: NAME, share: 50%}; the share may be left out where there is one. */
static ww_status read_feed(const struct ww_scenario_reader *r, const struct ww_yaml_node *node, const char *label,
                           bool is_only, struct ww_scenario_feeds *feeds)
{
	struct raw_feed raw = {.share_frac = NAN};
	const struct ww_yaml_node *name = node;
	ww_status status;
	if (node->form == WW_YAML_TEXT) {
		status = ww_yaml_read_name(&r->yaml, node, label, &raw.row);
	} else {
		status = ww_yaml_read_map(&r->yaml, node, &feed_table, label, &raw);
		name = status ? node : ww_scenario_value(node, "row");
	}
	if (status)
		return status;
	if (isnan(raw.share_frac) && !is_only)
		return ww_yaml_fail(
			&r->yaml, WW_ERR_INVALID, node->line,
			"%sshare: is missing; where there are several rows, each needs its share, like {row: "
			"feed-a, share: 50%%}",
			label);
	return add_feed(r, name, label, isnan(raw.share_frac) ? 1 : raw.share_frac, feeds);
}

static ww_status check_shares(const struct ww_scenario_reader *r, const struct ww_yaml_node *on, const char *label,
                              const struct ww_scenario_feeds *feeds)
{
	double sum = 0;
	for (uint32_t i = 0; i < feeds->n; i++)
		sum += feeds->feed[i].frac;
	if (fabs(sum - 1) < 0.001001)
		return WW_OK;
	return ww_yaml_fail(&r->yaml, WW_ERR_RANGE, on->line,
	                    "%sthe shares add up to %.10g%%, not to 100%%; correct them", label, 100 * sum);
}

static ww_status read_on(const struct ww_scenario_reader *r, const struct ww_yaml_node *on, const char *parent,
                         struct ww_scenario_feeds *feeds)
{
	char label[WW_YAML_LABEL_MAX + 8];
	const char *name;
	ww_status status;
	snprintf(label, sizeof label, "%son: ", parent);
	if (on->form != WW_YAML_LIST) {
		status = ww_yaml_read_name(&r->yaml, on, label, &name);
		return status ? status : add_feed(r, on, label, 1, feeds);
	}
	if (on->n > WW_SCENARIO_FEEDS_MAX)
		return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, on->line, "%shas more than %d rows; put rows in between",
		                    label, WW_SCENARIO_FEEDS_MAX);
	for (const struct ww_yaml_node *node = on->first; node; node = node->next) {
		status = read_feed(r, node, label, on->n == 1, feeds);
		if (status)
			return status;
	}
	return check_shares(r, on, label, feeds);
}

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

static ww_status add_row(struct ww_scenario_reader *r, const struct ww_yaml_node *node, const char *label,
                         const struct raw_row *raw, uint32_t number)
{
	if (r->s.n_rows == WW_SCENARIO_ROWS_MAX)
		return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, node->line, "%smore than %d rows; leave out the lowest",
		                    label, WW_SCENARIO_ROWS_MAX);
	if (!ww_grow(r->s.rows, r->s.n_rows, 1))
		return ww_yaml_no_memory(&r->yaml);
	struct ww_scenario_row *row = &r->s.rows[r->s.n_rows];
	*row = (struct ww_scenario_row){.limit_w = raw->limit_w,
	                                .boundary = (uint8_t)raw->boundary,
	                                .has_meter = raw->has_meter,
	                                .meter_noise_frac = raw->meter_noise_frac,
	                                .other_w = raw->other_w,
	                                .cooling_frac = raw->cooling_frac,
	                                .cooling_lag_us = raw->cooling_lag_us,
	                                .guard_frac = raw->guard_frac,
	                                .line = node->line};
	ww_status status = ww_scenario_name(r, node, label, number, &row->name);
	if (status)
		return status;
	r->s.n_rows++;
	return ww_book_add(r, &r->rows, row->name, ww_yaml_line(node, "name"), label);
}

static ww_status add_rows(struct ww_scenario_reader *r, const struct ww_yaml_node *node, const char *label)
{
	struct raw_row raw = {.count = WW_NOT_GIVEN,
	                      .limit_w = INFINITY,
	                      .boundary = WW_BOUNDARY_METER,
	                      .meter_noise_frac = 0.002,
	                      .cooling_lag_us = 300 * WW_SECOND_US,
	                      .guard_frac = r->guard_frac};
	ww_status status = ww_yaml_read_map(&r->yaml, node, &row_table, label, &raw);
	bool is_counted = raw.count != WW_NOT_GIVEN;
	if (status)
		return status;
	if (isinf(raw.limit_w) && ww_scenario_value(node, "boundary"))
		return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, ww_yaml_line(node, "boundary"),
		                    "%sboundary: is that of a limit, but there is none; add limit, or remove it",
		                    label);
	raw.count = is_counted ? raw.count : 1;
	if (!ww_grow(r->entries, r->row_entries.n, 1))
		return ww_yaml_no_memory(&r->yaml);
	r->entries[r->row_entries.n] = (struct ww_scenario_entry){node, (uint32_t)r->s.n_rows, raw.count};
	status = ww_book_add(r, &r->row_entries, raw.name, ww_yaml_line(node, "name"), label);
	for (uint32_t i = 1; i <= raw.count && !status; i++)
		status = add_row(r, node, label, &raw, is_counted ? i : 0);
	return status;
}

static bool are_ordered(const struct ww_scenario_feeds *feeds, const bool *done)
{
	for (uint32_t i = 0; i < feeds->n; i++)
		if (!done[feeds->feed[i].row])
			return false;
	return true;
}

/* Up from a row that could not be ordered: every one of those has such a row above it, so this ends in a circle. */
static ww_status circle(const struct ww_scenario_reader *r, const bool *done)
{
	char label[WW_YAML_LABEL_MAX];
	uint32_t row = 0;
	while (done[row])
		row++;
	for (size_t step = 0; step < r->s.n_rows; step++) {
		const struct ww_scenario_feeds *feeds = &r->feeds[row];
		uint32_t i = 0;
		while (done[feeds->feed[i].row])
			i++;
		row = feeds->feed[i].row;
	}
	size_t entry = 0;
	while (row >= r->entries[entry].row + r->entries[entry].count)
		entry++;
	const struct ww_yaml_node *node = r->entries[entry].map;
	ww_yaml_label(label, "", &row_table, node, entry + 1);
	return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, ww_yaml_line(node, "on"),
	                    "%son: feeds itself, directly or through others; power comes from above: name another row",
	                    label);
}

static ww_status order_rows(struct ww_scenario_reader *r)
{
	size_t n = 0, before = SIZE_MAX;
	bool *done = calloc(r->s.n_rows, sizeof *done);
	ww_status status = WW_OK;
	if (!done)
		return ww_yaml_no_memory(&r->yaml);
	while (n < r->s.n_rows && n != before) {
		before = n;
		for (uint32_t i = 0; i < r->s.n_rows; i++) {
			if (done[i] || !are_ordered(&r->feeds[i], done))
				continue;
			done[i] = true;
			r->order[n++] = i;
		}
	}
	if (n < r->s.n_rows)
		status = circle(r, done);
	free(done);
	return status;
}

/* From the lowest rows up: a row carries the other power of those it feeds. */
static void sum_other(struct ww_scenario_reader *r)
{
	for (size_t i = r->s.n_rows; i-- > 0;) {
		const struct ww_scenario_feeds *feeds = &r->feeds[r->order[i]];
		for (uint32_t k = 0; k < feeds->n; k++)
			r->s.rows[feeds->feed[k].row].other_w += feeds->feed[k].frac * r->s.rows[r->order[i]].other_w;
	}
}

/* What feeds the rows of one entry. */
static ww_status feed_rows(struct ww_scenario_reader *r, size_t number)
{
	char label[WW_YAML_LABEL_MAX];
	const struct ww_scenario_entry *entry = &r->entries[number - 1];
	const struct ww_yaml_node *on = ww_scenario_value(entry->map, "on");
	struct ww_scenario_feeds feeds = {.users = entry->count};
	if (!on)
		return WW_OK;
	ww_yaml_label(label, "", &row_table, entry->map, number);
	ww_status status = read_on(r, on, label, &feeds);
	for (uint32_t i = 0; i < entry->count && !status; i++)
		r->feeds[entry->row + i] = spread(&feeds, i);
	return status;
}

ww_status ww_scenario_rows(struct ww_scenario_reader *r, const struct ww_yaml_node *list)
{
	char label[WW_YAML_LABEL_MAX];
	ww_status status = WW_OK;
	size_t number = 0;
	for (const struct ww_yaml_node *node = list->first; node && !status; node = node->next) {
		ww_yaml_label(label, "", &row_table, node, ++number);
		status = add_rows(r, node, label);
	}
	if (status)
		return status;
	r->feeds = calloc(r->s.n_rows, sizeof *r->feeds);
	r->order = calloc(r->s.n_rows, sizeof *r->order);
	if (!r->feeds || !r->order)
		return ww_yaml_no_memory(&r->yaml);
	for (number = 1; number <= r->row_entries.n && !status; number++)
		status = feed_rows(r, number);
	if (status || (status = order_rows(r)))
		return status;
	sum_other(r);
	return WW_OK;
}

/* ---- Nodes ------------------------------------------------------------------------------------------------------- */

/* Adds a part of the node's power to a row and all rows above; false when they are too many, which also bounds the
 * recursion. */
static bool carry(const struct ww_scenario_reader *r, struct ww_scenario_node *node, uint32_t row, double frac)
{
	uint32_t i = 0;
	while (i < node->n_loads && node->loads[i].row < row)
		i++;
	if (i == node->n_loads || node->loads[i].row != row) {
		if (node->n_loads == WW_ROW_LOADS_MAX)
			return false;
		memmove(&node->loads[i + 1], &node->loads[i], (node->n_loads++ - i) * sizeof node->loads[0]);
		node->loads[i] = (struct ww_row_load){row, 0};
	}
	node->loads[i].frac = fminf(node->loads[i].frac + (float)frac, 1);
	for (uint32_t k = 0; k < r->feeds[row].n; k++)
		if (!carry(r, node, r->feeds[row].feed[k].row, frac * r->feeds[row].feed[k].frac))
			return false;
	return true;
}

static ww_status check_node(const struct ww_scenario_reader *r, const struct ww_yaml_node *node, const char *label,
                            const struct raw_node *raw)
{
	const struct ww_scenario_gpu *g = &r->s.gpu;
	if (raw->boot_cap_w < g->min_w || raw->boot_cap_w > g->max_w)
		return ww_yaml_fail(
			&r->yaml, WW_ERR_RANGE, ww_yaml_line(node, "boot_cap"),
			"%sboot_cap: %.10g W is not within min and max of gpu, %.10g W to %.10g W; correct it", label,
			raw->boot_cap_w, g->min_w, g->max_w);
	if (r->s.n_nodes + raw->count > WW_SCENARIO_NODES_MAX)
		return ww_yaml_fail(&r->yaml, WW_ERR_RANGE, node->line, "%smore than %d nodes; leave some out", label,
		                    WW_SCENARIO_NODES_MAX);
	return WW_OK;
}

/* The rows that carry it. */
static ww_status load_rows(const struct ww_scenario_reader *r, const struct ww_yaml_node *on, const char *label,
                           const struct ww_scenario_feeds *feeds, struct ww_scenario_node *node)
{
	node->n_loads = 0;
	for (uint32_t i = 0; i < feeds->n; i++)
		if (!carry(r, node, feeds->feed[i].row, feeds->feed[i].frac))
			return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, on->line,
			                    "%son: more than %d rows carry it; leave out those that never bind", label,
			                    WW_ROW_LOADS_MAX);
	return WW_OK;
}

static ww_status add_node(struct ww_scenario_reader *r, const struct ww_yaml_node *map, const char *label,
                          struct ww_scenario_node *node, uint32_t number)
{
	if (!ww_grow(r->s.nodes, r->s.n_nodes, 1))
		return ww_yaml_no_memory(&r->yaml);
	node->first_gpu = r->s.n_gpus;
	ww_status status = ww_scenario_name(r, map, label, number, &node->name);
	if (status)
		return status;
	r->s.nodes[r->s.n_nodes++] = *node;
	r->s.n_gpus += node->gpus;
	return ww_book_add(r, &r->nodes, node->name, ww_yaml_line(map, "name"), label);
}

static ww_status add_nodes(struct ww_scenario_reader *r, const struct ww_yaml_node *map, const char *label)
{
	struct raw_node raw = {
		.count = WW_NOT_GIVEN, .boot_cap_w = NAN, .lag_us = 60 * WW_SECOND_US, .boot_us = 60 * WW_SECOND_US};
	struct ww_scenario_feeds feeds = {0};
	ww_status status = ww_yaml_read_map(&r->yaml, map, &node_table, label, &raw);
	bool is_counted = raw.count != WW_NOT_GIVEN;
	raw.count = feeds.users = is_counted ? raw.count : 1;
	if (status || (status = check_node(r, map, label, &raw)) || (status = read_on(r, raw.on, label, &feeds)))
		return status;
	struct ww_scenario_node node = {.gpus = raw.gpus,
	                                .host_w = raw.host_w,
	                                .follow_frac = raw.follow_frac,
	                                .lag_us = raw.lag_us,
	                                .boot_us = raw.boot_us,
	                                .boot_cap_w = raw.boot_cap_w,
	                                .line = map->line};
	for (uint32_t i = 0; i < raw.count && !status; i++) {
		struct ww_scenario_feeds own = spread(&feeds, i);
		status = load_rows(r, raw.on, label, &own, &node);
		if (!status)
			status = add_node(r, map, label, &node, is_counted ? i + 1 : 0);
	}
	return status;
}

/* The nodes of each row, from the rows of each node. */
static ww_status turn_loads(struct ww_scenario_reader *r)
{
	struct ww_scenario *s = &r->s;
	for (size_t i = 0; i < s->n_nodes; i++)
		for (uint32_t k = 0; k < s->nodes[i].n_loads; k++)
			s->rows[s->nodes[i].loads[k].row].n_loads++;
	for (size_t i = 0; i < s->n_rows; i++) {
		struct ww_scenario_row *row = &s->rows[i];
		if (row->n_loads == 0)
			return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, row->line,
			                    "row '%s': no node is on it; put one on it, or remove the row", row->name);
		row->loads = calloc(row->n_loads, sizeof *row->loads);
		if (!row->loads)
			return ww_yaml_no_memory(&r->yaml);
		row->n_loads = 0;
	}
	for (size_t i = 0; i < s->n_nodes; i++)
		for (uint32_t k = 0; k < s->nodes[i].n_loads; k++) {
			struct ww_scenario_row *row = &s->rows[s->nodes[i].loads[k].row];
			row->loads[row->n_loads++] =
				(struct ww_scenario_load){(uint32_t)i, (double)s->nodes[i].loads[k].frac};
		}
	return WW_OK;
}

ww_status ww_scenario_nodes(struct ww_scenario_reader *r, const struct ww_yaml_node *list)
{
	char label[WW_YAML_LABEL_MAX];
	ww_status status = WW_OK;
	size_t number = 0;
	for (const struct ww_yaml_node *node = list->first; node && !status; node = node->next) {
		ww_yaml_label(label, "", &node_table, node, ++number);
		status = add_nodes(r, node, label);
	}
	return status ? status : turn_loads(r);
}
