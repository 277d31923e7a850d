/* A set of distinct strings with indices in the order of addition: the values of a table column, its categories, or the words of a
 * vocabulary.
 *
 *     struct gt_words w = {0};
 *     gt_words_add(&w, "Private", 7, &code, err);     code 0
 *     gt_words_find(&w, "Private", 7);                0; -1: not in the set
 *     gt_words_text(&w, 0);                           "Private"
 *     gt_words_free(&w);
 *
 *     text    P r i v a t e 0 G o v 0 …       the strings, each ended by a NUL
 *     offset  0 8 …                           of each string in text
 *     slot    . . {hash, 2} . {hash, 1} …     open addressing with linear probing, at most half full */
#ifndef GT_TEXT_WORD_SET_H
#define GT_TEXT_WORD_SET_H

#include "base/err.h"
#include "base/spill.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gt_word_slot {
	uint32_t hash;
	uint32_t number; /* code + 1; 0: the slot is free */
};

struct gt_words {
	int32_t n;                 /* number of words */
	int32_t room;              /* capacity in words; offset has room + 1 elements */
	uint64_t *offset;          /* [n + 1] offset of each word in text */
	char *text;
	uint64_t cap;              /* bytes of memory of text */
	struct gt_spill *spill;    /* where text and offset are; not owned; NULL: in memory */
	struct gt_word_slot *slot; /* [slots] hash table */
	uint32_t slots;            /* power of two; 0: no memory yet */
	/* set by gt_words_open; 0: hash without a seed, no limit */
	uint64_t seed;
	size_t max_bytes;          /* limit of gt_words_bytes + `beside` */
	size_t beside;             /* bytes that the owner uses for related data */
};

/* Prepares a set for words of unknown texts: the set takes at most max_bytes of memory, and a random seed prevents deliberate hash
 * collisions. No result depends on the seed. */
enum gt_code gt_words_open(struct gt_words *w, size_t max_bytes, struct gt_err *err);
/* Adds a word of len bytes unless the set has it, and sets *code to its index. At most 2^30 words. GT_EDATA: the limit is reached; the
 * message has the word count. */
enum gt_code gt_words_add(struct gt_words *w, const char *word, size_t len, int32_t *code, struct gt_err *err);
/* Adds a word with a new index, even if the set has it. From then on, gt_words_find returns the new index. */
enum gt_code gt_words_append(struct gt_words *w, const char *word, size_t len, struct gt_err *err);
/* Returns the index of a word of len bytes; -1: not in the set. Thread-safe while no word is added. */
int32_t gt_words_find(const struct gt_words *w, const char *word, size_t len);
static inline const char *gt_words_text(const struct gt_words *w, int32_t code)
{
	return w->text + w->offset[code];
}
/* Returns the length of a word in bytes. */
static inline size_t gt_words_len(const struct gt_words *w, int32_t code)
{
	return (size_t)(w->offset[code + 1] - w->offset[code] - 1);
}
/* Returns the bytes of memory of the set. While the set grows, it has the old and the new memory; the limit applies to their sum. */
uint64_t gt_words_bytes(const struct gt_words *w);
/* Checks that the limit allows `bytes` more. */
enum gt_code gt_words_reserve(const struct gt_words *w, size_t bytes, struct gt_err *err);
void gt_words_free(struct gt_words *w); /* leaves an empty set without a limit, with the same spill */

#endif
