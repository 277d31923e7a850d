/* Batch normalisation beyond one rank's samples, or beyond one micro-batch: rewrites of a finished training graph.
 *
 * sync_bn (torch.nn.SyncBatchNorm): every training batchnorm normalises by the statistics of all ranks' samples.
 *   batchnorm     becomes  batchnorm.stats → all_gather of the parts → batchnorm.merge → batchnorm.y
 *   batchnorm.dx  becomes  batchnorm.sums → all_reduce → batchnorm.dx
 * Fused relu and residual, and recomputation, work as before. The gradients of gamma and beta are of the rank's own samples, like all
 * others: the all-reduce of gradients adds them up. Every rank gets the same statistics, bit for bit, running ones included; with one rank all
 * numbers are the same bits as without the rewrite.
 *
 * Ranks without samples (a tail batch may be smaller than the number of ranks) must come to the same exchanges, and must update the running
 * statistics too. Their graph, gt_graph_sync_bn_idle, is that of the others with everything else taken out: parts and sums of no values
 * (zeros, which change no bit of the others' results) → exchange → batchnorm.merge. It makes no gradients: the caller zeroes them before
 * they are added up.
 *
 * Deferred running statistics (torch.distributed.pipeline.sync.batchnorm.DeferredBatchNorm): micro-batches normalise by their own
 * statistics, and the running ones are updated once for the whole mini-batch, with its biased variance, as PyTorch has it. Each
 * micro-batch joins its part to a value of kind GT_V_PART, which lies beside the buffers of the space: in whatever order of chunks the
 * forward passes run, which is part of the result's definition. One call a normalisation (gt_defer_bn_prepare) ends the mini-batch and
 * leaves the parts empty. After gt_graph_sync_bn, parts are of all ranks. */
#ifndef GT_PLAN_SYNCBN_H
#define GT_PLAN_SYNCBN_H

#include "plan/plan.h"

/* Call these after gt_graph_fuse, before gt_graph_recompute. The graph must have been built with gt_model_spec.sync_bn where a rank may have one
 * value a channel. group: enum gt_group, of `world` ranks; samples: of this micro-batch on all of them. GT_ECONFIG where a channel has one
 * value in all: its unbiased variance would divide by 0. */
enum gt_code gt_graph_sync_bn(struct gt_graph *g, int group, int world, int64_t samples, struct gt_err *err);

/* After gt_graph_sync_bn, for a rank that has none of the samples: g may be of any batch, and has a batch of 0 then. Nothing reads its input,
 * and what its nodes do not make has no memory. It cannot be the first graph of a space. */
enum gt_code gt_graph_sync_bn_idle(struct gt_graph *g, struct gt_err *err);

/* Normalisations without running statistics are left as they are. Of a pipeline, the stages' graphs (pipeline_partition.h): in a whole graph that is cut
 * afterwards nothing would read the buffers, and no stage would have them. */
enum gt_code gt_graph_defer_bn(struct gt_graph *g, struct gt_err *err);

/* The calls that end a mini-batch: one a normalisation of g, in *out[0 … *n), from the arena of s. Prepare after the first gt_plan_make of s,
 * bind after gt_space_alloc, close before the device. */
enum gt_code gt_defer_bn_prepare(struct gt_space *s, const struct gt_graph *g, struct gt_call **out, int *n, struct gt_err *err);
void gt_defer_bn_bind(const struct gt_space *s, const struct gt_graph *g, struct gt_call *call, int n);
void gt_defer_bn_close(const struct gt_space *s, struct gt_call *call, int n);

#endif
