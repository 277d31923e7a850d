/* The losses. */
#include "cuda/cuda_internal.h"
#include <stdlib.h>

struct loss {
	struct gt_kernel head;
	enum gt_opcode code;
	int type;
	int64_t rows, cols, ignore;
	double smoothing;
	bool gradient, scaled;
};

static enum gt_code launch_loss(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, cudaStream_t s, struct gt_err *err)
{
	const struct loss *k = (const struct loss *)kernel;
	struct gt_cu_loss c = {
	    .x = a->in[0],
	    .target = a->in[1],
	    .scale = k->scaled ? a->in[2] : NULL,
	    .dx = k->gradient ? a->out[1] : NULL,
	    .metrics = a->out[0],
	    .loss = a->scratch,
	    .counter = kernel->counter,
	    .rank = (int32_t *)((double *)a->scratch + k->rows),
	    .rows = k->rows,
	    .cols = k->cols,
	    .ignore = k->ignore,
	    .smoothing = k->smoothing,
	    .fault = dev->fault,
	};
	GT_TRY(gt_cuda_step_args(dev, a, &c.step_args, err));
	GT_CUDA(dev, gt_cu_loss_start(k->code, k->type, &c, s), gt_opcode_name(k->code), err);
	return GT_OK;
}

enum gt_code gt_cuda_loss(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_attr_loss *attr = call->attr;
	const struct gt_tdesc *x = call->in[0];
	bool may_ignore = attr && call->code != GT_OP_MSE;
	struct loss *k;
	GT_CUDA_NEW(k, launch_loss, "rows", err);
	k->head.scratch = (size_t)x->dim[0] * (sizeof(double) + sizeof(int32_t));
	k->code = call->code;
	k->type = gt_cuda_type(x->dtype);
	k->rows = x->dim[0];
	k->cols = x->dim[1];
	k->smoothing = attr && call->code == GT_OP_CROSS_ENTROPY ? attr->label_smoothing : 0;
	k->ignore = may_ignore ? attr->ignore_index : INT64_MIN;
	k->gradient = call->nout > 1 && call->out[1];
	k->scaled = call->nin > 2 && call->in[2];
	enum gt_code code = gt_cuda_counters(dev, &k->head, 1, err);
	if (code == GT_OK)
		*out = &k->head;
	else
		free(k);
	return code;
}
