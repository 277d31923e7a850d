/* Writes a tar archive member by member, in a form that tar_reader.h and tar read: ustar headers, and GNU's headers for long paths. The
 * size of a member need not be known before its content.
 *
 *     struct gt_tar_writer w = {.name = path, .fd = fd};        an empty file
 *     GT_TRY(gt_tar_begin(&w, "rose/1.jpg", '0', err));
 *     GT_TRY(gt_tar_append(&w, data, n, err));                  any number of times
 *     GT_TRY(gt_tar_end(&w, err));
 *     GT_TRY(gt_tar_finish(&w, err));
 */
#ifndef GT_DATASETS_TAR_WRITER_H
#define GT_DATASETS_TAR_WRITER_H

#include "base/err.h"
#include <stddef.h>
#include <stdint.h>

struct gt_tar_writer {
	const char *name;  /* the archive's path, for messages */
	int fd;            /* open for writing, at offset 0 */
	uint64_t bytes;    /* size of the archive so far. This field and those below are initially 0, and only these functions use them */
	uint64_t header;   /* offset of the current member's header */
	char path[100], type;
};

/* Begins a member. type: as in gt_tar_member; members other than regular files ('0') have no content. The path has at most 4095 bytes. */
enum gt_code gt_tar_begin(struct gt_tar_writer *w, const char *path, char type, struct gt_err *err);
enum gt_code gt_tar_append(struct gt_tar_writer *w, const void *data, size_t n, struct gt_err *err);
/* Ends a member: writes its padding and its header. Returns GT_EIO also if the content has 8 GiB or more. */
enum gt_code gt_tar_end(struct gt_tar_writer *w, struct gt_err *err);
/* Writes the end of the archive. */
enum gt_code gt_tar_finish(struct gt_tar_writer *w, struct gt_err *err);

#endif
