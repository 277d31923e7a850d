/* A pattern of backend fusion (backend_fusion.c) for inferences: a 1x1 convolution, and the depthwise convolution that alone reads its
 * output, become one call, which does not store the tensor between them. The results have the bits of the backend's own kernels for both
 * calls; where a library would compute one of them, they differ by rounding. Only some backends have such kernels. Residuals and
 * activations are fused before (epilogue_fusion.c): the call has the attributes of both convolutions. */
#include "plan/plan_parts.h"
#include "ir/op.h"

/* Returns the index of the node that makes value v, if it is a convolution without a residual and only node i reads v or an alias of v;
 * else -1. */
static int find_first(const struct gt_graph *g, gt_vid v, int i)
{
	int p = g->values[v].producer;
	if (p < 0 || g->nodes[p].op->code != GT_OP_CONV2D || gt_node_operand(&g->nodes[p], "res") >= 0 || gt_graph_source(g, g->output) == v)
		return -1;
	for (int k = 0; k < g->nnodes; k++)
		for (int o = 0; o < g->nodes[k].nin && k != i && !gt_node_alias(g, &g->nodes[k]); o++)
			if (gt_graph_source(g, g->nodes[k].in[o]) == v)
				return -1;
	return p;
}

enum gt_code gt_fuse_conv_pair(struct gt_fusion *f, int i, struct gt_err *err)
{
	struct gt_graph *g = f->g;
	struct gt_node n = g->nodes[i];
	const struct gt_attr_conv2d *second = n.attr;
	gt_vid x = gt_graph_source(g, gt_node_operand(&n, "x"));
	if (!f->space->constant || g->train || second->groups < 2 || gt_node_operand(&n, "res") >= 0)
		return GT_OK;
	int p = find_first(g, x, i);
	if (p < 0)
		return GT_OK;
	const struct gt_node *first = &g->nodes[p];
	gt_vid w = gt_node_operand(&n, "w"), b = gt_node_operand(&n, "b");
	struct gt_attr_conv_pair *attr;
	bool yes;
	GT_NEW(attr, g->arena, 1, err);
	attr->first = *(const struct gt_attr_conv2d *)first->attr;
	attr->second = *second;
	n.op = gt_op_get(GT_OP_CONV2D_PAIR);
	n.attr = attr;
	n.nin = 0;
	gt_node_input(&n, gt_node_operand(first, "x"));
	gt_node_input(&n, gt_node_operand(first, "w"));
	gt_node_input(&n, gt_node_operand(first, "b"));
	gt_node_input(&n, w);
	gt_node_input(&n, b);
	GT_TRY(gt_fusion_offered(f, &n, &yes, err));
	if (!yes)
		return GT_OK;
	gt_fusion_put(g, i, &n);
	for (int k = i - 1; k > p; k--) /* also removes the aliases of x, which no node makes any more */
		if (gt_node_alias(g, &g->nodes[k]) && gt_graph_source(g, gt_node_first_input(&g->nodes[k])) == x)
			gt_fusion_drop(g, k);
	gt_fusion_drop(g, p);
	return GT_OK;
}
