/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control: the cluster's brain. From what nodes, meters and people tell it, it decides the power cap of every GPU so that
 * every row of the power plan keeps its budget whatever happens, floors are kept while that is possible, and within that
 * as much of the objective as possible survives.
 *
 * The safety argument is the charge: an upper bound of the limit that a GPU obeys or may come to obey by anything that was
 * ever sent, by its node's own rules, or by a boot. On every row the charges, an upper bound of non-GPU power and a guard
 * stay within the budget, or the decision names the missing watts and raises nothing there.
 *
 * A function of (state, inputs, now). ww_control_step allocates nothing.
 */
#ifndef WW_CONTROL_H
#define WW_CONTROL_H

#include "core/core.h"
#include "msg/msg.h"

typedef struct ww_control ww_control;

ww_status ww_control_create(ww_control **out, struct ww_error *err) WW_MUST_CHECK;
void ww_control_destroy(ww_control *control);

/* How the free watts are divided; AUTO is the product, the others are what it is held against. */
enum ww_division {
	WW_DIVISION_AUTO = 0, /* the equal cut at once, then refined */
	WW_DIVISION_EQUAL,    /* the equal cut, never refined */
	WW_DIVISION_EXACT,    /* as AUTO, but curves count as the truth also below what was measured: for an oracle */
	WW_N_DIVISIONS
};

/* ---- Inputs -------------------------------------------------------------------------------------------------------- */

enum ww_input_kind {
	WW_INPUT_CONFIG, /* inventory and power plan: the first input; a later one replaces it and keeps what is known */
	WW_INPUT_LEADER,
	WW_INPUT_SAMPLE,
	WW_INPUT_ACK,
	WW_INPUT_HELLO,
	WW_INPUT_JOB,
	WW_INPUT_EVENT,
	WW_INPUT_METER,
	WW_INPUT_SAVED, /* the state of decision `saved` (its seq) is stored durably */
	WW_INPUT_DIVISION,
	WW_INPUT_MODE, /* what people let control do; kept over take-overs */
	WW_N_INPUT_KINDS
};

struct ww_input {
	struct ww_now at; /* of its arrival */
	uint64_t seq;     /* for the journal; any */
	enum ww_input_kind kind;
	union {
		const struct ww_config *config;
		const struct ww_leader *leader;
		const struct ww_sample *sample;
		const struct ww_ack *ack;
		const struct ww_hello *hello;
		const struct ww_job *job;
		const struct ww_event *event;
		const struct ww_meter *meter;
		uint64_t saved;
		enum ww_division division;
		enum ww_mode mode;
	} u;
};

/*
 * Copies. WW_ERR_INVALID, WW_ERR_RANGE: the input breaks its form; WW_ERR_NOT_FOUND: of an unknown node or row;
 * nothing was changed. An input that is old news is WW_OK and changes nothing. May allocate.
 */
ww_status ww_control_put(ww_control *control, const struct ww_input *input, struct ww_error *err) WW_MUST_CHECK;

/* ---- Decisions ----------------------------------------------------------------------------------------------------- */

/* Why a GPU has its cap. */
enum ww_why {
	WW_WHY_NO_BUDGET, /* nothing binds: its recorded limit */
	WW_WHY_EQUAL,     /* the equal cut */
	WW_WHY_PRICE,     /* a watt is worth as much here as elsewhere */
	WW_WHY_FLOOR,     /* its job's floor */
	WW_WHY_RELAXED,   /* below the floor: a row cannot be kept otherwise */
	WW_WHY_BOX,       /* as deep as was measured for the job */
	WW_WHY_LOWEST,    /* its lowest settable limit */
	WW_WHY_IDLE,      /* no job */
	WW_WHY_WAITING,   /* would be raised, but no watts are free yet */
	WW_WHY_STAGGER,   /* being raised in steps */
	WW_WHY_FROZEN,    /* would be raised, but people let nothing rise */
	WW_WHY_SILENT,    /* its node does not answer */
	WW_WHY_ADOPTING,  /* its node has not yet shown this leader's epoch */
	WW_WHY_UNMANAGED, /* its node does not write it */
	WW_WHY_STUCK,     /* it does not come down to its cap; others go lower in its place */
	WW_N_WHYS
};

/* In words, for people. Static. */
const char *ww_why_text(enum ww_why why);

struct ww_gpu_decision {
	float charge_w; /* what the rows count for it */
	float cap_w;    /* commanded last, NAN = nothing yet */
	float target_w; /* where it is going */
	float trim_w;   /* of that, whole watts moved to it from others of its job; below 0: from it to others */
	uint8_t why;    /* enum ww_why */
};

struct ww_row_decision {
	double budget_w;  /* kept now, at `boundary`: the least of the next settle_us + 2 s; INFINITY = none */
	uint8_t boundary; /* of the budget that leaves the fewest watts */
	double charge_w;  /* of its GPUs, part loads counted */
	double non_gpu_w; /* upper bound of the rest inside that boundary */
	double guard_w;
	double free_w;    /* budget - charge - non_gpu - guard; may be below 0 */
	double missing_w; /* max(0, -free_w): the budget is not safe by this much, nothing is raised */
	double power_w;   /* by its meter, NAN = not known */
};

enum ww_event_state { WW_EVENT_WAITING, WW_EVENT_ACTIVE, WW_EVENT_RAMP_UP, WW_EVENT_OVER };

struct ww_event_decision {
	uint64_t id;
	uint8_t state;        /* enum ww_event_state */
	bool let_go;          /* not kept: people disengaged */
	double baseline_w;    /* NAN where its limit is in watts */
	double measured_frac; /* of the ten minutes behind it, by the meter; the rest by the GPUs' draw, or left out */
	double limit_w;
	double missing_w; /* even with every controllable GPU at its lowest cap; 0 = feasible. NAN = not known yet */
};

struct ww_job_decision {
	uint64_t id;
	double cut_frac, equal_cut_frac;
	double throughput_frac; /* what its curve says */
	double floor_frac, kept_floor_frac;
	double trust;
	double tps; /* measured, NAN = not known */
};

struct ww_decision {
	uint64_t seq; /* rises by one with each step */
	struct ww_now at;
	bool leads;
	uint8_t mode; /* enum ww_mode */
	/* The state (ww_control_save) is to be stored durably and WW_INPUT_SAVED to be put before any command with `needs_save` is
	 * sent; where that fails these commands are not sent. The others may be sent at once. Also set without such a command:
	 * until what nobody tells again (inventory, job, event, leader, limits of a hello) is stored, while a successor would
	 * charge a GPU with less than here, and every minute at least, so that it does not count far more than is in force and
	 * knows what was drawn lately. Never set where another one leads. */
	bool save;
	uint32_t n_commands;
	const struct ww_command *commands;
	const bool *needs_save; /* per command */
	uint32_t n_rows;
	const struct ww_row_decision *rows; /* in the order of the configuration */
	uint32_t n_nodes;
	const uint32_t *first_gpu;          /* per node: index of its first GPU in `gpus`; one more at the end */
	const struct ww_gpu_decision *gpus; /* nodes in the order of the configuration */
	uint32_t n_jobs;
	const struct ww_job_decision *jobs; /* in ascending id */
	uint32_t n_events;
	const struct ww_event_decision *events; /* in ascending id */
};

/* Bounded time, no allocation; borrowed until the next step, load or input of another kind than messages, meters and SAVED.
 * At a time that no clock shows nothing is decided: the last decision again, without commands. */
const struct ww_decision *ww_control_step(ww_control *control, struct ww_now now);

/* mono_us at which the next step is due without an input. */
int64_t ww_control_due_us(const ww_control *control);

/* An exact, canonical form of a decision, for comparing. */
void ww_decision_encode(const struct ww_decision *decision, struct ww_buf *buf);

/* ---- State and journal ---------------------------------------------------------------------------------------------- */

/* Saved state and the inputs and steps after it give the same decisions byte for byte. WW_ERR_NOMEM. */
ww_status ww_control_save(const ww_control *control, struct ww_buf *buf) WW_MUST_CHECK;

/* Replaces the state. WW_ERR_INVALID for bytes that ww_control_save did not write; the state is then as it was. The times
 * in it are of the machine that saved; for a take-over on another one put WW_INPUT_LEADER next, which moves them by the
 * wall clock. */
ww_status ww_control_load(ww_control *control, const struct ww_buf *buf, struct ww_error *err) WW_MUST_CHECK;

/* One input as bytes, for a journal; appended. */
ww_status ww_input_encode(const struct ww_input *input, struct ww_buf *buf) WW_MUST_CHECK;

/* Reads one input; `room` holds what it points to until the next call with it. WW_ERR_INVALID. */
struct ww_input_room;
struct ww_input_room *ww_input_room_create(void); /* NULL without memory */
void ww_input_room_destroy(struct ww_input_room *room);
ww_status ww_input_decode(struct ww_read *read, struct ww_input_room *room, struct ww_input *out, struct ww_error *err)
	WW_MUST_CHECK;

#endif
