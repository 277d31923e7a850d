/* The index of image contents: the content hash (gt_sample_mark.content) for each state of a file, so that the files of a large folder are
 * not read again while they do not change. As in the index of git, the state of a file is what the file system says about it.
 *
 *     gt_content_index_open(root, &x, note, sizeof note);
 *     content = gt_content_index_find(x, gt_content_state(&st));     0: not known, so the file is read
 *     gt_content_index_save(x, found, n, note, sizeof note);         what was read
 *     gt_content_index_close(x);
 *
 *     stat --> inode, size, mtime, ctime --> state --> index --+--> content
 *                                                              |
 *                                      unknown: read the file -+
 *
 * The state has the change time (ctime), which no program can set: the kernel sets it whenever content, times or names of a file change.
 * A file in another state is read, so an index never becomes wrong, and it is valid for all splits, lists and configs. A state is recorded
 * only if a later change must change it:
 *   - The last change was more than GT_CONTENT_SETTLED_S seconds ago. Otherwise another change could leave the times as they are.
 *   - The file system keeps inode numbers and change times (file_system.h), and the change time has nanoseconds: files of SquashFS below
 *     an overlayfs have the times that its author chose, in seconds.
 * Not noticed: a write through a shared mapping of a file whose earlier write through the same mapping is not yet on disk, because the
 * kernel does not set the times again; and bytes that change on the disk without a write. */
#ifndef GT_DATASETS_CONTENT_INDEX_H
#define GT_DATASETS_CONTENT_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define GT_CONTENT_SETTLED_S 2 /* the coarsest times of a file system */

struct gt_content_entry {
	uint64_t state;   /* gt_content_state */
	uint64_t content; /* gt_sample_mark.content; 0: not known */
};

struct gt_content_index;

/* Opens the index of the files below a directory. *out NULL: there can be no index. An index file that is damaged is not used. `note` says
 * why; "": there is nothing to say. */
void gt_content_index_open(const char *root, struct gt_content_index **out, char *note, size_t size);
void gt_content_index_close(struct gt_content_index *x); /* does nothing if x is NULL */

int64_t gt_content_index_count(const struct gt_content_index *x); /* number of entries */

/* Returns a hash of inode, size, mtime and ctime. */
uint64_t gt_content_state(const struct stat *st);

/* Returns the content of a file in this state; 0: not known. Thread-safe. */
uint64_t gt_content_index_find(const struct gt_content_index *x, uint64_t state);

/* Adds the entries with a content to the index, and writes it if there are any. Sorts the entries. If the index cannot be written, `note`
 * says why. */
void gt_content_index_save(struct gt_content_index *x, struct gt_content_entry *found, int64_t n, char *note, size_t size);

#endif
