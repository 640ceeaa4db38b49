/* SPDX-License-Identifier: Apache-2.0 */
#include "messages.h"

#include "control/control.h"

#include <string.h>

struct all {
	struct ww_row rows[2];
	struct ww_node_config nodes[2];
	struct ww_config config;
	struct ww_leader leader;
	struct ww_sample sample;
	struct ww_ack ack;
	struct ww_hello hello;
	struct ww_job job;
	struct ww_event event;
	struct ww_meter meter;
	struct ww_input inputs[WW_N_INPUT_KINDS]; /* one of each kind, in the order of kinds */
};

static void fill(struct all *a)
{
	a->config = good_config(a->rows, a->nodes);
	a->leader = good_leader();
	a->sample = good_sample();
	a->ack = good_ack();
	a->hello = good_hello();
	a->job = good_job();
	a->event = good_event();
	a->meter = good_meter();
	for (int kind = 0; kind < WW_N_INPUT_KINDS; kind++)
		a->inputs[kind] = (struct ww_input){{-1 - kind, 1000 + kind}, 100 + (uint64_t)kind, kind, {NULL}};
	a->inputs[WW_INPUT_CONFIG].u.config = &a->config;
	a->inputs[WW_INPUT_LEADER].u.leader = &a->leader;
	a->inputs[WW_INPUT_SAMPLE].u.sample = &a->sample;
	a->inputs[WW_INPUT_ACK].u.ack = &a->ack;
	a->inputs[WW_INPUT_HELLO].u.hello = &a->hello;
	a->inputs[WW_INPUT_JOB].u.job = &a->job;
	a->inputs[WW_INPUT_EVENT].u.event = &a->event;
	a->inputs[WW_INPUT_METER].u.meter = &a->meter;
	a->inputs[WW_INPUT_SAVED].u.saved = 77;
	a->inputs[WW_INPUT_DIVISION].u.division = WW_DIVISION_EQUAL;
	a->inputs[WW_INPUT_MODE].u.mode = WW_MODE_DISENGAGE;
}

static void encode(const struct ww_input *input, struct ww_buf *buf)
{
	assert_int_equal(ww_input_encode(input, buf), WW_OK);
}

static void assert_payload(const struct ww_input *in, const struct ww_input *out)
{
	switch (in->kind) {
	case WW_INPUT_CONFIG:
		assert_int_equal(out->u.config->cluster, in->u.config->cluster);
		assert_int_equal(out->u.config->nodes[1].id, in->u.config->nodes[1].id);
		break;
	case WW_INPUT_LEADER:
		assert_int_equal(out->u.leader->epoch, in->u.leader->epoch);
		break;
	case WW_INPUT_SAMPLE:
		assert_int_equal(out->u.sample->jobs[1].job, in->u.sample->jobs[1].job);
		break;
	case WW_INPUT_ACK:
		assert_int_equal(out->u.ack->answers.seq, in->u.ack->answers.seq);
		break;
	case WW_INPUT_HELLO:
		assert_int_equal(out->u.hello->limits[1].uuid, in->u.hello->limits[1].uuid);
		break;
	case WW_INPUT_JOB:
		assert_int_equal(out->u.job->places[1].node, in->u.job->places[1].node);
		break;
	case WW_INPUT_EVENT:
		assert_int_equal(out->u.event->ramp_up_us, in->u.event->ramp_up_us);
		break;
	case WW_INPUT_METER:
		assert_int_equal(out->u.meter->row, in->u.meter->row);
		break;
	case WW_INPUT_SAVED:
		assert_int_equal(out->u.saved, in->u.saved);
		break;
	case WW_INPUT_DIVISION:
		assert_int_equal(out->u.division, in->u.division);
		break;
	case WW_INPUT_MODE:
		assert_int_equal(out->u.mode, in->u.mode);
		break;
	case WW_N_INPUT_KINDS:
		fail();
	}
}

/* All kinds in one text, read one after the other with one room. */
static void test_every_kind_comes_through(void **state)
{
	static struct all all;
	struct ww_buf buf = {0}, again = {0};
	struct ww_input_room *room = ww_input_room_create();
	struct ww_input out;
	(void)state;
	fill(&all);
	for (int round = 0; round < 2; round++)
		for (int kind = 0; kind < WW_N_INPUT_KINDS; kind++)
			encode(&all.inputs[kind], &buf);
	struct ww_read read = {buf.bytes, buf.n, 0, false};
	for (int i = 0; i < 2 * WW_N_INPUT_KINDS; i++) {
		const struct ww_input *in = &all.inputs[i % WW_N_INPUT_KINDS];
		assert_int_equal(ww_input_decode(&read, room, &out, NULL), WW_OK);
		assert_int_equal(out.kind, in->kind);
		assert_int_equal(out.at.mono_us, in->at.mono_us);
		assert_int_equal(out.at.wall_us, in->at.wall_us);
		assert_int_equal(out.seq, in->seq);
		assert_payload(in, &out);
		encode(&out, &again);
	}
	assert_int_equal(read.at, buf.n);
	assert_int_equal(again.n, buf.n);
	assert_memory_equal(again.bytes, buf.bytes, buf.n);
	ww_buf_finish(&buf);
	ww_buf_finish(&again);
	ww_input_room_destroy(room);
	ww_input_room_destroy(NULL);
}

static void test_inputs_that_break_their_form_are_not_encoded(void **state)
{
	static struct all all;
	struct ww_buf buf = {0};
	(void)state;
	fill(&all);
	all.sample.n_gpus = 17;
	assert_int_equal(ww_input_encode(&all.inputs[WW_INPUT_SAMPLE], &buf), WW_ERR_RANGE);
	all.job.curve.n = 17;
	assert_int_equal(ww_input_encode(&all.inputs[WW_INPUT_JOB], &buf), WW_ERR_RANGE);
	all.inputs[WW_INPUT_DIVISION].u.division = WW_N_DIVISIONS;
	assert_int_equal(ww_input_encode(&all.inputs[WW_INPUT_DIVISION], &buf), WW_ERR_RANGE);
	all.inputs[WW_INPUT_MODE].u.mode = WW_N_MODES;
	assert_int_equal(ww_input_encode(&all.inputs[WW_INPUT_MODE], &buf), WW_ERR_RANGE);
	all.inputs[0].kind = WW_N_INPUT_KINDS;
	assert_int_equal(ww_input_encode(&all.inputs[0], &buf), WW_ERR_INVALID);
	assert_int_equal(buf.n, 0);
	ww_buf_finish(&buf);
}

static void assert_refused(const uint8_t *bytes, size_t n, const char *expected)
{
	struct ww_input_room *room = ww_input_room_create();
	struct ww_read read = {bytes, n, 0, false};
	struct ww_input out;
	struct ww_error err;
	assert_int_equal(ww_input_decode(&read, room, &out, &err), WW_ERR_INVALID);
	assert_string_equal(err.text, expected);
	ww_input_room_destroy(room);
}

static void test_damaged_inputs_are_refused(void **state)
{
	static const char *const names[WW_N_INPUT_KINDS] = {"configuration", "leader",   "sample", "ack",
	                                                    "hello",         "job",      "event",  "meter",
	                                                    "saved",         "division", "mode"};
	static struct all all;
	struct ww_buf buf = {0};
	char expected[200];
	(void)state;
	fill(&all);
	for (int kind = 0; kind < WW_N_INPUT_KINDS; kind++) {
		ww_buf_clear(&buf);
		encode(&all.inputs[kind], &buf);
		snprintf(expected, sizeof expected,
		         "input at byte 0: its %s is damaged or of another version; read it with the wattweir that "
		         "wrote it",
		         names[kind]);
		assert_refused(buf.bytes, buf.n - 1, expected);
		assert_refused(buf.bytes, 1, expected);
	}
	buf.bytes[buf.n - 1] = WW_N_DIVISIONS;
	assert_refused(buf.bytes, buf.n, expected);
	static const char no_kind[] =
		"input at byte 0: is of no kind known here; read it with the wattweir that wrote it";
	buf.bytes[0] = WW_N_INPUT_KINDS;
	assert_refused(buf.bytes, buf.n, no_kind);
	assert_refused(buf.bytes, 0, no_kind);
	ww_buf_finish(&buf);
}

/* ---- Jobs and the allocator ------------------------------------------------------------------------------------------ */

static double odd_number(struct ww_rng *rng, double v)
{
	const double odd[] = {0, -1, 1, NAN, INFINITY, 1e-31, 1e31, 1e13, 1.5, -v, v * 0.5, v * 2, v * (1 + 1e-9)};
	return odd[ww_rng_below(rng, sizeof odd / sizeof *odd)];
}

static struct ww_job odd_job(struct ww_rng *rng)
{
	struct ww_job job = good_job();
	struct ww_curve *c = &job.curve;
	double *fields[] = {&job.floor_frac,   &job.weight,        &c->p0_w,           &c->t0_tps,
	                    &c->max_cut_frac,  &c->var_a,          &c->var_b,          &c->cov_ab,
	                    &c->k[0].slope,    &c->k[0].cut_frac,  &c->k[0].loss_frac, &c->k[1].slope,
	                    &c->k[1].cut_frac, &c->k[1].loss_frac, &c->k[2].slope,     &c->k[2].cut_frac,
	                    &c->k[2].loss_frac};
	for (uint32_t changes = ww_rng_below(rng, 3); changes > 0; changes--) {
		double *field = fields[ww_rng_below(rng, sizeof fields / sizeof *fields)];
		*field = odd_number(rng, *field);
	}
	if (ww_rng_below(rng, 8) == 0)
		c->n = ww_rng_below(rng, 4);
	if (ww_rng_below(rng, 8) == 0)
		job.tier = (int32_t)ww_rng_below(rng, 6) - 1;
	return job;
}

/* One job that the allocator refuses would end the division of all. */
static void test_the_allocator_takes_what_passes(void **state)
{
	struct ww_rng rng;
	ww_alloc *alloc = NULL;
	unsigned taken = 0, refused = 0;
	(void)state;
	ww_rng_seed(&rng, 1);
	assert_int_equal(ww_alloc_create(&alloc, NULL), WW_OK);
	for (int i = 0; i < 20000; i++) {
		struct ww_job job = odd_job(&rng);
		struct ww_alloc_job one = {.id = 1,
		                           .gpus = 8,
		                           .tier = job.tier,
		                           .weight = job.weight,
		                           .floor_frac = job.floor_frac,
		                           .min_w = 200,
		                           .max_w = 700,
		                           .curve = &job.curve};
		struct ww_alloc_problem problem = {.jobs = &one, .n_jobs = 1, .budget_w = 3000};
		bool passes = ww_check_job(&job, NULL) == WW_OK;
		assert_int_equal(ww_alloc_set(alloc, &problem, NULL) == WW_OK, passes);
		taken += passes;
		refused += !passes;
	}
	assert_true(taken > 5000 && refused > 5000);
	ww_alloc_destroy(alloc);
}

/* ---- Decisions ----------------------------------------------------------------------------------------------------- */

struct decided {
	struct ww_command commands[2];
	bool needs_save[2];
	struct ww_row_decision rows[2];
	uint32_t first_gpu[3];
	struct ww_gpu_decision gpus[3];
	struct ww_job_decision jobs[2];
	struct ww_event_decision events[2];
	struct ww_decision d;
};

static void decide(struct decided *x)
{
	*x = (struct decided){
		.commands = {good_command(), good_command()},
		.needs_save = {true, false},
		.rows = {{1000, 1, 2, 3, 4, 5, 6, 7}, {INFINITY, 2, 12, 13, 14, 15, 16, NAN}},
		.first_gpu = {0, 2, 3},
		.gpus = {{1, 2, 3, 0, 4}, {5, NAN, 7, -1, 8}, {9, 10, 11, 2, 12}},
		.jobs = {{1, 2, 3, 4, 5, 6, 7, 8}, {11, 12, 13, 14, 15, 16, 17, NAN}},
		.events = {{1, 2, false, NAN, 3, 4, 5}, {6, 1, true, 8, 0.5, 9, NAN}},
		.d = {.seq = 1,
	              .at = {2, 3},
	              .leads = true,
	              .save = false,
	              .n_commands = 2,
	              .n_rows = 2,
	              .n_nodes = 2,
	              .n_jobs = 2,
	              .n_events = 2},
	};
	x->d.commands = x->commands;
	x->d.needs_save = x->needs_save;
	x->d.rows = x->rows;
	x->d.first_gpu = x->first_gpu;
	x->d.gpus = x->gpus;
	x->d.jobs = x->jobs;
	x->d.events = x->events;
}

/* After `change` the bytes are others. */
#define SEEN(change)                                                                                                   \
	do {                                                                                                           \
		struct decided x;                                                                                      \
		struct ww_buf changed = {0};                                                                           \
		decide(&x);                                                                                            \
		change;                                                                                                \
		ww_decision_encode(&x.d, &changed);                                                                    \
		assert_false(changed.n == buf.n && memcmp(changed.bytes, buf.bytes, buf.n) == 0);                      \
		ww_buf_finish(&changed);                                                                               \
	} while (0)

static void test_no_two_decisions_have_the_same_bytes(void **state)
{
	struct decided same, twin;
	struct ww_buf buf = {0}, again = {0};
	(void)state;
	decide(&same);
	decide(&twin);
	ww_decision_encode(&same.d, &buf);
	ww_decision_encode(&twin.d, &again);
	assert_int_equal(again.n, buf.n);
	assert_memory_equal(again.bytes, buf.bytes, buf.n);
	SEEN(x.d.seq++);
	SEEN(x.d.at.mono_us++);
	SEEN(x.d.at.wall_us++);
	SEEN(x.d.leads = false);
	SEEN(x.d.mode = WW_MODE_FREEZE);
	SEEN(x.d.save = true);
	SEEN(x.d.n_commands = 1);
	SEEN(x.commands[1].step[2].cap_w[1] = 1);
	SEEN(x.needs_save[1] = true);
	SEEN(x.d.n_rows = 1);
	SEEN(x.rows[1].budget_w = 1);
	SEEN(x.rows[1].boundary = 0);
	SEEN(x.rows[1].charge_w = 0);
	SEEN(x.rows[1].non_gpu_w = 0);
	SEEN(x.rows[1].guard_w = 0);
	SEEN(x.rows[1].free_w = 0);
	SEEN(x.rows[1].missing_w = 0);
	SEEN(x.rows[1].power_w = 0);
	SEEN(x.d.n_nodes = 1);
	SEEN(x.first_gpu[1] = 1);
	SEEN(x.gpus[2].charge_w = 0);
	SEEN(x.gpus[2].cap_w = 0);
	SEEN(x.gpus[2].target_w = 0);
	SEEN(x.gpus[2].trim_w = 0);
	SEEN(x.gpus[2].why = 0);
	SEEN(x.d.n_jobs = 1);
	SEEN(x.jobs[1].id = 0);
	SEEN(x.jobs[1].cut_frac = 0);
	SEEN(x.jobs[1].equal_cut_frac = 0);
	SEEN(x.jobs[1].throughput_frac = 0);
	SEEN(x.jobs[1].floor_frac = 0);
	SEEN(x.jobs[1].kept_floor_frac = 0);
	SEEN(x.jobs[1].trust = 0);
	SEEN(x.jobs[1].tps = 0);
	SEEN(x.d.n_events = 1);
	SEEN(x.events[1].id = 0);
	SEEN(x.events[1].state = 0);
	SEEN(x.events[1].let_go = false);
	SEEN(x.events[1].baseline_w = 0);
	SEEN(x.events[1].measured_frac = 0);
	SEEN(x.events[1].limit_w = 0);
	SEEN(x.events[1].missing_w = 0);
	ww_buf_finish(&buf);
	ww_buf_finish(&again);
}

static void test_a_decision_of_nothing(void **state)
{
	struct ww_decision nothing = {.seq = 1};
	struct ww_buf buf = {0};
	(void)state;
	ww_decision_encode(&nothing, &buf);
	assert_int_equal(buf.n, 27 + 5 * 4);
	ww_buf_finish(&buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_kind_comes_through),
		cmocka_unit_test(test_inputs_that_break_their_form_are_not_encoded),
		cmocka_unit_test(test_damaged_inputs_are_refused),
		cmocka_unit_test(test_the_allocator_takes_what_passes),
		cmocka_unit_test(test_no_two_decisions_have_the_same_bytes),
		cmocka_unit_test(test_a_decision_of_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
