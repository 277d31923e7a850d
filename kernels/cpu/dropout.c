/* Dropout, forward and gradient. Both draw the same mask (ew.h), so the mask is not stored. */
#include "cpu/bf16_rows.h"
#include "cpu/loops.h"
#include "ew.h"
#include <string.h>

#define QUADS 16      /* number of draws that are computed at once */
#define CHANNELS 1024 /* number of channels whose draws are on the stack */

struct dropout {
	struct gt_cpu_loop loop; /* over samples */
	const void *x;
	void *y;
	int64_t n;    /* number of elements of a sample */
	int64_t cols; /* number of units of a sample; 0: units are elements */
	size_t bytes;
	uint32_t layer, threshold;
	double scale;
	bool train;
	uint64_t key, epoch, sample0, stride; /* values of the current step */
};

static const struct gt_operand_slot slots[] = {GT_SLOTS(dropout, x, y)};

#define GT_TYPED "cpu/dropout.inc"
#include "cpu/typed.inc"

static enum gt_code launch_dropout(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	struct dropout *k = gt_cpu_loop_bind(kernel, a);
	(void)err;
	if (!k->train) {
		if (k->y != k->x)
			memcpy(k->y, k->x, k->bytes);
		return GT_OK;
	}
	k->key = gt_dropout_key(a->step_args->seed, k->layer);
	k->epoch = a->step_args->epoch;
	k->sample0 = a->step_args->sample0;
	k->stride = a->step_args->stride;
	gt_cpu_for(dev, k->loop.n, k->loop.grain, 1, k->loop.fn, k);
	return GT_OK;
}

enum gt_code gt_cpu_dropout(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	static gt_range_fn *const table[2][GT_T_COUNT] = {GT_TYPES(dropout_elements), GT_TYPES(dropout_channels)};
	const struct gt_attr_dropout *attr = call->attr;
	const struct gt_tdesc *x = gt_opcall_operand(call, "x");
	int64_t n = gt_tdesc_count(x) / (x->rank && x->dim[0] ? x->dim[0] : 1);
	struct dropout *k;
	(void)dev;
	if (n < 1 || n / 4 > UINT32_MAX)
		return gt_opcall_refuse(call, err, "a sample has too many elements");
	GT_LOOP_NEW(k, slots, call, "philox", err);
	k->loop.head.launch = launch_dropout;
	k->n = n;
	k->cols = attr->unit == GT_DROP_CHANNELS ? x->dim[1] : attr->unit == GT_DROP_SAMPLES ? 1 : 0;
	k->bytes = gt_tdesc_bytes(x);
	k->layer = attr->layer;
	k->threshold = gt_dropout_threshold(attr->p);
	k->scale = gt_dropout_scale(attr->p);
	k->train = attr->train;
	gt_cpu_loop_over(&k->loop, table[k->cols > 0][gt_cpu_type(x->dtype)], x->dim[0], 4096 / n + 1);
	k->loop.head.small = gt_cpu_alone(k->loop.n, k->loop.grain);
	*out = &k->loop.head;
	return GT_OK;
}
