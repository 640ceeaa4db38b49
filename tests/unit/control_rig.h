/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cluster's brain on a rig: three nodes of four GPUs on a site with two racks, the second node fed by both; peers that
 * do what good agents do; a wire that can lose either way; a disk that can fail. After every second each board's true limit
 * is held against its charge, and every command against the rows that lack watts. Included by one file of a program.
 */
#ifndef WW_TESTS_CONTROL_RIG_H
#define WW_TESTS_CONTROL_RIG_H

#include "assert_near.h"

#include "control/control.h"

#include <string.h>

#define SECOND WW_SECOND_US
#define MINUTE (60 * SECOND)
#define CLUSTER 7
#define NODES 3
#define GPUS 4 /* of a node */
#define ROWS 3
#define MIN_W 100
#define MAX_W 500
#define DEMAND_W 480 /* draw without a cap */
#define P0_W 480
#define LEASE (60 * SECOND)
#define SETTLE (2 * SECOND)
#define LEAD (SETTLE + 2 * SECOND) /* a budget counts that much before it starts */
#define BOOT (90 * SECOND)
#define SITE 100
#define LEFT 101
#define RIGHT 102
#define EPOCH 5
#define RIG_COMMANDS NODES
#define RIG_JOBS 8
#define RIG_EVENTS 16

/* A node with its agent. */
struct peer {
	uint64_t id, boot_id, start_id, seq;
	struct ww_fence seen;
	struct ww_command lease; /* n_steps 0: none */
	int64_t leased_us;
	uint32_t step;
	float limit_w[GPUS], goal_w[GPUS], demand_w[GPUS], recorded_w, tps;
	int64_t changed_us[GPUS];
	bool unmanaged[GPUS], blind[GPUS]; /* blind: limits cannot be read */
	bool defiant[GPUS];                /* draws what it wants whatever the limit */
	bool deaf, mute;                   /* nothing reaches it, nothing comes from it */
	bool still;                        /* takes no command although they come */
	bool greeted;
	int n_got; /* commands that reached it */
};

struct rig {
	ww_control *control;
	ww_control *twin;  /* told the same; must decide the same, byte for byte. NULL: none */
	struct ww_now now; /* peers live by the wall clock: the brain may move to another machine */
	uint64_t input;
	struct ww_row rows[ROWS];
	struct ww_node_config nodes[NODES];
	struct ww_config config;
	struct peer peer[NODES];
	double rest_w;   /* non-GPU power that the site's meter shows, NAN = no meter */
	bool disk_fails; /* nothing is stored */
	bool surprised;  /* true limits may be above the charges: somebody raised one just now */
	/* The last decision, copied. */
	struct ww_decision d;
	struct ww_command commands[RIG_COMMANDS];
	bool needs_save[RIG_COMMANDS];
	struct ww_row_decision row[ROWS];
	struct ww_gpu_decision gpu[NODES * GPUS];
	struct ww_job_decision job[RIG_JOBS];
	struct ww_event_decision event[RIG_EVENTS];
	struct ww_buf bytes; /* of the decision */
};

/* ---- Inputs ---------------------------------------------------------------------------------------------------------- */

TEST_UNUSED static struct ww_input input_of(struct rig *r, enum ww_input_kind kind, const void *what)
{
	struct ww_input in = {.at = r->now, .seq = ++r->input, .kind = kind};
	in.u.sample = what;
	return in;
}

static void put_input(struct rig *r, const struct ww_input *in)
{
	struct ww_error err = {WW_OK, ""};
	if (ww_control_put(r->control, in, &err) != WW_OK)
		fail_msg("refused: %s", err.text);
	if (r->twin)
		assert_int_equal(ww_control_put(r->twin, in, NULL), WW_OK);
}

TEST_UNUSED static void put(struct rig *r, enum ww_input_kind kind, const void *what)
{
	struct ww_input in = input_of(r, kind, what);
	put_input(r, &in);
}

TEST_UNUSED static void put_saved(struct rig *r, uint64_t seq)
{
	struct ww_input in = input_of(r, WW_INPUT_SAVED, NULL);
	in.u.saved = seq;
	put_input(r, &in);
}

TEST_UNUSED static void put_division(struct rig *r, enum ww_division division)
{
	struct ww_input in = input_of(r, WW_INPUT_DIVISION, NULL);
	in.u.division = division;
	put_input(r, &in);
}

TEST_UNUSED static void put_mode(struct rig *r, enum ww_mode mode)
{
	struct ww_input in = input_of(r, WW_INPUT_MODE, NULL);
	in.u.mode = mode;
	put_input(r, &in);
}

TEST_UNUSED static void save(const struct rig *r, struct ww_buf *buf)
{
	ww_buf_clear(buf);
	assert_int_equal(ww_control_save(r->control, buf), WW_OK);
}

static void assert_same_bytes(const struct ww_buf *a, const struct ww_buf *b)
{
	assert_int_equal(a->n, b->n);
	assert_memory_equal(a->bytes, b->bytes, a->n);
}

/* The input is refused with this status and one line that holds `text`, and changes nothing. */
TEST_UNUSED static void refuse(struct rig *r, enum ww_input_kind kind, const void *what, ww_status status,
                               const char *text)
{
	struct ww_error err = {WW_OK, ""};
	struct ww_buf before = {0}, after = {0};
	struct ww_input in = input_of(r, kind, what);
	save(r, &before);
	assert_int_equal(ww_control_put(r->control, &in, &err), status);
	save(r, &after);
	assert_int_equal(err.code, status);
	if (!strstr(err.text, text) || strchr(err.text, '\n'))
		fail_msg("says: %s", err.text);
	assert_same_bytes(&before, &after);
	ww_buf_finish(&before);
	ww_buf_finish(&after);
}

TEST_UNUSED static void lead(struct rig *r, uint64_t epoch)
{
	struct ww_leader leader = {epoch, true};
	put(r, WW_INPUT_LEADER, &leader);
}

TEST_UNUSED static void put_meter(struct rig *r, uint64_t row, double power_w)
{
	struct ww_meter meter = {row, {(float)power_w, 0, isnan(power_w) ? WW_READING_LOST : WW_READING_OK}};
	put(r, WW_INPUT_METER, &meter);
}

/* Loss of the job: a d + b d^2, known for sure and measured as far as 0.7. */
TEST_UNUSED static struct ww_job job_of(uint64_t id, double a, double b)
{
	double deepest = 0.7;
	struct ww_job job = {.id = id, .name = "job", .tier = 2, .weight = 1, .has_curve = true};
	job.curve = (struct ww_curve){.p0_w = P0_W, .t0_tps = 1000, .max_cut_frac = deepest, .n = 2};
	job.curve.k[0] = (struct ww_knot){0, 0, a};
	job.curve.k[1] = (struct ww_knot){deepest, a * deepest + b * deepest * deepest, a + 2 * b * deepest};
	return job;
}

TEST_UNUSED static void place(struct ww_job *job, int node, uint32_t gpus)
{
	job->places[job->n_places++] = (struct ww_place){(uint64_t)node + 1, gpus};
}

/* A job on all GPUs of one node. */
TEST_UNUSED static void put_job(struct rig *r, uint64_t id, int node, double a, double b)
{
	struct ww_job job = job_of(id, a, b);
	place(&job, node, 0xf);
	put(r, WW_INPUT_JOB, &job);
}

TEST_UNUSED static struct ww_event event_of(const struct rig *r, uint64_t id, uint64_t row, double limit_w)
{
	return (struct ww_event){.id = id,
	                         .version = 1,
	                         .row = row,
	                         .start_us = r->now.wall_us,
	                         .end_us = WW_NEVER_US,
	                         .limit_w = limit_w,
	                         .cut_frac = (double)NAN};
}

/* A budget for the GPUs of a row, from now on. */
TEST_UNUSED static void put_limit(struct rig *r, uint64_t id, uint64_t row, double limit_w)
{
	struct ww_event event = event_of(r, id, row, limit_w);
	put(r, WW_INPUT_EVENT, &event);
}

/* ---- Peers ----------------------------------------------------------------------------------------------------------- */

TEST_UNUSED static float draw_of(const struct peer *p, int g)
{
	return p->defiant[g] ? p->demand_w[g] : fminf(p->demand_w[g], p->limit_w[g]);
}

TEST_UNUSED static struct ww_envelope envelope_of(struct peer *p)
{
	return (struct ww_envelope){WW_MSG_VERSION, CLUSTER, p->id, p->boot_id, p->start_id, ++p->seq, p->seen};
}

TEST_UNUSED static void states_of(const struct rig *r, const struct peer *p, struct ww_gpu_state *out)
{
	for (int g = 0; g < GPUS; g++) {
		bool obeys = draw_of(p, g) <= 1.02f * p->limit_w[g];
		out[g] = (struct ww_gpu_state){
			.enforced_w = {p->blind[g] ? NAN : p->limit_w[g], 0,
		                       p->blind[g] ? WW_READING_TIMEOUT : WW_READING_OK},
			.draw_w = {draw_of(p, g), 0, WW_READING_OK},
			.requested_w = p->goal_w[g],
			.target_w = p->goal_w[g],
			.step = (uint8_t)p->step,
			.held = obeys && r->now.wall_us - p->changed_us[g] >= SECOND,
			.managed = !p->unmanaged[g],
		};
	}
}

TEST_UNUSED static void set_limit(const struct rig *r, struct peer *p, int g, float w)
{
	if (p->unmanaged[g] || isnan(w))
		return;
	if (w != p->limit_w[g])
		p->changed_us[g] = r->now.wall_us;
	p->limit_w[g] = p->goal_w[g] = w;
}

TEST_UNUSED static void carry_out(const struct rig *r, struct peer *p)
{
	int64_t age_us = r->now.wall_us - p->leased_us;
	while (p->step + 1 < p->lease.n_steps && p->lease.step[p->step + 1].in_us <= age_us)
		p->step++;
	for (int g = 0; g < GPUS && p->lease.n_steps > 0; g++) {
		bool lapsed = age_us >= p->lease.valid_for_us;
		float w = p->lease.step[p->step].cap_w[g];
		if (lapsed && p->lease.after == WW_AFTER_RESTORE)
			w = p->recorded_w;
		set_limit(r, p, g, w);
	}
}

TEST_UNUSED static void say_hello(struct rig *r, int n)
{
	struct peer *p = &r->peer[n];
	struct ww_hello hello = {.n_gpus = GPUS};
	hello.from = envelope_of(p);
	states_of(r, p, hello.gpus);
	for (int g = 0; g < GPUS; g++) {
		hello.limits[g].uuid = p->id * 100 + (uint64_t)g;
		hello.limits[g].min_w = MIN_W;
		hello.limits[g].max_w = MAX_W;
		hello.limits[g].default_w = MAX_W;
		hello.limits[g].recorded_w = isnan(p->goal_w[g]) ? NAN : p->recorded_w;
		hello.limits[g].boot_cap_w = r->nodes[n].boot_cap_w;
	}
	p->greeted = true;
	put(r, WW_INPUT_HELLO, &hello);
}

TEST_UNUSED static void say_sample(struct rig *r, int n)
{
	struct peer *p = &r->peer[n];
	struct ww_sample sample = {.wall_us = r->now.wall_us, .n_gpus = GPUS, .n_jobs = 1};
	sample.from = envelope_of(p);
	states_of(r, p, sample.gpus);
	sample.jobs[0].job = p->id; /* jobs of one node have its id */
	sample.jobs[0].tps.value = p->tps;
	put(r, WW_INPUT_SAMPLE, &sample);
}

TEST_UNUSED static void say_ack(struct rig *r, int n, struct ww_fence answers)
{
	struct peer *p = &r->peer[n];
	struct ww_ack ack = {.answers = answers, .verdict = answers.seq ? WW_ACK_DONE : WW_ACK_NEWS, .n_gpus = GPUS};
	ack.from = envelope_of(p);
	states_of(r, p, ack.gpus);
	put(r, WW_INPUT_ACK, &ack);
}

/* A command that answers nothing never raises. */
static void clip_blind(struct peer *p)
{
	for (uint32_t k = 0; p->lease.answers_seq == 0 && k < p->lease.n_steps; k++)
		for (int g = 0; g < GPUS; g++) {
			float *cap_w = &p->lease.step[k].cap_w[g];
			*cap_w = isnan(*cap_w) ? *cap_w : fminf(*cap_w, fminf(p->limit_w[g], p->goal_w[g]));
		}
}

/* The node accepts the command, if it is above what it has seen. */
TEST_UNUSED static void accept(const struct rig *r, struct peer *p, const struct ww_command *command)
{
	struct ww_error err = {WW_OK, ""};
	p->n_got++;
	if (ww_check_command(command, &err) != WW_OK)
		fail_msg("a bad command: %s", err.text);
	if (p->still || ww_fence_order(command->fence, p->seen) <= 0)
		return;
	p->seen = command->fence;
	p->lease = *command;
	clip_blind(p);
	p->leased_us = r->now.wall_us;
	p->step = 0;
	carry_out(r, p);
}

/* The machine goes down and comes up at `limit_w`; its agent starts and remembers the highest command. */
TEST_UNUSED static void reboot(struct rig *r, int n, float limit_w)
{
	struct peer *p = &r->peer[n];
	p->boot_id++;
	p->start_id += 1000;
	p->seq = 0;
	p->lease.n_steps = 0;
	p->step = 0;
	for (int g = 0; g < GPUS; g++) {
		p->limit_w[g] = limit_w;
		p->goal_w[g] = NAN;
		p->changed_us[g] = r->now.wall_us;
	}
	p->greeted = false;
}

/* ---- The brain -------------------------------------------------------------------------------------------------------- */

TEST_UNUSED static struct ww_gpu_decision *gpu_of(struct rig *r, int n, int g)
{
	return &r->gpu[n * GPUS + g];
}

TEST_UNUSED static const struct ww_command *command_to(const struct rig *r, int n)
{
	for (uint32_t i = 0; i < r->d.n_commands; i++)
		if (r->commands[i].node == (uint64_t)n + 1)
			return &r->commands[i];
	return NULL;
}

static void copy_of(void *to, const void *from, size_t n, size_t room, size_t size)
{
	assert_true(n <= room);
	memset(to, 0, room * size);
	if (n > 0)
		memcpy(to, from, n * size);
}

/* A decision of which the rest may be looked at later than the next input. */
static void copy_decision(struct rig *r, const struct ww_decision *d)
{
	r->d = *d;
	copy_of(r->commands, d->commands, d->n_commands, RIG_COMMANDS, sizeof *r->commands);
	copy_of(r->needs_save, d->needs_save, d->n_commands, RIG_COMMANDS, sizeof *r->needs_save);
	copy_of(r->row, d->rows, d->n_rows, ROWS, sizeof *r->row);
	copy_of(r->gpu, d->gpus, d->n_nodes ? d->first_gpu[d->n_nodes] : 0, (size_t)NODES * GPUS, sizeof *r->gpu);
	copy_of(r->job, d->jobs, d->n_jobs, RIG_JOBS, sizeof *r->job);
	copy_of(r->event, d->events, d->n_events, RIG_EVENTS, sizeof *r->event);
	ww_buf_clear(&r->bytes);
	ww_decision_encode(d, &r->bytes);
}

static bool lacks_watts(const struct rig *r, int n)
{
	for (uint32_t l = 0; l < r->nodes[n].n_loads; l++)
		if (r->row[r->nodes[n].loads[l].row].missing_w > 0)
			return true;
	return false;
}

/* What holds after every step: charges carry what is commanded, sums are right, and where watts lack nothing rises. */
static void hold_decision(const struct rig *r, const struct ww_gpu_decision *before)
{
	double sum_w[ROWS] = {0};
	for (int n = 0; n < NODES; n++)
		for (int g = 0; g < GPUS; g++) {
			const struct ww_gpu_decision *now = &r->gpu[n * GPUS + g], *old = &before[n * GPUS + g];
			for (uint32_t l = 0; l < r->nodes[n].n_loads; l++)
				sum_w[r->nodes[n].loads[l].row] += (double)r->nodes[n].loads[l].frac * now->charge_w;
			assert_true(!(now->cap_w > now->charge_w + 0.01f));
			if (r->d.seq > 1 && lacks_watts(r, n) && now->cap_w > old->cap_w + 0.01f)
				fail_msg("GPU %d of node %d rises from %g to %g W although watts lack", g, n,
				         (double)old->cap_w, (double)now->cap_w);
			assert_true(now->why < WW_N_WHYS);
		}
	for (int i = 0; i < ROWS; i++) {
		const struct ww_row_decision *row = &r->row[i];
		assert_near(row->charge_w, sum_w[i], 0.01);
		if (isfinite(row->budget_w))
			assert_near(row->free_w, row->budget_w - row->charge_w - row->non_gpu_w - row->guard_w, 1e-6);
	}
}

static void step_twin(struct rig *r)
{
	struct ww_buf bytes = {0};
	ww_decision_encode(ww_control_step(r->twin, r->now), &bytes);
	assert_same_bytes(&bytes, &r->bytes);
	ww_buf_finish(&bytes);
}

TEST_UNUSED static void step(struct rig *r)
{
	struct ww_gpu_decision before[NODES * GPUS];
	uint64_t seq = r->d.seq;
	memcpy(before, r->gpu, sizeof before);
	copy_decision(r, ww_control_step(r->control, r->now));
	assert_int_equal(r->d.seq, seq + 1);
	hold_decision(r, before);
	if (r->twin)
		step_twin(r);
}

/* A twin from the saved state, in place of the last one. */
TEST_UNUSED static void split(struct rig *r)
{
	struct ww_buf saved = {0}, again = {0};
	struct ww_error err = {WW_OK, ""};
	save(r, &saved);
	ww_control_destroy(r->twin);
	assert_int_equal(ww_control_create(&r->twin, NULL), WW_OK);
	if (ww_control_load(r->twin, &saved, &err) != WW_OK)
		fail_msg("not loaded: %s", err.text);
	assert_int_equal(ww_control_save(r->twin, &again), WW_OK);
	assert_same_bytes(&saved, &again);
	ww_buf_finish(&saved);
	ww_buf_finish(&again);
}

/* Sends what may be sent. */
TEST_UNUSED static void deliver(struct rig *r)
{
	if (r->d.save && !r->disk_fails)
		put_saved(r, r->d.seq);
	for (uint32_t i = 0; i < r->d.n_commands; i++) {
		int n = (int)r->commands[i].node - 1;
		if (r->peer[n].deaf || (r->needs_save[i] && r->disk_fails))
			continue;
		accept(r, &r->peer[n], &r->commands[i]);
		if (!r->peer[n].mute)
			say_ack(r, n, r->commands[i].fence);
	}
}

/* The whole point: no board may obey more than what is counted for it. */
TEST_UNUSED static void hold_truth(struct rig *r)
{
	for (int n = 0; n < NODES && !r->surprised; n++)
		for (int g = 0; g < GPUS; g++)
			if (r->peer[n].limit_w[g] > gpu_of(r, n, g)->charge_w + 0.01f)
				fail_msg("%.0f s: GPU %d of node %d obeys %g W, charged are %g",
				         (double)r->now.mono_us / (double)SECOND, g, n, (double)r->peer[n].limit_w[g],
				         (double)gpu_of(r, n, g)->charge_w);
}

TEST_UNUSED static void pass(struct rig *r, int64_t us)
{
	r->now.mono_us += us;
	r->now.wall_us += us;
	for (int n = 0; n < NODES; n++)
		carry_out(r, &r->peer[n]);
}

TEST_UNUSED static double power_of(const struct rig *r)
{
	double w = 0;
	for (int n = 0; n < NODES; n++)
		for (int g = 0; g < GPUS; g++)
			w += draw_of(&r->peer[n], g);
	return w;
}

/* All that speak do. */
TEST_UNUSED static void listen(struct rig *r)
{
	for (int n = 0; n < NODES; n++) {
		if (r->peer[n].mute)
			continue;
		if (!r->peer[n].greeted || r->peer[n].lease.n_steps == 0)
			say_hello(r, n);
		say_sample(r, n);
	}
	if (!isnan(r->rest_w))
		put_meter(r, SITE, power_of(r) + r->rest_w);
}

/* One second of the cluster. */
TEST_UNUSED static void tick(struct rig *r)
{
	pass(r, SECOND);
	listen(r);
	step(r);
	deliver(r);
	hold_truth(r);
}

TEST_UNUSED static void run(struct rig *r, int seconds)
{
	for (int i = 0; i < seconds; i++)
		tick(r);
}

/* ---- Set-up ------------------------------------------------------------------------------------------------------------ */

static struct ww_node_config node_of(uint64_t id, const char *name)
{
	struct ww_node_config node = {.id = id,
	                              .n_gpus = GPUS,
	                              .min_w = MIN_W,
	                              .max_w = MAX_W,
	                              .default_w = MAX_W,
	                              .boot_cap_w = NAN,
	                              .shortest_boot_us = BOOT,
	                              .n_loads = 1,
	                              .loads = {{0, 1}}};
	memcpy(node.name, name, strlen(name));
	return node;
}

static void set_up_peer(struct peer *p, uint64_t id)
{
	*p = (struct peer){.id = id, .boot_id = 1, .start_id = 1000, .recorded_w = MAX_W, .tps = 1000};
	for (int g = 0; g < GPUS; g++) {
		p->limit_w[g] = MAX_W;
		p->goal_w[g] = NAN;
		p->demand_w[g] = DEMAND_W;
	}
}

static void plan_power(struct rig *r)
{
	static const char *const names[ROWS] = {"site", "left", "right"};
	for (int i = 0; i < ROWS; i++) {
		r->rows[i] = (struct ww_row){.id = SITE + (uint64_t)i, .limit_w = (double)INFINITY};
		memcpy(r->rows[i].name, names[i], strlen(names[i]));
	}
	r->nodes[0] = node_of(1, "n1");
	r->nodes[1] = node_of(2, "n2");
	r->nodes[2] = node_of(3, "n3");
	r->nodes[0].loads[r->nodes[0].n_loads++] = (struct ww_row_load){1, 1};
	r->nodes[1].loads[r->nodes[1].n_loads++] = (struct ww_row_load){1, 0.5f};
	r->nodes[1].loads[r->nodes[1].n_loads++] = (struct ww_row_load){2, 0.5f};
	r->nodes[2].loads[r->nodes[2].n_loads++] = (struct ww_row_load){2, 1};
	r->config = (struct ww_config){.cluster = CLUSTER,
	                               .valid_for_us = LEASE,
	                               .settle_us = SETTLE,
	                               .n_rows = ROWS,
	                               .n_nodes = NODES,
	                               .rows = r->rows,
	                               .nodes = r->nodes};
}

/* The rig before its first input: rows and nodes may yet be changed. */
TEST_UNUSED static void plan(struct rig *r)
{
	*r = (struct rig){.rest_w = (double)NAN};
	r->now = (struct ww_now){1000 * SECOND, INT64_C(1800000000) * SECOND};
	plan_power(r);
	for (int n = 0; n < NODES; n++)
		set_up_peer(&r->peer[n], (uint64_t)n + 1);
	assert_int_equal(ww_control_create(&r->control, NULL), WW_OK);
}

TEST_UNUSED static void begin(struct rig *r)
{
	put(r, WW_INPUT_CONFIG, &r->config);
	lead(r, EPOCH);
}

/* Adopted, so that it may raise. */
TEST_UNUSED static void adopt(struct rig *r)
{
	run(r, (int)(LEASE / SECOND) + 2);
}

/* A cluster with one job per node (ids 1 to 3; the third bends most) that has run for a while without a budget. */
TEST_UNUSED static void set_up(struct rig *r)
{
	plan(r);
	begin(r);
	put_job(r, 1, 0, 0.1, 0.5);
	put_job(r, 2, 1, 0.1, 1);
	put_job(r, 3, 2, 0.1, 2);
	adopt(r);
}

TEST_UNUSED static void tear_down(struct rig *r)
{
	ww_control_destroy(r->control);
	ww_control_destroy(r->twin);
	ww_buf_finish(&r->bytes);
}

/* Charge of all GPUs of a node. */
TEST_UNUSED static double charge_of(const struct rig *r, int n)
{
	double w = 0;
	for (int g = 0; g < GPUS; g++)
		w += (double)r->gpu[n * GPUS + g].charge_w;
	return w;
}

#endif
