/* A row of the output of a depthwise convolution in f32 whose input is a tile of conv_pair.c: the channels of one panel (conv_1x1.h), which
 * are two vectors wide, for all columns of some rows. The filters have 3, 5 or 7 columns and any number of rows, the stride of the columns
 * is 1 or 2, and the padding is smaller than the filter. Each element is
 *
 *     act(bias + sum over the rows, then the columns, of the filter inside the image of x * w) */
#ifndef GT_KERNELS_CPU_CONV_DEPTHWISE_H
#define GT_KERNELS_CPU_CONV_DEPTHWISE_H

#include <stdint.h>

struct gt_depthwise {
	const float *x;      /* [rows][wide][width of a panel], from the row that the filter's first row inside the image reads */
	const float *filter; /* [rows][columns][width of a panel], from the same row of the filter */
	const float *bias;   /* [width of a panel] */
	float *y;            /* [q], y_pixel floats apart */
	int64_t rows;        /* rows of the filter that are inside the image */
	int64_t channels;    /* channels that exist, at most the width of a panel */
	int64_t wide, q, padding, y_pixel; /* columns of x and of y; padding at the left */
	int act;             /* enum gt_act: none, relu or relu6 */
};

typedef void gt_depthwise_row(const struct gt_depthwise *d);

/* Returns the function for this processor, a number of columns of the filter and a stride; NULL: there is none. */
gt_depthwise_row *gt_cpu_depthwise(int64_t columns, int64_t stride);

#endif
