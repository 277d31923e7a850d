/* Changes of colours. An operation that maps each value alone fills a table of 256 values first. */
#include "clones.h"
#include "image/decode.h"
#include "image/pixel_ops.h"
#include <math.h>
#include <string.h>

static void map(uint8_t *px, int64_t n, const uint8_t *table)
{
	for (int64_t i = 0; i < n; i++)
		px[i] = table[px[i]];
}

/* Pillow's Image.blend: from + alpha (to - from) in f32, truncated; beyond 0 ... 1 it is clipped too. */
static inline uint8_t blend(int from, int to, float alpha)
{
	float v = (float)from + alpha * (float)(to - from);
	return v <= 0 ? 0 : v >= 255 ? 255 : (uint8_t)v;
}

static inline int luma(const uint8_t *p)
{
	return (int)((p[0] * 19595u + p[1] * 38470u + p[2] * 7471u + 0x8000u) >> 16);
}

static void blend_all(uint8_t *px, int64_t n, int from, double factor)
{
	uint8_t table[256];
	for (int i = 0; i < 256; i++)
		table[i] = blend(from, i, (float)factor);
	map(px, n, table);
}

void gt_px_brightness(uint8_t *px, int64_t n, int c, double factor)
{
	blend_all(px, n * c, 0, factor);
}

void gt_px_contrast(uint8_t *px, int64_t n, int c, double factor)
{
	int64_t sum = 0;
	for (int64_t i = 0; i < n; i++)
		sum += c == 3 ? luma(px + 3 * i) : px[i];
	blend_all(px, n * c, (int)((double)sum / (double)n + 0.5), factor);
}

GT_CLONES void gt_px_saturation(uint8_t *px, int64_t n, int c, double factor)
{
	float alpha = (float)factor;
	if (c != 3)
		return;
	for (int64_t i = 0; i < n; i++, px += 3) {
		int grey = luma(px);
		for (int k = 0; k < 3; k++)
			px[k] = blend(grey, px[k], alpha);
	}
}

void gt_px_grey(uint8_t *px, int64_t n, int c)
{
	if (c != 3)
		return;
	for (int64_t i = 0; i < n; i++, px += 3)
		px[0] = px[1] = px[2] = (uint8_t)luma(px);
}

/* To Pillow's HSV (libImaging/Convert.c), a shift of H modulo 256, and back. Each step is rounded as there. */
void gt_px_hue(uint8_t *px, int64_t n, int c, double shift)
{
	uint8_t by = (uint8_t)(int)(shift * 255);
	struct {
		int sextant;
		float rest;
	} of[256]; /* by hue */
	if (c != 3)
		return;
	for (int i = 0; i < 256; i++) {
		of[i].sextant = (int)floor((double)i * 6.0 / 255.0);
		of[i].rest = (float)((double)i * 6.0 / 255.0 - (double)(float)of[i].sextant);
	}
	for (int64_t i = 0; i < n; i++, px += 3) {
		int r = px[0], g = px[1], b = px[2], most = r > g ? r : g, least = r < g ? r : g;
		most = b > most ? b : most;
		least = b < least ? b : least;
		if (least == most) /* grey: no hue */
			continue;
		float range = (float)(most - least), h;
		float rc = (float)(most - r) / range, gc = (float)(most - g) / range, bc = (float)(most - b) / range;
		h = r == most ? bc - gc : g == most ? (float)(2.0 + (double)rc - (double)bc) : (float)(4.0 + (double)gc - (double)rc);
		double turned = (double)h / 6.0 + 1.0;
		h = (float)(turned - floor(turned));
		uint8_t hue = (uint8_t)((uint8_t)(int)((double)h * 255.0) + by);
		uint8_t saturation = (uint8_t)(int)((double)(range / (float)most) * 255.0);
		if (!saturation) {
			px[0] = px[1] = px[2] = (uint8_t)most;
			continue;
		}
		float s = (float)((double)saturation / 255.0), f = of[hue].rest;
		uint8_t v = (uint8_t)most, p = (uint8_t)(int)((double)most * (1.0 - (double)s) + 0.5),
		        q = (uint8_t)(int)((double)most * (1.0 - (double)(s * f)) + 0.5),
		        t = (uint8_t)(int)((double)most * (1.0 - (double)s * (1.0 - (double)f)) + 0.5);
		const uint8_t to[6][3] = {{v, t, p}, {q, v, p}, {p, v, t}, {p, q, v}, {t, p, v}, {v, p, q}};
		memcpy(px, to[of[hue].sextant % 6], 3);
	}
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
	map(px, n * c, table);
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

static void identity(uint8_t table[256])
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
		identity(table[k]);
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
		identity(table[k]);
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
		out[i] = blend(smooth, *p, alpha);
	}
}

void gt_px_sharpness(const uint8_t *in, uint8_t *out, int64_t h, int64_t w, int c, double factor)
{
	int64_t row = w * c;
	memcpy(out, in, (size_t)(h * row)); /* the border, whose blend with itself is itself */
	for (int64_t y = 1; y < h - 1; y++)
		sharpen_row(in + y * row, row, out + y * row, c, row - c, c, (float)factor);
}
