#include "base/arena.h"
#include "image.h"
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jpeglib.h>
#include <jerror.h>

enum { MAX_SCANS = 500 }; /* a progressive image has about ten scans, each of which covers the whole image */

struct catcher {
	struct jpeg_error_mgr mgr; /* must be the first member: libjpeg passes a pointer to it */
	struct jpeg_progress_mgr progress;
	jmp_buf back;
	char why[JMSG_LENGTH_MAX];
	uint8_t *row; /* memory for a row of CMYK pixels */
};

static void on_error(j_common_ptr cinfo)
{
	struct catcher *c = (struct catcher *)cinfo->err;
	if (!c->why[0])
		cinfo->err->format_message(cinfo, c->why);
	longjmp(c->back, 1);
}

/* libjpeg only warns of damaged pixels and fills them with grey. These warnings are errors here. */
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

/* Adobe's programs store CMYK inverted, and PIL takes every file as theirs: what libjpeg gives is 255 - C and so on. With that, PIL's
 * K' - C K' / 255 for red, rounded, where K' is 255 - K (ConvertCMYK, libImaging/Convert.c). */
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

/* Decodes an image. libjpeg's errors leave this function by longjmp, so all its memory is owned by out and freed by the caller. */
static enum gt_code decode(struct jpeg_decompress_struct *j, struct catcher *c, const uint8_t *raw, size_t size, const char *name,
                           struct gt_pixels *out, int *orientation, struct gt_err *err)
{
	if (setjmp(c->back))
		return gt_fail(err, GT_EDATA, "%s: JPEG: %s", name, c->why);
	jpeg_create_decompress(j);
	c->progress.progress_monitor = on_progress;
	j->progress = &c->progress;
	j->mem->max_memory_to_use = 1024l << 20; /* enough for the coefficients of a progressive image of the largest size */
	jpeg_mem_src(j, raw, size);
	jpeg_save_markers(j, JPEG_APP0 + 1, 0xffff);
	jpeg_read_header(j, TRUE);
	GT_TRY(gt_image_check_size(name, j->image_width, j->image_height, err));
	/* In a sequential Huffman image, a block of 8 x 8 takes at least two bits; a quarter of that leaves room for subsampling. */
	if (!j->progressive_mode && !j->arith_code && (uint64_t)j->image_width * j->image_height / 1024 > size)
		return gt_fail(err, GT_EDATA, "%s: JPEG: the header announces %u x %u pixels, which is more than the file can hold",
		               name, j->image_width,
		               j->image_height);
	bool cmyk = j->num_components == 4;
	if (j->num_components != 1 && j->num_components != 3 && !cmyk)
		return gt_fail(err, GT_EDATA, "%s: JPEG: expected 1 (grey), 3 (colour) or 4 (CMYK) components, got %d", name, j->num_components);
	j->out_color_space = cmyk ? JCS_CMYK : j->num_components == 1 ? JCS_GRAYSCALE : JCS_RGB; /* YCCK becomes CMYK */
	jpeg_start_decompress(j);
	out->w = j->output_width;
	out->h = j->output_height;
	out->c = cmyk ? 3 : j->output_components;
	size_t row = (size_t)out->w * (size_t)out->c;
	out->data = malloc(row * (size_t)out->h);
	c->row = cmyk ? malloc((size_t)out->w * 4) : NULL;
	if (!out->data || (cmyk && !c->row))
		return gt_fail_memory(err, row * (size_t)out->h);
	while (j->output_scanline < j->output_height) {
		uint8_t *at = out->data + row * j->output_scanline;
		JSAMPROW to = cmyk ? c->row : at;
		jpeg_read_scanlines(j, &to, 1);
		if (cmyk)
			from_cmyk(c->row, at, (size_t)out->w);
	}
	*orientation = orientation_of(j);
	jpeg_finish_decompress(j);
	return GT_OK;
}

enum gt_code gt_jpeg_decode(const uint8_t *raw, size_t size, const char *name, struct gt_pixels *out, struct gt_err *err)
{
	struct jpeg_decompress_struct j = {0};
	struct catcher c = {.why = ""};
	*out = (struct gt_pixels){0};
	j.err = jpeg_std_error(&c.mgr);
	c.mgr.error_exit = on_error;
	c.mgr.emit_message = on_message;
	int orientation = 1;
	enum gt_code rc = decode(&j, &c, raw, size, name, out, &orientation, err);
	jpeg_destroy_decompress(&j);
	free(c.row);
	if (rc == GT_OK)
		rc = gt_pixels_orient(out, orientation, err);
	if (rc != GT_OK) {
		free(out->data);
		*out = (struct gt_pixels){0};
	}
	return rc;
}
