/* Mode "dp": one process with N devices, as in torch.nn.DataParallel. It runs on one host only. Every batch is scattered over replicas of
 * the model and gradients are summed. Rank 0 ("device 0") alone has the optimizer state and makes the update; its parameters are then
 * replicated onto the other devices. A replica is a thread that runs the same kind of program as any rank, so the collectives are the same.
 * With one rank it is the same as mode "single".
 *
 * torch gathers the logits on device 0 and computes one loss there. Here every replica computes the loss of its own samples with the
 * normaliser of the whole batch (gt_step_args.inv_weight); the sum of these losses equals that loss. The results are the same, without a
 * transfer of the logits and without additional work on device 0. Parameters are replicated after the update instead of before each forward
 * pass, so that evaluations read them too; CPU replicas read the parameters of rank 0 directly. As in torch, the running statistics of rank
 * 0 are used and the statistics of the other replicas are discarded. */
#include "plan/replicas.h"

static enum gt_sync_method choose_sync(const struct gt_conf *c, const struct gt_offers *offers)
{
	(void)c;
	return gt_replicas_factors_pay(offers) ? GT_SYNC_FACTORED_UPDATE : GT_SYNC_RANK0_UPDATE;
}

static enum gt_code make_steps(const struct gt_job *job, struct gt_prog *out, struct gt_err *err)
{
	return job->at.ndata == 1 ? gt_strategy_single.schedule(job, out, err) : gt_replicas_rank0_update(job, out, err);
}

const struct gt_strategy gt_strategy_dp = {GT_STRATEGY_MODE(dp),
                                           .position = gt_replicas_position,
                                           .shard = gt_replicas_shard,
                                           .sync = choose_sync,
                                           .least_micro = gt_replicas_least_micro,
                                           .schedule = make_steps};
