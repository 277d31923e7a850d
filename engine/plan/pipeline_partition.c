/* Partitions a graph into pipeline stages: finds the values that stages exchange, then copies the nodes of a stage into a new graph. */
#include "plan/pipeline_partition.h"
#include "ir/op.h"
#include <string.h>

/* ---- values that cross ------------------------------------------------------------------------------------------------------------- */

/* Returns the value that stage t needs when one of its nodes reads v. An alias is replaced by the value that owns the memory, and a
 * value that another stage recomputes is replaced by the forward value that it repeats. */
static gt_vid resolve_source(const struct gt_partition *c, gt_vid v, int t)
{
	const struct gt_graph *g = c->full;
	for (;;) {
		int p = g->values[v].producer;
		if (p < 0)
			return v;
		if (gt_node_alias(g, &g->nodes[p]))
			v = gt_node_first_input(&g->nodes[p]);
		else if (g->values[v].again >= 0 && c->stage[p] != t)
			v = g->values[v].again;
		else
			return v;
	}
}

/* Returns whether node n recomputes a value. */
static bool is_recomputed(const struct gt_graph *g, const struct gt_node *n)
{
	for (int k = 0; k < n->nout; k++)
		if (n->out[k] >= 0 && g->values[n->out[k]].again >= 0)
			return true;
	return false;
}

/* Returns whether node n may be in phase W, the part of the backward pass that other stages do not wait for: only the optimizer's update
 * needs its outputs. wanted: values that a node of phase B reads. */
static bool is_deferrable(const struct gt_graph *g, const struct gt_node *n, const bool *wanted)
{
	bool again = is_recomputed(g, n);
	for (int k = 0; k < n->nout; k++)
		if (n->out[k] >= 0 && (wanted[n->out[k]] || (!again && g->values[n->out[k]].kind != GT_V_GRAD)))
			return false;
	return n->backward && n->op->code != GT_OP_COMM;
}

/* Sets gt_partition.live and gt_partition.phase of each node, from the last node to the first. */
static enum gt_code find_phases(struct gt_partition *c, struct gt_err *err)
{
	const struct gt_graph *g = c->full;
	bool *used, *wanted; /* [value] used: a live node reads the value; wanted: a node of phase B reads the value */
	GT_NEW(used, g->arena, g->nvalues, err);
	GT_NEW(wanted, g->arena, g->nvalues, err);
	for (int i = g->nnodes - 1; i >= 0; i--) {
		const struct gt_node *n = &g->nodes[i];
		if (gt_node_alias(g, n))
			continue;
		c->live[i] = !is_recomputed(g, n);
		for (int k = 0; k < n->nout; k++)
			c->live[i] |= n->out[k] >= 0 && used[n->out[k]];
		c->phase[i] = c->split && is_deferrable(g, n, wanted) ? GT_PHASE_W : n->backward ? GT_PHASE_B : GT_PHASE_F;
		for (int k = 0; c->live[i] && k < n->nin; k++)
			if (n->in[k] >= 0) {
				gt_vid r = resolve_source(c, n->in[k], c->stage[i]);
				used[r] = true;
				wanted[r] |= c->phase[i] == GT_PHASE_B;
			}
	}
	return GT_OK;
}

static bool is_param_kind(enum gt_vkind k)
{
	return k == GT_V_PARAM || k == GT_V_WORK || k == GT_V_BUFFER || k == GT_V_GRAD;
}

/* Checks that all nodes that use a parameter are on one stage. home: the stage of each parameter; -1: no node that uses it has been found
 * yet. */
static enum gt_code check_one_stage(const struct gt_partition *c, int *home, gt_vid v, int i, struct gt_err *err)
{
	const struct gt_value *val = &c->full->values[v];
	if (!is_param_kind(val->kind))
		return GT_OK;
	if (home[val->param] >= 0 && home[val->param] != c->stage[i])
		return gt_fail(err, GT_EINTERNAL, "partition: the parameter %s is used by stages %d and %d",
		               val->name, home[val->param], c->stage[i]);
	home[val->param] = c->stage[i];
	return GT_OK;
}

/* Records that stage t reads v in a phase. use[value][stage]: 1 + the phase in which the stage receives the value; 0: the stage does not
 * receive it. */
static enum gt_code record_use(struct gt_partition *c, uint8_t *use, gt_vid v, int t, enum gt_phase reader, struct gt_err *err)
{
	const struct gt_graph *g = c->full;
	gt_vid r = resolve_source(c, v, t);
	int p = g->values[r].producer, s = p < 0 ? t : c->stage[p];
	if (s == t)
		return GT_OK;
	const struct gt_value *val = &g->values[r];
	enum gt_phase phase = c->phase[p] == GT_PHASE_F && s < t ? GT_PHASE_F : GT_PHASE_B;
	bool legal = c->phase[p] == GT_PHASE_F ? s < t || reader != GT_PHASE_F : s > t && c->phase[p] == GT_PHASE_B;
	if (!legal || val->kind != GT_V_ACT || val->desc.any || !c->live[p])
		return gt_fail(err, GT_EINTERNAL, "partition: the tensor %s cannot be sent from stage %d to stage %d", val->name, s, t);
	use[(int64_t)r * c->stages + t] = (uint8_t)(1 + phase);
	return GT_OK;
}

/* Checks every operand of every live node, and lists the operands that another stage makes, in the order of gt_partition.cross. */
static enum gt_code find_crossings(struct gt_partition *c, struct gt_err *err)
{
	const struct gt_graph *g = c->full;
	uint8_t *use;
	int *home;
	GT_NEW(use, g->arena, (int64_t)g->nvalues * c->stages, err);
	GT_NEW(home, g->arena, g->nparams + 1, err);
	memset(home, 0xff, (size_t)g->nparams * sizeof *home);
	for (int i = 0; i < g->nnodes; i++) {
		const struct gt_node *n = &g->nodes[i];
		if (!c->live[i])
			continue;
		for (int k = 0; k < n->nin; k++)
			if (n->in[k] >= 0) {
				GT_TRY(check_one_stage(c, home, n->in[k], i, err));
				GT_TRY(record_use(c, use, n->in[k], c->stage[i], (enum gt_phase)c->phase[i], err));
			}
		for (int k = 0; k < n->nout; k++)
			if (n->out[k] >= 0)
				GT_TRY(check_one_stage(c, home, n->out[k], i, err));
	}
	GT_TRY(record_use(c, use, g->output, c->stages - 1, GT_PHASE_F, err));
	for (int64_t i = 0; i < (int64_t)g->nvalues * c->stages; i++)
		c->ncross += use[i] != 0;
	GT_NEW(c->cross, g->arena, c->ncross + 1, err);
	struct gt_stage_transfer *x = c->cross;
	for (int i = 0; i < g->nnodes; i++)
		for (int k = 0; c->live[i] && k < g->nodes[i].nout; k++)
			for (int t = 0; g->nodes[i].out[k] >= 0 && t < c->stages; t++) {
				gt_vid v = g->nodes[i].out[k];
				if (use[(int64_t)v * c->stages + t])
					*x++ = (struct gt_stage_transfer){v, c->stage[i], t, (enum gt_phase)(use[(int64_t)v * c->stages + t] - 1)};
			}
	return GT_OK;
}

enum gt_code gt_partition_make(const struct gt_graph *full, const int *stage_of, int stages, int ranks, bool split,
                               struct gt_partition **out, struct gt_err *err)
{
	struct gt_partition *c;
	*out = NULL;
	GT_NEW(c, full->arena, 1, err);
	*c = (struct gt_partition){.full = full, .stages = stages, .ranks = ranks, .split = split};
	GT_NEW(c->stage, full->arena, full->nnodes + 1, err);
	GT_NEW(c->phase, full->arena, full->nnodes + 1, err);
	GT_NEW(c->live, full->arena, full->nnodes + 1, err);
	for (int i = 0; i < full->nnodes; i++) {
		int s = full->nodes[i].layer < 0 ? stages - 1 : stage_of[full->nodes[i].layer];
		if (s < 0 || s >= stages)
			return gt_fail(err, GT_EINTERNAL, "partition: %s belongs to stage %d, but there are %d stages", full->nodes[i].name, s, stages);
		c->stage[i] = s;
	}
	GT_TRY(find_phases(c, err));
	GT_TRY(find_crossings(c, err));
	*out = c;
	return GT_OK;
}

int gt_partition_lanes(struct gt_partition *c)
{
	int lanes = 1;
	for (int i = 0; i < c->ncross; i++) {
		struct gt_stage_transfer *x = &c->cross[i];
		x->lane = -1;
		int next = 0;
		for (int k = 0; k < i; k++) {
			const struct gt_stage_transfer *y = &c->cross[k];
			if (y->from == x->from && y->to == x->to)
				x->lane = y->lane;
			else if (y->from % c->ranks == x->from % c->ranks && y->to % c->ranks == x->to % c->ranks && y->lane >= next)
				next = y->lane + 1;
		}
		if (x->lane < 0)
			x->lane = next;
		lanes = x->lane >= lanes ? x->lane + 1 : lanes;
	}
	return lanes;
}

/* ---- the graph of a stage ------------------------------------------------------------------------------------------------------------ */

struct build {
	const struct gt_partition *c;
	struct gt_graph *g; /* the graph of one stage, which is being built */
	int stage;
	gt_vid *map;        /* [value of the whole graph]: its copy in the stage's graph; -1: it has not been copied */
};

static enum gt_code copy_value(struct build *b, gt_vid v, gt_vid *out, struct gt_err *err)
{
	const struct gt_value *val = &b->c->full->values[v];
	GT_TRY(gt_graph_value(b->g, val->name, val->kind, &val->desc, out, err));
	b->g->values[*out].param = val->param;
	b->map[v] = *out;
	return GT_OK;
}

/* Copies a parameter that the stage uses: its value, its work copy and its gradient. */
static enum gt_code copy_param(struct build *b, int param, struct gt_err *err)
{
	const struct gt_param *from = &b->c->full->params[param];
	struct gt_param *to = &b->g->params[param];
	if (to->value >= 0)
		return GT_OK;
	GT_TRY(copy_value(b, from->value, &to->value, err));
	if (from->work >= 0)
		GT_TRY(copy_value(b, from->work, &to->work, err));
	return from->grad < 0 ? GT_OK : copy_value(b, from->grad, &to->grad, err);
}

static enum gt_code copy_node(struct build *b, int i, struct gt_err *err);

/* Sets *out to the stage's copy of v. Parameters, inputs and aliases are copied on first use; a value that another stage recomputes is
 * replaced by the value that it repeats. Any other value must have been copied already. */
static enum gt_code stage_value(struct build *b, gt_vid v, gt_vid *out, struct gt_err *err)
{
	const struct gt_graph *g = b->c->full;
	const struct gt_value *val = &g->values[v];
	*out = v < 0 ? -1 : b->map[v];
	if (v < 0 || *out >= 0)
		return GT_OK;
	if (is_param_kind(val->kind)) {
		GT_TRY(copy_param(b, val->param, err));
		*out = b->map[v];
		return GT_OK;
	}
	if (val->producer < 0)
		return copy_value(b, v, out, err);
	if (gt_node_alias(g, &g->nodes[val->producer])) {
		GT_TRY(copy_node(b, val->producer, err));
		*out = b->map[v];
		return GT_OK;
	}
	if (val->again >= 0 && b->c->stage[val->producer] != b->stage)
		return stage_value(b, val->again, out, err);
	return gt_fail(err, GT_EINTERNAL, "partition: stage %d reads %s before it has been computed or received", b->stage, val->name);
}

/* Copies node i of the whole graph and its outputs into the graph of the stage. */
static enum gt_code copy_node(struct build *b, int i, struct gt_err *err)
{
	const struct gt_node *from = &b->c->full->nodes[i];
	struct gt_node *n;
	gt_vid in[GT_MAX_IO] = {0}, out[GT_MAX_IO] = {0};
	for (int k = 0; k < from->nin; k++)
		GT_TRY(stage_value(b, from->in[k], &in[k], err));
	for (int k = 0; k < from->nout; k++) {
		gt_vid v = from->out[k];
		out[k] = -1;
		if (v >= 0 && is_param_kind(b->c->full->values[v].kind))
			GT_TRY(stage_value(b, v, &out[k], err));
		else if (v >= 0)
			GT_TRY(copy_value(b, v, &out[k], err));
		if (v >= 0)
			b->g->values[out[k]].producer = b->g->nnodes;
	}
	GT_TRY(gt_graph_node_of(b->g, from->op, from->name, from->attr, &n, err));
	n->layer = from->layer;
	n->backward = from->backward;
	n->deferred = b->c->phase[i] == GT_PHASE_W;
	n->nin = from->nin;
	n->ndata = from->ndata;
	n->nout = from->nout;
	memcpy(n->in, in, sizeof in);
	memcpy(n->out, out, sizeof out);
	return GT_OK;
}

/* Returns whether transfer x sends a value of the forward pass only at the start of the backward pass, because the receiver needs it in the
 * backward pass or both stages are on one rank. */
static bool sent_in_backward(const struct gt_partition *c, const struct gt_stage_transfer *x)
{
	return c->phase[c->full->values[x->v].producer] == GT_PHASE_F && (x->phase == GT_PHASE_B || x->from % c->ranks == x->to % c->ranks);
}

/* Appends the SEND node (if sends is true) or the RECV node of transfer x. */
static enum gt_code append_transfer(struct build *b, const struct gt_stage_transfer *x, bool sends, struct gt_err *err)
{
	const struct gt_partition *c = b->c;
	const struct gt_value *val = &c->full->values[x->v];
	struct gt_attr_comm *attr;
	struct gt_node *n;
	gt_vid v;
	GT_NEW(attr, b->g->arena, 1, err);
	*attr = (struct gt_attr_comm){.kind = sends ? GT_COMM_SEND : GT_COMM_RECV,
	                              .group = GT_GROUP_PIPE,
	                              .peer = (sends ? x->to : x->from) % c->ranks,
	                              .lane = x->lane};
	if (sends)
		GT_TRY(stage_value(b, x->v, &v, err));
	else
		GT_TRY(copy_value(b, x->v, &v, err));
	GT_TRY(gt_graph_node(b->g, GT_OP_COMM, val->name, attr, &n, err));
	n->layer = c->full->nodes[val->producer].layer;
	n->backward = x->phase != GT_PHASE_F || (sends && sent_in_backward(c, x) && c->full->nodes[c->full->nnodes - 1].backward);
	if (sends) {
		gt_node_input(n, v);
		n->ndata = 1;
	} else {
		n->out[n->nout++] = v;
		b->g->values[v].producer = b->g->nnodes - 1;
	}
	return GT_OK;
}

/* Appends, at the start of phase B, the SEND nodes of transfers for which sent_in_backward() is true. */
static enum gt_code append_late_sends(struct build *b, struct gt_err *err)
{
	for (const struct gt_stage_transfer *x = b->c->cross; x < b->c->cross + b->c->ncross; x++)
		if (x->from == b->stage && sent_in_backward(b->c, x))
			GT_TRY(append_transfer(b, x, true, err));
	return GT_OK;
}

/* Appends all nodes of one phase: late sends (phase B), receives, then the stage's nodes. In phase B a send follows the node that makes its
 * value; in phase F sends come last. */
static enum gt_code append_phase(struct build *b, enum gt_phase phase, struct gt_err *err)
{
	const struct gt_partition *c = b->c;
	const struct gt_stage_transfer *end = c->cross + c->ncross, *x = c->cross;
	if (phase == GT_PHASE_B)
		GT_TRY(append_late_sends(b, err));
	for (x = c->cross; x < end; x++)
		if (x->to == b->stage && x->phase == phase)
			GT_TRY(append_transfer(b, x, false, err));
	x = c->cross;
	for (int i = 0; i < c->full->nnodes; i++) {
		while (x < end && c->full->values[x->v].producer < i)
			x++;
		if (c->stage[i] != b->stage || !c->live[i] || c->phase[i] != phase)
			continue;
		GT_TRY(copy_node(b, i, err));
		for (; x < end && c->full->values[x->v].producer == i; x++)
			if (x->phase == phase && phase == GT_PHASE_B && !sent_in_backward(c, x))
				GT_TRY(append_transfer(b, x, true, err));
	}
	for (x = c->cross; x < end && phase == GT_PHASE_F; x++)
		if (x->from == b->stage && x->phase == phase && !sent_in_backward(c, x))
			GT_TRY(append_transfer(b, x, true, err));
	return GT_OK;
}

/* Starts from a copy of the whole graph without values and nodes, copies the parameters' descriptions, then appends phase after phase. */
enum gt_code gt_partition_stage(const struct gt_partition *c, int stage, struct gt_graph **out, struct gt_err *err)
{
	const struct gt_graph *full = c->full;
	struct build b = {.c = c, .stage = stage};
	struct gt_graph *g;
	*out = NULL;
	GT_NEW(g, full->arena, 1, err);
	*g = *full;
	g->values = NULL;
	g->nodes = NULL;
	g->nvalues = g->nnodes = g->cap_values = g->cap_nodes = 0;
	g->cap_params = g->nparams;
	g->stage = stage;
	g->stages = c->stages;
	g->target = g->output = g->metrics = -1;
	b.g = g;
	GT_NEW(g->params, full->arena, full->nparams + 1, err);
	GT_NEW(b.map, full->arena, full->nvalues + 1, err);
	memset(b.map, 0xff, (size_t)full->nvalues * sizeof *b.map);
	for (int i = 0; i < full->nparams; i++) {
		g->params[i] = full->params[i];
		g->params[i].value = g->params[i].work = g->params[i].grad = -1;
	}
	for (int i = 0; i < full->ninputs; i++)
		GT_TRY(stage_value(&b, full->input[i], &g->input[i], err));
	GT_TRY(stage_value(&b, full->target, &g->target, err));
	for (int phase = 0; phase < GT_PHASE_COUNT; phase++)
		GT_TRY(append_phase(&b, (enum gt_phase)phase, err));
	if (stage == c->stages - 1)
		GT_TRY(stage_value(&b, full->output, &g->output, err));
	g->metrics = full->metrics < 0 ? -1 : b.map[full->metrics];
	*out = g;
	return gt_graph_verify(g, err);
}

/* Returns whether some node reads v or an alias of v. */
static bool has_reader(const struct gt_graph *g, gt_vid v)
{
	for (int i = 0; v >= 0 && i < g->nnodes; i++) {
		const struct gt_node *n = &g->nodes[i];
		for (int k = 0; k < n->nin; k++)
			if (n->in[k] == v && (!gt_node_alias(g, n) || has_reader(g, gt_node_first_output(n))))
				return true;
	}
	return false;
}

bool gt_graph_reads_batch(const struct gt_graph *g)
{
	bool any = has_reader(g, g->target);
	for (int i = 0; i < g->ninputs; i++)
		any |= has_reader(g, g->input[i]);
	return any;
}
