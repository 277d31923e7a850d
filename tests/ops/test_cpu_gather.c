/* The CPU backend's gather and its augmentations against loops in double. */
#include "aug.h"
#include "cpu_case.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double gather_pixel(const struct tens *im, const struct gt_attr_gather *a, const struct gt_aug *g, int64_t s, int64_t c, int64_t y,
                           int64_t x)
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
		.step_args = {.seed = 42, .epoch = 3}};
	if (!op_run(&k))
		goto out;
	tens_need_mag(want);
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
	/* 100 a cell expected, deviation 10; 4050 flips, deviation 45. Six deviations: one run in 10^8 would be wrong, and the draws are fixed.
	 */
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
				.step_args = {.epoch = (uint64_t)epoch, .sample0 = 2, .stride = (uint64_t)stride}};
			if (!op_run(&k))
				break;
			for (int n = 0; n < 3; n++) {
				double want = idx->v[7 * (epoch % 2) + 2 + n * stride];
				CHECK(target->v[n] == want && x->v[n] == 10 * want);
			}
		}
	struct gt_opcall call = {
	    .code = GT_OP_GATHER, .attr = &attr, .nin = 3, .nout = 2, .in = {&im->d, &lab->d, &idx->d}, .out = {&x->d, &target->d}};
	struct gt_kernel *k = NULL;
	struct gt_err e = {0};
	struct gt_step_args step_args = {.sample0 = 3, .stride = 2}; /* the third would be the eighth of seven */
	CHECK_OK(cpu_backend()->prepare(cpu_device(), &call, &k, &e), e);
	struct gt_launch a = {.in = (void *[]){im->p, lab->p, idx->p}, .out = (void *[]){x->p, target->p}, .step_args = &step_args};
	CHECK(cpu_backend()->launch(cpu_device(), k, &a, &e) == GT_EINTERNAL &&
	      strstr(e.msg, "positions 3 to 7 are outside of the order of 7"));
	cpu_backend()->release(cpu_device(), k);
	tens_free(im), tens_free(lab), tens_free(idx), tens_free(x), tens_free(target);
}

/* Rows of numbers, by a list of samples and in an order, for two views. */
TEST(gather_rows)
{
	static const enum gt_dtype to[] = {GT_I32, GT_F32, GT_BF16, GT_F64};
	for (int t = 0; t < 4; t++)
		for (int views = 1; views < 3; views++) {
			bool order = views == 2;
			struct gt_attr_views attr = {views};
			struct tens *rows = tens_new(t ? GT_F32 : GT_I32, DIMS(9, 3)), *y = tens_new(to[t], DIMS(4 * views, 3));
			struct tens *want = tens_new(to[t], DIMS(4 * views, 3));
			struct tens *idx = order ? tens_new(GT_I64, DIMS(2, 9)) : tens_new(GT_I64, DIMS(4));
			tens_random(rows, 1, -100, 100);
			tens_random(idx, 2, 0, 9);
			struct op_case k = {.code = GT_OP_GATHER_ROWS, .attr = &attr, .in = {rows, idx}, .nin = 2, .out = {y}, .nout = 1,
			                    .step_args = {.epoch = 5, .sample0 = 2, .stride = 2}};
			if (op_run(&k)) {
				tens_need_mag(want);
				for (int64_t i = 0; i < 12 * views; i++) {
					int64_t n = i / 3 % 4, at = (int64_t)idx->v[order ? 9 + 2 + 2 * n : n];
					want->v[i] = rows->v[at * 3 + i % 3];
					want->mag[i] = fabs(want->v[i]);
				}
				TENS_CHECK(y, want, 0);
			}
			tens_free(rows), tens_free(y), tens_free(want), tens_free(idx);
		}
}

/* Sequences of different lengths, one of them empty, and padding behind them. */
TEST(gather_ragged)
{
	for (int views = 1; views < 3; views++) {
		bool order = views == 2;
		struct gt_attr_ragged attr = {views, -7};
		struct tens *rows = tens_new(GT_I32, DIMS(9)), *start = tens_new(GT_I64, DIMS(5)), *y = tens_new(GT_I32, DIMS(3 * views, 4));
		struct tens *want = tens_new(GT_I32, DIMS(3 * views, 4));
		struct tens *idx = order ? tens_new(GT_I64, DIMS(2, 6)) : tens_new(GT_I64, DIMS(3));
		static const double ends[5] = {0, 2, 2, 6, 9};
		tens_random(rows, 1, -100, 100);
		tens_random(idx, 2, 0, 4);
		for (int i = 0; i < 5; i++)
			start->v[i] = ends[i];
		struct op_case k = {.code = GT_OP_GATHER_RAGGED, .attr = &attr, .in = {rows, start, idx}, .nin = 3, .out = {y}, .nout = 1,
		                    .step_args = {.epoch = 5, .sample0 = 1, .stride = 2}};
		if (op_run(&k)) {
			tens_need_mag(want);
			for (int64_t i = 0; i < 12 * views; i++) {
				int64_t n = i / 4 % 3, at = (int64_t)idx->v[order ? 6 + 1 + 2 * n : n], from = (int64_t)ends[at] + i % 4;
				want->v[i] = from < (int64_t)ends[at + 1] ? rows->v[from] : -7;
				want->mag[i] = fabs(want->v[i]);
			}
			TENS_CHECK(y, want, 0);
		}
		tens_free(rows), tens_free(start), tens_free(y), tens_free(want), tens_free(idx);
	}
}

/* A sequence that does not fit into its row is not written. */
TEST(gather_ragged_refuses_a_long_sequence)
{
	struct gt_attr_ragged attr = {1, 0};
	struct tens *rows = tens_new(GT_I32, DIMS(9)), *start = tens_new(GT_I64, DIMS(2)), *idx = tens_new(GT_I64, DIMS(1));
	struct tens *y = tens_new(GT_I32, DIMS(1, 4));
	struct gt_opcall call = {.code = GT_OP_GATHER_RAGGED, .attr = &attr, .nin = 3, .nout = 1, .in = {&rows->d, &start->d, &idx->d},
	                         .out = {&y->d}};
	struct gt_kernel *k = NULL;
	struct gt_err e = {0};
	struct gt_step_args step_args = {0};
	if (!cpu_device())
		return;
	start->v[1] = 5;
	tens_upload(rows), tens_upload(start), tens_upload(idx), tens_upload(y);
	CHECK_OK(cpu_backend()->prepare(cpu_device(), &call, &k, &e), e);
	struct gt_launch a = {.in = (void *[]){rows->p, start->p, idx->p}, .out = (void *[]){y->p}, .step_args = &step_args};
	CHECK(cpu_backend()->launch(cpu_device(), k, &a, &e) == GT_EINTERNAL);
	CHECK_MSG(strstr(e.msg, "sample 0 has 5 values, but a row has only 4"), "%s", e.msg);
	cpu_backend()->release(cpu_device(), k);
	tens_free(rows), tens_free(start), tens_free(idx), tens_free(y);
}

TEST(gather_refuses_a_wild_index)
{
	struct gt_attr_gather attr = {.scale = {1}};
	struct tens *im = tens_new(GT_U8, DIMS(4, 1, 2, 2)), *lab = tens_new(GT_I32, DIMS(4)), *idx = tens_new(GT_I64, DIMS(1));
	struct tens *x = tens_new(GT_F32, DIMS(1, 1, 2, 2)), *target = tens_new(GT_I32, DIMS(1));
	struct gt_opcall call = {
	    .code = GT_OP_GATHER, .attr = &attr, .nin = 3, .nout = 2, .in = {&im->d, &lab->d, &idx->d}, .out = {&x->d, &target->d}};
	struct gt_kernel *k = NULL;
	struct gt_err e = {0};
	struct gt_step_args step_args = {0};
	idx->v[0] = 4;
	if (!cpu_device())
		return;
	tens_upload(im), tens_upload(lab), tens_upload(idx), tens_upload(x), tens_upload(target);
	CHECK_OK(cpu_backend()->prepare(cpu_device(), &call, &k, &e), e);
	struct gt_launch a = {.in = (void *[]){im->p, lab->p, idx->p}, .out = (void *[]){x->p, target->p}, .step_args = &step_args};
	CHECK(cpu_backend()->launch(cpu_device(), k, &a, &e) == GT_EINTERNAL);
	CHECK_MSG(strstr(e.msg, "sample index 4"), "%s", e.msg);
	cpu_backend()->release(cpu_device(), k);
	tens_free(im), tens_free(lab), tens_free(idx), tens_free(x), tens_free(target);
}

RUN_TESTS()
