/* Computes the device addresses of a plan's values and binds them to its calls, after memory is allocated. */
#include "plan/plan_parts.h"

/* Returns the address in copy i of an arena that corresponds to `at`, an address in its first copy. An arena has n equal copies, one after
 * the other. */
static void *arena_copy(void *at, size_t bytes, int n, int i)
{
	return at ? (char *)at + bytes / (size_t)gt_at_least_one(n) * (size_t)i : NULL;
}

/* Returns the address at which the plan's activation slot begins. */
static char *act_slot(const struct gt_plan *p)
{
	char *base = p->space->memory.base[GT_A_ACT];
	return base ? base + p->space->memory.act_slot_bytes[p->graph->train] * (size_t)p->act_slot : NULL;
}

/* If parameters are sharded: returns the gather slot that contains the bucket of `param` while call i runs. */
static int gather_slot(const struct gt_plan *p, int i, int param)
{
	int b = gt_space_bucket_of(p->space, p->space->layout.param[param].offset);
	for (int k = 0; k < p->nspans; k++)
		if (p->span[k].bucket == b && p->span[k].first <= i && i <= p->span[k].last)
			return p->span[k].slot;
	return 0;
}

/* Returns the address of value v as an operand of call i. Unlike gt_plan_value, it returns the address in a gather slot for a sharded
 * parameter or gradient. */
static void *operand_address(const struct gt_plan *p, int i, gt_vid v)
{
	const struct gt_space *s = p->space;
	const struct gt_value *val = v < 0 ? NULL : &p->graph->values[v];
	if (val && val->kind == GT_V_GRAD && gt_space_sharded(s, GT_A_GRAD))
		return gt_space_gathered_param(s, val->param, GT_A_GRAD, 0);
	if (val && (val->kind == GT_V_PARAM || val->kind == GT_V_WORK) && gt_space_sharded(s, GT_A_PARAM))
		return gt_space_gathered_param(s, val->param, val->kind == GT_V_PARAM ? GT_A_PARAM : GT_A_WORK, gather_slot(p, i, val->param));
	char *at = gt_plan_value(p, v);
	return at ? at + gt_plan_part_offset(p, &p->call[i], v) : NULL;
}

void *gt_plan_value(const struct gt_plan *p, gt_vid v)
{
	const struct gt_space *s = p->space;
	if (v < 0)
		return NULL;
	const struct gt_value *val = &p->graph->values[v];
	switch (val->kind) {
	case GT_V_PARAM:
		return gt_space_param(s, val->param, GT_A_PARAM, 0);
	case GT_V_WORK:
		return gt_space_param(s, val->param, GT_A_WORK, 0);
	case GT_V_GRAD:
		return arena_copy(gt_space_param(s, val->param, GT_A_GRAD, 0), s->memory.bytes[GT_A_GRAD], s->memory.levels, p->level);
	case GT_V_BUFFER:
		return arena_copy(gt_space_param(s, val->param, GT_A_BUFFER, 0), s->memory.bytes[GT_A_BUFFER], s->memory.copies, p->copy);
	case GT_V_METRICS:
		return gt_space_scalars(s, 0); /* struct gt_metrics is the first member of struct gt_scalars, so both have the same address */
	case GT_V_SCALE:
		return s->memory.base[GT_A_METRICS] ? &gt_space_scaler(s)->scale : NULL;
	case GT_V_BOUND:
		return s->memory.base[GT_A_METRICS] ? &gt_space_scalars(s, 0)->bound : NULL;
	default:
		break;
	}
	const struct gt_slot *root = &p->slot[p->slot[v].root];
	if (p->graph->values[p->slot[v].root].kind != GT_V_ACT)
		return NULL;
	char *base = root->arena == GT_A_SHARED_ACT ? s->memory.base[GT_A_SHARED_ACT] : act_slot(p);
	return base ? base + root->offset + p->slot[v].shift : NULL;
}

void gt_plan_bind(struct gt_plan *p)
{
	for (int i = 0; i < p->ncalls; i++) {
		struct gt_call *c = &p->call[i];
		const struct gt_node *n = &p->graph->nodes[c->node];
		for (int k = 0; k < n->nin; k++)
			c->in[k] = operand_address(p, i, n->in[k]);
		if (c->fused_update) { /* a fused update has operands that lower_node appended: the scalars, then the optimizer states */
			c->in[n->nin] = gt_space_scalars(p->space, 0);
			for (int k = n->nin + 1; k < c->nin; k++)
				c->in[k] = gt_space_param(p->space, p->graph->values[gt_node_operand(n, "w")].param, GT_A_STATE, k - n->nin - 1);
		}
		for (int k = 0; k < n->nout; k++)
			c->out[k] = operand_address(p, i, n->out[k]);
		c->work = c->scratch ? act_slot(p) + c->scratch_offset : NULL;
	}
}

/* Returns the address in the batch of value v if v is an input of the model or the target; otherwise NULL. */
static void *batch_of(const struct gt_plan *p, gt_vid v, void *const *input, void *target)
{
	const struct gt_graph *g = p->graph;
	for (int i = 0; i < g->ninputs; i++)
		if (v == g->input[i])
			return input[i];
	return v == g->target ? target : NULL;
}

void gt_plan_bind_batch(struct gt_plan *p, void *const *input, void *target)
{
	for (int i = 0; i < p->ncalls; i++) {
		struct gt_call *c = &p->call[i];
		const struct gt_node *n = &p->graph->nodes[c->node];
		for (int k = 0; k < n->nin; k++) {
			if (n->in[k] < 0)
				continue;
			char *at = batch_of(p, p->slot[n->in[k]].root, input, target);
			if (at)
				c->in[k] = at + p->slot[n->in[k]].shift + gt_plan_part_offset(p, c, n->in[k]);
		}
	}
}
