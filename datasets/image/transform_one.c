/* The transforms that keep the size of an image. */
#include "aug.h"
#include "image/image_work.h"
#include "image/pixel_ops.h"
#include "pixel.h"
#include <math.h>
#include <string.h>

static inline __attribute__((always_inline)) void crop_and_mirror_pixels(const struct gt_pixels *p, uint8_t *to, struct gt_aug g,
                                                                         int reflect, size_t c)
{
	int32_t h = (int32_t)p->h, w = (int32_t)p->w;
	for (int32_t y = 0; y < h; y++) {
		int32_t row = gt_aug_source(y + g.dy, h, reflect);
		const uint8_t *from = p->data + (size_t)(row < 0 ? 0 : row) * (size_t)w * c;
		for (int32_t x = 0; x < w; x++, to += c) {
			int32_t column = gt_aug_source((g.flip ? w - 1 - x : x) + g.dx, w, reflect);
			if (row < 0 || column < 0)
				memset(to, 0, c);
			else
				memcpy(to, from + (size_t)column * c, c);
		}
	}
}

/* Crops the padded image at random and mirrors the result, as the gather kernel does. */
static enum gt_code crop_and_mirror(struct gt_image_work *k, struct gt_aug g, const struct gt_transform *crop, struct gt_err *err)
{
	const struct gt_pixels *p = &k->px;
	uint8_t *to;
	size_t c = (size_t)k->c;
	int reflect = crop && crop->mode == 1;
	if (reflect && (crop->pad >= p->h || crop->pad >= p->w))
		return gt_fail(err, GT_EDATA, "%s: expected an image larger than the pad of %lld, which mirrors the edge, got %lld x %lld pixels",
		               k->name, (long long)crop->pad, (long long)p->w, (long long)p->h);
	GT_TRY(gt_work_take(k, p->h, p->w, &to, err));
	if (c == 3)
		crop_and_mirror_pixels(p, to, g, reflect, 3);
	else
		crop_and_mirror_pixels(p, to, g, reflect, c);
	gt_work_set(k, p->h, p->w, to);
	return GT_OK;
}

static enum gt_code flip_vertically(struct gt_image_work *k, struct gt_err *err)
{
	const struct gt_pixels *p = &k->px;
	size_t row = (size_t)(p->w * k->c);
	uint8_t *to;
	GT_TRY(gt_work_take(k, p->h, p->w, &to, err));
	for (int64_t y = 0; y < p->h; y++)
		memcpy(to + (size_t)y * row, p->data + (size_t)(p->h - 1 - y) * row, row);
	gt_work_set(k, p->h, p->w, to);
	return GT_OK;
}

/* Copies the pixels to memory of the work if they are not there already, so that a transform can change them. Sets *px to the pixels. */
static enum gt_code make_writable(struct gt_image_work *k, uint8_t **px, struct gt_err *err)
{
	if (k->owned) {
		*px = (uint8_t *)(uintptr_t)k->px.data;
		return GT_OK;
	}
	GT_TRY(gt_work_take(k, k->px.h, k->px.w, px, err));
	memcpy(*px, k->px.data, (size_t)(k->px.h * k->px.w * k->c));
	gt_work_set(k, k->px.h, k->px.w, *px);
	return GT_OK;
}

static enum gt_code warp_affine(struct gt_image_work *k, const struct gt_transform *t, const double m[6], struct gt_err *err)
{
	uint8_t *to, fill[GT_MAX_CHANNELS];
	GT_TRY(gt_work_take(k, k->px.h, k->px.w, &to, err));
	for (int i = 0; i < k->c; i++)
		fill[i] = gt_transform_colour(&t->fill, i);
	gt_px_affine(k->px.data, to, k->px.h, k->px.w, k->c, m, t->interpolation == GT_INTERP_BILINEAR, fill);
	gt_work_set(k, k->px.h, k->px.w, to);
	return GT_OK;
}

static enum gt_code jitter_colours(struct gt_image_work *k, const struct gt_transform *t, const struct gt_transform_draw *d,
                                   struct gt_err *err)
{
	int64_t n = k->px.h * k->px.w;
	uint8_t *px;
	GT_TRY(make_writable(k, &px, err));
	for (int i = 0; i < 4; i++) {
		int what = d->order[i];
		if (what == 0 && t->brightness > 0)
			gt_px_brightness(px, n, k->c, d->factor[0]);
		else if (what == 1 && t->contrast > 0)
			gt_px_contrast(px, n, k->c, d->factor[1]);
		else if (what == 2 && t->saturation > 0)
			gt_px_saturation(px, n, k->c, d->factor[2]);
		else if (what == 3 && t->hue > 0)
			gt_px_hue(px, n, k->c, d->factor[3]);
	}
	return GT_OK;
}

static enum gt_code erase_rectangle(struct gt_image_work *k, const struct gt_transform *t, const struct gt_transform_draw *d,
                                    struct gt_err *err)
{
	uint8_t *px, fill[GT_MAX_CHANNELS];
	GT_TRY(make_writable(k, &px, err));
	for (int i = 0; i < k->c; i++)
		fill[i] = gt_transform_colour(t->fill.n ? &t->fill : &t->mean, i);
	struct gt_philox bytes = {{0}};
	for (int64_t y = 0, at = 0; y < d->height; y++) {
		uint8_t *row = px + ((d->top + y) * k->px.w + d->left) * k->c;
		for (int64_t i = 0; i < d->width * k->c; i++, at++) {
			if (t->random && at % 16 == 0)
				bytes = gt_pixel_noise(d->noise, at);
			row[i] = t->random ? gt_pixel_noise_byte(&bytes, at) : fill[i % k->c];
		}
	}
	return GT_OK;
}

/* Applies operation i of trivial_augment or rand_augment, as torchvision's _apply_op. */
static enum gt_code apply_operation(struct gt_image_work *k, const struct gt_transform *t, const struct gt_transform_draw *d, int i,
                                    struct gt_err *err)
{
	double v = d->strength[i], m[6] = {1, 0, 0, 0, 1, 0}, shear = tan(atan(v) * 180 / M_PI * (M_PI / 180));
	int64_t n = k->px.h * k->px.w;
	uint8_t *px;
	switch (d->op[i]) {
	case GT_AUG_SHEAR_X:
		m[1] = shear;
		return warp_affine(k, t, m, err);
	case GT_AUG_SHEAR_Y:
		m[3] = shear;
		return warp_affine(k, t, m, err);
	case GT_AUG_TRANSLATE_X:
		m[2] = -trunc(v);
		return warp_affine(k, t, m, err);
	case GT_AUG_TRANSLATE_Y:
		m[5] = -trunc(v);
		return warp_affine(k, t, m, err);
	case GT_AUG_ROTATE:
		gt_px_rotation(m, k->px.h, k->px.w, v);
		return warp_affine(k, t, m, err);
	case GT_AUG_SHARPNESS:
		GT_TRY(gt_work_take(k, k->px.h, k->px.w, &px, err));
		gt_px_sharpness(k->px.data, px, k->px.h, k->px.w, k->c, 1 + v);
		gt_work_set(k, k->px.h, k->px.w, px);
		return GT_OK;
	default:
		break;
	}
	GT_TRY(make_writable(k, &px, err));
	if (d->op[i] == GT_AUG_BRIGHTNESS)
		gt_px_brightness(px, n, k->c, 1 + v);
	else if (d->op[i] == GT_AUG_COLOR)
		gt_px_saturation(px, n, k->c, 1 + v);
	else if (d->op[i] == GT_AUG_CONTRAST)
		gt_px_contrast(px, n, k->c, 1 + v);
	else if (d->op[i] == GT_AUG_POSTERIZE)
		gt_px_posterize(px, n, k->c, (int)v);
	else if (d->op[i] == GT_AUG_SOLARIZE)
		gt_px_solarize(px, n, k->c, v);
	else if (d->op[i] == GT_AUG_AUTOCONTRAST)
		gt_px_autocontrast(px, n, k->c);
	else if (d->op[i] == GT_AUG_EQUALIZE)
		gt_px_equalize(px, n, k->c);
	return GT_OK;
}

enum gt_code gt_work_apply_one(struct gt_image_work *k, int i, struct gt_err *err)
{
	const struct gt_transform *t = &k->list.t[i];
	struct gt_transform_draw d;
	double m[6];
	uint8_t *px;
	gt_transform_draw(k->list, i, k->key, k->px.h, k->px.w, &d);
	switch (t->type) {
	case GT_TF_PAD_CROP:
		return crop_and_mirror(k, (struct gt_aug){.dy = (int32_t)d.top, .dx = (int32_t)d.left}, t, err);
	case GT_TF_HFLIP:
		return d.apply ? crop_and_mirror(k, (struct gt_aug){.flip = 1}, NULL, err) : GT_OK;
	case GT_TF_VFLIP:
		return d.apply ? flip_vertically(k, err) : GT_OK;
	case GT_TF_ROTATE:
		gt_px_rotation(m, k->px.h, k->px.w, d.angle);
		return warp_affine(k, t, m, err);
	case GT_TF_COLOR_JITTER:
		return jitter_colours(k, t, &d, err);
	case GT_TF_GRAYSCALE:
		if (!d.apply)
			return GT_OK;
		GT_TRY(make_writable(k, &px, err));
		gt_px_grey(px, k->px.h * k->px.w, k->c);
		return GT_OK;
	case GT_TF_RANDOM_ERASING:
		return d.apply ? erase_rectangle(k, t, &d, err) : GT_OK;
	case GT_TF_TRIVIAL_AUGMENT:
	case GT_TF_RAND_AUGMENT:
		for (int op = 0; op < d.nops; op++)
			GT_TRY(apply_operation(k, t, &d, op, err));
		return GT_OK;
	default:
		return gt_fail(err, GT_EINTERNAL, "%s: transform %d has the unknown type %d", k->name, i, t->type);
	}
}

enum gt_code gt_work_apply_as_kernel(struct gt_image_work *k, struct gt_err *err)
{
	struct gt_aug g = {0};
	const struct gt_transform *crop = NULL;
	struct gt_transform_draw d;
	for (int i = 0; i < k->list.n; i++) {
		gt_transform_draw(k->list, i, k->key, k->px.h, k->px.w, &d);
		if (k->list.t[i].type == GT_TF_PAD_CROP) {
			crop = &k->list.t[i];
			g.dy = (int32_t)d.top;
			g.dx = (int32_t)d.left;
		} else {
			g.flip = d.apply;
		}
	}
	return g.dy || g.dx || g.flip ? crop_and_mirror(k, g, crop, err) : GT_OK;
}
