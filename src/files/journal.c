/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Journals: the line "wattweir-journal 1", then frames of kind (1 byte), length of the payload (4), payload, checksum over
 * these (8); numbers little-endian. The last frame counts those before it.
 */
#include "files/files.h"

#include <errno.h>
#include <string.h>

#define MAGIC "wattweir-journal "
#define VERSION "1\n"
#define HEAD_BYTES 5
#define SUM_BYTES 8
#define STEP_BYTES 16
#define END_BYTES 8
#define CHUNK_BYTES 16384

/* Steps that can be undone, 8 bytes at a time: any change within 8 bytes of a frame changes the sum. */
static uint64_t mix(uint64_t sum, uint64_t word)
{
	sum = (sum ^ word) * 0x9E3779B97F4A7C15u;
	return sum ^ sum >> 29;
}

static uint64_t checksum(const uint8_t head[HEAD_BYTES], const uint8_t *bytes, size_t n)
{
	struct ww_read read = {bytes, n, 0, false}, start = {head, HEAD_BYTES, 0, false};
	uint64_t sum = mix(0x243F6A8885A308D3u, ww_read_u8(&start));
	uint8_t rest[8] = {0};
	sum = mix(sum, ww_read_u32(&start));
	while (n - read.at >= 8)
		sum = mix(sum, ww_read_u64(&read));
	ww_read_bytes(&read, rest, n - read.at);
	read = (struct ww_read){rest, sizeof rest, 0, false};
	return mix(mix(sum, ww_read_u64(&read)), 0);
}

/* ---- Writing ------------------------------------------------------------------------------------------------------- */

void ww_journal_begin(struct ww_buf *buf)
{
	ww_buf_bytes(buf, MAGIC VERSION, sizeof MAGIC VERSION - 1);
}

size_t ww_frame_begin(struct ww_buf *buf, enum ww_frame_kind kind)
{
	size_t begin = buf->n;
	ww_buf_u8(buf, (uint8_t)kind);
	ww_buf_u32(buf, 0);
	return begin;
}

void ww_frame_end(struct ww_buf *buf, size_t begin)
{
	size_t n = buf->n - begin - HEAD_BYTES;
	if (n > WW_FRAME_BYTES_MAX)
		buf->failed = true;
	if (buf->failed)
		return;
	for (size_t i = 0; i < 4; i++)
		buf->bytes[begin + 1 + i] = (uint8_t)(n >> 8 * i);
	ww_buf_u64(buf, checksum(buf->bytes + begin, buf->bytes + begin + HEAD_BYTES, n));
}

void ww_frame_step(struct ww_buf *buf, struct ww_now now)
{
	size_t begin = ww_frame_begin(buf, WW_FRAME_STEP);
	ww_buf_i64(buf, now.mono_us);
	ww_buf_i64(buf, now.wall_us);
	ww_frame_end(buf, begin);
}

/* Of a buffer that may begin with the first line of a file. */
static uint64_t frames_in(const struct ww_buf *buf)
{
	struct ww_read read = {buf->bytes, buf->n, 0, false};
	uint64_t n = 0;
	if (buf->n >= sizeof MAGIC VERSION - 1 && memcmp(buf->bytes, MAGIC VERSION, sizeof MAGIC VERSION - 1) == 0)
		read.at = sizeof MAGIC VERSION - 1;
	for (; read.at < read.n; n++) {
		(void)ww_read_u8(&read);
		read.at += ww_read_u32(&read) + SUM_BYTES;
	}
	return n;
}

ww_status ww_journal_write(struct ww_journal_out *to, struct ww_buf *buf, struct ww_error *err)
{
	if (buf->failed)
		return ww_fail(err, WW_ERR_NOMEM, "%s: out of memory, or a frame above %u MiB", to->name,
		               WW_FRAME_BYTES_MAX >> 20);
	if (buf->n > 0 && fwrite(buf->bytes, 1, buf->n, to->out) != buf->n)
		return ww_fail(err, WW_ERR_IO, "%s: cannot be written: %s", to->name, strerror(errno));
	to->n_frames += frames_in(buf);
	ww_buf_clear(buf);
	return WW_OK;
}

ww_status ww_journal_write_end(struct ww_journal_out *to, struct ww_buf *buf, struct ww_error *err)
{
	ww_status status = ww_journal_write(to, buf, err);
	if (status)
		return status;
	size_t begin = ww_frame_begin(buf, WW_FRAME_END);
	ww_buf_u64(buf, to->n_frames);
	ww_frame_end(buf, begin);
	return ww_journal_write(to, buf, err);
}

/* ---- Reading ------------------------------------------------------------------------------------------------------- */

/* Fewer than n only at the end of the file. */
static ww_status fill(struct ww_journal *journal, void *to, size_t n, size_t *got, struct ww_error *err)
{
	errno = 0;
	*got = fread(to, 1, n, journal->in);
	journal->at += *got;
	if (*got < n && ferror(journal->in))
		return ww_fail(err, WW_ERR_IO, "%s: cannot be read: %s", journal->name, strerror(errno));
	return WW_OK;
}

ww_status ww_journal_open(FILE *in, const char *name, struct ww_journal *out, struct ww_error *err)
{
	static const char expected[] = MAGIC VERSION;
	char line[sizeof expected] = "";
	size_t got;
	struct ww_journal journal = {.in = in, .name = name};
	ww_status status = fill(&journal, line, sizeof expected - 1, &got, err);
	if (status != WW_OK)
		return status;
	if (got == 0)
		return ww_fail(err, WW_ERR_NO_DATA, "%s: is empty; give a journal that wattweir wrote", name);
	if (strcmp(line, expected) != 0 && strncmp(line, MAGIC, sizeof MAGIC - 1) == 0)
		return ww_fail(err, WW_ERR_UNSUPPORTED,
		               "%s: is a journal of another version; read it with the wattweir that wrote it", name);
	if (strcmp(line, expected) != 0)
		return ww_fail(err, WW_ERR_INVALID, "%s: is no journal of wattweir; give one that it wrote", name);
	*out = journal;
	return WW_OK;
}

void ww_journal_finish(struct ww_journal *journal)
{
	ww_buf_finish(&journal->payload);
}

static ww_status damaged(const struct ww_journal *journal, const struct ww_frame *frame, ww_status code,
                         const char *what, struct ww_error *err)
{
	return ww_fail(err, code, "%s: frame %llu at byte %llu: %s", journal->name, (unsigned long long)frame->number,
	               (unsigned long long)frame->at, what);
}

static ww_status cut_short(const struct ww_journal *journal, const struct ww_frame *frame, struct ww_error *err)
{
	return damaged(journal, frame, WW_ERR_NO_DATA, "is cut short; only the frames before it can be used", err);
}

/* No more memory than bytes that are there, whatever length the frame gives. */
static ww_status read_payload(struct ww_journal *journal, const struct ww_frame *frame, struct ww_error *err)
{
	uint8_t chunk[CHUNK_BYTES];
	size_t got;
	ww_buf_clear(&journal->payload);
	for (size_t left = frame->n; left > 0; left -= got) {
		ww_status status = fill(journal, chunk, left < sizeof chunk ? left : sizeof chunk, &got, err);
		if (status != WW_OK)
			return status;
		if (got == 0)
			return cut_short(journal, frame, err);
		ww_buf_bytes(&journal->payload, chunk, got);
	}
	if (journal->payload.failed)
		return ww_fail(err, WW_ERR_NOMEM, "%s: out of memory", journal->name);
	return WW_OK;
}

static ww_status check_sum(struct ww_journal *journal, const struct ww_frame *frame, const uint8_t head[HEAD_BYTES],
                           struct ww_error *err)
{
	uint8_t bytes[SUM_BYTES];
	size_t got;
	ww_status status = fill(journal, bytes, sizeof bytes, &got, err);
	if (status != WW_OK)
		return status;
	if (got < sizeof bytes)
		return cut_short(journal, frame, err);
	struct ww_read read = {bytes, sizeof bytes, 0, false};
	if (ww_read_u64(&read) != checksum(head, journal->payload.bytes, frame->n))
		return damaged(journal, frame, WW_ERR_INVALID,
		               "does not fit its checksum; it was damaged, use another copy", err);
	return WW_OK;
}

static ww_status take_step(const struct ww_journal *journal, struct ww_frame *frame, struct ww_error *err)
{
	struct ww_read read = {frame->bytes, frame->n, 0, false};
	frame->now.mono_us = ww_read_i64(&read);
	frame->now.wall_us = ww_read_i64(&read);
	if (frame->n != STEP_BYTES)
		return damaged(journal, frame, WW_ERR_INVALID, "is no time of a step; use another copy", err);
	if (!ww_time_is_sound(frame->now))
		return damaged(journal, frame, WW_ERR_RANGE,
		               "is a step at a time that no clock shows; use another copy", err);
	return WW_OK;
}

static ww_status take_end(struct ww_journal *journal, const struct ww_frame *frame, struct ww_error *err)
{
	struct ww_read read = {frame->bytes, frame->n, 0, false};
	uint64_t n = ww_read_u64(&read);
	if (frame->n != END_BYTES)
		return damaged(journal, frame, WW_ERR_INVALID, "is no end; use another copy", err);
	if (n != journal->n_frames)
		return ww_fail(err, WW_ERR_INVALID,
		               "%s: frame %llu at byte %llu: is an end after %llu frames, but %llu are there; use "
		               "another copy",
		               journal->name, (unsigned long long)frame->number, (unsigned long long)frame->at,
		               (unsigned long long)n, (unsigned long long)journal->n_frames);
	journal->ended = true;
	return WW_OK;
}

static ww_status take(struct ww_journal *journal, struct ww_frame *frame, struct ww_error *err)
{
	if (frame->kind < WW_FRAME_STATE || frame->kind > WW_FRAME_END)
		return damaged(journal, frame, WW_ERR_UNSUPPORTED,
		               "is of no kind known here; read it with the wattweir that wrote it", err);
	frame->bytes = journal->payload.bytes;
	if (frame->kind == WW_FRAME_STEP)
		return take_step(journal, frame, err);
	return frame->kind == WW_FRAME_END ? take_end(journal, frame, err) : WW_OK;
}

ww_status ww_journal_next(struct ww_journal *journal, struct ww_frame *out, struct ww_error *err)
{
	uint8_t head[HEAD_BYTES];
	struct ww_frame frame = {.number = journal->n_frames + 1, .at = journal->at};
	size_t got;
	ww_status status = fill(journal, head, sizeof head, &got, err);
	if (status != WW_OK)
		return status;
	if (got == 0) {
		*out = (struct ww_frame){.kind = WW_FRAME_NONE};
		return WW_OK;
	}
	if (journal->ended)
		return damaged(journal, &frame, WW_ERR_INVALID, "is behind the end of the journal; use another copy",
		               err);
	if (got < sizeof head)
		return cut_short(journal, &frame, err);
	struct ww_read read = {head, sizeof head, 0, false};
	frame.kind = (enum ww_frame_kind)ww_read_u8(&read);
	frame.n = ww_read_u32(&read);
	if (frame.n > WW_FRAME_BYTES_MAX)
		return damaged(journal, &frame, WW_ERR_INVALID, "is longer than a frame can be; use another copy", err);
	status = read_payload(journal, &frame, err);
	if (status == WW_OK)
		status = check_sum(journal, &frame, head, err);
	if (status == WW_OK)
		status = take(journal, &frame, err);
	if (status != WW_OK)
		return status;
	journal->n_frames++;
	*out = frame;
	return WW_OK;
}
