/* Assigns offsets to parameters, gradients and buffers. The first graph decides the offsets: they ascend in the order in which its backward
 * pass finishes gradients. */
#include "plan/plan_parts.h"
#include "ir/op.h"

static int64_t round_up(int64_t n, int64_t to)
{
	return (n + to - 1) / to * to;
}

/* Returns the alignment of parameters in elements: GT_ALIGN bytes of the smallest type in the flat arenas. */
static int64_t param_alignment(const struct gt_space *s)
{
	return GT_ALIGN / (int64_t)gt_dtype_size(s->layout.work);
}

/* Assigns to parameter i the next offset of the flat arenas, in the bucket that is being filled. */
static void place_flat(struct gt_space *s, int i)
{
	struct gt_param_slot *p = &s->layout.param[i];
	p->count = gt_tdesc_padded(&p->desc);
	p->offset = s->layout.elements;
	s->layout.elements = round_up(s->layout.elements + p->count, param_alignment(s));
}

/* Closes the bucket that is being filled, unless it is empty. A bucket begins at the end of the last closed bucket. */
static void close_bucket(struct gt_space *s, bool trainable)
{
	int64_t begin = s->shards.nbuckets ? s->shards.bucket[s->shards.nbuckets - 1].end : 0;
	if (s->layout.elements == begin)
		return;
	s->layout.elements = round_up(s->layout.elements, param_alignment(s) * gt_at_least_one(s->shards.spec.shards));
	s->shards.bucket[s->shards.nbuckets++] = (struct gt_bucket){begin, s->layout.elements, trainable};
}

static bool bucket_full(const struct gt_space *s)
{
	int64_t limit = s->shards.nbuckets ? s->shards.spec.bucket_bytes : s->shards.spec.first_bytes,
	        begin = s->shards.nbuckets ? s->shards.bucket[s->shards.nbuckets - 1].end : 0;
	return limit > 0 && (s->layout.elements - begin) * (int64_t)gt_dtype_size(s->layout.master) >= limit;
}

/* Returns the bytes of one flat arena on this rank: if it is sharded, this rank's shards, followed by `gather_slots` gather slots;
 * otherwise the whole arena. */
static size_t arena_bytes(const struct gt_space *s, enum gt_arena_id a, int gather_slots)
{
	int64_t n = gt_space_sharded(s, a) ? s->layout.elements / s->shards.spec.shards + gather_slots * s->shards.widest : s->layout.elements;
	return (size_t)n * gt_element_size(s, a);
}

void gt_layout_bytes(struct gt_space *s)
{
	for (int b = 0; b < s->shards.nbuckets; b++)
		if (s->shards.bucket[b].end - s->shards.bucket[b].begin > s->shards.widest)
			s->shards.widest = s->shards.bucket[b].end - s->shards.bucket[b].begin;
	s->memory.bytes[GT_A_PARAM] = arena_bytes(s, GT_A_PARAM, s->shards.gather_slots);
	if (s->layout.work != s->layout.master)
		s->memory.bytes[GT_A_WORK] = arena_bytes(s, GT_A_WORK, s->shards.gather_slots);
	if (s->layout.first->train) {
		s->memory.bytes[GT_A_GRAD] = arena_bytes(s, GT_A_GRAD, 1) * (size_t)gt_at_least_one(s->memory.levels);
		if (s->shards.spec.compressed) {
			s->memory.bytes[GT_A_RESIDUAL] = arena_bytes(s, GT_A_RESIDUAL, 0);
			s->memory.bytes[GT_A_WIRE] = (size_t)s->shards.widest * gt_element_size(s, GT_A_WIRE);
		}
		bool updates = s->shards.spec.sync != GT_SYNC_RANK0_UPDATE || s->shards.spec.rank == 0;
		s->memory.bytes[GT_A_STATE] = updates ? arena_bytes(s, GT_A_STATE, 0) * (size_t)(s->layout.nstates + s->layout.more_states) : 0;
	}
}

/* Assigns offsets to the parameters whose gradients node n finishes, and closes the bucket if it is full. A bucket is closed only after a
 * whole node, so that all gradients of a node are in one bucket. */
static void place_gradients(struct gt_space *s, const struct gt_graph *g, int n)
{
	for (int o = 0; o < g->nodes[n].nout; o++) {
		gt_vid v = g->nodes[n].out[o];
		if (v >= 0 && g->values[v].kind == GT_V_GRAD && g->values[v].producer == n && s->layout.param[g->values[v].param].offset < 0)
			place_flat(s, g->values[v].param);
	}
	if (bucket_full(s))
		close_bucket(s, true);
}

/* Assigns offsets for the nodes that gt_fuse_output_again has moved behind node n. Without this fusion, these nodes precede node n, so the
 * offsets, and the sum of squares of all gradients, do not depend on this fusion. */
static void place_moved(struct gt_space *s, const struct gt_graph *g, int n)
{
	gt_vid again = g->nodes[n].op->code == GT_OP_BATCHNORM_DX ? gt_node_operand(&g->nodes[n], "again") : -1;
	for (int m = n + 1; m < g->nnodes && again >= 0; m++)
		if (g->nodes[m].op->code == GT_OP_CONV2D_DW && g->nodes[m].deferred == g->nodes[n].deferred &&
		    gt_node_operand(&g->nodes[m], "x") == again)
			place_gradients(s, g, m);
}

/* Assigns offsets to the parameters and buffers of g that have no offset yet. The kernels of g have already chosen their layouts. The first
 * graph uses all parameters, unless it is a pipeline stage: then the next stage's graph adds its own parameters, and parameters that no
 * stage of this rank uses get no memory. Steps: parameters with gradients, bucket by bucket, in the order in which nodes finish the
 * gradients; frozen parameters in a bucket of their own; buffers. */
enum gt_code gt_layout_assign(struct gt_space *s, const struct gt_graph *g, struct gt_err *err)
{
	size_t buffers = s->memory.bytes[GT_A_BUFFER] / (size_t)gt_at_least_one(s->memory.copies);
	if (!s->shards.bucket)
		GT_NEW(s->shards.bucket, s->arena, 2 * g->nparams + 1, err);
	for (int n = 0; n < g->nnodes; n++) { /* visits the nodes in the order in which they finish gradients */
		if (g->nodes[n].op->flags & GT_OPF_UPDATES && s->layout.checked < 0 && !gt_space_factored(s))
			s->layout.checked = s->layout.elements;
		place_moved(s, g, n);
		place_gradients(s, g, n);
	}
	close_bucket(s, true);
	if (s->layout.checked < 0 || g->stages)
		s->layout.checked = s->layout.elements;
	for (int i = 0; i < g->nparams; i++) {
		struct gt_param_slot *p = &s->layout.param[i];
		if (g->params[i].value < 0)
			continue;
		p->desc.any = false; /* if no kernel has chosen a layout, the parameter has the plain layout */
		if (g->params[i].cls == GT_PARAM_BUFFER && p->offset < 0) {
			p->count = gt_tdesc_padded(&p->desc);
			p->offset = (int64_t)buffers;
			buffers = (buffers + gt_tdesc_bytes(&p->desc) + GT_ALIGN - 1) / GT_ALIGN * GT_ALIGN;
		} else if (p->offset < 0) {
			place_flat(s, i);
		}
	}
	close_bucket(s, false);
	s->memory.bytes[GT_A_BUFFER] = buffers * (size_t)gt_at_least_one(s->memory.copies);
	gt_layout_bytes(s);
	return GT_OK;
}

enum gt_code gt_layout_start(struct gt_space *s, struct gt_graph *g, struct gt_err *err)
{
	s->layout.first = g;
	s->layout.master = gt_graph_stat_dtype(g);
	s->layout.work = gt_dtype_size(g->compute) == 2 ? g->compute : s->layout.master;
	s->layout.checked = -1;
	GT_NEW(s->layout.param, s->arena, g->nparams ? g->nparams : 1, err);
	for (int i = 0; i < g->nparams; i++) {
		const struct gt_param *p = &g->params[i];
		s->layout.param[i].desc = p->desc;
		s->layout.param[i].desc.any = p->cls == GT_PARAM_WEIGHT && p->desc.rank >= 2 && !p->tied;
		s->layout.param[i].offset = -1;
	}
	for (int i = 0; i < g->nnodes; i++)
		if (g->nodes[i].op->flags & GT_OPF_UPDATES)
			s->layout.param[g->values[gt_node_operand(&g->nodes[i], "w")].param].fused_update = true;
	return GT_OK;
}
