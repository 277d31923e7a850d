#include "text_data.h"
#include "base/arena.h"
#include "base/fileio.h"
#include "text/tokenizer.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WORDS ((size_t)4 << 30)     /* maximum bytes of all distinct words of the training split */
#define MAX_VOCAB ((uint64_t)64 << 20)  /* maximum bytes of the file of a vocabulary */

/* ---- vocabularies --------------------------------------------------------------------------------------------------------------- */
/* Rejects a file whose first bytes show that it is not a vocab.txt. */
static enum gt_code reject_other_formats(const char *name, const char *text, size_t n, struct gt_err *err)
{
	if (n >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
		return gt_fail(err, GT_EDATA, "%.400s:1: expected a token, got a byte order mark before it; remove the first three bytes, for "
		               "example with: tail -c +4 FILE >vocab.txt", name);
	size_t blank = strspn(text, " \t\r\n");
	if (text[blank] == '{' && strpbrk(text + blank + 1, "\"}"))
		return gt_fail(err, GT_EDATA, "%.400s: expected a vocab.txt with one token per line, got JSON, as in a tokenizer.json; extract its "
		               "tokens with: jq -r '.model.vocab | to_entries | sort_by(.value) | .[].key' tokenizer.json >vocab.txt", name);
	return GT_OK;
}

/* Checks that a vocabulary has the special tokens, and no duplicate tokens: the embedding row of a duplicate would never be used. */
static enum gt_code check_tokens(const char *name, const struct gt_vocab *v, struct gt_err *err)
{
	struct gt_tokenizer t;
	size_t n;
	if (gt_tokenizer_init(&t, GT_TOK_WORDPIECE, v, err) != GT_OK)
		return gt_fail_prefix(err, "%.400s", name);
	for (int32_t i = 0; i < v->words.n; i++) {
		const char *token = gt_vocab_token(v, i, &n);
		int32_t last = gt_words_find(&v->words, token, n);
		if (last != i)
			return gt_fail(err, GT_EDATA, "%.400s:%d: expected a new token, got \"%.*s\", the token of line %d, again; rename one of the "
			               "two, for example to [unused0]", name, last + 1, (int)(n > 60 ? 60 : n), token, i + 1);
	}
	return GT_OK;
}

static enum gt_code read_vocab(const struct gt_text_spec *spec, struct gt_vocab **out, struct gt_err *err)
{
	char *text;
	size_t n;
	if (!*spec->vocab)
		return gt_fail(err, GT_ECONFIG, "data.vocab: expected a model's vocab.txt, because data.tokenizer = \"wordpiece\", got no file");
	GT_TRY(gt_file_read(spec->vocab, MAX_VOCAB, &text, &n, err));
	enum gt_code code = reject_other_formats(spec->vocab, text, n, err);
	if (code == GT_OK)
		code = gt_vocab_parse(spec->vocab, text, n, GT_VOCAB_BERT, out, err);
	free(text);
	GT_TRY(code);
	code = check_tokens(spec->vocab, *out, err);
	if (code != GT_OK) {
		gt_vocab_close(*out);
		*out = NULL;
	}
	return code;
}

/* Sets *ids to the number of token ids, n-gram ids included. */
static enum gt_code count_ids(const struct gt_text_spec *spec, const struct gt_vocab *vocab, int64_t *ids, struct gt_err *err)
{
	struct gt_tokenizer t;
	GT_TRY(gt_tokenizer_init(&t, (enum gt_tokenizer_kind)spec->tokenizer, vocab, err));
	*ids = t.size + (spec->ngrams > 1 ? spec->hash_buckets : 0);
	if (*ids >= INT32_MAX)
		return gt_fail(err, GT_ECONFIG, "data.hash_buckets: expected fewer than %d ids in total, with %d of the vocabulary, got %lld",
		               INT32_MAX, t.size, (long long)*ids);
	return GT_OK;
}

static enum gt_code build_vocab(const struct gt_texts *t, const struct gt_text_spec *spec, const int64_t *row, int64_t nrows,
                                struct gt_vocab **out, struct gt_err *err)
{
	struct gt_vocab_counter *c;
	struct gt_text_scratch scratch = {0};
	GT_TRY(gt_vocab_counter_open(MAX_WORDS, &c, err));
	enum gt_code code = GT_OK;
	for (int64_t i = 0; i < nrows && code == GT_OK; i++) {
		size_t n;
		const char *text = gt_texts_get(t, row ? row[i] : i, &n);
		code = gt_words_count(text, n, &scratch, c, err);
	}
	gt_text_scratch_close(&scratch);
	if (code == GT_OK)
		code = gt_vocab_build(c, spec->min_freq, spec->max_vocab, out, err);
	if (code == GT_EDATA)
		gt_fail_prefix(err, "data.tokenizer");
	gt_vocab_counter_close(c);
	if (code == GT_OK && (size_t)(*out)->words.offset[(*out)->words.n] > MAX_VOCAB)
		code = gt_fail(err, GT_EDATA, "data.max_vocab: expected a vocabulary of at most %d MiB, the limit of a checkpoint, got %zu MiB; "
		               "write a smaller value", (int)(MAX_VOCAB >> 20), (size_t)(*out)->words.offset[(*out)->words.n] >> 20);
	return code;
}

enum gt_code gt_texts_fit(const struct gt_texts *t, const struct gt_text_spec *spec, const int64_t *row, int64_t nrows,
                          struct gt_text_facts *out, struct gt_err *err)
{
	if (spec->tokenizer == GT_TOK_WORDPIECE)
		GT_TRY(read_vocab(spec, &out->vocab, err));
	else if (spec->tokenizer == GT_TOK_WORDS)
		GT_TRY(build_vocab(t, spec, row, nrows, &out->vocab, err));
	return count_ids(spec, out->vocab, &out->ids, err);
}

/* ---- fields ---------------------------------------------------------------------------------------------------------------------- */
enum gt_code gt_texts_describe(const struct gt_text_spec *spec, const struct gt_text_facts *facts, struct gt_field *tokens,
                               struct gt_field *lengths, struct gt_err *err)
{
	struct gt_tokenizer t;
	int64_t now;
	GT_TRY(count_ids(spec, facts->vocab, &now, err));
	GT_TRY(gt_tokenizer_init(&t, (enum gt_tokenizer_kind)spec->tokenizer, facts->vocab, err));
	if (gt_tokenizer_check_max(&t, spec->max_tokens, err) != GT_OK)
		return gt_fail_prefix(err, "data.max_tokens");
	if (now != facts->ids)
		return gt_fail(err, GT_ECONFIG, "data.tokenizer: expected the %lld different tokens with which the model was trained, got %lld",
		               (long long)facts->ids, (long long)now);
	int64_t width = spec->max_tokens + gt_ngrams_count((int32_t)spec->max_tokens, (int32_t)spec->ngrams);
	*tokens = (struct gt_field){
	    .name = "tokens", .dtype = GT_I32, .width = width, .ragged = true, .pad = t.pad, .codes = &facts->ids, .ncodes = 1};
	*lengths = (struct gt_field){.name = "lengths", .dtype = GT_I32};
	return GT_OK;
}

/* State of a conversion. */
struct work {
	const struct gt_texts *t;
	const struct gt_text_spec *spec;
	struct gt_tokenizer by;
	struct gt_text_scratch scratch;
	uint32_t *hash; /* [max_tokens] */
	int32_t *id;    /* [width] token ids of one text */
};

/* Writes the sequence of text i to w->id, and returns its length. */
static enum gt_code convert_text(struct work *w, int64_t i, int64_t *out, struct gt_text_counts *counts, struct gt_err *err)
{
	struct gt_tokens got;
	size_t n;
	const char *text = gt_texts_get(w->t, i, &n);
	bool grams = w->spec->ngrams > 1;
	GT_TRY(gt_tokenize(&w->by, text, n, (int32_t)w->spec->max_tokens, &w->scratch, w->id, grams ? w->hash : NULL, &got, err));
	for (int32_t k = 0; k < got.n; k++)
		counts->unknown += w->id[k] == w->by.unk;
	counts->texts++;
	counts->tokens += got.n;
	counts->truncated += got.truncated;
	*out = got.n;
	if (grams)
		*out += gt_ngrams(w->hash, got.n, (int32_t)w->spec->ngrams, w->by.size, (uint32_t)w->spec->hash_buckets, w->id + got.n);
	return GT_OK;
}

/* Converts all texts; *room: number of tokens that fit into tokens->data. */
static enum gt_code convert_all(struct work *w, gt_text_name *name, const void *user, struct gt_field *tokens, int32_t *length,
                                int64_t *room, struct gt_text_counts *counts, struct gt_err *err)
{
	int32_t *to = NULL;
	char buf[GT_PATH_SIZE];
	int64_t n;
	for (int64_t i = 0; i < w->t->n; i++) {
		int64_t at = tokens->start[i];
		GT_TRY(convert_text(w, i, &n, counts, err));
		if (!n && name)
			return gt_fail(err, GT_EDATA, "%.600s: expected a text with at least one token, got none", name(user, i, buf, sizeof buf));
		if (!n)
			w->id[n++] = tokens->pad;
		to = tokens->data;
		GT_SPILL_GROW(w->t->spill, to, *room, at + n, err);
		tokens->data = to;
		memcpy(to + at, w->id, (size_t)n * sizeof *to);
		tokens->start[i + 1] = at + n;
		length[i] = (int32_t)n;
	}
	to = gt_spill_resize(w->t->spill, tokens->data, (size_t)(tokens->start[w->t->n] + 1) * sizeof *to);
	tokens->data = to ? to : tokens->data;
	return GT_OK;
}

enum gt_code gt_texts_fields(const struct gt_texts *t, const struct gt_text_spec *spec, const struct gt_vocab *vocab, gt_text_name *name,
                             const void *user, struct gt_field *tokens, struct gt_field *lengths, struct gt_text_counts *counts,
                             struct gt_err *err)
{
	struct work w = {.t = t, .spec = spec};
	int64_t room = 0;
	GT_TRY(gt_tokenizer_init(&w.by, (enum gt_tokenizer_kind)spec->tokenizer, vocab, err));
	w.hash = malloc((size_t)spec->max_tokens * sizeof *w.hash);
	w.id = malloc((size_t)tokens->width * sizeof *w.id);
	tokens->start = gt_spill_zeros(t->spill, (size_t)t->n + 1, sizeof *tokens->start);
	int32_t *length = lengths->data = gt_spill_resize(t->spill, NULL, (size_t)(t->n + 1) * sizeof *length);
	*counts = (struct gt_text_counts){0};
	bool some = w.hash && w.id && tokens->start && length;
	enum gt_code code = some ? convert_all(&w, name, user, tokens, length, &room, counts, err)
	                         : gt_fail_memory(err, (size_t)(t->n + tokens->width) * sizeof *w.id);
	free(w.hash);
	free(w.id);
	gt_text_scratch_close(&w.scratch);
	return code;
}

/* ---- JSON ------------------------------------------------------------------------------------------------------------------------- */
enum gt_code gt_text_json_put(struct gt_json *j, const char *key, const struct gt_text_facts *f, struct gt_err *err)
{
	char *text = NULL;
	size_t n;
	if (f->vocab)
		GT_TRY(gt_vocab_text(f->vocab, &text, &n, err));
	char *whole = text ? realloc(text, n + 1) : NULL;
	if (text && !whole) {
		free(text);
		return gt_fail_memory(err, n);
	}
	gt_json_object(j, key);
	gt_json_int(j, "ids", f->ids);
	if (whole) {
		whole[n] = 0;
		if (f->vocab->kind == GT_VOCAB_BERT)
			gt_json_string(j, "kind", "bert");
		gt_json_string(j, "vocabulary", whole);
	}
	gt_json_end(j);
	free(whole);
	return GT_OK;
}

enum gt_code gt_text_json_get(const struct gt_json_value *v, const char *path, struct gt_text_facts *out, struct gt_err *err)
{
	const struct gt_json_value *vocab = gt_json_member(v, "vocabulary");
	const char *kind = gt_json_text(gt_json_member(v, "kind")), *text = gt_json_text(vocab);
	if (!gt_json_whole(gt_json_member(v, "ids"), &out->ids) || out->ids < 1 || out->ids >= INT32_MAX)
		return gt_fail(err, GT_EDATA, "%s: expected \"text\" with the number \"ids\" of different tokens", path);
	if (vocab && !text)
		return gt_fail(err, GT_EDATA, "%s: expected \"vocabulary\" to be a text", path);
	if (!vocab)
		return GT_OK;
	enum gt_vocab_kind k = kind && !strcmp(kind, "bert") ? GT_VOCAB_BERT : GT_VOCAB_WORDS;
	if (gt_vocab_parse("vocabulary", text, strlen(text), k, &out->vocab, err) != GT_OK)
		return gt_fail_prefix(err, "%s", path);
	if (out->ids < out->vocab->words.n)
		return gt_fail(err, GT_EDATA, "%s: expected \"ids\" to be at least %d, the number of tokens in \"vocabulary\", got %lld", path,
		               out->vocab->words.n, (long long)out->ids);
	return GT_OK;
}

enum gt_code gt_text_json_compare(const struct gt_text_facts *ckpt, const struct gt_text_facts *now, const char *where, const char *path,
                                  struct gt_err *err)
{
	int32_t n = ckpt->vocab ? ckpt->vocab->words.n : 0, m = now->vocab ? now->vocab->words.n : 0;
	for (int32_t i = 0; i < n && i < m; i++) {
		size_t a, b;
		const char *p = gt_vocab_token(ckpt->vocab, i, &a), *q = gt_vocab_token(now->vocab, i, &b);
		if (a != b || memcmp(p, q, a))
			return gt_fail(err, GT_EDATA, "%.300s: expected token %d of the vocabulary to be \"%.*s\", as in the checkpoint %.300s, got "
			               "\"%.*s\"", where, i, (int)(a < 80 ? a : 80), p, path,
			               (int)(b < 80 ? b : 80), q);
	}
	if (n != m || ckpt->ids != now->ids)
		return gt_fail(err, GT_EDATA, "%.300s: expected a vocabulary of %d tokens and %lld ids, as in the checkpoint %.300s, got %d and "
		               "%lld", where, n, (long long)ckpt->ids, path, m, (long long)now->ids);
	return GT_OK;
}
