/* Internal to engine/par: what the data-parallel modes dp, ddp and zero share (pipe uses parts of it for its copies). Each rank has the
 * whole model and its own samples; gradients are reduced bucket by bucket while the backward pass still runs.
 *
 *	gt_replicas_passes(&e, &passes)   forward and backward pass of each unit, with reductions of finished buckets in between
 *	gt_emit_check(&e)                 are loss and gradients finite on all ranks?
 *	gt_replicas_update(&e)            the optimizer's update, of everything or of this rank's shards */
#ifndef GT_PAR_REPLICAS_H
#define GT_PAR_REPLICAS_H

#include "par/emit.h"

/* The position of a rank among `world` copies of the model. Succeeds always. */
enum gt_code gt_replicas_position(const struct gt_conf *c, int rank, int world, struct gt_rank_position *out, struct gt_err *err);

/* gt_strategy.shard of dp and ddp; zero and pipe add to it. This is the one place that chooses how replicas make an update:
 *
 *	mode   ranks that share memory (CPU, one host)        other ranks
 *	ddp    factored_update, sharded_update, all_reduce    all_reduce
 *	dp     factored_update, rank0_update                  rank0_update
 *	zero   factored_update (stages 1, 2), sharded_update  sharded_update
 *	pipe   copies of a pipeline: sharded_update with parallel.across = "zero", otherwise all_reduce
 *
 * The first possible method of a row is chosen. Buckets are of parallel.bucket_mb; the first has at most 1 MiB, as in torch. */
void gt_replicas_shard(const struct gt_conf *c, const struct gt_rank_position *at, const struct gt_offers *offers,
                       struct gt_shard_spec *out);
/* The config's word of the first optimizer that needs whole matrices ("muon"). NULL: there is none. */
const char *gt_replicas_matrix_optimizer(const struct gt_conf *c);
/* Appends the reduction of one bucket's gradients over the ranks that have the same parameters. name: for messages. */
typedef void gt_reduce(struct gt_emit *e, int bucket, int unit, const char *name);

/* What gt_replicas_passes inserts between the calls of the forward and backward passes. */
struct gt_pass_hooks {
	gt_reduce *reduce; /* called for each bucket, in ascending order, as soon as unit `unit` has finished its gradients */
	bool every;        /* true: reduce after every unit; false: only after the last one, because kernels add up the units' gradients */
	void (*fetch)(struct gt_emit *e, const struct gt_gather_span *span); /* gathers a bucket's parameters before the first call of the
	                                                                        span; NULL: parameters are whole */
};

/* Two reductions that may overlap with kernels: all_reduce (every rank gets the sum) and reduce_scatter (every rank gets the sum of its
 * shard). */
gt_reduce gt_replicas_sum, gt_replicas_scatter;
/* Calls a reduction, with a name of the form "gradients 2/5". */
void gt_replicas_reduce(struct gt_emit *e, gt_reduce *how, int bucket, int unit);

/* Gathers a whole bucket of PARAM or WORK from the shards of all ranks. place: the gather slot that receives it if the arena is sharded. */
void gt_replicas_gather(struct gt_emit *e, int bucket, enum gt_arena_id a, int place, int stream);
/* Appends the optimizer's update, after the CHECK. Without sharded state it updates everything. With sharded state it updates this rank's
 * shards. Then every rank gathers the parameters; if the ranks share parameters, a barrier replaces the gathers; if parameters are sharded,
 * gt_pass_hooks.fetch gathers them later. */
void gt_replicas_update(struct gt_emit *e);

/* Appends a step that sets the scalars to 0, then the forward and backward pass of every unit. A rank without samples in a unit takes part
 * in all communication, with gradients of zero. */
enum gt_code gt_replicas_passes(struct gt_emit *e, const struct gt_pass_hooks *how);

/* Makes a whole program in which gradients are summed on all ranks and rank 0 alone makes the update. dp uses it; ddp and zero use it if
 * gt_plan_factors leaves little of the update. Afterwards rank 0 broadcasts its parameters, unless the ranks share them. */
enum gt_code gt_replicas_rank0_update(const struct gt_job *job, struct gt_prog *out, struct gt_err *err);

#endif
