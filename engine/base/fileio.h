/* Checked file operations. Every error names the path and the text of errno.
 *
 *     GT_ENOINPUT    a file to read does not exist
 *     GT_EDATA       a file to read is not a regular file, or too long
 *     GT_ECANTCREAT  something cannot be created
 *     GT_EIO         a later operation fails
 *     GT_EFAIL       memory or descriptors are exhausted, or permission to read is missing: nothing is known about the file itself
 *
 * Interrupted and short transfers are continued. A call that is interrupted GT_EINTR_MAX times in a row is an error. */
#ifndef GT_BASE_FILEIO_H
#define GT_BASE_FILEIO_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GT_PATH_SIZE 4096 /* size of a path buffer; longer paths are errors, and never truncated */
#define GT_EINTR_MAX 100
#define GT_NONCE_SIZE 17 /* bytes of a random name as text: 16 hexadecimal digits and the NUL */

/* Writes "dir/name" into buf (GT_PATH_SIZE bytes). Returns GT_ECANTCREAT if it does not fit. */
enum gt_code gt_path_join(char *buf, const char *dir, const char *name, struct gt_err *err);
/* Writes the parent directory of path into buf (GT_PATH_SIZE bytes); "." if path has no slash. */
enum gt_code gt_path_parent(char *buf, const char *path, struct gt_err *err);
/* Writes 16 random hexadecimal digits, for the names of temporary files. */
void gt_nonce(char buf[GT_NONCE_SIZE]);

/* Writes "path.tmp-<nonce>" into buf (GT_PATH_SIZE bytes). Returns GT_ECANTCREAT if path is a device, FIFO or socket, or a link to one
 * or into /proc, such as /dev/stdout: a rename would replace it. */
enum gt_code gt_file_temporary(char *buf, const char *path, struct gt_err *err);

/* Writes "path.tmp-<nonce>" into buf (GT_PATH_SIZE bytes) and creates that file as gt_file_create does. An error names path. */
enum gt_code gt_file_create_temporary(char *buf, const char *path, unsigned mode, int *fd, struct gt_err *err);

/* Closes the temporary file tmp of path. code: the result of writing it. If it is GT_OK, makes the file durable and renames it to path;
 * otherwise, or if that fails, removes it. Returns the first error. */
enum gt_code gt_file_commit(enum gt_code code, int fd, const char *tmp, const char *path, struct gt_err *err);

/* ---- open files ----------------------------------------------------------------------------------------------------------- */
/* Creates a file for writing, with close-on-exec. mode: permissions, as for open(2), which the umask limits. Fails if the name exists,
 * even as a symbolic link. */
enum gt_code gt_file_create(const char *path, unsigned mode, int *fd, struct gt_err *err);
enum gt_code gt_file_write(int fd, const char *path, const void *data, size_t n, struct gt_err *err);
/* Syncs and closes fd; closes it in any case. After a failure the content of the file is unknown: discard it, and do not sync it again. */
enum gt_code gt_file_sync_close(int fd, const char *path, struct gt_err *err);
/* Opens a regular file for reading, without blocking on a FIFO, and returns its length. */
enum gt_code gt_file_open(const char *path, int *fd, uint64_t *bytes, struct gt_err *err);
/* Opens a file like gt_file_open, but fails for a symbolic link; for files that gtrain itself replaces. Sets *fd to -1, which is no
 * error, if the file does not exist. */
enum gt_code gt_file_open_own(const char *path, int *fd, uint64_t *bytes, struct gt_err *err);
/* Reads exactly n bytes at offset. Returns GT_EDATA if the file ends earlier. */
enum gt_code gt_file_pread(int fd, const char *path, void *buf, size_t n, uint64_t offset, struct gt_err *err);
/* Calls fn with the first `bytes` bytes of the file in pieces, in order. Stops at the first failure, also of fn. */
enum gt_code gt_file_each(int fd, const char *path, uint64_t bytes,
                          enum gt_code (*fn)(void *user, const void *data, size_t n, struct gt_err *err), void *user, struct gt_err *err);

/* ---- whole files ---------------------------------------------------------------------------------------------------------- */
/* Reads a whole regular file of at most cap bytes. Sets *data to memory from malloc, which has a NUL after the *n bytes; the caller
 * frees it. */
enum gt_code gt_file_read(const char *path, size_t cap, char **data, size_t *n, struct gt_err *err);
/* Replaces a file atomically: writes and syncs a temporary file, renames it, and syncs the directory. After a failure the old file is
 * unchanged. */
enum gt_code gt_file_replace(const char *path, unsigned mode, const void *data, size_t n, struct gt_err *err);
/* Renames a file and syncs the directory of `to`. */
enum gt_code gt_file_rename(const char *from, const char *to, struct gt_err *err);
/* Replaces the symbolic link `path` by a link to target, which is created under a temporary name and renamed. Does not sync. */
enum gt_code gt_link_replace(const char *target, const char *path, struct gt_err *err);

/* ---- directories ---------------------------------------------------------------------------------------------------------- */
/* Creates a directory and its parents with mode 0777 less the umask, and syncs the parent of each new directory. It is not an error if the
 * directory exists. If `existed` is not NULL, *existed becomes the length of the part of path that existed before; it is set on failure
 * too. */
enum gt_code gt_dir_make(const char *path, size_t *existed, struct gt_err *err);
/* Removes the directories that gt_dir_make has made, deepest first, as long as they are empty. Failures are ignored. */
void gt_dir_unmake(const char *path, size_t existed);
/* Syncs the entries of a directory. If the file system cannot sync directories (EINVAL), this is not an error. */
enum gt_code gt_dir_sync(const char *path, struct gt_err *err);
/* Removes a file, a symbolic link, or a directory with its content. Never follows a symbolic link. It is not an error if path does not
 * exist. Continues after a failure and returns the first one. */
enum gt_code gt_tree_remove(const char *path, struct gt_err *err);

/* ---- lock ----------------------------------------------------------------------------------------------------------------- */
/* Creates the file, locks it with flock(2), and writes the process id into it. If another process holds the lock, sets *held to true,
 * *holder to the id of that process (0: unknown), and *fd to -1. The lock ends when the descriptor is closed; processes started by exec
 * do not inherit it. A process may ask whether the lock is held with flock(LOCK_SH) if it releases this lock at once: such a lock counts
 * as held only after a second. */
enum gt_code gt_lock_take(const char *path, int *fd, bool *held, long *holder, struct gt_err *err);
void gt_lock_drop(int fd); /* releases the lock; does nothing if fd is -1 */

#endif
