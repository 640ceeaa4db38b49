/* SPDX-License-Identifier: Apache-2.0 */
/* Which jobs go when the lowest caps do not fit: the order of tiers, losses and ids, and what is refused. */
#include "assert_near.h"
#include "core/core.h"
#include "wrapped_memory.h"

#include <string.h>

#define MOST 8

struct site {
	struct ww_requeue_job job[MOST];
	struct ww_row_share share[MOST][3];
	double missing_w[3];
	size_t n, n_rows;
};

/* 8 GPUs that free 100 W each, on row 0. */
static struct ww_requeue_job *add(struct site *s, uint64_t id, int tier, double loss)
{
	struct ww_requeue_job *job = &s->job[s->n];
	s->share[s->n][0] = (struct ww_row_share){0, 8};
	*job = (struct ww_requeue_job){
		.id = id, .tier = tier, .allowed = true, .freed_w = 100, .loss = loss, .n_rows = 1};
	s->n++;
	s->n_rows = s->n_rows ? s->n_rows : 1;
	return job;
}

static void add_share(struct site *s, struct ww_requeue_job *job, uint32_t row, double gpus)
{
	s->share[job - s->job][job->n_rows++] = (struct ww_row_share){row, gpus};
	s->n_rows = row >= s->n_rows ? row + 1 : s->n_rows;
}

static ww_requeue *create(void)
{
	ww_requeue *q;
	assert_int_equal(ww_requeue_create(MOST, 3, 3 * MOST, &q, NULL), WW_OK);
	return q;
}

static ww_status choose(ww_requeue *q, struct site *s, struct ww_error *err)
{
	const struct ww_requeue_problem problem = {s->job, s->n, s->missing_w, s->n_rows};
	for (size_t i = 0; i < s->n; i++)
		s->job[i].rows = s->share[i];
	return ww_requeue_choose(q, &problem, err);
}

/* The ids that go, in the order of jobs, as "1 2 ". */
static void assert_goes(struct site *s, const char *ids)
{
	char text[256] = "";
	size_t used = 0;
	ww_requeue *q = create();
	assert_int_equal(choose(q, s, NULL), WW_OK);
	for (size_t i = 0; i < s->n; i++) {
		if (ww_requeue_taken(q)[i])
			used += (size_t)snprintf(text + used, sizeof text - used, "%llu ",
			                         (unsigned long long)s->job[i].id);
		assert_true(used < sizeof text);
	}
	assert_string_equal(text, ids);
	assert_true(ww_requeue_result(q).exact);
	ww_requeue_destroy(q);
}

static void nothing_missing_takes_nothing(void **state)
{
	struct site s = {0};
	(void)state;
	assert_goes(&s, "");
	add(&s, 1, 3, 0);
	assert_goes(&s, "");
	s.missing_w[0] = -500;
	assert_goes(&s, "");
}

static void least_loss_that_covers(void **state)
{
	struct site s = {.missing_w = {800}};
	(void)state;
	add(&s, 1, 3, 3);
	add(&s, 2, 3, 1);
	add(&s, 3, 3, 2);
	assert_goes(&s, "2 ");
	s.missing_w[0] = 800.5;
	assert_goes(&s, "2 3 ");
	s.job[0].freed_w = 200; /* one for 3 is as dear as two for 1 and 2, but is one */
	assert_goes(&s, "1 ");
}

static void higher_tiers_only_for_what_lower_ones_lack(void **state)
{
	struct site s = {.missing_w = {1600}};
	(void)state;
	add(&s, 1, 0, 0);
	add(&s, 2, 2, 1);
	add(&s, 3, 3, 90);
	add(&s, 4, 3, 100);
	assert_goes(&s, "3 4 ");
	s.missing_w[0] = 1700;
	assert_goes(&s, "2 3 4 ");
	s.job[1].freed_w = 1000; /* now it does it alone */
	assert_goes(&s, "2 ");
	s.job[1].allowed = false;
	assert_goes(&s, "1 3 4 ");
}

/* Row 1 needs a job of tier 2; row 0 has enough of tier 3, though dearer. */
static void tiers_are_kept_row_by_row(void **state)
{
	struct site s = {.missing_w = {800, 400}};
	(void)state;
	add(&s, 1, 3, 50);
	add(&s, 2, 2, 1);
	add(&s, 3, 2, 2)->n_rows = 0;
	add_share(&s, &s.job[2], 1, 4);
	assert_goes(&s, "1 3 ");
}

static void one_job_for_two_rows(void **state)
{
	struct site s = {.missing_w = {400, 400}};
	(void)state;
	add(&s, 1, 3, 2);
	add(&s, 2, 3, 2)->n_rows = 0;
	add_share(&s, &s.job[1], 1, 8);
	add(&s, 3, 3, 3)->n_rows = 0;
	add_share(&s, &s.job[2], 0, 4);
	add_share(&s, &s.job[2], 1, 4);
	assert_goes(&s, "3 ");
	s.job[2].loss = 5;
	assert_goes(&s, "1 2 ");
}

static void ties_go_by_id(void **state)
{
	struct site s = {.missing_w = {1000}};
	(void)state;
	add(&s, 9, 3, 1);
	add(&s, 4, 3, 1);
	add(&s, 7, 3, 1);
	assert_goes(&s, "4 7 ");
	/* of equal losses in tier 2 the choice that spares tier 3, whatever its id */
	s.job[1].tier = s.job[2].tier = 2;
	s.job[2].freed_w = 200;
	assert_goes(&s, "7 ");
}

static void what_cannot_be_covered_is_told(void **state)
{
	struct site s = {.missing_w = {2000, 50}};
	ww_requeue *q = create();
	(void)state;
	add(&s, 1, 3, 2);
	add(&s, 2, 0, 2);
	add(&s, 3, 3, 2)->allowed = false;
	add(&s, 4, 3, 2)->n_rows = 0;
	add(&s, 5, 3, 2)->freed_w = 0;
	s.n_rows = 2;
	assert_int_equal(choose(q, &s, NULL), WW_OK);
	assert_near(ww_requeue_left_w(q)[0], 400, 0);
	assert_near(ww_requeue_left_w(q)[1], 50, 0);
	struct ww_requeue_total total = ww_requeue_result(q);
	assert_int_equal(total.n_taken, 2);
	assert_int_equal(total.n_left, 2);
	assert_near(total.loss, 4, 0);
	for (size_t i = 0; i < s.n; i++)
		assert_int_equal(ww_requeue_taken(q)[i], i < 2);
	ww_requeue_destroy(q);
}

/* ---- What is refused ---------------------------------------------------------------------------------------------------- */

static void assert_refused(struct site *s, ww_status expected, const char *text)
{
	struct site good = {.missing_w = {800}};
	struct ww_error err = {WW_OK, ""};
	ww_requeue *q = create();
	add(&good, 1, 3, 2);
	add(&good, 2, 3, 1);
	assert_int_equal(choose(q, &good, NULL), WW_OK);
	assert_int_equal(choose(q, s, &err), expected);
	assert_int_equal(err.code, expected);
	if (!strstr(err.text, text))
		print_error("\"%s\" does not say \"%s\"\n", err.text, text);
	assert_non_null(strstr(err.text, text));
	assert_null(strchr(err.text, '\n'));
	assert_false(ww_requeue_taken(q)[0]);
	assert_true(ww_requeue_taken(q)[1]);
	assert_int_equal(ww_requeue_result(q).n_taken, 1);
	ww_requeue_destroy(q);
}

static struct site two(void)
{
	struct site s = {.missing_w = {800}};
	add(&s, 1, 3, 2);
	add(&s, 77, 3, 1);
	return s;
}

static void bad_numbers_are_refused(void **state)
{
	static const double bad[] = {-1, NAN, INFINITY, -INFINITY, 1e300};
	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct site s = two();
		s.job[1].freed_w = bad[i];
		assert_refused(&s, WW_ERR_RANGE, "job 77: freed_w");
		s = two();
		s.job[1].loss = bad[i];
		assert_refused(&s, WW_ERR_RANGE, "job 77: loss");
		s = two();
		s.share[1][0].gpus = bad[i];
		assert_refused(&s, WW_ERR_RANGE, "job 77: its gpus");
		s = two();
		s.missing_w[0] = bad[i];
		if (i > 0)
			assert_refused(&s, WW_ERR_RANGE, "row 0: missing_w");
	}
}

static void bad_jobs_are_refused(void **state)
{
	(void)state;
	struct site s = two();
	s.job[1].tier = 4;
	assert_refused(&s, WW_ERR_RANGE, "job 77: tier is 4");
	s.job[1].tier = -1;
	assert_refused(&s, WW_ERR_RANGE, "job 77: tier is -1");
	s = two();
	s.share[1][0].row = 1;
	assert_refused(&s, WW_ERR_RANGE, "job 77");
	s = two();
	s.job[0].id = 77;
	assert_refused(&s, WW_ERR_INVALID, "job 77 is there twice");
	s = two();
	add_share(&s, &s.job[1], 0, 1);
	assert_refused(&s, WW_ERR_INVALID, "job 77: names row 0 twice");
	s = two();
	s.job[1].n_rows = 3 * MOST;
	assert_refused(&s, WW_ERR_INVALID, "more than there was room");
	s = two();
	s.n_rows = 4;
	assert_refused(&s, WW_ERR_INVALID, "more than there was room");
}

static void no_memory_for_the_room(void **state)
{
	ww_requeue *q = NULL;
	struct ww_error err;
	ww_status status = WW_ERR_NOMEM;
	(void)state;
	for (unsigned long n = 1; status; n++) {
		until_failure = n;
		armed = true;
		status = ww_requeue_create(MOST, 3, 3 * MOST, &q, &err);
		armed = false;
		assert_true(n < 100);
		if (status) {
			assert_int_equal(status, WW_ERR_NOMEM);
			assert_null(q);
		}
	}
	ww_requeue_destroy(q);
	ww_requeue_destroy(NULL);
	assert_int_equal(ww_requeue_create(100001, 1, 1, &q, &err), WW_ERR_RANGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_missing_takes_nothing),
		cmocka_unit_test(least_loss_that_covers),
		cmocka_unit_test(higher_tiers_only_for_what_lower_ones_lack),
		cmocka_unit_test(tiers_are_kept_row_by_row),
		cmocka_unit_test(one_job_for_two_rows),
		cmocka_unit_test(ties_go_by_id),
		cmocka_unit_test(what_cannot_be_covered_is_told),
		cmocka_unit_test(bad_numbers_are_refused),
		cmocka_unit_test(bad_jobs_are_refused),
		cmocka_unit_test(no_memory_for_the_room),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
