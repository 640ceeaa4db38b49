/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a job draws where no cap holds it. One that draws less than its curve says, in another phase or by another
 * configuration, leaves watts under its caps that nobody uses: its baseline counts as what it drew at most in the last hour
 * without a cap, and a margin. Caps stay a true bound, and the watts go to others. Where the cap then holds it, it wants
 * more again, and what was seen is forgotten.
 */
#include "control/control_internal.h"

#include <math.h>
#include <string.h>

#define SPAN_TIME_US (120 * WW_SECOND_US) /* of which the highest draw is kept; time under a cap does not count */
#define FEWEST 5                          /* spans before anything is said */
#define MARGIN_LEAST_W 10.0
#define MARGIN_FRAC 0.03
#define HOLDS 0.985                   /* of its cap: a GPU that draws more is held by it */
#define HOLDS_US (5 * WW_SECOND_US)   /* before it is believed, */
#define PROBE_US (600 * WW_SECOND_US) /* and where it is meant to, before it gets more to see whether it wants it */
#define SETTLED 0.05                  /* weight of a second */
#define MOVES 0.02                    /* a baseline that is off by less is not worth a new division */
#define NO_CUT 0.01

static void add_span(struct demand *d)
{
	d->top_w[d->next] = d->now_w;
	d->next = (d->next + 1) % DEMAND_SPANS;
	d->n += d->n < DEMAND_SPANS;
	d->now_w = 0;
	d->span_us = 0;
	d->probes = d->probes && d->n < FEWEST;
}

/* The highest draw of the last hour, NAN = not known for long enough. */
static double highest_w(const struct demand *d)
{
	float w = d->now_w;
	for (uint32_t i = 0; i < d->n; i++)
		w = most_known(w, d->top_w[i]);
	return d->n < (d->probes ? 1 : FEWEST) ? (double)NAN : (double)w;
}

static bool is_cut(const struct job *job)
{
	return job->divided && job->cut_frac >= NO_CUT;
}

/* A cap holds it. One that is not meant to cut it says that it wants more than was seen. One that is meant to says nothing, so
 * now and then it gets what its curve says, for as long as it takes to see what it draws then. */
static void note_held(struct job *job, int64_t since_us)
{
	struct demand *d = &job->demand;
	d->held_us += since_us;
	d->draw_w = d->now_w = 0;
	d->span_us = 0;
	if (d->held_us < (is_cut(job) ? PROBE_US : HOLDS_US) || (is_cut(job) && !is_clamped(job)))
		return;
	d->probes = is_cut(job);
	d->n = d->next = 0;
	d->held_us = 0;
}

/* No tokens, no work: a pause says nothing. What bursts is clipped by a cap as low as its mean: that never makes it lower. */
static void note_free(struct job *job, float draw_w, int64_t since_us)
{
	struct demand *d = &job->demand;
	float both_w = least_known(draw_w, d->draw_w); /* one reading may be off */
	d->held_us = d->held_us > since_us / 2 ? d->held_us - since_us / 2 : 0;
	if (job->tps <= 0 || (is_cut(job) && isnan(job->tps)))
		return;
	d->draw_w = draw_w;
	if (is_clamped(job) && job->divided) {
		if (both_w > highest_w(d))
			d->top_w[(d->next + DEMAND_SPANS - 1) % DEMAND_SPANS] = both_w;
		return;
	}
	d->now_w = most_known(d->now_w, both_w);
	d->span_us += since_us;
	if (d->span_us >= SPAN_TIME_US)
		add_span(d);
}

/* The baseline in use follows what is known, in steps. */
static void follow(ww_control *c, struct job *job)
{
	double told_w = job->told.curve.p0_w, top_w = highest_w(&job->demand);
	double w = isnan(top_w) ? told_w : least(told_w, top_w + most(MARGIN_LEAST_W, MARGIN_FRAC * top_w));
	if (fabs(w - job->curve.p0_w) <= (w == told_w ? 0 : MOVES * w))
		return;
	job->curve.p0_w = w;
	c->ready_changed = true;
}

void watch_demand(ww_control *c, struct job *job, struct use use)
{
	struct demand *d = &job->demand;
	if (!job->told.has_curve)
		return;
	if (!isnan(use.draw_w)) {
		d->used_frac = d->used_frac > 0 ? d->used_frac + (float)SETTLED * (use.frac - d->used_frac) : use.frac;
		if (use.frac > (float)HOLDS || d->used_frac > (float)HOLDS)
			note_held(job, c->since_us);
		else
			note_free(job, use.draw_w, c->since_us);
	}
	follow(c, job);
}
