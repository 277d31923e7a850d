/* Every rank has the whole model and its part of every micro-batch. Gradients are summed over the ranks bucket by bucket, as soon as the
 * backward pass of the last micro-batch has finished one; earlier micro-batches are added up without a word (torch.nn.parallel.
 * DistributedDataParallel under no_sync). All ranks then make the same update. With one rank it is "single".
 *
 * Ranks that have memory in common (CPU ranks of a host) have the parameters there once: then each makes its part of the update, for all,
 * as with zero's stage 1, and nothing needs to be gathered. The same bits.
 *
 * Running statistics follow rank 0: nobody reads the others', and evaluations and checkpoints take its. */
#include "par/emit.h"
#include "par/replicas.h"

static enum gt_code place(const struct gt_conf *c, int rank, int world, struct gt_place_of_rank *out, struct gt_err *err)
{
	(void)c, (void)err;
	*out = (struct gt_place_of_rank){.rank = rank, .world = world, .data = rank, .ndata = world, .npipe = 1};
	return GT_OK;
}

static void cut(const struct gt_conf *c, const struct gt_place_of_rank *at, bool common, struct gt_shard_spec *out)
{
	if (at->ndata == 1)
		return;
	if (common && !gt_replicas_whole(c))
		gt_replicas_shard(c, at, out);
	else
		*out = gt_replicas_shard_spec(c);
	out->common = common && out->state;
}

static enum gt_code schedule(const struct gt_job *job, struct gt_prog *out, struct gt_err *err)
{
	if (job->at.ndata == 1)
		return gt_strategy_single.schedule(job, out, err);
	if (job->space->cut.factors) /* the rest is little: one rank does it for all */
		return gt_replicas_rank0_update(job, out, err);
	if (job->space->cut.state)
		return gt_strategy_zero.schedule(job, out, err);
	struct gt_emit e;
	gt_emit_begin(&e, job, err);
	GT_TRY(gt_replicas_passes(&e, &(struct gt_passes){.reduce = gt_replicas_sum}));
	if (job->update) {
		gt_emit_join(&e, 1, 0);
		gt_emit_check(&e);
		gt_replicas_update(&e);
	}
	return gt_emit_end(&e, out);
}

const struct gt_strategy gt_strategy_ddp = {.name = "ddp", .place = place, .cut = cut, .schedule = schedule};
