/* SPDX-License-Identifier: Apache-2.0 */
/* The comment by which a file says what it is. */
#include "files/files_internal.h"

#include <string.h>

/* Copies the next word, shortened, and returns what stands behind it. */
static const char *take_word(const char *text, char *to, size_t size)
{
	char word[64];
	size_t n = 0, length = 0;
	while ((n = ww_blank(text)) > 0)
		text += n;
	for (; *text && ww_blank(text) == 0; text++)
		if (length + 1 < sizeof word)
			word[length++] = *text;
	word[length] = '\0';
	ww_shorten(to, size, word);
	return text;
}

bool ww_mark_read(const char *comment, struct ww_mark *out)
{
	static const char *const kinds[] = {"sweep", "cluster", "scenario", "config"};
	char name[16];
	comment = take_word(comment, name, sizeof name);
	comment = take_word(comment, out->kind, sizeof out->kind);
	(void)take_word(comment, out->version, sizeof out->version);
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (strcmp(name, "wattweir") == 0 && strcmp(out->kind, kinds[i]) == 0)
			return *out->version != '\0';
	return false;
}
