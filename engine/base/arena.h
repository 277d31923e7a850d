/* A bump allocator: all memory of an arena is freed at once. Everything that lives as long as a config, a graph or a plan is allocated in
 * its arena. Memory is zeroed and aligned to 16 bytes. Not thread-safe. */
#ifndef GT_BASE_ARENA_H
#define GT_BASE_ARENA_H

#include "base/err.h"
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct gt_arena; /* opaque; the caller of gt_arena_open owns it */

enum gt_code gt_arena_open(struct gt_arena **out, struct gt_err *err);
void gt_arena_close(struct gt_arena *a); /* frees all memory of a; does nothing if a is NULL */

/* Returns memory for n elements of `size` bytes; NULL: out of memory, or n * size overflows. Prefer the macros below, which fill err. */
void *gt_arena_alloc(struct gt_arena *a, size_t n, size_t size);
char *gt_arena_strdup(struct gt_arena *a, const char *s);
char *gt_arena_printf(struct gt_arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
size_t gt_arena_bytes(const struct gt_arena *a); /* number of bytes allocated so far */

/* Makes room for element n of an array in the arena. array: address of the pointer to the array. cap: the array's capacity in elements,
 * which doubles. */
enum gt_code gt_arena_grow(struct gt_arena *a, void *array, int n, int *cap, size_t size, struct gt_err *err);

enum gt_code gt_fail_memory(struct gt_err *err, size_t bytes); /* fills err with "out of memory", returns GT_EFAIL */

/* Sets ptr to n zeroed elements of its type, or returns the error "out of memory" from the calling function. */
#define GT_NEW(ptr, arena, n, err)                                                       \
	do {                                                                                 \
		if (!((ptr) = gt_arena_alloc((arena), (size_t)(n), sizeof *(ptr))))              \
			return gt_fail_memory((err), (size_t)(n) * sizeof *(ptr));                   \
	} while (0)

/* Sets ptr to the string that expr allocates, or returns the error "out of memory" from the calling function. */
#define GT_NEW_STR(ptr, expr, err)                 \
	do {                                           \
		if (!((ptr) = (expr)))                     \
			return gt_fail_memory((err), 0);       \
	} while (0)

/* Sets ptr to n zeroed elements of its type, which the caller frees, or returns the error "out of memory" from the calling function. */
#define GT_CALLOC(ptr, n, err)                                                           \
	do {                                                                                 \
		if (!((ptr) = calloc((size_t)(n) + !(n), sizeof *(ptr))))                        \
			return gt_fail_memory((err), (size_t)(n) * sizeof *(ptr));                   \
	} while (0)

/* ---- malloc'ed arrays that grow one element at a time ----------------------------------------------------------------------------
 *
 *     struct list { struct item *v; int64_t n, cap; } l = {0};
 *     GT_GROW(l.v, l.cap, l.n + 1, err);       now l.v[l.n] can be written
 *     free(l.v);
 */
/* Reallocates array p for at least `need` elements of `size` bytes, returns it, and sets *cap to its capacity in elements. The capacity at
 * least doubles, so that n elements are copied fewer than 2n times. NULL: out of memory; p is unchanged. */
void *gt_grown(void *p, int64_t *cap, int64_t need, size_t size);

/* Makes room for `need` elements in ptr, a malloc'ed array of capacity `cap` (int64_t), or returns the error "out of memory" from the
 * calling function. */
#define GT_GROW(ptr, cap, need, err)                                                         \
	do {                                                                                     \
		if ((need) > (cap)) {                                                                \
			void *grown_ = gt_grown((ptr), &(cap), (need), sizeof *(ptr));                   \
			if (!grown_)                                                                     \
				return gt_fail_memory((err), (size_t)(need) * sizeof *(ptr));                \
			(ptr) = grown_;                                                                  \
		}                                                                                    \
	} while (0)

#endif
