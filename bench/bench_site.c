/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole site in virtual time with control at 1 Hz: wire, the agents of all nodes, control and the plant. Of each scenario
 * named: GPU-seconds per second of processor time, processor time of one ww_control_step, commands of the step that takes
 * the event in, and the most memory held. The start is not counted: jobs told one by one, every node greeted.
 */
#include "cli/simulate_internal.h"
#include "files/files.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define START_S 30
#define STEPS_MOST 100000

struct steps {
	int64_t ns[STEPS_MOST];
	size_t n;
	bool counts;
	uint32_t known_events;      /* in the last decision */
	uint32_t commands, lowered; /* of the step that took the event in: all, and those with a step down */
	int64_t took_ns;
};

static double cpu_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Has a step down to come. */
static bool lowers(const struct ww_command *c)
{
	for (uint32_t g = 0; g < c->n_gpus; g++)
		for (uint32_t s = 1; s < c->n_steps; s++)
			if (c->step[s].cap_w[g] < c->step[0].cap_w[g])
				return true;
	return false;
}

static void note_step(void *ctx, const struct ww_decision *d, int64_t cpu_ns)
{
	struct steps *steps = ctx;
	if (d->n_events > steps->known_events) {
		steps->known_events = d->n_events;
		steps->commands = d->n_commands;
		steps->took_ns = cpu_ns;
		for (uint32_t i = 0; i < d->n_commands; i++)
			steps->lowered += lowers(&d->commands[i]);
	}
	if (steps->counts && steps->n < STEPS_MOST)
		steps->ns[steps->n++] = cpu_ns;
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static int fail(const struct ww_error *err)
{
	fprintf(stderr, "%s\n", err->text);
	return 1;
}

/* Whether something was not as it must be: safety broken, or a node that the step of the event left out. */
static bool print(const struct ww_scenario *s, struct steps *steps, double spent_s,
                  const struct ww_world_account *account)
{
	struct rusage usage;
	double lived_s = (double)s->duration_us / 1e6 - START_S;
	qsort(steps->ns, steps->n, sizeof *steps->ns, by_value);
	getrusage(RUSAGE_SELF, &usage);
	printf("site of %u GPUs, %zu nodes, %zu jobs, %zu rows, %.0f s\n", s->n_gpus, s->n_nodes, s->n_jobs, s->n_rows,
	       lived_s);
	printf("  million GPU-s per core-s     %8.2f\n", 1e-6 * s->n_gpus * lived_s / spent_s);
	printf("  control_step                 median %8.2f  p99 %8.2f  max %8.2f ms\n",
	       1e-6 * (double)steps->ns[steps->n / 2], 1e-6 * (double)steps->ns[steps->n - 1 - steps->n / 100],
	       1e-6 * (double)steps->ns[steps->n - 1]);
	printf("  step that takes the event    %u commands, %u with a step down, %.2f ms\n", steps->commands,
	       steps->lowered, 1e-6 * (double)steps->took_ns);
	printf("  steps, states stored         %8llu, %llu; %llu commands, %llu writes\n",
	       (unsigned long long)account->steps, (unsigned long long)account->saves,
	       (unsigned long long)account->commands, (unsigned long long)account->writes);
	printf("  most memory                  %8.0f MB\n", (double)usage.ru_maxrss / 1e3);
	unsigned long long broken = account->broken_a + account->broken_b + account->broken_c;
	printf("  invariant broken             %8llu\n", broken);
	return broken > 0 || steps->lowered < s->n_jobs; /* of one node each */
}

static int run(const char *path)
{
	static struct steps steps;
	struct ww_scenario scenario;
	struct ww_scene *scene;
	struct ww_error err;
	ww_world *world;
	if (ww_scenario_read(path, &scenario, &err) || ww_scene_create(&scenario, scenario.seed, &scene, &err))
		return fail(&err);
	scene->spec.stepped = note_step;
	scene->spec.stepped_ctx = &steps;
	if (ww_world_create(&scene->spec, &world, &err))
		return fail(&err);
	double began_s = 0;
	for (int64_t second = 0; second < scenario.duration_us / WW_SECOND_US; second++) {
		if (second == START_S) {
			began_s = cpu_s();
			steps.counts = true;
		}
		if (ww_world_second(world, NULL, &err))
			return fail(&err);
	}
	double spent_s = cpu_s() - began_s;
	if (steps.n == 0) {
		ww_fail(&err, WW_ERR_RANGE, "%s: lasts no longer than its start of %d s; give it a longer duration",
		        path, START_S);
		return fail(&err);
	}
	struct ww_world_account account = ww_world_account(world);
	bool broken = print(&scenario, &steps, spent_s, &account);
	ww_world_destroy(world);
	ww_scene_destroy(scene);
	ww_scenario_finish(&scenario);
	return broken;
}

/* Each in a process of its own, so that its memory is. */
int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		int status;
		fflush(stdout);
		pid_t child = fork();
		if (child == 0) {
			int code = run(argv[i]);
			fflush(stdout);
			_exit(code);
		}
		if (child < 0 || waitpid(child, &status, 0) < 0 || status != 0)
			return 1;
	}
	return 0;
}
