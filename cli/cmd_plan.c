#include "commands.h"
#include "gtrain.h"
#include "gtrain_report.h"
#include <stdlib.h>
#include <string.h>

static const struct gt_option options[] = {
	GT_OPT_SET,
	GT_OPT_DEVICE,
	GT_OPT_WORLD,
	GT_OPT_MODE,
	{"rank", 0, GT_OPTION_INT, GT_OFFSET(rank), "R", GT_COMPLETE_NONE, NULL, 0, 65535, "rank whose list of steps is printed; default: 0"},
	{0},
};

static enum gt_code run_plan(struct gt_cli *cli, struct gt_err *err)
{
	const struct gt_args *a = &cli->args;
	struct gt_conf *conf;
	char *text = NULL;
	GT_TRY(gt_cli_conf(cli, &conf, err));
	enum gt_code code = gt_plan_text(conf, a->device, (int)a->world, (int)a->rank, a->json, &text, err);
	if (code == GT_OK) {
		size_t len = strlen(text);
		gt_out(cli, "%s%s", text, len && text[len - 1] == '\n' ? "" : "\n");
	}
	free(text);
	gt_conf_free(conf);
	return code;
}

const struct gt_command gt_cmd_plan = {
	.name = "plan",
	.operands = "CFG",
	.summary = "print the list of steps that a rank executes",
	.about = "Prints what a rank executes in every step, in order: kernels with the memory that\n"
	         "they read and write, and transfers.",
	.example = "gtrain plan configs/fmnist_mlp.cfg --mode zero --world 8 --rank 3",
	.min_operands = 1,
	.max_operands = 1,
	.first = GT_COMPLETE_CONFIG,
	.options = options,
	.run = run_plan,
};
