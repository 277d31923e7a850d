/* Mode "zero": data parallelism as in mode ddp, but a rank keeps only a part of the optimizer state, gradients and parameters. Every bucket
 * is divided into equal shards, one for each rank. Rank r keeps only shard r of the optimizer state (stage 1), of the gradients too (stage
 * 2), and of the parameters too (stage 3) (Rajbhandari et al. 2020, "ZeRO"; stage 1 is torch's ZeroRedundancyOptimizer). The results equal
 * those of mode ddp. What each stage does:
 *   1: Gradients are reduced to the rank that owns the shard. It updates its shard of the parameters; then all ranks gather the parameters,
 *      unless they share them.
 *   2: In every micro-batch, a bucket's gradients are reduced into the owners' shards as soon as they are finished, and the next bucket
 *      reuses their memory.
 *   3: A bucket's parameters are gathered before each use, in the forward and in the backward pass; no gather follows the update. */
#include "plan/replicas.h"

static enum gt_code find_position(const struct gt_conf *c, int rank, int world, struct gt_rank_position *out, struct gt_err *err)
{
	const char *whole = gt_replicas_whole_optimizer(c);
	if (world > 1 && whole)
		return gt_conf_refuse(c, "parallel.mode", err,
		                      "parallel.mode = \"zero\" and the optimizer \"%s\" cannot be combined: this optimizer needs whole "
		                      "parameters, but each rank would have only a part of them; use parallel.mode = \"ddp\"", whole);
	return gt_replicas_position(c, rank, world, out, err);
}

static void shard_arenas(const struct gt_conf *c, const struct gt_rank_position *at, const struct gt_offers *offers,
                         struct gt_shard_spec *out)
{
	gt_replicas_shard(c, at, offers, out);
	if (out->sync != GT_SYNC_SHARDED_UPDATE)
		return;
	/* With reproducible = "world", gradients are not sharded: the summation tree needs whole gradients before they are reduced. */
	bool grads = c->parallel.stage >= 2 && c->reproducible != GT_REPRO_WORLD, params = c->parallel.stage >= 3;
	out->sharding = grads ? (params ? GT_SHARD_ALL : GT_SHARD_STATE_GRADS) : params ? GT_SHARD_STATE_PARAMS : GT_SHARD_STATE;
	out->shared_params &= !params;
}

/* In stage 3, no rank has whole parameters, so the ranks cannot share them. */
static enum gt_sync_method choose_sync(const struct gt_conf *c, const struct gt_offers *offers)
{
	return gt_replicas_factors_pay(offers) && c->parallel.stage < 3 ? GT_SYNC_FACTORED_UPDATE : GT_SYNC_SHARDED_UPDATE;
}

static size_t shard_elements(const struct gt_space *s, int b)
{
	return (size_t)gt_space_shard(s, b);
}

/* Appends steps that set to 0 the elements of bucket b for which the unit makes no gradients: padding, and parameters that are frozen in
 * this phase of the run. All buckets use the same memory, so these elements still have values of other buckets or earlier phases, which the
 * sum of squares would include. */
static void clear_gaps(struct gt_emit *e, int b, int unit)
{
	const struct gt_space *s = e->job->space;
	const struct gt_plan *own = e->job->unit[unit].plan;
	const struct gt_graph *g = (own && own->graph->batch > 0 ? own : e->job->like)->graph;
	const struct gt_bucket *k = &s->shards.bucket[b];
	if ((s->shards.nbuckets == 1 || !s->shards.bucket[1].trainable) && !e->job->update->nstale)
		return;
	for (int64_t at = k->begin, next, after; at < k->end; at = after) {
		next = after = k->end;
		for (int i = 0; i < s->layout.first->nparams; i++) {
			const struct gt_param_slot *p = &s->layout.param[i];
			if (s->layout.first->params[i].cls != GT_PARAM_BUFFER && g->params[i].grad >= 0 && p->offset >= at && p->offset < next) {
				next = p->offset;
				after = p->offset + p->count;
			}
		}
		struct gt_range gap = gt_space_bucket(s, GT_A_GRAD, b, 0);
		gap.offset += gt_space_element(s, GT_A_GRAD, at - k->begin).offset;
		if (next > at)
			gt_emit_step(e, (struct gt_step){.kind = GT_STEP_CLEAR,
			                                 .range = gap,
			                                 .bytes = gt_space_element(s, GT_A_GRAD, next - at).offset});
	}
}

/* The reduction (gt_reduce) of ZeRO stages 2 and 3. It runs on the stream of the kernels, because the next bucket overwrites the memory of
 * this one. The sum of unit 0 is written directly into the shard that the rank keeps. The sum of a later unit is written to this
 * rank's part of the bucket and then added to that shard. */
static void reduce_to_owners(struct gt_emit *e, int b, int unit, const char *what)
{
	const struct gt_space *s = e->job->space;
	struct gt_range whole = gt_space_bucket(s, GT_A_GRAD, b, 0), own = gt_space_own_shard(s, GT_A_GRAD, b), part = whole;
	part.offset += gt_space_element(s, GT_A_GRAD, s->shards.spec.rank * gt_space_shard(s, b)).offset;
	clear_gaps(e, b, unit);
	gt_emit_collective(e,
	                   &(struct gt_collective){GT_COLL_REDUCE_SCATTER, GT_GROUP_DATA, whole, unit ? part : own, shard_elements(s, b),
	                                           s->layout.master, what},
	                   0);
	if (unit)
		gt_emit_step(e, (struct gt_step){.kind = GT_STEP_LAUNCH, .micro = unit, .call = &e->job->update->add[b]});
}

/* Appends the gathers of a bucket's parameters, and of their 16-bit copies if there are any. */
static void gather_params(struct gt_emit *e, const struct gt_gather_span *span)
{
	gt_replicas_gather(e, span->bucket, GT_A_PARAM, span->slot, 0);
	if (e->job->space->layout.work != e->job->space->layout.master)
		gt_replicas_gather(e, span->bucket, GT_A_WORK, span->slot, 0);
}

static enum gt_code make_steps(const struct gt_job *job, struct gt_prog *out, struct gt_err *err)
{
	const struct gt_space *s = job->space;
	if (job->at.ndata == 1)
		return gt_strategy_single.schedule(job, out, err);
	if (gt_space_factored(job->space)) /* kernels on all ranks make the updates of most weights, and rank 0 updates the other parameters */
		return gt_replicas_rank0_update(job, out, err);
	struct gt_emit e;
	gt_emit_begin(&e, job, err);
	GT_TRY(gt_replicas_passes(&e, &(struct gt_pass_hooks){.reduce = gt_space_sharded(s, GT_A_GRAD) ? reduce_to_owners : gt_replicas_scatter,
	                                                  .every = gt_space_sharded(s, GT_A_GRAD),
	                                                  .fetch = gt_space_sharded(s, GT_A_PARAM) ? gather_params : NULL}));
	if (job->update) {
		gt_emit_stream_wait(&e, 1, 0);
		gt_emit_check(&e);
		gt_replicas_update(&e);
	}
	return gt_emit_end(&e, out);
}

const struct gt_strategy gt_strategy_zero = {GT_STRATEGY_MODE(zero),
                                             .position = find_position,
                                             .shard = shard_arenas,
                                             .sync = choose_sync,
                                             .least_micro = gt_replicas_least_micro,
                                             .schedule = make_steps};
