/* Internal to engine/plan: functions that param_arenas.c, layout.c, lower.c and bind.c share. */
#ifndef GT_PLAN_PLAN_PARTS_H
#define GT_PLAN_PLAN_PARTS_H

#include "plan/plan.h"

/* Returns n, or 1 if n is 0: for fields, such as numbers of copies or shards, in which 0 means 1. */
static inline int gt_at_least_one(int n)
{
	return n ? n : 1;
}

/* param_arenas.c */
/* Sets *yes to whether the backend supports a call. Out of memory is an error and not *yes = false, because a plan must not depend on the
 * amount of free memory. */
enum gt_code gt_call_supported(struct gt_space *s, const struct gt_opcall *oc, bool *yes, struct gt_err *err);
size_t gt_element_size(const struct gt_space *s, enum gt_arena_id a); /* returns the size in bytes of one element of a flat arena */
/* Returns the device address of a parameter in gather slot `slot` of arena a, where its whole bucket is. NULL before gt_space_alloc. */
void *gt_space_gathered_param(const struct gt_space *s, int param, enum gt_arena_id a, int slot);

/* The state of backend fusion (backend_fusion.c), which every pattern gets. */
struct gt_fusion {
	struct gt_space *space;
	struct gt_graph *g;
	bool accumulate, deterministic; /* as in gt_plan_fuse_for_backend */
};

/* Sets *yes to whether the backend accepts a call of node n, a changed node that a pattern has made. */
enum gt_code gt_fusion_offered(const struct gt_fusion *f, const struct gt_node *n, bool *yes, struct gt_err *err);
void gt_fusion_put(struct gt_graph *g, int i, const struct gt_node *n); /* replaces node i of g by a copy of node n */
void gt_fusion_drop(struct gt_graph *g, int gone);                     /* removes node `gone` from the list of nodes */

/* Patterns in norm_fusion.c, each of which tries to rewrite node i. */
enum gt_code gt_fuse_gelu_of_norm(struct gt_fusion *f, int i, struct gt_err *err);         /* i: gelu */
enum gt_code gt_fuse_sum_of_gradients(struct gt_fusion *f, int i, struct gt_err *err);     /* i: add */
enum gt_code gt_fuse_output_again(struct gt_fusion *f, int i, struct gt_err *err);         /* i: batchnorm.dx */
enum gt_code gt_fuse_pool_indices(struct gt_fusion *f, int i, struct gt_err *err);         /* i: maxpool2d.dx */
enum gt_code gt_fuse_pool_without_indices(struct gt_fusion *f, int i, struct gt_err *err); /* i: maxpool2d, adaptive_maxpool2d */

/* Patterns for evaluations in epilogue_fusion.c, each of which tries to rewrite node i. */
enum gt_code gt_fuse_sum_of_conv(struct gt_fusion *f, int i, struct gt_err *err); /* i: add */
enum gt_code gt_fuse_act_of_conv(struct gt_fusion *f, int i, struct gt_err *err); /* i: an activation */
enum gt_code gt_fuse_conv_pair(struct gt_fusion *f, int i, struct gt_err *err); /* i: the depthwise convolution */
/* Returns the index of the node that computes v, if node `reader` is the only one that reads v; otherwise -1. */
int gt_fusion_sole_source(const struct gt_graph *g, gt_vid v, int reader);

/* batch_segments.c */
/* Returns the segment of a node; NULL: the node computes the whole batch. */
const struct gt_segment *gt_plan_segment(const struct gt_plan *p, int node);
/* Returns the byte offset, in the memory of value v, of the samples that call c computes. */
size_t gt_plan_part_offset(const struct gt_plan *p, const struct gt_call *c, gt_vid v);
/* Repeats the calls of each segment for its parts. Call it after the calls are prepared and memory is planned. */
enum gt_code gt_plan_repeat_calls(struct gt_plan *p, struct gt_err *err);

/* layout.c */
/* Prepares the parameters' layouts for the first graph of a space. Call it before the first kernel is prepared. */
enum gt_code gt_layout_start(struct gt_space *s, struct gt_graph *g, struct gt_err *err);
/* Assigns offsets to the parameters and buffers that g uses. Call it after the kernels of g are prepared. */
enum gt_code gt_layout_assign(struct gt_space *s, const struct gt_graph *g, struct gt_err *err);
void gt_layout_bytes(struct gt_space *s); /* computes the sizes of the flat arenas from the offsets of the parameters */

#endif
