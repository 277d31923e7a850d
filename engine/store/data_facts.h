/* data.json in a checkpoint: facts that a run learned from its training data and that users of its model need.
 *   {"format":1,"images":"files","classes":["cat","dog"],"class_weights":[0.6,3]}
 * images   "files" if the images were encoded files, so that evaluation and prediction transform images as they do for such data.
 * classes  the names of the classes, by label. Evaluation, prediction and resumed runs use these, and the data that they read must have the
 *          same classes.
 * class_weights  the weights of the classes in the loss that train.class_weights = "auto" has computed.
 * table    facts about the columns of a table (datasets/table/table_facts.h).
 * samples  the samples that the run used, for data whose samples have marks (sample_json.c).
 * text     facts about texts, or about columns of texts: "vocabulary", in the text form of datasets/text/vocab.h (NULL: the
 *          tokenizer has none), and "ids", the number of different tokens. */
#ifndef GT_STORE_DATA_FACTS_H
#define GT_STORE_DATA_FACTS_H

#include "base/json.h"
#include "base/json_read.h"
#include "fitted.h"
#include "store/ckpt.h"
#include "used_samples.h"

struct gt_data_facts {
	bool files;               /* the training images were encoded files */
	int64_t nclasses;         /* number of classes; 0: the data does not name its classes */
	const char *const *class; /* [nclasses] */
	int64_t nweights;         /* number of class weights; 0: the weights are not computed from the data */
	const double *weights;    /* [nweights]; NULL: none */
	/* facts that a format has fitted to the training data; NULL: none. gt_data_facts_read does not set it */
	const struct gt_fitted *learned;
	const struct gt_used_samples *samples; /* the samples that the run used; NULL: none. gt_data_facts_read does not set it */
};

/* Writes data.json to *text, in the arena; NULL if there is nothing to write. */
enum gt_code gt_data_facts_print(const struct gt_data_facts *f, struct gt_arena *a, const char **text, struct gt_err *err);
/* Reads the facts of a checkpoint. *out is all zero if the checkpoint has no data.json. Strings are in the arena. */
enum gt_code gt_data_facts_read(const struct gt_ckpt *c, struct gt_arena *a, struct gt_data_facts *out, struct gt_err *err);
/* Reads the facts that the format `by` has fitted to the training data. The caller frees *out with gt_fitted_free. GT_EDATA: the checkpoint
 * has no such facts. */
enum gt_code gt_data_facts_learned(const struct gt_ckpt *c, const struct gt_fitting *by, struct gt_fitted **out, struct gt_err *err);
/* Reads the samples that the run of the checkpoint used. The caller frees *out with gt_used_free. */
enum gt_code gt_data_facts_samples(const struct gt_ckpt *c, struct gt_used_samples *out, struct gt_err *err);
/* Checks that the data now has the classes of the checkpoint. GT_EDATA: they differ; the message names the first difference. where: the
 * path of the data, for the message. */
enum gt_code gt_data_facts_compare(const struct gt_data_facts *ckpt, const struct gt_data_facts *now, const char *where, const char *path,
                                   struct gt_err *err);

/* ---- sample_json.c: the member "samples" ---------------------------------------------------------------------------------- */
#define GT_SAMPLES_MAX ((int64_t)2 << 20) /* maximum number of samples that data.json lists; they take at most 40 MiB of text */

/* Appends the list of used samples as the member `key` of the open object in j. */
enum gt_code gt_sample_json_put(struct gt_json *j, const char *key, const struct gt_used_samples *u, struct gt_err *err);
/* Reads the list of used samples from the value v of a parsed JSON text, which may be hostile, and sorts it. v: NULL: samples were divided
 * by their indices. path: the file, for messages. The caller frees *out with gt_used_free; on failure *out is empty. GT_EDATA: v does not
 * have this form. */
enum gt_code gt_sample_json_get(const struct gt_json_value *v, const char *path, struct gt_used_samples *out, struct gt_err *err);

#endif
