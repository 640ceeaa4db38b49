/* SPDX-License-Identifier: Apache-2.0 */
/* Worlds are the same each time, their journals can be gone through again, and what cannot be a world is refused. */
#include "assert_near.h"

#include "files/files.h"
#include "schedule.h"

#include <string.h>

#define FIRST_SEED 500
#define WORLDS 100

static ww_world *begin(struct schedule *s, uint64_t seed)
{
	struct ww_error err;
	ww_world *world = NULL;
	schedule_draw(s, seed);
	assert_int_equal(ww_world_create(&s->world, &world, &err), WW_OK);
	return world;
}

/* Lives it to its end; the journal begins after `skip_s`. */
static struct ww_world_account live(struct schedule *s, uint64_t seed, int64_t skip_s, struct ww_buf *journal)
{
	struct ww_error err;
	ww_world *world = begin(s, seed);
	ww_journal_begin(journal);
	for (int64_t second = 0; second < s->length_us / WW_SECOND_US; second++) {
		if (second == skip_s)
			ww_world_begin_journal(world, journal);
		assert_int_equal(ww_world_second(world, NULL, &err), WW_OK);
	}
	struct ww_world_account account = ww_world_account(world);
	ww_world_destroy(world);
	assert_false(journal->failed);
	return account;
}

static void test_same_seed_same_bytes(void **state)
{
	static struct schedule s;
	(void)state;
	for (uint64_t seed = FIRST_SEED; seed < FIRST_SEED + WORLDS; seed++) {
		struct ww_buf a = {0}, b = {0};
		struct ww_world_account first = live(&s, seed, 0, &a), second = live(&s, seed, 0, &b);
		assert_memory_equal(&first, &second, sizeof first);
		assert_int_equal(a.n, b.n);
		assert_memory_equal(a.bytes, b.bytes, a.n);
		assert_true(a.n > 10000);
		ww_buf_finish(&a);
		ww_buf_finish(&b);
	}
}

/* ---- Journals ---------------------------------------------------------------------------------------------------------- */

struct replay {
	ww_control *brain;
	struct ww_input_room *room;
	const struct ww_decision *decision;
	struct ww_buf bytes;
	unsigned states, decisions;
};

static void repeat_state(struct replay *r, const struct ww_frame *frame)
{
	struct ww_error err;
	struct ww_buf saved = {0};
	ww_control_destroy(r->brain);
	r->brain = NULL;
	assert_int_equal(ww_control_create(&r->brain, &err), WW_OK);
	ww_buf_bytes(&saved, frame->bytes, frame->n);
	ww_status status = ww_control_load(r->brain, &saved, &err);
	ww_buf_finish(&saved);
	if (status)
		fail_msg("frame %llu: %s", (unsigned long long)frame->number, err.text);
	r->states++;
}

static void repeat_input(struct replay *r, const struct ww_frame *frame)
{
	struct ww_error err;
	struct ww_input input;
	struct ww_read read = {.bytes = frame->bytes, .n = frame->n};
	assert_int_equal(ww_input_decode(&read, r->room, &input, &err), WW_OK);
	assert_int_equal(ww_control_put(r->brain, &input, &err), WW_OK);
}

static void repeat(struct replay *r, const struct ww_frame *frame, uint64_t seed)
{
	if (frame->kind == WW_FRAME_STATE)
		repeat_state(r, frame);
	else if (frame->kind == WW_FRAME_INPUT)
		repeat_input(r, frame);
	else if (frame->kind == WW_FRAME_STEP)
		r->decision = ww_control_step(r->brain, frame->now);
	if (frame->kind != WW_FRAME_DECISION)
		return;
	ww_buf_clear(&r->bytes);
	ww_decision_encode(r->decision, &r->bytes);
	if (r->bytes.n != frame->n || memcmp(r->bytes.bytes, frame->bytes, frame->n) != 0)
		fail_msg("seed %llu: decision %llu, frame %llu, is another one", (unsigned long long)seed,
		         (unsigned long long)r->decision->seq, (unsigned long long)frame->number);
	r->decisions++;
}

/* From any second on: a saved state holds all that its future depends on. */
static void test_journals_repeat(void **state)
{
	static struct schedule s;
	unsigned states = 0;
	(void)state;
	for (uint64_t seed = FIRST_SEED; seed < FIRST_SEED + WORLDS; seed++) {
		struct ww_buf buf = {0};
		struct ww_journal journal;
		struct ww_frame frame;
		struct replay r = {.room = ww_input_room_create()};
		live(&s, seed, (int64_t)(seed * 37 % 250), &buf);
		FILE *in = fmemopen(buf.bytes, buf.n, "rb");
		assert_non_null(in);
		assert_int_equal(ww_journal_open(in, "journal", &journal, NULL), WW_OK);
		for (;;) {
			assert_int_equal(ww_journal_next(&journal, &frame, NULL), WW_OK);
			if (frame.kind == WW_FRAME_NONE)
				break;
			repeat(&r, &frame, seed);
		}
		assert_true(r.decisions >= 20);
		states += r.states;
		ww_journal_finish(&journal);
		assert_int_equal(fclose(in), 0);
		ww_control_destroy(r.brain);
		ww_input_room_destroy(r.room);
		ww_buf_finish(&r.bytes);
		ww_buf_finish(&buf);
	}
	assert_true(states > WORLDS); /* some of a take-over */
}

/* ---- Mistakes ---------------------------------------------------------------------------------------------------------- */

static void assert_refused(const struct schedule *s, ww_status expected, const char *words)
{
	struct ww_error err;
	ww_world *world = NULL;
	assert_int_equal(ww_world_create(&s->world, &world, &err), expected);
	assert_non_null(strstr(err.text, words));
	assert_null(world);
}

static void test_what_is_no_world(void **state)
{
	static struct schedule s;
	(void)state;
	schedule_draw(&s, 1);
	s.config.n_nodes--;
	assert_refused(&s, WW_ERR_INVALID, "differ in nodes");
	schedule_draw(&s, 1);
	s.world.period_us = 1500000;
	assert_refused(&s, WW_ERR_RANGE, "period");
	schedule_draw(&s, 1);
	s.node_configs[0].n_gpus++;
	assert_refused(&s, WW_ERR_INVALID, "node 0");
	schedule_draw(&s, 1);
	s.world.n_faults = 1;
	s.faults[0] = (struct ww_fault){.kind = WW_FAULT_FOREIGN, .gpu = 16};
	assert_refused(&s, WW_ERR_NOT_FOUND, "fault 0");
	s.faults[0] = (struct ww_fault){.kind = WW_FAULT_HUNG_GPU, .gpu = 16};
	assert_refused(&s, WW_ERR_NOT_FOUND, "fault 0");
	s.faults[0] = (struct ww_fault){.kind = WW_FAULT_METER_LATE, .late_s = WW_METER_LATE_S + 1};
	assert_refused(&s, WW_ERR_RANGE, "at most 60 s late");
	ww_world_destroy(NULL);
}

/* What control refuses ends the world with its words. */
static void test_a_refusal_ends_the_world(void **state)
{
	static struct schedule s;
	struct ww_error err;
	ww_world *world;
	(void)state;
	schedule_draw(&s, 2);
	s.jobs[0].start_us = 0;
	s.told[0].weight = -1;
	assert_int_equal(ww_world_create(&s.world, &world, &err), WW_OK);
	assert_int_equal(ww_world_second(world, NULL, &err), WW_ERR_RANGE);
	assert_non_null(strstr(err.text, "weight"));
	assert_int_equal(ww_world_second(world, NULL, &err), WW_ERR_RANGE);
	ww_world_destroy(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_seed_same_bytes),
		cmocka_unit_test(test_journals_repeat),
		cmocka_unit_test(test_what_is_no_world),
		cmocka_unit_test(test_a_refusal_ends_the_world),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
