/* Winograd convolutions against direct convolutions of the same size: their sums are too large for plain loops. */
#include "cpu_case.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct shape {
	int64_t n, c, h, w, o;
	bool bias;
};

static struct tens *run(enum gt_opcode code, const struct gt_attr_conv2d *a, struct tens *x, struct tens *w, struct tens *y, struct tens *b,
                        struct tens *start, bool wino, bool add)
{
	struct tens *to = code == GT_OP_CONV2D ? y : code == GT_OP_CONV2D_DX ? x : w;
	struct tens *out = code == GT_OP_CONV2D_DW ? tens_weights(GT_F32, to->d.rank, to->d.dim) : tens_new(GT_F32, to->d.rank, to->d.dim);
	struct op_case k = {.code = code, .attr = a, .nin = code == GT_OP_CONV2D ? 3 : 2, .nout = code == GT_OP_CONV2D_DW ? 2 : 1};
	k.in[0] = code == GT_OP_CONV2D ? x : y;
	k.in[1] = code == GT_OP_CONV2D_DW ? x : w;
	k.out[0] = out;
	if (code == GT_OP_CONV2D)
		k.in[2] = b;
	if (code == GT_OP_CONV2D_DW) {
		out->d.any = false; /* plain */
		k.out[1] = b ? start : NULL;
		k.accumulate = add ? 3 : 0;
		memcpy(out->v, w->v, (size_t)gt_tdesc_count(&w->d) * sizeof *w->v); /* what is added to */
	}
	CHECK(op_run(&k));
	CHECK_MSG(!strstr(k.describe, "wino") == !wino, "%s: %s", gt_opcode_name(code), k.describe);
	return out;
}

/* Differences are held to 2e-6 of the sum of magnitudes of a typical output, K products of values in [-1, 1]: Winograd's own error (its
 * header). */
static void compare(enum gt_opcode code, const struct shape *s, bool add)
{
	struct gt_attr_conv2d a = {
	    .out = s->o, .kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}, .dilation = {1, 1}, .groups = 1, .bias = s->bias};
	struct tens *x = tens_new(GT_F32, DIMS(s->n, s->c, s->h, s->w)), *y = tens_new(GT_F32, DIMS(s->n, s->o, s->h, s->w));
	struct tens *w = tens_weights(GT_F32, DIMS(s->o, s->c, 3, 3)), *b = s->bias ? tens_new(GT_F32, DIMS(s->o)) : NULL;
	struct tens *db[2] = {tens_new(GT_F32, DIMS(s->o)), tens_new(GT_F32, DIMS(s->o))}, *out[2];
	double taps = code == GT_OP_CONV2D ? 9. * (double)s->c : code == GT_OP_CONV2D_DX ? 9. * (double)s->o : (double)(s->n * s->h * s->w);
	w->d.any = false;
	tens_random(x, 1, -1, 1);
	tens_random(y, 2, -1, 1);
	tens_random(w, 3, -1, 1);
	if (b)
		tens_random(b, 4, -1, 1);
	for (int i = 0; i < 2; i++) {
		tens_random(db[i], 5, -1, 1);
		cpu_winograd(i == 0);
		out[i] = run(code, &a, x, w, y, b, db[i], i == 0, add);
	}
	cpu_winograd(true);
	tens_need_mag(out[1]);
	for (int64_t i = 0; i < gt_tdesc_count(&out[1]->d); i++)
		out[1]->mag[i] = taps / 4;
	TENS_CHECK(out[0], out[1], 2e-6);
	if (b && code == GT_OP_CONV2D_DW) {
		double worst = 0;
		for (int64_t i = 0; i < s->o; i++)
			worst = fmax(worst, fabs(db[0]->v[i] - db[1]->v[i]));
		CHECK_MSG(worst <= 2e-6 * taps, "db differs by %g", worst);
	}
	for (int i = 0; i < 2; i++)
		tens_free(out[i]), tens_free(db[i]);
	tens_free(x), tens_free(y), tens_free(w), tens_free(b);
}

static const struct shape shapes[] = {
	{32, 64, 32, 32, 64, true},   /* several chunks of tiles */
	{16, 128, 24, 20, 96, false},
	{50, 16, 14, 14, 16, false},
	{3, 16, 19, 22, 16, true},    /* one panel of columns; tiles that overhang */
	{7, 48, 9, 7, 80, true},      /* a last panel of half the width */
	{32, 512, 4, 4, 512, true},   /* more transformed weights than caches hold */
	{36, 256, 6, 6, 768, true},
	{32, 640, 4, 4, 512, false},
	{4, 32, 14, 14, 48, true},    /* 64 tiles: the last 16 rows of a product are two blocks of 8 */
	{2, 160, 15, 19, 32, false},  /* 40 tiles: a last block of 4 rows */
};

static void each(enum gt_opcode code, bool add)
{
	for (size_t i = 0; cpu_has_winograd() && i < sizeof shapes / sizeof *shapes; i++)
		compare(code, &shapes[i], add);
}

TEST(wino_parts_forward)
{
	each(GT_OP_CONV2D, false);
}

TEST(wino_parts_dx)
{
	each(GT_OP_CONV2D_DX, false);
}

TEST(wino_parts_dw)
{
	each(GT_OP_CONV2D_DW, false);
}

TEST(wino_parts_dw_added)
{
	each(GT_OP_CONV2D_DW, true);
}

/* The gradient of the bias of a large image has many more terms than f32 can add one after another: with 65,536 terms of one sign it was
 * wrong by 7e-6 and more. Checked for Winograd convolutions, and for depthwise ones (conv_grouped_dw.c). */
TEST(bias_gradient_of_large_images)
{
	for (int groups = 1; cpu_has_winograd() && groups <= 32; groups += 31) {
		struct gt_attr_conv2d a = {
		    .out = 32, .kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}, .dilation = {1, 1}, .groups = groups, .bias = true};
		int64_t pixels = 256 * 256;
		struct tens *x = tens_new(GT_F32, DIMS(1, 32, 256, 256)), *dy = tens_new(GT_F32, DIMS(1, 32, 256, 256));
		struct tens *dw = tens_weights(GT_F32, DIMS(32, 32 / groups, 3, 3)), *db = tens_new(GT_F32, DIMS(32));
		struct op_case k = {.code = GT_OP_CONV2D_DW, .attr = &a, .in = {dy, x}, .nin = 2, .out = {dw, db}, .nout = 2};
		tens_random(x, 1, -1, 1);
		tens_random(dy, 2, 0, 1);
		CHECK(op_run(&k));
		bool own = strstr(k.describe, groups == 1 ? "wino" : "conv_grouped");
		CHECK_MSG(own || groups > 1, "%s", k.describe);
		for (int64_t c = 0; c < 32 && own; c++) { /* oneDNN's depthwise convolutions, where they are used, add in f32 */
			double want = 0;
			for (int64_t i = 0; i < pixels; i++)
				want += dy->v[c * pixels + i];
			CHECK_MSG(fabs(db->v[c] - want) <= 1e-6 * want, "%d groups: db[%d] is %.9g, not %.9g", groups, (int)c, db->v[c], want);
		}
		tens_free(x), tens_free(dy), tens_free(dw), tens_free(db);
	}
}

RUN_TESTS()
