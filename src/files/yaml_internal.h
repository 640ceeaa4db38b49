/* SPDX-License-Identifier: Apache-2.0 */
/*
 * yaml.c: one YAML document as a tree of texts, and tables that say which keys a mapping may hold.
 *
 * Everything is text until a table says what it is: no number, truth value or date is guessed. Refused, with the line:
 * anchors and aliases, tags, keys that are not plain texts, a second document, texts with control characters or line
 * breaks, and whatever is beyond the bounds below. A mistake is one line:
 *
 *     FILE: line N: FIELD: WHAT IS WRONG; REMEDY
 */
#ifndef WW_FILES_YAML_INTERNAL_H
#define WW_FILES_YAML_INTERNAL_H

#include "files/files_internal.h"

#define WW_YAML_BYTES_MAX (16u << 20)
#define WW_YAML_NODES_MAX (1u << 20)
#define WW_YAML_DEPTH_MAX 16
#define WW_YAML_NAME_MAX 512 /* bytes of a name */
#define WW_YAML_LABEL_MAX 160

enum ww_yaml_form { WW_YAML_TEXT, WW_YAML_LIST, WW_YAML_MAP };

struct ww_yaml_node {
	enum ww_yaml_form form;
	bool is_null;     /* a text without quotes that is empty, ~ or null */
	size_t line, n;   /* n: bytes of a text, items of a list, keys of a mapping */
	const char *text; /* of a text */
	const char *key;  /* of a mapping's value */
	size_t key_line;
	const struct ww_yaml_node *first, *next; /* items of a list or values of a mapping, in file order */
};

struct ww_yaml {
	char shown[128]; /* name of the file for messages, shortened at its front */
	struct ww_error *err;
	const struct ww_yaml_node *root; /* a mapping */
	struct ww_yaml_block *blocks;    /* hold the nodes and texts */
};

/*
 * Reads the whole stream. `kind` is the format in a first comment "# wattweir KIND 1", which is optional; another version
 * is WW_ERR_UNSUPPORTED. Ends with ww_yaml_finish, also after a failure. `err` is kept for the calls below.
 * WW_ERR_INVALID a mistake, WW_ERR_NO_DATA nothing in the file, WW_ERR_IO, WW_ERR_NOMEM.
 */
ww_status ww_yaml_load(struct ww_yaml *yaml, FILE *in, const char *name, const char *kind, struct ww_error *err)
	WW_MUST_CHECK;
void ww_yaml_finish(struct ww_yaml *yaml);

/* Opens a file for reading; the path "-" is standard input. NULL after a failure, told in *status and err. */
FILE *ww_yaml_open(const char *path, ww_status *status, struct ww_error *err) WW_MUST_CHECK;

/* Fails with "FILE: line N: " before the text, or "FILE: " where `line` is 0. */
ww_status ww_yaml_fail(const struct ww_yaml *yaml, ww_status code, size_t line, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
ww_status ww_yaml_no_memory(const struct ww_yaml *yaml);

/* ---- Tables ------------------------------------------------------------------------------------------------------ */

enum ww_yaml_type {
	WW_YAML_NODE,     /* const struct ww_yaml_node *, not empty, of any form */
	WW_YAML_ITEMS,    /* const struct ww_yaml_node *, a list with at least one item */
	WW_YAML_NAME,     /* const char *: 1 to 512 bytes without blanks at the ends; lives as long as the tree */
	WW_YAML_COUNT,    /* uint32_t */
	WW_YAML_NUMBER,   /* double */
	WW_YAML_PERCENT,  /* double, a fraction */
	WW_YAML_POWER,    /* double, watts */
	WW_YAML_DURATION, /* int64_t, microseconds; least and most are seconds */
	WW_YAML_YES,      /* bool: yes or no */
	WW_YAML_WORD,     /* uint32_t: which one of the words in `rule`, "write red, green or blue" */
	WW_YAML_KEYS      /* const struct ww_yaml_node *, a mapping with at least one key */
};

struct ww_yaml_field {
	const char *key;
	enum ww_yaml_type type;
	bool required;
	size_t offset;      /* of the member in the caller's struct; it is untouched when the key is not there */
	double least, most; /* of a number, both allowed */
	const char *rule;   /* "must be ...", when it is not; of a word "write ..." */
};

struct ww_yaml_table {
	const char *word;  /* what one such mapping is called: "row" */
	const char *title; /* key of the name by which messages call it, or NULL */
	const struct ww_yaml_field *fields;
	size_t n;
};

/*
 * Reads a mapping by its table into `out`. Unknown, double and missing keys and wrong values are errors, the first in
 * the file first. `label` stands before the key in messages; "" for the root.
 */
ww_status ww_yaml_read_map(const struct ww_yaml *yaml, const struct ww_yaml_node *node,
                           const struct ww_yaml_table *table, const char *label, void *out) WW_MUST_CHECK;

/* Reads one value by its field, whose offset is not used; `label` as above. */
ww_status ww_yaml_read_value(const struct ww_yaml *yaml, const struct ww_yaml_node *node,
                             const struct ww_yaml_field *field, const char *label, void *out) WW_MUST_CHECK;

/* Reads a text as WW_YAML_NAME does; `label` is the whole field and ": ". */
ww_status ww_yaml_read_name(const struct ww_yaml *yaml, const struct ww_yaml_node *node, const char *label,
                            const char **out) WW_MUST_CHECK;

/* "row 'rack-1': ", or "row 3: " where it has no usable title, behind `parent`; `number` counts from 1. */
void ww_yaml_label(char label[WW_YAML_LABEL_MAX], const char *parent, const struct ww_yaml_table *table,
                   const struct ww_yaml_node *node, size_t number);

/* Line of the value with this key, or of the mapping where it has none. */
size_t ww_yaml_line(const struct ww_yaml_node *map, const char *key);

/* ---- Names that were meant, perhaps ------------------------------------------------------------------------------ */

/* "did you mean 'a' or 'b'?", or some names where none is near, or "define it under 'WORD'" where there are none. */
void ww_near_text(const struct ww_near *near, const char *word, char *to, size_t size);

#endif
