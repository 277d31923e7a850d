/* Vocabularies: counting the words of a training split, and the text form. */
#include "text/vocab.h"
#include "base/arena.h"
#include "text/text_utf8.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char *const special[] = {"<pad>", "<unk>"}; /* ids 0 and 1 of GT_VOCAB_WORDS */

/* Allocates a vocabulary without tokens, whose words take at most max_bytes. */
static enum gt_code make_vocab(enum gt_vocab_kind kind, size_t max_bytes, struct gt_vocab **out, struct gt_err *err)
{
	GT_CALLOC(*out, 1, err);
	(*out)->kind = kind;
	enum gt_code code = gt_words_open(&(*out)->words, max_bytes, err);
	if (code != GT_OK) {
		gt_vocab_close(*out);
		*out = NULL;
	}
	return code;
}

void gt_vocab_close(struct gt_vocab *v)
{
	if (!v)
		return;
	gt_words_free(&v->words);
	free(v);
}

const char *gt_vocab_token(const struct gt_vocab *v, int32_t id, size_t *n)
{
	*n = gt_words_len(&v->words, id);
	return gt_words_text(&v->words, id);
}

/* Adds a token. *id: the id of the token, or of an equal earlier token. */
static enum gt_code add_token(struct gt_vocab *v, const char *p, size_t n, int32_t *id, struct gt_err *err)
{
	v->longest = n > v->longest ? n : v->longest;
	*id = v->words.n;
	return v->kind == GT_VOCAB_BERT ? gt_words_append(&v->words, p, n, err) : gt_words_add(&v->words, p, n, id, err);
}

/* ---- text form --------------------------------------------------------------------------------------------------------------- */
/* Replaces the escapes of n bytes at p, and writes the result to `to`, which has room for n bytes. Returns its length; -1: an escape is
 * wrong. */
static ptrdiff_t unescape_token(const char *p, size_t n, char *to)
{
	char *begin = to;
	for (size_t i = 0; i < n; i++) {
		if (p[i] != '\\') {
			*to++ = p[i];
			continue;
		}
		char c = i + 1 < n ? p[++i] : 0;
		if (c != '\\' && c != 'n' && c != 'r')
			return -1;
		*to++ = c == 'n' ? '\n' : c == 'r' ? '\r' : '\\';
	}
	return to - begin;
}

/* Adds the token of a line; line numbers begin at 1. */
static enum gt_code add_line(struct gt_vocab *v, const char *name, int64_t line, const char *p, size_t n, struct gt_err *err)
{
	char token[2 * GT_TOKEN_MAX];
	ptrdiff_t len = (ptrdiff_t)n;
	if (v->kind == GT_VOCAB_WORDS && n <= sizeof token) {
		len = unescape_token(p, n, token);
		p = token;
	}
	if (len < 0)
		return gt_fail(err, GT_EDATA, "%s:%lld: expected \\\\, \\n or \\r after a backslash", name, (long long)line);
	if (!len || len > GT_TOKEN_MAX)
		return gt_fail(err, GT_EDATA, "%s:%lld: expected a token of 1 to %d bytes, got %s", name, (long long)line, GT_TOKEN_MAX,
		               len ? "a longer line" : "an empty line");
	if (memchr(p, 0, (size_t)len))
		return gt_fail(err, GT_EDATA, "%s:%lld: expected text, got a NUL byte", name, (long long)line);
	if (v->kind == GT_VOCAB_BERT && memchr(p, '\r', (size_t)len))
		return gt_fail(err, GT_EDATA, "%s:%lld: expected a line feed after a carriage return", name, (long long)line);
	struct gt_err why;
	int32_t id, before = v->words.n;
	enum gt_code code = gt_utf8_check(p, (size_t)len, &why);
	if (code != GT_OK)
		return gt_fail(err, code, "%s:%lld: %s", name, (long long)line, why.msg);
	if (v->kind == GT_VOCAB_WORDS && line <= 2 && (strlen(special[line - 1]) != (size_t)len || memcmp(special[line - 1], p, (size_t)len)))
		return gt_fail(err, GT_EDATA, "%s:%lld: expected the special token %s, got another token", name, (long long)line,
		               special[line - 1]);
	code = add_token(v, p, (size_t)len, &id, &why);
	if (code != GT_OK)
		return gt_fail(err, code, "%s: %s", name, why.msg);
	if (v->words.n == before)
		return gt_fail(err, GT_EDATA, "%s:%lld: expected a new token, got the token of line %d again", name, (long long)line, id + 1);
	return GT_OK;
}

static enum gt_code add_lines(struct gt_vocab *v, const char *name, const char *text, size_t n, struct gt_err *err)
{
	int64_t line = 0;
	for (const char *p = text, *end = text + n; p < end;) {
		const char *stop = memchr(p, '\n', (size_t)(end - p));
		line++;
		if (!stop && v->kind == GT_VOCAB_WORDS)
			return gt_fail(err, GT_EDATA, "%s:%lld: expected a line feed after the last token (truncated file)", name, (long long)line);
		if (!stop)
			stop = end;
		size_t len = (size_t)(stop - p);
		if (v->kind == GT_VOCAB_BERT && len && p[len - 1] == '\r')
			len--;
		GT_TRY(add_line(v, name, line, p, len, err));
		p = stop + 1;
	}
	if (line < (v->kind == GT_VOCAB_WORDS ? 3 : 1))
		return gt_fail(err, GT_EDATA, "%s: expected one token per line, got %s", name, line ? "only special tokens" : "an empty file");
	return GT_OK;
}

enum gt_code gt_vocab_parse(const char *name, const char *text, size_t n, enum gt_vocab_kind kind, struct gt_vocab **out,
                            struct gt_err *err)
{
	GT_TRY(make_vocab(kind, n < SIZE_MAX / 64 ? 40 * n + 4096 : SIZE_MAX, out, err));
	enum gt_code code = add_lines(*out, name, text, n, err);
	if (code != GT_OK) {
		gt_vocab_close(*out);
		*out = NULL;
	}
	return code;
}

enum gt_code gt_vocab_text(const struct gt_vocab *v, char **text, size_t *n, struct gt_err *err)
{
	size_t room = 2 * (size_t)v->words.offset[v->words.n]; /* every byte escaped */
	char *to = malloc(room);
	*text = to;
	*n = 0;
	if (!to)
		return gt_fail_memory(err, room);
	for (int32_t i = 0; i < v->words.n; i++) {
		for (const char *p = gt_words_text(&v->words, i); *p; p++) {
			char escape = v->kind == GT_VOCAB_BERT ? 0 : *p == '\n' ? 'n' : *p == '\r' ? 'r' : *p == '\\' ? '\\' : 0;
			if (escape)
				*to++ = '\\';
			*to++ = escape ? escape : *p;
		}
		*to++ = '\n';
	}
	*n = (size_t)(to - *text);
	return GT_OK;
}

/* ---- counting ----------------------------------------------------------------------------------------------------------------- */
struct gt_vocab_counter {
	struct gt_words words;
	int64_t *count; /* [cap] count of each word */
	int32_t cap;
};

enum gt_code gt_vocab_counter_open(size_t max_bytes, struct gt_vocab_counter **out, struct gt_err *err)
{
	GT_CALLOC(*out, 1, err);
	enum gt_code code = gt_words_open(&(*out)->words, max_bytes, err);
	if (code != GT_OK) {
		gt_vocab_counter_close(*out);
		*out = NULL;
	}
	return code;
}

void gt_vocab_counter_close(struct gt_vocab_counter *c)
{
	if (!c)
		return;
	gt_words_free(&c->words);
	free(c->count);
	free(c);
}

/* Grows the array of counts to the capacity of the word set. */
static enum gt_code grow_counts(struct gt_vocab_counter *c, struct gt_err *err)
{
	size_t old = (size_t)c->cap * sizeof *c->count, bytes = (size_t)c->words.room * sizeof *c->count;
	GT_TRY(gt_words_reserve(&c->words, bytes, err));
	int64_t *now = realloc(c->count, bytes);
	if (!now)
		return gt_fail_memory(err, bytes);
	memset((char *)now + old, 0, bytes - old);
	c->count = now;
	c->cap = c->words.room;
	c->words.beside = bytes;
	return GT_OK;
}

enum gt_code gt_vocab_count(struct gt_vocab_counter *c, const char *token, size_t n, struct gt_err *err)
{
	int32_t id;
	if (n > GT_TOKEN_MAX)
		return GT_OK;
	GT_TRY(gt_words_add(&c->words, token, n, &id, err));
	if (id >= c->cap)
		GT_TRY(grow_counts(c, err));
	c->count[id]++;
	return GT_OK;
}

static int by_frequency(const void *a, const void *b, void *user)
{
	const struct gt_vocab_counter *c = user;
	int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;
	if (c->count[i] != c->count[j])
		return c->count[i] < c->count[j] ? 1 : -1;
	return strcmp(gt_words_text(&c->words, i), gt_words_text(&c->words, j));
}

enum gt_code gt_vocab_build(const struct gt_vocab_counter *c, int64_t min_freq, int64_t max_vocab, struct gt_vocab **out,
                            struct gt_err *err)
{
	*out = NULL;
	if (max_vocab < 3)
		return gt_fail(err, GT_EDATA, "expected a max_vocab of at least 3, for %s, %s and a word, got %lld", special[0], special[1],
		               (long long)max_vocab);
	size_t bytes = (size_t)(c->words.n ? c->words.n : 1) * sizeof(int32_t);
	int32_t *order = malloc(bytes), n = 0, id;
	if (!order)
		return gt_fail_memory(err, bytes);
	for (int32_t i = 0; i < c->words.n && i < c->cap; i++) /* the last word has no count if memory ran out */
		if (c->count[i] >= min_freq)
			order[n++] = i;
	if (n)
		qsort_r(order, (size_t)n, sizeof *order, by_frequency, (void *)c);
	enum gt_code code = n ? make_vocab(GT_VOCAB_WORDS, SIZE_MAX, out, err)
	                      : gt_fail(err, GT_EDATA, "expected a word that occurs at least %lld times (min_freq) in the training split, got "
	                                "none", (long long)min_freq);
	for (int i = 0; i < 2 && code == GT_OK; i++)
		code = add_token(*out, special[i], strlen(special[i]), &id, err);
	for (int32_t i = 0; i < n && code == GT_OK && (*out)->words.n < max_vocab; i++) /* no new id for a word that equals a special token */
		code = add_token(*out, gt_words_text(&c->words, order[i]), gt_words_len(&c->words, order[i]), &id, err);
	free(order);
	if (code != GT_OK) {
		gt_vocab_close(*out);
		*out = NULL;
	}
	return code;
}
