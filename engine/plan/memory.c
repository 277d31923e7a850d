/* Where activations lie. Three passes over the list of nodes:
 * 1. an output that is its input under another description (flatten of NHWC, dropout in evaluation) shares its memory;
 * 2. an element-wise node writes over its input where nobody reads that later;
 * 3. the remaining blocks get offsets, the largest first, each at the lowest place that is free during its lifetime.
 * Largest-first is within a few per cent of the lower bound for networks (Pisarchyk & Lee, "Efficient memory management for deep
 * neural net inference", 2020, greedy by size). */
#include "plan/plan.h"
#include "ir/op.h"
#include <stdlib.h>

#define ALIGN 256

struct block {
	gt_vid root;
	size_t bytes;
	int first, last;
};

static int by_size(const void *a, const void *b)
{
	const struct block *x = a, *y = b;
	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return x->root - y->root;
}

/* May node i write out[0] over in[0]? */
static bool reusable(const struct gt_graph *g, const struct gt_slot *slot, const int *last, int i)
{
	const struct gt_node *n = &g->nodes[i];
	if (!(n->op->flags & GT_OPF_INPLACE) || n->nin < 1 || n->nout < 1)
		return false;
	gt_vid root = slot[n->in[0]].root;
	if (g->values[root].kind != GT_V_ACT || last[root] != i || g->values[n->out[0]].kind != GT_V_ACT ||
	    gt_tdesc_bytes(&g->values[n->in[0]].desc) != gt_tdesc_bytes(&g->values[n->out[0]].desc) ||
	    gt_tdesc_bytes(&g->values[root].desc) < gt_tdesc_bytes(&g->values[n->out[0]].desc))
		return false;
	for (int k = 1; k < n->nin; k++) /* read element by element too, but by then it may be overwritten in another order */
		if (n->in[k] >= 0 && slot[n->in[k]].root == root)
			return false;
	return true;
}

enum gt_code gt_memory_plan(struct gt_arena *a, const struct gt_graph *g, struct gt_slot *slot, size_t *bytes, struct gt_err *err)
{
	int *first, *last, nblocks = 0;
	struct block *block;
	GT_NEW(first, a, g->nvalues, err);
	GT_NEW(last, a, g->nvalues, err);
	GT_NEW(block, a, g->nvalues, err);

	for (int v = 0; v < g->nvalues; v++) {
		slot[v] = (struct gt_slot){.root = v, .first = -1, .last = -1};
		first[v] = last[v] = -1;
	}
	for (int i = 0; i < g->nnodes; i++)
		if (gt_node_alias(g, &g->nodes[i]))
			slot[g->nodes[i].out[0]].root = slot[g->nodes[i].in[0]].root;
	for (int i = 0; i < g->nnodes; i++) {
		const struct gt_node *n = &g->nodes[i];
		for (int k = 0; k < n->nin; k++)
			if (n->in[k] >= 0)
				last[slot[n->in[k]].root] = i;
		for (int k = 0; k < n->nout; k++) {
			gt_vid r = n->out[k] < 0 ? -1 : slot[n->out[k]].root;
			if (r >= 0 && first[r] < 0)
				first[r] = i;
			if (r >= 0 && last[r] < i)
				last[r] = i;
		}
	}
	if (g->output >= 0) /* predictions and the search for a NaN's origin read it after the last node */
		last[slot[g->output].root] = g->nnodes;

	for (int i = 0; i < g->nnodes; i++)
		if (!gt_node_alias(g, &g->nodes[i]) && reusable(g, slot, last, i)) {
			gt_vid from = slot[g->nodes[i].out[0]].root, to = slot[g->nodes[i].in[0]].root;
			for (int v = 0; v < g->nvalues; v++)
				if (slot[v].root == from)
					slot[v].root = to;
			last[to] = last[from];
		}

	for (int v = 0; v < g->nvalues; v++)
		if (slot[v].root == v && g->values[v].kind == GT_V_ACT && first[v] >= 0)
			block[nblocks++] = (struct block){v, gt_tdesc_bytes(&g->values[v].desc), first[v], last[v]};
	qsort(block, (size_t)nblocks, sizeof *block, by_size);

	size_t top = 0;
	for (int i = 0; i < nblocks; i++) {
		size_t at = 0;
		bool moved = true;
		while (moved) { /* past every placed block that lives at the same time and overlaps */
			moved = false;
			for (int j = 0; j < i; j++) {
				size_t o = slot[block[j].root].offset, e = o + block[j].bytes;
				if (block[j].first <= block[i].last && block[i].first <= block[j].last && at < e && o < at + block[i].bytes) {
					at = (e + ALIGN - 1) / ALIGN * ALIGN;
					moved = true;
				}
			}
		}
		struct gt_slot *s = &slot[block[i].root];
		s->offset = at;
		s->first = block[i].first;
		s->last = block[i].last;
		if (at + block[i].bytes > top)
			top = at + block[i].bytes;
	}
	*bytes = (top + ALIGN - 1) / ALIGN * ALIGN;
	return GT_OK;
}
