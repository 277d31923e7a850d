/* cross_entropy, nll and mse: they add to struct gt_metrics and, in training, write the gradient of the mean. Rows run in parallel and
 * store loss and rank in the scratch memory. One thread adds them in order, so that the sum does not depend on the number of threads. */
#include "cpu/lanes.h"
#include <stdlib.h>

struct args {
	const void *x;
	const int32_t *target;
	void *dx; /* gradient; NULL: evaluation */
	int64_t cols, ignore;
	double smoothing, inv_weight;
	double *loss;  /* the loss of each row, in the scratch memory */
	int32_t *rank; /* the rank of each row's target, in the scratch memory; -1: the row does not count */
};

#define GT_TYPED "cpu/loss.inc"
#include "cpu/typed.inc"

#define ROW(op)                                                                                                                            \
	{                                                                                                                                      \
		op##_f32, op##_bf16, op##_f64                                                                                                      \
	}
static gt_range_fn *const table[][GT_T_COUNT] = {ROW(cross_entropy), ROW(nll), ROW(mse)};

struct loss {
	struct gt_kernel head;
	gt_range_fn *fn;
	int64_t rows, cols, ignore;
	double smoothing;
	bool may_ignore;
	bool gradient;
	bool scaled;
};

static enum gt_code launch(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	const struct loss *k = (const struct loss *)kernel;
	struct gt_metrics *m = a->out[0];
	const int32_t *target = a->in[1];
	struct args c = {
	    .x = a->in[0],
	    .target = target,
	    .dx = k->gradient ? a->out[1] : NULL,
	    .cols = k->cols,
	    .ignore = k->ignore,
	    .smoothing = k->smoothing,
	    .inv_weight = a->step_args->inv_weight * (k->scaled ? *(const double *)a->in[2] : 1),
	    .loss = a->scratch,
	    .rank = (int32_t *)((double *)a->scratch + k->rows),
	};
	/* Labels are checked when a dataset is opened, but not against the number of this model's outputs. */
	for (int64_t r = 0; r < k->rows; r++)
		if ((target[r] < 0 || target[r] >= k->cols) && !(k->may_ignore && target[r] == k->ignore))
			return gt_fail(err, GT_EDATA, "label %d of sample %lld in its batch: the model has classes 0..%lld", (int)target[r],
			               (long long)r, (long long)k->cols - 1);
	gt_cpu_for(dev, k->rows, 8192 / k->cols + 1, 1, k->fn, &c);
	double sum = 0;
	int64_t count = 0, correct = 0, top5 = 0;
	for (int64_t r = 0; r < k->rows; r++) {
		if (c.rank[r] < 0)
			continue;
		sum += c.loss[r];
		count++;
		correct += c.rank[r] == 0;
		top5 += c.rank[r] < 5;
	}
	m->loss += sum;
	m->weight += (double)count;
	m->count += count;
	m->correct += correct;
	m->top5 += top5;
	return GT_OK;
}

enum gt_code gt_cpu_loss(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_attr_loss *attr = call->attr;
	const struct gt_tdesc *x = call->in[0];
	int type = gt_cpu_type(x->dtype), which = (int)call->code - (int)GT_OP_CROSS_ENTROPY;
	struct loss *k;
	(void)dev;
	_Static_assert(GT_OP_MSE == GT_OP_CROSS_ENTROPY + 2, "the rows of the table follow the operation codes");
	GT_KERNEL_NEW(k, launch, "loop", err);
	k->head.scratch = (size_t)x->dim[0] * (sizeof(double) + sizeof(int32_t));
	k->fn = table[which][type];
	k->rows = x->dim[0];
	k->cols = x->dim[1];
	k->smoothing = attr && call->code == GT_OP_CROSS_ENTROPY ? attr->label_smoothing : 0;
	k->may_ignore = attr && call->code != GT_OP_MSE;
	k->ignore = k->may_ignore ? attr->ignore_index : INT64_MIN;
	k->gradient = call->nout > 1 && call->out[1];
	k->scaled = call->nin > 2 && call->in[2];
	k->head.small = gt_cpu_alone(k->rows, 8192 / k->cols + 1);
	*out = &k->head;
	return GT_OK;
}
