/* Turns the config's optimizer and parameter groups into kernel calls over the flat arenas. Groups that differ only in their learning
 * rates, decay and schedules share one call. Every group has its own entry in gt_step_args.lr.
 *
 *     gt_optim_init(&o, &conf->train);                                    operations, hyper-parameters, number of states
 *     gt_optim_check(&o, conf, graph, err);                               after the first plan
 *     gt_optim_prepare(&o, space, deterministic, err);                    o.steps is part of the program
 *     gt_optim_bind(&o, space);                                           after gt_space_alloc
 *     gt_optim_rates(&o, step, total, per_epoch, step_args->lr);                every step
 *     gt_optim_close(&o, space);
 */
#ifndef GT_SESSION_OPTIM_H
#define GT_SESSION_OPTIM_H

#include "conf/conf.h"
#include "optimizer.h"
#include "plan/program.h"

/* A run in fp16 ends as diverged after this number of skipped steps in a row. A dynamic loss scale has then shrunk by the factor 2^64. */
#define GT_SKIPS 64

/* An update operation and its hyper-parameters, for the parameters of one or several groups. */
struct gt_optim_call {
	const struct gt_update_row *row;  /* the update operation */
	struct gt_attr_muon attr;         /* attributes of the operation; only attr.update is used unless row->matrix is set */
	int nstates;                      /* number of states that the optimizer keeps for each parameter */
	const char *state[GT_MAX_STATES]; /* names of the states in PyTorch: "momentum_buffer", "exp_avg", ... */
};

/* A phase: a part of the run, in epochs, in which some parameters are frozen that are trained in another part. It lasts from one value of
 * frozen_until or freeze_after in train.groups to the next value, so the same parameters are frozen throughout. */
struct gt_optim_phase {
	double begin, end; /* begin and end of the phase in epochs; end is INFINITY if the phase lasts until the end of the run */
};
#define GT_MAX_PHASES (2 * GT_MAX_LR)

/* The key of an entry of train.groups that freezes its parameters in a phase. */
enum gt_freeze { GT_FREEZE_NONE, GT_FREEZE_UNTIL, GT_FREEZE_AFTER };

/* One kernel of an optimizer: over all of its parameters or, if the state is sharded, over this rank's shard of one bucket. */
struct gt_optim_part {
	int of;              /* index in gt_optim.call of the optimizer to which this kernel belongs; -1: the moving average */
	int bucket;          /* index of the bucket; -1: all buckets */
	int64_t begin, n;    /* begin: index of the first element in the unsharded arena; n: number of elements */
	struct gt_attr_muon attr;
	struct gt_call call;
};

struct gt_optim {
	const struct gt_conf_train *conf;
	struct gt_optim_call call[GT_MAX_LR];
	int ncalls;
	/* of[0]: index in call[] of train.optimizer; of[1 + g]: index for entry g of train.groups; gt_step_args.lr has the same order */
	int of[GT_MAX_LR];
	int nstates;       /* maximum number of states of a call */
	int64_t drops;     /* number of reductions so far by a schedule of type plateau; the caller sets it between two steps */
	bool ema;          /* the parameters have a moving average, in the arena STATE behind the optimizer's own states */
	struct gt_optim_phase phase[GT_MAX_PHASES]; /* [nphases], in the order of time */
	int nphases;
	int64_t per_epoch; /* number of optimizer steps of an epoch, which the caller sets before the first plan; 0: not known */
	struct gt_optim_part *part;
	int nparts;
	struct gt_call *sumsq, check, *merge, *add;
	int nsumsq, nmerge, nadd;
	struct gt_compression *compress; /* if gradients are compressed: [ncompress], one entry for each bucket */
	int ncompress;
	int *summed;       /* if the state is sharded: [nsumsq] the bucket whose shard the call sumsq[i] reads */
	/* the calls above in the form that programs execute: [0] outside of phases, [1 + i] in phase i, without updates of frozen parameters */
	struct gt_update steps[1 + GT_MAX_PHASES];
};

/* Fills in the members that do not depend on the plan: operations, hyper-parameters, states. t must outlive o. */
void gt_optim_init(struct gt_optim *o, const struct gt_conf_train *t);
/* Returns whether gt_plan_fuse_updates supports these optimizers; if not, all gradients must be stored. */
bool gt_optim_fused_update(const struct gt_optim *o);
/* Describes the optimizer of each parameter of graph g, in the form that gt_plan_fuse_updates takes, in memory of g. */
enum gt_code gt_optim_update_spec(const struct gt_optim *o, const struct gt_graph *g, const struct gt_update_spec **out,
                                  struct gt_err *err);
/* Rejects groups that match no parameter of graph g, and optimizers of whole matrices (muon) for parameters that are not weights. Errors
 * name lines of the config c. */
enum gt_code gt_optim_check(const struct gt_optim *o, const struct gt_conf *c, const struct gt_graph *g, struct gt_err *err);
/* Call it after the first plan is made. Divides the parameters into segments of equal hyper-parameters, and prepares the kernel calls of
 * the update and of the sum of squares, which clipping and the check for finite gradients read. */
enum gt_code gt_optim_prepare(struct gt_optim *o, struct gt_space *s, bool deterministic, struct gt_err *err);
/* Sets the operand addresses of the prepared calls. Call it after gt_space_alloc. */
void gt_optim_bind(struct gt_optim *o, struct gt_space *s);
void gt_optim_close(struct gt_optim *o, struct gt_space *s);
/* The parts of gt_optim_prepare, gt_optim_bind and gt_optim_close for the calls that compress gradients (compress_calls.c). */
enum gt_code gt_compress_prepare(struct gt_optim *o, struct gt_space *s, struct gt_err *err);
void gt_compress_bind(struct gt_optim *o, struct gt_space *s);
void gt_compress_close(struct gt_optim *o, struct gt_space *s);

/* Returns the number of optimizer steps in `epochs` epochs, rounded up. */
int64_t gt_optim_steps(const struct gt_optim *o, double epochs);
/* Returns the key that freezes entry `group` of train.groups (-1: no entry) in a phase, given as in gt_plan_key.phase. */
enum gt_freeze gt_optim_frozen(const struct gt_optim *o, int group, int phase);
/* Returns whether a phase, given as in gt_plan_key.phase, begins before the end of the run according to the config. A run that resumes with
 * larger batches may also reach later phases, because it may have made more steps than its epochs now have. */
bool gt_optim_reaches(const struct gt_optim *o, int phase);
/* Returns whether any parameter of graph g is trained in a phase. */
bool gt_optim_trains(const struct gt_optim *o, const struct gt_graph *g, int phase);
/* Writes the time of a phase, given as in gt_plan_key.phase, to buf as text, such as "in the epochs before 1". Returns buf. */
const char *gt_optim_phase_text(const struct gt_optim *o, int phase, char *buf, size_t size);

/* Fills lr with the learning rates of optimizer step `step` (0 ... total - 1) of a run of `total` steps, with `per_epoch` steps in an
 * epoch. */
void gt_optim_rates(const struct gt_optim *o, int64_t step, int64_t total, int64_t per_epoch, double lr[GT_MAX_LR]);

/* Fills momentum with gt_step_args.momentum of an optimizer step: the momentum, or beta1, of a schedule that changes it, else 0. Other
 * arguments: as for gt_optim_rates. */
void gt_optim_momenta(const struct gt_optim *o, int64_t step, int64_t total, int64_t per_epoch, double momentum[GT_MAX_LR]);

/* Computes the learning rates of the entries of train.groups for display, from the rates lr of gt_optim_rates: the entry's rate times its
 * factor, or 0 if the entry is frozen. */
void gt_optim_group_rates(const struct gt_optim *o, const double lr[GT_MAX_LR], double out[GT_MAX_LR]);

/* Returns the call that updates parameter p, which must not be frozen. */
static inline const struct gt_optim_call *gt_optim_of(const struct gt_optim *o, const struct gt_param *p)
{
	return &o->call[o->of[1 + p->group]];
}

#endif
