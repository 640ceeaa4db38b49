/* SPDX-License-Identifier: Apache-2.0 */
/* What the node says: samples, acknowledgements, hellos and alarms. */
#include "node/node_internal.h"

/* ---- To be told ------------------------------------------------------------------------------------------------------ */

void node_alarm(ww_node *node, uint32_t gpu, enum ww_alarm what)
{
	uint8_t *alarms = gpu == NODE ? &node->alarms : &node->gpus[gpu].alarms;
	*alarms |= (uint8_t)(1u << what);
}

static void wait_for_writes(ww_node *node)
{
	node->ack_by_us = later(node->now_us, node->options.period_us / 2);
}

void node_have_news(ww_node *node)
{
	if (!node->news && !node->answer_due)
		wait_for_writes(node);
	node->news = true;
}

void node_answer(ww_node *node)
{
	node->answer_due = true;
	wait_for_writes(node);
}

/* One refusal more or less is as if it had been lost on its way. */
void node_refuse(ww_node *node, struct ww_fence fence, enum ww_ack_verdict verdict)
{
	if (node->n_refusals < REFUSALS_KEPT)
		node->refusals[node->n_refusals++] = (struct refusal){fence, verdict};
}

static struct node_job *find_job(ww_node *node, uint64_t job)
{
	for (uint32_t i = 0; i < node->n_jobs; i++)
		if (node->jobs[i].job == job)
			return &node->jobs[i];
	return NULL;
}

void node_take_tps(ww_node *node, uint64_t job, struct ww_reading tps)
{
	struct node_job *found = find_job(node, job);
	bool ok = tps.status == WW_READING_OK || tps.status == WW_READING_STALE;
	if (ok && !(tps.value >= 0 && isfinite(tps.value)))
		return;
	if (!ok && found)
		*found = node->jobs[--node->n_jobs];
	if (ok && !found && node->n_jobs < WW_NODE_JOBS_MAX)
		found = &node->jobs[node->n_jobs++];
	if (ok && found)
		*found = (struct node_job){job, tps, node->now_us};
}

/* ---- Messages -------------------------------------------------------------------------------------------------------- */

static struct ww_envelope sign(ww_node *node)
{
	node->sent_seq++;
	node->sent_us[node->sent_seq % MAIL_KEPT] = node->now_us;
	return (struct ww_envelope){.version = WW_MSG_VERSION,
	                            .cluster = node->options.cluster,
	                            .node = node->options.node,
	                            .boot_id = node->options.boot_id,
	                            .start_id = node->options.start_id,
	                            .seq = node->sent_seq,
	                            .seen = node->saved_seen};
}

/* A reading as it is by now. */
static struct ww_reading aged(const ww_node *node, struct ww_reading r, int64_t at_us)
{
	int64_t age_ms = r.age_ms + (node->now_us - at_us) / 1000;
	r.age_ms = age_ms < UINT16_MAX ? (uint16_t)age_ms : UINT16_MAX;
	if (r.status == WW_READING_OK && node->now_us - at_us > 2 * node->options.period_us)
		r.status = WW_READING_STALE;
	return r;
}

static void describe(const ww_node *node, uint32_t i, struct ww_gpu_state *out)
{
	const struct gpu *gpu = &node->gpus[i];
	bool managed = node_manages(node, gpu), above;
	/* A write that has not come back may yet take effect. */
	float target_w = gpu->writing ? fmaxf(gpu->target_w, gpu->asked_w) : gpu->target_w;
	above = ww_reading_known(&gpu->enforced) && gpu->enforced.value > gpu->target_w + TOLERANCE_W;
	*out = (struct ww_gpu_state){.enforced_w = aged(node, gpu->enforced, gpu->enforced_us),
	                             .draw_w = aged(node, gpu->draw, gpu->draw_us),
	                             .requested_w = gpu->requested_w,
	                             .target_w = managed ? target_w : NAN,
	                             .held = gpu->held && !above && !gpu->writing,
	                             .managed = managed,
	                             .foreign = gpu->foreign};
	/* Steps are of the schedule that `seen` names. */
	if (node->lease.given && gpu->step > 0 && ww_fence_order(node->seen, node->saved_seen) == 0)
		out->step = (uint8_t)gpu->step;
}

static void describe_all(const ww_node *node, struct ww_gpu_state *out)
{
	for (uint32_t i = 0; i < node->options.n_gpus; i++)
		describe(node, i, &out[i]);
}

static void tell_hello(ww_node *node, struct acts *acts)
{
	struct ww_hello *hello = &node->hello;
	if (!put_act(acts, (struct ww_node_act){.kind = WW_ACT_HELLO, .u.hello = hello}))
		return;
	node->hello_due = false;
	hello->from = sign(node);
	hello->n_gpus = node->options.n_gpus;
	for (uint32_t i = 0; i < node->options.n_gpus; i++) {
		hello->limits[i].uuid = node->options.gpus[i].uuid;
		hello->limits[i].min_w = node->options.gpus[i].min_w;
		hello->limits[i].max_w = node->options.gpus[i].max_w;
		hello->limits[i].default_w = node->options.gpus[i].default_w;
		hello->limits[i].recorded_w = node->gpus[i].recorded ? node->gpus[i].recorded_w : NAN;
		hello->limits[i].boot_cap_w = node->options.gpus[i].boot_cap_w;
	}
	describe_all(node, hello->gpus);
}

static void tell_sample(ww_node *node, struct acts *acts)
{
	struct ww_sample *sample = &node->sample;
	if (!put_act(acts, (struct ww_node_act){.kind = WW_ACT_SAMPLE, .u.sample = sample}))
		return;
	node->sample_due = false;
	sample->from = sign(node);
	sample->wall_us = node->wall_us;
	sample->n_gpus = node->options.n_gpus;
	describe_all(node, sample->gpus);
	sample->n_jobs = node->n_jobs;
	for (uint32_t i = 0; i < node->n_jobs; i++) {
		sample->jobs[i].job = node->jobs[i].job;
		sample->jobs[i].tps = aged(node, node->jobs[i].tps, node->jobs[i].at_us);
	}
}

/* False without room. */
static bool tell_ack(ww_node *node, struct acts *acts, struct ww_fence answers, enum ww_ack_verdict verdict)
{
	struct ww_ack *ack = &node->ack;
	if (!put_act(acts, (struct ww_node_act){.kind = WW_ACT_ACK, .u.ack = ack}))
		return false;
	ack->from = sign(node);
	ack->answers = answers;
	ack->verdict = (uint8_t)verdict;
	ack->lapsed = node->lease.lapsed;
	ack->n_gpus = node->options.n_gpus;
	describe_all(node, ack->gpus);
	return true;
}

static bool awaits_writes(const ww_node *node)
{
	for (uint32_t i = 0; i < node->options.n_gpus; i++)
		if (node->gpus[i].writing || node_may_write(node, &node->gpus[i]))
			return true;
	return false;
}

/* One in a step: there is room for one. A command's answer tells all news as well. */
static void tell_one_ack(ww_node *node, struct acts *acts)
{
	bool saved = ww_fence_order(node->seen, node->saved_seen) == 0;
	if (node->n_refusals > 0) {
		struct refusal *first = &node->refusals[0];
		if (!tell_ack(node, acts, first->fence, first->verdict))
			return;
		node->n_refusals--;
		for (uint32_t i = 0; i < node->n_refusals; i++)
			node->refusals[i] = node->refusals[i + 1];
	} else if (node->now_us < node->ack_by_us && (node->storing || awaits_writes(node))) {
		return;
	} else if (node->answer_due && saved) {
		if (tell_ack(node, acts, node->seen, WW_ACK_DONE))
			node->answer_due = node->news = false;
	} else if (node->news) {
		if (tell_ack(node, acts, (struct ww_fence){0}, WW_ACK_NEWS))
			node->news = false;
	}
}

/* ---- Alarms ---------------------------------------------------------------------------------------------------------- */

const char *ww_alarm_text(enum ww_alarm alarm)
{
	static const char *const texts[] = {
		"somebody raised the power limit; it was written over",
		"the power limit is raised again and again; it is left as it is and the GPU counts as not managed",
		"somebody lowered the power limit",
		"the power limit could not be written or reads back higher; it is tried again every period",
		"the journal could not be stored; no limit is raised until it can",
		"the lease ended: nothing was heard of the controller for too long",
		"stopped while a budget binds: the caps are left as they are",
	};
	return (size_t)alarm < sizeof texts / sizeof texts[0] ? texts[alarm] : "?";
}

static void tell_alarms(uint8_t *alarms, uint32_t gpu, float value_w, struct acts *acts)
{
	for (unsigned what = 0; *alarms >> what; what++)
		if ((*alarms >> what & 1) &&
		    put_act(acts,
		            (struct ww_node_act){.kind = WW_ACT_ALARM, .u.alarm = {(enum ww_alarm)what, gpu, value_w}}))
			*alarms &= (uint8_t) ~(1u << what);
}

/* A start_id is used only once it is stored, so that it is never used again; without a journal there is no better one. */
void node_tell(ww_node *node, struct acts *acts)
{
	if (node->stored_once) {
		if (node->sample_due && (node->awaited == 0 || node->now_us >= node->sample_by_us)) {
			if (node->hello_due)
				tell_hello(node, acts);
			tell_sample(node, acts);
		}
		tell_one_ack(node, acts);
	}
	tell_alarms(&node->alarms, NODE, NAN, acts);
	for (uint32_t i = 0; i < node->options.n_gpus; i++)
		tell_alarms(&node->gpus[i].alarms, i, node->gpus[i].enforced.value, acts);
}

int64_t node_tell_due_us(const ww_node *node)
{
	int64_t due_us = WW_NEVER_US;
	if (!node->stored_once)
		return due_us;
	if (node->sample_due)
		due_us = node->sample_by_us;
	if ((node->news || node->answer_due) && node->ack_by_us < due_us && node->ack_by_us > node->now_us)
		due_us = node->ack_by_us;
	return due_us;
}
