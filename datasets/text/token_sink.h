/* Internal header of datasets/text/: the sink for token ids, and the steps of the tokenizers. */
#ifndef GT_TEXT_TOKEN_SINK_H
#define GT_TEXT_TOKEN_SINK_H

#include "text/tokenizer.h"

struct gt_token_sink {
	const struct gt_tokenizer *t;
	int32_t *ids;   /* [room] output, after the first special token */
	uint32_t *hash; /* hash of each token; NULL: not requested */
	int32_t room;   /* maximum number of tokens, special tokens not counted */
	int32_t n;      /* number of tokens so far */
	bool truncated; /* the text has more than `room` tokens */
};

/* Adds a token, whose text is the n bytes at p. Returns false if there is no room for it. */
static inline bool gt_sink_put(struct gt_token_sink *s, int32_t id, const char *p, size_t n)
{
	s->truncated = s->n == s->room;
	if (s->truncated)
		return false;
	if (s->hash)
		s->hash[s->n] = gt_token_hash(p, n);
	s->ids[s->n++] = id;
	return true;
}

/* Divides valid UTF-8 into WordPiece tokens. */
void gt_wordpiece(const char *text, size_t n, struct gt_token_sink *to);

/* Calls fn with each word of valid UTF-8 until it returns false. */
enum gt_code gt_words_each(const char *text, size_t n, struct gt_text_scratch *s, bool (*fn)(void *user, const char *p, size_t n),
                           void *user, struct gt_err *err);

/* Folds a text as described in tokenizer.h. *out, *len: the result, in the scratch. */
enum gt_code gt_words_fold(const char *text, size_t n, struct gt_text_scratch *s, const char **out, size_t *len, struct gt_err *err);

/* Returns the character of a character entity that begins with '&' at p; 0: not an entity. *bytes: the length of the entity. */
int32_t gt_html_entity(const char *p, size_t n, size_t *bytes);

#endif
