/* Tied parameters (gt_param.tied) in a pipeline: sends a parameter from the stage that owns it to other stages that use it. */
#include "plan/pipeline_partition.h"
#include "ir/op.h"
#include <string.h>

struct walk {
	struct gt_graph *g;
	const int *stage_of;
	int stages;
	gt_vid *copy; /* [value of a parameter]: the copy of it that other stages read; -1: not made yet */
	int *layer;   /* [parameter]: index of the layer that owns it, which is the first layer that reads it; -1: none has been found yet */
};

static int stage_of_layer(const struct walk *w, int layer)
{
	return layer < 0 ? w->stages - 1 : w->stage_of[layer];
}

/* If operand *v of a node is a tied parameter of another stage, replaces *v by the copy of it, and appends the copy on first use. */
static enum gt_code borrow_param(struct walk *w, const struct gt_node *n, gt_vid *v, struct gt_err *err)
{
	struct gt_graph *g = w->g;
	struct gt_value val = g->values[*v];
	struct gt_node *cast;
	if ((val.kind != GT_V_PARAM && val.kind != GT_V_WORK) || !g->params[val.param].tied)
		return GT_OK;
	if (w->layer[val.param] < 0)
		w->layer[val.param] = n->layer;
	if (stage_of_layer(w, n->layer) == stage_of_layer(w, w->layer[val.param]))
		return GT_OK;
	if (w->copy[*v] < 0) {
		GT_TRY(gt_graph_node(g, GT_OP_CAST, g->params[val.param].layer, NULL, &cast, err));
		cast->layer = w->layer[val.param];
		gt_node_input(cast, *v);
		cast->ndata = 1;
		GT_TRY(gt_graph_output(g, cast, "weight", &val.desc, &w->copy[*v], err));
	}
	*v = w->copy[*v];
	return GT_OK;
}

enum gt_code gt_graph_send_tied(struct gt_graph *g, const int *stage_of, int stages, struct gt_err *err)
{
	struct walk w = {.g = g, .stage_of = stage_of, .stages = stages};
	int count = g->nnodes, nvalues = g->nvalues;
	struct gt_node *old, *n;
	bool any = false;
	for (int i = 0; i < g->nparams; i++)
		any |= g->params[i].tied;
	if (!any)
		return GT_OK;
	GT_NEW(old, g->arena, count, err);
	GT_NEW(w.copy, g->arena, nvalues, err);
	GT_NEW(w.layer, g->arena, g->nparams, err);
	memset(w.copy, 0xff, (size_t)nvalues * sizeof *w.copy);
	memset(w.layer, 0xff, (size_t)g->nparams * sizeof *w.layer);
	memcpy(old, g->nodes, (size_t)count * sizeof *old);
	g->nnodes = 0;
	for (int i = 0; i < count; i++) {
		for (int k = 0; k < old[i].nin; k++)
			if (old[i].in[k] >= 0)
				GT_TRY(borrow_param(&w, &old[i], &old[i].in[k], err));
		GT_TRY(gt_graph_node_of(g, old[i].op, old[i].name, old[i].attr, &n, err));
		*n = old[i];
		for (int k = 0; k < n->nout; k++)
			if (n->out[k] >= 0)
				g->values[n->out[k]].producer = g->nnodes - 1;
	}
	return gt_graph_verify(g, err);
}
