#include "text/word_set.h"
#include "base/arena.h"
#include "base/bytes.h"
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

enum { FIRST_SLOTS = 64, FIRST_WORDS = 32, FIRST_TEXT = 256 };

static inline uint32_t hash_of(const struct gt_words *w, const char *word, size_t len)
{
	uint64_t h = XXH3_64bits_withSeed(word, len, w->seed);
	return (uint32_t)(h ^ h >> 32);
}

uint64_t gt_words_bytes(const struct gt_words *w)
{
	return w->cap + (w->room ? ((uint64_t)w->room + 1) * sizeof *w->offset : 0) + (uint64_t)w->slots * sizeof *w->slot;
}

enum gt_code gt_words_reserve(const struct gt_words *w, size_t bytes, struct gt_err *err)
{
	char limit[GT_BYTES_TEXT];
	uint64_t used = gt_words_bytes(w) + w->beside;
	if (!w->max_bytes || (used <= w->max_bytes && bytes <= w->max_bytes - used))
		return GT_OK;
	return gt_fail(err, GT_EDATA, "expected a vocabulary of at most %s in memory, got more after %d different words",
	               gt_bytes_text(limit, sizeof limit, w->max_bytes), w->n);
}

/* Changes the size of an array of the set. */
static enum gt_code resize_array(const struct gt_words *w, void *array, size_t bytes, struct gt_err *err)
{
	void **p = array;
	GT_TRY(gt_words_reserve(w, bytes, err));
	void *now = gt_spill_resize(w->spill, *p, bytes);
	if (!now)
		return gt_fail_memory(err, bytes);
	*p = now;
	return GT_OK;
}

static enum gt_code double_slots(struct gt_words *w, struct gt_err *err)
{
	uint32_t slots = w->slots ? 2 * w->slots : FIRST_SLOTS;
	GT_TRY(gt_words_reserve(w, slots * sizeof *w->slot, err));
	struct gt_word_slot *now;
	GT_CALLOC(now, slots, err);
	for (uint32_t i = 0; i < w->slots; i++) {
		uint32_t at = w->slot[i].hash & (slots - 1);
		while (w->slot[i].number && now[at].number)
			at = (at + 1) & (slots - 1);
		if (w->slot[i].number)
			now[at] = w->slot[i];
	}
	free(w->slot);
	w->slot = now;
	w->slots = slots;
	return GT_OK;
}

enum gt_code gt_words_open(struct gt_words *w, size_t max_bytes, struct gt_err *err)
{
	*w = (struct gt_words){.max_bytes = max_bytes};
	/* If no random numbers are available (an old kernel, a sandbox), the seed is 0: then texts made to cause collisions are slower. */
	if (getrandom(&w->seed, sizeof w->seed, GRND_NONBLOCK) != (ssize_t)sizeof w->seed)
		w->seed = 0;
	return double_slots(w, err);
}

/* Returns the slot of a word or, if the set lacks the word, the free slot for it. */
static inline struct gt_word_slot *find_slot(const struct gt_words *w, const char *word, size_t len, uint32_t hash)
{
	for (uint32_t i = hash & (w->slots - 1);; i = (i + 1) & (w->slots - 1)) {
		struct gt_word_slot *s = &w->slot[i];
		int32_t code = (int32_t)(s->number - 1);
		if (!s->number || (s->hash == hash && gt_words_len(w, code) == len && !memcmp(gt_words_text(w, code), word, len)))
			return s;
	}
}

int32_t gt_words_find(const struct gt_words *w, const char *word, size_t len)
{
	return w->slots ? (int32_t)find_slot(w, word, len, hash_of(w, word, len))->number - 1 : -1;
}

static enum gt_code reserve_word(struct gt_words *w, size_t len, struct gt_err *err)
{
	uint64_t used = w->n ? w->offset[w->n] : 0;
	if (w->n >= (1 << 30) - 1)
		return gt_fail(err, GT_EDATA, "expected at most 2^30 different values, got more");
	if (!w->slots || (uint64_t)w->n * 2 >= w->slots)
		GT_TRY(double_slots(w, err));
	if (w->n >= w->room) {
		int32_t room = w->room ? 2 * w->room : FIRST_WORDS;
		GT_TRY(resize_array(w, &w->offset, ((size_t)room + 1) * sizeof *w->offset, err));
		w->room = room;
		w->offset[w->n] = used;
	}
	if (w->cap - used < len + 1) {
		uint64_t cap = 2 * w->cap > used + len + 1 ? 2 * w->cap : used + len + FIRST_TEXT;
		GT_TRY(resize_array(w, &w->text, cap, err));
		w->cap = cap;
	}
	return GT_OK;
}

static enum gt_code put_word(struct gt_words *w, const char *word, size_t len, uint32_t hash, struct gt_err *err)
{
	GT_TRY(reserve_word(w, len, err));
	struct gt_word_slot *s = find_slot(w, word, len, hash);
	char *to = w->text + w->offset[w->n];
	memcpy(to, word, len);
	to[len] = 0;
	w->offset[w->n + 1] = w->offset[w->n] + len + 1;
	*s = (struct gt_word_slot){hash, (uint32_t)++w->n};
	return GT_OK;
}

enum gt_code gt_words_append(struct gt_words *w, const char *word, size_t len, struct gt_err *err)
{
	return put_word(w, word, len, hash_of(w, word, len), err);
}

enum gt_code gt_words_add(struct gt_words *w, const char *word, size_t len, int32_t *code, struct gt_err *err)
{
	uint32_t hash = hash_of(w, word, len);
	*code = w->slots ? (int32_t)find_slot(w, word, len, hash)->number - 1 : -1;
	if (*code >= 0)
		return GT_OK;
	GT_TRY(put_word(w, word, len, hash, err));
	*code = w->n - 1;
	return GT_OK;
}

void gt_words_free(struct gt_words *w)
{
	gt_spill_free(w->spill, w->offset);
	gt_spill_free(w->spill, w->text);
	free(w->slot);
	*w = (struct gt_words){.spill = w->spill};
}
