/* Pooling (torch.nn.MaxPool2d, AvgPool2d, AdaptiveAvgPool2d, AdaptiveMaxPool2d). */
#include "ir/rows.h"

static enum gt_code pool_shape(struct gt_graph *g, struct gt_node *n, struct gt_tdesc *y, struct gt_err *err)
{
	struct gt_attr_pool2d *a = n->attr;
	GT_TRY(gt_expect_rank(g, n, 4, err));
	*y = *gt_node_desc(g, n, "x");
	for (int i = 0; i < 2; i++) {
		int64_t in = y->dim[2 + i];
		if (!a->stride[i])
			a->stride[i] = a->kernel[i];
		if (2 * a->padding[i] > a->kernel[i])
			return gt_fail(err, GT_ECONFIG, "padding: expected at most half of the kernel, %lld, got %lld", (long long)a->kernel[i] / 2,
			               (long long)a->padding[i]);
		y->dim[2 + i] = gt_window_out(in, a->kernel[i], a->stride[i], a->padding[i], 1, a->ceil_mode);
		if (y->dim[2 + i] < 1)
			return gt_fail(err, GT_ECONFIG,
			               "expected an input whose %s including padding is at least %lld, the size of the window, got %lld + 2 * %lld",
			               i ? "width" : "height", (long long)a->kernel[i], (long long)in, (long long)a->padding[i]);
	}
	return GT_OK;
}

static enum gt_code adaptive_shape(struct gt_graph *g, struct gt_node *n, struct gt_tdesc *y, struct gt_err *err)
{
	const struct gt_attr_adaptive *a = n->attr;
	GT_TRY(gt_expect_rank(g, n, 4, err));
	*y = *gt_node_desc(g, n, "x");
	y->dim[2] = a->out[0];
	y->dim[3] = a->out[1];
	return GT_OK;
}

/* Declares the output y and, with idx, the positions of the maxima. */
static enum gt_code infer_pool_outputs(struct gt_graph *g, struct gt_node *n, const struct gt_tdesc *y, bool idx, struct gt_err *err)
{
	gt_vid v;
	struct gt_tdesc d = *y;
	GT_TRY(gt_graph_output(g, n, NULL, &d, &v, err));
	d.dtype = GT_I32;
	return idx ? gt_graph_output(g, n, "idx", &d, &v, err) : GT_OK;
}

static enum gt_code maxpool_infer(struct gt_graph *g, struct gt_node *n, struct gt_err *err)
{
	struct gt_tdesc y;
	GT_TRY(pool_shape(g, n, &y, err));
	return infer_pool_outputs(g, n, &y, true, err);
}

static enum gt_code avgpool_infer(struct gt_graph *g, struct gt_node *n, struct gt_err *err)
{
	struct gt_tdesc y;
	GT_TRY(pool_shape(g, n, &y, err));
	return infer_pool_outputs(g, n, &y, false, err);
}

static enum gt_code adaptive_max_infer(struct gt_graph *g, struct gt_node *n, struct gt_err *err)
{
	struct gt_tdesc y;
	GT_TRY(adaptive_shape(g, n, &y, err));
	return infer_pool_outputs(g, n, &y, true, err);
}

static enum gt_code adaptive_avg_infer(struct gt_graph *g, struct gt_node *n, struct gt_err *err)
{
	struct gt_tdesc y;
	GT_TRY(adaptive_shape(g, n, &y, err));
	return infer_pool_outputs(g, n, &y, false, err);
}

static enum gt_code global_avg_infer(struct gt_graph *g, struct gt_node *n, struct gt_err *err)
{
	struct gt_attr_adaptive *a = n->attr;
	a->out[0] = a->out[1] = 1;
	return adaptive_avg_infer(g, n, err);
}

static enum gt_code maxpool_gradient(GT_GRADIENT_ARGS)
{
	return gt_gradient_unary(g, n, dy, want, dx, err, GT_OP_MAXPOOL2D_DX, gt_node_operand(n, "idx"));
}

/* Uses the operation maxpool2d.dx with kernel {0, 0}, which means that idx alone determines where each element of dy is added. */
static enum gt_code adaptive_max_gradient(GT_GRADIENT_ARGS)
{
	struct gt_attr_pool2d *a;
	struct gt_node m = *n;
	GT_NEW(a, g->arena, 1, err);
	m.attr = a;
	return gt_gradient_unary(g, &m, dy, want, dx, err, GT_OP_MAXPOOL2D_DX, gt_node_operand(n, "idx"));
}

static enum gt_code avgpool_gradient(GT_GRADIENT_ARGS)
{
	return gt_gradient_unary(g, n, dy, want, dx, err, GT_OP_AVGPOOL2D_DX, -1);
}

static enum gt_code adaptive_avg_gradient(GT_GRADIENT_ARGS)
{
	return gt_gradient_unary(g, n, dy, want, dx, err, GT_OP_ADAPTIVE_AVGPOOL2D_DX, -1);
}

/* Counts one comparison or addition for each element of each window. In the backward pass each element of dy belongs to one window. */
static double pool_flops(const struct gt_graph *g, const struct gt_node *n)
{
	const struct gt_attr_pool2d *a = n->attr;
	const struct gt_tdesc *y = gt_node_desc(g, n, n->op->code == GT_OP_AVGPOOL2D_DX ? "dy" : "y");
	return (double)gt_tdesc_count(y) * (double)(a->kernel[0] * a->kernel[1]);
}

static double maxpool_dx_flops(const struct gt_graph *g, const struct gt_node *n)
{
	return (double)gt_tdesc_count(gt_node_desc(g, n, "dy"));
}

/* Counts one operation for each input element, because almost every element is in one window only. */
static double adaptive_flops(const struct gt_graph *g, const struct gt_node *n)
{
	return (double)gt_tdesc_count(gt_graph_desc(g, n->backward ? gt_node_first_output(n) : gt_node_first_input(n)));
}

#define CELLS 65536
#define POOL_KEYS                                                                                                                          \
	GT_KEY(gt_attr_pool2d, "kernel", kernel, GT_ATTR_INT2, .def = GT_REQUIRED, .min = 1, .max = CELLS,                                     \
	       .help = "height and width of a window"),                                                                                        \
	    GT_KEY(gt_attr_pool2d, "stride", stride, GT_ATTR_INT2, .def = 0, .min = 0, .max = CELLS,                                           \
	           .help = "step between windows; 0: kernel size"),                                                                           \
	    GT_KEY(gt_attr_pool2d, "padding", padding, GT_ATTR_INT2, .def = 0, .min = 0, .max = CELLS,                                         \
	           .help = "padding on both sides, at most half of the kernel"),                                                           \
	    GT_KEY(gt_attr_pool2d, "ceil_mode", ceil_mode, GT_ATTR_BOOL, .def = 0, .max = 1,                                                   \
	           .help = "allow a last window that extends beyond the border")

static const struct gt_attr_def maxpool_attrs[] = {POOL_KEYS, GT_KEYS_END};
static const struct gt_attr_def avgpool_attrs[] = {
    POOL_KEYS,
    GT_KEY(gt_attr_pool2d, "count_include_pad", count_include_pad, GT_ATTR_BOOL, .def = 1, .max = 1, .help = "include padding in the mean"),
    GT_KEYS_END,
};
static const struct gt_attr_def adaptive_attrs[] = {
    GT_KEY(gt_attr_adaptive, "out", out, GT_ATTR_INT2, .def = GT_REQUIRED, .min = 1, .max = CELLS,
           .help = "height and width of the output"),
    GT_KEYS_END,
};

#define POOL(opcode, names, text, keys, infer_fn, gradient_fn, flops_fn)                                                                   \
	{                                                                                                                                      \
	    .code = opcode,                                                                                                                    \
	    .help = text,                                                                                                                      \
	    .also = names,                                                                                                                     \
	    .flags = GT_OPF_LAYER,                                                                                                             \
	    .min_in = 1,                                                                                                                       \
	    .max_in = 1,                                                                                                                       \
	    .attrs = keys,                                                                                                                     \
	    .infer = infer_fn,                                                                                                                 \
	    .gradient = gradient_fn,                                                                                                           \
	    .flops = flops_fn,                                                                                                                 \
	}

const struct gt_op gt_ops_pool[] = {
    POOL(GT_OP_MAXPOOL2D, "nn.MaxPool2d|maxpool|max_pool2d", "largest value of each window", maxpool_attrs, maxpool_infer,
         maxpool_gradient, pool_flops),
    POOL(GT_OP_AVGPOOL2D, "nn.AvgPool2d|avgpool|avg_pool2d", "mean of each window", avgpool_attrs, avgpool_infer, avgpool_gradient,
         pool_flops),
    POOL(GT_OP_ADAPTIVE_AVGPOOL2D, "nn.AdaptiveAvgPool2d|adaptiveavgpool2d",
         "mean of windows that divide the input evenly, for an output of the given size", adaptive_attrs, adaptive_avg_infer,
         adaptive_avg_gradient, adaptive_flops),
    POOL(GT_OP_ADAPTIVE_MAXPOOL2D, "nn.AdaptiveMaxPool2d|adaptivemaxpool2d",
         "largest value of windows that divide the input evenly, for an output of the given size", adaptive_attrs, adaptive_max_infer,
         adaptive_max_gradient, adaptive_flops),
    {
        .code = GT_OP_ADAPTIVE_AVGPOOL2D,
        .name = "global_avgpool",
        .help = "mean of each channel, [batch, channels, 1, 1]",
        .also = "globalaveragepooling2d",
        .flags = GT_OPF_LAYER,
        .min_in = 1,
        .max_in = 1,
        .infer = global_avg_infer,
        .gradient = adaptive_avg_gradient,
        .flops = adaptive_flops,
    },
    {.code = GT_OP_MAXPOOL2D_DX, .flops = maxpool_dx_flops},
    {.code = GT_OP_AVGPOOL2D_DX, .flops = pool_flops},
    {.code = GT_OP_ADAPTIVE_AVGPOOL2D_DX, .flops = adaptive_flops},
    GT_OPS_END,
};
