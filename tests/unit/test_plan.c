/* SPDX-License-Identifier: Apache-2.0 */
/* From sweeps to caps: budgets and rows kept, the caps allowed kept, and the right reason for each job. */
#include "assert_near.h"
#include "core/core.h"

#include <string.h>

#define MOST 8
#define CAPS 6

/* Up to MOST jobs with a sweep of CAPS caps each, on up to two rows. */
struct site {
	size_t n;
	struct ww_plan_job job[MOST];
	struct ww_point point[MOST][CAPS];
	struct ww_row_share share[MOST][2];
	struct ww_alloc_row row[2];
	struct ww_plan_problem problem;
};

static struct site empty_site(double cut_frac)
{
	return (struct site){.problem = {.cut_frac = cut_frac, .budget_w = NAN, .noise_frac = 0.01}};
}

/* A job that draws its cap, up to draw_w, and loses loss (d / 0.3)^1.5 of 1000 tokens/s. */
static struct ww_plan_job *add(struct site *s, const char *name, double draw_w, double loss)
{
	static const double caps[CAPS] = {700, 600, 500, 400, 300, 200};
	size_t i = s->n++;
	for (size_t k = 0; k < CAPS; k++) {
		double power_w = fmin(caps[k], draw_w), d = (1 - power_w / draw_w) / 0.3;
		s->point[i][k] = (struct ww_point){.cap_w = caps[k],
		                                   .power_w = power_w,
		                                   .throughput = 1000 * (1 - loss * pow(d, 1.5)),
		                                   .power_se_w = NAN,
		                                   .throughput_se = NAN,
		                                   .throttle = -1};
	}
	s->job[i] = (struct ww_plan_job){
		.name = name, .n = CAPS, .gpus = 1, .tier = 3, .weight = 1, .min_w = NAN, .max_w = NAN};
	return &s->job[i];
}

static void place(struct site *s, size_t job, size_t row, double gpus)
{
	struct ww_plan_job *j = &s->job[job];
	s->share[job][j->n_rows++] = (struct ww_row_share){(uint32_t)row, gpus};
}

static void add_row(struct site *s, double budget_w)
{
	s->row[s->problem.n_rows++].budget_w = budget_w;
}

/* Sites are copied: pointers into one are set last. */
static void connect_all(struct site *s)
{
	for (size_t i = 0; i < s->n; i++) {
		s->job[i].points = s->point[i];
		s->job[i].rows = s->share[i];
	}
	s->problem.jobs = s->job;
	s->problem.n_jobs = s->n;
	s->problem.rows = s->row;
}

static ww_plan *plan(struct site *s)
{
	ww_plan *out = NULL;
	struct ww_error err = {0};
	connect_all(s);
	ww_status status = ww_plan_create(&s->problem, &out, &err);
	if (status)
		fail_msg("%s", err.text);
	return out;
}

struct answer {
	struct ww_plan_total total;
	struct ww_plan_share share[MOST];
	struct ww_plan_row row[3];
};

static struct answer answer(struct site *s)
{
	struct answer out;
	ww_plan *p = plan(s);
	out.total = ww_plan_total(p);
	memcpy(out.share, ww_plan_shares(p), s->n * sizeof out.share[0]);
	memcpy(out.row, ww_plan_rows(p), (s->problem.n_rows + 1) * sizeof out.row[0]);
	ww_plan_destroy(p);
	return out;
}

static double caps_w(const struct site *s, const struct answer *a)
{
	double sum = 0;
	for (size_t i = 0; i < s->n; i++)
		sum += s->job[i].gpus * a->share[i].cap_w;
	return sum;
}

static struct site two_kinds(double cut_frac)
{
	struct site s = empty_site(cut_frac);
	add(&s, "stiff", 700, 0.24);
	add(&s, "loose", 700, 0.06)->gpus = 4;
	add(&s, "small", 450, 0.12)->gpus = 2;
	return s;
}

/* ---- Budgets ---------------------------------------------------------------------------------------------------------- */

static void caps_keep_the_budget(void **state)
{
	(void)state;
	for (int percent = 0; percent <= 55; percent += 5) {
		struct site s = two_kinds(percent / 100.0);
		struct answer a = answer(&s);
		assert_near(a.total.baseline_w, 700 + 2800 + 900, 1e-9);
		assert_near(a.total.budget_w, (1 - percent / 100.0) * a.total.baseline_w, 1e-9);
		assert_true(caps_w(&s, &a) <= a.total.budget_w + 1e-6);
		assert_true(a.total.relative >= a.total.equal_relative - 1e-9);
	}
}

static void draws_keep_the_budget(void **state)
{
	(void)state;
	struct site s = two_kinds(0.3);
	s.problem.account = WW_ACCOUNT_DRAW;
	struct answer a = answer(&s);
	double draw_w = 0;
	for (size_t i = 0; i < s.n; i++) {
		draw_w += s.job[i].gpus * a.share[i].charge_w;
		assert_true(a.share[i].cap_w >= a.share[i].charge_w - 1e-9 && a.share[i].cap_w <= 700);
		assert_near(a.share[i].cut_frac, 1 - a.share[i].charge_w / a.share[i].p0_w, 1e-9);
	}
	assert_near(draw_w, a.total.budget_w, 1e-6);
}

static void a_large_budget_cuts_nobody(void **state)
{
	(void)state;
	struct site s = two_kinds(0);
	s.problem.budget_w = 1e6;
	struct answer a = answer(&s);
	assert_int_equal(a.total.outcome, WW_OUTCOME_UNCHANGED);
	assert_near(a.total.relative, 1, 0);
	for (size_t i = 0; i < s.n; i++) {
		assert_int_equal(a.share[i].limit, WW_PLAN_UNCUT);
		assert_near(a.share[i].cut_frac, 0, 0);
		assert_true(a.share[i].row == SIZE_MAX);
	}
	assert_near(a.share[2].cap_w, 500, 1e-9); /* the lowest cap that does not bind */
	assert_nan(a.row[0].tokens_per_w);
}

static void a_tiny_budget_names_the_watts(void **state)
{
	(void)state;
	struct site s = two_kinds(0);
	s.problem.budget_w = 1000;
	struct answer a = answer(&s);
	assert_int_equal(a.total.outcome, WW_OUTCOME_INFEASIBLE);
	assert_near(a.row[0].result.over_w, 400, 1e-6);
	assert_near(a.row[0].result.missing_w, 400, 1e-6);
	for (size_t i = 0; i < s.n; i++) {
		assert_near(a.share[i].cap_w, 200, 1e-9);
		assert_int_equal(a.share[i].limit, WW_PLAN_DEEPEST);
	}
}

static void more_gpus_than_measured_scale_the_throughput(void **state)
{
	(void)state;
	struct site s = empty_site(0.2);
	struct ww_plan_job *j = add(&s, "job", 700, 0.1);
	j->measured_gpus = 8;
	j->gpus = 24;
	struct answer a = answer(&s);
	assert_near(a.share[0].t0, 3000, 1e-6);
	assert_near(a.total.throughput, 3000 * a.share[0].throughput_frac, 1e-6);
	assert_near(a.share[0].cap_w, 560, 1e-6);
}

static void names_not_places_break_ties(void **state)
{
	(void)state;
	struct site s = empty_site(0.3), t = empty_site(0.3);
	const char *names[] = {"a", "b", "c", "d"};
	for (size_t i = 0; i < 4; i++) {
		add(&s, names[i], 700, 0.1 + 0.03 * (double)i);
		add(&t, names[3 - i], 700, 0.1 + 0.03 * (double)(3 - i));
	}
	struct answer a = answer(&s), b = answer(&t);
	for (size_t i = 0; i < 4; i++)
		assert_near(a.share[i].cap_w, b.share[3 - i].cap_w, 0);
}

/* ---- Caps that are allowed --------------------------------------------------------------------------------------------- */

static void no_cap_leaves_min_and_max(void **state)
{
	(void)state;
	for (int account = 0; account < 2; account++) {
		for (int percent = 0; percent <= 60; percent += 10) {
			struct site s = two_kinds(percent / 100.0);
			s.problem.account = (enum ww_account)account;
			s.job[0].max_w = 500;
			s.job[1].min_w = 350;
			s.job[2].min_w = 360;
			s.job[2].max_w = 430;
			struct answer a = answer(&s);
			assert_true(a.share[0].cap_w <= 500 + 1e-9);
			assert_true(a.share[1].cap_w >= 350 - 1e-9);
			assert_true(a.share[2].cap_w >= 360 - 1e-9 && a.share[2].cap_w <= 430 + 1e-9);
		}
	}
}

static void jobs_that_are_not_cut_keep_min_and_max_too(void **state)
{
	(void)state;
	for (int account = 0; account < 2; account++) {
		struct site s = empty_site(0.1);
		s.problem.account = (enum ww_account)account;
		add(&s, "flat", 150, 0)->min_w = 400;
		add(&s, "once", 700, 0.1)->n = 1;
		s.job[1].max_w = 450;
		add(&s, "high", 450, 0.1)->min_w = 600; /* above all that it draws */
		add(&s, "free", 700, 0.1);
		struct answer a = answer(&s);
		assert_near(a.share[0].cap_w, 400, 1e-9);
		assert_int_equal(a.share[0].limit, WW_PLAN_NOT_LIMITED);
		assert_near(a.share[1].cap_w, 450, 1e-9);
		assert_int_equal(a.share[1].limit, WW_PLAN_NOT_MEASURED);
		assert_near(a.share[2].cap_w, 600, 1e-9);
		assert_near(a.share[2].throughput_frac, 1, 0);
		assert_int_equal(a.share[2].limit, WW_PLAN_LOWEST);
	}
}

static void a_max_below_all_that_was_measured_is_obeyed(void **state)
{
	(void)state;
	for (int account = 0; account < 2; account++) {
		struct site s = empty_site(0);
		s.problem.account = (enum ww_account)account;
		add(&s, "held", 700, 0.1)->max_w = 150;
		struct answer a = answer(&s);
		assert_near(a.share[0].cap_w, 150, 1e-9);
		assert_int_equal(a.share[0].limit, WW_PLAN_HIGHEST);
		assert_near(a.share[0].cut_frac, 1 - 150.0 / 700, 1e-9);
	}
}

static void a_max_that_breaks_the_floor_is_infeasible(void **state)
{
	(void)state;
	struct site s = empty_site(0);
	struct ww_plan_job *j = add(&s, "held", 700, 0.2);
	j->floor_frac = 0.9;
	j->max_w = 400;
	struct answer a = answer(&s);
	assert_int_equal(a.total.outcome, WW_OUTCOME_INFEASIBLE);
	assert_int_equal(a.share[0].limit, WW_PLAN_HIGHEST);
	j->max_w = 600;
	assert_int_equal(answer(&s).total.outcome, WW_OUTCOME_OPTIMAL);
}

static void only_explore_goes_below_the_measured_caps(void **state)
{
	(void)state;
	struct site s = empty_site(0.8);
	add(&s, "job", 700, 0.05)->min_w = 100;
	struct answer kept = answer(&s);
	assert_near(kept.share[0].cap_w, 200, 1e-9);
	assert_int_equal(kept.share[0].limit, WW_PLAN_DEEPEST);
	s.problem.explore = true;
	struct answer deep = answer(&s);
	assert_near(deep.share[0].cap_w, 140, 1e-6);
	s.problem.cut_frac = 0.95;
	deep = answer(&s);
	assert_near(deep.share[0].cap_w, 100, 1e-9);
	assert_int_equal(deep.share[0].limit, WW_PLAN_LOWEST);
}

/* ---- Floors ------------------------------------------------------------------------------------------------------------- */

static void floors_end_a_cut(void **state)
{
	(void)state;
	struct site s = two_kinds(0.25);
	s.job[0].floor_frac = 1;
	s.job[1].floor_frac = 0.95;
	struct answer a = answer(&s);
	assert_int_equal(a.total.outcome, WW_OUTCOME_OPTIMAL);
	assert_int_equal(a.share[0].limit, WW_PLAN_FLOOR);
	assert_near(a.share[0].cut_frac, 0, 0);
	assert_int_equal(a.share[1].limit, WW_PLAN_FLOOR);
	assert_near(a.share[1].throughput_frac, 0.95, 1e-7);
}

static void the_lowest_promise_gives_way_first(void **state)
{
	(void)state;
	struct site s = empty_site(0.4);
	for (int i = 0; i < 4; i++) {
		struct ww_plan_job *j = add(&s, (const char *[]){"t0", "t1", "t2", "t3"}[i], 700, 0.2);
		j->tier = i;
		j->floor_frac = 0.9;
	}
	struct answer a = answer(&s);
	assert_int_equal(a.total.outcome, WW_OUTCOME_INFEASIBLE);
	assert_int_equal(a.share[0].limit, WW_PLAN_FLOOR);
	assert_int_equal(a.share[1].limit, WW_PLAN_FLOOR);
	assert_int_equal(a.share[2].limit, WW_PLAN_RELAXED);
	assert_int_equal(a.share[3].limit, WW_PLAN_RELAXED);
	assert_near(a.share[3].cap_w, 200, 1e-9);
	double floor_cut = a.share[0].cut_frac;
	assert_near(a.row[0].result.missing_w, 0.4 * 2800 - 4 * 700 * floor_cut, 1e-6);
	assert_near(a.row[0].result.over_w, 0, 0);
	assert_near(caps_w(&s, &a), a.total.budget_w, 1e-6);
}

/* ---- Rows --------------------------------------------------------------------------------------------------------------- */

static void rows_are_kept_and_named(void **state)
{
	(void)state;
	struct site s = two_kinds(0.05);
	add_row(&s, 5000);
	add_row(&s, 1900);
	for (size_t i = 0; i < 3; i++)
		place(&s, i, 0, s.job[i].gpus);
	place(&s, 1, 1, 2); /* half of its GPUs */
	place(&s, 2, 1, 2);
	struct answer a = answer(&s);
	assert_near(2 * a.share[1].cap_w + 2 * a.share[2].cap_w, 1900, 1e-5);
	assert_near(a.row[1].result.power_w, 1900, 1e-5);
	assert_true(a.row[1].full && !a.row[0].full);
	assert_int_equal(a.share[1].row, 1);
	assert_true(a.row[1].tokens_per_w > 0);
	assert_nan(a.row[0].tokens_per_w);
}

static void a_row_of_one_job_is_full_too(void **state)
{
	(void)state;
	struct site s = two_kinds(0.0);
	s.problem.budget_w = 1e5;
	add_row(&s, 450);
	place(&s, 0, 0, 1);
	struct answer a = answer(&s);
	assert_near(a.share[0].cap_w, 450, 1e-6);
	assert_int_equal(a.share[0].limit, WW_PLAN_PRICE);
	assert_int_equal(a.share[0].row, 0);
	assert_true(a.row[0].full);
	assert_true(a.row[0].tokens_per_w > 0);
	assert_int_equal(a.share[1].limit, WW_PLAN_UNCUT);
}

static void a_watt_more_brings_what_is_said(void **state)
{
	(void)state;
	struct site s = two_kinds(0.3);
	s.problem.objective = WW_OBJECTIVE_TOKENS;
	struct answer a = answer(&s);
	s.problem.budget_w = a.total.budget_w + 1;
	struct answer b = answer(&s);
	assert_near_rel(b.total.throughput - a.total.throughput, a.row[0].tokens_per_w, 0.02);
}

/* ---- Policies and objectives --------------------------------------------------------------------------------------------- */

static void the_equal_policy_stops_at_the_equal_cut(void **state)
{
	(void)state;
	struct site s = two_kinds(0.3);
	s.problem.equal = true;
	struct answer a = answer(&s);
	for (size_t i = 0; i < s.n; i++)
		assert_near(a.share[i].cut_frac, a.share[i].equal_cut_frac, 1e-9);
	assert_near(a.total.relative, a.total.equal_relative, 1e-12);
}

static void weights_move_watts(void **state)
{
	(void)state;
	struct site s = empty_site(0.3);
	add(&s, "light", 700, 0.1);
	add(&s, "heavy", 700, 0.13)->weight = 5;
	struct answer a = answer(&s);
	assert_true(a.share[1].cap_w > a.share[0].cap_w + 50);
	assert_near(a.total.relative, (a.share[0].throughput_frac + 5 * a.share[1].throughput_frac) / 6, 1e-9);
}

static void objectives_favour_what_they_say(void **state)
{
	(void)state;
	double least[4], tokens[4], relative[4];
	for (int i = 0; i < 4; i++) {
		struct site s = two_kinds(0.3);
		s.job[1].measured_gpus = 1; /* four times the tokens */
		s.problem.objective = (enum ww_objective)i;
		struct answer a = answer(&s);
		least[i] =
			fmin(a.share[0].throughput_frac, fmin(a.share[1].throughput_frac, a.share[2].throughput_frac));
		tokens[i] = a.total.throughput;
		relative[i] = a.total.relative;
	}
	for (int i = 0; i < 4; i++) {
		assert_true(relative[WW_OBJECTIVE_RELATIVE] >= relative[i] - 2e-3);
		assert_true(tokens[WW_OBJECTIVE_TOKENS] >= tokens[i] - 2);
		assert_true(least[WW_OBJECTIVE_MAXMIN] >= least[i] - 1e-6);
	}
}

/* ---- Mistakes -------------------------------------------------------------------------------------------------------------- */

static ww_status refused(struct site *s, char text[512])
{
	ww_plan *out = NULL;
	struct ww_error err = {0};
	connect_all(s);
	ww_status status = ww_plan_create(&s->problem, &out, &err);
	assert_null(out);
	memcpy(text, err.text, 512);
	return status;
}

/* The promise holds at the measured points, also where the convex curve runs above them. */
static void a_floor_is_kept_as_measured(void **state)
{
	(void)state;
	struct site s = two_kinds(0.4);
	s.point[1][3].throughput = 800; /* a dip at 400 W, less than at 500 W by far and hardly more than at 300 W */
	s.point[1][4].throughput = 790;
	s.job[1].floor_frac = 0.85;
	struct answer a = answer(&s);
	double t500 = s.point[1][2].throughput, at_500 = t500 / 1000;
	assert_true(a.share[1].cap_w >= 400 && a.share[1].cap_w <= 500);
	double measured = 0.8 + (at_500 - 0.8) * (a.share[1].cap_w - 400) / 100;
	assert_near(a.share[1].throughput_frac, measured, 1e-9);
	assert_true(measured >= 0.85 - 1e-9);
}

/* A board that draws 130 W under a cap of 100 W is charged 130 W, also where caps are counted. */
static void a_cap_that_is_not_held_counts_as_its_draw(void **state)
{
	(void)state;
	struct site s = two_kinds(0.57);
	for (size_t i = 0; i < s.n; i++)
		s.point[i][5].power_w = 260; /* under a cap of 200 W */
	struct answer a = answer(&s);
	double charged_w = 0;
	for (size_t i = 0; i < s.n; i++) {
		charged_w += s.job[i].gpus * a.share[i].charge_w;
		assert_true(a.share[i].charge_w >= a.share[i].cap_w - 1e-9);
		if (a.share[i].cap_w < 201)
			assert_near(a.share[i].charge_w, 260, 2);
	}
	assert_near(charged_w, a.total.power_w, 1e-6);
	assert_true(a.total.power_w <= a.total.budget_w * (1 + 1e-9));
	assert_true(caps_w(&s, &a) < a.total.power_w - 50);
	assert_true(a.total.draw_w <= a.total.power_w * (1 + 1e-9));
}

static void mistakes_are_named(void **state)
{
	(void)state;
	char text[512];
	struct site s = empty_site(0.3);
	assert_int_equal(refused(&s, text), WW_ERR_NO_DATA);
	s = two_kinds(1);
	assert_int_equal(refused(&s, text), WW_ERR_RANGE);
	s = two_kinds(NAN);
	assert_int_equal(refused(&s, text), WW_ERR_RANGE);
	s = two_kinds(0.3);
	s.job[1].n = 0;
	assert_int_equal(refused(&s, text), WW_ERR_NO_DATA);
	assert_non_null(strstr(text, "loose"));
	s = two_kinds(0.3);
	s.job[2].min_w = 400;
	s.job[2].max_w = 300;
	assert_int_equal(refused(&s, text), WW_ERR_RANGE);
	assert_non_null(strstr(text, "small"));
	s = two_kinds(0.3);
	s.job[2].min_w = 2200;
	assert_int_equal(refused(&s, text), WW_ERR_RANGE);
	assert_non_null(strstr(text, "highest cap measured, 700 W"));
	ww_plan_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(caps_keep_the_budget),
		cmocka_unit_test(draws_keep_the_budget),
		cmocka_unit_test(a_large_budget_cuts_nobody),
		cmocka_unit_test(a_tiny_budget_names_the_watts),
		cmocka_unit_test(more_gpus_than_measured_scale_the_throughput),
		cmocka_unit_test(names_not_places_break_ties),
		cmocka_unit_test(no_cap_leaves_min_and_max),
		cmocka_unit_test(jobs_that_are_not_cut_keep_min_and_max_too),
		cmocka_unit_test(a_max_below_all_that_was_measured_is_obeyed),
		cmocka_unit_test(a_max_that_breaks_the_floor_is_infeasible),
		cmocka_unit_test(only_explore_goes_below_the_measured_caps),
		cmocka_unit_test(floors_end_a_cut),
		cmocka_unit_test(the_lowest_promise_gives_way_first),
		cmocka_unit_test(rows_are_kept_and_named),
		cmocka_unit_test(a_row_of_one_job_is_full_too),
		cmocka_unit_test(a_watt_more_brings_what_is_said),
		cmocka_unit_test(the_equal_policy_stops_at_the_equal_cut),
		cmocka_unit_test(weights_move_watts),
		cmocka_unit_test(objectives_favour_what_they_say),
		cmocka_unit_test(a_floor_is_kept_as_measured),
		cmocka_unit_test(a_cap_that_is_not_held_counts_as_its_draw),
		cmocka_unit_test(mistakes_are_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
