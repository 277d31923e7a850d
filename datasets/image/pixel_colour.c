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
	v = v < 255 ? v : 255; /* in this form, gcc makes a minimum and a maximum of it */
	v = v > 0 ? v : 0;
	return (uint8_t)(int)v;
}

static inline int luma(const uint8_t *p)
{
	return (int)((p[0] * 19595u + p[1] * 38470u + p[2] * 7471u + 0x8000u) >> 16);
}

GT_CLONES static void blend_all(uint8_t *px, int64_t n, int from, float factor)
{
	for (int64_t i = 0; i < n; i++)
		px[i] = blend(from, px[i], factor);
}

GT_CLONES static int64_t sum_luma(const uint8_t *px, int64_t n, int c)
{
	int64_t sum = 0;
	for (int64_t i = 0; i < n;) { /* sums of 32 bits for up to 2^20 pixels */
		uint32_t part = 0;
		int64_t end = n - i < 1 << 20 ? n : i + (1 << 20);
		if (c == 3)
			for (; i < end; i++)
				part += (uint32_t)luma(px + 3 * i);
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
	blend_all(px, n * c, (int)((double)sum_luma(px, n, c) / (double)n + 0.5), (float)factor);
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

/* To Pillow's HSV (libImaging/Convert.c), a shift of H modulo 256, and back, for up to CHUNK pixels. Each step is rounded as there. The
 * loops select values instead of branching, so that they vectorise. */
enum { CHUNK = 256 };
GT_CLONES static void shift_hue(uint8_t *restrict px, int n, int by)
{
	int r[CHUNK], g[CHUNK], b[CHUNK];
	for (int i = 0; i < n; i++) {
		r[i] = px[3 * i];
		g[i] = px[3 * i + 1];
		b[i] = px[3 * i + 2];
	}
	for (int i = 0; i < n; i++) {
		int most = r[i] > g[i] ? r[i] : g[i], least = r[i] < g[i] ? r[i] : g[i];
		most = b[i] > most ? b[i] : most;
		least = b[i] < least ? b[i] : least;
		float range = (float)(most > least ? most - least : 1), of = (float)(most > 0 ? most : 1);
		float rc = (float)(most - r[i]) / range, gc = (float)(most - g[i]) / range, bc = (float)(most - b[i]) / range;
		float in_red = bc - gc, in_green = (float)(2.0 + (double)rc - (double)bc), in_blue = (float)(4.0 + (double)gc - (double)rc);
		float h = in_blue;
		h = g[i] == most ? in_green : h;
		h = r[i] == most ? in_red : h;
		double turns = (double)h / 6.0 + 1.0; /* 5/6 ... 2 - 1/6 */
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
		int red = (most & (m0 | m5)) | (q & m1) | (p & (m2 | m3)) | (t & m4);
		int green = (most & (m1 | m2)) | (t & m0) | (q & m3) | (p & (m4 | m5));
		int blue = (most & (m3 | m4)) | (p & (m0 | m1)) | (t & m2) | (q & m5);
		r[i] = (most & grey) | (red & ~grey);
		g[i] = (most & grey) | (green & ~grey);
		b[i] = (most & grey) | (blue & ~grey);
	}
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
