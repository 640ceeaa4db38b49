/* SPDX-License-Identifier: Apache-2.0 */
/* Policies side by side on measured sweeps: builds each job's truth and what a policy may see of it, then scores. */
#include "core/core_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TIE 1e-9        /* 0.10 and 0.20 are equally near to 0.15, whatever their last bits */
#define LEAST_GAP 0.004 /* a share of a smaller gap says nothing */
#define MOST_SWEEPS 100
#define LEAST_LOSS_PER_CUT 0.02 /* no job is taken to be more flexible than a PFI of 50 */

struct ww_compare {
	size_t n;
	struct sweep_job *jobs; /* sorted by name */
	double *cut, *box;      /* n each */
	struct ww_alloc_job *shares;
	double baseline_w;
	enum ww_left_out *left_out; /* one per job given, in the order given */
};

const char *ww_policy_name(enum ww_policy policy)
{
	static const char *const names[WW_N_POLICIES] = {"equal",       "uniform", "linear_pfi", "pfi_proportional",
	                                                 "utilisation", "curve",   "oracle",     "oracle_box"};
	return names[policy];
}

/* ---- Duplicates ------------------------------------------------------------------------------------------------- */

static bool same_curve(const struct pooled_sweep *a, const struct pooled_sweep *b)
{
	if (a->n != b->n || a->n == 0)
		return false;
	for (size_t i = 0; i < a->n; i++) {
		const struct pooled *p = &a->p[i], *q = &b->p[i];
		if (p->cap_w != q->cap_w ||
		    fabs(p->throughput / a->p[0].throughput - q->throughput / b->p[0].throughput) > 1e-4 ||
		    fabs(p->power_w / a->p[0].power_w - q->power_w / b->p[0].power_w) > 1e-3)
			return false;
	}
	return true;
}

static void free_pooled(struct pooled_sweep *sweeps, size_t n)
{
	for (size_t i = 0; sweeps && i < n; i++)
		pool_finish(&sweeps[i]);
	free(sweeps);
}

static ww_status pool_all(const struct ww_compare_job *jobs, size_t n, struct pooled_sweep **out, struct ww_error *err)
{
	struct pooled_sweep *sweeps = calloc(n + 1, sizeof *sweeps);
	ww_status status = sweeps ? WW_OK : ww_fail(err, WW_ERR_NOMEM, "out of memory");
	for (size_t i = 0; !status && i < n; i++)
		status = pool_create(jobs[i].points, jobs[i].n, ALL_CAPS, &sweeps[i], err);
	if (status)
		free_pooled(sweeps, n);
	else
		*out = sweeps;
	return status;
}

/* Sweeps without an earlier twin, in cells of a grid over two of their ratios. A cell is wider than the ratios of twins
 * may differ, so twins lie in the same cell or in two that touch; same_curve() has the last word. */
#define CELL 2.5e-4

struct grid {
	size_t size;         /* power of two */
	size_t *head, *next; /* sweep + 1, 0 = none; the last added first */
};

static ww_status grid_create(struct grid *grid, size_t n, struct ww_error *err)
{
	grid->size = 1;
	while (grid->size < n)
		grid->size *= 2;
	grid->head = calloc(grid->size + n, sizeof *grid->head);
	if (!grid->head)
		return ww_fail(err, WW_ERR_NOMEM, "out of memory");
	grid->next = grid->head + grid->size;
	return WW_OK;
}

static uint64_t mix(uint64_t hash, double value)
{
	uint64_t bits;
	value += 0.0; /* -0 becomes 0 */
	memcpy(&bits, &value, sizeof bits);
	hash = (hash ^ bits) * 0xBF58476D1CE4E5B9u;
	return hash ^ (hash >> 31);
}

/* The cell of a sweep, or one beside it. */
static size_t cell_of(const struct grid *grid, const struct pooled_sweep *s, int right, int up)
{
	const struct pooled *p = s->p, *middle = &p[s->n / 2], *last = &p[s->n - 1];
	uint64_t hash = mix(0, (double)s->n);
	for (size_t i = 0; i < s->n; i++)
		hash = mix(hash, p[i].cap_w);
	hash = mix(hash, floor(middle->throughput / p->throughput / CELL) + right);
	hash = mix(hash, floor(last->throughput / p->throughput / CELL) + up);
	return (hash ^ (hash >> 32)) & (grid->size - 1);
}

/* The first earlier sweep with the same curve, or n. */
static size_t find_twin(const struct grid *grid, const struct pooled_sweep *sweeps, size_t i, size_t n)
{
	size_t found = n;
	for (int right = -1; right <= 1; right++)
		for (int up = -1; up <= 1; up++)
			for (size_t k = grid->head[cell_of(grid, &sweeps[i], right, up)]; k > 0; k = grid->next[k - 1])
				if (k - 1 < found && same_curve(&sweeps[i], &sweeps[k - 1]))
					found = k - 1;
	return found;
}

static ww_status mark_duplicates(const struct pooled_sweep *sweeps, size_t n, size_t *duplicate_of,
                                 struct ww_error *err)
{
	struct grid grid = {0};
	ww_status status = grid_create(&grid, n, err);
	for (size_t i = 0; !status && i < n; i++) {
		size_t twin = sweeps[i].n > 0 ? find_twin(&grid, sweeps, i, n) : n;
		duplicate_of[i] = twin < n ? twin : i;
		if (twin < n || sweeps[i].n == 0)
			continue;
		size_t *head = &grid.head[cell_of(&grid, &sweeps[i], 0, 0)];
		grid.next[i] = *head;
		*head = i + 1;
	}
	if (!status)
		free(grid.head);
	return status;
}

ww_status ww_find_duplicates(const struct ww_compare_job *jobs, size_t n, size_t *duplicate_of, struct ww_error *err)
{
	struct pooled_sweep *sweeps = NULL;
	ww_status status = pool_all(jobs, n, &sweeps, err);
	if (status)
		return status;
	status = mark_duplicates(sweeps, n, duplicate_of, err);
	free_pooled(sweeps, n);
	return status;
}

/* ---- Truth -------------------------------------------------------------------------------------------------------- */

static int by_draw(const void *a, const void *b)
{
	const struct pooled *p = a, *q = b;
	if (p->power_w != q->power_w)
		return p->power_w > q->power_w ? 1 : -1;
	return (p->throughput > q->throughput) - (p->throughput < q->throughput);
}

/* Rows that draw at most P0, by ascending draw, throughput made monotone and relative to that at P0. */
static size_t fill_truth(struct sweep_job *j, struct pooled *p, size_t n, size_t *count)
{
	size_t m = 0;
	qsort(p, n, sizeof *p, by_draw);
	for (size_t i = 0; i < n && p[i].power_w <= j->p0_w; i++) {
		j->true_w[i] = p[i].power_w;
		j->truth[i] = p[i].throughput;
		m++;
	}
	pav_rising(j->truth, count, m);
	size_t kept = 0;
	for (size_t i = 0; i < m; i++) { /* of rows with the same draw the best */
		if (i + 1 < m && j->true_w[i + 1] == j->true_w[i])
			continue;
		j->true_w[kept] = j->true_w[i];
		j->truth[kept++] = j->truth[i] / j->truth[m - 1];
	}
	return kept;
}

/* Upper hull of the truth = mirrored lower hull. */
static void fill_hull(struct sweep_job *j)
{
	for (size_t i = 0; i < j->n_true; i++) {
		j->hull_w[i] = j->true_w[i];
		j->hull[i] = -j->truth[i];
	}
	j->n_hull = lower_hull(j->hull_w, j->hull, j->n_true);
	for (size_t i = 0; i < j->n_hull; i++)
		j->hull[i] = -j->hull[i];
}

/* p in descending order of the cap. */
static void fill_draws(struct sweep_job *j, const struct pooled *p, size_t n)
{
	j->n_caps = n;
	for (size_t i = 0; i < n; i++) {
		double draw = fmin(p[n - 1 - i].power_w, j->p0_w);
		j->cap_w[i] = p[n - 1 - i].cap_w;
		j->draw_w[i] = i ? fmax(draw, j->draw_w[i - 1]) : draw;
	}
}

/* ---- What a policy may see ------------------------------------------------------------------------------------------ */

/* The caps that a policy may see beside the highest, at most one per fit depth. */
struct visible {
	size_t n, at[WW_COMPARE_MAX_DEPTHS];
	struct ww_fit_point point[WW_COMPARE_MAX_DEPTHS];
};

static bool is_taken(const struct visible *v, size_t at)
{
	for (size_t i = 0; i < v->n; i++)
		if (v->at[i] == at)
			return true;
	return false;
}

/* Of the caps with a cut of at least 0.03 that are not yet taken the one nearest to the depth; ties to the shallower. */
static size_t nearest_cap(const struct pooled_sweep *sweep, const struct visible *v, double depth)
{
	const struct pooled *p = sweep->p;
	size_t best = sweep->n;
	double best_off = INFINITY;
	for (size_t i = 0; i < sweep->n; i++) {
		double cut = 1 - p[i].power_w / p[0].power_w, off = fabs(cut - depth);
		if (cut < BASELINE_BAND || is_taken(v, i))
			continue;
		if (off < best_off - TIE || (off <= best_off + TIE && p[i].power_w > p[best].power_w)) {
			best = i;
			best_off = off;
		}
	}
	return best;
}

static struct visible look(const struct pooled_sweep *sweep, const struct ww_compare_options *options)
{
	struct visible v = {0};
	const struct pooled *p = sweep->p;
	for (size_t i = 0; i < options->n_depths; i++) {
		size_t at = nearest_cap(sweep, &v, options->fit_depths[i]);
		if (at == sweep->n)
			break;
		v.at[v.n] = at;
		v.point[v.n++] =
			(struct ww_fit_point){1 - p[at].power_w / p[0].power_w, 1 - p[at].throughput / p[0].throughput};
	}
	return v;
}

/* The slope of the linear model; where the visible losses are within noise, its cautious end. */
static double linear_slope(const struct visible *v, double noise)
{
	double cut[WW_COMPARE_MAX_DEPTHS], loss[WW_COMPARE_MAX_DEPTHS];
	for (size_t i = 0; i < v->n; i++) {
		cut[i] = v->point[i].cut_frac;
		loss[i] = v->point[i].loss_frac;
	}
	struct line line = fit_line(cut, loss, v->n, noise);
	if (line.slope < BOUND_SE * line.se)
		line.slope = fmax(line.slope, 0) + NINETY_SE * line.se;
	return fmax(line.slope, LEAST_LOSS_PER_CUT);
}

/* ---- Building ---------------------------------------------------------------------------------------------------------- */

static ww_status job_arrays(struct sweep_job *j, size_t n, struct ww_error *err)
{
	j->true_w = calloc(6 * n, sizeof *j->true_w);
	if (!j->true_w)
		return ww_fail(err, WW_ERR_NOMEM, "out of memory");
	j->truth = j->true_w + n;
	j->hull_w = j->truth + n;
	j->hull = j->hull_w + n;
	j->cap_w = j->hull + n;
	j->draw_w = j->cap_w + n;
	return WW_OK;
}

static ww_status build_job(struct sweep_job *j, struct pooled_sweep *sweep, const struct visible *v, double noise,
                           struct ww_error *err)
{
	size_t *count = calloc(sweep->n, sizeof *count);
	ww_status status = job_arrays(j, sweep->n, err);
	if (!status && !count)
		status = ww_fail(err, WW_ERR_NOMEM, "out of memory");
	j->p0_w = sweep->p[0].power_w;
	j->t0 = sweep->p[0].throughput;
	if (!status)
		status = ww_curve_fit(&(struct ww_fit){v->point, v->n, noise, j->p0_w, j->t0}, &j->curve, err);
	if (!status) {
		fill_draws(j, sweep->p, sweep->n);
		j->n_true = fill_truth(j, sweep->p, sweep->n, count);
		j->reach = 1 - j->true_w[0] / j->p0_w;
		fill_hull(j);
	}
	free(count);
	return status;
}

/* A job on its way into the comparison. */
struct candidate {
	const struct ww_compare_job *job;
	size_t given; /* its place among the jobs given */
	bool has_twin;
};

/* Adds a job to the comparison if it is power limited, measured at enough caps and no duplicate; else says why not. */
static ww_status add_job(ww_compare *c, const struct candidate *candidate, struct pooled_sweep *sweep,
                         const struct ww_compare_options *options, struct ww_error *err)
{
	struct ww_pfi pfi;
	struct ww_pfi_options pfi_options = WW_PFI_OPTIONS_INIT;
	const struct ww_compare_job *job = candidate->job;
	pfi_options.noise_frac = options->noise_frac;
	pfi_options.draws = 0;
	ww_status status = ww_pfi_estimate(job->points, job->n, &pfi_options, &pfi, err);
	if (status)
		return status;
	enum ww_left_out why = pfi.status == WW_PFI_TOO_FEW_POINTS      ? WW_LEFT_TOO_FEW_POINTS
	                       : pfi.status == WW_PFI_NOT_POWER_LIMITED ? WW_LEFT_NOT_POWER_LIMITED
	                       : candidate->has_twin                    ? WW_LEFT_DUPLICATE
	                                                                : WW_LEFT_NOT;
	c->left_out[candidate->given] = why;
	if (why != WW_LEFT_NOT)
		return WW_OK;
	struct sweep_job *j = &c->jobs[c->n++];
	struct visible v = look(sweep, options);
	j->name = job->name;
	j->loss_per_cut = linear_slope(&v, pfi.noise_frac);
	return build_job(j, sweep, &v, cautious_noise(job->points, job->n, &pfi, options->noise_frac), err);
}

/* Jobs by name, with their places among the jobs given. */
struct candidates {
	size_t n, *given;
	struct ww_compare_job *jobs;
};

static int by_name(const void *a, const void *b, void *context)
{
	const struct ww_compare_job *jobs = context;
	size_t p = *(const size_t *)a, q = *(const size_t *)b;
	int order = strcmp(jobs[p].name, jobs[q].name);
	return order ? order : (p > q) - (p < q);
}

static ww_status sort_jobs(const struct ww_compare_job *jobs, size_t n, struct candidates *out, struct ww_error *err)
{
	*out = (struct candidates){n, calloc(n + 1, sizeof *out->given), calloc(n + 1, sizeof *out->jobs)};
	if (!out->given || !out->jobs)
		return ww_fail(err, WW_ERR_NOMEM, "out of memory for %zu jobs", n);
	for (size_t i = 0; i < n; i++)
		out->given[i] = i;
	qsort_r(out->given, n, sizeof *out->given, by_name, (void *)jobs);
	for (size_t i = 0; i < n; i++)
		out->jobs[i] = jobs[out->given[i]];
	return WW_OK;
}

static ww_status add_jobs(ww_compare *c, const struct candidates *all, const struct ww_compare_options *options,
                          struct ww_error *err)
{
	struct pooled_sweep *sweeps = NULL;
	size_t n = all->n, *duplicate_of = calloc(n + 1, sizeof *duplicate_of);
	ww_status status = duplicate_of ? WW_OK : ww_fail(err, WW_ERR_NOMEM, "out of memory");
	if (!status)
		status = pool_all(all->jobs, n, &sweeps, err);
	if (!status)
		status = mark_duplicates(sweeps, n, duplicate_of, err);
	for (size_t i = 0; !status && i < n; i++) {
		struct candidate one = {&all->jobs[i], all->given[i], duplicate_of[i] != i};
		status = add_job(c, &one, &sweeps[i], options, err);
	}
	free_pooled(sweeps, n);
	free(duplicate_of);
	return status;
}

/* The allocator's view of each job; its id is its place in the order of names. */
static void build_shares(ww_compare *c)
{
	for (size_t i = 0; i < c->n; i++) {
		struct sweep_job *j = &c->jobs[i];
		c->baseline_w += j->p0_w;
		c->shares[i] = (struct ww_alloc_job){
			.id = i, .gpus = 1, .weight = 1, .floor_frac = 0, .min_w = j->true_w[0], .curve = &j->curve};
	}
}

static ww_status check_options(const struct ww_compare_options *o, struct ww_error *err)
{
	if (!(o->noise_frac >= 0 && o->noise_frac < 1))
		return ww_fail(err, WW_ERR_RANGE, "noise_frac is %g: must be in [0, 1)", o->noise_frac);
	if (o->n_depths == 0 || o->n_depths > WW_COMPARE_MAX_DEPTHS)
		return ww_fail(err, WW_ERR_RANGE, "%zu fit depths: must be 1 to %d", o->n_depths,
		               WW_COMPARE_MAX_DEPTHS);
	for (size_t i = 0; i < o->n_depths; i++)
		if (!(o->fit_depths[i] > 0 && o->fit_depths[i] < 1))
			return ww_fail(err, WW_ERR_RANGE, "fit depth %g: must be in (0, 1)", o->fit_depths[i]);
	return WW_OK;
}

static ww_compare *make_compare(size_t n)
{
	ww_compare *c = calloc(1, sizeof *c);
	if (!c)
		return NULL;
	c->jobs = calloc(n + 1, sizeof *c->jobs);
	c->cut = calloc(2 * (n + 1), sizeof *c->cut);
	c->shares = calloc(n + 1, sizeof *c->shares);
	c->left_out = calloc(n + 1, sizeof *c->left_out);
	if (c->jobs && c->cut && c->shares && c->left_out) {
		c->box = c->cut + n + 1;
		return c;
	}
	ww_compare_destroy(c);
	return NULL;
}

/* Jobs are taken in the order of their names, so that neither sums nor the choice among duplicates depend on the input. */
ww_status ww_compare_create(const struct ww_compare_job *jobs, size_t n, const struct ww_compare_options *options,
                            ww_compare **out, struct ww_error *err)
{
	ww_status status = check_options(options, err);
	if (status)
		return status;
	struct candidates all = {0};
	ww_compare *c = make_compare(n);
	if (!c)
		status = ww_fail(err, WW_ERR_NOMEM, "out of memory for %zu jobs", n);
	if (!status)
		status = sort_jobs(jobs, n, &all, err);
	if (!status)
		status = add_jobs(c, &all, options, err);
	free(all.given);
	free(all.jobs);
	if (status) {
		ww_compare_destroy(c);
		return status;
	}
	build_shares(c);
	*out = c;
	return WW_OK;
}

void ww_compare_destroy(ww_compare *c)
{
	if (!c)
		return;
	for (size_t i = 0; c->jobs && i < c->n; i++)
		free(c->jobs[i].true_w);
	free(c->jobs);
	free(c->cut);
	free(c->shares);
	free(c->left_out);
	free(c);
}

size_t ww_compare_jobs(const ww_compare *c)
{
	return c->n;
}

enum ww_left_out ww_compare_left_out(const ww_compare *c, size_t job)
{
	return c->left_out[job];
}

/* ---- Running --------------------------------------------------------------------------------------------------------- */

/* Scores the allocator's current shares and remembers its box. */
static double score_shares(ww_compare *c, const ww_alloc *alloc)
{
	const struct ww_alloc_share *share = ww_alloc_shares(alloc);
	for (size_t i = 0; i < c->n; i++) {
		c->cut[i] = share[i].cut_frac;
		c->box[i] = share[i].box_cut_frac;
	}
	return score(c->jobs, c->n, c->cut);
}

/* The equal cut and wattweir's own division. A new allocator each time, so that a row does not depend on those before. */
static ww_status score_allocator(ww_compare *c, struct ww_compare_row *row, struct ww_error *err)
{
	struct ww_alloc_problem problem = {.jobs = c->shares, .n_jobs = c->n, .budget_w = row->budget_w};
	ww_alloc *alloc;
	ww_status status = ww_alloc_create(&alloc, err);
	if (status)
		return status;
	status = ww_alloc_set(alloc, &problem, err);
	if (!status) {
		row->value[WW_POLICY_EQUAL] = score_shares(c, alloc);
		ww_alloc_run(alloc, MOST_SWEEPS);
		row->value[WW_POLICY_CURVE] = score_shares(c, alloc);
		struct ww_alloc_summary result = ww_alloc_result(alloc);
		row->outcome = result.outcome;
		row->missing_w = ww_alloc_rows(alloc)[0].over_w;
		row->shrink = result.shrink;
	}
	ww_alloc_destroy(alloc);
	return status;
}

static void score_rules(ww_compare *c, double need_w, struct ww_compare_row *row)
{
	divide_uniform(c->jobs, c->n, need_w, c->cut);
	row->value[WW_POLICY_UNIFORM] = score(c->jobs, c->n, c->cut);
	divide_linear(c->jobs, c->n, need_w, c->cut);
	row->value[WW_POLICY_LINEAR_PFI] = score(c->jobs, c->n, c->cut);
	divide_proportional(c->jobs, c->n, need_w, c->cut);
	row->value[WW_POLICY_PFI_PROPORTIONAL] = score(c->jobs, c->n, c->cut);
	row->utilisation_over_w = divide_utilisation(c->jobs, c->n, row->budget_w, c->cut);
	row->value[WW_POLICY_UTILISATION] = score(c->jobs, c->n, c->cut);
}

static double recovered(const struct ww_compare_row *row, enum ww_policy best)
{
	double gap = row->value[best] - row->value[WW_POLICY_EQUAL];
	return gap < LEAST_GAP ? NAN : (row->value[WW_POLICY_CURVE] - row->value[WW_POLICY_EQUAL]) / gap;
}

static ww_status score_optimum(ww_compare *c, double need_w, struct ww_compare_row *row, struct ww_error *err)
{
	ww_status status = oracle_value(c->jobs, c->n, need_w, NULL, &row->value[WW_POLICY_ORACLE], err);
	if (!status)
		status = oracle_value(c->jobs, c->n, need_w, c->box, &row->value[WW_POLICY_ORACLE_BOX], err);
	row->recovered_frac = recovered(row, WW_POLICY_ORACLE);
	row->recovered_box_frac = recovered(row, WW_POLICY_ORACLE_BOX);
	return status;
}

ww_status ww_compare_run(ww_compare *c, double cut_frac, struct ww_compare_row *out, struct ww_error *err)
{
	if (!(cut_frac >= 0 && cut_frac < 1))
		return ww_fail(err, WW_ERR_RANGE, "cut %g: must be in [0, 1)", cut_frac);
	if (c->n == 0)
		return ww_fail(err, WW_ERR_NO_DATA, "no job has a sweep that can be compared");
	struct ww_compare_row row = {.cut_frac = cut_frac, .n_jobs = c->n, .baseline_w = c->baseline_w};
	row.budget_w = (1 - cut_frac) * c->baseline_w;
	ww_status status = score_allocator(c, &row, err);
	if (status)
		return status;
	double need_w = c->baseline_w - row.budget_w - row.missing_w;
	score_rules(c, need_w, &row);
	status = score_optimum(c, need_w, &row, err);
	if (!status)
		*out = row;
	return status;
}
