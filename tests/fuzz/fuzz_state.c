/* SPDX-License-Identifier: Apache-2.0 */
/* A saved state of any bytes: refused in one line with nothing changed, or loaded, saved as the same bytes and stepped. */
#include "fuzz.h"

#include "control/control.h"

static void check_refused(ww_control *control, ww_status status, const struct ww_error *err)
{
	struct ww_buf untouched = {0};
	require(status == WW_ERR_INVALID && err->code == status);
	check_text(err->text);
	require(ww_control_save(control, &untouched) == WW_OK && untouched.n == 9); /* without an inventory */
	ww_buf_finish(&untouched);
}

static void check_loaded(ww_control *control, const uint8_t *data, size_t size)
{
	struct ww_now now = {1000 * WW_SECOND_US, INT64_C(1800000000) * WW_SECOND_US};
	struct ww_leader leader = {UINT64_MAX, true};
	struct ww_input input = {.at = now, .kind = WW_INPUT_LEADER, .u = {.leader = &leader}};
	struct ww_buf again = {0};
	require(ww_control_save(control, &again) == WW_OK);
	require(again.n == size && memcmp(again.bytes, data, size) == 0);
	for (int i = 0; i < 4; i++, now.mono_us += WW_SECOND_US, now.wall_us += WW_SECOND_US) {
		ww_buf_clear(&again);
		ww_decision_encode(ww_control_step(control, now), &again);
		if (i == 1)
			(void)ww_control_put(control, &input, NULL);
	}
	ww_buf_clear(&again);
	require(ww_control_save(control, &again) == WW_OK);
	ww_buf_finish(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ww_error err = {WW_OK, ""};
	struct ww_buf bytes = {0};
	ww_control *control;
	require(ww_control_create(&control, NULL) == WW_OK);
	ww_buf_bytes(&bytes, data, size);
	ww_status status = ww_control_load(control, &bytes, &err);
	if (status == WW_OK)
		check_loaded(control, data, size);
	else
		check_refused(control, status, &err);
	ww_buf_finish(&bytes);
	ww_control_destroy(control);
	return 0;
}
