/* The table of formats. Finds a dataset by its name, in a folder, or by its files, and reads it with its format. */
#include "dataset.h"
#include "base/arena.h"
#include "base/spill.h"
#include "folder.h"
#include "format.h"
#include "gzfile.h"
#include "index_file.h"
#include "known.h"
#include "missing_files.h"
#include "numpy_file.h"
#include "fitted.h"
#include "sample_mark.h"
#include "source.h"
#include "table/table.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const gt_split_names[GT_SPLITS] = {"train", "valid", "test"};
enum { MAX_DIRS = 8 };

/* ---- formats ------------------------------------------------------------------------------------------------------------------ */
const struct gt_format *const gt_formats[] = {
#define X(name) &gt_format_##name,
	GT_FORMATS(X)
#undef X
	NULL,
};

/* Returns NULL if no format has this name in a config, or if word is NULL. */
static const struct gt_format *find_format(const char *word)
{
	for (int i = 0; word && gt_formats[i]; i++)
		if (!strcmp(gt_formats[i]->name, word))
			return gt_formats[i];
	return NULL;
}

enum gt_content gt_format_content(const char *word)
{
	const struct gt_format *f = find_format(word);
	return f ? f->content : GT_CONTENT_UNKNOWN;
}

bool gt_format_has_valid(const char *word)
{
	const struct gt_format *f = find_format(word);
	return f && f->has_valid;
}

const struct gt_folder_kind *gt_format_input(const char *word)
{
	const struct gt_format *f = find_format(word);
	return f && f->input ? f->input : &gt_folder_images;
}

const struct gt_fitting *gt_dataset_fitting(const struct gt_dataset_spec *spec)
{
	const struct gt_format *f = find_format(spec->format);
	return f ? f->fitting : NULL;
}

enum gt_code gt_fitted_new(const struct gt_fitting *by, struct gt_fitted **out, struct gt_err *err)
{
	GT_CALLOC(*out, 1, err);
	(*out)->by = by;
	return GT_OK;
}

void gt_fitted_free(struct gt_fitted *l)
{
	if (!l)
		return;
	l->by->forget(l);
	free(l);
}

/* ---- search ----------------------------------------------------------------------------------------------------------------- */
enum gt_code gt_dataset_cache(const char *name, char *buf, size_t size, struct gt_err *err)
{
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	int n;
	/* The XDG specification requires that relative paths are ignored: each working directory would have its own cache. */
	if (xdg && *xdg == '/')
		n = snprintf(buf, size, "%s/gtrain/%s", xdg, name);
	else if (home && *home == '/')
		n = snprintf(buf, size, "%s/.cache/gtrain/%s", home, name);
	else
		return gt_fail(err, GT_ENOINPUT, "neither XDG_CACHE_HOME nor HOME is set to an absolute path, so gtrain has no cache directory; "
		               "set one of them");
	if ((size_t)n >= size)
		return gt_fail(err, GT_ENOINPUT, "the path of the user's cache is too long");
	return GT_OK;
}

struct dirs {
	int n;
	char path[MAX_DIRS][PATH_MAX];
};

static void add_dir(struct dirs *d, const char *base, const char *name)
{
	if (d->n < MAX_DIRS && (size_t)snprintf(d->path[d->n], PATH_MAX, "%s%s%s", base, *name ? "/" : "", name) < PATH_MAX)
		d->n++;
}

static void list_dirs(const struct gt_dataset_spec *spec, const struct gt_known_dataset *known, struct dirs *d)
{
	const char *own[] = {spec->name, NULL}, *const *names = known ? known->folders : own;
	const char *data = getenv("GTRAIN_DATA");
	char cache[PATH_MAX];
	if (*spec->root) {
		add_dir(d, spec->root, "");
		return;
	}
	for (int i = 0; data && *data && names[i]; i++)
		add_dir(d, data, names[i]);
	if (gt_dataset_cache(spec->name, cache, sizeof cache, NULL) == GT_OK)
		add_dir(d, cache, "");
	for (int i = 0; names[i]; i++)
		add_dir(d, "/usr/share/datasets", names[i]);
}

static enum gt_code fail_not_found(const struct gt_dataset_spec *spec, enum gt_split split, const struct gt_known_dataset *known,
                                   const struct dirs *d, struct gt_err *err)
{
	char where[600] = "", lacks[1000];
	for (int i = 0; i < d->n; i++) {
		size_t n = strlen(where);
		snprintf(where + n, sizeof where - n, "%s%s", i ? ", " : "", d->path[i]);
	}
	for (int i = 0; i < d->n; i++)
		if (gt_missing_files(d->path[i], split, lacks, sizeof lacks))
			return gt_fail(err, GT_ENOINPUT, "data.%s: %s", *spec->root ? "root" : "name", lacks);
	if (*spec->root && access(spec->root, F_OK) && errno != ENOENT && errno != ENOTDIR)
		return gt_fail_errno(err, GT_ENOINPUT, errno, "data.root: cannot open %.300s", spec->root);
	if (*spec->root && !access(spec->root, F_OK) && faccessat(AT_FDCWD, spec->root, R_OK | X_OK, AT_EACCESS) && errno == EACCES)
		return gt_fail_errno(err, GT_ENOINPUT, errno, "data.root: cannot read the directory %.300s", spec->root);
	if (*spec->root && access(spec->root, F_OK))
		return gt_fail(err, GT_ENOINPUT, "data.root: expected the directory of the data, but %.300s does not exist%s%.40s%s", spec->root,
		               known ? "; without data.root, `gtrain fetch " : "", known ? known->name : "", known ? "` downloads it" : "");
	if (known && *spec->root)
		return gt_fail(err, GT_ENOINPUT, "data.root: %.300s has no %s files of %s", spec->root, known->format, known->name);
	if (known)
		return gt_fail(err, GT_ENOINPUT, "data.name: the dataset %s was not found in %s; `gtrain fetch %s` downloads it; if it is "
		               "elsewhere, name its directory with data.root",
		               known->name, where, known->name);
	if (*spec->root)
		return gt_fail(err, GT_ENOINPUT,
		               "data.root: %.300s has no image folders (train/CLASS/x.jpg or CLASS/x.jpg) and no IDX or CIFAR files with their "
		               "usual names; list such files in data.train and data.test", spec->root);
	const char *near = gt_known_near(spec->name);
	if (near)
		return gt_fail(err, GT_ENOINPUT, "data.name: the dataset \"%.100s\" was not found in %s; did you mean \"%s\"? For your own "
		               "data, write data.root, or data.format, data.train and data.test", spec->name, where, near);
	return gt_fail(err, GT_ENOINPUT,
	               "data.name: the dataset \"%.100s\" was not found in %s; known names are fashion-mnist, mnist, cifar10, cifar100 and "
	               "synthetic; for your own data, write data.root, or data.format, data.train and data.test",
	               spec->name, where);
}

/* Detects the format of files that the config names. Only IDX and NumPy files can be detected by content; CIFAR files cannot. */
static enum gt_code detect_format(const char *path, const struct gt_format **out, struct gt_err *err)
{
	struct gt_gzfile f;
	uint8_t b[4] = {1};
	size_t got;
	if (gt_numpy_is_file(path)) {
		*out = &gt_format_numpy;
		return GT_OK;
	}
	GT_TRY(gt_gzfile_open(path, GT_DEFAULT_MAX_BYTES, &f, err));
	enum gt_code rc = gt_gzfile_head(&f, b, sizeof b, &got, err);
	if (rc == GT_OK && got == 4 && !b[0] && !b[1] && b[2] >= 8 && b[2] <= 14 && b[3] >= 1 && b[3] <= 4)
		*out = &gt_format_idx;
	else if (rc == GT_OK)
		rc = gt_fail(err, GT_ECONFIG, "%s: expected an IDX or NumPy file; write data.format = \"cifar10\" or \"cifar100\" for a file of "
		             "these datasets", f.shown);
	gt_gzfile_close(&f);
	return rc;
}

static enum gt_code search_dirs(const struct gt_dataset_spec *spec, enum gt_split split, const struct gt_known_dataset *known,
                                const struct gt_format **format, struct gt_paths *paths, char *where, size_t size, struct gt_err *err)
{
	struct dirs *d;
	GT_CALLOC(d, 1, err);
	list_dirs(spec, known, d);
	enum gt_code rc = GT_OK;
	for (int i = 0; i < d->n && rc == GT_OK && !paths->n; i++) {
		for (int k = 0; gt_formats[k] && rc == GT_OK && !paths->n; k++) {
			if (!gt_formats[k]->find || (*format ? *format != gt_formats[k] : gt_formats[k]->by_name))
				continue;
			rc = gt_formats[k]->find(d->path[i], split, paths, err);
			if (rc == GT_OK && paths->n) {
				*format = gt_formats[k];
				snprintf(where, size, "%s", d->path[i]);
			}
		}
	}
	if (rc == GT_OK && !paths->n)
		rc = fail_not_found(spec, split, known, d, err);
	free(d);
	return rc;
}

static enum gt_code use_given_files(const struct gt_dataset_spec *spec, enum gt_split split, const struct gt_format **format,
                                    struct gt_paths *paths, char *where, size_t size, struct gt_err *err)
{
	const char *const *list = split == GT_TEST ? spec->test : spec->train;
	int n = split == GT_TEST ? spec->ntest : spec->ntrain;
	for (int i = 0; i < n; i++)
		GT_TRY(gt_paths_add(paths, spec->root, list[i], err));
	if (!*format)
		GT_TRY(detect_format(paths->path[0], format, err));
	bool pair = n == 2 && (*format == &gt_format_idx || *format == &gt_format_numpy); /* first images, then labels */
	if (n > 1 && !pair)
		snprintf(where, size, "%s and %d more file%s", paths->path[0], n - 1, n == 2 ? "" : "s");
	else
		snprintf(where, size, "%s", paths->path[0]);
	return GT_OK;
}

/* ---- reading ---------------------------------------------------------------------------------------------------------------- */
static enum gt_code choose_files(const struct gt_dataset_spec *spec, enum gt_split split, const struct gt_known_dataset *known,
                                 const struct gt_format **format, struct gt_paths *paths, char *where, size_t size, struct gt_err *err)
{
	const char *name = strcmp(spec->format, "auto")       ? spec->format
	                   : !strcmp(spec->name, "synthetic") ? "synthetic"
	                   : known                            ? known->format
	                                                      : NULL;
	*format = NULL;
#define X(word) ", " #word
	if (name && !(*format = find_format(name)))
		return gt_fail(err, GT_ECONFIG, "data.format: expected %s or auto, got \"%.100s\"", &GT_FORMATS(X)[2], name);
#undef X
	if (*format == &gt_format_synthetic) {
		snprintf(where, size, "made from the seed");
		return GT_OK;
	}
	if (split == GT_TEST ? spec->ntest : spec->ntrain)
		return use_given_files(spec, split, format, paths, where, size, err);
	if (*format && !(*format)->find && !spec->ntest && !spec->ntrain)
		return gt_fail(err, GT_ECONFIG, "data.train: expected the files of data.format = \"%s\", got none", (*format)->name);
	if (*format && !(*format)->find && split != GT_TRAIN) /* data.train and data.test name all splits of a list */
		return GT_OK;
	if (spec->ntest || spec->ntrain)
		return gt_fail(err, GT_ECONFIG, "data.%s: expected files of this split, because data.%s lists files, got none",
		               split == GT_TEST ? "test" : "train",
		               split == GT_TEST ? "train" : "test");
	if (strchr(spec->name, '/') || spec->name[0] == '.' || (!*spec->name && !*spec->root))
		return gt_fail(err, GT_ECONFIG, "data.name: expected the name of a dataset, got \"%.100s\"; write the path of a directory in "
		               "data.root", spec->name);
	return search_dirs(spec, split, known, format, paths, where, size, err);
}

/* Returns the spec with defaults for the members that are not set. */
static struct gt_dataset_spec fill_defaults(const struct gt_dataset_spec *given)
{
	struct gt_dataset_spec spec = *given;
	spec.name = spec.name ? spec.name : "";
	spec.root = spec.root ? spec.root : "";
	spec.format = spec.format && *spec.format ? spec.format : "auto";
	spec.max_bytes = spec.max_bytes ? spec.max_bytes : GT_DEFAULT_MAX_BYTES;
	return spec;
}

enum gt_code gt_dataset_files(const struct gt_dataset_spec *given, enum gt_split split, struct gt_paths *paths, char *where, size_t size,
                              struct gt_err *err)
{
	struct gt_dataset_spec spec = fill_defaults(given);
	const struct gt_format *format;
	char at[sizeof((struct gt_dataset *)0)->where - 16] = "";
	*paths = (struct gt_paths){0};
	GT_TRY(choose_files(&spec, split, gt_known_find(spec.name), &format, paths, at, sizeof at, err));
	snprintf(where, size, "%s: %s", format->name, at);
	return GT_OK;
}

static enum gt_code read_split(const struct gt_dataset_spec *given, enum gt_split split, bool headers_only, struct gt_dataset *out,
                               struct gt_err *err)
{
	struct gt_dataset_spec spec = fill_defaults(given);
	struct gt_paths paths = {0};
	const struct gt_format *format;
	char where[sizeof out->where - 16] = ""; /* the data does not have this split */
	*out = (struct gt_dataset){0};
	const struct gt_known_dataset *known = gt_known_find(spec.name);
	if (known && spec.classes <= 0 && !spec.ntrain && !spec.ntest)
		spec.classes = known->classes;
	enum gt_code rc = choose_files(&spec, split, known, &format, &paths, where, sizeof where, err);
	if (rc == GT_OK && (split != GT_VALID || format->has_valid) && (paths.n || format == &gt_format_synthetic))
		rc = format->load(&spec, split, &paths, headers_only, out, err);
	gt_paths_free(&paths);
	if (rc != GT_OK) {
		gt_dataset_free(out);
		return rc;
	}
	if (spec.limit > 0 && out->n > spec.limit)
		out->n = spec.limit;
	snprintf(out->where, sizeof out->where, "%s: %s", format->name, where);
	return GT_OK;
}

enum gt_code gt_dataset_read(const struct gt_dataset_spec *spec, enum gt_split split, struct gt_dataset *out, struct gt_err *err)
{
	return read_split(spec, split, false, out, err);
}

void gt_dataset_free_array(const struct gt_dataset *d, void *p)
{
	if (!gt_index_owns(d->mapped, p))
		gt_spill_free(d->spill, p);
}

/* Frees the per-sample data of a dataset. */
static void free_samples(struct gt_dataset *d)
{
	free(d->memory);
	gt_dataset_free_array(d, d->labels);
	gt_source_close(d->source);
	gt_source_close(d->text_files);
	gt_table_free(d->row_lines);
	free(d->row_lines);
	d->text_files = NULL;
	d->row_lines = NULL;
	if (d->raw)
		d->fitting->drop(d->raw);
	d->raw = NULL;
	d->source = NULL;
	d->labels = NULL;
	d->images = NULL;
	d->memory = NULL;
	for (int i = -1; i < d->nfields; i++) {
		struct gt_field *f = i < 0 ? &d->target : &d->field[i];
		gt_dataset_free_array(d, f->data);
		gt_dataset_free_array(d, f->start);
		f->data = NULL;
		f->start = NULL;
	}
}

enum gt_code gt_dataset_probe(const struct gt_dataset_spec *spec, enum gt_split split, struct gt_dataset *out, struct gt_err *err)
{
	enum gt_code rc = read_split(spec, split, true, out, err);
	free_samples(out);
	return rc;
}

uint64_t gt_dataset_bytes(const struct gt_dataset *d)
{
	uint64_t ragged = 0, each = d->encoded ? 0 : (uint64_t)(d->c * d->h * d->w);
	each += d->target.width ? (uint64_t)d->target.width * gt_dtype_size(d->target.dtype) : sizeof *d->labels;
	for (int i = 0; i < d->nfields; i++)
		if (!d->field[i].ragged)
			each += (uint64_t)(d->field[i].width ? d->field[i].width : 1) * gt_dtype_size(d->field[i].dtype);
		else if (d->field[i].start)
			ragged += (uint64_t)d->field[i].start[d->n] * sizeof(int32_t) + (uint64_t)(d->n + 1) * sizeof(int64_t);
	each += d->mark ? sizeof *d->mark : 0;
	if (d->text_files)
		ragged += gt_source_bytes(d->text_files);
	if (d->row_lines)
		ragged += gt_table_bytes(d->row_lines);
	return (uint64_t)d->n * each + ragged + d->file_bytes + (d->raw ? d->fitting->raw_bytes(d->raw, NULL) : 0);
}

const char *gt_dataset_sample_name(const struct gt_dataset *d, int64_t i, char *buf, size_t size)
{
	int64_t line;
	const char *where = strstr(d->where, ": ");
	if (d->source || d->text_files)
		return gt_source_name(d->source ? d->source : d->text_files, i, buf, size);
	if (d->row_lines) {
		const char *path = gt_table_where(d->row_lines, i, &line);
		snprintf(buf, size, "%s:%lld", path, (long long)line);
		return buf;
	}
	bool made = !strncmp(d->where, "synthetic: ", 11);
	snprintf(buf, size, "%s[%lld]", made ? "synthetic" : where ? where + 2 : d->where, (long long)i);
	return buf;
}

void gt_dataset_free(struct gt_dataset *d)
{
	if (!d)
		return;
	free_samples(d);
	for (int64_t i = 0; i < d->nclass_names; i++)
		free(d->class_name[i]);
	free(d->class_name);
	gt_dataset_free_array(d, d->mark);
	gt_spill_close(d->spill);
	gt_index_close(d->mapped);
	*d = (struct gt_dataset){0};
}
