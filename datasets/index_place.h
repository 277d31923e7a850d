/* Where the index of data files is, and for which state of these files it was made.
 *
 *     GT_TRY(gt_index_find_place(paths, n, settings, &p, err));     before the files are read
 *     gt_index_open(p.path, …);                                     usable if its settings and its state equal those in p
 *     … the files are read …
 *     if (gt_index_lock(&p, &lock, …)) { write p.path; gt_index_unlock(lock); }
 *
 * The file is CACHE/index/FILES-SETTINGS.index, where CACHE is the user's cache of gtrain, FILES a hash of the real paths of the data files
 * and SETTINGS a hash of everything else that the content depends on. An index is as large as the arrays of the data, so only the
 * two indices of the same files that were used last are kept. */
#ifndef GT_DATASETS_INDEX_PLACE_H
#define GT_DATASETS_INDEX_PLACE_H

#include "base/err.h"
#include "base/fileio.h"
#include <stdbool.h>
#include <stdint.h>

struct gt_index_place {
	char dir[GT_PATH_SIZE], name[48], path[GT_PATH_SIZE]; /* path: dir/name */
	char *settings; /* everything but the files that the content depends on; malloc'ed */
	char *state;    /* a line for each file: "real path: inode size mtime ctime"; malloc'ed */
	uint64_t bytes; /* total size of the files */
	bool settled;   /* no file was changed in the last 2 s; else a further change could leave its times unchanged */
};

/* Describes n files. Returns false if there can be no index: a file is not a regular file, or there is no cache directory. The caller calls
 * gt_index_place_free in any case. */
bool gt_index_find_place(char *const *path, int n, const char *settings, struct gt_index_place *out);
/* Sets the place of an index that has the state of its files itself (content_index.h): out->state stays NULL. Returns false if there is no
 * cache directory. */
bool gt_index_place_of(const char *real_path, const char *settings, struct gt_index_place *out);
void gt_index_place_free(struct gt_index_place *p);

/* Returns whether the files are still in the state of p. */
bool gt_index_is_current(char *const *path, int n, const struct gt_index_place *p);

/* Writes the path of the first file that differs between two states to buf. */
void gt_index_changed_file(const char *was, const char *is, char *buf, size_t size);

/* Creates the directory of the indices, dir, for temporary files (base/spill.h). Returns false if this fails, or if the file system does
 * not write in place (file_system.h): a full disk could then end the process with SIGBUS. */
bool gt_index_make_spill_dir(const char *dir);

/* Prepares writing p->path: creates the directory, locks its file .lock, removes what killed processes have left and the indices of the
 * same files that were not used for the longest time, and checks that the disk has room for `bytes` bytes. Sets *lock, or returns false,
 * with the reason in `why`, for example a network or read-only file system; "": another process is writing an index. */
bool gt_index_lock(const struct gt_index_place *p, uint64_t bytes, int *lock, char *why, size_t size);
void gt_index_unlock(int lock);
uint64_t gt_index_inode(const struct gt_index_place *p); /* returns the inode of p->path; 0: there is no such file */
void gt_index_note_use(const struct gt_index_place *p); /* sets the time of the last use */

#endif
