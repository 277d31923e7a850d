/* The filter of a convolution along one axis (conv_direct.c, conv_grouped.c). The gradient by x is a convolution of dy, with stride - 1
 * zeros between its pixels, with filters rotated by 180 degrees. Tap t of position p of the output meets position
 * (p * stride - padding + t) / apart of the input, if this is an integer; all other taps meet zeros and are left out. */
#ifndef GT_CPU_CONV_AXIS_H
#define GT_CPU_CONV_AXIS_H

#include "opcall.h"
#include <stdbool.h>
#include <stdint.h>

struct gt_conv_axis {
	int64_t kernel, stride, padding;
	int64_t apart; /* dx: the stride of the convolution; forward: 1 */
};

/* The taps for a position of the output: begin, begin + apart, …. from: the position in the input of tap `begin`, which may be outside of
 * the image. */
struct gt_conv_taps {
	int64_t begin, from;
};

/* Returns axis i of a convolution or of its gradient by x. */
static inline struct gt_conv_axis gt_conv_axis_of(const struct gt_attr_conv2d *a, int i, bool dx)
{
	return (struct gt_conv_axis){.kernel = a->kernel[i],
	                             .stride = dx ? 1 : a->stride[i],
	                             .padding = dx ? a->kernel[i] - 1 - a->padding[i] : a->padding[i],
	                             .apart = dx ? a->stride[i] : 1};
}

static inline int64_t gt_conv_divide_down(int64_t a, int64_t b)
{
	return a >= 0 ? a / b : -((-a + b - 1) / b);
}

static inline struct gt_conv_taps gt_conv_find_taps(const struct gt_conv_axis *x, int64_t p)
{
	int64_t first = p * x->stride - x->padding, from = x->apart > 1 ? -gt_conv_divide_down(-first, x->apart) : first;
	return (struct gt_conv_taps){from * x->apart - first, from};
}

#endif
