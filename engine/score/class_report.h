/* Builds the report of `gtrain eval --report` (struct gt_class_report in gtrain_use.h) from the model's outputs for the samples of a split.
 *
 *     gt_class_tally_open(samples, classes, ignore_index, &t, err);
 *     while (...)
 *         gt_class_tally_add(t, outputs, labels, n, err);      n rows of outputs, in any order of the samples
 *     gt_class_tally_report(t, arena, &report, err);
 *     gt_class_tally_close(t);
 *
 * Definitions are from scikit-learn: classification_report with zero_division=0, and roc_auc_score. The predicted class is the first class
 * with the largest output, as in the loss kernels. A probability is the softmax of the outputs.
 *
 * Memory: for each sample 160 bytes and 4 bytes for each class, because the area under a ROC curve ranks all samples; for each class
 * its counts, and 8 * classes bytes of the confusion matrix up to GT_CONFUSION_CLASSES classes. */
#ifndef GT_SCORE_CLASS_REPORT_H
#define GT_SCORE_CLASS_REPORT_H

#include "base/arena.h"
#include "gtrain_use.h"
#include "score/outputs.h"

struct gt_class_tally;

/* samples: maximum number of samples that will be added. classes: number of outputs of the model, at least 2. */
enum gt_code gt_class_tally_open(int64_t samples, int64_t classes, int64_t ignore_index, struct gt_class_tally **out, struct gt_err *err);
void gt_class_tally_close(struct gt_class_tally *t); /* t may be NULL */
/* Adds n samples. z: n rows of one output for each class; label: the class of each sample; samples with the label ignore_index are ignored.
 * GT_EDIVERGED: an output is NaN, so that the classes of the sample cannot be ranked. */
enum gt_code gt_class_tally_add(struct gt_class_tally *t, const float *z, const int32_t *label, int64_t n, struct gt_err *err);
/* Computes the report in the arena. The caller sets the names of the classes. */
enum gt_code gt_class_tally_report(struct gt_class_tally *t, struct gt_arena *a, struct gt_class_report **out, struct gt_err *err);

/* A tally for samples with several labels, for losses such as bce. A label is predicted if its output is above 0, that is, its probability
 * is above one half; a sample has a label if its target is above one half. The scores are defined as in scikit-learn's
 * classification_report for multilabel data, accuracy_score and roc_auc_score. */
struct gt_target_tally;

/* samples: maximum number of samples that will be added. width: number of labels. Uses 8 bytes for each label of each sample. */
enum gt_code gt_target_tally_open(int64_t samples, int64_t width, struct gt_target_tally **out, struct gt_err *err);
void gt_target_tally_close(struct gt_target_tally *t); /* t may be NULL */
/* Adds n samples. GT_EDIVERGED: an output is NaN. */
enum gt_code gt_target_tally_add(struct gt_target_tally *t, const float *z, const float *target, int64_t n, struct gt_err *err);
/* Computes the report in the arena. The caller sets the names of the labels. */
enum gt_code gt_target_tally_labels(struct gt_target_tally *t, struct gt_arena *a, struct gt_class_report **out, struct gt_err *err);

/* A tally of either kind, which is opened for the kind of targets in the first added outputs. The caller first sets `samples` and `ignore`,
 * as for the functions gt_..._tally_open. */
struct gt_report_tally {
	int64_t samples, ignore;
	struct gt_class_tally *classes; /* owned, like labels */
	struct gt_target_tally *labels;
};
enum gt_code gt_report_tally_add(struct gt_report_tally *t, const struct gt_output_rows *rows, struct gt_err *err);
enum gt_code gt_report_tally_report(const struct gt_report_tally *t, struct gt_arena *a, struct gt_class_report **out, struct gt_err *err);
void gt_report_tally_free(struct gt_report_tally *t);

#endif
