/* SPDX-License-Identifier: Apache-2.0 */
/* The readers of messages on any bytes; the first byte is the kind. What is read is written again as the same bytes, and no
 * check of it, sound or not, does more than say so in one line. */
#include "fuzz.h"

#include "msg/msg.h"

static void check_outcome(ww_status status, const struct ww_error *err)
{
	require(status == WW_OK || (err->code == status && strlen(err->text) > 10));
	if (status != WW_OK)
		check_text(err->text);
}

static void require_same(struct ww_buf *buf, const struct ww_read *read, const uint8_t *data)
{
	require(!buf->failed && buf->n == read->at);
	require(buf->n == 0 || memcmp(buf->bytes, data, buf->n) == 0);
	ww_buf_finish(buf);
}

#define UNCHECKED(v, err) WW_OK

#define TRY(kind, check)                                                                                               \
	do {                                                                                                           \
		struct ww_##kind v;                                                                                    \
		struct ww_error err = {WW_OK, ""};                                                                     \
		ww_decode_##kind(&read, &v);                                                                           \
		if (read.bad)                                                                                          \
			break;                                                                                         \
		check_outcome(check(&v, &err), &err);                                                                  \
		ww_encode_##kind(&buf, &v);                                                                            \
		require_same(&buf, &read, data);                                                                       \
	} while (0)

static void try_config(struct ww_read *read, const uint8_t *data)
{
	struct ww_config v;
	struct ww_buf buf = {0};
	struct ww_error err = {WW_OK, ""};
	ww_decode_config(read, &v);
	if (read->bad) {
		require(!v.rows && !v.nodes);
		return;
	}
	check_outcome(ww_check_config(&v, &err), &err);
	ww_encode_config(&buf, &v);
	require_same(&buf, read, data);
	ww_config_finish(&v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ww_buf buf = {0};
	if (size == 0)
		return 0;
	uint8_t kind = *data++;
	struct ww_read read = {data, size - 1, 0, false};
	switch (kind) {
	case 's':
		TRY(sample, ww_check_sample);
		break;
	case 'a':
		TRY(ack, ww_check_ack);
		break;
	case 'h':
		TRY(hello, ww_check_hello);
		break;
	case 'c':
		TRY(command, ww_check_command);
		break;
	case 'j':
		TRY(job, ww_check_job);
		break;
	case 'e':
		TRY(event, ww_check_event);
		break;
	case 'm':
		TRY(meter, ww_check_meter);
		break;
	case 'l':
		TRY(leader, UNCHECKED);
		break;
	case 'C':
		try_config(&read, data);
		break;
	default:
		break;
	}
	require(read.at <= read.n);
	return 0;
}
