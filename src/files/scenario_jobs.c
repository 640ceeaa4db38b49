/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs and the GPUs they get: first those that name their nodes, then the others in the order of the file. */
#include "files/scenario_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define JOB_GPUS_MAX (1u << 20) /* of all jobs together */

struct raw_pause {
	int64_t every_us, for_us, first_us;
	double power_w;
};

struct raw_job {
	const char *name, *sweep, *group;
	uint32_t count, family, gpus, tier;
	const struct ww_yaml_node *physics, *nodes, *checkpoint, *evaluation;
	double tokens_tps, jitter_frac, floor_frac, weight;
	int64_t start_us, end_us;
};

static const struct ww_yaml_field job_fields[] = {
	{"name", WW_YAML_NAME, true, WW_FIELD(raw_job, name), 0, 0, NULL},
	{"count", WW_YAML_COUNT, false, WW_FIELD(raw_job, count), 1, WW_SCENARIO_JOBS_MAX, "must be 1 to 16384"},
	{"family", WW_YAML_WORD, false, WW_FIELD(raw_job, family), 0, 0,
         "write dense-pretrain, dense-lora, moe-pretrain or moe-lora"},
	{"sweep", WW_YAML_NAME, false, WW_FIELD(raw_job, sweep), 0, 0, NULL},
	{"group", WW_YAML_NAME, false, WW_FIELD(raw_job, group), 0, 0, NULL},
	{"physics", WW_YAML_KEYS, false, WW_FIELD(raw_job, physics), 0, 0, NULL},
	{"tokens", WW_YAML_NUMBER, false, WW_FIELD(raw_job, tokens_tps), 1e-6, 1e9, "must be 0.000001 to 1e9"},
	{"jitter", WW_YAML_PERCENT, false, WW_FIELD(raw_job, jitter_frac), 0, 0.2, "must be 0% to 20%"},
	{"gpus", WW_YAML_COUNT, true, WW_FIELD(raw_job, gpus), 1, JOB_GPUS_MAX, "must be 1 to 1048576"},
	{"nodes", WW_YAML_ITEMS, false, WW_FIELD(raw_job, nodes), 0, 0, NULL},
	{"tier", WW_YAML_COUNT, false, WW_FIELD(raw_job, tier), 0, 3, "must be 0, 1, 2 or 3"},
	{"floor", WW_YAML_PERCENT, false, WW_FIELD(raw_job, floor_frac), WW_ANY_PART},
	{"weight", WW_YAML_NUMBER, false, WW_FIELD(raw_job, weight), 1e-6, 1e6, "must be 0.000001 to 1000000"},
	{"start", WW_YAML_DURATION, false, WW_FIELD(raw_job, start_us), WW_ANY_TIME},
	{"end", WW_YAML_DURATION, false, WW_FIELD(raw_job, end_us), WW_ANY_TIME},
	{"checkpoint", WW_YAML_KEYS, false, WW_FIELD(raw_job, checkpoint), 0, 0, NULL},
	{"evaluation", WW_YAML_KEYS, false, WW_FIELD(raw_job, evaluation), 0, 0, NULL},
};
static const struct ww_yaml_table job_table = {"job", "name", job_fields, WW_N_FIELDS(job_fields)};

#define ACTIVITY 0, 1, "must be 0 to 1"

static const struct ww_yaml_field physics_fields[] = {
	{"phi", WW_YAML_NUMBER, true, WW_FIELD(ww_scenario_job, physics.phi), ACTIVITY},
	{"h", WW_YAML_NUMBER, true, WW_FIELD(ww_scenario_job, physics.h), ACTIVITY},
	{"sm", WW_YAML_NUMBER, true, WW_FIELD(ww_scenario_job, physics.sm), ACTIVITY},
	{"tensor", WW_YAML_NUMBER, true, WW_FIELD(ww_scenario_job, physics.tensor), ACTIVITY},
	{"dram", WW_YAML_NUMBER, true, WW_FIELD(ww_scenario_job, physics.dram), ACTIVITY},
	{"nvlink", WW_YAML_NUMBER, true, WW_FIELD(ww_scenario_job, physics.nvlink), ACTIVITY},
};
static const struct ww_yaml_table physics_table = {"physics", NULL, physics_fields, WW_N_FIELDS(physics_fields)};

static const struct ww_yaml_field pause_fields[] = {
	{"every", WW_YAML_DURATION, true, WW_FIELD(raw_pause, every_us), WW_SOME_TIME},
	{"for", WW_YAML_DURATION, true, WW_FIELD(raw_pause, for_us), WW_SOME_TIME},
	{"power", WW_YAML_POWER, true, WW_FIELD(raw_pause, power_w), WW_GPU_POWER},
	{"first", WW_YAML_DURATION, false, WW_FIELD(raw_pause, first_us), WW_ANY_TIME},
};
static const struct ww_yaml_table pause_table = {"pause", NULL, pause_fields, WW_N_FIELDS(pause_fields)};

struct raw_place {
	const char *node;
	uint32_t gpus;
};

static const struct ww_yaml_field place_fields[] = {
	{"node", WW_YAML_NAME, true, WW_FIELD(raw_place, node), 0, 0, NULL},
	{"gpus", WW_YAML_COUNT, false, WW_FIELD(raw_place, gpus), 1, WW_NODE_GPUS_MAX, "must be 1 to 16"},
};
static const struct ww_yaml_table place_table = {"nodes", "node", place_fields, WW_N_FIELDS(place_fields)};

/* ---- What a job is ----------------------------------------------------------------------------------------------- */

static ww_status check_model(const struct ww_scenario_reader *r, const struct ww_yaml_node *map, const char *label,
                             const struct raw_job *raw)
{
	int n = (raw->family != WW_NOT_GIVEN) + (raw->sweep != NULL) + (raw->physics != NULL);
	if (n != 1)
		return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, map->line, "%s%s; write one of family, sweep and physics",
		                    label, n == 0 ? "nothing says how it behaves" : "there are several models of it");
	if (raw->group && !raw->sweep)
		return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, ww_yaml_line(map, "group"),
		                    "%sgroup: is that of a sweep, but there is none; add sweep, or remove it", label);
	if (raw->sweep && !isnan(raw->tokens_tps))
		return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, ww_yaml_line(map, "tokens"),
		                    "%stokens: the sweep says how many; remove it", label);
	if (raw->physics && isnan(raw->tokens_tps))
		return ww_yaml_fail(
			&r->yaml, WW_ERR_INVALID, ww_yaml_line(map, "physics"),
			"%stokens: is missing; write the tokens/s of each GPU at its full clock, like tokens: "
			"4000",
			label);
	return WW_OK;
}

static ww_status read_physics(const struct ww_scenario_reader *r, const struct ww_yaml_node *map, const char *parent,
                              struct ww_scenario_job *job)
{
	char label[WW_YAML_LABEL_MAX + 16];
	snprintf(label, sizeof label, "%sphysics: ", parent);
	ww_status status = ww_yaml_read_map(&r->yaml, map, &physics_table, label, job);
	if (status || job->physics.phi + job->physics.h <= 1)
		return status;
	return ww_yaml_fail(&r->yaml, WW_ERR_RANGE, ww_yaml_line(map, "h"),
	                    "%sh: phi and h are shares of the time and add up to more than 1; lower one of them",
	                    label);
}

/* Without a first time the pauses of all jobs are spread over the interval, at whole seconds. */
static ww_status read_pause(const struct ww_scenario_reader *r, const struct ww_yaml_node *map, const char *parent,
                            int64_t start_us, struct ww_scenario_pause *pause)
{
	char label[WW_YAML_LABEL_MAX + 16];
	struct raw_pause raw = {.first_us = -1};
	if (!map)
		return WW_OK;
	snprintf(label, sizeof label, "%s%s: ", parent, map->key);
	ww_status status = ww_yaml_read_map(&r->yaml, map, &pause_table, label, &raw);
	if (status)
		return status;
	if (raw.for_us >= raw.every_us)
		return ww_yaml_fail(&r->yaml, WW_ERR_RANGE, ww_yaml_line(map, "for"),
		                    "%sfor: is not shorter than every; correct one of them", label);
	if (raw.power_w > r->s.gpu.max_w)
		return ww_yaml_fail(&r->yaml, WW_ERR_RANGE, ww_yaml_line(map, "power"),
		                    "%spower: %.10g W is more than max of gpu, %.10g W; correct it", label, raw.power_w,
		                    r->s.gpu.max_w);
	*pause = (struct ww_scenario_pause){raw.every_us, raw.for_us, raw.first_us, raw.power_w};
	if (raw.first_us >= 0)
		pause->first_us += start_us;
	return WW_OK;
}

static void spread_pauses(struct ww_scenario *s)
{
	for (size_t i = 0; i < s->n_jobs; i++) {
		struct ww_scenario_pause *pauses[] = {&s->jobs[i].evaluation, &s->jobs[i].checkpoint};
		for (size_t k = 0; k < 2; k++) {
			double part = ((double)i + (double)(k + 1) / 2) / ((double)s->n_jobs + 1);
			if (pauses[k]->every_us > 0 && pauses[k]->first_us < 0)
				pauses[k]->first_us =
					s->jobs[i].start_us +
					(int64_t)(part * (double)pauses[k]->every_us / 1e6) * WW_SECOND_US;
		}
	}
}

/* A relative path begins at the directory of the scenario. */
static char *sweep_path(const char *file, const char *sweep)
{
	const char *slash = *sweep == '/' ? NULL : strrchr(file, '/');
	size_t before = slash ? (size_t)(slash - file) + 1 : 0, n = strlen(sweep) + 1;
	char *path = malloc(before + n);
	if (!path)
		return NULL;
	memcpy(path, file, before);
	memcpy(path + before, sweep, n);
	return path;
}

static ww_status read_job(const struct ww_scenario_reader *r, const struct ww_yaml_node *map, const char *label,
                          struct raw_job *raw, struct ww_scenario_job *job)
{
	static const double floors[] = {1.00, 0.90, 0.75, 0.50};
	struct ww_scenario_span span = {raw->start_us, raw->end_us, -1, "end"};
	ww_status status = check_model(r, map, label, raw);
	*job = (struct ww_scenario_job){.model = raw->physics ? WW_SCENARIO_PHYSICS
	                                         : raw->sweep ? WW_SCENARIO_SWEEP
	                                                      : WW_SCENARIO_FAMILY,
	                                .family = raw->family == WW_NOT_GIVEN ? 0 : raw->family,
	                                .tokens_tps = raw->tokens_tps,
	                                .jitter_frac = raw->jitter_frac,
	                                .tier = raw->tier == WW_NOT_GIVEN ? 3 : raw->tier,
	                                .floor_frac = raw->floor_frac,
	                                .weight = raw->weight,
	                                .start_us = raw->start_us,
	                                .line = map->line};
	if (isnan(job->floor_frac))
		job->floor_frac = raw->tier == WW_NOT_GIVEN ? 0 : floors[raw->tier];
	if (!status)
		status = ww_scenario_within(r, map, label, "start", raw->start_us);
	if (!status)
		status = ww_scenario_end(r, map, label, &span, &job->end_us);
	if (!status && raw->physics)
		status = read_physics(r, raw->physics, label, job);
	if (!status)
		status = read_pause(r, raw->checkpoint, label, raw->start_us, &job->checkpoint);
	return status ? status : read_pause(r, raw->evaluation, label, raw->start_us, &job->evaluation);
}

/* ---- Where it runs ----------------------------------------------------------------------------------------------- */

/* A job being placed. */
struct placing {
	uint32_t job;
	const struct ww_yaml_node *map;
	const char *label;
	uint32_t wanted; /* GPUs still without a place */
	uint32_t n_nodes, last_node;
	/* Nodes below this one have no free GPU all through this time. */
	uint32_t from_node;
	int64_t start_us, end_us;
};

static bool is_free(const struct ww_scenario_reader *r, uint32_t gpu, const struct ww_scenario_job *job)
{
	for (uint32_t use = r->first_use[gpu]; use > 0; use = r->uses[use - 1].next) {
		const struct ww_scenario_job *other = &r->s.jobs[r->uses[use - 1].job];
		if (other->start_us < job->end_us && job->start_us < other->end_us)
			return false;
	}
	return true;
}

static ww_status take_gpu(struct ww_scenario_reader *r, struct placing *p, uint32_t node, uint32_t gpu)
{
	struct ww_scenario_job *job = &r->s.jobs[p->job];
	if (p->last_node != node && p->n_nodes == WW_JOB_PLACES_MAX)
		return ww_yaml_fail(&r->yaml, WW_ERR_RANGE, ww_yaml_line(p->map, "gpus"),
		                    "%sgpus: are on more than %d nodes; divide the job", p->label, WW_JOB_PLACES_MAX);
	if (!ww_grow(r->uses, r->n_uses, 1))
		return ww_yaml_no_memory(&r->yaml);
	p->n_nodes += p->last_node != node;
	p->last_node = node;
	r->uses[r->n_uses++] = (struct ww_scenario_use){p->job, r->first_use[gpu]};
	r->first_use[gpu] = (uint32_t)r->n_uses;
	job->gpus[job->n_gpus++] = gpu;
	p->wanted--;
	return WW_OK;
}

/* Takes up to `most` free GPUs of a node. */
static ww_status take_on_node(struct ww_scenario_reader *r, struct placing *p, uint32_t node, uint32_t most)
{
	const struct ww_scenario_node *n = &r->s.nodes[node];
	uint32_t until = p->wanted > most ? p->wanted - most : 0;
	for (uint32_t gpu = n->first_gpu; gpu < n->first_gpu + n->gpus && p->wanted > until; gpu++) {
		ww_status status = is_free(r, gpu, &r->s.jobs[p->job]) ? take_gpu(r, p, node, gpu) : WW_OK;
		if (status)
			return status;
	}
	return WW_OK;
}

/* An entry of the list is a name, or {node: NAME, gpus: 4}, which wants just these. */
static ww_status place_on(struct ww_scenario_reader *r, struct placing *p, const struct ww_yaml_node *entry)
{
	char label[WW_YAML_LABEL_MAX + 16];
	struct raw_place raw = {.gpus = WW_NOT_GIVEN};
	const struct ww_yaml_node *name = entry;
	uint32_t node = 0, before = p->wanted;
	ww_status status;
	snprintf(label, sizeof label, "%snodes: ", p->label);
	if (entry->form == WW_YAML_TEXT) {
		status = ww_yaml_read_name(&r->yaml, entry, label, &raw.node);
	} else {
		status = ww_yaml_read_map(&r->yaml, entry, &place_table, label, &raw);
		name = status ? entry : ww_scenario_value(entry, "node");
	}
	if (status || (status = ww_book_find(r, &r->nodes, name, label, &node)))
		return status;
	if (raw.gpus != WW_NOT_GIVEN && raw.gpus > p->wanted)
		return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, entry->line,
		                    "%shave more GPUs than the job; correct gpus, or place fewer", label);
	if ((status = take_on_node(r, p, node, raw.gpus)) || raw.gpus == WW_NOT_GIVEN || before - p->wanted == raw.gpus)
		return status;
	return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, entry->line,
	                    "%sonly %u of %u GPUs of '%s' are free at its time; place it elsewhere, or at another time",
	                    label, before - p->wanted, r->s.nodes[node].gpus, r->s.nodes[node].name);
}

static ww_status place_anywhere(struct ww_scenario_reader *r, struct placing *p)
{
	const struct ww_scenario_job *job = &r->s.jobs[p->job];
	ww_status status = WW_OK;
	if (job->start_us > p->start_us || job->end_us < p->end_us)
		p->from_node = 0;
	p->start_us = job->start_us;
	p->end_us = job->end_us;
	for (;;) {
		status = take_on_node(r, p, p->from_node, WW_NODE_GPUS_MAX);
		if (status || p->wanted == 0 || p->from_node + 1 == r->s.n_nodes)
			return status;
		p->from_node++;
	}
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

static ww_status place_job(struct ww_scenario_reader *r, struct placing *p, const struct raw_job *raw)
{
	struct ww_scenario_job *job = &r->s.jobs[p->job];
	ww_status status = WW_OK;
	p->wanted = raw->gpus;
	p->n_nodes = 0;
	p->last_node = UINT32_MAX;
	job->gpus = calloc(raw->gpus, sizeof *job->gpus);
	if (!job->gpus)
		return ww_yaml_no_memory(&r->yaml);
	for (const struct ww_yaml_node *entry = raw->nodes ? raw->nodes->first : NULL; entry && !status;
	     entry = entry->next)
		status = place_on(r, p, entry);
	if (!raw->nodes)
		status = place_anywhere(r, p);
	if (status)
		return status;
	qsort(job->gpus, job->n_gpus, sizeof *job->gpus, by_number);
	if (p->wanted == 0)
		return WW_OK;
	return ww_yaml_fail(&r->yaml, WW_ERR_INVALID, ww_yaml_line(p->map, "gpus"),
	                    "%sgpus: '%s' wants %u, but %s %u are free at its time; lower it, add nodes, or choose "
	                    "another time",
	                    p->label, job->name, raw->gpus, raw->nodes ? "on its nodes only" : "only", job->n_gpus);
}

/* ---- The list ---------------------------------------------------------------------------------------------------- */

/* An entry of the list, and the jobs it stands for. */
struct entry {
	struct raw_job raw;
	const struct ww_yaml_node *map;
	size_t first, n;
};

static ww_status check_sums(const struct ww_scenario_reader *r, const struct entry *e, const char *label,
                            uint64_t *n_gpus)
{
	*n_gpus += (uint64_t)e->n * e->raw.gpus;
	if (r->s.n_jobs + e->n > WW_SCENARIO_JOBS_MAX)
		return ww_yaml_fail(&r->yaml, WW_ERR_RANGE, e->map->line, "%smore than %d jobs; leave some out", label,
		                    WW_SCENARIO_JOBS_MAX);
	if (*n_gpus > JOB_GPUS_MAX)
		return ww_yaml_fail(&r->yaml, WW_ERR_RANGE, ww_yaml_line(e->map, "gpus"),
		                    "%sgpus: all jobs together have more than %u GPUs; leave some out", label,
		                    JOB_GPUS_MAX);
	return WW_OK;
}

static ww_status add_job(struct ww_scenario_reader *r, const struct entry *e, const char *label, uint32_t number,
                         const struct ww_scenario_job *like)
{
	if (!ww_grow(r->s.jobs, r->s.n_jobs, 1))
		return ww_yaml_no_memory(&r->yaml);
	/* Counted at once, so that what it holds is freed after any failure. */
	struct ww_scenario_job *job = &r->s.jobs[r->s.n_jobs++];
	*job = *like;
	ww_status status = ww_scenario_name(r, e->map, label, number, &job->name);
	if (status)
		return status;
	if (e->raw.sweep) {
		job->sweep = sweep_path(r->s.file, e->raw.sweep);
		job->group = ww_copy_text(e->raw.group ? e->raw.group : e->raw.name);
		if (!job->sweep || !job->group)
			return ww_yaml_no_memory(&r->yaml);
	}
	return ww_book_add(r, &r->jobs, job->name, ww_yaml_line(e->map, "name"), label);
}

static ww_status add_entry(struct ww_scenario_reader *r, struct entry *e, const char *label, uint64_t *n_gpus)
{
	struct ww_scenario_job job;
	e->raw = (struct raw_job){.count = WW_NOT_GIVEN,
	                          .family = WW_NOT_GIVEN,
	                          .tier = WW_NOT_GIVEN,
	                          .tokens_tps = NAN,
	                          .jitter_frac = 0.01,
	                          .floor_frac = NAN,
	                          .weight = 1,
	                          .end_us = -1};
	ww_status status = ww_yaml_read_map(&r->yaml, e->map, &job_table, label, &e->raw);
	bool is_counted = e->raw.count != WW_NOT_GIVEN;
	e->first = r->s.n_jobs;
	e->n = is_counted ? e->raw.count : 1;
	if (status || (status = check_sums(r, e, label, n_gpus)) ||
	    (status = read_job(r, e->map, label, &e->raw, &job)))
		return status;
	for (uint32_t i = 1; i <= e->n && !status; i++)
		status = add_job(r, e, label, is_counted ? i : 0, &job);
	return status;
}

static ww_status place_entries(struct ww_scenario_reader *r, const struct entry *entries, size_t n, bool named)
{
	char label[WW_YAML_LABEL_MAX];
	struct placing p = {.start_us = INT64_MIN, .end_us = INT64_MAX};
	for (size_t i = 0; i < n; i++) {
		const struct entry *e = &entries[i];
		if ((e->raw.nodes != NULL) != named)
			continue;
		ww_yaml_label(label, "", &job_table, e->map, i + 1);
		p.map = e->map;
		p.label = label;
		for (size_t k = 0; k < e->n; k++) {
			p.job = (uint32_t)(e->first + k);
			ww_status status = place_job(r, &p, &e->raw);
			if (status)
				return status;
		}
	}
	return WW_OK;
}

ww_status ww_scenario_jobs(struct ww_scenario_reader *r, const struct ww_yaml_node *list)
{
	char label[WW_YAML_LABEL_MAX];
	ww_status status = WW_OK;
	uint64_t n_gpus = 0;
	size_t n = 0;
	struct entry *entries = calloc(list->n, sizeof *entries);
	r->first_use = calloc(r->s.n_gpus, sizeof *r->first_use);
	if (!entries || !r->first_use) {
		free(entries);
		return ww_yaml_no_memory(&r->yaml);
	}
	for (const struct ww_yaml_node *map = list->first; map && !status; map = map->next) {
		struct entry *e = &entries[n++];
		e->map = map;
		ww_yaml_label(label, "", &job_table, map, n);
		status = add_entry(r, e, label, &n_gpus);
	}
	if (!status) {
		spread_pauses(&r->s);
		status = place_entries(r, entries, n, true);
	}
	if (!status)
		status = place_entries(r, entries, n, false);
	free(entries);
	return status;
}
