/* A recipe: the transforms of an image with their drawn random values. A host thread draws a recipe
 * (datasets/image/recipe_draw.h) and writes it in front of the decoded pixels; the operation gather.recipes computes the transformed
 * pixels. Compiled by gcc and by nvcc.
 *
 *     row of a sample:  | struct gt_recipe | gt_recipe_op [ops] | memory for pixels, u8 |     a multiple of 16 bytes: gt_recipe_row
 *                       '- gt_recipe_pixels_at(ops) bytes ------'
 *     pixels:           the image, [h, w, c], c being 1 or 3; or, with gt_recipe.resize, a part of a larger or smaller image
 *
 *     int32_t v[3], grey[GT_RECIPE_MAX_OPS];      grey[i]: gt_pixel_mean of the lumas before contrast i
 *     struct gt_recipe_image im = {pixels, h, w, …};
 *     gt_recipe_pixel(op, recipe->n, grey, &im, 3, y, x, v);
 *
 * First the part is resized to h x w pixels, then the operations follow, which keep the size. A pixel of the result depends on a few
 * neighbouring pixels of the part, and on the mean of the whole image at each change of the contrast. So pixels are computed one by one, in
 * any order, without intermediate images. */
#ifndef GT_KERNELS_RECIPE_H
#define GT_KERNELS_RECIPE_H

#include "aug.h"
#include "pixel.h"
#include "taps.h"

#define GT_RECIPE_MAX_OPS 32
#define GT_RECIPE_TAPS 9                            /* maximum number of weights of a pixel along an axis */
#define GT_RECIPE_TAP_INTS (GT_RECIPE_TAPS + 2)     /* integers of a pixel in a table of weights: see gt_recipe_taps */
#define GT_RECIPE_SIDES 1024                        /* maximum height plus width of a result, for which a kernel has tables */
#define GT_RECIPE_SLOT 3                            /* pixel memory of a row of resized images, in units of an image's bytes */

enum gt_recipe_kind {
	GT_RECIPE_CROP,         /* the image shifted by (-top, -left) pixels, with a black edge */
	GT_RECIPE_CROP_REFLECT, /* like CROP, with an edge that mirrors the image; the shift is smaller than the image */
	GT_RECIPE_FLIP_X,       /* left to right */
	GT_RECIPE_FLIP_Y,
	GT_RECIPE_BRIGHTNESS,   /* these three use `factor` */
	GT_RECIPE_CONTRAST,
	GT_RECIPE_SATURATION,
	GT_RECIPE_HUE,          /* uses `shift` */
	GT_RECIPE_GREY,
	GT_RECIPE_FILL,         /* fills the box with the colour `fill` */
	GT_RECIPE_NOISE         /* fills the box with random bytes */
};

struct gt_recipe_op {
	uint64_t noise;                   /* key of the random bytes */
	int32_t kind;                     /* enum gt_recipe_kind */
	float factor;
	int32_t top, left, height, width; /* the box, in pixels */
	int32_t shift;                    /* shift of the hue, in 1/255 of a full turn, modulo 256 */
	uint8_t fill[4];                  /* colour: a byte for each channel */
};

/* The resize of one axis of the part: its box [from, to) becomes `out` pixels, and the image begins at pixel `begin` of these
 * (gt_taps_of). */
struct gt_recipe_axis {
	double from, to;
	int32_t in, out, begin;
	int32_t first; /* index of the first pixel in the part; the box counts from pixel 0 */
};

/* The order in which axes are resized: the result is rounded to bytes in between. */
enum gt_recipe_resize { GT_RECIPE_AS_IT_IS, GT_RECIPE_ROWS_FIRST, GT_RECIPE_COLUMNS_FIRST };

struct gt_recipe {
	int32_t n;       /* number of operations: at most as many as the row has memory for */
	int32_t resize;  /* enum gt_recipe_resize; GT_RECIPE_AS_IT_IS: the pixels are the image, and the members below are unused */
	int32_t bicubic; /* 0: bilinear */
	int32_t stride;  /* bytes of a row of pixels */
	struct gt_recipe_axis x, y;
};

/* Returns the offset in bytes of the pixels in a row that has memory for `ops` operations. */
GT_HD int64_t gt_recipe_pixels_at(int ops)
{
	return ((int64_t)sizeof(struct gt_recipe) + ops * (int64_t)sizeof(struct gt_recipe_op) + 15) / 16 * 16;
}

/* Returns the bytes of a row with memory for `pixels` bytes of pixels. */
GT_HD int64_t gt_recipe_row(int ops, int64_t pixels)
{
	return (gt_recipe_pixels_at(ops) + pixels + 15) / 16 * 16;
}

/* Returns the reason why gather.recipes cannot make x from these rows; NULL: it can. */
static inline const char *gt_recipe_refuses(const struct gt_attr_recipes *a, const struct gt_tdesc *rows, const struct gt_tdesc *x)
{
	if (x->dim[1] != 1 && x->dim[1] != 3)
		return "images must have 1 or 3 channels";
	if (x->dim[2] * x->dim[3] > INT32_MAX / GT_MAX_CHANNELS)
		return "images must have at most 2^27 pixels";
	if (a->ops < 0 || a->ops > GT_RECIPE_MAX_OPS || rows->dim[1] < gt_recipe_row(a->ops, x->dim[1] * x->dim[2] * x->dim[3]) ||
	    rows->dim[1] % 16)
		return "a row must have space for a recipe and the pixels of an image";
	if (a->resize && x->dim[2] + x->dim[3] > GT_RECIPE_SIDES)
		return "only images whose height plus width is at most 1024 can be resized";
	return a->gather.views > 2 && (x->dim[2] < 2 || x->dim[3] < 2) ? "the padding is larger than the mirrored image" : NULL;
}

/* Traces pixel (*y, *x) of the result back through the operations to its source pixel in the (resized) image. Returns 0 if there is a
 * source pixel, or 1 + the index of the operation that painted the pixel; painted[] then has its colour. The caller still applies the
 * operations from the returned index on. */
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

/* Writes the weights of pixel i of an axis of the image: the first pixel of the part, the number of weights, and the weights. */
GT_HD void gt_recipe_taps(const struct gt_recipe_axis *a, bool bicubic, int32_t i, int32_t *to)
{
	struct gt_taps t = gt_taps_of(a->from, a->to, a->in, a->out, bicubic);
	struct gt_taps_span s = gt_taps_span(&t, a->begin + i);
	int32_t n = (int32_t)(s.last - s.first);
	n = n < GT_RECIPE_TAPS ? n : GT_RECIPE_TAPS; /* the host resizes images that need more weights */
	to[0] = (int32_t)s.first - a->first;
	to[1] = n;
	for (int32_t k = 0; k < n; k++)
		to[2 + k] = gt_taps_weight(&t, &s, s.first + k);
}

/* The pixels of a row. */
struct gt_recipe_image {
	const uint8_t *pixels;
	int32_t h, w;        /* of the image */
	const int32_t *taps; /* NULL: the pixels are the image; else gt_recipe_taps of each of its w columns, then of its h rows */
	int32_t stride;      /* with taps: gt_recipe.stride */
	bool columns;        /* with taps: columns are resized first */
};

/* Reads a pixel of the image. */
GT_HD void gt_recipe_fetch(const struct gt_recipe_image *im, int c, int32_t y, int32_t x, int32_t *v)
{
	if (!im->taps) {
		for (int k = 0; k < c; k++)
			v[k] = im->pixels[((int64_t)y * im->w + x) * c + k];
		return;
	}
	const int32_t *tx = im->taps + x * GT_RECIPE_TAP_INTS, *ty = im->taps + (im->w + y) * GT_RECIPE_TAP_INTS;
	const uint8_t *line = im->pixels + (int64_t)ty[0] * im->stride + tx[0] * c;
	const int32_t *outer = im->columns ? tx : ty, *inner = im->columns ? ty : tx;
	int32_t outer_step = im->columns ? c : im->stride, inner_step = im->columns ? im->stride : c;
	for (int k = 0; k < c; k++)
		v[k] = GT_TAPS_HALF;
	for (int32_t i = 0; i < outer[1]; i++, line += outer_step) {
		int32_t sum[3] = {GT_TAPS_HALF, GT_TAPS_HALF, GT_TAPS_HALF};
		const uint8_t *p = line;
		for (int32_t j = 0; j < inner[1]; j++, p += inner_step)
			for (int k = 0; k < c; k++)
				sum[k] += inner[2 + j] * p[k];
		for (int k = 0; k < c; k++)
			v[k] += outer[2 + i] * gt_taps_clip(sum[k]);
	}
	for (int k = 0; k < c; k++)
		v[k] = gt_taps_clip(v[k]);
}

/* Computes the c values of pixel (y, x) after the first n operations. grey[i]: if operation i (i < n) changes the contrast, the mean luma
 * of the image before operation i. */
GT_HD void gt_recipe_pixel(const struct gt_recipe_op *op, int n, const int32_t *grey, const struct gt_recipe_image *im, int c, int32_t y,
                           int32_t x, int32_t *v)
{
	int i = gt_recipe_origin(op, n, im->h, im->w, c, &y, &x, v);
	if (!i)
		gt_recipe_fetch(im, c, y, x, v);
	for (; i < n; i++)
		gt_recipe_colour(&op[i], grey[i], c, v);
}

#endif
