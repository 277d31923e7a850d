/* Where the tokenizers put ids: the list of the caller, of which the last part is a ring while a text is longer than the list.
 *
 *     first | head ...... | tail (ring) .... | last        first and last: special tokens, if there are any */
#ifndef GT_TEXT_TOKEN_SINK_H
#define GT_TEXT_TOKEN_SINK_H

#include "text/ngrams.h"
#include "text/tokenizer.h"

struct gt_token_sink {
	const struct gt_tokenizer *t;
	int32_t *ids;      /* behind the first special token */
	uint32_t *hash;    /* of ids; NULL: not asked for */
	int64_t head, tail; /* room for tokens without the special ones */
	int64_t seen;      /* number of tokens of the text so far */
};

/* Adds a token, which is the text p of n bytes. Returns false if no further token can change the result. */
static inline bool gt_sink_put(struct gt_token_sink *s, int32_t id, const char *p, size_t n)
{
	int64_t at = s->seen++;
	if (at >= s->head) {
		if (!s->tail)
			return false;
		at = s->head + (at - s->head) % s->tail;
	}
	s->ids[at] = id;
	if (s->hash)
		s->hash[at] = gt_token_hash(p, n);
	return true;
}

/* Divides valid UTF-8 into WordPiece tokens. */
void gt_wordpiece(const char *text, size_t n, struct gt_token_sink *to);

/* Calls fn with each word of valid UTF-8 until it returns false. */
enum gt_code gt_words_each(const char *text, size_t n, struct gt_text_scratch *s, bool (*fn)(void *user, const char *p, size_t n),
                           void *user, struct gt_err *err);

/* Folds a text as tokenizer.h says. *out, *len: the result, in the scratch. */
enum gt_code gt_words_fold(const char *text, size_t n, struct gt_text_scratch *s, const char **out, size_t *len, struct gt_err *err);

/* Returns the character of a character entity, whose text begins with '&'; 0: there is none. *bytes: the length of the entity. */
int32_t gt_html_entity(const char *p, size_t n, size_t *bytes);

#endif
