/* Activations, element by element. A gradient needs either its output (then the forward may run in place) or its input. */
#include "ir/rows.h"

#define UNARY_GRADIENT(fn, code_dx, other)                                 \
	static enum gt_code fn(GT_GRADIENT_ARGS)                               \
	{                                                                      \
		return gt_gradient_unary(g, n, dy, want, dx, err, code_dx, other); \
	}

UNARY_GRADIENT(relu_gradient, GT_OP_RELU_DX, n->out[0])

const struct gt_op gt_row_relu = {
	.code = GT_OP_RELU,
	.help = "max(0, x)",
	.flags = GT_OPF_LAYER | GT_OPF_INPLACE,
	.min_in = 1,
	.max_in = 1,
	.infer = gt_infer_same,
	.gradient = relu_gradient,
};

const struct gt_op gt_row_relu_dx = {.code = GT_OP_RELU_DX, .flags = GT_OPF_INPLACE};
