/* Reads a data file, plain or gzip; a gzip file is recognised by its first two bytes. The file is treated as hostile: it must be a regular
 * file. Before the reader allocates memory for a size from a header in the file, it checks that a file of this length can contain so much
 * data.
 *
 * A gzip file (RFC 1952) is a sequence of members: 1f 8b 08 flags …, deflate data, CRC-32, length mod 2^32. The CRC and length of each
 * member are checked, and bytes after the last member are an error. (gzread of zlib accepts truncated files and extra bytes silently.) */
#ifndef GT_DATASETS_GZFILE_H
#define GT_DATASETS_GZFILE_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* GT_FD_PATH plus a descriptor is the path of an open file of this process. Messages call this file "standard input", because it is a copy
 * of standard input (engine/use/input_files.h). */
#define GT_FD_PATH "/proc/self/fd/"

struct gt_gzfile {
	bool open;
	bool gz;
	int fd;
	uint64_t size;   /* bytes of the file on disk, compressed if it is a gzip file */
	uint64_t limit;  /* maximum bytes of the content, after decompression */
	char shown[400]; /* the path for messages; the beginning of a long path is left out */
};

/* Opens a file. Reading it fails later if its content is longer than max_bytes, or if a gzip file expands to more than 64 MiB and more than
 * 64 times its size. GT_ENOINPUT: the file does not exist or cannot be read. GT_EDATA: it is empty, a directory, a FIFO or a device. */
enum gt_code gt_gzfile_open(const char *path, uint64_t max_bytes, struct gt_gzfile *f, struct gt_err *err);
void gt_gzfile_close(struct gt_gzfile *f); /* does nothing if *f is zeroed or already closed */

/* Reads the first `want` bytes of the content (at most 64 KiB); *got is less if the content is shorter. */
enum gt_code gt_gzfile_head(const struct gt_gzfile *f, void *buf, size_t want, size_t *got, struct gt_err *err);

/* Returns the size of the content in bytes. For a plain file it is exact. For a gzip file it is the size in the trailer of the last member,
 * which is verified when the file is read; 0 if this size is impossible, for example with several members or more than 4 GiB. */
uint64_t gt_gzfile_hint(const struct gt_gzfile *f);

/* Checks that a file of this length can contain `size` bytes of content (a size from a header in the file), and that `size` is at most
 * max_bytes of gt_gzfile_open. GT_EDATA: a check failed. Call it before memory is allocated for the content. */
enum gt_code gt_gzfile_expect(const struct gt_gzfile *f, uint64_t size, struct gt_err *err);

/* Reads the whole content into dst. GT_EDATA: the content does not have exactly `size` bytes, or the gzip data is damaged. */
enum gt_code gt_gzfile_read(const struct gt_gzfile *f, uint8_t *dst, uint64_t size, struct gt_err *err);

/* Reads the whole content, whose length is unknown, into *out, which is allocated by malloc; the caller frees it. */
enum gt_code gt_gzfile_load(const struct gt_gzfile *f, uint8_t **out, uint64_t *size, struct gt_err *err);

/* Allocates memory for the samples of a dataset; the caller frees it with free(). Uses huge pages if possible, because with small pages,
 * page faults take more time than the copy. */
void *gt_big_alloc(size_t bytes);

/* Returns "zlib 1.3.1, libdeflate 1.23", for `gtrain --version`. */
const char *gt_gzfile_libraries(char *buf, size_t size);

#endif
