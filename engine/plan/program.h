/* A program: the list of steps that one rank executes for one optimizer step, or for one batch of an evaluation. Strategies (strategy.h)
 * make programs, the executor (exec/execute.c) executes them without knowing the strategy, and dump.c prints them.
 *
 * An example: one rank of two in mode ddp, one micro-batch, on a device with streams. The all-reduce of a bucket overlaps with the rest of
 * the backward pass (gtrain plan prints such lists):
 *
 *	step    stream 0 (kernels)             stream 1 (communication)
 *	zero    scalars = 0
 *	load    images, labels
 *	launch  linear, linear.loss, …
 *	launch  linear.dw of the last layer
 *	record  event 0 --------------------->
 *	wait                                   wait for event 0
 *	comm                                   all_reduce of bucket 0
 *	launch  linear.dw of the first layer
 *	…                                      …
 *	wait    wait for event 1  <----------- record event 1
 *	comm    all_gather of the scalars
 *	check   are loss and gradients finite?
 *	update  weights */
#ifndef GT_PLAN_PROGRAM_H
#define GT_PLAN_PROGRAM_H

#include "plan/plan.h"

/* X(id, name in dumps) */
#define GT_STEPS(X)                                                                                                 \
	X(GT_STEP_LOAD, "load")     /* loads the images and labels of the next micro-batch for a plan */                \
	X(GT_STEP_BIND, "bind")     /* lets a second plan read the images and labels of the last LOAD */                \
	X(GT_STEP_PASS, "pass")     /* skips the next micro-batch, which only other ranks read */                       \
	X(GT_STEP_LAUNCH, "launch") /* runs one kernel */                                                               \
	X(GT_STEP_COMM, "comm")     /* runs the collective or transfer gt_call.comm */                                  \
	X(GT_STEP_ZERO, "zero")     /* sets the step's scalars (gt_scalars) to 0 */                                     \
	X(GT_STEP_CLEAR, "clear")   /* sets `bytes` bytes of an arena to 0, from `range` on */                          \
	X(GT_STEP_RECORD, "record") /* records an event on the step's stream */                                         \
	X(GT_STEP_WAIT, "wait")     /* makes the step's stream wait for an event */                                     \
	X(GT_STEP_CHECK, "check")   /* runs the kernel that allows the update only if loss and gradients are finite */ \
	X(GT_STEP_UPDATE, "update") /* runs an optimizer kernel */

enum gt_step_kind {
#define GT_X(id, name) id,
	GT_STEPS(GT_X)
#undef GT_X
};
const char *gt_step_name(enum gt_step_kind k);

/* One step. The comment of a field begins with the kinds of step that use the field. */
struct gt_step {
	enum gt_step_kind kind;
	int stream;           /* all kinds: device stream; 0 for kernels, 1 for communication that overlaps with them */
	int micro;            /* all kinds: micro-batch of the step, 0 … nmicro - 1; index into the executor's array of gt_step_args */
	struct gt_plan *plan; /* LOAD, BIND: plan that gets the batch; LAUNCH, COMM: plan of the call, NULL if the call belongs to no graph */
	struct gt_call *call; /* LAUNCH, COMM, CHECK, UPDATE: the call to run */
	struct gt_call *end;  /* COMM: for a transfer within this rank, the call at its other end, which has no step of its own; else NULL */
	int event;            /* RECORD, WAIT: index of the event */
	bool apart;           /* COMM: the transfer begins after the transfers right before it have ended; false: they run at the same time */
	struct gt_range range; /* CLEAR: position of the memory that is set to 0 */
	size_t bytes;         /* CLEAR: number of bytes that are set to 0 */
};

struct gt_prog {
	struct gt_step *step;
	int n;           /* number of steps */
	int nmicro;      /* number of micro-batches of one execution */
	int64_t samples; /* number of samples of one execution, over all ranks */
	/* transforms: for messages, the names of the transforms that the kernel gather.recipes applies to images. NULL: another kernel loads
	 * the images. recipes: the attributes of gather.recipes. */
	const char *transforms;
	struct gt_attr_recipes recipes;
};

/* The elements begin … end - 1 of the flat arenas. */
struct gt_elements {
	int64_t begin, end;
};

/* The calls that compress the gradients of one bucket before their reduction and decompress the sum (gradient_compression.h). */
#define GT_PACK_CALLS 5
struct gt_compression {
	struct gt_call pack[GT_PACK_CALLS], unpack; /* the steps of pack in their order */
};

/* The calls with which a program checks and applies gradients. */
struct gt_update {
	/* calls that sum the squares of the stored gradients, for clipping and for the check that gradients are finite: [nsumsq]: one call, or
	 * one call for each bucket if each rank sums only its shards */
	struct gt_call *const *sumsq;
	int nsumsq;                   /* length of sumsq; 0: no gradients are stored, or the kernel of `check` also computes the sum */
	struct gt_call *check;
	/* [nupdates]: calls that update parameters: one for each optimizer; if the state is sharded, one for each pair of optimizer and
	 * bucket */
	struct gt_call *const *update;
	const int *bucket;             /* [nupdates]: bucket that each entry of update updates; -1: all buckets */
	int nupdates;                  /* length of update; 0: all updates are fused into the kernels that compute the gradients */
	struct gt_call *merge;         /* [levels - 1]: call i adds copy i + 1 of the gradients (gt_unit.level) to copy i */
	/* [nstale]: elements of GRAD that still have gradients of earlier steps, but whose parameters this program does not train. They must be
	 * set to 0 before gradients are summed, and before squares of gradients are summed for the norm. */
	const struct gt_elements *stale;
	int nstale;
	/* [number of buckets]: true if this program trains no parameter of the bucket. Its gradients are then 0 on every rank and are not
	 * reduced; its parameters do not change and are not gathered. NULL: the program trains parameters of every trainable bucket */
	const bool *idle;
	/* if gradients are sharded: [number of buckets]: call b adds a reduced shard of bucket b to the shard that this rank keeps */
	struct gt_call *add;
	/* if gradients are compressed (gt_shard_spec.compressed): [number of buckets]; otherwise NULL */
	struct gt_compression *compress;
};

/* Fills in the operand addresses of communication outside graphs and of instances of plans. Call it after gt_space_alloc. */
void gt_prog_bind(struct gt_prog *p, const struct gt_space *s);

/* Appends the program to *text, which is malloc'ed and grown: one line for each step. If json is true, each line is a JSON object. */
enum gt_code gt_prog_text(const struct gt_prog *p, const char *title, bool json, char **text, size_t *len, struct gt_err *err);

#endif
