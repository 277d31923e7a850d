/* Depthwise convolutions in f32 (one filter for each channel) whose weights are constant. The first launch copies the weights to
 * [kernel rows * columns][channels], so that vectors hold neighbouring channels of one pixel. A row of the output is computed a few pixels
 * at a time, which share the load of each weight; bias, residual and activation are applied in registers.
 *
 * Each element is one sum in the order of the filter, for any number of threads. */
#include "cpu/loops.h"
#include <string.h>

struct depthwise {
	struct gt_cpu_loop loop; /* holds the addresses of the operands; loop.fn is unused */
	const float *x, *w, *b, *res;
	float *y;
	void (*row)(const struct depthwise *k, int64_t row); /* computes row `row` of all images' rows */
	int64_t channels, h, wide, p, q, kernel[2], stride[2], padding[2];
	int act, finish;         /* enum gt_act: act: applied to each row in registers; finish: applied to the whole output at the end */
	int64_t rows;            /* rows of the output, of all images */
	float *filters;          /* the weights, then the bias, which is 0 if it is absent */
	bool copied;
};

#if defined(__x86_64__)
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx512f")
#include "cpu/vector_avx512.inc"
#include "cpu/conv_depthwise.inc"
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx2,fma")
#include "cpu/vector_avx2.inc"
#include "cpu/conv_depthwise.inc"
#pragma GCC pop_options

static void (*choose_row(void))(const struct depthwise *k, int64_t row)
{
	return GT_CPU_AVX512 ? compute_row_avx512 : GT_CPU_AVX2 ? compute_row_avx2 : NULL;
}
#else
static void (*choose_row(void))(const struct depthwise *k, int64_t row)
{
	return NULL;
}
#endif

static const struct gt_operand_slot slots[] = {GT_SLOTS(depthwise, x, w, b, res, y)};

static void copy_filters(struct depthwise *k)
{
	int64_t taps = k->kernel[0] * k->kernel[1], n = k->channels;
	for (int64_t c = 0; c < n; c++)
		for (int64_t i = 0; i < taps; i++)
			k->filters[i * n + c] = k->w[c * taps + i];
	if (k->b)
		memcpy(k->filters + taps * n, k->b, (size_t)n * sizeof *k->b);
	k->copied = true;
}

static void compute_rows(const void *ctx, int64_t begin, int64_t end)
{
	const struct depthwise *k = ctx;
	for (int64_t row = begin; row < end; row++)
		k->row(k, row);
}

static enum gt_code launch_depthwise(struct gt_dev *dev, struct gt_kernel *head, const struct gt_launch *a, struct gt_err *err)
{
	struct depthwise *k = gt_cpu_loop_bind(head, a);
	(void)err;
	if (!k->copied)
		copy_filters(k);
	gt_cpu_for(dev, k->rows, 16384 / (k->channels * k->q) + 1, 1, compute_rows, k);
	if (k->finish)
		gt_cpu_finish(dev, GT_F32, k->finish, k->y, NULL, k->rows * k->q * k->channels);
	return GT_OK;
}

static void release_depthwise(struct gt_kernel *head)
{
	free(((struct depthwise *)head)->filters);
	free(head);
}

enum gt_code gt_cpu_conv_depthwise(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_attr_conv2d *a = call->attr;
	const struct gt_tdesc *x = gt_opcall_operand(call, "x"), *y = gt_opcall_output(call);
	struct gt_tdesc *w = gt_opcall_operand(call, "w");
	struct depthwise *k;
	(void)dev;
	*out = NULL;
	if (!choose_row() || !call->constant || a->groups != x->dim[1] || a->groups != y->dim[1] || a->groups < 8 || a->dilation[0] != 1 ||
	    a->dilation[1] != 1 || x->dtype != GT_F32 || w->dtype != GT_F32 || (!w->any && !gt_tdesc_plain(w)))
		return GT_OK;
	GT_LOOP_NEW(k, slots, call, "conv_depthwise", err);
	k->loop.head.launch = launch_depthwise;
	k->loop.head.release = release_depthwise;
	k->row = choose_row();
	k->channels = x->dim[1], k->h = x->dim[2], k->wide = x->dim[3], k->p = y->dim[2], k->q = y->dim[3];
	k->rows = y->dim[0] * k->p;
	for (int i = 0; i < 2; i++)
		k->kernel[i] = a->kernel[i], k->stride[i] = a->stride[i], k->padding[i] = a->padding[i];
	*(a->act == GT_ACT_RELU || a->act == GT_ACT_RELU6 ? &k->act : &k->finish) = a->act;
	size_t n = (size_t)((k->kernel[0] * k->kernel[1] + 1) * k->channels);
	if (!(k->filters = calloc(n, sizeof *k->filters))) {
		release_depthwise(&k->loop.head);
		return gt_fail(err, GT_EFAIL, "out of memory: %zu bytes", n * sizeof *k->filters);
	}
	if (w->any) {
		w->layout = gt_tdesc_make(GT_F32, 4, w->dim, false).layout;
		w->any = false;
	}
	*out = &k->loop.head;
	return GT_OK;
}
