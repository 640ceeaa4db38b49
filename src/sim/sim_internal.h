/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of sim. */
#ifndef WW_SIM_INTERNAL_H
#define WW_SIM_INTERNAL_H

#include "sim/sim.h"

/* ---- noise: a number from a place and a time, so that nothing is drawn that nobody asks for -------------------------- */

/* The finaliser of splitmix64. */
static inline uint64_t sim_mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
	return z ^ (z >> 31);
}

/* Mean 0, sd 1, within +-3.46: the sum of four uniforms. */
static inline double sim_noise(uint64_t seed, uint64_t place)
{
	uint64_t z = sim_mix(seed + (place + 1) * 0x9E3779B97F4A7C15u);
	int32_t sum = (int32_t)((z & 0xFFFF) + (z >> 16 & 0xFFFF) + (z >> 32 & 0xFFFF) + (z >> 48));
	return (sum - 131070) * (1.7320508075688772 / 65536);
}

/* e^-x for x >= 0, the same bits on every machine, to 1e-13. */
double sim_decay(double x);

/* ---- table.c: what a job does against the clock ---------------------------------------------------------------------- */

/* A GPU whose chip takes q times the power draws base_w + q chip_w; tps of the job. Both rise from knot to knot. */
struct sim_knot {
	float base_w, chip_w, tps;
};

/* The same between knots. */
struct sim_pace {
	double base_w, chip_w, tps;
	double key_base, key_chip; /* base + q chip must not exceed a cap */
};

/* A place between knots is a fractional index: n - 1 is the full clock. */
struct sim_table {
	uint32_t n;
	struct sim_knot *at;
	float *caps_w; /* of a replay: the caps at which the knots were measured; else NULL */
};

ww_status sim_table_create(const struct ww_sim_board *board, const struct ww_sim_job *job, struct sim_table *out,
                           struct ww_error *err) WW_MUST_CHECK;
void sim_table_finish(struct sim_table *table);

/* The highest place up to `most` that a GPU may run at under a cap in true watts; 0 also where the cap cannot be held. */
double sim_table_place(const struct sim_table *table, double chip, double cap_w, double most);
struct sim_pace sim_table_at(const struct sim_table *table, double place);

/* In place: the nearest sequence in least squares that does not fall. `v` steps by `stride` doubles. */
void sim_make_rising(double *v, size_t stride, size_t n);

/* May a GPU run so fast? */
static inline bool sim_allows(const struct sim_pace *pace, double chip, double cap_w)
{
	return pace->key_base + chip * pace->key_chip <= cap_w * (1 + 1e-9);
}

/* What a GPU draws there; never a rounding error above a cap that it holds. */
static inline double sim_power(const struct sim_pace *pace, double chip, double cap_w)
{
	double w = pace->base_w + chip * pace->chip_w;
	return w > cap_w && w < cap_w * (1 + 1e-8) ? cap_w : w;
}

/* fmin and fmax are calls. */
static inline double sim_lesser(double a, double b)
{
	return a < b ? a : b;
}

/* ---- check.c ------------------------------------------------------------------------------------------------------------ */

ww_status sim_check_spec(const struct ww_plant_spec *spec, struct ww_error *err) WW_MUST_CHECK;

/* ---- plant.c, second.c -------------------------------------------------------------------------------------------------- */

#define SIM_PENDING 2
#define SIM_NO_JOB UINT32_MAX

struct sim_job {
	int64_t next_us;    /* next change of state */
	int64_t write_us;   /* next cap that starts to count */
	int64_t settled_us; /* from here on nothing is left of the last change */
	uint32_t first, n;  /* its GPUs in job_gpus */
	uint32_t slowest;   /* the one that holds the pace */
	enum ww_sim_state state;
	double jitter_frac, jitter;  /* and its factor in this second */
	bool binds;                  /* a cap holds the job below the full clock */
	bool lagging;                /* the GPUs' lags are not all 0 */
	bool changed;                /* a cap was changed otherwise than by a write */
	bool busy;                   /* this second is lived in pieces */
	bool fresh;                  /* the last one was */
	double place, slowest_cap_w; /* of the one that holds the pace; NAN: not known yet */
	double tps, lag_tps;         /* steady state, and what the last change left of the one before */
	double mean_tps;             /* of the last second */
	struct sim_table table;
	int64_t start_us, end_us;
	struct ww_sim_pause checkpoint, evaluation;
};

/* A cap that was written and does not count yet. */
struct sim_write {
	int64_t at_us;
	double cap_w;
};

struct sim_node {
	uint32_t first, n; /* its GPUs */
	int64_t on_us;     /* has power since; WW_NEVER_US: off */
	int64_t busy_us;   /* lived in pieces until then */
	double host_w, follow;
	double decay, mean; /* what a second leaves of a lag, and its mean over the second */
	double lagged_w;    /* its GPUs' power as the host follows it */
	double boot_cap_w;
	double gpu_w, all_w; /* of the last second */
};

struct sim_row {
	uint32_t first, n; /* loads */
	double other_w, cooling, decay, mean, lagged_w, noise_frac;
	double w[3]; /* of the last second, by boundary */
};

struct ww_plant {
	struct ww_sim_board board;
	uint64_t seed, second_seed; /* of the plant; of the last second */
	int64_t now_us;
	int64_t all_on_us; /* from then on every node has power, as far as is known */
	double settle_s;
	uint32_t n_gpus, n_nodes, n_rows, n_jobs;

	/* Per GPU. */
	double *chip, *gain;
	double *written_w;        /* limit by the board's sensor */
	double *cap_w;            /* the limit that counts, in true watts */
	double *steady_w, *lag_w; /* of its job; lag: what is left of the draw before the last change */
	double *mean_w;           /* of the last second */
	uint32_t *node_of, *job_of;
	struct sim_write *writes; /* SIM_PENDING each, in the order of writing */
	uint8_t *n_writes;

	struct sim_node *nodes;
	struct sim_row *rows;
	struct ww_sim_load *loads;
	struct sim_job *jobs;
	uint32_t *order; /* jobs by their start: a GPU's earlier job is lived first */
	uint32_t *job_gpus;
};

/* The state of a job at a time, and when it changes next (changes by power loss are not foreseen). */
enum ww_sim_state sim_job_state(const ww_plant *plant, const struct sim_job *job, int64_t at_us);

/* Brings a job to the state that it has at this time: caps, phase, steady state. */
void sim_job_bring(ww_plant *plant, uint32_t job, int64_t at_us);

/* The power of one of its GPUs now. */
double sim_job_gpu_w(const ww_plant *plant, const struct sim_job *job, uint32_t gpu);

/* Sums over nodes and rows with the GPUs' means as they are; `settled`: lags have caught up. */
void sim_sum(ww_plant *plant, bool settled);

#endif
