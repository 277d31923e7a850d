/* Batch normalisation over the samples of several ranks. These functions rewrite a finished training graph.
 *
 * Synchronised statistics (torch.nn.SyncBatchNorm): every training batchnorm normalises by the statistics of all ranks' samples.
 *
 *	batchnorm      becomes   batchnorm.stats -> all_gather of the partial statistics -> batchnorm.merge -> batchnorm.y
 *	batchnorm.dx   becomes   batchnorm.sums -> all_reduce -> batchnorm.dx
 *
 * A fused relu, a fused residual and recomputation still work. The gradients of gamma and beta cover the rank's own samples, like all other
 * gradients: the all-reduce of gradients adds them up. Every rank gets the same statistics, bit for bit, running statistics included. With
 * one rank, the rewrite does not change the bits of any result.
 *
 * A rank may have no samples, because a tail batch may be smaller than the number of ranks. It must still take part in all exchanges and
 * update its running statistics. Its graph (gt_graph_sync_bn_idle) is the other ranks' graph reduced to three kinds of nodes: partial
 * statistics and sums over no samples (zeros, which change no bit of the other ranks' results), the exchanges, and batchnorm.merge. It
 * makes no gradients: the caller sets them to 0 before they are added up. */
#ifndef GT_PLAN_SYNCBN_H
#define GT_PLAN_SYNCBN_H

#include "plan/plan.h"

/* Makes the batch normalisations of g use the statistics of all ranks' samples. Call it after gt_graph_fuse and before gt_graph_recompute.
 * If a rank may have a single value in a channel, the graph must have been built with gt_model_spec.sync_bn. group: enum gt_group; it has
 * `world` ranks. samples: number of samples of this micro-batch over all ranks of the group. GT_ECONFIG: a channel has one value over all
 * ranks, so its unbiased variance would divide by 0. */
enum gt_code gt_graph_sync_bn(struct gt_graph *g, int group, int world, int64_t samples, struct gt_err *err);

/* Reduces g to the graph of a rank without samples. Call it after gt_graph_sync_bn. g may have been built for any batch size; its batch
 * becomes 0. No node reads its input, and values that no node makes get no memory. It cannot be the first graph of a space. */
enum gt_code gt_graph_sync_bn_idle(struct gt_graph *g, struct gt_err *err);

#endif
