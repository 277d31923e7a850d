/* Losses: they add to struct gt_metrics and, in training, write the gradient of the mean. Rows run in parallel and store loss and rank in
 * the scratch memory. One thread adds them in order, so that the sum does not depend on the number of threads. */
#include "cpu/lanes.h"
#include "losses.h"
#include <stdlib.h>
#include <string.h>

#define NO_CLASS INT32_MAX /* rank of a row whose target has no class: it has a loss, but counts for no accuracy */

struct args {
	const void *x;
	const int32_t *target; /* label of each row; not used if dense is given */
	const float *dense;    /* target of each output, [rows, cols]; NULL: labels */
	const double *weights; /* gt_attr_loss.weights */
	void *dx; /* gradient; NULL: evaluation */
	int64_t cols, ignore;
	const double *number; /* gt_attr_loss.number */
	double inv_weight;
	double *loss;  /* the loss of each row, in the scratch memory */
	int32_t *rank; /* the rank of each row's target, in the scratch memory; -1: the row does not count */
};

#define GT_TYPED "cpu/loss.inc"
#include "cpu/typed.inc"

#define ROW(op)                                                                                                                            \
	{                                                                                                                                      \
		op##_f32, op##_bf16, op##_f64                                                                                                      \
	}
static gt_range_fn *const loops[GT_OP_COUNT][GT_T_COUNT] = {
	[GT_OP_CROSS_ENTROPY] = ROW(cross_entropy),
	[GT_OP_NLL] = ROW(nll),
#define GT_X(CODE, name, ...) [GT_OP_##CODE] = ROW(name##_rows),
	GT_LOSS_POINTWISE(GT_X)
#undef GT_X
};
/* Loops for some calls of cross_entropy and mse. */
static gt_range_fn *const shares[GT_T_COUNT] = ROW(cross_entropy_shares), *const mse_labels[GT_T_COUNT] = ROW(mse_labels);

struct loss {
	struct gt_kernel head;
	gt_range_fn *fn;
	int64_t rows, cols, ignore;
	double number[GT_LOSS_NUMBERS];
	bool may_ignore, dense, by_class; /* by_class: the weights are those of the classes */
	bool gradient;
	bool scaled;
	int64_t nweights;
	double weights[]; /* [nweights] */
};

static enum gt_code launch_loss(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	const struct loss *k = (const struct loss *)kernel;
	struct gt_metrics *m = a->out[0];
	const int32_t *target = k->dense ? NULL : a->in[1];
	struct args c = {
	    .x = a->in[0],
	    .target = target,
	    .dense = k->dense ? a->in[1] : NULL,
	    .weights = k->nweights ? k->weights : NULL,
	    .number = k->number,
	    .dx = k->gradient ? a->out[1] : NULL,
	    .cols = k->cols,
	    .ignore = k->ignore,
	    .inv_weight = a->step_args->inv_weight * (k->scaled ? *(const double *)a->in[2] : 1),
	    .loss = a->scratch,
	    .rank = (int32_t *)((double *)a->scratch + k->rows),
	};
	/* Labels are checked when a dataset is opened, but not against the number of this model's outputs. */
	for (int64_t r = 0; target && r < k->rows; r++)
		if ((target[r] < 0 || target[r] >= k->cols) && !(k->may_ignore && target[r] == k->ignore))
			return gt_fail(err, GT_EDATA, "label %d of sample %lld in its batch: the model has classes 0..%lld", (int)target[r],
			               (long long)r, (long long)k->cols - 1);
	gt_cpu_for(dev, k->rows, 8192 / k->cols + 1, 1, k->fn, &c);
	double sum = 0, weight = 0;
	int64_t count = 0, correct = 0, top5 = 0;
	for (int64_t r = 0; r < k->rows; r++) {
		if (c.rank[r] < 0)
			continue;
		sum += c.loss[r];
		weight += k->by_class && target ? k->weights[target[r]] : 1;
		count += c.rank[r] != NO_CLASS;
		correct += c.rank[r] == 0;
		top5 += c.rank[r] < 5;
	}
	m->loss += sum;
	m->weight += weight;
	m->count += count;
	m->correct += correct;
	m->top5 += top5;
	return GT_OK;
}

enum gt_code gt_cpu_loss(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_attr_loss *attr = call->attr;
	const struct gt_tdesc *x = call->in[0];
	const struct gt_loss_row *row = gt_loss_row(call->code);
	int type = gt_cpu_type(x->dtype);
	int64_t nweights = attr ? attr->nweights : 0;
	bool dense;
	const char *refused = gt_loss_check(call, &dense);
	struct loss *k;
	(void)dev;
	if (refused)
		return gt_cpu_refuse(call, err, refused);
	if (!(k = calloc(1, sizeof *k + (size_t)nweights * sizeof *k->weights)))
		return gt_fail(err, GT_EFAIL, "out of memory");
	k->head.launch = launch_loss;
	k->head.describe = "loop";
	k->head.scratch = (size_t)x->dim[0] * (sizeof(double) + sizeof(int32_t));
	k->dense = dense;
	k->by_class = nweights && row->weight == GT_WEIGHT_BY_CLASS;
	k->nweights = nweights;
	if (nweights)
		memcpy(k->weights, attr->weights, (size_t)nweights * sizeof *k->weights);
	for (int i = 0; attr && i < row->numbers; i++)
		k->number[i] = attr->number[i];
	k->fn = call->code == GT_OP_CROSS_ENTROPY && (dense || nweights) ? shares[type]
	        : call->code == GT_OP_MSE && !dense                       ? mse_labels[type]
	                                                                  : loops[call->code][type];
	k->rows = x->dim[0];
	k->cols = x->dim[1];
	k->may_ignore = attr && gt_loss_has_classes(row);
	k->ignore = k->may_ignore ? attr->ignore_index : INT64_MIN;
	k->gradient = call->nout > 1 && call->out[1];
	k->scaled = call->nin > 2 && call->in[2];
	k->head.small = gt_cpu_alone(k->rows, 8192 / k->cols + 1);
	*out = &k->head;
	return GT_OK;
}
