/* The image between two transforms of a list, inside datasets/image/. */
#ifndef GT_IMAGE_IMAGE_WORK_H
#define GT_IMAGE_IMAGE_WORK_H

#include "image/decode.h"
#include "image/transform.h"
#include "recipe.h"

struct gt_image_work {
	struct gt_image_scratch *s;
	struct gt_transform_list list;
	const struct gt_sample_key *key;
	const char *name;    /* of the image, in messages */
	struct gt_pixels px; /* the image as it is now; its channels are those of the result */
	bool owned;          /* px.data may be changed */
	uint8_t *out;        /* the result, h * w * c bytes; every image of this size may be stored there */
	int64_t h, w;
	int c;
	struct gt_recipe *recipe; /* not NULL: if the list is one view with a resize, out may receive only the part of the image that the view
	                             needs, and the recipe the remaining work on it (kernels/recipe.h) */
	int64_t slot;             /* with a recipe: maximum bytes of that part */
};

/* Decodes and transforms an image, whose members s, list, key, name, out, h, w and c the caller has set; raw NULL: px is the image. */
enum gt_code gt_work_run(struct gt_image_work *k, const uint8_t *raw, size_t size, struct gt_err *err);

/* Sets *to to memory for an image of h x w pixels other than that of the present one: the output if it has this size, else a buffer. */
enum gt_code gt_work_take(struct gt_image_work *k, int64_t h, int64_t w, uint8_t **to, struct gt_err *err);
/* Makes `data`, memory of gt_work_take, the present image. */
void gt_work_set(struct gt_image_work *k, int64_t h, int64_t w, uint8_t *data);

/* Converts a colour of a config, for value i of a pixel. Empty: black. */
uint8_t gt_transform_colour(const struct gt_floats *f, int i);

/* Applies transform i, which keeps the size of the image. */
enum gt_code gt_work_apply_one(struct gt_image_work *k, int i, struct gt_err *err);
/* Applies the whole list, which gt_transform_in_kernel accepts, as the gather kernel does: it crops first, whatever their order. */
enum gt_code gt_work_apply_as_kernel(struct gt_image_work *k, struct gt_err *err);

#endif
