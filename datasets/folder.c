/* Folders of files in the layout of torchvision.datasets.ImageFolder, and .tar archives of such folders.
 *
 *     ROOT/train/CLASS/…/x.jpg     the training split; a class is a folder, and its files may be at any depth below it
 *     ROOT/valid/CLASS/…           or val/: the split "valid" (optional)
 *     ROOT/test/CLASS/…            the test split (optional)
 *
 * `split_names` has alternative names of these folders. Without ROOT/train, the other folders of ROOT are the classes of the training
 * split. In an archive, ROOT may be a single top folder. A folder without files of the requested kind is not a class. Classes are numbered
 * in the order of their names, as bytes; the samples of a split are ordered by class, then by path. */
#include "base/arena.h"
#include "folder.h"
#include "format.h"
#include "sample_mark.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* ---- names of splits ------------------------------------------------------------------------------------------------------------ */
/* The possible folder names of a split, best first; the index is the rank. If several exist, the smallest rank is used. */
static const char *const split_names[GT_SPLITS][7] = {
	[GT_TRAIN] = {"train", NULL, "train", "training"},
	[GT_VALID] = {"valid", "val", "valid", "val", "validation", "dev", "eval"},
	[GT_TEST] = {"test", NULL, "test", "testing"},
};
/* Folder names of rank below USUAL are unambiguous: "train", "valid", "val", "test". Folders with the other names may also be classes. */
enum { USUAL = 2, MOST = sizeof split_names[0] / sizeof *split_names[0] };

/* Returns the rank of a folder's name for a split: 0 is the best, -1: not a name of the split. */
static int split_rank(enum gt_split split, const char *name, size_t len)
{
	for (int k = 0; k < MOST; k++) {
		const char *one = split_names[split][k];
		if (one && strlen(one) == len && !(k < USUAL ? strncmp : strncasecmp)(one, name, len))
			return k;
	}
	return -1;
}

/* Returns whether a folder name denotes a split. usual: only for the names "train", "valid", "val" and "test". */
static bool is_split_name(const char *name, size_t len, bool usual)
{
	for (int s = 0; s < GT_SPLITS; s++) {
		int rank = split_rank((enum gt_split)s, name, len);
		if (rank >= 0 && (!usual || rank < USUAL))
			return true;
	}
	return false;
}

bool gt_folder_names_split(const char *name)
{
	return is_split_name(name, strlen(name), true);
}

/* ---- folders on disk ---------------------------------------------------------------------------------------------------------- */
/* The folders of the splits, relative to the root. */
struct layout {
	char base[GT_SPLITS][PATH_MAX]; /* folder of each split, ending with a slash; for the training split without a folder: "", or the top
	                                   folder of an archive */
	int rank[GT_SPLITS];            /* rank of the folder's name; -1: the split has no folder */
	bool others;                    /* the root also has folders whose names are not those of splits */
};

/* Records a folder of the root. If two names differ only in case, the first in byte order is used. */
static void record_folder(struct layout *l, const char *name, size_t len)
{
	for (int s = 0; s < GT_SPLITS; s++) {
		int rank = split_rank((enum gt_split)s, name, len), old = l->rank[s];
		if (rank < 0 || (old >= 0 && (old < rank || (old == rank && strncmp(l->base[s], name, len) < 0))))
			continue;
		l->rank[s] = rank;
		snprintf(l->base[s], sizeof l->base[s], "%.*s/", (int)len, name);
	}
	l->others |= !is_split_name(name, len, false);
}

/* Decides which folders are splits. An unusual name of a training folder is accepted only if all folders have split names; else the folders
 * may be classes. Other unusual names need a training folder. */
static void resolve_split_names(struct layout *l)
{
	if (l->rank[GT_TRAIN] >= USUAL && l->others)
		l->rank[GT_TRAIN] = -1;
	for (int s = 0; s < GT_SPLITS; s++)
		if (l->rank[GT_TRAIN] < 0 && l->rank[s] >= USUAL)
			l->rank[s] = -1;
	for (int s = 0; s < GT_SPLITS; s++)
		if (l->rank[s] < 0)
			*l->base[s] = 0;
}

static const struct layout no_layout = {.rank = {-1, -1, -1}};

/* Returns whether a folder contains folders. */
static bool has_folders(int root, const char *path)
{
	DIR *d = gt_folder_dir(root, path);
	bool found = false;
	for (struct dirent *e; d && !found && (e = gt_folder_next(d));)
		found = gt_folder_is_dir(dirfd(d), e, e->d_name);
	if (d)
		closedir(d);
	return found;
}

static enum gt_code find_folder_layout(const char *root, int fd, struct layout *l, struct gt_err *err)
{
	DIR *d = gt_folder_dir(fd, "");
	*l = no_layout;
	if (!d)
		return gt_folder_fail_read(root, "", err);
	for (struct dirent *e; (e = gt_folder_next(d));)
		if (gt_folder_is_dir(fd, e, e->d_name))
			record_folder(l, e->d_name, strlen(e->d_name));
	enum gt_code code = errno ? gt_folder_fail_read(root, "", err) : GT_OK;
	closedir(d);
	if (l->rank[GT_TRAIN] >= USUAL && !has_folders(fd, l->base[GT_TRAIN])) /* a class */
		l->others = true;
	resolve_split_names(l);
	return code;
}

/* Adds the folder names of the training split as classes. Folders without files of the requested kind are not classes, unless all folders
 * are empty: the training files may have been removed, and another split is evaluated. */
static enum gt_code list_folder_classes(struct gt_source *s, const struct gt_folder_kind *kind, const struct layout *l,
                                        const struct gt_dataset_spec *spec, struct gt_class_list *out, struct gt_err *err)
{
	char path[PATH_MAX];
	const char *base = l->base[GT_TRAIN];
	struct gt_class_list empty = {0};
	DIR *d = gt_folder_dir(s->fd, base);
	enum gt_code code = GT_OK;
	if (!d)
		return gt_folder_fail_read(s->root, base, err);
	for (struct dirent *e; code == GT_OK && (e = gt_folder_next(d));) {
		size_t len = strlen(e->d_name);
		bool any = false;
		if ((l->rank[GT_TRAIN] < 0 && is_split_name(e->d_name, len, true)) ||
		    (size_t)snprintf(path, sizeof path, "%s%s", base, e->d_name) >= sizeof path || !gt_folder_is_dir(s->fd, e, path))
			continue;
		code = gt_folder_walk(s, kind, path, &any, err);
		if (code == GT_OK && (any || !spec->known)) /* classes of a checkpoint may have no files */
			code = gt_class_list_add(any ? out : &empty, e->d_name, len, err);
	}
	if (code == GT_OK && errno)
		code = gt_folder_fail_read(s->root, base, err);
	closedir(d);
	if (code == GT_OK && out->n)
		gt_class_list_text(&empty, s->left_out, sizeof s->left_out);
	if (code == GT_OK && !out->n) {
		*out = empty;
		return GT_OK;
	}
	gt_class_list_free(&empty);
	return code;
}

/* Adds the files of all folders of a split. */
static enum gt_code scan_folder(struct gt_source *s, const struct gt_folder_kind *kind, const struct layout *l, enum gt_split split,
                                const struct gt_class_list *classes, struct gt_err *err)
{
	char path[PATH_MAX];
	if (l->rank[split] >= 0) {
		snprintf(path, sizeof path, "%.*s", (int)strlen(l->base[split]) - 1, l->base[split]);
		return gt_folder_walk(s, kind, path, NULL, err);
	}
	for (int64_t i = 0; i < classes->n; i++) {
		snprintf(path, sizeof path, "%s", classes->v[i]);
		GT_TRY(gt_folder_walk(s, kind, path, NULL, err));
	}
	return GT_OK;
}

/* ---- archives ----------------------------------------------------------------------------------------------------------------- */
static size_t first_part_len(const char *path)
{
	return strcspn(path, "/");
}

/* Returns the length, slash included, of the top folder that contains all files and is not a class: N in N/train/… or N/CLASS/x.jpg. */
static size_t common_folder_len(const struct gt_source *s)
{
	const char *first = s->n ? gt_source_path(s, 0) : "";
	size_t len = first_part_len(first);
	if (!first[len] || is_split_name(first, len, true) || split_rank(GT_TRAIN, first, len) >= 0)
		return 0;
	for (int64_t i = 0; i < s->n; i++) {
		const char *p = gt_source_path(s, i);
		if (strncmp(p, first, len + 1) || !strchr(p + len + 1, '/'))
			return 0;
	}
	return len + 1;
}

/* Like find_folder_layout, for the files of an archive. */
static void find_archive_layout(const struct gt_source *s, struct layout *l)
{
	size_t common = common_folder_len(s);
	const char *first = s->n ? gt_source_path(s, 0) : "";
	bool classes = false; /* the folder of the training split has subfolders */
	*l = no_layout;
	for (int64_t i = 0; i < s->n; i++) {
		const char *p = gt_source_path(s, i) + common;
		size_t len = first_part_len(p);
		if (!p[len])
			continue;
		record_folder(l, p, len);
		classes |= split_rank(GT_TRAIN, p, len) >= 0 && strchr(p + len + 1, '/');
	}
	l->others |= !classes;
	resolve_split_names(l);
	for (int k = 0; k < GT_SPLITS; k++) {
		char own[PATH_MAX];
		snprintf(own, sizeof own, "%s", l->base[k]);
		snprintf(l->base[k], sizeof l->base[k], "%.*s%.3000s", (int)common, first, own);
	}
}

/* Returns the name of the class in a path, of *len bytes, if the file belongs to this split; else NULL. Without a training folder, the
 * folders of other splits are siblings of the classes. */
static const char *find_class_name(const struct layout *l, enum gt_split split, const char *path, size_t *len)
{
	size_t skip = strlen(l->base[split]);
	const char *name = path + skip;
	if (strncmp(path, l->base[split], skip))
		return NULL;
	*len = first_part_len(name);
	return *len && name[*len] && (l->rank[split] >= 0 || !is_split_name(name, *len, true)) ? name : NULL;
}

static enum gt_code list_archive_classes(const struct gt_source *s, const struct layout *l, struct gt_class_list *out, struct gt_err *err)
{
	for (int64_t i = 0; i < s->n; i++) {
		size_t len;
		const char *name = find_class_name(l, GT_TRAIN, gt_source_path(s, i), &len);
		if (name)
			GT_TRY(gt_class_list_add(out, name, len, err));
	}
	return GT_OK;
}

/* ---- both --------------------------------------------------------------------------------------------------------------------- */
static int by_label_and_path(const void *a, const void *b, void *user)
{
	const struct gt_source_file *x = a, *y = b;
	const char *names = user;
	return x->label != y->label ? (x->label > y->label) - (x->label < y->label) : strcmp(names + x->name, names + y->name);
}

/* Keeps the files of a split, sets their labels and sorts them. */
static enum gt_code label_files(struct gt_source *s, const struct layout *l, enum gt_split split, const struct gt_class_list *classes,
                                const struct gt_dataset_spec *spec, struct gt_err *err)
{
	int64_t kept = 0;
	for (int64_t i = 0; i < s->n; i++) {
		size_t len;
		const char *p = gt_source_path(s, i), *name = find_class_name(l, split, p, &len);
		if (!name)
			continue;
		int64_t k = gt_class_list_find(classes, name, len);
		if (k < 0 && spec->known)
			return gt_class_list_unknown(classes, name, len, s->root, err);
		if (k < 0)
			return gt_fail(err, GT_EDATA, "%.400s%s%.300s: the training split has no folder with files for the class \"%.*s\"", s->root,
			               s->archive ? ": " : "/", p, (int)(len > 100 ? 100 : len), name);
		s->file[kept] = s->file[i];
		s->file[kept].id = gt_mark_path(name);
		s->file[kept++].label = (int32_t)k;
	}
	s->n = kept;
	if (s->n)
		qsort_r(s->file, (size_t)s->n, sizeof *s->file, by_label_and_path, s->names);
	return GT_OK;
}

/* Rejects a folder with splits if the caller asked for the whole folder. */
static enum gt_code reject_splits(const struct gt_source *s, const struct layout *l, struct gt_err *err)
{
	for (int k = GT_SPLITS - 1; k >= 0; k--) {
		int len = (int)strlen(l->base[k]) - 1; /* without the slash */
		if (l->rank[k] >= 0 && s->archive)
			return gt_fail(err, GT_EDATA, "%.600s: expected a folder for each class, got the split \"%.*s\"; unpack the archive, and give "
			               "the folder of one split", s->root, len, l->base[k]);
		if (l->rank[k] >= 0)
			return gt_fail(err, GT_EDATA, "%.600s: expected a folder for each class, got the split \"%.*s\"; give the folder of one split, "
			               "such as %.600s/%.*s", s->root, len, l->base[k], s->root, len, l->base[k]);
	}
	return GT_OK;
}

/* Lists the classes of the files; the classes of a checkpoint are not checked here. */
static enum gt_code find_classes(struct gt_source *s, const struct gt_folder_kind *kind, const struct layout *l,
                                 const struct gt_dataset_spec *spec, struct gt_class_list *classes, struct gt_err *err)
{
	GT_TRY(s->archive ? list_archive_classes(s, l, classes, err) : list_folder_classes(s, kind, l, spec, classes, err));
	enum gt_code code = spec->known ? GT_OK : gt_class_list_check(classes, s->root, err);
	if (code != GT_OK && *s->left_out)
		gt_fail_suffix(err, "these folders have no %s: %s", kind->what, s->left_out);
	return code;
}

static enum gt_code list_split(struct gt_source *s, const struct gt_folder_kind *kind, enum gt_split split,
                               const struct gt_dataset_spec *spec, struct gt_class_list *classes, struct layout *l, struct gt_err *err)
{
	if (s->archive) {
		GT_TRY(gt_folder_list(s, kind, err));
		find_archive_layout(s, l);
	} else {
		GT_TRY(find_folder_layout(s->root, s->fd, l, err));
	}
	if (spec->all)
		GT_TRY(reject_splits(s, l, err));
	bool there = spec->all || split == GT_TRAIN || l->rank[split] >= 0;
	GT_TRY(find_classes(s, kind, l, spec, classes, err));
	if (there && !s->archive)
		GT_TRY(scan_folder(s, kind, l, split, classes, err));
	if (spec->known) /* after scanning, which needs the folder names on disk */
		GT_TRY(gt_class_list_use(classes, spec->known, spec->nknown, s->root, err));
	if (!there) {
		s->n = 0;
		return GT_OK;
	}
	GT_TRY(label_files(s, l, split, classes, spec, err));
	int len = (int)strlen(l->base[split]);
	if (!s->n) /* the base ends with a slash */
		return gt_fail(err, GT_EDATA, "%.600s%s%.*s: expected folders of %s, one for each class, got none", s->root, len ? "/" : "",
		               len ? len - 1 : 0, l->base[split], kind->what);
	return GT_OK;
}

enum gt_code gt_folder_split(const char *root, const struct gt_folder_kind *kind, enum gt_split split, const struct gt_dataset_spec *spec,
                             struct gt_source **out, struct gt_class_list *classes, struct gt_err *err)
{
	static const struct gt_dataset_spec none;
	*classes = (struct gt_class_list){0};
	GT_TRY(gt_folder_open(root, out, err));
	struct layout *l = malloc(sizeof *l);
	enum gt_code code = l ? list_split(*out, kind, split, spec ? spec : &none, classes, l, err) : gt_fail_memory(err, sizeof *l);
	free(l);
	if (code == GT_OK)
		return GT_OK;
	gt_source_close(*out);
	*out = NULL;
	gt_class_list_free(classes);
	return code;
}

enum gt_code gt_folder_find(const char *dir, enum gt_split split, struct gt_paths *paths, struct gt_err *err)
{
	(void)split;
	return gt_folder_is_source(dir) ? gt_paths_add(paths, "", dir, err) : GT_OK;
}

static enum gt_code load_split(const struct gt_dataset_spec *spec, enum gt_split split, const struct gt_paths *paths, bool headers_only,
                               struct gt_dataset *out, struct gt_err *err)
{
	(void)headers_only; /* even without headers_only, only file names are read */
	struct gt_class_list classes;
	struct gt_source *source;
	GT_TRY(gt_folder_split(paths->path[0], &gt_folder_images, split, spec, &source, &classes, err));
	return gt_dataset_take_source(spec, source, &classes, paths->path[0], out, err);
}

/* Sets *found if dir is an archive, or has a folder "train" or a folder with an image. An unreadable folder is an error if no other folder
 * has an image. */
static enum gt_code looks_like_images(const char *dir, bool *found, struct gt_err *err)
{
	DIR *d = gt_folder_dir(AT_FDCWD, dir);
	enum gt_code code = GT_OK;
	*found = false;
	if (!d && (errno == ENOENT || errno == ENOTDIR)) {
		*found = gt_folder_is_source(dir); /* an archive */
		return GT_OK;
	}
	if (!d)
		return gt_folder_fail_read(dir, "", err);
	for (struct dirent *e; !*found && (e = gt_folder_next(d));) {
		if (!gt_folder_is_dir(dirfd(d), e, e->d_name))
			continue;
		DIR *sub = gt_folder_dir(dirfd(d), e->d_name);
		bool train = split_rank(GT_TRAIN, e->d_name, strlen(e->d_name)) >= 0;
		if (!sub)
			code = code == GT_OK ? gt_folder_fail_read(dir, e->d_name, err) : code;
		for (struct dirent *f; sub && !*found && (f = gt_folder_next(sub));)
			*found = gt_folder_wants(&gt_folder_images, f->d_name) || (train && gt_folder_is_dir(dirfd(sub), f, f->d_name));
		if (sub)
			closedir(sub);
	}
	if (!*found && code == GT_OK && errno)
		code = gt_folder_fail_read(dir, "", err);
	closedir(d);
	return *found ? GT_OK : code;
}

static enum gt_code find_images(const char *dir, enum gt_split split, struct gt_paths *paths, struct gt_err *err)
{
	bool found;
	GT_TRY(looks_like_images(dir, &found, err));
	return found ? gt_folder_find(dir, split, paths, err) : GT_OK;
}

const struct gt_format gt_format_folder = {
	.name = "folder", .content = GT_CONTENT_FILES, .find = find_images, .load = load_split, .has_valid = true};
