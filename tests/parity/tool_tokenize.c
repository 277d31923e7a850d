/* Tokenizes texts for scripts.
 *
 *     tool_tokenize words|wordpiece|bytes VOCAB MAX [REPEAT] <RECORDS        VOCAB: a vocab.txt; "-" for bytes
 *     tool_tokenize count MIN_FREQ MAX_VOCAB <RECORDS                        prints the vocabulary of the words
 *     tool_tokenize split - 0 <RECORDS                                       prints the words of each text, one a line, then an empty line
 *
 * A record is a length (32 bits, little-endian) and that many bytes of text. Prints the ids of each text in a line; with REPEAT nothing
 * but the least processor time of so many rounds over all texts, in seconds, and the number of ids. */
#include "base/fileio.h"
#include "text/token_sink.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct gt_err e;

static void check(enum gt_code code)
{
	if (code != GT_OK) {
		fprintf(stderr, "%s\n", e.msg);
		exit(code);
	}
}

struct texts {
	char *all, **text;
	uint32_t *len;
	int n;
};

/* Seconds of processor time of this process, which has one thread. */
static double processor_time(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct texts read_texts(void)
{
	size_t cap = 1 << 20, used = 0, got;
	char *all = malloc(cap);
	while ((got = fread(all + used, 1, cap - used, stdin)) > 0)
		if ((used += got) == cap)
			all = realloc(all, cap *= 2);
	struct texts t = {.all = all, .text = malloc((used / 4 + 1) * sizeof *t.text), .len = malloc((used / 4 + 1) * sizeof *t.len)};
	for (size_t at = 0; used - at >= 4; t.n++) {
		memcpy(&t.len[t.n], all + at, 4);
		t.text[t.n] = all + at + 4;
		if (t.len[t.n] > used - at - 4)
			abort();
		at += 4 + t.len[t.n];
	}
	return t;
}

static bool print_word(void *user, const char *p, size_t n)
{
	(void)user;
	fwrite(p, 1, n, stdout);
	putchar('\n');
	return true;
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return 64;
	struct texts t = read_texts();
	struct gt_text_scratch scratch = {0};
	struct gt_vocab *vocab = NULL;
	char *text;
	size_t n;
	if (!strcmp(argv[1], "count")) {
		struct gt_vocab_counter *c;
		check(gt_vocab_counter_open((size_t)1 << 30, &c, &e));
		double begin = processor_time();
		for (int i = 0; i < t.n; i++)
			check(gt_words_count(t.text[i], t.len[i], &scratch, c, &e));
		fprintf(stderr, "%.4f s to count\n", processor_time() - begin);
		check(gt_vocab_build(c, atoi(argv[2]), atoi(argv[3]), &vocab, &e));
		check(gt_vocab_text(vocab, &text, &n, &e));
		fwrite(text, 1, n, stdout);
		return 0;
	}
	if (!strcmp(argv[1], "split")) {
		for (int i = 0; i < t.n; i++) {
			check(gt_words_each(t.text[i], t.len[i], &scratch, print_word, NULL, &e));
			putchar('\n');
		}
		return 0;
	}
	enum gt_tokenizer_kind kind = !strcmp(argv[1], "words") ? GT_TOK_WORDS : !strcmp(argv[1], "bytes") ? GT_TOK_BYTES : GT_TOK_WORDPIECE;
	struct gt_tokenizer tok;
	if (kind != GT_TOK_BYTES) {
		check(gt_file_read(argv[2], 1 << 26, &text, &n, &e));
		check(gt_vocab_parse(argv[2], text, n, kind == GT_TOK_WORDS ? GT_VOCAB_WORDS : GT_VOCAB_BERT, &vocab, &e));
	}
	check(gt_tokenizer_init(&tok, kind, vocab, &e));
	int32_t max = atoi(argv[3]);
	check(gt_tokenizer_check_max(&tok, max, &e));
	int32_t *ids = malloc((size_t)max * sizeof *ids);
	struct gt_tokens got;
	double best = 1e9;
	int64_t total = 0;
	int repeat = argc > 4 ? atoi(argv[4]) : 0;
	for (int r = 0; r < repeat; r++) {
		double begin = processor_time();
		total = 0;
		for (int i = 0; i < t.n; i++) {
			check(gt_tokenize(&tok, t.text[i], t.len[i], max, &scratch, ids, NULL, &got, &e));
			total += got.n;
		}
		double took = processor_time() - begin;
		best = took < best ? took : best;
	}
	if (repeat)
		printf("%.6f %lld\n", best, (long long)total);
	for (int i = 0; i < t.n && !repeat; i++) {
		check(gt_tokenize(&tok, t.text[i], t.len[i], max, &scratch, ids, NULL, &got, &e));
		for (int k = 0; k < got.n; k++)
			printf("%d%c", ids[k], k + 1 < got.n ? ' ' : '\n');
		if (!got.n)
			putchar('\n');
	}
	return 0;
}
