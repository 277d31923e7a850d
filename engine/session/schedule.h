/* Learning-rate schedules, counted in optimizer steps. A pure function, so that a resumed run and `gtrain check` see the same curve.
 * Formulas: PyTorch's torch/optim/lr_scheduler.py (closed forms). Warm-up is LinearLR followed by the schedule from its own zero,
 * as SequentialLR does it. With unit = "epoch", step, multistep and exponential change at epoch boundaries as PyTorch's do; the
 * smooth ones (cosine, polynomial, one-cycle) move every step, their lengths given in epochs. */
#ifndef GT_SESSION_SCHEDULE_H
#define GT_SESSION_SCHEDULE_H

#include "conf/conf.h"

/* The rate of optimizer step `step` (from 0) of a run of `total` steps, `per_epoch` of them an epoch; lr: before the schedule. */
double gt_schedule_rate(const struct gt_conf_schedule *s, double lr, int64_t step, int64_t total, int64_t per_epoch);
/* That of train.optimizer. */
double gt_schedule_lr(const struct gt_conf_train *t, int64_t step, int64_t total, int64_t per_epoch);

#endif
