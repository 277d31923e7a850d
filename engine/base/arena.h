/* Bump allocator. Everything with the lifetime of a config, a graph or a plan lives in one and goes with it.
 * Memory comes zeroed and aligned to 16 bytes. Not thread-safe. */
#ifndef GT_BASE_ARENA_H
#define GT_BASE_ARENA_H

#include "base/err.h"
#include <stdarg.h>
#include <stddef.h>

struct gt_arena; /* owned by whoever called gt_arena_open */

enum gt_code gt_arena_open(struct gt_arena **out, struct gt_err *err);
void gt_arena_close(struct gt_arena *a); /* NULL is fine */

/* NULL when memory is exhausted or n*size overflows. Prefer the macros below, which fill err. */
void *gt_arena_alloc(struct gt_arena *a, size_t n, size_t size);
char *gt_arena_strdup(struct gt_arena *a, const char *s);
char *gt_arena_printf(struct gt_arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
size_t gt_arena_bytes(const struct gt_arena *a); /* handed out so far */

enum gt_code gt_fail_memory(struct gt_err *err, size_t bytes); /* the one sentence for "out of memory", GT_EFAIL */

/* ptr = n zeroed elements of *ptr, or return "out of memory". */
#define GT_NEW(ptr, arena, n, err)                                                       \
	do {                                                                                 \
		if (!((ptr) = gt_arena_alloc((arena), (size_t)(n), sizeof *(ptr))))              \
			return gt_fail_memory((err), (size_t)(n) * sizeof *(ptr));                   \
	} while (0)

/* ptr = a string made in the arena by expr, or return "out of memory". */
#define GT_NEW_STR(ptr, expr, err)                 \
	do {                                           \
		if (!((ptr) = (expr)))                     \
			return gt_fail_memory((err), 0);       \
	} while (0)

#endif
