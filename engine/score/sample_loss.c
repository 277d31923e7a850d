#include "score/sample_loss.h"
#include "ew.h"
#include "ir/op.h"
#include "losses.h"
#include <math.h>
#include <string.h>

/* The target of output i. */
static double target_of(int64_t i, int32_t label, const float *target)
{
	return target ? (double)target[i] : i == label;
}

static double cross_entropy(const struct gt_attr_loss *a, const float *z, int64_t n, int32_t label, const float *target)
{
	double max = -INFINITY, sum = 0, loss = 0;
	for (int64_t i = 0; i < n; i++)
		max = (double)z[i] > max ? (double)z[i] : max;
	for (int64_t i = 0; i < n; i++)
		sum += exp((double)z[i] - max);
	for (int64_t i = 0; i < n; i++) {
		double share = gt_ce_share_f64(target_of(i, label, target), a->nweights ? a->weights[i] : 1, (double)n, a->number[0]);
		loss += share == 0 ? 0 : share * (log(sum) - ((double)z[i] - max)); /* 0 times an infinite logarithm counts as 0 */
	}
	return loss;
}

double gt_sample_loss(const struct gt_loss_spec *loss, const float *z, int64_t n, int32_t label, const float *target)
{
	const struct gt_attr_loss *a = &loss->attr;
	const double n0 = a->number[0], n1 = a->number[1];
	double sum = 0;
	(void)n0, (void)n1;
	if (!target && gt_loss_ignores(loss) && label == a->ignore_index)
		return NAN;
	if (loss->op->code == GT_OP_CROSS_ENTROPY)
		return cross_entropy(a, z, n, label, target);
	if (loss->op->code == GT_OP_NLL)
		return -(a->nweights ? a->weights[label] : 1) * (double)z[label];
	for (int64_t i = 0; i < n; i++) { /* the other losses are means or sums over the outputs */
		double v = z[i], t = target_of(i, label, target), w = a->nweights ? a->weights[i] : 1;
		(void)w;
		switch ((int)loss->op->code) {
#define GT_X(CODE, name, is_sum, ...)                                                                                                      \
	case GT_OP_##CODE:                                                                                                                     \
		sum += gt_##name##_loss_f64(v, t __VA_ARGS__);                                                                                     \
		break;
			GT_LOSS_POINTWISE(GT_X)
#undef GT_X
		}
	}
	return gt_loss_row(loss->op->code)->kind == GT_LOSS_SUM ? sum : sum / (double)n;
}
