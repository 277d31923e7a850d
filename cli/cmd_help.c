#include "commands.h"
#include <string.h>

static enum gt_code run_help(struct gt_cli *cli, struct gt_err *err)
{
	if (cli->args.operands.n == 0) {
		gt_help_program(cli);
		return GT_OK;
	}
	const char *topic = cli->args.operands.v[0];
	const struct gt_command *c = gt_command_find(topic);
	if (!c && gt_help_key(cli, topic))
		return GT_OK;
	if (!c && strchr(topic, '.'))
		return gt_fail(err, GT_EUSAGE, "unknown key '%.60s'; `gtrain help train` explains all keys of a group, and gtrain.cfg(5) all keys",
		               topic);
	if (!c)
		return gt_command_unknown(topic, err);
	gt_help_command(cli, c);
	return GT_OK;
}

const struct gt_command gt_cmd_help = {
	.name = "help",
	.operands = "[COMMAND|KEY]",
	.summary = "explain gtrain, a command or a key of a config",
	.about = "Explains a command, as 'gtrain COMMAND -h' does, or keys of a config: one key by its\n"
	         "path, all keys of a group, or all keys with this last word.",
	.example = "gtrain help train.schedule",
	.max_operands = 1,
	.first = GT_COMPLETE_COMMAND,
	.run = run_help,
};
