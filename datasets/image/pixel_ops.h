/* Operations on the colours and the geometry of u8 pixels, channels last, with the arithmetic of Pillow's ImageEnhance, ImageOps and
 * Image.transform. Functions without `out` work in place. n: number of pixels. Colours have c = 1 or 3 channels unless stated otherwise. */
#ifndef GT_IMAGE_PIXEL_OPS_H
#define GT_IMAGE_PIXEL_OPS_H

#include <stdbool.h>
#include <stdint.h>

/* Adjust brightness, contrast or saturation. Factor 1 leaves the image unchanged. Factor 0 makes it black (brightness), uniformly grey
 * (contrast) or greyscale (saturation). */
void gt_px_brightness(uint8_t *px, int64_t n, int c, double factor);
void gt_px_contrast(uint8_t *px, int64_t n, int c, double factor);
void gt_px_saturation(uint8_t *px, int64_t n, int c, double factor); /* c = 1: does nothing */
/* Shifts the hue by `shift` turns of the colour wheel, -0.5 ... 0.5. c = 1: does nothing. */
void gt_px_hue(uint8_t *px, int64_t n, int c, double shift);
void gt_px_grey(uint8_t *px, int64_t n, int c); /* sets all channels of a pixel to its luma */

void gt_px_posterize(uint8_t *px, int64_t n, int c, int bits); /* keeps the `bits` highest bits of each value, 0 ... 8 */
void gt_px_solarize(uint8_t *px, int64_t n, int c, double threshold); /* inverts each value that is >= threshold */
void gt_px_autocontrast(uint8_t *px, int64_t n, int c);
void gt_px_equalize(uint8_t *px, int64_t n, int c);

/* Changes the sharpness. Factor 0 smooths the image, 1 leaves it unchanged, above 1 sharpens it. out must not overlap in. */
void gt_px_sharpness(const uint8_t *in, uint8_t *out, int64_t h, int64_t w, int c, double factor);

/* Output pixel (x, y) is the input pixel at (m[0] x + m[1] y + m[2], m[3] x + m[4] y + m[5]), where pixel centres are at half-integers, or
 * `fill` (c bytes) outside of the input. Any number of channels. out must not overlap in. */
void gt_px_affine(const uint8_t *in, uint8_t *out, int64_t h, int64_t w, int c, const double m[6], bool bilinear, const uint8_t *fill);
/* Sets m to a rotation about the centre of an image by `degrees`, counter-clockwise. */
void gt_px_rotation(double m[6], int64_t h, int64_t w, double degrees);

#endif
