/* linear: y = x wᵀ + b, w [out, in] (torch.nn.Linear). */
#include "ir/rows.h"

static enum gt_code linear_infer(struct gt_graph *g, struct gt_node *n, struct gt_err *err)
{
	const struct gt_attr_linear *a = n->attr;
	GT_TRY(gt_expect_rank(g, n, 2, err));
	struct gt_tdesc x = *gt_node_desc(g, n, "x");
	int64_t in = x.dim[1];
	gt_vid y;
	GT_TRY(gt_graph_param(g, n, "weight", GT_PARAM_WEIGHT, 2, (int64_t[]){a->out, in}, gt_init_weight_default(in), in, a->out, err));
	if (a->bias)
		GT_TRY(gt_graph_param(g, n, "bias", GT_PARAM_BIAS, 1, &a->out, gt_init_bias_default(in), in, a->out, err));
	else
		gt_node_input(n, -1);
	struct gt_tdesc d = gt_tdesc_make(g->compute, 2, (int64_t[]){x.dim[0], a->out}, true);
	return gt_graph_output(g, n, NULL, &d, &y, err);
}

/* Returns true: a linear layer processes each token separately. */
static bool linear_per_token(const void *attr)
{
	(void)attr;
	return true;
}

static enum gt_code linear_gradient(GT_GRADIENT_ARGS)
{
	return gt_gradient_weighted(g, n, dy, want, dx, err, GT_OP_LINEAR_DX, GT_OP_LINEAR_DW);
}

/* Counts one multiply-add for each pair of an output element and an input feature, in the forward pass and for each gradient. */
static double linear_flops(const struct gt_graph *g, const struct gt_node *n)
{
	const struct gt_tdesc *x = gt_graph_desc(g, gt_node_first_input(n)), *w = gt_node_desc(g, n, "w");
	return 2.0 * (double)x->dim[0] * (double)gt_tdesc_count(w);
}

static double linear_dw_flops(const struct gt_graph *g, const struct gt_node *n)
{
	const struct gt_tdesc *dy = gt_node_desc(g, n, "dy"), *x = gt_node_desc(g, n, "x");
	return 2.0 * (double)dy->dim[0] * (double)dy->dim[1] * (double)x->dim[1];
}

static const struct gt_attr_def linear_attrs[] = {
    GT_KEY(gt_attr_linear, "out", out, GT_ATTR_INT, .def = GT_REQUIRED, .min = 1, .max = GT_MAX_FEATURES, .help = "output features"),
    GT_KEY(gt_attr_linear, "bias", bias, GT_ATTR_BOOL, .def = 1, .max = 1, .help = "add a learned bias"),
    GT_KEYS_END,
};

/* Infers a projection of attention. As in torch.nn.MultiheadAttention, the weight of the packed input projection begins with values of
 * xavier_uniform_, and the biases of both projections begin with 0. */
static enum gt_code infer_projection(struct gt_graph *g, struct gt_node *n, const char *weight, struct gt_init init, const char *bias,
                                     struct gt_err *err)
{
	const struct gt_attr_linear *a = n->attr;
	struct gt_tdesc x = *gt_node_desc(g, n, "x"), d = gt_tdesc_make(g->compute, 2, (int64_t[]){x.dim[0], a->out}, true);
	gt_vid y;
	GT_TRY(gt_graph_param(g, n, weight, GT_PARAM_WEIGHT, 2, (int64_t[]){a->out, x.dim[1]}, init, x.dim[1], a->out, err));
	if (a->bias)
		GT_TRY(gt_graph_param(g, n, bias, GT_PARAM_BIAS, 1, &a->out, (struct gt_init){GT_INIT_CONST, 0}, x.dim[1], a->out, err));
	else
		gt_node_input(n, -1);
	return gt_graph_output(g, n, NULL, &d, &y, err);
}

static enum gt_code in_proj_infer(struct gt_graph *g, struct gt_node *n, struct gt_err *err)
{
	int64_t in = gt_node_desc(g, n, "x")->dim[1], out = ((const struct gt_attr_linear *)n->attr)->out;
	bool bias = ((const struct gt_attr_linear *)n->attr)->bias;
	struct gt_init xavier = {GT_INIT_UNIFORM, sqrt(6.0 / (double)(in + out))};
	int first = g->nparams;
	GT_TRY(infer_projection(g, n, "in_proj_weight", xavier, "in_proj_bias", err));
	/* PyTorch draws the weight and the bias of the output projection before this weight, and then sets the bias to 0. */
	g->params[first].torch_skip = in * in + (bias ? in : 0);
	return GT_OK;
}

static enum gt_code out_proj_infer(struct gt_graph *g, struct gt_node *n, struct gt_err *err)
{
	int first = g->nparams;
	GT_TRY(infer_projection(g, n, "weight", gt_init_weight_default(gt_node_desc(g, n, "x")->dim[1]), "bias", err));
	g->params[first].torch_skip = -1;
	return GT_OK;
}

const struct gt_op gt_op_in_proj = {.code = GT_OP_LINEAR, .infer = in_proj_infer, .gradient = linear_gradient, .flops = linear_flops};
const struct gt_op gt_op_out_proj = {.code = GT_OP_LINEAR, .infer = out_proj_infer, .gradient = linear_gradient, .flops = linear_flops};

/* Counts the operations of the linear layer and of the loss (ops_loss.c). */
static double linear_loss_flops(const struct gt_graph *g, const struct gt_node *n)
{
	return linear_flops(g, n) + 5.0 * (double)gt_tdesc_count(gt_node_desc(g, n, "y"));
}

static double linear_back_flops(const struct gt_graph *g, const struct gt_node *n)
{
	return 2 * linear_dw_flops(g, n);
}

/* The rows of linear+loss and linear.dx+dw are for fused nodes, which only the planner adds to a graph (plan/backend_fusion.c). */

const struct gt_op gt_ops_linear[] = {
    {
        .code = GT_OP_LINEAR,
        .help = "fully connected layer, y = x W^T + b; takes [batch, features], or [batch, tokens, features] with the same weights for "
                "each token",
        .also = "nn.Linear|dense|fc|fully_connected",
        .flags = GT_OPF_LAYER | GT_OPF_TIES,
        .min_in = 1,
        .max_in = 1,
        .attrs = linear_attrs,
        .per_token = linear_per_token,
        .infer = linear_infer,
        .gradient = linear_gradient,
        .flops = linear_flops,
    },
    {.code = GT_OP_LINEAR_DX, .flops = linear_flops},
    {.code = GT_OP_LINEAR_DW, .flops = linear_dw_flops},
    {.code = GT_OP_LINEAR_LOSS, .flops = linear_loss_flops},
    {.code = GT_OP_LINEAR_BACK, .flops = linear_back_flops},
    GT_OPS_END,
};
