/* Helpers for formats: lists of files, and checks of sizes. */
#include "format.h"
#include "base/arena.h"
#include "class_list.h"
#include "gzfile.h"
#include "sample_mark.h"
#include "source.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum gt_code gt_paths_add(struct gt_paths *p, const char *dir, const char *name, struct gt_err *err)
{
	if (p->n == GT_MAX_FILES)
		return gt_fail(err, GT_ECONFIG, "data.train: expected at most %d files for one split, got more", GT_MAX_FILES);
	bool bare = !*dir || *name == '/';
	if (asprintf(&p->path[p->n], "%s%s%s", bare ? "" : dir, bare ? "" : "/", name) < 0)
		return gt_fail_memory(err, 0);
	p->n++;
	return GT_OK;
}

bool gt_paths_find(struct gt_paths *p, const char *dir, const char *name)
{
	static const char *const ends[] = {"", ".gz"};
	for (int i = 0; i < 2; i++) {
		char path[PATH_MAX], file[256];
		snprintf(file, sizeof file, "%s%s", name, ends[i]);
		if ((size_t)snprintf(path, sizeof path, "%s/%s", dir, file) < sizeof path && !access(path, F_OK))
			return gt_paths_add(p, dir, file, NULL) == GT_OK;
	}
	return false;
}

void gt_paths_free(struct gt_paths *p)
{
	while (p->n > 0)
		free(p->path[--p->n]);
}

enum gt_code gt_dataset_interleave(struct gt_dataset *d, struct gt_err *err)
{
	size_t plane = (size_t)(d->h * d->w), c = (size_t)d->c, bytes = (size_t)d->n * plane * c;
	uint8_t *nhwc = gt_big_alloc(bytes);
	if (!nhwc)
		return gt_fail_memory(err, bytes);
	for (size_t i = 0; i < (size_t)d->n; i++)
		for (size_t k = 0; k < c; k++)
			for (size_t j = 0; j < plane; j++)
				nhwc[(i * plane + j) * c + k] = d->images[(i * c + k) * plane + j];
	free(d->memory);
	d->memory = d->images = nhwc;
	return GT_OK;
}

bool gt_product4(int64_t a, int64_t b, int64_t c, int64_t d, uint64_t *out)
{
	int64_t v = 0;
	bool bad = a < 0 || b < 0 || c < 0 || d < 0 || __builtin_mul_overflow(a, b, &v) || __builtin_mul_overflow(v, c, &v) ||
	           __builtin_mul_overflow(v, d, &v);
	*out = (uint64_t)v;
	return !bad;
}

enum gt_code gt_dataset_check_shape(const struct gt_dataset_spec *spec, const struct gt_dataset *d, const char *file, struct gt_err *err)
{
	const int64_t *s = spec->shape;
	uint64_t values;
	if (s[0] <= 0 || (s[0] == d->c && s[1] == d->h && s[2] == d->w))
		return GT_OK;
	/* A flat input receives the values in the order of the file, which for several channels is not PyTorch's order. */
	if (s[1] <= 1 && s[2] <= 1 && d->c == 1 && gt_product4(1, 1, d->h, d->w, &values) && values == (uint64_t)s[0])
		return GT_OK;
	bool last = s[0] == d->h && s[1] == d->w && s[2] == d->c; /* channels last, as in TensorFlow */
	return gt_fail(err, GT_ECONFIG, "model.input: expected [%lld, %lld, %lld], the shape of the images in %.500s, got [%lld, %lld, %lld]%s",
	               (long long)d->c, (long long)d->h, (long long)d->w, file, (long long)s[0], (long long)s[1], (long long)s[2],
	               last ? "; the channels come first" : "");
}

enum gt_code gt_dataset_take_source(const struct gt_dataset_spec *spec, struct gt_source *source, struct gt_class_list *classes,
                                    const char *where, struct gt_dataset *out, struct gt_err *err)
{
	const int64_t *in = spec->shape;
	out->source = source;
	out->class_name = classes->v;
	out->nclass_names = classes->n;
	*classes = (struct gt_class_list){0};
	if (in[0] && ((in[0] != 1 && in[0] != 3) || in[1] < 1 || in[2] < 1))
		return gt_fail(err, GT_ECONFIG, "model.input: expected [1, height, width] or [3, height, width] for images from files, got "
		               "[%lld, %lld, "
		               "%lld]", (long long)in[0], (long long)in[1], (long long)in[2]);
	if (spec->classes > 0 && out->nclass_names > spec->classes)
		return gt_fail(err, GT_ECONFIG, "data.classes: expected at least %lld, one for each class in %.400s, got %lld",
		               (long long)out->nclass_names, where, (long long)spec->classes);
	gt_source_thin_out(source, spec->limit);
	out->n = source->n;
	out->c = in[0];
	out->h = in[1];
	out->w = in[2];
	out->classes = spec->classes > 0 ? spec->classes : out->nclass_names;
	out->encoded = true;
	memcpy(out->left_out, source->left_out, sizeof out->left_out);
	out->file_bytes = gt_source_bytes(source);
	if (out->n && !(out->labels = malloc((size_t)out->n * sizeof *out->labels)))
		return gt_fail_memory(err, (size_t)out->n * sizeof *out->labels);
	for (int64_t i = 0; i < out->n; i++)
		out->labels[i] = source->file[i].label;
	return gt_dataset_mark_files(source, out, err);
}

enum gt_code gt_dataset_mark_files(const struct gt_source *source, struct gt_dataset *out, struct gt_err *err)
{
	free(out->mark);
	GT_CALLOC(out->mark, source->n, err);
	for (int64_t i = 0; i < source->n; i++) {
		const struct gt_source_file *f = &source->file[i];
		out->mark[i] = (struct gt_sample_mark){.id = f->id, .label = f->label_hash, .stratum = f->label};
	}
	return GT_OK;
}
