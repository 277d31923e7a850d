/* Operations on shapes and on several inputs: flatten, identity, add, mul, concat. */
#include "ir/rows.h"

static enum gt_code flatten_infer(struct gt_graph *g, struct gt_node *n, struct gt_err *err)
{
	struct gt_tdesc x = *gt_node_desc(g, n, "x");
	gt_vid y;
	int64_t rest = gt_tdesc_count(&x) / x.dim[0];
	struct gt_tdesc d = gt_tdesc_make(x.dtype, 2, (int64_t[]){x.dim[0], rest}, true);
	return gt_graph_output(g, n, NULL, &d, &y, err);
}

static enum gt_code flatten_gradient(GT_GRADIENT_ARGS)
{
	return gt_gradient_unary(g, n, dy, want, dx, err, GT_OP_FLATTEN_DX, -1);
}

/* For the forward node that reshapes [batch, features] to an image, whose opcode is flatten.dx: its gradient is flatten. */
static enum gt_code unflatten_gradient(GT_GRADIENT_ARGS)
{
	return gt_gradient_unary(g, n, dy, want, dx, err, GT_OP_FLATTEN, -1);
}

/* Returns whether the elements of an activation are in PyTorch's order. In NHWC this holds with one channel or one pixel. */
static bool has_pytorch_order(const struct gt_tdesc *d)
{
	return d->rank < 4 || d->dim[1] == 1 || d->dim[2] * d->dim[3] == 1;
}

static bool flatten_alias(const struct gt_graph *g, const struct gt_node *n)
{
	return has_pytorch_order(gt_node_desc(g, n, "x"));
}

static bool flatten_dx_alias(const struct gt_graph *g, const struct gt_node *n)
{
	return has_pytorch_order(gt_node_desc(g, n, "dx"));
}

/* For identity and add: the gradient of each input is dy itself, so no node is added. */
static enum gt_code identity_gradient(GT_GRADIENT_ARGS)
{
	(void)g, (void)err;
	for (int i = 0; i < n->ndata; i++)
		if (want[i])
			dx[i] = dy;
	return GT_OK;
}

static enum gt_code same_shapes_infer(struct gt_graph *g, struct gt_node *n, struct gt_err *err)
{
	const struct gt_tdesc *first = gt_graph_desc(g, gt_node_first_input(n));
	for (int i = 1; i < n->ndata; i++) {
		const struct gt_tdesc *x = gt_graph_desc(g, n->in[i]);
		char a[96], b[96];
		if (!gt_tdesc_same_shape(x, first))
			return gt_fail(err, GT_ECONFIG, "expected inputs of the same shape, got %s from \"%s\" and %s from \"%s\"",
			               gt_tdesc_text(first, a, sizeof a), g->values[gt_node_first_input(n)].name, gt_tdesc_text(x, b, sizeof b),
			               g->values[n->in[i]].name);
	}
	return gt_infer_same(g, n, err);
}

/* Returns whether v has one value for each channel of x: v is [N, C] or [N, C, 1, 1], and x is [N, C, H, W]. */
static bool is_per_channel(const struct gt_tdesc *x, const struct gt_tdesc *v)
{
	return x->rank == 4 && v->dim[0] == x->dim[0] && v->dim[1] == x->dim[1] &&
	       (v->rank == 2 || (v->rank == 4 && v->dim[2] == 1 && v->dim[3] == 1));
}

/* Accepts inputs of one shape, or two inputs of which one has one value for each channel of the other. The node then becomes `code`, with
 * the larger input first. */
static enum gt_code broadcast_infer(struct gt_graph *g, struct gt_node *n, enum gt_opcode code, struct gt_err *err)
{
	const struct gt_tdesc *a = gt_node_desc(g, n, "a"), *b = gt_node_desc(g, n, "b");
	if (n->ndata != 2 || gt_tdesc_same_shape(a, b) || (!is_per_channel(a, b) && !is_per_channel(b, a)))
		return same_shapes_infer(g, n, err);
	if (!is_per_channel(a, b)) {
		gt_vid first = gt_node_operand(n, "a");
		gt_node_replace(n, "a", gt_node_operand(n, "b"));
		gt_node_replace(n, "b", first);
	}
	n->op = gt_op_get(code);
	return gt_infer_same(g, n, err);
}

static enum gt_code add_infer(struct gt_graph *g, struct gt_node *n, struct gt_err *err)
{
	return broadcast_infer(g, n, GT_OP_ADD_CHANNELS, err);
}

static enum gt_code mul_infer(struct gt_graph *g, struct gt_node *n, struct gt_err *err)
{
	return broadcast_infer(g, n, GT_OP_MUL_CHANNELS, err);
}

static double add_flops(const struct gt_graph *g, const struct gt_node *n)
{
	return (double)gt_tdesc_count(gt_graph_desc(g, gt_node_first_output(n))) * (n->nin - 1);
}

/* d(ab)/da = b dy. If a and b are the same value, its gradient is the sum of the gradients for a and b. */
static enum gt_code mul_gradient(GT_GRADIENT_ARGS)
{
	for (int i = 0; i < 2; i++) {
		struct gt_node *b;
		if (!want[i])
			continue;
		struct gt_tdesc d = *gt_graph_desc(g, n->in[i]);
		GT_TRY(gt_backward_node(g, n, GT_OP_MUL, dy, &b, err));
		gt_node_input(b, n->in[1 - i]);
		b->ndata = 2;
		GT_TRY(gt_graph_output(g, b, i ? "db" : "da", &d, &dx[i], err));
	}
	return GT_OK;
}

/* For y = x * v with one v for each channel: dx = dy * v, and dv is the sum over the pixels of dy * x. */
static enum gt_code mul_channels_gradient(GT_GRADIENT_ARGS)
{
	struct gt_node *b;
	struct gt_tdesc x = *gt_node_desc(g, n, "x"), v = *gt_node_desc(g, n, "v");
	if (want[1]) {
		GT_TRY(gt_backward_node(g, n, GT_OP_MUL_CHANNELS_DV, dy, &b, err));
		gt_node_input(b, gt_node_operand(n, "x"));
		b->ndata = 2;
		GT_TRY(gt_graph_output(g, b, "dv", &v, &dx[1], err));
	}
	if (want[0]) {
		GT_TRY(gt_backward_node(g, n, GT_OP_MUL_CHANNELS, dy, &b, err));
		gt_node_input(b, gt_node_operand(n, "v"));
		b->ndata = 2;
		GT_TRY(gt_graph_output(g, b, "dx", &x, &dx[0], err));
	}
	return GT_OK;
}

static enum gt_code add_channels_gradient(GT_GRADIENT_ARGS)
{
	struct gt_node *b;
	struct gt_tdesc v = *gt_node_desc(g, n, "v");
	dx[0] = want[0] ? dy : -1;
	if (!want[1])
		return GT_OK;
	GT_TRY(gt_backward_node(g, n, GT_OP_ADD_CHANNELS_DV, dy, &b, err));
	return gt_graph_output(g, b, "dv", &v, &dx[1], err);
}

/* Counts the operations of a sum over the pixels. */
static double mul_dv_flops(const struct gt_graph *g, const struct gt_node *n)
{
	return 2.0 * (double)gt_tdesc_count(gt_node_desc(g, n, "dy"));
}

static double add_dv_flops(const struct gt_graph *g, const struct gt_node *n)
{
	return (double)gt_tdesc_count(gt_node_desc(g, n, "dy"));
}

static enum gt_code concat_infer(struct gt_graph *g, struct gt_node *n, struct gt_err *err)
{
	const struct gt_tdesc *first = gt_graph_desc(g, gt_node_first_input(n));
	struct gt_tdesc d = *first;
	gt_vid y;
	for (int i = 1; i < n->ndata; i++) {
		struct gt_tdesc x = *gt_graph_desc(g, n->in[i]), same = x;
		char a[96], b[96];
		same.dim[1] = d.dim[1];
		if (!gt_tdesc_same_shape(&same, &d))
			return gt_fail(err, GT_ECONFIG, "expected inputs that differ in dimension 1 only, got %s from \"%s\" and %s from \"%s\"",
			               gt_tdesc_text(first, a, sizeof a), g->values[gt_node_first_input(n)].name, gt_tdesc_text(&x, b, sizeof b),
			               g->values[n->in[i]].name);
		d.dim[1] += x.dim[1];
	}
	return gt_graph_output(g, n, NULL, &d, &y, err);
}

/* Appends one node that splits dy into the gradients of all inputs, even of inputs that need none, so that one kernel handles all cases. */
static enum gt_code concat_gradient(GT_GRADIENT_ARGS)
{
	static const char *const suffix[GT_MAX_LAYER_IN] = {"dx0", "dx1", "dx2", "dx3", "dx4", "dx5", "dx6", "dx7"};
	struct gt_node *b;
	(void)want;
	GT_TRY(gt_backward_node(g, n, GT_OP_CONCAT_DX, dy, &b, err));
	for (int i = 0; i < n->ndata; i++) {
		struct gt_tdesc d = *gt_graph_desc(g, n->in[i]);
		GT_TRY(gt_graph_output(g, b, suffix[i], &d, &dx[i], err));
	}
	return GT_OK;
}

const struct gt_op gt_ops_shape[] = {
    {
        .code = GT_OP_FLATTEN,
        .help = "reshapes [batch, channels, height, width] or [batch, tokens, features] to [batch, features], in PyTorch's order",
        .also = "nn.Flatten",
        .flags = GT_OPF_LAYER | GT_OPF_ALIAS | GT_OPF_TOKENS,
        .min_in = 1,
        .max_in = 1,
        .infer = flatten_infer,
        .gradient = flatten_gradient,
        .alias = flatten_alias,
        .flops = gt_flops_none,
    },
    {
        .code = GT_OP_ADD,
        .help = "sum of two to eight inputs of the same shape, or of [N, C, H, W] and [N, C] or [N, C, 1, 1]",
        .also = "torch.add|residual|sum",
        .flags = GT_OPF_LAYER | GT_OPF_INPLACE | GT_OPF_CHEAP | GT_OPF_TOKENS,
        .min_in = 2,
        .max_in = GT_MAX_LAYER_IN,
        .infer = add_infer,
        .gradient = identity_gradient,
        .flops = add_flops,
    },
    {
        .code = GT_OP_MUL,
        .help = "element-wise product of two inputs of the same shape, or of [N, C, H, W] and [N, C] or [N, C, 1, 1] "
                "(squeeze-and-excitation)",
        .flags = GT_OPF_LAYER | GT_OPF_INPLACE | GT_OPF_CHEAP | GT_OPF_TOKENS,
        .min_in = 2,
        .max_in = 2,
        .infer = mul_infer,
        .gradient = mul_gradient,
    },
    {
        .code = GT_OP_CONCAT,
        .help = "two to eight inputs joined along dimension 1 (channels or features; in [batch, tokens, features] the tokens)",
        .also = "torch.cat|cat",
        .flags = GT_OPF_LAYER | GT_OPF_TOKENS,
        .min_in = 2,
        .max_in = GT_MAX_LAYER_IN,
        .infer = concat_infer,
        .gradient = concat_gradient,
        .flops = gt_flops_none,
    },
    {
        .code = GT_OP_IDENTITY,
        .help = "returns its input unchanged",
        .also = "nn.Identity",
        .flags = GT_OPF_LAYER | GT_OPF_ALIAS | GT_OPF_TOKENS,
        .min_in = 1,
        .max_in = 1,
        .infer = gt_infer_same,
        .gradient = identity_gradient,
        .alias = gt_alias_always,
        .flops = gt_flops_none,
    },
    {.code = GT_OP_MUL_CHANNELS, .flags = GT_OPF_INPLACE | GT_OPF_CHEAP, .gradient = mul_channels_gradient},
    {.code = GT_OP_ADD_CHANNELS, .flags = GT_OPF_INPLACE | GT_OPF_CHEAP, .gradient = add_channels_gradient},
    {.code = GT_OP_MUL_CHANNELS_DV, .flops = mul_dv_flops},
    {.code = GT_OP_ADD_CHANNELS_DV, .flops = add_dv_flops},
    {.code = GT_OP_FLATTEN_DX,
     .flags = GT_OPF_ALIAS,
     .alias = flatten_dx_alias,
     .gradient = unflatten_gradient,
     .flops = gt_flops_none},
    {.code = GT_OP_CONCAT_DX, .flops = gt_flops_none},
    GT_OPS_END,
};
