#include "commands.h"
#include "gtrain.h"
#include "progress.h"
#include <string.h>

static const struct gt_option options[] = {
	GT_OPT_SET,
	{"dry-run", 'n', GT_OPTION_FLAG, GT_OFFSET(dry_run), NULL, GT_COMPLETE_NONE, NULL, 0, 0,
	 "do all that a run does before its first step, fail where it would fail, and report as 'gtrain check' does; train nothing"},
	{"out", 'o', GT_OPTION_STRING, GT_OFFSET(out), "DIR", GT_COMPLETE_DIR, NULL, 0, 0, "directory of the run, instead of checkpoint.dir"},
	{"new", 0, GT_OPTION_FLAG, GT_OFFSET(fresh), NULL, GT_COMPLETE_NONE, NULL, 0, 0,
	 "if the directory of the run exists, write a new one beside it: DIR-2, DIR-3, ..."},
	{"smoke", 0, GT_OPTION_FLAG, GT_OFFSET(smoke), NULL, GT_COMPLETE_NONE, NULL, 0, 0,
	 "test the config: run a few steps, an evaluation, a checkpoint, and a resume that must give the same bits"},
	GT_OPT_DEVICE,
	GT_OPT_INIT,
	GT_OPT_TIME_LIMIT,
	GT_OPT_RANKS,
	{0},
};

static enum gt_code report_dry_run(struct gt_cli *cli, struct gt_conf *conf, struct gt_err *err)
{
	const struct gt_args *a = &cli->args;
	struct gt_run_opts o = {.device = a->device, .init = a->init, .dry = true};
	GT_TRY(gt_cli_ranks(cli, &o, err));
	GT_TRY(gt_run(conf, &o, err));
	int nproc = a->nproc > 0 ? (int)a->nproc : a->nnodes > 1 ? gt_conf_world(conf) : 0;
	return gt_cli_report(cli, conf, a->nnodes > 1 ? nproc * (int)a->nnodes : nproc, err);
}

/* Chooses the directory of a run with --new. Ranks, which get the command line of this process, get the choice as its last --out. */
static enum gt_code choose_new_dir(struct gt_cli *cli, struct gt_conf *conf, struct gt_err *err)
{
	struct gt_args *a = &cli->args;
	char **argv;
	int n = 0, k = 0;
	if (a->smoke)
		return gt_fail(err, GT_EUSAGE, "--new and --smoke do not go together, because a smoke test keeps no run");
	if (cli->link)
		return GT_OK;
	GT_TRY(gt_run_new_dir(conf, a->out, (int)a->nnodes, cli->arena, &a->out, err));
	for (; cli->argv[n]; n++)
		;
	GT_NEW(argv, cli->arena, n + 2, err);
	for (; cli->argv[k] && strcmp(cli->argv[k], "--"); k++)
		argv[k] = cli->argv[k];
	GT_NEW_STR(argv[k], gt_arena_printf(cli->arena, "--out=%s", a->out), err);
	memcpy(argv + k + 1, cli->argv + k, (size_t)(n - k) * sizeof *argv);
	cli->argv = argv;
	return GT_OK;
}

static enum gt_code run_run(struct gt_cli *cli, struct gt_err *err)
{
	const struct gt_args *a = &cli->args;
	struct gt_progress progress;
	struct gt_conf *conf;
	gt_progress_init(&progress, cli);
	if (a->dry_run && a->smoke)
		return gt_fail(err, GT_EUSAGE, "--smoke and --dry-run do not go together, because a smoke test trains");
	GT_TRY(gt_cli_conf(cli, &conf, err));
	enum gt_code code = a->fresh ? choose_new_dir(cli, conf, err) : GT_OK;
	if (code != GT_OK) {
		;
	} else if (a->smoke) {
		code = gt_cli_smoke(cli, conf, err);
	} else if (a->dry_run) {
		code = report_dry_run(cli, conf, err);
	} else {
		struct gt_run_opts o = {
			.out = a->out,
			.device = a->device,
			.init = a->init,
			.time_limit_s = a->time_limit,
			.observe = gt_progress_observe,
			.say = gt_progress_say,
			.user = &progress,
		};
		code = gt_cli_ranks(cli, &o, err);
		if (code == GT_OK)
			code = gt_progress_finish(&progress, gt_run(conf, &o, err));
	}
	gt_conf_free(conf);
	return code;
}

const struct gt_command gt_cmd_run = {
	.name = "run",
	.operands = "CFG",
	.summary = "train the model that a config file describes",
	.about = "Trains the model that CFG describes, and writes checkpoints and metrics.jsonl into\n"
	         "the directory of the run. SIGINT and SIGTERM end it with a checkpoint, from which\n"
	         "gtrain resume continues. The last line of standard output is the result.",
	.example = "gtrain run configs/fmnist_mlp.cfg -s train.epochs=3 -o runs/short",
	.min_operands = 1,
	.max_operands = 1,
	.first = GT_COMPLETE_CONFIG,
	.options = options,
	.run = run_run,
};
