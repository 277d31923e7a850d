#include "commands.h"
#include "gtrain.h"
#include <string.h>

/* Returns the first command that has an option of this name, or NULL. Commands of missing plugins are skipped. */
static const char *find_option(const char *option)
{
	const struct gt_command *c;
	for (const struct gt_command_row *row = gt_commands; row->name; row++)
		if (gt_command_open(row, &c, NULL) == GT_OK)
			for (const struct gt_option *o = c->options; o && o->name; o++)
				if (!strcmp(o->name, option))
					return row->name;
	return NULL;
}

static enum gt_code fail_topic(struct gt_cli *cli, const char *topic, struct gt_err *err)
{
	bool key = strchr(topic, '.') != NULL;
	const char *near, *command = find_option(topic + strspn(topic, "-")), *advice = gt_schema_advice(topic);
	if (advice)
		return gt_fail(err, GT_EUSAGE, "unknown topic '%.60s'; %s", topic, advice);
	if (command)
		return gt_fail(err, GT_EUSAGE, "unknown topic '%.60s'; --%.60s is an option: `gtrain %s -h` explains it", topic,
		               topic + strspn(topic, "-"), command);
	GT_TRY(gt_help_nearest(cli, topic, &near, err));
	if (near)
		return gt_fail(err, GT_EUSAGE, "unknown %s '%.60s'; did you mean '%s'?", key ? "key" : "topic", topic, near);
	if (key)
		return gt_fail(err, GT_EUSAGE, "unknown key '%.60s'; `gtrain help train` explains all keys of the group train, and gtrain.cfg(5) "
		               "all keys", topic);
	return gt_command_unknown("topic", topic, err);
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
