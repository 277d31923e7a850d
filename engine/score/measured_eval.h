/* Evaluates a split with all scores that the run needs: loss and accuracy; mae, rmse and r2 if targets are numeric; f1 and auc if a key of
 * the config names them (conf/metric_name.h).
 *
 *     gt_measured_eval(s, GT_VALID, &scores, err);       called by all ranks; all get the same scores
 *
 * Rank 0 computes scores other than loss and accuracy. They need the outputs of each batch, which slows down an evaluation on a GPU. For
 * auc, rank 0 keeps the outputs of all samples. */
#ifndef GT_SCORE_MEASURED_EVAL_H
#define GT_SCORE_MEASURED_EVAL_H

#include "score/outputs.h"

enum gt_code gt_measured_eval(struct gt_session *s, enum gt_split split, struct gt_scores *out, struct gt_err *err);
/* Evaluates a split like gt_measured_eval, and also calls also(user, rows, err) on rank 0 with the outputs, as gt_outputs_open describes.
 * also: NULL: no call. */
enum gt_code gt_measured_eval_also(struct gt_session *s, enum gt_split split,
                                   enum gt_code (*also)(void *user, const struct gt_output_rows *rows, struct gt_err *err), void *user,
                                   struct gt_scores *out, struct gt_err *err);

#endif
