/* Transfers of a pipeline on a stream of their own, where the device queues. */
#ifndef GT_PAR_PIPE_STREAM_H
#define GT_PAR_PIPE_STREAM_H

#include "par/emit.h"

/* Makes e's list again: each run of transfers waits for the kernels before it; the kernels behind it wait if it receives something, and if it only
 * sends, once one of them would write where it reads. So gradients of weights are made while the gradient of an activation is on its way. The order
 * of the transfers stays, and with it what gt_prove has found. Nothing is changed where the device does not queue. */
void gt_pipe_streams(struct gt_emit *e);

#endif
