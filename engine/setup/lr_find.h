/* The learning-rate range test (Smith 2015, "Cyclical Learning Rates for Training Neural Networks"), as fastai's lr_find does it.
 *
 *     step i of n:  rate = from * (to / from)^(i / (n - 1));  forward, backward, update with this rate
 *     loss  --> moving average (gt_lr_smooth), corrected for its start --> curve --> setup/lr_suggest.h
 *     end:  after n steps, when the average exceeds 4 times its minimum, or when a loss or a gradient is not finite
 *
 * All rates of the config change by the same factor: rate / train.optimizer.lr. Schedules do not count. The test trains as the first step
 * of a run does: a parameter that is frozen then stays frozen. It uses full batches only, unless the data is smaller than one batch. In
 * fp16, a step whose gradients overflow is repeated with the next batch and the same rate. */
#ifndef GT_SETUP_LR_FIND_H
#define GT_SETUP_LR_FIND_H

#include "gtrain.h"
#include "gtrain_data.h"
#include "session/session.h"

/* Runs the test on one rank, with a session that has its first weights. All ranks get the same points. c: steps and arena are set.
 * GT_EDIVERGED: the first step already has a loss or a gradient that is not finite. */
enum gt_code gt_lr_find_session(struct gt_session *s, const struct gt_lr_find_spec *spec, gt_observer observe, void *user,
                                struct gt_lr_curve *c, struct gt_err *err);

#endif
