/* Optimizer steps for kernels that compute a gradient and apply it at once (linear.dw+update). They use the same loops as the optimizer's
 * own kernel, so results have the same bits. */
#ifndef GT_KERNELS_CPU_UPDATE_H
#define GT_KERNELS_CPU_UPDATE_H

#include "ew.h"

struct gt_cpu_apply {
	enum gt_opcode code; /* an element-wise update */
	struct gt_opt_f32 opt;
	bool nesterov;
	float *p, *state[GT_MAX_STATES]; /* the parameters; the optimizer's states in the order of its update operation; NULL: absent */
};

/* Prepares an optimizer step with the values in step_args, for gt_cpu_apply_run. attr has one segment. scalars may be NULL. state holds the
 * states that exist, in order and without gaps. */
struct gt_cpu_apply gt_cpu_apply_make(enum gt_opcode code, const struct gt_attr_update *attr, const struct gt_step_args *step_args,
                                      const struct gt_scalars *scalars, float *p, void *const *state);

/* Applies the gradients g[0, n) to the parameters p[at, at + n). ctx points to a struct gt_cpu_apply. */
void gt_cpu_apply_run(const void *ctx, const float *g, int64_t at, int64_t n);

#endif
