/* As ddp, but of the optimizer's state every rank has its part only: rank r the r-th of equal parts of every bucket (ZeRO stage 1;
 * torch.distributed.optim.ZeroRedundancyOptimizer). Gradients are reduced to the rank that owns them, which updates its part of the parameters;
 * then everybody gathers the parameters. The same numbers as ddp's. */
#include "par/replicas.h"

static enum gt_code place(const struct gt_conf *c, int rank, int world, struct gt_place_of_rank *out, struct gt_err *err)
{
	if (c->parallel.stage > 1)
		return gt_fail(err, GT_ECONFIG, "%s: parallel.stage = %d: this version shards the optimizer's state only (1)", c->path, (int)c->parallel.stage);
	return gt_strategy_ddp.place(c, rank, world, out, err);
}

static void cut(const struct gt_conf *c, const struct gt_place_of_rank *at, struct gt_cutting *out)
{
	if (at->ndata == 1)
		return;
	*out = gt_replicas_cut(c);
	out->shards = at->ndata;
	out->shard = at->data;
	out->state = true;
}

static size_t shard_of(const struct gt_space *s, int b)
{
	return (size_t)(s->bucket[b].end - s->bucket[b].begin) / (size_t)s->cut.shards;
}

static int64_t own(const struct gt_space *s, int b)
{
	return s->bucket[b].begin + s->cut.shard * (int64_t)shard_of(s, b);
}

static void reduce(struct gt_emit *e, int b, const char *what)
{
	const struct gt_space *s = e->job->space;
	gt_emit_collective(e, &(struct gt_collective){GT_COLL_REDUCE_SCATTER, GT_GROUP_DATA, gt_emit_range(s, GT_A_GRAD, s->bucket[b].begin),
	                                              gt_emit_range(s, GT_A_GRAD, own(s, b)), shard_of(s, b), s->master, what}, 1);
}

static void gather(struct gt_emit *e, int b, enum gt_arena_id a, enum gt_dtype type, const char *what)
{
	const struct gt_space *s = e->job->space;
	gt_emit_collective(e, &(struct gt_collective){GT_COLL_ALL_GATHER, GT_GROUP_DATA, gt_emit_range(s, a, own(s, b)), gt_emit_range(s, a, s->bucket[b].begin),
	                                              shard_of(s, b), type, what}, 1);
}

static enum gt_code schedule(const struct gt_job *job, struct gt_prog *out, struct gt_err *err)
{
	const struct gt_update *u = job->update;
	const struct gt_space *s = job->space;
	if (job->at.ndata == 1)
		return gt_strategy_single.schedule(job, out, err);
	struct gt_emit e;
	gt_emit_begin(&e, job, err);
	GT_TRY(gt_replicas_passes(&e, reduce));
	if (u) {
		gt_emit_join(&e, 1, 0);
		gt_emit_check(&e);
		for (int b = 0; b < s->nbuckets && s->bucket[b].learned; b++) {
			for (int i = 0; i < u->nupdates; i++)
				if (u->bucket[i] == b)
					gt_emit_step(&e, (struct gt_step){.kind = GT_STEP_UPDATE, .micro = job->nunits - 1, .call = u->update[i]});
			gt_emit_join(&e, 0, 1);
			gather(&e, b, GT_A_PARAM, s->master, "parameters");
			if (s->work != s->master)
				gather(&e, b, GT_A_WORK, s->work, "16-bit weights");
		}
		gt_emit_join(&e, 1, 0);
	}
	return gt_emit_end(&e, out);
}

const struct gt_strategy gt_strategy_zero = {.name = "zero", .place = place, .cut = cut, .schedule = schedule};
