/* The fused operations linear+loss and linear.dx+dw (head.cu) for layers with few outputs; their limits are in offers.c. */
#include "cuda/cuda_internal.h"
#include <stdlib.h>

struct head {
	struct gt_kernel head;
	struct gt_cu_head c; /* arguments of the kernel; the launch fills in the pointers */
	enum gt_opcode code;
	int type;
	bool bias, scaled, gradient;
};

static enum gt_code launch_head(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, cudaStream_t s, struct gt_err *err)
{
	const struct head *k = (const struct head *)kernel;
	struct gt_cu_head c = k->c;
	c.x = a->in[0];
	c.w = a->in[1];
	c.bias = k->bias ? a->in[2] : NULL;
	c.y = a->out[0];
	c.loss.x = a->out[0];
	c.loss.target = a->in[3];
	c.loss.scale = k->scaled ? a->in[4] : NULL;
	c.loss.metrics = a->out[1];
	c.loss.dx = k->gradient ? a->out[2] : NULL;
	c.loss.loss = a->scratch;
	c.loss.rank = (int32_t *)((double *)a->scratch + c.loss.rows);
	c.loss.counter = kernel->counter;
	c.loss.fault = dev->fault;
	GT_TRY(gt_cuda_step_args(dev, a, &c.loss.step_args, err));
	GT_CUDA(dev, gt_cu_head_start(k->code, k->type, &c, s), "linear+loss", err);
	return GT_OK;
}

static void settle(struct gt_tdesc *d)
{
	if (d && d->any)
		*d = gt_tdesc_make(d->dtype, d->rank, d->dim, false);
}

enum gt_code gt_cuda_head(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_attr_linear_loss *attr = call->attr;
	const struct gt_tdesc *x = call->in[0];
	int64_t n = x->dim[0], in = x->dim[1], cols = attr->linear.out;
	struct head *k;
	settle(call->in[1]);
	if (!gt_tdesc_plain(call->in[1]))
		return gt_cuda_refuse(call, err, "its weights are plain");
	GT_CUDA_NEW(k, launch_head, "rows", err);
	k->code = attr->code;
	k->type = gt_cuda_type(x->dtype);
	k->bias = call->in[2] != NULL;
	k->scaled = call->nin > 4 && call->in[4];
	k->gradient = call->nout > 2 && call->out[2];
	k->c.in = in;
	k->c.loss.rows = n, k->c.loss.cols = cols;
	k->c.loss.number[0] = attr->code == GT_OP_CROSS_ENTROPY ? attr->loss.number[0] : 0;
	k->c.loss.ignore = attr->code == GT_OP_MSE ? INT64_MIN : attr->loss.ignore_index;
	k->head.scratch = (size_t)n * (sizeof(double) + sizeof(int32_t));
	enum gt_code code = gt_cuda_counters(dev, &k->head, 1, err);
	if (code == GT_OK)
		*out = &k->head;
	else
		free(k);
	return code;
}

/* ---- gradients --------------------------------------------------------------------------------------------------------------------- */
struct back {
	struct gt_kernel head;
	struct gt_cu_head_back c; /* arguments of the kernel; the launch fills in the pointers */
	int type;
	bool mask, bias;
};

static enum gt_code launch_back(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, cudaStream_t s, struct gt_err *err)
{
	const struct back *k = (const struct back *)kernel;
	struct gt_cu_head_back c = k->c;
	c.dy = a->in[0];
	c.x = a->in[1];
	c.w = a->in[2];
	c.mask = k->mask ? a->in[3] : NULL;
	c.dx = a->out[0];
	c.dw = a->out[1];
	c.db = k->bias ? a->out[2] : NULL;
	GT_CUDA(dev, gt_cu_head_back_start(k->type, &c, s), "linear.dx+dw", err);
	return GT_OK;
}

enum gt_code gt_cuda_head_back(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_tdesc *x = call->in[1];
	int64_t n = x->dim[0], in = x->dim[1], cols = call->in[0]->dim[1];
	struct back *k;
	(void)dev;
	settle(call->in[2]);
	settle(call->out[1]);
	if (!gt_tdesc_plain(call->in[2]) || !gt_tdesc_plain(call->out[1]))
		return gt_cuda_refuse(call, err, "weights and their gradients are plain");
	GT_CUDA_NEW(k, launch_back, "columns", err);
	k->type = gt_cuda_type(x->dtype);
	k->mask = call->nin > 3 && call->in[3];
	k->bias = call->nout > 2 && call->out[2];
	k->c.rows = n, k->c.in = in, k->c.cols = cols;
	k->c.add_dw = call->accumulate & 2;
	k->c.add_db = call->accumulate & 4;
	*out = &k->head;
	return GT_OK;
}
