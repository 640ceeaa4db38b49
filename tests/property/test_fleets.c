/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Never worse than an equal cut: wattweir's own division on measured sweeps, as a whole and resampled into hundreds of
 * fleets, and on fleets of a physical model, also when what it sees of them is noisy.
 */
#include "assert_near.h"
#include "core/core.h"
#include "files/files.h"

#include <string.h>

#define A40 "zeus-nsdi23-trace/summary_power_a40.csv"
#define V100 "zeus-nsdi23-trace/summary_power_v100.csv"
#define EMERALD "emerald-ai-demo-may-2025/dvfs_sweep.csv"

#define MOST_JOBS 128

static const double cuts[] = {0.1, 0.2, 0.3, 0.4};

/* ---- Measured sets --------------------------------------------------------------------------------------------------- */

/* The jobs of a file that take part: power limited and no duplicates, with caps in a range. */
struct set {
	struct ww_sweep sweep;
	size_t n;
	struct ww_compare_job job[MOST_JOBS];
};

static size_t keep_caps(struct ww_sweep_group *g, double lo_w)
{
	size_t n = 0;
	for (size_t i = 0; i < g->n_points; i++)
		if (g->points[i].cap_w >= lo_w)
			g->points[n++] = g->points[i];
	return n;
}

static bool is_limited(const struct ww_compare_job *job)
{
	const struct ww_pfi_options options = WW_PFI_OPTIONS_INIT;
	struct ww_pfi pfi;
	struct ww_error err;
	assert_int_equal(ww_pfi_estimate(job->points, job->n, &options, &pfi, &err), WW_OK);
	return pfi.status == WW_PFI_OK || pfi.status == WW_PFI_BOUND;
}

static void read_set(const char *file, double lo_w, struct set *out)
{
	static struct ww_compare_job all[MOST_JOBS];
	size_t same_as[MOST_JOBS];
	struct ww_error err = {WW_OK, ""};
	ww_status status = ww_sweep_read(data_path(file), NULL, &out->sweep, &err);
	if (status)
		print_error("%s\n", err.text);
	assert_int_equal(status, WW_OK);
	assert_true(out->sweep.n_groups <= MOST_JOBS);
	for (size_t i = 0; i < out->sweep.n_groups; i++) {
		struct ww_sweep_group *g = &out->sweep.groups[i];
		all[i] = (struct ww_compare_job){g->name, g->points, keep_caps(g, lo_w)};
	}
	assert_int_equal(ww_find_duplicates(all, out->sweep.n_groups, same_as, &err), WW_OK);
	out->n = 0;
	for (size_t i = 0; i < out->sweep.n_groups; i++)
		if (same_as[i] == i && is_limited(&all[i]))
			out->job[out->n++] = all[i];
}

static struct ww_compare_row compare(const struct ww_compare_job *jobs, size_t n, double cut, double sigma)
{
	struct ww_compare_options options = WW_COMPARE_OPTIONS_INIT;
	struct ww_compare_row row;
	struct ww_error err;
	ww_compare *c;
	options.noise_frac = sigma;
	assert_int_equal(ww_compare_create(jobs, n, &options, &c, &err), WW_OK);
	assert_int_equal(ww_compare_jobs(c), n);
	assert_int_equal(ww_compare_run(c, cut, &row, &err), WW_OK);
	ww_compare_destroy(c);
	return row;
}

/* ---- Whole sets ------------------------------------------------------------------------------------------------------ */

/* At most 0.0005 below equal at any cut, and below one watt cap for all up to 30 %. */
static void check_cell(const struct ww_compare_row *row, const char *what)
{
	double below = row->value[WW_POLICY_EQUAL] - row->value[WW_POLICY_CURVE];
	print_message(
		"# %s %2.0f %%: equal %.4f uniform %.4f curve %.4f oracle %.4f recovered %.2f (box %.2f) shrink %.2f\n",
		what, 100 * row->cut_frac, row->value[WW_POLICY_EQUAL], row->value[WW_POLICY_UNIFORM],
		row->value[WW_POLICY_CURVE], row->value[WW_POLICY_ORACLE], row->recovered_frac, row->recovered_box_frac,
		row->shrink);
	assert_int_equal(row->outcome, WW_OUTCOME_OPTIMAL);
	assert_true(below <= 0.0005);
	if (row->cut_frac <= 0.3)
		assert_true(row->value[WW_POLICY_CURVE] >= row->value[WW_POLICY_UNIFORM] - 0.0005);
}

/* Returns the sum of what was recovered at 10, 20 and 30 %. */
static double check_set(const char *file, double lo_w, const char *what)
{
	static struct set s;
	double sum = 0;
	read_set(file, lo_w, &s);
	for (int i = 0; i < 4; i++) {
		struct ww_compare_row row = compare(s.job, s.n, cuts[i], 0.01);
		check_cell(&row, what);
		sum += i < 3 ? row.recovered_frac : 0;
		if (i == 2 && lo_w == 0)
			assert_true(row.recovered_frac >= 0.6);
	}
	ww_sweep_finish(&s.sweep);
	return sum;
}

static void whole_zeus_sets_gain(void **state)
{
	(void)state;
	skip_without_data(A40);
	skip_without_data(V100);
	double mean = (check_set(A40, 0, "A40 ") + check_set(V100, 0, "V100")) / 6;
	print_message("# recovered, mean of six cells: %.3f\n", mean);
	assert_true(mean >= 0.5);
}

static void whole_emerald_sets_do_not_lose(void **state)
{
	(void)state;
	skip_without_data(EMERALD);
	(void)check_set(EMERALD, 200, "Emerald 200..400");
	(void)check_set(EMERALD, 100, "Emerald 100..400");
}

static void shrink_falls_with_sigma(void **state)
{
	static const char *const files[] = {A40, V100};
	static const double sigmas[] = {0.01, 0.02, 0.04};
	static struct set s;
	(void)state;
	skip_without_data(A40);
	skip_without_data(V100);
	for (int f = 0; f < 2; f++) {
		read_set(files[f], 0, &s);
		for (int i = 0; i < 4; i++) {
			double last = INFINITY;
			for (int k = 0; k < 3; k++) {
				double shrink = compare(s.job, s.n, cuts[i], sigmas[k]).shrink;
				assert_true(shrink < last);
				last = shrink;
			}
		}
		ww_sweep_finish(&s.sweep);
	}
}

/* ---- Resampled fleets ------------------------------------------------------------------------------------------------ */

enum { FLEETS = 200, FLEET = 24 };

/* FLEET of n jobs, each at most once. */
static void draw_fleet(struct ww_rng *rng, const struct set *s, struct ww_compare_job *out)
{
	struct ww_compare_job pool[MOST_JOBS];
	memcpy(pool, s->job, s->n * sizeof *pool);
	for (size_t i = 0; i < FLEET; i++) {
		size_t k = i + ww_rng_below(rng, (uint32_t)(s->n - i));
		out[i] = pool[k];
		pool[k] = pool[i];
	}
}

/* What a cell of many fleets showed. */
struct tally {
	int fleets, below, recovered_n;
	double worst, recovered;
};

static void count(struct tally *t, double equal, double value, double recovered)
{
	double loss = equal - value;
	t->fleets++;
	t->below += loss > 0.0005;
	t->worst = fmax(t->worst, loss);
	if (!isnan(recovered)) {
		t->recovered_n++;
		t->recovered += recovered;
	}
}

static void check_tally(const struct tally *t, const char *what, double cut)
{
	print_message("# %s %2.0f %%: %d fleets, %d below equal by > 0.0005, worst %.5f, recovered %.3f (mean of %d)\n",
	              what, 100 * cut, t->fleets, t->below, t->worst,
	              t->recovered_n ? t->recovered / t->recovered_n : NAN, t->recovered_n);
	assert_true(t->fleets >= 30);
	assert_true(t->below * 100 <= t->fleets);
	assert_true(t->worst <= 0.003);
}

static void check_fleets(const char *file, const char *what)
{
	static struct set s;
	read_set(file, 0, &s);
	assert_true(s.n >= FLEET);
	for (int i = 0; i < 4; i++) {
		struct tally t = {0};
		struct ww_rng rng;
		ww_rng_seed(&rng, (uint64_t)i + 1);
		for (int k = 0; k < FLEETS; k++) {
			struct ww_compare_job fleet[FLEET];
			draw_fleet(&rng, &s, fleet);
			struct ww_compare_row row = compare(fleet, FLEET, cuts[i], 0.01);
			if (row.outcome == WW_OUTCOME_OPTIMAL)
				count(&t, row.value[WW_POLICY_EQUAL], row.value[WW_POLICY_CURVE], row.recovered_frac);
		}
		check_tally(&t, what, cuts[i]);
	}
	ww_sweep_finish(&s.sweep);
}

static void fleets_of_a40_jobs_do_not_lose(void **state)
{
	(void)state;
	skip_without_data(A40);
	check_fleets(A40, "A40 ");
}

static void fleets_of_v100_jobs_do_not_lose(void **state)
{
	(void)state;
	skip_without_data(V100);
	check_fleets(V100, "V100");
}

/* ---- Fleets of a physical model ---------------------------------------------------------------------------------------- */

/* Draw = idle share + (1 - idle share) f^power, time = compute share / f + the rest, f the clock relative to its top. */
struct model {
	double p0_w, t0, idle, power, compute;
};

static struct model random_model(struct ww_rng *rng)
{
	return (struct model){.p0_w = 300 + 400 * ww_rng_uniform(rng),
	                      .t0 = 1000 * (1 + ww_rng_uniform(rng)),
	                      .idle = 0.15 + 0.15 * ww_rng_uniform(rng),
	                      .power = 2 + ww_rng_uniform(rng),
	                      .compute = 0.15 + 0.8 * ww_rng_uniform(rng)};
}

static double model_kept(const struct model *m, double cut)
{
	double f = pow(fmax(1 - cut - m->idle, 1e-9) / (1 - m->idle), 1 / m->power);
	return 1 / (m->compute / f + 1 - m->compute);
}

#define MODEL_CAPS 9

static void model_sweep(const struct model *m, struct ww_point *p)
{
	for (int i = 0; i < MODEL_CAPS; i++) {
		double cut = 0.075 * i;
		p[i] = (struct ww_point){
			m->p0_w * (1 - cut), m->p0_w * (1 - cut), m->t0 * model_kept(m, cut), NAN, NAN, -1};
	}
}

static void model_fleets_do_not_lose(void **state)
{
	static struct ww_point points[40][FLEET][MODEL_CAPS];
	static char names[FLEET][8];
	struct ww_rng rng;
	(void)state;
	ww_rng_seed(&rng, 77);
	for (int k = 0; k < 40; k++)
		for (int i = 0; i < FLEET; i++) {
			struct model m = random_model(&rng);
			model_sweep(&m, points[k][i]);
			snprintf(names[i], sizeof names[i], "m%d", i);
		}
	for (int c = 0; c < 4; c++) {
		struct tally t = {0};
		for (int k = 0; k < 40; k++) {
			struct ww_compare_job fleet[FLEET];
			for (int i = 0; i < FLEET; i++)
				fleet[i] = (struct ww_compare_job){names[i], points[k][i], MODEL_CAPS};
			struct ww_compare_row row = compare(fleet, FLEET, cuts[c], 0.01);
			count(&t, row.value[WW_POLICY_EQUAL], row.value[WW_POLICY_CURVE], row.recovered_frac);
		}
		check_tally(&t, "model, noiseless", cuts[c]);
		if (cuts[c] <= 0.3) /* deeper the box, which ends at 0.35, leaves nothing to move */
			assert_true(t.recovered_n >= 30 && t.recovered > 0.5 * t.recovered_n);
	}
}

/* Two rehearsed cuts whose throughputs, and that of the shared baseline, are off by `noise`. */
static struct ww_curve rehearse(struct ww_rng *rng, const struct model *m, double noise)
{
	struct ww_fit_point p[2] = {{0.15, 0}, {0.35, 0}};
	struct ww_curve out;
	struct ww_error err;
	double t0 = 1 + noise * ww_rng_normal(rng);
	for (int i = 0; i < 2; i++)
		p[i].loss_frac = 1 - model_kept(m, p[i].cut_frac) * (1 + noise * ww_rng_normal(rng)) / t0;
	assert_int_equal(ww_curve_fit(&(struct ww_fit){p, 2, 0.01, m->p0_w, m->t0}, &out, &err), WW_OK);
	return out;
}

struct noisy_fleet {
	struct model model[FLEET];
	struct ww_curve curve[FLEET];
	struct ww_alloc_job job[FLEET];
	double baseline_w;
};

static void make_noisy_fleet(struct ww_rng *rng, struct noisy_fleet *f, double noise)
{
	f->baseline_w = 0;
	for (uint32_t i = 0; i < FLEET; i++) {
		f->model[i] = random_model(rng);
		f->curve[i] = rehearse(rng, &f->model[i], noise);
		f->job[i] = (struct ww_alloc_job){
			.id = i, .gpus = 1, .weight = 1, .min_w = 0.45 * f->model[i].p0_w, .curve = &f->curve[i]};
		f->baseline_w += f->model[i].p0_w;
	}
}

/* Mean true throughput kept by an equal cut and by wattweir's division. */
static void divide(const struct noisy_fleet *f, double cut, double *equal, double *value)
{
	struct ww_alloc_problem problem = {.jobs = f->job, .n_jobs = FLEET, .budget_w = (1 - cut) * f->baseline_w};
	struct ww_error err;
	ww_alloc *a;
	assert_int_equal(ww_alloc_create(&a, &err), WW_OK);
	assert_int_equal(ww_alloc_set(a, &problem, &err), WW_OK);
	(void)ww_alloc_run(a, 100);
	*equal = *value = 0;
	for (int i = 0; i < FLEET; i++) {
		const struct ww_alloc_share *s = &ww_alloc_shares(a)[i];
		*equal += model_kept(&f->model[i], s->equal_cut_frac) / FLEET;
		*value += model_kept(&f->model[i], s->cut_frac) / FLEET;
	}
	ww_alloc_destroy(a);
}

/* 1 % of noise as assumed, and twice as much: the division may gain less, but does not lose. */
static void noisy_rehearsals_do_not_lose(void **state)
{
	(void)state;
	for (int noise = 1; noise <= 2; noise++)
		for (int c = 0; c < 4; c++) {
			struct tally t = {0};
			struct ww_rng rng;
			double gain = 0;
			ww_rng_seed(&rng, 99);
			for (int k = 0; k < FLEETS; k++) {
				static struct noisy_fleet f;
				double equal, value;
				make_noisy_fleet(&rng, &f, 0.01 * noise);
				divide(&f, cuts[c], &equal, &value);
				count(&t, equal, value, NAN);
				gain += (value - equal) / FLEETS;
			}
			print_message("# model, %d %% noise %2.0f %%: mean gain %.4f\n", noise, 100 * cuts[c], gain);
			assert_true(gain > 0 || cuts[c] > 0.35);
			check_tally(&t, noise == 1 ? "model, 1 % noise" : "model, 2 % noise", cuts[c]);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_zeus_sets_gain),
		cmocka_unit_test(whole_emerald_sets_do_not_lose),
		cmocka_unit_test(shrink_falls_with_sigma),
		cmocka_unit_test(fleets_of_a40_jobs_do_not_lose),
		cmocka_unit_test(fleets_of_v100_jobs_do_not_lose),
		cmocka_unit_test(model_fleets_do_not_lose),
		cmocka_unit_test(noisy_rehearsals_do_not_lose),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
