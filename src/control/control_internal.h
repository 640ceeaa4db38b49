/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of control. registry.c takes in what is told, heard.c what nodes say, and leader.c knows who leads; charges.c
 * bounds what each GPU's limit is or may become; non_gpu.c bounds the rest of a row; timeline.c knows the budgets, and
 * demand.c what jobs draw; divide.c says where each GPU should go, and lean.c evens out the GPUs of a job; orders.c sends
 * them there: downwards at once, upwards from free watts; state.c saves all of it.
 */
#ifndef WW_CONTROL_INTERNAL_H
#define WW_CONTROL_INTERNAL_H

#include "control/control.h"

#define OUTSTANDING_MAX 6                /* commands that a node may still accept; older ones are merged */
#define RESIDUALS 31                     /* readings of a meter behind a bound of non-GPU power */
#define BASELINE_US (600 * WW_SECOND_US) /* of power before an event that its cut refers to, */
#define SPAN_US (20 * WW_SECOND_US)      /* kept in spans */
#define SPANS (BASELINE_US / SPAN_US + 1)
#define DEMAND_SPANS 30 /* of a job's draw: an hour, two checkpoint cycles */
#define STEPS_AHEAD (WW_STEPS_MAX - 1)
#define RUNS_MAX 1000                    /* refinements of one division */
#define DEAD_BAND_W 0.9f                 /* a smaller raise is not worth a command; a watt moved within a job is */
#define MARGIN 1e-7                      /* of a row's watts: what rounding may hide */
#define GREETING_US (3 * WW_SECOND_US)   /* for nodes to answer a new leader */
#define LEAD_EXTRA_US (2 * WW_SECOND_US) /* a budget counts that much before it starts, besides settle_us */
#define AHEAD_US (24 * 3600 * WW_SECOND_US)
#define EVENTS_MAX 100000
#define MOST_W 1e5 /* of one board */

/* A command that its node may have accepted or may accept yet. */
struct outstanding {
	struct ww_fence fence; /* a later one accepted supersedes it */
	int64_t sent_us;       /* the first of those merged into it */
	int64_t restores_us; /* its lease ends in a restore so long after it was sent at the earliest; 0 = it does not */
	float top_w[WW_NODE_GPUS_MAX]; /* the largest cap of its schedule; NAN = none */
};

struct rate {
	uint64_t job;
	float tps;
};

/* What was said to a node and by it, apart: each step walks over all nodes several times and seldom needs this. */
struct talk {
	struct rate rates[WW_NODE_JOBS_MAX];
	struct outstanding outstanding[OUTSTANDING_MAX];
	struct ww_command last;
};

struct node {
	struct ww_node_config config;
	uint32_t first_gpu;
	/* Heard of it. */
	uint64_t boot_id, start_id, seq; /* of its newest message; 0 = none yet */
	int64_t heard_us;                /* arrival of its newest believed sample */
	int64_t alive_us;                /* it ran at or after this: a command sent then was accepted */
	bool believed;                   /* has shown this leader's epoch as the highest seen */
	struct ww_fence accepted;        /* highest command it has shown */
	bool was_silent;                 /* when this leader began */
	uint32_t n_rates;
	struct rate *rates; /* of its newest sample */
	/* Sent to it. */
	uint64_t next_seq, since_seq; /* since_seq: commands of this epoch before that one are not known here */
	int64_t sent_us;
	uint32_t n_outstanding;
	struct outstanding *outstanding;
	struct ww_command *last;
	bool has_last;
	/* Of this step. */
	bool silent; /* does not answer, might have booted, or is not believed: it cannot be steered */
};

struct gpu {
	uint32_t node;
	float moved_w;                    /* of its lean_w, in its target */
	struct job *job;                  /* NULL: none */
	float enforced_w, draw_w, goal_w; /* last believed; NAN = not known. goal_w: what its node writes again */
	float boot_w, most_w; /* what its board has after a boot and at most, as its node says; NAN = not known */
	float recorded_w;     /* found by its node before its first write, NAN = not known */
	float ceiling_w;      /* where no budget binds */
	float blind_w;        /* the lowest that this leader ordered while its node was not believed; NAN = nothing */
	int64_t changed_us;   /* when enforced_w was first seen at this value */
	int64_t obeyed_us;    /* when it was charged with no more than its cap, last */
	uint8_t step, held, managed;
	uint8_t why;
	bool stuck;                          /* it does not come down to its cap */
	float charge_w, decided_w, stored_w; /* charge now; in the last decision; in the state that was stored last */
	float cap_w, target_w;
	float need_frac; /* its draw as a part of its equal cap, mean since its job's watts were moved; NAN = not known */
	float lean_frac; /* of its equal cap that it should have more */
	float lean_w; /* the same in whole watts, as its limits allow; the sum over what can be steered of a job is 0 */
	int64_t raised_us; /* last rise of its cap, for steps of a restore */
};

/* Draws of a job's GPUs where no cap holds them. */
struct demand {
	float top_w[DEMAND_SPANS]; /* the highest of each span */
	uint32_t n, next;
	int64_t span_us, held_us; /* of the span that has begun; for how long a cap has held the job */
	float now_w;              /* the highest of the span that has begun */
	float draw_w,
		used_frac; /* of the GPU that draws most, last; of the cap, of the one that uses most of it, smoothed */
	bool probes;       /* one span is enough: it had more than it was seen to draw, to see whether it wants it */
};

struct job {
	double tps;              /* measured now, NAN = not known */
	double seen_w, seen_tps; /* the highest smoothed draw per GPU and rate, for a job without a curve */
	double draw_w, rate_tps; /* smoothed mean draw per GPU and rate, NAN = not known */
	bool divided;            /* takes part in the division: a row of it binds */
	uint8_t why;
	double cut_frac, equal_cut_frac, throughput_frac, kept_floor_frac, trust;
	uint32_t n_needs;              /* readings behind the needs of its GPUs */
	float need_var;                /* of one such reading */
	uint64_t laid_for;             /* the equal caps and ceilings of what could be steered when lean_w was made */
	uint32_t n_shares;             /* rows that its GPUs load, at most */
	uint32_t n_told;               /* GPUs of its places */
	uint32_t n_gpus, *gpus;        /* index of those in the inventory, in the order of its places */
	double ahead_cut[STEPS_AHEAD]; /* NAN = none */
	struct demand demand;
	struct ww_curve curve; /* in use */
	struct ww_job told;    /* the last: no more of its places are there than it has */
};

struct event {
	struct ww_event told;
	double base_w;                               /* where ramps start and end */
	double limit_w;                              /* resolved */
	double baseline_w, measured_frac, missing_w; /* measured_frac: part of the baseline that the meter showed */
};

struct row {
	struct ww_row config;
	struct ww_reading meter; /* last */
	int64_t meter_us;
	float residual[RESIDUALS];
	uint32_t n_residuals, next_residual;
	double non_gpu_w; /* in use at the meter's boundary: above the readings, and not moving with every one; NAN = none */
	int64_t bound_us;   /* last reading behind it */
	bool bound_is_old;  /* as of the last step */
	double draw_w;      /* of its GPUs by the last samples, NAN = some are not known */
	double slow_draw_w; /* smoothed over about a minute, NAN = none */
	double from_w;      /* the same in use: moves in steps */
	double over_w; /* by which charges were above what was divided, for long: limits that hang, draws above limits */
	int64_t over_us;     /* since when charges are, or since it was looked at last */
	double over_offer_w; /* the offer then */
	double lag_w;        /* draw that what follows late may still be following, NAN = none */
	struct span {
		int64_t number;                   /* of the span of wall time */
		double power_w, beside_w, draw_w; /* sums: of readings, of the draws of their moments, of all draws */
		uint32_t n, n_beside, n_draws;
	} spans[SPANS];
	/* Of this step. */
	double budget_w, guard_w; /* at `boundary`; INFINITY = none */
	uint8_t boundary;
	double offer_w;   /* watts that its GPUs may be charged with in all, INFINITY = any */
	double charge_w;  /* of its GPUs now */
	double full_w;    /* of its GPUs at what they may have where no budget binds */
	double fixed_w;   /* of those that no job is divided for */
	double steered_w; /* of those that jobs are divided for, at their lowest limits */
	double low_w;     /* of its GPUs once all that can be steered soon are at their lowest limits */
	bool binds;
	double lean_part;     /* of what its GPUs have more than their shares, that it can carry */
	uint16_t binds_ahead; /* one bit per moment */
};

/* One moment of the division ahead. */
struct ahead {
	int64_t at_us, until_us; /* wall */
};

/* What a division was made from, so that it can be made again from a saved state. */
struct problem {
	uint32_t n_jobs, n_shares;
	struct ww_alloc_job *jobs;
	struct ww_row_share *shares;
	struct ww_alloc_row *rows;
	uint32_t *job_of; /* index into jobs of control */
	struct ww_curve *curves;
	uint32_t runs;  /* of ww_alloc_run since it was set */
	bool set, done; /* done: nothing is left to gain */
};

/* For how many there is room in the arrays of divisions and decisions. */
struct room {
	size_t jobs, rows, shares, nodes, gpus, events;
};

struct ww_control {
	struct ww_config config; /* rows and nodes are NULL: they live below */
	enum ww_division division;
	enum ww_mode mode;
	int64_t mode_wall_us; /* when it was told last */
	struct ww_leader leader;
	int64_t leads_since_us, adopt_until_us;
	int64_t known_until_us; /* what the leader before this one ordered later is not known; WW_NEVER_US: there was none */
	bool restores_before;    /* its leases ended in a restore, */
	int64_t lease_before_us; /* so long after they were sent at the earliest */
	int64_t stored_us;       /* when a state was stored last */
	int64_t draws_us;        /* when draws were summed up last; WW_NEVER_US: something is newer */
	struct ww_now now;
	int64_t since_us; /* of this step: the last one was so long ago */
	uint64_t steps;
	int64_t offset_us;         /* mono - wall of the last step or input: moves times on a take-over */
	uint64_t must_store_after; /* seq of the last decision without it */
	int64_t lease_decided_us;  /* how long leases are: in the last decision */
	bool restore_decided,
		restore_stored; /* leases end in a restore: in the last decision; in the state that was stored last */
	uint64_t last_seq;      /* the highest of a command in this epoch, to whatever node */
	uint32_t n_rows, n_nodes, n_gpus, n_jobs, n_events, room_jobs, room_events;
	struct room room;
	size_t n_shares; /* of all jobs, at most */
	struct row *rows;
	struct node *nodes;
	struct talk *talks; /* one per node, which points into it */
	struct gpu *gpus;
	struct job **jobs;    /* ascending id */
	struct event *events; /* ascending id */
	struct node_id {
		uint64_t id;
		uint32_t node;
	} * node_by_id; /* ascending */
	uint32_t *first_gpu;
	/* Division. */
	ww_alloc *alloc, *alloc_ahead;
	struct problem problem, ahead_problem;
	struct ww_alloc_row *wanted_rows;
	double usual_cut; /* mean of the equal cuts, for jobs whose nodes are silent */
	uint32_t n_ahead;
	bool configured;
	bool must_store;    /* something was accepted that a successor must know */
	bool news;          /* jobs, events or inventory changed: divide afresh, equal cut first */
	bool ready_changed; /* which GPUs can be steered changed */
	struct ahead ahead[STEPS_AHEAD];
	int64_t ahead_us;                /* mono when it was made; WW_NEVER_US: to be made */
	double *row_free_w, *row_need_w; /* scratch per row */
	/* Decision. */
	struct ww_decision decision;
	struct ww_command *commands;
	bool *needs_save;
	struct ww_row_decision *row_decisions;
	struct ww_gpu_decision *gpu_decisions;
	struct ww_job_decision *job_decisions;
	struct ww_event_decision *event_decisions;
};

static inline double least(double a, double b)
{
	return a < b ? a : b;
}

static inline double most(double a, double b)
{
	return a > b ? a : b;
}

/* Watts of a node on each row that carries it. */
static inline void add_load(const struct node *node, double w, double *row_w)
{
	for (uint32_t l = 0; l < node->config.n_loads; l++)
		row_w[node->config.loads[l].row] += node->config.loads[l].frac * w;
}

/* Charges of a node's GPUs on each row that carries it. */
static inline void add_charge(ww_control *c, const struct node *node, double charge_w)
{
	for (uint32_t l = 0; l < node->config.n_loads; l++)
		c->rows[node->config.loads[l].row].charge_w += node->config.loads[l].frac * charge_w;
}

/* Whether a limit can be sent to it. */
static inline bool is_ready(const ww_control *c, const struct gpu *gpu)
{
	return !c->nodes[gpu->node].silent && gpu->managed;
}

/* So few watts are free on a row that some are missing, beyond rounding. */
static inline bool is_lack(const struct row *row, double free_w)
{
	return free_w < -MARGIN * row->charge_w;
}

/* A job counts with less than its curve says, by what it draws. */
static inline bool is_clamped(const struct job *job)
{
	return job->told.has_curve && job->curve.p0_w < job->told.curve.p0_w;
}

/* fminf and fmaxf, which are calls; NAN counts as nothing. */
static inline float least_known(float a, float b)
{
	return b < a || a != a ? b : a;
}

static inline float most_known(float a, float b)
{
	return b > a || a != a ? b : a;
}

/* A new leader waits for its nodes to answer. */
static inline bool greets(const ww_control *c)
{
	return c->now.mono_us - c->leads_since_us < GREETING_US;
}

/* ---- control.c ------------------------------------------------------------------------------------------------------- */

/* Nobody tells a successor again. */
void ask_to_store(ww_control *c);

/* ---- registry.c ------------------------------------------------------------------------------------------------------ */

ww_status take_config(ww_control *c, const struct ww_config *config, struct ww_error *err);
ww_status take_job(ww_control *c, const struct ww_job *told, struct ww_error *err);
struct node *find_node(const ww_control *c, uint64_t id);
struct row *find_row(const ww_control *c, uint64_t id);
/* Calls for each GPU of a job that is in the inventory. */
typedef void per_gpu(ww_control *c, struct gpu *gpu, void *context);
static inline void each_gpu(ww_control *c, const struct job *job, per_gpu *call, void *context)
{
	for (uint32_t k = 0; k < job->n_gpus; k++)
		call(c, &c->gpus[job->gpus[k]], context);
}
/* A limit found before the first write is where the GPU returns to, but for what the boot unit wrote. */
void take_found(struct gpu *gpu, const struct ww_node_config *config, float found);
/* Index of the first job with an id not below this. */
uint32_t job_place(const ww_control *c, uint64_t id);
/* The last of the jobs, from a saved state; settle_jobs after the last one. */
ww_status add_told_job(ww_control *c, const struct job *saved, struct ww_error *err);
ww_status settle_jobs(ww_control *c, struct ww_error *err);
/* Frees everything a configuration brought. */
void forget_all(ww_control *c);
ww_status make_room(ww_control *c, struct ww_error *err);

/* ---- heard.c --------------------------------------------------------------------------------------------------------- */

ww_status take_sample(ww_control *c, const struct ww_sample *sample, struct ww_error *err);
ww_status take_ack(ww_control *c, const struct ww_ack *ack, struct ww_error *err);
ww_status take_hello(ww_control *c, const struct ww_hello *hello, struct ww_error *err);

/* ---- leader.c -------------------------------------------------------------------------------------------------------- */

void take_leader(ww_control *c, const struct ww_leader *leader, struct ww_now at);

/* ---- charges.c ------------------------------------------------------------------------------------------------------- */

void update_charges(ww_control *c);
/* Silence in which the node's machine may have gone down and come up again. */
int64_t silence_of_boot_us(const ww_control *c, const struct node *node);
/* Sum of charges per row. */
void sum_charges(ww_control *c);
/* What `node` has shown of the commands sent to it: those before are superseded. */
void supersede(struct node *node, struct ww_fence accepted);
/* A command goes out: it counts until superseded. */
void add_outstanding(ww_control *c, struct node *node, const struct ww_command *command);
/* By the inventory or by what the node says of its boards, the worse of both: after a boot, and at most. */
float boot_limit_w(const ww_control *c, const struct gpu *gpu);
float highest_limit_w(const ww_control *c, const struct gpu *gpu);
/* The limit that a node gives a GPU back when it is released; where it has not told of one, the highest that may be. */
float recorded_limit_w(const ww_control *c, const struct gpu *gpu);
/* The largest limit that the command may bring about on the node's GPU `i`, from step `first` on. A node that it allows to
 * release may restore. */
float top_of(const ww_control *c, const struct ww_command *command, const struct gpu *gpu, uint32_t i, uint32_t first);

/* ---- state.c ---------------------------------------------------------------------------------------------------------- */

/* Inventory and power plan, as they were told. */
void encode_inventory(const ww_control *c, struct ww_buf *b);

/* ---- non_gpu.c ------------------------------------------------------------------------------------------------------- */

ww_status take_meter(ww_control *c, const struct ww_meter *meter, struct ww_now at, struct ww_error *err);
/* A new leader takes the last bounds for old unless readings come by the end of its greetings. */
void wait_for_meters(ww_control *c);
void update_draws(ww_control *c);
void update_lags(ww_control *c);
/* Non-GPU power of a row at a boundary if its GPUs are charged with `charge_w`. */
double non_gpu_at(const struct row *row, int boundary, double charge_w);
/* The largest charge of GPUs with which a budget at this boundary is kept. */
double offer_of(const struct row *row, int boundary, double budget_w);
/* Draws of GPUs as they are now, for baselines. */
void remember_draws(ww_control *c);
/* Mean power of the row at a boundary over the last minutes; NAN = not known. Late readings count when they were taken; where
 * the meter said nothing, what the GPUs drew and what the meter showed beyond them at other times. */
struct baseline {
	double power_w;
	double measured_frac; /* of those minutes, by the meter */
};
struct baseline baseline_of(const struct row *row, int boundary, int64_t wall_us);

/* ---- timeline.c ------------------------------------------------------------------------------------------------------ */

ww_status take_event(ww_control *c, const struct ww_event *told, struct ww_now at, struct ww_error *err);
/* Fills budget, boundary, guard and offer of all rows. */
void update_budgets(ww_control *c);
/* A budget counts that long before it starts. */
int64_t lead_us(const ww_control *c);
/* The offers of all rows for the least budget in [from, to], wall time. */
void offers_between(const ww_control *c, int64_t from_us, int64_t to_us, struct ww_alloc_row *out);
enum ww_event_state event_state(const struct event *event, int64_t wall_us);
/* People disengaged: its budget is not kept. */
bool is_let_go(const ww_control *c, const struct event *event);
/* Moments from which nodes must go lower than before, for commands that carry them ahead; at most STEPS_AHEAD. While nodes
 * are greeted the first one stands for all that have come. */
uint32_t steps_ahead(const ww_control *c, struct ahead *out);

/* ---- demand.c -------------------------------------------------------------------------------------------------------- */

/* Of a job's GPUs that can be steered: the highest draw, and the highest part of a cap that is drawn; NAN = not known. */
struct use {
	float draw_w, frac;
};
/* What a job draws where no cap holds it, and its baseline in use by that. */
void watch_demand(ww_control *c, struct job *job, struct use use);

/* ---- divide.c -------------------------------------------------------------------------------------------------------- */

/* Target and reason of every GPU. */
void divide(ww_control *c);
/* Lets the allocators grow to what all jobs need, so that a step allocates nothing. */
ww_status grow_divisions(ww_control *c, const struct room *room, struct ww_error *err);
/* The division in force is not one of what is known now. */
void forget_division(ww_control *c);
/* A job that was told without a curve begins with what nobody would be surprised by. */
void begin_curve(struct job *job);
/* Makes the division again that a saved state was made from. */
ww_status divide_again(ww_control *c, struct ww_error *err);
/* Cap of a GPU of a job at a cut. */
float cap_at(const ww_control *c, const struct gpu *gpu, const struct job *job, double cut_frac);
float lowest_of(const ww_control *c, const struct gpu *gpu);

/* ---- lean.c ---------------------------------------------------------------------------------------------------------- */

/* Moves whole watts between the GPUs of each job that is divided, by what they draw under the caps that were read back. */
void lean_jobs(ww_control *c);
/* The job is another one now. */
void forget_lean(ww_control *c, struct job *job);

/* ---- orders.c -------------------------------------------------------------------------------------------------------- */

void give_orders(ww_control *c);

#endif
