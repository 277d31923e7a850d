/* Backend fusion: replaces neighbouring nodes by one node that computes the same, if the backend has a kernel for it. The fusions of fuse.h
 * are supported by every backend and give bit-identical results. A backend fusion may round differently, because it may change the order of
 * sums. */
#include "plan/plan_parts.h"
#include "ir/op.h"
#include <string.h>

/* ---- asking the backend ------------------------------------------------------------------------------------------------------------ */
/* Returns the description of value v that lower.c will pass to the backend. The layout of a parameter is the layout that a kernel has
 * chosen, or gt_tdesc.any if no kernel has chosen yet. */
static struct gt_tdesc desc_of(const struct gt_fusion *f, gt_vid v)
{
	const struct gt_value *val = &f->g->values[v];
	struct gt_tdesc d = val->desc;
	if (val->kind != GT_V_PARAM && val->kind != GT_V_WORK && val->kind != GT_V_GRAD)
		return d;
	if (f->space->layout.param)
		d = f->space->layout.param[val->param].desc;
	else
		d.any = f->g->params[val->param].cls == GT_PARAM_WEIGHT && d.rank >= 2 && !f->g->params[val->param].tied;
	d.dtype = val->desc.dtype;
	return d;
}

enum gt_code gt_fusion_offered(const struct gt_fusion *f, const struct gt_node *n, bool *yes, struct gt_err *err)
{
	struct gt_tdesc in[GT_MAX_IO], out[GT_MAX_IO];
	struct gt_opcall oc = {.code = n->op->code,
	                       .name = n->name,
	                       .attr = n->attr,
	                       .nin = n->nin,
	                       .nout = n->nout,
	                       .deterministic = f->deterministic,
	                       .constant = f->space->constant};
	for (int i = 0; i < n->nin; i++)
		if (n->in[i] >= 0) {
			in[i] = desc_of(f, n->in[i]);
			oc.in[i] = &in[i];
		}
	for (int i = 0; i < n->nout; i++)
		if (n->out[i] >= 0) {
			out[i] = desc_of(f, n->out[i]);
			oc.out[i] = &out[i];
			if (f->accumulate && f->g->values[n->out[i]].kind == GT_V_GRAD)
				oc.accumulate |= 1u << i;
		}
	return gt_call_supported(f->space, &oc, yes, err);
}

/* ---- rewriting --------------------------------------------------------------------------------------------------------------------- */
void gt_fusion_drop(struct gt_graph *g, int gone)
{
	memmove(&g->nodes[gone], &g->nodes[gone + 1], (size_t)(g->nnodes - gone - 1) * sizeof *g->nodes);
	g->nnodes--;
	for (gt_vid v = 0; v < g->nvalues; v++)
		if (g->values[v].producer > gone)
			g->values[v].producer--;
}

void gt_fusion_put(struct gt_graph *g, int i, const struct gt_node *n)
{
	g->nodes[i] = *n;
	for (int k = 0; k < n->nout; k++)
		if (n->out[k] >= 0)
			g->values[n->out[k]].producer = i;
}

/* ---- patterns: each function tries to rewrite node i; the table below names the opcode of node i. norm_fusion.c has more patterns -- */
/* Merges linear.dw and linear.dx of one layer (the gradients of its weights and of its input) into linear.back, which reads dy once. */
static enum gt_code both_gradients(struct gt_fusion *f, int i, struct gt_err *err)
{
	struct gt_graph *g = f->g;
	const struct gt_node *dx = &g->nodes[i];
	int dw = i - 1;
	(void)err;
	while (dw >= 0 && !(g->nodes[dw].op->code == GT_OP_LINEAR_DW && gt_node_operand(&g->nodes[dw], "dy") == gt_node_operand(dx, "dy")))
		dw--;
	if (dw < 0 || g->nodes[dw].layer != dx->layer || g->nodes[dw].deferred != dx->deferred ||
	    gt_node_operand(&g->nodes[dw], "dw") < 0)
		return GT_OK;
	/* the gradient of a tied parameter is the sum of several such nodes, which are adjacent in the list */
	if (g->params[g->values[gt_node_operand(&g->nodes[dw], "dw")].param].tied)
		return GT_OK;
	struct gt_node n = *dx;
	n.op = gt_op_get(GT_OP_LINEAR_BACK);
	n.nin = n.nout = n.ndata = 0;
	gt_node_input(&n, gt_node_operand(dx, "dy"));
	gt_node_input(&n, gt_node_operand(&g->nodes[dw], "x"));
	n.ndata = 2;
	gt_node_input(&n, gt_node_operand(dx, "w"));
	if (gt_node_operand(dx, "y") >= 0)
		gt_node_input(&n, gt_node_operand(dx, "y"));
	n.out[n.nout++] = gt_node_operand(dx, "dx");
	for (int k = 0; k < g->nodes[dw].nout; k++)
		n.out[n.nout++] = g->nodes[dw].out[k];
	bool yes;
	GT_TRY(gt_fusion_offered(f, &n, &yes, err));
	if (!yes)
		return GT_OK;
	gt_fusion_put(g, i, &n);
	gt_fusion_drop(g, dw);
	return GT_OK;
}

/* If linear.dx masks its result by the output of a relu that is fused into a linear node, makes that node also write one bit for each
 * output element, and masks by these bits. */
static enum gt_code mask_of_bits(struct gt_fusion *f, int i, struct gt_err *err)
{
	struct gt_graph *g = f->g;
	gt_vid y = gt_graph_source(g, gt_node_operand(&g->nodes[i], "y")), mask;
	int p = y < 0 ? -1 : g->values[y].producer;
	if (p < 0 || g->nodes[p].op->code != GT_OP_LINEAR || ((const struct gt_attr_linear *)g->nodes[p].attr)->act != GT_ACT_RELU)
		return GT_OK;
	/* copies that the pattern changes; if the backend refuses them, the graph keeps the original nodes */
	struct gt_node linear = g->nodes[p], dx = g->nodes[i];
	const struct gt_tdesc *d = gt_graph_desc(g, y);
	if (linear.nout > 1) {
		mask = gt_node_operand(&linear, "mask");
	} else {
		const char *name;
		struct gt_tdesc bits = gt_tdesc_make(GT_U8, 2, (int64_t[]){d->dim[0], gt_mask_bytes(d->dim[1])}, false);
		GT_NEW_STR(name, gt_arena_printf(g->arena, "%s.mask", g->values[y].name), err);
		GT_TRY(gt_graph_value(g, name, GT_V_ACT, &bits, &mask, err));
		linear.out[linear.nout++] = mask;
	}
	gt_node_replace(&dx, "y", mask);
	bool yes;
	GT_TRY(gt_fusion_offered(f, &linear, &yes, err));
	if (yes)
		GT_TRY(gt_fusion_offered(f, &dx, &yes, err));
	if (!yes)
		return GT_OK;
	g->nodes[p] = linear;
	g->values[mask].producer = p;
	g->nodes[i] = dx;
	return GT_OK;
}

/* Merges the last layer and the loss, so that the loss reads the layer's output from registers. */
static enum gt_code layer_and_loss(struct gt_fusion *f, int i, struct gt_err *err)
{
	struct gt_graph *g = f->g;
	const struct gt_node *loss = &g->nodes[i];
	gt_vid y = gt_graph_source(g, gt_node_operand(loss, "x"));
	int p = y < 0 ? -1 : g->values[y].producer;
	struct gt_attr_linear_loss *attr;
	if (p < 0 || g->nodes[p].op->code != GT_OP_LINEAR || g->nodes[p].nout > 1 || ((const struct gt_attr_linear *)g->nodes[p].attr)->act)
		return GT_OK;
	if (((const struct gt_attr_loss *)loss->attr)->nweights || gt_node_desc(g, loss, "target")->dtype != GT_I32)
		return GT_OK;
	for (int k = p + 1; k < i; k++) /* no node between the two, except aliases, may read y */
		if (!gt_node_alias(g, &g->nodes[k]))
			for (int o = 0; o < g->nodes[k].nin; o++)
				if (gt_graph_source(g, g->nodes[k].in[o]) == y)
					return GT_OK;
	GT_NEW(attr, g->arena, 1, err);
	attr->linear = *(const struct gt_attr_linear *)g->nodes[p].attr;
	attr->code = loss->op->code;
	attr->loss = *(const struct gt_attr_loss *)loss->attr;
	struct gt_node n = g->nodes[p];
	n.op = gt_op_get(GT_OP_LINEAR_LOSS);
	n.attr = attr;
	n.nin = 2;
	gt_node_input(&n, gt_node_operand(&g->nodes[p], "b"));
	gt_node_input(&n, gt_node_operand(loss, "target"));
	if (gt_node_operand(loss, "scale") >= 0)
		gt_node_input(&n, gt_node_operand(loss, "scale"));
	for (int k = 0; k < loss->nout; k++)
		n.out[n.nout++] = loss->out[k];
	bool yes;
	GT_TRY(gt_fusion_offered(f, &n, &yes, err));
	if (!yes)
		return GT_OK;
	gt_fusion_put(g, i, &n);
	/* aliases of y may now precede the node that makes y; this is allowed, because aliases have no memory of their own */
	gt_fusion_drop(g, p);
	return GT_OK;
}

static const struct {
	enum gt_opcode code;
	enum gt_code (*apply)(struct gt_fusion *f, int node, struct gt_err *err);
} patterns[] = {
	{GT_OP_LINEAR_DX, both_gradients}, /* precedes mask_of_bits, which adds an operand to linear.dx */
	{GT_OP_LINEAR_DX, mask_of_bits},
	{GT_OP_CROSS_ENTROPY, layer_and_loss},
	{GT_OP_NLL, layer_and_loss},
	{GT_OP_MSE, layer_and_loss},
	{GT_OP_MAXPOOL2D_DX, gt_fuse_pool_indices},
	{GT_OP_MAXPOOL2D, gt_fuse_pool_without_indices},
	{GT_OP_ADAPTIVE_MAXPOOL2D, gt_fuse_pool_without_indices},
	{GT_OP_GELU, gt_fuse_gelu_of_norm},
	{GT_OP_ADD, gt_fuse_sum_of_gradients}, /* follows gt_fuse_gelu_of_norm, because it adds operands to batchnorm.dx */
	{GT_OP_BATCHNORM_DX, gt_fuse_output_again},
	{GT_OP_ADD, gt_fuse_sum_of_conv},
	{GT_OP_RELU, gt_fuse_act_of_conv}, /* activations are fused after the sum, because they apply to its result */
	{GT_OP_RELU6, gt_fuse_act_of_conv},
	{GT_OP_GELU, gt_fuse_act_of_conv},
	{GT_OP_SILU, gt_fuse_act_of_conv},
	{GT_OP_HARDSWISH, gt_fuse_act_of_conv},
	{GT_OP_CONV2D, gt_fuse_conv_pair}, /* follows the fusions of activations, which both convolutions keep */
};

enum gt_code gt_plan_fuse_for_backend(struct gt_space *s, struct gt_graph *g, bool accumulate, bool deterministic, struct gt_err *err)
{
	struct gt_fusion f = {.space = s, .g = g, .accumulate = accumulate, .deterministic = deterministic};
	for (size_t p = 0; p < sizeof patterns / sizeof *patterns; p++)
		for (int i = g->nnodes - 1; i >= 0; i--) /* from the last node to the first, because a pattern may remove an earlier node */
			if (i < g->nnodes && g->nodes[i].op->code == patterns[p].code)
				GT_TRY(patterns[p].apply(&f, i, err));
	return GT_OK;
}
