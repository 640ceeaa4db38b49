/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Divides a power budget among three jobs on two feeds, with nothing but wattweir.h:
 *
 *     cc divide.c $(pkg-config --cflags --libs wattweir) -o divide && ./divide
 *
 * The numbers of the jobs are made up. docs/examples/divide.py is the same program in Python.
 */
#include <math.h>
#include <stdio.h>
#include <wattweir.h>

#define N_JOBS 3
#define N_ROWS 2
#define BUDGET_W 14000.0
#define N_OF(array) (sizeof(array) / sizeof *(array))

static const char *const names[N_JOBS] = {"pretrain", "vision", "finetune"};

/* Two jobs were swept: cap, draw per GPU, throughput of the job. No errors are known, no throttle reasons recorded. */
static const struct ww_point pretrain[] = {
	{700, 684, 41800, NAN, NAN, -1}, {700, 686, 41500, NAN, NAN, -1}, {600, 594, 39400, NAN, NAN, -1},
	{600, 595, 39700, NAN, NAN, -1}, {500, 496, 36200, NAN, NAN, -1}, {500, 495, 36000, NAN, NAN, -1},
	{400, 397, 30800, NAN, NAN, -1}, {400, 398, 31100, NAN, NAN, -1}, {300, 299, 22600, NAN, NAN, -1},
};
static const struct ww_point vision[] = {
	{700, 561, 5230, NAN, NAN, -1}, {600, 560, 5215, NAN, NAN, -1}, {500, 488, 5110, NAN, NAN, -1},
	{400, 396, 4800, NAN, NAN, -1}, {300, 299, 4120, NAN, NAN, -1},
};

/* The third was only rehearsed: its throughput fell by 4 % and 15 % at caps 15 % and 35 % below the one of 600 W at
 * which it runs freely. */
static const struct ww_fit_point finetune[] = {{0.15, 0.04}, {0.35, 0.15}};

/* Feed 0 carries pretrain and half of finetune, feed 1 the other half and vision. */
static const struct ww_row_share on_feed_0[] = {{0, 16}}, on_feed_1[] = {{1, 8}}, on_both[] = {{0, 4}, {1, 4}};

static ww_status measure(struct ww_curve *curves, struct ww_error *err)
{
	struct ww_pfi_options options = WW_PFI_OPTIONS_INIT;
	struct ww_pfi pfi;
	ww_status status = ww_pfi_estimate(pretrain, N_OF(pretrain), &options, &pfi, err);
	if (status)
		return status;
	if (pfi.status == WW_PFI_OK)
		printf("%s: PFI %.3f for caps from %.0f to %.0f W, 90 %% interval %.3f to %.3f\n", names[0], pfi.pfi_ls,
		       pfi.fit_lo_w, pfi.fit_hi_w, pfi.pfi_ls_lo, pfi.pfi_ls_hi);

	/* The budget is to hold whatever the jobs do, so caps are counted, not draws. */
	status = ww_curve_measure(pretrain, N_OF(pretrain), &options, WW_ACCOUNT_CAP, &curves[0], err);
	if (!status)
		status = ww_curve_measure(vision, N_OF(vision), &options, WW_ACCOUNT_CAP, &curves[1], err);
	struct ww_fit rehearsal = {finetune, N_OF(finetune), options.noise_frac, 600, 8800};
	if (!status)
		status = ww_curve_fit(&rehearsal, &curves[2], err);
	return status;
}

static void print_division(const ww_alloc *alloc, const struct ww_alloc_job *jobs)
{
	const struct ww_alloc_share *share = ww_alloc_shares(alloc);
	const struct ww_alloc_row_result *row = ww_alloc_rows(alloc);
	struct ww_alloc_summary result = ww_alloc_result(alloc);

	for (int i = 0; i < N_JOBS; i++) {
		double p0_w = jobs[i].curve->p0_w;
		double cap_w = p0_w * (1 - share[i].cut_frac), equal_w = p0_w * (1 - share[i].equal_cut_frac);
		printf("%-8s %2u GPUs: cap %.1f W (%.1f W by an equal cut), keeps %.4f of its throughput, floor %.2f\n",
		       names[i], (unsigned)jobs[i].gpus, cap_w, equal_w, share[i].throughput_frac, share[i].floor_frac);
	}
	for (int r = 0; r < N_ROWS; r++)
		printf("feed %d: %.1f W, one kilowatt more is worth %.4f\n", r, row[r].power_w, 1000 * row[r].price);
	printf("budget: %.1f W of %.1f W, one kilowatt more is worth %.4f\n", row[N_ROWS].power_w, BUDGET_W,
	       1000 * row[N_ROWS].price);
	printf("%s: value %.6f on the trusted curves, no division has more than %.6f\n",
	       ww_outcome_name((enum ww_outcome)result.outcome), result.value, result.bound);
}

static ww_status divide(const struct ww_curve *curves, struct ww_error *err)
{
	/* In order: id, GPUs, entries of rows, tier, weight, floor, least and most W per GPU, curve, rows. */
	const struct ww_alloc_job jobs[N_JOBS] = {{1, 16, 1, 1, 16, 0.75, 200, 0, &curves[0], on_feed_0},
	                                          {2, 8, 1, 3, 8, 0.50, 200, 0, &curves[1], on_feed_1},
	                                          {3, 8, 2, 2, 8, 0.50, 200, 0, &curves[2], on_both}};
	const struct ww_alloc_row rows[N_ROWS] = {{9200}, {5000}};
	const struct ww_alloc_problem problem = {jobs, N_JOBS, rows, N_ROWS, BUDGET_W, WW_OBJECTIVE_RELATIVE, 0, 0};
	ww_alloc *alloc;
	ww_status status = ww_alloc_create(&alloc, err);
	if (status)
		return status;
	status = ww_alloc_set(alloc, &problem, err);
	if (!status) {
		ww_alloc_run(alloc, 100);
		print_division(alloc, jobs);
	}
	ww_alloc_destroy(alloc);
	return status;
}

int main(void)
{
	struct ww_error error = {WW_OK, ""};
	struct ww_curve curves[N_JOBS];

	if (measure(curves, &error) || divide(curves, &error)) {
		fprintf(stderr, "divide: %s\n", error.text);
		return 1;
	}
	return 0;
}
