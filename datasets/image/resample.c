/* Two passes, over rows and over columns: each output pixel is a weighted sum of a run of pixels, in fixed point with 22 bits of
 * weight and 8 bits between the passes (Pillow, "Concepts: Filters"; Resample.c). */
#include "image/resample.h"
#include "clones.h"
#include "image/transform.h"
#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { BITS = 22, HALF = 1 << (BITS - 1), ROWS = 4, LANES = 16 };

/* ---- weights -------------------------------------------------------------------------------------------------------------- */
static double filter(int interpolation, double x)
{
	x = fabs(x);
	if (interpolation == GT_INTERP_BILINEAR)
		return x < 1 ? 1 - x : 0;
	static const double a = -0.5; /* Keys' cubic, as Pillow */
	return x < 1 ? ((a + 2) * x - (a + 3)) * x * x + 1 : x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

static void make_weights(struct gt_resample_axis *t, int interpolation, int32_t *start, int32_t *count, int32_t *weight)
{
	double scale = (t->to - t->from) / (double)t->out, wide = scale < 1 ? 1 : scale, inverse = 1 / wide,
	       support = (interpolation == GT_INTERP_BICUBIC ? 2 : 1) * wide;
	for (int64_t i = 0; i < t->end - t->begin; i++) {
		double centre = t->from + ((double)(t->mirror ? t->end - 1 - i : t->begin + i) + 0.5) * scale, sum = 0;
		int64_t from = (int64_t)(centre - support + 0.5), to = (int64_t)(centre + support + 0.5);
		from = from < 0 ? 0 : from;
		to = to > t->in ? t->in : to;
		for (int64_t x = from; x < to; x++)
			sum += filter(interpolation, ((double)x - centre + 0.5) * inverse);
		for (int64_t x = from; x < to; x++) {
			double k = filter(interpolation, ((double)x - centre + 0.5) * inverse);
			k = (sum != 0 ? k / sum : k) * (1 << BITS);
			weight[i * t->most + x - from] = (int32_t)(k < 0 ? k - 0.5 : k + 0.5);
		}
		start[i] = (int32_t)from;
		count[i] = (int32_t)(to - from);
	}
}

static enum gt_code prepare_axis(struct gt_resample_axis *t, int axis, int interpolation, struct gt_image_scratch *s, struct gt_err *err)
{
	enum gt_scratch_buf which = axis ? GT_BUF_TAPS_Y : GT_BUF_TAPS_X;
	struct gt_taps_key key;
	double scale = (t->to - t->from) / (double)t->out;
	size_t n = (size_t)(t->end - t->begin);
	uint8_t *memory;
	memset(&key, 0, sizeof key); /* padding is compared too */
	key.from = t->from;
	key.to = t->to;
	key.in = t->in;
	key.out = t->out;
	key.begin = t->begin;
	key.end = t->end;
	key.interpolation = interpolation;
	key.mirror = t->mirror;
	t->most = (int64_t)ceil((interpolation == GT_INTERP_BICUBIC ? 2 : 1) * (scale < 1 ? 1 : scale)) * 2 + 1;
	bool kept = !memcmp(&key, &s->taps[axis], sizeof key);
	GT_TRY(gt_scratch_take(s, which, (n * 2 + n * (size_t)t->most) * sizeof(int32_t), &memory, err));
	int32_t *start = (int32_t *)(void *)memory, *count = start + n, *weight = count + n;
	if (!kept)
		make_weights(t, interpolation, start, count, weight);
	s->taps[axis] = key;
	t->start = start;
	t->count = count;
	t->weight = weight;
	t->first = start[t->mirror ? n - 1 : 0];
	t->last = t->mirror ? start[0] + count[0] : start[n - 1] + count[n - 1];
	return GT_OK;
}

enum gt_code gt_resample_prepare(struct gt_resample *r, struct gt_image_scratch *s, struct gt_err *err)
{
	GT_TRY(prepare_axis(&r->x, 0, r->interpolation, s, err));
	return prepare_axis(&r->y, 1, r->interpolation, s, err);
}

/* ---- passes --------------------------------------------------------------------------------------------------------------- */
typedef int32_t v4 __attribute__((vector_size(16)));
typedef uint8_t v4b __attribute__((vector_size(4)));
typedef int32_t v16 __attribute__((vector_size(64)));
typedef uint8_t v16b __attribute__((vector_size(16)));

static inline uint8_t clip(int32_t sum)
{
	sum >>= BITS;
	return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

/* Computes `rows` rows of 3 channels, up to ROWS at once so that a weight is loaded once for all of them. Reads one byte beyond each
 * row. */
GT_CLONES static void rows_of_3(const uint8_t *in, int64_t stride, int rows, uint8_t *out, int64_t out_stride,
                                const struct gt_resample_axis *t)
{
	const uint8_t *row[ROWS];
	uint8_t *to[ROWS];
	int64_t n = t->end - t->begin;
	for (int r = 0; r < ROWS; r++) { /* the last row stands for those that are missing */
		row[r] = in + (r < rows ? r : rows - 1) * stride;
		to[r] = out + (r < rows ? r : rows - 1) * out_stride;
	}
	for (int64_t i = 0; i < n; i++) {
		const int32_t *w = t->weight + i * t->most;
		int32_t count = t->count[i];
		int64_t at = 3 * (int64_t)t->start[i];
		v4 sum[ROWS] = {{HALF, HALF, HALF, HALF}, {HALF, HALF, HALF, HALF}, {HALF, HALF, HALF, HALF}, {HALF, HALF, HALF, HALF}};
		for (int32_t k = 0; k < count; k++, at += 3)
			for (int r = 0; r < ROWS; r++) {
				v4b px;
				memcpy(&px, row[r] + at, sizeof px);
				sum[r] += w[k] * __builtin_convertvector(px, v4);
			}
		for (int r = 0; r < ROWS; r++) {
			v4 v = sum[r] >> BITS;
			v &= v >= 0; /* a comparison gives 0 or -1; a number above 255 becomes -1, whose low byte is 255 */
			v |= v > 255;
			v4b px = __builtin_convertvector(v, v4b);
			memcpy(to[r] + 3 * i, &px, i + 1 < n ? 4 : 3); /* the fourth byte is that of the next pixel */
		}
	}
}

static void row_of_any(const uint8_t *in, uint8_t *out, int c, const struct gt_resample_axis *t)
{
	for (int64_t i = 0; i < t->end - t->begin; i++) {
		const int32_t *w = t->weight + i * t->most;
		for (int ch = 0; ch < c; ch++) {
			const uint8_t *p = in + (int64_t)t->start[i] * c + ch;
			int32_t sum = HALF;
			for (int32_t k = 0; k < t->count[i]; k++)
				sum += w[k] * p[k * c];
			out[i * c + ch] = clip(sum);
		}
	}
}

/* Computes one row of the result, n bytes, from `count` rows. */
GT_CLONES static void column_sums(const uint8_t *in, int64_t stride, const int32_t *weight, int32_t count, uint8_t *out, int64_t n)
{
	if (n < LANES) {
		for (int64_t i = 0; i < n; i++) {
			int32_t sum = HALF;
			for (int32_t k = 0; k < count; k++)
				sum += weight[k] * in[k * stride + i];
			out[i] = clip(sum);
		}
		return;
	}
	for (int64_t i = 0; i < n; i += LANES) {
		int64_t at = i + LANES <= n ? i : n - LANES; /* the last lanes may be computed twice */
		v16 sum = (v16){0} + HALF;
		for (int32_t k = 0; k < count; k++) {
			v16b px;
			memcpy(&px, in + k * stride + at, sizeof px);
			sum += weight[k] * __builtin_convertvector(px, v16);
		}
		sum >>= BITS;
		sum &= sum >= 0;
		sum |= sum > 255;
		v16b px = __builtin_convertvector(sum, v16b);
		memcpy(out + at, &px, sizeof px);
	}
}

/* Scales rows: n of them, whose pixel x->first is at `in`, to rows of out. */
static enum gt_code scale_rows(const struct gt_resample_axis *x, const uint8_t *in, int64_t stride, int64_t n, int c, uint8_t *out,
                               int64_t out_stride, struct gt_image_scratch *s, struct gt_err *err)
{
	const uint8_t *from = in - x->first * c;
	size_t bytes = (size_t)((x->last - x->first) * c);
	uint8_t *last;
	if (c != 3) {
		for (int64_t i = 0; i < n; i++)
			row_of_any(from + i * stride, out + i * out_stride, c, x);
		return GT_OK;
	}
	for (int64_t i = 0; i < n - 1; i += ROWS)
		rows_of_3(from + i * stride, stride, (int)(n - 1 - i < ROWS ? n - 1 - i : ROWS), out + i * out_stride, out_stride, x);
	/* The last row is copied, because the byte behind it may not be readable. */
	GT_TRY(gt_scratch_take(s, GT_BUF_ROW, bytes, &last, err));
	memcpy(last, in + (n - 1) * stride, bytes);
	rows_of_3(last - x->first * c, 0, 1, out + (n - 1) * out_stride, 0, x);
	return GT_OK;
}

static void scale_columns(const struct gt_resample_axis *y, const uint8_t *in, int64_t stride, int64_t n, uint8_t *out, int64_t out_stride)
{
	for (int64_t i = 0; i < y->end - y->begin; i++)
		column_sums(in + (y->start[i] - y->first) * stride, stride, y->weight + i * y->most, y->count[i], out + i * out_stride, n);
}

enum gt_code gt_resample(const struct gt_resample *r, const uint8_t *in, int64_t left, int64_t top, int64_t stride, int c, uint8_t *out,
                         struct gt_image_scratch *s, struct gt_err *err)
{
	const struct gt_resample_axis *x = &r->x, *y = &r->y;
	/* Rows first, but for an image that becomes wider and lower: the same choice as Pillow's, because the bits depend on it. */
	bool columns = (double)x->out > x->to - x->from && (double)y->out < y->to - y->from;
	int64_t w = (x->end - x->begin) * c, h = y->end - y->begin, need_w = (x->last - x->first) * c, need_h = y->last - y->first,
	        mid_stride = ((columns ? need_w : w) + LANES - 1) / LANES * LANES;
	const uint8_t *from = in + (y->first - top) * stride + (x->first - left) * c;
	uint8_t *mid;
	GT_TRY(gt_scratch_take(s, GT_BUF_MID, (size_t)((columns ? h : need_h) * mid_stride), &mid, err));
	if (columns) {
		scale_columns(y, from, stride, need_w, mid, mid_stride);
		return scale_rows(x, mid, mid_stride, h, c, out, w, s, err);
	}
	GT_TRY(scale_rows(x, from, stride, need_h, c, mid, mid_stride, s, err));
	scale_columns(y, mid, mid_stride, w, out, w);
	return GT_OK;
}
