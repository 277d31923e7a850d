#include "base/descriptors.h"
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static int count_open(void)
{
	int n = 0;
	DIR *d = opendir("/proc/self/fd");
	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n > 3 ? n - 3 : 3; /* n counts the entries of /proc/self/fd: also ".", ".." and the descriptor of this directory itself */
}

enum gt_code gt_descriptors_reserve(int need, int want, const char *who, struct gt_err *err)
{
	struct rlimit l;
	rlim_t open = (rlim_t)count_open();
	if (getrlimit(RLIMIT_NOFILE, &l))
		return gt_fail_errno(err, GT_EFAIL, errno, "cannot read the limit of open files");
	rlim_t least = open + (rlim_t)need, most = open + (rlim_t)(want > need ? want : need);
	if (l.rlim_cur == RLIM_INFINITY || l.rlim_cur >= most)
		return GT_OK;
	if (l.rlim_max != RLIM_INFINITY && l.rlim_max < least)
		return gt_fail(err, GT_EFAIL,
		               "%s: expected a hard limit of at least %llu open files, got %llu: raise it (ulimit -Hn), or start fewer ranks",
		               who, (unsigned long long)least, (unsigned long long)l.rlim_max);
	l.rlim_cur = l.rlim_max == RLIM_INFINITY || l.rlim_max >= most ? most : l.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &l))
		return gt_fail_errno(err, GT_EFAIL, errno, "%s: cannot raise the limit of open files to %llu", who, (unsigned long long)l.rlim_cur);
	return GT_OK;
}

void gt_fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

int gt_poll(struct pollfd *p, int n, double wait_s)
{
	struct pollfd used[GT_POLL_MAX];
	int at[GT_POLL_MAX], k = 0;
	if (n > GT_POLL_MAX) {
		errno = EINVAL;
		return -1;
	}
	for (int i = 0; i < n; i++) {
		p[i].revents = 0;
		if (p[i].fd < 0)
			continue;
		at[k] = i;
		used[k++] = p[i];
	}
	int rc = poll(used, (nfds_t)k, wait_s > 0 ? (int)((wait_s < 1e6 ? wait_s : 1e6) * 1e3) + 1 : 0);
	if (rc < 0)
		return errno == EINTR || errno == EAGAIN ? 0 : -1;
	for (int i = 0; i < k; i++)
		p[at[i]].revents = used[i].revents;
	return rc;
}

bool gt_descriptors_exhausted(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

enum gt_code gt_fail_shared(struct gt_err *err, size_t bytes, int error)
{
	if (error == EFBIG)
		return gt_fail(err, GT_EIO, "cannot get shared memory of %zu bytes: %s: the limit on file sizes (ulimit -f) also applies to shared "
		               "memory; raise it", bytes, strerror(error));
	return gt_fail_errno(err, GT_EFAIL, error, "cannot get shared memory of %zu bytes", bytes);
}
