#include "base/arena.h"
#include "image/decode.h"
#include "image/image_scratch.h"
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
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
	(void)png, (void)why; /* libpng's warnings are about unusual metadata and are ignored; damaged pixels are errors */
}

/* Finds the first chunk of a type, and returns the size of its body; NULL: no such chunk. */
static const uint8_t *find_chunk(const uint8_t *raw, size_t size, const char *type, size_t *n)
{
	for (size_t at = 8; size - at >= 12;) {
		size_t len = (size_t)raw[at] << 24 | (size_t)raw[at + 1] << 16 | (size_t)raw[at + 2] << 8 | raw[at + 3];
		if (len > size - at - 12)
			return NULL;
		if (!memcmp(raw + at + 4, type, 4)) {
			*n = len;
			return raw + at + 8;
		}
		at += 12 + len;
	}
	return NULL;
}

enum gt_code gt_png_head(const uint8_t *raw, size_t size, const char *name, struct gt_image_head *head, struct gt_err *err)
{
	size_t n;
	const uint8_t *p = find_chunk(raw, size, "IHDR", &n);
	if (!p || p != raw + 16 || n != 13)
		return gt_fail(err, GT_EDATA, size < 33 ? "%s: PNG: the file is truncated" : "%s: PNG: the header is damaged", name);
	head->w = (int64_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
	head->h = (int64_t)p[4] << 24 | p[5] << 16 | p[6] << 8 | p[7];
	head->c = p[9] & PNG_COLOR_MASK_COLOR ? 3 : 1; /* the colour bit is also set for images with a palette */
	p = find_chunk(raw, size, "eXIf", &n);
	head->orientation = p ? gt_exif_orientation(p, n) : 1;
	return gt_image_check_size(name, head->w, head->h, err);
}

/* Decodes an image. libpng's errors leave this function by longjmp, so all its memory belongs to the scratch. */
static enum gt_code decode_pixels(png_structp png, png_infop info, struct source *src, const char *name, struct gt_image_scratch *s,
                                  struct gt_pixels *out, struct gt_err *err)
{
	if (setjmp(png_jmpbuf(png)))
		return gt_fail(err, GT_EDATA, "%s: PNG: %s", name, src->why);
	png_set_read_fn(png, src, read_bytes);
	png_set_user_limits(png, GT_IMAGE_MAX_SIDE, GT_IMAGE_MAX_SIDE);
	png_set_chunk_cache_max(png, 64);
	png_set_chunk_malloc_max(png, 8 << 20);
	png_set_crc_action(png, PNG_CRC_ERROR_QUIT, PNG_CRC_DEFAULT);
	png_read_info(png, info);
	uint32_t w = png_get_image_width(png, info), h = png_get_image_height(png, info);
	int type = png_get_color_type(png, info), depth = png_get_bit_depth(png, info);
	GT_TRY(gt_image_check_size(name, w, h, err));
	/* Deflate expands data by at most the factor 1,032: a tiny file that announces a huge image is rejected before memory is allocated. */
	if ((uint64_t)png_get_rowbytes(png, info) * h / 1032 > src->size)
		return gt_fail(err, GT_EDATA, "%s: PNG: the header declares %u x %u pixels, which is more than the file can hold", name, w, h);
	if (type == PNG_COLOR_TYPE_PALETTE)
		png_set_palette_to_rgb(png);
	if (type == PNG_COLOR_TYPE_GRAY && depth < 8)
		png_set_expand_gray_1_2_4_to_8(png);
	if (depth == 16)
		png_set_strip_16(png); /* keeps the high byte of a 16-bit value, as PIL does */
	png_set_strip_alpha(png);
	png_set_interlace_handling(png);
	png_read_update_info(png, info);
	out->w = w;
	out->h = h;
	out->c = png_get_channels(png, info);
	if ((out->c != 1 && out->c != 3) || png_get_rowbytes(png, info) != (size_t)w * (size_t)out->c)
		return gt_fail(err, GT_EDATA, "%s: PNG: expected 1 or 3 channels, got %d", name, out->c);
	uint8_t *data, *memory;
	GT_TRY(gt_scratch_take(s, GT_BUF_DECODED, (size_t)w * h * (size_t)out->c, &data, err));
	GT_TRY(gt_scratch_take(s, GT_BUF_ROW, h * sizeof(png_bytep), &memory, err));
	png_bytep *rows = (png_bytep *)(void *)memory;
	for (uint32_t y = 0; y < h; y++)
		rows[y] = data + (size_t)y * w * (size_t)out->c;
	png_read_image(png, rows);
	png_read_end(png, info);
	out->data = data;
	return GT_OK;
}

enum gt_code gt_png_pixels(const uint8_t *raw, size_t size, const char *name, struct gt_image_scratch *s, struct gt_pixels *out,
                           struct gt_err *err)
{
	struct source src = {.raw = raw, .size = size};
	png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &src, on_error, on_warning);
	png_infop info = png ? png_create_info_struct(png) : NULL;
	enum gt_code rc = info ? decode_pixels(png, info, &src, name, s, out, err) : gt_fail_memory(err, 0);
	if (png)
		png_destroy_read_struct(&png, &info, NULL);
	return rc;
}

const char *gt_image_png_library(char *buf, size_t size)
{
	snprintf(buf, size, "libpng %s", png_get_libpng_ver(NULL));
	return buf;
}
