/* Where parameters are whole, if every rank keeps a part of them only (ZeRO stage 3): a bucket is gathered for the first call that reads one of
 * its parameters and let go behind the last one, once for the forward pass and once for the backward pass, unless nothing else is needed
 * between the two. */
#include "plan/plan.h"

/* The stay of bucket b that call i continues: the last one, if it is of the same pass or no other bucket was fetched since. */
static struct gt_gather_span *running(struct gt_plan *p, int b, bool backward)
{
	for (int k = p->nspans - 1; k >= 0; k--) {
		struct gt_gather_span *y = &p->span[k];
		if (y->bucket == b)
			return k == p->nspans - 1 || p->graph->nodes[p->call[y->last].node].backward == backward ? y : NULL;
	}
	return NULL;
}

static enum gt_code use(struct gt_plan *p, int i, int b, struct gt_err *err)
{
	bool backward = p->graph->nodes[p->call[i].node].backward;
	struct gt_gather_span *y = running(p, b, backward);
	if (y) {
		y->last = i;
		return GT_OK;
	}
	if (p->nspans == 2 * p->space->nbuckets)
		return gt_fail(err, GT_EINTERNAL, "bucket %d is needed more than twice", b);
	p->span[p->nspans++] = (struct gt_gather_span){b, -1, i, i};
	return GT_OK;
}

enum gt_code gt_plan_param_residency(struct gt_plan *p, struct gt_err *err)
{
	struct gt_space *s = p->space;
	GT_NEW(p->span, s->arena, 2 * s->nbuckets + 1, err);
	for (int i = 0; i < p->ncalls; i++) {
		const struct gt_node *n = &p->graph->nodes[p->call[i].node];
		for (int k = 0; k < n->nin; k++) {
			const struct gt_value *v = n->in[k] < 0 ? NULL : &p->graph->values[n->in[k]];
			if (v && (v->kind == GT_V_PARAM || v->kind == GT_V_WORK))
				GT_TRY(use(p, i, gt_space_bucket_of(s, s->place[v->param].offset), err));
		}
	}
	for (int k = 0; k < p->nspans; k++) { /* the lowest place that nobody who is still there has */
		struct gt_gather_span *y = &p->span[k];
		bool taken = true;
		for (y->slot = 0; taken; y->slot += taken) {
			taken = false;
			for (int j = 0; j < k; j++)
				taken |= p->span[j].slot == y->slot && p->span[j].last >= y->first;
		}
		if (y->slot + 1 > s->places)
			s->places = y->slot + 1;
	}
	return GT_OK;
}
