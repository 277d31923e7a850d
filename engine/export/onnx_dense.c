/* Linear layers, activations and operations on shapes in ONNX. */
#include "export/onnx_ops.h"

/* Adds a Gemm with the transposed weight. Without a bias, NULL ends the list of inputs after the weight. */
const char *gt_onnx_op_linear(const struct gt_onnx_op *op)
{
	const struct gt_attr_linear *a = op->attr;
	const char *w = gt_onnx_param(op->m, gt_onnx_operand_param(op, "w"));
	const char *bias = a->bias ? gt_onnx_param(op->m, gt_onnx_operand_param(op, "b")) : NULL;
	return GT_ONNX(op->m, "Gemm", GT_IN(op->x, w, bias), GT_ONNX_INT("transB", 1));
}

/* ---- activations ------------------------------------------------------------------------------------------------------------------ */
/* Defines an activation that is one operator of ONNX, with the given attributes. `a` points to the parameters of the activation. */
#define OPERATOR(name, type, ...)                                                                                                          \
	const char *gt_onnx_op_##name(const struct gt_onnx_op *op)                                                                             \
	{                                                                                                                                      \
		const struct gt_attr_act *a = op->attr;                                                                                            \
		(void)a;                                                                                                                           \
		return GT_ONNX(op->m, type, GT_IN(op->x) __VA_OPT__(,) __VA_ARGS__);                                                               \
	}
OPERATOR(relu, "Relu")
OPERATOR(leaky_relu, "LeakyRelu", GT_ONNX_NUMBER("alpha", a->number[0]))
OPERATOR(sigmoid, "Sigmoid")
OPERATOR(tanh, "Tanh")
OPERATOR(elu, "Elu", GT_ONNX_NUMBER("alpha", a->number[0]))
OPERATOR(hardsigmoid, "HardSigmoid", GT_ONNX_NUMBER("alpha", 1.0 / 6), GT_ONNX_NUMBER("beta", 0.5))
OPERATOR(hardswish, "HardSwish")
OPERATOR(selu, "Selu")
OPERATOR(softmax, "Softmax", GT_ONNX_INT("axis", 1))
OPERATOR(log_softmax, "LogSoftmax", GT_ONNX_INT("axis", 1))

const char *gt_onnx_op_relu6(const struct gt_onnx_op *op)
{
	return GT_ONNX(op->m, "Clip", GT_IN(op->x, gt_onnx_float(op->m, 0), gt_onnx_float(op->m, 6)));
}

const char *gt_onnx_op_silu(const struct gt_onnx_op *op)
{
	return GT_ONNX(op->m, "Mul", GT_IN(op->x, GT_ONNX(op->m, "Sigmoid", GT_IN(op->x))));
}

const char *gt_onnx_op_mish(const struct gt_onnx_op *op)
{
	return GT_ONNX(op->m, "Mul", GT_IN(op->x, GT_ONNX(op->m, "Tanh", GT_IN(GT_ONNX(op->m, "Softplus", GT_IN(op->x))))));
}

static const char *multiply_by(struct gt_onnx *m, const char *x, double factor)
{
	return GT_ONNX(m, "Mul", GT_IN(x, gt_onnx_float(m, factor)));
}

/* Adds 0.5 x (1 + erf(x / sqrt(2))) or, with `approximate`, 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))). */
const char *gt_onnx_op_gelu(const struct gt_onnx_op *op)
{
	const struct gt_attr_gelu *a = op->attr;
	struct gt_onnx *m = op->m;
	const char *inner = multiply_by(m, op->x, 0.70710678118654752440);
	if (a->approximate) {
		const char *cube = GT_ONNX(m, "Mul", GT_IN(op->x, GT_ONNX(m, "Mul", GT_IN(op->x, op->x))));
		inner = multiply_by(m, GT_ONNX(m, "Add", GT_IN(op->x, multiply_by(m, cube, 0.044715))), 0.79788456080286535588);
	}
	const char *sum = GT_ONNX(m, "Add", GT_IN(GT_ONNX(m, a->approximate ? "Tanh" : "Erf", GT_IN(inner)), gt_onnx_float(m, 1)));
	return GT_ONNX(m, "Mul", GT_IN(multiply_by(m, op->x, 0.5), sum));
}

/* Adds log(1 + exp(beta x)) / beta, or x where beta x is above the threshold. */
const char *gt_onnx_op_softplus(const struct gt_onnx_op *op)
{
	const struct gt_attr_act *a = op->attr;
	struct gt_onnx *m = op->m;
	const char *z = multiply_by(m, op->x, a->number[0]);
	const char *far = GT_ONNX(m, "Greater", GT_IN(z, gt_onnx_float(m, a->number[1])));
	return GT_ONNX(m, "Where", GT_IN(far, op->x, multiply_by(m, GT_ONNX(m, "Softplus", GT_IN(z)), 1 / a->number[0])));
}

/* Adds a PRelu, whose slopes (one for each channel) are broadcast over the pixels. */
const char *gt_onnx_op_prelu(const struct gt_onnx_op *op)
{
	const struct gt_attr_prelu *a = op->attr;
	const char *slope = gt_onnx_param(op->m, gt_onnx_operand_param(op, "w"));
	if (op->dx->rank == 4)
		slope = GT_ONNX(op->m, "Reshape", GT_IN(slope, gt_onnx_ints(op->m, 3, (int64_t[]){a->num, 1, 1})));
	return GT_ONNX(op->m, "PRelu", GT_IN(op->x, slope));
}

const char *gt_onnx_op_scale(const struct gt_onnx_op *op)
{
	return multiply_by(op->m, op->x, ((const struct gt_attr_scale *)op->attr)->factor);
}

/* ---- shapes and several inputs ---------------------------------------------------------------------------------------------------- */
/* For operations that change nothing in an evaluation, identity and dropout: returns the name of the input. */
const char *gt_onnx_op_same(const struct gt_onnx_op *op)
{
	return op->x;
}

const char *gt_onnx_op_reshape(const struct gt_onnx_op *op)
{
	return gt_onnx_reshape(op->m, op->x, op->dy->rank, op->dy->dim);
}

/* Returns a NULL-terminated list of the names of all data inputs of the node. */
static const char *const *list_inputs(const struct gt_onnx_op *op, const char *list[GT_MAX_IO + 1])
{
	for (int i = 0; i < op->n->ndata; i++)
		list[i] = op->value[op->n->in[i]];
	list[op->n->ndata] = NULL;
	return list;
}

const char *gt_onnx_op_add(const struct gt_onnx_op *op)
{
	const char *list[GT_MAX_IO + 1];
	return GT_ONNX(op->m, "Sum", list_inputs(op, list));
}

const char *gt_onnx_op_mul(const struct gt_onnx_op *op)
{
	return GT_ONNX(op->m, "Mul", GT_IN(op->x, op->x2));
}

/* Returns the second input, [N, C] or [N, C, 1, 1], as [N, C, 1, 1], which is broadcast over the pixels of the first input. */
static const char *spread_channels(const struct gt_onnx_op *op)
{
	return gt_onnx_reshape(op->m, op->x2, op->dx->rank, (int64_t[]){0, op->dx->dim[1], 1, 1});
}

const char *gt_onnx_op_add_channels(const struct gt_onnx_op *op)
{
	return GT_ONNX(op->m, "Add", GT_IN(op->x, spread_channels(op)));
}

const char *gt_onnx_op_mul_channels(const struct gt_onnx_op *op)
{
	return GT_ONNX(op->m, "Mul", GT_IN(op->x, spread_channels(op)));
}

const char *gt_onnx_op_concat(const struct gt_onnx_op *op)
{
	const char *list[GT_MAX_IO + 1];
	return GT_ONNX(op->m, "Concat", list_inputs(op, list), GT_ONNX_INT("axis", 1));
}

const char *gt_onnx_op_permute(const struct gt_onnx_op *op)
{
	const struct gt_attr_permute *a = op->attr;
	return GT_ONNX(op->m, "Transpose", GT_IN(op->x), GT_ONNX_SHAPE("perm", a->dims.n, a->dims.v));
}

const char *gt_onnx_op_select(const struct gt_onnx_op *op)
{
	const struct gt_attr_select *a = op->attr;
	return GT_ONNX(op->m, "Gather", GT_IN(op->x, gt_onnx_int(op->m, a->index)), GT_ONNX_INT("axis", a->dim));
}
