/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a row draws besides its GPUs: where it has a meter, what the meter shows beyond the GPUs' own sensors (so a sensor's
 * gain is in it as well), as the median of the last readings and three of its standard errors; elsewhere what the power
 * plan declares. Fans and cooling follow GPU power late: where charges are above what was drawn lately, the rest is
 * expected to follow.
 */
#include "control/control_internal.h"

#include <math.h>
#include <stdlib.h>

#define FEWEST_RESIDUALS 8
#define STEP_UP 0.001   /* of the row's power: the bound in use is that much above the readings when it moves, */
#define STEP_DOWN 0.004 /* and moves down only when it is that much above them */
/* Weights of a second in the smoothed draw that non-GPU power is taken to reflect: it rises no faster than what follows it,
 * and falls fast, since what still lags above a fallen draw is in the readings themselves. */
#define RISES 0.005
#define FALLS 0.05
#define OLD_US (60 * WW_SECOND_US) /* a meter that was silent for so long bounds nothing alone */
#define LAG_US 3e8                 /* fans and cooling follow a fall within minutes */
#define PLAUSIBLE 0.9 /* of what its GPUs draw by their own sensors: a meter that shows less is dead or turned round */
#define SURPLUS 1.1   /* times what its GPUs draw, */
#define GLITCH 3.0    /* and times what was there beyond them lately: a meter that shows more counts for no baseline */
#define READING_PART ((double)WW_SECOND_US / (double)SPAN_US) /* of a span, that a reading tells of */
#define OLDEST_MS 2500 /* a reading that is older cannot be held against draws of now */
#define FROM_STEP 0.01 /* the smoothed draw in use moves when it is off by that much */

static double residual_bound(const struct row *row)
{
	float sorted[RESIDUALS];
	uint32_t n = row->n_residuals;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t to = i;
		for (; to > 0 && sorted[to - 1] > row->residual[i]; to--)
			sorted[to] = sorted[to - 1];
		sorted[to] = row->residual[i];
	}
	double median = sorted[n / 2];
	double spread = (sorted[(3 * n) / 4] - sorted[n / 4]) / 1.349; /* sd of a normal by its quartiles */
	return most(0, median + 3 * 1.2533 * spread / sqrt(n));
}

static void take_residual(struct row *row, double power_w)
{
	row->residual[row->next_residual] = (float)(power_w - row->draw_w);
	row->next_residual = (row->next_residual + 1) % RESIDUALS;
	if (row->n_residuals < RESIDUALS)
		row->n_residuals++;
	if (row->n_residuals < FEWEST_RESIDUALS)
		return;
	double bound = residual_bound(row), scale = most(power_w, 1);
	if (!(bound <= row->non_gpu_w && bound >= row->non_gpu_w - STEP_DOWN * scale))
		row->non_gpu_w = bound + STEP_UP * scale;
}

/* ---- What was drawn lately ---------------------------------------------------------------------------------------------- */

static struct span *span_at(struct row *row, int64_t wall_us)
{
	int64_t number = wall_us / SPAN_US;
	struct span *span = &row->spans[(number % SPANS + SPANS) % SPANS];
	if (span->number != number)
		*span = (struct span){.number = number};
	return span;
}

void remember_draws(ww_control *c)
{
	for (uint32_t r = 0; r < c->n_rows; r++) {
		struct row *row = &c->rows[r];
		if (!row->config.has_meter || isnan(row->draw_w))
			continue;
		struct span *span = span_at(row, c->now.wall_us);
		span->draw_w += row->draw_w;
		span->n_draws++;
	}
}

static double mean_of(double sum, uint32_t n)
{
	return n ? sum / n : (double)NAN;
}

static bool is_recent(const struct span *span, int64_t wall_us)
{
	return span->number > wall_us / SPAN_US - SPANS && span->number <= wall_us / SPAN_US;
}

/* What the meter shows in a span, and what the GPUs drew then: in the mean of the spans in which both are known. NAN: none. */
struct shown {
	double power_w, draw_w;
};

static struct shown shown_lately(const struct row *row, int64_t wall_us)
{
	struct shown sum = {0};
	uint32_t n = 0;
	for (uint32_t i = 0; i < SPANS; i++) {
		const struct span *span = &row->spans[i];
		if (!is_recent(span, wall_us) || !span->n_beside)
			continue;
		n++;
		sum.power_w += span->power_w / span->n;
		sum.draw_w += span->beside_w / span->n_beside;
	}
	return (struct shown){mean_of(sum.power_w, n), mean_of(sum.draw_w, n)};
}

/* Mean power in a span; of moments in which the meter said nothing, by what the GPUs drew. NAN: nothing is known. */
static double power_in(const struct row *row, int boundary, const struct span *span, struct shown shown)
{
	double draw_w = mean_of(span->draw_w, span->n_draws);
	if (boundary == WW_BOUNDARY_GPU)
		return draw_w;
	if (boundary != row->config.meter_boundary)
		return draw_w + row->config.fixed_w[boundary] + row->config.follow[boundary] * draw_w;
	if (span->n)
		shown = (struct shown){mean_of(span->power_w, span->n), mean_of(span->beside_w, span->n_beside)};
	double more_w = (1 + row->config.follow[boundary]) * (draw_w - shown.draw_w);
	return span->n && isnan(more_w) ? shown.power_w : shown.power_w + more_w;
}

struct baseline baseline_of(const struct row *row, int boundary, int64_t wall_us)
{
	struct shown shown = shown_lately(row, wall_us);
	double power_w = 0, known = 0, measured = 0;
	for (uint32_t i = 0; i < SPANS; i++) {
		const struct span *span = &row->spans[i];
		double w = is_recent(span, wall_us) ? power_in(row, boundary, span, shown) : (double)NAN;
		double part = span->number == wall_us / SPAN_US
		                      ? (double)(wall_us % SPAN_US + WW_SECOND_US) / (double)SPAN_US
		                      : 1;
		if (isnan(w))
			continue;
		power_w += part * w;
		known += part;
		measured += boundary == row->config.meter_boundary ? least(part, span->n * READING_PART) : part;
	}
	if (known <= 0)
		return (struct baseline){(double)NAN, 0};
	return (struct baseline){power_w / known, least(1, measured * (double)SPAN_US / (double)BASELINE_US)};
}

/* ---- Meters ------------------------------------------------------------------------------------------------------------- */

static bool is_plausible(double power_w, double draw_w)
{
	return !(power_w < PLAUSIBLE * draw_w);
}

/* One reading that is far off would be much of a baseline. What it says of the rest of the row does no harm: a median bounds
 * that. */
static bool is_glitch(const struct row *row, double power_w, double draw_w)
{
	return power_w > SURPLUS * (isnan(draw_w) ? row->charge_w : draw_w) + GLITCH * row->non_gpu_w;
}

/* For baselines: `draw_w` was drawn at that time. */
static void remember_power(struct row *row, double power_w, double draw_w, int64_t wall_us)
{
	if (is_glitch(row, power_w, draw_w))
		return;
	struct span *span = span_at(row, wall_us);
	span->power_w += power_w;
	span->n++;
	if (isnan(draw_w))
		return;
	span->beside_w += draw_w;
	span->n_beside++;
}

/* A reading of a time that is not held against draws of now. */
static void take_late(struct row *row, const struct ww_reading *power_w, int64_t wall_us)
{
	const struct span *span = span_at(row, wall_us);
	double draw_w = mean_of(span->draw_w, span->n_draws);
	if (is_plausible(power_w->value, draw_w))
		remember_power(row, power_w->value, draw_w, wall_us);
}

static void take_power(struct row *row, double power_w, struct ww_now at)
{
	if (isnan(row->draw_w))
		return;
	if (isnan(row->slow_draw_w))
		row->slow_draw_w = row->draw_w;
	row->slow_draw_w += (row->draw_w > row->slow_draw_w ? RISES : FALLS) * (row->draw_w - row->slow_draw_w);
	if (!(fabs(row->slow_draw_w - row->from_w) <= FROM_STEP * row->slow_draw_w))
		row->from_w = (1 - FROM_STEP / 2) * row->slow_draw_w;
	row->bound_us = at.mono_us;
	take_residual(row, power_w);
}

ww_status take_meter(ww_control *c, const struct ww_meter *meter, struct ww_now at, struct ww_error *err)
{
	ww_status status = ww_check_meter(meter, err);
	struct row *row = find_row(c, meter->row);
	const struct ww_reading *power_w = &meter->power_w;
	int64_t wall_us = at.wall_us - power_w->age_ms * (WW_SECOND_US / 1000);
	if (status)
		return status;
	if (!row)
		return ww_fail(err, WW_ERR_NOT_FOUND, "a meter's reading is of a row that is not in the power plan");
	if (ww_reading_known(power_w) && power_w->age_ms > OLDEST_MS) {
		if (row->config.has_meter && power_w->age_ms < UINT16_MAX)
			take_late(row, power_w, wall_us);
		return WW_OK;
	}
	row->meter = *power_w;
	if (!ww_reading_known(power_w))
		return WW_OK;
	row->meter_us = at.mono_us;
	update_draws(c);
	if (!row->config.has_meter)
		return WW_OK;
	if (!is_plausible(power_w->value, row->draw_w)) {
		row->meter = (struct ww_reading){NAN, UINT16_MAX, WW_READING_IMPLAUSIBLE};
		return WW_OK;
	}
	remember_power(row, power_w->value, row->draw_w, wall_us);
	take_power(row, power_w->value, at);
	return WW_OK;
}

/* Draw of the GPUs of each row by samples of the last seconds; NAN where one is missing. */
void update_draws(ww_control *c)
{
	if (c->draws_us == c->now.mono_us)
		return;
	c->draws_us = c->now.mono_us;
	for (uint32_t r = 0; r < c->n_rows; r++)
		c->rows[r].draw_w = 0;
	for (uint32_t n = 0; n < c->n_nodes; n++) {
		const struct node *node = &c->nodes[n];
		double draw_w = c->now.mono_us - node->heard_us <= 5 * WW_SECOND_US / 2 ? 0 : (double)NAN;
		for (uint32_t i = 0; i < node->config.n_gpus; i++)
			draw_w += c->gpus[node->first_gpu + i].draw_w;
		for (uint32_t l = 0; l < node->config.n_loads; l++)
			c->rows[node->config.loads[l].row].draw_w += node->config.loads[l].frac * draw_w;
	}
}

void wait_for_meters(ww_control *c)
{
	int64_t latest_us = c->now.mono_us - OLD_US + GREETING_US;
	for (uint32_t r = 0; r < c->n_rows; r++)
		if (c->rows[r].bound_us > latest_us)
			c->rows[r].bound_us = latest_us;
}

void update_lags(ww_control *c)
{
	double decay = exp(-(double)c->since_us / LAG_US);
	for (uint32_t r = 0; r < c->n_rows; r++) {
		struct row *row = &c->rows[r];
		row->bound_is_old = c->now.mono_us - row->bound_us > OLD_US;
		double draw_w = isnan(row->draw_w) ? row->charge_w : row->draw_w;
		row->lag_w = draw_w < row->lag_w ? draw_w + decay * (row->lag_w - draw_w) : draw_w;
	}
}

/* Non-GPU power = fixed + follow x max(0, charge - from). */
struct rest {
	double fixed_w, follow, from_w;
};

static struct rest rest_of(const struct row *row, int boundary)
{
	const struct ww_row *config = &row->config;
	bool metered = config->has_meter && config->meter_boundary == boundary && !isnan(row->non_gpu_w);
	if (boundary == WW_BOUNDARY_GPU)
		return (struct rest){0};
	if (metered && !row->bound_is_old)
		return (struct rest){row->non_gpu_w, config->follow[boundary], row->from_w};
	double lag_w = isnan(row->lag_w) ? row->charge_w : row->lag_w;
	double declared_w = config->fixed_w[boundary] + config->follow[boundary] * lag_w;
	return (struct rest){metered ? most(declared_w, row->non_gpu_w) : declared_w, config->follow[boundary], lag_w};
}

double non_gpu_at(const struct row *row, int boundary, double charge_w)
{
	struct rest rest = rest_of(row, boundary);
	return rest.fixed_w + rest.follow * most(0, charge_w - rest.from_w);
}

double offer_of(const struct row *row, int boundary, double budget_w)
{
	struct rest rest = rest_of(row, boundary);
	double left_w = budget_w * (1 - row->config.guard_frac) - rest.fixed_w;
	return left_w <= rest.from_w ? left_w : (left_w + rest.follow * rest.from_w) / (1 + rest.follow);
}
