/* What evaluation with views and layers with frozen weights need: views of an image, their mean, sums of rows; alternating flips. */
#include "aug.h"
#include "cpu_raw.h"
#include "test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rows of view v are the images shifted and mirrored by hand, in float. */
TEST(views_of_images)
{
	enum { N = 5, C = 3, H = 6, W = 7, M = 9 };
	static const int shift[3] = {0, -1, 1};
	uint8_t images[M * H * W * C];
	int32_t labels[M], target[N];
	int64_t index[N] = {8, 0, 3, 3, 7};
	for (int i = 0; i < M * H * W * C; i++)
		images[i] = (uint8_t)(i * 31 >> 2);
	for (int i = 0; i < M; i++)
		labels[i] = 10 + i;
	for (int views = 1; views <= 6; views += views == 1 ? 1 : 4) {
		int64_t di[4] = {M, C, H, W}, n[1] = {N}, m[1] = {M}, dx[4] = {N * views, C, H, W};
		struct gt_tdesc im = gt_tdesc_make(GT_U8, 4, di, true), la = gt_tdesc_make(GT_I32, 1, m, false),
		                ix = gt_tdesc_make(GT_I64, 1, n, false), xd = gt_tdesc_make(GT_F32, 4, dx, true),
		                td = gt_tdesc_make(GT_I32, 1, n, false);
		struct gt_attr_gather a = {.views = views};
		for (int c = 0; c < C; c++)
			a.scale[c] = 0.5f, a.shift[c] = (float)c;
		struct gt_opcall call = {.code = GT_OP_GATHER, .attr = &a, .nin = 3, .nout = 2, .in = {&im, &la, &ix}, .out = {&xd, &td}};
		float *x = raw_alloc(GT_F32, (int64_t)N * views * H * W * C);
		struct gt_step_args step_args = {.epoch = 3};
		if (!raw_run(2, &call, (void *[]){images, labels, index}, (void *[]){x, target}, &step_args))
			return;
		int wrong = 0;
		for (int v = 0; v < views; v++)
			for (int i = 0; i < N; i++)
				for (int y = 0; y < H; y++)
					for (int q = 0; q < W; q++)
						for (int c = 0; c < C; c++) {
							int sy = y + shift[v / 2], sx = (v & 1 ? W - 1 - q : q) + shift[v / 2];
							sy = sy < 0 ? 1 : sy == H ? H - 2 : sy; /* reflected: the border itself is not repeated */
							sx = sx < 0 ? 1 : sx == W ? W - 2 : sx;
							float want = (float)images[((index[i] * H + sy) * W + sx) * C + c] * 0.5f + (float)c;
							wrong += x[((((int64_t)v * N + i) * H + y) * W + q) * C + c] != want;
						}
		CHECK_MSG(!wrong, "%d views: %d values differ", views, wrong);
		for (int i = 0; i < N; i++)
			CHECK(target[i] == labels[index[i]]);
		free(x);
	}
}

TEST(weights_of_views)
{
	for (int views = 2; views <= 6; views += 4) {
		float sum = 0;
		for (int v = 0; v < views; v++)
			sum += gt_aug_view_weight(views, v);
		CHECK(sum == 1);
		for (int v = 0; v < views; v += 2) /* an image and its mirror image weigh the same */
			CHECK(gt_aug_view_weight(views, v) == gt_aug_view_weight(views, v + 1));
	}
	CHECK(gt_aug_view_weight(6, 0) + gt_aug_view_weight(6, 1) == 0.5f); /* the image in its place counts as much as both shifts */
}

TEST(mean_of_views)
{
	for (int t = 0; t < 3; t++)
		for (int views = 2; views <= 6; views += 4) {
			enum { N = 37, C = 11 };
			enum gt_dtype d = raw_types[t];
			int64_t in[2] = {(int64_t)N * views, C}, out[2] = {N, C};
			struct gt_tdesc x = gt_tdesc_make(d, 2, in, true), y = gt_tdesc_make(d, 2, out, true);
			struct gt_attr_views a = {views};
			struct gt_opcall call = {.code = GT_OP_VIEWS_MEAN, .attr = &a, .nin = 1, .nout = 1, .in = {&x}, .out = {&y}};
			void *xs = raw_alloc(d, (int64_t)N * views * C), *ys = raw_alloc(d, (int64_t)N * C);
			double want[N * C], tol[N * C];
			raw_random(d, xs, (int64_t)N * views * C, 5, -2, 2);
			if (!raw_run(2, &call, (void *[]){xs}, (void *[]){ys}, &(struct gt_step_args){0}))
				return;
			for (int i = 0; i < N * C; i++) {
				want[i] = 0;
				for (int v = 0; v < views; v++)
					want[i] += (double)gt_aug_view_weight(views, v) * gt_load_number(d, xs, (int64_t)v * N * C + i);
				tol[i] = 2 * views * raw_eps(d) * 2; /* a product and a sum a view, of terms up to 2 */
			}
			RAW_CHECK("views.mean", d, ys, want, tol, N * C);
			free(xs), free(ys);
		}
}

TEST(bias_db_sums_rows)
{
	static const int64_t shapes[][4] = {{1, 1, 1, 1},     {7, 5, 3, 3},    {3, 24, 31, 31}, {2000, 10, 1, 1},
	                                    {1024, 16, 1, 1}, {1025, 3, 1, 1}, {3, 2500, 2, 1}};
	for (int t = 0; t < 3; t++)
		for (int s = 0; s < 7; s++)
			for (int add = 0; add < 2; add++) {
				enum gt_dtype d = raw_types[t], o = d == GT_F64 ? GT_F64 : GT_F32;
				int64_t c = shapes[s][1], rows = shapes[s][0] * shapes[s][2] * shapes[s][3];
				bool flat = shapes[s][2] * shapes[s][3] == 1;
				struct gt_tdesc x = gt_tdesc_make(d, flat ? 2 : 4, shapes[s], true), y = gt_tdesc_make(o, 1, &c, false);
				struct gt_opcall call = {.code = GT_OP_BIAS_DB, .nin = 1, .nout = 1, .in = {&x}, .out = {&y}, .accumulate = (uint32_t)add};
				void *xs = raw_alloc(d, rows * c), *one = raw_alloc(o, c), *two = raw_alloc(o, c);
				double *want = calloc((size_t)c, sizeof *want), *tol = calloc((size_t)c, sizeof *tol);
				raw_random(d, xs, rows * c, 9, -1, 1);
				raw_random(o, one, c, 10, -1, 1);
				memcpy(two, one, (size_t)c * gt_dtype_size(o));
				for (int64_t j = 0; j < c; j++) {
					want[j] = add ? gt_load_number(o, one, j) : 0;
					for (int64_t i = 0; i < rows; i++)
						want[j] += gt_load_number(d, xs, i * c + j);
					/* runs of 64 rows in the type, up to 64 in magnitude, rounded 64 times; the rest in double, rounded once */
					tol[j] = 64 * 64 * raw_eps(o) * (double)(rows / 64 + 1) / 8 + raw_eps(o) * (double)rows;
				}
				if (!raw_run(1, &call, (void *[]){xs}, (void *[]){one}, &(struct gt_step_args){0}) ||
				    !raw_run(2, &call, (void *[]){xs}, (void *[]){two}, &(struct gt_step_args){0}))
					return;
				RAW_CHECK("bias.db", o, one, want, tol, c);
				CHECK(!memcmp(one, two, (size_t)c * gt_dtype_size(o))); /* whatever the threads */
				free(xs), free(one), free(two), free(want), free(tol);
			}
}

/* What is mirrored in one epoch is not in the next; the first draw has the probability asked for. */
TEST(alternating_flips)
{
	struct gt_attr_gather a = {.augment = true, .hflip = 0.3, .hflip_alternate = true, .pad = 2};
	int flips = 0, moved = 0;
	for (uint64_t s = 0; s < 4000; s++) {
		struct gt_aug first = gt_aug_of(&a, 5, 0, s, 0);
		flips += first.flip;
		for (uint64_t e = 1; e < 5; e++) {
			struct gt_aug g = gt_aug_of(&a, 5, e, s, 0), plain = gt_aug_draw(5, e, s, 2, 0.3);
			CHECK(g.flip == (first.flip ^ (int)(e & 1)));
			CHECK(g.dy == plain.dy && g.dx == plain.dx); /* the crop is drawn anew */
			moved += g.dy != first.dy;
		}
	}
	CHECK_MSG(abs(flips - 1200) < 174, "%d of 4000 flipped", flips); /* six deviations of 29; the draws are fixed */
	CHECK(moved > 10000);
}

RUN_TESTS()
