/* Inside datasets/: decoders of one image and the scaler, for gt_image_read. */
#ifndef GT_DATASETS_IMAGE_H
#define GT_DATASETS_IMAGE_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GT_IMAGE_MAX_SIDE 65500                /* JPEG's own limit */
#define GT_IMAGE_MAX_PIXELS ((int64_t)1 << 26) /* 64 Mi: 192 MiB of RGB */

struct gt_pixels {
	int64_t w, h;
	int c;         /* 1 or 3 */
	uint8_t *data; /* h*w*c, malloc'ed */
};

/* name: for messages. Grey stays grey, everything else becomes 8-bit RGB: alpha is dropped, of 16 bits the high byte is taken, CMYK is
 * multiplied out, a colour profile is not applied, as PIL's convert("RGB") does it. (PIL cuts 16-bit grey off at 255, here it is
 * shortened as colours are.) The picture is turned upright, as PIL's ImageOps.exif_transpose does. A damaged or truncated image is
 * GT_EDATA: there are no half pictures. */
enum gt_code gt_png_decode(const uint8_t *raw, size_t size, const char *name, struct gt_pixels *out, struct gt_err *err);
enum gt_code gt_jpeg_decode(const uint8_t *raw, size_t size, const char *name, struct gt_pixels *out, struct gt_err *err);

/* The orientation, 1 to 8, in the body of a JPEG's APP1 or a PNG's eXIf; 1, upright, where there is none or it is damaged. */
int gt_exif_orientation(const uint8_t *p, size_t n);
/* Turns a picture stored in that orientation upright. */
enum gt_code gt_pixels_orient(struct gt_pixels *p, int orientation, struct gt_err *err);

/* Refuses sizes that are zero or absurd, before memory is taken. */
enum gt_code gt_image_check_size(const char *name, int64_t w, int64_t h, struct gt_err *err);

/* Bilinear, with the filter as wide as the reduction (no aliasing): the arithmetic of PIL's Image.resize(BILINEAR), which is what
 * torchvision's Resize does to a PIL image. out: oh*ow*c bytes, interleaved as in. */
enum gt_code gt_image_resize(const uint8_t *in, int64_t h, int64_t w, int c, uint8_t *out, int64_t oh, int64_t ow, struct gt_err *err);

#endif
