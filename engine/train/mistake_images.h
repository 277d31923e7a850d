/* Images of the most confident mistakes in TensorBoard's event files, for log.images. */
#ifndef GT_TRAIN_MISTAKE_IMAGES_H
#define GT_TRAIN_MISTAKE_IMAGES_H

#include "session/session.h"
#include "train/tensorboard.h"

/* Refuses log.images if there is no split to evaluate, or if its samples or its outputs cannot be shown. */
enum gt_code gt_mistake_images_check(const struct gt_session *s, struct gt_err *err);
/* Evaluates a split as gt_measured_eval does and, if log.images asks for this split, writes the images "mistakes_SPLIT/01" and so on, and
 * their labels and predictions as the text "mistakes_SPLIT/list". All ranks must call it together; t is NULL on all ranks but 0. */
enum gt_code gt_mistake_images_eval(struct gt_session *s, enum gt_split split, struct gt_tensorboard *t, int64_t step,
                                    struct gt_scores *out, struct gt_err *err);

#endif
