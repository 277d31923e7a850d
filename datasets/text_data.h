/* Converts texts into model inputs: fits a vocabulary to the training texts, and turns each text into a sequence of tokens.
 *
 *     gt_texts_add(&t, bytes, n, err);                                 for every text
 *     GT_TRY(gt_texts_fit(&t, &spec, rows, nrows, &facts, err));
 *     GT_TRY(gt_texts_describe(&spec, &facts, &tokens, &lengths, err));
 *     GT_TRY(gt_texts_fields(&t, &spec, facts.vocab, name_of, files, &tokens, &lengths, &counts, err));
 *     gt_texts_free(&t);
 *
 * With n-grams, the sequence of a text has its tokens and then its hashed n-grams (datasets/text/tokenizer.h), whose ids follow the
 * vocabulary's ids. */
#ifndef GT_DATASETS_TEXT_DATA_H
#define GT_DATASETS_TEXT_DATA_H

#include "base/json.h"
#include "base/json_read.h"
#include "fitted.h"
#include "text/texts.h"
#include "text/tokenizer.h"

/* Writes the name of text i for messages to buf. */
typedef const char *gt_text_name(const void *user, int64_t i, char *buf, size_t size);

/* Makes the vocabulary of the tokenizer from the texts row[0 ... nrows - 1]; row NULL: from all texts; or reads it from the file
 * spec->vocab. Then counts the ids. out->vocab remains NULL if the tokenizer has no vocabulary. The caller closes out->vocab, also after a
 * failure. GT_ECONFIG: there are too many ids. */
enum gt_code gt_texts_fit(const struct gt_texts *t, const struct gt_text_spec *spec, const int64_t *row, int64_t nrows,
                          struct gt_text_facts *out, struct gt_err *err);

/* Sets the names, types and widths of the fields. tokens->codes points to facts->ids. GT_ECONFIG: the keys of the spec contradict the
 * facts. */
enum gt_code gt_texts_describe(const struct gt_text_spec *spec, const struct gt_text_facts *facts, struct gt_field *tokens,
                               struct gt_field *lengths, struct gt_err *err);
/* Fills the data of fields that gt_texts_describe has set up; their arrays are in t->spill. GT_EDATA: a text has no tokens; the message
 * names it. name NULL: such a text becomes one token of padding. */
enum gt_code gt_texts_fields(const struct gt_texts *t, const struct gt_text_spec *spec, const struct gt_vocab *vocab, gt_text_name *name,
                             const void *user, struct gt_field *tokens, struct gt_field *lengths, struct gt_text_counts *counts,
                             struct gt_err *err);

/* ---- JSON ----------------------------------------------------------------------------------------------------------------------- */
/* Facts that were fitted to texts, as a member of data.json in a checkpoint:
 *   {"ids":30002,"vocabulary":"<pad>\n<unk>\nthe\n…"}
 * ids         number of token ids, n-gram ids included.
 * vocabulary  in the text form of datasets/text/vocab.h; absent if the tokenizer has none (bytes).
 * kind        "bert" for the vocabulary of a BERT model, else absent. */

/* Appends the facts as the member `key` of an open object. */
enum gt_code gt_text_json_put(struct gt_json *j, const char *key, const struct gt_text_facts *f, struct gt_err *err);
/* Reads the facts from parsed JSON, which may be hostile. `path` begins the message. The caller frees *out with gt_fitted_free. Class names
 * are not read. GT_EDATA: v does not have this form. */
enum gt_code gt_text_json_get(const struct gt_json_value *v, const char *path, struct gt_text_facts *out, struct gt_err *err);
/* Compares two facts; GT_EDATA names the first difference. For a resumed run, whose training data must be unchanged. */
enum gt_code gt_text_json_compare(const struct gt_text_facts *ckpt, const struct gt_text_facts *now, const char *where, const char *path,
                                  struct gt_err *err);

#endif
