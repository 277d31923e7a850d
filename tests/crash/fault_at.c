/* Preloaded into a program (test_run_sweep.sh): its Nth call that changes something under a folder is the one where it is killed, or that
 * fails. FAULT_DIR    the folder, absolute FAULT_AT     N, from 1 on; 0: nothing happens, the calls are only counted FAULT_KIND   kill,
 * ENOSPC, EIO, EINTR, or short: a write takes half of its bytes (N then counts writes of two bytes and more) FAULT_EVER   set: every call
 * from the Nth on FAULT_LOG    receives a line: the number of calls, and the one that was hit */
#include "io_hook.h"
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/uio.h>

static struct {
	const char *dir, *log;
	int at, kind, count; /* kind: errno; 0: short; -1: kill */
	bool ever;
	char hit[512];
} fault;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void tell(void)
{
	char line[700];
	int fd = (int)syscall(SYS_openat, AT_FDCWD, fault.log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	int n = snprintf(line, sizeof line, "%d %s\n", fault.count, fault.hit);
	if (fd >= 0 && syscall(SYS_write, fd, line, (size_t)n) == n)
		syscall(SYS_close, fd);
}

static int strike(struct io_call *c)
{
	int n = ++fault.count;
	if (!fault.at || n < fault.at || (n > fault.at && !fault.ever))
		return 0;
	if (n == fault.at)
		snprintf(fault.hit, sizeof fault.hit, "%s %.400s", io_name(c->op), c->path);
	if (fault.kind < 0) {
		tell();
		kill(getpid(), SIGKILL);
		for (;;)
			pause();
	}
	if (!fault.kind)
		c->n /= 2;
	return fault.kind;
}

static int before(struct io_call *c)
{
	size_t len = strlen(fault.dir);
	if (strncmp(c->path, fault.dir, len) != 0 || (c->path[len] && c->path[len] != '/') || c->op == IO_CLOSE)
		return 0;
	if (!fault.kind && (c->op != IO_WRITE || c->n < 2))
		return 0;
	pthread_mutex_lock(&lock);
	int e = strike(c);
	pthread_mutex_unlock(&lock);
	return e;
}

ssize_t writev(int fd, const struct iovec *v, int n)
{
	char buf[4096];
	struct iovec part[8];
	struct io_call c = {.op = IO_WRITE};
	int k = 0;
	if (fd <= 2 || n > 8)
		return syscall(SYS_writev, fd, v, n);
	for (int i = 0; i < n; i++)
		c.n += v[i].iov_len;
	c.path = io_path_of(fd, buf, sizeof buf);
	if (io_fails(&c))
		return -1;
	for (size_t left = c.n; k < n && left; left -= part[k].iov_len, k++) {
		part[k] = v[k];
		if (part[k].iov_len > left)
			part[k].iov_len = left;
	}
	return syscall(SYS_writev, fd, part, k);
}

ssize_t pwrite(int fd, const void *data, size_t n, off_t at)
{
	char buf[4096];
	struct io_call c = {.op = IO_WRITE, .n = n};
	c.path = io_path_of(fd, buf, sizeof buf);
	if (io_fails(&c))
		return -1;
	return syscall(SYS_pwrite64, fd, data, c.n, at);
}

int ftruncate(int fd, off_t length)
{
	char buf[4096];
	struct io_call c = {.op = IO_WRITE, .n = 1};
	c.path = io_path_of(fd, buf, sizeof buf);
	return io_fails(&c) ? -1 : (int)syscall(SYS_ftruncate, fd, length);
}

int fdatasync(int fd)
{
	return fsync(fd);
}

int renameat(int a, const char *from, int b, const char *to)
{
	return renameat2(a, from, b, to, 0);
}

int openat(int at, const char *name, int flags, ...)
{
	va_list ap;
	char buf[8192];
	va_start(ap, flags);
	unsigned mode = flags & O_CREAT ? va_arg(ap, unsigned) : 0;
	va_end(ap);
	struct io_call c = {.op = IO_CREATE, .path = io_path_at(at, name, buf, sizeof buf)};
	if ((flags & O_CREAT) && io_fails(&c))
		return -1;
	return (int)syscall(SYS_openat, at, name, flags, mode);
}

__attribute__((constructor)) static void begin(void)
{
	const char *dir = getenv("FAULT_DIR"), *at = getenv("FAULT_AT"), *kind = getenv("FAULT_KIND");
	fault.log = getenv("FAULT_LOG");
	fault.ever = getenv("FAULT_EVER") != NULL;
	if (!dir || !at || !kind || !fault.log)
		return;
	fault.at = atoi(at);
	fault.kind = !strcmp(kind, "kill")     ? -1
	             : !strcmp(kind, "ENOSPC") ? ENOSPC
	             : !strcmp(kind, "EIO")    ? EIO
	             : !strcmp(kind, "EINTR")  ? EINTR
	                                       : 0;
	fault.dir = dir;
	io_before = before;
}

__attribute__((destructor)) static void end(void)
{
	if (io_before && fault.count)
		tell();
}
