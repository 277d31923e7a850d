/* The operation check, which decides whether the step is applied. It handles a few numbers per step, so it uses one thread. */
#include "cpu/loops.h"
#include "ew.h"
#include <stdlib.h>

struct check {
	struct gt_kernel head;
	struct gt_attr_check attr;
};

static enum gt_code launch_check(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	const struct check *k = (const struct check *)kernel;
	(void)dev, (void)err;
	gt_check(&k->attr, a->in[0], a->in[1], k->attr.scaling ? a->in[2] : NULL, k->attr.ranks > 1 ? a->in[3] : NULL);
	return GT_OK;
}

enum gt_code gt_cpu_check(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_attr_check *attr = call->attr;
	struct check *k;
	(void)dev;
	if (attr->scaling && (call->nin < 3 || !call->in[2]))
		return gt_cpu_refuse(call, err, "a loss scale needs the arguments of the following steps");
	if (attr->ranks > 1 && (call->nin < 4 || !call->in[3] || call->in[3]->dim[0] != attr->ranks))
		return gt_cpu_refuse(call, err, "with several ranks it needs the scalars of every rank");
	if (call->nin > 4)
		return gt_cpu_refuse(call, err, "the sum of squares is a separate call in this backend");
	GT_KERNEL_NEW(k, launch_check, "check", err);
	k->attr = *attr;
	k->head.small = true;
	*out = &k->head;
	return GT_OK;
}
