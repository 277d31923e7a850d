#include "image/decode.h"
#include <string.h>

enum gt_code gt_image_check_size(const char *name, int64_t w, int64_t h, struct gt_err *err)
{
	if (w < 1 || h < 1)
		return gt_fail(err, GT_EDATA, "%s: the image has no pixels (%lld x %lld)", name, (long long)w, (long long)h);
	if (w > GT_IMAGE_MAX_SIDE || h > GT_IMAGE_MAX_SIDE)
		return gt_fail(err, GT_EDATA, "%s: expected at most %d pixels on a side, got %lld x %lld", name, GT_IMAGE_MAX_SIDE, (long long)w,
		               (long long)h);
	if (w > GT_IMAGE_MAX_PIXELS / h)
		return gt_fail(err, GT_EDATA, "%s: expected at most %lld pixels, got %lld x %lld", name, (long long)GT_IMAGE_MAX_PIXELS,
		               (long long)w, (long long)h);
	return GT_OK;
}

enum gt_image_format gt_image_format_of(const uint8_t *raw, size_t size)
{
	if (size >= 8 && !memcmp(raw, "\x89PNG\r\n\x1a\n", 8))
		return GT_IMAGE_PNG;
	if (size >= 3 && raw[0] == 0xff && raw[1] == 0xd8 && raw[2] == 0xff)
		return GT_IMAGE_JPEG;
	if (size >= 12 && !memcmp(raw, "RIFF", 4) && !memcmp(raw + 8, "WEBP", 4))
		return GT_IMAGE_WEBP;
	return GT_IMAGE_UNKNOWN;
}

struct gt_decode_part gt_decode_whole(const struct gt_image_head *head)
{
	return (struct gt_decode_part){.reduce = 1, .x1 = head->w, .y1 = head->h};
}

enum gt_code gt_decode_head(const uint8_t *raw, size_t size, const char *name, struct gt_image_scratch *s, struct gt_image_head *head,
                            struct gt_err *err)
{
	*head = (struct gt_image_head){.format = gt_image_format_of(raw, size), .orientation = 1};
	switch (head->format) {
	case GT_IMAGE_JPEG:
		GT_TRY(gt_jpeg_head(raw, size, name, s, head, err));
		break;
	case GT_IMAGE_PNG:
		GT_TRY(gt_png_head(raw, size, name, head, err));
		break;
	case GT_IMAGE_WEBP:
		GT_TRY(gt_webp_head(raw, size, name, head, err));
		break;
	case GT_IMAGE_UNKNOWN:
		return size ? gt_fail(err, GT_EDATA, "%s: expected a JPEG, PNG or WebP image, got a file with other first bytes", name)
		            : gt_fail(err, GT_EDATA, "%s: expected a JPEG, PNG or WebP image, got an empty file", name);
	}
	if (head->orientation > 4) {
		int64_t w = head->w;
		head->w = head->h;
		head->h = w;
	}
	return GT_OK;
}

enum gt_code gt_decode_pixels(const uint8_t *raw, size_t size, const char *name, const struct gt_image_head *head,
                              const struct gt_decode_part *part, struct gt_image_scratch *s, struct gt_pixels *out, struct gt_err *err)
{
	struct gt_decode_part stored = *part;
	*out = (struct gt_pixels){0};
	if (head->orientation > 1) { /* the part refers to the upright image, so the whole image is decoded and rotated first */
		bool swapped = head->orientation > 4;
		stored.x0 = stored.y0 = 0;
		stored.x1 = ((swapped ? head->h : head->w) + part->reduce - 1) / part->reduce;
		stored.y1 = ((swapped ? head->w : head->h) + part->reduce - 1) / part->reduce;
	}
	if (head->format == GT_IMAGE_JPEG)
		GT_TRY(gt_jpeg_pixels(name, &stored, s, out, err));
	else if (head->format == GT_IMAGE_PNG)
		GT_TRY(gt_png_pixels(raw, size, name, s, out, err));
	else
		GT_TRY(gt_webp_pixels(raw, size, name, s, out, err));
	return gt_pixels_orient(out, head->orientation, s, err);
}

void gt_pixels_convert(const uint8_t *in, int from, uint8_t *out, size_t pixels)
{
	for (size_t i = 0; i < pixels && from == 1; i++)
		out[3 * i] = out[3 * i + 1] = out[3 * i + 2] = in[i];
	for (size_t i = 0; i < pixels && from == 3; i++)
		out[i] = (uint8_t)((in[3 * i] * 19595u + in[3 * i + 1] * 38470u + in[3 * i + 2] * 7471u + 0x8000u) >> 16);
}
