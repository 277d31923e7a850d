/* Reads the headers of a tar archive one after the other: POSIX ustar, pax and GNU's long names. The caller provides the bytes, so that the
 * archive may be a file or a stream of decompressed data. Every archive is treated as hostile.
 *
 *     struct gt_tar_reader t = {.name = path, .bytes = size, .read = read_file, .user = &file};
 *     struct gt_tar_member m;
 *     do GT_TRY(gt_tar_next(&t, &m, err)); while (m.path && ...);
 *
 *     header 'L' or 'x': path, size of the next member --.
 *     header '0': path, size, type ----------------------+--> struct gt_tar_member
 *     content, padded to blocks of 512 bytes                  offset, size: where the content is */
#ifndef GT_DATASETS_TAR_READER_H
#define GT_DATASETS_TAR_READER_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GT_TAR_PATH 4096 /* maximum number of bytes of a member's path, with the NUL */

/* Reads n bytes of the archive from `offset` on into buf. *got is less than n only at the end of the archive. From one call to the next,
 * `offset` is at least the previous offset plus *got. */
typedef enum gt_code gt_tar_read(void *user, uint64_t offset, void *buf, size_t n, size_t *got, struct gt_err *err);

struct gt_tar_reader {
	const char *name;       /* the archive's path, for messages */
	uint64_t bytes;         /* size of the archive in bytes; UINT64_MAX: not known */
	gt_tar_read *read;
	void *user;
	uint64_t at;            /* offset of the next header. This field and those below are initially 0, and only gt_tar_next uses them */
	uint64_t headers;       /* number of headers so far */
	char path[GT_TAR_PATH];
};

struct gt_tar_member {
	const char *path;       /* without "./" and repeated slashes; valid until the next call; NULL: end of the archive */
	uint64_t offset, size;  /* location of the content in the archive, in bytes; size is 0 for links and folders */
	char type;              /* type in the header: '0', '7' or NUL is a regular file, '1' a hard link, '2' a symbolic one, '5' a folder */
	bool sparse;            /* GNU sparse format: the content in the archive differs from the file's content */
};

/* Reads up to the next member. The archive ends with a block of zeros, or exactly after a member. GT_EDATA: it is damaged. */
enum gt_code gt_tar_next(struct gt_tar_reader *t, struct gt_tar_member *out, struct gt_err *err);

/* Removes redundant parts of a path: "./a//b" becomes "a/b". */
void gt_tar_clean_path(char *path);
/* Returns whether a path is absolute or has a part "..". */
bool gt_tar_path_leaves(const char *path);

/* Returns whether the content of m in the archive is the content of a regular file. */
bool gt_tar_is_file(const struct gt_tar_member *m);

#endif
