/* The curves of the run: a picture for each score, and a table with the values of the epochs. */
#include "gtrain_chart.h"
#include "page/html.h"
#include "page/page.h"
#include <math.h>
#include <string.h>

#define WIDTH 470     /* width of a chart in pixels; with it, a phone shows letters in a readable size */
#define MOST_ROWS 200 /* maximum rows of the table of a score */

static bool has_color(const struct gt_chart_panel *p, int color)
{
	for (int i = 0; i < p->nlines; i++)
		if (p->line[i].color == color)
			return true;
	return false;
}

/* Gives each line a different dash, because not everybody can distinguish lines by their colours, and sets the legend to the lines of the
 * panel. */
static enum gt_code dash_lines(struct gt_chart *c, struct gt_arena *a, struct gt_err *err)
{
	struct gt_chart_panel *p = c->panel;
	struct gt_chart_key *key;
	int n = 0;
	GT_NEW(key, a, c->nkeys + 1, err);
	for (int k = 0; k < p->nlines; k++)
		p->line[k].dash = (enum gt_chart_dash)(p->line[k].color % 3);
	for (int i = 0; i < c->nkeys; i++)
		if (has_color(p, c->key[i].color))
			key[n++] = (struct gt_chart_key){c->key[i].text, c->key[i].color, (enum gt_chart_dash)(c->key[i].color % 3)};
	c->key = key;
	c->nkeys = n;
	return GT_OK;
}

/* Returns the value of a line at x; NAN: no value. *from: index of the point at which the search begins; the function updates it for the
 * next, larger x. */
static double value_at(const struct gt_chart_line *l, double x, int *from)
{
	while (*from < l->n && l->x[*from] < x)
		(*from)++;
	return *from < l->n && l->x[*from] == x ? l->y[*from] : NAN;
}

/* Returns the line with the most values among the lines with at most `most` values; NULL: no such line. */
static const struct gt_chart_line *find_longest(const struct gt_chart_panel *p, int most)
{
	const struct gt_chart_line *best = NULL;
	for (int i = 0; i < p->nlines; i++)
		if (!p->line[i].faint && p->line[i].n <= most && (!best || p->line[i].n > best->n))
			best = &p->line[i];
	return best;
}

static void put_table(const struct gt_chart *c, const struct gt_chart_panel *p, FILE *f)
{
	const struct gt_chart_line *rows = find_longest(p, MOST_ROWS);
	char head[200], value[GT_HTML_NUMBER];
	int at[8] = {0}, n = snprintf(head, sizeof head, "#%s", c->x_title);
	if (!rows)
		return;
	for (int i = 0; i < p->nlines && i < 8; i++)
		if (!p->line[i].faint && p->line[i].n <= MOST_ROWS)
			n += snprintf(head + n, sizeof head - (size_t)n, "|#%.20s", p->line[i].name);
	fprintf(f, "<details><summary>Values of %s as a table</summary>\n", p->title);
	gt_html_table(f, p->title, head);
	for (int row = 0; row < rows->n; row++) {
		fprintf(f, "<tr><td class=\"n\">%g</td>", rows->x[row]);
		for (int i = 0; i < p->nlines && i < 8; i++)
			if (!p->line[i].faint && p->line[i].n <= MOST_ROWS)
				fprintf(f, "<td class=\"n\">%s</td>", gt_page_value(value, value_at(&p->line[i], rows->x[row], &at[i])));
		fputs("</tr>\n", f);
	}
	gt_html_table_end(f);
	fputs("</details>\n", f);
}

static enum gt_code put_panel(const struct gt_page_facts *p, const struct gt_chart *all, int i, FILE *f, struct gt_err *err)
{
	struct gt_chart_panel panel = all->panel[i];
	struct gt_chart one = *all;
	one.title = "";
	one.panel = &panel;
	one.npanels = 1;
	one.width = WIDTH;
	GT_TRY(dash_lines(&one, p->arena, err));
	fputs("<div>", f);
	GT_TRY(gt_page_figure(&one, panel.title, f, err));
	put_table(&one, &panel, f);
	fputs("</div>\n", f);
	return GT_OK;
}

enum gt_code gt_page_curves(const struct gt_page_facts *p, FILE *f, struct gt_err *err)
{
	const struct gt_run_curves *const run[] = {p->curves};
	struct gt_run_chart_spec spec = {.partial = true};
	struct gt_chart *c;
	GT_TRY(gt_run_chart(run, 1, &spec, p->arena, &c, err));
	if (!c->npanels)
		return GT_OK;
	gt_html_section(f, "curves", "Curves");
	fputs("<p class=\"hint\">Pale lines show single training steps. Point at a curve to see values, or focus the curve and use the arrow "
	      "keys.</p>\n<div class=\"charts curves\">\n", f);
	bool few = p->eval && p->eval->classes && p->eval->classes <= 5; /* top-5 accuracy is always 1 if there are at most 5 classes */
	for (int i = 0; i < c->npanels; i++)
		if (!few || strcmp(c->panel[i].score, "top5") != 0)
			GT_TRY(put_panel(p, c, i, f, err));
	fputs("</div>\n", f);
	gt_html_section_end(f);
	return GT_OK;
}
