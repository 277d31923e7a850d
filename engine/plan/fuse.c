#include "plan/fuse.h"
#include "ir/op.h"

/* The only node that reads v, or -1. */
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

static void absorb(struct gt_node *n)
{
	n->op = gt_op_get(GT_OP_IDENTITY);
	n->attr = NULL;
	n->nin = n->ndata = 1;
}

/* linear → relu, conv2d → relu: relu of the sum before it is stored. The gradient of relu needs its output only. */
static bool act_epilogue(struct gt_graph *g, int i)
{
	struct gt_node *n = &g->nodes[i];
	int r = sole_reader(g, n->out[0]);
	if (r < 0 || g->nodes[r].op->code != GT_OP_RELU)
		return false;
	if (n->op->code == GT_OP_LINEAR)
		((struct gt_attr_linear *)n->attr)->act = GT_ACT_RELU;
	else
		((struct gt_attr_conv2d *)n->attr)->act = GT_ACT_RELU;
	absorb(&g->nodes[r]);
	return true;
}

/* linear.dx → relu.dx: the mask of the layer before, put on as dx is stored. */
static bool mask_epilogue(struct gt_graph *g, int i)
{
	struct gt_node *n = &g->nodes[i];
	int r = sole_reader(g, n->out[0]);
	if (n->nin != 2 || r < 0 || g->nodes[r].op->code != GT_OP_RELU_DX || g->nodes[r].in[0] != n->out[0])
		return false;
	gt_node_input(n, g->nodes[r].in[1]);
	absorb(&g->nodes[r]);
	return true;
}

static const struct {
	enum gt_opcode code; /* of the node that absorbs */
	bool (*apply)(struct gt_graph *g, int node);
} patterns[] = {
	{GT_OP_LINEAR, act_epilogue},
	{GT_OP_CONV2D, act_epilogue},
	{GT_OP_LINEAR_DX, mask_epilogue},
};

int gt_graph_fuse(struct gt_graph *g)
{
	int n = 0;
	for (int i = 0; i < g->nnodes; i++)
		for (size_t p = 0; p < sizeof patterns / sizeof *patterns; p++)
			if (g->nodes[i].op->code == patterns[p].code)
				n += patterns[p].apply(g, i);
	return n;
}
