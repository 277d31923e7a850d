#include "commands.h"
#include <string.h>

static enum gt_code fail_topic(struct gt_cli *cli, const char *topic, struct gt_err *err)
{
	bool key = strchr(topic, '.') != NULL;
	const char *near;
	GT_TRY(gt_help_nearest(cli, topic, &near, err));
	if (near)
		return gt_fail(err, GT_EUSAGE, "unknown %s '%.60s'; did you mean '%s'?", key ? "key" : "topic", topic, near);
	if (key)
		return gt_fail(err, GT_EUSAGE, "unknown key '%.60s'; `gtrain help train` explains all keys of the group train, and gtrain.cfg(5) "
		               "all keys", topic);
	return gt_command_unknown(topic, err);
}

static enum gt_code run_help(struct gt_cli *cli, struct gt_err *err)
{
	if (cli->args.operands.n == 0) {
		gt_help_program(cli);
		return GT_OK;
	}
	const char *topic = cli->args.operands.v[0];
	const struct gt_command_row *row = gt_command_find(topic);
	const struct gt_command *c;
	int found = 0;
	if (row) {
		GT_TRY(gt_command_open(row, &c, err));
		gt_help_command(cli, c);
		return GT_OK;
	}
	GT_TRY(gt_help_topic(cli, topic, &found, err));
	return found ? GT_OK : fail_topic(cli, topic, err);
}

const struct gt_command gt_cmd_help = {
	.name = "help",
	.operands = "[TOPIC]",
	.about = "Explains a command, as 'gtrain COMMAND -h' does; keys of a config: one key by its\n"
	         "path, all keys of a group, or all keys with this last word; a layer type, a loss or\n"
	         "another word that is a value of a key, with its keys. PyTorch's names of these words\n"
	         "are accepted. The topics layers, losses, optimizers, schedules, transforms, metrics,\n"
	         "modes and formats list these words.",
	.example = "gtrain help conv2d",
	.max_operands = 1,
	.first = GT_COMPLETE_TOPIC,
	.run = run_help,
};
