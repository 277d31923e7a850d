/* Decides by a metric of the evaluations: the end of a run (train.early_stop), and reductions of the learning rate (schedule plateau). */
#ifndef GT_TRAIN_METRIC_WATCH_H
#define GT_TRAIN_METRIC_WATCH_H

#include "conf/conf.h"
#include "store/ckpt.h"

/* Continues the state of a checkpoint with a metric of the config. If its best value is one of another metric, no value is the best until
 * the next evaluation; reductions of the learning rate remain. Returns whether it was another metric. */
bool gt_watch_continue(struct gt_ckpt_watch *w, const char *metric);

/* Notes a value. Returns whether the run must end: `patience` values in a row did not improve by more than min_delta. */
bool gt_watch_early_stop(const struct gt_conf_train *t, struct gt_ckpt_watch *w, double value);
/* Returns whether a run with this state has ended so. */
bool gt_watch_stopped(const struct gt_conf_train *t, const struct gt_ckpt_watch *w);

/* Notes a value as torch.optim.lr_scheduler.ReduceLROnPlateau.step() does, but with a threshold that is a share of the magnitude, as values
 * of r2 can be negative. A reduction raises w->drops. */
void gt_watch_plateau(const struct gt_conf_schedule *s, struct gt_ckpt_watch *w, double value);

#endif
