/* SPDX-License-Identifier: Apache-2.0 */
#include "files/files_internal.h"

#include <stdlib.h>
#include <string.h>

void *ww_grown(void *array, size_t n, size_t size)
{
	size_t bytes;
	if ((n & (n - 1)) != 0)
		return array;
	if (__builtin_mul_overflow(n ? 2 * n : 1, size, &bytes))
		return NULL;
	return realloc(array, bytes);
}

char *ww_copy_text(const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = malloc(size);
	if (copy)
		memcpy(copy, text, size);
	return copy;
}

size_t ww_index_find(const struct ww_index *index, uint64_t hash, bool (*same)(const void *ctx, size_t item),
                     const void *ctx)
{
	if (index->size == 0)
		return WW_INDEX_NONE;
	for (size_t at = hash & (index->size - 1);; at = (at + 1) & (index->size - 1)) {
		const struct ww_index_slot *slot = &index->slots[at];
		if (slot->next_item == 0)
			return WW_INDEX_NONE;
		if (slot->hash == hash && same(ctx, slot->next_item - 1))
			return slot->next_item - 1;
	}
}

static void put(struct ww_index_slot *slots, size_t size, struct ww_index_slot slot)
{
	size_t at = slot.hash & (size - 1);
	while (slots[at].next_item != 0)
		at = (at + 1) & (size - 1);
	slots[at] = slot;
}

static bool widen(struct ww_index *index)
{
	size_t size = index->size ? 2 * index->size : 64;
	struct ww_index_slot *slots = calloc(size, sizeof *slots);
	if (!slots)
		return false;
	for (size_t i = 0; i < index->size; i++)
		if (index->slots[i].next_item != 0)
			put(slots, size, index->slots[i]);
	free(index->slots);
	index->slots = slots;
	index->size = size;
	return true;
}

bool ww_index_add(struct ww_index *index, uint64_t hash, size_t item)
{
	if (2 * (index->used + 1) > index->size && !widen(index))
		return false;
	put(index->slots, index->size, (struct ww_index_slot){hash, item + 1});
	index->used++;
	return true;
}

void ww_index_finish(struct ww_index *index)
{
	free(index->slots);
	*index = (struct ww_index){0};
}
