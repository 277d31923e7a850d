/* Images that a CSV file lists: a column of paths and a column of class names.
 *
 *     file,label
 *     cats/1.jpg,cat
 *
 * The paths are relative to data.root or, without it, to the folder of the CSV file. The first record is a header unless its first field is
 * the name of an image. The columns are found by their names; a file without a header has the path first, then the label. */
#include "base/arena.h"
#include "class_list.h"
#include "csv.h"
#include "format.h"
#include "source.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static const char *const path_names[] = {"path", "file", "filename", "file_name", "fname", "image", NULL};
static const char *const label_names[] = {"label", "labels", "class", "target", "category", NULL};

/* What is read of a list before the labels are known. */
struct list {
	struct gt_source *source;
	struct gt_class_list classes;
	char **label; /* [source->n], malloc'ed */
	int64_t cap;
};

static void list_free(struct list *l)
{
	for (int64_t i = 0; l->source && l->label && i < l->source->n; i++)
		free(l->label[i]);
	free(l->label);
	gt_class_list_free(&l->classes);
}

/* Returns the index of the column with a name: the config's, else the first of the usual ones. -1: there is none. */
static int column(const struct gt_csv_record *r, const char *given, const char *const *usual)
{
	const char *const one[] = {given, NULL};
	for (const char *const *name = given && *given ? one : usual; *name; name++)
		for (int i = 0; i < r->n; i++)
			if (!strcasecmp(r->field[i], *name))
				return i;
	return -1;
}

static enum gt_code find_columns(const struct gt_dataset_spec *spec, const char *path, const struct gt_csv_record *r, int at[2],
                                 struct gt_err *err)
{
	static const char *const key[2] = {"data.path_column", "data.label_column"}, *const what[2] = {"paths", "labels"};
	const char *const given[2] = {spec->path_column, spec->label_column}, *const *const usual[2] = {path_names, label_names};
	for (int i = 0; i < 2; i++) {
		at[i] = column(r, given[i], usual[i]);
		if (at[i] < 0 && given[i] && *given[i])
			return gt_fail(err, GT_ECONFIG, "%s: expected a column of %.300s, got \"%.100s\"", key[i], path, given[i]);
		if (at[i] < 0)
			return gt_fail(err, GT_ECONFIG, "%s: %.300s has no column \"%s\"; write the name of its column of %s", key[i], path,
			               usual[i][0],
			               what[i]);
	}
	return GT_OK;
}

static enum gt_code add(struct list *l, const char *csv, const struct gt_csv_record *r, const int at[2], struct gt_err *err)
{
	int need = (at[0] > at[1] ? at[0] : at[1]) + 1;
	if (r->n < need)
		return gt_fail(err, GT_EDATA, "%.400s:%lld: expected at least %d fields, got %d", csv, (long long)r->line, need, r->n);
	const char *path = r->field[at[0]], *label = r->field[at[1]];
	if (!*path || !*label)
		return gt_fail(err, GT_EDATA, "%.400s:%lld: expected a path and a label, got an empty field", csv, (long long)r->line);
	if (faccessat(l->source->fd, path, R_OK, AT_EACCESS))
		return gt_fail(err, GT_EDATA, "%.400s:%lld: cannot read %.300s: %s", csv, (long long)r->line, path, strerror(errno));
	if (l->source->n == l->cap) {
		int64_t cap = l->cap ? 2 * l->cap : 1024;
		char **grown = realloc(l->label, (size_t)cap * sizeof *grown);
		if (!grown)
			return gt_fail_memory(err, (size_t)cap * sizeof *grown);
		l->label = grown;
		l->cap = cap;
	}
	char *copy = strdup(label);
	if (!copy)
		return gt_fail_memory(err, strlen(label));
	enum gt_code code = gt_class_list_add(&l->classes, label, strlen(label), err);
	if (code == GT_OK)
		code = gt_source_add(l->source, path, 0, 0, err);
	if (code == GT_OK)
		l->label[l->source->n - 1] = copy;
	else
		free(copy);
	return code;
}

static enum gt_code read_list(const struct gt_dataset_spec *spec, const char *path, struct list *l, struct gt_err *err)
{
	struct gt_csv *csv;
	struct gt_csv_record r;
	int at[2] = {0, 1};
	GT_TRY(gt_csv_open(path, ',', &csv, err));
	enum gt_code code = gt_csv_next(csv, &r, err);
	if (code == GT_OK && r.n && !gt_is_image_name(r.field[0])) {
		code = find_columns(spec, path, &r, at, err);
		if (code == GT_OK)
			code = gt_csv_next(csv, &r, err);
	}
	while (code == GT_OK && r.n) {
		code = add(l, path, &r, at, err);
		if (code == GT_OK)
			code = gt_csv_next(csv, &r, err);
	}
	gt_csv_close(csv);
	return code;
}

/* Opens the folder to which the paths are relative: data.root, else that of the CSV file. */
static enum gt_code open_base(const struct gt_dataset_spec *spec, const char *csv, struct gt_source **out, struct gt_err *err)
{
	char base[PATH_MAX];
	const char *slash = strrchr(csv, '/');
	snprintf(base, sizeof base, "%s", *spec->root ? spec->root : ".");
	if (!*spec->root && slash)
		snprintf(base, sizeof base, "%.*s", slash > csv ? (int)(slash - csv) : 1, csv);
	int fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return gt_fail(err, GT_ENOINPUT, "%.600s: cannot open the folder: %s", base, strerror(errno));
	return gt_source_open(base, fd, false, out, err);
}

/* The classes are those of the lists of the training split, also for other splits. */
static enum gt_code training_classes(const struct gt_dataset_spec *spec, struct gt_class_list *out, struct gt_err *err)
{
	struct list l = {0};
	struct gt_paths paths = {0};
	enum gt_code code = GT_OK;
	for (int i = 0; i < spec->ntrain && code == GT_OK; i++)
		code = gt_paths_add(&paths, spec->root, spec->train[i], err);
	if (code == GT_OK && paths.n)
		code = open_base(spec, paths.path[0], &l.source, err);
	for (int i = 0; i < paths.n && code == GT_OK; i++)
		code = read_list(spec, paths.path[i], &l, err);
	if (code == GT_OK)
		code = gt_class_list_check(&l.classes, paths.n ? paths.path[0] : "data.train", err);
	if (code == GT_OK) {
		*out = l.classes;
		l.classes = (struct gt_class_list){0};
	}
	list_free(&l);
	gt_source_close(l.source);
	gt_paths_free(&paths);
	return code;
}

static enum gt_code load(const struct gt_dataset_spec *spec, enum gt_split split, const struct gt_paths *paths, bool headers_only,
                         struct gt_dataset *out, struct gt_err *err)
{
	(void)headers_only;
	struct list l = {0};
	struct gt_class_list classes = {0};
	enum gt_code code = open_base(spec, paths->path[0], &l.source, err);
	for (int i = 0; i < paths->n && code == GT_OK; i++)
		code = read_list(spec, paths->path[i], &l, err);
	if (code == GT_OK && split == GT_TRAIN) {
		code = gt_class_list_check(&l.classes, paths->path[0], err);
		classes = l.classes;
		l.classes = (struct gt_class_list){0};
	} else if (code == GT_OK) {
		code = training_classes(spec, &classes, err);
	}
	for (int64_t i = 0; code == GT_OK && i < l.source->n; i++) {
		int64_t k = gt_class_list_find(&classes, l.label[i], strlen(l.label[i]));
		if (k < 0)
			code = gt_fail(err, GT_EDATA, "%.400s: the class \"%.100s\" of %.300s does not occur in the training split", paths->path[0],
			               l.label[i], gt_source_path(l.source, i));
		l.source->file[i].label = (int32_t)k;
	}
	if (code == GT_OK && !l.source->n)
		code = gt_fail(err, GT_EDATA, "%.600s: expected at least one image, got none", paths->path[0]);
	list_free(&l);
	if (code == GT_OK)
		return gt_dataset_take_source(spec, l.source, &classes, paths->path[0], out, err);
	gt_source_close(l.source);
	gt_class_list_free(&classes);
	return code;
}

const struct gt_format gt_format_list = {.name = "list", .by_name = true, .load = load};
