/* What was learned from texts, as a member of data.json in a checkpoint:
 *   {"ids":30002,"vocabulary":"<pad>\n<unk>\nthe\n…"}
 * ids         number of different tokens, those of n-grams included.
 * vocabulary  in the text form of datasets/text/vocab.h; absent if the tokenizer has none (bytes).
 * kind        "bert" if it is the vocabulary of a BERT model, else absent. */
#ifndef GT_DATASETS_TEXT_JSON_H
#define GT_DATASETS_TEXT_JSON_H

#include "base/json.h"
#include "learned.h"
#include "base/json_read.h"

/* Appends the facts as the member `key` of an open object. */
enum gt_code gt_text_json_put(struct gt_json *j, const char *key, const struct gt_text_facts *f, struct gt_err *err);
/* Reads them back from a parsed text, which may be hostile. `path` begins the message. The caller frees *out with gt_learned_free. The
 * names of the classes are not part of it. GT_EDATA: v does not have this form. */
enum gt_code gt_text_json_get(const struct gt_json_value *v, const char *path, struct gt_text_facts *out, struct gt_err *err);
/* GT_EDATA names the first difference. For a resumed run, whose training data must be the same. */
enum gt_code gt_text_json_compare(const struct gt_text_facts *ckpt, const struct gt_text_facts *now, const char *where, const char *path,
                                  struct gt_err *err);

#endif
