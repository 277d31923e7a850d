/* The run directory of a writer: lock, sweep of left-overs, retention. */
#include "base/fileio.h"
#include "run/ckpt_scan.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool have_step(const struct gt_ckpt_entry *e, int n, int64_t step)
{
	for (int i = 0; i < n; i++)
		if (e[i].kind == GT_CKPT_STEP && e[i].step == step)
			return true;
	return false;
}

/* A run that died between two renames left step-N under another name only. */
static enum gt_code put_back(const char *dir, struct gt_ckpt_entry *e, int n, struct gt_err *err)
{
	char from[GT_PATH_SIZE], to[GT_PATH_SIZE], name[GT_CKPT_NAME];
	for (int i = 0; i < n; i++) {
		if (e[i].kind != GT_CKPT_PREV)
			continue;
		if (have_step(e, n, e[i].step)) {
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

/* The symlinks say again what the newest manifest says: a run that died behind a commit had not moved them yet. */
static enum gt_code repair_link(const char *dir, const char *link, int64_t want, struct gt_err *err)
{
	char path[GT_PATH_SIZE], name[GT_CKPT_NAME];
	int64_t step;
	GT_TRY(gt_ckpt_link_step(dir, link, &step, err));
	if (step == want)
		return GT_OK;
	gt_ckpt_name_print(name, want);
	GT_TRY(gt_path_join(path, dir, link, err));
	GT_TRY(gt_link_replace(name, path, err));
	return gt_dir_sync(dir, err);
}

static enum gt_code sweep(struct gt_ckpt_dir *d, struct gt_err *err)
{
	struct gt_ckpt_entry *e;
	const struct gt_ckpt_entry *newest = NULL;
	char path[GT_PATH_SIZE];
	int n;
	GT_TRY(gt_ckpt_scan(d->path, true, &e, &n, err));
	enum gt_code code = put_back(d->path, e, n, err);
	for (int i = 0; i < n && !code; i++) {
		if (e[i].kind == GT_CKPT_LEFTOVER) {
			code = gt_path_join(path, d->path, e[i].name, err);
			if (!code)
				code = gt_tree_remove(path, err);
		} else if (e[i].serial && !newest) {
			newest = &e[i];
			d->serial = newest->serial;
		}
	}
	if (newest && !code)
		code = repair_link(d->path, "latest", newest->step, err);
	if (newest && newest->has_best && have_step(e, n, newest->best_step) && !code)
		code = repair_link(d->path, "best", newest->best_step, err);
	free(e);
	return code;
}

/* A folder made and removed, as a save will. */
static enum gt_code probe(const char *dir, struct gt_err *err)
{
	char path[GT_PATH_SIZE], name[GT_CKPT_NAME] = "step-00000000.tmp-", nonce[GT_NONCE_SIZE];
	gt_nonce(nonce);
	strcat(name, nonce);
	GT_TRY(gt_path_join(path, dir, name, err));
	if (mkdir(path, 0700) || rmdir(path))
		return gt_fail(err, GT_ECANTCREAT, "%s: cannot write here: %s", dir, strerror(errno));
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
	GT_TRY(gt_dir_make(path, err));
	GT_TRY(gt_path_join(lock, path, ".lock", err));
	GT_TRY(gt_lock_take(lock, &d->lock, &held, &holder, err));
	if (held && holder > 0)
		return gt_fail(err, GT_ECANTCREAT, "another run (pid %ld) uses %s", holder, path);
	if (held)
		return gt_fail(err, GT_ECANTCREAT, "another run uses %s", path);
	GT_TRY(probe(path, err));
	return sweep(d, err);
}

enum gt_code gt_ckpt_dir_open(const char *path, struct gt_ckpt_dir **out, struct gt_err *err)
{
	struct gt_ckpt_dir *d = calloc(1, sizeof *d);
	*out = NULL;
	if (!d)
		return gt_fail_memory(err, sizeof *d);
	d->lock = -1;
	enum gt_code code = open_dir(d, path, err);
	if (code) {
		gt_ckpt_dir_close(d);
		if (code == GT_EIO) { /* the caller's question was whether it can be written */
			code = GT_ECANTCREAT;
			if (err)
				err->code = code;
		}
		return code;
	}
	*out = d;
	return GT_OK;
}

void gt_ckpt_dir_close(struct gt_ckpt_dir *d)
{
	if (!d)
		return;
	gt_lock_drop(d->lock);
	free(d);
}

/* Renames the checkpoints to go, makes that durable, and only then removes files: a crash in between leaves no checkpoint that looks
 * whole and is not. */
static enum gt_code retain(struct gt_ckpt_dir *d, struct gt_ckpt_entry *e, int n, int64_t keep, int64_t best, struct gt_err *err)
{
	char path[GT_PATH_SIZE], gone[GT_PATH_SIZE], nonce[GT_NONCE_SIZE];
	int64_t kept = 0;
	int victims = 0;
	for (int i = 0; i < n; i++) {
		/* One without a readable manifest is left for its owner to look at, and does not count as kept. */
		if (e[i].kind != GT_CKPT_STEP || !e[i].serial || kept++ < keep || e[i].step == best)
			continue;
		GT_TRY(gt_path_join(path, d->path, e[i].name, err));
		gt_nonce(nonce);
		snprintf(e[i].name + strlen(e[i].name), GT_CKPT_NAME - strlen(e[i].name), ".old-%s", nonce);
		GT_TRY(gt_path_join(gone, d->path, e[i].name, err));
		if (rename(path, gone))
			return gt_fail(err, GT_EIO, "%s: cannot rename: %s", path, strerror(errno));
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
	enum gt_code code = retain(d, e, n, keep, best, err);
	free(e);
	return code;
}
