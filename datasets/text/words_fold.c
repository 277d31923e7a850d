/* The first step of GT_TOK_WORDS: HTML breaks and entities, case folding, NFC. ASCII is copied; other characters are collected in a
 * segment, which is normalised as a whole. A segment ends before each character that cannot combine with earlier characters. */
#include "base/arena.h"
#include "text/text_utf8.h"
#include "text/token_sink.h"
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

/* Room for a segment. One character becomes at most MAX_PARTS by folding and decomposition. */
enum { SEGMENT = 128, MAX_PARTS = 18 };

struct fold {
	struct gt_text_scratch *s;
	size_t used;
	int n;       /* number of characters in the segment */
	bool mapped; /* composition may change the segment: a character was decomposed or folded, or a mark follows a character */
	utf8proc_int32_t part[SEGMENT];
};

static enum gt_code reserve_bytes(struct fold *f, size_t more, struct gt_err *err)
{
	if (more <= f->s->bytes - f->used)
		return GT_OK;
	size_t bytes = f->used + more + f->s->bytes / 2 + 256;
	char *now = realloc(f->s->p, bytes);
	if (!now)
		return gt_fail_memory(err, bytes);
	f->s->p = now;
	f->s->bytes = bytes;
	return GT_OK;
}

/* Sorts marks by their combining class, as canonical order demands. */
static void sort_marks(utf8proc_int32_t *c, int n)
{
	for (int i = 1; i < n; i++) {
		utf8proc_int32_t keep = c[i];
		int class = utf8proc_get_property(keep)->combining_class, k = i;
		for (; class && k > 0 && utf8proc_get_property(c[k - 1])->combining_class > class; k--)
			c[k] = c[k - 1];
		c[k] = keep;
	}
}

static enum gt_code end_segment(struct fold *f, struct gt_err *err)
{
	if (!f->n)
		return GT_OK;
	GT_TRY(reserve_bytes(f, SEGMENT * 4, err));
	utf8proc_ssize_t n = f->n;
	if (f->mapped) {
		sort_marks(f->part, f->n);
		n = utf8proc_normalize_utf32(f->part, n, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
	}
	for (utf8proc_ssize_t i = 0; i < n; i++)
		f->used += (size_t)utf8proc_encode_char(f->part[i], (utf8proc_uint8_t *)f->s->p + f->used);
	f->n = 0;
	f->mapped = false;
	return GT_OK;
}

static enum gt_code put_ascii(struct fold *f, int32_t c, struct gt_err *err)
{
	GT_TRY(end_segment(f, err));
	GT_TRY(reserve_bytes(f, 1, err));
	f->s->p[f->used++] = (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
	return GT_OK;
}

/* Returns whether a character may combine with earlier characters: marks, and vowels and final consonants of conjoining Hangul. */
static bool joins_previous(int32_t c, const utf8proc_property_t *is)
{
	return is->combining_class || is->category == UTF8PROC_CATEGORY_MN || is->category == UTF8PROC_CATEGORY_MC ||
	       is->category == UTF8PROC_CATEGORY_ME || (c >= 0x1160 && c <= 0x11ff) || (c >= 0x16d63 && c <= 0x16d6a);
}

static enum gt_code put_char(struct fold *f, int32_t c, struct gt_err *err)
{
	if (c < 0x80)
		return put_ascii(f, c, err);
	if (c == 0x2019) /* the right single quotation mark, which texts use as an apostrophe */
		return put_ascii(f, '\'', err);
	const utf8proc_property_t *is = utf8proc_get_property(c);
	switch (is->category) {
	case UTF8PROC_CATEGORY_CF:
		if (c != 0x200c && c != 0x200d && !(c >= 0xe0020 && c <= 0xe007f))
			return GT_OK;
		break;
	case UTF8PROC_CATEGORY_CC:
	case UTF8PROC_CATEGORY_ZS:
	case UTF8PROC_CATEGORY_ZL:
	case UTF8PROC_CATEGORY_ZP:
		return put_ascii(f, ' ', err);
	}
	if (!joins_previous(c, is) || f->n > SEGMENT - MAX_PARTS)
		GT_TRY(end_segment(f, err));
	else {
		f->mapped = true;
		if (!f->n && f->used && (uint8_t)f->s->p[f->used - 1] < 0x80)
			f->part[f->n++] = f->s->p[--f->used];
	}
	const utf8proc_option_t options = UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_CASEFOLD;
	utf8proc_ssize_t n = utf8proc_decompose_char(c, f->part + f->n, MAX_PARTS, options, NULL);
	if (n < 0 || n > MAX_PARTS)
		return gt_fail(err, GT_EINTERNAL, "the case folding of U+%04X has %lld characters, expected at most %d", c, (long long)n,
		               MAX_PARTS);
	if (n != 1 || f->part[f->n] != c)
		f->mapped = true;
	f->n += (int)n;
	return GT_OK;
}

/* Returns the length of a line break in HTML that begins with p[0] = '<'; 0: not a line break. */
static size_t html_break_length(const char *p, size_t n)
{
	size_t i = 3;
	if (n < 4 || (p[1] | 0x20) != 'b' || (p[2] | 0x20) != 'r')
		return 0;
	while (i < n && (p[i] == ' ' || (p[i] >= '\t' && p[i] <= '\r')))
		i++;
	if (i < n && p[i] == '/')
		i++;
	return i < n && p[i] == '>' ? i + 1 : 0;
}

/* Copies ASCII in lower case up to the first character that needs further work, and returns the count of bytes. to has room for n bytes. */
static size_t copy_ascii(const char *p, size_t n, char *to)
{
	size_t i = 0;
	for (; i < n; i++) {
		uint8_t c = (uint8_t)p[i];
		if (c >= 0x80 || c == '<' || c == '&')
			break;
		to[i] = (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
	}
	return i;
}

enum gt_code gt_words_fold(const char *text, size_t n, struct gt_text_scratch *s, const char **out, size_t *len, struct gt_err *err)
{
	struct fold f = {.s = s};
	for (size_t i = 0; i < n;) {
		int bytes;
		size_t skip = 0;
		if ((uint8_t)text[i] < 0x80) {
			GT_TRY(end_segment(&f, err));
			GT_TRY(reserve_bytes(&f, n - i, err));
			size_t ascii = copy_ascii(text + i, n - i, s->p + f.used);
			f.used += ascii;
			i += ascii;
			if (i == n)
				break;
		}
		if (text[i] == '<') {
			skip = html_break_length(text + i, n - i);
			GT_TRY(put_ascii(&f, skip ? ' ' : '<', err));
			i += skip ? skip : 1;
		} else if (text[i] == '&') {
			int32_t c = gt_html_entity(text + i, n - i, &skip);
			GT_TRY(put_char(&f, c ? c : '&', err));
			i += c ? skip : 1;
		} else {
			int32_t c = gt_utf8_get(text + i, &bytes);
			GT_TRY(put_char(&f, c, err));
			i += (size_t)bytes;
		}
	}
	GT_TRY(end_segment(&f, err));
	*out = s->p;
	*len = f.used;
	return GT_OK;
}
