/* The tokenizers: checks, special tokens and truncation; words.c and wordpiece.c divide the text. */
#include "base/arena.h"
#include "text/text_utf8.h"
#include "text/token_sink.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

static enum gt_code find_special_token(const struct gt_vocab *v, const char *token, int32_t *id, struct gt_err *err)
{
	*id = gt_words_find(&v->words, token, strlen(token));
	if (*id < 0)
		return gt_fail(err, GT_EDATA, "expected the special token %s in the vocabulary, got none", token);
	return GT_OK;
}

const char *const gt_tokenizer_names[] = {"words", "bytes", "wordpiece"};

enum gt_code gt_tokenizer_init(struct gt_tokenizer *t, enum gt_tokenizer_kind kind, const struct gt_vocab *vocab, struct gt_err *err)
{
	*t = (struct gt_tokenizer){.kind = kind, .vocab = vocab, .unk = -1, .first = -1, .last = -1};
	if (kind == GT_TOK_BYTES) {
		t->size = 257;
		return GT_OK;
	}
	bool bert = kind == GT_TOK_WORDPIECE;
	if ((vocab->kind == GT_VOCAB_BERT) != bert)
		return gt_fail(err, GT_EDATA, "expected a vocabulary of %s, got a vocabulary of %s", bert ? "WordPiece" : "words",
		               bert ? "words" : "WordPiece");
	t->size = vocab->words.n;
	GT_TRY(find_special_token(vocab, bert ? "[PAD]" : "<pad>", &t->pad, err));
	GT_TRY(find_special_token(vocab, bert ? "[UNK]" : "<unk>", &t->unk, err));
	if (bert) {
		GT_TRY(find_special_token(vocab, "[CLS]", &t->first, err));
		GT_TRY(find_special_token(vocab, "[SEP]", &t->last, err));
	}
	return GT_OK;
}

void gt_text_scratch_close(struct gt_text_scratch *s)
{
	free(s->p);
	*s = (struct gt_text_scratch){0};
}

enum gt_code gt_tokenizer_check_max(const struct gt_tokenizer *t, int64_t max, struct gt_err *err)
{
	int special = (t->first >= 0) + (t->last >= 0);
	return max > special ? GT_OK : gt_fail(err, GT_ECONFIG, "expected a maximum length of at least %d tokens, got %lld", special + 1,
	                                       (long long)max);
}

static bool put_word(void *user, const char *p, size_t n)
{
	struct gt_token_sink *to = user;
	int32_t id = n <= GT_TOKEN_MAX ? gt_words_find(&to->t->vocab->words, p, n) : -1;
	return gt_sink_put(to, id < 0 ? to->t->unk : id, p, n);
}

static void put_bytes(const char *text, size_t n, struct gt_token_sink *to)
{
	for (size_t i = 0; i < n; i++)
		if (!gt_sink_put(to, 1 + (uint8_t)text[i], text + i, 1))
			return;
}

enum gt_code gt_tokenize(const struct gt_tokenizer *t, const char *text, size_t n, int32_t max, struct gt_text_scratch *s, int32_t *ids,
                         uint32_t *hash, struct gt_tokens *out, struct gt_err *err)
{
	*out = (struct gt_tokens){0};
	int32_t first = t->first >= 0, room = max - first - (t->last >= 0);
	assert(room > 0);
	struct gt_token_sink to = {.t = t, .ids = ids + first, .hash = hash ? hash + first : NULL, .room = room};
	GT_TRY(gt_utf8_check(text, n, err));
	switch (t->kind) {
	case GT_TOK_WORDS:
		GT_TRY(gt_words_each(text, n, s, put_word, &to, err));
		break;
	case GT_TOK_BYTES:
		put_bytes(text, n, &to);
		break;
	case GT_TOK_WORDPIECE:
		gt_wordpiece(text, n, &to);
	}
	out->truncated = to.truncated;
	const int32_t special[] = {t->first, t->last}, at[] = {0, first + to.n};
	for (int i = 0; i < 2; i++)
		if (special[i] >= 0) {
			size_t bytes;
			const char *p = gt_vocab_token(t->vocab, special[i], &bytes);
			ids[at[i]] = special[i];
			if (hash)
				hash[at[i]] = gt_token_hash(p, bytes);
		}
	out->n = first + to.n + (t->last >= 0);
	return GT_OK;
}

struct counting {
	struct gt_vocab_counter *counter;
	struct gt_err *err;
	enum gt_code code;
};

static bool count_word(void *user, const char *p, size_t n)
{
	struct counting *c = user;
	c->code = gt_vocab_count(c->counter, p, n, c->err);
	return c->code == GT_OK;
}

enum gt_code gt_words_count(const char *text, size_t n, struct gt_text_scratch *s, struct gt_vocab_counter *counter, struct gt_err *err)
{
	struct counting c = {counter, err, GT_OK};
	GT_TRY(gt_utf8_check(text, n, err));
	GT_TRY(gt_words_each(text, n, s, count_word, &c, err));
	return c.code;
}

static bool stop_at_first_word(void *user, const char *p, size_t n)
{
	(void)p;
	(void)n;
	*(bool *)user = true;
	return false;
}

enum gt_code gt_text_has_tokens(enum gt_tokenizer_kind kind, const char *text, size_t n, struct gt_text_scratch *s, bool *some,
                                struct gt_err *err)
{
	GT_TRY(gt_utf8_check(text, n, err));
	*some = kind == GT_TOK_WORDPIECE || (kind == GT_TOK_BYTES && n);
	return kind == GT_TOK_WORDS ? gt_words_each(text, n, s, stop_at_first_word, some, err) : GT_OK;
}

/* ---- n-grams ------------------------------------------------------------------------------------------------------------------ */
int64_t gt_ngrams_count(int32_t n, int32_t longest)
{
	int64_t count = 0;
	for (int32_t k = 2; k <= longest && k <= n; k++)
		count += n - k + 1;
	return count;
}

int64_t gt_ngrams(const uint32_t *hash, int32_t n, int32_t longest, int32_t first, uint32_t buckets, int32_t *out)
{
	int64_t count = 0;
	for (int32_t i = 0; i < n; i++) {
		uint64_t h = (uint64_t)(int32_t)hash[i];
		for (int32_t j = i + 1; j < n && j - i < longest; j++) {
			h = h * 116049371u + (uint64_t)(int32_t)hash[j];
			out[count++] = first + (int32_t)(h % buckets);
		}
	}
	return count;
}
