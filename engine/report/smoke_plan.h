/* The plan of a smoke test, which trains the first steps of a run on a part of its data. Model, optimizer, type of schedule, precision,
 * augmentation and parallel mode are taken from the config. Only the numbers of steps and samples and, on a CPU, the batch are reduced.
 *
 *   samples of an epoch      |<- batch ->|<- batch ->|<- batch ->|
 *   epoch 0, steps             1           2           3
 *   epoch 1, steps             4           5           6
 *                                          ^ a checkpoint follows step 4: inside an epoch */
#ifndef GT_REPORT_SMOKE_PLAN_H
#define GT_REPORT_SMOKE_PLAN_H

#include "conf/conf.h"
#include "gtrain.h"

#define GT_SMOKE_STEPS 6  /* number of optimizer steps of the uninterrupted run */
#define GT_SMOKE_SAVE 4   /* optimizer step after which the resumed run continues */
#define GT_SMOKE_EPOCH 3  /* number of full batches in an epoch of the smoke test */

#define GT_SMOKE_SETS 29
struct gt_smoke_plan {
	int ranks;
	const char *sets[GT_SMOKE_SETS]; /* [nsets] changes of the config in the form of --set, for example "data.batch=16"; in the arena */
	int nsets;
};

/* Fails if o has an option that a smoke test does not support. */
enum gt_code gt_smoke_check(const struct gt_run_opts *o, struct gt_err *err);
/* Plans the smoke test: fills *out, and the members of `shown` that describe it. Fails if planning a run of the config fails. Replaces
 * missing data: images by synthetic images; rows of a table whose columns the config lists, and texts, by generated files in the folder
 * dir, which it creates; weights of model.pretrained by initial weights. */
enum gt_code gt_smoke_plan(struct gt_conf *c, const struct gt_run_opts *o, const char *dir, struct gt_arena *a, struct gt_smoke_plan *out,
                           struct gt_smoke *shown, struct gt_err *err);

#endif
