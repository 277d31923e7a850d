/* Checks the invariants of a graph. A violation is a bug in gtrain. */
#include "ir/rows.h"
#include "opsig.h"

static enum gt_code check_value(const struct gt_graph *g, gt_vid id, struct gt_err *err)
{
	const struct gt_value *v = &g->values[id];
	bool owned = v->kind == GT_V_PARAM || v->kind == GT_V_WORK || v->kind == GT_V_BUFFER || v->kind == GT_V_GRAD;
	if (!v->name || v->desc.rank > GT_MAX_RANK || v->desc.dtype >= GT_DTYPE_COUNT)
		return gt_fail(err, GT_EINTERNAL, "verify: value %d (%s) has no name or an invalid rank or type", id, v->name ? v->name : "?");
	for (int i = 0; i < v->desc.rank; i++)
		if (v->desc.dim[i] < 1)
			return gt_fail(err, GT_EINTERNAL, "verify: value %d (%s): dimension %d has the invalid size %lld", id, v->name, i,
			               (long long)v->desc.dim[i]);
	if (owned != (v->param >= 0) || v->param >= g->nparams)
		return gt_fail(err, GT_EINTERNAL, "verify: value %d (%s) of kind %d has the invalid parameter index %d", id, v->name, v->kind,
		               v->param);
	if ((v->producer >= 0) != (v->kind == GT_V_ACT || v->kind == GT_V_GRAD || v->kind == GT_V_METRICS) ||
	    v->producer >= g->nnodes)
		return gt_fail(err, GT_EINTERNAL, "verify: value %d (%s) of kind %d has the invalid producer node %d", id, v->name, v->kind,
		               v->producer);
	return GT_OK;
}

/* Checks that the operands have the types and shapes of the operation's signature, and that no activation is changed in place. */
static enum gt_code check_signature(const struct gt_graph *g, const struct gt_node *n, struct gt_err *err)
{
	struct gt_opcall call = {.code = n->op->code, .name = n->name, .nin = n->nin, .nout = n->nout};
	struct gt_tdesc desc[2 * GT_MAX_IO];
	struct gt_opsig sig;
	for (int k = 0; k < n->nin + n->nout; k++) {
		gt_vid v = k < n->nin ? n->in[k] : n->out[k - n->nin];
		if (v < 0)
			continue;
		desc[k] = g->values[v].desc;
		*(k < n->nin ? &call.in[k] : &call.out[k - n->nin]) = &desc[k];
	}
	enum gt_code code = gt_opcall_check(&call, err);
	if (code != GT_OK)
		return gt_fail_prefix(err, "verify"), code;
	gt_opsig_read(call.code, &sig);
	for (int k = 0; k < n->nin; k++)
		if (n->in[k] >= 0 && gt_opsig_input(&sig, k)->updated && g->values[n->in[k]].producer >= 0)
			return gt_fail(err, GT_EINTERNAL, "verify: %s (%s) would overwrite the activation %s in place", gt_op_name(n->op), n->name,
			               g->values[n->in[k]].name);
	return GT_OK;
}

static enum gt_code check_node(const struct gt_graph *g, int i, bool *made, struct gt_err *err)
{
	const struct gt_node *n = &g->nodes[i];
	if (!n->op || !n->name || n->op->code >= GT_OP_COUNT || (gt_op_attr_size(n->op) && !n->attr))
		return gt_fail(err, GT_EINTERNAL, "verify: node %d has no operation, no name or no attributes", i);
	int least = n->op->code != GT_OP_COMM; /* minimum of inputs and of outputs: 0 for sends and receives, else 1 */
	if (n->nin < least || n->nin > GT_MAX_IO || n->nout < least || n->nout > GT_MAX_IO || n->ndata < least || n->ndata > n->nin ||
	    n->nin + n->nout < 1)
		return gt_fail(err, GT_EINTERNAL, "verify: node %d (%s) has an invalid number of operands: %d inputs (%d with data) and %d outputs",
		               i, n->name, n->nin, n->ndata, n->nout);
	for (int k = 0; k < n->nin; k++) {
		gt_vid v = n->in[k];
		if (v < -1 || v >= g->nvalues || (v == -1 && k < n->ndata))
			return gt_fail(err, GT_EINTERNAL, "verify: node %d (%s): input %d is value %d, which does not exist", i, n->name, k, v);
		if (v >= 0 && g->values[v].producer >= 0 && !made[v])
			return gt_fail(err, GT_EINTERNAL, "verify: node %d (%s) uses value %d (%s) before another node computes it", i, n->name, v,
			               g->values[v].name);
	}
	for (int k = 0; k < n->nout; k++) {
		gt_vid v = n->out[k];
		if (v == -1)
			continue;
		bool one_of = v >= 0 && v < g->nvalues && g->values[v].kind == GT_V_GRAD && g->params[g->values[v].param].tied;
		if (v < 0 || v >= g->nvalues || (one_of ? g->values[v].producer < i : g->values[v].producer != i || made[v]))
			return gt_fail(err, GT_EINTERNAL, "verify: node %d (%s): output %d is value %d, which does not exist or which another node "
			               "computes", i, n->name, k, v);
		made[v] = true;
	}
	return check_signature(g, n, err);
}

static enum gt_code check_param(const struct gt_graph *g, int i, bool differentiated, struct gt_err *err)
{
	const struct gt_param *p = &g->params[i];
	bool trainable = p->cls != GT_PARAM_BUFFER && !p->frozen;
	bool half = gt_dtype_size(g->compute) == 2 && (p->cls == GT_PARAM_WEIGHT || (p->tied && p->work >= 0));
	if (g->stages && p->name && p->value < 0 && p->work < 0 && p->grad < 0) /* the parameter belongs to another pipeline stage */
		return GT_OK;
	if (!p->name || !p->layer || p->value < 0 || g->values[p->value].param != i || !gt_tdesc_equal(&g->values[p->value].desc, &p->desc))
		return gt_fail(err, GT_EINTERNAL, "verify: parameter %d (%s) does not match its value in the graph", i, p->name ? p->name : "?");
	if ((p->work >= 0) != half || (half && (g->values[p->work].desc.dtype != g->compute || g->values[p->work].kind != GT_V_WORK)))
		return gt_fail(err, GT_EINTERNAL, "verify: parameter %d (%s): its 16-bit work copy is missing, unexpected or of a wrong type", i,
		               p->name);
	if ((p->grad >= 0) != (trainable && differentiated))
		return gt_fail(err, GT_EINTERNAL, "verify: parameter %d (%s) unexpectedly has %s gradient", i, p->name, p->grad >= 0 ? "a" : "no");
	if (p->grad >= 0 && (g->values[p->grad].kind != GT_V_GRAD || !gt_tdesc_equal(&g->values[p->grad].desc, &p->desc)))
		return gt_fail(err, GT_EINTERNAL, "verify: parameter %d (%s): its gradient has another shape or type", i, p->name);
	return GT_OK;
}

enum gt_code gt_graph_verify(const struct gt_graph *g, struct gt_err *err)
{
	bool *made, differentiated = false;
	if (g->output >= g->nvalues || (!g->stages && (g->ninputs < 1 || g->output < 0 || (g->metrics >= 0) != (g->target >= 0))))
		return gt_fail(err, GT_EINTERNAL, "verify: invalid inputs or outputs of the graph: %d inputs, output %d, target %d, metrics %d",
		               g->ninputs, g->output, g->target, g->metrics);
	GT_NEW(made, g->arena, g->nvalues + 1, err);
	for (gt_vid v = 0; v < g->nvalues; v++)
		GT_TRY(check_value(g, v, err));
	for (int i = 0; i < g->nnodes; i++) {
		GT_TRY(check_node(g, i, made, err));
		differentiated |= g->nodes[i].backward;
	}
	for (int i = 0; i < g->nparams; i++)
		GT_TRY(check_param(g, i, differentiated, err));
	return GT_OK;
}
