/* Plans the memory of activations, in three passes over the list of nodes:
 * 1. An output that is its input under another description (flatten of NHWC, dropout in evaluation) shares the input's memory.
 * 2. An element-wise node overwrites its input if no later node reads it.
 * 3. The remaining blocks get offsets. The workspace of each call is also a block, whose lifetime is the call. Blocks are placed in order
 *    of size, the largest first, each at the lowest offset that is free during its lifetime. Blocks that other ranks read are placed in an
 *    arena of their own, where offsets must be equal on all ranks; this holds because the graph that gives their lifetimes is the same on
 *    every rank.
 * Largest-first placement is within a few per cent of the lower bound for networks (Pisarchyk & Lee, "Efficient memory management for deep
 * neural net inference", 2020, greedy by size). */
#include "plan/plan.h"
#include "ir/op.h"
#include <stdlib.h>

#define ALIGN 256

struct block {
	gt_vid root;          /* if call is NULL: the value that is stored in the block */
	struct gt_call *call; /* the call whose workspace the block is; NULL: the block stores a value */
	size_t bytes, offset;
	int first, last;      /* lifetime of the block: from node `first` to node `last`, inclusive */
	size_t own;           /* byte offset of this rank's rows in the block; 0 unless the block has the rows of all ranks */
};

static int by_size(const void *a, const void *b)
{
	const struct block *x = a, *y = b;
	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	if (!x->call != !y->call)
		return x->call ? 1 : -1;
	return x->call ? x->first - y->first : x->root - y->root;
}

/* Returns whether node i may overwrite an input, and sets *to to that input and *from to the overwriting output. */
static bool find_reusable_input(const struct gt_graph *g, const struct gt_slot *slot, const int *last, int i, gt_vid *to, gt_vid *from)
{
	const struct gt_node *n = &g->nodes[i];
	int in = n->op->inplace.in, out = n->op->inplace.out;
	if (!(n->op->flags & GT_OPF_INPLACE) || n->nin <= in || n->nout <= out || n->in[in] < 0 || n->out[out] < 0)
		return false;
	gt_vid root = slot[n->in[in]].root;
	const struct gt_value *x = &g->values[n->in[in]], *y = &g->values[n->out[out]];
	if (g->values[root].kind != GT_V_ACT || last[root] != i || y->kind != GT_V_ACT ||
	    gt_tdesc_bytes(&x->desc) != gt_tdesc_bytes(&y->desc) || gt_tdesc_bytes(&g->values[root].desc) < gt_tdesc_bytes(&y->desc))
		return false;
	for (int k = 0; k < n->nin; k++) /* the node might overwrite this memory before it has read another operand there */
		if (k != in && n->in[k] >= 0 && slot[n->in[k]].root == root)
			return false;
	*to = root;
	*from = slot[n->out[out]].root;
	return true;
}

/* Assigns an offset to every block. Returns the number of bytes that all blocks take. */
static size_t assign_offsets(struct block *block, int n)
{
	size_t top = 0;
	qsort(block, (size_t)n, sizeof *block, by_size);
	for (int i = 0; i < n; i++) {
		struct block *b = &block[i];
		bool moved = true;
		while (moved) { /* moves the block after each placed block with which it overlaps in time and in memory */
			moved = false;
			for (int j = 0; j < i; j++) {
				size_t o = block[j].offset, e = o + block[j].bytes;
				if (block[j].first <= b->last && b->first <= block[j].last && b->offset < e && o < b->offset + b->bytes) {
					b->offset = (e + ALIGN - 1) / ALIGN * ALIGN;
					moved = true;
				}
			}
		}
		if (b->offset + b->bytes > top)
			top = b->offset + b->bytes;
	}
	return (top + ALIGN - 1) / ALIGN * ALIGN;
}

/* Finds the blocks that other ranks read too (GT_OP_ROWS). Each block holds one value: the parts of all ranks, one after the other. */
static enum gt_code find_shared_blocks(struct gt_plan *p, const int *first, const int *last, struct block *rows, int *nrows,
                                       struct gt_err *err)
{
	const struct gt_graph *g = p->graph;
	for (int i = 0; i < g->nnodes; i++) {
		const struct gt_node *n = &g->nodes[i];
		if (n->op->code != GT_OP_ROWS)
			continue;
		const struct gt_attr_rows *attr = n->attr;
		gt_vid r = p->slot[gt_node_first_input(n)].root;
		size_t bytes = gt_tdesc_bytes(gt_graph_desc(g, gt_node_first_input(n)));
		p->slot[gt_node_first_output(n)].shift = -(ptrdiff_t)bytes * attr->part;
		/* the batch gets no block, because the loader owns its memory; a value that two layers read gets one block */
		if (g->values[r].kind != GT_V_ACT || p->slot[r].arena == GT_A_SHARED_ACT)
			continue;
		if (gt_tdesc_bytes(&g->values[r].desc) != bytes)
			return gt_fail(err, GT_EINTERNAL, "%s: a tensor that other ranks read must not share memory with another tensor", n->name);
		p->slot[r].arena = GT_A_SHARED_ACT;
		rows[(*nrows)++] = (struct block){.root = r,
		                                  .bytes = bytes * (size_t)attr->parts,
		                                  .first = first[r],
		                                  .last = last[r],
		                                  .own = bytes * (size_t)attr->part};
	}
	return GT_OK;
}

/* Steps: resolve aliases; find the first and last use of each root; let nodes overwrite inputs; collect the blocks; assign their offsets;
 * store the offsets. */
enum gt_code gt_memory_plan(struct gt_plan *p, struct gt_err *err)
{
	const struct gt_graph *g = p->graph;
	struct gt_arena *a = p->space->arena;
	struct gt_slot *slot = p->slot;
	int *first, *last, nblocks = 0, nrows = 0;
	struct block *block, *rows;
	GT_NEW(first, a, g->nvalues, err);
	GT_NEW(last, a, g->nvalues, err);
	GT_NEW(block, a, g->nvalues + p->ncalls, err);
	GT_NEW(rows, a, g->nvalues, err);

	for (int v = 0; v < g->nvalues; v++) {
		slot[v] = (struct gt_slot){.root = v, .arena = GT_A_ACT, .first = -1, .last = -1};
		first[v] = last[v] = -1;
	}
	for (int i = 0; i < g->nnodes; i++)
		if (gt_node_alias(g, &g->nodes[i]))
			slot[gt_node_first_output(&g->nodes[i])].root = slot[gt_node_first_input(&g->nodes[i])].root;
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
	if (g->output >= 0) /* keep the output: predictions, and the search for the origin of a NaN, read it after the last node */
		last[slot[g->output].root] = g->nnodes;

	for (int i = 0; i < g->nnodes; i++) {
		gt_vid from, to;
		if (gt_node_alias(g, &g->nodes[i]) || !find_reusable_input(g, slot, last, i, &to, &from))
			continue;
		for (int v = 0; v < g->nvalues; v++)
			if (slot[v].root == from)
				slot[v].root = to;
		last[to] = last[from];
	}

	GT_TRY(find_shared_blocks(p, first, last, rows, &nrows, err));
	for (int v = 0; v < g->nvalues; v++)
		if (slot[v].root == v && slot[v].arena == GT_A_ACT && g->values[v].kind == GT_V_ACT && first[v] >= 0)
			block[nblocks++] =
			    (struct block){.root = v, .bytes = gt_tdesc_bytes(&g->values[v].desc), .first = first[v], .last = last[v]};
	for (int i = 0; i < p->ncalls; i++)
		if (p->call[i].scratch)
			block[nblocks++] = (struct block){.call = &p->call[i],
			                                  .bytes = p->call[i].scratch,
			                                  .first = p->call[i].node,
			                                  .last = p->call[i].node};
	p->act_bytes = assign_offsets(block, nblocks);
	for (int i = 0; i < nblocks; i++) {
		const struct block *b = &block[i];
		if (b->call)
			b->call->scratch_offset = b->offset;
		else
			slot[b->root] =
			    (struct gt_slot){.root = b->root, .arena = GT_A_ACT, .offset = b->offset, .first = b->first, .last = b->last};
	}
	p->rows_bytes = assign_offsets(rows, nrows);
	for (int i = 0; i < nrows; i++) {
		const struct block *b = &rows[i];
		slot[b->root] = (struct gt_slot){.root = b->root,
		                                 .arena = GT_A_SHARED_ACT,
		                                 .offset = b->offset + b->own,
		                                 .first = b->first,
		                                 .last = b->last};
	}
	return GT_OK;
}
