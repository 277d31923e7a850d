/* Fusion: rewrites of a finished graph that leave its numbers as they are, bit for bit. A table of patterns (fuse.c); each turns the
 * node that it absorbs into an identity, which the planner then aliases away. */
#ifndef GT_PLAN_FUSE_H
#define GT_PLAN_FUSE_H

#include "ir/graph.h"

/* Call it after gt_graph_verify, before gt_plan_make. */
enum gt_code gt_graph_fuse(struct gt_graph *g, struct gt_err *err);

#endif
