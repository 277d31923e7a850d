/* Losses: they add to struct gt_metrics and, in training, write the gradient of the mean. Rows run in parallel and store loss and rank in
 * the scratch memory. One thread adds them in order, so that the sum does not depend on the number of threads. */
#include "cpu/lanes.h"
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
	double smoothing, inv_weight, beta;
	double *loss;  /* the loss of each row, in the scratch memory */
	int32_t *rank; /* the rank of each row's target, in the scratch memory; -1: the row does not count */
};

#define GT_TYPED "cpu/loss.inc"
#include "cpu/typed.inc"

#define ROW(op)                                                                                                                            \
	{                                                                                                                                      \
		op##_f32, op##_bf16, op##_f64                                                                                                      \
	}
static gt_range_fn *const table[][GT_T_COUNT] = {ROW(cross_entropy), ROW(nll), ROW(mse), ROW(bce), ROW(smooth_l1)};
static gt_range_fn *const shares[GT_T_COUNT] = ROW(cross_entropy_shares), *const mse_dense[GT_T_COUNT] = ROW(mse_dense);

struct loss {
	struct gt_kernel head;
	gt_range_fn *fn;
	int64_t rows, cols, ignore;
	double smoothing, beta;
	bool may_ignore, dense, by_class; /* by_class: the weights are those of the classes */
	bool gradient;
	bool scaled;
	int64_t nweights;
	double weights[]; /* [nweights] */
};

static enum gt_code launch(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	const struct loss *k = (const struct loss *)kernel;
	struct gt_metrics *m = a->out[0];
	const int32_t *target = k->dense ? NULL : a->in[1];
	struct args c = {
	    .x = a->in[0],
	    .target = target,
	    .dense = k->dense ? a->in[1] : NULL,
	    .weights = k->nweights ? k->weights : NULL,
	    .beta = k->beta,
	    .dx = k->gradient ? a->out[1] : NULL,
	    .cols = k->cols,
	    .ignore = k->ignore,
	    .smoothing = k->smoothing,
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
	int type = gt_cpu_type(x->dtype), which = (int)call->code - (int)GT_OP_CROSS_ENTROPY;
	const struct gt_tdesc *t = call->in[1];
	bool labels = t->dtype == GT_I32 && t->rank == 1, dense = t->dtype == GT_F32 && t->rank == 2 && t->dim[1] == x->dim[1];
	int64_t nweights = attr ? attr->nweights : 0;
	struct loss *k;
	(void)dev;
	_Static_assert(GT_OP_SMOOTH_L1 == GT_OP_CROSS_ENTROPY + 4, "the rows of the table follow the operation codes");
	if (!labels && !dense)
		return gt_cpu_refuse(call, err, "the target is neither a label for each sample nor a number for each output");
	if (nweights && nweights != x->dim[1])
		return gt_cpu_refuse(call, err, "the number of weights is not that of the outputs");
	if (!(k = calloc(1, sizeof *k + (size_t)nweights * sizeof *k->weights)))
		return gt_fail(err, GT_EFAIL, "out of memory");
	k->head.launch = launch;
	k->head.describe = "loop";
	k->head.scratch = (size_t)x->dim[0] * (sizeof(double) + sizeof(int32_t));
	k->dense = dense;
	k->by_class = nweights && call->code != GT_OP_BCE;
	k->nweights = nweights;
	if (nweights)
		memcpy(k->weights, attr->weights, (size_t)nweights * sizeof *k->weights);
	k->beta = attr ? attr->beta : 0;
	k->fn = call->code == GT_OP_CROSS_ENTROPY && (dense || nweights) ? shares[type]
	        : call->code == GT_OP_MSE && dense                        ? mse_dense[type]
	                                                                  : table[which][type];
	k->rows = x->dim[0];
	k->cols = x->dim[1];
	k->smoothing = attr && call->code == GT_OP_CROSS_ENTROPY ? attr->label_smoothing : 0;
	k->may_ignore = attr && (call->code == GT_OP_CROSS_ENTROPY || call->code == GT_OP_NLL);
	k->ignore = k->may_ignore ? attr->ignore_index : INT64_MIN;
	k->gradient = call->nout > 1 && call->out[1];
	k->scaled = call->nin > 2 && call->in[2];
	k->head.small = gt_cpu_alone(k->rows, 8192 / k->cols + 1);
	*out = &k->head;
	return GT_OK;
}
