/* Decides when sharded parameters are whole (ZeRO stage 3, where every rank keeps only its shards). A bucket is gathered for the first call
 * that reads one of its parameters and released after the last such call. This happens once for the forward pass and once for the backward
 * pass, or once for both if no other bucket is needed in between. */
#include "plan/plan.h"

/* Returns the span of bucket b that a call of the given pass (forward or backward) extends: the last span of b, if this span is of the same
 * pass or no other bucket was gathered after it. */
static struct gt_gather_span *open_span(struct gt_plan *p, int b, bool backward)
{
	for (int k = p->nspans - 1; k >= 0; k--) {
		struct gt_gather_span *y = &p->span[k];
		if (y->bucket == b)
			return k == p->nspans - 1 || p->graph->nodes[p->call[y->last].node].backward == backward ? y : NULL;
	}
	return NULL;
}

/* Records that call i reads parameters of bucket b: extends a span of this bucket, or begins a new span. */
static enum gt_code record_use(struct gt_plan *p, int i, int b, struct gt_err *err)
{
	bool backward = p->graph->nodes[p->call[i].node].backward;
	struct gt_gather_span *y = open_span(p, b, backward);
	if (y) {
		y->last = i;
		return GT_OK;
	}
	if (p->nspans == 2 * p->space->shards.nbuckets)
		return gt_fail(err, GT_EINTERNAL, "the parameters of bucket %d would be gathered more than twice per step", b);
	p->span[p->nspans++] = (struct gt_gather_span){b, -1, i, i};
	return GT_OK;
}

enum gt_code gt_plan_param_residency(struct gt_plan *p, struct gt_err *err)
{
	struct gt_space *s = p->space;
	GT_NEW(p->span, s->arena, 2 * s->shards.nbuckets + 1, err);
	for (int i = 0; i < p->ncalls; i++) {
		const struct gt_node *n = &p->graph->nodes[p->call[i].node];
		for (int k = 0; k < n->nin; k++) {
			const struct gt_value *v = n->in[k] < 0 ? NULL : &p->graph->values[n->in[k]];
			if (v && (v->kind == GT_V_PARAM || v->kind == GT_V_WORK))
				GT_TRY(record_use(p, i, gt_space_bucket_of(s, s->layout.param[v->param].offset), err));
		}
	}
	for (int k = 0; k < p->nspans; k++) { /* assigns the lowest gather slot that no overlapping span uses */
		struct gt_gather_span *y = &p->span[k];
		bool taken = true;
		for (y->slot = 0; taken; y->slot += taken) {
			taken = false;
			for (int j = 0; j < k; j++)
				taken |= p->span[j].slot == y->slot && p->span[j].last >= y->first;
		}
		if (y->slot + 1 > s->shards.gather_slots)
			s->shards.gather_slots = y->slot + 1;
	}
	return GT_OK;
}
