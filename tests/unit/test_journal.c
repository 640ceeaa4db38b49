/* SPDX-License-Identifier: Apache-2.0 */
#include "assert_near.h"

#include "files/files.h"

#include <string.h>

#define FIRST_AT 19u /* bytes of the first line */

static void add(struct ww_buf *buf, enum ww_frame_kind kind, const char *bytes, size_t n)
{
	size_t begin = ww_frame_begin(buf, kind);
	ww_buf_bytes(buf, bytes, n);
	ww_frame_end(buf, begin);
}

/* A state, an input, a step, an empty decision. */
static struct ww_buf good_journal(void)
{
	struct ww_buf buf = {0};
	ww_journal_begin(&buf);
	add(&buf, WW_FRAME_STATE, "a state of 21 bytes..", 21);
	add(&buf, WW_FRAME_INPUT, "input", 5);
	ww_frame_step(&buf, (struct ww_now){-5, INT64_MAX / 17});
	add(&buf, WW_FRAME_DECISION, "", 0);
	assert_false(buf.failed);
	return buf;
}

static FILE *file_of(const void *bytes, size_t n)
{
	FILE *file = n > 0 ? fmemopen((void *)bytes, n, "r") : fopen("/dev/null", "r");
	assert_non_null(file);
	return file;
}

static void assert_frame(struct ww_journal *journal, enum ww_frame_kind kind, const char *bytes, size_t n)
{
	struct ww_frame frame;
	assert_int_equal(ww_journal_next(journal, &frame, NULL), WW_OK);
	assert_int_equal(frame.kind, kind);
	assert_int_equal(frame.n, n);
	assert_int_equal(frame.number, kind == WW_FRAME_NONE ? 0 : journal->n_frames);
	if (n > 0)
		assert_memory_equal(frame.bytes, bytes, n);
}

static void test_what_was_written_is_read(void **state)
{
	struct ww_buf buf = good_journal();
	struct ww_journal journal;
	struct ww_frame frame;
	FILE *file = tmpfile();
	(void)state;
	struct ww_journal_out out = {.out = file, .name = "j"};
	assert_int_equal(ww_journal_write(&out, &buf, NULL), WW_OK);
	assert_int_equal(out.n_frames, 4);
	assert_int_equal(buf.n, 0);
	add(&buf, WW_FRAME_INPUT, "more", 4);
	assert_int_equal(ww_journal_write_end(&out, &buf, NULL), WW_OK);
	assert_int_equal(out.n_frames, 6);
	assert_int_equal(buf.n, 0);
	rewind(file);
	assert_int_equal(ww_journal_open(file, "j", &journal, NULL), WW_OK);
	assert_frame(&journal, WW_FRAME_STATE, "a state of 21 bytes..", 21);
	assert_frame(&journal, WW_FRAME_INPUT, "input", 5);
	assert_int_equal(ww_journal_next(&journal, &frame, NULL), WW_OK);
	assert_int_equal(frame.kind, WW_FRAME_STEP);
	assert_int_equal(frame.now.mono_us, -5);
	assert_true(frame.now.wall_us == INT64_MAX / 17);
	assert_frame(&journal, WW_FRAME_DECISION, "", 0);
	assert_frame(&journal, WW_FRAME_INPUT, "more", 4);
	assert_false(journal.ended);
	assert_frame(&journal, WW_FRAME_END, "\5\0\0\0\0\0\0\0", 8);
	assert_true(journal.ended);
	assert_frame(&journal, WW_FRAME_NONE, "", 0);
	assert_frame(&journal, WW_FRAME_NONE, "", 0);
	ww_journal_finish(&journal);
	ww_buf_finish(&buf);
	(void)fclose(file);
}

/* The status of the first failure and how many frames were read before it; WW_OK when the file is sound. */
static ww_status read_all(const void *bytes, size_t n, uint64_t *frames, struct ww_error *err)
{
	struct ww_journal journal = {0};
	struct ww_frame frame = {.kind = WW_FRAME_STATE};
	FILE *file = file_of(bytes, n);
	ww_status status = ww_journal_open(file, "night.journal", &journal, err);
	while (status == WW_OK && frame.kind != WW_FRAME_NONE)
		status = ww_journal_next(&journal, &frame, err);
	*frames = journal.n_frames;
	ww_journal_finish(&journal);
	(void)fclose(file);
	return status;
}

static void test_a_file_that_ends_too_early(void **state)
{
	struct ww_buf buf = good_journal();
	struct ww_error err;
	uint64_t frames;
	size_t ends[4] = {FIRST_AT + 13 + 21};
	(void)state;
	ends[1] = ends[0] + 13 + 5;
	ends[2] = ends[1] + 13 + 16;
	ends[3] = ends[2] + 13;
	assert_int_equal(buf.n, ends[3]);
	for (size_t n = FIRST_AT; n <= buf.n; n++) {
		unsigned whole = 0;
		while (whole < 4 && ends[whole] <= n)
			whole++;
		bool between = n == FIRST_AT || (whole > 0 && ends[whole - 1] == n);
		assert_int_equal(read_all(buf.bytes, n, &frames, &err), between ? WW_OK : WW_ERR_NO_DATA);
		assert_int_equal(frames, whole);
	}
	assert_int_equal(read_all(buf.bytes, ends[0] + 3, &frames, &err), WW_ERR_NO_DATA);
	assert_string_equal(err.text,
	                    "night.journal: frame 2 at byte 53: is cut short; only the frames before it can be used");
	ww_buf_finish(&buf);
}

static void test_every_changed_byte_is_found(void **state)
{
	struct ww_buf buf = good_journal();
	struct ww_error err;
	uint64_t frames;
	(void)state;
	for (size_t i = 0; i < buf.n; i++) {
		for (unsigned bit = 0; bit < 8; bit++) {
			buf.bytes[i] ^= (uint8_t)(1u << bit);
			assert_int_not_equal(read_all(buf.bytes, buf.n, &frames, &err), WW_OK);
			assert_int_equal(strncmp(err.text, "night.journal: ", 15), 0);
			buf.bytes[i] ^= (uint8_t)(1u << bit);
		}
	}
	buf.bytes[FIRST_AT + 5] ^= 1;
	assert_int_equal(read_all(buf.bytes, buf.n, &frames, &err), WW_ERR_INVALID);
	assert_string_equal(err.text,
	                    "night.journal: frame 1 at byte 19: does not fit its checksum; it was damaged, use "
	                    "another copy");
	ww_buf_finish(&buf);
}

static void test_kind_length_and_payload_are_summed(void **state)
{
	struct ww_buf bufs[4] = {{0}};
	(void)state;
	add(&bufs[0], WW_FRAME_STATE, "\0\0", 1);
	add(&bufs[1], WW_FRAME_STATE, "\0\0", 2);
	add(&bufs[2], WW_FRAME_INPUT, "\0\0", 1);
	add(&bufs[3], WW_FRAME_STATE, "\1\0", 1);
	for (size_t i = 0; i < 4; i++)
		for (size_t k = 0; k < i; k++)
			assert_memory_not_equal(bufs[i].bytes + bufs[i].n - 8, bufs[k].bytes + bufs[k].n - 8, 8);
	for (size_t i = 0; i < 4; i++)
		ww_buf_finish(&bufs[i]);
}

static void assert_refused(const char *text, size_t n, ww_status status, const char *expected)
{
	struct ww_error err;
	uint64_t frames;
	assert_int_equal(read_all(text, n, &frames, &err), status);
	assert_string_equal(err.text, expected);
}

static void test_files_that_are_no_journals(void **state)
{
	(void)state;
	assert_refused("", 0, WW_ERR_NO_DATA, "night.journal: is empty; give a journal that wattweir wrote");
	assert_refused("job: a\n", 7, WW_ERR_INVALID,
	               "night.journal: is no journal of wattweir; give one that it wrote");
	assert_refused("wattweir-jour", 13, WW_ERR_INVALID,
	               "night.journal: is no journal of wattweir; give one that it wrote");
	assert_refused("wattweir-journal 2\n....", 23, WW_ERR_UNSUPPORTED,
	               "night.journal: is a journal of another version; read it with the wattweir that wrote it");
}

static void test_frames_that_cannot_be(void **state)
{
	struct ww_buf buf = {0};
	(void)state;
	ww_journal_begin(&buf);
	add(&buf, (enum ww_frame_kind)9, "x", 1);
	assert_refused((const char *)buf.bytes, buf.n, WW_ERR_UNSUPPORTED,
	               "night.journal: frame 1 at byte 19: is of no kind known here; read it with the wattweir that "
	               "wrote it");
	buf.n = FIRST_AT;
	add(&buf, WW_FRAME_STEP, "short", 5);
	assert_refused((const char *)buf.bytes, buf.n, WW_ERR_INVALID,
	               "night.journal: frame 1 at byte 19: is no time of a step; use another copy");
	buf.n = FIRST_AT;
	ww_frame_step(&buf, (struct ww_now){INT64_MAX, -INT64_MAX});
	assert_refused((const char *)buf.bytes, buf.n, WW_ERR_RANGE,
	               "night.journal: frame 1 at byte 19: is a step at a time that no clock shows; use another copy");
	buf.n = FIRST_AT;
	ww_buf_u8(&buf, WW_FRAME_STATE);
	ww_buf_u32(&buf, WW_FRAME_BYTES_MAX + 1);
	assert_refused((const char *)buf.bytes, buf.n, WW_ERR_INVALID,
	               "night.journal: frame 1 at byte 19: is longer than a frame can be; use another copy");
	buf.n = FIRST_AT;
	ww_buf_u8(&buf, WW_FRAME_STATE);
	ww_buf_u32(&buf, WW_FRAME_BYTES_MAX);
	ww_buf_text(&buf, "but only a few bytes");
	assert_refused((const char *)buf.bytes, buf.n, WW_ERR_NO_DATA,
	               "night.journal: frame 1 at byte 19: is cut short; only the frames before it can be used");
	ww_buf_finish(&buf);
}

static void test_ends_that_cannot_be(void **state)
{
	struct ww_buf buf = good_journal();
	(void)state;
	size_t n = buf.n;
	add(&buf, WW_FRAME_END, "\3\0\0\0\0\0\0\0", 8);
	assert_refused(
		(const char *)buf.bytes, buf.n, WW_ERR_INVALID,
		"night.journal: frame 5 at byte 113: is an end after 3 frames, but 4 are there; use another copy");
	buf.n = n;
	add(&buf, WW_FRAME_END, "\4\0\0\0\0\0\0\0\0", 9);
	assert_refused((const char *)buf.bytes, buf.n, WW_ERR_INVALID,
	               "night.journal: frame 5 at byte 113: is no end; use another copy");
	buf.n = n;
	add(&buf, WW_FRAME_END, "\4\0\0\0\0\0\0\0", 8);
	ww_buf_u8(&buf, 0);
	assert_refused((const char *)buf.bytes, buf.n, WW_ERR_INVALID,
	               "night.journal: frame 6 at byte 134: is behind the end of the journal; use another copy");
	ww_buf_finish(&buf);
}

static void test_a_frame_can_be_taken_back(void **state)
{
	struct ww_buf buf = good_journal();
	uint64_t frames;
	size_t before = buf.n;
	(void)state;
	size_t begin = ww_frame_begin(&buf, WW_FRAME_INPUT);
	ww_buf_text(&buf, "never mind");
	buf.n = begin;
	assert_int_equal(buf.n, before);
	assert_int_equal(read_all(buf.bytes, buf.n, &frames, NULL), WW_OK);
	assert_int_equal(frames, 4);
	ww_buf_finish(&buf);
}

static void test_large_frames_and_too_large_ones(void **state)
{
	struct ww_buf buf = {0};
	struct ww_error err;
	uint64_t frames;
	char *bytes = calloc(1, WW_FRAME_BYTES_MAX + 1);
	(void)state;
	ww_journal_begin(&buf);
	add(&buf, WW_FRAME_STATE, bytes, WW_FRAME_BYTES_MAX);
	assert_int_equal(read_all(buf.bytes, buf.n, &frames, NULL), WW_OK);
	assert_int_equal(frames, 1);
	add(&buf, WW_FRAME_STATE, bytes, WW_FRAME_BYTES_MAX + 1);
	assert_true(buf.failed);
	assert_int_equal(ww_journal_write(&(struct ww_journal_out){.out = stdout, .name = "j"}, &buf, &err),
	                 WW_ERR_NOMEM);
	assert_string_equal(err.text, "j: out of memory, or a frame above 64 MiB");
	ww_buf_finish(&buf);
	free(bytes);
}

static void test_a_full_disk_is_told(void **state)
{
	struct ww_buf buf = good_journal();
	struct ww_error err;
	size_t n = buf.n;
	FILE *full = fopen("/dev/full", "w");
	(void)state;
	if (!full)
		skip();
	(void)setvbuf(full, NULL, _IONBF, 0);
	struct ww_journal_out out = {.out = full, .name = "j"};
	assert_int_equal(ww_journal_write(&out, &buf, &err), WW_ERR_IO);
	assert_int_equal(ww_journal_write_end(&out, &buf, &err), WW_ERR_IO);
	assert_int_equal(out.n_frames, 0);
	assert_string_equal(err.text, "j: cannot be written: No space left on device");
	assert_int_equal(buf.n, n);
	(void)fclose(full);
	ww_buf_finish(&buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_was_written_is_read),
		cmocka_unit_test(test_a_file_that_ends_too_early),
		cmocka_unit_test(test_every_changed_byte_is_found),
		cmocka_unit_test(test_kind_length_and_payload_are_summed),
		cmocka_unit_test(test_files_that_are_no_journals),
		cmocka_unit_test(test_frames_that_cannot_be),
		cmocka_unit_test(test_ends_that_cannot_be),
		cmocka_unit_test(test_a_frame_can_be_taken_back),
		cmocka_unit_test(test_large_frames_and_too_large_ones),
		cmocka_unit_test(test_a_full_disk_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
