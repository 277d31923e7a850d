#include "store/ckpt_scan.h"
#include "base/arena.h"
#include "base/fileio.h"
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void gt_ckpt_name_print(char name[GT_CKPT_NAME], int64_t step)
{
	snprintf(name, GT_CKPT_NAME, "step-%08" PRId64, step);
}

static bool is_nonce(const char *s)
{
	return strlen(s) == GT_NONCE_SIZE - 1 && strspn(s, "0123456789abcdef") == GT_NONCE_SIZE - 1;
}

/* prefixes of temporary files and links that replace another one by a rename */
static const char *const replaced[] = {"latest.tmp-", "best.tmp-", "config.cfg.tmp-", "first.cfg.tmp-", "metrics.jsonl.tmp-"};

enum gt_ckpt_kind gt_ckpt_name_parse(const char *name, int64_t *step)
{
	char head[GT_CKPT_NAME];
	*step = -1;
	if (strlen(name) >= GT_CKPT_NAME)
		return GT_CKPT_OTHER;
	for (size_t i = 0; i < sizeof replaced / sizeof *replaced; i++)
		if (!strncmp(name, replaced[i], strlen(replaced[i])))
			return is_nonce(name + strlen(replaced[i])) ? GT_CKPT_LEFTOVER : GT_CKPT_OTHER;
	if (strncmp(name, "step-", 5))
		return GT_CKPT_OTHER;
	char *end;
	errno = 0;
	int64_t v = strtoll(name + 5, &end, 10);
	gt_ckpt_name_print(head, v);
	if (errno || v < 0 || strncmp(head, name, (size_t)(end - name)) || strlen(head) != (size_t)(end - name))
		return GT_CKPT_OTHER; /* names of checkpoints have no other form, such as more leading zeros */
	*step = v;
	if (!*end)
		return GT_CKPT_STEP;
	if (!strncmp(end, ".prev-", 6) && is_nonce(end + 6))
		return GT_CKPT_PREV;
	if ((!strncmp(end, ".tmp-", 5) || !strncmp(end, ".old-", 5)) && is_nonce(end + 5))
		return GT_CKPT_LEFTOVER;
	return GT_CKPT_OTHER;
}

static int compare_age(const void *pa, const void *pb)
{
	const struct gt_ckpt_entry *a = pa, *b = pb;
	int ka = a->kind == GT_CKPT_LEFTOVER, kb = b->kind == GT_CKPT_LEFTOVER;
	if (ka != kb)
		return ka - kb;
	if (!a->serial != !b->serial)
		return a->serial ? 1 : -1;
	if (a->serial != b->serial)
		return a->serial > b->serial ? -1 : 1;
	if (a->step != b->step)
		return a->step > b->step ? -1 : 1;
	return strcmp(a->name, b->name);
}

int gt_ckpt_compare_steps(const void *a, const void *b)
{
	const struct gt_ckpt_entry *x = a, *y = b;
	return (x->step > y->step) - (x->step < y->step);
}

static enum gt_code read_serial(const char *dir, struct gt_ckpt_entry *e, struct gt_err *err)
{
	char path[GT_PATH_SIZE];
	struct gt_ckpt_manifest m;
	struct gt_arena *a;
	struct gt_err why;
	GT_TRY(gt_path_join(path, dir, e->name, err));
	GT_TRY(gt_arena_open(&a, err));
	enum gt_code code = gt_ckpt_manifest_read(path, a, &m, &why);
	gt_arena_close(a);
	if (code == GT_EFAIL) /* lack of memory says nothing about the checkpoint, so the scan fails */
		return gt_fail_copy(err, &why);
	if (code || m.meta.step != e->step)
		return GT_OK;
	e->serial = m.serial;
	e->parent = m.parent;
	e->has_best = m.meta.has_best;
	e->best_step = m.meta.best_step;
	return GT_OK;
}

static enum gt_code list_entries(DIR *d, const char *dir, struct gt_ckpt_entry **out, int *n, struct gt_err *err)
{
	int64_t cap = 0;
	for (;;) {
		int64_t step;
		errno = 0;
		struct dirent *e = readdir(d);
		if (!e)
			return errno ? gt_fail_errno(err, GT_EIO, errno, "%s: cannot list", dir) : GT_OK;
		enum gt_ckpt_kind kind = gt_ckpt_name_parse(e->d_name, &step);
		if (kind == GT_CKPT_OTHER)
			continue;
		GT_GROW(*out, cap, *n + 1, err);
		(*out)[*n] = (struct gt_ckpt_entry){.kind = kind, .step = step};
		strcpy((*out)[(*n)++].name, e->d_name);
	}
}

/* Returns whether the name may belong to an older checkpoint of a step: when a commit exchanges two directories, the older one gets the
 * temporary name. */
static bool is_displaced_name(const char *name)
{
	return !strncmp(name, "step-", 5) && strstr(name, ".tmp-");
}

enum gt_code gt_ckpt_scan(const char *dir, bool manifests, struct gt_ckpt_entry **out, int *n, struct gt_err *err)
{
	*out = NULL;
	*n = 0;
	DIR *d = opendir(dir);
	if (!d) {
		if (errno == ENOMEM)
			return gt_fail_memory(err, 0);
		bool absent = errno == ENOENT || errno == ENOTDIR;
		return gt_fail_errno(err, absent ? GT_ENOINPUT : GT_EIO, errno, "%s: cannot open", dir);
	}
	enum gt_code code = list_entries(d, dir, out, n, err);
	closedir(d);
	for (int i = 0; i < *n && !code && manifests; i++)
		if ((*out)[i].kind != GT_CKPT_LEFTOVER || is_displaced_name((*out)[i].name))
			code = read_serial(dir, &(*out)[i], err);
	if (code) {
		free(*out);
		*out = NULL;
		*n = 0;
		return code;
	}
	if (*n)
		qsort(*out, (size_t)*n, sizeof **out, compare_age);
	return GT_OK;
}

enum gt_code gt_ckpt_newest_serial(const char *dir, int64_t *serial, struct gt_err *err)
{
	struct gt_ckpt_entry *e;
	int n;
	*serial = 0;
	GT_TRY(gt_ckpt_scan(dir, true, &e, &n, err));
	for (int i = 0; i < n; i++)
		if (e[i].kind != GT_CKPT_LEFTOVER && e[i].serial > *serial)
			*serial = e[i].serial;
	free(e);
	return GT_OK;
}

enum gt_code gt_ckpt_link_step(const char *dir, const char *link, int64_t *step, struct gt_err *err)
{
	char path[GT_PATH_SIZE], target[GT_CKPT_NAME + 1];
	*step = -1;
	GT_TRY(gt_path_join(path, dir, link, err));
	ssize_t n = readlink(path, target, sizeof target - 1);
	if (n < 0 && errno != ENOENT && errno != EINVAL)
		return gt_fail_errno(err, GT_EIO, errno, "%s: cannot read", path);
	target[n < 0 ? 0 : n] = 0;
	if (gt_ckpt_name_parse(target, step) != GT_CKPT_STEP)
		*step = -1;
	return GT_OK;
}

enum gt_code gt_ckpt_link_set(const char *dir, const char *link, int64_t step, bool *changed, struct gt_err *err)
{
	char path[GT_PATH_SIZE], target[GT_PATH_SIZE], name[GT_CKPT_NAME];
	struct stat st;
	int64_t is;
	GT_TRY(gt_path_join(path, dir, link, err));
	gt_ckpt_name_print(name, step);
	GT_TRY(gt_path_join(target, dir, name, err));
	if (step >= 0 && !lstat(target, &st)) {
		GT_TRY(gt_ckpt_link_step(dir, link, &is, err));
		if (is == step)
			return GT_OK;
		*changed = true;
		return gt_link_replace(name, path, err);
	}
	if (lstat(path, &st) || !S_ISLNK(st.st_mode))
		return GT_OK;
	*changed = true;
	return unlink(path) && errno != ENOENT ? gt_fail_errno(err, GT_EIO, errno, "%s: cannot remove", path) : GT_OK;
}
