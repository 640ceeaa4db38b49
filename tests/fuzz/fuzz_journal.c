/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of journals on any bytes. What it reads is written again as the same bytes. */
#include "fuzz.h"

#include "files/files.h"

static void check_error(const struct ww_error *err, ww_status status)
{
	require(err->code == status && strncmp(err->text, "fuzz.journal: ", strlen("fuzz.journal: ")) == 0);
	check_text(err->text);
}

static void write_again(struct ww_buf *buf, const struct ww_frame *frame)
{
	if (frame->kind == WW_FRAME_STEP) {
		ww_frame_step(buf, frame->now);
		return;
	}
	size_t begin = ww_frame_begin(buf, frame->kind);
	ww_buf_bytes(buf, frame->bytes, frame->n);
	ww_frame_end(buf, begin);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ww_journal journal = {0};
	struct ww_frame frame = {.kind = WW_FRAME_STATE};
	struct ww_error err = {WW_OK, ""};
	struct ww_buf again = {0};
	FILE *in = fmemopen((void *)data, size, "r");
	if (!in)
		return 0;
	ww_status status = ww_journal_open(in, "fuzz.journal", &journal, &err);
	ww_journal_begin(&again);
	while (status == WW_OK && frame.kind != WW_FRAME_NONE) {
		status = ww_journal_next(&journal, &frame, &err);
		if (status == WW_OK && frame.kind != WW_FRAME_NONE)
			write_again(&again, &frame);
	}
	if (status == WW_OK)
		require(again.n == size);
	else
		check_error(&err, status);
	if (journal.n_frames > 0)
		require(again.n <= size && memcmp(again.bytes, data, again.n) == 0);
	ww_buf_finish(&again);
	ww_journal_finish(&journal);
	(void)fclose(in);
	return 0;
}
