/* Tokenizers: a text becomes a list of ids. A tokenizer is constant, and a call writes only to memory of its caller. So several threads may
 * share a tokenizer, each with its own scratch.
 *
 *     struct gt_tokenizer t;
 *     GT_TRY(gt_tokenizer_init(&t, GT_TOK_WORDS, vocab, err));
 *     struct gt_text_scratch scratch = {0};
 *     int32_t ids[256];
 *     struct gt_tokens got;
 *     GT_TRY(gt_tokenize(&t, text, n, 256, &scratch, ids, NULL, &got, err));
 *     ... ids[0 ... got.n - 1] ...
 *     gt_text_scratch_close(&scratch);
 *
 * Every text must be UTF-8 (text_utf8.h), also for GT_TOK_BYTES. Invalid bytes are errors, and are never replaced.
 *
 * GT_TOK_WORDS, with a vocabulary of GT_VOCAB_WORDS. The text is first folded:
 *   - `<br>`, `<br/>`, `<br />`, in any case, and with more white space, are a space. Other tags are ordinary text.
 *   - The 252 character entities of HTML 4, and apos, are replaced by their characters, and so are numbers such as `&#8217;` and
 *     `&#x2019;`. Entities need their semicolon. Numbers 128 to 159 are those of Windows-1252, as in HTML 5. Unknown
 *     entities and invalid numbers (0, surrogates, above 10FFFF) remain text. The character of an entity is never part of a tag.
 *   - U+2019 (right single quotation mark) becomes an apostrophe; white space and control characters (NUL included) separate words;
 *     format characters are removed, except the joiners U+200C and U+200D and the tags of flags.
 *   - Case is folded by Unicode's full case folding (locale-independent: I becomes i, the dotless i stays, ß becomes ss), and the result
 *     is in NFC. Sequences of more than 100 combining characters are composed in pieces.
 * Then it is divided into tokens:
 *   - A word is a sequence of letters and numbers (categories L, N), with the marks (M) and joiners that follow them; an apostrophe between
 *     two of them, and a full stop or comma between two ASCII digits belong to it ("o'neill", "3.5", "10,000").
 *   - Contractions are divided as in the Penn Treebank: up to twice, "n't", "'s", "'m", "'d", "'ll", "'re" or "'ve" at the end of a word
 *     becomes a token ("do n't", "it 's", "should n't 've").
 *   - Each ideograph (text_utf8.h) and each Hiragana character is a token.
 *   - A repeated ASCII punctuation character is a token of at most three characters ("...", "!!!"). "_" is punctuation.
 *   - Any other character is a token, together with marks, emoji modifiers, tags and joined emoji that follow it; two regional indicators
 *     are one token (a flag).
 *   - A token that is not in the vocabulary, or has more than GT_TOKEN_MAX bytes, gets the id of <unk>.
 *
 * GT_TOK_BYTES, without a vocabulary: byte b has the id 1 + b; id 0 is for padding.
 *
 * GT_TOK_WORDPIECE, with a vocabulary of GT_VOCAB_BERT, gives the ids of Hugging Face's BertTokenizer (uncased; its library `tokenizers`):
 *   - U+FFFD, control, format and private-use characters (Cc, Cf, Co) except tab, LF and CR are removed; white space becomes a space; each
 *     ideograph is a word; other text is decomposed (NFD), nonspacing marks (Mn) are removed, and letters become lower case.
 *   - White space and punctuation (ASCII's, and category P) separate words; each punctuation character is a word.
 *   - A word is divided into the longest pieces of the vocabulary from left to right; all but the first begin with `##`. A word that
 *     cannot be divided in this way, or has more than 100 characters, becomes [UNK].
 *   - [CLS] comes first and [SEP] last. A text cannot contain special tokens: "[SEP]" in it is three words, as with split_special_tokens.
 *     `tokenizers` uses Unicode 8; characters that were assigned later may have other categories here. Unlike the original
 *     implementation, `tokenizers` does not treat U+2B820 to U+2B91F as ideographs.
 *   Source: J. Devlin et al., "BERT" (2019), and github.com/google-research/bert, tokenization. */
#ifndef GT_TEXT_TOKENIZER_H
#define GT_TEXT_TOKENIZER_H

#include "base/err.h"
#include "text/vocab.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gt_tokenizer_kind { GT_TOK_WORDS, GT_TOK_BYTES, GT_TOK_WORDPIECE };

/* The keys of a config for the conversion of texts into tokens. */
struct gt_text_spec {
	int tokenizer;         /* enum gt_tokenizer_kind */
	int64_t max_tokens;    /* maximum number of tokens of a text, special ones included */
	int64_t min_freq;      /* words: minimum count of a word in the training split for the vocabulary */
	int64_t max_vocab;     /* words: maximum number of ids, special ones included */
	const char *vocab;     /* wordpiece: the file of the vocabulary */
	int64_t ngrams;        /* words: tokens of the longest n-grams; 1: no n-grams */
	int64_t hash_buckets;  /* number of ids of n-grams */
};

/* Counts over the converted texts. */
struct gt_text_counts {
	int64_t texts, truncated; /* number of texts, and of truncated texts (too many tokens) */
	int64_t tokens, unknown;  /* number of tokens in the sequences (without n-grams), and of unknown tokens */
};

extern const char *const gt_tokenizer_names[]; /* "words", "bytes", "wordpiece" */

struct gt_tokenizer {
	enum gt_tokenizer_kind kind;
	const struct gt_vocab *vocab; /* not owned; NULL for GT_TOK_BYTES */
	int32_t size;                 /* number of ids, which is the number of rows of an embedding */
	int32_t pad, unk;             /* ids of padding and of unknown tokens; -1: no such id */
	int32_t first, last;          /* ids that begin and end every list ([CLS], [SEP]); -1: no such id */
};

/* Makes a tokenizer over a vocabulary, which must outlive it. GT_EDATA: the vocabulary lacks a special token ([PAD], [UNK], [CLS], [SEP]),
 * or has the wrong kind. */
enum gt_code gt_tokenizer_init(struct gt_tokenizer *t, enum gt_tokenizer_kind kind, const struct gt_vocab *vocab, struct gt_err *err);

/* Memory of one thread; {0} at first. For GT_TOK_WORDS it grows to about the length of the longest text; other tokenizers do not use it. */
struct gt_text_scratch {
	char *p;
	size_t bytes;
};
void gt_text_scratch_close(struct gt_text_scratch *s);

/* Checks max, a maximum count of ids. GT_ECONFIG: max leaves no room for a token in addition to the special tokens. */
enum gt_code gt_tokenizer_check_max(const struct gt_tokenizer *t, int64_t max, struct gt_err *err);

struct gt_tokens {
	int32_t n;      /* number of ids, special ones included */
	bool truncated; /* the text has more tokens */
};

/* Writes the first ids of the n bytes at text, at most max, special tokens included, each in [0, t->size), and, if hash is not NULL, for
 * each id the hash of the token. A text without tokens gives only special ids. max must have passed gt_tokenizer_check_max.
 * GT_EDATA: the text is not UTF-8; the message begins with the byte offset, and the caller puts file and line before it. GT_EFAIL: out of
 * memory. */
enum gt_code gt_tokenize(const struct gt_tokenizer *t, const char *text, size_t n, int32_t max, struct gt_text_scratch *s, int32_t *ids,
                         uint32_t *hash, struct gt_tokens *out, struct gt_err *err);

/* Sets *some to whether a text gives any id, special ids included; the vocabulary does not matter. Errors of gt_tokenize. */
enum gt_code gt_text_has_tokens(enum gt_tokenizer_kind kind, const char *text, size_t n, struct gt_text_scratch *s, bool *some,
                                struct gt_err *err);

/* Counts the words of a text, as GT_TOK_WORDS divides it. Errors of gt_tokenize and of gt_vocab_count. */
enum gt_code gt_words_count(const char *text, size_t n, struct gt_text_scratch *s, struct gt_vocab_counter *counter, struct gt_err *err);

/* ---- n-grams ------------------------------------------------------------------------------------------------------------------ */
/* Hashed n-grams of words, for a bag of embeddings: sequences of 2 to `longest` tokens become ids of a fixed number of buckets, after the
 * ids of the vocabulary. The hashes equal fastText's, so a text has the same buckets as in fastText.
 *
 *     gt_tokenize(&t, text, n, max, &scratch, ids, hash, &got, err);
 *     int32_t n = got.n + (int32_t)gt_ngrams(hash, got.n, 2, t.size, 1 << 20, ids + got.n);         ids [max + gt_ngrams_count(max, 2)]
 *
 * Source: P. Bojanowski et al., "Enriching Word Vectors with Subword Information" (2017); github.com/facebookresearch/fastText,
 * Dictionary::hash and Dictionary::addWordNgrams. */

/* FNV-1a with 32 bits of n bytes, each extended as a signed number, as fastText does. (For ASCII this is plain FNV-1a.) */
static inline uint32_t gt_token_hash(const char *p, size_t n)
{
	uint32_t h = 2166136261u;
	for (size_t i = 0; i < n; i++)
		h = (h ^ (uint32_t)(int32_t)(int8_t)p[i]) * 16777619u;
	return h;
}

/* Returns the number of n-grams of 2 to `longest` tokens in a list of n tokens. */
int64_t gt_ngrams_count(int32_t n, int32_t longest);

/* Writes the ids of all n-grams of 2 to `longest` tokens of a list: sorted by the first token, then by length. Token i has the hash
 * hash[i]; an id is first + (hash of the n-gram modulo buckets). out has room for gt_ngrams_count(n, longest), which is returned. The
 * caller ensures that first + buckets fits into an int32_t, and that buckets is positive. */
int64_t gt_ngrams(const uint32_t *hash, int32_t n, int32_t longest, int32_t first, uint32_t buckets, int32_t *out);

#endif
