#include "base/arena.h"
#include "image/decode.h"
#include "image/image_scratch.h"
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jpeglib.h>
#include <jerror.h>

enum { MAX_SCANS = 500 }; /* maximum number of scans of a progressive image. A usual image has about ten; each scan costs time for the whole
                             image */

struct catcher {
	struct jpeg_error_mgr mgr; /* must be the first member: libjpeg passes a pointer to it */
	struct jpeg_progress_mgr progress;
	jmp_buf back;
	char why[JMSG_LENGTH_MAX];
};

/* libjpeg's state, reused for all images of a thread. */
struct gt_jpeg {
	struct jpeg_decompress_struct j;
	struct catcher c;
	const uint8_t *raw;
	size_t size;
};

static void on_error(j_common_ptr cinfo)
{
	struct catcher *c = (struct catcher *)cinfo->err;
	if (!c->why[0])
		cinfo->err->format_message(cinfo, c->why);
	longjmp(c->back, 1);
}

/* libjpeg reports damaged pixels as warnings and fills them with grey. Here these warnings are errors. */
static void on_message(j_common_ptr cinfo, int level)
{
	static const int harmful[] = {JWRN_JPEG_EOF,          JWRN_HIT_MARKER,     JWRN_HUFF_BAD_CODE, JWRN_MUST_RESYNC,
	                              JWRN_BOGUS_PROGRESSION, JWRN_NOT_SEQUENTIAL, JWRN_ARITH_BAD_CODE};
	if (level >= 0)
		return;
	for (size_t i = 0; i < sizeof harmful / sizeof harmful[0]; i++)
		if (cinfo->err->msg_code == harmful[i])
			on_error(cinfo);
}

static void on_progress(j_common_ptr cinfo)
{
	struct catcher *c = (struct catcher *)cinfo->err;
	if (cinfo->is_decompressor && ((j_decompress_ptr)cinfo)->input_scan_number > MAX_SCANS) {
		snprintf(c->why, sizeof c->why, "more than %d scans", MAX_SCANS);
		on_error(cinfo);
	}
}

/* Adobe's programs store inverted CMYK, and PIL assumes this for every file: libjpeg gives 255 - C and so on. Red is, as in PIL, K' - C K'
 * / 255, rounded, where K' = 255 - K (ConvertCMYK, libImaging/Convert.c). */
static void from_cmyk(const uint8_t *in, uint8_t *out, size_t pixels)
{
	for (size_t i = 0; i < pixels; i++, in += 4, out += 3)
		for (int k = 0; k < 3; k++) {
			unsigned t = (255u - in[k]) * in[3] + 128;
			out[k] = (uint8_t)(in[3] - ((t + (t >> 8)) >> 8));
		}
}

static int orientation_of(const struct jpeg_decompress_struct *j)
{
	for (const struct jpeg_marker_struct *m = j->marker_list; m; m = m->next)
		if (m->marker == JPEG_APP0 + 1 && m->data_length >= 6 && !memcmp(m->data, "Exif\0\0", 6))
			return gt_exif_orientation(m->data, m->data_length);
	return 1;
}

/* libjpeg's errors leave the functions below by longjmp, so they own no memory. */
static enum gt_code create_decompressor(struct gt_jpeg *p, struct gt_err *err)
{
	p->j.err = jpeg_std_error(&p->c.mgr);
	p->c.mgr.error_exit = on_error;
	p->c.mgr.emit_message = on_message;
	p->c.progress.progress_monitor = on_progress;
	if (setjmp(p->c.back))
		return gt_fail_memory(err, 0);
	jpeg_create_decompress(&p->j);
	p->j.progress = &p->c.progress;
	p->j.mem->max_memory_to_use = 1024l << 20; /* enough for the coefficients of the largest progressive image */
	return GT_OK;
}

void gt_jpeg_close(struct gt_jpeg *p)
{
	if (p)
		jpeg_destroy_decompress(&p->j);
	free(p);
}

static enum gt_code read_head(struct gt_jpeg *p, const char *name, struct gt_image_head *head, struct gt_err *err)
{
	struct jpeg_decompress_struct *j = &p->j;
	if (setjmp(p->c.back))
		return gt_fail(err, GT_EDATA, "%s: JPEG: %s", name, p->c.why);
	jpeg_mem_src(j, p->raw, p->size);
	jpeg_save_markers(j, JPEG_APP0 + 1, 0xffff);
	jpeg_read_header(j, TRUE);
	GT_TRY(gt_image_check_size(name, j->image_width, j->image_height, err));
	/* In a sequential Huffman image, a block of 8 x 8 takes at least two bits; a quarter of that leaves room for subsampling. */
	if (!j->progressive_mode && !j->arith_code && (uint64_t)j->image_width * j->image_height / 1024 > p->size)
		return gt_fail(err, GT_EDATA, "%s: JPEG: the header declares %u x %u pixels, which is more than the file can hold",
		               name, j->image_width,
		               j->image_height);
	if (j->num_components != 1 && j->num_components != 3 && j->num_components != 4)
		return gt_fail(err, GT_EDATA, "%s: JPEG: expected 1 (grey), 3 (colour) or 4 (CMYK) components, got %d", name, j->num_components);
	head->w = j->image_width;
	head->h = j->image_height;
	head->c = j->num_components == 1 ? 1 : 3;
	head->orientation = orientation_of(j);
	return GT_OK;
}

enum gt_code gt_jpeg_head(const uint8_t *raw, size_t size, const char *name, struct gt_image_scratch *s, struct gt_image_head *head,
                          struct gt_err *err)
{
	if (!s->jpeg && !(s->jpeg = calloc(1, sizeof *s->jpeg)))
		return gt_fail_memory(err, sizeof *s->jpeg);
	/* libjpeg keeps its tables for later files without tables. Such a file would be decoded with the tables of the previous image, so each
	 * image gets a new decoder. */
	jpeg_destroy_decompress(&s->jpeg->j);
	GT_TRY(create_decompressor(s->jpeg, err));
	s->jpeg->c.why[0] = 0;
	s->jpeg->raw = raw;
	s->jpeg->size = size;
	return read_head(s->jpeg, name, head, err);
}

/* Returns whether the end marker follows the reader's position. Compressed pixels cannot contain this marker, so its presence proves that
 * the file is not truncated, even if decoding has stopped early. */
static bool has_end_marker(const struct gt_jpeg *p)
{
	const uint8_t *from = p->j.src->next_input_byte, *end = p->raw + p->size;
	while (end - from >= 2) {
		const uint8_t *at = memrchr(from + 1, JPEG_EOI, (size_t)(end - from) - 1);
		if (!at)
			return false;
		if (at[-1] == 0xff)
			return true;
		end = at;
	}
	return false;
}

/* Chroma is interpolated between neighbours, so at the sides of a part libjpeg computes other values than in the whole image. */
enum { MARGIN = 2 };

static enum gt_code read_pixels(struct gt_jpeg *p, const char *name, const struct gt_decode_part *part, struct gt_image_scratch *s,
                                struct gt_pixels *out, struct gt_err *err)
{
	struct jpeg_decompress_struct *j = &p->j;
	if (setjmp(p->c.back))
		return gt_fail(err, GT_EDATA, "%s: JPEG: %s", name, p->c.why);
	bool cmyk = j->num_components == 4;
	j->out_color_space = cmyk ? JCS_CMYK : j->num_components == 1 ? JCS_GRAYSCALE : JCS_RGB; /* YCCK becomes CMYK */
	j->scale_num = (unsigned)(8 / part->reduce);
	j->scale_denom = 8;
	bool end = has_end_marker(p);
	jpeg_start_decompress(j);
	JDIMENSION full = j->output_width, y1 = (JDIMENSION)part->y1, left = 0, width = full;
	if (part->x0 > 0 || part->x1 < full) {
		int64_t x0 = part->x0 < MARGIN ? 0 : part->x0 - MARGIN, x1 = part->x1 + MARGIN > full ? full : part->x1 + MARGIN;
		left = (JDIMENSION)x0;
		width = (JDIMENSION)(x1 - x0);
		jpeg_crop_scanline(j, &left, &width);
	}
	if (part->y0 > 0)
		jpeg_skip_scanlines(j, (JDIMENSION)part->y0);
	if (!end) /* an image without end marker is accepted only if all its data can be read */
		y1 = j->output_height;
	out->w = j->output_width;
	out->h = part->y1 - part->y0;
	out->left = left;
	out->top = part->y0;
	out->c = cmyk ? 3 : j->output_components;
	size_t row = (size_t)out->w * (size_t)out->c;
	uint8_t *data, *four = NULL;
	GT_TRY(gt_scratch_take(s, GT_BUF_DECODED, row * (size_t)(y1 - part->y0), &data, err));
	if (cmyk)
		GT_TRY(gt_scratch_take(s, GT_BUF_ROW, (size_t)out->w * 4, &four, err));
	while (j->output_scanline < y1) { /* one call of jpeg_read_scanlines returns up to 4 rows */
		JSAMPROW to[4];
		JDIMENSION n = y1 - j->output_scanline < 4 ? y1 - j->output_scanline : 4;
		uint8_t *at = data + row * (size_t)(j->output_scanline - part->y0);
		for (JDIMENSION k = 0; k < n; k++)
			to[k] = cmyk ? four : at + k * row;
		jpeg_read_scanlines(j, to, cmyk ? 1 : n);
		if (cmyk)
			from_cmyk(four, at, (size_t)out->w);
	}
	out->data = data;
	if (y1 == j->output_height)
		jpeg_finish_decompress(j);
	else
		jpeg_abort_decompress(j);
	return GT_OK;
}

enum gt_code gt_jpeg_pixels(const char *name, const struct gt_decode_part *part, struct gt_image_scratch *s, struct gt_pixels *out,
                            struct gt_err *err)
{
	return read_pixels(s->jpeg, name, part, s, out, err);
}

#ifdef LIBJPEG_TURBO_VERSION
#define LIBRARY_TEXT(version) #version
#define LIBRARY(version) "libjpeg-turbo " LIBRARY_TEXT(version)
#endif

const char *gt_image_jpeg_library(char *buf, size_t size)
{
#ifdef LIBRARY
	snprintf(buf, size, "%s", LIBRARY(LIBJPEG_TURBO_VERSION));
#else
	snprintf(buf, size, "libjpeg %d", JPEG_LIB_VERSION / 10);
#endif
	return buf;
}
