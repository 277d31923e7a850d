/* Internal to engine/plan: appends steps to a program. The strategies build their lists with these functions.
 *
 *	struct gt_emit e;
 *	gt_emit_begin(&e, job, err);
 *	gt_emit_unit(&e, 0);              forward and backward pass of unit 0
 *	gt_emit_check(&e);                are loss and gradients finite?
 *	gt_emit_step(&e, …);              any other step
 *	return gt_emit_end(&e, out);      the program, or the first error
 *
 * The list is an array in the job's arena that grows. After a first failure the functions append nothing; gt_emit_end returns the error. */
#ifndef GT_PLAN_EMIT_H
#define GT_PLAN_EMIT_H

#include "plan/strategy.h"

struct gt_emit {
	const struct gt_job *job;
	struct gt_step *step;
	int n, cap;        /* number of steps in use; allocated number of steps */
	int event;         /* number of event indices that gt_emit_event has returned */
	enum gt_code code; /* code of the first failure; GT_OK: no failure so far */
	struct gt_err *err;
};

void gt_emit_begin(struct gt_emit *e, const struct gt_job *job, struct gt_err *err);
enum gt_code gt_emit_end(struct gt_emit *e, struct gt_prog *out);

void gt_emit_step(struct gt_emit *e, struct gt_step s);
/* Appends the first steps of an optimizer step: they set the scalars of the step and the gradients of gt_update.stale to 0. */
void gt_emit_zero(struct gt_emit *e);
void gt_emit_load(struct gt_emit *e, int unit);
/* Appends the step that runs a call (a kernel or a communication) of the unit's plan. */
void gt_emit_launch(struct gt_emit *e, int unit, struct gt_call *c);
/* Appends a whole unit: gt_emit_clear, gt_emit_load, and every call of its plan except those that change weights. */
void gt_emit_unit(struct gt_emit *e, int unit);
/* Appends, before the calls of a unit, a step that sets the unit's level of GRAD to 0, if gt_unit.clears is set. */
void gt_emit_clear(struct gt_emit *e, int unit);
/* Appends, after the calls of a unit, gt_unit.carry steps, each of which adds one level of GRAD to the level below it. */
void gt_emit_sum_levels(struct gt_emit *e, int unit);

/* A collective on ranges of arenas. If the device queues steps (gt_job.queues), the collective may run on a stream of its own and overlap
 * with kernels. */
struct gt_collective {
	enum gt_coll_kind kind;
	enum gt_group group;
	struct gt_range from, to; /* input and output */
	size_t count;             /* number of elements, counted as in gt_coll.count */
	enum gt_dtype dtype;
	const char *what;         /* name of the communicated data in messages; in the job's arena, or a string constant */
};
void gt_emit_collective(struct gt_emit *e, const struct gt_collective *c, int stream);
void gt_emit_barrier(struct gt_emit *e, enum gt_group group, const char *what);
/* Returns the index of a device event that the caller may record. Indices are reused cyclically, but only when no step waits any more for
 * the earlier event with the index. */
int gt_emit_event(struct gt_emit *e);
/* Appends a RECORD and a WAIT step, so that later steps on stream `to` wait for all steps so far on stream `from`. Appends nothing if the
 * streams are the same or the device does not queue steps. */
void gt_emit_stream_wait(struct gt_emit *e, int from, int to);

/* Appends the kernels that sum the squares of the gradients, the exchange of scalars between ranks, the CHECK step, and the calls of the
 * last unit that change weights (gt_call.fused_update). */
void gt_emit_check(struct gt_emit *e);

/* Finds when the gradients of each bucket are finished. Sets ready[b] to the index of the call of p after which bucket b may be reduced, or
 * to -1 if p makes no gradient of the bucket. These indices ascend with b. The caller provides one entry for each bucket of the space. */
void gt_emit_bucket_ready(const struct gt_plan *p, int *ready);

#endif
