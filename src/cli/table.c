/* SPDX-License-Identifier: Apache-2.0 */
/* A plain table: cells are collected row by row, columns get the width of their widest cell. */
#include "cli/cli_internal.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CELL_WIDTH 72
#define GAP 2

struct ww_table {
	const struct ww_column *columns;
	size_t n_columns;
	char **cells;
	size_t n_cells, room;
};

ww_table *ww_table_create(const struct ww_column *columns, size_t n)
{
	ww_table *table = ww_cli_alloc(1, sizeof(*table));
	table->columns = columns;
	table->n_columns = n;
	return table;
}

void ww_table_destroy(ww_table *table)
{
	if (!table)
		return;
	for (size_t i = 0; i < table->n_cells; i++)
		free(table->cells[i]);
	free(table->cells);
	free(table);
}

static void add_cell(ww_table *table, const char *text)
{
	if (table->n_cells == table->room) {
		size_t room = table->room ? 2 * table->room : 64;
		char **cells = ww_cli_alloc(room, sizeof(*cells));
		if (table->n_cells > 0)
			memcpy(cells, table->cells, table->n_cells * sizeof(*cells));
		free(table->cells);
		table->cells = cells;
		table->room = room;
	}
	table->cells[table->n_cells++] = ww_text_clean(text, MAX_CELL_WIDTH);
}

void ww_table_text(ww_table *table, const char *format, ...)
{
	char *text = NULL;
	va_list args;
	va_start(args, format);
	int length = vasprintf(&text, format, args);
	va_end(args);
	add_cell(table, length < 0 ? "?" : text);
	if (length >= 0)
		free(text);
}

void ww_table_number(ww_table *table, double value, int decimals)
{
	if (isnan(value))
		add_cell(table, "-");
	else
		ww_table_text(table, "%.*f", decimals, fabs(value) < 0.5 * pow(10, -decimals) ? 0.0 : value);
}

void ww_table_significant(ww_table *table, double value, int digits)
{
	int before = value != 0 && isfinite(value) ? (int)floor(log10(fabs(value))) + 1 : 1;
	int decimals = digits - before;
	ww_table_number(table, value, decimals < 0 ? 0 : decimals > 9 ? 9 : decimals);
}

static const char *cell_at(const ww_table *table, size_t row, size_t column)
{
	size_t i = row * table->n_columns + column;
	return i < table->n_cells ? table->cells[i] : "";
}

static size_t column_width(const ww_table *table, size_t column)
{
	size_t width = ww_text_width(table->columns[column].head), unit = ww_text_width(table->columns[column].unit);
	width = unit > width ? unit : width;
	for (size_t row = 0; row * table->n_columns < table->n_cells; row++) {
		size_t cell = ww_text_width(cell_at(table, row, column));
		width = cell > width ? cell : width;
	}
	return width;
}

/* A cell; `owed` are the blanks due before it, so that no line ends in blanks. */
static void print_cell(FILE *out, const char *text, int align, size_t width, size_t *owed)
{
	size_t blanks = width - ww_text_width(text);
	if (align == WW_RIGHT)
		*owed += blanks;
	if (*text) {
		fprintf(out, "%*s%s", (int)*owed, "", text);
		*owed = 0;
	} else if (align == WW_RIGHT) {
		blanks = 0;
	}
	*owed += (align == WW_LEFT ? blanks : 0) + GAP;
}

static void print_line(const ww_table *table, FILE *out, const size_t *widths, size_t row, int header)
{
	size_t owed = 0;
	for (size_t i = 0; i < table->n_columns; i++) {
		const struct ww_column *c = &table->columns[i];
		const char *text = header == 1 ? c->head : header == 2 ? c->unit : cell_at(table, row, i);
		print_cell(out, text, c->align, widths[i], &owed);
	}
	fputc('\n', out);
}

void ww_table_print(const ww_table *table, FILE *out)
{
	size_t *widths = ww_cli_alloc(table->n_columns, sizeof(*widths));
	for (size_t i = 0; i < table->n_columns; i++)
		widths[i] = column_width(table, i);
	print_line(table, out, widths, 0, 1);
	print_line(table, out, widths, 0, 2);
	for (size_t row = 0; row * table->n_columns < table->n_cells; row++)
		print_line(table, out, widths, row, 0);
	free(widths);
}
