/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault_schedules [--seed FIRST] [--count N] [--jobs J] [--trace]: lives N random clusters with everything that can go wrong
 * in them and checks them in every second. Exit 1 when limits in force were above charges (a) or charges above budgets (b).
 * With --trace the first schedule is told second by second around its first breach.
 */
#include "read_count.h"
#include "schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MANY 1000 /* schedules in some of which watts move within jobs */
#define JOBS_MOST 64
#define NO_SEED UINT64_MAX
#define BEFORE_S 40 /* told before a breach, and after it */
#define AFTER_S 3

struct tally {
	uint64_t schedules, seconds, broken_a, broken_b, broken_c, commands, writes, failed;
	uint64_t trimmed, trimmed_s; /* schedules and seconds with watts moved within a job */
	uint64_t first_seed, first_c_seed;
	double cpu_s, worst_c_frac;
	char first[256], failure[256];
};

struct options {
	uint64_t first, count;
	int jobs;
	bool trace;
};

static void keep_first(struct tally *t, uint64_t seed, const struct ww_world_account *account)
{
	if (account->broken_a + account->broken_b > 0 && seed < t->first_seed) {
		t->first_seed = seed;
		memcpy(t->first, account->first, sizeof t->first);
	}
	if (account->broken_c > 0 && seed < t->first_c_seed)
		t->first_c_seed = seed;
}

static void fail(struct tally *t, uint64_t seed, const struct ww_error *err)
{
	if (t->failed++ == 0)
		snprintf(t->failure, sizeof t->failure, "seed %llu: %.200s", (unsigned long long)seed, err->text);
}

static bool is_trimmed(const struct ww_decision *d)
{
	for (uint32_t g = 0; d && g < d->first_gpu[d->n_nodes]; g++)
		if (d->gpus[g].trim_w != 0)
			return true;
	return false;
}

static void live(struct tally *t, uint64_t seed)
{
	static struct schedule s;
	struct ww_error err;
	struct ww_world_second second;
	ww_world *world = NULL;
	uint64_t trimmed_s = 0;
	schedule_draw(&s, seed);
	ww_status status = ww_world_create(&s.world, &world, &err);
	for (int64_t us = 0; !status && us < s.length_us; us += WW_SECOND_US) {
		status = ww_world_second(world, &second, &err);
		trimmed_s += !status && is_trimmed(second.decision);
	}
	if (status)
		fail(t, seed, &err);
	if (!world)
		return;
	struct ww_world_account account = ww_world_account(world);
	ww_world_destroy(world);
	t->schedules++;
	t->seconds += account.seconds;
	t->trimmed += trimmed_s > 0;
	t->trimmed_s += trimmed_s;
	t->broken_a += account.broken_a > 0;
	t->broken_b += account.broken_b > 0;
	t->broken_c += account.broken_c > 0;
	t->commands += account.commands;
	t->writes += account.writes;
	t->worst_c_frac = account.worst_c_frac > t->worst_c_frac ? account.worst_c_frac : t->worst_c_frac;
	keep_first(t, seed, &account);
}

/* Every `jobs`-th of the seeds from the `worker`-th on. */
static void work(struct tally *t, const struct options *o, int worker)
{
	*t = (struct tally){.first_seed = NO_SEED, .first_c_seed = NO_SEED};
	clock_t begin = clock();
	for (uint64_t i = (uint64_t)worker; i < o->count; i += (uint64_t)o->jobs)
		live(t, o->first + i);
	t->cpu_s = (double)(clock() - begin) / CLOCKS_PER_SEC;
}

static void add(struct tally *sum, const struct tally *t)
{
	sum->schedules += t->schedules;
	sum->seconds += t->seconds;
	sum->trimmed += t->trimmed;
	sum->trimmed_s += t->trimmed_s;
	sum->broken_a += t->broken_a;
	sum->broken_b += t->broken_b;
	sum->broken_c += t->broken_c;
	sum->commands += t->commands;
	sum->writes += t->writes;
	sum->cpu_s += t->cpu_s;
	sum->worst_c_frac = t->worst_c_frac > sum->worst_c_frac ? t->worst_c_frac : sum->worst_c_frac;
	if (t->failed && !sum->failed)
		memcpy(sum->failure, t->failure, sizeof sum->failure);
	sum->failed += t->failed;
	if (t->first_seed < sum->first_seed) {
		sum->first_seed = t->first_seed;
		memcpy(sum->first, t->first, sizeof sum->first);
	}
	if (t->first_c_seed < sum->first_c_seed)
		sum->first_c_seed = t->first_c_seed;
}

static bool work_in_processes(struct tally *sum, const struct options *o)
{
	int pipes[JOBS_MOST][2];
	bool done = true;
	for (int j = 0; j < o->jobs; j++) {
		if (pipe(pipes[j]))
			return false;
		pid_t child = fork();
		if (child < 0)
			return false;
		if (child == 0) {
			static struct tally t;
			work(&t, o, j);
			_exit(write(pipes[j][1], &t, sizeof t) == sizeof t ? 0 : 1);
		}
		close(pipes[j][1]);
	}
	for (int j = 0; j < o->jobs; j++) {
		struct tally t;
		int result;
		done &= read(pipes[j][0], &t, sizeof t) == sizeof t;
		done &= wait(&result) > 0 && result == 0;
		close(pipes[j][0]);
		if (done)
			add(sum, &t);
	}
	return done;
}

/* ---- One schedule told -------------------------------------------------------------------------------------------------- */

struct teller {
	int64_t now_us, from_us, to_us;
};

static void tell(void *ctx, const char *line)
{
	const struct teller *teller = ctx;
	if (teller->now_us >= teller->from_us && teller->now_us <= teller->to_us)
		puts(line);
}

/* What the decision of a second says of the rows. */
static void tell_second(const struct schedule *s, const struct ww_world_second *second)
{
	if (!second->decision)
		return;
	for (uint32_t r = 0; r < s->plant.n_rows; r++) {
		const struct ww_row_decision *d = &second->decision->rows[r];
		printf("%10.3f    row %u: budget %.1f (%s) = charge %.1f + rest %.1f + guard %.1f + free %.1f, missing "
		       "%.1f, "
		       "power %.1f\n",
		       (double)second->at_us / 1e6, r, d->budget_w, ww_boundary_name((enum ww_boundary)d->boundary),
		       d->charge_w, d->non_gpu_w, d->guard_w, d->free_w, d->missing_w,
		       ww_plant_row_w(second->plant, r, d->boundary));
	}
}

/* Lives it and returns the time of its first breach, WW_NEVER_US when there is none; tells it when `teller` is given. */
static int64_t live_told(struct schedule *s, struct teller *teller)
{
	struct ww_error err;
	ww_world *world;
	struct ww_world_second second;
	int64_t breach_us = WW_NEVER_US;
	s->world.trace = teller ? tell : NULL;
	s->world.trace_ctx = teller;
	ww_status status = ww_world_create(&s->world, &world, &err);
	if (status) {
		puts(err.text);
		return breach_us;
	}
	for (int64_t us = 0; !status && us < s->length_us; us += WW_SECOND_US) {
		if (teller)
			teller->now_us = us;
		status = ww_world_second(world, &second, &err);
		struct ww_world_account a = ww_world_account(world);
		if (breach_us == WW_NEVER_US && a.broken_a + a.broken_b + a.broken_c > 0)
			breach_us = us;
		if (!status && teller && us >= teller->from_us && us <= teller->to_us)
			tell_second(s, &second);
	}
	if (status)
		puts(err.text);
	ww_world_destroy(world);
	return breach_us;
}

static void tell_schedule(uint64_t seed)
{
	static struct schedule s;
	struct teller teller = {.from_us = 0, .to_us = WW_NEVER_US};
	schedule_draw(&s, seed);
	int64_t breach_us = live_told(&s, NULL);
	if (breach_us != WW_NEVER_US) {
		teller.from_us = breach_us - BEFORE_S * WW_SECOND_US;
		teller.to_us = breach_us + AFTER_S * WW_SECOND_US;
	}
	static const char *const afters[] = {"hold", "failcap", "restore"};
	printf("seed %llu: %u nodes, %u rows, %u jobs, lease %.1f s then %s, settle %.1f s, period %.0f s\n",
	       (unsigned long long)seed, s.plant.n_nodes, s.plant.n_rows, s.plant.n_jobs,
	       (double)s.config.valid_for_us / 1e6, afters[s.config.after], (double)s.config.settle_us / 1e6,
	       (double)s.world.period_us / 1e6);
	for (uint32_t i = 0; i < s.plant.n_nodes; i++)
		printf("node %u: %u GPUs, boots in %.1f s at least, boot cap %.1f W\n", i, s.nodes[i].n_gpus,
		       (double)s.node_configs[i].shortest_boot_us / 1e6, s.nodes[i].boot_cap_w);
	live_told(&s, &teller);
}

/* ---- Program ------------------------------------------------------------------------------------------------------------ */

static void report(const struct options *o, const struct tally *t)
{
	printf("%llu schedules from seed %llu: %.1f M seconds, %llu commands, %llu writes, %.2f ms CPU each\n",
	       (unsigned long long)t->schedules, (unsigned long long)o->first, (double)t->seconds / 1e6,
	       (unsigned long long)t->commands, (unsigned long long)t->writes,
	       t->schedules ? 1e3 * t->cpu_s / (double)t->schedules : 0);
	printf("watts were moved within jobs in %llu of them, in %.1f %% of all seconds\n",
	       (unsigned long long)t->trimmed, t->seconds ? 100 * (double)t->trimmed_s / (double)t->seconds : 0);
	printf("with breaches of (a) %llu, (b) %llu, (c) %llu; failed %llu\n", (unsigned long long)t->broken_a,
	       (unsigned long long)t->broken_b, (unsigned long long)t->broken_c, (unsigned long long)t->failed);
	if (t->first_seed != NO_SEED)
		printf("first breach: seed %llu: %s\n", (unsigned long long)t->first_seed, t->first);
	if (t->first_c_seed != NO_SEED)
		printf("first of (c): seed %llu; power above budget by %.2f %% at most\n",
		       (unsigned long long)t->first_c_seed, 100 * t->worst_c_frac);
	if (t->failed)
		printf("first failure: %s\n", t->failure);
}

static bool read_options(int argc, char **argv, struct options *o)
{
	for (int i = 1; i < argc; i++) {
		uint64_t value = 0;
		if (!strcmp(argv[i], "--trace")) {
			o->trace = true;
			continue;
		}
		if (i + 1 == argc || !read_count(argv[i + 1], &value))
			return false;
		if (!strcmp(argv[i], "--seed"))
			o->first = value;
		else if (!strcmp(argv[i], "--count") && value >= 1)
			o->count = value;
		else if (!strcmp(argv[i], "--jobs") && value >= 1 && value <= JOBS_MOST)
			o->jobs = (int)value;
		else
			return false;
		i++;
	}
	return true;
}

int main(int argc, char **argv)
{
	struct options o = {.first = 1, .count = 1000, .jobs = 1};
	static struct tally t;
	if (!read_options(argc, argv, &o)) {
		fprintf(stderr, "usage: fault_schedules [--seed FIRST] [--count 1..] [--jobs 1..%d] [--trace]\n",
		        JOBS_MOST);
		return 2;
	}
	if (o.trace) {
		tell_schedule(o.first);
		return 0;
	}
	t = (struct tally){.first_seed = NO_SEED, .first_c_seed = NO_SEED};
	if (o.jobs == 1)
		work(&t, &o, 0);
	else if (!work_in_processes(&t, &o))
		t.failed++;
	report(&o, &t);
	bool idle = t.schedules >= MANY && t.trimmed == 0; /* safeguards of moves would never be tried */
	return t.broken_a + t.broken_b + t.failed > 0 || t.schedules != o.count || idle;
}
