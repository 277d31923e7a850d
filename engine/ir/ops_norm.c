/* Normalisations (torch.nn.BatchNorm1d, BatchNorm2d, LayerNorm, GroupNorm). Parameters and statistics are f32 (f64 in an f64 graph). */
#include "ir/rows.h"

static const struct gt_init zeros = {GT_INIT_CONST, 0}, ones = {GT_INIT_CONST, 1};

static enum gt_code affine_params(struct gt_graph *g, struct gt_node *n, bool affine, int rank, const int64_t *dim, struct gt_err *err)
{
	if (!affine) {
		gt_node_input(n, -1);
		gt_node_input(n, -1);
		return GT_OK;
	}
	GT_TRY(gt_graph_param(g, n, "weight", GT_PARAM_NORM, rank, dim, ones, 0, 0, err));
	return gt_graph_param(g, n, "bias", GT_PARAM_NORM, rank, dim, zeros, 0, 0, err);
}

/* Declares the outputs: y with the description of x, and two tensors of shape `dim` that the gradient needs, mean and
 * 1/sqrt(var + eps). */
static enum gt_code norm_outputs(struct gt_graph *g, struct gt_node *n, int rank, const int64_t *dim, struct gt_err *err)
{
	gt_vid v;
	struct gt_tdesc d = gt_tdesc_make(gt_graph_stat_dtype(g), rank, dim, false);
	GT_TRY(gt_infer_same(g, n, err));
	GT_TRY(gt_graph_output(g, n, "mean", &d, &v, err));
	return gt_graph_output(g, n, "rstd", &d, &v, err);
}

/* Sets *out to the group with frozen_stats that matches both weight and bias of the batch normalisation n; -1: none. GT_ECONFIG: the group
 * matches only one of the two, or n has no running statistics. */
static enum gt_code find_frozen_stats_group(struct gt_graph *g, const struct gt_node *n, bool track, int *out, struct gt_err *err)
{
	int weight, bias;
	GT_TRY(gt_graph_group(g, n, "weight", &weight, err));
	GT_TRY(gt_graph_group(g, n, "bias", &bias, err));
	bool with_weight = weight >= 0 && g->groups[weight].frozen_stats, with_bias = bias >= 0 && g->groups[bias].frozen_stats;
	*out = with_weight ? weight : -1;
	if (!with_weight && !with_bias)
		return GT_OK;
	if ((weight != bias || !track) && g->groups[with_weight ? weight : bias].any_stats) {
		*out = -1;
		return GT_OK;
	}
	if (weight != bias)
		return gt_fail(err, GT_ECONFIG,
		               "train.groups[%d].frozen_stats: expected match to name both %s.weight and %s.bias or neither of them, got only "
		               "%s.%s: add the other name",
		               with_weight ? weight : bias, n->name, n->name, n->name, with_weight ? "weight" : "bias");
	if (!track)
		return gt_fail(err, GT_ECONFIG,
		               "train.groups[%d].frozen_stats: expected batch normalisations with running statistics, got %s with "
		               "track_running_stats = false",
		               weight, n->name);
	return GT_OK;
}

static enum gt_code batchnorm_infer(struct gt_graph *g, struct gt_node *n, struct gt_err *err)
{
	struct gt_attr_norm *a = n->attr;
	struct gt_tdesc x = *gt_node_desc(g, n, "x");
	int64_t channels = x.dim[1];
	int still; /* index of the entry of train.groups that freezes the running statistics of n; -1: none */
	GT_TRY(find_frozen_stats_group(g, n, a->track, &still, err));
	a->train = (g->train && still < 0) || !a->track;
	/* Without running statistics, an evaluation uses the batch's variance, which is 0 for a single value. */
	if (!g->train && !a->track && gt_tdesc_count(&x) == channels)
		return gt_fail(err, GT_ECONFIG,
		               "expected more than one value per channel in an evaluation without running statistics (track_running_stats = "
		               "false), got a batch of 1: choose a data.eval_batch that leaves no last batch of 1, or track_running_stats = true");
	/* The unbiased variance of a single value would divide by 0; PyTorch rejects this batch, too. */
	if (g->train && a->train && !g->sync_bn && gt_tdesc_count(&x) == channels)
		return gt_fail(err, GT_ECONFIG,
		               "expected more than one value per channel in training, got a batch of 1: choose another batch size");
	GT_TRY(affine_params(g, n, a->affine, 1, &channels, err));
	if (a->track) {
		GT_TRY(gt_graph_param(g, n, "running_mean", GT_PARAM_BUFFER, 1, &channels, zeros, 0, 0, err));
		GT_TRY(gt_graph_param(g, n, "running_var", GT_PARAM_BUFFER, 1, &channels, ones, 0, 0, err));
		GT_TRY(gt_graph_param(g, n, "num_batches_tracked", GT_PARAM_BUFFER, 0, NULL, zeros, 0, 0, err));
		for (int i = 1; i <= 3; i++)
			g->params[g->nparams - i].group = still;
	} else {
		for (int i = 0; i < 3; i++)
			gt_node_input(n, -1);
	}
	return norm_outputs(g, n, 1, &channels, err);
}

static enum gt_code batchnorm1d_infer(struct gt_graph *g, struct gt_node *n, struct gt_err *err)
{
	GT_TRY(gt_expect_rank(g, n, 2, err));
	return batchnorm_infer(g, n, err);
}

static enum gt_code batchnorm2d_infer(struct gt_graph *g, struct gt_node *n, struct gt_err *err)
{
	GT_TRY(gt_expect_rank(g, n, 4, err));
	return batchnorm_infer(g, n, err);
}

static enum gt_code layernorm_infer(struct gt_graph *g, struct gt_node *n, struct gt_err *err)
{
	const struct gt_attr_norm *a = n->attr;
	struct gt_tdesc x = *gt_node_desc(g, n, "x");
	GT_TRY(affine_params(g, n, a->affine, x.rank - 1, x.dim + 1, err));
	return norm_outputs(g, n, 1, x.dim, err);
}

/* The operation normalises over all dimensions but the first. If the layer normalises over fewer dimensions, the dimensions before these
 * are merged into the batch. An image is first flattened and later unflattened, because NHWC has another order of elements. */
static enum gt_code layernorm_expand(struct gt_graph *g, const struct gt_layer_spec *s, const gt_vid *in, int nin, gt_vid *y,
                                     struct gt_err *err)
{
	const struct gt_attr_norm *a = s->attr;
	struct gt_tdesc x = *gt_graph_desc(g, *in);
	int dims = a->dims ? (int)a->dims : x.rank == 3 ? 1 : x.rank - 1, first = x.rank - dims;
	int64_t dim[GT_MAX_RANK] = {1};
	char buf[96];
	if (first < 1)
		return gt_fail(err, GT_ECONFIG, "dims: expected at most %d (all dimensions of the input %s except the batch), got %d", x.rank - 1,
		               gt_tdesc_text(&x, buf, sizeof buf), dims);
	if (first == 1)
		return gt_graph_apply(g, s->op, s->name, s->attr, nin, in, y, err);
	for (int i = 0; i < first; i++)
		dim[0] *= x.dim[i];
	for (int i = 0; i < dims; i++)
		dim[1 + i] = x.dim[first + i];
	*y = *in;
	if (x.rank == 4)
		GT_TRY(gt_graph_apply(g, gt_op_get(GT_OP_FLATTEN), s->name, NULL, 1, in, y, err));
	GT_TRY(gt_graph_view(g, s->name, *y, 1 + dims, dim, y, err));
	GT_TRY(gt_graph_apply(g, s->op, s->name, s->attr, 1, y, y, err));
	if (x.rank == 3)
		return gt_graph_view(g, s->name, *y, 3, x.dim, y, err);
	GT_TRY(gt_graph_view(g, s->name, *y, 2, (int64_t[]){x.dim[0], x.dim[1] * x.dim[2] * x.dim[3]}, y, err));
	return gt_graph_unflatten(g, s->name, *y, x.dim, y, err);
}

/* Returns whether the layer takes [batch, tokens, features]. */
static bool layernorm_per_token(const void *attr)
{
	(void)attr;
	return true;
}

static enum gt_code groupnorm_infer(struct gt_graph *g, struct gt_node *n, struct gt_err *err)
{
	const struct gt_attr_norm *a = n->attr;
	struct gt_tdesc x = *gt_node_desc(g, n, "x");
	if (x.dim[1] % a->groups)
		return gt_fail(err, GT_ECONFIG, "num_groups: expected a divisor of %lld, the channels of the input, got %lld", (long long)x.dim[1],
		               (long long)a->groups);
	GT_TRY(affine_params(g, n, a->affine, 1, x.dim + 1, err));
	return norm_outputs(g, n, 2, (int64_t[]){x.dim[0], a->groups}, err);
}

/* Appends the backward node, with the inputs dy, x, gamma, mean, rstd and the outputs dx, dgamma, dbeta. The node makes dx even if dx is
 * not wanted, because one pass over the data makes all three. */
static enum gt_code norm_gradient(struct gt_graph *g, struct gt_node *n, gt_vid dy, const bool *want, gt_vid *dx, enum gt_opcode code,
                                  struct gt_err *err)
{
	struct gt_node *b;
	gt_vid gamma = gt_node_operand(n, "gamma"), beta = gt_node_operand(n, "beta");
	if (!want[0] && !gt_graph_learns(g, gamma) && !gt_graph_learns(g, beta))
		return GT_OK;
	struct gt_tdesc d = *gt_node_desc(g, n, "x");
	GT_TRY(gt_backward_node(g, n, code, dy, &b, err));
	gt_node_input(b, gt_node_operand(n, "x"));
	b->ndata = 2;
	gt_node_input(b, gamma);
	gt_node_input(b, gt_node_operand(n, "mean"));
	gt_node_input(b, gt_node_operand(n, "rstd"));
	GT_TRY(gt_graph_output(g, b, "dx", &d, &dx[0], err));
	GT_TRY(gt_graph_grad(g, b, gamma, err));
	return gt_graph_grad(g, b, beta, err);
}

static enum gt_code batchnorm_gradient(GT_GRADIENT_ARGS)
{
	return norm_gradient(g, n, dy, want, dx, GT_OP_BATCHNORM_DX, err);
}

/* For gt_op.again: appends a node that recomputes y from x and the statistics mean and rstd, which the forward pass has saved. */
static enum gt_code recompute_batchnorm(struct gt_graph *g, const struct gt_node *n, struct gt_node **out, struct gt_err *err)
{
	gt_vid y;
	struct gt_tdesc d = *gt_node_desc(g, n, "y");
	GT_TRY(gt_graph_node(g, GT_OP_BATCHNORM_Y, n->name, n->attr, out, err));
	struct gt_node *c = *out;
	for (int k = 0; k < 3; k++)
		gt_node_input(c, n->in[k]);
	gt_node_input(c, gt_node_operand(n, "mean"));
	gt_node_input(c, gt_node_operand(n, "rstd"));
	if (n->nin > 6)
		gt_node_input(c, gt_node_operand(n, "res"));
	c->ndata = 1;
	return gt_graph_output(g, c, "again", &d, &y, err);
}

static enum gt_code layernorm_gradient(GT_GRADIENT_ARGS)
{
	return norm_gradient(g, n, dy, want, dx, GT_OP_LAYERNORM_DX, err);
}

static enum gt_code groupnorm_gradient(GT_GRADIENT_ARGS)
{
	return norm_gradient(g, n, dy, want, dx, GT_OP_GROUPNORM_DX, err);
}

/* Counts the operations of scale and shift, and in training the same number for the statistics. */
static double norm_flops(const struct gt_graph *g, const struct gt_node *n)
{
	const struct gt_attr_norm *a = n->attr;
	return (a->train ? 4.0 : 2.0) * (double)gt_tdesc_count(gt_node_desc(g, n, "x"));
}

static double layernorm_flops(const struct gt_graph *g, const struct gt_node *n)
{
	return 4.0 * (double)gt_tdesc_count(gt_node_desc(g, n, "x"));
}

/* Counts the operations of two sums over dy and x, and of dx, which is computed from these sums. */
static double norm_dx_flops(const struct gt_graph *g, const struct gt_node *n)
{
	return 8.0 * (double)gt_tdesc_count(gt_graph_desc(g, gt_node_first_input(n)));
}

static double batchnorm_dx_flops(const struct gt_graph *g, const struct gt_node *n)
{
	return norm_dx_flops(g, n) / (n->nin > 7 ? 2 : 1);
}

static double batchnorm_sums_flops(const struct gt_graph *g, const struct gt_node *n)
{
	return norm_dx_flops(g, n) / 2;
}

#define EPS GT_KEY(gt_attr_norm, "eps", eps, GT_ATTR_FLOAT, .def = 1e-5, .min = 0, .max = 1, .help = "value added to the variance")
#define AFFINE GT_KEY(gt_attr_norm, "affine", affine, GT_ATTR_BOOL, .def = 1, .max = 1, .help = "learn a scale and a shift")
static const struct gt_attr_def batchnorm_attrs[] = {
    EPS,
    GT_KEY(gt_attr_norm, "momentum", momentum, GT_ATTR_FLOAT, .def = 0.1, .min = 0, .max = 1,
           .help = "weight of the newest batch in the running statistics, as in PyTorch"),
    AFFINE,
    GT_KEY(gt_attr_norm, "track_running_stats", track, GT_ATTR_BOOL, .def = 1, .max = 1,
           .help = "keep running statistics for evaluation; false: an evaluation uses the statistics of each batch"),
    GT_KEYS_END,
};
static const struct gt_attr_def layernorm_attrs[] = {
    EPS,
    AFFINE,
    GT_KEY(gt_attr_norm, "dims", dims, GT_ATTR_INT, .def = 0, .min = 0, .max = 3,
           .help = "number of last dimensions that are normalised together, never the batch dimension; 0: the features of each token of "
                   "[batch, tokens, features]; for other inputs all dimensions except the batch"),
    GT_KEYS_END,
};
static const struct gt_attr_def groupnorm_attrs[] = {
    GT_KEY(gt_attr_norm, "num_groups", groups, GT_ATTR_INT, .def = GT_REQUIRED, .min = 1, .max = GT_MAX_FEATURES,
           .help = "number of groups; it must divide the number of channels; one group per channel is torch.nn.InstanceNorm2d"),
    EPS,
    AFFINE,
    GT_KEYS_END,
};

#define NORM(opcode, type, names, text, keys, infer_fn, gradient_fn, again_fn, flops_fn, ...)                                              \
	{                                                                                                                                      \
	    .code = opcode,                                                                                                                    \
	    .name = type,                                                                                                                      \
	    .help = text,                                                                                                                      \
	    .also = names,                                                                                                                     \
	    .flags = GT_OPF_LAYER | GT_OPF_CHEAP,                                                                                              \
	    .min_in = 1,                                                                                                                       \
	    .max_in = 1,                                                                                                                       \
	    .attrs = keys,                                                                                                                     \
	    .infer = infer_fn,                                                                                                                 \
	    .gradient = gradient_fn,                                                                                                           \
	    .again = again_fn,                                                                                                                 \
	    .flops = flops_fn, __VA_ARGS__                                                                                                     \
	}

static double batchnorm_y_flops(const struct gt_graph *g, const struct gt_node *n)
{
	return 2.0 * (double)gt_tdesc_count(gt_node_desc(g, n, "x"));
}

/* Returns whether a layer uses the statistics of the batch, so that the results of a sample depend on all samples. */
static bool uses_batch_statistics(const void *attr)
{
	return ((const struct gt_attr_norm *)attr)->train;
}

static double batchnorm_stats_flops(const struct gt_graph *g, const struct gt_node *n)
{
	return ((const struct gt_attr_norm *)n->attr)->empty ? 0 : batchnorm_y_flops(g, n);
}


const struct gt_op gt_ops_norm[] = {
    NORM(GT_OP_BATCHNORM, "batchnorm1d", "nn.BatchNorm1d", "batch normalisation of [batch, features]", batchnorm_attrs, batchnorm1d_infer,
         batchnorm_gradient, recompute_batchnorm, norm_flops, .mixes_samples = uses_batch_statistics),
    NORM(GT_OP_BATCHNORM, "batchnorm2d", "nn.BatchNorm2d|batchnorm|batch_norm|bn",
         "batch normalisation of [batch, channels, height, width]", batchnorm_attrs, batchnorm2d_infer, batchnorm_gradient,
         recompute_batchnorm, norm_flops, .mixes_samples = uses_batch_statistics),
    NORM(GT_OP_LAYERNORM, NULL, "nn.LayerNorm|layer_norm",
         "normalises each sample over all its dimensions, or each token over its features", layernorm_attrs, layernorm_infer,
         layernorm_gradient, NULL, layernorm_flops,
         .per_token = layernorm_per_token, .expand = layernorm_expand),
    NORM(GT_OP_GROUPNORM, NULL, "nn.GroupNorm|group_norm|gn|instancenorm2d|instance_norm|instancenorm",
         "normalises groups of neighbouring channels of each sample (torch.nn.GroupNorm)", groupnorm_attrs, groupnorm_infer,
         groupnorm_gradient, NULL, layernorm_flops),
    {.code = GT_OP_BATCHNORM_Y, .flags = GT_OPF_CHEAP, .flops = batchnorm_y_flops},
    {.code = GT_OP_BATCHNORM_DX, .flags = GT_OPF_INPLACE, .inplace2 = {4, 1}, .flops = batchnorm_dx_flops},
    {.code = GT_OP_BATCHNORM_STATS, .flags = GT_OPF_ONCE, .flops = batchnorm_stats_flops},
    {.code = GT_OP_BATCHNORM_MERGE, .flags = GT_OPF_ONCE, .flops = gt_flops_none},
    {.code = GT_OP_BATCHNORM_SUMS, .flops = batchnorm_sums_flops},
    {.code = GT_OP_LAYERNORM_DX, .flops = norm_dx_flops},
    {.code = GT_OP_GROUPNORM_DX, .flops = norm_dx_flops},
    GT_OPS_END,
};
