/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the world share: agents (world_agent.c), controllers (world_lead.c), the checks of every second
 * (world_check.c) and the clock and scripts that drive them (world.c). All times are virtual unless they say wall or mono.
 */
#ifndef WW_WORLD_PARTS_INTERNAL_H
#define WW_WORLD_PARTS_INTERNAL_H

#include "cli/world_internal.h"

#define WORLD_CONTROLLERS 4
#define WORLD_ACTS (4 + 3 * WW_NODE_GPUS_MAX)
#define WORLD_INPUTS (4 * WW_NODE_GPUS_MAX + WW_NODE_JOBS_MAX + 8)
#define WORLD_SOURCES 7
#define WORLD_METER_KEPT 64 /* more than WW_METER_LATE_S */

/* A job's GPUs on one node. */
struct world_share {
	uint32_t job;
	double frac;
	bool left; /* its agent knows that the job has ended */
};

/* Sums of GPUs: the limits in force that count, and their charges. */
struct world_watts {
	double limits_w, charges_w;
};

struct world_agent {
	ww_node *brain; /* NULL while it is down */
	struct ww_buf journal;
	int64_t start_us;  /* it starts then, WW_NEVER_US = it runs */
	int64_t period_us; /* the next readings */
	int64_t phase_us;  /* of its periods in the second */
	int64_t boot_us;   /* when the machine's monotonic clock was 0 */
	uint64_t boot_id;
	int64_t off_until_us, cut_until_us, journal_bad_until_us;
	bool off, cut, hangs; /* hangs: perhaps a write of its GPUs */
	uint32_t first_gpu, n_gpus, n_shares, last_job;
	struct world_share *shares;
	/* Known for the checks only: */
	int64_t heard_us;           /* the controller in charge got its last message */
	int64_t behind_us;          /* since then a command has been on its way or lost; WW_NEVER_US = none */
	struct ww_fence sent, took; /* the highest command sent and delivered */
	uint32_t n_foreign;         /* GPUs with a foreign raise */
	struct world_watts watts;   /* in the sums of its rows */
};

struct world_control {
	ww_control *brain; /* NULL: free */
	uint64_t epoch;
	int64_t offset_us;   /* its monotonic clock is ahead of virtual time by this */
	int64_t wall_off_us; /* and its wall clock of the true one */
	int64_t ends_us;     /* of a zombie */
	int64_t tick_us;     /* the next step of every second */
	int64_t step_us;     /* a step that is asked for beside those; WW_NEVER_US = none */
};

/* A foreign raise is excused until the controller in charge could know of it. */
enum world_foreign {
	FOREIGN_NONE = 0,
	FOREIGN_WRITTEN, /* its node has not read it yet */
	FOREIGN_READ,    /* read, no message has been sent since */
	FOREIGN_SENT,    /* in the message `start_id`, `seq`, which has not arrived */
	FOREIGN_TOLD     /* excused until `until_us` */
};

struct world_gpu {
	uint32_t node;
	uint8_t foreign; /* enum world_foreign */
	uint64_t start_id, seq;
	int64_t until_us;
	float charge_w, cap_w; /* by the last decision in charge */
	int64_t hung_until_us; /* its limit cannot be written */
	int64_t fails_us;      /* then a write that hangs has failed; 0 = none does */
};

struct world_meter {
	int64_t bad_until_us, late_until_us;
	uint32_t late_s, n;               /* n: seconds metered */
	double power_w[WORLD_METER_KEPT]; /* of second i at i % WORLD_METER_KEPT */
};

struct world_row {
	struct ww_row_decision last;
	double budget_before_w; /* of the decision before */
	int64_t missing_us;     /* watts were missing then, -WW_NEVER_US = never */
	struct world_watts watts;
};

struct world_item {
	int64_t at_us;
	uint32_t order; /* of the script: items of one time stay in it */
	uint32_t index;
	uint8_t what;
};

struct world_script {
	struct world_item *items;
	size_t n, next;
};

struct world_event {
	const struct ww_event *event; /* the newest version */
	uint32_t row;
};

/* A node's id and its index, in ascending id. */
struct world_id {
	uint64_t id;
	uint32_t index;
};

struct ww_world {
	struct ww_world_spec spec;
	ww_plant *plant;
	ww_wire *wire;
	struct ww_manual_clock clock;
	struct ww_source sources[WORLD_SOURCES];
	struct ww_driver driver;
	ww_status status; /* of what a source met; ends the world */
	struct ww_error err;

	uint32_t n_nodes, n_rows, n_gpus;
	struct world_agent *agents;
	struct world_share *shares;
	struct world_turn {
		int64_t due_us;
		uint32_t node;
	} * turns;         /* heap of agents: the earliest due first, of those the first in the inventory */
	uint32_t *turn_of; /* place of each agent in it */
	struct world_id *ids;
	struct ww_node_act acts[WORLD_ACTS];
	struct ww_node_in inputs[WORLD_INPUTS];
	uint32_t n_inputs;

	struct world_control controls[WORLD_CONTROLLERS];
	int charge; /* the controller in charge, -1 = none */
	uint64_t epoch, input_seq;
	struct ww_buf store, scratch; /* what was stored last; it refuses what is not of the highest epoch */
	int64_t store_bad_until_us;
	bool take_over_waits; /* for the store */
	const struct ww_decision *decision;

	struct world_script faults, tells;
	struct ww_job ended; /* what control is told of a job that has ended */
	int64_t meter_us;
	struct world_meter *meters; /* per row */

	struct world_gpu *gpus;
	struct world_row *rows;
	enum ww_mode mode; /* told last */
	struct world_event *events;
	size_t n_events;
	bool decided;                  /* the decision that the checks know is of the controller in charge */
	int64_t took_over_us, left_us; /* when the one in charge began, and the one before it ended */
	int64_t steady_us;             /* since then nothing happened that a budget cannot be kept through at once */
	struct ww_world_account account;
	struct ww_world_alarm *alarms;
	size_t n_alarms;
};

/* world.c */
int64_t ww_world_now(const ww_world *w);
void ww_world_fail(ww_world *w, ww_status status, const struct ww_error *err); /* the first one counts */
uint32_t ww_world_find_node(const ww_world *w, uint64_t id);                   /* n_nodes = none */
void ww_world_trace(const ww_world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* world_agent.c */
ww_status ww_world_agents_init(ww_world *w, struct ww_error *err) WW_MUST_CHECK;
void ww_world_agents_finish(ww_world *w);
void ww_world_agent_stop(ww_world *w, uint32_t node, int64_t start_us);
void ww_world_agent_take(ww_world *w, uint32_t node, const struct ww_command *command);
void ww_world_machine_off(ww_world *w, uint32_t node, int64_t until_us);
void ww_world_machine_on(ww_world *w, uint32_t node);
int64_t ww_world_agents_due(void *world);
void ww_world_agents_run(void *world, struct ww_now now);

/* world_lead.c */
void ww_world_take_over(ww_world *w);
void ww_world_control_crash(ww_world *w);
void ww_world_zombie(ww_world *w, int64_t until_us);
void ww_world_zombies_end(ww_world *w);
void ww_world_put_back(ww_world *w, uint32_t node);
void ww_world_controls_finish(ww_world *w);
/* To the controller in charge, which steps at once and stores its state; false: an event that it cannot take. */
bool ww_world_tell(ww_world *w, struct ww_input *input);
/* To every living one. */
void ww_world_hear(ww_world *w, struct ww_input *input);
int64_t ww_world_controls_due(void *world);
void ww_world_controls_run(void *world, struct ww_now now);

/* world_check.c */
void ww_world_check_decision(ww_world *w, const struct ww_decision *decision);
void ww_world_check_limits(ww_world *w);
/* The same where only this node's limits changed since. */
void ww_world_check_node(ww_world *w, uint32_t node);
void ww_world_check_power(ww_world *w);
void ww_world_note_event(ww_world *w, const struct ww_event *event);
void ww_world_note_unsteady(ww_world *w); /* power may be above the budget for settle + 5 s from now */
void ww_world_note_foreign(ww_world *w, uint32_t gpu);
void ww_world_note_limit_gone(ww_world *w, uint32_t gpu); /* overwritten, or lost in a boot */
void ww_world_note_read(ww_world *w, uint32_t node, uint32_t gpu);
void ww_world_note_sent(ww_world *w, uint32_t node, const struct ww_envelope *from);
void ww_world_note_heard(ww_world *w, uint32_t node, const struct ww_envelope *from);
void ww_world_note_take_over(ww_world *w);

#endif
