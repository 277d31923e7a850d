/* A set of different strings, numbered in the order in which they were added: the values of a column of text, or the categories that were
 * learned.
 *
 *     struct gt_words w = {0};
 *     gt_words_add(&w, "Private", 7, &code, err);     code 0
 *     gt_words_find(&w, "Private", 7);                0; -1: it is not there
 *     gt_words_text(&w, 0);                           "Private"
 *     gt_words_free(&w);
 */
#ifndef GT_DATASETS_TABLE_WORD_SET_H
#define GT_DATASETS_TABLE_WORD_SET_H

#include "base/err.h"
#include <stddef.h>
#include <stdint.h>

struct gt_words {
	int32_t n;        /* number of words */
	uint64_t *offset; /* [n + 1] of each word in text */
	char *text;       /* the words, each ended by a NUL */
	uint64_t cap;     /* bytes of memory of text */
	int32_t room;     /* capacity of offset in words; its memory has one more entry, the end of the last word */
	uint32_t *slot;   /* [slots] hash table: code + 1; 0: free */
	uint32_t *hash;   /* [slots] hash of the word in each slot */
	uint32_t slots;   /* power of two; 0: no memory yet */
};

/* Adds a word of len bytes, without a NUL in it, unless it is there; *code becomes its number. At most 2^30 words. */
enum gt_code gt_words_add(struct gt_words *w, const char *word, size_t len, int32_t *code, struct gt_err *err);
/* Returns the number of a word of len bytes; -1: it is not there. */
int32_t gt_words_find(const struct gt_words *w, const char *word, size_t len);
static inline const char *gt_words_text(const struct gt_words *w, int32_t code)
{
	return w->text + w->offset[code];
}
/* Returns the bytes of a word. */
static inline size_t gt_words_len(const struct gt_words *w, int32_t code)
{
	return (size_t)(w->offset[code + 1] - w->offset[code] - 1);
}
uint64_t gt_words_bytes(const struct gt_words *w); /* bytes of memory of the set */
void gt_words_free(struct gt_words *w);            /* leaves an empty set */

#endif
