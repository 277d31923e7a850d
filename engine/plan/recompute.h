/* Recomputation: what the backward pass computes again instead of keeping it since the forward pass (Chen et al., "Training deep nets
 * with sublinear memory cost", 2016). A rewrite of a finished training graph that leaves its numbers as they are, bit for bit: the same
 * kernels see the same operands twice; statistics of a batch are kept, and running ones are not updated again.
 *
 * A value is dropped after the forward pass
 * - if its layer says `recompute = true` (a block instance: all layers but its last, whose output is kept), whatever it costs; or
 * - under `cheap`, if making it costs no more than reading its operands (GT_OPF_CHEAP), and these are kept for the backward pass anyway.
 * It is made again just before the first backward node that reads it. */
#ifndef GT_PLAN_RECOMPUTE_H
#define GT_PLAN_RECOMPUTE_H

#include "ir/graph.h"

/* Call it after gt_graph_fuse. layers: the specs that g was built from. */
enum gt_code gt_graph_recompute(struct gt_graph *g, const struct gt_layer_spec *layers, bool cheap, struct gt_err *err);

#endif
