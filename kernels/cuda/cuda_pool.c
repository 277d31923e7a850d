/* Pooling, plain and adaptive, of maxima and means. */
#include "cuda/cuda_internal.h"
#include <stdlib.h>

struct pool {
	struct gt_kernel head;
	struct gt_cu_pool c; /* arguments of the kernel; the launch fills in the pointers */
	int type;
	bool max, back, idx; /* idx: the call has indices */
};

static enum gt_code launch_pool(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, cudaStream_t s, struct gt_err *err)
{
	const struct pool *k = (const struct pool *)kernel;
	struct gt_cu_pool c = k->c;
	c.in = a->in[0];
	c.out = a->out[0];
	c.idx = !k->idx ? NULL : k->back ? a->in[1] : a->out[1];
	GT_CUDA(dev, gt_cu_pool_start(k->type, k->max, k->back, &c, s), k->back ? "pool.dx" : "pool", err);
	return GT_OK;
}

/* Returns the attributes with the pooling windows of a call, or NULL if pooling is adaptive. The gradient of adaptive_maxpool2d has
 * attributes without windows (kernel 0, 0); its windows follow from the shapes. */
static const struct gt_attr_pool2d *windows(const struct gt_opcall *call)
{
	const struct gt_attr_pool2d *attr = call->attr;
	switch (call->code) {
	case GT_OP_MAXPOOL2D:
	case GT_OP_AVGPOOL2D:
	case GT_OP_AVGPOOL2D_DX:
		return attr;
	case GT_OP_MAXPOOL2D_DX:
		return attr->kernel[0] ? attr : NULL;
	default:
		return NULL;
	}
}

/* Returns true if, in direction d, every pooling window overlaps the image and 32-bit arithmetic can hold all indices. */
static bool direction(const struct gt_attr_pool2d *attr, int d, int64_t in, int64_t out)
{
	if (in < 1 || out < 1 || (in + 1) * (out + 1) > INT32_MAX)
		return false;
	if (!attr)
		return true;
	int64_t k = attr->kernel[d], s = attr->stride[d], p = attr->padding[d];
	return k > 0 && s > 0 && p >= 0 && p < k && k + p + in + s < INT32_MAX / 2 && out * s < INT32_MAX / 2 && (out - 1) * s - p < in;
}

enum gt_code gt_cuda_pool(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	bool max = call->code == GT_OP_MAXPOOL2D || call->code == GT_OP_ADAPTIVE_MAXPOOL2D || call->code == GT_OP_MAXPOOL2D_DX;
	bool back = call->code == GT_OP_MAXPOOL2D_DX || call->code == GT_OP_AVGPOOL2D_DX || call->code == GT_OP_ADAPTIVE_AVGPOOL2D_DX;
	const struct gt_tdesc *x = back ? call->out[0] : call->in[0], *y = back ? call->in[0] : call->out[0];
	const struct gt_attr_pool2d *attr = windows(call);
	struct pool *k;
	(void)dev;
	if (!direction(attr, 0, x->dim[2], y->dim[2]) || !direction(attr, 1, x->dim[3], y->dim[3]))
		return gt_cuda_refuse(call, err, "a window has no pixel of the image, or the image is too big");
	int64_t rows = x->dim[0] * (x->dim[2] > y->dim[2] ? x->dim[2] : y->dim[2]), width = x->dim[3] > y->dim[3] ? x->dim[3] : y->dim[3];
	if (rows > UINT32_MAX || width * x->dim[1] > INT32_MAX || x->dim[2] * x->dim[3] > INT32_MAX)
		return gt_cuda_refuse(call, err, "the images are too big");
	const struct gt_tdesc *idx = !max ? NULL : back ? call->in[1] : call->nout > 1 ? call->out[1] : NULL;
	GT_CUDA_NEW(k, launch_pool, max ? (back ? "gather:max" : "max") : (back ? "gather:mean" : "mean"), err);
	k->type = gt_cuda_type(x->dtype);
	k->max = max;
	k->back = back;
	k->idx = idx != NULL;
	k->c.bytes = idx && idx->dtype == GT_U8;
	k->c.n = x->dim[0], k->c.c = x->dim[1];
	k->c.h = (int32_t)x->dim[2], k->c.w = (int32_t)x->dim[3];
	k->c.oh = (int32_t)y->dim[2], k->c.ow = (int32_t)y->dim[3];
	k->c.adaptive = !attr;
	for (int d = 0; attr && d < 2; d++) {
		k->c.kernel[d] = (int32_t)attr->kernel[d];
		k->c.stride[d] = (int32_t)attr->stride[d];
		k->c.padding[d] = (int32_t)attr->padding[d];
	}
	k->c.include_pad = attr && attr->count_include_pad && !max;
	*out = &k->head;
	return GT_OK;
}
