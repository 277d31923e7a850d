#include "commands.h"
#include "base/fileio.h"
#include "base/shell_word.h"
#include "gtrain_data.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct init_args {
	const char *out, *pretrained;
	struct gt_strlist targets;
};
#define OFFSET(member) offsetof(struct init_args, member)

static const struct gt_option options[] = {
	{"out", 'o', GT_OPTION_STRING, OFFSET(out), "FILE", GT_COMPLETE_FILE, .help = "file to write; default and -: standard output"},
	{"target", 0, GT_OPTION_LIST, OFFSET(targets), "COLUMN",
	 .help = "of a table: column to predict; can be repeated for several columns of numbers"},
	{"pretrained", 0, GT_OPTION_STRING, OFFSET(pretrained), "FILE", GT_COMPLETE_FILE,
	 .help = "safetensors file with the weights of a ResNet of torchvision to start from"},
	{0},
};

static void print_warning(void *user, const char *text)
{
	gt_cli_warn(user, text);
}

static enum gt_code run_init(struct gt_cli *cli, struct gt_err *err)
{
	const struct init_args *a = cli->options;
	const char *out = a->out && strcmp(a->out, "-") ? a->out : NULL; /* NULL: standard output */
	char *text;
	if (out && !access(out, F_OK))
		return gt_fail(err, GT_ECANTCREAT, "%s: the file exists; remove it or choose another name", out);
	struct gt_init_spec spec = {.path = cli->args.operands.v[0], .pretrained = a->pretrained, .targets = a->targets.v,
	                            .ntargets = a->targets.n, .out = out, .warn = print_warning, .user = cli};
	GT_TRY(gt_init_config(&spec, &text, err));
	enum gt_code code = GT_OK;
	if (!out)
		gt_out(cli, "%s", text);
	else
		code = gt_file_replace(out, 0666, text, strlen(text), err);
	free(text);
	if (code == GT_OK && out && !cli->args.quiet) {
		char program[1024], file[1024];
		gt_cli_note(cli, "wrote %s; next: %s check %s", out, gt_cli_program(cli, program, sizeof program),
		            gt_shell_word(out, file, sizeof file));
	}
	return code;
}

const struct gt_command gt_cmd_init = {
	.name = "init",
	.operands = "PATH",
	.summary = "write a config for a folder of images or texts, or for a table",
	.about = "Looks at the images of a folder or archive (.zip, .tar, .tar.gz, .tar.zst, .tar.xz)\n"
	         "and writes a config that trains on them: input size, classes, split, batch,\n"
	         "augmentation, network and schedule, with comments. The folder has a folder for\n"
	         "each class, or train/, valid/ and test/ with folders for each class; IDX and CIFAR\n"
	         "files are recognised too. A folder of .txt files gets a config that classifies texts\n"
	         "by their words. For a table (CSV, TSV or JSON Lines, also with .gz) and the column\n"
	         "to predict, writes a config with the types of its columns.",
	.example = "gtrain init flowers -o flowers.cfg",
	.min_operands = 1,
	.max_operands = 1,
	.first = GT_COMPLETE_FILE,
	.options = options,
	.args_size = sizeof(struct init_args),
	.run = run_init,
};
