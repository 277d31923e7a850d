/* Images that a CSV file, a TSV file (.tsv) or JSON Lines list: a column of paths, and either a column of class names or numeric target
 * columns.
 *
 *     file,label                file,labels                 file,age,weight
 *     cats/1.jpg,cat            1.jpg,sea sky               1.jpg,3.5,80
 *
 * With data.label_separator (here a space), an image has zero or more labels. The target is then f32 [classes], 1 for each label of the
 * image, else 0. With data.target_columns, the target is a row of values from these columns.
 *
 * The paths are relative to data.root or, without it, to the folder of the CSV file. The first record is a header unless its first field is
 * the name of an image. Columns are found by name; without a header, the path is first, then the label. */
#include "base/arena.h"
#include "class_list.h"
#include "csv.h"
#include "folder.h"
#include "format.h"
#include "sample_mark.h"
#include "source.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static const char *const path_names[] = {"path", "file", "filename", "file_name", "fname", "image", NULL};
static const char *const label_names[] = {"label", "labels", "class", "target", "category", NULL};
static const struct gt_folder_kind tab_separated = {"tables with tabs", {".tsv", ".tsv.gz"}};

#define MAX_TARGETS 256

/* The content of a list before labels are mapped to classes. */
struct list {
	const struct gt_dataset_spec *spec;
	struct gt_source *source;
	struct gt_class_list classes;
	char **label;  /* [source->n] label texts from malloc; NULL: the targets are numeric */
	float *number; /* [source->n, spec->ntargets]; NULL: the targets are labels */
	int64_t cap;   /* number of rows allocated in label or number */
};

static void free_list(struct list *l)
{
	for (int64_t i = 0; l->source && l->label && i < l->source->n; i++)
		free(l->label[i]);
	free(l->label);
	free(l->number);
	gt_class_list_free(&l->classes);
}

/* Returns the index of the column with the name `given` or, without it, of the first column with a usual name. -1: no such column. */
static int find_column(const struct gt_csv_record *r, const char *given, const char *const *usual)
{
	const char *const one[] = {given, NULL};
	for (const char *const *name = given && *given ? one : usual; *name; name++)
		for (int i = 0; i < r->n; i++)
			if (!strcasecmp(r->field[i], *name))
				return i;
	return -1;
}

/* Sets at[0] to the path column and at[1] to the label column, or at[1..] to the target columns. */
static enum gt_code find_columns(const struct gt_dataset_spec *spec, const char *path, const struct gt_csv_record *r, int *at,
                                 struct gt_err *err)
{
	static const char *const key[2] = {"data.path_column", "data.label_column"}, *const what[2] = {"paths", "labels"};
	const char *const given[2] = {spec->path_column, spec->label_column}, *const *const usual[2] = {path_names, label_names};
	for (int i = 0; i < spec->ntargets; i++) {
		at[1 + i] = find_column(r, spec->targets[i], label_names);
		if (at[1 + i] < 0)
			return gt_fail(err, GT_ECONFIG, "data.target_columns: expected columns of %.300s, got \"%.100s\"", path, spec->targets[i]);
	}
	for (int i = 0; i < (spec->ntargets ? 1 : 2); i++) {
		at[i] = find_column(r, given[i], usual[i]);
		if (at[i] < 0 && given[i] && *given[i])
			return gt_fail(err, GT_ECONFIG, "%s: expected a column of %.300s, got \"%.100s\"", key[i], path, given[i]);
		if (at[i] < 0)
			return gt_fail(err, GT_ECONFIG, "%s: %.300s has no column \"%s\"; write the name of the column with %s", key[i], path,
			               usual[i][0], what[i]);
	}
	return GT_OK;
}

/* Calls fn with each label of a cell. A label is a non-empty part between separators, or without data.label_separator the whole cell. */
static enum gt_code for_each_label(const struct gt_dataset_spec *spec, const char *cell, void *user,
                                   enum gt_code (*fn)(void *user, const char *label, size_t len, struct gt_err *err), struct gt_err *err)
{
	if (!spec->label_separator || !*spec->label_separator)
		return fn(user, cell, strlen(cell), err);
	for (size_t len; *cell; cell += len + (cell[len] != 0)) {
		len = strcspn(cell, spec->label_separator);
		if (len)
			GT_TRY(fn(user, cell, len, err));
	}
	return GT_OK;
}

static enum gt_code add_class(void *user, const char *label, size_t len, struct gt_err *err)
{
	return gt_class_list_add(user, label, len, err);
}

/* Parses the numeric targets of a record, whose file the caller then adds to the source. */
static enum gt_code add_numbers(struct list *l, const char *csv, const struct gt_csv_record *r, const int *at, struct gt_err *err)
{
	GT_GROW(l->number, l->cap, (l->source->n + 1) * l->spec->ntargets, err);
	for (int i = 0; i < l->spec->ntargets; i++) {
		char *end;
		float v = strtof(r->field[at[1 + i]], &end);
		if (*end || end == r->field[at[1 + i]] || !isfinite(v))
			return gt_fail(err, GT_EDATA, "%.400s:%lld: expected a finite number for %.100s, got \"%.100s\"", csv, (long long)r->line,
			               l->spec->targets[i], r->field[at[1 + i]]);
		l->number[l->source->n * l->spec->ntargets + i] = v;
	}
	return GT_OK;
}

static enum gt_code add_label(struct list *l, const char *csv, const struct gt_csv_record *r, const char *cell, struct gt_err *err)
{
	bool several = l->spec->label_separator && *l->spec->label_separator;
	if (!*cell && !several)
		return gt_fail(err, GT_EDATA, "%.400s:%lld: expected a path and a label, got an empty field", csv, (long long)r->line);
	GT_GROW(l->label, l->cap, l->source->n + 1, err);
	GT_TRY(for_each_label(l->spec, cell, &l->classes, add_class, err));
	l->label[l->source->n] = strdup(cell);
	return l->label[l->source->n] ? GT_OK : gt_fail_memory(err, strlen(cell));
}

static enum gt_code add_record(struct list *l, const char *csv, const struct gt_csv_record *r, const int *at, struct gt_err *err)
{
	int need = 0, n = l->spec->ntargets ? 1 + l->spec->ntargets : 2;
	for (int i = 0; i < n; i++)
		need = at[i] >= need ? at[i] + 1 : need;
	if (r->n < need)
		return gt_fail(err, GT_EDATA, "%.400s:%lld: expected at least %d fields, got %d", csv, (long long)r->line, need, r->n);
	const char *path = r->field[at[0]];
	if (!*path)
		return gt_fail(err, GT_EDATA, "%.400s:%lld: expected a path and a label, got an empty field", csv, (long long)r->line);
	if (faccessat(l->source->fd, path, R_OK, AT_EACCESS))
		return gt_fail_errno(err, GT_EDATA, errno, "%.400s:%lld: cannot read %.300s", csv, (long long)r->line, path);
	GT_TRY(l->spec->ntargets ? add_numbers(l, csv, r, at, err) : add_label(l, csv, r, r->field[at[1]], err));
	enum gt_code code = gt_source_add(l->source, path, 0, 0, err);
	if (code != GT_OK && l->label)
		free(l->label[l->source->n]);
	if (code != GT_OK)
		return code;
	uint64_t label = 0;
	for (int i = 1; i < n; i++)
		label = gt_mark_hash(r->field[at[i]], strlen(r->field[at[i]]), label);
	l->source->file[l->source->n - 1].label_hash = (uint32_t)(label & 0xffffff);
	return GT_OK;
}

static enum gt_code read_list(const struct gt_dataset_spec *spec, const char *path, struct list *l, struct gt_err *err)
{
	struct gt_csv *csv;
	struct gt_csv_record r;
	int at[1 + MAX_TARGETS] = {0, 1};
	if (spec->ntargets > MAX_TARGETS)
		return gt_fail(err, GT_ECONFIG, "data.target_columns: expected at most %d columns, got %d", MAX_TARGETS, spec->ntargets);
	GT_TRY(gt_csv_open(path, gt_folder_wants(&tab_separated, path) ? '\t' : ',', GT_UTF_8, 0, &csv, err));
	enum gt_code code = gt_csv_next(csv, &r, err);
	if (code == GT_OK && r.n && (r.names || !gt_folder_wants(&gt_folder_images, r.field[0]))) {
		code = find_columns(spec, path, &r, at, err);
		if (code == GT_OK)
			code = gt_csv_next(csv, &r, err);
	}
	else if (code == GT_OK && r.n && spec->ntargets)
		code = gt_fail(err, GT_ECONFIG, "data.target_columns: expected a first line with column names in %.300s, got \"%.100s\"", path,
		               r.field[0]);
	while (code == GT_OK && r.n) {
		code = add_record(l, path, &r, at, err);
		if (code == GT_OK)
			code = gt_csv_next(csv, &r, err);
	}
	gt_csv_close(csv);
	return code;
}

/* Opens the folder to which the paths are relative: data.root, else the folder of the CSV file. */
static enum gt_code open_base(const struct gt_dataset_spec *spec, const char *csv, struct gt_source **out, struct gt_err *err)
{
	char base[PATH_MAX];
	const char *slash = strrchr(csv, '/');
	snprintf(base, sizeof base, "%s", *spec->root ? spec->root : ".");
	if (!*spec->root && slash)
		snprintf(base, sizeof base, "%.*s", slash > csv ? (int)(slash - csv) : 1, csv);
	int fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return gt_fail_errno(err, gt_errno_code(errno, GT_ENOINPUT), errno, "%.600s: cannot open the directory", base);
	return gt_source_open(base, fd, false, out, err);
}

/* Opens the base of the paths and reads the lists. */
static enum gt_code read_lists(const struct gt_paths *paths, struct list *l, struct gt_err *err)
{
	if (paths->n)
		GT_TRY(open_base(l->spec, paths->path[0], &l->source, err));
	for (int i = 0; i < paths->n; i++)
		GT_TRY(read_list(l->spec, paths->path[i], l, err));
	return GT_OK;
}

/* Reads the classes from the lists of the training split, which also define the classes of other splits. */
static enum gt_code read_training_classes(const struct gt_dataset_spec *spec, struct gt_class_list *out, struct gt_err *err)
{
	struct list l = {.spec = spec};
	struct gt_paths paths = {0};
	enum gt_code code = GT_OK;
	for (int i = 0; i < spec->ntrain && code == GT_OK; i++)
		code = gt_paths_add(&paths, spec->root, spec->train[i], err);
	if (code == GT_OK)
		code = read_lists(&paths, &l, err);
	if (code == GT_OK)
		code = gt_class_list_check(&l.classes, paths.n ? paths.path[0] : "data.train", err);
	if (code == GT_OK) {
		*out = l.classes;
		l.classes = (struct gt_class_list){0};
	}
	free_list(&l);
	gt_source_close(l.source);
	gt_paths_free(&paths);
	return code;
}

/* The target of one sample, which for_each_label fills in. */
struct target_row {
	const struct gt_class_list *classes;
	float *v;               /* [classes] multi-hot row of the sample, if samples can have several labels; NULL: a sample has one label */
	int64_t label;          /* index of the class of the last label */
	const char *csv, *file; /* for messages */
};

static enum gt_code set_label(void *user, const char *label, size_t len, struct gt_err *err)
{
	struct target_row *t = user;
	int64_t k = gt_class_list_find(t->classes, label, len);
	if (k < 0)
		return gt_fail(err, GT_EDATA, "%.400s: the training split does not have the class \"%.*s\" of %.300s", t->csv,
		               len < 100 ? (int)len : 100, label, t->file);
	t->label = k;
	if (t->v)
		t->v[k] = 1;
	return GT_OK;
}

/* Creates multi-hot targets, f32 [n, classes], with rows in the order of the list. */
static enum gt_code make_multi_hot(const struct list *l, const struct gt_class_list *classes, const char *csv, float **out,
                                   struct gt_err *err)
{
	size_t count = (size_t)l->source->n * (size_t)classes->n;
	if (classes->n && (size_t)l->source->n > SIZE_MAX / sizeof **out / (size_t)classes->n)
		return gt_fail_memory(err, SIZE_MAX);
	GT_CALLOC(*out, count ? count : 1, err);
	for (int64_t i = 0; i < l->source->n; i++) {
		struct target_row row = {classes, *out + i * classes->n, 0, csv, gt_source_path(l->source, i)};
		GT_TRY(for_each_label(l->spec, l->label[i], &row, set_label, err));
	}
	return GT_OK;
}

/* Replaces the labels of a dataset by numeric targets, `rows`, which are in the order of the list. Takes ownership of rows. */
static enum gt_code take_number_targets(struct gt_dataset *d, float *rows, int64_t width, struct gt_err *err)
{
	size_t count = (size_t)(d->n * width);
	float *v = malloc(count * sizeof *v);
	for (int64_t i = 0; v && i < d->n; i++)
		memcpy(v + i * width, rows + d->labels[i] * width, (size_t)width * sizeof *v);
	free(rows);
	if (!v)
		return gt_fail_memory(err, count * sizeof *v);
	free(d->labels);
	d->labels = NULL;
	d->target = (struct gt_field){.name = "target", .dtype = GT_F32, .width = width, .data = v};
	return GT_OK;
}

static enum gt_code load_split(const struct gt_dataset_spec *spec, enum gt_split split, const struct gt_paths *paths, bool headers_only,
                               struct gt_dataset *out, struct gt_err *err)
{
	(void)headers_only;
	struct list l = {.spec = spec};
	struct gt_class_list classes = {0};
	float *rows = NULL;
	bool several = spec->label_separator && *spec->label_separator && !spec->ntargets;
	enum gt_code code = read_lists(paths, &l, err);
	if (code == GT_OK && !spec->ntargets && (split == GT_TRAIN || spec->known)) {
		code = spec->known ? gt_class_list_use(&l.classes, spec->known, spec->nknown, paths->path[0], err)
		                   : gt_class_list_check(&l.classes, paths->path[0], err);
		classes = l.classes;
		l.classes = (struct gt_class_list){0};
	} else if (code == GT_OK && !spec->ntargets) {
		code = read_training_classes(spec, &classes, err);
	}
	int64_t width = several ? classes.n : spec->ntargets;
	if (code == GT_OK && several)
		code = make_multi_hot(&l, &classes, paths->path[0], &rows, err);
	for (int64_t i = 0; code == GT_OK && i < l.source->n && width; i++)
		l.source->file[i].label = (int32_t)i;
	for (int64_t i = 0; code == GT_OK && i < l.source->n && !width; i++) {
		struct target_row row = {.classes = &classes, .csv = paths->path[0], .file = gt_source_path(l.source, i)};
		code = set_label(&row, l.label[i], strlen(l.label[i]), err);
		l.source->file[i].label = (int32_t)row.label;
	}
	if (code == GT_OK && !l.source->n)
		code = gt_fail(err, GT_EDATA, "%.600s: expected at least one image, got none", paths->path[0]);
	if (spec->ntargets) {
		rows = l.number;
		l.number = NULL;
	}
	free_list(&l);
	if (code == GT_OK) {
		code = gt_dataset_take_source(spec, l.source, &classes, paths->path[0], out, err);
		if (code == GT_OK && width)
			return take_number_targets(out, rows, width, err);
		free(rows);
		return code;
	}
	free(rows);
	gt_source_close(l.source);
	gt_class_list_free(&classes);
	return code;
}

const struct gt_format gt_format_list = {.name = "list", .content = GT_CONTENT_FILES, .by_name = true, .load = load_split};
