/* Opens and reads checkpoints: checks a directory against its manifest, and finds the newest undamaged checkpoint of a run. */
#include "base/fileio.h"
#include "store/ckpt_scan.h"
#include "store/safetensors_file.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct gt_ckpt {
	struct gt_arena *arena;
	const char *path;
	struct gt_ckpt_manifest manifest;
	struct gt_st_file *file[2];
};

/* ---- one checkpoint ----------------------------------------------------------------------------------------------------------------- */

static enum gt_code check_length(const struct gt_ckpt *c, int file, uint64_t bytes, const char *path, struct gt_err *err)
{
	if (bytes != (uint64_t)c->manifest.file[file].bytes)
		return gt_fail(err, GT_EDATA, "%s: damaged: the file has %llu bytes, but the manifest says %lld", path, (unsigned long long)bytes,
		               (long long)c->manifest.file[file].bytes);
	return GT_OK;
}

static enum gt_code check_digest(const struct gt_ckpt *c, int file, const char *digest, const char *path, struct gt_err *err)
{
	if (strcmp(digest, c->manifest.file[file].digest))
		return gt_fail(err, GT_EDATA, "%s: damaged: its digest is %s, but the manifest says %s",
		               path, digest, c->manifest.file[file].digest);
	return GT_OK;
}

static enum gt_code add_to_digest(void *d, const void *data, size_t n, struct gt_err *err)
{
	(void)err;
	gt_digest_add(d, data, n);
	return GT_OK;
}

static enum gt_code open_tensors(struct gt_ckpt *c, int file, bool verify, struct gt_err *err)
{
	char path[GT_PATH_SIZE], hex[GT_DIGEST_HEX];
	struct gt_digest *d;
	if (!c->manifest.file[file].there)
		return GT_OK;
	GT_TRY(gt_path_join(path, c->path, gt_ckpt_file_name(file), err));
	/* a file that the manifest names and that is missing is damage, not missing input */
	GT_TRY(gt_code_replace(gt_st_open_unmapped(path, &c->file[file], err), GT_ENOINPUT, GT_EDATA, err));
	GT_TRY(check_length(c, file, gt_st_bytes(c->file[file]), path, err));
	if (!verify)
		return GT_OK;
	GT_TRY(gt_digest_open(&d, err));
	enum gt_code code = gt_st_each(c->file[file], add_to_digest, d, err);
	gt_digest_get(d, hex);
	gt_digest_close(d);
	return code ? code : check_digest(c, file, hex, path, err);
}

/* Reads a text file of the checkpoint. *out is NULL if the checkpoint has no such file. The digest of the file is always checked, because
 * the file is small. */
static enum gt_code open_text(struct gt_ckpt *c, int file, const char **out, struct gt_err *err)
{
	char path[GT_PATH_SIZE], hex[GT_DIGEST_HEX], *text;
	size_t n;
	*out = NULL;
	if (!c->manifest.file[file].there)
		return GT_OK;
	GT_TRY(gt_path_join(path, c->path, gt_ckpt_file_name(file), err));
	GT_TRY(gt_code_replace(gt_file_read(path, GT_CKPT_TEXT_MAX, &text, &n, err), GT_ENOINPUT, GT_EDATA, err));
	gt_digest_bytes(text, n, hex);
	enum gt_code code = check_length(c, file, n, path, err);
	if (!code)
		code = check_digest(c, file, hex, path, err);
	if (!code && strlen(text) != n)
		code = gt_fail(err, GT_EDATA, "%s: damaged: it contains a NUL byte", path);
	if (!code && !(*out = gt_arena_strdup(c->arena, text)))
		code = gt_fail_memory(err, n);
	free(text);
	return code;
}

static enum gt_code open_contents(struct gt_ckpt *c, const char *path, bool verify, struct gt_err *err)
{
	GT_NEW_STR(c->path, gt_arena_strdup(c->arena, path), err);
	GT_TRY(gt_code_replace(gt_ckpt_manifest_read(path, c->arena, &c->manifest, err), GT_ENOINPUT, GT_EDATA, err));
	GT_TRY(open_text(c, GT_CKPT_CONFIG, &c->manifest.meta.config, err));
	GT_TRY(open_text(c, GT_CKPT_DATA, &c->manifest.meta.data, err));
	GT_TRY(open_tensors(c, GT_CKPT_MODEL, verify, err));
	return open_tensors(c, GT_CKPT_OPTIMIZER, verify, err);
}

static enum gt_code open_step_dir(const char *path, bool verify, struct gt_ckpt **out, struct gt_err *err)
{
	struct gt_arena *a;
	GT_TRY(gt_arena_open(&a, err));
	struct gt_ckpt *c = gt_arena_alloc(a, 1, sizeof *c);
	if (!c) {
		gt_arena_close(a);
		return gt_fail_memory(err, sizeof *c);
	}
	c->arena = a;
	enum gt_code code = open_contents(c, path, verify, err);
	if (code)
		gt_ckpt_close(c);
	else
		*out = c;
	return code;
}

void gt_ckpt_close(struct gt_ckpt *c)
{
	if (!c)
		return;
	gt_st_close(c->file[GT_CKPT_MODEL]);
	gt_st_close(c->file[GT_CKPT_OPTIMIZER]);
	gt_arena_close(c->arena);
}

/* ---- checkpoints of a run directory ------------------------------------------------------------------------------------------------- */

static enum gt_code open_entry(const char *dir, const struct gt_ckpt_entry *e, bool verify, struct gt_ckpt **out, struct gt_err *err)
{
	char path[GT_PATH_SIZE];
	GT_TRY(gt_path_join(path, dir, e->name, err));
	GT_TRY(open_step_dir(path, verify, out, err));
	if ((*out)->manifest.meta.step == e->step)
		return GT_OK;
	enum gt_code code = gt_fail(err, GT_EDATA, "%s: damaged: the directory has the manifest of step %lld", path,
	                            (long long)(*out)->manifest.meta.step);
	gt_ckpt_close(*out);
	*out = NULL;
	return code;
}

static bool entry_exists(const char *dir, const char *name)
{
	char path[GT_PATH_SIZE];
	struct stat st;
	return !gt_path_join(path, dir, name, NULL) && !lstat(path, &st);
}

struct search {
	const char *dir;
	bool verify;
	void (*warn)(void *user, const char *text);
	void *user;
	struct gt_err first; /* the error of the newest checkpoint, if it cannot be used */
	bool vanished;       /* an entry has disappeared during the search, because another run has removed old checkpoints */
};

/* Opens the newest usable checkpoint of the n entries e, which gt_ckpt_scan has sorted. GT_ENOINPUT: none of them is a checkpoint. */
static enum gt_code open_newest(struct search *s, const struct gt_ckpt_entry *e, int n, struct gt_ckpt **out, struct gt_err *err)
{
	enum gt_code code = GT_ENOINPUT;
	int damaged = 0;
	for (int i = 0; i < n; i++) {
		struct gt_err why;
		if (e[i].kind == GT_CKPT_LEFTOVER)
			continue;
		if (e[i].kind == GT_CKPT_PREV) { /* a displaced checkpoint is used only if the checkpoint that took its name is missing */
			char name[GT_CKPT_NAME];
			gt_ckpt_name_print(name, e[i].step);
			if (entry_exists(s->dir, name))
				continue;
		}
		enum gt_code one = open_entry(s->dir, &e[i], s->verify, out, &why);
		if (!one)
			return GT_OK;
		if (!entry_exists(s->dir, e[i].name)) {
			s->vanished = true;
			continue;
		}
		/* The search continues with an older checkpoint only if this one is damaged or the disk has an error. After any other error, for
		 * example if memory is short, this checkpoint may be good. */
		if (one != GT_EDATA && one != GT_EIO)
			return gt_fail_copy(err, &why);
		if (!damaged++)
			s->first = why;
		if (s->warn)
			s->warn(s->user, why.msg);
		code = GT_EDATA;
	}
	char near[512];
	return code == GT_EDATA ? gt_fail(err, code, "%s: every checkpoint is damaged, the newest: %s", s->dir, s->first.msg)
	                        : gt_fail(err, code, "%s: there is no checkpoint%s", s->dir,
	                                  err ? gt_ckpt_near(s->dir, near, sizeof near) : "");
}

static enum gt_code open_latest(struct search *s, struct gt_ckpt **out, struct gt_err *err)
{
	enum gt_code code = GT_OK;
	for (int tries = 0; tries < 5; tries++) {
		struct gt_ckpt_entry *e;
		int n;
		GT_TRY(gt_ckpt_scan(s->dir, true, &e, &n, err));
		s->vanished = false;
		code = open_newest(s, e, n, out, err);
		free(e);
		if (!code || !s->vanished)
			break;
	}
	return code;
}

#define LISTED 10 /* number of the lowest and of the highest steps that an error lists */

/* Fails because none of the n entries is a checkpoint of step `step`. The message lists the existing steps. Sorts the entries. */
static enum gt_code fail_no_step(const char *dir, int64_t step, struct gt_ckpt_entry *e, int n, struct gt_err *err)
{
	char list[600] = "";
	int steps = 0;
	for (int i = 0; i < n; i++)
		if (e[i].kind == GT_CKPT_STEP)
			e[steps++] = e[i];
	if (!steps)
		return gt_fail(err, GT_ENOINPUT, "%s: there is no checkpoint", dir);
	qsort(e, (size_t)steps, sizeof *e, gt_ckpt_compare_steps);
	for (int i = 0; i < steps; i++) {
		size_t at = strlen(list);
		bool skips = steps > 2 * LISTED && i == LISTED;
		i = skips ? steps - LISTED : i;
		snprintf(list + at, sizeof list - at, "%s%s%lld", at ? ", " : "", skips ? "..., " : "", (long long)e[i].step);
	}
	return gt_fail(err, GT_ENOINPUT, "%s: there is no checkpoint of step %lld; expected %s%s", dir, (long long)step,
	               steps > 1 ? "one of " : "", list);
}

static enum gt_code open_step(struct search *s, int64_t step, struct gt_ckpt **out, struct gt_err *err)
{
	struct gt_ckpt_entry *e, *found = NULL;
	int n;
	GT_TRY(gt_ckpt_scan(s->dir, false, &e, &n, err));
	for (int i = 0; i < n; i++)
		if (e[i].step == step && (e[i].kind == GT_CKPT_STEP || (e[i].kind == GT_CKPT_PREV && !found)))
			found = &e[i];
	enum gt_code code = found ? open_entry(s->dir, found, s->verify, out, err) : fail_no_step(s->dir, step, e, n, err);
	free(e);
	return code;
}

static enum gt_code open_run_dir(struct search *s, const char *which, struct gt_ckpt **out, struct gt_err *err)
{
	int64_t step;
	char *end;
	if (!which) {
		GT_TRY(gt_ckpt_link_step(s->dir, "best", &step, err));
		which = step < 0 ? "latest" : "best";
	}
	if (!strcmp(which, "latest"))
		return open_latest(s, out, err);
	if (!strcmp(which, "best")) {
		GT_TRY(gt_ckpt_link_step(s->dir, "best", &step, err));
		if (step < 0)
			return gt_fail(err, GT_ENOINPUT, "%s: there is no best checkpoint", s->dir);
		return open_step(s, step, out, err);
	}
	errno = 0;
	step = strtoll(which, &end, 10);
	if (errno || *end || end == which || which[0] < '0' || which[0] > '9')
		return gt_fail(err, GT_EUSAGE, "--from: expected latest, best or a step number, got \"%s\"", which);
	return open_step(s, step, out, err);
}

/* Copies the last component of a path to name; sets name to "" if the component is too long. */
static void copy_last_name(const char *path, char name[GT_CKPT_NAME])
{
	size_t n = strlen(path);
	while (n > 1 && path[n - 1] == '/')
		n--;
	size_t from = n;
	while (from && path[from - 1] != '/')
		from--;
	memset(name, 0, GT_CKPT_NAME);
	if (n - from < GT_CKPT_NAME)
		memcpy(name, path + from, n - from);
}

/* Returns whether the path names a checkpoint and not a run. A directory with the name of a checkpoint is a checkpoint even if it has no
 * manifest: it is then damaged. */
bool gt_ckpt_is_step_dir(const char *path)
{
	char name[GT_CKPT_NAME];
	int64_t step;
	copy_last_name(path, name);
	return entry_exists(path, GT_CKPT_MANIFEST) || gt_ckpt_name_parse(name, &step) == GT_CKPT_STEP;
}

/* Fails because the path of a checkpoint, such as DIR/step-00000938, does not exist. */
static enum gt_code fail_absent_step(const char *path, struct gt_err *err)
{
	char name[GT_CKPT_NAME], dir[GT_PATH_SIZE];
	struct gt_ckpt_entry *e;
	int64_t step;
	int n;
	copy_last_name(path, name);
	gt_ckpt_name_parse(name, &step);
	char near[512];
	if (gt_path_parent(dir, path, NULL) || gt_ckpt_scan(dir, false, &e, &n, NULL))
		return gt_fail(err, GT_ENOINPUT, "%s: expected a checkpoint, but this path does not exist%s", path,
		               gt_ckpt_near(dir, near, sizeof near));
	enum gt_code code = fail_no_step(dir, step, e, n, err);
	free(e);
	return code;
}

enum gt_code gt_ckpt_run_dir(const char *path, char *dir, int64_t *step, struct gt_err *err)
{
	char name[GT_CKPT_NAME], real[PATH_MAX];
	struct stat st;
	*step = -1;
	if (strlen(path) >= GT_PATH_SIZE)
		return gt_fail(err, GT_ENOINPUT, "%.200s…: path is too long", path);
	if (!gt_ckpt_is_step_dir(path) || stat(path, &st) || !S_ISDIR(st.st_mode)) {
		strcpy(dir, path);
		return GT_OK;
	}
	/* The directory and the step follow from the path if its last component is step-… or a link to a step-… in the same directory. */
	copy_last_name(path, name);
	GT_TRY(gt_path_parent(dir, path, err));
	if (*name && strcmp(name, ".") && strcmp(name, "..")) {
		char link[GT_PATH_SIZE];
		GT_TRY(gt_path_join(link, dir, name, err));
		GT_TRY(gt_ckpt_link_step(dir, name, step, err));
		if (*step >= 0)
			return GT_OK;
		if (!lstat(link, &st) && S_ISDIR(st.st_mode) && gt_ckpt_name_parse(name, step) == GT_CKPT_STEP)
			return GT_OK;
	}
	if (!realpath(path, real))
		return gt_fail_errno(err, GT_EIO, errno, "%s: cannot find the absolute path", path);
	copy_last_name(real, name);
	if (gt_ckpt_name_parse(name, step) == GT_CKPT_STEP)
		return gt_path_parent(dir, real, err);
	*step = -1;
	return gt_fail(err, GT_EUSAGE, "%s: expected a checkpoint in a run directory: copy the checkpoint to an empty directory under the name "
	               "step-<its step> (8 digits) and resume the new directory", path);
}

enum gt_code gt_ckpt_open(const char *path, const char *which, bool verify, void (*warn)(void *user, const char *text), void *user,
                          struct gt_ckpt **out, struct gt_err *err)
{
	struct search s = {.dir = path, .verify = verify, .warn = warn, .user = user};
	struct stat st;
	*out = NULL;
	if (stat(path, &st) && errno == ENOENT && gt_ckpt_is_step_dir(path))
		return fail_absent_step(path, err);
	char near[512];
	if (stat(path, &st) && errno == ENOENT)
		return gt_fail(err, GT_ENOINPUT, "%s: expected a run directory or a checkpoint, but this path does not exist%s", path,
		               gt_ckpt_near(path, near, sizeof near));
	if (stat(path, &st))
		return gt_fail_errno(err, errno == ENOENT || errno == ENOTDIR ? GT_ENOINPUT : GT_EIO, errno, "%s: cannot open", path);
	if (!S_ISDIR(st.st_mode))
		return gt_fail(err, GT_EDATA, "%s: expected a run directory or a checkpoint, got a file%s", path,
		               gt_ckpt_near(path, near, sizeof near));
	return gt_ckpt_is_step_dir(path) ? open_step_dir(path, verify, out, err) : open_run_dir(&s, which, out, err);
}

/* ---- an open checkpoint ------------------------------------------------------------------------------------------------------------- */

const char *gt_ckpt_path(const struct gt_ckpt *c)
{
	return c->path;
}

const struct gt_ckpt_meta *gt_ckpt_meta(const struct gt_ckpt *c)
{
	return &c->manifest.meta;
}

bool gt_ckpt_tensor_at(const struct gt_ckpt *c, int file, int i, struct gt_ckpt_tensor *out)
{
	const struct gt_st_tensor *t = c->file[file] ? gt_st_at(c->file[file], i) : NULL;
	if (!t)
		return false;
	*out = (struct gt_ckpt_tensor){.name = t->name, .desc = t->desc};
	return true;
}

enum gt_code gt_ckpt_read(const struct gt_ckpt *c, int file, const char *name, const struct gt_tdesc *want, void *out, struct gt_err *err)
{
	const struct gt_st_tensor *t = c->file[file] ? gt_st_find(c->file[file], name) : NULL;
	char is[96], should[96];
	if (!t)
		return gt_fail(err, GT_EDATA, "%s: %s has no tensor \"%s\"", c->path, gt_ckpt_file_name(file), name);
	if (t->desc.dtype != want->dtype || !gt_tdesc_same_shape(&t->desc, want))
		return gt_fail(err, GT_EDATA, "%s: tensor \"%s\" is %s %s, expected %s %s", c->path, name, gt_dtype_name(t->desc.dtype),
		               gt_tdesc_text(&t->desc, is, sizeof is), gt_dtype_name(want->dtype), gt_tdesc_text(want, should, sizeof should));
	return gt_st_read(c->file[file], t, out, err);
}

const struct gt_st_file *gt_ckpt_file(const struct gt_ckpt *c, int file)
{
	return c->file[file];
}

int64_t gt_ckpt_serial(const struct gt_ckpt *c)
{
	return c->manifest.serial;
}

int64_t gt_ckpt_format(const struct gt_ckpt *c)
{
	return c->manifest.format;
}
