/* Writes the section of the page with the worst predictions, each with its image, text or table row. */
#include "image/thumbnail.h"
#include "page/html.h"
#include "page/page.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SHORT_ROW 9 /* maximum number of columns of a table row that is shown without a click */
#define SIDE 160 /* maximum pixels of a side of an image */

/* ---- images ------------------------------------------------------------------------------------------------------------------------ */
/* Writes an image and subtracts its size from *most, the number of bytes left for images; writes a hint instead if the image is larger. */
static enum gt_code put_image(const struct gt_page_facts *p, const struct gt_mistake *x, size_t *most, FILE *f, struct gt_err *err)
{
	struct gt_thumbnail t;
	GT_TRY(gt_thumbnail_make(x->pixels, x->width, x->height, (int)x->channels, SIDE, &t, err));
	size_t bytes = (t.n + 2) / 3 * 4;
	if (bytes > *most) {
		fputs("<p class=\"hint\">The image is left out, because the page would be too large with it.</p>\n", f);
		free(t.png);
		return GT_OK;
	}
	*most -= bytes;
	fprintf(f, "<img alt=\"the sample\" width=\"%" PRId64 "\" height=\"%" PRId64 "\" src=\"data:image/png;base64,", t.width, t.height);
	gt_base64_put(f, t.png, t.n);
	fputs("\">\n", f);
	free(t.png);
	p->page->images++;
	return GT_OK;
}

/* ---- samples ----------------------------------------------------------------------------------------------------------------------- */
static void put_row(const struct gt_mistake *x, FILE *f)
{
	fprintf(f, "<details%s><summary>The row</summary><dl class=\"row\">\n", x->ncolumns <= SHORT_ROW ? " open" : "");
	for (int i = 0; i < x->ncolumns; i++) {
		fputs("<dt>", f);
		gt_html_text(f, x->column[i]);
		fputs("</dt><dd>", f);
		gt_html_text(f, x->cell[i]);
		fputs("</dd>\n", f);
	}
	fputs("</dl></details>\n", f);
}

static void put_text(const struct gt_mistake *x, FILE *f)
{
	fputs("<blockquote>", f);
	gt_html_text(f, x->text);
	fputs(x->cut ? "…</blockquote>\n" : "</blockquote>\n", f);
}

static enum gt_code put_sample(const struct gt_page_facts *p, const struct gt_mistake *x, size_t *most, FILE *f, struct gt_err *err)
{
	if (x->pixels)
		GT_TRY(put_image(p, x, most, f, err));
	if (x->text)
		put_text(x, f);
	if (x->ncolumns)
		put_row(x, f);
	if (x->why) {
		fputs("<p class=\"hint\">", f);
		gt_html_text(f, x->why);
		fputs("</p>\n", f);
	}
	return GT_OK;
}

/* ---- predictions ------------------------------------------------------------------------------------------------------------------- */
static void put_class(FILE *f, const struct gt_class_report *r, int64_t c)
{
	fputs("<b>", f);
	if (r->score[c].name)
		gt_html_short(f, r->score[c].name, 60);
	else
		fprintf(f, "class %" PRId64, c);
	fputs("</b>", f);
}

static void put_numbers(const struct gt_page_facts *p, const struct gt_mistake *x, FILE *f)
{
	const struct gt_value_report *r = p->eval->value_report;
	for (int i = 0; i < x->nvalues && i < r->values; i++) {
		fputs("<p>", f);
		gt_html_short(f, r->score[i].name, 60);
		fprintf(f, ": predicted <b>%.6g</b>, true <b>%.6g</b></p>\n", x->value[i], x->wanted[i]);
	}
}

static void put_prediction(const struct gt_page_facts *p, const struct gt_mistake *x, FILE *f)
{
	const struct gt_class_report *r = p->eval->report;
	if (!r) {
		put_numbers(p, x, f);
		return;
	}
	fputs("<p>", f);
	if (r->several) {
		put_class(f, r, x->label);
		fprintf(f, " is %s, probability %.4f</p>\n", x->missing ? "present, but not predicted" : "predicted, but not present",
		        x->probability);
		return;
	}
	fputs("predicted ", f);
	put_class(f, r, x->predicted);
	fprintf(f, " %.4f, true ", x->probability);
	put_class(f, r, x->label);
	fprintf(f, " %.4f</p>\n", x->right);
}

static enum gt_code put_mistake(const struct gt_page_facts *p, const struct gt_mistake *x, size_t *most, FILE *f, struct gt_err *err)
{
	fputs("<li>\n", f);
	GT_TRY(put_sample(p, x, most, f, err));
	put_prediction(p, x, f);
	fputs("<p class=\"from\">", f);
	gt_html_text(f, x->sample);
	fputs("</p></li>\n", f);
	return GT_OK;
}

enum gt_code gt_page_mistakes(const struct gt_page_facts *p, FILE *f, size_t most, struct gt_err *err)
{
	const struct gt_eval_result *e = p->eval;
	if (!e)
		return GT_OK;
	bool texts = e->nmistakes && (e->mistake[0].text || e->mistake[0].ncolumns);
	gt_html_section(f, "mistakes", e->value_report ? "Largest errors" : "Most confident mistakes");
	if (!e->nmistakes)
		fputs("<p>The model makes no mistakes on this split.</p>\n", f);
	fprintf(f, "<ol class=\"mistakes%s\">\n", texts ? " texts" : "");
	for (int i = 0; i < e->nmistakes; i++)
		GT_TRY(put_mistake(p, &e->mistake[i], &most, f, err));
	fputs("</ol>\n", f);
	gt_html_section_end(f);
	return GT_OK;
}
