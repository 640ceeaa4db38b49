/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks: the machine's, a faster one, and one that is set by hand. */
#include "base/base.h"

#include <time.h>

static int64_t read_us(clockid_t id)
{
	struct timespec t = {0};
	(void)clock_gettime(id, &t);
	return t.tv_sec * WW_SECOND_US + t.tv_nsec / 1000;
}

/* Goes on while the machine sleeps: leases end then as well. */
static struct ww_now real_now(void *ctx)
{
	(void)ctx;
	return (struct ww_now){read_us(CLOCK_BOOTTIME), read_us(CLOCK_REALTIME)};
}

struct ww_clock ww_clock_real(void)
{
	return (struct ww_clock){real_now, NULL};
}

/* Both follow the monotonic clock: a step of the machine's wall clock would be one `speed` times as long. */
static struct ww_now scaled_now(void *ctx)
{
	const struct ww_scaled_clock *state = ctx;
	int64_t since_us = (int64_t)((double)(real_now(NULL).mono_us - state->base.mono_us) * state->speed);
	return (struct ww_now){state->start.mono_us + since_us, state->start.wall_us + since_us};
}

struct ww_clock ww_clock_scaled(struct ww_scaled_clock *state, double speed)
{
	state->base = real_now(NULL);
	state->start = state->base;
	state->speed = speed;
	return (struct ww_clock){scaled_now, state};
}

static struct ww_now manual_now(void *ctx)
{
	const struct ww_manual_clock *state = ctx;
	return state->now;
}

struct ww_clock ww_clock_manual(struct ww_manual_clock *state)
{
	return (struct ww_clock){manual_now, state};
}
