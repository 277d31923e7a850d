#include "commands.h"
#include "base/fileio.h"
#include "base/shell_word.h"
#include "gtrain.h"
#include "gtrain_data.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct init_args {
	const char *out, *pretrained;
	struct gt_strlist targets;
	bool list;
};
#define OFFSET(member) offsetof(struct init_args, member)

static const struct gt_option options[] = {
	{"out", 'o', GT_OPTION_STRING, OFFSET(out), "FILE", GT_COMPLETE_FILE, .help = "name of the file to write; default and -: standard "
	                                                                              "output"},
	{"target", 0, GT_OPTION_LIST, OFFSET(targets), "COLUMN",
	 .help = "column of the table to predict; can be repeated for several numeric columns"},
	{"pretrained", 0, GT_OPTION_STRING, OFFSET(pretrained), "WEIGHTS", GT_COMPLETE_FILE,
	 .help = "weights to start from: a file with the weights of a torchvision network, or a name such as resnet18 (see `gtrain fetch`)"},
	{"list", 0, GT_OPTION_FLAG, OFFSET(list), NULL,
	 .help = "list the kinds of data for which gtrain can write a config, and the configs of gtrain that suit your own data"},
	{0},
};

/* The kinds of data that gt_init_config recognises. */
static const struct {
	const char *data, *command, *network;
} recipes[] = {
	{"images, a folder for each class", "gtrain init FOLDER", "ResNet, whose size depends on the images"},
	{"the same, starting from published weights", "gtrain init FOLDER --pretrained resnet18",
	 "torchvision's network of the weights, fine-tuned"},
	{"the same in an archive (.zip, .tar.gz, …)", "gtrain init FILE.zip", "as for folders of images or texts"},
	{"IDX or CIFAR files", "gtrain init FOLDER", "ResNet for small images"},
	{"NumPy arrays of images and labels", "gtrain init FILE.npz", "ResNet for small images"},
	{"texts (.txt), a folder for each class", "gtrain init FOLDER", "mean of the embeddings of words and word pairs"},
	{"table (CSV, TSV, JSON Lines, .npz), to predict a class or a value", "gtrain init FILE.csv --target COLUMN",
	 "layers with embeddings of categories and texts"},
	{"table, to predict several values", "gtrain init FILE.csv --target A --target B", "the same with an output for each value"},
};

/* Returns whether a config is for the user's own data: its dataset is not a known dataset, but "images", "texts" or similar. */
static bool is_own_data(const struct gt_bundled *config)
{
	return strcmp(config->dataset, "images") == 0 || strcmp(config->dataset, "texts") == 0;
}

static enum gt_code print_recipe(struct gt_cli *cli, const char *data, const char *command, const char *network, struct gt_err *err)
{
	char text[512];
	if (cli->args.json) {
		gt_json_row(&cli->json, NULL, GT_STR("data", data), GT_STR("command", command), GT_STR("network", network));
		return gt_out_json(cli, err);
	}
	snprintf(text, sizeof text, "%s: %s", data, network);
	gt_out(cli, "%s%s%s\n", gt_style(cli->color_out, GT_STYLE_BOLD), command, gt_style(cli->color_out, GT_STYLE_NONE));
	gt_out_wrapped(cli, "  ", 4, text, 80);
	return GT_OK;
}

static enum gt_code list_recipes(struct gt_cli *cli, struct gt_err *err)
{
	struct gt_bundled *config;
	char command[96];
	int n;
	GT_TRY(gt_bundled_list(cli->arena, &config, &n, err));
	for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++)
		GT_TRY(print_recipe(cli, recipes[i].data, recipes[i].command, recipes[i].network, err));
	for (int i = 0; i < n; i++) {
		snprintf(command, sizeof command, "gtrain configs %.40s >mine.cfg", config[i].name);
		if (is_own_data(&config[i]))
			GT_TRY(print_recipe(cli, config[i].dataset, command, config[i].summary, err));
	}
	return GT_OK;
}

static void print_warning(void *user, const char *text)
{
	gt_cli_warn(user, text);
}

static enum gt_code run_init(struct gt_cli *cli, struct gt_err *err)
{
	const struct init_args *a = cli->options;
	const char *out = a->out && strcmp(a->out, "-") ? a->out : NULL; /* NULL: standard output */
	char *text;
	if (a->list)
		return list_recipes(cli, err);
	if (!cli->args.operands.n)
		return gt_fail(err, GT_EUSAGE, "too few operands; usage: gtrain %s %s", cli->command->name, cli->command->operands);
	if (out && !access(out, F_OK))
		return gt_fail(err, GT_ECANTCREAT, "%s: expected a new file, but this file exists; remove it or choose another name", out);
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
	.about = "Reads the images of a folder or archive (.zip, .tar, .tar.gz, .tar.zst, .tar.xz)\n"
	         "and writes a config that trains on these images: input size, classes, split, batch,\n"
	         "augmentation, network and schedule, with comments. The folder has a folder for\n"
	         "each class, or train/, valid/ and test/ with folders for each class; IDX and CIFAR\n"
	         "files and .npz files of images are recognised too. A folder of .txt files gets a\n"
	         "config that classifies texts by their words. For a table (CSV, TSV or JSON Lines,\n"
	         "also with .gz, or .npz) and the column to predict, writes a config with the types of\n"
	         "its columns. --list shows which data has a recipe.",
	.example = "gtrain init flowers -o flowers.cfg",
	.max_operands = 1,
	.first = GT_COMPLETE_FILE,
	.options = options,
	.args_size = sizeof(struct init_args),
	.run = run_init,
};
