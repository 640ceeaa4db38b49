/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first byte N tells how to read the rest. 0: a saved state. Else N - 1 edits of three bytes each (where, two bytes; what
 * is flipped), then inputs: they are put and stepped, and the state that comes of it is saved, edited and loaded. So the
 * corpus outlives changes of the form of a state. A state is refused in one line with nothing changed, or it is saved again
 * as the same bytes and can be stepped.
 */
#include "fuzz.h"

#include "control/control.h"

#define LATEST_US (INT64_MAX / 16)

static ww_control *create(void)
{
	ww_control *control;
	require(ww_control_create(&control, NULL) == WW_OK);
	return control;
}

static void check_refused(ww_control *control, ww_status status, const struct ww_error *err)
{
	struct ww_buf untouched = {0};
	require(status == WW_ERR_INVALID && err->code == status);
	check_text(err->text);
	require(ww_control_save(control, &untouched) == WW_OK && untouched.n == 17); /* without an inventory */
	ww_buf_finish(&untouched);
}

static void check_loaded(ww_control *control, const struct ww_buf *bytes)
{
	struct ww_now now = {1000 * WW_SECOND_US, INT64_C(1800000000) * WW_SECOND_US};
	struct ww_leader leader = {UINT64_MAX, true};
	struct ww_input input = {.at = now, .kind = WW_INPUT_LEADER, .u = {.leader = &leader}};
	struct ww_buf again = {0};
	require(ww_control_save(control, &again) == WW_OK);
	require(again.n == bytes->n && memcmp(again.bytes, bytes->bytes, again.n) == 0);
	for (int i = 0; i < 4; i++, now.mono_us += WW_SECOND_US, now.wall_us += WW_SECOND_US) {
		ww_buf_clear(&again);
		ww_decision_encode(ww_control_step(control, now), &again);
		if (i == 1)
			(void)!ww_control_put(control, &input, NULL);
	}
	ww_buf_clear(&again);
	require(ww_control_save(control, &again) == WW_OK);
	ww_buf_finish(&again);
}

static void load(const struct ww_buf *bytes)
{
	struct ww_error err = {WW_OK, ""};
	ww_control *control = create();
	ww_status status = ww_control_load(control, bytes, &err);
	if (status == WW_OK)
		check_loaded(control, bytes);
	else
		check_refused(control, status, &err);
	ww_control_destroy(control);
}

/* Time passes, and is never one that only a broken clock would tell. */
static bool follows(struct ww_now at, struct ww_now now)
{
	return at.mono_us >= now.mono_us && at.mono_us < LATEST_US && at.wall_us > -LATEST_US && at.wall_us < LATEST_US;
}

static void live(ww_control *control, const uint8_t *data, size_t size)
{
	struct ww_input_room *room = ww_input_room_create();
	struct ww_read read = {data, size, 0, false};
	struct ww_now now = {0, 0};
	struct ww_input input;
	require(room != NULL);
	while (read.at < size && ww_input_decode(&read, room, &input, NULL) == WW_OK) {
		struct ww_error err = {WW_OK, ""};
		if (!follows(input.at, now))
			break;
		if (input.at.mono_us > now.mono_us)
			(void)ww_control_step(control, input.at);
		now = input.at;
		if (ww_control_put(control, &input, &err) != WW_OK)
			check_text(err.text);
	}
	(void)ww_control_step(control, now);
	ww_input_room_destroy(room);
}

static void edit(struct ww_buf *bytes, const uint8_t *edits, size_t n)
{
	for (size_t i = 0; i < n; i++)
		bytes->bytes[(edits[3 * i] | (size_t)edits[3 * i + 1] << 8) % bytes->n] ^= edits[3 * i + 2];
	/* The sum at the end is made to fit, or nothing behind it would ever be reached. */
	bytes->n -= sizeof(uint64_t);
	ww_buf_u64(bytes, ww_sum_bytes(bytes->bytes, bytes->n));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ww_buf bytes = {0};
	size_t n = size > 0 ? data[0] : 0;
	if (n == 0) {
		ww_buf_bytes(&bytes, data + 1, size > 0 ? size - 1 : 0);
		load(&bytes);
	} else if (size >= 3 * n - 2) {
		ww_control *control = create();
		live(control, data + 3 * n - 2, size - (3 * n - 2));
		require(ww_control_save(control, &bytes) == WW_OK);
		ww_control_destroy(control);
		edit(&bytes, data + 1, n - 1);
		load(&bytes);
	}
	ww_buf_finish(&bytes);
	return 0;
}
