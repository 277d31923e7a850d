/* A small copy of an image as a PNG file in memory. */
#ifndef GT_IMAGE_THUMBNAIL_H
#define GT_IMAGE_THUMBNAIL_H

#include "base/err.h"
#include <stddef.h>
#include <stdint.h>

struct gt_thumbnail {
	int64_t width, height;
	uint8_t *png; /* [n] the file; the caller frees it with free() */
	size_t n;
};

/* Shrinks an image by a whole factor, with the mean of the pixels, so that no side has more than `side` pixels. pixels:
 * [height * width * channels]; channels: 1 or 3. */
enum gt_code gt_thumbnail_make(const uint8_t *pixels, int64_t width, int64_t height, int channels, int64_t side, struct gt_thumbnail *out,
                               struct gt_err *err);

#endif
