/* The table of the layers, with the time of each layer in a training step if it was measured. */
#include "page/html.h"
#include "page/page.h"
#include <math.h>
#include <string.h>

/* Returns the time of a layer in a step in milliseconds: forward, backward and update. */
static double layer_ms(const struct gt_bench *b, const char *name)
{
	double ms = 0;
	for (int i = 0; i < b->nrows; i++)
		if (!strcmp(b->rows[i].layer, name))
			ms += b->rows[i].ms;
	return ms;
}

static const char *flops_text(char *buf, double v)
{
	static const char *const unit[] = {"", " k", " M", " G", " T", " P"};
	int i = 0;
	for (; v >= 1000 && i < 5; i++)
		v /= 1000;
	snprintf(buf, GT_HTML_NUMBER, i ? "%.1f%s" : "%.0f%s", v, unit[i]);
	return buf;
}

static double batch_of(const struct gt_page_facts *p)
{
	double n = gt_json_num(p->check, "micro_batch");
	return n > 0 ? n : 1;
}

static void put_layer(const struct gt_page_facts *p, const struct gt_json_value *l, FILE *f)
{
	char flops[GT_HTML_NUMBER];
	double ms = p->bench ? layer_ms(p->bench, gt_json_str(l, "name")) : NAN;
	fputs("<tr>", f);
	gt_html_head_cell(f, gt_json_str(l, "name"));
	gt_html_cell(f, gt_json_str(l, "type"));
	fputs("<td class=\"w\">", f);
	gt_html_text(f, gt_json_str(l, "shape"));
	fputs("</td>", f);
	gt_html_count(f, gt_json_count(l, "params"));
	fprintf(f, "<td class=\"n\">%s</td>", flops_text(flops, gt_json_num(l, "flops") / batch_of(p)));
	if (p->bench) {
		gt_html_number(f, ms, 3);
		fprintf(f, "<td class=\"n\">%.1f %%</td>", p->bench->step_ms > 0 ? 100 * ms / p->bench->step_ms : 0);
	}
	fputs("</tr>\n", f);
}

static void put_totals(const struct gt_page_facts *p, FILE *f)
{
	char a[GT_HTML_NUMBER], b[GT_HTML_NUMBER];
	fprintf(f, "<p>%s parameters, %sFLOP for one sample in a forward pass.", gt_page_count(a, gt_json_count(p->check, "params")),
	        flops_text(b, gt_json_num(p->check, "flops_forward")));
	if (p->bench) {
		fprintf(f, " A training step of one rank takes %.3f ms on ", p->bench->step_ms);
		gt_html_text(f, p->bench->device);
		fprintf(f, ": %.0f samples/s. The time of a layer is that of its forward and backward pass and its update.",
		        p->bench->samples_per_s);
	}
	fputs("</p>\n", f);
	if (p->unmeasured) {
		fputs("<p class=\"hint\">", f);
		gt_html_text(f, p->unmeasured);
		fputs("</p>\n", f);
	}
}

void gt_page_layers(const struct gt_page_facts *p, FILE *f)
{
	if (!p->check)
		return;
	gt_html_section(f, "layers", "Layers");
	put_totals(p, f);
	gt_html_table(f, "Layers", p->bench ? "Layer|Type|Output|#Parameters|#FLOP per sample|#ms per step|#Share"
	                                    : "Layer|Type|Output|#Parameters|#FLOP per sample");
	for (const struct gt_json_value *l = gt_json_first(p->check, "layers"); l; l = l->next)
		put_layer(p, l, f);
	gt_html_table_end(f);
	gt_html_section_end(f);
}
