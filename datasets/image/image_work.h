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
	const char *name;    /* name of the image in messages */
	struct gt_pixels px; /* the current image, with the channel count of the result */
	bool owned;          /* the memory of px.data belongs to this work, so transforms may change it */
	uint8_t *out;        /* the result, h * w * c bytes; may also hold intermediate images of this size */
	int64_t h, w;
	int c;
	struct gt_recipe *recipe; /* if not NULL, and the list is a view with a resize: out may receive only the image part that the view needs,
	                             and *recipe the resize (kernels/recipe.h) */
	int64_t slot;             /* with a recipe: maximum bytes of this part */
};

/* Decodes an image and applies the transforms. The caller has set the members s, list, key, name, out, h, w and c. raw NULL: px is the
 * image, already decoded. */
enum gt_code gt_work_run(struct gt_image_work *k, const uint8_t *raw, size_t size, struct gt_err *err);

/* Sets *to to memory for an image of h x w pixels, never the memory of the current image: the output if its size fits, else a buffer. */
enum gt_code gt_work_take(struct gt_image_work *k, int64_t h, int64_t w, uint8_t **to, struct gt_err *err);
/* Makes `data`, which is memory from gt_work_take, the pixels of the current image. */
void gt_work_set(struct gt_image_work *k, int64_t h, int64_t w, uint8_t *data);

/* Returns channel i of a colour from the config as u8; black if the config gives no colour. */
uint8_t gt_transform_colour(const struct gt_floats *f, int i);

/* Applies transform i, which keeps the size of the image. */
enum gt_code gt_work_apply_one(struct gt_image_work *k, int i, struct gt_err *err);
/* Applies the list in the order of the gather kernel, which crops before it mirrors. gt_transform_in_kernel must accept the list. */
enum gt_code gt_work_apply_as_kernel(struct gt_image_work *k, struct gt_err *err);

#endif
