/* The text form of a vocabulary. The first byte chooses the kind. What is accepted is complete, has every token once, and is the same after
 * writing and reading it again. */
#include "fuzz_file.h"
#include "text/vocab.h"
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gt_vocab *v, *again;
	struct gt_err e = {0};
	if (!size)
		return 0;
	enum gt_vocab_kind kind = data[0] & 1 ? GT_VOCAB_BERT : GT_VOCAB_WORDS;
	enum gt_code code = gt_vocab_parse("v", (const char *)data + 1, size - 1, kind, &v, &e);
	if (code != GT_OK) {
		FUZZ_ASSERT(code == GT_EDATA && !strncmp(e.msg, "v:", 2) && !v);
		return 0;
	}
	int32_t n = v->words.n, lines = 0;
	for (size_t i = 1; i < size; i++)
		lines += data[i] == '\n';
	FUZZ_ASSERT(n == lines + (data[size - 1] != '\n') && (size_t)gt_words_bytes(&v->words) <= 40 * size + 4096);
	char *text, *second;
	size_t n_text, n_second, len;
	FUZZ_ASSERT(gt_vocab_text(v, &text, &n_text, &e) == GT_OK);
	FUZZ_ASSERT(gt_vocab_parse("v", text, n_text, kind, &again, &e) == GT_OK && again->words.n == n);
	for (int32_t i = 0; i < n; i++) {
		const char *p = gt_vocab_token(v, i, &len);
		int32_t id = gt_words_find(&v->words, p, len);
		FUZZ_ASSERT(len && len <= GT_TOKEN_MAX && (id == i || (kind == GT_VOCAB_BERT && id > i)) && gt_words_find(&again->words, p,
		            len) == id);
	}
	FUZZ_ASSERT(gt_vocab_text(again, &second, &n_second, &e) == GT_OK && n_second == n_text && !memcmp(text, second, n_text));
	free(text);
	free(second);
	gt_vocab_close(v);
	gt_vocab_close(again);
	return 0;
}
