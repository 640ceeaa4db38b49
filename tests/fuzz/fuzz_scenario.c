/* SPDX-License-Identifier: Apache-2.0 */
/* The scenario reader on any bytes. What it accepts keeps every promise of files.h. */
#include "fuzz.h"

#include "files/files.h"

#include <math.h>

static void check_name(const char *name, size_t line)
{
	require(*name != '\0' && strlen(name) < WW_NAME_MAX && line > 0);
	check_text(name);
}

static bool is_part(double v)
{
	return v >= 0 && v <= 1;
}

static bool is_power(double v)
{
	return v >= 0 && v <= 1e11;
}

static void check_gpu(const struct ww_scenario_gpu *g)
{
	require(g->min_w > 0 && g->min_w <= g->default_w && g->default_w <= g->max_w && g->max_w <= 1e5);
	require(g->idle_w > 0 && g->idle_w <= g->min_w);
	require(is_part(g->chip_sd) && is_part(g->gain_sd) && is_part(g->sensor_noise_frac));
	require(g->dead_us >= 0 && g->settle_us >= 0);
}

static void check_row(const struct ww_scenario *s, const struct ww_scenario_row *row)
{
	check_name(row->name, row->line);
	require(row->limit_w > 0 && row->boundary < WW_N_BOUNDARIES && row->n_loads > 0);
	require(is_power(row->other_w) && row->cooling_frac >= 0 && row->cooling_frac <= 2 && row->cooling_lag_us >= 0);
	require(is_part(row->guard_frac) && is_part(row->meter_noise_frac));
	for (size_t i = 0; i < row->n_loads; i++) {
		require(row->loads[i].node < s->n_nodes && (i == 0 || row->loads[i].node > row->loads[i - 1].node));
		require(row->loads[i].frac > 0 && row->loads[i].frac <= 1);
	}
}

static void check_node(const struct ww_scenario *s, const struct ww_scenario_node *node)
{
	check_name(node->name, node->line);
	require(node->gpus > 0 && node->gpus <= WW_NODE_GPUS_MAX && node->first_gpu + node->gpus <= s->n_gpus);
	require(is_power(node->host_w) && node->follow_frac >= 0 && node->follow_frac <= 2);
	require(node->lag_us >= 0 && node->boot_us >= 0);
	require(isnan(node->boot_cap_w) || (node->boot_cap_w >= s->gpu.min_w && node->boot_cap_w <= s->gpu.max_w));
	require(node->n_loads > 0 && node->n_loads <= WW_ROW_LOADS_MAX);
	for (uint32_t i = 0; i < node->n_loads; i++) {
		require(node->loads[i].row < s->n_rows && (i == 0 || node->loads[i].row > node->loads[i - 1].row));
		require(node->loads[i].frac > 0 && node->loads[i].frac <= 1);
	}
}

static void check_pause(const struct ww_scenario *s, const struct ww_scenario_pause *pause)
{
	if (pause->every_us == 0)
		return;
	require(pause->for_us > 0 && pause->for_us < pause->every_us && pause->first_us >= 0);
	require(pause->power_w > 0 && pause->power_w <= s->gpu.max_w);
}

static void check_job(const struct ww_scenario *s, const struct ww_scenario_job *job)
{
	check_name(job->name, job->line);
	require((job->model == WW_SCENARIO_SWEEP) == (job->sweep != NULL) &&
	        (job->sweep != NULL) == (job->group != NULL));
	require(job->family < WW_N_SCENARIO_FAMILIES && job->tier <= 3 && is_part(job->floor_frac) && job->weight > 0);
	require(job->start_us >= 0 && job->start_us < s->duration_us && job->end_us > job->start_us);
	require(job->model != WW_SCENARIO_PHYSICS || (job->tokens_tps > 0 && job->physics.phi + job->physics.h <= 1));
	check_pause(s, &job->checkpoint);
	check_pause(s, &job->evaluation);
	require(job->n_gpus > 0);
	for (uint32_t i = 0; i < job->n_gpus; i++)
		require(job->gpus[i] < s->n_gpus && (i == 0 || job->gpus[i] > job->gpus[i - 1]));
}

static void check_events(const struct ww_scenario *s)
{
	for (size_t i = 0; i < s->n_events; i++) {
		const struct ww_scenario_event *e = &s->events[i];
		check_name(e->name, e->line);
		require(e->row < s->n_rows && e->boundary < WW_N_BOUNDARIES && e->cls < WW_N_CLASSES);
		require(isnan(e->limit_w) != isnan(e->cut_frac) && !(e->limit_w <= 0) && !(e->cut_frac <= 0));
		require(e->at_us < s->duration_us && e->at_us < e->end_us && e->start_us < e->end_us);
		require(e->ramp_down_us >= 0 && e->ramp_up_us >= 0);
		require(e->version == 1 || (e->version == e[-1].version + 1 && e->at_us > e[-1].at_us &&
		                            !e[-1].cancelled && strcmp(e->name, e[-1].name) == 0));
	}
}

static void check_faults(const struct ww_scenario *s)
{
	for (size_t i = 0; i < s->n_faults; i++) {
		const struct ww_scenario_fault *f = &s->faults[i];
		require(f->kind < WW_N_SCENARIO_FAULTS && f->at_us >= 0 && f->at_us < s->duration_us);
		require(f->kind == WW_SCENARIO_FOREIGN ? f->value_w >= s->gpu.min_w && f->value_w <= s->gpu.max_w
		                                       : f->until_us > f->at_us);
		require(f->node < (f->kind == WW_SCENARIO_METER ? s->n_rows : s->n_nodes));
		require(f->kind != WW_SCENARIO_FOREIGN || f->gpu < s->nodes[f->node].gpus);
		require(i == 0 || f->at_us >= f[-1].at_us);
	}
}

static void check_scenario(const struct ww_scenario *s)
{
	require(strcmp(s->file, "fuzz.yaml") == 0 && s->n_rows > 0 && s->n_nodes > 0 && s->n_jobs > 0);
	check_name(s->name, 1);
	require(s->duration_us > 0 && s->duration_us % WW_SECOND_US == 0 && s->period_us >= WW_SECOND_US);
	require(s->lease_us >= 2 * s->period_us && s->settle_us >= 0 && s->after < WW_N_AFTERS);
	require(s->curves.n_cuts <= WW_SCENARIO_CUTS_MAX && is_part(s->wire.loss_frac));
	require(s->wire.delay_least_us <= s->wire.delay_most_us);
	check_gpu(&s->gpu);
	for (size_t i = 0; i < s->n_rows; i++)
		check_row(s, &s->rows[i]);
	for (size_t i = 0; i < s->n_nodes; i++)
		check_node(s, &s->nodes[i]);
	for (size_t i = 0; i < s->n_jobs; i++)
		check_job(s, &s->jobs[i]);
	check_events(s);
	check_faults(s);
}

static void check_error(const struct ww_error *err, ww_status status)
{
	require(err->code == status && strncmp(err->text, "fuzz.yaml: line ", strlen("fuzz.yaml: line ")) == 0);
	check_text(err->text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ww_scenario scenario, untouched;
	struct ww_error err = {WW_OK, ""};
	FILE *in = fmemopen((void *)data, size, "r");
	if (!in)
		return 0;
	memset(&scenario, 0xA5, sizeof scenario);
	untouched = scenario;
	ww_status status = ww_scenario_parse(in, "fuzz.yaml", &scenario, &err);
	if (status == WW_OK) {
		check_scenario(&scenario);
		ww_scenario_finish(&scenario);
	} else {
		require(memcmp(&scenario, &untouched, sizeof scenario) == 0);
		check_error(&err, status);
	}
	(void)fclose(in);
	return 0;
}
