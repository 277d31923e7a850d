/* Embeddings and operations on sequences in ONNX. Tokens and lengths are i64. A mask is bool [N, T]: true for the tokens that are used. */
#include "ew.h"
#include "export/onnx_ops.h"
#include <float.h>
#include <math.h>

static const char *select_index(struct gt_onnx *m, const char *x, int axis, int64_t index)
{
	return GT_ONNX(m, "Gather", GT_IN(x, gt_onnx_int(m, index)), GT_ONNX_INT("axis", axis));
}

const char *gt_onnx_op_embedding(const struct gt_onnx_op *op)
{
	const struct gt_attr_embedding *a = op->attr;
	const char *table = gt_onnx_param(op->m, gt_onnx_operand_param(op, "w"));
	const char *tokens = a->column < 0 ? op->x : select_index(op->m, op->x, 1, a->column);
	const char *rows = GT_ONNX(op->m, "Gather", GT_IN(table, tokens), GT_ONNX_INT("axis", 0));
	return a->column < 0 && op->dx->rank > 1 ? gt_onnx_reshape(op->m, rows, 2, op->dy->dim) : rows;
}

/* ---- tokens within their lengths -------------------------------------------------------------------------------------------------- */
/* Reshapes v, [N], to a column [N, 1]. */
static const char *make_column(struct gt_onnx *m, const char *v)
{
	return gt_onnx_reshape(m, v, 2, (int64_t[]){0, 1});
}

/* Returns a mask [N, T] that is true for the first lengths[n] tokens of sample n. tokens: T. */
static const char *length_mask(struct gt_onnx *m, const char *lengths, int64_t tokens)
{
	int64_t *index = gt_arena_alloc(m->arena, (size_t)tokens, sizeof *index);
	for (int64_t t = 0; index && t < tokens; t++)
		index[t] = t;
	return index ? GT_ONNX(m, "Less", GT_IN(gt_onnx_ints(m, (int)tokens, index), make_column(m, lengths))) : "";
}

/* Combines the tokens of x, [N, T, C], into [N, C]. mask NULL: uses all tokens. The result is 0 if no token is used. mode: enum gt_bag. */
static const char *combine_tokens(struct gt_onnx *m, const char *x, const char *mask, int64_t tokens, int mode)
{
	const char *axis = gt_onnx_ints(m, 1, (int64_t[]){1});
	if (mode == GT_BAG_MAX && !mask)
		return GT_ONNX(m, "ReduceMax", GT_IN(x), GT_ONNX_INTS("axes", 1), GT_ONNX_INT("keepdims", 0));
	if (!mask)
		return mode == GT_BAG_SUM ? GT_ONNX(m, "ReduceSum", GT_IN(x, axis), GT_ONNX_INT("keepdims", 0))
		                          : GT_ONNX(m, "ReduceMean", GT_IN(x), GT_ONNX_INTS("axes", 1), GT_ONNX_INT("keepdims", 0));
	const char *wide = gt_onnx_reshape(m, mask, 3, (int64_t[]){0, tokens, 1});
	const char *count = GT_ONNX(m, "ReduceSum", GT_IN(gt_onnx_cast(m, mask, GT_ONNX_FLOAT), axis), GT_ONNX_INT("keepdims", 1));
	const char *zero = gt_onnx_float(m, 0);
	if (mode == GT_BAG_MAX) {
		const char *seen = GT_ONNX(m, "Where", GT_IN(wide, x, gt_onnx_float(m, -FLT_MAX)));
		const char *max = GT_ONNX(m, "ReduceMax", GT_IN(seen), GT_ONNX_INTS("axes", 1), GT_ONNX_INT("keepdims", 0));
		return GT_ONNX(m, "Where", GT_IN(GT_ONNX(m, "Greater", GT_IN(count, zero)), max, zero));
	}
	const char *seen = GT_ONNX(m, "Where", GT_IN(wide, x, zero));
	const char *sum = GT_ONNX(m, "ReduceSum", GT_IN(seen, axis), GT_ONNX_INT("keepdims", 0));
	return mode == GT_BAG_SUM ? sum : GT_ONNX(m, "Div", GT_IN(sum, GT_ONNX(m, "Max", GT_IN(count, gt_onnx_float(m, 1)))));
}

/* Returns the mask of the tokens that are not padding. */
static const char *padding_mask(struct gt_onnx *m, const char *tokens, int64_t padding)
{
	return GT_ONNX(m, "Not", GT_IN(GT_ONNX(m, "Equal", GT_IN(tokens, gt_onnx_int(m, padding)))));
}

const char *gt_onnx_op_embedding_bag(const struct gt_onnx_op *op)
{
	const struct gt_attr_embedding *a = op->attr;
	struct gt_onnx *m = op->m;
	const char *table = gt_onnx_param(m, gt_onnx_operand_param(op, "w"));
	const char *rows = GT_ONNX(m, "Gather", GT_IN(table, op->x), GT_ONNX_INT("axis", 0));
	const char *mask = op->x2 ? length_mask(m, op->x2, op->dx->dim[1]) : NULL;
	if (a->padding >= 0) {
		const char *real = padding_mask(m, op->x, a->padding);
		mask = mask ? GT_ONNX(m, "And", GT_IN(mask, real)) : real;
	}
	return combine_tokens(m, rows, mask, op->dx->dim[1], a->mode);
}

/* Returns the token lengths[n] - 1 of each sample, or token 0 if the length is 0. */
static const char *last_tokens(struct gt_onnx *m, const char *x, const char *lengths, int64_t tokens)
{
	const char *one = gt_onnx_int(m, 1), *least = GT_ONNX(m, "Max", GT_IN(lengths, one));
	const char *n = GT_ONNX(m, "Min", GT_IN(least, gt_onnx_int(m, tokens)));
	return GT_ONNX(m, "GatherND", GT_IN(x, make_column(m, GT_ONNX(m, "Sub", GT_IN(n, one)))), GT_ONNX_INT("batch_dims", 1));
}

const char *gt_onnx_op_pool_tokens(const struct gt_onnx_op *op)
{
	const struct gt_attr_pool_tokens *a = op->attr;
	struct gt_onnx *m = op->m;
	int64_t tokens = op->dx->dim[1];
	if (a->mode == GT_POOL_FIRST)
		return select_index(m, op->x, 1, 0);
	if (a->mode == GT_POOL_LAST)
		return op->x2 ? last_tokens(m, op->x, op->x2, tokens) : select_index(m, op->x, 1, tokens - 1);
	const char *mask = op->x2 ? length_mask(m, op->x2, tokens) : NULL;
	return combine_tokens(m, op->x, mask, tokens, a->mode == GT_POOL_MAX ? GT_BAG_MAX : GT_BAG_MEAN);
}

/* ---- positional ------------------------------------------------------------------------------------------------------------------- */
static const char *make_sinusoids(struct gt_onnx *m, int64_t tokens, int64_t features)
{
	float *v = gt_onnx_room(m, tokens * features);
	for (int64_t t = 0; v && t < tokens; t++)
		for (int64_t j = 0; j < features; j++)
			v[t * features + j] = (float)gt_sinusoid(t, j, features);
	return gt_onnx_own_floats(m, 2, (int64_t[]){tokens, features}, v);
}

const char *gt_onnx_op_positional(const struct gt_onnx_op *op)
{
	const struct gt_attr_positional *a = op->attr;
	struct gt_onnx *m = op->m;
	int64_t zero = 0, tokens = a->kind == GT_POSITIONAL_SAME ? 1 : op->dx->dim[1];
	if (a->kind == GT_POSITIONAL_SINUSOIDAL)
		return GT_ONNX(m, "Add", GT_IN(op->x, make_sinusoids(m, tokens, op->dx->dim[2])));
	const char *first = gt_onnx_ints(m, 1, &zero);
	const char *table = gt_onnx_param(m, gt_onnx_operand_param(op, "w"));
	const char *rows = GT_ONNX(m, "Slice", GT_IN(table, first, gt_onnx_ints(m, 1, &tokens), first));
	return GT_ONNX(m, "Add", GT_IN(op->x, rows));
}

/* ---- attention -------------------------------------------------------------------------------------------------------------------- */
/* Returns a mask [T, T] to add to attention scores: element [i, j] is 0 if token i may attend to token j, else minus infinity. */
static const char *causal_scores(struct gt_onnx *m, int64_t tokens)
{
	float *v = gt_onnx_room(m, tokens * tokens);
	for (int64_t i = 0; v && i < tokens; i++)
		for (int64_t j = i + 1; j < tokens; j++)
			v[i * tokens + j] = -INFINITY;
	return gt_onnx_own_floats(m, 2, (int64_t[]){tokens, tokens}, v);
}

/* Sets the attention scores of the keys after the length of a sample to a very low value. If the length is 0, this makes all scores equal,
 * and clear_empty later sets the output to 0. */
static const char *hide_keys(struct gt_onnx *m, const char *scores, const char *lengths, int64_t tokens)
{
	const char *mask = gt_onnx_reshape(m, length_mask(m, lengths, tokens), 4, (int64_t[]){0, 1, 1, tokens});
	return GT_ONNX(m, "Where", GT_IN(mask, scores, gt_onnx_float(m, -FLT_MAX)));
}

static const char *clear_empty(struct gt_onnx *m, const char *y, const char *lengths)
{
	const char *some = GT_ONNX(m, "Greater", GT_IN(gt_onnx_reshape(m, lengths, 3, (int64_t[]){0, 1, 1}), gt_onnx_int(m, 0)));
	return GT_ONNX(m, "Where", GT_IN(some, y, gt_onnx_float(m, 0)));
}

/* Adds attention. The features of the input are the queries, the keys and the values, in this order; the input is reshaped and transposed
 * to `parts`, [3, N, heads, T, features of a head]. */
const char *gt_onnx_op_attention(const struct gt_onnx_op *op)
{
	const struct gt_attr_attention *a = op->attr;
	struct gt_onnx *m = op->m;
	int64_t tokens = op->dy->dim[1], width = op->dy->dim[2] / a->heads;
	const char *split = gt_onnx_reshape(m, op->x, 5, (int64_t[]){0, tokens, 3, a->heads, width});
	const char *parts = GT_ONNX(m, "Transpose", GT_IN(split), GT_ONNX_INTS("perm", 2, 0, 3, 1, 4));
	const char *q = GT_ONNX(m, "Mul", GT_IN(select_index(m, parts, 0, 0), gt_onnx_float(m, 1 / sqrt((double)width))));
	const char *k = GT_ONNX(m, "Transpose", GT_IN(select_index(m, parts, 0, 1)), GT_ONNX_INTS("perm", 0, 1, 3, 2));
	const char *scores = GT_ONNX(m, "MatMul", GT_IN(q, k));
	if (op->x2)
		scores = hide_keys(m, scores, op->x2, tokens);
	if (a->causal)
		scores = GT_ONNX(m, "Add", GT_IN(scores, causal_scores(m, tokens)));
	const char *share = GT_ONNX(m, "Softmax", GT_IN(scores), GT_ONNX_INT("axis", -1));
	const char *heads = GT_ONNX(m, "MatMul", GT_IN(share, select_index(m, parts, 0, 2)));
	const char *tokenwise = GT_ONNX(m, "Transpose", GT_IN(heads), GT_ONNX_INTS("perm", 0, 2, 1, 3));
	const char *y = gt_onnx_reshape(m, tokenwise, 3, op->dy->dim);
	return op->x2 ? clear_empty(m, y, op->x2) : y;
}

/* ---- lstm and gru ----------------------------------------------------------------------------------------------------------------- */
/* An operator of ONNX for recurrent layers. gate[i]: index, in the order of gtrain and PyTorch, of gate i in ONNX's order. */
struct cell {
	const char *type;
	int gates, gate[4];
};
static const struct cell lstm = {"LSTM", 4, {0, 3, 1, 2}}, gru = {"GRU", 3, {1, 0, 2}};

/* Copies the rows of all gates of a parameter, [gates * hidden, width], in the order of ONNX; from NULL: `to` keeps its zeros. */
static void copy_gates(const struct cell *c, const float *from, int64_t hidden, int64_t width, float *to)
{
	for (int g = 0; g < c->gates && from; g++)
		for (int64_t i = 0; i < hidden * width; i++)
			to[g * hidden * width + i] = from[c->gate[g] * hidden * width + i];
}

static const char *gate_weights(struct gt_onnx *m, const struct cell *c, int param)
{
	struct gt_tdesc d = gt_export_param_desc(m->source, param);
	float *v = gt_onnx_room(m, gt_tdesc_count(&d));
	if (v)
		copy_gates(c, gt_onnx_param_values(m, param), d.dim[0] / c->gates, d.dim[1], v);
	return gt_onnx_own_floats(m, 3, (int64_t[]){1, d.dim[0], d.dim[1]}, v);
}

/* Returns an initializer with the gates' biases of the input (parameter `input`), followed by those of the state (parameter `state`). */
static const char *gate_biases(struct gt_onnx *m, const struct cell *c, int input, int state, int64_t rows)
{
	float *v = gt_onnx_room(m, 2 * rows);
	if (v) {
		copy_gates(c, gt_onnx_param_values(m, input), rows / c->gates, 1, v);
		copy_gates(c, gt_onnx_param_values(m, state), rows / c->gates, 1, v + rows);
	}
	return gt_onnx_own_floats(m, 2, (int64_t[]){1, 2 * rows}, v);
}

/* Returns the lengths as the operators need them: i32, at most the number of tokens. */
static const char *clip_lengths(struct gt_onnx *m, const char *lengths, int64_t tokens)
{
	const char *clipped = GT_ONNX(m, "Min", GT_IN(GT_ONNX(m, "Max", GT_IN(lengths, gt_onnx_int(m, 0))), gt_onnx_int(m, tokens)));
	return gt_onnx_cast(m, clipped, GT_ONNX_INT32);
}

/* Adds the operator, which includes the product with the layer's input, a separate node in the graph (find_absorbed of onnx_graph.c). The
 * operator takes [T, N, F] and returns [T, 1, N, H]. */
static const char *add_recurrence(const struct gt_onnx_op *op, const struct cell *c)
{
	const struct gt_attr_rnn *a = op->attr;
	const struct gt_graph *g = op->g;
	struct gt_onnx *m = op->m;
	const struct gt_node *view = &g->nodes[g->values[gt_node_operand(op->n, "x")].producer];
	const struct gt_node *linear = &g->nodes[g->values[gt_node_first_input(view)].producer];
	int64_t tokens = op->dy->dim[1], hidden = op->dy->dim[2], features = gt_node_desc(g, linear, "x")->dim[1];
	int bias = gt_onnx_operand_param(op, "b");
	const char *x = gt_onnx_reshape(m, op->value[gt_node_operand(linear, "x")], 3, (int64_t[]){0, tokens, features});
	const char *in[] = {GT_ONNX(m, "Transpose", GT_IN(x), GT_ONNX_INTS("perm", 1, 0, 2)),
	                    gate_weights(m, c, g->values[gt_node_operand(linear, "w")].param),
	                    gate_weights(m, c, gt_onnx_operand_param(op, "w")),
	                    bias < 0 ? "" : gate_biases(m, c, g->values[gt_node_operand(linear, "b")].param, bias, c->gates * hidden),
	                    op->x2 ? clip_lengths(m, op->x2, tokens) : NULL,
	                    NULL};
	const char *direction = a->reverse ? "reverse" : "forward";
	const char *y = c == &gru ? GT_ONNX(m, c->type, in, GT_ONNX_INT("hidden_size", hidden), GT_ONNX_WORD("direction", direction),
	                                    GT_ONNX_INT("linear_before_reset", 1))
	                          : GT_ONNX(m, c->type, in, GT_ONNX_INT("hidden_size", hidden), GT_ONNX_WORD("direction", direction));
	return gt_onnx_reshape(m, GT_ONNX(m, "Transpose", GT_IN(y), GT_ONNX_INTS("perm", 2, 0, 1, 3)), 3, op->dy->dim);
}

const char *gt_onnx_op_lstm(const struct gt_onnx_op *op)
{
	return add_recurrence(op, &lstm);
}

const char *gt_onnx_op_gru(const struct gt_onnx_op *op)
{
	return add_recurrence(op, &gru);
}
