/* Losses: they add to struct gt_metrics and, in training, write the gradient of the mean. Rows run in parallel and store loss and rank in
 * the scratch memory. One thread adds them in order, so that the sum does not depend on the number of threads. */
#include "cpu/lanes.h"
#include "losses.h"
#include <stdlib.h>
#include <string.h>

#define NO_CLASS INT32_MAX /* rank of a row whose target is not a class: the row adds to the loss, but not to the accuracy */

struct loss {
	struct gt_cpu_loop loop;
	const void *x;
	const int32_t *target; /* label of each row; not used if dense is not NULL */
	const float *dense;    /* target of each output, [rows, cols]; NULL: labels */
	const double *weights; /* gt_attr_loss.weights; NULL: all 1 */
	const double *scale;
	void *dx; /* gradient; NULL: evaluation */
	struct gt_metrics *metrics;
	int64_t cols, ignore;
	const double *number; /* gt_attr_loss.number */
	double inv_weight;
	double *loss;  /* the loss of each row, in the scratch memory */
	int32_t *rank; /* the rank of each row's target, in the scratch memory; -1: the row is not counted */
	bool may_ignore, by_class; /* by_class: `weights` has a weight for each class */
	double copy[]; /* copies of the loss's parameters (`number`) and then of its weights */
};

#define GT_TYPED "cpu/loss.inc"
#include "cpu/typed.inc"

static gt_range_fn *const loops[GT_OP_COUNT][GT_T_COUNT] = {
	[GT_OP_CROSS_ENTROPY] = GT_TYPES(cross_entropy),
	[GT_OP_NLL] = GT_TYPES(nll),
#define GT_X(CODE, name, ...) [GT_OP_##CODE] = GT_TYPES(name##_rows),
	GT_LOSS_POINTWISE(GT_X)
#undef GT_X
};
/* Loops for cross_entropy with weights or dense targets, and for mse with labels. */
static gt_range_fn *const shares[GT_T_COUNT] = GT_TYPES(cross_entropy_shares), *const mse_labels[GT_T_COUNT] = GT_TYPES(mse_labels);

static enum gt_code launch_loss(struct gt_dev *dev, struct gt_kernel *head, const struct gt_launch *a, struct gt_err *err)
{
	struct loss *c = gt_cpu_loop_bind(head, a);
	const int32_t *target = c->target;
	struct gt_metrics *m = c->metrics;
	int64_t rows = c->loop.n;
	c->inv_weight = a->step_args->inv_weight * (c->scale ? *c->scale : 1);
	c->loss = a->scratch;
	c->rank = (int32_t *)(c->loss + rows);
	/* Labels are checked when a dataset is opened, but not against the number of outputs of this model. */
	for (int64_t r = 0; target && r < rows; r++)
		if ((target[r] < 0 || target[r] >= c->cols) && !(c->may_ignore && target[r] == c->ignore))
			return gt_fail(err, GT_EDATA, "label %d of sample %lld in the batch: the model has classes 0..%lld", (int)target[r],
			               (long long)r, (long long)c->cols - 1);
	gt_cpu_for(dev, rows, c->loop.grain, 1, c->loop.fn, c);
	/* An evaluation adds row by row, so that the sums do not depend on how the samples are divided into batches. */
	double sum = c->dx ? 0 : m->loss, weight = c->dx ? 0 : m->weight;
	int64_t count = 0, correct = 0, top5 = 0;
	for (int64_t r = 0; r < rows; r++) {
		if (c->rank[r] < 0)
			continue;
		sum += c->loss[r];
		weight += c->by_class && target ? c->weights[target[r]] : 1;
		count += c->rank[r] != NO_CLASS;
		correct += c->rank[r] == 0;
		top5 += c->rank[r] < 5;
	}
	m->loss = c->dx ? m->loss + sum : sum;
	m->weight = c->dx ? m->weight + weight : weight;
	m->count += count;
	m->correct += correct;
	m->top5 += top5;
	return GT_OK;
}

enum gt_code gt_cpu_loss(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	static const struct gt_operand_slot labels[] = {GT_SLOTS(loss, x, target, scale, metrics, dx)};
	static const struct gt_operand_slot numbers[] = {GT_SLOTS(loss, x, scale, metrics, dx), GT_SLOT_AS(loss, "target", dense)};
	const struct gt_attr_loss *attr = call->attr;
	const struct gt_tdesc *x = gt_opcall_operand(call, "x");
	const struct gt_loss_row *row = gt_loss_row(call->code);
	int type = gt_cpu_type(x->dtype);
	int64_t nweights = attr ? attr->nweights : 0;
	bool dense;
	const char *refused = gt_loss_check(call, &dense);
	struct loss *k;
	(void)dev;
	if (refused)
		return gt_opcall_refuse(call, err, refused);
	if (!(k = calloc(1, sizeof *k + (size_t)(GT_LOSS_NUMBERS + nweights) * sizeof *k->copy)))
		return gt_fail(err, GT_EFAIL, "out of memory");
	gt_cpu_loop_init(&k->loop, dense ? numbers : labels, sizeof labels / sizeof *labels, call, "loop");
	k->loop.head.launch = launch_loss;
	k->loop.head.scratch = (size_t)x->dim[0] * (sizeof(double) + sizeof(int32_t));
	k->by_class = nweights && row->weight == GT_WEIGHT_BY_CLASS;
	k->number = k->copy;
	for (int i = 0; attr && i < row->numbers; i++)
		k->copy[i] = attr->number[i];
	if (nweights)
		k->weights = memcpy(k->copy + GT_LOSS_NUMBERS, attr->weights, (size_t)nweights * sizeof *k->weights);
	k->cols = x->dim[1];
	k->may_ignore = attr && gt_loss_has_classes(row);
	k->ignore = k->may_ignore ? attr->ignore_index : INT64_MIN;
	gt_cpu_loop_over(&k->loop,
	                 call->code == GT_OP_CROSS_ENTROPY && (dense || nweights) ? shares[type]
	                 : call->code == GT_OP_MSE && !dense                       ? mse_labels[type]
	                                                                           : loops[call->code][type],
	                 x->dim[0], 8192 / k->cols + 1);
	k->loop.head.small = gt_cpu_alone(k->loop.n, k->loop.grain);
	*out = &k->loop.head;
	return GT_OK;
}
