/* Internal to engine/par: overlap of a pipeline's transfers, with each other and with kernels. Both functions rewrite a finished list. */
#ifndef GT_PAR_PIPE_STREAM_H
#define GT_PAR_PIPE_STREAM_H

#include "par/emit.h"

/* Decides which transfers run side by side. Transfers that follow each other in the list do so, unless one writes memory that another one
 * reads or writes; such a transfer gets gt_step.apart. A run of side-by-side transfers has at most GT_COMM_BATCH of them. */
void gt_pipe_separate_transfers(struct gt_emit *e);

/* Moves the transfers to a stream of their own, if the device queues. Each run of consecutive transfers waits for the kernels before it.
 * The kernels after it wait for the run if it receives something. If it only sends, they continue until one of them would write memory that
 * a transfer still reads. In this way weight gradients are computed while the gradient of an activation is being sent:
 *
 *	stream 0 (kernels)     … linear.dx ----+     linear.dw     linear.dw  …
 *	stream 1 (transfers)                   +---> send dx ------------------>
 *
 * The order of the transfers is unchanged, so the proof of gt_verify_comm stays valid. */
void gt_pipe_streams(struct gt_emit *e);

#endif
