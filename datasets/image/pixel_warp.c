/* Affine maps of an image: Pillow's Image.transform(AFFINE). Its arithmetic depends on the map: whole pixels for a map without rotation and
 * shear, 16.16 fixed point for other maps, f64 for very large images and for the bilinear filter. */
#include "clones.h"
#include "image/pixel_ops.h"
#include <math.h>
#include <string.h>

static int64_t to_fixed_point(double v)
{
	return (int64_t)floor(v * 65536.0 + 0.5);
}

static int64_t floor_to_pixel(double v)
{
	return v < 0 ? -1 : (int64_t)v;
}

/* The functions below are compiled for a constant number of channels, so that a pixel is copied without a call. */
#define INLINE static inline __attribute__((always_inline))

INLINE void put_pixel(const uint8_t *in, int64_t h, int64_t w, int64_t x, int64_t y, size_t c, uint8_t *to, const uint8_t *fill)
{
	memcpy(to, x >= 0 && x < w && y >= 0 && y < h ? in + (size_t)(y * w + x) * c : fill, c);
}

static bool fits_fixed_point(const double m[6], double x, double y)
{
	return fabs(x * m[0] + y * m[1] + m[2]) < 32768 && fabs(x * m[3] + y * m[4] + m[5]) < 32768;
}

INLINE void warp_nearest(const uint8_t *in, uint8_t *out, int64_t h, int64_t w, size_t c, const double m[6], const uint8_t *fill)
{
	double dw = (double)w, dh = (double)h;
	bool straight = m[1] == 0 && m[3] == 0,
	     inside = fits_fixed_point(m, 0, 0) && fits_fixed_point(m, dw, dh) && fits_fixed_point(m, 0, dh) && fits_fixed_point(m, dw, 0);
	if (!straight && inside) {
		int64_t a0 = to_fixed_point(m[0]), a1 = to_fixed_point(m[1]), a3 = to_fixed_point(m[3]), a4 = to_fixed_point(m[4]);
		int64_t row_x = to_fixed_point(m[2] + m[0] * 0.5 + m[1] * 0.5), row_y = to_fixed_point(m[5] + m[3] * 0.5 + m[4] * 0.5);
		for (int64_t y = 0; y < h; y++, row_x += a1, row_y += a4) {
			int64_t at_x = row_x, at_y = row_y;
			for (int64_t x = 0; x < w; x++, out += c, at_x += a0, at_y += a3)
				put_pixel(in, h, w, at_x >> 16, at_y >> 16, c, out, fill);
		}
		return;
	}
	double row_x = m[2] + m[1] * 0.5 + m[0] * 0.5, row_y = m[5] + m[4] * 0.5 + m[3] * 0.5;
	for (int64_t y = 0; y < h; y++, row_x += m[1], row_y += m[4]) {
		double at_x = row_x, at_y = row_y;
		for (int64_t x = 0; x < w; x++, out += c, at_x += m[0], at_y += m[3])
			put_pixel(in, h, w, floor_to_pixel(at_x), floor_to_pixel(at_y), c, out, fill);
	}
}

INLINE void warp_bilinear(const uint8_t *in, uint8_t *out, int64_t h, int64_t w, size_t c, const double m[6], const uint8_t *fill)
{
	for (int64_t y = 0; y < h; y++)
		for (int64_t x = 0; x < w; x++, out += c) {
			double px = (double)x + 0.5, py = (double)y + 0.5, at_x = m[0] * px + m[1] * py + m[2], at_y = m[3] * px + m[4] * py + m[5];
			if (!(at_x >= 0 && at_x < (double)w && at_y >= 0 && at_y < (double)h)) {
				memcpy(out, fill, c);
				continue;
			}
			at_x -= 0.5;
			at_y -= 0.5;
			int64_t ix = (int64_t)floor(at_x), iy = (int64_t)floor(at_y);
			double dx = at_x - (double)ix, dy = at_y - (double)iy;
			const uint8_t *top = in + (size_t)((iy < 0 ? 0 : iy) * w) * c, *bottom = in + (size_t)((iy + 1 < h ? iy + 1 : iy) * w) * c;
			size_t left = (size_t)(ix < 0 ? 0 : ix) * c, right = (size_t)(ix + 1 < w ? ix + 1 : w - 1) * c;
			for (size_t k = 0; k < c; k++) {
				double a = top[left + k] + (double)(top[right + k] - top[left + k]) * dx,
				       b = bottom[left + k] + (double)(bottom[right + k] - bottom[left + k]) * dx;
				out[k] = (uint8_t)(a + (b - a) * dy);
			}
		}
}

GT_CLONES void gt_px_affine(const uint8_t *in, uint8_t *out, int64_t h, int64_t w, int c, const double m[6], bool bilinear,
                            const uint8_t *fill)
{
	if (c == 3 && bilinear)
		warp_bilinear(in, out, h, w, 3, m, fill);
	else if (c == 3)
		warp_nearest(in, out, h, w, 3, m, fill);
	else if (bilinear)
		warp_bilinear(in, out, h, w, (size_t)c, m, fill);
	else
		warp_nearest(in, out, h, w, (size_t)c, m, fill);
}

/* Rounds as Pillow's Image.rotate, so that right angles have exact zeros. */
static double round_to_15_digits(double v)
{
	return rint(v * 1e15) / 1e15;
}

void gt_px_rotation(double m[6], int64_t h, int64_t w, double degrees)
{
	double angle = -(fmod(fmod(degrees, 360) + 360, 360) * (M_PI / 180)), cx = (double)w / 2, cy = (double)h / 2;
	m[0] = round_to_15_digits(cos(angle));
	m[1] = round_to_15_digits(sin(angle));
	m[3] = round_to_15_digits(-sin(angle));
	m[4] = round_to_15_digits(cos(angle));
	m[2] = m[0] * -cx + m[1] * -cy + cx;
	m[5] = m[3] * -cx + m[4] * -cy + cy;
}
