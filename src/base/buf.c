/* SPDX-License-Identifier: Apache-2.0 */
/* Little-endian bytes, whatever the machine. */
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

void ww_buf_finish(struct ww_buf *buf)
{
	free(buf->bytes);
	*buf = (struct ww_buf){0};
}

void ww_buf_clear(struct ww_buf *buf)
{
	buf->n = 0;
	buf->failed = false;
}

static bool grow(struct ww_buf *buf, size_t n)
{
	size_t room = buf->room < 64 ? 64 : buf->room;
	if (buf->failed || n > SIZE_MAX / 2 - buf->n)
		return false;
	while (room < buf->n + n)
		room *= 2;
	uint8_t *bytes = realloc(buf->bytes, room);
	if (!bytes)
		return false;
	buf->bytes = bytes;
	buf->room = room;
	return true;
}

/* Room for n more bytes, counted as written. NULL once memory ran out. Inline: states are saved number by number. */
static inline uint8_t *take(struct ww_buf *buf, size_t n)
{
	if (__builtin_expect(buf->failed || n > buf->room - buf->n, 0) && !grow(buf, n)) {
		buf->failed = true;
		return NULL;
	}
	buf->n += n;
	return buf->bytes + (buf->n - n);
}

void ww_buf_u8(struct ww_buf *buf, uint8_t v)
{
	uint8_t *to = take(buf, 1);
	if (to)
		*to = v;
}

static uint32_t little32(uint32_t v)
{
	return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? v : __builtin_bswap32(v);
}

static uint64_t little64(uint64_t v)
{
	return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? v : __builtin_bswap64(v);
}

void ww_buf_u32(struct ww_buf *buf, uint32_t v)
{
	uint8_t *to = take(buf, sizeof v);
	v = little32(v);
	if (to)
		memcpy(to, &v, sizeof v);
}

void ww_buf_u64(struct ww_buf *buf, uint64_t v)
{
	uint8_t *to = take(buf, sizeof v);
	v = little64(v);
	if (to)
		memcpy(to, &v, sizeof v);
}

void ww_buf_i64(struct ww_buf *buf, int64_t v)
{
	ww_buf_u64(buf, (uint64_t)v);
}

void ww_buf_f32(struct ww_buf *buf, float v)
{
	uint32_t bits;
	memcpy(&bits, &v, sizeof bits);
	ww_buf_u32(buf, bits);
}

void ww_buf_f64(struct ww_buf *buf, double v)
{
	uint64_t bits;
	memcpy(&bits, &v, sizeof bits);
	ww_buf_u64(buf, bits);
}

void ww_buf_bytes(struct ww_buf *buf, const void *bytes, size_t n)
{
	uint8_t *to = n > 0 ? take(buf, n) : NULL;
	if (to)
		memcpy(to, bytes, n);
}

void ww_buf_text(struct ww_buf *buf, const char *text)
{
	size_t n = strlen(text);
	if (n > UINT32_MAX) {
		buf->failed = true;
		return;
	}
	ww_buf_u32(buf, (uint32_t)n);
	ww_buf_bytes(buf, text, n);
}

void ww_read_bad(struct ww_read *read)
{
	read->bad = true;
}

/* The next n bytes; NULL and bad when there are not so many. */
static inline const uint8_t *next(struct ww_read *read, size_t n)
{
	if (read->bad || n > read->n - read->at) {
		read->bad = true;
		return NULL;
	}
	read->at += n;
	return read->bytes + (read->at - n);
}

uint8_t ww_read_u8(struct ww_read *read)
{
	const uint8_t *from = next(read, 1);
	return from ? *from : 0;
}

uint32_t ww_read_u32(struct ww_read *read)
{
	uint32_t v = 0;
	const uint8_t *from = next(read, sizeof v);
	if (from)
		memcpy(&v, from, sizeof v);
	return little32(v);
}

uint64_t ww_read_u64(struct ww_read *read)
{
	uint64_t v = 0;
	const uint8_t *from = next(read, sizeof v);
	if (from)
		memcpy(&v, from, sizeof v);
	return little64(v);
}

int64_t ww_read_i64(struct ww_read *read)
{
	return (int64_t)ww_read_u64(read);
}

float ww_read_f32(struct ww_read *read)
{
	uint32_t bits = ww_read_u32(read);
	float v;
	memcpy(&v, &bits, sizeof v);
	return v;
}

double ww_read_f64(struct ww_read *read)
{
	uint64_t bits = ww_read_u64(read);
	double v;
	memcpy(&v, &bits, sizeof v);
	return v;
}

void ww_read_bytes(struct ww_read *read, void *to, size_t n)
{
	const uint8_t *from = n > 0 ? next(read, n) : NULL;
	if (from)
		memcpy(to, from, n);
	else if (n > 0)
		memset(to, 0, n);
}

void ww_read_text(struct ww_read *read, char *to, size_t size)
{
	uint32_t n = ww_read_u32(read);
	const uint8_t *from = n < size ? next(read, n) : NULL;
	if (!from || memchr(from, '\0', n)) {
		read->bad = true;
		n = 0;
	} else {
		memcpy(to, from, n);
	}
	if (size > 0)
		to[n] = '\0';
}

uint32_t ww_read_count(struct ww_read *read, uint32_t most, size_t least_bytes)
{
	uint32_t n = ww_read_u32(read);
	if (n > most || (n > 0 && least_bytes > (read->n - read->at) / n))
		read->bad = true;
	return read->bad ? 0 : n;
}
