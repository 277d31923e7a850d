/* Applies a list of transforms to one image. For a transform that changes the size, make_view computes the input part that it needs, so
 * that only this part is decoded; later transforms work on the result. */
#include "image/image_scratch.h"
#include "image/image_work.h"
#include "image/resample.h"
#include <math.h>
#include <string.h>

/* The part of an image that a transform with a change of size reads, and the transforms that use this part. */
struct view {
	int next;                         /* index of the first transform that is not part of the view */
	bool resample;                    /* false: only a crop */
	int64_t top, left, height, width; /* box to crop; pixels outside the image are black. With resample: box to resize, always inside the
	                                     image */
	struct gt_resample r;
	int64_t row, column; /* with resample: the pixel of the (reduced) image that is pixel 0 of r */
};

static bool changes_size(const struct gt_transform *t)
{
	return t->type == GT_TF_RESIZE || t->type == GT_TF_RANDOM_RESIZED_CROP || t->type == GT_TF_CENTER_CROP;
}

static int64_t target_width(const struct gt_transform *t)
{
	return t->size[1] ? t->size[1] : t->size[0];
}

/* The position of a centred crop, as torchvision's CenterCrop: rounded to even inside an image, rounded down in the padding. */
static int64_t centre_offset(int64_t crop, int64_t size)
{
	return crop <= size ? (int64_t)rint((double)(size - crop) / 2) : -((crop - size) / 2);
}

/* Describes transform i together with the next transforms that can be combined with i, for an image of h x w pixels. */
static struct view make_view(const struct gt_image_work *k, int i, int64_t h, int64_t w)
{
	const struct gt_transform *t = &k->list.t[i], *then = i + 1 < k->list.n ? t + 1 : NULL;
	struct view v = {.next = i + 1, .height = h, .width = w};
	struct gt_resample_axis *x = &v.r.x, *y = &v.r.y;
	struct gt_transform_draw d;
	if (t->type == GT_TF_CENTER_CROP) {
		v.height = t->size[0];
		v.width = target_width(t);
		v.top = centre_offset(v.height, h);
		v.left = centre_offset(v.width, w);
		return v;
	}
	v.resample = true;
	v.r.interpolation = t->interpolation;
	y->out = t->size[0];
	x->out = target_width(t);
	if (t->type == GT_TF_RANDOM_RESIZED_CROP) {
		gt_transform_draw(k->list, i, k->key, h, w, &d);
		v.top = d.top;
		v.left = d.left;
		v.height = d.height;
		v.width = d.width;
	} else if (!t->size[1]) { /* size[0] is the shorter side; the longer side is rounded down */
		y->out = h <= w ? t->size[0] : t->size[0] * h / w;
		x->out = w <= h ? t->size[0] : t->size[0] * w / h;
	}
	y->end = y->out;
	x->end = x->out;
	if (then && then->type == GT_TF_CENTER_CROP && then->size[0] <= y->out && target_width(then) <= x->out) {
		y->begin = centre_offset(then->size[0], y->out);
		x->begin = centre_offset(target_width(then), x->out);
		y->end = y->begin + then->size[0];
		x->end = x->begin + target_width(then);
		v.next++;
		then = v.next < k->list.n ? then + 1 : NULL;
	}
	if (then && then->type == GT_TF_HFLIP && !gt_transform_in_kernel(k->list)) {
		gt_transform_draw(k->list, v.next, k->key, y->end - y->begin, x->end - x->begin, &d);
		x->mirror = d.apply;
		v.next++;
	}
	return v;
}

/* Sets the box [begin, begin + n) of an axis with `size` pixels, after its reduction. mirrored: the stored axis has the reverse direction,
 * so that an incomplete pixel (of fewer than `reduce` pixels) is first, not last. */
static void set_box(struct gt_resample_axis *a, int64_t *origin, int64_t begin, int64_t n, int64_t size, int reduce, bool mirrored)
{
	int64_t most = (size + reduce - 1) / reduce, shift = mirrored ? most * reduce - size : 0, end = begin + shift + n;
	*origin = (begin + shift) / reduce;
	a->from = (double)(begin + shift) / reduce - (double)*origin;
	a->to = (double)end / reduce - (double)*origin;
	end = (end + reduce - 1) / reduce;
	a->in = (end < most ? end : most) - *origin;
}

/* Finishes a view of an image of h x w pixels that is stored with an orientation and reduced by `reduce`, and sets the part of the reduced
 * image that the view needs. */
static enum gt_code prepare_view(struct view *v, struct gt_image_work *k, int64_t h, int64_t w, int orientation, int reduce,
                                 struct gt_decode_part *part, struct gt_err *err)
{
	bool mirror_x, mirror_y;
	gt_orientation_mirrors(orientation, &mirror_x, &mirror_y);
	*part = (struct gt_decode_part){.reduce = reduce};
	if (!v->resample) {
		part->y0 = v->top < 0 ? 0 : v->top;
		part->x0 = v->left < 0 ? 0 : v->left;
		part->y1 = v->top + v->height > h ? h : v->top + v->height;
		part->x1 = v->left + v->width > w ? w : v->left + v->width;
		return GT_OK;
	}
	set_box(&v->r.y, &v->row, v->top, v->height, h, reduce, mirror_y);
	set_box(&v->r.x, &v->column, v->left, v->width, w, reduce, mirror_x);
	GT_TRY(gt_image_check_size(k->name, v->r.x.end - v->r.x.begin, v->r.y.end - v->r.y.begin, err));
	gt_resample_range(&v->r);
	part->y0 = v->row + v->r.y.first;
	part->y1 = v->row + v->r.y.last;
	part->x0 = v->column + v->r.x.first;
	part->x1 = v->column + v->r.x.last;
	return GT_OK;
}

/* Returns the largest JPEG reduction at which the box is not smaller than the result. */
static int choose_reduction(const struct view *v)
{
	int reduce = 1;
	while (v->resample && reduce < 8 && v->height >= 2 * reduce * v->r.y.out && v->width >= 2 * reduce * v->r.x.out)
		reduce *= 2;
	return reduce;
}

enum gt_code gt_work_take(struct gt_image_work *k, int64_t h, int64_t w, uint8_t **to, struct gt_err *err)
{
	*to = k->out;
	if (h == k->h && w == k->w && k->px.data != k->out)
		return GT_OK;
	GT_TRY(gt_image_check_size(k->name, w, h, err));
	GT_TRY(gt_scratch_take(k->s, GT_BUF_A, 0, to, err));
	return gt_scratch_take(k->s, k->px.data == *to ? GT_BUF_B : GT_BUF_A, (size_t)(h * w * k->c), to, err);
}

void gt_work_set(struct gt_image_work *k, int64_t h, int64_t w, uint8_t *data)
{
	k->px = (struct gt_pixels){.w = w, .h = h, .c = k->c, .data = data};
	k->owned = true;
}

static enum gt_code apply_view(struct view *v, struct gt_image_work *k, struct gt_err *err)
{
	const struct gt_pixels *p = &k->px;
	uint8_t *to;
	int64_t c = k->c;
	if (v->resample) {
		int64_t h = v->r.y.end - v->r.y.begin, w = v->r.x.end - v->r.x.begin;
		GT_TRY(gt_resample_prepare(&v->r, k->s, err));
		GT_TRY(gt_work_take(k, h, w, &to, err));
		GT_TRY(gt_resample(&v->r, p->data, p->left - v->column, p->top - v->row, p->w * c, k->c, to, k->s, err));
		gt_work_set(k, h, w, to);
		return GT_OK;
	}
	GT_TRY(gt_work_take(k, v->height, v->width, &to, err));
	int64_t before = v->left < p->left ? p->left - v->left : 0, skip = v->left + before - p->left,
	        n = p->w - skip < v->width - before ? p->w - skip : v->width - before;
	for (int64_t y = 0; y < v->height; y++) {
		int64_t from = v->top + y - p->top;
		uint8_t *row = to + y * v->width * c;
		if (from < 0 || from >= p->h) {
			memset(row, 0, (size_t)(v->width * c));
			continue;
		}
		memset(row, 0, (size_t)(before * c));
		memcpy(row + before * c, p->data + (from * p->w + skip) * c, (size_t)(n * c));
		memset(row + (before + n) * c, 0, (size_t)((v->width - before - n) * c));
	}
	gt_work_set(k, v->height, v->width, to);
	return GT_OK;
}

/* Leaves a view to gather.recipes: copies the needed image part to out, and describes the view in the recipe. Returns false, and does
 * nothing, if gather.recipes cannot compute the view. */
static bool leave_view_to_recipe(const struct view *v, struct gt_image_work *k)
{
	const struct gt_resample_axis *x = &v->r.x, *y = &v->r.y;
	int64_t w = x->last - x->first, h = y->last - y->first, row = w * k->c, stride = k->px.w * k->c;
	if (!k->recipe || !v->resample || v->next != k->list.n || y->end - y->begin != k->h || x->end - x->begin != k->w ||
	    x->most > GT_RECIPE_TAPS || y->most > GT_RECIPE_TAPS || row * h > k->slot)
		return false;
	const uint8_t *from = k->px.data + (y->first + v->row - k->px.top) * stride + (x->first + v->column - k->px.left) * k->c;
	for (int64_t i = 0; i < h; i++)
		memcpy(k->out + i * row, from + i * stride, (size_t)row);
	*k->recipe = (struct gt_recipe){.n = k->recipe->n,
	                                .resize = gt_resample_columns_first(&v->r) ? GT_RECIPE_COLUMNS_FIRST : GT_RECIPE_ROWS_FIRST,
	                                .bicubic = v->r.interpolation == GT_INTERP_BICUBIC,
	                                .stride = (int32_t)row,
	                                .x = {x->from, x->to, (int32_t)x->in, (int32_t)x->out, (int32_t)x->begin, (int32_t)x->first},
	                                .y = {y->from, y->to, (int32_t)y->in, (int32_t)y->out, (int32_t)y->begin, (int32_t)y->first}};
	return true;
}

/* Applies the list from transform i on, and copies the result to out. */
static enum gt_code apply_transforms(struct gt_image_work *k, int i, struct gt_err *err)
{
	if (!i && gt_transform_in_kernel(k->list)) {
		GT_TRY(gt_work_apply_as_kernel(k, err));
		i = k->list.n;
	}
	while (i < k->list.n) {
		if (changes_size(&k->list.t[i])) {
			struct view v = make_view(k, i, k->px.h, k->px.w);
			struct gt_decode_part part;
			GT_TRY(prepare_view(&v, k, k->px.h, k->px.w, 1, 1, &part, err));
			if (!i && leave_view_to_recipe(&v, k))
				return GT_OK;
			GT_TRY(apply_view(&v, k, err));
			i = v.next;
		} else {
			GT_TRY(gt_work_apply_one(k, i++, err));
		}
	}
	if (k->px.h != k->h || k->px.w != k->w)
		return gt_fail(err, GT_EDATA, "%s: expected an image of %lld x %lld pixels%s, got %lld x %lld", k->name, (long long)k->w,
		               (long long)k->h, k->list.n ? " after its transforms" : "", (long long)k->px.w, (long long)k->px.h);
	if (k->px.data != k->out)
		memcpy(k->out, k->px.data, (size_t)(k->h * k->w * k->c));
	return GT_OK;
}

/* Converts the image in k to k->c channels. */
static enum gt_code convert_channels(struct gt_image_work *k, struct gt_err *err)
{
	struct gt_pixels *p = &k->px;
	uint8_t *to;
	if (p->c == k->c)
		return GT_OK;
	if ((p->c != 1 && p->c != 3) || (k->c != 1 && k->c != 3))
		return gt_fail(err, GT_EDATA, "%s: expected an image of %d channels, got %d", k->name, k->c, p->c);
	GT_TRY(gt_scratch_take(k->s, GT_BUF_A, (size_t)(p->h * p->w * k->c), &to, err));
	gt_pixels_convert(p->data, p->c, to, (size_t)(p->h * p->w));
	p->data = to;
	p->c = k->c;
	k->owned = true;
	return GT_OK;
}

static enum gt_code load_image(struct gt_image_work *k, const uint8_t *raw, size_t size, struct gt_err *err)
{
	struct gt_image_head head;
	struct view v = {0};
	GT_TRY(gt_decode_head(raw, size, k->name, k->s, &head, err));
	struct gt_decode_part part = gt_decode_whole(&head);
	bool sized = k->list.n && changes_size(&k->list.t[0]);
	if (sized) {
		v = make_view(k, 0, head.h, head.w);
		int reduce = head.format == GT_IMAGE_JPEG ? choose_reduction(&v) : 1;
		GT_TRY(prepare_view(&v, k, head.h, head.w, head.orientation, reduce, &part, err));
	}
	GT_TRY(gt_decode_pixels(raw, size, k->name, &head, &part, k->s, &k->px, err));
	k->owned = true;
	GT_TRY(convert_channels(k, err));
	if (sized && leave_view_to_recipe(&v, k))
		return GT_OK;
	if (sized)
		GT_TRY(apply_view(&v, k, err));
	return apply_transforms(k, v.next, err);
}

enum gt_code gt_work_run(struct gt_image_work *k, const uint8_t *raw, size_t size, struct gt_err *err)
{
	enum gt_code rc = raw ? load_image(k, raw, size, err) : convert_channels(k, err);
	if (rc == GT_OK && !raw)
		rc = apply_transforms(k, 0, err);
	gt_scratch_trim(k->s);
	return rc;
}
