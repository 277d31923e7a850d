/* The CPU backend's linear, convolution, pooling, batchnorm and gather against loops in double. */
#include "aug.h"
#include "cpu_case.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <string.h>

/* Error bound of a sum of K products in f32, relative to the sum of their magnitudes: K*2^-24 can never be exceeded, roundings
 * that average out stay near sqrt(K)*2^-24; eight roundings are allowed on top, for the parts that threads and blocks add. */
static double sum_tol(double k)
{
	return (8 + 2 * sqrt(k)) * 0x1p-24;
}

static void need_mag(struct tens *t)
{
	t->mag = calloc((size_t)gt_tdesc_count(&t->d), sizeof *t->mag);
}

/* ---- linear ------------------------------------------------------------------------------------------------------------------ */
static void linear_case(int64_t n, int64_t in, int64_t out, enum gt_dtype t, bool bias, int act)
{
	struct gt_attr_linear attr = {.out = out, .bias = bias, .act = act};
	struct tens *x = tens_new(t, DIMS(n, in)), *w = tens_weights(t, DIMS(out, in)), *b = bias ? tens_new(GT_F32, DIMS(out)) : NULL;
	struct tens *y = tens_new(t, DIMS(n, out)), *want = tens_new(t, DIMS(n, out));
	tens_random(x, 1, -1, 1);
	tens_random(w, 2, -1, 1);
	if (b)
		tens_random(b, 3, -1, 1);
	need_mag(want);
	for (int64_t i = 0; i < n; i++)
		for (int64_t o = 0; o < out; o++) {
			double s = b ? b->v[o] : 0, m = fabs(s);
			for (int64_t k = 0; k < in; k++) {
				s += x->v[i * in + k] * w->v[o * in + k];
				m += fabs(x->v[i * in + k] * w->v[o * in + k]);
			}
			want->v[i * out + o] = act && s < 0 ? 0 : s;
			want->mag[i * out + o] = m;
		}
	struct op_case c = {.code = GT_OP_LINEAR, .attr = &attr, .in = {x, w, b}, .nin = 3, .out = {y}, .nout = 1};
	if (op_run(&c))
		TENS_CHECK(y, want, sum_tol((double)in));
	CHECK_MSG(!w->d.any, "the forward call left the layout of the weights open");

	struct tens *dy = tens_new(t, DIMS(n, out)), *dx = tens_new(t, DIMS(n, in)), *wdx = tens_new(t, DIMS(n, in));
	tens_random(dy, 4, -1, 1);
	need_mag(wdx);
	for (int64_t i = 0; i < n; i++)
		for (int64_t o = 0; o < out; o++)
			for (int64_t k = 0; k < in; k++) {
				double p = dy->v[i * out + o] * w->v[o * in + k];
				wdx->v[i * in + k] += p;
				wdx->mag[i * in + k] += fabs(p);
			}
	c = (struct op_case){.code = GT_OP_LINEAR_DX, .attr = &attr, .in = {dy, w}, .nin = 2, .out = {dx}, .nout = 1};
	if (op_run(&c))
		TENS_CHECK(dx, wdx, sum_tol((double)out));

	/* Overwriting, then adding to what is there. */
	for (int add = 0; add < 2; add++) {
		struct tens *dw = tens_weights(GT_F32, DIMS(out, in)), *wdw = tens_new(GT_F32, DIMS(out, in));
		struct tens *db = bias ? tens_new(GT_F32, DIMS(out)) : NULL, *wdb = tens_new(GT_F32, DIMS(out));
		dw->d.any = false;
		dw->d.layout = w->d.layout;
		need_mag(wdw);
		need_mag(wdb);
		tens_random(dw, 5, -1, 1);
		if (db)
			tens_random(db, 6, -1, 1);
		for (int64_t i = 0; add && i < out * in; i++)
			wdw->mag[i] = fabs(wdw->v[i] = dw->v[i]);
		for (int64_t i = 0; add && db && i < out; i++)
			wdb->mag[i] = fabs(wdb->v[i] = db->v[i]);
		for (int64_t i = 0; i < n; i++)
			for (int64_t o = 0; o < out; o++) {
				for (int64_t k = 0; k < in; k++) {
					double p = dy->v[i * out + o] * x->v[i * in + k];
					wdw->v[o * in + k] += p;
					wdw->mag[o * in + k] += fabs(p);
				}
				wdb->v[o] += dy->v[i * out + o];
				wdb->mag[o] += fabs(dy->v[i * out + o]);
			}
		c = (struct op_case){.code = GT_OP_LINEAR_DW, .attr = &attr, .in = {dy, x}, .nin = 2, .out = {dw, db}, .nout = 2, .accumulate = add ? 3 : 0};
		if (op_run(&c)) {
			TENS_CHECK(dw, wdw, sum_tol((double)n));
			if (db)
				TENS_CHECK(db, wdb, sum_tol((double)n));
		}
		tens_free(dw), tens_free(wdw), tens_free(db), tens_free(wdb);
	}
	tens_free(x), tens_free(w), tens_free(b), tens_free(y), tens_free(want), tens_free(dy), tens_free(dx), tens_free(wdx);
}

static const int64_t linear_shapes[][3] = {{32, 784, 512}, {32, 512, 10}, {1, 784, 33}, {7, 5, 3}, {1, 1, 1}, {128, 100, 64}, {17, 300, 129},
	{64, 512, 512}, {32, 17, 31}, {33, 48, 16}, {200, 20, 50}, {16, 1024, 10}, {31, 65, 257}};

TEST(linear_f32)
{
	for (size_t i = 0; i < sizeof linear_shapes / sizeof *linear_shapes; i++)
		linear_case(linear_shapes[i][0], linear_shapes[i][1], linear_shapes[i][2], GT_F32, i % 3 != 1, i % 2);
}

TEST(linear_bf16)
{
	for (size_t i = 0; i < sizeof linear_shapes / sizeof *linear_shapes; i++)
		linear_case(linear_shapes[i][0], linear_shapes[i][1], linear_shapes[i][2], GT_BF16, i % 3 != 1, i % 2);
}

/* ---- convolution ------------------------------------------------------------------------------------------------------------- */
struct conv_shape {
	int64_t n, c, h, w, o, k[2], s[2], p[2], d[2], g;
	bool bias;
	int act;
};

struct conv_ref {
	const struct conv_shape *c;
	int64_t oh, ow, cg, og;
};

typedef void conv_visit(int64_t x, int64_t w, int64_t y, void *arg);

/* Calls for every (input element, weight, output element) that meet. */
static void conv_each(const struct conv_ref *r, conv_visit *visit, void *arg)
{
	const struct conv_shape *c = r->c;
	for (int64_t n = 0; n < c->n; n++)
		for (int64_t o = 0; o < c->o; o++)
			for (int64_t i = 0; i < r->cg; i++)
				for (int64_t a = 0; a < c->k[0]; a++)
					for (int64_t b = 0; b < c->k[1]; b++)
						for (int64_t y = 0; y < r->oh; y++)
							for (int64_t x = 0; x < r->ow; x++) {
								int64_t ih = y * c->s[0] - c->p[0] + a * c->d[0], iw = x * c->s[1] - c->p[1] + b * c->d[1];
								if (ih < 0 || ih >= c->h || iw < 0 || iw >= c->w)
									continue;
								visit(((n * c->c + o / r->og * r->cg + i) * c->h + ih) * c->w + iw, ((o * r->cg + i) * c->k[0] + a) * c->k[1] + b,
								      ((n * c->o + o) * r->oh + y) * r->ow + x, arg);
							}
}

struct conv_sum {
	const double *a, *b;
	int from; /* 0: y += x*w, 1: x += y*w, 2: w += y*x */
	struct tens *to;
};

static void conv_add(int64_t x, int64_t w, int64_t y, void *arg)
{
	struct conv_sum *s = arg;
	int64_t to = s->from == 0 ? y : s->from == 1 ? x : w, a = s->from == 0 ? x : y, b = s->from == 2 ? x : w;
	double p = s->a[a] * s->b[b];
	s->to->v[to] += p;
	s->to->mag[to] += fabs(p);
}

static void conv_case(const struct conv_shape *c, enum gt_dtype t, bool wino)
{
	struct gt_attr_conv2d attr = {.out = c->o, .kernel = {c->k[0], c->k[1]}, .stride = {c->s[0], c->s[1]}, .padding = {c->p[0], c->p[1]},
		.dilation = {c->d[0], c->d[1]}, .groups = c->g, .bias = c->bias, .act = c->act};
	struct conv_ref r = {.c = c, .oh = (c->h + 2 * c->p[0] - c->d[0] * (c->k[0] - 1) - 1) / c->s[0] + 1,
		.ow = (c->w + 2 * c->p[1] - c->d[1] * (c->k[1] - 1) - 1) / c->s[1] + 1, .cg = c->c / c->g, .og = c->o / c->g};
	struct tens *x = tens_new(t, DIMS(c->n, c->c, c->h, c->w)), *w = tens_weights(t, DIMS(c->o, r.cg, c->k[0], c->k[1]));
	struct tens *b = c->bias ? tens_new(GT_F32, DIMS(c->o)) : NULL, *y = tens_new(t, DIMS(c->n, c->o, r.oh, r.ow));
	struct tens *wy = tens_new(t, DIMS(c->n, c->o, r.oh, r.ow));
	tens_random(x, 1, -1, 1);
	tens_random(w, 2, -1, 1);
	need_mag(wy);
	if (b)
		tens_random(b, 3, -1, 1);
	conv_each(&r, conv_add, &(struct conv_sum){.a = x->v, .b = w->v, .from = 0, .to = wy});
	for (int64_t i = 0; i < gt_tdesc_count(&wy->d); i++) {
		double v = b ? b->v[i / (r.oh * r.ow) % c->o] : 0;
		wy->v[i] += v;
		wy->mag[i] += fabs(v);
		if (c->act && wy->v[i] < 0)
			wy->v[i] = 0;
	}
	double taps = (double)(r.cg * c->k[0] * c->k[1]);
	struct op_case k = {.code = GT_OP_CONV2D, .attr = &attr, .in = {x, w, b}, .nin = 3, .out = {y}, .nout = 1};
	if (op_run(&k))
		TENS_CHECK(y, wy, sum_tol(taps));
	CHECK_MSG(!wino || strstr(k.describe, "wino"), "not by Winograd: %s", k.describe);
	if (getenv("GTRAIN_TEST_VERBOSE"))
		printf("# fwd %s n%d c%d o%d k%d g%d: %s\n", gt_dtype_name(t), (int)c->n, (int)c->c, (int)c->o, (int)c->k[0], (int)c->g, k.describe);

	struct tens *dy = tens_new(t, DIMS(c->n, c->o, r.oh, r.ow)), *dx = tens_new(t, DIMS(c->n, c->c, c->h, c->w));
	struct tens *wdx = tens_new(t, DIMS(c->n, c->c, c->h, c->w));
	tens_random(dy, 4, -1, 1);
	need_mag(wdx);
	conv_each(&r, conv_add, &(struct conv_sum){.a = dy->v, .b = w->v, .from = 1, .to = wdx});
	k = (struct op_case){.code = GT_OP_CONV2D_DX, .attr = &attr, .in = {dy, w}, .nin = 2, .out = {dx}, .nout = 1};
	if (op_run(&k))
		TENS_CHECK(dx, wdx, sum_tol((double)(r.og * c->k[0] * c->k[1])));
	CHECK_MSG(!wino || strstr(k.describe, "wino"), "not by Winograd: %s", k.describe);
	if (getenv("GTRAIN_TEST_VERBOSE"))
		printf("# dx: %s\n", k.describe);

	for (int add = 0; add < 2; add++) {
		struct tens *dw = tens_weights(GT_F32, DIMS(c->o, r.cg, c->k[0], c->k[1])), *wdw = tens_new(GT_F32, DIMS(c->o, r.cg, c->k[0], c->k[1]));
		struct tens *db = c->bias ? tens_new(GT_F32, DIMS(c->o)) : NULL, *wdb = tens_new(GT_F32, DIMS(c->o));
		dw->d.any = false;
		dw->d.layout = w->d.layout;
		need_mag(wdw);
		need_mag(wdb);
		tens_random(dw, 5, -1, 1);
		if (db)
			tens_random(db, 6, -1, 1);
		for (int64_t i = 0; add && i < gt_tdesc_count(&dw->d); i++)
			wdw->mag[i] = fabs(wdw->v[i] = dw->v[i]);
		for (int64_t i = 0; add && db && i < c->o; i++)
			wdb->mag[i] = fabs(wdb->v[i] = db->v[i]);
		conv_each(&r, conv_add, &(struct conv_sum){.a = dy->v, .b = x->v, .from = 2, .to = wdw});
		for (int64_t i = 0; i < gt_tdesc_count(&dy->d); i++) {
			int64_t o = i / (r.oh * r.ow) % c->o;
			wdb->v[o] += dy->v[i];
			wdb->mag[o] += fabs(dy->v[i]);
		}
		k = (struct op_case){.code = GT_OP_CONV2D_DW, .attr = &attr, .in = {dy, x}, .nin = 2, .out = {dw, db}, .nout = 2, .accumulate = add ? 3 : 0};
		if (op_run(&k)) {
			TENS_CHECK(dw, wdw, sum_tol((double)(c->n * r.oh * r.ow)));
			CHECK_MSG(!wino || strstr(k.describe, "wino"), "not by Winograd: %s", k.describe);
			if (db)
				TENS_CHECK(db, wdb, sum_tol((double)(c->n * r.oh * r.ow)));
		}
		if (getenv("GTRAIN_TEST_VERBOSE"))
			printf("# dw: %s\n", k.describe);
		tens_free(dw), tens_free(wdw), tens_free(db), tens_free(wdb);
	}
	tens_free(x), tens_free(w), tens_free(b), tens_free(y), tens_free(wy), tens_free(dy), tens_free(dx), tens_free(wdx);
}

static const struct conv_shape conv_shapes[] = {
	/* n, c, h, w, o, kernel, stride, padding, dilation, groups, bias, act */
	{4, 64, 8, 8, 64, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1, false, 0},
	{2, 3, 16, 16, 64, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1, true, 1},
	{3, 1, 28, 28, 6, {5, 5}, {1, 1}, {0, 0}, {1, 1}, 1, true, 0},
	{1, 16, 14, 14, 16, {3, 3}, {2, 2}, {1, 1}, {1, 1}, 1, false, 0},
	{2, 64, 8, 8, 128, {1, 1}, {2, 2}, {0, 0}, {1, 1}, 1, false, 0},
	{2, 32, 7, 9, 48, {1, 1}, {1, 1}, {0, 0}, {1, 1}, 1, true, 1},
	{2, 5, 9, 7, 7, {3, 2}, {2, 1}, {1, 0}, {1, 1}, 1, true, 0},
	{1, 10, 12, 12, 20, {3, 3}, {1, 1}, {2, 2}, {2, 2}, 1, false, 0},
	{2, 16, 10, 10, 16, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 4, true, 0},
	{2, 32, 8, 8, 32, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 32, true, 1},
	{2, 20, 8, 8, 20, {3, 3}, {2, 2}, {1, 1}, {1, 1}, 20, false, 0},
	{2, 12, 6, 6, 24, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 3, true, 0},
	{2, 8, 6, 6, 16, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 8, false, 0},
	{2, 64, 6, 6, 64, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 2, false, 0},
	{1, 1, 5, 5, 1, {5, 5}, {1, 1}, {0, 0}, {1, 1}, 1, true, 0},
	{2, 24, 11, 11, 40, {7, 7}, {3, 3}, {3, 3}, {1, 1}, 1, false, 1},
};

TEST(conv_f32)
{
	for (size_t i = 0; i < sizeof conv_shapes / sizeof *conv_shapes; i++)
		conv_case(&conv_shapes[i], GT_F32, false);
}

TEST(conv_winograd)
{
	static const struct conv_shape shapes[] = {
		{8, 64, 8, 8, 64, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1, false, 0},
		{8, 64, 9, 11, 80, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1, true, 1},
		{33, 96, 6, 6, 64, {3, 3}, {1, 1}, {0, 0}, {1, 1}, 1, true, 0},
		{32, 64, 4, 4, 128, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1, false, 0},
	};
	if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512dq")) {
		test_skip("oneDNN has Winograd for AVX-512 only");
		return;
	}
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
		conv_case(&shapes[i], GT_F32, true);
}

TEST(conv_bf16)
{
	for (size_t i = 0; i < sizeof conv_shapes / sizeof *conv_shapes; i++)
		conv_case(&conv_shapes[i], GT_BF16, false);
}

/* ---- pooling ----------------------------------------------------------------------------------------------------------------- */
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
	struct gt_attr_pool2d pool = {.kernel = {c->k[0], c->k[1]}, .stride = {c->s[0], c->s[1]}, .padding = {c->p[0], c->p[1]}, .ceil_mode = c->ceil,
		.count_include_pad = c->include};
	struct gt_attr_adaptive adaptive = {.out = {c->adaptive[0], c->adaptive[1]}};
	bool ad = c->adaptive[0];
	const void *attr = ad ? (const void *)&adaptive : &pool;
	int64_t oh = ad ? c->adaptive[0] : pool_out(c->h, c->k[0], c->s[0], c->p[0], c->ceil);
	int64_t ow = ad ? c->adaptive[1] : pool_out(c->w, c->k[1], c->s[1], c->p[1], c->ceil);
	struct tens *x = tens_new(t, DIMS(c->n, c->c, c->h, c->w)), *y = tens_new(t, DIMS(c->n, c->c, oh, ow)), *idx = tens_new(GT_I32, DIMS(c->n, c->c, oh, ow));
	struct tens *dy = tens_new(t, DIMS(c->n, c->c, oh, ow)), *dx = tens_new(t, DIMS(c->n, c->c, c->h, c->w));
	struct tens *wy = tens_new(t, DIMS(c->n, c->c, oh, ow)), *wi = tens_new(GT_I32, DIMS(c->n, c->c, oh, ow)), *wdx = tens_new(t, DIMS(c->n, c->c, c->h, c->w));
	tens_random(x, 1, -1, 1);
	tens_random(dy, 2, -1, 1);
	need_mag(wy);
	need_mag(wdx);
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
	TENS_CHECK(y, wy, sum_tol(100));
	k = (struct op_case){.code = max ? GT_OP_MAXPOOL2D_DX : ad ? GT_OP_ADAPTIVE_AVGPOOL2D_DX : GT_OP_AVGPOOL2D_DX, .attr = attr, .in = {dy, idx},
		.nin = max ? 2 : 1, .out = {dx}, .nout = 1};
	if (op_run(&k))
		TENS_CHECK(dx, wdx, sum_tol(100));
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
};

TEST(pool)
{
	for (size_t i = 0; i < sizeof pool_shapes / sizeof *pool_shapes; i++)
		for (int m = 0; m < 4; m++)
			pool_case(&pool_shapes[i], m & 1 ? GT_BF16 : GT_F32, m & 2);
}

/* ---- batchnorm --------------------------------------------------------------------------------------------------------------- */
static void batchnorm_case(int rank, const int64_t *dim, enum gt_dtype t, bool affine, bool track, bool train, double offset)
{
	struct gt_attr_norm attr = {.eps = 1e-5, .momentum = 0.1, .affine = affine, .track = track, .train = train};
	int64_t c = dim[1], inner = rank == 4 ? dim[2] * dim[3] : 1, rows = dim[0] * inner, total = rows * c;
	struct tens *x = tens_new(t, rank, dim), *y = tens_new(t, rank, dim), *wy = tens_new(t, rank, dim), *dy = tens_new(t, rank, dim);
	struct tens *dx = tens_new(t, rank, dim), *wdx = tens_new(t, rank, dim);
	struct tens *v[12];
	for (int i = 0; i < 12; i++)
		v[i] = tens_new(GT_F32, DIMS(c));
	struct tens *gamma = v[0], *beta = v[1], *rmean = v[2], *rvar = v[3], *mean = v[4], *rstd = v[5], *dgamma = v[6], *dbeta = v[7];
	struct tens *wrm = v[8], *wrv = v[9], *wdg = v[10], *wdb = v[11], *nbt = tens_new(GT_I64, 0, NULL);
	tens_random(x, 1, offset - 1, offset + 1);
	tens_random(dy, 2, -1, 1);
	tens_random(gamma, 3, 0.5, 1.5);
	tens_random(beta, 4, -1, 1);
	tens_random(rmean, 5, -1, 1);
	tens_random(rvar, 6, 0.5, 2);
	nbt->v[0] = 41;
	need_mag(wy), need_mag(wdx), need_mag(wdg), need_mag(wdb);
	for (int64_t k = 0; k < c; k++) {
		double s = 0, q = 0, sum = 0, dot = 0;
#define EACH(i) for (int64_t n_ = 0, i; n_ < dim[0]; n_++) for (int64_t p_ = 0; p_ < inner && (i = (n_ * c + k) * inner + p_, 1); p_++)
		EACH(i) s += x->v[i];
		s /= (double)rows;
		EACH(i) q += (x->v[i] - s) * (x->v[i] - s);
		q /= (double)rows;
		bool batch = train || !track;
		double m = batch ? s : rmean->v[k], var = batch ? q : rvar->v[k], rs = 1 / sqrt(var + attr.eps), g = affine ? gamma->v[k] : 1;
		wrm->v[k] = train && track ? 0.9 * rmean->v[k] + 0.1 * s : rmean->v[k];
		wrv->v[k] = train && track ? 0.9 * rvar->v[k] + 0.1 * q * (double)rows / (double)(rows - 1) : rvar->v[k];
		EACH(i) {
			wy->v[i] = (x->v[i] - m) * rs * g + (affine ? beta->v[k] : 0);
			wy->mag[i] = (fabs(x->v[i]) + fabs(m)) * rs * g + 1;
			sum += dy->v[i];
			dot += dy->v[i] * (x->v[i] - m) * rs;
			wdb->mag[k] += fabs(dy->v[i]);
			wdg->mag[k] += fabs(dy->v[i]) * (fabs(x->v[i]) + fabs(m)) * rs;
		}
		wdb->v[k] = sum;
		wdg->v[k] = dot;
		EACH(i) {
			wdx->v[i] = g * rs * (batch ? dy->v[i] - sum / (double)rows - (x->v[i] - m) * rs * dot / (double)rows : dy->v[i]);
			wdx->mag[i] = g * rs * (2 + (fabs(x->v[i]) + fabs(m)) * rs);
		}
	}
	struct op_case k = {.code = GT_OP_BATCHNORM, .attr = &attr, .in = {x, affine ? gamma : NULL, affine ? beta : NULL, track ? rmean : NULL, track ? rvar : NULL,
		track ? nbt : NULL}, .nin = 6, .out = {y, mean, rstd}, .nout = 3, .keep_out = true};
	if (!op_run(&k))
		goto out;
	/* Pieces of at most 256 rows are summed in f32 and put together in double; scale and shift are rounded, and (x - mean) cancels,
	 * which mag has. */
	TENS_CHECK(y, wy, sum_tol(256));
	if (track) {
		TENS_CHECK(rmean, wrm, sum_tol(256));
		TENS_CHECK(rvar, wrv, sum_tol(256));
		CHECK_MSG(nbt->v[0] == (train ? 42 : 41), "num_batches_tracked is %g", nbt->v[0]);
	}
	k = (struct op_case){.code = GT_OP_BATCHNORM_DX, .attr = &attr, .in = {dy, x, affine ? gamma : NULL, mean, rstd}, .nin = 5,
		.out = {dx, affine ? dgamma : NULL, affine ? dbeta : NULL}, .nout = 3};
	if (op_run(&k)) {
		TENS_CHECK(dx, wdx, sum_tol(256));
		if (affine) {
			TENS_CHECK(dgamma, wdg, sum_tol(256));
			TENS_CHECK(dbeta, wdb, sum_tol(256));
		}
	}
	if (affine) {
		for (int64_t i = 0; i < c; i++)
			dgamma->v[i] = 3, dbeta->v[i] = -5, wdg->v[i] += 3, wdb->v[i] -= 5;
		k.accumulate = 6;
		if (op_run(&k)) {
			TENS_CHECK(dgamma, wdg, 2 * sum_tol(256));
			TENS_CHECK(dbeta, wdb, 2 * sum_tol(256));
		}
	}
out:
	(void)total;
	tens_free(x), tens_free(y), tens_free(wy), tens_free(dy), tens_free(dx), tens_free(wdx), tens_free(nbt);
	for (int i = 0; i < 12; i++)
		tens_free(v[i]);
}

TEST(batchnorm)
{
	for (int b = 0; b < 2; b++) {
		enum gt_dtype t = b ? GT_BF16 : GT_F32;
		batchnorm_case(DIMS(16, 64, 8, 8), t, true, true, true, 0);
		batchnorm_case(DIMS(16, 64, 8, 8), t, true, true, false, 0);
		batchnorm_case(DIMS(5, 3, 7, 9), t, true, true, true, 0);
		batchnorm_case(DIMS(32, 513), t, true, true, true, 0);
		batchnorm_case(DIMS(7, 10), t, false, true, true, 0);
		batchnorm_case(DIMS(2, 20), t, true, false, true, 0);
		batchnorm_case(DIMS(9, 20, 3, 3), t, false, false, false, 0);
		batchnorm_case(DIMS(64, 16, 33, 33), t, true, true, true, 0);
		batchnorm_case(DIMS(1, 8, 2, 2), t, true, true, true, 0);
	}
	/* A mean 100 times the deviation: one pass over x*x would lose four digits here. */
	batchnorm_case(DIMS(16, 64, 16, 16), GT_F32, true, true, true, 100);
}

TEST(batchnorm_refuses_one_value)
{
	struct gt_attr_norm attr = {.eps = 1e-5, .momentum = 0.1, .train = true, .track = true};
	struct gt_tdesc x = gt_tdesc_make(GT_F32, DIMS(1, 4), true);
	struct gt_opcall call = {.code = GT_OP_BATCHNORM, .name = "bn1", .attr = &attr, .nin = 1, .nout = 1, .in = {&x}, .out = {&x}};
	struct gt_kernel *k = NULL;
	struct gt_err e = {0};
	if (!cpu_device())
		return;
	CHECK(cpu_backend()->prepare(cpu_device(), &call, &k, &e) == GT_EUNAVAILABLE);
	CHECK_MSG(strstr(e.msg, "batchnorm (bn1)") && strstr(e.msg, "[1, 4]"), "%s", e.msg);
}

TEST(refuses_f16)
{
	struct gt_attr_linear attr = {.out = 4};
	struct gt_tdesc x = gt_tdesc_make(GT_F16, DIMS(2, 4), true), w = gt_tdesc_make(GT_F16, DIMS(4, 4), false), y = x;
	struct gt_opcall call = {.code = GT_OP_LINEAR, .name = "fc", .attr = &attr, .nin = 2, .nout = 1, .in = {&x, &w}, .out = {&y}};
	struct gt_kernel *k = NULL;
	struct gt_err e = {0};
	if (!cpu_device())
		return;
	CHECK(cpu_backend()->prepare(cpu_device(), &call, &k, &e) == GT_EUNAVAILABLE);
	CHECK_MSG(strstr(e.msg, "linear (fc)") && strstr(e.msg, "f16"), "%s", e.msg);
}

/* ---- gather ------------------------------------------------------------------------------------------------------------------ */
static double gather_pixel(const struct tens *im, const struct gt_attr_gather *a, const struct gt_aug *g, int64_t s, int64_t c, int64_t y, int64_t x)
{
	int64_t C = im->d.dim[1], H = im->d.dim[2], W = im->d.dim[3];
	int64_t sy = y + g->dy, sx = (g->flip ? W - 1 - x : x) + g->dx;
	double u = 0;
	if (a->pad_reflect) {
		sy = sy < 0 ? -sy : sy >= H ? 2 * (H - 1) - sy : sy;
		sx = sx < 0 ? -sx : sx >= W ? 2 * (W - 1) - sx : sx;
	}
	if (sy >= 0 && sy < H && sx >= 0 && sx < W)
		u = im->v[((s * C + c) * H + sy) * W + sx];
	return u * (double)a->scale[c] + (double)a->shift[c];
}

static void gather_case(int64_t m, int64_t n, int64_t c, int64_t h, int64_t w, enum gt_dtype t, int pad, bool reflect, double hflip)
{
	struct gt_attr_gather attr = {.pad = pad, .pad_reflect = reflect, .hflip = hflip, .augment = pad || hflip > 0};
	struct tens *im = tens_new(GT_U8, DIMS(m, c, h, w)), *lab = tens_new(GT_I32, DIMS(m)), *idx = tens_new(GT_I64, DIMS(n));
	struct tens *x = tens_new(t, DIMS(n, c, h, w)), *want = tens_new(t, DIMS(n, c, h, w)), *target = tens_new(GT_I32, DIMS(n));
	for (int64_t i = 0; i < c; i++)
		attr.scale[i] = 1.0f / 255 / (0.2f + 0.01f * (float)i), attr.shift[i] = -0.5f - (float)i;
	tens_random(im, 1, 0, 256);
	tens_random(lab, 2, 0, 10);
	tens_random(idx, 3, 0, (double)m);
	struct op_case k = {.code = GT_OP_GATHER, .attr = &attr, .in = {im, lab, idx}, .nin = 3, .out = {x, target}, .nout = 2,
		.dyn = {.seed = 42, .epoch = 3}};
	if (!op_run(&k))
		goto out;
	need_mag(want);
	int flips = 0;
	for (int64_t i = 0; i < n; i++) {
		int64_t s = (int64_t)idx->v[i];
		struct gt_aug g = {0};
		if (attr.augment)
			g = gt_aug_draw(42, 3, (uint64_t)s, pad, hflip);
		flips += g.flip;
		CHECK(target->v[i] == lab->v[s]);
		for (int64_t q = 0; q < c * h * w; q++) {
			want->v[i * c * h * w + q] = gather_pixel(im, &attr, &g, s, q / (h * w), q / w % h, q % w);
			want->mag[i * c * h * w + q] = 8; /* at most 255*scale + shift */
		}
	}
	TENS_CHECK(x, want, 0x1p-23); /* a product and a sum, rounded once each */
	if (hflip > 0 && n >= 64)
		CHECK_MSG(flips > n / 8 && flips < n * 7 / 8, "%d of %d flipped", flips, (int)n);
out:
	tens_free(im), tens_free(lab), tens_free(idx), tens_free(x), tens_free(want), tens_free(target);
}

TEST(gather)
{
	for (int t = 0; t < 3; t++) {
		enum gt_dtype d = t == 0 ? GT_F32 : t == 1 ? GT_BF16 : GT_F64;
		gather_case(50, 32, 1, 28, 28, d, 0, false, 0);
		gather_case(200, 128, 3, 32, 32, d, 4, false, 0.5);
		gather_case(200, 128, 3, 32, 32, d, 2, true, 0.5);
		gather_case(10, 5, 3, 9, 7, d, 6, true, 0);
		gather_case(10, 5, 2, 5, 3, d, 8, false, 0.5); /* more padding than image */
		gather_case(300, 256, 3, 32, 32, d, 0, false, 0.5);
	}
}

TEST(gather_draws)
{
	int seen[9][9] = {{0}}, flips = 0;
	for (uint64_t s = 0; s < 8100; s++) {
		struct gt_aug a = gt_aug_draw(7, 1, s, 4, 0.5), b = gt_aug_draw(7, 1, s, 4, 0.5);
		CHECK(!memcmp(&a, &b, sizeof a));
		CHECK(a.dy >= -4 && a.dy <= 4 && a.dx >= -4 && a.dx <= 4);
		seen[a.dy + 4][a.dx + 4]++;
		flips += a.flip;
	}
	/* 100 a cell expected, deviation 10; 4050 flips, deviation 45. Six deviations: one run in 10^8 would be wrong, and the draws are fixed. */
	for (int i = 0; i < 81; i++)
		CHECK_MSG(seen[i / 9][i % 9] > 40 && seen[i / 9][i % 9] < 160, "cell %d: %d of 8100", i, seen[i / 9][i % 9]);
	CHECK_MSG(abs(flips - 4050) < 270, "%d of 8100 flipped", flips);
}

/* Order of two epochs of 7 samples: which are taken is said by epoch, sample0 and stride. */
TEST(gather_finds_its_place_in_an_order)
{
	struct gt_attr_gather attr = {.scale = {1}};
	struct tens *im = tens_new(GT_U8, DIMS(20, 1, 1, 1)), *lab = tens_new(GT_I32, DIMS(20)), *idx = tens_new(GT_I64, DIMS(2, 7));
	struct tens *x = tens_new(GT_F32, DIMS(3, 1, 1, 1)), *target = tens_new(GT_I32, DIMS(3));
	for (int i = 0; i < 20; i++)
		im->v[i] = 10 * i, lab->v[i] = i;
	for (int i = 0; i < 14; i++)
		idx->v[i] = i < 7 ? 6 - i : 5 + i;
	for (int epoch = 3; epoch < 5; epoch++)
		for (int stride = 1; stride < 3; stride++) {
			struct op_case k = {.code = GT_OP_GATHER, .attr = &attr, .in = {im, lab, idx}, .nin = 3, .out = {x, target}, .nout = 2,
				.dyn = {.epoch = (uint64_t)epoch, .sample0 = 2, .stride = (uint64_t)stride}};
			if (!op_run(&k))
				break;
			for (int n = 0; n < 3; n++) {
				double want = idx->v[7 * (epoch % 2) + 2 + n * stride];
				CHECK(target->v[n] == want && x->v[n] == 10 * want);
			}
		}
	struct gt_opcall call = {.code = GT_OP_GATHER, .attr = &attr, .nin = 3, .nout = 2, .in = {&im->d, &lab->d, &idx->d}, .out = {&x->d, &target->d}};
	struct gt_kernel *k = NULL;
	struct gt_err e = {0};
	struct gt_dyn dyn = {.sample0 = 3, .stride = 2}; /* the third would be the eighth of seven */
	CHECK_OK(cpu_backend()->prepare(cpu_device(), &call, &k, &e), e);
	struct gt_launch a = {.in = (void *[]){im->p, lab->p, idx->p}, .out = (void *[]){x->p, target->p}, .dyn = &dyn};
	CHECK(cpu_backend()->launch(cpu_device(), k, &a, &e) == GT_EINTERNAL && strstr(e.msg, "positions 3 to 7 of an order of 7"));
	cpu_backend()->release(cpu_device(), k);
	tens_free(im), tens_free(lab), tens_free(idx), tens_free(x), tens_free(target);
}

TEST(gather_refuses_a_wild_index)
{
	struct gt_attr_gather attr = {.scale = {1}};
	struct tens *im = tens_new(GT_U8, DIMS(4, 1, 2, 2)), *lab = tens_new(GT_I32, DIMS(4)), *idx = tens_new(GT_I64, DIMS(1));
	struct tens *x = tens_new(GT_F32, DIMS(1, 1, 2, 2)), *target = tens_new(GT_I32, DIMS(1));
	struct gt_opcall call = {.code = GT_OP_GATHER, .attr = &attr, .nin = 3, .nout = 2, .in = {&im->d, &lab->d, &idx->d}, .out = {&x->d, &target->d}};
	struct gt_kernel *k = NULL;
	struct gt_err e = {0};
	struct gt_dyn dyn = {0};
	idx->v[0] = 4;
	if (!cpu_device())
		return;
	tens_upload(im), tens_upload(lab), tens_upload(idx), tens_upload(x), tens_upload(target);
	CHECK_OK(cpu_backend()->prepare(cpu_device(), &call, &k, &e), e);
	struct gt_launch a = {.in = (void *[]){im->p, lab->p, idx->p}, .out = (void *[]){x->p, target->p}, .dyn = &dyn};
	CHECK(cpu_backend()->launch(cpu_device(), k, &a, &e) == GT_EINTERNAL);
	CHECK_MSG(strstr(e.msg, "sample index 4"), "%s", e.msg);
	cpu_backend()->release(cpu_device(), k);
	tens_free(im), tens_free(lab), tens_free(idx), tens_free(x), tens_free(target);
}

RUN_TESTS()
