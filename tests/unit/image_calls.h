/* gt_image_make with its members as arguments, for tests. */
#ifndef GT_TESTS_IMAGE_CALLS_H
#define GT_TESTS_IMAGE_CALLS_H

#include "image/recipe_draw.h"

static inline enum gt_code recipe_load(const uint8_t *raw, size_t size, const char *name, struct gt_transform_list list,
                                       const struct gt_recipe_split *split, const struct gt_sample_key *key, int c, int64_t h, int64_t w,
                                       struct gt_image_scratch *s, uint8_t *out, struct gt_err *err)
{
	return gt_image_make(&(struct gt_image_job){.raw = raw, .size = size, .name = name, .list = list, .split = split, .key = key, .c = c,
	                                            .h = h, .w = w, .scratch = s, .out = out}, err);
}

static inline enum gt_code image_load(const uint8_t *raw, size_t size, const char *name, struct gt_transform_list list,
                                      const struct gt_sample_key *key, int c, int64_t h, int64_t w, struct gt_image_scratch *s,
                                      uint8_t *out, struct gt_err *err)
{
	return recipe_load(raw, size, name, list, NULL, key, c, h, w, s, out, err);
}

static inline enum gt_code recipe_transform(const uint8_t *pixels, int64_t ih, int64_t iw, int ic, const char *name,
                                            struct gt_transform_list list, const struct gt_recipe_split *split,
                                            const struct gt_sample_key *key, int c, int64_t h, int64_t w, struct gt_image_scratch *s,
                                            uint8_t *out, struct gt_err *err)
{
	return gt_image_make(&(struct gt_image_job){.pixels = pixels, .ih = ih, .iw = iw, .ic = ic, .name = name, .list = list,
	                                            .split = split, .key = key, .c = c, .h = h, .w = w, .scratch = s, .out = out}, err);
}

static inline enum gt_code image_transform(const uint8_t *pixels, int64_t ih, int64_t iw, int ic, const char *name,
                                           struct gt_transform_list list, const struct gt_sample_key *key, int c, int64_t h, int64_t w,
                                           struct gt_image_scratch *s, uint8_t *out, struct gt_err *err)
{
	return recipe_transform(pixels, ih, iw, ic, name, list, NULL, key, c, h, w, s, out, err);
}

#endif
