/* Lists the images in a .tar archive (POSIX.1-2001 ustar and pax, and GNU's long names), which is then read in place. */
#ifndef GT_DATASETS_TAR_H
#define GT_DATASETS_TAR_H

#include "source.h"

/* Adds every regular member for which wanted(path) is true to s, whose root is the archive, with the location of its content. "./" at the
 * beginning of a path is left out. GT_EDATA: the archive is damaged or truncated, or a wanted member is a link or sparse, or has an
 * absolute path or one with "..". */
enum gt_code gt_tar_list(struct gt_source *s, bool (*wanted)(const char *path), struct gt_err *err);

#endif
