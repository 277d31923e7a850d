#include "commands.h"
#include <stdio.h>

static const struct gt_option options[] = {
	GT_OPT_SET,
	GT_OPT_DEVICE,
	{"steps", 0, GT_OPTION_INT, GT_OFFSET(steps), "N", GT_COMPLETE_NONE, NULL, 1, 1000000, "time N training steps; 100 unless given"},
	{0},
};

static enum gt_code print_json(struct gt_cli *cli, const struct gt_bench *b, struct gt_err *err)
{
	struct gt_json *j = &cli->json;
	gt_json_object(j, NULL);
	gt_json_string(j, "device", b->device);
	gt_json_double(j, "step_ms", b->step_ms, 6);
	gt_json_double(j, "samples_per_s", b->samples_per_s, 6);
	gt_json_double(j, "gflops", b->gflops, 6);
	gt_json_double(j, "peak_mb", b->peak_mb, 6);
	gt_json_array(j, "kernels");
	for (int i = 0; i < b->nrows; i++) {
		gt_json_object(j, NULL);
		gt_json_string(j, "op", b->rows[i].op);
		gt_json_string(j, "layer", b->rows[i].layer);
		gt_json_string(j, "impl", b->rows[i].impl);
		gt_json_double(j, "ms", b->rows[i].ms, 6);
		gt_json_double(j, "gflops", b->rows[i].gflops, 6);
		gt_json_double(j, "share", b->rows[i].share, 6);
		gt_json_end(j);
	}
	gt_json_end(j);
	gt_json_end(j);
	return gt_out_json(cli, err);
}

static enum gt_code print(struct gt_cli *cli, const struct gt_bench *b, struct gt_err *err)
{
	char ms[GT_UNITS], gflops[GT_UNITS], share[GT_UNITS], a[GT_UNITS];
	struct gt_table t;
	gt_table_init(&t, cli->arena, "lllrrr");
	gt_table_head(&t, (const char *[]){"layer", "operation", "implementation", "time", "FLOP/s", "share"});
	for (int i = 0; i < b->nrows; i++) {
		const struct gt_bench_row *r = &b->rows[i];
		snprintf(share, sizeof share, "%.1f%%", 100 * r->share);
		gt_table_add(&t, (const char *[]){r->layer, r->op, r->impl, gt_units_seconds(ms, r->ms * 1e-3),
		                                  r->gflops > 0 ? gt_units_si(gflops, r->gflops * 1e9, "") : "", share});
	}
	gt_table_rule(&t);
	gt_table_add(&t, (const char *[]){"step", "", "", gt_units_seconds(ms, b->step_ms * 1e-3), gt_units_si(gflops, b->gflops * 1e9, ""), ""});
	GT_TRY(gt_table_print(cli, &t, err));
	gt_out(cli, "\n%s samples/s on %s, %.0f MB at most\n", gt_units_si(a, b->samples_per_s, ""), b->device, b->peak_mb);
	return GT_OK;
}

static enum gt_code bench(struct gt_cli *cli, struct gt_err *err)
{
	struct gt_conf *conf;
	struct gt_bench *b = NULL;
	GT_TRY(gt_cli_conf(cli, &conf, err));
	enum gt_code code = gt_bench(conf, cli->args.device, cli->args.steps ? (int)cli->args.steps : 100, &b, err);
	if (code == GT_OK)
		code = cli->args.json ? print_json(cli, b, err) : print(cli, b, err);
	gt_bench_free(b);
	gt_conf_free(conf);
	return code;
}

const struct gt_command gt_cmd_bench = {
	.name = "bench",
	.operands = "CFG",
	.summary = "time the training step, kernel by kernel",
	.about = "Times the training step of CFG, kernel by kernel, and shows where the time goes.",
	.example = "gtrain bench configs/fmnist_mlp.cfg --steps 500",
	.min_operands = 1,
	.max_operands = 1,
	.first = GT_COMPLETE_CONFIG,
	.options = options,
	.run = bench,
};
