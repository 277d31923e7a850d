#include "plot_curve.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define LABEL 9 /* columns of the labels on the left and the space after them */
#define LEAST 16 /* minimum number of columns of the curve */

struct canvas {
	const struct gt_plot *p;
	int w, h;             /* size in characters */
	int across, down;     /* dots per character, horizontally and vertically */
	unsigned char *dots;  /* [w * h] one bit per dot, as in `braille`; 1 without Braille */
	char *letter;         /* [w * h] a letter in place of the dots; 0: no letter */
};

static double column_of(const struct canvas *c, double x, int columns)
{
	const struct gt_plot *p = c->p;
	double span = p->x[p->n - 1] - p->x[0];
	return span > 0 ? (x - p->x[0]) / span * (columns - 1) : 0;
}

static double row_of(const struct canvas *c, double y, int rows)
{
	const struct gt_plot *p = c->p;
	return p->high > p->low ? (p->high - y) / (p->high - p->low) * (rows - 1) : 0.5 * (rows - 1);
}

/* Bits of the dots of a Braille character, U+2800 + bits, by column and row. */
static const unsigned char braille[2][4] = {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}};

static void set_dot(struct canvas *c, int x, int y)
{
	if (x < 0 || y < 0 || x >= c->w * c->across || y >= c->h * c->down)
		return;
	c->dots[y / c->down * c->w + x / c->across] |= c->down == 1 ? 1 : braille[x % c->across][y % c->down];
}

/* Draws the line between two points of the curve. */
static void draw_segment(struct canvas *c, int i)
{
	const struct gt_plot *p = c->p;
	double x0 = column_of(c, p->x[i], c->w * c->across), x1 = column_of(c, p->x[i + 1], c->w * c->across);
	double y0 = row_of(c, p->y[i], c->h * c->down), y1 = row_of(c, p->y[i + 1], c->h * c->down);
	double most = 4.0 * c->h * c->down; /* points outside the plot are clipped to this distance */
	int steps = 1 + (int)fmin(fmax(fabs(x1 - x0), fabs(y1 - y0)), most);
	for (int k = 0; k <= steps; k++) {
		double t = (double)k / steps;
		set_dot(c, (int)lround(x0 + t * (x1 - x0)), (int)lround(fmin(fmax(y0 + t * (y1 - y0), -most), most)));
	}
}

/* Returns y of the curve at x. */
static double value_at(const struct gt_plot *p, double x)
{
	int i = 0;
	while (i + 2 < p->n && p->x[i + 1] < x)
		i++;
	double span = p->n > 1 ? p->x[i + 1] - p->x[i] : 0, t = span > 0 ? (x - p->x[i]) / span : 0;
	return span > 0 ? p->y[i] + t * (p->y[i + 1] - p->y[i]) : p->y[i];
}

static void put_marks(struct canvas *c)
{
	const struct gt_plot *p = c->p;
	for (int i = p->nmarks - 1; i >= 0; i--) { /* the first mark is on top */
		if (isnan(p->mark[i]) || p->mark[i] < p->x[0] || p->mark[i] > p->x[p->n - 1])
			continue;
		double y = fmin(fmax(value_at(p, p->mark[i]), p->low), p->high);
		int col = (int)lround(column_of(c, p->mark[i], c->w)), row = (int)lround(row_of(c, y, c->h));
		c->letter[row * c->w + col] = p->letter[i];
	}
}

/* Writes the row without spaces at its end. buf: 3 * w + 1 bytes. */
static void row_text(const struct gt_cli *cli, const struct canvas *c, int row, char *buf)
{
	char *end = buf;
	int blank = 0;
	for (int i = 0; i < c->w; i++) {
		unsigned char bits = c->dots[row * c->w + i];
		char letter = c->letter[row * c->w + i];
		if (!bits && !letter) {
			blank++;
			continue;
		}
		for (; blank; blank--)
			*end++ = ' ';
		if (letter || !cli->utf8) {
			*end++ = letter ? letter : '*';
		} else { /* U+2800 + bits in UTF-8 */
			*end++ = (char)0xe2;
			*end++ = (char)(0xa0 + (bits >> 6));
			*end++ = (char)(0x80 + (bits & 0x3f));
		}
	}
	*end = '\0';
}

/* Prints the axis with a tick at each power of ten that has a label, and the labels. buf, labels: 3 * w + LABEL bytes. */
static void print_axis(struct gt_cli *cli, const struct canvas *c, char *buf, char *labels)
{
	const struct gt_plot *p = c->p;
	const char *line = cli->utf8 ? "─" : "-", *tick = cli->utf8 ? "┬" : "+";
	int every = 1, first = (int)ceil(p->x[0] - 1e-9), last = (int)floor(p->x[p->n - 1] + 1e-9), at = 0, end = 0;
	while ((last - first) / every * 7 > c->w) /* 7: the width of a label and a space */
		every++;
	*buf = '\0';
	for (int d = first; d <= last; d++) {
		char text[16];
		int col = (int)lround(column_of(c, d, c->w)), n = snprintf(text, sizeof text, "1e%d", d), start = col - n / 2;
		if ((d - first) % every || start < end || start + n > c->w + 2)
			continue;
		end += snprintf(labels + end, LABEL + (size_t)c->w * 3 - (size_t)end, "%*s%s", start - end, "", text);
		for (; at < col; at++)
			strcat(buf, line);
		strcat(buf, tick);
		at++;
	}
	for (; at < c->w; at++)
		strcat(buf, line);
	if (!end)
		*labels = '\0';
	gt_out(cli, "%*s%s%s\n", LABEL, "", cli->utf8 ? "└" : "+", buf);
	gt_out(cli, "%*s%s\n", LABEL + 1, "", labels);
}

enum gt_code gt_plot_print(struct gt_cli *cli, const struct gt_plot *p, struct gt_err *err)
{
	struct canvas c = {.p = p, .w = p->columns - LABEL - 1, .h = p->rows - 2, .across = cli->utf8 ? 2 : 1, .down = cli->utf8 ? 4 : 1};
	char *buf, *labels;
	if (c.w < LEAST)
		c.w = LEAST;
	GT_NEW(c.dots, cli->arena, c.w * c.h, err);
	GT_NEW(c.letter, cli->arena, c.w * c.h, err);
	GT_NEW(buf, cli->arena, 3 * c.w + LABEL + 16, err);
	GT_NEW(labels, cli->arena, 3 * c.w + LABEL + 16, err);
	for (int i = 0; i + 1 < p->n; i++)
		draw_segment(&c, i);
	put_marks(&c);
	for (int r = 0; r < c.h; r++) {
		char label[GT_UNITS] = "";
		if (r == 0 || r == c.h - 1 || r == c.h / 2)
			snprintf(label, sizeof label, "%.4g", p->high - (p->high - p->low) * r / (c.h - 1));
		row_text(cli, &c, r, buf);
		gt_out(cli, "%*s %s%s\n", LABEL - 1, label, cli->utf8 ? "│" : "|", buf);
	}
	print_axis(cli, &c, buf, labels);
	return GT_OK;
}
