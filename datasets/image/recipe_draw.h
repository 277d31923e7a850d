/* Divides the work of a list of transforms: threads decode an image and apply the first transforms; the operation gather.recipes applies
 * the remaining transforms when it gathers the batch (kernels/recipe.h). The pixels are the same for any division.
 *
 *     struct gt_recipe_split split = gt_recipe_split_of(list, c, h, w);
 *     gt_image_make(&(struct gt_image_job){.list = list, .split = &split, .out = row, …}, err);     row: split.row bytes
 */
#ifndef GT_IMAGE_RECIPE_DRAW_H
#define GT_IMAGE_RECIPE_DRAW_H

#include "image/transform.h"

struct gt_recipe_split {
	bool on;       /* gather.recipes applies the remaining transforms; false: threads apply the whole list, and rows have no recipe */
	bool resize;   /* the first `first` transforms are a random_resized_crop, or a resize with or without a center_crop, and gather.recipes
	                  applies them, too. But threads resize an image if its needed part exceeds a row, or the resize has too many weights
	                  for the kernel */
	int first;     /* index of the first of the transforms without a change of size, which gather.recipes applies */
	int ops;       /* maximum number of operations in the recipe of an image */
	int contrasts; /* maximum number of contrast changes among the operations of one image */
	int64_t row;   /* size of a row in bytes: a recipe and the pixels if `on`, else the pixels only */
};

/* Leaves as many transforms as possible to gather.recipes, for images of c x h x w. The list has no mixup and no cutmix. */
struct gt_recipe_split gt_recipe_split_of(struct gt_transform_list list, int c, int64_t h, int64_t w);

#endif
