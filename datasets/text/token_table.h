/* A hash table of byte strings, numbered in the order in which they are added; a vocabulary and a counter of words are made of it. Its
 * memory is bounded, and known at any time.
 *
 *     text   w o r d o t h e r …          the strings, one after the other
 *     end    4 9 …                        the offset in text after each string
 *     slot   . . {hash, 2} . {hash, 1} …  open addressing with linear probing, at most half full; id 0 means an empty slot
 *
 * The hash is XXH3 with a random seed, so that no text can be made that slows it down. No result depends on the seed. */
#ifndef GT_TEXT_TOKEN_TABLE_H
#define GT_TEXT_TOKEN_TABLE_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GT_TOKEN_TABLE_MAX (1 << 28) /* maximum number of strings */

struct gt_token_slot {
	uint32_t hash;
	uint32_t id1; /* number of the string, plus 1; 0: the slot is empty */
};

struct gt_token_table {
	char *text;
	uint32_t *end;              /* [cap] */
	struct gt_token_slot *slot; /* [mask + 1] */
	uint32_t mask;
	uint32_t text_cap;  /* in bytes */
	int32_t n, cap;     /* number of strings, and room in `end` */
	uint32_t longest;   /* length of the longest string, in bytes */
	uint64_t seed;
	size_t max_bytes;   /* limit of gt_token_table_bytes and `beside` together */
	size_t beside;      /* bytes that the owner uses for each string beside the table */
};

/* Prepares an empty table that takes at most max_bytes of memory. */
enum gt_code gt_token_table_open(struct gt_token_table *t, size_t max_bytes, struct gt_err *err);
void gt_token_table_close(struct gt_token_table *t);
/* The memory of the table, in bytes. While it grows it needs the old and the new memory; the limit includes both. */
size_t gt_token_table_bytes(const struct gt_token_table *t);

/* Whether the limit allows `bytes` more; gt_token_table_full returns GT_EDATA with a message that it does not. */
bool gt_token_table_fits(const struct gt_token_table *t, size_t bytes);
enum gt_code gt_token_table_full(const struct gt_token_table *t, struct gt_err *err);

/* Returns the number of the string p of n bytes; -1: the table does not have it. Thread-safe while nothing is added. */
int32_t gt_token_table_find(const struct gt_token_table *t, const char *p, size_t n);

/* Adds the string if the table does not have it. Sets *id to its number and *added to whether it is new. GT_EDATA: the limit is reached;
 * the message says how many strings there are. GT_EFAIL: out of memory. */
enum gt_code gt_token_table_add(struct gt_token_table *t, const char *p, size_t n, int32_t *id, bool *added, struct gt_err *err);

/* Adds the string with a new number, whether or not the table has it. From then on, gt_token_table_find returns this number. */
enum gt_code gt_token_table_append(struct gt_token_table *t, const char *p, size_t n, struct gt_err *err);

/* Returns string i, which has no NUL at its end, and sets *n to its length in bytes. */
static inline const char *gt_token_table_get(const struct gt_token_table *t, int32_t i, size_t *n)
{
	uint32_t begin = i ? t->end[i - 1] : 0;
	*n = t->end[i] - begin;
	return t->text + begin;
}

#endif
