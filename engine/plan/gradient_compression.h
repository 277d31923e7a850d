/* Internal to engine/plan: reductions of gradients that are sent in bf16, with error feedback (Seide et al. 2014, "1-bit SGD"; Vogels et
 * al. 2019, "PowerSGD"). The format is that of bf16_compress_hook of torch.distributed.algorithms.ddp_comm_hooks, which has no error
 * feedback. Each rank keeps the rounding errors of its last gradients in the arena RESIDUAL and adds them to its next gradients, so that
 * over several steps the sum of the sent gradients differs from the sum of the exact gradients only by the last rounding errors:
 *
 *	GRAD     += RESIDUAL            pack[0]
 *	WIRE      = bf16(GRAD)          pack[1]
 *	RESIDUAL  = GRAD - WIRE         pack[2]: RESIDUAL = WIRE; pack[3]: RESIDUAL *= -1; pack[4]: RESIDUAL += GRAD
 *	WIRE      = sum over the ranks  the collective, which adds in f32 and rounds once (comm.h; NCCL rounds each partial sum)
 *	GRAD      = f32(WIRE)           unpack
 *
 * WIRE has memory for one bucket. The steps of all buckets are in one stream, so the buckets use it one after the other. The sum is rounded
 * to bf16 too; this rounding error is the same on every rank and is not fed back. */
#ifndef GT_PLAN_GRADIENT_COMPRESSION_H
#define GT_PLAN_GRADIENT_COMPRESSION_H

#include "plan/emit.h"

/* Appends the steps that reduce a bucket's gradients in bf16. kind: GT_COLL_ALL_REDUCE, or GT_COLL_REDUCE_SCATTER, which leaves in GRAD the
 * sum of this rank's shard. unit and name as in gt_reduce. */
void gt_emit_compressed(struct gt_emit *e, int bucket, int unit, enum gt_coll_kind kind, const char *name);
/* Returns the range of the elements of WIRE that this rank receives for a bucket: the whole bucket, or this rank's shard of it. */
struct gt_range gt_wire_result(const struct gt_space *s, int bucket);

#endif
