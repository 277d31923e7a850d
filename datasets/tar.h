/* Lists the images in a .tar archive (POSIX.1-2001 ustar and pax, and GNU's long names), which is then read in place. */
#ifndef GT_DATASETS_TAR_H
#define GT_DATASETS_TAR_H

#include "source.h"

/* Adds every regular member for which wanted(path) is true to s, whose root is the archive, with the location of its content. 
 * "./" and further slashes in a path are left out. Of members of the same path, the last one counts, as tar extracts them. The files are
 * sorted by path. GT_EDATA: the archive is damaged or truncated, or a wanted member is a link or sparse, or has an
 * absolute path or one with "..". */
enum gt_code gt_tar_list(struct gt_source *s, bool (*wanted)(const char *path), struct gt_err *err);

#endif
