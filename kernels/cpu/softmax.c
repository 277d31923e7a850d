/* softmax, log_softmax and their gradients over dimension 1. That dimension is contiguous in a rank-4 tensor (NHWC) too, so every tensor
 * consists of rows of C elements. */
#include "cpu/lanes.h"
#include <stdlib.h>

struct args {
	const void *in[2];
	void *out;
	int64_t cols;
};

#define GT_TYPED "cpu/softmax.inc"
#include "cpu/typed.inc"

#define ROW(op)                                                                                                                            \
	{                                                                                                                                      \
		op##_f32, op##_bf16, op##_f64                                                                                                      \
	}
static gt_range_fn *const table[][GT_T_COUNT] = {ROW(softmax_rows), ROW(softmax_dx), ROW(log_softmax_rows), ROW(log_softmax_dx)};

struct softmax {
	struct gt_kernel head;
	gt_range_fn *fn;
	int64_t rows, cols;
	bool dx;
};

static enum gt_code launch_softmax(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	const struct softmax *k = (const struct softmax *)kernel;
	struct args c = {{a->in[0], k->dx ? a->in[1] : NULL}, a->out[0], k->cols};
	(void)err;
	gt_cpu_for(dev, k->rows, 8192 / k->cols + 1, 1, k->fn, &c);
	return GT_OK;
}

enum gt_code gt_cpu_softmax(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_tdesc *x = call->in[0];
	int type = gt_cpu_type(x->dtype), which = (int)call->code - (int)GT_OP_SOFTMAX;
	bool dx = call->code == GT_OP_SOFTMAX_DX || call->code == GT_OP_LOG_SOFTMAX_DX;
	struct softmax *k;
	(void)dev;
	_Static_assert(GT_OP_LOG_SOFTMAX_DX == GT_OP_SOFTMAX + 3, "the rows of the table follow the operation codes");
	GT_KERNEL_NEW(k, launch_softmax, "loop", err);
	k->fn = table[which][type];
	k->rows = gt_tdesc_count(x) / x->dim[1];
	k->cols = x->dim[1];
	k->dx = dx;
	k->head.small = gt_cpu_alone(k->rows, 8192 / k->cols + 1);
	*out = &k->head;
	return GT_OK;
}
