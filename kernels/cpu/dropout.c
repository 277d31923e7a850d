/* Dropout, forward and gradient. Both draw the mask again (ew.h), so it is not stored. */
#include "cpu/loops.h"
#include "ew.h"
#include <stdlib.h>
#include <string.h>

#define QUADS 16 /* number of draws that are computed at once */

struct args {
	const void *x;
	void *y;
	int64_t n;    /* number of elements of a sample */
	int64_t cols; /* number of units of a sample, if they are not elements */
	uint64_t key, epoch, sample0, stride;
	uint32_t threshold;
	double scale;
};

#define GT_TYPED "cpu/dropout.inc"
#include "cpu/typed.inc"

static gt_range_fn *const table[2][GT_T_COUNT] = {{dropout_elements_f32, dropout_elements_bf16, dropout_elements_f64},
                                                  {dropout_channels_f32, dropout_channels_bf16, dropout_channels_f64}};

struct dropout {
	struct gt_kernel head;
	int type;
	int64_t samples, n, cols; /* cols: 0: units are elements */
	size_t bytes;
	uint32_t layer, threshold;
	double scale;
	bool train;
};

static enum gt_code launch_dropout(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	const struct dropout *k = (const struct dropout *)kernel;
	const struct gt_step_args *step_args = a->step_args;
	(void)err;
	if (!k->train) {
		if (a->out[0] != a->in[0])
			memcpy(a->out[0], a->in[0], k->bytes);
		return GT_OK;
	}
	struct args c = {
	    .x = a->in[0],
	    .y = a->out[0],
	    .n = k->n,
	    .cols = k->cols,
	    .key = gt_dropout_key(step_args->seed, k->layer),
	    .epoch = step_args->epoch,
	    .sample0 = step_args->sample0,
	    .stride = step_args->stride,
	    .threshold = k->threshold,
	    .scale = k->scale,
	};
	gt_cpu_for(dev, k->samples, 4096 / k->n + 1, 1, table[k->cols > 0][k->type], &c);
	return GT_OK;
}

enum gt_code gt_cpu_dropout(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_attr_dropout *attr = call->attr;
	const struct gt_tdesc *x = call->in[0];
	int type = gt_cpu_type(x->dtype);
	int64_t n = gt_tdesc_count(x) / (x->rank && x->dim[0] ? x->dim[0] : 1);
	struct dropout *k;
	(void)dev;
	if (n < 1 || n / 4 > UINT32_MAX)
		return gt_cpu_refuse(call, err, "a sample is too big");
	GT_KERNEL_NEW(k, launch_dropout, "philox", err);
	k->type = type;
	k->samples = x->dim[0];
	k->n = n;
	k->cols = attr->unit == GT_DROP_CHANNELS ? x->dim[1] : attr->unit == GT_DROP_SAMPLES ? 1 : 0;
	k->bytes = gt_tdesc_bytes(x);
	k->layer = attr->layer;
	k->threshold = gt_dropout_threshold(attr->p);
	k->scale = gt_dropout_scale(attr->p);
	k->train = attr->train;
	k->head.small = gt_cpu_alone(k->samples, 4096 / k->n + 1);
	*out = &k->head;
	return GT_OK;
}
