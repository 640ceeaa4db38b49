/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of scenario*.c: one reader goes through the parts of the file; each part stands on those before it. */
#ifndef WW_FILES_SCENARIO_INTERNAL_H
#define WW_FILES_SCENARIO_INTERNAL_H

#include "files/yaml_internal.h"

#define WW_SCENARIO_ROWS_MAX 4096
#define WW_SCENARIO_NODES_MAX 16384
#define WW_SCENARIO_JOBS_MAX 16384
#define WW_SCENARIO_FAULTS_MAX 4096
#define WW_SCENARIO_FEEDS_MAX 4        /* rows that feed one row or node directly */
#define WW_SCENARIO_TIME_MAX_S 2678400 /* 744 h, 31 days */

#define WW_FIELD(type, member) offsetof(struct type, member)
#define WW_N_FIELDS(fields) (sizeof(fields) / sizeof(fields)[0])
#define WW_NOT_GIVEN UINT32_MAX

/* Rules that several tables share, with their bounds. */
#define WW_ANY_TIME 0, WW_SCENARIO_TIME_MAX_S, "must be 0 s to 744 h"
#define WW_SOME_TIME 1e-6, WW_SCENARIO_TIME_MAX_S, "must be above 0 and at most 744 h"
#define WW_ANY_POWER 0, 1e10, "must be 0 W to 10 GW"
#define WW_SOME_POWER 0.001, 1e10, "must be above 0 and at most 10 GW"
#define WW_GPU_POWER 0.001, 1e5, "must be above 0 and at most 100 kW for one GPU"
#define WW_ANY_PART 0, 1, "must be 0% to 100%"

/* Names of one kind, each once. */
struct ww_book {
	const char *word; /* "row" */
	struct ww_index index;
	struct ww_book_entry {
		const char *name; /* borrowed */
		size_t line;
	} * entries;
	size_t n;
};

/* What feeds one row or node, or `users` equal ones: those are spread evenly over `count` rows from `row` on. */
struct ww_scenario_feeds {
	uint32_t n, users;
	struct {
		uint32_t row, count;
		double frac;
	} feed[WW_SCENARIO_FEEDS_MAX];
};

struct ww_scenario_reader {
	struct ww_yaml yaml;
	struct ww_scenario s;
	double guard_frac;
	struct ww_book rows, nodes, jobs, events;
	struct ww_book row_entries; /* by the name that the file gives, also those of a count */
	struct ww_scenario_entry {
		const struct ww_yaml_node *map;
		uint32_t row, count;
	} * entries;                     /* as in row_entries */
	struct ww_scenario_feeds *feeds; /* per row */
	uint32_t *order;                 /* rows, each behind all rows that feed it */
	struct ww_scenario_use {         /* a job on a GPU */
		uint32_t job, next;      /* next use of this GPU + 1, 0 = none */
	} * uses;
	size_t n_uses;
	uint32_t *first_use; /* per GPU, as `next` */
};

/* Enters a name, or fails where it is already there. `line` is the name's. */
ww_status ww_book_add(struct ww_scenario_reader *r, struct ww_book *book, const char *name, size_t line,
                      const char *label) WW_MUST_CHECK;

/* Finds a name; `field` is the key that has it. */
ww_status ww_book_find(const struct ww_scenario_reader *r, const struct ww_book *book, const struct ww_yaml_node *field,
                       const char *label, uint32_t *item) WW_MUST_CHECK;

/* Finds a name where it may be there. */
bool ww_book_has(const struct ww_book *book, const char *name, uint32_t *item);

/* Copies a name, with "-NUMBER" behind it unless 0; it must be shorter than WW_NAME_MAX. */
ww_status ww_scenario_name(const struct ww_scenario_reader *r, const struct ww_yaml_node *map, const char *label,
                           uint32_t number, char **out) WW_MUST_CHECK;

/* The value with this key, or NULL. */
const struct ww_yaml_node *ww_scenario_value(const struct ww_yaml_node *map, const char *key);

/* The end of something that has an `end` or lasts `for` some time; -1 = not given. WW_NEVER_US with neither. */
struct ww_scenario_span {
	int64_t start_us, end_us, for_us;
	const char *end_key; /* "end" or "until" */
};
ww_status ww_scenario_end(const struct ww_scenario_reader *r, const struct ww_yaml_node *map, const char *label,
                          const struct ww_scenario_span *span, int64_t *end_us) WW_MUST_CHECK;

/* Fails unless something happens before the scenario ends. */
ww_status ww_scenario_within(const struct ww_scenario_reader *r, const struct ww_yaml_node *map, const char *label,
                             const char *key, int64_t at_us) WW_MUST_CHECK;

ww_status ww_scenario_rows(struct ww_scenario_reader *r, const struct ww_yaml_node *list) WW_MUST_CHECK;
ww_status ww_scenario_nodes(struct ww_scenario_reader *r, const struct ww_yaml_node *list) WW_MUST_CHECK;
ww_status ww_scenario_jobs(struct ww_scenario_reader *r, const struct ww_yaml_node *list) WW_MUST_CHECK;
ww_status ww_scenario_events(struct ww_scenario_reader *r, const struct ww_yaml_node *list) WW_MUST_CHECK;
ww_status ww_scenario_faults(struct ww_scenario_reader *r, const struct ww_yaml_node *list) WW_MUST_CHECK;
ww_status ww_scenario_modes(struct ww_scenario_reader *r, const struct ww_yaml_node *list) WW_MUST_CHECK;

#endif
