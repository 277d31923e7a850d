/* What a pipeline's transfers may go on beside: each other, and kernels. */
#ifndef GT_PAR_PIPE_STREAM_H
#define GT_PAR_PIPE_STREAM_H

#include "par/emit.h"

/* Transfers that follow each other go on side by side, unless one writes where another one reads: those are marked gt_step.apart. */
void gt_pipe_apart(struct gt_emit *e);

/* On a stream of their own, where the device queues: makes e's list again. Each run of transfers waits for the kernels before it; the kernels
 * behind it wait if it receives something, and if it only sends, once one of them would write where it reads. So gradients of weights are
 * made while the gradient of an activation is on its way. The order of the transfers stays, and with it what gt_verify_comm has found. */
void gt_pipe_streams(struct gt_emit *e);

#endif
