#include "commands.h"
#include "gtrain.h"
#include "gtrain_data.h"
#include "gtrain_report.h"
#include <stdio.h>
#include <string.h>

/* Prints "path TAB type TAB help" for every key that --set can set to a value. Groups have no value, and keys of list elements and
 * templates have no fixed path. */
static void print_key(void *user, const struct gt_schema_key *key)
{
	struct gt_cli *cli = user;
	if (!strchr(key->path, '[') && !strstr(key->path, ".NAME") && strcmp(key->type, "group") != 0 && strcmp(key->type, "list") != 0)
		gt_out(cli, "%s\t%s\t%s\n", key->path, key->type, key->help);
}

static enum gt_code list_devices(struct gt_cli *cli, struct gt_err *err)
{
	enum { MAX = 64 };
	struct gt_device_row *rows;
	int n = 0;
	GT_NEW(rows, cli->arena, MAX, err);
	GT_TRY(gt_devices(rows, MAX, &n, err));
	gt_out(cli, "auto\n");
	for (int i = 0; i < n && i < MAX; i++)
		if (rows[i].usable)
			gt_out(cli, "%s\n", rows[i].id);
	return GT_OK;
}

static enum gt_code run_completion(struct gt_cli *cli, struct gt_err *err)
{
	const char *what = cli->args.operands.v[0];
	if (strcmp(what, "bash") == 0) {
		gt_complete_bash(cli);
	} else if (strcmp(what, "zsh") == 0) {
		gt_complete_zsh(cli);
	} else if (strcmp(what, "fish") == 0) {
		gt_complete_fish(cli);
	} else if (strcmp(what, "keys") == 0) { /* the completion scripts call this and the next three */
		gt_schema_each(print_key, cli);
	} else if (strcmp(what, "devices") == 0) {
		return list_devices(cli, err);
	} else if (strcmp(what, "datasets") == 0) {
		for (int i = 0; gt_fetch_name(i); i++)
			gt_out(cli, "%s\n", gt_fetch_name(i));
	} else if (strcmp(what, "configs") == 0) {
		struct gt_bundled *rows;
		int n;
		GT_TRY(gt_bundled_list(cli->arena, &rows, &n, err));
		for (int i = 0; i < n; i++)
			gt_out(cli, "%s\n", rows[i].name);
	} else {
		return gt_fail(err, GT_EUSAGE, "expected bash, zsh or fish as the shell, got '%.60s'", what);
	}
	return GT_OK;
}

const struct gt_command gt_cmd_completion = {
	.name = "completion",
	.operands = "SHELL",
	.summary = "print the completion script for a shell",
	.about = "Prints the completion script for bash, zsh or fish. make install installs all three\n"
	         "where the shells look for them.",
	.example = "source <(gtrain completion bash)",
	.min_operands = 1,
	.max_operands = 1,
	.first = GT_COMPLETE_CHOICE,
	.choices = "bash|zsh|fish",
	.run = run_completion,
};
