/* The format "numpy": images and labels in an .npz file, or in two .npy files (numpy_images.h). All arrays are read into memory. Other
 * arrays are tables: format "csv" reads them (numpy_rows.h). */
#include "base/arena.h"
#include "format.h"
#include "numpy_images.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const pairs[][2] = {{"x", "y"}, {"X", "Y"}, {"X", "y"}, {"images", "labels"}, {"image", "label"},
                                       {"data", "labels"}, {"data", "target"}, {"data", "targets"}};
static const char *const words[GT_SPLITS][2] = {{"train", NULL}, {"valid", "val"}, {"test", NULL}};
enum { PAIRS = sizeof pairs / sizeof *pairs };

/* ---- names ---------------------------------------------------------------------------------------------------------------------- */
/* Finds the array NAME_WORD or WORD_NAME; word NULL: NAME. */
static struct gt_numpy_array *find_array(struct gt_numpy *f, const char *name, const char *word)
{
	char text[2][40];
	snprintf(text[0], sizeof text[0], "%s%s%s", name, word ? "_" : "", word ? word : "");
	snprintf(text[1], sizeof text[1], "%s%s%s", word ? word : "", word ? "_" : "", name);
	struct gt_numpy_array *a = gt_numpy_find(f, text[0]);
	return a ? a : gt_numpy_find(f, text[1]);
}

/* Finds a pair of arrays, or images without labels if no pair exists. */
static bool find_pair(struct gt_numpy *f, const char *word, struct gt_numpy_images *out)
{
	for (int i = 0; i < PAIRS; i++) {
		struct gt_numpy_array *x = find_array(f, pairs[i][0], word), *y = find_array(f, pairs[i][1], word);
		if (x && (y || !out->images)) {
			out->images = x;
			out->labels = y;
		}
		if (x && y)
			return true;
	}
	return out->images;
}

bool gt_numpy_images_split(struct gt_numpy *f, enum gt_split split)
{
	struct gt_numpy_images m = {0};
	return find_pair(f, words[split][0], &m) || (words[split][1] && find_pair(f, words[split][1], &m));
}

void gt_numpy_images_find(struct gt_numpy *f, enum gt_split split, struct gt_numpy_images *out)
{
	*out = (struct gt_numpy_images){0};
	if (find_pair(f, words[split][0], out) || (words[split][1] && find_pair(f, words[split][1], out)))
		return;
	if (split != GT_VALID)
		find_pair(f, NULL, out);
}

bool gt_numpy_images_in(const char *path, bool *has_test)
{
	struct gt_numpy *f = malloc(sizeof *f);
	struct gt_numpy_images m = {0};
	bool found = f && gt_numpy_is_file(path) && gt_numpy_list(path, f, NULL) == GT_OK;
	*has_test = false;
	if (found) {
		gt_numpy_images_find(f, GT_TRAIN, &m);
		*has_test = gt_numpy_images_split(f, GT_TEST);
		found = m.labels && m.images->rank > 2;
		gt_numpy_free(f);
	}
	free(f);
	return found;
}

/* ---- shapes --------------------------------------------------------------------------------------------------------------------- */
static void set_layout(struct gt_numpy_images *m)
{
	const uint64_t *d = m->images->dim;
	int rank = m->images->rank;
	bool last = rank == 4 && (d[3] == 1 || d[3] == 3) && d[1] != 1 && d[1] != 3;
	m->n = (int64_t)d[0];
	m->c = rank < 4 ? 1 : (int64_t)d[last ? 3 : 1];
	m->h = rank == 2 ? 1 : (int64_t)d[rank == 4 && !last ? 2 : 1];
	m->w = (int64_t)d[rank == 4 && !last ? 3 : rank == 2 ? 1 : 2];
	m->channels_last = last || m->c == 1;
}

enum gt_code gt_numpy_images_check(const char *where, struct gt_numpy_images *m, struct gt_err *err)
{
	char text[200];
	const struct gt_numpy_array *x = m->images, *y = m->labels;
	const char *name = *x->name ? x->name : "the array";
	if (x->kind != 'u' || x->item != 1 || x->rank < 2 || x->rank > 4 || !x->count)
		return gt_fail(err, GT_EDATA, "%.400s: %.100s: expected images of uint8 [n, height, width], with channels first or last, got %s; "
		               "write (255 * x).astype(\"uint8\") for images from 0 to 1, or data.format = \"csv\" for rows of numbers", where,
		               name, gt_numpy_text(x, text, sizeof text));
	set_layout(m);
	if (!y)
		return GT_OK;
	if (!strchr("biu", y->kind) || y->rank < 1 || y->count != y->dim[0])
		return gt_fail(err, GT_EDATA, "%.400s: %.100s: expected integer labels [n], got %s; write np.argmax(y, 1) for one-hot rows",
		               where, *y->name ? y->name : "the labels", gt_numpy_text(y, text, sizeof text));
	if (y->count != x->dim[0])
		return gt_fail(err, GT_EDATA, "%.400s: expected as many labels as images, got %llu images and %llu labels", where,
		               (unsigned long long)x->dim[0], (unsigned long long)y->count);
	return GT_OK;
}

/* ---- the format ----------------------------------------------------------------------------------------------------------------- */
/* The one or two files of a split. */
struct files {
	struct gt_numpy file[2];
	const char *path[2];     /* paths of the files with the images and with the labels */
	struct gt_numpy_images m;
};

/* Finds the arrays of an .npz file. Leaves f->m.images NULL if the split "valid" was requested and the file lacks it. */
static enum gt_code find_in_one(const struct gt_dataset_spec *spec, enum gt_split split, const char *path, struct files *f,
                                struct gt_err *err)
{
	const char *key = split == GT_TEST ? "test" : "train";
	f->path[0] = f->path[1] = path;
	GT_TRY(gt_numpy_list(path, &f->file[0], err));
	gt_numpy_images_find(&f->file[0], split, &f->m);
	if (!f->m.images && split == GT_VALID)
		return GT_OK;
	if (!*f->file[0].array[0].name)
		return gt_fail(err, GT_ECONFIG, "data.%s: expected an .npz file, or two .npy files of images and labels, got only %.400s", key,
		               path);
	if (!f->m.images)
		return gt_fail(err, GT_EDATA, "%.400s: expected arrays x (images) and y (labels), or x_%s and y_%s, got \"%.100s\"%s", path, key,
		               key, f->file[0].array[0].name, f->file[0].n > 1 ? " and others" : "");
	if (!f->m.labels)
		return gt_fail(err, GT_EDATA, "%.400s: expected labels for the images \"%.100s\", such as y for x, got none", path,
		               f->m.images->name);
	if (split == GT_TEST && spec->ntrain && !strcmp(spec->train[0], spec->test[0]) && !gt_numpy_images_split(&f->file[0], GT_TEST))
		return gt_fail(err, GT_ECONFIG, "data.test: expected a different file than data.train, or arrays x_test and y_test in %.400s, got "
		               "the training data", path);
	return GT_OK;
}

/* Finds the arrays of two .npy files, images and labels in any order. */
static enum gt_code find_in_two(char *const *path, struct files *f, struct gt_err *err)
{
	for (int i = 0; i < 2; i++) {
		f->path[i] = path[i];
		GT_TRY(gt_numpy_list(path[i], &f->file[i], err));
		if (f->file[i].n != 1)
			return gt_fail(err, GT_EDATA, "%.400s: expected one array, got %d", path[i], f->file[i].n);
	}
	bool swap = f->file[0].array[0].rank < f->file[1].array[0].rank;
	f->path[0] = path[swap];
	f->path[1] = path[!swap];
	f->m = (struct gt_numpy_images){.images = &f->file[swap].array[0], .labels = &f->file[!swap].array[0]};
	return GT_OK;
}

static enum gt_code take_labels(const struct gt_dataset_spec *spec, const struct files *f, struct gt_dataset *out, struct gt_err *err)
{
	const struct gt_numpy_array *y = f->m.labels;
	int64_t most = -1, limit = spec->classes > 0 ? spec->classes - 1 : INT32_MAX - 1;
	if (!(out->labels = malloc((size_t)out->n * sizeof *out->labels)))
		return gt_fail_memory(err, (size_t)out->n * sizeof *out->labels);
	for (int64_t i = 0; i < out->n; i++) {
		int64_t v = gt_numpy_integer(y, (uint64_t)i);
		if (v < 0 || v > limit)
			return gt_fail(err, GT_EDATA, "%.400s: label %lld of sample %lld is outside of 0..%lld", f->path[1], (long long)v, (long long)i,
			               (long long)limit);
		out->labels[i] = (int32_t)v;
		most = v > most ? v : most;
	}
	out->classes = spec->classes > 0 ? spec->classes : most + 1;
	return GT_OK;
}

static enum gt_code take_images(struct files *f, struct gt_dataset *out, struct gt_err *err)
{
	out->memory = f->m.images->memory;
	out->images = f->m.images->data;
	f->m.images->memory = NULL;
	return f->m.channels_last ? GT_OK : gt_dataset_interleave(out, err);
}

static enum gt_code load_arrays(const struct gt_dataset_spec *spec, struct files *f, bool headers_only, struct gt_dataset *out,
                                struct gt_err *err)
{
	GT_TRY(gt_numpy_images_check(f->path[0], &f->m, err));
	out->n = f->m.n;
	out->c = f->m.c;
	out->h = f->m.h;
	out->w = f->m.w;
	GT_TRY(gt_dataset_check_shape(spec, out, f->path[0], err));
	GT_TRY(gt_numpy_load(f->path[1], f->m.labels, spec->max_bytes, err));
	GT_TRY(take_labels(spec, f, out, err));
	if (headers_only)
		return GT_OK;
	GT_TRY(gt_numpy_load(f->path[0], f->m.images, spec->max_bytes, err));
	return take_images(f, out, err);
}

static enum gt_code load_split(const struct gt_dataset_spec *spec, enum gt_split split, const struct gt_paths *paths, bool headers_only,
                               struct gt_dataset *out, struct gt_err *err)
{
	struct files *f;
	if (split == GT_VALID && paths->n != 1)
		return GT_OK;
	if (paths->n > 2)
		return gt_fail(err, GT_ECONFIG, "data.%s: expected an .npz file, or two .npy files of images and labels, got %d files",
		               split == GT_TEST ? "test" : "train", paths->n);
	GT_CALLOC(f, 1, err);
	enum gt_code code = paths->n == 1 ? find_in_one(spec, split, paths->path[0], f, err) : find_in_two(paths->path, f, err);
	if (code == GT_OK && f->m.images)
		code = load_arrays(spec, f, headers_only, out, err);
	gt_numpy_free(&f->file[0]);
	gt_numpy_free(&f->file[1]);
	free(f);
	return code;
}

const struct gt_format gt_format_numpy = {.name = "numpy", .content = GT_CONTENT_ARRAYS, .load = load_split, .has_valid = true};
