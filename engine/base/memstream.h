/* A stdio stream into memory, as open_memstream(3) is, whose end tells whether anything was lost: where memory runs out, glibc's may leave
 * the text NULL, or cut, and report success.
 *
 *     struct gt_memstream m;
 *     FILE *f = gt_memstream_open(&m);
 *     if (!f)
 *         return gt_fail_memory(err, 0);
 *     fprintf(f, …);
 *     return gt_memstream_close(f, &m, text, &len, err); */
#ifndef GT_BASE_MEMSTREAM_H
#define GT_BASE_MEMSTREAM_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct gt_memstream {
	char *text;
	size_t len, cap;
	bool lost; /* a write found no memory */
};

FILE *gt_memstream_open(struct gt_memstream *m); /* NULL: out of memory */
/* Closes f. *text: malloc'ed, with a NUL behind its *len bytes (len may be NULL). GT_EFAIL: out of memory, and *text is NULL. */
enum gt_code gt_memstream_close(FILE *f, struct gt_memstream *m, char **text, size_t *len, struct gt_err *err);

#endif
