/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files: readers of files that people and other programs write. Every mistake is one line that names file, line,
 * column and remedy; nothing is guessed, and a file with a mistake gives no data at all.
 */
#ifndef WW_FILES_H
#define WW_FILES_H

#include "base/base.h"

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

#endif
