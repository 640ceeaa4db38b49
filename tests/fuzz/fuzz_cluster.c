/* SPDX-License-Identifier: Apache-2.0 */
/* The cluster reader on any bytes. What it accepts keeps every promise of files.h. */
#include "fuzz.h"

#include "files/files.h"

#include <math.h>

static void check_row(const struct ww_cluster_row *row)
{
	require(*row->name != '\0' && row->line > 0);
	check_text(row->name);
	require(row->limit_w > 0 && row->limit_w <= 1e10);
	require(row->fixed_w >= 0 && row->fixed_w <= row->limit_w);
}

static void check_job(const struct ww_cluster *c, const struct ww_cluster_job *j)
{
	require(*j->name != '\0' && *j->sweep != '\0' && j->line > 0);
	check_text(j->name);
	check_text(j->sweep);
	require(j->gpus > 0 && j->gpus <= 2147483648u && j->tier >= 0 && j->tier <= 3);
	require(j->floor_frac >= 0 && j->floor_frac <= 1 && j->weight > 0 && isfinite(j->weight));
	require(isnan(j->min_w) || (j->min_w > 0 && j->min_w <= 100000));
	require(isnan(j->max_w) || (j->max_w > 0 && j->max_w <= 100000));
	require(!(j->min_w > j->max_w));
	require((j->n_loads > 0) == (c->n_rows > 0) && (j->loads != NULL) == (c->n_rows > 0));
	for (size_t i = 0; i < j->n_loads; i++) {
		require(j->loads[i].row < c->n_rows && (i == 0 || j->loads[i].row > j->loads[i - 1].row));
		require(j->loads[i].gpus > 0 && j->loads[i].gpus <= j->gpus);
	}
}

static void check_cluster(const struct ww_cluster *c)
{
	require(strcmp(c->file, "fuzz.yaml") == 0 && c->n_jobs > 0);
	require((c->rows != NULL) == (c->n_rows > 0));
	for (size_t i = 0; i < c->n_rows; i++)
		check_row(&c->rows[i]);
	for (size_t i = 0; i < c->n_jobs; i++)
		check_job(c, &c->jobs[i]);
}

static void check_error(const struct ww_error *err, ww_status status)
{
	require(err->code == status && strncmp(err->text, "fuzz.yaml: line ", strlen("fuzz.yaml: line ")) == 0);
	check_text(err->text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ww_cluster cluster, untouched;
	struct ww_error err = {WW_OK, ""};
	FILE *in = fmemopen((void *)data, size, "r");
	if (!in)
		return 0;
	memset(&cluster, 0xA5, sizeof cluster);
	untouched = cluster;
	ww_status status = ww_cluster_parse(in, "fuzz.yaml", &cluster, &err);
	if (status == WW_OK) {
		check_cluster(&cluster);
		ww_cluster_finish(&cluster);
	} else {
		require(memcmp(&cluster, &untouched, sizeof cluster) == 0);
		check_error(&err, status);
	}
	(void)fclose(in);
	return 0;
}
