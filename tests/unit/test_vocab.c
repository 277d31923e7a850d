/* Vocabularies: built by counting, written and read as text, and hostile text. */
#include "test.h"
#include "text/vocab.h"
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

static struct gt_err e;

static void count(struct gt_vocab_counter *c, const char *word, int times)
{
	while (times--)
		CHECK_OK(gt_vocab_count(c, word, strlen(word), &e), e);
}

static struct gt_vocab_counter *counter(size_t max_bytes)
{
	struct gt_vocab_counter *c = NULL;
	CHECK_OK(gt_vocab_counter_open(max_bytes, &c, &e), e);
	return c;
}

/* The text form of v, which the caller frees, with a NUL at its end. */
static char *text_of(const struct gt_vocab *v, size_t *n)
{
	char *text = NULL;
	CHECK_OK(gt_vocab_text(v, &text, n, &e), e);
	text = realloc(text, *n + 1);
	text[*n] = 0;
	return text;
}

static bool text_is(const struct gt_vocab *v, const char *want)
{
	size_t n;
	char *text = text_of(v, &n);
	bool same = n == strlen(want) && !memcmp(text, want, n);
	if (!same)
		printf("# got:\n%s", text);
	free(text);
	return same;
}

static int32_t find(const struct gt_vocab *v, const char *word)
{
	return gt_words_find(&v->words, word, strlen(word));
}

TEST(vocab_orders_by_frequency_then_bytes)
{
	struct gt_vocab_counter *c = counter(1 << 20);
	struct gt_vocab *v;
	count(c, "rare", 1);
	count(c, "b", 3);
	count(c, "\xc3\xa9", 3); /* é: after all ASCII */
	count(c, "ba", 3);
	count(c, "a", 3);
	count(c, "most", 7);
	count(c, "<unk>", 9); /* a word like a special token does not become a second one */
	CHECK_OK(gt_vocab_build(c, 1, 100, &v, &e), e);
	CHECK(v->words.n == 8);
	gt_vocab_close(v);
	CHECK_OK(gt_vocab_build(c, 2, 100, &v, &e), e);
	CHECK(text_is(v, "<pad>\n<unk>\nmost\na\nb\nba\n\xc3\xa9\n"));
	CHECK(v->words.n == 7 && v->longest == 5 && v->kind == GT_VOCAB_WORDS);
	CHECK(find(v, "<pad>") == 0 && find(v, "<unk>") == 1 && find(v, "most") == 2 && find(v, "rare") == -1 && find(v, "") == -1);
	gt_vocab_close(v);
	CHECK_OK(gt_vocab_build(c, 1, 4, &v, &e), e);
	CHECK(text_is(v, "<pad>\n<unk>\nmost\na\n"));
	gt_vocab_close(v);
	CHECK(gt_vocab_build(c, 10, 100, &v, &e) == GT_EDATA && strstr(e.msg, "at least 10 times (min_freq)") && !v);
	CHECK(gt_vocab_build(c, 1, 2, &v, &e) == GT_EDATA && strstr(e.msg, "max_vocab") && !v);
	gt_vocab_counter_close(c);
	c = counter(1 << 20);
	CHECK(gt_vocab_build(c, 0, 100, &v, &e) == GT_EDATA && !v);
	gt_vocab_counter_close(c);
	gt_vocab_counter_close(NULL);
	gt_vocab_close(NULL);
}

TEST(vocab_of_many_words_is_found_again)
{
	enum { N = 200000 };
	struct gt_vocab_counter *c = counter(64 << 20);
	struct gt_vocab *v, *again;
	char word[32];
	for (int i = 0; i < N; i++) {
		snprintf(word, sizeof word, "w%d", i * 7);
		count(c, word, 1 + i % 3);
	}
	CHECK_OK(gt_vocab_build(c, 1, N + 2, &v, &e), e);
	CHECK(v->words.n == N + 2);
	size_t n, len;
	char *text = text_of(v, &n);
	CHECK_OK(gt_vocab_parse("v", text, n, GT_VOCAB_WORDS, &again, &e), e);
	int wrong = 0;
	for (int32_t i = 0; i < v->words.n; i++) {
		const char *p = gt_vocab_token(v, i, &len);
		wrong += gt_words_find(&v->words, p, len) != i || gt_words_find(&again->words, p, len) != i;
	}
	CHECK_MSG(!wrong, "%d tokens have another id", wrong);
	CHECK(find(v, "w1") == -1);
	CHECK((size_t)gt_words_bytes(&again->words) <= 40 * n + 4096 + 64);
	printf("# %d words, %zu bytes of text: %zu bytes in memory\n", N, n, (size_t)gt_words_bytes(&v->words));
	free(text);
	gt_vocab_close(v);
	gt_vocab_close(again);
	gt_vocab_counter_close(c);
}

/* Returns the number of bytes that malloc has given out; 0 with a sanitizer. */
static size_t in_use(void)
{
	struct mallinfo2 m = mallinfo2();
	return m.uordblks + m.hblkhd;
}

TEST(vocab_counter_keeps_its_limit)
{
	enum { LIMIT = 1 << 20 };
	struct gt_vocab_counter *c = counter(LIMIT);
	struct gt_vocab *v;
	enum gt_code code = GT_OK;
	char word[32];
	int i = 0;
	size_t before = in_use(), most = 0;
	for (; code == GT_OK && i < 1000000; i++) {
		snprintf(word, sizeof word, "w%d", i);
		code = gt_vocab_count(c, word, strlen(word), &e);
		most = i % 64 || in_use() < most ? most : in_use();
	}
	CHECK(code == GT_EDATA && strstr(e.msg, "at most 1.00 MiB in memory"));
	CHECK_MSG(i > 5000, "only %d words in 1 MiB", i);
	CHECK_MSG(most <= before + LIMIT + 4 * 4096, "%zu bytes", most - before); /* malloc rounds each of its few blocks up to pages */
	/* counts of the words before are intact */
	CHECK_OK(gt_vocab_build(c, 1, 1000000, &v, &e), e);
	CHECK(v->words.n >= i - 1);
	gt_vocab_close(v);
	gt_vocab_counter_close(c);
	CHECK(gt_vocab_counter_open(16, &c, &e) == GT_EDATA && !c);
}

TEST(vocab_long_words_are_not_counted)
{
	struct gt_vocab_counter *c = counter(1 << 20);
	struct gt_vocab *v;
	char *word = calloc(1, GT_TOKEN_MAX + 1);
	memset(word, 'x', GT_TOKEN_MAX + 1);
	CHECK_OK(gt_vocab_count(c, word, GT_TOKEN_MAX + 1, &e), e);
	CHECK(gt_vocab_build(c, 1, 100, &v, &e) == GT_EDATA);
	CHECK_OK(gt_vocab_count(c, word, GT_TOKEN_MAX, &e), e);
	CHECK_OK(gt_vocab_build(c, 1, 100, &v, &e), e);
	CHECK(v->words.n == 3);
	gt_vocab_close(v);
	free(word);
	gt_vocab_counter_close(c);
}

TEST(vocab_escapes)
{
	struct gt_vocab_counter *c = counter(1 << 20);
	struct gt_vocab *v, *again;
	count(c, "a\\nb", 3);
	count(c, "a\nb", 2);
	count(c, "\r", 1);
	CHECK_OK(gt_vocab_build(c, 1, 100, &v, &e), e);
	const char *want = "<pad>\n<unk>\na\\\\nb\na\\nb\n\\r\n";
	CHECK(text_is(v, want));
	CHECK_OK(gt_vocab_parse("v", want, strlen(want), GT_VOCAB_WORDS, &again, &e), e);
	CHECK(find(again, "a\\nb") == 2 && find(again, "a\nb") == 3 && find(again, "\r") == 4 && again->words.n == 5);
	gt_vocab_close(v);
	gt_vocab_close(again);
	gt_vocab_counter_close(c);
}

TEST(vocab_of_bert)
{
	struct gt_vocab *v;
	const char *text = "[PAD]\r\n[UNK]\r\n\\\n##s\nthe\nthe\nend";
	CHECK_OK(gt_vocab_parse("vocab.txt", text, strlen(text), GT_VOCAB_BERT, &v, &e), e);
	CHECK(v->words.n == 7 && v->kind == GT_VOCAB_BERT);
	CHECK(find(v, "[PAD]") == 0 && find(v, "\\") == 2 && find(v, "##s") == 3 && find(v, "end") == 6);
	CHECK(find(v, "the") == 5); /* as in the reference, the last of equal lines */
	CHECK(text_is(v, "[PAD]\n[UNK]\n\\\n##s\nthe\nthe\nend\n"));
	gt_vocab_close(v);
}

static void refuses(enum gt_vocab_kind kind, const char *text, size_t n, const char *want)
{
	struct gt_vocab *v;
	enum gt_code code = gt_vocab_parse("vocab.txt", text, n, kind, &v, &e);
	CHECK_MSG(code == GT_EDATA && !v, "read with code %d: %.40s", code, text);
	CHECK_MSG(strstr(e.msg, want), "expected \"%s\", got \"%s\"", want, e.msg);
	if (code == GT_OK)
		gt_vocab_close(v);
}

TEST(vocab_hostile_text)
{
#define REFUSES(kind, text, want) refuses(kind, text, sizeof(text) - 1, want)
	REFUSES(GT_VOCAB_WORDS, "", "vocab.txt: expected one token per line, got an empty file");
	REFUSES(GT_VOCAB_BERT, "", "vocab.txt: expected one token per line, got an empty file");
	REFUSES(GT_VOCAB_WORDS, "<pad>\n<unk>\n", "vocab.txt: expected one token per line, got only special tokens");
	REFUSES(GT_VOCAB_WORDS, "<pad>\nthe\n", "vocab.txt:2: expected the special token <unk>");
	REFUSES(GT_VOCAB_WORDS, "<pad>\n<unk>\nthe", "vocab.txt:3: expected a line feed");
	REFUSES(GT_VOCAB_WORDS, "<pad>\n<unk>\nthe\na\nthe\n", "vocab.txt:5: expected a new token, got the token of line 3 again");
	REFUSES(GT_VOCAB_WORDS, "<pad>\n<unk>\n\n", "vocab.txt:3: expected a token of 1 to 512 bytes, got an empty line");
	REFUSES(GT_VOCAB_BERT, "a\n\nb\n", "vocab.txt:2: expected a token of 1 to 512 bytes, got an empty line");
	REFUSES(GT_VOCAB_WORDS, "<pad>\n<unk>\na\\tb\n", "vocab.txt:3: expected \\\\, \\n or \\r after a backslash");
	REFUSES(GT_VOCAB_WORDS, "<pad>\n<unk>\na\\\n", "vocab.txt:3: expected \\\\, \\n or \\r after a backslash");
	REFUSES(GT_VOCAB_WORDS, "<pad>\n<unk>\na\0b\n", "vocab.txt:3: expected text, got a NUL byte");
	REFUSES(GT_VOCAB_BERT, "a\0b\n", "vocab.txt:1: expected text, got a NUL byte");
	REFUSES(GT_VOCAB_BERT, "a\r\r\n", "vocab.txt:1: expected a line feed after a carriage return");
	REFUSES(GT_VOCAB_BERT, "a\nb\rc\n", "vocab.txt:2: expected a line feed after a carriage return");
	REFUSES(GT_VOCAB_BERT, "a\nb\xff\n", "vocab.txt:2: byte 1: expected UTF-8, got 0xff");
	REFUSES(GT_VOCAB_WORDS, "<pad>\n<unk>\n\xc3\n", "vocab.txt:3: byte 0: expected UTF-8, got 0xc3");
	size_t n = 10 << 20; /* one line of 10 MiB */
	char *text = malloc(n);
	memset(text, 'x', n);
	refuses(GT_VOCAB_BERT, text, n, "vocab.txt:1: expected a token of 1 to 512 bytes, got a longer line");
	refuses(GT_VOCAB_WORDS, text, n, "vocab.txt:1: expected a line feed");
	free(text);
}

RUN_TESTS()
