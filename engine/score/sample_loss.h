/* The loss of one sample, from the outputs of the model.
 *
 *     double loss = gt_sample_loss(&s->loss, z, classes, label, NULL);
 *
 * It is computed in double with the formulas of the kernels (kernels/ew.inc); it has the weight of the sample's class, as in PyTorch with
 * reduction="none". The sum over a split, divided by the number of samples that count, or by the sum of the weights of their classes, is
 * the loss that an evaluation reports, up to the rounding of the kernels. */
#ifndef GT_SCORE_SAMPLE_LOSS_H
#define GT_SCORE_SAMPLE_LOSS_H

#include "ir/graph.h"

/* z: [n] outputs. target: [n] targets that are numbers; NULL: the target is label. NAN: the label does not count. */
double gt_sample_loss(const struct gt_loss_spec *loss, const float *z, int64_t n, int32_t label, const float *target);

#endif
