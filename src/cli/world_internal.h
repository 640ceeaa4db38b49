/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world.c: a whole cluster in virtual time: the brain of the cluster, the wire inside one process, one agent's brain per
 * node and the plant under them, with faults at given times. The scenario program, replays and the fault schedules of the
 * tests run this same world. What must always hold is checked on the plant in every second.
 */
#ifndef WW_WORLD_INTERNAL_H
#define WW_WORLD_INTERNAL_H

#include "control/control.h"
#include "node/node.h"
#include "sim/sim.h"
#include "wire/wire.h"

enum ww_fault_kind {
	WW_FAULT_AGENT_CRASH, /* the agent of `node` stops at once and starts again at until_us; the boards go on */
	WW_FAULT_REBOOT, /* the machine of `node` loses power at at_us, its boards are back at until_us, its agent 1 s later */
	WW_FAULT_CONTROLLER_CRASH, /* stops at once; at until_us another one takes over from the state that was stored last */
	WW_FAULT_CONTROLLER_ZOMBIE, /* at at_us another one takes over; the old one goes on until until_us, its saves fail */
	WW_FAULT_FOREIGN,           /* somebody writes value_w to GPU `gpu` of `node` */
	WW_FAULT_CUT,               /* nothing passes between `node` and the controller until until_us */
	WW_FAULT_METER,             /* the meter of row `node` is silent until until_us */
	WW_FAULT_JOURNAL,           /* the node's journal cannot be stored until until_us */
	WW_FAULT_DEAD,              /* the machine of `node` loses power and does not come back */
	WW_FAULT_HUNG_GPU, /* writes of the limit of GPU `gpu` of `node` hang, and have failed a while later, until until_us */
	WW_FAULT_METER_LATE, /* the meter of row `node` shows what was late_s ago until until_us */
	WW_FAULT_STORE, /* the controllers' store takes nothing until until_us: no take-over, and people's events wait */
	WW_FAULT_PUT_BACK, /* somebody takes `node` out of the inventory and puts it in again at once */
	WW_N_FAULT_KINDS
};

bool ww_fault_is_of_row(enum ww_fault_kind kind); /* `node` is a row */

struct ww_fault {
	enum ww_fault_kind kind;
	int64_t at_us, until_us;
	uint32_t node, gpu;
	double value_w;
	uint32_t late_s; /* at most WW_METER_LATE_S */
};
#define WW_METER_LATE_S 60

struct ww_announcement {
	int64_t at_us; /* virtual time */
	struct ww_event event;
};

/* People let control do something else from now on. */
struct ww_mode_change {
	int64_t at_us;
	enum ww_mode mode;
};

/* Nodes, rows and jobs of plant and config have the same index. All borrowed while the world lives. */
struct ww_world_spec {
	uint64_t seed;
	int64_t wall_start_us; /* wall time of virtual 0 */
	int64_t period_us;     /* of samples */
	bool reassert_lower;   /* of agents: limits that somebody lowered are written over, else respected */
	int64_t wall_off_us; /* by which the wall clock of a controller may be off at most, each by another part of it */
	const struct ww_plant_spec *plant;
	const struct ww_config *config;
	const struct ww_job *jobs; /* what control is told, at the job's start; plant->n_jobs of them */
	const struct ww_announcement *announcements;
	size_t n_announcements;
	const struct ww_fault *faults;
	size_t n_faults;
	const struct ww_mode_change *modes;
	size_t n_modes;
	struct ww_wire_faults wire;
	enum ww_division division;
	struct ww_buf *journal; /* gets the frames (files/files.h) of the controllers in charge, each from the state it
	                           began with; NULL = none. Emptied by whoever writes them to a file */
	void (*trace)(void *ctx, const char *line); /* what happened when, in words; NULL = nobody reads it */
	void *trace_ctx;
	/* After each step of a controller: its decision, and the thread's processor time for it; NULL = nobody asks. */
	void (*stepped)(void *ctx, const struct ww_decision *decision, int64_t cpu_ns);
	void *stepped_ctx;
};

/* What a second was like, for tables, traces and live lines. */
struct ww_world_second {
	int64_t at_us;                      /* virtual time at its end */
	const struct ww_decision *decision; /* the last one of the controller in charge, NULL while there is none */
	const ww_plant *plant;
};

/* What must hold and did not. (a) limits in force <= charges on every row; (b) charges within the budget, or missing watts
 * named and nothing raised; (c) power within the budget once all nodes were in reach for settle + 5 s. */
struct ww_world_account {
	uint64_t seconds;
	uint64_t broken_a, broken_b, broken_c;
	double worst_c_frac; /* of a budget, by which power was above it in (c) */
	char first[256];     /* the first breach in words: second, row, watts; "" = none */
	uint64_t steps, commands, writes, alarms, saves, lost_saves;
	struct ww_wire_counts wire;
};

/* What nodes told people of one thing. */
struct ww_world_alarm {
	uint32_t node, gpu; /* gpu: of the node, UINT32_MAX = the node */
	enum ww_alarm what;
	uint32_t times;
	int64_t first_us, last_us;
};

typedef struct ww_world ww_world;

ww_status ww_world_create(const struct ww_world_spec *spec, ww_world **out, struct ww_error *err) WW_MUST_CHECK;
void ww_world_destroy(ww_world *world);

/* Lives one second and checks it. WW_ERR_NOMEM ends the world. `out` may be NULL. */
ww_status ww_world_second(ww_world *world, struct ww_world_second *out, struct ww_error *err) WW_MUST_CHECK;
struct ww_world_account ww_world_account(const ww_world *world);

/* In the order in which they came first; borrowed until the next second. */
const struct ww_world_alarm *ww_world_alarms(const ww_world *world, size_t *n);

/* Whether the controller in charge hears the node, and it has all that was sent to it. */
bool ww_world_in_reach(const ww_world *world, uint32_t node);

/* From now on the journal gets frames, first the state of the controller in charge. Borrowed while the world lives. */
void ww_world_begin_journal(ww_world *world, struct ww_buf *journal);

#endif
