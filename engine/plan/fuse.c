/* The patterns of fusion. Each pattern merges two nodes: it sets an attribute of one node or appends an operand to it, and turns the other
 * node into an identity. */
#include "plan/fuse.h"
#include "ir/op.h"

/* Returns the index of the node that reads v, if exactly one node reads it; otherwise -1. */
static int sole_reader(const struct gt_graph *g, gt_vid v)
{
	int reader = -1;
	if (v < 0 || v == g->output)
		return -1;
	for (int i = 0; i < g->nnodes; i++)
		for (int k = 0; k < g->nodes[i].nin; k++)
			if (g->nodes[i].in[k] == v) {
				if (reader >= 0)
					return -1;
				reader = i;
			}
	return reader;
}

/* Turns a node whose work another node now does into an identity of its first input. */
static void make_identity(struct gt_node *n)
{
	n->op = gt_op_get(GT_OP_IDENTITY);
	n->attr = NULL;
	n->nin = n->ndata = 1;
}

/* Pattern linear → relu or conv2d → relu: the first node applies the relu before it stores a sum. The gradient of relu needs only the
 * output of relu. */
static enum gt_code act_epilogue(struct gt_graph *g, int i, struct gt_err *err)
{
	struct gt_node *n = &g->nodes[i];
	int r = sole_reader(g, gt_node_first_output(n));
	(void)err;
	if (r < 0 || g->nodes[r].op->code != GT_OP_RELU)
		return GT_OK;
	if (n->op->code == GT_OP_LINEAR)
		((struct gt_attr_linear *)n->attr)->act = GT_ACT_RELU;
	else
		((struct gt_attr_conv2d *)n->attr)->act = GT_ACT_RELU;
	make_identity(&g->nodes[r]);
	return GT_OK;
}

/* Pattern linear.dx → relu.dx: linear.dx applies the relu mask of the preceding layer when it stores dx. */
static enum gt_code mask_epilogue(struct gt_graph *g, int i, struct gt_err *err)
{
	struct gt_node *n = &g->nodes[i];
	int r = sole_reader(g, gt_node_first_output(n));
	(void)err;
	if (n->nin != 2 || r < 0 || g->nodes[r].op->code != GT_OP_RELU_DX || gt_node_operand(&g->nodes[r], "dy") != gt_node_operand(n, "dx"))
		return GT_OK;
	gt_node_input(n, gt_node_operand(&g->nodes[r], "y"));
	make_identity(&g->nodes[r]);
	return GT_OK;
}

/* Returns the index of the relu.dx node whose mask is y; -1: no such node. */
static int relu_gradient(const struct gt_graph *g, gt_vid y)
{
	for (int i = 0; i < g->nnodes; i++)
		if (g->nodes[i].op->code == GT_OP_RELU_DX && gt_node_operand(&g->nodes[i], "y") == y)
			return i;
	return -1;
}

/* Fuses the gradient after batchnorm_epilogue: merges relu.dx (node r) into the batchnorm.dx that reads its result. If the batch
 * normalisation adds a residual, other nodes also read the masked gradient, so batchnorm.dx then writes it, too. */
static enum gt_code batchnorm_mask(struct gt_graph *g, const struct gt_node *bn, int r, bool residual, struct gt_err *err)
{
	struct gt_node *relu = &g->nodes[r];
	gt_vid masked = gt_node_operand(relu, "dx"), dy = gt_node_operand(relu, "dy"), y = gt_node_operand(relu, "y"), unused;
	int dx = r + 1;
	while (dx < g->nnodes && gt_node_first_input(&g->nodes[dx]) != masked)
		dx++;
	if (dx == g->nnodes || g->nodes[dx].op->code != GT_OP_BATCHNORM_DX || g->nodes[dx].nin != 5 ||
	    gt_node_operand(&g->nodes[dx], "x") != gt_node_operand(bn, "x"))
		return GT_OK;
	bool sole = sole_reader(g, masked) == dx;
	if (!sole && !residual)
		return GT_OK;
	/* if a node before batchnorm.dx reads the masked gradient, which batchnorm.dx would make, the nodes are not fused */
	for (int i = r + 1; i < dx; i++)
		for (int k = 0; k < g->nodes[i].nin; k++)
			if (g->nodes[i].in[k] == masked)
				return GT_OK;
	gt_node_input(&g->nodes[dx], gt_node_operand(bn, "beta"));
	if (residual)
		gt_node_input(&g->nodes[dx], y);
	if (!sole) {
		struct gt_tdesc d = g->values[masked].desc;
		GT_TRY(gt_graph_value(g, "unmasked", GT_V_ACT, &d, &unused, err));
		g->values[unused].producer = r;
		gt_node_replace(relu, "dx", unused);
		gt_node_replace(&g->nodes[dx], "dy", dy);
		g->nodes[dx].out[g->nodes[dx].nout++] = masked;
		g->values[masked].producer = dx;
	}
	make_identity(relu);
	return GT_OK;
}

/* Patterns batchnorm → relu, batchnorm → add → relu, batchnorm → add: one node makes one pass over the tensor instead of two or three. */
static enum gt_code batchnorm_epilogue(struct gt_graph *g, int i, struct gt_err *err)
{
	struct gt_node *n = &g->nodes[i];
	gt_vid y = gt_node_operand(n, "y");
	int r = sole_reader(g, y);
	bool residual = false;
	if (r >= 0 && g->nodes[r].op->code == GT_OP_ADD && g->nodes[r].nin == 2) {
		struct gt_node *add = &g->nodes[r];
		gt_vid other = gt_graph_source(g, gt_node_operand(add, gt_node_operand(add, "a") == y ? "b" : "a"));
		if (other == y || g->values[other].producer >= i || n->nin != 6)
			return GT_OK;
		gt_node_input(n, other);
		gt_node_replace(add, "a", y);
		make_identity(add);
		residual = true;
		y = gt_node_first_output(add);
		r = sole_reader(g, y);
		if (g->train && r < 0) /* several nodes read the sum, so a relu after it is not fused */
			return GT_OK;
	}
	if (r < 0 || g->nodes[r].op->code != GT_OP_RELU)
		return GT_OK;
	((struct gt_attr_norm *)n->attr)->act = GT_ACT_RELU;
	make_identity(&g->nodes[r]);
	int gradient = relu_gradient(g, gt_node_first_output(&g->nodes[r]));
	return gradient < 0 ? GT_OK : batchnorm_mask(g, &g->nodes[i], gradient, residual, err);
}

static const struct {
	enum gt_opcode code; /* opcode of the node that absorbs a neighbouring node */
	enum gt_code (*apply)(struct gt_graph *g, int node, struct gt_err *err);
} patterns[] = {
	{GT_OP_LINEAR, act_epilogue},
	{GT_OP_CONV2D, act_epilogue},
	{GT_OP_LINEAR_DX, mask_epilogue},
	{GT_OP_BATCHNORM, batchnorm_epilogue},
};

enum gt_code gt_graph_fuse(struct gt_graph *g, struct gt_err *err)
{
	for (int i = 0; i < g->nnodes; i++)
		for (size_t p = 0; p < sizeof patterns / sizeof *patterns; p++)
			if (g->nodes[i].op->code == patterns[p].code)
				GT_TRY(patterns[p].apply(g, i, err));
	return GT_OK;
}
