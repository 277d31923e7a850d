/* Finds the worst predictions of a split, and computes the calibration of all predictions, from the outputs of the model.
 *
 *     struct gt_mistakes m = {.most = 24, .ignore = ignore_index};
 *     GT_TRY(gt_session_eval_order(s, GT_TEST, &m.order, err));
 *     gt_mistakes_add(&m, rows, err);                       all outputs, in the order of the evaluation
 *     m.worst[0 ... m.n - 1]                                the worst mistake first
 *     gt_mistakes_free(&m);
 *
 *     classes   wrong predictions with the largest probability
 *     labels    samples with a wrong label, ordered by the difference between its probability and the target, largest first
 *     numbers   samples with the largest absolute errors, in standard deviations of the target; there is no calibration
 * */
#ifndef GT_SCORE_MISTAKES_H
#define GT_SCORE_MISTAKES_H

#include "score/calibration.h"
#include "score/outputs.h"

struct gt_mistakes {
	int most;                 /* maximum number of mistakes to keep */
	int64_t ignore;           /* samples with this label are ignored */
	bool numbers;             /* targets are numeric; false: a sample has a class, or one label for each output */
	/* [n] mistakes, the worst first, without the contents of samples; members `value` and `wanted` are in the unit of the outputs; owned */
	struct gt_mistake *worst;
	int n;
	double *numbers_of;       /* [most][2 * outputs] predictions and targets of worst[]; owned; NULL: targets are not numeric */
	double *probability;      /* [outputs] scratch memory for the probabilities of one sample; owned */
	int64_t seen;             /* number of samples added so far */
	int64_t *order;           /* dataset index of each sample, in the order of the evaluation; owned */
	struct gt_calibration calibration; /* sums, before gt_calibration_finish */
};

enum gt_code gt_mistakes_add(struct gt_mistakes *m, const struct gt_output_rows *rows, struct gt_err *err);
void gt_mistakes_free(struct gt_mistakes *m);

#endif
