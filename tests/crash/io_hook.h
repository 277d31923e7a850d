/* The calls that change a file system, taken over in this program: a definition in the executable stands before libc's, for libgtrain.a
 * as for a preloaded shim, without a process per case. fsync is not passed on: what a crash leaves is computed (test_powerloss) or of no
 * matter (test_iosweep), and the tests run from memory speed on any disk.
 * Include in one file of a program only. */
#ifndef GT_TESTS_IO_HOOK_H
#define GT_TESTS_IO_HOOK_H

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* X(id, name of the call) */
#define IO_OPS(X)          \
	X(IO_CREATE, "open")      \
	X(IO_WRITE, "write")      \
	X(IO_FSYNC, "fsync")      \
	X(IO_CLOSE, "close")      \
	X(IO_MKDIR, "mkdir")      \
	X(IO_RENAME, "rename")    \
	X(IO_EXCHANGE, "renameat2") \
	X(IO_SYMLINK, "symlink")  \
	X(IO_UNLINK, "unlink")    \
	X(IO_RMDIR, "rmdir")

enum io_op {
#define X(id, name) id,
	IO_OPS(X)
#undef X
	IO_OP_COUNT
};

struct io_call {
	enum io_op op;
	const char *path; /* of the descriptor, if the call takes one */
	const char *other; /* rename: the new name; symlink: the target */
	const void *data;
	size_t n; /* the hook may make it smaller: a short write */
};

/* Before the call; returns the errno it shall fail with, 0 to let it happen. A failed close closes, as Linux does. */
static int (*io_before)(struct io_call *c);
/* After a call that succeeded. */
static void (*io_after)(const struct io_call *c);

static bool io_fails(struct io_call *c)
{
	int e = io_before ? io_before(c) : 0;
	errno = e ? e : errno;
	return e != 0;
}

static long io_done(const struct io_call *c, long r)
{
	int e = errno;
	if (r >= 0 && io_after)
		io_after(c);
	errno = e;
	return r;
}

static const char *io_path_of(int fd, char *buf, size_t size)
{
	char link[64];
	int e = errno;
	if (!io_before && !io_after)
		return "";
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	long n = syscall(SYS_readlinkat, AT_FDCWD, link, buf, size - 1);
	buf[n > 0 ? n : 0] = 0;
	errno = e;
	return buf;
}

static const char *io_path_at(int fd, const char *name, char *buf, size_t size)
{
	if (fd == AT_FDCWD || name[0] == '/' || (!io_before && !io_after))
		return name;
	io_path_of(fd, buf, size);
	size_t n = strlen(buf);
	snprintf(buf + n, size - n, "/%s", name);
	return buf;
}

int open(const char *path, int flags, ...)
{
	va_list ap;
	va_start(ap, flags);
	unsigned mode = flags & O_CREAT ? va_arg(ap, unsigned) : 0;
	va_end(ap);
	struct io_call c = {.op = IO_CREATE, .path = path};
	if (!(flags & O_CREAT))
		return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
	if (io_fails(&c))
		return -1;
	return (int)io_done(&c, syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

ssize_t write(int fd, const void *data, size_t n)
{
	char buf[4096];
	struct io_call c = {.op = IO_WRITE, .data = data, .n = n};
	if (fd <= 2) /* the test's own words */
		return syscall(SYS_write, fd, data, n);
	c.path = io_path_of(fd, buf, sizeof buf);
	if (io_fails(&c))
		return -1;
	return io_done(&c, syscall(SYS_write, fd, data, c.n));
}

int fsync(int fd)
{
	char buf[4096];
	struct io_call c = {.op = IO_FSYNC};
	c.path = io_path_of(fd, buf, sizeof buf);
	if (io_fails(&c))
		return -1;
	return (int)io_done(&c, 0);
}

int close(int fd)
{
	char buf[4096];
	struct io_call c = {.op = IO_CLOSE};
	c.path = io_path_of(fd, buf, sizeof buf);
	bool fails = io_fails(&c);
	int e = errno;
	long r = syscall(SYS_close, fd);
	errno = fails ? e : errno;
	return fails ? -1 : (int)io_done(&c, r);
}

int mkdir(const char *path, mode_t mode)
{
	struct io_call c = {.op = IO_MKDIR, .path = path};
	if (io_fails(&c))
		return -1;
	return (int)io_done(&c, syscall(SYS_mkdirat, AT_FDCWD, path, mode));
}

int rename(const char *from, const char *to)
{
	struct io_call c = {.op = IO_RENAME, .path = from, .other = to};
	if (io_fails(&c))
		return -1;
	return (int)io_done(&c, syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

int renameat2(int a, const char *from, int b, const char *to, unsigned flags)
{
	struct io_call c = {.op = IO_EXCHANGE, .path = from, .other = to};
	if (io_fails(&c))
		return -1;
	return (int)io_done(&c, syscall(SYS_renameat2, a, from, b, to, flags));
}

int symlink(const char *target, const char *path)
{
	struct io_call c = {.op = IO_SYMLINK, .path = path, .other = target};
	if (io_fails(&c))
		return -1;
	return (int)io_done(&c, syscall(SYS_symlinkat, target, AT_FDCWD, path));
}

int unlinkat(int at, const char *name, int flags)
{
	char buf[8192];
	struct io_call c = {.op = flags & AT_REMOVEDIR ? IO_RMDIR : IO_UNLINK, .path = io_path_at(at, name, buf, sizeof buf)};
	if (io_fails(&c))
		return -1;
	return (int)io_done(&c, syscall(SYS_unlinkat, at, name, flags));
}

int unlink(const char *path)
{
	return unlinkat(AT_FDCWD, path, 0);
}

int rmdir(const char *path)
{
	return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

static inline const char *io_name(enum io_op op)
{
	static const char *const names[] = {
#define X(id, name) name,
		IO_OPS(X)
#undef X
	};
	return names[op];
}

#endif
