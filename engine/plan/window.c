/* The kernel that runs whole windows of training (mlp.steps): finds out whether a training graph is a multilayer perceptron, and asks the
 * backend. The list of single kernels stays in the program: it finds the cause of a step that diverges, and `gtrain bench` times it. */
#include "plan/window.h"
#include "ir/op.h"
#include "base/arena.h"
#include "plan/plan_parts.h"

struct match {
	struct gt_space *space;
	const struct gt_graph *g;
	const struct gt_window_spec *spec;
	struct gt_attr_mlp_steps attr;
	int loss;        /* index of the node of the loss; -1: not found */
	int nparams;     /* number of parameters that the layers have */
	gt_vid at;       /* the value that the next layer has to read */
	const char *why; /* NULL, or the reason why the graph does not match */
	struct gt_err *err;
	enum gt_code code;
};

static bool refuse(struct match *m, const char *format, const char *a, const char *b)
{
	m->why = gt_arena_printf(m->g->arena, format, a, b);
	if (!m->why)
		m->code = gt_fail_memory(m->err, 0);
	return false;
}

/* Finds a learned parameter in the flat arena. offset: -1 if v is -1. */
static bool find_param(struct match *m, gt_vid v, int64_t *offset, struct gt_seg *seg)
{
	*offset = -1;
	*seg = (struct gt_seg){0};
	if (v < 0)
		return true;
	const struct gt_value *val = &m->g->values[v];
	if (val->kind != GT_V_PARAM || val->param < 0 || val->desc.dtype != GT_F32)
		return refuse(m, "%s is not f32%s", val->name, "");
	const struct gt_param_slot *p = &m->space->layout.param[val->param];
	if (m->g->params[val->param].frozen)
		return refuse(m, "%s is frozen%s", val->name, "");
	if (p->offset < 0 || p->fused_update || !gt_tdesc_plain(&p->desc))
		return refuse(m, "%s has a layout of its own%s", val->name, "");
	*offset = p->offset;
	*seg = m->spec->apply[val->param].hyper;
	m->nparams++;
	return true;
}

static bool add_layer(struct match *m, const struct gt_node *n, const struct gt_attr_linear *a)
{
	struct gt_attr_mlp_steps *all = &m->attr;
	if (all->nlayers == GT_MLP_LAYERS)
		return refuse(m, "more than 4 linear layers%s%s", "", "");
	struct gt_mlp_layer *l = &all->layer[all->nlayers++];
	l->in = gt_graph_desc(m->g, n->in[0])->dim[1];
	l->out = a->out;
	l->act.code = a->act == GT_ACT_RELU ? GT_OP_RELU : GT_OP_IDENTITY;
	return find_param(m, n->in[1], &l->weight, &l->weight_seg) &&
	       find_param(m, n->nin > 2 ? n->in[2] : -1, &l->bias, &l->bias_seg);
}

static bool set_loss(struct match *m, int node, enum gt_opcode code, const struct gt_attr_loss *loss, gt_vid target)
{
	bool known = code == GT_OP_CROSS_ENTROPY || code == GT_OP_MSE || code == GT_OP_BCE || code == GT_OP_SMOOTH_L1;
	if (!known || target < 0 || gt_graph_desc(m->g, target)->dtype != GT_I32)
		return refuse(m, "the loss is not a cross entropy, mse, bce, l1 or smooth_l1 of labels%s%s", "", "");
	m->attr.loss_code = code;
	m->attr.loss = *loss;
	m->loss = node;
	return m->attr.nlayers > 1 || refuse(m, "fewer than 2 linear layers%s%s", "", "");
}

/* Adds the activation of node n to the layer before it. Returns false, without a reason, if n is none that the kernel knows. */
static bool add_activation(struct match *m, const struct gt_node *n)
{
	struct gt_mlp_act a = {.code = n->op->code};
	if (!m->attr.nlayers || m->attr.layer[m->attr.nlayers - 1].act.code != GT_OP_IDENTITY)
		return false;
	switch (n->op->code) {
	case GT_OP_LEAKY_RELU:
		a.slope = (float)((const struct gt_attr_leaky *)n->attr)->slope;
		break;
	case GT_OP_ELU:
		a.slope = (float)((const struct gt_attr_elu *)n->attr)->alpha;
		break;
	case GT_OP_GELU:
		a.tanh = ((const struct gt_attr_gelu *)n->attr)->approximate;
		break;
	case GT_OP_RELU:
	case GT_OP_SIGMOID:
	case GT_OP_TANH:
	case GT_OP_SILU:
		break;
	default:
		return false;
	}
	m->attr.layer[m->attr.nlayers - 1].act = a;
	m->at = n->out[0];
	return true;
}

/* Takes node i, which is the next one of the forward pass. */
static bool take(struct match *m, int i)
{
	const struct gt_graph *g = m->g;
	const struct gt_node *n = &g->nodes[i];
	if (gt_graph_source(g, n->in[0]) != m->at)
		return refuse(m, "%s (%s) is not in a row with the layers before it", n->name, gt_op_name(n->op));
	if (n->op->code == GT_OP_LINEAR && gt_graph_desc(g, n->in[0])->rank == 2) {
		m->at = n->out[0];
		return add_layer(m, n, n->attr);
	}
	if (n->op->code == GT_OP_LINEAR_LOSS) {
		const struct gt_attr_linear_loss *a = n->attr;
		return add_layer(m, n, &a->linear) && set_loss(m, i, a->code, &a->loss, n->in[3]);
	}
	if (n->nin > 1 && n->in[1] >= 0 && g->values[n->in[1]].kind == GT_V_TARGET)
		return set_loss(m, i, n->op->code, n->attr, n->in[1]);
	if (n->op->code == GT_OP_FLATTEN && !m->attr.nlayers) {
		m->at = n->out[0];
		return true;
	}
	return add_activation(m, n) ||
	       refuse(m, "%s (%s) is neither linear nor an activation that the kernel has after a linear layer", n->name, gt_op_name(n->op));
}

/* Returns true if the graph is a multilayer perceptron; then m->attr describes it. */
static bool matches(struct match *m)
{
	const struct gt_graph *g = m->g;
	if (g->ninputs != 1 || g->compute != GT_F32)
		return refuse(m, g->ninputs != 1 ? "the model has several inputs%s%s" : "products are not computed in f32%s%s", "", "");
	m->at = gt_graph_source(g, g->input[0]);
	for (int i = 0; i < g->nnodes && m->loss < 0; i++)
		if (!g->nodes[i].backward && !gt_node_alias(g, &g->nodes[i]) && !take(m, i))
			return false;
	if (m->loss < 0)
		return refuse(m, "the model has no loss that the kernel knows%s%s", "", "");
	if (m->nparams != g->nparams)
		return refuse(m, "the model has other parameters than those of its linear layers%s%s", "", "");
	return true;
}

/* Copies a call with its attributes and descriptors into the arena of the graph. */
static enum gt_code copy_call(const struct match *m, const struct gt_opcall *oc, const struct gt_opcall **out, struct gt_err *err)
{
	struct gt_opcall *c;
	struct gt_attr_mlp_steps *attr;
	GT_NEW(c, m->g->arena, 1, err);
	GT_NEW(attr, m->g->arena, 1, err);
	*c = *oc;
	*attr = m->attr;
	c->attr = attr;
	for (int i = 0; i < oc->nin; i++) {
		if (!oc->in[i])
			continue;
		GT_NEW(c->in[i], m->g->arena, 1, err);
		*c->in[i] = *oc->in[i];
	}
	*out = c;
	return GT_OK;
}

enum gt_code gt_plan_window(struct gt_space *s, const struct gt_graph *g, const struct gt_window_spec *spec, struct gt_call *out,
                            const struct gt_opcall **asked, const char **why, struct gt_err *err)
{
	struct match m = {.space = s, .g = g, .spec = spec, .loss = -1, .err = err};
	struct gt_err refused;
	*why = NULL;
	*asked = NULL;
	*out = (struct gt_call){0};
	if (!matches(&m)) {
		*why = m.why;
		return m.code;
	}
	m.attr.batch = g->batch;
	m.attr.gather = *spec->gather;
	m.attr.optimizer = spec->apply->code;
	m.attr.update = spec->apply->attr;
	m.attr.ema_decay = spec->ema_decay;
	m.attr.ema_warmup = spec->ema_warmup;
	const struct gt_update_row *row = gt_update_row(spec->apply->code);
	int64_t dim[4] = {spec->samples, spec->shape[0], spec->shape[1], spec->shape[2]}, order[2] = {2, spec->order};
	int64_t scalars_dim[2] = {1, GT_SCALARS_WORDS}, words = GT_SCALER_WORDS;
	struct gt_tdesc images = gt_tdesc_make(GT_U8, 4, dim, true), labels = gt_tdesc_make(GT_I32, 1, dim, false),
	                index = gt_tdesc_make(GT_I64, 2, order, false), flat = gt_tdesc_make(GT_F32, 1, &s->layout.elements, false),
	                scalars = gt_tdesc_make(GT_F64, 2, scalars_dim, false), scaler = gt_tdesc_make(GT_F64, 1, &words, false);
	struct gt_opcall oc = {.code = GT_OP_MLP_STEPS, .name = "window", .attr = &m.attr, .nin = GT_WINDOW_OPERANDS,
	                       .in = {&images, &labels, &index, &flat, NULL, NULL, &scalars, &scaler, spec->ema ? &flat : NULL},
	                       .deterministic = spec->deterministic};
	for (int i = 0, n = 0; i < row->nslots; i++)
		if (gt_update_has(row, &spec->apply->attr, i)) {
			if (n == GT_WINDOW_STATES) {
				*why = "the optimizer keeps more than two states";
				return GT_OK;
			}
			oc.in[4 + n++] = &flat;
		}
	if (gt_call_prepare(s, &oc, out, &refused) == GT_OK)
		return copy_call(&m, &oc, asked, err);
	if (refused.code == GT_EFAIL)
		return gt_fail(err, GT_EFAIL, "%s", refused.msg);
	*why = gt_arena_strdup(g->arena, refused.msg);
	return *why ? GT_OK : gt_fail_memory(err, 0);
}

void gt_window_bind(struct gt_call *c, const struct gt_space *s)
{
	char *state = s->memory.base[GT_A_STATE];
	c->in[3] = s->memory.base[GT_A_PARAM];
	for (int i = 0; i < GT_WINDOW_STATES; i++)
		c->in[4 + i] = state && i < s->layout.nstates ? state + gt_space_element(s, GT_A_STATE, i * s->layout.elements).offset : NULL;
	c->in[6] = gt_space_scalars(s, 0);
	c->in[7] = gt_space_scaler(s);
	if (state && s->layout.more_states)
		c->in[8] = state + gt_space_element(s, GT_A_STATE, s->layout.nstates * s->layout.elements).offset;
	c->work = s->memory.base[GT_A_SCRATCH];
}
