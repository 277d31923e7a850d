/* A stdio stream into memory, like open_memstream(3), that reports lost data when it is closed. If memory runs out, glibc's open_memstream
 * can report success although the text is NULL or truncated.
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
	bool lost; /* whether a write failed for lack of memory */
};

FILE *gt_memstream_open(struct gt_memstream *m); /* returns NULL if memory runs out */
/* Closes f. Sets *text to memory from malloc, which has a NUL after its *len bytes (len may be NULL). Returns GT_EFAIL, with *text =
 * NULL, if memory ran out. */
enum gt_code gt_memstream_close(FILE *f, struct gt_memstream *m, char **text, size_t *len, struct gt_err *err);

#endif
