/* Names of files and folders that have a meaning in folders of samples: those of the splits, and those that operating systems add. */
#ifndef GT_DATASETS_FOLDER_NAMES_H
#define GT_DATASETS_FOLDER_NAMES_H

#include "dataset.h"

/* The names of a split's folder have ranks; of several folders, the one with the smallest rank is used. */
#define GT_FOLDER_USUAL 2 /* ranks below are those of "train", "valid", "val" and "test", written so */

/* Returns the rank of a folder's name for a split: 0 is the best, -1: it is no name of the split. Names of GT_FOLDER_USUAL and above, such
 * as "Train", "training" and "validation", in upper or lower case, are also names that classes have. */
int gt_folder_rank(enum gt_split split, const char *name, size_t len);
/* Returns whether a name is one of any split; usual: written as "train", "valid", "val" or "test". */
bool gt_folder_is_split(const char *name, size_t len, bool usual);

/* Returns whether a folder or file is not part of the data: it is hidden (its name begins with a dot), or an operating system or an archive
 * program has made it (__MACOSX, lost+found, …). */
bool gt_folder_ignored(const char *name, size_t len);
/* The same for a path of which one part is ignored. */
bool gt_folder_ignored_path(const char *path);

#endif
