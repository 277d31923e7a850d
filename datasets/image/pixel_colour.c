/* Colour operations. An operation that maps each value independently first fills a table of 256 values. */
#include "clones.h"
#include "image/decode.h"
#include "image/pixel_ops.h"
#include "pixel.h"
#include <string.h>

static void map_bytes(uint8_t *px, int64_t n, const uint8_t *table)
{
	for (int64_t i = 0; i < n; i++)
		px[i] = table[px[i]];
}

static inline int pixel_luma(const uint8_t *p)
{
	return gt_pixel_luma(p[0], p[1], p[2]);
}

GT_CLONES static void blend_all(uint8_t *px, int64_t n, int from, float factor)
{
	for (int64_t i = 0; i < n; i++)
		px[i] = gt_pixel_blend(from, px[i], factor);
}

GT_CLONES static int64_t sum_luma(const uint8_t *px, int64_t n, int c)
{
	int64_t sum = 0;
	for (int64_t i = 0; i < n;) { /* sums at most 2^20 pixels at a time, so that a 32-bit sum cannot overflow */
		uint32_t part = 0;
		int64_t end = n - i < 1 << 20 ? n : i + (1 << 20);
		if (c == 3)
			for (; i < end; i++)
				part += (uint32_t)pixel_luma(px + 3 * i);
		else
			for (; i < end; i++)
				part += px[i];
		sum += part;
	}
	return sum;
}

void gt_px_brightness(uint8_t *px, int64_t n, int c, double factor)
{
	blend_all(px, n * c, 0, (float)factor);
}

void gt_px_contrast(uint8_t *px, int64_t n, int c, double factor)
{
	blend_all(px, n * c, gt_pixel_mean(sum_luma(px, n, c), n), (float)factor);
}

GT_CLONES void gt_px_saturation(uint8_t *px, int64_t n, int c, double factor)
{
	float alpha = (float)factor;
	if (c != 3)
		return;
	for (int64_t i = 0; i < n; i++, px += 3) {
		int grey = pixel_luma(px);
		for (int k = 0; k < 3; k++)
			px[k] = gt_pixel_blend(grey, px[k], alpha);
	}
}

void gt_px_grey(uint8_t *px, int64_t n, int c)
{
	if (c != 3)
		return;
	for (int64_t i = 0; i < n; i++, px += 3)
		px[0] = px[1] = px[2] = (uint8_t)pixel_luma(px);
}

/* Number of pixels per step: the conversion loop vectorises because its channels are not interleaved. */
enum { CHUNK = 256 };
GT_CLONES static void shift_hue(uint8_t *restrict px, int n, int by)
{
	int r[CHUNK], g[CHUNK], b[CHUNK];
	for (int i = 0; i < n; i++) {
		r[i] = px[3 * i];
		g[i] = px[3 * i + 1];
		b[i] = px[3 * i + 2];
	}
	for (int i = 0; i < n; i++)
		gt_pixel_shift_hue(&r[i], &g[i], &b[i], by);
	for (int i = 0; i < n; i++) {
		px[3 * i] = (uint8_t)r[i];
		px[3 * i + 1] = (uint8_t)g[i];
		px[3 * i + 2] = (uint8_t)b[i];
	}
}

void gt_px_hue(uint8_t *px, int64_t n, int c, double shift)
{
	for (int64_t i = 0; c == 3 && i < n; i += CHUNK)
		shift_hue(px + 3 * i, n - i < CHUNK ? (int)(n - i) : CHUNK, (int)(shift * 255) & 255);
}

void gt_px_posterize(uint8_t *px, int64_t n, int c, int bits)
{
	for (int64_t i = 0; i < n * c; i++)
		px[i] = (uint8_t)(px[i] & ~((1 << (8 - bits)) - 1));
}

void gt_px_solarize(uint8_t *px, int64_t n, int c, double threshold)
{
	uint8_t table[256];
	for (int i = 0; i < 256; i++)
		table[i] = (uint8_t)(i < threshold ? i : 255 - i);
	map_bytes(px, n * c, table);
}

static void count_values(const uint8_t *px, int64_t n, int c, int64_t count[3][256])
{
	memset(count, 0, 3 * sizeof count[0]);
	for (int64_t i = 0; i < n; i++)
		for (int k = 0; k < c; k++)
			count[k][px[i * c + k]]++;
}

static void map_channels(uint8_t *px, int64_t n, int c, const uint8_t table[3][256])
{
	for (int64_t i = 0; i < n; i++)
		for (int k = 0; k < c; k++)
			px[i * c + k] = table[k][px[i * c + k]];
}

static void fill_identity(uint8_t table[256])
{
	for (int i = 0; i < 256; i++)
		table[i] = (uint8_t)i;
}

void gt_px_autocontrast(uint8_t *px, int64_t n, int c)
{
	int64_t count[3][256];
	uint8_t table[3][256];
	count_values(px, n, c, count);
	for (int k = 0; k < c; k++) {
		int low = 0, high = 255;
		while (low < 255 && !count[k][low])
			low++;
		while (high > 0 && !count[k][high])
			high--;
		fill_identity(table[k]);
		double scale = 255.0 / (high - low), offset = -low * scale;
		for (int i = 0; high > low && i < 256; i++) {
			double v = i * scale + offset;
			table[k][i] = (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
		}
	}
	map_channels(px, n, c, (const uint8_t (*)[256])table);
}

void gt_px_equalize(uint8_t *px, int64_t n, int c)
{
	int64_t count[3][256];
	uint8_t table[3][256];
	count_values(px, n, c, count);
	for (int k = 0; k < c; k++) {
		int last = 255;
		while (last > 0 && !count[k][last])
			last--;
		int64_t step = (n - count[k][last]) / 255, sum = step / 2;
		fill_identity(table[k]);
		for (int i = 0; step && i < 256; i++) {
			int64_t v = sum / step;
			table[k][i] = (uint8_t)(v > 255 ? 255 : v);
			sum += count[k][i];
		}
	}
	map_channels(px, n, c, (const uint8_t (*)[256])table);
}

/* The smoothed image is Pillow's ImageFilter.SMOOTH: a weight of 5/13 in the centre, 1/13 around it, in f32; the border is copied. */
GT_CLONES static void sharpen_row(const uint8_t *in, int64_t row, uint8_t *out, int64_t begin, int64_t end, int c, float alpha)
{
	const float side = (float)(1 / 13.0), centre = (float)(5 / 13.0);
	for (int64_t i = begin; i < end; i++) {
		const uint8_t *p = in + i, *above = p - row, *below = p + row;
		float sum = 0.5f;
		sum += (float)below[-c] * side + (float)below[0] * side + (float)below[c] * side;
		sum += (float)p[-c] * side + (float)p[0] * centre + (float)p[c] * side;
		sum += (float)above[-c] * side + (float)above[0] * side + (float)above[c] * side;
		int smooth = sum >= 255 ? 255 : (int)sum;
		out[i] = gt_pixel_blend(smooth, *p, alpha);
	}
}

void gt_px_sharpness(const uint8_t *in, uint8_t *out, int64_t h, int64_t w, int c, double factor)
{
	int64_t row = w * c;
	memcpy(out, in, (size_t)(h * row)); /* the border pixels stay unchanged */
	for (int64_t y = 1; y < h - 1; y++)
		sharpen_row(in + y * row, row, out + y * row, c, row - c, c, (float)factor);
}
