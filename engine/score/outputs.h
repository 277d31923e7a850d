/* Collects the model's outputs of an evaluation on rank 0.
 *
 *     gt_outputs_open(s, GT_TEST, take, user, &o, err);      all ranks
 *     gt_session_eval(s, GT_TEST, &scores, err);             calls take on rank 0, with each sample once, in the order
 *                                                           of gt_session_eval_order
 *     gt_outputs_close(o);
 *
 *     rank 0   part 0 of a batch --.
 *     rank 1   part 1 of a batch ---+--> gather over host memory --> take, on rank 0
 *     rank 2   part 2 of a batch --'
 *
 * Each rank stores the outputs of its part of one batch, and rank 0 the outputs of a whole batch. In a pipeline, the ranks of the last
 * stage have the outputs. */
#ifndef GT_SCORE_OUTPUTS_H
#define GT_SCORE_OUTPUTS_H

#include "session/session.h"

struct gt_outputs;

/* The outputs (logits) for some samples of a split. */
struct gt_output_rows {
	int64_t n, classes;   /* number of samples; number of outputs of each sample */
	const float *z;       /* [n * classes] */
	const int32_t *label; /* [n] class of each sample; NULL: targets are numeric */
	const float *target;  /* [n * classes] targets; NULL: targets are labels */
};

/* Makes evaluations of the session call `take` on rank 0 with the outputs of each batch. split: the split that will be evaluated. All ranks
 * call it together. GT_ECONFIG: the output of the model is not one value for each class. */
enum gt_code gt_outputs_open(struct gt_session *s, enum gt_split split,
                             enum gt_code (*take)(void *user, const struct gt_output_rows *rows, struct gt_err *err), void *user,
                             struct gt_outputs **out, struct gt_err *err);
void gt_outputs_close(struct gt_outputs *o); /* Ends the calls of `take` by evaluations of the session, and frees o. o may be NULL. */

#endif
