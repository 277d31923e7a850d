/* Images in arrays of NumPy: which arrays of a file are the images and the labels of a split, and their layout.
 *
 *     x, y                      also X and Y, images and labels, image and label, data and labels, target or targets
 *     x_train, y_train          the same with train, valid, val or test, before or behind: train_images, train_labels
 *
 * Images are uint8 [n, height, width], [n, height, width, channels], [n, channels, height, width] or [n, values]. The last dimension is the
 * channels if it is 1 or 3 and the second is not. Labels are integers [n] or [n, 1]. */
#ifndef GT_DATASETS_NUMPY_IMAGES_H
#define GT_DATASETS_NUMPY_IMAGES_H

#include "dataset.h"
#include "numpy_file.h"

struct gt_numpy_images {
	struct gt_numpy_array *images, *labels; /* images NULL: the file has no images of the split; labels NULL: the file has only images */
	int64_t n, c, h, w;
	bool channels_last; /* the elements are in the order N, H, W, C, or there is one channel; else N, C, H, W */
};

/* Finds the images and labels of a split by their names. Names without a split are accepted for the training and test split. */
void gt_numpy_images_find(struct gt_numpy *f, enum gt_split split, struct gt_numpy_images *out);
/* Returns whether the file has arrays whose names contain the name of the split. */
bool gt_numpy_images_split(struct gt_numpy *f, enum gt_split split);
/* Checks the arrays and sets the shape. where: the file, for messages. GT_EDATA: they are not images or labels. */
enum gt_code gt_numpy_images_check(const char *where, struct gt_numpy_images *m, struct gt_err *err);

/* Returns whether a file has images with labels of the training split, and whether it also has a test split; false if it cannot be read. */
bool gt_numpy_images_in(const char *path, bool *has_test);

#endif
