/* WebP, by libwebp. The Exif chunk is found by a walk over the chunks of the RIFF container (WebP Container Specification). */
#include "base/arena.h"
#include "image/decode.h"
#include "image/image_scratch.h"
#include <stdio.h>
#include <string.h>
#include <webp/decode.h>

static size_t read_le32(const uint8_t *p)
{
	return (size_t)p[0] | (size_t)p[1] << 8 | (size_t)p[2] << 16 | (size_t)p[3] << 24;
}

static int orientation_of(const uint8_t *raw, size_t size)
{
	for (size_t at = 12; at <= size && size - at >= 8;) {
		size_t n = read_le32(raw + at + 4);
		if (n > size - at - 8)
			return 1;
		if (!memcmp(raw + at, "EXIF", 4))
			return gt_exif_orientation(raw + at + 8, n);
		at += 8 + n + (n & 1);
	}
	return 1;
}

static const char *describe_status(VP8StatusCode code)
{
	return code == VP8_STATUS_NOT_ENOUGH_DATA        ? "the file is truncated"
	       : code == VP8_STATUS_UNSUPPORTED_FEATURE ? "the file uses a feature that libwebp does not support"
	                                                : "the file is damaged";
}

enum gt_code gt_webp_head(const uint8_t *raw, size_t size, const char *name, struct gt_image_head *head, struct gt_err *err)
{
	WebPBitstreamFeatures f;
	VP8StatusCode code = WebPGetFeatures(raw, size, &f);
	if (code != VP8_STATUS_OK)
		return gt_fail(err, GT_EDATA, "%s: WebP: %s", name, describe_status(code));
	if (f.has_animation)
		return gt_fail(err, GT_EDATA, "%s: WebP: expected a single image, got an animation", name);
	head->w = f.width;
	head->h = f.height;
	head->c = 3;
	head->orientation = orientation_of(raw, size);
	return gt_image_check_size(name, head->w, head->h, err);
}

enum gt_code gt_webp_pixels(const uint8_t *raw, size_t size, const char *name, struct gt_image_scratch *s, struct gt_pixels *out,
                            struct gt_err *err)
{
	WebPDecoderConfig conf;
	if (!WebPInitDecoderConfig(&conf))
		return gt_fail(err, GT_EINTERNAL, "%s: WebP: gtrain was built with a different version of libwebp than is installed", name);
	VP8StatusCode code = WebPGetFeatures(raw, size, &conf.input);
	if (code == VP8_STATUS_OK) {
		size_t bytes = (size_t)conf.input.width * (size_t)conf.input.height * 3;
		uint8_t *data;
		GT_TRY(gt_scratch_take(s, GT_BUF_DECODED, bytes, &data, err));
		conf.output.colorspace = MODE_RGB;
		conf.output.u.RGBA.rgba = data;
		conf.output.u.RGBA.stride = conf.input.width * 3;
		conf.output.u.RGBA.size = bytes;
		conf.output.is_external_memory = 1;
		code = WebPDecode(raw, size, &conf);
		out->data = data;
		WebPFreeDecBuffer(&conf.output);
	}
	if (code == VP8_STATUS_OUT_OF_MEMORY)
		return gt_fail_memory(err, (size_t)conf.input.width * (size_t)conf.input.height * 4);
	if (code != VP8_STATUS_OK)
		return gt_fail(err, GT_EDATA, "%s: WebP: %s", name, describe_status(code));
	out->w = conf.input.width;
	out->h = conf.input.height;
	out->c = 3;
	return GT_OK;
}

const char *gt_image_webp_library(char *buf, size_t size)
{
	int v = WebPGetDecoderVersion();
	snprintf(buf, size, "libwebp %d.%d.%d", v >> 16, v >> 8 & 255, v & 255);
	return buf;
}
