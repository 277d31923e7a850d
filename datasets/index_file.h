/* Index files: arrays that a first pass over large data has made, so that later processes map them into memory instead of reading the data
 * again (data_index.h says what they contain).
 *
 *     GT_TRY(gt_index_create(path, &w, err));                      writing
 *     GT_TRY(gt_index_add(&w, 1, ids, n * sizeof *ids, err)); ...
 *     GT_TRY(gt_index_commit(&w, path, err));                      on failure: gt_index_abandon(&w)
 *
 *     gt_index_open(path, &ix, why, sizeof why);                   reading; ix is NULL if there is no usable index
 *     ids = gt_index_section(ix, 1, &bytes);
 *     gt_index_close(ix);
 *
 * Layout, in the byte order of the machine:
 *
 *     0      header, 4096 bytes: "gtrainIX", u32 version, u32 sections, u64 bytes of the file, then for each section
 *            u32 tag, u32 0, u64 offset, u64 bytes, u64 XXH3 hash; the rest is 0; the last 8 bytes are the XXH3 hash of the others
 *     4096   the sections, each at a multiple of 4096
 *
 * An index is treated as hostile: it must be a regular file of this user that nobody else can write; every offset, size and hash is checked
 * before gt_index_open returns. The caller checks the values in the sections. An index is never changed in place, and a new one gets its
 * name by a rename, so a mapping on a local file system cannot become shorter. An index is not synced: after a power failure, a file
 * without its content has wrong hashes. */
#ifndef GT_DATASETS_INDEX_FILE_H
#define GT_DATASETS_INDEX_FILE_H

#include "base/err.h"
#include "base/fileio.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GT_INDEX_SECTIONS 32 /* maximum number of sections of a file */
#define GT_INDEX_BLOCK ((uint64_t)4 << 20) /* bytes that a reader examines before it drops their pages */

struct gt_index_entry {
	uint32_t tag, zero;
	uint64_t offset, bytes, hash; /* offset in the file, bytes of the section, XXH3 hash of its bytes */
};

struct gt_index_header {
	char magic[8];
	uint32_t version, nsections;
	uint64_t bytes; /* of the file */
	struct gt_index_entry section[GT_INDEX_SECTIONS];
	uint8_t zero[4096 - 24 - 8 - GT_INDEX_SECTIONS * sizeof(struct gt_index_entry)];
	uint64_t hash;  /* of all bytes before it */
};
_Static_assert(sizeof(struct gt_index_header) == 4096, "the header fills a page");
#define GT_INDEX_MAGIC "gtrainIX"
#define GT_INDEX_VERSION 1

struct gt_index_writer {
	int fd;
	char temporary[GT_PATH_SIZE];
	struct gt_index_header header;
};

/* Creates a temporary file beside path. */
enum gt_code gt_index_create(const char *path, struct gt_index_writer *w, struct gt_err *err);
/* Appends a section. Each tag is used once. A section without bytes is left out. */
enum gt_code gt_index_add(struct gt_index_writer *w, uint32_t tag, const void *data, uint64_t bytes, struct gt_err *err);
/* Writes the header and renames the file to path. On failure, the caller calls gt_index_abandon. */
enum gt_code gt_index_commit(struct gt_index_writer *w, const char *path, struct gt_err *err);
void gt_index_abandon(struct gt_index_writer *w); /* removes the temporary file */

struct gt_index;
/* Maps an index and checks it whole. *out NULL: there is no usable index; `why` then says what is wrong with the file: "the file is shorter
 * than its header says"; "": the file does not exist. */
void gt_index_open(const char *path, struct gt_index **out, char *why, size_t size);
void gt_index_close(struct gt_index *ix); /* does nothing if ix is NULL */

/* Returns a section, aligned to 4096 bytes, and its size; NULL: the index lacks the section. Valid until gt_index_close. Read-only. */
const void *gt_index_section(const struct gt_index *ix, uint32_t tag, uint64_t *bytes);
/* Returns whether p points into the mapping; false if ix is NULL. */
bool gt_index_owns(const struct gt_index *ix, const void *p);
/* Drops the pages of n bytes at p from the memory of this process; they remain in the page cache of the system. */
void gt_index_drop(const struct gt_index *ix, const void *p, uint64_t n);
void gt_index_drop_all(const struct gt_index *ix); /* drops the pages of the whole file; does nothing if ix is NULL */

#endif
