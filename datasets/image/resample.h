/* Resizes an image as Pillow's Image.resize, which torchvision uses for PIL images: the width of the filter grows with the reduction, which
 * avoids aliasing.
 *
 *     struct gt_resample r = {.y = {.to = h, .in = h, .out = 128, .end = 128}, .x = {…}, …};
 *     gt_resample_range(&r);                          r.y.first, r.y.last: the range of input pixels that the result depends on
 *     gt_resample_prepare(&r, scratch, err);          computes the weights
 *     gt_resample(&r, pixels, …, out, scratch, err);
 */
#ifndef GT_IMAGE_RESAMPLE_H
#define GT_IMAGE_RESAMPLE_H

#include "base/err.h"
#include "image/image_scratch.h"
#include <stdbool.h>

/* One axis. The box [from, to) of the input, in pixels, becomes `out` pixels, but only the output pixels of the window [begin, end) are
 * computed. Only input pixels 0 <= i < in are read. */
struct gt_resample_axis {
	double from, to;
	int64_t in, out, begin, end;
	bool mirror; /* write the output pixels of the window in reverse order */
	/* set by gt_resample_range */
	int64_t first, last;                   /* range of input pixels that the window needs: first <= i < last */
	int64_t most;                          /* maximum number of input pixels that contribute to an output pixel */
	/* set by gt_resample_prepare */
	const int32_t *start, *count, *weight; /* for pixel i of the window: first input pixel, number of weights, and the weights from weight[i
	                                          * most] on, in units of 2^-22 */
};

struct gt_resample {
	struct gt_resample_axis x, y;
	int interpolation; /* GT_INTERP_BILINEAR or GT_INTERP_BICUBIC */
};

void gt_resample_range(struct gt_resample *r);
/* Calls gt_resample_range(r), then computes the weights of both axes in the memory of s. */
enum gt_code gt_resample_prepare(struct gt_resample *r, struct gt_image_scratch *s, struct gt_err *err);
/* Returns whether columns are scaled before rows: if the height shrinks more than twice as much as the width. The order changes the
 * rounding of the result. */
bool gt_resample_columns_first(const struct gt_resample *r);
/* in: pixel (left, top) of the input, with `stride` bytes per row; at least the pixels that the window needs are there. out: the window,
 * (y.end - y.begin) * (x.end - x.begin) * c bytes. */
enum gt_code gt_resample(const struct gt_resample *r, const uint8_t *in, int64_t left, int64_t top, int64_t stride, int c, uint8_t *out,
                         struct gt_image_scratch *s, struct gt_err *err);

#endif
