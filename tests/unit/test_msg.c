/* SPDX-License-Identifier: Apache-2.0 */
/* Every field of every message comes through, and no shorter text is taken for one. */
#include "messages.h"

#include <string.h>

/* The same number, or both NAN. */
static void assert_same(double a, double b, const char *what, int line)
{
	if (a == b || (isnan(a) && isnan(b)))
		return;
	print_error("%s: %g came out as %g\n", what, a, b);
	_fail(__FILE__, line);
}

static void assert_same_reading(const struct ww_reading *a, const struct ww_reading *b, const char *what, int line)
{
	assert_same((double)a->value, (double)b->value, what, line);
	assert_same(a->age_ms, b->age_ms, what, line);
	assert_same(a->status, b->status, what, line);
}

#define SAME(field) assert_same((double)in.field, (double)out.field, #field, __LINE__)
#define SAME_U64(field) assert_true(in.field == out.field)
#define SAME_READING(field) assert_same_reading(&in.field, &out.field, #field, __LINE__)
#define SAME_FENCE(field) assert_true(ww_fence_order(in.field, out.field) == 0)
#define SAME_ENVELOPE()                                                                                                \
	do {                                                                                                           \
		SAME(from.version);                                                                                    \
		SAME_U64(from.cluster);                                                                                \
		SAME(from.node);                                                                                       \
		SAME(from.boot_id);                                                                                    \
		SAME(from.start_id);                                                                                   \
		SAME(from.seq);                                                                                        \
		SAME_FENCE(from.seen);                                                                                 \
	} while (0)
#define SAME_GPUS()                                                                                                    \
	do {                                                                                                           \
		SAME(n_gpus);                                                                                          \
		for (uint32_t i = 0; i < in.n_gpus; i++) {                                                             \
			SAME_READING(gpus[i].enforced_w);                                                              \
			SAME_READING(gpus[i].draw_w);                                                                  \
			SAME(gpus[i].requested_w);                                                                     \
			SAME(gpus[i].target_w);                                                                        \
			SAME(gpus[i].step);                                                                            \
			SAME(gpus[i].held);                                                                            \
			SAME(gpus[i].managed);                                                                         \
			SAME(gpus[i].foreign);                                                                         \
		}                                                                                                      \
	} while (0)

/* Encodes `in`, decodes it to `out`, and shows that no shorter text is one. */
#define THROUGH(kind)                                                                                                  \
	do {                                                                                                           \
		struct ww_buf buf = {0};                                                                               \
		ww_encode_##kind(&buf, &in);                                                                           \
		for (size_t n = 0; n < buf.n; n++) {                                                                   \
			uint8_t *exact = malloc(n + (n == 0));                                                         \
			memcpy(exact, buf.bytes, n);                                                                   \
			struct ww_read shorter = {exact, n, 0, false};                                                 \
			ww_decode_##kind(&shorter, &out);                                                              \
			assert_true(shorter.bad);                                                                      \
			free(exact);                                                                                   \
		}                                                                                                      \
		struct ww_read read = {buf.bytes, buf.n, 0, false};                                                    \
		ww_decode_##kind(&read, &out);                                                                         \
		assert_false(read.bad);                                                                                \
		assert_int_equal(read.at, buf.n);                                                                      \
		ww_buf_finish(&buf);                                                                                   \
	} while (0)

static void test_samples_come_through(void **state)
{
	struct ww_sample in = good_sample(), out;
	(void)state;
	THROUGH(sample);
	SAME_ENVELOPE();
	SAME_GPUS();
	SAME(n_jobs);
	for (uint32_t i = 0; i < in.n_jobs; i++) {
		SAME(jobs[i].job);
		SAME_READING(jobs[i].tps);
	}
}

static void test_acks_come_through(void **state)
{
	struct ww_ack in = good_ack(), out;
	(void)state;
	THROUGH(ack);
	SAME_ENVELOPE();
	SAME_FENCE(answers);
	SAME(verdict);
	SAME(lapsed);
	SAME_GPUS();
}

static void test_hellos_come_through(void **state)
{
	struct ww_hello in = good_hello(), out;
	(void)state;
	THROUGH(hello);
	SAME_ENVELOPE();
	SAME_GPUS();
	for (uint32_t i = 0; i < in.n_gpus; i++) {
		SAME(limits[i].uuid);
		SAME(limits[i].min_w);
		SAME(limits[i].max_w);
		SAME(limits[i].default_w);
		SAME(limits[i].recorded_w);
		SAME(limits[i].boot_cap_w);
	}
}

static void test_commands_come_through(void **state)
{
	struct ww_command in = good_command(), out;
	(void)state;
	THROUGH(command);
	SAME(cluster);
	SAME(node);
	SAME_FENCE(fence);
	SAME(answers_start_id);
	SAME(answers_seq);
	SAME(valid_for_us);
	SAME(spread_us);
	SAME(event);
	SAME(after);
	SAME(release_ok);
	SAME(n_gpus);
	SAME(n_steps);
	for (uint32_t i = 0; i < in.n_steps; i++) {
		SAME(step[i].in_us);
		SAME(step[i].cap_w[0]);
		SAME(step[i].cap_w[1]);
	}
	SAME(failcap_w[0]);
	SAME(failcap_w[1]);
}

static void test_jobs_come_through(void **state)
{
	struct ww_job in = good_job(), out;
	(void)state;
	THROUGH(job);
	SAME(id);
	assert_string_equal(in.name, out.name);
	SAME(tier);
	SAME(floor_frac);
	SAME(weight);
	SAME(has_curve);
	SAME(curve.p0_w);
	SAME(curve.t0_tps);
	SAME(curve.max_cut_frac);
	SAME(curve.var_a);
	SAME(curve.var_b);
	SAME(curve.cov_ab);
	SAME(curve.n);
	SAME(curve.flags);
	SAME(curve.status);
	for (uint32_t i = 0; i < in.curve.n; i++) {
		SAME(curve.k[i].cut_frac);
		SAME(curve.k[i].loss_frac);
		SAME(curve.k[i].slope);
	}
	SAME(n_places);
	for (uint32_t i = 0; i < in.n_places; i++) {
		SAME(places[i].node);
		SAME(places[i].gpus);
	}
}

static void test_jobs_without_a_curve_and_jobs_that_end_come_through(void **state)
{
	struct ww_job in = good_job(), out;
	(void)state;
	in.has_curve = false;
	THROUGH(job);
	assert_false(out.has_curve);
	SAME(n_places);
	in.n_places = 0;
	in.weight = NAN; /* of a job that ends nothing else counts */
	THROUGH(job);
	SAME(id);
	SAME(n_places);
}

static void test_events_come_through(void **state)
{
	struct ww_event in = good_event(), out;
	(void)state;
	THROUGH(event);
	SAME(id);
	SAME(version);
	SAME(cancelled);
	SAME(row);
	SAME(boundary);
	SAME(cls);
	SAME(start_us);
	SAME(end_us);
	SAME(limit_w);
	SAME(cut_frac);
	SAME(ramp_down_us);
	SAME(ramp_up_us);
}

static void test_meters_and_leaders_come_through(void **state)
{
	(void)state;
	{
		struct ww_meter in = good_meter(), out;
		THROUGH(meter);
		SAME(row);
		SAME_READING(power_w);
	}
	{
		struct ww_leader in = good_leader(), out;
		THROUGH(leader);
		SAME(epoch);
		SAME(leads);
	}
}

#define SAME_ROW(i)                                                                                                    \
	do {                                                                                                           \
		SAME(rows[i].id);                                                                                      \
		assert_string_equal(in.rows[i].name, out.rows[i].name);                                                \
		SAME(rows[i].limit_w);                                                                                 \
		SAME(rows[i].boundary);                                                                                \
		SAME(rows[i].has_meter);                                                                               \
		SAME(rows[i].meter_boundary);                                                                          \
		for (int b = 0; b < WW_N_BOUNDARIES; b++) {                                                            \
			SAME(rows[i].fixed_w[b]);                                                                      \
			SAME(rows[i].follow[b]);                                                                       \
		}                                                                                                      \
		SAME(rows[i].guard_frac);                                                                              \
	} while (0)
#define SAME_NODE(i)                                                                                                   \
	do {                                                                                                           \
		SAME(nodes[i].id);                                                                                     \
		assert_string_equal(in.nodes[i].name, out.nodes[i].name);                                              \
		SAME(nodes[i].n_gpus);                                                                                 \
		SAME(nodes[i].min_w);                                                                                  \
		SAME(nodes[i].max_w);                                                                                  \
		SAME(nodes[i].default_w);                                                                              \
		SAME(nodes[i].boot_cap_w);                                                                             \
		SAME(nodes[i].shortest_boot_us);                                                                       \
		SAME(nodes[i].n_loads);                                                                                \
		for (uint32_t k = 0; k < in.nodes[i].n_loads; k++) {                                                   \
			SAME(nodes[i].loads[k].row);                                                                   \
			SAME(nodes[i].loads[k].frac);                                                                  \
		}                                                                                                      \
	} while (0)

static void test_configurations_come_through(void **state)
{
	struct ww_row rows[2];
	struct ww_node_config nodes[2];
	struct ww_config in = good_config(rows, nodes), out;
	(void)state;
	THROUGH(config);
	SAME(cluster);
	SAME(objective);
	SAME(valid_for_us);
	SAME(settle_us);
	SAME(after);
	SAME(n_rows);
	SAME(n_nodes);
	for (uint32_t i = 0; i < 2; i++) {
		SAME_ROW(i);
		SAME_NODE(i);
	}
	ww_config_finish(&out);
	assert_null(out.rows);
}

/* ---- What no reader takes -------------------------------------------------------------------------------------------- */

/* `change` makes a message that cannot be; the bytes are then refused. */
#define BAD(kind, change)                                                                                              \
	do {                                                                                                           \
		struct ww_##kind v = good_##kind(), got;                                                               \
		struct ww_buf buf = {0};                                                                               \
		change;                                                                                                \
		ww_encode_##kind(&buf, &v);                                                                            \
		struct ww_read read = {buf.bytes, buf.n, 0, false};                                                    \
		ww_decode_##kind(&read, &got);                                                                         \
		ww_buf_finish(&buf);                                                                                   \
		assert_true(read.bad);                                                                                 \
	} while (0)

static void test_values_that_cannot_be_are_bad(void **state)
{
	(void)state;
	BAD(sample, v.from.version = 2);
	BAD(sample, v.gpus[1].enforced_w.status = WW_N_READING_STATUS);
	BAD(sample, v.gpus[1].enforced_w.value = INFINITY);
	BAD(sample, v.gpus[0].enforced_w.value = NAN);
	BAD(sample, v.gpus[0].requested_w = -INFINITY);
	BAD(sample, v.gpus[0].target_w = INFINITY);
	BAD(sample, v.gpus[0].step = WW_STEPS_MAX + 1);
	BAD(sample, v.gpus[0].held = 2);
	BAD(sample, v.gpus[0].managed = 2);
	BAD(sample, v.jobs[0].tps.value = NAN);
	BAD(ack, v.verdict = WW_N_ACK_VERDICTS);
	BAD(ack, v.lapsed = 2);
	BAD(hello, v.limits[1].max_w = NAN);
	BAD(command, v.after = WW_N_AFTERS);
	BAD(command, v.release_ok = 2);
	BAD(command, v.step[1].cap_w[1] = INFINITY);
	BAD(command, v.failcap_w[0] = INFINITY);
	BAD(job, v.weight = NAN);
	BAD(job, v.floor_frac = INFINITY);
	BAD(job, v.curve.k[1].slope = NAN);
	BAD(job, v.curve.status = WW_PFI_BOUND + 1);
	BAD(event, v.boundary = WW_N_BOUNDARIES);
	BAD(event, v.cls = WW_N_CLASSES);
	BAD(event, v.limit_w = INFINITY);
	BAD(meter, v.power_w.value = NAN);
}

#define BAD_CONFIG(change)                                                                                             \
	do {                                                                                                           \
		struct ww_row rows[2];                                                                                 \
		struct ww_node_config nodes[2];                                                                        \
		struct ww_config v = good_config(rows, nodes), got;                                                    \
		struct ww_buf buf = {0};                                                                               \
		change;                                                                                                \
		ww_encode_config(&buf, &v);                                                                            \
		struct ww_read read = {buf.bytes, buf.n, 0, false};                                                    \
		ww_decode_config(&read, &got);                                                                         \
		ww_buf_finish(&buf);                                                                                   \
		assert_true(read.bad);                                                                                 \
		assert_true(!got.rows && !got.nodes);                                                                  \
	} while (0)

static void test_configurations_that_cannot_be_are_bad(void **state)
{
	(void)state;
	BAD_CONFIG(v.objective = WW_OBJECTIVE_MAXMIN + 1);
	BAD_CONFIG(v.after = WW_N_AFTERS);
	BAD_CONFIG(rows[1].limit_w = NAN);
	BAD_CONFIG(rows[1].boundary = WW_N_BOUNDARIES);
	BAD_CONFIG(rows[1].meter_boundary = WW_N_BOUNDARIES);
	BAD_CONFIG(rows[1].fixed_w[1] = NAN);
	BAD_CONFIG(rows[1].follow[2] = INFINITY);
	BAD_CONFIG(rows[1].guard_frac = NAN);
	BAD_CONFIG(nodes[1].n_gpus = WW_NODE_GPUS_MAX + 1);
	BAD_CONFIG(nodes[1].min_w = NAN);
	BAD_CONFIG(nodes[1].boot_cap_w = INFINITY);
	BAD_CONFIG(nodes[0].loads[1].frac = NAN);
}

/* Counts that are too large, in messages in which nothing else is wrong. */
static void test_counts_beyond_the_room_are_bad(void **state)
{
	static const size_t at_n_gpus = 68; /* behind the envelope and the time */
	struct ww_sample sample = good_sample(), got;
	struct ww_buf buf = {0};
	(void)state;
	ww_encode_sample(&buf, &sample);
	for (int i = 0; i < 2000; i++)
		ww_buf_u8(&buf, 0);
	struct ww_read read = {buf.bytes, buf.n, 0, false};
	assert_int_equal(buf.bytes[at_n_gpus], 2);
	buf.bytes[at_n_gpus] = WW_NODE_GPUS_MAX + 1;
	ww_decode_sample(&read, &got);
	assert_true(read.bad);
	assert_int_equal(got.n_gpus, 0);
	ww_buf_finish(&buf);
}

static void test_a_count_allocates_only_what_can_follow(void **state)
{
	struct ww_config got;
	struct ww_buf buf = {0};
	(void)state;
	ww_buf_u64(&buf, 1);
	ww_buf_u32(&buf, 0);
	ww_buf_i64(&buf, 1);
	ww_buf_i64(&buf, 1);
	ww_buf_u8(&buf, 0);
	ww_buf_u32(&buf, WW_CONFIG_ROWS_MAX);
	ww_buf_u64(&buf, 0);
	struct ww_read read = {buf.bytes, buf.n, 0, false};
	ww_decode_config(&read, &got);
	assert_true(read.bad);
	assert_null(got.rows);
	ww_buf_finish(&buf);
}

/* 64 KiB is the most that is unpacked from a network: the largest command and sample are far below. */
static void test_messages_are_small(void **state)
{
	struct ww_sample sample = {.n_gpus = WW_NODE_GPUS_MAX, .n_jobs = WW_NODE_JOBS_MAX};
	struct ww_command command = {.n_gpus = WW_NODE_GPUS_MAX, .n_steps = WW_STEPS_MAX};
	struct ww_buf buf = {0};
	(void)state;
	ww_encode_sample(&buf, &sample);
	assert_in_range(buf.n, 500, 1024);
	ww_buf_clear(&buf);
	ww_encode_command(&buf, &command);
	assert_in_range(buf.n, 900, 1024);
	ww_buf_finish(&buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_samples_come_through),
		cmocka_unit_test(test_acks_come_through),
		cmocka_unit_test(test_hellos_come_through),
		cmocka_unit_test(test_commands_come_through),
		cmocka_unit_test(test_jobs_come_through),
		cmocka_unit_test(test_jobs_without_a_curve_and_jobs_that_end_come_through),
		cmocka_unit_test(test_events_come_through),
		cmocka_unit_test(test_meters_and_leaders_come_through),
		cmocka_unit_test(test_configurations_come_through),
		cmocka_unit_test(test_values_that_cannot_be_are_bad),
		cmocka_unit_test(test_configurations_that_cannot_be_are_bad),
		cmocka_unit_test(test_counts_beyond_the_room_are_bad),
		cmocka_unit_test(test_a_count_allocates_only_what_can_follow),
		cmocka_unit_test(test_messages_are_small),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
