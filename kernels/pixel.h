/* The arithmetic of Pillow's ImageEnhance and of its conversions to grey and HSV, for one pixel of bytes. Compiled by gcc and by nvcc, so
 * that an image has the same bytes whether a thread of the host or a kernel changes its colours. */
#ifndef GT_KERNELS_PIXEL_H
#define GT_KERNELS_PIXEL_H

#include "base/philox.h"

/* Pillow's Image.blend: from + alpha (to - from) in f32, truncated; for alpha outside 0 ... 1, also clipped. */
GT_HD uint8_t gt_pixel_blend(int from, int to, float alpha)
{
	float v = (float)from + alpha * (float)(to - from);
	v = v < 255 ? v : 255; /* gcc compiles this form to a minimum and a maximum */
	v = v > 0 ? v : 0;
	return (uint8_t)(int)v;
}

/* ITU-R 601-2 luma in 16 bits, as PIL's convert("L"). */
GT_HD int gt_pixel_luma(int r, int g, int b)
{
	return (int)(((uint32_t)r * 19595u + (uint32_t)g * 38470u + (uint32_t)b * 7471u + 0x8000u) >> 16);
}

/* Returns the grey value with which a change of contrast blends an image: the mean of the lumas of its n pixels. */
GT_HD int gt_pixel_mean(int64_t sum, int64_t n)
{
	return (int)((double)sum / (double)n + 0.5);
}

/* Converts a pixel to Pillow's HSV (libImaging/Convert.c), shifts H by `by` modulo 256, and converts it back, rounding each step as Pillow
 * does. The code selects values instead of branching, so that a loop over pixels vectorises. */
GT_HD void gt_pixel_shift_hue(int *red, int *green, int *blue, int by)
{
	int r = *red, g = *green, b = *blue, most = r > g ? r : g, least = r < g ? r : g;
	most = b > most ? b : most;
	least = b < least ? b : least;
	float range = (float)(most > least ? most - least : 1), of = (float)(most > 0 ? most : 1);
	float rc = (float)(most - r) / range, gc = (float)(most - g) / range, bc = (float)(most - b) / range;
	float in_red = bc - gc, in_green = (float)(2.0 + (double)rc - (double)bc), in_blue = (float)(4.0 + (double)gc - (double)rc);
	float h = in_blue;
	h = g == most ? in_green : h;
	h = r == most ? in_red : h;
	double turns = (double)h / 6.0 + 1.0; /* the hue in turns, plus 1: in the range 5/6 ... 2 - 1/6 */
	h = (float)(turns >= 1 ? turns - 1 : turns);
	int hue = ((int)((double)h * 255.0) + by) & 255, saturation = (int)((double)((float)(most - least) / of) * 255.0);
	double position = (double)hue * 6.0 / 255.0; /* 0 ... 6 */
	int sextant = (int)position;
	float s = (float)((double)saturation / 255.0), f = (float)(position - (double)(float)sextant);
	int p = (int)((double)most * (1.0 - (double)s) + 0.5), q = (int)((double)most * (1.0 - (double)(s * f)) + 0.5),
	    t = (int)((double)most * (1.0 - (double)s * (1.0 - (double)f)) + 0.5);
	/* red, green and blue of each sextant: v t p, q v p, p v t, p q v, t p v, v p q; grey is v v v. The masks are 0 or -1. */
	int m0 = -(sextant == 0) | -(sextant == 6), m1 = -(sextant == 1), m2 = -(sextant == 2), m3 = -(sextant == 3), m4 = -(sextant == 4),
	    m5 = -(sextant == 5), grey = -(saturation == 0);
	int nr = (most & (m0 | m5)) | (q & m1) | (p & (m2 | m3)) | (t & m4);
	int ng = (most & (m1 | m2)) | (t & m0) | (q & m3) | (p & (m4 | m5));
	int nb = (most & (m3 | m4)) | (p & (m0 | m1)) | (t & m2) | (q & m5);
	*red = (most & grey) | (nr & ~grey);
	*green = (most & grey) | (ng & ~grey);
	*blue = (most & grey) | (nb & ~grey);
}

/* Returns the block of 16 random bytes that contains byte `at` of the noise with this key. */
GT_HD struct gt_philox gt_pixel_noise(uint64_t key, int64_t at)
{
	return gt_rng_draw(key, (uint32_t)(at / 16), 0, 0, 0);
}

/* Returns byte `at` of the noise from its block. A variable index would put the block on the stack of a kernel. */
GT_HD uint8_t gt_pixel_noise_byte(const struct gt_philox *r, int64_t at)
{
	uint32_t word = at & 8 ? (at & 4 ? r->v[3] : r->v[2]) : (at & 4 ? r->v[1] : r->v[0]);
	return (uint8_t)(word >> (at & 3) * 8);
}

#endif
