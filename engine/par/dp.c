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

static void cut(const struct gt_conf *c, const struct gt_place_of_rank *at, bool common, struct gt_cutting *out)
{
	if (at->ndata == 1)
		return;
	*out = gt_replicas_cut(c);
	out->follows = at->data > 0;
	out->common = common;
}

static void replicate(struct gt_emit *e, int b, enum gt_arena_id a)
{
	const struct gt_space *s = e->job->space;
	struct gt_range r = gt_space_bucket(s, a, b, 0);
	bool work = a == GT_A_WORK;
	gt_emit_collective(e, &(struct gt_collective){GT_COLL_BROADCAST, GT_GROUP_DATA, r, r, (size_t)(s->bucket[b].end - s->bucket[b].begin),
	                                              work ? s->work : s->master, work ? "16-bit weights" : "parameters"}, 1);
}

/* Whether this rank makes the update of what gt_plan_share's calls, if there are any, leave to it. */
static bool updates(const struct gt_job *job)
{
	return !job->space->cut.follows && (!job->space->cut.shares || job->at.data == 0);
}

static enum gt_code schedule(const struct gt_job *job, struct gt_prog *out, struct gt_err *err)
{
	const struct gt_space *s = job->space;
	if (job->at.ndata == 1)
		return gt_strategy_single.schedule(job, out, err);
	struct gt_emit e;
	gt_emit_begin(&e, job, err);
	GT_TRY(gt_replicas_passes(&e, &(struct gt_passes){.reduce = gt_replicas_sum}));
	if (job->update) {
		gt_emit_join(&e, 1, 0);
		gt_emit_check(&e); /* on every rank, which must all go the same way */
		for (int i = 0; i < job->update->nupdates && updates(job); i++)
			gt_emit_step(&e, (struct gt_step){.kind = GT_STEP_UPDATE, .micro = job->nunits - 1, .call = job->update->update[i]});
		gt_emit_join(&e, 0, 1);
		for (int b = 0; b < s->nbuckets && s->bucket[b].learned && !s->cut.common; b++) {
			replicate(&e, b, GT_A_PARAM);
			if (s->work != s->master)
				replicate(&e, b, GT_A_WORK);
		}
		gt_emit_join(&e, 1, 0);
		if (s->cut.common)
			gt_emit_barrier(&e, GT_GROUP_DATA, "parameters");
	}
	return gt_emit_end(&e, out);
}

const struct gt_strategy gt_strategy_dp = {.name = "dp", .place = place, .cut = cut, .schedule = schedule};
