/* The exponential moving average of the trained parameters (train.ema). It is an additional optimizer state, stored after the states of the
 * optimizer and sharded like them. The operation EMA updates it after each optimizer step (session/optim.c). Evaluations use the average
 * instead of the parameters. In a checkpoint, the model file has the average, and the optimizer file the trained parameters. Buffers are
 * not averaged, as in torch.optim.swa_utils.AveragedModel.
 *
 *     gt_ema_start(s, err);                    after the first weights are set
 *     gt_ema_begin(s, &held, err);
 *     ... evaluate ...
 *     gt_ema_end(s, &held, err);
 *
 * All functions do nothing without train.ema. All ranks call them together, while no step is queued on the device. */
#ifndef GT_TRAIN_EMA_H
#define GT_TRAIN_EMA_H

#include "session/session.h"

/* The parameters of this rank while an evaluation uses the average. */
struct gt_ema_held {
	bool on;      /* the average has replaced the parameters */
	void *params; /* copy of the arena PARAM in host memory; NULL: another rank has the copy of parameters that ranks share */
};

enum gt_code gt_ema_start(struct gt_session *s, struct gt_err *err); /* sets the average to the parameters */
enum gt_code gt_ema_begin(struct gt_session *s, struct gt_ema_held *held, struct gt_err *err);
enum gt_code gt_ema_end(struct gt_session *s, struct gt_ema_held *held, struct gt_err *err);

/* Returns the bytes of host memory that this rank needs for gt_ema_begin, if the run evaluates. */
size_t gt_ema_held_bytes(const struct gt_session *s);

/* Returns the index of the state that is the average, for gt_session_get and gt_session_put; -1: parameter or buffer i has no average. */
int gt_ema_state(const struct gt_session *s, int i);

#endif
