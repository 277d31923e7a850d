/* Reverse-mode differentiation: walks from the gradient of the loss back to the first trainable parameter. A value that several nodes read
 * gets one gradient from each node; an `add` node sums these gradients just before the producer of the value is differentiated. Values that
 * depend on no trainable parameter need no gradient: the first layer gets no dx, and frozen first layers get no backward nodes at all.
 * Several nodes make the gradient of a tied parameter, one for each of its layers. */
#include "ir/rows.h"

/* One gradient of a value, from one node that reads the value. The gradient of the value is the sum of the entries in its list. */
struct part {
	struct part *next;
	gt_vid v;
};

struct walk {
	struct gt_graph *g;
	bool *need;         /* [values of g]: whether the gradient of the value is needed */
	struct part **part; /* [values of g]: list of the gradients of the value that were added so far, the newest first */
};

static enum gt_code push_gradient(struct walk *w, gt_vid of, gt_vid grad, struct gt_err *err)
{
	struct part *p;
	GT_NEW(p, w->g->arena, 1, err);
	*p = (struct part){w->part[of], grad};
	w->part[of] = p;
	return GT_OK;
}

/* Sets *out to the whole gradient of value v; -1 if v has no gradient. The sum starts with the newest gradient: this gradient is most
 * likely in the cache, and the sum may overwrite its memory. */
static enum gt_code sum_gradients(struct walk *w, gt_vid v, const char *name, gt_vid *out, struct gt_err *err)
{
	struct part *p = w->part[v];
	struct gt_graph *g = w->g;
	*out = p ? p->v : -1;
	if (!p || !p->next)
		return GT_OK;
	const char *text;
	struct gt_tdesc d = *gt_graph_desc(g, v);
	GT_NEW_STR(text, gt_arena_printf(g->arena, "%s.dy", name), err);
	for (p = p->next; p;) {
		struct gt_node *n;
		GT_TRY(gt_graph_node(g, GT_OP_ADD, text, NULL, &n, err));
		gt_node_input(n, *out);
		for (; p && n->nin < GT_MAX_LAYER_IN; p = p->next)
			gt_node_input(n, p->v);
		n->ndata = n->nin;
		GT_TRY(gt_graph_output(g, n, NULL, &d, out, err));
	}
	return GT_OK;
}

/* Appends the backward nodes of node i. */
static enum gt_code add_backward_nodes(struct walk *w, int i, struct gt_err *err)
{
	struct gt_graph *g = w->g;
	struct gt_node n = g->nodes[i]; /* a copy, because the array may move when nodes are appended */
	bool want[GT_MAX_IO] = {0};
	gt_vid dx[GT_MAX_IO], dy;
	if (!n.nout || !w->need[gt_node_first_output(&n)])
		return GT_OK;
	g->layer = n.layer;
	GT_TRY(sum_gradients(w, gt_node_first_output(&n), n.name, &dy, err));
	if (dy < 0)
		return GT_OK;
	if (!n.op->gradient)
		return gt_fail(err, GT_EINTERNAL, "%s (%s): the operation has no gradient", n.name, gt_op_name(n.op));
	for (int k = 0; k < n.ndata; k++) {
		want[k] = w->need[n.in[k]];
		dx[k] = -1;
	}
	GT_TRY(n.op->gradient(g, &n, dy, want, dx, err));
	for (int k = 0; k < n.ndata; k++)
		if (want[k] && dx[k] >= 0)
			GT_TRY(push_gradient(w, n.in[k], dx[k], err));
	return GT_OK;
}

/* Moves all nodes that make the gradient `grad` of a tied parameter to the last of these nodes, which belongs to the owning layer, and
 * makes them a part of this layer. So the whole gradient is made at one time (buckets may share memory: plan/mode_zero.c) and on one
 * pipeline stage. No other node reads the outputs of these nodes. */
static enum gt_code join_tied_gradients(struct gt_graph *g, gt_vid grad, struct gt_err *err)
{
	int last = g->values[grad].producer, n = 0, moved = 0;
	struct gt_node *early;
	GT_NEW(early, g->arena, last + 1, err);
	for (int i = 0; i < last; i++) {
		struct gt_node *from = &g->nodes[i];
		if (from->nout && gt_node_first_output(from) == grad) {
			early[moved] = *from;
			early[moved++].layer = g->nodes[last].layer;
		} else {
			g->nodes[n++] = *from;
		}
	}
	for (int i = 0; i < moved; i++)
		g->nodes[n++] = early[i];
	for (int i = 0; i <= last; i++)
		for (int k = 0; k < g->nodes[i].nout; k++)
			if (g->nodes[i].out[k] >= 0)
				g->values[g->nodes[i].out[k]].producer = i;
	return GT_OK;
}

enum gt_code gt_graph_differentiate(struct gt_graph *g, struct gt_err *err)
{
	int nforward = g->nnodes, nvalues = g->nvalues;
	struct gt_node *loss = nforward ? &g->nodes[nforward - 1] : NULL;
	if (!g->train || !loss || !(loss->op->flags & GT_OPF_LOSS) || loss->nout < 2)
		return gt_fail(err, GT_EINTERNAL, "differentiate: expected a training graph that ends in a loss");
	struct walk w = {.g = g};
	GT_NEW(w.need, g->arena, nvalues, err);
	GT_NEW(w.part, g->arena, nvalues, err);
	for (int v = 0; v < nvalues; v++)
		w.need[v] = gt_graph_learns(g, v);
	for (int i = 0; i < nforward - 1; i++) {
		const struct gt_node *n = &g->nodes[i];
		bool need = false;
		for (int k = 0; k < n->nin; k++)
			need |= n->in[k] >= 0 && w.need[n->in[k]];
		w.need[gt_node_first_output(n)] = need; /* further outputs are saved tensors, which have no gradient */
	}
	if (!w.need[g->output])
		return gt_fail(err, GT_ECONFIG, "model.layers: expected at least one layer with trainable parameters, got none");
	GT_TRY(push_gradient(&w, g->output, gt_node_operand(loss, "dx"), err));
	g->backward = true;
	enum gt_code code = GT_OK;
	for (int i = nforward - 2; i >= 0 && code == GT_OK; i--)
		code = add_backward_nodes(&w, i, err);
	for (int i = 0; i < g->nparams && code == GT_OK; i++)
		if (g->params[i].tied && g->params[i].grad >= 0)
			code = join_tied_gradients(g, g->params[i].grad, err);
	g->backward = false;
	g->layer = -1;
	return code;
}
