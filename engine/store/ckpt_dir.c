/* The run directory of a process that writes checkpoints: its lock, the removal of files that interrupted saves left behind, and
 * retention. */
#include "base/fileio.h"
#include "store/ckpt_scan.h"
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool has_step(const struct gt_ckpt_entry *e, int n, int64_t step)
{
	for (int i = 0; i < n; i++)
		if (e[i].kind == GT_CKPT_STEP && e[i].step == step)
			return true;
	return false;
}

/* Restores the name step-N of a checkpoint that a run displaced (step-N.prev-...) before it was killed. Marks displaced checkpoints that
 * were replaced as left-overs. */
static enum gt_code restore_displaced(const char *dir, struct gt_ckpt_entry *e, int n, struct gt_err *err)
{
	char from[GT_PATH_SIZE], to[GT_PATH_SIZE], name[GT_CKPT_NAME];
	for (int i = 0; i < n; i++) {
		if (e[i].kind != GT_CKPT_PREV)
			continue;
		if (has_step(e, n, e[i].step)) {
			e[i].kind = GT_CKPT_LEFTOVER;
			continue;
		}
		gt_ckpt_name_print(name, e[i].step);
		GT_TRY(gt_path_join(from, dir, e[i].name, err));
		GT_TRY(gt_path_join(to, dir, name, err));
		GT_TRY(gt_file_rename(from, to, err));
		e[i].kind = GT_CKPT_STEP;
		strcpy(e[i].name, name);
	}
	return GT_OK;
}

/* Points the symlinks latest and best to the checkpoints that the newest manifest names. A run that died right after a commit has not moved
 * them yet. */
static enum gt_code repair_links(const char *dir, const struct gt_ckpt_entry *newest, struct gt_err *err)
{
	bool changed = false;
	GT_TRY(gt_ckpt_link_set(dir, "latest", newest->step, &changed, err));
	GT_TRY(gt_ckpt_link_set(dir, "best", newest->has_best ? newest->best_step : -1, &changed, err));
	return changed ? gt_dir_sync(dir, err) : GT_OK;
}

static enum gt_code remove_leftovers(const char *dir, struct gt_err *err)
{
	struct gt_ckpt_entry *e;
	char path[GT_PATH_SIZE];
	int n;
	GT_TRY(gt_ckpt_scan(dir, false, &e, &n, err));
	enum gt_code code = GT_OK;
	for (int i = 0; i < n && !code; i++) {
		/* a new checkpoint has replaced every displaced one (GT_CKPT_PREV) that is left; restore_displaced() has renamed the others back */
		if (e[i].kind != GT_CKPT_LEFTOVER && e[i].kind != GT_CKPT_PREV)
			continue;
		code = gt_path_join(path, dir, e[i].name, err);
		if (!code)
			code = gt_tree_remove(path, err);
	}
	free(e);
	return code;
}

/* Completes the work of a killed run: the names of displaced checkpoints, histories, files next-*, left-overs and links. Sets serial,
 * parent and step of d to those of the newest checkpoint. */
static enum gt_code recover_run_dir(struct gt_ckpt_dir *d, struct gt_err *err)
{
	struct gt_ckpt_entry *e;
	const struct gt_ckpt_entry *newest = NULL;
	int n;
	GT_TRY(gt_ckpt_scan(d->path, true, &e, &n, err));
	enum gt_code code = restore_displaced(d->path, e, n, err);
	for (int i = 0; i < n && !newest; i++)
		if (e[i].kind == GT_CKPT_STEP && e[i].serial)
			newest = &e[i];
	if (newest) {
		d->serial = d->parent = newest->serial;
		d->step = newest->step;
	}
	/* the run may have been killed after it committed the newest checkpoint and before it moved the later ones to the history */
	if (newest && !code)
		code = gt_ckpt_history_move(d->path, newest->serial, newest->parent, INT64_MAX, err);
	if (!code)
		code = gt_ckpt_next_commit(d->path, d->serial, err);
	if (!code)
		code = remove_leftovers(d->path, err);
	if (newest && !code)
		code = repair_links(d->path, newest, err);
	free(e);
	return code;
}

/* Checks that directories can be created in dir, by creating and removing one, as a save does. */
static enum gt_code check_writable(const char *dir, struct gt_err *err)
{
	char path[GT_PATH_SIZE], name[GT_CKPT_NAME] = "step-00000000.tmp-", nonce[GT_NONCE_SIZE];
	gt_nonce(nonce);
	strcat(name, nonce);
	GT_TRY(gt_path_join(path, dir, name, err));
	if (mkdir(path, 0777) || rmdir(path))
		return gt_fail_errno(err, GT_ECANTCREAT, errno, "%s: cannot write in this directory", dir);
	return GT_OK;
}

/* Rejects a run directory inside a checkpoint: the run would change committed data, and its files would be removed with the checkpoint. */
static enum gt_code check_outside_checkpoints(const char *path, struct gt_err *err)
{
	char at[GT_PATH_SIZE], up[GT_PATH_SIZE], real[PATH_MAX];
	struct stat st;
	if (gt_ckpt_is_step_dir(path))
		return gt_fail(err, GT_ECANTCREAT, "%s: expected a run directory, got a directory with the name or the manifest of a checkpoint",
		               path);
	GT_TRY(gt_path_parent(at, path, err));
	while (!realpath(at, real)) {
		if (errno != ENOENT || !strcmp(at, ".") || !strcmp(at, "/"))
			return GT_OK; /* a parent directory does not exist; the caller creates it and reports a failure */
		GT_TRY(gt_path_parent(up, at, err));
		strcpy(at, up);
	}
	for (char *slash; (slash = strrchr(real, '/')) && real[1]; slash[slash == real] = 0) {
		int64_t step;
		char manifest[GT_PATH_SIZE];
		if (gt_ckpt_name_parse(slash + 1, &step) == GT_CKPT_STEP && !gt_path_join(manifest, real, GT_CKPT_MANIFEST, NULL) &&
		    !lstat(manifest, &st))
			return gt_fail(err, GT_ECANTCREAT, "%s: expected a directory outside of all checkpoints, got a directory in the checkpoint %s",
			               path, real);
	}
	return GT_OK;
}

static enum gt_code open_dir(struct gt_ckpt_dir *d, const char *path, struct gt_err *err)
{
	char lock[GT_PATH_SIZE];
	bool held;
	long holder;
	if (strlen(path) >= sizeof d->path - GT_CKPT_NAME - 32)
		return gt_fail(err, GT_ECANTCREAT, "%.200s…: path is too long", path);
	strcpy(d->path, path);
	GT_TRY(check_outside_checkpoints(path, err));
	GT_TRY(gt_dir_make(path, &d->existed, err));
	GT_TRY(gt_path_join(lock, path, ".lock", err));
	GT_TRY(gt_lock_take(lock, &d->lock, &held, &holder, err));
	if (held && holder > 0)
		return gt_fail(err, GT_ECANTCREAT, "another run (pid %ld) uses %s", holder, path);
	if (held)
		return gt_fail(err, GT_ECANTCREAT, "another run uses %s", path);
	GT_TRY(check_writable(path, err));
	return recover_run_dir(d, err);
}

enum gt_code gt_ckpt_dir_open(const char *path, struct gt_ckpt_dir **out, struct gt_err *err)
{
	struct gt_ckpt_dir *d = calloc(1, sizeof *d);
	*out = NULL;
	if (!d)
		return gt_fail_memory(err, sizeof *d);
	d->lock = -1;
	d->step = -1;
	d->existed = strlen(path);
	enum gt_code code = open_dir(d, path, err);
	if (code) {
		gt_ckpt_dir_close(d);
		/* before the run begins, an I/O error means that the directory is not writable */
		return gt_code_replace(code, GT_EIO, GT_ECANTCREAT, err);
	}
	*out = d;
	return GT_OK;
}

/* Returns whether a run that has not begun may have written the file; a run writes config.cfg last. */
static bool is_start_file(const char *name)
{
	return !strcmp(name, ".lock") || !strcmp(name, "metrics.jsonl") || !strncmp(name, "events.out.tfevents.", 20) ||
	       strstr(name, ".tmp-") != NULL;
}

/* Returns whether the directory has only files that the start of a run writes. If `remove` is set, also removes them, except the lock. */
static bool has_only_start_files(const char *path, bool remove)
{
	DIR *dir = opendir(path);
	bool only = dir != NULL;
	char file[GT_PATH_SIZE];
	for (const struct dirent *e; only && (e = readdir(dir));) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		only = is_start_file(e->d_name);
		if (only && remove && strcmp(e->d_name, ".lock"))
			only = !gt_path_join(file, path, e->d_name, NULL) && !gt_tree_remove(file, NULL);
	}
	if (dir)
		closedir(dir);
	return only;
}

/* Removes the directories that were created for a run that failed before it began. If `locked` is set, this process holds the lock, so that
 * no other run can write to the directory. */
static void remove_unused(const char *path, size_t existed, bool locked)
{
	char lock[GT_PATH_SIZE];
	if (existed >= strlen(path))
		return;
	if (locked && (!has_only_start_files(path, false) || !has_only_start_files(path, true) || gt_path_join(lock, path, ".lock", NULL) ||
	               unlink(lock)))
		return;
	gt_dir_unmake(path, existed);
}

size_t gt_ckpt_dir_existing(const char *path)
{
	char part[GT_PATH_SIZE];
	struct stat st;
	size_t n = strlen(path);
	if (n >= sizeof part)
		return n;
	strcpy(part, path);
	while (n && stat(part, &st))
		for (part[--n] = 0; n && path[n] != '/';)
			part[--n] = 0;
	return n;
}

void gt_ckpt_dir_clean(const char *path, size_t existed)
{
	char lock[GT_PATH_SIZE];
	struct stat st;
	bool held;
	long holder;
	int fd = -1;
	if (existed >= strlen(path))
		return;
	if (stat(path, &st)) { /* the rank was killed before it had created all of the path's directories */
		gt_dir_unmake(path, existed);
		return;
	}
	if (gt_path_join(lock, path, ".lock", NULL) || gt_lock_take(lock, &fd, &held, &holder, NULL) != GT_OK || held)
		return;
	remove_unused(path, existed, true);
	gt_lock_drop(fd);
}

void gt_ckpt_dir_close(struct gt_ckpt_dir *d)
{
	if (!d)
		return;
	remove_unused(d->path, d->existed, d->lock >= 0);
	gt_lock_drop(d->lock);
	free(d);
}

/* Returns whether retention keeps entry e[i]: the newest `keep` checkpoints that have a manifest, and the best one. A checkpoint without a
 * readable manifest is kept for the user and not counted. */
static bool is_retained(const struct gt_ckpt_entry *e, int i, int64_t keep, int64_t best)
{
	int64_t kept = 0;
	if (e[i].kind != GT_CKPT_STEP || !e[i].serial || e[i].step == best)
		return true;
	for (int k = 0; k <= i && kept < keep; k++) {
		if (e[k].kind != GT_CKPT_STEP || !e[k].serial)
			continue;
		if (k == i || (e[k].has_best && e[k].best_step == e[i].step))
			return true;
		kept++;
	}
	return false;
}

/* Removes old checkpoints. First renames the directories, makes the renames durable, and then removes their files, so that a crash never
 * leaves an incomplete checkpoint under a checkpoint's name. */
static enum gt_code remove_old_checkpoints(struct gt_ckpt_dir *d, struct gt_ckpt_entry *e, int n, int64_t keep, int64_t best,
                                           struct gt_err *err)
{
	char path[GT_PATH_SIZE], gone[GT_PATH_SIZE], nonce[GT_NONCE_SIZE];
	int victims = 0;
	/* begins with the oldest checkpoint, because newer checkpoints decide whether an older one is kept */
	for (int i = n - 1; i >= 0; i--) {
		if (is_retained(e, i, keep, best))
			continue;
		GT_TRY(gt_path_join(path, d->path, e[i].name, err));
		gt_nonce(nonce);
		snprintf(e[i].name + strlen(e[i].name), GT_CKPT_NAME - strlen(e[i].name), ".old-%s", nonce);
		GT_TRY(gt_path_join(gone, d->path, e[i].name, err));
		if (rename(path, gone))
			return gt_fail_errno(err, GT_EIO, errno, "%s: cannot rename", path);
		e[i].kind = GT_CKPT_LEFTOVER;
		victims++;
	}
	if (!victims)
		return GT_OK;
	GT_TRY(gt_dir_sync(d->path, err));
	for (int i = 0; i < n; i++) {
		if (e[i].kind != GT_CKPT_LEFTOVER)
			continue;
		GT_TRY(gt_path_join(path, d->path, e[i].name, err));
		GT_TRY(gt_tree_remove(path, err));
	}
	return GT_OK;
}

enum gt_code gt_ckpt_retain(struct gt_ckpt_dir *d, int64_t keep, struct gt_err *err)
{
	struct gt_ckpt_entry *e;
	int64_t best;
	int n;
	if (keep <= 0)
		return GT_OK;
	GT_TRY(gt_ckpt_link_step(d->path, "best", &best, err));
	GT_TRY(gt_ckpt_scan(d->path, true, &e, &n, err));
	enum gt_code code = remove_old_checkpoints(d, e, n, keep, best, err);
	free(e);
	return code;
}
