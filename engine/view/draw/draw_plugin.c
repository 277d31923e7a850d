/* lib/gtrain/draw.so: draws on an image and encodes it as PNG. It is a plugin so that only commands that write a PNG load cairo. */
#include "view/canvas.h"
#include "base/arena.h"
#include "base/memstream.h"
#include <cairo/cairo.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void set_ink(cairo_t *cr, int ink, double opacity)
{
	static const unsigned color[GT_INK_COUNT] = {
#define COLOR(name, light, dark) light,
		GT_INKS(COLOR)
#undef COLOR
	};
	unsigned c = color[ink];
	cairo_set_source_rgba(cr, (c >> 16) / 255.0, (c >> 8 & 255) / 255.0, (c & 255) / 255.0, opacity);
}

static void draw_line(void *user, const double *xy, int n, const struct gt_pen *pen, const char *name)
{
	cairo_t *cr = user;
	const double *dash = gt_dash_lengths[pen->dash];
	(void)name;
	set_ink(cr, pen->ink, pen->opacity);
	cairo_set_line_width(cr, pen->width);
	cairo_set_line_join(cr, CAIRO_LINE_JOIN_ROUND);
	cairo_set_dash(cr, dash, dash[0] > 0 ? 2 : 0, 0);
	cairo_new_path(cr); /* drop the current point, which drawing a text has set and at which the line would begin */
	for (int i = 0; i < n; i++)
		cairo_line_to(cr, xy[2 * i], xy[2 * i + 1]);
	cairo_stroke(cr);
}

static void draw_dot(void *user, double x, double y, double radius, int ink)
{
	cairo_t *cr = user;
	set_ink(cr, ink, 1);
	cairo_new_path(cr);
	cairo_arc(cr, x, y, radius, 0, 2 * M_PI);
	cairo_fill(cr);
}

static void draw_text(void *user, double x, double y, const struct gt_lettering *type, const char *text)
{
	cairo_t *cr = user;
	cairo_text_extents_t size;
	set_ink(cr, type->ink, 1);
	cairo_select_font_face(cr, "sans-serif", CAIRO_FONT_SLANT_NORMAL, type->bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
	cairo_set_font_size(cr, type->size);
	cairo_text_extents(cr, text, &size);
	cairo_move_to(cr, x - (type->align == 'c' ? size.x_advance / 2 : type->align == 'r' ? size.x_advance : 0), y);
	cairo_show_text(cr, text);
}

static void begin_clip(void *user, double x, double y, double w, double h)
{
	cairo_save(user);
	cairo_rectangle(user, x, y, w, h);
	cairo_clip(user);
}

static void end_clip(void *user)
{
	cairo_restore(user);
}

static cairo_status_t write_bytes(void *stream, const unsigned char *data, unsigned n)
{
	return fwrite(data, 1, n, stream) == n ? CAIRO_STATUS_SUCCESS : CAIRO_STATUS_WRITE_ERROR;
}

static enum gt_code draw_png(double width, double height, double scale, void (*draw)(const void *what, const struct gt_canvas *to),
                             const void *what, char **png, size_t *n, struct gt_err *err)
{
	struct gt_memstream m;
	FILE *f = gt_memstream_open(&m);
	if (!f)
		return gt_fail_memory(err, 0);
	cairo_surface_t *image = cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)ceil(width * scale), (int)ceil(height * scale));
	cairo_t *cr = cairo_create(image);
	struct gt_canvas to = {cr, draw_line, draw_dot, draw_text, begin_clip, end_clip};
	cairo_scale(cr, scale, scale);
	set_ink(cr, GT_INK_PAPER, 1);
	cairo_paint(cr);
	draw(what, &to);
	cairo_status_t status = cairo_status(cr);
	if (status == CAIRO_STATUS_SUCCESS)
		status = cairo_surface_write_to_png_stream(image, write_bytes, f);
	cairo_destroy(cr);
	cairo_surface_destroy(image);
	enum gt_code code = gt_memstream_close(f, &m, png, n, err);
	if (code || status == CAIRO_STATUS_SUCCESS)
		return code;
	free(*png);
	return gt_fail(err, GT_EFAIL, "cairo cannot draw the chart: %s", cairo_status_to_string(status));
}

__attribute__((visibility("default"))) extern const struct gt_draw_plugin gt_draw_plugin;
const struct gt_draw_plugin gt_draw_plugin = {GT_DRAW_ABI, draw_png};
