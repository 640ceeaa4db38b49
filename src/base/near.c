/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include <string.h>

#define NEAR_BYTES 64 /* of a name; the rest is not compared */

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool same(char a, char b)
{
	return lower(a) == lower(b);
}

/* Letters to add, drop, change or exchange with their neighbour; capitals do not count. */
static size_t distance(const char *a, const char *b)
{
	size_t rows[3][NEAR_BYTES + 1], n = strnlen(a, NEAR_BYTES), m = strnlen(b, NEAR_BYTES);
	for (size_t j = 0; j <= m; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= n; i++) {
		size_t *row = rows[i % 3];
		const size_t *above = rows[(i + 2) % 3], *above_that = rows[(i + 1) % 3];
		row[0] = i;
		for (size_t j = 1; j <= m; j++) {
			size_t change = above[j - 1] + !same(a[i - 1], b[j - 1]);
			row[j] = least(change, least(above[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
				row[j] = least(row[j], above_that[j - 2] + 1);
		}
	}
	return rows[n % 3][m];
}

void ww_near_add(struct ww_near *near, const char *name)
{
	size_t length = strnlen(near->wanted, NEAR_BYTES), d = distance(near->wanted, name);
	size_t i = near->n;
	if (near->n_all < WW_NEAR_MAX)
		near->first[near->n_all] = name;
	near->n_all++;
	if (d > 1 + length / 4 || d >= length)
		return;
	while (i > 0 && near->distance[i - 1] > d)
		i--;
	if (i == WW_NEAR_MAX)
		return;
	near->n = least(near->n + 1, WW_NEAR_MAX);
	for (size_t k = near->n - 1; k > i; k--) {
		near->names[k] = near->names[k - 1];
		near->distance[k] = near->distance[k - 1];
	}
	near->names[i] = name;
	near->distance[i] = d;
}
