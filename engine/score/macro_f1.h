/* Evaluates a split and its macro F1 score: the mean F1 over the classes that are the label or the prediction of some sample. */
#ifndef GT_SCORE_MACRO_F1_H
#define GT_SCORE_MACRO_F1_H

#include "session/session.h"

/* Like gt_session_eval, and sets out->f1 too, to the same value on all ranks. It waits for the outputs of each batch, which makes an
 * evaluation on a GPU slower. Rank 0 keeps three counts for each class. */
enum gt_code gt_macro_f1_eval(struct gt_session *s, enum gt_split split, struct gt_scores *out, struct gt_err *err);

#endif
