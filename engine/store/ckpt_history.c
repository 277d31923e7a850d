/* Going back to an earlier checkpoint. A run directory contains one line of checkpoints, each of which continues the previous checkpoint.
 * When a run goes back, later checkpoints move to history-<serial>/, where <serial> is the serial of the first checkpoint of the new line:
 *
 *   57(1) 114(2) 171(3)      resume --from 57, then a commit of step 114 with serial 4 and parent 1
 *   57(1) 114(4)             history-4/: 114(2) 171(3), metrics.jsonl and config.cfg as they were
 *
 * The commit is one rename, as always. Checkpoints whose serial is between the manifest's parent and its own serial are not on the line.
 * So from names and manifests, the next writer can detect and finish an incomplete move. */
#include "base/fileio.h"
#include "store/ckpt_scan.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- selection of checkpoints ------------------------------------------------------------------------------------------------------- */

/* Returns whether entry e does not belong to the line of checkpoints that ends with the checkpoint (serial, parent). beyond: as for
 * gt_ckpt_history_move(). */
static bool is_off_line(const struct gt_ckpt_entry *e, int64_t serial, int64_t parent, int64_t beyond)
{
	/* a checkpoint that a commit of the same step has displaced; unless it is the parent of that commit, it belongs to the history */
	if (e->kind != GT_CKPT_STEP)
		return e->serial && e->serial < serial && e->serial != parent && !strstr(e->name, ".old-");
	return e->serial ? e->serial < serial && (e->serial > parent || e->step > beyond) : e->step > beyond;
}

static enum gt_code make_history_path(char *buf, const char *dir, int64_t serial, struct gt_err *err)
{
	char name[GT_CKPT_NAME];
	snprintf(name, sizeof name, "history-%" PRId64, serial);
	return gt_path_join(buf, dir, name, err);
}

/* Renames dir/name to to/as. Fails if to/as exists. */
static enum gt_code rename_entry(const char *dir, const char *name, const char *to, const char *as, struct gt_err *err)
{
	char from[GT_PATH_SIZE], path[GT_PATH_SIZE];
	GT_TRY(gt_path_join(from, dir, name, err));
	GT_TRY(gt_path_join(path, to, as, err));
	if (renameat2(AT_FDCWD, from, AT_FDCWD, path, RENAME_NOREPLACE)) {
		struct stat st;
		if ((errno != EINVAL && errno != ENOSYS) || !lstat(path, &st) || rename(from, path))
			return gt_fail_errno(err, GT_EIO, errno, "%s: cannot rename to %s", from, path);
	}
	return GT_OK;
}

/* Creates a symlink in a history, unless it exists. The link is not replaced by a rename, so that a kill leaves no temporary file. */
static enum gt_code create_link(const char *history, const char *link, int64_t step, struct gt_err *err)
{
	char path[GT_PATH_SIZE], target[GT_PATH_SIZE], name[GT_CKPT_NAME];
	struct stat st;
	gt_ckpt_name_print(name, step);
	GT_TRY(gt_path_join(path, history, link, err));
	GT_TRY(gt_path_join(target, history, name, err));
	if (lstat(target, &st)) /* the checkpoint was not moved to the history, because it belongs to the new line */
		return GT_OK;
	return symlink(name, path) && errno != EEXIST ? gt_fail_errno(err, GT_EIO, errno, "%s: cannot make symlink", path) : GT_OK;
}

/* Creates the symlinks `best` and `latest` in a history. */
static enum gt_code create_links(const char *history, struct gt_err *err)
{
	struct gt_ckpt_entry *e;
	int n;
	GT_TRY(gt_ckpt_scan(history, true, &e, &n, err));
	const struct gt_ckpt_entry *newest = NULL;
	for (int i = 0; i < n && !newest; i++)
		if (e[i].kind == GT_CKPT_STEP && e[i].serial)
			newest = &e[i];
	enum gt_code code = newest && newest->has_best ? create_link(history, "best", newest->best_step, err) : GT_OK;
	if (newest && !code)
		code = create_link(history, "latest", newest->step, err);
	free(e);
	return code;
}

/* Returns whether the history has no symlinks, because a kill happened after the last move and before the links were created. */
static bool lacks_links(const char *history)
{
	char path[GT_PATH_SIZE];
	struct stat st;
	return !lstat(history, &st) && !gt_path_join(path, history, "latest", NULL) && lstat(path, &st);
}

/* Moves the entries e[n] that are not on the line of the checkpoint (serial, parent) to history-<number>, and creates the symlinks in
 * it. */
static enum gt_code move_to_history(const char *dir, struct gt_ckpt_entry *e, int n, int64_t number, int64_t serial, int64_t parent,
                                    int64_t beyond, struct gt_err *err)
{
	char history[GT_PATH_SIZE], name[GT_CKPT_NAME];
	int moved = 0;
	GT_TRY(make_history_path(history, dir, number, err));
	for (int i = 0; i < n; i++) {
		if (!is_off_line(&e[i], serial, parent, beyond))
			continue;
		if (!moved++)
			GT_TRY(gt_dir_make(history, NULL, err)); /* the new directory must be durable before a checkpoint moves into it */
		gt_ckpt_name_print(name, e[i].step);
		GT_TRY(rename_entry(dir, e[i].name, history, name, err));
	}
	if (!moved && !lacks_links(history))
		return GT_OK;
	GT_TRY(create_links(history, err));
	GT_TRY(gt_dir_sync(history, err));
	return gt_dir_sync(dir, err);
}

enum gt_code gt_ckpt_history_move(const char *dir, int64_t serial, int64_t parent, int64_t beyond, struct gt_err *err)
{
	struct gt_ckpt_entry *e;
	int n;
	GT_TRY(gt_ckpt_scan(dir, true, &e, &n, err));
	enum gt_code code = move_to_history(dir, e, n, serial, serial, parent, beyond, err);
	free(e);
	return code;
}

enum gt_code gt_ckpt_history_clear(struct gt_ckpt_dir *d, struct gt_err *err)
{
	struct gt_ckpt_entry *e;
	int n;
	GT_TRY(gt_ckpt_scan(d->path, true, &e, &n, err));
	/* serial 0: no checkpoint has a readable manifest, so only the steps tell which checkpoints are later */
	enum gt_code code = move_to_history(d->path, e, n, d->serial + 1, 0, 0, d->step, err);
	free(e);
	return code;
}

/* Writes steps as text to buf, such as "steps 114 and 171". */
static void format_steps(const struct gt_ckpt_entry *e, int n, char *buf, size_t size)
{
	enum { NAMED = 6 };
	int shown = n > NAMED ? NAMED - 1 : n;
	size_t at = (size_t)snprintf(buf, size, "step%s", n == 1 ? "" : "s");
	for (int i = 0; i < shown && at < size; i++)
		at += (size_t)snprintf(buf + at, size - at, "%s%" PRId64, i == 0 ? " " : i == n - 1 ? " and " : ", ", e[i].step);
	if (shown < n && at < size)
		snprintf(buf + at, size - at, " and %d others", n - shown);
}

enum gt_code gt_ckpt_dir_continue(struct gt_ckpt_dir *d, const struct gt_ckpt *from, int64_t *next, char *text, size_t size,
                                  struct gt_err *err)
{
	struct gt_ckpt_entry *e;
	char steps[256];
	int n, later = 0;
	d->parent = gt_ckpt_serial(from);
	d->step = gt_ckpt_meta(from)->step;
	GT_TRY(gt_ckpt_scan(d->path, true, &e, &n, err));
	for (int i = 0; i < n; i++)
		if (e[i].kind == GT_CKPT_STEP && is_off_line(&e[i], INT64_MAX, d->parent, d->step))
			e[later++] = e[i];
	qsort(e, (size_t)later, sizeof *e, gt_ckpt_compare_steps);
	d->back = later > 0;
	*next = d->back ? d->serial + 1 : 0;
	if (d->back) {
		format_steps(e, later, steps, sizeof steps);
		snprintf(text, size, "going back to step %" PRId64 ": when the first new checkpoint is committed, the later checkpoint%s "
		         "(%s), metrics.jsonl and config.cfg move to %s/history-%" PRId64, d->step, later == 1 ? "" : "s", steps, d->path, *next);
	}
	free(e);
	return GT_OK;
}

/* ---- files that are exchanged at the commit ----------------------------------------------------------------------------------------- */

/* TensorBoard reads every file whose name contains "tfevents", so the file gets a name with this prefix only at the commit */
#define EVENTS "events.out.tfevents."
#define EVENTS_NEXT "tensorboard."

enum gt_code gt_ckpt_next_path(char *buf, const char *dir, int64_t next, const char *name, struct gt_err *err)
{
	char file[512];
	bool events = !strncmp(name, EVENTS, strlen(EVENTS));
	if (next <= 0)
		return gt_path_join(buf, dir, name, err);
	if ((size_t)snprintf(file, sizeof file, "next-%" PRId64 ".%s%s", next, events ? EVENTS_NEXT : "",
	                     events ? name + strlen(EVENTS) : name) >= sizeof file)
		return gt_fail(err, GT_ECANTCREAT, "%s/%.200s…: the name is too long", dir, name);
	return gt_path_join(buf, dir, file, err);
}

/* Parses "next-4.metrics.jsonl": sets the serial and returns the part after it; NULL: the name has another form. */
static const char *parse_next_name(const char *name, int64_t *serial)
{
	char *end;
	if (strncmp(name, "next-", 5) || name[5] < '1' || name[5] > '9')
		return NULL;
	errno = 0;
	*serial = strtoll(name + 5, &end, 10);
	return errno || *end != '.' || !end[1] ? NULL : end + 1;
}

/* Installs a file at the commit. name: "next-<serial>.<file>"; file: the final name. An existing file with the final name moves to the
 * history. After a kill between the two renames, the next run completes the work. */
static enum gt_code install_file(const char *dir, const char *name, const char *file, int64_t serial, struct gt_err *err)
{
	char history[GT_PATH_SIZE], from[GT_PATH_SIZE], to[GT_PATH_SIZE], as[512];
	struct stat st;
	bool events = !strncmp(file, EVENTS_NEXT, strlen(EVENTS_NEXT));
	snprintf(as, sizeof as, "%s%s", events ? EVENTS : "", events ? file + strlen(EVENTS_NEXT) : file);
	GT_TRY(gt_path_join(from, dir, name, err));
	GT_TRY(gt_path_join(to, dir, as, err));
	if (!lstat(to, &st)) {
		GT_TRY(make_history_path(history, dir, serial, err));
		GT_TRY(gt_dir_make(history, NULL, err));
		GT_TRY(rename_entry(dir, as, history, as, err));
		GT_TRY(gt_dir_sync(history, err));
	}
	return gt_file_rename(from, to, err);
}

enum gt_code gt_ckpt_next_commit(const char *dir, int64_t serial, struct gt_err *err)
{
	for (;;) { /* each scan handles one file, because a directory that changes during a scan may show an entry twice or not at all */
		char name[NAME_MAX + 1] = "", path[GT_PATH_SIZE];
		const char *file = NULL;
		int64_t of = 0;
		DIR *d = opendir(dir);
		if (!d)
			return gt_fail_errno(err, GT_EIO, errno, "%s: cannot open", dir);
		for (struct dirent *e; !file && (errno = 0, e = readdir(d));) {
			strcpy(name, e->d_name);
			file = parse_next_name(name, &of);
		}
		int why = file ? 0 : errno;
		closedir(d);
		if (why)
			return gt_fail_errno(err, GT_EIO, why, "%s: cannot list", dir);
		if (!file)
			return GT_OK;
		if (of <= serial && !strstr(file, ".tmp-")) {
			GT_TRY(install_file(dir, name, file, of, err));
		} else {
			GT_TRY(gt_path_join(path, dir, name, err));
			GT_TRY(gt_tree_remove(path, err));
		}
	}
}
