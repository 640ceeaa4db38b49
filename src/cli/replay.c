/* SPDX-License-Identifier: Apache-2.0 */
/* wattweir replay: goes through a journal again and compares every decision byte for byte. */
#include "cli/cli_internal.h"
#include "control/control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct replay {
	const char *who;
	struct ww_journal journal;
	ww_control *brain;
	struct ww_input_room *room;
	const struct ww_decision *decision; /* of a step that is to be compared by the next frame */
	struct ww_buf bytes;
	size_t n_inputs, n_decisions;
	bool differs;
};

/* ---- A difference ------------------------------------------------------------------------------------------------------- */

/* The part of a decision that holds a byte of its encoding: each is as long as its absence shortens the whole. */
static const char *part_at(const struct ww_decision *decision, size_t n, size_t at)
{
	static const char *const names[] = {"commands", "rows", "GPUs", "jobs", "events"};
	size_t sizes[5], end = n;
	for (size_t i = 0; i < 5; i++) {
		struct ww_decision without = *decision;
		uint32_t *counts[] = {&without.n_commands, &without.n_rows, &without.n_nodes, &without.n_jobs,
		                      &without.n_events};
		struct ww_buf buf = {0};
		*counts[i] = 0;
		ww_decision_encode(&without, &buf);
		sizes[i] = n - buf.n + sizeof(uint32_t);
		ww_buf_finish(&buf);
	}
	for (size_t i = 5; i-- > 0;) {
		end -= sizes[i];
		if (at >= end)
			return names[i];
	}
	return "number, time and flags";
}

static void tell_difference(struct replay *r, const struct ww_frame *frame)
{
	const struct ww_buf *now = &r->bytes;
	size_t at = 0, least = frame->n < now->n ? frame->n : now->n;
	while (at < least && frame->bytes[at] == now->bytes[at])
		at++;
	time_t wall_s = (time_t)(r->decision->at.wall_us / WW_SECOND_US);
	struct tm utc;
	char when[64];
	if (!gmtime_r(&wall_s, &utc) || strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &utc) == 0)
		snprintf(when, sizeof when, "?");
	printf("%s: frame %llu: decision %llu, %s.%03d UTC, is another one: from byte %zu on (recorded %zu bytes, now "
	       "%zu), in its %s\n",
	       r->journal.name, (unsigned long long)frame->number, (unsigned long long)r->decision->seq, when,
	       (int)(r->decision->at.wall_us % WW_SECOND_US / 1000), at, frame->n, now->n,
	       part_at(r->decision, now->n, at));
}

/* ---- Frames ---------------------------------------------------------------------------------------------------------------- */

static ww_status out_of_order(const char *what, struct ww_error *err)
{
	return ww_fail(err, WW_ERR_INVALID, "%s; use another copy", what);
}

static ww_status take_state(struct replay *r, const struct ww_frame *frame, struct ww_error *err)
{
	struct ww_buf state = {.bytes = (uint8_t *)frame->bytes, .n = frame->n, .room = frame->n};
	ww_control_destroy(r->brain);
	r->brain = NULL;
	r->decision = NULL;
	ww_status status = ww_control_create(&r->brain, err);
	return status ? status : ww_control_load(r->brain, &state, err);
}

static ww_status take_input(struct replay *r, const struct ww_frame *frame, struct ww_error *err)
{
	struct ww_read read = {.bytes = frame->bytes, .n = frame->n};
	struct ww_input input;
	ww_status status = ww_input_decode(&read, r->room, &input, err);
	if (status)
		return status;
	r->n_inputs++;
	return ww_control_put(r->brain, &input, err);
}

static ww_status compare(struct replay *r, const struct ww_frame *frame, struct ww_error *err)
{
	if (!r->decision)
		return out_of_order("is a decision without its step", err);
	ww_buf_clear(&r->bytes);
	ww_decision_encode(r->decision, &r->bytes);
	if (r->bytes.failed)
		return ww_fail(err, WW_ERR_NOMEM, "out of memory");
	r->n_decisions++;
	r->differs = r->bytes.n != frame->n || memcmp(r->bytes.bytes, frame->bytes, frame->n) != 0;
	if (r->differs)
		tell_difference(r, frame);
	r->decision = NULL;
	return WW_OK;
}

static ww_status take(struct replay *r, const struct ww_frame *frame, struct ww_error *err)
{
	if (r->decision && frame->kind != WW_FRAME_DECISION)
		return out_of_order("comes in place of the decision of the step before it", err);
	if (frame->kind == WW_FRAME_END)
		return WW_OK;
	if (frame->kind == WW_FRAME_STATE)
		return take_state(r, frame, err);
	if (!r->brain)
		return out_of_order("comes before any state", err);
	switch (frame->kind) {
	case WW_FRAME_INPUT:
		return take_input(r, frame, err);
	case WW_FRAME_STEP:
		r->decision = ww_control_step(r->brain, frame->now);
		return WW_OK;
	default:
		return compare(r, frame, err);
	}
}

static ww_status without_end(const struct replay *r, const char *name, struct ww_error *err)
{
	char same[WW_TEXT_NUMBER], frames[WW_TEXT_NUMBER];
	return ww_fail(err, WW_ERR_NO_DATA,
	               "%s: ends after %s frame%s without an end: it was cut short or its writer was stopped; %s%s",
	               name, ww_text_thousands((double)r->journal.n_frames, frames),
	               r->journal.n_frames == 1 ? "" : "s",
	               r->n_decisions ? "decisions compared until there, all the same: " : "it holds no decision",
	               r->n_decisions ? ww_text_thousands((double)r->n_decisions, same) : "");
}

/* What was compared stays true of a journal that is damaged behind it. */
static void add_compared(const struct replay *r, struct ww_error *err)
{
	size_t used = strlen(err->text);
	char same[WW_TEXT_NUMBER];
	if (r->n_decisions > 0)
		snprintf(err->text + used, sizeof err->text - used,
		         "; decisions compared until there, all the same: %s",
		         ww_text_thousands((double)r->n_decisions, same));
}

static ww_status replay_all(struct replay *r, FILE *in, const char *name, struct ww_error *err)
{
	struct ww_frame frame = {.kind = WW_FRAME_STATE};
	ww_status status = ww_journal_open(in, name, &r->journal, err);
	while (!status && !r->differs) {
		status = ww_journal_next(&r->journal, &frame, err);
		if (status)
			add_compared(r, err);
		if (status || frame.kind == WW_FRAME_NONE)
			break;
		struct ww_error cause = {0};
		status = take(r, &frame, &cause);
		if (status)
			ww_fail(err, status, "%s: frame %llu: %s", name, (unsigned long long)frame.number, cause.text);
	}
	if (status || r->differs)
		return status;
	if (!r->journal.ended)
		return without_end(r, name, err);
	if (r->n_decisions == 0)
		return ww_fail(err, WW_ERR_NO_DATA, "%s: holds no decision to compare; give a longer journal", name);
	return WW_OK;
}

/* ---- The command ----------------------------------------------------------------------------------------------------------- */

static int report(struct replay *r, FILE *in, const char *name)
{
	struct ww_error err = {0};
	char inputs[WW_TEXT_NUMBER], decisions[WW_TEXT_NUMBER];
	if (replay_all(r, in, name, &err)) {
		ww_complain(r->who, "%s", err.text);
		return WW_EXIT_FAILED;
	}
	if (r->differs)
		return WW_EXIT_ATTENTION;
	printf("%s inputs, %s decisions, all the same\n", ww_text_thousands((double)r->n_inputs, inputs),
	       ww_text_thousands((double)r->n_decisions, decisions));
	return WW_EXIT_OK;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	const char **path = state->input;
	switch (key) {
	case ARGP_KEY_INIT:
		ww_args_quiet(state);
		return 0;
	case ARGP_KEY_ARG:
		if (*path) {
			ww_complain(state->argv[0], "one journal at a time; '%s' is a second one", arg);
			return EINVAL;
		}
		*path = arg;
		return 0;
	case ARGP_KEY_NO_ARGS:
		ww_complain(state->argv[0], "no FILE given; see '%s --help'", state->argv[0]);
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp command = {
	.parser = parse,
	.args_doc = "FILE",
	.doc = "Goes through a journal again: the saved state in it is loaded, the inputs are put and the steps made, "
	       "and "
	       "every decision is compared with the recorded one, byte for byte. FILE may be '-' for standard input.\v"
	       "Exit status: 0 all the same, 1 failed, also where the journal has no end, 2 wrong usage, "
	       "3 a decision is another one.\n\n"
	       "Example:\n"
	       "  wattweir simulate scenarios/demo.yaml --journal - | wattweir replay -\n",
};

int ww_cmd_replay(int argc, char **argv)
{
	const char *path = NULL;
	if (!ww_args_parse(&command, 0, argc, argv, &path))
		return WW_EXIT_USAGE;
	bool from_stdin = strcmp(path, "-") == 0;
	FILE *in = from_stdin ? stdin : fopen(path, "rb");
	if (!in) {
		ww_complain(argv[0], "cannot read '%s': %s", path, strerror(errno));
		return WW_EXIT_FAILED;
	}
	struct replay r = {.who = argv[0], .room = ww_input_room_create()};
	if (!r.room)
		ww_complain(argv[0], "out of memory");
	int exit_code = r.room ? report(&r, in, from_stdin ? "standard input" : path) : WW_EXIT_FAILED;
	ww_control_destroy(r.brain);
	ww_input_room_destroy(r.room);
	ww_buf_finish(&r.bytes);
	ww_journal_finish(&r.journal);
	if (!from_stdin)
		(void)fclose(in);
	return exit_code;
}
