#include "cli.h"
#include "base/version.h"
#include "commands.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BROKEN_PIPE ((enum gt_code)(128 + SIGPIPE)) /* exit code if the reader of stdout has closed it */

const struct gt_command *const gt_commands[] = {
	&gt_cmd_run,   &gt_cmd_resume,  &gt_cmd_check,  &gt_cmd_plan,  &gt_cmd_eval,    &gt_cmd_predict,    &gt_cmd_inspect,
	&gt_cmd_export, &gt_cmd_lr_find, &gt_cmd_bench, &gt_cmd_configs, &gt_cmd_init, &gt_cmd_fetch, &gt_cmd_devices, &gt_cmd_completion,
	&gt_cmd_help,  NULL,
};

const struct gt_command *gt_command_find(const char *name)
{
	for (int i = 0; gt_commands[i]; i++)
		if (strcmp(gt_commands[i]->name, name) == 0)
			return gt_commands[i];
	return NULL;
}

enum gt_code gt_command_unknown(const char *name, struct gt_err *err)
{
	const char *names[32];
	int n = 0;
	for (; gt_commands[n] && n < 32; n++)
		names[n] = gt_commands[n]->name;
	size_t len = strlen(name);
	if (len > 4 && strcmp(name + len - 4, ".cfg") == 0)
		return gt_fail(err, GT_EUSAGE, "unknown command '%.60s'; did you mean 'gtrain run %.60s'?", name, name);
	const char *near = gt_cli_nearest(name, names, n);
	if (near)
		return gt_fail(err, GT_EUSAGE, "unknown command '%.60s'; did you mean '%s'?", name, near);
	return gt_fail(err, GT_EUSAGE, "unknown command '%.60s'", name);
}

/* Opens descriptors 0..2 if they are closed, because the next opened file, such as a checkpoint, would get their numbers. The replacement
 * of stdout cannot be written, so that lost output is reported. */
static void hold_standard_descriptors(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) == -1 && errno == EBADF)
			(void)!open("/dev/null", fd == 2 ? O_WRONLY : O_RDONLY);
}

static enum gt_code dispatch(struct gt_cli *cli, int argc, char **argv, struct gt_err *err)
{
	int pos = 1;
	GT_TRY(gt_options_parse(cli, NULL, argv, argc, &pos, err));
	gt_output_style(cli);
	if (!cli->args.help && !cli->args.version) {
		if (pos >= argc)
			return gt_fail(err, GT_EUSAGE, "expected a command, got none");
		cli->command = gt_command_find(argv[pos]);
		if (!cli->command)
			return gt_command_unknown(argv[pos], err);
		pos++;
		GT_TRY(gt_options_parse(cli, cli->command, argv, argc, &pos, err));
		gt_output_style(cli);
	}
	if (cli->args.version)
		gt_out(cli, "gtrain %s\n", GT_VERSION);
	else if (cli->args.help && cli->command)
		gt_help_command(cli, cli->command);
	else if (cli->args.help)
		gt_help_program(cli);
	else
		return cli->command->run(cli, err);
	return GT_OK;
}

/* Flushes the output, prints the error, and returns the exit code. */
static int finish(struct gt_cli *cli, enum gt_code code, struct gt_err *err)
{
	struct gt_err out = {0};
	enum gt_code flushed = gt_out_finish(cli, &out);
	/* If the reader of a pipe has closed it, which ends a training by SIGTERM (progress.c), end silently with the code of SIGPIPE. Other
	 * failures are printed as usual. */
	if ((code == GT_OK || code == (enum gt_code)(128 + SIGTERM)) && flushed != GT_OK && cli->out_errno == EPIPE) {
		gt_rank_report_error(cli->link, BROKEN_PIPE, out.msg);
		return BROKEN_PIPE;
	}
	if (code == BROKEN_PIPE) /* a rank ended in the same way */
		return (int)code;
	if (code != GT_OK && cli->link) /* the launcher prints the error, once */
		gt_rank_report_error(cli->link, code, err->msg[0] ? err->msg : gt_code_text(code));
	else if (code != GT_OK)
		gt_cli_complain(cli, err->msg[0] ? err->msg : gt_code_text(code));
	if (cli->link)
		;
	else if (code == GT_EUSAGE && cli->command)
		gt_cli_note(cli, "try 'gtrain %s -h'", cli->command->name);
	else if (code == GT_EUSAGE)
		gt_cli_note(cli, "try 'gtrain -h'");
	if (flushed != GT_OK && cli->out_errno != EPIPE)
		gt_cli_complain(cli, out.msg);
	return code != GT_OK ? (int)code : (int)flushed;
}

int main(int argc, char **argv)
{
	struct gt_cli cli = {0};
	struct gt_err err = {0};
	hold_standard_descriptors();
	signal(SIGPIPE, SIG_IGN); /* writes fail with EPIPE instead, so that a run can write its checkpoint */
	signal(SIGXFSZ, SIG_IGN); /* writes fail with EFBIG instead, and the error names the file */
	gt_output_init(&cli);
	cli.argv = argv;
	enum gt_code code = gt_rank_open(&cli.link, &err);
	if (code == GT_OK)
		code = gt_arena_open(&cli.arena, &err);
	if (code == GT_OK)
		code = dispatch(&cli, argc, argv, &err);
	int status = finish(&cli, code, &err);
	gt_json_free(&cli.json);
	gt_arena_close(cli.arena);
	gt_rank_close(cli.link);
	return status;
}
