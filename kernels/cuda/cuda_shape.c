/* Data movement: flatten (between NHWC and PyTorch's element order) and concatenation along dimension 1. */
#include "cuda/cuda_internal.h"
#include <stdlib.h>

/* ---- flatten ------------------------------------------------------------------------------------------------------------------- */
struct flatten {
	struct gt_kernel head;
	int64_t n, rows, cols; /* number of matrices to transpose, and the size of each */
	size_t size;           /* bytes of an element; 0: the orders of input and output are the same, so the data are copied */
	size_t bytes;
};

static enum gt_code launch_flatten(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, cudaStream_t s,
                                   struct gt_err *err)
{
	const struct flatten *k = (const struct flatten *)kernel;
	if (k->size)
		GT_CUDA(dev, gt_cu_transpose_start(k->size, a->in[0], a->out[0], k->n, k->rows, k->cols, s), "flatten", err);
	else if (a->in[0] != a->out[0])
		GT_CUDA(dev, cudaMemcpyAsync(a->out[0], a->in[0], k->bytes, cudaMemcpyDeviceToDevice, s), "flatten", err);
	return GT_OK;
}

static enum gt_code prepare_flatten(const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	bool back = call->code == GT_OP_FLATTEN_DX;
	const struct gt_tdesc *x = back ? call->out[0] : call->in[0], *y = back ? call->in[0] : call->out[0];
	int64_t pixels = 1;
	struct flatten *k;
	for (int i = 2; i < x->rank; i++)
		pixels *= x->dim[i];
	if (gt_tdesc_count(x) != gt_tdesc_count(y))
		return gt_cuda_refuse(call, err, "the output has another number of elements");
	GT_CUDA_NEW(k, launch_flatten, "transpose", err);
	k->n = x->dim[0];
	k->rows = back ? x->dim[1] : pixels;
	k->cols = back ? pixels : x->dim[1];
	k->bytes = gt_tdesc_bytes(x);
	k->size = k->rows == 1 || k->cols == 1 || x->rank != 4 ? 0 : gt_dtype_size(x->dtype);
	*out = &k->head;
	return GT_OK;
}

/* ---- concat -------------------------------------------------------------------------------------------------------------------- */
struct concat {
	struct gt_kernel head;
	struct gt_cu_concat c; /* arguments of the kernel; starts are in elements, the launch fills in the pointers */
	size_t size;
};

static enum gt_code launch_concat(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, cudaStream_t s,
                                  struct gt_err *err)
{
	const struct concat *k = (const struct concat *)kernel;
	struct gt_cu_concat c = k->c;
	uintptr_t at;
	size_t unit;
	c.whole = c.join ? a->out[0] : a->in[0];
	at = (uintptr_t)c.whole;
	for (int i = 0; i < c.nparts; i++) {
		c.part[i] = c.join ? a->in[i] : a->out[i];
		at |= (uintptr_t)c.part[i] | (uintptr_t)c.start[i + 1] * k->size;
	}
	unit = at % 16 == 0 ? 16 : at % 4 == 0 ? 4 : 2;
	for (int i = 0; i <= c.nparts; i++)
		c.start[i] = c.start[i] * (int64_t)k->size / (int64_t)unit;
	GT_CUDA(dev, gt_cu_concat_start(unit, &c, s), "concat", err);
	return GT_OK;
}

static enum gt_code prepare_concat(const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	bool back = call->code == GT_OP_CONCAT_DX;
	const struct gt_tdesc *y = back ? call->in[0] : call->out[0];
	struct gt_tdesc *const *part = back ? call->out : call->in;
	int n = back ? call->nout : call->nin, unknown = -1;
	int64_t width[GT_MAX_IO] = {0}, sum = 0, token = y->rank == 3 ? y->dim[2] : 1, rows = gt_tdesc_count(y) / (y->dim[1] * token);
	struct concat *k;
	for (int i = 0; i < n; i++) {
		if (!part[i]) {
			if (unknown >= 0)
				return gt_cuda_refuse(call, err, "at most one part may be absent");
			unknown = i;
			continue;
		}
		width[i] = part[i]->dim[1];
		sum += width[i];
	}
	if (unknown >= 0 && back && sum < y->dim[1])
		width[unknown] = y->dim[1] - sum;
	else if (unknown >= 0 || sum != y->dim[1])
		return gt_cuda_refuse(call, err, "the widths of the parts do not add up to that of the whole");
	GT_CUDA_NEW(k, launch_concat, "copy", err);
	k->size = gt_dtype_size(y->dtype);
	k->c = (struct gt_cu_concat){.rows = rows, .nparts = n, .join = !back};
	for (int i = 0; i < n; i++)
		k->c.start[i + 1] = k->c.start[i] + width[i] * token;
	*out = &k->head;
	return GT_OK;
}

enum gt_code gt_cuda_shape(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	(void)dev;
	return call->code == GT_OP_CONCAT || call->code == GT_OP_CONCAT_DX ? prepare_concat(call, out, err) : prepare_flatten(call, out, err);
}
