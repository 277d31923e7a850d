/* Lowers a graph onto a device: prepares a kernel for every node and makes the plan. */
#include "plan/plan_parts.h"
#include "ir/op.h"
#include "opsig.h"
#include <string.h>

static bool in_space(enum gt_vkind k)
{
	return k == GT_V_PARAM || k == GT_V_WORK || k == GT_V_GRAD || k == GT_V_BUFFER;
}

/* Returns the description of a value for a kernel. For a parameter it has the layout that is stored in the space, and the dtype of the
 * value (master values or 16-bit copy). */
static struct gt_tdesc desc_of(const struct gt_space *s, const struct gt_value *v)
{
	if (!in_space(v->kind))
		return v->desc;
	struct gt_tdesc d = s->layout.param[v->param].desc;
	d.dtype = v->desc.dtype;
	return d;
}

/* Stores the layout that a kernel chose for a parameter. */
static void store_layout(struct gt_space *s, const struct gt_value *v, const struct gt_tdesc *d)
{
	struct gt_tdesc *p = &s->layout.param[v->param].desc;
	if (!in_space(v->kind) || !p->any || d->any)
		return;
	p->layout = d->layout;
	p->any = false;
}

/* Makes the call of a communication node. Its count is the number of elements in one rank's block, which is the smaller operand. */
static void lower_comm(const struct gt_graph *g, int i, struct gt_call *c)
{
	const struct gt_node *n = &g->nodes[i];
	*c = (struct gt_call){.comm = n->attr,
	                      .op = gt_comm_name(n->attr),
	                      .layer = n->name,
	                      .node = i,
	                      .phase = gt_node_phase(n),
	                      .nin = n->nin,
	                      .nout = n->nout};
	for (int k = 0; k < n->nin + n->nout; k++) {
		gt_vid v = k < n->nin ? n->in[k] : n->out[k - n->nin];
		size_t count = v < 0 ? 0 : (size_t)gt_tdesc_padded(&g->values[v].desc);
		if (v < 0)
			continue;
		c->dtype = g->values[v].desc.dtype;
		if (!c->count || count < c->count)
			c->count = count;
	}
}

/* Makes the call of node i. Steps: describe the operands; append the optimizer's operands to a fused update; let the backend prepare a
 * kernel; store the layouts that it chose. */
static enum gt_code lower_node(struct gt_plan *p, int i, bool deterministic, struct gt_err *err)
{
	struct gt_space *s = p->space;
	const struct gt_segment *segment = gt_plan_segment(p, i);
	const struct gt_graph *g = segment ? segment->like : p->graph;
	const struct gt_node *n = &g->nodes[i];
	int64_t words = GT_SCALARS_WORDS;
	struct gt_tdesc in[GT_MAX_IO], out[GT_MAX_IO], scalars = gt_tdesc_make(GT_F64, 1, &words, false);
	struct gt_opcall oc = {.code = n->op->code,
	                       .name = n->name,
	                       .attr = n->attr,
	                       .nin = n->nin,
	                       .nout = n->nout,
	                       .deterministic = deterministic,
	                       .constant = s->constant};
	struct gt_call *c = &p->call[p->ncalls];

	if (oc.code == GT_OP_COMM) {
		lower_comm(g, i, c);
		p->ncalls++;
		return GT_OK;
	}
	for (int k = 0; k < n->nin; k++)
		if (n->in[k] >= 0) {
			in[k] = desc_of(s, &g->values[n->in[k]]);
			oc.in[k] = &in[k];
		}
	for (int k = 0; k < n->nout; k++)
		if (n->out[k] >= 0) {
			out[k] = desc_of(s, &g->values[n->out[k]]);
			oc.out[k] = &out[k];
			enum gt_vkind kind = g->values[n->out[k]].kind;
			if (kind == GT_V_GRAD && (p->accumulate || gt_graph_grad_adds(g, i, n->out[k])))
				oc.accumulate |= 1u << k;
		}
	if (n->op->flags & GT_OPF_UPDATES) {
		oc.in[oc.nin++] = &scalars;
		for (int k = 0; k < s->layout.nstates; k++) /* optimizer states have the same layout as the weights */
			oc.in[oc.nin++] = gt_opcall_operand(&oc, "w");
	}
	GT_TRY(gt_kernel_prepare(s, &oc, c, err));
	p->ncalls++;
	c->node = i;
	c->segment = segment;
	c->phase = gt_node_phase(n);
	c->fused_update = n->op->flags & GT_OPF_UPDATES;
	c->flops = gt_node_flops(g, n);
	for (int k = 0; k < n->nin; k++)
		if (n->in[k] >= 0)
			store_layout(s, &g->values[n->in[k]], &in[k]);
	for (int k = 0; k < n->nout; k++)
		if (n->out[k] >= 0)
			store_layout(s, &g->values[n->out[k]], &out[k]);
	return GT_OK;
}

static void keep_larger(size_t *to, size_t n)
{
	*to = n > *to ? n : *to;
}

/* Grows the arenas of activations, and their lower bounds, to what plan p needs. */
static void grow_activations(struct gt_space *s, const struct gt_plan *p)
{
	struct gt_memory *m = &s->memory;
	bool train = p->graph->train;
	size_t slots = (size_t)gt_at_least_one(m->act_slots[train]);
	keep_larger(&m->act_slot_bytes[train], p->act.bytes);
	keep_larger(&m->bytes[GT_A_ACT], m->act_slot_bytes[train] * slots);
	keep_larger(&m->live[GT_A_ACT], p->act.live * slots);
	keep_larger(&m->bytes[GT_A_SHARED_ACT], p->rows.bytes);
	keep_larger(&m->live[GT_A_SHARED_ACT], p->rows.live);
}

/* Steps: start the parameters' layouts if g is the first graph; lower every node except aliases; assign the missing offsets of parameters;
 * find when sharded parameters are gathered; plan the memory of activations; repeat the calls of segments; grow the arenas to what this
 * plan needs. `made` has the arguments of the caller. */
static enum gt_code make_plan(const struct gt_plan *made, bool deterministic, struct gt_plan **out, struct gt_err *err)
{
	struct gt_space *s = made->space;
	struct gt_graph *g = made->graph;
	struct gt_plan *p;
	bool first = !s->layout.first;
	*out = NULL;
	if (first)
		GT_TRY(gt_layout_start(s, g, err));
	if (g->nparams != s->layout.first->nparams)
		return gt_fail(err, GT_EINTERNAL, "a graph with %d parameters cannot use the memory that was planned for %d parameters",
		               g->nparams, s->layout.first->nparams);
	GT_NEW(p, s->arena, 1, err);
	*p = *made;
	GT_NEW(p->slot, s->arena, g->nvalues, err);
	GT_NEW(p->call, s->arena, g->nnodes ? g->nnodes : 1, err);
	for (int i = 0; i < g->nnodes; i++) {
		const struct gt_node *n = &g->nodes[i];
		if (gt_node_alias(g, n))
			continue;
		enum gt_code code = lower_node(p, i, deterministic, err);
		if (code != GT_OK) {
			gt_plan_close(p);
			return code;
		}
	}
	enum gt_code code = first || g->stages ? gt_layout_assign(s, g, err) : GT_OK;
	if (code == GT_OK && gt_space_sharded(s, GT_A_PARAM))
		code = gt_plan_param_residency(p, err);
	if (code == GT_OK)
		gt_layout_bytes(s);
	if (code == GT_OK)
		code = gt_memory_plan(p, err);
	if (code == GT_OK)
		code = gt_plan_repeat_calls(p, err);
	if (code != GT_OK) {
		gt_plan_close(p);
		return code;
	}
	grow_activations(s, p);
	*out = p;
	return GT_OK;
}

enum gt_code gt_plan_make(struct gt_space *s, struct gt_graph *g, bool accumulate, bool deterministic, struct gt_plan **out,
                          struct gt_err *err)
{
	return make_plan(&(struct gt_plan){.space = s, .graph = g, .accumulate = accumulate}, deterministic, out, err);
}

enum gt_code gt_plan_make_parts(struct gt_space *s, struct gt_graph *g, const struct gt_segment *segment, int nsegments,
                                bool deterministic, struct gt_plan **out, struct gt_err *err)
{
	return make_plan(&(struct gt_plan){.space = s, .graph = g, .segment = segment, .nsegments = nsegments}, deterministic, out, err);
}

enum gt_code gt_plan_instance(struct gt_plan *p, int act_slot, int level, int copy, struct gt_plan **out, struct gt_err *err)
{
	struct gt_plan *q;
	GT_NEW(q, p->space->arena, 1, err);
	*q = *p;
	GT_NEW(q->call, p->space->arena, p->ncalls ? p->ncalls : 1, err);
	memcpy(q->call, p->call, (size_t)p->ncalls * sizeof *q->call);
	q->of = p->of ? p->of : p;
	q->act_slot = act_slot;
	q->level = level;
	q->copy = copy;
	*out = q;
	return GT_OK;
}

void gt_plan_close(struct gt_plan *p)
{
	if (!p || p->of)
		return;
	for (int i = 0; i < p->ncalls; i++)
		if (p->call[i].kernel && !p->call[i].part)
			p->space->be->release(p->space->dev, p->call[i].kernel);
	p->ncalls = 0;
}
