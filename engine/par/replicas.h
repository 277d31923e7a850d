/* Inside the room: what dp, ddp and zero share, whose ranks have the whole model each and other samples. */
#ifndef GT_PAR_REPLICAS_H
#define GT_PAR_REPLICAS_H

#include "par/emit.h"

/* Buckets as parallel.bucket_mb has them, the first one 1 MiB as torch's. */
struct gt_shard_spec gt_replicas_shard_spec(const struct gt_conf *c);

/* The same, and every rank of at's has its shard of each for the optimizer's state. */
void gt_replicas_shard(const struct gt_conf *c, const struct gt_place_of_rank *at, struct gt_shard_spec *out);
/* Whether an optimizer needs whole matrices (muon), of which a rank would have a part; or the norm of all gradients, whose last bits shall not
 * depend on how they are cut. */
bool gt_replicas_whole(const struct gt_conf *c);
bool gt_replicas_muon(const struct gt_conf *c);

/* Joins a bucket's gradients of all ranks that have the same parameters. name: for messages. */
typedef void gt_reduce(struct gt_emit *e, int bucket, int unit, const char *name);

/* What happens between the calls of the forward and backward passes. */
struct gt_passes {
	gt_reduce *reduce; /* as soon as unit `unit` has finished a bucket's gradients, in the order of the buckets */
	bool every;    /* behind each unit; else behind the last one only, and the units before it are added up by the kernels */
	void (*fetch)(struct gt_emit *e, const struct gt_gather_span *stay); /* before its first call; NULL: parameters are whole */
};

/* Two of them, beside the kernels: every rank gets the sum; or the sum of its shard. */
gt_reduce gt_replicas_sum, gt_replicas_scatter;
/* Calls one, with a name. */
void gt_replicas_reduce(struct gt_emit *e, gt_reduce *how, int bucket, int unit);

/* Whole buckets of PARAM or WORK from the shards of all ranks, in place `place`. */
void gt_replicas_gather(struct gt_emit *e, int bucket, enum gt_arena_id a, int place, int stream);
/* The update, behind the CHECK: of everything; or, with sharded state, of this rank's shards, and then every rank has all parameters (but
 * with cut.params). */
void gt_replicas_update(struct gt_emit *e);

/* Zeroes the scalars, then forward and backward of every unit. A rank without samples in a unit takes part with gradients of zero. */
enum gt_code gt_replicas_passes(struct gt_emit *e, const struct gt_passes *how);

/* A whole list in which gradients are summed on all ranks and rank 0 alone makes the update: dp's; and of ddp and zero where gt_plan_factors
 * leaves little of it. Its parameters are replicated, unless all ranks have them in common. */
enum gt_code gt_replicas_rank0_update(const struct gt_job *job, struct gt_prog *out, struct gt_err *err);

#endif
