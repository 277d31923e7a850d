/* lstm and gru (torch.nn.LSTM and torch.nn.GRU with batch_first = true). A layer is made of several nodes. For each direction of each of
 * its layers:
 *
 *	in [N,T,F] --> [linear, weight_ih, bias_ih] --> x [N,T,G] --> [steps, weight_hh, bias_hh] --> y [N,T,H]
 *
 * Only the steps work token by token (opcall.h: lstm.steps, gru.steps). In the backward pass, steps.dx makes the gradient of x, from which
 * linear.dw and linear.dx make the gradients of weight_ih and of the input; linear.dw also makes the gradients of weight_hh and bias_hh.
 * The two directions are concatenated. */
#include "ir/rows.h"

struct attr_rnn_layer {
	int64_t hidden, layers;
	double dropout;
	bool bidirectional, bias;
	int output; /* enum output */
};

enum output { OUTPUT_TOKENS, OUTPUT_LAST };

/* The properties in which the layer types lstm and gru differ. */
struct kind {
	enum gt_opcode steps, steps_dx;
	int gates;
};
static const struct kind lstm = {GT_OP_LSTM_STEPS, GT_OP_LSTM_STEPS_DX, 4}, gru = {GT_OP_GRU_STEPS, GT_OP_GRU_STEPS_DX, 3};

/* ---- the steps ------------------------------------------------------------------------------------------------------------------- */
static enum gt_code steps_infer(struct gt_graph *g, struct gt_node *n, struct gt_err *err)
{
	struct gt_tdesc x = *gt_node_desc(g, n, "x"), w = *gt_node_desc(g, n, "w");
	enum gt_dtype stat = gt_graph_stat_dtype(g);
	int64_t dim[3] = {x.dim[0], x.dim[1], w.dim[1]};
	struct gt_tdesc y = gt_tdesc_make(x.dtype, 3, dim, true), cells = gt_tdesc_make(stat, 3, dim, true),
	                gates = gt_tdesc_make(stat, 3, x.dim, true);
	gt_vid v;
	GT_TRY(gt_graph_output(g, n, NULL, &y, &v, err));
	if (!g->train)
		return GT_OK;
	GT_TRY(gt_graph_output(g, n, "gates", &gates, &v, err));
	return gt_graph_output(g, n, "cells", &cells, &v, err);
}

static enum gt_code steps_gradient(const struct kind *kind, GT_GRADIENT_ARGS)
{
	gt_vid w = gt_node_operand(n, "w"), bias = gt_node_operand(n, "b"), before, dh;
	bool learns = gt_graph_learns(g, w) || gt_graph_learns(g, bias);
	struct gt_tdesc x = *gt_node_desc(g, n, "x"), y = *gt_node_desc(g, n, "y");
	struct gt_node *b;
	(void)want;
	GT_TRY(gt_backward_node(g, n, kind->steps_dx, dy, &b, err));
	for (int i = 0; i < 3; i++)
		gt_node_input(b, n->out[i]);
	b->ndata = 4;
	gt_pass_lengths(n, 1, b);
	gt_node_input(b, w);
	GT_TRY(gt_graph_output(g, b, "dx", &x, &dx[0], err));
	if (!learns)
		return GT_OK;
	GT_TRY(gt_graph_output(g, b, "before", &y, &before, err));
	dh = dx[0];
	if (kind == &gru)
		GT_TRY(gt_graph_output(g, b, "dh", &x, &dh, err));
	/* linear.dw makes the gradients of weight_hh and bias_hh, from dh and the hidden states `before` each token. */
	int64_t rows = x.dim[0] * x.dim[1];
	struct gt_attr_linear *attr;
	GT_NEW(attr, g->arena, 1, err);
	*attr = (struct gt_attr_linear){.out = x.dim[2], .bias = bias >= 0};
	GT_TRY(gt_graph_view(g, n->name, before, 2, (int64_t[]){rows, y.dim[2]}, &before, err));
	GT_TRY(gt_graph_view(g, n->name, dh, 2, (int64_t[]){rows, x.dim[2]}, &dh, err));
	struct gt_node linear = {.op = gt_op_get(GT_OP_LINEAR), .name = n->name, .attr = attr, .nin = 3, .in = {before, w, bias}};
	return gt_gradient_weighted(g, &linear, dh, (bool[]){false}, dx, err, GT_OP_LINEAR_DX, GT_OP_LINEAR_DW);
}

static enum gt_code lstm_gradient(GT_GRADIENT_ARGS)
{
	return steps_gradient(&lstm, g, n, dy, want, dx, err);
}

static enum gt_code gru_gradient(GT_GRADIENT_ARGS)
{
	return steps_gradient(&gru, g, n, dy, want, dx, err);
}

/* Counts the products with weight_hh and, for each gate, ten operations of its activation. */
static double steps_flops(const struct gt_graph *g, const struct gt_node *n)
{
	bool gradient = n->op->code == GT_OP_LSTM_STEPS_DX || n->op->code == GT_OP_GRU_STEPS_DX;
	const struct gt_tdesc *x = gt_node_desc(g, n, gradient ? "dx" : "x"), *w = gt_node_desc(g, n, "w");
	return (double)gt_tdesc_count(x) * (2.0 * (double)w->dim[1] + 10.0);
}

/* The steps read weight_hh in the plain layout, so no other operation may choose its layout. v: the weight or its 16-bit copy. */
static void require_plain_layout(struct gt_graph *g, gt_vid v)
{
	struct gt_param *p = &g->params[g->values[v].param];
	p->desc.any = g->values[p->value].desc.any = false;
	if (p->work >= 0)
		g->values[p->work].desc.any = false;
}

/* ---- the layers ------------------------------------------------------------------------------------------------------------------ */
/* Adds one direction of one layer: the parameters in PyTorch's order, the product with the input, [rows, F], and the steps. */
static enum gt_code add_direction(struct gt_graph *g, const struct kind *kind, const struct attr_rnn_layer *a, const char *name, int layer,
                                  bool reverse, gt_vid in, gt_vid lengths, const int64_t *dim, gt_vid *y, struct gt_err *err)
{
	enum { WEIGHT_IH, WEIGHT_HH, BIAS_IH, BIAS_HH };
	static const char *const parts[4] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
	struct gt_tdesc x = *gt_graph_desc(g, in);
	int64_t out = kind->gates * a->hidden;
	struct gt_init init = gt_init_bias_default(a->hidden);
	struct gt_node *n, params = {.name = name};
	for (int i = 0; i < 4; i++) {
		int64_t fan_in = i % 2 ? a->hidden : x.dim[1];
		const char *suffix;
		if (i > 1 && !a->bias) {
			gt_node_input(&params, -1);
			continue;
		}
		GT_NEW_STR(suffix, gt_arena_printf(g->arena, "%s_l%d%s", parts[i], layer, reverse ? "_reverse" : ""), err);
		GT_TRY(gt_graph_param(g, &params, suffix, i < 2 ? GT_PARAM_WEIGHT : GT_PARAM_BIAS, i < 2 ? 2 : 1, (int64_t[]){out, fan_in}, init,
		                      fan_in, out, err));
	}
	require_plain_layout(g, params.in[WEIGHT_HH]);
	struct gt_attr_linear *linear;
	struct gt_attr_rnn *steps;
	gt_vid v;
	GT_NEW(linear, g->arena, 1, err);
	GT_NEW(steps, g->arena, 1, err);
	*linear = (struct gt_attr_linear){.out = out, .bias = a->bias};
	steps->reverse = reverse;
	GT_TRY(gt_graph_node(g, GT_OP_LINEAR, name, linear, &n, err));
	gt_node_input(n, in);
	n->ndata = 1;
	gt_node_input(n, params.in[WEIGHT_IH]);
	gt_node_input(n, params.in[BIAS_IH]);
	struct gt_tdesc d = gt_tdesc_make(g->compute, 2, (int64_t[]){x.dim[0], out}, true);
	GT_TRY(gt_graph_output(g, n, NULL, &d, &v, err));
	GT_TRY(gt_graph_view(g, name, v, 3, (int64_t[]){dim[0], dim[1], out}, &v, err));
	GT_TRY(gt_graph_node(g, kind->steps, name, steps, &n, err));
	gt_node_input(n, v);
	gt_node_input(n, lengths);
	n->ndata = lengths < 0 ? 1 : 2;
	gt_node_input(n, params.in[WEIGHT_HH]);
	gt_node_input(n, params.in[BIAS_HH]);
	GT_TRY(n->op->infer(g, n, err));
	*y = gt_node_operand(n, "y");
	return GT_OK;
}

/* Adds dropout between two layers, with its own random stream. Draws depend on the sample, so dropout gets [N, T, H], not rows. */
static enum gt_code add_dropout(struct gt_graph *g, const char *name, double p, int layer, const int64_t *dim, gt_vid *v,
                                struct gt_err *err)
{
	struct gt_attr_dropout a = {.p = p}, *mine;
	int64_t width = gt_graph_desc(g, *v)->dim[1];
	GT_TRY(gt_graph_view(g, name, *v, 3, (int64_t[]){dim[0], dim[1], width}, v, err));
	GT_TRY(gt_graph_apply(g, gt_op_find_layer("dropout"), name, &a, 1, (gt_vid[]){*v}, v, err));
	mine = g->nodes[g->nnodes - 1].attr;
	mine->layer += (uint32_t)layer << 24;
	return gt_graph_view(g, name, *v, 2, (int64_t[]){dim[0] * dim[1], width}, v, err);
}

/* Sets *y to the state after the last step of each direction: at the last token forwards, at the first token backwards. */
static enum gt_code take_last_states(struct gt_graph *g, const char *name, const gt_vid *side, int64_t directions, gt_vid lengths,
                                     gt_vid *y, struct gt_err *err)
{
	gt_vid state[2];
	for (int d = 0; d < directions; d++) {
		struct gt_attr_pool_tokens a = {.mode = d ? GT_POOL_FIRST : GT_POOL_LAST};
		gt_vid in[2] = {side[d], lengths};
		GT_TRY(gt_graph_apply(g, gt_op_get(GT_OP_POOL_TOKENS), name, &a, lengths < 0 ? 1 : 2, in, &state[d], err));
	}
	*y = state[0];
	return directions < 2 ? GT_OK : gt_graph_apply(g, gt_op_get(GT_OP_CONCAT), name, NULL, 2, state, y, err);
}

static enum gt_code rnn_expand(struct gt_graph *g, const struct kind *kind, const struct gt_layer_spec *s, const gt_vid *in, int nin,
                               gt_vid *y, struct gt_err *err)
{
	const struct attr_rnn_layer *a = s->attr;
	struct gt_tdesc x = *gt_graph_desc(g, *in);
	const int64_t *dim = x.dim;
	int64_t rows = dim[0] * dim[1], directions = a->bidirectional ? 2 : 1;
	char buf[96];
	gt_vid v, side[2], lengths = nin > 1 ? in[1] : -1;
	if (x.rank != 3 || x.dtype == GT_I32)
		return gt_fail(err, GT_ECONFIG, "in: expected an input of [batch, tokens, features], got %s", gt_tdesc_text(&x, buf, sizeof buf));
	struct gt_node look = {.in = {*in, lengths}, .nin = nin, .ndata = nin};
	GT_TRY(gt_expect_lengths(g, &look, 1, err));
	if (a->dropout > 0 && a->layers == 1)
		return gt_fail(err, GT_ECONFIG,
		               "dropout: expected num_layers of at least 2, because dropout is between layers, got 1: put a layer of type "
		               "\"dropout\" after this layer");
	GT_TRY(gt_graph_view(g, s->name, *in, 2, (int64_t[]){rows, dim[2]}, &v, err));
	for (int layer = 0; layer < a->layers; layer++) {
		for (int d = 0; d < directions; d++) {
			GT_TRY(add_direction(g, kind, a, s->name, layer, d > 0, v, lengths, dim, &side[d], err));
		}
		if (a->output == OUTPUT_LAST && layer + 1 == a->layers)
			return take_last_states(g, s->name, side, directions, lengths, y, err);
		for (int d = 0; d < directions; d++)
			GT_TRY(gt_graph_view(g, s->name, side[d], 2, (int64_t[]){rows, a->hidden}, &side[d], err));
		v = side[0];
		if (directions > 1)
			GT_TRY(gt_graph_apply(g, gt_op_get(GT_OP_CONCAT), s->name, NULL, 2, side, &v, err));
		if (a->dropout > 0 && layer + 1 < a->layers)
			GT_TRY(add_dropout(g, s->name, a->dropout, layer, dim, &v, err));
	}
	return gt_graph_view(g, s->name, v, 3, (int64_t[]){dim[0], dim[1], directions * a->hidden}, y, err);
}

static enum gt_code lstm_expand(struct gt_graph *g, const struct gt_layer_spec *s, const gt_vid *in, int nin, gt_vid *y, struct gt_err *err)
{
	return rnn_expand(g, &lstm, s, in, nin, y, err);
}

static enum gt_code gru_expand(struct gt_graph *g, const struct gt_layer_spec *s, const gt_vid *in, int nin, gt_vid *y, struct gt_err *err)
{
	return rnn_expand(g, &gru, s, in, nin, y, err);
}

static const struct gt_attr_def rnn_attrs[] = {
    GT_KEY(attr_rnn_layer, "hidden_size", hidden, GT_ATTR_INT, .def = GT_REQUIRED, .min = 1, .max = GT_MAX_FEATURES / 4,
           .help = "features of the hidden state, and of the output in each direction"),
    GT_KEY(attr_rnn_layer, "num_layers", layers, GT_ATTR_INT, .def = 1, .min = 1, .max = 64,
           .help = "number of layers; each layer reads the output of the previous layer"),
    GT_KEY(attr_rnn_layer, "bidirectional", bidirectional, GT_ATTR_BOOL, .def = 0, .max = 1,
           .help = "each layer also reads the tokens from last to first, with separate weights; the features of both directions are "
                   "concatenated"),
    GT_KEY(attr_rnn_layer, "dropout", dropout, GT_ATTR_FLOAT, .def = 0, .min = 0, .max = 1,
           .help = "in training, probability that an element of a layer's output becomes 0; the last layer has no dropout"),
    GT_KEY(attr_rnn_layer, "output", output, GT_ATTR_ENUM, .def = OUTPUT_TOKENS, .max = 1, .values = "tokens|last",
           .help = "tokens: the output of the last layer for each token; last: only the final state of the last layer in each direction "
                   "(as in PyTorch's h_n), [batch, features]"),
    GT_KEY(attr_rnn_layer, "bias", bias, GT_ATTR_BOOL, .def = 1, .max = 1, .help = "add the learned biases bias_ih and bias_hh"),
    GT_KEYS_END,
};

#define LAYER(type, text, names, fn)                                                                                                       \
	{                                                                                                                                      \
	    .code = GT_OP_COUNT,                                                                                                               \
	    .name = type,                                                                                                                      \
	    .help = text,                                                                                                                      \
	    .also = names,                                                                                                                     \
	    .flags = GT_OPF_LAYER | GT_OPF_TOKENS | GT_OPF_CODES,                                                                              \
	    .min_in = 1,                                                                                                                       \
	    .max_in = 2,                                                                                                                       \
	    .attrs = rnn_attrs,                                                                                                                \
	    .attr_size = sizeof(struct attr_rnn_layer),                                                                                        \
	    .expand = fn,                                                                                                                      \
	}

const struct gt_op gt_ops_rnn[] = {
    LAYER("lstm",
          "long short-term memory over [batch, tokens, features] (torch.nn.LSTM, batch_first); a second input gives the length of each "
          "sample: tokens beyond it are not read, and their outputs are 0",
          "nn.LSTM|blstm|bilstm|rnn", lstm_expand),
    LAYER("gru", "gated recurrent units over [batch, tokens, features] (torch.nn.GRU, batch_first); inputs as for lstm", "nn.GRU|bigru",
          gru_expand),
    /* In place: the forward pass overwrites x by the gates, and the backward pass overwrites the gates by the gradient of x. */
    {.code = GT_OP_LSTM_STEPS, .flags = GT_OPF_INPLACE, .inplace = {1, 0}, .infer = steps_infer, .gradient = lstm_gradient,
     .flops = steps_flops},
    {.code = GT_OP_GRU_STEPS, .flags = GT_OPF_INPLACE, .inplace = {1, 0}, .infer = steps_infer, .gradient = gru_gradient,
     .flops = steps_flops},
    {.code = GT_OP_LSTM_STEPS_DX, .flags = GT_OPF_INPLACE, .inplace = {0, 2}, .flops = steps_flops},
    {.code = GT_OP_GRU_STEPS_DX, .flags = GT_OPF_INPLACE, .inplace = {0, 2}, .flops = steps_flops},
    GT_OPS_END,
};
