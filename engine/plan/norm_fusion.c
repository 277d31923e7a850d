/* Patterns of backend fusion (backend_fusion.c) for batch normalisation and pooling. The results are the same, bit for bit, but only some
 * backends have the kernels. */
#include "plan/plan_parts.h"
#include "ir/op.h"
#include <string.h>

/* ---- batch normalisation ------------------------------------------------------------------------------------------------------- */
/* Replaces the attributes of n by a copy that has the fused activation `act`. */
static enum gt_code norm_with(struct gt_graph *g, struct gt_node *n, int act, struct gt_err *err)
{
	struct gt_attr_norm *attr;
	GT_NEW(attr, g->arena, 1, err);
	*attr = *(const struct gt_attr_norm *)n->attr;
	attr->act = act;
	n->attr = attr;
	return GT_OK;
}

/* Counts how often nodes read value v or an alias of v. Alias nodes are not counted; the model's output is counted as a read. Sets *first
 * to the first such node, or -1. */
static int count_readers(const struct gt_graph *g, gt_vid v, int *first)
{
	int n = gt_graph_source(g, g->output) == v;
	*first = -1;
	for (int i = 0; i < g->nnodes; i++)
		for (int k = 0; k < g->nodes[i].nin && !gt_node_alias(g, &g->nodes[i]); k++)
			if (gt_graph_source(g, g->nodes[i].in[k]) == v) {
				*first = *first < 0 ? i : *first;
				n++;
			}
	return n;
}

/* Returns the index of the node gelu.dx that reads y, the output of a batch normalisation; -1: no such node; -2: a node other than gelu.dx
 * and the gelu reads y. */
static int gelu_gradient(const struct gt_graph *g, gt_vid y, int gelu)
{
	int found = g->output == y ? -2 : -1;
	for (int i = 0; i < g->nnodes; i++)
		for (int k = 0; k < g->nodes[i].nin; k++)
			if (g->nodes[i].in[k] == y && i != gelu)
				found = g->nodes[i].op->code == GT_OP_GELU_DX && k == 1 && found == -1 ? i : -2;
	return found;
}

/* batchnorm → gelu and gelu.dx → batchnorm.dx: the normalisation writes only the gelu of its result. Its gradient computes the result again
 * from x, which it reads anyway. The results are the same, bit for bit. */
enum gt_code gt_fuse_gelu_of_norm(struct gt_fusion *f, int i, struct gt_err *err)
{
	struct gt_graph *g = f->g;
	gt_vid y = gt_node_operand(&g->nodes[i], "x");
	int p = g->values[y].producer, act = ((const struct gt_attr_gelu *)g->nodes[i].attr)->approximate ? GT_ACT_GELU_TANH : GT_ACT_GELU;
	bool again = p >= 0 && g->nodes[p].op->code == GT_OP_BATCHNORM_Y, yes;
	if (p < 0 || (!again && g->nodes[p].op->code != GT_OP_BATCHNORM) || gt_node_operand(&g->nodes[p], "res") >= 0 ||
	    ((const struct gt_attr_norm *)g->nodes[p].attr)->act != GT_ACT_NONE)
		return GT_OK;
	int mask = gelu_gradient(g, y, i), dx = -1;
	if (mask == -2)
		return GT_OK;
	struct gt_node norm = g->nodes[p], back;
	GT_TRY(norm_with(g, &norm, act, err));
	gt_node_replace(&norm, "y", gt_node_operand(&g->nodes[i], "y"));
	GT_TRY(gt_fusion_offered(f, &norm, &yes, err));
	if (yes && mask >= 0) {
		gt_vid masked = gt_node_operand(&g->nodes[mask], "dx");
		if (count_readers(g, masked, &dx) != 1 || g->nodes[dx].op->code != GT_OP_BATCHNORM_DX || g->nodes[dx].nin != 5 ||
		    gt_node_operand(&g->nodes[dx], "dy") != masked || gt_node_operand(&g->nodes[dx], "x") != gt_node_operand(&norm, "x"))
			return GT_OK;
		back = g->nodes[dx];
		GT_TRY(norm_with(g, &back, act, err));
		gt_node_replace(&back, "dy", gt_node_operand(&g->nodes[mask], "dy"));
		gt_node_input(&back, gt_node_operand(&norm, "beta"));
		GT_TRY(gt_fusion_offered(f, &back, &yes, err));
	}
	if (!yes)
		return GT_OK;
	gt_fusion_put(g, p, &norm);
	if (mask >= 0) {
		gt_fusion_put(g, dx, &back);
		gt_fusion_drop(g, mask);
	}
	gt_fusion_drop(g, i);
	return GT_OK;
}

/* add → batchnorm.dx: the two gradients of a normalisation's output (for example at a residual connection) are added when they are read. If
 * other nodes read the sum too, batchnorm.dx writes it. The results are the same, bit for bit. */
enum gt_code gt_fuse_sum_of_gradients(struct gt_fusion *f, int i, struct gt_err *err)
{
	struct gt_graph *g = f->g;
	const struct gt_node *add = &g->nodes[i];
	gt_vid sum = gt_node_first_output(add);
	int at, n = count_readers(g, sum, &at);
	if (add->nin != 2 || at < 0 || gt_graph_source(g, gt_node_first_input(&g->nodes[at])) != sum)
		return GT_OK;
	struct gt_node dx = g->nodes[at];
	bool sums = dx.op->code == GT_OP_BATCHNORM_SUMS, masked = dx.nin > 5, yes;
	if ((!sums && dx.op->code != GT_OP_BATCHNORM_DX) || gt_node_operand(&dx, sums ? "more" : "sums") >= 0)
		return GT_OK;
	if (n > 1 && (masked || sums || dx.nout > 3))
		return GT_OK;
	int more = sums ? 7 : 8, act = ((const struct gt_attr_norm *)dx.attr)->act;
	GT_TRY(norm_with(g, &dx, !masked ? GT_ACT_NONE : act ? act : GT_ACT_RELU, err));
	gt_node_replace(&dx, "dy", gt_node_operand(add, "a"));
	while (dx.nin < more)
		gt_node_input(&dx, -1);
	gt_node_input(&dx, gt_node_operand(add, "b"));
	if (n > 1) {
		while (dx.nout < 3)
			dx.out[dx.nout++] = -1;
		dx.out[dx.nout++] = sum;
	}
	GT_TRY(gt_fusion_offered(f, &dx, &yes, err));
	if (!yes)
		return GT_OK;
	gt_fusion_put(g, at, &dx);
	for (int k = g->nnodes - 1; n == 1 && k > i; k--) /* also removes the aliases of the sum, which no node makes any more */
		if (gt_node_alias(g, &g->nodes[k]) && gt_graph_source(g, gt_node_first_input(&g->nodes[k])) == sum)
			gt_fusion_drop(g, k);
	gt_fusion_drop(g, i);
	return GT_OK;
}

/* Moves node `from` to the position after node `to` in the list. */
static void move_behind(struct gt_graph *g, int from, int to)
{
	struct gt_node n = g->nodes[from];
	memmove(&g->nodes[from], &g->nodes[from + 1], (size_t)(to - from) * sizeof n);
	for (gt_vid v = 0; v < g->nvalues; v++)
		if (g->values[v].producer > from && g->values[v].producer <= to)
			g->values[v].producer--;
	gt_fusion_put(g, to, &n);
}

static bool reads_value(const struct gt_graph *g, const struct gt_node *n, gt_vid v)
{
	for (int k = 0; k < n->nin && !gt_node_alias(g, n); k++)
		if (gt_graph_source(g, n->in[k]) == v)
			return true;
	return false;
}

/* Returns whether node k, which reads the output y of a normalisation, can read it after node dx of the backward pass. It must read y in
 * the shape that batchnorm.dx writes, not as the images of one pixel that layer_scale makes of features. */
static bool can_follow(const struct gt_graph *g, int k, int dx, gt_vid y)
{
	const struct gt_node *n = &g->nodes[k];
	gt_vid dw = n->op->code == GT_OP_CONV2D_DW ? gt_node_operand(n, "dw") : -1;
	if (dw < 0 || g->params[g->values[dw].param].tied || gt_graph_source(g, gt_node_operand(n, "dy")) == y ||
	    !gt_tdesc_same_shape(gt_node_desc(g, n, "x"), gt_graph_desc(g, y)))
		return false;
	return k > dx || n->deferred == g->nodes[dx].deferred;
}

/* Returns the number of backward nodes that read y, if all of them can follow node dx, which is the last one that reads x; else 0. */
static int count_followers(const struct gt_graph *g, int dx, gt_vid x, gt_vid y)
{
	int n = 0;
	for (int k = 0; k < g->nnodes; k++) {
		if (k > dx && reads_value(g, &g->nodes[k], x))
			return 0;
		if (!g->nodes[k].backward || !reads_value(g, &g->nodes[k], y))
			continue;
		if (!can_follow(g, k, dx, y))
			return 0;
		n++;
	}
	return gt_graph_source(g, g->output) == y ? 0 : n;
}

/* conv2d.dw → batchnorm.dx: the output y of a normalisation is not kept for conv2d.dw. batchnorm.dx, which has read x, computes y again and
 * overwrites x; conv2d.dw comes after it. The results are the same, bit for bit. */
enum gt_code gt_fuse_output_again(struct gt_fusion *f, int i, struct gt_err *err)
{
	struct gt_graph *g = f->g;
	struct gt_node dx = g->nodes[i];
	int p = g->values[gt_node_operand(&dx, "mean")].producer, end = i;
	if (p < 0 || g->nodes[p].op->code != GT_OP_BATCHNORM || gt_node_operand(&g->nodes[p], "res") >= 0)
		return GT_OK;
	gt_vid x = gt_graph_source(g, gt_node_operand(&dx, "x")), y = gt_node_operand(&g->nodes[p], "y"), beta, again;
	int act = ((const struct gt_attr_norm *)g->nodes[p].attr)->act;
	if (dx.nout > 3 || dx.nin > 6 || act > GT_ACT_RELU || (dx.nin == 6) != (act == GT_ACT_RELU) || g->values[x].kind != GT_V_ACT ||
	    gt_graph_source(g, gt_node_operand(&g->nodes[p], "x")) != x || !count_followers(g, i, x, y))
		return GT_OK;
	struct gt_tdesc d = *gt_graph_desc(g, y);
	const char *name;
	bool yes;
	GT_NEW_STR(name, gt_arena_printf(g->arena, "%s.again", g->values[y].name), err);
	GT_TRY(gt_graph_value(g, name, GT_V_ACT, &d, &again, err));
	GT_TRY(norm_with(g, &dx, act, err));
	beta = gt_node_operand(&g->nodes[p], "beta");
	if (dx.nin == 5)
		gt_node_input(&dx, beta);
	while (dx.nout < 4)
		dx.out[dx.nout++] = -1;
	dx.out[dx.nout++] = again;
	GT_TRY(gt_fusion_offered(f, &dx, &yes, err));
	if (!yes)
		return GT_OK;
	g->values[again].again = y;
	gt_fusion_put(g, i, &dx);
	for (int k = 0; k < g->nnodes; k++)
		if (g->nodes[k].backward && reads_value(g, &g->nodes[k], y))
			gt_node_replace(&g->nodes[k], "x", again);
	for (int k = 0; k < end;) {
		if (reads_value(g, &g->nodes[k], again)) {
			move_behind(g, k, i);
			end--; /* the move has shifted node dx and the nodes behind it towards the front by one place */
		} else {
			k++;
		}
	}
	return GT_OK;
}

/* ---- pooling --------------------------------------------------------------------------------------------------------------------- */
/* maxpool2d and maxpool2d.dx: the indices of the maxima take one byte each if they are relative to the window instead of the image. */
enum gt_code gt_fuse_pool_indices(struct gt_fusion *f, int i, struct gt_err *err)
{
	struct gt_graph *g = f->g;
	gt_vid v = gt_node_operand(&g->nodes[i], "idx");
	int p = g->values[v].producer, first;
	struct gt_tdesc *d = &g->values[v].desc, wide = *d;
	bool yes;
	if (p < 0 || g->nodes[p].op->code != GT_OP_MAXPOOL2D || wide.dtype != GT_I32 || count_readers(g, v, &first) != 1)
		return GT_OK;
	*d = gt_tdesc_make(GT_U8, wide.rank, wide.dim, true);
	enum gt_code code = gt_fusion_offered(f, &g->nodes[p], &yes, err);
	if (code == GT_OK && yes)
		code = gt_fusion_offered(f, &g->nodes[i], &yes, err);
	if (code != GT_OK || !yes)
		*d = wide;
	return code;
}

/* Removes the output of indices that no node reads, as in an evaluation. */
enum gt_code gt_fuse_pool_without_indices(struct gt_fusion *f, int i, struct gt_err *err)
{
	struct gt_node n = f->g->nodes[i];
	int first;
	bool yes;
	gt_vid idx = gt_node_operand(&n, "idx");
	if (idx < 0 || count_readers(f->g, idx, &first))
		return GT_OK;
	n.nout = 1;
	GT_TRY(gt_fusion_offered(f, &n, &yes, err));
	if (yes)
		gt_fusion_put(f->g, i, &n);
	return GT_OK;
}
