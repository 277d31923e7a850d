/* One rank, one device: load, forward and backward of every micro-batch, then the update. */
#include "par/strategy.h"

static enum gt_code schedule(struct gt_arena *a, struct gt_plan *const *unit, int nunits, const struct gt_update *update, int rank, int world,
                             struct gt_prog *out, struct gt_err *err)
{
	int n = 1;
	(void)rank;
	if (world != 1)
		return gt_fail(err, GT_ECONFIG, "parallel.mode = \"single\" runs on one rank, not on %d", world);
	for (int i = 0; i < nunits; i++)
		n += 1 + unit[i]->ncalls;
	if (update)
		n += 3 + update->nupdates;
	*out = (struct gt_prog){.nmicro = nunits};
	GT_NEW(out->step, a, n, err);
	struct gt_step *s = out->step;
	if (update)
		*s++ = (struct gt_step){.kind = GT_STEP_ZERO};
	for (int i = 0; i < nunits; i++) {
		struct gt_plan *p = unit[i];
		out->samples += p->graph->batch / p->graph->views;
		*s++ = (struct gt_step){.kind = GT_STEP_LOAD, .micro = i, .plan = p};
		for (int j = 0; j < p->ncalls; j++)
			if (!p->call[j].early)
				*s++ = (struct gt_step){.kind = GT_STEP_LAUNCH, .micro = i, .plan = p, .call = &p->call[j]};
	}
	if (update) {
		if (update->sumsq)
			*s++ = (struct gt_step){.kind = GT_STEP_LAUNCH, .micro = nunits - 1, .call = update->sumsq};
		*s++ = (struct gt_step){.kind = GT_STEP_CHECK, .micro = nunits - 1, .call = update->check};
		for (int j = 0; j < unit[nunits - 1]->ncalls; j++)
			if (unit[nunits - 1]->call[j].early)
				*s++ = (struct gt_step){.kind = GT_STEP_LAUNCH, .micro = nunits - 1, .plan = unit[nunits - 1], .call = &unit[nunits - 1]->call[j]};
		for (int j = 0; j < update->nupdates; j++)
			*s++ = (struct gt_step){.kind = GT_STEP_UPDATE, .micro = nunits - 1, .call = update->update[j]};
	}
	out->n = (int)(s - out->step);
	return GT_OK;
}

const struct gt_strategy gt_strategy_single = {.name = "single", .schedule = schedule};
