/* Internal to engine/plan: lets the transfers of a pipeline overlap with each other and with kernels. Both functions rewrite a list of
 * steps that is otherwise finished. */
#ifndef GT_PLAN_PIPE_STREAM_H
#define GT_PLAN_PIPE_STREAM_H

#include "plan/emit.h"

/* Decides which transfers run at the same time. Consecutive transfers form such a group, at most GT_COMM_BATCH of them. If a transfer
 * conflicts with an earlier transfer of its group (one of the two writes memory that the other reads or writes), gt_step.apart of the later
 * transfer is set, so that it begins after the group. */
void gt_pipe_separate_transfers(struct gt_emit *e);

/* Moves the transfers to a stream of their own, if the device queues steps (gt_job.queues). Each group of consecutive transfers waits
 * for the kernels before it. If a group receives data, later kernels wait for the group. If the group only sends, later kernels wait only
 * when a kernel would write memory that a transfer still reads. So weight gradients are computed while the gradient of an activation is
 * being sent:
 *
 *	stream 0 (kernels)     … linear.dx ----+     linear.dw     linear.dw  …
 *	stream 1 (transfers)                   +---> send dx ------------------>
 *
 * The order of the transfers is unchanged, so the result of gt_verify_comm stays valid. */
void gt_pipe_streams(struct gt_emit *e);

#endif
