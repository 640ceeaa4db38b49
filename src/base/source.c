/* SPDX-License-Identifier: Apache-2.0 */
/* Sources stepped in virtual time. */
#include "base/base.h"

/* The first of those that are due earliest; NULL when none is due by until_us. */
static const struct ww_source *earliest(const struct ww_driver *driver, int64_t until_us, int64_t *due_us)
{
	const struct ww_source *first = NULL;
	*due_us = WW_NEVER_US;
	for (size_t i = 0; i < driver->n; i++) {
		int64_t its_us = driver->sources[i].due_us(driver->sources[i].ctx);
		if (its_us <= until_us && its_us < *due_us) {
			first = &driver->sources[i];
			*due_us = its_us;
		}
	}
	return first;
}

/* Work that was due before now runs now: time never goes back. */
static void jump(struct ww_manual_clock *clock, int64_t mono_us)
{
	if (mono_us <= clock->now.mono_us)
		return;
	clock->now.wall_us += mono_us - clock->now.mono_us;
	clock->now.mono_us = mono_us;
}

void ww_driver_run(struct ww_driver *driver, int64_t until_us)
{
	const struct ww_source *source;
	int64_t due_us;
	while ((source = earliest(driver, until_us, &due_us)) != NULL) {
		jump(driver->clock, due_us);
		source->dispatch(source->ctx, driver->clock->now);
	}
	jump(driver->clock, until_us);
}
