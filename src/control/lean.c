/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One job, one sum of watts. The GPUs of a job run at the pace of the slowest, and under equal caps the others wait for it
 * and draw less than they may. What each draws at that pace is what it needs; whole watts go from those that need less to
 * those that need more, until all draw the same part of their caps.
 *
 * Draws count by the boards' own sensors, which also hold the caps: a gain of the sensor is part of the need. They say
 * nothing while no cap holds the job (a pause, heat, a slow network), nor of a GPU that does not work.
 */
#include "control/control_internal.h"

#include <math.h>
#include <string.h>

#define GAIN 0.8f        /* of the difference, in one move: less than all, so that no other GPU becomes the slowest */
#define BINDS 0.015f     /* of its cap: the slowest leaves no more than that while its cap is what holds the job */
#define WORKS 0.5f       /* of its cap: a GPU that draws less does something else than wait for a slower one */
#define EVEN 0.004f      /* of a cap: less is not worth a move, */
#define CHANCE 8.0f      /* nor are so many standard errors of the means */
#define SMOOTH 0.2f      /* of the variance of readings, which is taken to be */
#define USUAL 0.005f     /* of a cap at first, squared */
#define FEWEST 6         /* readings before a move */
#define MOST 64          /* behind a mean */
#define LEAN_MOST 0.15f  /* of a cap */
#define AT_TARGET_W 3.0f /* as near as a dead band lets it */

/* The GPUs of one job. */
struct team {
	const struct job *job;
	uint32_t n;
	bool settled, joined;   /* joined: one works again */
	float equal_w;          /* sum of the caps without moves, of all that can be steered */
	uint64_t laid_for;      /* these caps and ceilings, mixed */
	float used, least_used; /* the highest and the lowest part of their caps that they draw */
	float needs, leans_w;   /* sums */
	float n_off, off, off2; /* readings beside the means before them: sums of the differences and their squares */
	float scale, part;      /* of the moves: so that their sum is 0; so that limits hold */
	float carry_w;          /* wanted by the GPUs before, and not given yet */
	bool again;
};

static float equal_cap_of(const ww_control *c, const struct gpu *gpu, const struct team *team)
{
	return cap_at(c, gpu, team->job, team->job->cut_frac);
}

static bool works(const ww_control *c, const struct gpu *gpu)
{
	return is_ready(c, gpu) && gpu->draw_w >= WORKS * gpu->enforced_w;
}

/* ---- What each needs ---------------------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t sum, float w)
{
	uint32_t bits;
	memcpy(&bits, &w, sizeof bits);
	sum = (sum ^ bits) * 0x9E3779B97F4A7C15u;
	return sum ^ sum >> 32;
}

static void look(ww_control *c, struct gpu *gpu, void *context)
{
	struct team *team = context;
	bool ready = is_ready(c, gpu);
	float equal_w = ready ? equal_cap_of(c, gpu, team) : 0;
	team->laid_for = mix(mix(team->laid_for, equal_w), ready ? gpu->ceiling_w : 0);
	team->equal_w += equal_w;
	if (!ready)
		return;
	team->settled = team->settled && c->now.mono_us - gpu->changed_us >= c->config.settle_us &&
	                fabsf(gpu->enforced_w - gpu->target_w) <= AT_TARGET_W;
	if (!works(c, gpu))
		return;
	team->n++;
	team->used = most_known(team->used, gpu->draw_w / gpu->enforced_w);
}

/* One that works again has no mean to compare yet: all begin anew. */
static void measure(ww_control *c, struct gpu *gpu, void *context)
{
	struct team *team = context;
	float equal_w = equal_cap_of(c, gpu, team), need = works(c, gpu) ? gpu->draw_w / equal_w : NAN;
	bool fresh = team->job->n_needs <= 1 || isnan(gpu->need_frac);
	float off = fresh ? 0 : need - gpu->need_frac;
	team->joined = team->joined || (isnan(gpu->need_frac) && !isnan(need));
	gpu->need_frac = fresh ? need : gpu->need_frac + off / (float)team->job->n_needs;
	if (isnan(gpu->need_frac))
		return;
	team->n_off += !fresh;
	team->off += off;
	team->off2 += off * off;
	float used = gpu->need_frac / (1 + gpu->lean_w / equal_w);
	team->needs += gpu->need_frac;
	team->used = most_known(team->used, used);
	team->least_used = least_known(team->least_used, used);
}

/* ---- Moving ------------------------------------------------------------------------------------------------------------- */

static void move(ww_control *c, struct gpu *gpu, void *context)
{
	const struct team *team = context;
	(void)c;
	if (isnan(gpu->need_frac))
		return;
	gpu->lean_frac += GAIN * (gpu->need_frac * (float)team->n / team->needs - 1 - gpu->lean_frac);
	gpu->lean_frac = least_known(most_known(gpu->lean_frac, -LEAN_MOST), LEAN_MOST);
}

static void add_leans(ww_control *c, struct gpu *gpu, void *context)
{
	struct team *team = context;
	if (is_ready(c, gpu))
		team->leans_w += equal_cap_of(c, gpu, team) * (1 + gpu->lean_frac);
}

static float wanted_w(const struct gpu *gpu, const struct team *team, float equal_w)
{
	return equal_w * ((1 + gpu->lean_frac) * team->scale - 1);
}

/* How far a GPU may be moved from its equal cap, up or down. */
static float room_of(const ww_control *c, const struct gpu *gpu, float equal_w, bool up)
{
	float room_w = up ? gpu->ceiling_w - equal_w : equal_w - lowest_of(c, gpu);
	return most_known(0, least_known(room_w, LEAN_MOST * equal_w));
}

/* Moves keep their sum when all of them are shortened alike. */
static void find_room(ww_control *c, struct gpu *gpu, void *context)
{
	struct team *team = context;
	float equal_w = equal_cap_of(c, gpu, team), w = wanted_w(gpu, team, equal_w);
	float most_w = room_of(c, gpu, equal_w, w > 0);
	if (is_ready(c, gpu) && fabsf(w) > most_w)
		team->part = least_known(team->part, most_w / fabsf(w));
}

/* What rounding leaves of one GPU's watts goes to the next one. */
static void lay(ww_control *c, struct gpu *gpu, void *context)
{
	struct team *team = context;
	float equal_w = equal_cap_of(c, gpu, team);
	if (!team->again) {
		gpu->lean_w = 0;
		team->carry_w += is_ready(c, gpu) ? team->part * wanted_w(gpu, team, equal_w) : 0;
	}
	if (!is_ready(c, gpu))
		return;
	float low_w = -floorf(room_of(c, gpu, equal_w, false)), high_w = floorf(room_of(c, gpu, equal_w, true));
	float w = least_known(most_known(gpu->lean_w + roundf(team->carry_w), low_w), high_w);
	team->carry_w -= w - gpu->lean_w;
	gpu->lean_w = w;
}

/* Where the last GPUs could not take what was left, those before them take it back. */
static void lay_all(ww_control *c, struct job *job, struct team *team)
{
	job->laid_for = team->laid_for;
	each_gpu(c, job, add_leans, team);
	team->scale = team->leans_w > 0 ? team->equal_w / team->leans_w : 1;
	each_gpu(c, job, find_room, team);
	each_gpu(c, job, lay, team);
	team->again = true;
	if (fabsf(team->carry_w) > 0.5f)
		each_gpu(c, job, lay, team);
}

/* ---- All jobs ------------------------------------------------------------------------------------------------------------ */

static void forget(ww_control *c, struct gpu *gpu, void *context)
{
	(void)c;
	(void)context;
	gpu->lean_frac = gpu->lean_w = 0;
	gpu->need_frac = NAN;
}

void forget_lean(ww_control *c, struct job *job)
{
	each_gpu(c, job, forget, NULL);
	job->n_needs = 0;
	job->need_var = USUAL * USUAL;
	job->laid_for = 0;
}

/* How much readings scatter, beyond what all GPUs of the job do together. */
static void learn_noise(struct job *job, const struct team *team)
{
	if (team->n_off < 2)
		return;
	float var = most_known(0, team->off2 - team->off * team->off / team->n_off) / (team->n_off - 1);
	job->need_var += SMOOTH * (var - job->need_var);
}

/* Whether the means show a difference that is worth a move. */
static bool is_uneven(const struct job *job, const struct team *team)
{
	float error = sqrtf(job->need_var / (float)job->n_needs);
	return team->used - team->least_used > most_known(EVEN, CHANCE * error);
}

static bool is_to_move(ww_control *c, struct job *job, struct team *team)
{
	if (team->used < 1 - BINDS || team->n < 2)
		job->n_needs = 0;
	if (team->used < 1 - BINDS || team->n < 2 || !team->settled)
		return false;
	job->n_needs += job->n_needs < MOST;
	team->used = 0;
	each_gpu(c, job, measure, team);
	if (team->joined && job->n_needs > 1)
		job->n_needs = 0;
	learn_noise(job, team);
	return job->n_needs >= FEWEST && is_uneven(job, team);
}

static void lean_job(ww_control *c, struct job *job)
{
	struct team team = {.job = job, .laid_for = 1, .settled = true, .least_used = INFINITY, .part = 1};
	each_gpu(c, job, look, &team);
	bool moves = is_to_move(c, job, &team);
	if (moves) {
		each_gpu(c, job, move, &team);
		job->n_needs = 0;
	}
	if (moves || job->laid_for != team.laid_for)
		lay_all(c, job, &team);
}

void lean_jobs(ww_control *c)
{
	for (uint32_t j = 0; j < c->n_jobs && c->config.trim == WW_TRIM_ON; j++)
		if (c->jobs[j]->divided)
			lean_job(c, c->jobs[j]);
}
