/* images.py of an exported model of images: the preparation of an image for the model in Python, with Pillow and NumPy, so that other
 * programs can give the model the pixels that `gtrain predict` gives it. */
#ifndef GT_EXPORT_IMAGE_TEXT_H
#define GT_EXPORT_IMAGE_TEXT_H

#include "base/json.h"
#include "export/export_source.h"

/* Returns whether the model takes images that `gtrain predict` reads from files. */
bool gt_image_files(const struct gt_export_source *s);
/* Returns whether eval.transforms has no other transforms than resize and center_crop, which images.py needs. */
bool gt_image_fixed(const struct gt_export_source *s);
/* Calls spec->note if a model of images has no images.py because of its transforms. */
void gt_image_note(const struct gt_export_source *s, const struct gt_export_spec *spec);
/* Writes the transforms of an evaluation for the metadata: {"channels":"RGB","size":[128,128],"transforms":[…]},
 * with the keys of entries of eval.transforms. */
void gt_image_json(const struct gt_export_source *s, struct gt_json *j);
/* Writes images.py to *module, which the caller frees. normalize: its function `batch` normalises the pixels, because the model does not.
 * *module is NULL unless gt_image_files and gt_image_fixed return true. */
enum gt_code gt_image_module(const struct gt_export_source *s, bool normalize, char **module, struct gt_err *err);

#endif
