#include "commands.h"
#include <inttypes.h>
#include <stdio.h>

static const struct gt_option options[] = {
	{"top", 0, GT_OPTION_INT, GT_OFFSET(top), "N", GT_COMPLETE_NONE, NULL, 1, 10, "number of most likely classes to show, 1 to 10; "
	 "default: 1"},
	GT_OPT_DEVICE,
	{0},
};

struct printing {
	struct gt_cli *cli;
	enum gt_code code;
	struct gt_err *err;
};

static void print_json(struct printing *s, const struct gt_prediction *p)
{
	struct gt_json *j = &s->cli->json;
	gt_json_object(j, NULL);
	gt_json_string(j, "file", p->file);
	if (p->error) {
		gt_json_string(j, "error", p->error);
		gt_json_end(j);
		s->code = gt_out_json(s->cli, s->err);
		return;
	}
	gt_json_int(j, "index", p->index);
	gt_json_bool(j, "scaled", p->scaled);
	gt_json_array(j, "top");
	for (int i = 0; i < p->n; i++) {
		gt_json_object(j, NULL);
		gt_json_int(j, "label", p->top[i].label);
		gt_json_string(j, "name", p->top[i].name);
		gt_json_double(j, "p", p->top[i].p, 9);
		gt_json_end(j);
	}
	gt_json_end(j);
	gt_json_end(j);
	s->code = gt_out_json(s->cli, s->err);
}

static void print(void *user, const struct gt_prediction *p)
{
	struct printing *s = user;
	char file[1024], name[128];
	if (s->code != GT_OK)
		return;
	if (p->error)
		gt_cli_complain(s->cli, p->error);
	if (s->cli->args.json) {
		print_json(s, p);
		return;
	}
	if (p->error)
		return;
	gt_out(s->cli, "%s", gt_cli_printable(p->file, file, sizeof file));
	if (p->index > 0)
		gt_out(s->cli, "[%" PRId64 "]", p->index);
	for (int i = 0; i < p->n; i++) {
		if (p->top[i].name)
			gt_out(s->cli, "\t%s %.4f", gt_cli_printable(p->top[i].name, name, sizeof name), p->top[i].p);
		else
			gt_out(s->cli, "\t%d %.4f", p->top[i].label, p->top[i].p);
	}
	gt_out(s->cli, "\n");
	if (p->scaled && p->index == 0 && !s->cli->args.quiet) {
		char text[1280];
		snprintf(text, sizeof text, "%s: the image was scaled to the input size of the model", p->file);
		gt_cli_warn(s->cli, text);
	}
}

static enum gt_code predict(struct gt_cli *cli, struct gt_err *err)
{
	const struct gt_args *a = &cli->args;
	struct printing s = {.cli = cli, .err = err};
	GT_TRY(gt_predict(a->operands.v[0], a->operands.v + 1, a->operands.n - 1, a->top ? (int)a->top : 1, a->device, print, &s, err));
	return s.code;
}

const struct gt_command gt_cmd_predict = {
	.name = "predict",
	.operands = "CKPT FILE...",
	.summary = "classify images (PNG, JPEG, IDX) with a checkpoint",
	.about = "Classifies images with a checkpoint. A FILE is a PNG or JPEG image, or an IDX file\n"
	         "of images. Prints one line per image: the file, then classes and their\n"
	         "probabilities, separated by tabs. If a file is damaged, names it, classifies the\n"
	         "others, and ends with status 65.",
	.example = "gtrain predict --top 3 runs/fmnist-mlp shoe.png",
	.min_operands = 2,
	.max_operands = -1,
	.first = GT_COMPLETE_CHECKPOINT,
	.rest = GT_COMPLETE_FILE,
	.options = options,
	.run = predict,
};
