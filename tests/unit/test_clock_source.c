/* SPDX-License-Identifier: Apache-2.0 */
#include "assert_near.h"

#include "base/base.h"

#include <string.h>
#include <time.h>

static void test_the_machines_clocks(void **state)
{
	struct ww_clock clock = ww_clock_real();
	struct ww_now first = clock.now(clock.ctx), last = first;
	(void)state;
	assert_near((double)first.wall_us / 1e6, (double)time(NULL), 2);
	for (int i = 0; i < 10000; i++) {
		struct ww_now now = clock.now(clock.ctx);
		assert_true(now.mono_us >= last.mono_us);
		last = now;
	}
	(void)usleep(2000);
	assert_true(clock.now(clock.ctx).mono_us >= first.mono_us + 2000);
}

static void test_a_scaled_clock_runs_faster_from_its_set_up_on(void **state)
{
	struct ww_scaled_clock scaled;
	struct ww_clock real = ww_clock_real(), clock = ww_clock_scaled(&scaled, 1000);
	struct ww_now after = real.now(real.ctx);
	(void)state;
	assert_near((double)scaled.start.wall_us / 1e6, (double)after.wall_us / 1e6, 60);
	(void)usleep(2000);
	struct ww_now from = real.now(real.ctx), now = clock.now(clock.ctx), to = real.now(real.ctx);
	int64_t least_us = (from.mono_us - scaled.base.mono_us) * 1000;
	int64_t most_us = (to.mono_us - scaled.base.mono_us) * 1000;
	assert_true(least_us >= 2000 * 1000);
	assert_true(now.mono_us - scaled.start.mono_us >= least_us && now.mono_us - scaled.start.mono_us <= most_us);
	assert_int_equal(now.wall_us - scaled.start.wall_us, now.mono_us - scaled.start.mono_us);
}

static void test_a_manual_clock_stands_still(void **state)
{
	struct ww_manual_clock manual = {{5, 7}};
	struct ww_clock clock = ww_clock_manual(&manual);
	(void)state;
	assert_int_equal(clock.now(clock.ctx).mono_us, 5);
	manual.now = (struct ww_now){50, 70};
	assert_int_equal(clock.now(clock.ctx).mono_us, 50);
	assert_int_equal(clock.now(clock.ctx).wall_us, 70);
}

#define LOG_MAX 64

struct log {
	size_t n;
	struct {
		char name;
		struct ww_now at;
	} entries[LOG_MAX];
};

/* Works each every_us, `times` times each time. */
struct work {
	char name;
	int64_t next_us, every_us;
	int times, left;
	struct log *log;
};

static int64_t work_due(void *ctx)
{
	return ((struct work *)ctx)->next_us;
}

static void work_dispatch(void *ctx, struct ww_now now)
{
	struct work *work = ctx;
	assert_true(work->log->n < LOG_MAX);
	work->log->entries[work->log->n].name = work->name;
	work->log->entries[work->log->n++].at = now;
	if (--work->left > 0)
		return;
	work->left = work->times;
	work->next_us = work->every_us ? work->next_us + work->every_us : WW_NEVER_US;
}

static struct ww_source source_of(struct work *work)
{
	return (struct ww_source){NULL, work_due, work_dispatch, work};
}

static void assert_log(const struct log *log, const char *names, const int64_t *at_us)
{
	for (size_t i = 0; names[i]; i++) {
		assert_true(i < log->n);
		assert_int_equal(log->entries[i].name, names[i]);
		assert_int_equal(log->entries[i].at.mono_us, at_us[i]);
		assert_int_equal(log->entries[i].at.wall_us, at_us[i] + 1000);
	}
	assert_int_equal(log->n, strlen(names));
}

static void test_sources_run_when_due_in_order(void **state)
{
	struct log log = {0};
	struct work a = {'a', 20, 20, 1, 1, &log}, b = {'b', 10, 10, 2, 2, &log}, c = {'c', 20, 0, 1, 1, &log};
	struct work d = {'d', WW_NEVER_US, 1, 1, 1, &log};
	struct ww_source sources[] = {source_of(&d), source_of(&a), source_of(&b), source_of(&c)};
	struct ww_manual_clock manual = {{0, 1000}};
	struct ww_driver driver = {&manual, sources, 4};
	(void)state;
	ww_driver_run(&driver, 9);
	assert_int_equal(log.n, 0);
	assert_int_equal(manual.now.mono_us, 9);
	ww_driver_run(&driver, 30);
	assert_log(&log, "bbabbcbb", (const int64_t[]){10, 10, 20, 20, 20, 20, 30, 30});
	assert_int_equal(manual.now.mono_us, 30);
	assert_int_equal(manual.now.wall_us, 1030);
}

static void test_work_that_was_due_before_runs_now(void **state)
{
	struct log log = {0};
	struct work late = {'x', 5, 0, 1, 1, &log};
	struct ww_source sources[] = {source_of(&late)};
	struct ww_manual_clock manual = {{50, 1050}};
	struct ww_driver driver = {&manual, sources, 1};
	(void)state;
	ww_driver_run(&driver, 60);
	assert_log(&log, "x", (const int64_t[]){50});
	ww_driver_run(&driver, 40);
	assert_int_equal(manual.now.mono_us, 60);
}

/* Makes the other one due at the time of its own dispatch. */
struct starter {
	struct work *other;
	int64_t next_us;
};

static int64_t starter_due(void *ctx)
{
	return ((struct starter *)ctx)->next_us;
}

static void starter_dispatch(void *ctx, struct ww_now now)
{
	struct starter *starter = ctx;
	starter->other->next_us = now.mono_us;
	starter->next_us = WW_NEVER_US;
}

static void test_a_source_that_becomes_due_runs_at_the_same_time(void **state)
{
	struct log log = {0};
	struct work other = {'o', WW_NEVER_US, 0, 1, 1, &log};
	struct starter starter = {&other, 70};
	struct ww_source sources[] = {source_of(&other), {NULL, starter_due, starter_dispatch, &starter}};
	struct ww_manual_clock manual = {{0, 1000}};
	struct ww_driver driver = {&manual, sources, 2};
	(void)state;
	ww_driver_run(&driver, 100);
	assert_log(&log, "o", (const int64_t[]){70});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_machines_clocks),
		cmocka_unit_test(test_a_scaled_clock_runs_faster_from_its_set_up_on),
		cmocka_unit_test(test_a_manual_clock_stands_still),
		cmocka_unit_test(test_sources_run_when_due_in_order),
		cmocka_unit_test(test_work_that_was_due_before_runs_now),
		cmocka_unit_test(test_a_source_that_becomes_due_runs_at_the_same_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
