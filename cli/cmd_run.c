#include "commands.h"
#include "gtrain.h"
#include "progress.h"
#include <string.h>

struct run_args {
	struct gt_job_args job;
	bool fresh; /* --new */
};
#define OFFSET(member) offsetof(struct run_args, member)

/* The values of --against that the help shows. Ranks of a smoke test get further values, so the option's type is not GT_OPTION_CHOICE. */
#define AGAINST "cpu|cpu:fp32|cpu:bf16"

static const struct gt_option options[] = {
	GT_OPT_SET(struct run_args),
	{"dry-run", 'n', GT_OPTION_FLAG, OFFSET(job.dry_run),
	 .help = "do everything that a run does before its first step, with the same errors, and report like 'gtrain check'; do not train"},
	{"out", 'o', GT_OPTION_STRING, OFFSET(job.out), "DIR", GT_COMPLETE_DIR, .help = "directory of the run; replaces checkpoint.dir"},
	{"new", 0, GT_OPTION_FLAG, OFFSET(fresh), .help = "if the directory of the run exists, use a new name: DIR-2, DIR-3, ..."},
	{"smoke", 0, GT_OPTION_FLAG, OFFSET(job.smoke),
	 .help = "test the config: run a few steps, an evaluation, a checkpoint, and a resume that must give bit-identical results"},
	{"against", 0, GT_OPTION_STRING, OFFSET(job.against), "DEVICE", GT_COMPLETE_CHOICE, AGAINST,
	 .help = "with --smoke: also train on the CPU, and compare the runs and each operation; cpu:PRECISION sets the CPU's precision"},
	GT_OPT_DEVICE(struct run_args),
	GT_OPT_INIT(struct run_args),
	GT_OPT_TIME_LIMIT(struct run_args),
	GT_OPT_RANKS(struct run_args),
	{0},
};

static enum gt_code report_dry_run(struct gt_cli *cli, struct gt_conf *conf, struct gt_err *err)
{
	const struct run_args *args = cli->options;
	const struct gt_job_args *a = &args->job;
	struct gt_run_opts o = {.device = a->device, .init = a->init, .dry = true};
	struct gt_report_opts report = {.device = a->device, .dry_run = true};
	GT_TRY(gt_cli_ranks(cli, a, &o, err));
	GT_TRY(gt_run(conf, &o, err));
	int nproc = a->nproc > 0 ? (int)a->nproc : a->nnodes.most > 1 ? gt_conf_world(conf) : 0;
	return gt_cli_report(cli, conf, a->nnodes.most > 1 ? nproc * (int)a->nnodes.most : nproc, &report, err);
}

/* Chooses the directory of a run with --new, and appends it as --out to the command line of the other ranks. */
static enum gt_code choose_new_dir(struct gt_cli *cli, struct gt_conf *conf, struct gt_err *err)
{
	struct run_args *args = cli->options;
	struct gt_job_args *a = &args->job;
	char **argv;
	int n = 0, k = 0;
	if (a->smoke)
		return gt_fail(err, GT_EUSAGE, "--new and --smoke cannot be combined, because a smoke test keeps no run");
	if (cli->link)
		return GT_OK;
	GT_TRY(gt_run_new_dir(conf, a->out, (int)a->nnodes.most, cli->arena, &a->out, err));
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
	const struct run_args *a = cli->options;
	const struct gt_job_args *job = &a->job;
	struct gt_progress progress;
	struct gt_conf *conf;
	gt_progress_init(&progress, cli, job);
	if (job->dry_run && job->smoke)
		return gt_fail(err, GT_EUSAGE, "--smoke and --dry-run cannot be combined, because a smoke test trains");
	if (job->against && !cli->link && !gt_option_is_choice(AGAINST, job->against))
		return gt_fail(err, GT_EUSAGE, "--against: expected " AGAINST ", got '%.60s'", job->against);
	if (job->against && !job->smoke && !cli->link)
		return gt_fail(err, GT_EUSAGE, "--against: expected the option --smoke too, because the operations of a smoke test are compared");
	GT_TRY(gt_cli_conf(cli, job, &conf, err));
	enum gt_code code = a->fresh ? choose_new_dir(cli, conf, err) : GT_OK;
	if (code != GT_OK) {
		;
	} else if (job->smoke) {
		code = gt_cli_smoke(cli, job, conf, err);
	} else if (job->dry_run) {
		code = report_dry_run(cli, conf, err);
	} else {
		struct gt_run_opts o = {
			.out = job->out,
			.device = job->device,
			.against = job->against,
			.init = job->init,
			.time_limit_s = job->time_limit,
			.observe = gt_progress_observe,
			.say = gt_progress_say,
			.want_page = gt_progress_want_page,
			.user = &progress,
		};
		code = gt_cli_ranks(cli, job, &o, err);
		if (code == GT_OK)
			code = gt_progress_finish(&progress, gt_run(conf, &o, err));
	}
	gt_conf_free(conf);
	return code;
}

const struct gt_command gt_cmd_run = {
	.name = "run",
	.operands = "CFG",
	.about = "Trains the model that CFG describes, and writes checkpoints and metrics.jsonl into\n"
	         "the run's directory. SIGINT and SIGTERM end the run with a checkpoint, from which\n"
	         "gtrain resume continues. The last line of standard output is the result.",
	.example = "gtrain run configs/fmnist_mlp.cfg -s train.epochs=3 -o runs/short",
	.min_operands = 1,
	.max_operands = 1,
	.first = GT_COMPLETE_CONFIG,
	.options = options,
	.args_size = sizeof(struct run_args),
	.run = run_run,
};
