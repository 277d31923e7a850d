/* Two passes, over rows and over columns: each output pixel is a weighted sum of adjacent pixels, with 22-bit fixed-point weights and 8-bit
 * values between the passes (Pillow, "Concepts: Filters"; Resample.c). */
#include "image/resample.h"
#include "clones.h"
#include "image/transform.h"
#include "taps.h"
#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { ROWS = 64 };

/* ---- weights -------------------------------------------------------------------------------------------------------------- */
static void make_weights(struct gt_resample_axis *t, int interpolation, int32_t *start, int32_t *count, int32_t *weight)
{
	struct gt_taps taps = gt_taps_of(t->from, t->to, t->in, t->out, interpolation == GT_INTERP_BICUBIC);
	for (int64_t i = 0; i < t->end - t->begin; i++) {
		struct gt_taps_span span = gt_taps_span(&taps, t->mirror ? t->end - 1 - i : t->begin + i);
		for (int64_t x = span.first; x < span.last; x++)
			weight[i * t->most + x - span.first] = gt_taps_weight(&taps, &span, x);
		start[i] = (int32_t)span.first;
		count[i] = (int32_t)(span.last - span.first);
	}
}

/* Sets the members of an axis that do not depend on the weights. */
static void set_range(struct gt_resample_axis *t, int interpolation)
{
	struct gt_taps taps = gt_taps_of(t->from, t->to, t->in, t->out, interpolation == GT_INTERP_BICUBIC);
	t->first = gt_taps_span(&taps, t->begin).first;
	t->last = gt_taps_span(&taps, t->end - 1).last;
	t->most = (int64_t)ceil(taps.support) * 2 + 1;
}

void gt_resample_range(struct gt_resample *r)
{
	set_range(&r->x, r->interpolation);
	set_range(&r->y, r->interpolation);
}

static enum gt_code prepare_axis(struct gt_resample_axis *t, int axis, int interpolation, struct gt_image_scratch *s, struct gt_err *err)
{
	enum gt_scratch_buf which = axis ? GT_BUF_TAPS_Y : GT_BUF_TAPS_X;
	struct gt_taps_key key;
	size_t n = (size_t)(t->end - t->begin);
	uint8_t *memory;
	memset(&key, 0, sizeof key); /* keys are compared with memcmp, padding included */
	key.from = t->from;
	key.to = t->to;
	key.in = t->in;
	key.out = t->out;
	key.begin = t->begin;
	key.end = t->end;
	key.interpolation = interpolation;
	key.mirror = t->mirror;
	bool kept = !memcmp(&key, &s->taps[axis], sizeof key);
	GT_TRY(gt_scratch_take(s, which, (n * 2 + n * (size_t)t->most) * sizeof(int32_t), &memory, err));
	int32_t *start = (int32_t *)(void *)memory, *count = start + n, *weight = count + n;
	if (!kept)
		make_weights(t, interpolation, start, count, weight);
	s->taps[axis] = key;
	t->start = start;
	t->count = count;
	t->weight = weight;
	return GT_OK;
}

enum gt_code gt_resample_prepare(struct gt_resample *r, struct gt_image_scratch *s, struct gt_err *err)
{
	gt_resample_range(r);
	GT_TRY(prepare_axis(&r->x, 0, r->interpolation, s, err));
	return prepare_axis(&r->y, 1, r->interpolation, s, err);
}

/* ---- passes --------------------------------------------------------------------------------------------------------------- */
/* Computes one row of n bytes as a weighted sum of `count` rows. Most sums have at most four weights. sum: n elements of scratch memory,
 * used for more than four weights. */
GT_CLONES static void sum_rows(const uint8_t *restrict in, int64_t stride, const int32_t *weight, int64_t count, uint8_t *restrict out,
                               int64_t n, int32_t *restrict sum)
{
	const uint8_t *restrict b = in + stride, *restrict c = b + stride, *restrict d = c + stride;
	int32_t wa = weight[0], wb = weight[count > 1 ? 1 : 0], wc = weight[count > 2 ? 2 : 0], wd = weight[count > 3 ? 3 : 0];
	if (count == 1) {
		for (int64_t i = 0; i < n; i++)
			out[i] = gt_taps_clip(GT_TAPS_HALF + wa * in[i]);
	} else if (count == 2) {
		for (int64_t i = 0; i < n; i++)
			out[i] = gt_taps_clip(GT_TAPS_HALF + wa * in[i] + wb * b[i]);
	} else if (count == 3) {
		for (int64_t i = 0; i < n; i++)
			out[i] = gt_taps_clip(GT_TAPS_HALF + wa * in[i] + wb * b[i] + wc * c[i]);
	} else if (count == 4) {
		for (int64_t i = 0; i < n; i++)
			out[i] = gt_taps_clip(GT_TAPS_HALF + wa * in[i] + wb * b[i] + wc * c[i] + wd * d[i]);
	} else {
		for (int64_t i = 0; i < n; i++)
			sum[i] = GT_TAPS_HALF + wa * in[i] + wb * b[i] + wc * c[i] + wd * d[i];
		int64_t k = 4;
		for (; k + 1 < count; k += 2) {
			const uint8_t *restrict e = in + k * stride, *restrict f = e + stride;
			int32_t we = weight[k], wf = weight[k + 1];
			for (int64_t i = 0; i < n; i++)
				sum[i] += we * e[i] + wf * f[i];
		}
		for (int64_t i = 0; k < count && i < n; i++)
			sum[i] += weight[k] * in[k * stride + i];
		for (int64_t i = 0; i < n; i++)
			out[i] = gt_taps_clip(sum[i]);
	}
}

/* Transposes 16 x 16 bytes: interleaves each row with the row eight rows below it, four times. */
typedef uint8_t v16 __attribute__((vector_size(16)));
static inline void transpose_16(const uint8_t *const *in, uint8_t *const *out)
{
	v16 a[16], b[16];
	for (int i = 0; i < 16; i++)
		memcpy(&a[i], in[i], 16);
	for (int round = 0; round < 4; round++) {
		for (int i = 0; i < 8; i++) {
			b[2 * i] = __builtin_shufflevector(a[i], a[i + 8], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
			b[2 * i + 1] = __builtin_shufflevector(a[i], a[i + 8], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
		}
		memcpy(a, b, sizeof a);
	}
	for (int i = 0; i < 16; i++)
		memcpy(out[i], &a[i], 16);
}

/* Transposes a block: byte j of row r, r < rows, goes to out[j * out_stride + r]. If a dimension is not a multiple of 16, the last 16 rows
 * or columns are transposed again; if it is below 16, bytes are copied singly. */
GT_CLONES static void transpose_bytes(const uint8_t *in, int64_t stride, int64_t rows, int64_t n, uint8_t *out, int64_t out_stride)
{
	if (rows < 16 || n < 16) {
		for (int64_t r = 0; r < rows; r++)
			for (int64_t j = 0; j < n; j++)
				out[j * out_stride + r] = in[r * stride + j];
		return;
	}
	for (int64_t r = 0; r < rows; r += 16) {
		int64_t row = r + 16 <= rows ? r : rows - 16;
		for (int64_t j = 0; j < n; j += 16) {
			int64_t at = j + 16 <= n ? j : n - 16;
			const uint8_t *from[16];
			uint8_t *to[16];
			for (int i = 0; i < 16; i++) {
				from[i] = in + (row + i) * stride + at;
				to[i] = out + (at + i) * out_stride + row;
			}
			transpose_16(from, to);
		}
	}
}

static void scale_columns(const struct gt_resample_axis *y, const uint8_t *in, int64_t stride, int64_t n, uint8_t *out,
                          int64_t out_stride, int32_t *sum)
{
	for (int64_t i = 0; i < y->end - y->begin; i++)
		sum_rows(in + (y->start[i] - y->first) * stride, stride, y->weight + i * y->most, y->count[i], out + i * out_stride, n, sum);
}

/* Scales n rows, whose pixel x->first is at `in`. ROWS rows at a time are transposed, so that each pixel column becomes a row; they are
 * scaled, and transposed back. block: memory for ROWS bytes of each input and output value of a row. */
static void scale_rows(const struct gt_resample_axis *x, const uint8_t *in, int64_t stride, int64_t n, int c, uint8_t *out,
                       int64_t out_stride, uint8_t *block, int32_t *sum)
{
	int64_t from = (x->last - x->first) * c, to = (x->end - x->begin) * c;
	uint8_t *scaled = block + from * ROWS;
	for (int64_t i = 0; i < n; i += ROWS) {
		int64_t rows = n - i < ROWS ? n - i : ROWS;
		int64_t step = (rows + 15) / 16 * 16; /* bytes per column; the last bytes may be unused */
		transpose_bytes(in + i * stride, stride, rows, from, block, step);
		scale_columns(x, block, step * c, step * c, scaled, step * c, sum);
		transpose_bytes(scaled, step, to, rows, out + i * out_stride, out_stride);
	}
}

/* Pillow 13 chooses in the same way; transforms.py compares the results. */
bool gt_resample_columns_first(const struct gt_resample *r)
{
	const struct gt_resample_axis *x = &r->x, *y = &r->y;
	double shrink_w = x->to - x->from - (double)x->out, shrink_h = y->to - y->from - (double)y->out;
	return shrink_h > 0 && shrink_h > 2 * shrink_w;
}

enum gt_code gt_resample(const struct gt_resample *r, const uint8_t *in, int64_t left, int64_t top, int64_t stride, int c, uint8_t *out,
                         struct gt_image_scratch *s, struct gt_err *err)
{
	const struct gt_resample_axis *x = &r->x, *y = &r->y;
	bool columns = gt_resample_columns_first(r);
	int64_t w = (x->end - x->begin) * c, h = y->end - y->begin, need_w = (x->last - x->first) * c, need_h = y->last - y->first,
	        mid_stride = columns ? need_w : w, most = mid_stride > ROWS * c ? mid_stride : ROWS * c;
	const uint8_t *from = in + (y->first - top) * stride + (x->first - left) * c;
	uint8_t *mid, *block, *sum;
	GT_TRY(gt_scratch_take(s, GT_BUF_MID, (size_t)((columns ? h : need_h) * mid_stride), &mid, err));
	GT_TRY(gt_scratch_take(s, GT_BUF_BLOCK, (size_t)((need_w + w) * ROWS), &block, err));
	GT_TRY(gt_scratch_take(s, GT_BUF_ROW, (size_t)most * sizeof(int32_t), &sum, err));
	int32_t *sums = (int32_t *)(void *)sum;
	if (columns) {
		scale_columns(y, from, stride, need_w, mid, mid_stride, sums);
		scale_rows(x, mid, mid_stride, h, c, out, w, block, sums);
	} else {
		scale_rows(x, from, stride, need_h, c, mid, mid_stride, block, sums);
		scale_columns(y, mid, mid_stride, w, out, w, sums);
	}
	return GT_OK;
}
