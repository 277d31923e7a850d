#include "plan/plan.h"
#include "ir/op.h"

static bool offers(struct gt_space *s, const struct gt_graph *g, const struct gt_node *dw, int ranks, const struct gt_attr_dw_update *attr)
{
	const struct gt_place *place = s->place ? &s->place[g->values[dw->out[0]].param] : NULL;
	int64_t words = GT_SCALARS_WORDS;
	struct gt_tdesc dy = g->values[dw->in[0]].desc, x = g->values[dw->in[1]].desc, w = g->values[dw->out[0]].desc, db = {0},
	                scalars = gt_tdesc_make(GT_F64, 1, &words, false);
	struct gt_opcall oc = {.code = GT_OP_LINEAR_DW_UPDATE, .name = dw->name, .attr = attr, .nin = 4, .nout = 1, .in = {&dy, &x, &w, &scalars}};
	struct gt_kernel *k;
	dy.dim[0] *= ranks;
	x.dim[0] *= ranks;
	w.any = true;
	if (place) {
		if (!place->early) /* the first plan decides for all */
			return false;
		w = place->desc;
	}
	if (dw->nout > 1 && dw->out[1] >= 0 && ranks == 1) {
		db = g->values[dw->out[1]].desc;
		oc.out[0] = &db;
	}
	for (int i = 0; i < s->nstates; i++)
		oc.in[oc.nin++] = &w;
	if (s->be->prepare(s->dev, &oc, &k, NULL) != GT_OK)
		return false;
	s->be->release(s->dev, k);
	return true;
}

enum gt_code gt_plan_early(struct gt_space *s, struct gt_graph *g, const struct gt_apply *apply, struct gt_err *err)
{
	int n = g->nnodes;
	struct gt_tdesc scalar = gt_tdesc_make(GT_F64, 0, NULL, false);
	gt_vid bound = -1;
	if (g->compute != gt_graph_stat_dtype(g)) /* the optimizer's own kernel writes the 16-bit weights */
		return GT_OK;
	for (int i = 0; i < n; i++) {
		struct gt_node *dw = &g->nodes[i], *up;
		struct gt_attr_dw_update *attr;
		if (dw->op->code != GT_OP_LINEAR_DW || dw->out[0] < 0)
			continue;
		int param = g->values[dw->out[0]].param;
		struct gt_seg *seg;
		GT_NEW(attr, g->arena, 1, err);
		GT_NEW(seg, g->arena, 1, err);
		*seg = apply->hyper[param];
		*attr = (struct gt_attr_dw_update){.optimizer = apply->code, .update = apply->attr};
		attr->update.seg = seg;
		attr->update.nseg = 1;
		if (!offers(s, g, dw, 1, attr))
			continue;
		if (bound < 0)
			GT_TRY(gt_graph_value(g, "bound", GT_V_BOUND, &scalar, &bound, err));
		gt_vid dy = dw->in[0], x = dw->in[1], db = dw->nout > 1 ? dw->out[1] : -1;
		const char *name = dw->name;
		int layer = dw->layer;
		GT_TRY(gt_graph_node(g, GT_OP_LINEAR_DW_UPDATE, name, attr, &up, err));
		up->layer = layer;
		up->backward = true;
		gt_node_input(up, dy);
		gt_node_input(up, x);
		gt_node_input(up, g->params[param].value);
		up->ndata = 2;
		up->out[up->nout++] = db;
		if (db >= 0)
			g->values[db].producer = g->nnodes - 1;
		dw = &g->nodes[i]; /* the array may have moved */
		dw->op = gt_op_get(GT_OP_BOUND);
		dw->attr = NULL;
		dw->out[0] = bound;
		dw->nout = 1;
	}
	return GT_OK;
}

/* ---- shared by ranks -------------------------------------------------------------------------------------------------------------- */
static bool is_dw(const struct gt_node *n)
{
	return n->op->code == GT_OP_LINEAR_DW && n->out[0] >= 0;
}

/* The attributes of node i's update as one of `ranks` parts. */
static enum gt_code part_of(struct gt_graph *g, int i, const struct gt_apply *apply, int ranks, int rank, struct gt_attr_dw_update **out, struct gt_err *err)
{
	struct gt_attr_dw_update *attr;
	struct gt_seg *seg;
	GT_NEW(attr, g->arena, 1, err);
	GT_NEW(seg, g->arena, 1, err);
	*seg = apply->hyper[g->values[g->nodes[i].out[0]].param];
	*attr = (struct gt_attr_dw_update){.part = rank, .parts = ranks, .optimizer = apply->code, .update = apply->attr};
	attr->update.seg = seg;
	attr->update.nseg = 1;
	*out = attr;
	return GT_OK;
}

enum gt_code gt_plan_shareable(struct gt_space *s, struct gt_graph *g, const struct gt_apply *apply, int ranks, bool *out, struct gt_err *err)
{
	int64_t shared = 0, moved = 0;
	*out = false;
	if (g->compute != gt_graph_stat_dtype(g) || g->target < 0)
		return GT_OK;
	for (int i = 0; i < g->nnodes; i++) {
		const struct gt_node *n = &g->nodes[i];
		struct gt_attr_dw_update *attr;
		if (n->op->code == GT_OP_BATCHNORM) /* rows that only fill up would count in its statistics */
			return GT_OK;
		if (!is_dw(n))
			continue;
		GT_TRY(part_of(g, i, apply, ranks, 0, &attr, err));
		if (!offers(s, g, n, ranks, attr))
			return GT_OK;
		shared += gt_tdesc_count(&g->values[n->out[0]].desc);
		moved += ranks * (gt_tdesc_count(gt_graph_desc(g, n->in[0])) + gt_tdesc_count(gt_graph_desc(g, n->in[1])));
	}
	*out = moved * 4 < shared && shared * 20 > gt_graph_learned(g) * 19;
	return GT_OK;
}

static enum gt_code gathered(struct gt_graph *g, const struct gt_node *of, gt_vid v, int ranks, gt_vid *out, struct gt_err *err)
{
	struct gt_attr_comm *attr;
	struct gt_tdesc d = *gt_graph_desc(g, v);
	const char *name = of->name;
	struct gt_node *n;
	int layer = of->layer;
	GT_NEW(attr, g->arena, 1, err);
	*attr = (struct gt_attr_comm){.kind = GT_COLL_ALL_GATHER, .group = GT_GROUP_DATA};
	GT_TRY(gt_graph_node(g, GT_OP_COMM, name, attr, &n, err));
	n->layer = layer;
	n->backward = true;
	n->ndata = 1;
	gt_node_input(n, v);
	d.dim[0] *= ranks;
	return gt_graph_output(g, n, "of all ranks", &d, out, err);
}

/* What a dw becomes. */
struct shared {
	int node;        /* its own, now the bound's */
	gt_vid dy, x, w; /* gathered; the parameter */
	struct gt_attr_dw_update *attr;
};

/* Its bound takes the place of dw i; what gathers the factors, and the bias gradient of this rank's samples, come behind everything. */
static enum gt_code factors(struct gt_graph *g, struct shared *f, gt_vid bound, struct gt_err *err)
{
	struct gt_node *dw = &g->nodes[f->node], *n;
	const char *name = dw->name;
	gt_vid dy = dw->in[0], x = dw->in[1], db = dw->nout > 1 ? dw->out[1] : -1;
	int layer = dw->layer;
	f->w = g->params[g->values[dw->out[0]].param].value;
	dw->op = gt_op_get(GT_OP_BOUND);
	dw->attr = NULL;
	dw->out[0] = bound;
	dw->nout = 1;
	GT_TRY(gathered(g, &g->nodes[f->node], dy, f->attr->parts, &f->dy, err));
	GT_TRY(gathered(g, &g->nodes[f->node], x, f->attr->parts, &f->x, err));
	if (db < 0)
		return GT_OK;
	GT_TRY(gt_graph_node(g, GT_OP_BIAS_DB, name, NULL, &n, err));
	n->layer = layer;
	n->backward = true;
	n->ndata = 1;
	gt_node_input(n, dy);
	n->out[n->nout++] = db;
	g->values[db].producer = g->nnodes - 1;
	return GT_OK;
}

static enum gt_code update(struct gt_graph *g, const struct shared *f, struct gt_err *err)
{
	const char *name = g->nodes[f->node].name;
	int layer = g->nodes[f->node].layer;
	struct gt_node *n;
	GT_TRY(gt_graph_node(g, GT_OP_LINEAR_DW_UPDATE, name, f->attr, &n, err));
	n->layer = layer;
	n->backward = true;
	n->ndata = 2;
	gt_node_input(n, f->dy);
	gt_node_input(n, f->x);
	gt_node_input(n, f->w);
	return GT_OK;
}

enum gt_code gt_plan_share(struct gt_graph *g, const struct gt_apply *apply, int ranks, int rank, struct gt_err *err)
{
	struct gt_tdesc scalar = gt_tdesc_make(GT_F64, 0, NULL, false);
	struct shared *f;
	gt_vid bound;
	int n = g->nnodes, count = 0;
	GT_NEW(f, g->arena, n, err);
	GT_TRY(gt_graph_value(g, "bound", GT_V_BOUND, &scalar, &bound, err));
	for (int i = 0; i < n; i++) {
		if (!is_dw(&g->nodes[i]))
			continue;
		f[count].node = i;
		GT_TRY(part_of(g, i, apply, ranks, rank, &f[count].attr, err));
		GT_TRY(factors(g, &f[count++], bound, err));
	}
	for (int i = 0; i < count; i++) /* behind the CHECK, so behind all others */
		GT_TRY(update(g, &f[i], err));
	return GT_OK;
}
