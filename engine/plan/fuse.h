/* Fusion: merges element-wise nodes into the node before them, in a finished graph. The results are the same, bit for bit, and every
 * backend supports the merged nodes (backend_fusion.c makes the fusions that only some backends offer).
 *
 * fuse.c tries a table of patterns. The absorbed node becomes an identity, which needs no kernel:
 *
 *	conv2d -> batchnorm -> add -> relu        becomes        conv2d -> batchnorm(act = relu, residual) -> identity -> identity */
#ifndef GT_PLAN_FUSE_H
#define GT_PLAN_FUSE_H

#include "ir/graph.h"

/* Merges the element-wise nodes of g. Call it after gt_graph_verify and before gt_plan_make. */
enum gt_code gt_graph_fuse(struct gt_graph *g, struct gt_err *err);

#endif
