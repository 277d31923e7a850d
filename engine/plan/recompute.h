/* Recomputation of activations: the backward pass computes some activations again instead of keeping them in memory since the forward pass
 * (Chen et al., "Training deep nets with sublinear memory cost", 2016). This rewrites a finished training graph. All results are the same,
 * bit for bit, because the same kernels run twice on the same operands. Statistics of a batch are kept, and running statistics are not
 * updated a second time.
 *
 * A value is dropped after the forward pass
 * - if its layer sets `recompute = true`, whatever the computation costs (in a block instance: all layers but the last one, whose output is
 *   kept); or
 * - under `cheap`, if computing it costs no more than reading its operands (GT_OPF_CHEAP) and the backward pass needs these operands
 *   anyway.
 * It is computed again just before the first backward node that reads it:
 *
 *	forward    x -> conv -> a -> relu -> y -> …                 a, y dropped
 *	backward   … conv(x) -> a' -> relu -> y' -> conv2d.dw(dy, y')   */
#ifndef GT_PLAN_RECOMPUTE_H
#define GT_PLAN_RECOMPUTE_H

#include "ir/graph.h"

/* Makes the backward pass of g recompute activations. Call it after gt_graph_fuse. layers: the layer specs from which g was built. cheap:
 * also drop the values that are cheap to compute. */
enum gt_code gt_graph_recompute(struct gt_graph *g, const struct gt_layer_spec *layers, bool cheap, struct gt_err *err);

#endif
