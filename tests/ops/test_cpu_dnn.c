/* The CPU backend's linear and convolution against loops in double. */
/* tests/run: beside others */
#include "clones.h"
#include "cpu_case.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

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
	tens_need_mag(want);
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
		TENS_CHECK(y, want, tens_sum_tol((double)in));
	CHECK_MSG(!w->d.any, "the forward call left the layout of the weights open");

	struct tens *dy = tens_new(t, DIMS(n, out)), *dx = tens_new(t, DIMS(n, in)), *wdx = tens_new(t, DIMS(n, in));
	tens_random(dy, 4, -1, 1);
	tens_need_mag(wdx);
	for (int64_t i = 0; i < n; i++)
		for (int64_t o = 0; o < out; o++)
			for (int64_t k = 0; k < in; k++) {
				double p = dy->v[i * out + o] * w->v[o * in + k];
				wdx->v[i * in + k] += p;
				wdx->mag[i * in + k] += fabs(p);
			}
	c = (struct op_case){.code = GT_OP_LINEAR_DX, .attr = &attr, .in = {dy, w}, .nin = 2, .out = {dx}, .nout = 1};
	if (op_run(&c))
		TENS_CHECK(dx, wdx, tens_sum_tol((double)out));

	/* Overwriting, then adding to what is there. */
	for (int add = 0; add < 2; add++) {
		struct tens *dw = tens_weights(GT_F32, DIMS(out, in)), *wdw = tens_new(GT_F32, DIMS(out, in));
		struct tens *db = bias ? tens_new(GT_F32, DIMS(out)) : NULL, *wdb = tens_new(GT_F32, DIMS(out));
		dw->d.any = false;
		dw->d.layout = w->d.layout;
		tens_need_mag(wdw);
		tens_need_mag(wdb);
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
		c = (struct op_case){
		    .code = GT_OP_LINEAR_DW, .attr = &attr, .in = {dy, x}, .nin = 2, .out = {dw, db}, .nout = 2, .accumulate = add ? 3 : 0};
		if (op_run(&c)) {
			TENS_CHECK(dw, wdw, tens_sum_tol((double)n));
			if (db)
				TENS_CHECK(db, wdb, tens_sum_tol((double)n));
		}
		tens_free(dw), tens_free(wdw), tens_free(db), tens_free(wdb);
	}
	tens_free(x), tens_free(w), tens_free(b), tens_free(y), tens_free(want), tens_free(dy), tens_free(dx), tens_free(wdx);
}

static const int64_t linear_shapes[][3] = {{32, 784, 512}, {32, 512, 10},  {1, 784, 33},   {7, 5, 3},    {1, 1, 1},
                                           {128, 100, 64}, {17, 300, 129}, {64, 512, 512}, {32, 17, 31}, {33, 48, 16},
                                           {200, 20, 50},  {16, 1024, 10}, {31, 65, 257}};

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
								visit(((n * c->c + o / r->og * r->cg + i) * c->h + ih) * c->w + iw,
								      ((o * r->cg + i) * c->k[0] + a) * c->k[1] + b, ((n * c->o + o) * r->oh + y) * r->ow + x, arg);
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

enum { FORWARD = 1, DX = 2, DW = 4, ALL = 7 };

/* Tests the three calls of a convolution. own: the name of the implementation that must compute these passes. */
static void conv_case(const struct conv_shape *c, enum gt_dtype t, const char *own, int passes)
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
	tens_need_mag(wy);
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
		TENS_CHECK(y, wy, tens_sum_tol(taps));
	CHECK_MSG(!(passes & FORWARD) || strstr(k.describe, own), "not by %s: %s", own, k.describe);
	if (getenv("GTRAIN_TEST_VERBOSE"))
		printf("# fwd %s n%d c%d o%d k%d g%d: %s\n", gt_dtype_name(t), (int)c->n, (int)c->c, (int)c->o, (int)c->k[0], (int)c->g,
		       k.describe);

	struct tens *dy = tens_new(t, DIMS(c->n, c->o, r.oh, r.ow)), *dx = tens_new(t, DIMS(c->n, c->c, c->h, c->w));
	struct tens *wdx = tens_new(t, DIMS(c->n, c->c, c->h, c->w));
	tens_random(dy, 4, -1, 1);
	tens_need_mag(wdx);
	conv_each(&r, conv_add, &(struct conv_sum){.a = dy->v, .b = w->v, .from = 1, .to = wdx});
	k = (struct op_case){.code = GT_OP_CONV2D_DX, .attr = &attr, .in = {dy, w}, .nin = 2, .out = {dx}, .nout = 1};
	if (op_run(&k))
		TENS_CHECK(dx, wdx, tens_sum_tol((double)(r.og * c->k[0] * c->k[1])));
	CHECK_MSG(!(passes & DX) || strstr(k.describe, own), "dx not by %s: %s", own, k.describe);
	if (getenv("GTRAIN_TEST_VERBOSE"))
		printf("# dx: %s\n", k.describe);

	for (int add = 0; add < 2; add++) {
		struct tens *dw = tens_weights(GT_F32, DIMS(c->o, r.cg, c->k[0], c->k[1])),
		            *wdw = tens_new(GT_F32, DIMS(c->o, r.cg, c->k[0], c->k[1]));
		struct tens *db = c->bias ? tens_new(GT_F32, DIMS(c->o)) : NULL, *wdb = tens_new(GT_F32, DIMS(c->o));
		dw->d.any = false;
		dw->d.layout = w->d.layout;
		tens_need_mag(wdw);
		tens_need_mag(wdb);
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
		k = (struct op_case){
		    .code = GT_OP_CONV2D_DW, .attr = &attr, .in = {dy, x}, .nin = 2, .out = {dw, db}, .nout = 2, .accumulate = add ? 3 : 0};
		if (op_run(&k)) {
			TENS_CHECK(dw, wdw, tens_sum_tol((double)(c->n * r.oh * r.ow)));
			CHECK_MSG(!(passes & DW) || strstr(k.describe, own), "dw not by %s: %s", own, k.describe);
			if (db)
				TENS_CHECK(db, wdb, tens_sum_tol((double)(c->n * r.oh * r.ow)));
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
	{1, 40, 7, 13, 40, {3, 3}, {2, 2}, {1, 1}, {1, 1}, 5, true, 1},
	{2, 8, 6, 6, 16, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 8, false, 0},
	{2, 64, 6, 6, 64, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 2, false, 0},
	{1, 1, 5, 5, 1, {5, 5}, {1, 1}, {0, 0}, {1, 1}, 1, true, 0},
	{2, 24, 11, 11, 40, {7, 7}, {3, 3}, {3, 3}, {1, 1}, 1, false, 1},
};

TEST(conv_f32)
{
	for (size_t i = 0; i < sizeof conv_shapes / sizeof *conv_shapes; i++)
		conv_case(&conv_shapes[i], GT_F32, NULL, 0);
}

TEST(conv_winograd)
{
	static const struct conv_shape shapes[] = {
		{8, 64, 8, 8, 64, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1, false, 0},
		{8, 64, 9, 11, 80, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1, true, 1},
		{33, 96, 6, 6, 64, {3, 3}, {1, 1}, {0, 0}, {1, 1}, 1, true, 0},
		{32, 64, 4, 4, 128, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1, false, 0},
	};
	if (!cpu_has_winograd())
		return;
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
		conv_case(&shapes[i], GT_F32, "wino", ALL);
}

/* Groups of 2, 4 and 8 channels, also where the last vector is not whole. */
TEST(conv_grouped)
{
	static const struct conv_shape shapes[] = {
		{2, 32, 9, 17, 32, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 8, true, 1},
		{2, 20, 9, 11, 20, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 5, false, 0},
		{2, 12, 5, 8, 12, {5, 3}, {1, 1}, {2, 0}, {1, 1}, 6, true, 0},
		{1, 72, 4, 9, 72, {1, 4}, {1, 1}, {0, 3}, {1, 1}, 9, true, 0},
		{3, 16, 13, 11, 16, {3, 3}, {2, 2}, {1, 1}, {1, 1}, 4, false, 0},
		{2, 24, 10, 14, 24, {5, 4}, {3, 2}, {2, 1}, {1, 1}, 3, true, 0},
		{1, 8, 9, 9, 8, {2, 1}, {3, 2}, {0, 0}, {1, 1}, 4, false, 1},
		{1, 16, 3, 2, 16, {5, 7}, {1, 1}, {4, 6}, {1, 1}, 8, true, 0},
	};
	if (!GT_CPU_AVX2) {
		test_skip("this processor has not the instructions");
		return;
	}
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
		conv_case(&shapes[i], GT_F32, "conv_grouped", ALL);
}

/* The gradients of depthwise convolutions: filters of more than 3x3 taps, and wide images, with groups of taps that are not whole. */
TEST(conv_depthwise)
{
	static const struct conv_shape shapes[] = {
		{2, 20, 9, 11, 20, {5, 5}, {1, 1}, {2, 2}, {1, 1}, 20, true, 0},
		{1, 16, 12, 13, 16, {7, 7}, {2, 2}, {3, 3}, {1, 1}, 16, false, 0},
		{3, 8, 2, 3, 8, {7, 5}, {1, 1}, {6, 4}, {1, 1}, 8, true, 0},
		{1, 9, 20, 9, 9, {16, 1}, {2, 3}, {3, 0}, {1, 1}, 9, false, 0},
	}, wide[] = {
		{2, 100, 5, 37, 100, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 100, true, 1},
		{1, 56, 3, 35, 56, {1, 3}, {1, 1}, {0, 2}, {1, 1}, 56, false, 0},
	}, strided = {1, 24, 5, 70, 24, {3, 3}, {2, 2}, {1, 1}, {1, 1}, 24, false, 0};
	if (!GT_CPU_AVX2) {
		test_skip("this processor has not the instructions");
		return;
	}
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
		conv_case(&shapes[i], GT_F32, "conv_grouped", DW);
	for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
		conv_case(&wide[i], GT_F32, "conv_grouped", DX | DW);
	conv_case(&strided, GT_F32, "conv_grouped", DW);
}

/* Direct convolutions: strides, groups of many channels, few input channels, and output channels that are no whole panels. Only without
 * AVX-512 they compute forward and dx. */
TEST(conv_direct)
{
	static const struct conv_shape shapes[] = {
		{2, 24, 9, 13, 40, {3, 3}, {2, 2}, {1, 1}, {1, 1}, 1, true, 1},
		{1, 64, 9, 10, 21, {3, 2}, {2, 3}, {1, 0}, {1, 1}, 1, false, 0},
		{3, 17, 8, 40, 16, {2, 4}, {1, 2}, {1, 3}, {1, 1}, 1, true, 0},
		{2, 48, 7, 9, 48, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 2, true, 0},
		{1, 40, 8, 6, 80, {3, 3}, {1, 1}, {2, 0}, {1, 1}, 5, false, 0},
		{1, 36, 5, 29, 24, {3, 5}, {3, 1}, {0, 2}, {1, 1}, 3, true, 1},
		{2, 1, 28, 28, 6, {5, 5}, {1, 1}, {2, 2}, {1, 1}, 1, true, 0},
		{1, 2, 9, 150, 33, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1, false, 0},
	}, first[] = {
		{3, 3, 19, 15, 40, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1, true, 0},
		{1, 3, 17, 31, 12, {7, 7}, {2, 2}, {3, 3}, {1, 1}, 1, false, 0},
		{64, 8, 14, 14, 16, {3, 3}, {2, 2}, {1, 1}, {1, 1}, 1, false, 0},
		{64, 1, 28, 28, 8, {3, 3}, {2, 2}, {1, 1}, {1, 1}, 1, false, 0},
	};
	if (!GT_CPU_AVX2) {
		test_skip("this processor has not the instructions");
		return;
	}
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
		conv_case(&shapes[i], GT_F32, "conv_direct", GT_CPU_AVX512 ? 0 : ALL);
	for (size_t i = 0; i < sizeof first / sizeof *first; i++)
		conv_case(&first[i], GT_F32, "conv_direct", GT_CPU_AVX512 ? 0 : DW);
}

/* So many bytes that a call that is computed in f32 divides the batch. */
TEST(bf16_large_batch)
{
	static const struct conv_shape shape = {32, 8, 64, 64, 32, {1, 1}, {1, 1}, {0, 0}, {1, 1}, 1, true, 1};
	conv_case(&shape, GT_BF16, NULL, 0);
	linear_case(65536, 33, 32, GT_BF16, true, 1);
}

TEST(conv_bf16)
{
	for (size_t i = 0; i < sizeof conv_shapes / sizeof *conv_shapes; i++)
		conv_case(&conv_shapes[i], GT_BF16, NULL, 0);
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

RUN_TESTS()
