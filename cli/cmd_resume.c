#include "commands.h"
#include "gtrain.h"
#include "progress.h"
#include <string.h>

static const struct gt_option options[] = {
	{"from", 0, GT_OPTION_STRING, GT_OFFSET(from), "WHICH", GT_COMPLETE_CHOICE, "latest|best", 0, 0,
	 "checkpoint to continue from: latest (the newest one that is not damaged), best, or the number of a step"},
	GT_OPT_SET,
	GT_OPT_DEVICE,
	GT_OPT_TIME_LIMIT,
	GT_OPT_RANKS,
	{0},
};

static enum gt_code run_resume(struct gt_cli *cli, struct gt_err *err)
{
	const struct gt_args *a = &cli->args;
	const char *from = a->from, **sets;
	int n = a->sets.n;
	if (from && strcmp(from, "latest") != 0 && strcmp(from, "best") != 0 && strspn(from, "0123456789") != strlen(from))
		return gt_fail(err, GT_EUSAGE, "--from: expected latest, best or the number of a step, got '%.60s'", from);
	GT_NEW(sets, cli->arena, n + 1, err);
	if (n)
		memcpy(sets, a->sets.v, (size_t)n * sizeof *sets);
	if (a->nproc == GT_NPROC_AUTO)
		sets[n++] = "parallel.nproc=auto";
	struct gt_progress progress;
	gt_progress_init(&progress, cli);
	struct gt_run_opts o = {
		.device = a->device,
		.time_limit_s = a->time_limit,
		.observe = gt_progress_observe,
		.say = gt_progress_say,
		.user = &progress,
	};
	GT_TRY(gt_cli_ranks(cli, &o, err));
	return gt_progress_finish(&progress, gt_resume(a->operands.v[0], from, sets, n, &o, err));
}

const struct gt_command gt_cmd_resume = {
	.name = "resume",
	.operands = "DIR",
	.summary = "continue a run from its newest checkpoint",
	.about = "Continues the run in DIR exactly from the state of a checkpoint: with the same order\n"
	         "of samples, random numbers and schedule. DIR can also be one of the run's\n"
	         "checkpoints, with the same effect as --from. Damaged checkpoints are skipped with a\n"
	         "warning. Going back to an earlier checkpoint deletes nothing: when the first new\n"
	         "checkpoint is committed, the later ones move to DIR/history-N.",
	.example = "gtrain resume runs/fmnist-mlp -s train.epochs=10",
	.min_operands = 1,
	.max_operands = 1,
	.first = GT_COMPLETE_CHECKPOINT,
	.options = options,
	.run = run_resume,
};
