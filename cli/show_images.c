/* Prints images on a terminal: a character shows two pixels, one above the other, by its foreground and background colour. */
#include "show_print.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIDEST 32 /* maximum columns of a tile; images up to this size are shown pixel by pixel if three of them fit */
#define NARROWEST 8
#define ENLARGED 16 /* smaller images are enlarged by an integer factor, so that their captions fit */
#define GAP 2
#define AT_LEAST 3 /* minimum tiles in a row, if the terminal is wide enough */

struct screen {
	struct gt_cli *cli;
	bool true_color; /* true: 24-bit colours; false: the 256 colours of xterm */
	int across;      /* tiles in a row */
	int width;       /* columns of a tile */
	uint8_t *rgb;    /* [across][width * height * 3] */
	int height[64];  /* rows of pixels of each tile in a row of tiles: an even number */
};

/* ---- colours --------------------------------------------------------------------------------------------------------------------- */
/* Returns the level, 0 ... 5, of the colour cube of xterm that is nearest to a value. */
static int cube_level(int v)
{
	return v < 48 ? 0 : v < 115 ? 1 : (v - 35) / 40;
}

static int color_distance(const uint8_t *p, int r, int g, int b)
{
	return (p[0] - r) * (p[0] - r) + (p[1] - g) * (p[1] - g) + (p[2] - b) * (p[2] - b);
}

/* Returns the index of the nearest of xterm's 256 colours: in the colour cube, or one of 24 greys. */
static int nearest_color(const uint8_t *p)
{
	static const int value[6] = {0, 95, 135, 175, 215, 255};
	int r = cube_level(p[0]), g = cube_level(p[1]), b = cube_level(p[2]), mean = (p[0] + p[1] + p[2]) / 3;
	int grey = mean < 8 ? 0 : mean > 238 ? 23 : (mean - 3) / 10, level = 8 + 10 * grey;
	return color_distance(p, level, level, level) < color_distance(p, value[r], value[g], value[b]) ? 232 + grey : 16 + 36 * r + 6 * g + b;
}

/* Sets the foreground (which = 38) or the background colour (48). */
static void set_color(const struct screen *s, int which, const uint8_t *p)
{
	if (s->true_color)
		gt_out(s->cli, "\033[%d;2;%d;%d;%dm", which, p[0], p[1], p[2]);
	else
		gt_out(s->cli, "\033[%d;5;%dm", which, nearest_color(p));
}

static int pixel_brightness(const uint8_t *p)
{
	return (299 * p[0] + 587 * p[1] + 114 * p[2]) / 1000;
}

/* Prints two pixels, one above the other, as a character. */
static void print_cell(const struct screen *s, const uint8_t *upper, const uint8_t *lower)
{
	static const char ramp[] = " .:-=+*#%@";
	uint8_t mean[3];
	if (!s->cli->color_out) {
		gt_out(s->cli, "%c", ramp[(pixel_brightness(upper) + pixel_brightness(lower)) * 9 / 510]);
		return;
	}
	for (int k = 0; k < 3; k++)
		mean[k] = (uint8_t)((upper[k] + lower[k]) / 2);
	if (s->cli->utf8)
		set_color(s, 38, upper);
	set_color(s, 48, s->cli->utf8 ? lower : mean);
	gt_out(s->cli, "%s", s->cli->utf8 ? "▀" : " ");
}

/* ---- tiles ----------------------------------------------------------------------------------------------------------------------- */
static void choose_tiles(struct screen *s, const struct gt_shown *b)
{
	int columns = gt_out_columns();
	int64_t w = 1;
	for (int i = 0; i < b->n; i++)
		w = b->sample[i].image.w > w ? b->sample[i].image.w : w;
	int third = (columns + GAP) / AT_LEAST - GAP;
	if (w < ENLARGED)
		w *= (ENLARGED + w - 1) / w;
	s->width = w < WIDEST ? (int)w : WIDEST;
	s->width = s->width < third ? s->width : third;
	s->width = s->width > NARROWEST ? s->width : NARROWEST;
	s->across = (columns + GAP) / (s->width + GAP);
	s->across = s->across < 1 ? 1 : s->across > 64 ? 64 : s->across;
}

/* Scales an image to a tile. Returns its number of pixel rows. */
static int make_tile(const struct screen *s, const struct gt_shown_image *m, uint8_t *rgb)
{
	if (!m->c)
		return 0;
	int64_t h = (m->h * s->width + m->w / 2) / m->w, most = 2 * WIDEST;
	h = h < 2 ? 2 : h > most ? most : h + h % 2;
	gt_shown_scale(m, s->width, h, rgb);
	return (int)h;
}

static void print_caption(struct screen *s, const struct gt_shown_sample *sample, int n, int line)
{
	char text[512], fit[512];
	int blank = 0;
	for (int i = 0; i < n; i++) {
		gt_text_fit(s->cli, gt_shown_caption(&sample[i], line, text, sizeof text), s->width, fit, sizeof fit);
		if (*fit) {
			gt_out(s->cli, "%*s%s", blank, "", fit);
			blank = 0;
		}
		blank += s->width - gt_text_width(fit) + GAP;
	}
	gt_out(s->cli, "\n");
}

/* Prints one line of characters of all tiles in a row. */
static void print_pixels(const struct screen *s, int n, int row)
{
	size_t tile = (size_t)s->width * 2 * WIDEST * 3, line = (size_t)s->width * 3;
	for (int i = 0; i < n; i++) {
		const uint8_t *p = s->rgb + (size_t)i * tile + 2 * (size_t)row * line;
		for (int x = 0; x < s->width && 2 * row < s->height[i]; x++)
			print_cell(s, p + 3 * x, p + line + 3 * x);
		gt_out(s->cli, "%s", s->cli->color_out ? "\033[0m" : "");
		gt_out(s->cli, "%*s", (2 * row < s->height[i] ? 0 : s->width) + (i + 1 < n ? GAP : 0), "");
	}
	gt_out(s->cli, "\n");
}

static bool has_second_line(const struct gt_shown_sample *sample, int n)
{
	char text[512];
	for (int i = 0; i < n; i++)
		if (*gt_shown_caption(&sample[i], 1, text, sizeof text))
			return true;
	return false;
}

static void print_tiles(struct screen *s, const struct gt_shown_sample *sample, int n)
{
	int rows = 0;
	for (int i = 0; i < n; i++) {
		s->height[i] = make_tile(s, &sample[i].image, s->rgb + (size_t)i * (size_t)s->width * 2 * WIDEST * 3);
		rows = s->height[i] / 2 > rows ? s->height[i] / 2 : rows;
	}
	for (int row = 0; row < rows; row++)
		print_pixels(s, n, row);
	print_caption(s, sample, n, 0);
	if (has_second_line(sample, n))
		print_caption(s, sample, n, 1);
	gt_out(s->cli, "\n");
}

enum gt_code gt_show_print_images(struct gt_cli *cli, const struct gt_shown *b, struct gt_err *err)
{
	const char *word = getenv("COLORTERM");
	struct screen s = {.cli = cli, .true_color = word && (!strcmp(word, "truecolor") || !strcmp(word, "24bit"))};
	choose_tiles(&s, b);
	GT_NEW(s.rgb, cli->arena, s.across * s.width * 2 * WIDEST * 3, err);
	for (int i = 0; i < b->n; i += s.across)
		print_tiles(&s, &b->sample[i], b->n - i < s.across ? b->n - i : s.across);
	return GT_OK;
}
