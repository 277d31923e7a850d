/* Reads images for `gtrain predict`: recognises a file by its first bytes, and converts it to the input of a model. */
#include "base/arena.h"
#include "dataset.h"
#include "format.h"
#include "gzfile.h"
#include "image/decode.h"
#include "image/transform.h"
#include <stdlib.h>
#include <string.h>

#define MAX_FILE ((uint64_t)256 << 20) /* maximum size of an encoded image */

/* The arguments and the result of gt_image_read. */
struct reading {
	struct gt_gzfile f;
	struct gt_image_job job; /* without the image */
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
		return gt_fail(err, GT_ECONFIG, "%lld images of [%d, %lld, %lld] are too large", (long long)n, j->c, (long long)j->h,
		               (long long)j->w);
	r->out = malloc(bytes);
	return r->out ? GT_OK : gt_fail_memory(err, bytes);
}

/* Reads the first `cap` images of an IDX file of u8 with rank 2 (one image: H,W), 3 (N,H,W) or 4 (N,C,H,W). */
static enum gt_code read_idx(struct reading *r, const char *path, struct gt_err *err)
{
	struct gt_idx x;
	struct gt_image_job *j = &r->job;
	uint8_t *raw = NULL, *tmp = NULL;
	gt_gzfile_close(&r->f);
	GT_TRY(gt_idx_open(path, GT_DEFAULT_MAX_BYTES, &r->f, &x, err));
	int64_t ic = x.rank == 4 ? x.dim[1] : 1, ih = x.dim[x.rank == 1 ? 0 : x.rank - 2], iw = x.dim[x.rank - 1],
	        count = x.rank > 2 ? x.dim[0] : 1;
	if (x.type != 0x08 || x.rank < 2)
		return gt_fail(err, GT_EDATA, "%s: expected images of u8 (type byte 0x08) with 2 to 4 dimensions, got type byte 0x%02x and %d "
		               "dimensions", r->f.shown, x.type, x.rank);
	if (ic != 1 && ic != 3)
		return gt_fail(err, GT_EDATA, "%s: expected images with 1 or 3 channels, got %lld", r->f.shown, (long long)ic);
	GT_TRY(gt_image_check_size(r->f.shown, iw, ih, err));
	GT_TRY(prepare_images(r, count < r->cap ? count : r->cap, ih, iw, err));
	enum gt_code rc = GT_OK;
	if (!((raw = gt_big_alloc(x.bytes)) && (tmp = malloc((size_t)(ih * iw * ic)))))
		rc = gt_fail_memory(err, x.bytes);
	if (rc == GT_OK)
		rc = gt_gzfile_read(&r->f, raw, x.bytes, err);
	for (int64_t i = 0; rc == GT_OK && i < r->n; i++) {
		const uint8_t *from = raw + x.header + i * ih * iw * ic;
		for (int64_t k = 0; ic == 3 && k < ih * iw; k++)
			for (int64_t ch = 0; ch < 3; ch++)
				tmp[3 * k + ch] = from[ch * ih * iw + k];
		j->pixels = ic == 3 ? tmp : from;
		j->ih = ih;
		j->iw = iw;
		j->ic = (int)ic;
		j->out = r->out + i * j->c * j->h * j->w;
		rc = gt_image_make(j, err);
	}
	free(raw);
	free(tmp);
	return rc;
}

static enum gt_code read_picture(struct reading *r, struct gt_err *err)
{
	uint8_t *raw;
	uint64_t size;
	struct gt_image_head head;
	GT_TRY(gt_gzfile_load(&r->f, &raw, &size, err));
	enum gt_code rc = gt_decode_head(raw, size, r->f.shown, r->job.scratch, &head, err);
	if (rc == GT_OK)
		rc = prepare_images(r, 1, head.h, head.w, err);
	r->job.raw = raw;
	r->job.size = size;
	r->job.out = r->out;
	if (rc == GT_OK)
		rc = gt_image_make(&r->job, err);
	free(raw);
	return rc;
}

enum gt_code gt_image_read(const char *path, struct gt_transform_list list, int64_t c, int64_t h, int64_t w, int64_t cap, uint8_t **out,
                           int64_t *n, bool *scaled, struct gt_err *err)
{
	const struct gt_transform resize = {.type = GT_TF_RESIZE, .size = {h, w}, .interpolation = GT_INTERP_BILINEAR};
	struct reading r = {.cap = cap, .job = {.list = list, .c = (int)c, .h = h, .w = w}};
	uint8_t b[12] = {0};
	size_t got;
	*out = NULL;
	*n = 0;
	*scaled = false;
	if (!list.n)
		r.job.list = (struct gt_transform_list){&resize, 1};
	if ((c != 1 && c != 3) || h < 1 || w < 1 || cap < 1)
		return gt_fail(err, GT_ECONFIG, "the model takes [%lld, %lld, %lld], but image files have 1 or 3 channels", (long long)c,
		               (long long)h, (long long)w);
	GT_TRY(gt_gzfile_open(path, MAX_FILE, &r.f, err));
	r.job.name = r.f.shown;
	enum gt_code rc = gt_gzfile_head(&r.f, b, sizeof b, &got, err);
	if (rc == GT_OK)
		rc = gt_image_scratch_open(&r.job.scratch, err);
	if (rc == GT_OK && gt_image_format_of(b, got) != GT_IMAGE_UNKNOWN)
		rc = read_picture(&r, err);
	else if (rc == GT_OK)
		rc = got >= 4 && !b[0] && !b[1] ? read_idx(&r, path, err)
		                                : gt_fail(err, GT_EDATA, "%s: expected a PNG, JPEG, WebP or IDX file", r.f.shown);
	gt_image_scratch_close(r.job.scratch);
	gt_gzfile_close(&r.f);
	if (rc != GT_OK) {
		free(r.out);
		return rc;
	}
	*out = r.out;
	*n = r.n;
	*scaled = !list.n && r.scaled;
	return GT_OK;
}
