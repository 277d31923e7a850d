#include "table/word_set.h"
#include "base/arena.h"
#include <stdlib.h>
#include <string.h>

/* A multiplicative hash of 8 bytes at a time. No result depends on it: codes follow the order of addition. */
static uint32_t hash_of(const char *s, size_t n)
{
	uint64_t h = n * 0x9e3779b97f4a7c15u, part;
	for (; n >= 8; s += 8, n -= 8) {
		memcpy(&part, s, 8);
		h = (h ^ part) * 0xff51afd7ed558ccdu;
		h ^= h >> 32;
	}
	part = 0;
	for (size_t i = 0; i < n; i++)
		part |= (uint64_t)(uint8_t)s[i] << 8 * i;
	h = (h ^ part) * 0xff51afd7ed558ccdu;
	h ^= h >> 32;
	h *= 0xc4ceb9fe1a85ec53u;
	return (uint32_t)(h >> 32);
}

/* Returns the slot of a word or, if it is not there, the free slot at which it belongs. */
static uint32_t find_slot(const struct gt_words *w, const char *word, size_t len, uint32_t hash)
{
	for (uint32_t i = hash & (w->slots - 1);; i = (i + 1) & (w->slots - 1)) {
		if (!w->slot[i])
			return i;
		int32_t code = (int32_t)(w->slot[i] - 1);
		if (w->hash[i] == hash && gt_words_len(w, code) == len && !memcmp(gt_words_text(w, code), word, len))
			return i;
	}
}

static enum gt_code grow_slots(struct gt_words *w, struct gt_err *err)
{
	uint32_t slots = w->slots ? 2 * w->slots : 64;
	uint32_t *slot = calloc(slots, sizeof *slot), *hash = malloc(slots * sizeof *hash);
	if (!slot || !hash) {
		free(slot);
		free(hash);
		return gt_fail_memory(err, slots * sizeof *slot);
	}
	for (uint32_t i = 0; i < w->slots; i++) {
		uint32_t at = w->hash[i] & (slots - 1);
		if (!w->slot[i])
			continue;
		while (slot[at])
			at = (at + 1) & (slots - 1);
		slot[at] = w->slot[i];
		hash[at] = w->hash[i];
	}
	free(w->slot);
	free(w->hash);
	w->slot = slot;
	w->hash = hash;
	w->slots = slots;
	return GT_OK;
}

static enum gt_code reserve_word(struct gt_words *w, size_t len, struct gt_err *err)
{
	if (w->n >= (1 << 30) - 1)
		return gt_fail(err, GT_EDATA, "expected at most 2^30 different values, got more");
	if (!w->slots || (uint64_t)w->n * 2 >= w->slots)
		GT_TRY(grow_slots(w, err));
	if (w->n >= w->room) {
		int32_t room = w->room ? 2 * w->room : 32;
		uint64_t *offset = realloc(w->offset, ((size_t)room + 1) * sizeof *offset);
		if (!offset)
			return gt_fail_memory(err, ((size_t)room + 1) * sizeof *offset);
		w->offset = offset;
		w->room = room;
		if (!w->n)
			offset[0] = 0;
	}
	if (w->cap - w->offset[w->n] < len + 1) {
		uint64_t cap = 2 * w->cap > w->offset[w->n] + len + 1 ? 2 * w->cap : w->offset[w->n] + len + 256;
		char *text = realloc(w->text, cap);
		if (!text)
			return gt_fail_memory(err, cap);
		w->text = text;
		w->cap = cap;
	}
	return GT_OK;
}

int32_t gt_words_find(const struct gt_words *w, const char *word, size_t len)
{
	return w->slots ? (int32_t)w->slot[find_slot(w, word, len, hash_of(word, len))] - 1 : -1;
}

enum gt_code gt_words_add(struct gt_words *w, const char *word, size_t len, int32_t *code, struct gt_err *err)
{
	uint32_t hash = hash_of(word, len);
	if (w->slots) {
		uint32_t at = find_slot(w, word, len, hash);
		if (w->slot[at]) {
			*code = (int32_t)w->slot[at] - 1;
			return GT_OK;
		}
	}
	GT_TRY(reserve_word(w, len, err));
	uint32_t at = find_slot(w, word, len, hash);
	memcpy(w->text + w->offset[w->n], word, len);
	w->text[w->offset[w->n] + len] = 0;
	w->offset[w->n + 1] = w->offset[w->n] + len + 1;
	*code = w->n++;
	w->slot[at] = (uint32_t)w->n;
	w->hash[at] = hash;
	return GT_OK;
}

uint64_t gt_words_bytes(const struct gt_words *w)
{
	return w->cap + (w->room ? ((uint64_t)w->room + 1) * sizeof *w->offset : 0) + (uint64_t)w->slots * (sizeof *w->slot + sizeof *w->hash);
}

void gt_words_free(struct gt_words *w)
{
	free(w->offset);
	free(w->text);
	free(w->slot);
	free(w->hash);
	*w = (struct gt_words){0};
}
