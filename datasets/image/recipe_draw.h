/* Divides the work of a list of transforms: threads decode an image and apply the first transforms; the operation gather.recipes applies
 * the others, which keep the size of the image, when it gathers the batch (kernels/recipe.h). The pixels are the same for any division.
 *
 *     struct gt_recipe_split split = gt_recipe_split_of(list, c, h, w);
 *     uint8_t *pixels = gt_recipe_draw(list, &split, &key, c, h, w, row);
 *     gt_image_load(…, {list.t, split.first}, &key, c, h, w, scratch, pixels, err);
 */
#ifndef GT_IMAGE_RECIPE_DRAW_H
#define GT_IMAGE_RECIPE_DRAW_H

#include "image/transform.h"

struct gt_recipe_split {
	int first;     /* index of the first transform that is left to gather.recipes; the number of transforms if none is */
	int ops;       /* maximum number of operations of a recipe; 0: threads apply the whole list */
	int contrasts; /* maximum number of changes of the contrast among them */
	int64_t row;   /* bytes of a row: a recipe and the pixels of an image */
};

/* Leaves as many transforms at the end of the list to gather.recipes as it can apply to images of c x h x w. All of the list's transforms
 * work on single images. */
struct gt_recipe_split gt_recipe_split_of(struct gt_transform_list list, int c, int64_t h, int64_t w);
/* Draws the recipe of a sample from the transforms split.first … of the list, and writes it to the beginning of its row. Returns the
 * address of the image in the row. */
uint8_t *gt_recipe_draw(struct gt_transform_list list, const struct gt_recipe_split *split, const struct gt_sample_key *key, int c,
                        int64_t h, int64_t w, uint8_t *row);

#endif
