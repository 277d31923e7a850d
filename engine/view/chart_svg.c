/* A chart as an SVG document: no scripts, no fonts, no references. Colours are classes of one style sheet, which has other colours for dark
 * pages and viewers. */
#include "base/arena.h"
#include "base/memstream.h"
#include "view/canvas.h"
#include <stdio.h>

static void put_escaped(FILE *f, const char *s)
{
	for (; *s; s++)
		switch (*s) {
		case '<': fputs("&lt;", f); break;
		case '>': fputs("&gt;", f); break;
		case '&': fputs("&amp;", f); break;
		case '"': fputs("&quot;", f); break;
		default: fputc(*s, f);
		}
}

static void put_line(void *user, const double *xy, int n, const struct gt_pen *pen, const char *name)
{
	FILE *f = user;
	const double *dash = gt_dash_lengths[pen->dash];
	fprintf(f, "<path class=\"s%d\" stroke-width=\"%g\"", pen->ink, pen->width);
	if (pen->opacity < 1)
		fprintf(f, " opacity=\"%g\"", pen->opacity);
	if (dash[0] > 0)
		fprintf(f, " stroke-dasharray=\"%g %g\"", dash[0], dash[1]);
	fputs(" d=\"M", f);
	for (int i = 0; i < n; i++)
		fprintf(f, "%s%.1f %.1f", i ? "L" : "", xy[2 * i], xy[2 * i + 1]);
	if (!name) {
		fputs("\"/>\n", f);
		return;
	}
	fputs("\"><title>", f);
	put_escaped(f, name);
	fputs("</title></path>\n", f);
}

static void put_dot(void *user, double x, double y, double radius, int ink)
{
	fprintf(user, "<circle class=\"f%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"%g\"/>\n", ink, x, y, radius);
}

static void put_text(void *user, double x, double y, const struct gt_lettering *type, const char *text)
{
	FILE *f = user;
	const char *anchor = type->align == 'c' ? " text-anchor=\"middle\"" : type->align == 'r' ? " text-anchor=\"end\"" : "";
	fprintf(f, "<text class=\"f%d\" x=\"%.1f\" y=\"%.1f\" font-size=\"%g\"%s%s>", type->ink, x, y, type->size, anchor,
	        type->bold ? " font-weight=\"600\"" : "");
	put_escaped(f, text);
	fputs("</text>\n", f);
}

/* Clips by a nested svg element: a clipPath would need an id that is unique in a page with several charts. */
static void begin_clip(void *user, double x, double y, double w, double h)
{
	fprintf(user, "<svg x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" viewBox=\"%.1f %.1f %.1f %.1f\">\n", x, y, w, h, x, y, w, h);
}

static void end_clip(void *user)
{
	fputs("</svg>\n", user);
}

static void put_colors(FILE *f, bool dark)
{
	static const unsigned color[GT_INK_COUNT][2] = {
#define COLOR(name, light, dark) {light, dark},
		GT_INKS(COLOR)
#undef COLOR
	};
	for (int i = 0; i < GT_INK_COUNT; i++)
		fprintf(f, ".gt .s%d{stroke:#%06x}.gt .f%d{fill:#%06x}", i, color[i][dark], i, color[i][dark]);
}

enum gt_code gt_chart_svg(const struct gt_chart *c, char **text, size_t *n, struct gt_err *err)
{
	struct gt_memstream m;
	double w, h;
	FILE *f = gt_memstream_open(&m);
	if (!f)
		return gt_fail_memory(err, 0);
	gt_chart_size(c, &w, &h);
	fprintf(f, "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"gt\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\">\n",
	        w, h, w, h);
	fputs("<style>.gt{font-family:system-ui,-apple-system,\"Segoe UI\",Roboto,\"DejaVu Sans\",sans-serif}"
	      ".gt path{fill:none;stroke-linejoin:round}", f);
	put_colors(f, false);
	fputs("@media screen and (prefers-color-scheme:dark){", f);
	put_colors(f, true);
	fprintf(f, "}</style>\n<rect class=\"f%d\" width=\"%.0f\" height=\"%.0f\"/>\n", GT_INK_PAPER, w, h);
	struct gt_canvas to = {f, put_line, put_dot, put_text, begin_clip, end_clip};
	gt_chart_draw(c, &to);
	fputs("</svg>\n", f);
	return gt_memstream_close(f, &m, text, n, err);
}
