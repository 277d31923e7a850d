/* Element-wise activations, softmax and log_softmax, scale and dropout. The gradient of an activation needs either its output (then the
 * forward pass may run in place) or its input. */
#include "ir/rows.h"

#define UNARY_GRADIENT(fn, code_dx, other)                                                                                                 \
	static enum gt_code fn(GT_GRADIENT_ARGS)                                                                                               \
	{                                                                                                                                      \
		return gt_gradient_unary(g, n, dy, want, dx, err, code_dx, other);                                                                 \
	}

#define SAVED_x gt_node_operand(n, "x")
#define SAVED_y gt_node_operand(n, "y")
#define GT_X(arg, CODE, name, saved, ...) UNARY_GRADIENT(name##_gradient, GT_OP_##CODE##_DX, SAVED_##saved)
GT_ACTIVATIONS(GT_X)
#undef GT_X
UNARY_GRADIENT(softmax_gradient, GT_OP_SOFTMAX_DX, gt_node_operand(n, "y"))
UNARY_GRADIENT(log_softmax_gradient, GT_OP_LOG_SOFTMAX_DX, gt_node_operand(n, "y"))
UNARY_GRADIENT(scale_gradient, GT_OP_SCALE, -1)
UNARY_GRADIENT(dropout_gradient, GT_OP_DROPOUT, -1) /* -1: the gradient needs only dy, because its kernel draws the same mask again */

#define UNARY(opcode, text, more_flags, ...)                                                                                               \
	{                                                                                                                                      \
		.code = opcode, .help = text, .flags = GT_OPF_LAYER | (more_flags), .min_in = 1, .max_in = 1, __VA_ARGS__                          \
	}

#define GT_NUMBER(i, text, default_value, minimum, maximum, help_text)                                                                     \
	GT_KEY(gt_attr_act, text, number[i], GT_ATTR_FLOAT, .def = default_value, .min = minimum, .max = maximum, .help = help_text)
#define GT_X(arg, CODE, name, saved, numbers, grain, attr, text, names, ...)                                                               \
	static const struct gt_attr_def name##_attrs[4] = {__VA_ARGS__}; /* at most 3 keys; the entry after the last key is zero */
GT_ACTIVATIONS(GT_X)
#undef GT_X

static const struct gt_attr_def scale_attrs[] = {
    GT_KEY(gt_attr_scale, "factor", factor, GT_ATTR_FLOAT, .def = GT_REQUIRED, .min = -1e6, .max = 1e6, .help = "factor by which the input "
           "is multiplied"),
    GT_KEYS_END,
};

/* The rows of dropout differ in the unit that is dropped (element, channel, …), which infer sets. */
#define DROPOUT(type, names, text, keys, infer_fn)                                                                                         \
	UNARY(GT_OP_DROPOUT, text, GT_OPF_INPLACE | GT_OPF_ALIAS | GT_OPF_CHEAP | GT_OPF_TOKENS, .name = type, .also = names, .attrs = keys,   \
	      .infer = infer_fn, .gradient = dropout_gradient, .alias = dropout_alias)

/* Counts four operations for each element in the forward pass (maximum, exponential, sum, scale), and three in the backward pass. */
static double softmax_flops(const struct gt_graph *g, const struct gt_node *n)
{
	return (n->backward ? 3.0 : 4.0) * (double)gt_tdesc_count(gt_graph_desc(g, gt_node_first_output(n)));
}

static enum gt_code dropout_infer(struct gt_graph *g, struct gt_node *n, struct gt_err *err)
{
	struct gt_attr_dropout *a = n->attr;
	a->train = g->train;
	a->layer = (uint32_t)n->layer;
	return gt_infer_same(g, n, err);
}

static enum gt_code dropout2d_infer(struct gt_graph *g, struct gt_node *n, struct gt_err *err)
{
	((struct gt_attr_dropout *)n->attr)->unit = GT_DROP_CHANNELS;
	GT_TRY(gt_expect_rank(g, n, 4, err));
	return dropout_infer(g, n, err);
}

static enum gt_code drop_path_infer(struct gt_graph *g, struct gt_node *n, struct gt_err *err)
{
	((struct gt_attr_dropout *)n->attr)->unit = GT_DROP_SAMPLES;
	return dropout_infer(g, n, err);
}

static bool dropout_alias(const struct gt_graph *g, const struct gt_node *n)
{
	const struct gt_attr_dropout *a = n->attr;
	(void)g;
	return !a->train || a->p == 0;
}

static const struct gt_attr_def dropout_attrs[] = {
    GT_KEY(gt_attr_dropout, "p", p, GT_ATTR_FLOAT, .def = 0.5, .min = 0, .max = 1, .help = "probability that an element becomes 0"),
    GT_KEYS_END,
};

static enum gt_code prelu_infer(struct gt_graph *g, struct gt_node *n, struct gt_err *err)
{
	const struct gt_attr_prelu *a = n->attr;
	int64_t channels = gt_node_desc(g, n, "x")->dim[1];
	if (a->num != 1 && a->num != channels)
		return gt_fail(err, GT_ECONFIG, "num_parameters: expected 1 or %lld, the channels of the input, got %lld", (long long)channels,
		               (long long)a->num);
	GT_TRY(gt_graph_param(g, n, "weight", GT_PARAM_NORM, 1, &a->num, (struct gt_init){GT_INIT_CONST, 0.25}, 0, 0, err));
	return gt_infer_same(g, n, err);
}

/* Appends one node for dx and dw. It computes dx even if dx is not needed, which is only the case if no layer before it is trained. */
static enum gt_code prelu_gradient(GT_GRADIENT_ARGS)
{
	struct gt_node *b;
	struct gt_tdesc d = *gt_node_desc(g, n, "x");
	if (!want[0] && !gt_graph_learns(g, gt_node_operand(n, "w")))
		return GT_OK;
	GT_TRY(gt_backward_node(g, n, GT_OP_PRELU_DX, dy, &b, err));
	gt_node_input(b, gt_node_operand(n, "x"));
	b->ndata = 2;
	gt_node_input(b, gt_node_operand(n, "w"));
	GT_TRY(gt_graph_output(g, b, "dx", &d, &dx[0], err));
	return gt_graph_grad(g, b, gt_node_operand(n, "w"), err);
}

static const struct gt_attr_def drop_path_attrs[] = {
    GT_KEY(gt_attr_dropout, "p", p, GT_ATTR_FLOAT, .def = GT_REQUIRED, .min = 0, .max = 1,
           .help = "probability that a sample becomes 0"),
    GT_KEYS_END,
};

static const struct gt_attr_def prelu_attrs[] = {
    GT_KEY(gt_attr_prelu, "num_parameters", num, GT_ATTR_INT, .def = 1, .min = 1, .max = GT_MAX_FEATURES,
           .help = "number of weights: 1, or one for each channel"),
    GT_KEYS_END,
};

const struct gt_op gt_ops_act[] = {
/* Makes the rows of an activation and of its gradient. Both operations may overwrite their first input. */
#define GT_X(arg, CODE, id, saved, numbers, grain, attr, text, names, ...)                                                                 \
	UNARY(GT_OP_##CODE, text, GT_OPF_INPLACE | GT_OPF_CHEAP | GT_OPF_TOKENS, .infer = gt_infer_same, .gradient = id##_gradient,            \
	      .also = names, .attrs = id##_attrs),                                                                                             \
	{                                                                                                                                      \
		.code = GT_OP_##CODE##_DX, .flags = GT_OPF_INPLACE, .attrs = id##_attrs                                                            \
	},
    GT_ACTIVATIONS(GT_X)
#undef GT_X
    UNARY(GT_OP_PRELU, "x, or w * x if x is negative; w is learned and starts at 0.25; decay_norm applies to w",
          GT_OPF_INPLACE | GT_OPF_CHEAP, .also = "nn.PReLU", .attrs = prelu_attrs, .infer = prelu_infer, .gradient = prelu_gradient),
    {.code = GT_OP_PRELU_DX, .flags = GT_OPF_INPLACE},
    UNARY(GT_OP_SOFTMAX, "exp(x) / sum exp(x) over dimension 1", 0, .also = "nn.Softmax", .infer = gt_infer_same,
          .gradient = softmax_gradient, .flops = softmax_flops),
    UNARY(GT_OP_LOG_SOFTMAX, "logarithm of softmax, over dimension 1", 0, .also = "nn.LogSoftmax", .infer = gt_infer_same,
          .gradient = log_softmax_gradient, .flops = softmax_flops),
    DROPOUT("dropout", "nn.Dropout", "in training, sets random elements to 0 and scales the other elements by 1 / (1 - p)", dropout_attrs,
            dropout_infer),
    DROPOUT("dropout2d", "nn.Dropout2d|channel_dropout|feature_dropout|spatial_dropout",
            "in training, sets random channels of a sample to 0 and scales the other channels by 1 / (1 - p)", dropout_attrs,
            dropout2d_infer),
    DROPOUT("drop_path", "torchvision.ops.StochasticDepth|droppath|stochastic_depth|stochasticdepth",
            "stochastic depth: in training, sets random samples to 0 and scales the other samples by 1 / (1 - p); place it before the sum "
            "of a residual block", drop_path_attrs, drop_path_infer),
    UNARY(GT_OP_SCALE, "factor * x, where factor is a constant, such as a temperature for logits", GT_OPF_INPLACE | GT_OPF_TOKENS,
          .attrs = scale_attrs, .infer = gt_infer_same, .gradient = scale_gradient),
    {.code = GT_OP_SOFTMAX_DX, .flops = softmax_flops},
    {.code = GT_OP_LOG_SOFTMAX_DX, .flops = softmax_flops},
    GT_OPS_END,
};
