#include "plot_chart.h"
#include "gtrain_chart.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define LABEL 9  /* columns of the labels on the left, including the space after the labels */
#define LEAST 16 /* minimum number of columns of the curves */
#define FAINT 0x80

struct plot {
	struct gt_cli *cli;
	const struct gt_chart *chart;
	const struct gt_chart_panel *panel;
	struct gt_axis x, y;
	int w, h;             /* size in characters */
	int across, down;     /* dots per character, horizontally and vertically */
	unsigned char *dots;  /* [w * h] one bit per dot, as in `braille`; 1 without Braille */
	unsigned char *color; /* [w * h] 1 + the colour of the line, with FAINT if it is faint; 0: no line */
	bool letters;         /* lines are marked with letters */
	char *letter;         /* [w * h] a letter instead of the dots; 0: no letter */
};

/* Returns the position of a value on an axis, 0 ... 1; limits values far outside. */
static double find_share(const struct gt_axis *a, double value)
{
	return fmin(fmax(gt_axis_share(a, value), -4), 4);
}

static double column_of(const struct plot *p, double x, int columns)
{
	return find_share(&p->x, x) * (columns - 1);
}

static double row_of(const struct plot *p, double y, int rows)
{
	return (1 - find_share(&p->y, y)) * (rows - 1);
}

/* ---- colours and letters of lines ------------------------------------------------------------------------------------------------ */
/* Prints the escape sequence of a line's colour, one of the terminal's palette. line: 1 + the colour; 0: no colour. */
static void print_color(struct gt_cli *cli, int line)
{
	static const int number[GT_CHART_COLORS] = {94, 33, 35, 36, 32, 31, 39};
	if (!cli->color_out)
		return;
	if (!line)
		gt_out(cli, "\033[0m");
	else
		gt_out(cli, line & FAINT ? "\033[0;2;%dm" : "\033[0;%dm", number[((line & ~FAINT) - 1) % GT_CHART_COLORS]);
}

/* Returns whether letters mark the lines: colours are off, or there are more lines than colours. */
static bool has_letters(const struct gt_cli *cli, const struct gt_chart *c)
{
	int n = 0;
	for (int i = 0; i < c->nkeys; i++)
		n += c->key[i].letter != 0;
	return n > 1 && (!cli->color_out || n > GT_CHART_COLORS);
}

/* ---- drawing --------------------------------------------------------------------------------------------------------------------- */
/* The bit of each dot, by column and row, in a Braille character, which is U+2800 + bits. */
static const unsigned char braille[2][4] = {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}};

/* Sets a dot. In a character that also has a faint line, a normal line replaces the faint line. */
static void set_dot(struct plot *p, int x, int y, const struct gt_chart_line *l)
{
	if (x < 0 || y < 0 || x >= p->w * p->across || y >= p->h * p->down)
		return;
	int at = y / p->down * p->w + x / p->across;
	if (!l->faint && (p->color[at] & FAINT))
		p->dots[at] = 0;
	p->dots[at] |= p->down == 1 ? 1 : braille[x % p->across][y % p->down];
	p->color[at] = (unsigned char)((1 + l->color) | (l->faint ? FAINT : 0));
	if (!p->cli->utf8 && p->letters && !l->faint)
		p->letter[at] = l->letter;
}

/* Returns whether the dash pattern of a line has a dot, `at` dots from the beginning of the line. */
static bool is_drawn(const struct plot *p, const struct gt_chart_line *l, int at)
{
	static const int drawn[2][3] = {{1, 2, 1}, {1, 7, 1}}, period[2][3] = {{1, 3, 2}, {1, 11, 4}};
	int fine = p->across > 1;
	return at % period[fine][l->dash] < drawn[fine][l->dash];
}

static bool is_drawable(const struct plot *p, const struct gt_chart_line *l, int i)
{
	return isfinite(l->y[i]) && (!p->y.log || l->y[i] > 0) && (!p->x.log || l->x[i] > 0);
}

/* Draws the line between two points, *at dots after the beginning of the line. */
static void draw_segment(struct plot *p, const struct gt_chart_line *l, int i, int k, int *at)
{
	double x0 = column_of(p, l->x[i], p->w * p->across), x1 = column_of(p, l->x[k], p->w * p->across);
	double y0 = row_of(p, l->y[i], p->h * p->down), y1 = row_of(p, l->y[k], p->h * p->down);
	int steps = (int)ceil(fmax(fabs(x1 - x0), fabs(y1 - y0)));
	for (int s = 0; s <= steps; s++) {
		double t = steps ? (double)s / steps : 0;
		if (is_drawn(p, l, *at + s))
			set_dot(p, (int)lround(x0 + t * (x1 - x0)), (int)lround(y0 + t * (y1 - y0)), l);
	}
	*at += steps;
}

static void draw_line(struct plot *p, const struct gt_chart_line *l)
{
	int at = 0;
	for (int i = 0; i < l->n; i++) {
		bool next = i + 1 < l->n && is_drawable(p, l, i + 1);
		if (is_drawable(p, l, i))
			draw_segment(p, l, i, next ? i + 1 : i, &at);
	}
}

/* Returns the y of a line at x. */
static double value_at(const struct gt_chart_line *l, double x)
{
	int i = 0;
	while (i + 2 < l->n && l->x[i + 1] < x)
		i++;
	double span = l->n > 1 ? l->x[i + 1] - l->x[i] : 0, t = span > 0 ? (x - l->x[i]) / span : 0;
	return span > 0 ? l->y[i] + t * (l->y[i + 1] - l->y[i]) : l->y[i];
}

/* Puts a letter on a line, or where the line leaves the plot. */
static void put_letter(struct plot *p, const struct gt_chart_line *l, double x, char letter, int color)
{
	double y = value_at(l, x);
	if (!(x >= p->x.low && x <= p->x.high) || !isfinite(y) || (p->y.log && !(y > 0)))
		return;
	int col = (int)lround(column_of(p, x, p->w)), row = (int)lround(row_of(p, fmin(fmax(y, p->y.low), p->y.high), p->h));
	p->letter[row * p->w + col] = letter;
	p->color[row * p->w + col] = (unsigned char)color;
}

/* Puts the letter of a line of dots at several positions, which differ from line to line. */
static void put_letters(struct plot *p, const struct gt_chart_line *l)
{
	for (int i = 0; i < 4 && l->n && p->letters && p->cli->utf8 && !l->faint; i++) {
		double share = fmod(i + 0.1 + 0.11 * (l->letter - 'a') + 0.25 * l->dash, 4) / 4;
		put_letter(p, l, l->x[0] + share * (l->x[l->n - 1] - l->x[0]), l->letter, 1 + l->color);
	}
}

static void put_marks(struct plot *p)
{
	const struct gt_chart_line *l = NULL;
	for (int i = 0; i < p->panel->nlines; i++)
		l = p->panel->line[i].faint ? l : &p->panel->line[i];
	for (int i = p->panel->nmarks - 1; i >= 0 && l; i--) /* the first mark is on top */
		if (!isnan(p->panel->mark[i].x))
			put_letter(p, l, p->panel->mark[i].x, p->panel->mark[i].letter, 0);
}

/* ---- printing -------------------------------------------------------------------------------------------------------------------- */
static void print_row(struct plot *p, int row)
{
	int blank = 0, color = 0;
	for (int i = 0; i < p->w; i++) {
		int at = row * p->w + i;
		unsigned char bits = p->dots[at];
		char letter = p->letter[at];
		if (!bits && !letter) {
			blank++;
			continue;
		}
		gt_out(p->cli, "%*s", blank, "");
		blank = 0;
		if (p->color[at] != color)
			print_color(p->cli, color = p->color[at]);
		if (letter || !p->cli->utf8)
			gt_out(p->cli, "%c", letter ? letter : '*');
		else /* writes the Braille character U+2800 + bits in UTF-8 */
			gt_out(p->cli, "%c%c%c", 0xe2, 0xa0 + (bits >> 6), 0x80 + (bits & 0x3f));
	}
	if (color)
		print_color(p->cli, 0);
	gt_out(p->cli, "\n");
}

static void print_rows(struct plot *p)
{
	for (int r = 0; r < p->h; r++) {
		char label[GT_AXIS_LABEL] = "";
		for (int i = 0; i < p->y.n; i++)
			if ((int)lround(row_of(p, p->y.tick[i], p->h)) == r)
				gt_axis_label(&p->y, p->y.tick[i], label);
		gt_out(p->cli, "%*s %s", LABEL - 1, label, p->cli->utf8 ? "│" : "|");
		print_row(p, r);
	}
}

/* Prints the line of the axis with ticks at n columns. */
static void print_axis_line(struct plot *p, const int *column, int n)
{
	bool utf8 = p->cli->utf8;
	gt_out(p->cli, "%*s%s", LABEL, "", utf8 ? "└" : "+");
	for (int at = 0, i = 0; at < p->w; at++) {
		bool tick = i < n && column[i] == at;
		gt_out(p->cli, "%s", utf8 ? tick ? "┬" : "─" : tick ? "+" : "-");
		i += tick;
	}
	gt_out(p->cli, "\n");
}

/* Prints the axis, with a tick for each label that fits, and the labels below. */
static void print_axis(struct plot *p)
{
	char label[GT_AXIS_TICKS][GT_AXIS_LABEL];
	int column[GT_AXIS_TICKS], start[GT_AXIS_TICKS], n = 0, end = -1;
	for (int i = 0; i < p->x.n; i++) {
		int wide = (int)strlen(gt_axis_label(&p->x, p->x.tick[i], label[n]));
		column[n] = (int)lround(column_of(p, p->x.tick[i], p->w));
		start[n] = column[n] - wide / 2 < 0 ? 0 : column[n] - wide / 2;
		start[n] = start[n] + wide > p->w ? p->w - wide : start[n];
		if (start[n] > end)
			end = start[n++] + wide;
	}
	print_axis_line(p, column, n);
	gt_out(p->cli, "%*s", LABEL + 1, "");
	end = 0;
	for (int i = 0; i < n; i++) {
		gt_out(p->cli, "%*s%s", start[i] - end, "", label[i]);
		end = start[i] + (int)strlen(label[i]);
	}
	gt_out(p->cli, "\n");
}

/* Removes faint lines from the panel and from the range of its axes: without colours, they would hide other lines. */
static enum gt_code drop_faint_lines(struct gt_chart_panel *panel, struct gt_arena *a, struct gt_err *err)
{
	struct gt_chart_line *kept;
	int n = 0;
	GT_NEW(kept, a, panel->nlines, err);
	for (int i = 0; i < panel->nlines; i++)
		if (!panel->line[i].faint)
			kept[n++] = panel->line[i];
	panel->line = kept;
	panel->nlines = n;
	return GT_OK;
}

static enum gt_code print_panel(struct plot *p, struct gt_arena *a, struct gt_err *err)
{
	struct gt_cli *cli = p->cli;
	struct gt_chart_panel panel = *p->panel;
	if (!cli->color_out)
		GT_TRY(drop_faint_lines(&panel, a, err));
	p->panel = &panel;
	GT_NEW(p->dots, a, p->w * p->h, err);
	GT_NEW(p->color, a, p->w * p->h, err);
	GT_NEW(p->letter, a, p->w * p->h, err);
	gt_chart_axes(p->chart, p->panel, p->w / 8, p->h / 3 + 1, &p->x, &p->y);
	for (int faint = 1; faint >= 0; faint--)
		for (int i = 0; i < p->panel->nlines; i++)
			if (p->panel->line[i].faint == (faint == 1))
				draw_line(p, &p->panel->line[i]);
	for (int i = 0; i < p->panel->nlines; i++)
		put_letters(p, &p->panel->line[i]);
	put_marks(p);
	gt_out(cli, "%s%s%s by %s%s\n", gt_style(cli->color_out, GT_STYLE_BOLD), p->panel->title, gt_style(cli->color_out, GT_STYLE_NONE),
	       p->chart->x_title, p->panel->log_y ? ", logarithmic" : "");
	print_rows(p);
	print_axis(p);
	return GT_OK;
}

/* ---- the legend ------------------------------------------------------------------------------------------------------------------ */
/* Prints a key: "── train", "a train" without colours, "-- train" without UTF-8. */
static void print_key(struct gt_cli *cli, const struct gt_chart_key *k, bool letters, const char *text)
{
	static const char *const sample[2][3] = {{"--", "- ", ".."}, {"──", "╌╌", "┈┈"}};
	print_color(cli, k->color + 1);
	if (letters && k->letter)
		gt_out(cli, "%c", k->letter);
	else
		gt_out(cli, "%s", sample[cli->utf8][k->dash]);
	print_color(cli, 0);
	gt_out(cli, " %s", text);
}

/* Prints the legend, or only counts its lines. */
static int fill_legend(struct gt_cli *cli, const struct gt_chart *c, int columns, bool print)
{
	bool letters = has_letters(cli, c);
	int lines = c->nkeys > 0, col = 0;
	for (int i = 0; i < c->nkeys; i++) {
		char text[256];
		gt_text_fit(cli, c->key[i].text, columns - 3, text, sizeof text);
		int wide = gt_text_width(text) + (letters && c->key[i].letter ? 2 : 3);
		bool breaks = col && col + 2 + wide > columns;
		lines += breaks;
		if (print && col)
			gt_out(cli, breaks ? "\n" : "  ");
		if (print)
			print_key(cli, &c->key[i], letters, text);
		col = breaks || !col ? wide : col + 2 + wide;
	}
	if (print && lines)
		gt_out(cli, "\n");
	return lines;
}

int gt_plot_legend_rows(struct gt_cli *cli, const struct gt_chart *c, int columns)
{
	return fill_legend(cli, c, columns, false);
}

enum gt_code gt_plot_chart(struct gt_cli *cli, const struct gt_chart *c, struct gt_plot_size size, struct gt_arena *a, int *lines,
                           struct gt_err *err)
{
	*lines += fill_legend(cli, c, size.columns, true);
	for (int i = 0; i < c->npanels && i < size.panels; i++) {
		struct plot p = {.cli = cli, .chart = c, .panel = &c->panel[i], .letters = has_letters(cli, c),
		                 .w = size.columns - LABEL - 1, .h = size.rows,
		                 .across = cli->utf8 ? 2 : 1, .down = cli->utf8 ? 4 : 1};
		p.w = p.w < LEAST ? LEAST : p.w;
		p.h = p.h < 3 ? 3 : p.h;
		GT_TRY(print_panel(&p, a, err));
		*lines += p.h + 3;
	}
	return GT_OK;
}
