/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node: the agent's brain. Decides what a node does with its GPUs' power limits from what it is told and what it reads;
 * it does nothing itself but asks its caller for acts. A function of (state, inputs, now): same inputs, same acts.
 *
 * It obeys the highest (epoch, seq) it has ever seen and carries that lease's schedule out alone: steps down on time, also
 * after the lease ended; steps up late by a random part of spread_us, and only while it is valid.
 */
#ifndef WW_NODE_H
#define WW_NODE_H

#include "msg/msg.h"

typedef struct ww_node ww_node;

/* Before the first write after a boot the limit found is recorded; that is the limit that `restore` means. */
struct ww_node_options {
	uint64_t cluster, node;
	uint64_t boot_id;
	uint64_t start_id; /* the caller's wall clock in us; raised above the journal's if that is not less */
	uint64_t seed;     /* of delays of steps up */
	int64_t period_us; /* of samples, readings and re-checks; 1 s is customary */
	uint32_t n_gpus;
	struct {
		uint64_t uuid;
		float min_w, max_w, default_w;
		float boot_cap_w; /* NAN: no boot unit */
	} gpus[WW_NODE_GPUS_MAX];
	bool reassert_lower; /* write our target again over a lower foreign limit; default: respect it until the cap changes */
	uint32_t fight_limit;    /* foreign limits written over within fight_window_us; 3, at most 16 */
	int64_t fight_window_us; /* 10 min */
};

/* A journal from an earlier start may be empty. One that is damaged or of another node is refused: WW_ERR_INVALID, as are
 * UUIDs that stand twice. WW_ERR_RANGE names an option. */
ww_status ww_node_create(const struct ww_node_options *options, const void *journal, size_t journal_bytes,
                         ww_node **out, struct ww_error *err) WW_MUST_CHECK;
void ww_node_destroy(ww_node *node);

/* Words of the local veto file. */
enum ww_veto {
	WW_VETO_NONE = 0,
	WW_VETO_FREEZE,   /* no raise */
	WW_VETO_HANDS_OFF /* no write at all: the GPUs are reported as not managed */
};

enum ww_node_in_kind {
	WW_NODE_IN_COMMAND, /* from the wire */
	WW_NODE_IN_READING, /* a GPU's limit and draw, asked for by READ_BACK or read each period */
	WW_NODE_IN_WRITTEN, /* the outcome of WRITE_CAP, with the limits read after it */
	WW_NODE_IN_SAVED,   /* the outcome of JOURNAL */
	WW_NODE_IN_TPS,     /* tokens/s of a job's GPUs here */
	WW_NODE_IN_VETO,
	WW_NODE_IN_RELEASE /* stop: leave or restore the caps by the contract */
};

struct ww_node_in {
	enum ww_node_in_kind kind;
	union {
		const struct ww_command *command;
		struct {
			uint32_t gpu;
			struct ww_reading enforced_w, draw_w;
		} reading;
		struct {
			uint32_t gpu;
			bool ok;
			struct ww_reading enforced_w;
		} written;
		bool saved;
		struct {
			uint64_t job;
			struct ww_reading tps; /* not OK and value NAN: the job has left */
		} tps;
		enum ww_veto veto;
		struct {
			bool force; /* restore at once although a budget binds */
		} release;
	} u;
};

enum ww_node_act_kind {
	WW_ACT_JOURNAL,   /* store bytes durably in place of the last ones, then put IN_SAVED */
	WW_ACT_WRITE_CAP, /* set a limit, read it back, put IN_WRITTEN */
	WW_ACT_READ_BACK, /* read a GPU's limit and draw, put IN_READING */
	WW_ACT_SAMPLE,    /* send */
	WW_ACT_ACK,       /* send */
	WW_ACT_HELLO,     /* send */
	WW_ACT_ALARM      /* tell a person */
};

enum ww_alarm {
	WW_ALARM_FOREIGN_RAISE, /* somebody raised a limit; written over */
	WW_ALARM_FIGHT_LOST,    /* raised again and again: left as it is, reported as not managed */
	WW_ALARM_FOREIGN_LOWER,
	WW_ALARM_WRITE_FAILED, /* a limit could not be written or reads back otherwise */
	WW_ALARM_JOURNAL,      /* the journal could not be stored: limits only fall until it can */
	WW_ALARM_LAPSED,       /* the lease ended */
	WW_ALARM_NOT_RELEASED  /* stop while a budget binds: the caps are left */
};

/* What an alarm means, for people. Static. */
const char *ww_alarm_text(enum ww_alarm alarm);

struct ww_node_act {
	enum ww_node_act_kind kind;
	union {
		struct {
			const void *bytes; /* borrowed until the next step */
			size_t n;
		} journal;
		struct {
			uint32_t gpu;
			float cap_w;
		} write;
		uint32_t read_back;             /* gpu */
		const struct ww_sample *sample; /* all borrowed until the next step */
		const struct ww_ack *ack;
		const struct ww_hello *hello;
		struct {
			enum ww_alarm what;
			uint32_t gpu; /* UINT32_MAX: the node */
			float value_w;
		} alarm;
	} u;
};

/*
 * Takes `n` inputs at `now` and returns the acts to carry out in their order, at most `cap`; 4 + 3 x GPUs are always
 * enough. The caller puts the outcomes of acts into the next step at once, and calls again until no act is returned; then
 * it waits for ww_node_due_us or an input. Nothing is written to a GPU before the journal that holds it was saved, but for
 * a lower limit while journals cannot be stored and the limit found is. A HELLO comes also once limits were recorded.
 * No allocation.
 */
size_t ww_node_step(ww_node *node, struct ww_now now, const struct ww_node_in *in, size_t n, struct ww_node_act *out,
                    size_t cap);

/* mono_us of the next work without an input. */
int64_t ww_node_due_us(const ww_node *node);

#endif
