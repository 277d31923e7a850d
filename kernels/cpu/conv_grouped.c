/* Forward passes and gradients by x of convolutions in f32 with groups of 1, 2, 4 or 8 channels, as many in as out (conv_grouped_dw.c:
 * gradients of the weights). The weights are copied to [kernel rows * columns][channels of a group][channels], so that vectors hold
 * neighbouring channels of one pixel: a vector of the input contains the groups of a vector of the output, and each of the channels of a
 * group is distributed to the lanes of its group. A row of the output is computed a few pixels at a time, which share the load of each
 * weight; bias, residual and activation are applied in registers.
 *
 * The gradient by x is a convolution of dy (conv_axis.h) with filters in which the input and the output channels of a group are exchanged:
 * with stride 2 each pixel of dx has only every second row and column of the filter.
 *
 * Each element is one sum in the order of the filter, for any number of threads. */
#include "base/arena.h"
#include "cpu/conv_axis.h"
#include "cpu/conv_sums.h"
#include <string.h>

#define MOST 8   /* maximum number of channels of a group */
#define PIXELS 6 /* maximum number of pixels that are computed together */
#define WIDE 32  /* minimum number of columns of a wide image */

struct grouped {
	struct gt_cpu_loop loop; /* holds the addresses of the operands; loop.fn is unused */
	const float *x, *w, *b, *res;
	float *y;
	void (*row)(const struct grouped *k, int64_t row); /* computes row `row` of all images' rows */
	int64_t channels, h, wide, p, q;
	struct gt_conv_axis axis[2];
	int64_t size;            /* number of channels of a group */
	int32_t lanes[MOST][16]; /* for each channel of a group, the lanes of the input that are multiplied with a vector of its weights */
	int act, finish;         /* enum gt_act: act: applied to each row in registers; finish: applied to the whole output at the end */
	int64_t rows;            /* rows of the output, of all images */
	int64_t *at;             /* for each weight [out][in of a group][tap], its position in w */
	float *filters;          /* the weights, then the bias, which is 0 if it is absent */
	bool dx, constant, copied;
};

/* The taps along one axis that are inside the image for a position of the output: begin, begin + apart, … below end. from: the position in
 * the input of tap `begin`. */
struct taps {
	int64_t begin, end, from;
};

static inline struct taps find_taps_inside(const struct grouped *k, int axis, int64_t at)
{
	const struct gt_conv_axis *x = &k->axis[axis];
	struct gt_conv_taps t = gt_conv_find_taps(x, at);
	int64_t before = t.from < 0 ? -t.from : 0, size = axis ? k->wide : k->h, end = t.begin + (size - 1 - t.from) * x->apart + 1;
	return (struct taps){t.begin + before * x->apart, end < x->kernel ? end : x->kernel, t.from + before};
}

/* Returns the number of pixels, from column q on, that use all taps of their kind: 6, 4, 2 or, also at the border, 1. */
static inline int count_together(const struct grouped *k, int64_t q)
{
	int64_t apart = k->axis[1].apart, first = q * k->axis[1].stride - k->axis[1].padding;
	for (int n = PIXELS; n > 1; n -= 2) {
		int64_t last = q + (n - 1) * apart;
		if (first > -apart && last < k->q && last * k->axis[1].stride - k->axis[1].padding + k->axis[1].kernel <= (k->wide - 1) * apart + 1)
			return n;
	}
	return 1;
}

#if defined(__x86_64__)
#include <immintrin.h>

#pragma GCC push_options
#pragma GCC target("avx512f")
#include "cpu/vector_avx512.inc"
#include "cpu/conv_grouped.inc"
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx2,fma")
#include "cpu/vector_avx2.inc"
#include "cpu/conv_grouped.inc"
#pragma GCC pop_options

static void (*choose_row(void))(const struct grouped *k, int64_t row)
{
	return GT_CPU_AVX512 ? compute_row_avx512 : GT_CPU_AVX2 ? compute_row_avx2 : NULL;
}
#else
static void (*choose_row(void))(const struct grouped *k, int64_t row)
{
	return NULL;
}
#endif

static const struct gt_operand_slot slots[] = {GT_SLOTS(grouped, x, w, b, res, y), GT_SLOT_AS(grouped, "dy", x),
                                               GT_SLOT_AS(grouped, "dx", y)};

static void copy_filters(struct grouped *k)
{
	int64_t taps = k->axis[0].kernel * k->axis[1].kernel, n = k->channels, size = k->size;
	for (int64_t c = 0; c < n; c++)
		for (int64_t i = 0; i < size; i++) {
			const int64_t *at = k->at + (k->dx ? (c / size * size + i) * size + c % size : c * size + i) * taps;
			for (int64_t t = 0; t < taps; t++)
				k->filters[(t * size + i) * n + c] = k->w[at[k->dx ? taps - 1 - t : t]];
		}
	if (k->b)
		memcpy(k->filters + taps * size * n, k->b, (size_t)n * sizeof *k->b);
	k->copied = k->constant;
}

static void compute_rows(const void *ctx, int64_t begin, int64_t end)
{
	const struct grouped *k = ctx;
	for (int64_t row = begin; row < end; row++)
		k->row(k, row);
}

static enum gt_code launch_grouped(struct gt_dev *dev, struct gt_kernel *head, const struct gt_launch *a, struct gt_err *err)
{
	struct grouped *k = gt_cpu_loop_bind(head, a);
	(void)err;
	if (!k->copied)
		copy_filters(k);
	gt_cpu_for(dev, k->rows, 16384 / (k->channels * k->q) + 1, 1, compute_rows, k);
	if (k->finish)
		gt_cpu_finish(dev, GT_F32, k->finish, k->y, NULL, k->rows * k->q * k->channels);
	return GT_OK;
}

static void release_grouped(struct gt_kernel *head)
{
	free(((struct grouped *)head)->filters);
	free(((struct grouped *)head)->at);
	free(head);
}

/* Returns whether the groups of a convolution are those of this file, and whether it is faster than oneDNN's kernels: these are faster for
 * depthwise convolutions, except for dx of wide images, whose weights then have the layout of oneDNN's forward pass. */
static bool supports_groups(const struct gt_opcall *call, const struct gt_tdesc *x, const struct gt_tdesc *y)
{
	const struct gt_attr_conv2d *a = call->attr;
	int64_t size = a->groups > 0 ? x->dim[1] / a->groups : 0;
	bool dx = call->code == GT_OP_CONV2D_DX;
	if (x->dim[1] != y->dim[1] || a->groups < 2 || x->dim[1] < 8 || a->dilation[0] != 1 || a->dilation[1] != 1)
		return false;
	if (dx && (a->padding[0] >= a->kernel[0] || a->padding[1] >= a->kernel[1]))
		return false;
	if (size == 1)
		return dx ? a->stride[0] == 1 && a->stride[1] == 1 && x->dim[3] >= WIDE : call->constant;
	return size == 2 || size == 4 || size == 8;
}

/* Allocates the filters, and the positions of the weights. */
static enum gt_code fill_tables(struct grouped *k, const struct gt_tdesc *w, struct gt_err *err)
{
	size_t floats = (size_t)(gt_tdesc_count(w) + k->channels);
	k->filters = calloc(floats, sizeof *k->filters);
	return k->filters ? gt_conv_positions(w, &k->at, err) : gt_fail_memory(err, floats * sizeof *k->filters);
}

enum gt_code gt_cpu_conv_grouped(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_attr_conv2d *a = call->attr;
	bool dx = call->code == GT_OP_CONV2D_DX;
	const struct gt_tdesc *x = gt_opcall_operand(call, dx ? "dy" : "x"), *y = gt_opcall_output(call);
	struct gt_tdesc *w = gt_opcall_operand(call, "w");
	struct grouped *k;
	(void)dev;
	*out = NULL;
	if (!choose_row() || !supports_groups(call, x, y) || x->dtype != GT_F32 || w->dtype != GT_F32)
		return GT_OK;
	GT_LOOP_NEW(k, slots, call, "conv_grouped", err);
	k->loop.head.launch = launch_grouped;
	k->loop.head.release = release_grouped;
	k->row = choose_row();
	k->dx = dx;
	k->constant = call->constant;
	k->size = x->dim[1] / a->groups;
	k->channels = x->dim[1], k->h = x->dim[2], k->wide = x->dim[3], k->p = y->dim[2], k->q = y->dim[3];
	k->rows = y->dim[0] * k->p;
	for (int i = 0; i < 2; i++)
		k->axis[i] = gt_conv_axis_of(a, i, dx);
	for (int64_t i = 0; i < k->size; i++)
		for (int64_t lane = 0; lane < 16; lane++)
			k->lanes[i][lane] = (int32_t)(lane / k->size * k->size + i);
	if (!dx)
		*(a->act == GT_ACT_RELU || a->act == GT_ACT_RELU6 ? &k->act : &k->finish) = a->act;
	gt_cpu_choose_plain(w);
	enum gt_code code = fill_tables(k, w, err);
	if (code != GT_OK) {
		release_grouped(&k->loop.head);
		return code;
	}
	*out = &k->loop.head;
	return GT_OK;
}
