/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a cluster from a text in a test. */
#ifndef WW_TESTS_CLUSTER_TEXT_H
#define WW_TESTS_CLUSTER_TEXT_H

#include "files/files.h"

/* Lines 1 to 3, and the four behind them. */
#define SITE "rows:\n  - name: site\n    limit: 60 kW\n"
#define JOB "jobs:\n  - job: a\n    gpus: 8\n    on: site\n"

/* A text with its size, so that NUL bytes can stand in it. */
#define TEXT(t) t, sizeof(t) - 1

TEST_UNUSED static ww_status parse(const char *text, size_t size, struct ww_cluster *cluster, struct ww_error *err)
{
	FILE *in = fmemopen((void *)text, size, "r");
	assert_non_null(in);
	ww_status status = ww_cluster_parse(in, "t.yaml", cluster, err);
	assert_int_equal(fclose(in), 0);
	return status;
}

#endif
