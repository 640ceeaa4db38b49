/* SPDX-License-Identifier: Apache-2.0 */
/* A text of inputs: each is refused in one line, or read and, where its form is sound, written again as the same bytes. */
#include "fuzz.h"

#include "control/control.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ww_input_room *room = ww_input_room_create();
	struct ww_read read = {data, size, 0, false};
	struct ww_buf buf = {0};
	require(room != NULL);
	while (read.at < size) {
		struct ww_input input;
		struct ww_error err = {WW_OK, ""};
		size_t before = read.at;
		ww_status status = ww_input_decode(&read, room, &input, &err);
		require((status == WW_OK) == !read.bad && read.at <= size);
		if (status != WW_OK) {
			require(status == WW_ERR_INVALID && err.code == status);
			check_text(err.text);
			break;
		}
		require(read.at > before);
		ww_buf_clear(&buf);
		if (ww_input_encode(&input, &buf) == WW_OK)
			require(buf.n == read.at - before && memcmp(buf.bytes, data + before, buf.n) == 0);
		else
			require(buf.n == 0);
	}
	ww_buf_finish(&buf);
	ww_input_room_destroy(room);
	return 0;
}
