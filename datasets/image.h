/* Decoders and scaling of single images inside datasets/, for gt_image_read. */
#ifndef GT_DATASETS_IMAGE_H
#define GT_DATASETS_IMAGE_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GT_IMAGE_MAX_SIDE 65500                /* the limit of JPEG */
#define GT_IMAGE_MAX_PIXELS ((int64_t)1 << 26) /* 64 Mi: 192 MiB of RGB */

struct gt_pixels {
	int64_t w, h;
	int c;         /* number of channels: 1 (grey) or 3 (RGB) */
	uint8_t *data; /* h*w*c bytes, malloc'ed */
};

/* gt_png_decode and gt_jpeg_decode decode an image of `size` bytes. Errors name it by `name`. A grey image remains grey. Any other becomes
 * 8-bit RGB as by PIL's convert("RGB"): alpha is dropped, the high byte of 16-bit values is used, CMYK is converted, and colour profiles
 * are ignored. (PIL clamps 16-bit grey to 255; these functions use its high byte, as for colours.) The image is rotated by its Exif
 * orientation, as by PIL's ImageOps.exif_transpose. GT_EDATA: the image is damaged or truncated; nothing is returned of it. */
enum gt_code gt_png_decode(const uint8_t *raw, size_t size, const char *name, struct gt_pixels *out, struct gt_err *err);
enum gt_code gt_jpeg_decode(const uint8_t *raw, size_t size, const char *name, struct gt_pixels *out, struct gt_err *err);

/* Returns the Exif orientation, 1 to 8, from the body of segment APP1 of a JPEG or chunk eXIf of a PNG; 1 (upright) if the body has none or
 * is damaged. */
int gt_exif_orientation(const uint8_t *p, size_t n);
/* Rotates and mirrors an image that is stored with this orientation so that it is upright. */
enum gt_code gt_pixels_orient(struct gt_pixels *p, int orientation, struct gt_err *err);

/* Rejects an image whose size is zero or too large. Call it before memory is allocated for the pixels. */
enum gt_code gt_image_check_size(const char *name, int64_t w, int64_t h, struct gt_err *err);

/* Scales an image with a bilinear filter that is as wide as the reduction, which avoids aliasing. The arithmetic is that of PIL's
 * Image.resize(BILINEAR), which torchvision's Resize uses for PIL images. out: oh*ow*c bytes, channels interleaved like those of in. */
enum gt_code gt_image_resize(const uint8_t *in, int64_t h, int64_t w, int c, uint8_t *out, int64_t oh, int64_t ow, struct gt_err *err);

#endif
