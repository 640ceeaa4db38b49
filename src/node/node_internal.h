/* SPDX-License-Identifier: Apache-2.0 */
/* The state of an agent's brain and what its files share. Times are mono_us of this boot. */
#ifndef WW_NODE_INTERNAL_H
#define WW_NODE_INTERNAL_H

#include "node/node.h"

#include <math.h>

#define MAIL_KEPT 32     /* messages whose send times are known */
#define REFUSALS_KEPT 4  /* answers to refused commands that wait to be sent */
#define FIGHTS_MAX 16    /* largest fight_limit */
#define TOLERANCE_W 1.0f /* boards round limits */
#define PLAUSIBLE_MOST_W 100000.0f
#define JOURNAL_ROOM 4096 /* no journal is longer */
#define NODE UINT32_MAX   /* as the GPU of an alarm */

struct gpu {
	/* As read last. */
	struct ww_reading enforced, draw;
	int64_t enforced_us, draw_us; /* when they came */
	int64_t changed_us;           /* when the enforced limit was first found as it is */
	float found_w;                /* limit known last since this start, NAN = none */
	bool was_read;                /* since this start */
	bool held;
	/* Our limit. NAN = none. */
	float recorded_w;  /* found before our first write since this boot */
	bool recorded;     /* and stored durably */
	float target_w;    /* written again over foreign limits */
	float due_w;       /* has to be written */
	bool unbound;      /* due_w does not hang on the lease, even if it is a raise */
	float requested_w; /* written last */
	float settled_w;   /* enforced after that, or what a foreign hand made of it */
	float asked_w;     /* being written */
	bool writing;
	bool bad; /* the last write did not work */
	int64_t retry_us;
	/* Foreign hands. */
	bool lost; /* the fight over the limit: not managed */
	uint8_t foreign;
	uint8_t alarms; /* to be told, a bit for each enum ww_alarm */
	/* The schedule. */
	int8_t step; /* in force, -1 = none yet */
	/* Seldom needed, so last. */
	float cap_w[WW_STEPS_MAX], failcap_w;
	uint32_t n_fights;
	int64_t fights_us[FIGHTS_MAX]; /* a ring of n_fights */
};

struct lease {
	bool given; /* since this boot */
	bool lapsed, release_ok;
	uint8_t after;
	uint32_t n_steps;
	int64_t end_us;
	int64_t due_us[WW_STEPS_MAX], up_us[WW_STEPS_MAX]; /* for steps down; for steps up */
};

struct ww_node {
	struct ww_node_options options; /* start_id raised */
	int64_t now_us, wall_us, next_us, tick_us;
	enum ww_veto veto;
	/* Commands. */
	struct ww_fence seen, saved_seen; /* highest accepted; and stored */
	bool accepted;                    /* a command since this start */
	struct lease lease;
	struct gpu gpus[WW_NODE_GPUS_MAX];
	/* Journal. */
	struct ww_buf journal;
	bool dirty, storing, store_failed, stored_once;
	int64_t store_us; /* not before; while it is being stored: given up then */
	struct ww_fence stored_seen;
	uint32_t stored_records; /* GPUs, as bits, in the journal being stored */
	/* Messages. */
	uint64_t sent_seq;
	int64_t sent_us[MAIL_KEPT]; /* of message seq, at seq % MAIL_KEPT */
	uint32_t awaited;           /* readings of this period, as bits */
	uint32_t to_read;
	bool sample_due, news, answer_due;
	bool hello_due; /* nobody has commanded us since this start, or limits were recorded */
	uint8_t alarms;
	int64_t sample_by_us, ack_by_us; /* waiting for outcomes until then */
	uint32_t n_refusals;
	struct refusal {
		struct ww_fence fence;
		enum ww_ack_verdict verdict;
	} refusals[REFUSALS_KEPT];
	uint32_t n_jobs;
	struct node_job {
		uint64_t job;
		struct ww_reading tps;
		int64_t at_us;
	} jobs[WW_NODE_JOBS_MAX];
	struct ww_sample sample;
	struct ww_ack ack;
	struct ww_hello hello;
};

/* Acts of one step. */
struct acts {
	struct ww_node_act *act;
	size_t n, room;
};

/* False when there is no room: then it is asked for again in the next step. */
static inline bool put_act(struct acts *acts, struct ww_node_act act)
{
	if (acts->n == acts->room)
		return false;
	acts->act[acts->n++] = act;
	return true;
}

/* Times of inputs are any; sums stay in range. */
static inline int64_t later(int64_t at_us, int64_t by_us)
{
	int64_t sum;
	return __builtin_add_overflow(at_us, by_us, &sum) ? WW_NEVER_US : sum;
}

/* A limit that the board takes; NAN stays NAN. */
static inline float settable_w(const ww_node *node, uint32_t i, float w)
{
	return isnan(w) ? w : fmaxf(node->options.gpus[i].min_w, fminf(w, node->options.gpus[i].max_w));
}

/* ---- accept.c: which commands are obeyed ------------------------------------------------------------------------- */

void node_take_command(ww_node *node, const struct ww_command *command);

/* ---- follow.c: the schedule and what comes after it ---------------------------------------------------------------- */

/* Carries out what is due by now. */
void node_follow(ww_node *node);
/* From now on the limit of this GPU is `w`. */
void node_aim(ww_node *node, struct gpu *gpu, float w, bool unbound);
bool node_lease_is_valid(const ww_node *node);
void node_release(ww_node *node, bool force);
/* Next time at which node_follow has work. */
int64_t node_follow_due_us(const ww_node *node);

/* ---- device.c: what is read from GPUs, by their index, and written to them ---------------------------------------- */

void node_take_reading(ww_node *node, uint32_t i, struct ww_reading enforced, struct ww_reading draw);
void node_take_written(ww_node *node, uint32_t i, bool ok, struct ww_reading enforced);
/* Notes the limits found before the first write. */
void node_record(ww_node *node);
bool node_may_write(const ww_node *node, const struct gpu *gpu);
bool node_manages(const ww_node *node, const struct gpu *gpu);
void node_write(ww_node *node, struct acts *acts);

/* ---- journal.c ------------------------------------------------------------------------------------------------------- */

void node_encode(const ww_node *node, struct ww_buf *buf);
/* Takes over what an earlier start stored. */
ww_status node_decode(ww_node *node, const void *bytes, size_t n, struct ww_error *err) WW_MUST_CHECK;
/* All that is decided is stored. */
bool node_is_saved(const ww_node *node);
void node_store(ww_node *node, struct acts *acts);
void node_take_saved(ww_node *node, bool saved);

/* ---- tell.c: messages and alarms -------------------------------------------------------------------------------------- */

void node_take_tps(ww_node *node, uint64_t job, struct ww_reading tps);
void node_alarm(ww_node *node, uint32_t gpu, enum ww_alarm what);
/* The state of a limit changed: an ack as soon as its writes are read back. */
void node_have_news(ww_node *node);
/* The command is obeyed: acknowledged as soon as its first writes are read back. */
void node_answer(ww_node *node);
void node_refuse(ww_node *node, struct ww_fence fence, enum ww_ack_verdict verdict);
void node_tell(ww_node *node, struct acts *acts);
/* Next time at which node_tell has work although outcomes are missing. */
int64_t node_tell_due_us(const ww_node *node);

#endif
