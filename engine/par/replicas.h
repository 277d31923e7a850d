/* Inside the room: what dp, ddp and zero share, whose ranks have the whole model each and other samples. */
#ifndef GT_PAR_REPLICAS_H
#define GT_PAR_REPLICAS_H

#include "par/emit.h"

/* Buckets as parallel.bucket_mb has them, the first one 1 MiB as torch's. */
struct gt_cutting gt_replicas_cut(const struct gt_conf *c);

/* The same, and every rank of at's has its shard of each for the optimizer's state. */
void gt_replicas_shard(const struct gt_conf *c, const struct gt_place_of_rank *at, struct gt_cutting *out);
/* Whether an optimizer needs whole matrices (muon), of which a rank would have a part; or the norm of all gradients, whose last bits shall not
 * depend on how they are cut. */
bool gt_replicas_whole(const struct gt_conf *c);
bool gt_replicas_muon(const struct gt_conf *c);

/* What happens between the calls of the forward and backward passes. */
struct gt_passes {
	/* Joins a bucket's gradients of all ranks, as soon as unit `unit` has finished them, in the order of the buckets. name: for messages. */
	void (*reduce)(struct gt_emit *e, int bucket, int unit, const char *name);
	bool every;    /* behind each unit; else behind the last one only, and the units before it are added up by the kernels */
	void (*fetch)(struct gt_emit *e, const struct gt_stay *stay); /* before its first call; NULL: parameters are whole */
};

/* A reduce: gives every rank the sum, beside the kernels. */
void gt_replicas_sum(struct gt_emit *e, int bucket, int unit, const char *name);

/* Zeroes the scalars, then forward and backward of every unit. A rank without samples in a unit takes part with gradients of zero. */
enum gt_code gt_replicas_passes(struct gt_emit *e, const struct gt_passes *how);

/* A whole list in which gradients are summed on all ranks and rank 0 alone makes the update: dp's; and of ddp and zero where gt_plan_factors
 * leaves little of it. Its parameters are replicated, unless all ranks have them in common. */
enum gt_code gt_replicas_led(const struct gt_job *job, struct gt_prog *out, struct gt_err *err);

#endif
