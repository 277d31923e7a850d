/* A program: the list of steps that one rank executes for one optimizer step, or for one evaluation batch. Strategies (par/) make
 * them, the executor (exec/exec.c) walks them and knows no strategy, dump.c prints them. */
#ifndef GT_PLAN_STEP_H
#define GT_PLAN_STEP_H

#include "plan/plan.h"

/* X(id, name in dumps) */
#define GT_STEPS(X)                                                                            \
	X(GT_STEP_LOAD, "load")     /* the next micro-batch becomes the plan's input and target */ \
	X(GT_STEP_BIND, "bind")     /* the micro-batch that was loaded becomes another plan's too */ \
	X(GT_STEP_PASS, "pass")     /* the next micro-batch: other ranks read it */                \
	X(GT_STEP_LAUNCH, "launch") /* one kernel */                                               \
	X(GT_STEP_COMM, "comm")     /* a collective or a transfer: the call's comm */              \
	X(GT_STEP_ZERO, "zero")     /* the scalars */                                              \
	X(GT_STEP_CLEAR, "clear")   /* `bytes` of an arena from `range` on */                      \
	X(GT_STEP_RECORD, "record") /* an event on the step's stream … */                          \
	X(GT_STEP_WAIT, "wait")     /* … for which this one's waits */                             \
	X(GT_STEP_CHECK, "check")   /* the kernel that lets the update happen only if loss and gradients are finite */ \
	X(GT_STEP_UPDATE, "update") /* the optimizer's kernel */

enum gt_step_kind {
#define GT_X(id, name) id,
	GT_STEPS(GT_X)
#undef GT_X
};
const char *gt_step_name(enum gt_step_kind k);

struct gt_step {
	enum gt_step_kind kind;
	int stream;
	int micro;            /* micro-batch: index into the executor's gt_dyn array */
	struct gt_plan *plan; /* LOAD, BIND, LAUNCH and COMM of a node */
	struct gt_call *call; /* LAUNCH, COMM, CHECK, UPDATE */
	struct gt_call *end;  /* COMM of a send or recv within this rank: the other end, which has no step of its own */
	int event;            /* RECORD, WAIT */
	bool apart;           /* COMM of a transfer: it does not go on side by side with those right before it */
	struct gt_range range; /* CLEAR */
	size_t bytes;
};

struct gt_prog {
	struct gt_step *step;
	int n;
	int nmicro;
	int64_t samples; /* of the whole program */
};

/* The optimizer's part of a program. */
struct gt_update {
	struct gt_call *const *sumsq; /* of the stored gradients: clipping and the finite check read it; one, or with sharded gradients one a bucket */
	int nsumsq;              /* 0: no gradients are stored, or check does it */
	struct gt_call *check;
	struct gt_call *const *update; /* one an optimizer, or with sharded state one an optimizer and bucket; none: every gradient is applied as it is made */
	const int *bucket;       /* of each update; -1: all of them */
	int nupdates;
	struct gt_call *merge;   /* [levels - 1]: adds level i + 1 of GRAD to level i */
	struct gt_call *add;     /* with cut.grads, one a bucket: adds this rank's shard of what is whole to what it has */
};

/* Fills in where the operands of what joins ranks outside of graphs are, and those of instances of plans (after gt_space_alloc). */
void gt_prog_bind(struct gt_prog *p, const struct gt_space *s);

/* Appends the program as text to *text (malloc'ed, grown), one line a step; json: one object a step. */
enum gt_code gt_prog_text(const struct gt_prog *p, const char *title, bool json, char **text, size_t *len, struct gt_err *err);

#endif
