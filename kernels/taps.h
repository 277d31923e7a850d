/* The weights by which Pillow's Image.resize adds up pixels of the input for one pixel of the output (Pillow, "Concepts: Filters";
 * Resample.c), along one axis. Compiled by gcc and by nvcc, so that the host and kernels resize images to the same bytes.
 *
 *     struct gt_taps t = gt_taps_of(from, to, in, out, bicubic);
 *     struct gt_taps_span s = gt_taps_span(&t, i);               output pixel i, 0 ... out - 1
 *     for (int64_t x = s.first; x < s.last; x++)
 *         sum += gt_taps_weight(&t, &s, x) * pixel[x];
 *     byte = gt_taps_clip(GT_TAPS_HALF + sum);
 */
#ifndef GT_KERNELS_TAPS_H
#define GT_KERNELS_TAPS_H

#include "base/philox.h"
#include <stdbool.h>

#define GT_TAPS_BITS 22 /* weights are in units of 2^-22 */
#define GT_TAPS_HALF (1 << (GT_TAPS_BITS - 1))

/* The box [from, to) of an axis with `in` pixels becomes `out` pixels. */
struct gt_taps {
	double from, scale, support, inverse;
	int64_t in;
	bool bicubic;
};

/* The input pixels first <= x < last of an output pixel. */
struct gt_taps_span {
	double centre, sum; /* sum: sum of the weights before they are normalised */
	int64_t first, last;
};

GT_HD struct gt_taps gt_taps_of(double from, double to, int64_t in, int64_t out, bool bicubic)
{
	struct gt_taps t;
	t.from = from;
	t.scale = (to - from) / (double)out;
	double wide = t.scale < 1 ? 1 : t.scale;
	t.inverse = 1 / wide;
	t.support = (bicubic ? 2 : 1) * wide;
	t.in = in;
	t.bicubic = bicubic;
	return t;
}

/* Returns the weight of a pixel at distance x from the centre: the triangle filter or, if bicubic is true, Keys' cubic with a = -0.5. */
GT_HD double gt_taps_filter(bool bicubic, double x)
{
	const double a = -0.5;
	x = x < 0 ? -x : x;
	if (!bicubic)
		return x < 1 ? 1 - x : 0;
	return x < 1 ? ((a + 2) * x - (a + 3)) * x * x + 1 : x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

GT_HD double gt_taps_unscaled(const struct gt_taps *t, const struct gt_taps_span *s, int64_t x)
{
	return gt_taps_filter(t->bicubic, ((double)x - s->centre + 0.5) * t->inverse);
}

GT_HD struct gt_taps_span gt_taps_span(const struct gt_taps *t, int64_t i)
{
	struct gt_taps_span s;
	s.centre = t->from + ((double)i + 0.5) * t->scale;
	s.sum = 0;
	s.first = (int64_t)(s.centre - t->support + 0.5);
	s.last = (int64_t)(s.centre + t->support + 0.5);
	s.first = s.first < 0 ? 0 : s.first;
	s.last = s.last > t->in ? t->in : s.last;
	for (int64_t x = s.first; x < s.last; x++)
		s.sum += gt_taps_unscaled(t, &s, x);
	return s;
}

GT_HD int32_t gt_taps_weight(const struct gt_taps *t, const struct gt_taps_span *s, int64_t x)
{
	double k = gt_taps_unscaled(t, s, x);
	k = (s->sum != 0 ? k / s->sum : k) * (1 << GT_TAPS_BITS);
	return (int32_t)(k < 0 ? k - 0.5 : k + 0.5);
}

/* Returns the byte of a sum of weighted bytes and GT_TAPS_HALF. */
GT_HD uint8_t gt_taps_clip(int32_t sum)
{
	sum >>= GT_TAPS_BITS;
	sum = sum < 255 ? sum : 255; /* gcc compiles this form to a minimum and a maximum */
	sum = sum > 0 ? sum : 0;
	return (uint8_t)sum;
}

#endif
