/* Tokenizers: the words of hand-made texts, ids, truncation, hashed n-grams, hostile texts, and WordPiece against the reference's ids. */
#include "base/fileio.h"
#include "test.h"
#include "text/text_utf8.h"
#include "text/token_sink.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct gt_err e;

struct joined {
	char text[4096];
	size_t n;
};

static bool join_word(void *user, const char *p, size_t n)
{
	struct joined *j = user;
	if (j->n + n + 2 > sizeof j->text)
		return false;
	if (j->n)
		j->text[j->n++] = '|';
	memcpy(j->text + j->n, p, n);
	j->n += n;
	return true;
}

static void words_are(const char *text, size_t n, const char *want)
{
	struct gt_text_scratch s = {0};
	struct joined got = {0};
	CHECK_OK(gt_words_each(text, n, &s, join_word, &got, &e), e);
	CHECK_MSG(got.n == strlen(want) && !memcmp(got.text, want, got.n), "%s: expected \"%s\", got \"%.*s\"", text, want, (int)got.n,
	          got.text);
	gt_text_scratch_close(&s);
}
#define WORDS(text, want) words_are(text, sizeof(text) - 1, want)

TEST(words_of_english)
{
	WORDS("", "");
	WORDS("  \t\n ", "");
	WORDS("The quick, brown Fox.", "the|quick|,|brown|fox|.");
	WORDS("well-made _so_ C3PO 1990s", "well|-|made|_|so|_|c3po|1990s");
	WORDS("costs 3.5 or 10,000.50, no. 7.", "costs|3.5|or|10,000.50|,|no|.|7|.");
	WORDS("wow!!!!! ... hm.. --", "wow|!!!|...|hm|..|--");
	WORDS("a/b 10/10 :-)", "a|/|b|10|/|10|:|-|)");
}

TEST(words_contractions)
{
	WORDS("Don't can't it's I'm we'll they're I've he'd", "do|n't|ca|n't|it|'s|i|'m|we|'ll|they|'re|i|'ve|he|'d");
	WORDS("shouldn't've o'neill's rock'n'roll y'all", "should|n't|'ve|o'neill|'s|rock'n'roll|y'all");
	WORDS("'quoted' actors' 'tis n't 's", "'|quoted|'|actors|'|'|tis|n't|'|s");
	WORDS("don\xe2\x80\x99t it\xe2\x80\x99s", "do|n't|it|'s"); /* U+2019 */
	WORDS("DON'T l'\xc3\x89t\xc3\xa9", "do|n't|l'\xc3\xa9t\xc3\xa9");
}

TEST(words_html)
{
	WORDS("one<br />two<BR>three<br/>four<br\t/ >five", "one|two|three|four|<|br|/|>|five");
	WORDS("<b>bold</b> <brave> a<br", "<|b|>|bold|<|/|b|>|<|brave|>|a|<|br");
	WORDS("AT&amp;T &lt;br /&gt; caf&eacute; d&#233;j&#xE0;", "at|&|t|<|br|/|>|caf\xc3\xa9|d\xc3\xa9j\xc3\xa0");
	WORDS("it&#8217;s don&apos;t rock&#146;s a&nbsp;b", "it|'s|do|n't|rock|'s|a|b");
	WORDS("&thetasym; &Eacute; &euro;5 &hearts;", "\xce\xb8|\xc3\xa9|\xe2\x82\xac|5|\xe2\x99\xa5");
	WORDS("A&H; &#0; &#xD800; &#1114112;", "a|&|h|;|&|#|0|;|&|#|xd800|;|&|#|1114112|;");
	WORDS("&#99999999999; &; &# & &amp", "&|#|99999999999|;|&|;|&|#|&|&|amp");
	WORDS("e&#769; &#65;", "\xc3\xa9|a"); /* a mark from an entity composes with the letter before */
}

TEST(words_unicode)
{
	WORDS("\xe1\xba\x9e Stra\xc3\x9f""e", "ss|strasse");                   /* ẞ and ß */
	WORDS("I\xc4\xb1 \xc4\xb0", "i\xc4\xb1|i\xcc\x87");                     /* the dotless ı remains; İ is i and a dot */
	WORDS("e\xcc\x81t\xc3\xa9 E\xcc\x81", "\xc3\xa9t\xc3\xa9|\xc3\xa9");    /* combining acute: NFC */
	WORDS("\xe1\xb8\x8b\xcc\xa3 d\xcc\x87\xcc\xa3", "\xe1\xb8\x8d\xcc\x87|\xe1\xb8\x8d\xcc\x87"); /* canonical order, then composition */
	WORDS("\xce\x91\xce\xa3 \xcf\x82", "\xce\xb1\xcf\x83|\xcf\x83");        /* both sigmas fold to one */
	WORDS("\xe4\xb8\xad\xe6\x96\x87!", "\xe4\xb8\xad|\xe6\x96\x87|!");      /* 中文 */
	/* Hiragana, Katakana */
	WORDS("\xe3\x81\x82\xe3\x81\x84\xe3\x82\xab\xe3\x83\x8a", "\xe3\x81\x82|\xe3\x81\x84|\xe3\x82\xab\xe3\x83\x8a");
	WORDS("\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab", "\xed\x95\x9c");          /* conjoining Hangul becomes 한 */
	/* emoji: one after the other, with a skin tone, joined; flags */
	WORDS("\xf0\x9f\x98\x80\xf0\x9f\x98\x80 ok", "\xf0\x9f\x98\x80|\xf0\x9f\x98\x80|ok");
	WORDS("ok\xf0\x9f\x91\x8d\xf0\x9f\x8f\xbd", "ok|\xf0\x9f\x91\x8d\xf0\x9f\x8f\xbd");
	WORDS("\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb\xf0\x9f\x98\x80",
	      "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb|\xf0\x9f\x98\x80");
	WORDS("\xf0\x9f\x87\xa9\xf0\x9f\x87\xaa\xf0\x9f\x87\xab\xf0\x9f\x87\xb7",
	      "\xf0\x9f\x87\xa9\xf0\x9f\x87\xaa|\xf0\x9f\x87\xab\xf0\x9f\x87\xb7");
	WORDS("\xe2\x9d\xa4\xef\xb8\x8fx", "\xe2\x9d\xa4\xef\xb8\x8f|x");       /* a heart with a variation selector */
	WORDS("co\xc2\xad""op \xef\xbb\xbfx a\xc2\xa0""b\xe2\x80\xa8""c", "coop|x|a|b|c"); /* soft hyphen, BOM, no-break space, U+2028 */
	WORDS("a\0b\x01""c\xc2\x96""d", "a|b|c|d");                             /* control characters separate */
}

static struct gt_vocab *vocab_of(const char *text, size_t n, enum gt_vocab_kind kind)
{
	struct gt_vocab *v = NULL;
	CHECK_OK(gt_vocab_parse("vocab.txt", text, n, kind, &v, &e), e);
	return v;
}

static bool ids_are(const struct gt_tokenizer *t, const char *text, size_t n, int32_t max, const int32_t *want, int nwant)
{
	int32_t ids[64];
	struct gt_tokens got;
	struct gt_text_scratch s = {0};
	CHECK_OK(gt_tokenizer_check_max(t, max, &e), e);
	CHECK_OK(gt_tokenize(t, text, n, max, &s, ids, NULL, &got, &e), e);
	bool same = got.n == nwant && (!nwant || !memcmp(ids, want, (size_t)nwant * sizeof *ids));
	for (int i = 0; !same && i < got.n; i++)
		printf("# id %d: %d\n", i, ids[i]);
	gt_text_scratch_close(&s);
	return same;
}
#define IDS(t, text, max, ...) \
	CHECK(ids_are(t, text, sizeof(text) - 1, max, (const int32_t[]){__VA_ARGS__}, sizeof((const int32_t[]){__VA_ARGS__}) / 4))

static const int32_t any = 64;

TEST(tokenizer_words)
{
	static const char text[] = "<pad>\n<unk>\nthe\nfilm\nis\n.\nn't\n";
	struct gt_vocab *v = vocab_of(text, sizeof text - 1, GT_VOCAB_WORDS);
	struct gt_tokenizer t;
	CHECK(gt_tokenizer_init(&t, GT_TOK_WORDPIECE, v, &e) == GT_EDATA);
	CHECK(strstr(e.msg, "expected a vocabulary of WordPiece, got a vocabulary of words"));
	CHECK_OK(gt_tokenizer_init(&t, GT_TOK_WORDS, v, &e), e);
	CHECK(t.size == 7 && t.pad == 0 && t.unk == 1 && t.first == -1 && t.last == -1);
	IDS(&t, "The film isn't bad.", any, 2, 3, 4, 6, 1, 5);
	CHECK(ids_are(&t, "", 0, any, NULL, 0));
	IDS(&t, "<pad>", any, 1, 1, 1); /* a text cannot name a special token */
	gt_vocab_close(v);
}

TEST(tokenizer_bytes)
{
	struct gt_tokenizer t;
	CHECK_OK(gt_tokenizer_init(&t, GT_TOK_BYTES, NULL, &e), e);
	CHECK(t.size == 257 && t.pad == 0 && t.unk == -1);
	IDS(&t, "A\0\xc3\xa9", any, 66, 1, 0xc3 + 1, 0xa9 + 1);
}

/* A text that is cut keeps its head. */
TEST(tokenizer_truncates)
{
	static const char bert[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\nc\nd\ne\nf\ng\n";
	struct gt_vocab *v = vocab_of(bert, sizeof bert - 1, GT_VOCAB_BERT);
	struct gt_tokenizer t, bytes;
	CHECK_OK(gt_tokenizer_init(&t, GT_TOK_WORDPIECE, v, &e), e);
	CHECK_OK(gt_tokenizer_init(&bytes, GT_TOK_BYTES, NULL, &e), e);
	IDS(&t, "a b c d e f g", any, 2, 4, 5, 6, 7, 8, 9, 10, 3);
	IDS(&t, "a b c d e f g", 5, 2, 4, 5, 6, 3);
	IDS(&t, "", any, 2, 3);
	CHECK(gt_tokenizer_check_max(&t, 2, &e) == GT_ECONFIG && strstr(e.msg, "at least 3 tokens, got 2"));
	/* every length and limit, against all ids of the text */
	char text[40];
	struct gt_text_scratch s = {0};
	struct gt_tokens got;
	int wrong = 0;
	for (int n = 0; n <= 40; n++)
		for (int max = 1; max <= 12; max++) {
			int32_t ids[12];
			uint32_t hash[12];
			for (int i = 0; i < n; i++)
				text[i] = (char)(i + 1);
			CHECK_OK(gt_tokenize(&bytes, text, (size_t)n, max, &s, ids, hash, &got, &e), e);
			wrong += got.n != (n < max ? n : max) || got.truncated != (n > max);
			for (int i = 0; i < got.n; i++) {
				char c = (char)(i + 1);
				wrong += ids[i] != 1 + c || hash[i] != gt_token_hash(&c, 1);
			}
		}
	CHECK_MSG(!wrong, "%d results differ", wrong);
	gt_text_scratch_close(&s);
	gt_vocab_close(v);
}

TEST(wordpiece_by_hand)
{
	static const char bert[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\nun\n##aff\n##able\n##a\n!\n[\n]\nsep\ncafe\n\xe4\xb8\xad\ni\nss\n";
	struct gt_vocab *v = vocab_of(bert, sizeof bert - 1, GT_VOCAB_BERT);
	struct gt_tokenizer t;
	CHECK_OK(gt_tokenizer_init(&t, GT_TOK_WORDPIECE, v, &e), e);
	CHECK(t.size == 16 && t.pad == 0 && t.unk == 1 && t.first == 2 && t.last == 3);
	IDS(&t, "UNaffable!", any, 2, 4, 5, 6, 8, 3);
	IDS(&t, "unaaff unaf", any, 2, 4, 7, 5, 1, 3);
	IDS(&t, "[SEP]", any, 2, 9, 11, 10, 3);
	IDS(&t, "CAF\xc3\x89 cafe\xcc\x81", any, 2, 12, 12, 3);
	IDS(&t, "un\xe4\xb8\xadun u\0n\xe2\x80\x8b", any, 2, 4, 13, 4, 4, 3);
	IDS(&t, "\xc4\xb0 \xc4\xb1 \xc3\x9f", any, 2, 14, 1, 1, 3); /* İ is i; lower case does not change the dotless ı and ß */
	gt_vocab_close(v);
	static const char lacks[] = "[PAD]\n[UNK]\n[CLS]\nthe\n";
	v = vocab_of(lacks, sizeof lacks - 1, GT_VOCAB_BERT);
	CHECK(gt_tokenizer_init(&t, GT_TOK_WORDPIECE, v, &e) == GT_EDATA && strstr(e.msg, "special token [SEP]"));
	gt_vocab_close(v);
}

/* The ids of Hugging Face's tokenizers (tests/golden/make_wordpiece.py): lines of a text and its ids in turn. */
TEST(wordpiece_golden)
{
	char path[600], *text, *vocab;
	size_t n, nvocab;
	snprintf(path, sizeof path, "%s/tests/golden/wordpiece_vocab.txt", test_source());
	CHECK_OK(gt_file_read(path, 1 << 20, &vocab, &nvocab, &e), e);
	snprintf(path, sizeof path, "%s/tests/golden/wordpiece.txt", test_source());
	CHECK_OK(gt_file_read(path, 1 << 20, &text, &n, &e), e);
	struct gt_vocab *v = vocab_of(vocab, nvocab, GT_VOCAB_BERT);
	struct gt_tokenizer t;
	struct gt_text_scratch s = {0};
	int texts = 0, different = 0;
	CHECK_OK(gt_tokenizer_init(&t, GT_TOK_WORDPIECE, v, &e), e);
	for (char *p = text, *end = text + n; p < end; texts++) {
		char *stop = memchr(p, '\n', (size_t)(end - p)), *next = stop + 1;
		int32_t ids[1024];
		struct gt_tokens got;
		CHECK_OK(gt_tokenize(&t, p, (size_t)(stop - p), 1024, &s, ids, NULL, &got, &e), e);
		bool same = true;
		for (int i = 0; i < got.n; i++)
			same &= ids[i] == strtol(next, &next, 10);
		different += !same || *next != '\n';
		CHECK_MSG(same && *next == '\n', "other ids for \"%.*s\"", (int)(stop - p), p);
		p = strchr(next, '\n') + 1;
	}
	CHECK_MSG(texts >= 60, "only %d texts", texts);
	printf("# wordpiece golden: %d texts, %d with other ids\n", texts, different);
	gt_text_scratch_close(&s);
	gt_vocab_close(v);
	free(text);
	free(vocab);
}

/* Threads that share a tokenizer get the same ids. */
struct work {
	const struct gt_tokenizer *t;
	int32_t ids[64];
	struct gt_tokens got;
	int wrong;
};

static void *tokenize_often(void *user)
{
	struct work *w = user;
	static const char text[] = "Caf\xc3\xa9 the film isn't <br /> bad &amp; e\xcc\x81";
	struct gt_text_scratch s = {0};
	int32_t ids[64];
	struct gt_err mine;
	for (int i = 0; i < 2000; i++) {
		enum gt_code code = gt_tokenize(w->t, text, sizeof text - 1, any, &s, i ? ids : w->ids, NULL, &w->got, &mine);
		w->wrong += code != GT_OK || (i && memcmp(ids, w->ids, (size_t)w->got.n * sizeof *ids));
	}
	gt_text_scratch_close(&s);
	return NULL;
}

TEST(tokenizer_threads)
{
	static const char text[] = "<pad>\n<unk>\nthe\nfilm\nis\n.\nn't\ncaf\xc3\xa9\n\xc3\xa9\n";
	struct gt_vocab *v = vocab_of(text, sizeof text - 1, GT_VOCAB_WORDS);
	struct gt_tokenizer t;
	CHECK_OK(gt_tokenizer_init(&t, GT_TOK_WORDS, v, &e), e);
	enum { THREADS = 4 };
	pthread_t id[THREADS];
	static struct work w[THREADS];
	for (int i = 0; i < THREADS; i++) {
		w[i] = (struct work){.t = &t};
		CHECK(!pthread_create(&id[i], NULL, tokenize_often, &w[i]));
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(id[i], NULL);
		CHECK(!w[i].wrong && w[i].got.n == 8 && !memcmp(w[i].ids, w[0].ids, 8 * sizeof *w->ids));
	}
	gt_vocab_close(v);
}

TEST(tokenizer_rejects_other_encodings)
{
	static const struct {
		const char *text;
		size_t n, at;
		const char *what; /* NULL: the byte at `at` */
	} bad[] = {
	    {"caf\xe9 noir", 9, 3},                /* Latin-1 */
	    {"\xff\xfe" "a", 3, 0, "expected UTF-8, got UTF-16"}, /* its byte order mark */
	    {"\xfe\xff" "a", 3, 0, "expected UTF-8, got UTF-16"},
	    {"\x1f\x8b\x08", 3, 1, "expected UTF-8, got a gzip file"},
	    {"a\xff\xfe", 3, 1},
	    {"ab\xc0\xaf", 4, 2},                  /* overlong */
	    {"\xed\xa0\x80", 3, 0},                /* a surrogate */
	    {"\xf4\x90\x80\x80", 4, 0},            /* above U+10FFFF */
	    {"0123456789012345678901234567890123456789\xe4\xb8", 42, 40}, /* cut */
	    {"a\x80", 2, 1},
	    {"\xc3\xa9\xc3", 3, 2},
	};
	struct gt_tokenizer t;
	struct gt_text_scratch s = {0};
	struct gt_tokens got;
	struct gt_vocab_counter *c;
	int32_t ids[64];
	CHECK_OK(gt_tokenizer_init(&t, GT_TOK_BYTES, NULL, &e), e);
	CHECK_OK(gt_vocab_counter_open(1 << 20, &c, &e), e);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		char want[64];
		snprintf(want, sizeof want, "byte %zu: expected UTF-8, got 0x%02x", bad[i].at, (uint8_t)bad[i].text[bad[i].at]);
		if (bad[i].what)
			snprintf(want, sizeof want, "%s", bad[i].what);
		/* even if the limit is reached before the byte */
		CHECK(gt_tokenize(&t, bad[i].text, bad[i].n, 1, &s, ids, NULL, &got, &e) == GT_EDATA && !got.n);
		CHECK_MSG(!strncmp(e.msg, want, strlen(want)), "expected \"%s\", got \"%s\"", want, e.msg);
		CHECK(gt_words_count(bad[i].text, bad[i].n, &s, c, &e) == GT_EDATA && !strncmp(e.msg, want, strlen(want)));
	}
	struct gt_vocab *none;
	CHECK(gt_vocab_build(c, 1, 100, &none, &e) == GT_EDATA);
	gt_vocab_counter_close(c);
	gt_text_scratch_close(&s);
	CHECK_OK(gt_utf8_check("a\0\xef\xbf\xbf\xf4\x8f\xbf\xbf", 9, &e), e);
}

/* Texts of 10 MiB (one word, only marks in decreasing order, only joiners), and of 1 MiB: nothing takes quadratic time. */
TEST(tokenizer_long_texts)
{
	static const char *const unit[] = {"x", "\xcc\x81\xcc\xa3", "\xe2\x80\x8d", "\xe1\x85\xa1", "&amp;", "'s", "n't", "&", "<br",
	                                   "<br />", "1.", "\xf0\x9f\x91\xa9\xe2\x80\x8d", "\xe4\xb8\xad", "!"};
	static const char words[] = "<pad>\n<unk>\nx\n", bert[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\nx\n##x\n";
	struct gt_vocab *v[] = {vocab_of(words, sizeof words - 1, GT_VOCAB_WORDS), vocab_of(bert, sizeof bert - 1, GT_VOCAB_BERT)};
	enum { BYTES = 10 << 20 };
	struct gt_text_scratch s = {0};
	struct gt_vocab_counter *c;
	char *text = malloc(BYTES);
	CHECK_OK(gt_vocab_counter_open(1 << 24, &c, &e), e);
	for (size_t u = 0; u < sizeof unit / sizeof *unit; u++) {
		size_t len = strlen(unit[u]), n = 0;
		for (size_t most = u < 3 ? BYTES : 1 << 20; n + len <= most; n += len)
			memcpy(text + n, unit[u], len);
		for (int k = 0; k < 2; k++) {
			struct gt_tokenizer t;
			struct gt_tokens got;
			int32_t ids[100];
			CHECK_OK(gt_tokenizer_init(&t, k ? GT_TOK_WORDPIECE : GT_TOK_WORDS, v[k], &e), e);
			CHECK_OK(gt_tokenize(&t, text, n, 100, &s, ids, NULL, &got, &e), e);
			CHECK(got.n <= 100);
		}
		CHECK_OK(gt_words_count(text, n, &s, c, &e), e);
	}
	CHECK_MSG(s.bytes < 6 * (size_t)BYTES, "%zu bytes of scratch", s.bytes);
	printf("# 10 MiB texts: %.1f MiB of scratch\n", (double)s.bytes / (1 << 20));
	gt_vocab_counter_close(c);
	gt_text_scratch_close(&s);
	gt_vocab_close(v[0]);
	gt_vocab_close(v[1]);
	free(text);
}

/* fastText 0.9.2's buckets, by its Dictionary::hash and addWordNgrams with 64-bit arithmetic. */
TEST(ngrams_of_fasttext)
{
	CHECK(gt_token_hash("", 0) == 2166136261u && gt_token_hash("a", 1) == 0xe40c292cu && gt_token_hash("foobar", 6) == 0xbf9cf968u);
	CHECK(gt_token_hash("\xc3\xa9", 2) == 0x3cfa68c1u);
	const uint32_t hash[] = {gt_token_hash("the", 3), gt_token_hash("film", 4), gt_token_hash("was", 3), gt_token_hash("good", 4)};
	static const int32_t want[] = {734519, 1828975, 172723, 1981417, 1992518};
	int32_t got[8];
	CHECK(gt_ngrams_count(4, 3) == 5 && gt_ngrams_count(1, 3) == 0 && gt_ngrams_count(0, 3) == 0 && gt_ngrams_count(4, 1) == 0);
	CHECK(gt_ngrams(hash, 4, 3, 1000, 2000000, got) == 5 && !memcmp(got, want, sizeof want));
	CHECK(gt_ngrams(hash, 1, 3, 1000, 2000000, got) == 0 && gt_ngrams(hash, 4, 1, 0, 7, got) == 0);
}

RUN_TESTS()
