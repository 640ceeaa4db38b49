/* SPDX-License-Identifier: Apache-2.0 */
/* What a mapping may hold, told by a table. */
#include "files/yaml_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FIELDS_MAX 32

struct text {
	char *to;
	size_t size, used;
};

/* What does not fit is left out. */
static void add_text(struct text *text, const char *more)
{
	size_t n = strlen(more);
	if (n < text->size - text->used) {
		memcpy(text->to + text->used, more, n + 1);
		text->used += n;
	}
}

static const char *form_text(const struct ww_yaml_node *node)
{
	static const char *const texts[] = {"a text", "a list", "keys with values"};
	return node->is_null ? "empty" : texts[node->form];
}

static enum ww_unit unit_of(enum ww_yaml_type type)
{
	switch (type) {
	case WW_YAML_COUNT:
		return WW_UNIT_WHOLE;
	case WW_YAML_PERCENT:
		return WW_UNIT_PERCENT;
	case WW_YAML_POWER:
		return WW_UNIT_POWER;
	case WW_YAML_DURATION:
		return WW_UNIT_DURATION;
	default:
		return WW_UNIT_NONE;
	}
}

static const char *remedy_of(const struct ww_yaml_field *field)
{
	switch (field->type) {
	case WW_YAML_NODE:
		return "write a name, or a list with '- ' before each entry";
	case WW_YAML_ITEMS:
		return "write a list with '- ' before each entry";
	case WW_YAML_NAME:
		return "write a name";
	case WW_YAML_YES:
		return "write yes or no";
	case WW_YAML_WORD:
		return field->rule;
	case WW_YAML_KEYS:
		return "write its keys below it, indented, or in braces";
	default:
		return ww_unit_remedy(unit_of(field->type));
	}
}

void ww_yaml_label(char label[WW_YAML_LABEL_MAX], const char *parent, const struct ww_yaml_table *table,
                   const struct ww_yaml_node *node, size_t number)
{
	char shown[48];
	const struct ww_yaml_node *title = node->form == WW_YAML_MAP && table->title ? node->first : NULL;
	while (title && strcmp(title->key, table->title) != 0)
		title = title->next;
	if (!title || title->form != WW_YAML_TEXT || title->is_null || title->n == 0) {
		snprintf(label, WW_YAML_LABEL_MAX, "%s%s %zu: ", parent, table->word, number);
		return;
	}
	ww_shorten(shown, sizeof shown, title->text);
	snprintf(label, WW_YAML_LABEL_MAX, "%s%s '%s': ", parent, table->word, shown);
}

size_t ww_yaml_line(const struct ww_yaml_node *map, const char *key)
{
	for (const struct ww_yaml_node *value = map->first; value; value = value->next)
		if (strcmp(value->key, key) == 0)
			return value->line;
	return map->line;
}

/* ---- One value --------------------------------------------------------------------------------------------------- */

struct spot {
	const struct ww_yaml *yaml;
	const struct ww_yaml_node *node;
	const char *label;
	const struct ww_yaml_field *field;
};

static ww_status fail_value(const struct spot *s, ww_status code, const char *what, const char *remedy)
{
	char shown[48];
	if (s->node->form != WW_YAML_TEXT || s->node->is_null || s->node->n == 0)
		return ww_yaml_fail(s->yaml, code, s->node->line, "%s%s: %s; %s", s->label, s->field->key, what,
		                    remedy);
	ww_shorten(shown, sizeof shown, s->node->text);
	return ww_yaml_fail(s->yaml, code, s->node->line, "%s%s: '%s' %s; %s", s->label, s->field->key, shown, what,
	                    remedy);
}

static ww_status check_form(const struct spot *s)
{
	const struct ww_yaml_node *node = s->node;
	enum ww_yaml_form wanted = s->field->type == WW_YAML_ITEMS ? WW_YAML_LIST : WW_YAML_TEXT;
	char text[160];
	bool is_empty = node->form == WW_YAML_TEXT ? node->is_null || node->n == 0 : node->n == 0;
	if (is_empty) {
		snprintf(text, sizeof text, "%s%s", remedy_of(s->field),
		         s->field->required ? "" : ", or remove the key");
		return fail_value(s, WW_ERR_INVALID, "is empty", text);
	}
	if (s->field->type == WW_YAML_NODE || s->field->type == WW_YAML_KEYS || node->form == wanted)
		return WW_OK;
	snprintf(text, sizeof text, "is %s, not %s", form_text(node),
	         wanted == WW_YAML_LIST ? "a list" : "a single value");
	return ww_yaml_fail(s->yaml, WW_ERR_INVALID, node->line, "%s%s: %s; %s", s->label, s->field->key, text,
	                    remedy_of(s->field));
}

static ww_status read_number(const struct spot *s, void *member)
{
	const struct ww_yaml_field *field = s->field;
	double value;
	enum ww_number_fault fault = ww_number_read_unit(s->node->text, s->node->n, unit_of(field->type), &value);
	if (fault != WW_NUMBER_OK)
		return fail_value(s, WW_ERR_INVALID, ww_unit_fault_text(fault), remedy_of(field));
	if (!(value >= field->least && value <= field->most))
		return fail_value(s, WW_ERR_RANGE, field->rule, remedy_of(field));
	if (field->type == WW_YAML_COUNT)
		*(uint32_t *)member = (uint32_t)value;
	else if (field->type == WW_YAML_DURATION)
		*(int64_t *)member = llround(value * 1e6);
	else
		*(double *)member = value;
	return WW_OK;
}

static ww_status read_yes(const struct spot *s, bool *member)
{
	bool yes = strcmp(s->node->text, "yes") == 0;
	if (!yes && strcmp(s->node->text, "no") != 0)
		return fail_value(s, WW_ERR_INVALID, "is neither yes nor no", remedy_of(s->field));
	*member = yes;
	return WW_OK;
}

/* The words stand in the rule as people read them. */
static ww_status read_word(const struct spot *s, uint32_t *member)
{
	const char *word = s->field->rule + strlen("write ");
	for (uint32_t number = 0; *word; number++) {
		size_t n = strcspn(word, ", ");
		if (n == s->node->n && memcmp(word, s->node->text, n) == 0) {
			*member = number;
			return WW_OK;
		}
		word += n;
		word += strspn(word, ", ");
		word += strncmp(word, "or ", 3) == 0 ? 3 : 0;
	}
	return fail_value(s, WW_ERR_INVALID, "is not one of its words", s->field->rule);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

ww_status ww_yaml_read_name(const struct ww_yaml *yaml, const struct ww_yaml_node *node, const char *label,
                            const char **out)
{
	if (node->form != WW_YAML_TEXT)
		return ww_yaml_fail(yaml, WW_ERR_INVALID, node->line, "%sis %s, not a name; write one name", label,
		                    form_text(node));
	if (node->is_null || node->n == 0)
		return ww_yaml_fail(yaml, WW_ERR_INVALID, node->line, "%sis empty; write a name", label);
	if (node->n > WW_YAML_NAME_MAX)
		return ww_yaml_fail(yaml, WW_ERR_INVALID, node->line, "%sis longer than %d bytes; shorten it", label,
		                    WW_YAML_NAME_MAX);
	if (is_blank(node->text[0]) || is_blank(node->text[node->n - 1]))
		return ww_yaml_fail(yaml, WW_ERR_INVALID, node->line, "%shas blanks at its ends; remove them", label);
	*out = node->text;
	return WW_OK;
}

static ww_status read_value(const struct spot *s, void *member)
{
	char label[WW_YAML_LABEL_MAX + 32];
	ww_status status = check_form(s);
	if (status)
		return status;
	switch (s->field->type) {
	case WW_YAML_NODE:
	case WW_YAML_ITEMS:
	case WW_YAML_KEYS:
		*(const struct ww_yaml_node **)member = s->node;
		return WW_OK;
	case WW_YAML_NAME:
		snprintf(label, sizeof label, "%s%s: ", s->label, s->field->key);
		return ww_yaml_read_name(s->yaml, s->node, label, member);
	case WW_YAML_YES:
		return read_yes(s, member);
	case WW_YAML_WORD:
		return read_word(s, member);
	default:
		return read_number(s, member);
	}
}

ww_status ww_yaml_read_value(const struct ww_yaml *yaml, const struct ww_yaml_node *node,
                             const struct ww_yaml_field *field, const char *label, void *out)
{
	struct spot spot = {yaml, node, label, field};
	return read_value(&spot, out);
}

/* ---- One mapping ------------------------------------------------------------------------------------------------- */

static void list_keys(const struct ww_yaml_table *table, char *to, size_t size)
{
	struct text text = {to, size, 0};
	for (size_t i = 0; i < table->n; i++) {
		add_text(&text, i ? ", " : "");
		add_text(&text, table->fields[i].key);
	}
}

static size_t find_field(const struct ww_yaml_table *table, const char *key)
{
	size_t i = 0;
	while (i < table->n && strcmp(table->fields[i].key, key) != 0)
		i++;
	return i;
}

static ww_status unknown_key(const struct ww_yaml *yaml, const struct ww_yaml_node *value,
                             const struct ww_yaml_table *table, const char *label)
{
	char shown[48], keys[200];
	ww_shorten(shown, sizeof shown, value->key);
	list_keys(table, keys, sizeof keys);
	return ww_yaml_fail(yaml, WW_ERR_INVALID, value->key_line, "%s%s: unknown key; the keys here are %s", label,
	                    shown, keys);
}

ww_status ww_yaml_read_map(const struct ww_yaml *yaml, const struct ww_yaml_node *node,
                           const struct ww_yaml_table *table, const char *label, void *out)
{
	size_t seen[FIELDS_MAX] = {0}; /* line of the key, 0 = not there */
	char keys[200];
	if (node->form != WW_YAML_MAP) {
		list_keys(table, keys, sizeof keys);
		return ww_yaml_fail(yaml, WW_ERR_INVALID, node->line, "%sis %s, not keys with values; the keys are %s",
		                    label, form_text(node), keys);
	}
	for (const struct ww_yaml_node *value = node->first; value; value = value->next) {
		size_t i = find_field(table, value->key);
		if (i == table->n)
			return unknown_key(yaml, value, table, label);
		const struct ww_yaml_field *field = &table->fields[i];
		if (seen[i])
			return ww_yaml_fail(yaml, WW_ERR_INVALID, value->key_line,
			                    "%s%s: is already on line %zu; remove one of them", label, field->key,
			                    seen[i]);
		seen[i] = value->key_line;
		struct spot spot = {yaml, value, label, field};
		ww_status status = read_value(&spot, (char *)out + field->offset);
		if (status)
			return status;
	}
	for (size_t i = 0; i < table->n; i++)
		if (table->fields[i].required && !seen[i])
			return ww_yaml_fail(yaml, WW_ERR_INVALID, node->line, "%s%s: is missing; %s", label,
			                    table->fields[i].key, remedy_of(&table->fields[i]));
	return WW_OK;
}

/* ---- Names that were meant, perhaps ------------------------------------------------------------------------------ */

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static void list_names(const char *const *names, size_t n, const char *last, struct text *to)
{
	char shown[48];
	for (size_t i = 0; i < n; i++) {
		ww_shorten(shown, sizeof shown, names[i]);
		add_text(to, i == 0 ? " '" : i + 1 < n ? ", '" : last);
		add_text(to, shown);
		add_text(to, "'");
	}
}

void ww_near_text(const struct ww_near *near, const char *word, char *to, size_t size)
{
	size_t shown = least(near->n_all, WW_NEAR_MAX);
	struct text text = {to, size, 0};
	*to = '\0';
	if (near->n > 0) {
		add_text(&text, "did you mean");
		list_names(near->names, near->n, " or '", &text);
		add_text(&text, "?");
	} else if (shown > 0) {
		add_text(&text, "the file has");
		list_names(near->first, shown, shown < near->n_all ? ", '" : " and '", &text);
		add_text(&text, shown < near->n_all ? " and others" : "");
	} else {
		add_text(&text, "define it under '");
		add_text(&text, word);
		add_text(&text, "'");
	}
}
