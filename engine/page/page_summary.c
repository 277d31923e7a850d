/* Writes the head of the page: the description of the run, and its results. */
#include "page/html.h"
#include "page/page.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

static void put_fact(FILE *f, const char *name, const char *value, const char *about)
{
	fprintf(f, "<div><dt>%s</dt><dd><b>", name);
	gt_html_text(f, value);
	fputs("</b>", f);
	if (*about) {
		fputs(" <span>", f);
		gt_html_text(f, about);
		fputs("</span>", f);
	}
	fputs("</dd></div>\n", f);
}

static void put_best(const struct gt_page_facts *p, FILE *f)
{
	char value[GT_HTML_NUMBER], about[120], step[GT_HTML_NUMBER];
	const struct gt_run_record *r = &p->run;
	if (!r->best_metric)
		return;
	int n = snprintf(about, sizeof about, "%.60s at step %s", r->best_metric, gt_page_count(step, r->best_step));
	if (r->best_epoch >= 0)
		snprintf(about + n, sizeof about - (size_t)n, ", epoch %" PRId64, r->best_epoch);
	put_fact(f, "Best", gt_page_value(value, r->best), about);
}

/* Writes the scores of the evaluation, as `gtrain eval` prints them. */
static void put_scores(const struct gt_page_facts *p, FILE *f)
{
	char value[GT_HTML_NUMBER], about[120], samples[GT_HTML_NUMBER], step[GT_HTML_NUMBER];
	const struct gt_eval_result *e = p->eval;
	for (int i = 0; e && i < GT_SCORE_COUNT; i++) {
		double v = gt_score_get(&e->scores, (enum gt_score)i);
		if (isnan(v) || (i == GT_SCORE_top5 && e->classes && e->classes <= 5))
			continue;
		snprintf(about, sizeof about, "%s, %s samples, step %s", e->split, gt_page_count(samples, e->scores.samples),
		         gt_page_count(step, e->step));
		fprintf(f, "<!-- score %s %.9g -->", gt_score_rows[i].word, v);
		put_fact(f, gt_score_rows[i].label, gt_page_value(value, v), about);
	}
	if (e && e->calibration.n)
		put_fact(f, "Calibration error", gt_page_value(value, e->calibration.ece), "ECE, 0 is best");
}

/* Writes the last scores in the log of the run; used if there is no evaluation. */
static void put_last_scores(const struct gt_page_facts *p, FILE *f)
{
	char value[GT_HTML_NUMBER];
	for (int split = 1; split < 3 && !p->eval; split++)
		for (int i = 0; i < GT_SCORE_COUNT; i++)
			if (!isnan(p->run.last[split][i]))
				put_fact(f, gt_score_rows[i].label, gt_page_value(value, p->run.last[split][i]),
				         split == 1 ? "valid, last value in the log" : "test, last value in the log");
}

static void put_progress(const struct gt_page_facts *p, FILE *f)
{
	char text[120], a[GT_HTML_NUMBER], b[GT_HTML_NUMBER], about[120] = "";
	const struct gt_run_record *r = &p->run;
	int64_t params = p->check ? gt_json_count(p->check, "params") : -1;
	snprintf(text, sizeof text, r->steps ? "%s of %s" : "%s", gt_page_count(a, r->step), gt_page_count(b, r->steps));
	if (r->epochs)
		snprintf(about, sizeof about, "epoch %" PRId64 " of %" PRId64, r->epoch, r->epochs);
	put_fact(f, "Steps", text, about);
	if (r->seconds > 0)
		put_fact(f, "Training time", gt_page_seconds(a, r->seconds), "");
	if (params >= 0)
		put_fact(f, "Parameters", gt_page_count(a, params), "");
	put_fact(f, "Size on disk", gt_page_bytes(a, r->bytes), "");
}

static void put_notes(const struct gt_page_facts *p, FILE *f)
{
	if (!p->page->nmissing)
		return;
	fputs("<div class=\"notes\" role=\"note\"><h2>Notes</h2><ul>\n", f);
	for (int i = 0; i < p->page->nmissing; i++) {
		fputs("<li>", f);
		gt_html_text(f, p->page->missing[i]);
		fputs("</li>\n", f);
	}
	fputs("</ul></div>\n", f);
}

void gt_page_summary(const struct gt_page_facts *p, FILE *f)
{
	const struct gt_run_record *r = &p->run;
	fputs("<header>\n<h1>", f);
	gt_html_short(f, *r->name ? r->name : r->dir, 80);
	fputs("</h1>\n<p class=\"state\"><span class=\"badge\">", f);
	gt_html_text(f, r->state);
	fputs("</span> <code>", f);
	gt_html_text(f, r->dir);
	fputs("</code></p>\n", f);
	if (*r->started) {
		fputs("<p>", f);
		gt_html_text(f, r->started);
		fputs("</p>\n", f);
	}
	fputs("</header>\n", f);
	put_notes(p, f);
	gt_html_section(f, "summary", "Summary");
	fputs("<dl class=\"facts\">\n", f);
	put_best(p, f);
	put_scores(p, f);
	put_last_scores(p, f);
	put_progress(p, f);
	fputs("</dl>\n", f);
	gt_html_section_end(f);
	gt_page_repeat(p, f);
}
