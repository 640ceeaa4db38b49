/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs and decisions as bytes, for journals and for comparing. */
#include "control/control.h"

#include <stdlib.h>

/* What a decoded input points to. */
struct ww_input_room {
	struct ww_config config; /* all zero when none is held */
	union {
		struct ww_leader leader;
		struct ww_sample sample;
		struct ww_ack ack;
		struct ww_hello hello;
		struct ww_job job;
		struct ww_event event;
		struct ww_meter meter;
	} u;
};

/* WW_OK: its struct can be encoded, and what was encoded decoded. */
static ww_status check(const struct ww_input *input)
{
	switch (input->kind) {
	case WW_INPUT_CONFIG:
		return ww_check_config(input->u.config, NULL);
	case WW_INPUT_SAMPLE:
		return ww_check_sample(input->u.sample, NULL);
	case WW_INPUT_ACK:
		return ww_check_ack(input->u.ack, NULL);
	case WW_INPUT_HELLO:
		return ww_check_hello(input->u.hello, NULL);
	case WW_INPUT_JOB:
		return ww_check_job(input->u.job, NULL);
	case WW_INPUT_EVENT:
		return ww_check_event(input->u.event, NULL);
	case WW_INPUT_METER:
		return ww_check_meter(input->u.meter, NULL);
	case WW_INPUT_DIVISION:
		return (unsigned)input->u.division < WW_N_DIVISIONS ? WW_OK : WW_ERR_RANGE;
	case WW_INPUT_MODE:
		return (unsigned)input->u.mode < WW_N_MODES ? WW_OK : WW_ERR_RANGE;
	case WW_INPUT_LEADER:
	case WW_INPUT_SAVED:
		return WW_OK;
	case WW_N_INPUT_KINDS:
		break;
	}
	return WW_ERR_INVALID;
}

static void put_payload(const struct ww_input *input, struct ww_buf *buf)
{
	switch (input->kind) {
	case WW_INPUT_CONFIG:
		ww_encode_config(buf, input->u.config);
		break;
	case WW_INPUT_LEADER:
		ww_encode_leader(buf, input->u.leader);
		break;
	case WW_INPUT_SAMPLE:
		ww_encode_sample(buf, input->u.sample);
		break;
	case WW_INPUT_ACK:
		ww_encode_ack(buf, input->u.ack);
		break;
	case WW_INPUT_HELLO:
		ww_encode_hello(buf, input->u.hello);
		break;
	case WW_INPUT_JOB:
		ww_encode_job(buf, input->u.job);
		break;
	case WW_INPUT_EVENT:
		ww_encode_event(buf, input->u.event);
		break;
	case WW_INPUT_METER:
		ww_encode_meter(buf, input->u.meter);
		break;
	case WW_INPUT_SAVED:
		ww_buf_u64(buf, input->u.saved);
		break;
	case WW_INPUT_DIVISION:
		ww_buf_u8(buf, (uint8_t)input->u.division);
		break;
	case WW_INPUT_MODE:
		ww_buf_u8(buf, (uint8_t)input->u.mode);
		break;
	case WW_N_INPUT_KINDS:
		break;
	}
}

/* An input whose form is broken would have been refused as well, and changed nothing: it has no place in a journal. */
ww_status ww_input_encode(const struct ww_input *input, struct ww_buf *buf)
{
	ww_status status = check(input);
	if (status != WW_OK)
		return status;
	ww_buf_u8(buf, (uint8_t)input->kind);
	ww_buf_i64(buf, input->at.mono_us);
	ww_buf_i64(buf, input->at.wall_us);
	ww_buf_u64(buf, input->seq);
	put_payload(input, buf);
	return buf->failed ? WW_ERR_NOMEM : WW_OK;
}

struct ww_input_room *ww_input_room_create(void)
{
	return calloc(1, sizeof(struct ww_input_room));
}

void ww_input_room_destroy(struct ww_input_room *room)
{
	if (!room)
		return;
	ww_config_finish(&room->config);
	free(room);
}

static void read_payload(struct ww_read *read, struct ww_input_room *room, struct ww_input *out)
{
	switch (out->kind) {
	case WW_INPUT_CONFIG:
		ww_decode_config(read, &room->config);
		out->u.config = &room->config;
		break;
	case WW_INPUT_LEADER:
		ww_decode_leader(read, &room->u.leader);
		out->u.leader = &room->u.leader;
		break;
	case WW_INPUT_SAMPLE:
		ww_decode_sample(read, &room->u.sample);
		out->u.sample = &room->u.sample;
		break;
	case WW_INPUT_ACK:
		ww_decode_ack(read, &room->u.ack);
		out->u.ack = &room->u.ack;
		break;
	case WW_INPUT_HELLO:
		ww_decode_hello(read, &room->u.hello);
		out->u.hello = &room->u.hello;
		break;
	case WW_INPUT_JOB:
		ww_decode_job(read, &room->u.job);
		out->u.job = &room->u.job;
		break;
	case WW_INPUT_EVENT:
		ww_decode_event(read, &room->u.event);
		out->u.event = &room->u.event;
		break;
	case WW_INPUT_METER:
		ww_decode_meter(read, &room->u.meter);
		out->u.meter = &room->u.meter;
		break;
	case WW_INPUT_SAVED:
		out->u.saved = ww_read_u64(read);
		break;
	case WW_INPUT_DIVISION:
		out->u.division = (enum ww_division)ww_read_u8(read);
		if (out->u.division >= WW_N_DIVISIONS)
			ww_read_bad(read);
		break;
	case WW_INPUT_MODE:
		out->u.mode = (enum ww_mode)ww_read_u8(read);
		if (out->u.mode >= WW_N_MODES)
			ww_read_bad(read);
		break;
	case WW_N_INPUT_KINDS:
		ww_read_bad(read);
		break;
	}
}

ww_status ww_input_decode(struct ww_read *read, struct ww_input_room *room, struct ww_input *out, struct ww_error *err)
{
	static const char *const names[WW_N_INPUT_KINDS] = {
		[WW_INPUT_CONFIG] = "configuration",
		[WW_INPUT_LEADER] = "leader",
		[WW_INPUT_SAMPLE] = "sample",
		[WW_INPUT_ACK] = "ack",
		[WW_INPUT_HELLO] = "hello",
		[WW_INPUT_JOB] = "job",
		[WW_INPUT_EVENT] = "event",
		[WW_INPUT_METER] = "meter",
		[WW_INPUT_SAVED] = "saved",
		[WW_INPUT_DIVISION] = "division",
		[WW_INPUT_MODE] = "mode",
	};
	size_t before = read->at;
	uint8_t kind = ww_read_u8(read);
	ww_config_finish(&room->config);
	if (read->bad || kind >= WW_N_INPUT_KINDS) {
		ww_read_bad(read);
		return ww_fail(err, WW_ERR_INVALID,
		               "input at byte %zu: is of no kind known here; read it with the wattweir that wrote it",
		               before);
	}
	*out = (struct ww_input){.kind = (enum ww_input_kind)kind};
	out->at.mono_us = ww_read_i64(read);
	out->at.wall_us = ww_read_i64(read);
	out->seq = ww_read_u64(read);
	read_payload(read, room, out);
	if (read->bad)
		return ww_fail(
			err, WW_ERR_INVALID,
			"input at byte %zu: its %s is damaged or of another version; read it with the wattweir that "
			"wrote it",
			before, names[kind]);
	return WW_OK;
}

/* ---- Decisions ----------------------------------------------------------------------------------------------------- */

static void put_commands(const struct ww_decision *d, struct ww_buf *buf)
{
	ww_buf_u32(buf, d->n_commands);
	for (uint32_t i = 0; i < d->n_commands; i++) {
		ww_buf_u8(buf, d->needs_save[i]);
		ww_encode_command(buf, &d->commands[i]);
	}
}

static void put_rows(const struct ww_decision *d, struct ww_buf *buf)
{
	ww_buf_u32(buf, d->n_rows);
	for (uint32_t i = 0; i < d->n_rows; i++) {
		const struct ww_row_decision *row = &d->rows[i];
		ww_buf_f64(buf, row->budget_w);
		ww_buf_u8(buf, row->boundary);
		ww_buf_f64(buf, row->charge_w);
		ww_buf_f64(buf, row->non_gpu_w);
		ww_buf_f64(buf, row->guard_w);
		ww_buf_f64(buf, row->free_w);
		ww_buf_f64(buf, row->missing_w);
		ww_buf_f64(buf, row->power_w);
	}
}

static void put_gpus(const struct ww_decision *d, struct ww_buf *buf)
{
	uint32_t n_gpus = d->n_nodes > 0 ? d->first_gpu[d->n_nodes] : 0;
	ww_buf_u32(buf, d->n_nodes);
	for (uint32_t i = 0; i < d->n_nodes; i++)
		ww_buf_u32(buf, d->first_gpu[i + 1] - d->first_gpu[i]);
	for (uint32_t i = 0; i < n_gpus; i++) {
		ww_buf_f32(buf, d->gpus[i].charge_w);
		ww_buf_f32(buf, d->gpus[i].cap_w);
		ww_buf_f32(buf, d->gpus[i].target_w);
		ww_buf_f32(buf, d->gpus[i].trim_w);
		ww_buf_u8(buf, d->gpus[i].why);
	}
}

static void put_jobs(const struct ww_decision *d, struct ww_buf *buf)
{
	ww_buf_u32(buf, d->n_jobs);
	for (uint32_t i = 0; i < d->n_jobs; i++) {
		const struct ww_job_decision *job = &d->jobs[i];
		ww_buf_u64(buf, job->id);
		ww_buf_f64(buf, job->cut_frac);
		ww_buf_f64(buf, job->equal_cut_frac);
		ww_buf_f64(buf, job->throughput_frac);
		ww_buf_f64(buf, job->floor_frac);
		ww_buf_f64(buf, job->kept_floor_frac);
		ww_buf_f64(buf, job->trust);
		ww_buf_f64(buf, job->tps);
	}
}

static void put_events(const struct ww_decision *d, struct ww_buf *buf)
{
	ww_buf_u32(buf, d->n_events);
	for (uint32_t i = 0; i < d->n_events; i++) {
		const struct ww_event_decision *event = &d->events[i];
		ww_buf_u64(buf, event->id);
		ww_buf_u8(buf, event->state);
		ww_buf_u8(buf, event->let_go);
		ww_buf_f64(buf, event->baseline_w);
		ww_buf_f64(buf, event->measured_frac);
		ww_buf_f64(buf, event->limit_w);
		ww_buf_f64(buf, event->missing_w);
	}
}

void ww_decision_encode(const struct ww_decision *decision, struct ww_buf *buf)
{
	ww_buf_u64(buf, decision->seq);
	ww_buf_i64(buf, decision->at.mono_us);
	ww_buf_i64(buf, decision->at.wall_us);
	ww_buf_u8(buf, decision->leads);
	ww_buf_u8(buf, decision->mode);
	ww_buf_u8(buf, decision->save);
	put_commands(decision, buf);
	put_rows(decision, buf);
	put_gpus(decision, buf);
	put_jobs(decision, buf);
	put_events(decision, buf);
}
