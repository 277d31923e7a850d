/* An array of texts in contiguous memory.
 *
 *     struct gt_texts t = {0};
 *     GT_TRY(gt_text_check(bytes, n, "reviews/neg/1.txt", err));
 *     GT_TRY(gt_texts_add(&t, bytes, n, err));
 *     const char *text = gt_texts_get(&t, 0, &n);
 *     gt_texts_free(&t);
 */
#ifndef GT_TEXT_TEXTS_H
#define GT_TEXT_TEXTS_H

#include "base/err.h"
#include "base/spill.h"
#include <stddef.h>
#include <stdint.h>

struct gt_texts {
	char *text;        /* the texts, without separators */
	int64_t size, cap; /* bytes used and allocated in text */
	int64_t *end;      /* [n] offset in `text` of the end of each text */
	int64_t n, end_cap;
	struct gt_spill *spill; /* where text and end are; not owned; NULL: in memory */
};

void gt_texts_free(struct gt_texts *t);            /* leaves an empty array with the same spill */
uint64_t gt_texts_bytes(const struct gt_texts *t); /* returns the memory of t in bytes */
/* Allocates memory of t->spill for n texts with a total of `bytes` bytes, so that gt_texts_add allocates no more. */
enum gt_code gt_texts_reserve(struct gt_texts *t, int64_t n, int64_t bytes, struct gt_err *err);
enum gt_code gt_texts_add(struct gt_texts *t, const char *text, size_t n, struct gt_err *err);
/* Adds bytes to the end of the last text. */
enum gt_code gt_texts_append(struct gt_texts *t, const char *text, size_t n, struct gt_err *err);
/* Moves text `from` to index `to` <= from, after the bytes of text to - 1. Use it in ascending order to remove texts, then call
 * gt_texts_cut. */
void gt_texts_move(struct gt_texts *t, int64_t to, int64_t from);
/* Keeps only the first n texts. */
void gt_texts_cut(struct gt_texts *t, int64_t n);
/* Returns text i, of *n bytes and without a NUL at its end; valid until the next text is added. */
const char *gt_texts_get(const struct gt_texts *t, int64_t i, size_t *n);

/* Checks that the n bytes of a file are UTF-8. GT_EDATA: they are not; the message begins with "where:line". */
enum gt_code gt_text_check(const char *text, size_t n, const char *where, struct gt_err *err);

#endif
