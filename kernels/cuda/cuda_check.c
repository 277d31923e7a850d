/* check: whether the step is applied. */
#include "cuda/cuda_internal.h"
#include <stdlib.h>

struct check {
	struct gt_kernel head;
	struct gt_attr_check attr;
};

static enum gt_code launch_check(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, cudaStream_t s, struct gt_err *err)
{
	const struct check *k = (const struct check *)kernel;
	GT_CUDA(dev, gt_cu_check_start(&k->attr, a->in[0], a->in[1], k->attr.scaling ? a->in[2] : NULL, k->attr.ranks > 1 ? a->in[3] : NULL, s), "check", err);
	return GT_OK;
}

enum gt_code gt_cuda_check(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_attr_check *attr = call->attr;
	const struct gt_tdesc *s = call->in[0], *c = call->in[1];
	struct check *k;
	(void)dev;
	if (s->dtype != GT_F64 || gt_tdesc_count(s) != GT_SCALARS_WORDS || c->dtype != GT_F64 || gt_tdesc_count(c) != GT_SCALER_WORDS)
		return gt_cuda_refuse(call, err, "it takes the scalars of a step and the scaler, as f64 of their sizes");
	if (attr->scaling && (call->nin < 3 || !call->in[2]))
		return gt_cuda_refuse(call, err, "a loss scale needs the numbers of the steps that follow");
	if (attr->ranks > 1 && (call->nin < 4 || !call->in[3] || gt_tdesc_count(call->in[3]) != attr->ranks * GT_SCALARS_WORDS))
		return gt_cuda_refuse(call, err, "several ranks need the scalars of each");
	GT_CUDA_NEW(k, launch_check, "check", err);
	k->attr = *attr;
	*out = &k->head;
	return GT_OK;
}
