/* Rewrites batch normalisations so that their statistics cover several ranks. */
#include "plan/syncbn.h"
#include "ir/op.h"
#include "opsig.h"
#include <string.h>

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

static bool is_training(const struct gt_node *n)
{
	return ((const struct gt_attr_norm *)n->attr)->train;
}

/* Makes n, the node that was appended last, the producer of v, which another node produced before. */
static void take_output(struct gt_graph *g, struct gt_node *n, gt_vid v)
{
	n->out[n->nout++] = v;
	if (v >= 0)
		g->values[v].producer = g->nnodes - 1;
}

/* Appends the operands of `from` with the given names to the inputs of n. The list of names ends with NULL. */
static void copy_inputs(struct gt_node *n, const struct gt_node *from, const char *const *names)
{
	for (; *names; names++)
		gt_node_input(n, gt_node_operand(from, *names));
}

/* Appends a node unchanged. */
static enum gt_code append_unchanged(struct gt_graph *g, const struct gt_node *old, struct gt_err *err)
{
	struct gt_node *n;
	GT_TRY(gt_graph_node_of(g, old->op, old->name, old->attr, &n, err));
	*n = *old;
	for (int k = 0; k < n->nout; k++)
		if (n->out[k] >= 0)
			g->values[n->out[k]].producer = g->nnodes - 1;
	return GT_OK;
}

/* Appends a node that makes a collective over the ranks of the group, from value `from` to *out. */
static enum gt_code append_collective(struct pass *p, int kind, gt_vid from, const char *suffix, const struct gt_tdesc *d, gt_vid *out,
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

/* Replaces batchnorm by batchnorm.stats, all_gather, batchnorm.merge and batchnorm.y. */
static enum gt_code rewrite_forward(struct pass *p, struct gt_err *err)
{
	const struct gt_node *o = &p->old;
	struct gt_graph *g = p->g;
	struct gt_tdesc x = *gt_node_desc(g, o, "x");
	int64_t dims[3] = {p->world, 3, x.dim[1]}, values = p->samples * (gt_tdesc_count(&x) / x.dim[0] / x.dim[1]);
	struct gt_tdesc part = gt_tdesc_make(GT_F64, 2, dims + 1, false), parts = gt_tdesc_make(GT_F64, 3, dims, false);
	struct gt_node *n;
	gt_vid v;
	if (values < 2)
		return gt_fail(err, GT_ECONFIG,
		               "%s: expected more than one value per channel in training, got a batch of 1: choose another batch size", o->name);
	GT_TRY(gt_graph_node(g, GT_OP_BATCHNORM_STATS, o->name, o->attr, &n, err));
	gt_node_input(n, gt_node_operand(o, "x"));
	n->ndata = 1;
	GT_TRY(gt_graph_output(g, n, "part", &part, &v, err));
	GT_TRY(append_collective(p, GT_COLL_ALL_GATHER, v, "parts", &parts, &v, err));
	GT_TRY(gt_graph_node(g, GT_OP_BATCHNORM_MERGE, o->name, o->attr, &n, err));
	gt_node_input(n, v);
	n->ndata = 1;
	copy_inputs(n, o, (const char *[]){"rmean", "rvar", "nbt", NULL});
	take_output(g, n, gt_node_operand(o, "mean"));
	take_output(g, n, gt_node_operand(o, "rstd"));
	GT_TRY(gt_graph_node(g, GT_OP_BATCHNORM_Y, o->name, o->attr, &n, err));
	copy_inputs(n, o, (const char *[]){"x", "gamma", "beta", "mean", "rstd", NULL});
	n->ndata = 1;
	if (gt_node_operand(o, "res") >= 0)
		gt_node_input(n, gt_node_operand(o, "res"));
	take_output(g, n, gt_node_operand(o, "y"));
	return GT_OK;
}

/* Replaces batchnorm.dx by batchnorm.sums, all_reduce and batchnorm.dx. */
static enum gt_code rewrite_backward(struct pass *p, struct gt_err *err)
{
	const struct gt_node *o = &p->old;
	struct gt_graph *g = p->g;
	struct gt_tdesc x = *gt_node_desc(g, o, "x");
	int64_t dims[2] = {3, x.dim[1]};
	struct gt_tdesc part = gt_tdesc_make(GT_F64, 2, dims, false);
	struct gt_node *n;
	gt_vid sums, all, masked = gt_node_operand(o, "g");
	GT_TRY(gt_graph_node(g, GT_OP_BATCHNORM_SUMS, o->name, o->attr, &n, err));
	for (int k = 0; k < o->nin; k++)
		gt_node_input(n, o->in[k]);
	n->ndata = o->ndata;
	GT_TRY(gt_graph_output(g, n, "sums", &part, &sums, err));
	take_output(g, n, gt_node_operand(o, "dgamma"));
	take_output(g, n, gt_node_operand(o, "dbeta"));
	if (masked >= 0)
		take_output(g, n, masked);
	/* batchnorm.sums also writes dy with the mask of the relu, so that batchnorm.dx need not mask dy again */
	else if (o->nin > gt_opsig_find_input(GT_OP_BATCHNORM_DX, "beta"))
		GT_TRY(gt_graph_output(g, n, "masked", &x, &masked, err));
	GT_TRY(append_collective(p, GT_COLL_ALL_REDUCE, sums, "all", &part, &all, err));
	GT_TRY(gt_graph_node(g, GT_OP_BATCHNORM_DX, o->name, o->attr, &n, err));
	gt_node_input(n, masked >= 0 ? masked : gt_node_operand(o, "dy"));
	copy_inputs(n, o, (const char *[]){"x", "gamma", "mean", "rstd", NULL});
	n->ndata = o->ndata;
	gt_node_input(n, -1);
	gt_node_input(n, -1);
	gt_node_input(n, all);
	take_output(g, n, gt_node_operand(o, "dx"));
	take_output(g, n, -1);
	take_output(g, n, -1);
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
		if (old[i].op->code == GT_OP_BATCHNORM && is_training(&old[i]))
			GT_TRY(rewrite_forward(&p, err));
		else if (old[i].op->code == GT_OP_BATCHNORM_DX && is_training(&old[i]))
			GT_TRY(rewrite_backward(&p, err));
		else
			GT_TRY(append_unchanged(g, &old[i], err));
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
	gt_vid any = g->input[0]; /* a value for an operand that the kernel does not read, but whose type it checks */
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
			*at->in = any;
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
