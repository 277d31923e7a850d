/* A band of an image for the direct convolutions (conv_direct.c, conv_direct_dw.c): a copy of some of its rows, with zeros around them, so
 * that the loops over pixels have no conditions at the borders. */
#ifndef GT_CPU_CONV_BAND_H
#define GT_CPU_CONV_BAND_H

#include <stdint.h>
#include <string.h>

struct gt_conv_band {
	int64_t h, wide, in; /* the image [h][wide][in] */
	int64_t left;        /* columns of zeros on the left */
	int64_t rows, cols;  /* pixels of the band */
	int64_t ld;          /* floats between two pixels of the band: more than `in` if a power of two would map to few cache sets */
};

static inline int64_t gt_conv_band_ld(int64_t in)
{
	return in % 64 ? in : in + 16;
}

static inline int64_t gt_conv_band_floats(const struct gt_conv_band *b)
{
	return b->rows * b->cols * b->ld;
}

/* Copies rows first … first + rows - 1 of an image, of which those outside of the image are zeros. */
static inline void gt_conv_band_copy(const struct gt_conv_band *b, const float *image, int64_t first, int64_t rows, float *to)
{
	for (int64_t y = first; y < first + rows; y++, to += b->cols * b->ld) {
		int64_t inside = b->cols - b->left < b->wide ? b->cols - b->left : b->wide, row = b->cols * b->ld, begin = b->left * b->ld;
		const float *from = image + y * b->wide * b->in;
		if (y < 0 || y >= b->h) {
			memset(to, 0, (size_t)row * sizeof *to);
			continue;
		}
		memset(to, 0, (size_t)begin * sizeof *to);
		if (b->ld == b->in)
			memcpy(to + begin, from, (size_t)(inside * b->in) * sizeof *to);
		for (int64_t x = 0; b->ld > b->in && x < inside; x++)
			memcpy(to + begin + x * b->ld, from + x * b->in, (size_t)b->in * sizeof *to);
		memset(to + begin + inside * b->ld, 0, (size_t)(row - begin - inside * b->ld) * sizeof *to);
	}
}

#endif
