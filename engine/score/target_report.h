/* Builds the report of `gtrain eval --report` for several labels of a sample, with losses such as bce. value_tally.h is for columns
 * of numbers.
 *
 *     gt_target_tally_open(samples, width, &t, err);
 *     while (...)
 *         gt_target_tally_add(t, outputs, targets, n, err);    n rows of each, in any order of the samples
 *     gt_target_tally_labels(t, arena, &report, err);
 *     gt_target_tally_close(t);
 *
 * Definitions are those of scikit-learn. A label is predicted if its output is above 0, that is, its probability above one half; it is
 * there if its target is above one half. The scores are those of classification_report of indicators with zero_division=0, of
 * accuracy_score and of roc_auc_score. */
#ifndef GT_SCORE_TARGET_REPORT_H
#define GT_SCORE_TARGET_REPORT_H

#include "base/arena.h"
#include "gtrain_use.h"

struct gt_target_tally;

/* samples: maximum number of samples that will be added. width: numbers of a sample. Takes 8 bytes for each number. */
enum gt_code gt_target_tally_open(int64_t samples, int64_t width, struct gt_target_tally **out, struct gt_err *err);
void gt_target_tally_close(struct gt_target_tally *t); /* t may be NULL */
/* Adds n samples. GT_EDIVERGED: an output is not a number. */
enum gt_code gt_target_tally_add(struct gt_target_tally *t, const float *z, const float *target, int64_t n, struct gt_err *err);
/* Computes the report in the arena. Names are not set. */
enum gt_code gt_target_tally_labels(struct gt_target_tally *t, struct gt_arena *a, struct gt_class_report **out, struct gt_err *err);

#endif
