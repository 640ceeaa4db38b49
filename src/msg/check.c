/* SPDX-License-Identifier: Apache-2.0 */
/* What passes between nodes and the controller must be sound whoever sent it. */
#include "msg/msg.h"
#include "msg/msg_internal.h"

#include <math.h>
#include <string.h>

/* ---- Pieces ------------------------------------------------------------------------------------------------------ */

ww_status msg_check_duration(int64_t us, const char *what, struct ww_error *err)
{
	if (us < 0 || us > LONGEST_US)
		return ww_fail(err, WW_ERR_RANGE, "%s is %lld us; give 0 to 400 days", what, (long long)us);
	return WW_OK;
}

ww_status msg_check_reading(const struct ww_reading *v, const char *what, struct ww_error *err)
{
	bool has_value = v->status == WW_READING_OK || v->status == WW_READING_STALE;
	if (v->status >= WW_N_READING_STATUS)
		return ww_fail(err, WW_ERR_RANGE, "%s has status %u; there are 0 to %d", what, v->status,
		               WW_N_READING_STATUS - 1);
	if (has_value && !isfinite(v->value))
		return ww_fail(err, WW_ERR_RANGE, "%s is %g although its status is known; give a status that says why",
		               what, (double)v->value);
	if (!has_value && !isnan(v->value))
		return ww_fail(err, WW_ERR_RANGE, "%s is %g although its status says that it is not known; give NAN",
		               what, (double)v->value);
	return WW_OK;
}

static ww_status check_amount(const struct ww_reading *v, const char *what, struct ww_error *err)
{
	if (v->value < 0)
		return ww_fail(err, WW_ERR_RANGE, "%s is %g; must be 0 or more", what, (double)v->value);
	return msg_check_reading(v, what, err);
}

static bool is_cap(float w)
{
	return isnan(w) || (w > 0 && isfinite(w));
}

ww_status msg_check_name(const char name[WW_NAME_MAX], const char *what, struct ww_error *err)
{
	size_t n = strnlen(name, WW_NAME_MAX);
	if (n == WW_NAME_MAX)
		return ww_fail(err, WW_ERR_INVALID, "%s does not end; give at most %d bytes", what, WW_NAME_MAX - 1);
	for (size_t at = 0, step; at < n; at += step) {
		step = ww_utf8_char(name + at, n - at);
		if (step == 0 || ww_utf8_is_control(name + at, step))
			return ww_fail(err, WW_ERR_INVALID,
			               "%s '%s' is not plain UTF-8; leave out control characters and other encodings",
			               what, name);
	}
	return WW_OK;
}

static ww_status check_envelope(const struct ww_envelope *v, const char *what, struct ww_error *err)
{
	if (v->version != WW_MSG_VERSION)
		return ww_fail(err, WW_ERR_UNSUPPORTED,
		               "%s of message version %u, known here is %d; run the same wattweir on both sides", what,
		               (unsigned)v->version, WW_MSG_VERSION);
	return WW_OK;
}

static ww_status check_gpu(const struct ww_gpu_state *v, struct ww_error *err)
{
	ww_status status = check_amount(&v->enforced_w, "enforced_w", err);
	if (status == WW_OK)
		status = check_amount(&v->draw_w, "draw_w", err);
	if (status != WW_OK)
		return status;
	if (!is_cap(v->requested_w) || !is_cap(v->target_w))
		return ww_fail(err, WW_ERR_RANGE, "requested_w %g or target_w %g is no cap; give watts above 0 or NAN",
		               (double)v->requested_w, (double)v->target_w);
	if (v->step > WW_STEPS_MAX)
		return ww_fail(err, WW_ERR_RANGE, "step is %u; a schedule has at most %d", v->step, WW_STEPS_MAX);
	if (v->held > 1 || v->managed > 1)
		return ww_fail(err, WW_ERR_RANGE, "held is %u and managed is %u; must be 0 or 1", v->held, v->managed);
	return WW_OK;
}

static ww_status check_count(uint32_t n, uint32_t most, const char *what, struct ww_error *err)
{
	if (n > most)
		return ww_fail(err, WW_ERR_RANGE, "%s is %u; must be at most %u", what, (unsigned)n, (unsigned)most);
	return WW_OK;
}

static ww_status check_gpus(const struct ww_gpu_state *v, uint32_t n, const char *what, struct ww_error *err)
{
	struct ww_error why;
	ww_status status = check_count(n, WW_NODE_GPUS_MAX, "n_gpus", &why);
	if (status != WW_OK)
		return ww_fail(err, status, "%s: %s", what, why.text);
	for (uint32_t i = 0; i < n; i++) {
		status = check_gpu(&v[i], &why);
		if (status != WW_OK)
			return ww_fail(err, status, "%s: GPU %u: %s", what, (unsigned)i, why.text);
	}
	return WW_OK;
}

/* ---- From nodes ---------------------------------------------------------------------------------------------------- */

static ww_status check_sample_jobs(const struct ww_sample *v, struct ww_error *err)
{
	struct ww_error why;
	ww_status status = check_count(v->n_jobs, WW_NODE_JOBS_MAX, "n_jobs", &why);
	if (status != WW_OK)
		return ww_fail(err, status, "sample: %s", why.text);
	for (uint32_t i = 0; i < v->n_jobs; i++) {
		unsigned long long job = v->jobs[i].job;
		status = check_amount(&v->jobs[i].tps, "tps", &why);
		if (status != WW_OK)
			return ww_fail(err, status, "sample: job %llu: %s", job, why.text);
		for (uint32_t k = 0; k < i; k++)
			if (v->jobs[k].job == job)
				return ww_fail(err, WW_ERR_INVALID, "sample: job %llu stands twice; give one sum", job);
	}
	return WW_OK;
}

ww_status ww_check_sample(const struct ww_sample *v, struct ww_error *err)
{
	ww_status status = check_envelope(&v->from, "sample", err);
	if (status == WW_OK)
		status = check_gpus(v->gpus, v->n_gpus, "sample", err);
	return status == WW_OK ? check_sample_jobs(v, err) : status;
}

ww_status ww_check_ack(const struct ww_ack *v, struct ww_error *err)
{
	ww_status status = check_envelope(&v->from, "ack", err);
	if (status != WW_OK)
		return status;
	if (v->verdict >= WW_N_ACK_VERDICTS)
		return ww_fail(err, WW_ERR_RANGE, "ack: verdict is %u; there are 0 to %d", v->verdict,
		               WW_N_ACK_VERDICTS - 1);
	if (v->lapsed > 1)
		return ww_fail(err, WW_ERR_RANGE, "ack: lapsed is %u; must be 0 or 1", v->lapsed);
	if (v->verdict == WW_ACK_NEWS && (v->answers.epoch != 0 || v->answers.seq != 0))
		return ww_fail(err, WW_ERR_INVALID, "ack: news answers no command; answers must be 0, 0");
	return check_gpus(v->gpus, v->n_gpus, "ack", err);
}

static ww_status check_limits(const struct ww_hello *v, uint32_t i, struct ww_error *err)
{
	double least = v->limits[i].min_w, most = v->limits[i].max_w, middle = v->limits[i].default_w;
	float boot = v->limits[i].boot_cap_w;
	if (!(least > 0 && least <= middle && middle <= most && most < INFINITY))
		return ww_fail(
			err, WW_ERR_RANGE,
			"hello: GPU %u: limits %g <= %g <= %g W do not hold; give min_w, default_w, max_w above 0",
			(unsigned)i, least, middle, most);
	if (!is_cap(v->limits[i].recorded_w) || !is_cap(boot))
		return ww_fail(err, WW_ERR_RANGE,
		               "hello: GPU %u: recorded_w %g or boot_cap_w %g is no cap; give watts above 0 or NAN",
		               (unsigned)i, (double)v->limits[i].recorded_w, (double)boot);
	if (boot < least || boot > most)
		return ww_fail(err, WW_ERR_RANGE, "hello: GPU %u: boot_cap_w %g is not within %g..%g W", (unsigned)i,
		               (double)boot, least, most);
	return WW_OK;
}

ww_status ww_check_hello(const struct ww_hello *v, struct ww_error *err)
{
	ww_status status = check_envelope(&v->from, "hello", err);
	if (status == WW_OK)
		status = check_gpus(v->gpus, v->n_gpus, "hello", err);
	for (uint32_t i = 0; status == WW_OK && i < v->n_gpus; i++)
		status = check_limits(v, i, err);
	return status;
}

/* ---- To nodes ------------------------------------------------------------------------------------------------------ */

static ww_status check_caps(const float *cap_w, uint32_t n, const char *what, struct ww_error *err)
{
	for (uint32_t i = 0; i < n; i++)
		if (!is_cap(cap_w[i]))
			return ww_fail(err, WW_ERR_RANGE, "command: GPU %u: %s %g is no cap; give watts above 0 or NAN",
			               (unsigned)i, what, (double)cap_w[i]);
	return WW_OK;
}

static ww_status check_schedule(const struct ww_command *v, struct ww_error *err)
{
	ww_status status = check_caps(v->failcap_w, v->n_gpus, "failcap_w", err);
	if (status == WW_OK && v->step[0].in_us != 0)
		return ww_fail(err, WW_ERR_INVALID, "command: its first step is in %lld us; must be now, 0",
		               (long long)v->step[0].in_us);
	for (uint32_t i = 0; status == WW_OK && i < v->n_steps; i++) {
		if (i > 0 && v->step[i].in_us <= v->step[i - 1].in_us)
			return ww_fail(err, WW_ERR_INVALID,
			               "command: step %u is not after the step before it; in_us must rise",
			               (unsigned)i);
		status = msg_check_duration(v->step[i].in_us, "command: in_us of a step", err);
		if (status == WW_OK)
			status = check_caps(v->step[i].cap_w, v->n_gpus, "cap_w", err);
	}
	return status;
}

ww_status ww_check_command(const struct ww_command *v, struct ww_error *err)
{
	ww_status status = msg_check_duration(v->valid_for_us, "command: valid_for_us", err);
	if (status == WW_OK)
		status = msg_check_duration(v->spread_us, "command: spread_us", err);
	if (status != WW_OK)
		return status;
	if (v->valid_for_us == 0)
		return ww_fail(err, WW_ERR_RANGE, "command: valid_for_us is 0; must be above 0");
	if (v->after >= WW_N_AFTERS || v->release_ok > 1)
		return ww_fail(err, WW_ERR_RANGE, "command: after is %u and release_ok is %u; must be 0..%d and 0..1",
		               v->after, v->release_ok, WW_N_AFTERS - 1);
	if (v->n_gpus < 1 || v->n_gpus > WW_NODE_GPUS_MAX)
		return ww_fail(err, WW_ERR_RANGE, "command: n_gpus is %u; must be 1..%d", (unsigned)v->n_gpus,
		               WW_NODE_GPUS_MAX);
	if (v->n_steps < 1 || v->n_steps > WW_STEPS_MAX)
		return ww_fail(err, WW_ERR_RANGE, "command: n_steps is %u; must be 1..%d", (unsigned)v->n_steps,
		               WW_STEPS_MAX);
	return check_schedule(v, err);
}
