/* Inside the room: what the strategies' lists have in common. A list is made in an array that grows; every function appends to it. */
#ifndef GT_PAR_EMIT_H
#define GT_PAR_EMIT_H

#include "par/strategy.h"

struct gt_emit {
	const struct gt_job *job;
	struct gt_step *step;
	int n, cap;
	int event; /* the next one that is free */
	enum gt_code code; /* of the first failure; nothing is appended after it */
	struct gt_err *err;
};

void gt_emit_begin(struct gt_emit *e, const struct gt_job *job, struct gt_err *err);
enum gt_code gt_emit_end(struct gt_emit *e, struct gt_prog *out);

void gt_emit_step(struct gt_emit *e, struct gt_step s);
void gt_emit_load(struct gt_emit *e, int unit);
void gt_emit_launch(struct gt_emit *e, int unit, struct gt_call *c); /* a kernel, or what joins ranks */
void gt_emit_unit(struct gt_emit *e, int unit); /* clear, load, and every call that changes no weights */
void gt_emit_clear(struct gt_emit *e, int unit); /* what stands before a unit … */
void gt_emit_carry(struct gt_emit *e, int unit); /* … and the sums behind it */

/* A collective on ranges of arenas, beside the kernels where the device queues. */
struct gt_collective {
	enum gt_coll_kind kind;
	enum gt_group group;
	struct gt_range from, to;
	size_t count; /* as gt_coll.count */
	enum gt_dtype dtype;
	const char *what; /* in the job's arena, or static */
};
void gt_emit_collective(struct gt_emit *e, const struct gt_collective *c, int stream);
void gt_emit_barrier(struct gt_emit *e, enum gt_group group, const char *what);
int gt_emit_event(struct gt_emit *e); /* one that nobody waits for any more, since those that are recorded are soon waited for */
void gt_emit_join(struct gt_emit *e, int from, int to); /* what comes on stream `to` waits for what is on `from` */

/* Sums of squares, scalars of all ranks, CHECK, and what comes after it: the early calls of the last unit. */
void gt_emit_check(struct gt_emit *e);

/* For each learned bucket the index of the call of p that finishes its last gradient; -1: none in p. */
void gt_emit_ready(const struct gt_plan *p, int *ready);

#endif
