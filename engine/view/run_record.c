/* gt_run_read and gt_runs_find of gtrain_view.h. */
#include "base/arena.h"
#include "base/fileio.h"
#include "store/ckpt_scan.h"
#include "view/run_log.h"
#include "view/run_settings.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_DEPTH 16            /* maximum depth of directories that are searched for runs */
#define CONFIG_BYTES (4 << 20)

static bool is_locked(const char *dir)
{
	char path[GT_PATH_SIZE];
	struct gt_err err;
	if (gt_path_join(path, dir, ".lock", &err))
		return false;
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return false;
	bool held = flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
	close(fd);
	return held;
}

const char *gt_run_state(const char *dir, const char *ended)
{
	return is_locked(dir) ? "running" : ended ? ended : "interrupted";
}

/* Adds the sizes of all files in a directory tree to *bytes. Files that disappear during the call are skipped. */
static void add_sizes(int at, const char *name, int depth, uint64_t *bytes)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct stat st;
	if (!d && fd >= 0)
		close(fd);
	for (struct dirent *e; d && (e = readdir(d));) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW))
			continue;
		if (S_ISREG(st.st_mode))
			*bytes += (uint64_t)st.st_size;
		else if (S_ISDIR(st.st_mode) && depth < MAX_DEPTH)
			add_sizes(fd, e->d_name, depth + 1, bytes);
	}
	if (d)
		closedir(d);
}

static enum gt_code copy_text(const char *text, struct gt_arena *a, const char **out, struct gt_err *err)
{
	GT_NEW_STR(*out, gt_arena_strdup(a, text), err);
	return GT_OK;
}

/* Copies the best result, the training time and the config from the newest checkpoint. */
static enum gt_code take_checkpoint(const struct gt_ckpt *c, struct gt_arena *a, struct gt_run_record *r, struct gt_err *err)
{
	const struct gt_ckpt_meta *m = gt_ckpt_meta(c);
	GT_TRY(copy_text(m->name, a, &r->name, err));
	r->seconds = m->seconds;
	if (m->has_best && m->best_metric) {
		GT_TRY(copy_text(m->best_metric, a, &r->best_metric, err));
		r->best = m->best;
		r->best_step = m->best_step;
		r->best_epoch = m->best_epoch;
	}
	return gt_run_settings_read(gt_ckpt_path(c), m->config, a, r, err);
}

/* Copies the config of a run that has no checkpoint yet. */
static enum gt_code take_config(const char *dir, struct gt_arena *a, struct gt_run_record *r, struct gt_err *err)
{
	char path[GT_PATH_SIZE], *text;
	size_t n;
	GT_TRY(gt_path_join(path, dir, "config.cfg", err));
	GT_TRY(gt_file_read(path, CONFIG_BYTES, &text, &n, err));
	enum gt_code code = gt_run_settings_read(path, text, a, r, err);
	free(text);
	const char *name = code ? NULL : gt_run_setting_find(r, "name");
	size_t len = name ? strlen(name) : 0;
	if (!code)
		GT_NEW_STR(r->name, len > 1 ? gt_arena_printf(a, "%.*s", (int)len - 2, name + 1) : gt_arena_strdup(a, ""), err);
	return code;
}

/* Reads the run in the directory dir. The record keeps the pointer dir. */
static enum gt_code read_dir(const char *dir, struct gt_arena *a, struct gt_run_record *r, struct gt_err *err)
{
	struct gt_ckpt *c;
	*r = (struct gt_run_record){.dir = dir, .best_epoch = -1, .started = ""};
	GT_TRY(gt_run_log_read(dir, a, r, err));
	r->state = gt_run_state(dir, r->state);
	add_sizes(AT_FDCWD, dir, 0, &r->bytes);
	enum gt_code code = gt_ckpt_open(dir, "latest", false, NULL, NULL, &c, err);
	if (code == GT_ENOINPUT)
		return take_config(dir, a, r, err);
	GT_TRY(code);
	code = take_checkpoint(c, a, r, err);
	gt_ckpt_close(c);
	return code;
}

enum gt_code gt_run_read(const char *path, struct gt_arena *a, struct gt_run_record *out, struct gt_err *err)
{
	char dir[GT_PATH_SIZE];
	int64_t step;
	struct stat st;
	const char *kept;
	if (stat(path, &st))
		return gt_fail_errno(err, GT_ENOINPUT, errno, "%s", path);
	GT_TRY(gt_ckpt_run_dir(path, dir, &step, err));
	GT_TRY(copy_text(dir, a, &kept, err));
	enum gt_code code = read_dir(kept, a, out, err);
	char near[512];
	return code != GT_ENOINPUT ? code
	                           : gt_fail(err, code, "%s: expected the directory of a run, with metrics.jsonl%s", path,
	                                     gt_ckpt_near(path, near, sizeof near));
}

/* ---- checkpoints --------------------------------------------------------------------------------------------------------------- */
static enum gt_code add_checkpoint(const char *dir, const struct gt_ckpt_entry *e, struct gt_arena *a, struct gt_run_checkpoint *out,
                                   struct gt_err *err)
{
	char path[GT_PATH_SIZE];
	int64_t best, latest;
	GT_TRY(gt_path_join(path, dir, e->name, err));
	GT_TRY(copy_text(path, a, &out->path, err));
	GT_TRY(gt_ckpt_link_step(dir, "best", &best, err));
	GT_TRY(gt_ckpt_link_step(dir, "latest", &latest, err));
	out->step = e->step;
	out->best = e->step == best;
	out->latest = e->step == latest;
	add_sizes(AT_FDCWD, path, 0, &out->bytes);
	return GT_OK;
}

static int compare_checkpoints(const void *a, const void *b)
{
	const struct gt_run_checkpoint *x = a, *y = b;
	return (x->step > y->step) - (x->step < y->step);
}

enum gt_code gt_run_checkpoints(const char *dir, struct gt_arena *a, struct gt_run_checkpoint **out, int *n, struct gt_err *err)
{
	struct gt_ckpt_entry *entry;
	int all;
	GT_TRY(gt_ckpt_scan(dir, false, &entry, &all, err));
	enum gt_code code = GT_OK;
	*n = 0;
	*out = gt_arena_alloc(a, (size_t)all + 1, sizeof **out);
	if (!*out)
		code = gt_fail_memory(err, (size_t)all * sizeof **out);
	for (int i = 0; i < all && !code; i++)
		if (entry[i].kind == GT_CKPT_STEP)
			code = add_checkpoint(dir, &entry[i], a, &(*out)[(*n)++], err);
	free(entry);
	if (!code && *n)
		qsort(*out, (size_t)*n, sizeof **out, compare_checkpoints);
	return code;
}

/* ---- search ------------------------------------------------------------------------------------------------------------------- */
struct search {
	struct gt_arena *arena;
	void (*warn)(void *user, const char *text);
	void *user;
	struct gt_run_record *v;
	int n, cap;
};

static bool has_file(const char *dir, const char *name)
{
	char path[GT_PATH_SIZE];
	struct gt_err err;
	struct stat st;
	return !gt_path_join(path, dir, name, &err) && !lstat(path, &st) && S_ISREG(st.st_mode);
}

static enum gt_code add_run(struct search *s, const char *dir, struct gt_err *err)
{
	struct gt_err why = {0};
	const char *kept;
	GT_TRY(gt_arena_grow(s->arena, &s->v, s->n, &s->cap, sizeof *s->v, err));
	GT_TRY(copy_text(dir, s->arena, &kept, err));
	enum gt_code code = read_dir(kept, s->arena, &s->v[s->n], &why);
	if (code == GT_OK)
		s->n++;
	else if (code == GT_EFAIL)
		return gt_fail(err, code, "%s", why.msg);
	else
		s->warn(s->user, why.msg);
	return GT_OK;
}

/* Searches a directory tree for runs, but not inside of run directories. */
static enum gt_code search_dir(struct search *s, const char *dir, int depth, struct gt_err *err)
{
	char path[GT_PATH_SIZE];
	struct stat st;
	if (has_file(dir, "metrics.jsonl"))
		return add_run(s, dir, err);
	DIR *d = opendir(dir);
	if (!d && depth)
		return GT_OK;
	if (!d)
		return gt_fail_errno(err, GT_ENOINPUT, errno, "%s", dir);
	enum gt_code code = GT_OK;
	for (struct dirent *e; !code && (e = readdir(d));) {
		if (*e->d_name == '.' || depth >= MAX_DEPTH)
			continue;
		code = !strcmp(dir, ".") ? (snprintf(path, sizeof path, "%s", e->d_name), GT_OK) : gt_path_join(path, dir, e->d_name, err);
		if (!code && !lstat(path, &st) && S_ISDIR(st.st_mode))
			code = search_dir(s, path, depth + 1, err);
	}
	closedir(d);
	return code;
}

static int compare_changed(const void *a, const void *b)
{
	const struct gt_run_record *x = a, *y = b;
	return x->changed != y->changed ? (x->changed < y->changed ? 1 : -1) : strcmp(x->dir, y->dir);
}

enum gt_code gt_runs_find(const char *dir, struct gt_arena *a, void (*warn)(void *user, const char *text), void *user,
                          struct gt_run_record **out, int *n, struct gt_err *err)
{
	struct search s = {.arena = a, .warn = warn, .user = user};
	GT_TRY(search_dir(&s, dir, 0, err));
	if (s.n)
		qsort(s.v, (size_t)s.n, sizeof *s.v, compare_changed);
	*out = s.v;
	*n = s.n;
	return GT_OK;
}
