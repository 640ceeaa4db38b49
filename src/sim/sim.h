/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim: a plant in virtual time: GPUs that regulate their power to a cap, the jobs on them, the rest of the site that
 * follows with lag, and a meter per row. Seeded: the same seed and calls give the same bytes.
 *
 * The model (docs/simulation.md gives the equations and their sources): a cap regulates average power through the clock;
 * boards regulate on their own sensor, so the true draw under a binding cap is cap / (1 + gain). The GPUs of a job run in
 * lock-step at the pace of the slowest; the others wait and draw less than their cap.
 */
#ifndef WW_SIM_H
#define WW_SIM_H

#include "core/core.h"

/* What a job does per iteration, at the full clock; physics of one GPU. */
struct ww_sim_physics {
	double phi, h;                   /* share of the time that follows the clock; share that nothing changes */
	double sm, tensor, dram, nvlink; /* activities 0..1 */
	double x1_tps;                   /* tokens/s per GPU at the full clock */
};

/* The ranges of a family of jobs: "dense-pretrain", "dense-lora", "moe-pretrain", "moe-lora". */
enum ww_sim_family {
	WW_SIM_DENSE_PRETRAIN,
	WW_SIM_DENSE_LORA,
	WW_SIM_MOE_PRETRAIN,
	WW_SIM_MOE_LORA,
	WW_N_SIM_FAMILIES
};
const char *ww_sim_family_name(enum ww_sim_family family); /* static */
/* A draw from the family's ranges; x1_tps log-uniform in its range. */
struct ww_sim_physics ww_sim_draw_family(enum ww_sim_family family, struct ww_rng *rng);
struct ww_sim_physics ww_sim_middle_of(enum ww_sim_family family);

/* One GPU board type. */
struct ww_sim_board {
	double min_w, max_w, default_w;          /* settable limits, limit after a driver load */
	double idle_w;                           /* without a job */
	double static_w, clock_w;                /* Ps, Pclk of the model */
	double sm_w, tensor_w, dram_w, nvlink_w; /* at activity 1 */
	double sag, v_least;                     /* s, vmin: voltage against clock */
	double x_least;                          /* lowest clock / highest clock */
	double dead_us,
		settle_us; /* after a cap is written: nothing happens, then first-order with this time constant */
	double sensor_noise_frac; /* of each second's reading, sd */
	double chip_sd, gain_sd;  /* spread of power factor (clipped 0.9..1.12) and of sensor gain */
	double model_gain_frac;   /* gain that the sensors of all boards have in common, besides; may be below 0 */
	bool duty_sampler;        /* the sensor sees 25 % of the time: more noise while a phase alternates */
};
extern const struct ww_sim_board ww_sim_h200;

struct ww_sim_pause {
	int64_t every_us, for_us; /* 0: never */
	int64_t first_us;         /* of the first one, in the plant's time */
	double power_w;           /* draw per GPU meanwhile */
};

struct ww_sim_job {
	uint64_t id;
	const struct ww_point
		*points; /* replay of a measured sweep: power per GPU, throughput of the job; NULL: physics */
	size_t n_points;
	uint32_t points_gpus; /* GPUs of the measured job, 0 = as many as this job has */
	struct ww_sim_physics physics;
	uint32_t n_gpus;
	const uint32_t *gpus; /* indices into the plant's GPUs; a GPU may carry one job at a time */
	int64_t start_us, end_us;
	struct ww_sim_pause checkpoint, evaluation;
	double jitter_frac; /* sd of its power from second to second while no cap binds; common to its GPUs */
};

struct ww_sim_node {
	uint32_t n_gpus; /* GPUs are numbered node by node */
	double host_w;   /* non-GPU power of the node that does not follow */
	double follow;   /* and watts per watt of its GPUs, with the lag */
	double lag_s;
	double boot_cap_w; /* NAN: no boot unit; a boot leaves the board's default limit */
};

struct ww_sim_load {
	uint32_t node;
	double frac;
};

struct ww_sim_row {
	const struct ww_sim_load *loads; /* nodes on it, with all below */
	size_t n_loads;
	double other_w; /* other non-GPU power at the meter, constant: network, lights */
	double cooling; /* watts at the meter per watt of IT power, on top of it, with cooling_lag_s */
	double cooling_lag_s;
	double meter_noise_frac; /* of each second's reading, sd */
};

/* All borrowed for ww_plant_create. */
struct ww_plant_spec {
	uint64_t seed;
	struct ww_sim_board board;
	uint32_t n_nodes, n_rows, n_jobs;
	const struct ww_sim_node *nodes;
	const struct ww_sim_row *rows;
	const struct ww_sim_job *jobs;
};

typedef struct ww_plant ww_plant;

/* All GPUs at their default limit, lagging powers settled. WW_ERR_RANGE, WW_ERR_INVALID name the thing; WW_ERR_NOMEM. */
ww_status ww_plant_create(const struct ww_plant_spec *spec, ww_plant **out, struct ww_error *err) WW_MUST_CHECK;
void ww_plant_destroy(ww_plant *plant);

/* Lives the second [t, t + 1 s), t = 0 at first. Caps written within it count from their time on. No allocation. */
void ww_plant_second(ww_plant *plant);
int64_t ww_plant_time_us(const ww_plant *plant);

/* Writes a limit at `at_us`, within the second to be lived next or at its end; clipped to the board's range. A node that is
 * off takes none: false. */
bool ww_plant_write(ww_plant *plant, uint32_t gpu, double cap_w, int64_t at_us);

/* A node loses power: draws nothing, its jobs stand still. Power comes back with the default limits or the boot cap. */
void ww_plant_power_off(ww_plant *plant, uint32_t node);
void ww_plant_power_on(ww_plant *plant, uint32_t node, int64_t at_us);

uint32_t ww_plant_gpus(const ww_plant *plant);
double ww_plant_enforced_w(const ww_plant *plant, uint32_t gpu); /* 0 while the node is off */

/* Of the last lived second. */
double ww_plant_gpu_w(const ww_plant *plant, uint32_t gpu); /* true mean draw */
/* What the board says of that second: gain, noise. NAN: no power. */
double ww_plant_sensor_w(const ww_plant *plant, uint32_t gpu);
double ww_plant_row_w(const ww_plant *plant, uint32_t row, int boundary); /* true: 0 gpu, 1 it, 2 meter */
double ww_plant_meter_w(const ww_plant *plant, uint32_t row);             /* what the meter says, at the meter */
double ww_plant_job_tps(const ww_plant *plant, uint32_t job);

enum ww_sim_state { WW_SIM_WAITING, WW_SIM_RUNNING, WW_SIM_CHECKPOINT, WW_SIM_EVALUATION, WW_SIM_DARK, WW_SIM_ENDED };
enum ww_sim_state ww_plant_job_state(const ww_plant *plant, uint32_t job);

/* Noise-free steady state of a job with all its GPUs at one cap: mean power per GPU by the boards' sensors, tokens/s. */
void ww_plant_try(const ww_plant *plant, uint32_t job, double cap_w, double *power_w, double *tps);

/* The lowest cap for all GPUs of a job that costs nothing. */
double ww_plant_free_cap_w(const ww_plant *plant, uint32_t job);

/* The true loss curve of a job, no uncertainty, down to the board's lowest limit, in the terms of caps: of one for all its
 * GPUs, or, `trimmed`, of their mean where none has more than the common pace needs. p0_w = the lowest that costs nothing.
 * WW_ERR_NO_DATA for a job that no cap limits. */
ww_status ww_plant_curve(const ww_plant *plant, uint32_t job, bool trimmed, struct ww_curve *out, struct ww_error *err)
	WW_MUST_CHECK;

#endif
