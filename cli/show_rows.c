/* Prints texts and rows of `gtrain show` as text, and all samples as JSON. */
#include "show_print.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define LINES 4   /* maximum lines of a text, without --verbose */
#define NUMBER 10 /* width of a sample's column in the table of rows */
#define NAMES 24  /* maximum width of the column of names */

/* ---- texts ----------------------------------------------------------------------------------------------------------------------- */
/* A paragraph that is printed word by word. */
struct paragraph {
	struct gt_cli *cli;
	int column, width, line, lines; /* lines: maximum number of printed lines */
};

/* Prints a word. Returns false if the paragraph is full. */
static bool print_word(struct paragraph *p, const char *word, bool marked)
{
	char shown[600];
	gt_cli_printable(word, shown, sizeof shown);
	int wide = gt_text_width(shown);
	if (p->column > 2 && p->column + 1 + wide > p->width) {
		if (++p->line == p->lines) {
			gt_out(p->cli, p->cli->utf8 ? " …" : " ...");
			return false;
		}
		gt_out(p->cli, "\n");
		p->column = 0;
	}
	gt_out(p->cli, "%s%s%s%s", p->column ? " " : "  ", marked ? gt_style(p->cli->color_out, GT_STYLE_RED) : "", shown,
	       marked ? gt_style(p->cli->color_out, GT_STYLE_NONE) : "");
	p->column += wide + (p->column ? 1 : 2);
	return true;
}

static void print_plain_text(struct paragraph *p, const char *text)
{
	for (char word[512]; *text;) {
		size_t n = strcspn(text, " \t\r\n"), skip = n;
		n = n < sizeof word ? n : sizeof word - 1;
		snprintf(word, sizeof word, "%.*s", (int)n, text);
		if (n && !print_word(p, word, false))
			return;
		text += n < skip ? n : skip + (text[skip] != 0);
	}
}

static void print_tokens(struct paragraph *p, const struct gt_shown_sample *s)
{
	for (int i = 0; i < s->ntokens; i++)
		if (!print_word(p, s->token[i].text, s->token[i].unknown))
			return;
}

static void print_head(struct gt_cli *cli, const struct gt_shown_sample *s)
{
	char caption[512], counts[64] = "", shown[600], name[4400];
	gt_cli_printable(gt_shown_caption(s, 0, caption, sizeof caption), shown, sizeof shown);
	if (s->ntokens)
		snprintf(counts, sizeof counts, "  %d token%s, %d unknown", s->ntokens, s->ntokens == 1 ? "" : "s", s->nunknown);
	int room = gt_out_columns() - gt_text_width(shown) - gt_text_width(counts) - 2;
	room = gt_out_terminal() ? room > 0 ? room : 1 : INT_MAX;
	gt_out(cli, "%s%s%s%s  %s\n", gt_style(cli->color_out, GT_STYLE_BOLD), shown, gt_style(cli->color_out, GT_STYLE_NONE), counts,
	       gt_text_fit(cli, s->name, room, name, sizeof name));
}

enum gt_code gt_show_print_texts(struct gt_cli *cli, const struct gt_shown *b, struct gt_err *err)
{
	(void)err;
	for (int i = 0; i < b->n; i++) {
		const struct gt_shown_sample *s = &b->sample[i];
		struct paragraph p = {.cli = cli, .width = gt_out_columns() - 2, .lines = cli->args.verbose ? 0 : LINES};
		if (!s->ntokens && !s->text)
			continue;
		print_head(cli, s);
		if (s->text)
			print_plain_text(&p, s->text);
		else
			print_tokens(&p, s);
		gt_out(cli, "\n\n");
	}
	return GT_OK;
}

/* ---- rows ------------------------------------------------------------------------------------------------------------------------ */
static const char *cell_text(const struct gt_shown_value *v, char *buf, size_t size)
{
	if (v->missing)
		snprintf(buf, size, "(missing)");
	else if (v->text)
		snprintf(buf, size, "%s", v->text);
	else
		snprintf(buf, size, "%.4g", v->value);
	return buf;
}

/* Prints a cell, aligned to the right: red if its category is unknown, dim if it is missing. */
static void print_cell(struct gt_cli *cli, const struct gt_shown_value *v)
{
	char text[600], fit[600];
	gt_text_fit(cli, cell_text(v, text, sizeof text), NUMBER, fit, sizeof fit);
	enum gt_style style = v->unknown ? GT_STYLE_RED : v->missing ? GT_STYLE_DIM : GT_STYLE_NONE;
	gt_out(cli, "  %*s%s%s%s", NUMBER - gt_text_width(fit), "", gt_style(cli->color_out && style, style), fit,
	       gt_style(cli->color_out && style, GT_STYLE_NONE));
}

static void print_name(struct gt_cli *cli, const char *name, int width)
{
	char fit[600];
	gt_text_fit(cli, name, width, fit, sizeof fit);
	gt_out(cli, "%s%*s", fit, width - gt_text_width(fit), "");
}

static void print_rule(struct gt_cli *cli, int width)
{
	gt_out(cli, "%s", gt_style(cli->color_out, GT_STYLE_DIM));
	for (int i = 0; i < width; i++)
		gt_out(cli, "%s", cli->utf8 ? "─" : "-");
	gt_out(cli, "%s\n", gt_style(cli->color_out, GT_STYLE_NONE));
}

/* Prints a line of class names: line 0 or 1 of the captions. */
static void print_classes(struct gt_cli *cli, const struct gt_shown_sample *s, int n, int width, int line)
{
	char text[512];
	bool some = false;
	for (int i = 0; i < n; i++)
		some |= s[i].nshares > 0 && *gt_shown_caption(&s[i], line, text, sizeof text);
	if (!some)
		return;
	print_name(cli, line ? "" : "class", width);
	for (int i = 0; i < n; i++)
		print_cell(cli, &(struct gt_shown_value){.text = gt_shown_caption(&s[i], line, text, sizeof text)});
	gt_out(cli, "\n");
}

/* Prints the samples s[0 ... n - 1] as a table with a line for each column of the data. */
static void print_block(struct gt_cli *cli, const struct gt_shown_sample *s, int n, int width)
{
	char text[32];
	gt_out(cli, "%s", gt_style(cli->color_out, GT_STYLE_BOLD));
	print_name(cli, "sample", width);
	for (int i = 0; i < n; i++) {
		snprintf(text, sizeof text, "%lld", (long long)s[i].index);
		gt_out(cli, "  %*s", NUMBER, text);
	}
	gt_out(cli, "%s\n", gt_style(cli->color_out, GT_STYLE_NONE));
	print_rule(cli, width + n * (NUMBER + 2));
	for (int k = 0; k < s->nvalues; k++) {
		print_name(cli, s->value[k].name, width);
		for (int i = 0; i < n; i++)
			print_cell(cli, &s[i].value[k]);
		gt_out(cli, "\n");
	}
	print_rule(cli, width + n * (NUMBER + 2));
	for (int k = 0; k < s->ntargets; k++) {
		print_name(cli, s->target[k].name, width);
		for (int i = 0; i < n; i++)
			print_cell(cli, &s[i].target[k]);
		gt_out(cli, "\n");
	}
	print_classes(cli, s, n, width, 0);
	print_classes(cli, s, n, width, 1);
}

enum gt_code gt_show_print_rows(struct gt_cli *cli, const struct gt_shown *b, struct gt_err *err)
{
	int width = 6, across;
	(void)err;
	if (!b->n || !b->sample[0].nvalues)
		return GT_OK;
	for (int k = 0; k < b->sample[0].nvalues; k++)
		width = gt_text_width(b->sample[0].value[k].name) > width ? gt_text_width(b->sample[0].value[k].name) : width;
	width = width < NAMES ? width : NAMES;
	across = (gt_out_columns() - width) / (NUMBER + 2);
	across = across < 1 ? 1 : across;
	for (int i = 0; i < b->n; i += across) {
		print_block(cli, &b->sample[i], b->n - i < across ? b->n - i : across, width);
		gt_out(cli, "\n");
	}
	return GT_OK;
}

/* ---- JSON ------------------------------------------------------------------------------------------------------------------------ */
static void values_json(struct gt_json *j, const char *key, const struct gt_shown_value *v, int n)
{
	gt_json_array(j, key);
	for (int i = 0; i < n; i++)
		gt_json_row(j, NULL, GT_STR("name", v[i].name), GT_NUM("value", v[i].value, 9), GT_STR("text", v[i].text),
		            GT_BOOL("unknown", v[i].unknown), GT_BOOL("missing", v[i].missing));
	gt_json_end(j);
}

static void sample_json(struct gt_json *j, const struct gt_shown_sample *s)
{
	gt_json_object(j, NULL);
	gt_json_add(j, GT_INT("index", s->index), GT_INT("step", s->step), GT_STR("path", s->name), GT_BOOL("skipped", s->skipped));
	gt_json_array(j, "classes");
	for (int i = 0; i < s->nshares; i++)
		gt_json_row(j, NULL, GT_INT("class", s->share[i].class), GT_STR("name", s->share[i].name), GT_NUM("share", s->share[i].share, 9));
	gt_json_end(j);
	values_json(j, "targets", s->target, s->ntargets);
	values_json(j, "values", s->value, s->nvalues);
	gt_json_array(j, "tokens");
	for (int i = 0; i < s->ntokens; i++)
		gt_json_row(j, NULL, GT_STR("text", s->token[i].text), GT_BOOL("unknown", s->token[i].unknown));
	gt_json_end(j);
	gt_json_string(j, "text", s->text);
	if (s->image.c)
		gt_json_row(j, "image", GT_INT("channels", s->image.c), GT_INT("height", s->image.full_h), GT_INT("width", s->image.full_w));
	else
		gt_json_null(j, "image");
	gt_json_end(j);
}

enum gt_code gt_show_print_json(struct gt_cli *cli, const struct gt_shown *b, struct gt_err *err)
{
	struct gt_json *j = &cli->json;
	gt_json_object(j, NULL);
	gt_json_add(j, GT_STR("name", b->name), GT_STR("split", b->split), GT_STR("data", b->where), GT_BOOL("plain", b->plain),
	            GT_BOOL("drawn", b->drawn_from > 0), GT_INT("step", b->step), GT_INT("epoch", b->epoch), GT_INT("batch", b->batch),
	            GT_STR("transforms", b->transforms));
	gt_json_array(j, "mix");
	for (int i = 0; i < b->nmix; i++)
		gt_json_row(j, NULL, GT_INT("step", b->mix[i].step), GT_STR("how", b->mix[i].how), GT_NUM("share", b->mix[i].share, 9));
	gt_json_end(j);
	gt_json_row(j, "input", GT_NUM("min", b->least, 9), GT_NUM("max", b->most, 9), GT_NUM("mean", b->mean, 9), GT_NUM("std", b->std, 9));
	gt_json_array(j, "samples");
	for (int i = 0; i < b->n; i++)
		sample_json(j, &b->sample[i]);
	gt_json_end(j);
	gt_json_end(j);
	return gt_out_json(cli, err);
}
