/* Patterns of backend fusion (backend_fusion.c) for evaluations: a convolution adds a residual and applies an activation to its output
 * while it is in a cache or in registers. The gradients of these activations need their input, so training graphs keep the nodes. */
#include "plan/plan_parts.h"
#include "ir/op.h"

int gt_fusion_sole_source(const struct gt_graph *g, gt_vid v, int reader)
{
	if (v < 0 || v == g->output)
		return -1;
	for (int i = 0; i < g->nnodes; i++)
		for (int k = 0; k < g->nodes[i].nin; k++)
			if (g->nodes[i].in[k] == v && i != reader)
				return -1;
	return g->values[v].producer;
}

/* Sets *p to the index of the convolution whose output v only node i reads, and *conv to a copy of it with its own attributes; *p is -1 if
 * there is no such convolution, or if it has an activation. */
static enum gt_code find_conv(struct gt_graph *g, gt_vid v, int i, int *p, struct gt_node *conv, struct gt_err *err)
{
	struct gt_attr_conv2d *attr;
	*p = g->train ? -1 : gt_fusion_sole_source(g, v, i);
	if (*p >= 0 && (g->nodes[*p].op->code != GT_OP_CONV2D || ((const struct gt_attr_conv2d *)g->nodes[*p].attr)->act))
		*p = -1;
	if (*p < 0)
		return GT_OK;
	GT_NEW(attr, g->arena, 1, err);
	*conv = g->nodes[*p];
	*attr = *(const struct gt_attr_conv2d *)conv->attr;
	conv->attr = attr;
	return GT_OK;
}

/* If the backend accepts conv, a changed copy of node p, replaces node i by it and removes node p. Sets *yes to whether it did so. */
static enum gt_code replace_by_conv(struct gt_fusion *f, int i, int p, const struct gt_node *conv, bool *yes, struct gt_err *err)
{
	GT_TRY(gt_fusion_offered(f, conv, yes, err));
	if (*yes) {
		gt_fusion_put(f->g, i, conv);
		gt_fusion_drop(f->g, p);
	}
	return GT_OK;
}

/* Pattern conv2d → add: the convolution adds the other operand of the sum, which becomes its residual operand. */
enum gt_code gt_fuse_sum_of_conv(struct gt_fusion *f, int i, struct gt_err *err)
{
	struct gt_graph *g = f->g;
	struct gt_node add = g->nodes[i], conv;
	bool yes = false;
	for (int k = 1; k >= 0 && add.nin == 2 && add.in[0] != add.in[1] && !yes; k--) {
		int p;
		GT_TRY(find_conv(g, add.in[k], i, &p, &conv, err));
		if (p < 0 || gt_node_operand(&conv, "res") >= 0)
			continue;
		while (conv.nin < 3)
			gt_node_input(&conv, -1);
		gt_node_input(&conv, add.in[1 - k]);
		gt_node_replace(&conv, "y", gt_node_operand(&add, "y"));
		GT_TRY(replace_by_conv(f, i, p, &conv, &yes, err));
	}
	return GT_OK;
}

/* Returns the fused activation (enum gt_act) that computes the same as node n. */
static int act_of(const struct gt_node *n)
{
	switch (n->op->code) {
	case GT_OP_RELU: return GT_ACT_RELU;
	case GT_OP_RELU6: return GT_ACT_RELU6;
	case GT_OP_SILU: return GT_ACT_SILU;
	case GT_OP_HARDSWISH: return GT_ACT_HARDSWISH;
	case GT_OP_GELU: return ((const struct gt_attr_gelu *)n->attr)->approximate ? GT_ACT_GELU_TANH : GT_ACT_GELU;
	default: return GT_ACT_NONE;
	}
}

/* conv2d → activation. */
enum gt_code gt_fuse_act_of_conv(struct gt_fusion *f, int i, struct gt_err *err)
{
	struct gt_graph *g = f->g;
	struct gt_node act = g->nodes[i], conv;
	int p;
	bool yes;
	GT_TRY(find_conv(g, gt_node_first_input(&act), i, &p, &conv, err));
	if (p < 0)
		return GT_OK;
	((struct gt_attr_conv2d *)conv.attr)->act = act_of(&act);
	gt_node_replace(&conv, "y", gt_node_first_output(&act));
	return replace_by_conv(f, i, p, &conv, &yes, err);
}
