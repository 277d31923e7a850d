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
	bool files;               /* the images were encoded files */
	int64_t nclasses;         /* 0: the data does not name its classes */
	const char *const *class; /* [nclasses] */
	int64_t nweights;         /* 0: the weights of the classes are not computed */
	const double *weights;    /* [nweights]; NULL: none */
	const struct gt_fitted *learned; /* data that a format has learned; NULL: none. gt_data_facts_read does not set it */
	const struct gt_used_samples *samples; /* the samples of the run; NULL: none. gt_data_facts_read does not set it */
};

/* Writes data.json to *text, in the arena; NULL if there is nothing to write. */
enum gt_code gt_data_facts_print(const struct gt_data_facts *f, struct gt_arena *a, const char **text, struct gt_err *err);
/* Reads the facts of a checkpoint; all zero if it has no data.json. Strings are in the arena. */
enum gt_code gt_data_facts_read(const struct gt_ckpt *c, struct gt_arena *a, struct gt_data_facts *out, struct gt_err *err);
/* Reads the data that the format `by` has learned. The caller frees *out with gt_fitted_free. GT_EDATA: the checkpoint lacks this data. */
enum gt_code gt_data_facts_learned(const struct gt_ckpt *c, const struct gt_fitting *by, struct gt_fitted **out, struct gt_err *err);
/* Reads the samples that the run of the checkpoint used. The caller frees *out with gt_used_free. */
enum gt_code gt_data_facts_samples(const struct gt_ckpt *c, struct gt_used_samples *out, struct gt_err *err);
/* Checks that the data now has the classes of the checkpoint. GT_EDATA names the first difference. where: the data, for the message. */
enum gt_code gt_data_facts_compare(const struct gt_data_facts *ckpt, const struct gt_data_facts *now, const char *where, const char *path,
                                   struct gt_err *err);

/* ---- sample_json.c: the member "samples" ---------------------------------------------------------------------------------- */
#define GT_SAMPLES_MAX ((int64_t)2 << 20) /* maximum number of samples that are listed: at most 40 MiB of text */

/* Appends the member `key` to an open object. */
enum gt_code gt_sample_json_put(struct gt_json *j, const char *key, const struct gt_used_samples *u, struct gt_err *err);
/* Reads the member from a parsed text, which may be hostile, and sorts the lists. v NULL: samples were divided by their indices. `path`
 * begins the message. The caller frees *out with gt_used_free; on failure it is empty. GT_EDATA: v does not have this form. */
enum gt_code gt_sample_json_get(const struct gt_json_value *v, const char *path, struct gt_used_samples *out, struct gt_err *err);

#endif
