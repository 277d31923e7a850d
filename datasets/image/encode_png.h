/* Writes PNG images.
 *
 *     GT_TRY(gt_png_encode(rgb, w, h, 3, &data, &n, err));
 *     free(data);
 */
#ifndef GT_IMAGE_ENCODE_PNG_H
#define GT_IMAGE_ENCODE_PNG_H

#include "base/err.h"
#include <stddef.h>
#include <stdint.h>

/* Encodes w x h pixels of c bytes each, 1 (grey) or 3 (RGB), row by row. Sets *data to *n malloc'ed bytes, which the caller frees. */
enum gt_code gt_png_encode(const uint8_t *pixels, int64_t w, int64_t h, int c, uint8_t **data, size_t *n, struct gt_err *err);

#endif
