#include "base/arena.h"
#include "image.h"
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jpeglib.h>
#include <jerror.h>

enum { MAX_SCANS = 500 }; /* a progressive picture has about ten; each scan goes over all of it */

struct catcher {
	struct jpeg_error_mgr mgr; /* first: libjpeg hands this back */
	struct jpeg_progress_mgr progress;
	jmp_buf back;
	char why[JMSG_LENGTH_MAX];
};

static void on_error(j_common_ptr cinfo)
{
	struct catcher *c = (struct catcher *)cinfo->err;
	if (!c->why[0])
		cinfo->err->format_message(cinfo, c->why);
	longjmp(c->back, 1);
}

/* libjpeg only warns where the pixels are damaged, and fills them with grey. Those warnings are errors here. */
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

/* What setjmp guards: memory hangs on out. */
static enum gt_code decode(struct jpeg_decompress_struct *j, struct catcher *c, const uint8_t *raw, size_t size, const char *name,
                           struct gt_pixels *out, struct gt_err *err)
{
	if (setjmp(c->back))
		return gt_fail(err, GT_EDATA, "%s: JPEG: %s", name, c->why);
	jpeg_create_decompress(j);
	c->progress.progress_monitor = on_progress;
	j->progress = &c->progress;
	j->mem->max_memory_to_use = 1024l << 20; /* coefficients of a progressive picture of the largest size */
	jpeg_mem_src(j, raw, size);
	jpeg_read_header(j, TRUE);
	GT_TRY(gt_image_check_size(name, j->image_width, j->image_height, err));
	/* In a sequential Huffman picture a block of 8 x 8 takes two bits at the least; a quarter of that leaves room for subsampling. */
	if (!j->progressive_mode && !j->arith_code && (uint64_t)j->image_width * j->image_height / 1024 > size)
		return gt_fail(err, GT_EDATA, "%s: JPEG: announces %u x %u pixels, more than the file can hold", name, j->image_width,
		               j->image_height);
	if (j->num_components != 1 && j->num_components != 3)
		return gt_fail(err, GT_EDATA, "%s: JPEG: %d components (CMYK?); convert it to RGB first", name, j->num_components);
	j->out_color_space = j->num_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
	jpeg_start_decompress(j);
	out->w = j->output_width;
	out->h = j->output_height;
	out->c = j->output_components;
	size_t row = (size_t)out->w * (size_t)out->c;
	out->data = malloc(row * (size_t)out->h);
	if (!out->data)
		return gt_fail_memory(err, row * (size_t)out->h);
	while (j->output_scanline < j->output_height) {
		JSAMPROW to = out->data + row * j->output_scanline;
		jpeg_read_scanlines(j, &to, 1);
	}
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
	enum gt_code rc = decode(&j, &c, raw, size, name, out, err);
	jpeg_destroy_decompress(&j);
	if (rc != GT_OK) {
		free(out->data);
		*out = (struct gt_pixels){0};
	}
	return rc;
}
