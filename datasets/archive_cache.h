/* Packed archives (.zip, .tar.gz, .tar.zst, .tar.xz, .tar.bz2) of images or texts, as unpacked .tar archives in the user's cache.
 *
 *     flowers.zip --plugin--> members --> CACHE/archives/PATH-STATE.tar --> a source that is read in place, with random access
 *
 * A loader reads samples in random order, which a compressed archive does not allow: in a .tar.gz each sample would need all bytes before
 * it. So an archive is converted once into a .tar file. Unlike unpacked files, the .tar has no paths that leave its folder and no links,
 * and it is removed as one file. Only images and texts are copied.
 *
 * PATH is a hash of the archive's real path, STATE a hash of its device, inode, size and times of the last change (stat(2)). So a changed
 * archive is converted again, and the .tar of its former state is removed. Reading the whole archive for a digest of its content would cost
 * as much as the training for a few minutes, in each process of each run. */
#ifndef GT_DATASETS_ARCHIVE_CACHE_H
#define GT_DATASETS_ARCHIVE_CACHE_H

#include "base/err.h"
#include <stdbool.h>

/* Returns whether path is a regular file with a name of a packed archive. */
bool gt_archive_is_packed(const char *path);

/* Returns whether a path has the name of a packed archive; the file need not exist. */
bool gt_archive_has_name(const char *path);

/* Opens the cached .tar of a packed archive, and creates it if it does not exist. The caller closes *fd. Other processes that need the same
 * .tar wait for it. GT_EDATA: the archive is damaged, truncated or encrypted, or it expands to more than 64 MiB and more than 64 times its
 * size, or to more than the free disk space. GT_EUNAVAILABLE: the plugin is missing. GT_ECANTCREAT, GT_EIO: the cache cannot be written. */
enum gt_code gt_archive_cache_open(const char *path, int *fd, struct gt_err *err);

#endif
