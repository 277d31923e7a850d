#include "image/encode_png.h"
#include "base/arena.h"
#include <png.h>
#include <stdlib.h>

enum gt_code gt_png_encode(const uint8_t *pixels, int64_t w, int64_t h, int c, uint8_t **data, size_t *n, struct gt_err *err)
{
	png_image image = {.version = PNG_IMAGE_VERSION, .width = (png_uint_32)w, .height = (png_uint_32)h,
	                   .format = c == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY};
	png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
	*n = 0;
	if (!(*data = malloc(size)))
		return gt_fail_memory(err, size);
	if (!png_image_write_to_memory(&image, *data, &size, 0, pixels, 0, NULL)) {
		free(*data);
		*data = NULL;
		return gt_fail(err, GT_EFAIL, "cannot encode a PNG image of %lld x %lld pixels: %s", (long long)w, (long long)h, image.message);
	}
	*n = size;
	return GT_OK;
}
