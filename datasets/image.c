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

static struct gt_transform make_resize(int64_t h, int64_t w)
{
	return (struct gt_transform){.type = GT_TF_RESIZE, .size = {h, w}, .interpolation = GT_INTERP_BILINEAR};
}

static enum gt_code alloc_images(int64_t n, int64_t c, int64_t h, int64_t w, uint8_t **out, struct gt_err *err)
{
	uint64_t bytes;
	if (!gt_product4(n, c, h, w, &bytes) || bytes > GT_DEFAULT_MAX_BYTES)
		return gt_fail(err, GT_ECONFIG, "%lld images of [%lld, %lld, %lld] are too large", (long long)n, (long long)c, (long long)h,
		               (long long)w);
	*out = malloc(bytes);
	return *out ? GT_OK : gt_fail_memory(err, bytes);
}

/* Reads the first `cap` images of an IDX file of u8 with rank 2 (one image: H,W), 3 (N,H,W) or 4 (N,C,H,W). */
static enum gt_code read_idx(const char *path, struct gt_transform_list list, int64_t c, int64_t h, int64_t w, int64_t cap,
               uint8_t **out, int64_t *n, bool *scaled,
                             struct gt_err *err)
{
	struct gt_gzfile f = {0};
	struct gt_idx x;
	uint8_t *raw = NULL, *tmp = NULL;
	struct gt_transform resize = make_resize(h, w);
	bool fit = !list.n;
	struct gt_image_scratch *s = NULL;
	GT_TRY(gt_idx_open(path, GT_DEFAULT_MAX_BYTES, &f, &x, err));
	int64_t ic = x.rank == 4 ? x.dim[1] : 1, ih = x.dim[x.rank == 1 ? 0 : x.rank - 2], iw = x.dim[x.rank - 1],
	        count = x.rank > 2 ? x.dim[0] : 1;
	enum gt_code rc = GT_OK;
	if (x.type != 0x08 || x.rank < 2)
		rc = gt_fail(err, GT_EDATA, "%s: expected images of u8 (type byte 0x08) with 2 to 4 dimensions, got type byte 0x%02x and %d "
		             "dimensions",
		             f.shown, x.type,
		             x.rank);
	else if (ic != 1 && ic != 3)
		rc = gt_fail(err, GT_EDATA, "%s: expected images with 1 or 3 channels, got %lld", f.shown, (long long)ic);
	else
		rc = gt_image_check_size(f.shown, iw, ih, err);
	*n = count < cap ? count : cap;
	if (rc == GT_OK)
		rc = alloc_images(*n, c, h, w, out, err);
	if (rc == GT_OK && !((raw = gt_big_alloc(x.bytes)) && (tmp = malloc((size_t)(ih * iw * ic)))))
		rc = gt_fail_memory(err, x.bytes);
	if (rc == GT_OK)
		rc = gt_gzfile_read(&f, raw, x.bytes, err);
	if (rc == GT_OK)
		rc = gt_image_scratch_open(&s, err);
	for (int64_t i = 0; rc == GT_OK && i < *n; i++) {
		const uint8_t *from = raw + x.header + i * ih * iw * ic;
		for (int64_t k = 0; ic == 3 && k < ih * iw; k++)
			for (int64_t ch = 0; ch < 3; ch++)
				tmp[3 * k + ch] = from[ch * ih * iw + k];
		rc = gt_image_transform(ic == 3 ? tmp : from, ih, iw, (int)ic, f.shown, fit ? (struct gt_transform_list){&resize, 1} : list,
		               NULL, (int)c, h, w,
		                        s, *out + i * c * h * w, err);
	}
	gt_image_scratch_close(s);
	*scaled = fit && (ih != h || iw != w);
	gt_gzfile_close(&f);
	free(raw);
	free(tmp);
	return rc;
}

static enum gt_code read_picture(struct gt_gzfile *f, struct gt_transform_list list, int64_t c, int64_t h, int64_t w, uint8_t **out,
               int64_t *n, bool *scaled,
                                 struct gt_err *err)
{
	uint8_t *raw;
	uint64_t size;
	int64_t ih, iw;
	int ic;
	struct gt_transform resize = make_resize(h, w);
	bool fit = !list.n;
	struct gt_image_scratch *s = NULL;
	GT_TRY(gt_gzfile_load(f, &raw, &size, err));
	enum gt_code rc = gt_image_scratch_open(&s, err);
	if (rc == GT_OK)
		rc = gt_image_probe(raw, size, f->shown, s, &ih, &iw, &ic, err);
	if (rc == GT_OK)
		rc = alloc_images(1, c, h, w, out, err);
	if (rc == GT_OK)
		rc = gt_image_load(raw, size, f->shown, fit ? (struct gt_transform_list){&resize, 1} : list, NULL, (int)c, h, w, s, *out, err);
	gt_image_scratch_close(s);
	free(raw);
	GT_TRY(rc);
	*n = 1;
	*scaled = fit && (iw != w || ih != h);
	return GT_OK;
}

enum gt_code gt_image_read(const char *path, struct gt_transform_list list, int64_t c, int64_t h, int64_t w, int64_t cap, uint8_t **out,
                           int64_t *n, bool *scaled, struct gt_err *err)
{
	struct gt_gzfile f;
	uint8_t b[12] = {0};
	size_t got;
	*out = NULL;
	*n = 0;
	*scaled = false;
	if ((c != 1 && c != 3) || h < 1 || w < 1 || cap < 1)
		return gt_fail(err, GT_ECONFIG, "the model takes [%lld, %lld, %lld], but image files have 1 or 3 channels",
		               (long long)c, (long long)h,
		               (long long)w);
	GT_TRY(gt_gzfile_open(path, MAX_FILE, &f, err));
	enum gt_code rc = gt_gzfile_head(&f, b, sizeof b, &got, err);
	if (rc == GT_OK && gt_image_format_of(b, got) != GT_IMAGE_UNKNOWN) {
		rc = read_picture(&f, list, c, h, w, out, n, scaled, err);
	} else if (rc == GT_OK && got >= 4 && !b[0] && !b[1]) {
		gt_gzfile_close(&f);
		rc = read_idx(path, list, c, h, w, cap, out, n, scaled, err);
	} else if (rc == GT_OK) {
		rc = gt_fail(err, GT_EDATA, "%s: expected a PNG, JPEG, WebP or IDX file", f.shown);
	}
	gt_gzfile_close(&f);
	if (rc != GT_OK) {
		free(*out);
		*out = NULL;
		*n = 0;
	}
	return rc;
}
