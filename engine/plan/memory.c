/* Plans the memory of activations, in three passes over the list of nodes:
 * 1. An output that is its input under another description (flatten of NHWC, dropout in evaluation) shares the input's memory.
 * 2. An element-wise node overwrites its input if no later node reads it.
 * 3. The remaining blocks get offsets (offsets.h). The workspace of each call is also a block, whose lifetime is the call. Blocks that
 *    other ranks read are placed in an arena of their own, where offsets must be equal on all ranks; this holds because the graph that
 *    gives their lifetimes is the same on every rank. */
#include "plan/plan_parts.h"
#include "ir/op.h"
#include <stdlib.h>

/* What a memory block stores: a value, or the workspace of a call. */
struct tenant {
	gt_vid root;          /* if call is NULL: the value that is stored in the block */
	struct gt_call *call; /* the call whose workspace the block is; NULL: the block stores a value */
	size_t own;           /* byte offset of this rank's rows in the block; 0 unless the block has the rows of all ranks */
};

/* A list of memory blocks; tenant[i] says what block[i] stores. */
struct blocks {
	struct gt_block *block;
	struct tenant *tenant;
	int n;
};

static enum gt_code open_blocks(struct blocks *b, struct gt_arena *a, int most, struct gt_err *err)
{
	GT_NEW(b->block, a, most, err);
	GT_NEW(b->tenant, a, most, err);
	return GT_OK;
}

static void add_block(struct blocks *b, struct tenant tenant, size_t bytes, int first, int last)
{
	b->block[b->n] = (struct gt_block){.bytes = bytes, .first = first, .last = last};
	b->tenant[b->n++] = tenant;
}

/* Returns whether output `out` of node i may overwrite input `in`, and sets *to to that input and *from to the overwriting output. */
static bool find_reusable_input(const struct gt_graph *g, const struct gt_slot *slot, const int *last, int i, int out, int in, gt_vid *to,
                                gt_vid *from)
{
	const struct gt_node *n = &g->nodes[i];
	if (n->nin <= in || n->nout <= out || n->in[in] < 0 || n->out[out] < 0)
		return false;
	gt_vid root = slot[n->in[in]].root;
	const struct gt_value *x = &g->values[n->in[in]], *y = &g->values[n->out[out]];
	if (g->values[root].kind != GT_V_ACT || last[root] != i || y->kind != GT_V_ACT ||
	    slot[root].segment != slot[slot[n->out[out]].root].segment || gt_tdesc_bytes(&x->desc) != gt_tdesc_bytes(&y->desc) ||
	    gt_tdesc_bytes(&g->values[root].desc) < gt_tdesc_bytes(&y->desc))
		return false;
	for (int k = 0; k < n->nin; k++) /* the node might overwrite an operand in this memory before it has read that operand */
		if (k != in && n->in[k] >= 0 && slot[n->in[k]].root == root)
			return false;
	*to = root;
	*from = slot[n->out[out]].root;
	return true;
}

/* Lets output `out` of node i overwrite input `in`, if no other node still needs the input (find_reusable_input). */
static void reuse_input(const struct gt_graph *g, struct gt_slot *slot, int *last, int i, int out, int in)
{
	gt_vid from, to;
	if (!find_reusable_input(g, slot, last, i, out, in, &to, &from))
		return;
	for (int v = 0; v < g->nvalues; v++)
		if (slot[v].root == from)
			slot[v].root = to;
	last[to] = last[from];
}

/* Moves the activations that other ranks read, too (the inputs of GT_OP_ROWS nodes), to the arena GT_A_SHARED_ACT. The block of such an
 * activation contains the parts of all ranks, in the order of the ranks. */
static enum gt_code find_shared_blocks(struct gt_plan *p, const int *first, const int *last, struct blocks *rows, struct gt_err *err)
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
		/* the loader owns the memory of a batch, so a batch needs no block; a value that two layers read needs only one block */
		if (g->values[r].kind != GT_V_ACT || p->slot[r].arena == GT_A_SHARED_ACT)
			continue;
		if (gt_tdesc_bytes(&g->values[r].desc) != bytes)
			return gt_fail(err, GT_EINTERNAL, "%s: a tensor that other ranks read must not share memory with another tensor", n->name);
		p->slot[r].arena = GT_A_SHARED_ACT;
		add_block(rows, (struct tenant){.root = r, .own = bytes * (size_t)attr->part}, bytes * (size_t)attr->parts, first[r], last[r]);
	}
	return GT_OK;
}

static void store_offsets(struct gt_slot *slot, enum gt_arena_id arena, const struct blocks *list)
{
	for (int i = 0; i < list->n; i++) {
		const struct gt_block *b = &list->block[i];
		const struct tenant *t = &list->tenant[i];
		if (t->call)
			t->call->scratch_offset = b->offset;
		else
			slot[t->root] = (struct gt_slot){.root = t->root,
			                                 .arena = arena,
			                                 .offset = b->offset + t->own,
			                                 .first = b->first,
			                                 .last = b->last,
			                                 .segment = slot[t->root].segment};
	}
}

/* GTRAIN_UNSHARED_MEMORY, for tests: every value has memory of its own during the whole step, so that no value can be overwritten too
 * early. The results must be the same as with shared memory. */
static void keep_values(const struct gt_graph *g, int *first, int *last)
{
	for (int v = 0; v < g->nvalues; v++)
		if (first[v] >= 0) {
			first[v] = 0;
			last[v] = g->nnodes;
		}
}

/* Finds the roots that only one segment uses. */
static void find_parts(const struct gt_plan *p, const int *first, const int *last)
{
	for (int v = 0; v < p->graph->nvalues && p->nsegments; v++) {
		const struct gt_segment *s = first[v] < 0 ? NULL : gt_plan_segment(p, first[v]);
		p->slot[v].segment = s && last[v] <= s->last ? s : NULL;
	}
}

/* Adds the block of root v, which nodes [first, last] use. Memory for the whole batch is in use as long as a segment that uses it. */
static void add_value(const struct gt_plan *p, struct blocks *acts, gt_vid v, int first, int last)
{
	const struct gt_segment *only = p->slot[v].segment, *a = gt_plan_segment(p, first), *b = gt_plan_segment(p, last);
	const struct gt_graph *g = only ? only->like : p->graph;
	if (!only)
		first = a ? a->first : first, last = b ? b->last : last;
	add_block(acts, (struct tenant){.root = v}, gt_tdesc_bytes(&g->values[v].desc), first, last);
}

/* Steps: resolve aliases; find the first and last use of each root (a value that owns memory); let nodes overwrite inputs; collect the
 * blocks; assign their offsets; store the offsets. */
enum gt_code gt_memory_plan(struct gt_plan *p, struct gt_err *err)
{
	const struct gt_graph *g = p->graph;
	struct gt_arena *a = p->space->arena;
	struct gt_slot *slot = p->slot;
	struct blocks acts = {0}, rows = {0};
	int *first, *last;
	GT_NEW(first, a, g->nvalues, err);
	GT_NEW(last, a, g->nvalues, err);
	GT_TRY(open_blocks(&acts, a, g->nvalues + p->ncalls, err));
	GT_TRY(open_blocks(&rows, a, g->nvalues, err));

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
	/* keeps the model's output, because predictions and the search for the origin of a NaN read it after the last node */
	if (g->output >= 0)
		last[slot[g->output].root] = g->nnodes;

	find_parts(p, first, last);
	bool shared = !getenv("GTRAIN_UNSHARED_MEMORY");
	if (!shared)
		keep_values(g, first, last);
	for (int i = 0; i < g->nnodes && shared; i++) {
		const struct gt_op *op = g->nodes[i].op;
		if (gt_node_alias(g, &g->nodes[i]) || !(op->flags & GT_OPF_INPLACE))
			continue;
		reuse_input(g, slot, last, i, op->inplace.out, op->inplace.in);
		if (op->inplace2.out || op->inplace2.in)
			reuse_input(g, slot, last, i, op->inplace2.out, op->inplace2.in);
	}

	GT_TRY(find_shared_blocks(p, first, last, &rows, err));
	for (int v = 0; v < g->nvalues; v++)
		if (slot[v].root == v && slot[v].arena == GT_A_ACT && g->values[v].kind == GT_V_ACT && first[v] >= 0)
			add_value(p, &acts, v, first[v], last[v]);
	for (int i = 0; i < p->ncalls; i++)
		if (p->call[i].scratch)
			add_block(&acts, (struct tenant){.call = &p->call[i]}, p->call[i].scratch, p->call[i].node, p->call[i].node);
	GT_TRY(gt_blocks_assign(a, acts.block, acts.n, &p->act, err));
	GT_TRY(gt_blocks_assign(a, rows.block, rows.n, &p->rows, err));
	store_offsets(slot, GT_A_ACT, &acts);
	store_offsets(slot, GT_A_SHARED_ACT, &rows);
	return GT_OK;
}
