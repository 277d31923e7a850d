#include "base/fileio.h"
#include "base/arena.h"
#include "base/descriptors.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOCK_TRIES 1000 /* milliseconds for which a file that other processes have locked only with LOCK_SH is tried again */

enum gt_code gt_path_join(char *buf, const char *dir, const char *name, struct gt_err *err)
{
	size_t n = strlen(dir);
	const char *slash = n && dir[n - 1] == '/' ? "" : "/";
	if ((size_t)snprintf(buf, GT_PATH_SIZE, "%s%s%s", dir, slash, name) >= GT_PATH_SIZE)
		return gt_fail(err, GT_ECANTCREAT, "%.200s…/%.200s: path is too long", dir, name);
	return GT_OK;
}

enum gt_code gt_path_parent(char *buf, const char *path, struct gt_err *err)
{
	size_t n = strlen(path);
	while (n > 1 && path[n - 1] == '/')
		n--;
	while (n && path[n - 1] != '/')
		n--;
	while (n > 1 && path[n - 1] == '/')
		n--;
	if (n >= GT_PATH_SIZE)
		return gt_fail(err, GT_ECANTCREAT, "%.200s…: path is too long", path);
	if (!n)
		strcpy(buf, ".");
	else
		snprintf(buf, GT_PATH_SIZE, "%.*s", (int)n, path);
	return GT_OK;
}

void gt_nonce(char buf[GT_NONCE_SIZE])
{
	uint64_t v;
	if (getrandom(&v, sizeof v, GRND_NONBLOCK) != sizeof v) { /* may fail during boot; a unique number suffices */
		struct timespec t;
		clock_gettime(CLOCK_REALTIME, &t);
		v = (uint64_t)t.tv_sec << 30 ^ (uint64_t)t.tv_nsec ^ (uint64_t)getpid() << 44;
	}
	snprintf(buf, GT_NONCE_SIZE, "%016llx", (unsigned long long)v);
}

static int open_retrying(const char *path, int flags, unsigned mode)
{
	for (int tries = 0;; tries++) {
		int fd = open(path, flags | O_CLOEXEC, mode);
		if (fd >= 0 || errno != EINTR || tries == GT_EINTR_MAX)
			return fd;
	}
}

/* Creates a file for writing, which must not exist. shown: the file's name in errors. */
static enum gt_code create_new_file(const char *path, const char *shown, unsigned mode, int *fd, struct gt_err *err)
{
	*fd = open_retrying(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
	if (*fd < 0)
		return gt_fail_errno(err, GT_ECANTCREAT, errno, "%s: cannot create", shown);
	return GT_OK;
}

enum gt_code gt_file_create(const char *path, unsigned mode, int *fd, struct gt_err *err)
{
	return create_new_file(path, path, mode, fd, err);
}

enum gt_code gt_file_write(int fd, const char *path, const void *data, size_t n, struct gt_err *err)
{
	const char *p = data;
	int interrupted = 0;
	while (n) {
		ssize_t k = write(fd, p, n);
		if (k > 0) {
			p += k;
			n -= (size_t)k;
			interrupted = 0;
		} else if (k == 0) {
			return gt_fail(err, GT_EIO, "%s: cannot write: the system accepted no bytes", path);
		} else if (errno != EINTR || ++interrupted == GT_EINTR_MAX) {
			return gt_fail_errno(err, GT_EIO, errno, "%s: cannot write", path);
		}
	}
	return GT_OK;
}

enum gt_code gt_file_sync_close(int fd, const char *path, struct gt_err *err)
{
	if (fsync(fd)) {
		int e = errno;
		close(fd);
		return gt_fail_errno(err, GT_EIO, e, "%s: cannot fsync", path);
	}
	if (close(fd))
		return gt_fail_errno(err, GT_EIO, errno, "%s: cannot close", path);
	return GT_OK;
}

enum gt_code gt_file_open(const char *path, int *fd, uint64_t *bytes, struct gt_err *err)
{
	struct stat st;
	*fd = open_retrying(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (*fd < 0) {
		int e = errno;
		enum gt_code why = e == ENOENT || e == ENOTDIR ? GT_ENOINPUT : e == ELOOP ? GT_EDATA : e == EIO ? GT_EIO : GT_EFAIL;
		return gt_fail_errno(err, why, e, "%s: cannot open", path);
	}
	enum gt_code code = GT_OK;
	if (fstat(*fd, &st))
		code = gt_fail_errno(err, GT_EIO, errno, "%s: cannot stat", path);
	else if (!S_ISREG(st.st_mode))
		code = gt_fail(err, GT_EDATA, "%s: expected a regular file", path);
	if (code)
		gt_fd_close(fd);
	else
		*bytes = (uint64_t)st.st_size;
	return code;
}

static const char *kind_of_file(mode_t mode)
{
	return S_ISLNK(mode) ? "symbolic link" : S_ISFIFO(mode) ? "FIFO" : S_ISDIR(mode) ? "directory" : "special file";
}

enum gt_code gt_file_open_own(const char *path, int *fd, uint64_t *bytes, struct gt_err *err)
{
	struct stat st;
	*fd = -1;
	if (lstat(path, &st))
		return errno == ENOENT ? GT_OK : gt_fail_errno(err, GT_EIO, errno, "%s: cannot stat", path);
	if (!S_ISREG(st.st_mode))
		return gt_fail(err, GT_ECANTCREAT, "%s: expected a regular file, got a %s; remove or rename it", path, kind_of_file(st.st_mode));
	*fd = open_retrying(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW, 0);
	if (*fd < 0 || fstat(*fd, &st) || !S_ISREG(st.st_mode)) { /* the file cannot be read, or was replaced after the lstat above */
		enum gt_code code =
		    gt_fail(err, GT_EFAIL, "%s: cannot open: %s", path, *fd < 0 ? strerror(errno) : "it is no longer a regular file");
		gt_fd_close(fd);
		return code;
	}
	*bytes = (uint64_t)st.st_size;
	return GT_OK;
}

enum gt_code gt_file_pread(int fd, const char *path, void *buf, size_t n, uint64_t offset, struct gt_err *err)
{
	char *p = buf;
	int interrupted = 0;
	while (n) {
		ssize_t k = pread(fd, p, n, (off_t)offset);
		if (k > 0) {
			p += k;
			n -= (size_t)k;
			offset += (uint64_t)k;
			interrupted = 0;
		} else if (k == 0) {
			return gt_fail(err, GT_EDATA, "%s: the file ends too early: expected %zu more bytes at offset %llu",
			               path, n, (unsigned long long)offset);
		} else if (errno != EINTR || ++interrupted == GT_EINTR_MAX) {
			return gt_fail_errno(err, GT_EIO, errno, "%s: cannot read", path);
		}
	}
	return GT_OK;
}

enum gt_code gt_file_each(int fd, const char *path, uint64_t bytes,
                          enum gt_code (*fn)(void *user, const void *data, size_t n, struct gt_err *err), void *user, struct gt_err *err)
{
	const size_t piece = 1 << 20;
	char *buf = malloc(piece);
	if (!buf)
		return gt_fail_memory(err, piece);
	enum gt_code code = GT_OK;
	for (uint64_t at = 0; at < bytes && !code; at += piece) {
		size_t n = bytes - at < piece ? (size_t)(bytes - at) : piece;
		code = gt_file_pread(fd, path, buf, n, at, err);
		if (!code)
			code = fn(user, buf, n, err);
	}
	free(buf);
	return code;
}

enum gt_code gt_file_read(const char *path, size_t cap, char **data, size_t *n, struct gt_err *err)
{
	int fd;
	uint64_t bytes;
	GT_TRY(gt_file_open(path, &fd, &bytes, err));
	enum gt_code code = GT_OK;
	char *p = NULL;
	if (bytes > cap)
		code = gt_fail(err, GT_EDATA, "%s: the file has %llu bytes, but at most %zu are supported", path, (unsigned long long)bytes, cap);
	else if (!(p = malloc((size_t)bytes + 1)))
		code = gt_fail_memory(err, (size_t)bytes + 1);
	else
		code = gt_file_pread(fd, path, p, (size_t)bytes, 0, err);
	close(fd);
	if (code) {
		free(p);
		return code;
	}
	p[bytes] = 0;
	*data = p;
	*n = (size_t)bytes;
	return GT_OK;
}

enum gt_code gt_dir_sync(const char *path, struct gt_err *err)
{
	int fd = open_retrying(path, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return gt_fail_errno(err, GT_EIO, errno, "%s: cannot open", path);
	int e = fsync(fd) ? errno : 0;
	close(fd); /* nothing was written through fd, so a failed close loses no data */
	if (e && e != EINVAL)
		return gt_fail_errno(err, GT_EIO, e, "%s: cannot fsync", path);
	return GT_OK;
}

enum gt_code gt_file_rename(const char *from, const char *to, struct gt_err *err)
{
	char parent[GT_PATH_SIZE];
	GT_TRY(gt_path_parent(parent, to, err));
	if (rename(from, to))
		return gt_fail_errno(err, GT_EIO, errno, "%s: cannot rename to %s", from, to);
	return gt_dir_sync(parent, err);
}

/* Fails if a rename to path would replace a device such as /dev/null or a link such as /dev/stdout: a run as root would replace it for all
 * programs of the machine. */
static enum gt_code check_replaceable(const char *path, struct gt_err *err)
{
	static const char descriptors[] = "/proc/";
	char target[sizeof descriptors - 1];
	struct stat st;
	if (!stat(path, &st) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return gt_fail(err, GT_ECANTCREAT, "%s: expected a regular file, got a %s", path, kind_of_file(st.st_mode));
	if (readlink(path, target, sizeof target) == sizeof target && !memcmp(target, descriptors, sizeof target))
		return gt_fail(err, GT_ECANTCREAT, "%s: expected a regular file, got a symbolic link to an open file", path);
	return GT_OK;
}

enum gt_code gt_file_temporary(char *buf, const char *path, struct gt_err *err)
{
	char nonce[GT_NONCE_SIZE];
	GT_TRY(check_replaceable(path, err));
	gt_nonce(nonce);
	if ((size_t)snprintf(buf, GT_PATH_SIZE, "%s.tmp-%s", path, nonce) >= GT_PATH_SIZE)
		return gt_fail(err, GT_ECANTCREAT, "%.200s…: path is too long", path);
	return GT_OK;
}

enum gt_code gt_file_create_temporary(char *buf, const char *path, unsigned mode, int *fd, struct gt_err *err)
{
	GT_TRY(gt_file_temporary(buf, path, err));
	return create_new_file(buf, path, mode, fd, err);
}

enum gt_code gt_file_commit(enum gt_code code, int fd, const char *tmp, const char *path, struct gt_err *err)
{
	if (code)
		close(fd);
	else
		code = gt_file_sync_close(fd, tmp, err);
	if (!code)
		code = gt_file_rename(tmp, path, err);
	if (code)
		unlink(tmp); /* if only the sync of the directory failed, tmp was renamed, and this call does nothing */
	return code;
}

enum gt_code gt_file_replace(const char *path, unsigned mode, const void *data, size_t n, struct gt_err *err)
{
	char tmp[GT_PATH_SIZE];
	int fd;
	GT_TRY(gt_file_create_temporary(tmp, path, mode, &fd, err));
	return gt_file_commit(gt_file_write(fd, tmp, data, n, err), fd, tmp, path, err);
}

enum gt_code gt_link_replace(const char *target, const char *path, struct gt_err *err)
{
	char tmp[GT_PATH_SIZE];
	GT_TRY(gt_file_temporary(tmp, path, err));
	if (symlink(target, tmp))
		return gt_fail_errno(err, GT_ECANTCREAT, errno, "%s: cannot make symlink", tmp);
	if (rename(tmp, path)) {
		int e = errno;
		unlink(tmp);
		return gt_fail_errno(err, GT_EIO, e, "%s: cannot replace", path);
	}
	return GT_OK;
}

/* Locks the file exclusively. A process that only asks whether the lock is held has a shared lock for a moment, which does not mean that
 * another process uses the lock: then this function tries again. Returns an errno value; 0: the file is locked. */
static int lock_exclusively(int fd)
{
	for (int tries = 0;; tries++) {
		if (!flock(fd, LOCK_EX | LOCK_NB))
			return 0;
		int e = errno;
		if (e != EWOULDBLOCK || tries == LOCK_TRIES || flock(fd, LOCK_SH | LOCK_NB))
			return e;
		flock(fd, LOCK_UN);
		usleep(1000);
	}
}

enum gt_code gt_lock_take(const char *path, int *fd, bool *held, long *holder, struct gt_err *err)
{
	char text[32];
	struct stat st;
	*held = false;
	*holder = 0;
	*fd = open_retrying(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0660); /* only users who may write the file can lock it */
	if (*fd < 0)
		return gt_fail_errno(err, GT_ECANTCREAT, errno, "%s: cannot create", path);
	int e = lock_exclusively(*fd);
	if (e) {
		if (e == EWOULDBLOCK) {
			ssize_t n = pread(*fd, text, sizeof text - 1, 0);
			text[n > 0 ? n : 0] = 0;
			*held = true;
			*holder = strtol(text, NULL, 10);
		}
		gt_fd_close(fd);
		return e == EWOULDBLOCK ? GT_OK : gt_fail_errno(err, GT_ECANTCREAT, e, "%s: cannot lock", path);
	}
	if (!fstat(*fd, &st) && !st.st_nlink) { /* the process that held the lock has removed the file since it was opened here */
		close(*fd);
		return gt_lock_take(path, fd, held, holder, err);
	}
	/* The process id in the file is only for *holder. The kernel holds the lock, so a lock cannot become stale. */
	int n = snprintf(text, sizeof text, "%ld\n", (long)getpid());
	enum gt_code code =
	    ftruncate(*fd, 0) ? gt_fail_errno(err, GT_EIO, errno, "%s: cannot write", path) : gt_file_write(*fd, path, text, (size_t)n, err);
	if (code == GT_OK)
		return GT_OK;
	if (!fstat(*fd, &st) && !st.st_size) /* remove the empty file; no other process uses it, because this process has the lock */
		unlink(path);
	gt_fd_close(fd);
	return gt_code_replace(code, GT_EIO, GT_ECANTCREAT, err);
}

void gt_lock_drop(int fd)
{
	gt_fd_close(&fd);
}
