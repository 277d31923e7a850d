/* The operations of which cuDNN's attention consists: their rules (cuDNN documentation, "CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR" and the
 * others), the graphs that an engine takes, and the numbers, one operation after the other with sums in double. A tensor in registers is
 * rounded to its type, as the real kernels round the operands of tensor cores. */
#include "add_scaled.h"
#include "cudasim_dnn.h"
#include "cuda_runtime.h"
#include "ew.h"
#include <cmath>
#include <cstring>

#define REFUSE(status, text)                                                                                                               \
	do {                                                                                                                                   \
		*why = text;                                                                                                                       \
		return status;                                                                                                                     \
	} while (0)
#define KIND(k) CUDNN_BACKEND_##k##_DESCRIPTOR

/* ---- rules ----------------------------------------------------------------------------------------------------------------------- */
bool dnn_is_attention_op(const dnn_desc *d)
{
	if (d->kind != KIND(OPERATION_POINTWISE))
		return d->kind == KIND(OPERATION_MATMUL) || d->kind == KIND(OPERATION_REDUCTION) || d->kind == KIND(OPERATION_RESHAPE);
	int mode = d->ref(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR)->get<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
	return mode != CUDNN_POINTWISE_ADD && mode != CUDNN_POINTWISE_RELU_FWD;
}

static bool fits(const dnn_tensor &t, const dnn_tensor &y)
{
	for (int i = 0; i < 4; i++)
		if (t.dim[i] != y.dim[i] && t.dim[i] != 1)
			return false;
	return true;
}

static cudnnStatus_t pointwise(const dnn_desc *d, dnn_op *op, std::string *why)
{
	const dnn_desc *p = d->ref(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
	int mode = p->get<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
	bool one = mode == CUDNN_POINTWISE_EXP || mode == CUDNN_POINTWISE_LOG || mode == CUDNN_POINTWISE_IDENTITY ||
	           mode == CUDNN_POINTWISE_GEN_INDEX,
	     truth = mode == CUDNN_POINTWISE_CMP_GE || mode == CUDNN_POINTWISE_CMP_LT || mode == CUDNN_POINTWISE_LOGICAL_AND;
	op->mode = mode;
	op->x = dnn_tensor_of(d->ref(CUDNN_ATTR_OPERATION_POINTWISE_XDESC)),
	op->y = dnn_tensor_of(d->ref(CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
	op->has_w = d->has(CUDNN_ATTR_OPERATION_POINTWISE_BDESC), op->has_t = d->has(CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
	if (op->has_w)
		op->w = dnn_tensor_of(d->ref(CUDNN_ATTR_OPERATION_POINTWISE_BDESC));
	if (op->has_t)
		op->t = dnn_tensor_of(d->ref(CUDNN_ATTR_OPERATION_POINTWISE_TDESC));
	if (op->has_w == one || op->has_t != (mode == CUDNN_POINTWISE_BINARY_SELECT))
		REFUSE(CUDNN_STATUS_BAD_PARAM, "BDESC and TDESC go with operations of two and three operands");
	if (p->has(CUDNN_ATTR_POINTWISE_AXIS) != (mode == CUDNN_POINTWISE_GEN_INDEX))
		REFUSE(CUDNN_STATUS_BAD_PARAM, "an axis goes with an index");
	if (mode == CUDNN_POINTWISE_GEN_INDEX)
		op->axis = p->get<int64_t>(CUDNN_ATTR_POINTWISE_AXIS);
	if (truth != (op->y.type == CUDNN_DATA_BOOLEAN) || (op->has_t && op->t.type != CUDNN_DATA_BOOLEAN))
		REFUSE(CUDNN_STATUS_BAD_PARAM, "a condition is boolean");
	if (!fits(op->x, op->y) || (op->has_w && !fits(op->w, op->y)) || (op->has_t && !fits(op->t, op->y)))
		REFUSE(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "operands of a pointwise operation");
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t matmul(const dnn_desc *d, dnn_op *op, std::string *why)
{
	const int limits[3] = {CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC, CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC,
	                       CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC};
	op->x = dnn_tensor_of(d->ref(CUDNN_ATTR_OPERATION_MATMUL_ADESC)), op->w = dnn_tensor_of(d->ref(CUDNN_ATTR_OPERATION_MATMUL_BDESC));
	op->y = dnn_tensor_of(d->ref(CUDNN_ATTR_OPERATION_MATMUL_CDESC));
	op->has_w = true;
	for (int i = 0; i < 3; i++) {
		op->has_limit[i] = d->has(limits[i]);
		if (!op->has_limit[i])
			continue;
		op->limit[i] = dnn_tensor_of(d->ref(limits[i]));
		if (op->limit[i].type != CUDNN_DATA_INT32 || op->limit[i].dim[0] != op->y.dim[0] || op->limit[i].dim[1] != 1)
			REFUSE(CUDNN_STATUS_BAD_PARAM, "limits are [samples, 1, 1, 1] of i32");
	}
	for (int i = 0; i < 2; i++)
		if (op->x.dim[i] != op->y.dim[i] || op->w.dim[i] != op->y.dim[i])
			REFUSE(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "samples or heads");
	if (op->x.dim[2] != op->y.dim[2] || op->w.dim[3] != op->y.dim[3] || op->x.dim[3] != op->w.dim[2])
		REFUSE(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "rows and columns of a product");
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t reduction(const dnn_desc *d, dnn_op *op, std::string *why)
{
	op->mode = d->ref(CUDNN_ATTR_OPERATION_REDUCTION_DESC)->get<cudnnReduceTensorOp_t>(CUDNN_ATTR_REDUCTION_OPERATOR);
	op->x = dnn_tensor_of(d->ref(CUDNN_ATTR_OPERATION_REDUCTION_XDESC)),
	op->y = dnn_tensor_of(d->ref(CUDNN_ATTR_OPERATION_REDUCTION_YDESC));
	if (op->y.dim[3] != 1 || memcmp(op->x.dim, op->y.dim, 3 * sizeof *op->x.dim))
		REFUSE(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "only the last dimension is reduced here");
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t reshape(const dnn_desc *d, dnn_op *op, std::string *why)
{
	op->x = dnn_tensor_of(d->ref(CUDNN_ATTR_OPERATION_RESHAPE_XDESC)), op->y = dnn_tensor_of(d->ref(CUDNN_ATTR_OPERATION_RESHAPE_YDESC));
	for (int i = 0; i < 4; i++) {
		int from = i < 2 ? i : 5 - i;
		if (op->y.dim[i] != op->x.dim[from] || op->y.stride[i] != op->x.stride[from])
			REFUSE(CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, "only the last two dimensions are exchanged here");
	}
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t dnn_attention_op(const dnn_desc *d, dnn_op *op, std::string *why)
{
	return d->kind == KIND(OPERATION_MATMUL)      ? matmul(d, op, why)
	       : d->kind == KIND(OPERATION_REDUCTION) ? reduction(d, op, why)
	       : d->kind == KIND(OPERATION_RESHAPE)   ? reshape(d, op, why)
	                                              : pointwise(d, op, why);
}

/* ---- graphs ---------------------------------------------------------------------------------------------------------------------- */
static char letter_of(const dnn_op &op)
{
	static const struct {
		int mode;
		char letter;
	} modes[] = {{CUDNN_POINTWISE_ADD, '+'},      {CUDNN_POINTWISE_SUB, '-'},          {CUDNN_POINTWISE_MUL, '*'},
	             {CUDNN_POINTWISE_DIV, '/'},      {CUDNN_POINTWISE_EXP, 'e'},          {CUDNN_POINTWISE_LOG, 'l'},
	             {CUDNN_POINTWISE_CMP_GE, '>'},   {CUDNN_POINTWISE_CMP_LT, '<'},       {CUDNN_POINTWISE_LOGICAL_AND, '&'},
	             {CUDNN_POINTWISE_IDENTITY, '='}, {CUDNN_POINTWISE_BINARY_SELECT, '?'}};
	if (op.kind == KIND(OPERATION_MATMUL))
		return 'M';
	if (op.kind == KIND(OPERATION_REDUCTION))
		return op.mode == CUDNN_REDUCE_TENSOR_MAX ? 'x' : 's';
	if (op.kind == KIND(OPERATION_RESHAPE))
		return 'T';
	if (op.kind != KIND(OPERATION_POINTWISE))
		return '!';
	if (op.mode == CUDNN_POINTWISE_GEN_INDEX)
		return op.axis == 2 ? 'q' : 'k';
	for (auto &m : modes)
		if (m.mode == op.mode)
			return m.letter;
	return '!';
}

/* The order of operations that the real library recognizes, as cudnn-frontend writes it. The real library compares more of a graph. */
bool dnn_is_attention(const std::vector<dnn_op> &ops)
{
	std::string have;
	for (const dnn_op &op : ops)
		have += letter_of(op);
	for (const char *lengths : {"", "qk<<&?"})
		for (const char *causal : {"", "qk>?"}) {
			std::string forward = std::string("M*") + lengths + causal + "x-esl+/M";
			std::string back = std::string("*s*M*") + lengths + "-" + causal + "eTMM-**TMTM";
			bool gradient = have == back || have == back + "=";
			if (have != forward && !gradient)
				continue;
			const dnn_op &first = gradient ? ops[3] : ops[0]; /* queries times keys */
			int64_t d = first.x.dim[3];
			return first.x.type != CUDNN_DATA_FLOAT && first.has_limit[0] == (*lengths != 0) && d % 8 == 0 && d <= (gradient ? 128 : 256);
		}
	return false;
}

bool dnn_compiles(const std::vector<dnn_op> &ops)
{
	bool conv = true;
	for (const dnn_op &op : ops)
		conv &= op.kind <= KIND(OPERATION_POINTWISE) &&
		        (op.kind < KIND(OPERATION_POINTWISE) || op.mode == CUDNN_POINTWISE_ADD || op.mode == CUDNN_POINTWISE_RELU_FWD);
	return conv || dnn_is_attention(ops);
}

/* ---- numbers --------------------------------------------------------------------------------------------------------------------- */
struct view { /* a tensor with its memory */
	const dnn_tensor &t;
	void *p;
	int64_t at(const int64_t (&i)[4]) const /* an index in a dimension of 1 is not counted */
	{
		int64_t sum = 0;
		for (int k = 0; k < 4; k++)
			sum += t.dim[k] > 1 ? i[k] * t.stride[k] : 0;
		return sum;
	}
	float load(const int64_t (&i)[4]) const
	{
		int64_t o = at(i);
		switch (t.type) {
		case CUDNN_DATA_FLOAT:
			return ((float *)p)[o];
		case CUDNN_DATA_INT32:
			return (float)((int32_t *)p)[o];
		case CUDNN_DATA_BOOLEAN:
			return ((uint8_t *)p)[o];
		case CUDNN_DATA_HALF:
			return gt_f16_to_f32(((uint16_t *)p)[o]);
		default:
			return gt_bf16_to_f32(((uint16_t *)p)[o]);
		}
	}
	void store(const int64_t (&i)[4], double v) const
	{
		int64_t o = at(i);
		switch (t.type) {
		case CUDNN_DATA_FLOAT:
			((float *)p)[o] = (float)v;
			break;
		case CUDNN_DATA_INT32:
			((int32_t *)p)[o] = (int32_t)v;
			break;
		case CUDNN_DATA_BOOLEAN:
			((uint8_t *)p)[o] = v != 0;
			break;
		case CUDNN_DATA_HALF:
			((uint16_t *)p)[o] = gt_f16_from_f32((float)v);
			break;
		default:
			((uint16_t *)p)[o] = gt_bf16_from_f32((float)v);
		}
	}
};

static double compute(const dnn_op &op, float x, float b, float t, const int64_t (&i)[4])
{
	switch (op.mode) {
	case CUDNN_POINTWISE_ADD:
		return x + b;
	case CUDNN_POINTWISE_SUB:
		return x - b;
	case CUDNN_POINTWISE_MUL:
		return x * b;
	case CUDNN_POINTWISE_DIV:
		return x / b;
	case CUDNN_POINTWISE_EXP:
		return expf(x);
	case CUDNN_POINTWISE_LOG:
		return logf(x);
	case CUDNN_POINTWISE_CMP_GE:
		return x >= b;
	case CUDNN_POINTWISE_CMP_LT:
		return x < b;
	case CUDNN_POINTWISE_LOGICAL_AND:
		return x != 0 && b != 0;
	case CUDNN_POINTWISE_GEN_INDEX:
		return (double)i[op.axis];
	case CUDNN_POINTWISE_BINARY_SELECT:
		return t != 0 ? x : b;
	default:
		return x;
	}
}

/* The product of one head of a sample. What the limits exclude is 0 in a result in memory and NaN in registers, where nothing may depend on
 * it. */
GT_CLONES static void multiply_head(const dnn_op &op, const view &x, const view &w, const view &y, int64_t s, int64_t h,
                                    const int64_t (&limit)[3])
{
	int64_t rows = y.t.dim[2], cols = y.t.dim[3], depth = x.t.dim[3];
	std::vector<float> b((size_t)(depth * cols));
	std::vector<double> sum((size_t)cols);
	for (int64_t k = 0; k < depth; k++)
		for (int64_t n = 0; n < cols; n++)
			b[(size_t)(k * cols + n)] = w.load({s, h, k, n});
	for (int64_t m = 0; m < rows; m++) {
		sum.assign((size_t)cols, 0);
		for (int64_t k = 0; k < depth && k < limit[2] && m < limit[0]; k++)
			add_scaled(sum.data(), x.load({s, h, m, k}), &b[(size_t)(k * cols)], cols);
		for (int64_t n = 0; n < cols; n++)
			y.store({s, h, m, n}, op.y.is_virtual && (m >= limit[0] || n >= limit[1]) ? NAN : sum[(size_t)n]);
	}
}

void dnn_run_attention_op(const dnn_op &op, const std::map<int64_t, void *> &memory)
{
	const int64_t *d = op.y.dim;
	view x = {op.x, memory.at(op.x.uid)}, y = {op.y, memory.at(op.y.uid)}, w = {op.w, op.has_w ? memory.at(op.w.uid) : nullptr},
	     t = {op.t, op.has_t ? memory.at(op.t.uid) : nullptr};
	for (int64_t s = 0; s < d[0]; s++)
		for (int64_t h = 0; h < d[1]; h++) {
			if (op.kind == KIND(OPERATION_MATMUL)) {
				int64_t limit[3] = {d[2], d[3], op.x.dim[3]};
				for (int i = 0; i < 3; i++)
					if (op.has_limit[i])
						limit[i] = ((const int32_t *)memory.at(op.limit[i].uid))[s * op.limit[i].stride[0]];
				multiply_head(op, x, w, y, s, h, limit);
				continue;
			}
			for (int64_t i = 0; i < d[2]; i++)
				for (int64_t j = 0; j < d[3]; j++) {
					const int64_t at[4] = {s, h, i, j};
					double v = op.mode == CUDNN_REDUCE_TENSOR_MAX ? -INFINITY : 0;
					if (op.kind == KIND(OPERATION_POINTWISE))
						v = compute(op, x.load(at), op.has_w ? w.load(at) : 0, op.has_t ? t.load(at) : 0, at);
					else if (op.kind == KIND(OPERATION_RESHAPE))
						v = x.load({s, h, j, i});
					else
						for (int64_t k = 0; k < op.x.dim[3]; k++) {
							float e = x.load({s, h, i, k});
							v = op.mode == CUDNN_REDUCE_TENSOR_MAX ? (e > v ? e : v) : v + e;
						}
					y.store(at, v);
				}
		}
}
