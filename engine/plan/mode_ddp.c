/* Mode "ddp": data parallelism as in torch.nn.parallel.DistributedDataParallel. Every rank has the whole model and processes its part of
 * every micro-batch. Gradients are summed over the ranks bucket by bucket, as soon as the backward pass of the last micro-batch has
 * finished a bucket; the gradients of earlier micro-batches are accumulated without communication (no_sync in torch). All ranks then make
 * the same update. With one rank it is the same as mode "single".
 *
 * Ranks that share memory (CPU ranks of one host) have one copy of the parameters. Each rank then makes its part of the update for all
 * ranks, as in stage 1 of mode "zero", but nothing needs to be gathered. The results are the same bits.
 *
 * Evaluations and checkpoints read only the running statistics of rank 0. The copies of the other ranks are not read. */
#include "plan/emit.h"
#include "plan/replicas.h"

/* Returns whether each rank must make the whole update: an optimizer needs whole matrices, or the last bits of the gradients' norm for
 * clipping must not depend on shards (reproducible = "world"). */
static bool needs_whole(const struct gt_conf *c)
{
	return gt_replicas_whole_optimizer(c) || (c->train.clip_norm > 0 && c->reproducible == GT_REPRO_WORLD);
}

/* Ranks that share the parameters need no all-gather after a sharded update. For other ranks an all_reduce is cheaper than a sharded
 * update. */
static enum gt_sync_method choose_sync(const struct gt_conf *c, const struct gt_offers *offers)
{
	if (gt_replicas_factors_pay(offers))
		return GT_SYNC_FACTORED_UPDATE;
	return offers->shared_memory && !needs_whole(c) ? GT_SYNC_SHARDED_UPDATE : GT_SYNC_ALL_REDUCE;
}

static enum gt_code make_steps(const struct gt_job *job, struct gt_prog *out, struct gt_err *err)
{
	if (job->at.ndata == 1)
		return gt_strategy_single.schedule(job, out, err);
	if (job->space->shards.spec.sync != GT_SYNC_ALL_REDUCE)
		return gt_strategy_zero.schedule(job, out, err);
	struct gt_emit e;
	gt_emit_begin(&e, job, err);
	GT_TRY(gt_replicas_passes(&e, &(struct gt_pass_hooks){.reduce = gt_replicas_sum}));
	if (job->update) {
		gt_emit_stream_wait(&e, 1, 0);
		gt_emit_check(&e);
		gt_replicas_update(&e);
	}
	return gt_emit_end(&e, out);
}

const struct gt_strategy gt_strategy_ddp = {GT_STRATEGY_MODE(ddp),
                                            .position = gt_replicas_position,
                                            .shard = gt_replicas_shard,
                                            .sync = choose_sync,
                                            .least_micro = gt_replicas_least_micro,
                                            .schedule = make_steps};
