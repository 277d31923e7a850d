/* Builds programs of data parallelism: forward and backward passes with reductions in between, and the update. */
#include "plan/replicas.h"
#include "plan/gradient_compression.h"

#define FIRST_BYTES (1 << 20)

enum gt_code gt_replicas_position(const struct gt_conf *c, int rank, int world, struct gt_rank_position *out, struct gt_err *err)
{
	(void)c, (void)err;
	*out = (struct gt_rank_position){.rank = rank, .world = world, .data = rank, .ndata = world, .npipe = 1};
	return GT_OK;
}

const char *gt_replicas_whole_optimizer(const struct gt_conf *c)
{
	for (int i = -1; i < c->train.ngroups; i++) {
		const struct gt_optimizer_row *row = &gt_optimizer_rows[(i < 0 ? &c->train.optimizer : &c->train.group[i].optimizer)->type];
		if (gt_update_row(row->update)->whole)
			return row->word;
	}
	return NULL;
}

bool gt_replicas_factors_pay(const struct gt_offers *offers)
{
	return offers->shared_memory && offers->factors_pay;
}

int64_t gt_replicas_least_micro(const struct gt_conf *c, int64_t ranks)
{
	return c->reproducible == GT_REPRO_WORLD && c->parallel.shards > ranks ? c->parallel.shards : ranks;
}

void gt_replicas_shard(const struct gt_conf *c, const struct gt_rank_position *at, const struct gt_offers *offers,
                       struct gt_shard_spec *out)
{
	int64_t bytes = (int64_t)(c->parallel.bucket_mb * (1 << 20));
	bool compressed = c->parallel.compress != GT_COMPRESS_NONE;
	struct gt_offers none = {0}; /* ranks that share memory also sum compressed gradients, so that the result is that of several hosts */
	if (at->ndata == 1)
		return;
	offers = compressed ? &none : offers;
	*out = (struct gt_shard_spec){.bucket_bytes = bytes,
	                              .first_bytes = bytes < FIRST_BYTES ? bytes : FIRST_BYTES,
	                              .rank = at->data,
	                              .compressed = compressed,
	                              .sync = gt_strategy_of(c->parallel.mode)->sync(c, offers)};
	if (out->sync == GT_SYNC_SHARDED_UPDATE) {
		out->shards = at->ndata;
		out->sharding = GT_SHARD_STATE;
	}
	out->shared_params = offers->shared_memory && out->sync != GT_SYNC_ALL_REDUCE;
}

void gt_replicas_sum(struct gt_emit *e, int bucket, int unit, const char *name)
{
	const struct gt_space *s = e->job->space;
	struct gt_range r = gt_space_bucket(s, GT_A_GRAD, bucket, 0);
	size_t count = (size_t)(s->shards.bucket[bucket].end - s->shards.bucket[bucket].begin);
	gt_emit_stream_wait(e, 0, 1);
	if (s->shards.spec.compressed) {
		gt_emit_compressed(e, bucket, unit, GT_COLL_ALL_REDUCE, name);
		return;
	}
	gt_emit_collective(e, &(struct gt_collective){GT_COLL_ALL_REDUCE, GT_GROUP_DATA, r, r, count, s->layout.master, name}, 1);
}

void gt_replicas_scatter(struct gt_emit *e, int bucket, int unit, const char *name)
{
	const struct gt_space *s = e->job->space;
	gt_emit_stream_wait(e, 0, 1);
	if (s->shards.spec.compressed) {
		gt_emit_compressed(e, bucket, unit, GT_COLL_REDUCE_SCATTER, name);
		return;
	}
	gt_emit_collective(e,
	                   &(struct gt_collective){GT_COLL_REDUCE_SCATTER, GT_GROUP_DATA, gt_space_bucket(s, GT_A_GRAD, bucket, 0),
	                                           gt_space_own_shard(s, GT_A_GRAD, bucket), (size_t)gt_space_shard(s, bucket),
	                                           s->layout.master, name},
	                   1);
}

bool gt_replicas_trains(const struct gt_job *job, int b)
{
	return job->space->shards.bucket[b].trainable && job->update && !(job->update->idle && job->update->idle[b]);
}

/* Counts those of the first n buckets in which this program trains a parameter; only these buckets are reduced. */
static int count_trained(const struct gt_job *job, int n)
{
	int k = 0;
	for (int b = 0; b < n; b++)
		k += gt_replicas_trains(job, b);
	return k;
}

void gt_replicas_reduce(struct gt_emit *e, gt_reduce *how, int b, int unit)
{
	int all = e->job->space->shards.nbuckets;
	how(e, b, unit, gt_arena_printf(e->job->arena, "gradients %d/%d", count_trained(e->job, b + 1), count_trained(e->job, all)));
}

void gt_replicas_gather(struct gt_emit *e, int b, enum gt_arena_id a, int place, int stream)
{
	const struct gt_space *s = e->job->space;
	gt_emit_collective(e, &(struct gt_collective){GT_COLL_ALL_GATHER, GT_GROUP_DATA, gt_space_own_shard(s, a, b),
	                                              gt_space_bucket(s, a, b, place), (size_t)gt_space_shard(s, b),
	                                              a == GT_A_WORK ? s->layout.work : s->layout.master,
	                                              a == GT_A_WORK ? "16-bit weights" : "parameters"}, stream);
}

static void append_update(struct gt_emit *e, int i)
{
	gt_emit_step(e, (struct gt_step){.kind = GT_STEP_UPDATE, .micro = e->job->nunits - 1, .call = e->job->update->update[i]});
}

void gt_replicas_update(struct gt_emit *e)
{
	const struct gt_space *s = e->job->space;
	const struct gt_update *u = e->job->update;
	if (!gt_space_sharded(s, GT_A_STATE)) {
		for (int i = 0; i < u->nupdates; i++)
			append_update(e, i);
		return;
	}
	for (int b = 0; b < s->shards.nbuckets; b++) {
		if (!s->shards.bucket[b].trainable)
			continue;
		for (int i = 0; i < u->nupdates; i++)
			if (u->bucket[i] == b)
				append_update(e, i);
		if (gt_space_sharded(s, GT_A_PARAM) || s->shards.spec.shared_params || !gt_replicas_trains(e->job, b))
			continue;
		gt_emit_stream_wait(e, 0, 1);
		gt_replicas_gather(e, b, GT_A_PARAM, 0, 1);
		if (s->layout.work != s->layout.master)
			gt_replicas_gather(e, b, GT_A_WORK, 0, 1);
	}
	if (s->shards.spec.shared_params)
		gt_emit_barrier(e, GT_GROUP_DATA, "parameters");
	gt_emit_stream_wait(e, 1, 0);
}

/* Appends the calls of plan p of a rank without samples, starting at call *at, up to and including the next communication. If all is true,
 * appends all remaining calls. */
static void append_idle_calls(struct gt_emit *e, int unit, struct gt_plan *p, int *at, bool all)
{
	while (p && *at < p->ncalls) {
		struct gt_call *c = &p->call[(*at)++];
		gt_emit_launch(e, unit, c);
		if (c->comm && !all)
			return;
	}
}

/* Appends the step that sets the gradients of bucket b to 0 on a rank without samples, before they are reduced. */
static void clear_bucket(struct gt_emit *e, int b)
{
	const struct gt_space *s = e->job->space;
	gt_emit_step(e, (struct gt_step){.kind = GT_STEP_CLEAR, .range = gt_space_bucket(s, GT_A_GRAD, b, 0),
	                                 .bytes = gt_space_element(s, GT_A_GRAD, s->shards.bucket[b].end - s->shards.bucket[b].begin).offset});
}

/* Appends the reduction of bucket b. If the bucket is not trained, a rank that keeps only its shard of gradients may still hold gradients
 * of an earlier phase of the run. They are set to 0, because the sum of squares would include them. */
static void reduce_bucket(struct gt_emit *e, const struct gt_pass_hooks *how, int b, int unit)
{
	const struct gt_space *s = e->job->space;
	if (gt_replicas_trains(e->job, b))
		gt_replicas_reduce(e, how->reduce, b, unit);
	else if (gt_space_sharded(s, GT_A_GRAD) && unit == 0)
		gt_emit_step(e, (struct gt_step){.kind = GT_STEP_CLEAR, .range = gt_space_own_shard(s, GT_A_GRAD, b),
		                                 .bytes = gt_space_element(s, GT_A_GRAD, gt_space_shard(s, b)).offset});
}

/* Returns the number of buckets whose parameters have gradients in any phase of the run. These are the first buckets. */
static int count_trainable(const struct gt_space *s)
{
	int n = 0;
	while (n < s->shards.nbuckets && s->shards.bucket[n].trainable)
		n++;
	return n;
}

/* Appends a unit's calls and the communication between them: gathers of parameters before a call, reductions of buckets after it. On a rank
 * without samples (there = false), appends only the communication, in the order of the calls of job->like, which is the same in every
 * plan. */
static enum gt_code append_pass(struct gt_emit *e, const struct gt_pass_hooks *how, int unit, bool reduces)
{
	const struct gt_job *job = e->job;
	struct gt_plan *own = job->unit[unit].plan;
	bool there = own && own->graph->batch > 0, sums = job->unit[unit].carry > 0;
	struct gt_plan *p = there ? own : job->like;
	int n = reduces ? count_trainable(job->space) : 0, b = 0, span = 0, idle = 0, *ready;
	GT_NEW(ready, job->arena, job->space->shards.nbuckets + 1, e->err);
	if (n)
		gt_emit_bucket_ready(p, ready);
	gt_emit_clear(e, unit);
	if (there)
		gt_emit_load(e, unit);
	for (int i = 0; i < p->ncalls; i++) {
		for (; how->fetch && span < p->nspans && p->span[span].first == i; span++)
			how->fetch(e, &p->span[span]);
		if (there && !p->call[i].fused_update)
			gt_emit_launch(e, unit, &p->call[i]);
		else if (there)
			continue;
		else if (p->call[i].comm)
			append_idle_calls(e, unit, own, &idle, false);
		for (; !sums && b < n && ready[b] <= i; b++) {
			if (!there && gt_space_sharded(job->space, GT_A_GRAD) && gt_replicas_trains(job, b))
				clear_bucket(e, b);
			reduce_bucket(e, how, b, unit);
		}
	}
	if (!there)
		append_idle_calls(e, unit, own, &idle, true);
	gt_emit_sum_levels(e, unit);
	for (; b < n; b++)
		reduce_bucket(e, how, b, unit);
	return GT_OK;
}

enum gt_code gt_replicas_passes(struct gt_emit *e, const struct gt_pass_hooks *how)
{
	const struct gt_job *job = e->job;
	if (job->update)
		gt_emit_zero(e);
	for (int i = 0; i < job->nunits; i++)
		GT_TRY(append_pass(e, how, i, job->update && (how->every || i == job->nunits - 1)));
	return GT_OK;
}

/* Appends the broadcast of bucket b of arena a from rank 0 to the other ranks. */
static void broadcast_bucket(struct gt_emit *e, int b, enum gt_arena_id a)
{
	const struct gt_space *s = e->job->space;
	struct gt_range r = gt_space_bucket(s, a, b, 0);
	bool work = a == GT_A_WORK;
	gt_emit_collective(e,
	                   &(struct gt_collective){GT_COLL_BROADCAST, GT_GROUP_DATA, r, r,
	                                           (size_t)(s->shards.bucket[b].end - s->shards.bucket[b].begin),
	                                           work ? s->layout.work : s->layout.master, work ? "16-bit weights" : "parameters"},
	                   1);
}

enum gt_code gt_replicas_rank0_update(const struct gt_job *job, struct gt_prog *out, struct gt_err *err)
{
	const struct gt_space *s = job->space;
	struct gt_emit e;
	gt_emit_begin(&e, job, err);
	GT_TRY(gt_replicas_passes(&e, &(struct gt_pass_hooks){.reduce = gt_replicas_sum}));
	if (job->update) {
		gt_emit_stream_wait(&e, 1, 0);
		gt_emit_check(&e); /* all ranks make the check, so that all of them either make or skip the update */
		for (int i = 0; i < job->update->nupdates && job->at.data == 0; i++)
			append_update(&e, i);
		gt_emit_stream_wait(&e, 0, 1);
		for (int b = 0; b < s->shards.nbuckets && !s->shards.spec.shared_params; b++) {
			if (!gt_replicas_trains(job, b))
				continue;
			broadcast_bucket(&e, b, GT_A_PARAM);
			if (s->layout.work != s->layout.master)
				broadcast_bucket(&e, b, GT_A_WORK);
		}
		gt_emit_stream_wait(&e, 1, 0);
		if (s->shards.spec.shared_params)
			gt_emit_barrier(&e, GT_GROUP_DATA, "parameters");
	}
	return gt_emit_end(&e, out);
}
