/* SPDX-License-Identifier: Apache-2.0 */
/*
 * msg: the plain bounded structs that cross between nodes and the cluster's brain, and what that brain is told besides.
 * They hold no pointers (but for struct ww_config, which never leaves the controller), are copied freely, and are the same
 * in one process, on a network, in a journal and in tests.
 *
 * Only durations cross machines, never a monotonic time of another machine. What is not known has a status, never a 0.
 */
#ifndef WW_MSG_H
#define WW_MSG_H

#include "base/base.h"

#define WW_MSG_VERSION 1
#define WW_NAME_MAX 64         /* bytes of a name with its end */
#define WW_NODE_GPUS_MAX 16    /* GPUs of a node */
#define WW_NODE_JOBS_MAX 16    /* jobs with GPUs on a node */
#define WW_STEPS_MAX 12        /* steps of a schedule, the first is now */
#define WW_ROW_LOADS_MAX 12    /* rows that carry a node, with all rows above */
#define WW_JOB_PLACES_MAX 1024 /* nodes of a job */
#define WW_CONFIG_ROWS_MAX 65536
#define WW_CONFIG_NODES_MAX 65536

/* ---- Readings ------------------------------------------------------------------------------------------------------ */

enum ww_reading_status {
	WW_READING_OK = 0,
	WW_READING_STALE,       /* older than the reader allows */
	WW_READING_UNSUPPORTED, /* this device has no such value */
	WW_READING_DENIED,      /* no permission */
	WW_READING_LOST,        /* the device is gone */
	WW_READING_TIMEOUT,     /* no answer in time */
	WW_READING_IMPLAUSIBLE, /* outside of what can be */
	WW_N_READING_STATUS
};

/* A value of a sample: `value` is NAN unless status is OK or STALE. */
struct ww_reading {
	float value;
	uint16_t age_ms; /* against the time of the sample; 65535 = that or more */
	uint8_t status;  /* enum ww_reading_status */
};

static inline bool ww_reading_known(const struct ww_reading *r)
{
	return r->status == WW_READING_OK;
}

/* ---- From nodes ---------------------------------------------------------------------------------------------------- */

/* Order of commands: a higher epoch is a later leader; within an epoch seq rises with each command to a node. */
struct ww_fence {
	uint64_t epoch, seq;
};

/* Below 0, 0, above 0. */
static inline int ww_fence_order(struct ww_fence a, struct ww_fence b)
{
	return a.epoch != b.epoch ? (a.epoch > b.epoch ? 1 : -1) : (a.seq > b.seq) - (a.seq < b.seq);
}

/* Before every message of a node. (start_id, seq) rises strictly, also over restarts and boots. */
struct ww_envelope {
	uint32_t version;
	uint64_t cluster, node; /* ww_hash_text of their names */
	uint64_t boot_id;       /* another one after each boot of the machine */
	uint64_t start_id;      /* rises with each start of the agent */
	uint64_t seq;           /* rises with each message of this start */
	struct ww_fence seen;   /* the highest command ever accepted; kept over restarts and boots */
};

/* What a node knows of one of its GPUs. */
struct ww_gpu_state {
	struct ww_reading enforced_w; /* the limit that the board obeys, read back */
	struct ww_reading draw_w;     /* mean of the last second by the board's sensor */
	float requested_w;            /* written last since this boot, NAN = nothing */
	float target_w;               /* what the node will write again if it finds another limit; NAN = nothing */
	uint8_t step;    /* of the schedule in force: steps before this one will never be carried out again */
	uint8_t held;    /* draw stayed <= 1.02 x enforced for a second since the limit last changed */
	uint8_t managed; /* 0: the node does not write this GPU's limit */
	uint8_t foreign; /* foreign limits found since the start, at most 255 */
};

/* Sent every period. */
struct ww_sample {
	struct ww_envelope from;
	int64_t wall_us; /* of the sample by its node's clock, which ages refer to: for records, never compared with our own */
	uint32_t n_gpus;
	struct ww_gpu_state gpus[WW_NODE_GPUS_MAX];
	uint32_t n_jobs;
	struct {
		uint64_t job;
		struct ww_reading tps; /* tokens/s of this job's GPUs on this node */
	} jobs[WW_NODE_JOBS_MAX];
};

enum ww_ack_verdict {
	WW_ACK_DONE = 0, /* accepted; carried out as far as `gpus` say */
	WW_ACK_OLD,      /* not above the highest seen: refused */
	WW_ACK_LATE,     /* answers a sample that is older than valid_for_us: refused */
	WW_ACK_MALFORMED,
	WW_ACK_NEWS, /* answers no command: something changed (a step, a foreign limit, a lapse) */
	WW_N_ACK_VERDICTS
};

/* Sent after each command, and at once when the state of a GPU's limit changes. */
struct ww_ack {
	struct ww_envelope from;
	struct ww_fence answers; /* the command; 0, 0 for WW_ACK_NEWS */
	uint8_t verdict;         /* enum ww_ack_verdict */
	uint8_t lapsed;          /* the lease has ended */
	uint32_t n_gpus;
	struct ww_gpu_state gpus[WW_NODE_GPUS_MAX];
};

/* Sent at each start, and again every period until a command has been accepted since. */
struct ww_hello {
	struct ww_envelope from;
	uint32_t n_gpus;
	struct {
		uint64_t uuid;
		float min_w, max_w, default_w; /* settable limits; limit after a driver load */
		float recorded_w; /* found before our first write since this boot, NAN = nothing written yet */
		float boot_cap_w; /* set by the boot unit before anything else runs, NAN = no boot unit */
	} limits[WW_NODE_GPUS_MAX];
	struct ww_gpu_state gpus[WW_NODE_GPUS_MAX];
};

/* ---- To nodes ------------------------------------------------------------------------------------------------------ */

enum ww_after {
	WW_AFTER_HOLD = 0, /* when the lease has ended: keep the cap in force */
	WW_AFTER_FAILCAP,  /* write failcap_w */
	WW_AFTER_RESTORE,  /* write the recorded limit */
	WW_N_AFTERS
};

/* From in_us after the command arrived these caps hold, one per GPU. NAN: leave this GPU alone. */
struct ww_step {
	int64_t in_us;
	float cap_w[WW_NODE_GPUS_MAX];
};

/*
 * A lease is a schedule. The node carries it out alone: steps down on time, also when the lease has ended; steps up with a
 * random delay below spread_us, and only while the lease is valid. A higher command replaces it whole.
 */
struct ww_command {
	uint64_t cluster, node;
	struct ww_fence fence;
	uint64_t answers_start_id, answers_seq; /* of the newest message known of the node; 0, 0 = none */
	int64_t valid_for_us;
	int64_t spread_us;
	uint64_t event;           /* for which it was sent, 0 = none */
	uint8_t after;            /* enum ww_after */
	uint8_t release_ok;       /* 0 while a budget binds a row of the node: stopping must leave the caps */
	uint32_t n_gpus, n_steps; /* n_steps >= 1; step[0].in_us is 0, in_us rises */
	struct ww_step step[WW_STEPS_MAX];
	float failcap_w[WW_NODE_GPUS_MAX];
};

/* ---- To the brain from its own side -------------------------------------------------------------------------------- */

/* GPUs of a job on a node, as bits. */
struct ww_place {
	uint64_t node;
	uint32_t gpus;
};

/* A job starts, changes (same id) or ends (n_places 0; then only id and name count). */
struct ww_job {
	uint64_t id;
	char name[WW_NAME_MAX];
	int32_t tier;      /* 0..3 */
	double floor_frac; /* promised least T/T0 */
	double weight;     /* > 0 */
	bool has_curve;
	struct ww_curve curve; /* p0_w in the terms of caps: draw per GPU by its sensor where no cap binds */
	uint32_t n_places;
	struct ww_place places[WW_JOB_PLACES_MAX];
};

enum ww_boundary { WW_BOUNDARY_GPU = 0, WW_BOUNDARY_IT, WW_BOUNDARY_METER, WW_N_BOUNDARIES };
enum ww_class { WW_CLASS_CONTRACT = 0, WW_CLASS_PROTECTION, WW_N_CLASSES };

/* "gpu", "it", "meter"; "contract", "protection". Static. */
const char *ww_boundary_name(enum ww_boundary boundary);
const char *ww_class_name(enum ww_class cls);

/* A budget on a row for some time. The same id replaces it when its version is higher. */
struct ww_event {
	uint64_t id;
	uint32_t version;
	bool cancelled;
	uint64_t row;
	uint8_t boundary, cls;    /* enum ww_boundary, enum ww_class */
	int64_t start_us, end_us; /* wall time; end_us WW_NEVER_US = until cancelled */
	double limit_w;           /* NAN: by cut_frac */
	double cut_frac;          /* of the row's mean power over the ten minutes before it was accepted */
	int64_t ramp_down_us;     /* from start_us on the budget falls linearly to the limit; 0 = at once */
	int64_t ramp_up_us;       /* the same after end_us, upwards */
};

/* A power meter's reading: mean of its last second. */
struct ww_meter {
	uint64_t row;
	struct ww_reading power_w;
};

struct ww_leader {
	uint64_t epoch; /* above every earlier one */
	bool leads;     /* false: another one leads; decisions carry no commands */
};

/* What people let control do. Decreases are never held back. */
enum ww_mode {
	WW_MODE_ENFORCE = 0, /* budgets are kept, what they leave is given back */
	WW_MODE_FREEZE,      /* no limit is raised, by no command, lease's end or release */
	WW_MODE_DISENGAGE, /* budgets of events of class contract are let go and limits restored in steps; rows' own limits
	                        and protection events are kept */
	WW_N_MODES
};

/* "enforce", "freeze", "disengage". Static. */
const char *ww_mode_name(enum ww_mode mode);

/* ---- Inventory and power plan -------------------------------------------------------------------------------------- */

/*
 * A breaker, feed, rack or node. Non-GPU power on it at a boundary is bounded by the meter where there is one at that
 * boundary: what the meter shows beyond the GPUs' own sensors. Elsewhere by fixed_w + follow x power of its GPUs.
 */
struct ww_row {
	uint64_t id;
	char name[WW_NAME_MAX];
	double limit_w;   /* always in force; INFINITY = none */
	uint8_t boundary; /* of limit_w; enum ww_boundary */
	bool has_meter;
	uint8_t meter_boundary;
	double fixed_w[WW_N_BOUNDARIES]; /* upper bound of non-GPU power that does not follow; at WW_BOUNDARY_GPU 0 */
	double follow[WW_N_BOUNDARIES];  /* upper bound of non-GPU watts per watt of GPU; at WW_BOUNDARY_GPU 0 */
	double guard_frac;               /* of the budget, kept free */
};

struct ww_row_load {
	uint32_t row; /* index into the configuration's rows */
	float frac;   /* of the node's power that it carries, 0..1; a node with two feeds loads each with 0.5 */
};

struct ww_node_config {
	uint64_t id;
	char name[WW_NAME_MAX];
	uint32_t n_gpus;
	float min_w, max_w, default_w; /* settable limits of each GPU; limit after a driver load */
	float boot_cap_w;              /* NAN: no boot unit */
	int64_t shortest_boot_us;
	uint32_t n_loads; /* rows that carry it, every level */
	struct ww_row_load loads[WW_ROW_LOADS_MAX];
};

/* Whether watts are moved among the GPUs of a job, so that all reach the same pace. */
enum ww_trim { WW_TRIM_ON = 0, WW_TRIM_OFF, WW_N_TRIMS };

/* Borrowed for the call it is given to. */
struct ww_config {
	uint64_t cluster;
	uint32_t objective;   /* enum ww_objective */
	int64_t valid_for_us; /* lease */
	int64_t settle_us;    /* p99 from a command to the draw under the new cap */
	uint8_t after;        /* enum ww_after */
	uint8_t trim;         /* enum ww_trim */
	uint32_t n_rows, n_nodes;
	const struct ww_row *rows;
	const struct ww_node_config *nodes;
};

/* ---- encode.c: each struct as bytes, and back ----------------------------------------------------------------------- */

/* Writers take what passes its check. Readers check every bound and enum and every number that must be finite; after a
 * mistake read->bad is set and the struct is not to be used. Bytes behind the struct are not looked at: who reads a whole
 * message checks that read->at is read->n. */
void ww_encode_sample(struct ww_buf *buf, const struct ww_sample *v);
void ww_encode_ack(struct ww_buf *buf, const struct ww_ack *v);
void ww_encode_hello(struct ww_buf *buf, const struct ww_hello *v);
void ww_encode_command(struct ww_buf *buf, const struct ww_command *v);
void ww_encode_job(struct ww_buf *buf, const struct ww_job *v);
void ww_encode_event(struct ww_buf *buf, const struct ww_event *v);
void ww_encode_meter(struct ww_buf *buf, const struct ww_meter *v);
void ww_encode_leader(struct ww_buf *buf, const struct ww_leader *v);
void ww_encode_config(struct ww_buf *buf, const struct ww_config *v);

void ww_decode_sample(struct ww_read *read, struct ww_sample *v);
void ww_decode_ack(struct ww_read *read, struct ww_ack *v);
void ww_decode_hello(struct ww_read *read, struct ww_hello *v);
void ww_decode_command(struct ww_read *read, struct ww_command *v);
void ww_decode_job(struct ww_read *read, struct ww_job *v);
void ww_decode_event(struct ww_read *read, struct ww_event *v);
void ww_decode_meter(struct ww_read *read, struct ww_meter *v);
void ww_decode_leader(struct ww_read *read, struct ww_leader *v);
/* rows and nodes are allocated; ww_config_finish frees them. Nothing is allocated when read->bad is set. */
void ww_decode_config(struct ww_read *read, struct ww_config *v);
void ww_config_finish(struct ww_config *v);

/* check.c: what a message must satisfy whoever sent it, beyond what decoding can see: counts and enums in range, caps
 * finite or NAN, in_us rising, gpus bits within the node. The text names the field. Durations are 0 to 400 days, so that
 * sums with the time stay in range. A curve that passes is one that ww_alloc_set takes. WW_ERR_UNSUPPORTED: a message of
 * another version. */
ww_status ww_check_sample(const struct ww_sample *v, struct ww_error *err) WW_MUST_CHECK;
ww_status ww_check_ack(const struct ww_ack *v, struct ww_error *err) WW_MUST_CHECK;
ww_status ww_check_hello(const struct ww_hello *v, struct ww_error *err) WW_MUST_CHECK;
ww_status ww_check_command(const struct ww_command *v, struct ww_error *err) WW_MUST_CHECK;
ww_status ww_check_job(const struct ww_job *v, struct ww_error *err) WW_MUST_CHECK;
ww_status ww_check_event(const struct ww_event *v, struct ww_error *err) WW_MUST_CHECK;
ww_status ww_check_meter(const struct ww_meter *v, struct ww_error *err) WW_MUST_CHECK;
/* Ids unique, loads name rows that exist, min <= default <= max, boot_cap within min..max. */
ww_status ww_check_config(const struct ww_config *v, struct ww_error *err) WW_MUST_CHECK;

#endif
