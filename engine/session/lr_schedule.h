/* Learning-rate schedules, counted in optimizer steps. A schedule is a pure function, so that a resumed run and `gtrain check` see the same
 * rates.
 *
 * The formulas are the closed forms in PyTorch's torch/optim/lr_scheduler.py. Warm-up is LinearLR, followed by the schedule from its own
 * step 0, as in SequentialLR. With unit = "epoch", step, multistep and exponential change at epoch boundaries, as in PyTorch. The smooth
 * schedules (cosine, polynomial, cycles) change at every step; only their lengths are in epochs. */
#ifndef GT_SESSION_LR_SCHEDULE_H
#define GT_SESSION_LR_SCHEDULE_H

#include "conf/conf.h"

/* Returns the learning rate of optimizer step `step` (0 ... total - 1) of a run of `total` steps, with `per_epoch` steps in an epoch. lr:
 * the base learning rate. */
double gt_schedule_rate(const struct gt_conf_schedule *s, double lr, int64_t step, int64_t total, int64_t per_epoch);
/* Returns whether a schedule changes the momentum or beta1 of an optimizer. */
bool gt_schedule_cycles_momentum(const struct gt_conf_schedule *s, const struct gt_conf_optimizer *o);
/* Returns the momentum, or beta1, of optimizer step `step`, for a schedule that changes it; arguments as for gt_schedule_rate. */
double gt_schedule_momentum(const struct gt_conf_schedule *s, int64_t step, int64_t total, int64_t per_epoch);
/* Returns the learning rate of train.optimizer at optimizer step `step`; arguments as for gt_schedule_rate. */
double gt_schedule_lr(const struct gt_conf_train *t, int64_t step, int64_t total, int64_t per_epoch);
/* Returns lr after `drops` reductions by a schedule of type plateau; other types never reduce. */
double gt_schedule_reduced(const struct gt_conf_schedule *s, double lr, int64_t drops);

#endif
