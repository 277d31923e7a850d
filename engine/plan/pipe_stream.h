/* Internal to engine/plan: lets the transfers of a pipeline overlap with each other and with kernels. Both functions rewrite a list of
 * steps that is otherwise finished. */
#ifndef GT_PLAN_PIPE_STREAM_H
#define GT_PLAN_PIPE_STREAM_H

#include "plan/emit.h"

/* Decides which transfers run at the same time. Consecutive transfers of the list do so, at most GT_COMM_BATCH of them. If a transfer would
 * write memory that an earlier one of them reads or writes, or would read memory that it writes, its gt_step.apart is set, so that it
 * begins after them. */
void gt_pipe_separate_transfers(struct gt_emit *e);

/* Moves the transfers to a stream of their own, if the device queues steps (gt_job.queues). Each group of consecutive transfers waits
 * for the kernels before it. If a group receives something, the kernels after it wait for it. If it only sends, they continue until one
 * of them would write memory that a transfer still reads. In this way weight gradients are computed while the gradient of an activation
 * is being sent:
 *
 *	stream 0 (kernels)     … linear.dx ----+     linear.dw     linear.dw  …
 *	stream 1 (transfers)                   +---> send dx ------------------>
 *
 * The order of the transfers is unchanged, so the proof of gt_verify_comm stays valid. */
void gt_pipe_streams(struct gt_emit *e);

#endif
