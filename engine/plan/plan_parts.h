/* Between space.c, layout.c, lower.c and bind.c. */
#ifndef GT_PLAN_PLAN_PARTS_H
#define GT_PLAN_PLAN_PARTS_H

#include "plan/plan.h"

#define GT_ALIGN 256 /* bytes; what every device wants for vector loads and DMA */

/* Counts of copies, shards and the like: 0 is one. */
static inline int gt_at_least_one(int n)
{
	return n ? n : 1;
}

/* space.c */
/* Whether the backend takes a call that it may refuse. Running out of memory is no refusal: a plan does not depend on it. */
enum gt_code gt_call_offered(struct gt_space *s, const struct gt_opcall *oc, bool *yes, struct gt_err *err);
size_t gt_element_size(const struct gt_space *s, enum gt_arena_id a);
/* A parameter whose bucket is whole in a place behind the shards. */
void *gt_space_in_place(const struct gt_space *s, int param, enum gt_arena_id a, int place);

/* layout.c */
enum gt_code gt_layout_start(struct gt_space *s, struct gt_graph *g, struct gt_err *err);  /* before the first graph's kernels are prepared */
enum gt_code gt_layout_settle(struct gt_space *s, const struct gt_graph *g, struct gt_err *err); /* after it */
void gt_layout_bytes(struct gt_space *s); /* of the flat arenas */

#endif
