/* A parallel mode is a pure function from plans to the list of steps of one rank. One const row a mode; nothing else in the engine
 * knows which mode runs. */
#ifndef GT_PAR_STRATEGY_H
#define GT_PAR_STRATEGY_H

#include "plan/step.h"

struct gt_strategy {
	const char *name; /* parallel.mode */
	/* unit: the plans of the micro-batches of one optimizer step on this rank, in order. update NULL: an evaluation. */
	enum gt_code (*schedule)(struct gt_arena *a, struct gt_plan *const *unit, int nunits, const struct gt_update *update, int rank, int world,
	                         struct gt_prog *out, struct gt_err *err);
};

extern const struct gt_strategy gt_strategy_single;

/* NULL: this build has no such mode. */
const struct gt_strategy *gt_strategy_find(const char *name);

#endif
