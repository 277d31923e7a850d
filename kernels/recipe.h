/* The transforms of an image that keep its size, with the numbers that they drew: a recipe. A thread of the host draws it
 * (datasets/image/recipe_draw.h) and writes it before the pixels; the operation gather.recipes computes the transformed pixels. Compiled by
 * gcc and by nvcc.
 *
 *     row of a sample:  | struct gt_recipe | gt_recipe_op [ops] | pixels, u8 [h, w, c] |     c is 1 or 3
 *                       '- gt_recipe_pixels_at(ops) bytes ------'- a multiple of 16 bytes in total: gt_recipe_row -'
 *
 *     int32_t v[3], grey[GT_RECIPE_MAX_OPS];      grey[i]: gt_pixel_mean of the lumas before contrast i
 *     gt_recipe_pixel(op, recipe->n, grey, pixels, h, w, 3, y, x, v);
 *
 * A pixel of the result depends on one pixel of the image, and on the mean of the whole image at each change of the contrast. So pixels are
 * computed one by one, in any order, without an image in between. */
#ifndef GT_KERNELS_RECIPE_H
#define GT_KERNELS_RECIPE_H

#include "aug.h"
#include "pixel.h"

#define GT_RECIPE_MAX_OPS 32

enum gt_recipe_kind {
	GT_RECIPE_CROP,         /* the image shifted by (-top, -left) pixels, with a black edge */
	GT_RECIPE_CROP_REFLECT, /* the same with an edge that mirrors the image; the shift is smaller than the image */
	GT_RECIPE_FLIP_X,       /* left to right */
	GT_RECIPE_FLIP_Y,
	GT_RECIPE_BRIGHTNESS,   /* these three by factor */
	GT_RECIPE_CONTRAST,
	GT_RECIPE_SATURATION,
	GT_RECIPE_HUE,          /* by shift */
	GT_RECIPE_GREY,
	GT_RECIPE_FILL,         /* the box gets the colour fill */
	GT_RECIPE_NOISE         /* the box gets random bytes */
};

struct gt_recipe_op {
	uint64_t noise;                   /* key of the random bytes */
	int32_t kind;                     /* enum gt_recipe_kind */
	float factor;
	int32_t top, left, height, width; /* the box, in pixels */
	int32_t shift;                    /* in 255ths of a turn, modulo 256 */
	uint8_t fill[4];                  /* of each channel */
};

struct gt_recipe {
	int32_t n; /* number of operations: at most as many as the row has memory for */
	int32_t unused[3];
};

/* Returns the offset in bytes of the pixels in a row that has memory for `ops` operations. */
GT_HD int64_t gt_recipe_pixels_at(int ops)
{
	return ((int64_t)sizeof(struct gt_recipe) + ops * (int64_t)sizeof(struct gt_recipe_op) + 15) / 16 * 16;
}

/* Returns the bytes of a row whose image has `image` bytes. */
GT_HD int64_t gt_recipe_row(int ops, int64_t image)
{
	return (gt_recipe_pixels_at(ops) + image + 15) / 16 * 16;
}

/* Returns the reason why gather.recipes cannot make x from these rows; NULL: it can. */
static inline const char *gt_recipe_refuses(const struct gt_attr_recipes *a, const struct gt_tdesc *rows, const struct gt_tdesc *x)
{
	if (x->dim[1] != 1 && x->dim[1] != 3)
		return "images have 1 or 3 channels";
	if (x->dim[2] * x->dim[3] > INT32_MAX / GT_MAX_CHANNELS)
		return "images have at most 2^27 pixels";
	if (a->ops < 0 || a->ops > GT_RECIPE_MAX_OPS || rows->dim[1] != gt_recipe_row(a->ops, x->dim[1] * x->dim[2] * x->dim[3]))
		return "a row has a recipe and the pixels of an image";
	return a->gather.views > 2 && (x->dim[2] < 2 || x->dim[3] < 2) ? "the padding reaches past the mirrored image" : NULL;
}

/* Follows pixel (*y, *x) of the result of the operations back to the pixel of the image from which it comes. Returns the number of the
 * first operation whose result that pixel is: 0 if it is one of the image, else 1 + the number of the operation that painted it; painted[]
 * then has its colour. */
GT_HD int gt_recipe_origin(const struct gt_recipe_op *op, int n, int32_t h, int32_t w, int c, int32_t *y, int32_t *x, int32_t *painted)
{
	for (int i = n; i-- > 0;) {
		const struct gt_recipe_op *o = &op[i];
		int32_t row = *y - o->top, column = *x - o->left;
		switch (o->kind) {
		case GT_RECIPE_CROP:
		case GT_RECIPE_CROP_REFLECT:
			*y = gt_aug_source(*y + o->top, h, o->kind == GT_RECIPE_CROP_REFLECT);
			*x = gt_aug_source(*x + o->left, w, o->kind == GT_RECIPE_CROP_REFLECT);
			if (*y >= 0 && *x >= 0)
				break;
			for (int k = 0; k < c; k++)
				painted[k] = 0;
			return i + 1;
		case GT_RECIPE_FLIP_X:
			*x = w - 1 - *x;
			break;
		case GT_RECIPE_FLIP_Y:
			*y = h - 1 - *y;
			break;
		case GT_RECIPE_FILL:
		case GT_RECIPE_NOISE:
			if (row < 0 || row >= o->height || column < 0 || column >= o->width)
				break;
			for (int k = 0; k < c; k++) {
				int64_t at = ((int64_t)row * o->width + column) * c + k;
				struct gt_philox noise = {{0}};
				if (o->kind == GT_RECIPE_NOISE)
					noise = gt_pixel_noise(o->noise, at);
				painted[k] = o->kind == GT_RECIPE_NOISE ? gt_pixel_noise_byte(&noise, at) : o->fill[k];
			}
			return i + 1;
		default:
			break;
		}
	}
	return 0;
}

/* Applies an operation to the colours of a pixel. grey: see gt_recipe_pixel. */
GT_HD void gt_recipe_colour(const struct gt_recipe_op *o, int32_t grey, int c, int32_t *v)
{
	int from = o->kind == GT_RECIPE_CONTRAST ? grey : 0;
	switch (o->kind) {
	case GT_RECIPE_SATURATION:
		from = c == 3 ? gt_pixel_luma(v[0], v[1], v[2]) : 0;
		/* fall through */
	case GT_RECIPE_BRIGHTNESS:
	case GT_RECIPE_CONTRAST:
		for (int k = 0; k < c; k++)
			v[k] = gt_pixel_blend(from, v[k], o->factor);
		break;
	case GT_RECIPE_HUE:
		if (c == 3)
			gt_pixel_shift_hue(&v[0], &v[1], &v[2], o->shift);
		break;
	case GT_RECIPE_GREY:
		if (c == 3)
			v[0] = v[1] = v[2] = gt_pixel_luma(v[0], v[1], v[2]);
		break;
	default:
		break;
	}
}

/* Computes the c values of pixel (y, x) after the first n operations. grey[i]: if operation i, i < n, changes the contrast, the mean luma
 * of the image before it. */
GT_HD void gt_recipe_pixel(const struct gt_recipe_op *op, int n, const int32_t *grey, const uint8_t *pixels, int32_t h, int32_t w, int c,
                           int32_t y, int32_t x, int32_t *v)
{
	int i = gt_recipe_origin(op, n, h, w, c, &y, &x, v);
	for (int k = 0; !i && k < c; k++)
		v[k] = pixels[((int64_t)y * w + x) * c + k];
	for (; i < n; i++)
		gt_recipe_colour(&op[i], grey[i], c, v);
}

#endif
