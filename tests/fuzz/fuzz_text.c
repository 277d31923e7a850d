/* Tokenizers. The first byte chooses the tokenizer and the limit; the rest is the text. What is no UTF-8 must be refused by all in the
 * same way; ids are in range, and cutting a text keeps its first and last ids. Words are counted, and the vocabulary is written and read
 * again. */
#include "fuzz_file.h"
#include "text/tokenizer.h"
#include <string.h>

enum { ROOM = 1 << 17 };

static const char bert[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\n##a\n##b\nthe\n##the\n!\n\xc3\x9f\ne\n##e\n\xe4\xb8\xad\n";

static struct gt_vocab *parse(const char *text, size_t n, enum gt_vocab_kind kind)
{
	struct gt_vocab *v;
	struct gt_err e;
	FUZZ_ASSERT(gt_vocab_parse("v", text, n, kind, &v, &e) == GT_OK);
	return v;
}

/* Tokenizes with all of a text in the list, then with a limit. */
static void tokenize(const struct gt_tokenizer *t, const char *text, size_t n, uint8_t choice)
{
	static int32_t all[ROOM], some[64];
	static uint32_t hash[ROOM];
	static int32_t grams[2 * ROOM];
	static struct gt_text_scratch s;
	struct gt_tokens got, cut;
	struct gt_err e = {0}, again = {0};
	int32_t special = (t->first >= 0) + (t->last >= 0), max = special + 1 + choice % 32;
	FUZZ_ASSERT(gt_tokenizer_check_max(t, max, &e) == GT_OK);
	enum gt_code code = gt_tokenize(t, text, n, ROOM, &s, all, hash, &got, &e);
	FUZZ_ASSERT(gt_tokenize(t, text, n, max, &s, some, NULL, &cut, &again) == code);
	if (code != GT_OK) {
		/* "byte N: …", or "expected UTF-8, got UTF-16" and the like, for files that are recognised by their first bytes */
		bool named = !strncmp(e.msg, "byte ", 5) || !strncmp(e.msg, "expected UTF-8, got ", 20);
		FUZZ_ASSERT(code == GT_EDATA && named && !strcmp(e.msg, again.msg) && !got.n && !cut.n);
		return;
	}
	/* a text can have more tokens than the list has room for; the list then has the first ones and the last special one */
	FUZZ_ASSERT(got.truncated ? got.n == ROOM : got.n >= special);
	FUZZ_ASSERT(cut.truncated == (got.n > max) && cut.n == (cut.truncated ? max : got.n));
	for (int32_t i = 0; i < got.n; i++)
		FUZZ_ASSERT(all[i] >= 0 && all[i] < t->size);
	int32_t tail = cut.truncated && t->last >= 0, head = cut.n - tail;
	FUZZ_ASSERT(!memcmp(some, all, (size_t)head * sizeof *all));
	FUZZ_ASSERT(got.truncated || !memcmp(some + head, all + got.n - tail, (size_t)tail * sizeof *all));
	int64_t n_grams = gt_ngrams(hash, got.n, 3, t->size, 1000, grams);
	FUZZ_ASSERT(n_grams == gt_ngrams_count(got.n, 3));
	for (int64_t i = 0; i < n_grams; i++)
		FUZZ_ASSERT(grams[i] >= t->size && grams[i] < t->size + 1000);
}

/* Words that were counted have ids in a vocabulary of all of them, and its text form is read back as it was. */
static void count(const char *text, size_t n, uint8_t choice)
{
	static struct gt_text_scratch s;
	struct gt_vocab_counter *c;
	struct gt_vocab *v, *again;
	struct gt_tokenizer t;
	struct gt_err e = {0};
	char *one, *two;
	size_t n_one, n_two;
	FUZZ_ASSERT(gt_vocab_counter_open(1 << 22, &c, &e) == GT_OK);
	enum gt_code code = gt_words_count(text, n, &s, c, &e);
	FUZZ_ASSERT(code == GT_OK || (code == GT_EDATA && e.msg[0]));
	if (gt_vocab_build(c, 1, 1000000, &v, &e) == GT_OK) {
		FUZZ_ASSERT(gt_vocab_text(v, &one, &n_one, &e) == GT_OK);
		again = parse(one, n_one, GT_VOCAB_WORDS);
		FUZZ_ASSERT(gt_vocab_text(again, &two, &n_two, &e) == GT_OK && n_one == n_two && !memcmp(one, two, n_one));
		FUZZ_ASSERT(gt_tokenizer_init(&t, GT_TOK_WORDS, again, &e) == GT_OK);
		tokenize(&t, text, n, choice);
		free(one);
		free(two);
		gt_vocab_close(v);
		gt_vocab_close(again);
	}
	gt_vocab_counter_close(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct gt_vocab *wordpiece;
	struct gt_tokenizer t;
	struct gt_err e = {0};
	if (!size)
		return 0;
	const char *text = (const char *)data + 1;
	if (!wordpiece)
		wordpiece = parse(bert, sizeof bert - 1, GT_VOCAB_BERT);
	FUZZ_ASSERT(gt_tokenizer_init(&t, GT_TOK_BYTES, NULL, &e) == GT_OK);
	tokenize(&t, text, size - 1, data[0]);
	FUZZ_ASSERT(gt_tokenizer_init(&t, GT_TOK_WORDPIECE, wordpiece, &e) == GT_OK);
	tokenize(&t, text, size - 1, data[0]);
	count(text, size - 1, data[0]);
	return 0;
}
