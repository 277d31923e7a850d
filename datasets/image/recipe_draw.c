#include "image/recipe_draw.h"
#include "image/image_work.h"
#include "recipe.h"
#include <assert.h>
#include <string.h>

/* Returns the maximum number of operations into which a transform is divided for images of c channels; -1: gather.recipes cannot apply
 * it. Colours of images with one channel have no saturation and no hue. */
static int ops_of(const struct gt_transform *t, int c)
{
	switch (t->type) {
	case GT_TF_PAD_CROP:
	case GT_TF_HFLIP:
	case GT_TF_VFLIP:
	case GT_TF_RANDOM_ERASING:
		return 1;
	case GT_TF_GRAYSCALE:
		return c == 3;
	case GT_TF_COLOR_JITTER:
		return (t->brightness > 0) + (t->contrast > 0) + (c == 3 && t->saturation > 0) + (c == 3 && t->hue > 0);
	default:
		return -1;
	}
}

struct gt_recipe_split gt_recipe_split_of(struct gt_transform_list list, int c, int64_t h, int64_t w)
{
	struct gt_recipe_split s = {.first = list.n};
	for (int n; s.first > 0 && (c == 1 || c == 3); s.first--, s.ops += n) {
		const struct gt_transform *t = &list.t[s.first - 1];
		n = ops_of(t, c);
		if (n < 0 || s.ops + n > GT_RECIPE_MAX_OPS)
			break;
		s.contrasts += t->type == GT_TF_COLOR_JITTER && t->contrast > 0;
	}
	if (!s.ops)
		s = (struct gt_recipe_split){.first = list.n};
	s.row = s.ops ? gt_recipe_row(s.ops, c * h * w) : c * h * w;
	return s;
}

static void add_jitter(const struct gt_transform *t, const struct gt_transform_draw *d, int c, struct gt_recipe_op *op, int *n)
{
	static const int kind[] = {GT_RECIPE_BRIGHTNESS, GT_RECIPE_CONTRAST, GT_RECIPE_SATURATION, GT_RECIPE_HUE};
	const bool on[] = {t->brightness > 0, t->contrast > 0, c == 3 && t->saturation > 0, c == 3 && t->hue > 0};
	for (int i = 0; i < 4; i++) {
		int what = d->order[i];
		if (on[what])
			op[(*n)++] = (struct gt_recipe_op){
			    .kind = kind[what], .factor = (float)d->factor[what], .shift = what == 3 ? (int)(d->factor[3] * 255) & 255 : 0};
	}
}

/* Adds the operations of transform i, for a sample whose image has h x w pixels. */
static void add(struct gt_transform_list list, int i, const struct gt_sample_key *key, int c, int64_t h, int64_t w,
                struct gt_recipe_op *op, int *n)
{
	const struct gt_transform *t = &list.t[i];
	struct gt_transform_draw d;
	gt_transform_draw(list, i, key, h, w, &d);
	struct gt_recipe_op o = {.top = (int32_t)d.top, .left = (int32_t)d.left, .height = (int32_t)d.height, .width = (int32_t)d.width};
	switch (t->type) {
	case GT_TF_PAD_CROP:
		o.kind = t->mode == 1 ? GT_RECIPE_CROP_REFLECT : GT_RECIPE_CROP;
		break;
	case GT_TF_HFLIP:
		o.kind = GT_RECIPE_FLIP_X;
		break;
	case GT_TF_VFLIP:
		o.kind = GT_RECIPE_FLIP_Y;
		break;
	case GT_TF_GRAYSCALE:
		o.kind = GT_RECIPE_GREY;
		break;
	case GT_TF_RANDOM_ERASING:
		o.kind = t->random ? GT_RECIPE_NOISE : GT_RECIPE_FILL;
		o.noise = d.noise;
		for (int k = 0; k < c; k++)
			o.fill[k] = gt_transform_colour(t->fill.n ? &t->fill : &t->mean, k);
		break;
	default:
		add_jitter(t, &d, c, op, n);
		return;
	}
	if (d.apply && ops_of(t, c))
		op[(*n)++] = o;
}

uint8_t *gt_recipe_draw(struct gt_transform_list list, const struct gt_recipe_split *split, const struct gt_sample_key *key, int c,
                        int64_t h, int64_t w, uint8_t *row)
{
	struct gt_recipe r = {0};
	struct gt_recipe_op op[GT_RECIPE_MAX_OPS];
	bool crop_first = gt_transform_in_kernel(list); /* as the gather kernel, which crops first, whatever their order */
	for (int pass = 0; pass < (crop_first ? 2 : 1); pass++)
		for (int i = split->first; i < list.n; i++)
			if (!crop_first || (list.t[i].type == GT_TF_PAD_CROP) == (pass == 0))
				add(list, i, key, c, h, w, op, &r.n);
	assert(r.n <= split->ops);
	memcpy(row, &r, sizeof r);
	memcpy(row + sizeof r, op, (size_t)r.n * sizeof *op);
	return row + gt_recipe_pixels_at(split->ops);
}
