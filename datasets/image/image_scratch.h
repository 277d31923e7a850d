/* Memory of one thread to decode and transform images: buffers that are reused for each image, libjpeg's state, and tables of weights.
 *
 *     GT_TRY(gt_scratch_take(s, GT_BUF_A, bytes, &p, err));       a buffer of bytes + GT_BUF_SLACK usable bytes
 */
#ifndef GT_IMAGE_IMAGE_SCRATCH_H
#define GT_IMAGE_IMAGE_SCRATCH_H

#include "base/err.h"
#include <stddef.h>
#include <stdint.h>

#define GT_BUF_SLACK 64

enum gt_scratch_buf {
	GT_BUF_DECODED, /* pixels from a decoder */
	GT_BUF_UPRIGHT, /* decoded pixels after rotation by the Exif orientation */
	GT_BUF_A,       /* result of a transform; consecutive transforms alternate between GT_BUF_A and GT_BUF_B */
	GT_BUF_B,
	GT_BUF_MID,     /* the image between the two passes of a resize */
	GT_BUF_BLOCK,   /* transposed rows of an image, used by the resize */
	GT_BUF_ROW,     /* one row */
	GT_BUF_TAPS_X,  /* weights of a resize along x */
	GT_BUF_TAPS_Y,
	GT_BUF_COUNT
};

/* The parameters from which a table of weights was made (resample.h). */
struct gt_taps_key {
	double from, to;
	int64_t in, out, begin, end;
	int interpolation, mirror;
};

struct gt_image_scratch {
	struct {
		uint8_t *p;
		size_t bytes;
	} buf[GT_BUF_COUNT];
	struct gt_taps_key taps[2]; /* parameters of the tables in GT_BUF_TAPS_X and GT_BUF_TAPS_Y; all 0: no table */
	struct gt_jpeg *jpeg;       /* NULL until the first JPEG (decode.h) */
};

/* Sets *out to a buffer of at least n bytes plus slack, whose content is undefined if it had to grow. */
enum gt_code gt_scratch_take(struct gt_image_scratch *s, enum gt_scratch_buf which, size_t n, uint8_t **out, struct gt_err *err);
/* Frees the largest buffers until the sum of all buffers is at most GT_IMAGE_SCRATCH_KEEP bytes. */
void gt_scratch_trim(struct gt_image_scratch *s);

#endif
