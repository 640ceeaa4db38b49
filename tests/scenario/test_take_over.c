/* SPDX-License-Identifier: Apache-2.0 */
/* A take-over during an event, as of an upgrade: what limits do until one lease later, and how fast a budget is kept. */
#include "assert_near.h"

#include "cli/simulate_internal.h"
#include "files/files.h"

#include <stdlib.h>
#include <string.h>

#define GPUS 64
#define TOLD_S 720 /* the event is announced and starts, */
#define CANCELLED_S 1800
#define AWAY_S 6   /* no controller is in charge for so long */
#define LEASE_S 60 /* nothing rises for so long; the last of its seconds may see the first raise */
#define DOWN_S 15  /* after the announcement every node has gone down */
#define SEEDS 3

struct life {
	struct ww_scenario scenario;
	struct ww_scene *scene;
	ww_world *world;
	uint32_t second;
	double limit_w[GPUS];
};

/* The controller dies at crash_s. */
static void begin(struct life *l, uint64_t seed, uint32_t crash_s)
{
	struct ww_error err;
	const char *dir = getenv("WATTWEIR_SOURCE");
	char path[4096];
	*l = (struct life){0};
	snprintf(path, sizeof path, "%s/tests/scenario/take-over.yaml", dir ? dir : ".");
	if (ww_scenario_read(path, &l->scenario, &err) || ww_scene_create(&l->scenario, seed, &l->scene, &err))
		fail_msg("%s", err.text);
	l->scene->faults[0].at_us = (int64_t)crash_s * WW_SECOND_US;
	l->scene->faults[0].until_us = (int64_t)(crash_s + AWAY_S) * WW_SECOND_US;
	ww_scene_tell_truth(l->scene, false);
	assert_int_equal(ww_world_create(&l->scene->spec, &l->world, &err), WW_OK);
}

static void finish(struct life *l)
{
	struct ww_world_account account = ww_world_account(l->world);
	assert_int_equal(account.broken_a + account.broken_b + account.broken_c, 0);
	ww_world_destroy(l->world);
	ww_scene_destroy(l->scene);
	ww_scenario_finish(&l->scenario);
}

/* One second; how many limits rose in it. */
static uint32_t live(struct life *l)
{
	struct ww_error err;
	struct ww_world_second s;
	uint32_t rose = 0;
	assert_int_equal(ww_world_second(l->world, &s, &err), WW_OK);
	for (uint32_t g = 0; g < GPUS; g++) {
		double w = ww_plant_enforced_w(s.plant, g);
		rose += l->second > 0 && w > l->limit_w[g] + 0.5;
		l->limit_w[g] = w;
	}
	l->second++;
	return rose;
}

static void live_until(struct life *l, uint32_t second)
{
	while (l->second < second)
		live(l);
}

static void until_one_lease_later_no_limit_rises(void **state)
{
	static const uint32_t after_s[] = {0, 1, 2, 3, 5, 10, 60, 600};
	(void)state;
	for (size_t i = 0; i < sizeof after_s / sizeof *after_s; i++)
		for (uint64_t seed = 1; seed <= SEEDS; seed++) {
			struct life l;
			uint32_t crash_s = TOLD_S + after_s[i];
			begin(&l, seed, crash_s);
			live_until(&l, crash_s);
			while (l.second < crash_s + AWAY_S + LEASE_S - 1)
				assert_int_equal(live(&l), 0);
			finish(&l);
		}
}

static void every_node_goes_down_in_time(void **state)
{
	(void)state;
	for (uint32_t crash_s = TOLD_S - AWAY_S - 4; crash_s <= TOLD_S + 4; crash_s++)
		for (uint64_t seed = 1; seed <= SEEDS; seed++) {
			struct life l;
			double before_w[GPUS];
			begin(&l, seed, crash_s);
			live_until(&l, TOLD_S - AWAY_S - 4);
			memcpy(before_w, l.limit_w, sizeof before_w);
			live_until(&l, TOLD_S + DOWN_S);
			for (uint32_t g = 0; g < GPUS; g++)
				assert_true(l.limit_w[g] < before_w[g] - 1);
			finish(&l);
		}
}

static void raises_wait_for_one_lease(void **state)
{
	(void)state;
	for (uint32_t before_s = 1; before_s <= 31; before_s += 10) {
		struct life l;
		uint32_t led_s = CANCELLED_S - before_s, rose = 0;
		begin(&l, 1, led_s - AWAY_S);
		live_until(&l, led_s);
		while (l.second < led_s + LEASE_S - 1)
			assert_int_equal(live(&l), 0);
		while (l.second < led_s + LEASE_S + 15)
			rose += live(&l);
		assert_true(rose > GPUS / 2);
		finish(&l);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(until_one_lease_later_no_limit_rises),
		cmocka_unit_test(every_node_goes_down_in_time),
		cmocka_unit_test(raises_wait_for_one_lease),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
