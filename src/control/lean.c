/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One job, one sum of watts. The GPUs of a job run at the pace of the slowest, and under equal caps the others wait for it
 * and draw less than they may. Their watts go to it, little by little, until all draw what they may.
 */
#include "control/control_internal.h"

#include <math.h>

#define LEAN_STEPS 8 /* between two moves of a job */
#define GAIN 0.6f    /* of the difference, in one move: less than all, so that no other GPU becomes the slowest */
#define BINDS 0.015f /* of its cap: the slowest leaves no more than that while its cap is what holds the job */
#define EVEN 0.01f   /* of a cap: differences that are noise */
#define SMOOTH 0.25f
#define LEAN_MOST 0.15f  /* of a cap */
#define AT_TARGET_W 3.0f /* as near as a dead band lets it */

/* What the GPUs of a job leave of their caps. */
struct rests {
	uint32_t n;
	float sum, least, most;
	float room; /* of the moves that lowest and highest limits leave, 0..1 */
	bool settled;
};

static bool is_settled(const ww_control *c, const struct gpu *gpu)
{
	return gpu->managed && !c->nodes[gpu->node].silent && !isnan(gpu->draw_w) &&
	       fabsf(gpu->enforced_w - gpu->target_w) <= AT_TARGET_W &&
	       c->now.mono_us - gpu->changed_us >= c->config.settle_us;
}

static void measure(ww_control *c, struct gpu *gpu, void *context)
{
	struct rests *r = context;
	float rest = is_settled(c, gpu) ? 1 - gpu->draw_w / gpu->enforced_w : NAN;
	gpu->rest_frac = isnan(gpu->rest_frac) ? rest : gpu->rest_frac + SMOOTH * (rest - gpu->rest_frac);
	r->settled = r->settled && !isnan(gpu->rest_frac);
	r->n++;
	r->sum += gpu->rest_frac;
	r->least = fminf(r->least, gpu->rest_frac);
	r->most = fmaxf(r->most, gpu->rest_frac);
}

static float leaned(const struct gpu *gpu, const struct rests *r)
{
	return gpu->lean_frac - GAIN * (gpu->rest_frac - r->sum / (float)r->n);
}

/* Moves keep their sum when all of them are shortened alike. */
static void find_room(ww_control *c, struct gpu *gpu, void *context)
{
	struct rests *r = context;
	const struct job *job = c->jobs[gpu->job];
	float lean = leaned(gpu, r), plain_w = cap_at(c, gpu, job, job->cut_frac);
	float most = lean > 0 ? gpu->ceiling_w / plain_w - 1 : 1 - lowest_of(c, gpu) / plain_w;
	most = fminf(LEAN_MOST, fmaxf(0, most));
	if (fabsf(lean) > most)
		r->room = fminf(r->room, most / fabsf(lean));
}

static void move(ww_control *c, struct gpu *gpu, void *context)
{
	const struct rests *r = context;
	(void)c;
	gpu->lean_frac = r->room * leaned(gpu, r);
	gpu->rest_frac = NAN;
}

static void forget(ww_control *c, struct gpu *gpu, void *context)
{
	(void)c;
	(void)context;
	gpu->lean_frac = 0;
	gpu->rest_frac = NAN;
}

void forget_lean(ww_control *c, const struct job *job)
{
	each_gpu(c, job, forget, NULL);
}

void lean_jobs(ww_control *c)
{
	for (uint32_t j = 0; j < c->n_jobs; j++) {
		struct job *job = c->jobs[j];
		struct rests rests = {.least = 1, .most = -1, .room = 1, .settled = true};
		if (!job->divided)
			continue;
		each_gpu(c, job, measure, &rests);
		if ((c->steps + j) % LEAN_STEPS || rests.n < 2 || !rests.settled || rests.least > BINDS ||
		    rests.most - rests.least < EVEN)
			continue;
		each_gpu(c, job, find_room, &rests);
		each_gpu(c, job, move, &rests);
	}
}
