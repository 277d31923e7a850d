#include "image/recipe_draw.h"
#include "image/image_work.h"
#include "recipe.h"
#include <assert.h>
#include <string.h>

/* Returns the maximum number of operations of a transform for images of c channels; -1: gather.recipes cannot apply the transform. Images
 * with one channel have no saturation and no hue. */
static int max_operations(const struct gt_transform *t, int c)
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

/* Returns whether the first n transforms are a view (crop or resize) that gather.recipes can compute. */
static bool begins_with_view(struct gt_transform_list list, int n, int64_t h, int64_t w)
{
	if (n < 1 || n > 2 || (list.t[0].type != GT_TF_RANDOM_RESIZED_CROP && list.t[0].type != GT_TF_RESIZE))
		return false;
	return (n == 1 || list.t[1].type == GT_TF_CENTER_CROP) && h + w <= GT_RECIPE_SIDES;
}

struct gt_recipe_split gt_recipe_split_of(struct gt_transform_list list, int c, int64_t h, int64_t w)
{
	struct gt_recipe_split s = {.first = list.n};
	bool channels = c == 1 || c == 3;
	for (int n; s.first > 0 && channels; s.first--, s.ops += n) {
		const struct gt_transform *t = &list.t[s.first - 1];
		n = max_operations(t, c);
		if (n < 0 || s.ops + n > GT_RECIPE_MAX_OPS)
			break;
		s.contrasts += t->type == GT_TF_COLOR_JITTER && t->contrast > 0;
	}
	s.resize = channels && begins_with_view(list, s.first, h, w);
	s.on = s.ops > 0 || s.resize;
	if (!s.on)
		s.first = list.n;
	s.row = !s.on ? c * h * w : gt_recipe_row(s.ops, c * h * w * (s.resize ? GT_RECIPE_SLOT : 1));
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

/* Adds the operations of transform i, for an image of c x h x w. */
static void add_operations(struct gt_transform_list list, int i, const struct gt_sample_key *key, int c, int64_t h, int64_t w,
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
	if (d.apply && max_operations(t, c))
		op[(*n)++] = o;
}

/* Draws the operations of a recipe and writes them to the row. */
static void draw_operations(const struct gt_image_work *k, struct gt_transform_list list, const struct gt_recipe_split *split,
                            struct gt_recipe *r, uint8_t *row)
{
	struct gt_recipe_op op[GT_RECIPE_MAX_OPS];
	bool crop_first = gt_transform_in_kernel(list); /* the gather kernel, too, always crops before it mirrors */
	for (int pass = 0; pass < (crop_first ? 2 : 1); pass++)
		for (int i = split->first; i < list.n; i++)
			if (!crop_first || (list.t[i].type == GT_TF_PAD_CROP) == (pass == 0))
				add_operations(list, i, k->key, k->c, k->h, k->w, op, &r->n);
	assert(r->n <= split->ops);
	memcpy(row + sizeof *r, op, (size_t)r->n * sizeof *op);
}

enum gt_code gt_image_make(const struct gt_image_job *j, struct gt_err *err)
{
	const struct gt_recipe_split *split = j->split && j->split->on ? j->split : NULL;
	struct gt_recipe r = {0};
	struct gt_image_work k = {.s = j->scratch, .list = j->list, .key = j->key, .name = j->name, .out = j->out, .h = j->h, .w = j->w,
	                          .c = j->c, .px = {.w = j->iw, .h = j->ih, .c = j->ic, .data = j->pixels}};
	if (split) {
		k.list.n = split->first;
		k.out = j->out + gt_recipe_pixels_at(split->ops);
		draw_operations(&k, j->list, split, &r, j->out);
	}
	if (split && split->resize) {
		k.recipe = &r;
		k.slot = split->row - gt_recipe_pixels_at(split->ops);
	}
	enum gt_code code = gt_work_run(&k, j->raw, j->size, err);
	if (split)
		memcpy(j->out, &r, sizeof r);
	return code;
}
