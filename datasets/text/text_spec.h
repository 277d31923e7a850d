/* How texts become tokens: the keys of a config. */
#ifndef GT_TEXT_TEXT_SPEC_H
#define GT_TEXT_TEXT_SPEC_H

#include <stdint.h>

struct gt_text_spec {
	int tokenizer;         /* enum gt_tokenizer_kind */
	int64_t max_tokens;    /* maximum number of tokens of a text, special ones included */
	int64_t min_freq;      /* words: how often a word must occur in the training split to be in the vocabulary */
	int64_t max_vocab;     /* words: maximum number of ids, special ones included */
	const char *vocab;     /* wordpiece: the file of the vocabulary */
	int64_t ngrams;        /* words: number of tokens of the longest n-grams; 1: none */
	int64_t hash_buckets;  /* number of ids of n-grams */
};

/* What was found in texts. */
struct gt_text_counts {
	int64_t texts, truncated; /* number of texts, and of those that have more tokens than a sequence */
	int64_t tokens, unknown;  /* number of tokens in the sequences, n-grams not counted, and of those that the vocabulary lacks */
};

#endif
