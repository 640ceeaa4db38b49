/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_days [--seed FIRST] [--count N] [--jobs J] [--not-binding PERCENT] [--calm] [--all] [--tell]: lives N event days (day.h) with
 * the whole system and holds them to what is required. Exit 1 when a requirement is not kept, naming it.
 *
 * A figure is of the measured seconds (struct day_log), on the true plant at the meter of the site:
 * - over: the highest mean of 1, 5 and 15 minutes without a break, against the budget's mean of the same minutes.
 * - unused: mean of max(0, budget - power), gross; net: pauses made up for, which are watts that GPUs without power or in a
 *   checkpoint would draw otherwise, with what follows them. Both as a share of the baseline.
 * - tokens: of all jobs, as a share of the offline optimum (struct day_best), which is more than any division under
 *   constant caps can have.
 * - floors: jobs whose tokens/s while they ran are below what was promised, or below what control said it keeps where it
 *   said that a floor cannot be kept.
 *
 * --not-binding: that share of the jobs draws 180 to 270 W, and drew 450 to 700 W when their curves were taken: less than
 * any cap in question. --calm: nothing is lost and nothing goes wrong.
 * --all: a line for every day, not only for those that fail. --tell: and a table of its jobs.
 */
#include "day.h"
#include "read_count.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define JOBS_MOST 64
#define MEANS 3
#define MANY 20            /* days of which means are judged */
#define ABOVE_BEST 0.002   /* of the optimum's tokens: rounding, and floors given up in need */
#define BASELINE_OFF 0.003 /* of the mean power in the ten minutes before an event: what control takes a cut from */
/* Of throughput: rounding of caps, and what power that jitters loses at the highest cap. */
#define FLOOR_TOLERANCE 0.002
#define FLOOR_TOLERANCE_PER_JITTER 0.4

static const uint32_t mean_s[MEANS] = {60, 300, 900};

enum figure {
	OVER_1,
	OVER_5,
	OVER_15,
	UNUSED_NET,
	UNUSED_GROSS,
	TOKENS,     /* 1 - share of the optimum: more is worse, as of all figures */
	TOKENS_DAY, /* the same of the whole day */
	FLOORS,
	INVARIANTS,
	BASELINE,
	/* Where they went: not judged. Of the optimum's tokens: */
	LOST_UNUSED,
	LOST_DIVISION,
	LOST_WITHIN,
	/* Of the baseline's watts: */
	GAP_GUARD,
	GAP_FREE,
	GAP_REST,
	GAP_CHARGE,
	GAP_SLACK,
	GAP_PAUSES,
	FLOOR_SHORT, /* of a job's tokens/s without a cap: the most by which a floor was broken */
	FLOORS_SAID, /* jobs whose floor control said it cannot keep, some time */
	ABOVE,       /* seconds with power above the budget, a share */
	N_FIGURES
};

struct requirement {
	const char *name;
	double worst, mean; /* NAN: not judged */
	double scale;       /* as printed */
};

/* clang-format off */
static struct requirement requirements[N_FIGURES] = {
	[OVER_1] = {"over 1 min %", 0.01, NAN, 100},
	[OVER_5] = {"over 5 min %", 0, NAN, 100},
	[OVER_15] = {"over 15 min %", 0, NAN, 100},
	[UNUSED_NET] = {"unused net %", 0.03, 0.02, 100},
	[UNUSED_GROSS] = {"unused gross %", NAN, NAN, 100},
	[TOKENS] = {"tokens lost %", 0.04, 0.03, 100},
	[TOKENS_DAY] = {"of the day %", NAN, NAN, 100},
	[FLOORS] = {"floors broken", 0, NAN, 1},
	[INVARIANTS] = {"invariants", 0, NAN, 1},
	[BASELINE] = {"baseline off %", BASELINE_OFF, NAN, 100},
	[LOST_UNUSED] = {"lost: unused %", NAN, NAN, 100},
	[LOST_DIVISION] = {"lost: division %", NAN, NAN, 100},
	[LOST_WITHIN] = {"lost: in jobs %", NAN, NAN, 100},
	[GAP_GUARD] = {"gap: guard %", NAN, NAN, 100},
	[GAP_FREE] = {"gap: free %", NAN, NAN, 100},
	[GAP_REST] = {"gap: rest %", NAN, NAN, 100},
	[GAP_CHARGE] = {"gap: charge %", NAN, NAN, 100},
	[GAP_SLACK] = {"gap: slack %", NAN, NAN, 100},
	[GAP_PAUSES] = {"gap: pauses %", NAN, NAN, 100},
	[FLOOR_SHORT] = {"floor short %", NAN, NAN, 100},
	[FLOORS_SAID] = {"floors given up", NAN, NAN, 1},
	[ABOVE] = {"seconds above %", NAN, NAN, 100},
};
/* clang-format on */

#define UNUSED_NOT_BINDING 0.05

struct result {
	uint64_t seed;
	bool failed;
	char error[160];
	double figures[N_FIGURES];
	double cut_frac, gain_frac, cpu_s;
	uint32_t event_s, n_jobs;
	char first[256]; /* breach of an invariant */
};

struct options {
	uint64_t first, count;
	int jobs;
	bool all, tells;
	struct day_options day;
};

/* ---- Figures of a day ------------------------------------------------------------------------------------------------- */

/* The highest mean over `n` measured seconds without a break, against the budget. */
static double worst_mean(const struct day_log *log, uint32_t n)
{
	double power_w = 0, budget_w = 0, worst = -1;
	for (uint32_t s = 0, run = 0; s < DAY_S; s++) {
		if (!log->measured[s]) {
			run = 0;
			power_w = budget_w = 0;
			continue;
		}
		power_w += log->power_w[s];
		budget_w += log->budget_w[s];
		run++;
		if (run > n) {
			power_w -= log->power_w[s - n];
			budget_w -= log->budget_w[s - n];
		}
		if (run >= n)
			worst = fmax(worst, power_w / budget_w - 1);
	}
	return worst;
}

static void find_unused(const struct day_log *log, double *figures)
{
	double n = 0, base_w = log->baseline_w[0];
	for (uint32_t s = 0; s < DAY_S; s++) {
		if (!log->measured[s])
			continue;
		double left_w = log->budget_w[s] - log->power_w[s];
		n++;
		figures[ABOVE] += left_w < 0;
		figures[UNUSED_GROSS] += fmax(0, left_w) / base_w;
		figures[UNUSED_NET] += fmax(0, left_w - log->pauses_w[s]) / base_w;
		figures[GAP_GUARD] += log->gap[s].guard_w / base_w;
		figures[GAP_FREE] += log->gap[s].free_w / base_w;
		figures[GAP_REST] += log->gap[s].rest_w / base_w;
		figures[GAP_CHARGE] += log->gap[s].charge_w / base_w;
		figures[GAP_SLACK] += log->gap[s].slack_w / base_w;
		figures[GAP_PAUSES] += log->gap[s].pauses_w / base_w;
	}
	static const int means[] = {ABOVE,    UNUSED_GROSS, UNUSED_NET, GAP_GUARD, GAP_FREE,
	                            GAP_REST, GAP_CHARGE,   GAP_SLACK,  GAP_PAUSES};
	for (size_t i = 0; i < sizeof means / sizeof *means; i++)
		figures[means[i]] /= n;
}

/* Seconds in which a job ran count, those before them too. */
static void find_floors(const struct day *day, const struct day_log *log, double *figures)
{
	for (uint32_t j = 0; j < day->plant.n_jobs; j++) {
		double tokens = 0, promised = 0, n = 0, tolerance = FLOOR_TOLERANCE;
		bool said = false;
		for (uint32_t s = 1; s < DAY_S; s++) {
			if (!log->measured[s] || !(log->runs[s] >> j & 1) || !(log->runs[s - 1] >> j & 1))
				continue;
			n++;
			tokens += (double)log->tps[j][s];
			promised += (double)log->floor_frac[j][s];
			said = said || (double)log->floor_frac[j][s] < day->told[j].floor_frac - 1e-6;
		}
		tolerance += FLOOR_TOLERANCE_PER_JITTER * day->jobs[j].jitter_frac;
		figures[FLOORS_SAID] += said;
		double short_frac = n > 0 ? (promised - tokens / day->free_tps[j]) / n : 0;
		if (short_frac > tolerance) {
			figures[FLOORS]++;
			figures[FLOOR_SHORT] = fmax(figures[FLOOR_SHORT], short_frac);
		}
	}
}

static void find_tokens(const struct day_best *best, double *figures)
{
	figures[TOKENS] = 1 - best->lived / best->tokens;
	figures[TOKENS_DAY] = 1 - best->day_lived / best->day;
	figures[LOST_UNUSED] = (best->tokens - best->at_power) / best->tokens;
	figures[LOST_DIVISION] = (best->at_power - best->at_division) / best->tokens;
	figures[LOST_WITHIN] = (best->at_division - best->lived) / best->tokens;
}

static void find_figures(const struct day *day, const struct day_log *log, const struct day_best *best,
                         struct result *r)
{
	for (int i = 0; i < MEANS; i++)
		r->figures[OVER_1 + i] = worst_mean(log, mean_s[i]);
	for (uint32_t s = 0; s < DAY_S; s++)
		r->event_s += log->measured[s];
	for (uint32_t i = 0; i < day->n_events; i++)
		r->figures[BASELINE] = fmax(r->figures[BASELINE], log->baseline_off_frac[i]);
	find_unused(log, r->figures);
	find_floors(day, log, r->figures);
	find_tokens(best, r->figures);
	r->figures[INVARIANTS] = (double)(log->account.broken_a + log->account.broken_b);
	memcpy(r->first, log->account.first, sizeof r->first);
	r->cut_frac = day->announcements[0].event.cut_frac;
	r->gain_frac = day->plant.board.model_gain_frac;
	r->n_jobs = day->plant.n_jobs;
}

/* What every job did in the phase of the deepest budget, and what the optimum would have done. */
static void tell_jobs(const struct day *day, const struct day_log *log, const struct day_best *best)
{
	printf("\n%-8s %4s %4s %5s %6s | %6s %6s %6s | %6s %6s %6s\n", "job", "GPUs", "tier", "p0", "tps/GPU", "floor",
	       "kept", "best", "W/GPU", "ideal", "best");
	for (uint32_t j = 0; j < day->plant.n_jobs; j++) {
		const struct ww_job *told = &day->told[j];
		const struct day_job_best *b = &best->jobs[j];
		uint32_t n = day->jobs[j].n_gpus, said_s = 0;
		for (uint32_t s = 0; s < DAY_S; s++)
			said_s += log->measured[s] && (double)log->floor_frac[j][s] < told->floor_frac - 1e-6;
		printf("%-8s %4u %4d %5.0f %7.0f | %6.3f %6.3f %6.3f | %6.1f %6.1f %6.1f | floor given up for %u s\n",
		       told->name, n, told->tier, told->has_curve ? told->curve.p0_w : 0, day->free_tps[j] / n,
		       told->floor_frac, b->tps / day->free_tps[j], b->best_tps / day->free_tps[j], b->w / n,
		       b->ideal_w / n, b->best_w / n, said_s);
	}
	printf("the optimum %s all floors\n", best->floors_kept ? "keeps" : "cannot keep");
}

static void live(uint64_t seed, const struct day_options *options, bool tells, struct result *r)
{
	static struct day day;
	static struct day_log log;
	struct day_best best;
	struct ww_error err;
	clock_t begin = clock();
	*r = (struct result){.seed = seed};
	ww_status status = day_draw(&day, seed, options, &err);
	if (!status)
		status = day_live(&day, &log, &err);
	if (!status)
		status = day_find_best(&day, &log, &best, &err);
	if (!status && best.lived > (1 + ABOVE_BEST) * best.tokens)
		status = ww_fail(&err, WW_ERR_RANGE, "more tokens than the optimum: %.4f of it",
		                 best.lived / best.tokens);
	if (status) {
		r->failed = true;
		snprintf(r->error, sizeof r->error, "%.150s", err.text);
	} else {
		find_figures(&day, &log, &best, r);
		if (tells)
			tell_jobs(&day, &log, &best);
	}
	r->cpu_s = (double)(clock() - begin) / CLOCKS_PER_SEC;
}

/* ---- Sums ------------------------------------------------------------------------------------------------------------- */

struct sums {
	uint64_t n, failed, bad[N_FIGURES], worst_seed[N_FIGURES];
	double sum[N_FIGURES], worst[N_FIGURES], cpu_s;
};

static bool is_bad(const struct result *r, int figure)
{
	return !isnan(requirements[figure].worst) && !(r->figures[figure] <= requirements[figure].worst);
}

static void print_head(void)
{
	printf("%9s %5s %5s %6s %4s | %6s %6s %6s | %6s %6s | %6s %6s | %3s %5s %3s %3s | lost: %5s %5s %5s | gap: %5s "
	       "%5s "
	       "%5s %5s %5s %5s | %5s\n",
	       "seed", "cut", "gain", "event", "jobs", "1 min", "5 min", "15 min", "net", "gross", "tokens", "day",
	       "flo", "short", "giv", "inv", "unus", "divi", "jobs", "guard", "free", "rest", "charg", "slack", "pause",
	       "above");
}

static void print_day(const struct result *r)
{
	const double *f = r->figures;
	if (r->failed) {
		printf("%9llu failed: %s\n", (unsigned long long)r->seed, r->error);
		return;
	}
	printf("%9llu %5.1f %5.1f %5us %4u | %6.2f %6.2f %6.2f | %6.2f %6.2f | %6.2f %6.2f | %3.0f %5.2f %3.0f %3.0f | "
	       "lost: "
	       "%5.2f "
	       "%5.2f %5.2f | gap: %5.2f %5.2f %5.2f %5.2f %5.2f %5.2f | %5.2f ",
	       (unsigned long long)r->seed, 100 * r->cut_frac, 100 * r->gain_frac, r->event_s, r->n_jobs,
	       100 * f[OVER_1], 100 * f[OVER_5], 100 * f[OVER_15], 100 * f[UNUSED_NET], 100 * f[UNUSED_GROSS],
	       100 * (1 - f[TOKENS]), 100 * (1 - f[TOKENS_DAY]), f[FLOORS], 100 * f[FLOOR_SHORT], f[FLOORS_SAID],
	       f[INVARIANTS], 100 * f[LOST_UNUSED], 100 * f[LOST_DIVISION], 100 * f[LOST_WITHIN], 100 * f[GAP_GUARD],
	       100 * f[GAP_FREE], 100 * f[GAP_REST], 100 * f[GAP_CHARGE], 100 * f[GAP_SLACK], 100 * f[GAP_PAUSES],
	       100 * f[ABOVE]);
	for (int i = 0; i < N_FIGURES; i++)
		if (is_bad(r, i))
			printf(" %s;", requirements[i].name);
	printf("%s%s\n", f[INVARIANTS] > 0 ? " " : "", r->first);
}

static void add(struct sums *sums, const struct options *o, const struct result *r)
{
	bool bad = r->failed;
	for (int i = 0; i < N_FIGURES && !r->failed; i++) {
		bad = bad || is_bad(r, i);
		sums->bad[i] += is_bad(r, i);
		sums->sum[i] += r->figures[i];
		if (sums->n == 0 || r->figures[i] > sums->worst[i]) {
			sums->worst[i] = r->figures[i];
			sums->worst_seed[i] = r->seed;
		}
	}
	sums->cpu_s += r->cpu_s;
	sums->failed += r->failed;
	sums->n += !r->failed;
	if (bad || o->all)
		print_day(r);
	fflush(stdout);
}

/* Prints every figure; whether the requirements are kept. */
static bool judge(const struct sums *sums, const struct options *o)
{
	bool fine = sums->failed == 0 && sums->n == o->count;
	printf("\n%-16s %8s %8s %10s  %s\n", "", "mean", "worst", "its seed", "required");
	for (int i = 0; i < N_FIGURES; i++) {
		const struct requirement *q = &requirements[i];
		double mean = sums->sum[i] / (double)sums->n;
		bool mean_bad = !isnan(q->mean) && sums->n >= MANY && !(mean <= q->mean);
		printf("%-16s %8.3f %8.3f %10llu ", q->name, q->scale * mean, q->scale * sums->worst[i],
		       (unsigned long long)sums->worst_seed[i]);
		if (!isnan(q->mean))
			printf(" mean <= %g", q->scale * q->mean);
		if (!isnan(q->worst))
			printf(" each <= %g", q->scale * q->worst);
		if (mean_bad || sums->bad[i] > 0)
			printf("  NOT KEPT: %s%llu of %llu days", mean_bad ? "in the mean; " : "",
			       (unsigned long long)sums->bad[i], (unsigned long long)sums->n);
		putchar('\n');
		fine = fine && !mean_bad && sums->bad[i] == 0;
	}
	printf("%llu days, %llu failed, %.2f s CPU each\n", (unsigned long long)(sums->n + sums->failed),
	       (unsigned long long)sums->failed, sums->cpu_s / (double)(sums->n + sums->failed));
	return fine;
}

/* ---- Processes -------------------------------------------------------------------------------------------------------- */

/* Every `jobs`-th of the seeds from the `worker`-th on. */
static void work(const struct options *o, int worker, int to)
{
	struct result r;
	for (uint64_t i = (uint64_t)worker; i < o->count; i += (uint64_t)o->jobs) {
		live(o->first + i, &o->day, o->tells, &r);
		fflush(stdout);
		if (write(to, &r, sizeof r) != sizeof r)
			_exit(1);
	}
	_exit(0);
}

static bool read_whole(int from, struct result *r)
{
	size_t n = 0;
	while (n < sizeof *r) {
		ssize_t got = read(from, (char *)r + n, sizeof *r - n);
		if (got <= 0)
			return false;
		n += (size_t)got;
	}
	return true;
}

/* In the order of the seeds, whoever lives them. */
static bool work_in_processes(const struct options *o, struct sums *sums)
{
	int pipes[JOBS_MOST][2];
	bool done = true;
	for (int j = 0; j < o->jobs; j++) {
		if (pipe(pipes[j]))
			return false;
		pid_t child = fork();
		if (child < 0)
			return false;
		if (child == 0)
			work(o, j, pipes[j][1]);
		close(pipes[j][1]);
	}
	for (uint64_t i = 0; i < o->count && done; i++) {
		struct result r;
		done = read_whole(pipes[i % (uint64_t)o->jobs][0], &r);
		if (done)
			add(sums, o, &r);
	}
	for (int j = 0; j < o->jobs; j++) {
		int result;
		close(pipes[j][0]);
		done = wait(&result) > 0 && result == 0 && done;
	}
	return done;
}

/* ---- Program ---------------------------------------------------------------------------------------------------------- */

static bool read_options(int argc, char **argv, struct options *o)
{
	for (int i = 1; i < argc; i++) {
		uint64_t value = 0;
		bool *flag = !strcmp(argv[i], "--all")    ? &o->all
		             : !strcmp(argv[i], "--calm") ? &o->day.calm
		             : !strcmp(argv[i], "--tell") ? &o->tells
		                                          : NULL;
		if (flag) {
			*flag = true;
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
		else if (!strcmp(argv[i], "--not-binding") && value <= 100)
			o->day.not_binding = (double)value / 100;
		else
			return false;
		i++;
	}
	return true;
}

int main(int argc, char **argv)
{
	struct options o = {.first = 1, .count = 20, .jobs = 1};
	struct sums sums = {0};
	if (!read_options(argc, argv, &o)) {
		fprintf(stderr,
		        "usage: event_days [--seed FIRST] [--count 1..] [--jobs 1..%d] [--not-binding 0..100] [--calm] "
		        "[--all] [--tell]\n",
		        JOBS_MOST);
		return 2;
	}
	if (o.day.not_binding > 0)
		requirements[UNUSED_NET].worst = requirements[UNUSED_NET].mean = UNUSED_NOT_BINDING;
	print_head();
	fflush(stdout);
	bool done = work_in_processes(&o, &sums);
	if (!done)
		puts("a process that lives days has ended early");
	return judge(&sums, &o) && done ? 0 : 1;
}
