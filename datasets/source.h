/* A source is the list of the encoded files of one split with their labels. Only names are kept in memory; a file is read when a batch
 * needs it. The files are in a folder, or they are members of a .tar archive, which is read in place.
 *
 *     gt_source_add(s, "rose/1.jpg", 0, 0, err);            for every file
 *     gt_source_read(s, i, &buf, err);                      buf.data[0 ... buf.size - 1]: the bytes of sample i; any number of threads
 *     gt_source_close(s);
 */
#ifndef GT_DATASETS_SOURCE_H
#define GT_DATASETS_SOURCE_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GT_SOURCE_MAX_FILE ((uint64_t)256 << 20) /* maximum size of one encoded sample in bytes */
#define GT_SOURCE_KEEP ((size_t)8 << 20) /* maximum size in bytes of a buffer that is kept for the next file; a larger buffer is freed */

/* A file of a source: an entry of a folder, or a member of an archive. */
struct gt_source_file {
	uint64_t name;         /* offset of the file's path in gt_source.names */
	uint64_t offset, size; /* offset and size of the content in the archive, in bytes; both 0: the file is in a folder */
	int32_t label;         /* index of the class of the file */
	uint32_t label_hash;   /* gt_sample_mark.label */
	uint64_t id;           /* gt_sample_mark.id: a hash of the path, unless the format sets another id */
};

struct gt_source {
	char *root;                  /* path of the folder or of the archive */
	int fd;                      /* descriptor of the open folder or archive; -1: closed */
	bool archive;                /* the source is a .tar archive; false: a folder */
	int64_t n, cap;              /* number of files, and number allocated in file[] */
	struct gt_source_file *file; /* sorted by label, then by path */
	char *names;                 /* paths of all files, relative to root, each ended by a NUL */
	int64_t names_size, names_cap; /* bytes used and allocated of names[] */
	char left_out[200];            /* folders without files, which are not classes: "a, b and 3 more"; "": none */
};

/* A buffer that is reused for the content of successive files. All zero: empty. The owner frees data. */
struct gt_bytes_buf {
	uint8_t *data;
	size_t size, cap;
};

/* Makes an empty source. root is copied. fd is the open folder or archive; the source takes ownership of fd. */
enum gt_code gt_source_open(const char *root, int fd, bool archive, struct gt_source **out, struct gt_err *err);
void gt_source_close(struct gt_source *s); /* does nothing if s is NULL */

/* Adds a file by its path relative to root. */
enum gt_code gt_source_add(struct gt_source *s, const char *path, uint64_t offset, uint64_t size, struct gt_err *err);

/* Returns the path of file i relative to root; for messages, gt_source_name writes the whole path to buf. */
static inline const char *gt_source_path(const struct gt_source *s, int64_t i)
{
	return s->names + s->file[i].name;
}
const char *gt_source_name(const struct gt_source *s, int64_t i, char *buf, size_t size);

/* Applies data.limit: keeps at most `limit` files at equal distances in the list, so that all classes remain; 0: keeps all files. */
void gt_source_thin_out(struct gt_source *s, int64_t limit);

/* Returns the memory of a source in bytes. */
uint64_t gt_source_bytes(const struct gt_source *s);

/* Reads the content of file i. Thread-safe. GT_EDATA: the file is missing, empty, longer than GT_SOURCE_MAX_FILE or not regular, or a read
 * failed; the message names the file. */
enum gt_code gt_source_read(const struct gt_source *s, int64_t i, struct gt_bytes_buf *buf, struct gt_err *err);
/* Like gt_source_read, but reads at most the first `most` bytes. */
enum gt_code gt_source_read_head(const struct gt_source *s, int64_t i, size_t most, struct gt_bytes_buf *buf, struct gt_err *err);

/* Opens file i, and sets the location of its content in *fd; the caller closes *fd unless s->archive is set, where *fd is s->fd. state:
 * gets the state of a file that is not in an archive, unless it is NULL. Thread-safe. */
struct stat;
enum gt_code gt_source_locate(const struct gt_source *s, int64_t i, int *fd, uint64_t *offset, uint64_t *size, struct stat *state,
                              struct gt_err *err);

#endif
