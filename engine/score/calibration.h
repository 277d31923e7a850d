/* Calibration: compares the probabilities of a model with the share of its predictions that are correct.
 *
 *     struct gt_calibration c = {0};
 *     gt_calibration_add(&c, 0.93, true);          for each prediction: its probability, and whether it is right
 *     gt_calibration_finish(&c);                   the means of the bins and the expected calibration error
 *
 * With one label for each sample, a prediction is the class with the largest probability. With several labels, each label of each sample is
 * a prediction, which is right if the sample has the label. The error is defined by C. Guo et al., "On Calibration of Modern Neural
 * Networks" (2017): the mean over the bins, weighted by their predictions, of |mean probability - share of right predictions|. */
#ifndef GT_SCORE_CALIBRATION_H
#define GT_SCORE_CALIBRATION_H

#include "gtrain_use.h"

void gt_calibration_add(struct gt_calibration *c, double probability, bool right);
void gt_calibration_finish(struct gt_calibration *c);

#endif
