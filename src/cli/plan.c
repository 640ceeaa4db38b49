/* SPDX-License-Identifier: Apache-2.0 */
/* wattweir plan: caps per job for one power budget, with the reason for each. */
#include "cli/cli_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define REASON 700 /* bytes; a row's name may take 512 of them */

/* Everything a plan is made of and made into. */
struct report {
	const struct ww_plan_args *args;
	const struct ww_sweep_file *file;
	struct ww_cluster cluster;
	struct ww_plan_problem problem;
	struct ww_plan_job *jobs;
	struct ww_alloc_row *rows;
	ww_plan *plan;
	struct ww_plan_total total;
};

/* ---- From files to a problem ---------------------------------------------------------------------------------------- */

static const struct ww_sweep_group *find_group(const struct report *r, const char *name, size_t *at)
{
	for (size_t i = 0; i < r->file->n_jobs; i++) {
		if (strcmp(r->file->sweep.groups[i].name, name) == 0) {
			*at = i;
			return &r->file->sweep.groups[i];
		}
	}
	return NULL;
}

/* "nearest: 'gpt-j'", or some of the groups. */
static void complain_no_group(const struct report *r, const struct ww_cluster_job *in)
{
	struct ww_near near = {.wanted = in->sweep};
	char listed[700] = "", own[600] = "this name";
	for (size_t i = 0; i < r->file->n_jobs; i++)
		ww_near_add(&near, r->file->sweep.groups[i].name);
	size_t n = near.n > 0 ? 1 : near.n_all < WW_NEAR_MAX ? near.n_all : WW_NEAR_MAX;
	for (size_t i = 0, at = 0; i < n; i++) {
		char *name = ww_text_clean(near.n > 0 ? near.names[i] : near.first[i], 100);
		at += (size_t)snprintf(listed + at, sizeof(listed) - at, "%s'%.200s'", at ? ", " : "", name);
		free(name);
	}
	if (strcmp(in->name, in->sweep) != 0)
		snprintf(own, sizeof(own), "the name '%s'", in->sweep);
	ww_complain(r->args->sweep.who,
	            "%s: line %zu: job '%s': no group of %s has %s; %s: %s%s; or write sweep: GROUP",
	            r->args->cluster_path, in->line, in->name, r->file->name, own,
	            near.n > 0 ? "nearest" : "its groups", listed, n < near.n_all && near.n == 0 ? " ..." : "");
}

static bool job_from_cluster(struct report *r, const struct ww_cluster_job *in, struct ww_plan_job *out)
{
	size_t at = 0;
	const struct ww_sweep_group *group = find_group(r, in->sweep, &at);
	if (!group) {
		complain_no_group(r, in);
		return false;
	}
	*out = (struct ww_plan_job){.name = in->name,
	                            .points = r->file->jobs[at].points,
	                            .n = r->file->jobs[at].n,
	                            .measured_gpus = group->gpus,
	                            .gpus = in->gpus,
	                            .tier = in->tier,
	                            .floor_frac = in->floor_frac,
	                            .weight = in->weight,
	                            .min_w = in->min_w,
	                            .max_w = in->max_w,
	                            .rows = in->loads,
	                            .n_rows = (uint32_t)in->n_loads};
	return true;
}

static bool jobs_from_cluster(struct report *r)
{
	r->problem.n_jobs = r->cluster.n_jobs;
	r->jobs = ww_cli_alloc(r->cluster.n_jobs, sizeof(*r->jobs));
	r->rows = ww_cli_alloc(r->cluster.n_rows, sizeof(*r->rows));
	for (size_t i = 0; i < r->cluster.n_jobs; i++)
		if (!job_from_cluster(r, &r->cluster.jobs[i], &r->jobs[i]))
			return false;
	for (size_t i = 0; i < r->cluster.n_rows; i++)
		r->rows[i].budget_w = r->cluster.rows[i].limit_w - r->cluster.rows[i].fixed_w;
	r->problem.n_rows = r->cluster.n_rows;
	return true;
}

static void jobs_from_sweep(struct report *r)
{
	r->problem.n_jobs = r->file->n_jobs;
	r->jobs = ww_cli_alloc(r->file->n_jobs, sizeof(*r->jobs));
	for (size_t i = 0; i < r->file->n_jobs; i++) {
		const struct ww_sweep_group *group = &r->file->sweep.groups[i];
		r->jobs[i] = (struct ww_plan_job){.name = group->name,
		                                  .points = r->file->jobs[i].points,
		                                  .n = r->file->jobs[i].n,
		                                  .measured_gpus = group->gpus,
		                                  .gpus = group->gpus ? group->gpus : 1,
		                                  .tier = 3,
		                                  .weight = 1,
		                                  .min_w = NAN,
		                                  .max_w = NAN};
	}
}

static bool make_problem(struct report *r)
{
	const struct ww_plan_args *args = r->args;
	struct ww_error err = {0};
	if (args->cluster_path) {
		if (ww_cluster_read(args->cluster_path, &r->cluster, &err) != WW_OK) {
			ww_complain(args->sweep.who, "%s", err.text);
			return false;
		}
		if (!jobs_from_cluster(r))
			return false;
	} else {
		jobs_from_sweep(r);
	}
	r->problem.jobs = r->jobs;
	r->problem.rows = r->rows;
	r->problem.budget_w = args->budget_w;
	r->problem.cut_frac = args->cut_frac;
	r->problem.objective = args->objective;
	r->problem.account = args->account;
	r->problem.explore = args->explore;
	r->problem.equal = args->equal;
	r->problem.noise_frac = args->sweep.noise_frac;
	return true;
}

static bool make_plan(struct report *r)
{
	struct ww_error err = {0};
	if (!make_problem(r))
		return false;
	if (ww_plan_create(&r->problem, &r->plan, &err) != WW_OK) {
		ww_complain(r->args->sweep.who, "%s: %s", r->args->cluster_path ? r->args->cluster_path : r->file->name,
		            err.text);
		return false;
	}
	r->total = ww_plan_total(r->plan);
	return true;
}

static void finish_report(struct report *r)
{
	ww_plan_destroy(r->plan);
	free(r->jobs);
	free(r->rows);
	ww_cluster_finish(&r->cluster);
}

/* ---- Words -------------------------------------------------------------------------------------------------------------- */

static const char *policy_name(const struct report *r)
{
	return r->args->equal ? "equal" : "curve";
}

/* Of what the jobs draw without caps; negative when the budget is larger. */
static double planned_cut(const struct report *r)
{
	return 1 - r->total.budget_w / r->total.baseline_w;
}

static const char *row_name(const struct report *r, size_t row)
{
	return row < r->problem.n_rows ? r->cluster.rows[row].name : "the budget";
}

/* Of the rows that cannot be kept with all floors kept, the innermost that carries the job. */
static size_t forcing_row(const struct report *r, size_t job)
{
	const struct ww_plan_row *rows = ww_plan_rows(r->plan);
	size_t found = r->problem.n_rows;
	for (uint32_t i = 0; i < r->jobs[job].n_rows; i++) {
		size_t row = r->jobs[job].rows[i].row;
		if (rows[row].result.missing_w > 0 &&
		    (found == r->problem.n_rows || rows[row].result.power_w < rows[found].result.power_w))
			found = row;
	}
	return found;
}

static bool is_held_below_floor(const struct ww_plan_share *s)
{
	return s->limit == WW_PLAN_HIGHEST && s->throughput_frac < s->floor_frac - 1e-6;
}

/* Appends "; rack-1 is full" where a row presses harder than the budget. */
static void add_row(const struct report *r, const struct ww_plan_share *s, char out[REASON])
{
	size_t used = strlen(out);
	if (s->row < r->problem.n_rows)
		snprintf(out + used, REASON - used, "; %s is full", row_name(r, s->row));
}

static void write_price_reason(const struct report *r, const struct ww_plan_share *s, char out[REASON])
{
	double more = s->cut_frac - s->equal_cut_frac;
	bool like = fabs(more) <= 0.005, least_loss = r->args->objective == WW_OBJECTIVE_MAXMIN;
	if (r->args->equal)
		snprintf(out, REASON, "an equal cut");
	else if (like)
		snprintf(out, REASON, "like its equal share (%.0f %%)", 100 * s->equal_cut_frac);
	else
		snprintf(out, REASON, "%s its equal share (%.0f %%)%s it %s", more > 0 ? "deeper than" : "less than",
		         100 * s->equal_cut_frac, least_loss ? ": that would cost" : ": a watt costs",
		         more > 0 ? "less" : "more");
	add_row(r, s, out);
}

static const char *uncut_reason(const struct report *r, const struct ww_plan_share *s)
{
	if (r->total.outcome == WW_OUTCOME_UNCHANGED)
		return "not cut: every limit is kept without";
	if (s->row == SIZE_MAX)
		return "not cut: no limit above it is reached";
	if (r->args->equal || r->args->objective == WW_OBJECTIVE_MAXMIN)
		return "not cut";
	return "not cut: a watt costs it more than others";
}

static void write_reason(const struct report *r, size_t i, char out[REASON])
{
	const struct ww_plan_share *s = &ww_plan_shares(r->plan)[i];
	double floor_percent = 100 * s->floor_frac;
	switch ((enum ww_plan_limit)s->limit) {
	case WW_PLAN_PRICE:
		write_price_reason(r, s, out);
		return;
	case WW_PLAN_UNCUT:
		snprintf(out, REASON, "%s", uncut_reason(r, s));
		return;
	case WW_PLAN_FLOOR:
		snprintf(out, REASON, "at its floor of %.3g %%", floor_percent);
		return;
	case WW_PLAN_RELAXED:
		snprintf(out, REASON, "floor of %.3g %% lowered to %.3g %%: %s cannot be kept otherwise", floor_percent,
		         100 * s->throughput_frac, row_name(r, forcing_row(r, i)));
		return;
	case WW_PLAN_DEEPEST:
		snprintf(out, REASON, "at the lowest cap measured for it");
		add_row(r, s, out);
		return;
	case WW_PLAN_LOWEST:
		snprintf(out, REASON, "at the lowest cap allowed for it");
		return;
	case WW_PLAN_HIGHEST:
		if (is_held_below_floor(s))
			snprintf(out, REASON, "below its floor of %.3g %%: its 'max' allows no higher cap",
			         floor_percent);
		else
			snprintf(out, REASON, "at the highest cap allowed for it");
		return;
	case WW_PLAN_NOT_LIMITED:
		snprintf(out, REASON, "no cap limits it: capped where it costs nothing");
		return;
	case WW_PLAN_NOT_MEASURED:
		snprintf(out, REASON, "measured at too few caps: not cut");
		return;
	}
}

/* ---- The tables ---------------------------------------------------------------------------------------------------------- */

static const struct ww_column job_columns[] = {
	{"job", "", WW_LEFT},          {"GPUs", "", WW_RIGHT},   {"cap", "W", WW_RIGHT}, {"cut", "%", WW_RIGHT},
	{"throughput", "%", WW_RIGHT}, {"floor", "%", WW_RIGHT}, {"why", "", WW_LEFT},
};
static const struct ww_column row_columns[] = {
	{"row", "", WW_LEFT},    {"limit", "W", WW_RIGHT}, {"fixed", "W", WW_RIGHT},
	{"GPUs", "W", WW_RIGHT}, {"free", "W", WW_RIGHT},  {"one watt more", "brings", WW_RIGHT},
};
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void print_jobs(const struct report *r)
{
	ww_table *table = ww_table_create(job_columns, COUNT(job_columns));
	char reason[REASON];
	for (size_t i = 0; i < r->problem.n_jobs; i++) {
		const struct ww_plan_share *s = &ww_plan_shares(r->plan)[i];
		write_reason(r, i, reason);
		ww_table_text(table, "%s", r->jobs[i].name);
		ww_table_text(table, "%u", r->jobs[i].gpus);
		ww_table_number(table, floor(s->cap_w * 10 + 1e-6) / 10, 1);
		ww_table_number(table, 100 * s->cut_frac, 1);
		ww_table_number(table, 100 * s->throughput_frac, 1);
		if (s->floor_frac > 0)
			ww_table_number(table, 100 * s->floor_frac, 0);
		else
			ww_table_text(table, "-");
		ww_table_text(table, "%s", reason);
	}
	ww_table_print(table, stdout);
	ww_table_destroy(table);
}

static void print_negative(const struct report *r)
{
	bool negative = false;
	for (size_t i = 0; i < r->problem.n_rows; i++)
		negative = negative || ww_plan_rows(r->plan)[i].tokens_per_w < 0;
	if (negative)
		printf("Where one watt more brings less than nothing, it serves the objective (%s) at the cost of "
		       "throughput in "
		       "total: --objective tokens makes the total the goal.\n",
		       ww_objective_name(r->args->objective));
}

static void print_rows(const struct report *r)
{
	if (r->problem.n_rows == 0)
		return;
	ww_table *table = ww_table_create(row_columns, COUNT(row_columns));
	for (size_t i = 0; i < r->problem.n_rows; i++) {
		const struct ww_plan_row *row = &ww_plan_rows(r->plan)[i];
		const struct ww_cluster_row *in = &r->cluster.rows[i];
		ww_table_text(table, "%s", in->name);
		ww_table_number(table, in->limit_w, 0);
		ww_table_number(table, in->fixed_w, 0);
		ww_table_number(table, row->result.power_w, 0);
		ww_table_number(table, in->limit_w - in->fixed_w - row->result.power_w, 0);
		ww_table_significant(table, row->tokens_per_w, 3);
	}
	putchar('\n');
	ww_table_print(table, stdout);
	ww_table_destroy(table);
	print_negative(r);
}

/* Rounded up to whole watts, but not for the last bits of a sum. */
static const char *whole_watts(double watts, char out[WW_TEXT_NUMBER])
{
	return ww_text_thousands(ceil(watts * (1 - 1e-9)), out);
}

static void print_missing(const char *name, const struct ww_alloc_row_result *row)
{
	char missing[WW_TEXT_NUMBER], over[WW_TEXT_NUMBER];
	char *clean = ww_text_clean(name, 200);
	printf("Infeasible: %s lacks %s W ", clean, whole_watts(row->missing_w, missing));
	if (row->over_w >= row->missing_w * (1 - 1e-9))
		puts("even with every job at its lowest cap.");
	else if (row->over_w > 0)
		printf("with every floor kept, and %s W even with every job at its lowest cap.\n",
		       whole_watts(row->over_w, over));
	else
		puts("with every floor kept.");
	free(clean);
}

/* Caps are counted, and some jobs draw less than theirs. */
static bool draw_would_help(const struct report *r)
{
	double spare_w = 0;
	for (size_t i = 0; i < r->problem.n_jobs; i++) {
		const struct ww_plan_share *s = &ww_plan_shares(r->plan)[i];
		spare_w += r->jobs[i].gpus * fmax(0, s->cap_w - s->p0_w);
	}
	return r->args->account == WW_ACCOUNT_CAP && spare_w > 0.01 * r->total.power_w;
}

static void print_infeasible(const struct report *r)
{
	const struct ww_plan_row *rows = ww_plan_rows(r->plan);
	size_t held = 0, missing = 0, over = 0;
	for (size_t i = 0; i < r->problem.n_jobs; i++)
		held += is_held_below_floor(&ww_plan_shares(r->plan)[i]);
	for (size_t i = 0; i <= r->problem.n_rows; i++) {
		if (rows[i].result.missing_w > 0)
			print_missing(row_name(r, i), &rows[i].result);
		missing += rows[i].result.missing_w > 0;
		over += rows[i].result.over_w > 0;
	}
	if (held > 0)
		printf("Infeasible: %zu job%s its floor under the highest cap allowed.\n", held,
		       held == 1 ? " cannot keep" : "s cannot keep");
	if (over > 0)
		printf("Stop or move jobs, or measure lower caps%s.\n",
		       draw_would_help(r) ? "; with --account draw the draws count, which are less than these caps"
		                          : "");
	else if (missing > 0)
		puts("So floors are lowered, those of tier 3 first, until every limit is kept.");
}

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

/* Two digits, rounded up: what is proved stays true. */
static double round_up(double value)
{
	double unit = pow(10, floor(log10(value)) - 1);
	return ceil(value / unit - 1e-9) * unit;
}

/* What another watt would bring, and what is proved of the division. */
static void print_worth(const struct report *r)
{
	const struct ww_plan_total *t = &r->total;
	double worth = ww_plan_rows(r->plan)[r->problem.n_rows].tokens_per_w;
	if (worth > 0)
		printf("One watt more in the budget would bring %.3g more throughput (all jobs, in the unit of the "
		       "sweep).\n",
		       worth);
	if (!r->args->equal && t->outcome == WW_OUTCOME_OPTIMAL && r->problem.n_jobs > 1)
		printf("Proved: within these curves and limits no other division is better by more than %.2g %% "
		       "(objective: "
		       "%s).\n",
		       round_up(fmax(1e-4, 100 * t->bound_gap_frac)), ww_objective_name(r->args->objective));
}

static void print_budget(const struct report *r)
{
	char budget[WW_TEXT_NUMBER], drew[WW_TEXT_NUMBER];
	double cut = planned_cut(r);
	printf("\nThe jobs draw %s W without caps; the budget is %s W (", ww_text_thousands(r->total.baseline_w, drew),
	       ww_text_thousands(r->total.budget_w, budget));
	if (fabs(cut) < 5e-5)
		puts("as much).");
	else
		printf("%.4g %% %s).\n", 100 * fabs(cut), cut > 0 ? "less" : "more");
}

static void print_power(const struct report *r)
{
	char power[WW_TEXT_NUMBER];
	bool kept = ww_plan_rows(r->plan)[r->problem.n_rows].result.over_w <= 0;
	const char *what = "The caps", *so = ": in force, they keep the budget whatever the jobs do";
	if (r->args->account == WW_ACCOUNT_DRAW) {
		what = "The draws expected under these caps";
		so = "; a job that draws more than measured can break the budget";
	}
	printf("%s add up to %s W%s.\n", what, ww_text_thousands(r->total.power_w, power),
	       kept ? so : ", more than the budget");
	if (r->args->account == WW_ACCOUNT_CAP)
		printf("Under them the jobs are expected to draw %s W (%.4g %% less than without).\n",
		       ww_text_thousands(r->total.draw_w, power), 100 * (1 - r->total.draw_w / r->total.baseline_w));
}

/* Ends a sentence with what an equal cut would give, where there is something to compare with. */
static void print_against(const struct report *r, const char *what, double frac)
{
	if (r->args->equal || r->problem.n_jobs == 1)
		puts(".");
	else
		printf("; %s %.1f %%.\n", what, 100 * frac);
}

static bool has_weights(const struct report *r)
{
	for (size_t i = 0; i < r->problem.n_jobs; i++)
		if (r->jobs[i].weight != 1)
			return true;
	return false;
}

static const char *show_rate(double value, char out[WW_TEXT_NUMBER])
{
	if (value >= 1000)
		return ww_text_thousands(value, out);
	snprintf(out, WW_TEXT_NUMBER, "%.4g", value);
	return out;
}

static void print_total_throughput(const struct report *r)
{
	const struct ww_plan_total *t = &r->total;
	char made[WW_TEXT_NUMBER], equal[WW_TEXT_NUMBER];
	printf("In total they make %s per second, in the unit of the sweep", show_rate(t->throughput, made));
	if (!r->args->equal && r->problem.n_jobs > 1)
		printf("; under an equal cut %s", show_rate(t->equal_throughput, equal));
	puts(t->throughput < t->equal_throughput && r->args->objective != WW_OBJECTIVE_TOKENS
	             ? ", more: --objective tokens makes this sum the goal."
	             : ".");
}

/* What survives, first in the terms of the objective, then in total. */
static void print_kept(const struct report *r)
{
	const struct ww_plan_total *t = &r->total;
	if (r->args->objective == WW_OBJECTIVE_MAXMIN) {
		printf("No job keeps less than %.1f %% of its throughput%s", 100 * t->least,
		       has_weights(r) ? " (its loss times its weight)" : "");
		print_against(r, "under an equal cut the least would be", t->equal_least);
	} else if (r->args->objective != WW_OBJECTIVE_TOKENS) {
		printf("The jobs keep %.1f %% of their throughput (mean by weight)", 100 * t->relative);
		print_against(r, "an equal cut would keep", t->equal_relative);
	}
	print_total_throughput(r);
}

static void print_totals(const struct report *r)
{
	const struct ww_plan_total *t = &r->total;
	print_budget(r);
	print_power(r);
	if (t->outcome == WW_OUTCOME_UNCHANGED)
		puts("No job has to be cut.");
	else
		print_kept(r);
	print_worth(r);
	print_infeasible(r);
	puts("Nothing was set: this is a plan.");
}

static void print_report(const struct report *r)
{
	char *name = ww_text_clean(r->file->name, 200);
	printf("%s: caps for %zu job%s, policy %s, objective %s\n\n", name, r->problem.n_jobs,
	       plural(r->problem.n_jobs), policy_name(r), ww_objective_name(r->args->objective));
	print_jobs(r);
	print_rows(r);
	print_totals(r);
	free(name);
}

/* ---- JSON ------------------------------------------------------------------------------------------------------------------ */

static void json_jobs(const struct report *r, ww_json *json)
{
	char reason[REASON];
	ww_json_begin_array(json, "jobs");
	for (size_t i = 0; i < r->problem.n_jobs; i++) {
		const struct ww_plan_share *s = &ww_plan_shares(r->plan)[i];
		write_reason(r, i, reason);
		ww_json_begin_object(json, NULL);
		ww_json_text(json, "job", r->jobs[i].name);
		ww_json_count(json, "gpus", r->jobs[i].gpus);
		ww_json_number(json, "cap_w", s->cap_w);
		ww_json_number(json, "cut_frac", s->cut_frac);
		ww_json_number(json, "equal_cut_frac", s->equal_cut_frac);
		ww_json_number(json, "throughput_frac", s->throughput_frac);
		ww_json_number(json, "floor_frac", s->floor_frac);
		ww_json_number(json, "charge_w", s->charge_w);
		ww_json_number(json, "draw_w", s->draw_w);
		ww_json_number(json, "trust", s->trust);
		ww_json_text(json, "reason", reason);
		ww_json_end(json);
	}
	ww_json_end(json);
}

static void json_rows(const struct report *r, ww_json *json)
{
	ww_json_begin_array(json, "rows");
	for (size_t i = 0; i < r->problem.n_rows; i++) {
		const struct ww_plan_row *row = &ww_plan_rows(r->plan)[i];
		ww_json_begin_object(json, NULL);
		ww_json_text(json, "row", r->cluster.rows[i].name);
		ww_json_number(json, "limit_w", r->cluster.rows[i].limit_w);
		ww_json_number(json, "fixed_w", r->cluster.rows[i].fixed_w);
		ww_json_number(json, "power_w", row->result.power_w);
		ww_json_text(json, "state", row->result.over_w > 0 ? "broken" : row->full ? "full" : "free");
		ww_json_number(json, "price", row->result.price);
		ww_json_number(json, "tokens_per_w", row->tokens_per_w);
		ww_json_number(json, "missing_w", row->result.missing_w);
		ww_json_number(json, "over_w", row->result.over_w);
		ww_json_end(json);
	}
	ww_json_end(json);
}

static void print_json(const struct report *r)
{
	const struct ww_plan_row *budget = &ww_plan_rows(r->plan)[r->problem.n_rows];
	ww_json *json = ww_json_create();
	ww_json_text(json, "policy", policy_name(r));
	ww_json_text(json, "objective", ww_objective_name(r->args->objective));
	ww_json_text(json, "account", ww_account_name(r->args->account));
	ww_json_number(json, "cut_frac", fmax(0, planned_cut(r)));
	ww_json_number(json, "budget_w", r->total.budget_w);
	ww_json_text(json, "outcome", ww_outcome_name((enum ww_outcome)r->total.outcome));
	ww_json_number(json, "bound_gap_frac", r->args->equal ? NAN : r->total.bound_gap_frac);
	ww_json_number(json, "shrink", r->total.shrink);
	ww_json_number(json, "missing_w", budget->result.missing_w);
	ww_json_number(json, "over_w", budget->result.over_w);
	ww_json_number(json, "tokens_per_w", budget->tokens_per_w);
	json_jobs(r, json);
	json_rows(r, json);
	ww_json_begin_object(json, "total");
	ww_json_number(json, "baseline_w", r->total.baseline_w);
	ww_json_number(json, "power_w", r->total.power_w);
	ww_json_number(json, "draw_w", r->total.draw_w);
	ww_json_number(json, "throughput", r->total.throughput);
	ww_json_number(json, "equal_throughput", r->total.equal_throughput);
	ww_json_number(json, "relative", r->total.relative);
	ww_json_number(json, "equal_relative", r->total.equal_relative);
	ww_json_end(json);
	ww_json_print(json, stdout);
	ww_json_destroy(json);
}

/* ---- The plot -------------------------------------------------------------------------------------------------------------- */

static void plot_bars(ww_plot *plot, const struct report *r, bool throughput)
{
	const struct ww_plan_share *s = ww_plan_shares(r->plan);
	ww_plot_series(plot, WW_PLOT_BARS, throughput ? 2 : 5, throughput ? "kept" : "cap");
	for (size_t i = 0; i < r->problem.n_jobs; i++)
		ww_plot_point(plot, (double)i, throughput ? 100 * s[i].throughput_frac : s[i].cap_w);
	ww_plot_series(plot, WW_PLOT_POINTS, 6, throughput ? "floor" : "draw without a cap");
	for (size_t i = 0; i < r->problem.n_jobs; i++)
		if (!throughput || s[i].floor_frac > 0)
			ww_plot_point(plot, (double)i, throughput ? 100 * s[i].floor_frac : s[i].p0_w);
}

static bool write_plot(const struct report *r)
{
	const char **names = ww_cli_alloc(r->problem.n_jobs, sizeof(*names));
	for (size_t i = 0; i < r->problem.n_jobs; i++)
		names[i] = r->jobs[i].name;
	ww_plot *plot = ww_plot_create_bars(2, names, r->problem.n_jobs);
	ww_plot_panel(plot, &(struct ww_plot_frame){.title = "", .x_label = "power per GPU (W)", .y_label = ""});
	plot_bars(plot, r, false);
	ww_plot_panel(plot, &(struct ww_plot_frame){.title = "", .x_label = "throughput kept (%)", .y_label = ""});
	plot_bars(plot, r, true);
	bool fine = ww_plot_write(plot, r->args->sweep.who, r->args->sweep.plot);
	ww_plot_destroy(plot);
	free(names);
	return fine;
}

/* ---- The command ----------------------------------------------------------------------------------------------------------- */

static int report_plan(const struct ww_plan_args *args, const struct ww_sweep_file *file)
{
	struct report report = {.args = args, .file = file};
	int exit_code = WW_EXIT_FAILED;
	if (make_plan(&report)) {
		if (args->sweep.json)
			print_json(&report);
		else
			print_report(&report);
		if (ww_output_flush(args->sweep.who) && (!args->sweep.plot || write_plot(&report)))
			exit_code = report.total.outcome == WW_OUTCOME_INFEASIBLE ? WW_EXIT_ATTENTION : WW_EXIT_OK;
	}
	finish_report(&report);
	return exit_code;
}

int ww_cmd_plan(int argc, char **argv)
{
	struct ww_plan_args args;
	int exit_code = WW_EXIT_USAGE;
	if (ww_plan_args_parse(argc, argv, &args)) {
		struct ww_sweep_file *files = ww_sweep_files_create(&args.sweep);
		exit_code = files ? report_plan(&args, files) : WW_EXIT_FAILED;
		ww_sweep_files_destroy(files, args.sweep.n_files);
	}
	free(args.sweep.files);
	return exit_code;
}
