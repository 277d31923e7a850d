/* Hashed n-grams of words, for a bag of embeddings: sequences of 2 to `longest` tokens become ids of a fixed number of buckets, behind
 * those of a vocabulary. The hashes are fastText's, so that a text has the buckets that it has there.
 *
 *     gt_tokenize(&t, text, n, limit, &scratch, ids, hash, &got, err);
 *     int32_t n = got.n + (int32_t)gt_ngrams(hash, got.n, 2, t.size, 1 << 20, ids + got.n);         ids [max + gt_ngrams_count(max, 2)]
 *
 * Source: P. Bojanowski et al., "Enriching Word Vectors with Subword Information" (2017); github.com/facebookresearch/fastText,
 * Dictionary::hash and Dictionary::addWordNgrams. */
#ifndef GT_TEXT_NGRAMS_H
#define GT_TEXT_NGRAMS_H

#include <stddef.h>
#include <stdint.h>

/* FNV-1a with 32 bits of n bytes, each extended as a signed number, as fastText does. (For ASCII this is plain FNV-1a.) */
static inline uint32_t gt_token_hash(const char *p, size_t n)
{
	uint32_t h = 2166136261u;
	for (size_t i = 0; i < n; i++)
		h = (h ^ (uint32_t)(int32_t)(int8_t)p[i]) * 16777619u;
	return h;
}

/* Number of n-grams of 2 to `longest` tokens in a list of n tokens. */
int64_t gt_ngrams_count(int32_t n, int32_t longest);

/* Writes the ids of all n-grams of 2 to `longest` tokens of a list: first by their first token, then by their length. Token i has the hash
 * hash[i]; an id is first + (hash of the n-gram modulo buckets). out has room for gt_ngrams_count(n, longest), which is returned. The
 * caller ensures that first + buckets fits into an int32_t, and that buckets is positive. */
int64_t gt_ngrams(const uint32_t *hash, int32_t n, int32_t longest, int32_t first, uint32_t buckets, int32_t *out);

#endif
