/* Convolution, pooling and normalisation in ONNX. */
#include "export/onnx_ops.h"

const char *gt_onnx_op_conv(const struct gt_onnx_op *op)
{
	const struct gt_attr_conv2d *a = op->attr;
	const int64_t *p = a->padding;
	const char *w = gt_onnx_param(op->m, gt_onnx_operand_param(op, "w"));
	const char *bias = a->bias ? gt_onnx_param(op->m, gt_onnx_operand_param(op, "b")) : NULL;
	return GT_ONNX(op->m, "Conv", GT_IN(op->x, w, bias), GT_ONNX_SHAPE("kernel_shape", 2, a->kernel),
	               GT_ONNX_SHAPE("strides", 2, a->stride), GT_ONNX_INTS("pads", p[0], p[1], p[0], p[1]),
	               GT_ONNX_SHAPE("dilations", 2, a->dilation), GT_ONNX_INT("group", a->groups));
}

/* ---- pooling ---------------------------------------------------------------------------------------------------------------------- */
/* Writes the padding at the end of each dimension. ceil_mode is replaced by more padding at the end, so that the last window is complete:
 * runtimes differ in their ceil_mode, but not in explicit padding. */
static void find_end_padding(const struct gt_onnx_op *op, int64_t *end)
{
	const struct gt_attr_pool2d *a = op->attr;
	for (int i = 0; i < 2; i++) {
		int64_t need = (op->dy->dim[2 + i] - 1) * a->stride[i] + a->kernel[i] - op->dx->dim[2 + i] - a->padding[i];
		end[i] = need > a->padding[i] ? need : a->padding[i];
	}
}

const char *gt_onnx_op_maxpool(const struct gt_onnx_op *op)
{
	const struct gt_attr_pool2d *a = op->attr;
	int64_t end[2];
	find_end_padding(op, end);
	return GT_ONNX(op->m, "MaxPool", GT_IN(op->x), GT_ONNX_SHAPE("kernel_shape", 2, a->kernel), GT_ONNX_SHAPE("strides", 2, a->stride),
	               GT_ONNX_INTS("pads", a->padding[0], a->padding[1], end[0], end[1]));
}

/* Returns by how many positions along dimension i an average is divided: the window's length, as in PyTorch with the padding of the layer,
 * but without positions that only ceil_mode adds. */
static int64_t count_positions(const struct gt_attr_pool2d *a, int i, int64_t window, int64_t size)
{
	int64_t begin = window * a->stride[i] - a->padding[i], end = begin + a->kernel[i], last = size + a->padding[i];
	return (end < last ? end : last) - begin;
}

/* Corrects the means y, which are over complete windows: multiplies each by (positions of the window) / (positions that PyTorch counts),
 * which differs from 1 only for windows that ceil_mode extends. */
static const char *correct_means(const struct gt_onnx_op *op, const char *y)
{
	const struct gt_attr_pool2d *a = op->attr;
	const int64_t *d = op->dy->dim, dim[4] = {1, 1, d[2], d[3]};
	float *v = gt_onnx_room(op->m, d[2] * d[3]);
	for (int64_t h = 0; v && h < d[2]; h++)
		for (int64_t w = 0; w < d[3]; w++)
			v[h * d[3] + w] = (float)((double)(a->kernel[0] * a->kernel[1]) /
			                          (double)(count_positions(a, 0, h, op->dx->dim[2]) * count_positions(a, 1, w, op->dx->dim[3])));
	return GT_ONNX(op->m, "Mul", GT_IN(y, gt_onnx_own_floats(op->m, 4, dim, v)));
}

const char *gt_onnx_op_avgpool(const struct gt_onnx_op *op)
{
	const struct gt_attr_pool2d *a = op->attr;
	int64_t end[2];
	find_end_padding(op, end);
	const char *y = GT_ONNX(op->m, "AveragePool", GT_IN(op->x), GT_ONNX_SHAPE("kernel_shape", 2, a->kernel),
	                        GT_ONNX_SHAPE("strides", 2, a->stride), GT_ONNX_INTS("pads", a->padding[0], a->padding[1], end[0], end[1]),
	                        GT_ONNX_INT("count_include_pad", a->count_include_pad));
	bool beyond = end[0] > a->padding[0] || end[1] > a->padding[1];
	return beyond && a->count_include_pad ? correct_means(op, y) : y;
}

/* Returns the begin of window i of adaptive pooling from n to `out` positions, which is [i * n / out, ceil((i + 1) * n / out)). */
static int64_t window_begin(int64_t i, int64_t n, int64_t out)
{
	return i * n / out;
}

static int64_t window_end(int64_t i, int64_t n, int64_t out)
{
	return ((i + 1) * n + out - 1) / out;
}

/* Returns a matrix [out, n], or its transpose. Row i has the weights with which window i averages n inputs. */
static const char *mean_matrix(struct gt_onnx *m, int64_t n, int64_t out, bool transposed)
{
	float *v = gt_onnx_room(m, n * out);
	for (int64_t i = 0; v && i < out; i++)
		for (int64_t k = window_begin(i, n, out), end = window_end(i, n, out), first = k; k < end; k++)
			v[transposed ? k * out + i : i * n + k] = 1 / (float)(end - first);
	return gt_onnx_own_floats(m, 2, (int64_t[]){transposed ? n : out, transposed ? out : n}, v);
}

const char *gt_onnx_op_adaptive_avgpool(const struct gt_onnx_op *op)
{
	const int64_t *x = op->dx->dim + 2, *y = op->dy->dim + 2;
	if (y[0] == 1 && y[1] == 1)
		return GT_ONNX(op->m, "GlobalAveragePool", GT_IN(op->x));
	if (x[0] % y[0] == 0 && x[1] % y[1] == 0)
		return GT_ONNX(op->m, "AveragePool", GT_IN(op->x), GT_ONNX_INTS("kernel_shape", x[0] / y[0], x[1] / y[1]),
		               GT_ONNX_INTS("strides", x[0] / y[0], x[1] / y[1]));
	const char *rows = GT_ONNX(op->m, "MatMul", GT_IN(mean_matrix(op->m, x[0], y[0], false), op->x));
	return GT_ONNX(op->m, "MatMul", GT_IN(rows, mean_matrix(op->m, x[1], y[1], true)));
}

/* Returns the maxima of all windows along one axis, concatenated. */
static const char *window_maxima(struct gt_onnx *m, const char *x, int axis, int64_t n, int64_t out)
{
	const char **part = gt_onnx_names(m, out);
	for (int64_t i = 0; part && i < out; i++) {
		int64_t begin = window_begin(i, n, out), end = window_end(i, n, out), at = axis;
		const char *window = GT_ONNX(m, "Slice", GT_IN(x, gt_onnx_ints(m, 1, &begin), gt_onnx_ints(m, 1, &end), gt_onnx_ints(m, 1, &at)));
		part[i] = GT_ONNX(m, "ReduceMax", GT_IN(window), GT_ONNX_INTS("axes", axis), GT_ONNX_INT("keepdims", 1));
	}
	return part ? GT_ONNX(m, "Concat", part, GT_ONNX_INT("axis", axis)) : "";
}

const char *gt_onnx_op_adaptive_maxpool(const struct gt_onnx_op *op)
{
	const int64_t *x = op->dx->dim + 2, *y = op->dy->dim + 2;
	if (y[0] == 1 && y[1] == 1)
		return GT_ONNX(op->m, "GlobalMaxPool", GT_IN(op->x));
	if (x[0] % y[0] == 0 && x[1] % y[1] == 0)
		return GT_ONNX(op->m, "MaxPool", GT_IN(op->x), GT_ONNX_INTS("kernel_shape", x[0] / y[0], x[1] / y[1]),
		               GT_ONNX_INTS("strides", x[0] / y[0], x[1] / y[1]));
	return window_maxima(op->m, window_maxima(op->m, op->x, 2, x[0], y[0]), 3, x[1], y[1]);
}

/* ---- normalisation ---------------------------------------------------------------------------------------------------------------- */
/* Multiplies each channel of an input of rank 2 or 4 by its gamma and adds its beta; returns x if the layer has neither. */
static const char *scale_channels(const struct gt_onnx_op *op, const char *x)
{
	int64_t shape[3] = {op->dx->dim[1], 1, 1};
	const char *dims;
	if (gt_onnx_operand_param(op, "gamma") < 0)
		return x;
	dims = gt_onnx_ints(op->m, op->dx->rank - 1, shape);
	const char *gamma = GT_ONNX(op->m, "Reshape", GT_IN(gt_onnx_operand(op, "gamma", shape[0], 1), dims));
	const char *beta = GT_ONNX(op->m, "Reshape", GT_IN(gt_onnx_operand(op, "beta", shape[0], 0), dims));
	return GT_ONNX(op->m, "Add", GT_IN(GT_ONNX(op->m, "Mul", GT_IN(x, gamma)), beta));
}

static const char *reduce_mean(const struct gt_onnx_op *op, const char *x)
{
	static const int64_t axes[3] = {0, 2, 3};
	return GT_ONNX(op->m, "ReduceMean", GT_IN(x), GT_ONNX_SHAPE("axes", op->dx->rank == 4 ? 3 : 1, axes), GT_ONNX_INT("keepdims", 1));
}

/* Adds a batch normalisation of a layer without running statistics, which uses the statistics of the batch also in an evaluation. */
static const char *normalize_batch(const struct gt_onnx_op *op, double eps)
{
	struct gt_onnx *m = op->m;
	const char *d = GT_ONNX(m, "Sub", GT_IN(op->x, reduce_mean(op, op->x)));
	const char *var = reduce_mean(op, GT_ONNX(m, "Mul", GT_IN(d, d)));
	const char *std = GT_ONNX(m, "Sqrt", GT_IN(GT_ONNX(m, "Add", GT_IN(var, gt_onnx_float(m, eps)))));
	return scale_channels(op, GT_ONNX(m, "Div", GT_IN(d, std)));
}

const char *gt_onnx_op_batchnorm(const struct gt_onnx_op *op)
{
	const struct gt_attr_norm *a = op->attr;
	int64_t channels = op->dx->dim[1];
	if (!a->track)
		return normalize_batch(op, a->eps);
	const char *gamma = gt_onnx_operand(op, "gamma", channels, 1), *beta = gt_onnx_operand(op, "beta", channels, 0);
	return GT_ONNX(op->m, "BatchNormalization",
	               GT_IN(op->x, gamma, beta, gt_onnx_operand(op, "rmean", channels, 0), gt_onnx_operand(op, "rvar", channels, 1)),
	               GT_ONNX_NUMBER("epsilon", a->eps));
}

/* Adds a layer normalisation over all dimensions except the batch, as in the graph's operation. */
const char *gt_onnx_op_layernorm(const struct gt_onnx_op *op)
{
	const struct gt_attr_norm *a = op->attr;
	int64_t n = gt_tdesc_count(op->dx) / op->dx->dim[0];
	const char *gamma = gt_onnx_operand(op, "gamma", n, 1);
	const char *beta = gt_onnx_operand_param(op, "beta") < 0 ? NULL : gt_onnx_operand(op, "beta", n, 0);
	if (!beta && op->dx->rank > 2)
		gamma = GT_ONNX(op->m, "Reshape", GT_IN(gamma, gt_onnx_ints(op->m, op->dx->rank - 1, op->dx->dim + 1)));
	return GT_ONNX(op->m, "LayerNormalization", GT_IN(op->x, gamma, beta), GT_ONNX_INT("axis", 1), GT_ONNX_NUMBER("epsilon", a->eps));
}

/* ONNX has no group normalisation in this operator set: reshapes each group to one channel, and adds an instance normalisation. */
const char *gt_onnx_op_groupnorm(const struct gt_onnx_op *op)
{
	const struct gt_attr_norm *a = op->attr;
	struct gt_onnx *m = op->m;
	int64_t grouped[3] = {0, a->groups, -1};
	float *one = gt_onnx_room(m, a->groups), *zero = gt_onnx_room(m, a->groups);
	for (int64_t i = 0; one && i < a->groups; i++)
		one[i] = 1;
	const char *x = GT_ONNX(m, "Reshape", GT_IN(op->x, gt_onnx_ints(m, 3, grouped)));
	const char *y = GT_ONNX(m, "InstanceNormalization",
	                        GT_IN(x, gt_onnx_own_floats(m, 1, &a->groups, one), gt_onnx_own_floats(m, 1, &a->groups, zero)),
	                        GT_ONNX_NUMBER("epsilon", a->eps));
	return scale_channels(op, gt_onnx_reshape(m, y, op->dx->rank, op->dx->dim));
}
