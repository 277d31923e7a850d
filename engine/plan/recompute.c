/* Chooses the activations that are dropped and inserts the nodes that compute them again. */
#include "plan/recompute.h"
#include "ir/op.h"
#include <string.h>

struct pass {
	struct gt_graph *g;
	gt_vid *root;  /* [value]: the value that owns its memory: the value of which it is an alias, or itself */
	bool *drop;    /* [value]: whether the value is dropped after the forward pass and recomputed */
	gt_vid *again; /* [value]: if the value is dropped, the value that is computed again in its place; -1: not made yet */
};

/* Returns the index of the first backward node. The nodes before it are the forward pass; the last node of it is the loss. */
static int first_backward(const struct gt_graph *g)
{
	int i = 0;
	while (i < g->nnodes && !g->nodes[i].backward)
		i++;
	return i;
}

static void find_roots(struct pass *p, int nforward)
{
	const struct gt_graph *g = p->g;
	for (gt_vid v = 0; v < g->nvalues; v++)
		p->root[v] = v;
	for (int i = 0; i < nforward; i++)
		if (gt_node_alias(g, &g->nodes[i]))
			p->root[gt_node_first_output(&g->nodes[i])] = p->root[gt_node_first_input(&g->nodes[i])];
}

/* Sets saved[root] to whether the backward pass reads a value of the forward pass with this root, before any value is dropped. */
static void find_saved(const struct pass *p, int nforward, bool *saved)
{
	const struct gt_graph *g = p->g;
	for (int i = nforward; i < g->nnodes; i++)
		for (int k = 0; k < g->nodes[i].nin; k++)
			if (g->nodes[i].in[k] >= 0)
				saved[p->root[g->nodes[i].in[k]]] = true;
}

/* Returns whether all operands of node n are available in the backward pass without keeping a further value in memory. */
static bool operands_kept(const struct pass *p, const struct gt_node *n, const bool *saved)
{
	for (int k = 0; k < n->nin; k++) {
		gt_vid r = n->in[k] < 0 ? -1 : p->root[n->in[k]];
		if (r >= 0 && p->g->values[r].kind == GT_V_ACT && (p->drop[r] || !saved[r]))
			return false;
	}
	return true;
}

/* Returns whether the layer of node n has recompute = true. */
static bool asks_recompute(const struct gt_layer_spec *layers, const struct gt_node *n)
{
	return n->layer >= 0 && layers[n->layer].recompute;
}

/* Chooses the values to drop. It never drops the model's output, the loss, values that share memory with the output of a layer without
 * recompute, nor outputs of GT_OPF_ONCE nodes. */
static enum gt_code choose_drops(struct pass *p, const struct gt_layer_spec *layers, bool cheap, int nforward, struct gt_err *err)
{
	struct gt_graph *g = p->g;
	/* kept[root]: the value with this root is an output of a layer without recompute = true, or shares memory with such an output */
	bool *saved, *kept;
	GT_NEW(saved, g->arena, g->nvalues, err);
	GT_NEW(kept, g->arena, g->nvalues, err);
	find_saved(p, nforward, saved);
	for (int i = 0; i < nforward; i++)
		if (gt_node_alias(g, &g->nodes[i]) && !asks_recompute(layers, &g->nodes[i]))
			kept[p->root[gt_node_first_output(&g->nodes[i])]] = true;
	kept[p->root[g->output]] = true;
	for (int i = 0; i < nforward - 1; i++) {
		const struct gt_node *n = &g->nodes[i];
		gt_vid y = gt_node_first_output(n);
		if (gt_node_alias(g, n) || n->op->flags & GT_OPF_ONCE || y < 0 || g->values[y].kind != GT_V_ACT || y == p->root[g->output])
			continue;
		p->drop[y] = (asks_recompute(layers, n) && !kept[y]) ||
		             (cheap && saved[y] && (n->op->flags & GT_OPF_CHEAP) && operands_kept(p, n, saved));
	}
	for (gt_vid v = 0; v < g->nvalues; v++)
		p->drop[v] = p->drop[p->root[v]];
	return GT_OK;
}

/* Replaces *v by the value that the backward pass reads instead. If *v was dropped and is not recomputed yet, appends the nodes that
 * compute it again, after the nodes that recompute its own dropped operands. */
static enum gt_code make_available(struct pass *p, gt_vid *v, struct gt_err *err)
{
	struct gt_graph *g = p->g;
	if (*v < 0 || !p->drop[*v])
		return GT_OK;
	if (p->again[*v] < 0) {
		struct gt_node n = g->nodes[g->values[*v].producer], *c; /* a copy, because the array may move when nodes are appended */
		for (int k = 0; k < n.nin; k++)
			GT_TRY(make_available(p, &n.in[k], err));
		if (n.op->again) {
			g->layer = n.layer;
			g->backward = true;
			GT_TRY(n.op->again(g, &n, &c, err));
		} else {
			GT_TRY(gt_graph_node_of(g, n.op, n.name, n.attr, &c, err));
			memcpy(c->in, n.in, sizeof c->in);
			c->nin = n.nin;
			c->ndata = n.ndata;
			for (int k = 0; k < n.nout; k++)
				if (n.out[k] < 0)
					c->out[c->nout++] = -1;
				else {
					gt_vid y;
					struct gt_tdesc d = g->values[n.out[k]].desc;
					GT_TRY(gt_graph_output(g, c, "again", &d, &y, err));
				}
		}
		c->layer = n.layer;
		c->backward = true;
		for (int k = 0; k < c->nout; k++)
			if (n.out[k] >= 0 && p->drop[n.out[k]]) {
				p->again[n.out[k]] = c->out[k];
				g->values[c->out[k]].again = n.out[k];
			}
	}
	*v = p->again[*v];
	return GT_OK;
}

/* Takes the backward nodes out of the graph and appends them again one by one, each after the nodes that recompute its operands. */
enum gt_code gt_graph_recompute(struct gt_graph *g, const struct gt_layer_spec *layers, bool cheap, struct gt_err *err)
{
	int nforward = first_backward(g), nbackward = g->nnodes - nforward;
	struct pass p = {.g = g};
	struct gt_node *backward;
	if (!nbackward)
		return GT_OK;
	GT_NEW(p.root, g->arena, g->nvalues, err);
	GT_NEW(p.drop, g->arena, g->nvalues, err);
	GT_NEW(p.again, g->arena, g->nvalues, err);
	GT_NEW(backward, g->arena, nbackward, err);
	memset(p.again, 0xff, (size_t)g->nvalues * sizeof *p.again);
	find_roots(&p, nforward);
	GT_TRY(choose_drops(&p, layers, cheap, nforward, err));
	memcpy(backward, g->nodes + nforward, (size_t)nbackward * sizeof *backward);
	g->nnodes = nforward;
	int nvalues = g->nvalues; /* number of values before recomputation, which is the length of the tables in p */
	for (int i = 0; i < nbackward; i++) {
		struct gt_node *b = &backward[i], *n;
		for (int k = 0; k < b->nin; k++)
			if (b->in[k] < nvalues)
				GT_TRY(make_available(&p, &b->in[k], err));
		GT_TRY(gt_graph_node_of(g, b->op, b->name, b->attr, &n, err));
		*n = *b;
		for (int k = 0; k < n->nout; k++)
			if (n->out[k] >= 0)
				g->values[n->out[k]].producer = g->nnodes - 1;
	}
	g->layer = -1;
	g->backward = false;
	return GT_OK;
}
