/* Divides the work of a list of transforms: threads decode an image and apply the first transforms; the operation gather.recipes applies
 * the others when it gathers the batch (kernels/recipe.h). The pixels are the same for any division.
 *
 *     struct gt_recipe_split split = gt_recipe_split_of(list, c, h, w);
 *     gt_image_make(&(struct gt_image_job){.list = list, .split = &split, .out = row, …}, err);     row: split.row bytes
 */
#ifndef GT_IMAGE_RECIPE_DRAW_H
#define GT_IMAGE_RECIPE_DRAW_H

#include "image/transform.h"

struct gt_recipe_split {
	bool on;       /* false: threads apply the whole list, and rows have no recipes */
	bool resize;   /* the first `first` transforms are a random_resized_crop or a resize, the latter with or without a center_crop, and
	                  gather.recipes applies them too. Images whose part of the file needs more memory than a row has, or more weights than
	                  a kernel has room for, are resized by threads */
	int first;     /* number of transforms before those that keep the size and are left to gather.recipes */
	int ops;       /* maximum number of operations of a recipe */
	int contrasts; /* maximum number of changes of the contrast among them */
	int64_t row;   /* bytes of a row: with on, a recipe and memory for pixels */
};

/* Leaves as many transforms to gather.recipes as it can apply to images of c x h x w. All of the list's transforms work on single
 * images. */
struct gt_recipe_split gt_recipe_split_of(struct gt_transform_list list, int c, int64_t h, int64_t w);

#endif
