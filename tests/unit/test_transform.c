/* gt_image_make: geometry, determinism, and the static check of lists. */
#include "aug.h"
#include "image/decode.h"
#include "image/transform.h"
#include "image_calls.h"
#include "test.h"
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <webp/encode.h>

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
		CHECK_OK(image_transform(in, H, W, 3, "x", i & 4 ? LIST(crop, flip) : LIST(flip, crop), &key, 3, H, W, s, out, &e), e);
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
			CHECK_OK(image_transform(in, H, W, c, "x", LIST(k ? exact : resize), &key, c, h, w, s, one, &e), e);
			CHECK_OK(image_transform(one, h, w, c, "x", LIST(crop), &key, c, 23, 26, s, two, &e), e);
			CHECK_OK(image_transform(in, H, W, c, "x", LIST(k ? exact : resize, crop), &key, c, 23, 26, s, three, &e), e);
			CHECK_MSG(!memcmp(two, three, (size_t)(23 * 26 * c)), "%d channels, case %d", c, k);
			CHECK_OK(image_transform(two, 23, 26, c, "x", LIST(flip), &key, c, 23, 26, s, one, &e), e);
			CHECK_OK(image_transform(in, H, W, c, "x", LIST(k ? exact : resize, crop, flip), &key, c, 23, 26, s, three, &e), e);
			CHECK_MSG(!memcmp(one, three, (size_t)(23 * 26 * c)), "%d channels, case %d, flipped", c, k);
			CHECK_OK(image_transform(one, 23, 26, c, "x", LIST(vflip, flip), &key, c, 23, 26, s, three, &e), e);
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
	CHECK_OK(image_transform(in, 3, 2, 1, "x", LIST(crop), NULL, 1, 5, 5, s, out, &e), e);
	for (int i = 0; i < 25; i++)
		CHECK_MSG(out[i] == (want[i] ? in[(i / 5 - 1) * 2 + i % 5 - 1] : 0), "pixel %d", i);
	CHECK(image_transform(in, 3, 2, 1, "x", LIST(crop), NULL, 1, 5, 4, s, out, &e) == GT_EDATA && strstr(e.msg, "x: expected"));
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
	    {{{.type = GT_TF_HFLIP}, {.type = GT_TF_HFLIP}}, 2, 32, 32, "at most one transform of type hflip", 1},
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

/* Reads a file of the corpus of the fuzzers, without the two bytes that select transforms there. */
static uint8_t *corpus(const char *name, size_t *size)
{
	char path[600];
	uint8_t *b = malloc(16384);
	snprintf(path, sizeof path, "%s/tests/corpus/data/transform-%s", test_source(), name);
	FILE *f = fopen(path, "rb");
	CHECK_MSG(f, "no %s", path);
	size_t n = f ? fread(b, 1, 16384, f) : 0;
	if (f)
		fclose(f);
	CHECK(n > 2);
	memmove(b, b + 2, n - 2);
	*size = n - 2;
	return b;
}

/* The whole list of a strong recipe. */
static const struct gt_transform recipe[] = {
    RRC(32),
    {.type = GT_TF_HFLIP, .p = 0.5},
    {.type = GT_TF_TRIVIAL_AUGMENT, .bins = 31},
    {.type = GT_TF_COLOR_JITTER, .brightness = 0.4, .contrast = 0.4, .saturation = 0.4, .hue = 0.1},
    {.type = GT_TF_RAND_AUGMENT, .bins = 31, .ops = 2, .magnitude = 9},
    {.type = GT_TF_ROTATE, .degrees = 20, .interpolation = 1},
    {.type = GT_TF_RANDOM_ERASING, .p = 0.5, .scale = {0.02, 0.33}, .ratio = {0.3, 3.3}, .random = true},
};
enum { SAMPLES = 120, BYTES = 32 * 32 * 3, THREADS = 4 };
static const char *const names[] = {"jpeg-420", "jpeg-progressive", "jpeg-reduced", "jpeg-rotated", "webp-lossy", "png-interlaced"};
static uint8_t results[2][SAMPLES][BYTES];
static uint8_t *files[6];
static size_t sizes[6];

static void one_sample(struct gt_image_scratch *s, int i, uint8_t *out)
{
	struct gt_err e;
	struct gt_sample_key key = {9, 4, (uint64_t)i};
	struct gt_transform_list list = {recipe, 7};
	CHECK_OK(image_load(files[i % 6], sizes[i % 6], names[i % 6], list, &key, 3, 32, 32, s, out, &e), e);
}

static void *every_fourth(void *arg)
{
	struct gt_image_scratch *s;
	struct gt_err e;
	int first = (int)(intptr_t)arg;
	CHECK_OK(gt_image_scratch_open(&s, &e), e);
	for (int i = SAMPLES - THREADS + first; i >= 0; i -= THREADS) /* backwards, so that each scratch has another history */
		one_sample(s, i, results[1][i]);
	gt_image_scratch_close(s);
	return NULL;
}

/* A thread that has met a large image does not keep its buffers. */
TEST(scratch_is_trimmed)
{
	enum { SIDE = 2000, OUT = 8 };
	struct gt_transform t[] = {{.type = GT_TF_VFLIP, .p = 1}, {.type = GT_TF_ROTATE, .degrees = 30}, RESIZE(OUT, OUT)};
	struct gt_image_scratch *s;
	struct gt_err e;
	static uint8_t out[OUT * OUT * 3];
	uint8_t *pixels = calloc(SIDE * SIDE, 3);
	CHECK_OK(gt_image_scratch_open(&s, &e), e);
	CHECK_OK(image_transform(pixels, SIDE, SIDE, 3, "x", (struct gt_transform_list){t, 3}, &(struct gt_sample_key){1, 2, 3}, 3, OUT, OUT,
	                            s, out, &e), e);
	CHECK_MSG(gt_image_scratch_bytes(s) <= GT_IMAGE_SCRATCH_KEEP, "%zu bytes", gt_image_scratch_bytes(s));
	gt_image_scratch_close(s);
	free(pixels);
}

TEST(pure_functions)
{
	struct gt_image_scratch *s;
	struct gt_err e;
	pthread_t t[THREADS];
	for (int i = 0; i < 6; i++)
		files[i] = corpus(names[i], &sizes[i]);
	CHECK_OK(gt_image_scratch_open(&s, &e), e);
	for (int i = 0; i < SAMPLES; i++)
		one_sample(s, i, results[0][i]);
	size_t bytes = gt_image_scratch_bytes(s);
	for (int i = 0; i < SAMPLES; i++) /* nothing is allocated once the largest image was seen */
		one_sample(s, i, results[1][i]);
	CHECK(gt_image_scratch_bytes(s) == bytes && !memcmp(results[0], results[1], sizeof results[0]));
	gt_image_scratch_close(s);
	memset(results[1], 0, sizeof results[1]);
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&t[i], NULL, every_fourth, (void *)(intptr_t)i));
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < SAMPLES; i++)
		CHECK_MSG(!memcmp(results[0][i], results[1][i], BYTES), "sample %d depends on its thread", i);
	int same = 0;
	for (int i = 6; i < SAMPLES; i++)
		same += !memcmp(results[0][i], results[0][i - 6], BYTES);
	CHECK_MSG(!same, "%d samples of one file are equal", same);
	for (int i = 0; i < 6; i++)
		free(files[i]);
}

/* A JPEG with an Exif orientation gives the pixels of the upright one, also where it is decoded at a smaller scale and its sides are no
 * multiples of the reduction. */
TEST(reduced_and_rotated)
{
	enum { H = 20, W = 30 };
	static uint8_t upright[H * W * 3], got[H * W * 3], turned[5000];
	static const uint8_t head[36] = {0xff, 0xe1, 0, 34, 'E', 'x', 'i',  'f', 0, 0, 'I', 'I', 42, 0,
	                                 8,    0,    0, 0,  1,   0,   0x12, 1,   3, 0, 1,   0}; /* the orientation is at 28 */
	struct gt_image_scratch *s;
	struct gt_err e;
	size_t size;
	uint8_t *raw = corpus("jpeg-reduced", &size); /* 190 x 121 */
	struct gt_transform t = RESIZE(H, W), swapped = RESIZE(W, H);
	CHECK_OK(gt_image_scratch_open(&s, &e), e);
	CHECK_OK(image_load(raw, size, "a", LIST(t), NULL, 3, H, W, s, upright, &e), e);
	for (int o = 2; o <= 8; o++) {
		int worst = 0;
		memcpy(turned, raw, 2);
		memcpy(turned + 2, head, sizeof head);
		turned[2 + 28] = (uint8_t)o;
		memcpy(turned + 2 + sizeof head, raw + 2, size - 2);
		bool swap = o > 4;
		CHECK_OK(image_load(turned, size + sizeof head, "a", LIST(swap ? swapped : t), NULL, 3, swap ? W : H, swap ? H : W, s, got,
		                       &e), e);
		for (int y = 0; y < H; y++)
			for (int x = 0; x < W; x++) { /* where the stored pixel (x, y) is in the upright image */
				static const struct {
					bool right, bottom;
				} how[] = {{0, 0}, {1, 0}, {1, 1}, {0, 1}, {0, 0}, {0, 1}, {1, 1}, {1, 0}};
				int tx = how[o - 1].right ? W - 1 - x : x, ty = how[o - 1].bottom ? H - 1 - y : y,
				    at = swap ? tx * H + ty : ty * W + tx;
				for (int c = 0; c < 3; c++) {
					int d = abs(got[at * 3 + c] - upright[(y * W + x) * 3 + c]);
					worst = d > worst ? d : worst;
				}
			}
		/* the order of the passes, and with it their rounding, depends on the axes */
		CHECK_MSG(worst <= 1, "orientation %d: a value differs by %d", o, worst);
	}
	free(raw);
	gt_image_scratch_close(s);
}

/* Frequencies and ranges of what is drawn. */
TEST(draws)
{
	enum { N = 4000 };
	struct gt_transform crop = RRC(32), erase = {.type = GT_TF_RANDOM_ERASING, .p = 0.25, .scale = {0.02, 0.33}, .ratio = {0.3, 3.3}},
	                    wide = {.type = GT_TF_TRIVIAL_AUGMENT, .bins = 31}, grey = {.type = GT_TF_GRAYSCALE, .p = 0.1},
	                    jitter = {.type = GT_TF_COLOR_JITTER, .brightness = 0.4, .contrast = 2, .saturation = 0.1, .hue = 0.2};
	struct gt_transform_list list = LIST(crop, erase, wide, grey, jitter, crop);
	int erased = 0, greys = 0, first[4] = {0}, ops[GT_AUG_OP_COUNT] = {0}, same = 0;
	double area = 0;
	for (int i = 0; i < N; i++) {
		struct gt_sample_key key = {3, (uint64_t)i / 100, (uint64_t)i % 100};
		struct gt_transform_draw d, again;
		gt_transform_draw(list, 0, &key, 100, 150, &d);
		CHECK(d.top >= 0 && d.left >= 0 && d.top + d.height <= 100 && d.left + d.width <= 150 && d.width > 0 && d.height > 0);
		double ratio = (double)d.width / (double)d.height, share = (double)(d.width * d.height) / 15000;
		CHECK_MSG(ratio > 0.72 && ratio < 1.38 && share > 0.07, "%d x %d", (int)d.width, (int)d.height);
		area += share / N;
		gt_transform_draw(list, 5, &key, 100, 150, &again); /* the same transform with another index has other numbers */
		same += d.top == again.top && d.left == again.left && d.width == again.width;
		gt_transform_draw(list, 1, &key, 100, 150, &d);
		erased += d.apply;
		CHECK(!d.apply || (d.width < 150 && d.height < 100 && d.top + d.height <= 100 && d.left + d.width <= 150));
		gt_transform_draw(list, 2, &key, 100, 150, &d);
		CHECK(d.nops == 1 && d.op[0] >= 0 && d.op[0] < GT_AUG_OP_COUNT && fabs(d.strength[0]) <= 255);
		ops[d.op[0]]++;
		gt_transform_draw(list, 3, &key, 100, 150, &d);
		greys += d.apply;
		gt_transform_draw(list, 4, &key, 100, 150, &d);
		first[d.order[0]]++;
		CHECK(d.factor[0] >= 0.6 && d.factor[0] <= 1.4 && d.factor[1] >= 0 && d.factor[1] <= 3 && fabs(d.factor[3]) <= 0.2);
	}
	/* 0.393: the mean of 4,000 draws of torchvision, whose standard error is 0.003. Six standard deviations of a share are below 0.05. */
	CHECK_MSG(fabs((double)erased / N - 0.25) < 0.05 && fabs((double)greys / N - 0.1) < 0.05, "%d erased, %d grey", erased, greys);
	for (int i = 0; i < 4; i++)
		CHECK(fabs((double)first[i] / N - 0.25) < 0.05);
	for (int i = 0; i < GT_AUG_OP_COUNT; i++)
		CHECK(fabs((double)ops[i] / N - 1.0 / GT_AUG_OP_COUNT) < 0.05);
	CHECK_MSG(fabs(area - 0.393) < 0.02 && same < N / 50, "mean area %g, %d equal", area, same);
}

/* The formats give the same pixels where they store them without loss; every rejection is one sentence. */
TEST(formats)
{
	static const struct {
		const char *name, *word; /* word: NULL: accepted */
	} cases[] = {{"webp-lossless", NULL},        {"webp-lossy", NULL}, {"png-16", NULL},           {"jpeg-cmyk", NULL},
	             {"webp-animated", "animation"}, {"webp-cut", "WebP"}, {"jpeg-cut", "JPEG"}, {"empty", "expected a JPEG, PNG or WebP"}};
	static uint8_t px[40 * 24 * 3], out[40 * 24 * 3], four[40 * 24 * 4];
	struct gt_image_scratch *s;
	struct gt_err e = {0};
	struct gt_transform crop = {.type = GT_TF_CENTER_CROP, .size = {16}};
	CHECK_OK(gt_image_scratch_open(&s, &e), e);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		size_t size;
		uint8_t *raw = corpus(cases[i].name, &size);
		enum gt_code rc = image_load(raw, size, cases[i].name, LIST(crop), NULL, 3, 16, 16, s, out, &e);
		CHECK_MSG(rc == (cases[i].word ? GT_EDATA : GT_OK), "%s: code %d: %s", cases[i].name, (int)rc, rc ? e.msg : "");
		CHECK_MSG(!cases[i].word || (strstr(e.msg, cases[i].word) && !strncmp(e.msg, cases[i].name, strlen(cases[i].name))), "%s", e.msg);
		free(raw);
	}
	pattern(px, sizeof px);
	for (int i = 0; i < 40 * 24; i++) {
		memcpy(four + 4 * i, px + 3 * i, 3);
		four[4 * i + 3] = (uint8_t)(i | 1); /* alpha is dropped; libwebp may change the colours of pixels whose alpha is 0 */
	}
	for (int k = 0; k < 2; k++) {
		uint8_t *raw;
		size_t size = k ? WebPEncodeLosslessRGBA(four, 24, 40, 24 * 4, &raw) : WebPEncodeLosslessRGB(px, 24, 40, 24 * 3, &raw);
		struct gt_image_head head;
		CHECK(size > 0);
		CHECK_OK(gt_decode_head(raw, size, "a.webp", s, &head, &e), e);
		CHECK(head.h == 40 && head.w == 24 && head.c == 3);
		CHECK_OK(image_load(raw, size, "a.webp", (struct gt_transform_list){NULL, 0}, NULL, 3, 40, 24, s, out, &e), e);
		CHECK(!memcmp(out, px, sizeof px));
		for (size_t cut = 0; cut < size; cut++)
			CHECK_MSG(image_load(raw, cut, "a.webp", (struct gt_transform_list){NULL, 0}, NULL, 3, 40, 24, s, out, &e) == GT_EDATA,
			          "cut at %zu", cut);
		WebPFree(raw);
	}
	gt_image_scratch_close(s);
}

RUN_TESTS()
