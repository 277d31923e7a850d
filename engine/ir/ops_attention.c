/* Operations on sequences of vectors: positional, class_token, pool_tokens, and self-attention (torch.nn.MultiheadAttention). */
#include "ir/rows.h"

static enum gt_code expect_tokens(const struct gt_graph *g, const struct gt_node *n, struct gt_err *err)
{
	const struct gt_tdesc *d = gt_graph_desc(g, gt_node_first_input(n));
	char buf[96];
	if (d->rank == 3 && d->dtype != GT_I32)
		return GT_OK;
	return gt_fail(err, GT_ECONFIG, "expected an input of [batch, tokens, features], got %s %s", gt_dtype_name(d->dtype),
	               gt_tdesc_text(d, buf, sizeof buf));
}

/* ---- positional ------------------------------------------------------------------------------------------------------------------ */
static enum gt_code positional_infer(struct gt_graph *g, struct gt_node *n, struct gt_err *err)
{
	const struct gt_attr_positional *a = n->attr;
	GT_TRY(expect_tokens(g, n, err));
	struct gt_tdesc x = *gt_node_desc(g, n, "x");
	if (a->kind == GT_POSITIONAL_SINUSOIDAL) {
		gt_node_input(n, -1);
		return gt_infer_same(g, n, err);
	}
	if (a->kind == GT_POSITIONAL_LEARNED && a->max < x.dim[1])
		return gt_fail(err, GT_ECONFIG, "max_len: expected at least %lld, the tokens of the input, got %lld", (long long)x.dim[1],
		               (long long)a->max);
	GT_TRY(gt_graph_param(g, n, "weight", GT_PARAM_TABLE, 2, (int64_t[]){a->max, x.dim[2]}, (struct gt_init){GT_INIT_NORMAL, 1}, x.dim[2],
	                      a->max, err));
	return gt_infer_same(g, n, err);
}

static enum gt_code positional_gradient(GT_GRADIENT_ARGS)
{
	struct gt_node *b;
	if (want[0])
		dx[0] = dy;
	if (!gt_graph_learns(g, gt_node_operand(n, "w")))
		return GT_OK;
	GT_TRY(gt_backward_node(g, n, GT_OP_POSITIONAL_DW, dy, &b, err));
	return gt_graph_grad(g, b, gt_node_operand(n, "w"), err);
}

static const struct gt_attr_def positional_attrs[] = {
    GT_KEY(gt_attr_positional, "kind", kind, GT_ATTR_ENUM, .def = 0, .max = 2, .values = "learned|sinusoidal|same",
           .help = "learned: each position has its row of a learned table; sinusoidal: sines and cosines (Vaswani et al., 2017); same: all "
                   "positions use the first row of the table, like BERT's token types for a single text"),
    GT_KEY(gt_attr_positional, "max_len", max, GT_ATTR_INT, .def = 512, .min = 1, .max = GT_MAX_FEATURES,
           .help = "rows of the table, for the kinds learned and same"),
    GT_KEYS_END,
};

/* ---- class_token ----------------------------------------------------------------------------------------------------------------- */
/* Infers the node that adds the learned token, a table of one row, to x: zeros [N, 1, C], one for each sample. Its operation is that of the
 * layer type positional with kind = "same". */
static enum gt_code token_infer(struct gt_graph *g, struct gt_node *n, struct gt_err *err)
{
	struct gt_tdesc x = *gt_node_desc(g, n, "x");
	GT_TRY(gt_graph_param(g, n, "weight", GT_PARAM_TABLE, 2, (int64_t[]){1, x.dim[2]}, (struct gt_init){GT_INIT_CONST, 0}, x.dim[2], 1,
	                      err));
	return gt_infer_same(g, n, err);
}

/* For the node that makes these zeros: x determines only their shape, so x gets no gradient. */
static enum gt_code no_gradient(GT_GRADIENT_ARGS)
{
	(void)g, (void)n, (void)dy, (void)want, (void)dx, (void)err;
	return GT_OK;
}

static const struct gt_op token_op = {
    .code = GT_OP_POSITIONAL, .infer = token_infer, .gradient = positional_gradient};
static const struct gt_op zeros_op = {.code = GT_OP_SCALE, .infer = gt_infer_same, .gradient = no_gradient};

static enum gt_code class_token_expand(struct gt_graph *g, const struct gt_layer_spec *s, const gt_vid *in, int nin, gt_vid *y,
                                       struct gt_err *err)
{
	struct gt_node look = {.in = {*in}};
	struct gt_attr_positional same = {.kind = GT_POSITIONAL_SAME, .max = 1};
	gt_vid parts[2] = {-1, *in};
	(void)nin;
	GT_TRY(expect_tokens(g, &look, err));
	struct gt_tdesc x = *gt_graph_desc(g, *in);
	GT_TRY(gt_graph_apply(g, gt_op_get(GT_OP_SELECT), s->name, &(struct gt_attr_select){.dim = 1, .index = 0}, 1, in, &parts[0], err));
	GT_TRY(gt_graph_apply(g, &zeros_op, s->name, &(struct gt_attr_scale){.factor = 0}, 1, parts, &parts[0], err));
	GT_TRY(gt_graph_view(g, s->name, parts[0], 3, (int64_t[]){x.dim[0], 1, x.dim[2]}, &parts[0], err));
	GT_TRY(gt_graph_apply(g, &token_op, s->name, &same, 1, parts, &parts[0], err));
	g->extended = true;
	return gt_graph_apply(g, gt_op_get(GT_OP_CONCAT), s->name, NULL, 2, parts, y, err);
}

/* ---- pool_tokens ----------------------------------------------------------------------------------------------------------------- */
static enum gt_code pool_infer(struct gt_graph *g, struct gt_node *n, struct gt_err *err)
{
	const struct gt_attr_pool_tokens *a = n->attr;
	gt_vid y, idx;
	GT_TRY(expect_tokens(g, n, err));
	GT_TRY(gt_expect_lengths(g, n, 1, err));
	struct gt_tdesc x = *gt_node_desc(g, n, "x"), d = gt_tdesc_make(x.dtype, 2, (int64_t[]){x.dim[0], x.dim[2]}, true), i = d;
	GT_TRY(gt_graph_output(g, n, NULL, &d, &y, err));
	i.dtype = GT_I32;
	return a->mode == GT_POOL_MAX ? gt_graph_output(g, n, "idx", &i, &idx, err) : GT_OK;
}

static enum gt_code pool_gradient(GT_GRADIENT_ARGS)
{
	struct gt_node *b;
	struct gt_tdesc x = *gt_node_desc(g, n, "x");
	if (!want[0])
		return GT_OK;
	GT_TRY(gt_backward_node(g, n, GT_OP_POOL_TOKENS_DX, dy, &b, err));
	gt_pass_lengths(n, 1, b);
	gt_node_input(b, gt_node_operand(n, "idx"));
	return gt_graph_output(g, b, "dx", &x, &dx[0], err);
}

static double pool_flops(const struct gt_graph *g, const struct gt_node *n)
{
	return (double)gt_tdesc_count(gt_graph_desc(g, n->backward ? gt_node_first_output(n) : gt_node_first_input(n)));
}

static const struct gt_attr_def pool_attrs[] = {
    GT_KEY(gt_attr_pool_tokens, "mode", mode, GT_ATTR_ENUM, .def = 0, .max = 3, .values = "mean|max|first|last",
           .help = "mean, maximum, first or last of the tokens within the sample's length"),
    GT_KEYS_END,
};

/* ---- attention ------------------------------------------------------------------------------------------------------------------- */
/* Infers the internal operation: qkv is [N, T, 3 C], and y is [N, T, C]. */
static enum gt_code attention_infer(struct gt_graph *g, struct gt_node *n, struct gt_err *err)
{
	const struct gt_attr_attention *a = n->attr;
	struct gt_tdesc x = *gt_node_desc(g, n, "qkv");
	gt_vid y, lse;
	GT_TRY(gt_expect_lengths(g, n, 1, err));
	struct gt_tdesc d = gt_tdesc_make(x.dtype, 3, (int64_t[]){x.dim[0], x.dim[1], x.dim[2] / 3}, true);
	struct gt_tdesc l = gt_tdesc_make(gt_graph_stat_dtype(g), 3, (int64_t[]){x.dim[0], a->heads, x.dim[1]}, false);
	GT_TRY(gt_graph_output(g, n, NULL, &d, &y, err));
	return gt_graph_output(g, n, "lse", &l, &lse, err);
}

static enum gt_code attention_gradient(GT_GRADIENT_ARGS)
{
	struct gt_node *b;
	struct gt_tdesc x = *gt_node_desc(g, n, "qkv");
	if (!want[0])
		return GT_OK;
	GT_TRY(gt_backward_node(g, n, GT_OP_ATTENTION_DX, dy, &b, err));
	gt_node_input(b, gt_node_operand(n, "qkv"));
	gt_node_input(b, gt_node_operand(n, "y"));
	b->ndata = 3;
	gt_pass_lengths(n, 1, b);
	gt_node_input(b, gt_node_operand(n, "lse"));
	return gt_graph_output(g, b, "dx", &x, &dx[0], err);
}

/* Counts two matrix products of [T, C/heads] for each head in the forward pass, and five in the backward pass; half as many if causal. */
static double attention_flops(const struct gt_graph *g, const struct gt_node *n)
{
	const struct gt_attr_attention *a = n->attr;
	bool gradient = n->op->code == GT_OP_ATTENTION_DX;
	const struct gt_tdesc *y = gt_node_desc(g, n, gradient ? "dy" : "y");
	return (gradient ? 10.0 : 4.0) / (a->causal ? 2 : 1) * (double)gt_tdesc_count(y) * (double)y->dim[1];
}

static enum gt_code attention_expand(struct gt_graph *g, const struct gt_layer_spec *s, const gt_vid *in, int nin, gt_vid *y,
                                     struct gt_err *err)
{
	const struct gt_attr_attention *a = s->attr;
	struct gt_tdesc x = *gt_graph_desc(g, *in);
	struct gt_node look = {.in = {*in}};
	int64_t rows = x.dim[0] * x.dim[1], c = x.dim[2];
	const char *out_name;
	GT_TRY(expect_tokens(g, &look, err));
	if (c % a->heads || c / a->heads > 256)
		return gt_fail(err, GT_ECONFIG,
		               "num_heads: expected a divisor of %lld, the features of the input, with at most 256 features per head, got %lld",
		               (long long)c, (long long)a->heads);
	struct gt_attr_linear lin = {.out = 3 * c, .bias = a->bias};
	gt_vid core[2] = {-1, nin > 1 ? in[1] : -1}, v;
	GT_NEW_STR(out_name, gt_arena_printf(g->arena, "%s.out_proj", s->name), err);
	GT_TRY(gt_graph_view(g, s->name, *in, 2, (int64_t[]){rows, c}, &v, err));
	GT_TRY(gt_graph_apply(g, &gt_op_in_proj, s->name, &lin, 1, &v, &v, err));
	GT_TRY(gt_graph_view(g, s->name, v, 3, (int64_t[]){x.dim[0], x.dim[1], 3 * c}, &core[0], err));
	GT_TRY(gt_graph_apply(g, gt_op_get(GT_OP_ATTENTION), s->name, a, nin, core, &v, err));
	GT_TRY(gt_graph_view(g, s->name, v, 2, (int64_t[]){rows, c}, &v, err));
	lin.out = c;
	GT_TRY(gt_graph_apply(g, &gt_op_out_proj, out_name, &lin, 1, &v, &v, err));
	return gt_graph_view(g, s->name, v, 3, x.dim, y, err);
}

static const struct gt_attr_def attention_attrs[] = {
    GT_KEY(gt_attr_attention, "num_heads", heads, GT_ATTR_INT, .def = GT_REQUIRED, .min = 1, .max = GT_MAX_FEATURES,
           .help = "number of heads; it must divide the number of features"),
    GT_KEY(gt_attr_attention, "bias", bias, GT_ATTR_BOOL, .def = 1, .max = 1, .help = "add biases in both projections; they start at 0"),
    GT_KEY(gt_attr_attention, "causal", causal, GT_ATTR_BOOL, .def = 0, .max = 1,
           .help = "a token attends only to itself and to earlier tokens"),
    GT_KEYS_END,
};

const struct gt_op gt_ops_attention[] = {
    {
        .code = GT_OP_POSITIONAL,
        .help = "adds a position vector to each token of [batch, tokens, features]",
        .also = "positional_encoding|position|pos_embed",
        .flags = GT_OPF_LAYER | GT_OPF_TOKENS,
        .min_in = 1,
        .max_in = 1,
        .attrs = positional_attrs,
        .infer = positional_infer,
        .gradient = positional_gradient,
    },
    {
        .code = GT_OP_COUNT,
        .name = "class_token",
        .help = "inserts a learned token, which starts at 0, before the tokens of [batch, tokens, features], as vision transformers do",
        .also = "cls_token|cls",
        .flags = GT_OPF_LAYER | GT_OPF_TOKENS,
        .min_in = 1,
        .max_in = 1,
        .expand = class_token_expand,
    },
    {
        .code = GT_OP_COUNT,
        .name = "attention",
        .help = "multi-head self-attention (torch.nn.MultiheadAttention); a second input gives the length of each sample: tokens beyond it "
                "are masked",
        .also = "nn.MultiheadAttention|multiheadattention|mha|self_attention",
        .flags = GT_OPF_LAYER | GT_OPF_TOKENS | GT_OPF_CODES,
        .min_in = 1,
        .max_in = 2,
        .attrs = attention_attrs,
        .attr_size = sizeof(struct gt_attr_attention),
        .expand = attention_expand,
    },
    {
        .code = GT_OP_POOL_TOKENS,
        .help = "pools [batch, tokens, features] to [batch, features]; a second input gives the length of each sample",
        .also = "pooltokens|mean_pool|global_pool",
        .flags = GT_OPF_LAYER | GT_OPF_TOKENS | GT_OPF_CODES,
        .min_in = 1,
        .max_in = 2,
        .attrs = pool_attrs,
        .infer = pool_infer,
        .gradient = pool_gradient,
        .flops = pool_flops,
    },
    {.code = GT_OP_ATTENTION, .infer = attention_infer, .gradient = attention_gradient, .flops = attention_flops},
    {.code = GT_OP_POSITIONAL_DW, .flops = pool_flops},
    {.code = GT_OP_POOL_TOKENS_DX, .flops = pool_flops},
    {.code = GT_OP_ATTENTION_DX, .flops = attention_flops},
    GT_OPS_END,
};
