#include "commands.h"
#include "gtrain_use.h"
#include <ctype.h>
#include <string.h>
#include <unistd.h>

struct export_args {
	const char *out;
};
#define OFFSET(member) offsetof(struct export_args, member)

static const struct gt_option options[] = {
	{"out", 'o', GT_OPTION_STRING, OFFSET(out), "FILE", GT_COMPLETE_FILE, .help = "the file to write; -: standard output", true},
	{0},
};

/* Rejects names with the extension of another format. */
static enum gt_code check_name(const char *path, struct gt_err *err)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
	if (!dot || dot == name || !isalpha((unsigned char)dot[1]) || !strcmp(dot, ".safetensors"))
		return GT_OK;
	return gt_fail(
	    err, GT_EUSAGE,
	    "--out %.500s: expected a name that ends with .safetensors, the only format that gtrain writes, got %.20s; write -o "
	    "%.*s.safetensors",
	    path, dot, (int)(dot - path > 400 ? 400 : dot - path), path);
}

static bool write_piece(void *user, const void *data, size_t n)
{
	return gt_out_bytes(user, data, n);
}

static enum gt_code export_to_stdout(struct gt_cli *cli, struct gt_err *err)
{
	if (cli->args.json)
		return gt_fail(err, GT_EUSAGE, "--out - and --json do not go together, because both write to standard output");
	if (isatty(STDOUT_FILENO))
		return gt_fail(err, GT_EUSAGE, "--out -: expected a pipe or a file as standard output, got a terminal, which cannot show weights");
	return gt_export_pieces(cli->args.operands.v[0], write_piece, cli, err);
}

static enum gt_code run_export(struct gt_cli *cli, struct gt_err *err)
{
	const struct export_args *a = cli->options;
	if (!strcmp(a->out, "-"))
		return export_to_stdout(cli, err);
	GT_TRY(check_name(a->out, err));
	GT_TRY(gt_export(cli->args.operands.v[0], a->out, err));
	if (cli->args.json) {
		gt_json_row(&cli->json, NULL, GT_STR("checkpoint", cli->args.operands.v[0]), GT_STR("path", a->out));
		return gt_out_json(cli, err);
	}
	if (!cli->args.quiet)
		gt_cli_note(cli, "wrote %s", a->out);
	return GT_OK;
}

const struct gt_command gt_cmd_export = {
	.name = "export",
	.operands = "CKPT",
	.summary = "write a checkpoint's weights as one safetensors file",
	.about = "Writes the weights of a checkpoint as one safetensors file, with PyTorch's names and\n"
	         "layouts, for safetensors.torch.load_file and load_state_dict. The file appears only\n"
	         "when it is complete. With -o -, standard output receives the bytes of the file.",
	.example = "gtrain export runs/fmnist-mlp -o fmnist.safetensors",
	.min_operands = 1,
	.max_operands = 1,
	.first = GT_COMPLETE_CHECKPOINT,
	.options = options,
	.args_size = sizeof(struct export_args),
	.run = run_export,
};
