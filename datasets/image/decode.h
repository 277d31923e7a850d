/* Decoders of single images. They write into the buffers of a scratch, and reject damaged files.
 *
 *     struct gt_image_head head;
 *     gt_decode_head(raw, size, name, scratch, &head, err);               format and size, from the header
 *     struct gt_decode_part part = gt_decode_whole(&head);                or a smaller part, or fewer pixels of a JPEG
 *     gt_decode_pixels(raw, size, name, &head, &part, scratch, &pixels, err);
 */
#ifndef GT_IMAGE_DECODE_H
#define GT_IMAGE_DECODE_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GT_IMAGE_MAX_SIDE 65500                /* maximum width or height of an image in pixels; the limit of JPEG */
#define GT_IMAGE_MAX_PIXELS ((int64_t)1 << 26) /* maximum number of pixels of an image: 64 Mi, which are 192 MiB as RGB */

struct gt_image_scratch;
struct gt_jpeg; /* state of libjpeg, in a scratch */

enum gt_image_format { GT_IMAGE_UNKNOWN, GT_IMAGE_JPEG, GT_IMAGE_PNG, GT_IMAGE_WEBP };

struct gt_image_head {
	enum gt_image_format format;
	int64_t w, h;    /* size of the upright image in pixels */
	int c;           /* number of channels of the decoded image: 1 (grey) or 3 (RGB) */
	int orientation; /* Exif orientation of the stored pixels, 1 (upright) to 8 */
};

/* The part of an image to decode: at least the pixels x0 <= x < x1, y0 <= y < y1 after a reduction by `reduce`. */
struct gt_decode_part {
	int reduce;             /* 1, 2, 4 or 8: a pixel is the mean of reduce x reduce pixels, computed by a smaller DCT; 1 for formats other
	                           than JPEG. */
	int64_t x0, y0, x1, y1; /* part of the reduced image in its pixels: x0 <= x < x1, y0 <= y < y1. The size of the reduced image is rounded
	                           up */
};

struct gt_pixels {
	int64_t w, h;
	int64_t left, top;  /* position of the first decoded pixel in the whole image */
	int c;              /* number of channels: 1 (grey) or 3 (RGB) */
	const uint8_t *data; /* h * w * c bytes, owned by the scratch */
};

/* Recognises a format by the first bytes of a file; 12 bytes suffice. */
enum gt_image_format gt_image_format_of(const uint8_t *raw, size_t size);
struct gt_decode_part gt_decode_whole(const struct gt_image_head *head);

/* Decode an image of `size` bytes; `name` is for error messages. A grey image remains grey. Any other image becomes 8-bit RGB as by PIL's
 * convert("RGB"): alpha is dropped, 16-bit values are reduced to their high byte, CMYK is converted, and colour profiles are ignored. (PIL
 * clamps 16-bit grey to 255; these functions use the high byte.) The image is rotated by its Exif orientation, as by PIL's
 * ImageOps.exif_transpose. GT_EDATA: the image is damaged or truncated. Call gt_decode_pixels directly after gt_decode_head, with the same
 * scratch. A part has the same pixel values as in the whole image; damage after the part may remain unnoticed. */
enum gt_code gt_decode_head(const uint8_t *raw, size_t size, const char *name, struct gt_image_scratch *s, struct gt_image_head *head,
                            struct gt_err *err);
enum gt_code gt_decode_pixels(const uint8_t *raw, size_t size, const char *name, const struct gt_image_head *head,
                              const struct gt_decode_part *part, struct gt_image_scratch *s, struct gt_pixels *out, struct gt_err *err);

/* Converts pixels from `from` channels (1 or 3) to 3 or 1 channels. Grey to RGB repeats the value; RGB to grey computes ITU-R 601-2 luma in
 * 16 bits, as PIL's convert("L"). in and out must not overlap. */
void gt_pixels_convert(const uint8_t *in, int from, uint8_t *out, size_t pixels);

/* ---- for the decoders ----------------------------------------------------------------------------------------------------- */
/* Returns the Exif orientation, 1 to 8, from the body of segment APP1 of a JPEG, chunk eXIf of a PNG or chunk EXIF of a WebP; 1 (upright)
 * if the body lacks the orientation or is damaged. */
int gt_exif_orientation(const uint8_t *p, size_t n);
/* Sets *x to whether the columns of the upright image have the reverse order of their axis in the stored image, and *y to the same for its
 * rows. */
void gt_orientation_mirrors(int orientation, bool *x, bool *y);
/* Rotates and mirrors an image with this stored orientation so that it becomes upright. */
enum gt_code gt_pixels_orient(struct gt_pixels *p, int orientation, struct gt_image_scratch *s, struct gt_err *err);

/* Rejects an image whose size is zero or too large. Call it before memory is allocated for the pixels. */
enum gt_code gt_image_check_size(const char *name, int64_t w, int64_t h, struct gt_err *err);

/* The decoders of JPEG, PNG and WebP. *_head sets all members of *head except `format`; w and h are the size of the stored image, before
 * its Exif orientation is applied. */
enum gt_code gt_jpeg_head(const uint8_t *raw, size_t size, const char *name, struct gt_image_scratch *s, struct gt_image_head *head,
                          struct gt_err *err);
enum gt_code gt_jpeg_pixels(const char *name, const struct gt_decode_part *part, struct gt_image_scratch *s, struct gt_pixels *out,
                            struct gt_err *err);
void gt_jpeg_close(struct gt_jpeg *j); /* accepts NULL */
enum gt_code gt_png_head(const uint8_t *raw, size_t size, const char *name, struct gt_image_head *head, struct gt_err *err);
enum gt_code gt_png_pixels(const uint8_t *raw, size_t size, const char *name, struct gt_image_scratch *s, struct gt_pixels *out,
                           struct gt_err *err);
enum gt_code gt_webp_head(const uint8_t *raw, size_t size, const char *name, struct gt_image_head *head, struct gt_err *err);
enum gt_code gt_webp_pixels(const uint8_t *raw, size_t size, const char *name, struct gt_image_scratch *s, struct gt_pixels *out,
                            struct gt_err *err);

/* Each function writes the name and version of a library to buf, "libpng 1.6.37", for `gtrain --version`. */
const char *gt_image_png_library(char *buf, size_t size);
const char *gt_image_jpeg_library(char *buf, size_t size);
const char *gt_image_webp_library(char *buf, size_t size);

#endif
