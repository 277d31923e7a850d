/* What a vocabulary consists of, for the files that make one. */
#ifndef GT_TEXT_VOCAB_REP_H
#define GT_TEXT_VOCAB_REP_H

#include "text/token_table.h"
#include "text/vocab.h"

#define GT_PAD_TOKEN "<pad>"
#define GT_UNK_TOKEN "<unk>"

struct gt_vocab {
	struct gt_token_table table; /* token i has id i */
	enum gt_vocab_kind kind;
};

/* Allocates a vocabulary without tokens, whose table takes at most max_bytes. */
enum gt_code gt_vocab_new(enum gt_vocab_kind kind, size_t max_bytes, struct gt_vocab **out, struct gt_err *err);

#endif
