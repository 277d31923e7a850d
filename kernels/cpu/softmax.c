/* softmax, log_softmax and their gradients over dimension 1. That dimension is contiguous in a rank-4 tensor (NHWC) too, so every tensor
 * consists of rows of C elements. */
#include "cpu/lanes.h"

struct softmax {
	struct gt_cpu_loop loop;
	const void *x, *dy;
	void *y, *dx; /* y: output of the forward operation, operand of the gradient */
	int64_t cols;
};

static const struct gt_operand_slot slots[] = {GT_SLOTS(softmax, x, dy, y, dx)};

#define GT_TYPED "cpu/softmax.inc"
#include "cpu/typed.inc"

enum gt_code gt_cpu_softmax(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	static gt_range_fn *const table[][GT_T_COUNT] = {
	    [GT_OP_SOFTMAX] = GT_TYPES(softmax_rows),
	    [GT_OP_SOFTMAX_DX] = GT_TYPES(softmax_dx),
	    [GT_OP_LOG_SOFTMAX] = GT_TYPES(log_softmax_rows),
	    [GT_OP_LOG_SOFTMAX_DX] = GT_TYPES(log_softmax_dx),
	};
	const struct gt_tdesc *y = gt_opcall_operand(call, "y");
	struct softmax *k;
	(void)dev;
	GT_LOOP_NEW(k, slots, call, "loop", err);
	k->cols = y->dim[1];
	gt_cpu_loop_over(&k->loop, table[call->code][gt_cpu_type(y->dtype)], gt_tdesc_count(y) / k->cols, 8192 / k->cols + 1);
	k->loop.head.small = gt_cpu_alone(k->loop.n, k->loop.grain);
	*out = &k->loop.head;
	return GT_OK;
}
