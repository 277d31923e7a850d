#include "plan/gradient_compression.h"

#define STREAM 1 /* the stream of the collectives, so that the conversions do not wait for the backward pass */

struct gt_range gt_wire_result(const struct gt_space *s, int bucket)
{
	int64_t before = gt_space_sharded(s, GT_A_STATE) ? s->shards.spec.rank * gt_space_shard(s, bucket) : 0;
	return gt_space_element(s, GT_A_WIRE, before);
}

void gt_emit_compressed(struct gt_emit *e, int bucket, int unit, enum gt_coll_kind kind, const char *name)
{
	const struct gt_space *s = e->job->space;
	struct gt_compression *c = &e->job->update->compress[bucket];
	const struct gt_bucket *b = &s->shards.bucket[bucket];
	bool scatters = kind == GT_COLL_REDUCE_SCATTER;
	struct gt_step launch = {.kind = GT_STEP_LAUNCH, .micro = unit, .stream = e->job->queues ? STREAM : 0};
	for (int i = 0; i < GT_PACK_CALLS; i++) {
		launch.call = &c->pack[i];
		gt_emit_step(e, launch);
	}
	gt_emit_collective(e,
	                   &(struct gt_collective){.kind = kind,
	                                           .group = GT_GROUP_DATA,
	                                           .from = {GT_A_WIRE, 0},
	                                           .to = gt_wire_result(s, bucket),
	                                           .count = (size_t)(scatters ? gt_space_shard(s, bucket) : b->end - b->begin),
	                                           .dtype = GT_BF16,
	                                           .what = name},
	                   STREAM);
	launch.call = &c->unpack;
	gt_emit_step(e, launch);
}
