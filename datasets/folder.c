/* Folders of files, as torchvision.datasets.ImageFolder reads images, and .tar archives of such folders.
 *
 *     ROOT/train/CLASS/…/x.jpg     the training split; a class is a folder, and its files may be at any depth below it
 *     ROOT/valid/CLASS/…           or val/: the split "valid", if there is one
 *     ROOT/test/CLASS/…            the test split, if there is one
 *
 * Without ROOT/train, the other folders of ROOT are the classes of the training split. In an archive, ROOT may be one folder that has
 * everything. Classes are numbered in the order of their names, as bytes; the samples of a split are ordered by class, then by path. */
#include "base/arena.h"
#include "class_list.h"
#include "folder.h"
#include "format.h"
#include "sample_mark.h"
#include "source.h"
#include "tar.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_DEPTH = 32 };

/* The names of the folder of each split; the first that exists is used. */
static const char *const split_folders[GT_SPLITS][3] = {{"train"}, {"valid", "val"}, {"test"}};

const struct gt_folder_kind gt_folder_images = {gt_is_image_name, "images (.jpg, .jpeg, .png or .webp)"};

bool gt_is_image_name(const char *path)
{
	static const char *const ends[] = {".jpg", ".jpeg", ".png", ".webp"};
	const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
	if ((slash ? slash[1] : path[0]) == '.') /* a hidden file, such as the "._x.jpg" that macOS adds */
		return false;
	for (size_t i = 0; dot && i < sizeof ends / sizeof *ends; i++)
		if (!strcasecmp(dot, ends[i]))
			return true;
	return false;
}

/* ---- folders on disk ---------------------------------------------------------------------------------------------------------- */
/* The folders from the root of a walk to the current one, to detect links that lead back. */
struct trail {
	struct {
		dev_t dev;
		ino_t ino;
	} at[MAX_DEPTH + 1];
	int depth;
};

static enum gt_code cannot_read(const char *root, const char *path, struct gt_err *err)
{
	bool exhausted = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
	return gt_fail(err, exhausted ? GT_EFAIL : GT_ENOINPUT, "%.400s%s%.300s: cannot read the folder: %s", root, *path ? "/" : "", path,
	               strerror(errno));
}

static DIR *open_folder(int root, const char *path)
{
	int fd = openat(root, *path ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d && fd >= 0)
		close(fd);
	return d;
}

static bool is_folder(int root, const char *path)
{
	struct stat st;
	return !fstatat(root, path, &st, 0) && S_ISDIR(st.st_mode);
}

/* Adds all files of a kind below the folder `path` of the source's root. path has room for PATH_MAX bytes and is unchanged on return. */
static enum gt_code walk(struct gt_source *s, const struct gt_folder_kind *kind, char *path, struct trail *trail, struct gt_err *err)
{
	DIR *d = open_folder(s->fd, path);
	struct stat st;
	size_t len = strlen(path);
	enum gt_code code = GT_OK;
	if (!d)
		return cannot_read(s->root, path, err);
	if (fstat(dirfd(d), &st))
		code = cannot_read(s->root, path, err);
	for (int i = 0; code == GT_OK && i < trail->depth; i++)
		if (trail->at[i].dev == st.st_dev && trail->at[i].ino == st.st_ino)
			code = gt_fail(err, GT_EDATA, "%.400s/%.300s: a symbolic link leads back to a folder that contains it; remove the link",
			               s->root, path);
	if (code == GT_OK && trail->depth > MAX_DEPTH)
		code = gt_fail(err, GT_EDATA, "%.400s/%.300s: expected at most %d nested folders", s->root, path, MAX_DEPTH);
	if (code == GT_OK) {
		trail->at[trail->depth].dev = st.st_dev;
		trail->at[trail->depth++].ino = st.st_ino;
		for (;;) {
			errno = 0;
			struct dirent *e = readdir(d);
			if (!e) {
				code = errno ? cannot_read(s->root, path, err) : GT_OK;
				break;
			}
			if (e->d_name[0] == '.')
				continue;
			bool of_kind = kind->wanted(e->d_name);
			if (of_kind && e->d_type == DT_REG) {
				/* most files: their type is known without a call of stat */
			} else if (e->d_type != DT_DIR && e->d_type != DT_LNK && e->d_type != DT_UNKNOWN && !of_kind) {
				continue;
			}
			if ((size_t)snprintf(path + len, PATH_MAX - len, "%s%s", len ? "/" : "", e->d_name) >= PATH_MAX - len) {
				path[len] = 0;
				code = gt_fail(err, GT_EDATA, "%.400s/%.300s: a path in this folder has more than %d bytes", s->root, path, PATH_MAX - 1);
				break;
			}
			if (e->d_type == DT_DIR || (e->d_type != DT_REG && is_folder(s->fd, path)))
				code = walk(s, kind, path, trail, err);
			else if (of_kind)
				code = gt_source_add(s, path, 0, 0, err);
			path[len] = 0;
			if (code != GT_OK)
				break;
		}
		trail->depth--;
	}
	closedir(d);
	return code;
}

static bool is_split_folder(const char *name, size_t len)
{
	for (int s = 0; s < GT_SPLITS; s++)
		for (int k = 0; split_folders[s][k]; k++)
			if (strlen(split_folders[s][k]) == len && !strncmp(split_folders[s][k], name, len))
				return true;
	return false;
}

/* Returns whether a base, "" or a path with a slash at its end, is the folder of a split. */
static bool in_split_folder(const char *base)
{
	size_t n = strlen(base), from = n ? n - 1 : 0;
	while (from > 0 && base[from - 1] != '/')
		from--;
	return n && is_split_folder(base + from, n - 1 - from);
}

/* Writes the folder of a split relative to the root, with a slash at its end: "train/"; "" if the classes are in the root itself. Returns
 * false if there is none. */
static bool split_base(int root, enum gt_split split, char *base)
{
	for (int k = 0; split_folders[split][k]; k++)
		if (is_folder(root, split_folders[split][k])) {
			snprintf(base, PATH_MAX, "%s/", split_folders[split][k]);
			return true;
		}
	*base = 0;
	return split == GT_TRAIN;
}

/* Adds the names of the folders in `base` of the root: the classes. */
static enum gt_code list_classes(const char *root, int fd, const char *base, struct gt_class_list *out, struct gt_err *err)
{
	char path[PATH_MAX + 300];
	DIR *d = open_folder(fd, base);
	enum gt_code code = GT_OK;
	if (!d)
		return cannot_read(root, base, err);
	for (struct dirent *e; code == GT_OK && (errno = 0, e = readdir(d));) {
		if (e->d_name[0] == '.' || (e->d_type != DT_DIR && e->d_type != DT_LNK && e->d_type != DT_UNKNOWN))
			continue;
		if (!*base && is_split_folder(e->d_name, strlen(e->d_name)))
			continue;
		snprintf(path, sizeof path, "%s%s", base, e->d_name);
		if (e->d_type == DT_DIR || is_folder(fd, path))
			code = gt_class_list_add(out, e->d_name, strlen(e->d_name), err);
	}
	closedir(d);
	return code;
}

/* Adds the files of all classes of a split. */
static enum gt_code scan_folder(struct gt_source *s, const struct gt_folder_kind *kind, const char *base, struct gt_class_list *classes,
                                const struct gt_folder_terms *terms, struct gt_err *err)
{
	char path[PATH_MAX];
	struct gt_class_list own = {0};
	struct trail trail = {0};
	enum gt_code code = list_classes(s->root, s->fd, base, &own, err);
	for (int64_t i = 0; code == GT_OK && i < own.n; i++) {
		if ((size_t)snprintf(path, sizeof path, "%s%s", base, own.v[i]) >= sizeof path)
			continue;
		int64_t before = s->n;
		code = walk(s, kind, path, &trail, err);
		if (code == GT_OK && s->n == before && !terms->known && gt_class_list_find(classes, own.v[i], strlen(own.v[i])) >= 0)
			code = gt_fail(err, GT_EDATA, "%.400s/%.300s: the class has no %s", s->root, path, kind->what);
	}
	gt_class_list_free(&own);
	return code;
}

/* ---- archives ----------------------------------------------------------------------------------------------------------------- */
static size_t first_part(const char *path)
{
	return strcspn(path, "/");
}

/* Returns the length of the folder, with its slash, that contains all files and is no class: the N of N/train/… or N/CLASS/x.jpg. */
static size_t common_folder(const struct gt_source *s)
{
	const char *first = s->n ? gt_source_path(s, 0) : "";
	size_t len = first_part(first);
	if (!first[len] || is_split_folder(first, len))
		return 0;
	for (int64_t i = 0; i < s->n; i++) {
		const char *p = gt_source_path(s, i);
		if (strncmp(p, first, len + 1) || !strchr(p + len + 1, '/'))
			return 0;
	}
	return len + 1;
}

/* As split_base, for the files that an archive has. */
static bool archive_base(const struct gt_source *s, enum gt_split split, char *base)
{
	size_t common = common_folder(s);
	for (int k = 0; split_folders[split][k]; k++) {
		snprintf(base, PATH_MAX, "%.*s%s/", (int)common, s->n ? gt_source_path(s, 0) : "", split_folders[split][k]);
		for (int64_t i = 0; i < s->n; i++)
			if (!strncmp(gt_source_path(s, i), base, strlen(base)))
				return true;
	}
	snprintf(base, PATH_MAX, "%.*s", (int)common, s->n ? gt_source_path(s, 0) : "");
	return split == GT_TRAIN;
}

static enum gt_code archive_classes(const struct gt_source *s, const char *base, struct gt_class_list *out, struct gt_err *err)
{
	size_t skip = strlen(base);
	bool direct = !in_split_folder(base); /* then the folders of other splits are beside the classes */
	for (int64_t i = 0; i < s->n; i++) {
		const char *p = gt_source_path(s, i);
		size_t len = strncmp(p, base, skip) ? 0 : first_part(p + skip);
		if (!len || !p[skip + len] || (direct && is_split_folder(p + skip, len)))
			continue;
		GT_TRY(gt_class_list_add(out, p + skip, len, err));
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

/* Keeps the files below base, sets their labels and sorts them. */
static enum gt_code label(struct gt_source *s, const char *base, const struct gt_class_list *classes, const struct gt_folder_terms *terms,
                          struct gt_err *err)
{
	size_t skip = strlen(base);
	int64_t kept = 0;
	bool direct = !in_split_folder(base);
	for (int64_t i = 0; i < s->n; i++) {
		const char *p = gt_source_path(s, i);
		size_t len = strncmp(p, base, skip) ? 0 : first_part(p + skip);
		if (!len || !p[skip + len] || (direct && is_split_folder(p + skip, len)))
			continue;
		int64_t k = gt_class_list_find(classes, p + skip, len);
		if (k < 0 && terms->known)
			return gt_class_list_unknown(classes, p + skip, len, s->root, err);
		if (k < 0)
			return gt_fail(err, GT_EDATA, "%.400s%s%.300s: the class \"%.*s\" has no folder in the training split", s->root,
			               s->archive ? ": " : "/", p, (int)(len > 100 ? 100 : len), p + skip);
		s->file[kept] = s->file[i];
		s->file[kept].id = gt_mark_path(p + skip);
		s->file[kept++].label = (int32_t)k;
	}
	s->n = kept;
	if (s->n)
		qsort_r(s->file, (size_t)s->n, sizeof *s->file, by_label_and_path, s->names);
	return GT_OK;
}

/* Refuses a folder that has splits where all of it was asked for. */
static enum gt_code refuse_splits(const struct gt_source *s, const char *base, struct gt_err *err)
{
	const char *found = NULL;
	for (int i = 0; i < GT_SPLITS; i++)
		for (int k = 0; split_folders[i][k] && !s->archive; k++)
			if (is_folder(s->fd, split_folders[i][k]))
				found = split_folders[i][k];
	for (int64_t i = 0; i < s->n && s->archive; i++) {
		const char *p = gt_source_path(s, i) + strlen(base);
		if (is_split_folder(p, first_part(p)))
			return gt_fail(err, GT_EDATA, "%.600s: expected a folder for each class, got the split \"%.*s\"; unpack the archive, and name "
			               "the folder of one split", s->root, (int)first_part(p), p);
	}
	return !found ? GT_OK : gt_fail(err, GT_EDATA, "%.600s: expected a folder for each class, got the split \"%s\"; name the folder of "
	                                "one split, such as %.600s/%s", s->root, found, s->root, found);
}

static enum gt_code list_split(struct gt_source *s, const struct gt_folder_kind *kind, enum gt_split split,
                               const struct gt_folder_terms *terms, struct gt_class_list *classes, struct gt_err *err)
{
	char base[PATH_MAX] = "", train[PATH_MAX] = "";
	bool there = true;
	if (s->archive)
		GT_TRY(gt_tar_list(s, kind->wanted, err));
	if (terms->all && s->archive)
		snprintf(base, sizeof base, "%.*s", (int)common_folder(s), s->n ? gt_source_path(s, 0) : "");
	if (terms->all)
		GT_TRY(refuse_splits(s, base, err));
	if (terms->all) {
		strcpy(train, base);
	} else if (s->archive) {
		there = archive_base(s, split, base);
		archive_base(s, GT_TRAIN, train);
	} else {
		there = split_base(s->fd, split, base);
		split_base(s->fd, GT_TRAIN, train);
	}
	GT_TRY(s->archive ? archive_classes(s, train, classes, err) : list_classes(s->root, s->fd, train, classes, err));
	GT_TRY(terms->known ? gt_class_list_use(classes, terms->known, terms->nknown, s->root, err)
	                    : gt_class_list_check(classes, s->root, err));
	if (!there) {
		s->n = 0;
		return GT_OK;
	}
	if (!s->archive)
		GT_TRY(scan_folder(s, kind, base, classes, terms, err));
	GT_TRY(label(s, base, classes, terms, err));
	if (!s->n)
		return gt_fail(err, GT_EDATA, "%s: expected folders of %s, one for each class, got none", s->root, kind->what);
	return GT_OK;
}

enum gt_code gt_folder_open(const char *root, struct gt_source **out, struct gt_err *err)
{
	struct stat st;
	int fd = open(root, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st)) {
		if (fd >= 0)
			close(fd);
		return gt_fail(err, GT_ENOINPUT, "%s: cannot open: %s", root, strerror(errno));
	}
	return gt_source_open(root, fd, !S_ISDIR(st.st_mode), out, err);
}

static int by_path(const void *a, const void *b, void *names)
{
	return strcmp((char *)names + ((const struct gt_source_file *)a)->name, (char *)names + ((const struct gt_source_file *)b)->name);
}

enum gt_code gt_folder_list(struct gt_source *s, struct gt_err *err)
{
	char path[PATH_MAX] = "";
	struct trail trail = {0};
	GT_TRY(s->archive ? gt_tar_list(s, gt_is_image_name, err) : walk(s, &gt_folder_images, path, &trail, err));
	if (s->n)
		qsort_r(s->file, (size_t)s->n, sizeof *s->file, by_path, s->names);
	return GT_OK;
}

bool gt_folder_is_source(const char *path)
{
	struct stat st;
	size_t n = strlen(path);
	return !stat(path, &st) && (S_ISDIR(st.st_mode) || (S_ISREG(st.st_mode) && n > 4 && !strcmp(path + n - 4, ".tar")));
}

enum gt_code gt_folder_split(const char *root, const struct gt_folder_kind *kind, enum gt_split split, struct gt_source **out,
                             struct gt_class_list *classes, struct gt_err *err)
{
	return gt_folder_split_as(root, kind, split, &(struct gt_folder_terms){0}, out, classes, err);
}

enum gt_code gt_folder_split_as(const char *root, const struct gt_folder_kind *kind, enum gt_split split,
                                const struct gt_folder_terms *terms, struct gt_source **out, struct gt_class_list *classes,
                                struct gt_err *err)
{
	*classes = (struct gt_class_list){0};
	GT_TRY(gt_folder_open(root, out, err));
	enum gt_code code = list_split(*out, kind, split, terms, classes, err);
	if (code == GT_OK)
		return GT_OK;
	gt_source_close(*out);
	*out = NULL;
	gt_class_list_free(classes);
	return code;
}

static enum gt_code load(const struct gt_dataset_spec *spec, enum gt_split split, const struct gt_paths *paths, bool headers_only,
                         struct gt_dataset *out, struct gt_err *err)
{
	(void)headers_only; /* the names are all that is read, for gtrain check too */
	struct gt_class_list classes;
	struct gt_source *source;
	struct gt_folder_terms terms = {spec->known, spec->nknown, spec->all};
	GT_TRY(gt_folder_split_as(paths->path[0], &gt_folder_images, split, &terms, &source, &classes, err));
	return gt_dataset_take_source(spec, source, &classes, paths->path[0], out, err);
}

/* A folder is recognised by a folder train, or by a folder in it that has an image. */
static bool looks_like_images(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool found = false;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	for (struct dirent *e; !found && (e = readdir(d));) {
		if (e->d_name[0] == '.' || (e->d_type != DT_DIR && !is_folder(fd, e->d_name)))
			continue;
		DIR *sub = open_folder(fd, e->d_name);
		bool train = !strcmp(e->d_name, split_folders[GT_TRAIN][0]);
		for (struct dirent *f; sub && !found && (f = readdir(sub));)
			found = gt_is_image_name(f->d_name) || (train && f->d_name[0] != '.' && is_folder(dirfd(sub), f->d_name));
		if (sub)
			closedir(sub);
	}
	closedir(d);
	return found;
}

static enum gt_code find(const char *dir, enum gt_split split, struct gt_paths *paths, struct gt_err *err)
{
	(void)split;
	bool archive = gt_folder_is_source(dir) && !is_folder(AT_FDCWD, dir);
	return archive || looks_like_images(dir) ? gt_paths_add(paths, "", dir, err) : GT_OK;
}

const struct gt_format gt_format_folder = {.name = "folder", .find = find, .load = load, .has_valid = true};
