/* Walks a program. Knows steps, kernels and buffers; no strategy, no model, no optimizer. */
#ifndef GT_RUN_EXEC_H
#define GT_RUN_EXEC_H

#include "plan/step.h"
#include "run/loader.h"

struct gt_exec {
	const struct gt_backend *be;
	struct gt_dev *dev;
	struct gt_space *space;
	double *times;  /* bench: seconds added per step of the program; NULL: not timed */
};

/* Executes p. dyn: one entry a micro-batch; sample0 and epoch of each are filled in from the loader. GT_EDIVERGED: a CHECK failed;
 * nothing was updated. */
enum gt_code gt_exec_run(struct gt_exec *x, const struct gt_prog *p, struct gt_loader *l, struct gt_dyn *dyn, struct gt_err *err);

/* The device's metrics, copied; and zeroed when clear. */
enum gt_code gt_exec_metrics(struct gt_exec *x, bool clear, struct gt_metrics *out, struct gt_err *err);

/* After GT_EDIVERGED: runs the program again up to the first tensor that holds NaN or infinity and says which: layer, operation and,
 * for activations, the sample. Always returns GT_EDIVERGED with the sentence in err. */
enum gt_code gt_exec_diagnose(struct gt_exec *x, const struct gt_prog *p, struct gt_loader *l, struct gt_dyn *dyn, int64_t step, struct gt_err *err);

#endif
