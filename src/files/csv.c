/* SPDX-License-Identifier: Apache-2.0 */
#include "files/files_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_SIZE (2 * WW_CSV_LINE_MAX)

size_t ww_blank(const char *text)
{
	if (*text == ' ' || *text == '\t')
		return 1;
	return text[0] == '\xC2' && text[1] == '\xA0' ? 2 : 0;
}

static char *skip_blanks(char *text)
{
	for (size_t n; (n = ww_blank(text)) > 0;)
		text += n;
	return text;
}

char *ww_trim(char *text)
{
	text = skip_blanks(text);
	size_t length = strlen(text);
	for (;;) {
		if (length > 0 && ww_blank(text + length - 1) == 1)
			length--;
		else if (length > 1 && ww_blank(text + length - 2) == 2)
			length -= 2;
		else
			break;
	}
	text[length] = '\0';
	return text;
}

void ww_shorten(char *to, size_t size, const char *text)
{
	size_t left = strlen(text), kept = 0;
	if (left < size) {
		memcpy(to, text, left + 1);
		return;
	}
	for (;;) {
		size_t n = ww_utf8_char(text + kept, left - kept);
		n = n ? n : 1;
		if (kept + n + sizeof "..." > size)
			break;
		kept += n;
	}
	memcpy(to, text, kept);
	memcpy(to + kept, "...", sizeof "...");
}

void ww_shorten_path(char *to, size_t size, const char *name)
{
	size_t length = strlen(name);
	if (length < size) {
		memcpy(to, name, length + 1);
		return;
	}
	const char *tail = name + length - (size - sizeof "...");
	while (((unsigned char)*tail & 0xC0) == 0x80)
		tail++;
	snprintf(to, size, "...%s", tail);
}

ww_status ww_csv_init(struct ww_csv *csv, FILE *in, const char *name, struct ww_error *err)
{
	*csv = (struct ww_csv){.in = in};
	ww_shorten_path(csv->shown, sizeof csv->shown, name);
	csv->buffer = malloc(BUFFER_SIZE + 1);
	if (!csv->buffer)
		return ww_fail(err, WW_ERR_NOMEM, "%s: out of memory", csv->shown);
	return WW_OK;
}

void ww_csv_finish(struct ww_csv *csv)
{
	free(csv->buffer);
	csv->buffer = NULL;
}

ww_status ww_csv_fail(const struct ww_csv *csv, struct ww_error *err, ww_status code, const char *format, ...)
{
	char text[sizeof err->text];
	va_list args;

	va_start(args, format);
	int n = vsnprintf(text, sizeof text, format, args);
	va_end(args);
	return ww_fail(err, code, "%s: line %zu: %s", csv->shown, csv->line, n < 0 ? "?" : text);
}

/* The first bytes tell what else the file may be; also steps over a byte order mark of UTF-8. */
static ww_status check_start(struct ww_csv *csv, struct ww_error *err)
{
	const unsigned char *b = (const unsigned char *)csv->buffer;
	size_t n = csv->end;
	if (n >= 2 && ((b[0] == 0xFF && b[1] == 0xFE) || (b[0] == 0xFE && b[1] == 0xFF) || !b[0] != !b[1]))
		return ww_fail(err, WW_ERR_INVALID,
		               "%s: line 1: the file is UTF-16, not UTF-8; save it as UTF-8, or run "
		               "iconv -f UTF-16 -t UTF-8",
		               csv->shown);
	if (n >= 2 && b[0] == 0x1F && b[1] == 0x8B)
		return ww_fail(err, WW_ERR_INVALID,
		               "%s: line 1: the file is compressed, not CSV text; run gunzip first", csv->shown);
	if (n >= 4 && memcmp(b, "PK\3\4", 4) == 0)
		return ww_fail(err, WW_ERR_INVALID,
		               "%s: line 1: the file is a spreadsheet or zip archive, not CSV text; "
		               "export it as CSV",
		               csv->shown);
	if (n >= 3 && memcmp(b, "\xEF\xBB\xBF", 3) == 0)
		csv->start = 3;
	return WW_OK;
}

static ww_status fill(struct ww_csv *csv, struct ww_error *err)
{
	bool first = csv->line == 0 && csv->end == 0;
	memmove(csv->buffer, csv->buffer + csv->start, csv->end - csv->start);
	csv->end -= csv->start;
	csv->start = 0;

	errno = 0;
	size_t want = BUFFER_SIZE - csv->end, got = fread(csv->buffer + csv->end, 1, want, csv->in);
	if (got < want && ferror(csv->in))
		return ww_fail(err, WW_ERR_IO, "%s: cannot be read behind line %zu: %m; check the file and its disk",
		               csv->shown, csv->line);
	csv->at_end = got < want;
	csv->end += got;
	return first ? check_start(csv, err) : WW_OK;
}

static ww_status too_long(const struct ww_csv *csv, struct ww_error *err)
{
	if (memchr(csv->buffer + csv->start, '\0', WW_CSV_LINE_MAX))
		return ww_csv_fail(csv, err, WW_ERR_INVALID,
		                   "NUL bytes: the file is not CSV text; export it as UTF-8 CSV");
	if (memchr(csv->buffer + csv->start, '\r', WW_CSV_LINE_MAX))
		return ww_csv_fail(csv, err, WW_ERR_INVALID,
		                   "lone carriage return; convert the line ends with "
		                   "tr '\\r' '\\n'");
	return ww_csv_fail(csv, err, WW_ERR_INVALID,
	                   "the line is longer than %d bytes; check that the file is a CSV table with "
	                   "one row per line",
	                   WW_CSV_LINE_MAX);
}

/* Takes one line out of the buffer, NUL in place of its end; *line is NULL behind the last. */
static ww_status take_line(struct ww_csv *csv, char **line, size_t *length, struct ww_error *err)
{
	char *end;
	*line = NULL;
	for (;;) {
		size_t have = csv->end - csv->start;
		end = memchr(csv->buffer + csv->start, '\n', have);
		if (end || have > WW_CSV_LINE_MAX || csv->at_end)
			break;
		ww_status status = fill(csv, err);
		if (status)
			return status;
	}
	if (!end && csv->start == csv->end)
		return WW_OK;
	csv->line++;
	*line = csv->buffer + csv->start;
	*length = end ? (size_t)(end - *line) : csv->end - csv->start;
	if (*length > WW_CSV_LINE_MAX)
		return too_long(csv, err);
	csv->start += *length + (end != NULL);
	(*line)[*length] = '\0';
	return WW_OK;
}

static ww_status check_control(const struct ww_csv *csv, unsigned char c, size_t at, struct ww_error *err)
{
	if (c == '\0')
		return ww_csv_fail(csv, err, WW_ERR_INVALID,
		                   "NUL byte at byte %zu: the file is not CSV text; export it as "
		                   "UTF-8 CSV",
		                   at);
	if (c == '\r')
		return ww_csv_fail(csv, err, WW_ERR_INVALID,
		                   "lone carriage return at byte %zu; convert the line ends with "
		                   "tr '\\r' '\\n'",
		                   at);
	return ww_csv_fail(csv, err, WW_ERR_INVALID, "control character 0x%02X at byte %zu; remove it", c, at);
}

static ww_status check_text(const struct ww_csv *csv, const char *line, size_t length, struct ww_error *err)
{
	for (size_t i = 0; i < length;) {
		unsigned char c = (unsigned char)line[i];
		if ((c >= 0x20 && c < 0x7F) || c == '\t') {
			i++;
			continue;
		}
		if (c < 0x20 || c == 0x7F)
			return check_control(csv, c, i + 1, err);
		size_t n = ww_utf8_char(line + i, length - i);
		if (n == 0)
			return ww_csv_fail(csv, err, WW_ERR_INVALID,
			                   "byte %zu (0x%02X) is not UTF-8; save the file as UTF-8, or "
			                   "run iconv -f LATIN1 -t UTF-8",
			                   i + 1, c);
		if (ww_utf8_is_control(line + i, n))
			return ww_csv_fail(csv, err, WW_ERR_INVALID,
			                   "invisible control character at byte %zu; remove it", i + 1);
		i += n;
	}
	return WW_OK;
}

static ww_status take_quoted(struct ww_csv *csv, char **at, struct ww_error *err)
{
	char *from = *at + 1, *to = *at;
	csv->cells[csv->n_cells] = to;
	for (;; from++) {
		if (*from == '\0')
			return ww_csv_fail(csv, err, WW_ERR_INVALID,
			                   "column %zu: the quote is not closed; close it on the same "
			                   "line and write a quote inside as \"\"",
			                   csv->n_cells + 1);
		if (*from == '"' && *++from != '"')
			break;
		*to++ = *from;
	}
	from = skip_blanks(from);
	if (*from != '\0' && *from != ',')
		return ww_csv_fail(csv, err, WW_ERR_INVALID,
		                   "column %zu: text behind the closing quote; quote the whole cell "
		                   "and write a quote inside as \"\"",
		                   csv->n_cells + 1);
	*at = from;
	*to = '\0'; /* lies before `from`, which has passed two quotes */
	return WW_OK;
}

static ww_status take_plain(struct ww_csv *csv, char **at, struct ww_error *err)
{
	csv->cells[csv->n_cells] = *at;
	*at += strcspn(*at, ",\"");
	if (**at == '"')
		return ww_csv_fail(csv, err, WW_ERR_INVALID,
		                   "column %zu: a quote inside an unquoted cell; quote the whole cell "
		                   "and write a quote inside as \"\"",
		                   csv->n_cells + 1);
	return WW_OK;
}

/* A tab is fine around cells. Inside one it would be a control character in a name, or the real separator; a line that
 * is one cell is left to the reader of columns, who can tell. */
static ww_status check_tabs(const struct ww_csv *csv, struct ww_error *err)
{
	for (size_t i = 0; i < csv->n_cells && csv->n_cells > 1; i++)
		if (strchr(csv->cells[i], '\t'))
			return ww_csv_fail(csv, err, WW_ERR_INVALID,
			                   "column %zu: a tab inside the cell; separate cells by commas only", i + 1);
	return WW_OK;
}

static ww_status split(struct ww_csv *csv, char *at, struct ww_error *err)
{
	ww_status status;
	csv->n_cells = 0;
	for (;;) {
		if (csv->n_cells == WW_CSV_CELLS_MAX)
			return ww_csv_fail(csv, err, WW_ERR_INVALID,
			                   "more than %d columns; remove columns that are not needed",
			                   WW_CSV_CELLS_MAX);
		at = skip_blanks(at);
		status = *at == '"' ? take_quoted(csv, &at, err) : take_plain(csv, &at, err);
		if (status)
			return status;
		bool more = *at == ',';
		*at++ = '\0';
		csv->cells[csv->n_cells] = ww_trim(csv->cells[csv->n_cells]);
		csv->n_cells++;
		if (!more)
			return check_tabs(csv, err);
	}
}

ww_status ww_csv_next(struct ww_csv *csv, enum ww_csv_kind *kind, struct ww_error *err)
{
	char *line;
	size_t length;
	for (;;) {
		ww_status status = take_line(csv, &line, &length, err);
		if (status)
			return status;
		*kind = WW_CSV_END;
		if (!line)
			return WW_OK;
		if (length > 0 && line[length - 1] == '\r')
			line[--length] = '\0';
		status = check_text(csv, line, length, err);
		if (status)
			return status;
		if (line[0] == '#') {
			csv->comment = ww_trim(line + 1);
			*kind = WW_CSV_COMMENT;
			return WW_OK;
		}
		if (*skip_blanks(line) == '\0')
			continue;
		*kind = WW_CSV_ROW;
		return split(csv, line, err);
	}
}
