/* SPDX-License-Identifier: Apache-2.0 */
/* Sound messages pass their check; each mistake is one line that names the field. */
#include "messages.h"

#include <string.h>

static void assert_line(ww_status status, const struct ww_error *err, ww_status expected, const char *text, int line)
{
	if (status == expected && strcmp(err->text, text) == 0)
		return;
	print_error("expected %d '%s'\n     got %d '%s'\n", expected, text, status, status == WW_OK ? "" : err->text);
	_fail(__FILE__, line);
}

/* The good message after `change` is refused. */
#define WRONG(kind, change, code, text)                                                                                \
	do {                                                                                                           \
		struct ww_##kind v = good_##kind();                                                                    \
		struct ww_error err;                                                                                   \
		change;                                                                                                \
		ww_status status = ww_check_##kind(&v, &err);                                                          \
		assert_line(status, &err, code, text, __LINE__);                                                       \
	} while (0)

#define FINE(kind, change)                                                                                             \
	do {                                                                                                           \
		struct ww_##kind v = good_##kind();                                                                    \
		struct ww_error err = {WW_OK, ""};                                                                     \
		change;                                                                                                \
		ww_status status = ww_check_##kind(&v, &err);                                                          \
		assert_line(status, &err, WW_OK, "", __LINE__);                                                        \
	} while (0)

static void test_sound_messages_pass(void **state)
{
	(void)state;
	FINE(sample, );
	FINE(sample, v.n_gpus = v.n_jobs = 0);
	FINE(ack, );
	FINE(ack, (v.verdict = WW_ACK_NEWS, v.answers = (struct ww_fence){0}));
	FINE(hello, );
	FINE(command, );
	FINE(job, );
	FINE(job, (v.n_places = 0, v.weight = 0, v.tier = -1));
	FINE(event, );
	FINE(event, (v.limit_w = 1000, v.cut_frac = NAN));
	FINE(event, v.end_us = WW_NEVER_US);
	FINE(meter, );
	FINE(meter, v.power_w = ((struct ww_reading){NAN, 0, WW_READING_TIMEOUT}));
}

static void test_mistakes_in_readings(void **state)
{
	(void)state;
	WRONG(sample, v.gpus[1].draw_w = ((struct ww_reading){0, 0, WW_READING_LOST}), WW_ERR_RANGE,
	      "sample: GPU 1: draw_w is 0 although its status says that it is not known; give NAN");
	WRONG(sample, v.gpus[0].enforced_w.value = NAN, WW_ERR_RANGE,
	      "sample: GPU 0: enforced_w is nan although its status is known; give a status that says why");
	WRONG(sample, v.gpus[0].draw_w.value = INFINITY, WW_ERR_RANGE,
	      "sample: GPU 0: draw_w is inf although its status is known; give a status that says why");
	WRONG(sample, v.gpus[0].draw_w.value = -1, WW_ERR_RANGE, "sample: GPU 0: draw_w is -1; must be 0 or more");
	WRONG(sample, v.gpus[0].draw_w.status = 7, WW_ERR_RANGE,
	      "sample: GPU 0: draw_w has status 7; there are 0 to 6");
	WRONG(meter, v.power_w.value = NAN, WW_ERR_RANGE,
	      "meter: power_w is nan although its status is known; give a status that says why");
	WRONG(meter, v.power_w.value = 1e13f, WW_ERR_RANGE, "meter: power_w is 1e+13 W; must be at most 1e+12");
}

static void test_mistakes_in_messages_of_nodes(void **state)
{
	(void)state;
	WRONG(sample, v.from.version = 2, WW_ERR_UNSUPPORTED,
	      "sample of message version 2, known here is 1; run the same wattweir on both sides");
	WRONG(sample, v.n_gpus = 17, WW_ERR_RANGE, "sample: n_gpus is 17; must be at most 16");
	WRONG(sample, v.n_jobs = 17, WW_ERR_RANGE, "sample: n_jobs is 17; must be at most 16");
	WRONG(sample, v.gpus[1].requested_w = 0, WW_ERR_RANGE,
	      "sample: GPU 1: requested_w 0 or target_w nan is no cap; give watts above 0 or NAN");
	WRONG(sample, v.gpus[0].target_w = INFINITY, WW_ERR_RANGE,
	      "sample: GPU 0: requested_w 301 or target_w inf is no cap; give watts above 0 or NAN");
	WRONG(sample, v.gpus[0].step = 13, WW_ERR_RANGE, "sample: GPU 0: step is 13; a schedule has at most 12");
	WRONG(sample, v.gpus[0].held = 2, WW_ERR_RANGE, "sample: GPU 0: held is 2 and managed is 1; must be 0 or 1");
	WRONG(sample, v.gpus[0].managed = 2, WW_ERR_RANGE, "sample: GPU 0: held is 0 and managed is 2; must be 0 or 1");
	WRONG(sample, v.jobs[0].tps.value = -3, WW_ERR_RANGE, "sample: job 71: tps is -3; must be 0 or more");
	WRONG(sample, v.jobs[1].job = 71, WW_ERR_INVALID, "sample: job 71 stands twice; give one sum");
	WRONG(ack, v.from.version = 0, WW_ERR_UNSUPPORTED,
	      "ack of message version 0, known here is 1; run the same wattweir on both sides");
	WRONG(ack, v.verdict = 5, WW_ERR_RANGE, "ack: verdict is 5; there are 0 to 4");
	WRONG(ack, v.lapsed = 2, WW_ERR_RANGE, "ack: lapsed is 2; must be 0 or 1");
	WRONG(ack, v.verdict = WW_ACK_NEWS, WW_ERR_INVALID, "ack: news answers no command; answers must be 0, 0");
	WRONG(ack, v.n_gpus = 17, WW_ERR_RANGE, "ack: n_gpus is 17; must be at most 16");
	WRONG(ack, v.gpus[0].held = 9, WW_ERR_RANGE, "ack: GPU 0: held is 9 and managed is 1; must be 0 or 1");
}

static void test_mistakes_in_hellos(void **state)
{
	(void)state;
	WRONG(hello, v.from.version = 9, WW_ERR_UNSUPPORTED,
	      "hello of message version 9, known here is 1; run the same wattweir on both sides");
	WRONG(hello, v.n_gpus = 17, WW_ERR_RANGE, "hello: n_gpus is 17; must be at most 16");
	WRONG(hello, v.gpus[1].step = 99, WW_ERR_RANGE, "hello: GPU 1: step is 99; a schedule has at most 12");
	WRONG(hello, v.limits[1].min_w = 0, WW_ERR_RANGE,
	      "hello: GPU 1: limits 0 <= 651 <= 701 W do not hold; give min_w, default_w, max_w above 0");
	WRONG(hello, v.limits[1].default_w = NAN, WW_ERR_RANGE,
	      "hello: GPU 1: limits 201 <= nan <= 701 W do not hold; give min_w, default_w, max_w above 0");
	WRONG(hello, v.limits[1].max_w = 650, WW_ERR_RANGE,
	      "hello: GPU 1: limits 201 <= 651 <= 650 W do not hold; give min_w, default_w, max_w above 0");
	WRONG(hello, v.limits[0].max_w = INFINITY, WW_ERR_RANGE,
	      "hello: GPU 0: limits 200 <= 650 <= inf W do not hold; give min_w, default_w, max_w above 0");
	WRONG(hello, v.limits[0].recorded_w = -1, WW_ERR_RANGE,
	      "hello: GPU 0: recorded_w -1 or boot_cap_w 400 is no cap; give watts above 0 or NAN");
	WRONG(hello, v.limits[0].boot_cap_w = 199, WW_ERR_RANGE,
	      "hello: GPU 0: boot_cap_w 199 is not within 200..700 W");
	WRONG(hello, v.limits[0].boot_cap_w = 701, WW_ERR_RANGE,
	      "hello: GPU 0: boot_cap_w 701 is not within 200..700 W");
}

static void test_mistakes_in_commands(void **state)
{
	(void)state;
	WRONG(command, v.valid_for_us = 0, WW_ERR_RANGE, "command: valid_for_us is 0; must be above 0");
	WRONG(command, v.valid_for_us = -1, WW_ERR_RANGE, "command: valid_for_us is -1 us; give 0 to 400 days");
	WRONG(command, v.spread_us = 401 * DAY_US, WW_ERR_RANGE,
	      "command: spread_us is 34646400000000 us; give 0 to 400 days");
	WRONG(command, v.after = 3, WW_ERR_RANGE, "command: after is 3 and release_ok is 1; must be 0..2 and 0..1");
	WRONG(command, v.release_ok = 2, WW_ERR_RANGE,
	      "command: after is 1 and release_ok is 2; must be 0..2 and 0..1");
	WRONG(command, v.n_gpus = 0, WW_ERR_RANGE, "command: n_gpus is 0; must be 1..16");
	WRONG(command, v.n_gpus = 17, WW_ERR_RANGE, "command: n_gpus is 17; must be 1..16");
	WRONG(command, v.n_steps = 0, WW_ERR_RANGE, "command: n_steps is 0; must be 1..12");
	WRONG(command, v.n_steps = 13, WW_ERR_RANGE, "command: n_steps is 13; must be 1..12");
	WRONG(command, v.step[0].in_us = 1, WW_ERR_INVALID, "command: its first step is in 1 us; must be now, 0");
	WRONG(command, v.step[2].in_us = 600, WW_ERR_INVALID,
	      "command: step 2 is not after the step before it; in_us must rise");
	WRONG(command, v.step[1].in_us = -1, WW_ERR_INVALID,
	      "command: step 1 is not after the step before it; in_us must rise");
	WRONG(command, v.step[2].in_us = WW_NEVER_US, WW_ERR_RANGE,
	      "command: in_us of a step is 9223372036854775807 us; give 0 to 400 days");
	WRONG(command, v.step[2].cap_w[1] = 0, WW_ERR_RANGE,
	      "command: GPU 1: cap_w 0 is no cap; give watts above 0 or NAN");
	WRONG(command, v.step[0].cap_w[0] = INFINITY, WW_ERR_RANGE,
	      "command: GPU 0: cap_w inf is no cap; give watts above 0 or NAN");
	WRONG(command, v.failcap_w[1] = -205, WW_ERR_RANGE,
	      "command: GPU 1: failcap_w -205 is no cap; give watts above 0 or NAN");
}

static void test_mistakes_in_jobs(void **state)
{
	(void)state;
	WRONG(job, memset(v.name, 'x', sizeof v.name), WW_ERR_INVALID,
	      "name of a job does not end; give at most 63 bytes");
	WRONG(job, v.name[0] = '\n', WW_ERR_INVALID,
	      "name of a job '?lama-\xC3\xA9' is not plain UTF-8; leave out control characters and other encodings");
	WRONG(job, (v.name[0] = '\xC3', v.n_places = 0), WW_ERR_INVALID,
	      "name of a job '?lama-\xC3\xA9' is not plain UTF-8; leave out control characters and other encodings");
	WRONG(job, v.tier = 4, WW_ERR_RANGE, "job 'llama-\xC3\xA9': tier is 4; must be 0..3");
	WRONG(job, v.tier = -1, WW_ERR_RANGE, "job 'llama-\xC3\xA9': tier is -1; must be 0..3");
	WRONG(job, v.floor_frac = 1.1, WW_ERR_RANGE, "job 'llama-\xC3\xA9': floor_frac is 1.1; must be in 0..1");
	WRONG(job, v.floor_frac = NAN, WW_ERR_RANGE, "job 'llama-\xC3\xA9': floor_frac is nan; must be in 0..1");
	WRONG(job, v.weight = 0, WW_ERR_RANGE, "job 'llama-\xC3\xA9': weight is 0; must be above 0");
	WRONG(job, v.weight = INFINITY, WW_ERR_RANGE, "job 'llama-\xC3\xA9': weight is inf; must be above 0");
	WRONG(job, v.n_places = 1025, WW_ERR_RANGE, "job 'llama-\xC3\xA9': n_places is 1025; must be at most 1024");
	WRONG(job, v.places[0].gpus = 0, WW_ERR_RANGE,
	      "job 'llama-\xC3\xA9': node 3e: its GPUs are bits 0x0; give some of 16");
	WRONG(job, v.places[1].gpus = 0x10000, WW_ERR_RANGE,
	      "job 'llama-\xC3\xA9': node 3f: its GPUs are bits 0x10000; give some of 16");
	WRONG(job, v.places[1].node = 62, WW_ERR_INVALID,
	      "job 'llama-\xC3\xA9': node 3e stands twice; give all its GPUs at once");
}

static void test_mistakes_in_curves(void **state)
{
	(void)state;
	WRONG(job, v.curve.n = 1, WW_ERR_RANGE, "job 'llama-\xC3\xA9': its curve has 1 knots; must be 2..16");
	WRONG(job, v.curve.n = 17, WW_ERR_RANGE, "job 'llama-\xC3\xA9': its curve has 17 knots; must be 2..16");
	WRONG(job, v.curve.p0_w = 0, WW_ERR_RANGE,
	      "job 'llama-\xC3\xA9': baseline of its curve is 0 W, 12000 tokens/s; must be above 0");
	WRONG(job, v.curve.t0_tps = INFINITY, WW_ERR_RANGE,
	      "job 'llama-\xC3\xA9': baseline of its curve is 640 W, inf tokens/s; must be above 0");
	WRONG(job, v.curve.max_cut_frac = 1.5, WW_ERR_RANGE,
	      "job 'llama-\xC3\xA9': max_cut_frac of its curve is 1.5; must be in 0..1");
	WRONG(job, v.curve.var_a = -1, WW_ERR_RANGE,
	      "job 'llama-\xC3\xA9': variances of its curve must be known, 0 or more");
	WRONG(job, v.curve.cov_ab = NAN, WW_ERR_RANGE,
	      "job 'llama-\xC3\xA9': variances of its curve must be known, 0 or more");
	WRONG(job, v.curve.status = 9, WW_ERR_RANGE,
	      "job 'llama-\xC3\xA9': status of its curve is 9; there are 0 to 3");
	WRONG(job, v.curve.k[0].cut_frac = 0.1, WW_ERR_RANGE,
	      "job 'llama-\xC3\xA9': its curve must start at cut 0, loss 0, slope 0 or more");
	WRONG(job, v.curve.k[2].cut_frac = 0.2, WW_ERR_RANGE,
	      "job 'llama-\xC3\xA9': cut and slope of its curve must rise from knot to knot");
	WRONG(job, v.curve.k[2].slope = NAN, WW_ERR_RANGE,
	      "job 'llama-\xC3\xA9': cut and slope of its curve must rise from knot to knot");
	WRONG(job, v.curve.k[2].loss_frac = 0.6, WW_ERR_INVALID,
	      "job 'llama-\xC3\xA9': losses of its curve do not follow from its slopes");
}

static void test_mistakes_in_events(void **state)
{
	(void)state;
	WRONG(event, v.end_us = -84, WW_ERR_RANGE, "event 81: ends before it starts; give an end after the start");
	WRONG(event, v.start_us = INT64_MIN, WW_ERR_RANGE,
	      "event 81: starts at -9223372036854775808 us and ends at 85 us; give times in UTC");
	WRONG(event, v.end_us = WW_NEVER_US - 1, WW_ERR_RANGE,
	      "event 81: starts at -84 us and ends at 9223372036854775806 us; give times in UTC");
	WRONG(event, v.ramp_down_us = -1, WW_ERR_RANGE, "event: ramp_down_us is -1 us; give 0 to 400 days");
	WRONG(event, v.ramp_up_us = WW_NEVER_US, WW_ERR_RANGE,
	      "event: ramp_up_us is 9223372036854775807 us; give 0 to 400 days");
	WRONG(event, v.boundary = 3, WW_ERR_RANGE, "event 81: boundary is 3 and class is 1; must be 0..2 and 0..1");
	WRONG(event, v.cls = 2, WW_ERR_RANGE, "event 81: boundary is 2 and class is 2; must be 0..2 and 0..1");
	WRONG(event, v.limit_w = -1, WW_ERR_RANGE, "event 81: limit_w is -1; give 0 or more watts, or NAN and a cut");
	WRONG(event, v.limit_w = INFINITY, WW_ERR_RANGE,
	      "event 81: limit_w is inf; give 0 or more watts, or NAN and a cut");
	WRONG(event, v.cut_frac = 1.01, WW_ERR_RANGE, "event 81: cut_frac is 1.01; must be in 0..1");
	WRONG(event, v.cut_frac = NAN, WW_ERR_RANGE, "event 81: cut_frac is nan; must be in 0..1");
	WRONG(event, (v.limit_w = 5, v.cut_frac = -INFINITY), WW_ERR_RANGE,
	      "event 81: cut_frac is -inf; must be in 0..1");
}

#define WRONG_CONFIG(change, code, text)                                                                               \
	do {                                                                                                           \
		struct ww_row rows[2];                                                                                 \
		struct ww_node_config nodes[2];                                                                        \
		struct ww_config v = good_config(rows, nodes);                                                         \
		struct ww_error err = {WW_OK, ""};                                                                     \
		change;                                                                                                \
		ww_status status = ww_check_config(&v, &err);                                                          \
		assert_line(status, &err, code, text, __LINE__);                                                       \
	} while (0)

static void test_configurations(void **state)
{
	(void)state;
	WRONG_CONFIG(, WW_OK, "");
	WRONG_CONFIG((v.n_rows = 0, v.n_nodes = 0), WW_OK, "");
	WRONG_CONFIG(v.valid_for_us = 0, WW_ERR_RANGE, "configuration: valid_for_us is 0; must be above 0");
	WRONG_CONFIG(v.settle_us = -1, WW_ERR_RANGE, "configuration: settle_us is -1 us; give 0 to 400 days");
	WRONG_CONFIG(v.objective = 4, WW_ERR_RANGE,
	             "configuration: objective is 4 and after is 2; must be 0..3 and 0..2");
	WRONG_CONFIG(v.after = 3, WW_ERR_RANGE, "configuration: objective is 3 and after is 3; must be 0..3 and 0..2");
	WRONG_CONFIG(v.trim = 2, WW_ERR_RANGE, "configuration: trim is 2; must be 0..1");
	WRONG_CONFIG(v.n_rows = 65537, WW_ERR_RANGE,
	             "configuration: has 65537 rows and 2 nodes; must be at most 65536 and 65536");
	WRONG_CONFIG(rows[1].id = 101, WW_ERR_INVALID, "configuration: two rows have the id 65; ids must differ");
	WRONG_CONFIG(nodes[1].id = 111, WW_ERR_INVALID, "configuration: two nodes have the id 6f; ids must differ");
	WRONG_CONFIG(nodes[1].id = 101, WW_OK, ""); /* of a row */
}

static void test_mistakes_in_rows(void **state)
{
	(void)state;
	WRONG_CONFIG(rows[0].name[1] = '\x7F', WW_ERR_INVALID,
	             "name of a row 's?te' is not plain UTF-8; leave out control characters and other encodings");
	WRONG_CONFIG(rows[0].limit_w = 0, WW_ERR_RANGE,
	             "row 'site': limit_w is 0; must be above 0, or INFINITY for none");
	WRONG_CONFIG(rows[0].limit_w = NAN, WW_ERR_RANGE,
	             "row 'site': limit_w is nan; must be above 0, or INFINITY for none");
	WRONG_CONFIG(rows[0].boundary = 3, WW_ERR_RANGE,
	             "row 'site': boundary is 3 and meter_boundary is 1; must be 0..2");
	WRONG_CONFIG(rows[0].meter_boundary = 3, WW_ERR_RANGE,
	             "row 'site': boundary is 2 and meter_boundary is 3; must be 0..2");
	WRONG_CONFIG(rows[0].fixed_w[1] = -1, WW_ERR_RANGE,
	             "row 'site': fixed_w -1 and follow 0.1 at 'it'; give 0 or more watts and 0..100");
	WRONG_CONFIG(rows[0].follow[2] = NAN, WW_ERR_RANGE,
	             "row 'site': fixed_w 2000 and follow nan at 'meter'; give 0 or more watts and 0..100");
	WRONG_CONFIG(rows[0].fixed_w[0] = 1, WW_ERR_RANGE, "row 'site': fixed_w and follow at 'gpu' must be 0");
	WRONG_CONFIG(rows[0].guard_frac = 1, WW_ERR_RANGE, "row 'site': guard_frac is 1; must be in 0..1 and below 1");
	WRONG_CONFIG(rows[0].guard_frac = NAN, WW_ERR_RANGE,
	             "row 'site': guard_frac is nan; must be in 0..1 and below 1");
}

static void test_mistakes_in_nodes(void **state)
{
	(void)state;
	WRONG_CONFIG(memset(nodes[0].name, 'n', WW_NAME_MAX), WW_ERR_INVALID,
	             "name of a node does not end; give at most 63 bytes");
	WRONG_CONFIG(nodes[0].n_gpus = 0, WW_ERR_RANGE, "node 'node-1': n_gpus is 0; must be 1..16");
	WRONG_CONFIG(nodes[0].n_gpus = 17, WW_ERR_RANGE, "node 'node-1': n_gpus is 17; must be 1..16");
	WRONG_CONFIG(nodes[0].default_w = 199, WW_ERR_RANGE,
	             "node 'node-1': limits 200 <= 199 <= 700 W do not hold; give min_w, default_w, max_w above 0");
	WRONG_CONFIG(nodes[0].max_w = NAN, WW_ERR_RANGE,
	             "node 'node-1': limits 200 <= 650 <= nan W do not hold; give min_w, default_w, max_w above 0");
	WRONG_CONFIG(nodes[0].boot_cap_w = 100, WW_ERR_RANGE, "node 'node-1': boot_cap_w 100 is not within 200..700 W");
	WRONG_CONFIG(nodes[0].shortest_boot_us = -1, WW_ERR_RANGE,
	             "shortest_boot_us of a node is -1 us; give 0 to 400 days");
	WRONG_CONFIG(nodes[0].n_loads = 13, WW_ERR_RANGE, "node 'node-1': n_loads is 13; must be at most 12");
	WRONG_CONFIG(nodes[0].loads[1].row = 2, WW_ERR_RANGE,
	             "node 'node-1': loads row 2; there are 2, counted from 0");
	WRONG_CONFIG(nodes[0].loads[1].row = 0, WW_ERR_INVALID, "node 'node-1': loads row 0 twice; give one sum");
	WRONG_CONFIG(nodes[0].loads[1].frac = 0, WW_ERR_RANGE,
	             "node 'node-1': loads row 1 by 0; must be above 0, at most 1");
	WRONG_CONFIG(nodes[0].loads[1].frac = 1.5F, WW_ERR_RANGE,
	             "node 'node-1': loads row 1 by 1.5; must be above 0, at most 1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sound_messages_pass),
		cmocka_unit_test(test_mistakes_in_readings),
		cmocka_unit_test(test_mistakes_in_messages_of_nodes),
		cmocka_unit_test(test_mistakes_in_hellos),
		cmocka_unit_test(test_mistakes_in_commands),
		cmocka_unit_test(test_mistakes_in_jobs),
		cmocka_unit_test(test_mistakes_in_curves),
		cmocka_unit_test(test_mistakes_in_events),
		cmocka_unit_test(test_configurations),
		cmocka_unit_test(test_mistakes_in_rows),
		cmocka_unit_test(test_mistakes_in_nodes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
