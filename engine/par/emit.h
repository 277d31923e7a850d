/* Internal to engine/par: appends steps to a program. The strategies build their lists with these functions.
 *
 *	struct gt_emit e;
 *	gt_emit_begin(&e, job, err);
 *	gt_emit_unit(&e, 0);              forward and backward pass of unit 0
 *	gt_emit_check(&e);                are loss and gradients finite?
 *	gt_emit_step(&e, …);              any other step
 *	return gt_emit_end(&e, out);      the program, or the first error
 *
 * The list is an array in the job's arena that grows. After a first failure the functions append nothing; gt_emit_end returns the error. */
#ifndef GT_PAR_EMIT_H
#define GT_PAR_EMIT_H

#include "par/strategy.h"

struct gt_emit {
	const struct gt_job *job;
	struct gt_step *step;
	int n, cap;        /* steps in use and allocated */
	int event;         /* number of events handed out so far (gt_emit_event) */
	enum gt_code code; /* of the first failure */
	struct gt_err *err;
};

void gt_emit_begin(struct gt_emit *e, const struct gt_job *job, struct gt_err *err);
enum gt_code gt_emit_end(struct gt_emit *e, struct gt_prog *out);

void gt_emit_step(struct gt_emit *e, struct gt_step s);
void gt_emit_load(struct gt_emit *e, int unit);
void gt_emit_launch(struct gt_emit *e, int unit, struct gt_call *c); /* a kernel or a communication of the unit's plan */
void gt_emit_unit(struct gt_emit *e, int unit);  /* clear, load, and every call that changes no weights */
void gt_emit_clear(struct gt_emit *e, int unit); /* before a unit: sets its level of GRAD to 0, if gt_unit.clears */
void gt_emit_sum_levels(struct gt_emit *e, int unit); /* after a unit: adds levels of GRAD, gt_unit.carry times */

/* A collective on ranges of arenas. If the device queues, it may run on a stream of its own and overlap with kernels. */
struct gt_collective {
	enum gt_coll_kind kind;
	enum gt_group group;
	struct gt_range from, to; /* input and output */
	size_t count;             /* elements, as in gt_coll.count */
	enum gt_dtype dtype;
	const char *what;         /* for messages; in the job's arena, or static */
};
void gt_emit_collective(struct gt_emit *e, const struct gt_collective *c, int stream);
void gt_emit_barrier(struct gt_emit *e, enum gt_group group, const char *what);
/* Returns an event index. Indices are reused in turn; every recorded event is waited for long before its index is reused. */
int gt_emit_event(struct gt_emit *e);
/* Makes later steps on stream `to` wait for the steps so far on stream `from`: RECORD and WAIT. No steps if the device does not queue. */
void gt_emit_stream_wait(struct gt_emit *e, int from, int to);

/* Appends the sums of squares, the exchange of scalars between ranks, the CHECK, and then those calls of the last unit that change
 * weights (gt_call.fused_update). */
void gt_emit_check(struct gt_emit *e);

/* Finds when the gradients of each bucket are finished. ready[b]: index of the call of p after which bucket b may be reduced, ascending in
 * b; -1: p makes no gradient of it. The array has s->nbuckets entries. */
void gt_emit_bucket_ready(const struct gt_plan *p, int *ready);

#endif
