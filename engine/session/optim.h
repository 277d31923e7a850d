/* From the config's optimizer and groups to kernel calls over the flat arenas: one call for all groups that differ in their rates, decay
 * and schedules only. Every group has its own entry in gt_dyn.lr. */
#ifndef GT_SESSION_OPTIM_H
#define GT_SESSION_OPTIM_H

#include "conf/conf.h"
#include "optimizer.h"
#include "plan/step.h"

#define GT_SKIPS 64 /* fp16: so many steps skipped in a row are a divergence: the scale has fallen by 2^64, if it falls */

struct gt_optim_call {
	const struct gt_update_row *row;
	struct gt_attr_muon attr; /* attr.update alone unless row->matrix */
	int nstates;
	const char *state[GT_MAX_STATES]; /* PyTorch's names: "momentum_buffer", "exp_avg", … */
};

/* One kernel: an optimizer over all of its parameters, or, where the state is sharded, over this rank's shard of one bucket. */
struct gt_optim_part {
	int of;              /* gt_optim.call */
	int bucket;          /* -1: all */
	int64_t begin, n;    /* elements, as if the arenas were whole */
	struct gt_attr_muon attr;
	struct gt_call call;
};

struct gt_optim {
	const struct gt_conf_train *conf;
	struct gt_optim_call call[GT_MAX_LR];
	int ncalls;
	int of[GT_MAX_LR]; /* the call of train.optimizer, then of each entry of train.groups: index 1 + gt_param.group, as in gt_dyn.lr */
	int nstates;       /* of the call that has the most */
	struct gt_optim_part *part;
	int nparts;
	struct gt_call *sumsq, check, *merge, *add;
	int nsumsq, nmerge, nadd;
	int *summed;       /* of each sumsq: the bucket, where the state is sharded */
	struct gt_update steps; /* points at the calls */
};

/* What does not depend on the plan: operations, hyper-parameters, state slots. t must outlive o. */
void gt_optim_init(struct gt_optim *o, const struct gt_conf_train *t);
/* The optimizer as gt_plan_fuse_updates wants it, for a graph's parameters. False: the gradients must be stored for it. */
bool gt_optim_fused_update(const struct gt_optim *o);
enum gt_code gt_optim_apply(const struct gt_optim *o, const struct gt_graph *g, struct gt_apply *out, struct gt_err *err);
/* After the first plan: segments of equal hyper-parameters, prepared calls. clip or finite checks read the sum of squares.
 * GT_ECONFIG: a group that matches nothing, a parameter that its optimizer cannot update. path: of the config, for messages. */
enum gt_code gt_optim_prepare(struct gt_optim *o, const char *path, struct gt_space *s, bool deterministic, struct gt_err *err);
/* After gt_space_alloc: operand pointers. */
void gt_optim_bind(struct gt_optim *o, struct gt_space *s);
void gt_optim_close(struct gt_optim *o, struct gt_space *s);

/* The rates of optimizer step `step` (0, 1, …) of total. */
void gt_optim_rates(const struct gt_optim *o, int64_t step, int64_t total, int64_t per_epoch, double lr[GT_MAX_LR]);

/* The rates of train.groups as people see them, from those: each entry's, times its factor; 0 where it is frozen. */
void gt_optim_group_rates(const struct gt_optim *o, const double lr[GT_MAX_LR], double out[GT_MAX_LR]);

/* The call that updates a learned parameter. */
static inline const struct gt_optim_call *gt_optim_of(const struct gt_optim *o, const struct gt_param *p)
{
	return &o->call[o->of[1 + p->group]];
}

#endif
