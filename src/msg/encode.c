/* SPDX-License-Identifier: Apache-2.0 */
/* What passes between nodes and the controller. Each reader stands below its writer and mirrors it line by line. Only what
 * is in use is written: the GPUs of the node, the steps of the schedule. */
#include "msg/msg.h"
#include "msg/msg_internal.h"

#include <math.h>

/* ---- Pieces ------------------------------------------------------------------------------------------------------ */

uint8_t msg_read_below(struct ww_read *read, uint8_t bound)
{
	uint8_t v = ww_read_u8(read);
	if (v >= bound)
		ww_read_bad(read);
	return v;
}

bool msg_read_flag(struct ww_read *read)
{
	return msg_read_below(read, 2) != 0;
}

float msg_read_cap(struct ww_read *read)
{
	float v = ww_read_f32(read);
	if (isinf(v))
		ww_read_bad(read);
	return v;
}

double msg_read_finite(struct ww_read *read)
{
	double v = ww_read_f64(read);
	if (!isfinite(v))
		ww_read_bad(read);
	return v;
}

double msg_read_known(struct ww_read *read)
{
	double v = ww_read_f64(read);
	if (isinf(v))
		ww_read_bad(read);
	return v;
}

void msg_put_reading(struct ww_buf *buf, const struct ww_reading *v)
{
	ww_buf_f32(buf, v->value);
	ww_buf_u8(buf, (uint8_t)v->age_ms);
	ww_buf_u8(buf, (uint8_t)(v->age_ms >> 8));
	ww_buf_u8(buf, v->status);
}

struct ww_reading msg_read_reading(struct ww_read *read)
{
	struct ww_reading v;
	v.value = msg_read_cap(read);
	v.age_ms = ww_read_u8(read);
	v.age_ms = (uint16_t)(v.age_ms | ww_read_u8(read) << 8);
	v.status = msg_read_below(read, WW_N_READING_STATUS);
	if (v.status == WW_READING_OK && isnan(v.value))
		ww_read_bad(read);
	return v;
}

#define READING_BYTES 7

static void put_fence(struct ww_buf *buf, struct ww_fence v)
{
	ww_buf_u64(buf, v.epoch);
	ww_buf_u64(buf, v.seq);
}

static struct ww_fence read_fence(struct ww_read *read)
{
	struct ww_fence v;
	v.epoch = ww_read_u64(read);
	v.seq = ww_read_u64(read);
	return v;
}

static void put_envelope(struct ww_buf *buf, const struct ww_envelope *v)
{
	ww_buf_u32(buf, v->version);
	ww_buf_u64(buf, v->cluster);
	ww_buf_u64(buf, v->node);
	ww_buf_u64(buf, v->boot_id);
	ww_buf_u64(buf, v->start_id);
	ww_buf_u64(buf, v->seq);
	put_fence(buf, v->seen);
}

/* What follows another version's number is not known. */
static void read_envelope(struct ww_read *read, struct ww_envelope *v)
{
	v->version = ww_read_u32(read);
	if (v->version != WW_MSG_VERSION)
		ww_read_bad(read);
	v->cluster = ww_read_u64(read);
	v->node = ww_read_u64(read);
	v->boot_id = ww_read_u64(read);
	v->start_id = ww_read_u64(read);
	v->seq = ww_read_u64(read);
	v->seen = read_fence(read);
}

static void put_gpu(struct ww_buf *buf, const struct ww_gpu_state *v)
{
	msg_put_reading(buf, &v->enforced_w);
	msg_put_reading(buf, &v->draw_w);
	ww_buf_f32(buf, v->requested_w);
	ww_buf_f32(buf, v->target_w);
	ww_buf_u8(buf, v->step);
	ww_buf_u8(buf, v->held);
	ww_buf_u8(buf, v->managed);
	ww_buf_u8(buf, v->foreign);
}

static void read_gpu(struct ww_read *read, struct ww_gpu_state *v)
{
	v->enforced_w = msg_read_reading(read);
	v->draw_w = msg_read_reading(read);
	v->requested_w = msg_read_cap(read);
	v->target_w = msg_read_cap(read);
	v->step = msg_read_below(read, WW_STEPS_MAX + 1);
	v->held = msg_read_flag(read);
	v->managed = msg_read_flag(read);
	v->foreign = ww_read_u8(read);
}

#define GPU_BYTES (2 * READING_BYTES + 12)

static void put_gpus(struct ww_buf *buf, const struct ww_gpu_state *v, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		put_gpu(buf, &v[i]);
}

static void read_gpus(struct ww_read *read, struct ww_gpu_state *v, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		read_gpu(read, &v[i]);
}

/* ---- From nodes ---------------------------------------------------------------------------------------------------- */

void ww_encode_sample(struct ww_buf *buf, const struct ww_sample *v)
{
	put_envelope(buf, &v->from);
	ww_buf_i64(buf, v->wall_us);
	ww_buf_u32(buf, v->n_gpus);
	put_gpus(buf, v->gpus, v->n_gpus);
	ww_buf_u32(buf, v->n_jobs);
	for (uint32_t i = 0; i < v->n_jobs; i++) {
		ww_buf_u64(buf, v->jobs[i].job);
		msg_put_reading(buf, &v->jobs[i].tps);
	}
}

void ww_decode_sample(struct ww_read *read, struct ww_sample *v)
{
	*v = (struct ww_sample){0};
	read_envelope(read, &v->from);
	v->wall_us = ww_read_i64(read);
	v->n_gpus = ww_read_count(read, WW_NODE_GPUS_MAX, GPU_BYTES);
	read_gpus(read, v->gpus, v->n_gpus);
	v->n_jobs = ww_read_count(read, WW_NODE_JOBS_MAX, 8 + READING_BYTES);
	for (uint32_t i = 0; i < v->n_jobs; i++) {
		v->jobs[i].job = ww_read_u64(read);
		v->jobs[i].tps = msg_read_reading(read);
	}
}

void ww_encode_ack(struct ww_buf *buf, const struct ww_ack *v)
{
	put_envelope(buf, &v->from);
	put_fence(buf, v->answers);
	ww_buf_u8(buf, v->verdict);
	ww_buf_u8(buf, v->lapsed);
	ww_buf_u32(buf, v->n_gpus);
	put_gpus(buf, v->gpus, v->n_gpus);
}

void ww_decode_ack(struct ww_read *read, struct ww_ack *v)
{
	*v = (struct ww_ack){0};
	read_envelope(read, &v->from);
	v->answers = read_fence(read);
	v->verdict = msg_read_below(read, WW_N_ACK_VERDICTS);
	v->lapsed = msg_read_flag(read);
	v->n_gpus = ww_read_count(read, WW_NODE_GPUS_MAX, GPU_BYTES);
	read_gpus(read, v->gpus, v->n_gpus);
}

void ww_encode_hello(struct ww_buf *buf, const struct ww_hello *v)
{
	put_envelope(buf, &v->from);
	ww_buf_u32(buf, v->n_gpus);
	for (uint32_t i = 0; i < v->n_gpus; i++) {
		ww_buf_u64(buf, v->limits[i].uuid);
		ww_buf_f32(buf, v->limits[i].min_w);
		ww_buf_f32(buf, v->limits[i].max_w);
		ww_buf_f32(buf, v->limits[i].default_w);
		ww_buf_f32(buf, v->limits[i].recorded_w);
		ww_buf_f32(buf, v->limits[i].boot_cap_w);
	}
	put_gpus(buf, v->gpus, v->n_gpus);
}

void ww_decode_hello(struct ww_read *read, struct ww_hello *v)
{
	*v = (struct ww_hello){0};
	read_envelope(read, &v->from);
	v->n_gpus = ww_read_count(read, WW_NODE_GPUS_MAX, 28 + GPU_BYTES);
	for (uint32_t i = 0; i < v->n_gpus; i++) {
		v->limits[i].uuid = ww_read_u64(read);
		v->limits[i].min_w = msg_read_cap(read);
		v->limits[i].max_w = msg_read_cap(read);
		v->limits[i].default_w = msg_read_cap(read);
		v->limits[i].recorded_w = msg_read_cap(read);
		v->limits[i].boot_cap_w = msg_read_cap(read);
		if (isnan(v->limits[i].min_w) || isnan(v->limits[i].max_w) || isnan(v->limits[i].default_w))
			ww_read_bad(read);
	}
	read_gpus(read, v->gpus, v->n_gpus);
}

/* ---- To nodes ------------------------------------------------------------------------------------------------------ */

static void put_caps(struct ww_buf *buf, const float *cap_w, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		ww_buf_f32(buf, cap_w[i]);
}

static void read_caps(struct ww_read *read, float *cap_w, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		cap_w[i] = msg_read_cap(read);
}

void ww_encode_command(struct ww_buf *buf, const struct ww_command *v)
{
	ww_buf_u64(buf, v->cluster);
	ww_buf_u64(buf, v->node);
	put_fence(buf, v->fence);
	ww_buf_u64(buf, v->answers_start_id);
	ww_buf_u64(buf, v->answers_seq);
	ww_buf_i64(buf, v->valid_for_us);
	ww_buf_i64(buf, v->spread_us);
	ww_buf_u64(buf, v->event);
	ww_buf_u8(buf, v->after);
	ww_buf_u8(buf, v->release_ok);
	ww_buf_u32(buf, v->n_gpus);
	put_caps(buf, v->failcap_w, v->n_gpus);
	ww_buf_u32(buf, v->n_steps);
	for (uint32_t i = 0; i < v->n_steps; i++) {
		ww_buf_i64(buf, v->step[i].in_us);
		put_caps(buf, v->step[i].cap_w, v->n_gpus);
	}
}

void ww_decode_command(struct ww_read *read, struct ww_command *v)
{
	*v = (struct ww_command){0};
	v->cluster = ww_read_u64(read);
	v->node = ww_read_u64(read);
	v->fence = read_fence(read);
	v->answers_start_id = ww_read_u64(read);
	v->answers_seq = ww_read_u64(read);
	v->valid_for_us = ww_read_i64(read);
	v->spread_us = ww_read_i64(read);
	v->event = ww_read_u64(read);
	v->after = msg_read_below(read, WW_N_AFTERS);
	v->release_ok = msg_read_flag(read);
	v->n_gpus = ww_read_count(read, WW_NODE_GPUS_MAX, sizeof(float));
	read_caps(read, v->failcap_w, v->n_gpus);
	v->n_steps = ww_read_count(read, WW_STEPS_MAX, 8 + v->n_gpus * sizeof(float));
	for (uint32_t i = 0; i < v->n_steps; i++) {
		v->step[i].in_us = ww_read_i64(read);
		read_caps(read, v->step[i].cap_w, v->n_gpus);
	}
}
