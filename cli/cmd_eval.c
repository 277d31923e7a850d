#include "commands.h"
#include <math.h>
#include <stdio.h>

static const struct gt_option options[] = {
	{"split", 0, GT_OPTION_CHOICE, GT_OFFSET(split), "SPLIT", GT_COMPLETE_CHOICE, "train|valid|test", 0, 0,
	 "split to use: train, valid or test; default: test"},
	GT_OPT_SET,
	GT_OPT_DEVICE,
	{0},
};

static enum gt_code eval(struct gt_cli *cli, struct gt_err *err)
{
	const struct gt_args *a = &cli->args;
	struct gt_eval_result r = {.acc = NAN, .top5 = NAN};
	GT_TRY(gt_eval(a->operands.v[0], a->split ? a->split : "test", a->device, a->sets.v, a->sets.n, &r, err));
	if (a->json) {
		struct gt_json *j = &cli->json;
		gt_json_object(j, NULL);
		gt_json_string(j, "event", "eval");
		gt_json_int(j, "step", r.step);
		gt_json_string(j, "split", r.split);
		gt_json_int(j, "samples", r.samples);
		gt_json_double(j, "loss", r.loss, 9);
		gt_json_double(j, "acc", r.acc, 9);
		gt_json_double(j, "top5", r.top5, 9);
		gt_json_double(j, "seconds", r.seconds, 6);
		gt_json_end(j);
		return gt_out_json(cli, err);
	}
	char acc[48] = "", top5[48] = "", samples[GT_UNITS], step[GT_UNITS], took[GT_UNITS], loss[GT_UNITS];
	if (!isnan(r.acc))
		snprintf(acc, sizeof acc, "accuracy %.4f  ", r.acc);
	if (!isnan(r.top5))
		snprintf(top5, sizeof top5, "top-5 %.4f  ", r.top5);
	gt_out(cli, "%s %s%sloss %s  (%s samples, step %s, %s)\n", r.split, acc, top5, gt_units_loss(loss, r.loss),
	       gt_units_count(samples, r.samples), gt_units_count(step, r.step), gt_units_seconds(took, r.seconds));
	return GT_OK;
}

const struct gt_command gt_cmd_eval = {
	.name = "eval",
	.operands = "CKPT",
	.summary = "measure the loss and accuracy of a checkpoint",
	.about = "Measures the loss and accuracy of a checkpoint. CKPT is a step-... directory or the\n"
	         "directory of a run, of which the best checkpoint is used, or else the newest.",
	.example = "gtrain eval runs/fmnist-mlp",
	.min_operands = 1,
	.max_operands = 1,
	.first = GT_COMPLETE_CHECKPOINT,
	.options = options,
	.run = eval,
};
