/* The part of `gtrain check` that shows a prediction for a card. */
#include "cli.h"
#include <math.h>
#include <stdio.h>

static void row_json(struct gt_json *j, const struct gt_check_kernel *k)
{
	gt_json_object(j, NULL);
	gt_json_string(j, "op", k->op);
	if (k->layer)
		gt_json_string(j, "layer", k->layer);
	gt_json_int(j, "calls", k->calls);
	gt_json_int(j, "kernels", k->kernels);
	gt_json_double(j, "bytes", k->bytes, 15);
	gt_json_double(j, "flops", k->flops, 15);
	gt_json_string(j, "ceiling", k->ceiling);
	gt_json_double(j, "ms", 1e3 * k->seconds, 6);
	gt_json_end(j);
}

static void seconds_json(struct gt_json *j, const char *key, double s)
{
	if (isnan(s))
		gt_json_null(j, key);
	else
		gt_json_double(j, key, s, 6);
}

void gt_cli_card_json(struct gt_json *j, const struct gt_report *r)
{
	const struct gt_check_card *c = &r->card;
	if (!c->word)
		return;
	gt_json_object(j, "prediction");
	gt_json_string(j, "card", c->word);
	gt_json_string(j, "name", c->name);
	gt_json_bool(j, "measured", false);
	gt_json_double(j, "step_ms", 1e3 * c->step, 6);
	gt_json_double(j, "one_by_one_ms", 1e3 * c->one_by_one, 6);
	gt_json_double(j, "second_stream_ms", 1e3 * c->beside, 6);
	gt_json_double(j, "samples_per_s", c->samples_per_s, 6);
	seconds_json(j, "epoch_s", c->epoch);
	seconds_json(j, "run_s", c->run);
	gt_json_int(j, "kernels", c->kernels);
	gt_json_double(j, "bytes", c->bytes, 15);
	gt_json_double(j, "flops", c->flops, 15);
	gt_json_object(j, "assumptions");
	static const char *const reach[] = {"memory", "l2", "tensor_cores", "f32_units"};
	for (int i = 0; i < 4; i++)
		gt_json_double(j, reach[i], c->reach[i], 6);
	gt_json_double(j, "gap_us", 1e6 * c->gap, 6);
	gt_json_double(j, "latency_us", 1e6 * c->latency, 6);
	gt_json_end(j);
	gt_json_array(j, "operations");
	for (int i = 0; i < c->nops; i++)
		row_json(j, &c->ops[i]);
	gt_json_end(j);
	gt_json_array(j, "calls");
	for (int i = 0; i < c->ncalls; i++)
		row_json(j, &c->calls[i]);
	gt_json_end(j);
	gt_json_end(j);
}

static const char *bytes_text(char *buf, double bytes)
{
	return gt_units_bytes(buf, (uint64_t)(bytes + 0.5));
}

static const char *micros(char *buf, double s)
{
	snprintf(buf, GT_UNITS, "%.1f", 1e6 * s);
	return buf;
}

static void totals(struct gt_table *t, const struct gt_check_card *c, const struct gt_report *r)
{
	char text[320], a[GT_UNITS], b[GT_UNITS];
	snprintf(text, sizeof text, "%s us, %s samples/s", micros(a, c->step), gt_units_count(b, (int64_t)c->samples_per_s));
	gt_table_add(t, (const char *[]){"step", text});
	for (int i = 0; i < r->nphases; i++) {
		snprintf(text, sizeof text, "%s us %s", micros(a, r->phases[i].seconds), r->phases[i].when);
		gt_table_add(t, (const char *[]){"", text});
	}
	if (c->beside > 0) {
		snprintf(text, sizeof text, "%s us of kernels run on a second stream; one after the other, a step would", micros(a, c->beside));
		gt_table_add(t, (const char *[]){"overlap", text});
		snprintf(text, sizeof text, "take %s us", micros(a, c->one_by_one));
		gt_table_add(t, (const char *[]){"", text});
	}
	if (!isnan(c->epoch)) {
		snprintf(text, sizeof text, "%.4g s for %s steps, without evaluations", c->epoch, gt_units_count(a, r->steps_per_epoch));
		gt_table_add(t, (const char *[]){"epoch", text});
	}
	if (!isnan(c->run)) {
		snprintf(text, sizeof text, "%.4g s for %s steps, without evaluations and checkpoints", c->run, gt_units_count(a, r->steps));
		gt_table_add(t, (const char *[]){"run", text});
	}
	snprintf(text, sizeof text, "kernels reach %g of the memory's bandwidth, %g of the L2 cache's,", c->reach[0], c->reach[1]);
	gt_table_add(t, (const char *[]){"assumed", text});
	snprintf(text, sizeof text, "%g of the tensor cores' rate, %g of the f32 units';", c->reach[2], c->reach[3]);
	gt_table_add(t, (const char *[]){"", text});
	snprintf(text, sizeof text, "%g us between two kernels, and at least %g us for each%s", 1e6 * c->gap, 1e6 * c->latency,
	         c->beside > 0 ? ";" : "");
	gt_table_add(t, (const char *[]){"", text});
	if (c->beside > 0)
		gt_table_add(t, (const char *[]){"", "kernels of both streams slow down where they need more than the card together"});
	uint64_t need = 0;
	for (int i = 0; i < r->nmemory; i++)
		need += r->memory[i].bytes;
	if ((double)need > c->memory) {
		snprintf(text, sizeof text, "the run needs %s, but the card has %s", gt_units_bytes(a, need), bytes_text(b, c->memory));
		gt_table_add(t, (const char *[]){"memory", text});
	}
}

enum gt_code gt_cli_card_text(struct gt_cli *cli, const struct gt_report *r, struct gt_err *err)
{
	const struct gt_check_card *c = &r->card;
	char share[16], kernels[GT_UNITS], bytes[GT_UNITS], flops[GT_UNITS], us[GT_UNITS];
	struct gt_table t;
	if (!c->word)
		return GT_OK;
	gt_out(cli, "\n%sPrediction for a step on %s; not a measurement%s\n\n", gt_style(cli->color_out, GT_STYLE_BOLD), c->name,
	       gt_style(cli->color_out, GT_STYLE_NONE));
	gt_table_init(&t, cli->arena, "lrrrlrr");
	gt_table_head(&t, (const char *[]){"operation", "kernels", "moves", "FLOP", "limited by", "us", "share"});
	for (int i = 0; i < c->nops; i++) {
		const struct gt_check_kernel *k = &c->ops[i];
		snprintf(share, sizeof share, "%.1f%%", c->one_by_one > 0 ? 100 * k->seconds / c->one_by_one : 0);
		gt_table_add(&t, (const char *[]){k->op, gt_units_count(kernels, k->kernels), bytes_text(bytes, k->bytes),
		                                  k->flops > 0 ? gt_units_si(flops, k->flops, "") : "", k->ceiling, micros(us, k->seconds), share});
	}
	gt_table_rule(&t);
	gt_table_add(&t, (const char *[]){"total", gt_units_count(kernels, c->kernels), bytes_text(bytes, c->bytes),
	                                  gt_units_si(flops, c->flops, ""), "", micros(us, c->one_by_one), ""});
	GT_TRY(gt_table_print(cli, &t, err));
	gt_out(cli, "\n");
	gt_table_init(&t, cli->arena, "ll");
	totals(&t, c, r);
	return gt_table_print(cli, &t, err);
}
