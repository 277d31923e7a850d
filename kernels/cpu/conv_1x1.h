/* The product of pixels and a panel of constant weights, which conv_1x1.c and conv_pair.c use.
 *
 *     panels of w [out, in]:    panel i = columns [i * width, (i + 1) * width), [in][width], the last one padded with zeros
 *     y[rows][columns of a panel] = act(bias + x[rows][in] panel[in][columns]) */
#ifndef GT_KERNELS_CPU_CONV_1X1_H
#define GT_KERNELS_CPU_CONV_1X1_H

#include <stdint.h>

/* A block of the result: rows of pixels, and the columns of one panel. */
struct gt_product {
	const float *a, *panel, *bias; /* a: [rows][lda]; bias NULL: adds to y */
	float *y;
	int64_t lda, ld, rows, n; /* ld: distance between rows of y; n: length of the part of the sum */
	int64_t cols;             /* columns that exist, at most the width of a panel */
	const float *next;        /* the panel of the next block. It is prefetched while this one is used, a part in each group of rows */
	int64_t step;             /* distance in floats between two lines that are prefetched */
	int act;                  /* enum gt_act: none, relu or relu6 */
};

struct gt_conv_isa {
	int64_t width; /* columns of a panel: two vectors */
	void (*multiply)(const struct gt_product *p);
	void (*add_bias)(const float *res, const float *bias, float *y, int64_t rows, int64_t cols);
};

#define GT_CONV_PART 256 /* maximum number of input channels that are summed at once, so that their weights stay in the L1 cache */

const struct gt_conv_isa *gt_cpu_conv_isa(void); /* NULL: there is none for this processor */

/* Packs panels [begin, end) of w. */
void gt_cpu_pack_panels(const struct gt_conv_isa *isa, const float *w, int64_t in, int64_t out, float *panels, int64_t begin, int64_t end);

#endif
