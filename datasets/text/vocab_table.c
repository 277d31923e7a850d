/* A vocabulary in memory, and its text form. */
#include "base/arena.h"
#include "text/text_utf8.h"
#include "text/vocab_rep.h"
#include <stdlib.h>
#include <string.h>

enum gt_code gt_vocab_new(enum gt_vocab_kind kind, size_t max_bytes, struct gt_vocab **out, struct gt_err *err)
{
	*out = NULL;
	struct gt_vocab *v = calloc(1, sizeof *v);
	if (!v)
		return gt_fail_memory(err, sizeof *v);
	v->kind = kind;
	enum gt_code code = gt_token_table_open(&v->table, max_bytes, err);
	if (code != GT_OK) {
		free(v);
		return code;
	}
	*out = v;
	return GT_OK;
}

void gt_vocab_close(struct gt_vocab *v)
{
	if (!v)
		return;
	gt_token_table_close(&v->table);
	free(v);
}

enum gt_vocab_kind gt_vocab_kind_of(const struct gt_vocab *v)
{
	return v->kind;
}

int32_t gt_vocab_size(const struct gt_vocab *v)
{
	return v->table.n;
}

size_t gt_vocab_bytes(const struct gt_vocab *v)
{
	return sizeof *v + gt_token_table_bytes(&v->table);
}

size_t gt_vocab_longest(const struct gt_vocab *v)
{
	return v->table.longest;
}

int32_t gt_vocab_find(const struct gt_vocab *v, const char *token, size_t n)
{
	return gt_token_table_find(&v->table, token, n);
}

const char *gt_vocab_token(const struct gt_vocab *v, int32_t id, size_t *n)
{
	return gt_token_table_get(&v->table, id, n);
}

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

/* Adds the token of a line, whose number is from 1. */
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
	enum gt_code code = gt_utf8_check(p, (size_t)len, &why);
	if (code != GT_OK)
		return gt_fail(err, code, "%s:%lld: %s", name, (long long)line, why.msg);
	if (v->kind == GT_VOCAB_BERT) {
		code = gt_token_table_append(&v->table, p, (size_t)len, &why);
		return code == GT_OK ? code : gt_fail(err, code, "%s: %s", name, why.msg);
	}
	static const char *const special[] = {GT_PAD_TOKEN, GT_UNK_TOKEN};
	if (line <= 2 && (strlen(special[line - 1]) != (size_t)len || memcmp(special[line - 1], p, (size_t)len)))
		return gt_fail(err, GT_EDATA, "%s:%lld: expected the special token %s, got another one", name, (long long)line, special[line - 1]);
	int32_t id;
	bool added;
	code = gt_token_table_add(&v->table, p, (size_t)len, &id, &added, &why);
	if (code != GT_OK)
		return gt_fail(err, code, "%s: %s", name, why.msg);
	if (!added)
		return gt_fail(err, GT_EDATA, "%s:%lld: expected a new token, got that of line %d again", name, (long long)line, id + 1);
	return GT_OK;
}

static enum gt_code add_lines(struct gt_vocab *v, const char *name, const char *text, size_t n, struct gt_err *err)
{
	int64_t line = 0;
	for (const char *p = text, *end = text + n; p < end;) {
		const char *stop = memchr(p, '\n', (size_t)(end - p));
		line++;
		if (!stop && v->kind == GT_VOCAB_WORDS)
			return gt_fail(err, GT_EDATA, "%s:%lld: expected a line feed after the last token; the file is cut", name, (long long)line);
		if (!stop)
			stop = end;
		size_t len = (size_t)(stop - p);
		if (v->kind == GT_VOCAB_BERT && len && p[len - 1] == '\r')
			len--;
		GT_TRY(add_line(v, name, line, p, len, err));
		p = stop + 1;
	}
	if (line < (v->kind == GT_VOCAB_WORDS ? 3 : 1))
		return gt_fail(err, GT_EDATA, "%s: expected one token a line, got %s", name, line ? "only special tokens" : "an empty file");
	return GT_OK;
}

enum gt_code gt_vocab_parse(const char *name, const char *text, size_t n, enum gt_vocab_kind kind, struct gt_vocab **out,
                            struct gt_err *err)
{
	*out = NULL;
	struct gt_vocab *v;
	GT_TRY(gt_vocab_new(kind, n < SIZE_MAX / 64 ? 40 * n + 4096 : SIZE_MAX, &v, err));
	enum gt_code code = add_lines(v, name, text, n, err);
	if (code != GT_OK) {
		gt_vocab_close(v);
		return code;
	}
	*out = v;
	return GT_OK;
}

enum gt_code gt_vocab_text(const struct gt_vocab *v, char **text, size_t *n, struct gt_err *err)
{
	int32_t size = v->table.n;
	size_t room = 2 * (size_t)v->table.end[size - 1] + (size_t)size; /* every byte escaped */
	char *to = malloc(room);
	*text = to;
	*n = 0;
	if (!to)
		return gt_fail_memory(err, room);
	for (int32_t i = 0; i < size; i++) {
		size_t len;
		const char *p = gt_token_table_get(&v->table, i, &len);
		for (size_t k = 0; k < len; k++) {
			char escape = v->kind == GT_VOCAB_BERT ? 0 : p[k] == '\n' ? 'n' : p[k] == '\r' ? 'r' : p[k] == '\\' ? '\\' : 0;
			if (escape)
				*to++ = '\\';
			*to++ = escape ? escape : p[k];
		}
		*to++ = '\n';
	}
	*n = (size_t)(to - *text);
	return GT_OK;
}
