/* Builds the report of `gtrain eval --report` (struct gt_class_report in gtrain_use.h) from the model's outputs for the samples of a split.
 *
 *     gt_class_tally_open(samples, classes, ignore_index, &t, err);
 *     while (...)
 *         gt_class_tally_add(t, outputs, labels, n, err);      n rows of outputs, in any order of the samples
 *     gt_class_tally_report(t, arena, &report, err);
 *     gt_class_tally_close(t);
 *
 * Definitions are those of scikit-learn: classification_report with zero_division=0, and roc_auc_score. The predicted class is the first
 * one with the largest output, as the loss kernels count it. A probability is the softmax of the outputs.
 *
 * Memory: for each sample 4 bytes for each class, because the area under a ROC curve ranks all samples, and 160 bytes more; for each class
 * the counts, and 8 * classes bytes of the confusion matrix up to GT_CONFUSION_CLASSES classes. */
#ifndef GT_SCORE_CLASS_REPORT_H
#define GT_SCORE_CLASS_REPORT_H

#include "base/arena.h"
#include "gtrain_use.h"

struct gt_class_tally;

/* samples: maximum number of samples that will be added. classes: number of outputs of the model, at least 2. */
enum gt_code gt_class_tally_open(int64_t samples, int64_t classes, int64_t ignore_index, struct gt_class_tally **out, struct gt_err *err);
void gt_class_tally_close(struct gt_class_tally *t); /* t may be NULL */
/* Adds n samples. z: n rows of one output for each class; label: the class of each sample; samples with the label ignore_index do not
 * count. GT_EDIVERGED: an output is not a number, so that the classes of the sample have no order. */
enum gt_code gt_class_tally_add(struct gt_class_tally *t, const float *z, const int32_t *label, int64_t n, struct gt_err *err);
/* Computes the report in the arena. Names of classes are not set. */
enum gt_code gt_class_tally_report(struct gt_class_tally *t, struct gt_arena *a, struct gt_class_report **out, struct gt_err *err);

#endif
