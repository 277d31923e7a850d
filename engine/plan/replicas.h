/* Internal to engine/plan: functions that the data-parallel modes dp, ddp and zero share. Mode pipe uses some of them if there are several
 * copies of its pipeline. Each rank has the whole model and its own samples. Gradients are reduced over the ranks bucket by bucket while
 * the backward pass still runs.
 *
 *	gt_replicas_passes(&e, &passes)   forward and backward pass of each unit, with reductions of finished buckets in between
 *	gt_emit_check(&e)                 are loss and gradients finite on all ranks?
 *	gt_replicas_update(&e)            the optimizer's update, of everything or of this rank's shards */
#ifndef GT_PLAN_REPLICAS_H
#define GT_PLAN_REPLICAS_H

#include "plan/emit.h"

/* gt_strategy.position of dp and ddp: sets *out to the position of a rank in a world in which every rank has the whole model. It never
 * fails. */
enum gt_code gt_replicas_position(const struct gt_conf *c, int rank, int world, struct gt_rank_position *out, struct gt_err *err);

/* gt_strategy.shard of dp and ddp; the functions of zero and pipe call it too. gt_strategy.sync chooses the method by which the ranks with
 * the same parameters make an update (enum gt_sync_method): the first possible method in the mode's row:
 *
 *	mode   ranks that share memory (CPU, one host)        other ranks
 *	ddp    factored_update, sharded_update, all_reduce    all_reduce
 *	dp     factored_update, rank0_update                  rank0_update
 *	zero   factored_update (stages 1, 2), sharded_update  sharded_update
 *	pipe   copies of a pipeline: sharded_update with parallel.across = "zero", otherwise all_reduce
 *
 * The size of a bucket is parallel.bucket_mb; the first bucket has at most 1 MiB, as in torch. */
void gt_replicas_shard(const struct gt_conf *c, const struct gt_rank_position *at, const struct gt_offers *offers,
                       struct gt_shard_spec *out);
/* For gt_strategy.sync: returns whether GT_SYNC_FACTORED_UPDATE is possible and moves fewer bytes than the sum of gradients. */
bool gt_replicas_factors_pay(const struct gt_offers *offers);
/* gt_strategy.least_micro of a mode that divides a micro-batch into one part for each rank: one sample in each part and, with
 * reproducible = "world", in each virtual shard. */
int64_t gt_replicas_least_micro(const struct gt_conf *c, int64_t ranks);
/* Returns the name of the config's first optimizer that needs whole parameters, such as "muon"; NULL: no optimizer does. */
const char *gt_replicas_whole_optimizer(const struct gt_conf *c);
/* A function that appends the reduction of one bucket's gradients over the ranks that have the same parameters. unit: index of the unit
 * (struct gt_unit) that has just finished these gradients. name: text for messages. */
typedef void gt_reduce(struct gt_emit *e, int bucket, int unit, const char *name);

/* The communication that gt_replicas_passes inserts between the kernels of the forward and backward passes, as functions that append its
 * steps to the program. */
struct gt_pass_hooks {
	gt_reduce *reduce; /* appends the steps that reduce a bucket; called for each bucket with trained parameters, in ascending order, when
	                      its gradients are finished */
	bool every;        /* true: gradients are reduced in every unit (struct gt_unit); false: only in the last unit, because kernels add
	                      up the gradients of the units */
	/* Appends the gathers of a bucket's parameters; called before the first call that reads them (span->first). NULL: the parameters are
	 * not sharded, so nothing is gathered. */
	void (*fetch)(struct gt_emit *e, const struct gt_gather_span *span);
};

/* Two functions for gt_pass_hooks.reduce, whose reductions may overlap with kernels. gt_replicas_sum appends an all_reduce: every rank gets
 * the sum of the whole bucket. gt_replicas_scatter appends a reduce_scatter: every rank gets the sum of its own shard of the bucket. */
gt_reduce gt_replicas_sum, gt_replicas_scatter;
/* Calls `how` for a bucket, with a name of the form "gradients 2/5". */
void gt_replicas_reduce(struct gt_emit *e, gt_reduce *how, int bucket, int unit);

/* Returns whether the program of a job trains parameters of bucket b: their gradients are reduced, and the parameters change. */
bool gt_replicas_trains(const struct gt_job *job, int bucket);

/* Appends an all_gather that makes a whole bucket of arena a (PARAM or WORK) from the shards of all ranks. place: if the arena is sharded,
 * the index of the gather slot that receives the bucket. */
void gt_replicas_gather(struct gt_emit *e, int bucket, enum gt_arena_id a, int place, int stream);
/* Appends the optimizer's update, after the CHECK. Without sharded state it updates everything. With sharded state it updates this
 * rank's shards, and then every rank gathers the updated parameters. If the ranks share one copy of the parameters, a barrier replaces
 * the gathers. If the parameters are sharded, gt_pass_hooks.fetch gathers them when they are needed. */
void gt_replicas_update(struct gt_emit *e);

/* Appends the forward and backward pass of every unit, after a step that sets the scalars to 0 (not in an evaluation). A rank without
 * samples in a unit still takes part in all communication; its gradients are 0. */
enum gt_code gt_replicas_passes(struct gt_emit *e, const struct gt_pass_hooks *how);

/* Makes a whole program in which gradients are summed over all ranks and rank 0 alone makes the update. Then rank 0 broadcasts its
 * parameters, unless the ranks share them. Mode dp uses it. Modes ddp and zero use it with GT_SYNC_FACTORED_UPDATE: kernels on all ranks
 * then update the weights of linear layers, and rank 0 updates only the other parameters. */
enum gt_code gt_replicas_rank0_update(const struct gt_job *job, struct gt_prog *out, struct gt_err *err);

#endif
