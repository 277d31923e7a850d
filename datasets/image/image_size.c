/* Limits for the size of an image. */
#include "image/decode.h"

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
