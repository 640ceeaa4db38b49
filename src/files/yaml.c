/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From bytes to a tree, through libyaml's events. They tell anchors, aliases and tags before anything is made of them, and
 * the depth before it is gone down, so that no input takes more room than its size and WW_YAML_NODES_MAX allow.
 */
#include "files/yaml_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <yaml.h>

#define BLOCK_BYTES 65536

/* ---- Messages ---------------------------------------------------------------------------------------------------- */

ww_status ww_yaml_fail(const struct ww_yaml *yaml, ww_status code, size_t line, const char *format, ...)
{
	char text[sizeof yaml->err->text];
	va_list args;

	va_start(args, format);
	int n = vsnprintf(text, sizeof text, format, args);
	va_end(args);
	if (line == 0)
		return ww_fail(yaml->err, code, "%s: %s", yaml->shown, n < 0 ? "?" : text);
	return ww_fail(yaml->err, code, "%s: line %zu: %s", yaml->shown, line, n < 0 ? "?" : text);
}

ww_status ww_yaml_no_memory(const struct ww_yaml *yaml)
{
	return ww_yaml_fail(yaml, WW_ERR_NOMEM, 0, "out of memory");
}

FILE *ww_yaml_open(const char *path, ww_status *status, struct ww_error *err)
{
	struct stat info;
	char shown[128];
	*status = WW_OK;
	if (strcmp(path, "-") == 0)
		return stdin;
	ww_shorten_path(shown, sizeof shown, path);
	FILE *in = fopen(path, "rbe");
	if (!in && errno == ENOENT)
		*status = ww_fail(err, WW_ERR_NOT_FOUND, "%s: there is no such file; check the name", shown);
	else if (!in)
		*status = ww_fail(err, WW_ERR_IO, "%s: cannot be opened: %m; check its permissions", shown);
	if (in && fstat(fileno(in), &info) == 0 && S_ISDIR(info.st_mode)) {
		*status = ww_fail(err, WW_ERR_IO, "%s: is a directory, not a file; name a file in it", shown);
		(void)fclose(in);
		in = NULL;
	}
	return in;
}

/* ---- Room for nodes and texts ------------------------------------------------------------------------------------ */

struct ww_yaml_block {
	struct ww_yaml_block *next;
	size_t used, size;
	max_align_t room[];
};

static void *take_room(struct ww_yaml *yaml, size_t bytes)
{
	struct ww_yaml_block *block = yaml->blocks;
	bytes = (bytes + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
	if (!block || block->size - block->used < bytes) {
		size_t size = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
		block = malloc(sizeof *block + size);
		if (!block)
			return NULL;
		*block = (struct ww_yaml_block){yaml->blocks, 0, size};
		yaml->blocks = block;
	}
	void *room = (char *)block->room + block->used;
	block->used += bytes;
	return room;
}

void ww_yaml_finish(struct ww_yaml *yaml)
{
	while (yaml->blocks) {
		struct ww_yaml_block *next = yaml->blocks->next;
		free(yaml->blocks);
		yaml->blocks = next;
	}
	yaml->root = NULL;
}

/* ---- The bytes --------------------------------------------------------------------------------------------------- */

struct bytes {
	char *text;
	size_t length;
};

static ww_status read_bytes(const struct ww_yaml *yaml, FILE *in, struct bytes *bytes)
{
	size_t size = 0;
	for (;;) {
		if (bytes->length == size) {
			size = size ? 2 * size : BLOCK_BYTES;
			char *larger = realloc(bytes->text, size);
			if (!larger)
				return ww_yaml_no_memory(yaml);
			bytes->text = larger;
		}
		errno = 0;
		size_t want = size - bytes->length, got = fread(bytes->text + bytes->length, 1, want, in);
		bytes->length += got;
		if (got < want && ferror(in))
			return ww_yaml_fail(yaml, WW_ERR_IO, 0, "cannot be read: %m; check the file and its disk");
		if (bytes->length > WW_YAML_BYTES_MAX)
			return ww_yaml_fail(yaml, WW_ERR_INVALID, 0,
			                    "is longer than 16 MiB; check that it is the right file");
		if (got < want)
			return WW_OK;
	}
}

static ww_status check_start(const struct ww_yaml *yaml, const struct bytes *bytes)
{
	const unsigned char *b = (const unsigned char *)bytes->text;
	size_t n = bytes->length;
	if (n >= 2 && ((b[0] == 0xFF && b[1] == 0xFE) || (b[0] == 0xFE && b[1] == 0xFF) || !b[0] != !b[1]))
		return ww_yaml_fail(yaml, WW_ERR_INVALID, 1,
		                    "the file is UTF-16, not UTF-8; save it as UTF-8, or run "
		                    "iconv -f UTF-16 -t UTF-8");
	if (n >= 2 && b[0] == 0x1F && b[1] == 0x8B)
		return ww_yaml_fail(yaml, WW_ERR_INVALID, 1, "the file is compressed, not YAML text; run gunzip first");
	return WW_OK;
}

static ww_status bad_character(const struct ww_yaml *yaml, const char *line, size_t at, size_t number)
{
	unsigned char c = (unsigned char)line[at];
	if (c == '\0')
		return ww_yaml_fail(yaml, WW_ERR_INVALID, number,
		                    "NUL byte at byte %zu: the file is not YAML text; save it as UTF-8", at + 1);
	if (c == '\r')
		return ww_yaml_fail(yaml, WW_ERR_INVALID, number,
		                    "lone carriage return at byte %zu; convert the line ends with tr '\\r' '\\n'",
		                    at + 1);
	if (c < 0x20 || c == 0x7F)
		return ww_yaml_fail(yaml, WW_ERR_INVALID, number, "control character 0x%02X at byte %zu; remove it", c,
		                    at + 1);
	return ww_yaml_fail(yaml, WW_ERR_INVALID, number, "invisible control character at byte %zu; remove it", at + 1);
}

/* One line without its line feed. */
static ww_status check_line(const struct ww_yaml *yaml, const char *line, size_t length, size_t number)
{
	size_t blanks = 0;
	if (length > 0 && line[length - 1] == '\r')
		length--;
	while (blanks < length && line[blanks] == ' ')
		blanks++;
	if (blanks < length && line[blanks] == '\t')
		return ww_yaml_fail(yaml, WW_ERR_INVALID, number, "a tab in the indentation; indent with spaces");
	for (size_t i = blanks, n; i < length; i += n) {
		n = ww_utf8_char(line + i, length - i);
		if (n == 0)
			return ww_yaml_fail(yaml, WW_ERR_INVALID, number,
			                    "byte %zu (0x%02X) is not UTF-8; save the file as UTF-8, or run "
			                    "iconv -f LATIN1 -t UTF-8",
			                    i + 1, (unsigned char)line[i]);
		if (line[i] != '\t' && ww_utf8_is_control(line + i, n))
			return bad_character(yaml, line, i, number);
	}
	return WW_OK;
}

static ww_status is_a_sweep(const struct ww_yaml *yaml, const char *kind, size_t number)
{
	return ww_yaml_fail(yaml, WW_ERR_INVALID, number, "looks like a sweep, not a %s file; %s", kind,
	                    strcmp(kind, "cluster") == 0 ? WW_SWAP : "name another file");
}

/* A comment "# wattweir KIND VERSION" must name this kind and version; other comments are free. */
static ww_status check_mark(const struct ww_yaml *yaml, const char *comment, const char *kind, size_t number)
{
	struct ww_mark mark;
	if (*comment != '#' || !ww_mark_read(comment + 1, &mark))
		return WW_OK;
	if (strcmp(mark.kind, kind) != 0 && strcmp(mark.kind, "sweep") == 0)
		return is_a_sweep(yaml, kind, number);
	if (strcmp(mark.kind, kind) != 0)
		return ww_yaml_fail(yaml, WW_ERR_INVALID, number,
		                    "the file calls itself a wattweir %s, not a %s; name another file", mark.kind,
		                    kind);
	if (strcmp(mark.version, "1") != 0)
		return ww_yaml_fail(yaml, WW_ERR_UNSUPPORTED, number,
		                    "%s format '%s' is unknown; this program reads format 1: use a newer one", kind,
		                    mark.version);
	return WW_OK;
}

/* The comments before the first other line. */
static ww_status check_marks(const struct ww_yaml *yaml, const struct bytes *bytes, const char *kind)
{
	char comment[64];
	const char *line = bytes->text, *stop = bytes->text + bytes->length;
	for (size_t number = 1; line < stop && (*line == '#' || *line == '\n' || *line == '\r'); number++) {
		const char *end = memchr(line, '\n', (size_t)(stop - line));
		size_t length = (size_t)((end ? end : stop) - line);
		if (length > 0 && line[length - 1] == '\r')
			length--;
		length = length < sizeof comment ? length : sizeof comment - 1;
		memcpy(comment, line, length);
		comment[length] = '\0';
		ww_status status = check_mark(yaml, comment, kind, number);
		if (status)
			return status;
		line = end ? end + 1 : stop;
	}
	return WW_OK;
}

/* The first line that is no comment has commas, but nothing that a YAML file of keys begins with. */
static ww_status check_table(const struct ww_yaml *yaml, const struct bytes *bytes, const char *kind)
{
	const char *line = bytes->text, *stop = bytes->text + bytes->length, *end;
	for (size_t number = 1; line < stop; number++, line = end + 1) {
		end = memchr(line, '\n', (size_t)(stop - line));
		end = end ? end : stop;
		if (line == end || strchr("#\r", *line))
			continue;
		size_t length = (size_t)(end - line);
		if (memchr(line, ',', length) && !memchr(line, ':', length) && !strchr("{[- ", *line))
			return is_a_sweep(yaml, kind, number);
		return WW_OK;
	}
	return WW_OK;
}

static ww_status check_bytes(const struct ww_yaml *yaml, struct bytes *bytes, const char *kind)
{
	ww_status status = check_start(yaml, bytes);
	if (!status && bytes->length >= 3 && memcmp(bytes->text, "\xEF\xBB\xBF", 3) == 0) {
		bytes->length -= 3;
		memmove(bytes->text, bytes->text + 3, bytes->length);
	}
	const char *line = bytes->text, *stop = bytes->text + bytes->length;
	for (size_t number = 1; !status && line < stop; number++) {
		const char *end = memchr(line, '\n', (size_t)(stop - line));
		end = end ? end : stop;
		status = check_line(yaml, line, (size_t)(end - line), number);
		line = end + (end < stop);
	}
	if (!status)
		status = check_marks(yaml, bytes, kind);
	return status ? status : check_table(yaml, bytes, kind);
}

/* ---- From events to nodes ---------------------------------------------------------------------------------------- */

struct frame {
	struct ww_yaml_node *node, *last;
	const char *key; /* of a mapping, when its value comes next */
	size_t key_line;
};

struct builder {
	struct ww_yaml *yaml;
	yaml_parser_t parser;
	struct frame stack[WW_YAML_DEPTH_MAX];
	size_t depth, n_nodes;
};

static ww_status fail_at(const struct builder *b, size_t line, const char *what)
{
	const struct frame *top = b->depth > 0 ? &b->stack[b->depth - 1] : NULL;
	char shown[48];
	if (!top || !top->key)
		return ww_yaml_fail(b->yaml, WW_ERR_INVALID, line, "%s", what);
	ww_shorten(shown, sizeof shown, top->key);
	return ww_yaml_fail(b->yaml, WW_ERR_INVALID, line, "%s: %s", shown, what);
}

static ww_status refuse_extras(const struct builder *b, size_t line, const yaml_char_t *anchor, const yaml_char_t *tag)
{
	if (anchor)
		return fail_at(b, line, "anchors (&name) are not read; write the value where it is needed");
	if (tag)
		return fail_at(b, line,
		               "tags (!name) are not read; remove it, or put a text that begins with ! in quotes");
	return WW_OK;
}

static bool is_clean(const char *text, size_t length)
{
	for (size_t i = 0, n; i < length; i += n) {
		n = ww_utf8_char(text + i, length - i);
		if (n == 0 || ww_utf8_is_control(text + i, n))
			return false;
	}
	return true;
}

static ww_status copy_text(const struct builder *b, const yaml_event_t *e, const char **out)
{
	const char *text = (const char *)e->data.scalar.value;
	size_t length = e->data.scalar.length;
	if (!is_clean(text, length))
		return fail_at(b, e->start_mark.line + 1,
		               "the text holds a tab, a line break or another control character; write it on one line");
	char *copy = take_room(b->yaml, length + 1);
	if (!copy)
		return ww_yaml_no_memory(b->yaml);
	memcpy(copy, text, length);
	copy[length] = '\0';
	*out = copy;
	return WW_OK;
}

static ww_status add_node(struct builder *b, const yaml_event_t *e, enum ww_yaml_form form, struct ww_yaml_node **out)
{
	struct frame *top = b->depth > 0 ? &b->stack[b->depth - 1] : NULL;
	if (++b->n_nodes > WW_YAML_NODES_MAX)
		return ww_yaml_fail(b->yaml, WW_ERR_INVALID, e->start_mark.line + 1,
		                    "more than %u values; divide the file", WW_YAML_NODES_MAX);
	struct ww_yaml_node *node = take_room(b->yaml, sizeof *node);
	if (!node)
		return ww_yaml_no_memory(b->yaml);
	*node = (struct ww_yaml_node){.form = form, .line = e->start_mark.line + 1};
	*out = node;
	if (!top) {
		b->yaml->root = node;
		return WW_OK;
	}
	node->key = top->key;
	node->key_line = top->key_line;
	if (top->last)
		top->last->next = node;
	else
		top->node->first = node;
	top->last = node;
	top->node->n++;
	return WW_OK;
}

static bool wants_key(const struct builder *b)
{
	const struct frame *top = b->depth > 0 ? &b->stack[b->depth - 1] : NULL;
	return top && top->node->form == WW_YAML_MAP && !top->key;
}

static void forget_key(struct builder *b)
{
	if (b->depth > 0)
		b->stack[b->depth - 1].key = NULL;
}

static ww_status take_scalar(struct builder *b, const yaml_event_t *e)
{
	size_t line = e->start_mark.line + 1;
	const char *text = NULL;
	struct ww_yaml_node *node = NULL;
	ww_status status = refuse_extras(b, line, e->data.scalar.anchor, e->data.scalar.tag);
	if (status || (status = copy_text(b, e, &text)))
		return status;
	if (wants_key(b)) {
		if (*text == '\0')
			return fail_at(b, line, "a key is empty; write 'key: value'");
		b->stack[b->depth - 1].key = text;
		b->stack[b->depth - 1].key_line = line;
		return WW_OK;
	}
	if ((status = add_node(b, e, WW_YAML_TEXT, &node)))
		return status;
	node->text = text;
	node->n = e->data.scalar.length;
	node->is_null = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	                (*text == '\0' || strcmp(text, "~") == 0 || strcasecmp(text, "null") == 0);
	forget_key(b);
	return WW_OK;
}

static ww_status take_start(struct builder *b, const yaml_event_t *e, enum ww_yaml_form form)
{
	size_t line = e->start_mark.line + 1;
	struct ww_yaml_node *node = NULL;
	ww_status status = form == WW_YAML_MAP
	                           ? refuse_extras(b, line, e->data.mapping_start.anchor, e->data.mapping_start.tag)
	                           : refuse_extras(b, line, e->data.sequence_start.anchor, e->data.sequence_start.tag);
	if (status)
		return status;
	if (wants_key(b))
		return fail_at(b, line, "a key must be one word; put a text that begins with { or [ in quotes");
	if (b->depth == WW_YAML_DEPTH_MAX)
		return fail_at(b, line, "nested too deeply; check the brackets and the indentation");
	if ((status = add_node(b, e, form, &node)))
		return status;
	forget_key(b);
	b->stack[b->depth++] = (struct frame){.node = node};
	return WW_OK;
}

static ww_status take_event(struct builder *b, const yaml_event_t *e)
{
	size_t line = e->start_mark.line + 1;
	switch (e->type) {
	case YAML_DOCUMENT_START_EVENT:
		if (b->yaml->root)
			return ww_yaml_fail(b->yaml, WW_ERR_INVALID, line,
			                    "a second document begins here; keep one document per file");
		return WW_OK;
	case YAML_ALIAS_EVENT:
		return fail_at(b, line, "aliases (*name) are not read; write the value, or put the text in quotes");
	case YAML_SCALAR_EVENT:
		return take_scalar(b, e);
	case YAML_SEQUENCE_START_EVENT:
		return take_start(b, e, WW_YAML_LIST);
	case YAML_MAPPING_START_EVENT:
		return take_start(b, e, WW_YAML_MAP);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		b->depth--;
		return WW_OK;
	default:
		return WW_OK;
	}
}

static const char *remedy_for(const char *problem)
{
	static const struct {
		const char *problem, *remedy;
	} known[] = {
		{"mapping values are not allowed", "check the indentation, and put a text that holds ': ' in quotes"},
		{"could not find expected ':'", "write 'key: value', with a space behind the colon"},
		{"cannot start any token", "put a text that begins with % @ ` or a tab in quotes"},
		{"unexpected end of stream", "close the quote"},
		{"unexpected document indicator", "close the quote"},
		{"expected ',' or", "close the bracket, and separate its items by commas"},
		{"expected key", "begin the keys of one entry below each other, and close brackets and quotes"},
		{"expected '-'", "begin the entries of one list below each other, each with '- '"},
		{"expected <document start>", "keep one document per file"},
		{"incompatible YAML document", "remove the line that begins with %YAML"},
		{"block sequence entries", "begin the list on a line of its own"},
	};
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
		if (strstr(problem, known[i].problem))
			return known[i].remedy;
	return "check this line and the one before";
}

/* libyaml's own complaint. Where it began (a quote, a bracket) helps more than where the text ran out. */
static ww_status syntax_error(const struct builder *b, const struct bytes *bytes)
{
	const yaml_parser_t *p = &b->parser;
	const char *problem = p->problem ? p->problem : "no YAML";
	size_t line = p->problem_mark.line + 1;
	if (p->error == YAML_MEMORY_ERROR)
		return ww_yaml_no_memory(b->yaml);
	if (p->error == YAML_READER_ERROR) {
		line = 1;
		for (size_t i = 0; i < p->problem_offset && i < bytes->length; i++)
			line += bytes->text[i] == '\n';
		return ww_yaml_fail(b->yaml, WW_ERR_INVALID, line, "a character that YAML does not allow; remove it");
	}
	if (p->context && (strstr(p->context, "quoted") || strstr(p->context, "flow")) &&
	    p->context_mark.line + 1 < line)
		return ww_yaml_fail(b->yaml, WW_ERR_INVALID, p->context_mark.line + 1,
		                    "what begins here is not YAML up to line %zu: %s; %s", line, problem,
		                    remedy_for(problem));
	return ww_yaml_fail(b->yaml, WW_ERR_INVALID, line, "not YAML at column %zu: %s; %s", p->problem_mark.column + 1,
	                    problem, remedy_for(problem));
}

static ww_status build(struct builder *b, const struct bytes *bytes)
{
	ww_status status = WW_OK;
	bool at_end = false;
	if (!yaml_parser_initialize(&b->parser))
		return ww_yaml_no_memory(b->yaml);
	yaml_parser_set_encoding(&b->parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&b->parser, (const unsigned char *)bytes->text, bytes->length);
	while (!status && !at_end) {
		yaml_event_t event;
		if (!yaml_parser_parse(&b->parser, &event)) {
			status = syntax_error(b, bytes);
			break;
		}
		at_end = event.type == YAML_STREAM_END_EVENT;
		status = take_event(b, &event);
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&b->parser);
	return status;
}

ww_status ww_yaml_load(struct ww_yaml *yaml, FILE *in, const char *name, const char *kind, struct ww_error *err)
{
	struct bytes bytes = {0};
	struct builder builder = {.yaml = yaml};
	*yaml = (struct ww_yaml){.err = err};
	ww_shorten_path(yaml->shown, sizeof yaml->shown, name);
	ww_status status = read_bytes(yaml, in, &bytes);
	if (!status)
		status = check_bytes(yaml, &bytes, kind);
	if (!status)
		status = build(&builder, &bytes);
	free(bytes.text);
	if (status)
		return status;
	if (!yaml->root || yaml->root->is_null)
		return ww_yaml_fail(yaml, WW_ERR_NO_DATA, 1, "the file is empty; see wattweir-%s(5) for what it holds",
		                    kind);
	if (yaml->root->form != WW_YAML_MAP)
		return ww_yaml_fail(yaml, WW_ERR_INVALID, yaml->root->line,
		                    "the file holds no keys with values; see wattweir-%s(5) for what it holds", kind);
	return WW_OK;
}
