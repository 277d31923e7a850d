/* Vocabularies: the ids of tokens. A vocabulary is built by counting the words of the training split, or read from a file: from a
 * checkpoint, or from the vocab.txt of a published BERT model. Afterwards it is constant, so that any number of threads may use it.
 *
 *     struct gt_vocab_counter *counter;
 *     GT_TRY(gt_vocab_counter_open(1 << 30, &counter, err));
 *     for each word: GT_TRY(gt_vocab_count(counter, word, n, err));
 *     GT_TRY(gt_vocab_build(counter, 3, 60000, &vocab, err));
 *     gt_vocab_counter_close(counter);
 *     int32_t id = gt_words_find(&vocab->words, "film", 4);                                     -1: unknown word
 *
 * The text form has one token per line. Each line ends with LF, and its number, from 0, is the id. There are two kinds:
 *
 *     GT_VOCAB_WORDS  what gt_vocab_build makes. The first lines are <pad> and <unk>. `\\` is a backslash, `\n` a line feed, `\r` a
 *                     carriage return. Any other escape, and a token that occurs twice, are errors.
 *     GT_VOCAB_BERT   as published with BERT models. There are no escapes, lines may end with CRLF (a carriage return elsewhere is
 *                     an error), and of equal lines the last one has the token, as in the reference implementation.
 *
 * In both kinds, text that is not UTF-8, a NUL, an empty line, a token of more than GT_TOKEN_MAX bytes, and a last line without LF are
 * errors; the last line of GT_VOCAB_BERT may lack LF. */
#ifndef GT_TEXT_VOCAB_H
#define GT_TEXT_VOCAB_H

#include "text/word_set.h"
#include <stddef.h>
#include <stdint.h>

#define GT_TOKEN_MAX 512 /* maximum length of a token in bytes; a WordPiece token of 100 characters has at most 402 */

enum gt_vocab_kind { GT_VOCAB_WORDS, GT_VOCAB_BERT };

/* Owned by the caller of gt_vocab_build or gt_vocab_parse. */
struct gt_vocab {
	struct gt_words words; /* token i has id i; gt_words_find finds the id of a token */
	enum gt_vocab_kind kind;
	size_t longest;        /* bytes of the longest token */
};

void gt_vocab_close(struct gt_vocab *v); /* does nothing if v is NULL */
/* Returns the token of an id below words.n. It has no NUL at its end; *n is its length in bytes. Owned by the vocabulary. */
const char *gt_vocab_token(const struct gt_vocab *v, int32_t id, size_t *n);

/* ---- text form ------------------------------------------------------------------------------------------------------------ */
/* Reads n bytes of the text form. GT_EDATA: "name:line: …" for the errors listed above, or the text has no tokens. The vocabulary takes at
 * most 40 bytes of memory per byte of the text, plus 4 KiB; limit n when the file is read. */
enum gt_code gt_vocab_parse(const char *name, const char *text, size_t n, enum gt_vocab_kind kind, struct gt_vocab **out,
                            struct gt_err *err);
/* Writes the text form. Sets *text to memory from malloc, which the caller frees, and *n to its length. gt_vocab_parse restores the same
 * ids from the text. */
enum gt_code gt_vocab_text(const struct gt_vocab *v, char **text, size_t *n, struct gt_err *err);

/* ---- counting ------------------------------------------------------------------------------------------------------------- */
struct gt_vocab_counter; /* owned by the caller of gt_vocab_counter_open; one thread at a time */

/* max_bytes: limit for the memory of all different words, their counts and their index. */
enum gt_code gt_vocab_counter_open(size_t max_bytes, struct gt_vocab_counter **out, struct gt_err *err);
void gt_vocab_counter_close(struct gt_vocab_counter *c); /* does nothing if c is NULL */
/* Adds 1 to the count of a token of n bytes, which is UTF-8, not empty and without NUL, as tokenizers make them. Tokens of more than
 * GT_TOKEN_MAX bytes are not counted, so they become unknown words. GT_EDATA: the limit is reached. */
enum gt_code gt_vocab_count(struct gt_vocab_counter *c, const char *token, size_t n, struct gt_err *err);

/* Makes a vocabulary (GT_VOCAB_WORDS): <pad> has id 0 and <unk> id 1; then come the tokens with a count of at least min_freq, by descending
 * count, then in byte order. It has at most max_vocab ids, special ones included. The result does not depend on the order of counting.
 * GT_EDATA: no token is frequent enough, or max_vocab leaves no room for one. */
enum gt_code gt_vocab_build(const struct gt_vocab_counter *c, int64_t min_freq, int64_t max_vocab, struct gt_vocab **out,
                            struct gt_err *err);

#endif
