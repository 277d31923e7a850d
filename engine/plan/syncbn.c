/* Rewrites batch normalisations for statistics of several ranks or micro-batches. */
#include "plan/syncbn.h"
#include "ir/op.h"
#include <string.h>

/* Indices of inputs and outputs of batchnorm (BN_…), batchnorm.merge (MERGE_…) and batchnorm.dx (DX_…), see opcall.h. */
enum { BN_RMEAN = 3, BN_RES = 6, BN_PART = 3, MERGE_RMEAN = 1, MERGE_PART = 2, DX_BETA = 5, DX_G = 3 };

struct pass {
	struct gt_graph *g;
	int group, world;
	int64_t samples;
	struct gt_node old; /* the node that is being replaced; the new nodes belong to the same layer and pass */
};

static enum gt_code copy_attr(struct gt_graph *g, const struct gt_attr_norm *from, struct gt_attr_norm **out, struct gt_err *err)
{
	GT_NEW(*out, g->arena, 1, err);
	**out = *from;
	return GT_OK;
}

static bool trains(const struct gt_node *n)
{
	return ((const struct gt_attr_norm *)n->attr)->train;
}

/* Makes n, the newest node, the producer of v in place of another node. */
static void take_over(struct gt_graph *g, struct gt_node *n, gt_vid v)
{
	n->out[n->nout++] = v;
	if (v >= 0)
		g->values[v].producer = g->nnodes - 1;
}

/* Appends a node unchanged. */
static enum gt_code append(struct gt_graph *g, const struct gt_node *old, struct gt_err *err)
{
	struct gt_node *n;
	GT_TRY(gt_graph_node_of(g, old->op, old->name, old->attr, &n, err));
	*n = *old;
	for (int k = 0; k < n->nout; k++)
		if (n->out[k] >= 0)
			g->values[n->out[k]].producer = g->nnodes - 1;
	return GT_OK;
}

/* Appends a collective over the group. */
static enum gt_code exchange(struct pass *p, int kind, gt_vid from, const char *suffix, const struct gt_tdesc *d, gt_vid *out,
                             struct gt_err *err)
{
	struct gt_attr_comm *attr;
	struct gt_node *n;
	GT_NEW(attr, p->g->arena, 1, err);
	*attr = (struct gt_attr_comm){.kind = kind, .group = p->group, .op = GT_REDUCE_SUM};
	GT_TRY(gt_graph_node(p->g, GT_OP_COMM, p->old.name, attr, &n, err));
	gt_node_input(n, from);
	n->ndata = 1;
	return gt_graph_output(p->g, n, suffix, d, out, err);
}

/* batchnorm → batchnorm.stats, all_gather, batchnorm.merge, batchnorm.y */
static enum gt_code forward(struct pass *p, struct gt_err *err)
{
	const struct gt_node *o = &p->old;
	struct gt_graph *g = p->g;
	struct gt_tdesc x = g->values[o->in[0]].desc;
	int64_t dims[3] = {p->world, 3, x.dim[1]}, values = p->samples * (gt_tdesc_count(&x) / x.dim[0] / x.dim[1]);
	struct gt_tdesc part = gt_tdesc_make(GT_F64, 2, dims + 1, false), parts = gt_tdesc_make(GT_F64, 3, dims, false);
	struct gt_node *n;
	gt_vid v;
	if (values < 2)
		return gt_fail(err, GT_ECONFIG,
		               "%s: expected more than one value per channel in training, got a batch of 1: choose another batch size", o->name);
	GT_TRY(gt_graph_node(g, GT_OP_BATCHNORM_STATS, o->name, o->attr, &n, err));
	gt_node_input(n, o->in[0]);
	n->ndata = 1;
	GT_TRY(gt_graph_output(g, n, "part", &part, &v, err));
	GT_TRY(exchange(p, GT_COLL_ALL_GATHER, v, "parts", &parts, &v, err));
	GT_TRY(gt_graph_node(g, GT_OP_BATCHNORM_MERGE, o->name, o->attr, &n, err));
	gt_node_input(n, v);
	n->ndata = 1;
	for (int k = 0; k < 3; k++)
		gt_node_input(n, o->in[BN_RMEAN + k]);
	take_over(g, n, o->out[1]);
	take_over(g, n, o->out[2]);
	GT_TRY(gt_graph_node(g, GT_OP_BATCHNORM_Y, o->name, o->attr, &n, err));
	for (int k = 0; k < 3; k++)
		gt_node_input(n, o->in[k]);
	n->ndata = 1;
	gt_node_input(n, o->out[1]);
	gt_node_input(n, o->out[2]);
	if (o->nin > BN_RES)
		gt_node_input(n, o->in[BN_RES]);
	take_over(g, n, o->out[0]);
	return GT_OK;
}

/* batchnorm.dx → batchnorm.sums, all_reduce, batchnorm.dx */
static enum gt_code backward(struct pass *p, struct gt_err *err)
{
	const struct gt_node *o = &p->old;
	struct gt_graph *g = p->g;
	struct gt_tdesc x = g->values[o->in[1]].desc;
	int64_t dims[2] = {3, x.dim[1]};
	struct gt_tdesc part = gt_tdesc_make(GT_F64, 2, dims, false);
	struct gt_node *n;
	gt_vid sums, all, masked = o->nout > DX_G ? o->out[DX_G] : -1;
	GT_TRY(gt_graph_node(g, GT_OP_BATCHNORM_SUMS, o->name, o->attr, &n, err));
	for (int k = 0; k < o->nin; k++)
		gt_node_input(n, o->in[k]);
	n->ndata = o->ndata;
	GT_TRY(gt_graph_output(g, n, "sums", &part, &sums, err));
	take_over(g, n, o->out[1]);
	take_over(g, n, o->out[2]);
	if (masked >= 0)
		take_over(g, n, masked);
	else if (o->nin > DX_BETA) /* so that batchnorm.dx does not have to mask dy again */
		GT_TRY(gt_graph_output(g, n, "masked", &x, &masked, err));
	GT_TRY(exchange(p, GT_COLL_ALL_REDUCE, sums, "all", &part, &all, err));
	GT_TRY(gt_graph_node(g, GT_OP_BATCHNORM_DX, o->name, o->attr, &n, err));
	gt_node_input(n, masked >= 0 ? masked : o->in[0]);
	for (int k = 1; k < 5; k++)
		gt_node_input(n, o->in[k]);
	n->ndata = o->ndata;
	gt_node_input(n, -1);
	gt_node_input(n, -1);
	gt_node_input(n, all);
	take_over(g, n, o->out[0]);
	take_over(g, n, -1);
	take_over(g, n, -1);
	return GT_OK;
}

enum gt_code gt_graph_sync_bn(struct gt_graph *g, int group, int world, int64_t samples, struct gt_err *err)
{
	struct pass p = {.g = g, .group = group, .world = world, .samples = samples};
	int nold = g->nnodes;
	struct gt_node *old;
	if (!g->train)
		return gt_fail(err, GT_EINTERNAL, "sync_bn: expected a training graph");
	GT_NEW(old, g->arena, nold, err);
	memcpy(old, g->nodes, (size_t)nold * sizeof *old);
	g->nnodes = 0;
	for (int i = 0; i < nold; i++) {
		p.old = old[i];
		g->layer = old[i].layer;
		g->backward = old[i].backward;
		if (old[i].op->code == GT_OP_BATCHNORM && trains(&old[i]))
			GT_TRY(forward(&p, err));
		else if (old[i].op->code == GT_OP_BATCHNORM_DX && trains(&old[i]))
			GT_TRY(backward(&p, err));
		else
			GT_TRY(append(g, &old[i], err));
	}
	g->layer = -1;
	g->backward = false;
	return GT_OK;
}

enum gt_code gt_graph_sync_bn_idle(struct gt_graph *g, struct gt_err *err)
{
	static const struct gt_attr_norm nothing = {.empty = true};
	struct gt_attr_norm *empty;
	int n = 0;
	gt_vid any = g->input[0]; /* an operand that is not read */
	for (int i = 0; i < g->ninputs; i++)
		if (gt_graph_desc(g, g->input[i])->dtype == g->compute)
			any = g->input[i];
	GT_TRY(copy_attr(g, &nothing, &empty, err));
	for (int i = 0; i < g->nnodes; i++) {
		struct gt_node *at = &g->nodes[i];
		enum gt_opcode code = at->op->code;
		if (code == GT_OP_BATCHNORM_STATS || code == GT_OP_BATCHNORM_SUMS) {
			at->op = gt_op_get(GT_OP_BATCHNORM_STATS);
			at->attr = empty;
			at->in[0] = any;
			at->nin = at->ndata = at->nout = 1;
		} else if (code != GT_OP_COMM && code != GT_OP_BATCHNORM_MERGE) {
			continue;
		}
		g->nodes[n++] = *at;
		for (int k = 0; k < at->nout; k++)
			if (at->out[k] >= 0)
				g->values[at->out[k]].producer = n - 1;
	}
	g->nnodes = n;
	g->batch = 0;
	return GT_OK;
}

/* ---- deferred running statistics --------------------------------------------------------------------------------------------- */
enum gt_code gt_graph_defer_bn(struct gt_graph *g, struct gt_err *err)
{
	for (int i = 0; i < g->nnodes; i++) {
		struct gt_node *n = &g->nodes[i];
		bool merge = n->op->code == GT_OP_BATCHNORM_MERGE;
		int running = merge ? MERGE_RMEAN : BN_RMEAN, index = merge ? MERGE_PART : BN_PART;
		gt_vid v;
		if (!merge && (n->op->code != GT_OP_BATCHNORM || !trains(n)))
			continue;
		if (n->in[running] < 0)
			continue;
		const char *name;
		const struct gt_tdesc *mean = &g->values[n->in[running]].desc;
		int64_t dims[2] = {3, mean->dim[0]};
		struct gt_tdesc part = gt_tdesc_make(GT_F64, 2, dims, false);
		GT_NEW_STR(name, gt_arena_printf(g->arena, "%s.part", n->name), err);
		int param = g->values[n->in[running]].param;
		GT_TRY(gt_graph_value(g, name, GT_V_PART, &part, &v, err));
		g->values[v].param = param;
		g->values[v].producer = i;
		for (int k = 0; k < 3; k++)
			n->in[running + k] = -1;
		n->nout = index; /* index of the output that is the partial statistics */
		n->out[n->nout++] = v;
	}
	return GT_OK;
}

/* Returns the attributes of a normalisation, given the node that makes its partial statistics. */
static const struct gt_attr_norm *attr_of(const struct gt_graph *g, gt_vid part)
{
	return g->nodes[g->values[part].producer].attr;
}

enum gt_code gt_defer_bn_prepare(struct gt_space *s, const struct gt_graph *g, struct gt_call **out, int *n, struct gt_err *err)
{
	*n = 0;
	GT_NEW(*out, s->arena, g->nvalues ? g->nvalues : 1, err);
	for (gt_vid v = 0; v < g->nvalues; v++) {
		const struct gt_value *val = &g->values[v];
		struct gt_attr_norm attr;
		if (val->kind != GT_V_PART)
			continue;
		attr = *attr_of(g, v);
		attr.deferred = true;
		struct gt_tdesc part = val->desc, buffer[3];
		struct gt_opcall oc = {.code = GT_OP_BATCHNORM_MERGE, .name = val->name, .attr = &attr, .nin = 4, .in = {&part}};
		for (int k = 0; k < 3; k++) { /* running_mean, running_var, num_batches_tracked are declared one after the other */
			buffer[k] = s->layout.param[val->param + k].desc;
			oc.in[1 + k] = &buffer[k];
		}
		enum gt_code code = gt_call_prepare(s, &oc, &(*out)[*n], err);
		if (code != GT_OK) {
			gt_defer_bn_close(s, *out, *n);
			*n = 0;
			return code;
		}
		++*n;
	}
	return GT_OK;
}

void gt_defer_bn_bind(const struct gt_space *s, const struct gt_graph *g, struct gt_call *call, int n)
{
	for (gt_vid v = 0; v < g->nvalues && n > 0; v++) {
		const struct gt_value *val = &g->values[v];
		if (val->kind != GT_V_PART)
			continue;
		call->in[0] = gt_space_part(s, val->param);
		for (int k = 0; k < 3; k++)
			call->in[1 + k] = gt_space_param(s, val->param + k, GT_A_BUFFER, 0);
		call->work = call->scratch ? s->memory.base[GT_A_SCRATCH] : NULL;
		call++;
		n--;
	}
}

void gt_defer_bn_close(const struct gt_space *s, struct gt_call *call, int n)
{
	for (int i = 0; i < n; i++)
		if (call[i].kernel)
			s->be->release(s->dev, call[i].kernel);
}
