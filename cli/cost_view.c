/* `gtrain check --link`: the predicted time of a step as text. */
#include "base/fileio.h"
#include "base/json_read.h"
#include "base/shell_word.h"
#include "cost_suggest.h"
#include "gtrain_cost.h"
#include <stdio.h>

enum gt_code gt_cli_bench_options(struct gt_cli *cli, const struct gt_job_args *job, const char *const *keys, int nkeys, const char **out,
                                  struct gt_err *err)
{
	char word[GT_PATH_SIZE];
	*out = job->mode ? gt_arena_printf(cli->arena, " -s parallel.mode=%s", job->mode) : "";
	for (int i = nkeys - 1; i >= 0 && *out; i--)
		*out = gt_arena_printf(cli->arena, " -s %s%s", gt_shell_word(keys[i], word, sizeof word), *out);
	for (int i = job->sets.n - 1; i >= 0 && *out; i--)
		*out = gt_arena_printf(cli->arena, " -s %s%s", gt_shell_word(job->sets.v[i], word, sizeof word), *out);
	return *out ? GT_OK : gt_fail_memory(err, 0);
}

static enum gt_code open_cost(struct gt_cli *cli, const struct gt_report_opts *o, void **out, struct gt_err *err)
{
	struct gt_cost_input *in;
	const char *options;
	GT_TRY(gt_cost_open(o->link, o->times, cli->arena, &in, err));
	GT_TRY(gt_cli_bench_options(cli, o->job, NULL, 0, &options, err));
	gt_cost_set_options(in, options);
	*out = in;
	return GT_OK;
}

static const char *doubt_times(const void *in)
{
	return gt_cost_doubt(in);
}

static void add_share(struct gt_table *t, const char *what, double seconds, double step, const char *note)
{
	char time[GT_UNITS], share[32];
	snprintf(share, sizeof share, "%.1f%%", step > 0 ? 100 * seconds / step : 0);
	gt_table_add(t, what, gt_units_seconds(time, seconds), share, note);
}

static enum gt_code print_cost(struct gt_cli *cli, const struct gt_json_value *f, struct gt_err *err)
{
	const struct gt_json_value *c = gt_json_member(f, "cost");
	double step = gt_json_num(c, "step_s"), exposed = gt_json_num(c, "exposed_s"), all = gt_json_num(c, "communication_s");
	char time[GT_UNITS], rate[GT_UNITS], bandwidth[GT_UNITS], latency[GT_UNITS], text[400], hidden[64] = "";
	struct gt_table t;
	gt_table_init(&t, cli->arena, "lrrl");
	gt_table_head(&t, "predicted step", "time", "share", "");
	add_share(&t, "kernels", gt_json_num(c, "compute_s"), step, "mean over the ranks");
	add_share(&t, "idle", gt_json_num(c, "idle_s"), step, "ranks wait for each other, also without communication");
	if (all > 0 && exposed < all)
		snprintf(hidden, sizeof hidden, "of %s on the busiest rank", gt_units_seconds(time, all));
	add_share(&t, "exposed communication", exposed, step, hidden);
	gt_table_rule(&t);
	gt_table_add(&t, "step", gt_units_seconds(time, step), "100.0%", "");
	gt_out(cli, "\n");
	GT_TRY(gt_table_print(cli, &t, err));
	snprintf(text, sizeof text, "%s samples/s, efficiency %.1f%%; links of %s and %s with %s, kernels measured on %s",
	         gt_units_si(rate, gt_json_num(c, "samples_per_s"), ""), 100 * gt_json_num(c, "efficiency"),
	         gt_units_si(bandwidth, 8 * gt_json_num(c, "bytes_per_s"), "bit/s"), gt_units_seconds(latency, gt_json_num(c, "latency_s")),
	         gt_json_str(c, "transport"), gt_json_str(c, "measured_on"));
	gt_out_sentence(cli, text);
	if (gt_json_num(c, "scaled") > 0.0005) {
		snprintf(text, sizeof text, "%.1f%% of the time of kernels comes from measurements of other sizes; gtrain bench CFG --world N "
		         "--json measures the sizes of this plan", 100 * gt_json_num(c, "scaled"));
		gt_out_sentence(cli, text);
	}
	return GT_OK;
}

const struct gt_cost_view gt_cost_view = {.open = open_cost, .doubt = doubt_times, .add = gt_cost_report, .print = print_cost,
                                          .suggest = gt_cli_suggest};
