/* Element-wise operations, cast and dropout. The kernels walk through tensors in memory order, so all operands must have the same
 * layout. */
#include "cuda/cuda_internal.h"
#include "ew.h"
#include <stdlib.h>

static bool is_aligned16(const void *p)
{
	return (uintptr_t)p % 16 == 0;
}

/* ---- activations, add, mul, cast --------------------------------------------------------------------------------------------- */
/* How many numbers of gt_attr_act an activation takes. */
static const int numbers_of[GT_OP_COUNT] = {
#define GT_X(arg, CODE, name, saved, numbers, ...) [GT_OP_##CODE] = numbers, [GT_OP_##CODE##_DX] = numbers,
    GT_ACTIVATIONS(GT_X)
#undef GT_X
};

struct eltwise {
	struct gt_kernel head;
	enum gt_opcode code;
	bool gelu_tanh;
	int type, to; /* type: dtype of the inputs (GT_CU_F32, ...); to: dtype of the output of a cast */
	int64_t n;
	size_t bytes;
	int nin;
	float number[2];
};

static enum gt_code launch_eltwise(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, cudaStream_t s,
                                   struct gt_err *err)
{
	const struct eltwise *k = (const struct eltwise *)kernel;
	struct gt_cu_eltwise c = {
	    .out = a->out[0], .n = k->n, .nin = k->nin, .number = {k->number[0], k->number[1]}, .aligned = is_aligned16(a->out[0])};
	for (int i = 0; i < k->nin; i++) {
		c.in[i] = a->in[i];
		c.aligned = c.aligned && is_aligned16(a->in[i]);
	}
	GT_CUDA(dev, gt_cu_eltwise_start(k->code, k->gelu_tanh, k->type, &c, s), gt_opcode_name(k->code), err);
	return GT_OK;
}

static enum gt_code launch_cast(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, cudaStream_t s, struct gt_err *err)
{
	const struct eltwise *k = (const struct eltwise *)kernel;
	if (k->type != k->to)
		GT_CUDA(dev, gt_cu_cast_start(k->type, k->to, a->in[0], a->out[0], k->n, s), "cast", err);
	else if (a->in[0] != a->out[0])
		GT_CUDA(dev, cudaMemcpyAsync(a->out[0], a->in[0], k->bytes, cudaMemcpyDeviceToDevice, s), "cast", err);
	return GT_OK;
}

enum gt_code gt_cuda_eltwise(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_tdesc *x = call->in[0];
	struct gt_tdesc *y = call->out[0];
	int type = gt_cuda_type(x->dtype), to = gt_cuda_type(y->dtype);
	bool cast = call->code == GT_OP_CAST;
	struct eltwise *k;
	(void)dev;
	if (type < 0 || to < 0)
		return gt_cuda_refuse(call, err, "this type is not supported");
	if (y->any)
		y->layout = x->layout, y->any = false;
	struct gt_tdesc like = *y;
	like.dtype = x->dtype;
	if (!gt_tdesc_equal(x, &like)) /* only a cast can fail here, because the other operations have the standard layout */
		return gt_cuda_refuse(call, err, "input and output must have the same layout");
	GT_CUDA_NEW(k, cast ? launch_cast : launch_eltwise, cast ? "cast" : "eltwise", err);
	k->code = call->code;
	k->gelu_tanh = (call->code == GT_OP_GELU || call->code == GT_OP_GELU_DX) && ((const struct gt_attr_gelu *)call->attr)->approximate;
	k->type = type;
	k->to = to;
	k->n = gt_tdesc_padded(x);
	k->bytes = gt_tdesc_bytes(x);
	k->nin = call->nin;
	for (int i = 0; i < numbers_of[call->code]; i++)
		k->number[i] = (float)((const struct gt_attr_act *)call->attr)->number[i];
	if (call->code == GT_OP_SCALE)
		k->number[0] = (float)((const struct gt_attr_scale *)call->attr)->factor;
	*out = &k->head;
	return GT_OK;
}

/* ---- dropout ------------------------------------------------------------------------------------------------------------------- */
struct dropout {
	struct gt_kernel head;
	int type;
	int64_t samples, n, cols;
	size_t bytes;
	uint32_t layer, threshold;
	float scale;
	bool train;
};

static enum gt_code launch_dropout(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, cudaStream_t s,
                                   struct gt_err *err)
{
	const struct dropout *k = (const struct dropout *)kernel;
	struct gt_cu_dropout c = {
	    .x = a->in[0],
	    .y = a->out[0],
	    .samples = k->samples,
	    .n = k->n,
	    .cols = k->cols,
	    .layer = k->layer,
	    .threshold = k->threshold,
	    .scale = k->scale,
	    .aligned = is_aligned16(a->in[0]) && is_aligned16(a->out[0]),
	};
	if (!k->train) {
		if (a->out[0] != a->in[0])
			GT_CUDA(dev, cudaMemcpyAsync(a->out[0], a->in[0], k->bytes, cudaMemcpyDeviceToDevice, s), "dropout", err);
		return GT_OK;
	}
	GT_TRY(gt_cuda_step_args(dev, a, &c.step_args, err));
	GT_CUDA(dev, gt_cu_dropout_start(k->type, &c, s), "dropout", err);
	return GT_OK;
}

enum gt_code gt_cuda_dropout(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_attr_dropout *attr = call->attr;
	const struct gt_tdesc *x = call->in[0];
	int type = gt_cuda_type(x->dtype);
	int64_t n = gt_tdesc_count(x) / (x->rank && x->dim[0] ? x->dim[0] : 1);
	struct dropout *k;
	(void)dev;
	if (n < 1 || n / 4 > UINT32_MAX)
		return gt_cuda_refuse(call, err, "a sample is too big");
	GT_CUDA_NEW(k, launch_dropout, "philox", err);
	k->type = type;
	k->samples = x->dim[0];
	k->n = n;
	k->cols = attr->unit == GT_DROP_CHANNELS ? x->dim[1] : attr->unit == GT_DROP_SAMPLES ? 1 : 0;
	k->bytes = gt_tdesc_bytes(x);
	k->layer = attr->layer;
	k->threshold = gt_dropout_threshold(attr->p);
	k->scale = (float)gt_dropout_scale(attr->p);
	k->train = attr->train;
	*out = &k->head;
	return GT_OK;
}
