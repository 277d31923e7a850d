/* The datasets that are recognised by the names of their files: which of these files a directory lacks. */
#ifndef GT_DATASETS_MISSING_FILES_H
#define GT_DATASETS_MISSING_FILES_H

#include "dataset.h"

/* If a directory has some files of such a dataset, but lacks others that a split needs, writes "DIR: expected all files of cifar10, but
 * data_batch_2.bin and data_batch_3.bin are missing" to buf and returns true. An IDX dataset may have no test split. */
bool gt_missing_files(const char *dir, enum gt_split split, char *buf, size_t size);

#endif
