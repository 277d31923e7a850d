/* A canvas, on which a chart is drawn: an SVG document (chart_svg.c) or an image (lib/gtrain/draw.so). The unit of all lengths is a pixel
 * of the image at scale 1; y grows downwards. */
#ifndef GT_VIEW_CANVAS_H
#define GT_VIEW_CANVAS_H

#include "gtrain_chart.h"

/* X(name, colour on a light background, colour on a dark background). Lines have the colours of Okabe and Ito without yellow, which is too
 * pale on white; they are lighter on a dark background. */
#define GT_INKS(X)                  \
	X(PAPER, 0xffffff, 0x16181d)    \
	X(TEXT, 0x1f2328, 0xe6e8eb)     \
	X(MUTED, 0x59636e, 0xa2abb5)    \
	X(GRID, 0xe3e6ea, 0x31363e)     \
	X(LINE, 0x0072b2, 0x3a9ad9)     \
	X(LINE_1, 0xd55e00, 0xf0803c)   \
	X(LINE_2, 0x009e73, 0x2fc49a)   \
	X(LINE_3, 0xcc79a7, 0xd98fb9)   \
	X(LINE_4, 0xe69f00, 0xe69f00)   \
	X(LINE_5, 0x56b4e9, 0x8fd0f7)   \
	X(LINE_6, 0x000000, 0xffffff)
enum gt_ink {
#define GT_INK_NAME(name, ...) GT_INK_##name,
	GT_INKS(GT_INK_NAME)
#undef GT_INK_NAME
	GT_INK_COUNT
};

struct gt_pen {
	int ink;        /* a value of enum gt_ink, or GT_INK_LINE + the index of a line's colour */
	double width, opacity;
	enum gt_chart_dash dash;
};

struct gt_lettering {
	int ink;
	double size;
	char align;     /* 'l': the text begins at x, 'c': it is centred, 'r': it ends at x */
	bool bold;
};

struct gt_canvas {
	void *user;
	/* Draws a line through n points. xy: [2 * n]. name: a name of the line in the file; NULL: none. */
	void (*line)(void *user, const double *xy, int n, const struct gt_pen *pen, const char *name);
	void (*dot)(void *user, double x, double y, double radius, int ink);
	/* y: the base line of the text. text: valid UTF-8 without control characters. */
	void (*text)(void *user, double x, double y, const struct gt_lettering *type, const char *text);
	/* Until the next end_clip, the canvas draws only inside the rectangle. */
	void (*clip)(void *user, double x, double y, double w, double h);
	void (*end_clip)(void *user);
};

/* Dash patterns: lengths of the dash and of the gap in pixels; {0, 0}: a solid line. */
static const double gt_dash_lengths[3][2] = {{0, 0}, {7, 3}, {1.5, 3}};

/* chart_layout.c */
void gt_chart_size(const struct gt_chart *c, double *width, double *height);
void gt_chart_draw(const struct gt_chart *c, const struct gt_canvas *to);

/* ---- lib/gtrain/draw.so ----------------------------------------------------------------------------------------------------------- */
#define GT_DRAW_ABI 1
#define GT_DRAW_SYMBOL "gt_draw_plugin"

struct gt_draw_plugin {
	unsigned abi;
	/* Calls draw(what, canvas) for a new image, and sets *png to this image as PNG, *n bytes from malloc. scale: pixels of the image for
	 * each pixel of the canvas. */
	enum gt_code (*png)(double width, double height, double scale, void (*draw)(const void *what, const struct gt_canvas *to),
	                    const void *what, char **png, size_t *n, struct gt_err *err);
};

#endif
