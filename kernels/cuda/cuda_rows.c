/* The losses. */
#include "cuda/cuda_internal.h"
#include "losses.h"
#include <stdlib.h>

struct loss {
	struct gt_kernel head;
	enum gt_opcode code;
	int type;
	int64_t rows, cols, ignore;
	double number[GT_LOSS_NUMBERS];
	bool gradient, scaled, dense, by_class;
	void *weights; /* device memory, f32 [cols]; NULL: none */
};

static void release_loss(struct gt_dev *dev, struct gt_kernel *kernel)
{
	gt_cuda_free(dev, ((struct loss *)kernel)->weights);
	free(kernel);
}

static enum gt_code launch_loss(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, cudaStream_t s, struct gt_err *err)
{
	const struct loss *k = (const struct loss *)kernel;
	struct gt_cu_loss c = {
	    .x = a->in[0],
	    .target = k->dense ? NULL : a->in[1],
	    .dense = k->dense ? a->in[1] : NULL,
	    .weights = k->weights,
	    .by_class = k->by_class,
	    .scale = k->scaled ? a->in[2] : NULL,
	    .dx = k->gradient ? a->out[1] : NULL,
	    .metrics = a->out[0],
	    .loss = a->scratch,
	    .counter = kernel->counter,
	    .rank = (int32_t *)((double *)a->scratch + k->rows),
	    .rows = k->rows,
	    .cols = k->cols,
	    .ignore = k->ignore,
	    .number = {k->number[0], k->number[1]},
	    .fault = dev->fault,
	};
	GT_TRY(gt_cuda_step_args(dev, a, &c.step_args, err));
	GT_CUDA(dev, gt_cu_loss_start(k->code, k->type, &c, s), gt_opcode_name(k->code), err);
	return GT_OK;
}

/* Copies the weights to the device as f32. */
static enum gt_code upload_weights(struct gt_dev *dev, const struct gt_attr_loss *attr, struct loss *k, struct gt_err *err)
{
	if (!attr || !attr->nweights)
		return GT_OK;
	size_t bytes = (size_t)attr->nweights * sizeof(float);
	float *w = malloc(bytes);
	if (!w)
		return gt_fail(err, GT_EFAIL, "out of memory");
	for (int64_t i = 0; i < attr->nweights; i++)
		w[i] = (float)attr->weights[i];
	enum gt_code code = gt_cuda_upload(dev, w, bytes, &k->weights, err);
	free(w);
	return code;
}

enum gt_code gt_cuda_loss(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_attr_loss *attr = call->attr;
	const struct gt_tdesc *x = call->in[0];
	const struct gt_loss_row *row = gt_loss_row(call->code);
	bool dense;
	const char *refused = gt_loss_check(call, &dense);
	struct loss *k;
	if (refused)
		return gt_cuda_refuse(call, err, refused);
	GT_CUDA_NEW(k, launch_loss, "rows", err);
	k->head.release = release_loss;
	k->head.scratch = (size_t)x->dim[0] * (sizeof(double) + sizeof(int32_t));
	k->code = call->code;
	k->type = gt_cuda_type(x->dtype);
	k->rows = x->dim[0];
	k->cols = x->dim[1];
	for (int i = 0; attr && i < row->numbers; i++)
		k->number[i] = attr->number[i];
	k->ignore = attr && gt_loss_has_classes(row) ? attr->ignore_index : INT64_MIN;
	k->gradient = call->nout > 1 && call->out[1];
	k->scaled = call->nin > 2 && call->in[2];
	k->dense = dense;
	k->by_class = attr && attr->nweights && row->weight == GT_WEIGHT_BY_CLASS;
	enum gt_code code = upload_weights(dev, attr, k, err);
	if (code == GT_OK)
		code = gt_cuda_counters(dev, &k->head, 1, err);
	if (code == GT_OK)
		*out = &k->head;
	else
		release_loss(dev, &k->head);
	return code;
}
