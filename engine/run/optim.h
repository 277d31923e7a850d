/* From the config's optimizer to one kernel call over the flat arenas. */
#ifndef GT_RUN_OPTIM_H
#define GT_RUN_OPTIM_H

#include "conf/conf.h"
#include "plan/step.h"

#define GT_MAX_STATES 3
#define GT_SKIPS 64 /* fp16: so many steps skipped in a row are a divergence: the scale has fallen by 2^64, if it falls */

struct gt_optim {
	enum gt_opcode code;
	struct gt_attr_update attr;
	int nstates;
	const char *state[GT_MAX_STATES]; /* PyTorch's names: "momentum_buffer", "exp_avg", … */
	struct gt_call sumsq, check, update;
	struct gt_update steps; /* points at the calls */
};

/* What does not depend on the plan: operation, hyper-parameters, state slots. */
void gt_optim_init(struct gt_optim *o, const struct gt_conf_train *t);
/* The optimizer as gt_plan_early wants it, for a graph's parameters. */
enum gt_code gt_optim_apply(const struct gt_optim *o, const struct gt_conf_train *t, const struct gt_graph *g, struct gt_apply *out, struct gt_err *err);
/* After the first plan: segments of equal hyper-parameters, prepared calls. clip or finite checks read the sum of squares. */
enum gt_code gt_optim_prepare(struct gt_optim *o, const struct gt_conf_train *t, struct gt_space *s, bool deterministic, struct gt_err *err);
/* After gt_space_alloc: operand pointers. */
void gt_optim_bind(struct gt_optim *o, struct gt_space *s);
void gt_optim_close(struct gt_optim *o, struct gt_space *s);

#endif
