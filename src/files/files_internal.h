/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the room: CSV lines, growing tables, and what the columns of a sweep mean. */
#ifndef WW_FILES_INTERNAL_H
#define WW_FILES_INTERNAL_H

#include "files/files.h"

/* Remedy where the one kind of file was given for the other. */
#define WW_SWAP "swap the arguments: the sweep is FILE, the cluster file stands behind --cluster"

/* ---- csv.c: rows of cells from a stream, in bounded memory ------------------------------------------------------- */

#define WW_CSV_LINE_MAX 65536 /* bytes of one line */
#define WW_CSV_CELLS_MAX 256

enum ww_csv_kind { WW_CSV_END, WW_CSV_COMMENT, WW_CSV_ROW };

struct ww_csv {
	FILE *in;
	char shown[128]; /* name of the file for messages, shortened at its front */
	char *buffer;
	size_t start, end; /* bytes of the buffer not yet taken */
	bool at_end;
	size_t line;         /* number of the line taken last, from 1 */
	const char *comment; /* WW_CSV_COMMENT: the text behind '#', blanks at both ends removed */
	size_t n_cells; /* WW_CSV_ROW: cells without quotes and without blanks at their ends; valid until the next row */
	char *cells[WW_CSV_CELLS_MAX];
};

ww_status ww_csv_init(struct ww_csv *csv, FILE *in, const char *name, struct ww_error *err) WW_MUST_CHECK;
void ww_csv_finish(struct ww_csv *csv);

/* The next comment or row; blank lines are skipped. The text is UTF-8 without control characters, or it is an error. */
ww_status ww_csv_next(struct ww_csv *csv, enum ww_csv_kind *kind, struct ww_error *err) WW_MUST_CHECK;

/* Fails with "FILE: line N: " before the text. */
ww_status ww_csv_fail(const struct ww_csv *csv, struct ww_error *err, ww_status code, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* `text` without blanks (space, tab, U+00A0) at its ends; cuts the text in place. */
char *ww_trim(char *text);

/* Bytes of the blank that begins here: space, tab or U+00A0; 0 when it is none. */
size_t ww_blank(const char *text);

/* ---- mark.c ---------------------------------------------------------------------------------------------------------- */

/* What a comment says of its file. */
struct ww_mark {
	char kind[16], version[24]; /* shortened where longer */
};

/* Reads "wattweir KIND VERSION", a comment without its '#', where KIND is one of wattweir's files. False for any other
 * comment, also where it ends behind the kind. */
bool ww_mark_read(const char *comment, struct ww_mark *out);

/* Copies `text` into `to` of `size` > 4 bytes for a message: what does not fit becomes "...", no character is broken. */
void ww_shorten(char *to, size_t size, const char *text);

/* The same for the name of a file, which keeps its end. */
void ww_shorten_path(char *to, size_t size, const char *name);

/* ---- tables.c ---------------------------------------------------------------------------------------------------- */

/* Makes room for element `n` of an array of elements of `size` bytes that is always extended one by one: the room doubles
 * at powers of two. Returns the array, perhaps elsewhere, or NULL without memory; `array` is then as it was. */
void *ww_grown(void *array, size_t n, size_t size) WW_MUST_CHECK;

/* The same in place for `count` elements at a time; false without memory. */
#define ww_grow(array, n, count)                                                                                       \
	({                                                                                                             \
		void *ww_larger_ = ww_grown((array), (n), (count) * sizeof *(array));                                  \
		if (ww_larger_)                                                                                        \
			(array) = ww_larger_;                                                                          \
		ww_larger_ != NULL;                                                                                    \
	})

/* A copy for free(), or NULL without memory. */
char *ww_copy_text(const char *text) WW_MUST_CHECK;

/* Finds items (numbers) by hash. All zero is an empty index. */
struct ww_index {
	struct ww_index_slot {
		uint64_t hash;
		size_t next_item; /* item + 1, 0 = free */
	} * slots;
	size_t size, used;
};

#define WW_INDEX_NONE SIZE_MAX

/* The item with this hash for which same(ctx, item) holds, or WW_INDEX_NONE. */
size_t ww_index_find(const struct ww_index *index, uint64_t hash, bool (*same)(const void *ctx, size_t item),
                     const void *ctx);

/* Adds an item that is not there yet. False without memory; the index is then as it was. */
bool ww_index_add(struct ww_index *index, uint64_t hash, size_t item) WW_MUST_CHECK;
void ww_index_finish(struct ww_index *index);

/* ---- layout.c: which column means what --------------------------------------------------------------------------- */

enum ww_role {
	WW_ROLE_GROUP,
	WW_ROLE_CAP,
	WW_ROLE_POWER,
	WW_ROLE_THROUGHPUT,
	WW_ROLE_REP,
	WW_ROLE_GPUS,
	WW_ROLE_GPU_MODEL,
	WW_ROLE_POWER_SE,
	WW_ROLE_THROUGHPUT_SE,
	WW_ROLE_THROTTLE,
	WW_ROLES
};

#define WW_GROUP_COLUMNS_MAX 16
#define WW_COLUMN_NONE SIZE_MAX

struct ww_layout {
	const char *format;      /* as in struct ww_sweep */
	bool inverse;            /* the throughput column is a time */
	size_t column[WW_ROLES]; /* WW_COLUMN_NONE when the file has none; unused for WW_ROLE_GROUP */
	size_t n_group, group[WW_GROUP_COLUMNS_MAX];
	size_t n_telemetry, telemetry[WW_CSV_CELLS_MAX];
	size_t n_columns;
	char *names[WW_CSV_CELLS_MAX];
	char *text; /* holds the names */
};

/*
 * Gives the columns of the header row just read by `csv` their roles. `map` may be NULL; `declared` says that the file
 * calls itself a wattweir sweep. On success ends with ww_layout_finish; on failure nothing is left.
 */
ww_status ww_layout_read(struct ww_layout *layout, const struct ww_csv *csv, const char *map, bool declared,
                         struct ww_error *err) WW_MUST_CHECK;
void ww_layout_finish(struct ww_layout *layout);

#endif
