#include "commands.h"
#include "gtrain.h"
#include "progress.h"
#include <string.h>

struct resume_args {
	struct gt_job_args job;
	const char *from;
};
#define OFFSET(member) offsetof(struct resume_args, member)

static const struct gt_option options[] = {
	{"from", 0, GT_OPTION_STRING, OFFSET(from), "WHICH", GT_COMPLETE_CHOICE, "latest|best",
	 .help = "checkpoint to continue from: latest (the newest undamaged checkpoint), best, or the number of a step"},
	GT_OPT_SET(struct resume_args),
	GT_OPT_DEVICE(struct resume_args),
	GT_OPT_TIME_LIMIT(struct resume_args),
	GT_OPT_RANKS(struct resume_args),
	{0},
};

static enum gt_code run_resume(struct gt_cli *cli, struct gt_err *err)
{
	const struct resume_args *a = cli->options;
	const char *from = a->from, **sets;
	int n = a->job.sets.n;
	if (from && strcmp(from, "latest") != 0 && strcmp(from, "best") != 0 && strspn(from, "0123456789") != strlen(from))
		return gt_fail(err, GT_EUSAGE, "--from: expected latest, best or the number of a step, got '%.60s'", from);
	GT_NEW(sets, cli->arena, n + 1, err);
	if (n)
		memcpy(sets, a->job.sets.v, (size_t)n * sizeof *sets);
	if (a->job.nproc == GT_NPROC_AUTO)
		sets[n++] = "parallel.nproc=auto";
	struct gt_progress progress;
	gt_progress_init(&progress, cli, &a->job);
	struct gt_run_opts o = {
		.device = a->job.device,
		.time_limit_s = a->job.time_limit,
		.observe = gt_progress_observe,
		.say = gt_progress_say,
		.want_page = gt_progress_want_page,
		.user = &progress,
	};
	GT_TRY(gt_cli_ranks(cli, &a->job, &o, err));
	return gt_progress_finish(&progress, gt_resume(cli->args.operands.v[0], from, sets, n, &o, err));
}

const struct gt_command gt_cmd_resume = {
	.name = "resume",
	.operands = "DIR",
	.about = "Continues the run in DIR exactly from the state of a checkpoint: with the same order\n"
	         "of samples, random numbers and schedule. DIR can also be a checkpoint of the run,\n"
	         "with the same effect as --from. Damaged checkpoints are skipped with a\n"
	         "warning. Going back to an earlier checkpoint deletes nothing: when the first new\n"
	         "checkpoint is complete, the later checkpoints move to DIR/history-N.",
	.example = "gtrain resume runs/fmnist-mlp -s train.epochs=10",
	.min_operands = 1,
	.max_operands = 1,
	.first = GT_COMPLETE_CHECKPOINT,
	.options = options,
	.args_size = sizeof(struct resume_args),
	.run = run_resume,
};
