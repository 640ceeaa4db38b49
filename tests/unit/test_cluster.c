/* SPDX-License-Identifier: Apache-2.0 */
/* What the reader of cluster files reads, and where loads go. */
#include "assert_near.h"
#include "cluster_text.h"

#include <string.h>

static struct ww_cluster read_good(const char *text)
{
	struct ww_cluster cluster;
	struct ww_error err;
	if (parse(text, strlen(text), &cluster, &err) != WW_OK)
		fail_msg("%s", err.text);
	assert_string_equal(cluster.file, "t.yaml");
	return cluster;
}

struct load {
	const char *row;
	double gpus;
};

/* The loads of a job by the names of their rows, in the order of the rows. */
static void check_loads(const struct ww_cluster *c, size_t job, const struct load *loads, size_t n)
{
	const struct ww_cluster_job *j = &c->jobs[job];
	assert_int_equal(j->n_loads, n);
	for (size_t i = 0; i < n; i++) {
		assert_string_equal(c->rows[j->loads[i].row].name, loads[i].row);
		assert_near(j->loads[i].gpus, loads[i].gpus, 1e-9);
		assert_true(i == 0 || j->loads[i].row > j->loads[i - 1].row);
	}
}

#define CHECK_LOADS(cluster, job, ...)                                                                                 \
	do {                                                                                                           \
		const struct load loads_[] = {__VA_ARGS__};                                                            \
		check_loads(cluster, job, loads_, sizeof loads_ / sizeof loads_[0]);                                   \
	} while (0)

static void everything_is_read(void **state)
{
	struct ww_cluster c = read_good("# wattweir cluster 1\n"
	                                "rows:\n"
	                                "  - name: site\n"
	                                "    limit: 60 kW\n"
	                                "    fixed: 4 kW\n"
	                                "  - name: feed-a\n"
	                                "    limit: 0.032 MW\n"
	                                "    on: site\n"
	                                "  - {name: feed-b, limit: 32000W, on: [site]}\n"
	                                "  - name: rack-1\n"
	                                "    limit: 14 kW\n"
	                                "    on:\n"
	                                "      - {row: feed-a, part: 50%}\n"
	                                "      - {row: feed-b, part: 50%}\n"
	                                "  - {name: rack-2, limit: 14.5 kW, on: feed-a}\n"
	                                "jobs:\n"
	                                "  - job: llama-8b-pretrain\n"
	                                "    sweep: llama\n"
	                                "    gpus: 64\n"
	                                "    tier: 2\n"
	                                "    floor: 80%\n"
	                                "    weight: 1.5\n"
	                                "    min: 200 W\n"
	                                "    max: 0.7 kW\n"
	                                "    on:\n"
	                                "      - {row: rack-1, gpus: 40}\n"
	                                "      - {row: rack-2, gpus: 24}\n"
	                                "  - {job: small, gpus: 1, on: rack-2}\n");
	const struct ww_cluster_job *j = &c.jobs[0];
	(void)state;
	assert_int_equal(c.n_rows, 5);
	assert_string_equal(c.rows[3].name, "rack-1");
	assert_near(c.rows[0].limit_w, 60000, 0);
	assert_near(c.rows[0].fixed_w, 4000, 0);
	assert_near(c.rows[1].limit_w, 32000, 0);
	assert_near(c.rows[1].fixed_w, 0, 0);
	assert_near(c.rows[2].limit_w, 32000, 0);
	assert_near(c.rows[4].limit_w, 14500, 0);
	assert_int_equal(c.rows[0].line, 3);
	assert_int_equal(c.rows[4].line, 15);
	assert_int_equal(c.n_jobs, 2);
	assert_string_equal(j->name, "llama-8b-pretrain");
	assert_string_equal(j->sweep, "llama");
	assert_int_equal(j->gpus, 64);
	assert_int_equal(j->tier, 2);
	assert_near(j->floor_frac, 0.8, 0);
	assert_near(j->weight, 1.5, 0);
	assert_near(j->min_w, 200, 0);
	assert_near(j->max_w, 700, 0);
	assert_int_equal(j->line, 17);
	CHECK_LOADS(&c, 0, {"site", 64}, {"feed-a", 44}, {"feed-b", 20}, {"rack-1", 40}, {"rack-2", 24});
	CHECK_LOADS(&c, 1, {"site", 1}, {"feed-a", 1}, {"rack-2", 1});
	ww_cluster_finish(&c);
	ww_cluster_finish(&c);
	ww_cluster_finish(NULL);
}

/* What is not given is what the manual says, never 0 watts. */
static void absent_keys_have_their_meaning(void **state)
{
	struct ww_cluster c = read_good(SITE "jobs:\n"
	                                     "  - {job: a, gpus: 8, on: site}\n"
	                                     "  - {job: b, gpus: 8, on: site, tier: 0}\n"
	                                     "  - {job: c, gpus: 8, on: site, tier: 1}\n"
	                                     "  - {job: d, gpus: 8, on: site, tier: 2}\n"
	                                     "  - {job: e, gpus: 8, on: site, tier: 3}\n"
	                                     "  - {job: f, gpus: 8, on: site, floor: 60%}\n"
	                                     "  - {job: g, gpus: 8, on: site, tier: 0, floor: 0%}\n"
	                                     "  - {job: h, gpus: 8, on: site, min: 150 W}\n");
	static const struct {
		int tier;
		double floor_frac;
	} expected[] = {{3, 0}, {0, 1}, {1, 0.9}, {2, 0.75}, {3, 0.5}, {3, 0.6}, {0, 0}, {3, 0}};
	(void)state;
	for (size_t i = 0; i < 8; i++) {
		assert_int_equal(c.jobs[i].tier, expected[i].tier);
		assert_near(c.jobs[i].floor_frac, expected[i].floor_frac, 0);
		assert_near(c.jobs[i].weight, 1, 0);
		assert_nan(c.jobs[i].max_w);
		assert_string_equal(c.jobs[i].sweep, c.jobs[i].name);
	}
	assert_nan(c.jobs[0].min_w);
	assert_near(c.jobs[7].min_w, 150, 0);
	ww_cluster_finish(&c);
}

static void rows_may_be_left_out(void **state)
{
	struct ww_cluster c = read_good("jobs: [{job: a, gpus: 8}, {job: b, gpus: 2147483648}]\n");
	(void)state;
	assert_int_equal(c.n_rows, 0);
	assert_null(c.rows);
	assert_int_equal(c.n_jobs, 2);
	assert_null(c.jobs[0].loads);
	assert_int_equal(c.jobs[0].n_loads, 0);
	assert_true(c.jobs[1].gpus == 2147483648u);
	ww_cluster_finish(&c);
}

static void order_does_not_matter(void **state)
{
	struct ww_cluster c = read_good("jobs:\n"
	                                "  - on: rack\n"
	                                "    gpus: 8\n"
	                                "    job: a\n"
	                                "rows:\n"
	                                "  - {on: feed, limit: 1 kW, name: rack}\n"
	                                "  - {on: site, limit: 2 kW, name: feed}\n"
	                                "  - {limit: 3 kW, name: site}\n");
	(void)state;
	CHECK_LOADS(&c, 0, {"rack", 8}, {"feed", 8}, {"site", 8});
	ww_cluster_finish(&c);
}

/* YAML 1.1 would make numbers, truth values and dates of these. */
static void names_stay_text(void **state)
{
	struct ww_cluster c = read_good("rows:\n"
	                                "  - {name: no, limit: 1 kW}\n"
	                                "  - {name: 010, limit: 1 kW, on: no}\n"
	                                "  - {name: 1e3, limit: 1 kW, on: 010}\n"
	                                "  - {name: 'null', limit: 1 kW, on: \"1e3\"}\n"
	                                "  - {name: 2025-01-01, limit: 1 kW, on: 'null'}\n"
	                                "jobs:\n"
	                                "  - {job: \"gr\xC3\xB6\xC3\x9F\x65 \\u20AC\", gpus: 8, on: 2025-01-01}\n"
	                                "  - job: two\n"
	                                "      lines\n"
	                                "    gpus: 8\n"
	                                "    on: [1e3]\n");
	(void)state;
	CHECK_LOADS(&c, 0, {"no", 8}, {"010", 8}, {"1e3", 8}, {"null", 8}, {"2025-01-01", 8});
	assert_string_equal(c.jobs[0].name, "gr\xC3\xB6\xC3\x9F\x65 \xE2\x82\xAC");
	assert_string_equal(c.jobs[1].name, "two lines");
	ww_cluster_finish(&c);
}

static void harmless_differences_are_read(void **state)
{
	static const char *const texts[] = {
		SITE JOB,
		"\xEF\xBB\xBF" SITE JOB,
		"---\n" SITE JOB "...\n",
		"%YAML 1.1\n---\n" SITE JOB,
		"# wattweir cluster 1\n" SITE JOB,
		"# wattweir cluster 1 of the lab\r\n" SITE JOB,
		"\n# any\n#wattweir\n# wattweir runs 2 sites\n# wattweir cluster\n" SITE JOB "# end",
		"rows: [{name: site, limit: 60 kW}]\njobs: [{job: a, gpus: 8, on: site}]",
		"{rows: [{name: site, limit: 60 kW}], jobs: [{job: a, gpus: 8, on: [{row: site}]}]}\n",
		"rows:\r\n  - name: site\r\n    limit: 60 kW\r\njobs:\r\n  - job: a\r\n    gpus: 8\r\n    on: site\r\n",
		"rows:\n- name: site\n  limit: 60 kW # or less\njobs:\n- job: a\n  gpus: '8'\n  on:\tsite\n",
		"\"rows\":\n  - name: 'site'\n    limit: \" 60  kW \"\njobs:\n  - job: a\n    gpus: 8\n    on: >-\n    "
		"  site\n",
		"{\"rows\": [{\"name\": \"site\", \"limit\": \"60 kW\"}],\n"
		" \"jobs\": [{\"job\": \"a\", \"gpus\": 8, \"on\": [{\"row\": \"site\", \"gpus\": 8}]}]}\n",
	};
	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		struct ww_cluster c = read_good(texts[i]);
		assert_int_equal(c.n_rows, 1);
		assert_near(c.rows[0].limit_w, 60000, 0);
		assert_string_equal(c.jobs[0].name, "a");
		CHECK_LOADS(&c, 0, {"site", 8});
		ww_cluster_finish(&c);
	}
}

/* ---- Loads ------------------------------------------------------------------------------------------------------- */

#define DIAMOND(a, b)                                                                                                  \
	"rows:\n"                                                                                                      \
	"  - {name: site, limit: 9 kW}\n"                                                                              \
	"  - {name: a, limit: 9 kW, on: site}\n"                                                                       \
	"  - {name: b, limit: 9 kW, on: site}\n"                                                                       \
	"  - {name: pdu, limit: 9 kW, on: [{row: a, part: " a "}, {row: b, part: " b "}]}\n"                           \
	"  - {name: rack, limit: 9 kW, on: pdu}\n"                                                                     \
	"jobs: [{job: j, gpus: 10, on: rack}]\n"

static void paths_add_up(void **state)
{
	struct ww_cluster c = read_good(DIAMOND("30%", "70%"));
	(void)state;
	CHECK_LOADS(&c, 0, {"site", 10}, {"a", 3}, {"b", 7}, {"pdu", 10}, {"rack", 10});
	ww_cluster_finish(&c);

	c = read_good(SITE "  - {name: a, limit: 1 kW, on: site}\n"
	                   "  - {name: r, limit: 1 kW, on: [{row: a, part: 25%}, {row: site, part: 75%}]}\n"
	                   "jobs: [{job: j, gpus: 8, on: [{row: r, gpus: 4}, {row: a, gpus: 4}]}]\n");
	CHECK_LOADS(&c, 0, {"site", 8}, {"a", 5}, {"r", 4});
	ww_cluster_finish(&c);
}

/* Where either feed can carry all, each is loaded in full and the site once. */
static void nothing_counts_more_than_once(void **state)
{
	struct ww_cluster c = read_good(DIAMOND("100%", "100%"));
	(void)state;
	CHECK_LOADS(&c, 0, {"site", 10}, {"a", 10}, {"b", 10}, {"pdu", 10}, {"rack", 10});
	ww_cluster_finish(&c);
	c = read_good(DIAMOND("100%", "20%"));
	CHECK_LOADS(&c, 0, {"site", 10}, {"a", 10}, {"b", 2}, {"pdu", 10}, {"rack", 10});
	ww_cluster_finish(&c);
}

/* A third of a third and so on never makes more GPUs than there are. */
static void rounding_adds_no_gpus(void **state)
{
	struct ww_cluster c = read_good("rows:\n"
	                                "  - {name: top, limit: 9 kW}\n"
	                                "  - {name: a, limit: 9 kW, on: top}\n"
	                                "  - {name: b, limit: 9 kW, on: top}\n"
	                                "  - {name: c, limit: 9 kW, on: top}\n"
	                                "  - {name: r, limit: 9 kW, on: [{row: a, part: 33.3%},\n"
	                                "      {row: b, part: 33.3%}, {row: c, part: 33.4%}]}\n"
	                                "jobs: [{job: j, gpus: 7, on: r}]\n");
	(void)state;
	CHECK_LOADS(&c, 0, {"top", 7}, {"a", 2.331}, {"b", 2.331}, {"c", 2.338}, {"r", 7});
	assert_true(c.jobs[0].loads[0].gpus <= 7);
	ww_cluster_finish(&c);
}

static void fixed_power_is_summed(void **state)
{
	struct ww_cluster c = read_good("rows:\n"
	                                "  - {name: site, limit: 9 kW}\n"
	                                "  - {name: a, limit: 9 kW, on: site}\n"
	                                "  - {name: b, limit: 9 kW, on: site, fixed: 3 kW}\n"
	                                "  - {name: r1, limit: 2 kW, fixed: 2 kW,\n"
	                                "     on: [{row: a, part: 50%}, {row: b, part: 50%}]}\n"
	                                "  - {name: r2, limit: 9 kW, fixed: 0.5 kW, on: a}\n"
	                                "  - {name: r3, limit: 9 kW, on: a}\n"
	                                "jobs: [{job: j, gpus: 8, on: r1}]\n");
	static const double expected_w[] = {4500, 1500, 3000, 2000, 500, 0};
	(void)state;
	for (size_t i = 0; i < 6; i++)
		assert_near(c.rows[i].fixed_w, expected_w[i], 1e-9);
	ww_cluster_finish(&c);

	/* Also fixed power counts once where either feed can carry all. */
	c = read_good("rows:\n"
	              "  - {name: site, limit: 9 kW}\n"
	              "  - {name: a, limit: 9 kW, on: site}\n"
	              "  - {name: b, limit: 9 kW, on: site}\n"
	              "  - {name: r, limit: 9 kW, fixed: 2 kW, on: [{row: a, part: 100%}, {row: b, part: 100%}]}\n"
	              "jobs: [{job: j, gpus: 8, on: r}]\n");
	for (size_t i = 0; i < 4; i++)
		assert_near(c.rows[i].fixed_w, 2000, 1e-9);
	ww_cluster_finish(&c);
}

/* 3 levels, 2000 racks and jobs, against loads summed here. */
static void large_clusters_are_read(void **state)
{
	enum { FEEDS = 20, RACKS = 2000 };
	static char text[400000];
	size_t used = (size_t)snprintf(text, sizeof text, "rows:\n  - {name: site, limit: 9 MW}\n");
	(void)state;
	for (int i = 0; i < FEEDS; i++)
		used += (size_t)snprintf(text + used, sizeof text - used, "  - {name: f%d, limit: 9 MW, on: site}\n",
		                         i);
	for (int i = 0; i < RACKS; i++)
		used += (size_t)snprintf(
			text + used, sizeof text - used,
			"  - {name: r%d, limit: 9 kW, on: [{row: f%d, part: 50%%}, {row: f%d, part: 50%%}]}\n", i,
			i % FEEDS, (i + 1) % FEEDS);
	used += (size_t)snprintf(text + used, sizeof text - used, "jobs:\n");
	for (int i = 0; i < RACKS; i++)
		used += (size_t)snprintf(text + used, sizeof text - used,
		                         "  - {job: j%d, gpus: 16, on: [{row: r%d, gpus: 12}, {row: r%d, gpus: 4}]}\n",
		                         i, i, (i + FEEDS) % RACKS);
	assert_true(used < sizeof text - 1);
	struct ww_cluster c = read_good(text);
	assert_int_equal(c.n_rows, 1 + FEEDS + RACKS);
	assert_int_equal(c.n_jobs, RACKS);
	for (size_t i = 0; i < RACKS; i++) {
		double feeds = 0, racks = 0;
		assert_int_equal(c.jobs[i].n_loads, 5);
		assert_near(c.jobs[i].loads[0].gpus, 16, 0);
		for (size_t k = 1; k < 5; k++)
			*(c.jobs[i].loads[k].row <= FEEDS ? &feeds : &racks) += c.jobs[i].loads[k].gpus;
		assert_near(feeds, 16, 1e-9);
		assert_near(racks, 16, 0);
	}
	ww_cluster_finish(&c);
}

/* ---- Files ------------------------------------------------------------------------------------------------------- */

/* The shipped example names jobs of the shipped sweep, all of them. */
static void example_fits_its_sweep(void **state)
{
	struct ww_cluster c;
	struct ww_sweep s;
	struct ww_error err;
	unsigned gpus = 0;
	(void)state;
	if (ww_sweep_read(source_path("examples/sample-sweep.csv"), NULL, &s, &err) != WW_OK)
		fail_msg("%s", err.text);
	if (ww_cluster_read(source_path("examples/cluster.yaml"), &c, &err) != WW_OK)
		fail_msg("%s", err.text);
	assert_int_equal(c.n_rows, 7);
	for (size_t g = 0; g < s.n_groups; g++) {
		size_t users = 0;
		for (size_t i = 0; i < c.n_jobs; i++)
			users += strcmp(c.jobs[i].sweep, s.groups[g].name) == 0;
		assert_int_equal(users, 1);
	}
	for (size_t i = 0; i < c.n_jobs; i++)
		gpus += c.jobs[i].gpus;
	assert_int_equal(c.n_jobs, s.n_groups);
	assert_in_range(gpus, 96, 128);
	ww_cluster_finish(&c);
	ww_sweep_finish(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_is_read),
		cmocka_unit_test(absent_keys_have_their_meaning),
		cmocka_unit_test(rows_may_be_left_out),
		cmocka_unit_test(order_does_not_matter),
		cmocka_unit_test(names_stay_text),
		cmocka_unit_test(harmless_differences_are_read),
		cmocka_unit_test(paths_add_up),
		cmocka_unit_test(nothing_counts_more_than_once),
		cmocka_unit_test(rounding_adds_no_gpus),
		cmocka_unit_test(fixed_power_is_summed),
		cmocka_unit_test(large_clusters_are_read),
		cmocka_unit_test(example_fits_its_sweep),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
