#include "commands.h"
#include "gtrain_export.h"
#include "gtrain_use.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct export_args {
	const char *out, *format;
	bool preprocess;
};
#define OFFSET(member) offsetof(struct export_args, member)

/* The export formats. X(word, extension): the extension is the one that selects the format by the name of --out; "": the format is a
 * directory. */
#define FORMATS(X)                                \
	X(SAFETENSORS, "safetensors", ".safetensors") \
	X(ONNX, "onnx", ".onnx")                      \
	X(PYTORCH, "pytorch", "")

enum format {
#define GT_X(id, ...) FORMAT_##id,
	FORMATS(GT_X)
#undef GT_X
	NFORMATS
};

static const struct {
	const char *word, *ending;
} formats[NFORMATS] = {
#define GT_X(id, ...) {__VA_ARGS__},
    FORMATS(GT_X)
#undef GT_X
};

static const struct gt_option options[] = {
	{"out", 'o', GT_OPTION_STRING, OFFSET(out), "FILE", GT_COMPLETE_FILE, .help = "name of the file to write; -: standard output", true},
	{"format", 0, GT_OPTION_CHOICE, OFFSET(format), "FORMAT", GT_COMPLETE_CHOICE, "safetensors|onnx|pytorch",
	 .help = "format of the file; default: the ending of FILE selects it"},
	{"preprocess", 0, GT_OPTION_FLAG, OFFSET(preprocess),
	 .help = "onnx: the exported model takes pixels 0 to 255, or the values of a table, and normalises them"},
	{0},
};

/* Returns the extension of a file name, with its dot; "": no extension. */
static const char *find_ending(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
	return !dot || dot == name || !isalpha((unsigned char)dot[1]) ? "" : dot;
}

static enum gt_code find_format(const struct export_args *a, enum format *out, struct gt_err *err)
{
	const char *ending = find_ending(a->out);
	int named = NFORMATS, given = NFORMATS;
	for (int i = 0; i < NFORMATS; i++) {
		named = !*ending || strcmp(ending, formats[i].ending) ? named : i;
		given = a->format && !strcmp(a->format, formats[i].word) ? i : given;
	}
	if (*ending && named == NFORMATS)
		return gt_fail(err, GT_EUSAGE, "--out %.500s: expected a name that ends with .safetensors or .onnx, or --format pytorch and the "
		               "name of a directory, got %.20s", a->out, ending);
	if (named < NFORMATS && given < NFORMATS && named != given)
		return gt_fail(err, GT_EUSAGE, "--out %.500s: expected a name %s%s, because of --format %s, got %s", a->out,
		               *formats[given].ending ? "that ends with " : "without an ending", formats[given].ending, formats[given].word,
		               ending);
	*out = given < NFORMATS ? given : named < NFORMATS ? named : FORMAT_SAFETENSORS;
	if (*out != FORMAT_PYTORCH && *a->out && a->out[strlen(a->out) - 1] == '/')
		return gt_fail(err, GT_EUSAGE, "--out %.500s: expected the name of a file, got a directory; --format pytorch writes a directory",
		               a->out);
	if (a->preprocess && *out != FORMAT_ONNX)
		return gt_fail(err, GT_EUSAGE, "--preprocess: expected --format onnx, got %s", formats[*out].word);
	return GT_OK;
}

/* Fails if path is in the directory of a checkpoint: a new file would invalidate the checkpoint's digests. */
static enum gt_code refuse_checkpoint(const char *path, struct gt_err *err)
{
	const char *slash = strrchr(path, '/');
	char manifest[4400];
	int n = slash ? (int)(slash + 1 - path) : 0;
	if (snprintf(manifest, sizeof manifest, "%.*smanifest.json", n, path) >= (int)sizeof manifest || access(manifest, F_OK))
		return GT_OK;
	return gt_fail(err, GT_ECANTCREAT, "--out %.500s: this directory is a checkpoint, whose files cannot be replaced; choose another name",
	               path);
}

static bool write_piece(void *user, const void *data, size_t n)
{
	return gt_out_bytes(user, data, n);
}

static enum gt_code export_to_stdout(struct gt_cli *cli, struct gt_err *err)
{
	const struct export_args *a = cli->options;
	if (cli->args.json)
		return gt_fail(err, GT_EUSAGE, "--out - and --json cannot be combined, because both write to standard output");
	if (a->preprocess || (a->format && strcmp(a->format, formats[FORMAT_SAFETENSORS].word) != 0))
		return gt_fail(err, GT_EUSAGE, "--out -: expected a file, because only the format safetensors can be written to standard output");
	if (isatty(STDOUT_FILENO))
		return gt_fail(err, GT_EUSAGE, "--out -: expected a pipe or a file as standard output, got a terminal, which cannot show weights");
	return gt_export_pieces(cli->args.operands.v[0], write_piece, cli, err);
}

static void print_note(void *user, const char *text)
{
	gt_cli_warn(user, text);
}

static enum gt_code write_format(struct gt_cli *cli, enum format format, struct gt_err *err)
{
	const struct export_args *a = cli->options;
	struct gt_export_spec spec = {
	    .ckpt = cli->args.operands.v[0], .out = a->out, .preprocess = a->preprocess, .note = print_note, .user = cli};
	switch (format) {
	case FORMAT_ONNX: return gt_export_onnx(&spec, err);
	case FORMAT_PYTORCH: return gt_export_torch(&spec, err);
	default: return gt_export(spec.ckpt, spec.out, err);
	}
}

static enum gt_code run_export(struct gt_cli *cli, struct gt_err *err)
{
	const struct export_args *a = cli->options;
	enum format format = FORMAT_SAFETENSORS;
	if (!strcmp(a->out, "-"))
		return export_to_stdout(cli, err);
	GT_TRY(find_format(a, &format, err));
	GT_TRY(refuse_checkpoint(a->out, err));
	GT_TRY(write_format(cli, format, err));
	if (cli->args.json) {
		gt_json_row(&cli->json, NULL, GT_STR("checkpoint", cli->args.operands.v[0]), GT_STR("path", a->out),
		            GT_STR("format", formats[format].word));
		return gt_out_json(cli, err);
	}
	if (!cli->args.quiet)
		gt_cli_note(cli, "wrote %s", a->out);
	return GT_OK;
}

const struct gt_command gt_cmd_export = {
	.name = "export",
	.operands = "CKPT",
	.about = "Writes the model of a checkpoint for other programs. The ending of FILE selects the\n"
	         "format:\n"
	         "  .safetensors  the weights, with PyTorch's names and layouts, for load_state_dict;\n"
	         "                also without an ending, and with -o - to standard output\n"
	         "  .onnx         the model, for ONNX Runtime and other runtimes\n"
	         "With --format pytorch, FILE is a new directory with the model as a module of PyTorch\n"
	         "(model.py), its weights and a model card (README.md). The file or directory appears\n"
	         "only when it is complete; a file replaces an existing file.",
	.example = "gtrain export runs/fmnist-mlp -o fmnist.onnx",
	.min_operands = 1,
	.max_operands = 1,
	.first = GT_COMPLETE_CHECKPOINT,
	.options = options,
	.args_size = sizeof(struct export_args),
	.run = run_export,
};
