#include "plan/plan.h"
#include "ir/op.h"

static bool offers(struct gt_space *s, const struct gt_graph *g, const struct gt_node *dw, const struct gt_attr_dw_update *attr)
{
	const struct gt_place *place = s->place ? &s->place[g->values[dw->out[0]].param] : NULL;
	int64_t words = GT_SCALARS_WORDS;
	struct gt_tdesc dy = g->values[dw->in[0]].desc, x = g->values[dw->in[1]].desc, w = g->values[dw->out[0]].desc, db = {0},
	                scalars = gt_tdesc_make(GT_F64, 1, &words, false);
	struct gt_opcall oc = {.code = GT_OP_LINEAR_DW_UPDATE, .name = dw->name, .attr = attr, .nin = 4, .nout = 1, .in = {&dy, &x, &w, &scalars}};
	struct gt_kernel *k;
	w.any = true;
	if (place) {
		if (!place->early) /* the first plan decides for all */
			return false;
		w = place->desc;
	}
	if (dw->nout > 1 && dw->out[1] >= 0) {
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
		if (!offers(s, g, dw, attr))
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
