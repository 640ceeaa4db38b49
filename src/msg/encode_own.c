/* SPDX-License-Identifier: Apache-2.0 */
/* What the brain is told from its own side: jobs, events, meters, leadership, inventory and power plan. Each reader stands
 * below its writer and mirrors it line by line. */
#include "msg/msg.h"
#include "msg/msg_internal.h"

#include <math.h>
#include <stdlib.h>

/* ---- Jobs ---------------------------------------------------------------------------------------------------------- */

static void put_curve(struct ww_buf *buf, const struct ww_curve *v)
{
	ww_buf_f64(buf, v->p0_w);
	ww_buf_f64(buf, v->t0_tps);
	ww_buf_f64(buf, v->max_cut_frac);
	ww_buf_f64(buf, v->var_a);
	ww_buf_f64(buf, v->var_b);
	ww_buf_f64(buf, v->cov_ab);
	ww_buf_u32(buf, v->flags);
	ww_buf_u8(buf, (uint8_t)v->status);
	ww_buf_u32(buf, v->n);
	for (uint32_t i = 0; i < v->n; i++) {
		ww_buf_f64(buf, v->k[i].cut_frac);
		ww_buf_f64(buf, v->k[i].loss_frac);
		ww_buf_f64(buf, v->k[i].slope);
	}
}

static void read_curve(struct ww_read *read, struct ww_curve *v)
{
	v->p0_w = msg_read_finite(read);
	v->t0_tps = msg_read_finite(read);
	v->max_cut_frac = msg_read_finite(read);
	v->var_a = msg_read_finite(read);
	v->var_b = msg_read_finite(read);
	v->cov_ab = msg_read_finite(read);
	v->flags = ww_read_u32(read);
	v->status = msg_read_below(read, WW_PFI_BOUND + 1);
	v->n = ww_read_count(read, WW_MAX_KNOTS, sizeof(struct ww_knot));
	for (uint32_t i = 0; i < v->n; i++) {
		v->k[i].cut_frac = msg_read_finite(read);
		v->k[i].loss_frac = msg_read_finite(read);
		v->k[i].slope = msg_read_finite(read);
	}
}

/* Of a job that ends nothing else counts. */
void ww_encode_job(struct ww_buf *buf, const struct ww_job *v)
{
	ww_buf_u64(buf, v->id);
	ww_buf_text(buf, v->name);
	ww_buf_u32(buf, v->n_places);
	if (v->n_places == 0)
		return;
	for (uint32_t i = 0; i < v->n_places; i++) {
		ww_buf_u64(buf, v->places[i].node);
		ww_buf_u32(buf, v->places[i].gpus);
	}
	ww_buf_u32(buf, (uint32_t)v->tier);
	ww_buf_f64(buf, v->floor_frac);
	ww_buf_f64(buf, v->weight);
	ww_buf_u8(buf, v->has_curve);
	if (v->has_curve)
		put_curve(buf, &v->curve);
}

void ww_decode_job(struct ww_read *read, struct ww_job *v)
{
	*v = (struct ww_job){0};
	v->id = ww_read_u64(read);
	ww_read_text(read, v->name, sizeof v->name);
	v->n_places = ww_read_count(read, WW_JOB_PLACES_MAX, 12);
	if (v->n_places == 0)
		return;
	for (uint32_t i = 0; i < v->n_places; i++) {
		v->places[i].node = ww_read_u64(read);
		v->places[i].gpus = ww_read_u32(read);
	}
	v->tier = (int32_t)ww_read_u32(read);
	v->floor_frac = msg_read_finite(read);
	v->weight = msg_read_finite(read);
	v->has_curve = msg_read_flag(read);
	if (v->has_curve)
		read_curve(read, &v->curve);
}

/* ---- Events, meters, leadership -------------------------------------------------------------------------------------- */

void ww_encode_event(struct ww_buf *buf, const struct ww_event *v)
{
	ww_buf_u64(buf, v->id);
	ww_buf_u32(buf, v->version);
	ww_buf_u8(buf, v->cancelled);
	ww_buf_u64(buf, v->row);
	ww_buf_u8(buf, v->boundary);
	ww_buf_u8(buf, v->cls);
	ww_buf_i64(buf, v->start_us);
	ww_buf_i64(buf, v->end_us);
	ww_buf_f64(buf, v->limit_w);
	ww_buf_f64(buf, v->cut_frac);
	ww_buf_i64(buf, v->ramp_down_us);
	ww_buf_i64(buf, v->ramp_up_us);
}

void ww_decode_event(struct ww_read *read, struct ww_event *v)
{
	*v = (struct ww_event){0};
	v->id = ww_read_u64(read);
	v->version = ww_read_u32(read);
	v->cancelled = msg_read_flag(read);
	v->row = ww_read_u64(read);
	v->boundary = msg_read_below(read, WW_N_BOUNDARIES);
	v->cls = msg_read_below(read, WW_N_CLASSES);
	v->start_us = ww_read_i64(read);
	v->end_us = ww_read_i64(read);
	v->limit_w = msg_read_known(read);
	v->cut_frac = msg_read_known(read);
	v->ramp_down_us = ww_read_i64(read);
	v->ramp_up_us = ww_read_i64(read);
}

void ww_encode_meter(struct ww_buf *buf, const struct ww_meter *v)
{
	ww_buf_u64(buf, v->row);
	msg_put_reading(buf, &v->power_w);
}

void ww_decode_meter(struct ww_read *read, struct ww_meter *v)
{
	*v = (struct ww_meter){0};
	v->row = ww_read_u64(read);
	v->power_w = msg_read_reading(read);
}

void ww_encode_leader(struct ww_buf *buf, const struct ww_leader *v)
{
	ww_buf_u64(buf, v->epoch);
	ww_buf_u8(buf, v->leads);
}

void ww_decode_leader(struct ww_read *read, struct ww_leader *v)
{
	*v = (struct ww_leader){0};
	v->epoch = ww_read_u64(read);
	v->leads = msg_read_flag(read);
}

/* ---- Inventory and power plan ---------------------------------------------------------------------------------------- */

static void put_row(struct ww_buf *buf, const struct ww_row *v)
{
	ww_buf_u64(buf, v->id);
	ww_buf_text(buf, v->name);
	ww_buf_f64(buf, v->limit_w);
	ww_buf_u8(buf, v->boundary);
	ww_buf_u8(buf, v->has_meter);
	ww_buf_u8(buf, v->meter_boundary);
	for (int b = 0; b < WW_N_BOUNDARIES; b++) {
		ww_buf_f64(buf, v->fixed_w[b]);
		ww_buf_f64(buf, v->follow[b]);
	}
	ww_buf_f64(buf, v->guard_frac);
}

static void read_row(struct ww_read *read, struct ww_row *v)
{
	*v = (struct ww_row){0};
	v->id = ww_read_u64(read);
	ww_read_text(read, v->name, sizeof v->name);
	v->limit_w = ww_read_f64(read);
	if (!(v->limit_w > 0))
		ww_read_bad(read);
	v->boundary = msg_read_below(read, WW_N_BOUNDARIES);
	v->has_meter = msg_read_flag(read);
	v->meter_boundary = msg_read_below(read, WW_N_BOUNDARIES);
	for (int b = 0; b < WW_N_BOUNDARIES; b++) {
		v->fixed_w[b] = msg_read_finite(read);
		v->follow[b] = msg_read_finite(read);
	}
	v->guard_frac = msg_read_finite(read);
}

#define ROW_BYTES (8 + 4 + 8 + 3 + WW_N_BOUNDARIES * 16 + 8)

static void put_node(struct ww_buf *buf, const struct ww_node_config *v)
{
	ww_buf_u64(buf, v->id);
	ww_buf_text(buf, v->name);
	ww_buf_u32(buf, v->n_gpus);
	ww_buf_f32(buf, v->min_w);
	ww_buf_f32(buf, v->max_w);
	ww_buf_f32(buf, v->default_w);
	ww_buf_f32(buf, v->boot_cap_w);
	ww_buf_i64(buf, v->shortest_boot_us);
	ww_buf_u32(buf, v->n_loads);
	for (uint32_t i = 0; i < v->n_loads; i++) {
		ww_buf_u32(buf, v->loads[i].row);
		ww_buf_f32(buf, v->loads[i].frac);
	}
}

static void read_node(struct ww_read *read, struct ww_node_config *v)
{
	*v = (struct ww_node_config){0};
	v->id = ww_read_u64(read);
	ww_read_text(read, v->name, sizeof v->name);
	v->n_gpus = ww_read_u32(read);
	v->min_w = msg_read_cap(read);
	v->max_w = msg_read_cap(read);
	v->default_w = msg_read_cap(read);
	v->boot_cap_w = msg_read_cap(read);
	v->shortest_boot_us = ww_read_i64(read);
	v->n_loads = ww_read_count(read, WW_ROW_LOADS_MAX, 8);
	for (uint32_t i = 0; i < v->n_loads; i++) {
		v->loads[i].row = ww_read_u32(read);
		v->loads[i].frac = msg_read_cap(read);
		if (isnan(v->loads[i].frac))
			ww_read_bad(read);
	}
	if (v->n_gpus > WW_NODE_GPUS_MAX || isnan(v->min_w) || isnan(v->max_w) || isnan(v->default_w))
		ww_read_bad(read);
}

#define NODE_BYTES (8 + 4 + 4 + 16 + 8 + 4)

void ww_encode_config(struct ww_buf *buf, const struct ww_config *v)
{
	ww_buf_u64(buf, v->cluster);
	ww_buf_u32(buf, v->objective);
	ww_buf_i64(buf, v->valid_for_us);
	ww_buf_i64(buf, v->settle_us);
	ww_buf_u8(buf, v->after);
	ww_buf_u8(buf, v->trim);
	ww_buf_u32(buf, v->n_rows);
	for (uint32_t i = 0; i < v->n_rows; i++)
		put_row(buf, &v->rows[i]);
	ww_buf_u32(buf, v->n_nodes);
	for (uint32_t i = 0; i < v->n_nodes; i++)
		put_node(buf, &v->nodes[i]);
}

/* NULL for no elements, and bad without memory. */
static void *many(struct ww_read *read, uint32_t n, size_t size)
{
	void *all = n > 0 ? calloc(n, size) : NULL;
	if (n > 0 && !all)
		ww_read_bad(read);
	return all;
}

static void read_rows(struct ww_read *read, struct ww_config *v)
{
	uint32_t n = ww_read_count(read, WW_CONFIG_ROWS_MAX, ROW_BYTES);
	struct ww_row *rows = many(read, n, sizeof *rows);
	v->rows = rows;
	v->n_rows = n;
	for (uint32_t i = 0; i < n && !read->bad; i++)
		read_row(read, &rows[i]);
}

static void read_nodes(struct ww_read *read, struct ww_config *v)
{
	uint32_t n = ww_read_count(read, WW_CONFIG_NODES_MAX, NODE_BYTES);
	struct ww_node_config *nodes = many(read, n, sizeof *nodes);
	v->nodes = nodes;
	v->n_nodes = n;
	for (uint32_t i = 0; i < n && !read->bad; i++)
		read_node(read, &nodes[i]);
}

void ww_decode_config(struct ww_read *read, struct ww_config *v)
{
	*v = (struct ww_config){0};
	v->cluster = ww_read_u64(read);
	v->objective = ww_read_u32(read);
	if (v->objective > WW_OBJECTIVE_MAXMIN)
		ww_read_bad(read);
	v->valid_for_us = ww_read_i64(read);
	v->settle_us = ww_read_i64(read);
	v->after = msg_read_below(read, WW_N_AFTERS);
	v->trim = msg_read_below(read, WW_N_TRIMS);
	read_rows(read, v);
	read_nodes(read, v);
	if (read->bad)
		ww_config_finish(v);
}

void ww_config_finish(struct ww_config *v)
{
	free((void *)v->rows);
	free((void *)v->nodes);
	*v = (struct ww_config){0};
}
