/* Evaluates a split and its area under the ROC curve, as struct gt_class_report has it: of class 1 if there are two classes, else the mean
 * over the classes or labels that have one. */
#ifndef GT_SCORE_AUC_H
#define GT_SCORE_AUC_H

#include "session/session.h"

/* Like gt_session_eval, and sets out->auc too, to the same value on all ranks; NAN: no class has an area. It waits for the outputs of each
 * batch, which makes an evaluation on a GPU slower. Rank 0 keeps the outputs of all samples. */
enum gt_code gt_auc_eval(struct gt_session *s, enum gt_split split, struct gt_scores *out, struct gt_err *err);

#endif
