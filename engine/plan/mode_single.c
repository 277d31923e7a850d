/* Mode "single": one rank, one device. The program loads each micro-batch, runs its forward and backward pass, and then makes the
 * update. */
#include "plan/emit.h"
#include "plan/replicas.h"

static enum gt_code find_position(const struct gt_conf *c, int rank, int world, struct gt_rank_position *out, struct gt_err *err)
{
	if (world != 1)
		return gt_conf_refuse(c, "parallel.mode", err, "parallel.mode = \"single\" and %d ranks cannot be combined; write parallel.mode = "
		                      "\"ddp\"",
		                      world);
	*out = (struct gt_rank_position){.rank = rank, .world = 1, .ndata = 1, .npipe = 1};
	return GT_OK;
}

static enum gt_code make_steps(const struct gt_job *job, struct gt_prog *out, struct gt_err *err)
{
	struct gt_emit e;
	gt_emit_begin(&e, job, err);
	if (job->update)
		gt_emit_zero(&e);
	for (int i = 0; i < job->nunits; i++) {
		gt_emit_unit(&e, i);
		gt_emit_sum_levels(&e, i);
	}
	if (job->update) {
		int last = job->nunits - 1;
		gt_emit_check(&e);
		for (int i = 0; i < job->update->nupdates; i++)
			gt_emit_step(&e, (struct gt_step){.kind = GT_STEP_UPDATE, .micro = last, .call = job->update->update[i]});
	}
	return gt_emit_end(&e, out);
}

const struct gt_strategy gt_strategy_single = {
    GT_STRATEGY_MODE(single), .position = find_position, .least_micro = gt_replicas_least_micro, .schedule = make_steps};
