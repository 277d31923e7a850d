/* tokens.py of an exported model of texts: the tokenizer of the run in Python, without packages, so that other programs can give the model
 * the tokens that it was trained with. It reads vocab.txt, the vocabulary, beside it. */
#ifndef GT_EXPORT_TOKEN_TEXT_H
#define GT_EXPORT_TOKEN_TEXT_H

#include "export/export_source.h"

/* Returns whether the model takes texts. */
bool gt_token_texts(const struct gt_export_source *s);
/* Writes tokens.py to *module and vocab.txt to *vocab, which the caller frees. Both are NULL if the model takes no texts; *vocab is NULL if
 * its tokenizer has no vocabulary. */
enum gt_code gt_token_module(const struct gt_export_source *s, char **module, char **vocab, struct gt_err *err);

#endif
