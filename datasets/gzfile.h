/* A data file, plain or gzip (told by its first bytes, not by its name), that is assumed hostile: it must be a regular file, and
 * nothing is allocated because the file says so before it is plain that the file can hold that much.
 *
 * gzip (RFC 1952): members one after the other, each 1f 8b 08 flags … deflate data, CRC-32, length mod 2^32. Every member's CRC
 * and length are checked, and bytes after the last member are an error (zlib's gzread passes both a cut and a tail silently). */
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
	uint64_t limit;  /* the content may not be larger than this */
	char shown[400]; /* the path for messages, its beginning cut if it is long */
};

/* max_bytes: the caller's limit on the content; a gzip file may moreover not expand to more than 64 times its size (or 64 MiB).
 * GT_ENOINPUT: not there or not readable. GT_EDATA: empty, or a directory, FIFO or device. */
enum gt_code gt_gzfile_open(const char *path, uint64_t max_bytes, struct gt_gzfile *f, struct gt_err *err);
void gt_gzfile_close(struct gt_gzfile *f); /* a zeroed or closed one is fine */

/* The first `want` bytes of the content (at most 64 KiB); *got is less where the file is shorter. Expands no more than it needs. */
enum gt_code gt_gzfile_head(const struct gt_gzfile *f, void *buf, size_t want, size_t *got, struct gt_err *err);

/* Size of the content: exact for a plain file; for gzip what the last member's trailer claims: a hint, to be verified by reading.
 * 0: gzip with several members or over 4 GiB, where the trailer tells nothing. */
uint64_t gt_gzfile_hint(const struct gt_gzfile *f);

/* Says whether a content of `size` bytes (from a header inside the file) is possible and allowed, before memory is taken for it. */
enum gt_code gt_gzfile_expect(const struct gt_gzfile *f, uint64_t size, struct gt_err *err);

/* The whole content into dst, which must be exactly `size` bytes long: more or less is GT_EDATA, and so is a damaged gzip. */
enum gt_code gt_gzfile_read(const struct gt_gzfile *f, uint8_t *dst, uint64_t size, struct gt_err *err);

/* The whole content, whatever its length up to the limit, into malloc'ed *out, which the caller frees. */
enum gt_code gt_gzfile_load(const struct gt_gzfile *f, uint8_t **out, uint64_t *size, struct gt_err *err);

/* Memory for the samples of a data set, freed by free(): in huge pages where there are any, as its faults cost more than its copy. */
void *gt_big_alloc(size_t bytes);

#endif
