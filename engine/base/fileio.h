/* Checked file operations. Every error names the path and says errno's words.
 * Codes: GT_ENOINPUT where a file to read is not there, GT_EDATA where it is not a regular file or too long, GT_ECANTCREAT where
 * something cannot be created, GT_EIO for everything that fails later; GT_EFAIL where memory or descriptors are exhausted or a file may
 * not be read: that says nothing about the file.
 * Interrupted and short transfers go on; a call that is interrupted GT_EINTR_MAX times in a row is an error, not a hang. */
#ifndef GT_BASE_FILEIO_H
#define GT_BASE_FILEIO_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GT_PATH_SIZE 4096 /* of a path buffer; longer paths are refused, never cut */
#define GT_EINTR_MAX 100
#define GT_NONCE_SIZE 17 /* 16 hexadecimal digits and the NUL */

/* "dir/name" into buf (GT_PATH_SIZE bytes). GT_ECANTCREAT if it does not fit. */
enum gt_code gt_path_join(char *buf, const char *dir, const char *name, struct gt_err *err);
/* The folder that path lies in, "." if it names none, into buf (GT_PATH_SIZE bytes). */
enum gt_code gt_path_parent(char *buf, const char *path, struct gt_err *err);
/* 16 random hexadecimal digits, for the names of temporaries. */
void gt_nonce(char buf[GT_NONCE_SIZE]);

/* "path.tmp-<nonce>" into buf (GT_PATH_SIZE bytes). */
enum gt_code gt_file_temporary(char *buf, const char *path, struct gt_err *err);

/* ---- open files ----------------------------------------------------------------------------------------------------------- */
/* A new file for writing, close-on-exec; mode as for open(2). Never opens one that is there, nor through a symlink. */
enum gt_code gt_file_create(const char *path, unsigned mode, int *fd, struct gt_err *err);
enum gt_code gt_file_write(int fd, const char *path, const void *data, size_t n, struct gt_err *err);
/* fsync and close; closes in any case. A failure means that the file's content is unknown: discard it, never sync it again. */
enum gt_code gt_file_sync_close(int fd, const char *path, struct gt_err *err);
/* A regular file for reading (never blocks on a FIFO), and its length. */
enum gt_code gt_file_open(const char *path, int *fd, uint64_t *bytes, struct gt_err *err);
/* The same, but never through a symbolic link: of a file that is to be written next. *fd: -1 where it is not there, which is no failure. */
enum gt_code gt_file_open_own(const char *path, int *fd, uint64_t *bytes, struct gt_err *err);
/* Exactly n bytes at offset; an early end of the file is GT_EDATA. */
enum gt_code gt_file_pread(int fd, const char *path, void *buf, size_t n, uint64_t offset, struct gt_err *err);
/* Calls fn with the first `bytes` bytes of the file in pieces, in order; stops at the first failure, of fn too. */
enum gt_code gt_file_each(int fd, const char *path, uint64_t bytes,
                          enum gt_code (*fn)(void *user, const void *data, size_t n, struct gt_err *err), void *user, struct gt_err *err);

/* ---- whole files ---------------------------------------------------------------------------------------------------------- */
/* A regular file of at most cap bytes. *data: malloc'ed, with a NUL behind the n bytes; the caller frees. */
enum gt_code gt_file_read(const char *path, size_t cap, char **data, size_t *n, struct gt_err *err);
/* Atomic: temporary beside it, fsync, rename, fsync of the folder. After a failure the old file stands as it was. */
enum gt_code gt_file_replace(const char *path, unsigned mode, const void *data, size_t n, struct gt_err *err);
/* rename, then fsync of to's folder. */
enum gt_code gt_file_rename(const char *from, const char *to, struct gt_err *err);
/* A symlink, made beside path and renamed over it. Does not fsync. */
enum gt_code gt_link_replace(const char *target, const char *path, struct gt_err *err);

/* ---- folders -------------------------------------------------------------------------------------------------------------- */
/* With its parents, mode 0700; fine if it is there. Each new one is made durable in its parent. */
enum gt_code gt_dir_make(const char *path, struct gt_err *err);
/* Makes the entries of a folder durable. A file system that cannot fsync a folder (EINVAL) is taken as one that need not. */
enum gt_code gt_dir_sync(const char *path, struct gt_err *err);
/* A file, a symlink (itself) or a folder with all in it; never follows a symlink, never leaves the file system's tree. Fine if it is
 * not there. Goes on after a failure and tells the first. */
enum gt_code gt_tree_remove(const char *path, struct gt_err *err);

/* ---- lock ----------------------------------------------------------------------------------------------------------------- */
/* flock on the file, which is created and receives our pid. *held: another process has it; *holder is then its pid or 0 if unknown,
 * and *fd is -1. The lock goes with the descriptor, which children that exec do not inherit. */
enum gt_code gt_lock_take(const char *path, int *fd, bool *held, long *holder, struct gt_err *err);
void gt_lock_drop(int fd); /* -1 is fine */

#endif
