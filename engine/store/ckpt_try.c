/* gt_ckpt_dir_check: makes the checks of gt_ckpt_dir_open without writing to the disk. */
#include "base/fileio.h"
#include "store/ckpt.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Returns 0 if a file or directory can be created in the existing directory `path`, else the errno value that says why not. */
static int get_write_error(const char *path)
{
	struct statfs fs;
	if (faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS))
		return errno;
	/* proc and sysfs accept no new files, although access(2) as root may report write permission. */
	if (!statfs(path, &fs) && (fs.f_type == PROC_SUPER_MAGIC || fs.f_type == SYSFS_MAGIC))
		return ENOENT;
	return 0;
}

/* Checks that the nearest existing parent directory of a path allows a new directory. */
static enum gt_code check_parent(const char *path, struct gt_err *err)
{
	char at[GT_PATH_SIZE], parent[GT_PATH_SIZE];
	struct stat st;
	int why;
	strcpy(at, path);
	for (;;) {
		GT_TRY(gt_path_parent(parent, at, err));
		if (!stat(parent, &st) || errno != ENOENT || !strcmp(parent, at))
			break;
		strcpy(at, parent);
	}
	if (stat(parent, &st))
		why = errno;
	else
		why = S_ISDIR(st.st_mode) ? get_write_error(parent) : ENOTDIR;
	return why ? gt_fail_errno(err, GT_ECANTCREAT, why, "%s: cannot create directory", at) : GT_OK;
}

/* Checks whether another process holds the lock. It requests a shared lock and releases it at once, which does not change the file. */
static enum gt_code check_lock(const char *dir, struct gt_err *err)
{
	char lock[GT_PATH_SIZE], text[32];
	GT_TRY(gt_path_join(lock, dir, ".lock", err));
	int fd = open(lock, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? GT_OK : gt_fail_errno(err, GT_ECANTCREAT, errno, "%s: cannot create", lock);
	int why = flock(fd, LOCK_SH | LOCK_NB) ? errno : 0;
	ssize_t n = pread(fd, text, sizeof text - 1, 0);
	text[n > 0 ? n : 0] = 0;
	long holder = strtol(text, NULL, 10);
	close(fd);
	if (why == EWOULDBLOCK && holder > 0)
		return gt_fail(err, GT_ECANTCREAT, "another run (pid %ld) uses %s", holder, dir);
	if (why == EWOULDBLOCK)
		return gt_fail(err, GT_ECANTCREAT, "another run uses %s", dir);
	return why ? gt_fail_errno(err, GT_ECANTCREAT, why, "%s: cannot lock", lock) : GT_OK;
}

enum gt_code gt_ckpt_dir_check(const char *path, struct gt_err *err)
{
	struct stat st;
	if (strlen(path) >= GT_PATH_SIZE - 128)
		return gt_fail(err, GT_ECANTCREAT, "%.200s…: path is too long", path);
	if (stat(path, &st)) {
		if (errno == ENOENT && !lstat(path, &st))
			return gt_fail_errno(err, GT_ECANTCREAT, EEXIST, "%s: cannot create directory", path);
		return errno == ENOENT || errno == ENOTDIR ? check_parent(path, err)
		                                           : gt_fail_errno(err, GT_ECANTCREAT, errno, "%s: cannot create directory", path);
	}
	if (!S_ISDIR(st.st_mode))
		return gt_fail_errno(err, GT_ECANTCREAT, ENOTDIR, "%s: cannot create directory", path);
	GT_TRY(check_lock(path, err));
	int why = get_write_error(path);
	return why ? gt_fail_errno(err, GT_ECANTCREAT, why, "%s: cannot write in this directory", path) : GT_OK;
}
