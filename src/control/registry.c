/* SPDX-License-Identifier: Apache-2.0 */
/* Inventory and jobs. */
#include "control/control_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct node *find_node(const ww_control *c, uint64_t id)
{
	uint32_t lo = 0, hi = c->n_nodes;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (c->node_by_id[mid].id < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	bool found = lo < c->n_nodes && c->node_by_id[lo].id == id;
	return found ? &c->nodes[c->node_by_id[lo].node] : NULL;
}

struct row *find_row(const ww_control *c, uint64_t id)
{
	for (uint32_t r = 0; r < c->n_rows; r++)
		if (c->rows[r].config.id == id)
			return &c->rows[r];
	return NULL;
}

uint32_t job_place(const ww_control *c, uint64_t id)
{
	uint32_t lo = 0, hi = c->n_jobs;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (c->jobs[mid]->told.id < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* ---- Inventory -------------------------------------------------------------------------------------------------------- */

static void forget_inventory(ww_control *c)
{
	free(c->rows);
	free(c->nodes);
	free(c->talks);
	free(c->gpus);
	free(c->node_by_id);
	free(c->first_gpu);
}

static void forget_problem(struct problem *problem)
{
	free(problem->jobs);
	free(problem->shares);
	free(problem->rows);
	free(problem->job_of);
	free(problem->curves);
}

void forget_all(ww_control *c)
{
	forget_inventory(c);
	for (uint32_t j = 0; j < c->n_jobs; j++)
		free(c->jobs[j]);
	free(c->jobs);
	free(c->events);
	forget_problem(&c->problem);
	forget_problem(&c->ahead_problem);
	free(c->wanted_rows);
	free(c->row_free_w);
	free(c->row_need_w);
	free(c->commands);
	free(c->needs_save);
	free(c->row_decisions);
	free(c->gpu_decisions);
	free(c->job_decisions);
	free(c->event_decisions);
	ww_alloc_destroy(c->alloc);
	ww_alloc_destroy(c->alloc_ahead);
}

static void fresh_row(struct row *row, const struct ww_row *config)
{
	*row = (struct row){.config = *config,
	                    .meter = {NAN, UINT16_MAX, WW_READING_LOST},
	                    .non_gpu_w = NAN,
	                    .draw_w = NAN,
	                    .slow_draw_w = NAN,
	                    .lag_w = NAN,
	                    .over_offer_w = INFINITY,
	                    .budget_w = INFINITY,
	                    .offer_w = INFINITY};
}

static void fresh_gpu(struct gpu *gpu, uint32_t node, const struct ww_node_config *config)
{
	*gpu = (struct gpu){.node = node,
	                    .enforced_w = NAN,
	                    .draw_w = NAN,
	                    .goal_w = NAN,
	                    .recorded_w = NAN,
	                    .boot_w = NAN,
	                    .most_w = NAN,
	                    .need_frac = NAN,
	                    .ceiling_w = config->max_w,
	                    .managed = 1,
	                    .charge_w = config->max_w,
	                    .decided_w = config->max_w,
	                    .stored_w = config->max_w,
	                    .cap_w = NAN,
	                    .blind_w = NAN,
	                    .target_w = config->max_w,
	                    .raised_us = INT64_MIN / 2};
}

/* A limit found before the first write is where the GPU returns to, but for what the boot unit wrote. */
void take_found(struct gpu *gpu, const struct ww_node_config *config, float found)
{
	if (fabsf(found - config->boot_cap_w) <= 1)
		found = config->default_w;
	if (found >= config->min_w && found <= config->max_w)
		gpu->ceiling_w = found;
}

/* What is known of a GPU whose limits may be others now. What its board obeys stays charged; it returns to what was found on
 * it, within the limits, and to the highest one where nothing lower was found. */
static void keep_gpu(struct gpu *gpu, const struct gpu *old, const struct ww_node_config *before,
                     const struct ww_node_config *now)
{
	uint32_t node = gpu->node;
	*gpu = *old;
	gpu->node = node;
	gpu->ceiling_w = old->ceiling_w >= before->max_w
	                         ? now->max_w
	                         : least_known(most_known(old->ceiling_w, now->min_w), now->max_w);
	take_found(gpu, now, gpu->recorded_w);
	if (isnan(gpu->enforced_w))
		gpu->charge_w = most_known(gpu->charge_w, now->max_w);
}

static int by_node_id(const void *a, const void *b)
{
	const struct node_id *p = a, *q = b;
	return (p->id > q->id) - (p->id < q->id);
}

static void give_talk(struct node *node, struct talk *talk)
{
	node->rates = talk->rates;
	node->outstanding = talk->outstanding;
	node->last = &talk->last;
}

/* The inventory of `config` with nothing known yet. A node may have been in it before: what it was sent then is on its way
 * still, up to `last_seq`, and not known any more. */
static ww_status build(ww_control *to, const struct ww_config *config, uint64_t last_seq, struct ww_error *err)
{
	to->n_rows = config->n_rows;
	to->n_nodes = config->n_nodes;
	to->n_gpus = 0;
	for (uint32_t n = 0; n < config->n_nodes; n++)
		to->n_gpus += config->nodes[n].n_gpus;
	to->rows = calloc(to->n_rows + 1, sizeof *to->rows);
	to->nodes = calloc(to->n_nodes + 1, sizeof *to->nodes);
	to->talks = calloc(to->n_nodes + 1, sizeof *to->talks);
	to->gpus = calloc(to->n_gpus + 1, sizeof *to->gpus);
	to->node_by_id = calloc(to->n_nodes + 1, sizeof *to->node_by_id);
	to->first_gpu = calloc(to->n_nodes + 1, sizeof *to->first_gpu);
	if (!to->rows || !to->nodes || !to->talks || !to->gpus || !to->node_by_id || !to->first_gpu)
		return ww_fail(err, WW_ERR_NOMEM, "out of memory for %u nodes", (unsigned)config->n_nodes);
	for (uint32_t r = 0; r < to->n_rows; r++)
		fresh_row(&to->rows[r], &config->rows[r]);
	for (uint32_t n = 0, g = 0; n < to->n_nodes; n++) {
		struct node *node = &to->nodes[n];
		node->config = config->nodes[n];
		give_talk(node, &to->talks[n]);
		node->first_gpu = to->first_gpu[n] = g;
		node->heard_us = node->alive_us = node->sent_us = INT64_MIN / 2;
		node->next_seq = node->since_seq = last_seq + 1;
		to->node_by_id[n] = (struct node_id){node->config.id, n};
		for (uint32_t i = 0; i < node->config.n_gpus; i++)
			fresh_gpu(&to->gpus[g++], n, &node->config);
	}
	to->first_gpu[to->n_nodes] = to->n_gpus;
	qsort(to->node_by_id, to->n_nodes, sizeof *to->node_by_id, by_node_id);
	return WW_OK;
}

/* A meter that measures something else now has shown nothing yet. */
static void keep_row(struct row *row, const struct row *old)
{
	struct ww_row config = row->config;
	if (old->config.has_meter != config.has_meter || old->config.meter_boundary != config.meter_boundary)
		return;
	*row = *old;
	row->config = config;
}

/* A node that is taken out may well run on: what it may draw is part of the rest of its rows, until their meters say less. */
static void count_gone(ww_control *to, const ww_control *from)
{
	for (uint32_t n = 0; n < from->n_nodes; n++) {
		const struct node *node = &from->nodes[n];
		double charge_w = 0;
		if (find_node(to, node->config.id))
			continue;
		for (uint32_t i = 0; i < node->config.n_gpus; i++)
			charge_w += from->gpus[node->first_gpu + i].charge_w;
		for (uint32_t l = 0; l < node->config.n_loads; l++) {
			struct row *row = find_row(to, from->rows[node->config.loads[l].row].config.id);
			float w = (float)(charge_w * node->config.loads[l].frac);
			for (uint32_t i = 0; row && i < row->n_residuals; i++)
				row->residual[i] += w;
			if (row)
				row->non_gpu_w += w;
		}
	}
}

/* What is known of things that stay. */
static void keep_known(ww_control *to, const ww_control *from)
{
	for (uint32_t r = 0; r < to->n_rows; r++) {
		struct row *row = &to->rows[r], *old = find_row(from, row->config.id);
		if (old)
			keep_row(row, old);
	}
	for (uint32_t n = 0; n < to->n_nodes; n++) {
		struct node *node = &to->nodes[n], *old = find_node(from, node->config.id);
		if (!old || old->config.n_gpus != node->config.n_gpus)
			continue;
		struct node now = *old;
		now.config = node->config;
		now.first_gpu = node->first_gpu;
		*node = now;
		to->talks[n] = from->talks[old - from->nodes];
		give_talk(node, &to->talks[n]);
		for (uint32_t i = 0; i < node->config.n_gpus; i++)
			keep_gpu(&to->gpus[node->first_gpu + i], &from->gpus[old->first_gpu + i], &old->config,
			         &node->config);
	}
}

/* Its GPUs, where they are in the inventory; rows can be no more than those of all its nodes, nor all rows. */
static void place_job(ww_control *c, struct job *job)
{
	job->n_gpus = job->n_shares = 0;
	for (uint32_t p = 0; p < job->told.n_places; p++) {
		const struct ww_place *place = &job->told.places[p];
		const struct node *node = find_node(c, place->node);
		job->n_shares += node ? node->config.n_loads : 0;
		for (uint32_t i = 0; node && i < node->config.n_gpus; i++) {
			if (!(place->gpus >> i & 1))
				continue;
			job->gpus[job->n_gpus++] = node->first_gpu + i;
			c->gpus[node->first_gpu + i].job = job;
		}
	}
	job->n_shares = job->n_shares < c->n_rows ? job->n_shares : c->n_rows;
	c->n_shares += job->n_shares;
}

static void unplace_job(ww_control *c, const struct job *job)
{
	for (uint32_t k = 0; k < job->n_gpus; k++)
		c->gpus[job->gpus[k]].job = NULL;
	c->n_shares -= job->n_shares;
}

static void tell_of_news(ww_control *c)
{
	c->draws_us = WW_NEVER_US;
	c->news = true;
}

static void place_jobs(ww_control *c)
{
	for (uint32_t g = 0; g < c->n_gpus; g++)
		c->gpus[g].job = NULL;
	c->n_shares = 0;
	for (uint32_t j = 0; j < c->n_jobs; j++)
		place_job(c, c->jobs[j]);
	tell_of_news(c);
}

/* Room for `n` elements and one more; what is there is kept. */
static bool grow(void *array, size_t n, size_t size)
{
	void **old = array, *more = realloc(*old, (n + 1) * size);
	if (more)
		*old = more;
	return more != NULL;
}

static bool grow_problem(struct problem *problem, const struct room *room)
{
	return grow(&problem->jobs, room->jobs, sizeof *problem->jobs) &&
	       grow(&problem->shares, room->shares, sizeof *problem->shares) &&
	       grow(&problem->rows, room->rows, sizeof *problem->rows) &&
	       grow(&problem->job_of, room->jobs, sizeof *problem->job_of) &&
	       grow(&problem->curves, room->jobs, sizeof *problem->curves);
}

static bool grow_all(ww_control *c, const struct room *room)
{
	return grow_problem(&c->problem, room) && grow_problem(&c->ahead_problem, room) &&
	       grow(&c->wanted_rows, room->rows, sizeof *c->wanted_rows) &&
	       grow(&c->row_free_w, room->rows, sizeof *c->row_free_w) &&
	       grow(&c->row_need_w, room->rows, sizeof *c->row_need_w) &&
	       grow(&c->commands, room->nodes, sizeof *c->commands) &&
	       grow(&c->needs_save, room->nodes, sizeof *c->needs_save) &&
	       grow(&c->row_decisions, room->rows, sizeof *c->row_decisions) &&
	       grow(&c->gpu_decisions, room->gpus, sizeof *c->gpu_decisions) &&
	       grow(&c->job_decisions, room->jobs, sizeof *c->job_decisions) &&
	       grow(&c->event_decisions, room->events, sizeof *c->event_decisions);
}

/* With room to spare, so that many jobs one after the other cost no more than all at once. */
static size_t room_for(size_t need, size_t have)
{
	return need <= have ? have : have == 0 ? need : need + need / 2;
}

/* Never shrinks: after a failure the last division must still have its room. */
ww_status make_room(ww_control *c, struct ww_error *err)
{
	struct room have = c->room, room = {.jobs = room_for(c->n_jobs, have.jobs),
	                                    .rows = room_for(c->n_rows, have.rows),
	                                    .shares = room_for(c->n_shares, have.shares),
	                                    .nodes = room_for(c->n_nodes, have.nodes),
	                                    .gpus = room_for(c->n_gpus, have.gpus),
	                                    .events = room_for(c->n_events, have.events)};
	if (!c->wanted_rows || memcmp(&room, &have, sizeof room) != 0) { /* also for nothing at all */
		ww_status status = grow_all(c, &room) ? grow_divisions(c, &room, err) : WW_ERR_NOMEM;
		if (status)
			return ww_fail(err, WW_ERR_NOMEM, "out of memory for %zu jobs on %zu rows", room.jobs,
			               room.rows);
		c->room = room;
	}
	forget_division(c);
	c->decision = (struct ww_decision){.seq = c->decision.seq, .at = c->decision.at};
	return WW_OK;
}

/* Jobs or inventory are as they were: so are places and the division. */
static void settle_back(ww_control *c, bool news)
{
	place_jobs(c);
	c->news = news;
	(void)!divide_again(c, NULL);
}

/* What no board can have; shorter leases and boots would have every node count as silent. */
static ww_status check_nodes(const struct ww_config *config, struct ww_error *err)
{
	int64_t least_us = config->settle_us + 10 * WW_SECOND_US;
	if (config->valid_for_us < 3 * WW_SECOND_US)
		return ww_fail(err, WW_ERR_RANGE, "configuration: a lease of %g s; give at least 3 s",
		               (double)config->valid_for_us / 1e6);
	for (uint32_t n = 0; n < config->n_nodes; n++)
		if ((double)config->nodes[n].max_w > MOST_W)
			return ww_fail(err, WW_ERR_RANGE, "node '%s': max_w is %g W per GPU; must be at most %g",
			               config->nodes[n].name, (double)config->nodes[n].max_w, MOST_W);
		else if (config->nodes[n].shortest_boot_us < least_us)
			return ww_fail(err, WW_ERR_RANGE,
			               "node '%s': boots in %g s; give at least 10 s more than settle, %g s",
			               config->nodes[n].name, (double)config->nodes[n].shortest_boot_us / 1e6,
			               (double)least_us / 1e6);
	return WW_OK;
}

/* Nodes that restore on their own when they hear nothing may do so all at once. */
static ww_status check_restore(const struct ww_config *config, struct ww_error *err)
{
	if (config->after != WW_AFTER_RESTORE)
		return WW_OK;
	for (uint32_t r = 0; r < config->n_rows; r++) {
		struct row row;
		double full_w = 0;
		fresh_row(&row, &config->rows[r]);
		for (uint32_t n = 0; n < config->n_nodes; n++)
			for (uint32_t l = 0; l < config->nodes[n].n_loads; l++)
				if (config->nodes[n].loads[l].row == r)
					full_w += (double)config->nodes[n].loads[l].frac * config->nodes[n].n_gpus *
					          (double)config->nodes[n].max_w;
		if (full_w > offer_of(&row, row.config.boundary, row.config.limit_w))
			return ww_fail(err, WW_ERR_RANGE,
			               "after: restore is refused: row '%s' cannot carry all its GPUs at their highest "
			               "limits; use hold or failcap",
			               row.config.name);
	}
	return WW_OK;
}

/* Ends both. */
static ww_status compare(struct ww_buf *before, struct ww_buf *now, bool *news, struct ww_error *err)
{
	bool failed = before->failed || now->failed;
	*news = failed || before->n != now->n || memcmp(before->bytes, now->bytes, now->n) != 0;
	ww_buf_finish(before);
	ww_buf_finish(now);
	return failed ? ww_fail(err, WW_ERR_NOMEM, "out of memory for what was told") : WW_OK;
}

/* Whether it says something else than was told before. */
static ww_status is_config_news(const ww_control *c, const struct ww_config *config, bool *news, struct ww_error *err)
{
	struct ww_buf before = {0}, now = {0};
	if (c->configured)
		encode_inventory(c, &before);
	ww_encode_config(&now, config);
	return compare(&before, &now, news, err);
}

static void take_inventory(ww_control *to, const ww_control *from)
{
	to->rows = from->rows;
	to->nodes = from->nodes;
	to->talks = from->talks;
	to->gpus = from->gpus;
	to->node_by_id = from->node_by_id;
	to->first_gpu = from->first_gpu;
	to->n_rows = from->n_rows;
	to->n_nodes = from->n_nodes;
	to->n_gpus = from->n_gpus;
	to->config = from->config;
	to->configured = from->configured;
}

ww_status take_config(ww_control *c, const struct ww_config *config, struct ww_error *err)
{
	ww_control old = *c, fresh = {.configured = true, .config = *config};
	bool news = true;
	ww_status status = ww_check_config(config, err);
	if (!status)
		status = is_config_news(c, config, &news, err);
	if (status || !news)
		return status;
	status = check_nodes(config, err);
	if (!status)
		status = check_restore(config, err);
	if (!status)
		status = build(&fresh, config, c->last_seq, err);
	if (status) {
		forget_inventory(&fresh);
		return status;
	}
	fresh.config.rows = NULL;
	fresh.config.nodes = NULL;
	/* Without any state a successor counts the highest limits; one that is older than this knows nothing of new nodes. */
	for (uint32_t g = 0; c->configured && g < fresh.n_gpus; g++)
		fresh.gpus[g].stored_w = 0;
	keep_known(&fresh, c);
	count_gone(&fresh, c);
	take_inventory(c, &fresh);
	place_jobs(c);
	status = make_room(c, err);
	if (!status) {
		/* A lease shorter than the stored one may end before a successor thinks. */
		c->restore_stored = c->restore_stored && config->valid_for_us >= old.config.valid_for_us;
		for (uint32_t j = 0; j < c->n_jobs; j++) /* GPUs may be others, and moves may be off */
			forget_lean(c, c->jobs[j]);
		forget_inventory(&old);
		ask_to_store(c);
		return WW_OK;
	}
	take_inventory(c, &old);
	settle_back(c, old.news);
	forget_inventory(&fresh);
	return status;
}

/* ---- Jobs --------------------------------------------------------------------------------------------------------------- */

static ww_status check_places(const ww_control *c, const struct ww_job *job, struct ww_error *err)
{
	for (uint32_t p = 0; p < job->n_places; p++) {
		const struct node *node = find_node(c, job->places[p].node);
		if (!node)
			return ww_fail(err, WW_ERR_NOT_FOUND,
			               "job '%s': place %u is on a node that is not in the inventory", job->name,
			               (unsigned)p + 1);
		if (job->places[p].gpus == 0 || job->places[p].gpus >> node->config.n_gpus)
			return ww_fail(err, WW_ERR_RANGE, "job '%s': node '%s' has GPUs 0 to %u only", job->name,
			               node->config.name, (unsigned)node->config.n_gpus - 1);
		for (uint32_t i = 0; i < node->config.n_gpus; i++) {
			const struct job *owner = c->gpus[node->first_gpu + i].job;
			if ((job->places[p].gpus >> i & 1) && owner && owner->told.id != job->id)
				return ww_fail(err, WW_ERR_INVALID,
				               "job '%s': GPU %u of node '%s' has job '%s'; end that one first",
				               job->name, (unsigned)i, node->config.name, owner->told.name);
		}
	}
	return WW_OK;
}

/* One more job, which is then the controller's. */
static ww_status add_job(ww_control *c, uint32_t at, struct job *job, struct ww_error *err)
{
	if (c->n_jobs == c->room_jobs) {
		uint32_t room = c->room_jobs ? 2 * c->room_jobs : 16;
		struct job **jobs = realloc(c->jobs, room * sizeof(void *));
		if (!jobs)
			return ww_fail(err, WW_ERR_NOMEM, "out of memory for a job");
		c->jobs = jobs;
		c->room_jobs = room;
	}
	memmove(&c->jobs[at + 1], &c->jobs[at], (c->n_jobs - at) * sizeof(struct job *));
	c->jobs[at] = job;
	c->n_jobs++;
	return WW_OK;
}

static void remove_job(ww_control *c, uint32_t at)
{
	c->n_jobs--;
	memmove(&c->jobs[at], &c->jobs[at + 1], (c->n_jobs - at) * sizeof(struct job *));
}

static void end_job(ww_control *c, uint32_t at)
{
	unplace_job(c, c->jobs[at]);
	free(c->jobs[at]);
	remove_job(c, at);
	forget_division(c);
	tell_of_news(c);
	ask_to_store(c);
}

/* With room for its own places and GPUs only: a site has many jobs, and few are spread over many nodes. */
static struct job *new_job(const struct job *known, const struct ww_job *told)
{
	size_t told_bytes = offsetof(struct ww_job, places) + told->n_places * sizeof *told->places;
	size_t bytes = offsetof(struct job, told) + told_bytes;
	uint32_t n = 0;
	for (uint32_t p = 0; p < told->n_places; p++)
		n += (uint32_t)__builtin_popcount(told->places[p].gpus);
	struct job *job = malloc(bytes + n * sizeof *job->gpus);
	if (!job)
		return NULL;
	memcpy(job, known, offsetof(struct job, told));
	memcpy(&job->told, told, told_bytes);
	job->gpus = (uint32_t *)(void *)((char *)job + bytes);
	job->n_told = n;
	return job;
}

static bool is_same_curve(const struct ww_curve *a, const struct ww_curve *b)
{
	return a->p0_w == b->p0_w && a->t0_tps == b->t0_tps && a->n == b->n &&
	       memcmp(a->k, b->k, a->n * sizeof *a->k) == 0;
}

/* What is known of the job, and what is told now. */
static struct job *told_job(const struct job *known, const struct ww_job *told)
{
	static const struct job unknown = {.tps = (double)NAN, .draw_w = (double)NAN, .rate_tps = (double)NAN};
	struct job *job = new_job(known ? known : &unknown, told);
	if (!job)
		return NULL;
	if (told->has_curve && known && !is_same_curve(&known->told.curve, &told->curve))
		job->demand = (struct demand){0}; /* measured anew: also what it draws */
	if (told->has_curve)
		job->curve = told->curve;
	begin_curve(job);
	return job;
}

static ww_status put_job(ww_control *c, uint32_t at, struct job *known, struct job *job, struct ww_error *err)
{
	bool news = c->news;
	ww_status status = known ? WW_OK : add_job(c, at, job, err);
	if (status)
		return status;
	if (known)
		unplace_job(c, known);
	c->jobs[at] = job;
	place_job(c, job);
	tell_of_news(c);
	status = make_room(c, err);
	if (status && known)
		c->jobs[at] = known;
	else if (status)
		remove_job(c, at);
	if (status)
		settle_back(c, news);
	return status;
}

/* Whether it says something else than was told before. */
static ww_status is_job_news(const struct job *known, const struct ww_job *told, bool *news, struct ww_error *err)
{
	struct ww_buf before = {0}, now = {0};
	if (known)
		ww_encode_job(&before, &known->told);
	ww_encode_job(&now, told);
	return compare(&before, &now, news, err);
}

ww_status take_job(ww_control *c, const struct ww_job *told, struct ww_error *err)
{
	uint32_t at = job_place(c, told->id);
	struct job *known = at < c->n_jobs && c->jobs[at]->told.id == told->id ? c->jobs[at] : NULL;
	ww_status status = ww_check_job(told, err);
	if (status)
		return status;
	if (told->has_curve && told->curve.p0_w > MOST_W)
		return ww_fail(err, WW_ERR_RANGE, "job '%s': p0_w of its curve is %g W per GPU; must be at most %g",
		               told->name, told->curve.p0_w, MOST_W);
	if (told->n_places == 0) {
		if (known)
			end_job(c, at);
		return WW_OK;
	}
	bool news;
	status = check_places(c, told, err);
	if (!status)
		status = is_job_news(known, told, &news, err);
	if (status)
		return status;
	if (!news)
		return WW_OK;
	struct job *job = told_job(known, told);
	status = job ? put_job(c, at, known, job, err) : ww_fail(err, WW_ERR_NOMEM, "out of memory for a job");
	free(status ? job : known);
	if (status)
		return status;
	forget_lean(c, job);
	ask_to_store(c);
	return WW_OK;
}

/* From a saved state, which knows more of the job than was told. */
ww_status add_told_job(ww_control *c, const struct job *saved, struct ww_error *err)
{
	ww_status status = ww_check_job(&saved->told, err);
	if (!status && c->n_jobs > 0 && c->jobs[c->n_jobs - 1]->told.id >= saved->told.id)
		status = ww_fail(err, WW_ERR_INVALID, "the saved state has jobs out of order");
	if (status)
		return status;
	struct job *job = new_job(saved, &saved->told);
	if (!job)
		return ww_fail(err, WW_ERR_NOMEM, "out of memory for a job");
	begin_curve(job);
	status = add_job(c, c->n_jobs, job, err);
	if (status)
		free(job);
	return status;
}

ww_status settle_jobs(ww_control *c, struct ww_error *err)
{
	place_jobs(c);
	return make_room(c, err);
}
