/* Translates the graph's nodes to ONNX, in the order of their execution. */
#include "export/onnx_ops.h"
#include <string.h>

static gt_onnx_fn *const function_of[GT_OP_COUNT] = {
#define GT_X(code, name) [GT_OP_##code] = gt_onnx_op_##name,
    GT_ONNX_OPS(GT_X)
#undef GT_X
};

int gt_onnx_operand_param(const struct gt_onnx_op *op, const char *name)
{
	gt_vid v = gt_node_operand(op->n, name);
	return v < 0 ? -1 : op->g->values[v].param;
}

const char *gt_onnx_operand(const struct gt_onnx_op *op, const char *name, int64_t n, float otherwise)
{
	int param = gt_onnx_operand_param(op, name);
	if (param >= 0)
		return gt_onnx_param(op->m, param);
	float *v = gt_onnx_room(op->m, n);
	for (int64_t k = 0; v && k < n; k++)
		v[k] = otherwise;
	return gt_onnx_own_floats(op->m, 1, &n, v);
}

/* Returns the index of the linear node whose product the node `steps` of an lstm or gru reads. ONNX's operator includes this product, so
 * the linear node is not translated. */
static int find_absorbed(const struct gt_graph *g, const struct gt_node *steps)
{
	const struct gt_node *view = &g->nodes[g->values[gt_node_operand(steps, "x")].producer];
	return g->values[gt_node_first_input(view)].producer;
}

static void mark_absorbed(const struct gt_graph *g, bool *absorbed)
{
	for (int i = 0; i < g->nnodes; i++)
		if (g->nodes[i].op->code == GT_OP_LSTM_STEPS || g->nodes[i].op->code == GT_OP_GRU_STEPS) {
			absorbed[g->values[gt_node_operand(&g->nodes[i], "x")].producer] = true;
			absorbed[find_absorbed(g, &g->nodes[i])] = true;
		}
}

static struct gt_onnx_op describe_node(struct gt_onnx *m, const struct gt_graph *g, const struct gt_node *n, const char *const *value)
{
	struct gt_onnx_op op = {.m = m, .g = g, .n = n, .attr = n->attr, .value = value};
	op.dx = gt_graph_desc(g, gt_node_first_input(n));
	op.dy = gt_graph_desc(g, gt_node_first_output(n));
	op.x = value[gt_node_first_input(n)];
	op.x2 = n->ndata > 1 && n->in[1] >= 0 ? value[n->in[1]] : NULL;
	return op;
}

/* Fails at the first layer without an equivalent, before any node is added. */
static enum gt_code check_layers(const struct gt_export_source *s, struct gt_err *err)
{
	const struct gt_graph *g = s->graph;
	for (int i = 0; i < g->nnodes; i++)
		if (!function_of[g->nodes[i].op->code])
			return gt_fail(err, GT_EFAIL, "%s: the layer \"%s\" (%s) has no equivalent in ONNX", gt_ckpt_path(s->ckpt), g->nodes[i].name,
			               gt_op_name(g->nodes[i].op));
	return GT_OK;
}

enum gt_code gt_onnx_graph(struct gt_onnx *m, const char *const *input, const char **output, struct gt_err *err)
{
	const struct gt_graph *g = m->source->graph;
	const char **value;
	bool *absorbed;
	GT_TRY(check_layers(m->source, err));
	GT_NEW(value, m->arena, g->nvalues, err);
	GT_NEW(absorbed, m->arena, g->nnodes, err);
	GT_NEW(m->param, m->arena, g->nparams + 1, err);
	mark_absorbed(g, absorbed);
	for (int i = 0; i < g->ninputs; i++)
		value[g->input[i]] = input[i];
	for (int i = 0; i < g->nnodes; i++) {
		const struct gt_node *n = &g->nodes[i];
		struct gt_onnx_op op = describe_node(m, g, n, value);
		m->layer = n->name;
		if (!absorbed[i])
			value[gt_node_first_output(n)] = function_of[n->op->code](&op);
	}
	*output = value[g->output];
	return GT_OK;
}
