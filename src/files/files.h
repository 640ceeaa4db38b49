/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files: readers of files that people and other programs write. Every mistake is one line that names file, line,
 * column and remedy; nothing is guessed, and a file with a mistake gives no data at all.
 */
#ifndef WW_FILES_H
#define WW_FILES_H

#include "msg/msg.h"

#include <stdio.h>

/* ---- sweep.c: measured cap sweeps (format: docs/sweep-format.md) --------------------------------------------------- */

/* All measurements of one job (one model, configuration and GPU type), in file order. */
struct ww_sweep_group {
	char *name;
	char *gpu_model; /* "" when the file does not say */
	unsigned gpus;   /* 0 when the file does not say */
	size_t n_points;
	struct ww_point *points;
	double *telemetry; /* n_points rows of sweep.n_telemetry values, NAN = not recorded; NULL when none */
};

struct ww_sweep {
	char *file;         /* name as given, for messages and reports */
	const char *format; /* "wattweir", "zeus", "emerald" or "map"; static */
	size_t n_groups;
	struct ww_sweep_group *groups; /* in order of first appearance */
	size_t n_telemetry;
	char **telemetry; /* column names, units in the names */
};

/*
 * Reads a sweep; the path "-" is standard input. `map` is NULL (own format, or a foreign table known by its columns) or
 * the text of --map: "throughput=COL,power=COL,cap=COL,group=COL+COL", optionally "rep=COL", "throughput_se=COL",
 * "power_se=COL", "gpus=COL", "gpu_model=COL", "throttle_reasons=COL"; "throughput=1/COL" takes the inverse of a time. A
 * name with ',' (or '+' in a group) stands in double quotes.
 *
 * On success the caller owns *out and ends it with ww_sweep_finish: it has at least one group, each group at least one
 * point, and names are UTF-8 without control characters. On failure *out is untouched:
 *   WW_ERR_INVALID a mistake in the text or the map, WW_ERR_RANGE a number outside its range or out of all proportion, WW_ERR_NO_DATA no rows,
 *   WW_ERR_UNSUPPORTED a later version of the format, WW_ERR_NOT_FOUND no such file, WW_ERR_IO, WW_ERR_NOMEM.
 * Memory is bounded by the rows kept, at most 128 KiB are held of the text, and no line beyond 64 KiB is read to its end.
 */
ww_status ww_sweep_read(const char *path, const char *map, struct ww_sweep *out, struct ww_error *err) WW_MUST_CHECK;

/* The same from an open stream; `name` stands for the file in messages. */
ww_status ww_sweep_parse(FILE *in, const char *name, const char *map, struct ww_sweep *out, struct ww_error *err)
	WW_MUST_CHECK;

/* Reads the text of --map alone: WW_ERR_INVALID where ww_sweep_read would find a mistake in it, whatever the file. */
ww_status ww_sweep_check_map(const char *map, struct ww_error *err) WW_MUST_CHECK;

/* Frees what the sweep holds; the struct may be reused. NULL and zeroed structs are fine. */
void ww_sweep_finish(struct ww_sweep *sweep);

/* ---- cluster.c: power rows and the jobs on them (format: wattweir-cluster(5)) -------------------------------------- */

/* A breaker, feed or rack. */
struct ww_cluster_row {
	char *name;     /* unique */
	double limit_w; /* above 0 */
	double fixed_w; /* 0 to limit_w: everything on it that is not a GPU of a job, also what its lower rows carry */
	size_t line;    /* where the file defines it, for messages */
};

struct ww_cluster_job {
	char *name;          /* unique */
	char *sweep;         /* group of the sweep file; the job's name unless given */
	uint32_t gpus;       /* 1 or more */
	int tier;            /* 0..3; 3 unless given */
	double floor_frac;   /* 0..1: as given, or the tier's (1.00, 0.90, 0.75, 0.50); 0 when neither is given */
	double weight;       /* above 0; 1 unless given */
	double min_w, max_w; /* lowest and highest cap per GPU, NAN = not given; min_w <= max_w */
	/* GPUs on every row that carries some of the job, directly or through lower rows, part loads counted; rows rise, none
	 * twice, none with more than `gpus`. NULL when the file has no rows. Fits ww_alloc_job.rows as it is. */
	size_t n_loads;
	struct ww_row_share *loads;
	size_t line;
};

struct ww_cluster {
	char *file; /* name as given, for messages and reports */
	size_t n_rows;
	struct ww_cluster_row *rows; /* in file order; struct ww_row_share.row is an index here */
	size_t n_jobs;
	struct ww_cluster_job *jobs; /* in file order, at least one */
};

/*
 * Reads a cluster file; the path "-" is standard input. On success the caller owns *out and ends it with
 * ww_cluster_finish; names are UTF-8 without control characters. On failure *out is untouched:
 *   WW_ERR_INVALID a mistake in the text, WW_ERR_RANGE a number outside its range, WW_ERR_NO_DATA an empty file,
 *   WW_ERR_UNSUPPORTED a later version of the format, WW_ERR_NOT_FOUND no such file,
 *   WW_ERR_IO, WW_ERR_NOMEM.
 * At most 16 MiB are read. The order of rows and jobs in the file, and of rows before or behind jobs, does not matter.
 */
ww_status ww_cluster_read(const char *path, struct ww_cluster *out, struct ww_error *err) WW_MUST_CHECK;

/* The same from an open stream; `name` stands for the file in messages. */
ww_status ww_cluster_parse(FILE *in, const char *name, struct ww_cluster *out, struct ww_error *err) WW_MUST_CHECK;

/* Frees what the cluster holds; the struct may be reused. NULL and zeroed structs are fine. */
void ww_cluster_finish(struct ww_cluster *cluster);

/* ---- scenario.c: a whole cluster for some virtual time (format: wattweir-scenario(5)) ------------------------------ */

/* Times are virtual, from the beginning of the scenario. Plain values: what a key means is told in the manual page. */
struct ww_scenario_gpu {
	double min_w, max_w, default_w, idle_w; /* min_w <= default_w <= max_w */
	double chip_sd, gain_sd, sensor_noise_frac;
	int64_t dead_us, settle_us;
	bool duty_sampler;
};

struct ww_scenario_row {
	char *name;       /* unique */
	double limit_w;   /* INFINITY = none */
	uint8_t boundary; /* of limit_w; enum ww_boundary */
	bool has_meter;   /* at the boundary "meter" */
	double meter_noise_frac;
	double other_w;      /* constant power at the meter beside its nodes, with that of the rows it feeds */
	double cooling_frac; /* watts at the meter per watt of IT power, on top of it */
	int64_t cooling_lag_us;
	double guard_frac;
	size_t n_loads; /* nodes on it, directly or through lower rows; they rise */
	struct ww_scenario_load {
		uint32_t node;
		double frac;
	} * loads;
	size_t line; /* where the file defines it, for messages */
};

struct ww_scenario_node {
	char *name; /* unique; of a count: NAME-1 and so on */
	uint32_t gpus, first_gpu;
	double host_w, follow_frac;
	int64_t lag_us, boot_us;
	double boot_cap_w; /* NAN = no boot unit */
	uint32_t n_loads;  /* rows that carry it, every level; they rise */
	struct ww_row_load loads[WW_ROW_LOADS_MAX];
	size_t line;
};

/* In the order of enum ww_sim_family. */
enum ww_scenario_family {
	WW_SCENARIO_DENSE_PRETRAIN,
	WW_SCENARIO_DENSE_LORA,
	WW_SCENARIO_MOE_PRETRAIN,
	WW_SCENARIO_MOE_LORA,
	WW_N_SCENARIO_FAMILIES
};

enum ww_scenario_model { WW_SCENARIO_FAMILY, WW_SCENARIO_SWEEP, WW_SCENARIO_PHYSICS };

struct ww_scenario_pause {
	int64_t every_us, for_us, first_us; /* every_us 0: never */
	double power_w;                     /* per GPU */
};

struct ww_scenario_job {
	char *name; /* unique; of a count: NAME-1 and so on */
	enum ww_scenario_model model;
	enum ww_scenario_family family; /* WW_SCENARIO_FAMILY: the rest is drawn from its ranges */
	char *sweep,
		*group; /* WW_SCENARIO_SWEEP: path to open (relative ones begin at the scenario), group in it; else NULL */
	struct {
		double phi, h, sm, tensor, dram, nvlink;
	} physics;             /* WW_SCENARIO_PHYSICS */
	double tokens_tps;     /* per GPU at its full clock; NAN = drawn from the family, or as the sweep says */
	double jitter_frac;    /* of its power, from second to second */
	uint32_t n_gpus, tier; /* tier 0..3 */
	uint32_t *gpus;        /* numbered through all nodes; no GPU carries two jobs at one time; they rise */
	double floor_frac, weight;
	int64_t start_us, end_us; /* WW_NEVER_US = it does not end */
	struct ww_scenario_pause checkpoint, evaluation;
	size_t line;
};

#define WW_SCENARIO_CUTS_MAX 8

/* What control knows of the jobs. */
struct ww_scenario_curves {
	enum { WW_CURVES_NONE, WW_CURVES_FITTED, WW_CURVES_KNOWN } kind;
	size_t n_cuts; /* FITTED: from the baseline and these cuts of each GPU's draw, which rise */
	double cut_frac[WW_SCENARIO_CUTS_MAX];
	double noise_frac; /* sd of each measured throughput */
};

/* An event as it is announced, changed (same name, version 2 and up) or cancelled. */
struct ww_scenario_event {
	char *name;
	uint32_t version; /* 1 = the first announcement; entries of one event follow each other */
	bool cancelled;
	uint32_t row;
	uint8_t boundary, cls;            /* enum ww_boundary, enum ww_class */
	int64_t at_us, start_us, end_us;  /* at_us: told to control; end_us WW_NEVER_US = until cancelled */
	double limit_w, cut_frac;         /* one of them is NAN */
	int64_t ramp_down_us, ramp_up_us; /* 0 = at once */
	size_t line;
};

/* From when on people let control do what. */
struct ww_scenario_mode {
	int64_t at_us;
	uint8_t mode; /* enum ww_mode */
};

/* As struct ww_wire_faults. */
struct ww_scenario_wire {
	double loss_frac, double_frac, late_frac;
	int64_t delay_least_us, delay_most_us, late_most_us;
};

#define WW_SCENARIO_LATE_MAX_S 60

/* In the order of enum ww_fault_kind. */
enum ww_scenario_fault_kind {
	WW_SCENARIO_AGENT_CRASH,
	WW_SCENARIO_REBOOT,
	WW_SCENARIO_CONTROLLER_CRASH,
	WW_SCENARIO_CONTROLLER_ZOMBIE,
	WW_SCENARIO_FOREIGN,
	WW_SCENARIO_CUT,
	WW_SCENARIO_METER,
	WW_SCENARIO_JOURNAL,
	WW_SCENARIO_DEAD,
	WW_SCENARIO_HUNG_GPU,
	WW_SCENARIO_METER_LATE,
	WW_N_SCENARIO_FAULTS
};

struct ww_scenario_fault {
	enum ww_scenario_fault_kind kind;
	int64_t at_us, until_us; /* FOREIGN: the same; DEAD: WW_NEVER_US */
	uint32_t node;           /* METER, METER_LATE: the row */
	uint32_t gpu;            /* FOREIGN, HUNG_GPU: of the node */
	double value_w;          /* FOREIGN: the limit written; else NAN */
	int64_t by_us;           /* METER_LATE: so late are its readings, whole seconds */
	size_t line;
};

struct ww_scenario {
	char *file; /* name as given, for messages and reports */
	char *name;
	uint64_t seed;
	int64_t duration_us, period_us; /* whole seconds */
	uint32_t objective;             /* enum ww_objective */
	int64_t lease_us, settle_us;    /* ww_config: valid_for_us, settle_us */
	uint8_t after;                  /* enum ww_after */
	uint8_t trim;                   /* enum ww_trim */
	bool reassert_lower;            /* as of struct ww_node_options */
	struct ww_scenario_gpu gpu;
	struct ww_scenario_curves curves;
	struct ww_scenario_wire wire;
	uint32_t n_gpus; /* of all nodes */
	size_t n_rows, n_nodes, n_jobs, n_events, n_faults, n_modes;
	struct ww_scenario_row *rows;   /* in file order, at least one */
	struct ww_scenario_node *nodes; /* in file order, at least one */
	struct ww_scenario_job *jobs;   /* in file order, at least one */
	struct ww_scenario_event *events;
	struct ww_scenario_fault *faults; /* at_us rises */
	struct ww_scenario_mode *modes;   /* at_us rises */
};

/*
 * Reads a scenario; the path "-" is standard input. On success the caller owns *out and ends it with ww_scenario_finish;
 * names are UTF-8 without control characters, shorter than WW_NAME_MAX. On failure *out is untouched; the errors are those
 * of ww_cluster_read. Sweeps that jobs name are not opened.
 */
ww_status ww_scenario_read(const char *path, struct ww_scenario *out, struct ww_error *err) WW_MUST_CHECK;

/* The same from an open stream; `name` stands for the file in messages, and relative sweeps begin at its directory. */
ww_status ww_scenario_parse(FILE *in, const char *name, struct ww_scenario *out, struct ww_error *err) WW_MUST_CHECK;

/* Frees what the scenario holds; the struct may be reused. NULL and zeroed structs are fine. */
void ww_scenario_finish(struct ww_scenario *scenario);

/* ---- journal.c: what the brain was told and what it decided, to go through it again ---------------------------------- */

/*
 * A journal begins with a saved state; after it come the inputs and steps in their order, and after each step its decision.
 * Another state follows where another controller takes charge. The last frame is its end: without it, the journal was cut
 * short or its writer was stopped. It is written into a buffer first, which may be moved to a file piece by piece: between
 * frames, at any time.
 */
enum ww_frame_kind {
	WW_FRAME_NONE = 0, /* the end of the file */
	WW_FRAME_STATE,    /* as ww_control_save wrote it */
	WW_FRAME_INPUT,    /* as ww_input_encode wrote it */
	WW_FRAME_STEP,     /* the time of a step */
	WW_FRAME_DECISION, /* as ww_decision_encode wrote it: of the step before */
	WW_FRAME_END       /* how many frames come before it */
};

#define WW_FRAME_BYTES_MAX (64u << 20) /* of a payload */

/* Once at the start of a file. These only append; as with ww_buf_*, buf->failed tells of a lack of memory, here also
 * of a payload that is too long. */
void ww_journal_begin(struct ww_buf *buf);

/* A frame's payload is what is appended to `buf` between these two. To take a frame back that was begun, set buf->n to what
 * ww_frame_begin returned. */
size_t ww_frame_begin(struct ww_buf *buf, enum ww_frame_kind kind);
void ww_frame_end(struct ww_buf *buf, size_t begin);

void ww_frame_step(struct ww_buf *buf, struct ww_now now); /* a whole frame */

/* A journal on its way to a file. */
struct ww_journal_out {
	FILE *out;         /* borrowed */
	const char *name;  /* borrowed; stands for the file in messages */
	uint64_t n_frames; /* written so far */
};

/* Appends all of `buf` to the file and empties it, or leaves it as it is and fails: WW_ERR_IO, WW_ERR_NOMEM where
 * buf->failed. Whether it is on disk is for who closes it. */
ww_status ww_journal_write(struct ww_journal_out *to, struct ww_buf *buf, struct ww_error *err) WW_MUST_CHECK;

/* The same, and the end of the journal behind it. */
ww_status ww_journal_write_end(struct ww_journal_out *to, struct ww_buf *buf, struct ww_error *err) WW_MUST_CHECK;

struct ww_journal {
	FILE *in;         /* borrowed */
	const char *name; /* borrowed; stands for the file in messages */
	uint64_t at, n_frames;
	bool ended; /* WW_FRAME_END was read */
	struct ww_buf payload;
};

struct ww_frame {
	enum ww_frame_kind kind;
	uint64_t number, at;  /* counted from 1; byte of the file at which it starts */
	const uint8_t *bytes; /* payload; borrowed until the next call with the journal */
	size_t n;
	struct ww_now now; /* of WW_FRAME_STEP */
};

/* Reads the first line. WW_ERR_INVALID no journal, WW_ERR_UNSUPPORTED one of another version, WW_ERR_NO_DATA an empty file,
 * WW_ERR_IO. `out` is untouched on failure. */
ww_status ww_journal_open(FILE *in, const char *name, struct ww_journal *out, struct ww_error *err) WW_MUST_CHECK;

/* Frees what it holds; the file stays open. Zeroed structs are fine. */
void ww_journal_finish(struct ww_journal *journal);

/* The next frame, WW_FRAME_NONE at the end of the file; the journal is whole if it has `ended` then. Memory is bounded by the
 * longest frame there is. WW_ERR_NO_DATA: the file ends within a frame, as when its writer was killed; WW_ERR_INVALID damaged,
 * an end that counts other frames than there are, or anything behind it, WW_ERR_UNSUPPORTED of an unknown kind, WW_ERR_IO,
 * WW_ERR_NOMEM. `out` is untouched on failure, and the journal cannot be read on. */
ww_status ww_journal_next(struct ww_journal *journal, struct ww_frame *out, struct ww_error *err) WW_MUST_CHECK;

#endif
