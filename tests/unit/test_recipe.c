/* Recipes (datasets/image/recipe_draw.h, kernels/recipe.h) against the transforms of the threads: the same bytes, whatever the list and its
 * division. */
#include "image/recipe_draw.h"
#include "recipe.h"
#include "test.h"
#include "image_calls.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jpeglib.h>

enum { MAX = 3 * 40 * 40, LARGE = 3 * 200 * 200 };

static int resized[3]; /* number of images by enum gt_recipe_resize */

/* Computes the image of a row as gather.recipes does. */
static void cook(const uint8_t *row, const struct gt_recipe_split *split, int c, int32_t h, int32_t w, uint8_t *out)
{
	struct gt_recipe r;
	struct gt_recipe_op op[GT_RECIPE_MAX_OPS];
	int32_t grey[GT_RECIPE_MAX_OPS] = {0}, v[3], contrasts = 0;
	struct gt_recipe_image im = {.pixels = row + gt_recipe_pixels_at(split->ops), .h = h, .w = w};
	static int32_t taps[GT_RECIPE_SIDES * GT_RECIPE_TAP_INTS];
	memcpy(&r, row, sizeof r);
	resized[r.resize]++;
	if (r.resize) {
		for (int i = 0; i < w + h; i++)
			gt_recipe_taps(i < w ? &r.x : &r.y, r.bicubic, i < w ? i : i - w, taps + i * GT_RECIPE_TAP_INTS);
		im.taps = taps;
		im.stride = r.stride;
		im.columns = r.resize == GT_RECIPE_COLUMNS_FIRST;
	}
	CHECK_MSG(r.n <= split->ops, "%d operations, but memory for %d", r.n, split->ops);
	memcpy(op, row + sizeof r, (size_t)r.n * sizeof *op);
	for (int i = 0; i < r.n; i++) {
		int64_t sum = 0;
		contrasts += op[i].kind == GT_RECIPE_CONTRAST;
		for (int32_t p = 0; op[i].kind == GT_RECIPE_CONTRAST && p < h * w; p++) {
			gt_recipe_pixel(op, i, grey, &im, c, p / w, p % w, v);
			sum += c == 3 ? gt_pixel_luma(v[0], v[1], v[2]) : v[0];
		}
		grey[i] = gt_pixel_mean(sum, (int64_t)h * w);
	}
	CHECK_MSG(contrasts <= split->contrasts, "%d changes of contrast, expected at most %d", contrasts, split->contrasts);
	for (int32_t p = 0; p < h * w; p++) {
		gt_recipe_pixel(op, r.n, grey, &im, c, p / w, p % w, v);
		for (int k = 0; k < c; k++)
			out[p * c + k] = (uint8_t)v[k];
	}
}

static uint32_t next(uint32_t *state)
{
	return gt_philox4x32((*state)++, 1, 2, 3, 4, 5).v[0];
}

static double between(uint32_t *state, double from, double to)
{
	return from + (to - from) * (double)gt_rng_uniform(next(state));
}

static struct gt_transform random_transform(uint32_t *state, int64_t h, int64_t w)
{
	static const int types[] = {GT_TF_PAD_CROP, GT_TF_HFLIP, GT_TF_VFLIP, GT_TF_COLOR_JITTER, GT_TF_COLOR_JITTER, GT_TF_GRAYSCALE,
	                            GT_TF_RANDOM_ERASING, GT_TF_RANDOM_RESIZED_CROP, GT_TF_ROTATE};
	struct gt_transform t = {.type = types[next(state) % (sizeof types / sizeof *types)], .p = 0.7};
	bool on[6];
	for (int i = 0; i < 6; i++)
		on[i] = next(state) % 3 > 0;
	t.pad = t.type == GT_TF_PAD_CROP ? 4 : 0;
	t.mode = on[0];
	t.alternate = on[1];
	t.brightness = on[0] ? between(state, 0.1, 1.5) : 0;
	t.contrast = on[1] ? between(state, 0.1, 1.5) : 0;
	t.saturation = on[2] ? between(state, 0.1, 1.5) : 0;
	t.hue = on[3] ? between(state, 0.05, 0.5) : 0;
	t.scale[0] = 0.1, t.scale[1] = 0.6;
	t.ratio[0] = 0.5, t.ratio[1] = 2;
	t.random = on[4];
	if (t.type == GT_TF_RANDOM_ERASING && on[5])
		t.fill = (struct gt_floats){.n = 1, .v = {0.3}};
	t.mean = (struct gt_floats){.n = 3, .v = {0.3, 0.5, 0.9}};
	t.degrees = 30;
	t.interpolation = GT_INTERP_BILINEAR;
	t.size[0] = h, t.size[1] = w;
	return t;
}

TEST(the_bytes_of_the_threads)
{
	static uint8_t in[LARGE], want[MAX], got[MAX], row[GT_RECIPE_SLOT * MAX + 4096];
	struct gt_image_scratch *s;
	struct gt_err e;
	uint32_t state = 5;
	int done[GT_TF_COUNT] = {0}, divided = 0;
	memset(resized, 0, sizeof resized);
	CHECK_OK(gt_image_scratch_open(&s, &e), e);
	for (int i = 0; i < 3000; i++) {
		int c = next(&state) % 4 ? 3 : 1, n = (int)(next(&state) % 6), before = (int)(next(&state) % 4);
		int64_t h = 7 + next(&state) % 33, w = 7 + next(&state) % 33, ih = h, iw = w;
		struct gt_transform t[8];
		if (before) { /* begin with a view */
			ih = 7 + next(&state) % 190;
			iw = 7 + next(&state) % 190;
			t[0] = (struct gt_transform){.type = before == 1 ? GT_TF_RANDOM_RESIZED_CROP : GT_TF_RESIZE, .size = {h, w},
			                             .scale = {0.05, 1}, .ratio = {0.5, 2}, .interpolation = 1 + (int)(next(&state) % 2)};
			if (before == 3) { /* the shorter side; sometimes less than the crop */
				t[0].size[0] = (h > w ? h : w) + next(&state) % 9 - 1;
				t[0].size[1] = 0;
				t[1] = (struct gt_transform){.type = GT_TF_CENTER_CROP, .size = {h, w}};
			}
		}
		before -= before > 1;
		for (int k = 0; k < n; k++)
			t[before + k] = random_transform(&state, h, w);
		n += before;
		struct gt_transform_list list = {t, n};
		struct gt_sample_key key = {next(&state), next(&state) % 9, next(&state) % 1000};
		for (int64_t k = 0; k < c * ih * iw; k++)
			in[k] = (uint8_t)(i % 5 ? next(&state) : next(&state) % 3 * 100); /* also few colours, and equal ones */
		struct gt_recipe_split split = gt_recipe_split_of(list, c, h, w);
		CHECK_OK(image_transform(in, ih, iw, c, "x", list, &key, c, h, w, s, want, &e), e);
		if (!split.on) {
			CHECK(split.first == n);
			continue;
		}
		CHECK(split.row % 16 == 0 && split.row <= (int64_t)sizeof row);
		memset(row, 0xa5, sizeof row);
		CHECK_OK(recipe_transform(in, ih, iw, c, "x", list, &split, &key, c, h, w, s, row, &e), e);
		cook(row, &split, c, (int32_t)h, (int32_t)w, got);
		CHECK_MSG(!memcmp(got, want, (size_t)(c * h * w)), "list %d of %d transforms, %d by the threads, images of %d x %lld x %lld", i, n,
		          split.first, c, (long long)h, (long long)w);
		for (size_t k = (size_t)split.row; k < sizeof row; k++)
			CHECK(row[k] == 0xa5);
		divided += split.first > 0;
		for (int k = split.first; k < n; k++)
			done[t[k].type]++;
	}
	CHECK(done[GT_TF_PAD_CROP] > 200 && done[GT_TF_HFLIP] > 200 && done[GT_TF_VFLIP] > 200 && done[GT_TF_COLOR_JITTER] > 200 &&
	      done[GT_TF_GRAYSCALE] > 100 && done[GT_TF_RANDOM_ERASING] > 200 && divided > 200);
	CHECK(!done[GT_TF_ROTATE] && !done[GT_TF_RANDOM_RESIZED_CROP]);
	CHECK_MSG(resized[GT_RECIPE_AS_IT_IS] > 300 && resized[GT_RECIPE_ROWS_FIRST] > 300 && resized[GT_RECIPE_COLUMNS_FIRST] > 50,
	          "%d %d %d", resized[0], resized[1], resized[2]);
	gt_image_scratch_close(s);
}

/* Encodes a JPEG with an Exif orientation. */
static uint8_t *encode(int w, int h, int orientation, size_t *size)
{
	uint8_t exif[] = {'E', 'x', 'i', 'f', 0, 0, 'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, (uint8_t)orientation, 0, 0,
	                  0, 0, 0, 0};
	struct jpeg_compress_struct j;
	struct jpeg_error_mgr mgr;
	unsigned long n = 0;
	uint8_t *out = NULL, *line = malloc((size_t)w * 3);
	uint32_t state = 3;
	j.err = jpeg_std_error(&mgr);
	jpeg_create_compress(&j);
	jpeg_mem_dest(&j, &out, &n);
	j.image_width = (JDIMENSION)w;
	j.image_height = (JDIMENSION)h;
	j.input_components = 3;
	j.in_color_space = JCS_RGB;
	jpeg_set_defaults(&j);
	jpeg_start_compress(&j, TRUE);
	jpeg_write_marker(&j, JPEG_APP0 + 1, exif, sizeof exif);
	while (j.next_scanline < j.image_height) {
		for (int x = 0; x < 3 * w; x++)
			line[x] = (uint8_t)(x * 2 + (int)j.next_scanline * (x % 3 + 1) + (int)(next(&state) % 20));
		JSAMPROW at = line;
		jpeg_write_scanlines(&j, &at, 1);
	}
	jpeg_finish_compress(&j);
	jpeg_destroy_compress(&j);
	free(line);
	*size = n;
	return out;
}

TEST(parts_of_files)
{
	enum { H = 29, W = 37 };
	static uint8_t want[3 * H * W], got[3 * H * W], row[GT_RECIPE_SLOT * 3 * H * W + 4096];
	struct gt_transform crop = {.type = GT_TF_RANDOM_RESIZED_CROP, .size = {H, W}, .scale = {0.05, 1}, .ratio = {0.6, 1.7},
	                            .interpolation = GT_INTERP_BILINEAR},
	                    flip = {.type = GT_TF_HFLIP, .p = 0.5}, shorter = {.type = GT_TF_RESIZE, .size = {44}, .interpolation = 2},
	                    centre = {.type = GT_TF_CENTER_CROP, .size = {H, W}};
	struct gt_image_scratch *s;
	struct gt_err e;
	memset(resized, 0, sizeof resized);
	CHECK_OK(gt_image_scratch_open(&s, &e), e);
	for (int i = 0; i < 400; i++) {
		size_t size;
		uint8_t *raw = encode(60 + i * 7 % 301, 50 + i * 11 % 260, i % 9, &size);
		int c = i % 5 ? 3 : 1;
		struct gt_transform_list list = i % 3 ? (struct gt_transform_list){(struct gt_transform[]){crop, flip}, 2}
		                                      : (struct gt_transform_list){(struct gt_transform[]){shorter, centre}, 2};
		struct gt_sample_key key = {1, 2, (uint64_t)i};
		struct gt_recipe_split split = gt_recipe_split_of(list, c, H, W);
		CHECK(split.on && split.resize && split.first == (i % 3 ? 1 : 2));
		CHECK_OK(image_load(raw, size, "x", list, &key, c, H, W, s, want, &e), e);
		CHECK_OK(recipe_load(raw, size, "x", list, &split, &key, c, H, W, s, row, &e), e);
		cook(row, &split, c, H, W, got);
		CHECK_MSG(!memcmp(got, want, (size_t)(c * H * W)), "file %d", i);
		free(raw);
	}
	CHECK_MSG(resized[GT_RECIPE_AS_IT_IS] > 20 && resized[GT_RECIPE_ROWS_FIRST] > 100 && resized[GT_RECIPE_COLUMNS_FIRST] > 20, "%d %d %d",
	          resized[0], resized[1], resized[2]);
	printf("# of 400 files, a thread resizes %d\n", resized[GT_RECIPE_AS_IT_IS]);
	gt_image_scratch_close(s);
}

TEST(division_of_lists)
{
	struct gt_transform crop = {.type = GT_TF_RANDOM_RESIZED_CROP, .size = {32}}, flip = {.type = GT_TF_HFLIP, .p = 0.5},
	                    all = {.type = GT_TF_COLOR_JITTER, .brightness = 1, .contrast = 1, .saturation = 1, .hue = 0.5},
	                    trivial = {.type = GT_TF_TRIVIAL_AUGMENT}, grey = {.type = GT_TF_GRAYSCALE, .p = 0.2};
	struct gt_transform most[10];
	struct gt_recipe_split s = gt_recipe_split_of((struct gt_transform_list){(struct gt_transform[]){crop, flip, all}, 3}, 3, 32, 32);
	CHECK(s.on && s.resize && s.first == 1 && s.ops == 5 && s.contrasts == 1);
	CHECK(s.row == gt_recipe_pixels_at(5) + GT_RECIPE_SLOT * 3 * 32 * 32);
	s = gt_recipe_split_of((struct gt_transform_list){(struct gt_transform[]){crop, flip, all}, 3}, 3, 600, 600);
	CHECK(s.on && !s.resize && s.first == 1 && s.row == gt_recipe_pixels_at(5) + 3 * 600 * 600); /* more weights than room */
	s = gt_recipe_split_of((struct gt_transform_list){(struct gt_transform[]){crop, flip, trivial}, 3}, 3, 32, 32);
	CHECK(!s.on && s.first == 3 && s.ops == 0 && s.row == 3 * 32 * 32);
	s = gt_recipe_split_of((struct gt_transform_list){(struct gt_transform[]){flip, trivial, all}, 3}, 1, 32, 32);
	CHECK(s.on && !s.resize && s.first == 2 && s.ops == 2 && s.contrasts == 1); /* grey images have no saturation and no hue */
	s = gt_recipe_split_of((struct gt_transform_list){(struct gt_transform[]){crop, grey}, 2}, 1, 32, 32);
	CHECK(s.on && s.resize && s.first == 1 && s.ops == 0);
	s = gt_recipe_split_of((struct gt_transform_list){(struct gt_transform[]){trivial, grey}, 2}, 1, 32, 32);
	CHECK(!s.on && s.first == 2);
	s = gt_recipe_split_of((struct gt_transform_list){(struct gt_transform[]){crop, flip}, 2}, 4, 32, 32);
	CHECK(!s.on && !s.resize && s.first == 2 && s.ops == 0); /* other numbers of channels */
	for (int i = 0; i < 10; i++)
		most[i] = all;
	s = gt_recipe_split_of((struct gt_transform_list){most, 10}, 3, 32, 32);
	CHECK(s.first == 2 && s.ops == GT_RECIPE_MAX_OPS && s.contrasts == 8);
}

RUN_TESTS()
