/* SPDX-License-Identifier: Apache-2.0 */
/* Families of jobs and the board: numbers and their sources are in docs/simulation.md. */
#include "sim/sim_internal.h"

const struct ww_sim_board ww_sim_h200 = {
	.min_w = 200,
	.max_w = 700,
	.default_w = 700,
	.idle_w = 75,
	.static_w = 78,
	.clock_w = 36,
	.sm_w = 316,
	.tensor_w = 1184,
	.dram_w = 129,
	.nvlink_w = 40,
	.sag = 0.70,
	.v_least = 0.66,
	.x_least = 0.174,
	.dead_us = 15000,
	.settle_us = 100000,
	.sensor_noise_frac = 0.003,
	.chip_sd = 0.04,
	.gain_sd = 0.02,
	.duty_sampler = false,
};

struct range {
	double lo, hi;
};

struct family {
	const char *name;
	struct range phi, h, sm, tensor, dram, nvlink;
	double least_tps, ln_tps; /* log-uniform from least_tps to least_tps e^ln_tps */
};

static const struct family families[WW_N_SIM_FAMILIES] = {
	[WW_SIM_DENSE_PRETRAIN] = {"dense-pretrain",
                                   {0.86, 0.97},
                                   {0, 0.02},
                                   {0.90, 0.98},
                                   {0.42, 0.66},
                                   {0.25, 0.42},
                                   {0.10, 0.35},
                                   1400,
                                   2.3376764}, /* 14,500 */
	[WW_SIM_DENSE_LORA] = {"dense-lora",
                               {0.74, 0.93},
                               {0.01, 0.04},
                               {0.80, 0.95},
                               {0.30, 0.52},
                               {0.30, 0.50},
                               {0.05, 0.25},
                               2200,
                               2.3025851}, /* 22,000 */
	[WW_SIM_MOE_PRETRAIN] = {"moe-pretrain",
                                 {0.52, 0.88},
                                 {0.01, 0.05},
                                 {0.70, 0.90},
                                 {0.18, 0.34},
                                 {0.30, 0.50},
                                 {0.25, 0.60},
                                 4500,
                                 1.2039728}, /* 15,000 */
	[WW_SIM_MOE_LORA] = {"moe-lora",
                             {0.20, 0.62},
                             {0.03, 0.12},
                             {0.50, 0.80},
                             {0.08, 0.20},
                             {0.25, 0.50},
                             {0.10, 0.40},
                             2500,
                             1.5686159}, /* 12,000 */
};

const char *ww_sim_family_name(enum ww_sim_family family)
{
	return (unsigned)family < WW_N_SIM_FAMILIES ? families[family].name : "unknown";
}

static double within(struct range r, double u)
{
	return r.lo + (r.hi - r.lo) * u;
}

/* Physics from places 0..1 in the family's ranges. */
struct places {
	double phi, h, sm, tensor, dram, nvlink, tps;
};

static struct ww_sim_physics physics_at(const struct family *f, const struct places *u)
{
	return (struct ww_sim_physics){
		.phi = within(f->phi, u->phi),
		.h = within(f->h, u->h),
		.sm = within(f->sm, u->sm),
		.tensor = within(f->tensor, u->tensor),
		.dram = within(f->dram, u->dram),
		.nvlink = within(f->nvlink, u->nvlink),
		.x1_tps = f->least_tps / sim_decay(f->ln_tps * u->tps),
	};
}

/* A uniform number moved by `by` and mirrored at the ends is uniform again. */
static double mirrored(double u)
{
	return u < 0 ? -u : u > 1 ? 2 - u : u;
}

#define LATENT_SPREAD 0.6 /* of phi's place around that of tensor */

struct ww_sim_physics ww_sim_draw_family(enum ww_sim_family family, struct ww_rng *rng)
{
	struct places u;
	u.tensor = ww_rng_uniform(rng);
	u.phi = mirrored(u.tensor + LATENT_SPREAD * (2 * ww_rng_uniform(rng) - 1));
	u.h = ww_rng_uniform(rng);
	u.sm = ww_rng_uniform(rng);
	u.dram = ww_rng_uniform(rng);
	u.nvlink = ww_rng_uniform(rng);
	u.tps = ww_rng_uniform(rng);
	return physics_at(&families[family], &u);
}

struct ww_sim_physics ww_sim_middle_of(enum ww_sim_family family)
{
	const struct places middle = {0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5};
	return physics_at(&families[family], &middle);
}
