#include "text/texts.h"
#include "base/arena.h"
#include "text/text_utf8.h"
#include <stdlib.h>
#include <string.h>

void gt_texts_free(struct gt_texts *t)
{
	gt_spill_free(t->spill, t->text);
	gt_spill_free(t->spill, t->end);
	*t = (struct gt_texts){.spill = t->spill};
}

uint64_t gt_texts_bytes(const struct gt_texts *t)
{
	return (uint64_t)t->cap + (uint64_t)t->end_cap * sizeof *t->end;
}

enum gt_code gt_texts_reserve(struct gt_texts *t, int64_t n, int64_t bytes, struct gt_err *err)
{
	*t = (struct gt_texts){.text = gt_spill_resize(t->spill, NULL, (size_t)bytes + 1),
	                       .end = gt_spill_resize(t->spill, NULL, (size_t)(n + 1) * sizeof *t->end),
	                       .spill = t->spill};
	if (t->text)
		t->cap = bytes + 1;
	if (t->end)
		t->end_cap = n + 1;
	return t->text && t->end ? GT_OK : gt_fail_memory(err, (size_t)bytes);
}

enum gt_code gt_texts_add(struct gt_texts *t, const char *text, size_t n, struct gt_err *err)
{
	GT_SPILL_GROW(t->spill, t->end, t->end_cap, t->n + 1, err);
	t->end[t->n] = t->size;
	t->n++;
	enum gt_code code = gt_texts_append(t, text, n, err);
	if (code != GT_OK)
		t->n--;
	return code;
}

enum gt_code gt_texts_append(struct gt_texts *t, const char *text, size_t n, struct gt_err *err)
{
	GT_SPILL_GROW(t->spill, t->text, t->cap, t->size + (int64_t)n + 1, err);
	if (n)
		memcpy(t->text + t->size, text, n);
	t->size += (int64_t)n;
	t->end[t->n - 1] = t->size;
	return GT_OK;
}

void gt_texts_move(struct gt_texts *t, int64_t to, int64_t from)
{
	size_t n;
	const char *text = gt_texts_get(t, from, &n);
	int64_t begin = to ? t->end[to - 1] : 0;
	if (n)
		memmove(t->text + begin, text, n);
	t->end[to] = begin + (int64_t)n;
}

void gt_texts_cut(struct gt_texts *t, int64_t n)
{
	if (n >= t->n)
		return;
	t->n = n;
	t->size = n ? t->end[n - 1] : 0;
}

const char *gt_texts_get(const struct gt_texts *t, int64_t i, size_t *n)
{
	int64_t begin = i ? t->end[i - 1] : 0;
	*n = (size_t)(t->end[i] - begin);
	return t->text + begin;
}

/* If the text is invalid, checks each line to find the line number for the message. */
enum gt_code gt_text_check(const char *text, size_t n, const char *where, struct gt_err *err)
{
	if (gt_utf8_check(text, n, NULL) == GT_OK)
		return GT_OK;
	for (int64_t line = 1;; line++) {
		const char *end = memchr(text, '\n', n);
		size_t len = end ? (size_t)(end - text) + 1 : n;
		enum gt_code code = gt_utf8_check(text, len, err);
		if (code != GT_OK)
			return gt_fail_prefix(err, "%.600s:%lld", where, (long long)line), code;
		text += len;
		n -= len;
	}
}
