/* Watches a metric of evaluations and decides when a run ends (train.early_stop) or the learning rate falls (schedule plateau). */
#ifndef GT_TRAIN_METRIC_WATCH_H
#define GT_TRAIN_METRIC_WATCH_H

#include "conf/conf.h"
#include "store/ckpt.h"

/* Continues the state of a checkpoint with a metric of the config. If the checkpoint has another metric, resets the best value until the
 * next evaluation; reductions of the learning rate remain. Returns whether the metrics differ. */
bool gt_watch_continue(struct gt_ckpt_watch *w, const char *metric);

/* Adds a value. Returns whether the run must end: `patience` values in a row did not improve by more than min_delta. */
bool gt_watch_early_stop(const struct gt_conf_train *t, struct gt_ckpt_watch *w, double value);
/* Returns whether a run with this state has been ended by train.early_stop. */
bool gt_watch_stopped(const struct gt_conf_train *t, const struct gt_ckpt_watch *w);

/* Adds a value as torch.optim.lr_scheduler.ReduceLROnPlateau.step() does, but with a threshold that is a share of the magnitude, as values
 * of r2 can be negative. A reduction raises w->drops. */
void gt_watch_plateau(const struct gt_conf_schedule *s, struct gt_ckpt_watch *w, double value);

#endif
