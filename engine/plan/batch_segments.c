/* Segments of an inference that compute the batch in parts (plan.h). */
#include "plan/plan_parts.h"
#include "ir/op.h"
#include <string.h>

const struct gt_segment *gt_plan_segment(const struct gt_plan *p, int node)
{
	for (int i = 0; i < p->nsegments; i++)
		if (p->segment[i].first <= node && node <= p->segment[i].last)
			return &p->segment[i];
	return NULL;
}

const struct gt_tdesc *gt_call_desc(const struct gt_plan *p, const struct gt_call *c, gt_vid v)
{
	return gt_graph_desc(c->segment ? c->segment->like : p->graph, v);
}

size_t gt_plan_part_offset(const struct gt_plan *p, const struct gt_call *c, gt_vid v)
{
	enum gt_vkind kind = p->graph->values[v].kind;
	if (!c->part || (kind != GT_V_ACT && kind != GT_V_INPUT) || p->slot[p->slot[v].root].segment)
		return 0;
	return (size_t)c->part * gt_tdesc_bytes(gt_call_desc(p, c, v));
}

/* Returns whether `part`, the description of a value in a part of the batch, divides the value's samples d in memory order. */
static bool divides_samples(const struct gt_graph *g, const struct gt_segment *s, const struct gt_tdesc *d, const struct gt_tdesc *part)
{
	struct gt_tdesc like = *part;
	if (d->any || !d->rank || d->layout.order[0] || d->dim[0] != g->batch || part->dim[0] * s->parts != d->dim[0])
		return false;
	for (int i = 0; i < d->layout.nblk; i++)
		if (!d->layout.blk_dim[i])
			return false;
	like.dim[0] = d->dim[0];
	return gt_tdesc_equal(&like, d);
}

/* Returns whether a node of g and the node of a part have the same operation and operands, which the segment can divide. */
static bool divides_node(const struct gt_graph *g, const struct gt_segment *s, const struct gt_node *n, const struct gt_node *part)
{
	if (n->op != part->op || n->nin != part->nin || n->nout != part->nout || (n->op->mixes_samples && n->op->mixes_samples(n->attr)))
		return false;
	for (int k = 0; k < n->nin + n->nout; k++) {
		gt_vid v = k < n->nin ? n->in[k] : n->out[k - n->nin];
		if (v != (k < n->nin ? part->in[k] : part->out[k - n->nin]))
			return false;
		if (v < 0)
			continue;
		enum gt_vkind kind = g->values[v].kind;
		bool constant = k < n->nin && (kind == GT_V_PARAM || kind == GT_V_WORK || kind == GT_V_BUFFER);
		if (kind != s->like->values[v].kind || (!constant && kind != GT_V_ACT && kind != GT_V_INPUT))
			return false;
		if (!constant && !divides_samples(g, s, gt_graph_desc(g, v), gt_graph_desc(s->like, v)))
			return false;
	}
	return true;
}

bool gt_segment_fits(const struct gt_graph *g, const struct gt_segment *s)
{
	if (s->parts < 2 || g->train || g->nnodes != s->like->nnodes || g->nvalues != s->like->nvalues)
		return false;
	for (int i = s->first; i <= s->last; i++)
		if (!divides_node(g, s, &g->nodes[i], &s->like->nodes[i]))
			return false;
	return true;
}

enum gt_code gt_plan_repeat_calls(struct gt_plan *p, struct gt_err *err)
{
	struct gt_call *list;
	int n = 0;
	if (!p->nsegments)
		return GT_OK;
	for (int i = 0; i < p->ncalls; i++)
		n += p->call[i].segment ? p->call[i].segment->parts : 1;
	GT_NEW(list, p->space->arena, n, err);
	n = 0;
	for (int i = 0, end; i < p->ncalls; i = end) {
		const struct gt_segment *s = p->call[i].segment;
		for (end = i + 1; end < p->ncalls && s && p->call[end].segment == s;)
			end++;
		for (int part = 0; part < (s ? s->parts : 1); part++)
			for (int k = i; k < end; k++) {
				list[n] = p->call[k];
				list[n++].part = part;
			}
	}
	p->call = list;
	p->ncalls = n;
	return GT_OK;
}
