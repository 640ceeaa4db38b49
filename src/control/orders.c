/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends every GPU towards its target. A cap that is not above the charge costs no watts and is sent at once: all decreases.
 * A higher one needs free watts on every row of its job, and becomes part of the charge the moment it is sent. The GPUs of
 * a job rise together. A command carries all caps of its node and the steps down that are known ahead; it is sent when
 * something changed, when it was not accepted, and in time before the lease ends.
 */
#include "control/control_internal.h"

#include <math.h>
#include <string.h>

#define STAGGER_W 25.0f /* of a GPU in one slot while budgets are given back */
#define SLOT_US (10 * WW_SECOND_US)
#define RESTORE_US (15 * 60 * WW_SECOND_US) /* after an event, raises go in slots */
#define ROUND_STEPS 5 /* small raises above what is stored wait for each other so long: one state is stored for all */
#define SMALL_PART 0.05f /* of the GPU's ceiling */
#define RETRY_US WW_SECOND_US
#define PROOF_US (4 * WW_SECOND_US) /* without a sign of life for so long, ask for one, */
#define PROOF_PART 4 /* or for that part of the silence in which it could have booted, if that is longer */

/* ---- Free watts ----------------------------------------------------------------------------------------------------------- */

static void count_free(ww_control *c)
{
	for (uint32_t r = 0; r < c->n_rows; r++)
		c->row_free_w[r] = c->rows[r].offer_w - c->rows[r].charge_w;
}

static bool is_short(const ww_control *c, const struct node *node)
{
	for (uint32_t l = 0; l < node->config.n_loads; l++)
		if (is_lack(&c->rows[node->config.loads[l].row], c->row_free_w[node->config.loads[l].row]))
			return true;
	return false;
}

static bool may_rise(const ww_control *c, const struct gpu *gpu)
{
	const struct node *node = &c->nodes[gpu->node];
	return !node->silent && gpu->managed && c->now.mono_us >= c->adopt_until_us && !is_short(c, node);
}

/* When the last event ended whose watts are being given back, or all were let go; WW_NEVER_US: none are. */
static int64_t restoring_since(const ww_control *c)
{
	int64_t since_us = WW_NEVER_US;
	if (c->mode == WW_MODE_DISENGAGE && c->now.wall_us - c->mode_wall_us < RESTORE_US)
		since_us = c->mode_wall_us - c->now.wall_us + c->now.mono_us;
	for (uint32_t i = 0; i < c->n_events; i++) {
		const struct event *e = &c->events[i];
		enum ww_event_state state = event_state(e, c->now.wall_us);
		bool over =
			state == WW_EVENT_OVER && !e->told.cancelled && c->now.wall_us - e->told.end_us < RESTORE_US;
		if (state != WW_EVENT_RAMP_UP && !over)
			continue;
		int64_t end_us = e->told.end_us - c->now.wall_us + c->now.mono_us;
		since_us = since_us == WW_NEVER_US || end_us > since_us ? end_us : since_us;
	}
	/* Where the clock was set back it has not begun yet: the slots go by the last raise. */
	return since_us == WW_NEVER_US || since_us <= c->now.mono_us ? since_us : c->now.mono_us - SLOT_US;
}

/* ---- Caps of this step ------------------------------------------------------------------------------------------------------ */

/* A node that has not shown this leader's epoch yet may have gone lower than is known here. It is greeted by a command that
 * leaves its GPUs alone; where that is not answered, it may only be lowered. */
static bool is_greeted(const ww_control *c, const struct node *node)
{
	return !node->believed && c->now.mono_us - c->leads_since_us < GREETING_US;
}

static float level_of(const struct gpu *gpu)
{
	return isnan(gpu->cap_w) ? gpu->charge_w : least_known(gpu->cap_w, gpu->charge_w);
}

struct rise {
	int64_t since_us; /* watts are being given back since then, in slots; WW_NEVER_US: they are not */
	uint64_t phase;   /* of the slots */
	double part;      /* of the wished raise above the charges that is free */
};

/* Each job begins its slots at another moment, so that jobs do not rise together. */
static bool slot_is_new(const ww_control *c, const struct gpu *gpu, const struct rise *rise)
{
	int64_t shift_us = (int64_t)(rise->phase % 97) * SLOT_US / 97;
	int64_t last_us = gpu->raised_us > rise->since_us ? gpu->raised_us : rise->since_us;
	return (c->now.mono_us + shift_us) / SLOT_US != (last_us + shift_us) / SLOT_US;
}

/* A state takes long to store at a large site, and watts move within some job in nearly every second. */
static bool waits_for_others(const ww_control *c, const struct gpu *gpu, float wish_w)
{
	return wish_w > gpu->stored_w && wish_w - level_of(gpu) < SMALL_PART * gpu->ceiling_w && !c->must_store &&
	       c->steps % ROUND_STEPS != 0;
}

/* Its node may aim higher than what is in force, as where a write hangs or somebody wrote a lower limit: told the same
 * again, it would raise it. */
static float no_higher(const ww_control *c, const struct gpu *gpu, float w)
{
	return gpu->enforced_w < w ? most_known(gpu->enforced_w, lowest_of(c, gpu)) : w;
}

/* Where a GPU may go in this step for its own part, free watts aside. */
static float wish_of(const ww_control *c, const struct gpu *gpu, const struct rise *rise)
{
	const struct node *node = &c->nodes[gpu->node];
	float level_w = level_of(gpu);
	if (is_greeted(c, node))
		return level_w;
	/* The level of a GPU that its node does not write is whatever a foreign hand made of it. */
	if ((!node->believed || !gpu->managed) && is_short(c, node))
		return lowest_of(c, gpu);
	/* Where watts are missing nothing rises anyway. Watts that one job gives are of no use to others that may not rise. */
	if (c->mode == WW_MODE_FREEZE && !is_short(c, node))
		return no_higher(c, gpu, level_w);
	if (!may_rise(c, gpu))
		return no_higher(c, gpu, least_known(gpu->target_w, level_w));
	if (gpu->target_w <= level_w)
		return gpu->target_w;
	float wish_w = least_known(gpu->target_w, level_w + (rise->since_us == WW_NEVER_US ? INFINITY : STAGGER_W));
	if (rise->since_us == WW_NEVER_US ? wish_w - level_w < DEAD_BAND_W : !slot_is_new(c, gpu, rise))
		return level_w;
	return waits_for_others(c, gpu, wish_w) ? level_w : wish_w;
}

static void wish(ww_control *c, struct gpu *gpu, void *context)
{
	const struct rise *rise = context;
	float wish_w = wish_of(c, gpu, rise);
	if (wish_w > gpu->charge_w)
		add_load(&c->nodes[gpu->node], (double)wish_w - gpu->charge_w, c->row_need_w);
}

static void bound_part(ww_control *c, struct gpu *gpu, void *context)
{
	struct rise *rise = context;
	const struct ww_node_config *config = &c->nodes[gpu->node].config;
	for (uint32_t l = 0; l < config->n_loads; l++) {
		uint32_t r = config->loads[l].row;
		double free_w = c->row_free_w[r] - MARGIN * fabs(c->rows[r].charge_w);
		if (c->row_need_w[r] > most(0, free_w))
			rise->part = least(rise->part, most(0, free_w) / c->row_need_w[r]);
	}
}

static void clear_need(ww_control *c, struct gpu *gpu, void *context)
{
	const struct ww_node_config *config = &c->nodes[gpu->node].config;
	(void)context;
	for (uint32_t l = 0; l < config->n_loads; l++)
		c->row_need_w[config->loads[l].row] = 0;
}

static void set_cap(ww_control *c, struct gpu *gpu, void *context)
{
	const struct rise *rise = context;
	float level_w = level_of(gpu), wish_w = wish_of(c, gpu, rise), cap_w = wish_w;
	if (wish_w > gpu->charge_w) {
		cap_w = gpu->charge_w + (float)(rise->part * ((double)wish_w - gpu->charge_w));
		if (cap_w < wish_w && cap_w - level_w < DEAD_BAND_W)
			cap_w = level_w;
	}
	if (cap_w > level_w) {
		gpu->raised_us = c->now.mono_us;
		if (cap_w < gpu->target_w)
			gpu->why = rise->since_us != WW_NEVER_US ? WW_WHY_STAGGER : WW_WHY_WAITING;
	} else if (c->mode == WW_MODE_FREEZE && gpu->target_w > level_w && gpu->why < WW_WHY_WAITING) {
		gpu->why = WW_WHY_FROZEN;
	} else if (gpu->target_w > level_w + DEAD_BAND_W && gpu->why < WW_WHY_WAITING &&
	           !waits_for_others(c, gpu, gpu->target_w)) {
		gpu->why = rise->since_us != WW_NEVER_US && may_rise(c, gpu) ? WW_WHY_STAGGER : WW_WHY_WAITING;
	}
	if (cap_w > gpu->charge_w) {
		add_load(&c->nodes[gpu->node], (double)gpu->charge_w - cap_w, c->row_free_w);
		add_load(&c->nodes[gpu->node], (double)cap_w - gpu->charge_w, c->row_need_w);
		gpu->charge_w = cap_w;
	}
	gpu->cap_w = cap_w;
}

static void order_job(ww_control *c, const struct job *job, int64_t since_us)
{
	struct rise rise = {since_us, job->told.id * 0x9E3779B97F4A7C15u >> 32, 1};
	each_gpu(c, job, clear_need, &rise);
	each_gpu(c, job, wish, &rise);
	each_gpu(c, job, bound_part, &rise);
	each_gpu(c, job, set_cap, &rise);
}

static void order_idle(ww_control *c, struct gpu *gpu, int64_t since_us)
{
	struct rise rise = {since_us, gpu->node, 1};
	clear_need(c, gpu, &rise);
	wish(c, gpu, &rise);
	bound_part(c, gpu, &rise);
	set_cap(c, gpu, &rise);
}

/* Each step another job is the first to be given free watts. */
static void set_caps(ww_control *c)
{
	int64_t since_us = restoring_since(c);
	count_free(c);
	for (uint32_t j = 0; j < c->n_jobs; j++)
		order_job(c, c->jobs[(c->steps + j) % c->n_jobs], since_us);
	for (uint32_t g = 0; g < c->n_gpus; g++)
		if (!c->gpus[g].job)
			order_idle(c, &c->gpus[g], since_us);
}

/* ---- Commands ----------------------------------------------------------------------------------------------------------- */

static bool binds_at(const ww_control *c, const struct node *node, uint32_t k)
{
	for (uint32_t l = 0; l < node->config.n_loads; l++)
		if (c->rows[node->config.loads[l].row].binds_ahead >> k & 1)
			return true;
	return false;
}

/* Adds the step of a coming moment where it lowers something. */
static void add_step(const ww_control *c, const struct node *node, uint32_t k, struct ww_command *command)
{
	const struct ww_step *before = &command->step[command->n_steps - 1];
	struct ww_step *step = &command->step[command->n_steps];
	bool idle_binds = binds_at(c, node, k), lowers = false;
	int64_t in_us = c->ahead[k].at_us - c->now.wall_us;
	/* A moment that has come is ordered already, but of nodes that are only greeted. A greeting takes the place of all that
	 * they were told, also of a step that came late and is still to be done: they are told to go as low at once. */
	if (in_us <= 0 && !is_greeted(c, node))
		return;
	*step = *before;
	step->in_us = in_us;
	for (uint32_t i = 0; i < node->config.n_gpus; i++) {
		const struct gpu *gpu = &c->gpus[node->first_gpu + i];
		const struct job *job = gpu->job;
		/* A job of which nothing can be steered is not divided; its node may hear all the same. */
		float cap_w = job && !isnan(job->ahead_cut[k]) ? cap_at(c, gpu, job, job->ahead_cut[k])
		                                               : (idle_binds ? lowest_of(c, gpu) : NAN);
		/* A step is a grant: where nothing is ordered before it, it is no higher than the charge. */
		if (cap_w > gpu->charge_w)
			cap_w = gpu->charge_w;
		if (cap_w >= before->cap_w[i] || isnan(cap_w))
			continue;
		step->cap_w[i] = cap_w;
		lowers = lowers || !(cap_w >= before->cap_w[i] - 0.5f);
	}
	if (in_us <= before->in_us) {
		step->in_us = before->in_us;
		command->step[command->n_steps - 1] = *step;
	} else if (lowers) {
		command->n_steps++;
	}
}

static uint64_t event_of(const ww_control *c, const struct node *node)
{
	for (uint32_t i = 0; i < c->n_events; i++)
		for (uint32_t l = 0; l < node->config.n_loads; l++)
			if (c->events[i].told.row == c->rows[node->config.loads[l].row].config.id &&
			    !is_let_go(c, &c->events[i]) && event_state(&c->events[i], c->now.wall_us) != WW_EVENT_OVER)
				return c->events[i].told.id;
	return 0;
}

/* What a lease ends in. A restore is a raise: none before a successor would count it. */
static uint8_t rule_of(const ww_control *c)
{
	bool restores = c->mode != WW_MODE_FREEZE && c->restore_stored;
	return c->config.after == WW_AFTER_RESTORE && !restores ? WW_AFTER_HOLD : c->config.after;
}

/* A node that is not believed may be lower than is known here: a command that answers nothing never raises. */
static void write_command(const ww_control *c, const struct node *node, struct ww_command *command)
{
	*command = (struct ww_command){.cluster = c->config.cluster,
	                               .node = node->config.id,
	                               .fence = {c->leader.epoch, node->next_seq},
	                               .answers_start_id = node->believed ? node->start_id : 0,
	                               .answers_seq = node->believed ? node->seq : 0,
	                               .valid_for_us = c->config.valid_for_us,
	                               .spread_us = 0, /* no step of ours goes up; raises are staggered here */
	                               .event = event_of(c, node),
	                               .after = rule_of(c),
	                               .release_ok = c->mode != WW_MODE_FREEZE,
	                               .n_gpus = node->config.n_gpus,
	                               .n_steps = 1};
	for (uint32_t i = 0; i < node->config.n_gpus; i++) {
		const struct gpu *gpu = &c->gpus[node->first_gpu + i];
		command->step[0].cap_w[i] = is_greeted(c, node) ? NAN : gpu->cap_w;
	}
	for (uint32_t k = 0; k < c->n_ahead; k++)
		add_step(c, node, k, command);
	/* Whenever the lease ends, every budget known ahead is kept. */
	memcpy(command->failcap_w, command->step[command->n_steps - 1].cap_w, sizeof command->failcap_w);
	for (uint32_t l = 0; l < node->config.n_loads; l++)
		if (c->rows[node->config.loads[l].row].binds || c->rows[node->config.loads[l].row].binds_ahead)
			command->release_ok = 0;
	/* A release is a raise like any other: it takes watts that are charged already. */
	for (uint32_t i = 0; i < node->config.n_gpus; i++)
		if (recorded_limit_w(c, &c->gpus[node->first_gpu + i]) > c->gpus[node->first_gpu + i].charge_w)
			command->release_ok = 0;
}

static bool is_near(float a, float b, float by)
{
	return fabsf(a - b) <= by || (isnan(a) && isnan(b));
}

/* Whether a new schedule says the same as the one sent before, `age_us` ago. */
static bool says_the_same(const struct ww_command *a, const struct ww_command *b, int64_t age_us)
{
	uint32_t passed = 0;
	while (passed + 1 < a->n_steps && a->step[passed + 1].in_us <= age_us)
		passed++;
	if (a->n_steps - passed != b->n_steps || a->after != b->after || a->release_ok != b->release_ok)
		return false;
	for (uint32_t k = 0; k < b->n_steps; k++) {
		const struct ww_step *old = &a->step[passed + k], *new = &b->step[k];
		int64_t off_us = k ? old->in_us - age_us - new->in_us : 0;
		if (off_us > WW_SECOND_US / 2 || off_us < -WW_SECOND_US / 2)
			return false;
		for (uint32_t i = 0; i < b->n_gpus; i++)
			if (!is_near(old->cap_w[i], new->cap_w[i], k ? DEAD_BAND_W : 0.01f))
				return false;
	}
	return true;
}

/* The node has forgotten, or could not do, what it accepted. */
static bool goes_elsewhere(const ww_control *c, const struct node *node)
{
	for (uint32_t i = 0; i < node->config.n_gpus; i++) {
		const struct gpu *gpu = &c->gpus[node->first_gpu + i];
		uint32_t step = gpu->step < node->last->n_steps ? gpu->step : node->last->n_steps - 1;
		float cap_w = node->last->step[step].cap_w[i];
		if (gpu->managed && !isnan(cap_w) && !(fabsf(gpu->goal_w - cap_w) <= 1))
			return true;
	}
	return false;
}

/* A node that was never heard of is spoken to only to lower it. */
static bool is_worth_sending(const ww_control *c, const struct node *node, const struct ww_command *command)
{
	int64_t age_us = c->now.mono_us - node->sent_us;
	if (node->start_id == 0 && command->release_ok)
		return false;
	if (!node->has_last || !says_the_same(node->last, command, age_us))
		return true;
	if (age_us >= c->config.valid_for_us / 3)
		return true;
	if (age_us >= RETRY_US && (ww_fence_order(node->accepted, node->last->fence) < 0 || goes_elsewhere(c, node)))
		return true;
	int64_t quiet_us = silence_of_boot_us(c, node) / PROOF_PART;
	quiet_us = quiet_us > PROOF_US ? quiet_us : PROOF_US;
	return c->now.mono_us - node->alive_us >= quiet_us && age_us >= 2 * RETRY_US;
}

/* One that answers nothing and allows no release raises nothing. */
static bool is_above_stored(const ww_control *c, const struct node *node, const struct ww_command *command)
{
	if (command->answers_seq == 0 && !command->release_ok)
		return false;
	for (uint32_t i = 0; i < node->config.n_gpus; i++)
		if (top_of(c, command, &c->gpus[node->first_gpu + i], i, 0) > c->gpus[node->first_gpu + i].stored_w)
			return true;
	return false;
}

static void send(ww_control *c, struct node *node, struct ww_command *command)
{
	c->needs_save[c->decision.n_commands++] = is_above_stored(c, node, command);
	add_outstanding(c, node, command);
	for (uint32_t i = 0; !node->believed && i < node->config.n_gpus; i++) {
		float *blind_w = &c->gpus[node->first_gpu + i].blind_w;
		*blind_w = least_known(*blind_w, command->step[0].cap_w[i]);
	}
	*node->last = *command;
	node->has_last = true;
	node->next_seq++;
	c->last_seq = command->fence.seq > c->last_seq ? command->fence.seq : c->last_seq;
	node->sent_us = c->now.mono_us;
}

void give_orders(ww_control *c)
{
	c->decision.n_commands = 0;
	if (!c->leader.leads)
		return;
	set_caps(c);
	for (uint32_t n = 0; n < c->n_nodes; n++) {
		struct ww_command *command = &c->commands[c->decision.n_commands];
		write_command(c, &c->nodes[n], command);
		if (is_worth_sending(c, &c->nodes[n], command))
			send(c, &c->nodes[n], command);
	}
}
