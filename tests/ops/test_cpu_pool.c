/* The CPU backend's pooling against loops in double. */
/* tests/run: beside others */
#include "cpu_case.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct pool_shape {
	int64_t n, c, h, w, k[2], s[2], p[2];
	bool ceil, include;
	int64_t adaptive[2]; /* 0: not */
};

static int64_t pool_out(int64_t in, int64_t k, int64_t s, int64_t p, bool ceil_mode)
{
	int64_t o = (in + 2 * p - k + (ceil_mode ? s - 1 : 0)) / s + 1;
	return ceil_mode && (o - 1) * s >= in + p ? o - 1 : o;
}

static void pool_window(const struct pool_shape *c, int d, int64_t o, int64_t in, int64_t out, int64_t *begin, int64_t *end, int64_t *size)
{
	if (c->adaptive[0]) {
		*begin = (int64_t)floor((double)(o * in) / (double)out);
		*end = (int64_t)ceil((double)((o + 1) * in) / (double)out);
		*size = *end - *begin;
		return;
	}
	*begin = o * c->s[d] - c->p[d];
	*end = *begin + c->k[d] < in + c->p[d] ? *begin + c->k[d] : in + c->p[d];
	*size = *end - *begin;
	*begin = *begin > 0 ? *begin : 0;
	*end = *end < in ? *end : in;
	if (!c->include)
		*size = *end - *begin;
}

static void pool_case(const struct pool_shape *c, enum gt_dtype t, bool max)
{
	struct gt_attr_pool2d pool = {.kernel = {c->k[0], c->k[1]},
	                              .stride = {c->s[0], c->s[1]},
	                              .padding = {c->p[0], c->p[1]},
	                              .ceil_mode = c->ceil,
	                              .count_include_pad = c->include};
	struct gt_attr_adaptive adaptive = {.out = {c->adaptive[0], c->adaptive[1]}};
	bool ad = c->adaptive[0];
	const void *attr = ad ? (const void *)&adaptive : &pool;
	int64_t oh = ad ? c->adaptive[0] : pool_out(c->h, c->k[0], c->s[0], c->p[0], c->ceil);
	int64_t ow = ad ? c->adaptive[1] : pool_out(c->w, c->k[1], c->s[1], c->p[1], c->ceil);
	struct tens *x = tens_new(t, DIMS(c->n, c->c, c->h, c->w)), *y = tens_new(t, DIMS(c->n, c->c, oh, ow)),
	            *idx = tens_new(GT_I32, DIMS(c->n, c->c, oh, ow));
	struct tens *dy = tens_new(t, DIMS(c->n, c->c, oh, ow)), *dx = tens_new(t, DIMS(c->n, c->c, c->h, c->w));
	struct tens *wy = tens_new(t, DIMS(c->n, c->c, oh, ow)), *wi = tens_new(GT_I32, DIMS(c->n, c->c, oh, ow)),
	            *wdx = tens_new(t, DIMS(c->n, c->c, c->h, c->w));
	tens_random(x, 1, -1, 1);
	tens_random(dy, 2, -1, 1);
	tens_need_mag(wy);
	tens_need_mag(wdx);
	if (max)
		x->v[gt_tdesc_count(&x->d) / 2] = NAN;
	for (int64_t q = 0; q < c->n * c->c; q++)
		for (int64_t a = 0; a < oh; a++)
			for (int64_t b = 0; b < ow; b++) {
				int64_t h0, h1, hs, w0, w1, ws, o = (q * oh + a) * ow + b;
				pool_window(c, 0, a, c->h, oh, &h0, &h1, &hs);
				pool_window(c, 1, b, c->w, ow, &w0, &w1, &ws);
				double best = -HUGE_VAL, sum = 0, mag = 0;
				int64_t at = h0 * c->w + w0;
				for (int64_t h = h0; h < h1; h++)
					for (int64_t w = w0; w < w1; w++) {
						int64_t i = h * c->w + w;
						double v = x->v[q * c->h * c->w + i];
						if (v > best || isnan(v))
							best = v, at = i;
						sum += v;
						mag += fabs(v);
						if (!max) {
							wdx->v[q * c->h * c->w + i] += dy->v[o] / (double)(hs * ws);
							wdx->mag[q * c->h * c->w + i] += fabs(dy->v[o] / (double)(hs * ws));
						}
					}
				wy->v[o] = max ? best : sum / (double)(hs * ws);
				wy->mag[o] = max ? 0 : mag / (double)(hs * ws);
				wi->v[o] = (double)at;
				if (max) {
					wdx->v[q * c->h * c->w + at] += dy->v[o];
					wdx->mag[q * c->h * c->w + at] += fabs(dy->v[o]);
				}
			}
	struct op_case k = {.code = max ? (ad ? GT_OP_ADAPTIVE_MAXPOOL2D : GT_OP_MAXPOOL2D) : (ad ? GT_OP_ADAPTIVE_AVGPOOL2D : GT_OP_AVGPOOL2D),
		.attr = attr, .in = {x}, .nin = 1, .out = {y, idx}, .nout = max ? 2 : 1};
	if (!op_run(&k))
		goto out;
	for (int64_t i = 0; max && i < gt_tdesc_count(&y->d); i++) {
		CHECK_MSG(idx->v[i] == wi->v[i], "index %lld is %g, should be %g", (long long)i, idx->v[i], wi->v[i]);
		if (isnan(wy->v[i])) {
			CHECK_MSG(isnan(y->v[i]), "a NaN was lost");
			wy->v[i] = y->v[i] = 0;
		}
	}
	/* A maximum is copied; a mean is a sum of fewer than 100 terms and a division. */
	TENS_CHECK(y, wy, tens_sum_tol(100));
	k = (struct op_case){.code = max  ? GT_OP_MAXPOOL2D_DX
	                             : ad ? GT_OP_ADAPTIVE_AVGPOOL2D_DX
	                                  : GT_OP_AVGPOOL2D_DX,
	                     .attr = attr,
	                     .in = {dy, idx},
	                     .nin = max ? 2 : 1,
	                     .out = {dx},
	                     .nout = 1};
	if (op_run(&k))
		TENS_CHECK(dx, wdx, tens_sum_tol(100));
out:
	tens_free(x), tens_free(y), tens_free(idx), tens_free(dy), tens_free(dx), tens_free(wy), tens_free(wi), tens_free(wdx);
}

static const struct pool_shape pool_shapes[] = {
	{4, 64, 8, 8, {2, 2}, {2, 2}, {0, 0}, false, true, {0}},
	{3, 6, 28, 28, {2, 2}, {2, 2}, {0, 0}, false, true, {0}},
	{2, 17, 15, 13, {3, 3}, {2, 2}, {1, 1}, false, true, {0}},
	{2, 17, 15, 13, {3, 3}, {2, 2}, {1, 1}, false, false, {0}},
	{1, 5, 10, 10, {3, 2}, {2, 3}, {1, 0}, true, true, {0}},
	{1, 300, 10, 9, {3, 2}, {2, 3}, {1, 1}, true, false, {0}},
	{2, 1, 7, 7, {7, 7}, {7, 7}, {0, 0}, false, true, {0}},
	{2, 64, 8, 8, {0, 0}, {0, 0}, {0, 0}, false, true, {1, 1}},
	{2, 33, 7, 10, {0, 0}, {0, 0}, {0, 0}, false, true, {3, 4}},
	{1, 4, 3, 3, {0, 0}, {0, 0}, {0, 0}, false, true, {5, 7}},
	{64, 64, 16, 16, {2, 2}, {2, 2}, {0, 0}, false, true, {0}},
	{2, 128, 9, 7, {3, 3}, {2, 2}, {1, 1}, false, false, {0}}, /* two whole blocks of channels, windows overlap */
	{1, 85, 9, 7, {3, 3}, {2, 2}, {1, 1}, false, true, {0}},   /* a whole block and a part */
};

TEST(pool)
{
	for (size_t i = 0; i < sizeof pool_shapes / sizeof *pool_shapes; i++)
		for (int m = 0; m < 4; m++)
			pool_case(&pool_shapes[i], m & 1 ? GT_BF16 : GT_F32, m & 2);
}

RUN_TESTS()
