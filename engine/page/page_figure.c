/* Writes a chart as an SVG picture, and its values as JSON for the script. */
#include "base/json.h"
#include "gtrain_chart.h"
#include "page/page.h"
#include <math.h>
#include <stdlib.h>

static void put_axis(struct gt_json *j, const char *key, const struct gt_axis *a)
{
	gt_json_row(j, key, GT_NUM("low", a->low, 9), GT_NUM("high", a->high, 9), GT_BOOL("log", a->log));
}

static void put_lines(struct gt_json *j, const struct gt_chart_panel *p)
{
	gt_json_array(j, "lines");
	for (int i = 0; i < p->nlines; i++) {
		const struct gt_chart_line *l = &p->line[i];
		if (l->faint)
			continue;
		gt_json_object(j, NULL);
		gt_json_string(j, "name", l->name);
		gt_json_numbers(j, "x", l->x, l->n, 6);
		gt_json_numbers(j, "y", l->y, l->n, 6);
		gt_json_end(j);
	}
	gt_json_end(j);
}

/* Writes JSON into a script element. Each "<" is escaped, so that no string can end the element. */
static void put_script_json(FILE *f, const char *text)
{
	for (; *text; text++)
		if (*text == '<')
			fputs("\\u003c", f);
		else
			fputc(*text, f);
}

static enum gt_code put_values(const struct gt_chart *c, FILE *f, struct gt_err *err)
{
	struct gt_json j = {0};
	struct gt_chart_frame at;
	const char *text;
	gt_chart_place(c, 0, &at);
	gt_json_object(&j, NULL);
	gt_json_string(&j, "unit", c->x_title);
	gt_json_numbers(&j, "box", (double[]){at.at.x, at.at.y, at.at.w, at.at.h}, 4, 6);
	put_axis(&j, "x", &at.x);
	put_axis(&j, "y", &at.y);
	put_lines(&j, c->panel);
	gt_json_end(&j);
	enum gt_code code = gt_json_finish(&j, &text, err);
	if (code == GT_OK) {
		fputs("<script type=\"application/json\">", f);
		put_script_json(f, text);
		fputs("</script>\n", f);
	}
	gt_json_free(&j);
	return code;
}

enum gt_code gt_page_figure(const struct gt_chart *c, const char *caption, FILE *f, struct gt_err *err)
{
	char *svg;
	size_t n;
	GT_TRY(gt_chart_svg(c, &svg, &n, err));
	fprintf(f, "<figure class=\"chart\"><div class=\"plot\">\n");
	fwrite(svg, 1, n, f);
	free(svg);
	fprintf(f, "</div>\n<figcaption>%s</figcaption>\n", caption);
	GT_TRY(put_values(c, f, err));
	fputs("</figure>\n", f);
	return GT_OK;
}
