/* Writes the calibration diagram: for each bin of the predicted probability, the share of predictions that are correct. */
#include "gtrain_chart.h"
#include "page/html.h"
#include "page/page.h"
#include <math.h>

#define WIDTH 470

static enum gt_code draw_diagram(const struct gt_calibration *c, bool several, FILE *f, struct gt_err *err)
{
	double x[GT_CALIBRATION_BINS], y[GT_CALIBRATION_BINS];
	static const double ends[] = {0, 1};
	struct gt_chart_line line[] = {{"ideal", ends, ends, 2, 6, GT_DASH_DOTTED}, {"model", x, y, 0, 0, GT_DASH_SOLID, .points = true}};
	struct gt_chart_panel panel = {.title = several ? "fraction of present labels" : "fraction of correct predictions", .score = "share",
	                                                  .low = 0,
	                               .high = 1, .line = line, .nlines = 2};
	static const struct gt_chart_key key[] = {{"model", 0, GT_DASH_SOLID}, {"ideal", 6, GT_DASH_DOTTED}};
	struct gt_chart chart = {.title = "", .x_title = "probability", .panel = &panel, .npanels = 1, .key = key, .nkeys = 2, .width = WIDTH};
	for (int i = 0; i < GT_CALIBRATION_BINS; i++)
		if (c->bin[i].n) {
			x[line[1].n] = c->bin[i].probability;
			y[line[1].n++] = c->bin[i].right;
		}
	return gt_page_figure(&chart, "Calibration: below the ideal line, the model is overconfident", f, err);
}

static void put_bins(const struct gt_calibration *c, FILE *f)
{
	fputs("<details><summary>Calibration as a table</summary>\n", f);
	gt_html_table(f, "Calibration", "Probability|#Predictions|#Mean probability|#Fraction correct");
	for (int i = 0; i < GT_CALIBRATION_BINS; i++) {
		fprintf(f, "<tr><th scope=\"row\">%.2f to %.2f</th>", (double)i / GT_CALIBRATION_BINS, (double)(i + 1) / GT_CALIBRATION_BINS);
		gt_html_count(f, c->bin[i].n);
		gt_html_number(f, c->bin[i].probability, 4);
		gt_html_number(f, c->bin[i].right, 4);
		fputs("</tr>\n", f);
	}
	gt_html_table_end(f);
	fputs("</details>\n", f);
}

enum gt_code gt_page_calibration(const struct gt_page_facts *p, FILE *f, struct gt_err *err)
{
	char count[GT_HTML_NUMBER];
	const struct gt_calibration *c = p->eval ? &p->eval->calibration : NULL;
	if (!c || !c->n)
		return GT_OK;
	bool several = p->eval->report && p->eval->report->several;
	gt_html_section(f, "calibration", "Calibration");
	fprintf(f, "<p>Expected calibration error (ECE): <b id=\"ece\">%.4f</b>, over %s %s in %d bins. It is the mean distance between the "
	           "probability of a prediction and the fraction of predictions that %s.</p>\n<div class=\"charts\"><div>\n",
	        c->ece, gt_page_count(count, c->n), several ? "labels" : "predictions", GT_CALIBRATION_BINS,
	        several ? "are present" : "are correct");
	GT_TRY(draw_diagram(c, several, f, err));
	put_bins(c, f);
	fputs("</div></div>\n", f);
	gt_html_section_end(f);
	return GT_OK;
}
