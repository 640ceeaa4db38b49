/* SPDX-License-Identifier: Apache-2.0 */
/* The measured sweeps of a command: read, and narrowed to the wanted caps. */
#include "cli/cli_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static ww_status read_sweep(const struct ww_sweep_args *args, const char *name, struct ww_sweep *out,
                            struct ww_error *err)
{
	if (strcmp(name, "-") == 0)
		return ww_sweep_parse(stdin, "standard input", args->map, out, err);
	return ww_sweep_read(name, args->map, out, err);
}

static size_t pick_points(const struct ww_sweep_args *args, const struct ww_sweep_group *group,
                          struct ww_compare_job *job)
{
	struct ww_point *points = ww_cli_alloc(group->n_points, sizeof(*points));
	size_t n = 0;
	for (size_t i = 0; i < group->n_points; i++)
		if (group->points[i].cap_w >= args->cap_lo_w && group->points[i].cap_w <= args->cap_hi_w)
			points[n++] = group->points[i];
	*job = (struct ww_compare_job){.name = group->name, .points = points, .n = n};
	return n;
}

static size_t pick_jobs(const struct ww_sweep_args *args, struct ww_sweep_file *file)
{
	size_t n_points = 0;
	file->n_jobs = file->sweep.n_groups;
	file->jobs = ww_cli_alloc(file->n_jobs, sizeof(*file->jobs));
	for (size_t i = 0; i < file->n_jobs; i++)
		n_points += pick_points(args, &file->sweep.groups[i], &file->jobs[i]);
	return n_points;
}

/* Says which caps there are where none of them is wanted. */
static void complain_no_cap(const struct ww_sweep_args *args, const struct ww_sweep_file *file)
{
	double lo = INFINITY, hi = 0;
	for (size_t i = 0; i < file->sweep.n_groups; i++) {
		const struct ww_sweep_group *group = &file->sweep.groups[i];
		for (size_t k = 0; k < group->n_points; k++) {
			lo = fmin(lo, group->points[k].cap_w);
			hi = fmax(hi, group->points[k].cap_w);
		}
	}
	char wanted[80];
	if (isinf(args->cap_hi_w))
		snprintf(wanted, sizeof(wanted), "of %.10g W or more", args->cap_lo_w);
	else
		snprintf(wanted, sizeof(wanted), "from %.10g to %.10g W", args->cap_lo_w, args->cap_hi_w);
	ww_complain(args->who, "%s: no measurement has a cap %s; the caps here are %.10g to %.10g W: widen --caps",
	            file->name, wanted, lo, hi);
}

static bool load(const struct ww_sweep_args *args, const char *name, struct ww_sweep_file *file)
{
	struct ww_error err = {0};
	file->name = name;
	if (read_sweep(args, name, &file->sweep, &err) != WW_OK) {
		ww_complain(args->who, "%s", err.text);
		return false;
	}
	if (pick_jobs(args, file) == 0) {
		complain_no_cap(args, file);
		return false;
	}
	return true;
}

/* "-" is whatever standard input is. */
static bool is_file(const char *name, const struct stat *wanted)
{
	struct stat info;
	int failed = strcmp(name, "-") == 0 ? fstat(STDIN_FILENO, &info) : stat(name, &info);
	return !failed && info.st_dev == wanted->st_dev && info.st_ino == wanted->st_ino;
}

/* A picture may replace an older one, but nothing that is read or is no file. */
static bool check_plot(const struct ww_sweep_args *args)
{
	struct stat info;
	if (!args->plot || stat(args->plot, &info) != 0)
		return true;
	bool input = args->other_file && is_file(args->other_file, &info);
	for (size_t i = 0; i < args->n_files; i++)
		input = input || is_file(args->files[i], &info);
	if (!S_ISREG(info.st_mode))
		ww_complain(args->who, "--plot: '%s' is no regular file; name a picture to write", args->plot);
	else if (input)
		ww_complain(args->who, "--plot: '%s' is an input and would be overwritten; name another file",
		            args->plot);
	else if (ww_output_is_stdout(args->plot))
		ww_complain(args->who, "--plot: '%s' is standard output, where the report goes; name another file",
		            args->plot);
	else
		return true;
	return false;
}

struct ww_sweep_file *ww_sweep_files_create(const struct ww_sweep_args *args)
{
	if (!check_plot(args))
		return NULL;
	struct ww_sweep_file *files = ww_cli_alloc(args->n_files, sizeof(*files));
	for (size_t i = 0; i < args->n_files; i++) {
		if (!load(args, args->files[i], &files[i])) {
			ww_sweep_files_destroy(files, args->n_files);
			return NULL;
		}
	}
	return files;
}

void ww_sweep_files_destroy(struct ww_sweep_file *files, size_t n)
{
	if (!files)
		return;
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < files[i].n_jobs; j++)
			free((void *)files[i].jobs[j].points);
		free(files[i].jobs);
		ww_sweep_finish(&files[i].sweep);
	}
	free(files);
}
