/* Any file as an image for training: the first two bytes select a list of transforms, the result must be complete and a pure function. */
#include "fuzz_file.h"
#include "image/recipe_draw.h"
#include "../unit/image_calls.h"
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum { SIDE = 20 };
	static struct gt_image_scratch *s; /* kept from input to input, as a worker does */
	static uint8_t out[SIDE * SIDE * 3], again[SIDE * SIDE * 3], row[SIDE * SIDE * 3 * 4 + 4096];
	struct gt_err e = {0};
	if (size < 3)
		return 0;
	if (!s)
		FUZZ_ASSERT(gt_image_scratch_open(&s, &e) == GT_OK);
	const struct gt_transform first[] = {
	    {.type = GT_TF_RANDOM_RESIZED_CROP, .size = {SIDE}, .scale = {0.08, 1}, .ratio = {0.75, 1.33}, .interpolation = 1},
	    {.type = GT_TF_RESIZE, .size = {SIDE, SIDE}, .interpolation = 1 + (data[0] >> 7)},
	    {.type = GT_TF_RESIZE, .size = {SIDE + 3}, .interpolation = 1 + (data[0] >> 7)},
	    {.type = GT_TF_CENTER_CROP, .size = {SIDE}},
	};
	const struct gt_transform then[] = {
	    {.type = GT_TF_HFLIP, .p = 0.5},
	    {.type = GT_TF_TRIVIAL_AUGMENT, .bins = 31, .interpolation = data[0] >> 6 & 1},
	    {.type = GT_TF_RAND_AUGMENT, .bins = 31, .ops = 3, .magnitude = data[1] % 31},
	    {.type = GT_TF_COLOR_JITTER, .brightness = 0.5, .contrast = 0.5, .saturation = 0.5, .hue = 0.5},
	    {.type = GT_TF_RANDOM_ERASING, .p = 1, .scale = {0.02, 0.9}, .ratio = {0.1, 10}, .random = data[0] >> 6 & 1},
	    {.type = GT_TF_PAD_CROP, .pad = 7, .mode = data[0] >> 6 & 1},
	    {.type = GT_TF_ROTATE, .degrees = 180, .interpolation = data[0] >> 6 & 1},
	    {.type = GT_TF_VFLIP, .p = 0.5},
	};
	const struct gt_transform t[] = {first[data[0] & 3], {.type = GT_TF_CENTER_CROP, .size = {SIDE}}, then[data[0] >> 2 & 7],
	                                 {.type = GT_TF_GRAYSCALE, .p = 0.1}};
	struct gt_transform_list list = {t, 4};
	struct gt_sample_key key = {1, 2, data[1]};
	int c = data[0] >> 5 & 1 ? 1 : 3;
	enum gt_code rc = image_load(data + 2, size - 2, "x", list, &key, c, SIDE, SIDE, s, out, &e);
	if (rc != GT_OK) {
		FUZZ_ASSERT(rc == GT_EDATA && e.code == rc && !strncmp(e.msg, "x: ", 3) && !strchr(e.msg, '\n'));
		return 0;
	}
	FUZZ_ASSERT(image_load(data + 2, size - 2, "x", list, &key, c, SIDE, SIDE, s, again, &e) == GT_OK);
	FUZZ_ASSERT(!memcmp(out, again, (size_t)(SIDE * SIDE * c)));
	struct gt_recipe_split split = gt_recipe_split_of(list, c, SIDE, SIDE);
	FUZZ_ASSERT(split.row <= (int64_t)sizeof row);
	if (split.on)
		FUZZ_ASSERT(recipe_load(data + 2, size - 2, "x", list, &split, &key, c, SIDE, SIDE, s, row, &e) == GT_OK);
	return 0;
}
