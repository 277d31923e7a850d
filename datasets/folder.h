/* Folders and .tar archives as lists of the images in them, for the formats that read them. */
#ifndef GT_DATASETS_FOLDER_H
#define GT_DATASETS_FOLDER_H

#include "source.h"

/* Opens a folder, or a .tar archive, as a source without files. GT_ENOINPUT: it does not exist or cannot be read. */
enum gt_code gt_folder_open(const char *root, struct gt_source **out, struct gt_err *err);
/* Adds all images in it, at any depth, and sorts them by path; their labels are 0. */
enum gt_code gt_folder_list(struct gt_source *s, struct gt_err *err);
/* Returns whether path is a folder or a file whose name ends with ".tar". */
bool gt_folder_is_source(const char *path);

#endif
