/* Reads images for `gtrain predict`: recognises a file by its first bytes, and converts it to the input of a model. */
#include "base/arena.h"
#include "dataset.h"
#include "format.h"
#include "gzfile.h"
#include "image/decode.h"
#include "image/transform.h"
#include "numpy_images.h"
#include <stdlib.h>
#include <string.h>

#define MAX_FILE ((uint64_t)256 << 20) /* maximum size of an encoded image */

/* The arguments and the result of gt_image_read and gt_image_decode. */
struct reading {
	struct gt_gzfile f;
	struct gt_image_job job; /* without the image */
	struct gt_transform resize; /* the only transform if the list of transforms is empty */
	int64_t cap, n;
	uint8_t *out;
	bool scaled;
};

/* Allocates the results of n images of h x w pixels, and the memory to make them. */
static enum gt_code prepare_images(struct reading *r, int64_t n, int64_t h, int64_t w, struct gt_err *err)
{
	struct gt_image_job *j = &r->job;
	uint64_t bytes;
	r->n = n;
	r->scaled = h != j->h || w != j->w;
	if (!gt_product4(n, j->c, j->h, j->w, &bytes) || bytes > GT_DEFAULT_MAX_BYTES)
		return gt_fail(err, GT_ECONFIG, "%lld images of [%d, %lld, %lld] need too much memory", (long long)n, j->c, (long long)j->h,
		               (long long)j->w);
	r->out = malloc(bytes);
	return r->out ? GT_OK : gt_fail_memory(err, bytes);
}

/* Images of the same size in memory. */
struct raw_images {
	const uint8_t *data;
	int64_t n, c, h, w;
	bool channels_last;
};

/* Makes the first r->n images. */
static enum gt_code make_images(struct reading *r, const struct raw_images *from, struct gt_err *err)
{
	struct gt_image_job *j = &r->job;
	int64_t plane = from->h * from->w, c = from->c;
	bool copied = !from->channels_last && c > 1;
	uint8_t *tmp = copied ? malloc((size_t)(plane * c)) : NULL;
	enum gt_code rc = copied && !tmp ? gt_fail_memory(err, (size_t)(plane * c)) : GT_OK;
	j->ih = from->h;
	j->iw = from->w;
	j->ic = (int)c;
	for (int64_t i = 0; rc == GT_OK && i < r->n; i++) {
		const uint8_t *image = from->data + i * plane * c;
		for (int64_t k = 0; copied && k < plane; k++)
			for (int64_t ch = 0; ch < c; ch++)
				tmp[c * k + ch] = image[ch * plane + k];
		j->pixels = copied ? tmp : image;
		j->out = r->out + i * j->c * j->h * j->w;
		rc = gt_image_make(j, err);
	}
	free(tmp);
	return rc;
}

/* Checks the shape of the images of a file, and prepares their results. */
static enum gt_code prepare_array(struct reading *r, const struct raw_images *from, const char *name, struct gt_err *err)
{
	if (from->c != 1 && from->c != 3)
		return gt_fail(err, GT_EDATA, "%s: expected images with 1 or 3 channels, got %lld", name, (long long)from->c);
	GT_TRY(gt_image_check_size(name, from->w, from->h, err));
	return prepare_images(r, from->n < r->cap ? from->n : r->cap, from->h, from->w, err);
}

/* Reads the first `cap` images of an IDX file of u8 with rank 2 (one image: H,W), 3 (N,H,W) or 4 (N,C,H,W). */
static enum gt_code read_idx(struct reading *r, const char *path, struct gt_err *err)
{
	struct gt_idx x;
	gt_gzfile_close(&r->f);
	GT_TRY(gt_idx_open(path, GT_DEFAULT_MAX_BYTES, &r->f, &x, err));
	if (x.type != 0x08 || x.rank < 2)
		return gt_fail(err, GT_EDATA, "%s: expected images of u8 (type byte 0x08) with 2 to 4 dimensions, got type byte 0x%02x and %d "
		               "dimensions", r->f.shown, x.type, x.rank);
	struct raw_images from = {.n = x.rank > 2 ? x.dim[0] : 1, .c = x.rank == 4 ? x.dim[1] : 1, .h = x.dim[x.rank - 2],
	                          .w = x.dim[x.rank - 1]};
	GT_TRY(prepare_array(r, &from, r->f.shown, err));
	uint8_t *raw = gt_big_alloc(x.bytes);
	enum gt_code rc = raw ? gt_gzfile_read(&r->f, raw, x.bytes, err) : gt_fail_memory(err, x.bytes);
	from.data = raw + x.header;
	if (rc == GT_OK)
		rc = make_images(r, &from, err);
	free(raw);
	return rc;
}

/* Reads the images of arrays that gt_numpy_list has found. */
static enum gt_code read_listed(struct reading *r, const char *path, struct gt_numpy *f, struct gt_err *err)
{
	struct gt_numpy_images m = {.images = f->n == 1 ? &f->array[0] : NULL};
	if (!m.images)
		gt_numpy_images_find(f, GT_TEST, &m);
	if (!m.images)
		return gt_fail(err, GT_EDATA, "%s: expected images in an array named x, images, x_test or test_images, got none", r->f.shown);
	m.labels = NULL; /* gt_predict needs images only, so labels are not checked */
	GT_TRY(gt_numpy_images_check(r->f.shown, &m, err));
	struct raw_images from = {.n = m.n, .c = m.c, .h = m.h, .w = m.w, .channels_last = m.channels_last};
	GT_TRY(prepare_array(r, &from, r->f.shown, err));
	GT_TRY(gt_numpy_load(path, m.images, GT_DEFAULT_MAX_BYTES, err));
	from.data = m.images->data;
	return make_images(r, &from, err);
}

/* Reads the first `cap` images of a .npy file, or of an .npz file's test split or only images. */
static enum gt_code read_numpy(struct reading *r, const char *path, struct gt_err *err)
{
	struct gt_numpy *f = malloc(sizeof *f);
	if (!f)
		return gt_fail_memory(err, sizeof *f);
	enum gt_code rc = gt_numpy_list(path, f, err);
	if (rc == GT_OK)
		rc = read_listed(r, path, f, err);
	gt_numpy_free(f);
	free(f);
	return rc;
}

/* Makes the image of an encoded file in memory. */
static enum gt_code make_picture(struct reading *r, const uint8_t *bytes, uint64_t size, const char *name, struct gt_err *err)
{
	struct gt_image_head head;
	GT_TRY(gt_decode_head(bytes, size, name, r->job.scratch, &head, err));
	GT_TRY(prepare_images(r, 1, head.h, head.w, err));
	r->job.raw = bytes;
	r->job.size = size;
	r->job.out = r->out;
	return gt_image_make(&r->job, err);
}

static enum gt_code read_picture(struct reading *r, struct gt_err *err)
{
	uint8_t *raw;
	uint64_t size;
	GT_TRY(gt_gzfile_load(&r->f, &raw, &size, err));
	enum gt_code rc = make_picture(r, raw, size, r->f.shown, err);
	free(raw);
	return rc;
}

/* Sets the transforms and the shape of the result. */
static enum gt_code begin_reading(struct reading *r, struct gt_transform_list list, int64_t c, int64_t h, int64_t w, int64_t cap,
                                  struct gt_err *err)
{
	*r = (struct reading){.cap = cap, .job = {.list = list, .c = (int)c, .h = h, .w = w}};
	r->resize = (struct gt_transform){.type = GT_TF_RESIZE, .size = {h, w}, .interpolation = GT_INTERP_BILINEAR};
	if (!list.n)
		r->job.list = (struct gt_transform_list){&r->resize, 1};
	if ((c != 1 && c != 3) || h < 1 || w < 1 || cap < 1)
		return gt_fail(err, GT_ECONFIG, "the model takes [%lld, %lld, %lld], but image files have 1 or 3 channels", (long long)c,
		               (long long)h, (long long)w);
	return gt_image_scratch_open(&r->job.scratch, err);
}

/* Frees the memory of a reading, and moves its result to *out. */
static enum gt_code end_reading(struct reading *r, enum gt_code rc, bool resized, uint8_t **out, bool *scaled)
{
	gt_image_scratch_close(r->job.scratch);
	gt_gzfile_close(&r->f);
	*out = rc == GT_OK ? r->out : NULL;
	*scaled = rc == GT_OK && resized && r->scaled;
	if (rc != GT_OK)
		free(r->out);
	return rc;
}

enum gt_code gt_image_decode(const char *name, const uint8_t *bytes, size_t size, struct gt_transform_list list, int64_t c, int64_t h,
                             int64_t w, uint8_t **out, bool *scaled, struct gt_err *err)
{
	struct reading r;
	enum gt_code rc = begin_reading(&r, list, c, h, w, 1, err);
	r.job.name = name;
	if (rc == GT_OK)
		rc = make_picture(&r, bytes, size, name, err);
	return end_reading(&r, rc, !list.n, out, scaled);
}

/* Reads an open file; the first bytes of the file select the decoder. */
static enum gt_code read_by_kind(struct reading *r, const char *path, struct gt_err *err)
{
	uint8_t b[12] = {0};
	size_t got;
	GT_TRY(gt_gzfile_head(&r->f, b, sizeof b, &got, err));
	if (gt_image_format_of(b, got) != GT_IMAGE_UNKNOWN)
		return read_picture(r, err);
	if (gt_numpy_is_file(path))
		return read_numpy(r, path, err);
	return got >= 4 && !b[0] && !b[1] ? read_idx(r, path, err)
	                                  : gt_fail(err, GT_EDATA, "%s: expected a PNG, JPEG, WebP, IDX or NumPy file", r->f.shown);
}

enum gt_code gt_image_read(const char *path, struct gt_transform_list list, int64_t c, int64_t h, int64_t w, int64_t cap, uint8_t **out,
                           int64_t *n, bool *scaled, struct gt_err *err)
{
	struct reading r;
	enum gt_code rc = begin_reading(&r, list, c, h, w, cap, err);
	if (rc == GT_OK)
		rc = gt_gzfile_open(path, MAX_FILE, &r.f, err);
	r.job.name = r.f.shown;
	if (rc == GT_OK)
		rc = read_by_kind(&r, path, err);
	*n = rc == GT_OK ? r.n : 0;
	return end_reading(&r, rc, !list.n, out, scaled);
}
