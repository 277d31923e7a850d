#include "base/arena.h"
#include "base/bytes.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIGN 16
#define CHUNK (64 * 1024)

struct chunk {
	struct chunk *next;
	size_t used, size;
	_Alignas(ALIGN) unsigned char data[];
};

struct gt_arena {
	struct chunk *head;
	size_t bytes;
};

enum gt_code gt_fail_memory(struct gt_err *err, size_t bytes)
{
	if (!bytes)
		return gt_fail(err, GT_EFAIL, "out of memory");
	char text[GT_BYTES_TEXT];
	return gt_fail(err, GT_EFAIL, "out of memory: cannot get %s", gt_bytes_text(text, sizeof text, bytes));
}

enum gt_code gt_arena_open(struct gt_arena **out, struct gt_err *err)
{
	*out = calloc(1, sizeof **out);
	return *out ? GT_OK : gt_fail_memory(err, sizeof **out);
}

void gt_arena_close(struct gt_arena *a)
{
	if (!a)
		return;
	for (struct chunk *c = a->head, *next; c; c = next) {
		next = c->next;
		free(c);
	}
	free(a);
}

void *gt_arena_alloc(struct gt_arena *a, size_t n, size_t size)
{
	size_t bytes;
	if (__builtin_mul_overflow(n, size, &bytes) || bytes > SIZE_MAX / 2)
		return NULL;
	bytes = (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	if (!bytes)
		bytes = ALIGN;
	struct chunk *c = a->head;
	if (!c || c->size - c->used < bytes) {
		size_t cap = bytes > CHUNK ? bytes : CHUNK;
		c = calloc(1, sizeof *c + cap);
		if (!c)
			return NULL;
		c->size = cap;
		c->next = a->head;
		a->head = c;
	}
	void *p = c->data + c->used;
	c->used += bytes;
	a->bytes += bytes;
	return p;
}

char *gt_arena_strdup(struct gt_arena *a, const char *s)
{
	size_t n = strlen(s) + 1;
	char *p = gt_arena_alloc(a, n, 1);
	return p ? memcpy(p, s, n) : NULL;
}

char *gt_arena_printf(struct gt_arena *a, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	char *p = n < 0 ? NULL : gt_arena_alloc(a, (size_t)n + 1, 1);
	if (!p)
		return NULL;
	va_start(ap, fmt);
	vsnprintf(p, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return p;
}

size_t gt_arena_bytes(const struct gt_arena *a)
{
	return a->bytes;
}

enum gt_code gt_arena_grow(struct gt_arena *a, void *array, int n, int *cap, size_t size, struct gt_err *err)
{
	void *old, *grown;
	int more = *cap ? 2 * *cap : 8;
	if (n < *cap)
		return GT_OK;
	if (!(grown = gt_arena_alloc(a, (size_t)more, size)))
		return gt_fail_memory(err, (size_t)more * size);
	memcpy(&old, array, sizeof old);
	if (n)
		memcpy(grown, old, (size_t)n * size);
	memcpy(array, &grown, sizeof grown);
	*cap = more;
	return GT_OK;
}

enum { FIRST = 64 }; /* capacity in elements that gt_grown gives an array at its first allocation */

void *gt_grown(void *p, int64_t *cap, int64_t need, size_t size)
{
	int64_t want = *cap < FIRST / 2 ? FIRST : 2 * *cap;
	want = want < need ? need : want;
	if (want < 0 || (uint64_t)want > PTRDIFF_MAX / size)
		return NULL;
	void *q = realloc(p, (size_t)want * size);
	if (q)
		*cap = want;
	return q;
}
