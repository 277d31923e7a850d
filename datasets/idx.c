/* IDX: a pair of files, images (u8, rank 3: N,H,W; rank 4: N,C,H,W; rank 2: N,features) and labels (u8, i16 or i32, rank 1). */
#include "base/arena.h"
#include "format.h"
#include "gzfile.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	int type, size;
	const char *name;
} types[] = {{0x08, 1, "u8"}, {0x09, 1, "i8"}, {0x0b, 2, "i16"}, {0x0c, 4, "i32"}, {0x0d, 4, "f32"}, {0x0e, 8, "f64"}};

static const char *type_name(int type)
{
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
		if (types[i].type == type)
			return types[i].name;
	return "unknown";
}

/* Parses and checks a header from the first `got` bytes of the content. */
static enum gt_code parse_header(const struct gt_gzfile *f, const uint8_t *b, size_t got, struct gt_idx *h, struct gt_err *err)
{
	*h = (struct gt_idx){0};
	if (got >= 2 && b[0] == 0x80 && b[1] >= 2 && b[1] <= 5)
		return gt_fail(err, GT_EDATA, "%s: expected an IDX file, got a Python pickle, which gtrain does not read because loading one runs "
		               "code",
		               f->shown);
	if (got < 4 || b[0] || b[1])
		return gt_fail(err, GT_EDATA, "%s: expected an IDX file, which begins with two zero bytes", f->shown);
	h->type = b[2];
	h->rank = b[3];
	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
		if (types[i].type == h->type)
			h->item = (uint64_t)types[i].size;
	if (!h->item)
		return gt_fail(err, GT_EDATA, "%s: unknown IDX type byte 0x%02x", f->shown, h->type);
	if (h->rank < 1 || h->rank > 4)
		return gt_fail(err, GT_EDATA, "%s: expected 1 to 4 dimensions, got %d", f->shown, h->rank);
	h->header = 4 + 4 * (uint64_t)h->rank;
	if (got < h->header)
		return gt_fail(err, GT_EDATA, "%s: truncated: the file ends inside the IDX header", f->shown);
	h->count = 1;
	for (int i = 0; i < h->rank; i++) {
		const uint8_t *d = b + 4 + 4 * i;
		h->dim[i] = (uint32_t)d[0] << 24 | (uint32_t)d[1] << 16 | (uint32_t)d[2] << 8 | d[3];
		if (!h->dim[i])
			return gt_fail(err, GT_EDATA, "%s: dimension %d of %d is 0", f->shown, i, h->rank);
		if (__builtin_mul_overflow(h->count, h->dim[i], &h->count))
			return gt_fail(err, GT_EDATA, "%s: the product of the file's dimensions overflows", f->shown);
	}
	if (__builtin_mul_overflow(h->count, h->item, &h->bytes) || __builtin_add_overflow(h->bytes, h->header, &h->bytes))
		return gt_fail(err, GT_EDATA, "%s: the product of the file's dimensions overflows", f->shown);
	return gt_gzfile_expect(f, h->bytes, err);
}

enum gt_code gt_idx_open(const char *path, uint64_t max_bytes, struct gt_gzfile *f, struct gt_idx *h, struct gt_err *err)
{
	uint8_t head[20];
	size_t got;
	GT_TRY(gt_gzfile_open(path, max_bytes, f, err));
	enum gt_code rc = gt_gzfile_head(f, head, sizeof head, &got, err);
	if (rc == GT_OK)
		rc = parse_header(f, head, got, h, err);
	if (rc != GT_OK)
		gt_gzfile_close(f);
	return rc;
}

static enum gt_code find_files(const char *dir, enum gt_split split, struct gt_paths *paths, struct gt_err *err)
{
	/* The files are searched in the folder itself and in the subfolders of torchvision, under the published names and under names with a
	 * dot, which some unpacking programs write. */
	static const char *const sub[] = {"", "/raw", "/FashionMNIST/raw", "/MNIST/raw"};
	static const char *const names[2][2][2] = {
	    {{"train-images-idx3-ubyte", "train-labels-idx1-ubyte"}, {"train-images.idx3-ubyte", "train-labels.idx1-ubyte"}},
	    {{"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}, {"t10k-images.idx3-ubyte", "t10k-labels.idx1-ubyte"}},
	};
	for (size_t s = 0; s < sizeof sub / sizeof sub[0]; s++) {
		char in[4096];
		if ((size_t)snprintf(in, sizeof in, "%s%s", dir, sub[s]) >= sizeof in)
			continue;
		for (int k = 0; k < 2; k++) {
			if (!gt_paths_find(paths, in, names[split == GT_TEST][k][0]))
				continue;
			/* Images without labels: reading them reports the missing file. */
			return gt_paths_find(paths, in, names[split == GT_TEST][k][1]) ? GT_OK : gt_paths_add(paths, in,
			               names[split == GT_TEST][k][1], err);
		}
	}
	return GT_OK;
}

struct pair {
	struct gt_gzfile image_file, label_file;
	struct gt_idx image, label;
};

static enum gt_code check_pair(struct pair *p, const struct gt_dataset_spec *spec, struct gt_dataset *out, struct gt_err *err)
{
	const struct gt_idx *im = &p->image, *la = &p->label;
	if (im->type != 0x08)
		return gt_fail(err, GT_EDATA, "%s: expected images of u8 elements (type byte 0x08), got %s (0x%02x)", p->image_file.shown,
		               type_name(im->type), im->type);
	if (im->rank < 2)
		return gt_fail(err, GT_EDATA, "%s: expected images with 2 to 4 dimensions, got %d", p->image_file.shown, im->rank);
	if (la->type != 0x08 && la->type != 0x0b && la->type != 0x0c)
		return gt_fail(err, GT_EDATA, "%s: expected labels of u8, i16 or i32, got %s (type byte 0x%02x)", p->label_file.shown,
		               type_name(la->type), la->type);
	if (la->rank != 1)
		return gt_fail(err, GT_EDATA, "%s: expected labels with one dimension, got %d", p->label_file.shown, la->rank);
	if (im->dim[0] != la->dim[0])
		return gt_fail(err, GT_EDATA, "%s has %u images, but %s has %u labels", p->image_file.shown, im->dim[0], p->label_file.shown,
		               la->dim[0]);
	out->n = im->dim[0];
	out->c = im->rank == 4 ? im->dim[1] : 1;
	out->h = im->rank == 4 ? im->dim[2] : im->rank == 3 ? im->dim[1] : 1;
	out->w = im->rank == 4 ? im->dim[3] : im->rank == 3 ? im->dim[2] : im->dim[1];
	return gt_dataset_check_shape(spec, out, p->image_file.shown, err);
}

static enum gt_code read_labels(struct pair *p, const struct gt_dataset_spec *spec, struct gt_dataset *out, struct gt_err *err)
{
	const struct gt_idx *h = &p->label;
	uint8_t *raw = malloc(h->bytes);
	out->labels = malloc((size_t)out->n * sizeof *out->labels);
	if (!raw || !out->labels) {
		free(raw);
		return gt_fail_memory(err, h->bytes);
	}
	enum gt_code rc = gt_gzfile_read(&p->label_file, raw, h->bytes, err);
	int64_t most = -1;
	for (int64_t i = 0; rc == GT_OK && i < out->n; i++) {
		const uint8_t *b = raw + h->header + (uint64_t)i * h->item;
		int32_t v = b[0];
		if (h->item == 2)
			v = (int16_t)(b[0] << 8 | b[1]);
		else if (h->item == 4)
			v = (int32_t)((uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3]);
		if (v < 0 || (spec->classes > 0 && v >= spec->classes))
			rc = gt_fail(err, GT_EDATA, "%s: label %d of sample %lld is outside of 0..%lld", p->label_file.shown, v, (long long)i,
			             (long long)(spec->classes > 0 ? spec->classes - 1 : INT32_MAX));
		out->labels[i] = v;
		if (v > most)
			most = v;
	}
	free(raw);
	out->classes = spec->classes > 0 ? spec->classes : most + 1;
	return rc;
}

static enum gt_code read_images(struct pair *p, struct gt_dataset *out, struct gt_err *err)
{
	const struct gt_idx *h = &p->image;
	uint8_t *raw = gt_big_alloc(h->bytes);
	if (!raw)
		return gt_fail_memory(err, h->bytes);
	enum gt_code rc = gt_gzfile_read(&p->image_file, raw, h->bytes, err);
	if (rc != GT_OK) {
		free(raw);
		return rc;
	}
	out->memory = raw;
	out->images = raw + h->header; /* one channel: the pixels in the file already are in NHWC order, so they are not copied */
	return out->c == 1 ? GT_OK : gt_dataset_interleave(out, err);
}

static enum gt_code load_files(const struct gt_dataset_spec *spec, enum gt_split split, const struct gt_paths *paths, bool headers_only,
                               struct gt_dataset *out, struct gt_err *err)
{
	struct pair p = {0};
	(void)split;
	if (paths->n != 2)
		return gt_fail(err, GT_ECONFIG, "data.%s: expected two files for an IDX split, images and labels, got %d",
		               split == GT_TEST ? "test" : "train", paths->n);
	enum gt_code rc = gt_idx_open(paths->path[0], spec->max_bytes, &p.image_file, &p.image, err);
	if (rc == GT_OK)
		rc = gt_idx_open(paths->path[1], spec->max_bytes, &p.label_file, &p.label, err);
	if (rc == GT_OK && p.image.rank == 1 && p.label.rank > 1) /* the user named labels before images */
		p = (struct pair){p.label_file, p.image_file, p.label, p.image};
	if (rc == GT_OK)
		rc = check_pair(&p, spec, out, err);
	if (rc == GT_OK)
		rc = read_labels(&p, spec, out, err);
	if (rc == GT_OK && !headers_only)
		rc = read_images(&p, out, err);
	gt_gzfile_close(&p.image_file);
	gt_gzfile_close(&p.label_file);
	return rc;
}

const struct gt_format gt_format_idx = {"idx", GT_CONTENT_ARRAYS, find_files, load_files};
