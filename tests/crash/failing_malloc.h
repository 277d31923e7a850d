/* malloc, calloc, realloc and free of this program and its libraries, of which the Nth call fails, once or from then on. Included once, by
 * a test program. */
#ifndef GT_TESTS_FAILING_MALLOC_H
#define GT_TESTS_FAILING_MALLOC_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

/* glibc's own names: a definition of malloc in the executable stands before libc's, in every library (manual, "Replacing malloc"). */
extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);
extern void __libc_free(void *p);

/* Or only the calls of libgtrain.a came here, not those of other libraries. */
#define SEEN __attribute__((visibility("default")))

static bool armed, ever;
static int count, at;
static long live; /* blocks: what a refusal must not leak */

static bool fails(void)
{
	if (!armed)
		return false;
	count++;
	if (count < at || (count > at && !ever))
		return false;
	errno = ENOMEM;
	return true;
}

static void *kept(void *p)
{
	live += p != NULL;
	return p;
}

SEEN void *malloc(size_t n)
{
	return kept(fails() ? NULL : __libc_malloc(n));
}

SEEN void *calloc(size_t n, size_t size)
{
	return kept(fails() ? NULL : __libc_calloc(n, size));
}

SEEN void *realloc(void *p, size_t n)
{
	void *q = fails() ? NULL : __libc_realloc(p, n);
	return p ? q : kept(q);
}

SEEN void free(void *p)
{
	live -= p != NULL;
	__libc_free(p);
}

#endif
