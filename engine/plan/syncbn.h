/* Batch normalisation over the samples of several ranks, or of several micro-batches. These functions rewrite a finished training graph.
 *
 * Synchronised statistics (torch.nn.SyncBatchNorm): every training batchnorm normalises by the statistics of all ranks' samples.
 *
 *	batchnorm      becomes   batchnorm.stats -> all_gather of the partial statistics -> batchnorm.merge -> batchnorm.y
 *	batchnorm.dx   becomes   batchnorm.sums -> all_reduce -> batchnorm.dx
 *
 * A fused relu, a fused residual and recomputation work as without the rewrite. The gradients of gamma and beta cover the rank's own
 * samples, like all other gradients: the all-reduce of gradients adds them up. Every rank gets the same statistics, bit for bit, running
 * statistics included. With one rank, all numbers are the same bits as without the rewrite.
 *
 * A rank may have no samples, because a tail batch may be smaller than the number of ranks. It must still take part in the same exchanges
 * and update its running statistics. Its graph (gt_graph_sync_bn_idle) is the other ranks' graph reduced to three kinds of nodes: partial
 * statistics and sums of no values (zeros, which change no bit of the other ranks' results), the exchanges, and batchnorm.merge. It makes
 * no gradients: the caller sets them to 0 before they are added up.
 *
 * Deferred running statistics (torch.distributed.pipeline.sync.batchnorm.DeferredBatchNorm): each micro-batch is normalised by its own
 * statistics, and the running statistics are updated once for the whole mini-batch, with its biased variance, as in PyTorch. Each
 * micro-batch merges its partial statistics into a value of kind GT_V_PART, which is stored next to the buffers of the space. The order of
 * these merges is the order in which the forward passes of the chunks run; it is part of the definition of the result. One call for each
 * normalisation (gt_defer_bn_prepare) ends the mini-batch and empties the partial statistics. After gt_graph_sync_bn, the partial
 * statistics cover all ranks. */
#ifndef GT_PLAN_SYNCBN_H
#define GT_PLAN_SYNCBN_H

#include "plan/plan.h"

/* Makes the batch normalisations of g use the statistics of all ranks' samples. Call this and gt_graph_defer_bn after gt_graph_fuse and
 * before gt_graph_recompute. If a rank may have a single value in a channel, the graph must have been built with gt_model_spec.sync_bn.
 * group: enum gt_group; it has `world` ranks. samples: number of samples of this micro-batch over all ranks of the group. GT_ECONFIG: a
 * channel has one value over all ranks, so its unbiased variance would divide by 0. */
enum gt_code gt_graph_sync_bn(struct gt_graph *g, int group, int world, int64_t samples, struct gt_err *err);

/* Reduces g to the graph of a rank that has none of the samples. Call it after gt_graph_sync_bn. g may have been built for any batch size;
 * its batch becomes 0. No node reads its input, and values that no node makes get no memory. It cannot be the first graph of a space. */
enum gt_code gt_graph_sync_bn_idle(struct gt_graph *g, struct gt_err *err);

/* Defers the running statistics of g. Normalisations without running statistics stay as they are. In a pipeline, call it on the graph of
 * each stage (pipeline_partition.h), not on the whole graph before it is partitioned: no node would read the buffers then, and no stage
 * would have them. */
enum gt_code gt_graph_defer_bn(struct gt_graph *g, struct gt_err *err);

/* Prepares the calls that end a mini-batch, one for each normalisation of g: *out[0 … *n), in the arena of s. Prepare them after the first
 * gt_plan_make of s, bind them after gt_space_alloc, close them before the device. */
enum gt_code gt_defer_bn_prepare(struct gt_space *s, const struct gt_graph *g, struct gt_call **out, int *n, struct gt_err *err);
void gt_defer_bn_bind(const struct gt_space *s, const struct gt_graph *g, struct gt_call *call, int n);
void gt_defer_bn_close(const struct gt_space *s, struct gt_call *call, int n);

#endif
