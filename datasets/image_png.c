#include "base/arena.h"
#include "image.h"
#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

struct source {
	const uint8_t *raw;
	size_t size, at;
	char why[128];
};

static void read_bytes(png_structp png, png_bytep out, size_t n)
{
	struct source *s = png_get_io_ptr(png);
	if (n > s->size - s->at)
		png_error(png, "the file is truncated");
	memcpy(out, s->raw + s->at, n);
	s->at += n;
}

static void on_error(png_structp png, png_const_charp why)
{
	struct source *s = png_get_error_ptr(png);
	strncpy(s->why, why, sizeof s->why - 1);
	png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp why)
{
	(void)png, (void)why; /* libpng warns of unusual metadata, which is ignored; it reports damaged pixels as errors */
}

/* Decodes an image. libpng's errors leave this function by longjmp, so all its memory is owned by `out` and `rows` and freed by the
 * caller. */
static enum gt_code decode(png_structp png, png_infop info, struct source *s, const char *name, struct gt_pixels *out, png_bytep **rows,
                           int *orientation, struct gt_err *err)
{
	if (setjmp(png_jmpbuf(png)))
		return gt_fail(err, GT_EDATA, "%s: PNG: %s", name, s->why);
	png_set_read_fn(png, s, read_bytes);
	png_set_user_limits(png, GT_IMAGE_MAX_SIDE, GT_IMAGE_MAX_SIDE);
	png_set_chunk_cache_max(png, 64);
	png_set_chunk_malloc_max(png, 8 << 20);
	png_set_crc_action(png, PNG_CRC_ERROR_QUIT, PNG_CRC_DEFAULT);
	png_read_info(png, info);
	uint32_t w = png_get_image_width(png, info), h = png_get_image_height(png, info);
	int type = png_get_color_type(png, info), depth = png_get_bit_depth(png, info);
	GT_TRY(gt_image_check_size(name, w, h, err));
	/* Deflate expands data by at most the factor 1,032: a tiny file that announces a huge image is rejected before memory is allocated. */
	if ((uint64_t)png_get_rowbytes(png, info) * h / 1032 > s->size)
		return gt_fail(err, GT_EDATA, "%s: PNG: the header announces %u x %u pixels, which is more than the file can hold", name, w, h);
	if (type == PNG_COLOR_TYPE_PALETTE)
		png_set_palette_to_rgb(png);
	if (type == PNG_COLOR_TYPE_GRAY && depth < 8)
		png_set_expand_gray_1_2_4_to_8(png);
	if (depth == 16)
		png_set_strip_16(png); /* the high byte, as PIL */
	png_set_strip_alpha(png);
	png_set_interlace_handling(png);
	png_read_update_info(png, info);
	out->w = w;
	out->h = h;
	out->c = png_get_channels(png, info);
	if ((out->c != 1 && out->c != 3) || png_get_rowbytes(png, info) != (size_t)w * (size_t)out->c)
		return gt_fail(err, GT_EDATA, "%s: PNG: expected 1 or 3 channels, got %d", name, out->c);
	out->data = malloc((size_t)w * h * (size_t)out->c);
	*rows = malloc(h * sizeof **rows);
	if (!out->data || !*rows)
		return gt_fail_memory(err, (size_t)w * h * (size_t)out->c);
	for (uint32_t y = 0; y < h; y++)
		(*rows)[y] = out->data + (size_t)y * w * (size_t)out->c;
	png_read_image(png, *rows);
	png_read_end(png, info);
#ifdef PNG_eXIf_SUPPORTED
	png_uint_32 n = 0;
	png_bytep exif = NULL;
	if (png_get_eXIf_1(png, info, &n, &exif) && exif)
		*orientation = gt_exif_orientation(exif, n);
#endif
	return GT_OK;
}

enum gt_code gt_png_decode(const uint8_t *raw, size_t size, const char *name, struct gt_pixels *out, struct gt_err *err)
{
	struct source s = {.raw = raw, .size = size};
	png_bytep *rows = NULL;
	*out = (struct gt_pixels){0};
	png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &s, on_error, on_warning);
	png_infop info = png ? png_create_info_struct(png) : NULL;
	int orientation = 1;
	enum gt_code rc = info ? decode(png, info, &s, name, out, &rows, &orientation, err) : gt_fail_memory(err, 0);
	if (png)
		png_destroy_read_struct(&png, &info, NULL);
	free(rows);
	if (rc == GT_OK)
		rc = gt_pixels_orient(out, orientation, err);
	if (rc != GT_OK) {
		free(out->data);
		*out = (struct gt_pixels){0};
	}
	return rc;
}
