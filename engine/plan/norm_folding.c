/* Folds batch normalisations into the layers before them. With running statistics, a batch normalisation multiplies each channel by a
 * constant and adds another. So does a convolution or a linear layer with other weights and another bias:
 *
 *	conv(x, w, b) -> batchnorm(gamma, beta, mean, var)      becomes      conv(x, w * s, beta + (b - mean) * s),  s = gamma / sqrt(var + eps)
 *
 * The results differ by rounding, so only f32 is folded: 16-bit weights would be rounded a second time. */
#include "plan/plan_parts.h"
#include "ir/op.h"

static int param_of(const struct gt_graph *g, gt_vid v)
{
	return v < 0 ? -1 : g->values[v].param;
}

/* Returns how often the nodes of g read parameter i. */
static int count_uses(const struct gt_graph *g, int i)
{
	int n = 0;
	for (int k = 0; k < g->nnodes; k++)
		for (int j = 0; j < g->nodes[k].nin; j++)
			n += param_of(g, g->nodes[k].in[j]) == i;
	return n;
}

/* Returns the index of the node into which the batch normalisation, node i, can be folded; -1: there is no such node. */
static int find_layer(const struct gt_graph *g, int i)
{
	const struct gt_node *bn = &g->nodes[i];
	const struct gt_attr_norm *a = bn->attr;
	int p = gt_fusion_sole_source(g, gt_node_operand(bn, "x"), i);
	if (a->train || gt_node_operand(bn, "rmean") < 0 || p < 0)
		return -1;
	const struct gt_node *n = &g->nodes[p];
	bool conv = n->op->code == GT_OP_CONV2D;
	if ((!conv && n->op->code != GT_OP_LINEAR) || n->nout > 1 || (conv && gt_node_operand(n, "res") >= 0))
		return -1;
	if (!conv && (a->act > GT_ACT_RELU || gt_node_operand(bn, "res") >= 0))
		return -1;
	int act = conv ? ((const struct gt_attr_conv2d *)n->attr)->act : ((const struct gt_attr_linear *)n->attr)->act;
	int w = param_of(g, gt_node_operand(n, "w"));
	int mean = param_of(g, gt_node_operand(bn, "rmean"));
	return act || w < 0 || g->params[w].tied || count_uses(g, w) > 1 || count_uses(g, mean) > 1 ? -1 : p;
}

/* Sets *out to a copy of layer n that also does the work of the batch normalisation bn: with its activation, its residual and its output,
 * and with its running mean as the bias. */
static enum gt_code make_folded(struct gt_graph *g, const struct gt_node *n, const struct gt_node *bn, struct gt_node *out,
                                struct gt_err *err)
{
	int act = ((const struct gt_attr_norm *)bn->attr)->act;
	*out = *n;
	if (n->op->code == GT_OP_CONV2D) {
		struct gt_attr_conv2d *attr;
		GT_NEW(attr, g->arena, 1, err);
		*attr = *(const struct gt_attr_conv2d *)n->attr;
		attr->act = act;
		attr->bias = true;
		out->attr = attr;
	} else {
		struct gt_attr_linear *attr;
		GT_NEW(attr, g->arena, 1, err);
		*attr = *(const struct gt_attr_linear *)n->attr;
		attr->act = act;
		attr->bias = true;
		out->attr = attr;
	}
	out->nin = 2;
	gt_node_input(out, gt_node_operand(bn, "rmean"));
	if (gt_node_operand(bn, "res") >= 0)
		gt_node_input(out, gt_node_operand(bn, "res"));
	gt_node_replace(out, "y", gt_node_operand(bn, "y"));
	return GT_OK;
}

/* Returns whether g folds the batch normalisation whose running mean is parameter `mean`. */
static bool has_fold(const struct gt_graph *g, int mean)
{
	for (int i = 0; i < g->nfolds; i++)
		if (g->fold[i].mean == mean)
			return true;
	return false;
}

enum gt_code gt_plan_fold_norms(struct gt_space *s, struct gt_graph *g, const struct gt_graph *like, bool deterministic, struct gt_err *err)
{
	struct gt_fusion f = {.space = s, .g = g, .deterministic = deterministic};
	if (!s->be->folds_norms || !s->constant || g->train || g->compute != GT_F32)
		return GT_OK;
	GT_NEW(g->fold, g->arena, g->nnodes + 1, err);
	for (int i = g->nnodes - 1; i >= 0; i--) { /* visits the last node first, because folding removes earlier nodes */
		int p = i < g->nnodes && g->nodes[i].op->code == GT_OP_BATCHNORM ? find_layer(g, i) : -1;
		struct gt_node folded;
		if (p < 0)
			continue;
		const struct gt_node *n = &g->nodes[p], *bn = &g->nodes[i];
		bool yes = like && has_fold(like, param_of(g, gt_node_operand(bn, "rmean")));
		GT_TRY(make_folded(g, n, bn, &folded, err));
		if (!like)
			GT_TRY(gt_fusion_offered(&f, &folded, &yes, err));
		if (!yes)
			continue;
		g->fold[g->nfolds++] = (struct gt_norm_fold){.w = param_of(g, gt_node_operand(n, "w")),
		                                             .b = param_of(g, gt_node_operand(n, "b")),
		                                             .gamma = param_of(g, gt_node_operand(bn, "gamma")),
		                                             .beta = param_of(g, gt_node_operand(bn, "beta")),
		                                             .mean = param_of(g, gt_node_operand(bn, "rmean")),
		                                             .var = param_of(g, gt_node_operand(bn, "rvar")),
		                                             .eps = ((const struct gt_attr_norm *)bn->attr)->eps};
		gt_fusion_put(g, i, &folded);
		gt_fusion_drop(g, p);
	}
	return GT_OK;
}
