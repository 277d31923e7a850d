/* What a smoke test trains: the first steps of a run, on a part of its data. The model, the optimizer, the schedule's form, the precision,
 * the augmentation and the parallel mode are the config's; reduced are only the number of steps, of samples and, on a CPU, the batch.
 *
 *   samples of an epoch      |<- batch ->|<- batch ->|<- batch ->|
 *   epoch 0, steps             1           2           3
 *   epoch 1, steps             4           5           6
 *                                          ^ a checkpoint lies behind step 4: inside an epoch */
#ifndef GT_RUN_SMOKE_PLAN_H
#define GT_RUN_SMOKE_PLAN_H

#include "conf/conf.h"
#include "gtrain.h"

#define GT_SMOKE_STEPS 6  /* of the uninterrupted run */
#define GT_SMOKE_SAVE 4   /* the resumed run starts behind this step */
#define GT_SMOKE_EPOCH 3  /* batches of an epoch */

#define GT_SMOKE_SETS 24
struct gt_smoke_plan {
	int ranks;
	const char *sets[GT_SMOKE_SETS]; /* "data.batch=16": what changes the config, for --set; in the arena */
	int nsets;
};

/* Fills the plan and those members of `shown` that describe it. Refuses what a run would refuse on paper, and options that a smoke test
 * cannot take. */
enum gt_code gt_smoke_plan(struct gt_conf *c, const struct gt_run_opts *o, struct gt_arena *a, struct gt_smoke_plan *out,
                           struct gt_smoke *shown, struct gt_err *err);

#endif
