/* Draws a chart on a canvas: a title, the legend, and the panels in one or two columns. */
#include "base/json.h"
#include "view/canvas.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EDGE 18
#define ROW 20             /* height of a row of the legend in pixels */
#define PANEL_HEIGHT 300
#define LETTER 6.9         /* estimated mean width in pixels of a letter of font size 12 */
#define SWATCH 26          /* length of the line beside a name in the legend, in pixels */
#define PIECE 512          /* maximum number of points in one call of the canvas */
#define LONGEST 200        /* maximum bytes of a text */
enum { LEFT = 58, RIGHT = 10, TOP = 30, BOTTOM = 40 }; /* margins of a panel around its coordinate system */

static double chart_width(const struct gt_chart *c)
{
	return c->width > 0 ? c->width : c->npanels > 1 ? 1040 : 720;
}

/* Copies a text without control characters and without bytes that are not UTF-8. */
static const char *clean_text(const char *s, char buf[LONGEST])
{
	size_t to = 0;
	for (int n; *s && to + 5 < LONGEST; s += n) {
		const unsigned char *u = (const unsigned char *)s;
		n = gt_utf8_length(u, strnlen(s, 4));
		bool good = n > 0 && *u >= 0x20 && *u != 0x7f && !(n == 2 && u[0] == 0xc2 && u[1] < 0xa0) &&
		            !(n == 3 && u[0] == 0xef && u[1] == 0xbf && u[2] >= 0xbe);
		n = n ? n : 1;
		if (good)
			memcpy(buf + to, s, (size_t)n);
		else
			buf[to] = '?';
		to += good ? (size_t)n : 1;
	}
	buf[to] = '\0';
	return buf;
}

static void put_text(const struct gt_canvas *to, double x, double y, struct gt_lettering type, const char *text)
{
	char clean[LONGEST];
	to->text(to->user, x, y, &type, clean_text(text, clean));
}

static int count_letters(const char *s)
{
	int n = 0;
	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

/* Draws the legend from y on; to NULL: only measures it. Returns the y below the legend. */
static double draw_legend(const struct gt_chart *c, double y, const struct gt_canvas *to)
{
	double x = EDGE;
	char text[LONGEST];
	for (int i = 0; i < c->nkeys; i++) {
		const struct gt_chart_key *k = &c->key[i];
		double w = SWATCH + 6 + LETTER * count_letters(clean_text(k->text, text)) + 20;
		if (x > EDGE && x + w > chart_width(c) - EDGE) {
			x = EDGE;
			y += ROW;
		}
		struct gt_pen pen = {k->color < 0 ? GT_INK_MUTED : GT_INK_LINE + k->color, 2.5, 1, k->dash};
		if (to) {
			to->line(to->user, (double[]){x, y + 9.5, x + SWATCH, y + 9.5}, 2, &pen, NULL);
			put_text(to, x + SWATCH + 6, y + 14, (struct gt_lettering){GT_INK_TEXT, 12, 'l', false}, text);
		}
		x += w;
	}
	return c->nkeys ? y + ROW + 6 : y;
}

static double panels_top(const struct gt_chart *c, const struct gt_canvas *to)
{
	double y = *c->title ? 42 : 14;
	return draw_legend(c, y, to);
}

void gt_chart_size(const struct gt_chart *c, double *width, double *height)
{
	int columns = c->npanels > 1 ? 2 : 1, rows = (c->npanels + columns - 1) / columns;
	*width = chart_width(c);
	*height = panels_top(c, NULL) + rows * (PANEL_HEIGHT + 8) + 6;
}

/* ---- a panel --------------------------------------------------------------------------------------------------------------------- */
struct frame {
	const struct gt_canvas *to;
	struct gt_axis x, y;
	struct gt_chart_box at; /* position and size of the coordinate system */
};

/* Limits values far outside of the panel, because the coordinates of a canvas are limited. */
static double place_x(const struct frame *f, double v)
{
	return f->at.x + f->at.w * fmin(fmax(gt_axis_share(&f->x, v), -9), 9);
}

static double place_y(const struct frame *f, double v)
{
	return f->at.y + f->at.h * (1 - fmin(fmax(gt_axis_share(&f->y, v), -9), 9));
}

static void draw_grid(const struct frame *f, const char *x_title)
{
	char label[GT_AXIS_LABEL];
	const struct gt_chart_box *b = &f->at;
	struct gt_pen grid = {GT_INK_GRID, 1, 1, GT_DASH_SOLID}, axis = {GT_INK_MUTED, 1, 1, GT_DASH_SOLID};
	double bottom = b->y + b->h, right = b->x + b->w;
	for (int i = 0; i < f->y.n; i++) {
		double y = place_y(f, f->y.tick[i]);
		f->to->line(f->to->user, (double[]){b->x, y, right, y}, 2, &grid, NULL);
		put_text(f->to, b->x - 7, y + 4, (struct gt_lettering){GT_INK_MUTED, 11, 'r', false}, gt_axis_label(&f->y, f->y.tick[i], label));
	}
	f->to->line(f->to->user, (double[]){b->x, bottom, right, bottom}, 2, &axis, NULL);
	for (int i = 0; i < f->x.n; i++) {
		double x = place_x(f, f->x.tick[i]);
		f->to->line(f->to->user, (double[]){x, bottom, x, bottom + 4}, 2, &axis, NULL);
		put_text(f->to, x, bottom + 17, (struct gt_lettering){GT_INK_MUTED, 11, 'c', false}, gt_axis_label(&f->x, f->x.tick[i], label));
	}
	put_text(f->to, b->x + b->w / 2, bottom + 32, (struct gt_lettering){GT_INK_MUTED, 11, 'c', false}, x_title);
}

static bool is_drawable(const struct frame *f, const struct gt_chart_line *l, int i)
{
	return isfinite(l->y[i]) && (!f->y.log || l->y[i] > 0) && (!f->x.log || l->x[i] > 0);
}

/* Draws a line in pieces, with gaps at values that are not finite, or not positive on a logarithmic axis. */
static void draw_values(const struct frame *f, const struct gt_chart_line *l)
{
	struct gt_pen pen = {GT_INK_LINE + l->color, l->faint ? 1 : 2, l->faint ? 0.35 : 1, l->faint ? GT_DASH_SOLID : l->dash};
	double xy[2 * PIECE];
	char name[LONGEST];
	clean_text(l->name, name);
	int n = 0;
	for (int i = 0; i <= l->n; i++) {
		bool ends = i == l->n || !is_drawable(f, l, i);
		if (n > 1 && (ends || n == PIECE)) {
			f->to->line(f->to->user, xy, n, &pen, name);
			xy[0] = xy[2 * n - 2];
			xy[1] = xy[2 * n - 1];
			n = 1;
		}
		if (ends) {
			n = 0;
			continue;
		}
		xy[2 * n] = place_x(f, l->x[i]);
		xy[2 * n + 1] = place_y(f, l->y[i]);
		n++;
	}
}

/* Draws the dots of a line. Without dots, a line with a single value would be invisible. */
static void draw_dots(const struct frame *f, const struct gt_chart_line *l)
{
	for (int i = 0; i < l->n && (l->points || l->n == 1); i++)
		if (is_drawable(f, l, i))
			f->to->dot(f->to->user, place_x(f, l->x[i]), place_y(f, l->y[i]), 3, GT_INK_LINE + l->color);
}

/* Returns whether the text of a mark is to its left: it must fit into the panel, and cross fewer other marks than to the right. */
static bool is_label_left(const struct frame *f, const struct gt_chart_panel *p, double x, double w)
{
	bool fits_left = x - 6 - w >= f->at.x, fits_right = x + 6 + w <= f->at.x + f->at.w;
	int crossed_left = 0, crossed_right = 0;
	for (int i = 0; i < p->nmarks; i++) {
		double other = place_x(f, p->mark[i].x);
		crossed_left += other < x && other > x - 6 - w;
		crossed_right += other > x && other < x + 6 + w;
	}
	if (fits_left != fits_right)
		return fits_left;
	if (crossed_left != crossed_right)
		return crossed_left < crossed_right;
	return x > f->at.x + 0.6 * f->at.w;
}

/* Draws the text of a mark beside the mark, on a rectangle that hides the lines below. */
static void label_mark(const struct frame *f, const struct gt_chart_panel *p, const struct gt_chart_mark *m, double y)
{
	char text[LONGEST];
	struct gt_pen ground = {GT_INK_PAPER, 15, 0.85, GT_DASH_SOLID};
	double x = place_x(f, m->x), w = LETTER * count_letters(clean_text(m->text, text));
	bool left = is_label_left(f, p, x, w);
	double from = left ? x - 5 - w : x + 5;
	f->to->line(f->to->user, (double[]){from, y - 4, from + w, y - 4}, 2, &ground, NULL);
	put_text(f->to, left ? x - 6 : x + 6, y, (struct gt_lettering){GT_INK_TEXT, 11, left ? 'r' : 'l', false}, text);
}

static void draw_marks(const struct frame *f, const struct gt_chart_panel *p)
{
	struct gt_pen pen = {GT_INK_TEXT, 1.2, 0.8, GT_DASH_LONG};
	for (int i = 0; i < p->nmarks; i++) {
		double x = place_x(f, p->mark[i].x);
		if (!isnan(p->mark[i].x))
			f->to->line(f->to->user, (double[]){x, f->at.y, x, f->at.y + f->at.h}, 2, &pen, NULL);
	}
	for (int i = 0; i < p->nmarks; i++)
		if (!isnan(p->mark[i].x))
			label_mark(f, p, &p->mark[i], f->at.y + 16 + 17 * i);
}

static struct gt_chart_frame place_panel(const struct gt_chart *c, const struct gt_chart_panel *p, struct gt_chart_box cell)
{
	struct gt_chart_frame f = {.at = {cell.x + LEFT, cell.y + TOP, cell.w - LEFT - RIGHT, cell.h - TOP - BOTTOM}};
	gt_chart_axes(c, p, (int)(f.at.w / 60), (int)(f.at.h / 32), &f.x, &f.y);
	return f;
}

static void draw_panel(const struct gt_chart *c, const struct gt_chart_panel *p, struct gt_chart_box cell, const struct gt_canvas *to)
{
	struct gt_chart_frame place = place_panel(c, p, cell);
	struct frame f = {to, place.x, place.y, place.at};
	char title[LONGEST];
	snprintf(title, sizeof title, "%s%s", p->title, p->log_y ? " (logarithmic)" : "");
	put_text(to, f.at.x, cell.y + TOP - 10, (struct gt_lettering){GT_INK_TEXT, 13, 'l', true}, title);
	draw_grid(&f, c->x_title);
	to->clip(to->user, f.at.x - 4, f.at.y - 4, f.at.w + 8, f.at.h + 4);
	for (int faint = 1; faint >= 0; faint--)
		for (int i = 0; i < p->nlines; i++)
			if (p->line[i].faint == (faint == 1))
				draw_values(&f, &p->line[i]);
	for (int i = 0; i < p->nlines; i++)
		draw_dots(&f, &p->line[i]);
	to->end_clip(to->user);
	draw_marks(&f, p);
}

/* Returns position and size of a panel, including its title and the labels of its axes. */
static struct gt_chart_box find_cell(const struct gt_chart *c, int panel)
{
	int columns = c->npanels > 1 ? 2 : 1;
	double w = (chart_width(c) - 2 * EDGE + 12) / columns, top = panels_top(c, NULL);
	return (struct gt_chart_box){EDGE - 6 + panel % columns * w, top + panel / columns * (PANEL_HEIGHT + 8), w - 6, PANEL_HEIGHT};
}

void gt_chart_place(const struct gt_chart *c, int panel, struct gt_chart_frame *out)
{
	*out = place_panel(c, &c->panel[panel], find_cell(c, panel));
}

void gt_chart_draw(const struct gt_chart *c, const struct gt_canvas *to)
{
	if (*c->title)
		put_text(to, EDGE, 28, (struct gt_lettering){GT_INK_TEXT, 16, 'l', true}, c->title);
	panels_top(c, to);
	for (int i = 0; i < c->npanels; i++)
		draw_panel(c, &c->panel[i], find_cell(c, i), to);
}
