#include "commands.h"

static enum gt_code help(struct gt_cli *cli, struct gt_err *err)
{
	if (cli->args.operands.n == 0) {
		gt_help_program(cli);
		return GT_OK;
	}
	const struct gt_command *c = gt_command_find(cli->args.operands.v[0]);
	if (!c)
		return gt_command_unknown(cli->args.operands.v[0], err);
	gt_help_command(cli, c);
	return GT_OK;
}

const struct gt_command gt_cmd_help = {
	.name = "help",
	.operands = "[COMMAND]",
	.summary = "explain gtrain or a command",
	.about = "Prints the same text as 'gtrain COMMAND -h'.",
	.example = "gtrain help run",
	.max_operands = 1,
	.first = GT_COMPLETE_COMMAND,
	.run = help,
};
