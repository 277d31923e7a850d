#include "image/thumbnail.h"
#include "base/arena.h"
#include "image/encode_png.h"
#include <stdlib.h>

enum gt_code gt_thumbnail_make(const uint8_t *pixels, int64_t width, int64_t height, int channels, int64_t side, struct gt_thumbnail *out,
                               struct gt_err *err)
{
	int64_t longest = width > height ? width : height, by = (longest + side - 1) / side, c = channels;
	int64_t w = width / by > 0 ? width / by : 1, h = height / by > 0 ? height / by : 1;
	uint8_t *small;
	int64_t size = w * h * c;
	GT_CALLOC(small, size, err);
	for (int64_t i = 0; i < size; i++) {
		int64_t x0 = i / c % w * by, y0 = i / c / w * by, sum = 0, n = 0;
		for (int64_t y = y0; y < y0 + by && y < height; y++)
			for (int64_t x = x0; x < x0 + by && x < width; x++, n++)
				sum += pixels[(y * width + x) * c + i % c];
		small[i] = (uint8_t)((sum + n / 2) / n);
	}
	*out = (struct gt_thumbnail){.width = w, .height = h};
	enum gt_code code = gt_png_encode(small, w, h, channels, &out->png, &out->n, err);
	free(small);
	return code;
}
