/* Creates directories with their parents, and removes trees without following symbolic links. */
#include "base/arena.h"
#include "base/fileio.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRIES 5      /* number of retries if another process removes a parent while a directory is created in it */
#define DEPTH_MAX 64 /* maximum depth of a tree to remove; gtrain's trees have two levels */

/* Creates one directory, and syncs its parent. Sets *made to true if the directory did not exist. After a failure, *why is the errno of
 * mkdir, or ENOENT if mkdir found an existing directory that was removed before this function could check it. */
static enum gt_code make_directory(const char *path, bool *made, int *why, struct gt_err *err)
{
	char parent[GT_PATH_SIZE];
	struct stat st;
	if (!mkdir(path, 0777)) {
		*made = true;
		GT_TRY(gt_path_parent(parent, path, err));
		return gt_dir_sync(parent, err);
	}
	int e = errno;
	if (!stat(path, &st)) { /* the path exists: mkdir has failed with EEXIST, EROFS or EACCES */
		if (S_ISDIR(st.st_mode))
			return GT_OK;
		e = ENOTDIR;
	}
	*why = e == EEXIST ? ENOENT : e;
	return gt_fail_errno(err, GT_ECANTCREAT, e, "%s: cannot create directory", path);
}

/* Creates the directories of a path of n bytes. Lowers *existed to the length of the path before the first directory that did not exist. */
static enum gt_code make_directories(const char *path, size_t n, size_t *existed, int *why, struct gt_err *err)
{
	char buf[GT_PATH_SIZE];
	size_t before = 0;
	memcpy(buf, path, n + 1);
	for (size_t i = 1; i <= n; i++) {
		bool made = false;
		if (i < n && (buf[i] != '/' || buf[i - 1] == '/'))
			continue;
		buf[i] = 0;
		enum gt_code code = make_directory(buf, &made, why, err);
		if (made && before < *existed)
			*existed = before;
		if (code)
			return code;
		before = i;
		buf[i] = path[i];
	}
	return GT_OK;
}

enum gt_code gt_dir_make(const char *path, size_t *existed, struct gt_err *err)
{
	size_t n = strlen(path), part;
	existed = existed ? existed : &part;
	*existed = n;
	if (!n || n >= GT_PATH_SIZE)
		return gt_fail(err, GT_ECANTCREAT, "%.200s: %s", path, n ? "path is too long" : "empty path");
	for (int tries = 0;; tries++) {
		int why = 0;
		enum gt_code code = make_directories(path, n, existed, &why, err);
		if (!code || why != ENOENT || tries == TRIES) /* ENOENT: another process may have removed a parent by gt_dir_unmake */
			return code;
	}
}

void gt_dir_unmake(const char *path, size_t existed)
{
	char buf[GT_PATH_SIZE];
	size_t n = strlen(path);
	if (n >= sizeof buf)
		return;
	memcpy(buf, path, n + 1);
	for (; n > existed; n--) {
		if (buf[n] && buf[n] != '/')
			continue;
		buf[n] = 0;
		rmdir(buf); /* rmdir does not remove a directory that is not empty */
	}
}

/* Removes `name` in the open directory `at`. path: for messages. */
static enum gt_code remove_at(int at, const char *name, const char *path, int depth, struct gt_err *err)
{
	/* Most entries are files, so try unlink first. EISDIR (Linux) or EPERM (POSIX): the entry is a directory. */
	if (!unlinkat(at, name, 0) || errno == ENOENT)
		return GT_OK;
	if (errno != EISDIR && errno != EPERM)
		return gt_fail_errno(err, GT_EIO, errno, "%s: cannot remove", path);
	int fd = depth < DEPTH_MAX ? openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : (errno = ELOOP, -1);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	if (!dir) {
		int e = errno;
		if (fd >= 0)
			close(fd);
		if (e == ENOMEM)
			return gt_fail_memory(err, 0);
		return gt_fail_errno(err, GT_EIO, e, "%s: cannot remove", path);
	}
	enum gt_code first = GT_OK;
	for (;;) {
		errno = 0;
		struct dirent *e = readdir(dir);
		if (!e) {
			if (errno && !first)
				first = gt_fail_errno(err, GT_EIO, errno, "%s: cannot list", path);
			break;
		}
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		char sub[GT_PATH_SIZE];
		snprintf(sub, sizeof sub, "%.3000s/%s", path, e->d_name);
		enum gt_code code = remove_at(dirfd(dir), e->d_name, sub, depth + 1, first ? NULL : err);
		if (!first)
			first = code;
	}
	closedir(dir);
	if (!first && unlinkat(at, name, AT_REMOVEDIR) && errno != ENOENT)
		first = gt_fail_errno(err, GT_EIO, errno, "%s: cannot remove", path);
	return first;
}

enum gt_code gt_tree_remove(const char *path, struct gt_err *err)
{
	return remove_at(AT_FDCWD, path, path, 0, err);
}
