/* Draws the images of a batch as one picture.
 *
 *     title
 *     +--------+ +--------+ +--------+
 *     | image  | | image  | |        |       each tile is as large as the largest image, enlarged or reduced by one factor
 *     +--------+ +--------+ +--------+
 *     cat 0.71   dog        …                two lines of caption
 *     + dog 0.29 */
#include "base/arena.h"
#include "base/fileio.h"
#include "image/encode_png.h"
#include "report/pixel_font.h"
#include "report/show_parts.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TILE 160    /* small images are enlarged by an integer factor, to sides of about this number of pixels */
#define NARROWEST 128 /* minimum width of a tile in pixels, so that a caption fits */
#define LARGEST 320 /* maximum side of a tile; larger images are reduced */
#define GAP 12
#define TITLE 36
#define INK 0x1a1a1a
#define FAINT 0x6a6a6a

struct layout {
	int64_t side_h, side_w; /* height and width of a tile in pixels */
	double factor;          /* factor by which all images are enlarged or reduced */
	int columns, rows;
	int lines, scale; /* captions: number of lines; scale of the font: 2 if all captions fit in that size, else 1 */
};

/* ---- scaling --------------------------------------------------------------------------------------------------------------------- */
/* Returns the share of source pixel `at` that lies between the coordinates low and high, 0 ... 1. */
static double covered_part(int64_t at, double low, double high)
{
	return fmin((double)(at + 1), high) - fmax((double)at, low);
}

static uint8_t mean_of_area(const struct gt_shown_image *m, int64_t channel, double x0, double x1, double y0, double y1)
{
	double sum = 0, area = 0;
	for (int64_t y = (int64_t)y0; y < m->h && (double)y < y1; y++)
		for (int64_t x = (int64_t)x0; x < m->w && (double)x < x1; x++) {
			double part = covered_part(x, x0, x1) * covered_part(y, y0, y1);
			sum += part * m->pixels[(y * m->w + x) * m->c + channel];
			area += part;
		}
	return (uint8_t)(sum / area + 0.5);
}

void gt_shown_scale(const struct gt_shown_image *m, int64_t w, int64_t h, uint8_t *out)
{
	for (int64_t i = 0; i < w * h; i++) {
		double x = (double)(i % w), y = (double)(i / w), sx = (double)m->w / (double)w, sy = (double)m->h / (double)h;
		for (int64_t k = 0; k < 3; k++)
			out[3 * i + k] = k && m->c < 3 ? out[3 * i] : mean_of_area(m, k, x * sx, (x + 1) * sx, y * sy, (y + 1) * sy);
	}
}

/* ---- the picture ----------------------------------------------------------------------------------------------------------------- */
enum { MOST_NAMES = 32 }; /* in a caption */

bool gt_shown_is_drawn(const char *name)
{
	return gt_pixel_text_complete(name);
}

/* Writes a caption. A class whose name has characters that the font lacks is written as its number. */
static const char *drawn_caption(const struct gt_shown_sample *s, int line, char *buf, size_t size)
{
	struct gt_shown_share share[MOST_NAMES];
	struct gt_shown_sample drawn = *s;
	drawn.nshares = s->nshares < MOST_NAMES ? s->nshares : MOST_NAMES;
	drawn.share = share;
	for (int i = 0; i < drawn.nshares; i++) {
		share[i] = s->share[i];
		if (share[i].name && !gt_shown_is_drawn(share[i].name))
			share[i].name = NULL;
	}
	return gt_shown_caption(&drawn, line, buf, size);
}

/* Sets the number of lines and the font scale of the captions. */
static void measure_captions(const struct gt_shown *b, struct layout *l)
{
	char text[256];
	l->lines = 1;
	l->scale = 2;
	for (int i = 0; i < 2 * b->n; i++) {
		drawn_caption(&b->sample[i / 2], i % 2, text, sizeof text);
		if (i % 2 && *text)
			l->lines = 2;
		if (2 * (int64_t)GT_FONT_STEP * gt_pixel_text_length(text) > l->side_w)
			l->scale = 1;
	}
}

static struct layout arrange_tiles(const struct gt_shown *b)
{
	struct layout l = {.factor = 1};
	int64_t h = 1, w = 1;
	for (int i = 0; i < b->n; i++) {
		h = b->sample[i].image.h > h ? b->sample[i].image.h : h;
		w = b->sample[i].image.w > w ? b->sample[i].image.w : w;
	}
	int64_t side = h > w ? h : w;
	if (side < TILE)
		l.factor = (double)((TILE + side / 2) / side);
	else if (side > LARGEST)
		l.factor = (double)LARGEST / (double)side;
	l.side_h = (int64_t)ceil((double)h * l.factor);
	l.side_w = (int64_t)ceil((double)w * l.factor);
	l.side_w = l.side_w < NARROWEST ? NARROWEST : l.side_w;
	l.columns = (int)ceil(sqrt((double)b->n * 1.5));
	l.rows = (b->n + l.columns - 1) / l.columns;
	measure_captions(b, &l);
	return l;
}

/* Draws a text in `width` pixels; a longer text is cut off. */
static void draw_line(struct gt_picture *to, int64_t x, int64_t y, int64_t width, int scale, const char *text, uint32_t color)
{
	char cut[260];
	int64_t room = width / GT_FONT_STEP / scale, keep = gt_pixel_text_length(text) > room ? room - 2 : room;
	size_t end = 0;
	for (int64_t k = 0; text[end] && end < sizeof cut - 8; end++)
		if (((unsigned char)text[end] & 0xc0) != 0x80 && k++ >= keep)
			break;
	snprintf(cut, sizeof cut, "%.*s%s", (int)end, text, text[end] ? ".." : "");
	gt_pixel_text(to, x, y, scale, cut, color);
}

static enum gt_code draw_image(struct gt_picture *to, int64_t x, int64_t y, const struct layout *l, const struct gt_shown_image *m,
                               struct gt_err *err)
{
	int64_t w = (int64_t)fmax(1, (double)m->w * l->factor), h = (int64_t)fmax(1, (double)m->h * l->factor);
	uint8_t *rgb = malloc((size_t)(3 * w * h));
	if (!rgb)
		return gt_fail_memory(err, (size_t)(3 * w * h));
	gt_shown_scale(m, w, h, rgb);
	for (int64_t row = 0; row < h; row++)
		memcpy(to->rgb + 3 * ((y + row) * to->w + x), rgb + 3 * row * w, (size_t)(3 * w));
	free(rgb);
	return GT_OK;
}

static int64_t line_height(const struct layout *l)
{
	return (int64_t)l->scale * (GT_FONT_HEIGHT + 1);
}

static enum gt_code draw_tile(struct gt_picture *to, int64_t x, int64_t y, const struct layout *l, const struct gt_shown_sample *s,
                              struct gt_err *err)
{
	char text[256];
	if (s->image.c)
		GT_TRY(draw_image(to, x, y, l, &s->image, err));
	for (int line = 0; line < l->lines; line++)
		draw_line(to, x, y + l->side_h + 5 + line * line_height(l), l->side_w, l->scale, drawn_caption(s, line, text, sizeof text),
		          line ? FAINT : INK);
	return GT_OK;
}

static void draw_title(struct gt_picture *to, const struct gt_shown *b)
{
	char text[512], step[32];
	snprintf(step, sizeof step, "%s %lld", strcmp(b->split, "train") ? "batch" : "step", (long long)b->step);
	snprintf(text, sizeof text, "%s: %s, %s, %d samples%s%s", b->name, b->split, b->drawn_from ? "drawn" : step, b->n,
	         b->plain ? " before transforms" : *b->transforms ? " after " : "", b->plain ? "" : b->transforms);
	int64_t width = to->w - 2 * GAP;
	draw_line(to, GAP, GAP, width, 2 * (int64_t)GT_FONT_STEP * gt_pixel_text_length(text) <= width ? 2 : 1, text, INK);
}

static enum gt_code draw_mosaic(const struct gt_shown *b, struct gt_picture *to, struct gt_err *err)
{
	struct layout l = arrange_tiles(b);
	int64_t step_x = l.side_w + GAP, step_y = l.side_h + 5 + l.lines * line_height(&l) + GAP;
	to->w = GAP + l.columns * step_x;
	to->h = TITLE + l.rows * step_y + GAP;
	to->rgb = malloc((size_t)(3 * to->w * to->h));
	if (!to->rgb)
		return gt_fail_memory(err, (size_t)(3 * to->w * to->h));
	memset(to->rgb, 0xff, (size_t)(3 * to->w * to->h));
	draw_title(to, b);
	for (int i = 0; i < b->n; i++)
		GT_TRY(draw_tile(to, GAP + i % l.columns * step_x, TITLE + i / l.columns * step_y, &l, &b->sample[i], err));
	return GT_OK;
}

enum gt_code gt_shown_check_path(const char *path, const char *option, struct gt_err *err)
{
	size_t n = strlen(path);
	return n > 4 && !strcmp(path + n - 4, ".png") && path[n - 5] != '/'
	           ? GT_OK
	           : gt_fail(err, GT_EUSAGE, "%s: expected a file name that ends in .png, got '%.500s'", option, path);
}

enum gt_code gt_shown_write(const struct gt_shown *b, const char *path, struct gt_err *err)
{
	struct gt_picture picture = {0};
	uint8_t *data = NULL;
	size_t n;
	bool some = false;
	for (int i = 0; i < b->n; i++)
		some |= b->sample[i].image.c > 0;
	if (!some)
		return gt_fail(err, GT_EUSAGE, "--out: expected data with images, got %s; omit --out to print the samples", b->where);
	enum gt_code code = draw_mosaic(b, &picture, err);
	if (code == GT_OK)
		code = gt_png_encode(picture.rgb, picture.w, picture.h, 3, &data, &n, err);
	if (code == GT_OK)
		code = gt_file_replace(path, 0666, data, n, err);
	free(data);
	free(picture.rgb);
	return code;
}
