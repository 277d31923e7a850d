/* One process with N devices, as torch.nn.DataParallel: every batch is scattered over replicas of the model, gradients are summed, rank 0
 * ("device 0") alone has the optimizer's state and makes the update, and its parameters are replicated onto the others. Here a replica is a
 * thread that runs the same list as any rank, so what joins them are the same collectives. With one rank it is "single".
 *
 * torch gathers the logits on device 0 and computes one loss there. Here every replica computes the loss of its samples with the
 * normaliser of the whole batch (gt_dyn.inv_weight), whose sum is that one loss: the same numbers, without the transfer of the logits
 * and without the load on device 0. Parameters are replicated behind the update instead of before each forward pass, so that evaluations
 * read them too; CPU replicas read rank 0's as they are. Running statistics follow rank 0, as they do in torch, where the other replicas' are thrown away. */
#include "par/replicas.h"

static enum gt_code place(const struct gt_conf *c, int rank, int world, struct gt_place_of_rank *out, struct gt_err *err)
{
	return gt_strategy_ddp.place(c, rank, world, out, err);
}

static void cut(const struct gt_conf *c, const struct gt_place_of_rank *at, bool common, struct gt_shard_spec *out)
{
	if (at->ndata == 1)
		return;
	*out = gt_replicas_shard_spec(c);
	out->follows = at->data > 0;
	out->common = common;
}

static enum gt_code schedule(const struct gt_job *job, struct gt_prog *out, struct gt_err *err)
{
	return job->at.ndata == 1 ? gt_strategy_single.schedule(job, out, err) : gt_replicas_rank0_update(job, out, err);
}

const struct gt_strategy gt_strategy_dp = {.name = "dp", .place = place, .cut = cut, .schedule = schedule};
