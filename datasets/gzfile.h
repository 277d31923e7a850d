/* Reads a data file, plain or gzip, which is recognised by its first bytes. The file is treated as hostile: it must be a regular file, and
 * no memory is allocated for a size that a header announces before it is known that the file can contain that much.
 *
 * A gzip file (RFC 1952) is a sequence of members: 1f 8b 08 flags …, deflate data, CRC-32, length mod 2^32. The CRC and length of each
 * member are checked, and bytes after the last member are an error. (gzread of zlib accepts truncated files and extra bytes silently.) */
#ifndef GT_DATASETS_GZFILE_H
#define GT_DATASETS_GZFILE_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gt_gzfile {
	bool open;
	bool gz;
	int fd;
	uint64_t size;   /* bytes on disk */
	uint64_t limit;  /* maximum size of the content */
	char shown[400]; /* the path for messages; if it is long, its beginning is left out */
};

/* Opens a file. max_bytes: maximum size of the content; a gzip file must also not expand to more than 64 times its size (or 64 MiB).
 * GT_ENOINPUT: it does not exist or cannot be read. GT_EDATA: it is empty, a directory, a FIFO or a device. */
enum gt_code gt_gzfile_open(const char *path, uint64_t max_bytes, struct gt_gzfile *f, struct gt_err *err);
void gt_gzfile_close(struct gt_gzfile *f); /* does nothing if it is zeroed or closed */

/* Reads the first `want` bytes of the content (at most 64 KiB); *got is less if the content is shorter. */
enum gt_code gt_gzfile_head(const struct gt_gzfile *f, void *buf, size_t want, size_t *got, struct gt_err *err);

/* Returns the size of the content. It is exact for a plain file; for gzip it is the size in the trailer of the last member, which must be
 * verified by reading. 0: a gzip file with several members or more than 4 GiB, whose trailer does not have the size. */
uint64_t gt_gzfile_hint(const struct gt_gzfile *f);

/* Checks that a content of `size` bytes, as a header in the file announces, is possible and allowed. Call it before memory is allocated. */
enum gt_code gt_gzfile_expect(const struct gt_gzfile *f, uint64_t size, struct gt_err *err);

/* Reads the whole content into dst. GT_EDATA: the content does not have exactly `size` bytes, or the gzip data is damaged. */
enum gt_code gt_gzfile_read(const struct gt_gzfile *f, uint8_t *dst, uint64_t size, struct gt_err *err);

/* Reads the whole content, whose length is unknown, into *out, which is allocated by malloc; the caller frees it. */
enum gt_code gt_gzfile_load(const struct gt_gzfile *f, uint8_t **out, uint64_t *size, struct gt_err *err);

/* Allocates memory for the samples of a dataset, to be freed by free(). Uses huge pages if possible, because page faults would take longer
 * than the copy. */
void *gt_big_alloc(size_t bytes);

#endif
