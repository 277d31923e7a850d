/* gt_image_load and gt_image_transform: geometry, determinism, and the static check of lists. */
#include "aug.h"
#include "image/decode.h"
#include "image/transform.h"
#include "test.h"
#include <stdlib.h>
#include <string.h>

#define LIST(...) ((struct gt_transform_list){(const struct gt_transform[]){__VA_ARGS__}, \
	                                           (int)(sizeof(struct gt_transform[]){__VA_ARGS__} / sizeof(struct gt_transform))})
#define RESIZE(...) {.type = GT_TF_RESIZE, .size = {__VA_ARGS__}, .interpolation = GT_INTERP_BILINEAR}
#define RRC(n) {.type = GT_TF_RANDOM_RESIZED_CROP, .size = {n}, .scale = {0.08, 1}, .ratio = {0.75, 4.0 / 3}, .interpolation = 1}

static void pattern(uint8_t *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		b[i] = (uint8_t)(i * i * 37 + i * 11 + 5);
}

TEST(as_the_gather_kernel)
{
	enum { H = 7, W = 9, PAD = 3 };
	uint8_t in[H * W * 3], out[H * W * 3], want[H * W * 3];
	struct gt_image_scratch *s;
	struct gt_err e;
	int flips = 0;
	pattern(in, sizeof in);
	CHECK_OK(gt_image_scratch_open(&s, &e), e);
	for (int i = 0; i < 400; i++) {
		struct gt_attr_gather a = {.augment = true, .pad = PAD, .pad_reflect = i & 1, .hflip = 0.5, .hflip_alternate = i & 2};
		struct gt_sample_key key = {7, (uint64_t)i / 40, (uint64_t)i % 40};
		struct gt_transform crop = {.type = GT_TF_PAD_CROP, .pad = PAD, .mode = i & 1},
		                    flip = {.type = GT_TF_HFLIP, .p = 0.5, .alternate = i & 2};
		struct gt_aug g = gt_aug_of(&a, key.seed, key.epoch, key.sample, 0);
		flips += g.flip;
		for (int y = 0; y < H; y++)
			for (int x = 0; x < W; x++)
				for (int c = 0; c < 3; c++) {
					int row = gt_aug_source(y + g.dy, H, a.pad_reflect),
					    column = gt_aug_source((g.flip ? W - 1 - x : x) + g.dx, W, a.pad_reflect);
					want[(y * W + x) * 3 + c] = row < 0 || column < 0 ? 0 : in[(row * W + column) * 3 + c];
				}
		CHECK_OK(gt_image_transform(in, H, W, 3, "x", i & 4 ? LIST(crop, flip) : LIST(flip, crop), &key, 3, H, W, s, out, &e), e);
		CHECK_MSG(!memcmp(out, want, sizeof want), "case %d", i);
	}
	CHECK(flips > 150 && flips < 250);
	gt_image_scratch_close(s);
}

/* resize and center_crop in one view, with a flip behind them, equal the single transforms one after another. */
TEST(fused_views)
{
	enum { H = 53, W = 71 };
	static uint8_t in[H * W * 3], one[H * W * 3], two[H * W * 3], three[H * W * 3];
	struct gt_image_scratch *s;
	struct gt_err e;
	struct gt_transform resize = RESIZE(31), exact = RESIZE(41, 29), crop = {.type = GT_TF_CENTER_CROP, .size = {23, 26}},
	                    flip = {.type = GT_TF_HFLIP, .p = 1}, vflip = {.type = GT_TF_VFLIP, .p = 1};
	struct gt_sample_key key = {1, 2, 3};
	pattern(in, sizeof in);
	CHECK_OK(gt_image_scratch_open(&s, &e), e);
	for (int c = 1; c <= 3; c += 2)
		for (int k = 0; k < 2; k++) {
			int h = k ? 41 : 31, w = k ? 29 : 31 * W / H;
			CHECK_OK(gt_image_transform(in, H, W, c, "x", LIST(k ? exact : resize), &key, c, h, w, s, one, &e), e);
			CHECK_OK(gt_image_transform(one, h, w, c, "x", LIST(crop), &key, c, 23, 26, s, two, &e), e);
			CHECK_OK(gt_image_transform(in, H, W, c, "x", LIST(k ? exact : resize, crop), &key, c, 23, 26, s, three, &e), e);
			CHECK_MSG(!memcmp(two, three, (size_t)(23 * 26 * c)), "%d channels, case %d", c, k);
			CHECK_OK(gt_image_transform(two, 23, 26, c, "x", LIST(flip), &key, c, 23, 26, s, one, &e), e);
			CHECK_OK(gt_image_transform(in, H, W, c, "x", LIST(k ? exact : resize, crop, flip), &key, c, 23, 26, s, three, &e), e);
			CHECK_MSG(!memcmp(one, three, (size_t)(23 * 26 * c)), "%d channels, case %d, flipped", c, k);
			CHECK_OK(gt_image_transform(one, 23, 26, c, "x", LIST(vflip, flip), &key, c, 23, 26, s, three, &e), e);
			for (int i = 0; i < 23 * 26; i++)
				CHECK(!memcmp(three + i * c, two + ((22 - i / 26) * 26 + i % 26) * c, (size_t)c));
		}
	gt_image_scratch_close(s);
}

TEST(center_crop_pads)
{
	uint8_t in[3 * 2], out[5 * 5];
	static const uint8_t want[25] = {0, 0, 0, 0, 0, 0, 5, 53, 0, 0, 0, 175, 115, 0, 0, 0, 129, 217, 0, 0};
	struct gt_image_scratch *s;
	struct gt_err e;
	struct gt_transform crop = {.type = GT_TF_CENTER_CROP, .size = {5}};
	pattern(in, sizeof in);
	CHECK_OK(gt_image_scratch_open(&s, &e), e);
	CHECK_OK(gt_image_transform(in, 3, 2, 1, "x", LIST(crop), NULL, 1, 5, 5, s, out, &e), e);
	for (int i = 0; i < 25; i++)
		CHECK_MSG(out[i] == (want[i] ? in[(i / 5 - 1) * 2 + i % 5 - 1] : 0), "pixel %d", i);
	CHECK(gt_image_transform(in, 3, 2, 1, "x", LIST(crop), NULL, 1, 5, 4, s, out, &e) == GT_EDATA && strstr(e.msg, "x: expected"));
	gt_image_scratch_close(s);
}

TEST(static_check)
{
	static const struct {
		struct gt_transform t[3];
		int n;
		int64_t ih, iw;
		const char *why; /* NULL: correct */
		int at;
	} cases[] = {
	    {{{.type = GT_TF_HFLIP}}, 1, 32, 32, NULL, 1},
	    {{{.type = GT_TF_HFLIP}}, 1, 0, 0, "any size", 1},
	    {{RRC(32), {.type = GT_TF_HFLIP}}, 2, 0, 0, NULL, 2},
	    {{RRC(31), {.type = GT_TF_HFLIP}}, 2, 0, 0, "got 31 x 31", 2},
	    {{RESIZE(32)}, 1, 0, 0, "any size", 1},
	    {{RESIZE(32)}, 1, 64, 64, NULL, 1},
	    {{RESIZE(32)}, 1, 64, 96, "got 32 x 48", 1},
	    {{RESIZE(32), {.type = GT_TF_CENTER_CROP, .size = {32}}}, 2, 0, 0, NULL, 2},
	    {{RESIZE(32, 32)}, 1, 0, 0, NULL, 1},
	    {{RESIZE(32), {.type = GT_TF_PAD_CROP, .pad = 4, .mode = 1}, {.type = GT_TF_CENTER_CROP, .size = {32}}}, 3, 0, 0, NULL, 3},
	    {{{.type = GT_TF_PAD_CROP, .pad = 4, .mode = 1}, {.type = GT_TF_CENTER_CROP, .size = {32}}}, 2, 0, 0, "before pad_crop", 0},
	    {{{.type = GT_TF_HFLIP}, {.type = GT_TF_HFLIP}}, 2, 32, 32, "at most one hflip", 1},
	    {{{.type = GT_TF_RESIZE, .size = {32, 32}}}, 1, 0, 0, "expected interpolation = \"bilinear\"", 0},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char why[256] = "";
		int at;
		enum gt_code rc = gt_transform_check((struct gt_transform_list){cases[i].t, cases[i].n}, cases[i].ih, cases[i].iw, 3, 32, 32, &at,
		                                     why, sizeof why);
		CHECK_MSG(rc == (cases[i].why ? GT_ECONFIG : GT_OK) && at == cases[i].at, "case %zu: code %d at %d: %s", i, (int)rc, at, why);
		CHECK_MSG(!cases[i].why || (strstr(why, cases[i].why) && !strncmp(why, "expected", 8)), "case %zu: %s", i, why);
	}
}

RUN_TESTS()
