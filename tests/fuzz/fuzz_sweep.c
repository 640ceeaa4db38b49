/* SPDX-License-Identifier: Apache-2.0 */
/* The sweep reader on any bytes. A first line "--map TEXT" is the map, and the rest the file. */
#include "fuzz.h"

#include "files/files.h"

#include <math.h>

static void check_point(const struct ww_point *p)
{
	require(p->cap_w > 0 && p->cap_w <= 100000 && p->power_w > 0 && p->power_w <= 100000);
	require(p->throughput > 0 && isfinite(p->throughput));
	require(isnan(p->power_se_w) || (p->power_se_w >= 0 && isfinite(p->power_se_w)));
	require(isnan(p->throughput_se) || (p->throughput_se >= 0 && isfinite(p->throughput_se)));
	require(p->throttle >= -1);
}

static void check_group(const struct ww_sweep *sweep, const struct ww_sweep_group *group)
{
	require(*group->name != '\0' && group->n_points > 0);
	check_text(group->name);
	check_text(group->gpu_model);
	for (size_t i = 0; i < group->n_points; i++)
		check_point(&group->points[i]);
	require((group->telemetry != NULL) == (sweep->n_telemetry > 0));
	for (size_t i = 0; i < group->n_points * sweep->n_telemetry; i++)
		require(!isinf(group->telemetry[i]));
}

static void check_sweep(const struct ww_sweep *sweep)
{
	require(sweep->n_groups > 0 && strcmp(sweep->file, "fuzz.csv") == 0);
	for (size_t i = 0; i < sweep->n_groups; i++)
		check_group(sweep, &sweep->groups[i]);
	for (size_t i = 0; i < sweep->n_telemetry; i++)
		check_text(sweep->telemetry[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char prefix[] = "--map ";
	const size_t skip = sizeof prefix - 1;
	struct ww_sweep sweep, untouched;
	struct ww_error err = {WW_OK, ""};
	char *map = NULL;

	if (size >= skip && memcmp(data, prefix, skip) == 0) {
		const uint8_t *end = memchr(data, '\n', size);
		size_t length = end ? (size_t)(end - data) : size;
		map = strndup((const char *)data + skip, length - skip);
		length += end != NULL;
		data += length;
		size -= length;
	}
	FILE *in = fmemopen((void *)data, size, "r");
	if (in) {
		memset(&sweep, 0xA5, sizeof sweep);
		untouched = sweep;
		ww_status status = ww_sweep_parse(in, "fuzz.csv", map, &sweep, &err);
		if (status == WW_OK) {
			check_sweep(&sweep);
			ww_sweep_finish(&sweep);
		} else {
			require(err.code == status && strlen(err.text) > 10);
			require(memcmp(&sweep, &untouched, sizeof sweep) == 0);
			check_text(err.text);
		}
		(void)fclose(in);
	}
	free(map);
	return 0;
}
