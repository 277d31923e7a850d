/* Histograms of the weights in TensorBoard's event files, for log.histograms. */
#ifndef GT_TRAIN_HISTOGRAMS_H
#define GT_TRAIN_HISTOGRAMS_H

#include "session/session.h"
#include "train/tensorboard.h"

/* Writes a histogram of each parameter. All ranks must call it together; t is NULL on all ranks but 0. Holds one gathered tensor at a
 * time. */
enum gt_code gt_histograms_write(struct gt_session *s, struct gt_tensorboard *t, int64_t step, struct gt_err *err);

#endif
