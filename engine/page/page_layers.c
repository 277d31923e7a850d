/* Writes the table of the layers. If training steps were measured, it has the time of each layer in a step. */
#include "page/html.h"
#include "page/page.h"
#include <math.h>
#include <string.h>

/* Returns whether a kernel belongs to a layer: it has the name of the layer, or of a part of it, such as "layer2.0.downsample.0". */
static bool is_part_of(const char *kernel, const char *layer)
{
	size_t n = strlen(layer);
	return n && !strncmp(kernel, layer, n) && (!kernel[n] || kernel[n] == '.');
}

/* The measured times of the layers in one training step. */
struct layer_times {
	double *ms;   /* [n] time of each layer in a step; NAN: it is computed together with another layer, or it computes nothing */
	int n;
	/* milliseconds that count as 100 %: the measured step, or the sum of its kernels if that is longer; both are measured separately */
	double whole;
};

/* Adds up the times of the kernels of each layer. */
static void sum_kernels(const struct gt_bench *b, const struct gt_json_value *first, struct layer_times *t)
{
	int i = 0;
	double sum = 0, *ms = t->ms;
	for (const struct gt_json_value *l = first; l; l = l->next)
		ms[i++] = NAN;
	for (int k = 0; k < b->nrows; k++) {
		size_t longest = 0;
		int owner = -1;
		i = 0;
		sum += b->rows[k].ms;
		for (const struct gt_json_value *l = first; l; l = l->next, i++) {
			const char *name = gt_json_str(l, "name");
			if (strlen(name) > longest && is_part_of(b->rows[k].layer, name)) {
				longest = strlen(name);
				owner = i;
			}
		}
		if (owner >= 0)
			ms[owner] = (isnan(ms[owner]) ? 0 : ms[owner]) + b->rows[k].ms;
	}
	t->whole = fmax(b->step_ms, sum);
}

static void put_time(double ms, double whole, FILE *f)
{
	gt_html_number(f, ms, 3);
	if (isnan(ms) || !(whole > 0))
		fputs("<td class=\"n\"></td>", f);
	else
		fprintf(f, "<td class=\"n\">%.1f %%</td>", 100 * ms / whole);
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

/* Writes the row of layer i. */
static void put_layer(const struct gt_page_facts *p, const struct gt_json_value *l, const struct layer_times *t, int i, FILE *f)
{
	char flops[GT_HTML_NUMBER];
	fputs("<tr>", f);
	gt_html_head_cell(f, gt_json_str(l, "name"));
	gt_html_cell(f, gt_json_str(l, "type"));
	fputs("<td class=\"w\">", f);
	gt_html_text(f, gt_json_str(l, "shape"));
	fputs("</td>", f);
	gt_html_count(f, gt_json_count(l, "params"));
	fprintf(f, "<td class=\"n\">%s</td>", flops_text(flops, gt_json_num(l, "flops") / batch_of(p)));
	if (t->ms)
		put_time(t->ms[i], t->whole, f);
	fputs("</tr>\n", f);
}

/* Writes a row for the time of the step that belongs to no layer, so that the shares of all rows sum up to 100 %. */
static void put_rest(const struct layer_times *t, FILE *f)
{
	double rest = t->ms ? t->whole : 0;
	for (int i = 0; i < t->n && t->ms; i++)
		rest -= isnan(t->ms[i]) ? 0 : t->ms[i];
	if (!(rest > 0))
		return;
	fputs("<tr class=\"mean\">", f);
	gt_html_head_cell(f, "other");
	gt_html_cell(f, "loss, optimizer, samples, waiting");
	fputs("<td></td><td></td><td></td>", f);
	put_time(rest, t->whole, f);
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
		fprintf(f, ": %.0f samples/s. The time of a layer includes its forward pass and its backward pass. A layer without a time is "
		        "computed together with another layer, or computes nothing.", p->bench->samples_per_s);
	}
	fputs("</p>\n", f);
	if (p->unmeasured) {
		fputs("<p class=\"hint\">", f);
		gt_html_text(f, p->unmeasured);
		fputs("</p>\n", f);
	}
}

enum gt_code gt_page_layers(const struct gt_page_facts *p, FILE *f, struct gt_err *err)
{
	const struct gt_json_value *first = p->check ? gt_json_first(p->check, "layers") : NULL;
	struct layer_times t = {0};
	int i = 0;
	if (!p->check)
		return GT_OK;
	for (const struct gt_json_value *l = first; l; l = l->next)
		t.n++;
	if (p->bench) {
		GT_NEW(t.ms, p->arena, t.n + 1, err);
		sum_kernels(p->bench, first, &t);
	}
	gt_html_section(f, "layers", "Layers");
	put_totals(p, f);
	gt_html_table(f, "Layers", p->bench ? "Layer|Type|Output|#Parameters|#FLOP per sample|#ms per step|#Share"
	                                    : "Layer|Type|Output|#Parameters|#FLOP per sample");
	for (const struct gt_json_value *l = first; l; l = l->next)
		put_layer(p, l, &t, i++, f);
	put_rest(&t, f);
	gt_html_table_end(f);
	gt_html_section_end(f);
	return GT_OK;
}
