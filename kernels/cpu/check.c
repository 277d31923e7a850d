/* The operation check, which decides whether the step is applied. It handles few values per step, so it uses one thread. */
#include "cpu/loops.h"
#include "ew.h"

struct check {
	struct gt_cpu_loop loop;
	void *scalars, *scaler, *numbers, *parts;
	struct gt_attr_check attr;
};

static const struct gt_operand_slot slots[] = {GT_SLOTS(check, scalars, scaler, numbers, parts)};

static enum gt_code launch_check(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	const struct check *k = gt_cpu_loop_bind(kernel, a);
	(void)dev, (void)err;
	gt_check(&k->attr, k->scalars, k->scaler, k->attr.scaling ? k->numbers : NULL, k->attr.ranks > 1 ? k->parts : NULL);
	return GT_OK;
}

enum gt_code gt_cpu_check(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_attr_check *attr = call->attr;
	const struct gt_tdesc *parts = gt_opcall_operand(call, "parts");
	struct check *k;
	(void)dev;
	if (attr->scaling && !gt_opcall_operand(call, "numbers"))
		return gt_opcall_refuse(call, err, "a loss scale needs the arguments of the following steps");
	if (attr->ranks > 1 && (!parts || parts->dim[0] != attr->ranks))
		return gt_opcall_refuse(call, err, "with several ranks, the scalars of every rank are required");
	if (gt_opcall_operand(call, "g"))
		return gt_opcall_refuse(call, err, "the sum of squares is a separate call in this backend");
	GT_LOOP_NEW(k, slots, call, "check", err);
	k->loop.head.launch = launch_check;
	k->attr = *attr;
	k->loop.head.small = true;
	*out = &k->loop.head;
	return GT_OK;
}
