#include "base/guess.h"
#include "cli.h"
#include "commands.h"
#include "gtrain.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BROKEN_PIPE ((enum gt_code)(128 + SIGPIPE)) /* exit code if the process that reads stdout has closed the pipe */

const struct gt_command_row gt_commands[] = {
#define COMMAND(word, name, summary) {name, summary, &gt_cmd_##word, NULL, NULL},
#define PLUGIN_COMMAND(plugin, word, name, summary) {name, summary, NULL, #plugin, "gt_cmd_" #word},
#include "commands.inc"
#undef COMMAND
#undef PLUGIN_COMMAND
	{0},
};

const struct gt_command_row *gt_command_find(const char *name)
{
	for (int i = 0; gt_commands[i].name; i++)
		if (strcmp(gt_commands[i].name, name) == 0)
			return &gt_commands[i];
	return NULL;
}

/* Names of commands in other programs, with the equivalent commands of gtrain. Misspelt names are found, too. */
static const struct {
	const char *word, *command; /* command: the equivalent command of gtrain; NULL: print `advice` instead */
	const char *advice;
} foreign[] = {
	{"train", "run", NULL},
	{"fit", "run", NULL},
	{"start", "run", NULL},
	{"continue", "resume", NULL},
	{"restart", "resume", NULL},
	{"test", "eval", NULL},
	{"val", "eval", NULL},
	{"validate", "eval", NULL},
	{"evaluate", "eval", NULL},
	{"score", "eval", NULL},
	{"infer", "predict", NULL},
	{"inference", "predict", NULL},
	{"classify", "predict", NULL},
	{"create", "init", NULL},
	{"new", "init", NULL},
	{"models", "configs", NULL},
	{"examples", "configs", NULL},
	{"download", "fetch", NULL},
	{"datasets", "fetch", NULL},
	{"benchmark", "bench", NULL},
	{"profile", "bench", NULL},
	{"convert", "export", NULL},
	{"save", "export", NULL},
	{"gpus", "devices", NULL},
	{"doctor", "devices", NULL},
	{"tune", NULL, "`gtrain sweep CFG` tries values of keys, `gtrain lr-find CFG` suggests a learning rate"},
	{"summary", "check", NULL},
	{"lint", "check", NULL},
	{"visualize", "plot", NULL},
	{"info", NULL, "`gtrain devices` shows this machine, `gtrain inspect RUN` a checkpoint, `gtrain --version` this build"},
	{"version", NULL, "`gtrain --version` prints it"},
	{"list", NULL, "`gtrain configs` lists the configs that come with gtrain, `gtrain runs` the runs of a directory"},
	{"ls", NULL, "`gtrain configs` lists the configs that come with gtrain, `gtrain runs` the runs of a directory"},
	{"serve", NULL, "gtrain has no server; `gtrain predict RUN FILE... --json` prints predictions"},
	{"finetune", NULL, "`gtrain init PATH --pretrained FILE` writes a config for fine-tuning; `gtrain run CFG --init FILE` starts from "
	                   "weights"},
};

enum gt_code gt_command_unknown(const char *what, const char *name, struct gt_err *err)
{
	enum { FOREIGN = sizeof foreign / sizeof *foreign };
	struct gt_guess g = gt_guess_open(name);
	size_t len = strlen(name);
	if (len > 4 && strcmp(name + len - 4, ".cfg") == 0)
		return gt_fail(err, GT_EUSAGE, "unknown %s '%.60s'; did you mean 'gtrain run %.60s'?", what, name, name);
	for (int i = 0; gt_commands[i].name; i++)
		gt_guess_try(&g, gt_commands[i].name);
	for (int i = 0; i < FOREIGN; i++)
		gt_guess_try(&g, foreign[i].word);
	for (int i = 0; i < FOREIGN; i++)
		if (g.best == foreign[i].word && !foreign[i].command)
			return gt_fail(err, GT_EUSAGE, "unknown %s '%.60s'; %s", what, name, foreign[i].advice);
		else if (g.best == foreign[i].word)
			g.best = foreign[i].command;
	if (g.best)
		return gt_fail(err, GT_EUSAGE, "unknown %s '%.60s'; did you mean '%s'?", what, name, g.best);
	return gt_fail(err, GT_EUSAGE, "unknown %s '%.60s'", what, name);
}

/* Opens the descriptors 0, 1 and 2 if they are closed. Otherwise the next opened file, such as a checkpoint, would become stdin, stdout or
 * stderr. The substitute for stdout is read-only, so that writes to stdout fail and are reported. */
static void hold_standard_descriptors(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) == -1 && errno == EBADF)
			(void)!open("/dev/null", fd == 2 ? O_WRONLY : O_RDONLY);
}

static enum gt_code run_command(struct gt_cli *cli, int argc, char **argv, struct gt_err *err)
{
	int pos = 1;
	GT_TRY(gt_options_parse(cli, NULL, argv, argc, &pos, err));
	gt_output_style(cli);
	if (!cli->args.version && pos >= argc && !cli->args.help) {
		for (int i = 0; gt_commands[i].name && !cli->args.json; i++) /* prints the list to stderr, because it is part of an error message */
			gt_cli_note(cli, "  %-12s%s", gt_commands[i].name, gt_commands[i].summary);
		return gt_fail(err, GT_EUSAGE, "expected a command, got none");
	}
	if (!cli->args.version && pos < argc) { /* accepts a command after --help, as in `gtrain --help run` */
		const struct gt_command_row *row = gt_command_find(argv[pos]);
		if (!row)
			return gt_command_unknown("command", argv[pos], err);
		GT_TRY(gt_command_open(row, &cli->command, err));
		pos++;
		GT_TRY(gt_options_parse(cli, cli->command, argv, argc, &pos, err));
		gt_output_style(cli);
	}
	if (cli->args.version)
		return gt_cli_version(cli, err);
	if (cli->args.help && cli->command)
		gt_help_command(cli, cli->command);
	else if (cli->args.help)
		gt_help_program(cli);
	else
		return cli->command->run(cli, err);
	return GT_OK;
}

/* Flushes the output, prints the error, and returns the exit code. */
static int finish_process(struct gt_cli *cli, enum gt_code code, struct gt_err *err)
{
	struct gt_err out = {0};
	enum gt_code flushed = gt_out_finish(cli, &out);
	/* If the reader of stdout has closed the pipe, exits without a message and with the code of SIGPIPE (progress.c has then stopped a
	 * training by SIGTERM). Other errors are printed below. */
	if ((code == GT_OK || code == (enum gt_code)(128 + SIGTERM)) && flushed != GT_OK && cli->out_errno == EPIPE) {
		gt_rank_report_error(cli->link, BROKEN_PIPE, out.msg);
		return BROKEN_PIPE;
	}
	if (code == BROKEN_PIPE) /* a rank has exited because its stdout is a broken pipe */
		return (int)code;
	if (code != GT_OK && cli->link) /* the launcher prints the error once for all ranks */
		gt_rank_report_error(cli->link, code, err->msg[0] ? err->msg : gt_code_text(code));
	else if (code != GT_OK)
		gt_cli_complain(cli, err->msg[0] ? err->msg : gt_code_text(code));
	if (cli->link)
		;
	else if (code == GT_EDIVERGED && (cli->command == &gt_cmd_run || cli->command == &gt_cmd_resume))
		gt_cli_note(cli, "try a lower train.optimizer.lr, which `gtrain lr-find CFG` suggests, or train.clip_norm = 1.0");
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
	signal(SIGPIPE, SIG_IGN); /* A write above the file size limit returns EFBIG instead of killing the process; the error then names the
	                             file. */
	signal(SIGXFSZ, SIG_IGN); /* writes fail with EFBIG instead, and the error names the file */
	gt_output_init(&cli);
	cli.argv = argv;
	enum gt_code code = gt_rank_open(&cli.link, &err);
	if (code == GT_OK)
		code = gt_arena_open(&cli.arena, &err);
	if (code == GT_OK)
		code = run_command(&cli, argc, argv, &err);
	int status = finish_process(&cli, code, &err);
	gt_json_free(&cli.json);
	gt_arena_close(cli.arena);
	gt_rank_close(cli.link);
	return status;
}
