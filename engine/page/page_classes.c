/* Writes the section of the page with the scores of the classes and the confusion matrix or, for numeric targets, with the errors. */
#include "page/html.h"
#include "page/page.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#define MOST_MATRIX 40 /* maximum classes of a matrix: a larger matrix is not readable */
#define MOST_PAIRS 30
#define MOST_ROWS 1000 /* maximum classes of a table */

/* Writes the name of a class, or its index if it has no name. */
static void put_class(FILE *f, const struct gt_class_report *r, int64_t c, int most)
{
	if (r->score[c].name)
		gt_html_short(f, r->score[c].name, most);
	else
		fprintf(f, "%" PRId64, c);
}

static void put_mean(FILE *f, const char *name, const struct gt_class_mean *m, double auc, int64_t support)
{
	fprintf(f, "<tr class=\"mean\"><th scope=\"row\">%s</th>", name);
	gt_html_number(f, m->precision, 4);
	gt_html_number(f, m->recall, 4);
	gt_html_number(f, m->f1, 4);
	gt_html_number(f, auc, 4);
	gt_html_count(f, support);
	fputs("</tr>\n", f);
}

static void put_score(const struct gt_class_report *r, int64_t c, FILE *f)
{
	const struct gt_class_score *s = &r->score[c];
	fputs("<tr><th scope=\"row\">", f);
	put_class(f, r, c, 60);
	fputs("</th>", f);
	gt_html_number(f, s->precision, 4);
	gt_html_number(f, s->recall, 4);
	gt_html_number(f, s->f1, 4);
	gt_html_number(f, s->auc, 4);
	gt_html_count(f, s->support);
	fputs("</tr>\n", f);
}

static void put_scores(const struct gt_class_report *r, FILE *f)
{
	int64_t support = 0;
	if (r->classes > MOST_ROWS)
		fprintf(f, "<p class=\"hint\">The first %d of %" PRId64 " classes:</p>\n", MOST_ROWS, r->classes);
	gt_html_table(f, "Scores by class", "Class|#Precision|#Recall|#F1|#ROC AUC|#Samples");
	for (int64_t c = 0; c < r->classes; c++) {
		support += r->score[c].support;
		if (c < MOST_ROWS)
			put_score(r, c, f);
	}
	if (r->several)
		put_mean(f, "Micro average", &r->micro, NAN, support);
	put_mean(f, "Macro average", &r->macro, r->auc, support);
	put_mean(f, "Weighted average", &r->weighted, NAN, support);
	gt_html_table_end(f);
}

/* ---- confusion --------------------------------------------------------------------------------------------------------------------- */
/* Writes a cell of the confusion matrix. The cell's share of its row selects one of six shades. Cells of the diagonal have a frame. */
static void put_matrix_cell(FILE *f, int64_t n, int64_t row, bool diagonal)
{
	int shade = row ? (int)ceil(5 * (double)n / (double)row) : 0;
	fprintf(f, "<td class=\"s%d%s\">", shade, diagonal ? " d" : "");
	if (n)
		fprintf(f, "%" PRId64, n);
	fputs("</td>", f);
}

static void put_matrix(const struct gt_class_report *r, FILE *f)
{
	fputs("<h3>Confusion matrix</h3>\n<p class=\"hint\">A row is a class, a column a prediction. The shade of a cell is its fraction of "
	      "the row; correct predictions have a frame.</p>\n", f);
	fputs("<div class=\"wide\" role=\"region\" aria-label=\"Confusion matrix\" tabindex=\"0\"><table class=\"matrix\" id=\"matrix\">\n"
	      "<thead><tr><td></td>", f);
	for (int64_t c = 0; c < r->classes; c++) {
		fputs("<th scope=\"col\"><span>", f);
		put_class(f, r, c, 16);
		fputs("</span></th>", f);
	}
	fputs("</tr></thead>\n<tbody>\n", f);
	for (int64_t c = 0; c < r->classes; c++) {
		fputs("<tr><th scope=\"row\">", f);
		put_class(f, r, c, 16);
		fputs("</th>", f);
		for (int64_t k = 0; k < r->classes; k++)
			put_matrix_cell(f, r->matrix[c * r->classes + k], r->score[c].support, c == k);
		fputs("</tr>\n", f);
	}
	gt_html_table_end(f);
}

static void put_pairs(const struct gt_class_report *r, FILE *f)
{
	int64_t n = r->nconfused < MOST_PAIRS ? r->nconfused : MOST_PAIRS;
	if (!n)
		return;
	fprintf(f, "<h3>The most frequent confusions</h3>\n");
	gt_html_table(f, "The most frequent confusions", "Class|Prediction|#Samples|#Of class");
	for (int64_t i = 0; i < n; i++) {
		const struct gt_confusion_cell *x = &r->confused[i];
		fputs("<tr><td>", f);
		put_class(f, r, x->label, 60);
		fputs("</td><td>", f);
		put_class(f, r, x->predicted, 60);
		fputs("</td>", f);
		gt_html_count(f, x->n);
		fprintf(f, "<td class=\"n\">%.1f %%</td></tr>\n", 100 * (double)x->n / (double)r->score[x->label].support);
	}
	gt_html_table_end(f);
}

static void put_class_report(const struct gt_class_report *r, FILE *f)
{
	char count[GT_HTML_NUMBER];
	gt_html_section(f, "classes", "Scores by class");
	fprintf(f, "<p>%s <b>%.4f</b> over %s samples, log loss <b>%.4f</b>.</p>\n", r->several ? "All labels correct" : "Accuracy",
	        r->accuracy, gt_page_count(count, r->samples), r->log_loss);
	put_scores(r, f);
	if (r->matrix && r->classes <= MOST_MATRIX)
		put_matrix(r, f);
	else if (!r->several)
		put_pairs(r, f);
	gt_html_section_end(f);
}

static void put_value_report(const struct gt_value_report *r, FILE *f)
{
	char buf[GT_HTML_NUMBER];
	gt_html_section(f, "values", "Errors by column");
	gt_html_table(f, "Errors by column", "Column|#MAE|#RMSE|#R2");
	for (int64_t i = 0; i < r->values; i++) {
		const struct gt_value_score *s = &r->score[i];
		fputs("<tr>", f);
		gt_html_head_cell(f, s->name);
		fprintf(f, "<td class=\"n\">%.6g</td><td class=\"n\">%.6g</td><td class=\"n\">%s</td></tr>\n", s->mae, s->rmse,
		        gt_page_value(buf, s->r2));
	}
	gt_html_table_end(f);
	gt_html_section_end(f);
}

void gt_page_classes(const struct gt_page_facts *p, FILE *f)
{
	if (p->eval && p->eval->report)
		put_class_report(p->eval->report, f);
	if (p->eval && p->eval->value_report)
		put_value_report(p->eval->value_report, f);
}
